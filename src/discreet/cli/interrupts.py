"""Ctrl-C, SIGTERM and SIGHUP: they stop a command before anything is charged, or wait until it is published."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = [
    "Interrupted",
    "handle_interrupts",
    "interrupt_code",
    "no_more_interrupts",
    "stop_if_interrupted",
    "uninterrupted",
    "what_happened",
]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_received: int | None = None
_waiting: int | None = None  # one that came while nothing could be interrupted
_went_through = False  # whether something that must not be interrupted was done


class Interrupted(BaseException):
    """Ctrl-C and the like. Not a KeyboardInterrupt, which typer would turn into an exit code of its own."""


def _leave(number: int, frame: FrameType | None) -> None:
    # Nothing is open yet. What an import makes of an exception, and prints, is not up to us.
    sys.stderr.write(f"discreet: {what_happened()}\n")
    sys.stderr.flush()
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise Interrupted


def _wait(number: int, frame: FrameType | None) -> None:
    global _waiting
    _waiting = number


def handle_interrupts(*, loading: bool = False) -> None:
    """From now on these signals raise Interrupted, or end the process where only modules are loaded.

    A signal that the process was started with ignored (nohup) stays ignored.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, _leave):
            signal.signal(number, _leave if loading else _interrupt)


def no_more_interrupts() -> None:
    """The command is over: nothing is left to interrupt."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def what_happened() -> str:
    """What to tell whoever interrupted."""
    if _went_through:
        return "interrupted: what was charged was released"
    return "interrupted: nothing was released and nothing was charged"


def interrupt_code() -> int | None:
    """The exit code for the signal that came, as shells have it; None if none came."""
    return None if _received is None else 128 + _received


def stop_if_interrupted() -> None:
    """Stop for a signal that had to wait."""
    global _received
    if _received is None:
        _received = _waiting
    if _received is not None:
        raise Interrupted


@contextmanager
def uninterrupted() -> Iterator[None]:
    """These signals wait in here: between the charge and the output there is no good moment to stop.

    A command that is over then goes through to its end; one that goes on asks `stop_if_interrupted`. One that came
    before and was lost on its way (an exception in a callback is printed and forgotten) stops here.
    """
    global _went_through
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _wait)
                signal.siginterrupt(number, False)  # other libraries may take an interrupted call for a failure
        stop_if_interrupted()
        yield
        _went_through = True
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
