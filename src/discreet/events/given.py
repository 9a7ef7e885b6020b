"""What a caller may give for a column: the column itself, a table of one, or batches of either."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from discreet.errors import DataError
from discreet.events.items import (
    arrow_chunks,
    is_arrow,
    is_polars_objects,
    library,
    prepare_lists,
    read,
    refuse_no_column,
    refuse_single,
)

__all__ = ["batches_of", "one_column", "says_lists", "table_of_lists"]


def says_lists(data: Any) -> bool | None:
    """Whether the items come in lists, if the type says so. Nothing is read."""
    refuse_no_column(data)
    if _is_column(data):
        return read(data, lambda: _is_nested(data))
    refuse_single(data)
    return None


def batches_of(data: Any, grouped: bool) -> Iterator[Any]:
    """The columns to update a summary with. Of lists of users, a part whose type does not say lists is one user's."""
    if _is_column(data):
        yield from _columns(data)
        return
    parts = iter(data)
    head = list(islice(parts, 1))
    if not head or not _is_column(head[0]) or (grouped and not says_lists(head[0])):
        yield chain(head, parts)
        return
    while head:
        # One batch is held at a time.
        yield from _columns(head.pop())
        head = list(islice(parts, 1))


def one_column(batches: Iterator[Any]) -> Any:
    """All batches together."""
    import pyarrow as pa

    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    chunks = [chunk for part in parts for chunk in arrow_chunks(prepare_lists(part))]
    return read(parts, lambda: pa.chunked_array(chunks)) if chunks else []


def _is_column(data: Any) -> bool:
    """Whether this is a whole column or table, not an item."""
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return True
    return library(data) in ("numpy", "pandas") and getattr(data, "ndim", 0) > 0


def _is_nested(data: Any) -> bool | None:
    import pyarrow as pa

    if library(data) == "pandas":
        return _is_nested_pandas(data)
    if is_polars_objects(data):
        return None
    if isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        kind = data.schema.field(_only_column(data.schema)).type
    elif isinstance(data, (pa.Array, pa.ChunkedArray)):
        kind = data.type
    elif hasattr(data, "__arrow_c_schema__"):
        kind = pa.field(data).type
    elif library(data) == "polars":
        kind = data.head(0).to_arrow().type
    else:
        return False if library(data) == "numpy" and data.dtype.kind != "O" else None
    return _is_list(kind)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_nested_pandas(data: Any) -> bool | None:
    import pandas as pd

    if data.ndim != 1:
        raise DataError("expected one column, got a data frame: pass one of its columns")
    if isinstance(data.dtype, pd.ArrowDtype):
        return _is_list(data.dtype.pyarrow_dtype)
    return None if data.dtype == object else False  # objects may be lists: the unit says whether they are


def _only_column(schema: Any) -> int:
    if len(schema) != 1:
        raise DataError(f"expected one column, got a table of {len(schema)}: pass one of its columns")
    return 0


def _columns(data: Any) -> Iterator[Any]:
    """The columns of a table, batch by batch, or the column itself."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        return _read_batches(data)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return iter([data.column(_only_column(data.schema))])
    return iter([data])


def _read_batches(reader: Any) -> Iterator[Any]:
    def following() -> Any:
        try:
            return reader.read_next_batch()
        except StopIteration:
            return None

    while (batch := read(reader, following)) is not None:
        yield batch.column(_only_column(batch.schema))


def table_of_lists(data: Any, nulls: str) -> tuple[Any, str | None]:
    """A table with a column "item" of lists, one for each person; or of single items, and the column of the persons."""
    import pyarrow as pa

    lists = prepare_lists(data)
    if is_arrow(lists):
        chunks = list(arrow_chunks(lists))
        return pa.table(
            {"item": pa.chunked_array(chunks)} if chunks else {"item": pa.array([], pa.list_(pa.string()))}
        ), None
    persons: list[int] = []
    items: list[Any] = []
    for person, row in enumerate(lists):
        if row is None:
            if nulls != "skip":
                raise DataError('the column of lists has nulls; nulls="skip" leaves those rows out')
            continue
        before = len(items)
        items += row
        persons += [person] * (len(items) - before)
    return {"person": persons, "item": items}, "person"
