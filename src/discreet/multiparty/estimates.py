"""What the aggregator knows of many items at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.privacy import Estimate, Guarantee
from discreet.privacy.checks import probability

__all__ = ["Estimates", "Numbers"]

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Estimates:
    """Estimated counts of the items asked for, in their order, with the variance of each.

    ``values`` may be negative and are not cut, so that sums and averages of them stay unbiased. ``shortfall`` is what a
    biased protocol may have left out, at most; 0 for the unbiased ones.
    """

    values: Numbers
    variances: Numbers
    guarantee: Guarantee
    shortfall: float = 0.0

    def __len__(self) -> int:
        return len(self.values)

    @property
    def deviations(self) -> Numbers:
        """The standard deviation of each."""
        return np.sqrt(self.variances)

    def bounds(self, confidence: float = 0.95) -> tuple[Numbers, Numbers]:
        """(lower, upper) for each item by itself, not for all of them together.

        As many standard deviations as a normal or a Laplace variable of that variance needs, whichever is more: sums
        over many parties are close to normal, and the noise of a single one has the tails of a Laplace.
        """
        level = probability("confidence", confidence)
        if level < 0.5:
            raise ParameterError(f"confidence must be at least 0.5, not {confidence!r}")
        reach = max(NormalDist().inv_cdf((1 + level) / 2), -math.log1p(-level) / math.sqrt(2)) * self.deviations
        return self.values - reach, self.values + reach + self.shortfall

    def __getitem__(self, index: int) -> Estimate:
        lower, upper = self.bounds()
        return Estimate(float(self.values[index]), float(lower[index]), float(upper[index]), self.guarantee)

    def __repr__(self) -> str:
        return f"Estimates({len(self)} items, {self.guarantee.sentence()})"
