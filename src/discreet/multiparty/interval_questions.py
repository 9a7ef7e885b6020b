"""What is asked of counts of intervals: ranges, heavy hitters, quantiles. All of it is post-processing."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, ParameterError
from discreet.multiparty.estimates import Estimates, Numbers
from discreet.multiparty.ordered import Levels, Nodes, Strings, occupied
from discreet.privacy import Estimate, Guarantee
from discreet.privacy.checks import probability, whole_number
from discreet.releases.simplex import on_simplex

if TYPE_CHECKING:
    from discreet.events.universe import Universe

__all__ = ["HasParts", "HeavyItems", "IntervalQuestions", "Quantile", "sum_of_parts"]


@dataclass(frozen=True, repr=False)
class HeavyItems:
    """The items whose estimated counts reach the threshold, largest first.

    `complete` is False when items may be missing, as the threshold is within the noise: more intervals looked heavy
    than were followed, or parties may have left out as much.
    """

    items: list[Any]
    estimates: Estimates
    threshold: float
    complete: bool

    @property
    def guarantee(self) -> Guarantee:
        """What every party was promised."""
        return self.estimates.guarantee

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"HeavyItems({len(self)} items, {self.guarantee.sentence()})"


@dataclass(frozen=True, repr=False)
class Quantile:
    """The item below or at which a share of all items lies; `lower` and `upper` are items too."""

    value: Any
    lower: Any
    upper: Any
    guarantee: Guarantee

    def __repr__(self) -> str:
        return f"Quantile(value={self.value!r}, lower={self.lower!r}, upper={self.upper!r})"


class HasParts(ABC):
    """Whoever has unbiased counts of the parts of every level."""

    @property
    @abstractmethod
    def total(self) -> float:
        """How many items there are."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What every party was promised."""

    @abstractmethod
    def interval_counts(self, level: int, intervals: npt.ArrayLike) -> Estimates:
        """Unbiased counts of intervals of a level, by their numbers."""

    def sum_variance(self, level: int, intervals: npt.ArrayLike, counts: Estimates) -> float:
        """The variance of the sum of these counts of a level, at most: as if they all erred together."""
        return float(np.sqrt(counts.variances).sum()) ** 2


class IntervalQuestions(HasParts):
    """Answers from unbiased counts of the intervals of every level, whoever has them."""

    total_deviation: float = 0.0
    """The standard deviation of the total; 0 where it is public."""

    @property
    @abstractmethod
    def _ordered(self) -> tuple[Universe | Strings, Levels]:
        """The universe, and its intervals."""

    def range_count(self, low: Any, high: Any, confidence: float = 0.95) -> Estimate:
        """How many items lie from `low` to `high`, both included.

        The sum of the estimates of at most 2 (d - 1) intervals a level, or all items minus those of the rest if these
        are fewer and it is public how many there are: unbiased. It may be negative.

        Levels have noise of their own, so their variances are added up; how far estimates of one level err together
        says `sum_variance`.
        """
        universe, levels = self._ordered
        first, last = (int(word) for word in universe.words([low, high]))
        if first > last:
            raise ParameterError("low must not come after high")
        inside = levels.cover(first, last + 1)
        outside = [
            np.concatenate(pair)
            for pair in zip(levels.cover(0, first), levels.cover(last + 1, levels.size), strict=True)
        ]
        rest = self.total_deviation == 0 and sum(map(len, outside)) < sum(map(len, inside))
        return sum_of_parts(self, outside if rest else inside, rest, confidence)

    # ---- heavy hitters ---------------------------------------------------------------------------------------------

    def heavy_hitters(self, share: float, *, confidence: float = 0.95, max_candidates: int | None = None) -> HeavyItems:
        """The items that make up at least this share of all items.

        From the top down the intervals are followed whose counts may reach share * total, by the upper ends of their
        intervals of confidence; single items are listed if their estimates reach it.

        Args:
            share: phi, greater than 0 and less than 1.
            confidence: Of the intervals' bounds; higher follows more of them.
            max_candidates: How many intervals of a level are followed at most, the largest. By default 4/share, and at
                least 1000; no more than 1/share are heavy.
        """
        share = probability("share", share)
        most = max(1000, math.ceil(4 / share)) if max_candidates is None else max_candidates
        most = whole_number("max_candidates", most, 1, 2**24)
        threshold, complete = share * self.total, True
        (universe, levels), nodes = self._ordered, np.zeros(0, np.int64)
        for level, width in enumerate(levels.widths):
            nodes = levels.children(nodes, level)
            nodes = nodes[occupied(universe, nodes, width)]
            counts = self.interval_counts(level, nodes)
            if width > 1:
                _, upper = counts.bounds(confidence)
                kept = np.flatnonzero(upper >= threshold)
                if len(kept) > most:
                    complete = False
                    kept = kept[np.argsort(-counts.values[kept], kind="stable")[:most]]
                nodes = np.sort(nodes[kept])
        order = np.argsort(-counts.values, kind="stable")
        order = order[counts.values[order] >= threshold]
        chosen = Estimates(
            counts.values[order], counts.variances[order], self.guarantee, counts.shortfall, counts.excess
        )
        return HeavyItems(universe.items(nodes[order]), chosen, threshold, complete)

    # ---- quantiles -------------------------------------------------------------------------------------------------

    def quantile(self, share: float, confidence: float = 0.95) -> Quantile:
        """The first item such that it and all before it make up at least this share of all items.

        Quantiles come from one non-negative measure: the counts of an interval's parts are replaced by the nearest
        non-negative numbers that add up to the interval's own. So they never decrease when `share` grows.
        """
        if not (isinstance(share, (int, float)) and not isinstance(share, bool) and 0 <= share <= 1):
            raise ParameterError(f"share must be from 0 to 1, not {share!r}")
        probability("confidence", confidence)
        if self.total == 0:
            raise DataError("no items were heard of, so there is no quantile")
        target = share * self.total
        value = self._quantile(target)
        low, high = self._quantile_bounds(target, share * self.total_deviation, confidence)
        value_item, lower, upper = self._ordered[0].items([value, min(low, value), max(high, value)])
        return Quantile(value_item, lower, upper, self.guarantee)

    def _parts(self, node: int, level: int) -> tuple[Nodes, Estimates]:
        """The parts of an interval of the level above, and their counts."""
        universe, levels = self._ordered
        nodes = levels.children(np.array([node]), level)
        nodes = nodes[occupied(universe, nodes, levels.widths[level])]
        return nodes, self.interval_counts(level, nodes)

    def _quantile(self, target: float) -> int:
        node, mass = 0, float(self.total)
        for level in range(len(self._ordered[1])):
            nodes, counts = self._parts(node, level)
            masses = on_simplex(counts.values, mass)
            # The first part that brings the sum to the target; rounding may leave the last one short of it.
            sums = np.cumsum(masses)
            reached = np.flatnonzero((sums >= target) & (masses > 0))
            place = int(reached[0]) if len(reached) else int(np.flatnonzero(masses > 0)[-1])
            target -= float(sums[place] - masses[place])
            node, mass = int(nodes[place]), float(masses[place])
        return node

    def _quantile_bounds(self, target: float, slack: float, confidence: float) -> tuple[int, int]:
        """The hull of what can hold the quantile, but for a probability of 1 - confidence over all comparisons.

        `slack` is the standard deviation of the target itself, which may err together with any count.
        """
        each = 1 - (1 - confidence) / len(self._ordered[1])
        return (
            self._edge(target, slack, each, lambda possible: int(possible[0]), lambda first, after: after),
            self._edge(target, slack, each, lambda possible: int(possible[-1]), lambda first, after: first - 1),
        )

    def _edge(
        self,
        target: float,
        slack: float,
        confidence: float,
        pick: Callable[[Nodes], int],
        beyond: Callable[[int, int], int],
    ) -> int:
        """Go down from the outermost interval that can hold the quantile to its outermost part that can.

        An interval can if the items up to its end may reach the target, and those before it may not. Where
        no part can, the quantile is beyond the interval, on the inner side.
        """
        levels = self._ordered[1]
        node, before, variance = 0, 0.0, 0.0
        for level in range(len(levels)):
            nodes, counts = self._parts(node, level)
            ends = before + np.cumsum(counts.values)
            spreads = variance + np.cumsum(np.sqrt(counts.variances)) ** 2  # as for ranges
            starts = np.concatenate([[before], ends[:-1]])
            start_spreads = np.concatenate([[variance], spreads[:-1]])
            if level == 0:
                ends[-1], spreads[-1] = self.total, 0.0  # the target is a share of it
            _, upper = _bounds(ends, (np.sqrt(spreads) + slack) ** 2, confidence, self.guarantee)
            lower, _ = _bounds(starts, (np.sqrt(start_spreads) + slack) ** 2, confidence, self.guarantee)
            places = np.arange(len(nodes))
            possible = np.flatnonzero(
                (upper + counts.shortfall * (1 + places) >= target) & (lower - counts.excess * places <= target)
            )
            if not len(possible):
                first = node * levels.widths[level - 1]
                return min(max(beyond(first, first + levels.widths[level - 1]), 0), levels.size - 1)
            place = pick(possible)
            node, before, variance = int(nodes[place]), float(starts[place]), float(start_spreads[place])
        return node


def sum_of_parts(aggregator: HasParts, parts: Sequence[npt.ArrayLike], rest: bool, confidence: float) -> Estimate:
    """How many items lie in these parts of each level; or, with `rest`, in none of them.

    Variances are added up across levels; within one `sum_variance` says how far estimates err together.
    """
    total, variance, shortfall, excess = 0.0, 0.0, 0.0, 0.0
    for level, nodes in enumerate(parts):
        if np.size(nodes):
            counts = aggregator.interval_counts(level, nodes)
            total += float(counts.values.sum())
            variance += aggregator.sum_variance(level, nodes, counts)
            shortfall += counts.shortfall * np.size(nodes)
            excess += counts.excess * np.size(nodes)
    value = aggregator.total - total if rest else total
    lower, upper = _bounds(np.array([value]), np.array([variance]), confidence, aggregator.guarantee)
    below, above = (shortfall, excess) if rest else (excess, shortfall)
    return Estimate(value, float(lower[0]) - below, float(upper[0]) + above, aggregator.guarantee)


def _bounds(values: Numbers, variances: Numbers, confidence: float, guarantee: Guarantee) -> tuple[Numbers, Numbers]:
    return Estimates(values, variances, guarantee).bounds(confidence)
