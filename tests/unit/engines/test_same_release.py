"""The same rows make the same release, however they are stored, read ahead and batched: for a seeded source exactly."""

import csv
import json
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.rows import open_stream

import discreet as dc
from discreet.events import parquet
from discreet.events.ahead import in_order, read_ahead
from discreet.noise import seeded_source
from discreet.summaries import MisraGries, ShardedMisraGries

BUDGET = dc.Budget(1.0, 1e-3)
CAPACITY = 256
DISTINCT = 2000
PLAIN_ROWS = parquet.PLAIN_ROWS


@pytest.fixture(scope="module")
def names():
    """Far more items than counters, a few of them frequent; texts that a table keeps inline and apart."""
    rng = np.random.default_rng(5)
    ranks = np.minimum(rng.zipf(1.3, 30_000), DISTINCT) - 1
    texts = [f"{'long/' * (rank % 9)}é{rank}" for rank in range(DISTINCT)]
    return pa.array([texts[rank] for rank in ranks])


def files_of(folder, names):
    table = pa.table({"other": np.arange(len(names)), "item": names})
    layouts = {
        "one": {},
        "groups of 100": {"row_group_size": 100},
        "groups of 7,001": {"row_group_size": 7001, "compression": "zstd"},
        "plain": {"use_dictionary": False},
        "small dictionaries": {"dictionary_pagesize_limit": 2000, "data_page_size": 3000},
        "pages of version 2": {"data_page_version": "2.0", "write_page_checksum": True},
    }
    for name, options in layouts.items():
        pq.write_table(table, folder / f"{name}.parquet", **options)
        yield [folder / f"{name}.parquet"]
    for quoting in ("needed", "none"):
        options = pyarrow.csv.WriteOptions(quoting_style=quoting)
        pyarrow.csv.write_csv(table, folder / f"{quoting}.csv", options)
        yield [folder / f"{quoting}.csv"]
    for part, (start, length) in enumerate(((0, 12_345), (12_345, 1), (12_346, len(names)))):
        pq.write_table(table.slice(start, length), folder / f"part {part}.parquet", row_group_size=999)
    yield [folder / f"part {part}.parquet" for part in range(3)]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_the_release_does_not_depend_on_blocks_and_threads_of_text(tmp_path, monkeypatch, names, format):
    """Blocks from a few records to all of them; a record longer than a block; threads from none to more than cores."""
    some = names.slice(0, 4000).to_pylist()
    some[1234] = "y" * 3000
    some[2345] = 'a "quoted", word\nand a line' if format == "csv" else some[2345]
    path = tmp_path / f"rows.{format}"
    with path.open("w", newline="") as file:
        if format == "jsonl":
            file.writelines(json.dumps({"other": [1], "item": item}) + "\n" for item in some)
        else:
            how = {"delimiter": "," if format == "csv" else "\t", "lineterminator": "\r\n"}
            csv.writer(file, **how).writerows([["other", "item"], *([1, item] for item in some)])
    at_once = MisraGries(CAPACITY, seed=3)
    at_once.update(pa.array(some))
    expected = released(at_once)
    assert len(expected[0]) > 5
    for size, helpers in ((1 << 20, 1), (20_000, 0), (20_000, 3), (999, 1), (999, 5)):
        monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", size)
        stream = open_stream([path], column="item", joint=True)
        stream.side_by_side = partial(in_order, helpers=helpers)
        summary = MisraGries(CAPACITY, seed=3)
        for batch in read_ahead(stream):
            summary.update(batch.column("item"))
        assert released(summary) == expected, (size, helpers)


def released(summary):
    release = dc.release(summary, BUDGET, source=seeded_source(7))
    return release.items, release.counts.tolist(), release.threshold, release.offset, release.shard_offsets


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_release_does_not_depend_on_how_rows_are_stored(tmp_path, monkeypatch, names, workers):
    def empty():
        return MisraGries(CAPACITY, seed=3) if workers == 1 else ShardedMisraGries(CAPACITY, workers, seed=3)

    at_once = empty()
    at_once.update(names)
    expected = released(at_once)
    assert len(expected[0]) > 20
    for paths in files_of(tmp_path, names):
        for rows, made in ((64, False), (PLAIN_ROWS, False), (64, True)):
            monkeypatch.setattr(parquet, "PLAIN_ROWS", rows)
            summary, stream = empty(), open_stream(paths, column="item", joint=True)
            if made:
                stream.feed(summary)
            else:
                stream.side_by_side = in_order
                batches = read_ahead(summary.checked(batch.column("item")) for batch in stream)
                if isinstance(summary, ShardedMisraGries):
                    summary.update_batches(batches)
                else:
                    for batch in batches:
                        summary.update(batch)
            assert released(summary) == expected, (paths, rows, made)


def test_the_release_of_a_large_table_is_that_of_single_rows():
    """A table that no cache holds is filled with its places asked for ahead: the state is the same."""
    numbers = np.random.default_rng(6).zipf(1.2, 60_000) % 40_000
    texts = pa.array([f"https://example.org/{number}" for number in numbers])
    states = []
    for step in (len(texts), 31):  # rows at a time; fewer than are asked for ahead
        summary = MisraGries(10_000, seed=3)
        for start in range(0, len(texts), step):
            summary.update(texts.slice(start, step))
        states.append(released(summary))
    assert states[0] == states[1]
