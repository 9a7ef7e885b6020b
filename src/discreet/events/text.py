"""Rows of text: lines, CSV and TSV, JSON lines, logs of web servers. The one definition of a row, for files and for
inputs that grow.

The bytes of an input are cut into records (`Cutter`, `cuts`, `blocks`), however they come and however long one is. A
block of whole records becomes the columns that are wanted. Which records hold a row, which are blank and which are
bad depends on each record alone, so nobody can stop a release, or change another row, with one of theirs. CSV, JSON
and logs are read in C++ (`records.hpp`, `json_lines.hpp` and `web_log.hpp` of `cpp/include/discreet/readers`), and all
that is read is valid UTF-8.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from discreet import _native
from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import DataError, DataWordError, ParameterError
from discreet.events import inputs
from discreet.events.arrow_calls import filtered
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, UNCOMPUTED, all_utf8, choose, is_utf8
from discreet.events.times import NOT_A_TIME

if TYPE_CHECKING:
    import numpy.typing as npt

    Kinds = npt.NDArray[np.uint8]
    Mask = npt.NDArray[np.bool_]
    # Of native code: kinds, offsets, bytes, whether all ASCII.
    _Column = tuple[Kinds, npt.NDArray[np.int32], Kinds, bool]

DELIMITERS = {"csv": ",", "tsv": "\t"}
_COMMON = ("ip", "time", "method", "path", "status", "bytes")
LOG_COLUMNS = {"common": _COMMON, "combined": (*_COMMON, "referrer", "agent")}
_WORDS = {"tab": "\t", "\\t": "\t", "space": " ", "none": None}

# What a record is. Those before the troubles are as `_native` has them.
ROW, BLANK, CELLS, UNREADABLE, NOT_TEXT, NOT_AN_ITEM, TOO_LONG, NO_VALUE, NO_TIME, NOT_COMPUTED = range(10)
# What a value of JSON is; of a list, its elements (NUMBER: it has none). Up to LARGE they are items.
NULL, TEXT, INTEGER, LARGE, NUMBER, OTHER = range(6)
_TROUBLES = {
    CELLS: "a row with another number of cells than its header",
    NOT_TEXT: "text that is not valid UTF-8",
    NOT_AN_ITEM: "an item that is neither text nor a whole number",
    TOO_LONG: f"an item of more than {DEFAULT_MAX_KEY_BYTES} bytes",
    NO_VALUE: "a row without a value in a column asked for",
    NOT_COMPUTED: UNCOMPUTED,
    NO_TIME: NOT_A_TIME,
}


@dataclass
class TextRows:
    """What the records of a block hold: the kind of each, where it ends, and of the rows the wanted columns.

    A value that is not there (an empty cell without quotes, a key that is missing, a null) is null. `values` are the
    kinds of the values where each has one of its own: then the columns are text, of whole numbers their digits.
    """

    kinds: Kinds
    ends: npt.NDArray[np.int64]
    columns: list[Any]
    values: list[Kinds] | None = None
    lines: int = 0  # how many newlines the block has

    def leave_out(self, bad: Mask, kind: int | Kinds) -> None:
        """Some of the rows are of another kind, or each of a kind of its own."""
        if not bad.any():
            return
        self.kinds[np.flatnonzero(self.kinds == ROW)[bad]] = kind if isinstance(kind, int) else kind[bad]
        self.columns = [filtered(column, ~bad) for column in self.columns]
        if self.values is not None:
            self.values = [kinds[~bad] for kinds in self.values]

    def leave_out_others(self, anything: Container[int], lists: Container[int] = ()) -> None:
        """Rows with a value that is no item, where values have kinds; these columns may hold `anything`, or lists."""
        for place in range(0 if self.values is None else len(self.values)):
            if place not in anything:
                assert self.values is not None
                self.leave_out(self.values[place] > (NUMBER if place in lists else LARGE), NOT_AN_ITEM)

    def before(self, record: int) -> TextRows:
        """The rows of the first records, without the kinds of their values."""
        kinds = self.kinds[:record]
        count = int(np.count_nonzero(kinds == ROW))
        return TextRows(kinds, self.ends[:record], [column[:count] for column in self.columns])

    def troubles(self) -> dict[int, int]:
        """How many records are bad, by their kind: that of the first of them first. NOT PRIVATE."""
        found = {kind: count for kind, count in enumerate(np.bincount(self.kinds).tolist()) if kind > BLANK and count}
        return dict(sorted(found.items(), key=lambda each: int(np.argmax(self.kinds == each[0]))))


@dataclass(frozen=True)
class Dialect:
    """How cells are written in CSV and TSV.

    Attributes:
        delimiter: Between cells, one ASCII character ("tab" and "space" are words); None is that of the format.
        quote: Around cells that have a delimiter or a newline inside; "none" says that nothing is quoted.
        header: Whether the first line names the columns. Otherwise they are "1", "2", ...
    """

    delimiter: str | None = None
    quote: str | None = '"'
    header: bool = True

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            given = getattr(self, name)
            mark = _WORDS.get(given, given) if isinstance(given, str) else given
            if name == "delimiter" and given is not None and mark is None:
                raise ParameterError("delimiter must be one ASCII character, 'tab' or 'space', not 'none'")
            if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or mark in "\0\r\n" or mark > "\x7f"):
                more = "'tab' or 'space'" if name == "delimiter" else "or 'none'"
                raise ParameterError(f"{name} must be one ASCII character, {more}, not {given!r}")
            object.__setattr__(self, name, mark)
        self.check(self.delimiter)

    def check(self, delimiter: str | None) -> None:
        """Refuse a delimiter, which may be that of the format, that is the quote, too."""
        if delimiter is not None and delimiter == self.quote:
            raise ParameterError("delimiter and quote must be different characters")

    @property
    def asked(self) -> dict[str, object]:
        """What is not as usual, for what was asked for: no quote at all is said, too, as what is None goes unsaid."""
        asked = {"delimiter": self.delimiter, "quote": self.quote or "none", "header": self.header}
        return {name: value for name, value in asked.items() if value != {"quote": '"', "header": True}.get(name)}


def dialect_of(header: bool = True, delimiter: str | None = None, quote: str | None = None) -> Dialect | None:
    """How cells are written, where anything is said about it."""
    if (header, delimiter, quote) == (True, None, None):
        return None
    return Dialect(delimiter, '"' if quote is None else quote or "none", header)


@dataclass(frozen=True)
class Places:
    """In which lines of an input the records of a block are: `before` it there are this many."""

    rows: TextRows
    block: Callable[[], bytes]
    before: int

    def first(self, kind: int) -> int:
        """The line of the first record of a kind."""
        return self._line(int(np.argmax(self.rows.kinds == kind)))

    def line_of_row(self, first: int, row: int) -> int:
        """The line of a row, counted from the first of a run."""
        return self._line(int(np.flatnonzero(self.rows.kinds == ROW)[first + row]))

    def _line(self, record: int) -> int:
        start = int(self.rows.ends[record - 1]) if record else 0
        return self.before + self.block().count(b"\n", 0, start) + 1


class TextReader:
    """What the readers of text share; `rows` reads a block of whole records.

    Where `quote` is not None, records are lines except for newlines inside of quoted cells.
    """

    delimiter: str = ","
    quote: str | None = None
    unreadable = ""  # what a record is that cannot be read at all

    def trouble(self, kind: int) -> str:
        """What is wrong with records of this kind. It tells nothing about what is in them."""
        return self.unreadable if kind == UNREADABLE else _TROUBLES[kind]

    def rows(self, block: bytes) -> TextRows:
        """What the records of a block hold."""
        raise NotImplementedError

    def items(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[_native.MadeColumn, int] | None:
        """The only column, and how many newlines there are, if all rows of a block hold an item; else `rows` tells.

        With a condition, which only cells can be asked, those of the rows for which it holds.
        """
        return None

    def chosen(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[TextRows, bool] | None:
        """The rows without those for which a condition does not hold, and whether it knows that of all of them.

        None where a row cannot be read, or `rows` has to tell.
        """
        return None


class Lines(TextReader):
    """Every line is one item; an empty line is the empty string."""

    def rows(self, block: bytes) -> TextRows:
        raw, ends = _line_bytes(block)
        lines, valid = _as_text(raw)
        kinds = np.zeros(len(ends), np.uint8)
        if valid is not None:
            kinds[~valid] = NOT_TEXT
        return TextRows(kinds, ends, [lines], lines=len(ends))

    def items(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[_native.MadeColumn, int] | None:
        return block.line_items()


def _as_text(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """The bytes that are UTF-8 as text, and which of them these were; None if all are."""
    text = values.view(pa.large_string() if pa.types.is_large_binary(values.type) else pa.string())
    if all_utf8(text):
        return text, None
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


class Baskets(Lines):
    """Every line is what one person has: items with blanks between them. A line of blanks is no row."""

    def rows(self, block: bytes) -> TextRows:
        import pyarrow.compute as pc

        rows = super().rows(block)
        trimmed = pc.ascii_trim_whitespace(rows.columns[0])
        rows.columns = [pc.ascii_split_whitespace(trimmed)]
        rows.leave_out(np.asarray(pc.equal(pc.binary_length(trimmed), 0), np.bool_), BLANK)
        return rows

    def items(self, block: _native.TextBlock, condition: _native.CellCondition | None = None) -> None:
        return None


def _read(kinds: Kinds, ends: npt.NDArray[np.int64], lines: int, found: Sequence[_Column]) -> TextRows:
    """Native rows; those with a wanted column that is not UTF-8 are bad."""
    if all(ascii for *_, ascii in found):
        return TextRows(kinds, ends, [_array(pa.string(), column) for column in found], lines=lines)
    columns = [_array(pa.binary(), column) for column in found]
    texts = [_as_text(column) for column in columns]
    rows = TextRows(kinds, ends, columns, lines=lines)
    masks = [valid for _, valid in texts if valid is not None]
    if masks:
        rows.leave_out(~np.logical_and.reduce(masks), NOT_TEXT)
        texts = [_as_text(column) for column in rows.columns]
    rows.columns = [text for text, _ in texts]
    return rows


class WebLog(TextReader):
    """Lines of a web server: the common log format, or the combined one. All columns are text as written.

    Times are in UTC as ISO 8601 has them, no bytes (a dash) are 0, and the path is all between the method and the
    protocol. A request that has none is bad only where the method or the path is wanted.
    """

    def __init__(self, format: str, name: str, wanted: Sequence[str | None]) -> None:
        self.unreadable = f"a line that is not of the {format} log format"
        self._combined = format == "combined"
        chosen = choose(LOG_COLUMNS[format], wanted, name)
        self._places = [chosen.index(each) if each in chosen else -1 for each in LOG_COLUMNS["combined"]]

    def rows(self, block: bytes) -> TextRows:
        return _read(*_native.web_log_rows(block, self._combined, self._places))

    def items(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[_native.MadeColumn, int] | None:
        return block.web_log_items(self._combined, self._places)


class Delimited(TextReader):
    """CSV and TSV. Cells are text as written; an empty cell without quotes is a null.

    With a header line a row has as many cells as that. Without one it has at least those that are wanted: no row says
    how many the others have.
    """

    def __init__(self, format: str, name: str, wanted: Sequence[str | None], dialect: Dialect | None = None) -> None:
        self.delimiter = DELIMITERS[format]
        self.quote = '"'
        if dialect is not None:
            self.delimiter, self.quote = dialect.delimiter or self.delimiter, dialect.quote
            dialect.check(self.delimiter)
        self._between, self._around = ord(self.delimiter), ord(self.quote or "\0")
        self.unreadable = f"a row that cannot be read as {format.upper()}"
        self.names: list[str] | None = None  # in the header, once it was read
        self._name, self._wanted = name, wanted
        self._columns: list[int] = []
        self._numbered = dialect is not None and not dialect.header
        if self._numbered:
            self.use(_numbers(wanted, name))

    def trouble(self, kind: int) -> str:
        if kind == CELLS and self._numbered:
            return "a row with fewer cells than the columns wanted"
        return super().trouble(kind)

    def use(self, names: list[str]) -> None:
        """Read the cells under these names."""
        missing = [name for name in self._wanted if name is not None and name not in names]
        if missing and len(names) == 1:
            between = {",": "a comma", "\t": "a tab", " ": "a blank"}.get(self.delimiter, repr(self.delimiter))
            raise DataError(
                f"{self._name} has no column {missing[0]!r}: split at {between}, its header line is a single cell. "
                "Give the right delimiter, or say that there is no header"
            )
        places = {name: place for place, name in enumerate(choose(names, self._wanted, self._name, show_names=False))}
        self.names, self._columns = names, [places.get(name, -1) for name in names]

    def after_header(self, block: bytes) -> int | None:
        """How many bytes at the start of a file are no rows: blank lines and the header. None if that is all so far.

        If a header is known, the file may begin with it once more, or go on without one. What names the columns is not
        a person's row, so a first record that cannot be a header line is an error: otherwise a file whose lines end
        with carriage returns alone would be nothing but a header.
        """
        if self._numbered:
            return 0
        start = 0
        ends: list[int] = memoryview(_native.record_ends(block, self._between, 0, self._around)[0]).cast("q").tolist()
        for end in [*ends, len(block)]:
            if block[start:end].strip():
                text = block[start:end].removeprefix(codecs.BOM_UTF8).decode(errors="surrogateescape")
                quoting = {"quoting": csv.QUOTE_NONE} if self.quote is None else {"quotechar": self.quote}
                names, more = None, []  # those of cells after a carriage return that is not quoted and ends no line
                with suppress(csv.Error):
                    cells = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, **quoting)
                    names, more = next(cells, []), list(islice(cells, 1))
                if self.names is None:
                    if names is None:
                        raise self.no_header()
                    if more:
                        raise self.no_header(
                            "its first line has a carriage return inside. Lines end with a newline, or with a carriage "
                            "return and a newline; convert the file first"
                        )
                    self.use(names)
                    return end
                return end if names == self.names and not more else start
            start = end
        return None

    def no_header(self, why: str | None = None) -> DataError:
        """For a file whose first record names no columns."""
        return DataError(f"{self._name} does not begin with a header line" + (f": {why}" if why else ""))

    def rows(self, block: bytes) -> TextRows:
        return _read(*_native.delimited_rows(block, self._between, self._columns, self._around, self._numbered))

    def items(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[_native.MadeColumn, int] | None:
        return block.delimited_items(self._between, self._columns, self._around, self._numbered, condition)

    def chosen(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[TextRows, bool] | None:
        found = block.delimited_rows(self._between, self._columns, self._around, self._numbered, condition)
        return None if found is None else (_read(*found[0]), found[1])


def _numbers(wanted: Sequence[str | None], source: str) -> list[str]:
    """The names of columns without a header, up to the last that is wanted."""
    if any(name is None or not re.fullmatch("[1-9][0-9]{0,4}", name) for name in wanted):
        raise ParameterError(f"{source} has no header line; name its columns by number, 1 for the first")
    return [str(number) for number in range(1, 1 + max((int(name or 0) for name in wanted), default=0))]


class JsonLines(TextReader):
    """One object a line. A key that is missing is a null. None is the only key of a line beside the others.

    Items (and users) are text and whole numbers of 64 bits or, with `lists`, lists of one kind of these. `anything` are
    the places of columns that may hold anything, for the caller to read as times or amounts: as text, which is empty
    where there is neither text, nor a number, nor true or false.
    """

    unreadable = "a line that is not a JSON object"

    def __init__(self, wanted: Sequence[str | None], lists: bool = False, anything: Container[int] = ()) -> None:
        self._wanted, self._lists, self._anything = list(wanted), lists, anything

    def rows(self, block: bytes) -> TextRows:
        (kinds, ends, lines, found), list_kinds, list_offsets = _native.json_rows(block, self._wanted, self._lists)
        columns = [_array(pa.string(), column) for column in found]
        values = [value_kinds for value_kinds, *_ in found]
        if self._lists:
            values[0] = list_kinds
            columns[0] = pa.ListArray.from_arrays(pa.array(list_offsets), columns[0], mask=pa.array(list_kinds == NULL))
        rows = TextRows(kinds, ends, columns, values, lines)
        rows.leave_out_others(self._anything, {0} if self._lists else ())
        return rows

    def items(
        self, block: _native.TextBlock, condition: _native.CellCondition | None = None
    ) -> tuple[_native.MadeColumn, int] | None:
        return None if self._lists else block.json_items(self._wanted[0])

    @staticmethod
    def objects(block: bytes) -> Iterator[dict[str, Any]]:
        """The objects of a block, one by one: for a look at the first."""
        for line in block.split(b"\n"):
            with suppress(ValueError, RecursionError):
                value = json.loads(line.decode())
                if isinstance(value, dict):
                    yield value

    @staticmethod
    def value(found: Any, name: str) -> Any:
        """What an object has under a name, also inside of the objects in it: "user.id"."""
        if not isinstance(found, dict):
            return None
        inside = (JsonLines.value(found[key], name[len(key) + 1 :]) for key in found if name.startswith(f"{key}."))
        return found.get(name, next((value for value in inside if value is not None), None))


def reader_of(
    format: str,
    name: str,
    wanted: Sequence[str | None],
    dialect: Dialect | None = None,
    anything: Container[int] = (),
    lists: bool = False,
) -> TextReader:
    """The reader of a text format, for an input of this name. `anything` and `lists` are as for `JsonLines`."""
    if format in DELIMITERS:
        return Delimited(format, name, wanted, dialect)
    if format in LOG_COLUMNS:
        return WebLog(format, name, wanted)
    if format == "jsonl":
        return JsonLines(wanted, lists, anything)
    if any(each is not None for each in wanted):
        raise DataWordError(
            f"{name} is read as {format}, which has no columns; give its format, such as {{format=combined}} for the "
            "log of a web server"
        )
    return Baskets() if format == "baskets" else Lines()


def typed_runs(rows: TextRows) -> Iterable[tuple[int, tuple[pa.Array, ...]]]:
    """The columns as what their values are, with the number of rows before. Rows stay in their order, and a column of a
    run is of one kind."""
    if rows.values is None:
        return [(0, tuple(rows.columns))]
    known = [_filled(kinds) for kinds in rows.values]
    changes = np.zeros(max(0, len(known[0]) - 1), np.bool_)
    for kinds in known:
        changes |= kinds[1:] != kinds[:-1]
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    return (  # one after the other: there may be as many as rows
        (
            first,
            tuple(_typed(one[first:last], int(kinds[first])) for one, kinds in zip(rows.columns, known, strict=True)),
        )
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
    wanted = {INTEGER: pa.int64(), LARGE: pa.uint64()}.get(kind, pa.string())
    if not pa.types.is_list(column.type):
        return column if wanted == pa.string() else column.cast(wanted)
    # Not cast as it is: a list column has the elements of all rows, also of those that are not in this run.
    lengths = np.asarray(column.value_lengths().fill_null(0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, column.flatten().cast(wanted), mask=column.is_null())


def _array(data_type: pa.DataType, column: _Column) -> pa.Array:
    """The column of native buffers."""
    kinds, offsets, data, _ = column
    there = kinds != NULL
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(data_type, len(kinds), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])


# ---- records, however they come and however long one is ------------------------------------------------------------

_START, _QUOTED = 0, 2  # cells, as `_native.record_bounds` has them
_TOO_LONG = f"a line of more than {inputs.LONGEST_RECORD >> 20} MiB"
_OPEN = "a quoted cell that does not end"


@dataclass(frozen=True)
class Cut:
    """Whole records one after the other, and where they are in the input.

    Of a record that cannot be read nothing is kept but its place and how many `lines` it took, and `trouble` says what
    is wrong with it.
    """

    data: bytes
    start: int
    end: int
    trouble: str | None = None
    lines: int = 1


class Cutter:
    """Cuts pieces of an input into records: lines or, with a quote, lines except for newlines inside of quoted cells.

    What is not yet a whole record waits, at most LONGEST_RECORD bytes of it. A record that is longer is bad, and so is
    one that the input ends inside of. Where it ends is a public rule, too: with the line in which a quote opened what
    does not end, or else with the line that was too long. What becomes of a record depends on its bytes alone, never on
    the pieces that it comes in, and how often a byte is looked at does not grow with the record.
    """

    def __init__(self, delimiter: str = ",", quote: str | None = None, position: int = 0) -> None:
        self._delimiter = delimiter
        self._quote = None if quote is None else quote.encode()
        self.position = position  # of the first byte that is not in a record yet
        self._waiting: list[bytes] = []
        self._length = 0
        self._cell = _START
        self._passing = False  # over the rest of a record that is too long

    def cut(self, piece: bytes) -> Iterator[Cut]:
        """The records that end in this piece."""
        if len(piece) > inputs.LONGEST_RECORD:
            for start in range(0, len(piece), inputs.LONGEST_RECORD):
                yield from self.cut(piece[start : start + inputs.LONGEST_RECORD])
            return
        while piece:
            if self._passing:
                end = piece.find(b"\n") + 1
                self._length += end or len(piece)
                if not end:
                    return
                piece = piece[end:]
                yield self._given_up(self._length, _TOO_LONG)
                continue
            room, cell = inputs.LONGEST_RECORD - self._length, self._cell
            first, last = self._ends(piece)
            if len(piece) > room and not 0 < first <= room:
                self._cell = cell
                self._ends(piece[: room + 1])  # exactly so far
                self._waiting.append(piece[: room + 1])
                again = yield from self._after_opening(_TOO_LONG)
                if again is None:
                    self._length = inputs.LONGEST_RECORD + 1
                    self._waiting, self._cell, self._passing = [], _START, True
                    piece = piece[room + 1 :]
                    if first == room + 1:  # its newline was the byte too many
                        yield self._given_up(self._length, _TOO_LONG)
                    continue
                yield from self._cut_again(again + piece[room + 1 :])
                return
            if last:
                yield self._taken(b"".join([*self._waiting, memoryview(piece)[:last]]))
            self._waiting.append(piece[last:])
            self._length += len(piece) - last
            return

    def finish(self) -> Iterator[Cut]:
        """The last record, which nothing ended: the input has, and there is no more of it."""
        while self._cell == _QUOTED:
            again = yield from self._after_opening(_OPEN)
            if again is None:
                yield self._given_up(self._length, _OPEN)
                return
            yield from self._cut_again(again)
        if self._passing:
            yield self._given_up(self._length, _TOO_LONG)
        elif self._length:
            yield self._taken(b"".join(self._waiting))
        self._cell = _START

    def forget(self) -> None:
        """Give up what is waiting: the rest of it will not come."""
        self._given_up(self._length, "")

    def _ends(self, piece: bytes) -> tuple[int, int]:
        """Where the first and the last record that end in a piece do; 0 if none does."""
        if self._quote is None:
            return piece.find(b"\n") + 1, piece.rfind(b"\n") + 1
        if self._cell == _QUOTED or self._quote in piece:
            first, last, self._cell = _native.record_bounds(piece, ord(self._delimiter), self._cell, ord(self._quote))
            return first, last
        last = piece.rfind(b"\n") + 1
        rest, cell = piece[last:], _START if last else self._cell
        self._cell = _native.record_bounds(rest, ord(self._delimiter), cell, ord(self._quote))[2]
        return piece.find(b"\n") + 1, last

    def _cut_again(self, data: bytes) -> Iterator[Cut]:
        """Cut what has waited, in pieces as small as they come."""
        for start in range(0, len(data), inputs.BLOCK_BYTES):
            yield from self.cut(data[start : start + inputs.BLOCK_BYTES])

    def _after_opening(self, trouble: str) -> Generator[Cut, None, bytes | None]:
        """Give up the lines up to that in which a quote opened what does not end; what comes after it, to be cut again.

        None if nothing is quoted, or that line has not ended. No quote comes after the one that opened, so what is cut
        again is not given up again.
        """
        data = b"".join(self._waiting)
        open_quote = self._cell == _QUOTED and self._quote is not None
        end = data.find(b"\n", data.rfind(self._quote or b"")) + 1 if open_quote else 0
        if not end:
            return None
        yield self._given_up(end, trouble, data.count(b"\n", 0, end))
        return data[end:]

    def _taken(self, data: bytes) -> Cut:
        start, self.position = self.position, self.position + len(data)
        self._waiting, self._length = [], 0
        return Cut(data, start, self.position)

    def _given_up(self, length: int, trouble: str, lines: int = 1) -> Cut:
        """Nothing waits any more; so much of it was a record that cannot be read."""
        start, self.position = self.position, self.position + length
        self._waiting, self._length, self._cell, self._passing = [], 0, _START, False
        return Cut(b"", start, self.position, trouble, lines)


def cuts(
    source: inputs.ByteSource, delimiter: str = ",", quote: str | None = None, blocks: int = 1, piece: bytes = b""
) -> Iterator[Cut]:
    """The records of a piece and all of the file that comes after it; this many blocks of bytes at a time."""
    cutter = Cutter(delimiter, quote)
    yield from cutter.cut(piece)
    while piece := source.read(blocks * inputs.BLOCK_BYTES):
        yield from cutter.cut(piece)
    yield from cutter.finish()


def blocks(
    source: inputs.ByteSource, delimiter: str | None, quote: str | None = None, many: int = 1
) -> Iterator[_native.TextBlock | Cut]:
    """The same in memory that is used again, as long as records are no longer than a block and end before the file.

    Without a delimiter they are lines.
    """
    marks, block, waiting = (ord(delimiter or "\0"), ord(quote or "\0")), None, 0
    size = many * inputs.BLOCK_BYTES
    while waiting <= size:
        block = _native.TextBlock(size, block)
        count = source.read_into(block.room())
        waiting = block.cut(count, count < size, *marks)
        if len(block):
            yield block
        if count < size:
            if not waiting:
                return
            break
    assert block is not None
    yield from cuts(source, delimiter or ",", quote, piece=block.waiting())
