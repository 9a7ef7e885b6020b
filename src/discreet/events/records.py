"""Bytes cut into whole records, however they come and however long a record is."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from discreet import _native
from discreet.events.inputs import BLOCK_BYTES, LONGEST_RECORD, ByteSource

__all__ = ["Cut", "Cutter", "blocks", "cuts"]

_START, _QUOTED = 0, 2  # cells, as `_native.record_bounds` has them
_TOO_LONG = f"a line of more than {LONGEST_RECORD >> 20} MiB"
_OPEN = "a quoted cell that does not end"


@dataclass(frozen=True, slots=True)
class Cut:
    """Whole records one after the other, and where they are in the input.

    Of a record that cannot be read nothing is kept but its place and how many `lines` it took, and `trouble` says what
    is wrong with it.
    """

    data: bytes
    start: int
    end: int
    trouble: str | None = None
    lines: int = 1


class Cutter:
    """Cuts pieces of an input into records: lines or, with a quote, lines but for newlines inside of quoted cells.

    What is not yet a whole record waits, at most LONGEST_RECORD bytes of it. A record that is longer is bad, and so is
    one that the input ends inside of. Where it ends is a public rule, too: with the line in which a quote opened what
    does not end, or else with the line that was too long. What becomes of a record depends on its bytes alone, never on
    the pieces that it comes in, and how often a byte is looked at does not grow with the record.
    """

    def __init__(self, delimiter: str = ",", quote: str | None = None, position: int = 0) -> None:
        self._delimiter = delimiter
        self._quote = None if quote is None else quote.encode()
        self.position = position  # of the first byte that is not in a record yet
        self._waiting: list[bytes] = []
        self._length = 0
        self._cell = _START
        self._passing = False  # over the rest of a record that is too long

    def cut(self, piece: bytes) -> Iterator[Cut]:
        """The records that end in this piece."""
        if len(piece) > LONGEST_RECORD:
            for start in range(0, len(piece), LONGEST_RECORD):
                yield from self.cut(piece[start : start + LONGEST_RECORD])
            return
        while piece:
            if self._passing:
                end = piece.find(b"\n") + 1
                self._length += end or len(piece)
                if not end:
                    return
                piece = piece[end:]
                yield self._given_up(self._length, _TOO_LONG)
                continue
            room, cell = LONGEST_RECORD - self._length, self._cell
            first, last = self._ends(piece)
            if len(piece) > room and not 0 < first <= room:
                self._cell = cell
                self._ends(piece[: room + 1])  # exactly so far
                self._waiting.append(piece[: room + 1])
                again = yield from self._after_opening(_TOO_LONG)
                if again is None:
                    self._length = LONGEST_RECORD + 1
                    self._waiting, self._cell, self._passing = [], _START, True
                    piece = piece[room + 1 :]
                    if first == room + 1:  # its newline was the byte too many
                        yield self._given_up(self._length, _TOO_LONG)
                    continue
                yield from self._cut_again(again + piece[room + 1 :])
                return
            if last:
                yield self._taken(b"".join([*self._waiting, memoryview(piece)[:last]]))
            self._waiting.append(piece[last:])
            self._length += len(piece) - last
            return

    def finish(self) -> Iterator[Cut]:
        """The last record, which nothing ended: the input has, and there is no more of it."""
        while self._cell == _QUOTED:
            again = yield from self._after_opening(_OPEN)
            if again is None:
                yield self._given_up(self._length, _OPEN)
                return
            yield from self._cut_again(again)
        if self._passing:
            yield self._given_up(self._length, _TOO_LONG)
        elif self._length:
            yield self._taken(b"".join(self._waiting))
        self._cell = _START

    def skip(self, count: int) -> None:
        """Pass over bytes that belong to no record, between two of them."""
        self.position += count

    def forget(self) -> None:
        """Give up what is waiting: the rest of it will not come."""
        self._given_up(self._length, "")

    def _ends(self, piece: bytes) -> tuple[int, int]:
        """Where the first and the last record that end in a piece do; 0 if none does."""
        if self._quote is None:
            return piece.find(b"\n") + 1, piece.rfind(b"\n") + 1
        if self._cell == _QUOTED or self._quote in piece:
            first, last, self._cell = _native.record_bounds(piece, ord(self._delimiter), self._cell, ord(self._quote))
            return first, last
        last = piece.rfind(b"\n") + 1
        rest, cell = piece[last:], _START if last else self._cell
        self._cell = _native.record_bounds(rest, ord(self._delimiter), cell, ord(self._quote))[2]
        return piece.find(b"\n") + 1, last

    def _cut_again(self, data: bytes) -> Iterator[Cut]:
        """Cut what has waited, in pieces as small as they come."""
        for start in range(0, len(data), BLOCK_BYTES):
            yield from self.cut(data[start : start + BLOCK_BYTES])

    def _after_opening(self, trouble: str) -> Generator[Cut, None, bytes | None]:
        """Give up the lines up to that in which a quote opened what does not end; what comes after it, to be cut again.

        None if nothing is quoted, or that line has not ended. No quote comes after the one that opened, so what is cut
        again is not given up again.
        """
        data = b"".join(self._waiting)
        open_quote = self._cell == _QUOTED and self._quote is not None
        end = data.find(b"\n", data.rfind(self._quote or b"")) + 1 if open_quote else 0
        if not end:
            return None
        yield self._given_up(end, trouble, data.count(b"\n", 0, end))
        return data[end:]

    def _taken(self, data: bytes) -> Cut:
        start, self.position = self.position, self.position + len(data)
        self._waiting, self._length = [], 0
        return Cut(data, start, self.position)

    def _given_up(self, length: int, trouble: str, lines: int = 1) -> Cut:
        """Nothing waits any more; so much of it was a record that cannot be read."""
        start, self.position = self.position, self.position + length
        self._waiting, self._length, self._cell, self._passing = [], 0, _START, False
        return Cut(b"", start, self.position, trouble, lines)


def cuts(source: ByteSource, delimiter: str = ",", quote: str | None = None, blocks: int = 1) -> Iterator[Cut]:
    """The records of a whole file, without a byte order mark; so many blocks of bytes at a time."""
    _pass_mark(source)
    return _cuts(source, Cutter(delimiter, quote), b"", blocks)


def blocks(source: ByteSource, delimiter: str | None, quote: str | None = None) -> Iterator[_native.TextBlock | Cut]:
    """The same in memory that is used again, as long as records are no longer than a block and end before the file.

    Without a delimiter they are lines.
    """
    _pass_mark(source)
    marks, block, waiting = (ord(delimiter or "\0"), ord(quote or "\0")), None, 0
    while waiting <= BLOCK_BYTES:
        block = _native.TextBlock(BLOCK_BYTES, block)
        count = source.read_into(block.room())
        waiting = block.cut(count, count < BLOCK_BYTES, *marks)
        if len(block):
            yield block
        if count < BLOCK_BYTES:
            if not waiting:
                return
            break
    assert block is not None
    yield from _cuts(source, Cutter(delimiter or ",", quote), block.waiting())


def _pass_mark(source: ByteSource) -> None:
    """Pass over a byte order mark."""
    if source.peek(3) == codecs.BOM_UTF8:
        source.read(3)


def _cuts(source: ByteSource, cutter: Cutter, piece: bytes, blocks: int = 1) -> Iterator[Cut]:
    """The records of a piece and all that comes after it."""
    yield from cutter.cut(piece)
    while piece := source.read(blocks * BLOCK_BYTES):
        yield from cutter.cut(piece)
    yield from cutter.finish()
