"""Bodies of requests become columns: NDJSON, JSON, CSV with a header, Arrow streams, Plausible's events.

A row is wrong if a field that counts is missing, or is no text or whole number, or is too long; of a stream of sets, if
the item is no list of these. Numbers count as their digits, so that what is published is text whatever one row holds. A
refusal has row numbers (from 1) and reasons that
are constants here with the name of a field, never content.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet._data_class import dataclass
from discreet.service.definitions import ServiceLimits, StreamDefinition
from discreet.service.problems import MOST_ROWS, ProblemError
from discreet.service.runs import fields_of, schema_of

MAX_FIELD_BYTES = 1000
_BLOCK_BYTES = 2**20  # of a body that are read at once
_BLOCK_ROWS = 2**16
_BLOCK_BATCHES = 256  # of an Arrow stream
_FEW_BATCHES = 16
_LOOKS = 8  # how often dictionaries as large as a body may be looked at

NDJSON, JSON, CSV, ARROW = "application/x-ndjson", "application/json", "text/csv", "application/vnd.apache.arrow.stream"
FORMATS = {
    NDJSON: "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/json-lines": "ndjson",
    JSON: "json",
    CSV: "csv",
    ARROW: "arrow",
}

_MISSING = "is missing"
_NULL = "is null"
_KIND = "is neither a text nor a whole number"
_NO_LIST = "is no list of texts and whole numbers"
_LONG = f"has more than {MAX_FIELD_BYTES} bytes"
_NOT_JSON = "the row is not JSON"
_NOT_OBJECT = "the row is not an object"
_SET = f"has a null or an item of more than {MAX_FIELD_BYTES} bytes"
_CELLS = "the row has another number of cells than the header"
_TEXT = "is not Unicode text"


@dataclass
class RowsRead:
    """What a body brought: rows that were taken, those of them that count (`where`), their columns, rows left out."""

    taken: int
    counted: int
    columns: pa.RecordBatch | None  # None if no field counts
    skipped: int = 0


class _RowError(Exception):
    """A row that cannot be taken; its text is one of the constants above, with the name of a field that counts."""


def _about(field: str, what: str) -> str:
    """What is wrong with a field. Its name is in the definition, and the same for all rows."""
    return f"the field {field!r} {what}"


class Reader:
    """Reads the bodies for one stream, a block at a time: what is in memory at once are columns, not rows.

    With a public table (`lookup`) the field `on` is read in the place of the columns that the table has.
    """

    def __init__(self, definition: StreamDefinition, limits: ServiceLimits | None = None) -> None:
        limits = ServiceLimits() if limits is None else limits
        self._most_rows, self._most_text = limits.body_rows, limits.body_bytes
        self.schema = schema_of(definition)
        self._kept = list(fields_of(definition).values())
        self._lookup = definition.table
        public = {} if self._lookup is None else self._lookup.columns
        key = [] if self._lookup is None else [self._lookup.on]
        self._fields = list(dict.fromkeys([*(field for field in self._kept if field not in public), *key]))
        self._where = {field: value for field, value in definition.where.items() if field not in public}
        self._where_public = {field: value for field, value in definition.where.items() if field in public}
        self._set = definition.column if definition.sets else None  # the field that holds lists
        lists = pa.large_list(pa.large_string())
        self._kinds = [lists if field == self._set else pa.large_string() for field in self._fields]
        every = list(dict.fromkeys([*self._fields, *self._where]))
        self._names = {field: f"f{number}" for number, field in enumerate(every)}
        rename = {name: field for field, name in self._names.items()}
        # What nobody asked for is skipped and never made; lists and objects go the long way, which does not make them.
        shape = [
            (self._names[field], self._kind(field), *default)
            for field in sorted(every, key=lambda field: field not in self._fields)
            for default in [() if field in self._fields else (None,)]
        ]
        event = msgspec.defstruct("Event", shape, rename=rename, gc=False)
        self._lines = msgspec.json.Decoder(event)
        self._array = msgspec.json.Decoder(list[event])  # type: ignore[valid-type]
        loose = [(self._names[field], msgspec.Raw, msgspec.Raw(b"")) for field in every]
        self._loose = msgspec.json.Decoder(msgspec.defstruct("Loose", loose, rename=rename, gc=False))

    def _kind(self, field: str) -> Any:
        """What a field that is right holds."""
        if field == self._set:
            return list[str | int]
        return str | int if field in self._fields else (str | int | float | bool | None)

    def read_small(self, form: str, body: bytes) -> RowsRead | None:
        """The rows of a small body, in little time; None if that takes `read`."""
        if form == "arrow":
            return self._arrow(body, skip=False, plain=True)
        if form == "csv":
            return None
        try:
            if form == "ndjson":
                events = self._decode_lines(body)
            elif body[_after_space(body, 0) :][:1] == b"{":
                events = [self._lines.decode(body)]
            else:
                events = self._array.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if len(events) > self._most_rows:
            raise too_many_rows(self._most_rows)
        found = self._columns(events)
        return None if found is None else self._rows(len(events), *found)

    def read(self, form: str, body: bytes, skip: bool) -> RowsRead:
        """The rows of a body; ProblemError 422 for wrong ones, unless they are to be skipped."""
        if form == "arrow":
            read = self._arrow(body, skip)
            assert read is not None
            return read
        gathered = _Gathered(self._kinds, self._most_rows, skip)
        if form == "csv" and self._set is not None:
            raise ProblemError(422, "The stream counts sets of items", "Send them as lists, in JSON or Arrow.")
        if form == "csv":
            self._csv(body, gathered)
        elif form == "ndjson":
            self._ndjson(body, gathered)
        else:
            self._json(body, gathered)
        return gathered.read(self._rows)

    def of_values(self, values: dict[str, str]) -> RowsRead:
        """One event that is there already, and right."""
        wanted = all(_equal(values.get(field), value) for field, value in self._where.items())
        arrays = [pa.array([values[field]] if wanted else [], pa.large_string()) for field in self._fields]
        return self._rows(1, int(wanted), arrays)

    # ---- many rows at once ------------------------------------------------------------------------------------------

    def _columns(self, events: list[Any]) -> tuple[int, list[Any]] | None:
        """How many rows count, and their columns; None where a value is too long, which the slow way finds."""
        if self._where:
            wanted = [(self._names[field], value) for field, value in self._where.items()]
            events = [e for e in events if all(_equal(getattr(e, name), value) for name, value in wanted)]
        arrays = []
        for field in self._fields:
            name = self._names[field]
            values = [getattr(event, name) for event in events]
            if field == self._set:
                array = pa.array([list(map(str, value)) for value in values], pa.large_list(pa.large_string()))
                if _longest(array.flatten()) > MAX_FIELD_BYTES:
                    return None
                arrays.append(array)
                continue
            try:
                array = pa.array(values, pa.large_string())
            except (pa.ArrowTypeError, pa.ArrowInvalid, UnicodeError):
                array = pa.array([value if type(value) is str else str(value) for value in values], pa.large_string())
            if _longest(array) > MAX_FIELD_BYTES:
                return None
            arrays.append(array)
        return len(events), arrays

    def _rows(self, taken: int, counted: int, arrays: list[Any], wrong: int = 0) -> RowsRead:
        """Rows that were read, with what the public table has for them; without those that it has nothing for."""
        if self._lookup is not None:
            columns = dict(zip(self._fields, arrays, strict=True))
            names = list(dict.fromkeys([*(field for field in self._kept if field not in columns), *self._where_public]))
            found = dict(zip(names, self._lookup.found(columns[self._lookup.on], names), strict=True))
            if sum(_length(column) for column in found.values()) > self._most_text:
                raise ProblemError(413, "Too many rows", "Joined with the public table they are larger than a body.")
            keep = np.ones(counted, np.bool_)
            for name, column in found.items():
                wanted = self._where_public.get(name)
                there = column.is_valid() if wanted is None else pc.fill_null(pc.equal(column, wanted), False)
                keep &= np.asarray(there, np.bool_)
            columns |= found
            mask, counted = pa.array(keep), int(keep.sum())
            arrays = [
                columns[field].filter(mask).cast(kind)
                for field, kind in zip(self._kept, self.schema.types, strict=True)
            ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else None
        return RowsRead(taken, counted, batch, wrong)

    def _block(self, decode: Callable[[], list[Any]], rows: Iterable[tuple[int, bytes]], to: _Gathered) -> None:
        """A block of JSON: all of it at once if every row is right, else row by row."""
        try:
            events = decode()
            found = self._columns(events)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            found = None
        if found is not None:
            to.add_block(len(events), *found)
            return
        for number, row in rows:
            try:
                values = self._checked(row)
            except _RowError as error:
                to.refuse(number, str(error))
            else:
                to.add(values)

    # ---- row by row -------------------------------------------------------------------------------------------------

    def _ndjson(self, body: bytes, to: _Gathered) -> None:
        first = 1
        for block in _blocks_of_lines(body):
            lines = block.count(b"\n") + (not block.endswith(b"\n"))
            to.count(lines)
            rows = ((n, line) for n, line in enumerate(block.split(b"\n"), first) if line.strip())
            self._block(partial(self._decode_lines, block), rows, to)
            first += lines

    def _decode_lines(self, block: bytes) -> list[Any]:
        """One event a line, or an error: for the decoder a newline is a blank like any other."""
        # A line that is a block by itself could have as many as fill it.
        events = self._lines.decode_lines(block) if len(block) <= _BLOCK_BYTES else [self._lines.decode(block)]
        if not _one_each(block, len(events)):
            raise msgspec.DecodeError
        return events

    def _json(self, body: bytes, to: _Gathered) -> None:
        begin, end = _after_space(body, 0), len(body.rstrip(b" \t\r\n"))
        if body[begin : begin + 1] != b"[":
            to.count(1)
            self._block(lambda: [self._lines.decode(body)], self._whole([(1, body)]), to)
            return
        if end - begin < 2 or body[end - 1 : end] != b"]":
            raise _not_json()
        if _after_space(body, begin + 1) == end - 1:
            return
        first = 1
        for start, cuts in _blocks_of_elements(body, begin + 1, end - 1):
            to.count(len(cuts))
            rows = self._whole(_elements(body, start, cuts, first))
            self._block(partial(self._decode_elements, body[start : cuts[-1]], len(cuts)), rows, to)
            first += len(cuts)

    def _decode_elements(self, block: bytes, number: int) -> list[Any]:
        events: list[Any] = self._array.decode(b"[" + block + b"]")
        if len(events) != number:  # nothing beside a comma
            raise _not_json()
        return events

    def _whole(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The rows of a body that is JSON as a whole, or is refused."""
        for number, row in rows:
            if not _is_json(row):
                raise _not_json()
            yield number, row

    def _checked(self, row: bytes) -> tuple[Any, ...] | None:
        """The values that count; None for a row that is right and not wanted."""
        try:
            found = self._loose.decode(row)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise _RowError(_NOT_OBJECT if _is_json(row) else _NOT_JSON) from None
        values = tuple(
            (_texts if field == self._set else _text)(getattr(found, self._names[field]), field)
            for field in self._fields
        )
        for field, value in self._where.items():
            try:
                if _text(getattr(found, self._names[field]), field) != value:
                    return None
            except _RowError:
                return None
        return values

    # ---- tables -----------------------------------------------------------------------------------------------------

    def _csv(self, body: bytes, to: _Gathered) -> None:
        text = _Lines(io.TextIOWrapper(io.BytesIO(body), "utf-8-sig", newline=""))
        lines = csv.reader(text, strict=True)
        try:
            header = next(lines, None)
            if header is None or len(set(header)) < len(header):
                raise ProblemError(422, "The CSV needs a header with different names")
            if any(field not in header for field in self._fields):
                raise ProblemError(
                    422, "The CSV lacks a column that the stream counts", f"It needs {', '.join(self._fields)}."
                )
            text.used()
            wide = len(header)
            places = [header.index(field) for field in self._fields]
            wanted = [(header.index(f) if f in header else None, value) for f, value in self._where.items()]
            number = 0
            for row in lines:
                text.used()
                if not row:
                    continue
                number += 1
                to.count(1)
                if len(row) != wide:
                    to.refuse(number, _CELLS)
                    continue
                values = tuple(row[place] for place in places)
                long = [field for field, value in zip(self._fields, values, strict=True) if _is_long(value)]
                if long:
                    to.refuse(number, _about(long[0], _LONG))
                else:
                    to.add(values if all(at is not None and row[at] == value for at, value in wanted) else None)
        except UnicodeDecodeError:
            raise ProblemError(400, "The body is not UTF-8") from None
        except csv.Error:
            raise ProblemError(400, "The body is not CSV") from None

    def _arrow(self, body: bytes, skip: bool, plain: bool = False) -> RowsRead | None:
        """`plain` takes only what is as large in memory as it came, and has no wrong row; None for the rest."""
        gathered = _Gathered(self._kinds, self._most_rows, skip)
        needed = [*self._fields, *self._where]
        texts = 0
        try:
            simple = check_arrow(body, self._most_text)
            with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
                if plain and not (simple and pa.string_view() not in reader.schema.types):
                    return None
                names = reader.schema.names
                if len(set(names)) < len(names):
                    raise ProblemError(422, "The table has two columns with the same name")
                if any(field not in names for field in self._fields):
                    raise ProblemError(
                        422, "The table lacks a column that the stream counts", f"It needs {', '.join(self._fields)}."
                    )
                for group in _groups(reader, gathered):
                    columns = {}
                    for field in needed:
                        if field in names:
                            column = group.column(field)
                            if field == self._set:
                                column = pa.chunked_array(map(_one_list_each, column.chunks), self._kinds[0])
                            else:
                                texts += _check_column(column, self._most_text - texts)
                                column = _as_text(column)
                            columns[field] = column
                    if not self._add_table(group.num_rows, columns, gathered, plain):
                        return None
        except (pa.ArrowException, OSError, ValueError, IndexError, KeyError, NotImplementedError, struct.error):
            raise ProblemError(400, "The body is not an Arrow stream") from None
        return gathered.read(self._rows)

    def _add_table(self, rows: int, columns: dict[str, pa.ChunkedArray], to: _Gathered, plain: bool) -> bool:
        """False if some rows are wrong and all must be right."""
        good = None
        for field in self._fields:
            fine = _short(columns[field])
            good = fine if good is None else pc.and_(good, fine)
        wrong = 0
        if good is not None and (wrong := rows - (pc.sum(good).as_py() or 0)):
            if plain:
                return False
            first = to.seen - rows + 1
            for n in pc.indices_nonzero(pc.invert(good)).slice(0, MOST_ROWS).to_pylist():
                to.refuse(first + n, self._reason(columns, n))
            to.wrong += max(wrong - MOST_ROWS, 0)
            columns = {field: column.filter(good) for field, column in columns.items()}
        counted = rows - wrong
        for field, value in self._where.items():
            if field not in columns:
                columns = {name: column.slice(0, 0) for name, column in columns.items()}
                counted = 0
                break
            wanted = pc.fill_null(pc.equal(columns[field], value), False)
            columns = {name: column.filter(wanted) for name, column in columns.items()}
            counted = len(columns[field])
        fields = zip(self._fields, self._kinds, strict=True)
        arrays = [_joined(columns[field].chunks, kind) for field, kind in fields]
        to.add_block(rows - wrong, counted, arrays)
        return True

    def _reason(self, columns: dict[str, pa.ChunkedArray], number: int) -> str:
        """What is wrong with a row of a table."""
        empty = [field for field in self._fields if not columns[field][number].is_valid]
        if empty:
            return _about(empty[0], _NULL)
        long = [f for f in self._fields if f != self._set and _is_long(columns[f][number].as_py())]
        return _about(long[0], _LONG) if long else _about(str(self._set), _SET)


class _Gathered:
    """The rows of a body, as columns that grow by blocks."""

    def __init__(self, kinds: list[pa.DataType], most: int, skip: bool) -> None:
        self.seen = self.wrong = 0
        self._most, self._skip = most, skip
        self._bad: list[dict[str, Any]] = []
        self._taken = self._counted = 0
        self._values: list[tuple[Any, ...]] = []  # less than a block of them
        self._kinds = kinds
        self._arrays: list[list[Any]] = [[] for _ in kinds]

    def count(self, rows: int) -> None:
        """These come next; 413 if that is too many, before anything is made of them."""
        self.seen += rows
        if self.seen > self._most:
            raise too_many_rows(self._most)

    def add(self, values: tuple[Any, ...] | None) -> None:
        """A row that is right; None if it is not wanted."""
        self._taken += 1
        if values is not None and not (self.wrong and not self._skip):
            self._counted += 1
            if self._arrays:
                self._values.append(values)
                if len(self._values) >= _BLOCK_ROWS:
                    self._flush()

    def add_block(self, taken: int, counted: int, arrays: list[Any]) -> None:
        """Rows that are right; some of them count."""
        self._flush()
        self._taken += taken
        self._counted += counted
        for column, array in zip(self._arrays, arrays, strict=True):
            column.append(array)

    def refuse(self, number: int, reason: str) -> None:
        """A row that is wrong."""
        self.wrong += 1
        if len(self._bad) < MOST_ROWS:
            self._bad.append({"row": number, "reason": reason})

    def _flush(self) -> None:
        if self._values:
            for column, kind, values in zip(self._arrays, self._kinds, zip(*self._values, strict=True), strict=True):
                column.append(pa.array(values, kind))
            self._values = []

    def read(self, made: Callable[[int, int, list[Any], int], RowsRead]) -> RowsRead:
        """All of them; ProblemError if some are wrong and must not be."""
        if self.wrong and not self._skip:
            raise bad_rows(self._bad, self.wrong)
        self._flush()
        arrays = []
        for kind in self._kinds:  # a column at a time: the pieces of one are gone before the next is put together
            pieces = self._arrays.pop(0)
            arrays.append(_joined(pieces, kind))
        return made(self._taken, self._counted, arrays, self.wrong)


def _length(column: pa.Array) -> int:
    """Of all texts of a column, in bytes."""
    return pc.sum(pc.binary_length(column)).as_py() or 0


def _joined(pieces: list[Any], kind: pa.DataType) -> Any:
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays([pa.array([], kind), *pieces])


class _Lines:
    """The lines of a text for `csv`; 413 for a row that goes on for ever."""

    def __init__(self, text: Iterable[str]) -> None:
        self._text = iter(text)
        self._held = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self._held += len(line)
            if self._held > _BLOCK_BYTES:
                raise ProblemError(413, "A row is too large", f"At most {_BLOCK_BYTES} characters are taken in a row.")
            yield line

    def used(self) -> None:
        """A row was made of what came."""
        self._held = 0


def _blocks_of_lines(body: bytes) -> Iterator[bytes]:
    """Some whole lines at a time; one that is longer than a block by itself."""
    if len(body) <= _BLOCK_BYTES:
        yield body
        return
    start = 0
    while start < len(body):
        end = body.rfind(b"\n", start, start + _BLOCK_BYTES) + 1 or body.find(b"\n", start) + 1 or len(body)
        yield body[start:end]
        start = end


def _one_each(block: bytes, events: int) -> bool:
    """Whether each line that is not blank is one of these objects.

    Inside of an object no line ends with a brace where the next one begins with one: a comma is between them.
    """
    ends = block.count(b"\n") - block.endswith(b"\n")
    if events - 1 == ends == block.count(b"}\n{"):
        return True
    lines = [line for each in block.split(b"\n") if (line := each.strip())]
    return len(lines) == events and all(line[:1] == b"{" and line[-1:] == b"}" for line in lines)


def _blocks_of_elements(body: bytes, begin: int, end: int) -> Iterator[tuple[int, Any]]:
    """Some elements of a JSON array at a time: where the first begins, and where each of them ends.

    Looks for the commas that are in no text, object or list. If the array is valid, these separate its elements; and
    if what they separate is valid JSON each, so is the array. Anyone who reads the elements checks that.
    """
    start, depth, inside, odd = begin, 0, False, 0
    for at in range(begin, end, _BLOCK_BYTES):
        window = np.frombuffer(body, np.uint8, min(_BLOCK_BYTES, end - at), at)
        quotes = window == ord('"')
        slashes = window == ord("\\")
        if odd or slashes.any():
            # What follows an odd number of backslashes is escaped.
            places = np.arange(len(window), dtype=np.int32)
            plain = np.maximum.accumulate(np.where(slashes, np.int32(-1 - odd), places))
            before = np.concatenate([np.array([-1 - odd], np.int32), plain[:-1]])
            quotes &= (places - 1 - before) % 2 == 0
            odd = int(len(window) - 1 - plain[-1]) % 2
        inner = np.logical_xor.accumulate(quotes) ^ inside
        inside = bool(inner[-1])
        steps = np.isin(window, (ord("["), ord("{"))).astype(np.int8) - np.isin(window, (ord("]"), ord("}")))
        steps[inner] = 0
        levels = np.cumsum(steps, dtype=np.int32) + depth
        depth = int(levels[-1])
        cuts = np.flatnonzero((window == ord(",")) & ~inner & (levels == 0)) + at
        if len(cuts):
            yield start, cuts
            start = int(cuts[-1]) + 1
    yield start, np.array([end])


def _elements(body: bytes, start: int, cuts: Any, first: int) -> Iterator[tuple[int, bytes]]:
    for number, end in enumerate(cuts.tolist(), first):
        yield number, body[start:end]
        start = end + 1


def _groups(reader: Any, to: _Gathered) -> Iterator[pa.Table]:
    """The batches of an Arrow stream, several small ones at once; counted before anything is made of them."""
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        to.count(batch.num_rows)
        batch.validate()
        if not batch.num_rows:
            continue
        batches.append(batch)
        rows += batch.num_rows
        if rows >= _BLOCK_ROWS or len(batches) >= _BLOCK_BATCHES:
            yield pa.Table.from_batches(batches)
            batches, rows = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def too_many_rows(most: int) -> ProblemError:
    """More than a request may have."""
    return ProblemError(413, "Too many rows", f"At most {most:,} rows are taken at once; send them in smaller batches.")


def bad_rows(listed: list[dict[str, Any]], wrong: int) -> ProblemError:
    """All or nothing."""
    detail = "Nothing was taken. Send the body without these rows, or with ?bad_rows=skip."
    return ProblemError(422, "Some rows cannot be taken", detail, rows=listed, bad_rows=wrong)


def _equal(found: object, wanted: str) -> bool:
    return found == wanted or (type(found) is int and str(found) == wanted)


def _not_json() -> ProblemError:
    return ProblemError(400, "The body is not JSON")


_SPACE = re.compile(rb"[ \t\r\n]*")


def _after_space(body: bytes, start: int) -> int:
    found = _SPACE.match(body, start)
    assert found is not None
    return found.end()


_any_json = msgspec.json.Decoder(msgspec.Raw)  # checks, and makes nothing
_value = msgspec.json.Decoder()
_MOST_WRITTEN = 6 * MAX_FIELD_BYTES + 2  # of a text: a byte is written as \\u0000 at worst


def _is_json(row: bytes) -> bool:
    try:
        _any_json.decode(row)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _text(raw: msgspec.Raw, field: str) -> str:
    """A field as it counts. What is too long, a list or an object is refused as it is written."""
    written = bytes(memoryview(raw)[: _MOST_WRITTEN + 1])
    if not written:
        raise _RowError(_about(field, _MISSING))
    if written == b"null":
        raise _RowError(_about(field, _NULL))
    if written[0] not in b'"-0123456789':
        raise _RowError(_about(field, _KIND))
    if len(written) > _MOST_WRITTEN:
        is_fraction = written[0] not in b'"' and _POINT.search(memoryview(raw))
        raise _RowError(_about(field, _KIND if is_fraction else _LONG))
    try:
        value = _value.decode(written)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _RowError(_NOT_JSON) from None
    if type(value) is int:
        value = written.decode() if value else "0"  # -0 is 0
    if type(value) is not str:
        raise _RowError(_about(field, _KIND))
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise _RowError(_about(field, _TEXT)) from None
    if size > MAX_FIELD_BYTES:
        raise _RowError(_about(field, _LONG))
    return value


def _texts(raw: msgspec.Raw, field: str) -> list[str]:
    """The items of a set, each as it counts."""
    if bytes(memoryview(raw)[:1]) != b"[":
        _text(raw, field)  # which may be missing, null, or no value of any kind
        raise _RowError(_about(field, _NO_LIST))
    try:
        return [_text(each, field) for each in _raws.decode(raw)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _RowError(_NOT_JSON) from None


_raws = msgspec.json.Decoder(list[msgspec.Raw])
_POINT = re.compile(rb"[.eE]")


def _is_long(value: str) -> bool:
    return len(value) > MAX_FIELD_BYTES // 4 and len(value.encode()) > MAX_FIELD_BYTES


def _longest(array: pa.Array) -> int:
    if array.nbytes <= MAX_FIELD_BYTES:  # all of it is short
        return 0
    return pc.max(pc.binary_length(array)).as_py() or 0


def _kind_of(column: pa.ChunkedArray) -> pa.DataType:
    """What a column holds: texts or whole numbers, whether written once each or as often as they are meant."""
    listed = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if listed else column.type
    texts = (pa.string(), pa.large_string()) if listed else (pa.string(), pa.large_string(), pa.string_view())
    if not pa.types.is_integer(kind) and kind not in texts:
        raise ProblemError(422, "A column that the stream counts is neither text nor whole numbers")
    return kind


def _check_column(column: pa.ChunkedArray, most: int) -> int:
    """How large texts become that are written once and meant often; 413 if that is too large, before they are made."""
    listed, kind = pa.types.is_dictionary(column.type), _kind_of(column)
    total = 0
    for chunk in column.chunks:
        if kind == pa.string_view():
            # Before all of it is checked: that looks at a text as often as it is meant.
            views = np.frombuffer(chunk.buffers()[1], np.int32)[4 * chunk.offset :][: 4 * len(chunk) : 4]
            total += int(np.maximum(views, 0).sum(dtype=np.int64))
        if total > most:
            break
        chunk.validate(full=True)
        if listed and not pa.types.is_integer(kind):
            total += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    if total > most:
        raise ProblemError(413, "The table is too large", "Its texts, written out, are larger than a body may be.")
    return total


def _one_list_each(chunk: pa.Array) -> pa.Array:
    """A chunk of lists of texts or whole numbers, as lists of text."""
    chunk.validate(full=True)
    if not pa.types.is_list(chunk.type) and not pa.types.is_large_list(chunk.type):
        raise ProblemError(422, "The stream counts sets of items", "Their column must hold lists.")
    values = _as_text(pa.chunked_array([pc.list_flatten(chunk)])).combine_chunks()
    lengths = np.asarray(pc.list_value_length(chunk).fill_null(0), np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]))
    return pa.LargeListArray.from_arrays(offsets, _joined([values], pa.large_string()), mask=chunk.is_null())


def _short(column: pa.ChunkedArray) -> Any:
    """Which rows have a value that is not too long; of lists, values."""
    if not pa.types.is_large_list(column.type):
        return pc.fill_null(pc.less_equal(pc.binary_length(column), MAX_FIELD_BYTES), False)
    good = np.asarray(column.is_valid()).copy()
    before = 0
    for chunk in column.chunks:
        long = ~np.asarray(_short(chunk.flatten()), np.bool_)
        good[before + np.asarray(pc.list_parent_indices(chunk), np.int64)[long]] = False
        before += len(chunk)
    return pa.array(good)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    listed, kind = pa.types.is_dictionary(column.type), _kind_of(column)
    try:
        return (column.cast(kind) if listed else column).cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ProblemError(422, "A column that the stream counts cannot be read as text") from None


def check_arrow(body: bytes, most: int) -> bool:
    """Refuse an Arrow stream that would grow when it is read; True if it has few parts and no dictionary.

    A part that is compressed could become more than there is memory. A dictionary that is added to is copied whole
    each time, and looked at for every batch. Read from the flatbuffers of the messages (Message.fbs): header_type and
    header of Message are its fields 1 and 2; id, data and isDelta of DictionaryBatch are its 0, 1 and 2; compression
    of RecordBatch is its 3.
    """
    sizes: dict[int, int] = {}
    copied = looked = known = parts = 0
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        data = message.metadata.to_pybytes()
        table = struct.unpack_from("<I", data)[0]
        kind, header = _field(data, table, 1), _field(data, table, 2)
        if not kind or not header or data[kind] not in (_DICTIONARY, _ROWS):
            continue
        batch = _follow(data, header)
        parts += 1
        if data[kind] == _DICTIONARY:
            name, delta = _field(data, batch, 0), _field(data, batch, 2)
            number = struct.unpack_from("<q", data, name)[0] if name else 0
            before = sizes.get(number, 0) if delta and data[delta] else 0
            copied += before
            known -= sizes.get(number, 0)
            sizes[number] = before + (0 if message.body is None else message.body.size)
            known += sizes[number]
            inner = _field(data, batch, 1)
            if not inner:
                continue
            batch = _follow(data, inner)
        else:
            looked += known
        if copied > most or looked > _LOOKS * most:
            raise ProblemError(
                413, "The table is too large", "Its dictionaries are too large for this many small batches."
            )
        if _field(data, batch, 3):
            raise ProblemError(415, "Arrow streams must not be compressed")
    return parts <= _FEW_BATCHES and not sizes


_DICTIONARY, _ROWS = 2, 3  # kinds of messages


def _follow(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 if it is not given."""
    names = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, names)
    at = 4 + 2 * number
    (place,) = struct.unpack_from("<H", data, names + at) if at < size else (0,)
    return table + int(place) if place else 0


# ---- Plausible's events ---------------------------------------------------------------------------------------------


def plausible_event(body: bytes, secret: bytes, address: str, agent: str) -> tuple[str, dict[str, str]]:
    """(site, fields) of an event as Plausible's script sends it: JSON with n, u, d, r.

    The script sends no id: a visitor is told by a keyed hash of site, address and browser, whose key never leaves the
    folder of the service.
    """
    try:
        sent = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ProblemError(400, "The body is not JSON") from None
    if not isinstance(sent, dict):
        raise ProblemError(400, "The body is not an object")

    def text(*names: str) -> str:
        value = next((sent[name] for name in names if sent.get(name) is not None), "")
        if not isinstance(value, str):
            raise ProblemError(422, "A field of the event is not a text")
        return value

    event, url, site, referrer = text("n", "name"), text("u", "url"), text("d", "domain"), text("r", "referrer")
    if not event or not url or not site:
        raise ProblemError(422, "The event lacks n, u or d")
    try:
        parts = urlsplit(url)
        host, page = parts.hostname or "", parts.path or "/"
        source = urlsplit(referrer).hostname or "" if referrer else ""
    except ValueError:
        raise ProblemError(422, "The event has no address that can be read") from None
    visitor = hmac.new(secret, f"{site}\0{address}\0{agent}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()[
        :32
    ]
    fields = {"page": page, "host": host, "referrer": source or "(direct)", "event": event, "visitor": visitor}
    return site, {
        name: value.encode("utf-8", "replace")[:MAX_FIELD_BYTES].decode("utf-8", "ignore")
        for name, value in fields.items()
    }
