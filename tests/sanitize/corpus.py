"""What the fuzz targets of cpp/fuzz begin with, from the golden files: python tests/sanitize/corpus.py FOLDER."""

import io
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GOLDEN = Path(__file__).parents[1] / "golden"


def footer() -> bytes:
    """Of a small Parquet file with the two columns that the target asks for."""
    table = pa.table({"item": ["a", "b", "a"], "user": [1, 2, 3], "nested": [[1], [2, 3], []]})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2)
    data = file.getvalue()
    (length,) = struct.unpack("<I", data[-8:-4])
    return data[-8 - length : -8]


def seeds() -> Iterator[tuple[str, bytes]]:
    """(target, input)."""
    for path in GOLDEN.rglob("*.state"):
        yield "state", path.read_bytes()
        yield "state", path.read_bytes()[32:]
    for path in (GOLDEN / "multiparty").glob("*.message"):
        message = path.read_bytes()
        for start in range(0, len(message), 8):  # the numbers begin somewhere behind the head
            yield "messages", bytes([36, 128, 3]) + message[start:]
    for path in GOLDEN.rglob("*.json"):
        yield "json_lines", b"\0" + path.read_bytes().replace(b"\n", b" ")
    yield "json_lines", b'\1{"item": ["a", "\\u00e9", null], "other": {"item": 1}}\n{"item": []}\n'
    yield "json_lines", b'\2{"item": 18446744073709551615, "beside": -1.5e3}\n{"item": true}\n\n{"item":'
    yield "records", b'\7\1a,"b\n""c",\r\n,,\n"x"y,z\n\n"'
    yield "records", b"\2\2item,user\nname,1\nother,2\r\n"
    yield "parquet_footer", footer()


def main(folder: Path) -> None:
    for number, (target, data) in enumerate(seeds()):
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / f"seed-{number}").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
