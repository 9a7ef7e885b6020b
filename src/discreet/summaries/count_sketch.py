"""CountSketch: a linear sketch whose errors cancel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet import _native
from discreet.errors import ParameterError
from discreet.privacy.calibration.collisions import cell_probability, majority_fails
from discreet.privacy.checks import positive_number, probability
from discreet.privacy.estimate import Estimate
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES, Item
from discreet.summaries._linear import MAX_DEPTH, LinearSketch

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CountSketch"]

# A row may be off by this many times the expected mass that collides with an item.
_ROW_FACTOR = 8


class CountSketch(LinearSketch):
    """The median over the rows of sign times cell: errors of both signs, which cancel on average. NOT PRIVATE.

    Error bound: for an item chosen independently of the seed, |estimate - f| <= error_rate * n with error_rate =
    8/width, but for the probability that (depth+1)/2 of the rows are off by more, which each is with probability at
    most 1/8 (Markov's inequality on the mass that collides). A row is unbiased with variance at most F2/width, F2 the
    sum of squared frequencies, so on streams that are not dominated by few items estimates are much better than that.

    `tracked` candidates are kept as in `CountMin`: an item that arrives takes its place among them if its estimate is
    larger than the smallest that a candidate had when it last arrived. Estimates may fall as well as rise.

    Args:
        width: The number of cells in a row.
        depth: The number of rows; odd.
        tracked: How many candidates to keep for a release of heavy hitters.
        max_key_bytes: The longest string or bytes key that is accepted.
        seed: The seed of the hash functions; drawn from the system's source by default. Sketches that are to be merged
            need the same one; whoever knows it can write a stream that breaks the error bound.
    """

    _native_class = _native.CountSketch

    @staticmethod
    def _check_depth(depth: int) -> int:
        if depth % 2 == 0:
            raise ParameterError(f"depth must be odd, so that the rows have a median, not {depth}")
        return depth

    @classmethod
    def for_error(
        cls,
        error_rate: float,
        failure_probability: float,
        *,
        tracked: int = 0,
        max_key_bytes: int = DEFAULT_MAX_KEY_BYTES,
        seed: int | None = None,
    ) -> Self:
        """The smallest sketch with |estimate - f| <= error_rate * n but for `failure_probability`."""
        error_rate = positive_number("error_rate", error_rate)
        most = probability("failure_probability", failure_probability)
        depth = 1
        while majority_fails(depth, 1 / _ROW_FACTOR) > most and depth <= MAX_DEPTH:
            depth += 2
        width = math.ceil(_ROW_FACTOR / error_rate)
        while width < 2**30 and _ROW_FACTOR * cell_probability(width) > error_rate:
            width += 1
        return cls(width, depth, tracked=tracked, max_key_bytes=max_key_bytes, seed=seed)

    @property
    def error_rate(self) -> float:
        """Eight times the probability of a cell, about 8/width: the sketch error as a share of the stream's length."""
        return _ROW_FACTOR * float(cell_probability(self.width))

    @property
    def failure_probability(self) -> float:
        """The chance that most rows fail, and for strings that of equal digests: how often an estimate errs by more."""
        return min(1.0, majority_fails(self.depth, 1 / _ROW_FACTOR) + self._string_failure())

    def estimate(self, item: Item) -> Estimate:
        """The estimate of an item, raised to 0, with bounds that hold but for `failure_probability`. Not private."""
        value = self._native.estimate(item)
        distance = self._distance()
        return Estimate(max(0, value), max(0, value - distance), max(0, value + distance))
