"""Who may have how much of the memory that requests wait in: nobody holds more than is free.

What a request holds counts for its caller, for its stream, and for all callers without a token together. Each of these
may hold at most as much as is free then; a caller without a token half of that. So one of them has at most half of the
room, two have a third each, and however many there are, something is left for anyone who comes next. Those who send
without a token are one party, however many addresses they have, and take nothing of a stream's share from those with
one.
"""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType

from discreet.service.problems import too_busy

Party = tuple[str, ...]


class Shares:
    """A number of bytes that requests share."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._held: Counter[Party] = Counter()
        self._lock = threading.Lock()
        self.used = 0

    def hold(self, caller: str, stream: str, known: bool) -> Holding:
        """Nothing yet, for a request of this caller to this stream; `known` callers have a token."""
        if known:
            return Holding(self, {("caller", caller): 1, ("stream", stream): 1})
        return Holding(self, {("caller", caller): 2, ("stream", stream, "strangers"): 1, ("strangers",): 1})

    def _change(self, parties: dict[Party, int], size: int, ask: bool) -> bool:
        with self._lock:
            free = self._total - self.used - size
            if ask and any(weight * (self._held[party] + size) > free for party, weight in parties.items()):
                return False
            self.used += size
            for party in parties:
                self._held[party] += size
                if not self._held[party]:
                    del self._held[party]
            return True


class Holding:
    """What one request holds; given back when it is left."""

    def __init__(self, shares: Shares, parties: dict[Party, int]) -> None:
        self._shares, self._parties = shares, parties
        self.size = 0

    def add(self, size: int) -> None:
        """Hold more; 429 if that is more than the share."""
        if not self._shares._change(self._parties, size, True):
            raise too_busy()
        self.size += size

    def become(self, size: int) -> None:
        """The same request takes another size now, and is not refused for that."""
        self._shares._change(self._parties, size - self.size, False)
        self.size = size

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.become(0)
