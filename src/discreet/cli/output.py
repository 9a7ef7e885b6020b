"""Printing tables, and writing files so that they are there whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, ParameterError

__all__ = ["AtomicFile", "note", "printable", "table_text"]


def note(message: str) -> None:
    """A remark for the operator."""
    print(f"discreet: {message}", file=sys.stderr)


def printable(value: Any) -> str:
    """A value on one line, without characters that a terminal would act on."""
    text = value.hex() if isinstance(value, bytes) else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table_text(headings: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> str:
    """A table for standard output; columns in `right` are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if position in right else "left",
            no_wrap=position in right,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(printable(value)) for value in row))
    # Text for a pipe is not folded to the width of a terminal that is not there.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100_000
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return textwrap.dedent("\n".join(line.rstrip() for line in lines)).strip("\n") + "\n"


class AtomicFile:
    """A file that appears under its name only when it is complete.

    It is made beside its final name when this is constructed, so that a directory that does not exist or cannot be
    written is noticed before a budget is spent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise ParameterError(f"the output {str(path)!r} is a directory")
        try:
            # The suffix stays: libraries that write into the file go by it.
            handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
        except OSError as error:
            raise ParameterError(f"the output {str(path)!r} cannot be written: {error.strerror}") from error
        os.close(handle)
        self.temporary = Path(name)

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(FileNotFoundError):
            self.temporary.unlink()

    def write(self, data: bytes) -> None:
        """Write all of the file and give it its name."""
        self.temporary.write_bytes(data)
        self.publish()

    def publish(self) -> None:
        """Give the file, which was written under its temporary name, its own."""
        try:
            with open(self.temporary, "rb+") as file:
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            self.temporary.chmod(0o666 & ~mask)  # temporary files are made for their owner alone
            os.replace(self.temporary, self.path)
        except OSError as error:
            raise DiscreetError(f"the output {str(self.path)!r} cannot be written: {error.strerror}") from error
