"""What is handed out or taken in is nobody else's: changing it changes nothing that was said before."""

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc

BUDGET = dc.Budget(8.0, 1e-6)
ITEMS = ["a"] * 300 + ["b"] * 200 + ["c"] * 3

SUMMARIES = {
    "MisraGries": lambda: dc.MisraGries(8, seed=1),
    "SpaceSaving": lambda: dc.SpaceSaving(8, seed=1),
    "ExactCounts": lambda: dc.ExactCounts(),
    "CountMin": lambda: dc.CountMin(64, 3, tracked=4, seed=1),
    "CountSketch": lambda: dc.CountSketch(64, 3, tracked=4, seed=1),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_copy_of_a_summary_is_another(name):
    one = SUMMARIES[name]()
    one.update(ITEMS)
    before = one.to_bytes()
    other = one.copy()
    assert other.to_bytes() == before
    other.update(["z"] * 50)
    assert one.to_bytes() == before
    assert other.total == one.total + 50


@pytest.mark.parametrize("name", SUMMARIES)
def test_what_is_merged_into_another_stays_as_it_is(name):
    one, other = SUMMARIES[name](), SUMMARIES[name]()
    one.update(ITEMS)
    other.update(["b"] * 10)
    before = other.to_bytes()
    one.merge(other)
    assert other.to_bytes() == before
    assert one.total == len(ITEMS) + 10


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_release_leaves_its_summary_as_it_was(name):
    one = SUMMARIES[name]()
    one.update(ITEMS)
    before = one.to_bytes()
    dc.release(one, BUDGET)
    assert one.to_bytes() == before


def writeable(array):
    """Change every number, if that is allowed."""
    array = np.asarray(array)
    if array.flags.writeable:
        array[...] = -7


def test_numbers_of_a_release_are_nobody_elses():
    release = dc.top_k(ITEMS, 3, BUDGET)
    said = release.to_json()
    writeable(release.counts)
    for bounds in (release.bounds(), release.bounds(0.5)):
        for end in bounds:
            writeable(end)
    table = release.to_pandas()
    table.iloc[:, 1:] = -7
    told = release.to_dict()
    told["guarantee"]["epsilon"] = -7
    told["items"].clear()
    assert release.to_json() == said
    assert release.guarantee.epsilon == BUDGET.epsilon


def test_a_counter_keeps_its_own_numbers():
    counter = dc.continual.Counter(8, BUDGET, size=2, remember=3)
    given = np.array([3, 4])
    first = counter.step(given)
    kept = first.tolist()
    state = counter.to_bytes()
    writeable(first)
    writeable(given)
    writeable(counter.last)
    assert counter.last.tolist() == kept
    assert counter.to_bytes() == state
    second = counter.step(np.array([0, 0]))
    writeable(counter.last)
    risen = counter.increase(1)
    assert [risen[place].increase for place in (0, 1)] == [int(second[place]) - kept[place] for place in (0, 1)]


def test_estimates_of_parties_are_nobody_elses():
    protocol = dc.multiparty.HadamardResponse("r", dc.Budget(2.0), 8)
    aggregator = protocol.aggregator()
    aggregator.receive_many(protocol.party(n).encode([n % 8]) for n in range(64))
    state = aggregator.to_bytes()
    first = aggregator.estimate(range(8))
    values = first.values.tolist()
    for array in (first.values, first.variances, *first.bounds()):
        writeable(array)
    assert aggregator.estimate(range(8)).values.tolist() == values
    assert aggregator.to_bytes() == state


def test_what_is_counted_is_not_changed_by_counting():
    items, users = np.array([3, 1, 3, 2]), np.array([1, 1, 2, 2])
    table = pa.table({"item": items.copy(), "who": users.copy()})
    before = table.to_pydict()
    dc.top_k(table, 2, BUDGET, column="item", user="who")
    dc.distinct(table, BUDGET, column="item", user="who")
    dc.continual.Histogram(4, BUDGET, [1, 2, 3], unit=dc.User(2)).step(items, users=users)
    assert table.to_pydict() == before
    assert (items.tolist(), users.tolist()) == ([3, 1, 3, 2], [1, 1, 2, 2])


def test_options_of_a_caller_stay_as_they_are():
    options = {"releases": 2, "announced_intrusions": 1}
    dc.pan.Density.for_accuracy(0.5, 0.3, 4.0, universe=100_000, **options)
    dc.pan.Density(100, budget=dc.Budget(1.0), **options)
    assert options == {"releases": 2, "announced_intrusions": 1}
    universe = ["a", "b"]
    histogram = dc.continual.Histogram(4, BUDGET, universe, 1)
    universe.append("c")
    assert "c" not in set(histogram.step(["a"]).items)
