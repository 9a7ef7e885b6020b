"""A DuckDB that can compute and nothing else, and blocks of rows that it computes one by one where it must.

`TRY` holds back most errors of a row, but not all: those of syntax, of what is not implemented, of memory and of DuckDB
itself end the whole statement, and some end the database. Which rows do that is private. So a block that fails is
halved until what fails is one row, and that row is bad. What becomes of a row is then a function of that row and of the
query alone: the others are computed without it, in another block.

With b bad rows among n this takes at most 2 b log2(n) + 2 statements, and never more than 2 n, over n log2(n) rows.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

import _duckdb as duckdb  # enough to parse; the package around it, which scans Arrow, takes 80 ms more to load
import pyarrow as pa

from discreet.errors import DiscreetError


def connect() -> duckdb.DuckDBPyConnection:
    """A connection to a DuckDB that can compute and nothing else: it has no files, loads nothing, asks nobody."""
    return _closed_database(os.getpid()).cursor()


def ask(sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
    """What DuckDB answers to a statement about a query, which reads no rows."""
    try:
        return connect().execute(sql, parameters).fetchall()
    except (duckdb.FatalException, duckdb.InternalException):  # a row or a query has ended the database
        _closed_database.cache_clear()
    return connect().execute(sql, parameters).fetchall()


@functools.cache
def _closed_database(process: int) -> duckdb.DuckDBPyConnection:
    return new_database(as_written=True)


def new_database(as_written: bool = False) -> duckdb.DuckDBPyConnection:
    """`as_written`: no optimizer takes a part of an expression out of its `TRY`, as that of common parts does."""
    closed: dict[str, Any] = {
        "enable_external_access": False,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
        "threads": 1,  # rows stay in their order
    }
    connection = duckdb.connect(":memory:", config=closed)
    if as_written:
        optimizers = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        connection.execute(f"SET disabled_optimizers = '{','.join(name for (name,) in optimizers)}'")
    connection.execute("SET GLOBAL TimeZone = 'UTC'; SET lock_configuration = true")
    return connection


class Blocks:
    """Computes the column `r` of statements over the table `rows`."""

    def __init__(self) -> None:
        import duckdb  # noqa: F401 (which scans Arrow)

        self._connection = connect()
        self._own = False  # once something has failed, a database that no other query can end

    def computed(self, sql: str, table: pa.Table, kind: pa.DataType) -> pa.StructArray:
        """One value of the type `kind` for every row: null for a row for which it cannot be computed."""
        parts, left = [], [table] if table.num_rows else []
        while left:
            block = left.pop()
            found = self.tried(sql, block)
            if not isinstance(found, Exception):
                if len(found) != block.num_rows:
                    raise DiscreetError("DuckDB did not return one row for each input row")
                parts.append(found)
            elif block.num_rows > 1:
                half = block.num_rows // 2
                left += [block.slice(half), block.slice(0, half)]
            elif _lacks_memory(found) and _lacks_memory(self.tried(sql, block.schema.empty_table())):
                raise DiscreetError("not enough memory for the query")  # of no row, either
            else:
                parts.append(pa.nulls(1, kind))
        return pa.concat_arrays(parts or [pa.array([], kind)])

    def tried(self, sql: str, table: pa.Table) -> pa.StructArray | Exception:
        """The values of a block; or, if DuckDB fails for one of its rows, the error, which may quote that row."""
        found = self._once(sql, table)
        if isinstance(found, Exception) and not self._own:  # another query may have ended the database that all share
            self._connection, self._own = new_database(as_written=True), True
            found = self._once(sql, table)
        if isinstance(found, Exception) and not self._alive():
            self._connection = new_database(as_written=True)
        return found

    def _once(self, sql: str, table: pa.Table) -> pa.StructArray | Exception:
        try:
            self._connection.register("rows", table)
            try:
                found = self._connection.sql(sql).to_arrow_table().column("r").combine_chunks()
            finally:
                self._connection.unregister("rows")
            return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        except Exception as error:
            if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":  # Ctrl-C
                raise
            return error

    def _alive(self) -> bool:
        try:
            return self._connection.execute("SELECT 1").fetchall() == [(1,)]
        except duckdb.Error:
            return False


def _lacks_memory(found: object) -> bool:
    return isinstance(found, (duckdb.OutOfMemoryException, MemoryError))
