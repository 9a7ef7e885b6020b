"""Every form a column may come in gives the same counts as the plain list of its items."""

from __future__ import annotations

import array
import ctypes
import itertools
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.reference.states import content

import discreet as dc


def counts(data, **options):
    exact = dc.ExactCounts()
    exact.update(data, **options)
    return exact.not_private_counts().to_dict()


def refused(data, match, **options):
    """The batch is refused by an empty summary and by one in use, and leaves both as they were."""
    options = {"bad_items": "error", **options}
    for start in ([], [1], ["a"], [b"a"]):
        exact = dc.ExactCounts(seed=0)
        exact.update(start)
        before = exact.to_bytes()
        with pytest.raises(dc.DataError, match=match if not start else None):
            exact.update(data() if callable(data) else data, **options)
        assert exact.to_bytes() == before


INTEGERS = {
    pa.int8(): [-128, 127, 0, -1, -1],
    pa.int16(): [-(2**15), 2**15 - 1, 0, 0],
    pa.int32(): [-(2**31), 2**31 - 1, 5],
    pa.int64(): [-(2**63), 2**63 - 1, 5, 5],
    pa.uint8(): [0, 255, 255],
    pa.uint16(): [0, 2**16 - 1],
    pa.uint32(): [0, 2**32 - 1, 2**31],
    pa.uint64(): [0, 2**64 - 1, 2**63, 2**63],
}
WORDS = ["", "a", "é", "x" * 12, "x" * 13, "x" * 20, "x" * 21, "long " * 100, "a"]
OCTETS = [word.encode() + b"\xff" for word in WORDS]
BYTES_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
STRING_TYPES = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_arrow_integers(dtype):
    assert counts(pa.array(INTEGERS[dtype], dtype)) == Counter(INTEGERS[dtype])


@pytest.mark.parametrize(
    ("dtype", "items"),
    [
        *((t, WORDS) for t in STRING_TYPES),
        *((t, OCTETS) for t in BYTES_TYPES),
        (pa.binary(3), [b"abc", b"a\0\0", b"abc"]),
    ],
    ids=str,
)
def test_arrow_strings_and_bytes(dtype, items):
    column = pa.array(items, dtype)
    assert counts(column) == Counter(items)
    assert counts(column.slice(1, 2)) == Counter(items[1:3])
    with_null = pa.array([None, *items, None], dtype)
    refused(with_null, "nulls")
    assert counts(with_null, nulls="skip") == Counter(items)
    assert counts(with_null.slice(1), nulls="skip") == Counter(items)
    assert counts(with_null.slice(1, len(items))) == Counter(items)


@pytest.mark.parametrize("dtype", [*INTEGERS, *STRING_TYPES, *BYTES_TYPES, pa.binary(3)], ids=str)
def test_nulls_and_slices(dtype):
    """Validity bits at every offset inside a byte."""
    base = [b"abc", b"abd", b"abe"] if not pa.types.is_integer(dtype) else [1, 2, 3]
    items = [str(x, "ascii") if dtype in STRING_TYPES else x for x in base]
    rows = [items[i % 3] if i % 5 else None for i in range(40)]
    column = pa.array(rows, dtype)
    for start, stop in itertools.product(range(0, 18), (18, 25, 40)):
        expected = Counter(x for x in rows[start:stop] if x is not None)
        assert counts(column[start:stop], nulls="skip") == expected


@pytest.mark.parametrize(
    "codes", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str
)
@pytest.mark.parametrize(
    "values",
    [["a", "b", "a", "x" * 30, "unused"], [b"\xff", b"", b"\xff", b"z", b"w"], [5, -7, 5, 2**40, 0]],
    ids=["str", "bytes", "int"],
)
def test_dictionaries(codes, values):
    """Repeated values, unused values, and more rows or fewer than values."""
    for rows in ([0, 1, 2, 3], [3, 2, 1, 0, 0, 1, 2, 3, 3] * 3):
        column = pa.DictionaryArray.from_arrays(pa.array(rows, codes), pa.array(values))
        assert counts(column) == Counter(values[r] for r in rows)
        assert counts(column[1:3]) == Counter(values[r] for r in rows[1:3])


@pytest.mark.parametrize("rows", [4, 40])
def test_nulls_of_dictionaries(rows):
    """In the codes, in the values, in both; a null value that no row uses does no harm."""
    values = pa.array(["a", None, "b", "c", "d"])
    codes = [0, 2, None, 1] * (rows // 4)
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)
    refused(column, "nulls")
    assert counts(column, nulls="skip") == {"a": rows // 4, "b": rows // 4}
    for bad in ([0, None], [0, 1]):
        refused(pa.DictionaryArray.from_arrays(pa.array(bad * (rows // 2), pa.int8()), values), "nulls")
    fine = pa.DictionaryArray.from_arrays(pa.array([0, 2] * (rows // 2), pa.int8()), values)
    assert counts(fine) == {"a": rows // 2, "b": rows // 2}
    nothing = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), pa.nulls(1))
    refused(nothing, "nulls")
    assert counts(nothing, nulls="skip") == {}


@pytest.mark.parametrize("rows", [1, 50])
def test_only_used_values_of_a_dictionary_matter(rows):
    bad = pa.array([b"ok", b"\xff\xff", b"x" * 5000]).view(pa.binary())
    values = pa.Array.from_buffers(pa.string(), 3, bad.buffers())
    assert counts(pa.DictionaryArray.from_arrays(pa.array([0] * rows), values)) == {"ok": rows}
    refused(pa.DictionaryArray.from_arrays(pa.array([0] * rows + [1]), values), "UTF-8")
    refused(pa.DictionaryArray.from_arrays(pa.array([0] * rows + [2]), values), "max_key_bytes")
    exact = dc.ExactCounts()
    exact.update([-1])
    numbers = pa.array([7, 2**64 - 1], pa.uint64())
    exact.update(pa.DictionaryArray.from_arrays(pa.array([0] * rows), numbers))
    assert exact.estimate(7).value == rows
    exact.update(pa.DictionaryArray.from_arrays(pa.array([0] * rows + [1]), numbers))
    assert exact.not_private_counts().to_dict() == {-1: 1, 7: 2 * rows, 2**64 - 1: 1}
    for code in (1, 2):
        column = pa.DictionaryArray.from_arrays(pa.array([0] * rows + [code]), values)
        assert counts(column) == {"ok": rows}


def test_dictionary_codes_outside_the_dictionary():
    for code in (-1, 2, 127):
        indices = pa.array([0, code], pa.int8())
        refused(pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False), "outside its dictionary")


def test_evictions_while_a_dictionary_is_read():
    """A code whose key was evicted must not raise the counter of the key that took its place."""
    rng = np.random.default_rng(3)
    codes = rng.zipf(1.2, 5000) % 300
    values = [f"value {i}" for i in range(300)]
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))
    for make in (dc.MisraGries, dc.SpaceSaving):
        for capacity in (1, 2, 5, 60):
            by_code, by_value = make(capacity, seed=1), make(capacity, seed=1)
            by_code.update(column)
            by_value.update([values[c] for c in codes])
            assert content(by_code) == content(by_value)


def test_chunks_tables_and_readers():
    chunks = pa.chunked_array([["a", "b"], [], ["a"], []], pa.string())
    expected = {"a": 2, "b": 1}
    table = pa.table({"word": chunks})
    batch = pa.record_batch({"word": ["b", "a", "a"]})
    assert counts(chunks) == counts(table) == counts(batch) == counts(table.to_reader(1)) == expected
    assert counts(chunks[1:]) == counts(table[1:]) == {"a": 1, "b": 1}
    assert counts(batch[1:]) == counts(pa.table(batch)[1:]) == {"a": 2}
    assert counts(pa.chunked_array([], pa.int8())) == counts(pa.table({"word": pa.array([], pa.string())})) == {}
    struct = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4])], ["x"])
    assert counts(struct[1:3]) == {2: 1, 3: 1}
    refused(pa.StructArray.from_arrays([pa.array([1, 2])], ["x"], mask=pa.array([True, False])), "nulls")
    refused(pa.table({"a": [1], "b": [2]}), "2 columns")
    # A reader that the summary has consumed has nothing left.
    reader = table.to_reader()
    assert counts(reader) == expected
    assert counts(reader) == {}


def test_dictionary_chunks_with_different_dictionaries():
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c", "b"]).dictionary_encode()]
    assert counts(pa.chunked_array(chunks)) == {"a": 1, "b": 3, "c": 1}


def test_null_type():
    nothing = pa.nulls(5)
    refused(nothing, "nulls")
    for start in ([], [1], ["a"], [b"a"]):
        for summary in (dc.ExactCounts(seed=0), dc.MisraGries(2, seed=0), dc.SpaceSaving(2, seed=0)):
            summary.update(start)
            before = summary.to_bytes()
            summary.update(nothing, nulls="skip")
            summary.update(pa.nulls(0))
            summary.update(pa.table({"x": nothing}), nulls="skip")
            assert summary.to_bytes() == before


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True]),
        pa.array([1.5]),
        pa.array([1], pa.date32()),
        pa.array([1], pa.timestamp("s")),
        pa.array([1], pa.decimal128(5)),
        pa.array([[1]]),
        pa.array([{"a": 1, "b": 2}]),
        pa.array([True]).dictionary_encode(),
        pa.array([1.5]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"]),
    ],
    ids=lambda column: str(column.type),
)
def test_other_arrow_types(column):
    refused(column, None)


def test_invalid_utf8():
    """A column may claim to be text and not be; every ill-formed sequence is refused, every character taken."""
    bad = [
        b"\x80",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
    ]
    bad += [b"\xf5\x80\x80\x80", b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\xa6", b"abcdefgh\xc3", b"\xc3abcdefg"]
    for octets in bad:
        with pytest.raises(UnicodeDecodeError):
            octets.decode()
        for dtype, source in ((pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())):
            claimed = pa.array([b"fine", octets], source)
            refused(pa.Array.from_buffers(dtype, 2, claimed.buffers()), "UTF-8")
            assert counts(pa.Array.from_buffers(dtype, 2, claimed.buffers())) == {"fine": 1}
            assert counts(pa.Array.from_buffers(dtype, 2, claimed.buffers())[:1]) == {"fine": 1}
    characters = [
        chr(c)
        for c in (
            *range(0, 0xD800, 37),
            *range(0xE000, 0x110000, 997),
            0x7F,
            0x80,
            0x7FF,
            0x800,
            0xFFFF,
            0x10000,
            0x10FFFF,
        )
    ]
    assert counts(pa.array(characters)) == Counter(characters)
    assert counts(np.array(characters)) == Counter(c for c in np.array(characters).tolist())


# ---- NumPy, buffers --------------------


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_numpy_integers(dtype, byteorder):
    info = np.iinfo(dtype)
    items = [info.min, info.max, 1, 2, 3, 2, 1, 0]
    column = np.array(items, dtype=np.dtype(dtype).newbyteorder(byteorder))
    assert counts(column) == Counter(items)
    assert counts(column[::2]) == Counter(items[::2])
    assert counts(column[::-1]) == Counter(items)
    assert counts(column[:0]) == {}
    frozen = column.copy()
    frozen.setflags(write=False)
    assert counts(frozen) == Counter(items)


def test_numpy_strings():
    words = ["", "a", "é漢", "🦊", "x" * 25, "a"]
    kinds = ["U", ">U25", object, *(["T"] if hasattr(np.dtypes, "StringDType") else [])]  # the last since NumPy 2
    for column in (np.array(words, kind) for kind in kinds):
        assert counts(column) == Counter(words)
        assert counts(column[::2]) == Counter(words[::2])
    octets = [b"", b"a", b"\xff\x01", b"x" * 25, b"a"]
    assert counts(np.array(octets)) == Counter(octets)
    assert counts(np.array(octets)[1::2]) == Counter(octets[1::2])
    assert counts(np.array(octets, dtype=object)) == Counter(octets)
    refused(np.array(["a\ud800"]), "UTF-8")
    refused(np.array([0x40010000], np.uint32).view("U1"), "UTF-8")
    many = np.array([f"{i % 777}" for i in range(70_000)])
    assert counts(many) == Counter(many.tolist())


def test_numpy_refused():
    for column in (
        np.array([1.0]),
        np.array([True]),
        np.array([1 + 1j]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros((2, 2), np.int64),
        np.array(5),
        np.zeros(3, [("a", int)]),
    ):
        refused(column, "allowed")
    assert counts(np.array([1, "a"], dtype=object)) == {1: 1, "a": 1}
    refused(np.array([np.bool_(True)], dtype=object), "bool")
    refused([np.bool_(True)], "bool")
    refused([np.float64(1)], "float64")


def test_masked_arrays():
    column = np.ma.array([1, 2, 3], mask=[False, True, False])
    refused(column, "nulls")
    assert counts(column, nulls="skip") == {1: 1, 3: 1}
    assert counts(np.ma.array(["a", "b"], mask=[True, False]), nulls="skip") == {"b": 1}


def test_other_buffers():
    assert counts(array.array("h", [1, -1, 1])) == {1: 2, -1: 1}
    assert counts(array.array("Q", [2**64 - 1])) == {2**64 - 1: 1}
    assert counts(memoryview(array.array("i", [3, 3]))) == {3: 2}
    assert counts((ctypes.c_int32 * 2)(7, 7)) == {7: 2}
    refused(array.array("d", [1.0]), "allowed")
    refused(memoryview(np.array([1, 2], ">i4")), "allowed")
    refused(memoryview(np.array(["a"], ">U1")), "allowed")
    refused(memoryview(np.arange(6))[::2], "contiguous")
    refused(memoryview(np.zeros((2, 2), int)), "dimension")


# ---- data frames --------------------


def test_polars():
    words = ["b", "a", "b", "longer than twelve"]
    expected = Counter(words)
    series = pl.Series("w", words)
    assert counts(series) == counts(series.to_frame()) == expected
    assert counts(series.cast(pl.Categorical)) == expected
    assert counts(series.cast(pl.Enum(["longer than twelve", "c", "b", "a"]))) == expected
    assert counts(pl.concat([series, series], rechunk=False)) == Counter(words * 2)
    assert counts(series[1:3]) == Counter(words[1:3])
    assert counts(pl.Series([1, 2, 2], dtype=pl.UInt8)) == {1: 1, 2: 2}
    assert counts(pl.Series([b"a", b"\xff"])) == {b"a": 1, b"\xff": 1}
    refused(pl.Series(["a", None]), "nulls")
    assert counts(pl.Series(["a", None]), nulls="skip") == {"a": 1}
    assert counts(pl.Series([None, None]), nulls="skip") == {}
    refused(pl.Series([1.5]), "allowed")
    refused(pl.DataFrame({"a": [1], "b": [1]}), "2 columns")


def test_pandas():
    words = ["b", "a", "b"]
    for dtype in (object, "string", "category", "string[pyarrow]"):
        assert counts(pd.Series(words, dtype=dtype)) == Counter(words)
        with_null = pd.Series([*words, None], dtype=dtype)
        refused(with_null, "nulls")
        assert counts(with_null, nulls="skip") == Counter(words)
    assert counts(pd.Series([1, 2, 2])) == counts(pd.Series([1, 2, 2], dtype="Int64")) == {1: 1, 2: 2}
    assert counts(pd.Series([1, 2, 2], index=[7, 7, 7])[1:]) == {2: 2}
    nullable = pd.Series([1, pd.NA, 2], dtype="Int64")
    refused(nullable, "nulls")
    assert counts(nullable, nulls="skip") == {1: 1, 2: 1}
    assert counts(pd.DataFrame({"w": words})) == counts(pd.Index(words)) == Counter(words)
    refused(pd.Series([1.0, 2.0]), "allowed")
    refused(pd.Series([True, False]), "allowed")


def test_pandas_objects_of_several_kinds():
    """What pandas or Arrow would make of all of them together plays no part."""
    for items in (["x", b"z", "x"], ["x", 1], [1, 2**63, -1], [b"a", "a"], [1, None, "a"]):
        expected = Counter(item for item in items if item is not None)
        for column in (pd.Series(items, dtype=object), pd.Series(pd.Categorical(items)), pd.Index(items, dtype=object)):
            assert counts(column, nulls="skip") == expected
    assert counts(pd.Series(["a", "\ud800", "b"], dtype=object)) == {"a": 1, "b": 1}
    assert counts(pd.Series(["a", float("nan"), pd.NA], dtype=object), nulls="skip") == {"a": 1}


def test_pandas_errors_do_not_quote_the_data():
    for column in (pd.Series([object(), ["secret"]]), pd.Series([("secret", 1)]), pd.Series([object()])):
        with pytest.raises(dc.DataError) as caught:
            counts(column)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_duckdb():
    with duckdb.connect() as connection:
        relation = connection.sql("select (i % 3)::tinyint as x from range(9000) t(i)")
        assert counts(relation) == {0: 3000, 1: 3000, 2: 3000}
        assert counts(connection.sql("select 'w' || (i % 2) from range(10) t(i)")) == {"w0": 5, "w1": 5}


# ---- plain iterables --------------------


def test_iterables():
    for items in ([1, 2, 2], ["a", "é", "a"], [b"", b"x", b""], [np.int64(3), 3, np.uint8(3)], [np.str_("a"), "a"]):
        for form in (list, tuple, iter, lambda x: (y for y in x), lambda x: map(type(x[0]), x)):
            assert counts(form(items)) == Counter(items)
    for mapping in ({"a": 1, "b": 2}, Counter("ab"), {}):
        refused(mapping, "mapping")
    assert counts({"a", "b"}) == {"a": 1, "b": 1}
    assert counts(range(5)) == dict.fromkeys(range(5), 1)
    assert counts(itertools.chain.from_iterable([[1], [2] * 70_000])) == {1: 1, 2: 70_000}
    assert counts(bytearray(b"aab")) == {97: 2, 98: 1}
    for single in ("word", b"word"):
        refused(single, "put it in a list")
    for nothing in (5, None, 1.5, object()):
        refused(nothing, "expected")


def test_integers_of_both_signs():
    """Integers stay as they are while they fit one type, and are tagged when they do not."""
    assert counts([2**63, -1]) == counts([-1, 2**63]) == {2**63: 1, -1: 1}
    assert counts([2**64 - 1, -1, -1]) == {2**64 - 1: 1, -1: 2}
    assert counts([1, 2**63]) == {1: 1, 2**63: 1}
    exact = dc.ExactCounts()
    exact.update([1])
    exact.update(pa.array([1, 2**63 - 1], pa.uint64()))
    exact.update(pa.array([2, None], pa.uint64()), nulls="skip")
    assert exact.key_type == "int64"
    assert exact.not_private_counts().to_dict() == {1: 2, 2**63 - 1: 1, 2: 1}
    exact.update([2**63])
    exact.update(pa.array([1, 2**63], pa.uint64()))
    assert exact.key_type == "mixed"
    assert exact.not_private_counts().to_dict() == {1: 3, 2**63 - 1: 1, 2: 1, 2**63: 2}


def test_arrow_streams_that_fail_or_come_back():
    def batches(use):
        yield pa.record_batch({"x": [1, 2]})
        use()
        yield pa.record_batch({"x": [3]})

    def fail():
        raise RuntimeError("secret")

    exact = dc.ExactCounts(seed=0)
    exact.update([9])
    before = exact.to_bytes()
    schema = pa.schema([("x", pa.int64())])
    for use in (fail, lambda: len(exact), lambda: exact.update([1])):
        with pytest.raises(dc.DataError) as caught:
            exact.update(pa.RecordBatchReader.from_batches(schema, batches(use)))
        assert "secret" not in str(caught.value)
        assert exact.to_bytes() == before


def test_broken_exporters():
    class Exporter:
        def __init__(self, answer):
            self.answer = answer

        def __arrow_c_array__(self, requested_schema=None):
            return self.answer()

    def fail():
        raise ValueError("secret")

    schema, column = pa.array([1, 2]).__arrow_c_array__()
    for answer in (fail, lambda: None, lambda: (1,)):
        refused(lambda answer=answer: Exporter(answer), "Arrow|__arrow_c_array__")
    assert counts(Exporter(lambda: (schema, column))) == {1: 1, 2: 1}
    refused(Exporter(lambda: (schema, column)), "consumed")
    with pytest.raises(KeyboardInterrupt):
        counts(Exporter(lambda: (_ for _ in ()).throw(KeyboardInterrupt)))
