"""Exact selection by the exponential mechanism on integer scores, without floating-point weights or Gumbel noise.

Item i has weight exp(-rate * gap_i), gap_i = best score - score_i. Items are put into classes of nearly equal weight:
class c <= 32 * rate * gap_i, so that exp(-c/32) is at least the weight. A class is drawn in proportion to (its size) *
exp(-c/32) by exact inversion, an item uniformly in it, and the item is accepted with probability exp(-(rate * gap_i -
c/32)), so that the product is the weight. The class may be computed in floating point, because it only has to be small
enough: the acceptance makes up for what it lacks, exactly. It lacks at most 1 except for rounding, except in the last
class, which holds everything lighter than exp(-64) and is next to never drawn: one attempt is nearly always enough.

Blocks of many items of nearly equal weight (`select_block`) have their sizes in place of ones: a class is drawn in
proportion to what its blocks hold, a place uniformly in it, and it is accepted by the exact weight of the item there.

For more than one selection an item that was selected before is rejected: the next item then follows the law over those
left. Where the selected hold most of the weight they are taken out and the classes are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet._later import np
from discreet.noise.enclosure import exp_minus, invert, is_below, table
from discreet.noise.laws import NativeSource

if TYPE_CHECKING:
    import numpy.typing as npt

_CLASSES = 32  # for each factor of e
_LIGHT = 64  # items lighter than exp(-64) share one class
_REPEATS = 8  # selected items met again before they are taken out


def select(source: NativeSource, scores: npt.NDArray[np.int64], rate: Fraction, count: int) -> npt.NDArray[np.int64]:
    """Indices of ``count`` different items: each next one with probability proportional to exp(rate * score)."""
    # Differences of 64-bit integers modulo 2^64 do not overflow.
    gaps = np.subtract(scores.max(initial=-(2**63)), scores, dtype=np.int64).view(np.uint64)
    order = np.argsort(gaps, kind="stable")
    gaps = gaps[order]
    taken = np.zeros(len(gaps), bool)
    selected: list[int] = []
    while len(selected) < count:
        start = int(np.argmin(taken))
        classes = _Classes(gaps, taken, start, rate)
        repeats = 0
        while len(selected) < count and repeats < _REPEATS:
            position, class_number = classes.draw(source)
            if taken[position]:
                repeats += 1
                continue
            x = rate * (int(gaps[position]) - int(gaps[start])) - Fraction(class_number, _CLASSES)
            if x == 0 or is_below(lambda bits, x=x: exp_minus(x, bits), source):  # type: ignore[misc]
                taken[position] = True
                selected.append(position)
    return order[selected]


def select_block(
    source: NativeSource,
    lower: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.int64],
    exponent: Callable[[int, int], Fraction],
) -> tuple[int, int]:
    """(block, place in it) of one item of all blocks, with probability proportional to exp(-exponent(block, place)).

    `lower` has for each block a number from 0 on that no exponent of its items is below: the closer, the faster. All
    `sizes` together are below 2^63.
    """
    classes = np.floor(np.minimum(lower * (_CLASSES * (1 - 2.0**-48)), _LIGHT * _CLASSES)).astype(np.int64)
    order = np.argsort(classes, kind="stable")
    order = order[sizes[order] > 0]
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    ends = np.cumsum(sizes[order])
    held = np.diff(ends[np.append(first[1:], len(order)) - 1], prepend=0)
    law = _ClassLaw(held.tolist(), classes[order][first].tolist())
    while True:
        h = law.draw(source)
        before = int(ends[first[h] - 1]) if first[h] else 0
        place = before + int(source.native.uniform_integers(law.sizes[h], 1)[0])
        position = int(np.searchsorted(ends, place, side="right"))
        block = int(order[position])
        inside = place - int(ends[position]) + int(sizes[block])
        x = exponent(block, inside) - Fraction(law.classes[h], _CLASSES)
        if x < 0:
            raise ArithmeticError("a block's lower bound is above the exponent of one of its items")
        if x == 0 or is_below(lambda bits, x=x: exp_minus(x, bits), source):  # type: ignore[misc]
            return block, inside


class _ClassLaw:
    """Draws the number of a class in proportion to its size times exp(-class/32), by exact inversion."""

    def __init__(self, sizes: list[int], classes: list[int]) -> None:
        self.sizes, self.classes = sizes, classes
        self._tables: dict[int, list[int]] = {}

    def draw(self, source: NativeSource) -> int:
        return invert(self._table, source)

    def _table(self, bits: int) -> list[int]:
        if bits not in self._tables:
            self._tables[bits] = table(self._cumulative, bits)
        return self._tables[bits]

    def _cumulative(self, bits: int) -> Iterator[tuple[int, int]]:
        sums, total, last = [], (0, 0), 0
        weight, factors = (1 << bits, 1 << bits), {0: (1 << bits, 1 << bits)}
        for size, number in zip(self.sizes, self.classes, strict=True):
            step, last = number - last, number
            if step not in factors:
                factors[step] = exp_minus(Fraction(step, _CLASSES), bits)
            weight = weight[0] * factors[step][0] >> bits, -(-weight[1] * factors[step][1] >> bits)
            total = total[0] + size * weight[0], total[1] + size * weight[1]
            sums.append(total)
        for low, high in sums[:-1]:
            yield (low << bits) // total[1], min(1 << bits, -(-(high << bits) // total[0]))
        yield 1 << bits, 1 << bits


class _Classes:
    """Draws a position in proportion to exp(-class/32), from those not taken when it was made.

    Positions are sorted by gap; ``start`` is the first that is not taken and has class 0.
    """

    def __init__(self, gaps: npt.NDArray[np.uint64], taken: npt.NDArray[np.bool_], start: int, rate: Fraction) -> None:
        limit = min(int(gaps[start]) + _LIGHT * rate.denominator // rate.numerator, 2**64 - 1)
        end = int(np.searchsorted(gaps, np.uint64(limit), side="right"))
        self._heavy = start + np.flatnonzero(~taken[start:end])
        # Each of the roundings is below 2^-52 of the value; the last factor keeps the class at most what it should be.
        per_gap = float(min(Fraction(2**900), _CLASSES * rate)) * (1 - 2.0**-48)
        classes = ((gaps[self._heavy] - gaps[start]) * per_gap).astype(np.int64)
        first = np.flatnonzero(np.diff(classes, prepend=-1))
        self._first = first.tolist()
        sizes, numbers = np.diff(first, append=len(classes)).tolist(), classes[first].tolist()
        if end < len(gaps):  # a last class for all light items, among them those taken
            self._first.append(end)
            sizes.append(len(gaps) - end)
            numbers.append(_LIGHT * _CLASSES)
        self._light = end
        self._law = _ClassLaw(sizes, numbers)

    def draw(self, source: NativeSource) -> tuple[int, int]:
        """A position and its class."""
        h = self._law.draw(source)
        place = self._first[h] + int(source.native.uniform_integers(self._law.sizes[h], 1)[0])
        return (place if self._first[h] == self._light else int(self._heavy[place])), self._law.classes[h]
