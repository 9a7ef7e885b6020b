"""Quantiles by recursive choice: the law of all that may be chosen, over all small neighbours, from its definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference.naive_laws import quantile_choice_law

import discreet as dc
from discreet.central import Grid, QuantileChoice
from discreet.central.quantile_choice import Found
from discreet_audit.central_questions import choice_law, choice_loss, choice_neighbours
from discreet_audit.core import cases


def spread(found, bins, parts):
    """What lies in each part, exactly."""
    held = dict(zip(found.bins.tolist(), found.masses.tolist(), strict=True))
    return [Fraction(held.get(place, 0), parts) for place in range(bins) for _ in range(parts)]


def defined(mechanism, found):
    """The law, written down again, with the epsilon of a level by its definition."""
    shares = [Fraction(str(share)) for share in mechanism.quantiles]
    levels = math.ceil(math.log2(len(shares) + 1))
    if mechanism.budget.rho is None:
        e = 0.75 * mechanism.budget.epsilon / levels
    else:
        e = math.sqrt(8 * 0.75 * mechanism.budget.rho / levels)
    line = spread(found, mechanism.grid.bins, mechanism.parts)
    return quantile_choice_law(line, shares, e, mechanism.height, mechanism.parts)


CASES = [
    QuantileChoice(dc.Budget(1.0), Grid(0, 3, 3), (0.5,), parts=2),
    QuantileChoice(dc.Budget(1.0), Grid(0, 3, 3), (0.1,), parts=1),
    QuantileChoice(dc.Budget(3.0), Grid(0, 3, 3), (0.25, 0.5, 0.75), parts=2),
    QuantileChoice(dc.Budget(2.0), Grid(0, 2, 2), (0.2, 0.4, 0.6, 0.8), parts=2),
    QuantileChoice(dc.Budget.zcdp(0.5), Grid(0, 3, 3), (0.1, 0.5), parts=2),
    QuantileChoice(dc.Budget(1.0), Grid(0, 3, 3), (0.3, 0.5), dc.User(), 2, parts=2),
]


@pytest.mark.parametrize("mechanism", CASES, ids=lambda each: f"{each.budget} {len(each.quantiles)} {each.of}")
def test_the_law_is_the_one_defined_and_costs_what_it_may(mechanism):
    rho = mechanism.budget.rho is not None
    allowed = float(sum(each**2 / 8 if rho else each for each in mechanism.epsilons))
    given = mechanism.budget.rho if rho else mechanism.budget.epsilon
    assert allowed == pytest.approx(0.75 * given, rel=1e-9)
    rest = mechanism.split[1].rho if rho else mechanism.split[1].epsilon
    assert Fraction(rest) + sum(each**2 / 8 if rho else each for each in mechanism.epsilons) <= Fraction(given)
    worst = 0.0
    for place, (first, second) in enumerate(choice_neighbours(mechanism, (0, 1, 20))):
        worst = max(worst, choice_loss(mechanism, first, second))
        if place % 7 == 0:
            law, again = choice_law(mechanism, second), defined(mechanism, second)
            assert law == pytest.approx(again, rel=1e-9)
            assert sum(law.values()) == pytest.approx(1.0)
    assert worst <= allowed * (1 + 1e-9)
    assert worst > 0.3 * allowed  # the check sees much of what there is


@pytest.mark.parametrize("place", range(5))
def test_what_is_wrong_on_purpose_costs_more(place):
    (case,) = (case for case in cases() if case.mechanism is QuantileChoice)
    made = case.examples()[place]
    rho = made.budget.rho is not None
    allowed = float(sum(each**2 / 8 if rho else each for each in made.epsilons))
    wrong = {"choices with half the noise", "the epsilon of all levels for each", "both sides look at everything"}
    wrong |= {"the score of a median for every share", "min(q, 1-q) in place of max"}
    pairs = [*choice_neighbours(made, (0, 1, 3, 40) if made.grid.bins < 4 else (0, 2, 40))]
    for twin in case.of(made).twins(made):
        if twin.name in wrong:
            assert any(choice_loss(twin.mechanism, *pair) > allowed * (1 + 1e-6) for pair in pairs), twin.name


def test_shares_of_equal_values_are_all_this_value():
    """All in one bin of three: whatever is chosen above, the shares below are looked for in the rest of the bin."""
    mechanism = QuantileChoice(dc.Budget(40.0), Grid(0, 3, 3), (0.25, 0.5, 0.75), parts=4)
    law = choice_law(mechanism, Found(np.array([1]), np.array([40])))
    same = sum(chance for parts, chance in law.items() if {part // 4 for part in parts} == {1})
    assert same > 1 - 1e-3
