"""Levels of intervals: what is sent, and what is computed from it. Noise is seeded, or so small that it is 0."""

from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, MessageError, ParameterError
from discreet.multiparty import Hierarchy, Strings, protocol_from_dict
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.wire import Message, pack_parts, unpack_parts
from discreet.noise import seeded_source
from discreet.releases.simplex import on_simplex

EXACT = dc.Budget(20_000.0)  # noise is 0 but for a probability below e^-1000
WIDE = {
    "items_per_column": 0.01,
    "max_items": 10_000,
}  # a hundred columns an item: collisions are rare, and fixed by the round


def heard(hierarchy, columns, seed=0):
    aggregator = hierarchy.aggregator(max_reports=None)
    for number, column in enumerate(columns):
        aggregator.receive(hierarchy.party(number, source=seeded_source(seed + number)).encode(column))
    return aggregator


@pytest.fixture(scope="module")
def exact():
    rng = np.random.default_rng(5)
    columns = [np.minimum(rng.zipf(1.3, 200), 999) for _ in range(4)]
    return np.concatenate(columns), heard(Hierarchy("exact", EXACT, 1000, branching=7, options=WIDE), columns)


@pytest.mark.parametrize(
    ("size", "branching", "epsilon"), [(2, 2, 1.0), (1000, 2, 0.1), (10**6, 7, 3.3), (2**62, 3, 1e-3)]
)
def test_the_levels_share_the_budget_and_no_more(size, branching, epsilon):
    hierarchy = Hierarchy("r", dc.Budget(epsilon), size, branching=branching, options={"items_per_column": 100})
    spent = sum(Fraction(protocol.epsilon) for protocol in hierarchy.by_level)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) <= spent <= Fraction(epsilon)
    assert branching ** len(hierarchy.levels) >= size
    rounds = {protocol.round_id for protocol in hierarchy.by_level}
    assert len(rounds) == len(hierarchy.levels)  # noise and hash functions of their own


def test_counts_without_noise(exact):
    items, aggregator = exact
    for level, width in enumerate(aggregator.protocol.levels.widths):
        nodes = np.arange(aggregator.protocol.levels.count(level))
        truth = np.bincount(items // width, minlength=len(nodes))
        assert np.mean(aggregator.interval_counts(level, nodes).values == truth) > 0.95
    assert aggregator.total == 800


@pytest.mark.parametrize(("low", "high"), [(0, 999), (0, 0), (1, 1), (3, 700), (990, 999), (7, 48), (0, 998), (1, 999)])
def test_ranges_without_noise(exact, low, high):
    items, aggregator = exact
    assert aggregator.range_count(low, high).value == pytest.approx(np.sum((items >= low) & (items <= high)), abs=8)


def test_the_range_of_everything_is_public(exact):
    whole = exact[1].range_count(0, 999)
    assert (whole.value, whole.lower, whole.upper) == (800, 800, 800)


def test_ranges_the_wrong_way_round(exact):
    with pytest.raises(ParameterError):
        exact[1].range_count(5, 4)
    with pytest.raises(DataError):
        exact[1].range_count(5, 1000)


def test_quantiles_without_noise(exact):
    items, aggregator = exact
    for share in (0.05, 0.25, 0.5, 0.75, 0.9):
        found = aggregator.quantile(share)
        assert np.mean(items < found.value) <= share + 0.02
        assert np.mean(items <= found.value) >= share - 0.02
        assert found.lower <= found.value <= found.upper


def test_heavy_hitters_without_noise(exact):
    items, aggregator = exact
    counts = np.bincount(items, minlength=1000)
    found = aggregator.heavy_hitters(0.03)
    assert sorted(found.items) == np.flatnonzero(counts >= 0.03 * 800).tolist()
    assert found.complete
    assert (np.diff(found.estimates.values) <= 0).all()
    assert found.guarantee.seeded


def test_no_more_candidates_than_asked_for():
    noisy = heard(Hierarchy("noisy", dc.Budget(0.01), 4096, branching=4, options={"items_per_column": 1}), [[1] * 50])
    found = noisy.heavy_hitters(0.5, max_candidates=3)
    assert not found.complete
    assert len(found) <= 12


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_never_decrease(seed):
    rng = np.random.default_rng(seed)
    hierarchy = Hierarchy(f"r{seed}", dc.Budget(0.3), 500, branching=5, options={"items_per_column": 5})
    aggregator = heard(hierarchy, [rng.integers(0, 500, 100) for _ in range(5)], seed)
    found = [aggregator.quantile(share).value for share in np.linspace(0, 1, 41)]
    assert found == sorted(found)


def test_bounds_cover():
    """Of 60 seeded runs 6 may miss, and ends are as far as the errors of these runs ask for, not twice as far."""
    rng = np.random.default_rng(3)
    columns = [rng.binomial(300, 0.4, 150) for _ in range(10)]
    items = np.concatenate(columns)
    median, below = np.quantile(items, 0.5, method="inverted_cdf"), np.sum(items <= 110)
    misses = np.zeros(2, int)
    widths, errors, stated = [], [], []
    for run in range(60):
        hierarchy = Hierarchy(f"run {run}", dc.Budget(1.0), 301, branching=7, options={"items_per_column": 1})
        aggregator = heard(hierarchy, columns, 100 * run)
        quantile, count = aggregator.quantile(0.5, 0.9), aggregator.range_count(0, 110, 0.9)
        misses += [not quantile.lower <= median <= quantile.upper, not count.lower <= below <= count.upper]
        widths.append(quantile.upper - quantile.lower)
        errors.append(count.value - below)
        stated.append(count.upper - count.value)
        assert aggregator.range_count(0, 110, 0.8).upper < 0.95 * count.upper
    assert (misses <= 6).all()
    assert misses[1] >= 1
    assert 2.5 < np.mean(stated) / np.std(errors) < 3.5  # 1.6 deviations would do if errors were normal
    assert np.median(widths) < 120


@pytest.mark.parametrize("protocol", ["HadamardResponse", "LocalHashing", "LocalSketch"])
def test_a_report_goes_to_one_level_with_the_whole_budget(protocol):
    hierarchy = Hierarchy("local", dc.Budget(2.0), 4096, protocol=protocol, branching=16)
    assert {base.epsilon for base in hierarchy.by_level} == {2.0}
    items = np.r_[np.full(6000, 77), np.arange(4000) % 4096]
    aggregator = heard(hierarchy, [items])
    ((_, content),) = aggregator._heard
    sizes = [message.items for message, _ in content]
    assert sum(sizes) == len(items) == aggregator.total == aggregator.parties
    assert all(abs(size - 10_000 / 3) < 6 * 48 for size in sizes)  # six standard deviations
    assert aggregator.heavy_hitters(0.3).items == [77]
    found = aggregator.estimate([77])[0]
    assert abs(found.value - 6000) < 6 * np.sqrt(aggregator.estimate([77]).variances[0])
    assert aggregator.quantile(0.5).value == 77


def test_a_single_report():
    hierarchy = Hierarchy("local", dc.Budget(2.0), 4096, protocol="HadamardResponse")
    message = hierarchy.party(5).encode([3])
    assert len(message) < 40
    aggregator = hierarchy.aggregator(max_reports=None)
    aggregator.receive(message)
    with pytest.raises(MessageError) as caught:
        aggregator.receive(hierarchy.party(5).encode([4]))
    assert caught.value.reason == "duplicate"
    assert np.isfinite(aggregator.estimate([3]).values).all()


def test_strings():
    words = ["the"] * 90 + ["of"] * 60 + ["th"] * 50 + ["", "zoo", "z"] * 3
    hierarchy = Hierarchy("words", EXACT, Strings("abcdefghijklmnopqrstuvwxyz", 4), options=WIDE)
    aggregator = heard(hierarchy, [words, words])
    assert aggregator.heavy_hitters(0.1).items == ["the", "of", "th"]
    assert aggregator.quantile(0.5).value == "th"
    assert aggregator.range_count("t", "tzzz").value == 280
    assert hierarchy.by_level[0].universe.size == 27


@pytest.mark.parametrize("hierarchy", [
    Hierarchy("r", dc.Budget(1.0), 1000, options={"items_per_column": 3.0}),
    Hierarchy("r", dc.Budget(1.0), range(-5, 70), protocol="LocalHashing", branching=3),
    Hierarchy("r", dc.Budget(1.0), Strings("ab", 9), branching=2),
    Hierarchy("r", dc.Budget(1.0), ["low", "middle", "high"]),
])  # fmt: skip
def test_descriptions_and_states(hierarchy):
    again = protocol_from_dict(hierarchy.to_dict())
    assert (again.digest, again.round_digest) == (hierarchy.digest, hierarchy.round_digest)
    aggregator = heard(hierarchy, [hierarchy.universe.items([0, 1, 2, 2])])
    restored = again.restore(aggregator.to_bytes())
    everything = hierarchy.universe.items(np.arange(3))
    assert restored.estimate(everything).values.tolist() == aggregator.estimate(everything).values.tolist()
    assert restored.bytes_received == aggregator.bytes_received


@pytest.mark.parametrize("given", [
    {"protocol": "Hierarchy"}, {"protocol": "Stream"}, {"protocol": "nothing"}, {"options": {"colour": 3}},
    {"options": [1]}, {"branching": 1}, {"universe": "integers"}, {"universe": None},
])  # fmt: skip
def test_bad_parameters(given):
    with pytest.raises(ParameterError):
        Hierarchy(**{"round_id": "r", "budget": dc.Budget(1.0), "universe": 100, **given})


def test_an_alphabet_is_unicode():
    with pytest.raises(ParameterError, match="alphabet"):
        Strings("ab\udcff", 3)


def test_bad_questions(exact):
    aggregator = exact[1]
    for arguments in ((0,), (2,), ("a",)):
        with pytest.raises(ParameterError):
            aggregator.heavy_hitters(*arguments)
    for arguments in ((-1,), (1.5,), ("a",), (0.5, 1)):
        with pytest.raises(ParameterError):
            aggregator.quantile(*arguments)
    with pytest.raises(ParameterError):
        aggregator.interval_counts(9, [0])
    with pytest.raises(ParameterError):
        aggregator.heavy_hitters(0.1, max_candidates=0)
    with pytest.raises(DataError):
        aggregator.protocol.aggregator(max_reports=None).quantile(0.5)


@pytest.mark.parametrize("protocol", ["IndependentSketches", "HadamardResponse"])
def test_messages_that_were_tampered_with(protocol):
    hierarchy = Hierarchy("r", dc.Budget(1.0), 100, protocol=protocol, branching=10)
    good = hierarchy.party(1, source=seeded_source(1)).encode([1, 2, 3, 4])
    aggregator = hierarchy.aggregator(max_reports=None)
    aggregator.receive(good)
    before = aggregator.estimate(np.arange(100)).values.tolist()
    payload = hierarchy._encode(np.array([1, 2], np.uint64), 2, seeded_source(2))
    parts = list(unpack_parts(payload, 2))
    bad = [
        b"", pack_parts(parts[:1]), pack_parts([*parts, b""]), pack_parts([parts[0], b""]), payload + b"\0",
        pack_parts([parts[0], parts[1] + b"\0"]), pack_parts([b"", parts[1]]), payload[:-1],
    ]  # fmt: skip
    messages = [hierarchy._pack(Message(2, 2, part)) for part in bad]
    messages += [hierarchy._pack(Message(2, 30, payload))]  # another number of items
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(hierarchy._pack(Message(2, 2, payload)))
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        messages.append(bytes(damaged))
    receipt = aggregator.receive_many(messages)
    assert receipt.accepted == 0
    assert len(receipt.rejected) == len(messages)
    assert aggregator.estimate(np.arange(100)).values.tolist() == before


@pytest.mark.parametrize("values", [[3.0, 1.0, -2.0], [0.0], [-5.0, -7.0], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("mass", [0.0, 1.0, 100.0])
def test_the_nearest_numbers_of_a_given_sum(values, mass):
    """A point of a convex set is nearest iff no direction within the set leads closer to the values."""
    values = np.array(values)
    found = on_simplex(values, mass)
    assert found.sum() == pytest.approx(mass)
    assert (found >= 0).all()
    for corner in np.eye(len(values)) * mass:
        assert np.dot(values - found, corner - found) <= 1e-9


def test_the_interval_of_a_range_adds_deviations_within_a_level_and_variances_across():
    hierarchy = Hierarchy("r", dc.Budget(2.0), 100, branching=10, options={"items_per_column": 2.0})
    aggregator = heard(hierarchy, [np.arange(100)] * 3)
    upper = aggregator.interval_counts(0, [1, 2, 3])  # 10 to 39
    lower = aggregator.interval_counts(1, [8, 9, 40])
    found = aggregator.range_count(8, 40)
    variance = np.sqrt(upper.variances).sum() ** 2 + np.sqrt(lower.variances).sum() ** 2
    assert found.value == pytest.approx(upper.values.sum() + lower.values.sum())
    expected = Estimates(np.array([found.value]), np.array([variance]), aggregator.guarantee).bounds(0.95)
    assert (found.lower, found.upper) == pytest.approx((expected[0][0], expected[1][0]))
