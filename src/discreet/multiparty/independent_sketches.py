"""Count sketches with hash functions of their own for every party; the estimates are added up, not the sketches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.events.universe import Words
from discreet.multiparty._base import USUAL_MAX_ITEMS, Heard, known
from discreet.multiparty._sketches import WholeSketches, estimates, laplace_variance, width_of
from discreet.multiparty.estimates import Numbers
from discreet.privacy.checks import positive_number, whole_number

__all__ = ["IndependentSketches"]


@known
@dataclass(frozen=True)
class IndependentSketches(WholeSketches):
    """A noisy count sketch from each party, of a width in proportion to its items; the sum of the medians.

    Unit: one item replaced; n_i public. Guarantee: pure epsilon.
    Noise: discrete Laplace of scale 2 rows/epsilon on every cell.
    Message: rows of ceil(n_i/items_per_column) cells, in their order; the width is a function of n_i alone.
    Estimate: over the parties, the sum of the median row. Unbiased for one row by pairwise independence of the signs.
        For more rows each must be symmetric about the count, which the noise is, and collisions are if the sign of the
        item asked for is independent of all other items' signs together: so if the sign function is taken for random.
    Variance: a party's row has that of the noise and F2/width at most; estimated from the noisy cells.
    Follows [MDP] section 3.1, with one row by default: over many parties errors average out anyway, and R rows cost R
        times the noise variance. More rows pay where few items make up most of a party's and columns are scarce.
    """

    items_per_column: float = 1.0
    rows: int = 1
    max_items: int = USUAL_MAX_ITEMS

    family = 4
    name = "independent count sketches, sum of medians"

    def _check(self) -> None:
        object.__setattr__(self, "items_per_column", positive_number("items_per_column", self.items_per_column))
        whole_number("max_items", self.max_items, 1, 2**40)
        self._check_sketch(self.width(self.max_items), self.scale)

    def width(self, items: int) -> int:
        """The columns of a party with this many items."""
        return width_of(items, self.items_per_column)

    def _each(self, heard: Heard, words: Words) -> Iterator[tuple[Numbers, Numbers]]:
        noise = laplace_variance(self.scale)
        for message, cells in heard:
            width, seed = self.width(message.items), self._seed(message.number)
            values, variance = estimates(cells, width, self.rows, seed, noise, words)
            yield values, np.full(len(words), variance)
