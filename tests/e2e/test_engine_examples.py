"""The DuckDB and polars examples run as written, and publish what is frequent and nothing that is rare.

Counts near 1,000 against cuts near 30 at epsilon 1: an item is missed, or out of order by ranks this far apart, with a
probability below 1e-9.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["duckdb_top", "polars_top"])
def test_the_example_runs(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", "30000"], capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert "query 1" in done.stdout


def test_duckdb_batches_are_counted_as_the_query_selects_them(tmp_path):
    example = load("duckdb_top")
    path = tmp_path / "log.parquet"
    example.duckdb.sql(
        f"""copy (select 'cats' as query, i % 2 = 0 as is_robot from range(40000) as t(i)
            union all select 'dogs', false from range(9000)
            union all select 'once', false) to '{path}' (format parquet)"""
    )
    top = example.private_top(path, 10, dc.Budget(1.0, 1e-9))
    assert top.items == ["cats", "dogs"]
    lower, upper = top.bounds(1 - 1e-9)
    assert lower[0] <= 20_000 <= upper[0]
    assert lower[1] <= 9_000 <= upper[1]
    assert len(top.shard_offsets) == 2


def test_polars_summaries_hold_their_own_country_alone():
    example = load("polars_top")
    pl = example.pl
    log = pl.DataFrame({"query": ["a", "b", "a", "c"], "country": ["DK", "SE", "DK", "elsewhere"]}).lazy()
    states = example.summarise(log, batch_rows=2)
    assert tuple(states) == example.COUNTRIES
    counts = {
        country: dc.MisraGries.from_bytes(state).not_private_counts().to_dict() for country, state in states.items()
    }
    assert counts == {"DK": {"a": 2}, "IS": {}, "NO": {}, "SE": {"b": 1}}
