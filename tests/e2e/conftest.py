"""The installed command, as a user runs it."""

import os
import subprocess
import sysconfig

import pytest


@pytest.fixture(scope="session")
def command():
    return os.path.join(sysconfig.get_path("scripts"), "discreet")


@pytest.fixture
def discreet(command):
    """Run the command; returns what subprocess.run returns, with text unless input is bytes."""

    def run(*arguments, **options):
        options.setdefault("text", not isinstance(options.get("input"), bytes))
        return subprocess.run([command, *map(str, arguments)], capture_output=True, timeout=120, **options)

    run.command = command
    return run
