"""Bodies of requests become columns: NDJSON, JSON, CSV with a header, Arrow streams, Plausible's events.

A row is wrong if a field that counts is missing, or is no text or whole number, or is too long. Numbers count as their
digits, so that what is published is text whatever one row holds. A refusal has row numbers (from 1) and reasons that
are constants here with the name of a field, never content.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.service.definitions import StreamDefinition
from discreet.service.kinds import schema_of
from discreet.service.problems import MOST_ROWS, ProblemError

__all__ = ["FORMATS", "MAX_FIELD_BYTES", "Reader", "RowsRead", "plausible_event"]

MAX_FIELD_BYTES = 1000
MAX_ROWS = 2**24
MAX_TEXT_BYTES = 2**28  # of a column of Arrow, as texts

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
_LONG = f"has more than {MAX_FIELD_BYTES} bytes"
_NOT_JSON = "the row is not JSON"
_NOT_OBJECT = "the row is not an object"
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
    """Reads the bodies for one stream."""

    def __init__(self, definition: StreamDefinition) -> None:
        self.schema = schema_of(definition)
        self._fields = [getattr(definition, name) for name in self.schema.names]
        self._where = dict(definition.where)
        every = list(dict.fromkeys([*self._fields, *self._where]))
        self._names = {field: f"f{number}" for number, field in enumerate(every)}
        value = str | int
        shape = [
            (self._names[field], value if field in self._fields else (Any), *(() if field in self._fields else (None,)))
            for field in sorted(every, key=lambda field: field not in self._fields)
        ]
        rename = {name: field for field, name in self._names.items()}
        self._event = msgspec.defstruct("Event", shape, rename=rename, gc=False)
        self._lines = msgspec.json.Decoder(self._event)
        self._array = msgspec.json.Decoder(list[self._event])  # type: ignore[name-defined]
        self._one = msgspec.json.Decoder()

    def read(self, form: str, body: bytes, skip: bool) -> RowsRead:
        """The rows of a body; ProblemError 422 for wrong ones, unless they are to be skipped."""
        if form == "arrow":
            return self._arrow(body, skip)
        if form == "csv":
            return self._csv(body, skip)
        try:
            # The quick way: all rows are right.
            if form == "ndjson":
                events = self._lines.decode_lines(body)
            elif body.lstrip()[:1] == b"{":
                events = [self._lines.decode(body)]
            else:
                events = self._array.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self._slowly(form, body, skip)
        rows = self._columns(events)
        return self._slowly(form, body, skip) if rows is None else rows

    def of_values(self, values: dict[str, Any]) -> RowsRead:
        """One event that is there already."""
        return self._collect([(1, lambda: values)], skip=False)

    # ---- all at once ------------------------------------------------------------------------------------------------

    def _columns(self, events: list[Any]) -> RowsRead | None:
        """None where a value is too long, which the slow way finds."""
        count = len(events)
        if self._where:
            wanted = [(self._names[field], value) for field, value in self._where.items()]
            events = [e for e in events if all(_equal(getattr(e, name), value) for name, value in wanted)]
        arrays = []
        for field in self._fields:
            name = self._names[field]
            values = [getattr(event, name) for event in events]
            try:
                array = pa.array(values, pa.large_string())
            except (pa.ArrowTypeError, pa.ArrowInvalid, UnicodeError):
                array = pa.array([value if type(value) is str else str(value) for value in values], pa.large_string())
            if _longest(array) > MAX_FIELD_BYTES:
                return None
            arrays.append(array)
        return RowsRead(count, len(events), self._batch(arrays))

    def _batch(self, arrays: list[Any]) -> pa.RecordBatch | None:
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else None

    # ---- row by row -------------------------------------------------------------------------------------------------

    def _slowly(self, form: str, body: bytes, skip: bool) -> RowsRead:
        if form == "ndjson":
            lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
            return self._collect([(number, partial(self._one.decode, line)) for number, line in lines], skip)
        try:
            whole = self._one.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise ProblemError(400, "The body is not JSON") from None
        if not isinstance(whole, list):
            whole = [whole]
        return self._collect([(number, partial(_itself, row)) for number, row in enumerate(whole, 1)], skip)

    def _collect(self, rows: Iterable[tuple[int, Callable[[], Any]]], skip: bool) -> RowsRead:
        bad: list[dict[str, Any]] = []
        values: list[tuple[str, ...]] = []
        taken = wrong = 0
        for number, get in rows:
            try:
                kept = self._checked(get)
            except _RowError as error:
                wrong += 1
                if len(bad) < MOST_ROWS:
                    bad.append({"row": number, "reason": str(error)})
                continue
            taken += 1
            if kept is not None:
                values.append(kept)
        if wrong and not skip:
            raise bad_rows(bad, wrong)
        columns = list(zip(*values, strict=True)) if values else [()] * len(self._fields)
        arrays = [pa.array(column, pa.large_string()) for column in columns]
        return RowsRead(taken, len(values), self._batch(arrays), wrong)

    def _checked(self, get: Callable[[], Any]) -> tuple[str, ...] | None:
        """The values that count; None for a row that is right and not wanted."""
        try:
            row = get()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise _RowError(_NOT_JSON) from None
        if not isinstance(row, dict):
            raise _RowError(_NOT_OBJECT)
        values = tuple(_text(row, field) for field in self._fields)
        if all(_equal(row.get(field), value) for field, value in self._where.items()):
            return values
        return None

    # ---- tables -----------------------------------------------------------------------------------------------------

    def _csv(self, body: bytes, skip: bool) -> RowsRead:
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ProblemError(400, "The body is not UTF-8") from None
        lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        try:
            header = next(lines, None)
            cells = [row for row in lines if row]
        except csv.Error:
            raise ProblemError(400, "The body is not CSV") from None
        if header is None or len(set(header)) < len(header):
            raise ProblemError(422, "The CSV needs a header with different names")
        absent = [field for field in self._fields if field not in header]
        if absent:
            raise ProblemError(
                422, "The CSV lacks a column that the stream counts", f"It needs {', '.join(self._fields)}."
            )

        def row_of(row: list[str]) -> dict[str, str]:
            if len(row) != len(header):
                raise _RowError(_CELLS)
            return dict(zip(header, row, strict=True))

        return self._collect([(number, partial(row_of, row)) for number, row in enumerate(cells, 1)], skip)

    def _arrow(self, body: bytes, skip: bool) -> RowsRead:
        try:
            if _is_compressed(body):
                raise ProblemError(415, "Arrow streams are taken without compression")
            with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
                table = reader.read_all()
            table.validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError, struct.error):
            raise ProblemError(400, "The body is not an Arrow stream") from None
        if len(set(table.column_names)) < len(table.column_names) or table.num_rows > MAX_ROWS:
            raise ProblemError(422, "The table has two columns of one name, or too many rows")
        columns = {}
        for field in [*self._fields, *self._where]:
            if field in table.column_names:
                columns[field] = _as_text(table.column(field))
            elif field in self._fields:
                raise ProblemError(
                    422, "The table lacks a column that the stream counts", f"It needs {', '.join(self._fields)}."
                )
        rows = table.num_rows
        good = None
        for field in self._fields:
            column = columns[field]
            fine = pc.fill_null(pc.less_equal(pc.binary_length(column), MAX_FIELD_BYTES), False)
            good = fine if good is None else pc.and_(good, fine)
        wrong = 0
        if good is not None and (wrong := rows - (pc.sum(good).as_py() or 0)):
            if not skip:
                numbers = pc.indices_nonzero(pc.invert(good)).to_pylist()[:MOST_ROWS]
                listed = [{"row": n + 1, "reason": self._reason(columns, n)} for n in numbers]
                raise bad_rows(listed, wrong)
            columns = {field: column.filter(good) for field, column in columns.items()}
        for field, value in self._where.items():
            if field not in columns:
                columns = {name: column.slice(0, 0) for name, column in columns.items()}
                left = 0
                break
            wanted = pc.fill_null(pc.equal(columns[field], value), False)
            columns = {name: column.filter(wanted) for name, column in columns.items()}
            left = len(columns[field])
        else:
            left = len(columns[next(iter(columns))]) if columns else rows - wrong
        arrays = [
            pa.concat_arrays(columns[f].chunks) if columns[f].num_chunks else pa.array([], pa.large_string())
            for f in self._fields
        ]
        return RowsRead(rows - wrong, left, self._batch(arrays), wrong)

    def _reason(self, columns: dict[str, pa.ChunkedArray], number: int) -> str:
        """What is wrong with a row of a table."""
        empty = [field for field in self._fields if not columns[field][number].is_valid]
        if empty:
            return _about(empty[0], _NULL)
        long = (f for f in self._fields if len(columns[f][number].as_py().encode()) > MAX_FIELD_BYTES)
        return _about(next(long), _LONG)


def bad_rows(listed: list[dict[str, Any]], wrong: int) -> ProblemError:
    """All or nothing."""
    detail = "Nothing was taken. Send the body without these rows, or with ?bad_rows=skip."
    return ProblemError(422, "Some rows cannot be taken", detail, rows=listed, bad_rows=wrong)


def _itself(row: Any) -> Any:
    return row


def _equal(found: object, wanted: str) -> bool:
    return found == wanted or (type(found) is int and str(found) == wanted)


def _text(row: dict[str, Any], field: str) -> str:
    value = row.get(field, _MISSING)
    if value is _MISSING:
        raise _RowError(_about(field, _MISSING))
    if value is None:
        raise _RowError(_about(field, _NULL))
    if type(value) is int:
        # Python refuses to write very long ones; no id and no item has so many digits.
        if value.bit_length() > 8 * MAX_FIELD_BYTES // 3:
            raise _RowError(_about(field, _LONG))
        value = str(value)
    if type(value) is not str:
        raise _RowError(_about(field, _KIND))
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise _RowError(_about(field, _TEXT)) from None
    if size > MAX_FIELD_BYTES:
        raise _RowError(_about(field, _LONG))
    return value


def _longest(array: pa.Array) -> int:
    if array.nbytes <= MAX_FIELD_BYTES:  # all of it is short
        return 0
    return pc.max(pc.binary_length(array)).as_py() or 0


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    listed = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if listed else column.type
    texts = (pa.string(), pa.large_string()) if listed else (pa.string(), pa.large_string(), pa.string_view())
    if not pa.types.is_integer(kind) and kind not in texts:
        raise ProblemError(422, "A column that the stream counts is neither text nor whole numbers")
    if kind in texts and sum(_text_bytes(chunk, listed) for chunk in column.chunks) > MAX_TEXT_BYTES:
        raise ProblemError(413, "The table is too large", "Its texts are many times as large as the body.")
    try:
        return (column.cast(kind) if listed else column).cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ProblemError(422, "A column that the stream counts cannot be read as text") from None


def _text_bytes(chunk: pa.Array, listed: bool) -> int:
    """How large texts become that may be written once and meant many times; others are as large as they came."""
    if listed:
        return pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    if chunk.type == pa.string_view() and len(chunk):
        views = np.frombuffer(chunk.buffers()[1], np.int32).reshape(-1, 4)[chunk.offset :][: len(chunk)]
        return int(np.maximum(views[:, 0], 0).sum(dtype=np.int64))
    return 0


def _is_compressed(body: bytes) -> bool:
    """Whether a part of an Arrow stream is: a few bytes could become more than there is memory.

    Read from the flatbuffers of the messages (Message.fbs): header_type and header of Message are its fields 1 and 2,
    data of DictionaryBatch is field 1, compression of RecordBatch is field 3.
    """
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        data = message.metadata.to_pybytes()
        table = struct.unpack_from("<I", data)[0]
        kind, header = _field(data, table, 1), _field(data, table, 2)
        if not kind or not header or data[kind] not in (_DICTIONARY, _ROWS):
            continue
        batch = _follow(data, header)
        if data[kind] == _DICTIONARY:
            inner = _field(data, batch, 1)
            if not inner:
                continue
            batch = _follow(data, inner)
        if _field(data, batch, 3):
            return True
    return False


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
