"""The tables that the compiled samplers draw from, against the laws of noise: `tests.reference.naive_laws`.

test_noise_words.py has that every word is drawn as the tables say; here the tables are compared with sums to 30 digits.
What is chosen by scores is compared with the odds, draw by draw, in tests/statistical/test_sampler_laws.py.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.reference import naive_laws as naive
from tests.reference import noise_laws

from discreet.noise import laws
from discreet.noise.enclosure import exp_minus

FINE = 160
LAWS = {
    "laplace": (laws.laplace_law, naive.laplace, noise_laws.laplace),
    "gaussian": (laws.gaussian_law, naive.gaussian, noise_laws.gaussian),
}


def drawn(law, count):
    """The chance of each of the first values of |Z|, from the table of blocks and the chance to accept an offset."""
    bounds, offsets, found = law.table(FINE), 1 << law.block_bits, []
    bounds = [*bounds, *[2**FINE] * count]  # a table ends where nothing is left
    signed = law.sign != laws._native.Sign.none
    for value in range(count):
        block, offset = value // offsets, value % offsets
        chance = mpmath.mpf(bounds[block] - (bounds[block - 1] if block else 0)) / 2**FINE
        if law.block_bits:
            # A zero with the negative sign is drawn again.
            halved = 2 if signed and not value else 1
            chance *= mpmath.exp(-mpmath.mpf(law.exponent(block, offset))) / offsets / halved
        found.append(chance)
    return found


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2), Fraction(5, 2), Fraction(40), Fraction(777, 10)])
def test_tables_of_noise(name, scale):
    make, pmf, cumulative = LAWS[name]
    exact = pmf(scale)
    told = drawn(make(scale), 9)
    whole = [exact(z) * (1 if z == 0 else 2) for z in range(9)]
    for value in range(1, 9):
        assert abs(told[value] / told[0] - whole[value] / whole[0]) < 1e-18
    quiet = drawn(make(scale * Fraction(999, 1000)), 9)
    assert abs(quiet[2] / quiet[0] - whole[2] / whole[0]) > 1e-9 * whole[2] / whole[0]
    # The sums that draws are counted against say the same.
    sums = cumulative(np.arange(-4.0, 5.0), float(scale))
    for place, z in enumerate(range(-4, 5)):
        left = exact(z) if place else 1 - naive.tail(exact, -3)
        assert abs(sums[place] - (sums[place - 1] if place else 0.0) - float(left)) < 1e-12


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(33)])
def test_tables_of_waiting(scale):
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    told = drawn(laws.geometric_law(scale), 9)
    for value in range(1, 9):
        assert abs(told[value] / told[0] - q**value) < 1e-18
    assert noise_laws.geometric(np.array([0.0]), float(scale))[0] == pytest.approx(float(1 - q), abs=1e-15)


@pytest.mark.parametrize("x", [Fraction(1, 2), Fraction(25)])
def test_tables_of_a_coin(x):
    law = laws.bernoulli_law(lambda bits: exp_minus(x, bits))
    zero = mpmath.mpf(law.table(FINE)[0]) / 2**FINE
    one = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
    assert min(abs(zero - one), abs(1 - zero - one)) < 1e-29
