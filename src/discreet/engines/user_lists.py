"""Lists of users as one stream of items, at most so many of a user."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError
from discreet.events.items import arrow_chunks, is_arrow, item_of, prepare_lists
from discreet.noise import RandomSource

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Integers = npt.NDArray[np.int64]

__all__ = ["items_of_users"]

_USERS_IN_A_BATCH = 1 << 14
_NULLS = 'the column has nulls; pass nulls="skip" to leave them out'


def items_of_users(data: Any, max_items: int, nulls: str, source: RandomSource) -> Iterator[Any]:
    """The distinct items of each user, user after user; of a user with more, a uniform random sample of `max_items`.

    Which items of a user are kept, and in which order (that of the list), depends on this user's list and on fresh
    randomness alone. So adding or removing a user inserts or removes at most `max_items` items in one place of the
    stream and leaves the rest as it is: the neighbours of group privacy. Columns come out, for a summary to take.
    """
    lists = prepare_lists(data)
    if is_arrow(lists):
        for chunk in arrow_chunks(lists):
            yield from _plain_tables(chunk, max_items, nulls, source)
        return
    users = iter(lists)
    while batch := list(islice(users, _USERS_IN_A_BATCH)):
        items = _from_rows(batch, max_items, nulls, source)
        if items:
            yield items


def _plain_tables(lists: pa.Array, max_items: int, nulls: str, source: RandomSource) -> Iterator[pa.Array]:
    import pyarrow as pa

    if pa.types.is_struct(lists.type):
        if lists.type.num_fields != 1 or lists.null_count:
            raise DataError("expected one column of lists, got a table of several, or with null rows")
        lists = lists.field(0)
    items = _from_arrow(lists, max_items, nulls, source)
    if len(items):
        yield items


def _from_arrow(lists: pa.Array, max_items: int, nulls: str, source: RandomSource) -> pa.Array:
    import numpy as np
    import pyarrow.compute as pc

    if lists.null_count:
        if nulls != "skip":
            raise DataError(_NULLS)
        lists = lists.filter(lists.is_valid())  # what a null list refers to is nobody's
    values, users = _plain(lists.flatten()), np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
    if values.null_count:
        if nulls != "skip":
            raise DataError(_NULLS)
        valid = np.asarray(values.is_valid())
        values, users = values.filter(values.is_valid()), users[valid]
    codes = np.asarray(pc.dictionary_encode(values).indices).astype(np.int64)
    _, first = np.unique(users * np.int64(len(values) + 1) + codes, return_index=True)
    first.sort()
    return values.take(first[_sampled(users[first], max_items, source)])


def _from_rows(rows: list[Any], max_items: int, nulls: str, source: RandomSource) -> list[Any]:
    """The same for lists of Python objects; those that cannot be items are left to the summary's rule."""
    import numpy as np

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
    import numpy as np

    sizes = np.bincount(owner)
    if not sizes.size or sizes.max() <= max_items:
        return np.arange(len(owner))
    # In random order within each user; the first max_items places are a uniform sample.
    order = np.lexsort((source.permutation(len(owner)), owner))
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[place < max_items])


def _plain(values: pa.Array) -> pa.Array:
    """Strings and bytes in a layout that Arrow's functions know."""
    import pyarrow as pa

    if pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(values.type) else values
