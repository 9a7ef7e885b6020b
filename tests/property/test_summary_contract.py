"""One contract, run over every summary class: what a caller may rely on without knowing which summary it holds.

To add a class, add a line to SUMMARIES.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.states import content

import discreet as dc


@dataclass(frozen=True)
class Case:
    """How to make a summary with a fixed seed, and how to hand it a stream of items."""

    make: Callable[..., Any]
    wrap: Callable[[Any], Any] = lambda items: items

    def fed(self, items, **options):
        summary = self.make(**options)
        summary.update(self.wrap(items))
        return summary


def alone(items):
    """Every item is a user of its own; lazily, if the items are lazy."""
    return ([item] for item in items) if not isinstance(items, list) else [[item] for item in items]


SUMMARIES = {
    "MisraGries": Case(lambda **options: dc.MisraGries(4, **{"seed": 7, **options})),
    "ShardedMisraGries": Case(lambda **options: dc.ShardedMisraGries(4, 3, **{"seed": 7, **options})),
    "SpaceSaving": Case(lambda **options: dc.SpaceSaving(4, **{"seed": 7, **options})),
    "UserMisraGries": Case(lambda **options: dc.UserMisraGries(4, 2, **{"seed": 7, **options}), alone),
    "CountMin": Case(lambda **options: dc.CountMin(8, 3, tracked=2, **{"seed": 7, **options})),
    "CountSketch": Case(lambda **options: dc.CountSketch(8, 3, tracked=2, **{"seed": 7, **options})),
    "ExactCounts": Case(lambda **options: dc.ExactCounts(**{"seed": 7, **options})),
}

every_summary = pytest.mark.parametrize("case", SUMMARIES.values(), ids=SUMMARIES)
some_items = st.one_of(
    st.lists(st.integers(0, 9), max_size=60),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20),
    st.lists(st.integers(2**63 - 3, 2**64 - 1), max_size=20).map(lambda items: [2**64 - 1, *items]),
    st.lists(st.text(max_size=30), max_size=40),
    st.lists(st.sampled_from(["", "a", "b", "x" * 20, "x" * 21, "y" * 300, "é" * 10, "漢字"]), max_size=80),
    st.lists(st.binary(max_size=30), max_size=40),
)
quick = settings(deadline=None, derandomize=True, max_examples=60)


@every_summary
@quick
@given(items=some_items)
def test_one_by_one_equals_batch(case, items):
    one_by_one = case.make()
    for item in items:
        one_by_one.update(case.wrap([item]))
    assert content(case.fed(items)) == content(one_by_one)


@every_summary
@quick
@given(items=some_items, data=st.data())
def test_round_trip_continues_identically(case, items, data):
    cut = data.draw(st.integers(0, len(items)))
    whole = case.fed(items[:cut])
    restored = type(whole).from_bytes(whole.to_bytes())
    assert restored.to_bytes() == whole.to_bytes()
    for summary in (whole, restored):
        summary.update(case.wrap(items[cut:]))
    assert content(restored) == content(whole)
    assert (restored.total, len(restored), restored.seed) == (whole.total, len(whole), whole.seed)


@every_summary
@quick
@given(first=st.lists(st.integers(0, 12), max_size=60), second=st.lists(st.integers(0, 12), max_size=60))
def test_merge(case, first, second):
    a, b = case.fed(first), case.fed(second)
    before = b.to_bytes()
    a.merge(b)
    assert b.to_bytes() == before
    assert a.was_merged
    assert not b.was_merged
    assert a.total == len(first) + len(second)
    for item in range(14):
        estimate = a.estimate(item)
        assert estimate.lower <= estimate.value <= estimate.upper or estimate.value == 0
    restored = type(a).from_bytes(a.to_bytes())
    assert restored.was_merged
    for summary in (a, restored):
        summary.update(case.wrap([1, 2, 3, 4, 5, 6, 7, 1]))
    assert content(a) == content(restored)


@every_summary
def test_merging_an_empty_summary_changes_no_count(case):
    summary, empty = case.fed(["a", "b", "a"]), case.make()
    empty.merge(case.make())
    assert (empty.total, empty.key_type) == (0, None)
    summary.merge(empty)
    assert (summary.total, summary.key_type) == (3, "string")
    empty.merge(summary)
    assert (empty.total, empty.key_type) == (3, "string")
    assert empty.estimate("a").value == summary.estimate("a").value == 2


@every_summary
def test_merge_says_what_differs(case):
    summary = case.fed([1, 2])
    with pytest.raises(dc.IncompatibleSummaryError, match="max_key_bytes differ: 4096 and 5"):
        summary.merge(case.make(max_key_bytes=5))
    with pytest.raises(dc.IncompatibleSummaryError, match="itself"):
        summary.merge(summary)
    other = dc.ExactCounts() if not isinstance(summary, dc.ExactCounts) else dc.MisraGries(4)
    with pytest.raises(dc.IncompatibleSummaryError, match=type(other).__name__):
        summary.merge(other)
    assert content(summary) == content(case.fed([1, 2]))


@every_summary
@pytest.mark.parametrize(
    "keys", [[], [1, 2, 2], ["a", "é" * 15, "a"], [b"", b"\xff"]], ids=["none", "int", "str", "bytes"]
)
def test_damaged_bytes(case, keys):
    state = case.fed(keys).to_bytes()
    read = type(case.make()).from_bytes
    for bit in range(8 * len(state)):
        damaged = bytearray(state)
        damaged[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(dc.CorruptStateError):
            read(bytes(damaged))
    for length in range(len(state)):
        with pytest.raises(dc.CorruptStateError):
            read(state[:length])
    with pytest.raises(dc.CorruptStateError):
        read(state + b"\0")
    with pytest.raises(dc.ParameterError):
        read("not bytes")


@every_summary
def test_state_of_another_class(case):
    summary = case.make()
    for other in SUMMARIES.values():
        if type(other.make()) is not type(summary):
            with pytest.raises(dc.CorruptStateError, match="another class"):
                type(summary).from_bytes(other.fed([1]).to_bytes())


@every_summary
def test_copies_and_pickles_are_independent(case):
    summary = case.fed(["a", "b", "a"])
    for other in (summary.copy(), copy.copy(summary), copy.deepcopy(summary), pickle.loads(pickle.dumps(summary))):
        assert type(other) is type(summary)
        assert other.to_bytes() == summary.to_bytes()
        other.update(case.wrap(["c"]))
        assert other.to_bytes() != summary.to_bytes()
    assert summary.total == 3


@every_summary
def test_copies_share_no_change(case):
    """Copies hold one state until somebody changes it: by an update, by items of another kind, by a merge."""
    changes = [
        lambda one: one.update(case.wrap(["c"])),
        lambda one: one.update(case.wrap([1, 2])),
        lambda one: one.merge(case.fed(["a", "d"])),
        lambda one: one.merge(case.fed([7])),
    ]
    for items in ([], ["a", "b", "a"], [1, 2, 1]):
        for change in changes:
            first = case.fed(items)
            before = first.to_bytes()
            second = first.copy()
            third = second.copy()
            change(first)
            assert first.to_bytes() != before
            assert second.to_bytes() == third.to_bytes() == before
            del third
            change(second)  # which holds it alone now
            assert second.to_bytes() != before
            assert content(second) == content(first)


@every_summary
def test_repr_says_not_private_and_shows_no_data(case):
    """The same repr for every stream: nothing of the data can be in it."""
    empty, fed = case.make(), case.fed(["secret"] * 4321)
    assert "NOT PRIVATE" in repr(fed)
    assert repr(empty) == repr(fed)
    assert repr(fed.estimate("secret")) == repr(fed.estimate("other"))


@every_summary
def test_empty(case):
    summary = case.make()
    assert (summary.total, len(summary), summary.key_type, summary.was_merged) == (0, 0, None, False)
    estimate = summary.estimate("anything")
    assert (estimate.value, estimate.lower, estimate.upper) == (0, 0, 0)
    before = summary.to_bytes()
    for nothing in ([], pa.array([], pa.string()), iter(())) if case.wrap([1]) == [1] else ([], iter(())):
        summary.update(nothing)
        assert summary.to_bytes() == before
    assert type(summary).from_bytes(before).to_bytes() == before


@every_summary
def test_kinds_are_counted_apart(case):
    """A row of another kind is for the others what any other item is, whenever it comes."""
    streams = [[1, "1", b"1", 2, 2, "2"] * 3, [2**63, -1, "a", 5], ["a"] * 9 + [b"a"], [b"z", *["x"] * 5, 7]]
    for stream in streams:
        mixed = case.fed(stream)
        parts = case.make()
        for item in stream:
            parts.update(case.wrap([item]))
        assert content(parts) == content(mixed)
        assert mixed.key_type == "mixed"
        assert type(mixed).from_bytes(mixed.to_bytes()).to_bytes() == mixed.to_bytes()
        merged = case.fed(stream[:1])
        merged.merge(case.fed(stream[1:]))
        assert merged.total == mixed.total
        if isinstance(mixed, dc.ExactCounts):
            assert mixed.not_private_counts().to_dict() == Counter(stream)
            assert merged.not_private_counts().to_dict() == Counter(stream)


@every_summary
def test_a_row_of_another_kind_changes_nothing_else(case):
    """The state of the others' items is the one that any other new item in its place would leave, kind apart."""
    for others, odd, usual in (
        (["x", "y", "x", "z", "w", "x"] * 4, b"odd", "odd"),
        ([5, 6, 5, 7, 8, 5] * 4, "odd", 99),
        ([5, 6, 5, 7, 8, 5] * 4, 2**64 - 7, 99),
    ):
        for place in (0, 3, len(others)):
            with_odd = case.fed([*others[:place], odd, *others[place:]])
            assert with_odd.total == case.fed([*others[:place], usual, *others[place:]]).total
            if isinstance(with_odd, dc.ExactCounts):
                held = with_odd.not_private_counts().to_dict()
                assert held.pop(odd) == 1
                assert held == case.fed(others).not_private_counts().to_dict()


@every_summary
def test_questions_are_of_the_kind_of_the_keys(case):
    kinds = {"int64": [1, 2], "uint64": [2**63, 2**64 - 1], "string": ["a"], "binary": [b"a"]}
    for kind, items in kinds.items():
        summary = case.fed(items)
        assert summary.key_type == kind
        before = summary.to_bytes()
        for other, wrong in {**kinds, "int64": [-1]}.items():
            if other == kind:
                continue
            with pytest.raises(dc.DataError, match=kind):
                summary.estimate(wrong[0])
        for wrong in (1.5, True, None, 2**64, -(2**63) - 1, "\ud800", bytearray(b"a"), object()):
            with pytest.raises(dc.DataError):
                summary.update(case.wrap([wrong]), bad_items="error")
            with pytest.raises(dc.DataError):
                summary.estimate(wrong)
        assert summary.to_bytes() == before


BAD = ["x" * 5000, "\ud800", b"y" * 5000, 2**64, -(2**63) - 1, 1.5, True, bytearray(b"a"), [1], object()]


@every_summary
@pytest.mark.parametrize("start", [[], ["a"], [1]], ids=["empty", "str", "int"])
def test_rows_that_cannot_be_items_are_left_out(case, start):
    """One of them changes nothing: the state is that of the batch without it, wherever it stands."""
    for items in (["a", "b", "a"] * 4, [1, 2, 1] * 4, [b"a", b"b"] * 4):
        for bad in BAD:
            for place in (0, 1, len(items)):
                summary, without = case.fed(start), case.fed(start)
                summary.update(case.wrap([*items[:place], bad, *items[place:]]))
                without.update(case.wrap(items))
                assert summary.not_private_counts().to_dict() == without.not_private_counts().to_dict()
                assert summary.total == without.total
                if type(bad) not in (str, bytes) or type(bad) is type(
                    items[0]
                ):  # else keys are written with their kinds
                    assert content(summary) == content(without)
    summary = case.fed(start)
    before = summary.to_bytes()
    for value in ("x" * 5000, "\ud800", 2**64):
        summary.update(case.wrap([value]))  # a batch without an item is no error either, but for its type
    assert summary.to_bytes() == before
    with pytest.raises(dc.DataError, match="not float"):
        summary.update(case.wrap([1.5, 2.5]))
    with pytest.raises(dc.ParameterError, match="bad_items"):
        summary.update(case.wrap(["a"]), bad_items="ignore")
    assert summary.to_bytes() == before


@every_summary
def test_signed_and_unsigned_where_both_fit(case):
    for first, second in ((np.array([5], np.int64), np.array([6], np.uint64)), (np.array([6], np.uint64), [5])):
        summary = case.fed(list(first))
        summary.update(case.wrap(list(second)))
        assert summary.total == 2
        assert summary.estimate(5).value == summary.estimate(6).value == 1


@every_summary
def test_nulls(case):
    summary = case.make()
    for items in ([None], ["a", None, "b"], [None, "a"]):
        with pytest.raises(dc.DataError, match="nulls"):
            summary.update(case.wrap(items))
    assert (summary.total, summary.key_type) == (0, None)
    summary.update(case.wrap([None, None]), nulls="skip")
    assert (summary.total, summary.key_type) == (0, None)
    summary.update(case.wrap([None, "a", None, "b", "a"]), nulls="skip")
    summary.update(case.wrap([None, None]), nulls="skip")
    assert content(summary) == content(case.fed(["a", "b", "a"]))
    with pytest.raises(dc.ParameterError, match="'drop'"):
        summary.update(case.wrap(["a"]), nulls="drop")


@every_summary
def test_long_keys(case):
    summary = case.make(max_key_bytes=5)
    summary.update(case.wrap(["abcde", "éé"]))
    before = summary.to_bytes()
    for long in ("abcdef", "ééé"):
        with pytest.raises(dc.DataError, match="max_key_bytes, which is 5"):
            summary.update(case.wrap(["a", long]), bad_items="error")
    assert summary.to_bytes() == before
    assert summary.estimate("abcdef").value == 0


@every_summary
def test_bad_parameters(case):
    for bad in ({"max_key_bytes": 0}, {"max_key_bytes": 2**31}, {"seed": -1}, {"seed": 2**64}, {"seed": 1.0}):
        with pytest.raises(dc.ParameterError):
            case.make(**bad)
    assert case.make(seed=None).seed != case.make(seed=None).seed


class BrokenInputError(Exception):
    pass


def broken_after(items, n):
    for i in range(n):
        yield items[i % len(items)]
    raise BrokenInputError


@every_summary
@pytest.mark.parametrize("start", [[], ["a", "b", "c", "d", "e", "a"]], ids=["empty", "used"])
def test_failed_batch_leaves_no_trace(case, start):
    """Whether the batch fails in its first chunk or after several, by its iterator or by its content."""
    summary = case.fed(start)
    before = summary.to_bytes()
    many = [f"item {i % 1000}" for i in range(150_000)]
    for n in (0, 3, 70_000, 150_000):
        with pytest.raises(BrokenInputError):
            summary.update(case.wrap(broken_after(many, n)))
        assert summary.to_bytes() == before
    for bad in (None, 2.5, "x" * 5000, "\ud800"):
        for n in (2, 140_000):
            with pytest.raises(dc.DataError):
                summary.update(case.wrap([*many[:n], bad]), bad_items="error")
            assert summary.to_bytes() == before
    summary.update(case.wrap(many))
    assert content(summary) == content(case.fed([*start, *many]))


@every_summary
def test_input_that_uses_the_summary_is_refused(case):
    """It would wait for itself otherwise."""
    summary = case.fed([1, 2])
    before = summary.to_bytes()
    uses = [
        lambda: len(summary),
        lambda: summary.total,
        lambda: summary.key_type,
        lambda: summary.estimate(1),
        lambda: summary.to_bytes(),
        lambda: summary.update(case.wrap([1])),
        lambda: summary.merge(case.make()),
        lambda: case.make().merge(summary),
    ]
    for use in uses:
        with pytest.raises(dc.DataError, match="being updated"):
            summary.update(case.wrap(use() or 1 for _ in range(3)))
    assert summary.to_bytes() == before


@every_summary
def test_threads_share_one_summary(case):
    """Updates, reads and merges from several threads; every event is counted once."""
    summary = case.make()
    items = list(range(50)) * 20
    errors = []

    def work():
        try:
            for i in range(20):
                summary.update(case.wrap(items))
                held = summary.copy()
                state = held.to_bytes()
                summary.estimate(i)
                assert summary.total >= 1000
                if i % 5 == 0:
                    summary.merge(other := case.fed([1]))
                    other.copy()
                assert held.to_bytes() == state
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert summary.total == 4 * (20 * 1000 + 4)
    assert type(summary).from_bytes(summary.to_bytes()).total == summary.total


@every_summary
def test_no_event_is_counted_twice(case):
    """Copies, states read again, parts that were merged before, and copies that went different ways since."""
    one, two = case.fed([1, 2, 2]), case.fed([1, 2, 2])
    restored = type(one).from_bytes(one.to_bytes())
    ahead = one.copy()
    ahead.update(case.wrap([3]))
    for same in (one.copy(), restored, ahead, pickle.loads(pickle.dumps(one))):
        before = one.to_bytes()
        with pytest.raises(dc.IncompatibleSummaryError, match="same events"):
            one.merge(same)
        assert one.to_bytes() == before
    # Equal streams, counted apart, are different events.
    one.merge(two)
    assert one.total == 6
    assert set(one.lineage) == {*two.lineage, *restored.lineage}
    third = case.fed([4])
    for whole in (one, type(one).from_bytes(one.to_bytes()), one.copy()):
        for part in (two, restored, ahead, one.copy()):
            with pytest.raises(dc.IncompatibleSummaryError, match="same events"):
                whole.merge(part)
        whole.merge(third.copy())
        with pytest.raises(dc.IncompatibleSummaryError, match="same events"):
            whole.merge(third)
    assert one.total == 7


@every_summary
def test_copies_of_an_empty_summary_may_count_a_part_each(case):
    empty = case.make()
    empty.update(case.wrap([]))
    with pytest.raises(dc.DataError):
        empty.update(case.wrap([1, None]))
    assert empty.lineage == ()
    parts = [empty.copy() for _ in range(5)]
    for number, part in enumerate(parts):
        part.update(case.wrap([number]))
        empty.merge(part)
    assert (empty.total, len(set(empty.lineage))) == (5, 5)
    assert list(empty.lineage) == sorted(empty.lineage)
