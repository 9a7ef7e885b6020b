"""States written by earlier versions are read, hold what they held, and go on as they would have."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.reference.states import content, first_hash

import discreet as dc

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("make_states", HERE / "make_states.py")
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)

LONG = "a query of more than twenty bytes"
# Class, content, total.
CONTENT = {
    "exact_counts-v1": (dc.ExactCounts, {LONG: 1, "émile": 1, "fish": 1, "newts": 1, "dogs": 2, "cats": 4, "": 1}, 11),
    "misra_gries-int-v1": (dc.MisraGries, {11: 1, 9: 0, 3: 2}, 11),
    "misra_gries-v1": (dc.MisraGries, {"fish": 0, "newts": 1, "cats": 2}, 11),
    "sharded_misra_gries-v1": (dc.ShardedMisraGries, {"dogs": 0, "cats": 1, "": 1}, 11),
    "space_saving-int-v1": (dc.SpaceSaving, {11: 4, 9: 3, 3: 4}, 11),
    "space_saving-v1": (dc.SpaceSaving, {"fish": 3, "newts": 4, "cats": 4}, 11),
    "user_misra_gries-v1": (dc.UserMisraGries, {"émile": 1, "dogs": 1, "cats": 2}, 8),
}
CONTENT |= {name.replace("-v1", "-v2"): held for name, held in CONTENT.items()}


@pytest.mark.parametrize("name", CONTENT)
def test_content(name):
    cls, held, total = CONTENT[name]
    state = (HERE / f"{name}.state").read_bytes()
    summary = cls.from_bytes(state)
    assert summary.not_private_counts().to_dict() == held
    assert (summary.total, summary.seed, summary.max_key_bytes, summary.was_merged) == (total, 11, 4096, False)
    if name.endswith("-v2"):
        assert summary.to_bytes() == state
    assert content(summary) == content(made.states(first_hash)[made.newest(name)])
    assert len(summary.lineage) == 1


@pytest.mark.parametrize("name", CONTENT)
def test_the_same_state_is_not_merged_twice(name):
    """Version 1 had no lineage: its checksum stands for one."""
    first, second = (CONTENT[name][0].from_bytes((HERE / f"{name}.state").read_bytes()) for _ in range(2))
    with pytest.raises(dc.IncompatibleSummaryError, match="same events"):
        first.merge(second)
    first.merge(made.states(first_hash)[made.newest(name)])
    assert first.total == 2 * second.total


@pytest.mark.parametrize("name", CONTENT)
def test_goes_on(name):
    """As a summary that saw the whole stream: zero counters keep the order of the version that wrote it."""
    restored = CONTENT[name][0].from_bytes((HERE / f"{name}.state").read_bytes())
    fresh = made.states(first_hash)[made.newest(name)]
    more = [made.NUMBERS, made.USERS, made.WORDS][0 if "int" in name else 1 if "user" in name else 2]
    for summary in (restored, fresh):
        summary.update(more[::-1] * 3)
    assert content(restored) == content(fresh)


@pytest.mark.parametrize("name", [name for name in CONTENT if "sharded" not in name])
def test_merges_with_a_summary_of_the_present_hash(name):
    old = CONTENT[name][0].from_bytes((HERE / f"{name}.state").read_bytes())
    new = made.states()[made.newest(name)]
    for a, b in ((old.copy(), new), (new.copy(), old)):
        a.merge(b)
        assert a.total == 2 * old.total


def test_shards_of_two_hashes_are_not_merged():
    """An item would be in two shards."""
    old = dc.ShardedMisraGries.from_bytes((HERE / "sharded_misra_gries-v1.state").read_bytes())
    with pytest.raises(dc.IncompatibleSummaryError, match="older version"):
        old.merge(made.states()["sharded_misra_gries-v2"])


def test_every_file_is_checked():
    assert set(made.states()) < set(CONTENT)
    assert {path.stem for path in HERE.glob("*.state")} >= set(CONTENT)
