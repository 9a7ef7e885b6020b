"""Frequency oracles as a user may bring them."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np


class ListedCounts:
    """The exact counts of the numbers from 0 to size - 1: no errors, one cell an event."""

    changes, height = 1, 1

    def __init__(self, size: int = 4) -> None:
        self.table = np.zeros(size, np.int64)

    def update(self, items: Any, counts: Any) -> None:
        self.table[np.asarray(items)] += counts

    def cells(self) -> Any:
        return self.table

    def estimate(self, items: Any, cells: Any) -> Any:
        return cells[np.asarray(items)]

    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        return 0, 0


class HashedRows:
    """A CountMin of one's own: rows of cells, an item is in one cell of each, the smallest is its estimate."""

    height = 1

    def __init__(self, width: int, depth: int, seed: bytes = b"a seed") -> None:
        self.changes, self.width, self.seed = depth, width, seed
        self.rows = np.zeros((depth, width), np.int64)

    def places(self, items: Any) -> Any:
        digests = [hashlib.blake2b(repr(x).encode(), key=self.seed, digest_size=4 * self.changes) for x in items]
        words = np.frombuffer(b"".join(d.digest() for d in digests), np.uint32).reshape(-1, self.changes)
        return (words % self.width).astype(np.int64)

    def update(self, items: Any, counts: Any) -> None:
        for row, columns in enumerate(self.places(items).T):
            np.add.at(self.rows[row], columns, counts)

    def cells(self) -> Any:
        return self.rows

    def estimate(self, items: Any, cells: Any) -> Any:
        return cells[np.arange(self.changes), self.places(items)].min(axis=1)

    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        # A row collects g + 1 events of others with probability at most n p/(g + 1), p = 1.001/w; all rows, for some
        # item, with at most items (n p/(g + 1))^d, which is to be no more than failure.
        g = math.ceil(1.001 * length / self.width * (items / failure) ** (1 / self.changes))
        return 0, min(g, length)
