"""The Spark rows of engines.py: shuffle, merge and exact counting of one column in a Parquet file.

    python benchmarks/engines_spark.py strings.parquet [--column item] [--master 'local[2]']

A session is started once and warmed up with a small release. Memory is the largest sum of resident pages of this
process, the JVM and the Python workers; bytes are what Spark counted as written for its shuffles.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from turns import timed

import discreet as dc


class Memory:
    """The largest resident memory, sampled ten times a second, in bytes.

    `peak` is that of this process and all below it, `task` that of one Python worker of Spark alone; `cpu` are the
    seconds that looking took, which are none of Spark's.
    """

    def __init__(self) -> None:
        self.peak = self.task = 0
        self.cpu = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            found = family()
            self.peak = max(self.peak, sum(process.bytes for process in found))
            self.task = max([self.task, *(process.bytes for process in found if process.is_worker)])
            self.cpu = time.thread_time()


class Process(NamedTuple):
    """One process: who started it, resident bytes, seconds of CPU with those of its children that ended."""

    parent: int
    bytes: int
    cpu: float
    is_worker: bool


def family() -> list[Process]:
    """This process and its descendants."""
    there = {}
    page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                pages = int((entry / "statm").read_text().split()[1])
                worker = b"pyspark.daemon" in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            cpu = sum(map(int, fields[11:15])) / tick
            there[int(entry.name)] = Process(int(fields[1]), pages * page, cpu, worker)
    found, grown = {os.getpid()}, True
    while grown:
        more = {number for number, process in there.items() if process.parent in found} - found
        found, grown = found | more, bool(more)
    return [there[number] for number in found if number in there]


def session(master: str) -> Any:
    """A Spark session with little of its own in the way."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if java := shutil.which("java"):
        os.environ.setdefault("JAVA_HOME", str(Path(java).resolve().parents[1]))
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    return made


def shuffled(spark: Any) -> int:
    """Bytes that Spark wrote for shuffles so far."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))


def rows(
    path: str, column: str, truth: dict[Any, int], budget: dc.Budget, partitions: int, master: str = "local[2]"
) -> list[dict[str, Any]]:
    """One row for each way: name, seconds, peak_bytes, shuffled_bytes, error (mean relative, of the true top 100)."""
    from pyspark.sql import functions

    from discreet.engines import spark as engine

    spark = session(master)
    frame = spark.read.parquet(path)
    engine.top_k(frame.limit(1000), 1, budget, column=column, plan="shuffle", partitions=partitions)

    def exact() -> dict[Any, int]:
        counted = frame.groupBy(column).count().orderBy(functions.desc("count")).limit(100)
        return {row[column]: row["count"] for row in counted.collect()}

    def private(plan: str) -> dict[Any, int]:
        top = engine.top_k(frame, 100, budget, column=column, plan=plan, partitions=partitions)
        return dict(zip(top.items, top.counts.tolist(), strict=True))

    out = []
    for name, run in (
        ("Spark, shuffle plan", lambda: private("shuffle")),
        ("Spark, merge plan", lambda: private("merge")),
        ("Spark, exact groupBy (not private)", exact),
    ):
        before = shuffled(spark)
        with Memory() as memory:
            found, seconds = timed(run)
        off = [abs(found.get(item, 0) - count) / count for item, count in truth.items()]
        moved = shuffled(spark) - before
        out.append(
            {
                "name": name,
                "seconds": seconds,
                "peak_bytes": memory.peak,
                "shuffled_bytes": moved,
                "error": float(np.mean(off)),
            }
        )
    spark.stop()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--column", default="item")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, default=2)
    given = parser.parse_args()
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    counted = pc.value_counts(pq.read_table(given.path, columns=[given.column]).column(0)).to_pylist()
    top = sorted(counted, key=lambda row: -row["counts"])[:100]
    truth = {row["values"]: row["counts"] for row in top}
    for row in rows(given.path, given.column, truth, dc.Budget(1.0, 1e-9), given.partitions, given.master):
        print(
            f"{row['name']:<36} {row['seconds']:8.1f} s {row['peak_bytes'] / 2**20:8.0f} MB "
            f"{row['shuffled_bytes'] / 2**20:8.1f} MB shuffled, error {row['error']:.2e}"
        )


if __name__ == "__main__":
    main()
