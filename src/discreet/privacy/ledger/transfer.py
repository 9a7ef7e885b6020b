"""Moving an account to another ledger: every event as it was, and the account that is left is closed for ever.

The account is closed in its old ledger before the new one has it: a crash in between leaves it in neither, and the same
move again brings it to its end. It is never open in both. What the events say, when they were made and what they store
stays; their numbers and digests are those of the new chain. The new ledger remembers where the account comes from, so
that states of streams go on with it.
"""

from __future__ import annotations

from typing import NoReturn

from discreet._data_class import replace
from discreet.errors import LedgerError, ParameterError
from discreet.privacy.ledger.accounts import Ledger
from discreet.privacy.ledger.event_log import MOVED_VERSION, LedgerEvent, LogReader, LogWriter


def move(account: str, source: Ledger, target: Ledger) -> int:
    """Move an account, and return how many events it has. LedgerError while a charge waits for its release."""
    if source._log.place == target._log.place:  # it would wait for its own lock
        _refuse_same()
    with target._log.writing(create=True) as there, source._log.writing() as here:
        _move(account, here, there, target._log.place)
    source.verify()
    target.verify()
    with source._log.reading() as here, target._log.reading() as there:
        left, arrived = (_events(account, log) for log in (here, there))
    if [_said(event) for event in left[:-1]] != [_said(event) for event in arrived[: len(left) - 1]]:
        raise LedgerError(
            f"account {account!r} in {target!r} differs from the one in {source!r}; charge neither of them"
        )
    return len(left) - 1


def _move(account: str, here: LogWriter, there: LogWriter, place: str) -> None:
    if there.end[0] and there.identity == here.identity:
        _refuse_same()
    balance, found = here.balance(account), there.balance(account)
    if balance is None:
        raise LedgerError(f"no account named {account!r} to move")
    limit = balance.granted
    origin = limit.origin or here.identity
    if limit.moved not in (None, place):
        raise LedgerError(f"account {account!r} was moved to {limit.moved}")
    if found is not None and (limit.moved is None or found.granted.origin != origin):
        raise LedgerError(f"the target ledger already has an account {account!r}")
    events = _events(account, here)
    if limit.moved is None:
        _check_closed(account, events)
    told = {"budget": limit.budget.to_dict(), **({} if balance.unit is None else {"unit": balance.unit})}
    if found is None:
        for event in events if limit.moved is None else events[:-1]:
            payload = here.payload(event) if event.kind in ("release", "step") else None
            there.append(account, event.kind, event.charge_id, event.details, payload, event.version, event.at)
        arrived = replace(limit, origin=origin, moved=None).to_dict()
        there.append(account, "grant", None, {**told, **arrived}, version=MOVED_VERSION)
    if limit.moved is None:
        left = replace(limit, moved=place).to_dict()
        here.append(account, "grant", None, {**told, **left}, version=MOVED_VERSION)


def _refuse_same() -> NoReturn:
    raise ParameterError("an account must move to a different ledger; this is the same one, or a copy of it")


def _check_closed(account: str, events: list[LedgerEvent]) -> None:
    """Refuse an account that somebody may be drawing a release from. A stream between two steps is not."""
    begun = [event.charge_id for event in events if event.kind == "charge" and event.details["stores_release"]]
    ended = {event.charge_id for event in events if event.kind in ("release", "step")}
    open_ids = [str(charge_id) for charge_id in begun if charge_id not in ended]
    if open_ids:
        raise LedgerError(
            f"account {account!r} has charges without a release: {', '.join(open_ids[:10])}. Finish these releases "
            "under the same charge ids, then move the account"
        )


def _events(account: str, log: LogReader) -> list[LedgerEvent]:
    return [event for event in log.events() if event.account == account]


def _said(event: LedgerEvent) -> tuple[object, ...]:
    return event.version, event.at, event.kind, event.charge_id, event.details
