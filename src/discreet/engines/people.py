"""People counted exactly: files and tables of any order, in memory while they fit, else out of core by DuckDB."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.engines.numbers import Columns, NumberedRows, Numbers, numbered
from discreet.engines.private_folder import remove_left_over
from discreet.engines.threads import available_workers
from discreet.errors import DataError, ParameterError
from discreet.events.files import OF_KINDS
from discreet.events.items import read, without_list_views
from discreet.events.tables import TAGGED, as_arrow, chosen
from discreet.events.tags import with_kinds
from discreet.summaries.memory import Memory
from discreet.summaries.people import LENGTH, MOST_ROWS, MOST_STEPS, Counts, People, ValueRange

__all__ = [
    "LEAST_MEMORY",
    "MemoryPeople",
    "OpenPeople",
    "TableColumns",
    "batches_of_arrow",
    "columns_of_batches",
    "columns_of_table",
    "of_lists",
    "people_of",
    "people_of_table",
]

_ROWS_AT_ONCE = 1 << 16
LEAST_MEMORY = 400 * 10**6
"""Below, the libraries and DuckDB alone take more than the limit."""


class OpenPeople(People):
    """People that take memory or disk until they are closed: use them in a `with` statement."""

    def __enter__(self) -> OpenPeople:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything, on disk too."""


class MemoryPeople(OpenPeople):
    """People and their items in memory, sorted once. NOT private.

    Rows may come in any order; what is returned depends neither on it nor on the number of threads.
    """

    def __init__(
        self, rows: deque[NumberedRows], items: Numbers, entry: _native.Pairs.Entry, most: int, threads: int
    ) -> None:
        self._items = items
        self._pairs = _native.Pairs(entry, LENGTH, most, threads)
        while rows:
            users, numbers, values = rows.popleft()
            self._pairs.add(users, numbers, values)
        self._pairs.group()
        self._hashes = items.hashes()
        self._places = np.zeros(0, np.int64)  # the numbers of the items that took part in discovery

    def __repr__(self) -> str:
        return "MemoryPeople() [NOT PRIVATE]"

    def discovery_weights(self, most_items: int) -> Counts:
        # Which items of a person take part depends on that person and a fresh key alone: on the items themselves, and
        # not on their numbers, which depend on everybody's rows.
        weights = np.frombuffer(self._pairs.discovery(most_items, self._hashes), np.int64)
        self._places = np.flatnonzero(weights)
        if not self._items.are_texts:  # in their own order, as DuckDB has them
            self._places = self._places[np.argsort(self._items.integers()[self._places], kind="stable")]
        return weights[self._places]

    def items(self, places: Counts) -> pa.Array:
        return self._items.values(self._places[places])

    def lengths(self, places: Counts, weights: Counts) -> tuple[npt.NDArray[np.float64], Counts]:
        squared = np.frombuffer(self._pairs.lengths(self._index(places), weights), np.float64)
        values, people = np.unique(squared, return_counts=True)
        return values, people.astype(np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        return np.frombuffer(self._pairs.scaled_sums(self._index(places), weights, longest), np.int64)

    def _index(self, places: Counts) -> npt.NDArray[np.int32]:
        """For every number of an item its index in `places`, or -1."""
        index = np.full(len(self._hashes), -1, np.int32)
        index[self._places[places]] = np.arange(len(places), dtype=np.int32)
        return index


def people_of(
    rows_of: TableColumns,
    rows: bool = False,
    value_range: ValueRange | None = None,
    nulls: str = "error",
    memory: Memory | None = None,
    threads: int | None = None,
    room: int = 0,
) -> OpenPeople:
    """People from rows that say whose they are.

    Args:
        rows_of: The rows; see `columns_of_table` and `columns_of_batches`.
        rows: Whether vectors say how often a person has an item, instead of whether.
        value_range: Vectors say what the values of a person's rows with an item add up to: what one of them counts at
            least and at most.
        nulls: "error" or "skip", for rows without a person, an item or a value.
        memory: What does not fit goes to a private folder on disk.
        threads: How many; all cores by default.
        room: How many bytes more than other items keys may have.
    """
    memory = Memory(None, LEAST_MEMORY) if memory is None else memory
    return _Counting(rows, value_range, nulls, memory, threads).people(rows_of, room)


def people_of_table(
    table: Any,
    column: str,
    user: str | None = None,
    *,
    values: str | None = None,
    nulls: str = "error",
    memory: str | None = None,
    **how: Any,
) -> OpenPeople:
    """`people_of` a table: Arrow (also a reader), pandas, polars, a DuckDB relation, or a dict of columns.

    Without `user` its `column` holds lists, one row a person.
    """
    rows_of = columns_of_table(table, column, user, values, nulls)
    return people_of(rows_of, nulls=nulls, memory=Memory(memory, LEAST_MEMORY), **how)


class TableColumns(NamedTuple):
    """The columns of people, items and values, batch by batch.

    Attributes:
        columns: Without a column of people, the number of a row is its person.
        own_people: Whether people are written with their kinds (`events.tags`).
        own_items: Whether items are.
        item_type: What the schema says of items, where one does.
    """

    columns: Iterator[Columns]
    own_people: bool = False
    own_items: bool = False
    item_type: pa.DataType | None = None


def columns_of_table(
    table: Any, column: str, user: str | None, values: str | None = None, nulls: str = "error"
) -> TableColumns:
    """The columns of a table; without `user` its items are lists, one row a person."""
    wanted = [name for name in (column, user, values) if name is not None]
    if len(set(wanted)) < len(wanted):
        raise ParameterError("the columns of the items, the people and the values must be different columns")
    data, own = chosen(as_arrow(table) if user is None else table, wanted, values=values)
    columns = (_columns(batch, column, user, values) for batch in batches_of_arrow(data))
    kind = None if column in own else data.schema.field(column).type
    return TableColumns(of_lists(columns, nulls) if user is None else columns, user in own, column in own, kind)


def columns_of_batches(
    batches: Iterator[pa.RecordBatch], nulls: str = "error", values: str | None = None
) -> TableColumns:
    """The same of batches of `events.open_stream`: with a column "user", or with lists, one row a person.

    Where rows have kinds of their own, as in JSON lines, people and items are written with them: one row of another
    kind must not stop the others.
    """
    first = next(batches, None)
    if first is None:
        return TableColumns(iter(()))
    user = "user" if "user" in first.schema.names else None
    columns: Iterator[Columns] = (_columns(batch, "item", user, values) for batch in chain([first], batches))
    if user is None:
        columns = of_lists(columns, nulls)
    of_kinds = first.schema.metadata == OF_KINDS
    if of_kinds:
        plain = columns
        columns = ((who if user is None else with_kinds(who), with_kinds(what), of) for who, what, of in plain)
    own_people = user is not None and (of_kinds or first.schema.field(user).metadata == TAGGED)
    return TableColumns(columns, own_people, of_kinds)


def batches_of_arrow(data: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches; the reader of a query or of another library may fail, with words that quote the data."""
    batches = data if isinstance(data, pa.RecordBatchReader) else iter(data.to_batches(_ROWS_AT_ONCE))
    while (batch := read(data, lambda: next(batches, None))) is not None:
        yield batch


def _columns(batch: pa.RecordBatch, column: str, user: str | None, values: str | None) -> Columns:
    owners = None if user is None else batch.column(user)
    return owners, batch.column(column), None if values is None else batch.column(values)


@dataclass(frozen=True)
class _Counting:
    rows: bool
    values: ValueRange | None
    nulls: str
    memory: Memory
    threads: int | None

    def people(self, rows_of: TableColumns, room: int = 0) -> OpenPeople:
        remove_left_over()
        users = Numbers("people", tagged=rows_of.own_people)
        items = Numbers("items", tagged=rows_of.own_items, room=room)
        coming = numbered(rows_of.columns, users, items, self.nulls, self.values)
        # A row takes 8 bytes as it came, 8 as a pair, and 16 while pairs are sorted; more with what it adds up to.
        entry = _native.Pairs.Entry
        kind, most, each = (entry.present, 1, 32) if not self.rows else (entry.times, MOST_ROWS, 40)
        if self.values is not None:
            kind, most, each = entry.sums, MOST_STEPS, 64
        taken: deque[NumberedRows] = deque()
        count = 0
        fits = self.memory.room > 0
        while fits and (rows := next(coming, None)) is not None:
            taken.append(rows)
            count += len(rows)
            fits = each * count + users.bytes + items.bytes <= self.memory.room
        if fits:
            return MemoryPeople(taken, items, kind, most, self.threads or available_workers())
        from discreet.engines.duckdb import DuckPeople

        found = DuckPeople(self.memory, self.threads, users, items, most, self.values is not None)
        try:
            found.read(taken, coming)
        except BaseException:
            found.close()
            raise
        return found


def of_lists(columns: Iterator[Columns], nulls: str) -> Iterator[Columns]:
    """Rows of people and items from columns of lists: the number of the row is the person."""
    import pyarrow.compute as pc

    before = 0
    for _, lists, _ in columns:
        lists = read(lists, lambda: without_list_views(lists))  # noqa: B023 (called at once)
        if pa.types.is_fixed_size_list(lists.type):
            lists = lists.cast(pa.large_list(lists.type.value_type))
        if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
            raise DataError("without a column of people the items must come in lists, one row a person")
        if lists.null_count:
            if nulls != "skip":
                raise DataError('the column of lists has nulls; nulls="skip" leaves those rows out')
            lists = lists.filter(lists.is_valid())  # what a null list refers to is nobody's
        owners = pc.add(pc.list_parent_indices(lists).cast(pa.int64()), before)
        yield owners, lists.flatten(), None
        before += len(lists)
