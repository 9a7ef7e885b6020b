"""`discreet audit` as a user runs it: the table, the reports, what is refused.

The runs use the system's source; a false alarm has probability below 1e-6.
"""

import json
import re
from pathlib import Path

import pytest

import discreet as dc
from discreet.central import Offset
from discreet_audit import core
from discreet_audit.core import twin


def test_the_table_and_a_markdown_report(discreet, tmp_path):
    done = discreet("audit", "stability", "--jobs", 1, "--report", tmp_path / "out.md")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("Stability")]
    assert len(rows) == 3
    assert all(re.search(r"(\d) of \1\s+ok$", row) for row in rows)
    text = (tmp_path / "out.md").read_text()
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert "![claimed and measured](out.png)" in text
    for kind in ("structure", "exact", "statistical", "coupled", "sabotage"):
        assert f"| {kind} |" in text
    assert "half the noise: caught by exact" in text
    assert "passed" in done.stderr


def test_json_and_an_html_report(discreet, tmp_path):
    done = discreet("audit", "countmin", "--jobs", 2, "-q", "--format", "json", "--report", tmp_path / "out.html")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["passed"] is True
    assert {report["mechanism"] for report in found["reports"]} == {"CountMinHeavyHitters"}
    assert all(twin["caught"] for report in found["reports"] for twin in report["twins"])
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "data:image/png;base64," in page


def test_what_is_refused(discreet, tmp_path):
    assert discreet("audit", "nonsense").returncode == 2
    done = discreet("audit", "stability", "--report", tmp_path / "out.pdf")
    assert done.returncode == 2
    assert ".md or .html" in done.stderr


def test_corrections_take_no_mechanisms(discreet):
    assert discreet("audit", "--corrections", "offset").returncode == 2


@pytest.fixture
def one_row(monkeypatch):
    """The audit with a single row, of `Offset`, of which something is replaced."""
    mechanism = Offset(dc.Budget(1.0, 1e-3), capacity=3)
    audit = core.audit_of(mechanism)

    def replace(made=mechanism, more_twins=()):
        changed = core.twin(audit, "", twins=lambda self, made: [*audit.twins(made), *more_twins]).mechanism
        row = core.AuditCase(Offset, lambda: [made], changed)
        monkeypatch.setattr(core, "cases", lambda: iter([row]))
        return mechanism

    return replace


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_exit_code_says_that_a_claim_does_not_hold(discreet, one_row, jobs):
    """What `make audit`, and with it `.ci/run`, rests on: the rows are run there and nowhere else."""
    mechanism = one_row()
    assert discreet("audit", "--quick", "--jobs", jobs).returncode == 0
    one_row(twin(mechanism, "a tenth less noise", scale=mechanism.scale * 9 / 10).mechanism)
    done = discreet("audit", "--quick", "--jobs", jobs)
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    one_row(more_twins=[core.Twin("not broken at all", mechanism)])
    done = discreet("audit", "--quick", "--jobs", jobs)
    assert done.returncode == 1
    assert "not broken at all: NOT CAUGHT" in done.stderr


def test_every_change_is_audited():
    """`make audit` is the quick audit of all rows, its exit code stops `.ci/run`."""
    root = Path(__file__).parents[2]
    assert "\naudit: $(VENV)/.built\n\t$(BIN)/discreet audit --quick\n\n" in (root / "Makefile").read_text()
    steps = (root / ".ci/run").read_text().splitlines()
    assert "set -euo pipefail" in steps
    assert "make audit" in steps
