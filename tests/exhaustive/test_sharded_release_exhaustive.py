"""The release in shards, with the law of all shards together written out by its own code.

A universe of two items in each of two shards, one counter a shard, every stream of up to three events.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.branches import worst_delta
from tests.reference.neighbours import neighbouring_streams
from tests.reference.sabotage import half_the_noise

import discreet as dc
from discreet.central import ShardedOffset
from discreet.privacy.calibration.offset_cut import offset_delta
from discreet.summaries import RawCounts

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


class RowShards:
    """Row i in shard i modulo 2, so that an item may be in both. NOT PRIVATE if each spends the whole budget."""

    was_merged, capacity, shards = False, 1, 2

    def __init__(self, stream):
        self.total, self.parts = len(stream), [dc.MisraGries(1, seed=SEED) for _ in range(2)]
        for shard, part in enumerate(self.parts):
            part.update(np.array(stream[shard::2], np.int64))

    not_private_offsets = property(lambda self: [part.not_private_offset for part in self.parts])
    not_private_sizes = property(lambda self: [len(part) for part in self.parts])

    def not_private_shards(self):
        return [part.not_private_counts() for part in self.parts]

    def not_private_counts(self):
        parts = [part for part in self.not_private_shards() if len(part)] or self.not_private_shards()[:1]
        return RawCounts(
            pa.concat_arrays([part.items for part in parts]), np.concatenate([part.counts for part in parts])
        )


def worst(mechanism, summarise=in_shards, longest=3, removed=1, enough=math.inf):
    pairs = neighbouring_streams(UNIVERSE, longest, removed)
    return worst_delta(mechanism, summarise, pairs, mechanism.guarantee.epsilon, 1e-6, enough)


EVENT = ShardedOffset(dc.Budget(2.0, 0.02), capacity=1, shards=2)
USER = ShardedOffset(dc.Budget(4.0, 0.05), capacity=1, shards=2, unit=dc.User(2))


def test_one_event_costs_what_it_costs_in_one_sketch():
    """Not more than the claim, and no less than the one shard that changes: P[W >= t] for one counter."""
    low, high = worst(EVENT)
    one = dc.central.Offset(EVENT.budget, 1)
    alone_low, alone_high = worst_delta(one, _one_sketch, neighbouring_streams(UNIVERSE[:2], 3), 2.0, 1e-6)
    assert high <= 0.02
    assert low <= alone_high
    assert high >= alone_low


def _one_sketch(stream):
    sketch = dc.MisraGries(1, seed=SEED)
    sketch.update(list(stream))
    return sketch


def test_two_events_of_a_user_in_any_shards():
    assert worst(USER, removed=2)[1] <= offset_delta(4.0, USER.threshold - 1, max_items=2) <= 0.05


def test_two_events_of_a_user_are_not_paid_by_the_noise_for_one():
    """Each shard would spend epsilon on the one event that it sees, and a user with two shards twice epsilon."""
    assert worst(EVENT, removed=2, enough=0.02)[0] > 0.02


def test_shards_by_row_lose_more_than_they_claim():
    """An added event moves all rows behind it to the other shard: two items that take turns change places."""
    assert worst(EVENT, RowShards, enough=0.02)[0] > 0.02
    turns = (UNIVERSE[0], UNIVERSE[1]) * 6
    assert worst_delta(EVENT, RowShards, [(turns, turns[1:])], 2.0, 1e-6)[0] > 0.5
    assert worst_delta(EVENT, in_shards, [(turns, turns[1:])], 2.0, 1e-6)[1] <= 0.02


def test_half_the_noise_is_noticed():
    assert worst(half_the_noise(EVENT), enough=0.02)[0] > 0.02


@pytest.mark.parametrize("unit", [dc.Replace(), dc.Element()])
def test_other_units_are_refused(unit):
    with pytest.raises(dc.ParameterError, match=r"dc\.Event\(\) or dc\.User"):
        ShardedOffset(dc.Budget(1.0, 1e-6), 8, 2, unit=unit)
