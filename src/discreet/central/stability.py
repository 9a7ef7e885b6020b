"""The stability histogram of exact counts: what every sketch is compared with."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

from discreet._data_class import dataclass, field
from discreet.central._base import Approximate, Drawn
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.privacy.calibration.tails import log_any_shown, log_tail, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number, whole_or_none
from discreet.privacy.rounding import SAFETY
from discreet.releases.error_model import MOST_ITEMS, ErrorModel, Noise
from discreet.summaries import ExactCounts, Summary


@dataclass(frozen=True)
class Stability(Approximate):
    """Noise on the count of every item that occurs, and a cut that hides items only one unit has.

    Unit: one event, or up to m events of a user (`User(m)`).
    Guarantee: (epsilon, delta).
    Noise: discrete Laplace of scale m/epsilon, or discrete Gaussian ("gaussian") of the sigma that goes with the
        smallest threshold by the exact form of Theorem 23 of [LT]; a user's items must then be `distinct`.
    Threshold: x is published iff f_x + Z_x >= 1 + t, t the smallest with the exact delta at most delta: the chance that
        an item only the larger stream has is published, m items once each, or (unless `distinct`) one item m times.
    Error: the noise alone; exact counts lose nothing.
    Argument: docs/privacy/central.md.

    Args:
        noise: "laplace" or "gaussian".
        distinct: Whether the items of a user are all different. A claim about the data that the guarantee repeats.
        max_distinct: A public bound of how many different items occur. Only the width of `bounds` rests on it. Without
            it they are for the items that passed, and a lower end that is not above the cut is 1: an item that occurred
            less often may have passed for its noise.
    """

    name: ClassVar[str] = "stability histogram of exact counts"
    reference: ClassVar[str] = "Korolova et al. (2009), [LT] Theorem 23; docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (ExactCounts,)
    takes_merged: ClassVar[bool] = True

    budget: Budget
    unit: Unit = field(default_factory=Event)
    noise: str = "laplace"
    distinct: bool = False
    max_distinct: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_or_none("max_distinct", self.max_distinct)
        if self.noise not in ("laplace", "gaussian"):
            raise ParameterError(f"noise must be 'laplace' or 'gaussian', not {self.noise!r}")
        if self.noise == "gaussian" and not self.distinct and self.most_events > 1:
            raise ParameterError("Gaussian noise needs distinct=True for users: repeated items move one count by m")

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        epsilon, delta = self.spends
        if self.noise == "gaussian":
            return Fraction(gshm_calibration(epsilon, delta, self.most_events)[0])
        return self.most_events / Fraction(epsilon)

    @cached_property
    def threshold(self) -> int:
        epsilon, delta = self.spends
        items = self.most_events
        if self.noise == "gaussian":
            return gshm_calibration(epsilon, delta, items)[1]
        return 1 + stability_threshold(epsilon, delta, max_items=items, distinct=self.distinct)

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(Noise(self.noise, self.scale, self.max_distinct or MOST_ITEMS))

    @property
    def assumptions(self) -> tuple[str, ...]:
        different = ("the items of a user are all different",) if self.distinct and self.most_events > 1 else ()
        return (*different, *super().assumptions)

    def draw(self, summary: ExactCounts, source: RandomSource) -> Drawn:
        raw = summary.not_private_counts()
        draw = source.discrete_gaussian if self.noise == "gaussian" else source.discrete_laplace
        noisy = raw.counts + draw(self.scale, len(raw))
        kept = noisy >= self.threshold
        model = self.error_model
        if self.max_distinct is None:  # of the items that are published, whose number is as private as they are
            model = ErrorModel(Noise(self.noise, self.scale, max(int(kept.sum()), 1)), of_published=True)
        return Drawn(raw, noisy, kept, error_model=model)


def _log_delta(epsilon: float, t: int, items: int, distinct: bool) -> float:
    rate = epsilon / items
    each_once = log_any_shown(rate, [t], items)
    one_often = -math.inf if distinct else log_tail(rate, t + 1 - items)
    return max(each_once, one_often) + SAFETY


def stability_delta(epsilon: float, t: int, *, max_items: int = 1, distinct: bool = False) -> float:
    """delta of the histogram with cut 1 + t and noise of scale m/epsilon for users of up to m items.

    A user creates keys with counts c_1, c_2, ... that sum to at most m: delta = 1 - prod (1 - P[Z >= t+1-c_j]).
    -log(1 - P[Z >= t+1-c]) is convex in c, so the largest is m keys once each or one key m times; with
    `distinct` items only the first. t must be at least m - 1.
    """
    items = whole_number("max_items", max_items)
    t = whole_number("t", t, items - 1)
    return min(1.0, math.exp(min(0.0, _log_delta(positive_number("epsilon", epsilon), t, items, distinct))))


@lru_cache(maxsize=1024, typed=True)
def stability_threshold(epsilon: float, delta: float, *, max_items: int = 1, distinct: bool = False) -> int:
    """The smallest whole t whose delta is at most `delta`: a key is published iff count + noise >= 1 + t."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    items = whole_number("max_items", max_items)
    return smallest_shift(lambda t: _log_delta(epsilon, t, items, distinct), delta, least=items - 1)
