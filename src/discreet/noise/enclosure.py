"""Enclosures of real numbers by integers, and exact comparisons of a uniform real with them.

An enclosure of a real number c at ``bits`` is a pair of integers with low <= 2^bits * c <= high. All arithmetic is on
integers and rounded outwards, so no statement here rests on floating point or on a mathematical library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Protocol

Enclosure = Callable[[int], tuple[int, int]]
"""bits -> (low, high); the gap shrinks below any given part of 2^bits as bits grow."""

Cumulative = Callable[[int], Iterator[tuple[int, int]]]
"""bits -> enclosures of P[X <= 0], P[X <= 1], ...; ends with the exact 1, or when less than 2^-(bits - 48) is left."""


class Bits(Protocol):
    """Where fresh random bits come from."""

    def bits(self, count: int) -> int: ...


def rational(value: Fraction, bits: int) -> tuple[int, int]:
    """Encloses a rational number."""
    scaled = value.numerator << bits
    return scaled // value.denominator, -(-scaled // value.denominator)


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Encloses exp(-x) for a rational x >= 0, a few units wide.

    exp(-x) = exp(-y)^(2^h) with y = x/2^h < 2^-8. Each term of the series is below its true value by less than 4 units
    of the working precision, and the first term that rounds to 0 bounds the rest.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:
        return 0, 1  # exp(-x) < 2^-x
    halvings = 8 + (x.numerator // x.denominator).bit_length()
    work = bits + 2 * halvings + 16
    y = (x.numerator << (work - halvings)) // x.denominator
    total = term = 1 << work
    count = 0
    while term:
        count += 1
        term = (term * y >> work) // count
        total += term if count % 2 == 0 else -term
    low, high = total - 4 * (count + 2), min(total + 4 * (count + 2), 1 << work)
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    shift = work - bits
    return low >> shift, min((high >> shift) + 1, 1 << bits)


def pi(bits: int) -> tuple[int, int]:
    """Encloses pi = 16 arctan(1/5) - 4 arctan(1/239).

    Every term of the two alternating series is rounded down by less than a unit, and the first that is 0 ends them.
    """

    def arctan_inverse(n: int) -> tuple[int, int]:
        total, power, count = 0, (1 << work) // n, 0
        while term := power // (2 * count + 1):
            total += term if count % 2 == 0 else -term
            power, count = power // (n * n), count + 1
        return total - count - 2, total + count + 2

    work = bits + 64
    five, other = arctan_inverse(5), arctan_inverse(239)
    return (16 * five[0] - 4 * other[1]) >> 64, ((16 * five[1] - 4 * other[0]) >> 64) + 1


def table(cumulative: Cumulative, bits: int) -> list[int]:
    """floor(2^bits * P[X <= h]) + 1 for h = 0, 1, ... until every word of that many bits is covered.

    The floor may be that of a lower bound less than one unit below. So for the first h with ``word <= table[h]``: if
    ``word < table[h] - 1``, every real in [word, word + 1) / 2^bits lies in [P[X <= h-1], P[X <= h]); if not, more bits
    are needed.
    """
    precision = bits + 64
    while True:
        shift = precision - bits
        bounds: list[int] = []
        for low, high in cumulative(precision):
            bound = (low >> shift) + 1
            if high > (bound + 1) << shift:
                break
            bounds.append(bound)
            if bound >= (1 << bits) - 1:
                return bounds
        precision *= 2


def invert(tables: Callable[[int], list[int]], source: Bits, word: int = 0, bits: int = 0) -> int:
    """The h with P[X < h] <= U < P[X <= h], for a uniform U whose first ``bits`` bits are ``word``."""
    while True:
        word, bits = word << 64 | source.bits(64), bits + 64
        bounds = tables(bits)
        h = bisect_left(bounds, word)
        if word < bounds[h] - 1:
            return h


def is_below(value: Enclosure, source: Bits, word: int = 0, bits: int = 0) -> bool:
    """Whether U < value, for a uniform U whose first ``bits`` bits are ``word``."""
    while True:
        word, bits = word << 64 | source.bits(64), bits + 64
        low, high = value(bits + 64)
        if (word + 1) << 64 <= low:
            return True
        if word << 64 >= high:
            return False
