"""The native sampler over every random word there is, at word sizes where that is feasible.

A draw that the word does not decide is handed back. For the others: the words that give a value, as a share of all
words, must lie below its probability, and with the undecided ones above. This holds at every word size, so the law of
a draw that is continued until decided is exact.
"""

from collections import Counter
from fractions import Fraction

import pytest

import discreet._native as _native
from discreet.noise import laws
from discreet.noise.enclosure import exp_minus

FINE = 256


def probability_bounds(law, block):
    """Encloses P[block], from a table of more bits than the one that is checked."""
    bounds = law.table(FINE)
    below = bounds[block - 1] - 1 if block else 0, bounds[block - 1] + 1 if block else 0
    return Fraction(bounds[block] - 1 - below[1], 2**FINE), Fraction(bounds[block] + 1 - below[0], 2**FINE)


def draw(law, *words):
    """One draw: ("value", v), ("pending", state), or ("rejected", None) when it asks for more words."""
    try:
        values, pending = law.native.draw(_native.RandomSource(replay=list(words)), 1)
    except IndexError:
        return "rejected", None
    return ("pending", pending[0]) if pending else ("value", int(values[0]))


@pytest.mark.parametrize("word", [1, 4, 9])
@pytest.mark.parametrize(
    "make",
    [
        lambda word: laws.laplace_law(Fraction(1, 3), word),
        lambda word: laws.laplace_law(Fraction(5, 2), word),
        lambda word: laws.geometric_law(Fraction(7, 3), word),
        lambda word: laws.gaussian_law(Fraction(2, 3), word),
        lambda word: laws.gaussian_law(Fraction(9), word),
        lambda word: laws.bernoulli_law(lambda bits: exp_minus(Fraction(1, 2), bits), word),
    ],
)
def test_every_word_of_a_narrow_law(make, word):
    law = make(word)
    signed = law.sign != _native.Sign.none
    seen, undecided = Counter(), 0
    for top in range(2**word):
        for sign in (0, 1):
            kind, value = draw(law, top << (64 - word) | sign)
            assert kind != "rejected"
            if kind == "value":
                seen[value] += 1
                assert value >= 0 or (signed and sign == 1)
            else:
                _, negative, known, bits, pending_word, _, _ = value
                assert (negative, known, bits, pending_word) == (signed and sign == 1, False, word, top)
                undecided += 1
    words = 2 ** (word + 1)
    for value, count in seen.items():
        if signed and value:
            assert seen[value] == seen[-value]
        low, high = probability_bounds(law, abs(value))
        share = 2 if signed and value else 1
        assert Fraction(share * count, words) <= high
        assert Fraction(share * count + undecided, words) >= low
    # Each boundary between two values leaves at most two words undecided, with either sign.
    assert undecided <= 4 * len(law.table(word))
    assert len(seen) > 1 or word < 9


@pytest.mark.parametrize(
    "law",
    [
        laws.laplace_law(Fraction(40), 6),
        laws.geometric_law(Fraction(33), 6),
        laws.gaussian_law(Fraction(130), 9),
    ],
)
def test_every_word_of_a_law_in_blocks(law):
    """Offsets are uniform, and accepted with probability exp(-x): the words that say so enclose it."""
    word, offsets = law.word, 1 << law.block_bits
    assert law.block_bits == 2
    accepted, undecided, rejected = Counter(), Counter(), Counter()
    blocks = set()
    for top in range(0, 2**word, 2**word // 64):
        kind, value = draw(law, top << (64 - word), 0)
        if kind == "pending" and not value[2]:
            continue  # the block itself is not decided: covered by the test above
        for second in range(2**word):
            for offset in range(offsets):
                kind, value = draw(law, top << (64 - word), second << (64 - word) | offset)
                if kind == "value":
                    block = value >> law.block_bits
                    assert value & (offsets - 1) == offset
                    accepted[block, offset, top] += 1
                elif kind == "pending":
                    block = value[5]
                    assert value[1:5] == (False, True, word, second)
                    assert value[6] == offset
                    undecided[block, offset, top] += 1
                else:
                    rejected[offset, top] += 1
                    continue
                blocks.add((block, top))
    assert len(blocks) > 10
    for block, top in blocks:
        for offset in range(offsets):
            low, high = exp_minus(law.exponent(block, offset), FINE)
            yes, unknown = accepted[block, offset, top], undecided[block, offset, top]
            assert yes + unknown + rejected[offset, top] == 2**word
            assert Fraction(yes, 2**word) <= Fraction(high, 2**FINE)
            assert Fraction(yes + unknown, 2**word) >= Fraction(low, 2**FINE)
            assert unknown <= 3


def test_zero_is_not_counted_twice():
    law = laws.laplace_law(Fraction(40), 6)
    assert draw(law, 0, 0) == ("value", 0)
    assert draw(law, 1, 0) == ("rejected", None)
    assert draw(law, 1, 1) == ("value", -1)


@pytest.mark.parametrize(
    "law", [laws.laplace_law(Fraction(40)), laws.geometric_law(Fraction(63)), laws.gaussian_law(Fraction(130))]
)
def test_words_next_to_the_chance_of_acceptance(law):
    """With all 62 bits the sums are rounded: within their slack of exp(-x) a word must be left undecided, and what is
    decided must be right. Words are taken on both sides of it, one by one and farther away."""
    assert law.block_bits == 2
    one, decided, undecided = 1 << 62, 0, 0
    for block in (0, 3, 9):
        first = (law.table(63)[block] - 1000) << 1  # a word that chooses this block and the positive sign
        for offset in (1, 2, 3):
            low, high = (Fraction(bound, 2**FINE) for bound in exp_minus(law.exponent(block, offset), FINE))
            place = int(low * one)
            for uniform in (place + d for d in (*range(-40, 41), *range(-600, 601, 25))):
                # The offset is the lowest two bits, the uniform number all the others.
                kind, value = draw(law, first, uniform << 2 | offset)
                if kind == "value":
                    assert value == 4 * block + offset
                    assert Fraction(uniform + 1, one) <= low
                elif kind == "rejected":
                    assert Fraction(uniform, one) >= high
                undecided += kind == "pending"
                decided += kind != "pending"
    assert decided > 100
    assert undecided > 100
