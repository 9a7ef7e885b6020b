"""Run the pinned commands, and write down what they do: `python tests/golden/commands/pin.py --write [FILE...]`.

Without --write it says what differs from the files. Random words follow from the case and the number of the command, so
the releases are the same on every machine. Times, versions, random names and a library's own words are left out.
"""

import contextlib
import fnmatch
import getpass
import hashlib
import json
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[2]))

from tests.commands import run_here  # noqa: E402
from tests.conftest import Instead, repeat_from  # noqa: E402
from tests.golden.commands.cases import CASES  # noqa: E402
from tests.golden.commands.tables import write_tables  # noqa: E402

from discreet import __version__  # noqa: E402
from discreet.summaries import counters as summaries  # noqa: E402

_LEFT_OUT = "(left out)"
_CHANGES = ("time", "at", "digest", "sha256", "who")  # keys whose values hold a time, or a digest of one, or a user
_RANDOM = ("value", "lower", "upper")  # keys of pan-private estimates, which follow from the order of all that is drawn
_TEXT = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "(random id)"),
    (r"(202[6-9]|20[3-9]\d)-\d\d-\d\d(T[\d:.]+(Z|\+00:00)?)?", "(time)"),  # the tables are of 2025
    (r"(the query cannot be read: ).*", r"\1(in the words of DuckDB)"),
    (rf"discreet {re.escape(__version__)}", "discreet (version)"),
    ("─{9,}", "─" * 9),  # as wide as the longest name of a user and a host
    (rf"\b{re.escape(getpass.getuser())}@{re.escape(socket.gethostname())}", "(who)"),
)


def answers(group, case, tables):
    """What the commands of a case do: a list with a dictionary for each."""
    with tempfile.TemporaryDirectory() as folder:
        named = [word for command in CASES[group][case] for word in re.split(r"['\"\s]+", command)]
        for table in os.listdir(tables):
            if any(fnmatch.fnmatch(table, word) for word in named):
                shutil.copy(Path(tables) / table, folder)
        folder = os.path.realpath(folder)
        return [_answer(group, f"{group}: {case}", n, command, folder) for n, command in enumerate(CASES[group][case])]


def first_of(group, case):
    """The name that all randomness of the first command of a case follows from."""
    return f"{group}: {case} 0"


@contextlib.contextmanager
def repeated(name):
    """All randomness follows from a name: the noise, and a sketch's hashes, which say whose noise is drawn first."""
    repeat_from(name)
    summaries.os = Instead(os, urandom=lambda size: hashlib.shake_128(name.encode()).digest(size))
    try:
        yield
    finally:
        repeat_from(None)


def _answer(group, name, number, command, folder):
    words, given, kept = shlex.split(command), None, None
    if words[0] == "cat":
        given, words = (Path(folder) / words[1]).read_text(encoding="utf-8"), words[3:]
        if not words:
            return {"command": command, "out": _out(given, group)}
    if words[-2] == ">":
        kept, words = Path(folder) / words[-1], words[:-2]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DISCREET")} | {"COLUMNS": "100"}
    with repeated(f"{name} {number}"):
        done = run_here(*words, input=given, cwd=folder, env=environment)
    if kept is not None:
        kept.write_text(done.stdout, encoding="utf-8")
    said = _err(done.stderr.replace(f"{folder}/", ""))
    return {"command": command, "code": done.returncode, "out": _out(done.stdout, group), "err": said}


def _out(text, group):
    """JSON as what it holds, other text as its lines."""
    for parse in (json.loads, lambda text: [json.loads(line) for line in text.splitlines()]):
        try:
            return plain(parse(text), group)
        except ValueError:
            pass
    return _lines(text)


def _err(text):
    """Lines; of wrong usage that click reports, in words of its own, the options that it names."""
    if text.startswith("Usage:"):
        error = text[text.index("Error:") :]
        return ["(usage)", *sorted(set(re.findall(r"--?[a-z][a-z-]*", error.partition("Did you mean")[0])))]
    return _lines(text)


def _lines(text):
    for pattern, instead in _TEXT:
        text = re.sub(pattern, instead, text)
    return text.splitlines()


def plain(value, group):
    """Without what changes; numbers to the nine digits that every mathematical library agrees about."""
    if isinstance(value, dict):
        changes = (*_CHANGES, *(_RANDOM if group == "pan" else ()), *(["version"] if "time" in value else ()))
        return {k: _LEFT_OUT if k in changes else plain(v, group) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(each, group) for each in value]
    if isinstance(value, str) and re.fullmatch(r"\d+/\d+", value):
        return f"{float(Fraction(value)):.9g}"
    if isinstance(value, str):
        return "\n".join(_lines(value)) if value != __version__ else _LEFT_OUT
    return float(f"{value:.9g}") if isinstance(value, float) else value


def pinned(group):
    """The answers as they are written down."""
    return json.loads((HERE / f"{group}.json").read_text(encoding="utf-8"))


def written(value, depth=4, indent=0):
    """JSON of which the outer levels have a line for each value, and the inner ones none."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    pairs = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    lines = [
        " " * (indent + 1) + ("" if key is None else f"{json.dumps(key)}: ") + written(each, depth - 1, indent + 1)
        for key, each in pairs
    ]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n" + ",\n".join(lines) + f"\n{' ' * indent}{closed}"


def main(arguments):
    write, groups = "--write" in arguments, [a for a in arguments if a != "--write"] or list(CASES)
    differ = 0
    with tempfile.TemporaryDirectory() as tables:
        write_tables(tables)
        for group in groups:
            found = {case: answers(group, case, tables) for case in CASES[group]}
            text, path = written(found) + "\n", HERE / f"{group}.json"
            if write:
                path.write_text(text, encoding="utf-8")
            elif not path.exists() or json.loads(text) != pinned(group):
                differ += 1
                sys.stdout.write(f"{path.name} differs\n")
    return min(differ, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
