"""Published items: one Arrow type that depends on the items alone, whatever the ticks before held."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Item", "published_items"]

Item = int | str | bytes


def published_items(items: Iterable[Item]) -> pa.Array:
    """int64 (uint64 if it must be), large_string or large_binary; an empty list is one of strings."""
    import pyarrow as pa

    values = list(items)
    if not values or isinstance(values[0], str):
        return pa.array(values, pa.large_string())
    if isinstance(values[0], bytes):
        return pa.array(values, pa.large_binary())
    return pa.array(values, pa.uint64() if any(isinstance(v, int) and v >= 2**63 for v in values) else pa.int64())
