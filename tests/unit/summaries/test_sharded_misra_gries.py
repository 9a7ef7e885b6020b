"""ShardedMisraGries: every shard is exactly the sketch of its own items, whatever the threads do."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.states import content

import discreet as dc
from discreet import _native
from discreet.errors import CorruptStateError, DataError, IncompatibleSummaryError, ParameterError

RNG = np.random.default_rng(20)
NUMBERS = RNG.zipf(1.2, 40_000) % 5000
WORDS = pa.array([f"a word with some length {number}" if number % 3 else f"w{number}" for number in NUMBERS])
LONG = pa.concat_arrays([WORDS] * 8)  # more than one slice for every thread, and more than is taken without a copy
NULLS = pa.array([None if i % 11 == 0 else word for i, word in enumerate(WORDS.to_pylist())])
INPUTS = {
    "strings": LONG,
    "few strings": WORDS[:5000],
    "sliced strings": LONG[777:],
    "large strings": WORDS.cast(pa.large_string()),
    "views": WORDS.cast(pa.string_view()),
    "bytes": WORDS.cast(pa.binary()),
    "chunks": pa.chunked_array([LONG[:3], LONG[3:3], LONG[3:100_000], LONG[100_000:]]),
    "dictionary": LONG.dictionary_encode(),
    "dictionaries": pa.chunked_array([LONG[:50_000].dictionary_encode(), LONG[50_000:][::-1].dictionary_encode()]),
    "dictionary larger than the column": pa.DictionaryArray.from_arrays(
        pa.array(np.arange(30_000) % 7, pa.int32()), pa.array([f"value {i}" for i in range(40_000)])
    ),
    "few rows of a dictionary": WORDS[:5000].dictionary_encode(),
    "dictionary of numbers": pa.array(NUMBERS).dictionary_encode(),
    "int64": np.tile(NUMBERS, 8),
    "int16": (NUMBERS % 30_000).astype(np.int16),
    "uint64": NUMBERS.astype(np.uint64) + np.uint64(2**63),
    "numpy strings": np.array(WORDS.to_pylist()[:9000]),
    "iterable": WORDS.to_pylist(),
}


def values_of(data):
    return data.to_pylist() if hasattr(data, "to_pylist") else list(data)


def assert_shards_are_sketches(summary, values):
    """Each shard against a `MisraGries` that saw the events of its items alone."""
    shard_of = {value: summary.shard_of(value) for value in set(values)}
    assert set(shard_of.values()) <= set(range(summary.shards))
    for shard, raw in enumerate(summary.not_private_shards()):
        alone = dc.MisraGries(summary.capacity, seed=summary.seed)
        own = [value for value in values if shard_of[value] == shard]
        if own:
            alone.update(np.array(own) if summary.key_type == "uint64" else own)
        assert raw.to_dict() == alone.not_private_counts().to_dict()
        assert summary.not_private_offsets[shard] == alone.not_private_offset
    assert summary.total == len(values)
    assert len(summary) == sum(len(raw) for raw in summary.not_private_shards())


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("shards", [2, 5])
def test_every_shard_is_the_sketch_of_its_items(kind, shards):
    summary = dc.ShardedMisraGries(100, shards, seed=3)
    summary.update(INPUTS[kind])
    assert_shards_are_sketches(summary, values_of(INPUTS[kind]))


@pytest.mark.parametrize("kind", INPUTS)
def test_one_shard_is_one_sketch(kind):
    sharded, alone = dc.ShardedMisraGries(64, 1, seed=3), dc.MisraGries(64, seed=3)
    sharded.update(INPUTS[kind])
    alone.update(INPUTS[kind])
    assert sharded.not_private_counts().to_dict() == alone.not_private_counts().to_dict()
    assert sharded.not_private_offsets == [alone.not_private_offset]


@pytest.mark.parametrize("encode", [False, True])
def test_nulls_are_left_out(encode):
    column = pa.concat_arrays([NULLS] * 8)
    column = column.dictionary_encode() if encode else column
    summary = dc.ShardedMisraGries(100, 3, seed=3)
    with pytest.raises(DataError, match="nulls"):
        summary.update(column)
    assert (summary.total, summary.key_type) == (0, None)
    summary.update(column, nulls="skip")
    assert_shards_are_sketches(summary, [value for value in column.to_pylist() if value is not None])


def test_a_dictionary_with_a_null_among_its_values():
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(40_000) % 4, pa.int8()), pa.array(["a", None, "b", "c"]))
    summary = dc.ShardedMisraGries(3, 2, seed=1)
    with pytest.raises(DataError, match="nulls"):
        summary.update(column)
    summary.update(column, nulls="skip")
    assert summary.not_private_counts().to_dict() == {"a": 10_000, "b": 10_000, "c": 10_000}


def test_batches_are_one_stream():
    parts = [LONG[i : i + 7001] for i in range(0, len(LONG), 7001)]
    whole, batches = dc.ShardedMisraGries(100, 3, seed=3), dc.ShardedMisraGries(100, 3, seed=3)
    whole.update(LONG)
    mixed = [part.dictionary_encode() if i % 3 == 0 else part for i, part in enumerate(parts)]
    batches.update_batches([*mixed[:-1], mixed[-1].to_pylist()])
    assert content(batches) == content(whole)


def test_batches_are_read_in_the_calling_thread():
    seen = set()

    def read():
        for start in range(0, len(LONG), 20_000):
            seen.add(threading.get_ident())
            yield LONG[start : start + 20_000]

    summary = dc.ShardedMisraGries(100, 2)
    summary.update_batches(read())
    assert seen == {threading.get_ident()}
    assert summary.total == len(LONG)


class StopError(Exception):
    pass


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(pa.array(["x"] * 20_000 + [None]), id="a null"),
        pytest.param(pa.array(["x", "y" * 5000]), id="too long"),
        pytest.param(pa.array([b"\xff" * 3] * 9000).view(pa.string()), id="not UTF-8"),
        pytest.param(
            pa.DictionaryArray.from_arrays(pa.array([5] * 20_000, pa.int32()), pa.array(["a"]), safe=False),
            id="a code that is no index",
        ),
        pytest.param(None, id="the reader fails"),
    ],
)
def test_a_failed_batch_leaves_no_trace(last):
    summary = dc.ShardedMisraGries(100, 3, seed=3)
    summary.update(["before", "before", "also"])
    before = summary.to_bytes()

    def batches():
        yield LONG
        yield WORDS
        if last is None:
            raise StopError
        yield last
        yield WORDS

    with pytest.raises(StopError if last is None else DataError):
        summary.update_batches(batches(), bad_items="error")
    assert summary.to_bytes() == before
    summary.update(WORDS)
    assert summary.total == 3 + len(WORDS)


def test_an_update_that_uses_its_own_summary_is_refused():
    summary = dc.ShardedMisraGries(100, 2)

    def batches():
        yield WORDS
        summary.update(["x"])

    with pytest.raises(DataError, match="being updated"):
        summary.update_batches(batches())
    assert summary.total == 0


def test_signs_are_kept_apart():
    summary = dc.ShardedMisraGries(10, 2, seed=1)
    summary.update(np.array([1, 2, 3]))
    summary.update(pa.array(np.full(20_000, 7, np.uint64)).dictionary_encode())
    summary.update_batches([np.full(20_000, 7, np.uint64), np.full(20_000, 2**64 - 1, np.uint64), np.array([-1])])
    assert (summary.total, summary.key_type) == (60_004, "mixed")
    assert summary.not_private_counts().to_dict() == {1: 1, 2: 1, 3: 1, 7: 40_000, 2**64 - 1: 20_000, -1: 1}


def test_updates_from_several_threads_all_count():
    summary = dc.ShardedMisraGries(10, 2)
    threads = [threading.Thread(target=summary.update, args=(["x"] * 20_000,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert summary.estimate("x").value == 80_000


def test_estimates_hold_their_bounds():
    summary = dc.ShardedMisraGries(50, 3, seed=9)
    summary.update(NUMBERS)
    truth = dict(zip(*np.unique(NUMBERS, return_counts=True), strict=True))
    for item, count in truth.items():
        estimate = summary.estimate(int(item))
        assert estimate.lower <= count <= estimate.upper
        assert estimate.upper - estimate.lower <= len(NUMBERS) // 51
    assert summary.estimate("not of this kind" if summary.key_type == "string" else 10**12).value == 0


def test_states_round_trip_and_go_on():
    summary = dc.ShardedMisraGries(40, 3, seed=5)
    summary.update(WORDS)
    restored = dc.ShardedMisraGries.from_bytes(summary.to_bytes())
    assert (restored.capacity, restored.shards, restored.seed) == (40, 3, 5)
    for one in (summary, restored):
        one.update(LONG)
    assert restored.to_bytes() == summary.to_bytes()


def test_a_state_with_a_key_in_a_shard_of_others_is_refused():
    """Otherwise an item could be counted in two shards, and each would spend the budget on it."""
    summary = dc.ShardedMisraGries(4, 2, seed=5)
    summary.update([1, 2, 3, 4, 5, 6])
    state, head = summary.to_bytes(), 32 + 8 + 8 + 8 + 1 + 4
    size = 24 + 16 * len(summary.not_private_shards()[0])
    swapped = state[:head] + state[head + size :] + state[head : head + size]
    with pytest.raises(CorruptStateError, match="shard of others"):
        dc.ShardedMisraGries.from_bytes(_native.reseal_state(swapped))


def test_merging_needs_the_same_shards():
    first, second = dc.ShardedMisraGries(10, 2, seed=1), dc.ShardedMisraGries(10, 2, seed=1)
    first.update(["a", "b"])
    second.update(["a", "c"])
    first.merge(second)
    assert first.not_private_counts().to_dict() == {"a": 2, "b": 1, "c": 1}
    assert first.was_merged
    for other in (dc.ShardedMisraGries(10, 3, seed=1), dc.ShardedMisraGries(10, 2, seed=2), dc.MisraGries(10, seed=1)):
        with pytest.raises(IncompatibleSummaryError):
            first.merge(other)


@pytest.mark.parametrize("shards", [0, -1, 129, 1.5, True, "2"])
def test_shards_are_checked(shards):
    with pytest.raises(ParameterError, match="shards"):
        dc.ShardedMisraGries(10, shards)


def test_a_generator_may_fill_its_array_anew():
    def batches():
        buffer = np.zeros(50_000, np.int64)
        for item in range(10):
            buffer[:] = item
            yield buffer

    summary = dc.ShardedMisraGries(64, 2)
    summary.update_batches(batches())
    raw = summary.not_private_counts()
    assert dict(zip(np.asarray(raw.items).tolist(), raw.counts.tolist(), strict=True)) == dict.fromkeys(
        range(10), 50_000
    )


@pytest.mark.parametrize(
    "of", [pa.array, lambda array: pa.chunked_array([array]), lambda array: pa.table({"x": array})]
)
def test_a_generator_may_fill_the_memory_of_its_arrow_array_anew(of):
    """An array of Arrow may look into memory of NumPy's, which belongs to whoever made it."""

    def filled(memory, number):
        memory[:] = number
        column = pa.Array.from_buffers(pa.int64(), len(memory), [None, pa.py_buffer(memory)])
        return column if of is pa.array else of(column)

    memory = np.zeros(20_000, np.int64)
    summary = dc.ShardedMisraGries(8, 2, seed=1)
    summary.update_batches(filled(memory, number) for number in range(6))
    assert summary.not_private_counts().to_dict() == dict.fromkeys(range(6), 20_000)
