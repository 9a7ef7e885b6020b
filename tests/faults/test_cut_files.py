"""A file that was cut is told from a whole one, wherever it was cut, in every format that can tell."""

import gzip
import random

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.rows import open_stream

import discreet as dc

TABLE = pa.table({"query": [f"item {i % 40}" for i in range(600)]})
TEXT = b"query\n" + b"".join(b"item %d\n" % (i % 40) for i in range(600))


def arrow(new):
    sink = pa.BufferOutputStream()
    with new(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=100)
    return sink.getvalue().to_pybytes()


def feather(path):
    pa.feather.write_feather(TABLE, str(path), chunksize=100)
    return path.read_bytes()


def parquet(path):
    pq.write_table(TABLE, path, row_group_size=100)
    return path.read_bytes()


FILES = {
    "x.arrow": lambda path: arrow(pa.ipc.new_file),
    "x.arrows": lambda path: arrow(pa.ipc.new_stream),
    "x.feather": feather,
    "x.parquet": parquet,
    "x.csv.gz": lambda path: gzip.compress(TEXT),
    "x.csv.zst": lambda path: pa.compress(TEXT, "zstd", asbytes=True),
    "x.arrows.gz": lambda path: gzip.compress(arrow(pa.ipc.new_stream)),
}


@pytest.mark.parametrize("name", FILES)
def test_no_part_of_a_file_passes_for_the_whole(tmp_path, name, rounds):
    """Every cut among the last 300 bytes, and random ones before (seeded)."""
    path = tmp_path / name
    data = FILES[name](path)
    path.write_bytes(data)
    assert sum(batch.num_rows for batch in open_stream(path)) == 600
    source = random.Random(1)
    cuts = {len(data) - end for end in range(1, min(300, len(data)))}
    cuts |= {source.randrange(len(data)) for _ in range(rounds(100, 5000))} | {0, 1, 2, 3, 8, 16}
    for cut in cuts:
        path.write_bytes(data[:cut])
        with pytest.raises(dc.DataError):
            list(open_stream(path))


@pytest.mark.parametrize("name", ["x.arrow", "x.arrows"])
def test_files_put_one_after_the_other_are_refused(tmp_path, name):
    """Only the first of them would be read."""
    path = tmp_path / name
    data = FILES[name](path)
    path.write_bytes(data + data)
    with pytest.raises(dc.DataError):
        list(open_stream(path))


def test_a_file_of_a_compression_that_is_not_known_is_refused_by_its_name(tmp_path):
    path = tmp_path / "log.txt.xz"
    path.write_bytes(b"\xfd7zXZ\x00\x00\x04\n")
    with pytest.raises(dc.ParameterError, match=r"\.xz"):
        list(open_stream(path))
    path = tmp_path / "log.txt.bz2"  # known, and cut
    path.write_bytes(b"BZh91AY&SY\x01\n")
    with pytest.raises(dc.DataError, match="not a whole bz2 stream"):
        list(open_stream(path))
