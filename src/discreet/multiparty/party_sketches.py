"""Noisy count sketches of parties: what the protocols that send them share, and `IndependentSketches`.

Replacing one item changes a row of a sketch by 2 in l1 at most, a sketch of R rows by 2R: discrete Laplace noise of
scale 2R/epsilon in every cell is epsilon-DP. Cells are cut to what n items and the noise can reach except with
probability 2^-64 a cell: this is a function of the noisy cell, and lets the aggregator refuse what no honest party
sends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import USUAL_MAX_ITEMS, Round, known
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.wire import MAX_CELLS, Heard, Message
from discreet.noise import RandomSource
from discreet.noise.source import MAX_SCALE
from discreet.privacy.checks import positive_number, whole_number
from discreet.summaries import CountSketch

Cells = npt.NDArray[np.int64]
_NOBODYS = np.uint64(2**63 + 2**62) + np.arange(2**15, dtype=np.uint64)
"""No position of a universe and no word of a text."""


def check_rows(rows: int) -> None:
    """Refuses a sketch whose rows have no median."""
    if whole_number("rows", rows, 1, 255) % 2 == 0:
        raise ParameterError(f"rows must be odd, so that they have a median, not {rows}")


def check_scales(*scales: Fraction) -> None:
    """Refuses an epsilon for which noise cannot be drawn."""
    if max(scales) > MAX_SCALE:
        raise ParameterError("epsilon is too small: the scale of the noise must be at most 2**50")


def width_of(items: int, items_per_column: float) -> int:
    """ceil(items / items_per_column), 1 at least; exact."""
    return max(1, -(-Fraction(items) // Fraction(items_per_column)))


def laplace_variance(scale: Fraction | float) -> float:
    """2 q/(1 - q)^2 with q = exp(-1/scale), the variance of discrete Laplace noise."""
    x = 1 / float(scale)
    square = math.expm1(-x) ** 2
    return 2 * math.exp(-x) / square if square else math.inf


def noise_reach(scale: Fraction) -> int:
    """b = 45.1 scale, which discrete Laplace noise exceeds with probability 2 q^(b+1)/(1+q) <= 2 e^-45.1 < 2^-64."""
    return math.ceil(Fraction(451, 10) * scale)


def sketch_cells(words: Words, width: int, rows: int, seed: int) -> Cells:
    """All cells of a sketch of these words, row by row. NOT PRIVATE."""
    sketch = CountSketch(width, rows, seed=seed)
    if len(words):
        sketch.update(words)
    return sketch.not_private_cells().ravel()


def with_noise(values: Cells, scale: Fraction, bound: int, source: RandomSource) -> Cells:
    """Discrete Laplace noise on every number, and the sum cut to the bound."""
    noisy: Cells = np.clip(values + source.discrete_laplace(scale, len(values)), -bound, bound)
    return noisy


def read_cells(data: bytes, count: int, bound: int, scale: Fraction) -> Cells:
    """This many noisy cells; refused before memory is taken for them if there cannot be this many in so few bytes.

    A cell with noise is not 0 with probability p = 2q/(1 + q) at least, and then takes a bit at least. Where p count is
    400 or more, fewer than half of that are not 0 with probability e^-50 at most (Chernoff).
    """
    q = math.exp(-1 / float(scale))
    expected = count * 2 * q / (1 + q)
    if expected >= 400 and 16 * len(data) < expected:
        raise MessageError("message is too short for the number of cells that it states", "size")
    return _native.read_integers(data, count, bound)


def estimates(
    cells: Cells, width: int, rows: int, seed: int, noise: float, words: Words, probes: int = 512
) -> tuple[Numbers, float]:
    """The median row for every word, and the variance of such an estimate, from what the noisy cells show.

    With one row it is the noise's and F2/width, and a row's sum of squares less that of its noise estimates F2. With
    more it is the mean square of the estimates of words that nobody has, which collide like any other: a little too
    much, as an item does not collide with itself.
    """
    values = _native.sketch_estimates(words, cells, width, rows, seed).astype(np.float64)
    if rows == 1:
        squares = float(np.square(cells, dtype=np.float64).sum())
        return values, max(noise, squares / width)
    errors = _native.sketch_estimates(_NOBODYS[:probes], cells, width, rows, seed)
    return values, float(np.square(errors, dtype=np.float64).mean())


class SketchProtocol(Round):
    """What the protocols that send a sketch check: an odd number of rows, few enough cells, few enough items."""

    rows: int
    max_items: int

    def width(self, items: int) -> int:
        """The columns of the sketch of this many items."""
        raise ParameterError("use one of the protocols, not the bare SketchProtocol")

    def _check_sketch(self, *scales: Fraction) -> None:
        """`scales` are those of its noise."""
        columns = self.width(whole_number("max_items", self.max_items, 1, 2**40))
        check_scales(*scales)
        check_rows(self.rows)
        if columns * self.rows > MAX_CELLS:
            raise ParameterError(
                f"a party would send up to {columns} columns of {self.rows} rows, more than {MAX_CELLS} cells: lower "
                "max_items or take fewer columns"
            )

    def _bound(self, items: int, scale: Fraction) -> int:
        """What no cell or count of an honest party exceeds."""
        return items + noise_reach(scale)

    def _seed(self, number: int) -> int:
        """Of the hash functions of a party's sketch."""
        return self._public_seed(8, number)


class WholeSketches(SketchProtocol):
    """A message is a noisy sketch of all items of a party, its cells in their order and nothing else."""

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every cell."""
        return 2 * self.rows / self._exact_epsilon

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        cells = sketch_cells(words, self.width(len(words)), self.rows, self._seed(number))
        return _native.write_integers(with_noise(cells, self.scale, self._bound(len(words), self.scale), source))

    def _decode(self, message: Message) -> Cells:
        n = message.items
        return read_cells(message.payload, self.width(n) * self.rows, self._bound(n, self.scale), self.scale)


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
    Argument: docs/privacy/multiparty.md.
    """

    items_per_column: float = 1.0
    rows: int = 1
    max_items: int = USUAL_MAX_ITEMS

    family = 4
    name = "independent count sketches, sum of medians"

    def _check(self) -> None:
        object.__setattr__(self, "items_per_column", positive_number("items_per_column", self.items_per_column))
        check_rows(self.rows)  # before the scale is made of them
        self._check_sketch(self.scale)

    def width(self, items: int) -> int:
        """The columns of a party with this many items."""
        return width_of(items, self.items_per_column)

    def _each(self, heard: Heard, words: Words) -> Iterator[tuple[Numbers, Numbers]]:
        noise = laplace_variance(self.scale)
        for message, cells in heard:
            width, seed = self.width(message.items), self._seed(message.number)
            values, variance = estimates(cells, width, self.rows, seed, noise, words)
            yield values, np.full(len(words), variance)
