"""Groups: the law of what is shown, over all short streams with the code of `top_k`; and what one person can move."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.neighbours import neighbouring_streams
from tests.statistical.group_rows import CLOSE, GROUPS, PAIRS, GroupedTop, worst_of

import discreet as dc
from discreet.engines.exact_people import people_of
from discreet.events.tables import events_of
from discreet.summaries.people import LENGTH

BUDGET = dc.Budget(2.0, 0.02)
STREAMS = [*neighbouring_streams(PAIRS, 2), CLOSE]


@pytest.mark.parametrize(("k", "listed"), [(1, None), (2, None), (1, ("g",)), (1, ("g", "h", "never"))])
def test_all_groups_together_cost_one_release(k, listed):
    found = worst_of(GroupedTop(BUDGET, k, listed), STREAMS)
    assert found.upper <= BUDGET.delta
    assert found.lower > 0.0  # what a row alone in its group costs


@pytest.mark.parametrize("listed", [None, ("g", "h")])
def test_what_must_not_be_done_costs_more(listed):
    top = GroupedTop(BUDGET, 1, listed)
    for broken in GROUPS.of(top).twins(top):
        assert worst_of(broken.mechanism, STREAMS).lower > BUDGET.delta, broken.name


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
