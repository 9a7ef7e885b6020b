"""A small state cannot ask for much memory, neither when it is read nor when it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc

SCRIPT = Path(__file__).with_name("large_states.py")


def test_a_small_state_cannot_ask_for_much_memory(rounds):
    """Every family of states, with the numbers that decide about sizes made large, in a process with 400 MiB of room.

    Nor does one raise anything but an error of this package.
    """
    for seed in range(rounds(1, 20)):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(seed), "150"], capture_output=True, text=True, timeout=600, check=False
        )
        assert (done.returncode, done.stdout) == (0, ""), (seed, done.stderr[-2000:])


@pytest.mark.parametrize("cls", [dc.CountMin, dc.CountSketch])
def test_an_empty_sketch_of_much_memory_is_read_on_request_only(cls):
    """73 bytes that would take 12.9 GB with the first item."""
    large = cls(2**29 - 1, 3)
    with pytest.raises(dc.CorruptStateError, match="max_bytes"):
        cls.from_bytes(large.to_bytes())
    assert cls.from_bytes(large.to_bytes(), max_bytes=2**34).width == large.width
    assert large.copy().width == large.width
    small = cls(2**10, 3)
    assert cls.from_bytes(small.to_bytes()).width == 2**10
    with pytest.raises(dc.CorruptStateError, match="max_bytes"):
        cls.from_bytes(small.to_bytes(), max_bytes=2**10)
    small.update(["a"])
    assert cls.from_bytes(small.to_bytes(), max_bytes=0).total == 1  # its cells are in the state
