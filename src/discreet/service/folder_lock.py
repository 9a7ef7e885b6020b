"""One process at a time has the folder of a service, and knows when it has it no longer.

The lock is on the file `lock` in the folder. Somebody may delete that file, move the folder, or put another in its
place: then a second process can have a lock of its own under the same name. So the one that was first looks, again and
again, whether the name still leads to the file that it locked.

It looks before it acknowledges events and after they are on disk. If the file was there then, a second process can
only begin later, and reads them: what is acknowledged is counted by one of the two.
"""

from __future__ import annotations

import os
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.storage import lock_file

__all__ = ["FolderLock"]

_NAME = "lock"


class FolderLock:
    """The lock of a folder, from its making to its `close`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
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
