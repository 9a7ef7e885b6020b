"""Blocks of rows that DuckDB computes: a row that makes it fail costs itself, and no more than a few statements."""

import math
import os
import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines.closed_duckdb import Blocks, ask, connect, new_database

KIND = pa.struct([("k", pa.int64())])


class Fake(Blocks):
    """Fails for a block with one of the bad numbers in it, and counts."""

    def __init__(self, bad, error=duckdb.SyntaxException):
        super().__init__()
        self.bad, self.error, self.asked, self.rows = set(bad), error, 0, 0

    def tried(self, sql, table):
        self.asked, self.rows = self.asked + 1, self.rows + table.num_rows
        values = table.column("a").to_pylist()
        if self.bad & {*values}:
            return self.error("a row: secret")
        return pa.array([{"k": value} for value in values], KIND)


def table(count):
    return pa.table({"a": pa.array(range(count), pa.int64())})


@pytest.mark.parametrize("bad", [[], [0], [999], [1, 2, 3], [0, 500, 999], range(0, 1000, 7), range(1000)])
def test_rows_are_found_by_halving(bad):
    blocks = Fake(bad)
    found = blocks.computed("", table(1000), KIND).to_pylist()
    assert found == [None if at in bad else {"k": at} for at in range(1000)]
    levels = math.ceil(math.log2(1000))
    assert blocks.asked <= min(2 * len(bad) * levels + 1, 2 * 1000)
    assert blocks.rows <= 1000 * (levels + 1)


def test_no_rows():
    assert Fake([]).computed("", table(0), KIND).to_pylist() == []


def test_a_row_that_takes_all_memory_is_bad_and_no_memory_at_all_is_an_error():
    found = Fake([3], duckdb.OutOfMemoryException).computed("", table(8), KIND)
    assert found.is_null().to_pylist() == [at == 3 for at in range(8)]

    class Starved(Fake):
        def tried(self, sql, table):
            return MemoryError("secret")

    with pytest.raises(dc.DiscreetError, match="not enough memory") as caught:
        Starved([]).computed("", table(8), KIND)
    assert caught.value.__context__ is None


FATAL = "SELECT TRY(struct_pack(k := CAST(make_timestamp(a) AS VARCHAR))) AS r FROM rows"


def test_a_database_that_has_ended_is_replaced():
    """By the database of one query, and by that which all share."""
    first, second = Blocks(), Blocks()
    kind = pa.struct([("k", pa.string())])
    rows = pa.table({"a": pa.array([0, -(2**63), 10**6], pa.int64())})
    for _ in range(2):
        (one, _, three) = first.computed(FATAL, rows, kind).field("k").to_pylist()
        assert (one, three) == ("1970-01-01 00:00:00", "1970-01-01 00:00:01")
    assert second.computed(FATAL, rows.slice(0, 1), kind).to_pylist() == [{"k": "1970-01-01 00:00:00"}]
    assert ask("SELECT 1") == [(1,)]
    assert Blocks().computed(FATAL, rows.slice(2), kind).to_pylist() == [{"k": "1970-01-01 00:00:01"}]


def test_another_querys_failure_is_not_taken_for_a_bad_row():
    """The database that all share has ended while this one computes."""
    blocks = Blocks()

    class Ended:
        def register(self, *_):
            raise duckdb.FatalException("database has been invalidated")

        unregister = register

    blocks._connection = Ended()
    found = blocks.computed("SELECT struct_pack(k := a) AS r FROM rows", table(1), KIND)
    assert found.to_pylist() == [{"k": 0}]


def test_an_interrupt_is_passed_on():
    blocks = Blocks()

    class Interrupted:
        def register(self, *_):
            raise RuntimeError("Query interrupted")

        def unregister(self, *_):
            pass

    blocks._connection = Interrupted()
    with pytest.raises(RuntimeError, match="interrupted"):
        blocks.computed("", table(2), KIND)


def test_connections_are_of_one_database():
    assert connect().execute("SELECT current_setting('threads')").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('{file}')", "SELECT * FROM '{file}'", "COPY (SELECT 1) TO '{file}.out'",
        "ATTACH '{file}.db'", "INSTALL httpfs", "LOAD httpfs", "SELECT * FROM read_text('{file}')",
        "EXPORT DATABASE '{file}.all'", "SET enable_external_access = true", "SET TimeZone = 'Asia/Tokyo'",
        "SET lock_configuration = false", "SET memory_limit = '1TB'", "SELECT * FROM KIND",
    ],
)  # fmt: skip
def test_a_database_that_computes_does_nothing_else(tmp_path, statement):
    """What the list of functions and tables does not let through is closed once more."""
    (tmp_path / "rows.csv").write_text("a\n1\n")
    for connection in (connect(), new_database().cursor()):
        with pytest.raises(duckdb.Error):
            connection.execute(statement.format(file=tmp_path / "rows.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_times_are_in_utc_wherever_the_machine_is(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    database = new_database()
    for connection in (connect(), database, database.cursor()):
        assert connection.execute("SELECT hour(to_timestamp(3600))").fetchall() == [(1,)]


HOURS = """
import pyarrow as pa
from discreet.engines import sql

times = pa.array(["2026-11-15T01:00:00Z", "2026-11-15T10:00:00Z", "9"])
for _ in range(2):
    query = sql.where("hour(cast(t as timestamptz)) = 1").bound(["t"])
    assert query.keeps([times])[0].tolist() == [True, False, False]
    failing = sql.where("cast(make_timestamp(n) as varchar) = 'x' or hour(cast(t as timestamptz)) = 1").bound(["n"])
    kept, bad = failing.keeps([pa.array([0, -(2**63), 0]) if name == "n" else times for name in failing.reads])
    assert (kept.tolist(), bad.tolist()) == ([True, False, False], [False, True, True])
"""


def test_a_row_that_fails_does_not_change_what_hour_it_is_for_others():
    """Also where the machine is not in UTC, and the row has ended the database."""
    environment = {**os.environ, "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", HOURS], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_a_statement_that_makes_other_rows_than_it_was_given_is_an_error():
    """An event for each row: one that is lost or made is never taken for another's."""
    kind = pa.struct([("k", pa.int64())])
    for rows in ("rows WHERE a <> 1", "rows, range(2)"):
        with pytest.raises(dc.DiscreetError, match="did not return one row for each input row"):
            Blocks().computed(f"SELECT struct_pack(k := a) AS r FROM {rows}", table(3), kind)
