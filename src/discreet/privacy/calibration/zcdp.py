"""zCDP and (epsilon, delta): the tight conversions.

rho-zCDP bounds the Renyi divergence of every order a > 1 by a rho. For every such order ([CKS20], Proposition 12)

    delta  <=  exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a ,

so a search over a that stops early still returns a valid, if slightly larger, number.

[CKS20] Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy, 2020.
[BS16] Bun, Steinke: Concentrated Differential Privacy, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from discreet.privacy.checks import positive_number, probability
from discreet.privacy.rounding import SAFETY, largest_float


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """The smallest value met by a golden-section search of a unimodal function."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    best = min(at_left, at_right)
    for _ in range(120):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
            best = min(best, at_left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
            best = min(best, at_right)
    return best


def _log_delta(rho: float, epsilon: float, log_order: float) -> float:
    """log of the bound at order a = 1 + exp(log_order)."""
    less_one = math.exp(log_order)
    order = 1.0 + less_one
    # log(1 - 1/a) = log(a - 1) - log(a)
    return less_one * (order * rho - epsilon) - log_order + order * (log_order - math.log1p(less_one))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The smallest delta for which every rho-zCDP mechanism is provably (epsilon, delta)-DP."""
    rho, epsilon = positive_number("rho", rho), positive_number("epsilon", epsilon)
    log_delta = _smallest(lambda log_order: _log_delta(rho, epsilon, log_order), -40.0, 60.0)
    return min(1.0, math.exp(min(0.0, log_delta)) * (1.0 + 1e3 * SAFETY))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest epsilon for which every rho-zCDP mechanism is provably (epsilon, delta)-DP."""
    rho, delta = positive_number("rho", rho), probability("delta", delta)

    def at_order(log_order: float) -> float:
        less_one = math.exp(log_order)
        log_of_order = math.log1p(less_one)
        # epsilon = a rho + [log(1/delta) - log(a - 1) + a log(1 - 1/a)] / (a - 1)
        terms = -math.log(delta) - log_order + (1.0 + less_one) * (log_order - log_of_order)
        return (1.0 + less_one) * rho + terms / less_one

    return max(0.0, _smallest(at_order, -40.0, 60.0)) * (1.0 + 1e3 * SAFETY)


def rho_at_order(order: float, epsilon: float, delta: float) -> float:
    """The largest rho that is (epsilon, delta)-DP if the divergence of this one order is at most order * rho.

    Rounded down; not positive where there is none.
    """
    # a rho = epsilon - [log(1/delta) - log(a - 1) + a log(1 - 1/a)] / (a - 1)
    rest = (-math.log(delta) - math.log(order - 1.0) + order * math.log1p(-1.0 / order)) / (order - 1.0)
    return (epsilon - rest - 1e3 * SAFETY * (epsilon + abs(rest))) / order


def best_order(epsilon: float, delta: float) -> float:
    """An order, of 1.001 to 1e9, at which the largest rho is (epsilon, delta)-DP, nearly; any order is valid."""
    orders = [1.0 + math.exp(log_order / 16.0) for log_order in range(-110, 332)]
    best = max(orders, key=lambda order: rho_at_order(order, epsilon, delta))
    below, above = (1.0 + (best - 1.0) * math.exp(step / 16.0) for step in (-1.0, 1.0))
    fine = [below + (above - below) * step / 256.0 for step in range(257)]
    return max([best, *fine], key=lambda order: rho_at_order(order, epsilon, delta))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose conversion is (epsilon, delta)-DP, rounded down."""
    return _largest_rho(positive_number("epsilon", epsilon), probability("delta", delta))


@lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float) -> float:
    return largest_float(lambda rho: zcdp_epsilon(rho, delta) <= epsilon, epsilon)


def pure_rho(epsilon: float) -> float:
    """An epsilon-DP mechanism is (epsilon^2 / 2)-zCDP ([BS16], Proposition 1.4), for an epsilon > 0. Rounded up."""
    return math.nextafter(epsilon * epsilon / 2.0, math.inf)


def gaussian_rho(sigma: float, sensitivity: float) -> float:
    """rho = D^2 / (2 sigma^2) of (discrete or continuous) Gaussian noise on an l2-sensitivity of D. Rounded up.

    It holds exactly for the discrete Gaussian on integer vectors ([CKS20], Theorem 14).
    """
    ratio = positive_number("sensitivity", sensitivity) / positive_number("sigma", sigma)
    return ratio * ratio / 2.0 * (1.0 + SAFETY)


def zcdp_sigma(squared: int, rho: float) -> Fraction:
    """Noise for rho-zCDP when one unit changes squared length by this: a float, sigma^2 >= squared/(2 rho) exactly."""
    sigma = math.sqrt(squared) / math.sqrt(2.0 * rho)
    while Fraction(sigma) ** 2 * 2 * Fraction(rho) < squared:
        sigma = math.nextafter(sigma, math.inf)
    return Fraction(sigma)
