"""How far below its expectation a sum of many independent noises may fall."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.errors import ParameterError
from discreet.privacy.checks import probability, whole_number

__all__ = ["noise_sum_bound"]

_LARGEST_RATE = 700.0


def noise_sum_bound(law: str, scale: Fraction, draws: int, failure: float) -> int:
    """B with P[sum of `draws` noises <= -B] <= failure, for discrete "laplace" or "gaussian" noise.

    P[S >= B] <= E[exp(tZ)]^N exp(-tB) for every t > 0, so B = (N log E[exp(tZ)] + log(1/failure)) / t will do for any:
    a search over t that stops early costs size, not validity.
    Laplace of rate r: E[exp(tZ)] = (1-q)^2 / ((1 - q e^t)(1 - q e^-t)) = 1/(1 - (sinh(t/2) / sinh(r/2))^2), t < r.
    Gaussian: E[exp(tZ)] <= exp(t^2 sigma^2 / 2) ([CKS20], Lemma 22), and t = sqrt(2 log(1/failure) / (N sigma^2)).
    """
    draws = whole_number("draws", draws)
    needed = -math.log(probability("failure", failure))
    if law == "gaussian":
        bound = float(scale) * math.sqrt(2.0 * draws * needed)
    elif law == "laplace":
        # A smaller rate is more noise: the bound for it holds, too.
        bound = _laplace(min(float(1 / scale), _LARGEST_RATE), draws, needed)
    else:
        raise ParameterError(f"law must be 'laplace' or 'gaussian', not {law!r}")
    return math.ceil(bound * (1.0 + 1e-9))


def _laplace(rate: float, draws: int, needed: float) -> float:
    def at(log_share: float) -> float:
        t = rate * math.exp(log_share)
        ratio = math.sinh(t / 2.0) / math.sinh(rate / 2.0)
        return (needed - draws * math.log1p(-ratio * ratio)) / t

    low, high = -40.0, -1e-6
    for _ in range(200):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return at((low + high) / 2.0)
