"""States to compare: equal streams under equal seeds give equal states but for the lineage, which is random."""

from __future__ import annotations

from typing import Any


def content(summary: Any) -> bytes:
    """The state without its checksum and its lineage."""
    state = summary.to_bytes()
    return state[:16] + state[32 : len(state) - 8 * (1 + len(summary.lineage))]


WORD = 2**64 - 1


def _fold(a: int, b: int) -> int:
    return (a * b & WORD) ^ (a * b >> 64)


def _first_hash(data: bytes, seed: int) -> int:
    """The hash of bytes that states begun with: the checksum of their envelope, and the order of older ones."""

    def word(part: bytes) -> int:
        return int.from_bytes(part, "little")

    mix_a, mix_b, mix_c = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7
    h = seed ^ (mix_a * (len(data) + 1) & WORD)
    while len(data) > 16:
        h = _fold(word(data[:8]) ^ h, word(data[8:16]) ^ seed ^ mix_b)
        data = data[16:]
    n = len(data)
    if n >= 8:
        a, b = word(data[:8]), word(data[-8:])
    elif n >= 4:
        a, b = word(data[:4]), word(data[-4:])
    else:
        a, b = (data[0] | data[n >> 1] << 8 | data[-1] << 16, 0) if n else (0, 0)
    return _fold(_fold(a ^ h ^ mix_c, b ^ seed ^ mix_b) ^ h, mix_a)


def first_hash(summary: Any) -> Any:
    """An empty summary as one that hashes bytes as states did at first: byte 13 of their envelope is 0."""
    state = bytearray(summary.to_bytes())
    state[13] = 0
    sum_ = _first_hash(bytes(state[32:]), _first_hash(bytes(state[:24]), 0x5BD1E995A3C59AC3))
    state[24:32] = sum_.to_bytes(8, "little")
    return type(summary).from_bytes(bytes(state))
