"""Heavy hitters from an oracle that the user brings: what is published, what is refused, and what is said."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.reference.oracles import HashedRows, ListedCounts

import discreet as dc
from discreet.noise import seeded_source
from discreet.published import OracleHeavyHitters, TrackedOracle

BUDGET = dc.Budget(1.0, 1e-6)


def rows() -> HashedRows:
    return HashedRows(2048, 15)


@pytest.fixture(scope="module")
def stream() -> list[str]:
    rng = np.random.default_rng(5)
    heavy = [f"heavy {i % 5}" for i in range(15_000)]
    return rng.permutation(heavy + [f"light {i}" for i in rng.integers(0, 900, 5000)]).tolist()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("length", ["noisy", 20_000])
def test_heavy_items_are_published_with_bounds(noise: str, length: Any, stream: list[str]) -> None:
    mechanism = OracleHeavyHitters(BUDGET, 10, rows, noise=noise, stream_length=length)
    assert mechanism.capacity == mechanism.tracked == 40
    tracked = mechanism.track()
    for part in np.array_split(np.array(stream), 7):
        tracked.update(part)
    assert tracked.total == 20_000
    assert len(tracked) == 40
    release = dc.release(tracked, BUDGET, mechanism, source=seeded_source(1))
    assert sorted(release.items) == [f"heavy {i}" for i in range(5)]
    assert (release.counts - (release.offset or 0) >= release.threshold).all()
    assert (release.counts > 20_000 / 10).all()
    lower, upper = release.bounds(0.95)
    assert (lower <= 3000).all()
    assert (upper >= 3000).all()
    assert (upper < 4500).all()
    told = " ".join(release.guarantee.assumptions)
    assert "at most 15 cells of the oracle by at most 1" in told
    assert "from its cells alone" in told
    assert "errs by no more than it states" in told
    assert ("the length of the stream is public" in told) == (length != "noisy")


def test_items_of_all_kinds_and_bad_rows_as_in_every_summary() -> None:
    tracked = OracleHeavyHitters(BUDGET, 2, rows).track()
    tracked.update(["a", b"a", 1, None, 2**70, "a"], nulls="skip")
    assert tracked.total == 4
    assert tracked.not_private_counts().to_dict() == {"a": 2, b"a": 1, 1: 1}
    assert tracked.estimate("a").value == 2
    with pytest.raises(dc.DataError, match="null"):
        tracked.update(["a", None])
    tracked.update([])
    assert tracked.total == 4


def test_the_noise_is_for_the_stated_sensitivity_and_unit() -> None:
    class Tall(ListedCounts):
        changes, height, gain = 3, 5, 2

    one = OracleHeavyHitters(BUDGET, 2, Tall, stream_length=100)
    assert one.scale == Fraction(15) / Fraction(BUDGET.epsilon)
    assert OracleHeavyHitters(BUDGET, 2, Tall, unit=dc.User(4), stream_length=100).scale == 4 * one.scale
    simple = OracleHeavyHitters(BUDGET, 2, ListedCounts, stream_length=100)
    assert one.margin > 2 * 15 * (simple.margin - 1)
    assert one.error_bound(0.1) > 2 * 15 * (simple.error_bound(0.1) - 1)
    noisy = OracleHeavyHitters(BUDGET, 2, Tall, length_share=0.5)
    assert noisy.scale == 2 * one.scale
    parts = noisy.deltas
    assert parts.gaussian + 2 * parts.hashing + (1 + np.e) * (parts.cells + parts.length) <= BUDGET.delta


def test_no_item_of_a_kth_part_or_less_is_listed() -> None:
    mechanism = OracleHeavyHitters(dc.Budget(50.0, 1e-6), 3, ListedCounts, 100, stream_length=300)
    tracked = mechanism.track()
    tracked.update([0] * 100 + [1] * 95 + [2] * 105)
    assert mechanism.threshold == 101
    assert mechanism(tracked, seeded_source(1)).items == [2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "k must"),
        ({"tracked": 2}, "greater than k"),
        ({"noise": "cauchy"}, "noise"),
        ({"budget": dc.Budget(1.0)}, "delta"),
        ({"budget": dc.Budget.zcdp(0.1)}, "epsilon and delta"),
        ({"unit": dc.Element()}, "protects"),
        ({"stream_length": None}, "stream_length"),
        ({"stream_length": "public"}, "a public number"),
        ({"length_share": 1.0}, "length_share"),
        ({"oracle": ListedCounts()}, "makes? an empty oracle"),
        ({"oracle": dict}, "has a method cells"),
    ],
)
def test_parameters_are_checked(change: Any, words: str) -> None:
    with pytest.raises(dc.ParameterError, match=words):
        OracleHeavyHitters(**{"budget": BUDGET, "k": 2, "oracle": ListedCounts, **change})


class Falling(ListedCounts):
    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        return 0, max(0, 100 - length)


class OneError(ListedCounts):
    def error(self, length: int, items: int, failure: float) -> Any:
        return 3


class Silent(ListedCounts):
    changes = None  # type: ignore[assignment]


class Real(ListedCounts):
    def cells(self) -> Any:
        return self.table / 2


@pytest.mark.parametrize("oracle", [Falling, OneError, Silent, Real])
def test_statements_are_checked(oracle: Any) -> None:
    with pytest.raises((dc.ParameterError, dc.DataError)):
        OracleHeavyHitters(BUDGET, 2, oracle, stream_length=10).threshold  # noqa: B018


class Growing(ListedCounts):
    def update(self, items: Any, counts: Any) -> None:
        self.table = np.append(self.table, 0)


class Quoting(ListedCounts):
    def update(self, items: Any, counts: Any) -> None:
        raise KeyError(f"secret {items}")


class QuotingOurs(ListedCounts):
    def estimate(self, items: Any, cells: Any) -> Any:
        raise dc.DataError(f"secret {items}")


class Ragged(ListedCounts):
    def estimate(self, items: Any, cells: Any) -> Any:
        return [[1], *([] for _ in items)]


class Short(ListedCounts):
    def estimate(self, items: Any, cells: Any) -> Any:
        return cells[:1].repeat(len(items) + 1)


class Fresh(ListedCounts):
    calls = 0

    def estimate(self, items: Any, cells: Any) -> Any:
        self.calls += 1
        return cells[np.asarray(items)] + self.calls


class Meddling(ListedCounts):
    def estimate(self, items: Any, cells: Any) -> Any:
        cells += 1
        return np.zeros(len(items), np.int64)


class NotWhole(ListedCounts):
    def estimate(self, items: Any, cells: Any) -> Any:
        return np.full(len(items), np.nan)


@pytest.mark.parametrize("oracle", [Growing, Quoting, QuotingOurs, Ragged, Short, Fresh, Meddling, NotWhole])
def test_an_oracle_that_breaks_its_word_is_refused_from_then_on_and_quotes_nothing(oracle: Any) -> None:
    mechanism = OracleHeavyHitters(BUDGET, 2, oracle, stream_length=10)
    tracked = mechanism.track()
    with pytest.raises(dc.DataError) as caught:
        tracked.update([1, 1, 2])
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for use in (lambda: tracked.update([1]), lambda: mechanism(tracked), tracked.not_private_counts, tracked.copy):
        with pytest.raises(dc.DataError, match="not known"):
            use()


class Lowest(ListedCounts):
    def estimate(self, items: Any, cells: Any) -> Any:
        return np.full(len(items), np.iinfo(np.int64).min)


def test_the_lowest_estimate_there_is_does_not_wrap_around_to_above_the_cut() -> None:
    mechanism = OracleHeavyHitters(BUDGET, 2, Lowest)
    tracked = mechanism.track()
    tracked.update([1, 1, 2])
    release = mechanism(tracked, seeded_source(1))
    assert release.offset is not None
    assert release.offset > 0
    assert len(release) == 0


class Boundless(ListedCounts):
    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        return 0, 2**63


def test_an_error_beyond_all_counts_is_refused_when_the_mechanism_is_made() -> None:
    with pytest.raises(dc.ParameterError, match="error of the oracle"):
        OracleHeavyHitters(BUDGET, 2, Boundless)


def test_summaries_that_do_not_fit_are_refused() -> None:
    mechanism = OracleHeavyHitters(BUDGET, 2, ListedCounts, stream_length=3)
    with pytest.raises(dc.IncompatibleSummaryError, match="TrackedOracle"):
        mechanism(dc.CountMin(8, tracked=8))
    with pytest.raises(dc.ParameterError, match="capacity"):
        mechanism(TrackedOracle(ListedCounts(), 7))
    with pytest.raises(dc.ParameterError, match="another shape"):
        mechanism(TrackedOracle(ListedCounts(9), 8))
    tracked = mechanism.track()
    tracked.update([0, 1, 2, 3])
    with pytest.raises(dc.IncompatibleSummaryError, match="longer than stream_length"):
        mechanism(tracked)
    with pytest.raises(dc.IncompatibleSummaryError, match="an oracle of your own cannot be merged; merge the streams"):
        tracked.merge(mechanism.track())
    for state in (tracked.to_bytes, lambda: pickle.dumps(tracked), lambda: tracked.seed):
        with pytest.raises(dc.ParameterError):
            state()
    with pytest.raises(dc.IncompatibleSummaryError, match="OracleHeavyHitters"):
        dc.release(tracked, BUDGET)


def test_a_copy_is_independent() -> None:
    tracked = OracleHeavyHitters(BUDGET, 2, ListedCounts).track()
    tracked.update([1, 1])
    same = tracked.copy()
    tracked.update([2, 2])
    assert same.not_private_counts().to_dict() == {1: 2}
    assert same.not_private_cells().tolist() == [0, 2, 0, 0]
    assert (same.total, tracked.total) == (2, 4)
    assert copy.copy(tracked.lineage) == same.lineage
    assert "NOT PRIVATE" in repr(tracked)


def test_the_audit_catches_an_oracle_that_understates_itself() -> None:
    """Its cells move by two, its estimates remember what was counted, and its errors are larger than it says."""

    class Double(ListedCounts):
        def update(self, items: Any, counts: Any) -> None:
            super().update(items, 2 * counts)

        def estimate(self, items: Any, cells: Any) -> Any:
            return super().estimate(items, cells) + self.table.sum()

    mechanism = OracleHeavyHitters(BUDGET, 2, lambda: Double(8), stream_length=100)
    from discreet_audit.central import OracleAudit
    from discreet_audit.core import QUICK

    found = {finding.check: finding.passed for finding in OracleAudit().structure(mechanism, QUICK)}
    assert found == {
        "cells that one event changes": True,
        "by how much": False,
        "estimates are made from cells alone": False,
        "estimates err by no more than stated": False,
    }
