"""Events of users as one capped set of items a user."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.privacy.checks import whole_number

__all__ = ["UserSets", "mixed"]

_USERS_IN_A_BATCH = 1 << 14


class UserSets:
    """A uniform random sample of at most `max_items` distinct items of every user. NOT PRIVATE.

    Kept are the items whose hashes with the user are the smallest, under a key that is drawn once. Which items a user
    keeps depends on that user's events alone, and users stay in the order of their first events. So adding or
    removing a user adds or removes one set and changes no other: the neighbours of `User(max_items)`.

    Memory grows with the number of users (about 200 bytes, and of every item that is kept about 100), not with their
    events.
    """

    def __init__(self, max_items: int) -> None:
        self._max_items = whole_number("max_items", max_items)
        self._key = secrets.token_bytes(16)
        self._sets: dict[Any, tuple[tuple[int, Any], ...]] = {}  # (hash, item), in order
        self._items: dict[Any, Any] = {}

    def add(self, users: pa.Array, items: pa.Array) -> None:
        """Take events: whose they are, and their items."""
        user_names, user_index = _encoded(users)
        item_names, item_index = _encoded(items)
        # Most repetitions are within a batch; what is left goes through Python one by one.
        _, first = np.unique(user_index * np.int64(len(item_names)) + item_index, return_index=True)
        first.sort()
        user_index, item_index = user_index[first], item_index[first]
        shared = [self._items.setdefault(item, item) for item in item_names]
        ranks = mixed(self._hashes(user_names, b"user")[user_index], self._hashes(item_names, b"item")[item_index])
        for u, i, rank in zip(user_index.tolist(), item_index.tolist(), ranks.tolist(), strict=True):
            user, pair = user_names[u], (rank, shared[i])
            kept = self._sets.get(user, ())
            if (len(kept) < self._max_items or rank < kept[-1][0]) and pair not in kept:
                self._sets[user] = tuple(sorted((*kept, pair), key=_rank)[: self._max_items])

    def _hashes(self, values: list[Any], role: bytes) -> np.ndarray[Any, np.dtype[np.uint64]]:
        digests = [
            blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=8, key=self._key, person=role).digest()
            for value in values
        ]
        return np.frombuffer(b"".join(digests), np.uint64)

    def lists(self) -> Iterator[list[list[Any]]]:
        """The sets in batches, as lists of Python objects: a type for all of them would follow from all of them."""
        sets = [[item for _, item in kept] for kept in self._sets.values()]
        for start in range(0, len(sets), _USERS_IN_A_BATCH):
            yield sets[start : start + _USERS_IN_A_BATCH]

    def __repr__(self) -> str:
        return f"UserSets(max_items={self._max_items}) [NOT PRIVATE]"


def _rank(pair: tuple[int, Any]) -> int:
    return pair[0]


def mixed(
    users: np.ndarray[Any, np.dtype[np.uint64]], items: np.ndarray[Any, np.dtype[np.uint64]]
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """One hash of two: the finaliser of SplitMix64, after which users have their items in unrelated orders."""
    both = users + np.uint64(0x9E3779B97F4A7C15) * items
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        both = (both ^ (both >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(both ^ (both >> np.uint64(31)))


def _encoded(array: pa.Array) -> tuple[list[Any], np.ndarray[Any, np.dtype[np.int64]]]:
    """The distinct values of an array without nulls, and for every row which of them it has."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)
