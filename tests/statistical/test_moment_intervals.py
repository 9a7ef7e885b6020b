"""How often intervals of sums, means and variances hold: flat, skewed, few and many; rows and people; with twins."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dc
from discreet.central.person_moments import PersonMoments
from discreet.central.person_vectors import LOSSES, SIZES
from discreet.central.row_moments import RowMoments
from discreet.engines.person_sums import person_sums
from discreet.events.tables import events_of
from discreet.noise import seeded_source
from discreet.summaries.moments import GroupSums, ValueMoment

CONFIDENCE, FAILS = 0.9, 1e-7
SHAPES = {
    "flat": lambda random: random.uniform(0, 10, 400),
    "skewed": lambda random: 10 * random.beta(0.4, 6, 400),
    "few": lambda random: random.uniform(0, 10, 4),
    "many": lambda random: random.uniform(0, 10, 20_000),
    "at an end": lambda random: np.full(300, 10.0),
}


def truth(kind, values):
    return {"mean": np.mean, "variance": np.var, "count": len}.get(kind, np.sum)(values)


def held(misses, runs):
    """Whether so few misses are no surprise, except with probability 1e-7."""
    return misses <= binom.ppf(1 - FAILS, runs, 1 - CONFIDENCE)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["count", "signed", "sum", "mean", "variance"])
@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget(0.3, 1e-4), dc.Budget.zcdp(0.1)], ids=str)
def test_rows(shape, kind, budget):
    values, source, runs = SHAPES[shape](np.random.default_rng(1)), seeded_source(4), 400
    moment = ValueMoment(kind, 0, 10)
    made = RowMoments(budget, moment, 1, CONFIDENCE)
    sums = GroupSums(moment.entries(values).sum(axis=0)[None])
    true = truth(kind, values)

    def misses(made):
        answers = [made(sums, source) for _ in range(runs)]
        return sum(not each.lower[0] - 1e-9 <= true <= each.upper[0] + 1e-9 for each in answers)

    assert held(misses(made), runs)
    if shape == "many" and kind in ("signed", "mean"):  # the twin whose intervals are for half the noise
        wide = dataclasses.replace(made, budget=made.budget)
        wide.__dict__["noise"] = dataclasses.replace(made.noise, scale=made.noise.scale / 3)
        noisy = [made.draw(sums.sums, source) for _ in range(runs)]
        ends = [wide.intervals(each)[1:] for each in noisy]
        assert not held(sum(not low[0] <= true <= high[0] for low, high in ends), runs)


def test_discovered_groups_hold_together():
    random, source, runs = np.random.default_rng(2), seeded_source(5), 300
    groups = [random.uniform(0, 10, size) for size in (3, 12, 18, 25, 40, 90, 400)]
    for kind in ("count", "sum", "mean", "variance"):
        moment = ValueMoment(kind, 0, 10)
        made = RowMoments(dc.Budget(1.0, 1e-3), moment, None, CONFIDENCE)
        sums = GroupSums(np.array([moment.entries(values).sum(axis=0) for values in groups]))
        true = np.array([truth(kind, values) for values in groups])
        misses = 0
        for _ in range(runs):
            found = made(sums, source)
            inside = (found.lower - 1e-9 <= true[found.kept]) & (true[found.kept] <= found.upper + 1e-9)
            misses += not inside.all()
        assert held(misses, runs), kind


FULL = {
    "few": lambda random: random.poisson(7.5, 400),
    "alike": lambda random: np.full(300, 40),
    "skewed": lambda random: np.maximum(1, random.lognormal(1, 1, 3000).astype(int)),
    "many": lambda random: random.poisson(3, 10_000),
}


class ShortestError(PersonMoments):
    """The twin that makes the squared error of a sum least, and leaves out what longer vectors have."""

    in_full = False

    @property
    def calibration(self):
        return dataclasses.replace(super().calibration, sizes=SIZES, losses=LOSSES)


def test_a_sum_of_people_is_of_all_that_they_have():
    """Nobody looks at `covered`: intervals contain the true sum, and a relative error is a few hundredths."""
    source, runs = seeded_source(9), 150
    for shape, rows_of in FULL.items():
        random = np.random.default_rng(8)
        owners = np.repeat(np.arange(len(rows := rows_of(random))), rows)
        values = np.minimum(np.round(random.gamma(1.5, 8, len(owners)), 2), 50)
        made = PersonMoments.of(dc.Budget(1.0, 1e-6), moment := ValueMoment("signed", 0, 50), 1, CONFIDENCE)
        table = {"v": values.tolist(), "u": [f"u{owner}" for owner in owners]}
        found = person_sums(events_of(table).rows("v", user="u", numbers=True), moment)
        twin = ShortestError(**{each.name: getattr(made, each.name) for each in dataclasses.fields(made)})
        misses = {}
        for name, each in (("ours", made), ("twin", twin)):
            drawn = [each(found, source) for _ in range(runs)]
            misses[name] = sum(not one.lower[0] <= values.sum() <= one.upper[0] for one in drawn)
            if name == "ours":
                error = np.sqrt(np.mean([(one.values[0] / values.sum() - 1) ** 2 for one in drawn]))
                assert error < 0.08, (shape, error)
        assert held(misses["ours"], runs), (shape, misses)
        assert shape != "few" or not held(misses["twin"], runs)


def people_of(shape, random):
    """(owners, values): how many rows a person has is flat, skewed, one, or many."""
    rows = {
        "flat": random.integers(1, 6, 400),
        "skewed": np.minimum(random.zipf(1.7, 400), 300),
        "few": np.ones(60, int),
        "many": np.full(300, 40),
    }[shape]
    owners = np.repeat(np.arange(len(rows)), rows)
    return owners, 10 * random.beta(2, 5, len(owners))


@pytest.mark.parametrize("shape", ["flat", "skewed", "few", "many"])
@pytest.mark.parametrize("kind", ["signed", "mean", "variance"])
def test_people(shape, kind):
    owners, values = people_of(shape, np.random.default_rng(3))
    moment = ValueMoment(kind, 0, 10, 2**26 if kind == "variance" else 2**20)
    made = PersonMoments.of(dc.Budget(2.0, 1e-5), moment, 1, CONFIDENCE)
    table = {"v": values.tolist(), "u": [f"u{owner}" for owner in owners]}
    found = person_sums(events_of(table).rows("v", user="u", numbers=True), moment)
    vectors = np.zeros((owners.max() + 1, moment.parts))
    np.add.at(vectors, owners, moment.entries(values) / moment.one)
    lengths, source, runs, misses = np.linalg.norm(vectors, axis=1), seeded_source(6), 200, 0
    for _ in range(runs):
        drawn = made(found, source)
        covered = drawn.covered / (moment.largest if kind == "signed" else 1.0)
        scaled = vectors * np.minimum(1.0, covered / np.maximum(lengths, 1e-9))[:, None]
        true = moment.answer(scaled.sum(axis=0)[None])[0]
        misses += not drawn.lower[0] - 1e-6 <= true <= drawn.upper[0] + 1e-6
    assert held(misses, runs)
