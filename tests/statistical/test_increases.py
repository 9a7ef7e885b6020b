"""Intervals of increases hold together as often as they say, on flat, skewed, few and many counts.

Seeded: every run is the same. Noise is drawn by the compiled code. Twins with another variance fail the same check.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.releases.over_time import OverTime, Term, reach_of_increase

SINCE, TICK, RUNS = 4, 9, 1500
BUDGET = dc.Budget(1.0, 1e-6)
MECHANISMS = {
    "unknown": dc.continual.Histogram(16, BUDGET, max_items_per_event=1),
    "unknown, no horizon": dc.continual.Histogram(None, BUDGET, max_items_per_event=1),
    "unknown, tree": dc.continual.Histogram(16, BUDGET, max_items_per_event=1, mechanism="tree"),
    "unknown, kept": dc.continual.Histogram(16, BUDGET, max_items_per_event=1, keep_discovered=True),
}
KNOWN = dc.continual.Histogram(16, dc.Budget(0.05, 1e-6), list(range(12)), 1)


def shapes(plain):
    """(counts then, counts at the later tick): far from the cut, near it, below it."""
    sigma, cut = plain.error(SINCE), plain.scheme.cut(TICK)

    def levels(*pairs, at=TICK):
        cut = plain.scheme.cut(at)
        return np.concatenate([np.full(items, max(1, round(cut + away * sigma))) for items, away in pairs])

    flat, few = levels((20, 12)), levels((1, 9))
    skewed = np.maximum(1, (cut * 12 / np.arange(1, 60)).astype(np.int64))
    return {
        "flat": (flat, flat + 50),
        "few": (few, few + 3),
        "skewed": (skewed, skewed + skewed // 4),
        "many": (levels((150, 8)), levels((150, 9))),
        "at the cut": (levels((40, 0)), levels((40, 0))),
        "below, a few pass": (levels((300, -2.5), (3, 10)), levels((300, -2.0), (3, 11))),
        "passing the cut": (levels((100, -2.0)), levels((100, 3.0))),
        "listed early by noise": (levels((1000, -3.2), at=SINCE), levels((1000, 3.0))),
    }


def pairs(plain, then, now, runs):
    """The releases of both ticks, runs side by side: the noises of items are independent of each other."""
    scheme, source, size = plain.make_scheme(), seeded_source(2026), len(then)
    nothing, found = np.zeros(size * runs, np.int64), {}
    if plain.domain_is_known:
        scheme.state = scheme.factor.start(size * runs)
    for tick in range(1, TICK + 1):
        total = np.tile(then if tick <= SINCE else now, runs)
        where, noisy = scheme.step(total, nothing, tick, lambda: nothing, source)
        if tick in (SINCE, TICK):
            found[tick] = where, noisy, scheme.threshold, np.searchsorted(where, np.arange(runs + 1) * size)
    for run in range(runs):
        made = []
        for tick, (where, noisy, cut, starts) in found.items():
            start, end = starts[run : run + 2]
            items, model = where[start:end] - run * size, plain.error_model(tick, end - start)
            laws = {"threshold": cut, "over_time": plain.over_time(tick)}
            made.append(dc.Release(pa.array(items), noisy[start:end], plain.guarantee, model, **laws))
        yield made


def misses(plain, then, now, confidence=0.95, runs=RUNS, change=lambda release: release):
    """In which share of the runs an interval does not contain the true increase; and the mean width of all."""
    failed, widths = 0, []
    for earlier, later in pairs(plain, then, now, runs):
        increase = change(later).increase(change(earlier), confidence)
        true = (now - then)[increase.items]
        failed += bool(np.any((true < increase.lower) | (true > increase.upper)))
        widths += (increase.upper - increase.lower).tolist()
    return failed / runs, float(np.mean(widths)) if widths else 0.0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("shape", shapes(MECHANISMS["unknown"]))
def test_intervals_of_increases_of_listed_items_hold_together(mechanism, shape):
    plain = MECHANISMS[mechanism]
    runs = RUNS if len(shapes(plain)[shape][0]) < 40 else 300
    share, _ = misses(plain, *shapes(plain)[shape], runs=runs)
    assert share <= 0.05


def test_they_are_narrower_than_both_intervals_added():
    plain = dc.continual.Histogram(365, BUDGET, max_items_per_event=1)
    then, now = shapes(plain)["flat"]
    exact = misses(plain, then, now, runs=20)[1]

    def without_law(release):
        release.over_time = replace(release.over_time, terms=None)
        return release

    added = misses(plain, then, now, runs=20, change=without_law)[1]
    assert exact < 0.75 * added


def with_variance(times):
    """A twin whose noise is taken for this much of what it is."""

    def change(release):
        terms = release.over_time.terms
        wrong = tuple(Term(name, replace(noise, sigma=noise.sigma * times), tick) for name, noise, tick in terms)
        release.over_time = OverTime(release.over_time.tick, release.over_time.run, wrong)
        return release

    return change


def of_two_runs(release):
    """A twin that adds the variances of both ticks."""
    release.over_time = replace(release.over_time, run="")
    return release


def test_a_known_list_fails_as_often_as_stated_and_twins_are_noticed():
    then, now = 1000 + np.arange(12) * 40, 3000 + np.arange(12) * 90
    right, width = misses(KNOWN, then, now)
    assert 0.03 <= right <= 0.05 + 0.012
    assert misses(KNOWN, then, now, change=with_variance(0.85))[0] > 0.08
    added, wider = misses(KNOWN, then, now, change=of_two_runs)
    assert added < 0.03  # not what was stated: the same check notices that it wastes
    assert wider > 1.1 * width


def test_a_list_of_items_that_came_is_noticed_where_the_cut_is_left_out():
    """Items listed for their noise alone: their later noise is not as high, and a difference alone does not know it."""
    plain = MECHANISMS["unknown"]
    then, now = shapes(plain)["listed early by noise"]

    def without_cut(release):
        one = replace(release.error_model.noise, draws=1)  # about as many as were listed at both ticks
        release.error_model = replace(release.error_model, noise=one, of_published=False)
        return release

    assert misses(plain, then, now, runs=200, change=without_cut)[0] > 0.08


@pytest.mark.parametrize(("horizon", "rho"), [(16, 0.5), (None, 0.5), (16, 1e-3), (3, 50.0)])
def test_a_counter_fails_as_often_as_stated(horizon, rho):
    """4,000 counters side by side; whole counts make small noises fail less often than stated."""
    size, ticks = 4000, min(horizon or 12, 12)
    plain = dc.continual.Counter(horizon, dc.Budget.zcdp(rho))
    counters = dc.continual.Counter(
        horizon, dc.Budget.zcdp(rho * size), size=size, max_items_per_event=size, source=seeded_source(7)
    )
    published = [counters.step(np.full(size, 5)) for _ in range(ticks)]
    for one, other in (*pairwise(range(1, ticks + 1)), (1, ticks)):
        around = reach_of_increase(plain.over_time(other), plain.over_time(one), 0.05)
        off = np.abs(published[other - 1] - published[one - 1] - 5 * (other - one))
        assert np.mean(off > around) <= 0.05 + 0.011  # three standard deviations of the share itself
        if around > 5:
            assert np.mean(off > around - 2) >= 0.05 - 0.011


@pytest.mark.parametrize("horizon", [12, None])
@pytest.mark.parametrize("events", ["flat", "skewed", "few"])
def test_heavy_hitters(horizon, events):
    """From the compiled mechanism itself: items are found by sketches, and nodes replace nodes between the ticks."""
    counts = {"flat": [400] * 12, "skewed": [3000 // rank for rank in range(1, 20)], "few": [500]}[events]
    failed, widths, listed, runs = 0, [], 0, 150
    for seed in range(runs):
        plain = dc.continual.HeavyHitters(horizon, BUDGET, 64, remember=8, source=seeded_source(seed))
        for tick in range(1, 12):
            times = [count + (tick * place) % 7 for place, count in enumerate(counts)]
            plain.step(np.repeat(np.arange(len(counts)), times))
        increase = plain.increase(since=SINCE)
        true = np.array(
            [
                sum(counts[item] + (tick * item) % 7 for tick in range(SINCE + 1, 12))
                for item in map(int, increase.items)
            ]
        )
        failed += bool(np.any((true < increase.lower) | (true > increase.upper)))
        listed += len(increase)
        widths += (increase.upper - increase.lower).tolist()
    assert failed / runs <= 0.05 + 0.036  # two standard deviations of the share itself
    assert listed >= runs
    assert failed or events != "flat" or horizon is None
