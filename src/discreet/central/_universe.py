"""Noise on every item of a known universe, without listing the universe."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import RandomSource
from discreet.noise.source import Number
from discreet.noise.universe import noisy_places
from discreet.privacy import Budget
from discreet.privacy.calibration import pure_rho
from discreet.summaries import RawCounts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Universe", "noisy_universe", "pure_epsilon"]

_LARGEST = 2**63


def pure_epsilon(budget: Budget, mechanism: str) -> float:
    """epsilon of a pure budget, or the largest whose epsilon-DP is rho-zCDP: epsilon^2/2 <= rho."""
    if budget.rho is not None:
        epsilon = math.sqrt(2.0 * budget.rho)
        while pure_rho(epsilon) > budget.rho:
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon
    if budget.delta > 0.0:
        raise ParameterError(f"{mechanism} over a universe spends no delta: give dc.Budget(epsilon), not {budget}")
    assert budget.epsilon is not None
    return budget.epsilon


class Universe:
    """A set of items that is known without the data: a range of whole numbers, or a list of different items."""

    def __init__(self, items: range | Iterable[Any]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.range = items if isinstance(items, range) else None
        self._items: pa.Array | None = None
        if isinstance(items, range):
            fits = items.start >= -(2**63) and items.stop <= 2**63
            if items.step != 1 or not items or not (fits or (items.start >= 0 and items.stop <= 2**64)):
                raise ParameterError(f"a universe of numbers is a non-empty 64-bit range of step 1, not {items!r}")
            self.size, self._type = items.stop - items.start, pa.int64() if fits else pa.uint64()
        elif isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise ParameterError(f"a universe is a range or a list of items, not {type(items).__name__}")
        else:
            try:
                array = pa.array(items)
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                array = pa.array([None])
            kinds = ((pa.types.is_integer, pa.int64()), (_is_text, pa.large_string()), (_is_bytes, pa.large_binary()))
            self._type = next((kind for test, kind in kinds if test(array.type)), None)
            if pa.types.is_uint64(array.type):
                self._type = pa.uint64()
            if self._type is None or array.null_count or pc.count_distinct(array).as_py() != len(array):
                raise ParameterError("a universe is a non-empty list of different int, str or bytes, all of one kind")
            self._items = array.cast(self._type)
            self.size = len(array)
        if self.size > _LARGEST:
            raise ParameterError("a universe has at most 2**63 items")

    def __repr__(self) -> str:
        return f"Universe({self.range!r})" if self.range is not None else f"Universe({self.size} items)"

    def positions(self, items: pa.Array) -> npt.NDArray[np.int64]:
        """Where the items stand in the universe; -1 for those outside."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(items) == 0:
            return np.zeros(0, np.int64)
        if pa.types.is_union(items.type):  # several kinds: those of another than the universe's are outside
            listed = [] if self._items is None else self._items.to_pylist()
            places = {item: place for place, item in enumerate(listed)}
            return np.array([_place(item, self.range, places) for item in items.to_pylist()], np.int64)
        if pa.types.is_integer(items.type) != pa.types.is_integer(self._type) or (
            not pa.types.is_integer(items.type) and items.type != self._type
        ):
            raise IncompatibleSummaryError("the universe and the summary hold items of different kinds")
        if self.range is not None:
            whole = [item - self.range.start for item in items.to_pylist()]
            return np.array([place if 0 <= place < self.size else -1 for place in whole], np.int64)
        if items.type != self._type:  # int64 and uint64
            places = {item: place for place, item in enumerate(self._items.to_pylist())}  # type: ignore[union-attr]
            return np.array([places.get(item, -1) for item in items.to_pylist()], np.int64)
        return np.asarray(pc.fill_null(pc.index_in(items, value_set=self._items), -1)).astype(np.int64)

    def take(self, positions: npt.NDArray[np.int64]) -> pa.Array:
        """The items at these positions."""
        import pyarrow as pa

        if self.range is not None:
            return pa.array([self.range.start + place for place in positions.tolist()], self._type)
        assert self._items is not None
        return self._items.take(pa.array(positions))


def _place(item: Any, numbers: range | None, places: dict[Any, int]) -> int:
    if numbers is None:
        return places.get(item, -1)
    return item - numbers.start if isinstance(item, int) and item in numbers else -1


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def noisy_universe(raw: RawCounts, universe: Universe, scale: Number, cut: int, source: RandomSource) -> RawCounts:
    """Every item of the universe whose value plus discrete Laplace noise is at least the cut.

    Items that are not in `raw` have value 0; those of `raw` outside the universe are left out. Distributed as if noise
    were drawn for every item.
    """
    positions = universe.positions(raw.items)
    inside = positions >= 0
    places = positions[inside]
    found, noisy = noisy_places(source, universe.size, places, raw.counts[inside], scale, cut)
    order = np.lexsort((found, -noisy))
    return RawCounts(universe.take(found[order]), noisy[order])
