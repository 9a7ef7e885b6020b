"""Publish the top of a DuckDB query without leaving the stream of Arrow batches.

    python examples/duckdb_top.py [ROWS]

DuckDB reads, filters and projects, batch after batch; two threads count. No table of the items is ever built, neither
in DuckDB (no GROUP BY) nor here.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import duckdb

import discreet as dc


def write_log(path: Path, rows: int) -> None:
    """A log of made-up searches: the query of rank r about rows/(8 r) times."""
    duckdb.sql(
        f"""
        copy (
            select 'query ' || floor(power(2000, random()))::int as query, i % 100 = 0 as is_robot, i as at
            from range({rows}) as t(i)
        ) to '{path}' (format parquet)
        """
    )


def private_top(path: Path, k: int, budget: dc.Budget) -> dc.Release:
    """The top queries of people, read in batches of 100,000 rows.

    Row by row: a projection, a filter. One event gives at most one row, so what hides a row hides an event. A join that
    multiplies rows, DISTINCT, LIMIT or a sample would change what one event can do, and the guarantee with it.
    """
    batches = duckdb.sql(f"select query from '{path}' where not is_robot").to_arrow_reader(100_000)
    return dc.top_k(batches, k, budget, workers=2)


def main() -> None:
    """Write a log, publish its top, and show what is promised."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log.parquet"
        write_log(path, rows)
        top = private_top(path, 10, dc.Budget(epsilon=1.0, delta=1e-9))
    # Back into DuckDB: a histogram is an Arrow table.
    print(duckdb.from_arrow(top.to_arrow()).order("count desc").limit(5))
    print(top.guarantee.sentence())
    print(*top.guarantee.assumptions, sep="\n")


if __name__ == "__main__":
    main()
