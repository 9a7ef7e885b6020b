"""Signals that ask a process to end: before the charge nothing happens, after it the release is published."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from tests.ledgers import connected

import discreet as dc

BUDGET = ["--epsilon", 1, "--delta", 1e-9]
OUR_MAIN = re.compile(r"discreet[/\\]cli[/\\]process\.py.*, in main\b")  # a frame in which signals are handled


@pytest.fixture
def paid(tmp_path, ledger_path):
    ledger = dc.Ledger(ledger_path)
    ledger.grant("rows", dc.Budget(1000.0, 1e-3))
    (tmp_path / "rows.txt").write_text("".join(f"{i}\na\n" for i in range(500_000)))
    (tmp_path / "out").mkdir()
    return ledger, [tmp_path / "rows.txt", *BUDGET, "--ledger", ledger_path, "--account", "rows"]


def kinds(ledger):
    counted = [event.kind for event in ledger.history("rows")]
    return counted.count("charge"), counted.count("release")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ended_while_it_reads(command, spawn, paid, tmp_path, number):
    ledger, options = paid
    process = spawn(
        [*command, "top", "-", *options[1:], "--output", tmp_path / "out" / "top.json"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for _ in range(20):  # more than pipes and blocks hold: it is reading when this is through
        process.stdin.write(b"cats\n" * 100_000)
    process.stdin.flush()
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 128 + number
    assert b"nothing was released and nothing was charged" in errors
    assert kinds(ledger) == (0, 0)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ended_at_random_moments(command, spawn, paid, rounds, tmp_path, number):
    """A charge has its release and its file, no temporary file is left, nothing is said that is not so."""
    ledger, options = paid
    chance = random.Random(int(number))
    longest = None
    for _ in range(rounds(3, 90)):
        out = tmp_path / "out" / "top.json"
        out.unlink(missing_ok=True)
        before = kinds(ledger)
        process = spawn([*command, "top", *options, "--output", out], stderr=subprocess.PIPE, text=True)
        started = time.monotonic()
        if longest is not None:
            time.sleep(chance.random() * longest)
            process.send_signal(number)
        _, errors = process.communicate()
        if longest is None:
            longest = 1.1 * (time.monotonic() - started)  # the first one shows how long it takes
        charges, releases = (after - old for after, old in zip(kinds(ledger), before, strict=True))
        assert not OUR_MAIN.search(errors)  # before it Python starts by itself, and may tell of its own frames
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["top.json"] * charges
        assert charges == releases
        # Before our first line Python ends as it likes.
        assert process.returncode in ((0,) if charges else (128 + number, -number, 1)), errors
        assert ("nothing was charged" in errors) <= (charges == 0)


@contextmanager
def writer_of(ledger):
    """Nobody else writes to the ledger meanwhile; they may read."""
    with connected(ledger) as connection:
        connection.execute("BEGIN" if "://" in str(ledger) else "BEGIN IMMEDIATE")
        connection.execute("UPDATE balances SET body = body WHERE account = ''")
        yield
        connection.execute("ROLLBACK")


def test_a_release_that_was_killed_is_had_by_its_charge_id(command, spawn, paid, run, ledger_path):
    """The id is on standard error before the charge is made: kill -9 right then, and start again with it."""
    ledger, options = paid
    for number in range(3):
        # One of them is killed for certain before it can charge: the ledger is not to be written to.
        with writer_of(ledger_path) if number == 0 else nullcontext():
            process = spawn(
                [*command, "top", *options, "--format", "json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            said = ""
            while "charge id" not in said:
                line = process.stderr.readline()
                assert line, said  # or it has ended
                said += line
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL or number
        charge_id = re.search(r"charge id ([\w-]+)", said).group(1)
        again = [run("top", *options, "--format", "json", "--charge-id", charge_id) for _ in range(2)]
        assert again[0].returncode == 0, again[0].stderr
        assert again[0].stdout == again[1].stdout
    assert kinds(ledger) == (3, 3)


def test_little_is_loaded_before_signals_are_heard():
    """What Python prints before that is a traceback, so it should be short."""
    script = "import sys\nbefore = set(sys.modules)\nimport discreet.cli\nprint(*set(sys.modules) - before)"
    # Isolated and without site packages' own hooks, which load modules themselves.
    code = f"import sys\nsys.path[:0] = [{str(Path(dc.__file__).parents[1])!r}]\n{script}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert {"typing", "re", "numpy", "click"}.isdisjoint(done.stdout.split())
    assert "discreet.cli.process" in done.stdout.split()


def stopped(spawn, script, number):
    """Run what is to end by a signal; standard input stays open, so that nothing else ends it."""
    read, write = os.pipe()
    process = spawn(
        [sys.executable, "-c", script], stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    os.close(read)
    out, errors = process.communicate()
    os.close(write)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    assert "nothing was released" in errors
    assert not out


def test_interrupted_while_it_loads(spawn, rounds):
    """No traceback from `main` on, whatever is being imported."""
    chance = random.Random(1)
    for _ in range(rounds(3, 50)):
        number = chance.choice([signal.SIGINT, signal.SIGTERM])
        script = (
            "import os, signal, sys, threading\n"
            "import discreet.cli\n"
            "from discreet.cli.process import handle_interrupts\n"
            "handle_interrupts(loading=True)\n"
            f"threading.Timer({chance.random() * 0.6}, os.kill, (os.getpid(), {int(number)})).start()\n"
            "sys.argv = ['discreet', 'top', '-', '--epsilon', '1', '--delta', '1e-9']\n"
            "discreet.cli.main()\n"
        )
        stopped(spawn, script, number)


# Each is put before the command.
LOST = {
    "in a callback of a weak reference": """
class Thing: pass
thing = Thing()
reference = weakref.ref(thing, lambda reference: signal.raise_signal(number))
def lose():
    global thing
    del thing
""",
    "in a __del__": """
class Thing:
    def __del__(self): signal.raise_signal(number)
def lose():
    Thing()
""",
    "by somebody who catches everything": """
def lose():
    try:
        signal.raise_signal(number)
    except BaseException:
        pass
""",
    # Python's own handler runs in the main thread, and nothing wakes that one.
    "by a read that goes on": """
def other():
    main = threading.main_thread().ident
    while sys._current_frames()[main].f_code.co_name not in ("_fetch", "read"):
        time.sleep(0.1)
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), number)
def lose():
    threading.Thread(target=other).start()
""",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how", LOST)
def test_a_signal_that_is_lost_comes_again(spawn, how, number):
    """While the command waits for standard input, which says nothing."""
    script = (
        f"import signal, sys, threading, time, weakref\nnumber = {int(number)}\n{LOST[how]}\n"
        "from discreet.cli import process\n"
        "handle = process.handle_interrupts\n"
        "process.handle_interrupts = lambda loading=False: (handle(loading=loading), loading or lose())\n"
        "sys.argv = ['discreet', 'top', '-', '--epsilon', '1', '--delta', '1e-9']\n"
        "process.main()\n"
    )
    stopped(spawn, script, number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_for_the_end_of_an_import(spawn, tmp_path, number):
    """Some modules end the process when something is raised while they are made."""
    (tmp_path / "fragile.py").write_text(
        "import os, signal, time\n"
        f"signal.raise_signal({int(number)})\n"
        "until = time.monotonic() + 1\n"
        "try:\n"
        "    while time.monotonic() < until: pass\n"
        "except BaseException:\n"
        "    os.abort()\n"
    )
    script = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from discreet.cli import process\n"
        "handle = process.handle_interrupts\n"
        "process.handle_interrupts = lambda loading=0: (handle(loading=loading), loading or __import__('fragile'))\n"
        "sys.argv = ['discreet', 'top', '-', '--epsilon', '1', '--delta', '1e-9']\n"
        "process.main()\n"
    )
    stopped(spawn, script, number)


def test_a_signal_comes_once_where_it_is_heard(spawn, tmp_path):
    """What is cleaned up behind it is cleaned up to the end, however long that takes."""
    script = (
        "import signal, sys, time\n"
        "from discreet.cli import app, process\n"
        "def command(**options):\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    finally:\n"
        "        time.sleep(1)\n"
        f"        open({str(tmp_path / 'clean')!r}, 'w').close()\n"
        "app.app = command\n"
        "process.main()\n"
    )
    stopped(spawn, script, signal.SIGTERM)
    assert (tmp_path / "clean").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_watch_that_is_busy_with_ticks_stops(command, spawn, rounds, tmp_path, number):
    """One signal is enough, also while a tick is drawn and saved, which is nearly all the time here."""
    rows, out = tmp_path / "rows.txt", tmp_path / "out.jsonl"
    rows.write_text("a\n" * 1_000_000)
    options = ["--rows", 1, "--horizon", 1_000_000, "--total", *BUDGET]
    for place in range(rounds(2, 30)):
        with open(out, "wb") as file:
            watch = spawn(
                [*command, "watch", rows, *options, "--state", tmp_path / f"{place}.state"],
                stdout=file, stderr=subprocess.PIPE,
            )  # fmt: skip
        while len(out.read_bytes().splitlines()) < 3 + place:
            assert watch.poll() is None
            time.sleep(0.001)
        watch.send_signal(number)
        errors = watch.communicate()[1]  # its time is limited
        assert watch.returncode == 0, errors
        last = json.loads(out.read_bytes().splitlines()[-1])["tick"]
        assert f"stopped after tick {last} of".encode() in errors  # what was drawn was printed
