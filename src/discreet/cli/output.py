"""What the operator is told, and what goes to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from discreet.privacy.checks import numbered
from discreet.storage import write_error

if TYPE_CHECKING:
    from discreet.events.assembly import Rows

quiet = False
"""What --quiet of the command says: no progress and no remarks."""


def note(message: str) -> None:
    """Tell the operator. Where nobody can hear it (a full disk) it is not worth a release."""
    with suppress(OSError):
        print(f"discreet: {message}", file=sys.stderr, flush=True)


def remark(message: str) -> None:
    """Tell the operator, unless they want quiet."""
    if not quiet:
        note(message)


def note_left_out(rows: int, first: str | None = None) -> None:
    """Tell the operator how many rows of the files could not be read, and where the first of them is."""
    if rows:
        remark(f"skipped {numbered(rows, 'row')} that could not be read (not private: for your eyes alone)")
        if first is not None:
            remark(f"the first one is in {first}")


def batches(rows: Rows, tell: bool = True) -> Iterator[Any]:
    """The batches of rows, with progress. At the end, what was left out is told."""
    stop = show_progress(rows)
    yield from rows
    stop()
    for told in rows.remarks if tell else ():
        remark(told)


def show_progress(rows: Rows) -> Callable[[], None]:
    """Show progress while rows are read, until what it returns is called, where an operator at a terminal wants it.

    Rows, rows a second and the share of bytes read are NOT private: for the operator, who has the data.
    """
    if quiet or not sys.stderr.isatty():
        return lambda: None
    import click
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    shown = [BarColumn(), TaskProgressColumn(), DownloadColumn(binary_units=True)]
    share = shown if rows.bytes_total else []
    told = TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]:,.0f} rows/s")
    bar = Progress(*share, told, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task, seen = bar.add_task("reading", total=rows.bytes_total, rows=0, rate=0.0), 0

    def watch(many: int) -> None:
        nonlocal seen
        seen += many
        bar.update(task, completed=rows.bytes_read, rows=seen, rate=seen / (bar.tasks[0].elapsed or 1e-9))

    rows.watch = watch
    bar.start()
    click.get_current_context().call_on_close(bar.stop)  # also where reading fails
    return bar.stop


def table_width() -> int | None:
    """How wide a table may be. Text for a pipe is not folded to the width of a terminal that is not there."""
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = (), seldom: Sequence[str] = ()
) -> None:
    """A table on standard output; columns in `right` are on that side, those after them that are `seldom` may go."""
    from discreet.releases.formats import table_text

    shown = [at for at, name in enumerate(headings) if name not in seldom or any(row[at] for row in rows)]
    cells = [[row[at] for at in shown] for row in rows]
    print(table_text([headings[at] for at in shown], cells, right, table_width()), end="")


def write_standard_output(data: bytes) -> None:
    """Write bytes to standard output, all of them, now."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # anyone who reads has had enough, which is no error; click would call it one
        drop_standard_output()
        raise SystemExit(0) from None
    except OSError as error:
        drop_standard_output()
        raise write_error("standard output", error) from error


def drop_standard_output() -> None:
    """Let what is left to be written go nowhere: Python would try again, and complain, when it exits."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
