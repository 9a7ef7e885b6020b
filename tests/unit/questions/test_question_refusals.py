"""Questions that cannot be asked, or not so: refused in the words of the caller, and nothing is charged."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import Offset
from discreet.errors import DiscreetError, ParameterError
from discreet.questions.live_question import LiveQuestion

BUDGET, PURE, RHO = dc.Budget(1.0, 1e-6), dc.Budget(1.0), dc.Budget.zcdp(0.1)
ROWS = ["a"] * 20
TABLE = pa.table({"item": ["a", "b"], "who": [1, 2], "value": [1.0, 2.0], "text": ["x", "y"]})
SKETCH = dc.MisraGries(8)

REFUSED = {
    "no budget": (lambda: dc.count(TABLE), TypeError, "budget"),
    "a budget that is a number": (lambda: dc.count(TABLE, 1.0), ParameterError, "must be a dc.Budget, not float"),
    "too much by place": (lambda: dc.count(TABLE, BUDGET, "item", "who", "x", "y"), TypeError, "positional"),
    "a budget twice": (lambda: dc.count(TABLE, BUDGET, budget=BUDGET), TypeError, "budget|pass the rest by name"),
    "no such word": (lambda: dc.count(TABLE, BUDGET, colum="item"), TypeError, "colum"),
    "a length of a ready mechanism": (
        lambda: dc.release(SKETCH, BUDGET, Offset(BUDGET, 8), length=9), ParameterError, "length cannot be combined",
    ),
    "no mechanism": (lambda: dc.release(SKETCH, BUDGET, "noise"), ParameterError, "mechanism"),
    "no summary": (lambda: dc.release([1, 2], BUDGET), ParameterError, "one of discreet's summaries"),
    "a top of nothing": (
        lambda: dc.top_k(ROWS, 0, BUDGET), ParameterError, "k must be a whole number from 1 to 1073741824",
    ),
    "a top without delta": (lambda: dc.top_k(ROWS, 1, PURE), ParameterError, "delta"),
    "quantiles without a range": (lambda: dc.quantiles(TABLE, BUDGET, [0.5], column="value"), DiscreetError, "range"),
    "quantiles of nothing": (
        lambda: dc.quantiles(TABLE, BUDGET, [], column="value", range=(0.0, 1.0)), DiscreetError, "quantile",
    ),
    "a quantile of all": (
        lambda: dc.quantiles(TABLE, BUDGET, [1.0], column="value", range=(0.0, 1.0)), DiscreetError, "less than 1",
    ),
    "a range that runs backwards": (
        lambda: dc.sum(TABLE, BUDGET, column="value", range=(2.0, 1.0)), DiscreetError, "LOW < HIGH|range",
    ),
    "a sum of texts": (lambda: dc.sum(TABLE, BUDGET, column="text", range=(0.0, 1.0)), DiscreetError, "numbers"),
    "a sum without a range": (lambda: dc.sum(TABLE, BUDGET, column="value"), DiscreetError, "range"),
    "a histogram without a list": (lambda: dc.histogram(TABLE, BUDGET, column="item"), DiscreetError, "universe"),
    "a histogram of an item twice": (
        lambda: dc.histogram(TABLE, BUDGET, column="item", universe=["a", "a"]), DiscreetError, "an item twice",
    ),
    "distinct of nothing": (lambda: dc.distinct(TABLE, BUDGET), DiscreetError, "column"),
    "capacity of people": (
        lambda: dc.top_k(TABLE, 1, BUDGET, column="item", user="who", capacity=8), DiscreetError, "capacity cannot be",
    ),
    "a unit that is a name": (lambda: dc.count(TABLE, BUDGET, unit="person"), DiscreetError, "unit"),
    "a unit of another kind": (lambda: dc.Count(unit=7), ParameterError, r"units, such as dc.Event\(\), not int"),
    "distinct without a budget": (lambda: dc.distinct(TABLE, column="item"), TypeError, r"distinct\(\) needs a budget"),
    "a condition on a column alone": (
        lambda: dc.sum(TABLE["value"], BUDGET, range=(0, 1), where="value > 1"), ParameterError, "where needs column",
    ),
    "quantiles on a condition alone": (
        lambda: dc.quantiles(TABLE["value"], BUDGET, 0.5, range=(0, 1), where="value > 1"),
        ParameterError, "where needs column",
    ),
    "a mechanism that lacks what it needs": (
        lambda: dc.release(dc.ExactCounts(), BUDGET, dc.central.Offset), ParameterError,
        "needs capacity: make a Offset with it and pass that",
    ),
    "parts of a sketch of rows": (
        lambda: dc.release(SKETCH, BUDGET, parts_per_user=2), ParameterError, "leave parts_per_user out",
    ),
    "parts of a ready mechanism": (
        lambda: dc.release(SKETCH, BUDGET, Offset(BUDGET, 8), parts_per_user=2), ParameterError,
        "parts_per_user cannot be combined",
    ),
    "a ready mechanism of another budget": (
        lambda: dc.release(SKETCH, BUDGET, Offset(dc.Budget(2.0, 1e-6), 8)), ParameterError, "use the same budget",
    ),
    "rows of a ready mechanism of another budget": (
        lambda: dc.top_k(ROWS, 1, BUDGET, mechanism=Offset(dc.Budget(2.0, 1e-6), 8)), ParameterError,
        "use the same budget",
    ),
    "a ready mechanism of another unit": (
        lambda: dc.release(SKETCH, BUDGET, Offset(BUDGET, 8), unit=dc.User(2)), ParameterError, "for that unit",
    ),
    "rows of a ready mechanism of another unit": (
        lambda: dc.top_k(ROWS, 1, BUDGET, mechanism=Offset(BUDGET, 8), unit=dc.User(2), grouped=False), ParameterError,
        "for that unit",
    ),
    "a size of two kinds": (
        lambda: dc.top_k(ROWS, 1, BUDGET, capacity=8, memory="1MB"), ParameterError, "memory cannot be combined",
    ),
    "memory of a ready mechanism": (
        lambda: dc.top_k(ROWS, 1, BUDGET, mechanism=Offset(BUDGET, 8), memory="1MB"), ParameterError,
        "memory cannot be combined",
    ),
    "a listed universe of a live question": (
        lambda: LiveQuestion(column="q", rows=5, universe=["a"]), ParameterError, "universe must be a tuple of texts",
    ),
    "values of people without a bound, by group": (
        lambda: dc.distinct(TABLE, BUDGET, column="item", user="who", by="text"), ParameterError,
        "max_items is missing",
    ),
    "a mechanism of people without a bound": (
        lambda: dc.top_k(TABLE, 1, BUDGET, column="item", user="who", mechanism="user"), ParameterError,
        "mechanism with user needs max_items",
    ),
    "a confidence of all": (lambda: dc.count(TABLE, BUDGET, confidence=1.0), DiscreetError, "less than 1"),
    "a total without a share": (lambda: dc.top_k(ROWS, 1, BUDGET, total_share=2.0), DiscreetError, "total_share"),
    "a charge without an account": (lambda: dc.count(TABLE, BUDGET, charge_id="c"), DiscreetError, "charge_id|account"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what):
    call, kind, words = REFUSED[what]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("what", ["a sum of texts", "capacity of people", "a quantile of all", "no such word"])
def test_nothing_is_charged_for_it(what, tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("a", dc.Budget(4.0, 1e-5))
    account = ledger.account("a")
    asked = {
        "a sum of texts": lambda: dc.sum(TABLE, BUDGET, column="text", range=(0.0, 1.0), ledger=account),
        "capacity of people": lambda: dc.top_k(TABLE, 1, BUDGET, column="item", user="who", capacity=8, ledger=account),
        "a quantile of all": lambda: dc.quantiles(TABLE, BUDGET, [1.0], column="value", range=(0, 1), ledger=account),
        "no such word": lambda: dc.count(TABLE, BUDGET, colum="item", ledger=account),
    }
    with pytest.raises((DiscreetError, TypeError)):
        asked[what]()
    assert account.statement().charges == 0
    dc.count(TABLE, BUDGET, ledger=account)
    assert account.statement().charges == 1
