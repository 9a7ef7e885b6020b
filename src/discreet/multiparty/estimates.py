"""What the aggregator knows of many items at once."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field, replace
from discreet.errors import ParameterError
from discreet.privacy import Estimate, Guarantee
from discreet.privacy.checks import probability

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Estimates:
    """Estimated counts of the items asked for, in their order, with the variance of each.

    ``values`` may be negative and are not cut, so that sums and averages of them stay unbiased. ``shortfall`` is what a
    biased protocol may have left out, at most, and ``excess`` what it may have added, on average; 0 for the unbiased
    ones.
    """

    values: Numbers
    variances: Numbers
    guarantee: Guarantee
    shortfall: float = 0.0
    excess: float = 0.0

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
        return self.values - reach - self.excess, self.values + reach + self.shortfall

    def __getitem__(self, index: int) -> Estimate:
        lower, upper = self.bounds()
        return Estimate(float(self.values[index]), float(lower[index]), float(upper[index]), self.guarantee)

    def __repr__(self) -> str:
        return f"Estimates({len(self)} items, {self.guarantee.sentence()})"


@dataclass(frozen=True, repr=False, eq=False)
class ConsistentEstimates(Estimates):
    """Counts that could be: none is negative, and all items of the universe together have the total.

    The nearest such counts to the unbiased ones, in the Euclidean sense. They err less over all items and over sums of
    them; a frequent item of a large universe is on average too low. So ``values`` are not unbiased, and the intervals
    are those of the unbiased estimates, as far as they are possible: they hold as before.

    Attributes:
        unbiased: The estimates before.
        total: How many items, or reports, there are.
    """

    unbiased: Numbers = field(default_factory=lambda: np.zeros(0))
    total: float = 0.0

    def bounds(self, confidence: float = 0.95) -> tuple[Numbers, Numbers]:
        """(lower, upper) for each item by itself: the interval around its unbiased estimate, cut to 0 and the total.

        A true count is within these, so nothing is lost. An interval is widened to its value where that is outside.
        """
        lower, upper = Estimates.bounds(replace(self, values=self.unbiased), confidence)
        lower, upper = np.clip(lower, 0.0, self.total), np.clip(upper, 0.0, self.total)
        return np.minimum(lower, self.values), np.maximum(upper, self.values)


@dataclass(frozen=True, eq=False)
class Liars:
    """How far some parties could have moved each estimate, if they lied.

    Nobody knows who lies. An estimate without `count` of the parties that were heard, whichever they are, is at most
    `too_high` lower and at most `too_low` higher than the estimate that is shown.

    Attributes:
        share: The share of the parties (of local protocols: reports) that is assumed to lie.
        count: How many that is.
        too_high: Of each item asked for, how much of its estimate could be theirs.
        too_low: How much they could have taken away from it.
    """

    share: float
    count: int
    too_high: Numbers
    too_low: Numbers


def most_of(parts: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The largest sums of at most this many rows, column by column, and the largest of their negatives."""
    count = min(count, len(parts))
    if count == 0:
        return np.zeros(parts.shape[1]), np.zeros(parts.shape[1])
    ordered = np.sort(parts, axis=0)
    too_high: Numbers = np.maximum(ordered[-count:], 0.0).sum(axis=0)
    too_low: Numbers = np.maximum(-ordered[:count], 0.0).sum(axis=0)  # not -0
    return too_high, too_low
