"""Entries of a message: places of the universe, each with a whole number."""

from __future__ import annotations

import numpy as np

from discreet import _native
from discreet.errors import MessageError
from discreet.multiparty.messages import read_varint, varint
from discreet.noise.source import Integers

__all__ = ["read_entries", "write_entries"]


def write_entries(places: Integers, numbers: Integers) -> bytes:
    """In the order of the places, whichever order they came in: how many, the gaps between them, the numbers."""
    if len(places) == 0:
        return varint(0)
    order = np.argsort(places)
    gaps = np.diff(places[order], prepend=-1) - 1
    # Written as 0, -1, 1, -2, ... a gap takes as many bits as a number of half its size with a sign.
    signed = np.where(gaps % 2 == 0, gaps // 2, -(gaps // 2) - 1)
    parts = [_native.write_integers(part) for part in (signed, numbers[order])]
    return varint(len(places)) + b"".join(varint(len(part)) + part for part in parts)


def read_entries(data: bytes, size: int, bound: int) -> tuple[Integers, Integers, bytes]:
    """Places below `size` in order, their numbers of at most `bound` in size, and what follows."""
    count, at = read_varint(data, 0)
    if count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), data[at:]
    if count > size or count > 8 * len(data):  # an entry takes two bits at least
        raise MessageError("message has more entries than it may", "range")
    parts = []
    for limit in ((size + 1) // 2, bound):  # a gap below `size` is written as a number of half its size
        length, at = read_varint(data, at)
        if length > len(data) - at:
            raise MessageError("message ends within its entries", "format")
        parts.append(_native.read_integers(data[at : at + length], count, limit))
        at += length
    signed, numbers = parts
    gaps = np.where(signed >= 0, 2 * signed, -2 * signed - 1)
    # A step is at most size + 1 <= 2^62 + 1, so the first sum above `size` is seen as such, or as one that has wrapped.
    sums = np.cumsum(gaps + 1)
    if (sums < 1).any() or (sums > size).any():
        raise MessageError("message has an entry outside the universe", "range")
    return sums - 1, numbers, data[at:]
