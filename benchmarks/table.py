"""One table: this machine, what `discreet` costs beside its peers, the aim, and whether it holds.

    python benchmarks/table.py [--rows 10000000] [--rounds 3] [--only skewed]

Whole commands with all of their imports, in turns with DuckDB, which counts exactly with as many threads as there are
cores: rows of CSV and Parquet in several shapes, JSON lines, people, and a file of 1,000 rows; `--workers 2` in turns
with one worker; and a release of a million counters. `ours` and `theirs` are medians.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from people import DUCKDB as DUCKDB_OF_PEOPLE
from people import write_visits
from turns import DISCREET, calls_in_turns, in_turns, machine

import discreet as dc

BUDGET = ["--epsilon", "1", "--delta", "1e-9", "--quiet", "--format", "json"]
DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET threads = " + sys.argv[2])
query = f"SELECT item, count(*) AS n FROM '{sys.argv[1]}' GROUP BY item ORDER BY n DESC LIMIT 100"
print(len(connection.execute(query).fetchall()))
"""


class Line(NamedTuple):
    """One comparison: what must hold of our time and memory, as shares of theirs or in seconds."""

    what: str
    ours: list[str]
    theirs: list[str] | None
    time: float
    memory: float | None = None


def items(shape: str, rows: int) -> pa.Array:
    """Made-up items: how often each occurs, how many there are, how long they are."""
    random = np.random.default_rng(1)
    distinct = 1000 if shape == "few items" else 1_000_000
    ranks = random.integers(0, distinct, rows)
    if shape != "flat":
        cumulative = np.cumsum(np.arange(1, distinct + 1) ** -1.1)
        ranks = np.searchsorted(cumulative, random.random(rows) * cumulative[-1])
    path = "a/long/path/with/many/parts/" * 6 if shape == "long items" else ""
    names = pa.array([f"https://example.org/{path}{number:07d}" for number in range(distinct)])
    codes = pa.array(np.minimum(ranks, distinct - 1).astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())


def lines(folder: Path, rows: int, only: str) -> Iterator[Line]:
    cores = str(os.cpu_count() or 1)

    def top(path: Path, *more: str) -> list[str]:
        return [DISCREET, "top", str(path), "--column", "item", "--unit", "row", *BUDGET, *more]

    for shape in ("skewed", "flat", "few items", "long items"):
        endings = [ending for ending in ("csv", "parquet") if only in f"rows, {ending}, {shape}"]
        if not endings:
            continue
        table = pa.table({"item": items(shape, rows // 4 if shape == "long items" else rows)})
        for ending in endings:
            path = folder / f"rows.{ending}"
            (pa.csv.write_csv if ending == "csv" else pa.parquet.write_table)(table, path)
            theirs = [sys.executable, "-c", DUCKDB, str(path), cores]
            yield Line(f"rows, {ending}, {shape}", top(path), theirs, 1 / 1.2, 0.6)
            yield Line(f"two workers, {ending}, {shape}", top(path, "--workers", "2"), top(path), 1 / 1.7)
    if only in "rows, jsonl, skewed":
        path = folder / "rows.jsonl"
        with path.open("w") as file:
            file.writelines(f'{{"item": "{item}"}}\n' for item in items("skewed", rows).to_pylist())
        yield Line("rows, jsonl, skewed", top(path), None, rows / (20 * 180_000))
    if only in "people, parquet":
        path = folder / "visits.parquet"
        write_visits(path, rows)
        people = [DISCREET, "top", str(path), "--column", "url", "--user-column", "visitor", "--memory", "2GB", *BUDGET]
        theirs = [sys.executable, "-c", DUCKDB_OF_PEOPLE, str(path), cores]
        yield Line("people, parquet", people, theirs, 1.3)
    if only in "1,000 rows, csv":
        path = folder / "small.csv"
        pa.csv.write_csv(pa.table({"item": items("few items", 1000)}), path)
        yield Line("1,000 rows, csv", top(path), None, 0.2)


def million_counters(rounds: int) -> float:
    """Seconds of a release of a million texts that all pass."""
    names = pa.array([f"https://example.org/{number:07d}" for number in range(1_000_000)])
    summary = dc.MisraGries(len(names))
    summary.update_counts(names, np.full(len(names), 1000))
    budget = dc.Budget(1.0, 1e-9)
    return calls_in_turns({"ours": lambda: dc.release(summary, budget)}, rounds)["ours"].seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="the lines with these words")
    options = parser.parse_args()
    print(f"{machine()}; {options.rows:,} rows, medians of {options.rounds} in turns")
    print(f"{'':28} {'ours':>16} {'theirs':>16} {'time':>6} {'aim':>6} {'memory':>7} {'aim':>5}  holds")
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(Path(folder), options.rows, options.only):
            commands = {"ours": line.ours, **({} if line.theirs is None else {"theirs": line.theirs})}
            costs = in_turns(commands, options.rounds)
            ours, theirs = costs["ours"], costs.get("theirs")
            shown = f"{line.what:28} {ours.seconds:7.2f} s {ours.mebibytes:4.0f} M"
            if theirs is None:
                holds = ours.seconds <= line.time
                print(f"{shown} {'':16} {'':6} {line.time:5.2f}s {'':13}  {'yes' if holds else 'no'}", flush=True)
                continue
            time, memory = ours.seconds / theirs.seconds, ours.mebibytes / theirs.mebibytes
            holds = time <= line.time and (line.memory is None or memory <= line.memory)
            aim = "" if line.memory is None else f"{line.memory:.2f}"
            print(
                f"{shown} {theirs.seconds:7.2f} s {theirs.mebibytes:4.0f} M {time:6.2f} {line.time:6.2f} {memory:7.2f} "
                f"{aim:>5}  {'yes' if holds else 'no'}",
                flush=True,
            )
    if options.only in "million counters":
        seconds = million_counters(options.rounds)
        print(f"{'million counters':28} {seconds:7.2f} s {'':30} 0.30s {'':13}  {'yes' if seconds <= 0.3 else 'no'}")


if __name__ == "__main__":
    main()
