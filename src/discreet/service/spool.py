"""Raw events that wait for their tick: one file a tick, mode 0600, gone when the tick is published. NOT private.

A record is a length, a CRC-32 and a payload. Records are appended and flushed to the disk in groups; a record that a
crash cut short was acknowledged to nobody and is dropped. The idempotency key is in the record, so that events and
key are on disk together or not at all.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from discreet.service.store import make_folder, sync_folder

__all__ = ["EventSpool", "Record"]

_to_disk = getattr(os, "fdatasync", os.fsync)
_HEAD = struct.Struct("<II")
MAX_RECORD = 2**31 - 1


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
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


class EventSpool:
    """The files of one stream. One thread appends; others read what is on disk already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)
        self._sizes: dict[int, int] = {}  # by tick: what is on disk and whole
        self._open: tuple[int, int] | None = None  # tick, file
        self._uncut: set[int] = set()  # ticks after whose end a failed attempt may have left something
        self._lock = threading.Lock()
        for name in os.listdir(folder):
            if name.endswith(".spool") and name[:-6].isdigit():
                self._sizes[int(name[:-6])] = self._repair(int(name[:-6]))

    def _path(self, tick: int) -> Path:
        return self.folder / f"{tick:010d}.spool"

    def _repair(self, tick: int) -> int:
        """Cut off what a crash left unfinished; returns the size of what is whole."""
        whole = 0
        with open(self._path(tick), "r+b") as file:
            while True:
                head = file.read(_HEAD.size)
                if len(head) < _HEAD.size:
                    break
                length, crc = _HEAD.unpack(head)
                payload = file.read(length) if length <= MAX_RECORD else b""
                if len(payload) < length or zlib.crc32(payload) != crc:
                    break
                whole = file.tell()
            if file.seek(0, os.SEEK_END) > whole:
                file.truncate(whole)
                os.fsync(file.fileno())
        return whole

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
            self._append(tick, records)

    def _append(self, tick: int, records: Sequence[bytes]) -> None:
        file = self._file(tick)
        before = self._sizes.get(tick, 0)
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

    def read(self, tick: int, start: int) -> Iterator[tuple[Record, int]]:
        """The records of a tick from this byte on, each with the byte after it; those that are on disk now."""
        end = self._sizes.get(tick, 0)
        if start >= end:
            return
        with open(self._path(tick), "rb") as file:
            file.seek(start)
            at = start
            while at < end:
                length, _ = _HEAD.unpack(file.read(_HEAD.size))
                payload = file.read(length)
                at += _HEAD.size + length
                yield Record(*_decode(payload)), at

    def remove_until(self, tick: int) -> None:
        """Remove the ticks up to this one: they are published."""
        with self._lock:
            for old in [number for number in self._sizes if number <= tick]:
                if self._open is not None and self._open[0] == old:
                    self._close()
                self._path(old).unlink(missing_ok=True)
                del self._sizes[old]

    def _close(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def close(self) -> None:
        """Close the file that is open."""
        with self._lock:
            self._close()
