"""Following an input that grows: a file through its rotations, as `tail -F` does, or a pipe.

Positions count the bytes of the whole input: of a file, and of those that took its name after it, one after the
other. What was read up to a position is told by it alone, across restarts.
"""

from __future__ import annotations

import hashlib
import os
import select
import stat
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import CorruptStateError, ParameterError
from discreet.events.inputs import STDIN

if TYPE_CHECKING:
    from discreet.events.queues import Queued

_HEAD = 4096  # bytes that tell a file from others
_LOOK = 1 << 24


def follow(path: str, remark: Callable[[str], None]) -> Piped | Followed | Queued:
    """What follows this path; "-" is standard input. `remark` is told what the operator should know."""
    if path == STDIN:
        return Piped(path)
    if "://" in path:
        from discreet.events.queues import Queued

        return Queued(path, remark)
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise ParameterError(f"{path!r} cannot be opened: {error.strerror}") from error
    return Followed(path, remark) if regular else Piped(path)


class Piped:
    """Standard input or a named pipe: what was read is gone, and it `ended` when its writer closes it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1
        self._room = 0
        self.ended = False

    def open(self, position: int, saved: Any) -> None:
        """It goes on with what comes next."""
        try:
            self._handle = 0 if self._path == STDIN else os.open(self._path, os.O_RDONLY)
        except OSError as error:
            raise ParameterError(f"{self._path!r} cannot be opened: {error.strerror}") from error

    def look(self) -> str | None:
        """See what is there now, for `read`: a bounded piece of what may come for ever."""
        self._room = _LOOK
        return None

    def read(self, size: int) -> bytes:
        """Never waits: a tick may end meanwhile."""
        if self.ended or not self._room or not select.select([self._handle], [], [], 0)[0]:
            return b""
        data = os.read(self._handle, size)
        self.ended = not data
        self._room = max(0, self._room - len(data))
        return data

    def more(self) -> bool:
        """Nobody knows."""
        return False

    def wait(self, seconds: float) -> None:
        """Until the writer has written."""
        select.select([self._handle], [], [], seconds)

    def before(self) -> bytes:
        """What was read is gone."""
        return b""

    def beginning(self, size: int) -> bytes:
        """What was read is gone."""
        return b""

    def saved(self, position: int) -> Any:
        """Nothing: a pipe cannot be read again."""
        return None

    def close(self) -> None:
        """Standard input stays open."""
        if self._handle > 0:
            os.close(self._handle)


@dataclass(frozen=True, slots=True)
class _File:
    """One of the files of an input: where it begins in it, and what tells it from others."""

    start: int
    device: int
    inode: int
    head: str  # a hash of the first `length` bytes
    length: int

    def is_at(self, status: os.stat_result) -> bool:
        return (self.device, self.inode) == (status.st_dev, status.st_ino)

    def begins(self, handle: int) -> bool:
        """Whether this is what an open file begins with."""
        return _head(handle, self.length) == (self.head, self.length)


class Followed:
    """A file by its name. When another file has taken the name, the one that is open is read to its end first.

    A file is known by its inode and by what it begins with; one that is shorter than what was read of it, or that
    begins otherwise, was emptied and is read from its start. When a watch goes on and the name has gone to another
    file, the rest of the first is looked for under the other names of its directory.
    """

    ended = False

    def __init__(self, path: str, remark: Callable[[str], None]) -> None:
        self._path = path
        self._remark = remark
        self._handle = -1
        self._files: list[_File] = []  # the last one is open
        self._next: list[_File] = []  # those after it that were read before a restart
        self._offset = 0  # in it
        self._limit = 0

    def open(self, position: int, saved: Any) -> None:
        """Go to a position, in the file that it is in."""
        files = [] if saved is None else _checked(saved)
        if position and not files:  # a state that was written before files were told apart
            self._take(self._path, 0)
            if os.fstat(self._handle).st_size >= position:
                self._offset = self._limit = position
                return
            self._files = []
            self._lost()
            self._take(self._path, position)
            return
        if not files:
            self._take(self._path, 0)
            return
        if files[0].start > position:
            raise CorruptStateError("the state does not say which files were read")
        place = next(file for file in reversed(files) if file.start <= position)
        self._next = [file for file in files if file.start > position]
        if not self._find(place, position - place.start):
            self._take(self._path, position)

    def look(self) -> str | None:
        """See what is there now, for `read`: how far the file goes; "next" or "cut" if another file begins here."""
        file, size = self._files[-1], os.fstat(self._handle).st_size
        if size < self._offset or not file.begins(self._handle):
            if not self._find(file, self._offset):
                self._take(self._path, file.start + self._offset)
                self._limit = os.fstat(self._handle).st_size
                return "cut"
            size = os.fstat(self._handle).st_size
        if self._next:
            return self._known(self._next[0].start - file.start)
        self._limit = size
        if size > self._offset:
            return None
        try:
            status = os.stat(self._path)
        except OSError:
            return None  # between two files
        if self._files[-1].is_at(status) or not status.st_size:  # an empty one may not be written to yet
            return None
        if os.fstat(self._handle).st_size > self._offset:  # written since, under its old name
            return None
        try:
            self._take(self._path, self._files[-1].start + self._offset)
        except ParameterError:
            return None  # moved away since: another one will come
        self._limit = os.fstat(self._handle).st_size
        return "next"

    def _known(self, length: int) -> str | None:
        """The same for a file that was read to its end once, at this length."""
        self._limit = length
        if length > self._offset:
            return None
        following = self._next.pop(0)
        if not self._find(following, 0):
            self._take(self._path, following.start)
            self._next = []
        self._limit = os.fstat(self._handle).st_size
        if self._next:
            self._limit = self._next[0].start - following.start
        return "next"

    def read(self, size: int) -> bytes:
        """What was there at the last look."""
        data = os.pread(self._handle, min(size, self._limit - self._offset), self._offset)
        self._offset += len(data)
        if not data:
            self._limit = self._offset  # emptied since: the next look finds out
        if self._files[-1].length < min(_HEAD, self._offset):  # it can be known by more of its beginning
            self._files[-1] = _described(self._handle, self._files[-1].start)
        return data

    def more(self) -> bool:
        """Whether the file has grown, or another one has its name."""
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        grown = os.fstat(self._handle).st_size != self._offset
        return grown or bool(self._next) or (status.st_size > 0 and not self._files[-1].is_at(status))

    def wait(self, seconds: float) -> None:
        """A file does not say when it grows."""
        if not self.more():
            time.sleep(seconds)

    def before(self) -> bytes:
        """The last byte that was read of this file."""
        return os.pread(self._handle, 1, self._offset - 1) if self._offset else b""

    def beginning(self, size: int) -> bytes:
        """The first bytes of the file that is open."""
        return os.pread(self._handle, size, 0)

    def saved(self, position: int) -> Any:
        """The files from the one that has this position on; no earlier one will be asked for again."""
        files = [*self._files, *self._next]
        later = [file for file in files if file.start > position]
        before = [file for file in files if file.start <= position]
        self._files = [file for file in self._files if file.start >= before[-1].start]
        return [asdict(file) for file in [*before[-1:], *later]]

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _take(self, path: str, start: int) -> None:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise ParameterError(f"{path!r} cannot be opened: {error.strerror}") from error
        self.close()
        self._handle, self._offset, self._limit = handle, 0, 0
        self._files.append(_described(handle, start))

    def _find(self, file: _File, offset: int) -> bool:
        """Go on in a file wherever it is now; False if it is gone, and what was written to it last with it."""
        name = self._name_of(file, offset)
        if name is None:
            self._lost()
            return False
        self._files = [known for known in self._files if known.start < file.start]
        self._take(name, file.start)
        self._offset = self._limit = offset
        return True

    def _lost(self) -> None:
        self._remark(f"{self._path!r} was emptied or replaced, and the rest of what it held is not there to be read")

    def _name_of(self, file: _File, offset: int) -> str | None:
        """The name that a file has now: its own, or one that it was moved or copied to."""

        def fits(name: str, copied: bool) -> bool:
            try:
                handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                return False
            try:
                status = os.fstat(handle)
                # A copy is known by its beginning alone; a few bytes would be too little.
                known = file.length >= min(_HEAD, offset) > 0 if copied else file.is_at(status)
                return stat.S_ISREG(status.st_mode) and known and status.st_size >= offset and file.begins(handle)
            finally:
                os.close(handle)

        base = Path(self._path).resolve()
        with os.scandir(base.parent) as entries:
            others = sorted((entry.path, entry.inode()) for entry in entries)
        moved = [name for name, inode in others if inode == file.inode]
        copies = [name for name, _ in others if os.path.basename(name).startswith(base.name)]
        for copied, names in ((False, [self._path, *moved]), (True, [self._path, *copies])):
            for name in names:
                if fits(name, copied):
                    return name
        return None


def _head(handle: int, length: int) -> tuple[str, int]:
    data = os.pread(handle, length, 0)
    return hashlib.sha256(data).hexdigest(), len(data)


def _described(handle: int, start: int) -> _File:
    status = os.fstat(handle)
    return _File(start, status.st_dev, status.st_ino, *_head(handle, _HEAD))


def _checked(saved: Any) -> list[_File]:
    """The files of a state, which is only as good as its bytes."""
    try:
        files = [_File(**file) for file in saved or []]
        if all(type(v) is int for f in files for v in (f.start, f.device, f.inode, f.length)) and (
            not files or files[0].start >= 0
        ):
            return files
    except TypeError:
        pass
    raise CorruptStateError("the state does not say which files were read")
