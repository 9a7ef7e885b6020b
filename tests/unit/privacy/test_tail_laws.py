"""Tails and collisions against sums and against counting: never understated, and hardly overstated."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.privacy.calibration.collisions import (
    Collisions,
    all_rows_fail,
    cell_probability,
    digest_collision_probability,
    majority_fails,
)
from discreet.privacy.calibration.gaussian import discrete_gaussian_tail
from discreet.privacy.calibration.tails import (
    laplace_reach,
    log_any_shown,
    log_below,
    log_tail,
    smallest,
    smallest_shift,
    upper_tail,
)
from discreet.privacy.calibration.zcdp import pure_rho, zcdp_delta, zcdp_epsilon, zcdp_rho, zcdp_sigma
from discreet.published.private_space_saving import space_saving_delta, space_saving_noisy_delta


def laplace(rate, z):
    q = math.exp(-rate)
    return (1 - q) / (1 + q) * q ** abs(z)


@pytest.mark.parametrize("rate", [0.05, 0.7, 3.0])
def test_tails_of_laplace_noise_are_sums(rate):
    for s in (-9, -1, 0, 1, 2, 30):
        true = math.fsum(laplace(rate, z) for z in range(s, 2000))
        assert math.exp(log_tail(rate, s)) == pytest.approx(true, rel=1e-9)
        assert true * (1 - 1e-9) <= upper_tail(rate, s) <= min(1.0, true * (1 + 1e-9))
        assert math.exp(log_below(rate, s)) == pytest.approx(1 - true, rel=1e-6)
    for most in (0.4, 1e-3, 1e-9):
        b = laplace_reach(rate, most)
        assert upper_tail(rate, b + 1) <= most
        assert b == 0 or upper_tail(rate, b) > most


def test_the_chance_that_one_of_several_is_shown():
    for cuts, times in (([1], 1), ([0, 1], 1), ([2, 5], 3), ([40, 60], 2)):
        hidden = math.prod(1 - math.exp(log_tail(0.5, s)) for s in cuts) ** times
        assert math.exp(log_any_shown(0.5, cuts, times)) == pytest.approx(1 - hidden, rel=1e-6)


def test_the_smallest_number_for_which_something_holds():
    for least, true in itertools.product((0, 1, 5), (0, 1, 2, 5, 6, 7, 100, 1023, 1024, 1025)):
        assert smallest(lambda n, true=true: n >= true, least) == max(least, true)
        shift = smallest_shift(lambda t, true=true: -float(t >= true) * 1e9, 0.5, least)
        assert shift == max(least, true)
    assert smallest_shift(lambda t: -t * math.log(2.0), 0.25) == 3  # exactly delta is not below its logarithm, rounded


@pytest.mark.parametrize("sigma", [0.4, 1.0, 5.0, 40.0])
def test_tails_of_gaussian_noise_are_sums(sigma):
    reach = int(40 * sigma) + 10
    weights = {z: math.exp(-z * z / (2 * sigma**2)) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    for m in (-3, 0, 1, 2, int(3 * sigma) + 1):
        true = math.fsum(weight for z, weight in weights.items() if z >= m) / total
        assert true * (1 - 1e-12) <= discrete_gaussian_tail(sigma, m) <= true * (1 + 1e-6) + 1e-300


def test_zcdp_and_back():
    for rho in (0.01, 0.5, 4.0):
        for epsilon in (0.1, 1.0, 8.0):
            delta = zcdp_delta(rho, epsilon)
            assert 0.0 <= delta <= 1.0
            # never more than the simple conversion, epsilon = rho + 2 sqrt(rho log(1/delta))
            if epsilon > rho:
                assert delta <= math.exp(-((epsilon - rho) ** 2) / (4 * rho)) * (1 + 1e-9)
        epsilon = zcdp_epsilon(rho, 1e-6)
        assert zcdp_delta(rho, epsilon) <= 1e-6 * (1 + 1e-6)
        assert zcdp_delta(rho, 0.999 * epsilon) > 1e-6
        assert zcdp_rho(epsilon, 1e-6) == pytest.approx(rho, rel=1e-6)
        assert zcdp_rho(epsilon, 1e-6) <= rho * (1 + 1e-9)
    assert Fraction(1, 2) <= Fraction(pure_rho(1.0)) <= Fraction(1, 2) * (1 + Fraction(1, 10**12))
    for squared, rho in ((1, 0.5), (9, 0.02)):
        sigma = zcdp_sigma(squared, rho)
        assert (
            Fraction(squared) / (2 * sigma**2)
            <= Fraction(rho)
            < Fraction(squared) / (2 * sigma**2) * (1 + Fraction(1, 10**6))
        )


def test_space_saving_delta_is_what_may_be_shown():
    """Two counters, one of them a step further: 1 - (1 - P[Z >= t]) (1 - P[Z >= t + 1])."""
    for epsilon in (0.5, 2.0):
        for t in (0, 3, 20):
            hidden = (1 - math.exp(log_tail(epsilon, t))) * (1 - math.exp(log_tail(epsilon, t + 1)))
            assert space_saving_delta(epsilon, t) == pytest.approx(1 - hidden, rel=1e-6)
            assert space_saving_delta(epsilon, t) >= (1 - hidden) * (1 - 1e-12)
            assert space_saving_delta(epsilon, t + 1) < space_saving_delta(epsilon, t)
            two = space_saving_delta(epsilon, t, max_items=2)
            assert two >= space_saving_delta(epsilon / 2, t) or two == 1.0
            # a length without noise is the limit of one with less and less
            assert space_saving_noisy_delta(epsilon, 50.0, 1000, t) == pytest.approx(1 - hidden, rel=0.1)


def test_collisions_are_counted():
    assert cell_probability(1) == 1
    assert cell_probability(2**32) == Fraction(1, 2**32)
    assert cell_probability(3) == Fraction(1431655766, 2**32)
    assert digest_collision_probability(7) == Fraction(2, 2**61) ** 2
    assert digest_collision_probability(8) == Fraction(3, 2**61) ** 2
    for depth, row in ((3, 0.2), (5, 0.01)):
        outcomes = list(itertools.product((True, False), repeat=depth))
        chance = lambda fails, row=row: math.prod(row if fail else 1 - row for fail in fails)  # noqa: E731
        majority = math.fsum(chance(fails) for fails in outcomes if sum(fails) > depth / 2)
        assert majority <= majority_fails(depth, row) <= majority * (1 + 1e-9)
        assert row**depth <= all_rows_fail(depth, row) <= row**depth * (1 + 1e-9)


def test_the_error_of_a_sketch_has_a_chance():
    given = Collisions("smallest", width=64, depth=3, length=1000, items=10, max_key_bytes=4096)
    row = float(cell_probability(64)) * 1000 / (99 + 1)
    assert given.failure(99) == pytest.approx(10 * row**3, rel=1e-6)
    pairs = float(45 * digest_collision_probability(4096))
    narrow = Collisions("smallest", width=2**30, depth=200, length=2, items=10, max_key_bytes=4096)
    assert narrow.failure(1) == pytest.approx(pairs, rel=1e-6)
    assert given.failure(999) > 0.0
    assert given.failure(1000) == given.failure(2000) == 0.0
    for failure in (0.5, 0.01, 1e-4):
        bound = given.bound(failure)
        assert given.failure(bound) <= failure < given.failure(bound - 1)
    slack = Collisions("median", 64, 3, 1000, 10, 4096, slack=0.01)
    assert slack.failure(1000) == 0.01
    assert slack.bound(0.009) == math.inf
    assert slack.bound(0.01) == 1000
    with pytest.raises(ParameterError, match="'smallest' or 'median'"):
        Collisions("mean", 64, 3, 1000, 10, 4096)
    assert np.isfinite(slack.bound(0.5))
