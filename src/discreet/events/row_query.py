"""Which rows stay and what is computed of them, each by itself: the seam between readers and engines.

Readers know nothing of SQL. What they are given reads some columns of a block of rows and says of every row whether it
stays, and what it has in the columns that are asked for. A row for which that cannot be computed is bad, like one that
cannot be read, so nobody can stop a release with one of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import DataError
from discreet.events.arrow_calls import filtered
from discreet.events.items import (
    categories_of,
    choose,
    item_of,
    library,
    objects_of,
    read,
    readable,
    without_views,
)
from discreet.events.text import BLANK, NOT_COMPUTED, OTHER, TEXT, TextRows

if TYPE_CHECKING:
    from discreet._native import CellCondition
    from discreet.events.parquet import Batch

Mask = npt.NDArray[np.bool_]


class Bound(Protocol):
    """A query for certain columns.

    Attributes:
        reads: The columns of the input that it takes, in the order in which they are to be given.
        taken: For every column asked for its place in `reads`, or None if it is computed.
        selects: Whether some rows may not stay.
        looks_at: The places in `reads` of the columns that say which.
        of_text: Says which while text is read, where a query does nothing else; None for any other.
    """

    reads: Sequence[str | None]
    taken: Sequence[int | None]
    selects: bool
    looks_at: Sequence[int]
    of_text: CellCondition | None

    def keeps(self, columns: Sequence[pa.Array | None]) -> tuple[Mask, Mask]:
        """Which rows stay, and for which this cannot be computed. Of rows that stay it can.

        None stands for a column that it does not look at, and whose texts are no longer than an item may be.
        """
        ...

    def computes(self, columns: Sequence[pa.Array]) -> tuple[list[pa.Array], Mask]:
        """The computed columns, and which of the rows cannot be computed."""
        ...


class Rowwise(Protocol):
    """A query of rows, as its `text` says."""

    text: str

    def bound(self, wanted: Sequence[str | None]) -> Bound:
        """For these columns; None (the first) is the only one beside the others."""
        ...


def of_rows(query: Bound, rows: TextRows) -> None:
    """The rows that stay, with the columns asked for; the others are blank, or bad."""
    if query.selects:
        keep, failed = query.keeps(texts_of(rows))
        kinds = np.where(failed, NOT_COMPUTED, BLANK).astype(np.uint8)
        rows.leave_out(~keep, kinds)
    computed: list[pa.Array] = []
    if None in query.taken:
        computed, failed = query.computes(texts_of(rows))
        if failed.any():
            rows.leave_out(failed, NOT_COMPUTED)
            computed = [column.filter(pa.array(~failed)) for column in computed]
    made = iter(computed)
    count = len(computed[0]) if computed else 0
    columns, values = rows.columns, rows.values
    rows.columns = [next(made) if place is None else columns[place] for place in query.taken]
    if values is not None:
        own = np.full(count, TEXT, np.uint8)  # of one type each, which stays as it is
        rows.values = [own if place is None else values[place] for place in query.taken]


def texts_of(rows: TextRows) -> list[pa.Array]:
    """The columns as a query sees them: text, null where there is neither text, nor a number, nor true or false."""
    if rows.values is None:
        return rows.columns
    import pyarrow.compute as pc

    shown = []
    for column, kinds in zip(rows.columns, rows.values, strict=True):
        if not pa.types.is_list(column.type) and (kinds == OTHER).any():
            empty = (kinds == OTHER) & np.asarray(pc.equal(column, "").fill_null(False), np.bool_)
            column = pc.if_else(pa.array(empty), None, column)
        shown.append(column)
    return shown


def of_arrays(query: Bound, arrays: tuple[pa.Array, ...]) -> tuple[tuple[pa.Array, ...], int]:
    """The same of columns, and how many rows are bad."""
    if not query.selects:
        return _with_computed(query, arrays, 0)
    keep, failed = query.keeps(arrays)
    if not keep.all():
        arrays = tuple(filtered(array, keep) for array in arrays)
    return _with_computed(query, arrays, int(np.count_nonzero(failed)))


def of_batch(query: Bound, batch: Batch) -> tuple[tuple[pa.Array, ...], int] | None:
    """The same of a batch, in which texts of rows that do not stay are never copied.

    None where all columns have to be looked at first: where nothing is selected, or text may not be UTF-8.
    """
    places = range(len(query.reads))
    beside = [place for place in places if place not in query.looks_at]
    if not query.selects or not beside or any(map(batch.may_hold_bad_text, beside)):
        return None
    looked = [None if place in beside else batch.array(place) for place in places]
    if any(array is not None and readable(array, None, check_text=True) is not None for array in looked):
        return None
    keep, failed = query.keeps(looked)
    needed = places if None in query.taken else query.taken
    arrays = tuple(batch.array(place, keep) if place in needed else looked[place] for place in places)
    return _with_computed(query, arrays, int(np.count_nonzero(failed)))


def _with_computed(query: Bound, arrays: tuple[Any, ...], bad: int) -> tuple[tuple[pa.Array, ...], int]:
    computed: list[pa.Array] = []
    if None in query.taken:
        computed, failed = query.computes(arrays)
        if failed.any():
            bad += int(np.count_nonzero(failed))
            arrays = tuple(filtered(array, ~failed) for array in arrays)
            computed = [filtered(array, ~failed) for array in computed]
    made = iter(computed)
    return tuple(next(made) if place is None else arrays[place] for place in query.taken), bad


# ---- tables of Python ------------------------------------------------------------------------------------------------


def of_table(condition: Rowwise, table: Any) -> Any:
    """The rows of a table for which a condition is true, in the same kind of table, or as a reader of Arrow batches.

    A row for which it cannot be computed is left out, like one that cannot be an item (docs/privacy/errors.md).

    Raises:
        DataError: For anything but a table, and for columns that are not there.
    """
    from discreet.events.tables import as_arrow, batches_of_arrow, names_of_objects

    query = condition.bound([])
    names = [str(name) for name in query.reads]
    if names_of_objects(table):
        columns = [column_of_objects(table, name) for name in names]
        if len({len(column) for column in columns}) > 1:
            raise DataError("all columns of a dict must have the same length")
        keep = query.keeps(columns)[0]
        if isinstance(table, dict):
            return {name: kept(column, keep) for name, column in table.items()}
        return table[keep] if library(table) == "pandas" else table.filter(keep)
    data = as_arrow(table)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in batches_of_arrow(data):
            batch = pa.RecordBatch.from_arrays([without_views(column) for column in batch.columns], schema=schema)
            arrays = [_field(schema, batch.column, name) for name in names]
            yield batch.filter(pa.array(query.keeps(arrays)[0]))

    schema = plain_schema(data.schema)
    for name in names:
        _field(schema, schema.field, name)
    return pa.RecordBatchReader.from_batches(schema, batches())


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same without views; Arrow cannot take some of them."""
    return pa.schema([each.with_type(without_views(pa.array([], each.type)).type) for each in schema])


def _field(schema: pa.Schema, column: Callable[[Any], Any], name: str) -> Any:
    """A column by its name, or a field inside of one."""
    if schema.names.count(name) == 1:
        return column(name)
    first, _, rest = name.partition(".")
    if rest and schema.names.count(first) == 1 and pa.types.is_struct(schema.field(first).type):
        import pyarrow.compute as pc

        found = column(first)
        with suppress(KeyError, pa.ArrowException):
            return pc.struct_field(found, rest.split(".")) if isinstance(found, pa.Array) else found
    choose(schema.names, [name])


def column_of_objects(table: Any, name: str) -> pa.Array:
    """A column of a data frame or a dict. Python objects are as text: what Arrow makes of them depends on each.

    So are categories of pandas: one value makes floats of whole numbers, or objects of any kind.
    """
    choose(list(table) if isinstance(table, dict) else list(table.columns), [name])
    column = table[name]
    category = categories_of(column)
    if category is not None:
        values, codes = category
        texts = pa.array([_text_of(value) for value in values], pa.string())
        return texts.take(pa.array(codes, mask=codes < 0))
    objects = objects_of(column)
    if objects is not None:
        return pa.array([_text_of(value) for value in objects], pa.string())
    found = read(column, lambda: pa.array(column, from_pandas=True))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _text_of(value: Any) -> str | None:
    """Text, numbers and times as they are written, true and false; nothing for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, str):
        return value if item_of(value) is not None else None
    return str(value) if isinstance(value, (Real, Decimal, date)) and value == value else None


def kept(column: Any, keep: Mask) -> Any:
    """Some rows of a column, in the same kind of column."""
    if library(column) in ("pandas", "polars"):
        return column[keep] if library(column) == "pandas" else column.filter(keep)
    if hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
        return (
            pa.chunked_array(column).filter(pa.array(keep))
            if not isinstance(column, pa.Array)
            else column.filter(pa.array(keep))
        )
    if hasattr(column, "dtype"):
        return column[keep]
    return [value for value, kept in zip(column, keep, strict=True) if kept]
