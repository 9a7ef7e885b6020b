"""Releases of counters, entries and cells against laws of their own: `tests.reference.counter_laws`.

Cuts and scales must be those that the naive law has for the budget, and for tiny inputs all that is shown must have the
naive law, to what was left out. Each twin (half the noise, a cut one lower, a sensitivity of the paper) must not.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference import counter_laws as laws
from tests.reference import naive_laws as naive
from tests.reference.branches import law_of, shown
from tests.reference.misra_gries import misra_gries, stored
from tests.reference.oracles import ListedCounts
from tests.reference.sabotage import cut_one_lower, half_the_noise, sabotaged
from tests.reference.space_saving import space_saving
from tests.reference.user_misra_gries import user_misra_gries

import discreet as dc
from discreet.central import (
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    Merged,
    Offset,
    ReducedMisraGries,
    ShardedOffset,
    Stability,
    Summed,
    UserSketch,
)
from discreet.published import (
    ChanMisraGries,
    GaussianSparseHistogram,
    OracleHeavyHitters,
    PrivateSpaceSaving,
    TextbookMisraGries,
    TrackedOracle,
)

APART = 1e-5
BUDGETS = [dc.Budget(1.0, 1e-6), dc.Budget(0.3, 1e-9), dc.Budget(4.0, 0.01)]
GIVEN = (0, 0, 0, 1, 0, 0, 2, 0, 0)  # of one or two counters: decrements, and a count around the cuts


def around(made, *others):
    """As many zeros as the cut is, and these items, one of them early."""
    return (0, *others[:1], *[0] * (math.ceil(made.threshold) - 1 + (len(others) > 0)), *others[1:])


def law_shown(mechanism, summary, cutoff=1e-8):
    return law_of(lambda source: shown(mechanism.draw(summary, source)), cutoff)


def same(mechanism, summary, law):
    """Whether what the code shows has this law."""
    told = law_shown(mechanism, summary)
    return laws.apart(told.mass, law) <= told.missing + APART


def fed(summary, stream):
    summary.update(np.array(stream, np.int64))
    return summary


def check(mechanism, summary, law, twins):
    assert same(mechanism, summary, law)
    for twin in twins:
        assert not same(twin, summary, law)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_cuts_of_sketches_are_the_least_that_hide_what_one_of_them_has_alone(budget):
    e, d = budget.epsilon, budget.delta
    for m in (1, 3):
        unit = dc.Event() if m == 1 else dc.User(m)
        offset = Offset(budget, 64, unit=unit)
        assert offset.threshold == ShardedOffset(budget, 64, 2, unit=unit).threshold == laws.offset_cut(e, d, m)
        assert laws.offset_cut(e, d / 100, m) > offset.threshold
        for k in (1, 64):
            textbook = TextbookMisraGries(budget, k, unit=unit)
            assert textbook.threshold == laws.textbook_cut(e, d, k, m)
            saving = PrivateSpaceSaving(budget, k, unit=unit, stream_length=1000)
            assert saving.threshold == laws.space_saving_cut(e, d, 1000, k, m)
            assert offset.scale == textbook.scale == saving.scale == m / Fraction(e)
            reduced = ReducedMisraGries(budget, k, unit=unit)
            assert reduced.cut == Summed(budget, k, unit=unit, sketches=5).cut == laws.reduced_cut(e, d, k, m)
    assert ChanMisraGries(budget, 64).cut == laws.chan_cut(e, d, 64)


def test_the_cut_above_a_noisy_length():
    for budget, k in itertools.product([dc.Budget(1.0, 1e-6), dc.Budget(4.0, 0.01)], (1, 16)):
        made = PrivateSpaceSaving(budget, k, stream_length="noisy", length_share=0.25)
        e = budget.epsilon
        assert made.threshold == laws.space_saving_noisy_cut(0.75 * e, 0.25 * e, budget.delta, k)
        assert made.threshold < laws.space_saving_noisy_cut(0.75 * e, 0.25 * e, budget.delta / 4, k)


def test_the_textbook_release():
    made = TextbookMisraGries(dc.Budget(4.0, 0.2), 1)
    stream = around(made, 1)
    counters = stored(misra_gries(stream, 1))
    law = laws.textbook_law(counters, Fraction(4), laws.textbook_cut(4.0, 0.2, 1))
    check(made, fed(dc.MisraGries(1, seed=1), stream), law, [half_the_noise(made), cut_one_lower(made)])


@pytest.mark.parametrize("length", [9, "noisy"])
def test_the_space_saving_release(length):
    made = PrivateSpaceSaving(dc.Budget(5.0, 0.2), 2, stream_length=length, length_share=0.2)
    counters = space_saving(GIVEN, 2).C
    if length == "noisy":
        cut = laws.space_saving_noisy_cut(4.0, 1.0, 0.2, 2)
        law = laws.space_saving_noisy_law(counters, len(GIVEN), 2, (Fraction(1, 4), Fraction(1)), cut)
    else:
        law = laws.noise_for_each_law(counters, "laplace", Fraction(1, 5), laws.space_saving_cut(5.0, 0.2, 9, 2))
    summary = fed(dc.SpaceSaving(2, seed=1), GIVEN)
    check(made, summary, law, [half_the_noise(made), cut_one_lower(made)])


def test_the_gaussian_sparse_histogram():
    """[LT] Theorem 23 for one counter, and for people with two items, whose counts rise together."""
    for k in (1, 2):
        made = GaussianSparseHistogram(dc.Budget(3.0, 0.05), k)
        law = naive.gaussian(made.scale)
        worst = naive.stability_delta(law, made.threshold, 3.0, items=k)
        assert 0.5 * 0.05 < worst <= 0.05 * (1 + 1e-9)
        assert naive.stability_delta(naive.gaussian(made.scale / 2), made.threshold, 3.0, items=k) > 0.05
        assert naive.stability_delta(law, made.threshold - 1, 3.0, items=k) > 0.05
        told = laws.noise_for_each_law(stored(misra_gries(GIVEN, k)), "gaussian", made.scale, made.threshold)
        check(made, fed(dc.MisraGries(k, seed=1), GIVEN), told, [half_the_noise(made), cut_one_lower(made)])


def test_shards_publish_what_their_offset_releases_do():
    made = ShardedOffset(dc.Budget(4.0, 0.2), capacity=1, shards=2)
    summary = dc.ShardedMisraGries(1, 2, seed=7)
    items = [next(x for x in range(40) if summary.shard_of(x) == shard) for shard in range(2)]
    other = next(x for x in range(40) if summary.shard_of(x) == 0 and x not in items)
    stream = [items[0]] * 3 + [other, items[1], items[1]]
    sketches = [misra_gries([x for x in stream if summary.shard_of(x) == shard], 1) for shard in range(2)]
    counters = [(stored(sketch), sketch.decrements) for sketch in sketches]
    law = laws.sharded_law(counters, Fraction(4), laws.offset_cut(4.0, 0.2))
    check(made, fed(summary, stream), law, [half_the_noise(made), cut_one_lower(made)])
    # Decrements of the other shard are not to be seen in an offset.
    moved = laws.sharded_law([counters[0], (counters[1][0], 1)], Fraction(4), laws.offset_cut(4.0, 0.2))
    assert laws.apart(law, moved) > 0.5


# ---- entries ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
def test_what_an_event_moves_in_reduced_entries(k):
    l1, l2 = laws.reduced_moves(k)
    made = ReducedMisraGries(dc.Budget(1.0), k, universe=range(4))
    assert (made.sensitivity, made.squared_sensitivity) == (l1, l2)
    assert made.scale == Summed(dc.Budget(1.0), k, universe=range(4), sketches=3).scale == l1
    quiet = Fraction(ReducedMisraGries(dc.Budget.zcdp(0.125), k, universe=range(4)).scale)
    assert Fraction(l2) <= 2 * quiet**2 * Fraction(1, 8) <= Fraction(l2) * (1 + Fraction(1, 10**6))
    assert made.scale < 2 * k + 1  # of the paper's proof, which has a sign wrong


LISTED = [dc.Budget(6.0), dc.Budget.zcdp(2.0)]


@pytest.mark.parametrize("budget", LISTED, ids=str)
@pytest.mark.parametrize("kind", [ReducedMisraGries, ChanMisraGries, Summed])
def test_entries_over_a_list(kind, budget):
    """A public cut and the largest: all of it as noise on every item would have it."""
    k, more = (1, {"sketches": 2}) if kind is Summed else (1, {})
    made = kind(budget, k, universe=range(3), spurious=0.3, **more)
    law, scale = ("laplace", Fraction(1, 6)) if budget.rho is None else ("gaussian", Fraction(1, 2))
    assert scale <= made.scale <= scale * (1 + Fraction(1, 10**9))
    unit = 1 if kind is ChanMisraGries else k + 1
    for streams in ([GIVEN[:5], GIVEN[3:6]], [(), ()]):
        streams = streams if kind is Summed else streams[:1]
        summaries = [fed(dc.MisraGries(k, seed=1), stream) for stream in streams]
        counters = [stored(misra_gries(stream, k)) for stream in streams]
        entries = counters[0] if kind is ChanMisraGries else laws.summed(counters, k)
        told = laws.listed_law(entries, range(3), law, scale, made.cut, k * len(streams), unit)
        given = summaries if kind is Summed else summaries[0]
        twins = [half_the_noise(made), cut_one_lower(made)]  # a large entry does not show the second
        check(made, given, told, twins if streams[0] == () else [])


def test_entries_behind_a_cut_are_rounded_first():
    budget = dc.Budget(6.0, 0.2)
    made = ReducedMisraGries(budget, 2)
    D = 3
    for stream in ((0, 1), (0, 0, 1), (1, 0, 0, 1, 1)):
        entries = laws.reduced(stored(misra_gries(stream, 2)), 2)
        law = laws.reduced_law(entries, D, Fraction(D, 6), laws.reduced_cut(6.0, 0.2, 2), 3)
        assert same(made, fed(dc.MisraGries(2, seed=1), stream), law)
    summary = fed(dc.MisraGries(2, seed=1), (0, 0, 0, 0))
    law = laws.reduced_law({0: 8}, D, Fraction(D, 6), laws.reduced_cut(6.0, 0.2, 2), 3)
    check(made, summary, law, [half_the_noise(made), cut_one_lower(made)])
    as_they_are = sabotaged(made)
    type(as_they_are).before_noise = lambda self, entries, source: entries
    few = fed(dc.MisraGries(2, seed=1), (0, 1))
    check(made, few, laws.reduced_law({0: 1, 1: 1}, D, Fraction(D, 6), made.cut, 3), [as_they_are])


def test_the_baseline_behind_a_cut():
    made = ChanMisraGries(dc.Budget(6.0, 0.2), 2)
    law = laws.noise_for_each_law({0: 3, 1: 1}, "laplace", Fraction(2, 6), laws.chan_cut(6.0, 0.2, 2))
    check(made, fed(dc.MisraGries(2, seed=1), (0, 0, 0, 1)), law, [half_the_noise(made), cut_one_lower(made)])


# ---- noise that counters share ---------------------------------------------------------------------------------------


def test_noise_that_counters_share_is_shown_in_half_counts():
    budget = dc.Budget(4.0, 0.1)
    for made in (Merged(budget, 1), UserSketch(budget, 1, dc.User(1))):
        stream = around(made, 1)
        if isinstance(made, UserSketch):
            summary, counters = dc.UserMisraGries(1, 1, seed=1), user_misra_gries([{x} for x in stream], 1).c
            summary.update([[x] for x in stream])
        else:
            summary, counters = fed(dc.MisraGries(1, seed=1), stream), stored(misra_gries(stream, 1))
        law = laws.common_noise_law(counters, made.scale, made.shared_scale, made.threshold)
        check(made, summary, law, [half_the_noise(made), cut_one_lower(made)])


@pytest.mark.parametrize("k", [1, 2])
def test_noise_that_counters_share_hides_a_step_of_all_of_them(k):
    budget = dc.Budget(3.0, 0.05)
    made = UserSketch(budget, k, dc.User(k))
    sigmas = made.scale, made.shared_scale
    assert (*sigmas, made.threshold) == (Merged(budget, k).scale, Merged(budget, k).shared_scale, made.threshold)
    assert 0.9 * budget.delta < laws.common_noise_delta(k, *sigmas, made.threshold, 3.0) <= budget.delta * (1 + 1e-9)
    assert laws.common_noise_delta(k, *sigmas, made.threshold - 1, 3.0) > budget.delta
    assert laws.common_noise_delta(k, *(s / 2 for s in sigmas), made.threshold, 3.0) > 2 * budget.delta


# ---- cells -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["smallest", "median"])
def test_estimates_from_noisy_cells(kind):
    sketch, mechanism = {
        "smallest": (dc.CountMin(2, 1, tracked=2, seed=3), CountMinHeavyHitters),
        "median": (dc.CountSketch(2, 1, tracked=2, seed=3), CountSketchHeavyHitters),
    }[kind]
    made = mechanism(dc.Budget(5.0, 0.2), 2, width=2, depth=1, noise="laplace", stream_length=3)
    fed(sketch, (0, 1, 0, *[0] * (made.threshold - 3)))
    columns, signs = sketch.places(np.array([0, 1]))
    signs = np.broadcast_to(signs, columns.shape)
    places = {x: [*zip(columns[x].tolist(), signs[x].tolist(), strict=True)] for x in (0, 1)}
    cells = [[0, 0]]
    for x in (0, 1, 0, *[0] * (made.threshold - 3)):
        for row, (column, sign) in enumerate(places[x]):
            cells[row][column] += sign
    law = laws.cells_law(cells, places, kind, "laplace", Fraction(1, 5), made.threshold)
    check(made, sketch, law, [half_the_noise(made), cut_one_lower(made)])


SHAPES = [(64, 3, 100, 4, 1), (1000, 5, 4000, 16, 1), (200, 7, 2000, 3, 2)]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", [CountMinHeavyHitters, CountSketchHeavyHitters])
def test_cuts_of_cells(kind, noise):
    """Half of delta for Gaussian noise; of the rest half for the hashing, half over 1 + e^epsilon for the cells."""
    for width, depth, n, k, m in SHAPES:
        budget = dc.Budget(1.0, 1e-5)
        unit = dc.Event() if m == 1 else dc.User(m)
        made = kind(budget, k, unit, noise, width=width, depth=depth, stream_length=n)
        rest = budget.delta / 2 if noise == "gaussian" else budget.delta
        if noise == "laplace":
            assert made.scale == m * depth
        elif depth == 3:
            assert naive.gaussian_shifts(made.scale, depth, 1.0) <= rest
            assert naive.gaussian_shifts(made.scale * Fraction(99, 100), depth, 1.0) > rest
        rule = made.rule
        low = lambda g: 0 if rule == "smallest" else g  # noqa: B023, E731
        g = laws.least(lambda g: laws.hashing_fails(rule, width, depth, n, n, g, 4096) <= rest / 2)  # noqa: B023
        assert made.untracked(n) == laws.largest_untracked(n, k, low(g), g)
        assert made.untracked(n) > laws.largest_untracked(n, k, low(g - 1), g - 1)
        draws = (1 if rule == "smallest" else 2) * depth * width
        t = laws.unreached(noise, made.scale, draws, rest / 2 / (1 + math.e) * (1 - 1e-9))
        assert made.threshold == made.untracked(n) + t


def test_an_oracle_of_ones_own():
    """Exact counts of three items, which err by nothing: the cut is n/(k~+1) or n/k + 1 with the noise's part."""
    budget = dc.Budget(6.0, 0.2)
    made = OracleHeavyHitters(budget, 1, lambda: ListedCounts(2), 2, noise="laplace", stream_length=4)
    assert made.scale == Fraction(1, 6)
    t = laws.unreached("laplace", Fraction(1, 6), 2 * 2, 0.1 / (1 + math.exp(6)) * (1 - 1e-9))
    assert made.threshold == max(laws.largest_untracked(4, 2, 0, 0) + (t - 1) + 1, 4 // 1 + 1)
    summary = TrackedOracle(ListedCounts(2), 2)
    summary.update([1, *[0] * made.threshold])
    cells = [[made.threshold, 1]]
    law = laws.cells_law(cells, {0: [(0, 1)], 1: [(1, 1)]}, "smallest", "laplace", Fraction(1, 6), made.threshold)
    check(made, summary, law, [half_the_noise(made), cut_one_lower(made)])


# ---- exact counts ----------------------------------------------------------------------------------------------------


def test_exact_counts_behind_a_cut():
    made = Stability(dc.Budget(4.0, 0.1))
    summary = dc.ExactCounts(seed=1)
    fed(summary, (0, 0, 0, 1))
    law = laws.noise_for_each_law({0: 3, 1: 1}, "laplace", Fraction(1, 4), made.threshold)
    check(made, summary, law, [half_the_noise(made), cut_one_lower(made)])
