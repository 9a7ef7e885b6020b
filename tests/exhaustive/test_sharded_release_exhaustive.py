"""The release in shards, with the law of all shards together written out by its own code.

A universe of two items in each of two shards, one counter a shard, every stream of up to three events.
"""

from __future__ import annotations

import math

import pytest
from tests.reference.neighbours import neighbouring_streams

import discreet as dc
from discreet.central import ShardedOffset
from discreet.privacy.calibration.offset_cut import offset_delta
from discreet_audit.central import RowShards, by_rows, half_the_noise, signature
from discreet_audit.exact import worst_divergence

SEED = 7
UNIVERSE = [
    item
    for shard in range(2)
    for item in [x for x in range(40) if dc.ShardedMisraGries(1, 2, seed=SEED).shard_of(x) == shard][:2]
]


def in_shards(stream):
    summary = dc.ShardedMisraGries(1, 2, seed=SEED)
    summary.update(list(stream))
    return summary


def in_rows(stream):
    summary = RowShards(1, 2)
    summary.update(stream)
    return summary


def worst(mechanism, summarise=in_shards, longest=3, removed=1, enough=math.inf):
    pairs = neighbouring_streams(UNIVERSE, longest, removed)
    return worst_divergence(mechanism, summarise, pairs, mechanism.guarantee.epsilon, 1e-6, signature, enough)


EVENT = ShardedOffset(dc.Budget(2.0, 0.02), capacity=1, shards=2)
USER = ShardedOffset(dc.Budget(4.0, 0.05), capacity=1, shards=2, unit=dc.User(2))


def test_one_event_costs_what_it_costs_in_one_sketch():
    """Not more than the claim, and no less than the one shard that changes: P[W >= t] for one counter."""
    found = worst(EVENT)
    one = dc.central.Offset(EVENT.budget, 1)
    alone = worst_divergence(one, _one_sketch, neighbouring_streams(UNIVERSE[:2], 3), 2.0, 1e-6)
    assert found.upper <= 0.02
    assert found.lower <= alone.upper
    assert found.upper >= alone.lower


def _one_sketch(stream):
    sketch = dc.MisraGries(1, seed=SEED)
    sketch.update(list(stream))
    return sketch


def test_two_events_of_a_user_in_any_shards():
    found = worst(USER, removed=2)
    assert found.upper <= offset_delta(4.0, USER.threshold - 1, max_items=2) <= 0.05


def test_two_events_of_a_user_are_not_paid_by_the_noise_for_one():
    """Each shard would spend epsilon on the one event that it sees, and a user with two shards twice epsilon."""
    assert worst(EVENT, removed=2, enough=0.02).lower > 0.02


def test_shards_by_row_lose_more_than_they_claim():
    """An added event moves all rows behind it to the other shard: two items that take turns change places."""
    twin = by_rows(EVENT).mechanism
    assert worst(twin, in_rows, enough=0.02).lower > 0.02
    turns = (UNIVERSE[0], UNIVERSE[1]) * 6
    assert worst_divergence(twin, in_rows, [(turns, turns[1:])], 2.0, 1e-6, signature).lower > 0.5
    assert worst_divergence(EVENT, in_shards, [(turns, turns[1:])], 2.0, 1e-6, signature).upper <= 0.02


def test_half_the_noise_is_noticed():
    assert worst(half_the_noise(EVENT).mechanism, enough=0.02).lower > 0.02


@pytest.mark.parametrize("unit", [dc.Replace(), dc.Element()])
def test_other_units_are_refused(unit):
    with pytest.raises(dc.ParameterError, match=r"dc\.Event\(\) or dc\.User"):
        ShardedOffset(dc.Budget(1.0, 1e-6), 8, 2, unit=unit)
