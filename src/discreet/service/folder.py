"""The folder of a service: what is in it lasts, and one process at a time has it and knows when it has it no longer.

The lock is on the file `lock` in the folder. Somebody may delete that file, move the folder, or put another in its
place: then a second process can have a lock of its own under the same name. So the one that was first looks, again and
again, whether the name still leads to the file that it locked.

It looks before it acknowledges events and after they are on disk. If the file was there then, a second process can
only begin later, and reads them: what is acknowledged is counted by one of the two.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.storage import lock_file, sync_folder

_NAME = "lock"


class FolderLock:
    """The lock of a folder, from its making to its `close`."""

    def __init__(self, folder: Path, take_over: bool = False) -> None:
        self._path = folder / _NAME
        if take_over:  # anyone who has the file that was there finds another in its place
            self._path.unlink(missing_ok=True)
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            file = lock_file(_NAME, directory)
        finally:
            os.close(directory)
        if file is None:
            raise DiscreetError(f"another service is using {str(folder)!r}")
        self._file = file

    @property
    def is_held(self) -> bool:
        """Whether the name still leads to the file that is locked."""
        try:
            now, held = os.stat(self._path, follow_symlinks=False), os.fstat(self._file)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (held.st_dev, held.st_ino)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)


def make_folder(folder: Path) -> None:
    """A folder for its owner alone, whose name is on disk."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync_folder(folder.parent)


def write_file(path: Path, data: bytes) -> None:
    """A new file for its owner alone, on disk with its name when this returns; OSError leaves none."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, path)
        sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
