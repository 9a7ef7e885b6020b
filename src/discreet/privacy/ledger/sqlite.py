"""The ledger's file: its rows in SQLite, append-only, in one file that many processes may use at once.

Rows of `events` are only ever added: triggers refuse UPDATE and DELETE, and numbers with gaps. The running totals are
in `balances` (and the head, under the empty name) and `marks`. What they mean is `event_log`'s business.

Durability: a rollback journal with synchronous=EXTRA (and fullfsync, where the system has it), so a commit that
returned has reached the disk, all of it in the one file. A file with a second name is refused: its journal would be
looked for under the name by which it is opened. A connection lives for one operation, or for the operations of one
thread inside `one_connection`: nothing is shared between threads or used by a forked child.
"""

from __future__ import annotations

import glob
import os
import sqlite3
import stat
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import LedgerBusyError, LedgerError
from discreet.privacy.ledger.event_log import EventRows, Key, LogReader, LogWriter, StoredTotals, damaged

__all__ = ["SQLiteStore", "one_connection"]

APPLICATION_ID = 0x64637472  # "dctr", in the header of every ledger file
SCHEMA_VERSION = 2
"""Of the tables below; any other is refused. The next version: change the tables, count up, let `_check_schema` take
both, and let `SQLiteStore.writing` carry a file of the earlier version over, first thing in its transaction."""

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
    "CREATE INDEX turns ON events (account, seq) WHERE kind IN ('grant', 'charge')",
    "CREATE TABLE balances (account TEXT PRIMARY KEY, body TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE marks (
    account TEXT NOT NULL,
    charge_id TEXT NOT NULL,
    body TEXT NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (account, charge_id)
) WITHOUT ROWID""",
    "CREATE TRIGGER no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # Also what keeps INSERT OR REPLACE, which deletes without asking the trigger above, from rewriting a row.
    """CREATE TRIGGER no_gap BEFORE INSERT ON events
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
)
_COLUMNS = "seq, version, at, account, kind, charge_id, number, body, digest"


class SQLiteRows(EventRows):
    """The rows of a file, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last(self) -> int:
        return int(self._value("SELECT coalesce(max(seq), 0) FROM events"))

    def event(self, seq: int) -> tuple[Any, ...] | None:
        return self._row(f"SELECT {_COLUMNS} FROM events WHERE seq = ?", seq)

    def events(self) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY seq")

    def indexed(self) -> int:
        query = "SELECT count(*) FROM events INDEXED BY one_of_a_kind WHERE charge_id IS NOT NULL"
        return int(self._value(query))

    def digest(self, seq: int) -> object:
        return self._value("SELECT digest FROM events WHERE seq = ?", seq)

    def payload(self, seq: int) -> object:
        return self._value("SELECT payload FROM events WHERE seq = ?", seq)

    def find(self, account: str, charge_id: str, kind: str, number: int | None) -> tuple[int | None, int]:
        query = (
            "SELECT seq, number FROM events INDEXED BY one_of_a_kind WHERE account = ? AND charge_id = ? AND kind = ? "
            f"{'' if number is None else 'AND number = ?'} ORDER BY number DESC LIMIT 1"
        )
        key = (account, charge_id, kind) if number is None else (account, charge_id, kind, number)
        seq, its_number = self._row(query, *key) or (None, 0)
        return seq, its_number

    def last_turn(self, account: str) -> int | None:
        query = "SELECT max(seq) FROM events INDEXED BY turns WHERE account = ? AND kind IN ('grant', 'charge')"
        seq: int | None = self._value(query, account)
        return seq

    def latest_charges(self, account: str, most: int) -> list[str]:
        query = (
            "SELECT charge_id FROM events INDEXED BY turns WHERE account = ? AND kind IN ('grant', 'charge') "
            "AND kind = 'charge' ORDER BY seq DESC LIMIT ?"
        )
        return [charge_id for (charge_id,) in self._connection.execute(query, (account, most))]

    def add(self, row: tuple[Any, ...], payload: bytes | None) -> None:
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, payload))

    def total(self, key: Key) -> tuple[object, object] | None:
        where = "balances WHERE account = ?" if len(key) == 1 else "marks WHERE account = ? AND charge_id = ?"
        row = self._row(f"SELECT body, digest FROM {where}", *key)
        return None if row is None else (row[0], row[1])

    def totals(self) -> Iterator[tuple[Key, object, object]]:
        for columns, table in (("account", "balances"), ("account, charge_id", "marks")):
            for *key, body, digest in self._connection.execute(f"SELECT {columns}, body, digest FROM {table}"):
                yield tuple(key), body, digest

    def accounts(self) -> list[str]:
        return [name for (name,) in self._connection.execute("SELECT account FROM balances")]

    def put_total(self, key: Key, body: str, digest: bytes) -> None:
        table, places = ("balances", "?, ?, ?") if len(key) == 1 else ("marks", "?, ?, ?, ?")
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", (*key, body, digest))

    def check_pages(self) -> None:
        if self._connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            damaged("SQLite finds its pages inconsistent")

    def _row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return row

    def _value(self, query: str, *values: object) -> Any:
        row = self._row(query, *values)
        return None if row is None else row[0]


class _Connection(sqlite3.Connection):
    """A connection that knows its file, which may have been replaced since, and its process, which may have forked."""

    file: tuple[int, int] | None = None
    process: int = 0


class _Kept(threading.local):
    """The connections that this thread keeps between operations; None outside `one_connection`.

    Only idle ones are in here. What a thread is using is in its frames alone: a fork clears what other threads keep,
    and SQLite would roll back, in the child, what a thread of the parent is writing.
    """

    idle: dict[tuple[Path, float], _Connection] | None = None


_kept = _Kept()


@contextmanager
def one_connection() -> Iterator[None]:
    """In here this thread opens a ledger once, however many operations it does. They stay transactions of their own."""
    if _kept.idle is not None:  # inside another
        yield
        return
    _kept.idle = {}
    try:
        yield
    finally:
        idle, _kept.idle = _kept.idle, None
        for connection in idle.values():
            if connection.process == os.getpid():
                connection.close()


class SQLiteStore:
    """The file of a ledger. Every failure to read or write it is a LedgerError."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(path).absolute()  # also after the program changes its directory
        self.timeout = timeout
        with self._translated():
            self.path = self.path.resolve()  # one ledger, and one place for its journal, whatever links lead to it
            if not self.path.parent.is_dir():
                raise LedgerError(f"the directory of the ledger {self.path} does not exist")
            if self.path.exists():
                with self._using(self._connect()) as connection:
                    if not _is_blank(connection):
                        _check_schema(connection)

    @property
    def place(self) -> str:
        """Its path, for messages."""
        return str(self.path)

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[LogWriter]:
        """A write transaction that no other process can interleave; an exception inside undoes all of it."""
        with self._translated(), self._using(self._open(create)) as connection:
            if connection.execute("PRAGMA journal_mode=DELETE").fetchone() != ("delete",):  # if others changed it
                raise LedgerError(f"the ledger {self.path} cannot be kept with a rollback journal")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield LogWriter(SQLiteRows(connection))
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[LogReader]:
        """One snapshot. The file and its directory may be read-only."""
        with self._translated(), self._using(self._open()) as connection, _snapshot(connection):
            yield LogReader(SQLiteRows(connection))

    def backup(self, target: str | os.PathLike[str]) -> int:
        """Copy the ledger as it is now into a new file, verified, while others use it. Returns the number of events."""
        goal = Path(target).absolute()
        partial = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}")
        if goal.exists() or goal.is_symlink():
            raise LedgerError(f"{goal} exists: a backup never replaces a file")
        with self._translated(), self._using(self._open()) as connection:
            try:
                _make_private(partial)
                with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
                    copy.execute("PRAGMA synchronous=EXTRA")
                    connection.backup(copy)
                    copy.execute("PRAGMA journal_mode=DELETE")
                with SQLiteStore(partial, self.timeout).reading() as log:
                    events = log.verify()
                os.link(partial, goal)  # unlike a rename, it replaces nothing
            except FileExistsError as error:
                raise LedgerError(f"{goal} exists: a backup never replaces a file") from error
            except OSError as error:
                raise LedgerError(f"the backup {goal} cannot be written: {error.strerror}") from error
            finally:
                partial.unlink(missing_ok=True)
            _sync_directory(goal.parent)
        return events

    @contextmanager
    def _using(self, connection: _Connection) -> Iterator[_Connection]:
        """Keep the connection for the next operation, inside `one_connection`; else, and after any error, close it."""
        keep = False
        try:
            yield connection
            idle = _kept.idle
            keep = idle is not None and connection.file is not None
            if keep and idle is not None:
                idle[self.path, self.timeout] = connection
        finally:
            if not keep:
                connection.close()

    def _reused(self) -> _Connection | None:
        """The connection that this thread keeps, if the file that it was opened for is the one that is there."""
        connection = None if _kept.idle is None else _kept.idle.pop((self.path, self.timeout), None)
        if connection is None or connection.process != os.getpid():
            return None
        with suppress(OSError):
            status = self.path.stat()
            if connection.file == (status.st_dev, status.st_ino) and status.st_nlink == 1:
                return connection
        connection.close()
        return None

    def _open(self, create: bool = False) -> _Connection:
        if create:
            with suppress(FileExistsError):
                _make_private(self.path)
        if not self.path.exists():
            raise LedgerError(f"there is no ledger at {self.path}; granting a budget makes one")
        connection = self._connect()
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

    def _connect(self) -> _Connection:
        """A connection that was tried out. Of a read-only file SQLite makes one that only reads, by itself."""
        return self._reused() or self._connect_anew()

    def _connect_anew(self) -> _Connection:
        uri = f"{self.path.as_uri()}?mode=rw"
        before = self.path.stat()
        connection = sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None, factory=_Connection)
        try:
            status = self.path.stat()
            if (status.st_dev, status.st_ino) == (before.st_dev, before.st_ino):
                connection.file, connection.process = (status.st_dev, status.st_ino), os.getpid()
            # SQLite takes a file shorter than its smallest page for an empty database and would overwrite it. (Opening
            # the file to look at it is no option: closing it again would drop this process's locks on it.)
            if not stat.S_ISREG(status.st_mode) or 0 < status.st_size < 512:
                raise LedgerError(f"{self.path} is not a ledger")
            if status.st_nlink > 1 and not self._backup_finished(status):
                raise LedgerError(
                    f"{self.path} has {status.st_nlink} names (hard links): a charge that is interrupted under one of "
                    "them could not be undone under the other. Keep one, and use symbolic links for others"
                )
            connection.execute("PRAGMA synchronous=EXTRA")
            connection.execute("PRAGMA fullfsync=ON")
            connection.execute("PRAGMA schema_version").fetchone()
            return connection
        except BaseException:
            connection.close()
            raise

    def _backup_finished(self, status: os.stat_result) -> bool:
        """Whether the other name was that of a backup which was stopped before it took it away; it is taken away now.

        Nobody writes under that name: the copy was whole, verified and closed when it got this one.
        """
        for other in self.path.parent.glob(f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 32}"):
            with suppress(OSError):
                found = other.lstat()
                beside = [other.with_name(other.name + ending) for ending in ("-wal", "-journal")]
                if (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino) and not any(map(Path.exists, beside)):
                    other.unlink()
                    _sync_directory(self.path.parent)
        return self.path.stat().st_nlink == 1

    def _initialise(self, connection: sqlite3.Connection) -> None:
        """Make the tables in one transaction: a process killed here leaves a blank file that the next one takes."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_blank(connection):
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                for statement in _SCHEMA:
                    connection.execute(statement)
                StoredTotals(SQLiteRows(connection)).begin()
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        _sync_directory(self.path.parent)  # the file's name must outlive a power cut, too

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
                waited = f"the ledger {self.path} was locked by another process for more than {self.timeout:g} s"
                raise LedgerBusyError(waited) from error
            if _is_full(error):
                raise LedgerBusyError(f"the ledger {self.path} cannot be written: its disk is full") from error
            if isinstance(error, sqlite3.OperationalError):
                message = f"the ledger {self.path} cannot be read or written: {error}"
            else:
                message = f"{self.path} is not a ledger, or it is damaged: {error}"
            raise LedgerError(message) from error


def _make_private(path: Path) -> None:
    """Make an empty file that its owner alone may read. It is not opened: see `SQLiteStore._connect`."""
    if hasattr(os, "mknod"):
        with suppress(PermissionError):  # some systems keep mknod to the superuser
            os.mknod(path, stat.S_IFREG | 0o600)
            return
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _sync_directory(path: Path) -> None:
    if os.name == "posix":
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _is_busy(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _is_full(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "is full" in str(error)


def _is_blank(connection: sqlite3.Connection) -> bool:
    return not _pragma(connection, "application_id") and not _statements(connection)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _statements(connection: sqlite3.Connection) -> list[str]:
    return [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is read in here is of one moment, whatever other processes commit meanwhile."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_schema(connection: sqlite3.Connection) -> None:
    with _snapshot(connection):  # its version and its tables at one moment
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        statements = _statements(connection)
    if application != APPLICATION_ID:
        raise LedgerError("the file is an SQLite database but not a ledger")
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger has version {version}; this program reads version {SCHEMA_VERSION}. Use the version of "
            "discreet that wrote it"
        )
    if statements != list(_SCHEMA):
        damaged("its tables or triggers were altered")
