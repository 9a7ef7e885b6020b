"""top_k for people: a table goes in, what its people have comes out, with all rows of a person hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.api.releasing import asked_of_top
from discreet.central.prepared import prepare_people
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

__all__ = ["refuse_for_people", "top_k_of_people"]


def refuse_for_people(**options: object) -> None:
    """Refuse what only other mechanisms take."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"{name} is not for people: they are protected without it")


def top_k_of_people(
    table: Any,
    k: int,
    budget: Budget,
    *,
    column: str,
    user: str | None,
    max_items: int | None = None,
    count: str = "users",
    nulls: str = "error",
    memory: str | None = None,
    workers: int | None = None,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
    lists: bool = False,
) -> Release:
    """What people of a table have; see `top_k`. Of `lists` nothing says whose they are: each is a person."""
    prepared = prepare_people(
        k, budget, max_items=max_items, count=count, lists=lists, ledger=ledger, charge_id=charge_id, source=source
    )
    from discreet.engines.people import people_of_table

    rows = count == "rows"
    with people_of_table(table, column, user, rows=rows, nulls=nulls, memory=memory, threads=workers) as people:
        return prepared.release(people, {"request": asked_of_top(k, nulls, request, column=column, user=user)})
