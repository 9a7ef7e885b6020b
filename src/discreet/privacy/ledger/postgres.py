"""A ledger of many hosts: its rows in PostgreSQL, append-only, in the schema `discreet` of a database.

One lock: every event carries the digest of the one before, so writers have to take turns whatever the database offers.
A transaction that writes first locks the row of the log's head, and reads everything after that (docs/adr/0013-*). The
lock is let go when the transaction has ended on the server, not when its client has gone: a host that was cut off
holds others up until the server ends its transaction, for half of the time that the others wait.

Durability: a commit that returned is on the server's disk, and on that of every standby that the server waits for.
fsync=off is refused, synchronous_commit is raised to "on" for the transaction. Settings are those of the transaction,
so poolers between the two do not matter.

A connection that is lost while a transaction is committed leaves open whether it was. Anyone who has the lock next
knows: the event that was added is there with its digest, or it never will be.

Roles: the owner of the schema grants. Roles that were given `may_charge` can add charges, releases and steps, and
change no limit: a trigger compares. Those that were given `may_read` look.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn
from urllib.parse import quote

from discreet.errors import LedgerBusyError, LedgerError, ParameterError
from discreet.privacy.ledger.event_log import EventRows, EventStore, LogReader, LogWriter, Row, StoredTotals, damaged
from discreet.privacy.ledger.idle_connections import idle_connection, using
from discreet.privacy.ledger.witness import Witness

try:
    import psycopg
    from psycopg import errors, sql
except ImportError as _error:
    raise ParameterError(
        "a PostgreSQL ledger needs psycopg; install it with pip install 'discreet[postgres]'"
    ) from _error

_VERSION = "a ledger of discreet, version 2"  # the schema's comment
_FIRST = 0x64637472  # anyone who makes the tables locks this number
_WAIT = 0.2  # seconds, between two attempts to reach a server that was lost

# Text is compared byte by byte: an index must not depend on the collations of the system.
_TABLES = """
CREATE TABLE events (
    seq bigint PRIMARY KEY,
    version integer NOT NULL,
    at text NOT NULL,
    account text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('grant', 'charge', 'release', 'step')),
    charge_id text COLLATE "C" CHECK ((charge_id IS NULL) = (kind = 'grant')),
    number bigint NOT NULL CHECK ((number > 0) = (kind = 'step')),
    body text NOT NULL,
    digest bytea NOT NULL,
    payload bytea CHECK ((payload IS NULL) = (kind IN ('grant', 'charge')))
);
CREATE UNIQUE INDEX one_of_a_kind ON events (account, charge_id, kind, number) WHERE charge_id IS NOT NULL;
CREATE INDEX turns ON events (account, seq) WHERE kind IN ('grant', 'charge');
CREATE TABLE balances (account text COLLATE "C" PRIMARY KEY, body text NOT NULL, digest bytea NOT NULL);
CREATE TABLE marks (account text COLLATE "C", charge_id text COLLATE "C", body text NOT NULL, digest bytea NOT NULL,
    PRIMARY KEY (account, charge_id));
ALTER TABLE events ALTER payload SET STORAGE EXTERNAL;
"""

_OWNS = "pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')"
# By table: the trigger's name, when it runs (with the bits of pg_trigger.tgtype), and what it does.
_TRIGGERS = {
    ("events", "append_only"): (
        "BEFORE UPDATE OR DELETE ON events FOR EACH ROW",
        1 + 2 + 8 + 16,
        "BEGIN RAISE EXCEPTION 'the ledger is append-only'; END",
    ),
    ("events", "no_truncate"): (
        "BEFORE TRUNCATE ON events FOR EACH STATEMENT",
        2 + 32,
        "BEGIN RAISE EXCEPTION 'the ledger is append-only'; END",
    ),
    ("events", "right_event"): (
        "BEFORE INSERT ON events FOR EACH ROW",
        1 + 2 + 4,
        f"""BEGIN
    IF NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM discreet.events) THEN
        RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    IF NEW.kind = 'grant' AND NOT {_OWNS} THEN
        RAISE EXCEPTION 'may charge, and not grant' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END""",
    ),
    # What is granted is part of a balance, and changes with a grant alone. A unit is fixed by the first charge.
    ("balances", "same_limit"): (
        "BEFORE UPDATE ON balances FOR EACH ROW",
        1 + 2 + 16,
        f"""DECLARE
    was jsonb := OLD.body::jsonb;
    now jsonb := NEW.body::jsonb;
    totals text[] := '{{charges,last,tally,pieces}}';
BEGIN
    IF was #> '{{balance,unit}}' = 'null' THEN totals := totals || '{{unit}}'; END IF;
    IF NOT {_OWNS} AND (
        NEW.account <> OLD.account
        OR (was -> 'balance') - totals IS DISTINCT FROM (now -> 'balance') - totals
        OR was -> 'accounts' IS DISTINCT FROM now -> 'accounts'
    ) THEN
        RAISE EXCEPTION 'may charge, and not grant' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END""",
    ),
}
_RIGHTS = {
    "may_charge": ("INSERT, SELECT ON events", "SELECT, UPDATE ON balances", "INSERT, SELECT, UPDATE ON marks"),
    "may_read": ("SELECT ON events, balances, marks",),
}

# What a transaction begins with: its settings, then the server's and the tables', all in one round trip.
_BEGIN = """BEGIN {mode};
SELECT set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
    set_config('lock_timeout', '{wait}', true),
    set_config('idle_in_transaction_session_timeout', '{idle}', true),
    set_config('statement_timeout', '0', true),
    set_config('search_path', 'discreet, pg_temp', true);
SELECT current_setting('fsync'), current_setting('server_encoding'),
    (SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = 'discreet'),
    (SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = 'discreet'),
    (SELECT array_agg(concat_ws(' ', c.relname, t.tgname, t.tgtype, t.tgenabled, p.prosrc) ORDER BY c.relname, t.tgname)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'discreet') AND NOT t.tgisinternal),
    (SELECT array_agg(c.relname::text ORDER BY c.relname)
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'discreet') AND i.indisvalid
            AND (i.indisunique OR c.relname = 'turns'))"""
_EXPECTED = (
    sorted(f"{table} {name} {bits} O {body}" for (table, name), (_, bits, body) in _TRIGGERS.items()),
    ["balances_pkey", "events_pkey", "marks_pkey", "one_of_a_kind", "turns"],
)


class PostgresRows(EventRows):
    """The rows of a database."""

    def ask(self, query: str, *values: object) -> Any:
        return self._connection.execute(query.replace("?", "%s"), values)

    def stream(self, query: str) -> Iterable[Row]:
        with self._connection.cursor("long") as cursor:
            cursor.execute(query)
            yield from cursor


class PostgresStore(EventStore):
    """The tables of a ledger on a server."""

    path = None

    def __init__(self, url: str, timeout: float) -> None:
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ParameterError(f"the address of the ledger cannot be read: {str(error).strip()}") from None
        self.timeout = timeout
        host, port = str(given.get("host", "")), str(given.get("port", ""))
        name = quote(str(given.get("dbname", "")))
        self.place = f"postgresql://{host}{port and f':{port}'}/{name}"  # never the password
        if host.startswith("/"):
            self.place = f"postgresql:///{name}?host={host}{port and f'&port={port}'}"
        # A server that does not answer is noticed, also while nothing is sent.
        alive = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
        alive |= {"connect_timeout": max(2, math.ceil(timeout)), "tcp_user_timeout": math.ceil(1000 * timeout)}
        self._given: dict[str, Any] = {"application_name": "discreet", "client_encoding": "UTF8", **alive, **given}
        self._witness = Witness(self.place)

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[LogWriter]:
        cut: Exception | None = None
        with self._translated(), self._transaction("ISOLATION LEVEL READ COMMITTED", create) as connection:
            connection.execute("SELECT FROM balances WHERE account = '' FOR UPDATE")
            log = LogWriter(PostgresRows(connection))
            self._witness.check(log)
            before = log.end
            yield log
            try:
                connection.execute("COMMIT")
            except psycopg.Error as error:
                if not connection.closed or log.end == before:  # the server says no, or there is nothing to lose
                    raise
                cut = error
        if cut is not None:
            self._find_out(log.end, cut)
        self._witness.saw(log)

    @contextmanager
    def reading(self) -> Iterator[LogReader]:
        # Also from a standby.
        mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._translated(), self._transaction(mode) as connection:
            yield LogReader(PostgresRows(connection))

    def create(self, may_charge: Sequence[str], may_read: Sequence[str]) -> None:
        with self._translated(), self._transaction("ISOLATION LEVEL READ COMMITTED", create=True) as connection:
            owner = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'events'::regclass"
            if not connection.execute(owner).fetchone()[0]:  # who is told so by a warning only
                self._refuse("permission denied: it owns no ledger")
            for kind, roles in (("may_charge", may_charge), ("may_read", may_read)):
                for role in roles:
                    for right in ("USAGE ON SCHEMA discreet", *_RIGHTS[kind]):
                        statement = sql.SQL(f"GRANT {right} TO {{}}").format(sql.Identifier(role))
                        connection.execute(statement)
            connection.execute("COMMIT")

    def _find_out(self, end: tuple[int, str], cut: Exception) -> None:
        """Return if the transaction that was cut off was committed. It is over when its lock is ours."""
        until = time.monotonic() + self.timeout
        while True:
            try:
                with self.writing() as log:
                    is_there = log.has(*end)
                break
            except LedgerBusyError:
                if time.monotonic() > until:
                    raise LedgerError(
                        f"the connection to {self.place} was lost while a charge or a release was being written, and "
                        "it is not known whether it was. Repeat the same request with the same charge id; it is "
                        "charged once"
                    ) from cut
                time.sleep(_WAIT)
        if not is_there:
            raise LedgerBusyError(
                f"the connection to {self.place} was lost before anything was written; try again"
            ) from cut

    # ---- transactions ------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, mode: str, create: bool = False) -> Iterator[Any]:
        """A connection inside a transaction, its tables checked; it is rolled back unless it was committed inside."""
        idle = 500 * self.timeout  # half as long as others wait for it
        begin = _BEGIN.format(mode=mode, wait=math.ceil(1000 * self.timeout), idle=math.ceil(max(1000, idle)))
        connection, found = self._begun(begin)
        with using((self.place, self.timeout, "postgres"), connection):
            try:
                self._check(connection, found, create)
                yield connection
            finally:
                if not connection.closed and connection.info.transaction_status:
                    try:
                        connection.execute("ROLLBACK")
                    except psycopg.Error:  # lost, or a signal came in the middle of a statement: the server rolls back
                        connection.close()

    def _begun(self, begin: str) -> tuple[Any, tuple[Any, ...]]:
        connection = idle_connection((self.place, self.timeout, "postgres"))
        if connection is not None:
            try:
                return connection, _last_row(connection, begin)
            except psycopg.OperationalError:  # lost while it was idle; nothing was done with it yet
                connection.close()
        # Poolers may give each transaction another connection of the server, which knows no prepared statements.
        connection = psycopg.connect(**self._given, autocommit=True, prepare_threshold=None)
        try:
            return connection, _last_row(connection, begin)
        except BaseException:
            connection.close()
            raise

    def _check(self, connection: Any, found: tuple[Any, ...], create: bool) -> None:
        fsync, encoding, comment, may_use, *tables = found
        if fsync != "on":
            raise LedgerError(
                f"the server of {self.place} runs with fsync=off: a power cut could lose a charge. Turn fsync on"
            )
        if encoding != "UTF8":
            raise LedgerError(f"the database of {self.place} has the encoding {encoding}; a ledger needs UTF8")
        if comment is None:
            if not create:
                raise LedgerError(f"{self.place} holds no ledger yet; granting a budget makes one")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_FIRST,))
            if connection.execute("SELECT FROM pg_namespace WHERE nspname = 'discreet'").fetchone() is None:
                _make(connection)
            return
        if comment != _VERSION:
            raise LedgerError(f"{self.place} has a schema 'discreet' that is not {_VERSION}: {comment or 'no comment'}")
        if not may_use:
            self._refuse("permission denied")
        if tuple(tables) != _EXPECTED:
            damaged("its tables or triggers were altered")

    def _refuse(self, what: str) -> NoReturn:
        role = self._given.get("user", "this role")
        raise LedgerError(f"the ledger {self.place} refuses role {role!r}: {what}. Ask its owner")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            self._fail(error)

    def _fail(self, error: psycopg.Error) -> NoReturn:
        what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, (errors.LockNotAvailable, errors.IdleInTransactionSessionTimeout)):
            waited = f"the ledger {self.place} was locked by another process for more than {self.timeout:g} s"
            raise LedgerBusyError(waited) from error
        if isinstance(error, (errors.DiskFull, errors.OutOfMemory, errors.TooManyConnections)):
            raise LedgerBusyError(f"the ledger {self.place} cannot be written now: {what}") from error
        if isinstance(error, errors.InsufficientPrivilege):
            self._refuse(what)
        if isinstance(error, errors.ReadOnlySqlTransaction):
            raise LedgerError(
                f"the server of {self.place} is a standby, which cannot be charged. Give the primary, or all servers "
                "with target_session_attrs=read-write"
            ) from error
        if isinstance(error, errors.UniqueViolation | errors.RaiseException | errors.CheckViolation):
            raise LedgerError(f"the ledger {self.place} refuses to be changed: {what}") from error
        if isinstance(error, psycopg.OperationalError):
            raise LedgerBusyError(f"the ledger {self.place} cannot be reached: {what}") from error
        raise LedgerError(f"the ledger {self.place} cannot be read or written: {what}") from error


def _last_row(connection: Any, statements: str) -> tuple[Any, ...]:
    cursor = connection.execute(statements)
    while cursor.nextset():
        pass
    row: tuple[Any, ...] = cursor.fetchone()
    return row


def _make(connection: Any) -> None:
    """The schema, with the head of a log without events."""
    connection.execute("CREATE SCHEMA discreet")
    connection.execute(_TABLES)
    for (table, name), (when, _, body) in _TRIGGERS.items():
        function = f"{table}_{name}"
        connection.execute(f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $body${body}$body$")
        connection.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()")
    connection.execute(f"COMMENT ON SCHEMA discreet IS '{_VERSION}'")
    StoredTotals(PostgresRows(connection)).begin()
