"""A state is bytes: whatever else is given is named, and not taken for an empty one."""

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
