"""The offset release of a Misra-Gries sketch: the exact delta of its cut.

The release publishes a0 = alpha + Z_0 and, for stored keys, v_x = c_x + alpha + Z_x if v_x - a0 >= 1 + t. By Lemma 8
of [LT23] neighbouring states are of six kinds. In every kind and both directions the ratio of the probabilities of
an output without an isolated key (a key only one of the two sketches stores) is at most exp(epsilon), so the
hockey-stick divergence is exactly the probability that an isolated key is published. It is largest in state S6:
one isolated key of count 1, one of count 0,

    delta(t) = sum_d p(d) [ 1 - (1 - r(d+t)) (1 - r(d+t+1)) ],      r(s) = P[Z >= s].

The argument in full is in docs/privacy/offset-release.md. The same delta holds for Algorithm 2 of [LT23] with
geometric noise, because there too the argument is made for each value of the shared noise.

[LT23] Lebeda, Tetek: Better Differentially Private Approximate Histograms and Heavy Hitters using the Misra-Gries
Sketch, 2023.
"""

from __future__ import annotations

import math
from functools import lru_cache

from discreet.privacy.calibration.tails import smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY


def _log_delta(rate: float, t: int) -> float:
    """log delta(t) for one event, in closed form.

    delta(t) = P[W >= t] + P[W >= t+1] - J with W = Z - Z_0 and J = sum_d p(d) r(d+t) r(d+t+1). Splitting J at
    d+t < 0, 0 <= d+t < t and d >= 0 gives geometric sums, and with the factor q^t / (1+q)^2 taken out

        delta(t) (1+q)^2 / q^t = [t(1-q) + K] + q [(t+1)(1-q) + K]
                                 - q - q^4 / ((1+q)(1+q+q^2)) - (q - q^(t+1) + q^(t+1)/(1+q+q^2)) / (1+q),

    K = (1+q+2q^2)/(1+q).
    """
    q, p = math.exp(-rate), -math.expm1(-rate)
    K = (1.0 + q + 2.0 * q * q) / (1.0 + q)
    cubic = 1.0 + q + q * q
    last = q * math.exp(-rate * t)
    J = q + q**4 / ((1.0 + q) * cubic) + (q - last + last / cubic) / (1.0 + q)
    return -rate * t - 2.0 * math.log1p(q) + math.log(t * p + K + q * ((t + 1) * p + K) - J)


def group_factor(epsilon: float, items: int) -> float:
    """log of sum_{i < m} exp(i epsilon/m) = (e^epsilon - 1)/(e^(epsilon/m) - 1): what m steps make of one delta."""
    step = epsilon / items
    return epsilon - step + math.log(-math.expm1(-epsilon)) - math.log(-math.expm1(-step)) if items > 1 else 0.0


def _guaranteed(epsilon: float, t: int, items: int) -> float:
    return _log_delta(epsilon / items, t) + group_factor(epsilon, items) + SAFETY


def offset_delta(epsilon: float, t: int, *, max_items: int = 1) -> float:
    """delta of the offset release with cut 1 + t; exact for one event, never understated.

    For a user of up to `max_items` = m (possibly equal) items the noise has scale m/epsilon and the m steps from one
    stream to the other give delta_m = delta_1(t) (e^epsilon - 1)/(e^(epsilon/m) - 1). That is group privacy
    (Lemma 19 of [LT23]) without rounding the geometric sum up to m e^epsilon.
    """
    epsilon, t = positive_number("epsilon", epsilon), whole_number("t", t, 0)
    return min(1.0, math.exp(min(0.0, _guaranteed(epsilon, t, whole_number("max_items", max_items)))))


@lru_cache(maxsize=1024, typed=True)
def offset_threshold(epsilon: float, delta: float, *, max_items: int = 1) -> int:
    """The smallest whole t >= 0 whose delta is at most `delta`: an item is published iff v - a0 >= 1 + t."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    items = whole_number("max_items", max_items)
    return smallest_shift(lambda t: _guaranteed(epsilon, t, items), delta)
