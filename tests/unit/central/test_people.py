"""The release of people's items: what it says, pays and refuses, and how good it is."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.crowds import ratings, visits

import discreet as dc
from discreet.central import person_vectors as people_module
from discreet.central.person_vectors import PersonVectors, Sizes, calibrated
from discreet.noise import seeded_source
from discreet.summaries.people import LENGTH, ListedPeople, ValueRange
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)


@pytest.fixture(scope="module")
def data():
    lists = visits()
    return ListedPeople(lists), np.bincount([item for items in lists for item in items], minlength=300)


def test_most_of_the_top_is_found_with_small_errors(data):
    people, truth = data
    largest, errors = {*np.argsort(-truth)[:30].tolist()}, []
    for seed in range(10):
        release = PersonVectors(BUDGET, 30)(people, seeded_source(seed))
        assert len({*release.items} & largest) >= 27
        errors.append(np.mean(np.abs(release.counts - truth[release.items]) / truth[release.items]))
    assert np.mean(errors) < 0.065
    assert release.counted == "people"


def test_few_items_of_many_people_lose_next_to_nothing():
    """Also those whose people have others, too: they have the longest vectors, and lose 0.7 % of all that there is."""
    people = ListedPeople(ratings())
    for seed in range(10):
        release = PersonVectors(BUDGET, 100)(people, seeded_source(seed))
        assert abs(release[0].count - 120) < 40
        assert release[0].lower <= 120 <= release[0].upper
        whole = release.error_model.scaling.noise is None  # nobody is scaled down
        lost, note = (0.0, "Nothing was left out") if whole else (0.007, "Counts are low by less than 1 %")
        assert release.left_out.lower <= lost <= release.left_out.upper < 0.05
        assert (release.left_out.upper == 0.0) == whole
        assert note in release.notes()[1]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999999])
def test_upper_ends_cover_what_a_bound_leaves_out(confidence):
    """Everybody has 40 items and one is counted: a count is low by 1 - 1/sqrt(40), and the interval says so."""
    people = ListedPeople([[*range(40)]] * 1500)
    release = PersonVectors(BUDGET, 40, dc.User(1))(people, seeded_source(3))
    lower, upper = release.bounds(confidence)
    assert release.counts.max() < 300
    assert (lower <= release.counts).all()
    assert (upper >= 1500).all()
    again = dc.Release.from_json(release.with_items(release.item_column.cast(pa.int64())).to_json())
    assert [side.tolist() for side in again.bounds(confidence)] == [lower.tolist(), upper.tolist()]


def test_losses_of_a_person_are_no_longer_than_one_and_never_too_small():
    """At every length a person may have; of what lies beyond the reach nothing more is asked."""
    for present, reach in ((True, 12.0), (False, 12.0), (False, 2.0**40)):
        rungs = np.array([1.5, math.sqrt(1.5 * reach)])
        for length in (0.5, 1.5, 1.6, 5.0, reach, *([] if present else [100 * reach])):
            one, unit = people_module._lost(np.array([length**2]), np.array([1]), rungs, reach, present)
            assert (one.astype(float) ** 2).sum() <= float(LENGTH) ** 2
            over = np.maximum(min(length, reach) - rungs, 0.0)
            assert (one * unit >= (over / length if present else over) * (1 - 1e-12)).all()
            assert (one * unit <= (over / length if present else over) + unit * 1.001).all()
    many, _ = people_module._lost(np.array([4.0, 25.0]), np.array([3, 2]), np.array([1.0]), 6.0, True)
    once = [people_module._lost(np.array([s]), np.array([1]), np.array([1.0]), 6.0, True)[0] for s in (4.0, 25.0)]
    assert many.tolist() == (3 * once[0] + 2 * once[1]).tolist()


def test_a_sum_may_be_less_than_one():
    """Values of nothing: an item is listed for its people, and its interval holds 0."""
    lists, within = [["free"]] * 3000, ValueRange(0, 1)
    people = ListedPeople(lists, values=[[0.0]] * 3000, value_range=within)
    found = [PersonVectors(BUDGET, 5, values=within)(people, seeded_source(seed)) for seed in range(8)]
    listed = [release.bounds(0.999999)[0] for release in found if len(release)]
    assert listed
    assert not np.concatenate(listed).any()


def test_rows_count_all_rows_and_hide_all_of_a_person():
    lists = [["a"] * 3 + ["b"]] * 800 + [["own"] * 50_000]
    release = PersonVectors(BUDGET, 5, rows=True)(ListedPeople(lists, rows=True), seeded_source(2))
    assert release.items == ["a", "b"]
    assert release.counted == "rows"
    assert abs(release.counts[0] - 2400) < 600
    assert "rows that people have" in release.notes()[0]


def test_nothing_in_nothing_out():
    for lists in ([], [["only"]], [[f"own {i}" for i in range(300)]]):
        release = PersonVectors(BUDGET, 5)(ListedPeople(lists), seeded_source(0))
        assert len(release) == 0
        assert release.to_dict()["items"] == []
        assert (
            release.to_arrow().schema == PersonVectors(BUDGET, 5)(ListedPeople([]), seeded_source(1)).to_arrow().schema
        )


def test_a_stored_release_is_the_same(tmp_path):
    table = pa.table({"who": [str(i // 2) for i in range(2000)], "what": ["a", "b"] * 1000})
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visits", dc.Budget(1.5, 1e-5))
    asked = {"column": "what", "user": "who", "ledger": ledger.account("visits"), "charge_id": "one"}
    first = dc.top_k(table, 5, BUDGET, **asked)
    again = dc.top_k(table, 5, BUDGET, **asked)
    assert first.to_payload() == again.to_payload()
    assert (again.counted, again.left_out) == ("people", first.left_out)
    assert [side.tolist() for side in again.bounds()] == [side.tolist() for side in first.bounds()]
    with pytest.raises(dc.BudgetExceededError):
        dc.top_k(table, 5, BUDGET, **{**asked, "charge_id": "two"})


def test_a_charge_id_stands_for_one_range_of_values(tmp_path):
    """Also where six digits of its ends do not differ."""
    table = pa.table({"who": [str(i) for i in range(500)], "what": ["a", "b"] * 250, "worth": [2.0] * 500})
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visits", dc.Budget(5.0, 1e-5))
    paid = {"ledger": ledger.account("visits"), "charge_id": "one"}
    asked = {"column": "what", "user": "who", "value": "worth", **paid}
    for payment in ("charged", "replayed"):
        assert dc.top_k(table, 5, BUDGET, **asked, value_range=(0, 10_000_000)).payment == payment
    with pytest.raises(dc.LedgerError, match="another"):
        dc.top_k(table, 5, BUDGET, **asked, value_range=(0, 10_000_001))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": dc.Budget(1.0)}, "needs delta > 0"),
        ({"budget": dc.Budget.zcdp(0.1)}, "needs delta > 0"),
        ({"k": 0}, "k must be"),
        ({"count": "clicks"}, "count must be"),
        ({"max_items": 0}, "max_items must be"),
        ({"capacity": 64}, "capacity cannot be combined with user"),
        ({"unit": dc.Event()}, "unit row cannot be combined with user"),
        ({"column": None}, "user needs column"),
        ({"mechanism": "offset"}, "mechanism with user needs max_items"),
        ({"nulls": "some"}, "nulls must be"),
        ({"memory": "much"}, "memory must be"),
    ],
)
def test_bad_parameters(options, message):
    table = pa.table({"who": ["a"], "what": ["x"]})
    with pytest.raises(dc.ParameterError, match=message):
        dc.top_k(table, **{"k": 5, "budget": BUDGET, "column": "what", "user": "who", **options})


def test_options_of_people_need_people():
    with pytest.raises(dc.ParameterError, match="count rows needs user"):
        dc.top_k(["a"], 5, BUDGET, count="rows")
    with pytest.raises(dc.DataError, match="list of one user's items"):
        dc.top_k(["a"], 5, BUDGET, max_items=3)
    with pytest.raises(dc.ParameterError, match="single items"):
        dc.top_k(pa.array(["a"]), 5, BUDGET, max_items=3)


def test_a_column_of_a_table_by_rows():
    table = pa.table({"who": [str(i) for i in range(500)], "what": ["a"] * 500})
    release = dc.top_k(table, 5, BUDGET, column="what")
    assert release.items == ["a"]
    assert release.counted == "events"
    with pytest.raises(dc.DataError, match="'nothing'"):
        dc.top_k(table, 5, BUDGET, column="nothing")


def test_more_budget_means_lower_cuts_and_less_noise():
    cuts = [PersonVectors(dc.Budget(epsilon, 1e-6), 100).threshold for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 8.0, 30.0)]
    assert cuts == sorted(cuts, reverse=True)
    assert PersonVectors(dc.Budget(1.0, 1e-6), 100).threshold == pytest.approx(35.729, abs=0.001)
    assert calibrated(1.0, 1e-9, 150).cuts[0] > calibrated(1.0, 1e-6, 150).cuts[0]


def test_noise_in_the_bins_of_long_vectors_invents_nobody():
    """What does not stand out, by itself or with its neighbour, counts as empty when the length is chosen."""
    edges = 2.0 ** np.arange(10)
    noisy = np.array([1000.0, 800.0, 400.0, 150.0, 5.0, -20.0, 60.0, -50.0, 70.0, 65.0])
    sizes = Sizes(edges, noisy, 30.0, False)
    assert np.flatnonzero(sizes.people).tolist() == [0, 1, 2, 3, 4]
    weights, sums = np.full(20, 1), np.full(20, 100)
    assert sizes.best_length(22.6, (4.0, 3.9), weights, sums, 20, 2.0) < 5.0
    # A bin by itself, far from the others, must stand out more: 4.3 standard deviations of one in 26 are too few.
    far = Sizes(2.0 ** np.arange(26), np.array([1000.0, 800.0, *[0.0] * 16, 128.0, *[0.0] * 7]), 30.0, True)
    assert np.flatnonzero(far.people).tolist() == [0, 1]


def test_people_are_shared_out_to_the_edges():
    """No longer than one step of the lattice each, and what they have adds up exactly, wherever in a bin they are."""
    edges = 4.0 * math.sqrt(2.0) ** np.arange(8)
    for squared in (4.0, 4.1, 5.0, edges[3], 30.0, edges[-1]):
        one = people_module._shared_out(edges, np.array([squared]), np.array([1]))
        assert one.sum() == LENGTH
        assert (one.astype(float) ** 2).sum() <= float(LENGTH) ** 2
        assert (one * edges).sum() / LENGTH == pytest.approx(squared, rel=1e-6)
    some = people_module._shared_out(edges, np.array([4.1, 30.0]), np.array([3, 2]))
    assert some.sum() == 5 * LENGTH
    assert people_module._shared_out(edges[:1], np.array([4.0]), np.array([7])).tolist() == [7 * LENGTH]


def test_what_is_left_out_of_a_crowd_of_equals_is_within_its_interval():
    """Everybody lies at the same place of one bin; what is lost must be seen there, too. Seeded."""
    for each in (31, 45, 200):
        lists = pa.array([list(range(each))] * 3000)
        for seed in range(5):
            release = dc.top_k(lists, 300, dc.Budget(1.0, 1e-6), unit=dc.User(), source=seeded_source(seed))
            share = 1.0 - np.mean(release.counts) / 3000
            noise = 4.0 * np.mean(release.steps) * float(release.error_model.noise.scale) / math.sqrt(each) / 3000
            assert release.left_out.lower - noise <= share <= release.left_out.upper + noise


def test_lists_are_people_without_a_bound():
    import pandas as pd
    import polars as pl

    lists = [["x", "y"]] * 300 + [["x"]] * 300 + [["own"] * 400]
    given = (
        lists,
        pa.array(lists),
        pd.Series(lists),
        pl.Series(lists),
        (tuple(row) for row in lists),
        [*lists, [b"z"]],
    )
    for data in given:
        release = dc.top_k(data, 5, BUDGET, unit=dc.User())
        assert release.items == ["x", "y"]
        assert release.counted == "people"
        assert abs(release.counts[0] - 600) < 150
    with pytest.raises(dc.DataError, match="nulls"):
        dc.top_k([*lists, None], 5, BUDGET, unit=dc.User())
    assert dc.top_k([*lists, None], 5, BUDGET, unit=dc.User(), nulls="skip").items == ["x", "y"]
    with pytest.raises(dc.ParameterError, match="capacity cannot be combined with user"):
        dc.top_k(lists, 5, BUDGET, unit=dc.User(), capacity=10)
    with pytest.raises(dc.ParameterError, match=r"one person; pass unit=dc.User\(\)"):
        dc.top_k(pa.array(lists), 5, BUDGET)


def test_whoever_has_more_items_than_the_bound_is_hidden_too():
    table = {"who": [*range(400)] * 2, "what": ["a"] * 400 + ["b"] * 400}
    bounded = dc.top_k(table, 5, BUDGET, column="what", user="who", max_items=1)
    assert "people with more items are hidden, too: they are scaled down" in bounded.guarantee.assumptions


@pytest.mark.parametrize("many", [1, 9, 64])
def test_whoever_has_no_more_items_than_the_bound_is_covered_in_full(many):
    """Seeded. Of rows nothing private tells what one person may have: that m rows of m items count is said by `m`."""
    table = {"who": [*range(400)] * 2, "what": ["a"] * 400 + ["b"] * 400}
    words = {"column": "what", "user": "who", "count": "rows", "max_items": many}
    release = dc.top_k(table, 100, dc.Budget(4.0, 1e-6), **words, source=seeded_source(1))
    scaling = release.error_model.scaling
    assert len(release) == 2
    assert scaling.covered >= math.sqrt(min(many, 2)) * (1 - 1e-9)
    weights, mechanism = np.full(many, 7), PersonVectors(dc.Budget(4.0, 1e-6), 100, dc.User(many), rows=True)
    nobody = np.zeros(0), np.zeros(0, np.int64)
    length = mechanism.choose_length(nobody, weights, weights, True, seeded_source(1))
    assert length.longest == pytest.approx(7 * math.sqrt(many))
    assert length.reach >= length.longest
    assert mechanism.losses(nobody, length, weights, seeded_source(1)).covered >= math.sqrt(many) * (1 - 1e-9)


@pytest.mark.parametrize("order", [1, -1])
def test_of_equals_at_the_end_of_the_candidates_the_items_decide_and_not_who_came_first(order):
    names = [f"item {index}" for index in range(9)][::order]
    people = ListedPeople([[name] for name in names for _ in range(400)])
    mechanism = PersonVectors(BUDGET, 2)
    places, _, _ = mechanism.discover(people, ScriptedSource())
    assert people.items(places).to_pylist() == ["item 0", "item 1", "item 2"]


@pytest.mark.parametrize("rows", [False, True])
def test_what_is_left_out_is_stated_at_95_percent(rows):
    """Reports, pages and the sign-off sheet say 95 %: no other confidence is told anywhere."""
    sizes = Sizes(np.array([1.0, 4.0, 16.0, 64.0]), np.array([900.0, 500.0, 200.0, 90.0]), 20.0, rows)
    stated = sizes.left_out(2.0)
    assert stated == sizes.left_out(2.0, 0.95)
    narrow = sizes.left_out(2.0, 0.9)
    assert stated.upper - stated.lower > narrow.upper - narrow.lower
