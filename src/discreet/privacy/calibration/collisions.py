"""Collisions in linear sketches: what shares an item's cells, and how often it is more than a bound.

The cells of different items are pairwise independent in every row, and rows are independent (the proof stands in
cpp/include/discreet/sketches/row_hash.hpp). So the mass that collides with an item in a row has expectation at most
n p, p the largest probability of a cell, and by Markov's inequality

    P[a row collects more than g]  <=  q = n p / (g + 1)        for whole g, counts being whole.

CountMin's estimate exceeds f by more than g only if all rows do: q^d. CountSketch's median is off by more than g only
if (d+1)/2 rows are: P[Bin(d, q) >= (d+1)/2]. For a stream of n/(g+1) items, g+1 times each, a row does collect more
than g with a probability of about q, so nothing much better holds for all streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.privacy.calibration.tails import smallest
from discreet.privacy.plain_form import PlainForm
from discreet.privacy.rounding import SAFETY


def cell_probability(width: int) -> Fraction:
    """The largest probability with which an item lands in a given cell: ceil(2^32 / width) / 2^32."""
    return Fraction(-(-(2**32) // width), 2**32)


def digest_collision_probability(max_key_bytes: int) -> Fraction:
    """The chance that two given strings are one to every row: ((m+1) / 2^61)^2 with m = ceil(bytes / 7)."""
    return Fraction(-(-max_key_bytes // 7) + 1, 2**61) ** 2


def all_rows_fail(depth: int, row: float) -> float:
    """P[all of `depth` independent rows fail], each with probability at most `row`."""
    return min(1.0, row**depth * (1.0 + SAFETY))


def majority_fails(depth: int, row: float) -> float:
    """P[at least (depth+1)/2 of `depth` independent rows fail], each with probability at most `row`."""
    terms = (math.comb(depth, j) * row**j * (1.0 - row) ** (depth - j) for j in range((depth + 1) // 2, depth + 1))
    return min(1.0, math.fsum(terms) * (1.0 + SAFETY))


_RULES: dict[str, Callable[[int, float], float]] = {"smallest": all_rows_fail, "median": majority_fails}


@dataclass(frozen=True)
class Collisions(PlainForm):
    """How far the estimates of `items` items may lie from their frequencies in a stream of at most `length` events.

    `rule` is "smallest" (CountMin) or "median" (CountSketch). `slack` is the chance that the stream is longer than
    `length`, where that comes from a noisy count.
    """

    rule: str
    width: int
    depth: int
    length: int
    items: int
    max_key_bytes: int
    slack: float = 0.0

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise ParameterError(f"rule must be 'smallest' or 'median', not {self.rule!r}")

    def failure(self, bound: int) -> float:
        """The chance over the seed that the error of any of the items is more than `bound`. Never understated.

        Strings with equal digests would collide in every row: that chance is added, for each pair of items.
        """
        if bound >= self.length:
            return self.slack  # no more than the whole stream can collide
        row = float(cell_probability(self.width) * self.length / (bound + 1)) * (1.0 + SAFETY)
        pairs = self.items * (self.items - 1) // 2
        digests = float(pairs * digest_collision_probability(self.max_key_bytes)) * (1.0 + SAFETY)
        rows = _RULES[self.rule](self.depth, min(1.0, row)) * self.items * (1.0 + SAFETY)
        return min(1.0, digests + rows + self.slack)

    def bound(self, failure: float) -> float:
        """The smallest whole bound whose failure is at most the one given; infinite if none is."""
        if failure < self.slack:
            return math.inf
        return smallest(lambda bound: self.failure(bound) <= failure)
