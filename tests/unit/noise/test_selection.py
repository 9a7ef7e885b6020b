"""Selection where floating point would decide wrongly."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import seeded_source, selection
from discreet.noise.enclosure import exp_minus


@pytest.mark.parametrize("gap", [1, 5, 31, 2**20 + 1])
@pytest.mark.parametrize(
    "nearly", [1 - Fraction(1, 2**50), 1 - Fraction(1, 2**53), Fraction(1), 1 + Fraction(1, 2**60)]
)
def test_a_class_is_never_heavier_than_its_items(gap, nearly, monkeypatch):
    """32 rate gap a little below a whole number: rounded up, the acceptance exp(-x) would be asked for x < 0."""
    asked = []

    def watched(x, bits):
        asked.append(x)
        return exp_minus(x, bits)

    monkeypatch.setattr(selection, "exp_minus", watched)
    whole = 7  # 32 rate gap = 7, nearly
    rate = nearly * Fraction(whole, 32 * gap)
    source = seeded_source(1)
    for _ in range(40):
        source.exponential_mechanism(np.array([0, -gap, -gap]), 2 * rate)
    assert min(asked) >= 0
    # The class just below was taken, and the rest was left to the acceptance.
    assert any(0 < x <= Fraction(1, 32) + Fraction(1, 2**40) for x in asked)
