"""Noise above a minimum, and how many noises are above one: the laws that they are cut from, for any minimum.

Draws are seeded, so that a frequency that is within six deviations once is so always.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from discreet.noise import seeded_source
from discreet.noise.enclosure import exp_minus

DRAWS = 20_000


def laplace(scale, z):
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(z)


def gaussian(sigma, z):
    return math.exp(-z * z / (2 * sigma**2)) / sum(math.exp(-k * k / (2 * sigma**2)) for k in range(-200, 201))


LAWS = {"laplace": (laplace, 1.5), "gaussian": (gaussian, 2.0)}


def near(found, chance, trials):
    return abs(found - trials * chance) <= 6 * math.sqrt(trials * chance * (1 - chance)) + 1e-9


@pytest.mark.parametrize("minimum", [-3, -1, 0, 1, 4])
@pytest.mark.parametrize("name", LAWS)
def test_noise_above_a_minimum_has_the_law_that_is_left(name, minimum):
    law, scale = LAWS[name]
    source = seeded_source(1)
    values = getattr(source, f"discrete_{name}_at_least")(Fraction(scale), minimum, DRAWS)
    assert values.min() == minimum
    above = sum(law(scale, z) for z in range(minimum, 200))
    for z in range(minimum, minimum + 6):
        assert near(int((values == z).sum()), law(scale, z) / above, DRAWS), z
    one = getattr(source, f"discrete_{name}_at_least")(Fraction(scale), minimum)
    assert isinstance(one, int)
    assert one >= minimum


@pytest.mark.parametrize("minimum", [-3, 0, 1, 4])
@pytest.mark.parametrize("name", LAWS)
def test_the_number_above_a_minimum_is_binomial(name, minimum):
    law, scale = LAWS[name]
    chance = sum(law(scale, z) for z in range(minimum, 200))
    source = seeded_source(2)
    draw = getattr(source, f"discrete_{name}_exceedances")
    values = draw(50, Fraction(scale), minimum, 2000)
    assert near(int(values.sum()), chance, 100_000)
    assert values.min() >= 0
    assert values.max() <= 50
    assert np.var(values) == pytest.approx(50 * chance * (1 - chance), rel=0.2)
    assert draw(0, Fraction(scale), minimum) == 0


def test_a_binomial_by_its_chance_or_by_an_enclosure_of_it():
    source = seeded_source(3)
    half = partial(exp_minus, Fraction(1, 2))
    for given, chance in ((Fraction(1, 3), 1 / 3), (half, math.exp(-0.5))):
        values = source.binomial(40, given, 2000)
        assert near(int(values.sum()), chance, 80_000)
    assert source.binomial(40, Fraction(1)) == source.binomial(40, partial(exp_minus, Fraction(0))) == 40
    assert source.binomial(40, Fraction(0)) == 0


def test_uniform_numbers_and_coins_reach_their_ends():
    source = seeded_source(4)
    values = source.uniform_integers(3, DRAWS)
    assert set(values.tolist()) == {0, 1, 2}
    assert near(int((values == 2).sum()), 1 / 3, DRAWS)
    assert source.uniform_integers(1) == 0
    coins = source.bernoulli(Fraction(1, 4), DRAWS)
    assert near(int(coins.sum()), 0.25, DRAWS)
    assert source.bernoulli(Fraction(1)) == 1
    assert source.bernoulli(Fraction(0)) == 0
    geometric = source.geometric(Fraction(2), DRAWS)
    q = math.exp(-0.5)
    for z in range(4):
        assert near(int((geometric == z).sum()), (1 - q) * q**z, DRAWS)


def test_a_source_says_whether_it_is_seeded_and_repeats_itself():
    assert seeded_source(5).seeded
    one, other, third = (seeded_source(n).discrete_laplace(Fraction(3), 50).tolist() for n in (5, 5, 6))
    assert one == other != third
