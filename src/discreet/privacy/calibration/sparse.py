"""The Gaussian sparse histogram: Theorem 23 of [LT23], after Wilkins, Kifer, Zhang, Karrer (2024), and on integers.

Neighbouring sketches differ in at most L counts, all 1 higher in one of them; i of these keys only that sketch holds
(with count 1), the other j = L - i both. Noise goes on every count that is not 0, and a key is published iff
count + noise >= 1 + t. With F = P[Z < t], the probability that an isolated key stays hidden, and delta_j the
divergence of j common counts that differ by 1, the two directions give

    1 - F^i + F^i delta_j(epsilon - i log F)         and         delta_j(epsilon + i log F) :

an output without isolated keys has F^i times the probability of its common part in one sketch and 1 times in the
other. Fewer than L changes cost no more, since leaving a key out of the output is post-processing. Nothing here needs
a density: on integers F = P[Z <= t-1], and delta_j is that of discrete Gaussians (`gaussian.unit_change_delta`).
Both expressions fall as F grows, so a lower bound of F keeps delta from being understated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
from scipy import special

from discreet.errors import ParameterError
from discreet.privacy.calibration._validate import positive, probability, whole
from discreet.privacy.calibration.gaussian import (
    discrete_gaussian_sigma,
    discrete_gaussian_tail,
    unit_change_delta,
)
from discreet.privacy.calibration.tails import smallest_shift

__all__ = ["discrete_gshm_delta", "gshm_calibration", "gshm_delta"]

Array = npt.NDArray[np.float64]
Change = Callable[[Array, float, Array], Array]

_LARGEST_CHANGES = 10_000_000
_BLOCK = 1 << 17


def _continuous_change(x: Array, sigma: float, changes: Array) -> Array:
    """Phi(sqrt(j)/2s - x s/sqrt(j)) - e^x Phi(-sqrt(j)/2s - x s/sqrt(j)), for every real x."""
    mu = np.sqrt(changes) / sigma
    first = special.log_ndtr(mu / 2.0 - x / mu)
    second = x + special.log_ndtr(-mu / 2.0 - x / mu)
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(first) * (1e-11 - np.expm1(np.minimum(0.0, second - first))))


def _largest(change: Change, epsilon: float, sigma: float, log_hidden: float, L: int, common: Array) -> float:
    """The larger of the two directions, over the given numbers j >= 1 of common keys and j = 0."""
    largest = -math.expm1(L * log_hidden)
    for start in range(0, len(common), _BLOCK):
        j = common[start : start + _BLOCK]
        log_all_hidden = (L - j) * log_hidden
        with np.errstate(under="ignore"):
            kept = np.exp(log_all_hidden) * change(epsilon - log_all_hidden, sigma, j)
        forward = -np.expm1(log_all_hidden) + kept
        backward = change(epsilon + log_all_hidden, sigma, j)
        largest = max(largest, float(forward.max()), float(backward.max()))
    return min(1.0, largest)


def _all_common(L: int) -> Array:
    return np.arange(1, L + 1, dtype=np.float64)


def _some_common(L: int) -> Array:
    """About a hundred values of j, dense at both ends: enough to search with, never to conclude with."""
    steps = np.unique(np.round(np.geomspace(1, L, 48)))
    return np.unique(np.concatenate([steps, L + 1 - steps]))


def gshm_delta(epsilon: float, sigma: float, tau: float, changes: int) -> float:
    """Theorem 23: delta for continuous Gaussian noise, `changes` = L, and keys kept at count + noise >= 1 + tau."""
    epsilon, sigma, tau = positive("epsilon", epsilon), positive("sigma", sigma), positive("tau", tau)
    L = whole("changes", changes)
    log_hidden = float(special.log_ndtr(tau / sigma))
    return _largest(_continuous_change, epsilon, sigma, log_hidden, L, _all_common(L))


def discrete_gshm_delta(epsilon: float, sigma: float, t: int, changes: int) -> float:
    """delta for discrete Gaussian noise, `changes` = L, and keys kept at count + noise >= 1 + t. Never understated."""
    epsilon, sigma, t = positive("epsilon", epsilon), positive("sigma", sigma), whole("t", t)
    L = whole("changes", changes)
    return _discrete(epsilon, sigma, t, L, _all_common(L))


def _discrete(epsilon: float, sigma: float, t: int, L: int, common: Array) -> float:
    log_hidden = math.log1p(-discrete_gaussian_tail(sigma, t))
    return _largest(unit_change_delta, epsilon, sigma, log_hidden, L, common)


def _best_sigma(delta_of: Callable[[float], float], low: float, high: float, good_enough: float) -> tuple[float, float]:
    """Golden-section search for the sigma of least delta; stops at the first that is good enough."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = delta_of(left), delta_of(right)
    for _ in range(48):
        if min(at_left, at_right) <= good_enough:
            break
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = delta_of(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = delta_of(right)
    return (left, at_left) if at_left < at_right else (right, at_right)


@lru_cache(maxsize=256, typed=True)
def gshm_calibration(epsilon: float, delta: float, changes: int) -> tuple[float, int]:
    """(sigma, threshold) with the smallest integer threshold.

    A key is published iff count + discrete Gaussian noise >= threshold = 1 + t. The pair returned was checked
    against every j, whatever the search before it assumed.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    L = whole("changes", changes)
    if L > _LARGEST_CHANGES:
        raise ParameterError(f"changes must be at most {_LARGEST_CHANGES}, not {L}")
    some, every = _some_common(L), _all_common(L)
    # Two conditions bind from either side: all L keys common needs sigma >= least, all L isolated needs P[Z < t]^L
    # >= 1 - delta, which only gets harder as sigma grows. So the search starts at the smallest t that can do.
    least = discrete_gaussian_sigma(epsilon, delta, changes=L)
    t = smallest_shift(lambda t: _log_isolated(least, t, L), delta, least=1)
    while True:
        sigma, reached = least, _discrete(epsilon, least, t, L, some)
        if reached > delta:
            of_sigma = partial(_discrete_at, epsilon=epsilon, t=t, L=L, common=some)
            sigma, reached = _best_sigma(of_sigma, least, 2.0 * least, delta)
        if reached <= delta and _discrete(epsilon, sigma, t, L, every) <= delta:
            return sigma, 1 + t
        t += 1


def _discrete_at(sigma: float, *, epsilon: float, t: int, L: int, common: Array) -> float:
    return _discrete(epsilon, sigma, t, L, common)


def _log_isolated(sigma: float, t: int, L: int) -> float:
    """log of 1 - P[Z < t]^L, never understated."""
    shown = discrete_gaussian_tail(sigma, t)
    return math.log(-math.expm1(L * math.log1p(-shown))) if 0.0 < shown < 1.0 else math.log(shown or 5e-324)
