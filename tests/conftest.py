"""What the tests of every folder share: no test waits for ever for a process that it started."""

import os
import signal
import subprocess
import threading
import time

import pytest

PATIENCE = 180  # seconds, for what takes a few even on a busy machine


class Child(subprocess.Popen):
    """A process whose time is limited, so that reading from it and waiting for it are, too.

    When its time is over it is made to say where it is, on its standard error, and killed. It hears all signals, also
    where the tests were started with some ignored (nohup, a job in the background of a script).
    """

    def __init__(self, arguments, **options):
        options["env"] = {**(options.get("env") or os.environ), "PYTHONFAULTHANDLER": "1"}
        ignored = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_IGN]
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        try:
            super().__init__([*map(str, arguments)], **options)
        finally:
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
        self.limit = threading.Timer(PATIENCE, self._time_is_over)
        self.limit.daemon = True
        self.limit.start()

    def _time_is_over(self):
        self.send_signal(signal.SIGABRT)
        time.sleep(2)
        self.kill()

    def __exit__(self, kind, value, where):
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, where)

    def end(self):
        """No process is left behind."""
        self.limit.cancel()
        self.kill()
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


@pytest.fixture
def spawn():
    """spawn(arguments, **options): a `subprocess.Popen` that lives no longer than the test, and not for ever."""
    children = []

    def start(arguments, **options):
        for child in children:
            if child.returncode is not None:
                child.limit.cancel()
        children.append(Child(arguments, **options))
        return children[-1]

    yield start
    for child in children:
        child.end()
