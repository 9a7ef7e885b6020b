"""One contract for every central mechanism.

Seeded sources throughout, so nothing here fails by chance.
"""

import dataclasses
import inspect
import math

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import central, published
from discreet.central import (
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    Mechanism,
    Merged,
    Offset,
    ReducedMisraGries,
    ShardedOffset,
    Stability,
    Summed,
    UserSketch,
)
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import seeded_source, system_source
from discreet.published import (
    ChanMisraGries,
    GaussianSparseHistogram,
    PrivateMisraGries,
    PrivateSpaceSaving,
    TextbookMisraGries,
)

APPROXIMATE = dc.Budget(1.0, 1e-3)
PURE = dc.Budget(1.0)
UNIVERSE = range(1000)


@dataclasses.dataclass(frozen=True)
class Case:
    """How to make a mechanism for a capacity, and an (empty) summary for it."""

    make: object
    summary: object
    users: bool = False
    universe: bool = False
    parts: int = 0

    def fill(self, stream, capacity):
        if self.parts:
            sketches = [self.summary(capacity) for _ in range(self.parts)]
            for i, sketch in enumerate(sketches):
                sketch.update(stream[i :: self.parts])
            return sketches
        summary = self.summary(capacity)
        summary.update([[x] for x in stream] if self.users else stream)
        return summary


def user_sketch(capacity):
    return dc.UserMisraGries(capacity, 1)


def exact_counts(capacity):
    return dc.ExactCounts()


def three_shards(capacity):
    return dc.ShardedMisraGries(capacity, 3, seed=1)


SMALL = {"width": 1024, "depth": 21}


def count_min(capacity):
    return dc.CountMin(**SMALL, tracked=capacity, seed=1)


def count_sketch(capacity):
    return dc.CountSketch(**SMALL, tracked=capacity, seed=1)


def case(kind, summary, budget=APPROXIMATE, **options):
    extra = {name: options.pop(name) for name in ("users", "parts") if name in options}

    def make(capacity):
        size = {} if kind is Stability else {"capacity": capacity}
        return kind(budget, **size, **options)

    return Case(make, summary, universe="universe" in options, **extra)


CASES = {
    "offset": case(Offset, dc.MisraGries),
    "offset, users": case(Offset, dc.MisraGries, unit=dc.User(3)),
    "sharded": case(ShardedOffset, three_shards, shards=3),
    "sharded, users": case(ShardedOffset, three_shards, shards=3, unit=dc.User(3)),
    "pmg": case(PrivateMisraGries, dc.MisraGries, stream_length=20_000),
    "pmg, paper": case(PrivateMisraGries, dc.MisraGries, calibration="paper"),
    "pmg, geometric": case(PrivateMisraGries, dc.MisraGries, calibration="paper-geometric", unit=dc.User(2)),
    "textbook": case(TextbookMisraGries, dc.MisraGries),
    "textbook, paper": case(TextbookMisraGries, dc.MisraGries, calibration="paper", stream_length=20_000),
    "merged": case(Merged, dc.MisraGries, stream_length=20_000),
    "user": case(UserSketch, user_sketch, unit=dc.User(1), users=True),
    "gaussian sparse": case(GaussianSparseHistogram, dc.MisraGries, stream_length=20_000),
    "gaussian sparse, users": case(GaussianSparseHistogram, user_sketch, unit=dc.User(1), users=True),
    "stability": case(Stability, exact_counts),
    "stability, gaussian": case(Stability, exact_counts, noise="gaussian"),
    "stability, few": case(Stability, exact_counts, max_distinct=500),
    "stability, users": case(Stability, exact_counts, unit=dc.User(2)),
    "reduced": case(ReducedMisraGries, dc.MisraGries, stream_length=20_000),
    "reduced, universe": case(ReducedMisraGries, dc.MisraGries, PURE, universe=UNIVERSE),
    "reduced, list": case(ReducedMisraGries, dc.MisraGries, PURE, universe=list(UNIVERSE), stream_length=20_000),
    "reduced, zcdp": case(ReducedMisraGries, dc.MisraGries, dc.Budget.zcdp(0.5), universe=UNIVERSE),
    "chan": case(ChanMisraGries, dc.MisraGries),
    "chan, universe": case(ChanMisraGries, dc.MisraGries, PURE, universe=UNIVERSE),
    "summed": case(Summed, dc.MisraGries, sketches=3, parts=3),
    "summed, universe": case(Summed, dc.MisraGries, PURE, sketches=3, parts=3, universe=UNIVERSE, stream_length=20_000),
    "space saving": case(PrivateSpaceSaving, dc.SpaceSaving, stream_length=20_000),
    "space saving, paper": case(PrivateSpaceSaving, dc.SpaceSaving, stream_length=20_000, calibration="paper"),
    "space saving, heavy": case(PrivateSpaceSaving, dc.SpaceSaving, stream_length=20_000, heavier_than=20),
    "space saving, noisy": case(PrivateSpaceSaving, dc.SpaceSaving, stream_length="noisy"),
    "count min": case(CountMinHeavyHitters, count_min, **SMALL),
    "count min, laplace": case(CountMinHeavyHitters, count_min, **SMALL, noise="laplace", stream_length=20_000),
    "count sketch": case(CountSketchHeavyHitters, count_sketch, **SMALL, unit=dc.User(2)),
    "count sketch, laplace": case(
        CountSketchHeavyHitters, count_sketch, **SMALL, noise="laplace", stream_length=20_000
    ),
}


def all_mechanisms():
    offered = [getattr(package, name) for package in (central, published) for name in package._WHERE]
    return {kind for kind in offered if inspect.isclass(kind) and issubclass(kind, Mechanism)}


@pytest.fixture(params=CASES)
def each(request):
    return CASES[request.param]


def stream(length=20_000, seed=3):
    """Integers with Zipf frequencies, in a random order."""
    return (np.random.default_rng(seed).zipf(1.4, length) % 500).astype(np.int64)


def test_every_mechanism_of_the_package_is_here():
    tried = {type(case.make(8)) for case in CASES.values()}
    # One that lists all of a public list, whatever occurs, has its own tests: tests/unit/test_counting.py.
    # One whose summary is brought, and neither merged nor stored: tests/unit/published/test_oracle_heavy_hitters.py.
    # One that answers with numbers, not with items: tests/unit/questions/test_sums.py.
    elsewhere = {central.UniverseHistogram, central.PersonMoments, published.OracleHeavyHitters}
    assert tried == all_mechanisms() - {Mechanism} - elsewhere


def test_it_declares_what_it_promises(each):
    mechanism = each.make(64)
    guarantee = mechanism.guarantee
    assert guarantee.unit == mechanism.unit
    assert (guarantee.epsilon, guarantee.delta, guarantee.rho) == (
        mechanism.budget.epsilon,
        mechanism.budget.delta,
        mechanism.budget.rho,
    )
    assert guarantee.mechanism == mechanism.name
    assert guarantee.reference
    assert not guarantee.seeded
    assert mechanism.error_bound(0.05) > 0
    assert mechanism.error_bound(0.001) > mechanism.error_bound(0.1)
    doc = type(mechanism).__doc__
    for word in ("Unit:", "Guarantee:", "Noise:", "Threshold:", "Error:", "Argument:"):
        assert word in doc


def test_it_is_frozen_and_comparable(each):
    mechanism = each.make(64)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.budget = dc.Budget(9.0)
    if not each.universe:
        assert mechanism == each.make(64)
        assert mechanism != dataclasses.replace(mechanism, budget=dc.Budget(2.0, 1e-3))


def test_it_publishes_what_occurred_and_reaches_the_cut(each):
    data = stream()
    histogram = each.make(64)(each.fill(data, 64), seeded_source(1))
    assert len(histogram) > 0
    if each.universe:
        assert set(histogram.items) <= set(UNIVERSE)
        assert any("did not occur" in text for text in histogram.guarantee.assumptions)
    else:
        assert set(histogram.items) <= set(data.tolist())
    # a published count is the noisy one rounded to a whole number
    assert (histogram.counts - (histogram.offset or 0) >= histogram.threshold - 0.5).all()


def test_most_of_the_clearly_frequent_items_are_there(each):
    data = stream()
    mechanism = each.make(64)
    histogram = mechanism(each.fill(data, 64), seeded_source(2))
    items, counts = np.unique(data, return_counts=True)
    # below: what the summary may lose (n/k) or the cut takes from the length, the rest of the cut, and twice the noise
    enough = max(len(data) / 64, histogram.offset or 0) + histogram.threshold + 2 * mechanism.error_bound(0.01)
    assert set(items[counts > enough].tolist()) <= set(histogram.items)


def test_the_order_is_that_of_the_published_counts(each):
    """And it does not depend on the order of arrival beyond them: sorted by count, then by item."""
    histogram = each.make(64)(each.fill(stream(), 64), seeded_source(3))
    pairs = list(zip((-histogram.counts).tolist(), histogram.items, strict=True))
    assert pairs == sorted(pairs)


def test_an_empty_summary_gives_an_empty_private_release(each):
    histogram = each.make(4)(each.fill(stream(0), 4), seeded_source(4))
    assert len(histogram) == 0
    assert histogram.guarantee.seeded
    lower, upper = histogram.bounds()
    assert len(lower) == len(upper) == 0


def test_an_empty_release_does_not_tell_an_empty_stream_from_one_event(each):
    """Neither by its column type nor by anything else that is stored or printed."""
    mechanism = each.make(4)
    nothing, one = (mechanism(each.fill(s, 4), seeded_source(5)) for s in (stream(0), np.array([7])))
    assert len(nothing) == len(one) == 0
    assert nothing.to_arrow().schema == one.to_arrow().schema
    assert without_noisy_numbers(nothing) == without_noisy_numbers(one)


def without_noisy_numbers(release):
    """What is stored and printed, but for what has noise: offsets, and the length that cell sketches publish."""
    fields = {**release.to_dict(), "offset": 0}
    collisions = fields["error_model"].get("collisions")
    if collisions:
        assert collisions["length"] > 50  # of no events, or one: it is the noise
        collisions.update(length=0, items=0)
    return fields


def test_one_counter(each):
    data = np.array([5] * 5000 + [6])
    mechanism = each.make(1)
    if isinstance(getattr(mechanism, "stream_length", None), int):
        mechanism = dataclasses.replace(mechanism, stream_length=len(data))
    histogram = mechanism(each.fill(data, 1), seeded_source(6))
    assert set(histogram.items) <= ({5, 6} if not each.universe else set(UNIVERSE))
    if isinstance(mechanism, PrivateSpaceSaving):
        # its one counter holds the length of the stream, which is what the cut hides
        assert len(histogram) == 0
    else:
        assert 5 in histogram.items


def test_merged_summaries_only_where_the_proof_covers_them(each):
    if each.parts:
        sketches = each.fill(stream(), 16)
        sketches[0].merge(each.summary(16))
        with pytest.raises(IncompatibleSummaryError, match="merged"):
            each.make(16)(sketches)
        return
    first, second = each.fill(stream(), 16), each.fill(stream(seed=4), 16)
    other = second
    if first.seed != second.seed:
        other = type(second).from_bytes(second.to_bytes())
    first.merge(other)
    mechanism = each.make(16)
    if mechanism.takes_merged:
        assert mechanism(first, seeded_source(7)) is not None
    else:
        with pytest.raises(IncompatibleSummaryError, match="merged"):
            mechanism(first)


def test_only_the_right_kind_of_summary(each):
    wrong = dc.SpaceSaving(8) if each.summary is not dc.SpaceSaving else dc.MisraGries(8)
    with pytest.raises(IncompatibleSummaryError):
        each.make(8)(wrong)
    with pytest.raises(IncompatibleSummaryError):
        each.make(8)([wrong] * 3 if each.parts else [1, 2, 3])


def test_only_the_right_capacity(each):
    if each.summary is exact_counts:
        pytest.skip("exact counts have no capacity")
    with pytest.raises(ParameterError, match="capacity"):
        each.make(16)(each.fill(stream(100), 15))


def test_a_seeded_release_says_that_it_is_not_private(each):
    summary = each.fill(stream(), 32)
    assert "NOT PRIVATE" in each.make(32)(summary, seeded_source(8)).guarantee.sentence()
    private = each.make(32)(summary)
    assert not private.guarantee.seeded
    assert "NOT PRIVATE" not in private.guarantee.sentence()


def test_equal_seeds_give_equal_releases_and_others_do_not(each):
    summary, mechanism = each.fill(stream(), 32), each.make(32)
    one, same, *others = (mechanism(summary, seeded_source(seed)).to_payload() for seed in (9, 9, *range(10, 20)))
    assert one == same
    assert any(one != other for other in others)  # one other may be equal by chance: 3 of 300 are, where noise is small


def test_the_system_source_is_the_default(each, monkeypatch):
    used = []
    monkeypatch.setattr(central._base, "system_source", lambda: used.append(1) or system_source())
    each.make(8)(each.fill(stream(100), 8))
    assert used == [1]


def test_bounds_hold_at_their_confidence(each):
    """400 seeded releases at 80 percent: the bounds of all items at once fail in at most 80 + 4.5 sigma = 116 of them.

    A right program exceeds that with probability below 1e-5 for the worst seeds; the seeds are fixed.
    """
    capacity = 16
    data = stream(3000)
    items, counts = np.unique(data, return_counts=True)
    truth = dict(zip(items.tolist(), counts.tolist(), strict=True))
    summary, mechanism = each.fill(data, capacity), each.make(capacity)
    failures = 0
    for seed in range(400):
        histogram = mechanism(summary, seeded_source(seed))
        lower, upper = histogram.bounds(0.8)
        f = np.array([truth.get(item, 0) for item in histogram.items], dtype=float)
        failures += bool(((f < lower) | (f > upper)).any())
    assert failures <= 116


def test_infinite_upper_bounds_only_without_a_public_length():
    budget, data = APPROXIMATE, stream()
    sketch = dc.MisraGries(64)
    sketch.update(data)
    for kind in (PrivateMisraGries, TextbookMisraGries, Merged, ReducedMisraGries):
        assert math.isinf(kind(budget, 64).error_model.summary_below)
        with_length = kind(budget, 64, stream_length=20_000)(sketch, seeded_source(1))
        assert with_length.error_model.summary_below == pytest.approx(len(data) // 65, abs=0.6)
        assert "the length of the stream is public" in with_length.guarantee.assumptions


def test_strings_and_bytes_and_large_integers(each):
    if each.universe:
        pytest.skip("the universe here is of integers")
    for items in (["ä", "b"], [b"\xff", b"b"], [2**63 + 5, 7], [-3, 2**62]):
        data = [items[0]] * 4000 + [items[1]] * 3
        histogram = each.make(4)(each.fill(data, 4), seeded_source(11))
        assert set(histogram.items) <= set(items)
        assert histogram.to_payload() == type(histogram).from_payload(histogram.to_payload()).to_payload()


def test_a_column_of_small_unsigned_integers_is_published_as_signed():
    """Whether a summary holds uint64 may depend on one event."""
    counts = dc.ExactCounts()
    counts.update(pa.array([5] * 100, pa.uint64()))
    assert counts.key_type == "uint64"
    histogram = Stability(APPROXIMATE)(counts, seeded_source(1))
    assert str(histogram.to_arrow().schema.field("item").type) == "int64"
