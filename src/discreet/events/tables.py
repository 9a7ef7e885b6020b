"""Tables and columns of any library as events: Arrow, pandas, polars, DuckDB, Delta, dicts, readers, lists.

A column that summaries know goes to them as it is (`ColumnRows`), and nothing of it is copied or looked at here. All
else is assembled as the rows of files are (`TableRows`): people and values, items of several columns, and types that no
summary knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from decimal import Decimal
from itertools import chain, islice
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet._data_class import replace
from discreet.errors import DataError, ParameterError
from discreet.events.assembly import Events, Rows, Wanted
from discreet.events.items import (
    arrow_chunks,
    categories_of,
    choose,
    is_amount,
    is_arrow,
    is_polars_objects,
    item_of,
    kind_of,
    library,
    objects_of,
    prepare_lists,
    read,
    refuse_elsewhere,
    refuse_no_column,
    refuse_single,
    without_list_views,
    without_views,
)
from discreet.events.keys import OWN_KINDS, Keys, part_type, plain
from discreet.events.times import times_of_objects
from discreet.events.values import own_kinds, tagged

if TYPE_CHECKING:
    from discreet.events.lookup import Lookup
    from discreet.events.row_query import Rowwise

_ROWS_AT_ONCE = 1 << 16
_LISTS = "the column holds lists: here a row has one item, so give each item a row, and say whose it is"


def events_of(data: Any) -> Events:
    """What Python gives as events: a table, a column, a reader, lists of people; events as they are.

    Data that is not here is refused: the name of a file, and data frames of Spark.
    """
    if isinstance(data, Events):
        return data
    return Tables(data) if is_arrow(data) or library(data) else read(data, lambda: _found(data))


def _found(data: Any) -> Events:
    """The rows of tables that are elsewhere, by their own methods, no matter who made them; of anything else as it is.

    Delta tables give a Dataset of pyarrow, and tables of Iceberg a scan.
    """
    if hasattr(data, "to_pyarrow_dataset"):
        data = data.to_pyarrow_dataset()
    if hasattr(data, "scanner") and hasattr(data, "schema"):
        return Scanned(data.schema.names, lambda names: data.scanner(columns=names).to_reader())
    found = data.scan() if hasattr(data, "scan") else data
    if hasattr(found, "to_arrow_batch_reader") and hasattr(found, "projection"):
        names = [field.name for field in found.projection().fields]
        return Scanned(names, lambda names: found.select(*(names or "*")).to_arrow_batch_reader())
    if hasattr(data, "to_reader") and hasattr(data, "projected_schema"):  # a Scanner of pyarrow
        return Tables(data.to_reader())
    return Tables(data.to_arrow() if hasattr(data, "to_arrow") else data)


class Scanned(Events):
    """The rows of a table that is read when a question asks, and only the columns that it asks for.

    Args:
        names: Those of all columns.
        scan: Gives a reader of some of them; of all for None.
    """

    def __init__(self, names: Sequence[str], scan: Callable[[list[str] | None], Any]) -> None:
        self._names, self._scan = list(names), scan
        self._lookup: Lookup | None = None

    def with_lookup(self, lookup: Lookup) -> Scanned:
        same = copy(self)
        same._lookup = lookup
        return same

    def says_lists(self, column: str | None = None) -> bool | None:
        return self._tables(() if column is None else (column,)).says_lists(column)

    def makes_keys(self, columns: Sequence[str]) -> bool:
        return self._tables(columns).makes_keys(columns)

    def all_rows(self, *, where: Rowwise | None = None, nulls: str = "error", bad_rows: str = "skip") -> Rows:
        names = _names_in(where) or self._names[:1]
        return self._tables(names).all_rows(where=where, nulls=nulls, bad_rows=bad_rows)

    def rows_wanted(self, wanted: Wanted) -> Rows:
        others = [name for name in (wanted.user, wanted.value) if name is not None]
        named = [*wanted.columns, *wanted.by, *others, *_names_in(wanted.where)] if wanted.columns else []
        return self._tables(named).rows_wanted(wanted)

    def _tables(self, names: Sequence[str]) -> Tables:
        """The table with these columns; with all where they are not said, or not found, which is refused then."""
        lookup = self._lookup
        if lookup is not None and names:
            names = [*(name for name in names if name not in lookup.columns), lookup.on]
        chosen = list(dict.fromkeys(names)) if names and {*names} <= {*self._names} else None
        found = Tables(read(self, lambda: self._scan(chosen)))
        return found if lookup is None else found.with_lookup(lookup)


def _names_in(where: Rowwise | None) -> list[str]:
    return [] if where is None else [str(name) for name in where.bound([]).reads]


class Tables(Events):
    """The rows of a table or a column of any library."""

    def __init__(self, data: Any, lookup: Lookup | None = None) -> None:
        refuse_elsewhere(data)
        self._data, self._lookup = data, lookup
        self._keyed: dict[tuple[str, ...], bool] = {}

    def with_lookup(self, lookup: Lookup) -> Tables:
        return Tables(self._data, lookup)

    def says_lists(self, column: str | None = None) -> bool | None:
        looked_up = self._lookup is not None and column in self._lookup.columns
        return False if looked_up else says_lists(self._column(column))

    def makes_keys(self, columns: Sequence[str]) -> bool:
        names = tuple(columns)
        if names not in self._keyed:
            if names:
                self._data = opened(self._data)
                self._keyed[names] = len(names) > 1 or needs_keys(self._data, names[0])
            else:
                self._data = only_column(self._data)
                self._keyed[names] = is_column(self._data) and needs_keys({"item": self._data}, "item")
        return self._keyed[names]

    def all_rows(self, *, where: Rowwise | None = None, nulls: str = "error", bad_rows: str = "skip") -> Rows:
        return _AllRows(self._rows_of(where, [])._data, Wanted(nulls=nulls, bad_rows=bad_rows))

    def rows_wanted(self, wanted: Wanted) -> Rows:
        if self._lookup is not None and not wanted.columns:
            raise ParameterError("lookup needs column: the column the question is about")
        if self._lookup is not None or wanted.where is not None:
            asked = [*wanted.columns, *wanted.by, wanted.user, wanted.value]
            return self._rows_of(wanted.where, asked).rows_wanted(replace(wanted, where=None))
        names = wanted.columns
        if wanted.numbers:
            if not names and wanted.user is not None:
                raise ParameterError("user needs column: the column with the values")
            table = self._data if names else _numbers_alone(self._data)
            return TableRows(table, replace(wanted, columns=names or ("value",)))
        if wanted.only_groups:
            return TableRows(self._data, wanted)
        keyed = self.makes_keys(names) and not wanted.plain
        if wanted.by or keyed or wanted.user is not None or wanted.pairing is not None:
            if not names and not keyed:
                raise ParameterError("user and by need a table; name the column to count")
            if wanted.lists:
                raise ParameterError("a column of lists cannot be combined with other columns; a row has one item here")
            return TableRows(
                self._data if names else {"item": self._data}, replace(wanted, columns=names or ("item",)), keyed
            )
        return ColumnRows(self._column(names[0] if names else None), wanted)

    def _rows_of(self, where: Rowwise | None, asked: Sequence[str | None]) -> Tables:
        """The rows for which a condition is true, with the columns of the public table that are asked for."""
        data = self._data
        if self._lookup is not None:
            from discreet.events import lookup

            data = lookup.of_table(self._lookup, data, [name for name in asked if name is not None])
        if where is not None:
            from discreet.events import row_query

            data = row_query.of_table(where, data)
        return Tables(data)

    def _column(self, name: str | None) -> Any:
        if name is None:
            return only_column(self._data)
        self._data = opened(self._data)
        return column_of(self._data, name)


class TableRows(Rows):
    """Rows of several columns, or of one whose items no summary knows as they are: assembled as those of files."""

    def __init__(self, table: Any, wanted: Wanted, keyed: bool = False) -> None:
        super().__init__(wanted)
        joint = [*wanted.columns, *wanted.by]
        self._order = [*joint, *(name for name in (wanted.user, wanted.value) if name is not None)]
        value = wanted.columns[0] if wanted.numbers else wanted.value
        if wanted.numbers:
            self._order.reverse()  # whose it is comes first
        times = ({value} if wanted.times else set()) | (set() if wanted.every is None else {wanted.by[0]})
        if wanted.pairing is not None:
            self._order = self._assembler.pair(wanted.pairing, self._order)
        times |= set() if wanted.pairing is None else {wanted.pairing.time}
        numbers = None if wanted.times else value
        data, own = chosen(table, self._order, values=numbers, times=times, bad_items=wanted.bad_rows)
        self._data, types = data, {name: data.schema.field(name).type for name in self._order}
        if numbers is not None and not is_amount(types[numbers]) and not pa.types.is_null(types[numbers]):
            raise DataError("the column of values must hold numbers")
        if keyed or wanted.by:
            self.keys = self._assembler.keys = Keys(wanted.columns, wanted.by, groups=wanted.groups, every=wanted.every)
            of_keys = [*wanted.by, *wanted.columns]
            self.keys.start([OWN_KINDS if name in own else types[name] for name in of_keys])
            self.max_key_bytes += self.keys.room
            self._assembler.check_text = True  # those who count keys do not look at their parts
        item = None if self.keys is not None or wanted.numbers else wanted.columns[0]
        self.item_type = None if item is None or item in own else types[item]
        user = wanted.user if wanted.pairing is None else None
        self.tagged = frozenset(role for role, name in (("item", item), ("user", user)) if name in own)
        self._assembler.longest += self._assembler.names[0] in self.tagged  # a kind takes a byte
        self.max_key_bytes += "item" in self.tagged

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in batches_of_arrow(self._data):
            self.watch(batch.num_rows)
            made = self._assembler.batch(tuple(_plain_lists(batch.column(name)) for name in self._order), "the table")
            if made.num_rows:
                yield made


class ColumnRows(Rows):
    """One column of items, or of lists with one row a person, which goes to a summary as its library has it."""

    def __init__(self, column: Any, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._column, self._rule = column, wanted.bad_rows

    @property
    def item_type(self) -> pa.DataType | None:  # type: ignore[override]
        """The type of the column, if it has one."""
        return read(self._column, lambda: type_of(self._column))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._as_table())

    def items(self) -> Iterator[Any]:
        if says_lists(self._column):
            raise DataError(_LISTS)
        return batches_of(self._column, False)

    def owned(self, people: bool = True) -> Iterator[tuple[Any, Any, Any]]:
        table = self._as_table()
        self.tagged = table.tagged
        return table.owned(people)

    def _as_table(self) -> TableRows:
        """The lists in a table: one row each, or where they are Python objects one row for each of their items."""
        wanted = self._wanted
        table, persons = table_of_lists(one_column(batches_of(self._column, True)), wanted.nulls)
        return TableRows(table, replace(wanted, columns=("item",), user=persons))

    def _single_or_lists(self, max_items: int | None) -> Iterator[Any]:
        return batches_of(self._column, max_items is not None)


class _AllRows(Rows):
    """The rows of a table; no cell is read where its length is known."""

    def __init__(self, table: Any, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._table = table

    def number(self) -> int:
        table = self._table
        if isinstance(table, dict):
            lengths = {len(column) if hasattr(column, "__len__") else -1 for column in table.values()}
            if len(lengths) != 1 or lengths == {-1}:
                raise DataError(f"expected a dict of columns of the same length, not this {type(table).__name__}")
            return int(lengths.pop())
        if library(table) in ("pandas", "polars") and len(getattr(table, "shape", ())) == 2:
            return len(table)
        data = as_arrow(table)
        return data.num_rows if isinstance(data, pa.Table) else sum(batch.num_rows for batch in batches_of_arrow(data))


def _numbers_alone(column: Any) -> dict[str, Any]:
    """A column of numbers as a table."""
    if isinstance(column, (Mapping, str, bytes)) or not hasattr(column, "__iter__") or getattr(column, "ndim", 1) != 1:
        raise DataError(
            f"without column the table is the column itself: a list, an array or a series of numbers, not a "
            f"{type(column).__name__}; for a table, name the column"
        )
    return {"value": column}


def batches_of_arrow(data: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches; the reader of a query or of another library may fail, with words that quote the data."""
    batches = data if isinstance(data, pa.RecordBatchReader) else iter(data.to_batches(_ROWS_AT_ONCE))
    while (batch := read(data, lambda: next(batches, None))) is not None:
        yield batch


def _plain_lists(column: pa.Array) -> pa.Array:
    """A column in a layout that is known here: without views, and with lists of any length."""
    if not pa.types.is_nested(column.type):
        return plain(column)
    column = read(column, lambda: without_list_views(column))
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.large_list(column.type.value_type))
    return without_views(column)


def column_of(table: Any, name: str) -> Any:
    """One column of a table, or of the batches of a reader."""
    if names_of_objects(table).count(name) == 1:
        refuse_single(table[name])
        return table[name]  # not as a table: what Arrow makes of objects depends on each of them
    data = as_arrow(table)
    choose(data.schema.names, [name])
    if isinstance(data, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(
            pa.schema([data.schema.field(name)]), (batch.select([name]) for batch in data)
        )
    return data.column(name)


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
        failed = "pass an Arrow table or dataset, a data frame, a DuckDB relation or a dict of columns"
    except MemoryError:
        raise
    except Exception as error:  # which may quote what could not be read
        failed = f"it has no columns that Arrow can read ({type(error).__name__})"
    if is_column(table):
        failed = 'of one column make one, as in {"item": column}'
    name = type(table).__name__
    raise DataError(f"expected a table of columns, not {'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}: {failed}")


def names_of_objects(table: Any) -> list[Any]:
    """The columns of a table that may hold Python objects: a dict, or a frame of pandas or polars. Empty for others."""
    if isinstance(table, dict):
        return list(table)
    frame = library(table) in ("pandas", "polars") and len(getattr(table, "shape", ())) == 2
    return list(table.columns) if frame else []


def chosen(
    table: Any,
    wanted: Sequence[str],
    *,
    values: str | None = None,
    times: Collection[str | None] = (),
    bad_items: str = "skip",
) -> tuple[pa.Table | pa.RecordBatchReader, frozenset[str]]:
    """(the wanted columns of a table of any library alone, or a reader that has them; those with kinds of their own).

    They hold items and people, numbers to sum (`values`), and times.

    What Arrow makes of Python objects depends on each of them: one of bytes makes all text bytes, one float all numbers
    floats, one long decimal all decimals long. So a column without a type never gets one: each of its values is written
    with its kind, and rows with one that cannot be an item (or a number) are left out (docs/privacy/errors.md).
    """
    data = None if isinstance(table, dict) or names_of_objects(table) else as_arrow(table)
    names = names_of_objects(table) if data is None else list(data.schema.names)
    choose(names, wanted)
    if data is not None:
        return data, frozenset()
    arrays, own, bad = [], set(), []
    for name in wanted:
        column = table[name]
        refuse_single(column)
        numbers = name in (values, *times)
        objects = objects_of(column) if numbers else None
        found = own_kinds(column) if not numbers else None
        if objects is not None:
            found = _floats(objects) if name == values else (times_of_objects(objects), None)
        if found is None:
            found = read(column, lambda: _array_of(column, numbers)), None  # noqa: B023 (called at once)
        elif not numbers:
            own.add(name)
        arrays.append(found[0])
        bad.append((name, found[1]))
    if len({len(array) for array in arrays}) > 1:
        raise DataError("all columns of the table must have the same length")
    made, kept = pa.table(arrays, names=list(wanted)), np.ones(len(arrays[0]), np.bool_)
    for name, good in bad:
        if good is None:
            continue
        if bad_items == "error":
            raise DataError(f"the column {name!r} has values that are not {'numbers' if name == values else 'items'}")
        what = "a number" if name == values else "an item, such as a text or a whole number"
        if len(good) and not good.any():
            raise DataError(f"no value of the column {name!r} can be {what}")
        kept &= good
    return made if kept.all() else made.filter(pa.array(kept)), frozenset(own)


def _floats(found: list[Any]) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """(objects as numbers, which of them are some; None if all are)."""
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


def _array_of(column: Any, numbers: bool = False) -> Any:
    """A typed column as Arrow. Where it does not hold `numbers` to sum or times, floats of pandas are refused."""
    made_by = library(column)
    if getattr(column, "ndim", 1) != 1:
        raise DataError(f"a column of the table has {column.ndim} dimensions, not one")
    if made_by == "pandas":
        if not numbers and str(column.dtype) in ("float16", "float32", "float64"):
            # One missing value makes floats of whole numbers in pandas: it would decide how all are published.
            raise DataError(
                "a pandas column holds floats, as whole numbers with missing values do; "
                'convert it with .astype("Int64") or .astype("Float64")'
            )
        return pa.Array.from_pandas(column)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    return pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)


# ---- a column, a table of one, or batches of either ---------------------------------------------------------------


def only_column(data: Any) -> Any:
    """A frame of pandas of one column as that column, and a lazy frame of polars collected; anything else as it is."""
    if library(data) == "polars" and not is_arrow(data) and hasattr(data, "collect"):
        return read(data, data.collect)
    shape: tuple[int, ...] = getattr(data, "shape", ()) if library(data) == "pandas" else ()
    if len(shape) == 2 and shape[1] == 1:
        return data.iloc[:, 0]
    return data


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
    """All batches of lists together: as Arrow where all are, else as Python objects, which have no type to agree on."""
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    lists = [prepare_lists(part) for part in parts]
    if all(map(is_arrow, lists)):
        chunks = [chunk for part in lists for chunk in arrow_chunks(part)]
        return read(parts, lambda: pa.chunked_array(chunks)) if chunks else []
    rows = ((chunk.to_pylist() for chunk in arrow_chunks(part)) if is_arrow(part) else [part] for part in lists)
    return chain.from_iterable(chain.from_iterable(rows))


def _is_column(data: Any) -> bool:
    """Whether this is a whole column or table, not an item."""
    return is_arrow(data) or (library(data) in ("numpy", "pandas") and getattr(data, "ndim", 0) > 0)


def _is_nested(data: Any) -> bool | None:
    kind = type_of(data)
    if kind is not None:
        t = pa.types
        views = t.is_list_view(kind) or t.is_large_list_view(kind)
        return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or views)
    if library(data) == "pandas":
        return None if data.dtype == object else False  # objects may be lists: the unit says whether they are
    return None


def type_of(data: Any) -> pa.DataType | None:
    """The type of a column, or of a table of one, if it has one; else what is in it has types of its own.

    Nothing is read.
    """
    if not _is_column(data):
        return None
    if library(data) == "pandas":
        if data.ndim != 1:
            raise DataError(
                f"expected one column, got a data frame of {data.shape[1]}: name the columns to count with column="
            )
        return None if data.dtype == object or categories_of(data) is not None else pa.Array.from_pandas(data[:0]).type
    if is_polars_objects(data):
        return None
    if isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return data.schema.field(_only_column(data.schema)).type
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return None if pa.types.is_union(data.type) else data.type
    if hasattr(data, "__arrow_c_schema__"):
        return pa.field(data).type
    if library(data) == "polars":
        none = data.head(0).to_arrow()
        return none.schema.field(_only_column(none.schema)).type if isinstance(none, pa.Table) else none.type
    if library(data) == "numpy" and hasattr(data, "dtype") and data.dtype.kind != "O":
        return pa.from_numpy_dtype(data.dtype) if data.dtype.kind not in "UT" else pa.string()
    return None


def _only_column(schema: Any) -> int:
    if len(schema) != 1:
        raise DataError(f"expected one column, got a table of {len(schema)}: name the columns to count with column=")
    return 0


def _columns(data: Any) -> Iterator[Any]:
    """The columns of a table, batch by batch, or the column itself."""
    if isinstance(data, pa.RecordBatchReader):
        return (batch.column(_only_column(batch.schema)) for batch in batches_of_arrow(data))
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return iter([data.column(_only_column(data.schema))])
    if library(data) == "polars" and getattr(data, "shape", ())[1:] == (1,):
        return iter([data.to_series()])
    return iter([data])


def table_of_lists(data: Any, nulls: str) -> tuple[Any, str | None]:
    """A table with a column "item" of lists, one for each person; or of single items, and the column of the persons."""
    lists = prepare_lists(data)
    if is_arrow(lists):
        chunks = list(arrow_chunks(lists)) or [pa.array([], pa.list_(pa.string()))]
        return pa.table({"item": pa.chunked_array(chunks)}), None
    persons: list[int] = []
    items: list[Any] = []
    for person, row in enumerate(lists):
        if row is None:
            if nulls != "skip":
                raise DataError('the column of lists has nulls; pass nulls="skip" to leave those rows out')
            continue
        before = len(items)
        items += row
        persons += [person] * (len(items) - before)
    return {"person": pa.array(persons, pa.int64()), "item": items}, "person"
