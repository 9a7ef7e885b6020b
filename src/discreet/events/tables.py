"""Tables of any library as Arrow, and batches of their items, people and values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import DataError, ParameterError
from discreet.events.columns import kind_of
from discreet.events.items import categories_of, item_of, library, objects_of, read, refuse_single
from discreet.events.keys import OWN_KINDS, Keys, part_type, unreadable_texts
from discreet.events.tags import own_kinds, tagged
from discreet.events.times import NOT_A_TIME, times_of_objects

__all__ = [
    "TAGGED",
    "Chosen",
    "as_arrow",
    "chosen",
    "is_column",
    "keyed_batches",
    "names_of_objects",
    "needs_keys",
    "opened",
]

_ROWS_AT_ONCE = 1 << 16

TAGGED = {b"discreet": b"with kinds"}
"""The metadata of a column whose values are written with their kinds."""


def as_arrow(table: Any) -> Any:
    """An Arrow table or a reader."""
    if isinstance(table, (pa.Table, pa.RecordBatchReader)):
        return table
    try:
        if isinstance(table, dict):
            return pa.table(table)
        if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
            table = table.collect()  # a lazy frame
        if isinstance(table, pa.RecordBatch):
            return pa.table(table)
        if library(table) == "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        failed = "pass an Arrow table, a data frame, a DuckDB relation or a dict of columns"
    except MemoryError:
        raise
    except Exception as error:  # which may quote what could not be read
        failed = f"it has no columns that Arrow can read ({type(error).__name__})"
    if is_column(table):
        failed = 'of one column make one, as in {"item": column}'
    raise DataError(f"expected a table of columns, not {_article(type(table).__name__)}: {failed}")


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def names_of_objects(table: Any) -> list[Any]:
    """The columns of a table that may hold Python objects: a dict, or a frame of pandas or polars. Empty for others."""
    if isinstance(table, dict):
        return list(table)
    frame = library(table) in ("pandas", "polars") and len(getattr(table, "shape", ())) == 2
    return list(table.columns) if frame else []


class Chosen(NamedTuple):
    """Columns of a table.

    Attributes:
        data: They alone, in a table; or a reader that has them.
        own: Those of them whose values have kinds of their own (`events.tags`).
    """

    data: pa.Table | pa.RecordBatchReader
    own: frozenset[str]


def chosen(
    table: Any,
    wanted: Sequence[str],
    *,
    values: str | None = None,
    time: str | None = None,
    bad_items: str = "skip",
) -> Chosen:
    """The wanted columns of a table of any library: items and people, numbers to sum (`values`), and times.

    What Arrow makes of Python objects depends on each of them: one of bytes makes all text bytes, one float all numbers
    floats, one long decimal all decimals long. So a column without a type never gets one: each of its values is written
    with its kind, and rows with one that cannot be an item (or a number) are left out (docs/privacy/errors.md).
    """
    objects = isinstance(table, dict) or bool(names_of_objects(table))
    data = None if objects else as_arrow(table)
    names = names_of_objects(table) if data is None else list(data.schema.names)
    for name in wanted:
        if names.count(name) != 1:
            there = "more than one column" if name in names else "no column"
            raise DataError(f"the table has {there} {name!r}; its columns are {', '.join(map(repr, names))}")
    if data is not None:
        return Chosen(data, frozenset())
    arrays, own, bad = [], set(), []
    for name in wanted:
        column = table[name]
        refuse_single(column)
        found = _floats(column) if name == values else _times(column) if name == time else own_kinds(column)
        if found is None:
            numbers = name in (values, time)
            array = read(column, lambda: _array_of(column, numbers))  # noqa: B023 (called at once)
        else:
            array, good = found
            bad.append((name, good))
            if name not in (values, time):
                own.add(name)
        arrays.append(array)
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns of the table must have one length")
    made, kept = pa.table(arrays, names=list(wanted)), np.ones(len(arrays[0]), np.bool_)
    for name, good in bad:
        if good is None:
            continue
        if bad_items == "error":
            raise DataError(f"the column {name!r} has values that cannot be {'numbers' if name == values else 'items'}")
        what = "a number" if name == values else "an item, such as a text or a whole number"
        if len(good) and not good.any():
            raise DataError(f"no value of the column {name!r} can be {what}")
        kept &= good
    return Chosen(made if kept.all() else made.filter(pa.array(kept)), frozenset(own))


def _floats(column: Any) -> tuple[pa.Array, npt.NDArray[np.bool_] | None] | None:
    """(the objects of a column as numbers, which of them are some); None for a column that has a type."""
    found = objects_of(column)
    if found is None:
        return None
    if {*map(type, found)} <= {float, type(None)}:
        return pa.array(found, pa.float64()), None
    numbers = [None if value is None else _float(value) for value in found]
    good = np.array([value is None or number is not None for value, number in zip(found, numbers, strict=True)], bool)
    return pa.array(numbers, pa.float64()), good


def _float(value: Any) -> float | None:
    number: Any = value if isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_)) else None
    if number is None:
        return None
    try:
        return float(number)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if number > 0 else -math.inf
    except Exception:  # a signal that it is not a number, or an object that fails
        return None


# ---- items that are made of several columns, or are of a type that no summary knows ----------------------------------


def opened(table: Any) -> Any:
    """A table whose columns can be looked at: a dict or a frame as it is, anything else as Arrow."""
    return table if isinstance(table, dict) or names_of_objects(table) else as_arrow(table)


def needs_keys(table: Any, name: str) -> bool:
    """Whether a column of an opened table has items that no summary knows: dates, decimals and the like.

    The type says it; of Python objects any of them, so that none of them decides what becomes of another.
    """
    if names_of_objects(table).count(name) == 1:
        refuse_single(table[name])
        category = categories_of(table[name])
        objects = objects_of(table[name]) if category is None else category[0]
        if objects is not None:
            others = {*map(type, objects)} - {str, int, bytes, type(None)}
            return bool(others) and any(item_of(value) is None and tagged(value) is not None for value in objects)
        kind = read(table[name], lambda: _array_of(table[name][:0]).type)
    elif isinstance(table, dict) or names_of_objects(table) or table.schema.names.count(name) != 1:
        return False  # which is refused where it is read
    else:
        kind = table.schema.field(name).type
    return not pa.types.is_null(kind) and kind_of(kind) is None and part_type(kind) is not None


def is_column(data: Any) -> bool:
    """Whether this is a column by itself, which can be looked at before it is read."""
    if isinstance(data, (pa.Array, pa.ChunkedArray, list, tuple)):
        return not isinstance(data, pa.UnionArray)
    return library(data) in ("numpy", "pandas", "polars") and len(getattr(data, "shape", ())) == 1


def keyed_batches(
    table: Any,
    keys: Keys,
    wanted: Sequence[str],
    user: str | None = None,
    values: str | None = None,
    bad_items: str = "skip",
) -> Iterator[pa.RecordBatch]:
    """Batches with the columns "item", "user" and "value" from a table of any library.

    Args:
        table: As for `as_arrow`.
        keys: Makes the items of the `wanted` columns, those of the groups first. Its layout is known when this returns.
        user: The column that says whose row it is.
        values: The column of numbers.
        bad_items: "skip" leaves out rows with what cannot be an item, "error" refuses them.
    """
    others = {of: name for of, name in (("user", user), ("value", values)) if name is not None}
    every = [*wanted, *others.values()]
    if len(set(every)) < len(every):
        raise ParameterError("the columns of groups, items, people and values must be different columns")
    data, own = chosen(table, every, values=values, time=keys.time, bad_items=bad_items)
    keys.start([OWN_KINDS if name in own else data.schema.field(name).type for name in wanted])
    return _keyed(data, keys, wanted, others, own, bad_items)


def _keyed(
    data: Any, keys: Keys, wanted: Sequence[str], others: dict[str, str], own: frozenset[str], bad_items: str
) -> Iterator[pa.RecordBatch]:
    told = {of: TAGGED if name in own else None for of, name in others.items()}
    batches = data if isinstance(data, pa.RecordBatchReader) else iter(data.to_batches(_ROWS_AT_ONCE))
    while (batch := read(data, lambda: next(batches, None))) is not None:
        bad = unreadable_texts([batch.column(name) for name in wanted])
        if bad is not None:
            if bad_items == "error":
                raise DataError("the table has text that is not valid UTF-8")
            batch = batch.filter(pa.array(~bad))
        made, good, listed = keys.of([batch.column(name) for name in wanted], "the table")
        arrays = [made, *(batch.column(name) for name in others.values())]
        if good is not None and bad_items == "error":
            raise DataError(f"the table has {NOT_A_TIME}")
        fields = [pa.field("item", made.type), *(pa.field(of, array.type, metadata=told[of])
                  for of, array in zip(others, arrays[1:], strict=True))]  # fmt: skip
        batch = pa.record_batch(arrays, schema=pa.schema(fields))
        for kept in (good, listed):
            if kept is not None:
                batch = batch.filter(pa.array(kept if kept is good or good is None else kept[good]))
        yield batch


def _times(column: Any) -> tuple[pa.Array, None] | None:
    """The objects of a column as times, in whole seconds; None for a column that has a type."""
    found = objects_of(column)
    return None if found is None else (times_of_objects(found), None)


def _array_of(column: Any, numbers: bool = False) -> Any:
    """A typed column as Arrow. Where it does not hold `numbers` to sum or times, floats of pandas are refused."""
    made_by = library(column)
    if getattr(column, "ndim", 1) != 1:
        raise DataError(f"a column of the table has {column.ndim} dimensions, not one")
    if made_by == "pandas":
        if not numbers and str(column.dtype) in ("float16", "float32", "float64"):
            # One missing value makes floats of whole numbers in pandas: it would decide how all are published.
            raise DataError(
                "a column of pandas holds floats, which whole numbers become where one is missing: say what they are, "
                'with .astype("Int64") or .astype("Float64")'
            )
        return pa.Array.from_pandas(column)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    return pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)
