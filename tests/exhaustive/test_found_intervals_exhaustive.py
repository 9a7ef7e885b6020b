"""Intervals of heavy hitters that are found in a sketch: the exact chance that they fail, for every small sketch.

A node has some counters c and an offset alpha. Its noises are enumerated: which of the counters pass, and what is then
said of those that did and of those that did not. True counts are the worst that a sketch allows: c + alpha for upper
ends and for what is not listed, c for lower ends.
"""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from discreet.releases.error_model import ErrorModel, Noise, Stretch, Stretches

SIGMA, CUT, REACH, MOST = Fraction(2), 7, 26, 4
Z = np.arange(-REACH, REACH + 1)
MASS = np.exp(-(Z**2) / (2 * float(SIGMA) ** 2))
MASS /= MASS.sum()
OFFSETS, NOISES = Z[:, None], Z[None, :]  # Z_0, and the noise of a counter
LEVELS = (0, 4, 7, 9, 11, 13, 15, 18)


def tables(alpha, beta, counters, union):
    """By the number n that pass, a count and whether it passes: chances, by Z_0, that it does and is stated well."""
    found, nowhere = {}, {}
    for n in range(counters + 1):
        model = ErrorModel(
            Noise("gaussian", SIGMA, max(1, n) if union else 1), stretches=Stretches(counters=counters if union else 1)
        )
        below, above = model.distances(1 - beta, 0)
        stretch = Stretch(0, CUT, Noise("gaussian", SIGMA, n if union else 0))
        lacks = np.maximum(0, alpha + Z + stretch.lacks(beta / 3))
        nowhere[n] = alpha <= lacks
        for count in LEVELS:
            listed = count + NOISES - OFFSETS >= CUT
            passes = (listed * MASS).sum(axis=1)
            upper = ((listed & (-above <= NOISES)) * MASS).sum(axis=1)
            lower = ((listed & (below >= NOISES - OFFSETS)) * MASS).sum(axis=1)
            found[n, count, True] = np.array([passes, upper, lower, passes])
            found[n, count, False] = (1 - passes) * np.array([1 + 0 * Z, 1 + 0 * Z, 1 + 0 * Z, count + alpha <= lacks])
    return found, nowhere


def worst(alpha, beta, union=True):
    """The largest chances over all sketches: that an upper end fails, a lower end, or what others may have."""
    most = np.zeros(3)
    for size in (1, 2, MOST):
        found, nowhere = tables(alpha, beta, size, union)
        for c in combinations_with_replacement(LEVELS, size):
            failed = np.zeros(3)
            for passing in product((False, True), repeat=size):
                n = sum(passing)
                whole, *good = np.prod([found[n, count, by] for count, by in zip(c, passing, strict=True)], axis=0)
                good[2] = good[2] * nowhere[n]
                failed += [float(((whole - of) * MASS).sum()) for of in good]
            most = np.maximum(most, failed)
    return most


@pytest.mark.parametrize("beta", [0.9, 0.3, 0.05])
@pytest.mark.parametrize("alpha", [0, 5])
def test_each_part_fails_with_a_third_of_what_may_fail(alpha, beta):
    found = worst(alpha, beta)
    assert (found <= beta / 3 + 1e-12).all()
    assert (found > beta * np.array([0.2, 0.2, 0.01])).all()  # the ends reach it; the offset's noise spares the last


def test_without_the_number_of_items_they_fail_more_often():
    assert (worst(0, 0.3, union=False)[:2] > 0.13).all()
    assert worst(0, 0.3, union=False)[2] > 2 * worst(0, 0.3)[2]
