"""Count sketches with hash functions of their own for every party; the estimates are added up, not the sketches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import _native
from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty._sketches import (
    Cells,
    SketchProtocol,
    estimates,
    laplace_variance,
    read_cells,
    sketch_cells,
    width_of,
    with_noise,
)
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.messages import Message
from discreet.noise import RandomSource
from discreet.privacy.checks import positive_number, whole_number

__all__ = ["IndependentSketches"]


@known
@dataclass(frozen=True)
class IndependentSketches(SketchProtocol):
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
    max_items: int = 2**24

    family = 4
    name = "independent count sketches, sum of medians"

    def _check(self) -> None:
        object.__setattr__(self, "items_per_column", positive_number("items_per_column", self.items_per_column))
        whole_number("max_items", self.max_items, 1, 2**40)
        self._check_sketch(self.width(self.max_items), self.scale)

    def width(self, items: int) -> int:
        """The columns of a party with this many items."""
        return width_of(items, self.items_per_column)

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every cell."""
        return 2 * self.rows / self._exact_epsilon

    def _seed(self, number: int) -> int:
        return self._public_seed(8, number)

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        cells = sketch_cells(words, self.width(len(words)), self.rows, self._seed(number))
        return _native.write_integers(with_noise(cells, self.scale, self._bound(len(words), self.scale), source))

    def _decode(self, message: Message) -> Cells:
        n = message.items
        return read_cells(message.payload, self.width(n) * self.rows, self._bound(n, self.scale), self.scale)

    def _estimate(self, heard: Sequence[tuple[Message, Any]], words: Words) -> tuple[Numbers, Numbers]:
        values, variance, noise = np.zeros(len(words)), 0.0, laplace_variance(self.scale)
        for message, cells in heard:
            width, seed = self.width(message.items), self._seed(message.number)
            part, spread = estimates(cells, width, self.rows, seed, noise, words)
            values += part
            variance += spread
        return values, np.full(len(words), variance)
