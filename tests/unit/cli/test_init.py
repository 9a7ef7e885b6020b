"""`discreet init` writes a first command, and `discreet explain COMMAND` says what one would cost."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import time

import pytest
from tests.commands import run_here

ROWS = "query,visitor,ts,amount\n" + "".join(f"q{n % 3},v{n},2026-10-0{1 + n % 2},{n % 50}\n" for n in range(3000))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text(ROWS)
    return path


def init(table, *words):
    return run_here("init", table, *words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--question", "top", "--column", "query", "--user", "visitor", "--people", 3000, "--time", "none"),
            "top {} --column query --user visitor --epsilon 1 --delta 1e-06",
        ),
        (
            ("--question", "count", "--user", "visitor", "--people", 1000, "--time", "ts"),
            "count {} --user visitor --every 1d --time ts --epsilon 1 --delta 1e-05",
        ),
        (
            (
                "--question",
                "quantiles",
                "--column",
                "amount",
                "--user",
                "none",
                "--people",
                9,
                "--time",
                "none",
                "--range",
                0,
                50,
            ),
            "quantiles {} --column amount --range 0 50 --quantile 0.5 --epsilon 1 --delta 0.001",
        ),
    ],
)
def test_the_command_runs_as_it_is_written(table, words, says):
    done = init(table, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "discreet " + says.format(table) + "\n"
    assert "It costs epsilon=1" in done.stderr
    assert "q1" not in done.stdout + done.stderr  # values are shown at a terminal alone
    assert run_here(*shlex.split(done.stdout)[1:]).returncode == 0


def test_a_report_is_written_once_and_runs(table, tmp_path):
    words = ("--question", "mean", "--column", "amount", "--user", "visitor", "--people", 3000, "--time", "ts")
    place = tmp_path / "first.toml"
    done = init(table, *words, "--range", 0, 50, "-o", place)
    assert (done.returncode, done.stdout) == (0, "")
    assert place.read_text().count("#") > 5
    assert run_here("report", place, "--plan").returncode == 0
    assert run_here("report", place).returncode == 0
    again = init(table, *words, "--range", 0, 50, "-o", place)
    assert (again.returncode, "exists" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--question is missing; give it, or run this in a terminal"),
        (("--question", "top", "--column", "Query", "--user", "none"), "no column named 'Query'"),
        (("--question", "top", "--column", "query", "--user", "none", "--people", 0), "--people must be at least 1"),
        (("--question", "mean", "--column", "amount", "--user", "none", "--people", 9), "--range is missing"),
    ],
)
def test_what_is_missing_or_wrong_is_said(table, words, says):
    done = init(table, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_file_without_columns(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\nb\n")
    done = init(path)
    assert done.returncode == 4
    assert "has no column names" in done.stderr


LOG = '10.0.0.{} - - [0{}/Nov/2026:10:00:00 +0000] "GET /p HTTP/1.1" 200 5 "-" "agent"\n'
TOP = ("--question", "top", "--user", "ip", "--people", 200, "--time", "none")


@pytest.mark.parametrize(
    ("name", "text", "column", "reading"),
    [
        (
            "access.log",
            "".join(LOG.format(n % 250, 1 + n % 5) for n in range(2000)),
            "path",
            "--input-format combined ",
        ),
        ("short.log", LOG.format(1, 1).replace(' "-" "agent"', "") * 500, "path", "--input-format common "),
        ("semi.csv", "ip;a page\n" + "".join(f"{n};x\n" for n in range(500)), "a page", "--delimiter ';' "),
        ("tabs.csv", "ip\ta page\n" + "".join(f"{n}\tx\n" for n in range(500)), "a page", "--delimiter tab "),
        ("rows.jsonl", "".join(f'{{"ip": "{n}", "at": {{"page": "x"}}}}\n' for n in range(500)), "at.page", ""),
        ("gap.csv", "ip,,page\n" + "".join(f"{n},,x\n" for n in range(500)), "page", ""),
    ],
)
def test_it_finds_out_how_a_file_is_written(tmp_path, name, text, column, reading):
    path, place = tmp_path / name, tmp_path / "first.toml"
    path.write_text(text)
    done = init(path, *TOP, "--column", column)
    assert done.returncode == 0, done.stderr
    told = f"discreet top {path} {reading}--column {shlex.quote(column)} --user ip --epsilon 1 --delta 1e-05\n"
    assert done.stdout == told
    assert run_here(*shlex.split(done.stdout)[1:]).returncode == 0
    assert init(path, *TOP, "--column", column, "-o", place).returncode == 0
    assert run_here("report", place).returncode == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty, or does not begin with a line of text"),
        ("\n\n", "is empty, or does not begin with a line of text"),
        ("{ not json\n", "is not JSON lines: its first line is not a whole object"),
    ],
)
def test_a_file_that_says_nothing(tmp_path, text, says):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    done = init(path, *TOP)
    assert (done.returncode, done.stdout) == (4, "")
    assert says in done.stderr


def test_it_asks_at_a_terminal(table, command, spawn):
    """The answers of a person who takes what is suggested, but for the question and the column."""
    ours, theirs = pty.openpty()
    child = spawn([command, "init", table], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    seen, until = b"", time.monotonic() + 60
    for expected, answer in (
        (b"What do you want to publish", b"top\n"),
        (b"Of which column", b"query\n"),
        (b"whose row it is", b"\n"),
        (b"How many people", b"\n"),
        (b"the time of a row", b"none\n"),
    ):
        while expected not in seen and time.monotonic() < until:
            seen += os.read(ours, 4096)
        seen = b""
        os.write(ours, answer)
    printed = child.stdout.read().decode()
    assert child.wait(60) == 0
    os.close(ours)
    assert printed == f"discreet top {table} --column query --user visitor --epsilon 1 --delta 1e-05\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("top", "no-file", "--column", "q", "--user", "u", "--epsilon", 1, "--delta", 1e-6),
            "if they have no other items, or 323 if each has 50.",
        ),
        (("top", "no-file", "--column", "q", "--epsilon", 1, "--delta", 1e-6), "An item is listed from about 32 rows"),
        (("top", "no-file", "--column", "q", "--epsilon", 1), "needs delta > 0"),
        (("count", "no-file", "--user", "u", "--epsilon", 2), "How many people: off by at most 1"),
        (("mean", "no-file", "--column", "n", "--range", 0, 9, "--user", "u", "--epsilon", 1), "the data decide"),
        (("count", "no-file", "--every", "1d", "--time", "t", "--epsilon", 1), "A group is listed"),
    ],
)
def test_a_command_is_explained_before_it_runs(words, says):
    done = run_here("explain", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout
    assert f"It costs epsilon={words[words.index('--epsilon') + 1]:g}" in done.stdout


def test_a_wrong_command_is_refused_as_it_would_be():
    done = run_here("explain", "top", "no-file", "--column", "q", "--epsilon", 0)
    assert done.returncode == 2
    assert "epsilon" in done.stderr


def test_a_command_may_be_pasted_as_it_is_run():
    words = ["top", "no-file.csv", "--column", "q", "--user", "u", "--epsilon", 1, "--delta", "1e-6"]
    plain, pasted = run_here("explain", *words), run_here("explain", "discreet", *words)
    assert (plain.returncode, plain.stdout) == (pasted.returncode, pasted.stdout)
    assert "It costs epsilon=1, delta=1e-06" in pasted.stdout
