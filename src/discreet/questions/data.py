"""What a question is asked of: a table or a column of any library, or files. Nothing is read before it is asked for.

Both give the same rows: `items` to count, `owned` rows that say whose they are, `numbers` to rank. How they are read
(a block at a time, ahead, by several threads, hashed on the way) is their own business.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import _native
from discreet.errors import DataError, ParameterError, WordError
from discreet.events.items import (
    batches_of,
    is_arrow,
    item_of,
    library,
    objects_of,
    one_column,
    only_column,
    prepare_column,
    read,
    refuse_elsewhere,
    refuse_single,
    says_lists,
    table_of_lists,
    type_of,
)
from discreet.events.keys import Keys
from discreet.summaries import ShardedMisraGries, Summary

if TYPE_CHECKING:
    from discreet.engines.amounts import Owned
    from discreet.engines.people import TableColumns
    from discreet.engines.sql import Query, WholeQuery
    from discreet.events.files import ItemBatches
    from discreet.events.text import Dialect
    from discreet.events.times import Every

__all__ = ["Data", "DataRows", "Files", "Selection", "Table", "data_of", "different_items", "single_items"]

_WHOSE = (
    "single items do not say whose they are: give a table with column= and user=, or the list of every "
    "person's items; with dc.User(max_items) you vouch that nobody has more rows than that"
)
_STRICT = "{bad_rows} error is for files, and for the top of a table without {user}: here such rows are left out"
_LISTS = "the column holds lists: here a row has one item, so give each item a row, and say whose it is"


@dataclass(frozen=True)
class Selection:
    """Which columns of the data are asked for, and what is done with rows that have no value there.

    Attributes:
        columns: Those that hold an item together; none for the only column there is.
        user: Says whose row it is.
        value: Numbers to add up.
        by: Say the group; that of times first where there are spans.
        groups: All there are, if that is public.
        every: The spans of time.
        joint: Whether items may be of several columns, and of types that no summary knows (`Keys`).
        lists: Whether a row is the list of all that one person has; None where the data tell.
        lists_unless_told: What holds of data that do not tell: an iterable, a column of objects.
        where: Only rows of which this is true.
        nulls: As for questions; so is `bad_rows`.
    """

    columns: tuple[str, ...] = ()
    user: str | None = None
    value: str | None = None
    by: tuple[str, ...] = ()
    groups: Sequence[Any] | None = None
    every: Every | None = None
    joint: bool = True
    lists: bool | None = None
    lists_unless_told: bool = False
    where: str | None = None
    nulls: str = "error"
    bad_rows: str = "skip"

    @property
    def column(self) -> str | None:
        """The only column, for questions that know one."""
        return self.columns[0] if self.columns else None


class DataRows(abc.ABC):
    """The rows that were asked for. They can be gone through once.

    Attributes:
        lists: Whether each is the list of all that one person has.
    """

    lists: bool
    strict: bool = False
    """Whether whatever counts the items has to refuse those that cannot be any; where they are read, it was done."""

    @property
    @abc.abstractmethod
    def keys(self) -> Keys | None:
        """What makes items of several columns, and of groups; None where items are what a column has."""

    @abc.abstractmethod
    def items(self, universe: Any = None) -> Iterator[Any]:
        """Columns of items, or of lists; as elements of the universe, where files have numbers as text."""

    @abc.abstractmethod
    def owned(self) -> TableColumns:
        """Whose row it is, the item and the value, batch by batch."""

    def feed(self, summary: Summary, columns: Iterator[Any], nulls: str, bad_rows: str) -> None:
        """Count columns that came from `items`."""
        if isinstance(summary, ShardedMisraGries):
            summary.update_batches(columns, nulls=nulls, bad_items=bad_rows)
            return
        for each in columns:
            summary.update(each, nulls=nulls, bad_items=bad_rows)
            del each  # before the next one is read


class Data(abc.ABC):
    """What can be wanted."""

    described: Mapping[str, Any] = {}
    """What a charge id stands for beside the question: how it is read, JSON-ready."""
    secret: Mapping[str, Any] = {}
    """The same, of which the ledger keeps digests: names of files."""
    assumed: tuple[str, ...] = ()
    """What the guarantee has to say of how the rows were made."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of that."""
    lists: bool | None = None
    """Whether all rows are lists, one a person; None where that depends on the column."""
    kept: tuple[str, ...] = ()
    """What an answer must not overwrite."""
    has_texts: ClassVar[bool] = False
    """Whether numbers may be written as text."""

    @abc.abstractmethod
    def rows(self, wanted: Selection) -> DataRows:
        """The rows with these columns. Nothing is read yet."""

    @abc.abstractmethod
    def numbers(self, wanted: Selection) -> Owned:
        """The numbers of a column, and whose they are."""

    @abc.abstractmethod
    def number_of_rows(self, wanted: Selection) -> int:
        """How many there are. NOT private."""


def data_of(data: Any) -> Data:
    """Data as they were given: a table, a column, an iterable of items, or `Data` already."""
    return data if isinstance(data, Data) else Table(data)


def different_items(columns: Iterator[Any], nulls: str) -> int:
    """How many different items columns have, in bounded memory. NOT private."""
    from discreet.engines.different import DifferentItems

    with DifferentItems() as found:
        for column in columns:
            found.update(column, nulls)
        return found.count()


def single_items(rows: DataRows, universe: Any = None) -> Iterator[Any]:
    """The columns of items, one a row: lists are refused."""
    if rows.strict:
        raise WordError(_STRICT)
    if rows.lists:
        raise DataError(_LISTS)
    for found in rows.items(universe):
        if _is_list_column(found):
            raise DataError(_LISTS)
        yield found


def _is_list_column(column: Any) -> bool:
    """Whether the type of an Arrow column says that it holds lists."""
    import pyarrow as pa

    return isinstance(column, (pa.Array, pa.ChunkedArray)) and bool(says_lists(column))


# ---- tables ----------------------------------------------------------------------------------------------------------


class Table(Data):
    """A table or a column of Arrow, pandas, polars, DuckDB or NumPy, a dict of columns, or an iterable of items."""

    def __init__(self, data: Any) -> None:
        refuse_elsewhere(data)
        self._data = data

    def _where(self, wanted: Selection) -> Any:
        if wanted.where is None:
            return self._data
        from discreet.engines.sql import filtered

        return filtered(self._data, wanted.where)

    def rows(self, wanted: Selection) -> DataRows:
        from discreet.events.tables import is_column, needs_keys, opened

        if wanted.by and not wanted.columns:
            raise WordError("{by} needs {column}: groups are made of a table")
        table, names = self._where(wanted), wanted.columns
        if names:
            table = opened(table)
            keyed = len(names) > 1 or bool(wanted.by) or (wanted.joint and needs_keys(table, names[0]))
        else:
            table = only_column(table)
            keyed = wanted.joint and is_column(table) and needs_keys({"item": table}, "item")
            if keyed:
                table, names = {"item": table}, ("item",)
        if not keyed:
            return _TableRows(table, wanted)
        if wanted.lists:
            raise ParameterError("several columns hold one item a row: lists of items come in one column")
        return _KeyedRows(table, dataclasses.replace(wanted, columns=names))

    def numbers(self, wanted: Selection) -> Owned:
        from discreet.engines.amounts import amounts_of_table

        if wanted.where is not None and wanted.column is None:
            raise WordError("{where} needs {column}: it chooses rows of a table")
        if wanted.bad_rows == "error":
            raise WordError(_STRICT)
        return amounts_of_table(self._where(wanted), wanted.column, wanted.user)

    def number_of_rows(self, wanted: Selection) -> int:
        """How many rows a table has. No cell of it is read where its length is known."""
        import pyarrow as pa

        from discreet.engines.people import batches_of_arrow
        from discreet.events.tables import as_arrow

        if wanted.bad_rows == "error":
            raise WordError(_STRICT)
        if wanted.columns:
            return sum(_with_a_value(found, wanted.nulls) for found in single_items(self.rows(wanted)))
        table = self._where(wanted)
        if isinstance(table, dict):
            lengths = {len(column) if hasattr(column, "__len__") else -1 for column in table.values()}
            if len(lengths) != 1 or lengths == {-1}:
                raise DataError(f"expected a dict of columns, all of one length; this {type(table).__name__} is none")
            return int(lengths.pop())
        if library(table) in ("pandas", "polars") and len(getattr(table, "shape", ())) == 2:
            return len(table)
        data = as_arrow(table)
        return data.num_rows if isinstance(data, pa.Table) else sum(batch.num_rows for batch in batches_of_arrow(data))


class _TableRows(DataRows):
    """Of one column whose items are what they are, with that of people."""

    def __init__(self, table: Any, wanted: Selection) -> None:
        self._wanted = wanted
        self._table = table
        nested = None if wanted.user is not None else says_lists(self._column)
        unless_told = wanted.lists_unless_told if wanted.lists is None else wanted.lists
        self.lists = unless_told if nested is None else nested
        self.strict = wanted.bad_rows == "error"
        if wanted.lists and not self.lists:
            raise DataError(_WHOSE)

    @cached_property
    def _column(self) -> Any:
        name = self._wanted.column
        return self._table if name is None else _column_of(self._table, name)

    @property
    def keys(self) -> None:
        return None

    @property
    def item_type(self) -> Any:
        """The type of the items where the column has one."""
        return read(self._column, lambda: type_of(self._column))

    def items(self, universe: Any = None) -> Iterator[Any]:
        found = batches_of(self._column, self.lists)
        return found if universe is None else (part for batch in found for part in _known_kinds(batch, universe))

    def owned(self) -> TableColumns:
        from discreet.engines.people import columns_of_table

        wanted = self._wanted
        if self.strict:
            raise WordError(_STRICT)
        if wanted.user is not None:
            if wanted.column is None:
                raise WordError("{user} needs {column}: people are protected in a table")
            return columns_of_table(self._table, wanted.column, wanted.user, wanted.value, wanted.nulls)
        table, person = table_of_lists(one_column(batches_of(self._column, True)), wanted.nulls)
        return columns_of_table(table, "item", person, None, wanted.nulls)


class _KeyedRows(DataRows):
    """Of several columns, of groups, or of items that no summary knows as they are."""

    lists = False

    def __init__(self, table: Any, wanted: Selection) -> None:
        from discreet.events.tables import keyed_batches

        self._wanted = wanted
        self._keys = Keys(wanted.columns, wanted.by, groups=wanted.groups, every=wanted.every)
        names = [*wanted.by, *wanted.columns]
        self._batches = keyed_batches(table, self._keys, names, wanted.user, wanted.value, wanted.bad_rows)

    @property
    def keys(self) -> Keys:
        return self._keys

    def items(self, universe: Any = None) -> Iterator[Any]:
        return (batch.column("item") for batch in self._batches)

    def owned(self) -> TableColumns:
        from discreet.engines.people import columns_of_batches

        return columns_of_batches(self._batches, self._wanted.nulls, None if self._wanted.value is None else "value")


def _with_a_value(column: Any, nulls: str) -> int:
    """How many rows have one."""
    found = prepare_column(column)
    rows: Any = found if is_arrow(found) else list(found)
    missing = rows.null_count if is_arrow(found) else sum(value is None for value in rows)
    if missing and nulls != "skip":
        raise DataError('the column has nulls; nulls="skip" leaves those rows out')
    return len(rows) - int(missing)


def _column_of(table: Any, name: str) -> Any:
    """One column of a table, or of the batches of a reader."""
    import pyarrow as pa

    from discreet.events.tables import as_arrow, names_of_objects

    if names_of_objects(table).count(name) == 1:
        refuse_single(table[name])
        return table[name]  # not as a table: what Arrow makes of objects depends on each of them
    data = as_arrow(table)
    if data.schema.names.count(name) != 1:
        names = ", ".join(map(repr, data.schema.names))
        raise DataError(f"no column named {name!r}; the table has: {names}")
    if isinstance(data, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(
            pa.schema([data.schema.field(name)]), (batch.select([name]) for batch in data)
        )
    return data.column(name)


def _known_kinds(column: Any, universe: Any) -> Iterator[Any]:
    """A column without the objects that can be in no list. It is refused where none of them can be an item at all.

    Dates, decimals and the like are items, of other kinds than those of a list: it is no error that all of them are.
    """
    if (kind := read(column, lambda: type_of(column))) is not None:
        universe.refuse_type(kind)  # by the type, and not by the items
    objects = objects_of(column)
    if objects is None and (is_arrow(column) or library(column) or isinstance(column, _native.MadeColumn)):
        yield column
        return
    from discreet.events.tags import tagged

    refuse_single(column)
    values, odd, useful = iter(column if objects is None else objects), False, False
    while part := list(islice(values, _OBJECTS_AT_ONCE)):
        others = [value for value in part if type(value) not in _KNOWN and item_of(value) is None]
        odd, useful = odd or bool(others), useful or len(others) < len(part) or any(map(tagged, others))
        yield [value for value in part if type(value) in _KNOWN or item_of(value) is not None] if others else part
    if odd and not useful:
        raise DataError("no value of the column can be an item, such as a text or a whole number")


_OBJECTS_AT_ONCE = 1 << 16
_KNOWN = (str, bytes, int, type(None))


# ---- files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files(Data):
    """Files, patterns and standard input ("-"), as `discreet.events` reads them.

    Attributes:
        paths: As they were named.
        format: One of `discreet.events.inputs.FORMATS`; by default the file tells.
        dialect: How cells of CSV and TSV are written.
        query: Of which the rows are read: each comes from one row of the files, or it is a `WholeQuery`.
        watch: Goes through what is read from a stream, and may tell the operator how far it is.
    """

    paths: tuple[str, ...]
    format: str | None = None
    dialect: Dialect | None = None
    query: Query | WholeQuery | None = None
    has_texts: ClassVar[bool] = True
    watch: Callable[[ItemBatches, Iterable[Any]], Iterator[Any]] = field(
        default=lambda stream, of: iter(of), repr=False
    )

    def _read(self, stream: ItemBatches) -> Iterator[Any]:
        return self.watch(stream, stream)

    @cached_property
    def _whole(self) -> WholeQuery | None:
        if self.query is None:
            return None
        from discreet.engines.sql import WholeQuery

        return self.query if isinstance(self.query, WholeQuery) else None

    @property
    def described(self) -> dict[str, Any]:  # type: ignore[override]
        cells = {} if self.dialect is None else self.dialect.asked
        query = {} if self.query is None else {"sql": self.query.text}
        whole = {} if self._whole is None else {"rows_of_the_result_are_the_events": True}
        told = {"input_format": self.format, **cells, **query, **whole}
        return {name: value for name, value in told.items() if value is not None}

    @property
    def secret(self) -> dict[str, Any]:  # type: ignore[override]
        return {"files": list(self.paths)}

    @property
    def lists(self) -> bool | None:  # type: ignore[override]
        return True if self.format == "baskets" else None

    @property
    def assumed(self) -> tuple[str, ...]:  # type: ignore[override]
        if self._whole is None:
            return ()
        from discreet.engines.sql import ASSUMED

        return (ASSUMED,)

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        rows = "Rows are those of the result of the query: what one row of its input changes in them is not bounded."
        return () if self._whole is None else (rows,)

    @property
    def kept(self) -> tuple[str, ...]:  # type: ignore[override]
        import glob

        return tuple(path for name in self.paths for path in (name, *glob.glob(name, recursive=True)))

    def opened(self, wanted: Selection, *, joint: bool = False, amounts: bool = False) -> ItemBatches:
        """The batches with the columns that are asked for."""
        from discreet.events.files import open_stream

        if not joint and len(wanted.columns) > 1:
            raise WordError("{column} is given more than once, and this question takes one")
        query = self.query
        if wanted.where is not None:
            if query is not None:
                raise WordError("{sql} has a WHERE of its own: give it there, and not as {where}")
            from discreet.engines import sql

            query = sql.where(wanted.where)
        _native.keep_freed_memory()
        if self._whole is not None:
            self._whole.reading(self.paths, format=self.format, dialect=self.dialect, bad_rows=wanted.bad_rows)
        stream = open_stream(
            self.paths, column=wanted.columns or None if joint else wanted.column, user_column=wanted.user,
            value_column=wanted.value, format=self.format, lists=wanted.lists, nulls=wanted.nulls,  # type: ignore[arg-type]
            bad_rows=wanted.bad_rows, dialect=self.dialect, amounts=amounts, joint=joint, query=query,  # type: ignore[arg-type]
            by=wanted.by, groups=wanted.groups, every=wanted.every,
        )  # fmt: skip
        if self._whole is not None:
            stream.files = self._whole.files
        return stream

    def rows(self, wanted: Selection) -> DataRows:
        return _FileRows(self, wanted)

    def numbers(self, wanted: Selection) -> Owned:
        from discreet.engines.amounts import amounts_of_batches

        if wanted.user is None:
            return amounts_of_batches(self._read(self.opened(wanted, amounts=True)))
        if wanted.column is None:
            raise WordError("{user} needs {column}, the column of the numbers")
        people = dataclasses.replace(wanted, columns=(wanted.user,), user=None, value=wanted.column)
        return amounts_of_batches(self._read(self.opened(people)))

    def number_of_rows(self, wanted: Selection) -> int:
        """Those with a value in the column that is named; without one all, by any column."""
        if wanted.column is not None:
            return sum(len(batch) for batch in self._read(self.opened(wanted)))
        stream = self.opened(wanted)
        any_column = self._any_column(wanted, stream.files)
        if any_column is None:
            return sum(len(batch) for batch in self._read(stream))
        stream = self.opened(dataclasses.replace(wanted, columns=(any_column,)))
        return sum(len(columns[0]) for columns in self.watch(stream, stream.columns_read()))  # also without a value

    def _any_column(self, wanted: Selection, files: Sequence[str]) -> str | None:
        """A column to count all rows by, since each has all columns; None where there is none, or it is not known."""
        from discreet.events.files import column_names
        from discreet.events.inputs import format_named

        named = None if self.query is None else self.query.names  # of the result
        if named is not None:
            return next(iter(named))
        if files[0] == "-":
            return None
        if self.dialect is not None and not self.dialect.header:
            return "1"
        if (self.format or format_named(files[0])[0]) == "jsonl":
            return "1"  # a key that is missing is a null
        names = column_names(files[0], self.format, self.dialect)
        return names[0] if names else None


class _FileRows(DataRows):
    def __init__(self, files: Files, wanted: Selection) -> None:
        self._wanted, self._files = wanted, files
        self._stream = files.opened(wanted, joint=wanted.joint)
        self.lists = bool(wanted.lists)

    @property
    def keys(self) -> Keys | None:
        return self._stream.keys

    def items(self, universe: Any = None) -> Iterator[Any]:
        from discreet.events.pages import MadeBatch

        self._stream.allow_made = universe is None and not self.lists
        for batch in self._files._read(self._stream):
            items = batch.column("item")
            if isinstance(batch, MadeBatch):
                yield items
                del batch, items  # before the next one is read
                continue
            if _is_list_column(items) and not self.lists:
                raise DataError(_LISTS if self._wanted.lists is None else f"{_LISTS}; or say that the unit is a person")
            if self.lists and not _is_list_column(items):
                raise DataError("the column holds single items: say whose they are (user), or give a column of lists")
            if universe is None:
                yield items
                continue
            from discreet.events.literals import as_written

            yield from as_written(items, universe, "skip")

    def owned(self) -> TableColumns:
        from discreet.engines.people import columns_of_batches

        value = None if self._wanted.value is None else "value"
        return columns_of_batches(self._files._read(self._stream), self._wanted.nulls, value)

    def feed(self, summary: Summary, columns: Iterator[Any], nulls: str, bad_rows: str) -> None:
        if self._stream.bytes_total is not None:
            # Files are read while what was read is counted, and what can be done before counting is done by the threads
            # that read. (Where bytes are waited for, on a terminal or a pipe, the main thread waits: it hears signals.)
            from discreet.events.ahead import files_ahead

            check = partial(summary.checked, nulls=nulls, bad_items=bad_rows)
            columns = files_ahead(self._stream)(columns, summary, check)
        super().feed(summary, columns, nulls, bad_rows)
