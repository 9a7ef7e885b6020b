"""Rectangles in several dimensions: a frequency protocol at each combination of levels of intervals ([MDP] 3.4).

Universes of several dimensions are products of ordered ones, and their boxes of intervals. Both are public: a function
of the parameters and of what is asked, never of what a party holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import DataError, ParameterError
from discreet.events.items import listed, refuse_no_column, rules
from discreet.events.universe import Universe, Words
from discreet.multiparty._base import known
from discreet.multiparty.hierarchy import LevelAggregator, LevelProtocol
from discreet.multiparty.levels import Levels, Nodes, Strings, levels_of, occupied, ordered_universe
from discreet.privacy import Estimate
from discreet.privacy.checks import whole_number

_MAX_SIZE = 2**62
_MAX_LEVELS = 64  # a message speaks of each: about as many as one dimension can have
_MAX_PARTS = 2**24  # of a question


@dataclass(frozen=True)
class GridUniverse:
    """Items with a part in each of several ordered universes; the word of an item is its place, row by row.

    Args:
        universes: One a dimension: each a size, a range, a list in its order, or `Strings`. All sizes together are at
            most 2^62.
    """

    universes: tuple[Universe | Strings, ...]

    def __post_init__(self) -> None:
        if len(self.universes) < 2:
            raise ParameterError("a grid needs at least two dimensions; for one, use a Hierarchy")
        whole_number("the size of the grid, of all dimensions together,", self.size, 1, _MAX_SIZE)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many words each dimension has."""
        return tuple(int(universe.size or 0) for universe in self.universes)

    @property
    def size(self) -> int:
        """How many words there are."""
        return math.prod(self.sizes)

    @property
    def bounded(self) -> bool:
        """As of other universes: every word is below `size`."""
        return True

    def words(self, items: Any, nulls: str = "error") -> Words:
        """The word of every item: of rows with one value a dimension, or of an array with one column a dimension."""
        columns = self._columns(items, rules(nulls)[0])
        words = [universe.words(column) for universe, column in zip(self.universes, columns, strict=True)]
        return joined(words, self.sizes)

    def _columns(self, items: Any, skip: bool) -> list[Any]:
        dimensions = len(self.universes)
        if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind != "O":
            if items.shape[1] != dimensions:
                raise DataError(f"items have {items.shape[1]} columns, the universe has {dimensions} dimensions")
            return [np.ascontiguousarray(items[:, at]) for at in range(dimensions)]
        refuse_no_column(items)
        rows = [None if row is None else _values(row, dimensions) for row in listed(items)]
        there = [row for row in rows if row is not None and not any(value is None for value in row)]
        if len(there) < len(rows) and not skip:
            raise DataError('items have nulls; pass nulls="skip" to leave those items out')
        return [[row[at] for row in there] for at in range(dimensions)]

    def items(self, words: npt.ArrayLike) -> list[tuple[Any, ...]]:
        """The inverse of `words`."""
        places = split(np.asarray(words, np.uint64), self.sizes)
        return list(
            zip(*(universe.items(at) for universe, at in zip(self.universes, places, strict=True)), strict=True)
        )

    def occupied(self) -> Words:
        """All words that are of an item; not all numbers are of a string."""
        there = []
        for universe, size in zip(self.universes, self.sizes, strict=True):
            places = np.arange(size, dtype=np.int64)
            there.append(places[occupied(universe, places, 1)])
        return products(there, self.sizes).astype(np.uint64)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {"kind": "grid", "dimensions": [universe.to_dict() for universe in self.universes]}

    def __str__(self) -> str:
        return " x ".join(str(universe) for universe in self.universes)


def _values(row: Any, dimensions: int) -> Sequence[Any]:
    """The parts of an item."""
    if not isinstance(row, (tuple, list, np.ndarray)) or getattr(row, "ndim", 1) != 1 or len(row) != dimensions:
        raise DataError(f"an item of this universe must be a tuple of {dimensions} values, one per dimension")
    return row  # type: ignore[return-value]


def grid_universe(given: object) -> GridUniverse:
    """A grid from a tuple or list of ordered universes; also from its description."""
    if isinstance(given, GridUniverse):
        return given
    if isinstance(given, dict) and given.get("kind") == "grid":
        given = given.get("dimensions")
    if not isinstance(given, (tuple, list)):
        raise ParameterError(
            f"the universe of a grid must be a tuple of ordered universes, one per dimension, not "
            f"{type(given).__name__}"
        )
    return GridUniverse(tuple(ordered_universe(universe) for universe in given))


# ---- numbers of places and boxes, row by row -------------------------------------------------------------------------


def joined(places: Sequence[Words], sizes: Sequence[int]) -> Words:
    """One number for the places in all dimensions."""
    result = np.zeros(len(places[0]), np.uint64)
    for at, size in zip(places, sizes, strict=True):
        result = result * np.uint64(size) + at
    return result


def split(words: Words, sizes: Sequence[int]) -> list[Words]:
    """The inverse of `joined`."""
    places: list[Words] = []
    for size in reversed(sizes):
        words, at = np.divmod(words, np.uint64(size))
        places.append(at)
    return places[::-1]


def products(nodes: Sequence[Nodes], sizes: Sequence[int]) -> Nodes:
    """The numbers of all combinations of one place a dimension."""
    result = np.zeros(1, np.int64)
    for places, size in zip(nodes, sizes, strict=True):
        result = (result[:, None] * size + places).reshape(-1)
    return result


# ---- boxes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Boxes:
    """A level for each combination of one level a dimension; its parts are products of intervals.

    The last is that of the finest levels, whose boxes are single items. A dimension as a whole is no level: it is
    covered by the intervals of its first level.
    """

    dimensions: tuple[Levels, ...]

    @cached_property
    def combinations(self) -> list[tuple[int, ...]]:
        """The level in each dimension, for every level of boxes."""
        return list(itertools.product(*(range(len(levels)) for levels in self.dimensions)))

    def __len__(self) -> int:
        return math.prod(len(levels) for levels in self.dimensions)

    def counts(self, level: int) -> list[int]:
        """How many intervals each dimension has at a level of boxes."""
        chosen = self.combinations[level]
        return [levels.count(at) for levels, at in zip(self.dimensions, chosen, strict=True)]

    def count(self, level: int) -> int:
        """How many boxes a level has."""
        return math.prod(self.counts(level))

    def nodes(self, words: Words, level: int) -> Words:
        """The boxes of a level that words lie in."""
        places = split(words, [levels.size for levels in self.dimensions])
        chosen = zip(self.dimensions, places, self.combinations[level], strict=True)
        return joined([levels.nodes(place, at) for levels, place, at in chosen], self.counts(level))

    @property
    def most(self) -> int:
        """The most boxes that one rectangle may need."""
        return math.prod(
            levels.count(0) + sum(2 * (above // width - 1) for above, width in itertools.pairwise(levels.widths))
            for levels in self.dimensions
        )

    def cover(self, low: Sequence[int], high: Sequence[int]) -> tuple[list[Nodes], bool]:
        """For each level the boxes that together make up [low, high), or, if it says True, all but that.

        Inside, products of the intervals that cover each side. Outside, for each dimension the boxes that leave the
        rectangle there first: inside of it before, anywhere after. Whichever are fewer; all are disjoint.
        """
        inside, outside, whole = [], [], []
        for levels, start, end in zip(self.dimensions, low, high, strict=True):
            inside.append(levels.cover(start, end))
            ends = zip(levels.cover(0, start), levels.cover(end, levels.size), strict=True)
            outside.append([np.concatenate(pair) for pair in ends])
            whole.append(levels.cover(0, levels.size))
        around = [(*inside[:at], outside[at], *whole[at + 1 :]) for at in range(len(inside))]
        rest = sum(map(_how_many, around)) < _how_many(inside)
        boxes, sides = [], around if rest else [inside]
        for level, chosen in enumerate(self.combinations):
            covers = ([side[at] for side, at in zip(each, chosen, strict=True)] for each in sides)
            boxes.append(np.concatenate([products(cover, self.counts(level)) for cover in covers]))
        return boxes, rest


def _how_many(sides: Sequence[list[Nodes]]) -> int:
    """How many boxes these covers of the sides make."""
    return math.prod(sum(map(len, side)) for side in sides)


def boxes_of(grid: GridUniverse, branching: int | None) -> Boxes:
    """The boxes of a grid, with levels as of `levels_of` in every dimension.

    By default an interval has 4 parts, where one dimension has 16: a rectangle's boxes, which add up their deviations,
    are the product of its sides'. It has more, the next power of two, if there were too many combinations else.
    """
    for parts in [branching] if branching is not None else [2**power for power in range(2, 17)]:
        # By default a level of strings is one character.
        own = [None if branching is None and isinstance(each, Strings) else parts for each in grid.universes]
        boxes = Boxes(tuple(map(levels_of, grid.universes, own)))
        if len(boxes) <= _MAX_LEVELS:
            break
    if len(boxes) > _MAX_LEVELS:
        raise ParameterError(f"{len(boxes)} combinations of levels, at most {_MAX_LEVELS}: take a larger branching")
    if boxes.most > _MAX_PARTS:
        raise ParameterError(f"a rectangle may need {boxes.most} boxes, at most {_MAX_PARTS}: take a smaller branching")
    return boxes


class GridAggregator(LevelAggregator):
    """Hears the messages of a `GridHierarchy`, and counts rectangles."""

    protocol: GridHierarchy

    def range_count(self, low: Any, high: Any, confidence: float = 0.95) -> Estimate:
        """How many items lie from `low` to `high` in every dimension, both corners included.

        The sum of the estimates of at most 2 (d - 1) intervals a level and dimension, multiplied over the dimensions,
        or all items minus those of the rest if these are fewer: unbiased. It may be negative. The interval is as of
        one dimension: variances are added up across combinations, and `sum_variance` is that within one.
        """
        grid = self.protocol.universe
        first, last = ([int(side[at]) for side in split(grid.words([low, high]), grid.sizes)] for at in (0, 1))
        if any(start > end for start, end in zip(first, last, strict=True)):
            raise ParameterError("low must not come after high in any dimension")
        boxes, rest = self.protocol.levels.cover(first, [end + 1 for end in last])
        return self.sum_of_parts(boxes, rest, confidence)

    def _every_word(self) -> Words:
        words: Words = self.protocol.universe.occupied()
        return words


@known
@dataclass(frozen=True)
class GridHierarchy(LevelProtocol):
    """How many items lie in a rectangle: every dimension is cut as by a `Hierarchy`, and products of intervals counted.

    An item has a value in each dimension. For each combination of one level a dimension it is in one box, and every
    combination counts its boxes by a protocol of its own: L1 x L2 of them in two dimensions.

    Unit: one item replaced (all its values); n_i public. Guarantee: pure epsilon.
    Budget: as of a `Hierarchy` with as many levels as there are combinations: epsilon/(L1 L2) each, as an item is in
        one box of each and their noises are independent. With a local protocol a report goes to one combination,
        drawn before the item is looked at, with the whole epsilon.
    Follows [MDP] section 3.4 and the remark on orthogonal ranges.
    Argument: docs/privacy/multiparty.md.

    Args:
        universe: A tuple of ordered universes, one a dimension: each a size, a range, a list in its order, or
            `Strings(alphabet, max_length)`. Items are tuples, or rows of a two-dimensional array.
        protocol: The name of the protocol of every combination: "IndependentSketches", "HadamardResponse", ...
        branching: The parts of an interval, the same in every dimension; of strings, the characters that a level adds.
            By default 4, or the next power of two with which there are at most 64 combinations, and 1 character.
        options: The protocol's own parameters, the same everywhere.
    """

    family: ClassVar[int] = 35
    name: ClassVar[str] = "a frequency protocol at each combination of levels of intervals"
    read_universe = staticmethod(grid_universe)
    _listener: ClassVar[type[Any]] = GridAggregator

    @cached_property
    def levels(self) -> Boxes:
        """The boxes."""
        return boxes_of(self.universe, self.branching)

    if TYPE_CHECKING:

        def aggregator(self, **limits: Any) -> GridAggregator: ...

        def restore(self, data: bytes, **limits: Any) -> GridAggregator: ...
