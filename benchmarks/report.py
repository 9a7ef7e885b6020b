"""The six numbers of a monthly site report: `discreet report` beside DuckDB's exact answers to the same questions.

    python benchmarks/report.py [ROWS]        # 2,000,000 by default; 10,000,000 is the size of the bar

Both read the same CSV file once, each in a process of its own; seconds of the clock and of all cores.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

EXAMPLE = Path(__file__).parents[1] / "examples" / "site" / "october.toml"
COUNTRIES = np.array(["US", "DE", "FR", "GB", "IN", "BR", "JP", "CN", "IT", "ES", "NL", "PL", "SE", "CH", "AT"])
EXACT = """
CREATE TABLE log AS FROM read_csv($file, types = {'status': 'VARCHAR'});
SELECT * FROM (SELECT time::DATE AS day, path, count(DISTINCT ip) AS people FROM log GROUP BY ALL)
    QUALIFY row_number() OVER (PARTITION BY day ORDER BY people DESC) <= 20;
SELECT time::DATE AS day, count(DISTINCT ip) FROM log GROUP BY ALL;
SELECT path, count(DISTINCT ip) AS people FROM log WHERE status = '404' GROUP BY ALL ORDER BY people DESC LIMIT 20;
SELECT avg(least(bytes, 100000)) FROM log;
SELECT quantile_cont(bytes, 0.9) FROM log;
SELECT country, count(DISTINCT ip) FROM log GROUP BY ALL;
"""


def write(path: Path, rows: int) -> None:
    """A made-up log: paths and countries of Zipf, people with heavy tails, a month of seconds in order."""
    rng = np.random.default_rng(1)
    people = max(1000, rows // 20)
    ips = np.array([f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(people)])
    paths = np.array([f"/page/{n}" for n in range(5000)])
    times = np.datetime64("2026-10-01T00:00:00") + np.sort(rng.integers(0, 31 * 86400, rows)).astype("timedelta64[s]")
    table = pa.table(
        {
            "time": times.astype(str),
            "ip": ips[(rng.pareto(1.2, rows) * people / 50).astype(np.int64) % people],
            "path": paths[np.minimum(rng.zipf(1.3, rows), 5000) - 1],
            "status": rng.choice(["200", "404", "301"], rows, p=[0.9, 0.06, 0.04]),
            "bytes": rng.lognormal(8, 1.2, rows).astype(np.int64),
            "country": COUNTRIES[np.minimum(rng.zipf(1.5, rows), 15) - 1],
        }
    )
    pa.csv.write_csv(table, path)


def timed(*command: str) -> tuple[float, float]:
    """Seconds of the clock, and of all cores."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def exact(file: str) -> None:
    """DuckDB's answers."""
    import duckdb

    base = duckdb.connect()
    for query in EXACT.replace("$file", f"'{file}'").split(";"):
        if query.strip():
            base.execute(query).fetchall()


def main(rows: int) -> None:
    """Write the log, and time both, alternately."""
    with tempfile.TemporaryDirectory() as folder:
        log, page = Path(folder) / "log.csv", Path(folder) / "page.html"
        write(log, rows)
        told = EXAMPLE.read_text()
        (Path(folder) / "report.toml").write_text(told)
        ours = ["-m", "discreet", "report", f"{folder}/report.toml", str(log), "-q", "-o", str(page)]
        results = [
            (timed(sys.executable, *ours), timed(sys.executable, __file__, "--exact", str(log))) for _ in range(3)
        ]
        print(f"{rows:,} rows, {log.stat().st_size / 1e6:,.0f} MB, {page.stat().st_size / 1e3:,.0f} kB of page")
        for place, what in enumerate(("seconds", "seconds of all cores")):
            report, duck = (min(result[who][place] for result in results) for who in (0, 1))
            print(f"{what:>22}: report {report:6.2f}, DuckDB {duck:6.2f}, ratio {report / duck:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--exact"]:
        exact(sys.argv[2])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 2_000_000)
