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


def pages(**options: object) -> bytes:
    """Of a small column, after what the target takes for its footer."""
    texts = ["a", "bb", "", "a", None, "é" * 70] * 30
    file = io.BytesIO()
    pq.write_table(pa.table({"item": texts}), file, **options)
    data, chunk = file.getvalue(), pq.ParquetFile(file).metadata.row_group(0).column(0)
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    codec = chunk.compression == "SNAPPY"
    return bytes([codec | 2 | 4]) + struct.pack("<H", len(texts)) + data[first : first + chunk.total_compressed_size]


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
    yield "parquet_pages", pages()
    yield "parquet_pages", pages(compression="none", use_dictionary=False, write_page_checksum=True)
    yield "parquet_pages", pages(data_page_version="2.0", data_page_size=64, write_batch_size=16)
    yield "parquet_pages", pages(compression="none", data_page_version="2.0", dictionary_pagesize_limit=8)


def main(folder: Path) -> None:
    for number, (target, data) in enumerate(seeds()):
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / f"seed-{number}").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
