"""Commands run inside the process of the tests, where a process of their own is not the point.

A start of Python takes a third of a second, most of which is imports; the suite has hundreds of commands. Everything
that a command can tell the difference by is as in a process of its own: file descriptors 0 to 2, the working directory,
the environment, signal handlers.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

from discreet import cli
from discreet.cli import process

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_here(*arguments: object, input: str | bytes | None = None, text: bool = True, cwd=None, env=None):
    """What `subprocess.run(["discreet", ...], capture_output=True)` would return."""
    words = ["discreet", *map(str, arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, contextlib.ExitStack() as undo:
        undo.enter_context(_process_settings(words, cwd, env))
        undo.enter_context(_descriptors(_as_bytes(input), out, err))
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
        undo.close()
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read())
    if text:
        said = [each.decode("utf-8").replace("\r\n", "\n") for each in said]
    return subprocess.CompletedProcess(words, code, *said)


def _as_bytes(given: str | bytes | None) -> bytes:
    return b"" if given is None else given.encode() if isinstance(given, str) else given


@contextlib.contextmanager
def _process_settings(words, cwd, env) -> Iterator[None]:
    """What belongs to a process, put back afterwards."""
    before = os.getcwd(), dict(os.environ), sys.argv, list(sys.meta_path), gc.get_threshold(), dict(vars(process))
    handlers = [(number, signal.getsignal(number)) for number in (*_SIGNALS, signal.SIGALRM)]
    hook = sys.unraisablehook
    try:
        os.chdir(cwd or before[0])
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        sys.argv = words
        for number in _SIGNALS:  # as a process that was just started has them
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        yield
    finally:
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
        sys.argv, sys.meta_path[:] = before[2], before[3]
        gc.set_threshold(*before[4])
        gc.unfreeze()
        vars(process).update(before[5])
        sys.unraisablehook = hook
        for number, handler in handlers:
            signal.signal(number, handler)


@contextlib.contextmanager
def _descriptors(given: bytes, out, err) -> Iterator[None]:
    """Standard input is a pipe with these bytes in it, standard output and standard error are these files."""
    read, write = os.pipe()
    feeder = threading.Thread(target=_feed, args=(write, given))
    streams = sys.stdin, sys.stdout, sys.stderr
    for stream in streams[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, source in enumerate((read, out.fileno(), err.fileno())):
            os.dup2(source, number)
        os.close(read)
        feeder.start()
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "wb", closefd=False)), encoding="utf-8")
            for number in (1, 2)
        )
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, place in enumerate(kept):
            os.dup2(place, number)  # this also ends a feeder that waits for a reader
            os.close(place)
        feeder.join()


def _feed(write: int, given: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(write, "wb", buffering=0) as pipe:
        view = memoryview(given)
        while view:
            view = view[pipe.write(view) :]
