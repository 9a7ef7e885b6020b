"""Text lines: blocks of bytes cut between lines, and lines as an Arrow array without a loop over them."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from discreet.errors import DataError
from discreet.io.source import BLOCK_BYTES, LONGEST_RECORD, ByteSource

__all__ = ["blocks", "read_lines"]


def last_line_end(data: bytes) -> int:
    """Where the last whole line of data ends; 0 if there is none."""
    return data.rfind(b"\n") + 1


def blocks(
    source: ByteSource,
    last_end: Callable[[bytes], int] = last_line_end,
    check_rest: Callable[[bytes], None] = lambda rest: None,
) -> Iterator[bytes]:
    """The source's bytes in bounded pieces that end where a record ends, without a byte order mark.

    `last_end(data)` tells where the last whole record in data ends. The last piece is what is left; `check_rest` may
    refuse it.
    """
    if source.peek(3) == codecs.BOM_UTF8:
        source.read(3)
    rest = b""
    while data := source.read(BLOCK_BYTES):
        data = rest + data
        end = last_end(data)
        if end:
            yield data[:end]
        rest = data[end:]
        if len(rest) > LONGEST_RECORD:
            raise DataError(f"{source.name} has a line of more than {LONGEST_RECORD >> 20} MiB")
    if rest:
        check_rest(rest)
        yield rest


def line_array(block: bytes, name: str) -> pa.Array:
    r"""The lines of a block as strings; lines end in \n or \r\n, the last one perhaps in neither.

    An Arrow string array is its characters without separators and the offset of each line in them. Dropping the
    newlines moves line i to the left by the i newlines before it.
    """
    try:
        block.decode()
    except UnicodeDecodeError:
        valid = False
    else:
        valid = True
    if not valid:  # raised here so that the error holds no piece of the input
        raise DataError(f"{name} is not valid UTF-8 text")
    if not block.endswith(b"\n"):
        block += b"\n"
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    characters = block.replace(b"\n", b"")
    return pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(characters)])


def read_lines(source: ByteSource) -> Iterator[pa.Array]:
    """Every line of the source is one item; an empty line is the empty string."""
    for block in blocks(source):
        yield line_array(block, source.name)
