"""The rows of a release, items and noisy counts: in plain memory, or as arrays of Arrow and NumPy.

Both say the same. Items of one column that a summary counts as they are (text, bytes, whole numbers) come in plain
memory, for which neither library is loaded; everything else is in arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet import _native
from discreet._later import np, pa
from discreet.events.values import (
    ARROW_NAMES,
    as_arrow,
    item_order,
    parts_of,
    plain_column,
    plain_items,
    plain_types,
    taken,
)

if TYPE_CHECKING:
    import numpy.typing as npt

Places: TypeAlias = "npt.NDArray[np.int64] | memoryview"

_TAKEN_NAMES = ("count", "lower", "upper", "shard")  # of rows in JSON


class PlainRows:
    """Texts, bytes or whole numbers and their counts, in plain memory.

    Attributes:
        items: The items.
        counts: The noisy counts, int64: with a length, indices and `tolist`.
        names: The names of the columns of the items, as JSON has them.
    """

    names: tuple[str, ...] = ("item",)
    field_names = names

    def __init__(self, items: _native.PlainItems, counts: memoryview) -> None:
        self.items, self.counts = items, counts

    def __reduce__(self) -> tuple[Any, ...]:
        items = self.items
        return _plain_rows, (items.kind, items.values, items.offsets, bytes(self.counts))

    @property
    def item_column(self) -> pa.Array:
        """The items as one column of Arrow."""
        return as_arrow(self.items)

    def values(self) -> list[Any]:
        """The items as Python values."""
        return self.items.to_pylist()

    def described(self) -> list[tuple[list[Any], dict[str, Any]]]:
        """The one column as `plain_column` has it."""
        return [(plain_items(self.values()), {"type": ARROW_NAMES[self.items.kind]})]

    def order(self, by: int = 0) -> memoryview:
        """Where the rows stand by noisy count, then item."""
        return memoryview(_native.release_order(self.items, self.counts)).cast("q")

    def taken(self, rows: slice | Places) -> PlainRows:
        """Some of the rows, or all in another order."""
        if isinstance(rows, slice):
            rows = memoryview(array("q", range(*rows.indices(len(self.counts)))))
        return PlainRows(self.items.at(rows), _native.numbers_at(self.counts, rows))


def _plain_rows(kind: str, values: bytes, offsets: bytes, counts: bytes) -> PlainRows:
    return PlainRows(_native.PlainItems(kind, values, offsets), memoryview(counts).cast("q"))


class ArrayRows:
    """Items of any columns, in an Arrow array, and their counts in one of NumPy.

    The attributes are those of `PlainRows`; of several columns the items are a struct.
    """

    def __init__(self, items: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        self.items, self.counts = items, counts

    @property
    def item_column(self) -> pa.Array:
        """The items as one column of Arrow; of several columns a struct."""
        return self.items

    @property
    def columns(self) -> list[pa.Array]:
        """The columns of the items."""
        return parts_of(self.items) if pa.types.is_struct(self.items.type) else [self.items]

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names that the columns were given, which the release may have another use for."""
        is_struct = pa.types.is_struct(self.items.type)
        return tuple(field.name for field in self.items.type) if is_struct else ("item",)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the items, as JSON has them."""
        return free_names(self.field_names) if pa.types.is_struct(self.items.type) else ("item",)

    def values(self) -> list[Any]:
        """The items as Python values; those of several columns are tuples."""
        columns = [column.to_pylist() for column in self.columns]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def described(self) -> list[tuple[list[Any], dict[str, Any]]]:
        """`plain_column` of every column."""
        return [plain_column(column) for column in self.columns]

    def order(self, by: int = 0) -> npt.NDArray[np.int64]:
        """Where the rows stand by group (the first `by` columns), noisy count, then item."""
        columns, counts = self.columns, self.counts
        if any(pa.types.is_union(column.type) for column in columns):
            listed = zip(*(column.to_pylist() for column in columns), strict=True)
            values = [list(map(item_order, row)) for row in listed]
            places = sorted(range(len(values)), key=lambda i: (values[i][:by], -counts[i], values[i]))
            return np.array(places, np.int64)
        if len(columns) == 1 and not by and columns[0].null_count == 0 and columns[0].type in plain_types():
            return np.frombuffer(_native.release_order(columns[0], counts), np.int64)
        import pyarrow.compute as pc

        table = pa.table([*columns, pa.array(counts)], [*map(str, range(len(columns))), "count"])
        keys = [(str(place), "ascending") for place in range(len(columns))]
        order = pc.sort_indices(table, sort_keys=[*keys[:by], ("count", "descending"), *keys[by:]])
        return np.asarray(order).astype(np.int64)

    def taken(self, rows: slice | Places) -> ArrayRows:
        """Some of the rows, or all in another order."""
        if isinstance(rows, slice):
            return ArrayRows(self.items[rows], self.counts[rows])
        return ArrayRows(taken(self.items, rows), self.counts[np.asarray(rows)])


Rows = PlainRows | ArrayRows


def rows_of(items: pa.Array | _native.PlainItems, counts: npt.NDArray[np.int64] | memoryview) -> Rows:
    """The rows as they come."""
    if isinstance(items, _native.PlainItems) and isinstance(counts, memoryview):
        return PlainRows(items, counts)
    return ArrayRows(as_arrow(items), np.asarray(counts, dtype=np.int64))


def free_names(names: Sequence[str], taken: Sequence[str] = _TAKEN_NAMES) -> tuple[str, ...]:
    """Names for columns that the release has no other use for, all different.

    A name in `taken`, and one that an earlier column has, gets an underscore, or more until it is free.
    """
    free: list[str] = []
    for place, name in enumerate(names):
        made = name
        while made in taken or made in free or (made != name and made in names[place + 1 :]):
            made += "_"
        free.append(made)
    return tuple(free)
