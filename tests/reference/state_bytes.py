"""The envelope of state bytes in plain Python, to give damaged payloads a checksum that fits."""

from __future__ import annotations

WORD = 2**64
MIX_A, MIX_B, MIX_C = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7


def _fold(a: int, b: int) -> int:
    product = a * b
    return product % WORD ^ product >> 64


def _words(text: bytes) -> tuple[int, int]:
    n = len(text)
    if n >= 8:
        return int.from_bytes(text[:8], "little"), int.from_bytes(text[-8:], "little")
    if n >= 4:
        return int.from_bytes(text[:4], "little"), int.from_bytes(text[-4:], "little")
    return (text[0] | text[n >> 1] << 8 | text[-1] << 16, 0) if n else (0, 0)


def _hash(text: bytes, seed: int) -> int:
    h = seed ^ MIX_A * (len(text) + 1) % WORD
    while len(text) > 16:
        h = _fold(int.from_bytes(text[:8], "little") ^ h, int.from_bytes(text[8:16], "little") ^ seed ^ MIX_B)
        text = text[16:]
    a, b = _words(text)
    return _fold(_fold(a ^ h ^ MIX_C, b ^ seed ^ MIX_B) ^ h, MIX_A)


def reseal(state: bytes, payload: bytes) -> bytes:
    """`state` with another payload, and the length and checksum that go with it."""
    head = state[:16] + len(payload).to_bytes(8, "little")
    h = 0x5BD1E995A3C59AC3
    for part in (head, payload):
        for first in range(0, len(part), 2**20):
            h = _hash(part[first : first + 2**20], h)
    return head + h.to_bytes(8, "little") + payload
