"""Bounds that sizes and intervals rest on, against exact tails."""

import math

import pytest

from discreet.pan.intervals import choose_share, count_bound, mean_interval, noise_bound
from discreet.releases.error_model import Noise


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.5, 8.0])
@pytest.mark.parametrize("beta", [0.9, 0.25, 0.05, 1e-3, 1e-9])
def test_the_noise_stays_below_its_bound(epsilon, beta):
    """P[|Z| > b] of discrete Laplace noise, summed: 2 q^j/(1 + q) from j = floor(b) + 1 on."""
    q = math.exp(-epsilon)
    over = math.floor(noise_bound(epsilon, beta)) + 1
    assert 2 * q**over / (1 + q) <= beta * (1 + 1e-12)


def test_a_count_of_bits_stays_below_its_bound():
    """Exact: K binomial, Z discrete Laplace, small enough to sum."""
    for m, p, epsilon, beta in [(1, 0.5, 3.0, 0.2), (4, 0.5, 8.0, 0.1), (12, 0.3, 1.0, 0.05), (30, 0.7, 0.4, 0.3)]:
        bound, q = count_bound(m, epsilon, beta), math.exp(-epsilon)
        missed = 0.0
        for k in range(m + 1):
            bits = math.comb(m, k) * p**k * (1 - p) ** (m - k)
            missed += bits * sum(
                (1 - q) / (1 + q) * q ** abs(z) for z in range(-400, 401) if abs(k + z - m * p) > bound
            )
        assert missed <= beta


@pytest.mark.parametrize(("m", "p"), [(1, 0.4), (5, 0.27), (20, 0.5), (40, 0.9)])
def test_the_interval_of_a_mean_covers(m, p):
    """Exact coverage of the interval for p, over all counts and all noises that matter."""
    from fractions import Fraction

    scale, beta = Fraction(3, 2), 0.1
    q, missed = math.exp(-2 / 3), 0.0
    for k in range(m + 1):
        bits = math.comb(m, k) * p**k * (1 - p) ** (m - k)
        for z in range(-60, 61):
            lower, upper = mean_interval(k + z, m, scale, beta)
            if not lower <= p <= upper:
                missed += bits * (1 - q) / (1 + q) * q ** abs(z)
    assert missed <= beta
    assert Noise("laplace", scale).bound(0.05) >= 3  # the noise is not small beside the counts


def missed_by(m, p, scale, beta):
    """P[p outside the interval], exactly: K binomial, Z discrete Laplace."""
    q = math.exp(-1 / float(scale))
    reach = math.ceil(40 * float(scale)) + 1
    noises = [(z, (1 - q) / (1 + q) * q ** abs(z)) for z in range(-reach, reach + 1)]
    intervals = {n: mean_interval(n, m, scale, beta) for n in range(-reach, m + reach + 1)}
    missed = 0.0
    for k in range(m + 1):
        bits = math.comb(m, k) * p**k * (1 - p) ** (m - k)
        missed += bits * sum(mass for z, mass in noises if not intervals[k + z][0] <= p <= intervals[k + z][1])
    return missed


@pytest.mark.parametrize("beta", [0.3, 0.05])
def test_the_interval_of_a_mean_uses_what_may_fail_and_no_more(beta):
    """Nearly without noise: at some p an interval for twice the probability would fail too often."""
    from fractions import Fraction

    worst = max(missed_by(400, p, Fraction(1, 20), beta) for p in (0.25, 0.4, 0.5, 0.503, 0.61))
    assert 0.6 * beta < worst <= beta


@pytest.mark.parametrize("beta", [0.3, 0.05])
def test_the_noise_uses_its_share_of_what_may_fail(beta):
    """Nearly without a sample: nearly all cells are 1, so noise alone decides. It may use half of beta."""
    from fractions import Fraction

    missed = missed_by(8, 1 - 1e-6, Fraction(20), beta)
    assert 0.4 * beta < missed <= 0.5 * beta * (1 + 1e-3)


@pytest.mark.parametrize(("intrusions", "releases"), [(1, 1), (1, 9), (4, 1), (1, 100)])
def test_the_share_of_the_outputs_is_that_of_the_narrowest_interval(intrusions, releases):
    """With widths of 1/epsilon for the state and for an output, root for root of how many of each there are."""
    share = choose_share(2.0, intrusions, releases, lambda state, output: 1.0 / state + 1.0 / output)
    best = math.sqrt(releases) / (math.sqrt(releases) + math.sqrt(intrusions))
    assert 2**-0.25 <= float(share) / min(best, 2**-0.5) <= 2**0.25  # the next on the grid
