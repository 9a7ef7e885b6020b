"""Rows of a growing file or of standard input, a block at a time, with the position after each row."""

from __future__ import annotations

import codecs
import csv
import datetime
import io
import json
import math
import os
import re
import select
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, ParameterError

__all__ = ["YEAR_1", "Batch", "Rows"]

_BLOCK = 1 << 20
YEAR_1, _YEAR_10000 = -62135596800, 253402300800  # seconds from 1970: what a date can say
_WHITESPACE = " \t\n\v\f\r"
_BLANK_LINE = re.compile(rb"\n\s*\n")


@dataclass
class Batch:
    """Consecutive rows: their items (an Arrow array, a list, or None if only their number matters), their times in
    seconds where there is a column of them, and the position of the input after each. `there` says which rows hold an
    event and which are blank; None if all hold one."""

    items: Any
    times: npt.NDArray[np.float64] | None
    ends: npt.NDArray[np.int64]
    there: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.ends)


class Rows:
    """Complete rows of a growing input, from a position on.

    Blocks of CSV, TSV and text are read as columns. A block that does not fit that (blank lines, damage) and JSON
    lines are read line by line: the rows before a damaged one are handed out, then it is reported.

    Blank lines are passed over. With `keep_blank` (not with a column of times) they are rows without an event, and so
    are rows whose item is blank or null.
    """

    def __init__(
        self,
        file: str,
        format: str | None,
        column: str | None,
        time_column: str | None,
        needs_items: bool,
        keep_blank: bool = False,
    ) -> None:
        self.file = file
        self.columns = (column, time_column)
        self.needs_items = needs_items
        self.keep_blank = keep_blank
        suffix = Path(file).suffix.lower().lstrip(".")
        self.format = format or {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl"}.get(suffix, "text")
        if self.format not in ("csv", "tsv", "jsonl", "text"):
            raise ParameterError(f"--input-format must be csv, tsv, jsonl or text here, not {format!r}")
        if self.format == "text" and any(self.columns):
            raise ParameterError("text lines have no columns; give --input-format")
        self._header: list[str] | None = None
        self._input: IO[bytes] | None = None
        self._rest = b""
        self.position = 0
        self.ended = False

    def open(self, position: int) -> None:
        """Go to a position; standard input goes on with what comes next."""
        try:
            self._input = open(0, "rb", buffering=0, closefd=False) if self.file == "-" else open(self.file, "rb")  # noqa: SIM115
        except OSError as error:
            raise ParameterError(f"{self.file!r} cannot be opened: {error.strerror}") from error
        self.position = position
        if self.file != "-" and position:
            if os.fstat(self._input.fileno()).st_size < position:
                raise DataError(f"{self.file!r} is shorter than what was read of it; it must only grow")
            if self.format in ("csv", "tsv"):
                while self._header is None and (line := self._input.readline()):
                    self._header = self._names(line)
            self._input.seek(position)

    def close(self) -> None:
        """Let go of the input."""
        if self._input is not None:
            self._input.close()

    def available(self) -> Iterator[Batch]:
        """The complete rows that are there now."""
        assert self._input is not None
        while self.file != "-" or select.select([self._input], [], [], 0)[0]:  # never wait: a tick may end meanwhile
            block = self._input.read(_BLOCK)
            if not block:
                self.ended = self.file == "-"
                return
            data = self._rest + block
            end = data.rfind(b"\n") + 1
            self._rest = data[end:]
            if not end:
                continue
            whole, start = data[:end], self.position
            if self._header is None and self.format in ("csv", "tsv"):
                whole = self._take_header(whole)
            batch = self._as_columns(whole) if whole else None
            self.position = start + end
            if batch is not None:
                batch.ends += self.position - len(whole)
                if len(batch):
                    yield batch
            elif whole:
                yield from self._line_by_line(whole, self.position - len(whole))

    def _take_header(self, block: bytes) -> bytes:
        """The block without its first line that is not blank, which has the names."""
        while block and self._header is None:
            line, _, block = block.partition(b"\n")
            self._header = self._names(line)
        return block

    def _names(self, line: bytes) -> list[str] | None:
        """The names in a header line, without a byte order mark; None if the line is blank."""
        return self._cells(line.removeprefix(codecs.BOM_UTF8)) if line.strip() else None

    # ---- a block as columns ----------------------------------------------------------------------------------------

    def _as_columns(self, block: bytes) -> Batch | None:
        """The rows of a block at once; None if they must be looked at one by one. Ends are counted from the block."""
        import pyarrow as pa

        from discreet.io.lines import line_array

        if self.format == "jsonl":
            return None
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")).astype(np.int64) + 1
        try:
            if self.format == "text":
                lines = line_array(block, self.file)
                there = _not_blank(lines)
                if self.keep_blank:
                    return Batch(lines, None, ends, there)
                return Batch(lines.filter(pa.array(there)), None, ends[there])
            if self.format == "tsv" and _BLANK_LINE.search(b"\n" + block):  # tabs alone would pass for empty cells
                return None
            column, time_column = self._named(self._header or [])
            wanted = [name for name in (column, time_column) if name is not None]
            table = self._table(block, wanted)
            if len(table) != len(ends) or (len(self._header or []) == 1 and not _not_blank(table.column(0)).all()):
                return None
            items = None if column is None else table.column(column).combine_chunks()
            times = None
            if time_column is not None:
                times = _batch_seconds(table.column(time_column).combine_chunks(), self.file)
        except (DataError, pa.ArrowException):
            return None
        return Batch(items, times, ends, _not_blank(items) if self.keep_blank and items is not None else None)

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
            parse_options=pyarrow.csv.ParseOptions(delimiter="," if self.format == "csv" else "\t"),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
            ),
        )

    # ---- line by line ----------------------------------------------------------------------------------------------

    def _line_by_line(self, block: bytes, position: int) -> Iterator[Batch]:
        items: list[Any] = []
        times: list[float] = []
        ends: list[int] = []
        there: list[bool] = []
        trouble: DataError | None = None
        for line in block.split(b"\n")[:-1]:
            position += len(line) + 1
            try:
                row = self._parse(line)
            except DataError as error:
                trouble = error
                break
            if row is None and not self.keep_blank:
                continue
            item, moment = row or (None, None)
            items.append(item)
            ends.append(position)
            there.append(row is not None)
            if moment is not None:
                times.append(moment)
        if ends:
            moments = np.array(times) if self.columns[1] is not None else None
            mask = np.array(there) if self.keep_blank else None
            yield Batch(items if self.needs_items else None, moments, np.array(ends, np.int64), mask)
        if trouble is not None:
            raise trouble

    def _cells(self, line: bytes) -> list[str]:
        text = self._text(line)
        with suppress(csv.Error):
            return next(csv.reader(io.StringIO(text), delimiter="," if self.format == "csv" else "\t"), [])
        raise DataError(f"{self.file} has a row that cannot be read as {self.format.upper()}")

    def _text(self, line: bytes) -> str:
        with suppress(UnicodeDecodeError):
            return line.decode().rstrip("\r\n")
        raise DataError(f"{self.file} has text that is not valid UTF-8")

    def _parse(self, line: bytes) -> tuple[Any, float | None] | None:
        """The item and the time of a line; None if it is blank."""
        if not line.strip():
            return None
        if self.format == "text":
            return self._text(line), None
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
        if self.needs_items and not (isinstance(item, str) or type(item) is int):
            raise DataError(f"{self.file}: items must be text or whole numbers")
        return item, None if time_column is None else _seconds(self._value(record, time_column), self.file)

    def _named(self, names: list[str]) -> tuple[str | None, str | None]:
        """The column of the items, None if they do not matter, and that of the times."""
        column, time_column = self.columns
        if not self.needs_items:
            return None, time_column
        if column is None:
            others = [name for name in names if name != time_column]
            if len(others) != 1:
                raise DataError(f"{self.file}: name the --column of the items; there are {len(others)}")
            column = others[0]
        return column, time_column

    def _value(self, record: dict[str, Any], name: str) -> Any:
        if name not in record:
            raise DataError(f"{self.file} has a row without {name!r}")
        return record[name]


def _not_blank(column: Any) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(pc.not_equal(pc.ascii_trim_whitespace(column), ""), np.bool_)


def _is_blank(item: Any) -> bool:
    return item is None or (isinstance(item, str) and not item.strip(_WHITESPACE))


def _batch_seconds(column: Any, file: str) -> npt.NDArray[np.float64]:
    """The times of a column of text."""
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
    return np.array([_seconds(value, file) for value in column.to_pylist()])


def _seconds(value: Any, file: str) -> float:
    seconds = math.nan
    with suppress(ValueError, TypeError, OverflowError):
        seconds = float(value)
    if math.isnan(seconds):
        with suppress(ValueError, TypeError, OverflowError):
            moment = datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp()
    if not YEAR_1 <= seconds < _YEAR_10000:
        raise DataError(f"{file} has a time that is neither seconds since 1970 nor ISO 8601, in the years 1 to 9999")
    return seconds
