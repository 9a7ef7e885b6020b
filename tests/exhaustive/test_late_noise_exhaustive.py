"""Noise that begins late, against noise that ran from the start: every value of both, on a recurrence of one buffer.

The ideal process has centres that are not rounded. Its later ticks, summed over everything before, must be those that
begin with a state drawn from the discrete Gaussian of the state's covariance; rounded centres must be as close to it
as their shifts allow (docs/privacy/correlated-noise.md, "Beginning late").
"""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.continual._buffered_table import COEFFICIENT_BITS
from discreet.continual._factors import _FRACTION_BITS, Buffered
from discreet.continual._late import state_covariance, state_law

THETA, OMEGA, SIGMA, GRID, BEFORE = 0.5, 0.5, 2.0, 4, 2
REACH = 14


def around(values, centres, sigma):
    """P[values] of discrete Gaussians with these centres, over the first axis."""
    weights = np.exp(-((values - centres) ** 2) / (2 * sigma**2))
    return weights / weights.sum(axis=0)


def steps(noise, buffer, ticks, rounded=False):
    """The joint law of the next noises, each axis -REACH..REACH, from one state."""
    n = np.arange(-REACH, REACH + 1)
    states = [(1.0, float(noise), float(buffer))]
    law = np.zeros((len(n),) * ticks)
    where = [()]
    for _ in range(ticks):
        new_states, new_where = [], []
        for (chance, at, held), place in zip(states, where, strict=True):
            pull = round(OMEGA * held) if rounded else OMEGA * held
            for i, p in enumerate(around(n, at - pull, SIGMA)):
                if chance * p > 1e-13:
                    new_states.append((chance * p, n[i], THETA * held + n[i] - at))
                    new_where.append((*place, i))
        states, where = new_states, new_where
    for (chance, _, _), place in zip(states, where, strict=True):
        law[place] += chance
    return law


def covariance(ticks):
    exact = state_covariance([Decimal(THETA)], [Decimal(OMEGA)], ticks)
    return SIGMA**2 * np.array([[float(value) for value in row] for row in exact])


def begun_late(share=1.0):
    """The law of the tick after `BEFORE` when the state there is drawn: the noise, then the buffer given it."""
    both = covariance(BEFORE) * share
    n, s = np.arange(-REACH, REACH + 1), np.arange(-REACH * GRID, REACH * GRID + 1) / GRID
    slope = both[0, 1] / both[0, 0]
    left = math.sqrt(both[1, 1] - slope * both[0, 1])
    law = np.zeros(len(n))
    for noise, chance in zip(n, around(n, 0.0, math.sqrt(both[0, 0])), strict=True):
        buffers = around(s, slope * noise, left)
        law += chance * (around(n[:, None], noise - OMEGA * s[None, :], SIGMA) @ buffers)
    return law


def test_the_state_has_the_law_that_later_ticks_need():
    run = steps(0, 0, BEFORE + 1).sum(axis=tuple(range(BEFORE)))
    assert np.abs(run - begun_late()).max() < 1e-6  # sums are integrals to within 2 exp(-2 pi^2), for sigma = 2 and 1/4
    assert np.abs(run - begun_late(0.5)).max() > 1e-3
    # And a tick by itself is the discrete Gaussian of its variance: what the cut rests on.
    n = np.arange(-REACH, REACH + 1)
    for ticks in (1, 2, 3):
        alone = steps(0, 0, ticks).sum(axis=tuple(range(ticks - 1)))
        assert np.abs(alone - around(n, 0.0, math.sqrt(covariance(ticks)[0, 0]))).max() < 1e-6


def test_rounded_centres_are_as_close_as_their_shifts():
    """D_a of all ticks together is at most a T (1/2)^2 / (2 sigma^2), and rounding is seen at all."""
    ideal, rounded = steps(0, 0, 3), steps(0, 0, 3, rounded=True)
    there = (ideal > 1e-9) & (rounded > 1e-9)
    for order in (1.5, 2.0, 4.0):
        for p, q in ((ideal[there], rounded[there]), (rounded[there], ideal[there])):
            divergence = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            assert 1e-6 < divergence <= order * 2 * 0.25 / (2 * SIGMA**2) + 1e-6  # the first centre is a whole number


@pytest.mark.parametrize(("horizon", "tick"), [(65, 64), (365, 320), (4096, 64), (2**15, 19_968), (2**20, 2**19)])
def test_the_law_that_is_drawn_is_that_of_the_recurrence(horizon, tick):
    """The covariance of the noises of later ticks, by the numbers of the law and by the recurrence."""
    factor = Buffered(horizon)
    sigma = factor.sigma(0.05)
    law = state_law(
        tuple(map(int, factor.theta)), tuple(map(int, factor.omega)), COEFFICIENT_BITS, _FRACTION_BITS, tick, sigma,
        factor.kappa,
    )  # fmt: skip
    n = len(law.sigmas)
    combined = np.zeros((n, n), object)  # what each is made of: rows in multiples of the independent draws
    for i, regression in enumerate(law.regressions):
        combined[i] = sum((Fraction(int(r), 2**law.bits) * combined[i - 1 - j] for j, r in enumerate(regression)), 0)
        combined[i, i] = Fraction(1)
    spread = np.array([[float(c * s / sigma) for c, s in zip(row, law.sigmas, strict=True)] for row in combined])
    spread[1:] /= 2.0**_FRACTION_BITS
    later = 3
    theta, omega = factor.theta / 2.0**40, factor.omega / 2.0**40
    rows, state = [], np.hstack([spread, np.zeros((n, later))])
    for k in range(later):
        z = np.zeros(n + later)
        z[n + k] = 1.0
        w = z - omega @ state[1:]
        state = np.vstack([state[0] + w, theta[:, None] * state[1:] + w])
        rows.append(state[0])
    found = np.array(rows) @ np.array(rows).T
    a, gaps = factor._rows
    b = (a[None, :] * (1 - gaps[None, :]) ** np.arange(tick + later)[:, None]).sum(axis=1)
    expected = [
        [b[: tick + 1 + min(i, j)] @ b[abs(i - j) : abs(i - j) + tick + 1 + min(i, j)] for j in range(later)]
        for i in range(later)
    ]
    assert found == pytest.approx(np.array(expected), rel=1e-6)


def test_there_is_no_law_where_it_would_not_be_close():
    """Too early for long horizons, where buffers are all alike still, and with too little noise."""
    factor = Buffered(2**20)
    numbers = tuple(map(int, factor.theta)), tuple(map(int, factor.omega)), COEFFICIENT_BITS, _FRACTION_BITS
    assert state_law(*numbers, 64, factor.sigma(0.05), factor.kappa) is None
    assert state_law(*numbers, 2**19, factor.sigma(0.05), factor.kappa) is not None
    assert state_law(*numbers, 2**19, Fraction(31), factor.kappa) is None
