"""Bytes cut into whole records, each byte looked at once, however they come and however long a record is."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.events.source import BLOCK_BYTES, LONGEST_RECORD

__all__ = ["Cut", "Cutter"]

_START, _QUOTED = 0, 2  # cells, as `_native.record_ends` has them
_TOO_LONG = f"a line of more than {LONGEST_RECORD >> 20} MiB"
_OPEN = "a quoted cell that does not end"


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

    What is not yet a whole record waits, at most LONGEST_RECORD bytes of it. A record that is longer is bad, and so is
    one that the input ends inside of. It ends with the line in which a quote opened what does not end, or else with the
    line that was too long: the rule of `discreet.events.lines.blocks`.
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
            room, cell = LONGEST_RECORD - self._length, self._cell
            ends = self._ends(piece)
            if len(piece) > room and not (len(ends) and ends[0] <= room):
                # Exactly so far: what becomes of a record must not depend on the pieces that it comes in.
                self._cell = cell
                self._ends(piece[: room + 1])
                self._waiting.append(piece[: room + 1])
                again = yield from self._after_opening(_TOO_LONG)
                if again is None:
                    self._length = LONGEST_RECORD + 1
                    self._waiting, self._cell, self._passing = [], _START, True
                    piece = piece[room + 1 :]
                    if len(ends) and ends[0] == room + 1:  # its newline was the byte too many
                        yield self._too_long()
                    continue
                yield from self._cut_again(again + piece[room + 1 :])
                return
            last = int(ends[-1]) if len(ends) else 0
            if last:
                yield self._taken(b"".join([*self._waiting, piece[:last]]), ends + self._length)
            self._waiting.append(piece[last:])
            self._length += len(piece) - last
            return

    def finish(self) -> Iterator[Cut]:
        """The last record, which nothing ended: the input has, and there is no more of it."""
        while self._cell == _QUOTED:
            again = yield from self._after_opening(_OPEN)
            if again is None:
                self.forget()
                yield Cut(b"", np.array([self.position], np.int64), _OPEN)
                return
            yield from self._cut_again(again)
        if self._passing:
            yield self._too_long()
        elif self._length:
            yield self._taken(b"".join(self._waiting), np.array([self._length], np.int64))
        self._cell = _START

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
        end = data.find(b"\n", data.rfind(b'"')) + 1 if self._cell == _QUOTED else 0
        if not end:
            return None
        self.position += end
        self._waiting, self._length, self._cell = [], 0, _START
        yield Cut(b"", np.array([self.position], np.int64), trouble)
        return data[end:]

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
        return Cut(b"", np.array([self.position], np.int64), _TOO_LONG)
