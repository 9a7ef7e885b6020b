"""Counting beside the top: counts, different values, and every item of a public list."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import ChosenDistinct, CreditedDistinct, NoisyCount, UniverseHistogram
from discreet.central._additive import additive_noise
from discreet.central.credited_distinct import _by_flow, credited
from discreet.errors import DataError, IncompatibleSummaryError, LedgerError, ParameterError
from discreet.noise import seeded_source

SURE = dc.Budget(60.0)  # noise is as good as never seen; but a private choice of max_items now and then
ROWS = {"who": ["a", "a", "b", "c", "c"], "what": ["p", "q", "q", "r", "r"], "n": [1, 2, 2, 7, 7]}
BUDGETS = [dc.Budget(1.0), dc.Budget(0.3, 1e-6), dc.Budget(0.1, 0.05), dc.Budget.zcdp(0.2)]


def tables():
    import duckdb

    arrow = pa.table(ROWS)
    yield "dict", ROWS
    yield "arrow", arrow
    yield "reader", arrow.to_reader(2)
    yield "pandas", pd.DataFrame(ROWS)
    yield "polars", pl.DataFrame(ROWS)
    yield "lazy", pl.LazyFrame(ROWS)
    yield "duckdb", duckdb.from_arrow(arrow)


@pytest.mark.parametrize("name", [name for name, _ in tables()])
def test_every_table_is_counted(name):
    def table():
        return dict(tables())[name]

    assert dc.count(table(), SURE).value == 5
    assert dc.count(table(), SURE, user="who").value == 3
    assert dc.distinct(table(), SURE, column="what").value == 3
    assert dc.distinct(table(), SURE, column="who", user="who").value == 3
    assert dc.distinct(table(), SURE, column="what", user="who", max_items=2).value == 3
    release = dc.histogram(table(), SURE, column="what", universe=["q", "r", "zz"])
    assert dict(zip(release.items, release.counts.tolist(), strict=True)) == {"q": 2, "r": 2, "zz": 0}
    people = dc.histogram(table(), SURE, column="n", universe=range(3), user="who", max_items=1)
    assert dict(zip(people.items, people.counts.tolist(), strict=True)) == {0: 0, 1: 1, 2: 1}
    assert people.counted == "people"


def test_every_answer_says_what_was_asked(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("people", SURE)
    where, usual = "n > 1", {"nulls": "error", "bad_rows": "skip", "confidence": 0.95}
    paid = {"ledger": ledger.account("people"), "charge_id": "n"}
    count = dc.count(ROWS, SURE, where=where, user="who", **paid)
    assert count.asked["parameters"] == {"where": where, **usual}
    assert count.asked["columns"] == {"user": "who"}
    assert dc.count(ROWS, SURE, where=where, user="who", **paid).asked == count.asked
    told = dc.distinct(ROWS, SURE, column="what", user="who", max_items=2, where=where).asked
    assert told["columns"] == {"item": "what", "user": "who"}
    assert told["parameters"] == {"max_items": 2, "where": where, **usual}
    for more in ({}, {"user": "who", "max_items": 1}):
        listed = dc.histogram(ROWS, SURE, column="what", universe=["q"], where=where, **more)
        assert listed.asked.columns["item"] == "what"
        assert listed.asked.parameters["where"] == where
        assert listed.asked.parameters.get("max_items") == more.get("max_items")
    some = dc.Budget(60.0, 1e-6)
    for options in ({}, {"user": "who"}, {"by": "n"}, {"by": "n", "user": "who"}):
        assert dc.top_k(ROWS, 1, some, column="what", where=where, **options).asked.parameters["where"] == where
        assert "where" not in dc.top_k(ROWS, 1, some, column="what", **options).asked.parameters


def test_every_type_has_different_values():
    from datetime import date
    from decimal import Decimal

    days = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 2)]
    for values in (days, [True, False, True], [Decimal("1.50"), Decimal("1.5"), Decimal(2)]):
        for table in ({"x": values}, pd.DataFrame({"x": values}), pl.DataFrame({"x": values}), pa.table({"x": values})):
            assert dc.distinct(table, SURE, column="x").value == 2
            assert dc.count(table, SURE, user="x").value == 2
    assert dc.distinct(pl.DataFrame({"x": [0.5, 1.5, 0.5]}), SURE, column="x").value == 2


def test_what_is_promised():
    rows, people = dc.count(ROWS, SURE), dc.count(ROWS, SURE, user="who")
    assert rows.is_private
    assert (rows.guarantee.unit, people.guarantee.unit) == (dc.Event(), dc.User())
    assert dc.distinct(ROWS, SURE, column="what").guarantee.unit == dc.Event()
    credited = dc.distinct(ROWS, dc.Budget.zcdp(900.0), column="what", user="who")
    assert credited.guarantee.unit == dc.User()
    assert credited.guarantee.rho == 900.0
    assert credited.upper == math.inf
    assert not dc.count(ROWS, SURE, source=seeded_source(1)).is_private


# ---- noise -----------------------------------------------------------------------------------------------------------


def test_the_noise_is_the_smaller_of_both_laws():
    assert additive_noise(dc.Budget(0.5), changes=3).law == "laplace"
    assert additive_noise(dc.Budget(0.5), changes=3).scale == 6
    assert additive_noise(dc.Budget(1.0, 1e-9)).law == "laplace"
    assert additive_noise(dc.Budget(1.0, 1e-9), changes=200).law == "gaussian"
    rho = additive_noise(dc.Budget.zcdp(0.5), changes=4, height=3)
    assert rho.law == "gaussian"
    assert float(rho.scale) == pytest.approx(6.0)
    assert rho.scale**2 >= 36
    assert additive_noise(dc.Budget(0.1, 0.3), height=2).law == "gaussian"
    with pytest.raises(ParameterError, match="too small"):
        additive_noise(dc.Budget(1e-20))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_interval_of_a_count_misses_no_more_often_than_it_says(budget, confidence):
    mechanism, source, runs = NoisyCount(budget, confidence=confidence), seeded_source(3), 3000
    for truth in (0, 500):
        missed = sum(not e.lower <= truth <= e.upper for e in (mechanism(truth, source) for _ in range(runs)))
        # Five standard deviations above what is allowed.
        allowed = 1.0 - confidence
        assert missed <= runs * allowed + 5 * math.sqrt(runs * allowed * confidence)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_intervals_of_a_histogram_hold_together(budget):
    mechanism, source, runs = UniverseHistogram(budget, range(20)), seeded_source(4), 800
    summary = dc.ExactCounts()
    summary.update(np.repeat(np.arange(20), np.arange(20) * 7))
    missed = 0
    for _ in range(runs):
        release = mechanism(summary, source)
        lower, upper = release.bounds(0.9)
        truth = np.array(release.items) * 7
        missed += not ((lower <= truth) & (truth <= upper)).all()
    assert missed <= runs * 0.1 + 5 * math.sqrt(runs * 0.09)


def test_the_noise_has_the_size_it_is_said_to_have():
    for budget in BUDGETS:
        mechanism = NoisyCount(budget)
        drawn = np.array([mechanism.draw(0, seeded_source(seed)) for seed in range(4000)])
        scale = float(mechanism.scale)
        variance = scale**2 if mechanism.noise.law == "gaussian" else 0.5 / math.sinh(0.5 / scale) ** 2
        assert 0.8 < drawn.var() / variance < 1.25
        assert abs(drawn.mean()) < 5 * math.sqrt(variance / 4000)


# ---- different values ------------------------------------------------------------------------------------------------


def by_trying(people, most):
    """The most values that can be credited, by all ways of doing it."""
    best = {frozenset()}
    for values in people:
        choices = [set(c) for size in range(most + 1) for c in combinations(sorted(values), size)]
        best = {taken | choice for taken in best for choice in choices}
    return max(map(len, best))


@pytest.mark.parametrize("most", [1, 2])
def test_credits_are_a_largest_matching(most):
    mechanism = CreditedDistinct(SURE, max_items=most)
    sets = [c for size in range(4) for c in combinations(range(4), size)]
    for people in product(sets[::2], repeat=3):
        pairs = np.array([(p, v) for p, values in enumerate(people) for v in values], np.int64).reshape(-1, 2)
        assert mechanism.count_of(*pairs.T) == by_trying(people, most)


def test_what_is_decided_at_once_is_part_of_a_largest_matching():
    random = np.random.default_rng(4)
    for _ in range(300):
        people, values = random.integers(0, 12, random.integers(1, 60)), random.integers(0, random.integers(1, 40), 60)
        people, values = np.unique([people, values[: len(people)]], axis=1)
        for most in (1, 2, 3, 50):
            assert credited(people, values, most) == _by_flow(people, values, np.full(12, most))
    cycle = np.repeat(np.arange(5), 2), (np.arange(10) + 1) // 2 % 5  # nothing is decided at once
    assert [credited(*cycle, most) for most in (1, 2)] == [5, 5]


def test_one_person_with_many_values_counts_for_m():
    table = {"who": ["x"] * 50 + ["y"], "what": [*range(50), 0]}
    for most, expected in ((1, 2), (10, 11), (1000, 50)):
        found = dc.distinct(table, dc.Budget(60.0 * most), column="what", user="who", max_items=most)
        assert found.value == expected
        assert found.lower <= 50


def test_many_rows():
    random = np.random.default_rng(5)
    table = pa.table({"who": random.integers(0, 30_000, 200_000), "what": random.integers(0, 5000, 200_000)})
    found = dc.distinct(table, SURE, column="what", user="who", max_items=1)
    assert found.value == len(np.unique(table["what"]))


# ---- a public list ---------------------------------------------------------------------------------------------------


def test_the_first_listed_items_of_a_person_count():
    table = {"who": ["x", "x", "y", "x", "y", "x"], "what": ["other", "b", "b", "b", "a", "a"]}
    release = dc.histogram(table, SURE, column="what", universe=["a", "b", "c"], user="who", max_items=1)
    assert dict(zip(release.items, release.counts.tolist(), strict=True)) == {"a": 0, "b": 2, "c": 0}
    both = dc.histogram(table, SURE, column="what", universe=["a", "b", "c"], user="who", max_items=2)
    assert dict(zip(both.items, both.counts.tolist(), strict=True)) == {"a": 2, "b": 2, "c": 0}


def test_a_release_of_a_list_goes_through_its_payload():
    release = dc.histogram(ROWS, dc.Budget.zcdp(0.1), column="what", universe=["p", "q"])
    assert dc.Release.from_payload(release.to_payload()).to_payload() == release.to_payload()
    assert len(json.loads(release.to_json())["items"]) == 2


def test_items_of_several_kinds_and_plain_columns():
    mixed = dc.histogram({"x": ["a", 1, b"a", "a", "x" * 5000]}, SURE, column="x", universe=["a", "b"])
    assert dict(zip(mixed.items, mixed.counts.tolist(), strict=True)) == {"a": 2, "b": 0}
    assert dc.histogram(["a", "b", "a"], SURE, universe=["a"]).counts.tolist() == [2]


# ---- what is refused, and what it costs ------------------------------------------------------------------------------


def test_nothing_is_there_and_it_is_counted_all_the_same():
    empty = {"who": pa.array([], pa.string()), "what": pa.array([], pa.string())}
    assert dc.count(empty, SURE).value == 0
    assert dc.count(empty, SURE, user="who").value == 0
    assert dc.distinct(empty, SURE, column="what", user="who", max_items=1).value == 0
    assert dc.histogram(empty, SURE, column="what", universe=["a"]).counts.tolist() == [0]
    people = dc.histogram(empty, SURE, column="what", universe=["a"], user="who", max_items=1)
    assert people.counts.tolist() == [0]


def test_nulls():
    table = pa.table({"who": ["a", None, "b"], "what": ["p", "p", None]})
    assert dc.count(table, SURE).value == 3
    for ask in (
        lambda **how: dc.count(table, SURE, user="who", **how).value,
        lambda **how: dc.distinct(table, SURE, column="what", **how).value + 1,
        lambda **how: dc.distinct(table, SURE, column="what", user="who", max_items=1, **how).value + 1,
        lambda **how: dc.histogram(table, SURE, column="what", universe=["p"], **how).counts[0],
        lambda **how: (
            dc.histogram(table, SURE, column="what", universe=["p"], user="who", max_items=1, **how).counts[0] + 1
        ),
    ):
        with pytest.raises(DataError, match="null"):
            ask()
        assert ask(nulls="skip") == 2


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: dc.count(ROWS, 1.0), ParameterError),
        (lambda: dc.count(ROWS, SURE, nulls="maybe"), ParameterError),
        (lambda: dc.count(ROWS, SURE, confidence=math.nan), ParameterError),
        (lambda: dc.count(ROWS, SURE, user="nobody"), DataError),
        (lambda: dc.count({"a": [1], "b": [1, 2]}, SURE), DataError),
        (lambda: dc.count(7, SURE), DataError),
        (lambda: dc.distinct(ROWS, SURE, column="nothing"), DataError),
        (lambda: dc.distinct(ROWS, SURE, column=None), ParameterError),
        (lambda: dc.distinct(ROWS, SURE, column="what", max_items=2), ParameterError),
        (lambda: dc.distinct(ROWS, SURE, column="what", user="who", max_items=0), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe=[]), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe=["a", "a"]), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe=["a", 1]), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe="strings"), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe=2**40), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe=["a"], max_items=1), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, column="what", universe=["a"], user="who"), ParameterError),
        (lambda: dc.histogram(ROWS, SURE, universe=["a"], user="who", max_items=1), ParameterError),
        (lambda: dc.histogram(pa.table(ROWS), SURE, column="n", universe=["a"]), IncompatibleSummaryError),
        (lambda: dc.histogram(Counter("aab"), SURE, universe=["a"]), DataError),
        (lambda: dc.histogram([["a"], ["b"]], SURE, universe=["a"]), DataError),
        (lambda: dc.histogram(pa.array([["a"], ["b"]]), SURE, universe=["a"]), DataError),
        (lambda: dc.distinct({"x": pa.array([["a"], ["b"]])}, SURE, column="x"), DataError),
        (lambda: dc.distinct(Counter("aab"), SURE, column="a"), DataError),
        (lambda: dc.count(Counter("aab"), SURE), DataError),
        (lambda: dc.count(pd.Series(["p"]), SURE), DataError),
        (lambda: NoisyCount(SURE, dc.Element()), ParameterError),
        (lambda: NoisyCount(SURE)(-1), ParameterError),
    ],
)
def test_bad_input(ask, error):
    with pytest.raises(error) as raised:
        ask()
    assert "'p'" not in str(raised.value)


def test_paid_once(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("rows", dc.Budget(2.0, 1e-6))
    account = ledger.account("rows")
    first = dc.count(ROWS, dc.Budget(1.0), ledger=account, charge_id="one")
    assert dc.count(ROWS, dc.Budget(1.0), ledger=account, charge_id="one") == first
    with pytest.raises(LedgerError):
        dc.distinct(ROWS, dc.Budget(1.0), column="what", ledger=account, charge_id="one")
    with pytest.raises(LedgerError):
        dc.count(ROWS, dc.Budget(1.0), confidence=0.5, ledger=account, charge_id="one")
    listed = dc.histogram(ROWS, dc.Budget(0.5), column="what", universe=["p"], ledger=account, charge_id="two")
    again = dc.histogram(ROWS, dc.Budget(0.5), column="what", universe=["p"], ledger=account, charge_id="two")
    assert again.to_payload() == listed.to_payload()
    with pytest.raises(LedgerError):
        dc.histogram(ROWS, dc.Budget(0.5), column="what", universe=["q"], ledger=account, charge_id="two")
    with pytest.raises(dc.BudgetExceededError):
        dc.count(ROWS, dc.Budget(1.0), ledger=account)
    # Nothing is charged for what cannot be read.
    with pytest.raises(IncompatibleSummaryError):
        dc.histogram(pa.table(ROWS), dc.Budget(0.5), column="n", universe=["p"], ledger=account)
    assert dc.count(ROWS, dc.Budget(0.5), ledger=account).is_private


def test_credited_values_are_stored_with_their_open_end(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("people", dc.Budget(2.0))
    first, second = (
        dc.distinct(ROWS, dc.Budget(1.0), column="what", user="who", ledger=ledger.account("people"), charge_id="x")
        for _ in range(2)
    )
    assert first == second
    assert second.upper == math.inf


# ---- how many to credit, chosen privately ----------------------------------------------------------------------------


def test_how_many_to_credit_is_chosen_by_what_it_brings():
    random = np.random.default_rng(6)
    shared = {"who": np.arange(20_000) % 4000, "what": random.integers(0, 500, 20_000)}
    own = {"who": np.arange(20_000) % 500, "what": np.arange(20_000)}
    for table, truth, most in ((shared, 500, {1, 2, 4}), (own, 20_000, {32, 64, 128})):
        for budget in (dc.Budget(2.0), dc.Budget(2.0, 1e-6), dc.Budget.zcdp(1.0)):
            found = dc.distinct(table, budget, column="what", user="who", source=seeded_source(3))
            credited = int(re.search(r"(\d+) values? (?:is|are) credited", " ".join(found.guarantee.assumptions))[1])
            assert credited in most
            assert found.value == pytest.approx(truth, rel=0.25)
            assert found.lower <= truth
            assert (found.guarantee.epsilon, found.guarantee.rho) == (budget.epsilon, budget.rho)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_choice_and_noise_never_cost_more_than_the_budget(budget):
    mechanism = ChosenDistinct(budget)
    epsilon, rest = mechanism.parts
    if budget.rho is not None:
        assert Fraction(epsilon) ** 2 / 2 + Fraction(rest.rho) <= Fraction(budget.rho)
    else:
        assert Fraction(epsilon) + Fraction(rest.epsilon) <= Fraction(budget.epsilon)
        assert rest.delta == budget.delta


def test_one_person_moves_the_scores_by_at_most_one():
    mechanism = ChosenDistinct(dc.Budget(1.0))
    random, worst = np.random.default_rng(2), 0
    for _ in range(60):
        people, values = random.integers(0, 6, 40), random.integers(0, 30, 40)
        without = people != 0
        full, less = mechanism.count_of(people, values), mechanism.count_of(people[without], values[without])
        assert all(0 <= full[m] - less[m] <= m for m in full)
        worst = max(worst, int(np.abs(mechanism.scores(full) - mechanism.scores(less)).max()))
    assert 0 < worst <= mechanism.STEPS


def test_a_flow_credits_what_a_matching_of_copies_does():
    random = np.random.default_rng(8)
    for most in (2, 3, 7):
        people, values = random.integers(0, 40, 300), random.integers(0, 200, 300)
        copies = (np.concatenate([people + 40 * copy for copy in range(most)]), np.tile(values, most))
        assert credited(people, values, most) == credited(*copies, 1)


@pytest.mark.parametrize(("budget", "scale"), [(dc.Budget(0.5), 6), (dc.Budget.zcdp(0.5), 3**0.5)])
def test_the_noise_of_a_histogram_of_people_is_for_all_of_their_items(budget, scale):
    """The scale itself: at the budgets of other tests no noise would be seen, whatever its scale."""
    three = UniverseHistogram(budget, range(10), dc.User(), max_items=3)
    assert float(three.scale) == pytest.approx(scale, rel=1e-9)
    assert UniverseHistogram(budget, range(10)).scale < three.scale
    few = UniverseHistogram(budget, range(2), dc.User(), max_items=3)  # nobody has more items than there are
    assert float(few.scale) < scale


@pytest.mark.parametrize("user", [None, "who"])
def test_what_is_published_has_noise_of_the_scale_that_is_stated(user):
    """Of a thousand counts of 0 at epsilon 0.1: mean of squares within 6 deviations of 2 m^2/epsilon^2."""
    people = {} if user is None else {"user": user, "max_items": 2}
    empty = pa.table({"what": pa.array([], pa.int64()), "who": pa.array([], pa.int64())})
    found = dc.histogram(empty, dc.Budget(0.1), column="what", universe=1000, **people)
    variance = 2 * (10 * (1 if user is None else 2)) ** 2
    squares = np.square(found.counts.astype(float))
    assert abs(squares.mean() - variance) < 6 * variance * (5 / 1000) ** 0.5
