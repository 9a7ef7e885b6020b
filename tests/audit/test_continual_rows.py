"""The audit of continual releases: unusual configurations pass, their twins do not, and exact figures are exact.

Runs use the system's source: each mechanism raises a false alarm with probability below 1e-7.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.continual import Counter, DistinctCount, HeavyHitters, Histogram
from discreet.continual._factors import Buffered, CorrelatedNoise, Tree
from discreet_audit import check, core
from discreet_audit.closed_forms import NoiseLaw
from discreet_audit.continual import above_threshold_losses, choice_rho, difference_tail, node_of, shown_by_one_event
from discreet_audit.statistical import measure_outputs

FAST = core.Effort("fast", runs=200, large_pairs=60, released_pairs=20, length=-1)
BUDGET = dc.Budget(1.0, 1e-6)


def used(mechanism, *steps):
    for step in steps:
        mechanism.step(step)
    return mechanism


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(core, "QUICK", FAST)


def audited(mechanism):
    report = check(mechanism)
    assert report.passed, str(report)
    assert report.kinds == ("structure", "exact", "statistical", "coupled", "sabotage")
    assert len(report.twins) >= 2
    return report


@pytest.mark.parametrize("kind", [Counter, DistinctCount, Histogram, HeavyHitters])
def test_exact_figures_are_near_the_claim(kind):
    """So that a claim of half as much would fail. That every example passes, with its twins, is for `make audit`."""
    (case,) = (case for case in core.cases() if case.mechanism is kind)
    for given in case.examples():
        audit = case.of(given)
        made = audit.prepare(given)
        found = {"rho": [], "delta": []}
        for finding in audit.exact(made, FAST):
            found.setdefault(finding.quantity, []).append(finding.measured)
        assert found["rho"] or found["delta"], made
        if (rho := made.guarantee.rho) is not None:
            # Of people who come and go what is declared is a bound: nobody leaves and returns at once.
            least = 0.8 if getattr(made, "changes", 1) == 1 else 0.5
            assert least * rho < max(found["rho"]) <= rho * (1 + 1e-9), made
        if found["delta"]:
            # Converting rho leaves much of delta unused; a release behind a cut uses nearly all of it.
            least = 0.8 if kind is HeavyHitters else 0.15
            assert least * made.budget.delta < max(found["delta"]) <= made.budget.delta * (1 + 1e-9), made


@pytest.mark.parametrize(
    "mechanism",
    [
        Counter(1, BUDGET),
        used(Counter(300, dc.Budget.zcdp(0.1), method="tree"), 5, 7),
        Histogram(2, BUDGET, None, 2, keep_discovered=True),
        used(Histogram(30, BUDGET, None, 1, mechanism="tree"), ["a"]),
        Histogram(9, BUDGET, None, 1, mechanism="limit", limit=4),
        Histogram(9, BUDGET, None, 3, mechanism="meta", limit=4),
        Histogram(9, BUDGET, ["a", "b", "c"], None, 2, mechanism="sparse", switches=2, margin=5),
        Histogram(9, dc.Budget.zcdp(1.0), range(40), None, 30, mechanism="sparse", switches=2),
        HeavyHitters(1, BUDGET, 1),
        used(HeavyHitters(5, dc.Budget(3.0, 1e-3), 8, window=5), ["a", "b"]),
    ],
    ids=repr,
)
def test_unusual_configurations(mechanism):
    audited(mechanism)


def test_runs_of_above_threshold_are_checked_beside_many_choices():
    """Sixty counters and choices: half the noise of a run would be one part in two hundred of the whole."""
    report = check(Histogram(9, dc.Budget.zcdp(1.0), range(40), None, 30, mechanism="sparse", switches=2))
    twin = next(twin for twin in report.twins if "AboveThreshold" in twin.name)
    assert twin.caught_by.check == "runs of AboveThreshold"
    assert twin.caught_by.measured > 3.9 * twin.caught_by.claimed


def test_the_literal_theorem_3_is_caught():
    report = check(Histogram(3, BUDGET, None, None, 1, mechanism="meta", base=2, limit=30))
    twin = next(twin for twin in report.twins if "Thm 3" in twin.name)
    # 30 items of one event where the cut is for 2.
    assert twin.caught_by.measured > 5 * twin.caught_by.claimed


def test_a_node_is_read_from_what_it_does():
    histogram = Histogram(3, BUDGET, None, 2, mechanism="meta", base=2)
    node = node_of(histogram.scheme, False)
    assert node.law == "gaussian"
    assert node.choices == 0
    p = difference_tail(NoiseLaw("gaussian", node.scale, 1e-30), node.shift)
    assert 2 * 2 * p <= 0.5e-6 < 2 * 2 * difference_tail(NoiseLaw("gaussian", node.scale, 1e-30), node.shift - 1)
    gumbel = node_of(Histogram(3, BUDGET, None, None, 3, mechanism="meta", base=2).scheme, False)
    assert (gumbel.choices, gumbel.limit) == (3, 30)
    assert gumbel.tau == pytest.approx(float(gumbel.scale))


@pytest.mark.parametrize("tau", [0.7, 3.0, 20.0])
def test_one_choice_costs_what_bounded_range_says(tau):
    assert 0.9 / (2 * tau * tau) < choice_rho(tau) <= 1 / (2 * tau * tau) * (1 + 1e-9)


def test_above_threshold_costs_what_it_is_charged():
    tau = 3
    more, less = above_threshold_losses(NoiseLaw("laplace", 2 * tau, 1e-12), NoiseLaw("laplace", 4 * tau, 1e-12))
    # All queries move in one direction: the threshold is shifted in one of the two only.
    assert 0.24 / tau < more <= 0.25 / tau * (1 + 1e-6)
    assert 0.7 / tau < less <= 0.75 / tau * (1 + 1e-6)


@pytest.mark.parametrize("factor", [Tree(9, 3), Buffered(9)], ids=lambda factor: factor.name)
def test_hidden_items_by_sum_and_by_simulation(factor):
    """40 000 items, 6 standard errors: below 1e-8."""
    from discreet.noise import seeded_source

    sigma, source = Fraction(3 * factor.lattice), seeded_source(4)
    cuts = [14] * 9
    shown = []
    state = factor.start(40_000)
    for tick in range(1, 10):
        noise = factor.to_counts(factor.advance(state, tick, sigma, source))
        shown.append(float((1 + noise >= 14).mean()))
    expected = shown_by_one_event(CorrelatedNoise(factor, sigma), cuts)
    assert sum(shown) == pytest.approx(expected, abs=6 * 9 * math.sqrt(max(shown) / 40_000))
    assert shown_by_one_event(CorrelatedNoise(factor, sigma), [13] * 9) > expected


def test_bounds_from_rows_of_numbers():
    """Gaussian rows at a distance of 1: delta 0.01 allows 1.7, and 20 000 runs prove most of it, never more."""
    rng = np.random.default_rng(1)
    correlated = rng.normal(size=(2, 20_000, 3)) @ np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    correlated[0] += 1.0
    bound = measure_outputs(correlated[0], correlated[1], 0.01)
    assert 0.8 < bound < 1.75
    assert measure_outputs(correlated[1], correlated[1][::-1], 0.01) <= 0.0
