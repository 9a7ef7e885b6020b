"""Time cut into epochs, and epochs into dyadic blocks (section 4.1 of [MDP]). Everything here is public.

Steps are numbered from 1, as in the paper. Epoch e holds the steps e*b + 1 to (e+1)*b. Block (level, j) has the epochs
j * 2^level to (j+1) * 2^level - 1, so every step lies in exactly one block of each level.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Block", "Spans", "block_cover", "doubling_levels", "levels_for"]


@dataclass(frozen=True, order=True)
class Block:
    """2^level epochs from number j * 2^level on."""

    level: int
    j: int

    @property
    def first(self) -> int:
        """Its first epoch."""
        return self.j << self.level

    @property
    def end(self) -> int:
        """The epoch after its last."""
        return (self.j + 1) << self.level

    @property
    def halves(self) -> tuple[Block, Block]:
        """The two blocks of the level below; for level 1 and up."""
        return Block(self.level - 1, 2 * self.j), Block(self.level - 1, 2 * self.j + 1)


def levels_for(epochs: int) -> int:
    """How many levels are kept when at most `epochs` complete epochs are ever asked for together: max(1, ceil(log2)).

    A level above would have blocks of `epochs` or more: never needed, since two blocks of the level below do, and a
    level costs its share of the budget.
    """
    return max(1, (epochs - 1).bit_length())


def doubling_levels(epoch: int) -> int:
    """How many levels are kept at an epoch when nobody knows how many there will be.

    Phase p has the 2^p epochs from number 2^p on, as many as all before it (the first has epoch 0, too), and is a
    stream of known length: it has the levels of 2^p epochs. Its blocks are those of the same grid, and no block lies in
    two phases.
    """
    return levels_for(1 << max(0, epoch.bit_length() - 1))


def block_cover(
    first: int, end: int, levels: int, known: Callable[[Block], bool], told: Sequence[int]
) -> Iterator[Block]:
    """The known blocks that cover the epochs from `first` to before `end`, as few as possible.

    Where a block is not known its halves are tried, down to single epochs; what is left out is covered by nothing.
    At most 2 * levels blocks if all are known. `told` are epochs in order, of which every known block has one or more:
    where there are none nothing is looked for, so whoever tells of two epochs far apart makes no work in between.
    """

    def parts(block: Block) -> Iterator[Block]:
        place = bisect_left(told, block.first)
        if place == len(told) or told[place] >= block.end:
            return
        if known(block):
            yield block
        elif block.level:
            for half in block.halves:
                yield from parts(half)

    while first < end:
        level = levels - 1
        while first % (1 << level) or first + (1 << level) > end:
            level -= 1
        yield from parts(Block(level, first >> level))
        first += 1 << level


class Spans:
    """A set of steps, kept as disjoint spans (after, to]: which steps a party has told about."""

    def __init__(self, spans: list[tuple[int, int]] | None = None) -> None:
        self._spans = sorted(spans or [])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._spans)

    def overlaps(self, after: int, to: int) -> bool:
        """Whether any step of (after, to] is in the set."""
        place = bisect_right(self._spans, after, key=lambda span: span[1])
        return place < len(self._spans) and self._spans[place][0] < to

    def add(self, after: int, to: int) -> None:
        """Add (after, to], which must not overlap; spans that touch become one."""
        spans = self._spans
        place = bisect_left(spans, after, key=lambda span: span[0])
        if place < len(spans) and spans[place][0] == to:
            _, to = spans.pop(place)
        if place and spans[place - 1][1] == after:
            place -= 1
            after, _ = spans.pop(place)
        spans.insert(place, (after, to))

    def count(self, after: int, to: int) -> int:
        """How many steps of (after, to] are in the set."""
        first = bisect_right(self._spans, after, key=lambda span: span[1])
        end = bisect_left(self._spans, to, first, key=lambda span: span[0])
        return sum(min(to, span[1]) - max(after, span[0]) for span in self._spans[first:end])

    def forget(self, before: int) -> None:
        """Drop the steps up to `before`."""
        self._spans = [(max(start, before), end) for start, end in self._spans if end > before]
