"""Quantiles by recursive choice: the law of all that may be chosen, over all small neighbours, from its definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference.branches import law_of
from tests.reference.naive_laws import quantile_choice_law
from tests.reference.sabotage import sabotaged

import discreet as dc
from discreet.central import Grid, QuantileChoice
from discreet.central.quantile_choice import Found


def held(masses):
    masses = np.array(masses, np.int64)
    return Found(np.flatnonzero(masses), masses[masses > 0])


def neighbours(mechanism, masses):
    """All data with these masses in the bins, and the same with one unit more: a row, or the votes of a person."""
    bins, height = mechanism.grid.bins, mechanism.height
    units = [np.eye(bins, dtype=np.int64)[place] * height for place in range(bins)]
    if height > 1:
        units.append(np.array([height // 2, *[0] * (bins - 2), height - height // 2]))
    for before in itertools.product(masses, repeat=bins):
        for unit in units:
            yield held(np.array(before) * height), held(np.array(before) * height + unit)


def drawn(mechanism, found):
    """The law of what the code chooses."""
    return law_of(lambda source: mechanism.chosen(found, source), cutoff=0.0).mass


def loss(first, second, rho):
    """Epsilon of two laws; of a budget of rho the largest D_a/a over some orders a."""
    ratios = {parts: math.log(first[parts] / second[parts]) for parts in first}
    if not rho:
        return max(map(abs, ratios.values()))
    orders = (1.01, 1.5, 2.0, 4.0, 16.0)
    return max(
        math.log(sum(law[parts] * math.exp((a - 1) * sign * ratio) for parts, ratio in ratios.items())) / (a - 1) / a
        for a in orders
        for law, sign in ((first, 1), (second, -1))
    )


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
    for place, (first, second) in enumerate(neighbours(mechanism, (0, 1, 20))):
        one, two = defined(mechanism, first), defined(mechanism, second)
        worst = max(worst, loss(one, two, rho))
        if place % 7 == 0:
            law = drawn(mechanism, second)
            assert law == pytest.approx(two, rel=1e-9)
            assert sum(law.values()) == pytest.approx(1.0)
    assert worst <= allowed * (1 + 1e-9)
    assert worst > 0.3 * allowed  # the check sees much of what there is


def test_what_is_wrong_on_purpose_costs_more():
    right = CASES[2]
    allowed = float(sum(right.epsilons))
    assert max(loss(drawn(right, a), drawn(right, b), False) for a, b in neighbours(right, (0, 3))) <= allowed * (
        1 + 1e-9
    )
    loud = sabotaged(right, epsilons=lambda each: tuple(2 * e for e in each))
    assert max(loss(drawn(loud, a), drawn(loud, b), False) for a, b in neighbours(right, (0, 40))) > allowed * (
        1 + 1e-6
    )


def test_shares_of_equal_values_are_all_this_value():
    """All in one bin of three: whatever is chosen above, the shares below are looked for in the rest of the bin."""
    mechanism = QuantileChoice(dc.Budget(40.0), Grid(0, 3, 3), (0.25, 0.5, 0.75), parts=4)
    law = drawn(mechanism, Found(np.array([1]), np.array([40])))
    same = sum(chance for parts, chance in law.items() if {part // 4 for part in parts} == {1})
    assert same > 1 - 1e-3
