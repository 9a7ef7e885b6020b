"""Intervals of what a live histogram lists hold together as often as they say, whatever the shape of the counts.

Seeded: every run is the same. What is stated at 90 % must not pass for 95 %.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.service.runs import items_shown

TICK, RUNS = 3, 1500
PLAIN = dc.continual.Histogram(8, dc.Budget(1.0, 1e-6), max_items_per_event=1)
SIGMA, CUT = PLAIN.error(TICK), PLAIN.scheme.cut(TICK)


def levels(*pairs):
    """Counts: so many items, so many standard deviations from the cut."""
    return np.concatenate([np.full(items, max(1, round(CUT + away * SIGMA))) for items, away in pairs])


SHAPES = {
    "far above": levels((20, 12)),
    "one": levels((1, 8)),
    "at the cut": levels((40, 0)),
    "below, a few pass": levels((300, -2.5), (3, 10)),
    "skewed": np.maximum(1, (CUT * 12 / np.arange(1, 80)).astype(np.int64)),
}


def releases(counts, runs=RUNS):
    """Runs side by side: the noises of items are independent, so the items of all runs may be those of one scheme."""
    scheme, source = PLAIN.make_scheme(), seeded_source(2026)
    total, nothing = np.tile(counts, runs), np.zeros(len(counts) * runs, np.int64)
    for tick in range(1, TICK + 1):
        where, noisy = scheme.step(total, total if tick == 1 else nothing, tick, lambda: nothing, source)
    starts = np.searchsorted(where, np.arange(runs + 1) * len(counts))
    for run, (start, end) in enumerate(pairwise(starts)):
        items = where[start:end] - run * len(counts)
        model = PLAIN.error_model(TICK, len(items))
        yield dc.Release(pa.array(items), noisy[start:end], PLAIN.guarantee, model, threshold=scheme.threshold)


def misses(counts, confidence):
    """In which share of the releases an interval of a listed item does not contain the truth."""
    failed = 0
    for release in releases(counts):
        lower, upper = release.bounds(confidence)
        true = counts[list(release.items)]
        failed += bool(np.any((true < lower) | (true > upper)))
    return failed / RUNS


@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_listed_items_hold_together(shape):
    assert misses(SHAPES[shape], 0.95) <= 0.05


def test_what_holds_at_90_percent_does_not_pass_for_95():
    """Far above the cut an interval fails by two of the three tails that are counted: 3.3 % in place of 5 %."""
    assert misses(SHAPES["far above"], 0.95) <= 0.04
    assert misses(SHAPES["far above"], 0.90) > 0.05


def test_they_are_those_of_what_is_listed_and_not_of_all_there_might_be():
    """A union over 2^63 items was four times as wide."""
    model = PLAIN.error_model(TICK, 10)
    assert model.of_published
    assert model.distances(0.95)[1] < 0.4 * model.of_all.distances(0.95)[1]
    assert model.distances(0.95)[1] < 3.5 * SIGMA


def test_what_stays_listed_once_it_passed_is_selected_by_more_than_this_cut():
    kept = dc.continual.Histogram(8, dc.Budget(1.0, 1e-6), max_items_per_event=1, keep_discovered=True)
    assert not kept.error_model(TICK, 10).of_published
    assert kept.error_model(TICK, 10).distances(0.95) == PLAIN.error_model(TICK, 10).of_all.distances(0.95)


def test_a_page_shows_the_same_interval_while_at_most_k_items_pass():
    release = next(releases(SHAPES["far above"], 1))
    stated = PLAIN.error_model(TICK).of_at_least(30).distances(0.95)[1]
    shown = items_shown(release, 30)["items"]
    assert len(shown) == 20
    assert {row["upper"] - row["count"] for row in shown} == {stated}
    assert {row["count"] - row["lower"] for row in shown} == {stated}
    assert release.error_model.noise.draws == 20  # the release itself is as it was
