"""How often the intervals of pairs hold, and how often a pair is listed that nobody has."""

from collections import Counter
from functools import cached_property
from itertools import combinations

import numpy as np
import pytest
from tests.reference.crowds import crowds

import discreet as dc
from discreet.central.person_pairs import PersonPairs
from discreet.noise import seeded_source
from discreet.summaries.people import ListedPeople


def missed(lists, size, seeds):
    """(releases in which an interval at 80 % misses the truth, pairs that are listed), at two epsilons."""
    people, misses, listed = ListedPeople(lists), 0, 0
    for epsilon in (0.7, 3.0):
        for seed in range(seeds):
            release = PersonPairs(dc.Budget(epsilon, 1e-6), 40, size=size)(people, seeded_source(seed))
            known = {item for pair in release.items for item in pair}
            truth = Counter(pair for items in lists for pair in combinations(sorted({*items} & known), size))
            exact, (lower, upper) = np.array([truth[item] for item in release.items]), release.bounds(0.8)
            misses += not ((lower <= exact) & (exact <= upper)).all()
            listed += len(release)
    return misses, listed


@pytest.mark.parametrize("name", ["ratings", "skewed", "flat", "heavy", "equals"])
def test_all_intervals_hold_together_at_least_as_often_as_stated(name):
    """If they held with 80 % only, 20 of 40 releases would fail once in 10^5."""
    misses, listed = missed(crowds()[name], 2, 20)
    assert misses < 20
    assert listed > 0


@pytest.mark.parametrize("name", ["ratings", "skewed"])
def test_so_do_those_of_triples(name):
    """If they held with 80 % only, 8 of 10 releases would fail once in 10^4."""
    misses, _ = missed(crowds()[name], 3, 5)
    assert misses < 8


def test_pairs_that_nobody_has_are_hardly_ever_listed():
    """Sixteen items that everybody has one of: every pair is nobody's. A thousandth of the releases may list one."""
    people = ListedPeople([[f"item {index % 16}"] for index in range(16_000)])
    mechanism = PersonPairs(dc.Budget(1.0, 1e-6), 10)
    listed = sum(len(mechanism(people, seeded_source(seed))) > 0 for seed in range(300))
    assert listed <= 5  # of 0.3 expected at most: more than 5 have a chance below 1e-6


def test_a_twin_without_the_last_cut_lists_them():
    class Bare(PersonPairs):
        @cached_property
        def entries(self):
            return super().entries._replace(above_noise=0.0)

    people = ListedPeople([[f"item {index % 16}"] for index in range(16_000)])
    assert sum(len(Bare(dc.Budget(1.0, 1e-6), 10)(people, seeded_source(seed))) > 0 for seed in range(100)) > 5
