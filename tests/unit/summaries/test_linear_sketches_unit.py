"""CountMin and CountSketch: parameters, errors, bounds at their failure probability, restored states."""

from __future__ import annotations

import math
import pickle
import threading
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.linear_sketch import RowHashes

import discreet as dc
from discreet import _native
from discreet.privacy.calibration.collisions import cell_probability, digest_collision_probability, majority_fails

KINDS = [dc.CountMin, dc.CountSketch]
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@pytest.mark.parametrize(
    "given",
    [
        {"width": 0},
        {"width": 2**30 + 1},
        {"width": 1.5},
        {"width": True},
        {"width": 8, "depth": 0},
        {"width": 8, "depth": 257},
        {"width": 2**30, "depth": 5},
        {"width": 8, "tracked": -1},
        {"width": 8, "tracked": 2**31},
        {"width": 8, "max_key_bytes": 0},
        {"width": 8, "seed": -1},
        {"width": 8, "seed": 2**64},
    ],
)
def test_parameters_are_checked(kind: Any, given: dict[str, Any]) -> None:
    with pytest.raises(dc.ParameterError, match=next(reversed(given)) if len(given) > 1 else "width"):
        kind(**given)


def test_count_sketch_needs_an_odd_depth() -> None:
    with pytest.raises(dc.ParameterError, match="odd"):
        dc.CountSketch(8, 4)


@each_kind
@pytest.mark.parametrize("rates", [(0.0, 0.1), (-1.0, 0.1), (0.1, 0.0), (0.1, 1.0), (float("nan"), 0.1), (0.1, None)])
def test_for_error_checks_its_rates(kind: Any, rates: tuple[Any, Any]) -> None:
    with pytest.raises(dc.ParameterError):
        kind.for_error(*rates)


@each_kind
@pytest.mark.parametrize("error_rate", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("failure_probability", [0.5, 0.01, 1e-9])
def test_for_error_gives_what_was_asked_and_no_more(kind: Any, error_rate: float, failure_probability: float) -> None:
    sketch = kind.for_error(error_rate, failure_probability, tracked=3)
    assert sketch.error_rate <= error_rate * (1 + 1e-15)
    assert sketch.failure_probability <= failure_probability * (1 + 1e-12)
    assert kind(sketch.width - 1, sketch.depth).error_rate > error_rate
    step = 2 if kind is dc.CountSketch else 1
    assert sketch.depth == 1 or kind(sketch.width, sketch.depth - step).failure_probability > failure_probability


@each_kind
def test_merging_says_what_differs(kind: Any) -> None:
    sketch = kind(8, 3, tracked=2, seed=1)
    for changed, word in [
        ({"width": 9}, "widths"),
        ({"depth": 5}, "depths"),
        ({"tracked": 1}, "tracked"),
        ({"seed": 2}, "seeds"),
        ({"max_key_bytes": 7}, "max_key_bytes"),
    ]:
        shape = {"width": 8, "depth": 3, "tracked": 2, "seed": 1, **changed}
        with pytest.raises(dc.IncompatibleSummaryError, match=word):
            sketch.merge(kind(**shape))
    other = dc.CountSketch(8, 3) if kind is dc.CountMin else dc.CountMin(8, 3)
    with pytest.raises(dc.IncompatibleSummaryError, match="cannot merge"):
        sketch.merge(other)
    with pytest.raises(dc.IncompatibleSummaryError, match="itself"):
        sketch.merge(sketch)


@each_kind
def test_seeds_are_drawn_for_every_sketch(kind: Any) -> None:
    assert len({kind(8).seed for _ in range(20)}) == 20


@each_kind
def test_an_empty_sketch(kind: Any) -> None:
    sketch = kind(2**24, 3, tracked=2**30)
    assert (sketch.total, len(sketch), sketch.key_type) == (0, 0, None)
    assert sketch.memory_bytes == 0
    assert sketch.estimate("x").value == 0
    assert sketch.estimate_many(["x", "y"]).tolist() == [0, 0]
    assert len(sketch.not_private_counts()) == 0
    assert len(sketch.to_bytes()) < 200
    with pytest.raises(dc.DataError, match="no keys yet"):
        sketch.places(["x"])
    restored = kind.from_bytes(sketch.to_bytes())
    assert restored.seed == sketch.seed


@each_kind
def test_a_failed_batch_leaves_no_trace(kind: Any) -> None:
    sketch = kind(16, 3, tracked=4)
    sketch.update(["a", "b"])
    before = sketch.to_bytes()

    def breaks() -> Any:
        yield from ["a"] * 200_000
        raise RuntimeError("stop")

    for batch in ([None], ["x" * 5000], [2.5], pa.chunked_array([["a"], [None]])):
        with pytest.raises(dc.DataError):
            sketch.update(batch, bad_items="error")
    with pytest.raises(RuntimeError):
        sketch.update(breaks())
    assert sketch.to_bytes() == before
    for question in ([1], [None], [2.5]):
        with pytest.raises(dc.DataError):
            sketch.estimate_many(question)
    with pytest.raises(dc.DataError):
        sketch.estimate(1)


@each_kind
def test_two_threads_lose_nothing(kind: Any) -> None:
    sketch = kind(64, 3, tracked=5, seed=4)
    batch = np.arange(100_000) % 37
    threads = [threading.Thread(target=lambda: [sketch.update(batch) for _ in range(5)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = kind(64, 3, tracked=5, seed=4)
    alone.update(np.tile(batch, 10))
    assert sketch.total == 1_000_000
    assert (sketch.not_private_cells() == alone.not_private_cells()).all()


@each_kind
def test_repr_shows_no_counts(kind: Any) -> None:
    sketch = kind(64, 3, tracked=7, seed=4)
    sketch.update(["secret"] * 12345)
    text = repr(sketch) + repr(sketch.estimate("secret")) + repr(sketch.not_private_counts())
    assert "secret" not in text
    assert "12345" not in text
    assert "NOT PRIVATE" in repr(sketch)


def test_estimates_of_a_column_read_while_it_is_asked() -> None:
    """The generator updates the sketch it is used to question: no deadlock, and one state answers for all items."""
    sketch = dc.CountMin(64, 3)
    sketch.update(["a"])

    def items() -> Any:
        for _ in range(3):
            sketch.update(["a"])
            yield "a"

    assert sketch.estimate_many(items()).tolist() == [4, 4, 4]


# ---- probabilities -------------------------------------------------------------------------------------------------


def test_probability_of_a_cell() -> None:
    for width in (1, 2, 3, 5, 1000, 2**30, 2**30 - 1):
        p = cell_probability(width)
        assert p >= 1 / width
        assert p <= 1 / width + 2**-32
    # Cell c of 3 gets the 32-bit values v with v * 3 >> 32 == c.
    shares = [sum(1 for v in range(2**8) if v * 3 >> 8 == c) for c in range(3)]
    assert max(shares) == -(-(2**8) // 3)


def test_digest_collisions_are_counted() -> None:
    assert digest_collision_probability(7) == pytest.approx((2 / 2**61) ** 2)
    assert digest_collision_probability(4096) == pytest.approx((587 / 2**61) ** 2)


def test_majority_fails() -> None:
    assert majority_fails(1, 0.125) == pytest.approx(0.125)
    assert majority_fails(3, 0.5) == pytest.approx(0.5)
    assert majority_fails(5, 0.125) == pytest.approx(sum([10 * 7**2, 5 * 7, 1]) / 8**5)


def test_pair_multiply_shift_is_strongly_universal_in_small() -> None:
    """The proof's statement, exhaustively, with words of 4 bits, halves of 2 bits and 2 bits kept."""
    word, half, kept = 16, 4, 2

    def value(a0: int, a1: int, b: int, x: tuple[int, int]) -> int:
        return ((a0 + x[1]) * (a1 + x[0]) + b) % word >> (4 - kept)

    keys = [(x0, x1) for x0 in range(half) for x1 in range(half)]
    for i, x in enumerate(keys):
        for y in keys[:i]:
            seen = Counter(
                (value(a0, a1, b, x), value(a0, a1, b, y))
                for a0 in range(word)
                for a1 in range(word)
                for b in range(word)
            )
            assert set(seen.values()) == {word**3 // 4**kept}, (x, y)


def test_rows_and_signs_are_uniform_over_seeds() -> None:
    """Pairs of keys share a cell of 8 in 1/8 of 4000 seeds, and signs agree in half (6 sigma: chance 2e-9)."""
    pairs = [(0, 1), (0, 2**32), (1, 2**32 + 1), ("", "a"), ("a", "b"), ("ab", "ba"), ("x" * 7, "x" * 8)]
    seeds = 4000
    for x, y in pairs:
        together = same_sign = 0
        for seed in range(seeds):
            hashes = RowHashes(seed, 1)
            together += hashes.column(0, x, 8) == hashes.column(0, y, 8)
            same_sign += hashes.sign(0, x) == hashes.sign(0, y)
        assert abs(together - seeds / 8) < 6 * (seeds * 7 / 64) ** 0.5
        assert abs(same_sign - seeds / 2) < 6 * (seeds / 4) ** 0.5


@each_kind
@pytest.mark.parametrize("keys", ["integers", "strings"])
def test_errors_keep_to_their_failure_probability(kind: Any, keys: str) -> None:
    """Over 300 seeds and 40 items a stream, the share of estimates outside the bounds is at most the one stated.

    Estimates of one sketch are dependent, so the seeds are the samples: the mean share of failures exceeds its bound
    by more than 6 standard errors with a chance below 1e-6. Seeds are fixed, so the outcome is too.
    """
    rng = np.random.default_rng(11)
    stream: Any = (rng.zipf(1.4, 2_000) % 300).astype(np.int64)
    if keys == "strings":
        stream = [f"item number {x}" for x in stream]
    truth = Counter(stream.tolist() if isinstance(stream, np.ndarray) else stream)
    items = list(truth)[:40]
    outside = []
    for seed in range(300):
        sketch = kind(24, 3, seed=seed)
        sketch.update(stream)
        distance = sketch._distance()
        off = np.abs(sketch.estimate_many(items) - np.array([truth[x] for x in items]))
        outside.append(float((off > distance).mean()))
    limit = kind(24, 3).failure_probability
    assert np.mean(outside) <= limit + 6 * np.std(outside) / 300**0.5


def test_count_sketch_is_unbiased_and_its_variance_is_bounded() -> None:
    """One row over 4000 seeds: the mean within 6 standard errors, the mean square at most p F2 plus 6 of its own."""
    stream = [0] * 30 + [1] * 20 + list(range(2, 60))
    f2 = sum(f * f for f in Counter(stream).values())
    errors = []
    for seed in range(4000):
        sketch = dc.CountSketch(16, 1, seed=seed)
        sketch.update(stream)
        errors.append(int(sketch.estimate_many([1])[0]) - 20)
    squares = np.square(np.array(errors, dtype=float))
    assert abs(np.mean(errors)) < 6 * np.std(errors) / 4000**0.5
    assert squares.mean() < f2 / 16 + 6 * squares.std() / 4000**0.5
    assert squares.mean() > f2 / 16 - 20**2 / 16 - 6 * squares.std() / 4000**0.5


# ---- states --------------------------------------------------------------------------------------------------------


def reseal(state: bytes, payload: bytes) -> bytes:
    """The state with another payload and a checksum that fits: damage that only the payload's checks can find."""
    resealed: bytes = _native.reseal_state(state[:32] + payload)
    return resealed


def made(kind: Any) -> Any:
    sketch = kind(4, 3, tracked=2, seed=3)
    sketch.update([5, 5, 6, 7, 8, 8])
    return sketch


@each_kind
def test_payloads_are_checked_beyond_their_checksum(kind: Any) -> None:
    """Every single-bit change of a small state, resealed: refused, or a state that writes itself back and works on."""
    state = made(kind).to_bytes()
    assert reseal(state, state[32:]) == state
    accepted = 0
    for bit in range(8 * (len(state) - 32)):
        payload = bytearray(state[32:])
        payload[bit // 8] ^= 1 << bit % 8
        damaged = reseal(state, bytes(payload))
        try:
            restored = kind.from_bytes(damaged)
        except dc.CorruptStateError:
            continue
        accepted += 1
        assert restored.to_bytes() == damaged
        restored.update([1, 2, 3])
        restored.estimate_many([1, 2, 3])
    # What stays open: the seed and the lineage (64 bits each), most of tracked and max_key_bytes, the flag, and for
    # CountSketch some cells.
    assert accepted < 64 + (180 if kind is dc.CountMin else 260)


@each_kind
@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        (0, 0, "width"),
        (0, 2**31, "width"),
        (0, 2**30, "width|ends"),
        (8, 0, "depth"),
        (8, 256, "depth"),
        (8, 255, "ends"),
        (16, 2**31, "2\\*\\*30"),
        (16, 1, "more tracked"),
        (24, 0, "max_key_bytes"),
        (40, 2, "flag"),
        (41, 2**63, "total"),
        (41, 7, "row"),
        (49, 7, "row"),
        (49 + 96, 3, "more"),
        (49 + 96, 2**60, "more records"),
        (49 + 96 + 16, 1000, "estimate"),
    ],
)
def test_each_check_of_a_payload(kind: Any, at: int, value: int, says: str) -> None:
    state = made(kind).to_bytes()
    payload = bytearray(state[32:])
    size = 1 if at == 40 else 8
    payload[at : at + size] = value.to_bytes(size, "little")
    with pytest.raises(dc.CorruptStateError, match=says):
        kind.from_bytes(reseal(state, bytes(payload)))


def test_an_even_depth_in_a_count_sketch_state_is_refused() -> None:
    state = dc.CountSketch(4, 3, seed=3).to_bytes()
    payload = bytearray(state[32:])
    payload[8] = 4
    with pytest.raises(dc.CorruptStateError, match="even"):
        dc.CountSketch.from_bytes(reseal(state, bytes(payload)))


@each_kind
def test_a_candidate_twice_in_a_state_is_refused(kind: Any) -> None:
    state = made(kind).to_bytes()
    payload = bytearray(state[32:])
    payload[-32:-16] = payload[-48:-32]  # the lineage, a number and a name, comes last
    with pytest.raises(dc.CorruptStateError, match="order"):
        kind.from_bytes(reseal(state, bytes(payload)))


def test_an_estimate_of_count_min_reaches_down_to_what_collisions_may_have_added() -> None:
    """Two cells, 1,000 events of others: an item that never came may have its whole estimate from them."""
    sketch = dc.CountMin(2, 1, seed=4)
    sketch.update(np.arange(1000))
    found = sketch.estimate(10**6)
    assert found.value > 0  # its cell is shared
    assert found.lower == 0
    wide = dc.CountMin(2**16, 5, seed=4)
    wide.update(np.repeat(7, 10**6))
    exact = wide.estimate(7)
    assert exact.upper == exact.value == 10**6
    assert 10**6 - exact.lower == math.ceil(Fraction(wide.error_rate) * 10**6)


@pytest.mark.parametrize("kind", [dc.CountMin, dc.CountSketch])
def test_texts_may_fail_by_equal_digests_too(kind: Any) -> None:
    """As often as events times the chance of one pair; numbers have no digests."""
    texts, numbers, several, raw = (kind(64, 7, seed=1) for _ in range(4))
    texts.update(["a"] * 1000)
    numbers.update(np.zeros(1000, np.int64))
    several.update([*(["a"] * 999), 7])
    raw.update([b"a"] * 1000)
    more = 1000 * digest_collision_probability(texts.max_key_bytes)
    for sketch in (texts, several, raw):
        assert sketch._string_failure() == pytest.approx(float(more), rel=1e-9, abs=0)
    assert numbers._string_failure() == kind(64, 7, seed=1)._string_failure() == 0.0


def test_an_estimate_of_texts_fails_as_often_as_rows_and_digests_do() -> None:
    """At a depth where the rows alone would fail less often than two digests are equal."""
    texts, numbers = dc.CountMin(64, 64, seed=1), dc.CountMin(64, 64, seed=1)
    texts.update(["a"] * 10**6)
    numbers.update(np.zeros(10**6, np.int64))
    more = 10**6 * float(digest_collision_probability(texts.max_key_bytes))
    assert more > math.exp(-64)
    assert numbers.failure_probability == math.exp(-64)
    assert texts.failure_probability == pytest.approx(math.exp(-64) + more, rel=1e-9, abs=0)


@each_kind
def test_an_empty_sketch_of_any_size_is_copied_and_pickled_and_a_foreign_state_is_not_trusted(kind: Any) -> None:
    """Its state has a few bytes, and the first item would take gigabytes. Who has it already may go on with it."""
    large = kind(2**26, 3, seed=1)
    for again in (large.copy(), pickle.loads(pickle.dumps(large)), kind.from_bytes(large.to_bytes(), max_bytes=None)):
        assert (again.width, again.depth, again.to_bytes()) == (2**26, 3, large.to_bytes())
    with pytest.raises(
        dc.CorruptStateError, match=r"1610612736 bytes, more than max_bytes=1073741824; raise max_bytes"
    ):
        kind.from_bytes(large.to_bytes())


@each_kind
def test_a_state_with_cells_is_as_large_as_it_is(kind: Any) -> None:
    sketch = kind(1000, 3, seed=1)
    with pytest.raises(dc.CorruptStateError, match="an empty sketch of 24000 bytes"):
        kind.from_bytes(sketch.to_bytes(), max_bytes=23_999)
    sketch.update(["a"])
    assert kind.from_bytes(sketch.to_bytes(), max_bytes=0).estimate("a").value == 1
