"""State bytes for classes written in Python: the envelope of the native summaries around a payload of their own."""

from __future__ import annotations

from discreet import _native
from discreet.errors import CorruptStateError, ParameterError

__all__ = ["MAGIC", "open_state", "seal_state"]

MAGIC = b"DSCREET1"  # how every envelope begins


def seal_state(family: int, version: int, payload: bytes) -> bytes:
    """Wrap a payload with magic, family (100 and up), version and checksum."""
    return _native.seal_state(family, version, payload)


def open_state(data: bytes, family: int, newest: int) -> tuple[int, bytes]:
    """The version and payload of a state of this family; `CorruptStateError` for anything else."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ParameterError(f"a state is bytes, not {type(data).__name__}")
    found, version, payload = _native.open_state(bytes(data))
    if found != family:
        raise CorruptStateError("state belongs to another class")
    if not 1 <= version <= newest:
        raise CorruptStateError(f"state has version {version}; versions 1 to {newest} can be read")
    return version, payload
