"""Heavy hitters from an oracle of one's own: the lemma on untracked items and the output law, on all small streams."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.reference.branches import worst_delta
from tests.reference.neighbours import neighbouring_streams
from tests.reference.oracles import HashedRows, ListedCounts
from tests.reference.sabotage import half_the_noise, sabotaged

import discreet as dc
from discreet.published import OracleHeavyHitters, TrackedOracle

ITEMS = range(4)


class SignedCells(HashedRows):
    """One row of cells with signs: it errs to both sides."""

    def signs(self, items: Any) -> Any:
        return np.array([1 - 2 * (x % 2) for x in items])

    def update(self, items: Any, counts: Any) -> None:
        super().update(items, self.signs(items) * counts)

    def estimate(self, items: Any, cells: Any) -> Any:
        return self.signs(items) * super().estimate(items, cells)


def bound(n: int, k: int, below: int, above: int) -> int:
    return (n + k * (above + below)) // (k + 1) + above


def test_no_untracked_item_is_estimated_above_the_bound():
    """Whatever the batches: with the errors that were made, the bound holds; without them it does not."""
    without = 0
    for kind, tracked, seed in itertools.product((HashedRows, SignedCells), (1, 2), (b"1", b"2")):
        for stream in itertools.product(ITEMS, repeat=4):
            for ends in ((4,), (1, 4), (2, 4), (1, 2, 3, 4)):
                oracle = TrackedOracle(kind(2, 1, seed), tracked)
                below = above = first = 0
                for last in ends:
                    oracle.update(np.array(stream[first:last]))
                    estimates = oracle.estimates_from(list(ITEMS), oracle.not_private_cells())
                    truth = Counter(stream[:last])
                    errors = [int(estimates[x]) - truth[x] for x in ITEMS]
                    below, above, first = max(below, -min(errors)), max(above, *errors), last
                kept = set(oracle.not_private_counts().items.to_pylist())
                largest = max((int(estimates[x]) for x in ITEMS if x not in kept), default=0)
                assert largest <= bound(4, tracked, below, above)
                without += largest > bound(4, tracked, 0, 0)
    assert without > 0


BUDGET = dc.Budget(2.0, 0.2)


def made(**options: Any) -> OracleHeavyHitters:
    return OracleHeavyHitters(BUDGET, 4, lambda: ListedCounts(3), 5, **options)


def tracked(mechanism: OracleHeavyHitters) -> Any:
    def summarise(stream: Any) -> TrackedOracle:
        summary = TrackedOracle(ListedCounts(3), mechanism.capacity)
        summary.update(list(stream))
        return summary

    return summarise


def law_of(mechanism: Any, pairs: Any, **options: Any) -> Any:
    return worst_delta(mechanism, tracked(mechanism), pairs, BUDGET.epsilon, 1e-5, **options)


def test_the_release_is_private_and_half_the_noise_is_not():
    """All streams of at most 2 events, and items around the cut. The part of delta for errors is not needed here."""
    mechanism = made(stream_length=40)
    cut = mechanism.threshold
    around = itertools.product((cut - 1, cut, cut + 1, cut + 4), (0, cut))
    tall = [((0,) * n + (1,) * m, (0,) * (n - 1) + (1,) * m) for n, m in around]
    pairs = [*neighbouring_streams(range(3), 2), *tall]
    assert law_of(mechanism, pairs)[1] <= BUDGET.delta - 2 * mechanism.deltas.hashing
    assert law_of(half_the_noise(mechanism), pairs, enough=BUDGET.delta)[0] > BUDGET.delta


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_items_that_only_one_run_tracks_stay_hidden(noise: str) -> None:
    """One item is tracked of two: with the share of the untracked left out of the cut it gives an event away."""
    mechanism = OracleHeavyHitters(BUDGET, 1, lambda: ListedCounts(3), 2, noise=noise, stream_length=9)

    def summarise(stream: Any) -> TrackedOracle:
        summary = TrackedOracle(ListedCounts(3), 2)
        for item in stream:
            summary.update([item])
        return summary

    # 0 and 1 and 2 three times each: with the last 2 it takes a place, without it does not.
    full = (0, 0, 1, 1, 1, 2, 2, 2)
    streams = [(full, full[:-1]), ((0, *full), full)]
    states = [[set(summarise(s).not_private_counts().items.to_pylist()) for s in pair] for pair in streams]
    assert any(first != second for first, second in states)

    def at(mechanism: Any) -> Any:
        return worst_delta(mechanism, summarise, streams, BUDGET.epsilon, 1e-5)

    assert at(mechanism)[1] <= BUDGET.delta
    lowered = sabotaged(mechanism, threshold=lambda cut: 1)
    assert at(lowered)[0] > BUDGET.delta
