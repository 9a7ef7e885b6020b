"""The ledger's log: events that are only ever added, chained by digests, with running totals beside them.

Sequence numbers have no gaps, and every event carries the SHA-256 of itself and of the event before. Reading all of
them for every charge would cost more with each, so what they add up to is kept beside them, each row with its digest,
and written in the transaction of the event:

* of every account its `Balance`; and under the empty name the head of the log: its last event, how many accounts there
  are, and the highest version of an event;
* of every charge a mark: the numbers of its events: charge, release, latest step.

Everything that decides is thus recorded twice, and an operation compares both before anything is decided on it: the
head with the last event, a balance with the last grant or charge that the index knows of its account, a mark with the
events that the index knows of its charge, and every event that is used with its digest. A row changed, lost or slipped
in by other means is noticed there if it bears on what is asked; `verify` reads everything. Cutting off the end of the
log (an old backup put back) cannot be noticed from inside.

All of this is here, once. A store (`EventStore`) has transactions, and `EventRows` as they are in each: `sqlite` for
the processes of one host, `postgres` for many hosts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, Protocol

from discreet._data_class import dataclass, fields
from discreet.errors import LedgerError
from discreet.privacy.guarantee import unit_from_dict
from discreet.privacy.ledger.balance import Balance
from discreet.privacy.spans import Calendar, Period

Key = tuple[str, ...]
"""Of a total: the name of an account, or that and a charge's id."""
Row = tuple[Any, ...]
"""Of an event: (seq, version, at, account, kind, charge_id, number, body, digest)."""

_COLUMNS = "seq, version, at, account, kind, charge_id, number, body, digest"
_TOTALS = {1: ("balances", "account"), 2: ("marks", "account, charge_id")}
EVENT_VERSION = 3
"""Of the details of events: 2 has filters of grants and what charges cost under them, 3 has units, ends and renewals of
grants, periods of charges, and who made either; otherwise they are as 1. The next version: write it here, and read all
in `_event`. The head knows the highest that was ever written, so a program that does not know it refuses the whole
ledger."""
MOVED_VERSION = 4
"""Of grants that tell of a move: a program that does not know of moves would charge the account that was left."""
_READABLE = (1, 2, EVENT_VERSION, MOVED_VERSION)

_HEAD: Key = ("",)  # the account's name under which the head is kept; accounts have names
_NO_EVENTS: dict[str, Any] = {"seq": 0, "digest": "", "accounts": 0, "version": 1}
_NO_CHARGE: dict[str, Any] = {"charge": None, "release": None, "step": None, "number": 0}


HISTORY = ("no.", "time", "account", "event", "budget", "mechanism", "period", "charge id", "who", "why")
"""The columns of a history for people."""


@dataclass(frozen=True)
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
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def cells(self) -> list[Any]:
        """The event as a row of `HISTORY`."""
        details, period = self.details, ""
        amount = ", ".join(f"{name}={value:g}" for name, value in details.get("budget", {}).items() if value)
        amount += " (adaptive)" if details.get("adaptive") else ""
        amount += f" (costs rho={details['cost']['rho']:.3g})" if "cost" in details else ""
        amount += f" until {details['until']}" if "until" in details else ""
        if "counts" in details:
            period = f"counts before {details['counts']['before']}"
        elif "period" in details:
            spans = unit_from_dict(details["unit"]).spans or Calendar("1d")
            period = spans.told(Period.from_dict(details["period"]))
        who = "{user}@{host}".format(**details["who"]) if "who" in details else ""
        why = ", ".join(str(details[name]) for name in ("reason", "approver") if name in details)
        return [
            *(self.seq, self.at, self.account, self.kind, amount, details.get("mechanism", "")),
            *(period, self.charge_id or "", who, why),
        ]


@dataclass(frozen=True)
class ChargeEvents:
    """The events of one charge: itself, the release it paid for, the latest step."""

    charge: LedgerEvent | None
    release: LedgerEvent | None
    step: LedgerEvent | None


class EventStore(Protocol):
    """Where a log is kept. Every failure to read or write it is a LedgerError."""

    place: str  # for messages
    path: Path | None  # the file, if it is one

    def create(self, may_charge: Sequence[str], may_read: Sequence[str]) -> None:
        """Make an empty log unless there is one, and give these roles their rights."""

    def reading(self) -> AbstractContextManager[LogReader]:
        """One snapshot, whatever others commit meanwhile."""

    def writing(self, create: bool = False) -> AbstractContextManager[LogWriter]:
        """A transaction that no other can interleave, durable when it ends; an exception inside undoes all of it."""


def utc_now() -> datetime:
    """The ledger's clock."""
    return datetime.now(timezone.utc)


def digest_of(before: bytes, fields: tuple[Any, ...]) -> bytes:
    """The digest of a row that follows another."""
    return hashlib.sha256(before + json.dumps(fields, ensure_ascii=True).encode()).digest()


def damaged(what: str) -> NoReturn:
    """Refuse a ledger that was altered."""
    raise LedgerError(f"the ledger is damaged: {what}")


class EventRows:
    """The tables as one transaction sees them, in SQL that every store understands. Nothing is checked here.

    A store says how it is asked, and how it checks its own files. Rows of `events` are only ever added. The running
    totals are in `balances` (and the head, under the empty name) and `marks`.
    """

    by_charge = "events"  # where events are looked up by their charge: in the index, not in the table
    by_turn = "events"  # grants and charges of an account

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def ask(self, query: str, *values: object) -> Any:
        """A cursor with the answer."""
        return self._connection.execute(query, values)

    def value(self, query: str, *values: object) -> Any:
        """The first column of the first row of the answer; None if there is none."""
        row = self.ask(query, *values).fetchone()
        return None if row is None else row[0]

    def stream(self, query: str) -> Iterable[Row]:
        """The rows of a long answer, a few at a time."""
        rows: Iterable[Row] = self.ask(query)
        return rows

    def check_pages(self) -> None:
        """Raise LedgerError if the store finds its own files inconsistent."""

    # ---- events ------------------------------------------------------------------------------------------------------

    def event(self, seq: int) -> tuple[Row | None, object]:
        """One event, and the digest of the one before; None for what is not there."""
        before = "(SELECT digest FROM events AS before WHERE before.seq = events.seq - 1)"
        row = self.ask(f"SELECT {_COLUMNS}, {before} FROM events WHERE seq = ?", seq).fetchone()
        return (None, None) if row is None else (row[:-1], row[-1])

    def copied(self) -> Iterator[tuple[Row, bytes | None]]:
        """All events by number, each with what it stores."""
        for *row, payload in self.stream(f"SELECT {_COLUMNS}, payload FROM events ORDER BY seq"):
            yield tuple(row), payload

    def find(self, account: str, charge_id: str, kind: str, number: int | None) -> tuple[int | None, int]:
        """By the index: where the event of that kind is (the latest step, or the one asked for), and its number."""
        query = (
            f"SELECT seq, number FROM {self.by_charge} WHERE account = ? AND charge_id = ? AND kind = ? "
            f"{'' if number is None else 'AND number = ?'} ORDER BY number DESC LIMIT 1"
        )
        key = (account, charge_id, kind) if number is None else (account, charge_id, kind, number)
        seq, its_number = self.ask(query, *key).fetchone() or (None, 0)
        return seq, its_number

    def add(self, row: Row, payload: bytes | None) -> None:
        """One more event."""
        self.ask(f"INSERT INTO events ({_COLUMNS}, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row, payload)

    # ---- running totals ----------------------------------------------------------------------------------------------

    def total(self, key: Key) -> tuple[object, object] | None:
        """A running total, as body and digest."""
        table, columns = _TOTALS[len(key)]
        found: tuple[object, object] | None = self.ask(
            f"SELECT body, digest FROM {table} WHERE ({columns}) = ({_places(key)})", *key
        ).fetchone()
        return found

    def totals(self) -> Iterator[tuple[Key, object, object]]:
        """All of them: key, body, digest."""
        for table, columns in _TOTALS.values():
            for *key, body, digest in self.stream(f"SELECT {columns}, body, digest FROM {table}"):
                yield tuple(key), body, digest

    def put_total(self, key: Key, body: object, digest: object) -> None:
        """Write a total in the place of the earlier one."""
        table, columns = _TOTALS[len(key)]
        where = f"WHERE ({columns}) = ({_places(key)})"
        if not self.ask(f"UPDATE {table} SET body = ?, digest = ? {where}", body, digest, *key).rowcount:
            self.ask(f"INSERT INTO {table} VALUES ({_places(key)}, ?, ?)", *key, body, digest)


def _places(key: Key) -> str:
    return ", ".join("?" for _ in key)


class RunningTotals:
    """What events add up to: the head, the balances and the marks."""

    def __init__(self) -> None:
        self.rows: dict[Key, dict[str, Any]] = {_HEAD: _NO_EVENTS}

    def read(self, key: Key) -> dict[str, Any] | None:
        """The head, the balance of an account or the mark of a charge."""
        return self.rows.get(key)

    def write(self, value: dict[str, Any], key: Key) -> None:
        """Put a new one in its place."""
        self.rows[key] = value

    def add(self, event: LedgerEvent) -> None:
        """One more event at the end of the log."""
        head = self.read(_HEAD) or _NO_EVENTS
        known = self.read((event.account,))
        if event.kind in ("grant", "charge"):
            balance = (Balance() if known is None else known["balance"]).after(event.kind, event.details)
            self.write({"balance": balance, "seq": event.seq, "digest": event.digest}, (event.account,))
        if event.charge_id is not None:
            key = (event.account, event.charge_id)
            mark = {**(self.read(key) or _NO_CHARGE), event.kind: event.seq}
            mark["number"] = event.details.get("number", mark["number"])
            self.write(mark, key)
        head = {
            "seq": event.seq,
            "digest": event.digest,
            "accounts": head["accounts"] + (known is None),
            "version": max(head["version"], event.version),
        }
        self.write(head, _HEAD)


class StoredTotals(RunningTotals):
    """The totals of a store: read and checked when they are asked for, written as they change."""

    def __init__(self, rows: EventRows) -> None:
        self._stored = rows
        self.rows = {}  # nothing was read or written yet, in this transaction

    def begin(self) -> None:
        """The head of a log without events."""
        self.write(_NO_EVENTS, _HEAD)

    def read(self, key: Key) -> dict[str, Any] | None:
        if key not in self.rows:
            row = self._stored.total(key)
            if row is None:
                return None
            self.rows[key] = _checked(key, *row)
        return self.rows[key]

    def write(self, value: dict[str, Any], key: Key) -> None:
        body = json.dumps(value, sort_keys=True, default=Balance.to_dict)
        self._stored.put_total(key, body, digest_of(b"", (*key, body)))
        self.rows[key] = value

    def all(self) -> dict[Key, dict[str, Any]]:
        """Every row there is."""
        return {key: _checked(key, body, digest) for key, body, digest in self._stored.totals()}


@lru_cache(maxsize=16)  # the operations of one release read the same rows, each in a transaction of its own
def _checked(key: Key, body: object, digest: object) -> dict[str, Any]:
    """What a row says, if its digest is that of the row. Nobody changes it: what is written is a new one."""
    if not isinstance(body, str) or digest != digest_of(b"", (*key, body)):
        damaged("one of its running totals was altered")
    value: dict[str, Any] = json.loads(body)
    if "balance" in value:
        value["balance"] = Balance.from_dict(value["balance"])
    return value


def _event(row: Row, before: bytes) -> LedgerEvent:
    """The event of a row, if its digest is that of the row and of the digest before."""
    *fields, number, body, digest = row
    fields.append(body)
    if any(isinstance(field, bytes) for field in fields) or digest != digest_of(before, tuple(fields)):
        damaged(f"event {fields[0]} was altered, or one before it is missing")
    seq, version, at, account, kind, charge_id, _ = fields
    _check_version(version)
    details = json.loads(body)
    if number != details.get("number", 0):
        damaged(f"event {seq} was altered")
    return LedgerEvent(seq, version, at, account, kind, charge_id, details, digest.hex())


def _check_version(version: object) -> None:
    if version not in _READABLE:
        raise LedgerError(
            f"the ledger has events of version {version}; this program reads versions up to {MOVED_VERSION}. Use the "
            "version of discreet that wrote it"
        )


class LogReader:
    """The log as one transaction sees it. What is asked for is checked; what is not asked for is not read."""

    def __init__(self, rows: EventRows) -> None:
        self._rows = rows
        self._totals = StoredTotals(rows)
        self._head = self._read_head()
        last = int(rows.value("SELECT coalesce(max(seq), 0) FROM events"))
        if last != self._head["seq"]:
            damaged("its head and its events disagree")
        _check_version(self._head["version"])
        if last and self._at(last).digest != self._head["digest"]:
            damaged("its head and its last event disagree")

    @property
    def end(self) -> tuple[int, str]:
        """The number and the digest of the last event; 0 and "" before the first."""
        return self._head["seq"], self._head["digest"]

    def has(self, seq: int, digest: str) -> bool:
        """Whether this is one of its events."""
        stored = self._rows.value("SELECT digest FROM events WHERE seq = ?", seq)
        return isinstance(stored, bytes) and stored.hex() == digest

    @property
    def identity(self) -> str:
        """The digest of the first event, on which all others rest: copies of a ledger have it, other ledgers do not."""
        return self._at(1).digest

    def balance(self, account: str) -> Balance | None:
        """What the account's grants and charges add up to; None if it has none."""
        stored = self._totals.read((account,))
        turns = f"SELECT max(seq) FROM {self._rows.by_turn} WHERE account = ? AND kind IN ('grant', 'charge')"
        last: int | None = self._rows.value(turns, account)
        if (None if stored is None else stored["seq"]) != last:
            damaged("a balance and the events of its account disagree")
        if stored is None or last is None:
            return None
        event = self._at(last)
        if event.account != account or event.kind not in ("grant", "charge") or event.digest != stored["digest"]:
            damaged("a balance and the last event of its account disagree")
        balance: Balance = stored["balance"]
        return balance

    def accounts(self) -> list[str]:
        """The names of all accounts, sorted."""
        accounts = sorted(name for (name,) in self._rows.ask("SELECT account FROM balances") if (name,) != _HEAD)
        if len(accounts) != self._head["accounts"]:
            damaged("the balance of an account is missing")
        return accounts

    def charge(self, account: str, charge_id: str) -> ChargeEvents:
        """The events of a charge."""
        mark = self._totals.read((account, charge_id)) or _NO_CHARGE
        found = {kind: self._rows.find(account, charge_id, kind, None) for kind in ("charge", "release", "step")}
        if found != {kind: (mark[kind], mark["number"] if kind == "step" else 0) for kind in found}:
            damaged("a charge and the events that belong to it disagree")
        return ChargeEvents(*(self._belonging(seq, account, charge_id, kind) for kind, (seq, _) in found.items()))

    def step(self, account: str, charge_id: str, number: int) -> LedgerEvent | None:
        """One step of a charge."""
        last = self.charge(account, charge_id).step
        if last is None or number > last.details["number"]:
            return None
        seq, _ = self._rows.find(account, charge_id, "step", number)
        event = self._belonging(seq, account, charge_id, "step")
        if event is None or event.details["number"] != number:
            damaged(f"step {number} of a charge is missing")
        return event

    def latest_charges(self, account: str, most: int) -> tuple[str, ...]:
        """The ids of the latest charges of an account, oldest first."""
        query = (
            f"SELECT charge_id FROM {self._rows.by_turn} WHERE account = ? AND kind IN ('grant', 'charge') "
            "AND kind = 'charge' ORDER BY seq DESC LIMIT ?"
        )
        return tuple(charge_id for (charge_id,) in self._rows.ask(query, account, most))[::-1]

    def payload(self, event: LedgerEvent) -> bytes:
        """The bytes stored with a release or a step, checked against their digest."""
        stored = self._rows.value("SELECT payload FROM events WHERE seq = ?", event.seq)
        if not isinstance(stored, bytes) or hashlib.sha256(stored).hexdigest() != event.details["sha256"]:
            damaged(f"what event {event.seq} stored was altered")
        return stored

    def events(self) -> list[LedgerEvent]:
        """All events in order, their chain checked from the first to the last."""
        events: list[LedgerEvent] = []
        before = b""
        for row in self._rows.stream(f"SELECT {_COLUMNS} FROM events ORDER BY seq"):
            if row[0] != len(events) + 1:
                damaged(f"event {len(events) + 1} is missing")
            events.append(_event(row, before))
            before = row[-1]
        # A damaged page can hide rows that the index still has.
        indexed = self._rows.value(f"SELECT count(*) FROM {self._rows.by_charge} WHERE charge_id IS NOT NULL")
        if indexed != sum(event.charge_id is not None for event in events):
            damaged("its events and their index disagree")
        if (len(events), before.hex()) != (self._head["seq"], self._head["digest"]):
            damaged("its head and its events disagree")
        return events

    def verify(self) -> int:
        """Read and check everything: pages, chain, stored releases, and that all totals are those of the events."""
        self._rows.check_pages()
        events, totals = self.events(), RunningTotals()
        for event in events:
            if event.kind in ("release", "step"):
                self.payload(event)
            totals.add(event)
        if totals.rows != self._totals.all():
            damaged("its running totals are not those of its events")
        return len(events)

    def _read_head(self) -> dict[str, Any]:
        head = self._totals.read(_HEAD)
        if head is None:
            damaged("its head is missing")
        return head

    def _at(self, seq: int) -> LedgerEvent:
        row, before = self._rows.event(seq)
        if row is None or (before is None) != (seq == 1) or not isinstance(before, (bytes, type(None))):
            damaged(f"event {seq} or the one before it is missing")
        event = _event(row, before or b"")
        if event.seq != seq:
            damaged(f"event {seq} was altered")
        return event

    def _belonging(self, seq: int | None, account: str, charge_id: str, kind: str) -> LedgerEvent | None:
        if seq is None:
            return None
        event = self._at(seq)
        if (event.account, event.charge_id, event.kind) != (account, charge_id, kind):
            damaged("its events and their index disagree")
        return event


class LogWriter(LogReader):
    """The log inside one write transaction."""

    def append(
        self,
        account: str,
        kind: str,
        charge_id: str | None,
        details: dict[str, Any],
        payload: bytes | None = None,
        version: int | None = None,
        at: str | None = None,
    ) -> None:
        """Add one event, of now unless it was made `at` another time; it is durable when the transaction ends."""
        if payload is not None:
            details = {**details, "sha256": hashlib.sha256(payload).hexdigest()}
        at = at or utc_now().isoformat(timespec="milliseconds")
        body = json.dumps(details, sort_keys=True)
        fields = (self._head["seq"] + 1, version or EVENT_VERSION, at, account, kind, charge_id)
        digest = digest_of(bytes.fromhex(self._head["digest"]), (*fields, body))
        self._rows.add((*fields, details.get("number", 0), body, digest), payload)
        self._totals.add(LedgerEvent(*fields, json.loads(body), digest.hex()))
        self._head = self._read_head()

    def copy(self, other: LogReader) -> None:
        """Add every row of another log to this one, which is empty, as it is. Whether it is whole, `verify` tells."""
        for row, payload in other._rows.copied():
            self._rows.add(row, payload)
        for total in other._rows.totals():
            self._rows.put_total(*total)
