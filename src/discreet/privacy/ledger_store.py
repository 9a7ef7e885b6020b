"""The ledger's file: an append-only log of events in SQLite, chained by digests.

Rows are only ever added: triggers refuse UPDATE and DELETE, sequence numbers have no gaps, and every row carries the
SHA-256 of itself and of the row before, so that a row changed, lost or slipped in by other means is noticed before
anything is decided on it. Cutting off the end of the file (an old backup put back) cannot be noticed from inside.

Durability: WAL with synchronous=FULL (and fullfsync, where the system has it), so a commit that returned has reached
the disk. A connection lives for one operation: nothing is shared between threads or inherited by a forked child.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from discreet.errors import LedgerError

__all__ = ["EventLog", "LedgerEvent", "LogWriter"]

APPLICATION_ID = 0x64637472  # "dctr", in the header of every ledger file
SCHEMA_VERSION = 2
"""2 has steps. A ledger of version 1 is read as it is and becomes one of version 2 when it is first written to.
Programs that know only version 1 refuse it from then on: they would not see how far a stream has gone."""
EVENT_VERSIONS = (1, 2)
"""1: everything but adaptive grants, which have 2, so that a program that does not know them refuses the ledger."""

_SCHEMA = (
    """CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    at TEXT NOT NULL,
    account TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'charge', 'release', 'step')),
    charge_id TEXT CHECK ((charge_id IS NULL) = (kind = 'grant')),
    number INTEGER NOT NULL CHECK ((number > 0) = (kind = 'step')),
    body TEXT NOT NULL,
    digest BLOB NOT NULL,
    payload BLOB CHECK ((payload IS NULL) = (kind IN ('grant', 'charge')))
)""",
    "CREATE UNIQUE INDEX one_of_a_kind ON events (account, charge_id, kind, number) WHERE charge_id IS NOT NULL",
    "CREATE TRIGGER no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # Also what keeps INSERT OR REPLACE, which deletes without asking the trigger above, from rewriting a row.
    """CREATE TRIGGER no_gap BEFORE INSERT ON events
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
)

_SCHEMA_1 = (
    """CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    at TEXT NOT NULL,
    account TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'charge', 'release')),
    charge_id TEXT CHECK ((charge_id IS NULL) = (kind = 'grant')),
    body TEXT NOT NULL,
    digest BLOB NOT NULL,
    payload BLOB CHECK ((payload IS NULL) = (kind <> 'release'))
)""",
    "CREATE UNIQUE INDEX one_of_a_kind ON events (account, charge_id, kind) WHERE charge_id IS NOT NULL",
    *_SCHEMA[2:],
)
_SCHEMAS = {1: _SCHEMA_1, 2: _SCHEMA}


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One row of the ledger. `details` depends on the kind; `digest` chains the row to all rows before it."""

    seq: int
    version: int
    at: str
    account: str
    kind: str
    charge_id: str | None
    details: dict[str, Any]
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {name: getattr(self, name) for name in self.__slots__}


def _digest(before: bytes, fields: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(before + json.dumps(fields, ensure_ascii=True).encode()).digest()


class LogWriter:
    """The log inside one write transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.events = read_events(connection)

    def append(
        self,
        account: str,
        kind: str,
        charge_id: str | None,
        details: dict[str, Any],
        payload: bytes | None = None,
        version: int = 1,
    ) -> None:
        """Add one event; it is durable when the transaction ends without an error."""
        if payload is not None:
            details = {**details, "sha256": hashlib.sha256(payload).hexdigest()}
        before = bytes.fromhex(self.events[-1].digest) if self.events else b""
        number = details.get("number", 0)
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        body = json.dumps(details, sort_keys=True)
        fields = (len(self.events) + 1, version, at, account, kind, charge_id, body)
        digest = _digest(before, fields)
        row = (*fields[:6], number, body, digest, payload)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        self.events.append(LedgerEvent(*fields[:6], details, digest.hex()))

    def payload(self, event: LedgerEvent) -> bytes:
        """The bytes stored with a release or a step, checked against their digest."""
        return read_payload(self._connection, event)


class EventLog:
    """The file of a ledger. Every failure to read or write it is a LedgerError."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(path).absolute()  # also after the program changes its directory
        self.timeout = timeout
        if not self.path.parent.is_dir():
            raise LedgerError(f"the directory of the ledger {self.path} does not exist")
        if self.path.exists():
            with self._translated(), closing(self._connect(create=False)) as connection:
                if not _is_blank(connection):
                    _check_schema(connection)

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[LogWriter]:
        """A write transaction that no other process can interleave; an exception inside undoes all of it."""
        with self._translated(), closing(self._open(create)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if _pragma(connection, "user_version") != SCHEMA_VERSION:
                    _migrate(connection)
                yield LogWriter(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def events(self) -> list[LedgerEvent]:
        """All events in order, with their chain checked."""
        with self._translated(), closing(self._open()) as connection:
            connection.execute("BEGIN")  # one snapshot for all that is read
            return read_events(connection)

    def payload(self, event: LedgerEvent) -> bytes:
        """The bytes stored with a release or a step."""
        with self._translated(), closing(self._open()) as connection:
            return read_payload(connection, event)

    def _open(self, create: bool = False) -> sqlite3.Connection:
        if not create and not self.path.exists():
            raise LedgerError(f"there is no ledger at {self.path}; granting a budget makes one")
        connection = self._connect(create)
        try:
            if _is_blank(connection):
                if not create:
                    raise LedgerError(f"{self.path} holds no ledger yet; granting a budget makes one")
                self._initialise(connection)
            _check_schema(connection)
            return connection
        except BaseException:
            connection.close()
            raise

    def _connect(self, create: bool) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        connection = sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None)
        try:
            # SQLite takes a file shorter than its smallest page for an empty database and would overwrite it. (Opening
            # the file to look at it is no option: closing it again would drop this process's locks on it.)
            if 0 < self.path.stat().st_size < 512:
                raise LedgerError(f"{self.path} is not a ledger")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")
            return connection
        except BaseException:
            connection.close()
            raise

    def _initialise(self, connection: sqlite3.Connection) -> None:
        """Make the tables in one transaction: a process killed here leaves a blank file that the next one takes."""
        deadline = time.monotonic() + self.timeout
        while True:
            # Changing the journal mode needs the file alone, and SQLite does not wait for that by itself.
            try:
                (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise LedgerError(f"the file system of {self.path} does not support SQLite's write-ahead log")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_blank(connection):
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
                for statement in _SCHEMA:
                    connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if os.name == "posix":
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)  # the file's name must outlive a power cut, too
            finally:
                os.close(directory)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be opened: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise LedgerError(f"{self.path} is not a ledger, or it is damaged") from error
        except sqlite3.Error as error:
            if _is_busy(error):
                message = f"the ledger {self.path} was locked by another process for more than {self.timeout:g} s"
            elif isinstance(error, sqlite3.OperationalError):
                message = f"the ledger {self.path} cannot be read or written: {error}"
            else:
                message = f"{self.path} is not a ledger, or it is damaged: {error}"
            raise LedgerError(message) from error


def _is_busy(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _is_blank(connection: sqlite3.Connection) -> bool:
    return not _pragma(connection, "application_id") and not _statements(connection)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _statements(connection: sqlite3.Connection) -> list[str]:
    return [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]


def _check_schema(connection: sqlite3.Connection) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise LedgerError("the file is an SQLite database but not a ledger")
    version = _pragma(connection, "user_version")
    if version not in _SCHEMAS:
        raise LedgerError(f"the ledger has version {version}; this program reads versions 1 to {SCHEMA_VERSION}")
    if _statements(connection) != list(_SCHEMAS[version]):
        raise LedgerError("the ledger is damaged: its tables or triggers were altered")


def _migrate(connection: sqlite3.Connection) -> None:
    """Make a ledger of version 1 one of version 2, inside a write transaction: the same rows in the new table."""
    read_events(connection)  # nothing damaged is carried over
    connection.execute("CREATE TEMP TABLE rows_of_version_1 AS SELECT * FROM main.events ORDER BY seq")
    connection.execute("DROP TABLE main.events")  # its index and triggers go with it
    for statement in _SCHEMA:
        connection.execute(statement)
    columns = "seq, version, at, account, kind, charge_id, 0, body, digest, payload"
    connection.execute(f"INSERT INTO main.events SELECT {columns} FROM temp.rows_of_version_1 ORDER BY seq")
    connection.execute("DROP TABLE temp.rows_of_version_1")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def read_events(connection: sqlite3.Connection) -> list[LedgerEvent]:
    """All events in order. Raises LedgerError unless the digests chain from the first to the last."""
    number = "0" if _pragma(connection, "user_version") == 1 else "number"
    columns = f"{number}, seq, version, at, account, kind, charge_id, body, digest"
    events: list[LedgerEvent] = []
    before = b""
    for number, *fields, digest in connection.execute(f"SELECT {columns} FROM events ORDER BY seq"):
        if any(isinstance(field, bytes) for field in fields) or digest != _digest(before, tuple(fields)):
            raise LedgerError(f"the ledger is damaged: event {len(events) + 1} was altered or is missing")
        if fields[1] not in EVENT_VERSIONS:
            raise LedgerError(f"the ledger has events of version {fields[1]}; this program reads 1 and 2")
        seq, version, at, account, kind, charge_id, body = fields
        details = json.loads(body)
        if number != details.get("number", 0):
            raise LedgerError(f"the ledger is damaged: event {seq} was altered")
        events.append(LedgerEvent(seq, version, at, account, kind, charge_id, details, digest.hex()))
        before = digest
    # A damaged page can hide the last rows without breaking the chain of those before; the index still knows them.
    indexed = "SELECT count(*) FROM events INDEXED BY one_of_a_kind WHERE charge_id IS NOT NULL"
    if connection.execute(indexed).fetchone()[0] != sum(event.charge_id is not None for event in events):
        raise LedgerError("the ledger is damaged: its events and their index disagree")
    return events


def read_payload(connection: sqlite3.Connection, event: LedgerEvent) -> bytes:
    """The bytes stored with a release or a step, checked against their digest."""
    row = connection.execute("SELECT payload FROM events WHERE seq = ?", (event.seq,)).fetchone()
    if row is None or not isinstance(row[0], bytes) or hashlib.sha256(row[0]).hexdigest() != event.details["sha256"]:
        raise LedgerError(f"the ledger is damaged: what event {event.seq} stored was altered")
    return row[0]
