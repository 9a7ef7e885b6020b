"""The accounting of person-days on tiny cases, all of them: the ledger's balance is the largest composition over days.

The twins add up by the number of charges whatever they are about, or take the mean over days. The same check finds
both.
"""

import itertools

import pytest

import discreet as dc
from discreet.privacy.accounting import Tally
from discreet.privacy.ledger.balance import Balance, Limit
from discreet.privacy.spans import ALWAYS, Period
from discreet.privacy.zcdp_filter import ZcdpFilter

DAY = dc.User(per="1d")
DAYS = [f"2026-11-0{number}" for number in range(1, 5)]
PERIODS = [Period(DAYS[first], DAY.spans.after(DAYS[last])) for first in range(4) for last in range(first, 4)]
GRANT = dc.Budget(1.0, 1e-6)
BUDGETS = (dc.Budget(0.25, 1e-7), dc.Budget(0.5), dc.Budget(0.3, 2e-7))
LIMITS = {
    "tight": Limit(GRANT),
    "basic": Limit(GRANT, adaptive=True),
    "zcdp": Limit(GRANT, adaptive=True, filter=ZcdpFilter.of(GRANT)),
}


def folded(limit, charges):
    """The ledger's own fold over a grant and charges (budget, period)."""
    granted = {"budget": GRANT.to_dict(), "unit": DAY.details(), **limit.to_dict()}
    balance = Balance().after("grant", granted)
    for budget, period in charges:
        cost = limit.charge(budget)
        told = {"budget": budget.to_dict(), "unit": DAY.details(), "period": period.to_dict()}
        told |= {} if limit.filter is None else {"cost": {"rho": cost.rho, "delta": cost.delta}}
        balance = balance.after("charge", told)
    return balance


def of_day(limit, charges, day):
    """What the charges about one day compose to, from the definition: those whose period has the day, and no others."""
    return Tally.of(limit.charge(budget) for budget, period in charges if period.first <= day < period.after)


def ledger_pays(limit, charges, budget, period):
    return all(standing.pays(limit.charge(budget)) for standing in folded(limit, charges).about(period))


def by_number(limit, charges, budget, period):
    """The twin that counts charges: a share of the grant for each, as if all of them were small."""
    return (len(charges) + 1) * 0.25 <= 1.0


def by_mean(limit, charges, budget, period):
    """The twin that adds up the mean over the days."""
    days = [of_day(limit, [*charges, (budget, period)], day) for day in DAYS]
    return sum(float(tally.epsilon + tally.total_rho) for tally in days) / len(days) <= 1.0


def violations(pays, limit, most=3):
    """How many sequences of charges `pays` lets through although some day's own charges do not fit the grant."""
    found = 0
    for number in range(1, most + 1):
        for periods in itertools.product(PERIODS[::3], repeat=number):
            for budgets in itertools.product(BUDGETS, repeat=number):
                charges = list(zip(budgets, periods, strict=True))
                through = all(pays(limit, charges[:at], *charges[at]) for at in range(number))
                found += through and not all(limit.pays(of_day(limit, charges, day)) for day in DAYS)
    return found


@pytest.mark.parametrize("accounting", LIMITS)
def test_all_assignments_of_charges_to_days(accounting):
    """Three charges, each about any run of four days: every day has exactly the tally of its own charges."""
    limit = LIMITS[accounting]
    for periods in itertools.product(PERIODS, repeat=3):
        charges = list(zip(BUDGETS, periods, strict=True))
        balance = folded(limit, charges)
        tallies = {day: of_day(limit, charges, day) for day in DAYS}
        for day, tally in tallies.items():
            (standing,) = balance.about(Period(day, DAY.spans.after(day)))
            assert standing.tally == tally
        assert {one.tally for one in balance.about(ALWAYS)} == {Tally(), *tallies.values()}
        for (first, tally), (second, other) in itertools.pairwise(balance.pieces):
            assert first.after <= second.first
            assert first.after < second.first or tally != other
        largest = max(tallies.values(), key=lambda tally: (tally.epsilon, tally.total_rho))
        spent, _ = balance.fullest(ALWAYS)
        assert (spent.epsilon or spent.rho) >= float(largest.epsilon or largest.total_rho) * (1 - 1e-3)
        assert Balance.from_dict(balance.to_dict()) == balance


@pytest.mark.parametrize("accounting", LIMITS)
def test_a_charge_is_paid_exactly_if_every_day_that_it_is_about_can(accounting):
    limit = LIMITS[accounting]
    for periods in itertools.product(PERIODS[::2], repeat=3):
        charges = list(zip(BUDGETS, periods, strict=True))
        after = [of_day(limit, charges, day) for day in DAYS if periods[-1].first <= day < periods[-1].after]
        assert ledger_pays(limit, charges[:-1], *charges[-1]) == all(map(limit.pays, after))


def test_the_twins_are_found():
    assert violations(ledger_pays, LIMITS["basic"]) == 0
    assert violations(by_number, LIMITS["basic"]) > 0
    assert violations(by_mean, LIMITS["basic"]) > 0
