"""What the tests of every folder share: nothing fails by chance, and nothing waits for ever for a process it started.

Releases draw from the operating system, so a test of an unlikely event would fail now and then, and for no one twice.
Here the words of the system's source, and of `secrets`, follow from the name of the test (or of a fixture that several
share): what passes once passes always, in every order and on every machine. A mechanism cannot tell: the source does
not call itself seeded. So do the sources that pan-private estimators and samples of users make for themselves, and the
seeds of summaries. Tests of the system's source itself have the mark `system_noise`; processes that a test starts draw
from the system as ever: what is said of their numbers must fail with a probability below 1e-6. Hypothesis tries the
same examples always.
"""

import os
import random
import secrets
import signal
import subprocess
import sysconfig
import threading
import time
import zlib

import hypothesis
import pytest
from tests.commands import run_here
from tests.ledgers import ledger_path, new_ledger  # noqa: F401 (fixtures)
from tests.postgres import postgres  # noqa: F401 (a fixture)

from discreet import _native
from discreet.engines import different, numbers
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.noise import source as sources
from discreet.pan import _base as pan
from discreet.summaries import counters as summaries
from discreet.summaries import user_misra_gries as users

PATIENCE = 180  # seconds, for what takes a few even on a busy machine

hypothesis.settings.register_profile(
    "repeated",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # on a busy machine everything is
)
hypothesis.settings.load_profile("repeated")


class Repeated(RandomSource):
    """The system's source while words follow from a name: it takes itself for the real one."""

    seeded = False


_WORDS = system_source()._source
_SECRETS = {name: getattr(secrets, name) for name in ("randbits", "randbelow", "token_bytes", "token_hex")}
_PAN_SOURCE = vars(pan.PanEstimator)["_native_source"]
_running = [None]  # the name of the test, None where it has the system's words


class Instead:
    """A module as one of its users sees it: some names are others."""

    def __init__(self, module, **names):
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name):
        return getattr(self._module, name)


def repeat_from(name):
    """Let all that is drawn in this process follow from a name; None: from the system."""
    source, chance, hashes = system_source(), random.Random(name), random.Random(f"hashes of {name}")
    source.__class__ = RandomSource if name is None else Repeated
    source._source = _WORDS if name is None else seeded_source(zlib.crc32(name.encode()))._source
    drawn = {
        "randbits": lambda bits: chance.getrandbits(bits),
        "randbelow": lambda end: chance.randrange(end),
        "token_bytes": lambda size=None: chance.randbytes(32 if size is None else size),
        "token_hex": lambda size=None: chance.randbytes(32 if size is None else size).hex(),
    }
    for function, original in _SECRETS.items():
        setattr(secrets, function, original if name is None else drawn[function])

    def own(*given, **replayed):
        """What `_native.RandomSource(...)` makes; without a seed it has words of its own, and nobody repeats them."""
        return _native.RandomSource(*(given if given or replayed else [hashes.getrandbits(64)]), **replayed)

    native = _native if name is None else Instead(_native, RandomSource=own)
    sources._native = users._native = native
    different.os = numbers.os = os if name is None else Instead(os, urandom=chance.randbytes)
    summaries.os = os if name is None else Instead(os, urandom=hashes.randbytes)
    pan.PanEstimator._native_source = (
        _PAN_SOURCE if name is None else property(lambda made: _PAN_SOURCE.fget(made) or own())
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _running[0] = None if item.get_closest_marker("system_noise") else item.nodeid
    repeat_from(_running[0])
    try:
        return (yield)
    finally:
        repeat_from(None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """What several tests share must not depend on which of them comes first."""
    if fixturedef.scope == "function" or _running[0] is None:
        return (yield)
    repeat_from(f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]")
    try:
        return (yield)
    finally:
        repeat_from(_running[0])


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


@pytest.fixture(scope="session")
def command():
    return os.path.join(sysconfig.get_path("scripts"), "discreet")


@pytest.fixture
def discreet(command):
    """Run the command in this process, or in one of its own where only that shows something: `discreet.process`.

    Both return what subprocess.run returns, with text unless input is bytes.
    """

    def run(*arguments, **options):
        options.setdefault("text", not isinstance(options.get("input"), bytes))
        return run_here(*arguments, **options)

    def process(*arguments, **options):
        options.setdefault("text", not isinstance(options.get("input"), bytes))
        return subprocess.run([command, *map(str, arguments)], capture_output=True, timeout=120, **options)

    run.command, run.process = command, process
    return run
