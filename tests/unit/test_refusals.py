"""What cannot be meant is refused where it enters: by its class of error, in words that say what is allowed."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import published
from discreet.central.bad_share import BadShare
from discreet.central.chosen_distinct import ChosenDistinct
from discreet.central.credited_distinct import CreditedDistinct
from discreet.central.noisy_count import NoisyCount
from discreet.central.person_moments import PersonMoments
from discreet.central.person_vectors import PersonVectors
from discreet.central.quantile_choice import QuantileChoice
from discreet.central.quantile_grid import Grid, StepGrid
from discreet.central.quantile_tree import QuantileTree
from discreet.central.row_moments import RowMoments
from discreet.central.universe_histogram import UniverseHistogram
from discreet.errors import (
    DataError,
    DiscreetError,
    IncompatibleSummaryError,
    ParameterError,
    WordError,
)
from discreet.multiparty.post import Questions
from discreet.pan.intervals import smallest_sample
from discreet.pan.responses import Response, response_weights
from discreet.privacy import Unit
from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.privacy.calibration.gaussian import smallest_sigma
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.privacy.guarantee import unit_named
from discreet.privacy.spans import Calendar, Period
from discreet.privacy.steps import Steps
from discreet.privacy.zcdp_filter import ZcdpFilter
from discreet.releases.error_model import Noise
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import ListedPeople, People, ValueRange

BUDGET = dc.Budget(1.0, 1e-6)
PURE = dc.Budget(1.0)
RHO = dc.Budget.zcdp(0.1)
TINY = dc.Budget(1e-7, 1e-9)
GRID = Grid(0.0, 1.0, 16)
COUNT = ValueMoment("count")
ROUND = dc.multiparty
ROWS = ["a"] * 9
PEOPLE = pa.table({"item": ["a"] * 9, "who": [*range(9)]})


class NoOracle:
    """It has all that a frequency oracle has but for one thing."""

    changes, height = 1, 1

    def __init__(self, without="", cells=4):
        self.without, self.number = without, cells

    def __getattribute__(self, name):
        if name == object.__getattribute__(self, "without"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def update(self, keys):
        pass

    def cells(self):
        return np.zeros(self.number, np.int64)

    def estimate(self, keys, cells):
        return np.zeros(len(keys), np.int64)

    def error(self, beta):
        return 1


def increase_of_nothing():
    return dc.continual.Counter(4, BUDGET, remember=2).increase(1)


REFUSED = {
    # privacy
    "a share of all": (lambda: PURE.split(1.0), ParameterError, "greater than 0 and less than 1"),
    "a share of nothing": (lambda: PURE.split(0.0), ParameterError, "greater than 0 and less than 1"),
    "a share that is a truth": (lambda: PURE.split(True), ParameterError, "greater than 0 and less than 1"),
    "more than all": (lambda: PURE.share(1.0001), ParameterError, "greater than 0 and at most 1"),
    "a bare unit": (lambda: Unit().describe(), ParameterError, "not the bare Unit"),
    "a zone of rows": (lambda: unit_named("row", "Europe/Berlin"), ParameterError, "zone needs a unit of days"),
    "a zone of people": (lambda: unit_named("person", "Europe/Berlin"), ParameterError, "zone needs a unit of days"),
    "a zone of hours": (lambda: unit_named("person-hour", "Europe/Berlin"), ParameterError, "zone needs spans of days"),
    "no zone": (lambda: unit_named("person-day", "Europe/Nowhere"), ParameterError, "no time zone named"),
    "no unit": (lambda: unit_named("household"), ParameterError, "unit must be one of row, person, person-hour"),
    "a zone without a span": (lambda: dc.User(zone="Europe/Berlin"), ParameterError, "zone needs per"),
    "a period that runs backwards": (
        lambda: Calendar("1d").period(("2026-11-15", "2026-11-13")),
        ParameterError, "ends before it begins: 2026-11-15",
    ),
    "a period of no day": (
        lambda: Calendar("1d").period(Period("2026-11-15", "2026-11-15")), ParameterError, "ends before it begins",
    ),
    "a day within a week": (
        lambda: Calendar("1w").period("2026-11-18"), ParameterError, "it is in the one of 2026-11-16",
    ),
    "the end of time": (lambda: Calendar("1d").period("9999-12-31"), ParameterError, "years 1 to 9999"),
    "a step without its token": (
        lambda: Steps.from_dict({"charge_id": "c", "number": 1, "token": None, "previous": None, "ledger": None}),
        ParameterError, "no token",
    ),
    "a token without its step": (
        lambda: Steps.from_dict({"charge_id": "c", "number": 0, "token": "t", "previous": None, "ledger": None}),
        ParameterError, "no token",
    ),
    "a token that is no text": (
        lambda: Steps.from_dict({"charge_id": "c", "number": 1, "token": 7, "previous": None, "ledger": None}),
        ParameterError, "no token",
    ),
    "noise of no kind": (lambda: TickNoise("steps", 4, 1.0), ParameterError, "not the noise of a running total"),
    "noise of no size": (lambda: TickNoise("ticks", 4, 0.0), ParameterError, "not the noise of a running total"),
    "noise on no lattice": (
        lambda: TickNoise("ticks", 4, 1.0, lattice=0), ParameterError, "not the noise of a running total",
    ),
    "a tree of base 1": (lambda: TickNoise("tree", 4, 1.0, base=1), ParameterError, "must be 2 or more"),
    "a tick after the last": (
        lambda: TickNoise("ticks", 4, 1.0).difference(2, 5), ParameterError, "ticks must be 1 to 4, not 2 and 5",
    ),
    "a tick before the first": (
        lambda: TickNoise("ticks", 4, 1.0).difference(-1, 3), ParameterError, "ticks must be 1 to 4",
    ),
    "no noise is enough": (lambda: smallest_sigma(lambda sigma: 1.0, 0.5, 1.0), ParameterError, "too small to compute"),
    "more changes than are summed up": (
        lambda: gshm_calibration(1.0, 1e-6, 10**7 + 1), ParameterError, "changes must be at most 10000000, not",
    ),
    "more correlated changes than are summed up": (
        lambda: correlated_calibration(1.0, 1e-6, 10**7 + 1), ParameterError, "changes must be at most 10000000, not",
    ),
    "people who do not say what they have together": (
        lambda: People.holdings(ListedPeople([]), np.zeros(0, np.int64)),
        IncompatibleSummaryError, "ListedPeople does not say which items people have together",
    ),
    "a filter without delta": (lambda: ZcdpFilter.of(PURE), ParameterError, "needs epsilon and delta > 0"),
    "a filter of all of delta": (
        lambda: ZcdpFilter.of(BUDGET, 1.0), ParameterError, "delta_share must be at least 0 and less than 1",
    ),
    "a filter of nothing": (
        lambda: ZcdpFilter.of(dc.Budget(1e-300, 1e-12)), ParameterError, "too small for accounting 'zcdp'",
    ),
    "a law of no name": (lambda: Noise("uniform", Fraction(1)), ParameterError, "'laplace' or 'gaussian'"),
    "a sum of Gaussians": (lambda: Noise("gaussian", Fraction(1), terms=2), ParameterError, "only Laplace noise"),
    "a sum of none": (lambda: Noise("laplace", Fraction(1), terms=0), ParameterError, "only Laplace noise"),
    # central
    "a test of bad rows with delta": (lambda: BadShare(BUDGET, Fraction(1, 2)), ParameterError, "no delta"),
    "all rows are bad": (lambda: BadShare(PURE, Fraction(1)), ParameterError, "above 0 and below 1"),
    "no row is bad": (lambda: BadShare(PURE, Fraction(0)), ParameterError, "above 0 and below 1"),
    "too fine a share": (lambda: BadShare(PURE, Fraction(1, 10_001)), ParameterError, "in ten-thousandths"),
    "quantiles of elements": (
        lambda: QuantileTree(BUDGET, GRID, unit=dc.Element()), ParameterError, "quantiles protect dc.Event",
    ),
    "quantiles of bounded people": (
        lambda: QuantileTree(BUDGET, GRID, unit=dc.User(3)), ParameterError, "quantiles protect dc.Event",
    ),
    "rows of party sketches": (
        lambda: dc.multiparty.IndependentSketches("r", dc.Budget(1.0), 100, rows="one"), ParameterError, "whole number",
    ),
    "rows of merged sketches": (
        lambda: dc.published.MergedSketch("r", dc.Budget(1.0), 100, rows="one"), ParameterError, "rows must be a whole",
    ),
    "a stream of hardly any epsilon": (
        lambda: dc.multiparty.plan(100, epsilon=1e-300, steps=8), ParameterError, "too small for any stream",
    ),
    "max_rows of rows": (lambda: QuantileTree(BUDGET, GRID, max_rows=2), ParameterError, "max_rows needs user"),
    "too many bins": (lambda: QuantileTree(BUDGET, StepGrid(0, 2**20)), ParameterError, "at most 2.*20 bins"),
    "no scale": (lambda: Grid(0.0, 1.0, 16, "cubic"), ParameterError, "'linear' or 'log'"),
    "no kind of step": (lambda: StepGrid(0, 9, "month"), ParameterError, "'whole', 'date' or 'time'"),
    "a choice of nothing": (
        lambda: QuantileChoice(dc.Budget(1e-12), GRID), ParameterError, r"epsilon below 2\*\*-40",
    ),
    "values of rows": (lambda: CreditedDistinct(PURE, dc.Event()), ParameterError, "protect dc.User"),
    "chosen values of rows": (lambda: ChosenDistinct(PURE, dc.Event()), ParameterError, "protect dc.User"),
    "a count of nothing": (lambda: NoisyCount(PURE, counted="events"), ParameterError, "'rows', 'people' or 'values'"),
    "a list of elements": (
        lambda: UniverseHistogram(PURE, ["a"], dc.Element()), ParameterError, "protects dc.Event",
    ),
    "a list of bounded people": (
        lambda: UniverseHistogram(PURE, ["a"], dc.User(2)), ParameterError, "protects dc.Event",
    ),
    "rows and values": (
        lambda: PersonVectors(BUDGET, 5, rows=True, values=ValueRange(0.0, 1.0)), ParameterError, "not both",
    ),
    "people of rows": (lambda: PersonVectors(BUDGET, 5, dc.Event()), ParameterError, "protects dc.User"),
    "people of a sketch": (
        lambda: PersonVectors(BUDGET, 5).check(dc.MisraGries(4)), IncompatibleSummaryError, "takes people",
    ),
    "too few epsilons for people": (lambda: PersonVectors(TINY, 5).threshold, ParameterError, "too small a budget"),
    "too few epsilons for sums": (lambda: PersonMoments.of(TINY, COUNT), ParameterError, "too small a budget"),
    "sums of rows": (lambda: PersonMoments(BUDGET, 5, dc.Event()), ParameterError, "protects dc.User"),
    "signed sums of people": (
        lambda: PersonMoments.of(BUDGET, ValueMoment("signed", -1.0, 1.0)), ParameterError, 'use "split"',
    ),
    "people without delta": (lambda: PersonMoments.of(PURE, COUNT), WordError, "needs delta > 0"),
    "unknown groups with rho": (lambda: PersonMoments.of(RHO, COUNT, None), WordError, "needs epsilon and delta > 0"),
    "sums of bounded people": (lambda: RowMoments(BUDGET, COUNT, unit=dc.User(2)), ParameterError, "protects dc.Event"),
    "values of rows that are bounded": (lambda: RowMoments(BUDGET, COUNT, max_items=2), ParameterError, "protects"),
    "bounded sums": (
        lambda: RowMoments(BUDGET, ValueMoment("sum"), unit=dc.User(), max_items=2),
        ParameterError, "counts of different",
    ),
    "bounded values of unknown groups": (
        lambda: RowMoments(BUDGET, COUNT, None, unit=dc.User(), max_items=2), ParameterError, "public list of groups",
    ),
    "unknown groups without delta": (lambda: RowMoments(PURE, COUNT, None), WordError, "needs epsilon and delta > 0"),
    "unknown groups of rho": (lambda: RowMoments(RHO, COUNT, None), WordError, "needs epsilon and delta > 0"),
    "signed sums of unknown groups": (
        lambda: RowMoments(BUDGET, ValueMoment("signed", -1.0, 1.0), None), ParameterError, 'use "sum"',
    ),
    "split sums of rows": (
        lambda: RowMoments(BUDGET, ValueMoment("split", -1.0, 1.0)), ParameterError, "works with people only",
    ),
    "all for the total": (lambda: dc.top_k(ROWS, 1, BUDGET, total_share=1.0), ParameterError, "total_share must be"),
    "none for the total": (lambda: dc.top_k(ROWS, 1, BUDGET, total_share=0.0), ParameterError, "total_share must be"),
    "unknown items of people without delta": (
        lambda: dc.top_k(PEOPLE, 1, PURE, column="item", user="who"), ParameterError, "delta",
    ),
    # summaries
    "no moment": (lambda: ValueMoment("median"), ParameterError, "kind must be one of count, signed"),
    "a range of one value": (lambda: ValueMoment("sum", 1.0, 1.0), ParameterError, "LOW < HIGH"),
    "a range of nothing": (lambda: ValueMoment("sum", 0.0, 1e-151), ParameterError, "below 1e150"),
    "a range of everything": (lambda: ValueMoment("sum", 0.0, 1e151), ParameterError, "below 1e150"),
    "an end that is no number": (lambda: ValueMoment("sum", 0.0, float("nan")), ParameterError, "two finite numbers"),
    "an end that is a truth": (lambda: ValueMoment("sum", 0.0, True), ParameterError, "two finite numbers"),
    # continual
    "no method": (lambda: dc.continual.Counter(4, BUDGET, method="sum"), ParameterError, "method must be one of"),
    "a base without a tree": (lambda: dc.continual.Counter(4, BUDGET, base=2), ParameterError, "'tree' has a base"),
    "too long a square root": (
        lambda: dc.continual.Counter(2**20 + 1, BUDGET, method="square-root"), ParameterError, "at most 2.*20 ticks",
    ),
    "a rise before anything": (increase_of_nothing, ParameterError, "before the latest one, which is tick 0"),
    "a rise of hitters before anything": (
        lambda: dc.continual.HeavyHitters(4, BUDGET, 4, remember=1).increase(1), ParameterError, "nothing has been pub",
    ),
    "an error that nobody knows": (
        lambda: dc.continual.HeavyHitters(4, BUDGET, 4, mechanism="offset").error_model(1),
        ParameterError, '"discover"',
    ),
    "a universe of two kinds": (
        lambda: dc.continual.Histogram(4, BUDGET, ["a", 1], 1), DataError, "all text, all bytes or all whole numbers",
    ),
    "a universe with nothing": (
        lambda: dc.continual.Histogram(4, BUDGET, ["a", None], 1), DataError, "nulls",
    ),
    "an item twice": (lambda: dc.continual.Histogram(4, BUDGET, ["a", "a"], 1), ParameterError, "more than once"),
    "an empty universe": (lambda: dc.continual.Histogram(4, BUDGET, [], 1), ParameterError, "at least one item"),
    "nulls over time": (
        lambda: dc.continual.Histogram(4, BUDGET, ["a"], 1).step(pa.array(["a", None])), DataError, "nulls",
    ),
    # pan
    "half of the time": (
        lambda: dc.pan.DistinctCount(budget=PURE, confidence=0.49), ParameterError, "at least 0.5",
    ),
    "no response": (lambda: dc.pan.DistinctCount(budget=PURE, response="loose"), ParameterError, "'tight' or 'paper'"),
    "no pair of coins": (lambda: Response.of("loose", Fraction(1)), ParameterError, "'tight' or 'paper'"),
    "coins of the paper": (lambda: Response.of("paper", Fraction(2)), ParameterError, "at most 1.5"),
    "coins that are one": (lambda: Response.of("tight", Fraction(1, 2**70)), ParameterError, "the same to 64 bits"),
    "a law too fine": (lambda: response_weights(2**20, Fraction(1, 2**60)), ParameterError, "too many choices"),
    "all for the output": (
        lambda: dc.pan.DistinctCount(budget=PURE, output_share=Fraction(1)), ParameterError, "output_share must be",
    ),
    "nothing for the output": (
        lambda: dc.pan.DistinctCount(budget=PURE, output_share=Fraction(0)), ParameterError, "output_share must be",
    ),
    "a confidence that is chosen": (
        lambda: dc.pan.Density.for_accuracy(0.1, 0.1, 1.0, universe=99, confidence=0.9), ParameterError, "itself",
    ),
    "a share that is chosen": (
        lambda: dc.pan.Density.for_accuracy(0.1, 0.1, 1.0, universe=99, output_share=0.5), ParameterError, "itself",
    ),
    "no sample is enough": (lambda: smallest_sample(lambda m: m > 100, 100), ParameterError, "cannot be reached"),
    "an open universe": (lambda: dc.pan.Density(None, budget=PURE), ParameterError, "universe"),
    "one element in two tables": (
        lambda: dc.pan.HeavyFraction(9, 4, budget=PURE, method="two_tables", rho=0.5, sample_size=1),
        ParameterError, "at least 2 elements",
    ),
    "too steep a ladder": (
        lambda: dc.pan.HeavyFraction(99, 4, budget=PURE, method="ladder", max_count=9, rho=1.01),
        ParameterError, "from 1/64 to 1",
    ),
    "too flat a ladder": (
        lambda: dc.pan.HeavyFraction(99, 4, budget=PURE, method="ladder", max_count=9, rho=1 / 65),
        ParameterError, "from 1/64 to 1",
    ),
    "a ladder without an end": (
        lambda: dc.pan.HeavyFraction(99, 4, budget=PURE, method="ladder"), ParameterError, "'ladder' needs it",
    ),
    "a fraction without k": (lambda: dc.pan.HeavyFraction(99, budget=PURE), ParameterError, "k is missing"),
    "a law of primes": (
        lambda: dc.pan.Incidence(9, 3, budget=PURE, method="primes", max_count=9).shift_law(),
        ParameterError, "method='squares'",
    ),
    "a law too long to list": (
        lambda: dc.pan.Incidence(99, 3, budget=PURE, max_count=5000).shift_law(), ParameterError, "at most 4000",
    ),
    "too many values to list": (
        lambda: dc.pan.Incidence(99, 3, budget=PURE, max_count=100).element_laws(), ParameterError, "at most 60",
    ),
    # multiparty
    "half of the time for parties": (
        lambda: dc.multiparty.Estimates(np.zeros(1), np.ones(1), PARTY_GUARANTEE()).bounds(0.4),
        ParameterError, "at least 0.5",
    ),
    "too many cells of a party": (
        lambda: ROUND.IndependentSketches("r", PURE, 10**9, items_per_column=1e-6, max_items=2**30),
        ParameterError, "more than .* cells",
    ),
    "liars of nothing": (
        lambda: Questions(liars=0.1).check(ROUND.HadamardResponse("r", PURE, 8)),
        ParameterError, "liars work with items",
    ),
    "a table for a party": (
        lambda: ROUND.Stream("r", PURE, 9).party(1).feed(pa.table({"a": [1]})), DataError, "a party has one column",
    ),
    # as printed
    "a length that is not public": (
        lambda: published.PrivateSpaceSaving(BUDGET, 4, stream_length="noisy", heavier_than=3),
        ParameterError, "heavier_than is for a public length",
    ),
    "no length": (
        lambda: published.PrivateSpaceSaving(BUDGET, 4, stream_length=None), ParameterError, "needs stream_length",
    ),
    "no calibration": (
        lambda: published.PrivateSpaceSaving(BUDGET, 4, stream_length=9, calibration="rough"),
        ParameterError, "'exact' or 'paper'",
    ),
    "the paper's threshold of a noisy length": (
        lambda: published.PrivateSpaceSaving(BUDGET, 4, stream_length="noisy", calibration="paper"),
        ParameterError, "calibration='exact'",
    ),
    "users of a sketch of events": (
        lambda: dc.release(dc.MisraGries(4), BUDGET, published.GaussianSparseHistogram(BUDGET, 4, dc.User(2))),
        IncompatibleSummaryError, "can hide",
    ),
    **{
        f"an oracle without {name}": (
            lambda name=name: published.TrackedOracle(NoOracle(name), 4), ParameterError, f"{name}",
        )
        for name in ("update", "cells", "estimate", "error", "changes", "height")
    },
    "an oracle of nothing": (
        lambda: published.TrackedOracle(NoOracle(cells=0), 4), ParameterError, r"1 to 2\*\*31 cells",
    ),
}  # fmt: skip


def PARTY_GUARANTEE():  # noqa: N802 - made once it is asked for
    return ROUND.HadamardResponse("r", PURE, 8).guarantee


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what):
    call, kind, words = REFUSED[what]
    with pytest.raises(kind, match=words):
        call()


def test_a_ledger_takes_units_of_this_package(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    for unit in (Unit(), "person", dc.User):
        with pytest.raises(ParameterError, match="unit must be one of discreet's units"):
            ledger.grant("searches", PURE, unit=unit)
    assert not (tmp_path / "budgets.sqlite").exists()


def test_a_message_that_is_longer_than_any_is_not_read(tmp_path, monkeypatch):
    from discreet.multiparty import post

    monkeypatch.setattr(post, "MOST_BYTES", 10)
    (tmp_path / "message").write_bytes(bytes(10))
    assert post.bytes_of(tmp_path / "message") == bytes(10)
    (tmp_path / "message").write_bytes(bytes(11))
    with pytest.raises(DataError, match="longer than any message"):
        post.bytes_of(tmp_path / "message")
    with pytest.raises(DiscreetError, match="cannot be read"):
        post.bytes_of(tmp_path / "nothing")
