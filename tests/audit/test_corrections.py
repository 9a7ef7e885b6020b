"""Every correction of docs/privacy/corrections.md: the literal version is caught, ours is not, and the page says so."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import run_here
from tests.reference import printed

from discreet_audit.papers import corrections

PAGE = (Path(__file__).parents[2] / "docs/privacy/corrections.md").read_text()


@pytest.fixture(scope="module")
def found():
    return corrections()


def test_the_literal_versions_are_caught_and_ours_pass(found):
    assert len(found) == 30
    for correction in found:
        assert correction.kind in ("privacy", "misuse", "number", "waste"), correction
        if correction.kind == "waste":
            assert correction.ours < correction.literal, correction
        else:
            assert correction.literal > max(correction.claimed * (1 + 1e-6), 1e-12), correction
            assert correction.ours <= correction.claimed * (1 + 1e-9) + 1e-12, correction
        assert correction.caught, correction


def test_what_is_stated_of_a_printed_version_is_what_its_law_loses(found):
    computed = list(printed.lost())
    assert len(computed) == 15
    for where, begins, literal, ours in computed:
        (correction,) = [c for c in found if c.where == where and c.what.startswith(begins)]
        assert correction.literal == pytest.approx(literal, rel=1e-9), correction
        assert ours is None or correction.ours == pytest.approx(ours, rel=1e-9, abs=1e-50), correction


def test_the_page_has_their_numbers(found):
    for correction in found:
        numbers = (correction.claimed, correction.literal, correction.ours)
        shown = [f"{x:.3g}" if math.isfinite(x) else "infinite" for x in numbers]
        what = correction.what.replace("|", r"\|")
        assert f"| {correction.place} | {what} | {correction.quantity} | {' | '.join(shown)} |" in PAGE


def test_the_command_shows_them(found, monkeypatch):
    monkeypatch.setattr("discreet_audit.papers.corrections", lambda: found)
    done = run_here("audit", "--corrections", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == len(found)
    assert all(row["caught"] for row in rows)
    assert {"[PAN] section 3", "[SS] Algorithm 3", "[CO] Theorem 4", "[LT] Theorem 23"} <= {
        row["where"] for row in rows
    }
    wrong = dataclasses.replace(found[0], ours=2 * found[0].literal + 1)
    monkeypatch.setattr("discreet_audit.papers.corrections", lambda: [wrong, *found[1:]])
    assert run_here("audit", "--corrections").returncode == 1


def test_what_a_paper_does_not_say_is_not_held_against_it(found):
    """[LT] has Theorem 23 for its own inequality, a threshold for dropped zeros, and counts k counters."""
    misused = {correction.where for correction in found if correction.kind == "misuse"}
    assert misused == {"[LT] Theorem 23", "[LT] section 5.1", "[LT] Lemma 17", "[LT] Lemma 27"}
    assert not [c for c in found if c.kind == "privacy" and c.where.startswith("[LT]")]


def test_nobody_uses_a_literal_version():
    """Nothing but the audit imports them, and importing discreet does not."""
    packages = "discreet, discreet.pan, discreet.central, discreet.continual"
    code = f"import sys, {packages}; print([m for m in sys.modules if 'literal' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
    source = Path(__file__).parents[2] / "src/discreet"
    users = {p.relative_to(source).parts[0] for p in source.rglob("*.py") if "audit.literal" in p.read_text()}
    assert users <= {"audit"}
