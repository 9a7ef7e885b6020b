"""Intervals of the stability histogram: for the items that passed, whatever else was counted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import Offset, Stability, merge_releases
from discreet.noise import seeded_source
from discreet.releases.error_model import ErrorModel, Noise

BUDGET = dc.Budget(1.0, 1e-9)


def law(noise):
    reach = 60 * int(noise.scale) + 60
    z = np.arange(-reach, reach + 1)
    scale = float(noise.scale)
    weights = np.exp(-abs(z) / scale) if noise.law == "laplace" else np.exp(-(z**2) / (2 * scale**2))
    return z, weights / weights.sum()


def worst_failure(model, confidence, cut):
    """The largest chance, over all true counts, that the interval of an item fails, given that it passed the cut."""
    z, p = law(model.noise)
    guarantee, worst = Stability(BUDGET).guarantee, 0.0
    for f in range(1, cut + 4 * int(model.noise.scale) * 12):
        counts = f + z[f + z >= cut]
        chance = p[f + z >= cut]
        if not len(counts):
            continue
        release = dc.Release(pa.array(np.arange(len(counts))), counts, guarantee, model, threshold=cut)
        lower, upper = release.bounds(confidence)
        order = np.array(release.items)
        failed = (f < lower) | (f > upper)
        worst = max(worst, float(chance[order][failed].sum() / chance.sum()))
    return worst


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3)])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_an_interval_fails_no_more_often_than_said_given_that_the_item_passed(kind, scale, confidence):
    """Exactly, for every true count. Distances for a listed item as if it had not been selected fail for certain."""
    model = ErrorModel(Noise(kind, scale), of_published=True)
    assert worst_failure(model, confidence, cut=15) <= 1 - confidence + 1e-9
    assert worst_failure(replace(model, of_published=False), confidence, cut=15) > 0.99


def failures(mechanism, counts, changed=None, runs=200):
    """How many of the releases have an interval that fails, at 80 percent."""
    summary = dc.ExactCounts(seed=1)
    summary.update(np.repeat(np.arange(len(counts)), counts))
    failed = 0
    for seed in range(runs):
        release = mechanism(summary, seeded_source(seed))
        if changed is not None:
            release.error_model = changed(release.error_model)
        lower, upper = release.bounds(0.8)
        truth = counts[np.array(release.items, dtype=int)]
        failed += bool(((truth < lower) | (truth > upper)).any())
    return failed


STREAMS = {
    "just below the cut": np.full(4000, 19),
    "around the cut": np.repeat(np.arange(10, 40), 100),
    "far above": np.full(500, 1000),
    "rare and frequent": np.concatenate([np.full(5000, 17), np.full(20, 300)]),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_all_intervals_hold_at_once(name, noise):
    """At 80 percent 40 of 200 may fail; more than 67 have a probability below 1e-5, and the seeds are fixed."""
    assert failures(Stability(BUDGET, noise=noise), STREAMS[name]) <= 67


def test_intervals_for_the_listed_items_alone_are_caught():
    """The noise of as many draws as items passed, without a thought of how they were selected."""
    mechanism, counts = Stability(BUDGET), STREAMS["just below the cut"]
    assert failures(mechanism, counts, lambda model: replace(model, of_published=False), runs=50) > 40


def test_intervals_are_as_narrow_as_those_of_the_offset_release():
    data = np.random.default_rng(3).zipf(1.4, 100_000) % 5000
    exact, sketch = dc.ExactCounts(), dc.MisraGries(4096)
    for summary in (exact, sketch):
        summary.update(data)
    ours, other = dc.release(exact, BUDGET), Offset(BUDGET, 4096)(sketch)
    assert float((ours.bounds()[1] - ours.counts).max()) <= float((other.bounds()[1] - other.counts).max())
    assert float((ours.counts - ours.bounds()[0])[0]) <= float((other.counts - other.bounds()[0])[0])
    restored = dc.Release.from_payload(ours.to_payload())
    assert restored.bounds()[0].tolist() == ours.bounds()[0].tolist()
    # The head is selected from all that passed: its intervals are theirs.
    assert ours.head(3).bounds()[0].tolist() == ours.bounds()[0][:3].tolist()


def test_a_public_bound_takes_the_place_of_the_items_that_passed():
    mechanism = Stability(BUDGET, max_distinct=500)
    summary = dc.ExactCounts()
    summary.update([1] * 30)
    assert mechanism(summary).error_model == mechanism.error_model


def test_a_sum_of_releases_covers_items_that_did_not_pass():
    """Its lower ends have no cut of their own."""
    releases = []
    for _ in range(2):
        summary = dc.ExactCounts()
        summary.update(np.repeat(np.arange(30), 200))
        releases.append(dc.release(summary, BUDGET))
    merged = merge_releases(releases)
    assert not merged.error_model.of_published
    assert merged.error_model.noise.draws >= 2**63
