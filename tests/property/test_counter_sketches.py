"""The kernels equal the papers' pseudo-code item for item, however the stream is cut and handed over."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.streams import pieces, streams
from tests.reference import misra_gries as lt
from tests.reference import space_saving as ss
from tests.reference import user_misra_gries as pamg
from tests.reference.hash_order import hash_order

import discreet as dc

capacities = st.sampled_from([1, 2, 3, 4, 7, 16, 40])
seeds = st.integers(0, 2**64 - 1)
thorough = settings(deadline=None, derandomize=True, max_examples=150)


def content(summary):
    return summary.not_private_counts().to_dict()


def fed(summary, batches):
    for batch in batches:
        summary.update(batch)
    return summary


def check_misra_gries(sketch, expected, frequency):
    n, k = sum(frequency.values()), sketch.capacity
    assert content(sketch) == lt.stored(expected)
    assert sketch.not_private_offset == expected.decrements
    assert sketch.total == n
    for x, f in frequency.items():
        estimate = sketch.estimate(x)
        assert f - n / (k + 1) <= estimate.value <= f
        assert estimate.lower <= f <= estimate.upper


@thorough
@given(stream=streams(), k=capacities, seed=seeds, data=st.data())
def test_misra_gries(stream, k, seed, data):
    sketch = fed(dc.MisraGries(k, seed=seed), data.draw(pieces(stream)))
    check_misra_gries(sketch, lt.misra_gries(stream, k, hash_order(stream, seed)), Counter(stream))


@thorough
@given(stream=streams(), k=capacities, seeds=st.tuples(seeds, seeds), data=st.data())
def test_misra_gries_merges_and_continues(stream, k, seeds, data):
    """Section 7 of [LT], for sketches of different seeds; the merged sketch keeps the first one's order."""
    cuts = sorted(data.draw(st.tuples(st.integers(0, len(stream)), st.integers(0, len(stream)))))
    first, second, third = stream[: cuts[0]], stream[cuts[0] : cuts[1]], stream[cuts[1] :]
    if stream and isinstance(stream[0], int) and max(stream) >= 2**63:
        second = [stream[0], *second]
        third = [stream[0], *third]
    sketch = fed(dc.MisraGries(k, seed=seeds[0]), data.draw(pieces(first)))
    other = fed(dc.MisraGries(k, seed=seeds[1]), data.draw(pieces(second)))
    sketch.merge(other)
    mine, theirs = hash_order(stream, seeds[0]), hash_order(stream, seeds[1])
    expected = lt.merge(lt.misra_gries(first, k, mine), lt.misra_gries(second, k, theirs), k)
    check_misra_gries(sketch, expected, Counter(first + second))
    sketch = dc.MisraGries.from_bytes(sketch.to_bytes())
    fed(sketch, data.draw(pieces(third)))
    check_misra_gries(sketch, lt.misra_gries(third, k, mine, expected), Counter(first + second + third))


def check_space_saving(sketch, expected, frequency):
    n, k = sum(frequency.values()), sketch.capacity
    assert content(sketch) == expected.C
    assert sketch.total == n
    bound = ss.untracked_bound(expected, k)
    assert sketch.not_private_untracked_bound == bound
    assert bound <= n / k
    for x, f in frequency.items():
        estimate = sketch.estimate(x)
        assert estimate.lower <= f <= estimate.upper
        if x in expected.C:
            assert f <= estimate.value <= f + n / k
        else:
            assert f <= bound


@thorough
@given(stream=streams(), k=capacities, seed=seeds, data=st.data())
def test_space_saving(stream, k, seed, data):
    sketch = fed(dc.SpaceSaving(k, seed=seed), data.draw(pieces(stream)))
    check_space_saving(sketch, ss.space_saving(stream, k), Counter(stream))


@thorough
@given(stream=streams(), k=capacities, seeds=st.tuples(seeds, seeds), data=st.data())
def test_space_saving_merges_and_continues(stream, k, seeds, data):
    cuts = sorted(data.draw(st.tuples(st.integers(0, len(stream)), st.integers(0, len(stream)))))
    first, second, third = stream[: cuts[0]], stream[cuts[0] : cuts[1]], stream[cuts[1] :]
    if stream and isinstance(stream[0], int) and max(stream) >= 2**63:
        second = [stream[0], *second]
        third = [stream[0], *third]
    sketch = fed(dc.SpaceSaving(k, seed=seeds[0]), data.draw(pieces(first)))
    other = fed(dc.SpaceSaving(k, seed=seeds[1]), data.draw(pieces(second)))
    sketch.merge(other)
    order = hash_order(stream, seeds[0])
    expected = ss.merge(ss.space_saving(first, k), ss.space_saving(second, k), k, order)
    check_space_saving(sketch, expected, Counter(first + second))
    sketch = dc.SpaceSaving.from_bytes(sketch.to_bytes())
    fed(sketch, data.draw(pieces(third)))
    check_space_saving(sketch, ss.space_saving(third, k, expected), Counter(first + second + third))


@thorough
@given(stream=streams(), seed=seeds, data=st.data())
def test_exact_counts(stream, seed, data):
    cut = data.draw(st.integers(0, len(stream)))
    first, second = stream[:cut], stream[cut:]
    if stream and isinstance(stream[0], int) and max(stream) >= 2**63:  # the first item decides the kind
        second = [stream[0], *second]
    exact = fed(dc.ExactCounts(seed=seed), data.draw(pieces(first)))
    exact.merge(fed(dc.ExactCounts(), data.draw(pieces(second))))
    assert content(exact) == Counter(first + second)
    assert exact.total == len(first) + len(second)


def split_users(draw, stream, most):
    """The stream cut into users of at most `most` distinct items, repeats inside a user allowed."""
    users = [[]] if draw(st.booleans()) else []
    start = 0
    for n in draw(st.lists(st.integers(0, 2 * most), max_size=len(stream))):
        while len(set(stream[start : start + n])) > most:
            n -= 1
        users.append(stream[start : start + n])
        start += n
    return users


def check_user_misra_gries(sketch, expected, users):
    frequency = Counter(x for user in users for x in set(user))
    N, k = sum(frequency.values()), sketch.capacity
    assert content(sketch) == expected.c
    assert sketch.not_private_offset == expected.decrements
    assert sketch.total == N
    assert sketch.not_private_users == sum(1 for user in users if user)
    for x, f in frequency.items():
        estimate = sketch.estimate(x)
        assert f - N // (k + 1) <= estimate.value <= f
        assert estimate.lower <= f <= estimate.upper


def list_pieces(draw, users):
    """The users cut anywhere, as lists, generators, or Arrow list columns of several layouts."""
    cuts = sorted(draw(st.lists(st.integers(0, len(users)), max_size=3)))
    for a, b in zip([0, *cuts], [*cuts, len(users)], strict=True):
        batch = users[a:b]
        form = draw(st.sampled_from(["list", "generator", "list_", "large_list", "sliced"]))
        items = [x for user in batch for x in user]
        if form == "list" or not items:
            yield batch
        elif form == "generator":
            yield (iter(user) for user in batch)
        else:
            item_type = (
                pa.string() if isinstance(items[0], str) else pa.binary() if isinstance(items[0], bytes) else pa.int64()
            )
            item_type = pa.uint64() if item_type == pa.int64() and max(items) >= 2**63 else item_type
            arrow = pa.array(batch, pa.large_list(item_type) if form == "large_list" else pa.list_(item_type))
            yield pa.concat_arrays([arrow, arrow])[len(batch) :] if form == "sliced" else arrow


@thorough
@given(stream=streams(), k=capacities, seed=seeds, data=st.data())
def test_user_misra_gries(stream, k, seed, data):
    most = data.draw(st.integers(1, k))
    users = split_users(data.draw, stream, most)
    sketch = fed(dc.UserMisraGries(k, most, seed=seed), list_pieces(data.draw, users))
    check_user_misra_gries(sketch, pamg.user_misra_gries(users, k), users)


@thorough
@given(stream=streams(), k=capacities, seeds=st.tuples(seeds, seeds), data=st.data())
def test_user_misra_gries_merges_and_continues(stream, k, seeds, data):
    most = data.draw(st.integers(1, k))
    users = split_users(data.draw, stream, most)
    cuts = sorted(data.draw(st.tuples(st.integers(0, len(users)), st.integers(0, len(users)))))
    first, second, third = users[: cuts[0]], users[cuts[0] : cuts[1]], users[cuts[1] :]
    if stream and isinstance(stream[0], int) and max(stream) >= 2**63:
        first, second, third = ([[stream[0]], *part] for part in (first, second, third))
    sketch = fed(dc.UserMisraGries(k, most, seed=seeds[0]), list_pieces(data.draw, first))
    other = fed(dc.UserMisraGries(k, most, seed=seeds[1]), list_pieces(data.draw, second))
    sketch.merge(other)
    expected = pamg.merge(pamg.user_misra_gries(first, k), pamg.user_misra_gries(second, k), k)
    check_user_misra_gries(sketch, expected, first + second)
    sketch = dc.UserMisraGries.from_bytes(sketch.to_bytes())
    fed(sketch, list_pieces(data.draw, third))
    check_user_misra_gries(sketch, pamg.user_misra_gries(third, k, expected), first + second + third)


@pytest.mark.parametrize("strings", [False, True], ids=["int", "str"])
def test_tables_that_grow(strings):
    """A capacity above the table's first size, passed in the middle of the stream; many evictions after that."""
    k, seed = 4200, 5
    rng = np.random.default_rng(1)
    numbers = np.concatenate([rng.permutation(4600), rng.zipf(1.3, 1500) % 9000])
    stream = [f"some item {x}" for x in numbers] if strings else numbers.tolist()
    frequency = Counter(stream)
    column = pa.array(stream).dictionary_encode() if strings else numbers
    check_space_saving(fed(dc.SpaceSaving(k, seed=seed), [column]), ss.space_saving(stream, k), frequency)
    exact = fed(dc.ExactCounts(seed=seed), [column])
    assert content(exact) == frequency
    users = [stream[i : i + 3] for i in range(0, len(stream), 3)]
    sketch = fed(dc.UserMisraGries(k, 3, seed=seed), [users])
    check_user_misra_gries(sketch, pamg.user_misra_gries(users, k), users)
    # The pseudo-code of Misra-Gries looks at all counters on every event; below capacity it is plain counting, and
    # the dummies are gone after that.
    head = k
    start = lt.Sketch(frozenset(Counter(stream[:head]).items()), 0)
    assert len(start.counters) == k
    sketch = fed(dc.MisraGries(k, seed=seed), [column])
    check_misra_gries(sketch, misra_gries_in_place(stream[head:], start, hash_order(stream, seed)), frequency)


def misra_gries_in_place(stream, start, order):
    """The three branches of Algorithm 1 on one dictionary and a sorted list of its zero counters."""
    c, decrements = dict(start.counters), start.decrements
    zeros = sorted((key for key, count in c.items() if count == 0), key=order)
    for x in stream:
        while zeros and c.get(zeros[0]) != 0:
            zeros.pop(0)
        if x in c:
            c[x] += 1
        elif not zeros:
            c = {key: count - 1 for key, count in c.items()}
            zeros = sorted((key for key, count in c.items() if count == 0), key=order)
            decrements += 1
        else:
            del c[zeros.pop(0)]
            c[x] = 1
    return lt.Sketch(frozenset(c.items()), decrements)


@thorough
@given(stream=streams(), k=capacities, seed=seeds)
def test_in_place_reference_equals_the_pseudo_code(stream, k, seed):
    order = hash_order(stream, seed)
    assert misra_gries_in_place(stream, lt.empty_sketch(k), order) == lt.misra_gries(stream, k, order)


@pytest.mark.parametrize("k", [16, 200, 1024])
@pytest.mark.parametrize("skew", [1.1, 1.5, 2.5])
def test_long_skewed_streams(k, skew):
    """What the kernels are tuned for: many hits, many misses, in every layout. Seeded."""
    rng = np.random.default_rng(int(skew * 10) + k)
    numbers = rng.zipf(skew, 30_000) % 5000
    stream = numbers.tolist()
    words = pa.array([f"item number {x}" for x in stream])
    names = words.to_pylist()
    for column, items in ((numbers, stream), (words, names), (words.dictionary_encode(), names)):
        sketch = dc.MisraGries(k, seed=9)
        sketch.update(column)
        expected = misra_gries_in_place(items, lt.empty_sketch(k), hash_order(items, 9))
        check_misra_gries(sketch, expected, Counter(items))
        saving = dc.SpaceSaving(k, seed=9)
        saving.update(column)
        check_space_saving(saving, space_saving_in_place(items, k), Counter(items))


def space_saving_in_place(stream, k):
    """Algorithm 2 with a heap of (count, -last seen), stale entries skipped."""
    import heapq

    C, tau, heap = {}, {}, []
    for t, x in enumerate(stream, 1):
        if x not in C and len(C) == k:
            while True:
                count, minus_time, y = heapq.heappop(heap)
                if C.get(y) == count and tau[y] == -minus_time:
                    break
            C[x] = C.pop(y)
            del tau[y]
        C[x] = C.get(x, 0) + 1
        tau[x] = t
        heapq.heappush(heap, (C[x], -t, x))
    return ss.Sketch(C, tau, len(stream))


@thorough
@given(stream=streams(), k=capacities)
def test_in_place_space_saving_equals_the_pseudo_code(stream, k):
    assert space_saving_in_place(stream, k) == ss.space_saving(stream, k)


@pytest.mark.parametrize("make", [dc.MisraGries, dc.SpaceSaving, lambda k, seed: dc.UserMisraGries(k, 1, seed=seed)])
def test_large_states_and_merges_under_one_seed(make):
    """Records of a state come in the order of their hashes, the worst order for a table under the same seed."""
    n, k = 40_000, 50_000
    first, second = make(k, seed=3), make(k, seed=3)
    users = isinstance(first, dc.UserMisraGries)
    for sketch, start in ((first, 0), (second, n // 2)):
        items = range(start, start + n)
        sketch.update([[x] for x in items] if users else np.array(items))
    assert content(first.copy()) == dict.fromkeys(range(n), 1)
    first.merge(second)
    once, twice = [*range(n // 2), *range(n, n + n // 2)], range(n // 2, n)
    expected = Counter({**dict.fromkeys(once, 1), **dict.fromkeys(twice, 2)})
    if isinstance(first, dc.SpaceSaving):
        assert len(first) == k
        assert all(expected[x] == count for x, count in content(first).items())
        assert {x for x, count in content(first).items() if count == 2} == set(twice)
    else:  # 60,000 keys: the 50,001st largest count, which is 1, is subtracted
        assert content(first) == dict.fromkeys(twice, 1)
        assert first.not_private_offset == 1
    assert first.copy().to_bytes() == first.to_bytes()


def test_exact_counts_merge_under_one_seed():
    first, second = dc.ExactCounts(seed=3), dc.ExactCounts(seed=3)
    first.update(np.arange(100_000))
    second.update(np.arange(50_000, 150_000))
    first.merge(second)
    assert first.total == 200_000
    assert content(first.copy()) == Counter([*range(100_000), *range(50_000, 150_000)])
