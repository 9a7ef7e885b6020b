"""Randomised response: the odds of the truth are at most e^epsilon as the number it is, and nearly that."""

from decimal import Context, Decimal
from fractions import Fraction

import pytest

from discreet.errors import ParameterError
from discreet.noise.response import keep_probability

DIGITS = Context(prec=100)
UNIT = Fraction(1, 2**64)


def exponential(epsilon):
    """e^epsilon to 100 digits, as a fraction."""
    return Fraction(DIGITS.exp(DIGITS.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


@pytest.mark.parametrize("choices", [2, 3, 4, 7, 10, 100, 1000, 10**6])
@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(0.7), Fraction(5), Fraction(20)]
)
def test_the_odds_are_at_most_those_promised_and_no_finer_ones_are(choices, epsilon):
    keep = keep_probability(choices, epsilon)
    other = (1 - keep) / (choices - 1)
    assert (other / UNIT).denominator == (keep / UNIT).denominator == 1  # drawn from one word of 64 bits
    assert keep / other <= exponential(epsilon)
    less = other - UNIT
    assert less == 0 or (1 - less * (choices - 1)) / less > exponential(epsilon)


@pytest.mark.parametrize(
    ("choices", "epsilon"), [(2, Fraction(1, 2**70)), (2**40, Fraction(1, 2**40)), (2**63, Fraction(1, 9))]
)
def test_a_response_that_says_nothing_is_refused(choices, epsilon):
    with pytest.raises(ParameterError, match="epsilon is too small, or there are too many choices"):
        keep_probability(choices, epsilon)
