"""top_k for people: a table goes in, what its people have comes out, with all rows of a person hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.api.releasing import asked_of_top
from discreet.central.prepared import prepare_people
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.events.assembly import Events
    from discreet.privacy.ledger import Account
    from discreet.summaries.people import ValueRange

__all__ = ["asked_of_people", "range_of_values", "refuse_for_people", "top_k_of_people"]


def refuse_for_people(**options: object) -> None:
    """Refuse what only other mechanisms take."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"{name} is not for people: they are protected without it")


def top_k_of_people(
    table: Events,
    k: int,
    budget: Budget,
    *,
    column: str | None,
    user: str | None,
    max_items: int | None = None,
    count: str = "users",
    values: str | None = None,
    value_range: tuple[float, float] | None = None,
    nulls: str = "error",
    memory: str | None = None,
    workers: int | None = None,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
    lists: bool = False,
    columns: Mapping[str, Any] | None = None,
    time: str | None = None,
    query: str | None = None,
    question: Mapping[str, object] | None = None,
) -> Release:
    """What people of a table have; see `top_k`. Of `lists` nothing says whose they are: each is a person.

    `query` is what chose the rows, for what the release says of itself.
    """
    within = range_of_values(values, value_range)
    prepared = prepare_people(
        k, budget, max_items=max_items, count=count, values=within, lists=lists, ledger=ledger, charge_id=charge_id,
        source=source, question=question,
    )  # fmt: skip
    from discreet.engines.exact_people import people_of

    found = table.rows(column, user=user, value=values, nulls=nulls, lists=lists)
    with people_of(found, rows=count == "rows", value_range=within, memory=memory, threads=workers) as people:
        if lists:  # as a charge id stands for them
            column, user = "item", "person" if "item" in found.tagged else None
        asked = asked_of_top(k, nulls, request, column=column, user=user, values=values)
        told = {"item": column, "user": user, "value": values} if columns is None else columns
        said = asked_of_people(k, told, nulls, max_items, count, within)
        return prepared.release(people, {"request": asked}, **said, query=query, time=time or prepared.time)


def asked_of_people(
    k: int,
    columns: Mapping[str, Any] | None,
    nulls: str,
    max_items: int | None,
    count: str,
    within: ValueRange | None,
) -> dict[str, Any]:
    """What a release of people says of the question, see `Asked`."""
    ends = None if within is None else [within.low, within.high]
    counted = "sums" if within is not None else count
    return {
        "k": k, "columns": columns, "nulls": nulls, "max_items": max_items, "count": counted, "value_range": ends
    }  # fmt: skip


def range_of_values(values: str | None, value_range: Sequence[float] | None) -> ValueRange | None:
    """The public range of the values, which a sum needs; None without values."""
    if (values is None) != (value_range is None):
        raise ParameterError("values to sum need value_range=(LOW, HIGH), a public range, and a range needs values")
    if value_range is None:
        return None
    if isinstance(value_range, str) or not isinstance(value_range, Sequence) or len(value_range) != 2:
        raise ParameterError("value_range is two numbers, LOW and HIGH")
    from discreet.summaries.people import ValueRange

    return ValueRange(*value_range)
