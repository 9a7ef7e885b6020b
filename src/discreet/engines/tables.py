"""Tables of any library as Arrow, and batches of their items, people and values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import DataError, ParameterError
from discreet.events.columns import kind_of
from discreet.events.items import is_polars_objects, item_of, library, read, refuse_single
from discreet.events.joint import OWN_KINDS, Keys, part_type, unreadable_texts
from discreet.events.kinds import tagged, with_kinds
from discreet.events.times import NOT_A_TIME, seconds_of

__all__ = [
    "TAGGED",
    "as_arrow",
    "is_column",
    "keyed_batches",
    "names_of_objects",
    "needs_keys",
    "objects_as_arrow",
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


def objects_as_arrow(table: Any, wanted: Sequence[str], amounts: str | None = None) -> pa.Table | None:
    """The wanted columns of a data frame or dict of Python objects of several kinds; None for any other table.
    `amounts` is a further column, of numbers.

    What Arrow makes of objects depends on each of them: one of bytes makes all text bytes, one float all numbers
    floats. So each is written with its kind. Rows that cannot be items are left out (docs/privacy/errors.md).
    """
    names = names_of_objects(table)
    items, wanted = wanted, wanted if amounts is None else [*wanted, amounts]
    if any(names.count(name) != 1 for name in wanted):
        return None
    columns = [_objects_of(table[name]) for name in wanted]
    makes = [*(_tags for _ in items), *(_floats for _ in wanted[len(items) :])]
    tagged = [None if values is None else make(values) for make, values in zip(makes, columns, strict=True)]
    if all(tags is None for tags in tagged):
        # Without the other columns, whose objects may be anything.
        if library(table) == "pandas":
            return as_arrow(table[list(wanted)])
        given = zip(wanted, columns, strict=True)
        return as_arrow({name: table[name] if values is None else values for name, values in given})
    fields, arrays, kept = [], [], None
    for name, values, tags in zip(wanted, columns, tagged, strict=True):
        if tags is None:
            array = read(table, lambda: pa.array(table[name] if values is None else values))  # noqa: B023 (called at once)
            fields.append(pa.field(name, array.type))
        else:
            there = np.array(
                [value is None or tag is not None for value, tag in zip(values or (), tags, strict=True)], bool
            )
            kept = there if kept is None or len(kept) != len(there) else kept & there
            array = pa.array(tags, pa.float64() if name == amounts else pa.large_binary())
            fields.append(pa.field(name, array.type, metadata=None if name == amounts else TAGGED))
        arrays.append(array)
    assert kept is not None
    if len({len(array) for array in arrays}) > 1:
        return None  # which as_arrow refuses
    if len(kept) and not kept.any():
        raise DataError("no row of the table has items (and people) that are int, str or bytes")
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)).filter(pa.array(kept))


def _objects_of(column: Any) -> list[Any] | None:
    """The objects of a column that has no type but theirs; None for any other."""
    if isinstance(column, (list, tuple)):
        return list(column)
    kind = getattr(getattr(column, "dtype", None), "categories", column)
    if is_polars_objects(column):
        return list(column.to_list())
    if str(getattr(kind, "dtype", "")) != "object":
        return None
    missing = column.isna().tolist() if hasattr(column, "isna") else [False] * len(column)
    return [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]


def _tags(values: list[Any]) -> list[bytes | None] | None:
    """The objects with their kinds; None if all are items of one kind, which Arrow reads as they are."""
    tags = [tagged(value) for value in values]
    kinds = {tag[:1] for tag in tags if tag is not None}
    odd = any(tag is None and value is not None for value, tag in zip(values, tags, strict=True))
    large = kinds == {b"i"} and any(isinstance(item := item_of(value), int) and item >= 2**63 for value in values)
    return tags if odd or large or len(kinds) > 1 else None


def _floats(values: list[Any]) -> list[float | None] | None:
    """The objects as numbers, None where one is none; None if all are such that Arrow reads them as they are."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {float} or (kinds == {int} and all(value is None or abs(value) < 2**63 for value in values)):
        return None
    return [_float(value) for value in values]


def _float(value: Any) -> float | None:
    number: Any = value if isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_)) else None
    if number is None:
        return None
    try:
        return float(number)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a signal that it is not a number
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
        objects = _objects_of(table[name])
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
    data, own = _chosen(table, every, values, bad_items, keys.time)
    types = [OWN_KINDS if name in own else data.schema.field(name).type for name in wanted]
    keys.start(types)
    return _keyed(data, keys, wanted, others, bad_items)


def _keyed(
    data: Any, keys: Keys, wanted: Sequence[str], others: dict[str, str], bad_items: str
) -> Iterator[pa.RecordBatch]:
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
        batch = pa.record_batch(arrays, names=["item", *others])
        for kept in (good, listed):
            if kept is not None:
                batch = batch.filter(pa.array(kept if kept is good or good is None else kept[good]))
        yield batch


def _chosen(
    table: Any, wanted: Sequence[str], values: str | None, bad_items: str, time: str | None = None
) -> tuple[Any, set[str]]:
    """The wanted columns as a table or reader, and which of them have values with kinds of their own."""
    objects = isinstance(table, dict) or bool(names_of_objects(table))
    data = None if objects else as_arrow(table)
    names = names_of_objects(table) if data is None else list(data.schema.names)
    for name in wanted:
        if names.count(name) != 1:
            there = "more than one column" if name in names else "no column"
            raise DataError(f"the table has {there} {name!r}; its columns are {', '.join(map(repr, names))}")
    if data is not None:
        return data, set()
    arrays, own, kept = [], set(), None
    for name in wanted:
        column = table[name]
        refuse_single(column)
        found = _objects_of(column)
        if found is None:
            arrays.append(read(column, lambda: _array_of(column)))  # noqa: B023 (called at once)
            continue
        if name == values:
            amounts = _floats(found)
            arrays.append(pa.array(found if amounts is None else amounts, pa.float64()))
            continue
        if name == time:
            arrays.append(pa.array([_seconds(value) for value in found], pa.float64()))
            continue
        own.add(name)
        array = _quickly_tagged(column)
        if array is None:
            tags = [None if value is None else tagged(value) for value in found]
            good = np.array([value is None or tag is not None for value, tag in zip(found, tags, strict=True)], bool)
            if not good.all() and bad_items == "error":
                raise DataError(f"the column {name!r} has values that cannot be items")
            if len(good) and not good.any():
                raise DataError(f"no value of the column {name!r} can be an item, such as a text or a whole number")
            if kept is not None and len(kept) != len(good):
                raise DataError("the columns of the table must have one length")
            kept = good if kept is None else kept & good
            array = pa.array(tags, pa.large_binary())
        arrays.append(array)
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns of the table must have one length")
    made = pa.table(arrays, names=list(wanted))
    return made if kept is None or kept.all() else made.filter(pa.array(kept)), own


def _seconds(value: Any) -> float | None:
    """A time as seconds; not a number where it is none, and None where it is missing."""
    if value is None:
        return None
    seconds = None if isinstance(value, bool) else seconds_of(value)
    return math.nan if seconds is None else seconds


def _array_of(column: Any) -> Any:
    """A typed column as Arrow."""
    made_by = library(column)
    if getattr(column, "ndim", 1) != 1:
        raise DataError(f"a column of the table has {column.ndim} dimensions, not one")
    if made_by == "pandas":
        if str(column.dtype) in ("float16", "float32", "float64"):
            # One missing value makes floats of whole numbers in pandas: it would decide how all are published.
            raise DataError(
                "a column of pandas holds floats, which whole numbers become where one is missing: say what they are, "
                'with .astype("Int64") or .astype("Float64")'
            )
        return pa.Array.from_pandas(column)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    return pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)


def _quickly_tagged(column: Any) -> pa.Array | None:
    """A column of pandas that holds nothing but texts, or None."""
    if library(column) != "pandas" or str(column.dtype) != "object":
        return None
    import pandas as pd

    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return None
    try:
        texts = pa.array(column, pa.large_string(), from_pandas=True)
    except (pa.ArrowException, ValueError, UnicodeError):
        return None  # a text that is not Unicode, for example
    return with_kinds(texts)
