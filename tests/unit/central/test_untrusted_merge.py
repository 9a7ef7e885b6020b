"""Adding up releases."""

import numpy as np
import pytest

import discreet as dc
from discreet.central import Offset, Stability, UserSketch, merge_releases
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import seeded_source
from discreet.published import PrivateMisraGries

BUDGET = dc.Budget(1.0, 1e-4)


def release(stream, seed, kind=Offset, budget=BUDGET):
    sketch = dc.MisraGries(16)
    sketch.update(stream)
    return kind(budget, 16)(sketch, seeded_source(seed))


def test_counts_add_up_and_the_weakest_promise_is_made():
    first = release(["a"] * 500 + ["b"] * 300, 1)
    second = release(["a"] * 200, 2, budget=dc.Budget(2.0, 1e-5))
    merged = merge_releases([first, second])
    assert merged.items == ["a", "b"]
    assert merged.counts.tolist() == [first.counts[0] + second.counts[0], first.counts[1]]
    assert (merged.guarantee.epsilon, merged.guarantee.delta) == (2.0, 1e-4)
    assert merged.offset == first.offset + second.offset
    assert "all events of a unit are in one stream" in merged.guarantee.assumptions
    assert merged.guarantee.seeded
    assert "sum of 2" in merged.guarantee.mechanism


def test_nothing_published_adds_up_to_nothing():
    assert len(merge_releases([release([], 1), release([], 2)])) == 0


@pytest.mark.parametrize("kind", [Offset, PrivateMisraGries])
def test_bounds_hold(kind):
    """200 seeded sums of four at 80 percent; an item may be missing from some of them."""
    rng = np.random.default_rng(1)
    streams = [(rng.zipf(1.5, 2000) % 100).tolist() for _ in range(4)]
    sketches = []
    for stream in streams:
        sketch = dc.MisraGries(16)
        sketch.update(stream)
        sketches.append(sketch)
    truth = np.bincount(np.concatenate(streams), minlength=100)
    failures = 0
    for seed in range(200):
        merged = merge_releases([kind(BUDGET, 16)(s, seeded_source(4 * seed + i)) for i, s in enumerate(sketches)])
        lower, upper = merged.bounds(0.8)
        f = truth[merged.items]
        failures += bool(((f < lower) | (f > upper)).any())
        if kind is Offset:
            assert np.isfinite(upper).all()
    assert failures <= 40


def test_the_error_grows_with_the_number():
    one = release(["a"] * 500, 1)
    widths = []
    for count in (1, 4, 16):
        lower, upper = merge_releases([one] * count).bounds()
        widths.append(float(upper[0] - lower[0]))
    assert widths[0] < widths[1] / 3 < widths[2] / 9


def test_what_does_not_go_together():
    with pytest.raises(ParameterError, match="one or more"):
        merge_releases([])
    with pytest.raises(ParameterError, match="merge_releases takes a list of one or more releases"):
        merge_releases([dc.MisraGries(2)])
    with pytest.raises(IncompatibleSummaryError, match="kinds of mechanism"):
        merge_releases([release([], 1), release([], 1, PrivateMisraGries)])
    users = dc.UserMisraGries(16, 2)
    with pytest.raises(IncompatibleSummaryError, match="different units"):
        merge_releases([release([], 1), UserSketch(BUDGET, 16, dc.User(2))(users, seeded_source(1))])


def test_items_of_several_kinds():
    merged = merge_releases([release(["a"] * 500, 1), release([1] * 400, 2), release([b"a"] * 300, 3)])
    assert merged.items == ["a", 1, b"a"]


def test_exact_counts_of_several_streams():
    releases = []
    for seed in range(3):
        counts = dc.ExactCounts()
        counts.update([2**63 + 1] * 100 + [1] * 50)
        releases.append(Stability(BUDGET)(counts, seeded_source(seed)))
    merged = merge_releases(releases)
    assert merged.items == [2**63 + 1, 1]
