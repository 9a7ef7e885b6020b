"""The tables and enclosures of the samplers, against independent arithmetic: exact fractions and the decimal module.

The decimal module's exp is correctly rounded, so 200 digits of it decide every comparison made here.
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise import laws
from discreet.noise.enclosure import exp_minus, is_below, pi, rational, table

DIGITS = Context(prec=200, Emin=-(10**9), Emax=10**9)


def decimal(value):
    return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_of_minus(x):
    return (-decimal(x)).exp(DIGITS)


@given(st.fractions(min_value=0, max_value=400), st.integers(1, 300))
@settings(max_examples=300, deadline=None)
def test_exp_minus_encloses_the_exponential_closely(x, bits):
    low, high = exp_minus(x, bits)
    with localcontext(DIGITS):
        assert low <= exp_of_minus(x) * 2**bits <= high
    assert high - low <= 3


@pytest.mark.parametrize(
    "x", [Fraction(5e-324), Fraction(1, 3**200), Fraction(1e300), Fraction(10**30, 7), Fraction(0)]
)
def test_exp_minus_of_extreme_arguments(x):
    for bits in (1, 64, 2000):
        low, high = exp_minus(x, bits)
        assert 0 <= high - low <= 3
        # 1 - x <= exp(-x) <= 1 / (1 + x)
        assert high >= (1 - x) * 2**bits
        assert low <= 2**bits / (1 + x)


@given(st.fractions(min_value=0, max_value=1), st.integers(1, 300))
def test_a_rational_is_enclosed(value, bits):
    low, high = rational(value, bits)
    assert low <= value * 2**bits <= high <= low + 1


def test_pi_is_enclosed():
    digits = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421")
    for bits in (1, 64, 250):
        low, high = pi(bits)
        with localcontext(DIGITS):
            assert low <= digits * 2**bits <= high
        assert high - low <= 2


@pytest.mark.parametrize("sigma", [Fraction(1, 10), Fraction(0.9), Fraction(1), Fraction(3.3), Fraction(40)])
@pytest.mark.parametrize("minimum", [1, 2, 4, 50])
def test_the_tail_of_a_gaussian_is_proposals_times_acceptance(sigma, minimum):
    """P[Z >= c] = p E[exp(-(c + g - s)^2/(2 sigma^2))], all three summed to 200 digits."""
    with localcontext(DIGITS):
        weights = [exp_of_minus(Fraction(z * z) / (2 * sigma**2)) for z in range(minimum + int(40 * sigma) + 40)]
        total = 2 * sum(weights) - 1
        low, high = laws._gaussian_total(sigma)(128)
        assert low <= total * 2**128 <= high
        assert high - low <= 64
        chance, s = laws.gaussian_proposals(sigma, minimum)
        q = exp_of_minus(s / sigma**2)
        accepted = sum(
            (1 - q) * q**g * exp_of_minus((minimum + g - s) ** 2 / (2 * sigma**2))
            for g in range(len(weights) - minimum)
        )
        low, high = chance(128)
        tail = sum(weights[minimum:]) / total
        assert low * accepted * (1 - Decimal("1e-30")) <= tail * 2**128 <= high * accepted * (1 + Decimal("1e-30"))
        assert high - low <= 2
        assert high < 2**127 * Decimal("1.34")
        assert accepted > Decimal("0.6")


@pytest.mark.parametrize(("sigma", "minimum"), [(Fraction(1, 2), 1), (Fraction(3), 0), (Fraction(100), 130)])
def test_the_gaussian_above_a_minimum_has_the_weights_of_its_blocks(sigma, minimum):
    law = laws.gaussian_above_law(sigma, minimum)
    m = 1 << law.block_bits

    def weight(h):
        return exp_of_minus(Fraction(h * h * m * m + 2 * minimum * h * m) / (2 * sigma**2))

    with localcontext(DIGITS):
        bounds = law.table(63)
        weights = [weight(h) for h in range(len(bounds) + 40)]
        total = sum(weights)
        for h in range(0, len(bounds), 7):
            assert bounds[h] - 1 <= sum(weights[: h + 1]) / total * 2**63 <= bounds[h] + 1
        # The weight of a value is that of its block times what its offset is accepted with.
        for h, offset in ((0, 0), (1, m - 1), (2, m // 2)):
            z = minimum + h * m + offset
            exact = Fraction(z * z - minimum * minimum) / (2 * sigma**2)
            assert Fraction(h * h * m * m + 2 * minimum * h * m) / (2 * sigma**2) + law.exponent(h, offset) == exact


def laplace_cumulative(scale):
    q = exp_of_minus(1 / scale)
    return lambda h: 1 - 2 * exp_of_minus((h + 1) / scale) / (1 + q)


def gaussian_cumulative(sigma):
    weights = [exp_of_minus(Fraction(h * h) / (2 * sigma**2)) * (2 if h else 1) for h in range(int(16 * sigma) + 16)]
    total = sum(weights)
    return lambda h: sum(weights[: h + 1]) / total


@pytest.mark.parametrize("scale", [Fraction(1, 100), Fraction(1, 2), Fraction(1), 1 / Fraction(0.1), Fraction(31, 2)])
@pytest.mark.parametrize("bits", [3, 63, 100])
def test_laplace_table_is_right_to_the_unit(scale, bits):
    with localcontext(DIGITS):
        cumulative = laplace_cumulative(scale)
        for h, bound in enumerate(laws.laplace_law(scale).table(bits)):
            assert bound - 1 <= cumulative(h) * 2**bits <= bound + 1


@pytest.mark.parametrize("sigma", [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3.3), Fraction(10)])
@pytest.mark.parametrize("bits", [3, 63, 100])
def test_gaussian_table_is_right_to_the_unit(sigma, bits):
    with localcontext(DIGITS):
        cumulative = gaussian_cumulative(sigma)
        for h, bound in enumerate(laws.gaussian_law(sigma).table(bits)):
            assert bound - 1 <= cumulative(h) * 2**bits <= bound + 1


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(16), 1 / Fraction(0.001), Fraction(2**50)])
def test_geometric_table_is_right_to_the_unit(scale):
    """Also the table of blocks of discrete Laplace noise from scale 16 on."""
    law = laws.geometric_law(scale)
    with localcontext(DIGITS):
        for h, bound in enumerate(law.table(63)):
            assert bound - 1 <= (1 - exp_of_minus((h + 1) * 2**law.block_bits / scale)) * 2**63 <= bound + 1
    if scale >= 16:
        assert laws.laplace_law(scale).table(63) == law.table(63)


@pytest.mark.parametrize("sigma", [Fraction(64), Fraction(1000.1), Fraction(10**9)])
def test_table_of_gaussian_blocks_is_right_to_the_unit(sigma):
    law = laws.gaussian_law(sigma)
    x = Fraction(4**law.block_bits) / (2 * sigma**2)
    with localcontext(DIGITS):
        weights = [exp_of_minus(h * h * x) for h in range(64 * 20)]
        total, cumulative = sum(weights), Decimal(0)
        for weight, bound in zip(weights, law.table(63), strict=False):
            cumulative += weight
            assert bound - 1 <= cumulative / total * 2**63 <= bound + 1


def test_a_table_of_another_scale_is_not_right():
    """The check above would see a scale that differs in the fifteenth digit."""
    with localcontext(DIGITS):
        cumulative = laplace_cumulative(Fraction(2))
        other = laws.laplace_law(Fraction(2) + Fraction(1, 10**15)).table(63)
        assert not all(bound - 1 <= cumulative(h) * 2**63 <= bound + 1 for h, bound in enumerate(other))


@pytest.mark.parametrize("trials", [1, 2, 7, 40])
@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1, 1000), Fraction(1, 3), Fraction(1, 2)])
def test_binomial_table_is_right_to_the_unit(trials, probability):
    law = laws.binomial_law(trials, lambda bits: rational(probability, bits), trials)
    cumulative = Fraction(0)
    for k, bound in enumerate(law.table(63)):
        cumulative += math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
        assert bound - 1 <= cumulative * 2**63 <= bound + 1


def test_binomial_table_of_a_huge_universe():
    """n = 2^64, p = exp(-42): the limit law is Poisson up to n p^2 < 1e-17."""
    trials, mean = 2**64, 2.0**64 * math.exp(-42)
    law = laws.binomial_law(trials, lambda bits: exp_minus(Fraction(42), bits), math.ceil(mean))
    poisson = 0.0
    for k, bound in enumerate(law.table(63)):
        poisson += math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1))
        assert bound / 2**63 == pytest.approx(poisson, abs=1e-13)


@pytest.mark.parametrize("minimum", [-3, 0, 1, 5, 200])
def test_laplace_tail_is_the_sum_of_its_law(minimum):
    scale = Fraction(3, 2)
    low, high = laws.laplace_tail(scale, minimum)(400)
    with localcontext(DIGITS):
        q = exp_of_minus(1 / scale)
        exact = sum((1 - q) / (1 + q) * q ** abs(z) for z in range(minimum, 1000))
        assert low <= (exact + Decimal(10) ** -150) * 2**400
        assert (exact - Decimal(10) ** -150) * 2**400 <= high


class Script:
    """Hands out the words of a list."""

    def __init__(self, *words):
        self.words = list(words)

    def bits(self, count):
        word = self.words.pop(0)
        assert count == 64 or word < 2**count
        return word


def test_a_comparison_that_64_bits_do_not_decide_goes_on():
    third = Fraction(1, 3)
    tie = 2**64 // 3  # the first 64 binary digits of 1/3
    script = Script(tie, tie, 0)
    assert is_below(lambda bits: rational(third, bits), script)
    assert script.words == []
    assert not is_below(lambda bits: rational(third, bits), Script(tie, 2**63))
    assert is_below(lambda bits: rational(Fraction(1), bits), Script(2**64 - 1))
    assert not is_below(lambda bits: rational(Fraction(0), bits), Script(0))


def test_a_table_with_loose_enclosures_is_made_again_with_more_digits():
    asked = []

    def cumulative(bits):
        asked.append(bits)
        slack = 1 << 70  # more than a unit at the first precision, 2^64
        half = 1 << (bits - 1)
        yield half - slack, half + slack
        yield 1 << bits, 1 << bits

    assert table(cumulative, 63)[0] in (2**62, 2**62 + 1)
    assert len(asked) == 2


ONES = 2**64 - 1
BLOCKS, SIGNED, NARROW = (
    laws.geometric_law(Fraction(1000)),
    laws.laplace_law(Fraction(1000)),
    laws.laplace_law(Fraction(3)),
)
"""Values of 6 bits in a block, the second with a sign; and a law without blocks."""


@pytest.mark.parametrize(
    ("law", "known", "words", "value"),
    [
        # what chose the block (the first bits, and 64 more) says nothing of whether its offset is accepted
        (BLOCKS, {"bits": 8, "word": 0}, (0, 63, ONES, 0, 5, 0), 5),
        (BLOCKS, {"bits": 8, "word": 0}, (0, 63, 0), 63),
        (BLOCKS, {"bits": 8, "word": 0}, (0, 0), 0),  # the first of a block is always accepted
        (BLOCKS, {"bits": 8, "word": 255}, (0, 5, 0), 64 * 86 + 5),  # P[block < 86] < 255/256 < P[block <= 86]
        # a block that is known: the bits are those of the acceptance, which a second try does not see
        (BLOCKS, {"block_known": True, "bits": 8, "word": 0, "block": 2, "offset": 63}, (ONES,), 2 * 64 + 63),
        (BLOCKS, {"block_known": True, "bits": 8, "word": 255, "block": 2, "offset": 63}, (0, 0, 5, ONES, 0, 7, 0), 7),
        # 0 has one sign, and another try has a sign of its own
        (SIGNED, {"negative": False}, (0, 0), 0),
        (SIGNED, {"negative": True}, (0, 0, 1, 0, 5, 0), -5),
        (SIGNED, {"negative": True}, (0, 0, 0, 0, 5, 0), 5),
        (SIGNED, {"negative": True}, (0, 63, ONES, 0, 0, 5, 0), 5),
        (SIGNED, {"negative": True}, (0, 63, 0), -63),
        # a law whose zero is not counted twice
        (NARROW, {"negative": True, "bits": 8, "word": 0}, (0,), 0),
        (NARROW, {"negative": True, "bits": 8, "word": 255}, (0,), -17),
        (NARROW, {"negative": False, "bits": 8, "word": 255}, (0,), 17),
    ],
)
def test_a_draw_that_a_word_does_not_decide_goes_on_with_fresh_bits(law, known, words, value):
    """Written down bit by bit: in a draw of 63 bits this is next to never reached, and exact all the same."""
    script = Script(*words)
    assert law.settle(script, **known) == value
    assert script.words == []
