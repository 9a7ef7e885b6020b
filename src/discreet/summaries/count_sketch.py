"""CountSketch: a linear sketch whose errors cancel."""

from __future__ import annotations

from discreet import _native
from discreet.errors import ParameterError
from discreet.events.items import Item
from discreet.privacy.calibration.collisions import cell_probability, majority_fails
from discreet.privacy.estimate import Estimate
from discreet.summaries._linear import MAX_DEPTH, LinearSketch


class CountSketch(LinearSketch):
    """The median over the rows of sign times cell: errors of both signs, which cancel on average. NOT PRIVATE.

    Error bound: for an item chosen independently of the seed, |estimate - f| <= error_rate * n with error_rate =
    8/width, except for the probability that (depth+1)/2 of the rows are off by more, which each is with probability at
    most 1/8 (Markov's inequality on the mass that collides). A row is unbiased with variance at most F2/width, F2 the
    sum of squared frequencies, so on streams that are not dominated by few items estimates are much better than that.

    `tracked` candidates are kept as in `CountMin`: an item that arrives takes its place among them if its estimate is
    larger than the smallest that a candidate had when it last arrived. Estimates may fall as well as rise.

    Args:
        width, depth, tracked, max_key_bytes, seed: As for `CountMin`; depth must be odd.
    """

    _native_class = _native.CountSketch

    @staticmethod
    def _check_depth(depth: int) -> int:
        if depth % 2 == 0:
            raise ParameterError(f"depth must be odd, so that the rows have a median, not {depth}")
        return depth

    _row_factor = 8

    @classmethod
    def _depth_for(cls, failure_probability: float) -> int:
        depth = 1
        while majority_fails(depth, 1 / cls._row_factor) > failure_probability and depth <= MAX_DEPTH:
            depth += 2
        return depth

    @property
    def error_rate(self) -> float:
        """Eight times the probability of a cell, about 8/width: the sketch error as a share of the stream's length."""
        return self._row_factor * float(cell_probability(self.width))

    @property
    def failure_probability(self) -> float:
        """The chance that most rows fail, and for strings that of equal digests: how often an estimate errs by more."""
        return min(1.0, majority_fails(self.depth, 1 / self._row_factor) + self._string_failure())

    def estimate(self, item: Item) -> Estimate:
        """The estimate of an item, raised to 0, with bounds that hold except with probability `failure_probability`.
        Not private."""
        value = self._native.estimate(item)
        distance = self._distance()
        return Estimate(max(0, value), max(0, value - distance), max(0, value + distance))
