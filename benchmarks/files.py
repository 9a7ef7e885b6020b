"""`discreet top` on a Parquet file beside exact top-k by DuckDB and polars: seconds, CPU seconds and peak memory.

    python benchmarks/files.py [--rows 10000000] [--rounds 5]

The file has strings of a domain of a million, Zipf 1.1, as pyarrow writes it. Everything runs on one core, in a process
of its own with all of its imports; medians of rounds in turns.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

from turns import DISCREET, in_turns, machine

DOMAIN = 1_000_000
ROWS_AT_ONCE = 1_000_000

DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET threads = 1")
query = f"SELECT query, count(*) AS n FROM '{sys.argv[1]}' GROUP BY query ORDER BY n DESC LIMIT 100"
print(len(connection.execute(query).fetchall()))
"""

POLARS = """
import sys
import polars as pl
counts = pl.scan_parquet(sys.argv[1]).group_by("query").len().top_k(100, by="len")
print(len(counts.collect(engine="streaming")))
"""


def write_zipf(path: Path, rows: int) -> None:
    """Strings of a heavy tail, in row groups of a million."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(1)
    weights = 1.0 / np.arange(1, DOMAIN + 1) ** 1.1
    cumulative = np.cumsum(weights / weights.sum())
    names = generator.permutation(DOMAIN)
    writer = None
    for start in range(0, rows, ROWS_AT_ONCE):
        ranks = np.searchsorted(cumulative, generator.random(min(ROWS_AT_ONCE, rows - start)))
        table = pa.table({"query": np.char.add("query-", names[np.minimum(ranks, DOMAIN - 1)].astype(str))})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "zipf.parquet"
        # In a process of its own: a child's peak memory includes what its parent held when it was forked.
        writing = multiprocessing.get_context("spawn").Process(target=write_zipf, args=(path, arguments.rows))
        writing.start()
        writing.join()
        print(f"{machine()}; {arguments.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, one core")
        options = ["--epsilon", "1", "--delta", "1e-9", "--unit", "row", "--quiet", "--format", "json"]
        contestants = {
            "discreet top (private)": [DISCREET, "top", str(path), *options],
            "DuckDB (exact)": [sys.executable, "-c", DUCKDB, str(path)],
            "polars (exact)": [sys.executable, "-c", POLARS, str(path)],
        }
        one_thread = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        results = in_turns(contestants, arguments.rounds, one_thread)
    reference = results["DuckDB (exact)"][0]
    print(f"{'':24}{'seconds':>9}{'CPU s':>8}{'peak MiB':>9}{'x DuckDB':>10}")
    for name, (wall, cpu, peak) in results.items():
        print(f"{name:24}{wall:9.2f}{cpu:8.2f}{peak:9.0f}{wall / reference:10.2f}")


if __name__ == "__main__":
    main()
