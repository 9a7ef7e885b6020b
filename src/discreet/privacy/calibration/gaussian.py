"""Gaussian noise: tails of the discrete Gaussian, exact divergences, and sigma for (epsilon, delta).

The discrete Gaussian of parameter sigma has P[Z = z] proportional to exp(-z^2 / (2 sigma^2)) on the integers. When j
counts differ by h each, the privacy loss depends on the noise through the sum S of j noises alone, and

    delta_j(x) = P[S >= m] - e^x P[S >= m + j h],     m = the smallest integer greater than x sigma^2/h - j h/2,

is the hockey-stick divergence at e^x, for every real x. Counts that differ by less cost less: given the others, the
best test of one count is a cut (the ratio of the law to its shift is monotone), and what passes a cut grows with the
shift. For j = h = 1 that is [CKS20], Theorem 7. For j > 1 the law of S is
within a factor kappa_j of the discrete Gaussian of parameter sqrt(j) sigma (see `_log_kappa`), so that
delta_j(x) <= kappa_j (...) with that law in its place; kappa_j - 1 is below 1e-9 from sigma = 1.5 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet.errors import ParameterError
from discreet.privacy.calibration.zcdp import gaussian_rho, zcdp_rho
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY

Array = npt.NDArray[np.float64]

_ORDER = 11  # of the Euler-Maclaurin expansion
_LARGE = 12.0  # parameters from here on use it
_REACH = 40.0  # sums of smaller parameters stop this many sigmas out, where exp(-800) is left
# Bernoulli numbers B_2 .. B_10 over their factorials.
_BERNOULLI = [
    1 / 6 / math.factorial(2),
    -1 / 30 / math.factorial(4),
    1 / 42 / math.factorial(6),
    -1 / 30 / math.factorial(8),
    5 / 66 / math.factorial(10),
]
# With zeta(11), rounded up.
_REMAINDER = 2.0 * 1.0004941886041196 / (2.0 * math.pi) ** _ORDER
# Of He_11(u) = u^11 - 55 u^9 + 990 u^7 - 6930 u^5 + 17325 u^3 - 10395 u the largest root is 5.18800122437487094...,
# rounded up. From this number on He_11 has one sign: He_n' = n He_(n-1), and He_0 to He_11 are all positive here.
_LARGEST_ROOT = 5.188001224374871


# ---- the normal distribution, without scipy: importing `scipy.special` takes longer than calibrating a release -----


def _of_any_shape(function: Callable[[Array], Array], x: Any) -> Array:
    values = np.asarray(x, dtype=np.float64)
    return function(np.ascontiguousarray(values).ravel()).reshape(values.shape)


def ndtr(x: Any) -> Array:
    """P[N <= x], for every number of an array."""
    return _of_any_shape(_native.ndtr, x)


def log_ndtr(x: Any) -> Array:
    """log P[N <= x], for every number of an array."""
    return _of_any_shape(_native.log_ndtr, x)


def ndtri(probability: float) -> float:
    """The x with P[N <= x] = probability, which is greater than 0 and less than 1."""
    from statistics import NormalDist  # takes longer to load than most calibrations

    return NormalDist().inv_cdf(probability)


# ---- the discrete Gaussian ---------------------------------------------------------------------------------------


def _hermite(degree: int, u: Array) -> Array:
    """He_n(u) by Clenshaw's recursion, as `numpy.polynomial.hermite_e.hermeval` has it, bit for bit."""
    before: Array | float = 0.0
    last: Array | float = 1.0
    for n in range(degree - 1, 0, -1):
        before, last = 0.0 - last * n, before + last * u
    return before + last * u


def _relative_sum_by_series(m: Array, s: Array) -> tuple[Array, Array]:
    """(sum_{z >= m} g(z)) / g(m) for g(z) = exp(-z^2/(2 s^2)), m >= 0: Euler-Maclaurin value and a bound of its error.

    sum_{z >= m} g = int_m^inf g + g(m)/2 - sum_i B_2i/(2i)! g^(2i-1)(m) + R,
    |R| <= 2 zeta(n)/(2 pi)^n int_m^inf |g^(n)|,  g^(n)(z) = (-1)^n s^-n He_n(z/s) g(z),  n = 11.
    Beyond the largest root of He_n the integral is |g^(n-1)(m)|; elsewhere Cauchy-Schwarz gives
    int |g^(n)| <= s^(1-n) sqrt(2 pi n! P[N > m/s]).
    """
    u = m / s
    integral = s * math.sqrt(math.pi / 2.0) * _native.erfcx(u / math.sqrt(2.0))
    value = integral + 0.5
    for index, coefficient in enumerate(_BERNOULLI, start=1):
        degree = 2 * index - 1
        value = value + coefficient * s**-degree * _hermite(degree, u)
    beyond = np.abs(_hermite(_ORDER - 1, u)) * s ** (1 - _ORDER)
    with np.errstate(over="ignore"):
        inside = (
            s ** (1 - _ORDER)
            * np.sqrt(2.0 * math.pi * math.factorial(_ORDER) * _native.ndtr(-u))
            * np.exp(np.minimum(u, _LARGEST_ROOT) ** 2 / 2.0)
        )
    error = _REMAINDER * np.where(u > _LARGEST_ROOT, beyond, inside)
    return value, error


def _relative_sum_directly(m: Array, s: Array) -> tuple[Array, Array]:
    """The same for small s, term by term: exp(-(2 m i + i^2)/(2 s^2)) for i = 0, 1, ..."""
    i = np.arange(math.ceil(_REACH * float(s.max())) + 2, dtype=np.float64)
    exponent = -(2.0 * m[:, None] * i + i * i) / (2.0 * s[:, None] ** 2)
    with np.errstate(under="ignore"):
        value = np.exp(exponent).sum(axis=1)
    return value, value * 1e-14


def _log_normaliser(s: Array) -> Array:
    """log of sum_z exp(-z^2/(2 s^2)); by Poisson summation s sqrt(2 pi) (1 + 2 exp(-2 pi^2 s^2) + ...)."""
    theta = np.zeros_like(s)
    with np.errstate(under="ignore"):
        for h in range(1, 4):
            theta += 2.0 * np.exp(-2.0 * (math.pi * h * s) ** 2)
        z = np.arange(1, 42, dtype=np.float64)
        direct = np.log1p(2.0 * np.exp(-z * z / (2.0 * np.minimum(s, 1.0)[:, None] ** 2)).sum(axis=1))
    return np.where(s < 1.0, direct, np.log(s * math.sqrt(2.0 * math.pi)) + np.log1p(theta))


def _tail_bounds(m: Array, s: Array) -> tuple[Array, Array]:
    """Lower and upper bounds of P[Z >= m] for discrete Gaussians of parameters s and whole m of any sign."""
    flipped = m <= 0
    # P[Z >= m] = 1 - P[Z >= 1 - m]
    start = np.where(flipped, 1.0 - m, m)
    value, error = np.empty_like(start), np.empty_like(start)
    large = s >= _LARGE
    if large.any():
        value[large], error[large] = _relative_sum_by_series(start[large], s[large])
    if not large.all():
        value[~large], error[~large] = _relative_sum_directly(start[~large], s[~large])
    with np.errstate(under="ignore"):
        log_scale = -(start**2) / (2.0 * s**2) - _log_normaliser(s)
        # The exponent of a far tail carries a rounding error in proportion to its size.
        slack = SAFETY + 4e-16 * np.abs(log_scale)
        lower = np.exp(log_scale) * np.maximum(value - error, 0.0) * (1.0 - slack)
        upper = np.exp(log_scale) * (value + error) * (1.0 + slack)
    return np.where(flipped, (1.0 - upper) * (1.0 - 1e-15), lower), np.where(
        flipped, np.minimum((1.0 - lower) * (1.0 + 1e-15), 1.0), upper
    )


def discrete_gaussian_tail(sigma: float, m: int) -> float:
    """P[Z >= m] for the discrete Gaussian, never understated."""
    sigma = positive_number("sigma", sigma)
    return min(1.0, float(_tail_bounds(np.array([float(m)]), np.array([sigma]))[1][0]))


@lru_cache(maxsize=1024)
def gaussian_reach(sigma: float, most: float) -> int:
    """The smallest b >= 0 that the discrete Gaussian exceeds with probability at most `most`."""
    sigma = positive_number("sigma", sigma)
    candidates, low = [0, *(1 << power for power in range(62))], -1
    while True:  # the last candidate is large enough, `low` is not
        upper = _tail_bounds(np.array(candidates, dtype=np.float64) + 1.0, np.full(len(candidates), sigma))[1]
        place = int(np.argmax(np.append(upper <= most, True)))  # the first that is large enough
        low, high = candidates[place - 1] if place else low, candidates[min(place, len(candidates) - 1)]
        if high - low <= 1:
            return high
        candidates = sorted({low + 1 + (high - low - 1) * part // 31 for part in range(32)})


def discrete_gaussian_tails(sigma: float, m: Array) -> Array:
    """The same for an array of whole numbers."""
    return np.minimum(1.0, _tail_bounds(m, np.full_like(m, sigma))[1])


def discrete_gaussian_mass(sigma: float, z: Array) -> Array:
    """P[Z = z] for an array of whole numbers, never understated."""
    with np.errstate(under="ignore"):
        log_mass = -(z * z) / (2.0 * sigma * sigma) - _log_normaliser(np.array([sigma]))
        return np.asarray(np.exp(log_mass) * (1.0 + SAFETY + 4e-16 * np.abs(log_mass)))


def sum_of_two(sigma: float, other: float) -> tuple[float, float]:
    """(s, kappa): the sum of two discrete Gaussians has at most kappa times the mass of the one of parameter s.

    The step of `_log_kappa` for noises of different parameters; kappa is infinite where these are too small for it.
    """
    s = math.hypot(sigma, other)
    first = math.exp(-2.0 * (math.pi * sigma * other / s) ** 2)
    e = 2.0 * first / (1.0 - first)
    return s, (1.0 + e) / (1.0 - e) * (1.0 + SAFETY) if e < 1.0 else math.inf


def sum_of_several(sigmas: Sequence[float]) -> tuple[float, float]:
    """The same of one discrete Gaussian or more."""
    sigma, kappa = sigmas[0], 1.0
    for other in sigmas[1:]:
        sigma, more = sum_of_two(sigma, other)
        kappa *= more
    return sigma, kappa


def _log_kappa(sigma: float, changes: Array) -> Array:
    """log kappa_j: the sum of j discrete Gaussians against the discrete Gaussian of parameter sqrt(j) sigma.

    sum_z exp(-(s-z)^2/(2 i sigma^2) - z^2/(2 sigma^2)) = exp(-s^2/(2 (i+1) sigma^2)) sum_z exp(-(z-u)^2/(2 v)) with
    v = sigma^2 i/(i+1) and some real u. By Poisson summation the last sum is sqrt(2 pi v) up to a factor within
    1 +- e_i, e_i = 2 sum_h exp(-2 pi^2 v h^2), whatever u is. By induction, and after normalising,
    kappa_j = prod_{i<j} (1 + e_i)/(1 - e_i).
    """
    largest = int(changes.max())
    if largest < 2:
        return np.zeros_like(changes)
    # From i = 64 on v is at least 64/65 sigma^2: the rest is bounded by its first term.
    i = np.arange(1, min(largest, 65), dtype=np.float64)
    with np.errstate(under="ignore"):
        first = np.exp(-2.0 * math.pi**2 * sigma**2 * i / (i + 1.0))
        e = 2.0 * first / (1.0 - first)
    if (e >= 1.0).any():
        return np.where(changes > 1, math.inf, 0.0)
    each = np.log1p(e) - np.log1p(-e)
    total = np.concatenate([[0.0], np.cumsum(each)])
    index = np.minimum(changes.astype(np.int64) - 1, len(each))
    return np.asarray(total[index] + np.maximum(changes - 1.0 - len(each), 0.0) * each[-1])


def unit_change_delta(x: Array, sigma: float, changes: Array, height: int = 1) -> Array:
    """delta_j(x) for arrays of x and j >= 1: upper bounds, exact to about 1e-11 when sigma is 1.5 or more."""
    s = np.sqrt(changes) * sigma
    m = np.floor(x * sigma * sigma / height - changes * height / 2.0) + 1.0
    # Rounding may move m by one when the two terms of the sum at m cancel: the difference is far below the margin.
    lowers, uppers = _tail_bounds(np.concatenate([m, m + changes * height]), np.concatenate([s, s]))
    upper, lower = uppers[: len(m)], lowers[len(m) :]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exceeds = upper - np.exp(x) * lower
        # Where e^x overflows or the bounds are too wide to subtract, the first term alone is a bound.
        exceeds = np.where(np.isfinite(exceeds), exceeds, upper)
        return np.asarray(np.minimum(1.0, np.maximum(exceeds, 0.0) * np.exp(_log_kappa(sigma, changes))))


def discrete_gaussian_delta(epsilon: float, sigma: float, *, changes: int = 1) -> float:
    """delta at epsilon of discrete Gaussian noise on integers of which `changes` differ, by 1 each."""
    j = np.array([float(whole_number("changes", changes))])
    x = np.array([positive_number("epsilon", epsilon)])
    return float(unit_change_delta(x, positive_number("sigma", sigma), j)[0])


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """delta at epsilon of continuous Gaussian noise: Phi(D/2s - eps s/D) - e^eps Phi(-D/2s - eps s/D) (Balle, Wang)."""
    epsilon = positive_number("epsilon", epsilon)
    mu = positive_number("sensitivity", sensitivity) / positive_number("sigma", sigma)
    first = float(log_ndtr(mu / 2.0 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2.0 - epsilon / mu))
    return min(1.0, math.exp(first) * -math.expm1(min(0.0, second - first)) + math.exp(first) * 1e-11)


def smallest_sigma(delta_at: Callable[[float], float], most: float, start: float) -> float:
    """The smallest sigma with `delta_at` <= `most`, to a relative 1e-9 and from above; delta must fall as sigma grows.

    Halving an interval of sigmas takes some thirty deltas. About where it ends is found by secants of log delta over
    log sigma, so that the way there is known, and what it ends with is tried: where the lower end does not pass and the
    upper one does, halving would have ended there.
    """
    low = high = start
    known: dict[float, float] = {}

    def passes(sigma: float) -> bool:
        if sigma not in known:
            known[sigma] = delta_at(sigma)
        return known[sigma] <= most

    while not passes(high):
        low, high = high, 2.0 * high
        if high > 1e300:
            raise ParameterError("these privacy parameters are too small to compute noise for; use larger ones")
    while low == high or passes(low):
        high, low = low, low / 2.0
        if low < 1e-3:
            return high
    about = _by_secants(delta_at, most, start, low, high)
    ends = None if about is None else _halved(lambda sigma: sigma >= about, low, high)
    if ends is None or passes(ends[0]) or not passes(ends[1]):
        ends = _halved(passes, low, high)
    return ends[1]


def _halved(passes: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if passes(middle) else (middle, high)
    return low, high


def _by_secants(delta_at: Callable[[float], float], most: float, start: float, low: float, high: float) -> float | None:
    """About the sigma of this delta; None where the curve is not as it is expected to be."""

    def above(sigma: float) -> float:
        delta = delta_at(sigma)
        return math.log(delta / most) if delta > 0.0 else math.inf

    x, y = start, start * (1.0 + 1e-3)
    at_x, at_y = above(x), above(y)
    for _ in range(8):
        if not math.isfinite(at_x) or not math.isfinite(at_y) or at_x == at_y:
            return None
        step = math.log(x / y) * at_y / (at_y - at_x)
        if not math.log(low / y) <= step <= math.log(high / y):
            return None
        x, at_x, y = y, at_y, y * math.exp(step)
        if abs(x - y) <= 1e-12 * y:
            return y
        at_y = above(y)
    return None


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The analytic Gaussian mechanism: the smallest sigma of continuous noise for an l2-sensitivity."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    D = positive_number("sensitivity", sensitivity)
    return smallest_sigma(lambda sigma: gaussian_delta(epsilon, sigma, D), delta, D / epsilon)


def discrete_gaussian_sigma(epsilon: float, delta: float, *, changes: int = 1) -> float:
    """The smallest sigma of discrete Gaussian noise when at most `changes` counts differ, each by 1.

    The bounds of a few nearby sigmas may cross (the lattice makes delta slightly uneven), so what is returned is a
    sigma that passes and below which the search found one that does not.
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    j = whole_number("changes", changes)

    def delta_at(sigma: float) -> float:
        return discrete_gaussian_delta(epsilon, sigma, changes=j)

    return smallest_sigma(delta_at, delta, gaussian_sigma(epsilon, delta, math.sqrt(j)))


def discrete_gaussian_sigma_any(epsilon: float, delta: float, sensitivity: float) -> float:
    """A sigma of discrete Gaussian noise that is enough for every integer vector of an l2-sensitivity.

    By zCDP: the loss of an arbitrary shift is not a lattice sum, and rho = D^2/(2 sigma^2) holds for all of them.
    """
    rho = zcdp_rho(epsilon, delta)
    sigma = positive_number("sensitivity", sensitivity) / math.sqrt(2.0 * rho) * (1.0 + SAFETY)
    assert gaussian_rho(sigma, sensitivity) <= rho * (1.0 + 4.0 * SAFETY)
    return sigma
