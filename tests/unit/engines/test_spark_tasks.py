"""What executors of Spark run, here in this process: sums of parts, problems, and summaries that are made again.

No cluster is needed: a task takes Arrow batches and gives Arrow batches. tests/spark has the same on a cluster.
"""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines import _spark_people_tasks as people_tasks
from discreet.engines import _spark_tasks as tasks
from discreet.engines._spark_jobs import parallelism, partitions_for, raise_problem, tree
from discreet.errors import BudgetExceededError, DataError, DiscreetError, ParameterError
from discreet.events.assembly import Wanted
from discreet.events.universe import Universe
from discreet.summaries import ExactCounts
from discreet.summaries.moments import ValueMoment

pytest.importorskip("pyspark")  # of which a task asks its number

SCHEMA = pa.schema([("item", pa.string())])


def batches(*parts, schema=SCHEMA):
    return iter([pa.record_batch([pa.array(part, schema.field(0).type)], schema=schema) for part in parts])


def reading(**words):
    return tasks.Reading(SCHEMA, Wanted(("item",), **words))


# ---- what is found in parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "together"),
    [
        ([None, 3, None, 4], 7),
        ([{"a": 1, "b": {"x": 1}}, {"b": {"x": 2, "y": 5}, "c": 1}], {"a": 1, "b": {"x": 3, "y": 5}, "c": 1}),
        ([{}, {"a": 1}], {"a": 1}),
        ([None, None], None),
    ],
)
def test_what_is_found_in_parts_is_added_up(parts, together):
    one, *others = parts
    for other in others:
        one = tasks.added(one, other)
    assert one == together


def test_summaries_of_parts_are_merged():
    one, other = ExactCounts(), ExactCounts()
    one.update(["a", "b"])
    other.update(["b"])
    found = tasks.added(one, other).not_private_counts()
    assert dict(zip(found.items.to_pylist(), found.counts.tolist(), strict=True)) == {"a": 1, "b": 2}


def test_rows_of_a_task_are_counted_in_one_state():
    (row,) = tasks.CountPart(reading(), tasks.number_of)(batches(["a", "b"], ["a"]))
    assert pickle.loads(row.column("state")[0].as_py()) == 3
    assert row.column("problem").to_pylist() == [None]


def test_items_of_a_list_are_added_up_across_batches():
    universe = Universe(["a", "b", "c"])
    counted = pa.schema([*SCHEMA, ("item#", pa.int64())])
    parts = [
        pa.record_batch([["a", "z", None], [5, 7, 9]], schema=counted),
        pa.record_batch([["b", "a"], [2, 1]], schema=counted),
    ]
    of = reading(nulls="skip").counting()
    assert of.schema == counted
    (rows,) = of.parts(iter(parts))
    assert tasks.listed(rows, universe) == {0: 6, 1: 2}
    (rows,) = reading(nulls="skip").parts(batches(["a", "z", None], ["a", "c"]))
    assert tasks.listed(rows, universe) == {0: 2, 2: 1}


@pytest.mark.parametrize("kind", ["count", "sum", "mean", "variance"])
def test_sums_that_spark_added_up_in_halves_are_whole(kind):
    """Also of negative numbers, and of ones beyond 32 bits; what values leave of `one` is added here."""
    moment = {
        "count": lambda: ValueMoment("count"),
        "sum": lambda: ValueMoment("signed", -5.0, 9.0),
        "mean": lambda: ValueMoment("mean", 0.0, 8.0),
        "variance": lambda: ValueMoment("variance", 0.0, 8.0),
    }[kind]()
    values = np.array([-5.0, 9.0, 3.25, 0.0, 8.0] * 3)
    entries = moment.entries(values)
    told = {"count": 0, "sum": 1, "mean": 1, "variance": 2}[kind]
    there = np.array([9, 6])
    groups = [entries[:9], entries[9:]]
    whole = [np.array([group[:, part].sum() for group in groups]) for part in range(told)]
    halves = []
    for part in range(told):
        upper = [int((group[:, part] >> tasks.HALF).sum()) for group in groups]
        lower = [int((group[:, part] & (2**tasks.HALF - 1)).sum()) for group in groups]
        halves += [np.array(upper), np.array(lower)]
    found = tasks.SumsOfRows.of(moment, there, halves)
    assert found.parts == moment.parts
    for part in range(told):
        assert found.entries(np.arange(2.0))[:, part].tolist() == whole[part].tolist()
    assert found.total(np.arange(2.0)).tolist() == moment.total(values).tolist()


# ---- problems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DataError, ParameterError, DiscreetError, BudgetExceededError])
def test_an_error_of_the_data_is_said_in_a_row_and_raised_in_its_class(error):
    """All batches are taken, or Spark waits; nothing is raised on an executor, whose logs are not ours."""
    left = batches(["secret"], ["secret"], ["secret"])

    def count(rows):
        raise error("rows without a value; skip them")

    (row,) = tasks.CountPart(reading(), count)(left)
    assert next(left, None) is None
    assert row.column("state").to_pylist() == [None]
    with pytest.raises(error, match=r"^rows without a value; skip them$") as raised:
        raise_problem(row.column("problem")[0].as_py())
    assert type(raised.value) is error
    raise_problem(None)


def test_an_error_of_another_kind_ends_the_task():
    def count(rows):
        raise KeyError("no problem of the data")

    with pytest.raises(KeyError):
        list(tasks.CountPart(reading(), count)(batches(["a"])))


def test_a_problem_of_one_part_is_that_of_all():
    (bad,) = tasks.CountPart(reading(), tasks.number_of)(batches(["a", None]))
    good = list(tasks.CountPart(reading(), tasks.number_of)(batches(["a"])))
    (row,) = tasks.AddParts()(iter([*good, bad]))
    assert "no value in the column" in row.column("problem")[0].as_py()
    recipe = tasks.Recipe(8, 7, 4096, None)
    for task in (tasks.HoldMerged(recipe), tasks.HoldSummed(recipe)):
        (row,) = task(iter([*good, bad]))
        assert "no value in the column" in row.column("problem")[0].as_py()
    items = [*tasks.CountItems(reading().counting(), pa.large_string(), None)(nulls_of())]
    (row,) = tasks.HoldShard(recipe)(iter(items))
    assert "no value in the column" in row.column("problem")[0].as_py()


def nulls_of():
    return iter([pa.record_batch([["a", None], [1, 1]], schema=pa.schema([*SCHEMA, ("item#", pa.int64())]))])


def test_parts_are_added_in_the_order_of_their_numbers():
    """So that a task that runs again gives what it gave."""

    def part(number, state):
        return tasks.row_of(tasks._PARTS, part=number, state=pickle.dumps(state))

    one, other = part(3, ["c"]), part(1, ["a"])
    for given in ([one, other], [other, one]):
        (row,) = tasks.AddParts()(iter(given))
        assert pickle.loads(row.column("state")[0].as_py()) == ["a", "c"]
        assert row.column("part").to_pylist() == [1]
    assert list(tasks.AddParts()(iter([]))) == []


# ---- summaries that wait for the driver ------------------------------------------------------------------------------


def held(*items, shard=0, seed=5):
    schema = pa.schema([("item", pa.large_string()), ("n", pa.int64()), ("problem", pa.string())])
    names = sorted({*items})
    counts = [items.count(name) for name in names]
    given = pa.record_batch([names, counts, [None] * len(names)], schema=schema)
    (row,) = tasks.HoldShard(tasks.Recipe(16, seed, 4096, None))(iter([given]))
    return row


def found(row, wanted):
    return [b.to_pylist() for b in tasks.FindNames(wanted, pa.large_string())(iter([row]))]


def test_items_of_positions_are_told_of_the_summary_that_was_drawn_from():
    row = held("a", "a", "b", "c", "c", "c")
    counts = np.frombuffer(row.column("counts")[0].as_py(), "<i8")
    digest = row.column("digest")[0].as_py()
    place = int(np.flatnonzero(counts == 3)[0])
    (told,) = found(row, {0: (digest, np.array([place]))})
    assert told == [{"shard": 0, "position": place, "item": "c", "problem": None}]
    assert found(row, {0: (digest, np.zeros(0, np.int64))}) == []  # compared, and nothing is asked


def test_a_summary_that_was_made_again_otherwise_is_noticed():
    """By its counts, its items or its place: whichever of them differs, positions mean something else."""
    row = held("a", "a", "b")
    digest = row.column("digest")[0].as_py()
    same = held("a", "a", "b")
    assert same.column("digest")[0].as_py() == digest
    others = [held("a", "a", "c"), held("a", "b"), held("a", "a", "a", "b")]
    pairs = [(row, digest, other) for other in others]
    alone = held("a", "a")
    pairs.append((alone, alone.column("digest")[0].as_py(), held("b", "b")))  # as many of another item
    for _, digest, other in pairs:
        for positions in (np.array([0]), np.zeros(0, np.int64)):
            ((said,),) = found(other, {0: (digest, positions)})
            assert (said["problem"], said["item"]) == ("changed", None)
    ((said,),) = found(row, {})  # nobody knew of it
    assert said["problem"] == "changed"


def test_a_shard_keeps_its_items_and_how_often_each_came():
    row = held(*"aab", shard=0)
    items = tasks.read_items(row.column("items")[0].as_py())
    counts = np.frombuffer(row.column("counts")[0].as_py(), "<i8")
    assert dict(zip(items.to_pylist(), counts.tolist(), strict=True)) == {"a": 2, "b": 1}
    assert row.column("shift").to_pylist() == [0]


def test_people_count_each_of_their_first_items_once():
    schema = pa.schema([("h", pa.int64()), ("who", pa.string()), ("item", pa.string())])
    rows = [(1, "u", "a"), (1, "u", "a"), (1, "u", "b"), (1, "u", "c"), (2, "v", "a"), (3, "w", "d")]
    given = pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=schema)
    of = tasks.Reading(pa.schema([*schema][1:]), Wanted(("item",), user="who"), crowds=True)
    told = {}
    for size in (1, 2, 6):
        parts = iter([given.slice(at, size) for at in range(0, 6, size)])
        for batch in tasks.CountItems(of, pa.large_string(), 2)(parts):
            for row in batch.to_pylist():
                told.setdefault(size, {}).setdefault(row["item"], 0)
                told[size][row["item"]] += row["n"]
    assert told == {size: {"a": 2, "b": 1, "d": 1} for size in (1, 2, 6)}


CROWDS = [[1, 1, 2], [2, 2, 2], [2, 3, 3], [3], [4, 4, 5], [5, 6], [7, 7, 7]]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("taken", ["all", "some", "none"])
def test_nobody_is_in_two_crowds(monkeypatch, rows, taken):
    """However small crowds are, and whoever goes on before all of one was taken."""
    monkeypatch.setattr(tasks.Crowds, "ROWS", rows)
    given = iter([pa.record_batch([pa.array(batch, pa.int64())], names=["h"]) for batch in CROWDS])
    seen, crowds = [], 0
    for crowd in tasks.Crowds(given):
        crowds += 1
        here = []
        if taken != "none":
            for batch in crowd:
                here += batch.column(0).to_pylist()
                if taken == "some":
                    break
        seen.append(here)
    if taken == "all":
        assert [h for here in seen for h in here] == [h for batch in CROWDS for h in batch]
        assert crowds == (1 if rows == 100 else len(seen))
        assert (len(seen) > 2) == (rows < 7)
    people = [{*here} for here in seen]
    for place, one in enumerate(people):
        assert all(one.isdisjoint(other) for other in people[place + 1 :])


# ---- people ----------------------------------------------------------------------------------------------------------


def crowds(rows, value_range=None, most=1, value=None):
    schema = pa.schema([("h", pa.int64()), ("who", pa.string()), ("item", pa.string()), ("n", pa.float64())])
    given = pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=schema)
    fields = pa.schema([*schema][1 : 4 if value else 3])
    given = given if value else given.select(["h", "who", "item"])
    of = tasks.Reading(fields, Wanted(("item",), user="who", value=value), crowds=True)
    return list(people_tasks.HoldCrowds(of, value_range, most)(iter([given])))


ROWS = [(1, "u", "a", 1.0), (1, "u", "b", 2.0), (1, "u", "a", 4.0), (2, "v", "a", float("nan")), (2, "v", "b", 3.0)]


def test_values_are_those_of_their_rows():
    """Also where a row of the same people has none."""
    from discreet.summaries.people import ValueRange

    value_range = ValueRange(0.0, 8.0)
    (held,) = crowds(ROWS, value_range, 2**20, "n")
    ((users, items, times, names),) = people_tasks._read(iter([held]))
    found = {}
    for user, item, steps in zip(users.tolist(), items.tolist(), np.frombuffer(times, "<i8").tolist(), strict=True):
        found[user, names[item].as_py()] = steps
    one = value_range.steps(np.array([1.0, 2.0, 4.0, 3.0]))
    assert found == {(0, "a"): one[0] + one[2], (0, "b"): one[1], (1, "b"): one[3]}


def test_aims_of_items_that_are_not_named_are_the_least_one():
    """What a person gives to an item follows from all of their items, named or not."""
    held = crowds([(1, "u", "a", 0.0), (1, "u", "b", 0.0), (2, "v", "b", 0.0)])

    def weights(aimed, aims, least):
        look = people_tasks.AimWeights(7, 256, pa.large_string(), pa.array(aimed, pa.large_string()), aims, least)
        return {row["item"]: row["weight"] for batch in look(iter(held)) for row in batch.to_pylist()}

    plain = weights([], np.zeros(0, np.int64), 5)
    assert plain == weights(["a"], np.array([5]), 5)  # all are aimed at alike
    aimed = weights(["a"], np.array([10]), 5)
    assert aimed["a"] > plain["a"]
    assert aimed["b"] < plain["b"]
    assert aimed["b"] > 0
    assert weights(["none"], np.array([99]), 5) == plain


# ---- where there is no cluster to ask --------------------------------------------------------------------------------


class Session:
    def __init__(self, parallel, shuffled="200"):
        if parallel is not None:
            self.sparkContext = type("Context", (), {"defaultParallelism": parallel})
        self.conf = {"spark.sql.shuffle.partitions": shuffled}


@pytest.mark.parametrize(("parallel", "tasks_at_once"), [(1, 2), (2, 2), (64, 64), (None, 200)])
def test_tasks_at_once(parallel, tasks_at_once):
    """Two at least; Spark Connect, which does not tell, shuffles with as many as it was set to."""
    assert parallelism(Session(parallel)) == tasks_at_once


@pytest.mark.parametrize(("size", "many"), [(0, 4), (2**25 * 4, 4), (2**25 * 9, 9), (2**60, 200), (None, 200)])
def test_partitions_follow_the_estimated_size_between_two_limits(size, many):
    class Frame:
        sparkSession = Session(4)  # noqa: N815

        @property
        def _jdf(self):
            if size is None:
                raise AttributeError("Spark Connect")
            told = type("Told", (), {"sizeInBytes": lambda self: size})()
            plan = type("Plan", (), {"stats": lambda self: told})()
            executed = type("Executed", (), {"optimizedPlan": lambda self: plan})()
            return type("Java", (), {"queryExecution": lambda self: executed})()

    assert partitions_for(Frame()) == many


@pytest.mark.parametrize(
    ("many", "most", "levels"),
    [(16, 16, []), (17, 16, [2]), (300, 16, [19, 2]), (5, 1, [1]), (17, 1, [2, 1]), (1, 1, [])],
)
def test_a_tree_of_parts_has_levels_of_sixteen(many, most, levels):
    """The last level of a tree of one is added up by the task that holds the result."""

    class Parts:
        def __init__(self):
            self.levels, self.added = [], 0

        def repartition(self, many, column):
            assert column == "part"
            self.levels.append(many)
            return self

        def mapInArrow(self, task, schema):  # noqa: N802
            assert isinstance(task, tasks.AddParts)
            self.added += 1
            return self

    parts = Parts()
    assert tree(parts, many, most) is parts
    assert parts.levels == levels
    assert parts.added == len(levels) - (most == 1 and bool(levels))
