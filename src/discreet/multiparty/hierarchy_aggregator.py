"""The aggregator of a hierarchy: counts of intervals from the messages of every level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.multiparty._base import Heard, Protocol
from discreet.multiparty.aggregator import Aggregator, Limits, liars_among
from discreet.multiparty.estimates import ConsistentEstimates, Estimates, Liars
from discreet.multiparty.interval_questions import HasParts, IntervalQuestions
from discreet.multiparty.ordered import Levels, Strings
from discreet.privacy.checks import whole_number
from discreet.releases.simplex import on_simplex

if TYPE_CHECKING:
    from discreet.events.universe import Universe
    from discreet.multiparty.hierarchy import Hierarchy, LevelProtocol

__all__ = ["HierarchyAggregator", "LevelAggregator"]


_ENOUGH = 20
"""From so many addends on their spread tells the variance of a sum: the quantiles of Student's law are then within
those of `Estimates.bounds`, which has room for a Laplace law."""


class LevelAggregator(Aggregator, HasParts):
    """Hears a message for every level, and counts the parts of each."""

    protocol: LevelProtocol

    def __init__(self, protocol: Protocol, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        super().__init__(protocol, limits)
        self._ready: dict[int, tuple[int, Heard]] = {}

    def interval_counts(self, level: int, intervals: npt.ArrayLike) -> Estimates:
        """Unbiased counts of intervals of a level, by their numbers.

        If reports were spread over the levels, the level's are a random n_l of all n: n/n_l times their counts, and the
        variance of that choice, f (n - f)/(n - 1) (n - n_l)/n_l, is added.
        """
        level = whole_number("level", level, 0, len(self.protocol.levels) - 1)
        nodes = np.asarray(intervals, np.uint64)
        protocol, heard = self.protocol.by_level[level], self._heard_at(level)
        values, variances = protocol._estimates(heard, nodes)
        bias = protocol._bias(heard)
        if self.protocol.local:
            n, here = self.total, sum(message.items for message, _ in heard)
            if here == 0:
                variances = np.full(len(nodes), float(n) ** 2)  # nothing is known of this level
            else:
                values, variances = values * (n / here), variances * (n / here) ** 2
                count = np.clip(values, 0.0, n)
                variances = variances + count * (n - count) / max(n - 1, 1) * (n - here) / here
        return Estimates(values, variances, self.guarantee, *bias)

    def sum_variance(self, level: int, intervals: npt.ArrayLike, counts: Estimates) -> float:
        """The variance of the sum of these counts of a level, at most: from how much what the parties add differs.

        Items that are asked for together may collide together, as hash functions are pairwise independent and no more.
        But parties have functions and noise of their own, and reports too: with 20 addends or more their spread is
        taken, which has the differences of their true counts in it. It is no less than the counts' own variances
        together, and no more than if they all erred together, as is assumed of fewer addends.
        """
        together, nodes = super().sum_variance(level, intervals, counts), np.asarray(intervals, np.uint64)
        if len(nodes) < 2:
            return together
        protocol, heard = self.protocol.by_level[level], self._heard_at(level)
        addends = protocol._addends(heard, nodes) if heard else np.zeros(0)
        if len(addends) < _ENOUGH:
            return together
        here = sum(message.items for message, _ in heard)
        scale = self.total / here if self.protocol.local and here else 1.0
        spread = len(addends) * float(np.var(addends, ddof=1)) * scale**2
        return min(max(spread, float(counts.variances.sum())), together)

    def _heard_at(self, level: int) -> Heard:
        """What was heard about a level, in the form that is quickest to work with."""
        everything = self._to_show()
        known = self._ready.get(level)
        if known is None or known[0] != len(everything):
            protocol = self.protocol.by_level[level]
            heard = [content[level] for _, content in everything if content[level] is not None]
            self._ready[level] = known = len(everything), protocol._consolidated(heard)
        return known[1]

    def _check_unbiased(self) -> None:
        if not self.protocol.by_level[0].unbiased:
            raise ParameterError(f"{self.protocol.protocol} leaves out a part of every count: make no whole of it")

    def liars(self, items: Any, share: float = 0.01) -> Liars:
        """How far each estimate would move if so many of the parties (of local protocols: reports) had not been heard.

        Of sampled reports an estimate is n/n_l times a sum over those of the last level, and liars choose their level:
        without m of them the factor is from (n - m)/n_l to n/(n_l - m), and the sum moves by what m reports add.
        """
        words, level = self.protocol.universe.words(items), len(self.protocol.levels) - 1
        protocol, heard, count = self.protocol.by_level[level], self._heard_at(level), liars_among(share, self.parties)
        too_high, too_low = protocol._influences(heard, words, count)
        if self.protocol.local and count:
            n, here = self.total, sum(message.items for message, _ in heard)
            if count >= here:  # without them nothing is known of the level
                too_high = too_low = np.full(len(words), float(n))
            else:
                sums, _ = protocol._estimates(heard, words)
                small, large = (n - count) / here, n / (here - count)
                least, most = sums - too_high, sums + too_low
                too_high = n / here * sums - np.where(least > 0, small, large) * least
                too_low = np.where(most > 0, large, small) * most - n / here * sums
        return Liars(share, count, too_high, too_low)


class HierarchyAggregator(LevelAggregator, IntervalQuestions):
    """Hears the messages of a `Hierarchy`, and answers questions about its intervals."""

    protocol: Hierarchy

    @property
    def _ordered(self) -> tuple[Universe | Strings, Levels]:
        return self.protocol.universe, self.protocol.levels

    def estimate(self, items: Any, *, consistent: bool = False) -> Estimates:
        """How often each item occurs with all parties heard.

        With `consistent` by the same non-negative measure as `quantile`: the parts of an interval have its own count.
        """
        words, last = self.protocol.universe.words(items), len(self.protocol.levels) - 1
        counts = self.interval_counts(last, words)
        if not consistent:
            return counts
        self._check_unbiased()
        known: dict[tuple[int, int], dict[int, float]] = {}
        values = np.array([self._mass(last, int(word), known) for word in words])
        return ConsistentEstimates(
            values, counts.variances, counts.guarantee, unbiased=counts.values, total=float(self.total)
        )

    def _mass(self, level: int, node: int, known: dict[tuple[int, int], dict[int, float]]) -> float:
        """The count of an interval in the measure; `known` are the parts of intervals that were computed already."""
        widths = self.protocol.levels.widths
        above = node * widths[level] // widths[level - 1] if level else 0
        if (level, above) not in known:
            mass = self._mass(level - 1, above, known) if level else float(self.total)
            nodes, counts = self._parts(above, level)
            known[level, above] = dict(zip(nodes.tolist(), on_simplex(counts.values, mass).tolist(), strict=True))
        return known[level, above][node]
