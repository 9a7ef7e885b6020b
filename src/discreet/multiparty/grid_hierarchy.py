"""Rectangles in several dimensions: a frequency protocol at each combination of levels of intervals ([MDP] 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from discreet.multiparty._base import known
from discreet.multiparty.grid import Boxes, boxes_of, grid_universe
from discreet.multiparty.hierarchy import LevelProtocol

if TYPE_CHECKING:
    from discreet.multiparty.grid_aggregator import GridAggregator

__all__ = ["GridHierarchy"]


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

    @cached_property
    def levels(self) -> Boxes:
        """The boxes."""
        return boxes_of(self.universe, self.branching)

    if TYPE_CHECKING:

        def aggregator(
            self, *, max_items: int | None = None, max_reports: int | None = 1, minimum_reports: int = 0
        ) -> GridAggregator: ...

        def restore(
            self, data: bytes, *, max_items: int | None = None, max_reports: int | None = 1, minimum_reports: int = 0
        ) -> GridAggregator: ...

    def _listener(self) -> type[GridAggregator]:
        from discreet.multiparty.grid_aggregator import GridAggregator

        return GridAggregator
