"""CountMin and CountSketch equal their plain reference cell for cell and candidate for candidate."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.hash_order import hash_order
from tests.reference.linear_sketch import ReferenceCountMin, ReferenceCountSketch, ReferenceSketch, RowHashes
from tests.reference.states import content

import discreet as dc

KINDS: list[tuple[type, type[ReferenceSketch]]] = [
    (dc.CountMin, ReferenceCountMin),
    (dc.CountSketch, ReferenceCountSketch),
]
both_kinds = pytest.mark.parametrize(("kind", "reference"), KINDS, ids=["CountMin", "CountSketch"])

SEEDS = st.integers(0, 2**64 - 1)
SHAPES = st.tuples(st.integers(1, 12), st.sampled_from([1, 3, 5, 17]), st.integers(0, 5))
SMALL_INTS = st.integers(-3, 6)
INTS = st.one_of(SMALL_INTS, st.integers(-(2**63), 2**63 - 1))
STRINGS = st.one_of(st.sampled_from(["", "a", "ab", "abc", "é", "x" * 7, "x" * 8, "y" * 40]), st.text(max_size=30))
STREAMS = st.one_of(
    st.lists(SMALL_INTS, min_size=1, max_size=60),
    st.lists(INTS, min_size=1, max_size=40),
    st.lists(STRINGS.filter(lambda s: s.isprintable() or not s), min_size=1, max_size=40),
    st.lists(st.binary(max_size=25), min_size=1, max_size=30),
)


def rank_of(seed: int, stream: list[Any]) -> Callable[[Any], Any]:
    """The kernel's order of keys among equal estimates."""
    return hash_order(stream, RowHashes(seed, 1).table_seed)


def arrivals(sketch: Any) -> list[tuple[Any, int]]:
    """The candidates with the estimates of their last arrival, read from the state's records."""
    payload = sketch.to_bytes()[32:]
    at = 41 + 8 + 8 * sketch.width * sketch.depth
    (count,) = struct.unpack_from("<Q", payload, at)
    at += 8
    out: list[tuple[Any, int]] = []
    for _ in range(count):
        if sketch.key_type == "int64":
            (key,) = struct.unpack_from("<q", payload, at)
            at += 8
        else:
            (size,) = struct.unpack_from("<I", payload, at)
            key = payload[at + 4 : at + 4 + size]
            key = key.decode() if sketch.key_type == "string" else key
            at += 4 + size
        out.append((key, *struct.unpack_from("<q", payload, at)))
        at += 8
    assert at == len(payload) - 8 * (1 + len(sketch.lineage))
    return out


def assert_equal(sketch: Any, model: ReferenceSketch, items: list[Any]) -> None:
    assert sketch.not_private_cells().tolist() == model.cells
    assert sketch.estimate_many(items).tolist() == [model.estimate(x) for x in items]
    assert dict(arrivals(sketch)) == model.candidates
    assert sketch.not_private_counts().to_dict() == {x: model.estimate(x) for x in model.candidates}


@both_kinds
@settings(max_examples=150, deadline=None)
@given(stream=STREAMS, shape=SHAPES, seed=SEEDS, cut=st.integers(0, 60))
def test_equals_the_reference_in_any_split(kind, reference, stream, shape, seed, cut) -> None:
    width, depth, tracked = shape
    sketch = kind(width, depth, tracked=tracked, seed=seed)
    sketch.update(stream[:cut])
    sketch.update(stream[cut:])
    model = reference(width, depth, tracked, seed, rank_of(seed, stream))
    model.update(stream)
    assert_equal(sketch, model, stream)
    one_by_one = kind(width, depth, tracked=tracked, seed=seed)
    for x in stream:
        one_by_one.update([x])
    assert content(one_by_one) == content(sketch)


@both_kinds
@settings(max_examples=100, deadline=None)
@given(first=st.lists(SMALL_INTS, min_size=1), second=st.lists(SMALL_INTS, min_size=1), shape=SHAPES, seed=SEEDS)
def test_merge_adds_cells_and_keeps_the_largest_candidates(kind, reference, first, second, shape, seed) -> None:
    width, depth, tracked = shape
    left, right, whole = (kind(width, depth, tracked=tracked, seed=seed) for _ in range(3))
    left.update(first)
    right.update(second)
    whole.update(first + second)
    rank = rank_of(seed, first + second)
    model, other = (reference(width, depth, tracked, seed, rank) for _ in range(2))
    model.update(first)
    other.update(second)
    model.merge(other)
    before = right.to_bytes()
    left.merge(right)
    assert right.to_bytes() == before
    assert left.was_merged
    assert not whole.was_merged
    assert left.total == whole.total
    assert (left.not_private_cells() == whole.not_private_cells()).all()
    assert_equal(left, model, first + second)
    left.update(second)
    model.update(second)
    assert_equal(left, model, first + second)


@both_kinds
@settings(max_examples=60, deadline=None)
@given(stream=STREAMS, more=st.lists(SMALL_INTS, max_size=20), shape=SHAPES, seed=SEEDS)
def test_a_restored_state_continues_identically(kind, reference, stream, more, shape, seed) -> None:
    width, depth, tracked = shape
    sketch = kind(width, depth, tracked=tracked, seed=seed)
    sketch.update(stream)
    restored = kind.from_bytes(sketch.to_bytes())
    assert restored.to_bytes() == sketch.to_bytes()
    following = more if isinstance(stream[0], int) else [type(stream[0])()]
    sketch.update(following)
    restored.update(following)
    assert restored.to_bytes() == sketch.to_bytes()


@both_kinds
@settings(max_examples=60, deadline=None)
@given(stream=st.lists(st.sampled_from(["a", "b", "c", "dd", "é"]), min_size=1), tracked=st.integers(0, 3), seed=SEEDS)
def test_dictionary_columns_count_like_plain_ones(kind, reference, stream, tracked, seed) -> None:
    plain, coded, wide = (kind(5, 3, tracked=tracked, seed=seed) for _ in range(3))
    plain.update(pa.array(stream))
    column = pa.array(stream).dictionary_encode()
    coded.update(column)
    # A dictionary with more values than rows, and a null among them that no row uses.
    values = pa.array([*column.dictionary.to_pylist(), None, *"uvwxyz" * 20])
    wide.update(pa.DictionaryArray.from_arrays(column.indices, values), nulls="skip")
    assert content(plain) == content(coded) == content(wide)
    assert (plain.estimate_many(column) == plain.estimate_many(stream)).all()


@settings(max_examples=100, deadline=None)
@given(stream=st.lists(SMALL_INTS, min_size=1), shape=SHAPES, seed=SEEDS)
def test_count_min_never_underestimates_and_its_candidates_are_the_largest(stream, shape, seed) -> None:
    width, depth, tracked = shape
    sketch = dc.CountMin(width, depth, tracked=tracked, seed=seed)
    at_last_arrival: dict[int, int] = {}
    for x in stream:
        sketch.update([x])
        at_last_arrival[x] = sketch.estimate(x).value
    for x, f in Counter(stream).items():
        estimate = sketch.estimate(x)
        assert f <= estimate.value == estimate.upper
        assert estimate.lower <= estimate.value
    candidates = dict(arrivals(sketch))
    assert candidates.items() <= at_last_arrival.items()
    assert sorted(candidates.values()) == sorted(at_last_arrival.values())[-tracked or len(stream) :]


@both_kinds
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damaged_states_are_refused(kind, reference, data) -> None:
    sketch = kind(3, 3, tracked=2, seed=5)
    sketch.update(["a", "b", "c", "a"])
    state = bytearray(sketch.to_bytes())
    change = data.draw(st.sampled_from(["flip", "cut", "extend", "random"]))
    if change == "flip":
        bit = data.draw(st.integers(0, 8 * len(state) - 1))
        state[bit // 8] ^= 1 << bit % 8
    elif change == "cut":
        del state[data.draw(st.integers(0, len(state) - 1)) :]
    elif change == "extend":
        state += data.draw(st.binary(min_size=1, max_size=9))
    else:
        state = bytearray(data.draw(st.binary(max_size=300)))
    with pytest.raises(dc.CorruptStateError):
        kind.from_bytes(bytes(state))


def test_large_batches_and_widths_take_the_same_path() -> None:
    """Blocks, slices and prefetching change nothing: 600 000 seeded events against NumPy's exact sums."""
    stream = (np.random.default_rng(3).zipf(1.3, 600_000) % 5_000).astype(np.int32)
    for kind, _ in KINDS:
        sketch = kind(50_000, 3, seed=9)
        sketch.update(stream)
        items, counts = np.unique(stream, return_counts=True)
        columns, signs = sketch.places(items)
        for row in range(3):
            expected = np.zeros(50_000, np.int64)
            np.add.at(expected, columns[:, row], signs[:, row] * counts)
            assert (sketch.not_private_cells()[row] == expected).all()
