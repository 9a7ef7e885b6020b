"""top_k from files that are read batch by batch: rows, lists with one row a person, or rows that say whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, ParameterError
from discreet.privacy import Budget, User

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.privacy.ledger import Account
    from discreet.releases.release import Release

__all__ = ["top_k_of_files"]


def top_k_of_files(
    batches: Iterator[pa.RecordBatch],
    k: int,
    budget: Budget,
    *,
    users: bool = False,
    lists: bool = False,
    max_items: int | None = None,
    count: str = "users",
    value_range: tuple[float, float] | None = None,
    memory: str | None = None,
    nulls: str = "error",
    mechanism: str = "auto",
    workers: int | None = None,
    when_read: Callable[[], None] = lambda: None,
    ledger: Account | None = None,
    charge_id: str | None = None,
    columns: Mapping[str, Any] | None = None,
    request: str | None = None,
    **sketch: Any,
) -> Release:
    """The most frequent items of the batches of `events.stream.open_stream`; see `top_k`.

    Args:
        batches: With a column "item", and with `users` a column "user".
        k: How many items to list at most.
        budget: What the release may spend.
        users: Whether rows say whose they are: people are hidden, with all of their rows.
        lists: Whether the items are lists, one row a person: people are hidden as with `users`.
        max_items: With `users` or `lists` as in `top_k`. Without: the items are lists all the same, as
            `User(max_items)`.
        count: As in `top_k`.
        value_range: With `users`: sum the column "value" within these bounds.
        memory: As in `top_k`.
        nulls: As the batches were read.
        mechanism: As in `top_k`; one of your own for `users` takes a sample of `max_items` items of each.
        workers: As in `top_k`.
        when_read: Called when all is read and nothing is charged yet.
        ledger: As in `top_k`.
        charge_id: As in `top_k`.
        columns: The names that the columns have in the files, for what the release says of itself.
        request: As in `top_k`.
        sketch: Further arguments of `top_k`, for rows.
    """
    if lists or (users and mechanism == "auto"):
        from discreet.api.top_people import asked_of_people
        from discreet.central.prepared import prepare_people
        from discreet.engines.people import Memory, people_of_batches
        from discreet.summaries.people import ValueRange

        Memory(memory)  # refused before anything is read
        within = None if value_range is None else ValueRange(*value_range)
        prepared = prepare_people(
            k, budget, max_items=max_items, count=count, values=within, lists=lists, ledger=ledger, charge_id=charge_id
        )
        rows = count == "rows"
        found = people_of_batches(batches, rows=rows, value_range=within, nulls=nulls, memory=memory, threads=workers)
        try:
            when_read()
            asked = asked_of_people(k, columns, nulls, max_items, count, within)
            return prepared.release(found, {"request": request}, **asked)
        finally:
            found.close()
    from discreet.api.top_rows import top_k

    if users and max_items is None:
        raise ParameterError("users with a mechanism of your own need max_items")

    def read() -> Iterator[Any]:
        yield from _columns(batches, users, max_items)
        when_read()

    return top_k(
        read(),
        k,
        budget,
        unit=None if max_items is None else User(max_items),
        grouped=max_items is not None,
        mechanism=mechanism,
        workers=workers,
        ledger=ledger,
        charge_id=charge_id,
        columns=columns,
        request=request,
        **sketch,
    )


def _columns(batches: Iterator[pa.RecordBatch], users: bool, max_items: int | None) -> Iterator[Any]:
    """The columns to count: items, or one list of items a person."""
    import pyarrow as pa

    sets = None
    if users and max_items is not None:
        from discreet.events.users import UserSets

        sets = UserSets(max_items)
    for batch in batches:
        items = batch.column("item")
        lists = pa.types.is_list(items.type) or pa.types.is_large_list(items.type)
        if lists and (users or max_items is None):
            raise DataError("the column holds lists, one row a person: give --unit person, and no --user-column")
        if not lists and max_items is not None and not users:
            raise DataError("--max-items-per-user needs --user-column, or a column of lists with one row a user")
        if sets is None:
            yield items
        else:
            sets.add(batch.column("user"), items)
    if sets is not None:
        yield from sets.lists()
