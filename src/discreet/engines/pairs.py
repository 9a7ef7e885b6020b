"""Who has what, as two columns of numbers in memory: for answers that need no sums over people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.engines.different import Prints
from discreet.engines.numbers import NumberedRows, Numbers, numbered
from discreet.events.ahead import available_cores
from discreet.events.assembly import Rows
from discreet.events.values import joined_keys
from discreet.summaries.people import LENGTH

Integers = npt.NDArray[np.int64]
_AT_ONCE = 1 << 20  # rows, or as many as there are pairs, that are looked through together


class OwnedItems:
    """The different pairs of a person and an item. NOT PRIVATE.

    A person or an item is a number from 0.
    """

    people: Integers
    items: Integers

    def __repr__(self) -> str:
        return f"{type(self).__name__}(NOT PRIVATE)"

    def first_of(self, wanted: npt.NDArray[np.bool_], most: int) -> Integers:
        """(people, items): of the pairs with a wanted item the first `most` of each person, by their rows.

        Which ones depends on the rows of this person alone.
        """
        kept = wanted[self.items]
        people, items = self.people[kept], self.items[kept]
        order = np.argsort(people, kind="stable")
        sizes = np.bincount(people) if len(people) else np.zeros(0, np.int64)
        place = np.arange(len(people)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = order[place < most]
        return np.array([people[first], items[first]])


class Pairs(OwnedItems):
    """The pairs of rows, in the order in which they first came; or by person, which is quicker.

    Rows that cannot be items are left out, each by itself. Where there are others, or sent to another process, they are
    `JoinedPairs`: with fingerprints of the items, where `prints` makes them, or the items themselves.
    """

    def __init__(self, found: Rows, prints: Prints | None = None, by_person: bool = False) -> None:
        self._prints = prints
        columns = found.owned()
        people = Numbers("people", tagged="user" in found.tagged)
        self._items = Numbers("items", tagged="item" in found.tagged, max_bytes=found.max_key_bytes)
        rows = numbered(columns, people, self._items, None)
        pairs = _by_person(rows) if by_person else _in_order(rows)
        self.people, self.items = pairs >> 32, pairs & 0xFFFFFFFF

    def __reduce__(self) -> tuple[Any, ...]:
        return self.joined().__reduce__()

    def __add__(self, other: Pairs | JoinedPairs) -> JoinedPairs:
        return self.joined() + other

    def joined(self) -> JoinedPairs:
        """The same, to which pairs of other people can be added."""
        keys = self.values()
        if self._prints is not None:
            words = np.ascontiguousarray(self._prints.of(0, keys))
            keys = pa.Array.from_buffers(pa.binary(16), len(words), [None, pa.py_buffer(words)])
        return JoinedPairs(self.people, self.items, keys)

    def values(self) -> pa.Array:
        """The items by their numbers; all of them have one."""
        return self._items.values(np.arange(int(self.items.max()) + 1 if len(self.items) else 0))


class JoinedPairs(OwnedItems):
    """Pairs of some people, to which those of others can be added: `keys` are the items, or fingerprints of them."""

    def __init__(self, people: Integers, items: Integers, keys: pa.Array) -> None:
        self.people, self.items, self._keys = people, items, keys

    def __reduce__(self) -> tuple[Any, ...]:
        return JoinedPairs, (self.people, self.items, self._keys)

    def __add__(self, other: Pairs | JoinedPairs) -> JoinedPairs:
        more = other.joined()
        keys, places = joined_keys(self._keys, more._keys)
        after = more.people + (int(self.people.max(initial=-1)) + 1)
        mine, theirs = places[: len(self._keys)][self.items], places[len(self._keys) :][more.items]
        return JoinedPairs(np.concatenate([self.people, after]), np.concatenate([mine, theirs]), keys)

    def joined(self) -> JoinedPairs:
        """As they are."""
        return self

    def values(self) -> pa.Array:
        """The items by their numbers."""
        return self._keys


def _by_person(rows: Iterator[NumberedRows]) -> Integers:
    """Each pair once, in ascending order. They are sorted by their digits, in time that is linear in the rows."""
    pairs, different = _native.Pairs(_native.Pairs.Entry.present, LENGTH, 1, available_cores()), 0
    for some in rows:
        pairs.add(np.asarray(some.users), np.asarray(some.items))
        if pairs.rows > max(different, _AT_ONCE):
            different = pairs.keep_each_once()
    return np.frombuffer(pairs.take_pairs(), np.int64)


def _in_order(rows: Iterator[NumberedRows]) -> Integers:
    """Each pair once, in the order in which they first come."""
    pairs, parts, waiting = np.zeros(0, np.int64), list[Integers](), 0
    for users, items, _ in rows:
        owners, places = np.asarray(users), np.asarray(items)
        some = owners.astype(np.int64) << 32 | places  # numbers are below 2^31
        parts.append(some[(owners >= 0) & (places >= 0)])
        waiting += len(some)
        if waiting > max(len(pairs), _AT_ONCE):
            pairs, parts, waiting = _first_of_each(np.concatenate([pairs, *parts])), [], 0
    return _first_of_each(np.concatenate([pairs, *parts]))


def _first_of_each(pairs: Integers) -> Integers:
    _, first = np.unique(pairs, return_index=True)
    return pairs[np.sort(first)]
