"""Errors of the multiparty protocols against theory. All sources are seeded: these tests always do the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dc
from discreet.multiparty import HadamardResponse, IndependentSketches, LocalHashing, LocalSketch, Separation
from discreet.noise import seeded_source
from discreet.published import MergedSketch


def squared_error(protocol, items, size):
    aggregator = protocol.aggregator(max_reports=None)
    aggregator.receive(protocol.party(0, source=seeded_source(1)).encode(items))
    true = np.bincount(items, minlength=size)
    estimates = aggregator.estimate(np.arange(size))
    return np.mean((estimates.values - true) ** 2), estimates


@pytest.mark.parametrize(
    ("kind", "epsilon", "columns", "theory"),
    [
        (HadamardResponse, 1.0, None, lambda e: ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2),
        (HadamardResponse, 3.0, None, lambda e: ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2),
        (LocalHashing, 1.0, None, lambda e: 4 * math.exp(e) / (math.exp(e) - 1) ** 2),
        (LocalHashing, 3.0, None, lambda e: 4 * math.exp(e) / (math.exp(e) - 1) ** 2),
        (LocalSketch, 1.0, 1, lambda e: 2 * math.exp(e / 2) / (math.exp(e / 2) - 1) ** 2 + 1),
        (LocalSketch, 4.0, 6, lambda e: 2 * math.exp(e / 2) / (math.exp(e / 2) - 1) ** 2 + 1 / 6),
    ],
)
def test_local_oracles_have_the_error_of_theory(kind, epsilon, columns, theory):
    """100,000 reports, 2000 items: the mean of their squared errors is within 10 percent, the spread of it is 3.

    For OLH at epsilon = 1 theory is 3.7e5.
    """
    size, n = 2000, 100_000
    items = np.random.default_rng(3).zipf(1.3, n) % size
    protocol = kind("theory", dc.Budget(epsilon), size)
    if columns is not None:
        assert protocol.columns == columns
    error, estimates = squared_error(protocol, items, size)
    assert error == pytest.approx(n * theory(epsilon), rel=0.1)
    assert estimates.variances.mean() == pytest.approx(error, rel=0.1)
    lower, upper = estimates.bounds(0.95)
    true = np.bincount(items, minlength=size)
    assert 0.93 < np.mean((lower <= true) & (true <= upper)) < 0.985


ROUNDS = 60
MANY = {
    "independent": lambda r: IndependentSketches(r, dc.Budget(1.0), 200, items_per_column=4.0),
    "independent rows": lambda r: IndependentSketches(r, dc.Budget(1.0), 200, items_per_column=6.0, rows=3),
    "merged": lambda r: MergedSketch(r, dc.Budget(1.0), 200, columns=60),
    "separation": lambda r: Separation(r, dc.Budget(1.0), 200, items_per_column=5.0, threshold=25),
    "hadamard": lambda r: HadamardResponse(r, dc.Budget(1.0), 200),
    "hashing": lambda r: LocalHashing(r, dc.Budget(2.0), "integers"),
    "local": lambda r: LocalSketch(r, dc.Budget(2.0), "integers", columns=3),
}


@pytest.mark.parametrize("make", MANY.values(), ids=MANY)
def test_estimates_are_unbiased_and_their_variances_are_right(make):
    """60 rounds with hash functions of their own: the mean error of an item is within 5.5 of its standard deviations.

    The largest of 200 of them would exceed that with probability 1e-5 for normal errors; with these seeds none does.
    """
    items = np.minimum(np.random.default_rng(7).zipf(1.4, 1500), 200) - 1
    parts = np.array_split(np.random.default_rng(8).permutation(items), 10)
    true = np.bincount(items, minlength=200)
    errors, variances, inside = [], [], []
    for r in range(ROUNDS):
        protocol = make(f"round {r}")
        aggregator = protocol.aggregator(max_reports=None)
        for i, part in enumerate(parts):
            aggregator.receive(protocol.party(1000 * i, source=seeded_source(100 * r + i)).encode(part))
        estimates = aggregator.estimate(np.arange(200))
        lower, upper = estimates.bounds(0.95)
        errors.append(estimates.values - true)
        variances.append(estimates.variances)
        inside.append((lower <= true) & (true <= upper))
    errors, variances = np.array(errors), np.array(variances)
    deviation = np.sqrt(np.maximum(errors.var(axis=0, ddof=1), variances.mean(axis=0)) / ROUNDS)
    assert (np.abs(errors.mean(axis=0)) < 5.5 * deviation).all()
    # Stated may be somewhat more than seen: sampling is bounded from above, and items do not collide with themselves.
    assert 0.8 < variances.mean() / np.mean(errors**2) < 1.5
    assert np.mean(inside) > 0.92
