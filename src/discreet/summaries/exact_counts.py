"""Exact counts: the yardstick, for streams with few distinct items."""

from __future__ import annotations

from discreet import _native
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item
from discreet.privacy.estimate import Estimate
from discreet.summaries._base import Summary


class ExactCounts(Summary):
    """The exact count of every item; memory grows with the number of distinct items. NOT PRIVATE."""

    _native_class = _native.ExactCounts

    def __init__(self, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None) -> None:
        self._native = _native.ExactCounts(*self._check_common(max_key_bytes, seed))

    def estimate(self, item: Item) -> Estimate:
        """The exact count. Not private."""
        count, _ = self._native.count(item)
        return Estimate(count, count, count)
