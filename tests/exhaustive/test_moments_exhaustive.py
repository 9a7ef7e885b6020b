"""What one row moves, over all small ranges and values, and the exact chance that a row alone in its group passes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.central.person_moments import PersonMoments
from discreet.central.person_vectors import gaussian_delta
from discreet.central.row_moments import RowMoments, _least_unlikely
from discreet.privacy import Budget
from discreet.summaries.moments import ValueMoment

KINDS = ("count", "sum", "mean", "variance")


def moved(entries, groups, row, group, unit):
    """(l1, l2) that a row adds to the sums of all groups."""
    change = np.zeros((groups, entries.shape[1]))
    change[group] = entries[row]
    return np.abs(change).sum() / unit, math.sqrt((change**2).sum()) / unit


@pytest.mark.parametrize("kind", [*KINDS, "signed"])
@pytest.mark.parametrize("finest", [4, 9, 64, 2**30])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-2, 3), (-7, -1), (0.25, 0.75), (0, 5)])
def test_a_row_moves_all_parts_together_by_one_at_most(kind, finest, low, high):
    moment = ValueMoment(kind, low, high, finest)
    values = np.array([*np.linspace(low - 1, high + 1, 97), -np.inf, np.inf])
    entries = moment.entries(values)
    lengths = [moved(entries, 2, row, group, moment.one) for row, group in product(range(len(values)), (0, 1))]
    assert max(l1 for l1, _ in lengths) <= 1
    assert max(l2 for _, l2 in lengths) <= 1
    # Twins: a number and a value beside it, and values that are not clipped, move by more.
    t = 2 * (np.clip(values, low, high) - low) / (high - low) - 1
    assert max(1 + np.abs(t)) == 2
    assert max(np.abs(values[:-2])) / moment.largest > 1


def law(scale: float, reach: int) -> np.ndarray:
    q = math.exp(-1.0 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-4), (2.0, 1e-3)])
def test_a_row_alone_passes_with_probability_delta(kind, epsilon, delta):
    """The law of the sum of one, two or three noises, by convolution on a coarse lattice; a lower cut is caught."""
    made = RowMoments(Budget(epsilon, delta), ValueMoment(kind, 0, 1, 64), None)
    assert made.noise.law == "laplace"
    scale, reach = float(made.scale), 3000
    one = law(scale, reach)
    total = one
    for _ in range(made.moment.parts - 1):
        total = np.convolve(total, one)
    values = np.arange(len(total)) - (len(total) - 1) // 2

    def passes(cut: int) -> float:
        return float(total[values >= cut - made.moment.one].sum())

    assert passes(made.threshold) <= delta * (1 + 1e-9)
    assert passes(made.threshold - max(1, round(0.1 * scale))) > delta  # and it is hardly above what it must be
    if made.moment.parts > 1:  # the twin that takes the cut of a single noise
        assert passes(made.moment.one + _least_unlikely(made.noise, 1, delta)) > delta


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6), Budget(0.1, 1e-9), Budget.zcdp(0.1)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_is_that_of_a_shift_by_one(kind, budget):
    made = RowMoments(budget, ValueMoment(kind, -3, 8))
    one, scale = made.moment.one, made.scale
    if made.noise.law == "laplace":
        assert Fraction(one) / scale <= Fraction(budget.epsilon)
    elif budget.rho is not None:
        assert one**2 / (2 * float(scale) ** 2) <= budget.rho * (1 + 1e-12)
    else:
        mu = np.array(one / float(scale))
        assert gaussian_delta(np.array(budget.epsilon), mu) <= budget.delta
        assert gaussian_delta(np.array(budget.epsilon), 1.001 * mu) > budget.delta


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.2, 1e-9), Budget.zcdp(0.1)], ids=str)
def test_people_over_a_list_spend_all_of_mu_and_no_more(budget):
    made = PersonMoments.of(budget, ValueMoment("mean", 0, 1, 2**20), 5)
    calibration = made.calibration
    steps = [Fraction(3, 5), Fraction(2, 5), calibration.counts(False)]
    mu = math.sqrt(sum((2**24 / float(calibration.sigma_of(part))) ** 2 for part in steps))
    if budget.rho is not None:
        assert 0.999 * budget.rho < mu**2 / 2 <= budget.rho
    else:
        assert gaussian_delta(np.array(budget.epsilon), np.array(mu)) <= budget.delta
        assert gaussian_delta(np.array(budget.epsilon), np.array(1.001 * mu)) > budget.delta
