"""What executors run for people: crowds of them, each with all of their rows, looked at by the kernel of one machine.

Nothing here is random: a crowd, and what a look at it gives, are functions of the rows and of a key that the driver
drew. Sums over crowds do not depend on where one ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import _native
from discreet.engines._spark_tasks import Batches, read_items, written
from discreet.engines.exact_people import present_pairs, taking_part
from discreet.engines.numbers import Numbers
from discreet.summaries.people import LENGTH, MOST_ROWS, Counts

__all__ = ["CROWD", "REFUSED", "AimWeights", "Crowds", "FindLengths", "FindSums", "FindWeights"]

REFUSED = (
    'the columns of people and items have nulls; nulls="skip" leaves those rows out',
    "the different items of one person take 2 GiB or more, which is more than Spark moves as one: leave items out that "
    "are this person's own, or write them shorter",
)
"""What is wrong with rows that no crowd is made of. A crowd of a null in their place has this number for a weight."""

CROWD = "users binary, items binary, times binary, names binary"
_CROWD = pa.schema([(name, pa.binary()) for name in ("users", "items", "times", "names")])
_ROWS = 1 << 19  # of a crowd, about; its names take most of the memory
_BYTES = 1 << 28  # of its names, about: a crowd is one row, which Spark and Arrow end at 2^31
_MOST_BYTES = (1 << 31) - (1 << 20)  # of a row

Numbered = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Crowds:
    """Rows of `hash`, `person`, `item`, in the order of the hash, become crowds: numbers for people and items.

    All rows of a person have one hash, and a crowd ends where the hash changes: nobody is in two of them. Two people
    with one hash stay two. A person with very many rows takes memory for their different items only.
    """

    nulls: str
    rows: bool

    def __call__(self, batches: Batches) -> Batches:
        crowd, last = _Crowd(self.rows), None
        for batch in batches:
            hashes = batch.column(0).to_numpy()
            if not len(hashes):
                continue
            if self.nulls != "skip" and (batch.column(1).null_count or batch.column(2).null_count):
                yield _refused(0)
                for _ in batches:  # Spark waits until they are taken
                    pass
                return
            if crowd.full:
                # Up to where the hash changes for the first time the rows belong to people of this crowd.
                first = int(np.argmax(hashes != last)) if hashes[-1] != last else len(hashes)
                crowd.add(batch.slice(0, first))
                batch = batch.slice(first)
                if batch.num_rows:
                    yield crowd.held()
                    crowd = _Crowd(self.rows)
            crowd.add(batch)
            last = hashes[-1]
        if crowd.size:
            yield crowd.held()


class _Crowd:
    def __init__(self, rows: bool) -> None:
        self._rows = rows
        self._people, self._items = Numbers("people"), Numbers("items")
        self._parts: list[tuple[Counts, Counts]] = []
        self._limit = 2 * _ROWS  # where equal pairs become one
        self.size = 0

    @property
    def full(self) -> bool:
        return self.size >= _ROWS or self._people.bytes + self._items.bytes >= _BYTES

    def add(self, batch: pa.RecordBatch) -> None:
        users = np.asarray(self._people.numbers(batch.column(1)), np.int64)
        items = np.asarray(self._items.numbers(batch.column(2)), np.int64)
        pairs = ((users << 32) | items)[(users >= 0) & (items >= 0)]
        self._parts.append((pairs, np.ones(len(pairs), np.int64)))
        self.size += len(pairs)
        if self.size >= self._limit:
            self._compact()

    def _compact(self) -> tuple[Counts, Counts]:
        """The different pairs, and how often each came."""
        pairs, back = np.unique(np.concatenate([part for part, _ in self._parts]), return_inverse=True)
        times = np.zeros(len(pairs), np.int64)
        np.add.at(times, back, np.concatenate([count for _, count in self._parts]))
        self._parts, self.size = [(pairs, times)], max(len(pairs), _ROWS)
        self._limit = 2 * self.size  # so that each row is sorted a few times, however many differ
        return pairs, times

    def held(self) -> pa.RecordBatch:
        pairs, times = self._compact()
        names = self._items.values(np.arange(int((pairs & 0xFFFFFFFF).max(initial=-1)) + 1))
        users, items = (pairs >> 32).astype("<i4").tobytes(), pairs.astype("<i4").tobytes()
        columns = (users, items, times.astype("<i8").tobytes() if self._rows else b"", written(names))
        return _refused(1) if sum(map(len, columns)) > _MOST_BYTES else _row(*columns)


def _row(*columns: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([column], pa.binary()) for column in columns], schema=_CROWD)


def _refused(reason: int) -> pa.RecordBatch:
    """A crowd of a null, for the driver to refuse; as many as the number of the reason, and one."""
    return _row(b"", b"", b"", written(pa.nulls(reason + 1)))


def _looks(batches: Batches, rows: bool) -> Iterator[tuple[_native.Pairs, pa.Array]]:
    """The crowds, each grouped and with the names of its items."""
    entry = _native.Pairs.Entry
    for users, items, times, names in _read(batches):
        pairs = _native.Pairs(entry.sums if rows else entry.present, LENGTH, MOST_ROWS if rows else 1, 1)
        pairs.add(users, items, np.frombuffer(times, "<i8") if rows else None)
        pairs.group()
        yield pairs, names


def _read(batches: Batches) -> Iterator[tuple[Numbered, Numbered, pa.Buffer, pa.Array]]:
    """The crowds: users, items, how often, and the names of the items."""
    for batch in batches:
        for at in range(batch.num_rows):
            users, items, times, names = (batch.column(name)[at].as_buffer() for name in _CROWD.names)
            yield np.frombuffer(users, "<i4"), np.frombuffer(items, "<i4"), times, read_items(names)


@dataclass(frozen=True)
class FindWeights:
    """The items of each crowd with their people's weights: columns `item`, `weight`.

    Which of a person's items take part, if these are too many, is decided by the items and the key alone.
    """

    rows: bool
    key: int
    most_items: int
    kind: pa.DataType

    def __call__(self, batches: Batches) -> Batches:
        for pairs, names in _looks(batches, self.rows):
            if names.null_count:
                reason = pa.array([len(names) - 1])
                yield pa.record_batch([pa.nulls(1, self.kind), reason], names=["item", "weight"])
                continue
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
        for users, items, _, names in _read(batches):
            numbers = Numbers("items", seed=self.key)
            numbers.numbers(names)
            pairs = present_pairs([taking_part(users, items, numbers.hashes(), self.most_items)], 1)
            found = np.asarray(pc.fill_null(pc.index_in(names, value_set=self.aimed.cast(names.type)), -1), np.int64)
            aims = np.append(self.aims, self.least)[found]
            sums = np.frombuffer(pairs.scaled_sums(np.arange(len(names), dtype=np.int32), aims, 1.0), np.int64)
            part = np.flatnonzero(sums)
            columns = [names.take(pa.array(part)).cast(self.kind), pa.array(sums[part])]
            yield pa.record_batch(columns, names=["item", "weight"])


@dataclass(frozen=True)
class _WeighedItems:
    """Items to look at, with their weights."""

    rows: bool
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
        for pairs, names in _looks(batches, self.rows):
            squared = np.frombuffer(pairs.lengths(self.index(names), self.weights), np.float64)
            values, people = np.unique(squared, return_counts=True)
            yield pa.record_batch([pa.array(values), pa.array(people.astype(np.int64))], names=["squared", "people"])


@dataclass(frozen=True)
class FindSums(_WeighedItems):
    """The sums of the scaled vectors of a partition: columns `place`, `sum`."""

    longest: float

    def __call__(self, batches: Batches) -> Batches:
        sums = np.zeros(len(self.items), np.int64)
        for pairs, names in _looks(batches, self.rows):
            sums += np.frombuffer(pairs.scaled_sums(self.index(names), self.weights, self.longest), np.int64)
        yield pa.record_batch([pa.array(np.arange(len(sums))), pa.array(sums)], names=["place", "sum"])
