"""Composition: ours against closed forms and against dp-accounting, and the rounding to the safe side."""

import math
import subprocess
import sys

import pytest
from scipy import stats

from discreet.errors import ParameterError
from discreet.privacy import Budget
from discreet.privacy.accounting import Charge, compose, fits, total_cost


def _exact_delta(epsilon: float, delta: float, times: int, total_epsilon: float) -> float:
    """Optimal composition of equal (epsilon, delta) charges (Kairouz, Oh, Viswanath 2015), a finite sum."""
    probability = 1.0 / (1.0 + math.exp(-epsilon))
    excess = sum(
        float(stats.binom.pmf(i, times, probability)) * -math.expm1(total_epsilon - (2 * i - times) * epsilon)
        for i in range(times + 1)
        if (2 * i - times) * epsilon > total_epsilon
    )
    kept = math.exp(times * math.log1p(-delta))
    return 1.0 - kept * (1.0 - excess)


@pytest.mark.parametrize(
    ("epsilon", "delta", "times", "at"),
    [
        (0.1, 0.0, 50, 1e-6),
        (0.1, 1e-9, 200, 1e-6),
        (0.5, 1e-10, 20, 1e-6),
        (0.05, 0.0, 200, 1e-10),
        (0.02, 0.0, 1000, 1e-11),
    ],
)
def test_equal_charges_meet_optimal_composition(epsilon, delta, times, at):
    total = total_cost([Charge(epsilon, delta)] * times, at)
    assert _exact_delta(epsilon, delta, times, total) <= at
    assert _exact_delta(epsilon, delta, times, 0.99 * total) > at
    assert total < epsilon * times


def test_different_charges_meet_dp_accounting():
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    charges = [Charge(0.1, 1e-9)] * 30 + [Charge(0.2)] * 20 + [Charge(0.05, 1e-8)] * 10
    theirs = pld.identity()
    for charge in charges:
        theirs = theirs.compose(
            pld.from_privacy_parameters(common.DifferentialPrivacyParameters(charge.epsilon, charge.delta))
        )
    assert total_cost(charges, 1e-6) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


def test_an_epsilon_alone_costs_what_discrete_laplace_noise_costs():
    """Its two privacy losses are -epsilon and +epsilon, so the worst epsilon-DP mechanism is the one in use."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    theirs = pld.from_discrete_laplace_mechanism(0.5, value_discretization_interval=0.5).self_compose(30)
    assert total_cost([Charge(0.5)] * 30, 1e-6) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-6)


def test_gaussian_noise_costs_what_one_gaussian_of_the_same_rho_costs():
    gaussian = total_cost([Charge(None, rho=0.01, noise="gaussian")] * 10, 1e-6)
    # Ten Gaussians of rho 0.01 are one of rho 0.1: mu = sqrt(2 rho).
    mu = math.sqrt(0.2)
    delta = stats.norm.cdf(mu / 2 - gaussian / mu) - math.exp(gaussian) * stats.norm.cdf(-mu / 2 - gaussian / mu)
    assert delta <= 1e-6
    assert delta > 0.98e-6
    assert gaussian < total_cost([Charge(None, rho=0.1)], 1e-6)


def test_pure_charges_at_delta_zero_add_up():
    assert total_cost([Charge(0.25)] * 4, 0.0) == 1.0
    assert total_cost([Charge(0.25, 1e-9)], 0.0) == math.inf
    assert total_cost([], 0.0) == 0.0
    assert total_cost([Charge(None, rho=0.1)], 0.0) == math.inf


def test_mixed_charges_are_bounded_by_their_parts():
    laplace, concentrated = [Charge(0.1, 1e-9)] * 20, [Charge(None, rho=0.02)] * 5
    total = total_cost(laplace + concentrated, 1e-6)
    parts = total_cost(laplace, 5e-7) + total_cost(concentrated, 5e-7)
    assert total <= parts * (1 + 1e-6)
    assert total >= max(total_cost(laplace, 1e-6), total_cost(concentrated, 1e-6))


def test_budgets_are_neither_exceeded_nor_refused_by_rounding():
    assert fits([Charge(0.1)] * 3, Budget(0.3))
    assert not fits([Charge(0.1)] * 3 + [Charge(1e-6)], Budget(0.3))
    whole = Budget(1.1, 1e-7)
    assert fits([Charge.of(whole.share(0.1)), Charge.of(whole.share(0.9))], whole)
    assert fits([Charge(1.0, 2.5e-8)] * 4, Budget(4.0, 1e-7))
    assert not fits([Charge(1.0, 2.6e-8)] * 4, Budget(3.9, 1e-7))
    assert not fits([Charge(1.0, 2e-7)], Budget(4.0, 1e-7))


def test_many_small_charges_fit_where_their_sum_does_not():
    assert fits([Charge(0.05, 1e-10)] * 200, Budget(5.0, 1e-6))
    assert not fits([Charge(0.05, 1e-10)] * 200, Budget(5.0, 1e-6), adaptive=True)
    assert not fits([Charge(0.05, 1e-10)] * 200, Budget(2.0, 1e-6))


def test_zcdp_budgets_add_rho():
    budget = Budget.zcdp(0.5)
    assert fits([Charge(None, rho=0.2), Charge(math.sqrt(0.599))], budget)
    assert not fits([Charge(None, rho=0.2), Charge(math.sqrt(0.61))], budget)
    assert not fits([Charge(0.1, 1e-9)], budget)
    assert fits([Charge(None, rho=0.1)] * 5, budget, adaptive=True)


def test_adaptive_parameters_use_sums_only():
    assert total_cost([Charge(0.1)] * 100, 1e-6, adaptive=True) == pytest.approx(10.0)
    with pytest.raises(ParameterError, match="zCDP budget"):
        total_cost([Charge(None, rho=0.1)], 1e-6, adaptive=True)


def test_compose_is_a_charge():
    assert compose([Charge(0.5)] * 2, 0.0) == Charge(1.0)
    with pytest.raises(ParameterError, match="larger delta"):
        compose([Charge(0.5, 1e-6)] * 2, 1e-7)


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": None},
        {"epsilon": 1.0, "rho": 0.1},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "noise": "laplace"},
        {"epsilon": 1.0, "noise": "gaussian"},
    ],
)
def test_bad_charges_are_refused(bad):
    with pytest.raises(ParameterError):
        Charge(**bad)


def test_sums_import_nothing_heavy():
    code = (
        "import sys; from discreet.privacy import Budget; from discreet.privacy.accounting import Charge, fits;"
        "assert fits([Charge(0.1)], Budget(1.0)); assert not {'scipy', 'dp_accounting'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
