"""People, pairs of items, and sums of people against laws of their own: `tests.reference.question_laws`.

Vectors are compared entry by entry, the steps of the discovery with noise that the test decides, and the noise and the
cuts by the joint delta, integrated anew. Twins: the aim forgotten, a lower cut, less noise, longer vectors.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from tests.reference import question_laws as laws

import discreet as dc
from discreet.central.person_moments import PersonMoments
from discreet.central.person_pairs import PersonPairs
from discreet.central.person_vectors import PersonVectors
from discreet.summaries.combinations import Combinations
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import ListedPeople

ITEMS = "abcd"
PEOPLE = [["a"], ["a", "b"], ["b", "a", "b", "c"], ["d", "c", "a", "b"], ["c"], ["a", "d"]]
STEPS = len(PEOPLE)  # a sum of so many entries, each cut to a whole number below it


def named(people, values):
    names = people.items(np.arange(len(values))).to_pylist()
    return dict(zip(names, values.tolist(), strict=True))


def alike(told, exact):
    """Whether whole sums are those of vectors that were cut to whole numbers, never above them."""
    off = [exact[item] - told.get(item, 0) for item in exact]
    return {*told} <= {*exact} and all(-1e-6 <= each <= 2 * STEPS for each in off)


def test_vectors_of_the_looks():
    people = ListedPeople(PEOPLE)
    told = named(people, people.discovery_weights(256))
    exact = laws.added_up([laws.first_look(items) for items in PEOPLE])
    assert alike(told, exact)
    assert not alike({item: 2 * x for item, x in told.items()}, exact)
    for weights in itertools.product((64, 300, 1024), repeat=4):
        aims = dict(zip(ITEMS, weights, strict=True))
        asked = np.array([aims[item] for item in told], np.int64)
        exact = laws.added_up([laws.second_look(items, aims) for items in PEOPLE])
        assert alike(named(people, people.aimed_weights(256, asked)), exact)
        for items in PEOPLE:
            assert math.hypot(*laws.second_look(items, aims).values()) <= laws.L * (1 + 1e-12)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("longest", [1.0, 800.0, 3000.0])
def test_vectors_of_the_counts(rows, longest):
    people, weights = ListedPeople(PEOPLE, rows=rows), dict(zip(ITEMS, (300, 700, 1024, 64), strict=True))
    names = people.items(np.arange(4)).to_pylist()
    told = people.scaled_sums(np.arange(4), np.array([weights[item] for item in names]), longest)

    def vector(items):
        return {item: weights[item] * (items.count(item) if rows else 1) for item in dict.fromkeys(items)}

    exact = laws.added_up([laws.cut_to_length(vector(items), longest) for items in PEOPLE])
    assert alike(dict(zip(names, told.tolist(), strict=True)), exact)
    for items in PEOPLE:
        assert math.hypot(*laws.cut_to_length(vector(items), longest).values()) <= laws.L * (1 + 1e-12)
    unscaled = laws.added_up([{x: laws.L * v / longest for x, v in vector(items).items()} for items in PEOPLE])
    assert alike(dict(zip(names, told.tolist(), strict=True)), unscaled) == (longest == 3000.0)


def test_vectors_of_pairs():
    """All pairs of the discovered items that a person has, in one vector; nothing of other items."""
    people, discovered = ListedPeople(PEOPLE), "abc"
    names = people.items(np.arange(4)).to_pylist()
    for size in (2, 3):
        pairs = Combinations(people, np.array([names.index(item) for item in discovered]), size)
        asked = [tuple(pair.values()) for pair in pairs.items(np.arange(pairs.total)).to_pylist()]
        assert asked == laws.pairs_of(ITEMS, discovered, size) or {*asked} == {*laws.pairs_of(ITEMS, discovered, size)}
        weights = {pair: 200 + 300 * place for place, pair in enumerate(asked)}
        vectors = [{pair: weights[pair] for pair in laws.pairs_of(items, discovered, size)} for items in PEOPLE]
        for longest in (1.0, 400.0):
            told = pairs.scaled_sums(np.arange(pairs.total), np.array([*weights.values()]), longest)
            exact = laws.added_up([laws.cut_to_length(vector, longest) for vector in vectors if vector])
            exact = {pair: exact.get(pair, 0.0) for pair in asked}
            assert alike(dict(zip(asked, told.tolist(), strict=True)), exact)


class Decided:
    """Noise that the test decides, in standard deviations."""

    seeded = True

    def __init__(self, *draws):
        self.draws, self.sigmas = list(draws), []

    def discrete_gaussian(self, sigma, size):
        self.sigmas.append(float(sigma))
        return np.rint(np.array(self.draws.pop(0)[:size]) * float(sigma)).astype(np.int64)


def discovered(people, names, draws, sigmas, cuts, k, aimed=True):
    """Section 1 and 2 of people.md: what passes, and whether there was a second look."""
    n = {item: x + z * sigmas[0] for (item, x), z in zip(names.items(), draws[0], strict=True)}
    passed = {item for item, x in n.items() if x >= cuts[0]}
    if len(passed) >= 1.25 * k:
        return passed, False
    aims = {item: int(laws.aim(x, sigmas[0], item in passed)) if aimed else 64 for item, x in n.items()}
    again = laws.added_up([laws.second_look(items, aims) for items in people])
    both = {item: n[item] + again[item] + z * sigmas[1] for item, z in zip(names, draws[1], strict=True)}
    return passed | {item for item, x in both.items() if x >= cuts[1]}, True


def test_the_discovery_with_every_kind_of_noise():
    """Whatever the noise is, what passes is what the page says: 400 draws from a seed, wide and narrow."""
    generator, forgotten = random.Random(11), 0
    made = PersonVectors(dc.Budget(4.0, 1e-3), 2)
    calibration = made.calibration
    sigmas = [float(calibration.sigma_of(part)) for part in (6, Fraction(21, 5))]
    data = [["a", "b", "c"]] * 3 + [["a", "d"]] * 2 + [["b"]] + [["c", "d"]] * 2
    people = ListedPeople(data)
    weights = people.discovery_weights(256)
    names = named(people, weights)
    for _ in range(400):
        draws = [[generator.gauss(0, 1.5) for _ in names] for _ in range(2)]
        source = Decided(*draws)
        places, _, second = made.discover(people, source)
        told = {[*names][place] for place in places.tolist()}
        exact, asked = discovered(data, names, draws, sigmas, calibration.cuts, 2)
        assert second == asked
        assert told <= exact
        assert len(told) == min(len(exact), 3)  # at most 1.5 k (1.2 k, rounded up) are taken
        assert source.sigmas == sigmas[: 1 + second]
        forgotten += exact != discovered(data, names, draws, sigmas, calibration.cuts, 2, aimed=False)[0]
    assert forgotten > 20


# ---- noise and cuts --------------------------------------------------------------------------------------------------

BUDGETS = [dc.Budget(1.0, 1e-6), dc.Budget(0.3, 1e-9), dc.Budget(4.0, 1e-3)]
SHARES = {"look": Fraction(30), "second": Fraction(21), "sizes": Fraction(3), "losses": Fraction(2)}  # percent of mu^2


def spent(calibration, second, loses, pairs=False):
    """mu^2 of all steps, from the noise that each asks for: (L/sigma_i)^2, added up; and what each may have."""
    parts = [SHARES["look"], SHARES["sizes"], *([SHARES["second"]] if second else [])]
    parts += [SHARES["losses"]] if loses else []
    parts += [Fraction(20)] if pairs else []
    parts += [100 - sum(parts)]
    sigmas = [float(calibration.sigma_of(part / 5)) for part in parts]  # in twentieths
    assert parts[-1] / 5 == calibration.counts(second, loses)
    return math.fsum((laws.L / sigma) ** 2 for sigma in sigmas)


def delta_of(made, aimed=True, cut=1.0, noise=1.0):
    """The joint delta of all steps by the page, with a few numbers of items and of isolated ones."""
    calibration = made.calibration
    sigmas = tuple(noise * float(calibration.sigma_of(part)) for part in (6, Fraction(21, 5)))
    cuts = tuple(cut * each for each in calibration.cuts)
    chances = {d: laws.passes_alone(d, sigmas, cuts, aimed) for d in (1, 2, 3, 5, 16, 64, 256)}
    isolated = lambda d: sorted({0, 1, 2, d // 4, d // 2, 3 * d // 4, d - 1, d} & {*range(d + 1)})  # noqa: E731
    return laws.people_delta(made.budget.epsilon, calibration.mu / noise, chances, isolated)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_all_steps_of_people_together(budget):
    made = PersonVectors(budget, 10)
    mu = made.calibration.mu
    for second, loses in itertools.product((False, True), repeat=2):
        assert 0.99999 * mu**2 < spent(made.calibration, second, loses) <= mu**2
    assert 0.96 * budget.delta < delta_of(made) <= budget.delta
    assert delta_of(made, cut=0.99) > budget.delta
    assert delta_of(made, noise=0.95) > budget.delta
    assert delta_of(made, noise=0.5) > 10 * budget.delta
    pairs = PersonPairs(budget, 10)
    for second, loses in itertools.product((False, True), repeat=2):
        assert 0.99999 * pairs.calibration.mu**2 < spent(pairs.calibration, second, loses, True) <= mu**2 * (1 + 1e-9)
    assert 0.96 * budget.delta < delta_of(pairs) <= budget.delta
    whole = dataclasses.replace(made.calibration)  # a twin whose look at pairs is not paid for by the counts
    with pytest.raises(AssertionError):
        spent(whole, True, True, True)


def test_what_an_account_of_rhos_pays_for_people():
    for budget in BUDGETS:
        made = PersonVectors(budget, 10)
        sigmas = tuple(float(made.calibration.sigma_of(part)) for part in (6, Fraction(21, 5)))
        worst = max(
            -math.expm1(d * math.log1p(-laws.passes_alone(d, sigmas, made.calibration.cuts))) for d in (1, 2, 16, 256)
        )
        assert made.calibration.mu**2 / 2 <= made.cost.rho <= made.calibration.mu**2 / 2 * (1 + 1e-9)
        assert worst <= made.cost.delta <= 1.1 * worst


@pytest.mark.parametrize("kind", ["count", "split", "sum", "mean", "variance"])
@pytest.mark.parametrize("budget", [*BUDGETS, dc.Budget.zcdp(0.2)], ids=str)
def test_sums_of_people_over_a_list(kind, budget):
    """Sizes, losses and counts have all of mu, which is all of the budget: nothing is discovered."""
    made = PersonMoments.of(budget, ValueMoment(kind, -1, 1, 2**10), 4)
    calibration = made.calibration
    for loses in (False, True):
        sizes, losses = (Fraction(2), Fraction(8, 5)) if kind == "split" else (Fraction(3, 5), Fraction(2, 5))
        parts = [sizes, *([losses] if loses else [])]
        parts.append(20 - sum(parts))
        assert (calibration.sizes, calibration.losses) == (sizes, losses)
        assert calibration.counts(False, loses) == parts[-1]
        mu = math.sqrt(math.fsum((laws.L / float(calibration.sigma_of(part))) ** 2 for part in parts))
        if budget.rho is not None:
            assert 0.9999 * budget.rho < mu**2 / 2 <= budget.rho
        else:
            assert 0.999 * budget.delta < laws.gaussian_delta(budget.epsilon, mu) <= budget.delta
            assert laws.gaussian_delta(budget.epsilon, 2 * mu) > 10 * budget.delta


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_sums_of_people_over_groups_that_are_discovered(budget):
    made = PersonMoments.of(budget, ValueMoment("mean", 0, 1, 2**10), None)
    assert 0.96 * budget.delta < delta_of(made) <= budget.delta
    assert delta_of(made, cut=0.99) > budget.delta
    assert delta_of(made, noise=0.95) > budget.delta


def test_the_aim_is_what_raises_the_cut():
    """The cut that forgets that the first noise aims the second look: lower, and not enough."""
    made = PersonVectors(dc.Budget(4.0, 1e-6), 10)
    right = made.calibration
    sigmas = tuple(float(right.sigma_of(part)) for part in (6, Fraction(21, 5)))
    allowed, low, high = laws.passes_alone(256, sigmas, right.cuts), 0.9, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        fewer = laws.passes_alone(256, sigmas, (right.cuts[0], middle * right.cuts[1]), aimed=False) <= allowed
        low, high = (low, middle) if fewer else (middle, high)
    assert high < 0.999
    assert laws.passes_alone(256, sigmas, (right.cuts[0], high * right.cuts[1])) > 1.01 * allowed
