"""The process of a command: how it begins, what a signal or an error makes of it, how it ends.

Ctrl-C, SIGTERM and SIGHUP stop a command before anything is charged, or wait until it is published. A handler can only
raise an exception wherever the program happens to be. Where nobody takes it (a callback of a weak reference, a
`__del__`) Python forgets it, and in the middle of an import it may end the process. So it is not raised there, and
raised again as long as it has not arrived.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from discreet._early import WITHOUT_PANDAS, open_libraries

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_SECONDS = 0.2
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
_NOT_FLUSHED = 120  # as Python has it
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
        return  # where the signal itself would wait now, `uninterrupted` knows of it
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


def what_happened() -> str:
    """What to tell anyone who interrupted."""
    return f"interrupted: {_done or 'nothing was released and nothing was charged'}"


@contextmanager
def uninterrupted(
    done: str = "what was charged was released", *, last: bool = False, stops: bool = False
) -> Iterator[None]:
    """These signals wait in here: between the charge and the output there is no good moment to stop.

    One that came before and has not arrived yet stops here. A command that `stops` does so afterwards for one that had
    to wait, and `done` is what to tell anyone who interrupts it then. One whose `last` act this is goes through to
    its end: an exit code that says "interrupted" would be taken for nothing released, and be paid for once more.
    """
    global _done, _received
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    over = False
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _wait)
                signal.siginterrupt(number, False)  # other libraries may take an interrupted call for a failure
        _received = _received or _waiting
        if _received is not None:
            raise Interrupted
        yield
        _done, over = done, last
    finally:
        for number, handler in before.items():
            if not over:
                signal.signal(number, handler)
    _received = _received or _waiting if stops else _received
    if stops and _received is not None:
        raise Interrupted


# ---- from the beginning to the exit code -----------------------------------------------------------------------------


def main() -> None:
    """Run the command and exit with its code."""
    handle_interrupts(loading=True)  # before anything else is loaded, which takes a while
    # Batches come and go one after the other: what Arrow frees is used again, and not kept beside. It looks once, when
    # it is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if any(word.endswith(".parquet") for word in sys.argv[1:]):
        open_libraries()
    # Importing makes many objects and no garbage; looking for it all the while takes a fifth of a short command's time.
    gc.set_threshold(100_000)
    from discreet.storage import AtomicFile

    code: int | None = None
    over = False
    while not over:
        try:
            code = _run() if code is None else code
            for number in (*_SIGNALS, signal.SIGALRM):  # nothing is left to interrupt
                signal.signal(number, signal.SIG_IGN)
            over = True
        except Interrupted:  # one that came when nearly everything was over
            code = _interrupted()
    for file in AtomicFile.left:  # whose removal an interrupt hit
        with suppress(OSError):
            file.unlink()
    sys.exit(code)


def command() -> None:
    """The same for a process that is there for nothing else: it ends here.

    All is written and closed. Python would take apart what it has imported, object by object and library by library:
    a tenth of the time of a short command.
    """
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or _NOT_FLUSHED
    os._exit(code)


def _run() -> int:
    """The command's exit code."""
    import click

    from discreet import errors
    from discreet.cli import app

    sys.meta_path.insert(0, WITHOUT_PANDAS)
    try:
        handle_interrupts()
        code = app.app(prog_name="discreet", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:  # wrong usage
        error.show()
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (Interrupted, KeyboardInterrupt, click.Abort):
        return _interrupted()
    except errors.DiscreetError as error:
        code = next(code for kind, code in app.CODES.items() if isinstance(error, kind))
        spelled = (errors.WordError, errors.DataWordError, errors.OldStateError)
        text = error.spelled(app.option_of) if isinstance(error, spelled) else str(error)
        return _fail(code, text, *(f"  charged: {charge_id}" for charge_id in getattr(error, "charges", ())))
    except Exception as error:
        return _failed(error)
    finally:
        sys.meta_path.remove(WITHOUT_PANDAS)


def _failed(error: Exception) -> int:
    """What is nobody's mistake: an output that takes no more, or a bug."""
    from discreet.cli.output import drop_standard_output
    from discreet.storage import NO_ROOM

    if isinstance(error, BrokenPipeError):  # anyone who read our output has stopped
        drop_standard_output()
        return 0
    if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
        drop_standard_output()
        return _fail(5 if error.errno in NO_ROOM else 1, f"an output cannot be written: {error.strerror}")
    if _received is not None:  # what became of the interrupt on its way through other people's code
        return _interrupted()
    if os.environ.get("DISCREET_DEBUG"):
        raise error
    import traceback

    # A bug's message might hold items, so only its kind and its place are shown.
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return _fail(
        1, f"internal error: {type(error).__name__} at {where}; please report it (DISCREET_DEBUG=1 shows all of it)"
    )


def _interrupted() -> int:
    interrupt_arrived()
    return _fail(130 if _received is None else 128 + _received, what_happened())  # as shells have it


def _fail(code: int, *lines: str) -> int:
    from discreet.cli.output import note

    note("\n".join(lines))
    return code
