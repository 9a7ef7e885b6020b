"""What the operator is told, tables on standard output, and files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from discreet.errors import DiscreetError, ParameterError

__all__ = [
    "AtomicFile",
    "be_quiet",
    "by_ending",
    "drop_standard_output",
    "is_quiet",
    "note",
    "note_left_out",
    "print_table",
    "refuse_same_file",
    "remark",
    "table_width",
    "write_standard_output",
]

T = TypeVar("T")

_quiet = False


def be_quiet(wanted: bool) -> None:
    """What --quiet says: no progress and no remarks, until the next command."""
    global _quiet
    _quiet = wanted


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _quiet


def note(message: str) -> None:
    """Tell the operator. Where nobody can hear it (a full disk) it is not worth a release."""
    with suppress(OSError):
        print(f"discreet: {message}", file=sys.stderr, flush=True)


def remark(message: str) -> None:
    """Tell the operator, unless they want quiet."""
    if not _quiet:
        note(message)


def note_left_out(rows: int) -> None:
    """Tell the operator how many rows of the files could not be read."""
    if rows:
        remark(f"{rows:,} rows could not be read and were left out (not private: for your eyes alone)")


def table_width() -> int | None:
    """How wide a table may be. Text for a pipe is not folded to the width of a terminal that is not there."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> None:
    """A table on standard output; columns in `right` are aligned to the right."""
    from discreet.releases.formats import table_text

    print(table_text(headings, rows, right, table_width()), end="")


def write_standard_output(data: bytes) -> None:
    """Write bytes to standard output, all of them, now."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever reads has had enough, which is no error
    except OSError as error:
        drop_standard_output()
        raise DiscreetError(f"standard output cannot be written: {error.strerror}") from error


def by_ending(path: Path, known: dict[str, T], option: str) -> T:
    """What a file is written as, by the ending of its name."""
    ending = path.suffix.lower()
    if ending not in known:
        *others, last = (repr(name) for name in known if name)
        raise ParameterError(f"{option} {str(path)!r} ends in {ending!r}; it can be {', '.join(others)} or {last}")
    return known[ending]


def refuse_same_file(option: str, path: Path, others: Iterable[str | os.PathLike[str]]) -> None:
    """A command must not overwrite what it reads."""
    for other in others:
        with suppress(OSError):
            if path.is_file() and os.path.samefile(path, other):
                raise ParameterError(f"{option} {str(path)!r} is a file that this command reads or keeps")


def drop_standard_output() -> None:
    """Let what is left to be written go nowhere: Python would try again, and complain, when it exits."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class AtomicFile:
    """A file that appears under its name only when it is complete; until then an older one stays as it was.

    It is made beside its final name when this is constructed, so that a directory that does not exist or cannot be
    written is noticed before a budget is spent. A link stays a link: the file it leads to is replaced. What is not a
    file (a terminal, a pipe, /dev/stdout) is written as it is.
    """

    _left: ClassVar[set[Path]] = set()  # under temporary names, in this process

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise DiscreetError(f"the output {str(path)!r} is a directory")
        self._final = Path(os.path.realpath(path))
        self._replaces = self._final.is_file() or not self._final.exists()
        try:
            if not os.access(self._final, os.W_OK) and self._final.exists():
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            # The suffix stays: libraries that write into the file go by it.
            folder = self._final.parent if self._replaces else None
            folder = folder or Path(tempfile.gettempdir())
            self.temporary = folder / f".{path.stem}.{secrets.token_hex(8)}{path.suffix}"
            # Known before it is there: an interrupt may come at any moment.
            self._left.add(self.temporary)
            os.close(os.open(self.temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise self._error(error) from error

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(FileNotFoundError):
            self.temporary.unlink()
        self._left.discard(self.temporary)

    @classmethod
    def remove_left(cls) -> None:
        """Remove the temporary files of which an interrupt hit the removal."""
        for temporary in cls._left:
            with suppress(OSError):
                temporary.unlink()

    def write(self, data: bytes) -> None:
        """Write all of the file and give it its name."""
        self.fill(lambda temporary: temporary.write_bytes(data))

    def fill(self, write: Callable[[Path], object]) -> None:
        """Let somebody write the file under its temporary name, and give it its own."""
        try:
            write(self.temporary)
            if not self._replaces:
                with open(self.temporary, "rb") as file, open(self._final, "wb") as device:
                    shutil.copyfileobj(file, device)
                return
            with open(self.temporary, "rb+") as file:
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            self.temporary.chmod(0o666 & ~mask)  # temporary files are made for their owner alone
            os.replace(self.temporary, self._final)
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> DiscreetError:
        return DiscreetError(f"the output {str(self.path)!r} cannot be written: {error.strerror or error}")
