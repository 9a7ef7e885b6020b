"""Faults and attacks: kills, races, damaged files, hostile input.

Every test here has its row in docs/reliability.md (tests/unit/test_reliability.py). `make faults` runs as many rounds
as the table states, pytest by itself a few.
"""

import os
import subprocess
import sys

import pytest

PATIENCE = 180  # seconds, for a command that takes one or two
FULL = os.environ.get("DISCREET_FAULTS") == "full"


@pytest.fixture(scope="session")
def rounds():
    """rounds(quick, full): how often to try by default, and in `make faults`."""
    return lambda quick, full: full if FULL else quick


@pytest.fixture(scope="session")
def command():
    """The arguments that start the command line in this Python."""
    return [sys.executable, "-c", "import discreet.cli; discreet.cli.main()"]


@pytest.fixture
def run(command):
    """run(*arguments): the finished process of a `discreet` command, with its output as text."""

    def start(*arguments, **options):
        options = {"capture_output": True, "text": True, "check": False, "timeout": PATIENCE, **options}
        return subprocess.run([*command, *map(str, arguments)], **options)

    return start


@pytest.fixture
def race(command, spawn):
    """race([arguments, ...]): the same commands all started at once; a list of (exit code, output, errors)."""

    def start(commands, **options):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        running = [spawn([*command, *each], **pipes) for each in commands]
        ends = [process.communicate() for process in running]
        return [(process.returncode, *end) for process, end in zip(running, ends, strict=True)]

    return start
