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
    Separation,
    Stream,
    plan,
)
from discreet.noise import seeded_source

EVERY = {
    HadamardResponse,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
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
        if not row.fits:
            continue
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


# ---- streams and levels ----------------------------------------------------------------------------------------------


def zipf_items(size, shape, seed=1):
    weights = np.arange(1, size + 1, dtype=float) ** -1.2
    return np.random.default_rng(seed).choice(size, shape, p=weights / weights.sum())


@pytest.mark.parametrize(("window", "branching", "share"), [(False, None, 0.5), (True, None, 0.0), (False, 16, 0.5)])
def test_streams_err_as_planned(window, branching, share):
    """The mean error at several moments, over items that are not among the heaviest, is within a factor of 1.6. Of an
    item of 1 percent, which the plan speaks of, half an epoch at either end is missing without samples; of these not.
    """
    parties, steps = 30, 64
    planned = plan(parties, None, 4.0, 4000, steps=steps, window=window, branching=branching, universe_size=256)
    assert planned.pick is planned.rows[0]
    assert planned.pick.fits
    row = next(row for row in planned.rows if row.parameters["sample_share"] == share)
    stream = row.protocol("planned", 256)
    columns = zipf_items(256, (parties, 2 * steps if window else steps))
    aggregator, source, sizes = stream.aggregator(), seeded_source(5), []
    for number, column in enumerate(columns):
        messages = [m for m in map(stream.party(number, source=source).feed, np.array_split(column, len(column))) if m]
        sizes.append(sum(map(len, messages)) * steps / len(column))
        aggregator.receive_many(messages)
    errors = []
    for time in range(75, 128, 7) if window else range(10, 64, 7):
        found = aggregator.estimate(range(256), time)
        truth = np.bincount(columns[:, found.since : time].ravel(), minlength=256)
        errors.append(np.sqrt(np.mean(np.square(found.values - truth)[8:])))
    expected = row.error - (parties * 0.01 * stream.epoch_steps if share == 0 else 0)
    assert expected / 1.6 < np.mean(errors) < 1.6 * expected
    assert row.bytes_per_party / 1.6 < np.mean(sizes) < 1.6 * row.bytes_per_party


def test_streams_that_are_planned_fit_and_say_their_epochs():
    found = plan(100, None, 2.0, 3000, steps=1440, window=True)
    assert {row.kind for row in found.rows} == {Stream}
    assert all(row.fits and row.bytes_per_party <= 3000 for row in found.rows)
    assert [row.error for row in found.rows] == sorted(row.error for row in found.rows)
    assert "epoch_steps=" in str(found)
    assert found.to_dict()["pick"] == "Stream"
    tight = plan(100, None, 2.0, 1.0, steps=1440)
    assert not tight.pick.fits
    assert tight.pick.bytes_per_party == min(row.bytes_per_party for row in tight.rows)
    for wrong in (
        {"parties": 0},
        {"steps": 0},
        {"epsilon": -1},
        {"bytes_per_party": 0},
        {"branching": 1},
        {"total": 9},
    ):
        with pytest.raises(ParameterError):
            plan(**{"parties": 10, "steps": 10, "epsilon": 1.0, "bytes_per_party": 99, **wrong})


def test_hierarchies_are_planned_by_level():
    found = plan(1000, 10**6, 2.0, 2000, universe_size=4096, branching=16)
    by_name = {row.parameters["protocol"]: row for row in found.rows}
    assert set(by_name) == {kind.__name__ for kind in EVERY}
    sketches = by_name["IndependentSketches"].protocol("r", 4096)
    assert sketches.by_level[0].epsilon == pytest.approx(2 / 3)
    # A level of sampled reports has a third of them; a level of sketches a third of the budget and the bytes.
    local = next(row for row in plan(1000, 10**6, 2.0, 2000, universe_size=4096).rows if row.kind is LocalHashing)
    assert by_name["LocalHashing"].error == pytest.approx(local.error * np.sqrt(3))
    assert by_name["LocalHashing"].epsilon == by_name["IndependentSketches"].epsilon == 2.0
    assert "protocol=Separation" in str(found)
    columns = zipf_items(4096, (100, 1000))
    row = {r.parameters["protocol"]: r for r in plan(100, 10**5, 2.0, 2000, universe_size=4096, branching=16).rows}
    protocol = row["IndependentSketches"].protocol("planned", 4096)
    aggregator, source = protocol.aggregator(), seeded_source(2)
    aggregator.receive_many(protocol.party(n, source=source).encode(column) for n, column in enumerate(columns))
    off = aggregator.estimate(range(4096)).values - np.bincount(columns.ravel(), minlength=4096)
    planned = row["IndependentSketches"].error
    assert planned / 1.6 < np.sqrt(np.mean(np.square(off[8:]))) < 1.6 * planned
    single = plan(100, 1000, 1.0, 100, universe_size=8, branching=16)
    assert {row.parameters["protocol"] for row in single.rows} == set(by_name)
