"""The exact laws of continual releases agree with what the mechanisms claim, and catch wrong claims."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.audit.printed_versions import sparse_rho

import discreet as dc
from discreet.continual import one_shot
from discreet.continual._factors import Buffered, SquareRoot, Tree
from discreet.noise import seeded_source
from discreet_audit.continual import item_shown, path_shifts, stop_is_beaten


@pytest.mark.parametrize("factor", [Tree(7, 2), Tree(9, 3), SquareRoot(12), Buffered(12)], ids=lambda f: f.name)
def test_an_event_moves_no_more_than_the_sensitivity(factor):
    rng = np.random.default_rng(1)
    z = rng.integers(-(10**8), 10**8, factor.horizon).tolist()
    ticks = np.arange(1, factor.horizon + 1)
    norms = np.linalg.norm(path_shifts(factor, ticks[:, None] >= ticks, z), axis=0)
    assert max(norms) <= factor.sensitivity
    # A claim one percent smaller would be caught (trees: one level fewer).
    assert max(norms) > (0.99 * factor.sensitivity if factor.lattice > 1 else math.sqrt(factor.levels - 1))


def test_unkbase_shows_an_item_of_one_event_within_delta():
    horizon, delta = 3, 0.2
    tree, sigma = Tree(horizon, 2), Fraction(1)
    cut = 1 + tree.hiding_shift(1, sigma, delta / horizon)
    exact = item_shown(tree, 1.0, [cut] * horizon, count=1, reach=8)
    assert exact <= delta
    # The literal mistake of a strict cut for a computed tail of >=: two lower is caught.
    assert item_shown(tree, 1.0, [cut - 2] * horizon, count=1, reach=8) > delta


def test_the_stop_of_unkgumb():
    tau, delta, limit = Fraction(5), 1e-3, 40
    shift = one_shot.gumbel_shift(tau, delta, limit)
    assert stop_is_beaten(limit, shift, 5.0) <= delta < stop_is_beaten(limit, shift - 1, 5.0)
    # A cut for two items, as Theorem 3 has it for k = 1, is not enough for forty.
    assert stop_is_beaten(limit, one_shot.gumbel_shift(tau, delta, 2), 5.0) > delta


@pytest.mark.parametrize("probability", [0.6, 0.3, 1e-4, 1e-300])
@pytest.mark.parametrize("items", [1, 7])
def test_the_shift_of_the_stop_is_the_smallest(probability, items):
    for tau in (Fraction(1), Fraction(22, 7), Fraction(1000)):
        shift = one_shot.gumbel_shift(tau, probability, items)
        assert stop_is_beaten(items, shift, float(tau)) <= probability
        assert shift == 0 or stop_is_beaten(items, shift - 1, float(tau)) > probability


def test_the_stop_is_drawn_with_that_law():
    """20 000 draws: 5 standard errors of a share of a quarter, below 1e-6."""
    source, limit, shift, tau = seeded_source(2), 3, 4, Fraction(3)
    counts = np.array([2] * limit + [1])
    beaten = sum(
        len(one_shot.unknown_gumbel(counts, 1, tau, shift, limit, lambda: np.arange(4), source)[0])
        for _ in range(20_000)
    )
    expected = stop_is_beaten(limit, shift, 3.0)
    assert abs(beaten / 20_000 - expected) < 5 * math.sqrt(expected / 20_000)


def test_sparse_accounting():
    assert sparse_rho(1, 2.0) == pytest.approx(2.25 / 8)
    assert sparse_rho(1, 2.0, literal=True) == pytest.approx(6 / 8)
    histogram = dc.continual.Histogram(50, dc.Budget.zcdp(0.3), list(range(9)), None, 2, mechanism="sparse", switches=4)
    tau = float(histogram._scheme._tau1) / math.sqrt(4)
    assert sparse_rho(2, tau) <= 0.3 <= sparse_rho(2, tau) * (1 + 1e-9)
