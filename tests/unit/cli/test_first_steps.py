"""What somebody tries first: the version, the help, completion, and the module."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from tests.commands import run_here

import discreet
from discreet.cli.app import app

QUESTIONS = ["top", "count", "distinct", "histogram", "quantiles"]
SHARED = [
    *(
        "--column",
        "--user",
        "--nulls",
        "--bad-rows",
        "--input-format",
        "--epsilon",
        "--delta",
        "--rho",
        "--ledger",
    ),
    *("--account", "--charge-id", "--confidence", "--format", "--output", "--explain", "--quiet"),
]


def test_the_version():
    assert run_here("--version").stdout == f"discreet {discreet.__version__}\n"
    module = subprocess.run(
        [sys.executable, "-m", "discreet", "--version"], capture_output=True, text=True, timeout=300
    )
    assert (module.returncode, module.stdout) == (0, f"discreet {discreet.__version__}\n")


@pytest.mark.parametrize("more", [[], ["--user", "who"], ["--where", "url = '/a'"]], ids=["rows", "people", "sql"])
def test_a_command_says_nothing_that_nobody_asked_for(more, tmp_path):
    """Neither a warning of a library when it is loaded nor a report of leaks when Python ends."""
    (tmp_path / "log.csv").write_text("who,url\n" + "".join(f"p{n},/a\n" for n in range(2000)))
    words = ["top", "log.csv", "--column", "url", *([] if "--user" in more else ["--unit", "row"]), *more]
    words += ["--epsilon", "1", "--delta", "1e-6", "--format", "csv", "--quiet"]
    process = [sys.executable, "-W", "always", "-m", "discreet", *words]
    done = subprocess.run(process, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "/a," in done.stdout


@pytest.mark.parametrize("command", QUESTIONS)
def test_questions_share_their_options_and_the_sections_of_their_help(command):
    told, every = run_here(command, "--help").stdout, run_here(command, "--help-all").stdout
    assert not [option for option in SHARED if option not in every]
    assert len(re.findall(r"^  -", told, re.M)) <= 30
    assert len(re.findall(r"^  -", told, re.M)) < len(re.findall(r"^  -", every, re.M))
    titles = [line.rstrip(":") for line in told.splitlines() if line.endswith(":") and not line.startswith(" ")]
    wanted = ["Question", "Privacy", "Input", "Output", "Example"]
    assert [title for title in titles if title in wanted] == wanted
    assert not [name for name in ("mechanism", "misra", "laplace", "gaussian") if name in told.lower()]


def test_the_table_names_no_mechanism(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("a\n" * 500)
    shown = run_here("top", path, "--epsilon", 1, "--delta", 1e-6, "--unit", "row").stdout
    assert "Differentially private" in shown
    assert "release" not in shown
    assert "Mechanism: " in run_here("top", path, "--epsilon", 1, "--delta", 1e-6, "--explain").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    script = run_here("completion", shell)
    assert script.returncode == 0
    assert "_DISCREET_COMPLETE" in script.stdout
    if shutil.which(shell):
        parsed = subprocess.run([shell, "-n"], input=script.stdout, capture_output=True, text=True, timeout=300)
        assert parsed.returncode == 0, parsed.stderr
    assert run_here("completion", "tcsh").returncode == 2


def test_completion_knows_commands_and_options():
    asked = {"_DISCREET_COMPLETE": "bash_complete", "COMP_WORDS": "discreet quantiles --ra", "COMP_CWORD": "2"}
    code = "from discreet.cli.app import app; app(prog_name='discreet')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True, timeout=300
    )
    assert "plain,--range" in done.stdout
    assert "quantiles" in app.list_commands(None)
