"""One table: this machine, what `discreet` costs beside its peers, the aim, and whether it holds.

    python benchmarks/table.py [--rows 10000000] [--rounds 3] [--only skewed]

Whole commands with all of their imports, in turns with DuckDB, which counts exactly with as many threads as there are
cores: rows of CSV and Parquet in several shapes, JSON lines, people, a file of 1,000 rows, and every question of half
as many rows (`questions.py`); the same command on all cores and with `--workers 2` in turns with itself on one core; a
release of a million counters; summaries beside their floor, and with large capacities beside polars (`summaries.py`);
Spark beside its own exact counts (`scale.py`).
`ours` and `theirs` are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from people import DUCKDB as DUCKDB_OF_PEOPLE
from people import write_visits
from questions import BUDGET, SHAPES, items
from questions import commands as questions
from turns import DISCREET, calls_in_turns, in_turns, machine

import discreet as dc

DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET threads = " + sys.argv[2])
query = f"SELECT item, count(*) AS n FROM '{sys.argv[1]}' GROUP BY item ORDER BY n DESC LIMIT 100"
print(len(connection.execute(query).fetchall()))
"""


ONE_CORE = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execv(sys.argv[1], sys.argv[1:])
"""


class Line(NamedTuple):
    """One comparison: what must hold of our time and memory, as shares of theirs or in seconds."""

    what: str
    ours: list[str]
    theirs: list[str] | None
    time: float
    memory: float | None = None


def lines(folder: Path, rows: int, only: str) -> Iterator[Line]:
    cores = str(os.cpu_count() or 1)

    def top(path: Path, *more: str) -> list[str]:
        return [DISCREET, "top", str(path), "--column", "item", "--unit", "row", *BUDGET, *more]

    for shape in SHAPES:
        endings = [ending for ending in ("csv", "parquet") if only in f"rows, {ending}, {shape}"]
        if not endings:
            continue
        table = pa.table({"item": items(shape, rows // 4 if shape == "long items" else rows)})
        for ending in endings:
            path = folder / f"rows.{ending}"
            (pa.csv.write_csv if ending == "csv" else pa.parquet.write_table)(table, path)
            theirs = [sys.executable, "-c", DUCKDB, str(path), cores]
            yield Line(f"rows, {ending}, {shape}", top(path), theirs, 1 / 1.2, 0.6)
            one, two = [sys.executable, "-c", ONE_CORE, *top(path)], top(path, "--workers", "2")
            yield Line(f"beside one core, {ending}, {shape}", top(path), one, 1 / 1.7)
            yield Line(f"2 workers, one core, {ending}, {shape}", two, one, 1 / 1.7)
            yield Line(f"2 workers, default, {ending}, {shape}", two, top(path), 1.0)
    if only in "rows, jsonl, skewed":
        path = folder / "rows.jsonl"
        with path.open("w") as file:
            file.writelines(f'{{"item": "{item}"}}\n' for item in items("skewed", rows).to_pylist())
        yield Line("rows, jsonl, skewed", top(path), None, rows / (20 * 180_000))
    if only in "people, parquet":
        path = folder / "visits.parquet"
        write_visits(path, rows)
        people = [DISCREET, "top", str(path), "--column", "url", "--user", "visitor", "--memory", "2GB", *BUDGET]
        theirs = [sys.executable, "-c", DUCKDB_OF_PEOPLE, str(path), cores]
        yield Line("people, parquet", people, theirs, 1.3)
    for shape in SHAPES:
        for each, ours, theirs in questions(folder, rows // 2, shape, int(cores), only):
            yield Line(f"{each.what}, {shape}", ours, theirs, each.aim)
    if only in "1,000 rows, csv":
        path = folder / "small.csv"
        pa.csv.write_csv(pa.table({"item": items("few items", 1000)}), path)
        yield Line("1,000 rows, csv", top(path), None, 0.2)


class Shown(NamedTuple):
    """A line of the table: figures of ours and theirs, and the most that ours may be, in seconds or as a share."""

    what: str
    ours: float
    theirs: float | None
    aim: float
    memory: tuple[float, float | None] | None = None
    memory_aim: float | None = None
    cpu: float | None = None

    @property
    def holds(self) -> bool:
        time = self.ours if self.theirs is None else self.ours / self.theirs
        mine, other = self.memory or (0.0, None)
        return time <= self.aim and (self.memory_aim is None or other is None or mine / other <= self.memory_aim)

    def __str__(self) -> str:
        mine, other = self.memory or (None, None)

        def cost(seconds: float | None, mebibytes: float | None) -> str:
            time = "" if seconds is None else f"{seconds:.{2 if seconds >= 1 else 3}f} s"
            return f"{time:>9} {'' if mebibytes is None else f'{mebibytes:.0f} M':>6}"

        ratio = "" if self.theirs is None else f"{self.ours / self.theirs:.2f}"
        aim = f"{self.aim:.2f}s" if self.theirs is None else f"{self.aim:.2f} "
        memory = "" if mine is None or other is None else f"{mine / other:.2f}"
        memory_aim = "" if self.memory_aim is None else f"{self.memory_aim:.2f}"
        both = f"{cost(self.ours, mine)} {cost(self.theirs, other)}"
        cpu = "" if self.cpu is None else f"{self.cpu:.2f}"
        shares = f"{ratio:>6} {aim:>7} {cpu:>6} {memory:>7} {memory_aim:>5}"
        return f"{self.what:36} {both} {shares}  {'yes' if self.holds else 'no'}"


def commands(rows: int, rounds: int, only: str) -> Iterator[Shown]:
    """Whole commands, with their memory."""
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(Path(folder), rows, only):
            of_both = {"ours": line.ours, **({} if line.theirs is None else {"theirs": line.theirs})}
            costs = in_turns(of_both, rounds)
            ours, theirs = costs["ours"], costs.get("theirs")
            seconds = None if theirs is None else theirs.seconds
            memory = ours.mebibytes, None if theirs is None else theirs.mebibytes
            cpu = None if theirs is None else ours.cpu / theirs.cpu
            yield Shown(line.what, ours.seconds, seconds, line.time, memory, line.memory, cpu)


def million_counters(rounds: int, only: str) -> Iterator[Shown]:
    """A release of a million counters that all pass."""
    budget = dc.Budget(1.0, 1e-9)
    for what, counted in (
        ("a million counters, texts", [f"https://example.org/{number:07d}" for number in range(1_000_000)]),
        ("a million counters, numbers", range(1_000_000)),
    ):
        if only in what:
            summary = dc.MisraGries(len(counted))
            summary.update_counts(pa.array(counted), np.full(len(counted), 1000))
            release = partial(dc.release, summary, budget)
            yield Shown(what, calls_in_turns({"ours": release}, rounds)["ours"].seconds, None, 0.3)


def other_benchmark(name: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """The lines of JSON that another benchmark prints, in a process of its own: it has other threads and cores."""
    command = [sys.executable, str(Path(__file__).with_name(name)), *arguments]
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process:
            assert process.stdout is not None
            yield from (json.loads(line) for line in process.stdout if line.startswith("{"))
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{said.read()[-2000:]}\nbenchmarks/{name} failed")


def kernels(rows: int, rounds: int, only: str) -> Iterator[Shown]:
    """Summaries on one core beside their floor and beside polars' exact counting of the same column."""
    if only and only not in "kernels":
        return
    for found in other_benchmark("summaries.py", "--aims", "--items", str(rows), "--rounds", str(rounds)):
        yield Shown(f"kernels, {found['what']}", found["ours"], found["theirs"], found["aim"])


def spark(rounds: int, only: str) -> Iterator[Shown]:
    """Plans on two one-core workers beside Spark's own exact counts, 3 million rows."""
    if only and only not in "spark":
        return
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("spark: pyspark or Java is not installed here")
        return
    for found in other_benchmark("scale.py", "--json", "--rounds", str(rounds)):
        for name, exact in (("shuffle", "exact rows"), ("merge", "exact rows"), ("people", "exact people")):
            yield Shown(f"spark, {name} beside exact", found[name]["seconds"], found[exact]["seconds"], 1.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="the lines with these words, in this order")
    given = parser.parse_args()
    print(f"{machine()}; {given.rows:,} rows, medians of {given.rounds} in turns")
    print(f"{'':36} {'ours':>16} {'theirs':>16} {'time':>6} {'aim':>7} {'CPU':>6} {'memory':>7} {'aim':>5}  holds")
    shown = []
    for line in chain(
        commands(given.rows, given.rounds, given.only),
        million_counters(given.rounds, given.only),
        kernels(given.rows, given.rounds, given.only),
        spark(given.rounds, given.only),
    ):
        print(line, flush=True)
        shown.append(line.holds)
    print(f"{sum(shown)} of {len(shown)} hold; {machine()}")


if __name__ == "__main__":
    main()
