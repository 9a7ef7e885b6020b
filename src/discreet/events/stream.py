"""A stream of items from files of any known format, in bounded batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Literal

import numpy as np
import pyarrow as pa

from discreet.errors import DataError, ParameterError
from discreet.events import columns
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, item_of
from discreet.events.source import ARROW_FILE_MAGIC, STDIN, ByteSource, expand

__all__ = ["FORMATS", "ItemBatches", "open_stream"]

_NAMED = {
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "parquet": ".parquet .pq",
    "arrow": ".arrow .arrows .ipc .feather",
    "jsonl": ".jsonl .ndjson .json",
    "text": ".txt .log",
}
_SUFFIXES = {suffix: format for format, suffixes in _NAMED.items() for suffix in suffixes.split()}
FORMATS = tuple(_NAMED)


class ItemBatches:
    """Batches of items: an iterable of Arrow record batches with a column "item", perhaps "user" and "value".

    No batch has nulls, the items of a batch are of one kind (text, bytes or whole numbers, or lists of these), text is
    valid UTF-8, and no more than a few batches are in memory at a time. It can be gone through once. `bad_rows` counts
    the rows that were left out because they cannot be read; like `bytes_read` it is NOT PRIVATE.
    """

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
    ) -> None:
        self.files = files
        self._column = column
        others = {"user": user_column, "value": value_column}
        self._others = [name for name in others.values() if name is not None]
        self._names = ["item", *(of for of, name in others.items() if name is not None)]
        self._format = format
        self._lists = lists
        self._skip_nulls = skip_nulls
        self._skip_bad_rows = skip_bad_rows
        self.bad_rows = 0
        self._has_schema = True
        self._check_text = False
        self._kind: str | None = None
        self._bytes_before = 0
        self._source: ByteSource | None = None
        sizes = [os.stat(file).st_size if file != STDIN and os.path.isfile(file) else None for file in files]
        self.bytes_total = None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def bytes_read(self) -> int:
        """How many bytes of the files (as they are, compressed or not) have been taken so far."""
        return self._bytes_before + (self._source.bytes_read if self._source is not None else 0)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            self._source = source = ByteSource(file)
            try:
                for arrays in self._arrays(source):
                    batch = self._batch(arrays, source.name)
                    if batch.num_rows:
                        yield batch
                self._bytes_before += source.bytes_read if source.size is None else source.size
            finally:
                self._source = None
                source.close()

    def _arrays(self, source: ByteSource) -> Iterator[tuple[pa.Array, ...]]:
        format = self._format or _SUFFIXES.get(source.suffix) or _sniff(source, self._column, *self._others)
        self._has_schema = format != "jsonl"
        self._check_text = format in ("parquet", "arrow")  # the others are read as text, and checked then
        # Each reader is imported when its format is met: pyarrow's parts take their time to load.
        if format == "parquet":
            from discreet.events.parquet import read_parquet

            return read_parquet(source, self._column, self._others)
        if format == "arrow":
            from discreet.events.arrow import read_arrow

            return read_arrow(source, self._column, self._others)
        return self._text(source, format)

    def _text(self, source: ByteSource, format: str) -> Iterator[tuple[pa.Array, ...]]:
        """The wanted columns of a text format, block by block."""
        from discreet.events import text
        from discreet.events.records import cuts

        name, column, lists = source.name, self._column, self._lists

        def choice(names: list[str]) -> list[str]:
            return columns.choose(names, column, self._others, name, show_names=False)

        reader: text.TextReader = text.Lines()
        if format in text.DELIMITERS:
            reader = text.Delimited(format, name, choice)
        elif format == "text" and (column is not None or self._others):
            raise DataError(f"{name} is read as text lines, which have no columns; state its format")
        for cut in cuts(source, reader.delimiter):
            block = cut.data
            if cut.trouble is not None:
                self._found_bad(1, f"{name} has {cut.trouble}")
                continue
            if isinstance(reader, text.Delimited) and reader.names is None:
                header = reader.after_header(block)
                if header is None:
                    continue
                block = block[header:]
            if format == "jsonl":
                first = next(text.JsonLines.objects(block), None) if column is None else None
                if first is not None:  # The keys of one line are not a schema: the users' may well come later.
                    column = choice(list(dict.fromkeys([*first, *self._others])))[0]
                if lists is None and column is not None:
                    # It is one row that decides then: who publishes says what is there.
                    found = (value.get(column) for value in text.JsonLines.objects(block))
                    value = next((value for value in found if value is not None), None)
                    lists = None if value is None else isinstance(value, list)
                value = len(self._others) if "value" in self._names else None
                reader = text.JsonLines([column, *self._others], bool(lists), value)
            rows = reader.rows(block)
            if "value" in self._names and rows.values is not None:  # a number of JSON, or one that is written as text
                rows.values[-1] = np.where(rows.values[-1] == text.NULL, text.NULL, text.TEXT).astype(np.uint8)
            for kind, count in rows.troubles().items():
                self._found_bad(count, f"{name} has {reader.trouble(kind)}")
            yield from text.typed_runs(rows)
        if isinstance(reader, text.Delimited) and reader.names is None:
            raise DataError(f"{name} is empty: it has no header line")

    def _found_bad(self, number: int, reason: str) -> None:
        """Some rows are bad, for a reason that tells nothing about what is in them."""
        if number and not self._skip_bad_rows:
            raise DataError(reason)
        self.bad_rows += number

    def _batch(self, arrays: tuple[pa.Array, ...], name: str) -> pa.RecordBatch:
        if any(pa.types.is_null(array.type) for array in arrays):
            # A column of which nothing but nulls was seen so far; its type is not known yet.
            if not self._skip_nulls and len(arrays[0]):
                raise _nulls(name)
            return pa.record_batch([], names=[])
        kinds = [columns.kind_of(array.type, lists=position == 0) for position, array in enumerate(arrays)]
        for of, array, kind in zip(self._names, arrays, kinds, strict=True):
            if of == "value":
                if kind != "text" and not columns.is_amount(array.type):
                    raise DataError(f"{name}: values must be numbers, not {array.type}")
            elif kind is None:
                raise DataError(f"{name}: items must be text, bytes or whole numbers, not {array.type}")
        if self._has_schema:  # else every row has a kind of its own, and one row must not decide for others
            self._kind = self._kind or kinds[0]
            if kinds[0] != self._kind:
                raise DataError(f"{name} has items of type {kinds[0]}, after items of type {self._kind}")
        batch = pa.record_batch(list(arrays), names=self._names)
        if any(array.null_count for array in arrays):
            if not self._skip_nulls:
                raise _nulls(name)
            batch = batch.filter(_valid(batch))
        batch = self._readable(batch, name)
        if kinds[0] is not None and kinds[0].startswith("list"):
            lists = batch.column(0)
            if lists.flatten().null_count:
                if not self._skip_nulls:
                    raise _nulls(name)
                batch = batch.set_column(0, "item", columns.without_null_elements(lists))
        return batch

    def _readable(self, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        """The batch without its bad rows: items that are too long, text that is not UTF-8."""
        for position, array in enumerate(batch.columns):
            if self._names[position] == "value":
                continue
            good = columns.readable(array, DEFAULT_MAX_KEY_BYTES if position == 0 else None, self._check_text)
            if good is not None:
                reason = (
                    f"{name} has an item of more than {DEFAULT_MAX_KEY_BYTES} bytes, or text that is not valid UTF-8"
                )
                self._found_bad(len(good) - int(good.sum()), reason)
                if pa.types.is_dictionary(array.type):  # its values must be readable, too
                    batch = batch.set_column(position, batch.field(position).name, array.dictionary_decode())
                batch = batch.filter(pa.array(good))
        return self._with_amounts(batch, name)

    def _with_amounts(self, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        """The batch with values that were text as numbers, without the rows whose value is none."""
        if "value" not in self._names or columns.is_amount(batch.column("value").type):
            return batch
        values, good = columns.amounts(batch.column("value"))
        batch = batch.set_column(batch.num_columns - 1, "value", values)
        if good is None or good.all():
            return batch
        self._found_bad(len(good) - int(good.sum()), f"{name} has a value that is not a number")
        return batch.filter(pa.array(good))


def _valid(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow.compute as pc

    return reduce(pc.and_, (pc.is_valid(column) for column in batch.columns))


def _nulls(name: str) -> DataError:
    return DataError(f"{name} has rows without a value in the column asked for; nulls='skip' leaves them out")


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


def open_stream(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    column: str | None = None,
    user_column: str | None = None,
    value_column: str | None = None,
    format: str | None = None,
    lists: bool | None = None,
    nulls: Literal["error", "skip"] = "error",
    bad_rows: Literal["error", "skip"] = "error",
) -> ItemBatches:
    """The items of files, patterns and standard input ("-"), one after the other.

    ``column`` holds the items (by default the only column; text files have lines instead) and ``user_column`` says
    whose they are; ``value_column`` has numbers, also as text. ``format`` is one of `FORMATS`; by default the file's
    extension tells, or else its first bytes.
    gzip and zstd are recognised by their first bytes. ``lists`` says whether the rows of JSON lines hold lists of
    items; None lets the first value tell. Nulls raise DataError, or are left out with nulls="skip".

    A bad row raises DataError, or is left out with bad_rows="skip" and counted (`bad_rows` of the result): an item of
    more than 4,096 bytes, text that is not UTF-8, a row of CSV with more or fewer cells than the header, with a quoted
    cell that does not end or with a carriage return that ends no line, a line of JSON that is not an object with text
    or a whole number, and any row of more than 64 MiB. A file that is damaged as a whole raises DataError. No error
    contains an item.
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    if nulls not in ("error", "skip"):
        raise ParameterError(f"nulls must be 'error' or 'skip', not {nulls!r}")
    named = [name for name in (column, user_column, value_column) if name is not None]
    if len({*named}) < len(named):
        raise ParameterError("the columns of the items, the users and the values must be different columns")
    for name in (column, user_column, value_column):
        if name is not None and (not isinstance(name, str) or item_of(name) is None):
            raise ParameterError("the name of a column must be text (Unicode, without lone surrogates)")
    if bad_rows not in ("error", "skip"):
        raise ParameterError(f"bad_rows must be 'error' or 'skip', not {bad_rows!r}")
    return ItemBatches(
        expand(paths), column, user_column, value_column, format, lists, nulls == "skip", bad_rows == "skip"
    )
