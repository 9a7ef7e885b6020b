"""The audit of releases over time without a horizon: what it adds up over epochs, and that it sees what is broken.

That the examples pass, with their twins, is for `make audit`. Runs use the system's source: each mechanism raises a
false alarm with probability below 1e-7.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.continual import Counter, HeavyHitters, Histogram
from discreet.continual._factors import Buffered
from discreet.continual.anatomy import EPOCHS, Doubling, Tree, epoch_of
from discreet.noise import seeded_source
from discreet_audit import check, core
from discreet_audit.continual import _left_open, cost_of_an_event, doubled, noise_passes, shown_in_any_epoch, unsplit

FAST = core.Effort("fast", runs=200, large_pairs=60, released_pairs=20, length=-1)
BUDGET = dc.Budget(1.0, 1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        Histogram(None, BUDGET, None, 2, keep_discovered=True, max_weight=3),
        Histogram(None, BUDGET, None, 1, mechanism="limit", limit=40),
        Histogram(None, BUDGET, k=2),
        HeavyHitters(None, BUDGET, 8, window=3),
        HeavyHitters(None, dc.Budget(2.0, 0.02), 3, mechanism="chan", base=2),
    ],
    ids=repr,
)
def test_unusual_configurations(mechanism, monkeypatch):
    monkeypatch.setattr(core, "QUICK", FAST)
    report = check(mechanism)
    assert report.passed, str(report)
    assert report.kinds == ("structure", "exact", "statistical", "coupled", "sabotage")
    assert report.mechanism.endswith("any horizon")


@pytest.mark.parametrize("make", [Buffered, lambda ticks: Tree(ticks, 2)], ids=["blt", "tree"])
def test_an_event_costs_rho_in_whichever_epoch_it_comes(make):
    """All of it is used; with the whole of rho for the totals, too, it would cost a quarter to three quarters more."""
    factor, rho = Doubling(lambda ticks, share: make(ticks)), 0.1
    sigma = factor.sigma(rho)
    _, cost, pairs = cost_of_an_event(factor, sigma, 1, FAST)
    assert 0.9 * rho < cost <= rho * (1 + 1e-9)
    assert pairs > 400
    assert cost_of_an_event(factor, sigma, 3, FAST)[1] == pytest.approx(3 * cost)
    unsplit(factor)
    assert 1.5 * rho < cost_of_an_event(factor, sigma, 1, FAST)[1] < 1.8 * rho


@pytest.mark.parametrize("people", [False, True], ids=["events", "people"])
def test_hidden_items_cost_half_of_delta_over_all_epochs(people):
    m = 3 if people else 1
    scheme = Histogram(None, BUDGET, **({"unit": dc.User(m)} if people else {"max_items_per_event": 1})).scheme
    half, factor = BUDGET.delta / 2, scheme.factor
    each = shown_in_any_epoch(factor, scheme.sigma, scheme.cut, 7)
    assert len(each) == EPOCHS
    assert all(m * cost <= half * 2**e * factor.tick_share(2**e) for e, cost in enumerate(each))
    assert 0.3 * half < m * sum(each) <= half
    assert sum(shown_in_any_epoch(factor, scheme.sigma, lambda tick: scheme.cut(tick) - 4, 7)) * m > half
    factor.tick_share = lambda tick: 1 / epoch_of(tick)[1]
    assert m * sum(shown_in_any_epoch(factor, scheme.sigma, scheme.cut, 7)) > 5 * half


def test_what_is_left_out_of_a_long_epoch_changes_little():
    """Four ticks stand for all of an epoch: at least what its ticks have together, and not twice as much."""
    scheme = Histogram(None, BUDGET, None, 1).scheme
    some = shown_in_any_epoch(scheme.factor, scheme.sigma, scheme.cut, 3)
    every = shown_in_any_epoch(scheme.factor, scheme.sigma, scheme.cut, 9)
    assert some[:3] == every[:3]
    assert all(0.9 * b < a < 2 * b for a, b in zip(some[3:9], every[3:9], strict=True))


@pytest.mark.parametrize("make", [Buffered, lambda ticks: Tree(ticks, 2)], ids=["blt", "tree"])
@pytest.mark.parametrize("tick", [1, 7, 8, 13])
def test_the_law_of_a_tick_is_what_is_drawn(make, tick):
    """Seeded: 40 000 noises, six standard errors; roundings to whole counts are on the safe side."""
    factor = Doubling(lambda ticks, share: make(ticks))
    sigma, source, state = Fraction(3), seeded_source(8), factor.start(40_000)
    noise = [factor.advance(state, t, sigma, source) for t in range(1, tick + 1)][-1]
    for least in (3, 8, 15):
        law, seen = noise_passes(doubled(factor, sigma, tick), least), float((noise >= least).mean())
        width = 6 * math.sqrt(law / 40_000)
        assert seen <= law + width
        assert seen >= noise_passes(doubled(factor, sigma, tick), least + 1) - width


def test_sketches_that_live_on_are_seen_where_an_epoch_ends_inside_of_a_node():
    """Base 3 has 3 + 1 of 4 ticks, base 2 all of 2^e in one node."""
    assert _left_open(HeavyHitters(None, BUDGET, 8, base=3))[0] == 2
    assert not _left_open(HeavyHitters(None, BUDGET, 8, base=2))


def test_known_and_unknown_items_have_the_noise_of_a_counter():
    """Seeded: 3000 counters at ticks around the ends of epochs, six standard errors of a variance."""
    width = 6 * math.sqrt(2 / 3000)
    known = Histogram(None, BUDGET, range(3000), 1, source=seeded_source(3))
    counter = Counter(None, BUDGET, method="blt")
    for t in range(1, 18):
        noise = np.asarray(known.step([]).counts, float)
        assert (noise**2).mean() == pytest.approx(known.error(t) ** 2, rel=width)
        assert known.error(t) == pytest.approx(counter.error(t), rel=1e-6)
