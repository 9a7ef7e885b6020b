"""Progress of reading, for an operator at a terminal."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from discreet.cli.output import is_quiet

__all__ = ["ReadingProgress"]


class ReadingProgress:
    """Rows, rows a second and the share of bytes read, on standard error if that is a terminal; else nothing.

    These numbers are not private. They are for the operator, who has the data, and go nowhere else.
    """

    def __init__(self, bytes_total: int | None) -> None:
        self._bytes_total = bytes_total
        self._shown = not is_quiet() and sys.stderr.isatty()
        self._exits = ExitStack()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ReadingProgress:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            share = [BarColumn(), TaskProgressColumn()] if self._bytes_total else []
            rows = TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]:,.0f} rows/s")
            progress = Progress(*share, rows, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bar = self._exits.enter_context(progress)
            self._task = self._bar.add_task("reading", total=self._bytes_total, rows=0, rate=0.0)
        return self

    def __exit__(self, *exception: object) -> None:
        self._exits.close()

    def update(self, rows: int, bytes_read: int) -> None:
        """Show how many rows and bytes were read so far."""
        if self._bar is not None:
            elapsed = self._bar.tasks[0].elapsed or 1e-9
            self._bar.update(self._task, completed=bytes_read, rows=rows, rate=rows / elapsed)
