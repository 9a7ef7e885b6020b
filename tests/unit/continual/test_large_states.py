"""States with many items: written a part at a time, with the bytes of one call of `json`."""

import json

import numpy as np
import pytest

from discreet import _native
from discreet.continual._base import State, as_json, load_state, save_state
from discreet.errors import ParameterError
from discreet.storage import open_state, seal_state


@pytest.mark.parametrize(
    "value",
    [
        {
            "items": [f"ä {number}\n" for number in range(20_000)],
            "empty": [],
            "none": None,
            "of": {"a": {}, "b": [1.5]},
        },
        {"numbers": list(range(4096)), "more": [[True, number] for number in range(4097)]},
        {1: "a key that is no text", "2": [2] * 5000},
        [],
        ["x"] * 12_289,
    ],
)
def test_text_is_that_of_json(value):
    assert as_json(value) == json.dumps(value, separators=(",", ":"))


def test_what_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        as_json({"items": [1.0] * 5000 + [float("nan")]})


def test_parts_are_one_payload():
    parts = [b"abc", bytearray(b"de"), np.arange(6).reshape(2, 3), b"", memoryview(b"f"), np.zeros((0, 4))]
    whole = b"".join(bytes(part) if not isinstance(part, np.ndarray) else part.tobytes() for part in parts)
    assert seal_state(123, 4, *parts) == seal_state(123, 4, whole)
    assert open_state(seal_state(123, 4, *parts), 123, 4) == (4, whole)
    assert open_state(seal_state(123, 4), 123, 4) == (4, b"")


def test_parts_are_bytes_one_after_the_other():
    with pytest.raises((TypeError, ValueError, BufferError)):
        _native.seal_state(123, 4, [b"a", np.arange(10)[::2]])
    with pytest.raises(TypeError):
        _native.seal_state(123, 4, ["text"])
    with pytest.raises(ParameterError, match="families"):
        _native.seal_state(99, 4, [b"a"])


def test_a_large_state_comes_back():
    header = {"items": [f"item {number}" for number in range(10_000)], "kind": "other"}
    arrays = {
        "total": np.arange(10_000),
        "levels": np.arange(12).reshape(3, 4),
        "turned": np.arange(12).reshape(3, 4).T,
    }
    found = load_state(save_state(150, State(header, arrays, {"last": b"x" * 100})), 150)
    assert found.header == header
    assert found.blobs == {"last": b"x" * 100}
    assert all(np.array_equal(found.arrays[name], array) for name, array in arrays.items())
