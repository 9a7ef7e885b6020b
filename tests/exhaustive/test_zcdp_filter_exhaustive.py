"""Accounts whose budgets are chosen as one goes: the best of all adaptive adversaries, exactly.

The adversary sees every answer before it chooses the next mechanism, from a menu. For two neighbours, a transcript is
what it saw; p and q are its probabilities. Of (p, q) only the loss log(p/q) matters, and all losses of the menu are
multiples of STEP, so the largest sum of (p - e^epsilon q)_+ over all strategies follows by going backwards:

    value(loss, spent) = max((1 - e^(epsilon - loss))_+, max over what the filter takes of E_p[value(loss', spent')]) .

That is the exact delta of the account at its epsilon. It must not exceed the grant's delta; with a filter that is wrong
it does.
"""

import contextlib
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import discreet as dc
from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.calibration.zcdp import best_order, rho_at_order, zcdp_epsilon, zcdp_rho
from discreet.privacy.zcdp_filter import ZcdpFilter, response_rho

STEP = 0.125
REACH = 150  # losses are kept from -REACH to REACH steps; those beyond count as the last, which is worth 1 or 0


class Menu:
    """A mechanism: its charge, and the chances of its losses where the data are those of p."""

    def __init__(self, charge, chances, reveals=0.0):
        self.charge, self.chances, self.reveals = charge, chances, reveals
        assert math.fsum(chances.values()) + reveals == pytest.approx(1.0, abs=1e-12)

    @classmethod
    def response(cls, steps, delta=0.0):
        """Everything with probability delta, else randomised response: the worst (epsilon, delta) mechanism."""
        epsilon = steps * STEP
        up = (1.0 - delta) / (1.0 + math.exp(-epsilon))
        return cls(Charge(epsilon, delta), {steps: up, -steps: 1.0 - delta - up}, delta)

    @classmethod
    def gaussian(cls, steps):
        """Discrete Gaussian noise on a count: x has the loss (1 - 2x) rho where rho = 1/(2 sigma^2), on whole x."""
        rho = steps * STEP
        weights = {x: math.exp(-(x**2) * rho) for x in range(-60, 61)}
        total = math.fsum(weights.values())
        chances = {(1 - 2 * x) * steps: weight / total for x, weight in weights.items() if weight / total > 1e-18}
        return cls(Charge(None, rho=rho), chances)


def exact_delta(epsilon, menu, takes):
    """The largest delta at epsilon that any adaptive strategy reaches; `takes(tally, charge)` is the tally after it."""
    losses = np.arange(-REACH, REACH + 1)
    stop = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses * STEP)))

    @cache
    def value(tally):
        best = stop
        for mechanism in menu:
            after = takes(tally, mechanism.charge)
            if after is None:
                continue
            later = value(after)
            mean = np.full(len(losses), mechanism.reveals)
            for loss, chance in mechanism.chances.items():
                mean += chance * later[np.clip(losses + loss, -REACH, REACH) + REACH]
            best = np.maximum(best, mean)
        return best

    return float(value(Tally())[REACH])


def taken(totals):
    """What a filter takes: check, then add."""

    def takes(tally, charge):
        after = tally.plus(totals.cost(charge))
        return after if totals.pays(after) else None

    return takes


GRANT = dc.Budget(2.0, 0.03)
RESPONSES = (Menu.response(2), Menu.response(4), Menu.response(1, 0.01))
MENUS = {
    "responses": (GRANT, RESPONSES),
    "with noise": (GRANT, (Menu.gaussian(1), Menu.response(4), Menu.response(8), Menu.response(1, 0.003))),
    "a small epsilon": (dc.Budget(1.0, 1e-3), (Menu.response(1), Menu.response(1, 1e-4))),
}


@pytest.mark.parametrize("share", [0.0, 0.25, 0.6])
@pytest.mark.parametrize("name", MENUS)
@pytest.mark.filterwarnings("ignore::discreet.privacy.budget.WeakBudgetWarning")
def test_no_adaptive_adversary_gets_more_than_the_grant(name, share):
    grant, menu = MENUS[name]
    exact = exact_delta(grant.epsilon, menu, taken(ZcdpFilter.of(grant, share)))
    assert 0.1 * grant.delta < exact <= grant.delta  # not above, and not because nothing was let through


def _late(totals, tally, charge):
    """Checks what was spent before, and adds then: the last charge may be of any size."""
    return tally.plus(totals.cost(charge)) if totals.pays(tally) else None


def _halved(totals, tally, charge):
    """Half of every rho."""
    cost = totals.cost(charge)
    after = tally.plus(Charge(None, cost.delta, cost.rho / 2))
    return after if totals.pays(after) else None


def _forgets_delta(totals, tally, charge):
    """Deltas cost nothing."""
    after = tally.plus(Charge(None, 0.0, totals.cost(charge).rho))
    return after if totals.pays(after) else None


def _bent(totals, tally, charge):
    """The converted total is within the grant: unused rho pays for delta."""
    after = tally.plus(totals.cost(charge))
    left = GRANT.delta - float(after.total_delta)
    return after if left > 0.0 and zcdp_epsilon(float(after.total_rho), left) <= GRANT.epsilon else None


def _better_of_two(totals, tally, charge):
    """What either of two accountings takes, whichever is better for what happened."""
    after = tally.plus(charge)
    rho = sum(times * Fraction(response_rho(epsilon, totals.order)) for epsilon, times in after.epsilons)
    by_rho = rho <= totals.rho and after.total_delta <= totals.delta
    return after if by_rho or after.fits(GRANT, adaptive=True) else None


def _tight(totals, tally, charge):
    """What was chosen, composed as tightly as can be (without deltas), which is right for a fixed schedule alone."""
    if charge.delta:
        return None
    after, losses, chances = tally.plus(charge), np.zeros(1), np.ones(1)
    for epsilon in (epsilon for epsilon, times in after.epsilons for _ in range(times)):
        up = 1.0 / (1.0 + math.exp(-epsilon))
        losses = np.concatenate([losses + epsilon, losses - epsilon])
        chances = np.concatenate([chances * up, chances * (1.0 - up)])
    lost = np.sum(chances * np.maximum(0.0, -np.expm1(np.minimum(0.0, GRANT.epsilon - losses))))
    return after if lost <= GRANT.delta else None


@pytest.mark.parametrize("wrong", [_late, _halved, _forgets_delta, _bent, _better_of_two, _tight])
def test_the_same_check_catches_filters_that_are_wrong(wrong):
    totals = ZcdpFilter.of(GRANT)
    exact = exact_delta(GRANT.epsilon, RESPONSES, lambda tally, charge: wrong(totals, tally, charge))
    assert exact > 1.05 * GRANT.delta, wrong.__doc__


def _charged(account, loss):
    """What the adversary gets: the larger epsilon only while it is winning; None if nothing fits any more."""
    for epsilon in (0.7, 0.375) if loss > 0.0 else (0.375,):
        with contextlib.suppress(dc.BudgetExceededError):
            account.charge(dc.Budget(epsilon))
            return epsilon
    return None


@pytest.mark.filterwarnings("ignore::discreet.privacy.budget.WeakBudgetWarning")
def test_a_real_account_stops_an_adversary_that_looks(tmp_path):
    """Every path of a strategy, charged in a ledger, and what all of its transcripts lose together."""
    grant, ledger = dc.Budget(1.0, 0.1), dc.Ledger(tmp_path / "budgets.sqlite")
    lost, lengths, paths = 0.0, set(), [()]
    while paths:
        answers = paths.pop()
        account = f"path {answers}"
        ledger.grant(account, grant, accounting="zcdp")
        loss, likely = 0.0, 1.0
        for answer in answers:
            epsilon = _charged(ledger.account(account), loss)
            loss, likely = loss + answer * epsilon, likely / (1.0 + math.exp(-answer * epsilon))
        if _charged(ledger.account(account), loss) is not None:
            paths += [(*answers, 1), (*answers, -1)]
        else:
            lost += likely * max(0.0, -math.expm1(grant.epsilon - loss))
            lengths.add(len(answers))
    assert len(lengths) > 1  # how many releases there are depends on what was seen
    assert 0.0 < lost <= grant.delta


def test_an_epsilon_costs_what_randomised_response_costs():
    """The exact divergence by its definition; tanh and the square are above it; and it reaches tanh at order 1."""
    for epsilon, order in itertools.product((1e-3, 0.05, 0.5, 1.0, 3.0, 8.0), (1.001, 1.5, 2.0, 6.2, 40.0)):
        up = 1.0 / (1.0 + math.exp(-epsilon))
        moment = up**order * (1.0 - up) ** (1.0 - order) + (1.0 - up) ** order * up ** (1.0 - order)
        rho = response_rho(epsilon, order)
        assert rho == pytest.approx(math.log(moment) / (order - 1.0) / order, rel=1e-7)
        assert rho <= epsilon * math.tanh(epsilon / 2.0) * (1.0 + 1e-8)
        assert rho <= epsilon**2 / 2.0 * (1.0 + 1e-8)
    assert response_rho(1.0, 1.0 + 1e-6) == pytest.approx(math.tanh(0.5), rel=1e-5)


def test_an_epsilon_never_costs_less_than_it_does():
    """Rounded up, against 60 digits; also where terms cancel, and where they overflow."""
    with localcontext() as context:
        context.prec = 60
        for epsilon, order in itertools.product((1e-12, 1e-4, 0.05, 1.0, 5.0, 700.0, 1e6), (1.001, 2.0, 6.25, 1e4)):
            a, x = Decimal(order), Decimal(epsilon)
            ratio = (1 + (-(2 * a - 1) * x).exp()) / (1 + (-x).exp())
            exact = ((a - 1) * x + ratio.ln()) / (a * (a - 1))
            assert exact <= Decimal(response_rho(epsilon, order)) <= exact * (1 + Decimal("1e-8"))
    assert response_rho(1e-300, 6.0) > 0.0
    assert math.isfinite(response_rho(1e308, 1.001))


@pytest.mark.parametrize(("epsilon", "delta"), [(4.0, 1e-5), (1.0, 1e-6), (0.01, 1e-12), (10.0, 1e-9), (4.0, 0.5)])
def test_the_total_of_rho_converts_to_the_grant(epsilon, delta):
    """By the formula, with 60 digits; and hardly less than the best order would give."""
    order = best_order(epsilon, delta)
    rho = rho_at_order(order, epsilon, delta)
    assert rho == pytest.approx(zcdp_rho(epsilon, delta), rel=1e-4)
    with localcontext() as context:
        context.prec = 60
        a, r, e = Decimal(order), Decimal(rho), Decimal(epsilon)
        lost = ((a - 1) * (a * r - e)).exp() / (a - 1) * (a * (1 - 1 / a).ln()).exp()
        assert Decimal(delta) * (1 - Decimal("1e-6")) < lost <= Decimal(delta)
