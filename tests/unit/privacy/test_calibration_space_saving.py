"""The cut of private SpaceSaving, and the tails all thresholds share at the ends of their scale."""

import math

import mpmath
import numpy as np
import pytest

from discreet.central._noisy_entries import universe_cut
from discreet.central.reduced_misra_gries import reduced_threshold
from discreet.central.stability import stability_threshold
from discreet.privacy.calibration.offset_cut import offset_threshold
from discreet.privacy.calibration.tails import chan_threshold, log_any_shown, log_any_shown_each, log_below
from discreet.published.private_space_saving import (
    space_saving_delta,
    space_saving_noisy_delta,
    space_saving_noisy_threshold,
    space_saving_paper_margin,
    space_saving_threshold,
)
from discreet.published.textbook_misra_gries import textbook_threshold


def shown(rate, cuts, times=1):
    """1 - prod P[Z < s]^times with enough digits."""
    with mpmath.workdps(1200):
        q = mpmath.exp(-mpmath.mpf(rate))
        hidden = mpmath.mpf(1)
        for s in cuts:
            hidden *= (1 - q**s / (1 + q)) if s >= 1 else q ** (1 - s) / (1 + q)
        return 1 - hidden**times


@pytest.mark.parametrize("rate", [0.001, 0.3, 1.0, 20.0, 50.0])
@pytest.mark.parametrize("cuts", [[0], [1], [0, 1], [-2, 5], [12, 13], [40]])
@pytest.mark.parametrize("times", [1, 7])
def test_one_of_several_is_shown(rate, cuts, times):
    exact = float(mpmath.log(shown(rate, cuts, times)))
    assert log_any_shown(rate, cuts, times) == pytest.approx(exact, rel=1e-11, abs=1e-11)
    each = log_any_shown_each(rate, [np.array([float(s)]) for s in cuts], times)
    assert each[0] == pytest.approx(exact, rel=1e-11, abs=1e-11)


def test_below_is_what_the_tail_leaves():
    for rate in (0.1, 2.0, 60.0):
        for s in (-3, 0, 1, 4):
            assert math.exp(log_below(rate, s)) == pytest.approx(float(1 - shown(rate, [s])), rel=1e-11)
    # P[Z < 0] = q/(1+q), not 0
    assert log_below(60.0, 0) == pytest.approx(-60.0)


def test_the_public_length_by_its_formula():
    for epsilon, t in ((0.1, 30), (1.0, 5), (2.0, 3)):
        r = [math.exp(-epsilon * s) / (1 + math.exp(-epsilon)) for s in (t, t + 1)]
        assert space_saving_delta(epsilon, t) == pytest.approx(1 - (1 - r[0]) * (1 - r[1]), rel=1e-11)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        for delta in (1e-9, 1e-6, 0.01):
            t = space_saving_threshold(epsilon, delta)
            assert space_saving_delta(epsilon, t) <= delta < space_saving_delta(epsilon, t - 1)


def test_the_printed_margin_gives_half_of_delta():
    """Published iff the noise exceeds gamma: then r(t) + r(t+1) = q^t < delta/2."""
    for epsilon in (0.05, 0.5, 1.0, 3.0):
        for delta in (1e-9, 1e-3, 0.2):
            t = math.floor(space_saving_paper_margin(epsilon, delta)) + 1
            assert space_saving_delta(epsilon, t) <= delta / 2


def _noisy_delta(rate, length_rate, k, t):
    """The larger direction, summed term by term over the noise of the length."""
    reach = math.ceil(45 / length_rate)
    q = math.exp(-length_rate)
    forwards = backwards = 0.0
    for z in range(-reach, reach + 1):
        p = (1 - q) / (1 + q) * q ** abs(z)
        ahead, behind = t + (z + 1) // k, t + z // k
        forwards += p * float(shown_float(rate, [ahead, ahead + 1]))
        backwards += p * float(shown_float(rate, [behind + 1, behind + 1]))
    return max(forwards, backwards)


def shown_float(rate, cuts):
    return math.exp(log_any_shown(rate, cuts))


@pytest.mark.parametrize("k", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize(("rate", "length_rate"), [(1.0, 0.5), (1.8, 0.2), (0.3, 2.0)])
def test_the_noisy_length_term_by_term(k, rate, length_rate):
    for t in (0, 3, 9):
        expected = _noisy_delta(rate, length_rate, k, t)
        assert space_saving_noisy_delta(rate, length_rate, k, t) == pytest.approx(expected, rel=1e-9)
        # a little above, never below
        assert space_saving_noisy_delta(rate, length_rate, k, t) >= expected * (1 - 1e-12)


def test_the_noisy_threshold_is_the_smallest():
    for k in (1, 16, 1024):
        t = space_saving_noisy_threshold(0.9, 1e-6, 0.1, k)
        assert space_saving_noisy_delta(0.9, 0.1, k, t) <= 1e-6 < space_saving_noisy_delta(0.9, 0.1, k, t - 1)
    # with many counters the noise of the length does not reach the cut
    assert space_saving_noisy_threshold(0.9, 1e-6, 0.1, 2**20) <= space_saving_threshold(0.9, 1e-6) + 1


@pytest.mark.parametrize("epsilon", [1e-2, 0.1, 10.0, 37.0, 100.0, 800.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-15, 0.5, 0.99])
def test_thresholds_exist_at_the_ends_of_the_scale(epsilon, delta):
    thresholds = [
        stability_threshold(epsilon, delta),
        stability_threshold(epsilon, delta, max_items=3),
        offset_threshold(epsilon, delta),
        textbook_threshold(epsilon, delta, 8),
        chan_threshold(epsilon, delta, 8),
        reduced_threshold(epsilon, delta, 8),
        universe_cut(epsilon, 3, 1000, delta),
        space_saving_threshold(epsilon, delta),
        space_saving_noisy_threshold(epsilon, delta, max(epsilon, 0.01), 64),
    ]
    assert all(t >= 0 for t in thresholds)
    if delta < 1e-10:
        # P[Z >= t] is about e^(-epsilon t)
        assert all(t >= math.floor(-math.log(delta) / epsilon) - 1 / epsilon for t in thresholds)
