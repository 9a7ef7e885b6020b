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
from functools import lru_cache

import numpy as np

from discreet.errors import ParameterError
from discreet.privacy.calibration.gaussian import (
    discrete_gaussian_sigma,
    discrete_gaussian_tail,
    unit_change_delta,
)
from discreet.privacy.calibration.tails import smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number

_LARGEST_CHANGES = 10_000_000
_BLOCK = 1 << 17


def _largest(epsilon: float, sigma: float, log_hidden: float, L: int) -> float:
    """The larger of the two directions over all numbers j = 0, ..., L of common keys."""
    largest = -math.expm1(L * log_hidden)
    for start in range(1, L + 1, _BLOCK):
        j = np.arange(start, min(start + _BLOCK, L + 1), dtype=np.float64)
        log_all_hidden = (L - j) * log_hidden
        with np.errstate(under="ignore"):
            kept = np.exp(log_all_hidden) * unit_change_delta(epsilon - log_all_hidden, sigma, j)
        forward = -np.expm1(log_all_hidden) + kept
        backward = unit_change_delta(epsilon + log_all_hidden, sigma, j)
        largest = max(largest, float(forward.max()), float(backward.max()))
    return min(1.0, largest)


def discrete_gshm_delta(epsilon: float, sigma: float, t: int, changes: int) -> float:
    """Theorem 23 on integers: delta for `changes` = L, and keys kept at count + noise >= 1 + t. Never understated."""
    epsilon, sigma, t = positive_number("epsilon", epsilon), positive_number("sigma", sigma), whole_number("t", t)
    L = whole_number("changes", changes)
    log_hidden = math.log1p(-discrete_gaussian_tail(sigma, t))
    return _largest(epsilon, sigma, log_hidden, L)


@lru_cache(maxsize=256, typed=True)
def gshm_calibration(epsilon: float, delta: float, changes: int) -> tuple[float, int]:
    """(sigma, threshold) with the smallest integer threshold.

    A key is published iff count + discrete Gaussian noise >= threshold = 1 + t. The pair returned was checked against
    every j, whatever the search before it assumed.
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    L = whole_number("changes", changes)
    if L > _LARGEST_CHANGES:
        raise ParameterError(f"changes must be at most {_LARGEST_CHANGES}, not {L}")
    # All L keys common needs this sigma; all L isolated then needs this t, and more with more noise.
    sigma = discrete_gaussian_sigma(epsilon, delta, changes=L)
    t = smallest_shift(lambda t: _log_isolated(sigma, t, L), delta, least=1)
    # A mixture of common and isolated keys has not been seen to need more. It is checked, not assumed.
    while discrete_gshm_delta(epsilon, sigma, t, L) > delta:
        t += 1
    return sigma, 1 + t


def _log_isolated(sigma: float, t: int, L: int) -> float:
    """log of 1 - P[Z < t]^L, never understated."""
    shown = discrete_gaussian_tail(sigma, t)
    return math.log(-math.expm1(L * math.log1p(-shown))) if 0.0 < shown < 1.0 else math.log(shown or 5e-324)
