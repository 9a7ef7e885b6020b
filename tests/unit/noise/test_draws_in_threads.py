"""Many draws are made by several threads, each from a source of its own; a seeded source stays one sequence."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import seeded_source, system_source

pytestmark = pytest.mark.system_noise

MANY = (1 << 19) + 12345  # so many that threads share them where there are cores


def test_draws_have_their_law_everywhere_and_no_thread_repeats_another():
    sigma = 40
    draws = system_source().discrete_gaussian(Fraction(sigma), MANY)
    assert len(draws) == MANY
    # Twelve bounds at 7 standard deviations: fails with a probability below 1e-10.
    for part in np.array_split(draws, 6):
        assert abs(part.mean()) < 7 * sigma / math.sqrt(len(part))
        assert abs(part.var() / sigma**2 - 1.0) < 7 * math.sqrt(2 / len(part))
    # A stretch of 100 draws occurs once.
    stretches = {bytes(part) for part in np.split(draws[: MANY // 100 * 100], MANY // 100)}
    assert len(stretches) == MANY // 100
    for threads in (2, 3, 4):
        begins = [draws[MANY // threads * thread :][:64].tobytes() for thread in range(threads)]
        assert len({*begins}) == threads


def test_a_seeded_source_does_not_depend_on_the_number_of_draws_at_once():
    whole = seeded_source(5).discrete_gaussian(Fraction(9), MANY)
    again = seeded_source(5)
    parts = [again.discrete_gaussian(Fraction(9), size) for size in (1000, MANY - 1000)]
    assert np.array_equal(whole, np.concatenate(parts))
