"""How much counts rose: from remembered ticks, other releases and JSON, across restarts and second runs."""

import json
import math

import numpy as np
import pytest

import discreet as dc
from discreet.errors import NotPublishedError, ParameterError
from discreet.noise import seeded_source
from discreet.releases.over_time import OverTime

BUDGET = dc.Budget(1.0, 1e-6)
EVENTS = ["a"] * 400 + ["b"] * 300


def known(**options):
    return dc.continual.Histogram(40, BUDGET, ["a", "b", "never"], 1, **options)


def unknown(**options):
    return dc.continual.Histogram(40, BUDGET, max_items_per_event=1, **options)


def any_horizon(**options):
    return dc.continual.Histogram(None, BUDGET, max_items_per_event=1, **options)


def hitters(**options):
    return dc.continual.HeavyHitters(40, BUDGET, 64, **options)


def window(**options):
    return dc.continual.HeavyHitters(40, BUDGET, 64, window=5, **options)


def trees(**options):
    return dc.continual.Histogram(40, BUDGET, ["a", "b", "never"], 1, mechanism="meta", **options)


LISTED = [known, unknown, any_horizon, hitters]


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(9.0, 1e-4))
    return ledger.account("rows")


def width(increase, item="a"):
    return increase[item].upper - increase[item].lower


def added(later, earlier):
    return sum(float(np.subtract(*release.bounds(0.975)[::-1])[0]) for release in (later, earlier))


@pytest.mark.parametrize("make", LISTED)
def test_a_tick_by_its_number_its_release_or_its_json(make):
    made = make(remember=6, source=seeded_source(4))
    releases = [made.step(EVENTS) for _ in range(20)]
    increase = releases[-1].increase(since=15)
    assert (increase.since, increase.tick, increase.confidence) == (15, 20, 0.95)
    assert {"a", "b"} <= set(increase.items)
    assert increase["a"].lower <= 2000 <= increase["a"].upper
    assert width(increase) < 0.6 * added(releases[-1], releases[14])
    read = dc.Release.from_json(releases[-1].to_json())
    for same in (
        releases[-1].increase(since=releases[14]),
        made.increase(since=15),
        read.increase(dc.Release.from_payload(releases[14].to_payload())),
        type(made).from_bytes(made.to_bytes()).increase(15),
    ):
        assert same.to_dict() == increase.to_dict()
    told = json.loads(increase.to_json())
    assert told["items"][0].keys() == {"item", "increase", "lower", "upper"}
    assert told["guarantee"] == releases[-1].guarantee.to_dict()
    assert increase.to_arrow().column_names == ["item", "increase", "lower", "upper"]
    assert "from tick 15 to 20" in repr(increase)
    assert [row.item for row in increase] == increase.items


@pytest.mark.parametrize("make", LISTED)
def test_what_is_remembered_is_bounded_and_said(make):
    made = make(remember=3)
    for _ in range(8):
        release = made.step(EVENTS)
    assert sorted(release.earlier) == [5, 6, 7]
    assert all(not earlier.earlier for earlier in release.earlier.values())
    with pytest.raises(ParameterError, match=r"tick 4 is not remembered \(remembered: 5, 6, 7\): pass the release"):
        release.increase(since=4)
    with pytest.raises(ParameterError, match="not remembered"):
        make().step(EVENTS).increase(since=1)
    with pytest.raises(ParameterError, match="before this one, which is tick 8, not 8"):
        release.increase(since=release)
    assert made.parameters["remember"] == 3
    assert "remember" not in make().parameters


def test_an_item_that_was_not_listed_then_has_no_row():
    made = unknown()
    before = made.step(["a"] * 500)
    release = made.step(["a"] * 500 + ["late"] * 500)
    increase = release.increase(since=before)
    assert (increase.items, increase.appeared) == (["a"], ["late"])
    with pytest.raises(NotPublishedError):
        increase["late"]


def test_heavy_hitters_compare_what_came_after_an_item_was_found():
    """A larger node replaces what a smaller one said of an item: that changes its count, and no increase."""
    made = hitters(source=seeded_source(3))
    releases = [made.step(EVENTS) for _ in range(30)]
    parts = {release.counts[0] - release.followed[0] for release in releases[1:]}
    assert len(parts) > 1
    for since in (3, 9, 20):
        increase = releases[-1].increase(since=releases[since - 1])
        assert increase["a"].lower <= 400 * (30 - since) <= increase["a"].upper


@pytest.mark.parametrize("make", [window, trees])
def test_where_no_law_is_known_both_intervals_are_added(make):
    made = make()
    releases = [made.step(EVENTS) for _ in range(8)]
    increase = releases[-1].increase(releases[5])
    assert releases[-1].over_time.terms is None
    (low, high), (old_low, old_high) = (
        {row.item: row for row in release.rows(0.975)}["a"][2:] for release in (releases[-1], releases[5])
    )
    least = low - old_high
    assert increase["a"][2:] == (least if make is window else max(0.0, least), high - old_low)


@pytest.mark.parametrize("make", [known, unknown, any_horizon])
def test_a_second_run_shares_no_noise_with_the_first(make, account):
    made = make(ledger=account)
    for _ in range(5):
        before = made.step(EVENTS)
    old = made.to_bytes()
    last = made.step(EVENTS)
    again = type(made).from_bytes(old, ledger=account, restored=True)
    assert again.step(EVENTS).to_payload() == last.to_payload()
    second = again.step(EVENTS)
    third = again.step(EVENTS)
    assert second.over_time.run != last.over_time.run
    assert last.over_time.run == before.over_time.run
    assert width(second.increase(last)) > 1.2 * width(third.increase(second))
    apart = [made.error(tick) for tick in (6, 7)]
    assert width(second.increase(last)) >= 2 * 1.96 * math.hypot(*apart)  # independent: the variances add up
    assert second.increase(last)["a"].lower <= 400 <= second.increase(last)["a"].upper


def test_heavy_hitters_of_a_second_run_add_both_intervals(account):
    made = hitters(ledger=account)
    for _ in range(5):
        before = made.step(EVENTS)
    old = made.to_bytes()
    made.step(EVENTS)
    again = type(made).from_bytes(old, ledger=account, restored=True)
    again.step(EVENTS)
    second = again.step(EVENTS)
    increase = second.increase(before)
    assert width(increase) >= 0.99 * added(second, before)
    assert increase["a"].lower <= 800 <= increase["a"].upper


def test_other_streams_and_releases_without_ticks_are_refused():
    one, other = known(), hitters()
    first, second = one.step(EVENTS), other.step(EVENTS)
    with pytest.raises(ParameterError, match="of the same stream"):
        other.step(EVENTS).increase(first)
    alone = dc.top_k(EVENTS, 2, dc.Budget(1.0, 1e-6))
    for pair in ((alone, second), (second, alone)):
        with pytest.raises(ParameterError, match="increase works with releases over time"):
            pair[0].increase(pair[1])


@pytest.mark.parametrize("horizon", [40, None])
def test_a_counter(horizon, account):
    counter = dc.continual.Counter(horizon, BUDGET, remember=3, ledger=account)
    totals = [counter.step(100) for _ in range(20)]
    risen = counter.increase(since=18)
    assert risen.value == totals[19] - totals[17]
    assert risen.lower <= 200 <= risen.upper
    assert risen.upper - risen.lower < 0.6 * 2 * 1.96 * (counter.error(20) + counter.error(18))
    with pytest.raises(ParameterError, match=r"tick 4 is not remembered: pass what was published then \(before="):
        counter.increase(since=4)
    assert counter.increase(since=18, before=totals[17]) == risen
    assert counter.increase(4, before=totals[3]).value == totals[19] - totals[3]
    state = counter.to_bytes()
    assert dc.continual.Counter.from_bytes(state, ledger=account).increase(18) == risen
    with pytest.raises(ParameterError, match="before the latest one, which is tick 20, not 20"):
        counter.increase(since=20)
    counter.step(100)
    again = dc.continual.Counter.from_bytes(state, ledger=account, restored=True)
    assert again.increase(18) == risen  # both of the first run
    again.step(100)  # as it was published
    again.step(100)
    fresh = again.increase(20)
    assert fresh.upper - fresh.lower > 2 * 1.9 * math.hypot(counter.error(20), counter.error(22))
    again.step(100)
    narrow = again.increase(22)
    assert narrow.upper - narrow.lower < 0.6 * (fresh.upper - fresh.lower)


def test_counters_side_by_side_hold_at_once():
    counters = dc.continual.Counter(40, BUDGET, size=50, max_items_per_event=2, remember=1)
    counters.step(np.full(50, 10))
    counters.step(np.arange(50))
    increase = counters.increase(since=1)
    one = dc.continual.Counter(40, BUDGET.__class__.zcdp(counters._rho / 2), remember=1)
    one.step(1), one.step(1)
    alone = one.increase(since=1)
    assert increase.items != list(range(50))  # the largest first
    assert sorted(increase.items) == list(range(50))
    assert width(increase, 0) > 1.3 * (alone.upper - alone.lower)


def test_people_never_become_fewer():
    people = dc.continual.DistinctCount(40, dc.Budget(0.1, 1e-6), remember=5)
    for _ in range(3):
        people.step(["ann", "bob"])
    assert people.increase(since=1).lower == 0.0


def test_a_description_can_be_read_again():
    for made in (known(), any_horizon(), trees(), dc.continual.Histogram(9, BUDGET, ["a"], 1, mechanism="tree")):
        for tick in (1, 5, 8):
            told = made.over_time(tick)
            assert OverTime.from_dict(json.loads(json.dumps(told.to_dict()))) == told
