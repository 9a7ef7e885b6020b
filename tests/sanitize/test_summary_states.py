"""States: whatever the bytes, reading them gives `CorruptStateError` or a summary that works, and never much memory."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_summary_contract import SUMMARIES, every_summary
from tests.reference.states import content

import discreet as dc
from discreet import _native

thorough = settings(deadline=None, derandomize=True, max_examples=80)
STREAMS = {
    "int64": [1, 2, 3, 4, 5, 5, 6, -1],
    "uint64": [2**64 - 1, 3, 4, 5, 2**63, 3],
    "string": ["a", "b", "é", "", "x" * 21, "a", "a", "q"],
    "binary": [b"", b"\xff", b"\0", b"\xff", b"k" * 22, b"e"],
}


def check(cls, case, data):
    """Corrupt, or a summary whose copy goes on exactly as it does itself."""
    try:
        summary = cls.from_bytes(data)
    except dc.CorruptStateError:
        return
    copy = cls.from_bytes(summary.to_bytes())
    assert copy.to_bytes() == summary.to_bytes()
    assert 0 <= summary.total < 2**63
    assert summary.memory_bytes < 2**22
    if getattr(summary, "width", 1) * getattr(summary, "depth", 1) > 2**16:
        return  # an empty linear sketch, which takes all its cells with the first item
    for items in [STREAMS[summary.key_type]] if summary.key_type else STREAMS.values():
        for either in (summary, copy):
            try:
                either.update(case.wrap(items * 3))
            except dc.DataError:  # the state may allow shorter keys than these
                continue
            either.estimate(items[0])
            len(either)
        assert content(copy) == content(summary)


@every_summary
@pytest.mark.parametrize("merged", [False, True], ids=["plain", "merged"])
@pytest.mark.parametrize("kind", [*STREAMS, "none"])
def test_every_bit_behind_the_checksum(case, kind, merged):
    summary = case.fed(STREAMS.get(kind, []))
    if merged:
        summary.merge(case.fed(STREAMS.get(kind, [])[::2]))
    state = summary.to_bytes()
    assert _native.reseal_state(state) == state
    # Parameters and records come first; of the many cells of a linear sketch, which are all alike, some are enough.
    bits = [*range(8 * 16), *range(8 * 32, 8 * min(len(state), 256)), *range(8 * 256, 8 * len(state), 61)]
    for bit in bits:
        damaged = bytearray(state)
        damaged[bit // 8] ^= 1 << (bit % 8)
        check(type(summary), case, _native.reseal_state(bytes(damaged)))
    for length in [*range(32, min(len(state), 256)), *range(256, len(state), 61)]:
        with pytest.raises(dc.CorruptStateError):
            type(summary).from_bytes(_native.reseal_state(state[:length]))
    with pytest.raises(dc.CorruptStateError):
        type(summary).from_bytes(_native.reseal_state(state + b"\0"))


@every_summary
@thorough
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes(case, data):
    cls = type(case.make())
    for attempt in (data, b"DSCREET1" + data, case.make().to_bytes()[:16] + data):
        with pytest.raises(dc.CorruptStateError):
            cls.from_bytes(attempt)


telling = st.sampled_from([0, 1, 2, 3, 5, 2**8, 2**16, 2**30, 2**30 + 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62])
telling |= st.sampled_from([2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@st.composite
def edited(draw, state):
    """A state with numbers overwritten, pieces removed, repeated or put in, and a fitting checksum."""
    payload, head = bytearray(state[32:]), bytearray(state[:32])
    head[12] = draw(st.sampled_from([head[12], head[12], 0, 1, 2, 3, 4, 5]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(payload)))
        action = draw(st.sampled_from(["u64", "u32", "cut", "repeat", "insert"]))
        end = min(len(payload), at + draw(st.integers(0, 24)))
        if action == "u64":
            payload[at : at + 8] = struct.pack("<Q", draw(telling))
        elif action == "u32":
            payload[at : at + 4] = struct.pack("<I", draw(telling) % 2**32)
        elif action == "cut":
            del payload[at:end]
        elif action == "repeat":
            payload[at:at] = payload[at:end]
        else:
            payload[at:at] = draw(st.binary(max_size=24))
    return _native.reseal_state(bytes(head + payload))


@every_summary
@pytest.mark.parametrize("kind", STREAMS)
@thorough
@given(data=st.data())
def test_edited_payloads(case, kind, data):
    summary = case.fed(STREAMS[kind])
    if data.draw(st.booleans()):
        summary.merge(case.fed(STREAMS[kind][::2]))
    check(type(summary), case, data.draw(edited(summary.to_bytes())))


def test_a_damaged_state_costs_no_memory():
    """States that announce as much as they can, read in a process that may hardly allocate."""
    program = """
import resource, struct
import discreet as dc
from discreet import _native
from tests.property.test_summary_contract import SUMMARIES

states = []
for case in SUMMARIES.values():
    for items in ([1, 2, 3], ["a", "b", "c"], []):
        state = case.fed(items).to_bytes()
        for at in range(32, len(state) - 3):
            for number in (2**30, 2**31 - 1, 2**32 - 1):
                damaged = state[:at] + struct.pack("<I", number) + state[at + 4:]
                states.append((type(case.make()), _native.reseal_state(damaged[:len(state)])))
                damaged = state[:at] + struct.pack("<Q", number << 20) + state[at + 8:]
                states.append((type(case.make()), _native.reseal_state(damaged[:len(state)])))
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**25,) * 2)
accepted = 0
for cls, state in states:
    try:
        cls.from_bytes(state)
        accepted += 1
    except dc.CorruptStateError:
        pass
assert 0 < accepted < len(states)
for make in (dc.MisraGries, dc.SpaceSaving, lambda capacity: dc.UserMisraGries(capacity, capacity)):
    summary = make(2**30)
    assert summary.memory_bytes == 0
    summary.update([["a"], ["b"]] if isinstance(summary, dc.UserMisraGries) else ["a", "b"])
    assert summary.memory_bytes < 2**20
    assert summary.copy().to_bytes() == summary.to_bytes()
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr


def test_envelope_of_python_states():
    state = _native.seal_state(100, 3, [b"payload"])
    assert _native.open_state(state) == (100, 3, b"payload")
    with pytest.raises(dc.ParameterError, match="below 100"):
        _native.seal_state(99, 1, [b""])
    for cls in {type(case.make()) for case in SUMMARIES.values()}:
        with pytest.raises(dc.CorruptStateError, match="another class"):
            cls.from_bytes(state)


@every_summary
def test_versions_to_come_are_refused(case):
    state = bytearray(case.fed([1]).to_bytes())
    for version in (0, 2**15):
        state[10:12] = struct.pack("<H", version)
        with pytest.raises(dc.CorruptStateError, match=f"version {version};"):
            type(case.make()).from_bytes(_native.reseal_state(bytes(state)))


def test_user_counts_that_would_wrap_around():
    """A number of users that overflows would make the next user's items look like repeats."""
    sketch = dc.UserMisraGries(4, 2, seed=0)
    sketch.update([["a"], ["b"]])
    state = sketch.to_bytes()
    at = state.index(struct.pack("<QQQQ", 2, 2, 0, 2)) + 8  # total, users, decrements, records
    for users in (3, 2**64 - 1):
        with pytest.raises(dc.CorruptStateError, match="users"):
            dc.UserMisraGries.from_bytes(_native.reseal_state(state[:at] + struct.pack("<Q", users) + state[at + 8 :]))
