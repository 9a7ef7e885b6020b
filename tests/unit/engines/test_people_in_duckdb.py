"""DuckDB counts people as the plain lists do, whatever the order, the threads, the memory and the kind of table."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
import traceback
from contextlib import nullcontext
from functools import partial
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.rows import people_of_table

import discreet as dc
from discreet.central.person_vectors import PersonVectors
from discreet.engines.duck_people import _translated
from discreet.engines.exact_people import people_of
from discreet.events.tables import events_of
from discreet.noise import seeded_source
from discreet.summaries.memory import Memory
from discreet.summaries.people import ListedPeople, ValueRange

BUDGET = dc.Budget(1.0, 1e-6)


def made_up(rows=6000, seed=0):
    random = np.random.default_rng(seed)
    users = random.integers(0, 900, rows)
    items = np.minimum(random.zipf(1.3, rows), 400)
    return pa.table({"who": [f"u{user}" for user in users], "what": [f"i{item}" for item in items]})


def lists_of(table, who="who", what="what"):
    people = {}
    for user, item in zip(table[who].to_pylist(), table[what].to_pylist(), strict=True):
        people.setdefault(user, []).append(item)
    return list(people.values())


def everything(people, rows):
    """All that a release may ask, by item."""
    weights = people.discovery_weights(256)
    names = people.items(np.arange(len(weights))).to_pylist()
    chosen = np.array(sorted(range(len(names)), key=lambda place: names[place]), np.int64)
    factors = 1 + np.arange(len(chosen), dtype=np.int64) % 1000
    aims = np.array([102 + sum(str(name).encode()) % 900 for name in names], np.int64)
    return (
        dict(zip(names, weights.tolist(), strict=True)),
        dict(zip(names, people.aimed_weights(256, aims).tolist(), strict=True)),
        [values.tolist() for values in people.lengths(chosen, factors)],
        [people.scaled_sums(chosen, factors, longest).tolist() for longest in (1.0, 700.0, 1e6)],
        rows,
    )


@pytest.mark.parametrize("rows", [False, True])
def test_the_same_as_plain_lists(rows):
    table = made_up()
    with people_of_table(table, "what", "who", rows=rows) as people:
        assert everything(people, rows) == everything(ListedPeople(lists_of(table), rows=rows), rows)


def test_neither_order_nor_threads_nor_memory_matter():
    table = made_up()
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    results, releases = [], []
    for data, threads, memory in ((table, 1, None), (shuffled, 8, None), (shuffled.to_reader(17), 2, "400MB")):
        with people_of_table(data, "what", "who", threads=threads, memory=memory) as people:
            results.append(everything(people, False))
        data = table if threads == 1 else table.to_reader(19 * threads)
        with people_of_table(data, "what", "who", threads=threads) as people:
            releases.append(PersonVectors(BUDGET, 10)(people, seeded_source(3)).to_payload())
    assert results[0] == results[1] == results[2]
    assert len({*releases}) == 1


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("engine", ["lists", "memory", "disk"])
def test_a_second_look_has_the_choice_of_the_first(engine, texts, rows, monkeypatch):
    """Aimed at nothing it is the first look again: also of people with more than 256 items, some of them twice."""
    table = made_up()
    many = [(f"many {person}", f"i{item}") for person in range(3) for item in [*range(300 + person), *range(7)]]
    users, items = zip(*many, strict=True)
    table = pa.concat_tables([table, pa.table({"who": users, "what": items})])
    if not texts:
        table = table.set_column(1, "what", pa.array([int(item[1:]) for item in table["what"].to_pylist()]))
    if engine == "disk":
        monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)
    listed = nullcontext(ListedPeople(lists_of(table), rows=rows))
    with listed if engine == "lists" else people_of_table(table, "what", "who", rows=rows) as people:
        first = people.discovery_weights(256)
        assert people.aimed_weights(256, np.full(len(first), 102)).tolist() == first.tolist()
        more = people.aimed_weights(256, np.where(np.arange(len(first)) == 5, 1024, 102))
        assert more[5] > first[5]
        assert more.sum() < first.sum()


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("engine", ["lists", "memory", "disk"])
def test_no_answer_depends_on_what_was_asked_before(engine, rows, monkeypatch):
    """Engines keep tables and vectors between two questions: only where they are those that are asked for."""
    table = made_up(1500)
    if engine == "disk":
        monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)
    listed = nullcontext(ListedPeople(lists_of(table), rows=rows))
    with listed if engine == "lists" else people_of_table(table, "what", "who", rows=rows) as people:
        size = len(people.discovery_weights(256))
        some = [np.arange(size), np.arange(0, size, 3), np.arange(size)[::-1].copy()]
        asked = {}
        for number, places in enumerate(some):
            for factor in (1, 7):
                weights = 1 + np.arange(len(places), dtype=np.int64) % 50 * factor
                asked["lengths", number, factor] = partial(people.lengths, places, weights)
                for longest in (1.0, 300.0):
                    asked["sums", number, factor, longest] = partial(people.scaled_sums, places, weights, longest)
            asked["items", number] = partial(people.items, places)
            asked["held", number] = partial(people.holdings, places)
        for factor in (1, 7):
            asked["aimed", factor] = partial(
                people.aimed_weights, 256, 102 + np.arange(size, dtype=np.int64) % 99 * factor
            )

        def answer(name):
            found = asked[name]()
            if name[0] == "held":  # whose they are is in no order
                return sorted(index for _, indices in found for index in indices.tolist())
            return [values.tolist() for values in found] if name[0] == "lengths" else found.tolist()

        first = {name: answer(name) for name in asked}
        assert len({str(each) for each in first.values()}) > 15  # they are different answers
        few = [
            ("lengths", 0, 1),
            ("lengths", 0, 7),
            ("lengths", 1, 1),
            ("sums", 0, 1, 300.0),
            ("aimed", 7),
            ("held", 0),
        ]
        for one, other in combinations(few, 2):
            for name in (one, other, one):
                assert answer(name) == first[name], (one, other)


def test_of_a_person_with_many_items_256_take_part():
    table = pa.table({"who": ["one"] * 400, "what": [str(i) for i in range(400)]})
    with people_of_table(table, "what", "who") as people:
        weights = people.discovery_weights(256)
        assert len(weights) == 256
        assert {*weights.tolist()} == {(2**24 - 1) // 16}


@pytest.mark.parametrize("engine", ["lists", "memory", "disk"])
def test_people_with_many_items_choose_anew(engine, monkeypatch):
    """200 people have 400 to 599 of 600 items. Were the choice the same for all, most items would have no part."""
    sets = [[item for item in range(600) if (item - person) % 600 < 400 + person] for person in range(200)]
    if engine == "disk":
        monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)
    table = pa.table({"who": np.repeat(range(200), [*map(len, sets)]), "what": [item for own in sets for item in own]})
    with nullcontext(ListedPeople(sets)) if engine == "lists" else people_of_table(table, "what", "who") as people:
        weights = people.discovery_weights(256)
    # An item of n people has about 256/500 n of them: 66 to 128, give or take 7.
    assert len(weights) == 600
    assert weights.min() * 16 / 2**24 > 66 - 42
    assert weights.max() * 16 / 2**24 < 128 + 42


@pytest.mark.parametrize("texts", [True, False])
def test_which_items_take_part_depends_on_the_person_alone(monkeypatch, texts):
    """Other people's rows, before and after, change the numbers of items, and must not change the choice."""
    monkeypatch.setattr("discreet.engines.numbers._fresh_seed", lambda: 12345)
    name = str if texts else int
    own = pa.table({"who": [name(1)] * 400, "what": [name(i) for i in range(400)]})
    other = pa.table({"who": [name(2)] * 90, "what": [name(i) for i in range(399, 309, -1)]})
    chosen = []
    for tables in ([own], [other, own], [own, other]):
        with people_of_table(pa.concat_tables(tables), "what", "who") as people:
            weights = people.discovery_weights(256)
            names = people.items(np.arange(len(weights))).to_pylist()
        alone = (2**24 - 1) // 16
        extra = int((2**24 - 1) / 90**0.5)
        chosen.append({n for n, weight in zip(names, weights, strict=True) if weight in (alone, alone + extra)})
    assert len(chosen[0]) == 256
    assert chosen[0] == chosen[1] == chosen[2]


def test_any_table():
    table = made_up(500)
    frame = table.to_pandas()
    expected = None
    for data in (
        table,
        table.to_reader(),
        frame,
        pl.from_arrow(table),
        pl.from_arrow(table).lazy(),
        frame.to_dict("list"),
    ):
        with people_of_table(data, "what", "who") as people:
            found = everything(people, False)
        expected = expected or found
        assert found == expected


def test_lists_are_people():
    lists = [["a", "b", "a"], ["a"], [], ["c"]]
    with people_of_table(pa.table({"tags": lists}), "tags") as people:
        assert everything(people, False) == everything(ListedPeople(lists), False)


@pytest.mark.parametrize(
    "values",
    [
        [1, -2],
        [2**63, 5],
        [b"x", b"\xff"],
        [True, False],
        [datetime.date(2026, 1, 2), datetime.date(1969, 12, 31)],
    ],
)
def test_items_and_people_of_any_scalar_type(values):
    kind = pa.uint64() if values[0] == 2**63 else None
    table = pa.table({"who": pa.array(np.repeat(values, 2).tolist(), kind), "what": pa.array(values * 2, kind)})
    rows = events_of(table).rows("what", user="who")
    with people_of(rows) as people:
        items = people.items(np.arange(len(people.discovery_weights(256))))
    items = items if rows.keys is None else rows.keys.items(items)
    assert sorted(items.to_pylist()) == sorted(values)


@pytest.mark.parametrize("column", ["who", "what"])
def test_floats_are_refused_since_one_missing_value_makes_them_of_whole_numbers(column):
    frame = pd.DataFrame({"who": [1, 2, 3], "what": [5, 5, 5]})
    frame.loc[2, column] = None
    with pytest.raises(dc.DataError, match="Int64"):
        people_of_table(frame, "what", "who", nulls="skip")
    with people_of_table(frame.astype("Int64"), "what", "who", nulls="skip") as people:
        assert people.items(np.arange(len(people.discovery_weights(256)))).to_pylist() == [5]


def test_null_lists_over_items_are_left_out():
    texts, offsets = pa.array(["a", "b", "hidden", "c"]), pa.array([0, 2, 3, 4], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, texts, mask=pa.array([False, True, False]))
    with people_of_table(pa.table({"tags": lists}), "tags", nulls="skip") as people:
        assert everything(people, False) == everything(ListedPeople([["a", "b"], ["c"]]), False)


@pytest.mark.parametrize("odd", ["another x", b"z", 7, 1.5])
@pytest.mark.parametrize("make", [pl.DataFrame, dict], ids=["frame", "dict"])
def test_python_objects_in_polars_are_read_and_not_their_addresses(make, odd):
    whats = pl.Series(["x"] * 300 + [odd], dtype=pl.Object)
    whos = pl.Series([*range(300), "one more"], dtype=pl.Object)
    table = make({"what": whats, "who": whos})
    assert dc.top_k(table, 3, dc.Budget(1.0, 1e-6), column="what", user="who").items == ["x"]
    assert dc.top_k(table, 3, dc.Budget(1.0, 1e-6), column="what").items == ["x"]


def test_subclasses_of_frames_are_frames():
    class Frame(pd.DataFrame):
        pass

    table = Frame({"what": pd.Series(["x"] * 300 + [b"z"], dtype=object), "who": range(301)})
    assert dc.top_k(table, 3, dc.Budget(1.0, 1e-6), column="what", user="who").items == ["x"]
    assert dc.top_k(table, 3, dc.Budget(1.0, 1e-6), column="what").items == ["x"]


def test_what_is_no_table_is_refused_by_us():
    frame = pd.DataFrame({"what": ["x"] * 4, "who": [1, 2, 1, 2]})
    for grouped in (frame.groupby("who"), frame.groupby("who").what):
        with pytest.raises(dc.DataError):
            dc.top_k(grouped, 3, dc.Budget(1.0, 1e-6), column="what", user="who")


def test_long_items_are_left_out():
    table = pa.table({"who": ["a", "a"], "what": ["x" * 4097, "y" * 4096]})
    with people_of_table(table, "what", "who") as people:
        assert len(people.discovery_weights(256)) == 1


@pytest.mark.parametrize("column", ["who", "what"])
def test_nulls(column):
    table = pa.table({"who": ["a", "b", "c"], "what": ["x", "y", "z"]})
    values = table[column].to_pylist()
    values[1] = None
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    with pytest.raises(dc.DataError, match="nulls"):
        people_of_table(table, "what", "who")
    with people_of_table(table, "what", "who", nulls="skip") as people:
        assert len(people.discovery_weights(256)) == 2


def failing_queries(secret):
    """Tables that are computed when they are read, and fail, at once or late."""
    last = f"CASE WHEN range = 400000 THEN '{secret}' ELSE '5' END"
    lazy = pl.LazyFrame({"what": [secret], "who": [1]}).with_columns(pl.col("what").cast(pl.Int64))

    def batches(number):
        yield from [pa.record_batch({"what": ["a"], "who": [1]})] * number
        raise ValueError(secret)

    schema = pa.schema([("what", pa.string()), ("who", pa.int64())])
    return [
        lambda: duckdb.sql(f"SELECT '{secret}'::INT AS what, 1 AS who"),
        lambda: duckdb.sql(f"SELECT ({last})::INT AS what, range AS who FROM range(500000)"),
        lambda: lazy,
        lambda: pa.RecordBatchReader.from_batches(schema, batches(0)),
        lambda: pa.RecordBatchReader.from_batches(schema, batches(1)),
    ]


def test_bad_input_says_nothing_of_the_data():
    secret = "my-secret-item"
    for bad in (
        lambda: people_of_table(pa.table({"who": [secret], "what": [[{"a": secret}]]}), "what", "who"),
        lambda: people_of_table({"who": [secret, 1], "what": [secret]}, "what", "who"),
        lambda: people_of_table(pd.DataFrame({"who": [[secret], {secret}], "what": ["a", "b"]}), "what", "who"),
        lambda: people_of_table([secret], "what", "who"),
        lambda: people_of_table(secret, "what", "who"),
        lambda: people_of_table(pa.table({"what": [secret]}), "what", "nobody"),
        *(lambda query=query: people_of_table(query(), "what", "who") for query in failing_queries(secret)),
        *(
            lambda query=query: dc.top_k(query(), 3, dc.Budget(1.0, 1e-6), column="what")
            for query in failing_queries(secret)
        ),
    ):
        with pytest.raises(dc.DiscreetError) as caught:
            bad()
        assert secret not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("memory", ["", "much", "2", "-1GB", "2GB; drop table x"])
def test_memory_must_be_a_size(memory):
    with pytest.raises(dc.ParameterError, match="memory must be a size"):
        people_of_table(made_up(10), "what", "who", memory=memory)


@pytest.mark.parametrize("memory", ["1MB", "10MB", "200MB", "399MB"])
def test_too_little_memory_is_said_before_anything_is_read(memory):
    def batches():
        raise AssertionError("read")
        yield

    reader = pa.RecordBatchReader.from_batches(made_up(1).schema, batches())
    with pytest.raises(dc.ParameterError, match=f"memory limit of {memory} is too small: .* at least 400MB"):
        people_of_table(reader, "what", "who", memory=memory)


def test_names_that_do_not_fit_are_said():
    names = pa.table({"who": [f"{number:0500}" for number in range(250_000)], "what": [1] * 250_000})
    with pytest.raises(dc.DiscreetError, match="memory limit of 400MB is too small: the names"):
        people_of_table(names, "what", "who", memory="400MB")


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("kind", [str, int])
def test_out_of_core_as_in_memory(rows, kind, monkeypatch):
    random = np.random.default_rng(5)
    users, items = random.integers(-300, 300, 20_000), np.minimum(random.zipf(1.3, 20_000), 400) - 200
    table = pa.table({"who": [kind(user) for user in users], "what": [kind(item) for item in items]})
    found = []
    for memory in ("2GB", None):
        if memory is None:
            monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)
        with people_of_table(table.to_reader(100), "what", "who", rows=rows, memory=memory) as people:
            assert type(people).__name__ == ("DuckPeople" if memory is None else "MemoryPeople")
            found.append(PersonVectors(BUDGET, 10, rows=rows)(people, seeded_source(3)).to_payload())
            found.append(everything(people, rows))
    assert found[:2] == found[2:]


@pytest.mark.parametrize("kind", [str, int])
def test_rows_that_stop_fitting_go_out_of_core(kind, monkeypatch):
    """Numbers that were given in memory and values that come later are the same people and items."""
    numbers = range(9000)
    table = pa.table({"who": [kind(n % 700) for n in numbers], "what": [kind(n % 13) for n in numbers]})
    with people_of_table(table, "what", "who") as people:
        expected = everything(people, False)
    for rows in (10, 3000, 8999):
        monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 32 * rows)
        monkeypatch.setattr("discreet.engines.numbers.Numbers.bytes", 0)
        with people_of_table(table.to_reader(100), "what", "who") as people:
            assert type(people).__name__ == "DuckPeople"
            assert everything(people, False) == expected


def test_the_private_folder_goes_also_after_a_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)  # all is counted out of core
    # A process of its own: a copy of this one would wait for threads of DuckDB and pyarrow that it does not have.
    program = """
import os, pyarrow as pa
from discreet.engines.exact_people import Memory, people_of
from discreet.events.tables import events_of
Memory.room = 0
rows = events_of(pa.table({"who": [1, 2, 3], "what": ["a", "b", "a"]})).rows("what", user="who")
people = people_of(rows)
os._exit(9)  # no clean-up
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=120).returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o077 == 0
    with people_of_table(made_up(10), "what", "who"):
        (mine,) = tmp_path.iterdir()
        assert mine != left
        with people_of_table(made_up(10), "what", "who"):
            assert Path(mine).exists()  # another's folder in use stays
    assert not list(tmp_path.iterdir())


def test_a_command_removes_what_a_crash_left(tmp_path):
    """Also where nothing else needs `tempfile`, so that it is not loaded."""
    (tmp_path / "discreet-people-left").mkdir()
    (tmp_path / "discreet-other").mkdir()
    (tmp_path / "log.csv").write_text("who,what\nann,tea\n")
    words = ["top", tmp_path / "log.csv", "--column", "what", "--user", "who", "--epsilon", "1", "--delta", "1e-9"]
    command = [sys.executable, "-c", "from discreet.cli import main; main()", *words]
    subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, timeout=120)
    assert {each.name for each in tmp_path.iterdir()} == {"discreet-other", "log.csv"}


def with_values(rows=6000):
    random = np.random.default_rng(7)
    amounts = np.round(random.gamma(2.0, 20.0, rows), 2)
    amounts[:6] = [0.0, 1e300, -3.0, np.inf, -np.inf, 250.0]
    return made_up(rows).append_column("price", pa.array(amounts))


def test_sums_out_of_core_in_memory_and_of_plain_lists_are_the_same(monkeypatch):
    table, within = with_values(), ValueRange(0, 100)
    people: dict[str, tuple[list, list]] = {}
    for user, item, price in zip(*(table[name].to_pylist() for name in ("who", "what", "price")), strict=True):
        items, prices = people.setdefault(user, ([], []))
        items.append(item)
        prices.append(price)
    listed = ListedPeople(
        [items for items, _ in people.values()], values=[prices for _, prices in people.values()], value_range=within
    )
    expected = everything(listed, False)
    for room in (10**9, 40_000, 0):
        monkeypatch.setattr("discreet.engines.exact_people.Memory.room", room)
        for threads in (1, 8):
            with people_of_table(
                table.to_reader(123), "what", "who", values="price", value_range=within, threads=threads
            ) as found:
                assert type(found).__name__ == ("MemoryPeople" if room == 10**9 else "DuckPeople")
                assert everything(found, False) == expected


def test_sums_are_near_the_truth_and_say_what_they_are():
    table = with_values(60_000)
    release = dc.top_k(table, 5, dc.Budget(4.0, 1e-6), column="what", user="who", value="price", value_range=(0, 100))
    cut = np.clip(table["price"].to_numpy(), 0, 100)
    names = np.array(table["what"].to_pylist())
    assert release.counted == "sums"
    assert "sums of the values" in release.notes()[0]
    assert '"counted": "sums"' in release.to_json()
    for item, count in zip(release.items, release.counts.tolist(), strict=True):
        assert count == pytest.approx(cut[names == item].sum() * (1 - release.left_out.value), rel=0.1)


@pytest.mark.parametrize("kind", [pa.int16(), pa.uint64(), pa.float32(), pa.decimal128(22, 2)])
def test_values_of_any_type_of_number(kind):
    table = pa.table({"who": ["a", "b"], "what": ["x", "x"], "price": pa.array([3, 4]).cast(kind)})
    with people_of_table(table, "what", "who", values="price", value_range=ValueRange(0, 8)) as people:
        people.discovery_weights(256)
        lengths = people.lengths(np.array([0]), np.array([1]))[0]
    assert lengths.tolist() == [(3 * 2.0**17) ** 2, (4 * 2.0**17) ** 2]


def test_rows_without_a_value_are_refused_or_left_out_and_what_is_no_number_is_left_out():
    missing = pa.table({"who": ["a", "b", "c"], "what": ["x", "y", "x"], "price": [1.0, None, 2.0]})
    with pytest.raises(dc.DataError, match="nulls"):
        people_of_table(missing, "what", "who", values="price", value_range=ValueRange(0, 8))
    odd = missing.set_column(2, "price", pa.array([1.0, float("nan"), 2.0]))
    for table, nulls in ((missing, "skip"), (odd, "error")):
        with people_of_table(table, "what", "who", values="price", value_range=ValueRange(0, 8), nulls=nulls) as people:
            assert people.items(np.arange(len(people.discovery_weights(256)))).to_pylist() == ["x"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"value": "price"}, "value_range"),
        ({"value_range": (0, 1)}, "value_range"),
        ({"value": "price", "value_range": (-1, 1)}, "0 <= LOW < HIGH"),
        ({"value": "price", "value_range": (5, 5)}, "0 <= LOW < HIGH"),
        ({"value": "price", "value_range": (0, float("inf"))}, "0 <= LOW < HIGH"),
        ({"value": "price", "value_range": (0, 0.5)}, "HIGH must be from 1"),
        ({"value": "price", "value_range": (0, 1e12)}, "HIGH must be from 1"),
        ({"value": "price", "value_range": ("a", "b")}, "two numbers"),
        ({"value": "price", "value_range": (1, 2, 3)}, "two public numbers"),
        ({"value": "price", "value_range": (0, 1), "count": "rows"}, "count rows cannot be combined with value"),
        ({"value": "cost", "value_range": (0, 1)}, "no column 'cost'"),
        ({"value": "what", "value_range": (0, 1)}, "different columns"),
        ({"value": "note", "value_range": (0, 1)}, "must hold numbers"),
    ],
)
def test_what_cannot_be_summed_is_refused(options, says):
    table = with_values(10).append_column("note", pa.array(["text"] * 10))
    with pytest.raises(ValueError, match=says):
        dc.top_k(table, 5, BUDGET, column="what", user="who", **options)


def test_values_are_for_people():
    with pytest.raises(dc.ParameterError, match="values"):
        dc.top_k(with_values(10), 5, BUDGET, column="what", value="price", value_range=(0, 1))


LISTS = [["a", "b"], ["b", "c"], ["a", "b"]] * 100
KINDS = (
    pa.list_(pa.string()),
    pa.large_list(pa.string()),
    pa.list_(pa.string(), 2),
    pa.list_view(pa.string()),
    pa.large_list_view(pa.string()),
)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_kind_of_lists(kind):
    column = pa.array(LISTS, kind)
    with people_of_table(pa.table({"tags": column[1:]}), "tags") as people:
        assert everything(people, False) == everything(ListedPeople(LISTS[1:]), False)
    table = pa.table({"tags": column, "other": [0] * len(column)})
    for release in (
        dc.top_k(column, 5, BUDGET, unit=dc.User()),
        dc.top_k(table, 5, BUDGET, column="tags", unit=dc.User()),
        dc.top_k(column, 5, BUDGET, unit=dc.User(2)),
    ):
        assert {*release.items} == {"a", "b", "c"}


def test_a_frame_of_one_column_of_lists():
    frame = pl.DataFrame({"tags": LISTS})
    assert {*dc.top_k(frame, 5, BUDGET, unit=dc.User()).items} == {"a", "b", "c"}


def test_lists_take_what_tables_take():
    release = dc.top_k(LISTS, 5, BUDGET, unit=dc.User(), max_items=2, count="rows", memory="1GB")
    assert release.counted == "rows"
    assert release.guarantee.unit == dc.User(2)


@pytest.mark.parametrize("flat", [["a"] * 9, pa.array(["a"] * 9), pa.table({"x": ["a"]}), pl.DataFrame({"x": ["a"]})])
def test_single_items_do_not_say_whose_they_are(flat):
    with pytest.raises(ValueError, match=r"single items do not say whose|each row must be the list"):
        dc.top_k(flat, 5, BUDGET, unit=dc.User())


def test_people_and_items_are_two_columns():
    with pytest.raises(dc.ParameterError, match="different columns"):
        dc.top_k(made_up(10), 5, BUDGET, column="who", user="who")


def test_values_in_any_table():
    table = with_values(500)
    frame = table.to_pandas()
    expected = None
    for data in (table, frame, frame.assign(other=[object()] * 500), pl.from_arrow(table), frame.to_dict("list")):
        with people_of_table(data, "what", "who", values="price", value_range=ValueRange(0, 50)) as people:
            found = everything(people, False)
        expected = expected or found
        assert found == expected


def test_errors_of_duckdb_are_told_without_its_words():
    """They quote the data."""
    for kind in (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfMemoryException):
        with pytest.raises(dc.DiscreetError) as told, _translated(Memory("1GB", 1)):
            raise kind("could not convert 'my rare disease'")
        assert "disease" not in "".join(traceback.format_exception(told.value))


def test_which_items_of_a_person_take_part_is_drawn_anew(monkeypatch):
    """Of 600 items 256: two choices agree with a chance below 1e-100, under a key of each."""
    table = pa.table({"who": [1] * 600, "what": range(600)})
    monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)

    def part():
        with people_of(events_of(table).rows("what", user="who")) as people:
            assert type(people).__name__ == "DuckPeople"
            weights = people.discovery_weights(256)
            assert len(weights) == 256
            return set(people.items(np.arange(256)).to_pylist())

    assert part() != part()


def test_nobody_is_cut_in_two_where_a_batch_ends(monkeypatch):
    table = pa.table(
        {"who": [number // 5 for number in range(12_000)], "what": [number % 7 for number in range(12_000)]}
    )

    def held():
        with people_of(events_of(table).rows("what", user="who"), together=True) as people:
            places = np.arange(len(people.discovery_weights(256)))
            found = []
            for sizes, indices in list(people.holdings(places)):
                parts = np.split(indices, np.cumsum(sizes)[:-1])
                found += [tuple(part.tolist()) for part in parts]
            return sorted(found)

    in_memory = held()
    monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)
    monkeypatch.setattr("discreet.engines.duck_people._BATCH", 2048)
    assert held() == in_memory


def test_rows_without_a_value_are_nobodys():
    """Whoever has an item in such rows alone does not have it."""
    table = pa.table({"who": [1, 1, 2, 3], "what": [*"aabc"], "n": [1.0, float("nan"), float("nan"), 2.0]})
    rows = events_of(table).rows("what", user="who", value="n")
    with people_of(rows, value_range=ValueRange(0, 10)) as people:
        weights = people.discovery_weights(256)
        assert people.items(np.arange(len(weights))).to_pylist() == ["a", "c"]


@pytest.mark.parametrize("table", [made_up(3000), made_up(0)], ids=["rows", "none"])
def test_nothing_is_left_where_rows_cannot_be_read_to_their_end(tmp_path, monkeypatch, table):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)

    def batches():
        yield from table.to_batches(100)
        raise dc.DataError("the rest is damaged")

    rows = events_of(pa.RecordBatchReader.from_batches(table.schema, batches())).rows("what", user="who")
    with pytest.raises(dc.DataError):
        people_of(rows)
    assert list(tmp_path.iterdir()) == []


def test_places_are_in_the_order_of_the_items(monkeypatch):
    """However the work was split, and in memory as out of core: noise is drawn place by place."""
    random = np.random.default_rng(2)
    table = pa.table({"who": random.integers(0, 900, 30_000), "what": random.permutation(30_000) % 2000})
    for room in (None, 0):
        if room is not None:
            monkeypatch.setattr("discreet.engines.exact_people.Memory.room", room)
        with people_of_table(table, "what", "who") as people:
            found = people.items(np.arange(len(people.discovery_weights(256)))).to_pylist()
        assert found == sorted({*table.column("what").to_pylist()})
