"""People on Spark: the same sums as plain lists give, whatever the partitions; noise and charge once, on the driver."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.summaries.people import ListedPeople

BUDGET = dc.Budget(1.0, 1e-6)


def people_of(frame, **words):
    """The people of a frame with the columns u and i."""
    from discreet.engines._spark_people import SparkPeople
    from discreet.engines.spark import Frame

    return SparkPeople(Frame(frame).rows("i", user="u"), **words)


def crowds_of(table, size=None, nulls="error", most=2**20):
    """The crowds that a task makes of rows with the columns h, u and i."""
    from discreet.engines import _spark_people_tasks as tasks
    from discreet.engines._spark_tasks import Reading
    from discreet.events.assembly import Wanted

    reading = Reading(table.select(["u", "i"]).schema, Wanted(("i",), user="u", nulls=nulls), crowds=True)
    return [*tasks.HoldCrowds(reading, None, most)(iter(table.to_batches(size)))]


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    users, items = random.integers(0, 700, 5000), np.minimum(random.zipf(1.3, 5000), 300)
    pairs = [(f"u{user}", f"i{item}") for user, item in zip(users, items, strict=True)]
    return pairs + [("many", f"i{item}") for item in range(1, 301)]


def everything(people):
    weights = people.discovery_weights(256)
    names = people.items(np.arange(len(weights))).to_pylist()
    chosen = np.array(sorted(range(len(names)), key=lambda place: names[place])[:40], np.int64)
    factors = 1 + np.arange(len(chosen), dtype=np.int64) * 25
    lengths = [values.tolist() for values in people.lengths(chosen, factors)]
    sums = [people.scaled_sums(chosen, factors, longest).tolist() for longest in (1.0, 700.0)]
    aims = np.array(
        [102 + sum(name.encode()) % 900 * (index % 3) for index, name in enumerate(sorted(names))], np.int64
    )
    aims = aims[np.argsort(np.argsort(names))]
    aimed = people.aimed_weights(256, aims)
    return [dict(zip(names, values.tolist(), strict=True)) for values in (weights, aimed)], lengths, sums


@pytest.mark.parametrize("rows_counted", [False, True])
@pytest.mark.parametrize("partitions", [1, 7])
def test_the_same_as_plain_lists(spark, rows, rows_counted, partitions):
    few = [row for row in rows if row[0] != "many"]  # which of too many items take part is another key's choice
    frame = spark.createDataFrame(few, "u string, i string").repartition(partitions)
    lists = {}
    for user, item in few:
        lists.setdefault(user, []).append(item)
    with people_of(frame, rows=rows_counted) as people:
        assert everything(people) == everything(ListedPeople(lists.values(), rows=rows_counted))


def test_what_is_made_again_is_the_same(spark, rows):
    """Crowds that Spark lost come from rows in another order, and from tasks that fail once."""

    def fails_once(batches):
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost")

    frame = spark.createDataFrame(rows, "u string, i string").repartition(2)
    with people_of(frame.mapInArrow(fails_once, frame.schema), rows=True) as people:
        first = everything(people)
        people._crowds.unpersist()
        assert everything(people) == first


def test_the_release_is_that_of_one_machine(spark):
    """Bit for bit, from the same source: both have whole numbers in their order."""
    import pyarrow as pa

    from discreet.noise.source import seeded_source

    random = np.random.default_rng(1)
    users, items = random.integers(0, 500, 6000), np.minimum(random.zipf(1.3, 6000), 200)
    table = pa.table({"user": [*users, *[-1] * 900], "item": [*items, *[1] * 900]})
    asked = {"user": "user", "count": "rows", "budget": dc.Budget(4.0, 1e-6)}
    one = dc.top_k(table, column="item", k=10, source=seeded_source(5), **asked)
    many = dc.engines.spark.top_k(spark.createDataFrame(table), k=10, column="item", source=seeded_source(5), **asked)
    assert len(one) == 10
    assert [*many.items] == [*one.items]
    assert many.counts.tolist() == one.counts.tolist()


@pytest.mark.parametrize("limit", ["maxRecordsPerBatch", "maxBytesPerBatch"])
def test_how_spark_cuts_batches_changes_nothing(spark, rows, limit):
    """Rows come to Python 7 at a time, or one by one; crowds as well."""
    name = f"spark.sql.execution.arrow.{limit}"
    frame = spark.createDataFrame(rows[:600], "u string, i string")
    found, given = [], spark.conf.get(name)
    try:
        for value in (given, "7"):
            spark.conf.set(name, value)
            with people_of(frame, rows=True) as people:
                found.append(everything(people))
    finally:
        spark.conf.set(name, given)
    assert found[0] == found[1]


def test_people_are_hidden_and_paid_for_once(spark, rows, tmp_path):
    frame = spark.createDataFrame([*rows, *[("one", "my own words")] * 3000], "visitor string, url string")
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visits", dc.Budget(1.5, 1e-5))
    asked = {"user": "visitor", "ledger": ledger.account("visits"), "charge_id": "one"}
    release = dc.engines.spark.top_k(frame, 5, BUDGET, column="url", **asked)
    assert release.items[0] == "i1"
    assert "my own words" not in release.items
    assert release.counted == "people"
    assert dc.engines.spark.top_k(frame, 5, BUDGET, column="url", **asked).to_payload() == release.to_payload()
    nothing = frame.where("false")
    assert dc.top_k(nothing, 5, BUDGET, column="url", **asked).to_payload() == release.to_payload()
    with pytest.raises(dc.ChargeConflictError, match="k was 5 and is now 6"):
        dc.engines.spark.top_k(nothing, 6, BUDGET, column="url", **asked)
    with pytest.raises(dc.BudgetExceededError):
        dc.engines.spark.top_k(frame, 5, BUDGET, column="url", **{**asked, "charge_id": "two"})


def test_of_a_person_with_many_items_256_take_part(spark):
    frame = spark.range(400).selectExpr("1L as u", "id as i")
    with people_of(frame) as people:
        assert {*people.discovery_weights(256).tolist()} == {(2**24 - 1) // 16}
        assert len(people.discovery_weights(256)) == 256


def test_a_crowd_ends_where_the_hash_changes(monkeypatch):
    """All rows of a person are in one crowd, people with one hash stay two, and a person of many rows takes no memory.

    Crowds of 4 rows or more, from batches of 3; one person has 40 rows in the middle, with two items.
    """
    import pyarrow as pa

    from discreet.engines import _spark_people_tasks as tasks
    from discreet.engines._spark_tasks import Crowds

    monkeypatch.setattr(tasks, "_ROWS", 4)
    monkeypatch.setattr(Crowds, "ROWS", 4)
    rows = [(1, "a", "x"), (1, "b", "x"), (1, "a", "y"), (2, "c", "x"), (2, "c", "x"), (3, "d", "z")]
    rows += [(4, "long", f"i{i % 2}") for i in range(40)] + [(5, "e", "x"), (6, "f", "x"), (6, "f", "y")]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("h", "u", "i"))})
    largest, add = [], tasks._Crowd._add

    def added(self, users, items, values):
        add(self, users, items, values)
        largest.append(sum(len(pairs) for pairs, _ in self._parts))

    monkeypatch.setattr(tasks._Crowd, "_add", added)
    crowds = [crowds_of(table, size) for size in (1, 3, 49)]
    assert [len(found) for found in crowds] == [3, 3, 1]
    assert max(largest) <= 11
    lists = {}
    for _, user, item in rows:
        lists.setdefault(user, []).append(item)
    plain = ListedPeople(lists.values(), rows=True)
    plain_items = plain.items(np.arange(len(plain.discovery_weights(256)))).to_pylist()
    for found in crowds:
        weights, squared = {}, []
        for batch in tasks.FindWeights(2**20, 7, 256, pa.large_string())(iter(found)):
            for item, weight in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                weights[item] = weights.get(item, 0) + weight
        assert weights == dict(zip(plain_items, plain.discovery_weights(256).tolist(), strict=True))
        items, factors = pa.array(["x", "i0"], pa.large_string()), np.array([3, 5], np.int64)
        for batch in tasks.FindLengths(2**20, items, factors)(iter(found)):
            values, people = (column.to_pylist() for column in batch.columns)
            squared += [value for value, times in zip(values, people, strict=True) for _ in range(times)]
        # a, b, e, f have x once, c twice; the long one has i0 twenty times.
        assert sorted(squared) == [9.0, 9.0, 9.0, 9.0, 36.0, 10_000.0]
    with_null = pa.table({"h": [1, 2], "u": ["a", None], "i": ["x", "y"]})
    at_a_cut = pa.table({"h": [1] * 5 + [2], "u": ["a"] * 6, "i": ["x"] * 4 + [None, "x"]})
    for given in (with_null, at_a_cut):
        assert "with no value" in crowds_of(given, 2, most=1)[-1].column("problem")[0].as_py()
    (kept,) = crowds_of(with_null, nulls="skip", most=1)
    (said,) = tasks.FindWeights(1, 7, 256, pa.large_string())(iter([kept]))
    assert said.column("item").to_pylist() == ["x"]


def test_a_person_of_many_different_items_is_sorted_a_few_times(monkeypatch):
    """Equal pairs become one whenever the pairs have doubled: once a batch, n rows would take n^2 steps."""
    import pyarrow as pa

    from discreet.engines import _spark_people_tasks as tasks

    monkeypatch.setattr(tasks, "_ROWS", 16)
    compact, times = tasks._Crowd._compact, []
    monkeypatch.setattr(tasks._Crowd, "_compact", lambda self: times.append(self.size) or compact(self))
    table = pa.table({"h": [1] * 4096, "u": ["a"] * 4096, "i": list(range(4096))})
    (crowd,) = crowds_of(table, 4)
    assert len(crowd.column("times")[0].as_py()) == 8 * 4096
    assert sum(times) < 4 * 4096


def test_a_crowd_of_long_names_ends_before_its_rows_do(monkeypatch):
    """A crowd is one row of a frame, and Arrow and Spark end those at 2 GiB: half a million items may be longer."""
    import pyarrow as pa

    from discreet.engines._spark_tasks import Crowds

    monkeypatch.setattr(Crowds, "BYTES", 1 << 19)
    table = pa.table(
        {"h": [i // 2 for i in range(1000)], "u": list(range(1000)), "i": [f"{i:04000}" for i in range(1000)]}
    )
    crowds = crowds_of(table, 25)
    assert len(crowds) > 2
    assert max(len(crowd.column("names")[0].as_py()) for crowd in crowds) < 1 << 20
    whose = [{*np.frombuffer(crowd.column("users")[0].as_py(), "<i4").tolist()} for crowd in crowds]
    assert sum(map(len, whose)) == 1000
    assert all(len(people) % 2 == 0 for people in whose)  # two have one hash


def test_a_person_whose_names_are_too_long_for_a_row_is_refused(monkeypatch):
    """Arrow and Spark end a row at 2 GiB: the driver says that names are too long, and not whose they are."""
    import pyarrow as pa

    from discreet.engines import _spark_people_tasks as tasks

    table = pa.table({"h": [1] * 3, "u": [1] * 3, "i": [f"{i:04000}" for i in range(3)]})
    (crowd,) = crowds_of(table)
    size = sum(len(crowd.column(name)[0].as_py()) for name in ("users", "items", "times", "names"))
    monkeypatch.setattr(tasks, "_MOST_BYTES", size)
    assert crowds_of(table) == [crowd]
    monkeypatch.setattr(tasks, "_MOST_BYTES", size - 1)
    (refused,) = crowds_of(table)
    assert "2 GiB" in refused.column("problem")[0].as_py()


def test_a_crowd_that_splits_a_person_is_noticed(monkeypatch):
    """The sabotaged twin: crowds that end after so many rows, whoever has them, give a person two vectors."""
    import pyarrow as pa

    from discreet.engines import _spark_people_tasks as tasks
    from discreet.engines._spark_tasks import Crowds

    monkeypatch.setattr(Crowds, "ROWS", 4)
    table = pa.table({"h": [1] * 8, "u": ["a"] * 8, "i": [f"i{i}" for i in range(8)]})
    split = table.set_column(0, "h", pa.array([1] * 4 + [2] * 4))
    weights = []
    for given in (table, split):
        looks = tasks.FindWeights(1, 7, 256, pa.large_string())(iter(crowds_of(given, 2, most=1)))
        weights.append(sum(sum(batch.column("weight").to_pylist()) for batch in looks) / 2**24)
    assert weights[0] == pytest.approx(np.sqrt(8), rel=1e-6)
    assert weights[1] > 1.4 * weights[0] - 1e-3


def test_whose_a_row_is_has_the_types_of_one_machine(spark):
    """Dates, times and decimals as well; and rows that cannot be items are left out, each by itself."""
    frame = spark.range(300).selectExpr(
        "date_add(date'2020-01-01', cast(id % 100 as int)) as day", "cast(id % 100 as decimal(9, 2)) as number",
        "timestamp_micros(id % 100) as time", "cast(array(X'FF', X'61', X'62')[id % 3] as string) as item",
        "id % 100 + 0.5D as fraction", "named_struct('a', id % 100, 'b', 'x') as pair",
    )  # fmt: skip
    for user in ("day", "number", "time"):
        release = dc.top_k(frame, 5, dc.Budget(60.0, 1e-6), column="item", user=user)
        assert {*release.items} == {"a", "b"}
        assert release.counts.tolist() == pytest.approx([100, 100], abs=12)
    for user, message in {"fraction": "floats", "pair": "not struct"}.items():
        with pytest.raises(dc.DataError, match=message):
            dc.top_k(frame, 5, BUDGET, column="item", user=user)
    with pytest.raises(dc.ParameterError, match="collation"):
        dc.top_k(frame.selectExpr("day", "item collate UTF8_LCASE as who"), 5, BUDGET, column="day", user="who")


def test_what_is_refused(spark):
    frame = spark.createDataFrame([("a", "x"), (None, "y")], "visitor string, url string")
    with pytest.raises(dc.DataError, match="nulls"):
        dc.engines.spark.top_k(frame, 5, BUDGET, column="url", user="visitor")
    assert len(dc.engines.spark.top_k(frame, 5, BUDGET, column="url", user="visitor", nulls="skip")) == 0
    for options, message in (
        ({"capacity": 8}, "capacity cannot be combined with user"),
        ({"memory": "1GB"}, "data frame of Spark"),
        ({"workers": 2}, "data frame of Spark"),
        ({"user": "nobody"}, "nobody"),
        ({"count": "clicks"}, "count must be"),
    ):
        with pytest.raises(dc.DiscreetError, match=message):
            dc.top_k(frame, 5, BUDGET, column="url", **{"user": "visitor", **options})
    with pytest.raises(dc.ParameterError, match="count rows needs user"):
        dc.top_k(frame, 5, BUDGET, column="url", count="rows")


@pytest.mark.parametrize(
    "words",
    [
        {"column": "n", "count": "rows", "where": "x < 15"},
        {"column": "item"},
        {"column": "n", "value": "x", "value_range": (0, 20)},
        {"column": "item", "by": "n"},
        {"column": ["n", "item"]},
        {"column": "n", "pairs": True},
    ],
    ids=str,
)
def test_every_word_for_people_says_what_it_says_on_one_machine(spark, words):
    """Bit for bit, where items come first in their order, in which Spark has them."""
    import pyarrow as pa

    from discreet.noise.source import seeded_source

    random, rows = np.random.default_rng(0), 3000
    table = pa.table(
        {
            "who": [f"u{i}" for i in random.integers(0, 500, rows)],
            "n": random.integers(0, 5, rows),
            "item": [f"i{i:03}" for i in np.minimum(random.zipf(1.5, rows), 99)],
            "x": np.abs(random.normal(10, 5, rows)),
        }
    ).sort_by([("n", "ascending"), ("item", "ascending")])
    table = table if words["column"] != "item" or "by" in words else table.sort_by("item")
    asked = {"k": 4, "budget": dc.Budget(3.0, 1e-6), "user": "who", **words}
    one, many = (
        dc.top_k(data, source=seeded_source(5), **asked).to_dict() for data in (table, spark.createDataFrame(table))
    )
    assert len(one["items"]) >= 4
    assert {**many, "time": None} == {**one, "time": None}
