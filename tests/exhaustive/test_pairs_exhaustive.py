"""Pairs of people's items: what one can move, over all small data sets with the real code, and what it costs."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.central.person_pairs import PersonPairs
from discreet.central.person_vectors import PersonVectors
from discreet.noise import seeded_source
from discreet.summaries.combinations import Combinations
from discreet.summaries.people import LENGTH, ListedPeople

ITEMS = "abcd"
DISCOVERED = "abc"
SETS = [list(items) for size in (1, 2, 3, 4) for items in itertools.combinations(ITEMS, size)]
DATA = [list(people) for size in (0, 1, 2) for people in itertools.combinations_with_replacement(SETS, size)]
BASE = [list(ITEMS)]  # so that all items have places


class TwoVectors(Combinations):
    """A twin: of a person with several pairs each half is a vector of its own."""

    def _batches(self):
        for held in super()._batches():
            middle = held.shape[1] // 2
            yield from (part for part in (held[:, :middle], held[:, middle:]) if part.shape[1])


class BothOrders(Combinations):
    """A twin: (a, b) and (b, a) are two entries."""

    def _batches(self):
        for held in super()._batches():
            yield np.concatenate([held, held], axis=1)


class AnyItems(Combinations):
    """A twin: pairs of all items that somebody has."""

    def __init__(self, people, places, size):
        super().__init__(people, np.arange(len(people.discovery_weights(256))), size)


def together(data, kind=Combinations, size=2, discovered=DISCOVERED):
    people = ListedPeople(data)
    names = people.items(np.arange(len(people.discovery_weights(256)))).to_pylist()
    return kind(people, np.array([names.index(item) for item in discovered], np.int64), size)


def looked(pairs, weights=(1024, 300, 700)):
    every = np.arange(pairs.total)
    return pairs.scaled_sums(every, np.resize(weights, pairs.total), 1.0)


def counted(pairs, longest):
    chosen = np.array([0, 2]) if pairs.total > 2 else np.arange(pairs.total)
    return pairs.scaled_sums(chosen, np.array([300, 1024])[: len(chosen)], longest)


def sizes(pairs):
    squared, people = pairs.lengths(np.arange(pairs.total), np.resize([300, 700], pairs.total))
    return Counter(dict(zip(squared.tolist(), people.tolist(), strict=True)))


def answers(pairs):
    """What is asked, and all that is answered: the look, the counts of two lengths, the sizes."""
    asked = pairs.items(np.arange(pairs.total))
    return asked, (looked(pairs), counted(pairs, 900.0), counted(pairs, 5000.0)), sizes(pairs)


def furthest_move(kind=Combinations, size=2, people=SETS):
    """The most that one person moves any answer, in steps of the lattice; infinite where answers are other ones."""
    worst = 0.0
    for data in (*DATA[: len(SETS) + 1], *DATA[len(SETS) + 1 :: 30]):
        asked, sums, bins = answers(together([*BASE, *data], kind, size))
        for person in people:
            asked_then, sums_then, bins_then = answers(together([*BASE, *data, person], kind, size))
            if asked_then != asked:
                return math.inf  # which questions there are says who is there
            worst = max(
                worst, *(float(np.linalg.norm(one - other)) for one, other in zip(sums, sums_then, strict=True))
            )
            bins_then.subtract(bins)
            worst = max(worst, LENGTH * math.sqrt(sum(change**2 for change in bins_then.values())))
    return worst


@pytest.mark.parametrize("size", [2, 3])
def test_one_person_moves_every_answer_by_one_length(size):
    worst = furthest_move(size=size, people=[*SETS, [*ITEMS, *ITEMS], ["a", "b", "new"]])
    assert 0.999 * LENGTH < worst <= LENGTH


@pytest.mark.parametrize("kind", [TwoVectors, BothOrders])
def test_twins_that_count_a_person_twice_are_seen(kind):
    assert furthest_move(kind) > 1.3 * LENGTH


def test_a_twin_with_pairs_of_undiscovered_items_is_seen():
    assert furthest_move(AnyItems, people=[["a", "b", "new"]]) == math.inf


@pytest.mark.parametrize("size", [2, 3])
def test_counts_are_of_people_who_have_all_items_once(size):
    """Against sets, for all small data: every combination of discovered items, in order, and no other."""
    for data in DATA:
        people = [*BASE, *data, ["c", "b", "c", "a", "b"]]
        found = together(people, size=size)
        names = [tuple(row.values()) for row in found.items(np.arange(found.total)).to_pylist()]
        assert {*names} == {*itertools.combinations(DISCOVERED, size)}
        longest = 4096.0  # nobody's vector is longer
        sums = found.scaled_sums(np.arange(found.total), np.full(found.total, 1024), longest)
        exact = [sum({*name} <= {*person} for person in people) for name in names]
        assert np.rint(sums / LENGTH * longest / 1024).astype(int).tolist() == exact


def test_places_and_products_go_with_the_items():
    """All pairs and triples of ten items: each has one place, and the product is that of its own items."""
    names = [f"item {index}" for index in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)]
    people = ListedPeople([names])
    for size in (2, 3):
        found = Combinations(people, np.arange(10), size)
        rows = [tuple(row.values()) for row in found.items(np.arange(found.total)).to_pylist()]
        assert sorted(rows) == sorted(itertools.combinations(sorted(names), size))
        numbers = np.array([float(name[-1]) + 1.0 for name in names])
        assert found.products(numbers).tolist() == [math.prod(float(item[-1]) + 1.0 for item in row) for row in rows]
        assert (found.discovery_weights(256) == math.floor((LENGTH - 1) / math.sqrt(found.total))).all()


class Recorder:
    """A random source that notes the noise it is asked for."""

    def __init__(self, seed):
        self._source = seeded_source(seed)
        self.seeded = True
        self.asked = []

    def discrete_gaussian(self, sigma, size):
        self.asked.append((float(sigma), size))
        return self._source.discrete_gaussian(sigma, size)


WIDE = [f"item {index}" for index in range(40)]
MANY = WIDE[:9]


@pytest.mark.parametrize(
    ("lists", "k", "steps"),
    [
        ([MANY] * 5000, 1, 4),  # one look at items finds enough; then pairs, sizes, counts
        ([MANY[:3]] * 3000, 1, 5),  # two looks at items
        # ... and losses: a few people have all 780 pairs, and it is not worth counting them in full.
        ([WIDE] * 100 + [[WIDE[n % 40], WIDE[(7 * n + 1) % 40]] for n in range(3000)], 60, 6),
    ],
)
def test_the_noise_of_all_steps_adds_up_to_mu(lists, k, steps):
    """With a second look at items and without, with losses and without: the whole budget is asked for, and no more."""
    people, source, mechanism = ListedPeople(lists), Recorder(1), PersonPairs(dc.Budget(1.0, 1e-6), k)
    mechanism.of_snapshot(people, source)
    assert len(source.asked) == steps
    spent = sum((LENGTH / sigma) ** 2 for sigma, _ in source.asked)
    mu = mechanism.calibration.mu
    assert 0.999999 * mu**2 < spent <= mu**2


def test_the_budget_is_that_of_items():
    """The joint delta is the same; one person touches more coordinates, which costs next to nothing."""
    pairs, items = (kind(dc.Budget(1.0, 1e-6), 100).calibration for kind in (PersonPairs, PersonVectors))
    assert pairs.mu < items.mu
    assert pairs.mu == pytest.approx(items.mu, rel=1e-6)
    assert pairs.cuts[0] >= items.cuts[0] * (1 - 1e-6)
    assert pairs.counts(True) + 4 == items.counts(True)


def test_a_person_alone_is_discovered_as_rarely_as_by_items():
    """Own items pass the same cuts: with the same noise the same items are found."""
    people = ListedPeople([[f"own {index}" for index in range(16)]])
    mechanism = PersonPairs(dc.Budget(1.0, 0.2), 40)
    found = [len(mechanism.discover(people, seeded_source(seed))[0]) for seed in range(300)]
    assert 0 < sum(many > 0 for many in found) < 90  # delta is 0.2, and 60 of 300 are expected at most
