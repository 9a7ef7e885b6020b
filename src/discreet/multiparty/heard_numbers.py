"""The numbers of the parties or reports that were heard: what is repeated is found, whatever order they come in."""

from __future__ import annotations

from array import array
from bisect import bisect_right

__all__ = ["HeardNumbers"]

_LOAD = 1024


class HeardNumbers:
    """Sets of numbers below 2^63 as sorted runs, in pieces of a few thousand: 16 bytes a run, and nothing of the order
    in which they came."""

    def __init__(self) -> None:
        self.count = 0
        self._firsts: list[int] = []
        self._starts: list[array[int]] = []
        self._ends: list[array[int]] = []

    def overlaps(self, first: int, count: int) -> bool:
        """Whether any of these numbers was heard."""
        last = first + count - 1
        piece = bisect_right(self._firsts, last) - 1
        if piece < 0:
            return False
        return self._ends[piece][bisect_right(self._starts[piece], last) - 1] > first

    def add(self, first: int, count: int) -> None:
        """Numbers that were not heard yet."""
        self.count += count
        piece = max(bisect_right(self._firsts, first) - 1, 0)
        if not self._firsts:
            self._insert_piece(0, array("Q", [first]), array("Q", [first + count]))
            return
        starts, ends = self._starts[piece], self._ends[piece]
        at = bisect_right(starts, first)
        before = at > 0 and ends[at - 1] == first
        after = at < len(starts) and starts[at] == first + count
        if before and after:
            ends[at - 1] = ends.pop(at)
            del starts[at]
        elif before:
            ends[at - 1] = first + count
        elif after:
            starts[at] = first
        else:
            starts.insert(at, first)
            ends.insert(at, first + count)
        self._firsts[piece] = starts[0]
        if len(starts) > 2 * _LOAD:
            self._insert_piece(piece + 1, starts[_LOAD:], ends[_LOAD:])
            del starts[_LOAD:], ends[_LOAD:]

    def _insert_piece(self, place: int, starts: array[int], ends: array[int]) -> None:
        self._firsts.insert(place, starts[0])
        self._starts.insert(place, starts)
        self._ends.insert(place, ends)

    def runs(self) -> list[tuple[int, int]]:
        """(first, count), in order; no two touch."""
        found: list[tuple[int, int]] = []
        for starts, ends in zip(self._starts, self._ends, strict=True):
            for start, end in zip(starts, ends, strict=True):
                if found and sum(found[-1]) == start:
                    found[-1] = found[-1][0], end - found[-1][0]
                else:
                    found.append((start, end - start))
        return found
