"""A stream of items from files of any known format, in bounded batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from discreet import _native
from discreet._later import np, pa
from discreet.errors import DataError, ParameterError
from discreet.events import columns
from discreet.events.inputs import ARROW_FILE_MAGIC, FORMATS, STDIN, ByteSource, expand, format_named
from discreet.events.items import item_of
from discreet.events.keys import Keys
from discreet.events.pages import ColumnPages, MadeBatch

if TYPE_CHECKING:
    from discreet.events.row_query import Bound, Rowwise
    from discreet.events.text import Dialect, Rows, TextReader
    from discreet.events.times import Every

_BLOCKS_OF_A_QUERY = 16  # what a query takes to begin is the same for one row and for many

__all__ = ["FORMATS", "OF_KINDS", "ItemBatches", "Whole", "column_names", "open_stream"]

OF_KINDS = {b"discreet": b"rows of kinds of their own"}
"""The metadata of batches where files may be JSON lines: there every row has a kind of its own."""


@runtime_checkable
class Whole(Protocol):
    """A query of all rows of what it reads, whose result is read instead of files."""

    def result(self, wanted: Sequence[str | None]) -> Iterator[tuple[pa.Array, ...]]:
        """The columns that are asked for, batch by batch; None (the first) is the only one beside the others."""
        ...


class ItemBatches:
    """Batches of items: an iterable of Arrow record batches with a column "item", perhaps "user" and "value".

    Of amounts there is "value" alone.

    No batch has nulls, the items of a batch are of one kind (text, bytes or whole numbers, or lists of these), text is
    valid UTF-8, and no more than a few batches are in memory at a time. It can be gone through once. `bad_rows` counts
    the rows that were left out because they cannot be read; like `bytes_read` it is NOT PRIVATE.

    Attributes:
        side_by_side: Does the tasks that decode, and gives their results in their order: by default one after the
            other, when the next is asked for; `events.ahead.in_order` has threads for it.
        allow_made: Whether batches may be a `MadeBatch` each where items are read from one column alone, for
            summaries that take their columns. They say nothing of `OF_KINDS`.
        when_made: Called with every column that was made, by the thread that made it.
    """

    side_by_side: Callable[[Iterable[Callable[[], Any]]], Generator[Any, None, None]]
    allow_made: bool
    when_made: Callable[[_native.MadeColumn], object]

    def __init__(
        self,
        files: list[str],
        column: str | None,
        user_column: str | None,
        value_column: str | None,
        format: str | None,
        lists: bool | None,
        skip_nulls: bool,
        skip_bad_rows: bool,
        dialect: Dialect | None = None,
        amounts: bool = False,
        joint: Sequence[str] | None = None,
        query: Rowwise | Whole | None = None,
        grouping: Mapping[str, Any] | None = None,
    ) -> None:
        self.files = files
        self.side_by_side, self.allow_made, self.when_made = _one_by_one, False, lambda made: None
        self._dialect, self._query, self._as_read = dialect, query, False
        self._column = column
        others = {"user": user_column, "value": value_column}
        self._by: Sequence[str] = (grouping or {}).get("by", ())
        self._others = [*(joint or ())[1:], *self._by, *(name for name in others.values() if name is not None)]
        names = ["value" if amounts else "item", *(of for of, name in others.items() if name is not None)]
        self._format = format
        self._lists = lists
        # By what is public, the names: which rows come must not decide how those before them were taken.
        unknown = "jsonl" if dialect is None else "csv"
        self._of_kinds = any((format or format_named(file)[0] or unknown) == "jsonl" for file in files)
        self.keys = None if joint is None else Keys(joint, own_kinds=self._of_kinds, **(grouping or {}))
        self._made = columns.ItemColumns(names, skip_nulls, skip_bad_rows, self.keys)
        self._bytes_before = 0
        self._source: ByteSource | None = None
        sizes = [os.stat(file).st_size if file != STDIN and os.path.isfile(file) else None for file in files]
        self.bytes_total = None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def bad_rows(self) -> int:
        """How many rows were left out so far because they cannot be read. NOT PRIVATE."""
        return self._made.bad_rows

    @property
    def first_bad_row(self) -> str | None:
        """Where the first of them was, in a text format. NOT PRIVATE."""
        return self._made.first_bad

    @property
    def bytes_read(self) -> int:
        """How many bytes of the files (as they are, compressed or not) have been taken so far."""
        return self._bytes_before + (self._source.bytes_read if self._source is not None else 0)

    def __iter__(self) -> Iterator[Any]:
        for name, arrays in self._columns():
            if isinstance(arrays, _native.MadeColumn):
                self._made.take(arrays, name)
                if len(arrays):
                    yield MadeBatch(arrays)
                continue
            batch = self._made.batch(arrays, name)
            if batch.num_rows:
                tell_kinds = self._of_kinds and not self._made.joint
                yield batch.replace_schema_metadata(OF_KINDS) if tell_kinds else batch

    def columns_read(self) -> Iterator[tuple[pa.Array, ...]]:
        """The columns as they were read, with their nulls; what JSON lines hold as text."""
        self._as_read = True
        return (arrays for _, arrays in self._columns())

    def _columns(self) -> Iterator[tuple[str, tuple[pa.Array, ...]]]:
        """The columns of every file, with what messages call it."""
        if isinstance(self._query, Whole):
            for arrays in self._query.result([self._column, *self._others]):
                yield "the result of the query", arrays
            return
        for file in self.files:
            self._source = source = ByteSource(file)
            try:
                for arrays in self._arrays(source):
                    yield source.name, arrays
                self._bytes_before += source.bytes_read if source.size is None else source.size
            finally:
                self._source = None
                source.close()

    def _arrays(self, source: ByteSource) -> Iterator[tuple[pa.Array, ...]]:
        format = self._format_of(source)
        self._made.has_schema = format != "jsonl"
        self._made.check_text = format in ("parquet", "arrow")  # the others are read as text, and checked then
        # Each reader is imported when its format is met: pyarrow's parts take their time to load.
        if format == "parquet":
            pages = ColumnPages.of(source, self._column) if self.allow_made and self._one_column else None
            if pages is not None:
                self._made.same_kind(pages.kind, source.name)
                return self._decoded(pages)
            from discreet.events.parquet import read_parquet

            return self._queried(read_parquet(source, self._reads[0], self._reads[1:]), source)
        if format == "arrow":
            from discreet.events.arrow import read_arrow

            return self._queried(read_arrow(source, self._reads[0], self._reads[1:]), source)
        return self._text(source, format)

    def _decoded(self, pages: ColumnPages) -> Iterator[Any]:
        with closing(self._done(pages.tasks())) as columns_of_pages:
            yield from columns_of_pages

    def _done(self, tasks: Iterator[Callable[[], Any]]) -> Generator[Any, None, None]:
        """What the tasks return."""
        return self.side_by_side(partial(self._do, task) for task in tasks)

    def _do(self, task: Callable[[], Any]) -> Any:
        done = task()
        made = done.found if isinstance(done, _Block) else done
        if isinstance(made, _native.MadeColumn):
            self.when_made(made)
        return done

    @property
    def all_made(self) -> bool:
        """Whether every batch is a `MadeBatch`, but for rows that are written in some rare way."""
        read = self.allow_made and self._one_column and not isinstance(self._query, Whole)
        return read and not self._of_kinds  # whose rows may be numbers

    @property
    def _one_column(self) -> bool:
        """Whether items are read from one column as they are."""
        read_alone = not self._others and self._made.names == ["item"]
        alone = read_alone and self._bound is None and not self._as_read
        return alone and (self.keys is None or (len(self.keys.names) == 1 and self.keys.layout is None))

    @cached_property
    def _bound(self) -> Bound | None:
        """The query for the columns that are asked for."""
        query = None if isinstance(self._query, Whole) else self._query
        return None if query is None else query.bound([self._column, *self._others])

    @property
    def _reads(self) -> list[Any]:
        """The columns that are read. Only the first may be None: the only one there is."""
        return [self._column, *self._others] if self._bound is None else list(self._bound.reads)

    def _queried(self, read: Iterator[tuple[pa.Array, ...]], source: ByteSource) -> Iterator[tuple[pa.Array, ...]]:
        """What the query makes of the columns of a table."""
        for arrays in read:
            if self._bound is not None:
                from discreet.events.row_query import of_arrays

                arrays = self._texts(arrays, source)  # a query takes nothing else for text
                arrays, bad = of_arrays(self._bound, arrays)
                self._made.found_bad(bad, f"{source.name} has {columns.UNCOMPUTED}")
            yield arrays

    def _texts(self, arrays: tuple[pa.Array, ...], source: ByteSource) -> tuple[pa.Array, ...]:
        """The rows whose text is UTF-8, in all columns."""
        masks = (columns.readable(array, None, check_text=True) for array in arrays)
        found = [good for good in masks if good is not None]
        if not found:
            return arrays
        good = np.logical_and.reduce(found)
        self._made.found_bad(len(good) - int(good.sum()), f"{source.name} has text that is not valid UTF-8")
        plain = (a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in arrays)
        return tuple(array.filter(pa.array(good)) for array in plain)

    def _format_of(self, source: ByteSource) -> str:
        format = self._format or source.format
        if self._dialect is not None:  # what is said of cells says that there are some
            format = format if format not in (None, "text") or self._format else "csv"
            if format not in ("csv", "tsv"):
                raise ParameterError(f"{source.name} is {format}: a header, delimiter and quote are for csv and tsv")
        return format or _sniff(source, *self._reads)

    def _reader(self, format: str, name: str) -> TextReader:
        """The reader of a text format; that of JSON needs to know its column."""
        from discreet.events import text

        wanted = self._reads
        if format in text.DELIMITERS:
            return text.Delimited(format, name, wanted, self._dialect)
        if format in text.LOG_COLUMNS:
            return text.WebLog(format, name, wanted)
        if format != "jsonl" and any(each is not None for each in wanted):
            raise DataError(
                f"{name} is read as {format}, which has no columns; state its format (a web server's log is 'combined')"
            )
        return text.Baskets() if format == "baskets" else text.Lines()

    def _text(self, source: ByteSource, format: str) -> Iterator[tuple[pa.Array, ...]]:
        """The wanted columns of a text format, block by block."""
        with closing(self._done(self._blocks(source, format))) as blocks:
            yield from self._of_blocks(blocks, source.name)

    def _of_blocks(self, blocks: Iterable[_Block], name: str) -> Iterator[Any]:
        """The columns of blocks that were read, in the order of the file."""
        from discreet.events import text

        bound, numbers = self._bound, self._numbers
        lines = 0  # before the block
        for block in blocks:
            lines += block.passed
            if isinstance(block.found, str):
                self._made.found_bad(1, f"{name} has {block.found}", partial(int, lines + 1))
                lines += block.lines
                continue
            assert block.found is not None
            if isinstance(block.found, _native.MadeColumn):
                if self._made.has_schema:
                    self._made.same_kind("text", name)
                yield block.found
                lines += block.lines
                continue
            rows, reader = block.found, block.reader
            if bound is not None:
                from discreet.events.row_query import of_rows

                of_rows(bound, rows)
            if self._as_read:
                from discreet.events.row_query import texts_of

                rows.columns, rows.values = texts_of(rows), None
            if rows.values is not None:  # a number of JSON, or one that is written as text
                for place in numbers:
                    missing = rows.values[place] == text.NULL
                    rows.values[place] = np.where(missing, text.NULL, text.TEXT).astype(np.uint8)
            there = text.Places(rows, block.data, lines)
            for kind, count in rows.troubles().items():
                self._made.found_bad(count, f"{name} has {reader.trouble(kind)}", partial(there.first, kind))
            for before, arrays in text.typed_runs(rows):
                self._made.line_of = partial(there.line_of_row, before)
                yield arrays
            self._made.line_of = None
            lines += block.lines

    def _blocks(self, source: ByteSource, format: str) -> Iterator[Callable[[], _Block]]:
        """Tasks that read a block of whole records each. What one block says of others is looked at here, in order."""
        from discreet.events import text
        from discreet.events.records import blocks, cuts

        lists, bound, numbers = self._lists, self._bound, self._numbers
        column, *others = self._reads
        reader = self._reader(format, source.name)
        passed = 0  # lines of no block
        if self.allow_made and self._one_column:
            cells = isinstance(reader, text.Delimited)
            pieces: Iterator[Any] = blocks(source, reader.delimiter if cells else None, reader.quote)
        else:
            pieces = cuts(source, reader.delimiter, reader.quote, 1 if bound is None else _BLOCKS_OF_A_QUERY)
        for piece in pieces:
            held = piece if isinstance(piece, _native.TextBlock) else None
            data = b"" if held is not None else piece.data
            begins = reader if isinstance(reader, text.Delimited) and reader.names is None else None
            if held is None and piece.trouble is not None:
                if begins is not None:
                    raise begins.no_header(f"it begins with {piece.trouble}")
                bad = _Block(reader, data, passed, piece.lines, piece.trouble)
                passed = 0
                yield bad.read
                continue
            if begins is not None:
                records = data if held is None else held.records()
                header = begins.after_header(records)
                passed += records.count(b"\n", 0, header)
                if header is None:
                    continue
                data = data[header:]
                if held is not None:
                    held.skip(header)
            if format == "jsonl":
                if held is not None and (column is None or lists is None):
                    data = held.records()
                first = next(text.JsonLines.objects(data), None) if column is None else None
                if first is not None:  # The keys of one line are not a schema: the users' may well come later.
                    around = [key for key in first if not any(other.startswith(f"{key}.") for other in others)]
                    names = list(dict.fromkeys([*around, *others]))
                    column = columns.choose(names, None, others, source.name, show_names=False)[0]
                if lists is None and column is not None:
                    # It is one row that decides then: who publishes says what is there.
                    found = (text.JsonLines.value(value, column) for value in text.JsonLines.objects(data))
                    value = next((value for value in found if value is not None), None)
                    lists = None if value is None else isinstance(value, list)
                # Items and people are checked by what they are; what is computed with, summed, or a time is not.
                roles = () if self._as_read else range(1 + len(self._others))
                plain = [at for at in roles if at not in numbers]
                anything = set(range(1 + len(others))) - {bound.taken[at] if bound else at for at in plain}
                reader = text.JsonLines([column, *others], bool(lists), anything)
            block, passed = _Block(reader, data, passed, held=held), 0
            yield block.read
        if isinstance(reader, text.Delimited) and reader.names is None:
            raise DataError(f"{source.name} is empty: it has no header line")

    @property
    def _numbers(self) -> list[int]:
        """The places of columns that hold numbers or times, also as text."""
        numbers = [len(self._others)] if "value" in self._made.names else []
        if self.keys is not None and self.keys.time is not None:
            numbers.append(1 + self._others.index(self.keys.time))
        return numbers


@dataclass(slots=True)
class _Block:
    """Whole records, and what they hold once they are read, or what is wrong with them.

    `passed` lines come before it that are in no block.
    """

    reader: TextReader
    data: bytes
    passed: int
    lines: int = 0
    found: Rows | _native.MadeColumn | str | None = None
    held: _native.TextBlock | None = None  # in place of the data

    def read(self) -> _Block:
        if self.held is not None:
            made = self.reader.items(self.held)
            if made is None:
                self.data = self.held.records()
            else:
                self.found, self.lines = made
            self.held = None
        if self.found is None:
            self.found = self.reader.rows(self.data)
            self.lines = self.found.lines
        return self


def _one_by_one(tasks: Iterable[Callable[[], Any]]) -> Generator[Any, None, None]:
    return (task() for task in tasks)


def _sniff(source: ByteSource, *names: str | None) -> str:
    """The format of an input whose name does not tell: by its first bytes, or by its first line."""
    head = source.peek(1 << 16)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((ARROW_FILE_MAGIC, b"\xff\xff\xff\xff")):
        return "arrow"
    if head.lstrip().startswith(b"{"):
        return "jsonl"
    column = next((name for name in names if name is not None), None)
    if column is not None:
        line = head.partition(b"\n")[0].strip()
        for format, delimiter in (("tsv", b"\t"), ("csv", b",")):
            if column.encode() in [cell.strip(b'"') for cell in line.split(delimiter)]:
                return format
    return "text"


def column_names(path: str, format: str | None = None, dialect: Dialect | None = None) -> list[str] | None:
    """The columns that a file has; None where each row has its own, or where they are not named."""
    if path == STDIN:
        return None
    stream = ItemBatches([path], None, None, None, format, None, True, True, dialect)
    source = ByteSource(path)
    try:
        found = stream._format_of(source)
        if found == "parquet":
            import pyarrow.parquet

            return list(pyarrow.parquet.read_schema(source.seekable()).names)
        if found == "arrow":
            import pyarrow.ipc

            if source.peek(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC:
                source.read(len(ARROW_FILE_MAGIC))
            return list(pyarrow.ipc.open_stream(pa.PythonFile(source.sequential(), mode="r")).schema.names)
        from discreet.events.records import cuts
        from discreet.events.text import LOG_COLUMNS, Delimited

        if found in LOG_COLUMNS:
            return list(LOG_COLUMNS[found])
        if found in ("csv", "tsv") and (dialect is None or dialect.header):
            reader = Delimited(found, source.name, [], dialect)
            for cut in cuts(source, reader.delimiter, reader.quote):
                if reader.after_header(cut.data) is not None:
                    break
            return reader.names
        return None
    except columns.broken_input() as error:
        reason = columns.unreadable(error, source.name, "cannot be read, or it is damaged")
    finally:
        source.close()
    raise reason


def open_stream(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    column: str | Sequence[str] | None = None,
    user_column: str | None = None,
    value_column: str | None = None,
    format: str | None = None,
    lists: bool | None = None,
    nulls: Literal["error", "skip"] = "error",
    bad_rows: Literal["error", "skip"] = "error",
    dialect: Dialect | None = None,
    amounts: bool = False,
    joint: bool = False,
    query: Rowwise | Whole | None = None,
    by: Sequence[str] = (),
    groups: Sequence[Any] | None = None,
    every: Every | None = None,
) -> ItemBatches:
    """The items of files, patterns and standard input ("-"), one after the other.

    ``column`` holds the items (by default the only column; text files have lines instead); ``user_column`` says
    whose they are; ``value_column`` has numbers, also as text. ``format`` is one of `FORMATS`; by default the file's
    extension tells, or else its first bytes. ``dialect`` says how cells of CSV and TSV are written; None as usual.
    gzip, zstd, bz2 and zip (of one file) are recognised by their first bytes, and so is UTF-16. ``lists`` says whether
    the rows of JSON lines hold lists of items; None lets the first value tell. Nulls raise DataError, or are left out
    with nulls="skip". With ``amounts`` the column holds numbers, also as text, instead of items, and no other column is
    read.
    With ``joint`` several columns may hold the items, and types that no summary knows (dates, decimals): "item" is then
    a key that `ItemBatches.keys` makes columns of again. ``by``, ``groups`` and ``every`` are as for `Keys`.

    With a ``query`` the columns are those of its result, and the rows those that stay (`discreet.engines.sql`).

    A bad row raises DataError, with its line, or is left out with bad_rows="skip" and counted (`bad_rows` of the
    result): an item of more than 4,096 bytes, text that is not UTF-8, a row of CSV with more or fewer cells than the
    header, with a quoted cell that does not end or with a carriage return that ends no line, a line of JSON that is not
    an object with text or a whole number, a line of a log that is not of its format, and any row of more than 64 MiB. A
    file that is damaged as a whole raises DataError. No error contains an item.
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    if nulls not in ("error", "skip"):
        raise ParameterError(f"nulls must be 'error' or 'skip', not {nulls!r}")
    if not joint and not isinstance(column, str | None):
        raise ParameterError("column must be the name of one column")
    items = () if column is None else (column,) if isinstance(column, str) else tuple(column)
    named = [*items, *by, *(name for name in (user_column, value_column) if name is not None)]
    if len({*named}) < len(named):
        raise ParameterError("the columns of groups, items, users and values must be different columns")
    for name in named:
        if not isinstance(name, str) or item_of(name) is None:
            raise ParameterError("the name of a column must be text (Unicode, without lone surrogates)")
    if bad_rows not in ("error", "skip"):
        raise ParameterError(f"bad_rows must be 'error' or 'skip', not {bad_rows!r}")
    if amounts and len(named) > (column is not None):
        raise ParameterError("amounts are read from one column alone")
    return ItemBatches(
        [] if isinstance(query, Whole) else expand(paths),
        items[0] if items else None,
        user_column,
        value_column,
        format,
        lists,
        nulls == "skip",
        bad_rows == "skip",
        dialect,
        amounts,
        (items or ("item",)) if joint else None,
        query,
        {"by": by, "groups": groups, "every": every} if by else None,
    )
