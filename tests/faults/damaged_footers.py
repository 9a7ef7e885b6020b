"""Reads Parquet files of which one byte of the footer is another. Arguments: a folder, a seed, how many values a byte.

Run by test_damaged_parquet.py in a process of its own. Prints what became of each file: all of its rows were read, it
was refused, or (which must not be) other rows were read.
"""

import io
import random
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from discreet._native import MadeColumn
from discreet.events.files import Files

TABLE = pa.table({"text": [f"i{i * i % 31}" for i in range(3000)], "number": [i % 7 for i in range(3000)]})
SMALL = {"write_statistics": False, "store_schema": False, "row_group_size": 1000}
READERS = [("text", True), ("text", False), ("number", False)]


def by_arrow(**options):
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, **SMALL, **options)
    return sink.getvalue()


def by_duckdb(path):
    duckdb.from_arrow(TABLE).write_parquet(str(path), row_group_size=2048)
    return path.read_bytes()


def rows(path, column, made):
    """How often each item occurs."""
    stream = Files(path).rows(column, nulls="skip", plain=True)
    found = Counter()
    for items in stream.items() if made else (batch.column("item") for batch in stream):
        values = items.to_list() if isinstance(items, MadeColumn) else items.to_pylist()
        found.update(value.decode() if isinstance(value, bytes) else value for value in values)
    return found


def main():
    path, generator, values = Path(sys.argv[1]) / "log.parquet", random.Random(int(sys.argv[2])), int(sys.argv[3])
    files = [by_arrow(), by_arrow(use_dictionary=False, data_page_version="2.0", compression="none"), by_duckdb(path)]
    truth = {column: Counter(TABLE.column(column).to_pylist()) for column in TABLE.column_names}
    for data in files:
        length = int.from_bytes(data[-8:-4], "little")
        for at in range(len(data) - 8 - length, len(data) - 8):
            for value in generator.sample(range(256), values):
                path.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
                column, made = generator.choice(READERS)
                try:
                    end = "whole" if rows(path, column, made) == truth[column] else "other"
                except dc.DataError:
                    end = "refused"
                sys.stdout.write(f"{end} {length - (len(data) - 8 - at)} {data[at]} {value} {column} {made}\n")


if __name__ == "__main__":
    main()
