"""What is stored: the envelope of every state, and files that survive a crash.

A state file is used by one process at a time, replaced at once, and on disk before anyone goes on.

What is locked is the file that is meant, not its name: links are followed, a file with two names is refused, and
besides the lock file (there may be no state yet) the state itself is locked, so that it stays so when it is moved.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import CorruptStateError, DiscreetError, ParameterError, TryAgainError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "MAGIC",
    "NO_ROOM",
    "AtomicFile",
    "StateFile",
    "lock_file",
    "locked",
    "open_state",
    "read_toml",
    "seal_state",
    "sync_folder",
    "write_error",
]

MAGIC = b"DSCREET1"  # how every envelope begins
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)  # of errors in writing: there may be room later
_POLL_SECONDS = 0.02


def seal_state(family: int, version: int, *payload: Any) -> bytes:
    """Wrap a payload, in one or several buffers, with magic, family (100 and up), version and checksum."""
    from discreet import _native

    return _native.seal_state(family, version, payload)


def open_state(data: bytes, family: int, newest: int, *, oldest: int | None = None) -> tuple[int, bytes]:
    """The version and payload of a state of this family; `CorruptStateError` for anything else.

    One version can be read. When a family gets its next one, its reader passes the `oldest` that it still knows and
    makes the payload of the newest one of it: from the first release on, states stay readable (tests/golden).
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ParameterError(f"a state is bytes, not {type(data).__name__}")
    from discreet import _native

    found, version, payload = _native.open_state(bytes(data))
    if found != family:
        raise CorruptStateError("state belongs to another class")
    oldest = newest if oldest is None else oldest
    if not oldest <= version <= newest:
        readable = f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
        raise CorruptStateError(f"state has version {version}; this program reads {readable}")
    return version, payload


class StateFile:
    """A state on disk that this process alone uses. Made by `locked`."""

    def __init__(self, path: Path, directory: int) -> None:
        self.path = path
        self._temporary = f".{path.name}.discreet-new"
        self._directory = directory
        self._file: int | None = None  # the state as it is now, open and locked

    @property
    def exists(self) -> bool:
        return self._file is not None

    def read(self) -> bytes:
        """All of the state; empty if there is none yet."""
        if self._file is None:
            return b""
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            with open(self._file, "rb", closefd=False) as file:
                return file.read()
        except OSError as error:
            raise DiscreetError(f"the state {str(self.path)!r} cannot be read: {error.strerror}") from error

    def replace(self, data: bytes, *, erase: bool = False) -> None:
        """Replace the state at once, for its owner alone, and have it on disk before this returns.

        It is written into a file without a name, which a kill leaves nothing of, and has a second name only between
        two system calls: if it is killed there, the next one to lock the state removes that.

        Args:
            erase: Overwrite the old state with zeros once the new one is there.
        """
        try:
            self._check_unchanged()
            new = self._write(data)
            try:
                os.rename(self._temporary, self.path.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
                os.fsync(self._directory)
            except BaseException:
                os.close(new)
                raise
        except OSError as error:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._directory)
            raise write_error(f"the state {str(self.path)!r}", error) from error
        old, self._file = self._file, new
        if old is not None:
            if erase:
                with suppress(OSError):  # a courtesy: what counts is on disk
                    _overwrite(old)
            os.close(old)

    def _write(self, data: bytes) -> int:
        """A locked file with the data under the temporary name, on disk."""
        flags = os.O_RDWR | os.O_CLOEXEC
        unnamed = getattr(os, "O_TMPFILE", None)
        file = None
        if unnamed is not None:
            with suppress(OSError):  # not every file system can
                file = os.open(self.path.parent, flags | unnamed, 0o600)
        named = file is None
        if file is None:
            file = os.open(self._temporary, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._directory)
        try:
            os.fchmod(file, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(file, "wb", closefd=False) as stream:
                stream.write(data)
            os.fsync(file)
            if not named:
                # With a directory given Python follows the link, which is the only way to name the file.
                os.link(f"/proc/self/fd/{file}", self._temporary, dst_dir_fd=self._directory, follow_symlinks=True)
        except BaseException:
            os.close(file)
            raise
        return file

    def _open(self) -> bool:
        """Open and lock the state, if there is one, and remove what a kill left beside it; False if it is in use."""
        # Not waiting for anyone who opens the other end of a pipe.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        # A state that got its temporary name and was killed before it got its own is zeroed and removed.
        with suppress(OSError):
            left = os.open(self._temporary, flags, dir_fd=self._directory)
            try:
                status = os.fstat(left)
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                    _overwrite(left)
            finally:
                os.close(left)
        with suppress(FileNotFoundError):
            os.unlink(self._temporary, dir_fd=self._directory)
        try:
            self._file = os.open(self.path.name, flags, dir_fd=self._directory)
        except FileNotFoundError:
            return True
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise ParameterError(f"the state {str(self.path)!r} is not a file")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            return False
        self._check_unchanged()
        return True

    def _check_unchanged(self) -> None:
        """That the name still means the file that was locked, and no other name does."""
        try:
            now = os.stat(self.path.name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            now = None
        if self._file is None:
            if now is not None:
                raise DiscreetError(f"another process made the state {str(self.path)!r}; nothing was written")
            return
        held = os.fstat(self._file)
        if now is None or (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino):
            raise DiscreetError(
                f"the state {str(self.path)!r} was moved or replaced by another process; nothing was written"
            )
        if held.st_nlink > 1:
            raise DiscreetError(
                f"the state {str(self.path)!r} has {held.st_nlink} names (hard links): each name would draw its own "
                "noise; remove all but one"
            )

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def locked(state: Path, *, wait_seconds: float = 0.0) -> Iterator[StateFile]:
    """The state, for this process alone: two with one state would draw noise for the same data twice.

    A link is followed to the file that it leads to, there or not yet. If another process has the state, this one waits
    for it up to `wait_seconds`, and is refused then.
    """
    from pathlib import Path

    path = Path(os.path.realpath(state))
    until = time.monotonic() + wait_seconds
    with ExitStack() as stack:
        try:
            directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, directory)
            file = StateFile(path, directory)
            stack.callback(file._close)
            while True:
                lock = lock_file(f"{path.name}.lock", directory)
                if lock is not None:
                    opened = False
                    try:
                        opened = file._open()
                    finally:
                        if opened:
                            stack.callback(os.close, lock)
                        else:
                            os.close(lock)
                    if opened:
                        break
                if time.monotonic() >= until:
                    waited = f", for {wait_seconds:g} s and longer" if wait_seconds else ""
                    raise TryAgainError(f"another process is using the state {str(state)!r}{waited}")
                time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise ParameterError(f"the state {str(state)!r} cannot be written: {error.strerror}") from error
        yield file


def lock_file(name: str, directory: int) -> int | None:
    """The lock file of this name, open and locked; None if another process has it."""
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held, now = os.fstat(file), os.stat(name, dir_fd=directory, follow_symlinks=False)
        if (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino):
            return file
    except (BlockingIOError, FileNotFoundError):  # another has it, or deleted it meanwhile
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _overwrite(file: int) -> None:
    """Write zeros over all of a file."""
    os.pwrite(file, bytes(os.fstat(file).st_size), 0)
    os.fsync(file)


def write_error(what: str, error: OSError) -> DiscreetError:
    """What cannot be written, and why: a TryAgainError where there may be room later."""
    kind = TryAgainError if error.errno in NO_ROOM else DiscreetError
    return kind(f"{what} cannot be written: {error.strerror or error}")


class AtomicFile:
    """A file that appears under its name only when it is complete; until then an older one stays as it was.

    It is made beside its final name when this is constructed, so that a directory that does not exist or cannot be
    written is noticed before a budget is spent. A link stays a link: the file it leads to is replaced. What is not a
    file (a terminal, a pipe, /dev/stdout) is written as it is.

    Until then it has a name that no pattern for data matches, `.discreet-<hex>.tmp`, and is for its owner alone. A kill
    leaves it there. Anyone who makes one holds a lock on it for as long as it lives, so the next one to write into the
    folder can tell which files were left, and removes them.
    """

    left: ClassVar[set[Path]] = set()  # under temporary names, in this process

    def __init__(self, path: Path) -> None:
        from pathlib import Path
        from tempfile import gettempdir

        self.path = path
        try:
            if path.is_dir():
                raise DiscreetError(f"the output {str(path)!r} is a directory")
            self._final = Path(os.path.realpath(path))
            self._replaces = self._final.is_file() or not self._final.exists()
            if not os.access(self._final, os.W_OK) and self._final.exists():
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            folder = self._final.parent if self._replaces else Path(gettempdir())
            _remove_abandoned(folder)
            self._lock = -1
            while self._lock < 0:
                self.temporary = folder / f"{_TEMPORARY}{os.urandom(8).hex()}{_ENDING}"
                # Known before it is there: an interrupt may come at any moment.
                self.left.add(self.temporary)
                try:
                    self._lock = _made_and_locked(self.temporary)
                except OSError:  # and nothing else: after an interrupt the file may be there
                    self.left.discard(self.temporary)
                    raise
                if self._lock < 0:
                    self.left.discard(self.temporary)
        except OSError as error:
            raise self._error(error) from error

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(FileNotFoundError):
            self.temporary.unlink()
        self.left.discard(self.temporary)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def write(self, data: bytes) -> None:
        """Write all of the file and give it its name."""
        self.fill(lambda temporary: temporary.write_bytes(data))

    def fill(self, write: Callable[[Path], object]) -> None:
        """Let somebody write the file under its temporary name, and give it its own."""
        try:
            write(self.temporary)
            if not self._replaces:
                import shutil

                with open(self.temporary, "rb") as file, open(self._final, "wb") as device:
                    shutil.copyfileobj(file, device)
                return
            with open(self.temporary, "rb+") as file:
                os.fsync(file.fileno())
            mask = os.umask(0o077)  # the only way to read it; what other threads make meanwhile is not for others
            os.umask(mask)
            self.temporary.chmod(0o666 & ~mask)  # complete, and about to be published
            os.replace(self.temporary, self._final)
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> DiscreetError:
        return write_error(f"the output {str(self.path)!r}", error)


_TEMPORARY, _ENDING = ".discreet-", ".tmp"


def _made_and_locked(path: Path) -> int:
    """A new file that is open and locked; -1 if somebody took it for one that was left, before it was locked."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        with suppress(OSError):  # a file system without locks: nobody else gets one there, either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return file
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return -1


def _remove_abandoned(folder: Path) -> None:
    """Remove our temporary files that no living process has locked: what was killed left them."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            hexadecimal = entry.name.removeprefix(_TEMPORARY).removesuffix(_ENDING)
            if entry.name == f"{_TEMPORARY}{hexadecimal}{_ENDING}" and len(hexadecimal) == 16:
                with suppress(OSError):  # in use, gone meanwhile, or of another user
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now = os.lstat(path)  # a lock on a file that meanwhile has another name says nothing of this one
        if (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino):
            os.unlink(path)
    finally:
        os.close(file)


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds; ParameterError says what is wrong with it."""
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:  # pragma: no cover
        import tomli as tomllib
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{str(path)!r} is not TOML: {error}") from None
    return found
