"""What questions about rows publish, against laws of their own: `tests.reference.question_laws`.

Scales and cuts must be those of the naive law, and all that is published of tiny data must have it. Each twin (half the
noise, a cut one lower, a person counted as a row) must not.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference import question_laws as laws
from tests.reference.branches import Silent, law_of
from tests.reference.counter_laws import apart, laplace_tail, least, noise
from tests.reference.sabotage import cut_one_lower, half_the_noise, sabotaged

import discreet as dc
from discreet.central import (
    BadShare,
    ChosenDistinct,
    CreditedDistinct,
    Grid,
    NoisyCount,
    QuantileChoice,
    QuantileTree,
    RowMoments,
    UniverseHistogram,
)
from discreet.summaries.moments import ValueMoment

NOISES = [
    (dc.Budget(3.0), "laplace", Fraction(1, 3)),
    (dc.Budget.zcdp(0.5), "gaussian", Fraction(1)),
    (dc.Budget(3.0, 0.01), "laplace", Fraction(1, 3)),
]
SETS = [(), (0,), (1,), (0, 1), (0, 1, 2)]


def same(run, law, cutoff=1e-8):
    told = law_of(run, cutoff)
    return apart(told.mass, law) <= told.missing + 1e-5


def rows_of(people):
    pairs = [(who, value) for who, person in enumerate(people) for value in person]
    return tuple(np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1))


def close(scale, exact, slack=Fraction(1, 10**9)):
    return exact <= scale <= exact * (1 + slack)


@pytest.mark.parametrize(("budget", "law", "scale"), NOISES, ids=str)
def test_a_count(budget, law, scale):
    made = NoisyCount(budget)
    assert close(made.scale, scale)
    told = {z[0]: chance for z, chance in laws.numbers_law([7], law, scale).items()}
    assert same(lambda source: int(made.draw(7, source)), told)
    assert not same(lambda source: int(half_the_noise(made).draw(7, source)), told)


@pytest.mark.parametrize(("budget", "law", "scale"), NOISES[:2], ids=str)
def test_a_list(budget, law, scale):
    people = [["a", "a", "b"], ["x", "b", "c", "a"], ["c"]]
    for m in (1, 2):
        made = UniverseHistogram(budget, ["a", "b"], dc.User(), max_items=m)
        wide = m * scale if law == "laplace" else Fraction(math.sqrt(m)) * scale
        assert close(made.scale, wide)
        counts = laws.listed_of_people(people, ["a", "b"], m)
        told = laws.numbers_law(counts, law, wide)
        run = lambda source, by=made, counts=counts: tuple(by.draw(np.array(counts), source).noisy.tolist())  # noqa: E731
        assert same(run, told)
        assert not same(lambda source, run=run, made=made: run(source, half_the_noise(made)), told)
        columns = {
            "who": [str(who) for who, rows in enumerate(people) for _ in rows],
            "item": [item for rows in people for item in rows],
        }
        loud = dc.histogram(
            columns, dc.Budget(1e4), column="item", universe=["a", "b"], user="who", max_items=m
        )  # its noise is 0 but for a chance of e^-5000
        assert dict(zip(loud.items, loud.counts.tolist(), strict=True)) == dict(zip(("a", "b"), counts, strict=True))


def test_different_values_of_people():
    for m in (1, 2):
        made = CreditedDistinct(dc.Budget(2.0), max_items=m)
        assert made.scale == laws.least_scale(Fraction(2), 1, m)
        for people in itertools.product(SETS, repeat=2):
            most = laws.most_credited(people, m)
            assert made.count_of(*rows_of(people)) == most
        told = {z[0]: chance for z, chance in laws.numbers_law([most], "laplace", made.scale).items()}
        assert same(lambda source, made=made, most=most: int(made.draw(most, source)), told)
        assert not same(lambda source, made=made, most=most: int(half_the_noise(made).draw(most, source)), told)


def test_how_many_values_to_credit_is_chosen_privately():
    made = ChosenDistinct(dc.Budget(40.0))
    assert tuple(2**i for i in range(11)) == made.CANDIDATES
    for people in (((0, 1, 2, 3, 4),), ((0, 1, 2), (3, 4)), ()):
        credited = {m: laws.most_credited(people, m) for m in made.CANDIDATES}
        assert made.count_of(*rows_of(people)) == credited
    # Many people with many values each: the choice is a toss between limits.
    credited = {m: min(4 * m, 14) for m in made.CANDIDATES}
    told = laws.chosen_credit_law(credited, Fraction(40))
    run = lambda source, by=made: tuple(int(x) for x in by.draw(credited, source))  # noqa: E731
    assert same(run, told, 1e-6)
    loud = sabotaged(made, choice_epsilon=lambda epsilon: 2 * epsilon)
    assert not same(lambda source: run(source, loud), told, 1e-6)
    quiet = sabotaged(made, parts=lambda parts: (parts[0], dc.Budget(2 * parts[1].epsilon)))
    assert not same(lambda source: run(source, quiet), told, 1e-6)


@pytest.mark.parametrize(("budget", "law"), [(dc.Budget(1.0), "laplace"), (dc.Budget.zcdp(0.125), "gaussian")], ids=str)
@pytest.mark.parametrize("unit", [dc.Event(), dc.User()], ids=str)
def test_a_test_of_bad_rows(budget, law, unit):
    share = Fraction(1, 4)
    made = BadShare(budget, share, unit)
    moved = 4 if isinstance(unit, dc.User) else 3  # q, or max(p, q - p)
    if isinstance(unit, dc.User):
        states = [(), (True,), (False,), (False, True)]
        groups = itertools.product(states, states)
        told = [
            abs(laws.bad_people([*others, more], where, share) - laws.bad_people(others, where[:-1], share))
            for *others, more in ((a, b, c) for a, b in groups for c in states)
            for where in itertools.product((0, 1), repeat=3)
        ]
        assert max(told) == moved
    else:
        assert max(abs(laws.bad_rows(b, g, share)) for b, g in ((1, 0), (0, 1))) == moved
    scale = laws.least_scale(Fraction(1), 1, moved) if law == "laplace" else Fraction(2 * moved)
    assert close(made.scale, scale)
    table = noise(law, scale)
    cut = next(c for c in range(1000) if math.fsum(p for z, p in table.items() if z > c) <= 1e-6)
    assert made.cut == cut
    for statistic in (cut - 2, cut, cut + 3):
        assert made.statistic(2, 5) == laws.bad_rows(2, 5, share)
        told = laws.refusal_law(statistic, law, scale, cut)
        assert same(lambda source, s=statistic: bool(made.draw(s, source)), told, 1e-12)
        for twin in (half_the_noise(made), cut_one_lower(made)):
            shown = law_of(lambda source, s=statistic, twin=twin: bool(twin.draw(s, source)), 1e-12)
            assert apart(shown.mass, told) > 1e-3 or statistic == cut


@pytest.mark.parametrize("budget", [dc.Budget(2.0), dc.Budget.zcdp(0.5)], ids=str)
def test_the_nodes_of_quantiles(budget):
    """Of rows, and of the votes of people: all nodes, and noise for all levels together."""
    rows = QuantileTree(budget, Grid(0, 6, 6), (0.5,))
    people = QuantileTree(budget, Grid(0, 6, 6), (0.5,), dc.User(), max_rows=2)
    given = [[0, 0, 5], [3], [], [1, 2, 3, 3, 5]]
    flat = np.array([place for own in given for place in own])
    owners = np.array([who for who, own in enumerate(given) for _ in own])
    votes = np.sum([laws.votes(own, 6, 2) for own in given], axis=0)
    of_rows = [int((flat == place).sum()) for place in range(6)]
    for made, leaves, counts, height in (
        (rows, of_rows, rows.counts(flat), 1),
        (people, votes.tolist(), people.counts(flat, owners), 2 * 2**24),
    ):
        tree, source = made.tree, Silent()
        b, levels = tree.branching, tree.levels
        assert b ** (levels - 1) < 6 <= b**levels
        assert made.draw(counts, source).tolist() == laws.nodes(leaves, b, levels)
        (asked,) = source.asked
        assert asked.size == sum(b**level for level in range(1, levels + 1))
        if budget.rho is None:
            assert (asked.law, asked.scale) == ("laplace", laws.least_scale(Fraction(2), levels, height))
        else:
            square = laws.least_square(Fraction(1, 2), levels, height)
            assert asked.law == "gaussian"
            assert close(asked.scale**2, square)
        alone = laws.nodes([height, *[0] * 5], b, levels)  # what is paid for: all of a unit in one bin
        assert sum(alone) == levels * height
    # A person counted for each row would have twice what the noise is for.
    assert sum(laws.votes([0] * 5, 6, 2)) == 2 * 2**24 < 5 * 2**24


def test_the_levels_of_choices_share_their_part():
    """Three quarters of the budget for L = ceil(log2(k + 1)) levels of choices, each at rate e/(2 max(q, 1 - q))."""
    for k, levels in ((1, 1), (2, 2), (3, 2), (7, 3)):
        shares = [(i + 1) / (k + 1) for i in range(k)]
        made = QuantileChoice(dc.Budget(2.0), Grid(0, 4, 4), shares)
        root = made.root()
        e = Fraction(3, 4) * 2 / levels
        q = made.share_of(root)
        assert float(made.rate(root)) == pytest.approx(float(e / (2 * max(q, 1 - q))), rel=1e-9)
        assert float(made.rate(root)) <= float(e / (2 * max(q, 1 - q)))


# ---- sums ------------------------------------------------------------------------------------------------------------

KINDS = ("count", "sum", "mean", "variance")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_row_adds(kind):
    moment = ValueMoment(kind, -2, 3, 100)
    one = moment.one
    for value in (-5, -2, -1, 0, 1, 3, 9):
        exact = laws.parts(kind, Fraction(value), Fraction(-2), Fraction(3))
        assert sum(exact) == 1
        assert moment.entries(np.array([float(value)]))[0].tolist() == [one * part for part in exact]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [dc.Budget(2.0, 0.05), dc.Budget(1.0, 1e-3)], ids=str)
def test_groups_that_are_discovered(kind, budget):
    """The least cut that a row alone in its group passes with probability delta, by adding up noises."""
    made = RowMoments(budget, ValueMoment(kind, 0, 2, 4), None)
    one = made.moment.one
    assert made.noise.law == "laplace"
    assert made.scale == laws.least_scale(Fraction(budget.epsilon), 1, one)
    table = laws.convolved(noise("laplace", made.scale), made.moment.parts)
    exact = one + laws.least_unlikely(table, budget.delta)
    # The tail of three noises is taken by cells: it may be a hair above.
    assert exact <= made.threshold <= exact + (kind == "variance")
    if kind != "count":
        alone = one + laws.least_unlikely(noise("laplace", made.scale), budget.delta)
        assert alone < exact  # the cut of a single noise


def test_all_that_is_published_of_groups():
    made = RowMoments(dc.Budget(4.0, 0.05), ValueMoment("mean", 0, 1, 1), None)
    assert made.moment.one == 1
    sums = {0: (made.threshold, 1), 1: (0, 1)}
    table = laws.convolved(noise("laplace", Fraction(1, 4)), 2)
    told = laws.groups_law(sums, "laplace", Fraction(1, 4), 1 + laws.least_unlikely(table, 0.05))

    def run(source, by=made):
        noisy = by.draw(np.array([*sums.values()]), source)
        return tuple((place, tuple(noisy[place].tolist())) for place in np.flatnonzero(by.passed(noisy)).tolist())

    assert same(run, told)
    for twin in (half_the_noise(made), cut_one_lower(made)):
        assert not same(lambda source, twin=twin: run(source, twin), told)


def test_tails_in_closed_form_are_those_of_the_tables():
    """The two ways in which the laws here know a tail agree."""
    for rate, t in itertools.product((0.3, 2.0), (-3, 0, 1, 9)):
        table = noise("laplace", Fraction(1) / Fraction(rate))
        assert math.fsum(p for z, p in table.items() if z >= t) == pytest.approx(laplace_tail(rate, t), abs=1e-11)
    assert least(lambda t: t >= 37) == 37
