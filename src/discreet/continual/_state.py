"""States of continual releases: a JSON header and integer arrays inside the envelope that all states share."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.errors import CorruptStateError, DiscreetError
from discreet.events.values import Item
from discreet.storage import open_state, seal_state

Integers = npt.NDArray[np.int64]


VERSION = 1  # of all states below
_AT_ONCE = 1 << 12


class State(NamedTuple):
    """What a state holds. Not private."""

    header: dict[str, Any]
    arrays: dict[str, Integers]
    blobs: dict[str, bytes]


def save_state(family: int, state: State) -> bytes:
    """One state as bytes. Not private."""
    described = {
        "header": state.header,
        "arrays": {name: list(array.shape) for name, array in state.arrays.items()},
        "blobs": {name: len(blob) for name, blob in state.blobs.items()},
    }
    text = as_json(described).encode()
    arrays = (np.ascontiguousarray(array, "<i8") for array in state.arrays.values())
    return seal_state(family, VERSION, struct.pack("<Q", len(text)), text, *arrays, *state.blobs.values())


def as_json(value: Any) -> str:
    """The same as `json.dumps`, a few thousand items of a list at a time: other threads may run in between.

    A service answers while it saves a state with a million items, and one call of `json` would keep it from that.
    """
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_dumps(key)}:{as_json(each)}" for key, each in value.items()) + "}"
    if not isinstance(value, list) or len(value) <= _AT_ONCE:
        return _dumps(value)
    parts = (_dumps(value[start : start + _AT_ONCE])[1:-1] for start in range(0, len(value), _AT_ONCE))
    return "[" + ",".join(parts) + "]"


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def load_state(data: bytes, family: int) -> State:
    """The parts of a state; `CorruptStateError` for anything else. Sizes are checked before anything is made."""
    _, payload = open_state(data, family, VERSION)
    try:
        (length,) = struct.unpack_from("<Q", payload)
        described = json.loads(payload[8 : 8 + length])
        position = 8 + length
        arrays, blobs = {}, {}
        for name, shape in described["arrays"].items():
            size = 8
            for extent in shape:
                if not isinstance(extent, int) or extent < 0:
                    raise ValueError
                size *= extent
            if position + size > len(payload):
                raise ValueError
            piece = np.frombuffer(payload, "<i8", size // 8, position)
            arrays[name] = piece.reshape(shape).astype(np.int64)
            position += size
        for name, size in described["blobs"].items():
            if not isinstance(size, int) or size < 0 or position + size > len(payload):
                raise ValueError
            blobs[name] = payload[position : position + size]
            position += size
        if position != len(payload) or not isinstance(described["header"], dict):
            raise ValueError
        return State(described["header"], arrays, blobs)
    except DiscreetError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, struct.error, RecursionError):
        # Without the cause: it may quote what the state holds.
        raise CorruptStateError("the state is damaged inside its envelope") from None


def plain_items(items: Iterable[Item]) -> tuple[str, list[Any]]:
    """Items as JSON: their kind ("bytes", "other", or "mixed" if some are bytes), and they (bytes as hexadecimal)."""
    values = list(items)
    coded = [isinstance(item, bytes) for item in values]
    plain = [item.hex() if isinstance(item, bytes) else item for item in values]
    if any(coded) and not all(coded):
        return "mixed", [[is_bytes, value] for is_bytes, value in zip(coded, plain, strict=True)]
    return "bytes" if any(coded) else "other", plain


def items_of_plain(kind: str, items: list[Any]) -> list[Item]:
    """The inverse of `plain_items`."""
    if kind == "mixed":
        return [bytes.fromhex(value) if is_bytes else value for is_bytes, value in items]
    return [bytes.fromhex(value) for value in items] if kind == "bytes" else items
