"""Every correction of docs/privacy/corrections.md: the literal version is caught, ours is not, and the page says so."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.audit import printed_versions as laws
from tests.commands import run_here

from discreet_audit import pan
from discreet_audit.corrections import cells_moved, corrections, keys_of_one

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


def test_numbers_are_those_of_the_laws(found):
    """Laws that no code of the package is in stand there as numbers: the literal ones, and some of ours."""
    rows = {(correction.where, correction.what): (correction.literal, correction.ours) for correction in found}
    assert len(rows) == len(found)

    def row(where, words):
        ((place, numbers),) = [(at, x) for at, x in rows.items() if at[0] == where and words in at[1]]
        del rows[place]
        return numbers

    def both(law, *args):
        return law(*args), law(*args, corrected=True)

    lengths = tuple(laws.printed_cut_of_algorithm_3(1.0, 1e-6, blanks=blanks) for blanks in (False, True))
    rhos = tuple(laws.sparse_rho(10, 1.0, literal=literal) for literal in (True, False))
    truth = [0.1, 0.6, 0.2, 0.1]
    matrices = (float(abs(each - truth).max()) for each in both(laws.modular_matrix_as_printed, 0.5, truth))
    intervals = (abs(each - 1) for each in both(laws.fraction_of_one_interval, [1.0, 2.0, 4.0, 8.0, 16.0], 2, 12))
    for where, words, numbers in (
        ("[SS] Algorithm 3", "the printed cut", lengths),
        ("[SS] Algorithm 5", "gamma_2", both(laws.printed_cut_of_algorithm_5, 1.0, 1e-6)),
        ("[SS] appendix B", "F2", both(laws.cut_from_the_second_moment, 1.0)),
        ("[SS] Lemma 13", "", both(laws.sketch_failure, 0.1, 0.01)),
        ("[SS] appendix B", "union bound", both(laws.depth_failure, 10**6, 1024, 0.001)),
        ("[PAN] Figure 3", "one interval", tuple(intervals)),
        ("[PAN] Figure 5", "", tuple(matrices)),
        ("[MDP] Theorem 4", "", both(laws.search_failure, 0.01, 10**6)),
        ("[CO] Theorem 4", "sparseGumb", rhos),
        ("[CO] Lemma 2.2", "", laws.epsilon_of_rho(0.5, 1e-6)),
    ):
        assert row(where, words) == pytest.approx(numbers, rel=1e-9, abs=0), (where, words)

    looks, one_look = [("look", "output"), ("output", "look")], [("look",)]
    for where, words, literal in (
        ("[SS] Algorithm 1", "", laws.isolated_keys(3)),
        ("[PAN] section 3", "density", of(laws.cropped_mean_noise_after_rescaling(0.1, 1), looks, 3)),
        ("[PAN] Figure 2", "", of(laws.cropped_mean_noise_after_rescaling(0.1, 4), looks, 3)),
        ("[PAN] Figure 3", "noise for one", of(laws.heavy_hitters_noise_for_one_table(0.1, (1, 2, 4)), looks[:1], 1)),
        ("[PAN] Theorem 4.1", "", laws.recursion_bound(2**14)),
        ("[PAN] Theorem 5.2", "", of(laws.modular_noise_for_one_residue(0.5, 3), looks, 3)),
        ("[PAN] Theorem 5.1", "", of(laws.counters_that_do_not_share(1.0, (2, 3, 5)), one_look, 6)),
        ("[PAN] section 3", "announced", of(laws.bits_alone_rerandomised(0.5, 3), [("announce", "look", "output")], 2)),
        ("[PAN] section 3", "first comes", of(laws.entries_made_on_arrival(0.5), one_look, 3)),
    ):
        assert row(where, words)[0] == pytest.approx(literal, rel=1e-9), (where, words)
    assert not [where for where, _ in rows if where.startswith("[PAN]")]
    assert len(rows) == 16, "found anew, all of them"


def of(model, frames, most):
    return pan.worst_loss(model, frames, most)[0]


def test_bounds_that_fail_are_exact():
    """The law of a row by its definition; what Chebyshev, Markov and a union give in closed form."""
    assert laws.sketch_failure(0.1, 0.01) == pytest.approx(_by_enumeration(300, 2999), rel=1e-9)
    assert laws.depth_failure(10**6, 1024, 1e-3) == pytest.approx(2 * 1_001_024 / 2**22)
    assert laws.isolated_keys(2) == laws.isolated_keys(3) - 1 == 2
    assert keys_of_one(3) == 1
    # 2 rho l >= 2 ln N > 1 for every rho and every N of two or more: no choice makes it a statement on a fraction.
    assert all(laws.recursion_bound(most) >= 2 * math.log(most) for most in (2, 16, 2**14))
    assert cells_moved(5, None) == 5
    assert cells_moved(5, 2) == 10


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
