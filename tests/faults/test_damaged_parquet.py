"""Damaged Parquet files are errors: they do not end the process, and page checksums are used where there are some."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.events.stream import open_stream

SCRIPT = Path(__file__).with_name("damaged_parquet.py")


def test_damaged_parquet_files_do_not_end_the_process(tmp_path, rounds):
    """Random bytes changed anywhere, in the footer and at the start; some variants, columns and readers (seeded)."""
    for seed in range(rounds(2, 30)):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(tmp_path), str(seed), "800"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, (seed, done.returncode, done.stdout[-100:], done.stderr[-2000:])
        ends = [line.strip() for line in done.stdout.splitlines()[1::2]]
        assert set(ends) == {"read", "refused"}
        assert ends.count("refused") > 100


def test_page_checksums_are_checked(tmp_path):
    """With checksums no changed byte of a page is counted; without them it may be."""
    path = tmp_path / "log.parquet"
    for checksums in (True, False):
        table = pa.table({"query": ["cats"] * 1000})
        pq.write_table(table, path, use_dictionary=False, compression="none", write_page_checksum=checksums)
        path.write_bytes(path.read_bytes().replace(b"\4\0\0\0cats", b"\4\0\0\0rats", 1))
        if checksums:
            with pytest.raises(dc.DataError, match="damaged"):
                list(open_stream(path))
        else:
            assert {item for batch in open_stream(path) for item in batch.column("item").to_pylist()} == {
                "cats",
                "rats",
            }
