"""The order of a release: the largest count first, of equals the smaller item, as Arrow sorts them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import discreet as dc
from discreet import _native
from discreet.events.values import taken
from discreet.releases.error_model import ErrorModel, Noise

RANDOM = np.random.default_rng(8)
MANY = 70_000  # so many that threads share them
COLUMNS = {
    "texts": pa.array([f"https://example.org/p/{i:07d}"[: 20 + i % 12] for i in range(MANY)], pa.large_string()),
    "texts with little in common": pa.array([chr(97 + i % 700) * (i % 5) for i in range(MANY)], pa.large_string()),
    "bytes with zeros": pa.array([b"a\0" * (i % 7) + bytes([i % 256]) for i in range(MANY)], pa.large_binary()),
    "integers": pa.array(RANDOM.integers(-(2**63), 2**63 - 1, MANY)),
    "large integers": pa.array(RANDOM.integers(0, 2**64 - 1, MANY, dtype=np.uint64)),
    "nothing": pa.array([], pa.large_string()),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [1000, MANY])
def test_as_arrow_sorts(name, rows):
    items = COLUMNS[name].slice(3, rows) if len(COLUMNS[name]) else COLUMNS[name]
    counts = np.random.default_rng(9).integers(-5, 5, len(items))
    ours = np.frombuffer(_native.release_order(items, counts), np.int64)
    assert sorted(ours.tolist()) == list(range(len(items)))
    table = pa.table({"item": items, "count": counts})
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("item", "ascending")])
    assert table.take(pa.array(ours)).equals(table.take(order))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [0, 1, 1000, MANY])
def test_items_are_taken_as_arrow_does(name, rows):
    items = COLUMNS[name].slice(3)
    places = np.random.default_rng(7).integers(0, max(1, len(items)), rows if len(items) else 0)
    assert taken(items, places).equals(items.take(pa.array(places)))


def test_texts_that_lie_nowhere_else_are_taken():
    """Python's texts are copied for the call: they are there until the last one is taken."""
    items = [f"a text of some length, the {i}th" for i in range(20000)]
    values, offsets = _native.texts_at(items, np.arange(len(items))[::-1].copy())
    assert values == "".join(reversed(items)).encode()
    assert np.frombuffer(offsets, np.int64)[-1] == len(values)


@pytest.mark.parametrize("place", [-1, 2, 2**40])
def test_no_place_outside_is_taken(place):
    with pytest.raises(dc.DataError, match="outside"):
        _native.texts_at(pa.array(["a", "b"]), np.array([0, place], np.int64))


def test_what_it_does_not_take():
    with pytest.raises(dc.DataError):
        _native.release_order(pa.array(["a", None]), np.zeros(2, np.int64))
    with pytest.raises(dc.DataError):
        _native.release_order(pa.array(["a"]), np.zeros(2, np.int64))


@pytest.mark.parametrize("kind", [dc.MisraGries, dc.SpaceSaving])
@pytest.mark.parametrize("values", [lambda n: np.arange(n), lambda n: [f"item with the number {i}" for i in range(n)]])
def test_a_copy_goes_its_own_way(kind, values):
    one = kind(300, seed=1)
    one.update(values(500))
    other = one.copy()
    assert other.to_bytes() == one.to_bytes()
    assert other.lineage == one.lineage
    before = one.to_bytes()
    other.update(values(900))
    assert one.to_bytes() == before
    assert other.to_bytes() != before
    with pytest.raises(dc.IncompatibleSummaryError):
        one.merge(other)
    assert kind(300).copy().total == 0


@pytest.mark.parametrize("kinds", [(pa.large_string(), pa.int64()), (pa.int64(), pa.large_string())])
def test_ties_of_several_columns_do_not_depend_on_the_order_they_came_in(kinds):
    rows = [(a, b) for a in "cab" for b in (3, 1, 2)]
    rows = rows if kinds[1] == pa.int64() else [(b, a) for a, b in rows]
    guarantee = dc.top_k(["a"], 1, dc.Budget(1.0, 1e-6)).guarantee
    found = set()
    for order in (range(9), range(8, -1, -1), [4, 0, 8, 2, 6, 1, 7, 3, 5]):
        columns = [pa.array([rows[i][at] for i in order], kinds[at]) for at in (0, 1)]
        items = pa.StructArray.from_arrays(columns, ["x", "y"])
        release = dc.Release(items, np.full(9, 7), guarantee, ErrorModel(Noise("laplace", Fraction(1))))
        found.add(tuple(release.items))
    assert found == {tuple(sorted(rows))}
