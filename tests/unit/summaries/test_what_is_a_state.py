"""A state is bytes: whatever else is given is named, and not taken for an empty one."""

import copy
import pickle

import pytest

import discreet as dc


@pytest.mark.parametrize("kind", [dc.MisraGries, dc.SpaceSaving, dc.UserMisraGries, dc.ExactCounts])
@pytest.mark.parametrize("given", ["text", 5, None, [1, 2]])
def test_other_things_are_no_states(kind, given):
    with pytest.raises(dc.ParameterError, match=f"a state is bytes, not {type(given).__name__}"):
        kind.from_bytes(given)


def test_bytes_come_in_three_kinds():
    summary = dc.MisraGries(4)
    summary.update(["a", "a", "b"])
    state = summary.to_bytes()
    for given in (state, bytearray(state), memoryview(state)):
        assert dc.MisraGries.from_bytes(given).to_bytes() == state


@pytest.mark.parametrize("items", [["a", "b", "a"], [1, 2, 1], [2**63], [b"a", b""], ["a", 1, b"a", 2**63], []])
def test_what_a_summary_holds_is_the_same_in_another_process(items):
    summary = dc.ExactCounts()
    summary.update(items)
    held = summary.not_private_counts()
    for again in (pickle.loads(pickle.dumps(held)), copy.copy(held), copy.deepcopy(held)):
        assert again.to_dict() == {item: items.count(item) for item in items}
        assert (again.items.to_pylist(), again.counts.tolist()) == (held.items.to_pylist(), held.counts.tolist())
        assert (len(again), repr(again)) == (len(set(items)), "RawCounts(NOT PRIVATE)")
