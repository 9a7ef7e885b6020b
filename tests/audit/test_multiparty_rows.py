"""The audit of multiparty protocols: unusual configurations pass, twins do not, and losses are what is written.

Runs use the system's source: each protocol raises a false alarm with probability below 1e-7.
"""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.multiparty import HadamardResponse, IndependentSketches, LocalHashing, LocalSketch, Separation
from discreet.noise.places import places_above
from discreet.published import MergedMisraGries, MergedSketch
from discreet_audit import check, core
from discreet_audit.core import twin as broken_twin
from discreet_audit.multiparty import (
    SMALL_SEPARATION,
    counter_sensitivity,
    message_loss,
    neighbours,
    separation_loss,
    tiny,
)

FAST = core.Effort("fast", runs=200, large_pairs=60, released_pairs=20, length=-1)


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(core, "QUICK", FAST)


@pytest.mark.parametrize(
    "protocol",
    [
        HadamardResponse("r", dc.Budget(0.01), ["a", "b"]),
        LocalHashing("r", dc.Budget(0.1), 10**9),
        LocalSketch("r", dc.Budget(8.0), "bytes"),
        IndependentSketches("r", dc.Budget(0.1), "integers", items_per_column=100.0, rows=5),
        MergedSketch("r", dc.Budget(10.0), 7, columns=1),
        Separation("r", dc.Budget(0.1), 10**6, separation_share=0.9, items_per_column=0.5),
        MergedMisraGries("r", dc.Budget(5.0), range(-5, 5), capacity=1),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_unusual_configurations(protocol):
    report = check(protocol)
    assert report.passed, str(report)


def printed(word, epsilon=1.0):
    """A separation as [MDP] section 3.3 prints it, over 4 items."""
    protocol = Separation("r", dc.Budget(epsilon), 1000, rows=1)
    twin = next(twin for twin in core.audit_of(protocol).twins(protocol) if word in twin.name)
    return tiny(twin.mechanism, 4, **SMALL_SEPARATION)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_heavy_and_light_in_parallel_lose_nine_eighths(epsilon):
    """A heavy item below the threshold replaced by a light one above it moves three things at once."""
    loss = separation_loss(printed("parallel", epsilon), [((0, 1, 1, 1), (1, 1, 1, 1))])
    assert loss == pytest.approx(9 / 8 * epsilon, rel=1e-9)
    assert separation_loss(printed("parallel", epsilon), list(neighbours(4, 2))) <= loss * (1 + 1e-9)


def test_as_many_zero_entries_as_items_is_without_bound():
    """Any entry of count 0 may be heavy, but never more than u - n of them by the printed rule."""
    assert separation_loss(printed("zero"), [((0, 0), (0, 1))]) == math.inf


def test_entries_of_count_0_taken_for_count_1_lose_nothing():
    """P[Z >= T] in place of P[Z > T] alone: one more than there should be, but 0 and 1 have the same law."""

    def choose(self, found, counts, source):
        absent = np.setdiff1d(np.arange(4), found)
        every, ones = np.concatenate([found, absent]), np.concatenate([counts, np.ones(len(absent), np.int64)])
        order = np.argsort(every)
        return places_above(source, 4, every[order], ones[order], self.separation_scale, self.threshold + 1)

    twin = broken_twin(printed("zero"), "count 1 for count 0", choose=choose).mechanism
    assert separation_loss(twin, list(neighbours(4, 2))) <= 1 + 1e-9


def test_counters_move_by_one_more_than_there_are():
    for capacity in (1, 2, 3):
        protocol = MergedMisraGries("r", dc.Budget(1.0), 5, capacity=capacity)
        assert counter_sensitivity(protocol, list(neighbours(5, capacity + 1))) == capacity + 1 == protocol.sensitivity


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_responses_use_the_whole_budget(epsilon):
    for protocol in (HadamardResponse("r", dc.Budget(epsilon), 4), LocalHashing("r", dc.Budget(epsilon), 4)):
        loss = max(message_loss(protocol, neighbours(4, 1), number)[0] for number in range(4))
        assert loss == pytest.approx(epsilon, rel=1e-9)
        assert loss <= epsilon * (1 + 1e-12)
