"""At most this many different items of a person: of anyone with more, a random sample.

`UserSets` takes rows that say whose they are, `items_of_users` lists with one row a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import DataError
from discreet.events.items import arrow_chunks, is_arrow, item_of, prepare_lists, without_views
from discreet.noise import RandomSource
from discreet.privacy.checks import whole_number

Integers = npt.NDArray[np.int64]

_USERS_IN_A_BATCH = 1 << 14
_NULLS = 'the column has nulls; pass nulls="skip" to leave them out'


class UserSets:
    """A uniform random sample of at most `max_items` distinct items of every user. NOT PRIVATE.

    Kept are the items whose hashes with the user are the smallest, under a key that is drawn once. Which items a user
    keeps depends on that user's events alone, and users stay in the order of their first events. So adding or
    removing a user adds or removes one set and changes no other: the neighbours of `User(max_items)`.

    Memory grows with the number of users (about 200 bytes, and of every item that is kept about 100), not with their
    events.
    """

    def __init__(self, max_items: int) -> None:
        import secrets

        self._max_items = whole_number("max_items", max_items)
        self._key = secrets.token_bytes(16)
        self._sets: dict[Any, tuple[tuple[int, Any], ...]] = {}  # (hash, item), in order
        self._items: dict[Any, Any] = {}

    def add(self, users: pa.Array, items: pa.Array) -> None:
        """Take events: whose they are, and their items."""
        user_names, user_index = encoded(users)
        item_names, item_index = encoded(items)
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
        from hashlib import blake2b  # loads OpenSSL, too

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


def encoded(array: pa.Array) -> tuple[list[Any], np.ndarray[Any, np.dtype[np.int64]]]:
    """The distinct values of an array without nulls, and for every row which of them it has."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def items_of_users(data: Any, max_items: int, nulls: str, source: RandomSource) -> Iterator[Any]:
    """The distinct items of each user, user after user; of a user with more, a uniform random sample of `max_items`.

    Which items of a user are kept, and in which order (that of the list), depends on this user's list and on fresh
    randomness alone. So adding or removing a user inserts or removes at most `max_items` items in one place of the
    stream and leaves the rest as it is: the neighbours of group privacy. Columns come out, for a summary to take.
    """
    lists = prepare_lists(data)
    if is_arrow(lists):
        for chunk in arrow_chunks(lists):
            if pa.types.is_struct(chunk.type):
                if chunk.type.num_fields != 1 or chunk.null_count:
                    raise DataError("expected one column of lists without null rows")
                chunk = chunk.field(0)
            items = _from_arrow(chunk, max_items, nulls, source)
            if len(items):
                yield items
        return
    users = iter(lists)
    while batch := list(islice(users, _USERS_IN_A_BATCH)):
        items = _from_rows(batch, max_items, nulls, source)
        if items:
            yield items


def _from_arrow(lists: pa.Array, max_items: int, nulls: str, source: RandomSource) -> pa.Array:
    if lists.null_count:
        if nulls != "skip":
            raise DataError(_NULLS)
        lists = without_views(lists)
        lists = lists.filter(lists.is_valid())  # what a null list refers to is nobody's
    import pyarrow.compute as pc

    values, users = without_views(lists.flatten()), np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
    if values.null_count:
        if nulls != "skip":
            raise DataError(_NULLS)
        valid = np.asarray(values.is_valid())
        values, users = values.filter(values.is_valid()), users[valid]
    codes = np.asarray(values.dictionary_encode().indices).astype(np.int64)
    _, first = np.unique(users * np.int64(len(values) + 1) + codes, return_index=True)
    first.sort()
    return values.take(first[_sampled(users[first], max_items, source)])


def _from_rows(rows: list[Any], max_items: int, nulls: str, source: RandomSource) -> list[Any]:
    """The same for lists of Python objects; those that cannot be items are left to the summary's rule."""
    kept: list[Any] = []
    owners: list[int] = []
    for user, given in enumerate(rows):
        row = None if given is None else list(given)
        if nulls != "skip" and (row is None or any(item is None for item in row)):
            raise DataError(_NULLS)
        seen: dict[Any, Any] = {}
        for item in row or ():
            if item is not None:
                value = item_of(item)
                seen.setdefault((type(item), id(item)) if value is None else (type(value), value), item)
        kept += seen.values()
        owners += [user] * len(seen)
    return [kept[place] for place in _sampled(np.array(owners, np.int64), max_items, source).tolist()]


def _sampled(owner: Integers, max_items: int, source: RandomSource) -> Integers:
    """Which places to keep: all of an owner, or a uniform sample of `max_items`. The owners are in ascending order."""
    sizes = np.bincount(owner)
    if not sizes.size or sizes.max() <= max_items:
        return np.arange(len(owner))
    # In random order within each user; the first max_items places are a uniform sample.
    order = np.lexsort((source.permutation(len(owner)), owner))
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[place < max_items])
