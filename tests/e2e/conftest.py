"""The command as a user runs it."""

import os
import subprocess
import sysconfig

import pytest
from tests.commands import run_here


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
