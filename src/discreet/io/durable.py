"""Files that hold a state: replaced at once, on disk before anyone goes on, used by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import DiscreetError, ParameterError

__all__ = ["locked", "replace_file"]


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file at once, for its owner alone, and have it on disk before this returns."""
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.unlink(missing_ok=True)  # what a crash left there, or somebody else's
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise DiscreetError(f"the state {str(path)!r} cannot be written: {error.strerror}") from error


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Two processes with one state would publish every tick twice: the second is refused."""
    try:
        handle = open(state.with_name(state.name + ".lock"), "a")  # noqa: SIM115
    except OSError as error:
        raise ParameterError(f"the state {str(state)!r} cannot be written: {error.strerror}") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DiscreetError(f"another process is using the state {str(state)!r}") from None
        yield
