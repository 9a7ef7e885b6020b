"""People over time: what all rows of one person change, and the exact loss of it, on tiny streams by the shipped code.

What docs/privacy/people-over-time.md claims is looked at for all tiny streams: how many counts a person moves and by
how much; how likely an item that only this person has is to be shown; and the exact hockey-stick divergence of all
that is published. Wrong versions of each must be caught.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dc
from discreet.continual import DistinctCount, Histogram
from discreet.continual._people import PeopleSeen as People
from discreet.continual._schemes import Hidden

BUDGET = dc.Budget(2.0, 0.1)
T = 3


class Silence:
    seeded = True

    def discrete_gaussian(self, sigma, size=None):
        return 0 if size is None else np.zeros(size, np.int64)


# ---- what a person changes -------------------------------------------------------------------------------------------


def increments(made, ticks):
    """What each tick adds to each item, as the shipped code counts it."""
    out = {}
    for t, rows in enumerate(ticks):
        made.step([item for _, item in rows], users=[user for user, _ in rows])
        for item, total in zip(made._items, made._total.tolist(), strict=True):
            before = sum(out.get((item, s), 0) for s in range(t))
            if total > before:
                out[item, t] = total - before
    return out


def streams():
    """All streams of four rows in two ticks, two or three of them of p."""
    rows = [("p", "a"), ("p", "b"), ("p", "c"), ("q", "a"), ("q", "b")]
    for chosen in itertools.product(rows, repeat=4):
        if sum(user == "p" for user, _ in chosen) in (2, 3):
            yield from ((chosen[:cut], chosen[cut:]) for cut in (0, 2))


def without(ticks, user):
    return tuple(tuple(row for row in rows if row[0] != user) for rows in ticks)


def change(make, ticks, known):
    """(entries that differ, their largest change, the most entries of one item) when p goes."""
    for stream in (ticks, without(ticks, "p")):
        if stream not in known:
            known[stream] = increments(make(), stream)
    one, two = known[ticks], known[without(ticks, "p")]
    moved = {key: one.get(key, 0) - two.get(key, 0) for key in {*one, *two} if one.get(key, 0) != two.get(key, 0)}
    items = [item for item, _ in moved]
    return len(moved), max(map(abs, moved.values()), default=0), max(map(items.count, items), default=0)


def histogram_of(most, domain=("a", "b", "c")):
    made = Histogram(2, BUDGET, domain, mechanism="tree", unit=dc.User(most), source=Silence())
    return lambda: Histogram.from_bytes(made.to_bytes(), source=Silence())


@pytest.mark.parametrize("most", [1, 2])
def test_all_rows_of_a_person_move_at_most_m_counts_by_one(most):
    known, make = {}, histogram_of(most)
    changes = {change(make, ticks, known) for ticks in streams()}
    assert {entries for entries, _, _ in changes} == set(range(1, most + 1))
    assert max(by for _, by, _ in changes) == 1
    assert max(often for _, _, often in changes) == 1


def twice_an_item(self, people, items):
    rows = np.flatnonzero((people >= 0) & (items >= 0))
    return people[rows], items[rows]


def a_batch_at_a_time(self, people, items):
    fresh = People(self.most)
    fresh._ids = self._ids
    return FRESH(fresh, people, items)


def first_of_all(self, people, items):
    """The first rows of the tick, whoever they are of."""
    owners, held = FRESH(self, people, items)
    return owners[: self.most], held[: self.most]


FRESH = People.fresh


@pytest.mark.parametrize("wrong", [twice_an_item, a_batch_at_a_time, first_of_all])
def test_wrong_ways_to_bound_are_caught(monkeypatch, wrong):
    make, known = histogram_of(1), {}
    monkeypatch.setattr(People, "fresh", wrong)
    monkeypatch.setattr(People, "take", lambda self, people, items: None)
    assert any(max(change(make, ticks, known)) > 1 for ticks in streams())


def test_a_person_more_is_one_more_from_one_tick_on():
    made = DistinctCount(2, BUDGET, method="tree", source=Silence())
    state, known = made.to_bytes(), {}

    def published(ticks):
        if ticks not in known:
            counter = DistinctCount.from_bytes(state, source=Silence())
            known[ticks] = [counter.step([user for user, _ in rows]) for rows in ticks]
        return known[ticks]

    moved = set()
    for ticks in streams():
        one, two = published(ticks), published(without(ticks, "p"))
        moved.add(tuple(a - b for a, b in zip(one, two, strict=True)))
    assert moved == {(0, 1), (1, 1)}


# ---- the exact loss --------------------------------------------------------------------------------------------------


class Grid:
    """All noises that T ticks can draw, each item of a step standing for one of them."""

    def __init__(self, sigma):
        reach = math.ceil(7 * sigma)
        z = np.arange(-reach, reach + 1)
        each = np.exp(-(z**2) / (2 * sigma**2))
        each /= each.sum()
        self.values = [part.ravel() for part in np.meshgrid(*[z] * T, indexing="ij")]
        self.weights = np.ones(1)
        for _ in range(T):
            self.weights = np.outer(self.weights, each).ravel()
        self.drawn = 0

    def discrete_gaussian(self, sigma, size):
        if self.drawn == T or size == 0:
            return np.zeros(size, np.int64)
        self.drawn += 1
        return self.values[self.drawn - 1]


HIDDEN = -(10**6)


def outcomes(scheme, sigma, counts, since):
    """(what is shown at every tick, its probability) of an item with these counts that is there from a tick on."""
    grid = Grid(float(sigma))
    size = len(grid.weights)
    scheme.state = scheme.factor.start(size)
    if isinstance(scheme, Hidden):
        scheme.shown = np.zeros(size, np.int64)
    seen = np.full((T, size), HIDDEN)
    for t in range(T):
        total = np.full(size, counts[t])
        where, noisy = scheme.step(total, total, t + 1, None, SimpleNamespace(discrete_gaussian=grid.discrete_gaussian))
        if t + 1 >= since:
            seen[t, where] = noisy
    return seen, grid.weights


def laws(scheme, sigma, one, two):
    """The two laws of one item over the outcomes of both, for (counts, since) in each stream."""
    (seen, p), (other, q) = outcomes(scheme, sigma, *one), outcomes(scheme, sigma, *two)
    both = np.concatenate([seen, other], axis=1)
    _, place = np.unique(both, axis=1, return_inverse=True)
    place = place.ravel()
    n = place.max() + 1
    return np.bincount(place[: len(p)], p, n), np.bincount(place[len(p) :], q, n)


def joint_delta(pairs, epsilon):
    """The hockey-stick divergence of independent items: max over both directions, exactly."""
    return max(_delta(pairs, epsilon), _delta([(q, p) for p, q in pairs], epsilon))


def _delta(pairs, epsilon):
    p, q = pairs[0]
    if len(pairs) == 1:
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
    p2, q2 = pairs[1]
    for p3, q3 in pairs[2:]:
        p2, q2 = np.outer(p2, p3).ravel(), np.outer(q2, q3).ravel()
    # sum over outcomes of the second of p2 * sum max(p - a q, 0), a = e^epsilon q2/p2: sorted ratios make it a lookup.
    with np.errstate(divide="ignore"):
        ratio, a = np.where(q > 0, p / np.where(q > 0, q, 1), np.inf), math.exp(epsilon) * q2 / np.where(p2 > 0, p2, 1)
    order = np.argsort(-ratio)
    tops = np.concatenate([[0.0], np.cumsum(p[order])]), np.concatenate([[0.0], np.cumsum(q[order])])
    k = np.searchsorted(-ratio[order], -a, side="left")
    there = p2 > 0
    return float((p2 * (tops[0][k] - a * tops[1][k]))[there].sum())


def item_cases(known):
    """((counts, since) with the person, without) for an item that the person brings at tick s."""
    never = T + 1
    for s in range(1, T + 1):
        mine = np.array([int(t >= s) for t in range(1, T + 1)])
        high = np.full(T, 60)
        yield (mine + high, 1), (high, 1)
        if known:
            yield (mine, 1), (np.zeros(T, int), 1)
            continue
        yield (mine, s), (np.zeros(T, int), never)
        for r in range(s, T + 1):  # somebody else brings it as well
            others = np.array([int(t >= r) for t in range(1, T + 1)])
            yield (mine + others, s), (others, r)


def worst_delta(made, most, **change):
    scheme = made._scheme
    for name, value in change.items():
        setattr(scheme, name, value)
    cases = [laws(scheme, scheme.sigma, one, two) for one, two in item_cases(made._domain is not None)]
    return max(
        joint_delta(list(chosen), BUDGET.epsilon) for chosen in itertools.combinations_with_replacement(cases, most)
    )


@pytest.mark.parametrize("domain", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("most", [1, 2])
def test_the_exact_loss_is_within_the_budget_and_half_the_noise_is_not(domain, most):
    made = Histogram(T, BUDGET, domain, mechanism="tree", base=2, unit=dc.User(most))
    assert worst_delta(made, most) <= BUDGET.delta
    half = made._scheme.sigma / 2
    assert worst_delta(made, most, sigma=half) > BUDGET.delta


def window_cases(known, window, visits):
    """The same for an item that the person has in a window, for all rows that they may have."""
    never, high = T + 1, np.full(T, 60)
    for rows in itertools.product((0, 1), repeat=T):
        inside = [any(rows[max(0, t - window + 1) : t + 1]) for t in range(T)]
        visit = np.cumsum([now and not before for before, now in zip([False, *inside], inside, strict=False)])
        mine = np.array([int(now and (visits is None or n <= visits)) for now, n in zip(inside, visit, strict=True)])
        if not mine.any():
            continue
        since = 1 + rows.index(1)
        yield (mine + high, 1), (high, 1)
        if known:
            yield (mine, 1), (np.zeros(T, int), 1)
            continue
        yield (mine, since), (np.zeros(T, int), never)
        for r in range(since, T + 1):  # somebody else brings it as well, and leaves the window at the end
            others = np.array([int(r <= t < r + window) for t in range(1, T + 1)])
            yield (mine + others, since), (others, r)


@pytest.mark.parametrize("domain", [None, ["a", "b", "c"]])
@pytest.mark.parametrize(("window", "visits", "changes"), [(1, None, 3), (1, 1, 2), (2, None, 2), (3, None, 1)])
def test_the_exact_loss_of_people_in_a_window_is_within_the_budget(domain, window, visits, changes):
    """And not with the noise of people who never leave, where they do."""
    made = Histogram(T, BUDGET, domain, mechanism="tree", base=2, unit=dc.User(1), window=window, max_visits=visits)
    assert made.changes == changes
    scheme, cases = made.scheme, list(window_cases(domain is not None, window, visits))

    def worst():
        return max(joint_delta([laws(scheme, scheme.sigma, one, two)], BUDGET.epsilon) for one, two in cases)

    assert worst() <= BUDGET.delta
    scheme.sigma = Histogram(T, BUDGET, domain, mechanism="tree", base=2, unit=dc.User(1)).scheme.sigma
    if changes == 3 and domain is not None:  # else half of delta is for hidden items
        assert worst() > BUDGET.delta
    scheme.sigma /= 2
    assert worst() > BUDGET.delta


def test_noise_anew_at_every_tick_hides_whoever_is_in_all_windows():
    made = Histogram(T, BUDGET, ["a", "b"], unit=dc.User(1), window=1)
    assert made.scheme.factor.name == "each-tick"
    cases = list(window_cases(True, 1, None))

    def worst():
        return max(joint_delta([laws(made.scheme, made.scheme.sigma, *case)], BUDGET.epsilon) for case in cases)

    assert worst() <= BUDGET.delta
    made.scheme.sigma *= 0.6  # for one tick
    assert worst() > BUDGET.delta


def test_noise_for_one_item_does_not_hide_four():
    """m ignored in the noise, over a known domain: the divergence of four items, all at the first tick."""
    for most, within in ((4, True), (1, False)):
        made = Histogram(T, BUDGET, list("abcd"), mechanism="tree", base=2, unit=dc.User(most))
        p, q = laws(made._scheme, made._scheme.sigma, *next(item_cases(True)))
        one = p, q = _by_loss(p, q)
        for _ in range(3):
            p, q = _by_loss(np.outer(p, one[0]).ravel(), np.outer(q, one[1]).ravel())
        assert (_delta([(p, q)], BUDGET.epsilon) <= BUDGET.delta) is within


def _by_loss(p, q):
    """Outcomes of one loss as one: losses of discrete Gaussians have few values."""
    p, q = p[p > 1e-30], q[p > 1e-30]
    _, place = np.unique(np.round(np.log(p / np.maximum(q, 1e-300)), 9), return_inverse=True)
    return np.bincount(place.ravel(), p), np.bincount(place.ravel(), q)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_an_item_of_one_person_is_shown_with_its_share_of_delta(most, keep):
    """At every tick P[1 + N_t >= cut] <= delta/2 / (T m), and not with a cut one lower or for another m."""
    made = Histogram(T, BUDGET, mechanism="tree", base=2, unit=dc.User(most), keep_discovered=keep)
    scheme, share = made._scheme, BUDGET.delta / 2 / (T * most)

    def shown(lower=0, delta=scheme._delta):
        scheme._delta = delta
        cut = type(scheme).cut
        scheme.cut = lambda tick: cut(scheme, tick) - lower
        seen, weights = outcomes(scheme, scheme.sigma, np.ones(T, int), 1)
        del scheme.cut
        if keep:  # once shown it stays: the first time counts
            seen[1:][seen[:-1] != HIDDEN] = HIDDEN
        return [float(weights[row != HIDDEN].sum()) for row in seen]

    right = shown()
    assert max(right) <= share * (1 + 1e-9)
    assert sum(right) * most <= BUDGET.delta / 2
    assert max(shown(lower=1)) > share
    if most == 5:
        assert max(shown(delta=BUDGET.delta / 2)) > share
