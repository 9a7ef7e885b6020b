"""What must last beside the events: definitions, releases, keys of requests, digests of tokens. One SQLite file.

The publication of a tick is one transaction: its release, the name of the file that has the mechanism's state after it,
and the idempotency keys of its events.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._data_class import dataclass
from discreet.errors import DiscreetError, TakenOverError
from discreet.privacy.ledger import Ledger
from discreet.service.folder import make_folder
from discreet.watch.timetable import RunSpan

if TYPE_CHECKING:
    from discreet.service.definitions import StreamDefinition

_VERSION = 2
_PATIENCE = 30.0  # seconds, for other processes that write
_SCHEMA = """
create table runs (name text not null, run integer not null, begins real not null, ends real not null,
    last integer not null, primary key (name, run)) without rowid;
create table streams (name text primary key, definition text not null, digest text not null, begins real not null,
    grants text not null) without rowid;
create table states (name text primary key, run integer not null, tick integer not null,
    file text not null) without rowid;
create table releases (name text not null, tick integer not null, release text not null,
    primary key (name, tick)) without rowid;
create table keys (name text not null, key blob not null, digest blob not null, rows integer not null,
    until real not null, primary key (name, key)) without rowid;
create index keys_until on keys (until);
create table tokens (id integer primary key, digest blob not null unique, scope text not null, stream text,
    made real not null, note text);
"""


@dataclass(frozen=True)
class Kept:
    """A stream as it was left."""

    definition: dict[str, Any]
    digest: str
    begins: float
    grants: list[dict[str, float]]
    run: int
    tick: int
    file: str
    edges: list[float]  # when it began, and when its runs ended or will end


@dataclass(frozen=True)
class Which:
    """Some of the releases of a stream: ticks, every n-th of them, or those with which a day ended."""

    first: int
    last: int
    every: int = 1
    final: bool = False


class Store:
    """The file. Any thread may use it; writers take turns, and readers do not wait for them."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.path = folder / "service.sqlite"
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        # Those who read what was published, which may be much, are not in the way of requests that come in.
        self._writer, self._reader, self._archive = self._connect(), self._connect(), self._connect()
        self._writing, self._reading, self._looking_up = threading.RLock(), threading.Lock(), threading.Lock()
        self._held = self._number_of_holder()
        if self._version() == 0:
            with self.writing() as db:
                # Looked at again: another process may have found the new file, too.
                for statement in _SCHEMA.split(";") if self._version() == 0 else ():
                    db.execute(statement)
                db.execute(f"pragma user_version = {_VERSION}")
        version = self._version()
        if version != _VERSION:
            self.close()
            raise DiscreetError(f"{str(self.path)!r} was made by another version of discreet (format {version})")

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                db.execute("pragma journal_mode = wal")
                db.execute("pragma synchronous = full")
                return db
            except sqlite3.DatabaseError as error:
                # SQLite does not wait by itself for another process that is about to do the same.
                if "locked" not in str(error) or time.monotonic() > until:
                    db.close()
                    raise DiscreetError(f"{str(self.path)!r} cannot be opened: {error}") from None
            time.sleep(random.uniform(0.001, 0.03))

    def _version(self) -> int:
        with self._writing:
            return int(self._writer.execute("pragma user_version").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on disk when this is left."""
        with self._writing:
            self._writer.execute("begin immediate")
            try:
                if self._number_of_holder() != self._held:
                    raise TakenOverError(f"another service took over {str(self.path.parent)!r}")
                yield self._writer
                self._writer.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("rollback")
                raise

    @property
    def holder(self) -> str | None:
        """Who publishes from here, as the ledger has it; None before anybody took it over."""
        return f"holder-{self._held}" if self._held else None

    def _number_of_holder(self) -> int:
        return int(self._writer.execute("pragma application_id").fetchone()[0])

    def take_over(self, ledger: Ledger) -> None:
        """Publish from here as a new holder: the ledger refuses the one before, then the store does."""
        number = 1 + secrets.randbelow(2**31 - 1)
        for name, kept in self.streams().items():
            ledger.account(kept.definition.get("account") or name).take_over(name, f"holder-{number}")
        with self.writing() as db:
            db.execute(f"pragma application_id = {number}")
        self._held = number

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with self._reading:
            return self._reader.execute(sql, values).fetchall()

    @property
    def data_version(self) -> int:
        """Changes when another process has changed something."""
        return int(self._rows("pragma data_version")[0][0])

    def close(self) -> None:
        """Nothing may be used after it."""
        with self._writing, self._reading, self._looking_up:
            self._reader.close()
            self._archive.close()
            self._writer.close()

    # ---- streams ----------------------------------------------------------------------------------------------------

    def streams(self) -> dict[str, Kept]:
        """All that ever began."""
        rows = self._rows(
            "select s.name, definition, digest, begins, grants, run, tick, file from streams s "
            "join states t on s.name = t.name"
        )
        runs: dict[str, list[float]] = {}
        for name, ends in self._rows("select name, ends from runs order by name, run"):
            runs.setdefault(name, []).append(ends)
        return {
            name: Kept(
                json.loads(definition), digest, begins, json.loads(grants), run, tick, file,
                [begins, *runs.get(name, [])],
            )
            for name, definition, digest, begins, grants, run, tick, file in rows
        }  # fmt: skip

    def begin(self, name: str, definition: StreamDefinition, file: str, span: RunSpan) -> None:
        """A new stream, before its first tick, with the file of its first state."""
        words, grants = json.dumps(definition.fixed()), json.dumps(definition.announced())
        row = (name, words, definition.digest, span.begins, grants)
        with self.writing() as db:
            db.execute("insert into streams values (?, ?, ?, ?, ?)", row)
            db.execute("insert into states values (?, 1, 0, ?)", (name, file))
            _keep_run(db, name, span)

    def announce(self, name: str, definition: StreamDefinition) -> None:
        """More grants than before may follow."""
        with self.writing() as db:
            db.execute("update streams set grants = ? where name = ?", (json.dumps(definition.announced()), name))

    def next_run(self, name: str, span: RunSpan, file: str) -> None:
        """The stream goes on under its next grant, with a new state."""
        with self.writing() as db:
            db.execute("update states set run = ?, file = ? where name = ?", (span.number, file, name))
            _keep_run(db, name, span)

    def publish(
        self,
        name: str,
        tick: int,
        release: str,
        file: str,
        keys: Iterable[tuple[bytes, bytes, int, float]],
        now: float,
    ) -> None:
        """A tick with everything that belongs to it, at once; a tick that is there already is an error."""
        with self.writing() as db:
            db.execute("insert into releases values (?, ?, ?)", (name, tick, release))
            db.execute("update states set tick = ?, file = ? where name = ?", (tick, file, name))
            rows = [(name, *key) for key in keys]
            db.executemany("insert or ignore into keys values (?, ?, ?, ?, ?)", rows)
            db.execute("delete from keys where until < ?", (now,))

    def release(self, name: str, tick: int) -> bytes | None:
        """What was published for a tick, as JSON; None if nothing was."""
        found = self.some_releases(name, Which(tick, tick), 1)
        return found[0][1] if found else None

    @contextmanager
    def _published(self, name: str, which: Which, what: str) -> Iterator[sqlite3.Cursor]:
        """Published ticks in order, each with something of its release."""
        days = " join runs d on d.name = r.name and d.last = r.tick" if which.final else ""
        sql = (
            f"select r.tick, {what.format('cast(r.release as blob)')} from releases r{days} "
            "where r.name = ? and r.tick between ? and ? and r.tick % ? = 0 order by r.tick"
        )
        values = name, which.first, which.last, which.every
        with self._looking_up, closing(self._archive.execute(sql, values)) as rows:
            yield rows

    def some_releases(self, name: str, which: Which, most: int) -> list[tuple[int, bytes]]:
        """Published ticks, each with its release as JSON: the first ones, until they have this many bytes together."""
        found: list[tuple[int, bytes]] = []
        with self._published(name, which, "{}") as rows:
            for tick, release in rows:
                found.append((tick, release))
                most -= len(release)
                if most <= 0:
                    break
        return found

    def last_within(self, name: str, which: Which, most: int) -> int:
        """The last tick of those that have this many bytes together, or of the first alone; `last` if all fit."""
        with self._published(name, which, "length({})") as rows:
            before = None
            for tick, size in rows:
                most -= size
                if most < 0 and before is not None:
                    return int(before)
                before = tick
        return which.last

    def keys_like(self, name: str, beginning: bytes) -> list[bytes]:
        """The keys of a stream that begin so."""
        sql = "select key from keys where name = ? and substr(key, 1, ?) = ?"
        return [key for (key,) in self._rows(sql, name, len(beginning), beginning)]

    def key(self, name: str, key: bytes) -> tuple[bytes, int] | None:
        """(digest of the body, rows) of an earlier request with this key."""
        found = self._rows("select digest, rows from keys where name = ? and key = ?", name, key)
        return found[0] if found else None

    # ---- tokens -----------------------------------------------------------------------------------------------------

    def add_token(self, digest: bytes, scope: str, stream: str | None, made: float, note: str | None) -> int:
        """Keep a new token's digest; returns its number."""
        with self.writing() as db:
            sql = "insert into tokens (digest, scope, stream, made, note) values (?, ?, ?, ?, ?)"
            return int(db.execute(sql, (digest, scope, stream, made, note)).lastrowid or 0)

    def tokens(self) -> list[tuple[int, bytes, str, str | None, float, str | None]]:
        """All of them: number, digest, scope, stream, when, note."""
        return self._rows("select id, digest, scope, stream, made, note from tokens order by id")

    def remove_token(self, number: int) -> bool:
        """Whether there was one."""
        with self.writing() as db:
            return db.execute("delete from tokens where id = ?", (number,)).rowcount > 0


def _keep_run(db: sqlite3.Connection, name: str, span: RunSpan) -> None:
    row = (name, span.number, span.begins, span.ends, span.last)
    db.execute("insert or replace into runs values (?, ?, ?, ?, ?)", row)
