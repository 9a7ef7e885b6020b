"""Arrow streams and files: whole ones are read, from files and pipes, and what is not whole is refused as such."""

import io

import pyarrow as pa
import pyarrow.feather
import pytest

from discreet.errors import DataError
from discreet.events.files import Files

TABLE = pa.table({"item": [f"/{n}" for n in range(90)], "n": list(range(90))})


def stream(table=TABLE, rows=30):
    held = io.BytesIO()
    with pa.ipc.new_stream(held, table.schema) as writer:
        writer.write_table(table, rows)
    return held.getvalue()


def file(table=TABLE, rows=30):
    held = io.BytesIO()
    with pa.ipc.new_file(held, table.schema) as writer:
        writer.write_table(table, rows)
    return held.getvalue()


def items_of(path, data, **words):
    path.write_bytes(data)
    rows = Files(str(path)).rows("item", **words)
    return [item for batch in rows for item in batch.column("item").to_pylist()]


@pytest.mark.parametrize("make", [stream, file])
@pytest.mark.parametrize("rows", [1, 30, 90])
def test_whole_ones_are_read(tmp_path, make, rows):
    assert items_of(tmp_path / "a.arrow", make(rows=rows)) == TABLE.column("item").to_pylist()
    assert items_of(tmp_path / "a.arrow", make(TABLE.slice(0, 0))) == []


FOOTER = file()[-10:-6]
CUT = {
    "a stream and a byte": (stream() + b"\0", "has bytes after the end of its Arrow stream; write it again as one"),
    "two streams": (stream() + stream(), "has bytes after the end of its Arrow stream; write it again as one"),
    "a stream without its mark": (stream()[:-8], "is truncated: the end mark of its Arrow stream is missing"),
    "a stream with half of its mark": (stream()[:-4], "is truncated|is damaged or cut short"),
    "a stream cut inside of a batch": (stream()[:-200], "is damaged or cut short|is truncated"),
    "a stream cut in its schema": (stream()[:40], "is not an Arrow IPC stream or file|is damaged"),
    "a file without a footer": (file()[: file().rindex(b"\xff\xff\xff\xff\0\0\0\0") + 8], "it has no footer"),
    "a file without its last word": (file()[:-6], "it has no footer; write or copy it again"),
    "a file cut in its last word": (file()[:-1], "it has no footer"),
    "a file with another footer": (file()[:-10] + b"\1\0\0\0" + file()[-6:], "it has no footer"),
    "a file with more after it": (file() + b"ARROW1", "it has no footer"),
    "a file and a file": (file() + file(), "it has no footer"),
    "nothing but a magic word": (b"ARROW1\0\0", "is not an Arrow IPC stream or file"),
    "another magic word": (b"ARROW2\0\0" + stream(), "is not an Arrow IPC stream or file"),
}  # fmt: skip


@pytest.mark.parametrize("what", CUT)
def test_what_is_not_whole_is_refused_and_quotes_nothing(tmp_path, what):
    """pyarrow takes an input that ends between two batches for a whole one."""
    data, words = CUT[what]
    with pytest.raises(DataError, match=rf"a\.arrow ({words})|a\.arrow is truncated: ({words})") as refused:
        items_of(tmp_path / "a.arrow", data, bad_rows="skip", nulls="skip")
    assert refused.value.__context__ is None
    assert "/1" not in str(refused.value).replace(str(tmp_path), "")


def test_wherever_a_stream_ends_it_is_whole_or_refused(tmp_path):
    """No prefix of it is taken for fewer rows."""
    whole = stream(TABLE.slice(0, 8), rows=3)
    for length in [*range(4, len(whole) - 20, 11), *range(len(whole) - 20, len(whole))]:
        with pytest.raises(DataError):
            items_of(tmp_path / "a.arrow", whole[:length])


def test_files_of_feather_are_read_with_their_compression(tmp_path):
    for compression in ("uncompressed", "lz4", "zstd"):
        pa.feather.write_feather(TABLE, tmp_path / "a.feather", compression=compression, chunksize=7)
        rows = Files(str(tmp_path / "a.feather")).rows("item")
        assert [item for batch in rows for item in batch.column("item").to_pylist()] == TABLE.column("item").to_pylist()
