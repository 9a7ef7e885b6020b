"""Sums and means beside what OpenDP and Tumult do: mean absolute errors at the same budget, on the same rows.

    .venv/bin/python benchmarks/amounts.py [--repeats 400]

The others are written here as they are built there, with continuous noise, which is to their favour:

    sum, OpenDP      clamp, then noise for max(|LOW|, |HIGH|)
    mean, OpenDP     the same over a number of rows that has to be known; here it is asked for half of epsilon
    mean, Tumult     noise on the sum around the middle of the range and on the count, half of epsilon each
    people           at most m rows of a person, the first, then the sums above with noise m times as large
"""

from __future__ import annotations

import argparse

import numpy as np

import discreet as dc
from discreet.central.person_moments import PersonMoments
from discreet.central.row_moments import RowMoments
from discreet.engines.person_sums import person_sums
from discreet.events.tables import events_of
from discreet.noise import seeded_source
from discreet.summaries.moments import GroupSums, ValueMoment

LOW, HIGH = 0.0, 100.0


def rows(repeats: int) -> None:
    """Errors of rows, at epsilon 1."""
    random, source, epsilon = np.random.default_rng(1), seeded_source(1), 1.0
    print(f"rows, epsilon {epsilon:g}, range {LOW:g} to {HIGH:g}: mean absolute error of {repeats} answers")
    print(f"{'rows':>8} {'question':>9} {'discreet':>10} {'OpenDP-style':>13} {'Tumult-style':>13}")
    for many in (100, 10_000):
        values = 100 * random.beta(2, 5, many)

        def ours(kind: str, values: np.ndarray = values) -> np.ndarray:
            moment = ValueMoment(kind, LOW, HIGH)
            made, sums = RowMoments(dc.Budget(epsilon), moment), GroupSums(moment.entries(values).sum(axis=0)[None])
            return np.array([made(sums, source).values[0] for _ in range(repeats)])

        noise = lambda scale: random.laplace(0.0, scale, repeats)  # noqa: E731
        total, number = values.sum(), np.maximum(many + noise(2 / epsilon), 1)
        opendp = (total + noise(HIGH / (epsilon / 2))) / number
        middle = (LOW + HIGH) / 2
        tumult = middle + (total - middle * many + noise((HIGH - LOW) / 2 / (epsilon / 2))) / number
        plain = noise(HIGH / epsilon)
        for kind, true, others in (
            ("signed", total, (plain, plain)),
            (
                "mean",
                values.mean(),
                (np.clip(opendp, LOW, HIGH) - total / many, np.clip(tumult, LOW, HIGH) - total / many),
            ),
        ):
            errors = [np.abs(ours(kind) - true).mean(), *(np.abs(each).mean() for each in others)]
            name = "sum" if kind == "signed" else kind
            print(f"{many:>8,} {name:>9} {errors[0]:>10.4g} {errors[1]:>13.4g} {errors[2]:>13.4g}")


def people(repeats: int) -> None:
    """Errors of people, at epsilon 1 and delta 1e-6."""
    from discreet.privacy.calibration.gaussian import gaussian_sigma

    random, source, budget = np.random.default_rng(2), seeded_source(2), dc.Budget(1.0, 1e-6)
    print(f"\npeople, {budget}: root mean squared error of the sum over {repeats // 10} answers, in percent")
    print("and how many of the 95 % intervals contain the true sum")
    print(f"{'rows a person':>22} {'discreet':>10} {'intervals':>10} {'m = 1':>8} {'m = 5':>8} {'m = 50':>8}")
    for name, each in (
        ("1", np.ones(5000, int)),
        ("skewed", np.minimum(random.zipf(1.8, 5000), 500)),
        ("20", np.full(5000, 20)),
        ("about 7, 400 people", random.poisson(7.5, 400)),
        ("log-normal, 3,000", np.maximum(1, random.lognormal(1, 1, 3000).astype(int))),
    ):
        owners = np.repeat(np.arange(len(each)), each)
        values = 100 * random.beta(2, 5, len(owners))
        moment = ValueMoment("signed", LOW, HIGH, 2**20)
        table = {"v": values.tolist(), "u": [f"u{owner}" for owner in owners]}
        found = person_sums(events_of(table).rows("v", user="u", numbers=True), moment)
        made, true = PersonMoments.of(budget, moment), values.sum()
        drawn = [made(found, source) for _ in range(repeats // 10)]
        errors = [np.array([one.values[0] for one in drawn]) - true]
        holds = np.mean([one.lower[0] <= true <= one.upper[0] for one in drawn])
        place = np.arange(len(owners)) - np.repeat(np.cumsum(each) - each, each)
        for most in (1, 5, 50):
            sigma = gaussian_sigma(1.0, 1e-6, most * HIGH)
            errors.append(values[place < most].sum() + random.normal(0, sigma, repeats) - true)
        shares = [100 * np.sqrt(np.mean(error**2)) / true for error in errors]
        print(f"{name:>22} {shares[0]:>10.3g} {holds:>10.2f} " + " ".join(f"{share:>8.3g}" for share in shares[1:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    given = parser.parse_args()
    rows(given.repeats)
    people(given.repeats)
