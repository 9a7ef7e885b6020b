"""Private SpaceSaving ([SS] Algorithm 3, corrected): the exact delta of its cut.

C_x + Z_x is published iff it is at least M + 1 + t, where M is at least the smallest counter of the shorter of the two
streams: floor((n-1)/k) when the length n is public, floor((n + Z_n)/k) when it is not. By Lemma 4 of [SS] neighbouring
states are of four kinds. Common counters differ by 1 in at most one place, and in S1 and S3 only. Keys that one state
holds alone have at most the smallest counter plus one: in S2 one of min+1 against one of min, in S3 one of min against
one of min, in S4 {min+1, min} against {min, min}. So an output without such a key never has more than e^eps times the
probability in the other run (one counter or one hidden key moves by one step), and the divergence is the chance that
one of them is shown, largest in S4:

    delta(t) = 1 - (1 - r(t)) (1 - r(t+1)),      r(s) = P[Z >= s].

[SS] Holland: private SpaceSaving. Free counters stand for keys of count 0 that nobody sees.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.privacy.calibration.offset import _group_factor
from discreet.privacy.calibration.safety import SAFETY
from discreet.privacy.calibration.tails import log_any_shown, log_any_shown_each, log_tail, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number

__all__ = [
    "space_saving_delta",
    "space_saving_noisy_delta",
    "space_saving_noisy_threshold",
    "space_saving_paper_margin",
    "space_saving_threshold",
]

Array = npt.NDArray[np.float64]


def space_saving_delta(epsilon: float, t: int, *, max_items: int = 1) -> float:
    """delta of the cut M + 1 + t with a public length; for m events of a user by group privacy."""
    epsilon, t, m = positive_number("epsilon", epsilon), whole_number("t", t, 0), whole_number("max_items", max_items)
    log_delta = log_any_shown(epsilon / m, [t, t + 1]) + _group_factor(epsilon, m) + SAFETY
    return min(1.0, math.exp(min(0.0, log_delta)))


@lru_cache(maxsize=1024, typed=True)
def space_saving_threshold(epsilon: float, delta: float, *, max_items: int = 1) -> int:
    """The smallest whole t >= 0 whose delta is at most `delta`, with a public length."""
    epsilon, delta, m = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("max_items", max_items),
    )
    group = _group_factor(epsilon, m) + SAFETY
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
    return one + _group_factor(epsilon + length_epsilon, m) + 10 * SAFETY


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
