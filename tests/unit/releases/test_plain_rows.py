"""Rows in plain memory and rows in arrays say the same, and those in plain memory need neither NumPy nor pyarrow."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import discreet as dc
from discreet import _native
from discreet.events.values import as_arrow
from discreet.noise.source import Plainly, offset_draw, seeded_source
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.formats import FORMATS
from discreet.releases.release import Release

GUARANTEE = dc.Guarantee.of(dc.Budget(1.0, 1e-9), dc.Event(), "a mechanism", "a reference")
NOISE = Noise("laplace", Fraction(1), 100)
MODELS = {
    "offset": (ErrorModel(NOISE, offset_noise=Noise("laplace", Fraction(1))), {"threshold": 20, "offset": 7}),
    "cut": (ErrorModel(NOISE, of_published=True), {"threshold": 9.5}),
    "unknown": (ErrorModel(NOISE, None, None, float("inf"), float("inf"), 0), {}),
}
KINDS = {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    "binary": st.binary(max_size=12),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
}


def plain(items, kind):
    """The items in plain memory."""
    if kind in ("int64", "uint64"):
        return _native.PlainItems(kind, np.array(items, kind).tobytes(), b"")
    texts = [item.encode() if isinstance(item, str) else item for item in items]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return _native.PlainItems(kind, b"".join(texts), ends.tobytes())


def both(items, kind, counts, model="offset"):
    """The same release in plain memory and in arrays."""
    error_model, more = MODELS[model]
    held, numbers = plain(items, kind), np.array(counts, np.int64)
    of_plain = Release(held, memoryview(numbers), GUARANTEE, error_model, **more)
    of_arrays = Release(as_arrow(held), numbers, GUARANTEE, error_model, **more)
    assert isinstance(of_plain._items, _native.PlainItems)
    assert isinstance(of_arrays._items, pa.Array)
    return of_plain, of_arrays


def same(one, other):
    """Whether two releases say the same in every public way."""
    assert (one.items, one.names, len(one)) == (other.items, other.names, len(other))
    assert one.counts.tolist() == other.counts.tolist()
    assert one.counts.dtype == np.int64
    assert not one.counts.flags.writeable
    assert one.item_column.equals(other.item_column)
    for confidence in (0.5, 0.999):
        assert one.rows(confidence) == other.rows(confidence)
        for mine, theirs in zip(one.bounds(confidence), other.bounds(confidence), strict=True):
            assert mine.dtype == theirs.dtype == np.float64
            assert mine.tolist() == theirs.tolist()
        assert one.columns(confidence) == other.columns(confidence)
        assert one.to_arrow(confidence).equals(other.to_arrow(confidence))
    for name in FORMATS:
        assert FORMATS[name](one, 0.9, 60) == FORMATS[name](other, 0.9, 60)
    assert one.to_payload() == other.to_payload()
    assert repr(one) == repr(other)
    assert one._repr_html_() == other._repr_html_()
    assert [one[item] for item in one.items] == [other[item] for item in one.items]
    if one.offset is not None:
        assert one.offsets.tolist() == other.offsets.tolist()
    assert Release.from_payload(one.to_payload()).to_payload() == other.to_payload()
    assert Release.from_json(one.to_json()).to_json() == other.to_json()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(data=st.data(), model=st.sampled_from(sorted(MODELS)), k=st.integers(0, 9))
def test_both_say_the_same(data, kind, model, k):
    items = data.draw(st.lists(KINDS[kind], unique=True, max_size=8))
    counts = data.draw(st.lists(st.integers(-20, 40), min_size=len(items), max_size=len(items)))
    one, other = both(items, kind, counts, model)
    same(one, other)
    same(one.head(k), other.head(k))
    assert one.first(k).to_payload() == other.first(k).to_payload() == one.head(k).to_payload()
    names = pa.array([f"name {place}" for place in range(len(items))], pa.large_string())
    assert one.with_items(names).to_payload() == other.with_items(names).to_payload()


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_pickles_say_the_same(kind):
    items = {"string": ["a", "ö"], "binary": [b"a", b"\xff"]}.get(kind, [1, 2])
    one, other = both(items, kind, [30, 40])
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
        assert isinstance(again._items, _native.PlainItems)
        same(again, other)


@pytest.mark.parametrize("k", [0, 2, 5])
def test_releases_in_shards_are_copied_and_pickled(k):
    sketch = dc.ShardedMisraGries(8, 2, seed=5)
    sketch.update([f"text {i % 5}" for i in range(5000)])
    one = dc.release(sketch, dc.Budget(1.0, 1e-6), source=seeded_source(1)).head(k)
    assert len(one) == k
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
        same(again, one)
        assert again.shards.tolist() == one.shards.tolist()
        same(again.with_items(one.item_column), one)


def test_counters_of_a_summary_are_pickled():
    sketch = dc.MisraGries(4, seed=1)
    sketch.update(["a", "b", "a"])
    raw = sketch.not_private_counts()
    assert pickle.loads(pickle.dumps(raw)).to_dict() == copy.deepcopy(raw).to_dict() == {"a": 2, "b": 1}


def test_counts_at_the_ends_of_their_range():
    same(*both(["a", "b", "c"], "string", [2**63 - 1, -(2**63), 0]))


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows(kind):
    """So many that threads put them in order."""
    items = [f"item {i * 7919 % 65536}" for i in range(65536)] if kind == "string" else range(65536)
    items = [b"%d" % i for i in items] if kind == "binary" else items
    one, other = both(items, kind, np.random.default_rng(5).integers(0, 9, 65536))
    assert one.to_arrow().equals(other.to_arrow())


@pytest.mark.parametrize(
    ("kind", "items", "published"),
    [
        ("uint64", [3, 2**63 - 1], "int64"),
        ("uint64", [3, 2**63], "uint64"),
        ("int64", [-3], "int64"),
        ("int64", [], "string"),
        ("binary", [], "string"),
        ("binary", [b"\xff"], "binary"),
    ],
)
def test_the_kind_is_a_function_of_what_is_published(kind, items, published):
    found = plain(items, kind).as_published()
    assert (found.kind, found.to_pylist()) == (published, items)


@pytest.mark.parametrize(
    ("kind", "values", "offsets"),
    [
        ("int64", b"1234567", b""),
        ("int64", b"12345678", bytes(8)),
        ("string", b"abc", b""),
        ("string", b"abc", bytes(9)),
        ("string", b"abc", np.array([1, 3]).tobytes()),
        ("string", b"abc", np.array([0, 2, 1]).tobytes()),
        ("string", b"abc", np.array([0, 4]).tobytes()),
        ("binary", b"abc", np.array([0, -1, 3]).tobytes()),
        ("mixed", b"abc", np.array([0, 3]).tobytes()),
    ],
)
def test_what_plain_items_are_not(kind, values, offsets):
    with pytest.raises(dc.DataError):
        _native.PlainItems(kind, values, offsets)


@pytest.mark.parametrize("kind", ["string", "int64"])
@pytest.mark.parametrize("place", [-1, 2, 2**40])
def test_no_place_outside_is_taken(kind, place):
    places = np.array([0, place], np.int64)
    with pytest.raises(dc.DataError, match="outside"):
        plain(["a", "b"] if kind == "string" else [1, 2], kind).at(places)
    with pytest.raises(dc.DataError, match="outside"):
        _native.numbers_at(np.array([1, 2]), places)


def test_numbers_that_do_not_belong_together():
    with pytest.raises(dc.DataError, match="its noise"):
        _native.plus_noise(np.zeros(2, np.int64), np.zeros(3, np.int64), 0)
    with pytest.raises(dc.DataError, match="one distance"):
        _native.bounds_of(np.zeros(2, np.int64), np.zeros(3), np.zeros(1), 0.0, None)
    with pytest.raises(dc.DataError, match="one distance"):
        _native.bounds_of(np.zeros(2, np.int64), np.zeros(1), np.zeros(0), 0.0, None)


def test_arrays_are_taken_as_they_come():
    """Counts of an array beside plain items, and slices of arrays."""
    held = plain(["a", "b"], "string")
    assert isinstance(Release(held, np.array([1, 2]), GUARANTEE, ErrorModel(NOISE))._items, pa.Array)
    every_other = np.arange(6, dtype=np.int64)[::2]
    assert _native.plus_noise(every_other, every_other, 1).tolist() == [1, 5, 9]
    assert _native.places_of(np.array([True, False, True])).tolist() == [0, 2]


@settings(max_examples=30)
@given(
    counters=st.lists(st.integers(0, 2**40), max_size=50),
    alpha=st.integers(0, 2**40),
    seed=st.integers(0, 2**32),
    scale=st.fractions(Fraction(1, 4), 100),
)
def test_the_draw_of_an_offset_release(counters, alpha, seed, scale):
    """a0 = alpha + Z_0, then v_x = c_x + alpha + Z_x, of the draws that arrays are made of, in their order."""
    a0, v, kept = offset_draw(np.array(counters, np.int64), alpha, scale, 20, seeded_source(seed))
    source = seeded_source(seed)
    assert a0 == alpha + source.discrete_laplace(scale)
    noisy = np.array(counters, np.int64) + alpha + source.discrete_laplace(scale, len(counters))
    assert v.tolist() == noisy.tolist()
    assert kept.tolist() == (noisy - a0 >= 20).tolist()


def test_plain_draws_are_for_sources_that_draw_themselves():
    class Doubled(type(seeded_source(1))):
        def discrete_laplace(self, scale, size=None):
            return super().discrete_laplace(scale, size) * 2

    source = seeded_source(3)
    assert isinstance(source.discrete_laplace(5, Plainly(4)), memoryview)
    assert isinstance(source.discrete_laplace(5, 4), np.ndarray)
    doubled = Doubled(_native.RandomSource(3))
    expected = 2 * seeded_source(3).discrete_laplace(5, 4)
    assert doubled.discrete_laplace(5, Plainly(4)).tolist() == expected.tolist()


ALONE = """
import sys
import discreet as dc
from discreet import _native
from discreet.releases.formats import FORMATS

summary = dc.MisraGries(100, seed=1)
summary._native.update({items}, False, _native.BadItems.skip)
release = dc.release(summary, dc.Budget(1.0, 1e-9)).head(5)
assert len(release) == 5 and release.rows() and release[release.items[0]]
for name in ("json", "csv", "table"):
    assert FORMATS[name](release, 0.95, None)
release.to_payload(), release.explain(), release.notes(), repr(release), release.with_guarantee(release.guarantee)
loaded = [name for name in ("numpy", "pyarrow") if name in sys.modules]
assert not loaded, loaded
release.counts, release.item_column
assert "numpy" in sys.modules and "pyarrow" in sys.modules
"""


@pytest.mark.parametrize(
    "items",
    [
        "[f'text {i % 7}' for i in range(7000)]",
        "[b'%d' % (i % 7) for i in range(7000)]",
        "[i % 7 for i in range(7000)]",
    ],
)
def test_a_release_without_the_two_libraries(items):
    subprocess.run([sys.executable, "-c", ALONE.format(items=items)], check=True)
