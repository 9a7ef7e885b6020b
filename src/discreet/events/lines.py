"""Text lines: blocks of bytes cut between lines, and lines as an Arrow array without a loop over them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from discreet.errors import DataError
from discreet.events.bad_rows import BadRows
from discreet.events.columns import as_text
from discreet.events.source import BLOCK_BYTES, LONGEST_RECORD, ByteSource

__all__ = ["Lines", "blocks", "read_lines"]


class Lines:
    """Where records end: here, at every newline."""

    def last_end(self, data: bytes) -> int:
        """Where the last whole record of data ends; 0 if there is none."""
        return data.rfind(b"\n") + 1

    def first_end(self, data: bytes) -> int:
        """Where the first whole record of data ends; 0 if there is none."""
        return data.find(b"\n") + 1

    def open_at(self, data: bytes) -> int | None:
        """Where something begins (a quoted cell) that must end, and does not; None if nothing does."""
        return None


def blocks(source: ByteSource, bad: BadRows, records: Lines | None = None) -> Iterator[bytes]:
    """The source's bytes in bounded pieces that end where a record ends, without a byte order mark.

    A record of more than LONGEST_RECORD bytes is bad, and so is one that the input ends inside of. Where it ends is a
    public rule, too: with the line in which it opened what does not end, or else with the line that was too long.
    Whether a record is bad depends on its bytes alone, never on where a block happened to end.
    """
    records = records or Lines()
    if source.peek(3) == codecs.BOM_UTF8:
        source.read(3)
    rest = b""
    while True:
        # A record that goes on is read in steps that double, so that looking for its end again and again stays linear.
        data = source.read(max(BLOCK_BYTES, min(len(rest), LONGEST_RECORD - len(rest))))
        rest += data
        while len(rest) > LONGEST_RECORD and not 0 < records.first_end(rest) <= LONGEST_RECORD:
            bad.found(1, f"{source.name} has a line of more than {LONGEST_RECORD >> 20} MiB")
            opened = records.open_at(rest[: LONGEST_RECORD + 1])
            rest = _after_line(source, rest, LONGEST_RECORD if opened is None else opened)
        end = records.last_end(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
        if not data:
            break
    while (opened := records.open_at(rest)) is not None:
        bad.found(1, f"{source.name} has a quoted cell that does not end")
        rest = _after_line(source, rest, opened)
    if rest:
        yield rest


def _after_line(source: ByteSource, data: bytes, position: int) -> bytes:
    """What follows the line at a position; that line may go on for long."""
    while not (end := data.find(b"\n", position) + 1):
        position, data = 0, source.read(BLOCK_BYTES)
        if not data:
            return b""
    return data[end:]


def _line_bytes(block: bytes) -> pa.Array:
    r"""The lines of a block as bytes; lines end in \n or \r\n, the last one perhaps in neither.

    An Arrow array of bytes is its characters without separators and the offset of each line in them. Dropping the
    newlines moves line i to the left by the i newlines before it.
    """
    if not block.endswith(b"\n"):
        block += b"\n"
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    characters = block.replace(b"\n", b"")
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(characters)])


def line_array(block: bytes, name: str) -> pa.Array:
    """The lines of a block as strings. A line that is not UTF-8 raises DataError."""
    lines, valid = as_text(_line_bytes(block))
    if valid is not None:
        raise DataError(f"{name} is not valid UTF-8 text")
    return lines


def read_lines(source: ByteSource, bad: BadRows) -> Iterator[pa.Array]:
    """Every line of the source is one item; an empty line is the empty string."""
    for block in blocks(source, bad):
        lines, valid = as_text(_line_bytes(block))
        if valid is not None:
            bad.found(len(valid) - int(valid.sum()), f"{source.name} is not valid UTF-8 text")
        yield lines
