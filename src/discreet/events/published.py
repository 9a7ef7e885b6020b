"""Items as Arrow columns whose type is a function of the items alone.

What a summary has seen decides how it holds its keys, and one row decides what it has seen. So nothing of that may show
in what is published: an empty release is a column of text, whole numbers are int64 unless one of them needs uint64, and
items of several kinds (text, bytes, whole numbers) are a union of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Item", "item_order", "items_array", "mixed_array", "published_type"]

Item = int | str | bytes

# The tags of the native keys, and the places of their types in a union.
TEXT, BYTES, INTEGER, LARGE = range(4)


def _tag(item: Item) -> int:
    if isinstance(item, str):
        return TEXT
    if isinstance(item, bytes):
        return BYTES
    return INTEGER if item < 2**63 else LARGE


def item_order(item: Item) -> tuple[int, Any]:
    """Sorts items of any kinds: whole numbers, then text, then bytes."""
    return (0 if isinstance(item, int) else 1 if isinstance(item, str) else 2, item)


def items_array(items: Iterable[Item]) -> pa.Array:
    """The items in one column; see the module."""
    import pyarrow as pa

    values = list(items)
    tags = {_tag(value) for value in values}
    if tags <= {TEXT}:
        return pa.array(values, pa.large_string())
    if tags == {BYTES}:
        return pa.array(values, pa.large_binary())
    if tags == {INTEGER}:
        return pa.array(values, pa.int64())
    if tags <= {INTEGER, LARGE} and all(isinstance(value, int) and value >= 0 for value in values):
        return pa.array(values, pa.uint64())
    parts: list[list[Item]] = [[], [], [], []]
    for value in values:
        parts[_tag(value)].append(value)
    types = (pa.large_string(), pa.large_binary(), pa.int64(), pa.uint64())
    return mixed_array(
        [_tag(value) for value in values], [pa.array(part, kind) for part, kind in zip(parts, types, strict=True)]
    )


def mixed_array(tags: Any, parts: list[pa.Array]) -> pa.Array:
    """Items of several kinds: row i is the next one of parts[tags[i]]."""
    import numpy as np
    import pyarrow as pa

    codes = np.asarray(tags, np.int8)
    places = np.zeros(len(codes), np.int32)
    for tag in range(len(parts)):
        here = codes == tag
        places[here] = np.arange(np.count_nonzero(here))
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(places), parts)


def published_type(items: pa.Array) -> pa.Array:
    """The same items in a type that depends on them alone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(items) == 0:
        return pa.array([], pa.large_string())
    if pa.types.is_union(items.type):
        return items_array(items.to_pylist())
    if pa.types.is_uint64(items.type) and pc.max(items).as_py() < 2**63:
        return items.cast(pa.int64())
    return items
