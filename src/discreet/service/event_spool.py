"""Raw events that wait for their tick: one file a tick, mode 0600, gone when the tick is published. NOT private.

A record is a head (a mark, the payload's length and CRC-32, and a CRC-32 of these) and a payload. Records are appended
and flushed to the disk in groups. The idempotency key is in the record, so that events and key are on disk together or
not at all.

What does not have its sum is one of two things. A *torn tail* is what a kill leaves: the beginning of a record, and
then the file ends. It was acknowledged to nobody and is cut off. Anything else is *damage*: it is left out and counted
(`damaged`), and reading goes on with the next head that has its sum.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from discreet.service.folder import make_folder
from discreet.storage import sync_folder

_to_disk = getattr(os, "fdatasync", os.fsync)
_MARK = b"\xff\xfe\xf5\xff"  # in no text, since no UTF-8 has these bytes
_HEAD = struct.Struct("<4sIII")  # the mark, length and CRC-32 of the payload, CRC-32 of the three
_PIECE = 2**20  # bytes that are searched at once


class Record(NamedTuple):
    """What one request brought: rows as Arrow bytes (or a message), and what makes a retry count once."""

    rows: int  # that count
    data: bytes | None
    key: bytes | None = None
    digest: bytes | None = None
    taken: int = 0  # as the request was told


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, bytes | None, bytes | None, bytes | None, int]).decode


def packed(record: Record) -> bytes:
    """The bytes of a record, with its frame."""
    payload = _encode(tuple(record))
    head = _HEAD.pack(_MARK, len(payload), zlib.crc32(payload), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def _head(data: bytes) -> tuple[int, int] | None:
    """(length, CRC-32) of the payload after the head that these bytes begin with; None if it does not have its sum."""
    if len(data) < _HEAD.size or not data.startswith(_MARK):
        return None
    _, length, crc, own = _HEAD.unpack_from(data)
    return (length, crc) if zlib.crc32(data[: _HEAD.size - 4]) == own else None


def _walk(file: BinaryIO, at: int, end: int) -> Iterator[tuple[bytes | None, int]]:
    """The payloads between two bytes, None for a damaged place, each with the byte after it; stops at a torn tail."""
    while at < end:
        file.seek(at)
        data = file.read(min(_HEAD.size, end - at))
        head = _head(data)
        if head is not None:
            length, crc = head
            if at + _HEAD.size + length > end:
                return
            payload = file.read(length)
            at += _HEAD.size + length
            yield (payload if zlib.crc32(payload) == crc else None), at
            continue
        if len(data) == end - at < _HEAD.size and data[: len(_MARK)] == _MARK[: len(data)]:
            return
        at = _next_head(file, at + 1, end)
        yield None, at


def _next_head(file: BinaryIO, at: int, end: int) -> int:
    """Where the next head is that has its sum; the end if there is none."""
    while at < end:
        file.seek(at)
        piece = file.read(min(_PIECE, end - at))
        if not piece:  # it is shorter than it was
            break
        found = piece.find(_MARK)
        while found >= 0:
            file.seek(at + found)
            if _head(file.read(_HEAD.size)) is not None:
                return at + found
            found = piece.find(_MARK, found + 1)
        at += max(1, len(piece) - len(_MARK) + 1)
    return end


class EventSpool:
    """The files of one stream. One thread appends; others read what is on disk already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        self._sizes: dict[int, int] = {}  # by tick: what is on disk and whole
        self._open: tuple[int, int] | None = None  # tick, file
        self._uncut: set[int] = set()  # ticks after whose end a failed attempt may have left something
        self._lock = threading.Lock()
        self.damaged = 0  # places of all files that did not have their sum, since the process began
        self._damaged: set[tuple[int, int]] = set()  # tick and byte of those in files that are there
        for name in os.listdir(folder):
            if name.endswith(".spool") and name[:-6].isdigit():
                self._sizes[int(name[:-6])] = self._repair(int(name[:-6]))

    def _path(self, tick: int) -> Path:
        return self.folder / f"{tick:010d}.spool"

    def _repair(self, tick: int) -> int:
        """Cut off a torn tail; returns the size of what is left."""
        with open(self._path(tick), "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            whole = 0
            for payload, after in _walk(file, 0, end):
                if payload is None:
                    self._note_damage(tick, whole)
                whole = after
            if end > whole:
                file.truncate(whole)
                os.fsync(file.fileno())
        return whole

    def _note_damage(self, tick: int, at: int) -> None:
        with self._lock:
            if (tick, at) not in self._damaged:
                self._damaged.add((tick, at))
                self.damaged += 1

    def ticks(self) -> list[int]:
        """The ticks that have a file, in order."""
        return sorted(self._sizes)

    def size(self, tick: int) -> int:
        """The bytes of a tick that are on disk."""
        return self._sizes.get(tick, 0)

    @property
    def total_bytes(self) -> int:
        """Of all ticks together."""
        return sum(list(self._sizes.values()))

    def append(self, tick: int, records: Sequence[bytes]) -> None:
        """Put packed records at the end of a tick; on disk when this returns; an OSError leaves none of them."""
        with self._lock:
            file, before = self._file(tick), self._sizes.get(tick, 0)
            if tick in self._uncut:
                os.ftruncate(file, before)
                self._uncut.discard(tick)
            try:
                view = memoryview(b"".join(records))
                at = before
                while view:
                    written = os.pwrite(file, view, at)
                    view, at = view[written:], at + written
                _to_disk(file)
            except OSError:
                # What was written of them must not be found. Shrinking works on a full disk; nothing is added before.
                self._uncut.add(tick)
                with suppress(OSError):
                    os.ftruncate(file, before)
                    _to_disk(file)
                    self._uncut.discard(tick)
                raise
            self._sizes[tick] = at

    def _file(self, tick: int) -> int:
        if self._open is not None and self._open[0] == tick:
            return self._open[1]
        self._close()
        path = self._path(tick)
        new = tick not in self._sizes
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._open = tick, file
        if new:
            try:
                os.ftruncate(file, 0)  # what a failed attempt left
                sync_folder(self.folder)
            except OSError:
                self._close()
                raise
        return file

    def read(self, tick: int, start: int) -> Iterator[tuple[Record | None, int]]:
        """The records of a tick from this byte on, each with the byte after it; those that are on disk now.

        None for a damaged place: a record is what was written, or it is left out.
        """
        end = self._sizes.get(tick, 0)
        if start >= end:
            return
        at = start
        with open(self._path(tick), "rb") as file:
            for payload, after in _walk(file, start, end):
                record = None
                if payload is not None:
                    with suppress(msgspec.MsgspecError):
                        record = Record(*_decode(payload))
                if record is None:
                    self._note_damage(tick, at)
                at = after
                yield record, at
        if at < end:  # somebody cut it: all of this was on disk
            self._note_damage(tick, at)
            yield None, end

    def remove_until(self, tick: int) -> None:
        """Remove the ticks up to this one: they are published."""
        with self._lock:
            for old in [number for number in self._sizes if number <= tick]:
                if self._open is not None and self._open[0] == old:
                    self._close()
                self._path(old).unlink(missing_ok=True)
                del self._sizes[old]
            self._damaged = {(number, at) for number, at in self._damaged if number > tick}

    def _close(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def close(self) -> None:
        """Close the file that is open."""
        with self._lock:
            self._close()
