"""Tails of one and of two discrete Laplace noises, in log space.

P[Z = z] = (1-q)/(1+q) q^|z| with q = exp(-rate); `rate` is 1/scale, that is epsilon over the l1-sensitivity. The
closed forms hold to a relative 1e-12 down to the smallest float and beyond (the logarithm does not underflow).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet._later import np
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY

if TYPE_CHECKING:
    import numpy.typing as npt


def log_tail(rate: float, s: int) -> float:
    """log P[Z >= s].

    P[Z >= s] = q^s / (1+q) for s >= 0, and 1 - P[Z >= 1-s] by symmetry below.
    """
    if s < 0:
        return math.log1p(-math.exp(log_tail(rate, 1 - s)))
    return -rate * s - math.log1p(math.exp(-rate))


def upper_tail(rate: float, s: int) -> float:
    """P[Z >= s], never understated."""
    return min(1.0, math.exp(log_tail(rate, s)) * (1 + 1e-12))


@lru_cache(maxsize=1024)  # streams ask for the same at every tick
def laplace_reach(rate: float, most: float) -> int:
    """The smallest b >= 0 that Z exceeds with probability at most `most`."""
    return smallest(lambda b: upper_tail(rate, b + 1) <= most)


def log_below(rate: float, s: int) -> float:
    """log P[Z < s]."""
    return math.log1p(-math.exp(log_tail(rate, s))) if s >= 1 else log_tail(rate, 1 - s)


def log_any_shown(rate: float, cuts: Sequence[int], times: int = 1) -> float:
    """log of 1 - prod_s P[Z < s]^times: the chance that one of this many independent noises reaches its cut.

    Where it is below e^-30 the sum of the chances is returned: it is larger, by a relative 1e-13 at most.
    """
    tails = [log_tail(rate, s) for s in cuts]
    largest = max(tails)
    union = largest + math.log(times) + math.log(math.fsum(math.exp(tail - largest) for tail in tails))
    if union < -30.0:
        return union
    return math.log(-math.expm1(times * math.fsum(log_below(rate, s) for s in cuts)))


def log_sum_tail(rate: float, s: int) -> float:
    """log P[Z + Z' >= s] of two independent noises; their difference has the same law.

    P[Z + Z' = w] = ((1-q)/(1+q))^2 q^|w| (|w| + (1+q^2)/(1-q^2)), and summed over w >= s >= 0
    P[Z + Z' >= s] = q^s / (1+q)^2 * ( s (1-q) + (1 + q + 2 q^2)/(1+q) ).
    """
    if s < 0:
        return math.log1p(-math.exp(log_sum_tail(rate, 1 - s)))
    q = math.exp(-rate)
    return -rate * s - 2.0 * math.log1p(q) + math.log(s * -math.expm1(-rate) + (1.0 + q + 2.0 * q * q) / (1.0 + q))


_LAMBDAS = (*(0.0001 * 5000.0 ** (i / 39) for i in range(40)), *(1.0 - 0.5 * 0.02 ** (i / 19) for i in range(1, 20)))


def weighted_sum_reach(
    squares: npt.NDArray[np.float64], largest: npt.NDArray[np.float64], log_inverse: float
) -> npt.NDArray[np.float64]:
    """Reaches t, in units of the scale, with P[sum k_i Z_i > t] <= exp(-log_inverse), for independent Laplace noises.

    E[exp(x Z)] = (cosh(1/b) - 1)/(cosh(1/b) - cosh x) <= 1/(1 - x^2 b^2), as (cosh u - 1)/u^2 grows with u. By Chernoff
    with K the largest |k_i|, R = sum(k_i^2)/K^2, and any y in (0, 1), as -ln(1 - y u) <= -u ln(1 - y) for u in [0, 1]:

        t = b K (log_inverse - R ln(1 - y))/sqrt(y)

    Args:
        squares: sum(k_i^2), for each sum.
        largest: K, for each sum.
        log_inverse: The logarithm of 1 over the probability.
    """
    widest = np.maximum(largest, 1e-12)
    ratio, best = squares / widest**2, np.full(len(squares), np.inf)
    for y in _LAMBDAS:
        np.minimum(best, (log_inverse - ratio * math.log1p(-y)) / math.sqrt(y), out=best)
    return np.asarray(widest * best * (1.0 + 1e-9))


def _log_below(rate: float, s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """log P[Z < s] for an array of whole numbers."""
    normaliser = math.log1p(math.exp(-rate))
    with np.errstate(under="ignore"):
        above = np.log1p(-np.exp(-rate * np.maximum(s, 1.0) - normaliser))
    below = -rate * (1.0 - s) - normaliser
    return np.where(s >= 1, above, below)


def log_any_shown_each(rate: float, cuts: Sequence[npt.NDArray[np.float64]], times: int = 1) -> npt.NDArray[np.float64]:
    """`log_any_shown` for arrays of cuts."""
    normaliser = math.log1p(math.exp(-rate))
    # For s < 1 the bound e^0 is far above e^-30, which is all it has to be.
    tails = [np.where(s >= 1, -rate * s - normaliser, 0.0) for s in cuts]
    union = np.logaddexp.reduce(tails) + math.log(times)
    hidden = np.sum([_log_below(rate, s) for s in cuts], axis=0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(np.where(union < -30.0, union, np.log(-np.expm1(times * hidden))))


def any_of_log_delta(rate: float, t: int, keys: int) -> float:
    """log P[at least one of `keys` noises Z_i with Z_i - Z_0 >= t], Z_0 shared, t >= 0. Never understated.

    sum_d p(d) (1 - P[Z < d+t]^keys), summed for d from -t-40/rate to 40/rate; what lies outside is bounded by
    P[Z < -t-40/rate] and keys P[Z > 40/rate] P[Z >= t+40/rate] and added. For rates so small that the sum
    would be long, the union bound keys P[Z - Z_0 >= t] is returned: it is larger.
    """
    union = math.log(keys) + log_sum_tail(rate, t)
    reach = math.ceil(40.0 / rate)
    if keys == 1 or t + 2 * reach > 2_000_000:
        return union + SAFETY
    q = math.exp(-rate)
    d = np.arange(-t - reach, reach + 1, dtype=np.float64)
    log_probability = -rate * np.abs(d) + math.log(-math.expm1(-rate)) - math.log1p(q)
    with np.errstate(under="ignore"):
        log_terms = log_probability + log_any_shown_each(rate, [d + t], keys)
    largest = float(log_terms.max())
    left = log_tail(rate, t + reach + 1)
    right = math.log(keys) + log_tail(rate, reach + 1) + log_tail(rate, t + reach + 1)
    total = math.fsum(np.exp(log_terms - largest)) + math.exp(left - largest) + math.exp(right - largest)
    return min(union, largest + math.log(total)) + SAFETY


def smallest_shift(log_delta_of: Callable[[int], float], delta: float, least: int = 0) -> int:
    """The smallest whole t >= `least` with log_delta_of(t) <= log(delta); log_delta_of must not increase."""
    # nextafter: the logarithm of delta may have been rounded up.
    target = math.nextafter(math.log(delta), -math.inf)
    return smallest(lambda t: log_delta_of(t) <= target, least)


def smallest(holds: Callable[[int], bool], least: int = 0) -> int:
    """The smallest whole number from `least` on for which something holds that holds for all larger ones."""
    if holds(least):
        return least
    step = 1
    while not holds(least + step):
        step *= 2
    low, high = least + step // 2, least + step
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=1024, typed=True)
def chan_threshold(epsilon: float, delta: float, capacity: int) -> int:
    """Noise of scale k/epsilon on every stored counter (the baseline of section 4): 1 + t, exact.

    The l1-sensitivity is k and up to k keys of count 1 are isolated: delta = 1 - (1 - P[Z >= t])^k. It also holds for
    merged sketches (Corollary 18).
    """
    epsilon, delta, k = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("capacity", capacity),
    )
    return 1 + smallest_shift(lambda t: log_any_shown(epsilon / k, [t], k) + SAFETY, delta)
