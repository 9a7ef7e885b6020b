"""What executors run for people: crowds of them, each with all of their rows, looked at by the kernel of one machine.

Nothing here is random: a crowd, and what a look at it gives, are functions of the rows and of a key that the driver
drew. Sums over crowds do not depend on where one ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import _native
from discreet._data_class import dataclass
from discreet.engines._spark_tasks import Batches, Reading, read_items, reporting, row_of, written
from discreet.engines.numbers import Numbers, numbered
from discreet.errors import DataError
from discreet.events.assembly import Rows
from discreet.summaries.people import LENGTH, Counts, ValueRange

TOO_LONG = (
    "the different items of one person take 2 GiB or more, which is more than Spark moves as one: leave items out that "
    "are this person's own, or write them shorter"
)
CROWD = "users binary, items binary, times binary, names binary, problem string"
_BYTES = ("users", "items", "times", "names")
_CROWD = pa.schema([*((name, pa.binary()) for name in _BYTES), ("problem", pa.string())])
_ROWS = 1 << 19  # of a crowd, about
_MOST_BYTES = (1 << 31) - (1 << 20)  # of a row of a frame, which Spark and Arrow end at 2^31

Numbered = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class HoldCrowds:
    """Rows become crowds: numbers for people and items, and how often, or for how much, each person has an item.

    A person with very many rows takes memory for their different items only.

    Attributes:
        reading: How rows are read.
        value_range: What values count, where they are added up.
        most: What a person has of an item at most; 1 where it only counts whether they have it.
    """

    reading: Reading
    value_range: ValueRange | None
    most: int

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            for rows in self.reading.parts(batches):
                crowd = _Crowd(rows, self.value_range)
                if crowd.size:
                    yield crowd.held(self.most > 1)

        return reporting(_CROWD, batches, work)


class _Crowd:
    def __init__(self, rows: Rows, value_range: ValueRange | None) -> None:
        people = Numbers("people", tagged="user" in rows.tagged)
        self._items = Numbers("items", tagged="item" in rows.tagged, max_bytes=rows.max_key_bytes)
        self._parts: list[tuple[Counts, Counts]] = []
        self._limit = 2 * _ROWS  # where equal pairs become one
        self.size = 0
        for users, items, values in numbered(rows.owned(), people, self._items, value_range):
            self._add(np.asarray(users, np.int64), np.asarray(items, np.int64), values)

    def _add(self, users: Counts, items: Counts, values: Counts | None) -> None:
        good = (users >= 0) & (items >= 0)
        pairs = ((users << 32) | items)[good]
        self._parts.append((pairs, np.ones(len(pairs), np.int64) if values is None else values[good]))
        self.size += len(pairs)
        if self.size >= self._limit:
            self._compact()

    def _compact(self) -> tuple[Counts, Counts]:
        """The different pairs, and how often each came, or what its values add up to."""
        pairs, back = np.unique(np.concatenate([part for part, _ in self._parts]), return_inverse=True)
        times = np.zeros(len(pairs), np.int64)
        np.add.at(times, back, np.concatenate([count for _, count in self._parts]))
        self._parts, self.size = [(pairs, times)], max(len(pairs), _ROWS)
        self._limit = 2 * self.size  # so that each row is sorted a few times, however many differ
        return pairs, times

    def held(self, counted: bool) -> pa.RecordBatch:
        pairs, times = self._compact()
        names = self._items.values(np.arange(int((pairs & 0xFFFFFFFF).max(initial=-1)) + 1))
        users, items = (pairs >> 32).astype("<i4").tobytes(), pairs.astype("<i4").tobytes()
        columns = (users, items, times.astype("<i8").tobytes() if counted else b"", written(names))
        if sum(map(len, columns)) > _MOST_BYTES:
            raise DataError(TOO_LONG)
        return row_of(_CROWD, **dict(zip(_BYTES, columns, strict=True)))


def _looks(batches: Batches, most: int) -> Iterator[tuple[_native.Pairs, pa.Array]]:
    """The crowds, each grouped and with the names of its items."""
    entry = _native.Pairs.Entry
    for users, items, times, names in _read(batches):
        pairs = _native.Pairs(entry.sums if most > 1 else entry.present, LENGTH, most, 1)
        pairs.add(users, items, np.frombuffer(times, "<i8") if most > 1 else None)
        pairs.group()
        yield pairs, names


def _read(batches: Batches) -> Iterator[tuple[Numbered, Numbered, pa.Buffer, pa.Array]]:
    """The crowds: users, items, how often, and the names of the items."""
    for batch in batches:
        for at in range(batch.num_rows):
            users, items, times, names = (batch.column(name)[at].as_buffer() for name in _BYTES)
            yield np.frombuffer(users, "<i4"), np.frombuffer(items, "<i4"), times, read_items(names)


@dataclass(frozen=True)
class FindWeights:
    """The items of each crowd with their people's weights: columns `item`, `weight`.

    Which of a person's items take part, if these are too many, is decided by the items and the key alone.
    """

    most: int
    key: int
    most_items: int
    kind: pa.DataType

    def __call__(self, batches: Batches) -> Batches:
        for pairs, names in _looks(batches, self.most):
            numbers = Numbers("items", seed=self.key)
            numbers.numbers(names)
            weights = np.frombuffer(pairs.discovery(self.most_items, numbers.hashes()), np.int64)
            part = np.flatnonzero(weights)
            columns = [names.take(pa.array(part)).cast(self.kind), pa.array(weights[part])]
            yield pa.record_batch(columns, names=["item", "weight"])


@dataclass(frozen=True)
class AimWeights:
    """The same where people give more to some items: `aimed` have weights of their own, all others `least`."""

    key: int
    most_items: int
    kind: pa.DataType
    aimed: pa.Array
    aims: Counts
    least: int

    def __call__(self, batches: Batches) -> Batches:
        for pairs, names in _looks(batches, 1):
            numbers = Numbers("items", seed=self.key)
            numbers.numbers(names)
            found = np.asarray(pc.fill_null(pc.index_in(names, value_set=self.aimed.cast(names.type)), -1), np.int64)
            aims = np.append(self.aims, self.least)[found]
            index = np.arange(len(names), dtype=np.int32)
            sums = np.frombuffer(pairs.aimed(self.most_items, numbers.hashes(), index, aims), np.int64)
            part = np.flatnonzero(sums)
            columns = [names.take(pa.array(part)).cast(self.kind), pa.array(sums[part])]
            yield pa.record_batch(columns, names=["item", "weight"])


@dataclass(frozen=True)
class _WeighedItems:
    """Items to look at, with their weights."""

    most: int
    items: pa.Array
    weights: Counts

    def index(self, names: pa.Array) -> Numbered:
        """For every name its index among the items, or -1."""
        found = pc.index_in(names, value_set=self.items.cast(names.type))
        return np.asarray(pc.fill_null(found, -1), np.int32)


@dataclass(frozen=True)
class FindLengths(_WeighedItems):
    """The squared lengths of people's vectors, and how many people have each: columns `squared`, `people`."""

    def __call__(self, batches: Batches) -> Batches:
        for pairs, names in _looks(batches, self.most):
            squared = np.frombuffer(pairs.lengths(self.index(names), self.weights), np.float64)
            values, people = np.unique(squared, return_counts=True)
            yield pa.record_batch([pa.array(values), pa.array(people.astype(np.int64))], names=["squared", "people"])


@dataclass(frozen=True)
class FindSums(_WeighedItems):
    """The sums of the scaled vectors of a partition: columns `place`, `sum`."""

    longest: float

    def __call__(self, batches: Batches) -> Batches:
        sums = np.zeros(len(self.items), np.int64)
        for pairs, names in _looks(batches, self.most):
            sums += np.frombuffer(pairs.scaled_sums(self.index(names), self.weights, self.longest), np.int64)
        yield pa.record_batch([pa.array(np.arange(len(sums))), pa.array(sums)], names=["place", "sum"])


class FindHoldings(_WeighedItems):
    """Which of the items people have: columns `sizes`, `indices`, as `People.holdings` has them."""

    def __call__(self, batches: Batches) -> Batches:
        for pairs, names in _looks(batches, 1):
            held = (np.frombuffer(part, np.int64) for part in pairs.holdings(self.index(names)))
            columns = [pa.array([part.astype("<i4").tobytes()], pa.binary()) for part in held]
            yield pa.record_batch(columns, names=["sizes", "indices"])
