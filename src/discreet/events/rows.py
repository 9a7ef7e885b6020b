"""Rows of a growing file or of standard input, a block at a time, with the position after each row."""

from __future__ import annotations

import codecs
import csv
import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, ParameterError
from discreet.events.bad_rows import LONGEST_ITEM
from discreet.events.follow import Source, follow
from discreet.events.records import Cut, Cutter
from discreet.events.source import LONGEST_RECORD

__all__ = ["YEAR_1", "Batch", "Rows", "seconds_of"]

_BLOCK = 1 << 20
YEAR_1, _YEAR_10000 = -62135596800, 253402300800  # seconds from 1970: what a date can say
_WHITESPACE = " \t\n\v\f\r"
_BLANK_LINE = re.compile(rb"\n\s*\n")

Positions = npt.NDArray[np.int64]


@dataclass
class Batch:
    """Consecutive rows: their items (text, or None if only their number matters), their times in seconds where there is
    a column of them, and the positions of the input before and after each. `there` says which rows hold an event and
    which are blank; None if all hold one."""

    items: Any
    times: npt.NDArray[np.float64] | None
    starts: Positions
    ends: Positions
    there: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.ends)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Batch:
        """Some of the rows."""
        if isinstance(rows, slice):
            items = None if self.items is None else self.items[rows]
        elif rows.all():
            return self
        else:
            import pyarrow as pa

            items = None if self.items is None else self.items.filter(pa.array(rows))
        times = None if self.times is None else self.times[rows]
        there = None if self.there is None else self.there[rows]
        return Batch(items, times, self.starts[rows], self.ends[rows], there)

    def followed_by(self, other: Batch) -> Batch:
        """These rows and then those."""
        import pyarrow as pa

        def joined(first: Any, second: Any) -> Any:
            return None if first is None else np.concatenate([first, second])

        items = self.items
        if items is not None:
            items = pa.concat_arrays([array.cast(pa.large_string()) for array in (items, other.items)])
        return Batch(
            items,
            joined(self.times, other.times),
            joined(self.starts, other.starts),
            joined(self.ends, other.ends),
            joined(self.there, other.there),
        )


class Rows:
    """Complete rows of a growing input, from a position on.

    Blocks of CSV, TSV and text are read as columns. A block that does not fit that (blank lines, damage) and JSON
    lines are read record by record, to the same result. Items are text; a whole number in JSON is its digits, so that
    what is published has one type whatever the rows are.

    A bad row is one that cannot be read: text that is not UTF-8, another number of cells than the header has, what is
    not a JSON object, a value that is missing or is neither text nor a whole number, an item of more than 4,096 bytes,
    a time that is none, a record of more than 64 MiB. It is passed over and counted in `bad`, or with `skip_bad=False`
    reported after the rows before it are handed out. What becomes of a row never depends on others.

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
    ) -> None:
        self.file = file
        self.columns = (column, time_column)
        self.needs_items = needs_items
        self.keep_blank = keep_blank
        self.skip_bad = skip_bad
        suffix = Path(file).suffix.lower().lstrip(".")
        self.format = format or {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl"}.get(suffix, "text")
        if self.format not in ("csv", "tsv", "jsonl", "text"):
            raise ParameterError(f"--input-format must be csv, tsv, jsonl or text here, not {format!r}")
        if self.format == "text" and any(self.columns):
            raise ParameterError("text lines have no columns; give --input-format")
        self.bad: Counter[str] = Counter()  # NOT PRIVATE: for the operator's eyes
        self._delimiter = {"csv": ",", "tsv": "\t"}.get(self.format)
        self._header: list[str] | None = None
        self._remark = remark
        self._source: Source | None = None
        self._cutter = Cutter(self._delimiter)
        self._begins = True  # whether the next record is the first of a file
        self._ended_open = False  # whether the record before had no newline

    def open(self, position: int, saved: Any = None) -> None:
        """Go to a position, with what was saved for it; standard input goes on with what comes next."""
        saved = saved or {}
        self._source = follow(self.file, self._remark)
        self._source.open(position, saved.get("files"))
        self._cutter = Cutter(self._delimiter, position)
        header = saved.get("header")
        self._header = [str(name) for name in header] if isinstance(header, list) else None
        before = self._source.before()
        self._begins = not before
        self._ended_open = bool(before) and not before.endswith(b"\n")
        if before and self._header is None and self._delimiter is not None:
            self._header = self._first_names(self._source)

    def saved(self, position: int) -> dict[str, Any]:
        """What `open` needs beside a position."""
        assert self._source is not None
        return {"files": self._source.saved(position), "header": self._header}

    @property
    def ended(self) -> bool:
        """Whether nothing more can come."""
        return self._source is not None and self._source.ended

    def close(self) -> None:
        """Let go of the input."""
        if self._source is not None:
            self._source.close()

    def available(self) -> Iterator[Batch]:
        """The complete rows that are there now."""
        assert self._source is not None
        turned = self._source.look()
        if turned == "next":
            yield from self._last()
        elif turned == "cut":
            self._cutter.forget()
        self._begins = self._begins or turned is not None
        while True:
            first = self._begins and not self._source.before()
            piece = self._source.read(_BLOCK)
            if not piece:
                break
            if first and piece.startswith(codecs.BOM_UTF8):
                piece = self._without_first(piece, len(codecs.BOM_UTF8))
            if self._ended_open:  # the newline of a row that was taken without it
                self._ended_open = False
                ending = re.match(rb"\r?\n", piece)
                if ending:
                    piece = self._without_first(piece, ending.end())
            for cut in self._cutter.cut(piece):
                yield from self._rows(cut)
        if self.ended:
            yield from self._last()

    def _without_first(self, piece: bytes, count: int) -> bytes:
        """A piece without bytes that belong to no record."""
        self._cutter.position += count
        return piece[count:]

    def rest(self) -> Iterator[Batch]:
        """What is left without a newline, if it is not to be waited for."""
        yield from self._last()
        self._ended_open = True

    def more(self) -> bool:
        """Whether another file waits to be read."""
        assert self._source is not None
        return self._source.more()

    def wait(self, seconds: float) -> None:
        """Wait for more rows, at most so long."""
        assert self._source is not None
        self._source.wait(seconds)

    def _last(self) -> Iterator[Batch]:
        for cut in self._cutter.finish():
            yield from self._rows(cut)

    def _rows(self, cut: Cut) -> Iterator[Batch]:
        """The rows of whole records."""
        starts = np.concatenate([[self._before(cut)], cut.ends[:-1]])
        if cut.trouble is not None:
            yield from self._without(cut.trouble, starts, cut.ends)
            self._begins = False
            return
        first = 0
        if self._begins:
            first = self._after_header(cut.data, cut.ends - starts[0])
            self._begins = self._begins and first == len(cut.ends)
        if first == len(cut.ends):
            return
        offset = int(starts[first] - starts[0])
        data, starts, ends = cut.data[offset:] if offset else cut.data, starts[first:], cut.ends[first:]
        batch = self._as_columns(data, starts, ends)
        if batch is None:
            yield from self._one_by_one(data, starts, ends)
        elif len(batch):
            yield batch

    @staticmethod
    def _before(cut: Cut) -> int:
        return int(cut.ends[-1]) - len(cut.data)

    def _without(self, trouble: str, starts: Positions, ends: Positions) -> Iterator[Batch]:
        """A record that cannot be read, in its place."""
        if not self.skip_bad:
            raise DataError(f"{self.file} has {trouble}")
        self.bad[trouble] += 1
        if self.keep_blank:
            import pyarrow as pa

            there = np.zeros(1, np.bool_)
            yield Batch(pa.array([""], pa.large_string()) if self.needs_items else None, None, starts, ends, there)

    # ---- the header ------------------------------------------------------------------------------------------------

    def _after_header(self, data: bytes, ends: Positions) -> int:
        """How many records at the start of a file are no rows: blank ones, then one with the names of the columns.

        A file that took the name of another may begin with the same header, or go on without one.
        """
        if self._delimiter is None:
            self._begins = False
            return 0
        start = 0
        for i, end in enumerate(ends.tolist()):
            line, start = data[start:end], end
            if not line.strip():
                continue
            self._begins = False
            if self._header is None:
                self._header = self._names(line)
                self._named(self._header or [])  # a column that is not there is the operator's mistake
                return i + 1
            with suppress(DataError):
                return i + 1 if self._cells(line) == self._header else i
            return i
        return len(ends)

    def _first_names(self, source: Source) -> list[str] | None:
        """The names in the file that is open, for a state that does not have them."""
        beginning = source.beginning(_BLOCK)
        for line in beginning.split(b"\n"):
            names = self._names(line)
            if names is not None:
                return names
        return None

    def _names(self, line: bytes) -> list[str] | None:
        """The names in a header line, without a byte order mark; None if the line is blank."""
        line = line.removeprefix(codecs.BOM_UTF8)
        with suppress(DataError):
            return self._cells(line) if line.strip() else None
        raise DataError(f"{self.file} does not begin with a header line")

    # ---- a block as columns ----------------------------------------------------------------------------------------

    def _as_columns(self, block: bytes, starts: Positions, ends: Positions) -> Batch | None:
        """The rows of a block at once; None if they must be looked at one by one."""
        import pyarrow as pa

        from discreet.events.lines import line_array

        if self.format == "jsonl":
            return None
        try:
            if self.format == "text":
                items = line_array(block, self.file)
                there = _not_blank(items)
                if _longest(items) > LONGEST_ITEM:
                    return None
                batch = Batch(items if self.needs_items else None, None, starts, ends, there)
                if self.keep_blank:
                    return batch
                batch = batch.part(there)
                batch.there = None
                return batch
            if self.format == "tsv" and _BLANK_LINE.search(b"\n" + block):  # tabs alone would pass for empty cells
                return None
            column, time_column = self._named(self._header or [])
            wanted = [name for name in (column, time_column) if name is not None]
            table = self._table(block, wanted)
            if len(table) != len(ends) or (len(self._header or []) == 1 and not _not_blank(table.column(0)).all()):
                return None
            items = None if column is None else table.column(column).combine_chunks()
            if items is not None and _longest(items) > LONGEST_ITEM:
                return None
            times = None
            if time_column is not None:
                times = _batch_seconds(table.column(time_column).combine_chunks())
                if times is None:
                    return None
        except (DataError, pa.ArrowException):
            return None
        full = _not_blank(items) if self.keep_blank and items is not None else None
        return Batch(items, times, starts, ends, full)

    def _table(self, block: bytes, wanted: list[str]) -> Any:
        import pyarrow as pa
        import pyarrow.csv

        if len(set(self._header or [])) != len(self._header or []):
            raise DataError("two columns of one name")
        if not wanted:  # only the number of rows matters, but all of them must have the right cells
            wanted = (self._header or [])[:1]
        return pyarrow.csv.read_csv(
            pa.BufferReader(block),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=self._header
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in block),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
            ),
        )

    # ---- record by record ------------------------------------------------------------------------------------------

    def _one_by_one(self, block: bytes, starts: Positions, ends: Positions) -> Iterator[Batch]:
        import pyarrow as pa

        items: list[Any] = []
        times: list[float] = []
        rows: list[int] = []
        there: list[bool] = []
        trouble: DataError | None = None
        origin = int(starts[0])
        for i, (start, end) in enumerate(zip((starts - origin).tolist(), (ends - origin).tolist(), strict=True)):
            row = None
            try:
                row = self._parse(block[start:end])
            except DataError as error:
                if not self.skip_bad:
                    trouble = error
                    break
                self.bad[str(error).removeprefix(f"{self.file} has ")] += 1
            if row is None and not self.keep_blank:
                continue
            item, moment = row or ("", None)
            items.append(item)
            rows.append(i)
            there.append(row is not None)
            if moment is not None:
                times.append(moment)
        if rows:
            moments = np.array(times) if self.columns[1] is not None else None
            mask = np.array(there) if self.keep_blank else None
            texts = pa.array(items, pa.large_string()) if self.needs_items else None
            yield Batch(texts, moments, starts[rows], ends[rows], mask)
        if trouble is not None:
            raise trouble

    def _cells(self, line: bytes) -> list[str]:
        # What is a row must not depend on how its block is read: only the cells that are wanted have to be valid text.
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
        csv.field_size_limit(LONGEST_RECORD)
        with suppress(csv.Error):
            (cells,) = csv.reader([text], delimiter=self._delimiter or ",")
            return cells
        raise DataError(f"{self.file} has a row that cannot be read as {self.format.upper()}")

    def _text(self, line: bytes) -> str:
        with suppress(UnicodeDecodeError):
            return line.removesuffix(b"\n").removesuffix(b"\r").decode()
        raise DataError(f"{self.file} has text that is not valid UTF-8")

    def _parse(self, line: bytes) -> tuple[str | None, float | None] | None:
        """The item and the time of a record; None if it is blank."""
        if not line.strip():
            return None
        if self.format == "text":
            return self._item(self._text(line)), None
        if self.format == "jsonl":
            record = None
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
            if not isinstance(record, dict):
                raise DataError(f"{self.file} has a line that is not a JSON object")
        else:
            assert self._header is not None
            cells = self._cells(line)
            if len(cells) != len(self._header):
                raise DataError(f"{self.file} has a row with another number of cells than its header")
            record = dict(zip(self._header, cells, strict=True))
        column, time_column = self._named(list(record))
        item = None if column is None else self._value(record, column)
        if self.keep_blank and column is not None and _is_blank(item):
            return None
        moment = None
        if time_column is not None:
            moment = seconds_of(self._value(record, time_column))
            if moment is None:
                raise DataError(
                    f"{self.file} has a time that is neither seconds since 1970 nor ISO 8601, in the years 1 to 9999"
                )
        return self._item(item) if self.needs_items else None, moment

    def _item(self, item: Any) -> str:
        """An item as text."""
        text = str(item) if type(item) is int and abs(item) < 2**64 else item
        if not isinstance(text, str):
            raise DataError(f"{self.file} has an item that is neither text nor a whole number")
        with suppress(UnicodeEncodeError):
            if len(text.encode()) <= LONGEST_ITEM:
                return text
            raise DataError(f"{self.file} has an item of more than {LONGEST_ITEM} bytes")
        raise DataError(f"{self.file} has text that is not valid UTF-8")

    def _named(self, names: list[str]) -> tuple[str | None, str | None]:
        """The column of the items, None if they do not matter, and that of the times."""
        column, time_column = self.columns
        if not self.needs_items:
            column = None
        elif column is None:
            others = [name for name in names if name != time_column]
            if len(others) != 1:
                raise DataError(f"{self.file}: name the --column of the items; there are {len(others)}")
            column = others[0]
        for name in (column, time_column):
            if name is not None and name not in names:
                raise DataError(f"{self.file} has a row without {name!r}")
        return column, time_column

    def _value(self, record: dict[str, Any], name: str) -> Any:
        return record[name]


def _not_blank(column: Any) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(pc.not_equal(pc.ascii_trim_whitespace(column), ""), np.bool_)


def _longest(column: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(column)).as_py() or 0)


def _is_blank(item: Any) -> bool:
    return item is None or (isinstance(item, str) and not item.strip(_WHITESPACE))


def _batch_seconds(column: Any) -> npt.NDArray[np.float64] | None:
    """The times of a column of text; None if they are not all times."""
    import pyarrow as pa

    for kind in (pa.float64(), pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            values = column.cast(kind)
            if kind == pa.float64():
                seconds = np.asarray(values, np.float64)
            else:
                seconds = np.asarray(values.cast(pa.int64()), np.float64) / 1e6
            if ((seconds >= YEAR_1) & (seconds < _YEAR_10000)).all():
                return seconds
    each = [seconds_of(value) for value in column.to_pylist()]
    return None if None in each else np.array(each, np.float64)


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970 or ISO 8601, in the years 1 to 9999, as seconds; None if it is neither."""
    seconds = math.nan
    with suppress(ValueError, TypeError, OverflowError):
        seconds = float(value)
    if math.isnan(seconds):
        with suppress(ValueError, TypeError, OverflowError):
            moment = datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp()
    if math.isnan(seconds) and isinstance(value, str):
        seconds = _arrow_seconds(value)  # which knows forms that Python does not
    return seconds if YEAR_1 <= seconds < _YEAR_10000 else None


def _arrow_seconds(value: str) -> float:
    import pyarrow as pa

    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            return float(pa.scalar(value).cast(kind).cast(pa.int64()).as_py() / 1e6)
    return math.nan
