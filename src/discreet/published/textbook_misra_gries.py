"""Private Misra-Gries for sketches that drop the counters that reach zero."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import ClassVar

from discreet._data_class import dataclass
from discreet.central._base import per_event, positive
from discreet.privacy.calibration.tails import any_of_log_delta, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import safe_ceil
from discreet.published.private_misra_gries import SharedNoise
from discreet.summaries import MisraGries, RawCounts


@dataclass(frozen=True)
class TextbookMisraGries(SharedNoise):
    """One noise on every counter that is not zero, one more that all share, and a cut that hides k keys at once.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy).
    Guarantee: (epsilon, delta). It does not need the keys whose counters are zero, which textbook sketches drop: any
        Misra-Gries sketch of one stream has the same positive counters.
    Noise: c_x + Z_0 + Z_x for c_x > 0, all discrete Laplace of scale m/epsilon.
    Threshold: published iff the noisy count is at least the threshold. "exact": 1 + t with the smallest t for which
        P[some Z_i + Z_0 >= t, i = 1..k] is at most delta. "paper": 1 + 2 ln((k+1)/(2 delta))/epsilon, used only
        where it is at least the exact one.
    Error: f - n/(k+1) <= c <= f, plus two noises.
    Argument: up to k keys of count 1 may be in one sketch only; otherwise [LT] Lemma 9. docs/privacy/central.md.
    """

    name: ClassVar[str] = "private Misra-Gries, textbook sketch"
    reference: ClassVar[str] = "[LT] section 5.1"
    calibrations: ClassVar[tuple[str, ...]] = ("exact", "paper")

    def _per_event(self) -> tuple[float, float]:
        return per_event(*self.spends, self.most_events)

    def _exact_threshold(self) -> int:
        return textbook_threshold(*self._per_event(), self.capacity)

    @cached_property
    def threshold(self) -> int:
        if self.calibration == "exact":
            return self._exact_threshold()
        return textbook_paper_threshold(*self._per_event(), self.capacity)

    def _counts(self, summary: MisraGries) -> RawCounts:
        return positive(summary.not_private_counts())


@lru_cache(maxsize=1024, typed=True)
def textbook_threshold(epsilon: float, delta: float, capacity: int) -> int:
    """The same release, exact: the smallest 1 + t with P[some Z_i + Z_0 >= t, i = 1..k] <= delta.

    Worst case: one sketch holds k keys of count 1, its neighbour, one decrement later, none. In that direction the
    divergence is the probability that one of the k keys is published. In the other the isolated keys may be added to
    the smaller sketch with count 0, which changes its law by P[some Z_i + Z_0 >= t+1] at most, and the rest is a
    shift of the shared noise by 1; that is less. The case of one differing counter has one isolated key.
    """
    epsilon, delta, k = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("capacity", capacity),
    )
    return 1 + smallest_shift(lambda t: any_of_log_delta(epsilon, t, k), delta)


def textbook_paper_threshold(epsilon: float, delta: float, capacity: int) -> int:
    """Section 5.1 of [LT23] as printed, for sketches that drop zero counters: 1 + 2 ln((k+1)/(2 delta))/epsilon."""
    epsilon, delta, k = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("capacity", capacity),
    )
    return safe_ceil(1.0 + 2.0 * (math.log(k + 1) - math.log(2.0) - math.log(delta)) / epsilon)
