"""Signals that come when a command is nearly over: a release that is out is no interrupt, and there is no traceback."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys
from discreet.cli import app, process
from discreet.cli.process import uninterrupted

def command(**options):
    {command}

app.app = command
{before}
process.main()
"""


def ended(spawn, command, before=""):
    program = PROGRAM.format(command=command, before=before)
    process = spawn([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate()
    assert "Traceback" not in errors
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_after_the_last_act_a_command_goes_through_to_its_end(spawn, number):
    """Its exit code says that it released: whoever starts it again for a 130 would pay twice."""
    late = f"signal.raise_signal({int(number)})"
    assert ended(spawn, f"with uninterrupted(last=True): pass\n    {late}") == (0, "")
    code, errors = ended(spawn, f"with uninterrupted(): pass\n    {late}")
    assert code == 128 + number
    assert "what was charged was released" in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_between_the_command_and_its_end(spawn, number):
    late = f"run = process._run\nprocess._run = lambda: (run(), signal.raise_signal({int(number)}))"
    code, errors = ended(spawn, "pass", late)
    assert code == 128 + number
    assert "nothing was charged" in errors


def test_the_first_signal_finds_the_alarm_heard(spawn):
    """It sets an alarm, which would end the process if it rang before somebody listens."""
    early = """
install = signal.signal
def installing(number, handler):
    install(number, handler)
    if number == signal.SIGTERM and handler not in (signal.SIG_IGN, process._leave):
        assert callable(signal.getsignal(signal.SIGALRM))
        signal.raise_signal(number)
signal.signal = installing"""
    code, errors = ended(spawn, "pass", early)
    assert code == 128 + signal.SIGTERM
    assert "nothing was charged" in errors
