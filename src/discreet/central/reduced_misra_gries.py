"""Misra-Gries with its sensitivity reduced: epsilon or rho over a known universe, or (epsilon, delta)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from discreet._data_class import dataclass
from discreet.central._noisy_entries import NoisyEntries, reduced_entries
from discreet.noise import RandomSource
from discreet.privacy.calibration.tails import log_tail, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY
from discreet.summaries import MisraGries, RawCounts, Summary


@dataclass(frozen=True)
class ReducedMisraGries(NoisyEntries):
    """The entries (c_x - gamma)^+, gamma = sum c/(k+1), with Laplace noise of scale below 2/epsilon, or less by rho.

    Unit: one event, or up to m events of a user (`User(m)`: Lemma 22).
    Guarantee: epsilon or rho-zCDP over a `universe`; (epsilon, delta) without one.
    Noise: in units of 1/(k+1) entries are integers of l1-sensitivity D = m (2k - 1) and l2-sensitivity
        m sqrt(k^2 + k - 1): discrete Laplace of scale D/epsilon on each, or discrete Gaussian for rho, in counts less
        than m/sqrt(2 rho).
    Threshold: over a universe of d items a public cut that with probability 1 - `spurious` no zero entry passes, then
        the k largest. Without: entries below D are first rounded to D or 0 at random, and published iff they reach D +
        t with the smallest t >= D for which P[Z >= t] is at most delta.
    Error: f - n/(k+1) <= entry <= f, plus one noise; the (epsilon, delta) rounding may add up to D/(k+1) < 2m.
    Argument: [LT] Lemma 16 with the sign of gamma's change corrected; docs/privacy/central.md.

    Items of the summary that are not in the universe are left out; items of the universe that never occurred may be
    published, with probability `spurious` in all.
    """

    name: ClassVar[str] = "sensitivity-reduced Misra-Gries"
    reference: ClassVar[str] = "[LT] Algorithm 3, Lemmas 15, 16 and 22, section 6"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)

    @property
    def sensitivity(self) -> int:
        return reduced_sensitivity(self.capacity, max_items=self.most_events)

    @property
    def squared_sensitivity(self) -> int:
        return reduced_squared_sensitivity(self.capacity, max_items=self.most_events)

    @property
    def step(self) -> Fraction:
        return Fraction(1, self.capacity + 1)

    @property
    def _raised(self) -> Fraction:
        return Fraction(0) if self.universe is not None else self.sensitivity * self.step

    def before_noise(self, entries: RawCounts, source: RandomSource) -> RawCounts:
        """An entry y < D becomes D with probability y/D, and 0 (left out) otherwise: [ALP] Algorithm 9."""
        y, D = entries.counts, self.sensitivity
        raised = source.uniform_integers(D, len(y)) < y
        return RawCounts(entries.items.filter(raised), np.maximum(y[raised], D))

    def _hidden_cut(self) -> int:
        epsilon, delta = self.spends
        return reduced_threshold(epsilon, delta, self.capacity, max_items=self.most_events)

    def entries(self, summary: Any) -> RawCounts:
        return reduced_entries(summary)


def reduced_sensitivity(capacity: int, *, max_items: int = 1) -> int:
    """l1-sensitivity of Algorithm 3 of [LT23] in units of 1/(k+1): 2k - 1 for one item, m (2k - 1) for m.

    In these units the sketch is the integer vector max(0, (k+1) c_x - sum c). When all k counters fall by 1 every
    entry falls by (k+1) - k = 1: at most k in all. When one counter rises by 1, its entry rises by k and each of
    the at most k - 1 other positive entries falls by 1: at most 2k - 1 (cutting at 0 shortens distances). The
    paper's proof has the sign of the change of gamma reversed and arrives at 2k + 1; both are below 2 (k + 1).
    """
    return (2 * whole_number("capacity", capacity) - 1) * whole_number("max_items", max_items)


def reduced_squared_sensitivity(capacity: int, *, max_items: int = 1) -> int:
    """The squared l2-sensitivity of Algorithm 3 of [LT23] in units of 1/(k+1): k^2 + k - 1 for one item.

    The moves are those of `reduced_sensitivity`: k entries by 1, or one by k and k - 1 others by 1. m items are m moves
    of that length at most: m^2 times as much.
    """
    k, m = whole_number("capacity", capacity), whole_number("max_items", max_items)
    return (k * k + k - 1) * m * m


@lru_cache(maxsize=1024, typed=True)
def reduced_threshold(epsilon: float, delta: float, capacity: int, *, max_items: int = 1) -> int:
    """(epsilon, delta) release of Algorithm 3: the threshold in units of 1/(k+1).

    With D the sensitivity: an entry 0 < y < D becomes D with probability y/D and 0 otherwise, positive entries get
    noise Z of scale D/epsilon, and an entry is published iff it is at least D + t. Then delta = P[Z >= t].

    Why: an entry below D is published with probability (y/D) P[Z >= t]. So an entry that moves by a share s of D below
    D costs (0, s P[Z >= t]), and above D (s epsilon, 0). One that crosses D, from (1-b) D to (1-b+s) D, exceeds the
    factor e^(s eps) by P[Z >= t] (e^(eps (s-b)) - (1-b) e^(s eps)), which is convex in b, 0 at b = 0 and at most
    s P[Z >= t] at b = s. Entries are independent and the shares sum to 1 at most. The reverse direction needs
    P[Z >= t] <= 1/(1 + e^epsilon), which t >= D ensures.
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    D = reduced_sensitivity(capacity, max_items=max_items)
    return D + smallest_shift(lambda t: log_tail(epsilon / D, t) + SAFETY, delta, least=D)
