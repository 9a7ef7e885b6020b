"""CountMin and CountSketch: cells in rows, candidates, and the probabilities of their hashing."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import _native
from discreet._later import np
from discreet.errors import CorruptStateError, ParameterError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item, prepare_column
from discreet.privacy.calibration.collisions import cell_probability, digest_collision_probability, majority_fails
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.estimate import Estimate
from discreet.summaries.counters import MAX_CAPACITY, Summary

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

MAX_WIDTH = 2**30
MAX_DEPTH = 255
MAX_CELLS = 2**31
MAX_EMPTY_BYTES = 2**30


class LinearSketch(Summary):
    """`depth` rows of `width` cells; an event changes one cell of every row. NOT PRIVATE.

    Rows hash with strongly universal (pairwise independent) functions that are independent of each other and of the
    stream. Sketches of equal shape and seed add up: merging gives the cells of the concatenated stream.
    """

    _row_factor: ClassVar[float]
    """A row may be off by this many times the mass that it expects to collide with an item."""

    def __init__(
        self,
        width: int,
        depth: int = 5,
        *,
        tracked: int = 0,
        max_key_bytes: int = DEFAULT_MAX_KEY_BYTES,
        seed: int | None = None,
    ) -> None:
        width = whole_number("width", width, 1, MAX_WIDTH)
        depth = self._check_depth(whole_number("depth", depth, 1, MAX_DEPTH))
        if width * depth > MAX_CELLS:
            raise ParameterError(f"width times depth must be at most 2**31 cells, not {width} * {depth}")
        tracked = whole_number("tracked", tracked, 0, MAX_CAPACITY)
        self._native = self._native_class(width, depth, tracked, *self._check_common(max_key_bytes, seed))

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
        """The smallest sketch that errs by at most error_rate * n except with probability `failure_probability`."""
        error_rate = positive_number("error_rate", error_rate)
        depth = cls._depth_for(probability("failure_probability", failure_probability))
        # The probability of a cell is below 1/width + 2^-32.
        width = math.ceil(cls._row_factor / error_rate)
        while width < MAX_WIDTH and cls._row_factor * cell_probability(width) > error_rate:
            width += 1
        return cls(width, depth, tracked=tracked, max_key_bytes=max_key_bytes, seed=seed)

    @classmethod
    def _depth_for(cls, failure_probability: float) -> int:
        """The fewest rows that fail with this probability at most."""
        raise ParameterError("use CountMin or CountSketch, not the bare LinearSketch")

    @classmethod
    def from_bytes(cls, data: bytes, *, max_bytes: int | None = MAX_EMPTY_BYTES) -> Self:
        """Restore a state; it continues exactly where it was. Raises `CorruptStateError` for anything else.

        A state of an empty sketch has no cells in it: a few bytes can ask for all the memory there is with the first
        item. So `max_bytes` limits the cells of an empty sketch (1 GiB; None for a state that is trusted).
        """
        sketch = super().from_bytes(data)
        size = 8 * sketch.width * sketch.depth
        if max_bytes is not None and sketch.key_type is None and size > whole_number("max_bytes", max_bytes, 0):
            raise CorruptStateError(
                f"state is an empty sketch of {size} bytes, more than max_bytes={max_bytes}; raise max_bytes if "
                f"you trust it"
            )
        return sketch

    def copy(self) -> Self:
        """An independent summary with the same state."""
        return type(self).from_bytes(self.to_bytes(), max_bytes=None)

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(type(self).from_bytes, max_bytes=None), (self.to_bytes(),))

    @staticmethod
    def _check_depth(depth: int) -> int:
        return depth

    @property
    def width(self) -> int:
        """The number of cells in a row."""
        return int(self._native.width)

    @property
    def depth(self) -> int:
        """The number of rows."""
        return int(self._native.depth)

    @property
    def tracked(self) -> int:
        """The most candidates that are kept for a release of heavy hitters; 0 keeps none."""
        return int(self._native.tracked)

    @property
    def error_rate(self) -> float:
        """The sketch error as a share of the stream's length: see `failure_probability`."""
        raise ParameterError("use CountMin or CountSketch, not the bare LinearSketch")

    @property
    def failure_probability(self) -> float:
        """The chance over the seed that an item chosen without it is off by more than `error_rate` times the length."""
        raise ParameterError("use CountMin or CountSketch, not the bare LinearSketch")

    def _string_failure(self) -> float:
        """The chance that an item shares its digest with any of the stream's, which no row would notice."""
        if self.key_type not in ("string", "binary", "mixed"):
            return 0.0
        return min(1.0, float(self.total * digest_collision_probability(self.max_key_bytes)))

    def _distance(self) -> int:
        return math.ceil(Fraction(self.error_rate) * self.total)

    def estimate_many(self, items: Any) -> npt.NDArray[np.int64]:
        """The estimates of a column of items, from one state of the sketch. Not private."""
        return np.frombuffer(self._native.estimates(prepare_column(items)), dtype=np.int64)

    def not_private_cells(self) -> npt.NDArray[np.int64]:
        """A copy of the cells, one row of the array for each row. Not private."""
        return np.frombuffer(self._native.cells(), dtype=np.int64).reshape(self.depth, self.width)

    def places(self, items: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the items of a column count: (columns, signs), both of shape (items, depth).

        Row i of an item's estimate is signs[item, i] * cells[i, columns[item, i]]. A function of the seed alone.
        """
        packed = np.frombuffer(self._native.places(prepare_column(items)), dtype=np.uint32).reshape(-1, self.depth)
        first = np.arange(self.depth, dtype=np.int64) * self.width
        columns = (packed & np.uint32(2**31 - 1)).astype(np.int64) - first
        return columns, 1 - 2 * (packed >> np.uint32(31)).astype(np.int64)

    def _describe(self) -> str:
        return f"width={self.width}, depth={self.depth}, tracked={self.tracked}"


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
