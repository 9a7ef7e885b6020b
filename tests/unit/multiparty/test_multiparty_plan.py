"""`multiparty.plan`: what it says is what a simulation shows, and what it picks can be made. Seeded."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.multiparty import (
    HadamardResponse,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    MergedMisraGries,
    MergedSketch,
    Separation,
    plan,
)
from discreet.noise import seeded_source

EVERY = {
    HadamardResponse,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    MergedMisraGries,
    MergedSketch,
    Separation,
}


def test_every_protocol_is_there_and_the_best_that_fits_comes_first():
    found = plan(1000, 10**6, 1.0, 200, universe_size=10_000, zipf=1.5)
    assert {row.kind for row in found.rows} == EVERY
    assert len(found.rows) == len(EVERY)
    assert found.pick is found.rows[0]
    assert found.pick.kind is Separation
    assert all(row.bytes_per_party <= 200 for row in found.rows if row.fits)
    fitting = [row.error for row in found.rows if row.fits]
    assert fitting == sorted(fitting)
    assert "Separation" in str(found)
    assert "does not fit" in str(found)


def test_local_privacy_takes_local_hashing_and_tiny_messages_the_shortest():
    assert plan(10**6, 10**6, 1.0, 40).pick.kind is LocalHashing
    assert plan(10, 10**6, 1.0, 5).pick.bytes_per_party == min(r.bytes_per_party for r in plan(10, 10**6, 1.0, 5).rows)


def test_more_bytes_and_more_epsilon_do_not_hurt():
    errors = [plan(500, 10**6, 1.0, size).pick.error for size in (60, 200, 1000, 5000)]
    assert errors == sorted(errors, reverse=True)
    errors = [plan(500, 10**6, epsilon, 500).pick.error for epsilon in (0.1, 0.5, 2.0, 8.0)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(
    "question", [(1, 1, 1.0, 100), (10**6, 10**6, 8.0, 40), (3, 10**9, 0.01, 10**6), (10**9, 10**9, 30.0, 1e-3)]
)
def test_all_that_is_planned_can_be_made(question):
    for row in plan(*question).rows:
        protocol = row.protocol("a round", 1000)
        protocol.aggregator(max_reports=None).receive(protocol.party(1).encode([1]))


@pytest.mark.parametrize("wrong", [(0, 1, 1.0, 1), (1, 0, 1.0, 1), (1, 1, 0.0, 1), (1, 1, 1.0, 0), (1.5, 1, 1.0, 1)])
def test_parameters_are_checked(wrong):
    with pytest.raises(ParameterError):
        plan(*wrong)


def test_a_simulation_agrees():
    """200 parties, Zipf 1.5: bytes within 15 percent; errors within 35, one choice of hash functions decides them."""
    parties, size = 200, 2000
    weights = np.arange(1, size + 1) ** -1.5
    items = np.random.default_rng(4).choice(size, 100_000, p=weights / weights.sum())
    parts, true = np.array_split(items, parties), np.bincount(items, minlength=size)
    rows = plan(parties, len(items), 2.0, 150, universe_size=size, zipf=1.5).rows
    checked = 0
    for row in rows:
        if row.kind in (MergedMisraGries, MergedSketch) or not row.fits:
            continue  # a bound of a bias; and a median that one collision decides
        protocol = row.protocol("simulation", size)
        aggregator = protocol.aggregator(max_reports=None)
        for i, part in enumerate(parts):
            aggregator.receive(protocol.party(i << 20, source=seeded_source(i)).encode(part))
        rare = np.arange(200, size)
        error = np.sqrt(np.mean((aggregator.estimate(rare).values - true[rare]) ** 2))
        assert aggregator.bytes_received / parties == pytest.approx(row.bytes_per_party, rel=0.15)
        assert error == pytest.approx(row.error, rel=0.35)
        checked += 1
    assert checked >= 3
