"""`discreet plan` and `discreet explain` through the installed command."""

import json

import pytest

import discreet as dc


def test_a_plan_for_a_length(discreet):
    arguments = ["plan", "--length", 1_000_000, "--epsilon", 1, "--delta", 1e-9, "--capacity", 4096]
    shown = discreet(*arguments)
    assert shown.returncode == 0, shown.stderr
    assert "offset" in shown.stdout
    plan = json.loads(discreet(*arguments, "--format", "json").stdout)
    assert plan == dc.plan(1_000_000, dc.Budget(1.0, 1e-9), capacity=4096).to_dict()
    assert {row["mechanism"]: row["threshold"] for row in plan["mechanisms"]}["offset"] == 25
    compared = json.loads(discreet(*arguments, "--published", "--format", "json").stdout)
    assert {row["mechanism"]: row["threshold"] for row in compared["mechanisms"]}["pmg"] == 25


def test_a_plan_for_files_counts_their_rows(discreet, tmp_path):
    (tmp_path / "a.csv").write_text("user,query\n" + "u,x\n" * 1000)
    (tmp_path / "b.csv").write_text("user,query\nu,y\n")
    done = discreet(
        "plan", tmp_path / "*.csv", "--column", "query", "--epsilon", 1, "--delta", 1e-9, "--format", "json"
    )
    assert json.loads(done.stdout)["length"] == 1001
    assert "keep this plan to yourself" in done.stderr


def test_a_budget_that_nothing_takes_is_explained(discreet):
    done = discreet("plan", "--length", 1000, "--epsilon", 1)
    assert done.returncode == 0
    assert "offset does not apply" in done.stderr
    assert "delta > 0" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epsilon", "1"],
        ["--length", "10"],
        ["--length", "10", "x.txt", "--epsilon", "1"],
        ["--published", "--questions", "--epsilon", "1"],
        ["--length", "-1", "--epsilon", "1", "--delta", "1e-9"],
        ["--length", "10", "--epsilon", "1", "--delta", "1e-9", "--max-items", "0"],
    ],
)
def test_wrong_usage(discreet, arguments):
    done = discreet("plan", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


def test_explain_reads_what_top_writes(discreet, tmp_path):
    (tmp_path / "log.txt").write_text("cats\n" * 100)
    release = tmp_path / "release.json"
    top = discreet("top", tmp_path / "log.txt", "--epsilon", 1, "--delta", 1e-9, "--output", release)
    assert top.returncode == 0, top.stderr
    for done in (discreet("explain", release), discreet("explain", "-", input=release.read_text())):
        assert done.returncode == 0, done.stderr
        for words in ("What is protected", "Against whom", "84.5% sure", "offset release"):
            assert words in " ".join(done.stdout.split())
    (tmp_path / "bad.json").write_text("{}")
    for bad in ("bad.json", "missing.json"):
        done = discreet("explain", tmp_path / bad)
        assert (done.returncode, done.stdout) == (4, "")
