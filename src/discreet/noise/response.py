"""Randomised response over k choices, with a probability that can be drawn exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.errors import ParameterError
from discreet.noise.enclosure import exp_minus

_ONE = 1 << 64
_BITS = 192


@lru_cache(maxsize=1024)
def keep_probability(choices: int, epsilon: Fraction) -> Fraction:
    """The probability to tell the truth in epsilon-DP randomised response over k choices: e^eps / (e^eps + k - 1).

    Each other choice has 1 / (e^eps + k - 1), rounded up to a multiple of 2^-64, so that the ratio of the two is at
    most e^eps as the number it is.
    """
    _, q = exp_minus(epsilon, _BITS)
    other = -(-(_ONE * q) // ((1 << _BITS) + q * (choices - 1)))
    keep = _ONE - (choices - 1) * other
    if keep <= other:
        raise ParameterError(
            "epsilon is too small, or there are too many choices, to compute a response; raise epsilon"
        )
    return Fraction(keep, _ONE)
