"""Tables of PostgreSQL as events: `postgresql://host/database#table`, or the table that a query reads FROM.

The server is asked for columns of one table and nothing else, in one read-only transaction, and sends them as Arrow
batches (ADBC). What a query makes of a row is computed here, as for files (`engines.sql`): a row that the server could
not compute would end the query for all others. Types are those of the table, never those of values; what a type of ours
cannot hold (a time before the year 1, or infinity) is null, and a type that is not known here is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, DiscreetError, ParameterError, TryAgainError, WordError
from discreet.events.inputs import shown
from discreet.events.items import choose, without_views

if TYPE_CHECKING:
    import pyarrow as pa

_AS_THEY_ARE = {"int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "bytea"}
_TIMES = {"date", "timestamp", "timestamptz"}
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_COLUMNS = """
    SELECT c.relkind::text, a.attname::text, t.typname::text FROM pg_class c
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_type t ON t.oid = a.atttypid WHERE c.oid = to_regclass($1) ORDER BY a.attnum
"""


class DatabaseTable:
    """A table, opened: what `ByteSource` is of a file.

    Attributes:
        name: What messages call it: no user, no password.
    """

    format, compression, remote, size, bytes_read = "table", None, None, None, 0

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        address, _, self._table = url.partition("#")
        if not self._table:
            raise WordError(f"{self.name}: which table? Add #TABLE, or give a query ({{sql}}) that reads FROM it")
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise ParameterError(
                "reading PostgreSQL needs ADBC; install it with pip install 'discreet[postgres]'"
            ) from None
        self._errors = dbapi.Error
        self._connection: Any = None
        failed = False
        try:
            self._connection = dbapi.connect(address, autocommit=False)
            self._ask("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").close()
            self._ask("SET LOCAL TimeZone = 'UTC'").close()
            cursor = self._ask(_COLUMNS, (_quoted(self._table),))
            found = cursor.fetchall()
            cursor.close()
        except dbapi.Error:  # its words may have the whole address
            failed = True
        if failed:
            self.close()
            raise TryAgainError(
                f"{self.name} cannot be opened; check the server, the database, the user and the password (from the "
                "URL, PGPASSWORD or ~/.pgpass)"
            )
        if not found:
            self.close()
            raise ParameterError(f"{self.name}: no such table, or this user may not see it")
        if found[0][0] not in ("r", "p"):
            self.close()
            raise ParameterError(
                f"{self.name} is {_KINDS.get(found[0][0], 'no table')}: one row behind it may become many rows here. "
                "Name a table instead"
            )
        self._types = {name: type for _, name, type in found if name is not None}

    @property
    def names(self) -> list[str]:
        """Its columns."""
        return list(self._types)

    def read(self, column: str | None, others: Sequence[str]) -> Iterator[tuple[pa.Array, ...]]:
        """The wanted columns, in batches as they come."""
        wanted = choose(self.names, [column, *others], self.name)
        columns = ", ".join(f"{self._expression(name)} AS c{place}" for place, name in enumerate(wanted))
        problem: DiscreetError
        try:
            with self._ask(f"SELECT {columns} FROM {_quoted(self._table)}") as cursor:
                reader = cursor.fetch_record_batch()
                empty = reader.schema.empty_table().combine_chunks()
                yield tuple(column.combine_chunks() for column in empty.columns)  # types are known without any row
                for batch in reader:
                    yield tuple(without_views(column) for column in batch.columns)
                return
        except self._errors as error:
            refused = str(getattr(error, "sqlstate", "") or "")
            problem = (
                DataError(f"{self.name} cannot be read: permission denied for this user")
                if refused == "42501"
                else TryAgainError(
                    f"{self.name} cannot be read to its end (SQLSTATE {refused or 'unknown'}); try again later"
                )
            )
        except OSError:  # of the reader, when the connection breaks
            problem = TryAgainError(f"{self.name}: the connection broke; try again later")
        raise problem

    def _expression(self, name: str) -> str:
        column, type = _identifier(name), self._types[name]
        if type in _AS_THEY_ARE:
            return column
        if type in _TIMES:
            return f"CASE WHEN {column} >= '0001-01-01' AND {column} < '10000-01-01' THEN {column} END"
        return f"{column}::text"

    def _ask(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql, parameters)
        except self._errors:
            cursor.close()
            raise
        return cursor

    def close(self) -> None:
        """Let go of the connection; nothing was written."""
        if self._connection is not None:
            with suppress(self._errors):
                self._connection.rollback()
            with suppress(self._errors):
                self._connection.close()
            self._connection = None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(table: str) -> str:
    """A table, with its schema if there is one before a dot."""
    return ".".join(_identifier(part) for part in table.split(".", 1))
