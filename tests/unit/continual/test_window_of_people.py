"""People in a window: who counts at which tick, what noise hides it, and what a state keeps."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

import discreet as dc
from discreet.continual import DistinctCount, Histogram
from discreet.continual._factors import Buffered, EachTick, SquareRoot, Tree, changes_of_a_window
from discreet.noise import seeded_source

BUDGET = dc.Budget(1.0, 1e-6)


class Silence:
    seeded = True

    def discrete_gaussian(self, sigma, size=None):
        return 0 if size is None else np.zeros(size, np.int64)


def stream(ticks, seed=1, people=12, items=5, length=4):
    rng = np.random.default_rng(seed)
    return [
        [(f"user {u}", f"item {i}") for u, i in zip(rng.integers(0, people, n), rng.integers(0, items, n), strict=True)]
        for n in rng.integers(0, length + 1, ticks)
    ]


def expected(ticks, window, visits, most):
    """Counts of pairs in the window, row by row and tick by tick, from the words of the documentation alone."""
    held, rows, out = defaultdict(list), defaultdict(list), []
    for t, tick in enumerate(ticks, 1):
        for user, item in tick:
            if item not in held[user] and len(held[user]) < most:
                held[user].append(item)
            if item in held[user]:
                rows[user, item].append(t)
        counts = defaultdict(int)
        for (_, item), when in rows.items():
            inside = [any(s - window < row <= s for row in when) for s in range(1, t + 1)]
            begun = sum(now and not before for before, now in zip([False, *inside], inside, strict=False))
            if inside[-1] and (visits is None or begun <= visits):
                counts[item] += 1
        out.append(dict(counts))
    return out


@pytest.mark.parametrize("window", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("visits", [None, 1, 2])
def test_people_count_while_one_of_the_last_ticks_has_a_row_of_theirs(window, visits):
    ticks = stream(30)
    counter = DistinctCount(30, BUDGET, window=window, max_visits=visits, source=Silence())
    right = expected([[(user, "") for user, _ in tick] for tick in ticks], window, visits, 1)
    for t, tick in enumerate(ticks):
        users = [user for user, _ in tick]
        if t % 3 == 1:  # rows that come one by one, and again
            for user in [*users, *users]:
                counter.add([user])
            users = []
        assert counter.step(users) == right[t].get("", 0)


@pytest.mark.parametrize("domain", [None, [f"item {i}" for i in range(5)]])
@pytest.mark.parametrize(("window", "visits", "most"), [(1, None, 2), (3, 1, 2), (4, 2, 3), (30, None, 9)])
def test_so_do_their_items(domain, window, visits, most):
    ticks = stream(30, people=6)
    made = Histogram(30, BUDGET, domain, unit=dc.User(most), window=window, max_visits=visits, source=Silence())
    for tick, right in zip(ticks, expected(ticks, window, visits, most), strict=True):
        half = len(tick) // 2
        made.add([item for _, item in tick[:half]], users=[user for user, _ in tick[:half]])
        made.step([item for _, item in tick[half:]], users=[user for user, _ in tick[half:]])
        assert {item: count for item, count in made.not_private_counts().items() if count} == right


@pytest.mark.parametrize("visits", [None, 2])
def test_a_state_goes_on_as_if_nothing_had_happened(visits):
    ticks = stream(20)
    made = [
        DistinctCount(20, BUDGET, window=3, max_visits=visits, source=seeded_source(1)),
        Histogram(20, BUDGET, unit=dc.User(2), window=3, max_visits=visits, source=seeded_source(2)),
    ]
    for mechanism in made:
        published = []
        for again in (False, True):
            source = seeded_source(7)
            now = type(mechanism).from_bytes(mechanism.to_bytes(), source=source)
            seen = []
            for tick in ticks:
                users, items = [user for user, _ in tick], [item for _, item in tick]
                if isinstance(now, Histogram):
                    now.add(items, users=users)
                    now = type(now).from_bytes(now.to_bytes(), source=source) if again else now
                    release = now.step()
                    seen.append((release.items, release.counts.tolist()))
                else:
                    now.add(users)
                    now = type(now).from_bytes(now.to_bytes(), source=source) if again else now
                    seen.append(now.step())
            published.append(seen)
        assert published[0] == published[1]


# ---- noise -----------------------------------------------------------------------------------------------------------


def ways(ticks, window, visits):
    """All 0/1 sequences by which one person can be counted in a window."""
    seen = set()
    for rows in itertools.product((0, 1), repeat=ticks):
        inside = [int(any(rows[max(0, t - window + 1) : t + 1])) for t in range(ticks)]
        begun, counted = 0, []
        for t, now in enumerate(inside):
            begun += now and not (t and inside[t - 1])
            counted.append(int(now and (visits is None or begun <= visits)))
        seen.add(tuple(counted))
    return seen


def moved(factor, counted):
    """|C d|^2 in units of one count, d the changes of the count, from the factor's own coefficients."""
    d = np.diff([0, *counted])
    if isinstance(factor, EachTick):
        return float(np.dot(counted, counted))
    if isinstance(factor, Tree):
        squares, span = 0, 1
        for _ in range(factor.levels):
            squares += sum(int(d[s : s + span].sum()) ** 2 for s in range(0, len(d), span))
            span *= factor.base
        return float(squares)
    if isinstance(factor, SquareRoot):
        c = np.concatenate([[1.0], factor.coefficients / 2.0**40])
    else:
        theta, omega = factor.theta / 2.0**40, factor.omega / 2.0**40
        c = np.concatenate([[1.0], [float(omega @ theta**j) for j in range(factor.horizon - 1)]])
    rows = np.array([sum(c[t - s] * d[s] for s in range(t + 1)) for t in range(len(d))])
    return float(rows @ rows)


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("visits", [None, 1, 2])
def test_one_person_changes_a_window_as_often_as_is_said_and_no_oftener(window, visits):
    for ticks in range(1, 11):
        changes = max(np.abs(np.diff([0, *counted])).sum() for counted in ways(ticks, window, visits))
        assert changes == changes_of_a_window(window, visits, ticks)


@pytest.mark.parametrize("make", [Tree, lambda T: Tree(T, 2), SquareRoot, Buffered, EachTick])
@pytest.mark.parametrize(("window", "visits"), [(1, None), (1, 2), (2, None), (3, 1), (10, None)])
def test_no_way_to_come_and_go_moves_more_than_is_said(make, window, visits):
    """|C d| <= sensitivity_to(changes); half as much noise would not do."""
    factor = make(10)
    said = (factor.sensitivity_to(changes_of_a_window(window, visits, 10)) / factor.lattice) ** 2
    worst = max(moved(factor, counted) for counted in ways(10, window, visits))
    assert said / 4 < worst <= said * (1 + 1e-9)


@pytest.mark.parametrize("make", [Tree, SquareRoot, Buffered])
def test_changes_that_are_spread_over_epochs_cost_their_part(make):
    """Without a horizon an epoch may see any number of a person's changes: each must cost the same or less."""
    factor = make(16)
    for changes in range(1, 17):
        assert factor.sensitivity_to(changes) <= math.sqrt(changes) * factor.sensitivity * (1 + 1e-9)


def test_all_coefficients_fall_and_none_is_negative():
    """What the proof for alternating changes rests on: of every table of "blt", c_0 = 1 >= c_1 >= ... >= 0."""
    from discreet.continual._buffered_table import COEFFICIENT_BITS, OMEGA, THETA

    for theta, omega in zip(THETA, OMEGA, strict=True):
        assert all(0 <= each < 2**COEFFICIENT_BITS for each in theta)
        assert all(each >= 0 for each in omega)
        assert sum(omega) <= 2**COEFFICIENT_BITS


def test_the_noise_is_that_of_all_changes():
    """sigma^2 = changes Delta^2 / (2 rho) of a factor, T / (2 rho) where every tick has a noise of its own."""
    rho = dc.Budget.zcdp(0.5)
    few = DistinctCount(365, rho, window=7, max_visits=3)
    assert few.changes == 6
    # A change moves the ticks until the next: 365/6 of them on average.
    squares = sum(math.comb(2 * j, j) ** 2 / 16**j for j in range(61))
    assert few.factor.name == "blt"
    assert float(few.sigma) ** 2 == pytest.approx(6 * few.factor.lattice**2 * squares / (2 * 0.5), rel=0.01)
    every = DistinctCount(365, rho, window=1)
    assert isinstance(every.factor, EachTick)
    assert float(every.sigma) == pytest.approx(math.sqrt(365), rel=1e-6)
    assert every.error(200) == pytest.approx(math.sqrt(365), rel=1e-6)
    unknown = DistinctCount(None, rho, window=7, max_visits=3)
    plain = DistinctCount(None, rho)
    assert unknown.error(9) == pytest.approx(math.sqrt(6) * plain.error(9), rel=1e-2)
    long = DistinctCount(30, rho, window=30)  # nobody leaves it
    assert long.error(30) == pytest.approx(DistinctCount(30, rho).error(30), rel=1e-6)


@pytest.mark.parametrize("mechanism", ["factorised", "tree"])
def test_the_noise_of_items_is_that_of_all_changes_of_all_items(mechanism):
    rho = dc.Budget.zcdp(0.5)
    made = Histogram(365, rho, ["a", "b"], unit=dc.User(2), window=7, max_visits=3, mechanism=mechanism)
    scheme = made.scheme
    assert float(scheme.sigma) ** 2 == pytest.approx(2 * scheme.factor.sensitivity_to(6) ** 2 / (2 * 0.5), rel=1e-6)
    every = Histogram(365, BUDGET, unit=dc.User(2), window=1)
    assert isinstance(every.scheme.factor, EachTick)
    plain = Histogram(365, BUDGET, unit=dc.User(2))
    # The cut shares delta among ticks and items as without a window, for the wider noise.
    assert every.scheme._delta == plain.scheme._delta
    assert every.scheme.cut(100) > plain.scheme.cut(100)


def test_noises_of_a_tick_that_are_its_own_are_told_apart():
    """Increases between two ticks of a window have the noise of both."""
    every = DistinctCount(100, dc.Budget.zcdp(0.5), window=1, remember=5, source=seeded_source(3))
    assert isinstance(every.factor, EachTick)
    for _ in range(20):
        every.step(["a"])
    found = every.increase(15)
    assert found.lower < 0 < found.upper  # people leave a window
    assert (found.upper - found.lower) / 2 == pytest.approx(1.96 * math.sqrt(2 * 100), rel=0.02)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DistinctCount(9, BUDGET, max_visits=2), "max_visits needs a window"),
        (lambda: DistinctCount(None, BUDGET, window=2), "needs a horizon or max_visits"),
        (lambda: DistinctCount(9, BUDGET, window=0), "window must be"),
        (lambda: DistinctCount(9, BUDGET, window=2, max_visits=0), "max_visits must be"),
        (lambda: Histogram(9, BUDGET, ["a"], 1, window=2), "window and max_visits are for people"),
        (lambda: Histogram(None, BUDGET, unit=dc.User(2), window=2), "needs a horizon or max_visits"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(dc.ParameterError, match=words):
        make()


def test_the_guarantee_says_what_counts_of_a_person():
    made = Histogram(9, BUDGET, unit=dc.User(2), window=2, max_visits=1)
    assert "the first visit counts" in str(made.guarantee.assumptions)
    assert "once in all ticks" not in str(made.guarantee.assumptions)
    assert "the first 3 visits count" in str(DistinctCount(9, BUDGET, window=2, max_visits=3).guarantee.assumptions)
