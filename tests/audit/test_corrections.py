"""Every correction of docs/privacy/corrections.md: the literal version is caught, ours is not, and the page says so."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import run_here

from discreet_audit import corrections as laws
from discreet_audit.corrections import corrections

PAGE = (Path(__file__).parents[2] / "docs/privacy/corrections.md").read_text()


@pytest.fixture(scope="module")
def found():
    return corrections()


def test_the_literal_versions_are_caught_and_ours_pass(found):
    assert len(found) == 35
    for correction in found:
        assert correction.kind in ("privacy", "misuse", "number", "bound", "waste"), correction
        if correction.kind == "waste":
            assert correction.ours < correction.literal, correction
        else:
            assert correction.literal > max(correction.claimed * (1 + 1e-6), 1e-12), correction
            assert correction.ours <= correction.claimed * (1 + 1e-9) + 1e-12, correction
        assert correction.caught, correction


def test_bounds_that_fail_are_exact():
    """The law of a row by its definition; what Chebyshev, Markov and a union give in closed form."""
    assert laws.sketch_failure(0.1, 0.01) == pytest.approx(_by_enumeration(300, 2999), rel=1e-9)
    assert laws.depth_failure(10**6, 1024, 1e-3) == pytest.approx(2 * 1_001_024 / 2**22)
    assert laws.isolated_keys(2) == laws.isolated_keys(3) - 1 == 2
    # 2 rho l >= 2 ln N > 1 for every rho and every N of two or more: no choice makes it a statement on a fraction.
    assert all(laws.recursion_bound(most) >= 2 * math.log(most) for most in (2, 16, 2**14))
    assert laws.cells_moved(5, None) == 5
    assert laws.cells_moved(5, 2) == 10


def _by_enumeration(width, others):
    """P[the median of 5 rows is not 0], each row a sum of signs of Binomial(others, 1/width) items."""
    zero = sum(
        math.exp(
            math.lgamma(others + 1) - math.lgamma(m + 1) - math.lgamma(others - m + 1)
            + m * math.log(1 / width) + (others - m) * math.log1p(-1 / width)
        ) * math.comb(m, m // 2) / 2**m
        for m in range(0, 120, 2)
    )  # fmt: skip
    above = (1 - zero) / 2
    return 2 * sum(math.comb(5, j) * above**j * (1 - above) ** (5 - j) for j in (3, 4, 5))


def test_the_page_has_their_numbers(found):
    for correction in found:
        numbers = (correction.claimed, correction.literal, correction.ours)
        shown = [f"{x:.3g}" if math.isfinite(x) else "infinite" for x in numbers]
        what = correction.what.replace("|", r"\|")
        assert f"| {correction.place} | {what} | {correction.quantity} | {' | '.join(shown)} |" in PAGE


def test_the_command_shows_them(found, monkeypatch):
    monkeypatch.setattr("discreet_audit.corrections.corrections", lambda: found)
    done = run_here("audit", "--corrections", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == len(found)
    assert all(row["caught"] for row in rows)
    assert {"[PAN] section 3", "[SS] Algorithm 3", "[CO] Theorem 4", "[LT] Theorem 23"} <= {
        row["where"] for row in rows
    }
    wrong = dataclasses.replace(found[0], ours=2 * found[0].literal + 1)
    monkeypatch.setattr("discreet_audit.corrections.corrections", lambda: [wrong, *found[1:]])
    assert run_here("audit", "--corrections").returncode == 1


def test_what_a_paper_does_not_say_is_not_held_against_it(found):
    """[LT] has Theorem 23 for its own inequality, a threshold for dropped zeros, and counts k counters.

    [PAN] fills every table before the stream, and does not say how other estimators recover from an intrusion.
    """
    misused = {correction.where for correction in found if correction.kind == "misuse"}
    assert misused == {"[LT] Theorem 23", "[LT] section 5.1", "[LT] Lemma 17", "[LT] Lemma 27", "[PAN] section 3"}
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
