"""Quantiles of numbers in a public range: noisy counts in a tree over it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.central._quantiles import Counts, QuantileMechanism, RangeTree, best_tree, votes_in
from discreet.central.quantile_grid import MOST_BINS
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Guarantee
from discreet.privacy.checks import probability
from discreet.releases.error_model import Noise
from discreet.releases.quantile_list import QuantileRelease
from discreet.summaries.people import each_once


@dataclass(frozen=True)
class QuantileTree(QuantileMechanism):
    """Quantiles from noisy counts of the nodes of a tree over a public grid.

    Unit: one row, or a person with all of their rows (`User()`).
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: on each of the nodes of L levels, with h = 1 for rows and h = m votes for people: discrete Laplace of scale
        L h/epsilon; discrete Gaussian with sigma^2 = L h^2/(2 rho); of (epsilon, delta) the one with the smaller
        variance. The branching, and so L, is the one of the smallest error (16 for Laplace, 2 for Gaussian noise).
    Error: how many lie left of a boundary is known up to about 19/epsilon rows (standard deviation; 65,536 bins), or
        3.7/sqrt(rho); and a quantile up to its bin. The intervals follow from the tails of the noises' sum.
    Argument: a row is in one node of every level; a person gives their rows at most m votes in all, so the counts of
        a level move by at most m in sum; docs/privacy/quantiles.md.
    """

    way: ClassVar[str] = "a tree over a range"

    def __post_init__(self) -> None:
        if self.grid.bins > MOST_BINS:
            raise ParameterError(f"a tree can have at most 2**20 bins; got {self.grid.bins:,}")
        super().__post_init__()

    @cached_property
    def _calibrated(self) -> tuple[RangeTree, Noise]:
        return best_tree(self.grid.bins, self.budget, self.height)

    @property
    def leaves(self) -> int:
        """The bins."""
        return self.grid.bins

    # ---- what is counted. NOT private --------------------------------------------------------------------------------

    def counts(
        self, places: npt.NDArray[Any], people: npt.NDArray[Any] | None = None, rows: Counts | None = None
    ) -> Counts:
        """What lies in every bin: rows, or votes of people. NOT private.

        Args:
            places: The bin of each row, as `Grid.places` gives it.
            people: For people: whose row it is, a number from 0 on.
            rows: How many rows each person has in all, where these are those of one group: all of them share the votes.
        """
        bins = self.grid.bins
        if self.max_rows is None:
            return self.of_bins(np.bincount(places, minlength=bins).astype(np.int64))
        if people is None:
            return np.zeros(bins, np.int64)
        return votes_in(places, people, rows, self.max_rows, bins)

    def of_bins(self, every: Counts) -> Counts:
        """The same, of rows that are counted already: how many are in each bin. NOT private."""
        return every

    def nodes(self, counts: Counts) -> Counts:
        """The counts of all nodes of the tree. NOT private: what gets the noise."""
        return self.tree.counts(counts)

    # ---- what is published -------------------------------------------------------------------------------------------

    def draw(self, counts: Counts, source: RandomSource) -> Counts:
        """All nodes with their noise: all that is random, and the seam of the audit."""
        return self.with_noise(counts, source)

    def _answer(self, noisy: Counts, guarantee: Guarantee) -> QuantileRelease:
        from scipy.optimize import isotonic_regression

        left = self.tree.left_of(noisy)
        total, bins = float(left[-1]), self.grid.bins
        left = left[: bins + 1]
        rising = isotonic_regression(left).x
        first, last = self.intervals(left, total)
        wanted = np.asarray(self.quantiles) * max(total, 0.0)  # noise may make all of a few rows fewer than none
        places = np.clip(np.searchsorted(rising[1:], wanted, side="left"), 0, bins - 1)
        gap = rising[places + 1] - rising[places]
        part = np.divide(wanted - rising[places], gap, out=np.full(len(wanted), 0.5), where=gap > 0)
        part = np.clip(part, 0.0, 1.0)
        values = [self.grid.value(*each) for each in zip(places.tolist(), part.tolist(), strict=True)]
        return self.release(values, [*zip(first.tolist(), last.tolist(), strict=True)], guarantee)

    @property
    def randomness(self) -> tuple[str, float]:
        """The law of the noise on every node, and its scale in rows, or votes."""
        return self.noise.law, float(self.scale) / self.vote

    @property
    def typical_error(self) -> float:
        """By how many rows, or votes of people, a rank is off: the standard deviation, in the mean over boundaries."""
        boundaries = each_once(np.linspace(0, self.grid.bins, min(self.grid.bins + 1, 513)).astype(np.int64))
        squares, _ = self.tree.noises(boundaries, 0.5)
        return float(np.sqrt(squares.mean() * self.noise.variance)) / self.vote

    def error_bound(self, beta: float, share: float = 0.5) -> float:
        """With probability 1 - beta: by how many rows, or votes of people, the rank of a quantile is off at most."""
        return float(self.reach(share, probability("beta", beta)).max()) / self.vote
