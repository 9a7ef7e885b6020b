"""Noisy-CS: one hash function and one size for everyone; the sketches are added up."""

from __future__ import annotations

import numpy as np

from discreet._data_class import dataclass
from discreet.events.universe import Words
from discreet.multiparty._base import USUAL_MAX_ITEMS, known
from discreet.multiparty.estimates import Numbers, most_of
from discreet.multiparty.party_sketches import WholeSketches, check_rows, estimates, laplace_variance
from discreet.multiparty.wire import MAX_CELLS, Heard
from discreet.privacy.checks import whole_number


@known
@dataclass(frozen=True)
class MergedSketch(WholeSketches):
    """A noisy count sketch from each party, all with the same hash functions; the median of the rows of their sum.

    Unit: one item replaced; n_i public. Guarantee: pure epsilon.
    Noise: discrete Laplace of scale 2 rows/epsilon on every cell.
    Message: rows of `columns` cells, in their order.
    Estimate: the median row. Unbiased as in `IndependentSketches`, but here two items that collide do so with every
        party: one row is off by whole counts, which is why there are several.
    Variance: a row has that of all parties' noise and F2/columns at most, F2 of all items together; estimated.
    The baseline of [MDP] section 3.1 (Noisy-CS).
    Argument: docs/privacy/multiparty.md.
    """

    columns: int = 1024
    rows: int = 3
    max_items: int = USUAL_MAX_ITEMS

    family = 5
    name = "merged noisy count sketch (Noisy-CS)"

    def _check(self) -> None:
        whole_number("columns", self.columns, 1, MAX_CELLS)
        check_rows(self.rows)  # before the scale is made of them
        self._check_sketch(self.scale)

    def width(self, items: int) -> int:
        """The same for everyone."""
        return self.columns

    def _seed(self, number: int) -> int:
        return self._public_seed(8)

    def _estimate(self, heard: Heard, words: Words) -> tuple[Numbers, Numbers]:
        cells = np.zeros(self.columns * self.rows, np.int64)
        for _, part in heard:
            cells += part
        noise, probes = len(heard) * laplace_variance(self.scale), min(2**15, 512 + 16 * self.columns)
        values, variance = estimates(cells, self.columns, self.rows, self._seed(0), noise, words, probes)
        return values, np.full(len(words), variance)

    def _addends(self, heard: Heard, words: Words) -> Numbers:
        """One: words that collide do so with every party."""
        return np.array([self._estimates(heard, words)[0].sum()])

    def _influence(self, heard: Heard, words: Words, count: int) -> tuple[Numbers, Numbers]:
        """A median moves no further than the row that moves most, and a row no further than a party's largest cell."""
        largest = np.array([[np.abs(cells).max()] for _, cells in heard], np.float64)
        most, _ = most_of(largest, count)
        return np.full(len(words), most[0]), np.full(len(words), most[0])
