"""Events of a growing file or of standard input, a block at a time, with the position after each row."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import DataError, ParameterError
from discreet.events.columns import readable, without_null_elements
from discreet.events.follow import Followed, Piped, follow
from discreet.events.inputs import BLOCK_BYTES, UTF_8, UTF_16, Cut, Cutter, as_utf8, encoding_named, format_named
from discreet.events.items import DEFAULT_MAX_KEY_BYTES
from discreet.events.row_query import Rowwise, of_rows
from discreet.events.text import (
    BLANK,
    DELIMITERS,
    LOG_COLUMNS,
    NO_TIME,
    NO_VALUE,
    NOT_AN_ITEM,
    ROW,
    TOO_LONG,
    Delimited,
    Dialect,
    TextRows,
    reader_of,
)
from discreet.events.times import seconds_of_column

if TYPE_CHECKING:
    from discreet.events.queues import Queued

Positions = npt.NDArray[np.int64]
_NO_UTF_16 = "{} is written in UTF-16, which cannot be followed as it grows; write UTF-8"


@dataclass
class LiveBatch:
    """Consecutive rows: their values (text in columns "item" and "user", or None if only their number matters), their
    times in seconds where there is a column of them, and the positions of the input before and after each. `there` says
    which rows hold an event and which are blank; None if all hold one."""

    values: pa.RecordBatch | None
    times: npt.NDArray[np.float64] | None
    starts: Positions
    ends: Positions
    there: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.ends)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> LiveBatch:
        """Some of the rows."""
        values = self.values
        if isinstance(rows, slice):
            values = values if values is None else values[rows]
        elif rows.all():
            return self
        else:
            values = values if values is None else values.filter(pa.array(rows))
        times = None if self.times is None else self.times[rows]
        there = None if self.there is None else self.there[rows]
        return LiveBatch(values, times, self.starts[rows], self.ends[rows], there)

    def followed_by(self, other: LiveBatch) -> LiveBatch:
        """These rows and then those."""

        def joined(first: Any, second: Any) -> Any:
            return None if first is None else np.concatenate([first, second])

        return LiveBatch(
            None if self.values is None else pa.concat_batches([self.values, other.values]),
            joined(self.times, other.times),
            joined(self.starts, other.starts),
            joined(self.ends, other.ends),
            joined(self.there, other.there),
        )


class LiveInput:
    """Complete rows of a growing input, from a position on: those of `discreet.events.text`, and of these the events.

    Items are text; a whole number in JSON is its digits, so that what is published has one type whatever the rows are.
    A row without a value in a column that is asked for is bad here (a stream has no `nulls`), and so is an item of more
    than 4,096 bytes, a time that cannot be read, and a user that is blank. A bad row is passed over and counted in
    `bad`, or with `skip_bad=False` reported after the rows before it are handed out. What becomes of a row never
    depends on others. With a `query`, rows for which its condition is not true are like blank lines.

    With `sets` a row holds a set of items: a list in JSON, or a line of baskets; "item" has lists of text then. A list
    with anything but text and whole numbers makes a bad row, and nulls in it are no items.

    Blank lines are passed over. With `keep_blank` (not with a column of times) they are rows without an event, and so
    are rows whose item is blank or null, and bad ones.
    """

    def __init__(
        self,
        file: str,
        format: str | None,
        column: str | None,
        time_column: str | None,
        needs_items: bool,
        keep_blank: bool = False,
        skip_bad: bool = True,
        remark: Callable[[str], None] = lambda message: None,
        user_column: str | None = None,
        dialect: Dialect | None = None,
        query: Rowwise | None = None,
        encoding: str | None = None,
        sets: bool = False,
    ) -> None:
        self.file, self.sets = file, sets
        self.encoding = None if encoding is None else encoding_named(encoding)
        if str(self.encoding).startswith("utf-16"):
            raise ParameterError(_NO_UTF_16.format(file))
        self.dialect, self.query = dialect, query
        self.columns = (column, time_column)
        self.user_column = user_column
        self._time = time_column
        # What a batch has of a row; None is the only column there is beside the others.
        self._values = ({"item": column} if needs_items else {}) | (
            {} if user_column is None else {"user": user_column}
        )
        self._wanted = [*self._values.values(), *([] if time_column is None else [time_column])]
        if len(set(self._wanted)) < len(self._wanted):
            raise ParameterError("items, users and times must be different columns")
        self._bound = None if query is None else query.bound(self._wanted)
        # What is read: the columns that are wanted, and then those that a query takes.
        self._reads: Sequence[str | None] = self._wanted if self._bound is None else self._bound.reads
        self.needs_items = needs_items
        self.keep_blank = keep_blank
        self.skip_bad = skip_bad
        self.topic: str | None = None
        if "://" in file:
            from discreet.events.queues import FORMATS_OF_MESSAGES, topic_of

            self.format, self.topic = format or "jsonl", ":".join(topic_of(file)[::2])
            if self.format not in FORMATS_OF_MESSAGES or dialect is not None:
                raise ParameterError(f"messages of a queue must be {', '.join(FORMATS_OF_MESSAGES)}, one row each")
        else:
            # What the name says, as for files that are whole; else lines of text: what will come cannot be looked at.
            named, compression = format_named(file) if format is None else (format, None)
            if compression is not None:
                raise ParameterError(
                    f"{file!r} looks compressed ({compression}) and cannot be followed as it grows; decompress it"
                )
            self.format = named or "text"
        if dialect is not None and format is None and self.format == "text":
            self.format = "csv"  # what is said of cells says that there are some
        if sets and self.format not in ("jsonl", "baskets"):
            raise ParameterError(f"sets of items must be JSON lists (jsonl) or lines of baskets, not {self.format}")
        if self.format not in ("csv", "tsv", "jsonl", "text", *LOG_COLUMNS) and not sets:
            raise ParameterError(
                f"the input must be csv, tsv, jsonl, text or a web server's log (combined, common) here, "
                f"not {self.format!r}"
            )
        if dialect is not None and self.format not in DELIMITERS:
            raise ParameterError(f"{file} is {self.format}: header, delimiter and quote work with csv and tsv only")
        if self.format in ("text", "baskets") and (query is not None or any([*self.columns, user_column])):
            raise ParameterError("lines of text have no columns; give input_format")
        self.bad: Counter[str] = Counter()  # NOT PRIVATE: for the operator's eyes
        self._remark = remark
        self._source: Piped | Followed | Queued | None = None
        taken = range(len(self._reads)) if self._bound is None else self._bound.taken
        anything = {*range(len(self._reads))}.difference(taken[: len(self._values)])
        reads = [] if self.format in ("text", "baskets") else self._reads
        self._reader = reader_of(self.format, file, reads, dialect, anything, sets)
        self._cutter = Cutter(self._reader.delimiter, self._reader.quote)
        self._begins = True  # whether the next record is the first of a file
        self._first = b""  # what may be the beginning of a byte order mark
        self._ended_open = False  # whether the record before had no newline

    def open(self, position: int, saved: Any = None) -> None:
        """Go to a position, with what was saved for it; standard input goes on with what comes next."""
        saved = saved or {}
        self._source = follow(self.file, self._remark)
        self._source.open(position, saved.get("files"))
        self._cutter = Cutter(self._reader.delimiter, self._reader.quote, position)
        before = self._source.before()
        self._begins, self._first = not before, b""
        self._ended_open = bool(before) and not before.endswith(b"\n")
        if isinstance(self._reader, Delimited):
            if isinstance(saved.get("header"), list):
                self._reader.use([str(name) for name in saved["header"]])
            elif before:  # a state that does not have it
                self._reader.after_header(self._source.beginning(BLOCK_BYTES))

    def saved(self, position: int) -> dict[str, Any]:
        """What `open` needs beside a position."""
        assert self._source is not None
        header = self._reader.names if isinstance(self._reader, Delimited) else None
        return {"files": self._source.saved(position), "header": header}

    @property
    def ended(self) -> bool:
        """Whether nothing more can come."""
        return self._source is not None and self._source.ended

    def close(self) -> None:
        """Let go of the input."""
        if self._source is not None:
            self._source.close()

    def available(self) -> Iterator[LiveBatch]:
        """The complete rows that are there now."""
        assert self._source is not None
        turned = self._source.look()
        if turned == "next":
            yield from self._last()
        elif turned == "cut":
            self._cutter.forget()
            self._first = b""
        self._begins = self._begins or turned is not None
        while True:
            is_first = self._begins and (bool(self._first) or not self._source.before())
            piece = self._source.read(BLOCK_BYTES)
            if not piece:
                break
            if is_first:
                piece, self._first = self._first + piece, b""
                if len(piece) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(piece):
                    self._first = piece
                    continue
                if self.encoding is None and piece.startswith(UTF_16):
                    raise DataError(_NO_UTF_16.format(self.file))
                if self.encoding in (None, UTF_8) and piece.startswith(codecs.BOM_UTF8):
                    piece = self._without_first(piece, len(codecs.BOM_UTF8))
            if self._ended_open:  # the newline of a row that was taken without it
                self._ended_open = False
                ending = re.match(rb"\r?\n", piece)
                if ending:
                    piece = self._without_first(piece, ending.end())
            for cut in self._cutter.cut(piece):
                yield from self._batches(cut)
        if self.ended:
            yield from self._last()

    def _without_first(self, piece: bytes, count: int) -> bytes:
        """A piece without bytes that belong to no record."""
        self._cutter.skip(count)
        return piece[count:]

    def rest(self) -> Iterator[LiveBatch]:
        """What is left without a newline, if it is not to be waited for."""
        yield from self._last()
        self._ended_open = True

    @property
    def lag(self) -> int | None:
        """How many messages of a queue wait to be read; None of files. NOT PRIVATE: for the operator's eyes."""
        return getattr(self._source, "lag", None)

    def more(self) -> bool:
        """Whether another file waits to be read."""
        assert self._source is not None
        return self._source.more()

    def wait(self, seconds: float) -> None:
        """Wait for more rows, at most so long."""
        assert self._source is not None
        self._source.wait(seconds)

    def _last(self) -> Iterator[LiveBatch]:
        piece, self._first = self._first, b""
        for cut in chain(self._cutter.cut(piece), self._cutter.finish()):
            yield from self._batches(cut)

    def _batches(self, cut: Cut) -> Iterator[LiveBatch]:
        """The rows of whole records."""
        if cut.trouble is not None:
            if isinstance(self._reader, Delimited) and self._reader.names is None:
                raise self._reader.no_header(f"it begins with {cut.trouble}")
            self._found(cut.trouble, 1)
            rows = TextRows(np.array([BLANK], np.uint8), np.array([cut.end - cut.start], np.int64), [])
            yield from self._batch(rows, None, cut.start)
            return
        data, start = as_utf8(cut.data, self.encoding), cut.start
        if self._begins and isinstance(self._reader, Delimited):
            skipped = self._reader.after_header(data)
            if skipped is None:
                return
            start += int(_characters(data, skipped)) if len(data) > len(cut.data) else skipped
            data = data[skipped:]
        self._begins = False
        rows = self._reader.rows(data)
        if len(data) > cut.end - start:  # positions are those of the input, where every byte is a character
            rows.ends = _characters(data, rows.ends)
        if self._bound is not None:
            of_rows(self._bound, rows)
        times = self._check(rows)
        troubles = rows.troubles()
        if troubles and not self.skip_bad:
            first = int(np.argmax(rows.kinds > BLANK))
            yield from self._batch(rows.before(first), times, start)
            self._found(self._trouble(int(rows.kinds[first])), 1)
        for kind, count in troubles.items():
            self._found(self._trouble(kind), count)
        yield from self._batch(rows, times, start)

    def _trouble(self, kind: int) -> str:
        lists = "; lists of items need sets" if kind == NOT_AN_ITEM and not self.sets else ""
        return self._reader.trouble(kind) + lists

    def _check(self, rows: TextRows) -> npt.NDArray[np.float64] | None:
        """Leave out the rows that are no events; the times of the others, if there is a column of them."""
        if self.sets:
            rows.leave_out(np.asarray(rows.columns[0].is_null(), np.bool_), BLANK if self.keep_blank else NO_VALUE)
            rows.columns[0] = without_null_elements(rows.columns[0])
        elif self.format == "text" or (self.needs_items and self.keep_blank):
            rows.leave_out(_blank(rows.columns[0]), BLANK)
        if self.user_column is not None:
            rows.leave_out(_blank(rows.columns[len(self._values) - 1]), NO_VALUE)
        for place in range(len(rows.columns) - (self._time is not None)):
            if rows.columns[place].null_count:
                rows.leave_out(np.asarray(rows.columns[place].is_null(), np.bool_), NO_VALUE)
            short = readable(rows.columns[place], DEFAULT_MAX_KEY_BYTES, check_text=False)
            if short is not None:
                rows.leave_out(~short, TOO_LONG)
        if self._time is None:
            return None
        times = seconds_of_column(rows.columns[-1])
        none = np.isnan(times)
        rows.leave_out(none, NO_TIME)
        return times[~none] if none.any() else times

    def _found(self, trouble: str, count: int) -> None:
        if not self.skip_bad:
            raise DataError(f"{self.file} has {trouble}")
        self.bad[trouble] += count

    def _batch(self, rows: TextRows, times: npt.NDArray[np.float64] | None, start: int) -> Iterator[LiveBatch]:
        """Rows as a batch, if there are any."""
        there = rows.kinds == ROW
        count = int(np.count_nonzero(there))
        ends = rows.ends + start
        starts = np.concatenate([[start], ends[:-1]])
        values = None
        if self._values:
            types = [
                pa.large_list(pa.string()) if self.sets and name == "item" else pa.string() for name in self._values
            ]
            found = rows.columns[: len(self._values)] or [pa.array([], each) for each in types]
            values = pa.record_batch(found, names=list(self._values))
        if times is not None:
            times = times[:count]
        if count == len(there):
            if count:
                yield LiveBatch(values, times, starts, ends)
        elif self.keep_blank:
            if values is not None and count:  # any values in the places of those that are not there
                values = values.take(pa.array(np.maximum(np.cumsum(there) - 1, 0)))
            elif values is not None:
                none = [pa.array([[] if pa.types.is_large_list(each) else ""] * len(there), each) for each in types]
                values = pa.record_batch(none, names=values.schema.names)
            yield LiveBatch(values, None, starts, ends, there)
        elif count:
            yield LiveBatch(values, times, starts[there], ends[there])


def _characters(data: bytes, ends: Any) -> Any:
    """How many characters there are up to these places: bytes that begin one."""
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    return np.concatenate([[0], np.cumsum(begins)])[ends]


def _blank(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.equal(pc.ascii_trim_whitespace(column), "").fill_null(True), np.bool_)
