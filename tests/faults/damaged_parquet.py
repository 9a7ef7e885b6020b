"""Reads Parquet files with random damage. Arguments: a folder, a seed and a number of rounds.

Run by test_damaged_parquet.py in a process of its own, because what is not noticed before pyarrow's code meets it may
end the process.
"""

import io
import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from discreet._native import MadeColumn
from discreet.events.files import Files

TABLE = pa.table(
    {
        "text": [f"item {i * i % 301}" for i in range(3000)],
        "number": [i * 7919 % 1000 for i in range(3000)],
        "lists": [["a", "b"][: i % 3] for i in range(3000)],
    }
)
VARIANTS = [
    {},
    {"use_dictionary": False},
    {"compression": "zstd", "write_page_checksum": True},
    {"compression": "none"},
    {"data_page_version": "2.0", "compression": "none"},
    {"data_page_version": "2.0", "dictionary_pagesize_limit": 500},
    {"use_dictionary": False, "compression": "none", "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    {"use_dictionary": False, "compression": "none", "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
]


def written(options):
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=1000, data_page_size=4096, **options)
    return sink.getvalue()


def damaged(generator, data):
    """Some bytes anywhere, in the footer, or at the start are others."""
    changed = bytearray(data)
    first, last = generator.choice([(4, len(data) - 8), (max(4, len(data) - 3000), len(data) - 8), (4, 400)])
    for _ in range(generator.choice([1, 1, 2, 5, 20])):
        changed[generator.randrange(first, last)] = generator.randrange(256)
    return bytes(changed)


def main():
    path = Path(sys.argv[1]) / "log.parquet"
    generator = random.Random(int(sys.argv[2]))
    files = [written(options) for options in VARIANTS]
    for number in range(int(sys.argv[3])):
        path.write_bytes(damaged(generator, generator.choice(files)))
        column = generator.choice(TABLE.column_names)
        sys.stdout.write(f"{number} {column}\n")
        sys.stdout.flush()
        user = generator.choice([None, None, "number"]) if column == "text" else None
        try:
            stream = Files(path).rows(column, user=user, nulls="skip", plain=True)
            made = generator.random() < 0.7
            for items in stream.items() if made else (batch.column("item") for batch in stream):
                if isinstance(items, MadeColumn):
                    assert all(len(item.decode()) <= 4096 for item in items.to_list())
                    dc.MisraGries(64).update(items)
                else:
                    items.validate(full=True)
            end = "read"
        except dc.DataError:
            end = "refused"
        sys.stdout.write(f"    {end}\n")


if __name__ == "__main__":
    main()
