"""Tables of any library as Arrow, and columns of Python objects of several kinds as bytes that tell the kinds apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import DataError
from discreet.events.items import Item, is_polars_objects, item_of, library, read
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES

__all__ = ["TAGGED", "as_arrow", "names_of_objects", "objects_as_arrow", "untagged", "with_kinds"]

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
    raise DataError(f"people are counted in a table of columns, not in a {type(table).__name__}: {failed}")


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
    tags = [_tag(value) for value in values]
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


def _tag(value: Any) -> bytes | None:
    """An item with its kind in front, or None if it cannot be one."""
    item = item_of(value)
    if isinstance(item, int):
        return b"i" + str(item).encode()
    text = item.encode() if isinstance(item, str) else item
    if text is None or len(text) > DEFAULT_MAX_KEY_BYTES:
        return None
    return (b"t" if isinstance(item, str) else b"b") + text


def with_kinds(column: pa.Array) -> pa.Array:
    """A column of texts, bytes or whole numbers with the kind in front of each, as `objects_as_arrow` writes them."""
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        kind, column = b"i", column.cast(pa.string())
    else:
        kind = b"t" if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else b"b"
    binary = pa.large_binary()
    return pc.binary_join_element_wise(pa.scalar(kind, binary), column.cast(binary), pa.scalar(b"", binary))


def untagged(value: bytes) -> Item:
    kind, rest = value[:1], value[1:]
    return int(rest) if kind == b"i" else rest.decode() if kind == b"t" else rest
