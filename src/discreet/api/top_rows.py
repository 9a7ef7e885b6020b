"""top_k: a column goes in, its most frequent items come out, privately."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.api.choosing import empty_summary, mechanism_told, prepare
from discreet.api.filtering import rows_where
from discreet.api.releasing import asked_of_summary, asked_of_top
from discreet.api.top_people import range_of_values, refuse_for_people, top_k_of_people
from discreet.central import Mechanism
from discreet.central.sizing import counters_cost_no_noise, first_capacity
from discreet.errors import ParameterError
from discreet.events.items import (
    bad_items_rule,
    skip_nulls,
)
from discreet.events.keys import names_of
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.releases.asked import now
from discreet.releases.paying import check_payer, stored_release
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.events.assembly import Events, Rows
    from discreet.events.times import Every
    from discreet.privacy.ledger import Account

__all__ = ["release_of_rows", "top_k"]

_WHOSE = (
    "single items do not say whose they are: give a table with column= and user=, or the list of every "
    "person's items; with dc.User(max_items) you vouch that nobody has more rows than that"
)


def top_k(
    data: Any,
    k: int,
    budget: Budget,
    *,
    column: str | Sequence[str] | None = None,
    user: str | None = None,
    where: str | None = None,
    by: str | Sequence[str] | None = None,
    groups: Sequence[Any] | None = None,
    every: str | None = None,
    time: str | None = None,
    zone: str | None = None,
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
        top_k(table, 100, budget, column=["country", "url"])        # items of two columns, and a column for each
        top_k(table, 10, budget, column="url", by="country")        # the top 10 of every country, in one release
        top_k(table, 10, budget, column="url", every="1d", time="ts")   # the top 10 of every day
        top_k(column, 100, budget)                                  # hides a row

    With `user` the whole of a person is hidden, whatever they did, and nobody has to say how many items that are
    (`PersonVectors`: two passes over exact counts). A count is then of people, and `left_out` says how much of
    it bounding a person's part left out.

    The contract: every item well above the threshold is listed with high probability; there may be fewer than k; an
    item that did not occur is never listed. `plan` says beforehand how frequent an item must be.

    With `by` a row counts in one group, and what is counted are pairs of a group and an item: all groups share the one
    release, and cost what it costs (docs/privacy/groups.md). The items of every group are listed, at most k of each. A
    group is listed only through items that pass, unless `groups` says which there are.

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
            iterable of such columns or record batches: they are read one at a time and once. With `column` a table:
            of Arrow (also a reader, and anything with `__arrow_c_stream__`), pandas, polars (also a lazy frame), a
            relation of DuckDB, or a dict of columns.
        k: How many items to list at most.
        budget: What the release may spend.
        column: Of a table: the column of the items, or a list of several, whose values together are an item. They
            may hold text, bytes, numbers, booleans, dates, times and decimals, and are published in their own types.
        user: Of a table: the column that says whose row it is. It protects people.
        where: Of a table: only rows of which this is true, a condition in SQL that looks at one row alone:
            "status = 404" (docs/sql.md).
        by: Of a table: the column that says the group of a row, or a list of several. Each is a column of the release.
        groups: With `by` or `every`: all groups there may be, which is public: values, or tuples where several columns
            say the group. All of them are in the release, also those without an item, and rows of other groups are
            left out.
        every: With `time`: groups are spans of time, "1h", "1d", "1w" (from Monday), "1mo", or several of them.
        time: The column of times: timestamps, dates, seconds since 1970, or ISO 8601 as text. A time without a zone is
            in UTC. Rows without a readable time are left out as `bad_items` says.
        zone: Whose calendar and clock say the span of a time, such as "Europe/Berlin"; UTC by default.
        max_items: With `user`: a person with at most so many items is counted in full. By default this is chosen
            privately.
        count: With `user`: "users" who have an item, or "rows" with it (all rows of a person are hidden either way).
        values: With `user`: the column of numbers to sum, instead of counting people. Items are found by how many
            people have them, and listed by their sums.
        value_range: With `values`: (LOW, HIGH), public, 0 <= LOW < HIGH. A value counts as at least LOW and at most
            HIGH.
        memory: A size such as "2GB". With `user`: what does not fit goes to a private folder on disk. Without: it
            decides the number of counters, in place of `capacity`, for items of 32 bytes; it must be chosen without
            looking at the data.
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
    check_payer(ledger, charge_id, source)
    from discreet.privacy.question import question_of

    of_people = user is not None or unit == User()  # the same with any memory and any number of threads
    question = question_of(
        "top", k=k, column=column, user=user, where=where, by=by, groups=groups, every=every, time=time, zone=zone,
        max_items=max_items, count=count, values=values, value_range=value_range,
        unit=None if unit is None else unit.to_dict(), capacity=capacity, mechanism=mechanism_told(mechanism),
        nulls=nulls, bad_items=bad_items, total_share=total_share, stream_length=stream_length, grouped=grouped,
        memory=None if of_people else memory, workers=None if of_people else workers, columns=columns,
        secret={"request": request},
    )  # fmt: skip
    stored = stored_release(ledger, charge_id, budget, question)
    if stored is not None:
        return stored.head(k)
    began = now()  # a table may be read when its columns are looked at
    from discreet.events.tables import events_of

    data = events_of(rows_where(data, where))
    if where is not None:
        request = json.dumps([request, where])
    names = () if column is None else names_of("column", column)
    grouping = _grouping(by, every, time, zone)
    if groups is not None and not grouping[0]:
        raise ParameterError("groups are the values of a column: say which, with by")
    if grouping[0] and not names:
        raise ParameterError("groups are made of a table: name the column of the items, with column")
    if data.makes_keys(names) or grouping[0]:
        return _top_k_of_columns(
            data, k, budget, names, by=grouping[0], every=grouping[1], groups=groups, user=user,
            max_items=max_items, count=count, values=values,
            value_range=value_range, memory=memory, unit=unit, capacity=capacity, mechanism=mechanism, nulls=nulls,
            bad_items=bad_items,
            ledger=ledger, charge_id=charge_id, total_share=total_share, stream_length=stream_length, grouped=grouped,
            workers=workers, request=request, question=question, source=source, time=began, query=where,
            columns={
                "item": list(names) if names[1:] else column, "by": list(grouping[0]) or None, "user": user,
                "value": values, **(columns or {})
            },
        )  # fmt: skip
    column = names[0] if names else None
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
            ledger=ledger, charge_id=charge_id, request=request, question=question, source=source, time=began,
            query=where,
        )  # fmt: skip
    for_people = max_items is not None or count != "users"
    if values is not None or value_range is not None or (for_people and (unit != User() or mechanism != "auto")):
        raise ParameterError(
            "max_items, count and values are for people: give user, the column that says whose row it is (for "
            "lists, one row a person: unit=dc.User(), and no values)"
        )
    told = {"item": column, **(columns or {})}
    if unit is None:
        unit = mechanism.unit if isinstance(mechanism, Mechanism) else Event()
    if stream_length is not None:
        stream_length = whole_number("stream_length", stream_length)
    nested = data.says_lists(column)
    if grouped is None:
        grouped = isinstance(unit, User) if nested is None else nested
    if not grouped and isinstance(unit, User) and unit.max_items is None:
        raise ParameterError(_WHOSE)
    if grouped and isinstance(unit, User) and unit.max_items is None and mechanism == "auto":
        refuse_for_people(capacity=capacity, total_share=total_share, stream_length=stream_length, bad_items=strict)
        return top_k_of_people(
            data, k, budget, column=column, user=None, max_items=max_items, count=count, nulls=nulls, memory=memory,
            workers=workers, ledger=ledger, charge_id=charge_id,
            request=asked_of_top(k, nulls, request, column=column), source=source, lists=True, columns=told,
            question=question, time=began, query=where,
        )  # fmt: skip
    return release_of_rows(
        data.rows(names or None, nulls=nulls, bad_rows=bad_items, lists=grouped, plain=True), k, budget, unit,
        grouped=grouped, capacity=capacity, mechanism=mechanism,
        nulls=nulls, bad_items=bad_items, ledger=ledger, charge_id=charge_id, total_share=total_share,
        stream_length=stream_length, workers=workers, memory=memory, columns=told, column=column, request=request,
        question=question, source=source, time=began, said={"query": where},
    )  # fmt: skip


def release_of_rows(
    found: Rows,
    k: int,
    budget: Budget,
    unit: Unit,
    *,
    grouped: bool,
    mechanism: str | Mechanism | type[Mechanism] = "auto",
    capacity: int | None = None,
    nulls: str = "error",
    bad_items: str = "skip",
    ledger: Account | None = None,
    charge_id: str | None = None,
    total_share: float | None = None,
    stream_length: int | None = None,
    workers: int | None = None,
    memory: str | None = None,
    columns: Mapping[str, Any] | None = None,
    column: str | None = None,
    request: str | None = None,
    question: Mapping[str, object] | None = None,
    source: RandomSource | None = None,
    time: str | None = None,
    form: Callable[[Release], Release] | None = None,
    items_in_all: int | None = None,
    said: Mapping[str, Any] | None = None,
    when_read: Callable[[], None] = lambda: None,
) -> Release:
    """`top_k` of rows of items, or `grouped` of lists: checked, read, charged, drawn.

    `form` makes the columns of the release of what stood for the items, see `Prepared.paid`; `items_in_all` is how many
    may be listed in all groups together, for which counters are provided; `said` is what else the release tells.
    `when_read` is called when all are read.
    """
    strict, began = None if bad_items == "skip" else bad_items, time or now()
    listed = items_in_all or k
    summary = empty_summary(
        grouped, listed, budget, unit, capacity, mechanism, stream_length, workers, memory, found.max_key_bytes
    )
    # An hour of reading must not end in a parameter that could have been refused before.
    prepared = prepare(
        summary, budget, mechanism, unit, total_share, stream_length,
        ledger=ledger, charge_id=charge_id, source=source, needs_no_length=True,
    )  # fmt: skip
    # Of whoever has a longer list a sample counts.
    prepared = replace(prepared, bounded=prepared.bounded or grouped, question=question)
    found.feed(summary, unit.limit if grouped and isinstance(unit, User) else None)
    when_read()
    asked = asked_of_top(
        k, nulls, request, column=column, grouped=grouped, stream_length=stream_length, bad_items=strict
    )
    written = None
    if capacity is None and memory is None and not isinstance(mechanism, Mechanism):
        kind = type(prepared.mechanism)
        written = first_capacity(k, budget, unit, stream_length) if counters_cost_no_noise(kind) else None
    # Nobody else has the summary, so it is not copied.
    request_of_all = asked_of_summary(summary, prepared.stream_length, asked, capacity=written)
    return prepared.release(
        summary, request_of_all, time=began, k=k, columns=columns, nulls=nulls, bad_items=bad_items, workers=workers,
        form=form, **(said or {}),
    ).head(k)  # fmt: skip


def _grouping(by: Any, every: Any, time: Any, zone: Any) -> tuple[tuple[str, ...], Every | None]:
    """The columns that say the group, that of times first; and the spans of time."""
    from discreet.events.times import Every

    names = () if by is None else names_of("by", by)
    if (every is None) != (time is None) or (zone is not None and every is None):
        raise ParameterError('spans of time need both: every, such as "1d", and time, the column of times')
    if every is None:
        return names, None
    return (*names_of("time", time), *names), Every(every, zone)


def _top_k_of_columns(
    table: Events,
    k: int,
    budget: Budget,
    items: Sequence[str],
    *,
    by: Sequence[str],
    every: Every | None,
    groups: Sequence[Any] | None,
    user: str | None,
    values: str | None,
    value_range: tuple[float, float] | None,
    nulls: str,
    bad_items: str,
    unit: Unit | None,
    grouped: bool | None,
    columns: Mapping[str, Any],
    request: str | None,
    **options: Any,
) -> Release:
    """Items of several columns, or of a type that no summary knows, on the way that files go."""
    from discreet.api.top_files import top_k_of_files

    if grouped:
        raise ParameterError("several columns hold one item a row: lists of items come in one column")
    if user is None and (values is not None or value_range is not None):
        raise ParameterError("values are summed for people: give user, the column that says whose row it is")
    if unit == User() and user is None:
        raise ParameterError(_WHOSE)
    range_of_values(values, value_range)
    found = table.rows(
        items or None, user=user, value=values, by=by, every=every, groups=groups, nulls=nulls, bad_rows=bad_items
    )
    assert found.keys is not None
    return top_k_of_files(
        found, k, budget, value_range=value_range, nulls=nulls, bad_items=bad_items, unit=unit, columns=columns,
        request=asked_of_top(k, nulls, request, columns=columns, **found.keys.asked), **options,
    )  # fmt: skip
