"""CountMin and CountSketch in plain Python: their hashing, their estimates, and Algorithm 4 of [SS]."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Iterable
from typing import Any

PRIME = 2**61 - 1
WORD = 2**64

Item = int | str | bytes


class RowHashes:
    """The hash functions of a seed: SHAKE-256 gives the words, pair-multiply-shift the rows."""

    def __init__(self, seed: int, depth: int) -> None:
        random = hashlib.shake_256(b"discreet rows" + seed.to_bytes(8, "little")).digest(8 * (3 + 10 * depth))
        words = [int.from_bytes(random[i : i + 8], "little") for i in range(0, len(random), 8)]
        self.points = [(word >> 3) % PRIME for word in words[:2]]
        self.table_seed = words[2]
        self.cells = [words[3 + 10 * row : 8 + 10 * row] for row in range(depth)]
        self.signs = [words[8 + 10 * row : 13 + 10 * row] for row in range(depth)]

    def halves(self, item: Item) -> list[int]:
        """What the rows see of an item: 32-bit halves of an integer, or of the two digests of a string."""
        if isinstance(item, int):
            return [item % WORD & 0xFFFFFFFF, item % WORD >> 32]
        text = item.encode() if isinstance(item, str) else item
        halves = []
        for point in self.points:
            digest = len(text) + (isinstance(item, bytes) << 32)
            for first in range(0, len(text), 7):
                group = text[first : first + 7]
                # Groups of 1 to 3 bytes are written as first, middle and last byte.
                if len(group) < 4:
                    group = bytes([group[0], group[len(group) // 2], group[-1]])
                digest = (digest * point + int.from_bytes(group, "little")) % PRIME
            halves += [digest & 0xFFFFFFFF, digest >> 32]
        return halves

    @staticmethod
    def value(words: list[int], halves: list[int]) -> int:
        """The top 32 bits of the sum of (a + high)(a' + low) and b."""
        *a, b = words
        pairs = range(0, len(halves), 2)
        return (sum((a[i] + halves[i + 1]) * (a[i + 1] + halves[i]) for i in pairs) + b) % WORD >> 32

    def column(self, row: int, item: Item, width: int) -> int:
        return self.value(self.cells[row], self.halves(item)) * width >> 32

    def sign(self, row: int, item: Item) -> int:
        return -1 if self.value(self.signs[row], self.halves(item)) >> 31 else 1


class ReferenceSketch:
    """Rows of cells, and the candidates of Algorithm 4 of [SS]."""

    signed = False

    def __init__(self, width: int, depth: int, tracked: int, seed: int, rank: Callable[[Item], Any]) -> None:
        self.hashes = RowHashes(seed, depth)
        self.width, self.depth, self.tracked, self.rank = width, depth, tracked, rank
        self.cells = [[0] * width for _ in range(depth)]
        self.candidates: dict[Item, int] = {}

    def sign(self, row: int, item: Item) -> int:
        return self.hashes.sign(row, item) if self.signed else 1

    def rows(self, item: Item) -> list[int]:
        columns = [self.hashes.column(row, item, self.width) for row in range(self.depth)]
        return [self.sign(row, item) * self.cells[row][column] for row, column in enumerate(columns)]

    def estimate(self, item: Item) -> int:
        return int(statistics.median(self.rows(item))) if self.signed else min(self.rows(item))

    def update(self, stream: Iterable[Item]) -> None:
        for x in stream:
            for row in range(self.depth):
                self.cells[row][self.hashes.column(row, x, self.width)] += self.sign(row, x)
            if self.tracked:
                self.arrive(x, self.estimate(x))

    def arrive(self, x: Item, estimate: int) -> None:
        if x in self.candidates or len(self.candidates) < self.tracked:
            self.candidates[x] = estimate
            return
        y = min(self.candidates, key=lambda z: (self.candidates[z], self.rank(z)))
        if estimate > self.candidates[y]:
            del self.candidates[y]
            self.candidates[x] = estimate

    def merge(self, other: ReferenceSketch) -> None:
        for mine, theirs in zip(self.cells, other.cells, strict=True):
            for column, value in enumerate(theirs):
                mine[column] += value
        both = {x: self.estimate(x) for x in [*self.candidates, *other.candidates]}
        largest = sorted(both, key=lambda z: (both[z], self.rank(z)), reverse=True)[: self.tracked]
        self.candidates = {x: both[x] for x in largest}


class ReferenceCountMin(ReferenceSketch):
    pass


class ReferenceCountSketch(ReferenceSketch):
    signed = True
