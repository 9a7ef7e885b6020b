"""Items a second of the summaries on one core, beside what else a user could run. See docs/benchmarks.md.

    python benchmarks/summaries.py [--quick] [--shapes] [--items 10000000] [--rounds 5] [--json out/summaries.json]

One process pinned to one core; every row is run `--rounds` times, in turn with the others, and shows its median. With
`--aims` it measures what `table.py` shows of the summaries, and nothing else.
"""

from __future__ import annotations

import os

# Before polars and Arrow start their threads.
os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import collections
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from turns import calls_in_turns, machine

import discreet as dc
from discreet import _native

DOMAIN = 1_000_000
CAPACITY = 1024
CHUNK = 65_536  # items that a peer aggregates before it is updated
LG_PEER = 11  # the smallest size of datasketches with at least CAPACITY counters: 0.75 * 2**11
TARGETS = {  # what this benchmark is meant to show
    ("MisraGries", "datasketches"): 4.0,
    ("SpaceSaving", "datasketches"): 3.5,
    ("CountMin", "datasketches count_min"): 4.0,
}
FLOORS = {"MisraGries": 1.4, "SpaceSaving": 1.6}
DICTIONARY = 1.0  # times plain strings
LARGE = (1 << 16, 1 << 18, 1 << 20)  # capacities


@dataclass
class Row:
    """One way to process the stream: `run` does all the work that is timed and returns what it built."""

    name: str
    run: Callable[[], Any]
    median: float = 0.0  # seconds
    memory: int = 0  # peak beyond what was held before, in bytes
    per_counter: float | None = None


def zipf(skew: float, items: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Items of a Zipf law over DOMAIN, with frequencies that have nothing to do with the numbers of the items."""
    weights = np.arange(1, DOMAIN + 1, dtype=np.float64) ** -skew
    cumulative = np.cumsum(weights)
    ranks = np.searchsorted(cumulative, rng.random(items) * cumulative[-1])
    names: np.ndarray[Any, np.dtype[np.int32]] = rng.permutation(DOMAIN).astype(np.int32)[np.minimum(ranks, DOMAIN - 1)]
    return names


def exhaust(iterator: Any) -> None:
    """Run an iterator to its end, as fast as Python can."""
    collections.deque(iterator, maxlen=0)


# ---- what is measured --------------------------------------------------------------------------------------------


def fed(summary: Any, column: Any) -> Any:
    summary.update(column)
    return summary


def peer_sketch(column: Any) -> Any:
    import datasketches

    strings = not isinstance(column, np.ndarray)
    return (datasketches.frequent_strings_sketch if strings else datasketches.frequent_items_sketch)(LG_PEER)


def converter(column: Any) -> Callable[[Any], Any]:
    """The fastest way from a chunk of the column to Python objects; a dictionary's values are made once."""
    if isinstance(column, np.ndarray):
        return lambda chunk: chunk.tolist()
    if not pa.types.is_dictionary(column.type):
        return lambda chunk: chunk.to_pylist()
    values = column.dictionary.to_pylist()
    return lambda chunk: map(values.__getitem__, chunk.indices.to_numpy().tolist())


def peer_per_item(column: Any, sketch: Any) -> Any:
    """Conversion to Python objects included: the peer takes nothing else."""
    convert = converter(column)
    for start in range(0, len(column), CHUNK):
        exhaust(map(sketch.update, convert(column[start : start + CHUNK])))
    return sketch


def peer_in_chunks(column: Any, sketch: Any) -> Any:
    """Each chunk is counted by Arrow first, and the peer is updated with the counts."""
    arrow = pa.array(column) if isinstance(column, np.ndarray) else column
    convert = converter(arrow)
    for start in range(0, len(arrow), CHUNK):
        counted = pc.value_counts(arrow[start : start + CHUNK])
        exhaust(map(sketch.update, convert(counted.field(0)), counted.field(1).to_pylist()))
    return sketch


def duckdb_table(column: Any) -> duckdb.DuckDBPyConnection:
    """A table of DuckDB's own, filled before the clock starts."""
    connection = duckdb.connect(config={"threads": 1})
    source = pa.table({"item": column})
    connection.register("source", source)
    connection.execute("create table stream as select item from source")
    connection.unregister("source")
    return connection


def duckdb_top(connection: duckdb.DuckDBPyConnection) -> Any:
    query = "select item, count(*) as n from stream group by item order by n desc limit 100"
    return connection.execute(query).fetchall()


def polars_top(frame: pl.DataFrame) -> Any:
    return frame.group_by("item").len().top_k(100, by="len").rows()


def ours(column: Any) -> list[Row]:
    """Our summaries and, where it is no dictionary, their floor."""
    rows = [
        Row("MisraGries", lambda: fed(dc.MisraGries(CAPACITY, seed=1), column)),
        Row("SpaceSaving", lambda: fed(dc.SpaceSaving(CAPACITY, seed=1), column)),
    ]
    if isinstance(column, np.ndarray) or not pa.types.is_dictionary(column.type):
        finished = fed(dc.MisraGries(CAPACITY, seed=1), column).not_private_counts().items
        rows.append(Row("floor", lambda: _native.probe_floor(column, finished, CAPACITY, 1)))
    return rows


def rows_of(column: Any) -> list[Row]:
    rows = ours(column)
    rows += [
        Row("datasketches", lambda: peer_per_item(column, peer_sketch(column))),
        Row("datasketches chunks", lambda: peer_in_chunks(column, peer_sketch(column))),
    ]
    connection = duckdb_table(column)
    frame = pl.DataFrame({"item": column})
    rows += [Row("DuckDB exact", lambda: duckdb_top(connection)), Row("polars exact", lambda: polars_top(frame))]
    import datasketches

    return [
        *rows,
        Row("CountMin", lambda: fed(dc.CountMin(CAPACITY, 5, seed=1), column)),
        Row("datasketches count_min", lambda: peer_per_item(column, datasketches.count_min_sketch(5, CAPACITY))),
    ]


# ---- measuring -----------------------------------------------------------------------------------------------------


def resident(name: str) -> int:
    """VmRSS or VmHWM of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def measure(rows: list[Row], rounds: int) -> None:
    for row in rows:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        held = resident("VmRSS")
        built = row.run()
        row.memory = max(0, resident("VmHWM") - held)
        if isinstance(built, (dc.MisraGries, dc.SpaceSaving)):
            row.per_counter = built.memory_bytes / built.capacity
    for row, cost in zip(rows, calls_in_turns({row.name: row.run for row in rows}, rounds).values(), strict=True):
        row.median = cost.seconds


def ratio(row: Row, rows: dict[str, Row], other: str) -> float | None:
    return rows[other].median / row.median if other in rows else None


def show(title: str, rows: list[Row], items: int) -> list[dict[str, Any]]:
    by_name = {row.name: row for row in rows}
    peers = ["datasketches", "datasketches chunks", "DuckDB exact", "polars exact"]
    heads = ["x ds", "x ds chunks", "x DuckDB", "x polars"]
    print(f"\n{title}")
    print(
        f"{'':24}{'M items/s':>10}{'ns/item':>9}"
        + "".join(f"{head:>12}" for head in heads)
        + f"{'/ floor':>9}{'B/counter':>11}{'extra MB':>10}"
    )
    records = []
    for row in rows:
        times = [ratio(row, by_name, peer) for peer in peers]
        floor = ratio(row, by_name, "floor")
        of_ours = row.name in ("MisraGries", "SpaceSaving")
        print(
            f"{row.name:24}{items / row.median / 1e6:10.1f}{row.median / items * 1e9:9.2f}"
            + "".join(f"{t:12.2f}" if t and of_ours else f"{'':12}" for t in times)
            + (f"{1 / floor:9.2f}" if floor and of_ours else f"{'':9}")
            + (f"{row.per_counter:11.1f}" if row.per_counter else f"{'':11}")
            + f"{row.memory / 2**20:10.1f}"
        )
        records.append(
            {
                "case": title,
                "row": row.name,
                "items_per_second": items / row.median,
                "nanoseconds_per_item": row.median / items * 1e9,
                "times": dict(zip(peers, times, strict=True)),
                "over_floor": None if floor is None else 1 / floor,
                "bytes_per_counter": row.per_counter,
                "extra_bytes": row.memory,
                "seconds": row.median,
            }
        )
    for (mine, theirs), target in TARGETS.items():
        if mine in by_name and theirs in by_name:
            value = by_name[theirs].median / by_name[mine].median
            print(f"  {mine} is {value:.1f} times {theirs} (aim: {target})")
    for mine, most in FLOORS.items():
        if "floor" in by_name:
            value = by_name[mine].median / by_name["floor"].median
            print(f"  {mine} takes {value:.2f} times the floor (aim: at most {most})")
    exact = min(by_name["DuckDB exact"].median, by_name["polars exact"].median)
    print(f"  MisraGries is {exact / by_name['MisraGries'].median:.2f} times the faster exact engine")
    return records


# ---- streams that are slow ---------------------------------------------------------------------------------------


def all_different(items: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(items, dtype=np.int64) * 2_654_435_761


def all_decrements(items: int, capacity: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """As many decrements of all counters as a stream can have, in bursts.

    Every counter is raised to a height, then so many new items come that each of them decrements all: one of
    capacity + 1 events, and each takes a scan of the table.
    """
    height = max(1, min(64, items // (2 * capacity)))
    rounds = -(-items // (height * (capacity + 1)))
    raised = np.tile(np.arange(capacity, dtype=np.int64), height)
    fresh = (1 << 40) + np.arange(rounds * height, dtype=np.int64).reshape(rounds, height)
    return np.concatenate([np.tile(raised, (rounds, 1)), fresh], axis=1).ravel()[:items]


def shapes(items: int, rounds: int, capacities: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Integers in several shapes, beside polars' exact counting of the same column: nanoseconds an item."""
    fixed = {
        "Zipf 1.1": zipf(1.1, items, np.random.default_rng(11)).astype(np.int64) * 2_654_435_761,
        "Zipf 0.8": zipf(0.8, items, np.random.default_rng(8)).astype(np.int64) * 2_654_435_761,
        "all different": all_different(items),
    }
    for capacity in capacities:
        for name, column in {**fixed, "decrements": all_decrements(items, capacity)}.items():
            frame = pl.DataFrame({"item": column})
            rows = [
                Row("MisraGries", partial(_counted, dc.MisraGries, capacity, column)),
                Row("SpaceSaving", partial(_counted, dc.SpaceSaving, capacity, column)),
                Row("polars exact", partial(polars_top, frame)),
            ]
            measure(rows, rounds)
            yield {"shape": name, "capacity": capacity, **{row.name: row.median / items * 1e9 for row in rows}}


def show_shapes(records: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print them as they come."""
    print(f"{'':16}{'capacity':>10}{'MisraGries':>12}{'SpaceSaving':>12}{'polars exact':>14}   ns/item")
    shown: list[dict[str, Any]] = []
    first = 0.0
    for record in records:
        cost = [record[name] for name in ("MisraGries", "SpaceSaving", "polars exact")]
        first = cost[0] if record["shape"] == "Zipf 1.1" else first
        told = f"   {cost[2] / cost[0]:.2f} times polars, {cost[0] / first:.1f} of Zipf 1.1"
        print(f"{record['shape']:16}{record['capacity']:10,}{cost[0]:12.1f}{cost[1]:12.1f}{cost[2]:14.1f}" + told)
        shown.append(record)
    return shown


def _counted(kind: Any, capacity: int, column: Any) -> Any:
    return fed(kind(capacity, seed=1), column)


# ---- the aims ------------------------------------------------------------------------------------------------------


def columns_of(codes: np.ndarray[Any, np.dtype[np.int32]]) -> dict[str, Callable[[], Any]]:
    """The same items as whole numbers, as texts, and as a dictionary of texts."""
    names = pa.array([f"search term {i * 7919 % DOMAIN}" for i in range(DOMAIN)])
    return {
        "int64 (NumPy)": lambda: codes.astype(np.int64) * 2_654_435_761,
        "strings (Arrow)": lambda: names.take(pa.array(codes)),
        "dictionary strings (Arrow)": lambda: pa.DictionaryArray.from_arrays(pa.array(codes), names),
    }


def aims(items: int, rounds: int) -> Iterator[dict[str, Any]]:
    """What is aimed at: seconds of ours and of what they stand beside, and the most that our share of it should be."""
    columns = columns_of(zipf(1.1, items, np.random.default_rng(11)))
    rows = ours(columns["int64 (NumPy)"]())
    measure(rows, rounds)
    floor = rows[-1].median
    for row in rows[:-1]:
        yield {"what": f"{row.name} over its floor", "ours": row.median, "theirs": floor, "aim": FLOORS[row.name]}
    plain, coded = (ours(columns[name]())[0] for name in ("strings (Arrow)", "dictionary strings (Arrow)"))
    plain.name = "plain"
    measure([plain, coded], rounds)
    yield {"what": "dictionary beside strings", "ours": coded.median, "theirs": plain.median, "aim": 1 / DICTIONARY}
    fewer = max(1, items * 3 // 10)
    for record in shapes(fewer, rounds, LARGE):
        cost = {of: record[name] * fewer / 1e9 for of, name in (("ours", "MisraGries"), ("theirs", "polars exact"))}
        yield {"what": f"{record['capacity']:,}, {record['shape']}", **cost, "aim": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a million items, one round, one skew")
    parser.add_argument("--shapes", action="store_true", help="slow streams and large capacities instead")
    parser.add_argument("--aims", action="store_true", help="one line of JSON for each line of table.py instead")
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    items, rounds, skews = arguments.items, arguments.rounds, (1.1, 1.5)
    if arguments.quick:
        items, rounds, skews = min(items, 1_000_000), 1, (1.5,)

    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if arguments.aims:
        for aim in aims(items, rounds):
            print(json.dumps(aim), flush=True)
        return
    if arguments.shapes:
        print(f"{items:,} integers, core {core}; {machine()}; medians of {rounds} in turns")
        write(arguments.json, show_shapes(shapes(items, rounds, (CAPACITY, *LARGE))))
        return
    print(
        f"{items:,} items over {DOMAIN:,}, capacity {CAPACITY}, core {core}; {machine()}; medians of {rounds} in turns"
    )

    records: list[dict[str, Any]] = []
    plain_median = 0.0
    for skew in skews:
        for kind, make in columns_of(zipf(skew, items, np.random.default_rng(int(skew * 10)))).items():
            rows = rows_of(make())
            measure(rows, rounds)
            records += show(f"Zipf {skew}, {kind}", rows, items)
            if kind.startswith("strings"):
                plain_median = rows[0].median
            if kind.startswith("dictionary"):
                value = plain_median / rows[0].median
                print(f"  MisraGries on a dictionary is {value:.2f} times plain strings (aim: {DICTIONARY})")
    write(arguments.json, records)


def write(path: Path | None, records: list[dict[str, Any]]) -> None:
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
