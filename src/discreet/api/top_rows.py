"""top_k: a column goes in, its most frequent items come out, privately."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from discreet.api.choosing import empty_summary, prepare
from discreet.api.releasing import asked_of_summary, asked_of_top
from discreet.api.top_people import refuse_for_people, top_k_of_people
from discreet.api.user_lists import items_of_users
from discreet.central import Mechanism
from discreet.errors import DataError, ParameterError
from discreet.events.items import bad_items_rule, batches_of, one_column, says_lists, skip_nulls, table_of_lists
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.releases.asked import now
from discreet.releases.release import Release
from discreet.summaries import ShardedMisraGries, UserMisraGries

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

__all__ = ["top_k"]


def top_k(
    data: Any,
    k: int,
    budget: Budget,
    *,
    column: str | None = None,
    user: str | None = None,
    max_items: int | None = None,
    count: str = "users",
    values: str | None = None,
    value_range: tuple[float, float] | None = None,
    memory: str | None = None,
    unit: Unit | None = None,
    capacity: int | None = None,
    mechanism: str | Mechanism | type[Mechanism] = "auto",
    nulls: str = "error",
    bad_items: str = "skip",
    ledger: Account | None = None,
    charge_id: str | None = None,
    total_share: float | None = None,
    stream_length: int | None = None,
    grouped: bool | None = None,
    workers: int | None = None,
    columns: Mapping[str, Any] | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """The most frequent items of a column, privately: at most k of them, largest noisy count first.

        top_k(table, 100, budget, column="url", user="visitor")     # hides people, with all of their rows
        top_k(table, 100, budget, column="shop", user="customer", values="price", value_range=(0, 500))    # sums
        top_k(column, 100, budget)                                  # hides a row

    With `user` the whole of a person is hidden, whatever they did, and nobody has to say how many items that are
    (`PeopleRelease`: two passes over exact counts). A count is then of people, and `left_out` says how much of
    it bounding a person's part left out.

    The contract: every item well above the threshold is listed with high probability; there may be fewer than k; an
    item that did not occur is never listed. `plan` says beforehand how frequent an item must be.

    Summary, capacity and mechanism are chosen from k, the budget, the unit and the declared length, never from the
    data. A list column (one row a user, its items in the list) is counted as `user` counts a table with
    `unit=User()`, and takes `max_items`, `count` and `memory` then. With `unit=User(m)` it is summarised in one pass
    and bounded memory, for more noise: an item counts once for a user, and of a user with more than m different items
    a uniform random sample of m counts, by `UserMisraGries`, or for small m by `MisraGries` with group privacy,
    whichever publishes rarer items by `plan`.
    A flat column under `User(m)` has group privacy: the caller sees to it that no user has more than m rows.

    Args:
        data: What `MisraGries.update` takes (an Arrow, NumPy, pandas or polars column, or an iterable of int, str or
            bytes), a list column or an iterable of lists, a table of one column, a record batch reader, or an
            iterable of such columns or record batches: they are read one at a time and once.
        k: How many items to list at most.
        budget: What the release may spend.
        column: Of a table: the column of the items.
        user: Of a table: the column that says whose row it is. It protects people.
        max_items: With `user`: a person with at most so many items is counted in full. By default this is chosen
            privately.
        count: With `user`: "users" who have an item, or "rows" with it (all rows of a person are hidden either way).
        values: With `user`: the column of numbers to sum, instead of counting people. Items are found by how many
            people have them, and listed by their sums.
        value_range: With `values`: (LOW, HIGH), public, 0 <= LOW < HIGH. A value counts as at least LOW and at most
            HIGH.
        memory: With `user`: a size such as "2GB"; what does not fit goes to a private folder on disk.
        unit: Whose presence is hidden; `Event()` by default.
        capacity: The number of counters; by default as `plan` says.
        mechanism: As for `release`.
        nulls: "error" refuses nulls, "skip" leaves them out.
        bad_items: "skip", the default, leaves out rows that cannot be items (too long, not Unicode, other objects), so
            that no single row can prevent the release; "error" refuses them, outside the guarantee
            (docs/privacy/errors.md).
        ledger: The account that pays. It is charged after the column was read and before noise is drawn.
        charge_id: As for `release`.
        total_share: As for `release`; `everything_else` is then the rest beside the listed items.
        stream_length: A public number, at least as many as there are events (for lists: items in all lists). The
            capacity is chosen from it, and some mechanisms have finite upper bounds with it. It must not be a count
            of the data. See docs/privacy/units.md.
        grouped: Whether each row is the list of one user's items. By default the type of a typed column says it, and
            an iterable has lists exactly under `User(m)`. (What an iterable yields is not asked: an empty stream must
            not be treated differently.)
        workers: How many threads count; one by default. Each has the items that a keyed hash gives it and `capacity`
            counters for them, and is released with the whole budget, since one event concerns one of them (parallel
            composition, docs/privacy/shards.md): as private as one thread, as accurate or better, with more memory.
            For the offset release, under `Event()` and `User(m)`. Best with an Arrow column or batches.
        columns: What the release says of where the items are from, {"item": NAME}, when `column` does not.
        request: As for `release`.
        source: For tests and audits only.
    """
    k = whole_number("k", k)
    as_budget(budget)
    skip_nulls(nulls)
    bad_items_rule(bad_items)
    strict = None if bad_items == "skip" else bad_items
    if user is not None:
        refuse_for_people(
            unit=unit, capacity=capacity, total_share=total_share, stream_length=stream_length, grouped=grouped,
            bad_items=strict,
        )  # fmt: skip
        if column is None or mechanism != "auto":
            raise ParameterError('user protects people by mechanism="auto", and needs the column of the items')
        return top_k_of_people(
            data, k, budget, column=column, user=user, max_items=max_items, count=count, values=values,
            value_range=value_range, nulls=nulls, memory=memory, workers=workers,
            ledger=ledger, charge_id=charge_id, request=request, source=source,
        )  # fmt: skip
    for_people = any(option is not None for option in (max_items, memory)) or count != "users"
    if values is not None or value_range is not None or (for_people and (unit != User() or mechanism != "auto")):
        raise ParameterError(
            "max_items, count, values and memory are for people: give user, the column that says whose row it is (for "
            "lists, one row a person: unit=dc.User(), and no values)"
        )
    told = {"item": column, **(columns or {})}
    began = now()  # a table may be read when its column is taken
    if column is not None:
        data = column_of(data, column)
    if unit is None:
        unit = mechanism.unit if isinstance(mechanism, Mechanism) else Event()
    if stream_length is not None:
        stream_length = whole_number("stream_length", stream_length)
    nested = says_lists(data)
    if grouped is None:
        grouped = isinstance(unit, User) if nested is None else nested
    if not grouped and isinstance(unit, User) and unit.max_items is None:
        raise ParameterError(
            "single items do not say whose they are: give a table with column= and user=, or the list of every "
            "person's items; with dc.User(max_items) you vouch that nobody has more rows than that"
        )
    if grouped and isinstance(unit, User) and unit.max_items is None and mechanism == "auto":
        refuse_for_people(capacity=capacity, total_share=total_share, stream_length=stream_length, bad_items=strict)
        table, persons = table_of_lists(one_column(batches_of(data, grouped)), nulls)
        return top_k_of_people(
            table, k, budget, column="item", user=persons, max_items=max_items, count=count, nulls=nulls, memory=memory,
            workers=workers, ledger=ledger, charge_id=charge_id,
            request=asked_of_top(k, nulls, request, column=column), source=source, lists=True, columns=told,
            time=began,
        )  # fmt: skip
    summary = empty_summary(grouped, k, budget, unit, capacity, mechanism, stream_length, workers)
    # An hour of reading must not end in a parameter that could have been refused before.
    prepared = prepare(
        summary, budget, mechanism, unit, total_share, stream_length,
        ledger=ledger, charge_id=charge_id, source=source, needs_no_length=True,
    )  # fmt: skip
    batches = batches_of(data, grouped)
    if grouped and not isinstance(summary, UserMisraGries):
        assert isinstance(unit, User)
        batches = _flat(batches, unit.limit, nulls)
    if isinstance(summary, ShardedMisraGries):
        summary.update_batches(batches, nulls=nulls, bad_items=bad_items)
    else:
        for batch in batches:
            summary.update(batch, nulls=nulls, bad_items=bad_items)
            del batch  # before the next one is read
    asked = asked_of_top(
        k, nulls, request, column=column, grouped=grouped, stream_length=stream_length, bad_items=strict
    )
    # Nobody else has the summary, so it is not copied.
    request_of_all = asked_of_summary(summary, prepared.stream_length, asked)
    return prepared.release(
        summary, request_of_all, time=began, k=k, columns=told, nulls=nulls, bad_items=bad_items, workers=workers
    ).head(k)


def column_of(table: Any, name: str) -> Any:
    """One column of a table, or of the batches of a reader."""
    import pyarrow as pa

    from discreet.engines.tables import as_arrow, names_of_objects

    if names_of_objects(table).count(name) == 1:
        return table[name]  # not as a table: what Arrow makes of objects depends on each of them
    data = as_arrow(table)
    if data.schema.names.count(name) != 1:
        names = ", ".join(map(repr, data.schema.names))
        raise DataError(f"the table has not one column {name!r}; its columns are {names}")
    if isinstance(data, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(
            pa.schema([data.schema.field(name)]), (batch.select([name]) for batch in data)
        )
    return data.column(name)


def _flat(batches: Iterator[Any], max_items: int, nulls: str) -> Iterator[Any]:
    """The items of users' lists, at most so many of each."""
    for batch in batches:
        yield from items_of_users(batch, max_items, nulls, system_source())
