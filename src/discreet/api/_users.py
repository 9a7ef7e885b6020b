"""Lists of users as one stream of items, at most so many of a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError
from discreet.noise import RandomSource

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["items_of_users"]

_USERS_IN_A_BATCH = 1 << 14


def items_of_users(data: Any, max_items: int, nulls: str, source: RandomSource) -> Iterator[pa.Array]:
    """The distinct items of each user, user after user; of a user with more, a uniform random sample of `max_items`.

    Which items of a user are kept, and in which order (that of the list), depends on this user's list and on fresh
    randomness alone. So adding or removing a user inserts or removes at most `max_items` items in one place of the
    stream and leaves the rest as it is: the neighbours of group privacy.
    """
    for lists in _arrow_lists(data):
        items = _items(lists, max_items, nulls, source)
        if len(items):
            yield items


def _items(lists: pa.Array, max_items: int, nulls: str, source: RandomSource) -> pa.Array:
    import numpy as np
    import pyarrow.compute as pc

    values, users = _plain(lists.flatten()), np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
    if values.null_count or lists.null_count:
        if nulls != "skip":
            raise DataError('the column has nulls; pass nulls="skip" to leave them out')
        valid = np.asarray(pc.is_valid(values))
        values, users = values.filter(pc.is_valid(values)), users[valid]
    codes = np.asarray(pc.dictionary_encode(values).indices).astype(np.int64)
    _, first = np.unique(users * np.int64(len(values) + 1) + codes, return_index=True)
    first.sort()
    owner = users[first]
    sizes = np.bincount(owner)
    if sizes.size and sizes.max() > max_items:
        # In random order within each user; the first max_items places are a uniform sample.
        order = np.lexsort((source.permutation(len(first)), owner))
        place = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = np.sort(first[order[place < max_items]])
    return values.take(first)


def _plain(values: pa.Array) -> pa.Array:
    """Strings and bytes in a layout that Arrow's functions know."""
    import pyarrow as pa

    if pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(values.type) else values


def _arrow_lists(data: Any) -> Iterator[pa.Array]:
    import pyarrow as pa

    if isinstance(data, pa.Array):
        yield data
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.chunked_array(data).chunks
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.array(data)
    else:
        users = iter(data)
        while batch := list(islice(users, _USERS_IN_A_BATCH)):
            yield _from_python(batch)


def _from_python(users: list[Any]) -> pa.Array:
    import pyarrow as pa

    rows = [list(user) if _is_iterable(user) else user for user in users]
    if any(row is not None and not isinstance(row, list) for row in rows):
        raise DataError("each row must be the list of one user's items")
    if not any(rows):
        return pa.array(rows, pa.list_(pa.null()))
    for kind in (None, pa.list_(pa.uint64())):
        try:
            return pa.array(rows, kind)
        except (pa.ArrowException, OverflowError):
            continue
    # Without the cause: it quotes an item.
    raise DataError("the items of users must be of one kind: int, str or bytes")


def _is_iterable(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))
