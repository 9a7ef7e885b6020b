"""Quantiles by recursive choice: draws follow their law, intervals hold as often as they say, ranks are near."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.central import Grid, QuantileChoice, QuantileTree, StepGrid
from discreet.central.quantile_choice import Found
from discreet.noise import fresh_source, seeded_source
from discreet_audit.central_questions import choice_law

SHARES = (0.25, 0.5, 0.75)


@pytest.mark.parametrize(
    ("masses", "shares", "parts"),
    [
        ([3, 0, 0, 5, 1], SHARES, 2),
        ([0, 0, 0, 0, 0], (0.3, 0.7), 2),
        ([0, 60, 0, 0, 2], SHARES, 4),  # parts of a bin whose scores differ by much
        ([0, 3, 9, 0, 2], (0.5,), 3),
        ([500, 0, 0, 0, 500], (0.2, 0.5), 64),  # blocks that are cut
    ],
)
def test_draws_follow_the_law(masses, shares, parts):
    mechanism = QuantileChoice(dc.Budget(1.5), Grid(0, 5, 5), shares, parts=parts)
    held = np.array(masses, np.int64)
    found, source, runs = Found(np.flatnonzero(held), held[held > 0]), fresh_source(), 1500
    drawn = Counter(tuple(p // max(1, parts // 4) for p in mechanism.chosen(found, source)) for _ in range(runs))
    law: Counter[tuple[int, ...]] = Counter()
    for chosen, chance in choice_law(mechanism, found).items():
        law[tuple(p // max(1, parts // 4) for p in chosen)] += chance
    assert {*drawn} <= {*law}
    often = [key for key, chance in law.items() if chance * runs >= 8]
    rest = 1.0 - sum(law[key] for key in often)
    terms = [(drawn[key] - runs * law[key]) ** 2 / (runs * law[key]) for key in often]
    if rest * runs >= 8:
        terms.append((runs - sum(drawn[key] for key in often) - runs * rest) ** 2 / (runs * rest))
    freedom = len(terms) - 1
    # Below 1e-6 for the right law (Laurent and Massart: freedom + 2 sqrt(freedom x) + 2x with x = 14).
    assert sum(terms) <= freedom + 2 * math.sqrt(freedom * 14) + 28


def test_half_the_noise_does_not_follow_the_law():
    """The same comparison sees a choice with twice its epsilon."""
    right, wrong = (QuantileChoice(dc.Budget(e), Grid(0, 5, 5), (0.5,), parts=1) for e in (1.5, 3.0))
    found, source, runs = Found(np.array([0, 4]), np.array([4, 2])), fresh_source(), 1500
    drawn = Counter(wrong.chosen(found, source) for _ in range(runs))
    law = choice_law(right, found)
    assert sum((drawn[key] - runs * law[key]) ** 2 / (runs * law[key]) for key in law) > 60


def data(name, random, rows):
    if name == "flat":
        return random.uniform(0, 1000, rows), Grid(0, 1000)
    if name == "skewed":
        return random.lognormal(3, 1.5, rows), Grid(0, 1e6)
    if name == "few values":
        return random.choice([1.0, 2.0, 5.0, 900.0], rows, p=[0.25, 0.25, 0.3, 0.2]), Grid(0, 1000)
    if name == "ties":
        return np.where(random.random(rows) < 0.7, 37.0, random.uniform(0, 1000, rows)), StepGrid(0, 1000)
    return random.integers(0, 10**12, rows).astype(float), StepGrid(0, 10**12)  # more bins than anybody could list


@pytest.mark.parametrize("name", ["flat", "skewed", "few values", "ties", "very many bins"])
@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget.zcdp(0.1), dc.Budget(0.3, 1e-6)], ids=str)
def test_intervals_hold_as_often_as_they_say(name, budget):
    runs, missed, random, confidence = 90, 0, np.random.default_rng(4), 0.8
    for people in (False, True):
        for run in range(runs // 2):
            rows = (3, 200, 2000)[run % 3]
            values, grid = data(name, random, rows)
            unit, owner = (dc.User(), np.arange(rows) // 2) if people else (dc.Event(), None)
            mechanism = QuantileChoice(budget, grid, SHARES, unit, confidence=confidence)
            found = mechanism.counts(grid.places(values), owner)
            answer = mechanism(found, seeded_source(run))
            # The truth, by the bins of what counts: the first with a share of all up to it.
            sums = np.cumsum(found.masses)
            for row in answer:
                place = int(found.bins[np.searchsorted(sums, row.quantile * sums[-1])])
                if not (grid.lower(place) >= row.lower and grid.upper(place) <= row.upper):
                    missed += 1
                    break
            assert all(a.value <= b.value and a.lower <= b.lower and a.upper <= b.upper
                       for a, b in zip(answer.rows, answer.rows[1:], strict=False))  # fmt: skip
            assert all(row.lower <= row.value <= row.upper for row in answer)
    assert missed <= runs * 0.2 + 5 * math.sqrt(runs * 0.16)


def off(values, answers, shares):
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
    wanted = np.asarray(shares) * len(values)
    return float(np.maximum(np.maximum(below - wanted, wanted - upto), 0.0).mean())


def test_ranks_are_as_near_as_they_are_said_to_be():
    """10,000 rows, epsilon 1: below 1.5 for one share, below 4 for three, and nine no worse than by the tree."""
    values, grid = np.random.default_rng(3).normal(50, 15, 10_000), Grid(0, 200)
    nine = tuple(np.arange(1, 10) / 10)
    for shares, most in (((0.5,), 1.5), (SHARES, 4.0), (nine, 11.0)):
        mechanism = QuantileChoice(dc.Budget(1.0), grid, shares)
        found = mechanism.counts(grid.places(values))
        runs = 400 if len(shares) == 1 else 60
        errors = [off(values, mechanism(found, seeded_source(run)).values, shares) for run in range(runs)]
        assert np.mean(errors) < most
        # What is stated are standard deviations: of these errors, sqrt(2) times the mean or less.
        assert 0.5 * np.mean(errors) < mechanism.typical_error < 2.2 * np.mean(errors)
    assert mechanism.typical_error < QuantileTree(dc.Budget(1.0), grid, nine).typical_error
