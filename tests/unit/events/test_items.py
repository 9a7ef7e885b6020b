"""The border where items enter: what one row can decide, and what leaves in an error."""

from __future__ import annotations

import logging
import traceback
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import multiparty as mp
from discreet import published
from discreet.engines.sql import where as sql_where
from discreet.events.files import Files
from discreet.events.items import (
    all_utf8,
    checked,
    item_of,
    objects_of,
    read,
    readable,
    without_null_elements,
)
from discreet.events.tables import events_of

BUDGET = dc.Budget(1.0, 1e-6)
PURE = dc.Budget(1.0)
SECRET = "marked-item-4711"


# ---- the type of what is published ----------------------------------------------------------------------------------


def column_of(items, form):
    return {
        "list": lambda: items,
        "generator": lambda: (item for item in items),
        "object array": lambda: np.array(items, dtype=object),
        "object series": lambda: pd.Series(items, dtype=object),
        "category": lambda: pd.Series(pd.Categorical(items)),
        "polars objects": lambda: pl.Series(items, dtype=pl.Object),
    }[form]()


FORMS = ["list", "generator", "object array", "object series", "category", "polars objects"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("workers", [None, 2])
def test_one_row_of_another_kind_changes_no_type(form, workers):
    for usual, odd in (("x", b"z"), ("x", 5), (b"x", "z"), (5, "z"), (5, 2**63 + 1), (-5, 2**64 - 1), (5, "y" * 5000)):
        for place in (0, 300):
            items = [usual] * 300
            items.insert(place, odd)
            with_odd = dc.top_k(column_of(items, form), 5, BUDGET, workers=workers)
            without = dc.top_k(column_of([usual] * 300, form), 5, BUDGET, workers=workers)
            assert with_odd.items == without.items == [usual]
            assert type(with_odd.items[0]) is type(usual)
            assert with_odd.to_arrow().schema == without.to_arrow().schema


def test_objects_of_other_libraries_are_read_by_every_reader_and_not_guessed_at():
    objects = ["x"] * 300 + [b"z", 7, 1.5]
    for column in (
        pl.Series(objects, dtype=pl.Object),
        pl.Series(objects, dtype=pl.Object).to_frame(),
        pd.Series(objects, dtype=object),
    ):
        sketch = dc.MisraGries(8)
        sketch.update(column)
        raw = sketch.not_private_counts()
        assert dict(zip(raw.items.to_pylist(), raw.counts.tolist(), strict=True)) == {"x": 300, b"z": 1, 7: 1}
        hitters = dc.continual.HeavyHitters(4, BUDGET)
        hitters.add(column)
        assert hitters.step().items == ["x"]
    users = pl.Series([["x"]] * 300 + [[b"z"]], dtype=pl.Object)
    assert dc.top_k(users, 5, dc.Budget(20.0, 1e-6), unit=dc.User(1)).items == ["x"]


@pytest.mark.parametrize("m", [1, 2, 9])
@pytest.mark.parametrize("mechanism", ["auto", "user", "offset"])
def test_one_users_row_changes_no_type(m, mechanism):
    for odd in ([b"z"], [7], [1.5], ["\ud800"], ["y" * 5000], [2**70], [], [True]):
        for place in (0, 300):
            lists = [["x"]] * 300
            lists.insert(place, odd)
            for column in (lists, pd.Series(lists)):
                published = dc.top_k(column, 5, dc.Budget(20.0, 1e-6), unit=dc.User(m), mechanism=mechanism)
                assert published.items == ["x"]


def test_several_kinds_that_pass_are_published_as_they_are():
    items = ["1"] * 400 + [b"1"] * 300 + [1] * 200 + [2**63] * 100
    published = dc.top_k(items, 9, dc.Budget(50.0, 1e-6))
    assert published.items == ["1", b"1", 1, 2**63]
    again = dc.Release.from_payload(published.to_payload())
    assert again.items == published.items
    assert again.to_payload() == published.to_payload()
    assert published.to_pandas()["item"].tolist() == ["1", "31", "1", str(2**63)]
    assert [row["item"] for row in published.to_dict()["items"]] == ["1", "31", 1, 2**63]


def test_a_large_integer_after_many_rows():
    items = [5] * 70_000 + [2**63 + 5] + [-5] * 70_000
    assert sorted(dc.top_k(items, 5, BUDGET).items) == [-5, 5]


# ---- what is refused ---------------------------------------------------------------------------------------------


def test_what_is_no_column_says_so():
    for wrong in (Counter("aab"), {"a": 1}, "text", b"text", 5, 1.5, None):
        with pytest.raises(dc.DataError):
            dc.top_k(wrong, 2, BUDGET)
        with pytest.raises(dc.DataError):
            dc.top_k(wrong, 2, BUDGET, unit=dc.User(2))
        with pytest.raises(dc.DataError):
            dc.continual.HeavyHitters(4, BUDGET).step(wrong)
        with pytest.raises(dc.DataError):
            dc.continual.Histogram(4, BUDGET, max_items_per_event=1).step(wrong)


def test_lists_of_users_from_any_library():
    rows = [["a", "b"], ["a"], []] * 100
    frame = pd.DataFrame(
        {"user": [u for u, row in enumerate(rows) for _ in row], "item": [i for row in rows for i in row]}
    )
    forms = [
        rows,
        pd.Series(rows),
        frame.groupby("user")["item"].unique(),
        frame.groupby("user")["item"].agg(list),
        pl.Series(rows),
        pa.array(rows),
        pd.Series(rows, dtype=pd.ArrowDtype(pa.list_(pa.string()))),
        [np.array(row, dtype=object) for row in rows],
        [pd.Series(row, dtype=object) for row in rows],
        [pa.array(row, pa.string()) for row in rows],
        [pl.Series(row, dtype=pl.String) for row in rows],
        [set(row) for row in rows],
        (tuple(row) for row in rows),
    ]
    for form in forms:
        assert set(dc.top_k(form, 5, BUDGET, unit=dc.User(2)).items) == {"a", "b"}


# ---- what leaves in an error ---------------------------------------------------------------------------------------


class Quoting:
    """An object whose every use fails with the marked item in the message."""

    def __getattr__(self, name):
        if name.startswith("__") or name in ("to_pylist", "tolist", "to_list", "dtype", "ndim", "columns", "schema"):
            raise AttributeError(name)
        raise ValueError(SECRET)

    def __index__(self):
        raise ValueError(SECRET)

    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError(SECRET)


class QuotingRow(list):
    def tolist(self):
        raise ValueError(SECRET)


def failing_reader():
    def batches():
        yield pa.record_batch({"x": [SECRET]})
        raise ValueError(SECRET)

    return pa.RecordBatchReader.from_batches(pa.schema([("x", pa.string())]), batches())


INVALID = pa.Array.from_buffers(pa.string(), 2, pa.array([SECRET.encode(), b"\xff"]).buffers())
INPUTS = {
    "lone surrogate": lambda: [SECRET, SECRET + "\ud800"],
    "only surrogates": lambda: [SECRET + "\ud800"],
    "too long": lambda: [SECRET * 1000],
    "mixed": lambda: [SECRET, SECRET.encode(), 5, 1.5, None, 2**70],
    "lists": lambda: [[SECRET], [SECRET, 5], [SECRET + "\ud800"], None],
    "a list and an item": lambda: [[SECRET], SECRET],
    "dicts": lambda: [{SECRET: SECRET}],
    "tuples": lambda: [(SECRET, 1)],
    "a mapping": lambda: {SECRET: 1},
    "one string": lambda: SECRET,
    "objects": lambda: pd.Series([SECRET, 1, [SECRET], {SECRET: 1}, None], dtype=object),
    "series of series": lambda: pd.Series([pd.Series([SECRET]), pd.Series([5])]),
    "arrays of arrays": lambda: pd.Series([np.array([SECRET, 5], dtype=object), np.array([1.5])]),
    "category": lambda: pd.Series(pd.Categorical([SECRET, 5])),
    "rows of Categorical": lambda: [pd.Categorical([SECRET, "b"])],
    "rows of Arrow": lambda: [pa.array([SECRET]), pa.array([1])],
    "rows of polars": lambda: [pl.Series([SECRET]), pl.Series([1])],
    "polars objects": lambda: pl.Series([SECRET, object()], dtype=pl.Object),
    "a frame": lambda: pd.DataFrame({"a": [SECRET], "b": [SECRET]}),
    "a table": lambda: pa.table({"a": [SECRET], "b": [SECRET]}),
    "structs": lambda: pa.array([{"a": SECRET, "b": 1}]),
    "invalid text": lambda: INVALID,
    "lists of invalid text": lambda: pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), INVALID),
    "dictionary of invalid text": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1]), INVALID),
    "floats": lambda: pa.array([1.5]),
    "a union": lambda: pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([SECRET])]
    ),
    "quoting objects": lambda: [Quoting(), SECRET],
    "a quoting column": Quoting,
    "quoting rows": lambda: [[Quoting()], QuotingRow([SECRET])],
    "a reader that fails": failing_reader,
    "numpy text": lambda: np.array([SECRET + "\ud800"]),
    "numpy objects": lambda: np.array([[SECRET], 1], dtype=object),
    "two dimensions": lambda: np.array([[SECRET]]),
}


def encode(protocol):
    return lambda data: protocol.party(0).encode(data, nulls="skip")


ROWS = {"x": ["a", "b"], "y": [1, 2]}


def table(column):
    """A table with this column, if it is one; else it is the table."""
    try:
        size = len(column)
    except (TypeError, ValueError):
        return column
    return {"x": column, "y": list(range(size)), "z": ["p"] * size}


def people_over_time():
    return dc.continual.Histogram(4, BUDGET, unit=dc.User(2))


def weighted():
    return dc.continual.Histogram(
        4, BUDGET, mechanism="factorised", universe=["a", "b"], max_items_per_event=2, max_weight=9
    )


ENTRIES = {
    "MisraGries": lambda data: dc.MisraGries(4).update(data, nulls="skip"),
    "strict": lambda data: dc.MisraGries(4).update(data, bad_items="error"),
    "UserMisraGries": lambda data: dc.UserMisraGries(4, 2, oversized="sample").update(data, nulls="skip"),
    "CountMin": lambda data: dc.CountMin(8, 3, tracked=2).update(data),
    "places": lambda data: dc.CountMin(8, 3).estimate_many(data),
    "update_counts": lambda data: dc.MisraGries(4).update_counts(data, np.ones(2, np.int64)),
    "batches": lambda data: dc.ShardedMisraGries(4, 2).update_batches([data], nulls="skip"),
    "top_k": lambda data: dc.top_k(data, 3, BUDGET, nulls="skip"),
    "top_k of users": lambda data: dc.top_k(data, 3, BUDGET, unit=dc.User(2), nulls="skip"),
    "top_k of users, sketched": lambda data: dc.top_k(data, 3, BUDGET, unit=dc.User(2), mechanism="user"),
    "top_k in shards": lambda data: dc.top_k(data, 3, BUDGET, workers=2),
    "histogram": lambda data: dc.continual.Histogram(4, BUDGET, max_items_per_event=2).step(data),
    "histogram of a domain": lambda data: dc.continual.Histogram(4, PURE, ["a"], 2).step(data),
    "hitters": lambda data: dc.continual.HeavyHitters(4, BUDGET).step(data),
    "distinct": lambda data: dc.pan.DistinctCount(budget=PURE).update(data, nulls="skip"),
    "density": lambda data: dc.pan.Density(["a", "b"], budget=PURE).update(data),
    "words": encode(mp.LocalSketch("r", PURE, "strings", columns=3)),
    "independent": encode(mp.IndependentSketches("r", PURE, ["a", "b"], items_per_column=2.0)),
    "merged": encode(published.MergedSketch("r", PURE, "strings", columns=16)),
    "separation": encode(mp.Separation("r", PURE, ["a", "b"], items_per_column=4.0, items_per_entry=3)),
    "merged Misra-Gries": encode(published.MergedMisraGries("r", PURE, ["a", "b"], capacity=3)),
    "hierarchy": encode(mp.Hierarchy("r", PURE, mp.Strings("ab", 3))),
    "numbers": encode(mp.LocalHashing("r", PURE, "integers")),
    "listed": encode(mp.HadamardResponse("r", PURE, ["a", "b"])),
    "a range": encode(mp.HadamardResponse("r", PURE, 10)),
    "continual counter": lambda data: dc.continual.Counter(4, BUDGET).step(data),
    "continual counters": lambda data: dc.continual.Counter(4, BUDGET, size=2).step(data),
    "continual distinct": lambda data: dc.continual.DistinctCount(4, BUDGET).step(data),
    "histogram of people": lambda data: people_over_time().step(data, users=["u"] * 2),
    "histogram of odd people": lambda data: people_over_time().step(["a"] * 2, users=data),
    "histogram of weights": lambda data: weighted().step(["a", "b"], weights=data),
    "weighted histogram": lambda data: weighted().step(data, weights=[1, 2]),
    "hitters in a window": lambda data: dc.continual.HeavyHitters(4, BUDGET, window=2).step(data, nulls="skip"),
    "counts": lambda data: dc.MisraGries(4).update_counts(["a", "b"], data),
    "one item": lambda data: dc.MisraGries(4).estimate(data),
    "SpaceSaving": lambda data: dc.SpaceSaving(4).update(data, nulls="skip"),
    "CountSketch": lambda data: dc.CountSketch(8, 3, tracked=2).update(data, nulls="skip"),
    "ExactCounts": lambda data: dc.ExactCounts().update(data, nulls="skip"),
    "cropped mean": lambda data: dc.pan.CroppedMean(["a", "b"], 2, budget=PURE).update(data),
    "heavy fraction": lambda data: dc.pan.HeavyFraction(["a", "b"], 2, budget=PURE).update(data),
    "incidence": lambda data: dc.pan.Incidence(range(9), 2, budget=PURE).update(data, nulls="skip"),
    "modular incidence": lambda data: dc.pan.ModularIncidence(range(9), 2, budget=PURE).update(data, nulls="skip"),
    "inner product": lambda data: published.InnerProductCounter(4, budget=PURE).update(data),
    "votes": lambda data: published.InnerProductCounter(4, budget=PURE).vote(data, data),
    "grid": encode(mp.GridHierarchy("r", PURE, (4, 3), branching=2, options={"items_per_column": 0.25})),
    "universe": lambda data: dc.central.Universe(data),
    "groups": lambda data: dc.top_k(ROWS, 3, BUDGET, column="x", by="y", groups=data),
    "top_k of a table": lambda data: dc.top_k(table(data), 3, BUDGET, column="x", nulls="skip"),
    "top_k of people": lambda data: dc.top_k(table(data), 3, BUDGET, column="x", user="y", nulls="skip"),
    "top_k of odd people": lambda data: dc.top_k(table(data), 3, BUDGET, column="y", user="x", nulls="skip"),
    "top_k of two": lambda data: dc.top_k(table(data), 3, BUDGET, column=["x", "y"], nulls="skip"),
    "top_k every": lambda data: dc.top_k(table(data), 3, BUDGET, column="y", every="1d", time="x", nulls="skip"),
    "top_k of sums": lambda data: dc.top_k(
        table(data), 3, BUDGET, column="y", user="z", value="x", value_range=(0, 5), nulls="skip"
    ),
    "top_k of lists": lambda data: dc.top_k(data, 3, BUDGET, unit=dc.User(), nulls="skip"),
    "top_k of batches": lambda data: dc.top_k([data, data], 3, BUDGET, unit=dc.User(), nulls="skip"),
    "count of rows": lambda data: dc.count(data, PURE),
    "count": lambda data: dc.count(table(data), PURE, user="x", nulls="skip"),
    "count of values": lambda data: dc.distinct(table(data), PURE, column="x", nulls="skip"),
    "count of values of people": lambda data: dc.distinct(table(data), PURE, column="x", user="y", nulls="skip"),
    "histogram of a list": lambda data: dc.histogram(data, PURE, universe=["a"], nulls="skip"),
    "histogram of a list of people": lambda data: dc.histogram(
        table(data), PURE, column="x", user="y", max_items=1, universe=["a"], nulls="skip"
    ),
    "quantiles": lambda data: dc.quantiles(data, PURE, range=(0, 1), nulls="skip"),
    "quantiles of people": lambda data: dc.quantiles(
        table(data), PURE, column="y", range=(0, 1), user="x", nulls="skip"
    ),
    "stream": lambda data: mp.Stream("r", PURE, ["a", "b"], epoch_steps=4, horizon=8, columns=3).party(0).feed(data),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_item_leaves_in_an_error(entry, caplog):
    for name, make in INPUTS.items():
        caplog.clear()
        error = None
        try:
            with caplog.at_level(logging.DEBUG):
                ENTRIES[entry](make())
        except dc.DiscreetError as raised:
            error = raised
        except Exception as raised:
            pytest.fail(f"{name}: {type(raised).__name__} is not of this package")
        assert SECRET not in caplog.text, name
        if error is not None:
            assert SECRET not in "".join(traceback.format_exception(error)) + repr(error), name
            assert error.__context__ is None or error.__suppress_context__, name


def test_the_guard_lets_own_errors_and_interrupts_pass():
    for own in (dc.ParameterError("k"), MemoryError(), KeyboardInterrupt()):

        def fail(own=own):
            raise own

        with pytest.raises(type(own)):
            read([], fail)


def test_exceptions_of_the_callers_own_iterator_pass():
    def items():
        yield "a"
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        dc.top_k(items(), 2, BUDGET)


def test_item_of():
    for good in ("a", "", "é", b"\xff", 0, -(2**63), 2**64 - 1):
        assert item_of(good) == good
    assert item_of(np.int8(3)) == 3
    assert item_of(np.str_("a")) == "a"
    for bad in (1.5, True, np.bool_(True), None, "\ud800", 2**64, -(2**63) - 1, [1], bytearray(b"a"), Quoting()):
        assert item_of(bad) is None


# ---- memory that its owner fills anew ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda a: a, pa.array, memoryview, lambda a: pa.record_batch({"x": pa.array(a)})])
def test_batches_in_memory_that_is_filled_anew(wrap):
    """The next batch is asked for while the ones before it are counted."""
    buffer = np.empty(50_000, np.int64)

    def batches():
        for number in range(40):
            buffer[:] = number
            yield wrap(buffer)
        buffer[:] = -1

    summary = dc.ShardedMisraGries(100, 2)
    summary.update_batches(batches())
    assert summary.not_private_counts().to_dict() == dict.fromkeys(range(40), 50_000)


# ---- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [b"z", 7, 1.5, "\ud800", "y" * 5000, 2**70, [1], None])
def test_one_row_of_a_table_changes_no_type(odd):
    """Whether rows are protected or people; what Arrow makes of a column of objects plays no part."""
    items, users = ["x"] * 2000 + [odd], [*range(2000), 0]
    frame = pd.DataFrame({"u": users, "other": pd.Series([*range(2000), "o"], dtype=object)})
    frame["x"] = pd.Series(items, dtype=object)
    for table in (frame, {"u": users, "x": items}):
        assert dc.top_k(table, 3, dc.Budget(20.0, 1e-6), column="x", nulls="skip").items == ["x"]
        published = dc.top_k(table, 3, dc.Budget(20.0, 1e-6), column="x", user="u", nulls="skip")
        assert published.items == ["x"]
        assert published.to_arrow().schema.field("x").type == pa.large_string()
    odd_user = dc.top_k({"u": [*range(2000), odd], "x": items}, 3, BUDGET, column="x", user="u", nulls="skip")
    assert odd_user.items == ["x"]


@pytest.mark.parametrize("missing", [float("nan"), np.float64("nan"), None, pd.NA, pd.NaT])
def test_what_is_missing_in_a_column_of_objects_is_no_item(missing):
    assert objects_of(pd.Series(["a", missing, 3], dtype=object)) == ["a", None, 3]


def views(form, rows):
    """Lists of texts as newer writers have them: each text is a view of some bytes."""
    column = pa.array(rows, pa.list_(pa.string_view()))
    if form == "polars":
        return pl.DataFrame({"item": pl.Series(rows)})
    if form == "large":
        return pa.table({"item": column.cast(pa.large_list(pa.string_view()))})
    if form == "slice":
        return pa.table({"item": pa.array([["z"], *rows, None], pa.list_(pa.string_view())).slice(1, len(rows))})
    return pa.table({"item": column})


@pytest.mark.parametrize("form", ["polars", "plain", "large", "slice", "file"])
def test_lists_of_views_are_lists_of_texts(tmp_path, form):
    """Also where somebody has no list, or a null in one, which would end the question of all."""
    rows = [["a", "b"], None, ["a", None], [], ["c"]] * 30
    data = views(form, rows)
    if form == "file":
        with pa.ipc.new_file(tmp_path / "a.arrow", data.schema) as writer:
            writer.write_table(data)
        data = Files(str(tmp_path / "a.arrow"))
    expected = [["a", "b"], ["a"], [], ["c"]] * 30
    found = events_of(data).rows("item", lists=True, nulls="skip")
    assert [row for batch in found for row in batch.column("item").to_pylist()] == expected
    given = dc.read(str(tmp_path / "a.arrow")) if form == "file" else data
    release = dc.top_k(given, 3, dc.Budget(50.0, 1e-6), column="item", unit=dc.User(), nulls="skip")
    assert release.items[0] == "a"
    with pytest.raises(dc.DataError, match="no value in the column"):
        list(events_of(data).rows("item", lists=True))


def test_lists_of_views_may_be_beside_a_condition():
    table = pa.table({"item": ["a", "b", "a"], "more": pa.array([["x"], None, []], pa.list_(pa.string_view()))})
    found = events_of(table).rows("item", where=sql_where("item = 'a'"))
    assert [item for part in found.items() for item in part.to_pylist()] == ["a", "a"]


def dictionary(indices, values, kind):
    """Whatever the indices are: as a file may have them."""
    held = pa.Array.from_buffers(kind, len(indices), [None, pa.py_buffer(np.array(indices, kind.to_pandas_dtype()))])
    return pa.DictionaryArray.from_arrays(held, pa.array(values), safe=False)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8()], ids=str)
def test_an_index_outside_of_its_dictionary_reaches_nobody(kind):
    """The first one outside, too, and negative ones: what is read there is somebody else's memory."""
    signed = [] if kind == pa.uint8() else [-1, -128]
    for wrong in (2, 3, 100, *signed):
        for place in range(3):
            indices = [0, 1, 1]
            indices[place] = wrong
            batch = pa.record_batch([dictionary(indices, ["a", "b"], kind)], names=["item"])
            with pytest.raises(dc.DataError, match=r"rows\.arrow holds damaged columns; write or copy it again"):
                checked(batch, "item", "rows.arrow")
    good = pa.record_batch([dictionary([0, 1, 1], ["a", "b"], kind)], names=["item"])
    assert checked(good, "item", "rows.arrow").to_pylist() == ["a", "b", "b"]
    none = pa.record_batch([dictionary([], ["a"], kind)], names=["item"])
    assert checked(none, "item", "rows.arrow").to_pylist() == []


def test_a_row_without_a_value_is_not_one_that_cannot_be_read():
    """In a dictionary whose first value is bad: a null stands for none of them."""
    bad = pa.array([b"\xff", b"a"]).view(pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array([None, 1, 0, None]), bad)
    assert readable(column, None, check_text=True).tolist() == [True, True, False, True]
    long = pa.DictionaryArray.from_arrays(pa.array([None, 1, 0]), pa.array(["x" * 9, "a"]))
    assert readable(long, 8, check_text=False).tolist() == [True, True, False]
    assert readable(long.slice(0, 2), 9, check_text=True) is None


@pytest.mark.parametrize("where", [0, 3, 7, 8, 9, 15, 16, 17])
def test_a_byte_above_ascii_is_looked_at_wherever_it_is(where):
    """Text is looked through in words of eight bytes: before, between and after them, and in slices."""
    for length in range(where + 1, 20):
        text = bytearray(b"a" * length)
        text[where] = 0xFF
        column = pa.array([b"ok", bytes(text), b"b"]).view(pa.string())
        assert not all_utf8(column)
        assert readable(column, None, check_text=True).tolist() == [True, False, True]
        assert all_utf8(column.slice(2))
        assert all_utf8(column.slice(0, 1))
        text[where : where + 1] = "ü".encode()
        assert all_utf8(pa.array([b"ok", bytes(text)]).view(pa.string()))


def test_a_row_is_left_out_for_any_of_its_reasons():
    """Too long, or not text: one of them is enough, and the others stay."""
    column = pa.array([b"x" * 9, b"\xff", b"\xff" * 9, b"a", None]).view(pa.string())
    assert readable(column, 8, check_text=True).tolist() == [False, False, False, True, True]
    assert readable(column, 8, check_text=False).tolist() == [False, True, False, True, True]
    assert readable(column, 9, check_text=True).tolist() == [True, False, False, True, True]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3], pa.int32()), column.slice(1, 3))
    assert readable(lists, 8, check_text=True).tolist() == [False, False, True]


def test_lists_lose_their_nulls_and_stay_as_many():
    lists = pa.array([["a", None], [], [None], ["b", None, "c"], [None, None], []], pa.list_(pa.string()))
    assert without_null_elements(lists).to_pylist() == [["a"], [], [], ["b", "c"], [], []]
    assert without_null_elements(lists.slice(4)).to_pylist() == [[], []]
