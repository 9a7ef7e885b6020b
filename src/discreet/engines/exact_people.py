"""People counted exactly: files and tables of any order, in memory while they fit, else out of core by DuckDB."""

from __future__ import annotations

import abc
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.engines.numbers import NumberedRows, Numbers, numbered
from discreet.engines.private_folder import remove_left_over
from discreet.events.ahead import available_cores
from discreet.summaries.memory import Memory
from discreet.summaries.people import (
    LENGTH,
    MOST_ROWS,
    MOST_STEPS,
    Counts,
    Holdings,
    People,
    ValueRange,
)

if TYPE_CHECKING:
    from discreet.events.assembly import Rows

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


class PairSums(People):
    """People whose vectors over numbered items are added up in C++. NOT private."""

    _pairs: _native.Pairs

    @abc.abstractmethod
    def _index(self, places: Counts) -> npt.NDArray[np.int32]:
        """For every number of an item its index in `places`, or -1."""

    def lengths(self, places: Counts, weights: Counts) -> tuple[npt.NDArray[np.float64], Counts]:
        squared = np.frombuffer(self._pairs.lengths(self._index(places), weights), np.float64)
        values, people = np.unique(squared, return_counts=True)
        return values, people.astype(np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        return np.frombuffer(self._pairs.scaled_sums(self._index(places), weights, longest), np.int64)


class MemoryPeople(PairSums, OpenPeople):
    """People and their items in memory, sorted once. NOT private.

    Rows may come in any order; what is returned depends neither on it nor on the number of threads.
    """

    def __init__(
        self, rows: deque[NumberedRows], items: Numbers, entry: _native.Pairs.Entry, most: int, threads: int
    ) -> None:
        self._items = items
        self._pairs = _native.Pairs(entry, LENGTH, most, threads)
        self._held: tuple[bytes, Holdings] | None = None
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

    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        index = self._indexed(self._places)
        return np.frombuffer(self._pairs.aimed(most_items, self._hashes, index, aims), np.int64)

    def items(self, places: Counts) -> pa.Array:
        return self._items.values(self._places[places])

    def numbers_at(self, places: Counts) -> Counts:
        """The numbers that rows have for the items at these places."""
        return np.asarray(self._places[places], np.int64)

    def holdings(self, places: Counts) -> Iterator[Holdings]:
        asked = places.tobytes()
        if self._held is None or self._held[0] != asked:
            sizes, held = self._pairs.holdings(self._index(places))
            self._held = asked, (np.frombuffer(sizes, np.int64), np.frombuffer(held, np.int64))
        yield self._held[1]

    def _index(self, places: Counts) -> npt.NDArray[np.int32]:
        return self._indexed(self._places[places])

    def _indexed(self, numbers: Counts) -> npt.NDArray[np.int32]:
        """For every number of an item where it is among these, or -1."""
        index = np.full(len(self._hashes), -1, np.int32)
        index[numbers] = np.arange(len(numbers), dtype=np.int32)
        return index


def people_of(
    found: Rows,
    *,
    rows: bool = False,
    value_range: ValueRange | None = None,
    memory: str | None = None,
    threads: int | None = None,
    together: bool = False,
) -> OpenPeople:
    """The people of rows that say whose they are, or that are lists, one row a person.

    Args:
        found: Items, people, and values where they are to be added up.
        rows: Whether vectors say how often a person has an item, instead of whether.
        value_range: Vectors say what the values of a person's rows with an item add up to; one of them counts at least
            and at most so much.
        memory: A size such as "2GB"; what does not fit goes to a private folder on disk.
        threads: How many; all cores by default.
        together: Whether to say which items people have together.
    """
    if found.elsewhere is not None:
        people: OpenPeople = found.elsewhere.people(rows=rows, value_range=value_range)
        return people
    limit = Memory(memory, LEAST_MEMORY)
    remove_left_over()
    columns = found.owned()
    users = Numbers("people", tagged="user" in found.tagged)
    items = Numbers("items", tagged="item" in found.tagged, max_bytes=found.max_key_bytes)
    coming = numbered(columns, users, items, value_range)
    # A row takes 8 bytes as it came, 8 as a pair, and up to 16 while pairs are sorted; more with what it adds up to.
    entry = _native.Pairs.Entry
    kind, most, each = (entry.present, 1, 32) if not rows else (entry.times, MOST_ROWS, 40)
    if value_range is not None:
        kind, most, each = entry.sums, MOST_STEPS, 64
    if together:  # which lists the chosen items of every person
        each += 32
    taken: deque[NumberedRows] = deque()
    count = 0
    room = limit.room
    fits = room > 0
    while fits and (some := next(coming, None)) is not None:
        taken.append(some)
        count += len(some)
        fits = each * count + users.bytes + items.bytes <= room
    if fits:
        return MemoryPeople(taken, items, kind, most, threads or available_cores())
    from discreet.engines.duck_people import DuckPeople

    spilled = DuckPeople(limit, threads, users, items, most, value_range is not None)
    try:
        spilled.read(taken, coming)
    except BaseException:
        spilled.close()
        raise
    return spilled
