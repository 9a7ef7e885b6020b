"""Every number that a caller gives has a range: one below and one above are refused, in words that name both ends."""

import math
import re

import pyarrow as pa
import pytest

import discreet as dc
from discreet import published
from discreet.central.noisy_count import NoisyCount
from discreet.central.person_moments import PersonMoments
from discreet.central.person_pairs import PersonPairs
from discreet.central.person_vectors import PersonVectors
from discreet.central.quantile_choice import QuantileChoice
from discreet.central.quantile_grid import Grid, StepGrid, grid_of
from discreet.central.quantile_tree import QuantileTree
from discreet.central.row_moments import RowMoments
from discreet.central.stability import Stability
from discreet.central.universe_histogram import UniverseHistogram
from discreet.errors import ParameterError
from discreet.noise import seeded_source
from discreet.privacy.accounting import Tally
from discreet.privacy.calibration.tick_noise import difference_reach
from discreet.privacy.calibration.zcdp import zcdp_epsilon, zcdp_rho
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.shuffle import shuffled, shuffled_closed_form, shuffled_delta
from discreet.summaries.moments import ValueMoment

BUDGET = dc.Budget(1.0, 1e-6)
PURE = dc.Budget(1.0)
ROUND = dc.multiparty
COUNT = ValueMoment("count")
GRID = Grid(0.0, 1.0, 16)


WHOLE = {
    # what is summarised
    "capacity of MisraGries": (lambda n: dc.MisraGries(n), "capacity", 1, 2**30),
    "capacity of SpaceSaving": (lambda n: dc.SpaceSaving(n), "capacity", 1, 2**30),
    "max_key_bytes": (lambda n: dc.MisraGries(8, max_key_bytes=n), "max_key_bytes", 1, None),
    "capacity of UserMisraGries": (lambda n: dc.UserMisraGries(n, 1), "capacity", 1, 2**30),
    "max_items_per_user": (lambda n: dc.UserMisraGries(8, n), "max_items_per_user", 1, 8),
    "width": (lambda n: dc.CountMin(n, 2), "width", 1, None),
    "depth": (lambda n: dc.CountSketch(8, n), "depth", 1, None),
    "tracked": (lambda n: dc.CountMin(8, 2, tracked=n), "tracked", 0, None),
    "seed of a sketch": (lambda n: dc.CountMin(8, 2, seed=n), "seed", 0, 2**64 - 1),
    # units and noise
    "max_items of a user": (lambda n: dc.User(n), "max_items", 1, None),
    "seed": (lambda n: seeded_source(n), "seed", 0, 2**64 - 1),
    # one release
    "k of people": (lambda n: PersonVectors(BUDGET, n), "k", 1, 2**30),
    "groups of people": (lambda n: PersonVectors(BUDGET, 5, groups=n), "groups", 1, 2**20),
    "size of pairs": (lambda n: PersonPairs(BUDGET, 5, size=n), "size", 2, 3),
    "listed": (lambda n: PersonMoments(BUDGET, 5, listed=n), "listed", 1, 2**20),
    "max_items of values": (lambda n: RowMoments(BUDGET, COUNT, unit=dc.User(), max_items=n), "max_items", 1, None),
    "groups of rows": (lambda n: RowMoments(BUDGET, COUNT, groups=n), "groups", 1, 2**24),
    "max_distinct": (lambda n: Stability(BUDGET, max_distinct=n), "max_distinct", 1, None),
    "max_rows": (lambda n: QuantileTree(BUDGET, GRID, unit=dc.User(), max_rows=n), "max_rows", 1, 2**20),
    "parts": (lambda n: QuantileChoice(BUDGET, GRID, parts=n), "parts", 1, 2**16),
    "cells": (lambda n: QuantileChoice(BUDGET, GRID, cells=n), "cells", 2, 256),
    "bins of a grid": (lambda n: Grid(0.0, 1.0, n), "bins", 2, None),
    "bins that are asked for": (lambda n: grid_of((0.0, 1.0), n), "bins", 2, None),
    "width of a step": (lambda n: StepGrid(0, 9, width=n), "width", 1, None),
    "max_items of a list": (
        lambda n: UniverseHistogram(PURE, ["a", "b"], dc.User(), max_items=n), "max_items", 1, None,
    ),
    # releases over time
    "size": (lambda n: dc.continual.Counter(4, BUDGET, size=n), "size", 1, 2**27),
    "max_items_per_event": (
        lambda n: dc.continual.Counter(4, BUDGET, size=3, max_items_per_event=n), "max_items_per_event", 1, 3,
    ),
    "base of a counter": (lambda n: dc.continual.Counter(9, BUDGET, method="tree", base=n), "base", 2, 9),
    "horizon": (lambda n: dc.continual.Counter(n, BUDGET), "horizon", 1, None),
    "remember": (lambda n: dc.continual.Counter(4, BUDGET, remember=n), "remember", 0, None),
    "since": (lambda n: dc.continual.Counter(4, BUDGET, remember=2).increase(n), "since", 1, None),
    "window": (lambda n: dc.continual.HeavyHitters(8, BUDGET, 4, window=n), "window", 1, 8),
    "capacity over time": (lambda n: dc.continual.HeavyHitters(8, BUDGET, n), "capacity", 1, 2**30),
    "every": (lambda n: dc.continual.HeavyHitters(8, BUDGET, 4, mechanism="discover", every=n), "every", 1, None),
    "k over time": (lambda n: dc.continual.Histogram(4, BUDGET, ["a", "b"], 1, k=n), "k", 1, None),
    "items of an event": (lambda n: dc.continual.Histogram(4, BUDGET, ["a"], n), "max_items_per_event", 1, None),
    "max_weight": (lambda n: dc.continual.Histogram(4, BUDGET, ["a"], max_weight=n), "max_weight", 1, 2**20),
    "base of a histogram": (
        lambda n: dc.continual.Histogram(4, BUDGET, ["a"], k=1, mechanism="meta", base=n), "base", 2, 4,
    ),
    # private also while it runs
    "releases": (lambda n: dc.pan.DistinctCount(budget=PURE, releases=n), "releases", 1, None),
    "announced_intrusions": (
        lambda n: dc.pan.DistinctCount(budget=PURE, announced_intrusions=n), "announced_intrusions", 0, None,
    ),
    "sample_size": (lambda n: dc.pan.Density(100, budget=PURE, sample_size=n), "sample_size", 1, None),
    "buckets": (lambda n: dc.pan.DistinctCount(budget=PURE, buckets=n), "buckets", None, 2**26),
    "levels": (lambda n: dc.pan.DistinctCount(budget=PURE, levels=n), "levels", 8, 30),
    "t of a cropped mean": (lambda n: dc.pan.CroppedMean(100, n, budget=PURE), "t", 1, None),
    "t of an incidence": (lambda n: dc.pan.Incidence(100, n, budget=PURE), "t", 0, None),
    "primes": (lambda n: dc.pan.Incidence(9, 3, budget=PURE, method="primes", max_count=9, primes=n), "primes", 1, 64),
    "k of a heavy fraction": (lambda n: dc.pan.HeavyFraction(100, n, budget=PURE), "k", 1, None),
    "k of a modular incidence": (lambda n: dc.pan.ModularIncidence(100, n, budget=PURE), "k", 2, None),
    "max_count": (lambda n: dc.pan.Occurrences(n, budget=PURE), "max_count", 2, None),
    # parties
    "columns of a local sketch": (lambda n: ROUND.LocalSketch("r", PURE, 10**6, columns=n), "columns", 1, 2**20),
    "shuffled": (lambda n: ROUND.HadamardResponse("r", PURE, 8, shuffled=n), "shuffled", 2, 2**53),
    "number of a party": (lambda n: ROUND.HadamardResponse("r", PURE, 8).party(n), "number", 0, 2**63 - 1),
    "items of a party": (
        lambda n: ROUND.IndependentSketches("r", PURE, 99, max_items=n), "max_items", 1, 2**40,
    ),
    "items of an entry": (lambda n: ROUND.Separation("r", PURE, 99, items_per_entry=n), "items_per_entry", 1, 2**40),
    "threshold of separation": (lambda n: ROUND.Separation("r", PURE, 99, threshold=n), "threshold", 0, 2**60),
    "choices": (lambda n: shuffled_delta(1.0, 100, 0.5, choices=n), "choices", 2, 2**31),
    "columns of a stream": (lambda n: ROUND.Stream("r", PURE, 99, columns=n), "columns", 1, None),
    "parties of a plan": (lambda n: ROUND.plan(n, 10, 1.0), "parties", 1, 2**40),
    "total of a plan": (lambda n: ROUND.plan(10, n, 1.0), "total", 1, 2**50),
    "steps of a plan": (lambda n: ROUND.plan(10, epsilon=1.0, steps=n), "steps", 1, 2**40),
    "branching of a plan": (lambda n: ROUND.plan(9, epsilon=1.0, steps=4, branching=n), "branching", 2, 2**16),
    "universe of a plan": (lambda n: ROUND.plan(10, 10, 1.0, universe_size=n), "universe_size", 1, 2**62),
    "reports": (lambda n: shuffled(1.0, n, 1e-6), "reports", 1, 2**53),
    # as printed
    "length of an inner product": (lambda n: published.InnerProductCounter(n, budget=PURE), "length", 1, 2**20),
    "items of a merged sketch": (
        lambda n: published.MergedMisraGries("r", PURE, 99, capacity=4, max_items=n), "max_items", 1, 2**40,
    ),
    "capacity of a merged sketch": (
        lambda n: published.MergedMisraGries("r", PURE, 99, capacity=n), "capacity", 1, 2**20,
    ),
    # before anything is spent
    "k of a plan": (lambda n: dc.plan(1000, BUDGET, k=n), "k", 1, None),
    "length of a plan": (lambda n: dc.plan(n, BUDGET), "length", 0, None),
    "capacity of a plan": (lambda n: dc.plan(1000, BUDGET, capacity=n), "capacity", 1, None),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_number_outside_of_its_range_is_refused(name):
    call, word, low, high = WHOLE[name]
    ends = rf"of at least {low}" if high is None else rf"from {'.*' if low is None else low} to {high}"
    ends = rf"(of at least|from) {low}\b" if high is None else ends
    outside = [*([] if low is None else [low - 1]), *([] if high is None else [high + 1]), 1.5, True, "one"]
    for value in outside:
        with pytest.raises(ParameterError, match=rf"{re.escape(word)}\b.* must be a whole number {ends}"):
            call(value)


SHARES = {
    "confidence of a count": (lambda x: NoisyCount(PURE, confidence=x), "confidence"),
    "confidence of people": (lambda x: PersonMoments(BUDGET, 5, confidence=x), "confidence"),
    "confidence of sums": (lambda x: RowMoments(BUDGET, COUNT, confidence=x), "confidence"),
    "confidence of quantiles": (lambda x: QuantileTree(BUDGET, GRID, confidence=x), "confidence"),
    "a quantile": (lambda x: QuantileTree(BUDGET, GRID, (x,)), "a quantile"),
    "confidence of an estimator": (lambda x: dc.pan.DistinctCount(budget=PURE, confidence=x), "confidence"),
    "output_share": (lambda x: dc.pan.DistinctCount(budget=PURE, output_share=x), "output_share"),
    "collision": (
        lambda x: dc.pan.Incidence(9, 3, budget=PURE, method="primes", max_count=9, collision=x), "collision",
    ),
    "confidence of a release": (lambda x: RELEASE().bounds(x), "confidence"),
    "confidence of a plan": (lambda x: dc.plan(1000, BUDGET, confidence=x), "confidence"),
    "confidence as printed": (lambda x: published.InnerProductCounter(9, budget=PURE, confidence=x), "confidence"),
    "delta of shuffled reports": (lambda x: shuffled(1.0, 100, x), "delta"),
    "failure_probability": (
        lambda x: dc.CountMin.for_error(error_rate=0.01, failure_probability=x), "failure_probability",
    ),
    "delta of zCDP": (lambda x: zcdp_epsilon(0.1, x), "delta"),
    "delta for zCDP": (lambda x: zcdp_rho(1.0, x), "delta"),
    "probability of a reach": (lambda x: difference_reach([], x), "probability"),
}  # fmt: skip


def RELEASE():  # noqa: N802 - made once it is asked for
    return dc.top_k(["a"] * 500, 5, BUDGET)


@pytest.mark.parametrize("name", SHARES)
def test_a_probability_is_above_0_and_below_1(name):
    call, word = SHARES[name]
    for value in (0.0, 1.0, -0.1, 1.1, math.nan, True, "half"):
        with pytest.raises(ParameterError, match=rf"{word} must be greater than 0 and less than 1"):
            call(value)


POSITIVE = {
    "epsilon": (lambda x: dc.Budget(x), "epsilon"),
    "rho": (lambda x: dc.Budget.zcdp(x), "rho"),
    "epsilon of a plan": (lambda x: ROUND.plan(10, 10, x), "epsilon"),
    "bytes of a plan": (lambda x: ROUND.plan(10, 10, 1.0, x), "bytes_per_party"),
    "zipf": (lambda x: ROUND.plan(10, 10, 1.0, zipf=x), "zipf"),
    "error_rate": (lambda x: dc.CountMin.for_error(error_rate=x, failure_probability=0.1), "error_rate"),
    "rho of zCDP": (lambda x: zcdp_epsilon(x, 1e-6), "rho"),
    "epsilon of zCDP": (lambda x: zcdp_rho(x, 1e-6), "epsilon"),
    "rho of a heavy fraction": (lambda x: dc.pan.HeavyFraction(99, 3, budget=PURE, rho=x), "rho"),
    "local epsilon": (lambda x: shuffled(x, 100, 1e-6), "epsilon_local"),
    "local epsilon of a closed form": (lambda x: shuffled_closed_form(x, 100, 1e-6), "epsilon_local"),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_a_positive_number_is_above_0_and_finite(name):
    call, word = POSITIVE[name]
    for value in (0.0, -1.0, math.inf, math.nan, True, "one"):
        with pytest.raises(ParameterError, match=rf"{word}.* must be a finite number greater than 0"):
            call(value)


@pytest.mark.parametrize("rows", [0, 2, 256, 257])
def test_a_sketch_has_an_odd_number_of_rows(rows):
    with pytest.raises(ParameterError, match=r"rows must be (odd|a whole number from 1 to 255)"):
        ROUND.IndependentSketches("r", PURE, 99, rows=rows)


def test_the_ends_of_a_range_are_in_it():
    assert [whole_number("n", n, 2, 4) for n in (2, 3, 4)] == [2, 3, 4]
    assert whole_number("n", pa.scalar(7).as_py(), 7) == 7
    assert probability("p", 5e-324) == 5e-324
    assert probability("p", math.nextafter(1.0, 0.0)) < 1.0
    assert positive_number("x", 5e-324) == 5e-324


def test_a_delta_of_all_charges_is_below_1():
    assert Tally.of([]).cost(0.0) == 0.0
    for delta in (1.0, -1e-9):
        with pytest.raises(ParameterError, match="delta must be at least 0 and less than 1"):
            Tally.of([]).cost(delta)
