"""Releases of people: prepared before anything is read, then charged, drawn, stored and returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.central.paying import check_noise
from discreet.central.people import PeopleRelease
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, User
from discreet.privacy.ledger import Account
from discreet.releases.paying import Bill, check_payer, pay_for_release
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.summaries.people import People

__all__ = ["prepare_people", "release_people"]

COUNTS = ("users", "rows")


def prepare_people(
    k: int,
    budget: Budget,
    *,
    max_items: int | None,
    count: str,
    ledger: Account | None,
    charge_id: str | None,
    source: RandomSource | None = None,
    lists: bool = False,
) -> PeopleRelease:
    """The mechanism, checked before anything is read or charged."""
    if count not in COUNTS:
        raise ParameterError(f"count must be 'users' or 'rows', not {count!r}")
    if budget.delta == 0.0:
        raise ParameterError(
            f"items of people are found by what passes a cut, which takes a delta: got {budget}. Give a delta, such as "
            "1e-6, or a known universe of items (dc.central.Universe), which needs none"
        )
    check_payer(ledger, charge_id, source)
    mechanism = PeopleRelease(budget, k, User(max_items), rows=count == "rows", lists=lists)
    check_noise(mechanism)
    return mechanism


def release_people(
    people: People,
    mechanism: PeopleRelease,
    *,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """Charge, draw and return."""
    mechanism.check(people)
    described = f"{mechanism.name}, {'rows' if mechanism.rows else 'people'}, k={mechanism.k}"
    bill = Bill(mechanism.budget, described, mechanism.unit, {"request": request})
    return pay_for_release(ledger, charge_id, bill, lambda: mechanism(people, source))
