"""Ctrl-C: it stops a command before anything is charged, or waits until what was charged is published."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "handle_interrupts", "uninterrupted"]


class Interrupted(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, which typer would turn into an exit code of its own."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def handle_interrupts() -> None:
    """From now on Ctrl-C raises Interrupted, unless the process was started with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C does nothing in here: between the charge and the output there is no good moment to stop."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
