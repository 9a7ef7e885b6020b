"""The plan for people says what the release then does."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.central.person_vectors import PersonVectors
from discreet.noise import seeded_source
from discreet.summaries.people import ListedPeople

BUDGET = dc.Budget(1.0, 1e-6)


@pytest.mark.parametrize("size", [1, 9])
def test_items_are_found_from_where_the_plan_says(size):
    """300 seeded releases: an item at `found_from` is found at least 95 % of the time, one with a quarter of what is
    needed hardly ever (the second look aims at it if the first raised it), one with an eighth never."""
    (row,) = dc.plan_people(10_000, BUDGET, 10, size).rows
    others = [[f"{group} {i}" for i in range(size - 1)] for group in range(4000)]
    people = ListedPeople(
        [["found", *others[i]] for i in range(row.found_from)]
        + [["few", *others[i]] for i in range(row.found_from, row.found_from + row.needed // 4)]
        + [["rare", *others[i]] for i in range(2 * row.found_from, 2 * row.found_from + row.needed // 8)]
    )
    mechanism = PersonVectors(BUDGET, 10)
    found = [people.items(mechanism.discover(people, seeded_source(seed))[0]).to_pylist() for seed in range(300)]
    assert sum("found" in names for names in found) >= 270  # 285 expected, sd 4
    assert sum("few" in names for names in found) <= 2
    assert sum("rare" in names for names in found) == 0


def test_errors_are_those_of_the_noise():
    (row,) = dc.plan_people(10_000, BUDGET, 10, 4).rows
    people = ListedPeople([["a", "b", "c", "d"]] * 3000)
    mechanism = PersonVectors(BUDGET, 10, dc.User(4))
    worst = [np.abs(mechanism(people, seeded_source(seed)).counts - 3000).max() for seed in range(200)]
    assert np.mean(np.array(worst) <= row.error) >= 0.95  # stated for 15 counts, and these are 4
    assert np.mean(np.array(worst) <= 0.6 * row.error) < 0.95  # and not much too wide
    assert row.share == row.found_from / 10_000


def test_more_budget_and_fewer_items_need_fewer_people():
    rows = dc.plan_people(1000, BUDGET).rows
    assert [row.needed for row in rows] == sorted(row.needed for row in rows)
    assert dc.plan_people(1000, dc.Budget(2.0, 1e-6)).rows[0].needed < rows[0].needed
    assert "auto" in str(dc.plan_people(1000, BUDGET))


@pytest.mark.parametrize(
    "options",
    [{"people": 0}, {"k": 0}, {"items_per_person": 0}, {"confidence": 1.0}, {"budget": dc.Budget(1.0)}],
)
def test_bad_parameters(options):
    with pytest.raises(dc.ParameterError):
        dc.plan_people(**{"people": 10, "budget": BUDGET, **options})
