"""Ctrl-C, SIGTERM and SIGHUP: they stop a command before anything is charged, or wait until it is published.

A handler can only raise an exception wherever the program happens to be. Where nobody takes it (a callback of a weak
reference, a `__del__`) Python forgets it, and in the middle of an import it may end the process. So it is not raised
there, and raised again as long as it has not arrived.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_SECONDS = 0.2
_received: int | None = None
_waiting: int | None = None  # one that came while nothing could be interrupted
_done: str | None = None  # what became of something that must not be interrupted


class Interrupted(BaseException):
    """Ctrl-C and the like. Not a KeyboardInterrupt, which click would turn into an exit code of its own."""


def _leave(number: int, frame: FrameType | None) -> None:
    # Nothing is open yet. What an import makes of an exception, and prints, is not up to us.
    try:
        os.write(2, f"discreet: {what_happened()}\n".encode())
    finally:
        os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)  # in case nobody takes what is raised
    if not _importing(frame):
        raise Interrupted


def _again(number: int, frame: FrameType | None) -> None:
    if _received is None or signal.getsignal(_received) is not _interrupt:
        return  # where the signal itself would wait now, `stop_if_interrupted` knows of it
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
    if not _importing(frame) and not _on_its_way(sys.exc_info()[1]):
        raise Interrupted


def _importing(frame: FrameType | None) -> bool:
    """Whether a command is just importing something."""
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(f"{__package__}."):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _on_its_way(error: BaseException | None) -> bool:
    """Whether what runs now is the cleaning up behind an interrupt."""
    while error is not None and not isinstance(error, Interrupted):
        error = error.__context__
    return error is not None


def _forgotten(lost: sys.UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, Interrupted):  # that one comes again
        sys.__unraisablehook__(lost)


def _wait(number: int, frame: FrameType | None) -> None:
    global _waiting
    _waiting = number


def handle_interrupts(*, loading: bool = False) -> None:
    """From now on these signals raise Interrupted, or end the process where only modules are loaded.

    A signal that the process was started with ignored (nohup) stays ignored.
    """
    if not loading:
        sys.unraisablehook = _forgotten
        signal.signal(signal.SIGALRM, _again)  # which the first of the others may send
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, _leave):
            signal.signal(number, _leave if loading else _interrupt)


def interrupt_arrived() -> None:
    """Interrupted was caught, and the command ends by itself."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def no_more_interrupts() -> None:
    """The command is over: nothing is left to interrupt."""
    for number in (*_SIGNALS, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def what_happened() -> str:
    """What to tell anyone who interrupted."""
    return f"interrupted: {_done or 'nothing was released and nothing was charged'}"


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
def uninterrupted(done: str = "what was charged was released", *, last: bool = False) -> Iterator[None]:
    """These signals wait in here: between the charge and the output there is no good moment to stop.

    One that came before and has not arrived yet stops here. A command that goes on asks `stop_if_interrupted`
    afterwards, and `done` is what to tell anyone who interrupts it then. One whose `last` act this is goes through to
    its end: an exit code that says "interrupted" would be taken for nothing released, and be paid for once more.
    """
    global _done
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    over = False
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _wait)
                signal.siginterrupt(number, False)  # other libraries may take an interrupted call for a failure
        stop_if_interrupted()
        yield
        _done, over = done, last
    finally:
        for number, handler in before.items():
            if not over:
                signal.signal(number, handler)
