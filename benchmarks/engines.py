"""The same 20 million strings on one core, on two workers, and on Spark. See docs/engines.md.

    python benchmarks/engines.py [--rows 20000000] [--rounds 5] [--quick] [--no-spark] [--json out/engines.json]

Every row publishes the top 100 at epsilon 1, delta 1e-9 (the exact counting publishes the truth). Local rows run in a
process of their own. "From memory" starts with an Arrow column, and its memory is what comes on top; the others read
the same Parquet file, and their memory is that of the whole process. One core means that the process may use one. The
error is the mean relative error over the true top 100; an item that is not published counts with error 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from turns import machine, timed

import discreet as dc

DOMAIN = 1_000_000
BATCH = 1 << 17
BUDGET = dc.Budget(epsilon=1.0, delta=1e-9)
LOCAL = {
    "one core, from memory": (1, True),
    "two workers, from memory": (2, True),
    "one core": (1, False),
    "two workers": (2, False),
}


def write_strings(path: Path, rows: int, skew: float = 1.1) -> dict[str, int]:
    """Zipf-distributed strings in row groups of a million; returns the true top 100."""
    rng = np.random.default_rng(20)
    cumulative = np.cumsum(np.arange(1, DOMAIN + 1, dtype=np.float64) ** -skew)
    names = pa.array([f"item-{number}" for number in rng.permutation(DOMAIN)])
    counts = np.zeros(DOMAIN, np.int64)
    with pq.ParquetWriter(path, pa.schema({"item": pa.string()})) as writer:
        for start in range(0, rows, 1_000_000):
            size = min(1_000_000, rows - start)
            ranks = np.minimum(np.searchsorted(cumulative, rng.random(size) * cumulative[-1]), DOMAIN - 1)
            counts += np.bincount(ranks, minlength=DOMAIN)
            writer.write_table(pa.table({"item": names.take(pa.array(ranks))}))
    top = np.argsort(-counts, kind="stable")[:100]
    return {names[int(rank)].as_py(): int(counts[rank]) for rank in top}


def error_of(found: dict[Any, int], truth: dict[str, int]) -> float:
    return float(np.mean([abs(found.get(item, 0) - count) / count for item, count in truth.items()]))


def local_row(name: str, path: Path, truth: dict[str, int]) -> dict[str, Any]:
    """Runs in a process of its own."""
    workers, from_memory = LOCAL[name]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])
    pa.set_cpu_count(workers)
    column = pq.read_table(path).column("item") if from_memory else None
    dc.top_k(pa.array(["warm", "up"]), 1, BUDGET, workers=workers)  # imports and calibration
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    held = _resident("VmRSS") if from_memory else 0

    def batches() -> Iterator[Any]:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH):
                yield batch.column(0)

    top, seconds = timed(lambda: dc.top_k(batches() if column is None else column, 100, BUDGET, workers=workers))
    found = dict(zip(top.items, top.counts.tolist(), strict=True))
    return {
        "name": name,
        "seconds": seconds,
        "peak_bytes": _resident("VmHWM") - held,
        "shuffled_bytes": 0,
        "error": error_of(found, truth),
    }


def _resident(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def local_rows(path: Path, truth: dict[str, int], rounds: int) -> Iterator[dict[str, Any]]:
    """Each the median of so many processes, in turns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LOCAL}
    for _ in range(rounds):
        for name in LOCAL:
            request = json.dumps({"name": name, "path": str(path), "truth": truth})
            done = subprocess.run(
                [sys.executable, __file__, "--row"], input=request, capture_output=True, text=True, check=True
            )
            found[name].append(json.loads(done.stdout))
    for rows in found.values():
        seconds = [row["seconds"] for row in rows]
        yield {**rows[0], "seconds": statistics.median(seconds), "all_seconds": seconds}


def spark_rows(path: Path, truth: dict[str, int]) -> Iterator[dict[str, Any]]:
    try:
        from engines_spark import rows
    except ImportError:
        print("Spark rows need the spark extra: pip install 'discreet[spark]'", file=sys.stderr)
        return
    yield from rows(str(path), "item", truth, BUDGET, partitions=2)


def show(row: dict[str, Any], rows: int) -> None:
    memory, moved = row["peak_bytes"] / 2**20, row["shuffled_bytes"] / 2**20
    print(
        f"{row['name']:<36} {row['seconds']:8.2f} s {rows / row['seconds'] / 1e6:8.2f} M/s {memory:8.0f} MB "
        f"{moved:8.1f} MB shuffled  error {row['error']:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="200,000 rows, one round: does it run at all")
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        request = json.load(sys.stdin)
        print(json.dumps(local_row(request["name"], Path(request["path"]), request["truth"])))
        return
    print(machine())
    rows, rounds = (200_000, 1) if given.quick else (given.rows, given.rounds)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "strings.parquet"
        truth = write_strings(path, rows)
        sources: list[Callable[[], Iterator[dict[str, Any]]]] = [lambda: local_rows(path, truth, rounds)]
        if not given.no_spark:
            sources.append(lambda: spark_rows(path, truth))
        found = []
        for source in sources:
            for row in source():
                found.append(row)
                show(row, rows)
    seconds = {row["name"]: row["seconds"] for row in found}
    for kind in (", from memory", ""):
        ratio = seconds[f"one core{kind}"] / seconds[f"two workers{kind}"]
        print(f"two workers{kind}: {ratio:.2f} times one core")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"rows": rows, "found": found}, indent=1))


if __name__ == "__main__":
    main()
