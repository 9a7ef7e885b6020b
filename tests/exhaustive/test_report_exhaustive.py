"""What people's items cost, against their exact joint delta; and the composition of reports, against exact laws."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from tests.reference.question_laws import several_counts_delta

import discreet as dc
from discreet.central.person_vectors import MOST_ITEMS, PersonVectors, alone, gaussian_delta
from discreet.privacy.calibration.zcdp import zcdp_delta
from discreet.questions.answer import data_of
from discreet.questions.report import Report
from discreet.summaries.people import ValueRange


def worst(mechanism: PersonVectors, epsilon: float) -> float:
    """delta at this epsilon over all numbers of items, and of those nobody else has (docs/privacy/people.md)."""
    mu, z = mechanism.calibration.mu, mechanism.calibration.z
    d = np.arange(1.0, MOST_ITEMS + 1)[:, None]
    j = np.arange(0.0, MOST_ITEMS + 1)[None, :]
    log_none = j * np.log1p(-alone(mu, z, d[:, 0])[:, None])
    pi, rest = -np.expm1(log_none), mu * np.sqrt(1.0 - 0.3 * np.minimum(j, d) / d)
    found = pi + (1.0 - pi) * gaussian_delta(epsilon - log_none, rest)
    return float(np.max(np.where(j <= d, found, 0.0)))


@pytest.mark.parametrize("budget", [dc.Budget(1.0, 1e-6), dc.Budget(0.1, 1e-9), dc.Budget(4.0, 1e-5)])
@pytest.mark.parametrize("times", [0.5, 1.0, 2.0, 4.0])
def test_the_cost_of_people_covers_their_exact_delta(budget, times):
    mechanism = PersonVectors(budget, 10)
    cost, epsilon = mechanism.cost, times * budget.epsilon
    assert cost is not None
    exact = worst(mechanism, epsilon)
    assert exact <= cost.delta + zcdp_delta(cost.rho, epsilon)
    # Twins: half of the rho, or none of the delta, is too little for one of the epsilons.
    if times == 0.5:
        assert exact > cost.delta + zcdp_delta(cost.rho / 2.0, epsilon)
    if times == 4.0:
        assert exact > zcdp_delta(cost.rho, epsilon)


@pytest.mark.parametrize(
    ("asked", "sizes", "losses"),
    [({}, 0.6, 0.4), ({"rows": True}, 2, 1.6), ({"values": ValueRange(0.0, 5.0)}, 2, 1.6)],
    ids=["people", "rows", "values"],
)
def test_the_rho_is_that_of_all_steps(asked, sizes, losses):
    """Each step has noise of L/mu_i: together mu^2/2, rounded to the safe side."""
    mechanism = PersonVectors(dc.Budget(1.0, 1e-6), 10, **asked)
    from discreet.central.person_vectors import LOOK, SECOND_LOOK
    from discreet.summaries.people import LENGTH

    calibration = mechanism.calibration
    assert (calibration.sizes, calibration.losses) == (pytest.approx(sizes), pytest.approx(losses))
    for second, loses in itertools.product((True, False), repeat=2):
        parts = [LOOK, calibration.sizes, calibration.counts(second, loses)]
        parts += [SECOND_LOOK] if second else []
        parts += [calibration.losses] if loses else []
        rho = sum(float(LENGTH / calibration.sigma_of(part)) ** 2 / 2 for part in parts)
        assert rho <= mechanism.cost.rho
        assert rho > 0.99 * mechanism.cost.rho


def test_two_counts_of_a_report_together_keep_the_budget():
    table = {"who": ["a", "b", "b"]}
    budget = dc.Budget(1.0)
    asked = Report({"one": dc.Count(), "two": dc.Distinct(column="who")}, budget, user="who", shares=[0.3, 0.7])
    parts = [part.epsilon for _, part in asked.ways(data_of(table), budget).values()]
    scales = [1 / Fraction(part) for part in parts]
    # The law is cut at a distance where next to nothing is left.
    assert several_counts_delta(scales, budget.epsilon * (1 + 1e-12)) <= 1e-12
    assert several_counts_delta(scales, 0.99 * budget.epsilon) > 1e-4  # and all of it is used
    whole = [1 / Fraction(budget.epsilon)] * 2  # the whole budget for each
    assert several_counts_delta(whole, budget.epsilon) > 0.1


@pytest.mark.parametrize(
    ("kind", "listed", "sizes", "losses"),
    [
        ("count", 1, 0.6, 0.4),
        ("count", 5, 0.6, 0.4),
        ("mean", 1, 0.6, 0.4),
        ("signed", 1, 3, 0.4),
        ("signed", 5, 2, 1.6),
    ],
)
def test_sums_over_listed_groups_cost_the_rho_of_their_steps(kind, listed, sizes, losses):
    from discreet.central.person_moments import PersonMoments
    from discreet.summaries.moments import ValueMoment
    from discreet.summaries.people import LENGTH

    mechanism = PersonMoments.of(dc.Budget(1.0, 1e-6), ValueMoment(kind, 0, 10), listed)
    calibration = mechanism.calibration
    assert (calibration.sizes, calibration.losses) == (pytest.approx(sizes), pytest.approx(losses))
    for loses in (True, False):
        parts = [calibration.sizes, calibration.counts(False, loses), *([calibration.losses] if loses else [])]
        rho = sum(float(LENGTH / calibration.sigma_of(part)) ** 2 / 2 for part in parts)
        assert 0.99 * mechanism.cost.rho < rho <= mechanism.cost.rho
    assert mechanism.cost.delta == 0.0
    found = PersonMoments.of(dc.Budget(1.0, 1e-6), ValueMoment("count"), None)
    assert 0.0 < found.cost.delta <= 1e-6
