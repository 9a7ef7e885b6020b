"""Private SpaceSaving ([SS] Algorithm 3, corrected), with a cut that does not depend on the private length.

C_x + Z_x is published iff it is at least M + 1 + t, where M is at least the smallest counter of the shorter of the two
streams. An output without a key that one state holds alone costs e^eps; delta is the chance that one of them is shown,
largest in the state S4 of [SS] Lemma 4 (docs/privacy/central.md, "PrivateSpaceSaving"):

    delta(t) = 1 - (1 - r(t)) (1 - r(t+1)),      r(s) = P[Z >= s].
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field
from discreet.central._base import Drawn, RestsOnLength, per_event
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.offset_cut import group_factor
from discreet.privacy.calibration.tails import log_any_shown, log_any_shown_each, log_tail, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import SpaceSaving, Summary

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PrivateSpaceSaving(RestsOnLength):
    """One noise on every counter and a cut above what the smallest counter can be.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy).
    Guarantee: (epsilon, delta), where `stream_length` says where the length in the cut comes from: a public number, at
        least the number of events of both neighbours; or "noisy": `length_share` of epsilon is spent on n + Z_n, which
        is published through the offset. (Algorithm 3 takes |X|, which is private where it counts events.)
    Noise: C_x + Z_x, discrete Laplace of scale m/epsilon (of what is left of epsilon, with a noisy length).
    Threshold: public n: published iff C_x + Z_x >= floor((n-1)/k) + 1 + t; noisy: with offset = floor((n + Z_n)/k), iff
        C_x + Z_x - offset >= 1 + t. t is the smallest whose exact delta is at most delta. calibration="paper": more
        than n/k + 1 + ln(2/delta)/epsilon, public n only, with a delta of at most delta/2. `heavier_than=K` asks for
        more than n/K - gamma, too: it only lists less, and loses heavy hitters above n/K with a probability of delta/4
        each.
    Error: f <= C <= f + n/k, plus one noise.
    Argument: docs/privacy/central.md.
    """

    name: ClassVar[str] = "private SpaceSaving"
    reference: ClassVar[str] = "[SS] Algorithm 3, Lemma 4, corrected; docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (SpaceSaving,)

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    stream_length: int | str = field(kw_only=True)
    length_share: float = field(default=0.1, kw_only=True)
    calibration: str = field(default="exact", kw_only=True)
    heavier_than: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.heavier_than is not None:
            whole_number("heavier_than", self.heavier_than)
            if self.stream_length == "noisy":
                raise ParameterError("heavier_than is for a public length: give stream_length")
        if self.calibration not in ("exact", "paper"):
            raise ParameterError(f"calibration must be 'exact' or 'paper', not {self.calibration!r}")
        if self.calibration == "paper" and self.stream_length == "noisy":
            raise ParameterError("the paper's threshold is for a public length: use calibration='exact'")

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise on the counters, exactly."""
        return self.most_events / self._epsilons[0]

    @cached_property
    def threshold(self) -> int:
        """The cut; relative to the published offset when the length is noisy."""
        epsilon, delta = self.spends
        m, k = self.most_events, self.capacity
        if self.stream_length == "noisy":
            counters, length = (float(part) for part in self._epsilons)
            return 1 + space_saving_noisy_threshold(counters, delta, length, k, max_items=m)
        assert isinstance(self.stream_length, int)
        margin = Fraction(space_saving_paper_margin(*per_event(epsilon, delta, m)))
        if self.calibration == "paper":
            # The smallest integer greater than n/k + 1 + gamma.
            cut = math.floor(Fraction(self.stream_length, k) + 1 + margin) + 1
        else:
            cut = max(self.stream_length - 1, 0) // k + 1 + space_saving_threshold(epsilon, delta, max_items=m)
        if self.heavier_than is None:
            return cut
        return max(cut, math.floor(Fraction(self.stream_length, self.heavier_than) - margin) + 1)

    @cached_property
    def error_model(self) -> ErrorModel:
        noise = Noise("laplace", self.scale, self.capacity)
        if self.stream_length == "noisy":
            # n/k <= offset + 1 + |Z_n|/k
            length = Noise("laplace", self._length_scale, step=Fraction(1, self.capacity))
            return ErrorModel(noise, offset_noise=length, summary_above=1.0)
        assert isinstance(self.stream_length, int)
        return ErrorModel(noise, summary_above=float(self.stream_length // self.capacity))

    @property
    def _length_scale(self) -> Fraction:
        return self.most_events / self._epsilons[1]

    def draw(self, summary: SpaceSaving, source: RandomSource) -> Drawn:
        raw, offset = summary.not_private_counts(), None
        if self.stream_length == "noisy":
            offset = (summary.total + source.discrete_laplace(self._length_scale)) // self.capacity
        noisy = raw.counts + source.discrete_laplace(self.scale, len(raw))
        return Drawn(raw, noisy, noisy - (offset or 0) >= self.threshold, offset)


def space_saving_delta(epsilon: float, t: int, *, max_items: int = 1) -> float:
    """delta of the cut M + 1 + t with a public length; for m events of a user by group privacy."""
    epsilon, t, m = positive_number("epsilon", epsilon), whole_number("t", t, 0), whole_number("max_items", max_items)
    log_delta = log_any_shown(epsilon / m, [t, t + 1]) + group_factor(epsilon, m) + SAFETY
    return min(1.0, math.exp(min(0.0, log_delta)))


@lru_cache(maxsize=1024, typed=True)
def space_saving_threshold(epsilon: float, delta: float, *, max_items: int = 1) -> int:
    """The smallest whole t >= 0 whose delta is at most `delta`, with a public length."""
    epsilon, delta, m = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("max_items", max_items),
    )
    group = group_factor(epsilon, m) + SAFETY
    return smallest_shift(lambda t: log_any_shown(epsilon / m, [t, t + 1]) + group, delta)


def space_saving_paper_margin(epsilon: float, delta: float) -> float:
    """gamma = ln(2/delta)/epsilon of [SS] Algorithm 3: published iff the noisy count exceeds n/k + 1 + gamma."""
    return (math.log(2.0) - math.log(probability("delta", delta))) / positive_number("epsilon", epsilon)


def _log_block(rate: float, low: Array, high: Array) -> Array:
    """log P[low <= Z <= high] for arrays of whole numbers with 0 <= low: q^low (1 - q^(high-low+1)) / (1+q)."""
    count = np.maximum(high - low + 1.0, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-rate * low + np.log(-np.expm1(-rate * count)) - math.log1p(math.exp(-rate)))


def _log_noisy_delta(rate: float, length_rate: float, k: int, t: int) -> float:
    """log delta(t) for one event when the cut is floor((n + Z_n)/k) + 1 + t.

    With n' the shorter length and min <= floor(n'/k), the run of the longer stream has its cut at least
    1 + t + floor((Z_n + 1)/k) above min, that of the shorter 1 + t + floor(Z_n/k) (n' a multiple of k is the worst):

        forwards   sum_z p(z) [ 1 - (1 - r(t + j(z+1))) (1 - r(t + 1 + j(z+1))) ],      j(z) = floor(z/k)
        backwards  sum_z p(z) [ 1 - (1 - r(t + 1 + j(z)))^2 ]

    Summed over blocks of equal j, as far as Z_n has more than about e^-60 of delta; the mass beyond counts as shown.
    """
    reach = math.ceil((60.0 + rate * t) / (length_rate * k)) + 2
    j = np.arange(-reach, reach + 1, dtype=np.float64)
    directions = []
    for ahead, shifts in ((1, (0, 1)), (0, (1, 1))):
        low, high = j * k - ahead, (j + 1) * k - ahead - 1
        # A block is its part from 0 up and, mirrored, its part below 0.
        log_mass = np.logaddexp(
            _log_block(length_rate, np.maximum(low, 0.0), high), _log_block(length_rate, np.maximum(-high, 1.0), -low)
        )
        terms = log_mass + log_any_shown_each(rate, [t + j + s for s in shifts])
        beyond = math.log(2.0) + log_tail(length_rate, reach * k)
        largest = max(float(terms.max()), beyond)
        directions.append(largest + math.log(float(np.exp(terms - largest).sum()) + math.exp(beyond - largest)))
    return max(directions)


def _noisy(epsilon: float, length_epsilon: float, k: int, t: int, m: int) -> float:
    one = _log_noisy_delta(epsilon / m, length_epsilon / m, k, t)
    return one + group_factor(epsilon + length_epsilon, m) + 10 * SAFETY


def space_saving_noisy_delta(
    epsilon: float, length_epsilon: float, capacity: int, t: int, *, max_items: int = 1
) -> float:
    """delta of the cut floor((n + Z_n)/k) + 1 + t: `epsilon` goes to the counters, `length_epsilon` to the length."""
    epsilon, length_epsilon = positive_number("epsilon", epsilon), positive_number("length_epsilon", length_epsilon)
    k, t, m = whole_number("capacity", capacity), whole_number("t", t, 0), whole_number("max_items", max_items)
    return min(1.0, math.exp(min(0.0, _noisy(epsilon, length_epsilon, k, t, m))))


@lru_cache(maxsize=1024, typed=True)
def space_saving_noisy_threshold(
    epsilon: float, delta: float, length_epsilon: float, capacity: int, *, max_items: int = 1
) -> int:
    """The smallest whole t >= 0 for which the release with a noisy length has a delta of at most `delta`."""
    epsilon, length_epsilon = positive_number("epsilon", epsilon), positive_number("length_epsilon", length_epsilon)
    delta, k, m = probability("delta", delta), whole_number("capacity", capacity), whole_number("max_items", max_items)
    return smallest_shift(lambda t: _noisy(epsilon, length_epsilon, k, t, m), delta)
