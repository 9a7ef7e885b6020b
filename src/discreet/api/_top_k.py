"""top_k: a column goes in, its most frequent items come out, privately."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from discreet.api._choose import mechanism_class, takes_length
from discreet.api._people import refuse_for_people, table_of_lists, top_k_of_people
from discreet.api._plan import published_from, sketch_shape
from discreet.api._release import prepare, release
from discreet.api._users import items_of_users
from discreet.central import (
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    Mechanism,
    OffsetRelease,
    ShardedOffsetRelease,
    UserRelease,
)
from discreet.central.paying import top_k_request
from discreet.central.sizing import choose_capacity
from discreet.engines.local import check_workers
from discreet.errors import DataError, IncompatibleSummaryError, ParameterError
from discreet.events.items import (
    arrow_chunks,
    bad_items_rule,
    is_polars_objects,
    library,
    prepare_lists,
    read,
    refuse_no_column,
    skip_nulls,
)
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.privacy.ledger import Account
from discreet.releases.release import Release
from discreet.summaries import ExactCounts, LinearSketch, MisraGries, ShardedMisraGries, Summary, UserMisraGries

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
    request: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """The most frequent items of a column, privately: at most k of them, largest noisy count first.

        top_k(table, 100, budget, column="url", user="visitor")     # hides people, with all of their rows
        top_k(column, 100, budget)                                  # hides a row

    With `user` the whole of a person is hidden, whatever they did, and nobody has to say how many items that are
    (`PeopleRelease`: two passes, exact counts by DuckDB). A count is then of people, and `left_out` says how much of
    it bounding a person's part left out.

    The contract: every item well above the threshold is listed with high probability; there may be fewer than k; an
    item that did not occur is never listed. `plan` says beforehand how frequent an item must be.

    Summary, capacity and mechanism are chosen from k, the budget, the unit and the declared length, never from the
    data. A list column (one row a user, its items in the list) needs `unit=User(m)`: an item counts once for a user,
    and of a user with more than m different items a uniform random sample of m counts. `unit=User()` needs no m, as
    `user` does not: see there. With an m it is summarised by
    `UserMisraGries`, or for small m by `MisraGries` with group privacy, whichever publishes rarer items by `plan`.
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
            data, k, budget, column=column, user=user, max_items=max_items, count=count, nulls=nulls, memory=memory,
            workers=workers, ledger=ledger, charge_id=charge_id, request=request, source=source,
        )  # fmt: skip
    if max_items is not None or memory is not None or count != "users":
        raise ParameterError(
            "max_items, count and memory are for people: give user, the column that says whose row it is"
        )
    if column is not None:
        data = column_of(data, column)
    if unit is None:
        unit = mechanism.unit if isinstance(mechanism, Mechanism) else Event()
    if stream_length is not None:
        stream_length = whole_number("stream_length", stream_length)
    nested = _nested_type(data)
    if grouped is None:
        grouped = isinstance(unit, User) if nested is None else nested
    if grouped and isinstance(unit, User) and unit.max_items is None and mechanism == "auto":
        refuse_for_people(capacity=capacity, total_share=total_share, stream_length=stream_length, bad_items=strict)
        table, persons = table_of_lists(_one_column(_batches(data, grouped)), nulls)
        return top_k_of_people(
            table, k, budget, column="item", user=persons, nulls=nulls, workers=workers, ledger=ledger,
            charge_id=charge_id, request=top_k_request(k, nulls, request, column=column), source=source, lists=True,
        )  # fmt: skip
    summary = _summary(grouped, k, budget, unit, capacity, mechanism, stream_length)
    if workers is not None or isinstance(mechanism, ShardedOffsetRelease):
        summary = _in_shards(summary, mechanism, unit, workers)
    # An hour of reading must not end in a parameter that could have been refused before.
    length = stream_length if takes_length(summary, mechanism, unit) else None
    prepare(summary, budget, mechanism, unit, ledger, charge_id, total_share, length, source)
    batches = _batches(data, grouped)
    if grouped and not isinstance(summary, UserMisraGries):
        assert isinstance(unit, User)
        batches = _flat(batches, unit.limit, nulls)
    if isinstance(summary, ShardedMisraGries):
        summary.update_batches(batches, nulls=nulls, bad_items=bad_items)
    else:
        for batch in batches:
            summary.update(batch, nulls=nulls, bad_items=bad_items)
            del batch  # before the next one is read
    histogram = release(
        summary,
        budget,
        mechanism,
        unit,
        ledger,
        charge_id=charge_id,
        total_share=total_share,
        stream_length=length,
        request=top_k_request(
            k, nulls, request, column=column, grouped=grouped, stream_length=stream_length, bad_items=strict
        ),
        source=source,
    )
    return histogram.head(k)


def column_of(table: Any, name: str) -> Any:
    """One column of a table, or of the batches of a reader."""
    import pyarrow as pa

    from discreet.engines.duckdb import as_arrow, names_of_objects

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


def _summary(
    grouped: bool,
    k: int,
    budget: Budget,
    unit: Unit,
    capacity: int | None,
    mechanism: str | Mechanism | type[Mechanism],
    stream_length: int | None,
) -> Summary:
    """The empty summary to fill, from public parameters and the column's type."""
    if grouped and not isinstance(unit, User):
        raise ParameterError(
            "a column of lists holds the items of one person in each row: unit=dc.User() protects people"
        )
    chosen = _mechanism_class(grouped, k, budget, unit, capacity, mechanism, stream_length)
    kind = chosen.accepts[0]
    if not grouped and issubclass(kind, UserMisraGries):
        raise IncompatibleSummaryError("this mechanism needs a column of lists, one for each user")
    if isinstance(mechanism, Mechanism):
        capacity = getattr(mechanism, "capacity", capacity)
    if capacity is None:
        capacity, _ = choose_capacity(k, budget, unit, stream_length, chosen)
    if issubclass(kind, UserMisraGries):
        assert isinstance(unit, User)
        return kind(capacity, unit.limit, oversized="sample")
    if isinstance(mechanism, (CountMinHeavyHitters, CountSketchHeavyHitters)) and issubclass(kind, LinearSketch):
        return kind(mechanism.width, mechanism.depth, tracked=capacity, max_key_bytes=mechanism.max_key_bytes)
    if issubclass(kind, LinearSketch):
        return kind(**sketch_shape(chosen, budget, capacity, stream_length), tracked=capacity)
    if isinstance(mechanism, ShardedOffsetRelease):
        return ShardedMisraGries(capacity, mechanism.shards)
    return kind() if issubclass(kind, ExactCounts) else kind(capacity)  # type: ignore[call-arg]


def _in_shards(
    summary: Summary, mechanism: str | Mechanism | type[Mechanism], unit: Unit, workers: int | None
) -> Summary:
    """The empty summary for several workers in place of the one for one."""
    if isinstance(mechanism, ShardedOffsetRelease):
        if workers is not None and check_workers(workers) != mechanism.shards:
            raise ParameterError(f"the mechanism was made for {mechanism.shards} shards, workers is {workers}")
        return summary
    workers = check_workers(workers)
    if workers == 1:
        return summary
    if isinstance(mechanism, Mechanism):
        raise ParameterError("workers needs the mechanism in shards: make a dc.central.ShardedOffsetRelease")
    if not isinstance(summary, MisraGries):
        instead = f'; mechanism="offset" does, with group privacy for {unit.describe()}' if mechanism == "auto" else ""
        raise ParameterError(f"{type(summary).__name__} and its release run on one worker{instead}")
    if mechanism != "auto" and mechanism_class(mechanism) is not OffsetRelease:
        raise ParameterError(
            f"workers needs the offset release, which is proved for shards; {mechanism_class(mechanism).name} is not"
        )
    return ShardedMisraGries(summary.capacity, workers)


def _mechanism_class(
    grouped: bool,
    k: int,
    budget: Budget,
    unit: Unit,
    capacity: int | None,
    mechanism: str | Mechanism | type[Mechanism],
    stream_length: int | None,
) -> type[Mechanism]:
    if isinstance(mechanism, Mechanism):
        return type(mechanism)
    if mechanism != "auto":
        return mechanism_class(mechanism)
    if not grouped:
        return OffsetRelease
    # Group privacy pays for the items of a user, the user-level sketch for its counters. Which is better?
    flat, users = (published_from(name, k, budget, unit, capacity, stream_length) for name in ("offset", "user"))
    return OffsetRelease if flat <= users else UserRelease


def _flat(batches: Iterator[Any], max_items: int, nulls: str) -> Iterator[Any]:
    """The items of users' lists, at most so many of each."""
    for batch in batches:
        yield from items_of_users(batch, max_items, nulls, system_source())


def _nested_type(data: Any) -> bool | None:
    """Whether the items come in lists, if the type says so. Nothing is read."""
    refuse_no_column(data)
    if _is_column(data):
        return read(data, lambda: _is_nested(data))
    if isinstance(data, (str, bytes, bytearray)):
        raise DataError("expected a column, got a single string; put it in a list")
    if not hasattr(data, "__iter__"):
        raise DataError(f"expected a column or an iterable, got {type(data).__name__}")
    return None


def _batches(data: Any, grouped: bool) -> Iterator[Any]:
    """The columns to update a summary with. Of lists of users, a part whose type does not say lists is one user's."""
    if _is_column(data):
        yield from _columns(data)
        return
    parts = iter(data)
    head = list(islice(parts, 1))
    if not head or not _is_column(head[0]) or (grouped and not _nested_type(head[0])):
        yield chain(head, parts)
        return
    while head:
        # One batch is held at a time.
        yield from _columns(head.pop())
        head = list(islice(parts, 1))


def _one_column(batches: Iterator[Any]) -> Any:
    """All batches together."""
    import pyarrow as pa

    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    chunks = [chunk for part in parts for chunk in arrow_chunks(prepare_lists(part))]
    return read(parts, lambda: pa.chunked_array(chunks)) if chunks else []


def _is_column(data: Any) -> bool:
    """Whether this is a whole column or table, not an item."""
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return True
    return library(data) in ("numpy", "pandas") and getattr(data, "ndim", 0) > 0


def _is_nested(data: Any) -> bool | None:
    import pyarrow as pa

    if library(data) == "pandas":
        return _is_nested_pandas(data)
    if is_polars_objects(data):
        return None
    if isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        kind = data.schema.field(_only_column(data.schema)).type
    elif isinstance(data, (pa.Array, pa.ChunkedArray)):
        kind = data.type
    elif hasattr(data, "__arrow_c_schema__"):
        kind = pa.field(data).type
    elif library(data) == "polars":
        kind = data.head(0).to_arrow().type
    else:
        return False if library(data) == "numpy" and data.dtype.kind != "O" else None
    return _is_list(kind)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_nested_pandas(data: Any) -> bool | None:
    import pandas as pd

    if data.ndim != 1:
        raise DataError("expected one column, got a data frame: pass one of its columns")
    if isinstance(data.dtype, pd.ArrowDtype):
        return _is_list(data.dtype.pyarrow_dtype)
    return None if data.dtype == object else False  # objects may be lists: the unit says whether they are


def _only_column(schema: Any) -> int:
    if len(schema) != 1:
        raise DataError(f"expected one column, got a table of {len(schema)}: pass one of its columns")
    return 0


def _columns(data: Any) -> Iterator[Any]:
    """The columns of a table, batch by batch, or the column itself."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        return _read_batches(data)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return iter([data.column(_only_column(data.schema))])
    return iter([data])


def _read_batches(reader: Any) -> Iterator[Any]:
    def following() -> Any:
        try:
            return reader.read_next_batch()
        except StopIteration:
            return None

    while (batch := read(reader, following)) is not None:
        yield batch.column(_only_column(batch.schema))
