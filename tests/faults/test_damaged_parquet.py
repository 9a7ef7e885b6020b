"""Damaged Parquet files are errors: they do not end the process, and page checksums are used where there are some."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import open_stream

import discreet as dc

SCRIPT = Path(__file__).with_name("damaged_parquet.py")
FOOTERS = Path(__file__).with_name("damaged_footers.py")


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


def test_a_damaged_footer_is_not_a_shorter_file(tmp_path, rounds):
    """Each byte of the footer another: all rows are read, or none. Files of two writers, by both readers (seeded)."""
    arguments = [str(tmp_path), "1", str(rounds(3, 12))]
    done = subprocess.run(
        [sys.executable, str(FOOTERS), *arguments], capture_output=True, text=True, timeout=3000, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ends = done.stdout.splitlines()
    assert [end for end in ends if end.startswith("other")] == []
    assert sum(end.startswith("refused") for end in ends) > len(ends) / 3


@pytest.mark.parametrize("column", ["query", "n"])
def test_row_groups_and_the_number_of_rows_must_agree(tmp_path, column):
    """The number of rows of the last group, or of the file, is another: as a varint in which 1000 is d0 0f."""
    path = tmp_path / "log.parquet"
    table = pa.table({"query": ["cats"] * 3000, "n": [1] * 3000})
    pq.write_table(table, path, row_group_size=1000, store_schema=False)
    data = path.read_bytes()
    for old, new in ((b"\x16\xd0\x0f", b"\x16\xd0\x07"), (b"\x16\xf0\x2e", b"\x16\xf0\x1e")):
        assert old in data
        path.write_bytes(new.join(data.rsplit(old, 1)))
        with pytest.raises(dc.DataError, match="damaged"):
            list(open_stream(path, column=column))


def test_what_pyarrow_does_not_read_is_not_called_damaged(tmp_path):
    """The codec LZO, which nobody writes any more: none (0) is made 3 in the footer. And an encrypted footer."""
    path = tmp_path / "log.parquet"
    pq.write_table(
        pa.table({"n": [1, 2, 3]}), path, compression="none", use_dictionary=False, write_statistics=False,
        store_schema=False,
    )  # fmt: skip
    data = path.read_bytes()
    codec = b"\x18\x01n\x15\x00"
    assert codec in data
    for changed in (data.replace(codec, codec[:-1] + b"\x06"), data[:-4] + b"PARE"):
        path.write_bytes(changed)
        with pytest.raises(dc.DataError, match="unsupported codec") as caught:
            list(open_stream(path))
        assert "damaged" not in str(caught.value)
        assert caught.value.__context__ is None


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
