"""The reduced sketch (LT Algorithm 3): its sensitivity and the (epsilon, delta) release, over every pair in a box."""

import itertools
import math
from functools import cache

import pytest
from tests.reference.neighbours import Pair, laplace, neighbouring_states, signature

from discreet.central.reduced_misra_gries import reduced_sensitivity, reduced_squared_sensitivity, reduced_threshold
from discreet.privacy.calibration.tails import log_tail


def _reduced(k, pair):
    """The two integer vectors max(0, (k+1) c - sum c), key by key."""
    keys, _ = pair
    sums = [sum(key[side] or 0 for key in keys) for side in (0, 1)]
    return tuple(tuple(max(0, (k + 1) * (key[side] or 0) - sums[side]) for side in (0, 1)) for key in keys)


def _pairs(k, universe, largest):
    return {signature(*pair) for pair in neighbouring_states(k, universe, largest)}


@pytest.mark.parametrize(("k", "universe", "largest"), [(1, 3, 5), (2, 4, 4), (3, 5, 3)])
def test_sensitivity_is_two_k_minus_one_and_its_l2_square_k_squared_plus_k_minus_one(k, universe, largest):
    moves = {tuple(a - b for a, b in _reduced(k, pair)) for pair in _pairs(k, universe, largest)}
    assert max(sum(map(abs, move)) for move in moves) == reduced_sensitivity(k) == 2 * k - 1
    assert max(sum(d * d for d in move) for move in moves) == reduced_squared_sensitivity(k) == k * k + k - 1
    assert reduced_squared_sensitivity(k, max_items=3) == 9 * (k * k + k - 1)


def _divergence(entries, epsilon, D, threshold, noise_factor=1.0, rounding=True):
    """Of the laws of all that is published, where the entries are independent of each other."""
    total = Pair.of({"": 1.0}, {"": 1.0})
    for key in entries:
        if key[0] != key[1]:
            total = total.times(_laws(key, epsilon / D * noise_factor, D, threshold, rounding))
    return total.divergence(math.exp(epsilon))


@cache
def _laws(key, rate, D, threshold, rounding):
    """Entries below D are rounded to 0 or D at random; positive ones get noise; shown iff at least the threshold."""
    z, p = laplace(math.exp(-rate), math.ceil(36 / rate))
    laws = []
    for y in key:
        value, chance = (D, y / D) if y < D and rounding else (y, float(y > 0))
        shown = value + z >= threshold
        law = {int(v): chance * mass for v, mass in zip((value + z)[shown], p[shown], strict=True)}
        laws.append({"hidden": 1.0 - math.fsum(law.values()), **law})
    return Pair.of(*laws)


def _moves(D, cut):
    """All moves of one or two entries by at most D in all, from 0 to beyond the cut: what the proof allows."""
    starts = [*range(2 * D + 1), cut - 1, cut, cut + 1]
    entries = {(y, y + d) for y in starts for d in range(-D, D + 1) if y + d >= 0 and d}
    for one in entries:
        yield (one,)
    for one, two in itertools.combinations_with_replacement(sorted(entries), 2):
        if abs(one[0] - one[1]) + abs(two[0] - two[1]) <= D:
            yield one, two


@pytest.mark.parametrize(("k", "epsilon"), [(1, 0.6), (1, 2.5), (2, 0.6), (2, 2.5), (3, 2.5)])
def test_rounded_release(k, epsilon):
    D = reduced_sensitivity(k)
    delta = 0.03
    threshold = reduced_threshold(epsilon, delta, k)
    assert threshold > 2 * D

    def divergences(cut, **sabotage):
        return (_divergence(entries, epsilon, D, cut, **sabotage) for entries in _moves(D, threshold))

    # an entry that moves from 0 to D is the worst: delta is exactly P[Z >= t]
    worst = max(divergences(threshold))
    assert worst == pytest.approx(math.exp(log_tail(epsilon / D, threshold - D)), rel=1e-9)
    assert worst <= delta
    assert any(found > delta for found in divergences(threshold - 1))
    assert any(found > delta for found in divergences(threshold, noise_factor=2.0))


def test_rounding_is_what_keeps_delta_from_growing_with_the_sketch():
    """D entries that move from 0 to 1 each: rounded, each is shown with probability P[Z >= t]/D at most."""
    epsilon, k = 1.0, 5
    D = reduced_sensitivity(k)
    threshold = reduced_threshold(epsilon, 0.03, k)
    entries = ((1, 0),) * D
    assert _divergence(entries, epsilon, D, threshold) <= 0.03
    assert _divergence(entries, epsilon, D, threshold, rounding=False) > 0.03
