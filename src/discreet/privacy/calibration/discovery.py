"""Gaussian offset releases of several Misra-Gries sketches: sigma and the cut for (epsilon, delta).

A sketch publishes a0 = alpha + Z_0 and, for its stored keys, v_x = c_x + alpha + Z_x if v_x - a0 >= 1 + t, all Z
discrete Gaussian of sigma. By Lemma 8 of [LT] neighbouring sketches move (c + alpha, alpha) by 1 in one place on the
keys that both store, and a key that one stores alone has a count of at most 1; at most two of them (1 and 0).

Let M' be M without the keys that one of the two sketches stores alone. M' of one sketch and of its neighbour are
Gaussian releases of vectors that differ by 1 in one place, and M differs from M' only where such a key is shown, which
has the probability

    s(t) <= P[Z - Z_0 >= t] + P[Z - Z_0 >= t+1].

One event is in at most L of the sketches. So, with delta_L(epsilon) of L places that differ by 1 (`gaussian`),

    P[M(S) in E] <= P[M'(S) in E] + L s <= e^epsilon P[M'(S') in E] + delta_L + L s
                 <= e^epsilon P[M(S') in E] + delta_L + (1 + e^epsilon) L s,

also where what a sketch is fed depends on what was published before (docs/privacy/continual.md).

[LT] Lebeda, Tetek: Better Differentially Private Approximate Histograms and Heavy Hitters using the Misra-Gries Sketch.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from discreet.errors import ParameterError
from discreet.privacy.calibration.gaussian import (
    discrete_gaussian_delta,
    discrete_gaussian_mass,
    discrete_gaussian_sigma,
    discrete_gaussian_tail,
    discrete_gaussian_tails,
    sum_of_two,
)
from discreet.privacy.calibration.tails import smallest
from discreet.privacy.checks import positive_number, probability, whole_number

_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)  # of delta for the cut; the best is taken
_REACH = 39.0  # sigmas; exp(-760) is left outside
_ROUNDING = 1e-10  # relative, of sums of positive terms
_LARGEST = 600.0  # epsilon: what holds for it holds for a larger one, whose exponential is none


def _shown(sigma: float, t: int) -> float:
    """s(t): the chance that a key of count 1 or one of count 0 is shown; never understated."""
    wide, kappa = sum_of_two(sigma, sigma)
    if kappa < 2.0:
        together = discrete_gaussian_tail(wide, t) + discrete_gaussian_tail(wide, t + 1)
        return min(1.0, kappa * together * (1.0 + _ROUNDING))
    reach = math.ceil(_REACH * sigma)
    d = np.arange(-reach, reach + 1, dtype=np.float64)  # the noise of the offset
    tails = discrete_gaussian_tails(sigma, d + t) + discrete_gaussian_tails(sigma, d + t + 1.0)
    inside = float((discrete_gaussian_mass(sigma, d) * tails).sum())
    return inside * (1.0 + _ROUNDING) + 4.0 * discrete_gaussian_tail(sigma, reach + 1)


def discovery_delta(epsilon: float, sigma: float, t: int, sketches: int) -> float:
    """delta of as many sketches as one event is in, with noise of sigma and cut 1 + t; never understated."""
    both = (1.0 + math.exp(epsilon)) * sketches * _shown(sigma, t)
    return discrete_gaussian_delta(epsilon, sigma, changes=sketches) + both * (1.0 + _ROUNDING)


@lru_cache(maxsize=256)
def discovery_calibration(epsilon: float, delta: float, sketches: int) -> tuple[float, int]:
    """(sigma, t): the smallest t for which some split of delta between noise and cut is enough."""
    epsilon, delta = min(positive_number("epsilon", epsilon), _LARGEST), probability("delta", delta)
    sketches = whole_number("sketches", sketches)
    sigma, t = min((_with_share(epsilon, delta, sketches, share) for share in _SHARES), key=lambda found: found[::-1])
    while t > 0 and discovery_delta(epsilon, sigma, t - 1, sketches) <= delta:  # what the noise leaves of its share
        t -= 1
    return sigma, t


def _with_share(epsilon: float, delta: float, sketches: int, share: float) -> tuple[float, int]:
    sigma = discrete_gaussian_sigma(epsilon, delta * (1.0 - share), changes=sketches)
    most = delta * share * (1.0 - 1e-6) / (1.0 + math.exp(epsilon)) / sketches
    if most == 0.0:
        raise ParameterError("delta is too small for epsilon")
    return sigma, smallest(lambda t: _shown(sigma, t) <= most, 1)
