"""Entries of a message: places of the universe, each with a whole number; and counters with noise that pass a cut."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet import _native
from discreet.errors import MessageError
from discreet.events.universe import Words
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.messages import read_varint, varint
from discreet.noise import RandomSource
from discreet.noise.places import noisy_places
from discreet.noise.source import Integers
from discreet.summaries import MisraGries

__all__ = [
    "Entries",
    "added_by_the_cut",
    "counter_variance",
    "counters_above",
    "counts_of",
    "read_counters",
    "read_entries",
    "usual_cut",
    "write_counters",
    "write_entries",
]

Entries = tuple[Integers, Integers]
"""Places in their order, and their counters."""


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


def read_entries(data: memoryview, size: int, bound: int) -> tuple[Integers, Integers, memoryview]:
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
        parts.append(_native.read_integers(bytes(data[at : at + length]), count, limit))
        at += length
    signed, numbers = parts
    gaps = np.where(signed >= 0, 2 * signed, -2 * signed - 1)
    # A step is at most size + 1 <= 2^62 + 1, so the first sum above `size` is seen as such, or as one that has wrapped.
    sums = np.cumsum(gaps + 1)
    if (sums < 1).any() or (sums > size).any():
        raise MessageError("message has an entry outside the universe", "range")
    return sums - 1, numbers, data[at:]


# ---- counters above a cut --------------------------------------------------------------------------------------------


def usual_cut(scale: Fraction, size: int) -> int:
    """The smallest for which one item of count 0 at most passes it, on average: size q^cut/(1 + q) <= 1."""
    s = float(scale)
    return max(1, math.ceil(s * math.log(size / (1 + math.exp(-1 / s)))))


def counters_above(
    sketch: MisraGries, size: int, scale: Fraction, cut: int, bound: int, source: RandomSource
) -> Entries:
    """The items of a universe whose counters, with discrete Laplace noise on every item, are at least the cut."""
    raw = sketch.not_private_counts()
    places = np.asarray(raw.items).astype(np.int64) if len(raw) else np.zeros(0, np.int64)
    found, noisy = noisy_places(source, size, places, raw.counts, scale, cut)
    order = np.argsort(found)
    return found[order], np.minimum(noisy, bound)[order]


def write_counters(entries: Entries, cut: int) -> bytes:
    """Counters by what they have beyond the cut."""
    places, counters = entries
    return write_entries(places, counters - cut)


def read_counters(data: memoryview, size: int, cut: int, bound: int) -> tuple[Entries, memoryview]:
    """The inverse, and what follows."""
    places, beyond, rest = read_entries(data, size, bound - cut)
    if (beyond < 0).any():
        raise MessageError("message has a count below the cut", "range")
    return (places, beyond + cut), rest


def counts_of(entries: Entries, words: Words) -> Numbers:
    """What was sent of each word; 0 for what was not."""
    places, counters = entries
    if not len(places):
        return np.zeros(len(words))
    asked = words.astype(np.int64)
    at = np.minimum(np.searchsorted(places, asked), len(places) - 1)
    return np.where(places[at] == asked, counters[at], 0).astype(np.float64)


def counter_variance(scale: Fraction) -> float:
    """2 scale^2, that of the continuous law: a little more than the noise has, so that intervals hold for one counter.

    They reach t = scale log(1/beta) at least. Discrete noise is above t with probability q^(floor(t) + 1)/(1 + q) <=
    beta/(1 + q); a count is above its interval, to which the cut is added, with q times that: what is hidden is below
    the cut by 1.
    """
    return 2 * float(scale) ** 2


def added_by_the_cut(scale: Fraction, cut: int) -> float:
    """The most by which what is sent of an item is too high, on average.

    Of a count c < cut that is q^(cut - c) (cut + q/(1 - q))/(1 + q) - c, which is convex in c; of cut + s it is q^s
    times that of the cut, q (1/(1 - q) - cut)/(1 + q). So the most is at 0, cut - 1 or cut.
    """
    q = math.exp(-1 / float(scale))
    beyond = q / -math.expm1(-1 / float(scale))

    def of(count: int) -> float:
        return float(q ** (cut - count) * (cut + beyond) / (1 + q) - count)

    return max(0.0, of(0), of(cut - 1), q * (1 + beyond - cut) / (1 + q))
