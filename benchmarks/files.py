"""`discreet top` on a Parquet file beside exact top-k by DuckDB and polars: seconds, CPU seconds and peak memory.

    python benchmarks/files.py [--rows 10000000] [--rounds 5]

The file has strings of a domain of a million, Zipf 1.1, as pyarrow writes it. Everything runs on one core, in a process
of its own with all of its imports, and the best of some rounds counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

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


def measure(command: list[str], rounds: int) -> tuple[float, float, float]:
    """The best wall time, the best CPU time and the largest peak memory (MB) of several runs."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    wall, cpu, peak = float("inf"), float("inf"), 0.0
    for _ in range(rounds):
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command[0]} failed with {process.returncode}")
        wall = min(wall, time.perf_counter() - started)
        cpu = min(cpu, usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10))
    return wall, cpu, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    discreet = os.path.join(sysconfig.get_path("scripts"), "discreet")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "zipf.parquet"
        # In a process of its own: a child's peak memory includes what its parent held when it was forked.
        writing = multiprocessing.get_context("spawn").Process(target=write_zipf, args=(path, arguments.rows))
        writing.start()
        writing.join()
        print(f"{arguments.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, one core, best of {arguments.rounds}")
        options = ["--epsilon", "1", "--delta", "1e-9", "--format", "json"]
        contestants = {
            "discreet top (private)": [discreet, "top", str(path), *options],
            "DuckDB (exact)": [sys.executable, "-c", DUCKDB, str(path)],
            "polars (exact)": [sys.executable, "-c", POLARS, str(path)],
        }
        results = {name: measure(command, arguments.rounds) for name, command in contestants.items()}
    reference = results["DuckDB (exact)"][0]
    print(f"{'':24}{'seconds':>9}{'CPU s':>8}{'peak MB':>9}{'x DuckDB':>10}")
    for name, (wall, cpu, peak) in results.items():
        print(f"{name:24}{wall:9.2f}{cpu:8.2f}{peak:9.0f}{wall / reference:10.2f}")


if __name__ == "__main__":
    main()
