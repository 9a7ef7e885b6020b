"""Misra-Gries, the summary behind the default release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet import _native
from discreet.events.items import prepare_column
from discreet.privacy.checks import whole_number
from discreet.privacy.estimate import Estimate
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES, MAX_CAPACITY, Item, Summary

if TYPE_CHECKING:
    import numpy as np

__all__ = ["MisraGries"]


class MisraGries(Summary):
    """At most `capacity` counters; each loses at most n/(capacity+1). NOT PRIVATE.

    Follows Algorithm 1 of [LT]: counters that reach zero keep their key until it is replaced, and the one replaced
    is the smallest in an order of the keys that does not depend on the stream (their hash under `seed`).

    Error bound: for every item, f - n/(k+1) <= c <= f.
    """

    _native_class = _native.MisraGries

    def __init__(self, capacity: int, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None) -> None:
        capacity = whole_number("capacity", capacity, 1, MAX_CAPACITY)
        self._native = _native.MisraGries(capacity, *self._check_common(max_key_bytes, seed))

    def update_counts(self, items: Any, counts: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Add `counts[i]` events in a row of the i-th item: the same state as that many single events, but quickly.

        For batches whose order means nothing. `items` is a column without nulls that is not a dictionary.
        """
        self._native.update_counts(prepare_column(items), counts)

    @property
    def capacity(self) -> int:
        """The number of counters."""
        return int(self._native.capacity)

    @property
    def not_private_offset(self) -> int:
        """Alpha: how often all counters were decremented (and, after a merge, by how much). Not private."""
        return int(self._native.decrements)

    def estimate(self, item: Item) -> Estimate:
        """The counter of an item: f lies between it and it plus alpha. Not private."""
        count, _ = self._native.count(item)
        return Estimate(count, count, count + self.not_private_offset)

    def _describe(self) -> str:
        return f"capacity={self.capacity}"
