"""Who has what, as two columns of numbers in memory: for answers that need no sums over people."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.engines.numbers import Numbers, numbered
from discreet.events.assembly import Rows

__all__ = ["Pairs"]

Integers = npt.NDArray[np.int64]


class Pairs:
    """The different pairs of a person and an item, in the order in which they first came. NOT PRIVATE.

    A person or an item is a number from 0. Rows that cannot be items are left out, each by itself.
    """

    def __init__(self, found: Rows) -> None:
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

    def values(self) -> pa.Array:
        """The items by their numbers; all of them have one."""
        return self._items.values(np.arange(int(self.items.max()) + 1 if len(self.items) else 0))

    def first_of(self, wanted: npt.NDArray[np.bool_], most: int) -> Integers:
        """The items of everybody: of the pairs with a wanted item the first `most` of each person, by their rows.

        Which ones depends on the rows of this person alone.
        """
        kept = wanted[self.items]
        people, items = self.people[kept], self.items[kept]
        order = np.argsort(people, kind="stable")
        sizes = np.bincount(people) if len(people) else np.zeros(0, np.int64)
        place = np.arange(len(people)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first: Integers = items[order[place < most]]
        return first


def _different(pairs: Integers) -> Integers:
    """Without repetitions, in order."""
    if not pairs.shape[1]:
        return pairs
    # Numbers are below 2^31.
    _, first = np.unique((pairs[0] << 32) | pairs[1], return_index=True)
    return pairs[:, np.sort(first)]
