"""Releases of Spark columns: both plans, users, what reaches the driver, what is run again."""

import dataclasses
import functools
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines import _spark_plans, _spark_sketches, _spark_tasks
from discreet.errors import DiscreetError
from discreet.noise import seeded_source

BUDGET = dc.Budget(1.0, 1e-9)
# Noise of this budget is 0, but for a probability far below 1e-9 a count.
PLENTY = dc.Budget(60.0, 1e-9)
ITEMS = {f"query {i}": 20_000 // (i + 1) for i in range(40)} | {f"rare-{i}": 1 for i in range(300)}


@pytest.fixture(scope="module", autouse=True)
def ship_this_module(spark):
    """What tests run on executors is sent there; the package itself is installed there."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def engine(spark):
    from discreet.engines import spark as engine

    return engine


@pytest.fixture(scope="module")
def frame(spark):
    values = np.repeat(np.array(list(ITEMS)), list(ITEMS.values()))
    np.random.default_rng(5).shuffle(values)
    return spark.createDataFrame(pa.table({"query": values})).repartition(4).cache()


def small(spark, values, name="query", parts=1):
    return spark.createDataFrame(pa.table({name: pa.array(values)})).coalesce(parts)


def captured(monkeypatch, engine):
    """A list to which every draw adds what it drew from."""
    draws, draw = [], _spark_sketches.Withheld.draw

    def counting(self, source):
        draws.append(self)
        return draw(self, source)

    monkeypatch.setattr(_spark_sketches.Withheld, "draw", counting)
    return draws


def upstream(frame, work):
    """The frame after a Python function of (batch, task context) on its batches."""

    def run(batches):
        from pyspark import TaskContext

        for batch in batches:
            yield work(batch, TaskContext.get())

    return frame.mapInArrow(run, frame.schema)


@pytest.mark.parametrize("plan", ["shuffle", "merge", "auto"])
def test_the_top_of_a_column(engine, frame, plan):
    top = engine.top_k(frame, 5, PLENTY, column="query", plan=plan)
    assert top.items == [f"query {i}" for i in range(5)]
    # What the sketches of so few items lose: nothing in shards, at most n/(k+1) where they are added up.
    lost = 0 if plan != "merge" else sum(ITEMS.values()) / 4097
    truth = np.array([ITEMS[item] for item in top.items])
    assert np.all(truth - lost - 2 <= top.counts)
    assert np.all(top.counts <= truth + 2)
    lower, upper = top.bounds()
    assert np.all(lower <= truth)
    assert plan == "merge" or np.all(truth <= upper)
    assert top.guarantee.unit == dc.Event()
    assert (top.guarantee.epsilon, top.guarantee.delta, top.guarantee.seeded) == (60.0, 1e-9, False)
    # Where an item goes in the shuffle plan is a function of the item: nothing is assumed of Spark.
    assert any("Spark" in assumption for assumption in top.guarantee.assumptions) == (plan == "merge")
    expected = "it was asked for" if plan != "auto" else "shuffle plan: published from about"
    assert top.guarantee.chosen_because.startswith(expected)
    assert dc.Release.from_payload(top.to_payload()).to_payload() == top.to_payload()


def test_ties_are_cut_by_item_and_no_rare_item_is_released(engine, spark):
    values = [item for item in "gfedcba" for _ in range(500)] + ["once"]
    top = engine.top_k(small(spark, values, parts=2), 3, PLENTY, column="query", plan="shuffle")
    assert top.items == ["a", "b", "c"]
    everything = engine.release(small(spark, values, parts=2), PLENTY, column="query", plan="shuffle")
    assert everything.items == list("abcdefg")


@pytest.mark.parametrize("values", [[7] * 300 + [-3] * 200, [b"\xff\x00"] * 300 + [b"b"] * 200])
def test_integers_and_bytes(engine, spark, values):
    for plan in ("shuffle", "merge"):
        top = engine.top_k(small(spark, values), 2, PLENTY, column="query", plan=plan)
        assert top.items == [values[0], values[-1]]


def test_an_empty_frame_and_empty_partitions(engine, spark):
    nothing = small(spark, pa.array([], pa.string()))
    for plan in ("shuffle", "merge"):
        assert engine.top_k(nothing, 3, BUDGET, column="query", plan=plan).items == []
    one = engine.top_k(small(spark, ["x"] * 900), 3, PLENTY, column="query", plan="shuffle", partitions=7)
    assert one.items == ["x"]
    assert len(one.shard_offsets) == 7


def test_shards_follow_the_cluster_and_the_request_does_not(engine, spark, monkeypatch, tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(200.0, 1e-6))
    pays = {"ledger": ledger.account("rows"), "charge_id": "it"}
    values = small(spark, ["a"] * 900)
    first = engine.top_k(values, 1, PLENTY, column="query", plan="shuffle", **pays)
    assert len(first.shard_offsets) == max(2, spark.sparkContext.defaultParallelism)
    monkeypatch.setattr(
        _spark_sketches, "parallelism", lambda session: 5
    )  # the cluster has grown: nothing is drawn again
    assert engine.top_k(values, 1, PLENTY, column="query", plan="shuffle", **pays).to_payload() == first.to_payload()
    with pytest.raises(dc.LedgerError):
        engine.top_k(values, 1, PLENTY, column="query", plan="shuffle", partitions=5, **pays)


def test_a_sketch_of_the_shuffle_plan_is_a_function_of_the_rows(engine, spark, monkeypatch):
    """However they are spread and ordered: nothing is assumed of Spark. 5 counters for 30 items: order would show."""
    values = np.repeat([f"{i}" for i in range(30)], range(1, 31))
    draws = captured(monkeypatch, engine)
    monkeypatch.setattr("secrets.randbits", lambda bits: 1234567)
    monkeypatch.setattr("secrets.token_hex", lambda size: "12345678")
    for seed in range(2):
        np.random.default_rng(seed).shuffle(values)
        given = small(spark, values.tolist()).repartition(1 + 3 * seed)
        engine.top_k(given, 1, PLENTY, column="query", plan="shuffle", capacity=5, partitions=2)
    assert draws[0].digests == draws[1].digests
    assert all(offset > 0 for offset in draws[0].not_private_offsets)


def test_rows_that_cannot_be_items_are_left_out(engine, spark):
    """Too long, or no Unicode: no single row prevents a release, in either plan."""
    bad = [b"x" * 5000, b"\xff\xfe"]
    rows = small(spark, [b"good"] * 900 + bad * 900).selectExpr("cast(query as string) as query")
    for plan in ("shuffle", "merge"):
        assert engine.top_k(rows, 3, PLENTY, column="query", plan=plan).items == ["good"]


def test_memory_in_place_of_capacity(engine, spark):
    values = small(spark, ["a"] * 900)
    top = engine.top_k(values, 1, PLENTY, column="query", plan="shuffle", memory="1GB")
    assert top.items == ["a"]
    assert top.asked.parameters["capacity"] > 2**20
    lists = small(spark, [["a"]] * 9)
    for bad in (
        lambda: engine.top_k(values, 1, PLENTY, column="query", memory="1GB", capacity=9),
        lambda: engine.top_k(values, 1, PLENTY, column="query", memory="much"),
        lambda: engine.top_k(lists, 1, PLENTY, column="query", unit=dc.User(2), memory="1GB"),
        lambda: engine.top_k(values, 1, PLENTY, column="query", user="query", memory="1GB"),
    ):
        with pytest.raises(dc.ParameterError):
            bad()


def test_only_released_items_reach_the_driver_and_rows_are_read_once(engine, spark, frame, monkeypatch):
    collected, to_arrow = [], type(frame).toArrow
    monkeypatch.setattr(type(frame), "toArrow", lambda self: collected.append(to_arrow(self)) or collected[-1])
    monkeypatch.setattr(type(frame), "collect", None)
    context = spark.sparkContext
    frame.count()  # it is in the cache from here on
    for plan in ("shuffle", "merge"):
        rows = context.accumulator(0)

        def count(batch, task, rows=rows):
            rows.add(batch.num_rows)
            return batch

        collected.clear()
        context.setJobGroup(plan, "counted")
        top = engine.top_k(upstream(frame, count), 10, BUDGET, column="query", plan=plan)
        assert len(top) == 10
        assert rows.value == sum(ITEMS.values())
        # Spark's own jobs: the exchanges (one to count, one to shards), the sketches into the cache, their counters,
        # the names. Rows are read by the first alone.
        assert len(context.statusTracker().getJobIdsForGroup(plan)) <= 4 + (plan == "shuffle")
        assert len(collected) == 2
        seen = b"".join(bytes(buffer) for table in collected for buffer in buffers_of(table))
        assert b"query 0" in seen
        assert b"rare" not in seen
        assert b"query 30" not in seen
    context.setLocalProperty("spark.jobGroup.id", None)


def buffers_of(table):
    return [buffer for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer]


def kill_at_first(batch, task):
    if task.attemptNumber() == 0 and task.partitionId() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


@dataclasses.dataclass(frozen=True)
class KilledShard(_spark_tasks.HoldShard):
    """Its worker dies when the sketch is done."""

    def __call__(self, batches):
        from pyspark import TaskContext

        for row in super().__call__(batches):
            yield kill_at_first(row, TaskContext.get())


@dataclasses.dataclass(frozen=True)
class KilledFinder(_spark_tasks.FindNames):
    """Its worker dies when the names were found."""

    def __call__(self, batches):
        from pyspark import TaskContext

        for row in super().__call__(batches):
            yield row if TaskContext.get().attemptNumber() else os.kill(os.getpid(), signal.SIGKILL)


def test_killed_tasks_change_nothing(engine, spark, monkeypatch, tmp_path):
    """Workers die while reading, with a finished sketch, and with the names: one draw, one charge, the same counts."""
    values = ["a"] * 3000 + ["b"] * 2000 + ["c"] * 1000
    draws = captured(monkeypatch, engine)
    monkeypatch.setattr(_spark_tasks, "HoldShard", KilledShard)
    monkeypatch.setattr(_spark_tasks, "FindNames", KilledFinder)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(200.0, 1e-6))
    account = ledger.account("rows")
    killed = upstream(small(spark, values), kill_at_first)
    top = engine.top_k(killed, 3, PLENTY, column="query", plan="shuffle", ledger=account, charge_id="once")
    assert dict(zip(top.items, top.counts.tolist(), strict=True)) == Counter(values)
    assert len(draws) == 1
    assert [event.kind for event in account.history()] == ["grant", "charge", "release"]
    merged = engine.top_k(killed, 3, PLENTY, column="query", plan="merge", ledger=account, charge_id="merged")
    assert merged.items == ["a", "b", "c"]
    assert len(draws) == 2


def test_a_summary_that_is_made_again(engine, spark, monkeypatch, tmp_path):
    """Lost after the draw: the same rows give the same names, in the shuffle plan in any order; others an error.

    Two random orders of 4000 rows leave the same 8 counters with a probability far below 1e-9.
    """
    names, lost = _spark_sketches.Withheld.names, []

    def lose(self, positions, kind):
        lost.append(self.held.unpersist(blocking=True))
        return names(self, positions, kind)

    monkeypatch.setattr(_spark_sketches.Withheld, "names", lose)
    draws = captured(monkeypatch, engine)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(200.0, 1e-6))
    pays = {"ledger": ledger.account("rows"), "charge_id": "it"}
    values = ["often"] * 3000 + [f"{i}" for i in range(1000)]

    def shuffled(batch, task):
        return batch.take(pa.array(np.random.default_rng().permutation(batch.num_rows)))

    def other_rows(batch, task):
        drawn = np.random.default_rng().integers(0, 2**62, 1000).astype(str).tolist()
        return pa.record_batch([pa.array(["often"] * 3000 + drawn)], names=batch.schema.names)

    top = functools.partial(engine.top_k, column="query", k=2, budget=PLENTY, capacity=8, partitions=2)
    same = top(upstream(small(spark, values), shuffled), plan="shuffle")
    assert same.items[0] == "often"
    assert (len(lost), len(draws)) == (1, 1)
    with pytest.raises(DiscreetError, match="Nothing was published"):
        top(upstream(small(spark, values), shuffled), plan="merge")
    ask = functools.partial(top, upstream(small(spark, values[:1]), other_rows), plan="shuffle", **pays)
    with pytest.raises(DiscreetError, match="Nothing was published"):
        ask()
    assert [event.kind for event in pays["ledger"].history()] == ["grant", "charge"]
    monkeypatch.setattr(_spark_sketches.Withheld, "names", names)
    first = ask()
    assert first.items[0] == "often"
    assert [event.kind for event in pays["ledger"].history()] == ["grant", "charge", "release"]
    before = len(draws)
    # The stored release, without reading anything.
    monkeypatch.setattr(_spark_tasks, "HoldShard", None)
    assert ask().to_payload() == first.to_payload()
    assert len(draws) == before


def test_the_charge_is_on_disk_before_noise_is_drawn(engine, spark, monkeypatch, tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", BUDGET)
    account = ledger.account("rows")

    def fail(self, source):
        assert [event.kind for event in account.history()] == ["grant", "charge"]
        raise KeyboardInterrupt

    monkeypatch.setattr(_spark_sketches.Withheld, "draw", fail)
    with pytest.raises(KeyboardInterrupt):
        engine.top_k(small(spark, ["a"]), 1, BUDGET, column="query", plan="shuffle", ledger=account, charge_id="x")
    monkeypatch.undo()
    with pytest.raises(dc.BudgetExceededError):
        engine.top_k(small(spark, ["a"]), 1, BUDGET, column="query", plan="shuffle", ledger=account, charge_id="y")
    assert [event.kind for event in account.history()] == ["grant", "charge"]
    ledger.grant("others", BUDGET)
    others = ledger.account("others")
    with pytest.raises(dc.DataError):
        engine.top_k(small(spark, ["a", None]), 1, BUDGET, column="query", plan="shuffle", ledger=others)
    assert [event.kind for event in others.history()] == ["grant"]


def test_what_is_refused(engine, spark):
    good = small(spark, ["confidential"] * 3 + [None])
    number = small(spark, [{"a": 1.5}])
    lists = small(spark, [["a"]])
    for bad, error, says in [
        (lambda: engine.top_k(good, 1, BUDGET, column="missing"), dc.DataError, "no column 'missing'"),
        (lambda: engine.top_k(number, 1, BUDGET, column="query"), dc.DataError, "struct"),
        (lambda: engine.top_k(good, 1, BUDGET, column="query", plan="both"), dc.ParameterError, "plan must be"),
        (lambda: engine.top_k(good, 0, BUDGET, column="query"), dc.ParameterError, "k must be"),
        (lambda: engine.top_k(good, 1, dc.Budget(1.0), column="query"), dc.ParameterError, "delta"),
        (lambda: engine.top_k(good, 1, BUDGET, column="query", unit=dc.Replace()), dc.ParameterError, "Replace"),
        (
            lambda: engine.top_k(good, 1, BUDGET, column="query", user="query", unit=dc.Event()),
            dc.ParameterError,
            "unit",
        ),
        (lambda: engine.top_k(good, 1, BUDGET, column="query", nulls="maybe"), dc.ParameterError, "nulls"),
        (lambda: engine.top_k(good, 1, BUDGET, column="query", charge_id="x"), dc.ParameterError, "ledger"),
        (lambda: engine.top_k(lists, 1, BUDGET, column="query"), dc.ParameterError, "User"),
        (
            lambda: engine.top_k(lists, 1, BUDGET, column="query", plan="shuffle", unit=dc.User(2)),
            dc.ParameterError,
            "merge plan",
        ),
        (lambda: engine.top_k(["a"], 1, BUDGET, column="query"), dc.ParameterError, "data frame"),
        (lambda: engine.top_k(good, 1, BUDGET, column="query", plan="shuffle"), dc.DataError, "nulls"),
        (lambda: engine.top_k(good, 1, BUDGET, column="query", plan="merge", partitions=20), dc.DataError, "nulls"),
    ]:
        with pytest.raises(error, match=says) as caught:
            bad()
        assert "confidential" not in str(caught.value)
    assert engine.top_k(small(spark, ["a"] * 900 + [None]), 1, PLENTY, column="query", nulls="skip").items == ["a"]


def test_partitions_that_are_not_those_of_the_plan_are_refused(engine):
    plan = engine.spark_plans(BUDGET, partitions=2)["shuffle"]

    class Frame:
        def __init__(self, *shards):
            row = {"shift": 0, "counts": b"", "digest": b"", "problem": None}
            self.rows = pa.Table.from_pylist([{"shard": shard, **row} for shard in shards])

        def select(self, *names):
            return self

        def toArrow(self):  # noqa: N802
            return self.rows

    assert len(_spark_sketches.Withheld.collected(Frame(1), plan).counts) == 2
    for shards in [(0, 0, 1), (0, 1, 2)]:
        with pytest.raises(DiscreetError, match="split or joined"):
            _spark_sketches.Withheld.collected(Frame(*shards), plan)


@pytest.mark.parametrize(
    ("plan", "users"), [("shuffle", False), ("shuffle", True), ("merge", False), ("merge", True)], ids=str
)
def test_spark_may_not_change_the_partitions(engine, visits, plan, users):
    """Every exchange has a number of partitions that is asked for: adaptive execution leaves only those alone."""
    unit, user = (dc.User(4), "user") if users else (dc.Event(), None)
    rows = engine.Frame(visits, plan=plan, partitions=3).rows("item", user=user)
    sketches = rows.sketches(3, PLENTY, unit, capacity=64)
    planned = sketches.held()._jdf.queryExecution().executedPlan().toString()
    exchanges = [line for line in planned.splitlines() if "Exchange " in line and "Reused" not in line]
    assert len(exchanges) == 1 + (users or plan == "shuffle")
    # But for the one in which the shuffle plan counts: its partitions are not those of the sketches, which come after.
    assert sum("REPARTITION_BY_NUM" in line for line in exchanges) == 1 + users
    assert "REPARTITION_BY_NUM" in exchanges[0]
    assert ("ArrowMap" in planned) or ("MapInArrow" in planned)


@pytest.fixture(scope="module")
def visits(spark):
    """30 users with 2 items, a user with 50, each row twice."""
    rows = [(f"user {i}", item) for i in range(30) for item in ("both", f"group {i % 2}")]
    rows += [("greedy", f"only {i}") for i in range(50)]
    users, items = zip(*(rows * 2), strict=True)
    return spark.createDataFrame(pa.table({"user": users, "item": items}))


@pytest.mark.parametrize("plan", ["shuffle", "merge"])
def test_users_are_capped(engine, visits, plan, monkeypatch):
    """The Gaussian noise of the merge plan has a deviation of 0.2 even so: above 4 with probability below 1e-20."""
    draws = captured(monkeypatch, engine)
    top = engine.top_k(
        visits, 3, dc.Budget(300.0, 1e-2), column="item", plan=plan, unit=dc.User(4), user="user", capacity=64
    )
    assert top.items[0] == "both"
    assert set(top.items) == {"both", "group 0", "group 1"}
    assert top.counts.tolist() == pytest.approx([30, 15, 15], abs=4)
    assert top.guarantee.unit == dc.User(4)
    assert sorted(np.concatenate(draws[0].counts).tolist())[-3:] == [15, 15, 30]
    # 30 users with 2 items each, and 4 of the greedy one's.
    assert sum(int(part.sum()) for part in draws[0].counts) == 64
    expected = "user-level" if plan == "merge" else "shards"
    assert expected in top.guarantee.mechanism


def test_users_of_arrays_and_nulls(engine, spark, visits):
    sets = spark.createDataFrame(pa.table({"items": [["a", "b"]] * 40 + [["c", "d", "e", "f"]] * 3}))
    top = engine.top_k(sets, 2, dc.Budget(300.0, 1e-2), column="items", unit=dc.User(2), capacity=64)
    assert set(top.items) == {"a", "b"}
    assert top.counts.tolist() == pytest.approx([40, 40], abs=4)
    assert top.guarantee.chosen_because.startswith("merge plan: a column of arrays")
    nobody = visits.union(spark.createDataFrame(pa.table({"user": pa.array([None], pa.string()), "item": ["both"]})))
    empty = visits.union(spark.createDataFrame(pa.table({"user": ["greedy"], "item": pa.array([None], pa.string())})))
    for bad, plan in ((nobody, "shuffle"), (empty, "merge")):
        ask = functools.partial(
            engine.top_k,
            bad,
            1,
            dc.Budget(300.0, 1e-2),
            column="item",
            plan=plan,
            unit=dc.User(4),
            user="user",
            capacity=64,
        )
        with pytest.raises(dc.DataError, match="nulls"):
            ask()
        assert ask(nulls="skip").counts.tolist() == pytest.approx([30], abs=4)


def test_the_accuracy_of_the_shuffle_plan_is_that_of_one_machine(engine, frame, monkeypatch):
    """Mean relative error of the items that both publish, over 400 seeds: within 10 percent, 15 deviations."""
    draws = captured(monkeypatch, engine)
    engine.top_k(frame, 30, BUDGET, column="query", plan="shuffle", capacity=512, source=seeded_source(1))
    names = [f"query {i}" for i in range(30)]
    truth = np.array([ITEMS[name] for name in names])
    sketch = dc.MisraGries(512, seed=3)
    sketch.update(pa.array(np.repeat(np.array(list(ITEMS)), list(ITEMS.values()))))

    def error(found):
        return np.mean(np.abs(np.array([found[name] for name in names]) - truth) / truth)

    monkeypatch.setattr(_spark_sketches.Withheld, "names", lambda self, positions, kind: positions)
    (withheld,) = draws
    # Positions in the order of their counters are the items in the order of theirs: 30 that are far apart.
    order = np.argsort(-np.concatenate(withheld.counts), kind="stable")[:30]
    spark_errors, local_errors = [], []
    for seed in range(400):
        drawn = withheld.draw(seeded_source(seed))
        found = dict(zip(drawn.items, drawn.counts.tolist(), strict=True))
        spark_errors.append(error({name: found[int(place)] for name, place in zip(names, order, strict=True)}))
        local = dc.release(sketch, BUDGET, source=seeded_source(10_000 + seed))
        local_errors.append(error(dict(zip(local.items, local.counts.tolist(), strict=True))))
    assert np.mean(spark_errors) == pytest.approx(np.mean(local_errors), rel=0.1)


@pytest.mark.parametrize("law", ["merged", "summed"])
def test_the_noise_of_the_merge_plan_is_that_of_its_calibration(engine, frame, monkeypatch, law):
    """The standard deviation over 20 items and 400 seeds (8000 draws) to 8 percent: 4 deviations of a Laplace law's

    sample deviation (1.25 percent), 10 of a Gaussian's. Noise that is a tenth too small or too large is noticed.
    """
    monkeypatch.setattr(_spark_plans, "MOST_TOGETHER", 2**22 if law == "summed" else 0)
    draws = captured(monkeypatch, engine)
    top = engine.top_k(
        frame, 20, BUDGET, column="query", plan="merge", capacity=64, partitions=18, source=seeded_source(2)
    )
    assert top.items[0] == "query 0"
    (withheld,) = draws
    mechanism = withheld.mechanism
    values = np.concatenate(withheld.counts)
    # Entries of reduced sketches are in units of their noise, counters are counts.
    step = float(mechanism.error_model.noise.step) if law == "summed" else 1.0
    places = np.argsort(-values, kind="stable")[:8]
    assert values[places[-1]] * step > 2 * mechanism.threshold
    noise = []
    for seed in range(1000):
        drawn = withheld.draw(seeded_source(seed))
        found = dict(zip(drawn.items, drawn.counts.tolist(), strict=True))
        noise += [found[int(place)] - values[place] * step for place in places]
    scale = mechanism.error_model.noise_scale
    expected = scale if law == "merged" else np.sqrt(2) * scale
    assert np.std(noise) == pytest.approx(expected, rel=0.08)


def test_the_example_of_the_documentation_runs(spark, visits, tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()
    (example,) = [code for code in re.findall(r"```python spark\n(.*?)```", page, re.DOTALL) if "dc.top_k" in code]
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("queries", dc.Budget(4.0, 1e-7))
    dataframe = visits.withColumnRenamed("item", "query").selectExpr("*", "length(query) as seconds")
    names = {"dataframe": dataframe, "account": ledger.account("queries")}
    exec(compile(example, "docs/engines.md", "exec"), names)
    assert "published from about" in capsys.readouterr().out


def test_the_examples_of_the_reference_run(spark, visits, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "api" / "engines.md").read_text()
    examples = re.findall(r"```python spark\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("queries", dc.Budget(4.0, 1e-7))
    dataframe = visits.withColumnRenamed("item", "query")
    names = {"dc": dc, "dataframe": dataframe, "account": ledger.account("queries"), "publish": print}
    for example in examples:
        exec(compile(example.replace("/durable", str(tmp_path)), "docs/api/engines.md", "exec"), names)
    assert len(names["top"]) > 0


_NO_PYTHON = """
import os
from pyspark.sql import SparkSession
import discreet as dc
from discreet.engines import spark as engine

settings = {"ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "log.level": "OFF"}
session = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    session = session.config(f"spark.{name}", value)
session = session.getOrCreate()
dataframe = session.createDataFrame([("a", 1)], "item string, user long")
for user in (None, "user"):
    try:
        engine.top_k(dataframe, 3, dc.Budget(1.0, 1e-6), column="item", user=user)
    except dc.DiscreetError as error:
        print(repr(str(error)))
try:
    dc.top_k(dataframe, 3, dc.Budget(1.0, 1e-6), column="item")
except dc.DiscreetError as error:
    print(repr(str(error)))
"""


def test_workers_without_a_python_are_named_in_one_line(spark, tmp_path):
    """A session of its own: which Python workers run is decided before it starts."""
    told = {"PYSPARK_PYTHON": str(tmp_path / "no-python"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", _NO_PYTHON],
        env=os.environ | told,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    rows, people, here = done.stdout.splitlines()[-3:]
    assert rows == people == here
    assert "Spark's workers find no Python: before the session starts, set PYSPARK_PYTHON" in rows


def test_the_former_words_are_understood_and_told(spark, engine):
    frame = small(spark, ["x"] * 900)
    asked = {"plan": "shuffle", "source": seeded_source(3)}
    now = engine.top_k(frame, 3, PLENTY, column="query", length=10_000, **asked)
    with pytest.warns(DeprecationWarning, match="stream_length is now called length"):
        then = engine.top_k(frame, 3, PLENTY, column="query", stream_length=10_000, **asked)
    assert then.items == now.items
    with pytest.warns(DeprecationWarning, match="give column by its name"):
        assert engine.top_k(frame, "query", 3, PLENTY, "shuffle").items == ["x"]
    with pytest.warns(DeprecationWarning, match="give column by its name"):
        assert engine.release(frame, "query", PLENTY).items == ["x"]
