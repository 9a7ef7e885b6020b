"""Lists of items, one a user: every form of list column, and what happens to users with too many items."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import _native


def fed(data, capacity=50, most=5, **options):
    oversized = options.pop("oversized", "error")
    sketch = dc.UserMisraGries(capacity, most, seed=0, oversized=oversized)
    sketch.update(data, **options)
    return sketch


def counts(data, **options):
    return fed(data, **options).not_private_counts().to_dict()


USERS = [["a", "b"], [], ["b", "b", "c"], ["x" * 30]]
EXPECTED = {"a": 1, "b": 2, "c": 1, "x" * 30: 1}


@pytest.mark.parametrize(
    "dtype",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.string_view()),
        pa.list_(pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=str,
)
def test_list_columns(dtype):
    column = pa.array(USERS, dtype)
    assert counts(column) == EXPECTED
    assert fed(column).not_private_users == 3
    assert counts(column[2:]) == {"b": 1, "c": 1, "x" * 30: 1}
    assert counts(column[1:3]) == {"b": 1, "c": 1}
    assert counts(column[:0]) == {}
    assert counts(pa.chunked_array([column[:1], column[1:1], column[1:]])) == EXPECTED
    table = pa.table({"items": column})
    assert counts(table) == counts(table.to_reader(1)) == EXPECTED
    assert counts(table[2:]) == {"b": 1, "c": 1, "x" * 30: 1}
    struct = pa.StructArray.from_arrays([column], ["items"])
    assert counts(struct[2:]) == {"b": 1, "c": 1, "x" * 30: 1}


def test_fixed_size_lists():
    column = pa.array([[1, 2], [2, 2], [3, 4]], pa.list_(pa.int16(), 2))
    assert counts(column) == {1: 1, 2: 2, 3: 1, 4: 1}
    assert counts(column[1:]) == {2: 1, 3: 1, 4: 1}
    with_null = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int16(), 2))
    with pytest.raises(dc.DataError, match="nulls"):
        fed(with_null)
    assert counts(with_null, nulls="skip") == {1: 1, 2: 1, 3: 1}
    with pytest.raises(dc.DataError, match="at least one item"):
        fed(pa.array([[]], pa.list_(pa.int16(), 0)))


def test_iterables_and_frames():
    assert counts(USERS) == counts(map(iter, USERS)) == counts(tuple(map(set, USERS))) == EXPECTED
    assert counts(pl.Series(USERS)) == counts(pd.Series(USERS)) == EXPECTED
    assert counts(pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int32, 2))) == dict.fromkeys([1, 2, 3, 4], 1)
    many = [[i % 700, i % 3] for i in range(70_000)]
    sketch = fed(many, capacity=2000)
    assert sketch.not_private_counts().to_dict() == Counter(x for user in many for x in set(user))
    assert sketch.not_private_users == 70_000


def test_nulls():
    users = [["a", None], None, [None], ["b", "a", None, "a"]]
    for data in (users, pa.array(users), pa.array(users, pa.large_list(pa.string())), pl.Series(users)):
        with pytest.raises(dc.DataError, match="nulls"):
            fed(data)
        sketch = fed(data, nulls="skip")
        assert sketch.not_private_counts().to_dict() == {"a": 2, "b": 1}
        assert sketch.not_private_users == 2
    for data in ([None], [[None]], pa.array([None], pa.list_(pa.int8()))):
        with pytest.raises(dc.DataError, match="nulls"):
            fed(data)
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), pa.array(["a", None, "b"]))
    nested = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), dictionary)
    with pytest.raises(dc.DataError, match="nulls"):
        fed(nested)
    assert counts(nested, nulls="skip") == {"a": 1, "b": 1}


def test_lists_of_the_null_type():
    column = pa.array([[None, None], []], pa.list_(pa.null()))
    with pytest.raises(dc.DataError, match="nulls"):
        fed(column)
    for start in ([], [[1]], [["a"]]):
        sketch = fed(start)
        before = sketch.to_bytes()
        sketch.update(column, nulls="skip")
        sketch.update(pa.array([[], []], pa.list_(pa.null())))
        assert sketch.to_bytes() == before


def test_items_that_no_user_has_are_not_looked_at():
    """Outside the slice, and inside a null list: Arrow allows both to hold anything."""
    column = pa.array([[None, "x" * 9000], ["a"], ["b", None]])
    assert counts(column[1:2]) == {"a": 1}
    items = pa.array([None, "x" * 9000, "a", "b"])
    validity = pa.py_buffer(bytes([0b10]))
    hidden = pa.ListArray.from_buffers(
        pa.list_(pa.string()), 2, [validity, pa.array([0, 2, 4], pa.int32()).buffers()[1]], children=[items]
    )
    assert counts(hidden, nulls="skip") == {"a": 1, "b": 1}
    with pytest.raises(dc.DataError, match="nulls"):
        fed(hidden)
    sketch = fed([[-1]])
    sketch.update(pa.array([[2**64 - 1], [7]], pa.list_(pa.uint64()))[1:])
    assert sketch.estimate(7).value == 1


def test_offsets_outside_the_items():
    for offsets in ([0, 9, 2], [0, 2, 1, 2], [0, -1, 2]):
        buffer = pa.array(offsets, pa.int32()).buffers()[1]
        column = pa.Array.from_buffers(
            pa.list_(pa.int64()), len(offsets) - 1, [None, buffer], children=[pa.array([1, 2])]
        )
        with pytest.raises(dc.DataError, match="offsets"):
            fed(column)


def test_refused():
    sketch = fed([["a"]])
    before = sketch.to_bytes()
    for data in (
        ["a", "b"],
        [b"a"],
        [1],
        "word",
        pa.array(["a"]),
        pa.array([[1.5]]),
        pa.array([[["a"]]]),
        [[1.5]],
        [[True]],
    ):
        with pytest.raises(dc.DataError):
            sketch.update(data)
        with pytest.raises(dc.DataError):
            fed(data)
    with pytest.raises(dc.DataError, match="2 columns"):
        sketch.update(pa.table({"a": [["a"]], "b": [["b"]]}))
    assert sketch.to_bytes() == before


def test_too_many_items():
    """Only distinct items count, nulls do not; the whole batch is refused."""
    sketch = fed([["a"]], most=2)
    before = sketch.to_bytes()
    for data in ([["a"], ["a", "b", "c"]], pa.array([["a"], ["a", "b", "c"]]), pl.Series([["a"], ["a", "b", "c"]])):
        with pytest.raises(dc.DataError, match=r"max_items_per_user=2 .*oversized"):
            sketch.update(data)
        assert sketch.to_bytes() == before
    sketch.update([["a", "b", "a", "b", "b"]])
    sketch.update([["a", None, "b", None]], nulls="skip")
    sketch.update(pa.array([["x", "y", "z"], ["a", "b"]])[1:])
    assert sketch.not_private_counts().to_dict() == {"a": 4, "b": 3}


def test_sample_of_too_many_items():
    users = [["a", "b", "c", "a"], ["a", "b"], ["a", "a", "a"]]
    for data in (users, pa.array(users)):
        sketch = fed(data, most=2, oversized="sample")
        assert sketch.total == 2 + 2 + 1
        assert set(sketch.not_private_counts().to_dict()) <= {"a", "b", "c"}
        assert dc.UserMisraGries.from_bytes(sketch.to_bytes())._native.sample


def test_samples_are_drawn_anew():
    """Equal seeds and equal users, two sketches or two batches: the same choice of 1 of 40 for 60 users has 40^-60."""
    users = [[f"{user} {item}" for item in range(40)] for user in range(60)]
    one, two = (fed(users, capacity=5000, most=1, oversized="sample") for _ in range(2))
    chosen = set(one.not_private_counts().to_dict())
    assert len(chosen) == 60
    assert chosen != set(two.not_private_counts().to_dict())
    one.update(users)
    assert len(one.not_private_counts().to_dict()) > 60


def test_samples_are_uniform():
    """Every pair of 5 distinct items equally often, repeats notwithstanding. Seeded: chi-square 28 at 9 degrees of
    freedom has a p-value of 1e-3, and the seed is fixed."""
    sketch = dc.UserMisraGries(50, 2, oversized="sample", seed=0)
    source = _native.RandomSource(12345)
    pairs = Counter()
    for _ in range(4000):
        before = sketch.not_private_counts().to_dict()
        sketch._native.update([["a", "a", "a", "b", "c", "d", "e", "b"]], False, _native.BadItems.error, source)
        after = sketch.not_private_counts().to_dict()
        pairs[tuple(sorted(x for x in after if after[x] != before.get(x, 0)))] += 1
    assert len(pairs) == 10
    assert all(len(pair) == 2 for pair in pairs)
    assert sum((n - 400) ** 2 / 400 for n in pairs.values()) < 28


def test_parameters():
    for bad in ((0, 1), (4, 0), (4, 5), (2**30 + 1, 1)):
        with pytest.raises(dc.ParameterError):
            dc.UserMisraGries(*bad)
    with pytest.raises(dc.ParameterError, match="'drop'"):
        dc.UserMisraGries(4, 2, oversized="drop")
    with pytest.raises(dc.IncompatibleSummaryError, match="items differ: 2 and 3"):
        dc.UserMisraGries(4, 2).merge(dc.UserMisraGries(4, 3))
    with pytest.raises(dc.IncompatibleSummaryError, match="capacities differ: 4 and 5"):
        dc.UserMisraGries(4, 2).merge(dc.UserMisraGries(5, 2))
