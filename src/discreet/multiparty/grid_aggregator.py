"""The aggregator of a grid: counts of rectangles from the messages of every combination of levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import ParameterError
from discreet.multiparty.aggregator import MOST_LISTED
from discreet.multiparty.estimates import ConsistentEstimates, Estimates
from discreet.multiparty.grid import split
from discreet.multiparty.hierarchy_aggregator import LevelAggregator
from discreet.multiparty.interval_questions import sum_of_parts
from discreet.privacy import Estimate
from discreet.releases.simplex import on_simplex, within_simplex

if TYPE_CHECKING:
    from discreet.multiparty.grid_hierarchy import GridHierarchy

__all__ = ["GridAggregator"]


class GridAggregator(LevelAggregator):
    """Hears the messages of a `GridHierarchy`, and counts rectangles."""

    protocol: GridHierarchy

    def range_count(self, low: Any, high: Any, confidence: float = 0.95) -> Estimate:
        """How many items lie from `low` to `high` in every dimension, both corners included.

        The sum of the estimates of at most 2 (d - 1) intervals a level and dimension, multiplied over the dimensions,
        or all items minus those of the rest if these are fewer: unbiased. It may be negative. The interval is as of
        one dimension: variances are added up across combinations, and `sum_variance` is that within one.

        Args:
            low: The first corner, a value for each dimension.
            high: The last one.
            confidence: Of the interval.
        """
        grid = self.protocol.universe
        first, last = ([int(side[at]) for side in split(grid.words([low, high]), grid.sizes)] for at in (0, 1))
        if any(start > end for start, end in zip(first, last, strict=True)):
            raise ParameterError("low must not come after high in any dimension")
        boxes, rest = self.protocol.levels.cover(first, [end + 1 for end in last])
        return sum_of_parts(self, boxes, rest, confidence)

    def estimate(self, items: Any, *, consistent: bool = False) -> Estimates:
        """How often each item (a tuple of values) occurs with all parties heard; `consistent` as of every protocol."""
        grid, last = self.protocol.universe, len(self.protocol.levels) - 1
        words = grid.words(items)
        if not consistent:
            return self.interval_counts(last, words)
        self._check_unbiased()
        listed = grid.size <= MOST_LISTED
        asked = grid.occupied() if listed else np.unique(words)
        counts, total = self.interval_counts(last, asked), float(self.total)
        values = (on_simplex if listed else within_simplex)(counts.values, total)
        at = np.searchsorted(asked, words)
        return ConsistentEstimates(
            values[at], counts.variances[at], counts.guarantee, unbiased=counts.values[at], total=total
        )
