"""Arrow IPC, as a stream or as a file (Feather), batch by batch and never read from its end.

A file is its stream between a magic word and a footer, so both are read as streams, and both work from a pipe. A whole
stream ends in a mark, and a whole file has its footer after that. pyarrow takes an input that ends between two batches
for a whole one; here it is refused, because the batches that are missing would go unnoticed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.ipc

from discreet.errors import DataError
from discreet.events.inputs import ARROW_FILE_MAGIC, BLOCK_BYTES, ByteSource
from discreet.events.items import broken_input, checked, choose, unreadable

_END_MARKS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")  # since Arrow 0.15, and before
_FOOTER_END = b"ARROW1"


class _Tail(io.RawIOBase):
    """Passes reads on and remembers the last bytes that were handed out."""

    def __init__(self, below: io.RawIOBase) -> None:
        self._below = below
        self.last = b""
        self.at_end = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._below.read(size) or b""
        self.at_end = len(data) < size
        self.last = (self.last + data[-8:])[-8:]
        return data


def _next(reader: pa.RecordBatchReader, name: str) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except broken_input() as error:
        reason = unreadable(error, name, "is damaged or cut short")
    raise reason


def _check_footer(source: ByteSource) -> None:
    """After the stream of a file come the footer, its size in four bytes, and a magic word."""
    size, end = 0, b""
    while data := source.read(BLOCK_BYTES):
        size += len(data)
        end = (end + data[-10:])[-10:]
    if not end.endswith(_FOOTER_END) or int.from_bytes(end[:4], "little") + len(end) != size:
        raise DataError(f"{source.name} is truncated: it has no footer; write or copy it again")


def read_arrow(source: ByteSource, column: str | None, others: Sequence[str]) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, one batch of the file at a time."""
    is_file = source.peek(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC
    if is_file:
        source.read(len(ARROW_FILE_MAGIC))
    tail, reason = _Tail(source.sequential()), None
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(tail, mode="r"))
        names = reader.schema.names
    except broken_input() as error:  # raised below, without pyarrow's words, which may quote the input
        reason = unreadable(error, source.name, "is not an Arrow IPC stream or file")
    if reason is not None:
        raise reason
    wanted = choose(names, [column, *others], source.name)
    yield tuple(pa.nulls(0, reader.schema.field(name).type) for name in wanted)  # whether or not there are rows
    while (batch := _next(reader, source.name)) is not None:
        yield tuple(checked(batch, name, source.name) for name in wanted)
    if tail.at_end or not tail.last.endswith(_END_MARKS):
        raise DataError(
            f"{source.name} is truncated: the end mark of its Arrow stream is missing; write or copy it again"
        )
    if is_file:
        _check_footer(source)
    elif source.peek(1):
        raise DataError(f"{source.name} has bytes after the end of its Arrow stream; write it again as one stream")
