"""Every question as a whole command, and the SQL of its exact answer: what `table.py` and `growth.py` measure.

    python benchmarks/questions.py [--rows 5000000] [--rounds 3] [--shape skewed] [--only people]

Run by itself it shows the least time by the clock and the least CPU time of each and of DuckDB, in turns. On a machine
that has other work, read CPU times.

The data are one made-up log: items in four shapes, people with heavy tails, a month of seconds, few countries and
codes, whole numbers and fractions. A question reads the columns that it names, as DuckDB does.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from turns import DISCREET, Cost, machine, run

BUDGET = ["--epsilon", "1", "--delta", "1e-9", "--quiet", "--format", "json"]
SHAPES = ("skewed", "flat", "few items", "long items")
PEOPLE = 500_000
PART = 10_000_000  # rows that are in memory while a log is written
COUNTRIES = ["US", "DE", "FR", "GB", "IN", "BR", "JP", "CN", "IT", "ES", "NL", "PL", "SE", "CH", "AT"]
DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET threads = " + sys.argv[1])
print(len(connection.execute(sys.argv[2]).fetchall()))
"""
_TOP = "SELECT {0}, {1} AS n FROM '{{file}}' {2} GROUP BY ALL ORDER BY n DESC LIMIT 100"
_TOP_BY_DAY = (
    "SELECT * FROM (SELECT time::DATE AS day, item, {0} AS n FROM '{{file}}' GROUP BY ALL) "
    "QUALIFY row_number() OVER (PARTITION BY day ORDER BY n DESC) <= 100"
)
_DAYS = ["--every", "1d", "--time", "time"]
_AMOUNTS = ["--column", "amount", "--range", "0", "1000", "--unit", "row"]


class Compared(NamedTuple):
    """A question: the words of the command, DuckDB's query, and the most that ours may take of its time."""

    what: str
    words: list[str]
    exact: str
    aim: float = 1.0
    ending: str = "parquet"

    def differs_with(self, shape: str) -> bool:
        """Whether it reads what has a shape; the other columns are the same in all, and are asked in the first."""
        return shape == SHAPES[0] or not {"item", "number"}.isdisjoint(self.words)


QUESTIONS = [
    Compared(
        "where",
        ["top", "--column", "item", "--unit", "row", "--where", "status = 404"],
        _TOP.format("item", "count(*)", "WHERE status = 404"),
    ),
    Compared(
        "where, csv",
        ["top", "--column", "item", "--unit", "row", "--where", "status = 404"],
        _TOP.format("item", "count(*)", "WHERE status = 404"),
        ending="csv",
    ),
    Compared(
        "two columns",
        ["top", "--column", "country", "--column", "item", "--unit", "row"],
        _TOP.format("country, item", "count(*)", ""),
    ),
    Compared("every 1d", ["top", "--column", "item", "--unit", "row", *_DAYS], _TOP_BY_DAY.format("count(*)")),
    Compared(
        "whole numbers, zstd",
        ["top", "--column", "number", "--unit", "row"],
        _TOP.format("number", "count(*)", ""),
        0.9,
        "zstd.parquet",
    ),
    Compared(
        "texts, zstd",
        ["top", "--column", "item", "--unit", "row"],
        _TOP.format("item", "count(*)", ""),
        0.8,
        "zstd.parquet",
    ),
    Compared(
        "people",
        ["top", "--column", "item", "--user", "visitor"],
        _TOP.format("item", "count(DISTINCT visitor)", ""),
        0.8,
    ),
    Compared(
        "people, csv",
        ["top", "--column", "item", "--user", "visitor"],
        _TOP.format("item", "count(DISTINCT visitor)", ""),
        0.8,
        "csv",
    ),
    Compared(
        "people by day",
        ["top", "--column", "item", "--user", "visitor", *_DAYS],
        _TOP_BY_DAY.format("count(DISTINCT visitor)"),
        0.9,
    ),
    Compared(
        "distinct of people",
        ["distinct", "--column", "visitor", "--user", "visitor"],
        "SELECT count(DISTINCT visitor) FROM '{file}'",
        0.9,
    ),
    Compared(
        "values of people",
        ["distinct", "--column", "item", "--user", "visitor"],
        "SELECT count(*), count(DISTINCT item) FROM (SELECT DISTINCT item, visitor FROM '{file}')",
    ),
    Compared("count of people", ["count", "--user", "visitor"], "SELECT count(DISTINCT visitor) FROM '{file}'"),
    Compared(
        "histogram",
        ["histogram", "--column", "country", "--unit", "row", "--universe", "{universe}"],
        _TOP.format("country", "count(*)", ""),
    ),
    Compared(
        "quantiles of floats", ["quantiles", *_AMOUNTS], "SELECT quantile_cont(amount, [.25, .5, .75]) FROM '{file}'"
    ),
    Compared("sum", ["sum", *_AMOUNTS], "SELECT sum(least(greatest(amount, 0), 1000)) FROM '{file}'"),
    Compared("mean", ["mean", *_AMOUNTS], "SELECT avg(least(greatest(amount, 0), 1000)) FROM '{file}'"),
]


def ranks(shape: str, rows: int, distinct: int, seed: int = 1) -> np.ndarray:
    """How popular the item of every row is, 0 the most: flat, or skewed as Zipf 1.1."""
    random = np.random.default_rng(seed)
    if shape == "flat":
        return random.integers(0, distinct, rows)
    cumulative = np.cumsum(np.arange(1, distinct + 1) ** -1.1)
    return np.minimum(np.searchsorted(cumulative, random.random(rows) * cumulative[-1]), distinct - 1)


def items(shape: str, rows: int, seed: int = 1) -> pa.Array:
    """Made-up items: how often each occurs, how many there are, how long they are."""
    distinct = 1000 if shape == "few items" else 1_000_000
    path = "a/long/path/with/many/parts/" * 6 if shape == "long items" else ""
    names = pa.array([f"https://example.org/{path}{number:07d}" for number in range(distinct)])
    return _named(ranks(shape, rows, distinct, seed), names)


def _named(codes: np.ndarray, names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names).cast(pa.string())


def log(shape: str, rows: int, people: int = PEOPLE, part: int = 0) -> pa.Table:
    """The log, or another part of a longer one, in the order of its times."""
    random = np.random.default_rng(2 + 10 * part)
    distinct = 1000 if shape == "few items" else 1_000_000
    visitors = (random.pareto(1.2, rows) * people / 25).astype(np.int64) % people
    start = np.datetime64("2026-10-01T00:00:00")
    return pa.table(
        {
            "time": start + np.sort(random.integers(0, 31 * 86400, rows)).astype("timedelta64[s]"),
            "visitor": _named(visitors, pa.array([f"visitor-{visitor:08d}" for visitor in range(people)])),
            "item": items(shape, rows, 1 + 10 * part),
            "country": _named(np.minimum(random.zipf(1.5, rows), len(COUNTRIES)) - 1, pa.array(COUNTRIES)),
            "status": random.choice(np.array([200, 404, 301], np.int32), rows, p=[0.9, 0.06, 0.04]),
            "number": ranks(shape, rows, distinct, 3 + 10 * part),
            "amount": random.lognormal(3, 1.2, rows),
        }
    )


def write(folder: Path, endings: set[str], shape: str, rows: int, people: int) -> None:
    """The log in files with these endings, a part at a time: what is in memory does not grow with the rows."""
    writers: dict[str, pa.csv.CSVWriter | pa.parquet.ParquetWriter] = {}
    for part, first in enumerate(range(0, rows, PART)):
        table = log(shape, min(PART, rows - first), people, part)
        for ending in endings:
            if ending not in writers and ending == "csv":
                writers[ending] = pa.csv.CSVWriter(folder / "log.csv", table.schema)
            elif ending not in writers:
                compression = "zstd" if "zstd" in ending else "snappy"
                writers[ending] = pa.parquet.ParquetWriter(
                    folder / f"log.{ending}", table.schema, compression=compression
                )
            writers[ending].write(table)
    for writer in writers.values():
        writer.close()


def commands(
    folder: Path, rows: int, shape: str, cores: int, only: str = "", people: int = PEOPLE, besides: Container[str] = ()
) -> Iterator[tuple[Compared, list[str], list[str]]]:
    """Every question with the command that answers it, and DuckDB's; `only` those with these words, and not these."""
    chosen = [each for each in QUESTIONS if only in f"{each.what}, {shape}" and each.differs_with(shape)]
    chosen = [each for each in chosen if each.what not in besides]
    if not chosen:
        return
    universe = folder / "countries.txt"
    universe.write_text("\n".join(COUNTRIES) + "\n")
    write(folder, {each.ending for each in chosen}, shape, rows // 4 if shape == "long items" else rows, people)
    for each in chosen:
        path = folder / f"log.{each.ending}"
        words = [word.format(universe=universe) for word in each.words]
        theirs = [sys.executable, "-c", DUCKDB, str(cores), each.exact.format(file=path)]
        yield each, [DISCREET, words[0], str(path), *words[1:], *BUDGET], theirs
    for path in folder.glob("log.*"):
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", choices=SHAPES, default=SHAPES[0])
    parser.add_argument("--only", default="", help="the questions with these words")
    given = parser.parse_args()
    print(f"{machine()}; {given.rows:,} rows, {given.shape}, best of {given.rounds} in turns")
    print(f"{'':24}{'ours':>10}{'DuckDB':>10}{'share':>8}{'of CPU':>8}{'aim':>6}{'MiB':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for each, *both in commands(Path(folder), given.rows, given.shape, os.cpu_count() or 1, given.only):
            runs = [[run(command) for command in both] for _ in range(given.rounds)]
            ours, theirs = (Cost(*map(min, zip(*one, strict=True))) for one in zip(*runs, strict=True))
            memory = f"{ours.mebibytes:.0f}/{theirs.mebibytes:.0f}"
            shares = f"{ours.seconds / theirs.seconds:>8.2f}{ours.cpu / theirs.cpu:>8.2f}"
            figures = f"{ours.seconds:>8.2f} s{theirs.seconds:>8.2f} s{shares}{each.aim:>6.2f}{memory:>12}"
            print(f"{each.what:24}{figures}", flush=True)
    print(machine())


if __name__ == "__main__":
    main()
