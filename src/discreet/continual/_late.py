"""The law of buffered noise in the middle of its run, for counters that begin late.

A counter may begin at a tick with any state from which all later noises have the law of a run from the start. This one
draws the buffers and the noise from the discrete Gaussian of their covariance, one after the other, each around its
regression on those before. What that rounds must be less than what the roundings of the ticks passed over could have
been; `state_law` computes it, and None says that it is not. The argument is in docs/privacy/correlated-noise.md,
"Beginning late".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.noise import RandomSource
from discreet.noise.source import MAX_SCALE, Integers
from discreet.privacy.calibration.tick_noise import LEAST_WIDTH

Matrix = npt.NDArray[np.object_]  # of Decimal

_DIGITS = 120
_BITS = 200  # of a standard deviation, after the point
_REACH = 40  # standard deviations; what is farther out has probability below exp(-790)


@dataclass(frozen=True)
class StateLaw:
    """How to draw (noise, buffers): each a discrete Gaussian around `regressions` on those before it."""

    sigmas: tuple[Fraction, ...]
    regressions: tuple[Integers, ...]  # multiples of 2^-bits, the latest first
    bits: int

    def draw(self, size: int, source: RandomSource) -> tuple[Integers, Integers]:
        """(buffers, noise) of `size` counters, in the units of the recurrence."""
        drawn = np.zeros((size, len(self.sigmas)), np.int64)
        centre = np.zeros(size, np.int64)
        for place, (sigma, regression) in enumerate(zip(self.sigmas, self.regressions, strict=True)):
            if place:
                _native.toeplitz_sums(drawn, place, regression, self.bits, centre)
            drawn[:, place] = centre + source.discrete_gaussian(sigma, size)
        return np.ascontiguousarray(drawn[:, 1:].T), np.ascontiguousarray(drawn[:, 0])


def _identity(n: int) -> Matrix:
    return np.array([[Decimal(int(i == j)) for j in range(n)] for i in range(n)], object)


def state_covariance(theta: Iterable[Decimal], omega: Iterable[Decimal], tick: int) -> Matrix:
    """The covariance of (N, S_1, ...) after `tick` ticks without roundings, for independent noises of variance 1.

    z_t = w_t + sum_i omega_i S_i, S_i <- theta_i S_i + w_t, N <- N + w_t. By doubling: of s + t ticks it is that of t
    ticks and, moved on by t ticks, that of s.
    """
    step = np.diag(np.array([Decimal(1), *theta], object)) - np.array([Decimal(0), *omega], object)
    n = len(step)
    power = _identity(n)
    covariance, fresh = np.full((n, n), Decimal(0), object), np.full((n, n), Decimal(1), object)
    for bit in f"{tick:b}":
        covariance = power @ covariance @ power.T + covariance
        power = power @ power
        if bit == "1":
            covariance = step @ covariance @ step.T + fresh
            power = step @ power
    return covariance


def _decomposed(a: Matrix) -> tuple[Matrix, Matrix]:
    """(L, D) with A = L diag(D) L^T, L lower with a diagonal of ones."""
    n = len(a)
    lower, diagonal = _identity(n), np.full(n, Decimal(0), object)
    for i in range(n):
        for j in range(i):
            lower[i, j] = (a[i, j] - (lower[i, :j] * lower[j, :j] * diagonal[:j]).sum()) / diagonal[j]
        diagonal[i] = a[i, i] - (lower[i, :i] ** 2 * diagonal[:i]).sum()
    return lower, diagonal


def _inverted(lower: Matrix) -> Matrix:
    """The inverse of a lower matrix with a diagonal of ones."""
    n = len(lower)
    inverse = _identity(n)
    for i in range(n):
        for j in range(i):
            inverse[i, j] = -(lower[i, j:i] * inverse[j:i, j]).sum()
    return inverse


def _told(theta: Matrix, omega: Matrix) -> Matrix:
    """What all later noises tell of (N, S_1, ...), as a precision: sums over k of products of their effects on z.

    S_i moves z by omega_i theta_i^k at the k-th tick from there, and N by -c_k.
    """
    one = Decimal(1)
    among = omega[:, None] * omega / (one - theta[:, None] * theta)
    of_c = one + among.ravel().sum()
    cross = [-o * (one + (omega * t / (one - t * theta)).sum()) for o, t in zip(omega, theta, strict=True)]
    return np.block([[np.array([[of_c]], object), np.array([cross], object)], [np.array([cross], object).T, among]])


@lru_cache(maxsize=64)
def state_law(
    theta: tuple[int, ...], omega: tuple[int, ...], coefficient_bits: int, fraction_bits: int, tick: int,
    sigma: Fraction, kappa: float,
) -> StateLaw | None:  # fmt: skip
    """The law of a state after `tick` ticks; None where it is not close enough to that of a run from the start."""
    if sigma < LEAST_WIDTH:
        return None
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_HALF_EVEN
        unit = Decimal(2) ** coefficient_bits
        exact_theta, exact_omega = (
            np.array([Decimal(value) / unit for value in values], object) for values in (theta, omega)
        )
        # In units of sigma, and of the grid that each of them is on.
        units = np.array([Decimal(1), *([Decimal(2) ** fraction_bits] * len(theta))], object)
        scaled = state_covariance(exact_theta, exact_omega, tick) * units[:, None] * units
        lower, variances = _decomposed(scaled)
        if min(variances) <= 0:
            return None
        inverse = _inverted(lower)
        # How wide the state is, given everything that is published later: the other way round, from the precisions.
        n = len(units)
        precision = np.array(
            [[(inverse[:, i] * inverse[:, j] / variances).sum() for j in range(n)] for i in range(n)], object
        )
        precision += _told(exact_theta, exact_omega) / units[:, None] / units
        _, told_of = _decomposed(precision[::-1, ::-1])
        if min(told_of) <= 0:
            return None
        narrowest = float(sigma) / math.sqrt(float(max(told_of)))
        squared = sigma * sigma
        sigmas = tuple(_root(Fraction(variance) * squared) for variance in variances)
        # U_i = sum_k G_ik U_k + what is new, G = 1 - L^-1.
        largest = max((abs(inverse[i, j]) for i in range(n) for j in range(i)), default=Decimal(0))
        bits = 62 - max(0, math.ceil(math.log2(float(largest) + 1.0)))
        if bits < 20 or max(sigmas) > MAX_SCALE:
            return None
        regressions = tuple(
            np.array([int((-inverse[i, j] * 2**bits).to_integral_value()) for j in range(i - 1, -1, -1)], np.int64)
            for i in range(n)
        )
        spread = sum(math.sqrt(float(scaled[i, i])) for i in range(n)) * float(sigma)
    off = 0.5 + _REACH * spread * 2.0 ** -(bits + 1)  # a centre from the regression
    moved = sum((off * float(sigma / each)) ** 2 for each in sigmas[1:])
    if narrowest < LEAST_WIDTH / 2 or moved > tick * (kappa / 2.0) ** 2:
        return None
    return StateLaw(sigmas, regressions, bits)


def _root(square: Fraction) -> Fraction:
    return Fraction(math.isqrt((square.numerator << 2 * _BITS) // square.denominator), 1 << _BITS)
