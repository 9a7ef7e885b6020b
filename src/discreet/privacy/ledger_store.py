"""The ledger's file: an append-only log of events in SQLite, chained by digests, with running totals beside it.

Rows of `events` are only ever added: triggers refuse UPDATE and DELETE, sequence numbers have no gaps, and every row
carries the SHA-256 of itself and of the row before. Reading all of them for every charge would cost more with each, so
what they add up to is kept beside them, each row with its digest, and written in the transaction of the event:

* `balances`: for every account its `Balance`; and under the empty name the head of the log: its last event, how many
  accounts there are, and the highest version of an event;
* `marks`: for every charge the numbers of its events: charge, release, latest step.

Everything that decides is thus recorded twice, and an operation compares both before anything is decided on it: the
head with the last event, a balance with the last grant or charge that the index knows of its account, a mark with the
events that the index knows of its charge, and every event that is used with its digest. A row changed, lost or slipped
in by other means is noticed there if it bears on what is asked; `verify` reads everything. Cutting off the end of the
file (an old backup put back) cannot be noticed from inside.

Durability: a rollback journal with synchronous=EXTRA (and fullfsync, where the system has it), so a commit that
returned has reached the disk, all of it in the one file. A file with a second name is refused: its journal would be
looked for under the name by which it is opened. A connection lives for one operation, or for the operations of one
thread inside `one_connection`: nothing is shared between threads or used by a forked child.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import random
import sqlite3
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from discreet.errors import LedgerBusyError, LedgerError
from discreet.privacy.balance import Balance

__all__ = ["ChargeEvents", "EventLog", "LedgerEvent", "LogReader", "LogWriter", "one_connection"]

APPLICATION_ID = 0x64637472  # "dctr", in the header of every ledger file
SCHEMA_VERSION = 2
"""2 has steps and running totals. A ledger of version 1 is read as it is and becomes one of version 2 when it is first
written to. Programs that know only version 1 refuse it from then on: they would leave the totals behind."""
EVENT_VERSIONS = (1, 2)
"""1: everything but adaptive grants, which have 2, so that a program that does not know them refuses the ledger."""

_APPEND_ONLY = (
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
    *_APPEND_ONLY,
)
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
    *_APPEND_ONLY,
)
_SCHEMAS = {1: _SCHEMA_1, 2: _SCHEMA}
_HEAD = ""  # the account's name under which `balances` keeps the head; accounts have names
_NO_EVENTS: dict[str, Any] = {"seq": 0, "digest": "", "accounts": 0, "version": 1}
_NO_CHARGE: dict[str, Any] = {"charge": None, "release": None, "step": None, "number": 0}


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


@dataclass(frozen=True, slots=True)
class ChargeEvents:
    """The events of one charge: itself, the release it paid for, the latest step."""

    charge: LedgerEvent | None
    release: LedgerEvent | None
    step: LedgerEvent | None


def _digest(before: bytes, fields: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(before + json.dumps(fields, ensure_ascii=True).encode()).digest()


def _damaged(what: str) -> NoReturn:
    raise LedgerError(f"the ledger is damaged: {what}")


class _Totals:
    """What events add up to: the head, the balances and the marks."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, ...], dict[str, Any]] = {(_HEAD,): _NO_EVENTS}

    def read(self, *key: str) -> dict[str, Any] | None:
        """The head, the balance of an account or the mark of a charge."""
        return self.rows.get(key)

    def write(self, value: dict[str, Any], *key: str) -> None:
        """Put a new one in its place."""
        self.rows[key] = value

    def add(self, event: LedgerEvent) -> None:
        """One more event at the end of the log."""
        head = self.read(_HEAD) or _NO_EVENTS
        known = self.read(event.account)
        if event.kind in ("grant", "charge"):
            balance = (Balance() if known is None else known["balance"]).after(event.kind, event.details)
            self.write({"balance": balance, "seq": event.seq, "digest": event.digest}, event.account)
        if event.charge_id is not None:
            mark = {**(self.read(event.account, event.charge_id) or _NO_CHARGE), event.kind: event.seq}
            mark["number"] = event.details.get("number", mark["number"])
            self.write(mark, event.account, event.charge_id)
        head = {
            "seq": event.seq,
            "digest": event.digest,
            "accounts": head["accounts"] + (known is None),
            "version": max(head["version"], event.version),
        }
        self.write(head, _HEAD)


class _StoredTotals(_Totals):
    """The totals in the file: read and checked when they are asked for, written as they change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self.rows.clear()  # nothing was read or written yet, in this transaction

    def read(self, *key: str) -> dict[str, Any] | None:
        if key in self.rows:
            return self.rows[key]
        where = "balances WHERE account = ?" if len(key) == 1 else "marks WHERE account = ? AND charge_id = ?"
        row = self._connection.execute(f"SELECT body, digest FROM {where}", key).fetchone()
        if row is None:
            return None
        self.rows[key] = _checked(key, *row)
        return self.rows[key]

    def write(self, value: dict[str, Any], *key: str) -> None:
        body = json.dumps(value, sort_keys=True, default=Balance.to_dict)
        table, places = ("balances", "?, ?, ?") if len(key) == 1 else ("marks", "?, ?, ?, ?")
        row = (*key, body, _digest(b"", (*key, body)))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", row)
        self.rows[key] = value

    def all(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """Every row there is."""
        rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for columns, table in (("account", "balances"), ("account, charge_id", "marks")):
            for *key, body, digest in self._connection.execute(f"SELECT {columns}, body, digest FROM {table}"):
                rows[tuple(key)] = _checked(tuple(key), body, digest)
        return rows


@lru_cache(maxsize=16)  # the operations of one release read the same rows, each in a transaction of its own
def _checked(key: tuple[str, ...], body: object, digest: object) -> dict[str, Any]:
    """What a row says, if its digest is that of the row. Nobody changes it: what is written is a new one."""
    if not isinstance(body, str) or digest != _digest(b"", (*key, body)):
        _damaged("one of its running totals was altered")
    value: dict[str, Any] = json.loads(body)
    if "balance" in value:
        value["balance"] = Balance.from_dict(value["balance"])
    return value


_COLUMNS = "seq, version, at, account, kind, charge_id, body, digest"


def _event(row: tuple[Any, ...], number: object, before: bytes) -> LedgerEvent:
    """The event of a row, if its digest is that of the row and of the digest before."""
    *fields, digest = row
    if any(isinstance(field, bytes) for field in fields) or digest != _digest(before, tuple(fields)):
        _damaged(f"event {fields[0]} was altered, or one before it is missing")
    seq, version, at, account, kind, charge_id, body = fields
    if version not in EVENT_VERSIONS:
        raise LedgerError(f"the ledger has events of version {version}; this program reads 1 and 2")
    details = json.loads(body)
    if number != details.get("number", 0):
        _damaged(f"event {seq} was altered")
    return LedgerEvent(seq, version, at, account, kind, charge_id, details, digest.hex())


class LogReader:
    """The log as one transaction sees it. What is asked for is checked; what is not asked for is not read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._totals = _StoredTotals(connection)
        self._head = self._read_head()
        (last,) = connection.execute("SELECT max(seq) FROM events").fetchone()
        if (last or 0) != self._head["seq"]:
            _damaged("its head and its events disagree")
        if self._head["version"] not in EVENT_VERSIONS:
            raise LedgerError(f"the ledger has events of version {self._head['version']}; this program reads 1 and 2")
        if last and self._at(last).digest != self._head["digest"]:
            _damaged("its head and its last event disagree")

    @property
    def identity(self) -> str:
        """The digest of the first event, on which all others rest: copies of a ledger have it, other ledgers do not."""
        return self._at(1).digest

    def balance(self, account: str) -> Balance | None:
        """What the account's grants and charges add up to; None if it has none."""
        stored = self._totals.read(account)
        query = "SELECT max(seq) FROM events INDEXED BY turns WHERE account = ? AND kind IN ('grant', 'charge')"
        (last,) = self._connection.execute(query, (account,)).fetchone()
        if (None if stored is None else stored["seq"]) != last:
            _damaged("a balance and the events of its account disagree")
        if stored is None:
            return None
        event = self._at(last)
        if event.account != account or event.kind not in ("grant", "charge") or event.digest != stored["digest"]:
            _damaged("a balance and the last event of its account disagree")
        balance: Balance = stored["balance"]
        return balance

    def accounts(self) -> list[str]:
        """The names of all accounts, sorted."""
        names = self._connection.execute("SELECT account FROM balances WHERE account <> ?", (_HEAD,))
        accounts = sorted(name for (name,) in names)
        if len(accounts) != self._head["accounts"]:
            _damaged("the balance of an account is missing")
        return accounts

    def charge(self, account: str, charge_id: str) -> ChargeEvents:
        """The events of a charge."""
        mark = self._totals.read(account, charge_id) or _NO_CHARGE
        found = {kind: self._find(account, charge_id, kind) for kind in ("charge", "release", "step")}
        if found != {kind: (mark[kind], mark["number"] if kind == "step" else 0) for kind in found}:
            _damaged("a charge and the events that belong to it disagree")
        return ChargeEvents(*(self._belonging(seq, account, charge_id, kind) for kind, (seq, _) in found.items()))

    def step(self, account: str, charge_id: str, number: int) -> LedgerEvent | None:
        """One step of a charge."""
        last = self.charge(account, charge_id).step
        if last is None or number > last.details["number"]:
            return None
        seq, _ = self._find(account, charge_id, "step", number)
        event = self._belonging(seq, account, charge_id, "step")
        if event is None or event.details["number"] != number:
            _damaged(f"step {number} of a charge is missing")
        return event

    def latest_charges(self, account: str, most: int) -> tuple[str, ...]:
        """The ids of the latest charges of an account, oldest first."""
        query = (
            "SELECT charge_id FROM events INDEXED BY turns WHERE account = ? AND kind IN ('grant', 'charge') "
            "AND kind = 'charge' ORDER BY seq DESC LIMIT ?"
        )
        return tuple(row[0] for row in self._connection.execute(query, (account, most)).fetchall()[::-1])

    def payload(self, event: LedgerEvent) -> bytes:
        """The bytes stored with a release or a step, checked against their digest."""
        row = self._connection.execute("SELECT payload FROM events WHERE seq = ?", (event.seq,)).fetchone()
        if row is None or not isinstance(row[0], bytes) or _sha256(row[0]) != event.details["sha256"]:
            _damaged(f"what event {event.seq} stored was altered")
        return row[0]

    def events(self) -> list[LedgerEvent]:
        """All events in order, their chain checked from the first to the last."""
        events = _chain(self._connection, "number")
        if (len(events), events[-1].digest if events else "") != (self._head["seq"], self._head["digest"]):
            _damaged("its head and its events disagree")
        return events

    def verify(self) -> int:
        """Read and check everything: pages, chain, stored releases, and that all totals are those of the events."""
        if self._connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            _damaged("SQLite finds its pages inconsistent")
        events = self.events()
        for event in events:
            if event.kind in ("release", "step"):
                self.payload(event)
        if _totals_of(events).rows != self._totals.all():
            _damaged("its running totals are not those of its events")
        return len(events)

    def _read_head(self) -> dict[str, Any]:
        head = self._totals.read(_HEAD)
        if head is None:
            _damaged("its head is missing")
        return head

    def _at(self, seq: int) -> LedgerEvent:
        query = f"SELECT number, {_COLUMNS} FROM events WHERE seq = ?"
        row = self._connection.execute(query, (seq,)).fetchone()
        before = self._connection.execute("SELECT digest FROM events WHERE seq = ?", (seq - 1,)).fetchone()
        if row is None or (before is None) != (seq == 1) or (before and not isinstance(before[0], bytes)):
            _damaged(f"event {seq} or the one before it is missing")
        event = _event(row[1:], row[0], before[0] if before else b"")
        if event.seq != seq:
            _damaged(f"event {seq} was altered")
        return event

    def _belonging(self, seq: int | None, account: str, charge_id: str, kind: str) -> LedgerEvent | None:
        if seq is None:
            return None
        event = self._at(seq)
        if (event.account, event.charge_id, event.kind) != (account, charge_id, kind):
            _damaged("its events and their index disagree")
        return event

    def _find(self, account: str, charge_id: str, kind: str, number: int | None = None) -> tuple[int | None, int]:
        """By the index: where the event of that kind is (the latest step, or the one asked for), and its number."""
        query = (
            "SELECT seq, number FROM events INDEXED BY one_of_a_kind WHERE account = ? AND charge_id = ? AND kind = ? "
            f"{'' if number is None else 'AND number = ?'} ORDER BY number DESC LIMIT 1"
        )
        key = (account, charge_id, kind) if number is None else (account, charge_id, kind, number)
        return self._connection.execute(query, key).fetchone() or (None, 0)


class LogWriter(LogReader):
    """The log inside one write transaction."""

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
            details = {**details, "sha256": _sha256(payload)}
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        body = json.dumps(details, sort_keys=True)
        fields = (self._head["seq"] + 1, version, at, account, kind, charge_id, body)
        digest = _digest(bytes.fromhex(self._head["digest"]), fields)
        row = (*fields[:6], details.get("number", 0), body, digest, payload)
        self._connection.execute(_INSERT, row)
        self._totals.add(LedgerEvent(*fields[:6], json.loads(body), digest.hex()))
        self._head = self._read_head()


_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


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


class EventLog:
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

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[LogWriter]:
        """A write transaction that no other process can interleave; an exception inside undoes all of it."""
        with self._translated(), self._using(self._open_to_write(create)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if _pragma(connection, "user_version") != SCHEMA_VERSION:
                    _migrate(connection)
                yield LogWriter(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[LogReader]:
        """One snapshot. The file and its directory may be read-only."""
        with self._translated(), self._using(self._open()) as connection, _snapshot(connection):
            if _pragma(connection, "user_version") == SCHEMA_VERSION:
                yield LogReader(connection)
            else:  # as it would be if it were written to
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                    _take_over(connection, copy)
                    yield LogReader(copy)

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
                with EventLog(partial, self.timeout).reading() as log:
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
            # A ledger with a write-ahead log can be taken over only by who has the file to itself.
            keep = idle is not None and connection.file is not None and _journal(connection) == "delete"
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
        """A connection that was tried out."""
        reused = self._reused()
        if reused is not None:
            return reused
        try:
            return self._connect_as("mode=rw")  # of a read-only file SQLite makes "ro" by itself
        except sqlite3.OperationalError:
            if not self._is_out_of_reach():
                raise
            return self._connect_as("mode=ro&immutable=1")

    def _connect_as(self, options: str) -> _Connection:
        uri = f"{self.path.as_uri()}?{options}"
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

    def _is_out_of_reach(self) -> bool:
        """Whether a ledger of earlier versions lies where nothing can be written, not even by its readers.

        They kept a write-ahead log, and SQLite reads such a file only where it can make files for the log. If there is
        no log (and no journal), then the file is all there is.
        """
        if os.access(self.path.parent, os.W_OK):
            return False
        beside = [self.path.with_name(self.path.name + ending) for ending in ("-wal", "-journal")]
        return not any(path.exists() and path.stat().st_size for path in beside)

    def _open_to_write(self, create: bool) -> _Connection:
        """A connection that writes to the one file.

        A ledger that an earlier version kept with a write-ahead log is taken over. SQLite does that only for a
        connection that has the file to itself, and does not wait for it; so that those who wait are not in each other's
        way, they close the file meanwhile.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            connection = None
            try:
                connection = self._open(create)
                (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
                if mode != "delete":
                    raise LedgerError(f"the ledger {self.path} cannot be kept with a rollback journal")
                return connection
            except BaseException as error:
                if connection is not None:
                    connection.close()
                if not isinstance(error, sqlite3.Error) or not _is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.001, 0.03))

    def _initialise(self, connection: sqlite3.Connection) -> None:
        """Make the tables in one transaction: a process killed here leaves a blank file that the next one takes."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_blank(connection):
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                _fill(connection, [], _Totals())
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


def _sha256(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def _make_private(path: Path) -> None:
    """Make an empty file that its owner alone may read. It is not opened: see `EventLog._connect`."""
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
    """Whether others are in the way; "locking protocol" is what many who open a write-ahead log at once may get."""
    return isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in ("locked", "locking"))


def _is_full(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "is full" in str(error)


def _is_blank(connection: sqlite3.Connection) -> bool:
    return not _pragma(connection, "application_id") and not _statements(connection)


def _journal(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


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
    with _snapshot(connection):  # another process may be taking over an old ledger: its version and its tables
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        statements = _statements(connection)
    if application != APPLICATION_ID:
        raise LedgerError("the file is an SQLite database but not a ledger")
    if version not in _SCHEMAS:
        raise LedgerError(f"the ledger has version {version}; this program reads versions 1 to {SCHEMA_VERSION}")
    if statements != list(_SCHEMAS[version]):
        _damaged("its tables or triggers were altered")


def _migrate(connection: sqlite3.Connection) -> None:
    """Make a ledger of version 1 one of version 2, inside a write transaction."""
    _take_over(connection, connection)


def _take_over(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Carry the rows of a ledger of version 1 over, as they are, and what they add up to."""
    totals = _totals_of(_chain(old, "0"))  # nothing damaged is carried over
    columns = "seq, version, at, account, kind, charge_id, 0, body, digest, payload"
    rows = old.execute(f"SELECT {columns} FROM events ORDER BY seq").fetchall()
    if old is new:
        old.execute("DROP TABLE events")  # its index and triggers go with it
    _fill(new, rows, totals)


def _fill(connection: sqlite3.Connection, rows: list[tuple[Any, ...]], totals: _Totals) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.executemany(_INSERT, rows)
    stored = _StoredTotals(connection)
    for key, value in totals.rows.items():
        stored.write(value, *key)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def _totals_of(events: list[LedgerEvent]) -> _Totals:
    totals = _Totals()
    for event in events:
        totals.add(event)
    return totals


def _chain(connection: sqlite3.Connection, number: str) -> list[LedgerEvent]:
    """All events in order. Raises LedgerError unless the digests chain from the first to the last."""
    events: list[LedgerEvent] = []
    before = b""
    for step, *row in connection.execute(f"SELECT {number}, {_COLUMNS} FROM events ORDER BY seq"):
        if row[0] != len(events) + 1:
            _damaged(f"event {len(events) + 1} is missing")
        events.append(_event(tuple(row), step, before))
        before = row[-1]
    # A damaged page can hide the last rows without breaking the chain of those before; the index still knows them.
    indexed = "SELECT count(*) FROM events INDEXED BY one_of_a_kind WHERE charge_id IS NOT NULL"
    if connection.execute(indexed).fetchone()[0] != sum(event.charge_id is not None for event in events):
        _damaged("its events and their index disagree")
    return events
