"""The same guarantee several times over: the optimal composition of equal (epsilon, delta) releases.

Kairouz, Oh, Viswanath (2015), in the form of Murtagh and Vadhan: n adaptive releases, each (e0, d0)-DP, together are
(epsilon, delta)-DP with

    delta = 1 - (1 - d0)^n (1 - h),
    h = (1 + e^e0)^-n  sum_l  C(n, l) max(0, e^((n-l) e0) - e^epsilon e^(l e0)),

and no smaller delta holds for all such releases.
"""

from __future__ import annotations

import math
from functools import lru_cache

from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY


def repeated_delta(epsilon: float, epsilon_each: float, delta_each: float, times: int) -> float:
    """delta at `epsilon` of `times` releases, each (epsilon_each, delta_each)-DP; never understated."""
    epsilon, e0, n = positive_number("epsilon", epsilon), positive_number("epsilon_each", epsilon_each), times
    h = 0.0
    for l in range(n + 1):  # noqa: E741 - the paper's letter
        # Divided by e^(n e0): all exponents are at most 0 while the difference is positive.
        if epsilon < (n - 2 * l) * e0:
            h += math.comb(n, l) * math.exp(-l * e0) * -math.expm1(epsilon - (n - 2 * l) * e0)
    h *= math.exp(-n * math.log1p(math.exp(-e0)))
    spared = n * math.log1p(-delta_each) + math.log1p(-min(h * (1.0 + SAFETY), 1.0 - 1e-16))
    return min(1.0, -math.expm1(spared) * (1.0 + 1e3 * SAFETY))


@lru_cache(maxsize=256, typed=True)
def repeated_share(epsilon: float, delta: float, times: int) -> tuple[float, float]:
    """(epsilon, delta) of each of `times` equal releases that together stay within a budget.

    The better of two: half of delta for the epsilons to add up less than linearly, or all of it for the releases.
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    n = whole_number("times", times)
    linear = epsilon / n * (1.0 - SAFETY), delta / n * (1.0 - SAFETY)
    each = delta / (2 * n)
    low, high = epsilon / n * (1.0 - SAFETY), epsilon
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if repeated_delta(epsilon, middle, each, n) <= delta else (low, middle)
    return (low, each) if low > 1.05 * linear[0] else linear
