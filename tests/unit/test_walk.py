"""The walk through the house: how many files and functions a command passes, and how often it changes the file.

No more than it does now. Who adds a step takes another one away, or says here why this one is worth its place.
"""

import json
import os
import subprocess
import sys

import pytest

_FOLLOW = """
import collections, contextlib, json, os, sys, threading
import discreet
from discreet.cli import main

home, calls = os.path.dirname(discreet.__file__), collections.defaultdict(list)  # by thread: their turns are chance
made = os.path.join(home, "_data_class.py")

def seen(frame, event, _):
    code = frame.f_code
    if code.co_filename == made:  # the methods of data classes, as where Python's library made them
        return
    if event == "call" and code.co_filename.startswith(home) and not code.co_name.startswith("<"):
        calls[threading.get_ident()].append((os.path.relpath(code.co_filename, home), code.co_name))

def run(words):
    sys.argv = ["discreet", *words]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, stop.code  # one that fails is soon at its end

first, second = json.loads(sys.argv[1])
run(first)  # what is imported late, and computed once, is there
threading.setprofile(seen)
sys.setprofile(seen)
run(second)
sys.setprofile(None)
functions = {call for some in calls.values() for call in some}
switches = sum(a[0] != b[0] for some in calls.values() for a, b in zip(some, some[1:]))
print(json.dumps([len({file for file, _ in functions}), len(functions), switches]))
"""
_BUDGET = ["--epsilon", "1", "--delta", "1e-6", "--column", "q"]
_TICKS = ["--once", "--rows", "500", "--horizon", "48"]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python call other things")
@pytest.mark.parametrize(
    ("command", "files", "functions", "switches"),
    [
        (["top", "-k", "3"], 26, 151, 107),  # what is assumed of the rows is said in one place for all questions
        (["top", "-k", "3", "--user", "u"], 33, 207, 151),
        (["watch", *_TICKS], 30, 224, 346),  # three ticks
    ],
    ids=["top", "top of people", "watch"],
)
def test_no_command_takes_more_steps(tmp_path, command, files, functions, switches):
    data = tmp_path / "data.csv"
    data.write_text("q,u\n" + "".join(f"{'abc'[u % 3]},{u}\n" for u in range(1500)))
    name, *options = command
    states = [["--state", str(tmp_path / each)] if name == "watch" else [] for each in ("first", "second")]
    words = [[name, str(data), *options, *_BUDGET, *state] for state in states]
    done = subprocess.run(
        [sys.executable, "-c", _FOLLOW, json.dumps(words)],
        env={**os.environ, "TMPDIR": str(tmp_path)},  # where nobody has left anything
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    found = json.loads(done.stdout)
    most = [files, functions, switches]
    assert all(now <= then for now, then in zip(found, most, strict=True)), found
