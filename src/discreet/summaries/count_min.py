"""CountMin: a linear sketch that never underestimates."""

from __future__ import annotations

import math

from discreet import _native
from discreet.events.items import Item
from discreet.privacy.calibration.collisions import cell_probability
from discreet.privacy.estimate import Estimate
from discreet.summaries._linear import LinearSketch


class CountMin(LinearSketch):
    """The smallest of an item's cells: at least its frequency, at most a share of the stream above it. NOT PRIVATE.

    Error bound: f <= estimate always. For an item chosen independently of the seed, estimate <= f + error_rate * n
    except with probability exp(-depth) over the seed, error_rate = e/width: what collides in a row has expectation
    n/width at most, so a row exceeds e times that with probability at most 1/e, and the rows are independent.

    With `tracked` = k the sketch also keeps k candidates, by Algorithm 4 of [SS] with its own exact estimates: an item
    that arrives takes its place among the candidates if its estimate is larger than the smallest that a candidate had
    when it last arrived. These are always k items with the largest estimates at their last arrival (all items while
    there are at most k). Merging keeps the k largest, by their new estimates, of the candidates of both.

    Args:
        width: The number of cells in a row.
        depth: The number of rows.
        tracked: How many candidates to keep for a release of heavy hitters.
        max_key_bytes: The longest string or bytes key that is accepted.
        seed: The seed of the hash functions; drawn from the system's source by default. Sketches that are to be merged
            need the same one; anyone who knows it can write a stream that breaks the error bound.
    """

    _native_class = _native.CountMin

    _row_factor = math.e

    @classmethod
    def _depth_for(cls, failure_probability: float) -> int:
        return max(1, math.ceil(-math.log(failure_probability)))

    @property
    def error_rate(self) -> float:
        """e times the probability of a cell, about e/width: the sketch error as a share of the stream's length."""
        return math.nextafter(math.e * float(cell_probability(self.width)), math.inf)

    @property
    def failure_probability(self) -> float:
        """exp(-depth), and for strings the chance of equal digests: how often an estimate errs by more."""
        return min(1.0, math.exp(-self.depth) + self._string_failure())

    def estimate(self, item: Item) -> Estimate:
        """The estimate of an item: f <= estimate always, f >= lower except with probability `failure_probability`.
        Not private."""
        value = self._native.estimate(item)
        return Estimate(value, max(0, value - self._distance()), value)
