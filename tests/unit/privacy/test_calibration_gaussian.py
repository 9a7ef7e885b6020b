"""Gaussian calibration: closed forms against term-by-term sums, the sparse histogram, and zCDP conversions."""

import math
import random
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.errors import ParameterError
from discreet.privacy.calibration import gaussian, sparse_histogram
from discreet.privacy.calibration.gaussian import (
    _BERNOULLI,
    _LARGEST_ROOT,
    _ORDER,
    _REMAINDER,
    _tail_bounds,
    discrete_gaussian_delta,
    discrete_gaussian_sigma,
    discrete_gaussian_sigma_any,
    discrete_gaussian_tail,
    gaussian_delta,
    gaussian_sigma,
    unit_change_delta,
)
from discreet.privacy.calibration.sparse_histogram import discrete_gshm_delta, gshm_calibration
from discreet.privacy.calibration.zcdp import gaussian_rho, pure_rho, zcdp_delta, zcdp_epsilon, zcdp_rho, zcdp_sigma


def _pmf(sigma: float, reach: int) -> np.ndarray:
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    return weights / weights.sum()


def _hermite_values(u: float) -> list[Fraction]:
    """He_0(u) to He_11(u), without rounding: He_(k+1) = u He_k - k He_(k-1)."""
    x = Fraction(u)
    values = [Fraction(1), x]
    for k in range(1, _ORDER):
        values.append(x * values[k] - k * values[k - 1])
    return values


def test_the_integral_of_the_remainder_splits_at_the_largest_root_rounded_up():
    """The Taylor series of He_11 at the constant has positive terms alone: there is no root from it on."""
    assert min(_hermite_values(_LARGEST_ROOT)) > 0
    assert _hermite_values(math.nextafter(_LARGEST_ROOT, 0.0))[_ORDER] < 0  # and the next smaller number is below it


def test_constants_of_the_expansion_against_high_precision():
    with mpmath.workdps(60):
        for i, coefficient in enumerate(_BERNOULLI, start=1):
            exact = mpmath.bernoulli(2 * i) / mpmath.factorial(2 * i)
            assert abs(coefficient / exact - 1) < 2e-16
        remainder = 2 * mpmath.zeta(_ORDER) / (2 * mpmath.pi) ** _ORDER
        assert remainder <= _REMAINDER <= remainder * (1 + mpmath.mpf(10) ** -14)


def test_loading_the_calibration_warns_of_nothing():
    """In a process of its own, where what other tests loaded is not there."""
    command = "import discreet.privacy.calibration.gaussian"
    subprocess.run([sys.executable, "-W", "error", "-c", command], check=True, timeout=120)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 11.9, 12.1, 90.0])
def test_tail_bounds_enclose_the_sum_tightly(sigma):
    with mpmath.workdps(40):
        s = mpmath.mpf(sigma)
        reach = math.ceil(24 * sigma) + 3
        weights = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * s * s)) for z in range(-reach, reach + 1)}
        norm = mpmath.fsum(weights.values())
        for m in (-7, -1, 0, 1, 2, 9, math.ceil(5 * sigma), math.ceil(8 * sigma)):
            exact = mpmath.fsum(w for z, w in weights.items() if z >= m) / norm
            lower, upper = _tail_bounds(np.array([float(m)]), np.array([sigma]))
            # 1e-11 up to eight sigmas out, where the remainder of the series is at its largest
            assert exact * (1 - 2e-11) <= lower[0] <= exact <= upper[0] <= exact * (1 + 2e-11)
            assert discrete_gaussian_tail(sigma, m) >= exact * (1 - mpmath.mpf(10) ** -15)


@pytest.mark.parametrize("sigma", [0.4, 0.9, 1.6, 5.0])
@pytest.mark.parametrize("changes", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_discrete_delta_against_the_definition(sigma, changes, epsilon):
    """Sum over the law of S of (P - e^eps P')+, with the law made by convolution."""
    reach = math.ceil(30 * sigma) + 2
    law = _pmf(sigma, reach)
    total = law
    for _ in range(changes - 1):
        total = np.convolve(total, law)
    s = np.arange(-(len(total) // 2), len(total) // 2 + 1)
    # P(z)/P'(z) = exp((2 s + j)/(2 sigma^2)) for the shift that favours large sums
    loss = (2 * s + changes) / (2 * sigma**2)
    with np.errstate(over="ignore"):
        exact = float((total * np.maximum(0.0, -np.expm1(epsilon - loss))).sum())
    ours = discrete_gaussian_delta(epsilon, sigma, changes=changes)
    assert ours >= exact * (1 - 1e-9) - 1e-16
    if sigma >= 1.5 or changes == 1:
        assert ours <= exact * (1 + 1e-8) + 1e-11


def test_continuous_sigma_is_the_analytic_one():
    from dp_accounting import gaussian_mechanism

    assert gaussian_sigma(1.0, 1e-6) == pytest.approx(gaussian_mechanism.get_sigma_gaussian(1.0, 1e-6), rel=1e-6)
    assert gaussian_delta(1.0, gaussian_sigma(1.0, 1e-6, 3.0), 3.0) <= 1e-6
    assert gaussian_delta(1.0, 0.999 * gaussian_sigma(1.0, 1e-6, 3.0), 3.0) > 1e-6


@pytest.mark.parametrize("changes", [1, 10, 1000])
def test_discrete_sigma_is_close_to_the_continuous_one(changes):
    sigma = discrete_gaussian_sigma(1.0, 1e-6, changes=changes)
    assert discrete_gaussian_delta(1.0, sigma, changes=changes) <= 1e-6
    assert sigma == pytest.approx(gaussian_sigma(1.0, 1e-6, math.sqrt(changes)), rel=5e-3)
    assert sigma < discrete_gaussian_sigma_any(1.0, 1e-6, math.sqrt(changes)) < 1.1 * sigma


def test_dp_accounting_agrees_on_the_discrete_gaussian():
    from dp_accounting.pld import privacy_loss_distribution as pld

    for sigma in (1.0, 4.0):
        theirs = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
        ours = discrete_gaussian_delta(1.0, sigma)
        # ours carries its safety margin of 1e-12 on each of two tails, theirs rounds losses up
        assert ours <= theirs.get_delta_for_epsilon(1.0) * (1 + 1e-11)
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(1.0), rel=2e-3)


def _theorem_23(epsilon, sigma, tau, changes):
    """LT Theorem 23, transcribed."""
    phi = stats.norm.cdf
    hidden = phi(tau / sigma)
    largest = 1 - hidden**changes

    def part(j, x):
        root = math.sqrt(j)
        left, shift = root / (2 * sigma), x * sigma / root
        return phi(left - shift) - math.exp(x) * phi(-left - shift)

    for j in range(1, changes + 1):
        gamma = (changes - j) * math.log(hidden)
        kept = hidden ** (changes - j)
        largest = max(largest, 1 - kept + kept * part(j, epsilon - gamma), part(j, epsilon + gamma))
    return largest


@pytest.mark.parametrize(("changes", "threshold_minus_one"), [(1, 20.1), (10, 69.5), (100, 237.0)])
def test_known_thresholds_of_the_sparse_histogram(changes, threshold_minus_one):
    """At epsilon 1, delta 1e-6. An integer cut at ">=" lies half a step above the continuous one, rounded up."""
    sigma, threshold = gshm_calibration(1.0, 1e-6, changes)
    assert threshold_minus_one < threshold - 1 <= threshold_minus_one + 2.0
    # and the continuous theorem at the printed value, with the noise found
    assert _theorem_23(1.0, sigma, threshold_minus_one + 0.4, changes) <= 1.05e-6
    assert _theorem_23(1.0, sigma, threshold_minus_one - 0.4, changes) > 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("changes", [1, 2, 10, 1000])
def test_calibrated_pairs_pass_and_one_less_does_not(epsilon, changes):
    sigma, threshold = gshm_calibration(epsilon, 1e-6, changes)
    assert discrete_gshm_delta(epsilon, sigma, threshold - 1, changes) <= 1e-6
    if threshold > 2:
        assert discrete_gshm_delta(epsilon, sigma, threshold - 2, changes) > 1e-6
    assert discrete_gshm_delta(epsilon, sigma / 2, threshold - 1, changes) > 1e-6


def test_a_cut_is_raised_until_every_mixture_passes(monkeypatch):
    """No mixture of common and isolated keys is known that needs more than isolated ones; one that did would get it."""
    sigma, threshold = gshm_calibration(1.0, 1e-6, 3)
    tried = []

    def stricter(epsilon, sigma, t, changes):
        tried.append(t)
        return discrete_gshm_delta(epsilon, sigma, t, changes) if t > threshold + 1 else 1.0

    monkeypatch.setattr(sparse_histogram, "discrete_gshm_delta", stricter)
    assert gshm_calibration.__wrapped__(1.0, 1e-6, 3) == (sigma, threshold + 3)
    assert tried == [threshold - 1, threshold, threshold + 1, threshold + 2]


def test_a_hundred_thousand_changes():
    sigma, threshold = gshm_calibration(1.0, 1e-6, 100_000)
    assert sigma == pytest.approx(math.sqrt(100_000) * 4.2247, rel=1e-3)
    assert 8900 < threshold < 9000


@pytest.mark.parametrize(("rho", "delta"), [(0.5, 1e-6), (0.01, 1e-9), (3.0, 1e-5)])
def test_zcdp_conversion_is_tight_and_two_way(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    # between the exact cost of a Gaussian of that rho and the simple conversion of Bun and Steinke
    assert gaussian_delta(epsilon, 1 / math.sqrt(2 * rho)) <= delta
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert zcdp_delta(rho, epsilon) == pytest.approx(delta, rel=1e-6)
    back = zcdp_rho(epsilon, delta)
    assert back == pytest.approx(rho, rel=1e-6)
    assert zcdp_epsilon(back, delta) <= epsilon


def test_zcdp_against_a_grid_of_orders():
    rho, delta = 0.2, 1e-8
    best = min(
        a * rho + (math.log(1 / delta) + (a - 1) * math.log(1 - 1 / a) - math.log(a)) / (a - 1)
        for a in np.geomspace(1.01, 1e4, 200_000)
    )
    assert zcdp_epsilon(rho, delta) == pytest.approx(best, rel=1e-7)


def test_rho_of_noise_and_of_pure_privacy():
    assert gaussian_rho(2.0, 1.0) == pytest.approx(0.125)
    assert gaussian_rho(2.0, 1.0) >= 0.125
    assert pure_rho(2.0) >= 2.0


def test_a_sigma_of_zcdp_is_enough_exactly_and_no_float_below_it_is():
    """sigma^2 >= squared/(2 rho) as fractions: a square root in floats is as often too small as too large."""
    generator = random.Random(3)
    for _ in range(300):
        squared, rho = generator.randrange(1, 10**9), generator.uniform(1e-6, 5.0)
        sigma = zcdp_sigma(squared, rho)
        assert sigma**2 * 2 * Fraction(rho) >= squared
        assert Fraction(math.nextafter(float(sigma), 0.0) * (1.0 - 2e-16)) ** 2 * 2 * Fraction(rho) < squared
        assert Fraction(float(sigma)) == sigma  # what is drawn is what is stated


@pytest.mark.parametrize("epsilon", [600.0, 709.0, 710.0, 800.0, 5000.0])
def test_where_an_epsilon_has_no_exponential_delta_is_not_understated(epsilon):
    """Ten thousand counts that all differ, with hardly any noise: the loss is 5,000, give or take 100."""
    expected = 1.0 if epsilon < 4000.0 else 0.5
    assert discrete_gaussian_delta(epsilon, 1.0, changes=10_000) == pytest.approx(expected, rel=0.02)


def test_bad_parameters():
    with pytest.raises(ParameterError, match="changes"):
        gshm_calibration(1.0, 1e-6, 0)
    with pytest.raises(ParameterError, match="changes"):
        gshm_calibration(1.0, 1e-6, 10**8)
    with pytest.raises(ParameterError, match="delta"):
        gshm_calibration(1.0, 0.0, 1)
    with pytest.raises(ParameterError, match="sigma"):
        gaussian_delta(1.0, math.nan)
    with pytest.raises(ParameterError, match="rho"):
        zcdp_epsilon(0.0, 1e-6)


@pytest.mark.parametrize("changes", [1, 2, 7, 40])
def test_what_is_found_by_secants_is_what_halving_finds(changes, monkeypatch):
    asked = [(epsilon, delta) for epsilon in (0.01, 0.3, 1.0, 4.0) for delta in (1e-12, 1e-6, 0.05)]
    found = [discrete_gaussian_sigma(*one, changes=changes) for one in asked]
    monkeypatch.setattr(gaussian, "_by_secants", lambda *_: None)
    assert found == [discrete_gaussian_sigma(*one, changes=changes) for one in asked]


def test_a_guess_that_is_wrong_changes_no_sigma(monkeypatch):
    found = discrete_gaussian_sigma(1.0, 1e-6)
    for wrong in (0.9, 1.00001):
        monkeypatch.setattr(gaussian, "_by_secants", lambda *_, wrong=wrong: wrong * found)
        assert discrete_gaussian_sigma(1.0, 1e-6) == found


def test_many_changes_at_once_are_as_each_by_itself():
    """Sums are by a series where noise is wide, term by term where it is not: a list may have both."""
    changes = np.arange(1.0, 12.0)
    for sigma in (5.0, 30.0, 3.0):  # the root of the changes times as wide: 12 is in between
        for x in (0.01, 0.1):
            together = unit_change_delta(np.full(len(changes), x), sigma, changes)
            each = [float(unit_change_delta(np.array([x]), sigma, np.array([change]))[0]) for change in changes]
            assert together == pytest.approx(each, rel=1e-12)
            assert (np.diff(together) > 0).all()
