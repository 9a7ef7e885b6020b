"""Gaussian noise with a shared part: what it saves, that all splits were checked, and what becomes of half counts."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.central import Merged, UserSketch
from discreet.central.merged_counters import plus_halves
from discreet.noise import seeded_source
from discreet.privacy.calibration import correlated_noise as correlated
from discreet.privacy.calibration.correlated_noise import correlated_calibration, discrete_correlated_delta
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.releases.error_model import ErrorModel, Noise
from discreet_audit.closed_forms import NoiseLaw, shared_split_delta

BUDGET = dc.Budget(1.0, 1e-6)


def test_the_cut_is_at_most_three_fifths_of_that_for_independent_noise():
    sigma, shared, cut = correlated_calibration(1.0, 1e-6, 1024)
    alone, without = gshm_calibration(1.0, 1e-6, 1024)
    assert (cut, without) == (420, 813)
    assert Merged(BUDGET, 1024).threshold == UserSketch(BUDGET, 1024, dc.User(8)).threshold == cut
    # (sqrt(k) + 1)/(2 mu) where it was sqrt(k)/mu
    assert math.hypot(sigma, shared) / 2 == pytest.approx(alone * 33 / 64, rel=1e-3)
    for k in (2, 3, 16, 64, 4096):
        assert correlated_calibration(1.0, 1e-6, k)[2] < gshm_calibration(1.0, 1e-6, k)[1]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("changes", "height"), [(1, 1), (5, 1), (40, 1), (1, 3), (5, 2), (12, 5)])
def test_what_is_returned_passes_for_every_split_and_barely(epsilon, changes, height):
    """The search looks at boxes of splits, this at every one of them."""
    delta = 1e-5
    sigma, shared, cut = correlated_calibration(epsilon, delta, changes, height)

    def at(sigma, shared, cut):
        return discrete_correlated_delta(epsilon, sigma, shared, cut, changes, height=height)

    assert at(sigma, shared, cut) <= delta
    assert at(sigma * 0.995, shared * 0.995, cut) > delta
    if cut > height + 1:
        assert at(sigma, shared, cut - 1) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "changes", "height"), [(1.0, 1e-6, 9, 1), (0.3, 1e-9, 30, 2), (3.0, 0.01, 4, 3)]
)
def test_the_audit_finds_the_same(epsilon, delta, changes, height):
    """Another evaluation: the law of a sum of noises by FFT in place of bounds of Gaussian tails."""
    sigma, shared, cut = correlated_calibration(epsilon, delta, changes, height)
    laws = [NoiseLaw("gaussian", scale, 1e-30) for scale in (sigma, shared)]
    theirs = max(shared_split_delta(*laws, changes - j, j, cut, epsilon, height) for j in range(changes + 1))
    assert theirs == pytest.approx(
        discrete_correlated_delta(epsilon, sigma, shared, cut, changes, height=height), rel=1e-6
    )


def test_blocks_of_the_shared_noise_cost_a_little_and_never_save(monkeypatch):
    sigma, shared, cut = correlated_calibration(1.0, 1e-6, 100, 2)
    exact = discrete_correlated_delta(1.0, sigma, shared, cut, 100, height=2)
    for blocks, most in ((16, 1.5), (2, 30.0)):
        monkeypatch.setattr(correlated, "_BLOCKS", blocks)
        assert exact < discrete_correlated_delta(1.0, sigma, shared, cut, 100, height=2) < most * exact


def test_a_threshold_is_raised_until_every_split_passes(monkeypatch):
    """No split is known that needs more than keys of one sketch alone; one that did would get it."""
    sigma, shared, threshold = correlated_calibration(1.0, 1e-6, 9)
    holds = correlated._holds
    monkeypatch.setattr(correlated, "_holds", lambda *given: given[-1] > threshold + 1 and holds(*given))
    assert correlated_calibration.__wrapped__(1.0, 1e-6, 9) == (sigma, shared, threshold + 2)


@pytest.mark.parametrize("arguments", [(1e-3, 1e-12, 1_000_000, 1), (1.0, 1e-6, 10_000_000, 1), (1.0, 1e-6, 64, 500)])
def test_large_noise_and_many_counters_are_calibrated(arguments):
    sigma, shared, cut = correlated_calibration(*arguments)
    assert sigma > shared > 0
    assert cut > arguments[3]


def test_bad_arguments():
    for bad in ((0.0, 1e-6, 4), (1.0, 0.0, 4), (1.0, 1e-6, 0), (1.0, 1e-6, 10**8), (1.0, 1e-6, 4, 0)):
        with pytest.raises(dc.ParameterError):
            correlated_calibration(*bad)


def test_halves_go_to_the_even_number_and_the_cut_is_before_rounding():
    counts, halves = (grid.ravel() for grid in np.meshgrid(np.arange(-3, 9), np.arange(-9, 10)))
    floor, nearest = plus_halves(counts, halves)
    assert nearest.tolist() == [round(Fraction(2 * int(c) + int(w), 2)) for c, w in zip(counts, halves, strict=True)]
    for cut in range(-2, 8):
        assert ((floor >= cut) == (2 * counts + halves >= 2 * cut)).all()
        assert (nearest[floor >= cut] >= cut).all()
    huge = np.array([2**62 + 1])
    assert plus_halves(huge, np.array([3]))[1].tolist() == [2**62 + 2]


def test_rounding_adds_no_bias():
    mechanism = Merged(dc.Budget(4.0, 0.05), 4)
    sketch = dc.MisraGries(4, seed=1)
    sketch.update([1, 2] * 50 + [1])
    source = seeded_source(3)
    made = [mechanism(sketch, source) for _ in range(4000)]
    releases = [dict(zip(release.items, release.counts.tolist(), strict=True)) for release in made]
    counts = np.array([[found[item] for item in (1, 2)] for found in releases])
    away = counts.mean(axis=0) - [51, 50]
    # Rounding down would be off by 1/4; five standard deviations of the mean are 0.12.
    assert np.abs(away).max() < 5 * mechanism.error_model.noise_scale / math.sqrt(4000) + 0.01 < 0.2


def test_two_gaussians_are_bounded_as_one():
    """The bound of Z_x + eta holds for all counters at once, is not idle, and beats the sum of two bounds."""
    half = Fraction(1, 2)
    noise, shared = Noise("gaussian", Fraction(12), 50, half), Noise("gaussian", Fraction(5), 1, half)
    model = ErrorModel(noise, shared=shared)
    bound = model.noise_bound(0.1)
    assert bound < noise.bound(0.05) + shared.bound(0.05)
    source = seeded_source(5)
    draws = np.array([source.discrete_gaussian(12, 50) + source.discrete_gaussian(5) for _ in range(20_000)])
    over = (np.abs(draws).max(axis=1) / 2 > bound).mean()
    assert 0.05 < over < 0.1 + 5 * math.sqrt(0.1 * 0.9 / 20_000)
    # Too narrow to be one law, or of two kinds: the sum of two bounds.
    for other in (Noise("gaussian", Fraction(1, 10), 1, half), Noise("laplace", Fraction(5), 1, half)):
        mixed = ErrorModel(noise, shared=other).noise_bound(0.1)
        assert mixed == noise.bound(0.05) + other.bound(0.05)


def test_published_bounds_hold_with_rounding():
    mechanism = UserSketch(dc.Budget(3.0, 0.01), 3, dc.User(2), stream_length=400)
    sketch = dc.UserMisraGries(3, 2, seed=1)
    sketch.update([[1, 2], [1, 3]] * 50)
    truth, source, missed = {1: 100, 2: 50, 3: 50}, seeded_source(9), 0
    for _ in range(1000):
        release = mechanism(sketch, source)
        lower, upper = release.bounds(0.9)
        missed += any(
            not low <= truth[item] <= high for item, low, high in zip(release.items, lower, upper, strict=True)
        )
    assert missed <= 100 + 5 * math.sqrt(1000 * 0.1 * 0.9)
