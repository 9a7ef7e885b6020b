"""Files of any known format as events: their rows, in bounded batches, read ahead by threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet import _native
from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import DataError, ParameterError
from discreet.events import inputs
from discreet.events.ahead import in_order, read_ahead
from discreet.events.assembly import Events, Rows, Wanted, Whole
from discreet.events.inputs import (
    ARROW_FILE_MAGIC,
    DATABASE,
    FORMATS,
    STDIN,
    ByteSource,
    encoding_named,
    expand,
    format_named,
    open_input,
    scheme_of,
    size_of_input,
)
from discreet.events.items import UNCOMPUTED, broken_input, choose, readable, unreadable
from discreet.events.keys import Keys

if TYPE_CHECKING:
    from discreet.events.databases import DatabaseTable
    from discreet.events.lookup import Lookup
    from discreet.events.one_pass import OnePass
    from discreet.events.row_query import Rowwise
    from discreet.events.text import Dialect, TextReader, TextRows

_BLOCKS_OF_A_QUERY = 4  # what a query takes to begin is the same for one row and for many

_TABLES = ("parquet", "arrow", "table")  # formats with a schema
TEXTS = tuple(format for format in FORMATS if format not in _TABLES)


class Files(Events):
    """The rows of files, patterns and standard input ("-"), one file after the other.

    gzip, zstd, bz2 and zip (of one file) are recognised by their first bytes, and so is UTF-16. A bad row is an item of
    more than 4,096 bytes, text that is not UTF-8, a row of CSV with more or fewer cells than the header, with a quoted
    cell that does not end or with a carriage return that ends no line, a line of JSON that is not an object with text
    or a whole number, a line of a log that is not of its format, and any row of more than 64 MiB. A file that is
    damaged as a whole raises DataError. No error contains an item, and that of a bad row has its line.

    Args:
        paths: Files and patterns; of a query that names its own, none.
        format: One of `FORMATS`; by default the file's extension tells, or else its first bytes.
        dialect: How cells of CSV and TSV are written; None as usual.
        query: Its rows and columns are taken in place of those of the files (`engines.sql`): each row by itself, or
            as a `Whole`.
        encoding: What text is written in; None for UTF-8, or UTF-16 with a byte order mark.
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        format: str | None = None,
        dialect: Dialect | None = None,
        query: Rowwise | Whole | None = None,
        encoding: str | None = None,
    ) -> None:
        if format is not None and format not in FORMATS:
            raise ParameterError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
        self.format, self.dialect, self.query = format, dialect, query
        self.encoding = None if encoding is None else encoding_named(encoding)
        self.lookup: Lookup | None = None
        self.files = query.reading(paths).files if isinstance(query, Whole) else expand(paths)
        _native.keep_freed_memory()
        self.passes: list[OnePass] = []  # that several counts share, while they do; copies have the same list

    def with_lookup(self, lookup: Lookup) -> Files:
        if isinstance(self.query, Whole):
            raise ParameterError("lookup cannot be combined with this query; join the public table in the query")
        same = copy(self)
        same.lookup = lookup
        return same

    def says_lists(self, column: str | None = None) -> bool | None:
        return True if self.format == "baskets" else None

    def makes_keys(self, columns: Sequence[str]) -> bool:
        return True  # files tell their types when they are read

    def all_rows(self, *, where: Rowwise | None = None, nulls: str = "error", bad_rows: str = "skip") -> Rows:
        whole = isinstance(self.query, Whole)  # of its result any column will do, which is known when it is there
        column = None if whole else self._any_column()
        rows = self.rows(column, where=where, nulls=nulls, bad_rows=bad_rows, plain=True)
        assert isinstance(rows, FileRows)
        rows.as_read = whole or column is not None
        return rows

    def _any_column(self) -> str | None:
        """A column to count all rows by, since each has all of them; None where none is, or can be, known."""
        named = getattr(self.query, "names", None)  # of the result
        if named is not None:
            return str(next(iter(named)))
        if self.files[0] == STDIN:
            return None
        if self.dialect is not None and not self.dialect.header:
            return "1"
        if (self.format or format_named(self.files[0])[0]) == "jsonl":
            return "1"  # a key that is missing is a null
        names = self.column_names()
        return names[0] if names else None

    def rows_wanted(self, wanted: Wanted) -> FileRows:
        return FileRows(self, wanted)

    def format_of(self, source: Any, names: Iterable[str | None]) -> str:
        """What one of the files holds: as it was said, or as its name or its beginning tells."""
        found = self.format or source.format
        if source.format == "table" and (self.format or self.dialect or self.encoding):
            raise ParameterError(f"{source.name} is a table; format, delimiter and encoding work with files only")
        if self.dialect is not None:  # what is said of cells says that there are some
            found = found if found not in (None, "text") or self.format else "csv"
            if found not in ("csv", "tsv"):
                raise ParameterError(
                    f"{source.name} is {found}: header, delimiter and quote work with csv and tsv only"
                )
        found = found or _sniff(source, names)
        if self.encoding is not None and found in _TABLES:
            raise ParameterError(f"{source.name} is {found}: encoding works with text files only")
        return found

    def column_names(self) -> list[str] | None:
        """The columns that the first file has; None where each row has its own, or where they are not named."""
        if self.files[0] == STDIN:
            return None
        source: Any = open_input(self.files[0], self.encoding)
        try:
            found = self.format_of(source, ())
            if found == "table":
                return list(source.names)
            if found == "parquet":
                import pyarrow.parquet

                return list(pyarrow.parquet.read_schema(source.seekable()).names)
            if found == "arrow":
                import pyarrow.ipc

                if source.peek(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC:
                    source.read(len(ARROW_FILE_MAGIC))
                return list(pyarrow.ipc.open_stream(pa.PythonFile(source.sequential(), mode="r")).schema.names)
            from discreet.events.text import LOG_COLUMNS, Delimited, cuts

            if found in LOG_COLUMNS:
                return list(LOG_COLUMNS[found])
            if found in ("csv", "tsv") and (self.dialect is None or self.dialect.header):
                reader = Delimited(found, source.name, [], self.dialect)
                for cut in cuts(source, reader.delimiter, reader.quote):
                    if reader.after_header(cut.data) is not None:
                        break
                return reader.names
            return None
        except broken_input() as error:
            reason = unreadable(error, source.name, "cannot be read, or it is damaged")
        finally:
            source.close()
        raise reason


class FileRows(Rows):
    """The rows of files. `bad_rows` and `bytes_read` are NOT PRIVATE.

    Attributes:
        side_by_side: Does the tasks that decode, and gives their results in their order; None: threads do, where no
            bytes are waited for, and otherwise one after the other is done when the next is asked for.
        as_read: Whether rows count as they were read, with their nulls; what JSON lines hold is text then.
        reads: The columns of the files that are read. Only the first may be None: the only one there is.
        places: Of its columns among those of a pass that it shares (`events.one_pass`).
    """

    def __init__(self, files: Files, wanted: Wanted) -> None:
        super().__init__(wanted)
        if wanted.where is not None and files.query is not None:
            raise ParameterError("where cannot be combined with a query; write the condition in the query")
        self._events, self.files, self._files = files, files.files, files.files
        query: Any = wanted.where or files.query
        if files.lookup is not None:
            query = files.lookup.over(query)
        self._whole: Whole | None = None
        if isinstance(query, Whole):
            how = {"format": files.format, "dialect": files.dialect, "encoding": files.encoding}
            self._whole, query, self._files = query.reading(**how, bad_rows=wanted.bad_rows), None, []
        # By what is public, the names: which rows come must not decide how those before them were taken.
        named = [
            "table" if scheme_of(file) == DATABASE else files.format or format_named(file)[0] for file in self._files
        ]
        self._of_kinds = "jsonl" in named or (None in named and files.dialect is None)
        has_types = not all(format in TEXTS for format in named) or query is not None or self._whole is not None
        several = len(wanted.columns) > 1 or wanted.by or wanted.groups is not None
        if not wanted.plain and not wanted.numbers and (several or has_types):
            items = () if wanted.only_groups else wanted.columns or ("item",)
            self.keys = self._assembler.keys = Keys(
                items, wanted.by, own_kinds=self._of_kinds, groups=wanted.groups, every=wanted.every
            )
        joint = self.keys is not None and self.keys.joint
        names: list[str | None] = [*wanted.columns] or ([] if wanted.only_groups else [None])
        users = [] if wanted.user is None else [wanted.user]
        if wanted.numbers:
            names = [*users, *names]
        else:
            names = [*names, *wanted.by, *users, *([] if wanted.value is None else [wanted.value])]
        # The places of numbers and times, which may be text.
        self._numbers = [len(names) - 1] if "value" in self._assembler.names else []
        if wanted.pairing is not None:
            names = self._assembler.pair(wanted.pairing, names)
            users = []  # pairs have the kind of the person inside
        if self._of_kinds:
            self.tagged = frozenset([*([] if joint else ["item"]), *(["user"] if users else [])])
        self._unwritten = self.tagged
        if self.keys is not None and self.keys.time is not None:
            self._numbers.append(names.index(self.keys.time))
        if self._assembler.time_place is not None:
            self._numbers.append(self._assembler.time_place)
        self._names, self._bound = names, None if query is None else query.bound(names)
        self.reads: list[str | None] = list(names if self._bound is None else self._bound.reads)
        # Whether items are read from one column as they are.
        self._alone = self._assembler.names == ["item"] and len(names) == 1 and not joint
        self._alone = self._alone and self._whole is None and wanted.universe is None
        self._condition = None if self._bound is None else self._bound.of_text
        self._alone = self._alone and (query is None or (self._condition is not None and {*named} <= {"csv", "tsv"}))
        self.side_by_side: Callable[[Iterable[Callable[[], Any]]], Generator[Any, None, None]] | None = None
        self._hash: Callable[[_native.MadeColumn], object] = lambda made: None  # of every column that was made
        self.as_read = self._made = False
        self.places: list[int] = []
        self._bytes_before = 0
        self._source: ByteSource | DatabaseTable | None = None
        sizes = [size_of_input(file) for file in self._files]
        self.bytes_total = None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """How many bytes of the files (as they are, compressed or not) have been taken so far."""
        return self._bytes_before + (self._source.bytes_read if self._source is not None else 0)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for name, arrays in self._read():
            batch = self._assembler.batch(arrays, name)
            if not batch.num_rows:
                continue
            self._good_rows += batch.num_rows
            self.watch(batch.num_rows)
            if self._wanted.universe is None:
                yield batch
                continue
            from discreet.events.universe import as_written

            for part in as_written(batch.column("item"), self._wanted.universe, "skip"):
                yield pa.record_batch([part], names=["item"])

    def items(self) -> Iterator[Any]:
        """The items alone, batch by batch: `MadeColumn`s of native code where one column is read as it is."""
        if not self._alone or self._events.passes:
            coming = super().items()
            yield from coming if self._waits_for_bytes else read_ahead(coming)
            return
        self._made = True
        for name, arrays in self._read():
            column: Any = arrays
            if isinstance(arrays, _native.MadeColumn):
                if arrays.nulls or arrays.bad:
                    self._assembler.take(arrays, name)
            else:
                batch = self._assembler.batch(arrays, name)
                column = batch.column("item") if batch.num_rows else ()
                self._check_lists(column, None)
                del batch
            del arrays
            if len(column):
                self._good_rows += len(column)
                self.watch(len(column))
                yield column
            del column  # before the next one is read

    def columns_read(self) -> Iterator[tuple[pa.Array, ...]]:
        """The columns as they were read, with their nulls; what JSON lines hold as text."""
        self.as_read = True
        for _, arrays in self._read():
            self._good_rows += len(arrays[0])
            self.watch(len(arrays[0]))
            yield arrays

    def number(self) -> int:
        return sum(len(arrays[0]) for arrays in self.columns_read()) if self.as_read else super().number()

    def _columns(self, summary: Any, rules: dict[str, str], max_items: int | None) -> Iterator[Any]:
        coming = self.items() if max_items is None else super()._columns(summary, rules, max_items)
        if self._waits_for_bytes:
            return coming
        # What can be done before counting is done by the threads that read.
        checked = map(partial(summary.checked, **rules), coming)
        if max_items is not None or not self._alone or self.tagged:
            return read_ahead(checked)
        # Nothing is left to do between the threads that read and the one that counts: another would be in their way.
        # (In JSON lines some rows may be numbers, which are not made.)
        self._hash = summary.hash_made
        return checked

    @property
    def _waits_for_bytes(self) -> bool:  # type: ignore[override]
        """On a terminal or a pipe the main thread does, which hears of signals; and of a single block, or of what is
        read for several counts, threads have nothing to read ahead."""
        return self.bytes_total is None or self.bytes_total <= inputs.BLOCK_BYTES or bool(self._events.passes)

    def _read(self) -> Iterator[tuple[str, Any]]:
        """The columns of every file, with what messages call it."""
        if self._whole is not None:
            for arrays in self._whole.result([] if self.as_read and self._names == [None] else self._names):
                yield "the result of the query", arrays
            return
        shared = self._events.passes[0].of(self) if self._events.passes else None
        if shared is not None:
            yield from shared
            return
        for file in self._files:
            self._source = source = open_input(file, self._events.encoding)
            try:
                for arrays in self._arrays(source):
                    yield source.name, arrays
                if source.remote is not None:
                    source.check_not_replaced()
                self._bytes_before += source.bytes_read if source.size is None else source.size
            finally:
                self._source = None
                source.close()

    def _arrays(self, source: Any) -> Iterator[Any]:
        format = self._events.format_of(source, self.reads)
        self._assembler.has_schema = format != "jsonl"
        self._assembler.check_text = format in _TABLES  # the others are read as text, and checked then
        # Items are not made any more where those of a file before had a type that keys are made of.
        self._made = self._made and (self.keys is None or self.keys.layout is None)
        # Each reader is imported when its format is met: pyarrow's parts take their time to load.
        pages = None
        if format == "parquet" and self._made and self._bound is None and source.remote is None:
            from discreet.events.pages import ColumnPages

            pages = ColumnPages.of(source, self._names[0])
        if pages is None and format in _TABLES:
            if format == "parquet" and self._bound is not None:
                yield from self._selected(source)
            else:
                read = self._queried(self._of_table(source, format, self.reads), source)
                yield from read_ahead(read) if self._made and not self._waits_for_bytes else read
            return
        if pages is not None:
            self._assembler.same_kind(pages.kind, source.name)
        tasks = self._blocks(source, format) if pages is None else pages.tasks(self._hash)
        if self.side_by_side is not None:
            done = self.side_by_side(tasks)
        else:
            done = (task() for task in tasks) if self._waits_for_bytes else in_order(tasks)
        with closing(done):
            yield from done if pages is not None else self._of_blocks(done, source.name)

    # ---- a pass that is shared: `events.one_pass` --------------------------------------------------------------------

    @property
    def takes_lists(self) -> bool:
        """Whether items come in lists, or may: of JSON lines, unless somebody owns them, a row would tell."""
        wanted = self._wanted
        single = wanted.user is not None or wanted.numbers or wanted.only_groups or self.as_read
        return wanted.lists is True or (wanted.lists is None and self._of_kinds and not single)

    @property
    def _anything(self) -> set[int]:
        """The columns of JSON lines that are read and may hold anything: what is computed with, summed, or a time.

        Items and people are checked by what they are.
        """
        plain = [] if self.as_read else [at for at in range(len(self._names)) if at not in self._numbers]
        return {*range(len(self.reads))} - {self._bound.taken[at] if self._bound else at for at in plain}

    def shared_reading(self, source: Any, reads: list[str | None]) -> tuple[str, Iterator[Callable[[], Any]]]:
        """The format of a file, and tasks that read blocks of these columns, whatever is made of them."""
        format = self._events.format_of(source, reads)
        if format in _TABLES:
            return format, (partial(tuple, arrays) for arrays in self._of_table(source, format, reads))
        return format, self._blocks(source, format, reads)

    def of_shared(self, source: Any, format: str, blocks: Iterator[Any]) -> Iterator[Any]:
        """Its columns of the blocks of a file that all share."""
        self._assembler.has_schema, self._assembler.check_text = format != "jsonl", format in _TABLES
        self._source = source
        if format in _TABLES:
            mine = (tuple(arrays[place] for place in self.places) for arrays in blocks)
            return self._queried(mine, source)
        return self._of_blocks((block.part(self.places, self._anything) for block in blocks), source.name)

    def _of_table(self, source: Any, format: str, reads: list[str | None]) -> Iterator[tuple[pa.Array, ...]]:
        if format == "table":
            return source.read(reads[0], [str(name) for name in reads[1:]])  # type: ignore[no-any-return]
        if format == "parquet":
            from discreet.events.parquet import read_parquet

            return read_parquet(source, reads[0], [str(name) for name in reads[1:]])
        from discreet.events.arrow import read_arrow

        return read_arrow(source, reads[0], [str(name) for name in reads[1:]])

    def _selected(self, source: Any) -> Iterator[tuple[pa.Array, ...]]:
        """What the query makes of a Parquet file, of which it looks at the columns of its conditions first."""
        from discreet.events.parquet import parquet_batches
        from discreet.events.row_query import of_batch

        assert self._bound is not None
        for batch in parquet_batches(source, self.reads[0], [str(name) for name in self.reads[1:]]):
            yield self._without_bad(of_batch(self._bound, batch), batch.arrays, source)

    def _queried(self, read: Iterator[tuple[pa.Array, ...]], source: Any) -> Iterator[tuple[pa.Array, ...]]:
        """What the query makes of the columns of a table."""
        for arrays in read:
            yield arrays if self._bound is None else self._without_bad(None, partial(tuple, arrays), source)

    def _without_bad(
        self,
        found: tuple[tuple[pa.Array, ...], int] | None,
        arrays: Callable[[], tuple[pa.Array, ...]],
        source: Any,
    ) -> tuple[pa.Array, ...]:
        """What was found, or else is found now in these columns; rows that cannot be computed are bad."""
        if found is None:
            from discreet.events.row_query import of_arrays

            assert self._bound is not None
            found = of_arrays(self._bound, self._texts(arrays(), source))  # it takes nothing else for text
        self._assembler.found_bad(found[1], f"{source.name} has {UNCOMPUTED}")
        return found[0]

    def _texts(self, arrays: tuple[pa.Array, ...], source: Any) -> tuple[pa.Array, ...]:
        """The rows whose text is UTF-8, in all columns."""
        masks = (readable(array, None, check_text=True) for array in arrays)
        found = [good for good in masks if good is not None]
        if not found:
            return arrays
        good = np.logical_and.reduce(found)
        self._assembler.found_bad(len(good) - int(good.sum()), f"{source.name} has text that is not valid UTF-8")
        plain = (a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in arrays)
        return tuple(array.filter(pa.array(good)) for array in plain)

    def _of_blocks(self, blocks: Iterable[_Block], name: str) -> Iterator[Any]:
        """The columns of blocks that were read, in the order of the file."""
        from discreet.events import text

        lines = 0  # before the block
        for block in blocks:
            lines += block.passed
            if isinstance(block.found, str):
                self._assembler.found_bad(1, f"{name} has {block.found}", partial(int, lines + 1))
                lines += block.lines
                continue
            assert block.found is not None
            if isinstance(block.found, _native.MadeColumn):
                if self._assembler.has_schema:
                    self._assembler.same_kind("text", name)
                yield block.found
                lines += block.lines
                continue
            rows, reader = block.found, block.reader
            if self._bound is not None and block.chosen:
                rows.columns = [rows.columns[place] for place in self._bound.taken]
            elif self._bound is not None:
                from discreet.events.row_query import of_rows

                of_rows(self._bound, rows)
            if self.as_read:
                from discreet.events.row_query import texts_of

                rows.columns, rows.values = texts_of(rows), None
            if rows.values is not None:  # a number of JSON, or one that is written as text
                for place in self._numbers:
                    missing = rows.values[place] == text.NULL
                    rows.values[place] = np.where(missing, text.NULL, text.TEXT).astype(np.uint8)
            there = text.Places(rows, block.bytes, lines)
            for kind, count in rows.troubles().items():
                self._assembler.found_bad(count, f"{name} has {reader.trouble(kind)}", partial(there.first, kind))
            for before, arrays in text.typed_runs(rows):
                self._assembler.line_of = partial(there.line_of_row, before)
                yield arrays
            self._assembler.line_of = None
            lines += block.lines

    def _blocks(
        self, source: Any, format: str, reads: list[str | None] | None = None
    ) -> Iterator[Callable[[], _Block]]:
        """Tasks that read a block of whole records each. What one block says of others is looked at here, in order.

        With `reads` it is read for all who share a pass.
        """
        from discreet.events import text

        lists, (column, *others) = self._wanted.lists, self.reads
        wanted = reads or self.reads
        reader = text.reader_of(format, source.name, wanted, self._events.dialect, anything=range(len(wanted)))
        passed = 0  # lines of no block
        cells = isinstance(reader, text.Delimited)
        many = 1 if self._made or (self._bound is None and reads is None) else _BLOCKS_OF_A_QUERY
        by_cells = cells and reads is None and (self._bound is None or self._condition is not None)
        if self._made or by_cells:
            pieces: Iterator[Any] = text.blocks(source, reader.delimiter if cells else None, reader.quote, many)
        else:
            pieces = text.cuts(source, reader.delimiter, reader.quote, many)
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
            if format == "jsonl" and reads is None:
                if held is not None and (column is None or lists is None):
                    data = held.records()
                first = next(text.JsonLines.objects(data), None) if column is None else None
                if first is not None:  # The keys of one line are not a schema: the users' may well come later.
                    around = [key for key in first if not any(str(other).startswith(f"{key}.") for other in others)]
                    beside = [other for other in others if other is not None]
                    names = list(dict.fromkeys([*around, *beside]))
                    column = choose(names, [None, *beside], source.name, show_names=False)[0]
                if lists is None and column is not None and not self.as_read:
                    # It is one row that decides then: who publishes says what is there.
                    found = (text.JsonLines.value(value, column) for value in text.JsonLines.objects(data))
                    value = next((value for value in found if value is not None), None)
                    lists = None if value is None else isinstance(value, list)
                reader = text.JsonLines([column, *others], bool(lists), self._anything)
            block, passed = _Block(reader, data, passed, held=held), 0
            block.hash = self._hash if self._made else None
            block.condition = self._condition
            yield block.read
        if isinstance(reader, text.Delimited) and reader.names is None:
            raise DataError(f"{source.name} is empty: it has no header line")


@dataclass
class _Block:
    """Whole records, and what they hold once they are read, or what is wrong with them.

    `passed` lines come before it that are in no block.
    """

    reader: TextReader
    data: bytes
    passed: int
    lines: int = 0
    found: TextRows | _native.MadeColumn | str | None = None
    held: _native.TextBlock | None = None  # in place of the data
    hash: Callable[[_native.MadeColumn], object] | None = None  # is done to a column that is made; None if none is
    condition: _native.CellCondition | None = None  # which rows are wanted
    chosen: bool = False  # whether only they were found

    def part(self, places: list[int], anything: Container[int]) -> _Block:
        """The same with some of the columns, for one of several who take it; `anything` is as for `JsonLines`."""
        from discreet.events.text import TextRows

        if not isinstance(self.found, TextRows):
            return self
        rows, values = self.found, self.found.values
        mine = None if values is None else [values[place].copy() for place in places]
        part = TextRows(rows.kinds.copy(), rows.ends, [rows.columns[place] for place in places], mine, rows.lines)
        part.leave_out_others(anything)
        return _Block(self.reader, self.data, self.passed, self.lines, part)

    def read(self) -> _Block:
        if self.held is not None and self.hash is not None:
            made = self.reader.items(self.held, self.condition)
            if made is not None:
                self.found, self.lines = made
                self.hash(self.found)
                self.held = None
                return self
        if self.held is not None:
            chosen = self.reader.chosen(self.held, self.condition)
            if chosen is None:
                self.data, self.held = self.held.records(), None
            else:
                self.found, self.chosen = chosen
                self.lines = chosen[0].lines
        if self.found is None:
            self.found = rows = self.reader.rows(self.data)
            self.lines = rows.lines
        return self

    def bytes(self) -> bytes:
        """Of the records."""
        return self.data if self.held is None else self.held.records()


def _sniff(source: Any, names: Iterable[str | None]) -> str:
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
