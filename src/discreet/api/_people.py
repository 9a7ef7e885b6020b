"""top_k for people: a table goes in, what its people have comes out, with all rows of a person hidden."""

from __future__ import annotations

from typing import Any

from discreet.central.paying import top_k_request
from discreet.central.paying_people import prepare_people, release_people
from discreet.errors import DataError, ParameterError
from discreet.events.items import arrow_chunks, is_arrow, prepare_lists
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet.privacy.ledger import Account
from discreet.releases.release import Release

__all__ = ["refuse_for_people", "table_of_lists", "top_k_of_people"]


def refuse_for_people(**options: object) -> None:
    """Refuse what only other mechanisms take."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"{name} is not for people: they are protected without it")


def table_of_lists(data: Any, nulls: str) -> tuple[Any, str | None]:
    """A table with a column "item" of lists, one for each person; or of single items, and the column of the persons."""
    import pyarrow as pa

    lists = prepare_lists(data)
    if is_arrow(lists):
        chunks = list(arrow_chunks(lists))
        return pa.table(
            {"item": pa.chunked_array(chunks)} if chunks else {"item": pa.array([], pa.list_(pa.string()))}
        ), None
    persons: list[int] = []
    items: list[Any] = []
    for person, row in enumerate(lists):
        if row is None:
            if nulls != "skip":
                raise DataError('the column of lists has nulls; nulls="skip" leaves those rows out')
            continue
        before = len(items)
        items += row
        persons += [person] * (len(items) - before)
    return {"person": persons, "item": items}, "person"


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
    mechanism = prepare_people(
        k, budget, max_items=max_items, count=count, ledger=ledger, charge_id=charge_id, source=source, lists=lists
    )
    from discreet.engines.duckdb import people_of_table

    with people_of_table(
        table, column, user, rows=mechanism.rows, nulls=nulls, memory=memory, threads=workers
    ) as people:
        asked = top_k_request(k, nulls, request, column=column, user=user)
        return release_people(people, mechanism, ledger=ledger, charge_id=charge_id, request=asked, source=source)
