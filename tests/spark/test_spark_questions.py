"""Questions of a data frame: the answers of one machine, bit for bit, from the same source; and its refusals."""

from __future__ import annotations

import datetime
import decimal
import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from tests.places import QUESTIONS, check
from tests.places import table as places_table

import discreet as dc
from discreet.noise import seeded_source

EPSILON = dc.Budget(1.0)
N = 2000


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    day = datetime.date(2026, 1, 1)
    return pa.table(
        {
            "who": [f"u{i}" for i in random.integers(0, 300, N)],
            "number": random.integers(0, 9, N),
            "page": [f"page {i:03}" for i in np.minimum(random.zipf(1.4, N), 200)],
            "amount": random.normal(10.0, 5.0, N),
            "day": [day + datetime.timedelta(int(i)) for i in random.integers(0, 40, N)],
            "price": pa.array([decimal.Decimal(int(i)) / 4 for i in random.integers(0, 9, N)], pa.decimal128(10, 2)),
            "dotted.Name": [f"{i}" for i in random.integers(0, 9, N)],
            "Page": [[1, 2]] * N,  # Spark's names of columns know no case
        }
    )


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table).repartition(3).cache()


def asked(ask, data, words, budget=EPSILON):
    """An answer, without the time at which it was given."""
    answer = ask(data, budget, source=seeded_source(3), **words)
    if isinstance(answer, dc.Estimate):
        return answer
    found = json.loads(answer.to_json())
    return {name: value for name, value in found.items() if name != "time"}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (dc.count, {}),
        (dc.count, {"column": "dotted.Name"}),
        (dc.count, {"where": "amount > 10 and \"dotted.Name\" <> '3'"}),
        (dc.count, {"user": "who", "where": "number < 3"}),
        (dc.distinct, {"column": "page"}),
        (dc.distinct, {"column": "price"}),
        (dc.distinct, {"column": "who", "user": "who"}),
        (dc.distinct, {"column": "page", "user": "who"}),
        (dc.distinct, {"column": "day", "user": "who", "max_items": 2}),
        (dc.histogram, {"column": "page", "universe": ["page 001", "page 002", "none"]}),
        (dc.histogram, {"column": "number", "universe": range(5)}),
        (dc.histogram, {"column": "number", "universe": range(5), "user": "who", "max_items": 5}),
        (dc.sum, {"column": "amount", "range": (0, 20)}),
        (dc.mean, {"column": "amount", "range": (0, 20), "where": "number < 5"}),
        (dc.quantiles, {"column": "amount", "range": (0, 20)}),
        (dc.quantiles, {"column": "amount", "range": (0, 20), "user": "who", "where": "number < 5"}),
        (dc.quantiles, {"column": "amount", "range": (0, 20), "user": "who", "max_rows": 3, "mechanism": "tree"}),
        (dc.quantiles, {"column": "day", "range": ("2026-01-01", "2026-03-01"), "user": "who"}),
    ],
    ids=str,
)
def test_the_answer_is_that_of_one_machine(frame, table, ask, words):
    assert asked(ask, frame, words) == asked(ask, table, words)


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_answered_or_refused_as_the_page_says(spark, name):
    check(name, "Spark", {"frame": lambda: spark.createDataFrame(places_table())})


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (dc.count, {}),
        (dc.distinct, {"column": "page", "max_items": 2}),
        (dc.histogram, {"column": "number", "universe": range(5), "max_items": 5}),
        (dc.quantiles, {"column": "amount", "range": (0, 20)}),
        (partial(dc.top_k, k=4), {"column": "number", "count": "rows"}),
    ],
    ids=str,
)
def test_person_days_are_those_of_one_machine(frame, table, ask, words):
    """All days of a person are in one partition, and a pair of person and day takes the place of the person."""
    words = {**words, "user": "who", "unit": dc.User(per="1d"), "time": "day"}
    answers = []
    for data in (frame, table):
        answer = ask(data, budget=dc.Budget(3.0, 1e-6), source=seeded_source(3), **words)
        answers.append(answer if isinstance(answer, dc.Estimate) else json.loads(answer.to_json()) | {"time": None})
    assert answers[0] == answers[1]


def test_columns_of_a_public_table(frame, table):
    """Its keys are looked up on executors; different values of a column of it may be in any partition."""
    lookup = {
        "number": list(range(8)),
        "kind": [f"kind {i % 3}" for i in range(8)],
        "weight": [0.5 * i for i in range(8)],
    }
    more = {"lookup": lookup, "on": "number"}
    for ask, words in (
        (dc.count, {"where": "kind = 'kind 1'"}),
        (dc.distinct, {"column": "kind"}),
        (dc.distinct, {"column": "kind", "user": "who", "max_items": 2}),
        (dc.histogram, {"column": "kind", "universe": ["kind 0", "kind 2"]}),
        (dc.quantiles, {"column": "weight", "range": (0, 4), "user": "who"}),
    ):
        assert asked(ask, frame, {**words, **more}) == asked(ask, table, {**words, **more})
    top = dc.top_k(frame, 2, dc.Budget(60.0, 1e-6), column="kind", **more)
    assert sorted(top.items) == ["kind 0", "kind 1"]
    with pytest.raises(dc.ParameterError, match="user cannot come from the lookup"):
        dc.quantiles(frame, EPSILON, column="amount", range=(0, 9), user="kind", **more)


@pytest.mark.parametrize("user", [None, "who"])
@pytest.mark.parametrize("groups", [None, [3, 7, 11]], ids=["discovered", "listed"])
def test_groups_are_those_of_one_machine(spark, table, user, groups):
    """Bit for bit, where groups come first in their order, in which Spark has them."""
    rows = table.select(["who", "number", "page", "amount"]).sort_by([("number", "ascending"), ("page", "ascending")])
    frame = spark.createDataFrame(rows)
    within, universe = {"column": "amount", "range": (0, 20)}, {"universe": ["page 001", "page 002"]}
    for ask, words in (
        (dc.count, {}),
        (dc.sum, within),
        (dc.variance, within),
        (dc.quantiles, {**within, "quantiles": [0.5]}),
        (dc.distinct, {"column": "page", **({"max_items": 200} if user else {})}),
        (dc.histogram, {"column": "page", **universe, **({"max_items": 50} if user else {})}),
    ):
        words = {**words, "by": "number", "groups": groups, "user": user}
        assert asked(ask, frame, words, dc.Budget(4.0, 1e-4)) == asked(ask, rows, words, dc.Budget(4.0, 1e-4))


def test_nobody_is_in_two_parts(spark, table, frame, monkeypatch):
    """Batches of a few rows, and more parts than are added up at once: the same answers."""
    from discreet.engines import _spark_jobs

    monkeypatch.setattr(_spark_jobs, "_PARTITION_BYTES", 1000)  # as many partitions as Spark shuffles with
    monkeypatch.setattr(_spark_jobs, "FAN_IN", 2)
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    given = spark.conf.get(name)
    spark.conf.set(name, "7")
    try:
        for ask, words in (
            (dc.distinct, {"column": "page", "user": "who"}),
            (dc.quantiles, {"column": "amount", "range": (0, 20), "user": "who"}),
            (dc.histogram, {"column": "page", "universe": [f"page {i:03}" for i in range(200)]}),
        ):
            assert asked(ask, frame, words) == asked(ask, table, words)
    finally:
        spark.conf.set(name, given)


def test_which_items_of_a_person_count_is_up_to_their_rows(spark):
    """A data frame has no order: a keyed hash of the rows says which come first, whoever else is there."""
    mine = [("ann", f"i{item}") for item in range(40)]
    universe, plenty = [f"i{item}" for item in range(40)], dc.Budget(200.0)
    ask = {"column": "item", "user": "who", "universe": universe, "max_items": 3}
    frame = spark.createDataFrame(mine, "who string, item string")
    counted = np.array(dc.histogram(frame.repartition(5), plenty, **ask).counts)
    assert sorted(counted)[-4:] == [0, 1, 1, 1]


def test_rows_that_cannot_be_read_are_left_out_one_by_one(spark):
    rows = spark.createDataFrame(
        pa.table({"who": [b"a", b"b", b"\xff", b"c"], "page": [b"x", b"\xfe", b"x", b"y" * 5000]})
    ).selectExpr("cast(who as string) who", "cast(page as string) page")
    plenty = dc.Budget(200.0)
    assert dc.distinct(rows, plenty, column="page").value == 1
    assert dc.distinct(rows, plenty, column="page", user="who").value == 1
    assert dc.count(rows, plenty, user="who").value == 3
    assert dc.count(rows, plenty).value == 4
    assert dc.histogram(rows, plenty, column="page", universe=["x", "z"]).counts.tolist() == [2, 0]


def test_nulls_are_refused_or_left_out(spark):
    rows = spark.createDataFrame(
        [("a", "x", 1.0), (None, "y", 2.0), ("b", None, None)], "who string, i string, n double"
    )
    plenty = dc.Budget(200.0)
    for ask, words, value in (
        (dc.count, {"column": "i"}, 2),
        (dc.count, {"user": "who"}, 2),
        (dc.distinct, {"column": "i", "user": "who"}, 1),
    ):
        with pytest.raises(dc.DataError, match="nulls"):
            ask(rows, plenty, **words)
        assert ask(rows, plenty, nulls="skip", **words).value == value
    with pytest.raises(dc.DataError, match="nulls"):
        dc.quantiles(rows, plenty, column="n", range=(0, 3))


def test_what_one_machine_refuses_is_refused_in_the_same_words(spark, frame, table):
    """By the schema, before a job runs."""
    for ask, words in (
        (dc.count, {"column": "nothing"}),
        (dc.count, {"where": "nothing = 1"}),
        (dc.distinct, {"column": "Page"}),
        (dc.histogram, {"column": "page", "universe": range(3)}),
        (dc.histogram, {"column": "number", "universe": range(3), "user": "who"}),
        (dc.quantiles, {"column": "page", "range": (0, 3)}),
        (dc.quantiles, {"column": "amount", "range": (0, 3), "user": "nobody"}),
        (dc.quantiles, {"column": "amount", "range": (0, 3), "bad_rows": "error"}),
    ):
        with pytest.raises(dc.DiscreetError) as here:
            ask(table, EPSILON, **words)
        with pytest.raises(type(here.value)) as there:
            ask(frame, EPSILON, **words)
        assert str(there.value) == str(here.value)


def test_what_spark_alone_has_is_refused(spark, frame):
    lower = frame.selectExpr("who collate UTF8_LCASE as who")
    with pytest.raises(dc.ParameterError, match="collation"):
        dc.count(lower, EPSILON, user="who")
    with pytest.raises(dc.ParameterError, match="streaming"):
        dc.count(spark.readStream.format("rate").load(), EPSILON)
    with pytest.raises(dc.ParameterError, match="expected a Spark data frame, not Column"):
        dc.count(frame["who"], EPSILON)
    assert dc.count(frame.selectExpr("parse_json('1') as v"), dc.Budget(200.0)).value == N


def test_it_is_paid_for_once(frame, tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visits", dc.Budget(1.5))
    pays = {"ledger": ledger.account("visits"), "charge_id": "one"}
    first = dc.count(frame, EPSILON, user="who", **pays)
    assert dc.count(frame.limit(1), EPSILON, user="who", **pays) == first  # which is not read
    with pytest.raises(dc.BudgetExceededError):
        dc.count(frame, EPSILON, user="who", ledger=pays["ledger"])


def test_only_what_is_listed_reaches_the_driver(frame, monkeypatch):
    collected, to_arrow = [], type(frame).toArrow
    monkeypatch.setattr(type(frame), "toArrow", lambda self: collected.append(to_arrow(self)) or collected[-1])
    dc.histogram(frame, EPSILON, column="page", universe=["page 001"])
    dc.distinct(frame, EPSILON, column="page", user="who")
    assert len(collected) == 2
    seen = b"".join(state for table in collected for state in table.column("state").to_pylist())
    assert b"page" not in seen
    assert b"u1" not in seen
