"""The share that scaling people leaves out is within its interval, also where a few people have much of everything.

Seeded. The interval must hold although the length was chosen by the same noise.
"""

import numpy as np
import pytest

import discreet as dc
from discreet.central.person_vectors import PersonVectors
from discreet.noise import seeded_source

ITEMS, RUNS = 400, 60
RNG = np.random.default_rng(0)
SHAPES = {
    "equal": np.full(2000, 4),
    "geometric": RNG.geometric(0.2, 20_000),
    "heavy tail": np.minimum(300, np.ceil(RNG.pareto(1.2, 20_000) + 1)).astype(np.int64),
    "few with much": np.where(RNG.random(2000) < 0.02, 100, 1),
    "many": RNG.geometric(0.2, 200_000),
}


def stated(items_each):
    """(lower, upper, true share) of runs: all items weigh the same, so that a squared length is a number of items."""
    squared, times = np.unique(items_each, return_counts=True)
    mechanism, source = PersonVectors(dc.Budget(1.0, 1e-6), k=50), seeded_source(1)
    weights, sums = np.ones(ITEMS, np.int64), np.full(ITEMS, max(1, int(items_each.sum() / ITEMS)), np.int64)
    for _ in range(RUNS):
        length = mechanism.choose_length((squared.astype(np.float64), times), weights, sums, False, source)
        lost = squared * (1 - np.minimum(1, length.longest / np.sqrt(squared))) * times
        yield length.left_out.lower, length.left_out.upper, lost.sum() / (squared * times).sum()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_share_is_within_its_interval(shape):
    missed = np.mean([not lower <= true <= upper for lower, upper, true in stated(SHAPES[shape])])
    assert missed <= 0.05


def test_it_says_something_where_people_are_many():
    assert np.mean([upper - lower for lower, upper, _ in stated(SHAPES["many"])]) < 0.1


def test_where_nothing_is_lost_it_is_known():
    assert {*stated(np.full(2_000_000, ITEMS))} == {(0.0, 0.0, 0.0)}
