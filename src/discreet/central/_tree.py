"""Noisy counts in a tree over the bins of a line, made consistent: from them, how many lie left of any boundary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.central._additive import additive_noise
from discreet.privacy import Budget
from discreet.releases.error_model import Noise

Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64, 128, 256)
_TRIED = 513  # boundaries at which trees are compared


@dataclass(frozen=True)
class RangeTree:
    """`levels` levels of nodes below a root that is not counted; every node has `branching` children.

    The nodes are in one array, level by level from the top, each from left to right.

    With equal noise on every node the best linear unbiased estimates follow in two passes (Hay, Rastogi, Miklau, Suciu:
    Boosting the Accuracy of Differentially Private Histograms Through Consistency, 2010). Upwards, with a_h the
    variance of z at height h in units of one noise, a_0 = 1 and 1/a_h = 1 + 1/(branching a_(h-1)):

        z(leaf) = y(leaf),    z(node) = a_h y(node) + (1 - a_h) sum of z(children)

    Downwards, from x = z below the root: x(child) = z(child) + (x(node) - sum of z(children))/branching.
    """

    branching: int
    levels: int

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self.branching**self.levels)

    @property
    def nodes(self) -> int:
        """How many nodes have counts."""
        return sum(self.branching ** (level + 1) for level in range(self.levels))

    def counts(self, leaves: Counts) -> Counts:
        """The counts of all nodes, from those of the first leaves; the others are 0. One leaf is in `levels` nodes."""
        level = np.zeros(self.leaves, np.int64)
        level[: len(leaves)] = leaves
        found = [level]
        while len(level) > self.branching:
            level = level.reshape(-1, self.branching).sum(axis=1)
            found.append(level)
        return np.concatenate(found[::-1])

    def left_of(self, counts: npt.NDArray[Any]) -> Numbers:
        """From noisy counts of all nodes: how many lie left of each boundary, 0 to `leaves`, and in all at the end."""
        b, levels = self.branching, [*self._split(counts.astype(np.float64))]
        for height in range(1, self.levels):
            level, below = levels[-1 - height], levels[-height]
            level *= self._variances[height]
            level += (1.0 - self._variances[height]) * below.reshape(-1, b).sum(axis=1)
        for level, below in pairwise(levels):
            children = below.reshape(-1, b)
            children += ((level - children.sum(axis=1)) / b)[:, None]
        return np.concatenate([[0.0], np.cumsum(levels[-1])])

    def _split(self, counts: Numbers) -> Iterator[Numbers]:
        first = 0
        for level in range(self.levels):
            size = self.branching ** (level + 1)
            yield counts[first : first + size]
            first += size

    @cached_property
    def _variances(self) -> list[float]:
        """a_h, from the leaves up."""
        found = [1.0]
        while len(found) < self.levels:
            found.append(1.0 / (1.0 + 1.0 / (self.branching * found[-1])))
        return found

    def noises(self, boundaries: Counts, share: float) -> tuple[Numbers, Numbers]:
        """Of (what lies left of a boundary) - share (all): with which factors the nodes' noises are in it.

        Returns, for each boundary, the sum of the squared factors and the largest. A node's z with factor r gives its
        own noise the factor a_h r, and the z of its children (1 - a_h) r. Beside the path to the boundary that is all;
        on it children get more: the one at place i of j whole ones and a part c gets k_i - (j + c)/branching, with k_i
        = 1, c or 0.
        """
        b, a = self.branching, self._variances
        most = [1.0]
        for height in range(1, self.levels):
            most.append(max(a[height], (1.0 - a[height]) * most[-1]))
        place, size = boundaries.astype(np.float64), float(self.leaves)
        above = place / size - share
        squares, largest = np.zeros(len(place)), np.zeros(len(place))
        for height in range(self.levels - 1, -1, -1):
            size /= b
            whole = np.minimum(np.floor(place / size), b - 1.0)
            part = (place - whole * size) / size
            mean = (whole + part) / b
            left, on, right = (above + k - mean for k in (1.0, part, 0.0))
            squares += a[height] * (whole * left**2 + (b - 1.0 - whole) * right**2) + (a[height] * on) ** 2
            beside = np.maximum(np.where(whole > 0, abs(left), 0.0), np.where(whole < b - 1, abs(right), 0.0))
            largest = np.maximum(largest, np.maximum(beside * most[height], a[height] * abs(on)))
            above = (1.0 - a[height]) * on
            place = place - whole * size
        return squares, largest


@lru_cache(maxsize=64)
def best_tree(bins: int, budget: Budget, height: int) -> tuple[RangeTree, Noise]:
    """The tree with the least mean squared error over all boundaries, and its noise: from public numbers alone.

    One unit is in one node of every level, and moves it by at most `height`.
    """
    found = []
    for branching in sorted({b for b in _BRANCHINGS if b <= max(bins, 2)} | ({bins} if 2 <= bins <= 256 else set())):
        levels = 1
        while branching**levels < bins:
            levels += 1
        tree = RangeTree(branching, levels)
        noise = replace(additive_noise(budget, levels, height), draws=tree.nodes)
        boundaries = np.unique(np.linspace(0, bins, min(bins + 1, _TRIED)).astype(np.int64))
        squares, _ = tree.noises(boundaries, 0.5)
        error = float(squares.mean()) * noise.variance
        found.append((error, levels, tree, noise))
    return min(found, key=lambda one: one[:2])[2:]
