"""workers=n: the same guarantee from threads, with the parameters that are proved and no others."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import Offset, ShardedOffset
from discreet.engines import threads
from discreet.errors import DataError, IncompatibleSummaryError, ParameterError
from discreet.noise import seeded_source

BUDGET = dc.Budget(1.0, 1e-6)
COUNTS = {f"item {rank}": 4000 // rank for rank in range(1, 60)}
COLUMN = pa.array(np.random.default_rng(1).permutation(np.repeat(list(COUNTS), list(COUNTS.values()))))


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_the_top_is_found_and_bounds_hold(workers):
    """The bounds hold together but for 1e-8, and a count above 500 is missed with a chance below e^-400."""
    top = dc.top_k(COLUMN, 20, BUDGET, workers=workers)
    assert {item for item, count in COUNTS.items() if count > 500} <= set(top.items)
    lower, upper = top.bounds(1.0 - 1e-8)
    for item, low, high in zip(top.items, lower, upper, strict=True):
        assert low <= COUNTS[item] <= high
    assert len(top.shard_offsets) == workers
    assert np.all(top.counts - top.offsets >= top.threshold)
    assert top.offset is None
    assert top.threshold == Offset(BUDGET, 4096).threshold


def test_the_guarantee_is_that_of_one_worker_and_names_parallel_composition():
    one, two = (dc.top_k(COLUMN, 5, BUDGET, workers=workers).guarantee for workers in (1, 2))
    assert (two.epsilon, two.delta, two.unit) == (one.epsilon, one.delta, one.unit)
    assert "parallel composition over disjoint items" in two.assumptions[0]
    assert "shards" in two.mechanism
    assert "shards" not in one.mechanism


def test_one_worker_is_what_it_was():
    first = dc.top_k(COLUMN, 5, BUDGET, workers=1)
    assert first.offset is not None
    assert first.shards is None
    assert "shard_offsets" not in first.to_dict()
    assert np.array_equal(first.offsets, np.full(5, first.offset))


def test_batches_readers_lists_and_numbers():
    table = pa.table({"item": COLUMN})
    sources = [
        table.to_reader(1000),
        table,
        (batch for batch in table.to_batches(500)),
        COLUMN.to_pylist(),
        COLUMN.dictionary_encode(),
    ]
    for source in sources:
        assert dc.top_k(source, 3, BUDGET, workers=2).items == ["item 1", "item 2", "item 3"]
    numbers = np.repeat([5, -7], [5000, 3000])
    assert dc.top_k(numbers, 3, BUDGET, workers=2).items == [5, -7]
    assert len(dc.top_k([], 3, BUDGET, workers=2)) == 0


def test_users_by_group_privacy():
    users = [["a", "b"], ["a", "c"]] * 3000
    top = dc.top_k(users, 3, BUDGET, unit=dc.User(2), mechanism="offset", workers=2)
    assert set(top.items) == {"a", "b", "c"}
    assert top.guarantee.unit == dc.User(2)
    assert top.threshold == Offset(BUDGET, 4096, dc.User(2)).threshold
    flat = dc.top_k(["a"] * 5000, 1, BUDGET, unit=dc.User(3), grouped=False, workers=2)
    assert flat.items == ["a"]


def test_a_release_of_a_summary_of_ones_own():
    summary = dc.ShardedMisraGries(512, 3)
    summary.update_batches([COLUMN[:1000], COLUMN[1000:]])
    assert (summary.shards, summary.capacity, summary.total) == (3, 512, len(COLUMN))
    for mechanism in ("auto", "offset", Offset, ShardedOffset, ShardedOffset(BUDGET, 512, 3)):
        assert dc.release(summary, BUDGET, mechanism).items[0] == "item 1"
    total = dc.release(summary, BUDGET, total_share=0.1)
    assert abs(total.total - len(COLUMN)) < 400  # noise of scale 10: false with a chance of e^-40
    with pytest.raises(IncompatibleSummaryError):
        dc.release(summary, BUDGET, "pmg")
    with pytest.raises(ParameterError, match="made for 2 shards"):
        dc.release(summary, BUDGET, ShardedOffset(BUDGET, 512, 2))
    with pytest.raises(ParameterError, match="made for capacity"):
        dc.release(summary, BUDGET, ShardedOffset(BUDGET, 64, 3))
    with pytest.raises(ParameterError, match=r"dc\.Event"):
        dc.release(summary, BUDGET, unit=dc.Replace())
    other = dc.ShardedMisraGries(512, 3, seed=summary.seed)
    other.update(COLUMN)
    other.merge(summary)
    with pytest.raises(IncompatibleSummaryError, match="merged"):
        dc.release(other, BUDGET)


def test_batches_of_a_summary_of_ones_own():
    summary = dc.ShardedMisraGries(64, 2)
    summary.update_batches([np.array([1, 2, 2])])
    assert summary.estimate(2).value == 2
    texts = dc.ShardedMisraGries(64, 2)
    with pytest.raises(DataError, match="nulls"):
        texts.update_batches([pa.array(["a", None])])
    texts.update_batches([pa.array(["a", None])], nulls="skip")
    assert texts.total == 1


@pytest.mark.parametrize("workers", [0, -1, 129, 1.5, True, "two"])
def test_workers_are_checked(workers):
    with pytest.raises(ParameterError, match="workers"):
        dc.top_k(COLUMN, 3, BUDGET, workers=workers)


@pytest.mark.parametrize("mechanism", ["pmg", "space_saving", "stability", "merged", "count_min"])
def test_only_the_offset_release_has_workers(mechanism):
    with pytest.raises(ParameterError, match="worker"):
        dc.top_k(iter([]), 3, BUDGET, mechanism=mechanism, workers=2)


def test_user_level_sketches_are_refused_before_reading():
    def never():
        raise AssertionError("read")
        yield

    with pytest.raises(ParameterError, match='mechanism="offset"'):
        dc.top_k(never(), 3, BUDGET, unit=dc.User(100), workers=2)
    with pytest.raises(ParameterError, match="ShardedOffset"):
        dc.top_k(never(), 3, BUDGET, mechanism=Offset(BUDGET, 64), workers=2)
    with pytest.raises(ParameterError, match="2 shards, but workers is 3"):
        dc.top_k(never(), 3, BUDGET, mechanism=ShardedOffset(BUDGET, 64, 2), workers=3)


def test_a_mechanism_in_shards_brings_its_workers():
    assert dc.top_k(COLUMN, 3, BUDGET, mechanism=ShardedOffset(BUDGET, 64, 4)).shard_offsets is not None


def test_a_release_in_shards_is_stored_and_returned(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("searches", dc.Budget(4.0, 1e-5))
    account = ledger.account("searches")
    first = dc.top_k(COLUMN, 10, BUDGET, workers=2, ledger=account, charge_id="monday")
    again = dc.top_k(COLUMN, 10, BUDGET, workers=2, ledger=account, charge_id="monday")
    assert again.to_payload() == first.to_payload()
    assert again.shard_offsets == first.shard_offsets
    assert np.array_equal(again.shards, first.shards)
    assert json.loads(again.to_json()) == json.loads(first.to_json())


def test_histograms_in_shards_round_trip_and_are_checked():
    summary = dc.ShardedMisraGries(64, 3, seed=5)
    summary.update(COLUMN)
    release = dc.release(summary, BUDGET, source=seeded_source(4))
    assert all(summary.shard_of(item) == shard for item, shard in zip(release.items, release.shards, strict=True))
    other = dc.Release.from_payload(release.to_payload())
    assert other.to_payload() == release.to_payload()
    assert np.array_equal(other.offsets, release.offsets)
    head = release.head(2)
    assert (len(head.shards), head.shard_offsets) == (2, release.shard_offsets)
    described = release.to_dict()
    assert described["offset"] is None
    assert described["shard_offsets"] == list(release.shard_offsets)
    assert [row["shard"] for row in described["items"]] == release.shards.tolist()
    # An item's bound stands on the offset of its own shard.
    for shard, offset in enumerate(release.shard_offsets):
        below, _ = release.error_model.distances(0.9, offset)
        own = release.shards == shard
        assert np.array_equal(release.bounds(0.9)[0][own], np.maximum(release.counts[own] - below, 1.0))
    parts = {"shards": release.shards, "shard_offsets": release.shard_offsets}
    for wrong in ({"shards": None}, {"shard_offsets": None}, {"offset": 3}, {"shards": release.shards + 1}):
        with pytest.raises(ParameterError, match="shard"):
            dc.Release(
                pa.array(release.items), release.counts, release.guarantee, release.error_model, **{**parts, **wrong}
            )
    for damage in ((b'"version":4', b'"version":1'), (b'"shards":[', b'"shards":[9,')):
        with pytest.raises(dc.CorruptStateError):
            dc.Release.from_payload(release.to_payload().replace(*damage))


def test_top_k_on_the_cores_there_are(tmp_path):
    cores = threads.available_workers()
    top = dc.top_k([COLUMN[:1000], COLUMN[1000:]], 3, BUDGET, workers=max(cores, 2))
    assert top.items == ["item 1", "item 2", "item 3"]
    assert len(top.shard_offsets) == max(cores, 2)
    users = dc.top_k(COLUMN, 3, BUDGET, workers=2, unit=dc.User(3), length=10**6)
    assert users.threshold == Offset(BUDGET, 4096, dc.User(3)).threshold
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("searches", dc.Budget(4.0, 1e-5))
    account = ledger.account("searches")
    first, again = (dc.top_k(COLUMN, 5, BUDGET, workers=2, ledger=account, charge_id="monday") for _ in range(2))
    assert again.counts.tolist() == first.counts.tolist()
    assert (first.payment, again.payment) == ("charged", "replayed")
    for wrong in (
        {"budget": dc.Budget(1.0)}, {"unit": dc.Replace()}, {"workers": 0}, {"capacity": 0}, {"charge_id": "x"},
        {"k": 0}, {"budget": 1.0}, {"length": -1},
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            dc.top_k(**{"data": COLUMN, "k": 3, "budget": BUDGET, "workers": 2, **wrong})
