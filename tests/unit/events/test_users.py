"""Capping users: what is kept depends on the user alone."""

import random

import pyarrow as pa
import pytest

import discreet as dc
from discreet.events.users import UserSets


def capped(events, max_items, batch=3):
    sets = UserSets(max_items)
    for start in range(0, len(events), batch):
        users, items = zip(*events[start : start + batch], strict=True)
        sets.add(pa.array(users), pa.array(items))
    return [items for batch in sets.lists() for items in batch.to_pylist()]


def test_the_first_distinct_items_are_kept():
    events = [("u", "a"), ("v", "a"), ("u", "a"), ("u", "b"), ("u", "c"), ("v", "b"), ("u", "a")]
    assert capped(events, 2) == [["a", "b"], ["a", "b"]]
    assert capped(events, 1) == [["a"], ["a"]]
    assert capped(events, 9) == [["a", "b", "c"], ["a", "b"]]


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
    assert [s for batch in sets.lists() for s in batch.to_pylist()] == [["a", "b"], ["a"]]
    assert "a" not in repr(sets).replace("max_items", "").replace("PRIVATE", "").replace("UserSets", "")
    with pytest.raises(dc.ParameterError):
        UserSets(0)
    assert list(UserSets(1).lists()) == []
