"""Folders for what does not fit in memory, removed also after a crash."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = "discreet-people-"
_NAMED, _COMMON = ("TMPDIR", "TEMP", "TMP"), ("/tmp", "/var/tmp", "/usr/tmp", ".")


class PrivateFolder:
    """A folder for what does not fit in memory: only its owner may look, and what a crash left is removed.

    Anyone who uses a folder holds a lock on it; one that nobody holds is left over.
    """

    def __init__(self) -> None:
        import tempfile
        from pathlib import Path

        self._lock: int | None = None
        while self._lock is None:  # another process may take a folder that is not locked yet for left over
            self.path = Path(tempfile.mkdtemp(prefix=_FOLDER))
            with suppress(OSError):
                self._lock = _locked(self.path)
            if self._lock is not None and not self.path.exists():
                os.close(self._lock)
                self._lock = None

    def remove(self) -> None:
        import shutil

        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_left_over() -> None:
    """Remove the folders of this user that nobody holds any more."""
    if "tempfile" not in sys.modules:  # with what that loads, it takes longer than counting a small file
        places = (*(os.environ.get(name, "") for name in _NAMED), *_COMMON)  # it takes the first that can be written
        place = next((each for each in places if each and os.access(each, os.W_OK | os.X_OK)), ".")
        with suppress(OSError):
            if not any(name.startswith(_FOLDER) for name in os.listdir(place)):
                return
    import shutil
    import tempfile
    from pathlib import Path

    for old in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError):
            if old.stat().st_uid == os.getuid() and (lock := _locked(old)) is not None:
                shutil.rmtree(old, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """A lock on a folder, or None if another process has it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
