"""Events of a growing file or of standard input, a block at a time, with the position after each row."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import select
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet._data_class import asdict, dataclass
from discreet.errors import CorruptStateError, DataError, ParameterError
from discreet.events.inputs import BLOCK_BYTES, STDIN, UTF_8, UTF_16, encoding_named, format_named
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, readable, without_null_elements
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
    Cut,
    Cutter,
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

    Attributes:
        source: What is followed, once it is open: `Piped`, `Followed` or `Queued`.
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
        self.source: Any = None
        taken = range(len(self._reads)) if self._bound is None else self._bound.taken
        anything = {*range(len(self._reads))}.difference(taken[: len(self._values)])
        reads = [] if self.format in ("text", "baskets") else self._reads
        self._reader = reader_of(self.format, file, reads, dialect, anything, sets)

    def open(self, position: int, saved: Any = None) -> None:
        """Go to a position, with what was saved for it; standard input goes on with what comes next."""
        saved = saved or {}
        self.source = follow(self.file, self._remark)
        self.source.open(position, saved.get("files"))
        self._cutter = Cutter(self._reader.delimiter, self._reader.quote, position)
        before = self.source.before()
        self._begins = not before  # whether the next record is the first of a file
        self._first = b""  # what may be the beginning of a byte order mark
        self._ended_open = bool(before) and not before.endswith(b"\n")  # whether the record before had no newline
        if isinstance(self._reader, Delimited):
            if isinstance(saved.get("header"), list):
                self._reader.use([str(name) for name in saved["header"]])
            elif before:  # a state that does not have it
                self._reader.after_header(self.source.beginning(BLOCK_BYTES))

    def saved(self, position: int) -> dict[str, Any]:
        """What `open` needs beside a position."""
        header = self._reader.names if isinstance(self._reader, Delimited) else None
        return {"files": self.source.saved(position), "header": header}

    def close(self) -> None:
        """Let go of the input."""
        if self.source is not None:
            self.source.close()

    def available(self) -> Iterator[LiveBatch]:
        """The complete rows that are there now."""
        turned = self.source.look()
        if turned == "next":
            yield from self.rest()
            self._ended_open = False
        elif turned == "cut":
            self._cutter.forget()
            self._first = b""
        self._begins = self._begins or turned is not None
        while True:
            is_first = self._begins and (bool(self._first) or not self.source.before())
            piece = self.source.read(BLOCK_BYTES)
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
                    piece = piece[len(codecs.BOM_UTF8) :]
                    self._cutter.position += len(codecs.BOM_UTF8)  # bytes that belong to no record
            if self._ended_open:  # the newline of a row that was taken without it
                self._ended_open = False
                ending = re.match(rb"\r?\n", piece)
                if ending:
                    piece = piece[ending.end() :]
                    self._cutter.position += ending.end()
            for cut in self._cutter.cut(piece):
                yield from self._batches(cut)
        if self.source.ended:
            yield from self.rest()

    def rest(self) -> Iterator[LiveBatch]:
        """What is left without a newline, if it is not to be waited for."""
        piece, self._first = self._first, b""
        for cut in chain(self._cutter.cut(piece), self._cutter.finish()):
            yield from self._batches(cut)
        self._ended_open = True

    def _batches(self, cut: Cut) -> Iterator[LiveBatch]:
        """The rows of whole records."""
        if cut.trouble is not None:
            if isinstance(self._reader, Delimited) and self._reader.names is None:
                raise self._reader.no_header(f"it begins with {cut.trouble}")
            self._found(cut.trouble, 1)
            rows = TextRows(np.array([BLANK], np.uint8), np.array([cut.end - cut.start], np.int64), [])
            yield from self._batch(rows, None, cut.start)
            return
        data, start = cut.data, cut.start
        if self.encoding not in (None, UTF_8) and not data.isascii():
            # Every byte is a character. What is no character becomes bytes that are not UTF-8: its row is bad.
            data = data.decode(str(self.encoding), "surrogateescape").encode("utf-8", "surrogatepass")
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


class Spool:
    """Rows that wait for their turn: batches under numbers, each number's in the order in which they came. NOT PRIVATE.

    They are in memory as long as they are small, then in a file. It is made without a name in `folder`, for its owner
    alone: nothing is left of it when the process ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._places: dict[int, list[tuple[int, int]]] = {}

    def add(self, number: int, batch: pa.RecordBatch) -> None:
        """Put a batch last among those of this number."""
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(1 << 24, dir=str(self._folder))  # noqa: SIM115
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        place = self._file.seek(0, 2)
        self._file.write(data)
        self._places.setdefault(number, []).append((place, len(data)))

    def take(self, number: int) -> Iterator[pa.RecordBatch]:
        """The batches of this number, which are gone then."""
        for place, length in self._places.pop(number, []):
            assert self._file is not None
            self._file.seek(place)
            with pa.ipc.open_stream(self._file.read(length)) as reader:
                yield from reader
        if not self._places:
            self.close()

    def close(self) -> None:
        """Forget everything."""
        if self._file is not None:
            self._file.close()
        self._file, self._places = None, {}


# ---- what grows: a file through its rotations, as `tail -F` follows it, or a pipe ------------------------------------
#
# Positions count the bytes of the whole input: of a file, and of those that took its name after it, one after the
# other. What was read up to a position is told by it alone, across restarts.

_HEAD = 4096  # bytes that tell a file from others
_LOOK = 1 << 24


def follow(path: str, remark: Callable[[str], None]) -> Piped | Followed | Queued:
    """What follows this path; "-" is standard input. `remark` is told what the operator should know."""
    if path == STDIN:
        return Piped(path)
    if "://" in path:
        from discreet.events.queues import Queued

        return Queued(path, remark)
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise ParameterError(f"{path!r} cannot be opened: {error.strerror}") from error
    return Followed(path, remark) if regular else Piped(path)


class Piped:
    """Standard input or a named pipe: what was read is gone, and it `ended` when its writer closes it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1
        self._room = 0
        self.ended = False

    def open(self, position: int, saved: Any) -> None:
        """It goes on with what comes next."""
        try:
            self._handle = 0 if self._path == STDIN else os.open(self._path, os.O_RDONLY)
        except OSError as error:
            raise ParameterError(f"{self._path!r} cannot be opened: {error.strerror}") from error

    def look(self) -> str | None:
        """See what is there now, for `read`: a bounded piece of what may come for ever."""
        self._room = _LOOK
        return None

    def read(self, size: int) -> bytes:
        """Never waits: a tick may end meanwhile."""
        if self.ended or not self._room or not select.select([self._handle], [], [], 0)[0]:
            return b""
        data = os.read(self._handle, size)
        self.ended = not data
        self._room = max(0, self._room - len(data))
        return data

    def more(self) -> bool:
        """Nobody knows."""
        return False

    def wait(self, seconds: float) -> None:
        """Until the writer has written."""
        select.select([self._handle], [], [], seconds)

    def before(self) -> bytes:
        """What was read is gone."""
        return b""

    def beginning(self, size: int) -> bytes:
        """What was read is gone."""
        return b""

    def saved(self, position: int) -> Any:
        """Nothing: a pipe cannot be read again."""
        return None

    def close(self) -> None:
        """Standard input stays open."""
        if self._handle > 0:
            os.close(self._handle)


@dataclass(frozen=True)
class _File:
    """One of the files of an input: where it begins in it, and what tells it from others."""

    start: int
    device: int
    inode: int
    head: str  # a hash of the first `length` bytes
    length: int

    def is_at(self, status: os.stat_result) -> bool:
        return (self.device, self.inode) == (status.st_dev, status.st_ino)

    def begins(self, handle: int) -> bool:
        """Whether this is what an open file begins with."""
        other = _described(handle, self.start, self.length)
        return (other.head, other.length) == (self.head, self.length)


class Followed:
    """A file by its name. When another file has taken the name, the one that is open is read to its end first.

    A file is known by its inode and by what it begins with; one that is shorter than what was read of it, or that
    begins otherwise, was emptied and is read from its start. When a watch goes on and the name has gone to another
    file, the rest of the first is looked for under the other names of its directory.
    """

    ended = False

    def __init__(self, path: str, remark: Callable[[str], None]) -> None:
        self._path = path
        self._remark = remark
        self._handle = -1
        self._files: list[_File] = []  # the last one is open
        self._next: list[_File] = []  # those after it that were read before a restart
        self._offset = 0  # in it
        self._limit = 0

    def open(self, position: int, saved: Any) -> None:
        """Go to a position, in the file that it is in."""
        files = [] if saved is None else _files_of(saved)
        if position and not files:  # a state that was written before files were told apart
            self._take(self._path, 0)
            if os.fstat(self._handle).st_size >= position:
                self._offset = self._limit = position
                return
            self._files = []
            self._lost()
            self._take(self._path, position)
            return
        if not files:
            self._take(self._path, 0)
            return
        if files[0].start > position:
            raise CorruptStateError("the state does not say which files were read")
        place = next(file for file in reversed(files) if file.start <= position)
        self._next = [file for file in files if file.start > position]
        if not self._find(place, position - place.start):
            self._take(self._path, position)

    def look(self) -> str | None:
        """See what is there now, for `read`: how far the file goes; "next" or "cut" if another file begins here."""
        file, size = self._files[-1], os.fstat(self._handle).st_size
        if size < self._offset or _described(self._handle, file.start, file.length) != file:
            if not self._find(file, self._offset):
                self._take(self._path, file.start + self._offset)
                self._limit = os.fstat(self._handle).st_size
                return "cut"
            size = os.fstat(self._handle).st_size
        if self._next:
            return self._known(self._next[0].start - file.start)
        self._limit = size
        if size > self._offset:
            return None
        try:
            status = os.stat(self._path)
        except OSError:
            return None  # between two files
        if self._files[-1].is_at(status) or not status.st_size:  # an empty one may not be written to yet
            return None
        if os.fstat(self._handle).st_size > self._offset:  # written since, under its old name
            return None
        try:
            self._take(self._path, self._files[-1].start + self._offset)
        except ParameterError:
            return None  # moved away since: another one will come
        self._limit = os.fstat(self._handle).st_size
        return "next"

    def _known(self, length: int) -> str | None:
        """The same for a file that was read to its end once, at this length."""
        self._limit = length
        if length > self._offset:
            return None
        following = self._next.pop(0)
        if not self._find(following, 0):
            self._take(self._path, following.start)
            self._next = []
        self._limit = os.fstat(self._handle).st_size
        if self._next:
            self._limit = self._next[0].start - following.start
        return "next"

    def read(self, size: int) -> bytes:
        """What was there at the last look."""
        data = os.pread(self._handle, min(size, self._limit - self._offset), self._offset)
        self._offset += len(data)
        if not data:
            self._limit = self._offset  # emptied since: the next look finds out
        if self._files[-1].length < min(_HEAD, self._offset):  # it can be known by more of its beginning
            self._files[-1] = _described(self._handle, self._files[-1].start)
        return data

    def more(self) -> bool:
        """Whether the file has grown, or another one has its name."""
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        grown = os.fstat(self._handle).st_size != self._offset
        return grown or bool(self._next) or (status.st_size > 0 and not self._files[-1].is_at(status))

    def wait(self, seconds: float) -> None:
        """A file does not say when it grows."""
        if not self.more():
            time.sleep(seconds)

    def before(self) -> bytes:
        """The last byte that was read of this file."""
        return os.pread(self._handle, 1, self._offset - 1) if self._offset else b""

    def beginning(self, size: int) -> bytes:
        """The first bytes of the file that is open."""
        return os.pread(self._handle, size, 0)

    def saved(self, position: int) -> Any:
        """The files from the one that has this position on; no earlier one will be asked for again."""
        files = [*self._files, *self._next]
        later = [file for file in files if file.start > position]
        before = [file for file in files if file.start <= position]
        self._files = [file for file in self._files if file.start >= before[-1].start]
        return [asdict(file) for file in [*before[-1:], *later]]

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _take(self, path: str, start: int) -> None:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise ParameterError(f"{path!r} cannot be opened: {error.strerror}") from error
        self.close()
        self._handle, self._offset, self._limit = handle, 0, 0
        self._files.append(_described(handle, start))

    def _find(self, file: _File, offset: int) -> bool:
        """Go on in a file wherever it is now; False if it is gone, and what was written to it last with it."""
        name = self._name_of(file, offset)
        if name is None:
            self._lost()
            return False
        self._files = [known for known in self._files if known.start < file.start]
        self._take(name, file.start)
        self._offset = self._limit = offset
        return True

    def _lost(self) -> None:
        self._remark(f"{self._path!r} was emptied or replaced, and the rest of what it held is not there to be read")

    def _name_of(self, file: _File, offset: int) -> str | None:
        """The name that a file has now: its own, or one that it was moved or copied to."""

        def fits(name: str, copied: bool) -> bool:
            try:
                handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                return False
            try:
                status = os.fstat(handle)
                # A copy is known by its beginning alone; a few bytes would be too little.
                known = file.length >= min(_HEAD, offset) > 0 if copied else file.is_at(status)
                return stat.S_ISREG(status.st_mode) and known and status.st_size >= offset and file.begins(handle)
            finally:
                os.close(handle)

        base = Path(self._path).resolve()
        with os.scandir(base.parent) as entries:
            others = sorted((entry.path, entry.inode()) for entry in entries)
        moved = [name for name, inode in others if inode == file.inode]
        copies = [name for name, _ in others if os.path.basename(name).startswith(base.name)]
        for copied, names in ((False, [self._path, *moved]), (True, [self._path, *copies])):
            for name in names:
                if fits(name, copied):
                    return name
        return None


def _described(handle: int, start: int, length: int = _HEAD) -> _File:
    status, data = os.fstat(handle), os.pread(handle, length, 0)
    return _File(start, status.st_dev, status.st_ino, hashlib.sha256(data).hexdigest(), len(data))


def _files_of(saved: Any) -> list[_File]:
    """The files of a state, which is only as good as its bytes."""
    try:
        files = [_File(**file) for file in saved or []]
        if all(type(v) is int for f in files for v in (f.start, f.device, f.inode, f.length)) and (
            not files or files[0].start >= 0
        ):
            return files
    except TypeError:
        pass
    raise CorruptStateError("the state does not say which files were read")
