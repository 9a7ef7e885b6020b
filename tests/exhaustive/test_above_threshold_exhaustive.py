"""AboveThreshold over queries that an event raises: its exact losses on all small cases (docs/privacy/continual.md)."""

import math
from itertools import product

import numpy as np
import pytest

LEVELS = np.arange(-250, 251)


def laplace(scale):
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(LEVELS)


def hidden(query, scale):
    """P[query + Z <= level] for every level."""
    q, s = math.exp(-1 / scale), LEVELS - query
    return np.where(s >= 0, 1 - q ** np.maximum(s + 1.0, 0) / (1 + q), q ** np.maximum(-s, 0.0) / (1 + q))


def law(ticks, tau):
    """P[the run stops at tick t], t = 1, 2, ..., and P[it does not]: noises Lap(2 tau) and Lap(4 tau)."""
    alive, stops = laplace(2 * tau), []
    for queries in ticks:
        below = alive * np.prod([np.ones(len(LEVELS)), *(hidden(query, 4 * tau) for query in queries)], axis=0)
        stops.append((alive - below).sum())
        alive = below
    return np.array([*stops, alive.sum()])


def raised(ticks, changes):
    changes = iter(changes)
    return [[query + next(changes) for query in queries] for queries in ticks]


def losses(ticks, changes, tau):
    """log(P[outcome with the event]/P[outcome without]) for every outcome."""
    one, two = law(ticks, tau), law(raised(ticks, changes), tau)
    there = (one > 1e-8) & (two > 1e-8)  # below, differences of the tables lose their digits
    return np.log(two[there]) - np.log(one[there]), one[there], two[there]


VALUES = (-40, -9, -1, 0, 12)
CASES = [
    *([[a], [b]] for a, b in product(VALUES, repeat=2)),
    *([[a, b]] for a, b in product(VALUES, repeat=2)),
    *([[a, a], [b, c]] for a, b, c in product(VALUES, repeat=3)),
    *([[a] * 30, [b]] for a, b in product(VALUES, repeat=2)),
]


@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_an_event_that_only_raises_costs_a_range_of_one_over_tau(tau):
    highest, lowest, rho = 0.0, 0.0, 0.0
    for ticks in CASES:
        size = sum(map(len, ticks))
        every = product((0, 1), repeat=size) if size < 5 else [(0,) * 30 + (1,), (1,) * 30 + (0,), (1,) * 31]
        for changes in every:
            loss, one, two = losses(ticks, changes, tau)
            highest, lowest = max(highest, loss.max()), min(lowest, loss.min())
            for p, q in ((one, two), (two, one)):
                for order in (1.01, 2.0, 8.0, 40.0):
                    terms = order * np.log(p) + (1 - order) * np.log(q)
                    rho = max(rho, np.logaddexp.reduce(terms) / (order * (order - 1)))
    assert 0.2 / tau < highest <= 1 / (4 * tau) + 1e-7  # more likely: the query that passes
    assert 0.6 / tau < -lowest <= 3 / (4 * tau) + 1e-7  # less likely: the level besides
    assert rho <= 1 / (8 * tau * tau)


def test_queries_that_move_both_ways_would_cost_more():
    """Those before the stop rise and the one that passes falls: the 1/tau of the usual analysis."""
    tau = 0.5
    worst = max(np.abs(losses([[0] * 30, [b]], (1,) * 30 + (-1,), tau)[0]).max() for b in (-40, -9, 0))
    assert 0.8 / tau < worst <= 1 / tau + 1e-7


@pytest.mark.parametrize("low", [0.0, 0.1, 0.5])
def test_losses_within_a_range_cost_an_eighth_of_its_square(low):
    """Two outcomes with losses -low r and (1 - low) r: the worst law of that range."""
    for r in (0.1, 1.0, 4.0):
        down, up = -low * r, (1 - low) * r
        # q e^up + (1 - q) e^down = 1 makes both laws probabilities.
        q = -math.expm1(down) / (math.exp(up) - math.exp(down))
        for order in (1.001, 1.5, 3.0, 30.0):
            moments = q * math.exp(order * up) + (1 - q) * math.exp(order * down)
            assert math.log(moments) / (order * (order - 1)) <= r * r / 8 + 1e-12
