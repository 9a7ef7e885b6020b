"""Bytes cut into whole records, each byte looked at once, however they come and however long a record is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["LONGEST_RECORD", "Cut", "Cutter"]

LONGEST_RECORD = 1 << 26
_START, _QUOTED = 0, 2  # cells, as `_native.record_ends` has them


@dataclass(frozen=True, slots=True)
class Cut:
    """Whole records one after the other, and the position of the input after each.

    Of a record that cannot be read nothing is kept but where it ends, and `trouble` says what is wrong with it.
    """

    data: bytes
    ends: npt.NDArray[np.int64]
    trouble: str | None = None


class Cutter:
    """Cuts pieces of an input into records: lines or, with a delimiter, lines but for newlines inside quotes.

    What is not yet a whole record waits, at most LONGEST_RECORD bytes of it. A record that is longer is passed over, to
    the next newline: where a quote is never closed no other end can be known without reading on for ever.
    """

    def __init__(self, delimiter: str | None = None, position: int = 0) -> None:
        self._delimiter = delimiter
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
                yield self._too_long()
                continue
            room = LONGEST_RECORD - self._length
            ends = self._ends(piece)
            if len(piece) > room and not (len(ends) and ends[0] <= room):
                # Exactly so far: what becomes of a record must not depend on the pieces that it comes in.
                self._length += room
                self._waiting, self._cell, self._passing = [], _START, True
                piece = piece[room:]
                continue
            last = int(ends[-1]) if len(ends) else 0
            if last:
                yield self._taken(b"".join([*self._waiting, piece[:last]]), ends + self._length)
            self._waiting.append(piece[last:])
            self._length += len(piece) - last
            return

    def finish(self) -> Iterator[Cut]:
        """The last record, which nothing ended: the input has, and there is no more of it."""
        if self._passing:
            yield self._too_long()
        elif self._length:
            whole = self._cell != _QUOTED
            data, end = b"".join(self._waiting), np.array([self._length], np.int64)
            trouble = None if whole else "a quoted cell that does not end"
            cut = self._taken(data, end)
            yield cut if whole else Cut(b"", cut.ends, trouble)
        self._cell = _START

    def forget(self) -> None:
        """Give up what is waiting: the rest of it will not come."""
        self._waiting, self._cell, self._passing = [], _START, False
        self.position += self._length
        self._length = 0

    def _ends(self, piece: bytes) -> npt.NDArray[np.int64]:
        if self._delimiter is None:
            return np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")).astype(np.int64) + 1
        from discreet import _native

        ends, self._cell = _native.record_ends(piece, ord(self._delimiter), self._cell)
        return np.frombuffer(ends, np.int64)

    def _taken(self, data: bytes, ends: npt.NDArray[np.int64]) -> Cut:
        cut = Cut(data, ends + self.position)
        self.position += len(data)
        self._waiting, self._length = [], 0
        return cut

    def _too_long(self) -> Cut:
        self.position += self._length
        self._length, self._passing = 0, False
        end = np.array([self.position], np.int64)
        return Cut(b"", end, f"a line of more than {LONGEST_RECORD >> 20} MiB")
