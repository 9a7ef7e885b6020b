"""Batches that were checked and hashed before they are counted: the same state, and the same refusals."""

import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import open_stream

import discreet as dc
from discreet import _native
from discreet.summaries import CountMin, MisraGries, ShardedMisraGries

GOLDEN = Path(__file__).parents[2] / "golden"
TEXTS = [f"{'long/' * (i % 7)}é{i % 97}" for i in range(3000)]
COLUMNS = {
    "text": pa.array(TEXTS),
    "large": pa.array(TEXTS, pa.large_string()),
    "bytes": pa.array([text.encode() for text in TEXTS]),
    "slice": pa.array(["before", *TEXTS, "after"]).slice(1, 3000),
    "nulls": pa.array([text if i % 5 else None for i, text in enumerate(TEXTS)]),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary with nulls": pa.array([None, *TEXTS]).dictionary_encode(),
    "integers": pa.array(np.arange(3000) % 89),
    "chunks": pa.chunked_array([TEXTS[:7], TEXTS[7:2000], [], TEXTS[2000:]]),
    "bad rows": pa.array([b"\xff" if i % 9 == 0 else text.encode() for i, text in enumerate(TEXTS)]).view(pa.string()),
    "objects": TEXTS,
    "too long": pa.array([text + "x" * (5000 * (i % 11 == 0)) for i, text in enumerate(TEXTS)]),
}


def empty(shards):
    return MisraGries(40, seed=5) if shards == 1 else ShardedMisraGries(40, shards, seed=5)


def state(summary):
    """All counters, and what was lost of them: not the lineage, which is random."""
    raw = summary.not_private_counts()
    offsets = summary.not_private_offset if isinstance(summary, MisraGries) else summary.not_private_offsets
    return raw.items.to_pylist(), raw.counts.tolist(), offsets


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_state_is_the_same(name, shards):
    column, plain, ahead, batches = COLUMNS[name], empty(shards), empty(shards), empty(shards)
    for _ in range(2):
        plain.update(column, nulls="skip")
        batch = ahead.checked(column, nulls="skip")
        ahead.update(batch, nulls="skip")
    assert state(ahead) == state(plain)
    if shards > 1:
        batches.update_batches([batch, ahead.checked(column, nulls="skip")], nulls="skip")
        assert state(batches) == state(plain)


@pytest.mark.parametrize("length", [1, 400])
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_batch_of_several_slices(shards, length):
    """More rows than threads take at a time, from the middle of a column; long ones are more bytes than may wait."""
    numbers = np.random.default_rng(2).zipf(1.2, 70_000) % 999
    column = pa.array([f"{number:>{length}}" for number in numbers.tolist()]).slice(777)
    plain, ahead = empty(shards), empty(shards)
    for _ in range(2):
        plain.update(column)
        ahead.update(ahead.checked(column))
    assert state(ahead) == state(plain)


def made(tmp_path, texts, **options):
    """Columns that native code has made, of a file."""
    pq.write_table(pa.table({"item": texts}), tmp_path / "rows.parquet", **options)
    stream = open_stream([tmp_path / "rows.parquet"], column="item", joint=True)
    columns = list(stream.items())
    assert all(isinstance(column, _native.MadeColumn) for column in columns)
    return columns


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("encoded", [True, False])
def test_hashes_that_were_made_with_a_column(tmp_path, encoded, shards, seed):
    """Those under another seed are not used."""
    other = MisraGries(40, seed=seed)
    plain, ahead = empty(shards), empty(shards)
    for column in made(tmp_path, COLUMNS["text"], use_dictionary=encoded):
        plain.update(column)
    for column in made(tmp_path, COLUMNS["text"], use_dictionary=encoded):
        other.hash_made(column)
        ahead.hash_made(column)
        ahead.update(ahead.checked(column))
    assert state(ahead) == state(plain)
    CountMin(10, 2).hash_made(column)  # which has another way to hash, and nothing to do here


def test_another_seed_and_a_summary_of_several_kinds():
    """Hashes under another seed are not used, and those of text are the same beside numbers."""
    column = COLUMNS["text"]
    plain, ahead = MisraGries(40, seed=5), MisraGries(40, seed=5)
    for summary in (plain, ahead):
        summary.update([1, 2, 3])
    plain.update(column)
    ahead.update(MisraGries(40, seed=6).checked(column))
    plain.update(column)
    ahead.update(ahead.checked(column))
    assert state(ahead) == state(plain)


@pytest.mark.parametrize("name", ["misra_gries", "sharded_misra_gries"])
@pytest.mark.parametrize("column", ["text", "dictionary"])
def test_hashes_of_the_first_version_are_not_taken_for_todays(name, column):
    """A state of version 1 goes on with the hashes it began with: under one seed there are two."""
    kind = {"misra_gries": MisraGries, "sharded_misra_gries": ShardedMisraGries}[name]
    old = kind.from_bytes((GOLDEN / f"{name}-v1.state").read_bytes())
    new = kind(1000, *([3] if kind is ShardedMisraGries else []), seed=old.seed)
    for batch in (COLUMNS[column], old.checked(COLUMNS[column]), new.checked(COLUMNS[column])):
        new.update(batch)
    assert new.not_private_counts().to_dict() == {text: 3 * n for text, n in Counter(TEXTS).items()}
    assert len(new) == len(set(TEXTS))
    twice = kind.from_bytes(old.to_bytes())
    twice.update(COLUMNS[column])
    old.update(new.checked(COLUMNS[column]))
    assert state(old) == state(twice)


def test_what_is_refused_is_refused_with_the_same_words():
    summary = MisraGries(40)
    for how in ({"bad_items": "error"}, {"nulls": "error"}):
        for name in ("bad rows", "too long", "nulls"):
            errors = []
            for act in (summary.update, summary.checked):
                try:
                    act(COLUMNS[name], **how)
                    errors.append(None)
                except dc.DataError as error:
                    errors.append(str(error))
            assert errors[0] == errors[1]
    # Rules that are not those of the check are looked at again.
    batch = summary.checked(COLUMNS["nulls"], nulls="skip")
    with pytest.raises(dc.DataError, match="nulls"):
        summary.update(batch)
    for checked in (COLUMNS["bad rows"], COLUMNS["text"]):
        with pytest.raises(dc.DataError, match="left out"):
            summary.update(summary.checked(checked), bad_items="error")
    before = summary.total
    summary.update(summary.checked(COLUMNS["text"], bad_items="error"))
    assert summary.total == before + len(TEXTS)
    short = MisraGries(40, max_key_bytes=10)
    short.update(summary.checked(COLUMNS["text"]))
    assert max(len(str(item).encode()) for item in short.not_private_counts().items.to_pylist()) <= 10


def test_other_summaries_give_the_data_back():
    column = COLUMNS["text"]
    assert CountMin(3, 64).checked(column) is column


def test_a_batch_outlives_what_it_was_made_of():
    summary, batches = MisraGries(40, seed=5), []

    def check():
        column = pa.array([text + "!" for text in TEXTS])
        batches.append(summary.checked(column))

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    summary.update(batches.pop())
    plain = MisraGries(40, seed=5)
    plain.update([text + "!" for text in TEXTS])
    assert state(summary) == state(plain)
