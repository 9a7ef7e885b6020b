"""The law of what the code publishes, branch by branch, for mechanisms that `test_second_opinion.py` has no formula of.

Noise has the laws of `tests.reference.naive_laws`; what is done with it is the code's. Each is run over all tiny
neighbours, must keep its promise, and must not keep it with half of its noise, or with another slip.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference.branches import Silent, law_of, shown, worst_delta, worst_ratio
from tests.reference.neighbours import neighbouring_streams
from tests.reference.sabotage import half_the_noise, sabotaged

import discreet as dc
from discreet.central import BadShare, ChosenDistinct, CreditedDistinct, Grid, QuantileTree, ReducedMisraGries, Summed
from discreet.continual import Counter
from discreet.multiparty import GridHierarchy, HierarchicalStream, Hierarchy, Stream
from discreet.noise import RandomSource
from discreet.pan.responses import Response
from discreet.published import (
    ChanMisraGries,
    GaussianSparseHistogram,
    InnerProductCounter,
    PrivateSpaceSaving,
    TextbookMisraGries,
)


def summarised(kind, *given, **more):
    def summarise(stream):
        summary = kind(*given, **more)
        if stream:
            summary.update(np.array(stream, np.int64))
        return summary

    return summarise


# ---- counters with a cut: (epsilon, delta) ---------------------------------------------------------------------------

BUDGET = dc.Budget(3.0, 0.05)
CUT = {
    "textbook": (TextbookMisraGries(BUDGET, 1), summarised(dc.MisraGries, 1, seed=1), 2, 3),
    "space saving": (
        PrivateSpaceSaving(BUDGET, 1, stream_length=4),
        summarised(dc.SpaceSaving, 1, seed=1),
        2,
        3,
    ),
    "a Gaussian noise for each": (GaussianSparseHistogram(BUDGET, 2), summarised(dc.MisraGries, 2, seed=1), 3, 3),
}


@pytest.mark.parametrize("name", CUT)
def test_counters_above_a_cut(name):
    mechanism, summarise, universe, longest = CUT[name]
    around = range(max(mechanism.threshold - 1, 1), mechanism.threshold + 2)
    tall = [((0,) * n, (0,) * (n - 1)) for n in around]
    pairs = [*neighbouring_streams(range(universe), longest), *tall]
    assert worst_delta(mechanism, summarise, pairs, BUDGET.epsilon, 1e-6)[1] <= BUDGET.delta
    quiet = half_the_noise(mechanism)
    assert worst_delta(quiet, summarise, pairs, BUDGET.epsilon, 1e-6, BUDGET.delta)[0] > BUDGET.delta


# ---- reduced entries over a public list: pure epsilon ----------------------------------------------------------------


def lists(sketches):
    """Tuples of streams that differ in one event of one of them."""
    for first, second in neighbouring_streams(range(2), 2):
        for others in itertools.product([(), (0,), (1,)], repeat=sketches - 1):
            yield (first, *others), (second, *others)


@pytest.mark.parametrize(
    ("mechanism", "sketches"),
    [
        (ReducedMisraGries(dc.Budget(4.0), 1, universe=range(2)), 1),
        (ChanMisraGries(dc.Budget(4.0), 1, universe=range(2)), 1),
        (Summed(dc.Budget(4.0), 1, universe=range(2), sketches=2), 2),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "budget") else str(value),
)
def test_entries_of_a_public_list(mechanism, sketches):
    def run(given, source, mechanism=mechanism):
        made = [summarised(dc.MisraGries, 1, seed=1)(stream) for stream in given]
        return shown(mechanism.draw(made if sketches > 1 else made[0], source))

    assert worst_ratio(lists(sketches), run, 1e-6) <= 4.0 * (1 + 1e-9)
    quiet = half_the_noise(mechanism)
    pairs = [
        ((*first, *[()] * (sketches - 1)), (*second, *[()] * (sketches - 1))) for first, second in [(((0,),), ((),))]
    ]
    assert worst_ratio(pairs, lambda given, source: run(given, source, quiet), 1e-9) > 4.0 * (1 + 1e-9)


# ---- one number, or many, with noise ---------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [dc.Event(), dc.User()], ids=str)
def test_a_test_of_bad_rows(unit):
    """Statistics of all small data with one unit more or less, around the cut: a row, or a person."""
    mechanism = BadShare(dc.Budget(1.0), Fraction(1, 4), unit)
    steps = {mechanism.statistic(1, 0), mechanism.statistic(0, 1)}
    steps |= {4} if isinstance(unit, dc.User) else set()  # a person who made a bad group good: from q - p to -p
    around = range(mechanism.cut - 3, mechanism.cut + 4)
    pairs = [(s, s + step) for s in around for step in steps]
    run = lambda given, source: mechanism.draw(given, source)  # noqa: E731
    assert worst_ratio(pairs, run, 0.0) <= 1.0 * (1 + 1e-9)
    quiet = sabotaged(mechanism, scale=lambda scale: scale / 2)
    assert worst_ratio(pairs, lambda given, source: quiet.draw(given, source), 0.0) > 1.0 * (1 + 1e-6)


def credited(people, most):
    """The largest number of values that can be credited, by trying everything: each value to one of its people."""
    values = sorted({value for person in people for value in person})
    best = 0
    for owners in itertools.product([None, *range(len(people))], repeat=len(values)):
        fits = all(who is None or value in people[who] for value, who in zip(values, owners, strict=True))
        if fits and all(owners.count(who) <= most for who in range(len(people))):
            best = max(best, sum(who is not None for who in owners))
    return best


SETS = [(), (0,), (1,), (0, 1), (0, 1, 2)]


def rows_of(people):
    pairs = [(who, value) for who, person in enumerate(people) for value in person]
    return tuple(np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1))


def test_values_credited_to_people():
    """The number is the largest there is; one more person adds at most m; the noise is for m."""
    for most in (1, 2):
        mechanism = CreditedDistinct(dc.Budget(0.5), max_items=most)
        assert most / Fraction(mechanism.scale) <= Fraction(0.5)
        grown = 0
        for people in itertools.product(SETS, repeat=2):
            before = mechanism.count_of(*rows_of(people))
            assert before == credited(people, most)
            for more in SETS:
                after = mechanism.count_of(*rows_of((*people, more)))
                assert before <= after <= before + most
                grown = max(grown, after - before)
        assert grown == most


def test_values_credited_to_people_with_a_chosen_limit():
    """The choice and the count together, over all that one person more can do."""
    mechanism = ChosenDistinct(dc.Budget(2.0))
    found = {}
    for people in itertools.product(SETS, repeat=2):
        for more in (None, *SETS):
            everybody = people if more is None else (*people, more)
            found[people, more] = tuple(mechanism.count_of(*rows_of(everybody)).items())
    pairs = {(found[people, None], found[people, more]) for people, more in found if more is not None}
    run = lambda given, source: mechanism.draw(dict(given), source)  # noqa: E731
    assert worst_ratio(pairs, run, 1e-7) <= 2.0 * (1 + 1e-9)
    one_more = (
        (
            tuple((m, min(m, 40)) for m in mechanism.CANDIDATES),
            tuple((m, 2 * min(m, 40)) for m in mechanism.CANDIDATES),
        ),
    )
    assert 1.0 < worst_ratio(one_more, run, 1e-9) <= 2.0 * (1 + 1e-9)


@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget.zcdp(0.5)], ids=str)
def test_nodes_of_a_tree_of_quantiles(budget):
    """Every row is in one node of each level, and the noise is for all of them together."""
    mechanism = QuantileTree(budget, Grid(0, 8, 8), (0.5,))
    for place in range(8):
        source = Silent()
        one = np.bincount([place], minlength=8)
        moved = mechanism.draw(one, source) - mechanism.draw(0 * one, Silent())
        (asked,) = source.asked
        assert asked.size == len(moved)
        if budget.rho is None:
            assert asked.law == "laplace"
            assert 0.99 < np.abs(moved).sum() / float(asked.scale) <= 1.0
        else:
            assert asked.law == "gaussian"
            assert 0.49 < (moved**2).sum() / (2 * float(asked.scale) ** 2) <= 0.5


# ---- over time -------------------------------------------------------------------------------------------------------


def renyi(first, second, order):
    """D_order of two laws written out as far as they go: what is missing lowers it by a hair."""
    both = [(p, second.mass[output]) for output, p in first.mass.items() if output in second.mass]
    return math.log(math.fsum(p**order * q ** (1 - order) for p, q in both)) / (order - 1)


def test_a_count_over_time():
    """All outputs of two ticks together: rho, for one event at either."""
    rho = 4.0

    def law(stream):
        def run(source):
            counter = Counter(2, dc.Budget.zcdp(rho), method="tree", source=source)
            return tuple(float(counter.step(x)) for x in stream)

        return law_of(run, 1e-7, RandomSource)

    empty = law((0, 0))
    for tick in range(2):
        other = law(tuple(int(at == tick) for at in range(2)))
        found = max(
            renyi(*pair, order) / order for pair in ((empty, other), (other, empty)) for order in (1.5, 2.0, 3.0)
        )
        assert found <= rho * (1 + 1e-3)
        assert found > 0.3 * rho


# ---- messages of parties ---------------------------------------------------------------------------------------------


def l1_of(protocol, items, read):
    source = type("Quiet", (Silent, RandomSource), {})()
    cells = read(protocol, source, items)
    scales = np.concatenate([np.full(each.size, float(each.scale)) for each in source.asked])
    assert len(cells) == len(scales)
    return cells, scales


def of_a_round(protocol, source, items):
    opened = protocol.open(protocol.party(0, source=source).encode(list(items)))[1]
    return np.concatenate([np.asarray(content).ravel() for _, content in opened])


def of_a_stream(protocol, source, items):
    packet = protocol.open(protocol.party(0, source=source).feed(list(items)))[1]
    return np.concatenate([np.asarray(cells).ravel() for cells in packet.blocks.values()])


SKETCHED = {
    "hierarchy": (Hierarchy("r", dc.Budget(1.0), 4, protocol="IndependentSketches", branching=2,
                            options={"items_per_column": 1.0}), of_a_round, range(4)),
    "grid": (GridHierarchy("r", dc.Budget(1.0), [2, 2], protocol="IndependentSketches", branching=2,
                           options={"items_per_column": 0.5, "max_items": 10}), of_a_round,
             [(a, b) for a in range(2) for b in range(2)]),
    "stream": (Stream("r", dc.Budget(1.0), 3, epoch_steps=1, horizon=4, rows=1, columns=4, sample_share=0.0),
               of_a_stream, range(3)),
    "hierarchical stream": (HierarchicalStream("r", dc.Budget(1.0), 4, epoch_steps=1, horizon=4, rows=1, columns=4,
                                               sample_share=0.0, branching=2), of_a_stream, range(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", SKETCHED)
def test_cells_of_all_levels_spend_epsilon_together(name):
    protocol, read, items = SKETCHED[name]
    length = 4 if read is of_a_stream else 2
    worst = 0.0
    for others in itertools.product(items, repeat=length - 1):
        told = [l1_of(protocol, (item, *others), read) for item in items]
        for (one, scales), (two, again) in itertools.combinations(told, 2):
            assert np.array_equal(scales, again)
            worst = max(worst, float((np.abs(one - two) / scales).sum()))
    assert 0.9 < worst <= 1.0 * (1 + 1e-9)


def test_votes_and_inner_products():
    """All that is kept after each of two votes and a vector, and the release: pure epsilon for each participant."""

    def run(given, source, epsilon=1.0, response=None):
        *votes, vector = given
        made = InnerProductCounter(2, budget=dc.Budget(epsilon), source=source)
        made.response = response or made.response
        seen = []
        for place, vote in enumerate(votes):
            made.vote([place], [vote])
            seen.append(made.to_bytes())
        made.update([vector])
        return (*seen, made.to_bytes(), made.release().value)

    inputs = list(itertools.product((0, 1), (0, 1), [(0, 0), (0, 1), (1, 0), (1, 1)]))
    pairs = [pair for pair in itertools.combinations(inputs, 2) if sum(a != b for a, b in zip(*pair, strict=True)) == 1]
    assert worst_ratio(pairs, run, 0.0, RandomSource) == pytest.approx(1.0, rel=1e-9)
    loud = Response.of("tight", Fraction(2))
    assert worst_ratio(pairs, lambda given, source: run(given, source, response=loud), 0.0, RandomSource) > 1.9
