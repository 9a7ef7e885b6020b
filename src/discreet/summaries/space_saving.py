"""SpaceSaving with the eviction rule that makes it releasable."""

from __future__ import annotations

from discreet import _native
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item
from discreet.privacy.estimate import Estimate
from discreet.summaries._base import CounterSummary


class SpaceSaving(CounterSummary):
    """At most `capacity` counters; each exceeds the truth by at most n/capacity. NOT PRIVATE.

    Follows Algorithm 2 of [SS]: a new item takes over the counter of the most recently seen item among those with
    the smallest count.

    Error bound: for every tracked item, f <= C <= f + n/k; an untracked item has f <= n/k.
    """

    _native_class = _native.SpaceSaving

    def __init__(self, capacity: int, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None) -> None:
        self._native = _native.SpaceSaving(*self._check_common(max_key_bytes, seed, capacity))

    @property
    def not_private_untracked_bound(self) -> int:
        """The largest frequency an item without a counter can have. Not private."""
        return int(self._native.untracked_bound)

    def estimate(self, item: Item) -> Estimate:
        """The counter of an item (0 without one): it never underestimates a tracked item. Not private."""
        count, tracked = self._native.count(item)
        bound = self.not_private_untracked_bound
        if not tracked:
            return Estimate(0, 0, bound)
        return Estimate(count, max(count - bound, 0), count)
