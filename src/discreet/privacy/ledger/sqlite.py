"""The ledger's file: its rows in SQLite, append-only, in one file that many processes may use at once.

Triggers refuse UPDATE and DELETE of events, and numbers with gaps.

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
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from discreet.errors import LedgerBusyError, LedgerError, ParameterError
from discreet.privacy.ledger.event_log import EventRows, EventStore, LogReader, LogWriter, StoredTotals, damaged
from discreet.privacy.ledger.idle_connections import idle_connection, using
from discreet.storage import sync_folder

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


class SQLiteRows(EventRows):
    """The rows of a file. Its indices are asked by name: they tell whether a damaged page hides a row."""

    by_charge = "events INDEXED BY one_of_a_kind"
    by_turn = "events INDEXED BY turns"

    def check_pages(self) -> None:
        if self.ask("PRAGMA integrity_check").fetchall() != [("ok",)]:
            damaged("SQLite finds its pages inconsistent")


class _Connection(sqlite3.Connection):
    """A connection that knows its file, which may have been replaced since."""

    file: tuple[int, int] | None = None


class SQLiteStore(EventStore):
    """The file of a ledger."""

    path: Path

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(path).absolute()  # also after the program changes its directory
        self.timeout = timeout
        with self._translated():
            # One ledger, and one place for its journal, whatever links lead to it.
            self.path = Path(os.path.realpath(self.path))
            self.place = str(self.path)
            if not self.path.parent.is_dir():
                raise LedgerError(f"the directory of the ledger {self.path} does not exist")
            if self.path.exists():
                with self._using(self._connect()) as connection:
                    if not _is_blank(connection):
                        _check_schema(connection)

    def create(self, may_charge: Sequence[str], may_read: Sequence[str]) -> None:
        if may_charge or may_read:
            raise ParameterError(
                "a ledger file has no roles; anyone who may write the file can charge and grant (use chmod, setfacl)"
            )
        with self.writing(create=True):
            pass

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[LogWriter]:
        with self._translated(), self._using(self._open(create)) as connection:
            if connection.execute("PRAGMA journal_mode=DELETE").fetchone() != ("delete",):  # if others changed it
                raise LedgerError(f"the ledger {self.path} cannot use a rollback journal")
            with _transaction(connection, "IMMEDIATE"):
                yield LogWriter(SQLiteRows(connection))
                connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[LogReader]:
        # The file and its directory may be read-only.
        with self._translated(), self._using(self._open()) as connection, _transaction(connection):
            yield LogReader(SQLiteRows(connection))

    def _using(self, connection: _Connection) -> AbstractContextManager[_Connection]:
        return using((self.path, self.timeout), connection, connection.file is not None)

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
        """A connection that was tried out. Of a read-only file SQLite makes one that only reads, by itself.

        The one that this thread keeps is used if the file that it was opened for is the one that is there.
        """
        connection: _Connection | None = idle_connection((self.path, self.timeout))
        if connection is not None:
            with suppress(OSError):
                status = self.path.stat()
                if connection.file == (status.st_dev, status.st_ino) and status.st_nlink == 1:
                    return connection
            connection.close()
        return self._connect_anew()

    def _connect_anew(self) -> _Connection:
        uri = f"{self.path.as_uri()}?mode=rw"
        before = self.path.stat()
        connection = sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None, factory=_Connection)
        try:
            status = self.path.stat()
            if (status.st_dev, status.st_ino) == (before.st_dev, before.st_ino):
                connection.file = status.st_dev, status.st_ino
            # SQLite takes a file shorter than its smallest page for an empty database and would overwrite it. (Opening
            # the file to look at it is no option: closing it again would drop this process's locks on it.)
            if not stat.S_ISREG(status.st_mode) or 0 < status.st_size < 512:
                raise LedgerError(f"{self.path} is not a ledger")
            if status.st_nlink > 1 and not self._backup_finished(status):
                raise LedgerError(
                    f"{self.path} has {status.st_nlink} names (hard links): a charge interrupted under one could not "
                    "be undone under another. Keep one, and use symbolic links for the others"
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
                    sync_folder(self.path.parent)
        return self.path.stat().st_nlink == 1

    def _initialise(self, connection: sqlite3.Connection) -> None:
        """Make the tables in one transaction: a process killed here leaves a blank file that the next one takes."""
        with _transaction(connection, "IMMEDIATE"):
            if _is_blank(connection):
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                for statement in _SCHEMA:
                    connection.execute(statement)
                StoredTotals(SQLiteRows(connection)).begin()
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.execute("COMMIT")
        sync_folder(self.path.parent)  # the file's name must outlive a power cut, too

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be opened: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise LedgerError(f"{self.path} is not a ledger, or it is damaged") from error
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                waited = f"the ledger {self.path} was locked by another process for more than {self.timeout:g} s"
                raise LedgerBusyError(waited) from error
            if isinstance(error, sqlite3.OperationalError) and "is full" in str(error):
                raise LedgerBusyError(f"the ledger {self.path} cannot be written: its disk is full") from error
            if isinstance(error, sqlite3.OperationalError):
                message = f"the ledger {self.path} cannot be read or written: {error}"
            else:
                message = f"{self.path} is not a ledger, or it is damaged: {error}"
            raise LedgerError(message) from error


def backup(store: EventStore, target: str | os.PathLike[str]) -> int:
    """Copy a log as it is now into a new file, verified, while others use it. Returns the number of events."""
    goal = Path(target).absolute()
    partial = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}")
    if goal.exists() or goal.is_symlink():
        raise LedgerError(f"{goal} already exists; a backup never replaces a file. Choose another name")
    if not goal.parent.is_dir():
        raise LedgerError(f"the backup {goal} cannot be written: its directory does not exist")
    try:
        copy = SQLiteStore(partial, 60.0)
        with store.reading() as log, copy.writing(create=True) as new:
            new.copy(log)
        with copy.reading() as log:
            events = log.verify()
        os.link(partial, goal)  # unlike a rename, it replaces nothing
    except FileExistsError as error:
        raise LedgerError(f"{goal} already exists; a backup never replaces a file. Choose another name") from error
    except OSError as error:
        raise LedgerError(f"the backup {goal} cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(goal.parent)
    return events


def _make_private(path: Path) -> None:
    """Make an empty file that its owner alone may read. It is not opened: see `SQLiteStore._connect`."""
    if hasattr(os, "mknod"):
        with suppress(PermissionError):  # some systems keep mknod to the superuser
            os.mknod(path, stat.S_IFREG | 0o600)
            return
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _is_blank(connection: sqlite3.Connection) -> bool:
    return not _pragma(connection, "application_id") and not _statements(connection)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _statements(connection: sqlite3.Connection) -> list[str]:
    return [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]


@contextmanager
def _transaction(connection: sqlite3.Connection, mode: str = "") -> Iterator[None]:
    """All that is read in here is of one moment, whatever others commit meanwhile; undone unless it is committed."""
    connection.execute(f"BEGIN {mode}")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_schema(connection: sqlite3.Connection) -> None:
    with _transaction(connection):  # its version and its tables at one moment
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
