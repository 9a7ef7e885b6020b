"""What is published over time, against laws of its own: `tests.reference.time_laws`.

Short runs are compared with all that may be published. Where noise is too wide for that, it is decided by the test:
every tick must be what the pages make of the same draws, and what was asked for must be wide enough for all ways in
which one event, or one person, can come. Twins: half of the noise, a cut one lower, coefficients of another horizon.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter as Counts
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.reference import naive_laws as naive
from tests.reference import time_laws as laws
from tests.reference.branches import Silent, law_of
from tests.reference.counter_laws import apart, noise

import discreet as dc
from discreet.continual import Counter, DistinctCount, Histogram, one_shot
from discreet.noise import RandomSource, seeded_source

APART = 1e-5


class Decided(Silent, RandomSource):
    """Gaussian noise from a list, in standard deviations; what was drawn and how wide it should have been is kept."""

    def __init__(self, seed, wide=1.5):
        super().__init__()
        self.generator, self.wide, self.drawn, self.sigmas = random.Random(seed), wide, [], []

    def discrete_gaussian(self, sigma, size=None):
        drawn = [round(self.generator.gauss(0, self.wide) * float(sigma)) for _ in range(size)]
        self.drawn.append(drawn)
        self.sigmas.append(Fraction(sigma))
        return np.array(drawn, np.int64)


def same(run, law, cutoff=1e-7):
    told = law_of(run, cutoff, RandomSource)
    return apart(told.mass, law) <= told.missing + APART


# ---- counters --------------------------------------------------------------------------------------------------------


def test_all_that_a_counter_publishes():
    """Three ticks of a binary tree: two levels, so sigma^2 = 2/(2 rho)."""
    for counts in ((0, 0, 0), (2, 0, 1)):

        def run(source, quieter=1, counts=counts):
            made = Counter(3, dc.Budget.zcdp(4.0), method="tree", base=2, source=source)
            made.sigma /= quieter
            return tuple(made.step(n) for n in counts)

        law = laws.tree_law(counts, 2, Fraction(1, 2))
        assert same(run, law)
        assert not same(functools.partial(run, quieter=2), law)


RHO = 0.3


@pytest.mark.parametrize(("horizon", "base"), [(1, 2), (2, None), (3, 3), (7, None), (12, 2), (12, 3)])
def test_counters_by_a_tree(horizon, base):
    source, rng = Decided(horizon), random.Random(1)
    made = Counter(horizon, dc.Budget.zcdp(RHO), method="tree", base=base, source=source)
    base = laws.best_base(horizon) if base is None else base
    totals = list(itertools.accumulate(rng.randrange(9) for _ in range(horizon)))
    told = [made.step(now - before) for now, before in zip(totals, [0, *totals], strict=False)]
    z = [drawn for (drawn,) in source.drawn]
    assert told == [total + laws.tree_noise(t, base, z) for t, total in enumerate(totals, 1)]
    other = [total + laws.tree_noise(t, base + 1, z) for t, total in enumerate(totals, 1)]
    assert told != other or horizon < 7
    moved = max(laws.tree_moved(horizon, base, np.eye(horizon, dtype=int)[s].tolist()) for s in range(horizon))
    levels = laws.tree_levels(horizon, base)
    assert moved <= levels
    for sigma in source.sigmas:
        assert levels <= 2 * RHO * sigma**2 <= levels * (1 + 1e-9)


def coefficients(factor, ticks):
    if factor.name == "square-root":
        return laws.square_root(ticks)
    return laws.buffered(factor.theta.tolist(), factor.omega.tolist(), ticks)


@pytest.mark.parametrize("method", ["square-root", "blt"])
@pytest.mark.parametrize("horizon", [1, 5, 30])
def test_counters_by_a_factor(method, horizon):
    """What roundings do is within kappa, whatever the noise was; sigma is for that and for a column of C."""
    source = Decided(horizon)
    made = Counter(horizon, dc.Budget.zcdp(RHO), method=method, size=2, max_items_per_event=2, source=source)
    factor, c = made.factor, coefficients(made.factor, horizon)
    told = np.array([made.step(np.array([t, 3])) for t in range(horizon)])
    again, state, lattice = Decided(horizon), made.factor.start(2), []
    for t in range(1, horizon + 1):
        lattice.append(factor.advance(state, t, made.sigma, again))
    z = np.array(source.drawn)
    for place, totals in enumerate(([*itertools.accumulate(range(horizon))], [3 * t for t in range(1, horizon + 1)])):
        N = [int(noises[place]) for noises in lattice]
        assert 2 * laws.rounding(c, z[:, place].tolist(), N) <= Fraction(factor.kappa)
        rounded = [total + laws.to_counts(n, factor.lattice) for total, n in zip(totals, N, strict=True)]
        assert told[:, place].tolist() == rounded
        if horizon > 1:
            other = [c[0], *(x / 2 for x in c[1:])]
            assert 2 * laws.rounding(other, z[:, place].tolist(), N) > 100 * Fraction(factor.kappa)
    moved = max(laws.largest_move(c, np.eye(horizon, dtype=int)[s].tolist()) for s in range(horizon))
    needed = laws.needed_square(moved, factor.lattice, factor.kappa, horizon, RHO, items=2)
    for sigma in source.sigmas:
        assert needed <= float(sigma) ** 2 * (1 + 1e-12)
        assert float(sigma) ** 2 <= needed * (1 + 1e-6)
    assert (
        laws.needed_square(moved, factor.lattice, 0.0, horizon, RHO, items=2) > 0.99 * needed
    )  # roundings cost little


def test_counters_of_any_number_of_ticks():
    """Of every epoch the noise of its own tree, for 3/4 of rho, and that of all epochs before, for 1/4."""
    source = Decided(2)
    made = Counter(None, dc.Budget.zcdp(RHO), method="tree", base=2, source=source)
    told, z, totals = [], {}, []
    over = []  # the noises of the tree over epochs
    of_epochs = laws.tree_levels(24, 2)
    for tick in range(1, 16):
        before = len(source.drawn)
        told.append(made.step(1))
        (*more, (own,)), sigmas = source.drawn[before:], source.sigmas[before:]
        e, first = laws.epoch(tick)
        assert len(more) == (tick == first and e > 0)
        over += [noise for (noise,) in more]
        z.setdefault(e, []).append(own)
        inside = laws.tree_noise(tick - first + 1, 2, [*z[e], *[0] * (2**e - len(z[e]))])
        totals.append(tick + inside + (laws.tree_noise(e, 2, over) if e else 0))
        levels = laws.tree_levels(2**e, 2)
        assert levels <= 2 * 0.75 * RHO * sigmas[-1] ** 2 <= levels * (1 + 1e-9)
        if more:
            assert of_epochs <= 2 * 0.25 * RHO * sigmas[0] ** 2 <= of_epochs * (1 + 1e-9)
    assert told == totals


# ---- people over time ------------------------------------------------------------------------------------------------


WINDOWS = [(5, None, None), (5, 1, None), (5, 1, 1), (6, 2, None), (6, 2, 1), (6, 3, 2)]


@pytest.mark.parametrize("method", ["tree", "square-root", "blt"])
@pytest.mark.parametrize(("horizon", "window", "visits"), WINDOWS)
def test_noise_for_all_that_a_person_can_do(horizon, window, visits, method):
    """For every way to come and go: l2 of what it moves behind the noise, in all ticks together."""
    source = Decided(7)
    made = DistinctCount(horizon, dc.Budget.zcdp(RHO), method=method, source=source, window=window, max_visits=visits)
    rng = random.Random(horizon)
    ticks = [[rng.randrange(6) for _ in range(3)] for _ in range(horizon)]
    told = [made.step(rows) for rows in ticks]
    factor, moves = made.factor, [*laws.comings_and_goings(horizon, window, visits)]
    assert any(any(change) for change in moves)
    if factor.name == "each-tick":
        N = [drawn for (drawn,) in source.drawn]
        moved = max(sum(n * n for n in itertools.accumulate(change)) for change in moves)
        needed = moved / (2 * RHO)
    elif factor.name == "tree":
        z = [drawn for (drawn,) in source.drawn]
        N = [laws.tree_noise(t, factor.base, z) for t in range(1, horizon + 1)]
        moved = max(laws.tree_moved(horizon, factor.base, change) for change in moves)
        needed = moved / (2 * RHO)
    else:
        c, again, state, N = coefficients(factor, horizon), Decided(7), factor.start(1), []
        for t in range(1, horizon + 1):
            N.append(laws.to_counts(int(factor.advance(state, t, made.sigma, again)[0]), factor.lattice))
        moved = max(laws.largest_move(c, change) for change in moves)
        needed = laws.needed_square(moved, factor.lattice, factor.kappa, horizon, RHO)
    if visits is None:
        people = laws.people_there(ticks, window)
        assert told == [n + z for n, z in zip(people, N, strict=True)]
    for sigma in source.sigmas:
        assert needed <= float(sigma) ** 2 * (1 + 1e-9)
        assert 0.15 * float(sigma) ** 2 < needed  # an upper bound of all of them is paid for, and not much more


# ---- histograms ------------------------------------------------------------------------------------------------------


def shown(release):
    return tuple(sorted(zip(release.items, (int(n) for n in release.counts), strict=True)))


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("heavy", [1, 3])
@pytest.mark.parametrize("mechanism", ["tree", "factorised"])
def test_histograms_of_known_items(most, heavy, mechanism):
    """An event moves D counters by the largest weight each."""
    source, horizon = Decided(4), 6
    options = {"mechanism": mechanism, "max_weight": heavy, "source": source}
    made = Histogram(horizon, dc.Budget.zcdp(RHO), list("abcd"), most, **options)
    told = [shown(made.step([["a"], ["b", "a"]][:t])) for t in range(1, 3)]
    factor = made.scheme.factor
    if factor.name == "tree":
        levels = laws.tree_levels(horizon, factor.base)
        needed = levels * most * heavy**2 / (2 * RHO)
        z = np.array(source.drawn)
        counts = [{"a": 1}, {"a": 2 + (most > 1), "b": 1}]  # of the second set the first D items count
        for t, release in enumerate(told, 1):
            for place, (item, n) in enumerate(release):
                assert n == counts[t - 1].get(item, 0) + laws.tree_noise(t, factor.base, z[:, place].tolist())
    else:
        c = coefficients(factor, horizon)
        moved = laws.largest_move(c, [1] + [0] * (horizon - 1))
        needed = laws.needed_square(moved, factor.lattice, factor.kappa, horizon, RHO, items=most * heavy**2)
    for sigma in source.sigmas:
        assert needed <= float(sigma) ** 2 * (1 + 1e-9) <= needed * (1 + 1e-6)


def test_all_that_is_published_of_an_item_that_comes():
    """Hidden until it passes the cut of a tick; a run whose cut is one lower, or has half of the noise, is seen."""
    budget, counts = dc.Budget(8.0, 0.1), (0, 1)

    def run(source, lower=0, quieter=1):
        made = Histogram(2, budget, None, 1, mechanism="tree", base=2, source=source)
        made.scheme.sigma /= quieter
        if lower:
            cut = type(made.scheme).cut
            made.scheme.cut = lambda tick: cut(made.scheme, tick) - lower
        told = []
        for t in range(2):
            held = counts[t] - (counts[t - 1] if t else 0)
            told.append(dict(shown(made.step([["x"]] * held))).get("x"))
        return tuple(told)

    made = Histogram(2, budget, None, 1, mechanism="tree", base=2)
    scheme = made.scheme
    law = laws.hidden_law(counts, 2, scheme.sigma, [scheme.cut(1), scheme.cut(2)])
    assert same(run, law)
    assert not same(functools.partial(run, lower=1), law)
    assert not same(functools.partial(run, quieter=2), law)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize(("horizon", "base"), [(1, 2), (3, 2), (7, 2), (8, 3)])
def test_cuts_that_hide_what_one_event_brought(horizon, base, most):
    """At every tick an item of one event is shown with delta/2 T D at most: by adding up the noises of its nodes."""
    budget = dc.Budget(1.0, 1e-4)
    made = Histogram(horizon, budget, None, most, mechanism="tree", base=base)
    sigma, share = made.scheme.sigma, budget.delta / 2 / (horizon * most)
    chances = [
        laws.sum_tail(sigma, len(laws.tree_nodes(t, base)), made.scheme.cut(t) - 1) for t in range(1, horizon + 1)
    ]
    assert max(chances) <= share
    # The cut of every tick is that of (r - 1) L nodes, the most there are at any tick of any horizon of L levels.
    widest = (base - 1) * laws.tree_levels(horizon, base)
    assert laws.sum_tail(sigma, widest, made.scheme.cut(1) - 1) <= share
    assert laws.sum_tail(sigma, widest, made.scheme.cut(1) - 2) > share * (1 - 1e-6)


# ---- choices, draw by draw -------------------------------------------------------------------------------------------


def test_choices_by_scores():
    """40,000 seeded choices of the compiled source have the odds, and not those of an epsilon 10 % larger."""
    scores, epsilon, count = {0: 0, 1: 1, 2: 3, 3: -2}, Fraction(6, 5), 40_000
    source = seeded_source(9)
    seen = Counts(
        tuple(int(x) for x in source.exponential_mechanism(np.array([*scores.values()]), epsilon, 1, k=2))
        for _ in range(count)
    )
    blocks = Counts(
        source.choose_in_blocks(
            np.array([0.0, 1.0]), np.array([2, 2]), lambda block, place: Fraction(3 * block + place, 2)
        )
        for _ in range(count // 4)
    )
    for rate, right in ((0.6, True), (0.66, False)):
        law = laws.choices_law(scores, 2, rate)
        expected = [law[key] * count for key in sorted(law)]
        assert bool(chisquare([seen[key] for key in sorted(law)], expected).pvalue > 1e-4) is right
    for rate, right in ((1.0, True), (1.15, False)):
        places = {(block, place): -(3 * block + place) / 2 for block in (0, 1) for place in (0, 1)}
        law = laws.choices_law(places, 1, rate)
        expected = [law[key] * (count // 4) for key in sorted(law)]
        assert bool(chisquare([blocks[key] for (key,) in sorted(law)], expected).pvalue > 1e-4) is right


# ---- one release of a histogram, and trees of them -------------------------------------------------------------------

COUNTS = {"a": 3, "b": 1, "c": 0}
NAMES = [*COUNTS]
ARRAY = np.array([*COUNTS.values()])


def named(published):
    where, noisy = published
    return tuple(sorted((NAMES[place], int(n)) for place, n in zip(where, noisy, strict=True)))


def test_one_release():
    half, rank = Fraction(1, 2), lambda: np.arange(3)
    cases = [
        (lambda src, s: one_shot.known_gauss(ARRAY, s, src), laws.known_gauss(COUNTS, half)),
        (lambda src, s: one_shot.known_gumbel(ARRAY, 1, s, src), laws.known_gumbel(COUNTS, 1, half)),
        (lambda src, s: one_shot.known_gumbel(ARRAY, 2, s * 4, src), laws.known_gumbel(COUNTS, 2, Fraction(2))),
        *(
            (
                lambda src, s, limit=limit: one_shot.unknown_noisy(ARRAY, src.discrete_laplace, s, 1, limit, rank),
                laws.unknown_noisy(COUNTS, "laplace", half, 1, limit),
            )
            for limit in (None, 1)
        ),
        (
            lambda src, s: one_shot.unknown_noisy(ARRAY, src.discrete_gaussian, s, 0, None, rank),
            laws.unknown_noisy(COUNTS, "gaussian", half, 0, None),
        ),
        *(
            (
                lambda src, s, k=k, limit=limit: one_shot.unknown_gumbel(ARRAY, k, 2 * s, 1, limit, rank, src),
                laws.unknown_gumbel(COUNTS, k, Fraction(1), 1, limit),
            )
            for k, limit in ((1, 1), (2, 3))
        ),
    ]
    for release, law in cases:
        assert same(lambda source, release=release: named(release(source, half)), law)
        assert not same(lambda source, release=release: named(release(source, half / 2)), law)


TICKS = [["x"], [], ["x"]]
HELD = [{"x": 1}, {}, {"x": 1}]


def test_trees_of_releases():
    """All of three ticks together, of a known item: each event is in two nodes, so rho = 2 D/(2 sigma^2)."""
    known = lambda counts, sigma: laws.known_gauss({"x": counts.get("x", 0)}, sigma)  # noqa: E731
    chosen = lambda counts, tau: laws.known_gumbel({"x": counts.get("x", 0)}, 1, tau)  # noqa: E731
    for given, numbers, release in (({"max_items_per_event": 1}, 1, known), ({"k": 1}, 2, chosen)):
        rho = laws.tree_levels(3, 2) * numbers / 2  # for sigma = 1

        def run(source, given=given, rho=rho):
            made = Histogram(3, dc.Budget.zcdp(rho), ["x"], base=2, mechanism="meta", source=source, **given)
            return tuple(shown(made.step([[item] for item in rows])) for rows in TICKS)

        for sigma, right in ((Fraction(1), True), (Fraction(1, 2), False)):
            law = laws.tree_of_releases(HELD, 2, lambda counts, r=release, sigma=sigma: r(counts, sigma))
            assert same(run, law, 1e-8) is right


@pytest.mark.parametrize("mechanism", ["meta", "limit"])
def test_trees_of_releases_of_items_that_come(mechanism):
    """Each of L nodes has delta/2 L D (or its part of the composition) for an item of one event."""
    budget, most = dc.Budget(30.0, 0.2) if mechanism == "meta" else dc.Budget(6.0, 0.1), 1
    asked = []

    class Asked(Silent, RandomSource):
        def _note(self, law, scale, size, value=0):
            asked.append((law, Fraction(scale), 1 if size is None else size))
            return super()._note(law, scale, size, value)

    made = Histogram(3, budget, None, most, base=2, mechanism=mechanism, source=Asked())
    for rows in TICKS:
        made.step([[item] for item in rows])
    ((law, scale),), levels = {(law, scale) for law, scale, _ in asked}, laws.tree_levels(3, 2)

    def run(source):
        made = Histogram(3, budget, None, most, base=2, mechanism=mechanism, source=source)
        return tuple(shown(made.step([[item] for item in rows])) for rows in TICKS[:2])

    told = law_of(run, 1e-6, RandomSource)

    def shifted_by(shift):
        law_of_ticks = laws.tree_of_releases(
            HELD[:2], 2, lambda counts: laws.unknown_noisy(counts, law, scale, shift, None)
        )
        return apart(told.mass, law_of_ticks) <= told.missing + APART

    (shift,) = [shift for shift in range(1, 12) if shifted_by(shift)]
    if mechanism == "meta":
        assert law == "gaussian"
        rho = budget.as_zcdp("", 0.5)
        assert levels * most <= 2 * rho * float(scale) ** 2 * (1 + 1e-9)
        assert scale == 1 or 2 * rho * float(scale) ** 2 <= levels * most * (1 + 1e-9)
        allowed = budget.delta / 2 / (levels * most)
        assert passes(law, scale, shift) <= allowed < passes(law, scale, shift - 1)
    else:
        assert law == "laplace"
        each = most / scale
        spent = [naive.repeated(each, most * passes(law, scale, s), levels, budget.epsilon) for s in (shift, shift - 1)]
        assert spent[0] <= budget.delta
        assert spent[1] > 0.5 * budget.delta
        quiet = most / (scale / 2)
        assert naive.repeated(quiet, most * passes(law, scale, shift), levels, budget.epsilon) > budget.delta


def passes(law, scale, shift):
    """P[Z - Z' >= shift]."""
    table = noise(law, scale)
    return math.fsum(p * q for (a, p), (b, q) in itertools.product(table.items(), repeat=2) if a - b >= shift)


@pytest.mark.parametrize("probability", [1e-3, 1e-7])
def test_shifts_are_the_least_that_hide_what_one_release_has_alone(probability):
    for scale in (Fraction(1), Fraction(7, 3)):
        shift = one_shot.laplace_shift(scale, probability)
        assert passes("laplace", scale, shift) <= probability < passes("laplace", scale, shift - 1)
        shift = one_shot.gauss_shift(scale, probability)
        assert passes("gaussian", scale, shift) <= probability < passes("gaussian", scale, shift - 1)
        for items in (1, 7):
            shift = one_shot.gumbel_shift(scale, probability, items)
            chances = [laws.ahead_of_the_stop(items, each, scale) for each in (shift, shift - 1)]
            assert chances[0] <= probability * (1 + 1e-9) < chances[1] * (1 + 2e-9)


# ---- sparse ----------------------------------------------------------------------------------------------------------


class Chosen(Silent, RandomSource):
    """Choices and Laplace noise from a seed; no Gaussian noise. What was asked for is kept."""

    def __init__(self, seed):
        super().__init__()
        self.generator, self.laplace, self.rates, self.picks, self.noises = random.Random(seed), [], [], [], []

    def discrete_laplace(self, scale, size=None):
        drawn = [round(self.generator.gauss(0, 3)) for _ in range(size)]
        self.laplace.append(Fraction(scale))
        self.noises.append(drawn)
        return np.array(drawn, np.int64)

    def exponential_mechanism(self, scores, epsilon, sensitivity=1, k=1):
        self.rates.append(Fraction(epsilon))
        self.picks.append(self.generator.sample(range(len(scores)), k))
        return np.array(self.picks[-1], np.int64)


@pytest.mark.parametrize(("k", "switches"), [(1, 0), (1, 1), (2, 1), (1, 3)])
def test_the_top_that_is_chosen_again(k, switches):
    """What every tick shows for the same draws, and how wide each of them was: 150 runs of eight ticks."""
    rho, margin, changed = 0.5, 2, 0
    for seed in range(150):
        rng, source = random.Random(1000 + seed), Chosen(seed)
        options = {"mechanism": "sparse", "switches": switches, "margin": margin, "source": source}
        made = Histogram(8, dc.Budget.zcdp(rho), list("abcd"), None, k, **options)
        totals, told, counts = [], [], dict.fromkeys("abcd", 0)
        for _ in range(8):
            rows = [[item] for item in "abcd" for _ in range(rng.randrange(4))]
            for (item,) in rows:
                counts[item] += 1
            totals.append(dict(counts))
            told.append(dict(shown(made.step(rows))))
        picks, noises = iter(source.picks), iter(source.noises)
        exact = laws.sparse_run(
            totals, switches, margin,
            lambda counts, picks=picks: ["abcd"[place] for place in next(picks)],
            lambda t, top, counts: [counts[x] for x in top],
            lambda noises=noises: next(noises)[0],
            lambda others, noises=noises: next(noises),
        )  # fmt: skip
        assert told == exact
        assert next(picks, None) is next(noises, None) is None  # nothing else was drawn
        changed += len(source.picks) > 1
        tau1, tau2 = laws.sparse_scales(rho, k, switches)
        assert {round(float(scale), 6) for scale in source.laplace} <= {round(2 * tau1, 6), round(4 * tau1, 6)}
        assert source.laplace[0] == pytest.approx(2 * tau1)
        assert all(rate == pytest.approx(4 / tau2, rel=1e-9) for rate in source.rates)
        assert 1 <= len(source.picks) <= switches + 1
        factor = made.scheme.factor
        each = 1 / (2 * tau2**2)  # rho of one counter, of which there are (s + 1) k
        c = [1] if factor.name == "tree" else coefficients(factor, 8)
        moved = laws.tree_levels(8, factor.base) if factor.name == "tree" else laws.largest_move(c, [1, *[0] * 7])
        kappa = 0.0 if factor.name == "tree" else factor.kappa
        needed = laws.needed_square(moved, factor.lattice, kappa, 8, each)
        assert needed <= float(made.scheme.sigma) ** 2 * (1 + 1e-9) <= needed * (1 + 1e-6)
    assert changed > 50 or not switches
