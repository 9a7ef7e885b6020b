"""Arrow IPC, as a stream or as a file (Feather), batch by batch and never read from its end.

A file is its stream between a magic word and a footer, so both are read as streams, and both work from a pipe.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.ipc

from discreet.errors import DataError
from discreet.io.columns import BROKEN_INPUT, checked, choose
from discreet.io.source import ARROW_FILE_MAGIC, ByteSource

__all__ = ["read_arrow"]


def _next(reader: pa.RecordBatchReader, name: str) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except BROKEN_INPUT:
        reason = f"{name} is damaged or cut short"
    raise DataError(reason)


def read_arrow(source: ByteSource, column: str | None, user_column: str | None) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, one batch of the file at a time."""
    if source.peek(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC:
        source.read(len(ARROW_FILE_MAGIC))
    names: list[str] | None = None
    with suppress(*BROKEN_INPUT):  # raised below, without pyarrow's words, which may quote the input
        reader = pa.ipc.open_stream(pa.PythonFile(source.sequential(), mode="r"))
        names = reader.schema.names
    if names is None:
        raise DataError(f"{source.name} is not an Arrow IPC stream or file")
    wanted = choose(names, column, user_column, source.name)
    while (batch := _next(reader, source.name)) is not None:
        yield tuple(checked(batch, name, source.name) for name in wanted)
