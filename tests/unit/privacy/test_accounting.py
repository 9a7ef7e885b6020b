"""Composition: ours against closed forms and against dp-accounting, and the rounding to the safe side."""

import math
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.errors import ParameterError
from discreet.privacy import Budget
from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.zcdp_filter import ZcdpFilter


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
    total = Tally.of([Charge(epsilon, delta)] * times).cost(at)
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
    assert Tally.of(charges).cost(1e-6) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


def test_an_epsilon_alone_costs_what_discrete_laplace_noise_costs():
    """Its two privacy losses are -epsilon and +epsilon, so the worst epsilon-DP mechanism is the one in use."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    theirs = pld.from_discrete_laplace_mechanism(0.5, value_discretization_interval=0.5).self_compose(30)
    assert Tally.of([Charge(0.5)] * 30).cost(1e-6) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-6)


@pytest.mark.parametrize("times", [1, 10])
def test_gaussian_noise_costs_what_one_gaussian_of_the_same_rho_costs(times):
    gaussian = Tally.of([Charge(None, rho=0.1 / times, noise="gaussian")] * times).cost(1e-6)
    # Ten Gaussians of rho 0.01 are one of rho 0.1: mu = sqrt(2 rho).
    mu = math.sqrt(0.2)
    delta = stats.norm.cdf(mu / 2 - gaussian / mu) - math.exp(gaussian) * stats.norm.cdf(-mu / 2 - gaussian / mu)
    assert delta <= 1e-6
    assert delta > 0.98e-6
    assert gaussian < Tally.of([Charge(None, rho=0.1)]).cost(1e-6)


@pytest.mark.parametrize(("epsilon", "rho"), [(1.0, 0.02), (0.3, 0.1), (2.0, 0.005)])
def test_one_epsilon_beside_gaussian_noise_meets_the_exact_law(epsilon, rho):
    """The loss is one of +-epsilon more than that of a Gaussian: its delta is a mean of two of a Gaussian."""
    mu, truth = math.sqrt(2.0 * rho), 1.0 / (1.0 + math.exp(-epsilon))

    def gaussian(at):
        return stats.norm.cdf(mu / 2.0 - at / mu) - math.exp(at) * stats.norm.cdf(-mu / 2.0 - at / mu)

    def exact(at):
        return truth * gaussian(at - epsilon) + (1.0 - truth) * gaussian(at + epsilon)

    total = Tally.of([Charge(epsilon), Charge(None, rho=rho, noise="gaussian")]).cost(1e-6)
    assert exact(total) <= 1e-6
    assert exact(0.99 * total) > 1e-6


def test_pure_charges_at_delta_zero_add_up():
    assert Tally.of([Charge(0.25)] * 4).cost(0.0) == 1.0
    assert Tally.of([Charge(0.25, 1e-9)]).cost(0.0) == math.inf
    assert Tally.of([]).cost(0.0) == 0.0
    assert Tally.of([Charge(None, rho=0.1)]).cost(0.0) == math.inf


def test_mixed_charges_are_bounded_by_their_parts():
    laplace, concentrated = [Charge(0.1, 1e-9)] * 20, [Charge(None, rho=0.02)] * 5
    total = Tally.of(laplace + concentrated).cost(1e-6)
    parts = Tally.of(laplace).cost(5e-7) + Tally.of(concentrated).cost(5e-7)
    assert total <= parts * (1 + 1e-6)
    assert total >= max(Tally.of(laplace).cost(1e-6), Tally.of(concentrated).cost(1e-6))


@pytest.mark.parametrize("noise", ["any", "gaussian"])
def test_delta_is_spent_once_where_epsilons_and_rhos_mix(noise):
    """Each kind is affordable at the whole delta, both together are not: 4e-7 and 4e-7 are more than 6e-7.

    And where the sum is affordable, each part pays with its share: more than any part alone at what the other leaves.
    """
    responses, concentrated = [Charge(0.01, 2e-7)] * 2, [Charge(None, 4e-7, rho=1e-4)]
    gaussians = [Charge(None, rho=1e-6, noise="gaussian")] if noise == "gaussian" else []
    for part in (responses, concentrated, gaussians):
        assert Tally.of(part).cost(6e-7) < math.inf
    assert Tally.of(responses + concentrated + gaussians).cost(6e-7) == math.inf
    assert not Tally.of([*responses, *concentrated]).fits(Budget(50.0, 6e-7))
    both = Tally.of([*responses, *concentrated]).cost(9e-7)
    assert max(Tally.of(responses).cost(5e-7), Tally.of(concentrated).cost(5e-7)) < both < math.inf


def test_the_shared_delta_covers_what_is_lost_exactly():
    """Leaks and Gaussian noise, the exact delta: 1 - (1 - 5e-7) (1 - delta of the noise) at the epsilon claimed."""
    leaks, rho = [Charge(1e-9, 2.5e-7)] * 2, 0.05
    claimed = Tally.of([*leaks, Charge(None, rho=rho)]).cost(6e-7)
    mu = math.sqrt(2 * rho)
    lost = stats.norm.cdf(mu / 2 - claimed / mu) - math.exp(claimed) * stats.norm.cdf(-mu / 2 - claimed / mu)
    assert 5e-7 + lost <= 6e-7
    # The whole delta for the noise would claim at most this much:
    assert claimed > Tally.of([Charge(None, rho=rho)]).cost(6e-7)


def test_many_different_epsilons_are_rounded_up_a_little():
    """4,000 different epsilons are kept as 64: never below the exact cost, and at most 2 percent above."""
    generator = random.Random(5)
    epsilons = [generator.uniform(0.005, 0.02) for _ in range(4000)]
    tally = Tally.of(Charge(epsilon) for epsilon in epsilons)
    assert len(tally.epsilons) == 64
    assert sum(times for _, times in tally.epsilons) == 4000
    assert tally.epsilon == sum(map(Fraction, epsilons))
    for kept, true in zip(_expanded(tally), sorted(epsilons), strict=True):
        assert kept >= true
    # The law of the losses of 4,000 nearly equal responses is normal but for 1e-3; its variance is sum epsilon^2.
    rho = sum(epsilon**2 for epsilon in epsilons) / 2
    mu = math.sqrt(2 * rho)
    total = tally.cost(1e-6)
    lost = stats.norm.cdf(mu / 2 - total / mu) - math.exp(total) * stats.norm.cdf(-mu / 2 - total / mu)
    assert lost < 1.0e-6
    total /= 1.02
    lost = stats.norm.cdf(mu / 2 - total / mu) - math.exp(total) * stats.norm.cdf(-mu / 2 - total / mu)
    assert lost > 1.0e-6


def _expanded(tally):
    return [epsilon for epsilon, times in tally.epsilons for _ in range(times)]


def test_different_epsilons_meet_the_exact_law():
    """All losses of twelve responses and their probabilities, enumerated."""
    epsilons = [0.11, 0.23, 0.29, 0.31, 0.37, 0.41, 0.43, 0.47, 0.53, 0.59, 0.61, 0.67]
    losses, masses = np.zeros(1), np.ones(1)
    for epsilon in epsilons:
        up = 1 / (1 + math.exp(-epsilon))
        losses = np.concatenate([losses + epsilon, losses - epsilon])
        masses = np.concatenate([masses * up, masses * (1 - up)])

    def exact(total):
        above = losses > total
        return float(np.sum(masses[above] * -np.expm1(total - losses[above])))

    for delta in (1e-2, 1e-4, 1e-6):
        total = Tally.of([Charge(epsilon) for epsilon in epsilons]).cost(delta)
        assert exact(total) <= delta < exact(0.995 * total)


RESPONSES = [Charge(0.1, 1e-9)] * 20 + [Charge(0.07)] * 5


@pytest.mark.parametrize(
    "charges",
    [
        RESPONSES,
        [*RESPONSES, Charge(None, rho=0.002)],
        [*RESPONSES, Charge(None, 1e-8, rho=0.002)],
        [*RESPONSES, Charge(None, rho=0.002, noise="gaussian")],
        [Charge(None, rho=0.002, noise="gaussian")] * 3,
        [Charge(None, rho=0.002, noise="gaussian"), Charge(None, rho=0.001)],
    ],
    ids=["responses", "rhos, too", "rhos with a delta, too", "Gaussians, too", "Gaussians", "Gaussians and rhos"],
)
def test_one_more_charge_costs_what_the_sum_costs(charges):
    tally = Tally.of(charges)
    for more in (
        Charge(0.2),
        Charge(0.05, 1e-8),
        Charge(0.05, 8e-7),
        Charge(None, rho=0.01),
        Charge(None, 8e-7, rho=0.01),
        Charge(None, rho=0.01, noise="gaussian"),
    ):
        assert tally.cost(1e-6, more=more) == pytest.approx(tally.plus(more).cost(1e-6), rel=2e-3)
        assert tally.cost(1e-6, more=more) > tally.cost(1e-6)
    for more in (Charge(0.05, 2e-6), Charge(0.0, 2e-6), Charge(None, 2e-6, rho=0.01)):
        assert tally.cost(1e-6, more=more) == math.inf  # its delta alone is more


def test_budgets_are_neither_exceeded_nor_refused_by_rounding():
    assert Tally.of([Charge(0.1)] * 3).fits(Budget(0.3))
    assert not Tally.of([Charge(0.1)] * 3 + [Charge(1e-6)]).fits(Budget(0.3))
    whole = Budget(1.1, 1e-7)
    assert Tally.of([Charge.of(whole.share(0.1)), Charge.of(whole.share(0.9))]).fits(whole)
    assert Tally.of([Charge(1.0, 2.5e-8)] * 4).fits(Budget(4.0, 1e-7))
    assert not Tally.of([Charge(1.0, 2.6e-8)] * 4).fits(Budget(3.9, 1e-7))
    assert not Tally.of([Charge(1.0, 2e-7)]).fits(Budget(4.0, 1e-7))


def test_many_small_charges_fit_where_their_sum_does_not():
    assert Tally.of([Charge(0.05, 1e-10)] * 200).fits(Budget(5.0, 1e-6))
    assert not Tally.of([Charge(0.05, 1e-10)] * 200).fits(Budget(5.0, 1e-6), adaptive=True)
    assert not Tally.of([Charge(0.05, 1e-10)] * 200).fits(Budget(2.0, 1e-6))


def test_zcdp_budgets_add_rho():
    budget = Budget.zcdp(0.5)
    assert Tally.of([Charge(None, rho=0.2), Charge(math.sqrt(0.599))]).fits(budget)
    assert not Tally.of([Charge(None, rho=0.2), Charge(math.sqrt(0.61))]).fits(budget)
    assert not Tally.of([Charge(0.1, 1e-9)]).fits(budget)
    assert Tally.of([Charge(None, rho=0.1)] * 5).fits(budget, adaptive=True)


def test_adaptive_parameters_use_sums_only():
    assert Tally.of([Charge(0.1)] * 100).cost(1e-6, adaptive=True) == pytest.approx(10.0)
    for noise in ("any", "gaussian"):
        with pytest.raises(ParameterError, match="zCDP budget"):
            Tally.of([Charge(0.1), Charge(None, rho=0.1, noise=noise)]).cost(1e-6, adaptive=True)
        with pytest.raises(ParameterError, match="zCDP budget"):
            Tally.of([Charge(0.1)]).fits(Budget(1.0, 1e-6), adaptive=True, more=Charge(None, rho=1e-9, noise=noise))


@pytest.mark.parametrize(
    ("epsilon", "tight", "basic", "rhos"), [(0.05, 344, 80, 295), (0.1, 88, 40, 76), (0.5, 8, 8, 5)]
)
def test_how_many_releases_a_grant_pays(epsilon, tight, basic, rhos):
    """The figures of docs/ledger.md: a grant of (4, 1e-5), by each of the three accountings."""
    grant, once = Budget(4.0, 1e-5), Charge(epsilon)
    totals = ZcdpFilter.of(grant)
    for more in (0, 1):
        assert Tally.of([once] * (tight + more)).fits(grant) == (not more)
        assert Tally.of([once] * (basic + more)).fits(grant, adaptive=True) == (not more)
        assert totals.pays(Tally.of([totals.cost(once)] * (rhos + more))) == (not more)


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
        "import sys; from discreet.privacy import Budget; from discreet.privacy.accounting import Charge, Tally;"
        "assert Tally.of([Charge(0.1)]).fits(Budget(1.0)); assert not {'scipy', 'dp_accounting'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
