"""Pairs of people and items in threads: what plain NumPy gives, for any number of threads and any split of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import _native
from discreet.errors import ParameterError

LENGTH, MOST, MOST_ITEMS = 2**24, 5, 64
Entry = _native.Pairs.Entry


def rows(shape, count=150_000):
    """So many that threads share them."""
    random = np.random.default_rng(3)
    users = {
        "many people": random.integers(0, 40_000, count),
        "one person has most": np.where(random.random(count) < 0.9, 7, random.integers(0, 3000, count)),
        "one person": np.zeros(count, np.int64),
        "a row each": random.permutation(count),
    }[shape]
    items = np.minimum(random.zipf(1.2, count), 5000) - 1
    out = random.random(count) < 0.01
    return np.where(out, -1, users).astype(np.int32), items.astype(np.int32), random.integers(0, 4, count)


def grouped(users, items, values, entry):
    """(user, item, what the pair says), in order."""
    kept = users >= 0
    keys, where = np.unique(users[kept].astype(np.int64) << 32 | items[kept], return_inverse=True)
    sums = np.bincount(where, values[kept] if entry == Entry.sums else None).astype(np.int64)
    return keys >> 32, keys & 0xFFFFFFFF, np.ones_like(sums) if entry == Entry.present else np.minimum(sums, MOST)


def answers(users, items, entries, index, weights, longest):
    """What `Pairs` is asked for, without a choice among the items of people who have many."""
    _, person, sizes = np.unique(users, return_inverse=True, return_counts=True)
    discovery = np.trunc((LENGTH - 1) / np.sqrt(sizes[person])) * (sizes[person] <= MOST_ITEMS)
    chosen = index[items] >= 0
    vector = np.where(chosen, entries * weights[index[items]], 0)
    squared = np.bincount(person, (vector * vector).astype(np.float64))
    scale = np.maximum(np.sqrt(squared), longest)[person]
    scaled = np.trunc((LENGTH - 1) * vector.astype(np.float64) / scale).astype(np.int64)
    sums = np.zeros(len(weights), np.int64)
    np.add.at(sums, index[items][chosen], scaled[chosen])
    return np.bincount(items, discovery, 5000).astype(np.int64), np.sort(squared[squared > 0]), sums


@pytest.mark.parametrize("entry", [Entry.present, Entry.times, Entry.sums], ids=lambda entry: entry.name)
@pytest.mark.parametrize("shape", ["many people", "one person has most", "one person", "a row each"])
def test_as_plain_numpy_for_any_threads_and_blocks(shape, entry):
    users, items, values = rows(shape)
    index = np.full(5000, -1, np.int32)
    index[:200] = np.arange(200)
    weights = 1 + np.arange(200, dtype=np.int64) * 5
    keys = np.random.default_rng(4).integers(0, 2**63, 5000).astype(np.uint64)
    pairs_of, items_of, entries = grouped(users, items, values, entry)
    by_items, lengths, sums = answers(pairs_of, items_of, entries, index, weights, 300.0)
    many = np.unique(pairs_of, return_counts=True)[1].max() > MOST_ITEMS
    first = None
    for threads, step in ((1, 150_000), (2, 7777), (8, 50_001)):
        pairs = _native.Pairs(entry, LENGTH, MOST, threads)
        for at in range(0, len(users), step):
            part = slice(at, at + step)
            pairs.add(users[part], items[part], values[part] if entry == Entry.sums else None)
        pairs.group()
        assert pairs.rows == np.count_nonzero(users >= 0)
        assert np.array_equal(np.sort(np.frombuffer(pairs.lengths(index, weights), np.float64)), lengths)
        assert np.array_equal(np.frombuffer(pairs.scaled_sums(index, weights, 300.0), np.int64), sums)
        discovery = np.frombuffer(pairs.discovery(MOST_ITEMS, keys), np.int64)
        if many:  # a random choice takes part, by the keys: the same for any threads
            first = discovery if first is None else first
            assert np.array_equal(discovery, first)
            assert discovery.sum() > by_items.sum()
        else:
            assert np.array_equal(discovery, by_items[: len(discovery)])


@pytest.mark.parametrize("threads", [1, 4])
def test_no_rows(threads):
    pairs = _native.Pairs(Entry.present, LENGTH, 1, threads)
    pairs.group()
    assert pairs.rows == 0
    assert pairs.discovery(256, np.zeros(0, np.uint64)) == b""


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("at_once", [20_000, 70_000, 150_000])
@pytest.mark.parametrize("shape", ["many people", "one person has most", "one person", "a row each"])
def test_pairs_each_once(shape, at_once, threads):
    """What is kept while more rows come, beside a set of all pairs."""
    users, items, _ = rows(shape)
    pairs = _native.Pairs(Entry.present, LENGTH, 1, threads)
    for start in range(0, len(users), at_once):
        part = slice(start, start + at_once)
        pairs.add(users[part], items[part])
        so_far = users[: part.stop].astype(np.int64) << 32 | items[: part.stop]
        assert pairs.keep_each_once() == len(np.unique(so_far[so_far >= 0]))
    expected = np.unique(so_far[so_far >= 0])
    assert np.array_equal(np.frombuffer(pairs.take_pairs(), np.int64), expected)
    assert pairs.keep_each_once() == pairs.rows == 0
    with pytest.raises(ParameterError, match="entries would be lost"):
        _native.Pairs(Entry.times, LENGTH, MOST, threads).keep_each_once()


def test_pairs_by_person_and_in_order_are_the_same():
    """Blocks of rows are put together: more of them than are looked through at once."""
    import pyarrow as pa

    from discreet.engines import pairs as engine
    from discreet.events.tables import events_of

    random = np.random.default_rng(6)
    count = 2 * engine._AT_ONCE + 5000
    table = pa.table({"who": random.integers(0, 500, count), "item": np.minimum(random.zipf(1.3, count), 900)})
    found = [engine.Pairs(events_of(table).rows("item", user="who"), by_person=way) for way in (True, False)]
    one, other = ({*zip(each.people.tolist(), each.items.tolist(), strict=True)} for each in found)
    assert one == other
    assert [len(each.people) for each in found] == [len(one)] * 2


@pytest.mark.parametrize("printed", [False, True])
def test_pairs_of_parts_add_up_to_those_of_all_rows(printed):
    """Parts that share no person: the same pairs, with items by name or by fingerprint, also after they were sent."""
    import pickle

    import pyarrow as pa

    from discreet.central import ChosenDistinct
    from discreet.engines.different import Prints
    from discreet.engines.pairs import Pairs
    from discreet.events.tables import events_of
    from discreet.privacy import Budget

    random, prints = np.random.default_rng(5), Prints() if printed else None
    table = pa.table({"who": random.integers(0, 40, 300), "item": np.minimum(random.zipf(1.5, 300), 50)})

    def pairs(part):
        return Pairs(events_of(part).rows("item", user="who"), prints)

    whole = pairs(table)
    parts = [pairs(table.filter(pa.array(np.asarray(table["who"]) % 3 == part))) for part in (0, 1, 2)]
    empty = pairs(table.slice(0, 0))
    joined = pickle.loads(pickle.dumps(empty + parts[0])) + parts[1] + pickle.loads(pickle.dumps(parts[2])) + empty
    mechanism = ChosenDistinct(Budget(1.0))
    assert mechanism.count_of(joined.people, joined.items) == mechanism.count_of(whole.people, whole.items)
    if printed:
        return
    values = [np.asarray(each.values().take(pa.array(each.items))) for each in (joined, whole)]
    assert sorted(values[0]) == sorted(values[1])
    for most in (1, 3):
        sizes = [np.bincount(each.first_of(np.ones(len(each.values()), bool), most)[0]) for each in (joined, whole)]
        assert sorted(sizes[0]) == sorted(sizes[1])


def test_nothing_is_added_to_rows_that_are_grouped():
    pairs = _native.Pairs(Entry.present, LENGTH, 1, 1)
    numbers = np.arange(10, dtype=np.int32)
    pairs.add(numbers, numbers)
    pairs.group()
    with pytest.raises(ParameterError, match="grouped already"):
        pairs.add(numbers, numbers)
