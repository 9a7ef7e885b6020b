"""Rows of text: lines, CSV and TSV, JSON lines. The one definition of a row, for files and for inputs that grow.

A block of whole records becomes the columns that are wanted. Which records hold a row, which are blank and which are
bad depends on each record alone, so nobody can stop a release, or change another row, with one of theirs. CSV and JSON
are read in C++ (`cpp/include/discreet/records.hpp`, `json_lines.hpp`), and all that is read is valid UTF-8.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.errors import DataError
from discreet.events.columns import is_utf8
from discreet.events.items import DEFAULT_MAX_KEY_BYTES

__all__ = ["DELIMITERS", "Delimited", "JsonLines", "Lines", "Rows", "TextReader", "typed_runs"]

DELIMITERS = {"csv": ",", "tsv": "\t"}

# What a record is. Those before the troubles are as `_native` has them.
ROW, BLANK, CELLS, UNREADABLE, NOT_TEXT, NOT_AN_ITEM, TOO_LONG, NO_VALUE, NO_TIME = range(9)
# What a value of JSON is; of a list, its elements (NUMBER: it has none). Up to LARGE they are items.
NULL, TEXT, INTEGER, LARGE, NUMBER, OTHER = range(6)
_TROUBLES = {
    CELLS: "a row with another number of cells than its header",
    NOT_TEXT: "text that is not valid UTF-8",
    NOT_AN_ITEM: "an item that is neither text nor a whole number",
    TOO_LONG: f"an item of more than {DEFAULT_MAX_KEY_BYTES} bytes",
    NO_VALUE: "a row without a value in a column asked for",
    NO_TIME: "a time that is neither seconds since 1970 nor ISO 8601, in the years 1 to 9999",
}
_TYPES = {TEXT: pa.string(), INTEGER: pa.int64(), LARGE: pa.uint64()}

Kinds = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Rows:
    """What the records of a block hold: the kind of each, where it ends, and of the rows the wanted columns.

    A value that is not there (an empty cell without quotes, a key that is missing, a null) is null. `values` are the
    kinds of the values where each has one of its own: then the columns are text, of whole numbers their digits.
    """

    kinds: Kinds
    ends: npt.NDArray[np.int64]
    columns: list[Any]
    values: list[Kinds] | None = None

    def leave_out(self, bad: Mask, kind: int) -> None:
        """Some of the rows are of another kind."""
        if not bad.any():
            return
        self.kinds[np.flatnonzero(self.kinds == ROW)[bad]] = kind
        good = pa.array(~bad)
        self.columns = [column.filter(good) for column in self.columns]
        if self.values is not None:
            self.values = [kinds[~bad] for kinds in self.values]

    def before(self, record: int) -> Rows:
        """The rows of the first records, without the kinds of their values."""
        kinds = self.kinds[:record]
        count = int(np.count_nonzero(kinds == ROW))
        return Rows(kinds, self.ends[:record], [column[:count] for column in self.columns])

    def troubles(self) -> dict[int, int]:
        """How many records are bad, by their kind. NOT PRIVATE."""
        return {kind: count for kind, count in enumerate(np.bincount(self.kinds).tolist()) if kind > BLANK and count}


class TextReader:
    """What the readers of text share; `rows` reads a block of whole records."""

    delimiter: str | None = None
    unreadable = ""  # what a record is that cannot be read at all

    def trouble(self, kind: int) -> str:
        """What is wrong with records of this kind. It tells nothing about what is in them."""
        return self.unreadable if kind == UNREADABLE else _TROUBLES[kind]

    def rows(self, block: bytes) -> Rows:
        """What the records of a block hold."""
        raise NotImplementedError


class Lines(TextReader):
    """Every line is one item; an empty line is the empty string."""

    def rows(self, block: bytes) -> Rows:
        raw, ends = _line_bytes(block)
        lines, valid = _as_text(raw)
        kinds = np.zeros(len(ends), np.uint8)
        if valid is not None:
            kinds[~valid] = NOT_TEXT
        return Rows(kinds, ends, [lines])


def _as_text(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """The bytes that are UTF-8 as text, and which of them these were; None if all are."""
    with suppress(pa.ArrowInvalid):
        return values.cast(pa.large_string() if pa.types.is_large_binary(values.type) else pa.string()), None
    valid = np.fromiter((is_utf8(value) for value in values), np.bool_, len(values))
    return _as_text(values.filter(pa.array(valid)))[0], valid


def _line_bytes(block: bytes) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    r"""The lines of a block as bytes, and where each ends. They do in \n or \r\n, the last one perhaps in neither.

    An Arrow array of bytes is its characters without separators and the offset of each line in them. Dropping the
    newlines moves line i to the left by the i newlines before it.
    """
    length = len(block)
    if not block.endswith(b"\n"):
        block += b"\n"
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    positions = np.minimum(ends, length)
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(1, len(ends) + 1)
    characters = block.replace(b"\n", b"")
    lines = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(characters)])
    return lines, positions


class Delimited(TextReader):
    """CSV and TSV with a header line. Cells are text as written; an empty cell without quotes is a null."""

    def __init__(self, format: str, name: str, choice: Callable[[list[str]], Sequence[str]]) -> None:
        self.delimiter: str = DELIMITERS[format]
        self.unreadable = f"a row that cannot be read as {format.upper()}"
        self.names: list[str] | None = None  # in the header, once it was read
        self._name, self._choice = name, choice
        self._columns: list[int] = []

    def use(self, names: list[str]) -> None:
        """Read the cells under these names; `choice` says which of them are wanted."""
        places = {name: place for place, name in enumerate(self._choice(names))}
        self.names, self._columns = names, [places.get(name, -1) for name in names]

    def after_header(self, block: bytes) -> int | None:
        """How many bytes at the start of a file are no rows: blank lines and the header. None if that is all so far.

        If a header is known, the file may begin with it once more, or go on without one.
        """
        start = 0
        ends: list[int] = np.frombuffer(_native.record_ends(block, ord(self.delimiter), 0)[0], np.int64).tolist()
        for end in [*ends, len(block)]:
            record = block[start:end]
            if record.strip():
                names = self._cells(record)
                if self.names is None:
                    if names is None:
                        raise DataError(f"{self._name} does not begin with a header line")
                    self.use(names)
                    return end
                return end if names == self.names else start
            start = end
        return None

    def _cells(self, record: bytes) -> list[str] | None:
        text = record.removeprefix(codecs.BOM_UTF8).decode(errors="surrogateescape")
        with suppress(csv.Error):
            return next(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter), [])
        return None

    def rows(self, block: bytes) -> Rows:
        kinds, ends, found = _native.delimited_rows(block, ord(self.delimiter), self._columns)
        columns = [_array(pa.binary(), *buffers) for buffers in found]
        texts = [_as_text(column) for column in columns]
        rows = Rows(np.frombuffer(kinds, np.uint8).copy(), np.frombuffer(ends, np.int64), columns)
        masks = [valid for _, valid in texts if valid is not None]
        if masks:
            rows.leave_out(~np.logical_and.reduce(masks), NOT_TEXT)
            texts = [_as_text(column) for column in rows.columns]
        rows.columns = [text for text, _ in texts]
        return rows


class JsonLines(TextReader):
    """One object a line. A key that is missing is a null. None is the only key of a line beside the others.

    Items (and users) are text and whole numbers of 64 bits or, with `lists`, lists of one kind of these. `number` is
    the place of a column that may hold anything, for the caller to read as a time or an amount: as text, which is empty
    where there is neither text nor a number.
    """

    unreadable = "a line that is not a JSON object"

    def __init__(self, wanted: Sequence[str | None], lists: bool = False, number: int | None = None) -> None:
        self._wanted, self._lists, self._number = list(wanted), lists, number

    def rows(self, block: bytes) -> Rows:
        kinds, ends, found, list_kinds, list_offsets = _native.json_rows(block, self._wanted, self._lists)
        columns = [_array(pa.string(), *buffers) for buffers in found]
        values = [np.frombuffer(value_kinds, np.uint8) for value_kinds, _, _ in found]
        if self._lists:
            values[0] = np.frombuffer(list_kinds, np.uint8)
            offsets = pa.array(np.frombuffer(list_offsets, np.int32))
            columns[0] = pa.ListArray.from_arrays(offsets, columns[0], mask=pa.array(values[0] == NULL))
        rows = Rows(np.frombuffer(kinds, np.uint8).copy(), np.frombuffer(ends, np.int64), columns, values)
        for place in range(len(values)):
            if place != self._number:
                assert rows.values is not None
                most = NUMBER if self._lists and place == 0 else LARGE
                rows.leave_out(rows.values[place] > most, NOT_AN_ITEM)
        return rows

    @staticmethod
    def objects(block: bytes) -> Iterator[dict[str, Any]]:
        """The objects of a block, one by one: for a look at the first."""
        for line in block.split(b"\n"):
            with suppress(ValueError, RecursionError):
                value = json.loads(line.decode())
                if isinstance(value, dict):
                    yield value


def typed_runs(rows: Rows) -> Iterable[tuple[pa.Array, ...]]:
    """The columns as what their values are. Rows stay in their order, and a column of a run is of one kind."""
    if rows.values is None:
        return [tuple(rows.columns)]
    known = [_filled(kinds) for kinds in rows.values]
    changes = np.zeros(max(0, len(known[0]) - 1), np.bool_)
    for kinds in known:
        changes |= kinds[1:] != kinds[:-1]
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    return (  # one after the other: there may be as many as rows
        tuple(_typed(column[first:last], int(kinds[first])) for column, kinds in zip(rows.columns, known, strict=True))
        for first, last in zip(starts, [*starts[1:], len(known[0])], strict=True)
        if first < last
    )


def _filled(kinds: Kinds) -> Kinds:
    """The kinds with those of the value before where there is none, and at the start that of the first."""
    known = (kinds != NULL) & (kinds != NUMBER)
    if known.all() or not known.any():
        return kinds
    last = np.maximum.accumulate(np.where(known, np.arange(len(kinds)), -1))
    return kinds[np.where(last < 0, np.argmax(known), last)]


def _typed(column: pa.Array, kind: int) -> pa.Array:
    wanted = _TYPES.get(kind, pa.string())
    if not pa.types.is_list(column.type):
        return column if wanted == pa.string() else column.cast(wanted)
    # Not cast as it is: a list column has the elements of all rows, also of those that are not in this run.
    lengths = np.asarray(column.value_lengths().fill_null(0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, column.flatten().cast(wanted), mask=column.is_null())


def _array(data_type: pa.DataType, kinds: bytes, offsets: bytes, data: bytes) -> pa.Array:
    """The column of native buffers."""
    there = np.frombuffer(kinds, np.uint8) != NULL
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(data_type, len(there), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
