"""The rows of a ledger inside one transaction, in SQL that every store understands.

Rows of `events` are only ever added. The running totals are in `balances` (and the head, under the empty name) and
`marks`. Nothing is checked here but the store itself: what the rows mean is `event_log`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Key = tuple[str, ...]
"""Of a total: the name of an account, or that and a charge's id."""
Row = tuple[Any, ...]
"""Of an event: (seq, version, at, account, kind, charge_id, number, body, digest)."""

_COLUMNS = "seq, version, at, account, kind, charge_id, number, body, digest"
_TOTALS = {1: ("balances", "account"), 2: ("marks", "account, charge_id")}


class EventRows:
    """The tables as one transaction sees them. A store says how it is asked, and how it checks its own files."""

    by_charge = "events"  # where events are looked up by their charge: in the index, not in the table
    by_turn = "events"  # grants and charges of an account

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def ask(self, query: str, *values: object) -> Any:
        """A cursor with the answer."""
        return self._connection.execute(query, values)

    def stream(self, query: str) -> Iterable[Row]:
        """The rows of a long answer, a few at a time."""
        rows: Iterable[Row] = self.ask(query)
        return rows

    def check_pages(self) -> None:
        """Raise LedgerError if the store finds its own files inconsistent."""

    # ---- events ------------------------------------------------------------------------------------------------------

    def last(self) -> int:
        """The number of the last event; 0 if there is none."""
        return int(self._value("SELECT coalesce(max(seq), 0) FROM events"))

    def event(self, seq: int) -> tuple[Row | None, object]:
        """One event, and the digest of the one before; None for what is not there."""
        before = "(SELECT digest FROM events AS before WHERE before.seq = events.seq - 1)"
        row = self.ask(f"SELECT {_COLUMNS}, {before} FROM events WHERE seq = ?", seq).fetchone()
        return (None, None) if row is None else (row[:-1], row[-1])

    def events(self) -> Iterator[Row]:
        """All events by number."""
        yield from self.stream(f"SELECT {_COLUMNS} FROM events ORDER BY seq")

    def copied(self) -> Iterator[tuple[Row, bytes | None]]:
        """The same, each with what it stores."""
        for *row, payload in self.stream(f"SELECT {_COLUMNS}, payload FROM events ORDER BY seq"):
            yield tuple(row), payload

    def indexed(self) -> int:
        """How many events of charges the index knows: a damaged page can hide rows that it still has."""
        return int(self._value(f"SELECT count(*) FROM {self.by_charge} WHERE charge_id IS NOT NULL"))

    def digest(self, seq: int) -> object:
        """The digest of an event; None if it is not there."""
        return self._value("SELECT digest FROM events WHERE seq = ?", seq)

    def payload(self, seq: int) -> object:
        """What an event stored; None if there is nothing."""
        return self._value("SELECT payload FROM events WHERE seq = ?", seq)

    def find(self, account: str, charge_id: str, kind: str, number: int | None) -> tuple[int | None, int]:
        """By the index: where the event of that kind is (the latest step, or the one asked for), and its number."""
        query = (
            f"SELECT seq, number FROM {self.by_charge} WHERE account = ? AND charge_id = ? AND kind = ? "
            f"{'' if number is None else 'AND number = ?'} ORDER BY number DESC LIMIT 1"
        )
        key = (account, charge_id, kind) if number is None else (account, charge_id, kind, number)
        seq, its_number = self.ask(query, *key).fetchone() or (None, 0)
        return seq, its_number

    def last_turn(self, account: str) -> int | None:
        """By the index: where the last grant or charge of an account is."""
        query = f"SELECT max(seq) FROM {self.by_turn} WHERE account = ? AND kind IN ('grant', 'charge')"
        seq: int | None = self._value(query, account)
        return seq

    def latest_charges(self, account: str, most: int) -> list[str]:
        """The ids of the latest charges of an account, latest first."""
        query = (
            f"SELECT charge_id FROM {self.by_turn} WHERE account = ? AND kind IN ('grant', 'charge') "
            "AND kind = 'charge' ORDER BY seq DESC LIMIT ?"
        )
        return [charge_id for (charge_id,) in self.ask(query, account, most)]

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

    def accounts(self) -> list[str]:
        """The names under which balances are kept, the head's among them."""
        return [name for (name,) in self.ask("SELECT account FROM balances")]

    def put_total(self, key: Key, body: object, digest: object) -> None:
        """Write a total in the place of the earlier one."""
        table, columns = _TOTALS[len(key)]
        where = f"WHERE ({columns}) = ({_places(key)})"
        if not self.ask(f"UPDATE {table} SET body = ?, digest = ? {where}", body, digest, *key).rowcount:
            self.ask(f"INSERT INTO {table} VALUES ({_places(key)}, ?, ?)", *key, body, digest)

    def _value(self, query: str, *values: object) -> Any:
        row = self.ask(query, *values).fetchone()
        return None if row is None else row[0]


def _places(key: Key) -> str:
    return ", ".join("?" for _ in key)
