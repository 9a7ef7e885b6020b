"""Groups: the law of what is shown, over all short streams with the code of `top_k`; and what one person can move."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from tests.reference import counter_laws as laws
from tests.reference.branches import delta_between, law_of
from tests.reference.misra_gries import Dummy, misra_gries, stored
from tests.reference.neighbours import neighbouring_streams
from tests.reference.sabotage import cut_one_lower, half_the_noise

import discreet as dc
from discreet.central import Offset
from discreet.engines.exact_people import people_of
from discreet.events.tables import events_of
from discreet.noise import RandomSource
from discreet.summaries import MisraGries
from discreet.summaries.people import LENGTH

BUDGET = dc.Budget(2.0, 0.02)
PAIRS = (("g", "x"), ("g", "y"), ("h", "x"))
# Two items of one group that change places with one row.
CLOSE = ((*[PAIRS[0]] * 7, *[PAIRS[1]] * 7), (*[PAIRS[0]] * 7, *[PAIRS[1]] * 8))
STREAMS = [*neighbouring_streams(PAIRS, 2), CLOSE]
CAPACITY = 2


def counted(rows, listed):
    """The sketch of the rows as `top_k` reads them, and what makes groups and items of its keys."""
    table = {name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(("group", "item"))}
    found = events_of(table).rows("item", by=("group",), groups=listed)
    sketch = MisraGries(CAPACITY, seed=1)
    found.feed(sketch)
    return sketch, found.keys


def law_shown(rows, k, listed, mechanism=None, cutoff=1e-6):
    """The law of what a release shows: the k largest of every group, and the noisy offset."""
    sketch, keys = counted(rows, listed)
    made = mechanism or Offset(BUDGET, CAPACITY)

    def run(source):
        drawn = made.of_snapshot(sketch, source)
        release = drawn.with_items(keys.items(drawn.item_column), keys.by, keys.groups()).head(k)
        shown = {group: zip(found.items, found.counts.tolist(), strict=True) for group, found in release.groups.items()}
        told = [(group, tuple((pair[-1], int(n)) for pair, n in pairs)) for group, pairs in shown.items()]
        return tuple(sorted(each for each in told if each[1])), drawn.offset

    return law_of(run, cutoff, RandomSource)


@cache
def law_of_counters(counters, alpha, k):
    cut = laws.offset_cut(BUDGET.epsilon, BUDGET.delta)
    return laws.top_of_groups(dict(counters), alpha, Fraction(2), cut, k)


def naive_law(rows, k, listed, order):
    """Rows of listed groups alone; zero counters go unused ones first, then in this order of the pairs."""
    kept = [row for row in rows if listed is None or row[0] in listed]
    zeros = lambda key: (0, key.number) if isinstance(key, Dummy) else (1, order.index(key))  # noqa: E731
    sketch = misra_gries(kept, CAPACITY, zeros)
    return law_of_counters(tuple(sorted(stored(sketch).items())), sketch.decrements, k)


def same(told, law):
    return laws.apart(told.mass, law) <= told.missing + 1e-5


ROWS = [*dict.fromkeys(rows for pair in STREAMS for rows in pair)]
CASES = [(1, None), (2, None), (1, ("g",)), (1, ("g", "h", "never"))]


@pytest.mark.parametrize(("k", "listed"), CASES)
def test_all_groups_together_cost_one_release(k, listed):
    """What is shown of all groups has the law of one release, and neighbours' laws are within its promise."""
    told = {rows: law_shown(rows, k, listed) for rows in ROWS}
    orders = (all(same(law, naive_law(rows, k, listed, order)) for rows, law in told.items())
              for order in itertools.permutations(PAIRS))  # fmt: skip
    assert any(orders)  # some order of the keys, the same for all streams
    found = [delta_between(told[first], told[second], BUDGET.epsilon) for first, second in STREAMS]
    assert max(high for _, high in found) <= BUDGET.delta
    assert max(low for low, _ in found) > 0.0  # what a row alone in its group costs


def in_two_groups(rows, k, listed):
    """A row counted in two groups, and a budget for each."""
    twice = tuple(pair for group, item in rows for pair in ((group, item), ("h" if group == "g" else "g", item)))
    return law_shown(twice, k, listed)


def k_before_the_noise(rows, k, listed):
    counts = Counter(rows)
    best = {
        pair for group in {group for group, _ in rows}
        for pair in sorted((p for p in counts if p[0] == group), key=lambda p: (-counts[p], p))[:k]
    }  # fmt: skip
    return law_shown(tuple(pair for pair in rows if pair in best), k, listed)


def groups_of_the_data(rows, k, listed):
    told = law_shown(rows, k, listed)
    named = tuple(sorted({group for group, _ in rows}))
    return told._replace(mass={(*output, named): chance for output, chance in told.mass.items()})


def half_noise(rows, k, listed):
    return law_shown(rows, k, listed, half_the_noise(Offset(BUDGET, CAPACITY)))


def one_lower(rows, k, listed):
    return law_shown(rows, k, listed, cut_one_lower(Offset(BUDGET, CAPACITY)))


@pytest.mark.parametrize("wrong", [in_two_groups, k_before_the_noise, groups_of_the_data, half_noise, one_lower])
@pytest.mark.parametrize("listed", [None, ("g", "h")])
def test_what_must_not_be_done_costs_more(wrong, listed):
    law = cache(lambda rows: wrong(rows, 1, listed))
    found = (delta_between(law(first), law(second), BUDGET.epsilon)[0] for first, second in STREAMS)
    assert any(delta > BUDGET.delta for delta in found)


# ---- people ----------------------------------------------------------------------------------------------------------

SETS = [list(pairs) for size in (1, 2, 3) for pairs in itertools.combinations(PAIRS, size)]


def sums_of(people, groups, longest):
    """By (group, item): what discovery and counting add up over people. NOT private."""
    rows = [(who, *pair) for who, pairs in enumerate(people) for pair in pairs]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("who", "group", "item"))})
    grouped = events_of(table).rows("item", user="who", by=["group"], groups=groups)
    keys = grouped.keys
    with people_of(grouped) as found:
        weights = found.discovery_weights(256)
        places = np.arange(len(weights))
        named = [(row["group"], row["item"]) for row in keys.items(found.items(places)).to_pylist()]
        sums = found.scaled_sums(places, np.full(len(places), 700), longest)
    return dict(zip(named, weights.tolist(), strict=True)), dict(zip(named, sums.tolist(), strict=True))


def moved(first, second):
    return math.sqrt(sum((first.get(pair, 0) - second.get(pair, 0)) ** 2 for pair in {*first, *second}))


@pytest.mark.parametrize("groups", [None, ["h", "g"], ["g"]])
def test_a_person_in_several_groups_moves_all_sums_together_by_one_length(groups):
    worst = 0.0
    for first, person in itertools.product(SETS, repeat=2):
        before, after = (sums_of(people, groups, 900.0) for people in ([first], [first, person]))
        worst = max(worst, *(moved(*both) for both in zip(before, after, strict=True)))
    assert worst <= LENGTH
    assert worst > 0.999 * LENGTH  # nothing is wasted, either


def test_people_of_other_groups_than_the_listed_are_not_there():
    weights, _ = sums_of([[("g", "x")], [("h", "x")]], ["g"], 900.0)
    assert set(weights) == {("g", "x")}
