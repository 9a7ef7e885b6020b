"""The laws of everything that is drawn from a random source: P[X <= x], over arrays of x and for one parameter.

Nothing of the package is imported here. tests/statistical/samplers.py compares draws of the compiled samplers with
them, tests/exhaustive/test_noise_laws.py the tables that these draw from, and the ways to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Cumulative = Callable[[Array, float], Array]


def laplace(z: Array, scale: float) -> Array:
    """P[Z <= z] of the discrete Laplace law."""
    tail = np.exp(-np.abs(z + (z >= 0)) / scale) / (1 + math.exp(-1 / scale))
    return np.where(z >= 0, 1 - tail, tail)


def gaussian(z: Array, sigma: float) -> Array:
    """P[Z <= z] of the discrete Gaussian law."""
    if sigma > 5000:  # the mass up to z is that of the continuous law up to z + 1/2, to 0.01 / sigma^2
        from scipy.special import ndtr

        return np.asarray(ndtr((z + 0.5) / sigma))
    support = np.arange(-math.ceil(9 * sigma) - 2, math.ceil(9 * sigma) + 3)
    sums = np.cumsum(np.exp(-(support.astype(np.float64) ** 2) / (2 * sigma * sigma)))
    return np.asarray(sums[np.clip(z.astype(np.int64) - support[0], 0, len(sums) - 1)] / sums[-1])


def laplace_above(minimum: int) -> Cumulative:
    def cumulative(z: Array, scale: float) -> Array:
        below = laplace(np.array([minimum - 1.0]), scale)
        return np.maximum(laplace(z, scale) - below, 0.0) / (1 - below)

    return cumulative


def gaussian_above(minimum: int) -> Cumulative:
    def cumulative(z: Array, sigma: float) -> Array:
        below = gaussian(np.array([minimum - 1.0]), sigma)
        return np.maximum(gaussian(z, sigma) - below, 0.0) / (1 - below)

    return cumulative


def geometric(z: Array, scale: float) -> Array:
    return np.where(z >= 0, -np.expm1(-(z + 1) / scale), 0.0)


def successes(trials: int, chance: Callable[[float], float]) -> Cumulative:
    def cumulative(z: Array, parameter: float) -> Array:
        from scipy.special import betainc

        # P[X <= z] = I_{1-p}(n - z, z + 1)
        some = betainc(np.maximum(trials - z, 1e-9), np.maximum(z, 0) + 1, 1 - chance(parameter))
        return np.where(z >= trials, 1.0, np.where(z < 0, 0.0, some))

    return cumulative


def coin(chance: Callable[[float], float]) -> Cumulative:
    return lambda z, parameter: np.where(z >= 1, 1.0, np.where(z < 0, 0.0, 1.0 - chance(parameter)))


def listed(law: Callable[[float], Sequence[float]]) -> Cumulative:
    return lambda z, parameter: np.cumsum(law(parameter))[z.astype(np.int64)]


def even(values: int) -> Cumulative:
    return lambda z, parameter: np.clip((z + 1) / values, 0.0, 1.0)


def tail_of_laplace(scale: float, t: int) -> float:
    """P[Z >= t], t >= 1."""
    return math.exp(-t / scale) / (1 + math.exp(-1 / scale))


def response_law(epsilon: float) -> list[float]:
    keep = math.exp(epsilon) / (math.exp(epsilon) + 4)
    return [keep] + [(1 - keep) / 4] * 4


def square_law(epsilon: float) -> list[float]:
    high = math.exp(epsilon) / (3 * math.exp(epsilon) + 4)
    return [high if i in (1, 2, 4) else (1 - 3 * high) / 4 for i in range(7)]


def pan_chance(seen: bool, announced: bool) -> Callable[[float], float]:
    """P[1]: the gap between the coins is tanh(epsilon / 2), and its square after one intrusion."""
    sign, power = (1 if seen else -1), (2 if announced else 1)
    return lambda epsilon: (1 + sign * math.tanh(epsilon / 2) ** power) / 2
