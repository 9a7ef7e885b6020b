"""Estimates that could be counts: none negative, together the total, the nearest such; their intervals hold."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.multiparty import (
    HadamardResponse,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
)
from discreet.multiparty.estimates import ConsistentEstimates
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedSketch
from discreet.releases.simplex import on_simplex, within_simplex

BUDGET = dc.Budget(1.0)
SIZE = 60
PROTOCOLS = [
    HadamardResponse("r", BUDGET, SIZE),
    LocalHashing("r", BUDGET, SIZE),
    LocalSketch("r", BUDGET, SIZE),
    IndependentSketches("r", BUDGET, SIZE),
    MergedSketch("r", BUDGET, SIZE, columns=64),
    Separation("r", BUDGET, SIZE),
    Hierarchy("r", BUDGET, SIZE, branching=4),
    Hierarchy("r", BUDGET, SIZE, "HadamardResponse"),
]
every = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
ITEMS = np.minimum(np.random.default_rng(0).geometric(0.2, 2000) - 1, SIZE - 1)
COUNTS = np.bincount(ITEMS, minlength=SIZE)


def heard(protocol, seed=0):
    aggregator = protocol.aggregator(max_reports=None)
    for number, part in enumerate(np.array_split(ITEMS, 10)):
        aggregator.receive(protocol.party(number << 20, source=seeded_source(seed + number)).encode(part))
    return aggregator


@every
def test_they_could_be_counts(protocol):
    aggregator = heard(protocol)
    found, raw = aggregator.estimate(range(SIZE), consistent=True), aggregator.estimate(range(SIZE))
    assert isinstance(found, ConsistentEstimates)
    assert (found.values >= 0).all()
    assert found.values.sum() == pytest.approx(2000)
    assert found.total == 2000
    np.testing.assert_allclose(found.unbiased, raw.values)
    np.testing.assert_allclose(found.variances, raw.variances)
    assert np.square(found.values - COUNTS).sum() < np.square(raw.values - COUNTS).sum()
    some = aggregator.estimate([7, 3, 7], consistent=True)  # a part of the whole, in any order, says the same
    np.testing.assert_allclose(some.values, found.values[[7, 3, 7]])
    assert some[1].value == pytest.approx(found.values[3])


@every
def test_their_intervals_are_possible_and_hold_as_often(protocol):
    """Where the interval of an unbiased estimate has the true count, so has that of the consistent one."""
    for seed in range(0, 100, 20):
        found = heard(protocol, seed).estimate(range(SIZE), consistent=True)
        for confidence in (0.5, 0.95):
            lower, upper = found.bounds(confidence)
            low, high = dc.multiparty.Estimates(found.unbiased, found.variances, found.guarantee).bounds(confidence)
            held, before = (lower <= COUNTS) & (upper >= COUNTS), (low <= COUNTS) & (high >= COUNTS)
            assert held[before].all()
            assert (lower >= 0).all()
            assert (upper <= 2000).all()
            assert (lower <= found.values + 1e-9).all()
            assert (found.values <= upper + 1e-9).all()


def test_of_a_universe_that_nobody_can_list_those_asked_for_have_the_total_at_most():
    protocol = LocalHashing("r", BUDGET, "strings")
    aggregator = protocol.aggregator(max_reports=None)
    aggregator.receive(protocol.party(1, source=seeded_source(1)).encode(["a"] * 600 + ["b"] * 400))
    found = aggregator.estimate(["a", "b", "c", "a"], consistent=True)
    assert (found.values >= 0).all()
    assert found.values[:3].sum() <= 1000 + 1e-9
    assert found.values[0] == found.values[3]
    few = aggregator.estimate(["c"], consistent=True)
    assert few.values[0] == max(0.0, few.unbiased[0])


def test_what_leaves_out_a_part_is_not_made_whole():
    for protocol in (MergedMisraGries("r", BUDGET, 9), Hierarchy("r", BUDGET, 9, "MergedMisraGries")):
        aggregator = protocol.aggregator()
        aggregator.receive(protocol.party(1).encode([1, 2]))
        with pytest.raises(ParameterError, match="leaves out"):
            aggregator.estimate([1], consistent=True)


def test_nothing_nearer_could_be():
    """All counts of three items in steps of 1/8, against the nearest on the simplex and within it."""
    grid = np.array([g for g in itertools.product(range(17), repeat=3) if sum(g) <= 16]) / 8
    for values in np.random.default_rng(0).normal(0.5, 1.5, (200, 3)):
        for nearest, allowed in (
            (on_simplex(values, 2.0), grid[grid.sum(axis=1) == 2.0]),
            (within_simplex(values, 2.0), grid),
        ):
            assert (nearest >= 0).all()
            assert np.square(nearest - values).sum() <= np.square(allowed - values).sum(axis=1).min() + 1e-9
        assert on_simplex(values, 2.0).sum() == pytest.approx(2.0)
        assert within_simplex(values, 2.0).sum() <= 2.0 + 1e-9


def test_the_command_has_them():
    from discreet.multiparty.post import Questions

    aggregator = heard(PROTOCOLS[0])
    answers = Questions(top=SIZE, consistent=True).answered(PROTOCOLS[0], aggregator, 0.95)
    assert answers["consistent"] is True
    assert sum(row["count"] for row in answers["estimates"]) == pytest.approx(2000)
    stream = dc.multiparty.Stream("r", BUDGET, 9, window=5)
    with pytest.raises(ParameterError, match="stream"):
        Questions(items=(1,), consistent=True).check(stream)


@pytest.mark.parametrize(("size", "whole"), [(2**20, True), (2**20 + 1, False)])
def test_of_a_universe_that_is_listed_all_counts_sum_to_the_total(size, whole):
    """Up to 2^20 items are all estimated, whichever are asked for; of more, those asked for have the total at most."""
    protocol = dc.multiparty.HadamardResponse("r", dc.Budget(4.0), size)
    aggregator = protocol.aggregator()
    aggregator.receive_many(protocol.party(n, source=seeded_source(n)).encode([n % 3]) for n in range(60))
    found = aggregator.estimate([0, 1, 2, 9], consistent=True)
    assert found.total == 60.0
    assert (found.values >= 0.0).all()
    assert found.values.sum() <= 60.0 + 1e-6
    if whole:
        # nearly all of the total is on the noise of a million others
        assert found.values.sum() < 30.0
        assert aggregator.estimate(range(size), consistent=True).values.sum() == pytest.approx(60.0)
    else:
        assert found.values.sum() > 30.0
