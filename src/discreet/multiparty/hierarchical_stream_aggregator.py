"""The aggregator of a stream with levels of intervals: what is asked of it, is asked of a moment."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.multiparty.estimates import Estimates
from discreet.multiparty.interval_questions import IntervalQuestions
from discreet.multiparty.ordered import Levels, Strings
from discreet.multiparty.stream_aggregator import StreamAggregator, StreamEstimates
from discreet.privacy import Guarantee
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from discreet.events.universe import Universe
    from discreet.multiparty.hierarchical_stream import HierarchicalStream

__all__ = ["HierarchicalStreamAggregator", "Moment"]


class HierarchicalStreamAggregator(StreamAggregator):
    """Receives packets as that of a `Stream` does; `at(time)` answers about the intervals."""

    stream: HierarchicalStream

    def at(self, time: int | None = None) -> Moment:
        """What is known of the window that ends with a step, or of all since the beginning.

        By default up to `time`, the last step that half of the parties told about. After more messages ask for a new
        one: a moment keeps its total.
        """
        return Moment(self, *self._span(time))


class Moment(IntervalQuestions):
    """Counts, ranges, heavy hitters and quantiles of the steps (since, time], of what the parties told about.

    Nobody says at how many steps something arrived, so the total is an estimate, too: the sum over the coarsest
    intervals, at least 0 and at most the steps that were told about.
    """

    def __init__(self, aggregator: HierarchicalStreamAggregator, since: int, time: int) -> None:
        self.since, self.time = since, time
        self._aggregator = aggregator

    @property
    def _ordered(self) -> tuple[Universe | Strings, Levels]:
        stream = self._aggregator.stream
        return stream.universe, stream.intervals

    @property
    def guarantee(self) -> Guarantee:
        """What the messages of a party promise."""
        return self._aggregator.guarantee

    def estimate(self, items: Any) -> StreamEstimates:
        """Unbiased counts of items, and whom they are from (`coverage`, `absent`)."""
        return self._aggregator.estimate(items, self.time)

    def interval_counts(self, level: int, intervals: npt.ArrayLike) -> Estimates:
        """Unbiased counts of intervals of a level, by their numbers."""
        level = whole_number("level", level, 0, self._aggregator.stream.tracks - 1)
        span = self._aggregator._span(self.time)  # refused when some of it was forgotten since
        return self._aggregator._counts(level, np.asarray(intervals, np.uint64), *span)

    @cached_property
    def _coarsest(self) -> Estimates:
        levels = self._ordered[1]
        return self.interval_counts(0, levels.children(np.zeros(0, np.int64), 0))

    @property
    def told(self) -> int:
        """The steps that parties told about, all together: there are no more items."""
        return sum(voice.spans.count(self.since, self.time) for voice in self._aggregator._voices.values())

    @property
    def total(self) -> float:
        """How many items there are, about."""
        return min(max(float(self._coarsest.values.sum()), 0.0), float(self.told))

    @property
    def total_deviation(self) -> float:  # type: ignore[override]
        """At most: estimates of one level come from the same messages and may err together."""
        return float(np.sqrt(self._coarsest.variances).sum())

    def __repr__(self) -> str:
        return f"Moment(steps {self.since + 1} to {self.time}, {self.guarantee.sentence()})"
