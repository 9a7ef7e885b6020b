"""People in lists: what one of them counts at most, and sums of any size."""

import numpy as np
import pytest

from discreet.summaries import people
from discreet.summaries.people import LENGTH, ListedPeople, ValueRange


def lengths(made, weights):
    squared, how_many = made.lengths(np.arange(len(weights)), np.array(weights))
    return dict(zip(squared.tolist(), how_many.tolist(), strict=True))


@pytest.mark.parametrize(("rows", "counted"), [(1, 1), (3, 3), (4, 3), (9, 3)])
def test_rows_beyond_the_most_change_nothing(monkeypatch, rows, counted):
    monkeypatch.setattr(people, "MOST_ROWS", 3)
    made = ListedPeople([["a"] * rows, ["a"]], rows=True)
    assert lengths(made, [1]) == lengths(ListedPeople([["a"] * counted, ["a"]], rows=True), [1])
    assert made.discovery_weights(1).tolist() == ListedPeople([["a"], ["a"]]).discovery_weights(1).tolist()


@pytest.mark.parametrize(("values", "steps"), [([1.0], 1.0), ([1.0, 0.5], 1.5), ([2.0, 2.0], 2.0), ([1.0] * 9, 2.0)])
def test_values_beyond_the_most_change_nothing(monkeypatch, values, steps):
    """At most two times the largest value here. A value counts as at most 1."""
    monkeypatch.setattr(people, "MOST_STEPS", 2 * ValueRange.STEPS)
    made = ListedPeople([["a"] * len(values)], values=[values], value_range=ValueRange(0.0, 1.0))
    assert lengths(made, [1]) == {(steps * ValueRange.STEPS) ** 2: 1}


def test_every_value_counts_within_its_range():
    made = ListedPeople([["a"], ["a"], ["a"]], values=[[-5.0], [0.5], [99.0]], value_range=ValueRange(0.25, 2.0))
    expected = {(each / 2.0 * ValueRange.STEPS) ** 2: 1 for each in (0.25, 0.5, 2.0)}
    assert lengths(made, [1]) == expected


@pytest.mark.parametrize("items", [1, 2, 15, 16, 17, 100])
@pytest.mark.parametrize("weight", [2**26, 2**30, 2**31 - 1, 2**40])
def test_squared_lengths_are_exact_beyond_64_bits(items, weight):
    made = ListedPeople([[f"{n}" for n in range(items)], ["0"]])
    expected = {float(items * weight**2): 1, float(weight**2): 1} if items > 1 else {float(weight**2): 2}
    assert lengths(made, [weight] * items) == expected


@pytest.mark.parametrize("items", [1, 3, 16, 1000])
@pytest.mark.parametrize("weight", [1, 2**30])
def test_nobody_gives_more_than_a_length(items, weight):
    """However many items, rows and steps somebody has: their sums together are a vector of this length at most."""
    made = ListedPeople([[f"{n}" for n in range(items)]])
    places = np.arange(items)
    for longest in (1.0, weight * items**0.5, 1e12):
        given = made.scaled_sums(places, np.full(items, weight), longest)
        assert int((given.astype(object) ** 2).sum()) <= LENGTH**2
    assert int((made.scaled_sums(places, np.full(items, weight), 1.0).astype(float) ** 2).sum()) > 0.99 * LENGTH**2
    for most in (1, 2, items):
        weights = made.discovery_weights(most)
        assert int((weights.astype(object) ** 2).sum()) <= LENGTH**2
        assert np.count_nonzero(weights) == min(most, items)
