"""Counters drawn anew still bound the fraction of heavy elements: for all small counts, and on hard streams."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.pan.window import Window

PAN = dc.pan


def ramp(n, low, high):
    return min(max(Fraction(n - low, high - low), Fraction(0)), Fraction(1))


def seen(epochs, t, low, high):
    """P[the bit was seen], for a counter in the window at the end: from the chances that it wrapped in each epoch."""
    before = np.prod([1 - Fraction(min(n, t), t) for n in epochs[:-1]])
    return sum((1 - before * (u >= epochs[-1]) for u in range(low, high)), Fraction(0)) / (high - low)


@pytest.mark.parametrize("intrusions", [1, 2])
@pytest.mark.parametrize("t", [2, 4, 5])
def test_the_bounds_hold_for_all_small_counts_and_are_reached(t, intrusions):
    for high in range(1, t + 1):
        for low in range(high):
            c, d = Window((t,), (1,), low, high).reach_after(intrusions)
            cases = [
                (ramp(sum(epochs), low, high), seen(epochs, t, low, high))
                for epochs in itertools.product(range(t + 1), repeat=intrusions + 1)
            ]
            assert all(d * r - 1e-12 <= g <= c + (1 - c) * r + 1e-12 for r, g in cases)
            assert max(g for r, g in cases if r == 0) == pytest.approx(c)  # `low` occurrences in one early epoch
            if intrusions == 1 and t % 4 == 0 and low * 2 == high == t:
                assert min(g for r, g in cases if r == 1) == pytest.approx(d)


def test_several_tables_have_the_mean_of_their_bounds():
    both = Window((8, 4, 2), (30, 30, 30), 2, 4)
    c8, d8 = Window((8,), (30,), 2, 4).reach_after(1)
    c4, d4 = Window((4,), (30,), 2, 4).reach_after(1)
    assert both.reach_after(1) == pytest.approx(((c8 + 2 * c4) / 3, (d8 + 2 * d4) / 3))
    assert both.reach_after(0) == (0, 1)


HARD = {  # occurrences before and after the intrusion of three thirds of the universe, for k = 8 and rho = 1
    "all at k/2 before": ((4, 4, 4), (0, 0, 0)),
    "heavy in two halves": ((4, 4, 0), (4, 4, 0)),
    "heavy before": ((8, 0, 0), (0, 0, 0)),
    "heavy after": ((0, 0, 0), (0, 20, 20)),
    "some of all": ((8, 2, 3), (0, 6, 1)),
}
THIRD = 4000


def after_one(name, seed, **options):
    before, after = HARD[name]
    made = PAN.HeavyFraction(3 * THIRD, 8, budget=dc.Budget(16.0), source=seeded_source(seed), **options)
    elements = np.arange(3 * THIRD)
    made.update(np.repeat(elements, np.repeat(before, THIRD)))
    made.announce_intrusion()
    made.update(np.repeat(elements, np.repeat(after, THIRD)))
    truth = np.clip((np.add(before, after) - 4) / 4, 0, 1).mean()
    return truth, made


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("options", [{"method": "counters"}, {"max_count": 8}, {"method": "two_tables"}], ids=str)
def test_intervals_cover_after_an_announced_intrusion(name, options):
    """At 1 - 1e-7 none of ten misses."""
    for seed in range(10):
        truth, made = after_one(name, seed, confidence=1 - 1e-7, **options)
        estimate = made.release()
        assert estimate.lower <= truth <= estimate.upper
    if name == "heavy before" and "max_count" not in options:
        assert estimate.upper < 0.8


def test_without_the_bounds_they_would_not(monkeypatch):
    monkeypatch.setattr(Window, "reach_after", lambda self, intrusions: (0.0, 1.0))
    for name in ("all at k/2 before", "heavy in two halves"):
        truth, made = after_one(name, 1, method="counters", confidence=1 - 1e-7)
        estimate = made.release()
        assert not estimate.lower <= truth <= estimate.upper


def test_what_is_planned_decides_the_default():
    def method(*k, **options):
        return PAN.HeavyFraction(100, *k, budget=dc.Budget(1.0), **options).parameters["method"]

    assert method(8) == method(max_count=8) == method(8, max_count=8, announced_intrusions=1) == "counters"
    assert method(8, announced_intrusions=1) == method(1) == method(8, rho=8.0) == "two_tables"
    options = {"universe": 10**6, "k": 8}
    sized = [PAN.HeavyFraction.for_accuracy(0.05, 0.1, 2.0, **options, announced_intrusions=n) for n in (0, 1)]
    assert [made.parameters["method"] for made in sized] == ["counters", "two_tables"]
    assert sized[0].sample_size < sized[1].sample_size / 4
