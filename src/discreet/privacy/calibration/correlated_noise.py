"""Gaussian noise with a part that all counters share, and a cut: for sketches whose counters move in one direction.

Published are the keys with 2 c_x + Z_x + eta >= 2 T among those of positive count, and what they are rounded to: Z_x
discrete Gaussian of sigma for every counter, one eta of sigma' for all; the noise is in half counts. Neighbouring
sketches are p steps (`height`) apart, u of them up and d = p - u down; a step moves counters by 0 or 1, all in one
direction. So c - c' lies in [-d, u] in every counter, and a key that one sketch alone holds has a count of at most u
in the first, d in the second. There are at most k counters (`changes`) in either.

Put a = u - d and let the first sketch's eta be n, the second's n + a. What is left between the two is 2 (c - c') - a in
[-p, p] on every common counter: at most p on each Z, in place of 2p. So what is published comes from E (n + a with the
first sketch, eta with the second) and from j common counters that differ by at most p given E; and given E an isolated
key is hidden with probability F1(n) = P[Z < 2T - 2u - n] in the first, F2(n) = P[Z < 2T - p - n] in the second. With g
the law of eta and delta_j that of `gaussian.unit_change_delta`, the divergence is at most

    sum_n g(n) [ 1 - F1^i + F1^i delta_j(x_n) ],   x_n = epsilon - (2 n a + a^2)/(2 sigma'^2) - i log F1 + i' log F2,

with i isolated keys in the first and i' in the second. It grows with i, i' and j (fewer are post-processing), so
i = i' = k - j; if all steps go one way (a = p or -p) only one sketch has keys of its own. Without common counters the
output is which keys are shown: P[one of k keys of count p is shown] is enough for all u and d, and E need not be known.

The variance of the noise is smallest at sigma^2/sigma'^2 = sqrt(k). The ratio used is the whole number r nearest to it
that is odd if k is: then (k+r)/2 counters can move, the best test of which weighs Z and eta as it would if it saw E,
and the bound for common counters is attained. docs/privacy/central.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.privacy.calibration.gaussian import (
    discrete_gaussian_mass,
    discrete_gaussian_tail,
    discrete_gaussian_tails,
    gaussian_sigma,
    smallest_sigma,
    unit_change_delta,
)
from discreet.privacy.calibration.tails import smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number

Array = npt.NDArray[np.float64]

_LARGEST_CHANGES = 10_000_000
_BLOCKS = 128  # of values of eta in a sigma'; below that every value is one
_HIDDEN = -700.0  # where the logarithm of a chance is below, the chance counts as 0
_ROUNDING = 1e-10  # relative; more than what sums and exponents of this module are off by


class _Law:
    """The two noises, with the values of eta in blocks.

    On a block [n0, n1] the sum over n is bounded by P[block] and the terms at their largest: F1 and F2 fall with n, the
    divergence with both, and (2 n a + a^2) is largest at an end of [n0, n1] and, over several a, at an end of those.
    """

    def __init__(self, sigma: float, shared: float, height: int, left_out: float) -> None:
        self.sigma, self.shared, self.height = sigma, shared, height
        reach = math.ceil(shared * math.sqrt(2.0 * math.log(1.0 / left_out))) + 1
        width = math.ceil(shared / _BLOCKS)
        self.first = np.arange(-reach, reach + 1, width, dtype=np.float64)
        self.last = self.first + (width - 1)
        nearest = np.clip(0.0, self.first, self.last)
        self.mass = width * discrete_gaussian_mass(shared, nearest)
        self.outside = 2.0 * discrete_gaussian_tail(shared, reach + 1)

    def log_hidden(self, cut: int) -> Array:
        """log P[Z < cut - n] at the end of every block, never overstated."""
        shown = discrete_gaussian_tails(self.sigma, cut - self.last)
        with np.errstate(divide="ignore"):
            return np.log1p(-np.minimum(shown, 1.0))

    def shown(self, keys: int, threshold: int) -> float:
        """P[one of this many keys of count p is shown]."""
        hidden = keys * self.log_hidden(2 * (threshold - self.height))
        return self._total(-np.expm1(hidden))

    def delta(
        self, epsilon: float, common: int, isolated: int = 0, threshold: int = 0, a: tuple[int, int] | None = None
    ) -> float:
        """The bound for up to this many common and isolated keys, in this direction, for all a from a[0] to a[1]."""
        p = self.height
        ends = (p, p) if a is None else a
        loss = np.max([2.0 * n * end + end * end for n in (self.first, self.last) for end in ends], axis=0)
        x = epsilon - loss / (2.0 * self.shared * self.shared)
        mine, yours = np.zeros_like(x), np.zeros_like(x)
        if isolated and ends[1] > -p:
            mine = isolated * self.log_hidden(2 * threshold - p - ends[1])
        if isolated and ends[0] < p:
            yours = isolated * self.log_hidden(2 * threshold - p)
        kept, reached = np.maximum(mine, _HIDDEN), np.maximum(yours, _HIDDEN)
        change = unit_change_delta(x - kept + reached, self.sigma, np.full_like(x, common), p)
        change = np.where(yours < _HIDDEN, 1.0, change)
        with np.errstate(under="ignore"):
            terms = -np.expm1(kept) + np.exp(kept) * change
        return self._total(np.where(mine < _HIDDEN, 1.0, terms))

    def _total(self, terms: Array) -> float:
        with np.errstate(under="ignore"):
            return min(1.0, float((self.mass * terms).sum()) * (1.0 + _ROUNDING) + self.outside)


Box = tuple[tuple[int, int], tuple[int, int]]  # a from .. to, j from .. to


def _boxes(k: int, p: int) -> list[Box]:
    """All steps up, all down, and what lies between; every number of common keys but 0."""
    between = [((2 - p, p - 2), (1, k))] if p > 1 else []
    return [((p, p), (1, k)), ((-p, -p), (1, k)), *between]


def _halves(box: Box, k: int, p: int) -> list[Box]:
    (low, high), (few, many) = box
    if many > few and (many - few) * 2 * p >= (high - low) * k:
        middle = (few + many) // 2
        return [((low, high), (few, middle)), ((low, high), (middle + 1, many))]
    if high > low:
        middle = low + (high - low) // 4 * 2  # u - d has the parity of p
        return [((low, middle), (few, many)), ((middle + 2, high), (few, many))]
    return []


def _holds(law: _Law, epsilon: float, delta: float, k: int, threshold: int) -> bool:
    """Whether the bound is at most delta for every a and j.

    A box of several j and a is bounded by its most common keys together with its most isolated ones, and halved where
    that is too much.
    """
    boxes = _boxes(k, law.height)
    while boxes:
        box = boxes.pop()
        a, (few, many) = box
        if law.delta(epsilon, many, k - few, threshold, a) <= delta:
            continue
        halves = _halves(box, k, law.height)
        if not halves:
            return False
        boxes += halves
    return True


def discrete_correlated_delta(
    epsilon: float, sigma: float, shared: float, threshold: int, changes: int, *, height: int = 1
) -> float:
    """delta of given noises and cut. Never understated; every a and j in turn, so meant for few counters."""
    epsilon, sigma = positive_number("epsilon", epsilon), positive_number("sigma", sigma)
    k, p = whole_number("changes", changes), whole_number("height", height)
    law = _Law(sigma, positive_number("shared", shared), p, 1e-40)
    bounds = (law.delta(epsilon, j, k - j, threshold, (a, a)) for a in range(-p, p + 1, 2) for j in range(1, k + 1))
    return max(law.shown(k, threshold), *bounds)


@lru_cache(maxsize=256, typed=True)
def correlated_calibration(epsilon: float, delta: float, changes: int, height: int = 1) -> tuple[float, float, int]:
    """(sigma, sigma', threshold): the noises in half counts, the threshold in counts.

    The least noise that hides `changes` common counters, each up to `height` steps apart, and then the smallest
    threshold. What is returned was checked for every number of common and isolated keys and for all directions.
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    k, p = whole_number("changes", changes), whole_number("height", height)
    if k > _LARGEST_CHANGES:
        raise ParameterError(f"changes must be at most {_LARGEST_CHANGES}, not {k}")
    root = math.isqrt(k)
    r = root + (k - root) % 2

    def law(sigma: float) -> _Law:
        return _Law(sigma, sigma / math.sqrt(r), p, min(1e-12 * delta, 1e-20))

    def delta_at(sigma: float) -> float:
        return law(sigma).delta(epsilon, k)

    sigma = smallest_sigma(delta_at, delta, gaussian_sigma(epsilon, delta, p * math.sqrt(k + r)))
    found = law(sigma)
    threshold = smallest_shift(lambda t: math.log(found.shown(k, t) or 5e-324), delta, least=p + 1)
    # A mixture of common and isolated keys has not been seen to need more. It is checked, not assumed.
    while not _holds(found, epsilon, delta, k, threshold):
        threshold += 1
    return found.sigma, found.shared, threshold
