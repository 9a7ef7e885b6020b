"""How far an estimate may be from the truth. Everything is computed from public numbers and from what is released.

Let K be the number of ones in a table whose m elements were drawn without replacement from the universe. The choice
of the sample and the independent bits make K's generating function real-rooted (the uniform m-subset is strongly
Rayleigh and thinning keeps that), so K has the law of a sum of independent bits, with mean m p. Tails of a sum like
this away from its mean are below those of the binomial with the same mean (Hoeffding 1956), and Hoeffding's bound
P[|K - mp| >= s] <= 2 exp(-2 s^2/m) holds. Sampling error is thereby inside every interval here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.privacy.calibration.tails import smallest

_SHARES = [Fraction(1, 2 << j) for j in range(10)]


def count_bound(m: int, epsilon_output: float, beta: float) -> float:
    """|K + Z - m p| stays below this except with probability beta; Z is discrete Laplace of scale 1/epsilon_output."""
    # The part of beta that the noise may use is chosen to make the sum smallest.
    return min(
        math.sqrt(m * math.log(2 / (beta * (1 - float(w)))) / 2) + noise_bound(epsilon_output, beta * float(w))
        for w in _SHARES
    )


def noise_bound(epsilon: float, beta: float) -> float:
    """|Z| stays below this except with probability beta; Z is discrete Laplace of scale 1/epsilon."""
    # P[|Z| > b] = 2 q^(floor(b) + 1)/(1 + q) <= 2 q^b/(1 + q) with q = e^-epsilon
    return math.log(2 / ((1 + math.exp(-epsilon)) * beta)) / epsilon


def signs_bound(expected: float, scale: Fraction, beta: float) -> float:
    """|S + Z - E[S]| stays below this except with probability beta; Z is discrete Laplace.

    S is a sum of signs -1, 0 and 1; `expected` of them are not 0 on average: its variance is at most that, and a sign
    is within 2 of its mean, so this is Bernstein's bound for independent signs. Ours are those of a sample without
    replacement. Given the elements they are independent; the numbers of occurrences in the order of the sample are
    negatively associated (a random order of fixed numbers is), and each factor of E[e^(sS)] is monotone in one of them.
    So E[e^(sS)] is at most that of independent ones.
    """
    log = math.log(4 / beta)
    return math.sqrt(2 * expected * log) + 4 * log / 3 + linear_bound([1.0], scale, beta / 2)


def mean_interval(noisy_count: int, m: int, scale: Fraction, beta: float) -> tuple[float, float]:
    """Bounds on the mean p of K/m given K + Z, which hold except with probability beta (Clopper and Pearson)."""
    from scipy.special import betaincinv

    from discreet.releases.error_model import Noise

    noise = Noise("laplace", scale)
    candidates = [(noise.bound(beta * float(w)), beta * (1 - float(w)) / 2) for w in _SHARES]
    reach, each = min(candidates, key=lambda pair: pair[0] + math.sqrt(m * math.log(1 / pair[1]) / 2))
    low, high = max(0, noisy_count - reach), min(m, noisy_count + reach)
    lower = float(betaincinv(low, m - low + 1, each)) if 0 < low <= m else (0.0 if low <= m else 1.0)
    upper = float(betaincinv(high + 1, m - high, 1 - each)) if 0 <= high < m else (1.0 if high >= m else 0.0)
    return lower, upper


def linear_bound(weights: Sequence[float], scale: Fraction, beta: float) -> float:
    """|sum w_i Z_i| stays below this except with probability beta, for independent discrete Laplace Z_i.

    Chernoff: any s with |s w_i| < 1/scale gives (sum log M(s w_i) + log(2/beta)) / s, with M the generating function
    E[e^(xZ)] = (1-q)^2 / ((1 - q e^x)(1 - q e^-x)); the smallest of a few hundred is taken.
    """
    w = np.abs(np.asarray(weights, dtype=float))
    largest = float(w.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    rate = 1 / float(scale)
    s = np.geomspace(1e-4, 0.999, 300)[:, None] * rate / largest
    x = s * w
    # log M = 2 log(1-q) - log(1 - q e^x) - log(1 - q e^-x)
    log_m = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(x - rate)) - np.log(-np.expm1(-x - rate))
    return float(((log_m.sum(axis=1) + math.log(2 / beta)) / s[:, 0]).min())


def choose_share(epsilon: float, intrusions: int, releases: int, width: Callable[[float, float], float]) -> Fraction:
    """The part of epsilon that goes to the outputs, for the narrowest interval.

    `width(epsilon_state, epsilon_output)` is its half-width with what one intrusion and one output may then spend.
    """
    shares = [Fraction(round(2**30 * 2 ** (-j / 4)), 2**30) for j in range(2, 48)]

    def cost(share: Fraction) -> float:
        s = float(share)
        return width(epsilon * (1 - s) / intrusions, epsilon * s / releases)

    return min(shares, key=cost)


def smallest_sample(enough: Callable[[int], bool], most: int) -> int:
    """The smallest sample size for which `enough` holds, up to `most`; enough(m) is monotone up to rounding."""
    if not enough(most):
        raise ParameterError(
            f"this accuracy cannot be reached with a sample of {most} elements; allow a larger alpha, beta or epsilon"
        )
    return min(smallest(enough, 1), most)
