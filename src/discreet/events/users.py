"""Events of users as one capped set of items a user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.privacy.checks import whole_number

__all__ = ["UserSets"]

_USERS_IN_A_BATCH = 1 << 14


class UserSets:
    """The first `max_items` distinct items of every user, in the order of the stream. NOT PRIVATE.

    Which items a user keeps depends on that user's events alone, and users stay in the order of their first events.
    So adding or removing a user adds or removes one set and changes no other: the neighbours of `User(max_items)`.

    Memory grows with the number of users (about 200 bytes and their items each), not with their events.
    """

    def __init__(self, max_items: int) -> None:
        self._max_items = whole_number("max_items", max_items)
        self._sets: dict[Any, tuple[Any, ...]] = {}
        self._items: dict[Any, Any] = {}

    def add(self, users: pa.Array, items: pa.Array) -> None:
        """Take events: whose they are, and their items."""
        user_names, user_index = _encoded(users)
        item_names, item_index = _encoded(items)
        # Most repetitions are within a batch; what is left goes through Python one by one.
        _, first = np.unique(user_index * np.int64(len(item_names)) + item_index, return_index=True)
        first.sort()
        shared = [self._items.setdefault(item, item) for item in item_names]
        for u, i in zip(user_index[first].tolist(), item_index[first].tolist(), strict=True):
            user, item = user_names[u], shared[i]
            kept = self._sets.get(user, ())
            if len(kept) < self._max_items and item not in kept:
                self._sets[user] = (*kept, item)

    def lists(self) -> Iterator[Any]:
        """The sets in batches: as Arrow lists, or as they are where items are of different kinds."""
        sets = list(self._sets.values())
        mixed = len({type(item) for item in self._items}) > 1
        for start in range(0, len(sets), _USERS_IN_A_BATCH):
            batch = sets[start : start + _USERS_IN_A_BATCH]
            yield batch if mixed else pa.array(batch)

    def __repr__(self) -> str:
        return f"UserSets(max_items={self._max_items}) [NOT PRIVATE]"


def _encoded(array: pa.Array) -> tuple[list[Any], np.ndarray[Any, np.dtype[np.int64]]]:
    """The distinct values of an array without nulls, and for every row which of them it has."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)
