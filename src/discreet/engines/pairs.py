"""Who has what, as two columns of numbers in memory: for answers that need no sums over people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.engines.different import Prints, Words
from discreet.engines.numbers import Numbers, numbered
from discreet.events.assembly import Rows

__all__ = ["Pairs", "PrintedPairs", "Prints"]

Integers = npt.NDArray[np.int64]


class Pairs:
    """The different pairs of a person and an item, in the order in which they first came. NOT PRIVATE.

    A person or an item is a number from 0. Rows that cannot be items are left out, each by itself. Where
    there are others, or sent to another process, they are `PrintedPairs`, of these `prints`.
    """

    def __init__(self, found: Rows, prints: Prints | None = None) -> None:
        self._prints = prints
        columns = found.owned()
        people = Numbers("people", tagged="user" in found.tagged)
        self._items = Numbers("items", tagged="item" in found.tagged, max_bytes=found.max_key_bytes)
        parts = [np.zeros((2, 0), np.int64)]
        for rows in numbered(columns, people, self._items, None):
            pairs = np.array([rows.users, rows.items], np.int64)
            parts.append(_different(pairs[:, (pairs >= 0).all(axis=0)]))
        self.people, self.items = _different(np.concatenate(parts, axis=1))

    def __repr__(self) -> str:
        return "Pairs(NOT PRIVATE)"

    def __reduce__(self) -> tuple[Any, ...]:
        printed = self.printed()
        return PrintedPairs, (printed.people, printed.prints)

    def __add__(self, other: Pairs | PrintedPairs) -> PrintedPairs:
        return self.printed() + other.printed()

    def printed(self) -> PrintedPairs:
        """The same, to which pairs of other people can be added."""
        assert self._prints is not None
        return PrintedPairs(self.people, self._prints.of(0, self.values())[self.items])

    def values(self) -> pa.Array:
        """The items by their numbers; all of them have one."""
        return self._items.values(np.arange(int(self.items.max()) + 1 if len(self.items) else 0))

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


@dataclass(frozen=True)
class PrintedPairs:
    """The same with fingerprints for items, so that pairs of other people can be added. NOT PRIVATE."""

    people: Integers
    prints: Words

    def __add__(self, other: Pairs | PrintedPairs) -> PrintedPairs:
        more = other.printed()
        after = more.people + (int(self.people.max(initial=-1)) + 1)
        return PrintedPairs(np.concatenate([self.people, after]), np.concatenate([self.prints, more.prints]))

    def printed(self) -> PrintedPairs:
        """As it is."""
        return self

    @cached_property
    def items(self) -> Integers:
        """Items as numbers from 0."""
        words = np.ascontiguousarray(self.prints).view([("", np.uint64)] * 2).ravel()
        return np.unique(words, return_inverse=True)[1].astype(np.int64)


def _different(pairs: Integers) -> Integers:
    """Without repetitions, in order."""
    if not pairs.shape[1]:
        return pairs
    # Numbers are below 2^31.
    _, first = np.unique((pairs[0] << 32) | pairs[1], return_index=True)
    return pairs[:, np.sort(first)]
