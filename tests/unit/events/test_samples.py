"""Capping users: what is kept depends on the user alone."""

import random
from collections import Counter

import pyarrow as pa
import pytest

import discreet as dc
from discreet.events.samples import UserSets, items_of_users
from discreet.noise import seeded_source


def capped(events, max_items, batch=3, key=bytes(16)):
    sets = UserSets(max_items)
    sets._key = key
    for start in range(0, len(events), batch):
        users, items = zip(*events[start : start + batch], strict=True)
        sets.add(pa.array(users), pa.array(items))
    return [items for batch in sets.lists() for items in batch]


def test_so_many_distinct_items_are_kept_whatever_their_order_and_the_batches():
    events = [("u", "a"), ("v", "a"), ("u", "a"), ("u", "b"), ("u", "c"), ("v", "b"), ("u", "a")]
    assert [sorted(items) for items in capped(events, 9)] == [["a", "b", "c"], ["a", "b"]]
    for most in (1, 2):
        kept = capped(events, most)
        assert [len({*items}) for items in kept] == [most, most]
        assert {*kept[0]} <= {*"abc"}
        assert {*kept[1]} <= {*"ab"}
        for batch in (1, 2, 7):
            assert capped(events, most, batch) == kept
        assert capped([*events[:2], *reversed(events)], most) == kept


def test_the_sample_is_uniform_and_users_have_samples_of_their_own():
    """2 of 5 items: each of the 10 sets of 2 for a tenth of 4000 users, under a key that is drawn."""
    sets = UserSets(2)
    sets.add(pa.array([user for user in range(4000) for _ in range(5)]), pa.array([*"abcde"] * 4000))
    found = Counter("".join(sorted(items)) for batch in sets.lists() for items in batch)
    assert len(found) == 10
    assert all(abs(times - 400) < 6 * 19 for times in found.values())
    other = UserSets(2)
    other.add(pa.array(["u"] * 500), pa.array([*map(str, range(500))]))
    again = UserSets(2)
    again.add(pa.array(["u"] * 500), pa.array([*map(str, range(500))]))
    assert [*other.lists()] != [*again.lists()]


def test_removing_a_user_removes_one_set_and_changes_no_other():
    generator = random.Random(1)
    events = [(generator.randrange(6), generator.randrange(5)) for _ in range(200)]
    order = list(dict.fromkeys(user for user, _ in events))
    for batch in (1, 7, 200):
        everyone = capped(events, 3, batch)
        for position, user in enumerate(order):
            without = capped([event for event in events if event[0] != user], 3, batch)
            assert without == everyone[:position] + everyone[position + 1 :]


def test_dictionaries_and_bad_parameters():
    sets = UserSets(2)
    sets.add(pa.array([1, 1, 2]), pa.array(["a", "b", "a"]).dictionary_encode())
    assert [sorted(s) for batch in sets.lists() for s in batch] == [["a", "b"], ["a"]]
    assert "a" not in repr(sets).replace("max_items", "").replace("PRIVATE", "").replace("UserSets", "")
    with pytest.raises(dc.ParameterError):
        UserSets(0)
    assert list(UserSets(1).lists()) == []


@pytest.mark.parametrize("lists", [[[1, 2, 3, 4], [5], [6, 6, 7]], pa.array([[1, 2, 3, 4], [5], [6, 6, 7]])])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_of_lists_so_many_items_of_each_are_kept(lists, most):
    kept = Counter()
    for column in items_of_users(lists, most, "error", seeded_source(1)):
        kept.update((0 if item < 5 else 1 if item == 5 else 2) for item in pa.array(column).to_pylist())
    assert [kept[user] for user in range(3)] == [min(most, 4), 1, min(most, 2)]


LISTS = {
    "lists": lambda rows: rows,
    "tuples": lambda rows: [None if row is None else tuple(row) for row in rows],
    "Arrow": lambda rows: pa.array(rows, pa.list_(pa.string())),
    "large": lambda rows: pa.array(rows, pa.large_list(pa.large_string())),
    "chunks": lambda rows: pa.chunked_array([pa.array(rows[:1], pa.list_(pa.string())), rows[1:]]),
    "views": lambda rows: pa.array(rows, pa.list_(pa.string_view())),
    "a table": lambda rows: pa.table({"item": pa.array(rows, pa.list_(pa.string()))}),
}


def kept_of(lists, most=9, nulls="error", seed=1):
    parts = items_of_users(lists, most, nulls, seeded_source(seed))
    return [item for part in parts for item in (part.to_pylist() if hasattr(part, "to_pylist") else part)]


@pytest.mark.parametrize("kind", LISTS)
def test_nulls_of_lists_are_refused_or_nobodys(kind):
    """A null list, and what is null in one; what a null list refers to in memory is nobody's, too."""
    for rows in ([["a"], None, ["b"]], [["a"], [None, "b"], []]):
        with pytest.raises(dc.DataError, match=r"the column has nulls; pass nulls=.skip. to leave them out"):
            kept_of(LISTS[kind](rows))
        assert kept_of(LISTS[kind](rows), nulls="skip") == ["a", "b"]
    behind = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()), pa.array([*"axyb"]), mask=pa.array([False, True, False])
    )
    assert kept_of(behind, nulls="skip") == ["a", "b"]


@pytest.mark.parametrize("kind", LISTS)
def test_of_a_list_so_many_different_items_count_in_their_order(kind):
    """All of them where there are no more, and whoever else is in the data."""
    rows = [["b", "a", "b"], ["c", "a", "d", "c"], [], ["a"]]
    assert kept_of(LISTS[kind](rows), 3) == ["b", "a", "c", "a", "d", "a"]
    firsts = set()
    for seed in range(40):
        found = kept_of(LISTS[kind](rows), 2, seed=seed)
        assert (found[:2], found[-1], len(found)) == (["b", "a"], "a", 5)
        assert found[2:4] in (["c", "a"], ["c", "d"], ["a", "d"])
        firsts.add(tuple(found[2:4]))
    assert len(firsts) == 3  # any two of them


def test_items_of_different_kinds_are_different_items():
    """Python objects have no type to agree on; the same number of another library is the same."""
    import numpy as np

    assert kept_of([[1, "1", b"1", True, np.int32(1)]]) == [1, "1", b"1", True]
    with pytest.raises(dc.DataError, match="one column of lists"):
        kept_of(pa.table({"a": [["x"]], "b": [["y"]]}))
