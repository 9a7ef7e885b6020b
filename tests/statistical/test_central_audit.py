"""Draws of the compiled samplers through the real releases, on pairs of streams that are bad for each.

The lower bounds are wrong with probability 1e-6 at most, and the sources are seeded. A release passes while its bound
is at most delta; its sabotaged twins must be convicted by the same draws.
"""

import pytest
from tests.reference.sabotage import cut_one_lower, half_the_noise, sabotaged
from tests.reference.sampled import divergence_lower_bound

import discreet as dc
from discreet.central import Merged, Offset, ReducedMisraGries, Stability
from discreet.noise import seeded_source
from discreet.published import ChanMisraGries, PrivateMisraGries, PrivateSpaceSaving
from discreet_audit.central import length_of_the_data
from discreet_audit.exact import published
from discreet_audit.statistical import clopper_pearson

EPSILON, DELTA, RUNS = 1.0, 0.03, 2000
BUDGET = dc.Budget(EPSILON, DELTA)
PURE = dc.Budget(EPSILON)


def summary(kind, stream, *capacity):
    made = kind(*capacity, seed=3)
    made.update(stream)
    return made


# One event that creates a key, and one of a key that is as frequent as the cut.
NEW = (["a", "b"], ["b"])
TALL = (["a"] * 12, ["a"] * 11)
# One event that takes 1 from two counters far above the cut.
BOTH = (["a"] * 40 + ["b"] * 40 + ["c"], ["a"] * 40 + ["b"] * 40)

CASES = {
    "offset": (Offset(BUDGET, 2), dc.MisraGries, NEW, TALL),
    "pmg": (PrivateMisraGries(BUDGET, 2), dc.MisraGries, NEW, TALL),
    "stability": (Stability(BUDGET), dc.ExactCounts, NEW, TALL),
    "stability, gaussian": (Stability(BUDGET, noise="gaussian"), dc.ExactCounts, NEW, TALL),
    "merged": (Merged(BUDGET, 2), dc.MisraGries, (["a", "b", "c"], ["a", "b"]), BOTH),
    "chan": (ChanMisraGries(BUDGET, 2), dc.MisraGries, (["a", "b", "c"], ["a", "b"]), BOTH),
    "space saving": (
        PrivateSpaceSaving(BUDGET, 2, stream_length=12),
        dc.SpaceSaving,
        (["a"] * 6 + ["b"] * 6, ["a"] * 6 + ["b"] * 5),
        TALL,
    ),
}


def shown(output):
    return tuple(item for item, _ in output[0])


def counts(output):
    return tuple(count for _, count in output[0])


def total(output):
    """The sum moves by all that the counters move by."""
    return len(output[0]), sum(count for _, count in output[0]), output[1]


def offset(output):
    return output[1]


def bound(mechanism, kind, pair, epsilon=EPSILON, runs=RUNS):
    capacity = (2,) if kind is not dc.ExactCounts else ()
    summaries = [summary(kind, stream, *capacity) for stream in pair]
    draws = []
    for side, made in enumerate(summaries):
        source = seeded_source(side + 1)
        draws.append([published(mechanism, made, source) for _ in range(runs)])
    views = (shown, counts, total, offset)
    return max(divergence_lower_bound(a, b, epsilon, views) for a, b in (draws, draws[::-1]))


@pytest.mark.parametrize("name", CASES)
def test_right_releases_are_not_convicted_and_twins_are(name):
    mechanism, kind, *pairs = CASES[name]
    assert max(bound(mechanism, kind, pair) for pair in pairs) <= DELTA
    assert max(bound(half_the_noise(mechanism), kind, pair) for pair in pairs) > DELTA


def test_a_lower_cut_is_convicted():
    """Two lower: the exact laws tell one lower, a few thousand draws do not."""
    mechanism, kind, new, _ = CASES["stability"]
    assert bound(cut_one_lower(cut_one_lower(mechanism)), kind, new, runs=6000) > DELTA


def test_the_published_private_space_saving_is_convicted():
    """Its threshold comes from the private length: 18 and 19 events have different cuts."""
    budget = dc.Budget(1.0, 1e-3)
    corrected = PrivateSpaceSaving(budget, 2, stream_length=19, calibration="paper")
    pair = (["a"] * 18 + ["b"], ["a"] * 18)
    assert bound(next(length_of_the_data(corrected)).mechanism, dc.SpaceSaving, pair) > 0.3
    assert bound(corrected, dc.SpaceSaving, pair) <= 1e-3


def test_pure_releases_over_a_universe():
    """The event moves 2 of the sensitivity 3, so a quarter of the noise loses 8/3 of epsilon."""
    mechanism = ReducedMisraGries(PURE, 2, universe=["a", "b", "c", "d"], spurious=0.5)
    pair = (["a"] * 5, ["a"] * 4)
    assert bound(mechanism, dc.MisraGries, pair, runs=1000) == 0.0
    assert bound(sabotaged(mechanism, scale=lambda scale: scale / 4), dc.MisraGries, pair, runs=1000) > 0.0


def test_bounds_of_a_probability():
    low, high = clopper_pearson(30, 100, 0.025)
    assert (low, high) == (pytest.approx(0.2124, abs=1e-4), pytest.approx(0.3998, abs=1e-4))
    assert clopper_pearson(0, 10, 0.05)[0] == 0.0
    assert clopper_pearson(10, 10, 0.05)[1] == 1.0
