"""How often the intervals of people's items hold, on crowds of several shapes."""

import numpy as np
import pytest
from tests.reference.crowds import crowds, visits

import discreet as dc
from discreet.central.person_vectors import PersonVectors
from discreet.noise import seeded_source
from discreet.summaries.people import ListedPeople, ValueRange
from discreet_audit.central_questions import held

BUDGET = dc.Budget(1.0, 1e-6)


@pytest.fixture(scope="module")
def data():
    lists = visits()
    return ListedPeople(lists), np.bincount([item for items in lists for item in items], minlength=300)


def test_intervals_hold_and_say_for_what(data):
    """200 seeded releases at 80 %: both ends hold for the truth, all at once."""
    people, truth = data
    held = 0
    for seed in range(200):
        release = PersonVectors(BUDGET, 20)(people, seeded_source(seed))
        lower, upper = release.bounds(0.8)
        assert (lower <= release.counts).all()
        held += bool((lower <= truth[release.items]).all() and (truth[release.items] <= upper).all())
        assert release.left_out is not None
        assert 0.0 <= release.left_out.lower <= release.left_out.value <= release.left_out.upper <= 1.0
        assert release.left_out.guarantee is not None
        assert release.left_out.guarantee.seeded  # what is not private says so
    assert held >= 160
    assert (upper - lower).min() > 0
    assert "The intervals contain the true numbers: their upper ends allow for" in release.notes()[0]


@pytest.mark.parametrize("name", ["ratings", "skewed", "flat", "heavy", "equals"])
@pytest.mark.parametrize("kind", ["people", "bounded", "rows", "sums"])
def test_all_intervals_hold_together_at_least_as_often_as_stated(name, kind):
    """Seeded releases at 80 %, at two epsilons; if it held with 80 % only, 20 of 40 would fail once in 10^5."""
    lists = crowds()[name]
    random, values, within = np.random.default_rng(8), None, None
    if kind in ("rows", "sums"):
        lists = [np.repeat(items, random.geometric(0.6, len(items))).tolist() for items in lists]
    if kind == "sums":
        values, within = [random.exponential(3.0, len(items)).tolist() for items in lists], ValueRange(0, 10)
    people = ListedPeople(lists, rows=kind == "rows", values=values, value_range=within)
    unit = dc.User(1 if kind == "bounded" else None)
    missed = 0
    for epsilon in (0.7, 3.0):
        mechanism = PersonVectors(dc.Budget(epsilon, 1e-6), 60, unit, rows=kind == "rows", values=within)
        missed += sum(not held(mechanism, people, seed, 0.8) for seed in range(20))
    assert missed < 20


def test_what_is_left_out_is_within_its_interval(data):
    """95 % intervals of the share that scaling loses, over 100 seeded releases, allowing for bins of width two."""
    people, truth = data
    good = 0
    for seed in range(100):
        release = PersonVectors(dc.Budget(2.0, 1e-6), 20, dc.User(2))(people, seeded_source(seed))
        share = 1 - release.counts.sum() / truth[release.items].sum()
        good += release.left_out.lower - 0.1 <= share <= release.left_out.upper + 0.1
    assert good >= 90
