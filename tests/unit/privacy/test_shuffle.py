"""What shuffled reports cost: against exact values for few reports, real protocols, and published figures."""

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.privacy import shuffle
from discreet.privacy.shuffle import shuffled, shuffled_closed_form, shuffled_delta


def exact_clone_delta(local, n, epsilon):
    """The divergence of P and Q term by term, with rational coins near the real ones."""
    q, p = Fraction(math.exp(-local)), Fraction(1 / (1 + math.exp(-local)))
    grown, lost = Fraction(math.exp(epsilon)), Fraction(0)
    for c in range(n):
        clones = math.comb(n - 1, c) * q**c * (1 - q) ** (n - 1 - c)
        for a in range(c + 2):
            one = Fraction(math.comb(c, a - 1) if a else 0, 2**c)
            none = Fraction(math.comb(c, a), 2**c)
            first, second = p * one + (1 - p) * none, (1 - p) * one + p * none
            lost += clones * max(0, first - grown * second)
    return float(lost)


@pytest.mark.parametrize("local", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_numerical_delta_is_that_of_the_clones_from_above(local, n):
    for part in (0.0, 0.1, 0.5, 0.9, 0.999):
        exact = exact_clone_delta(local, n, part * local)
        found = shuffled_delta(local, n, part * local)
        assert exact <= found + 1e-15
        assert found <= exact * (1 + 1e-4) + 1e-12


def response_delta(local, choices, others, epsilon):
    """Exactly what is lost between two answers in shuffled k-ary response, for given answers of the others."""
    keep = math.exp(local) / (math.exp(local) + choices - 1)
    other = (1 - keep) / (choices - 1)

    def multiset(own):
        law = {}
        answers = (own, *others)
        for told in itertools.product(range(choices), repeat=len(answers)):
            chance = math.prod(keep if a == t else other for a, t in zip(answers, told, strict=True))
            counts = tuple(told.count(i) for i in range(choices))
            law[counts] = law.get(counts, 0.0) + chance
        return law

    first, second = multiset(0), multiset(1)
    return sum(max(0.0, chance - math.exp(epsilon) * second[counts]) for counts, chance in first.items())


@pytest.mark.parametrize("choices", [2, 3])
@pytest.mark.parametrize("local", [0.5, 2.0])
def test_real_responses_lose_no_more(choices, local):
    """Every data set of the others, up to order."""
    for n in (2, 4, 6):
        for others in itertools.combinations_with_replacement(range(choices), n - 1):
            for part in (0.1, 0.4, 0.8):
                assert response_delta(local, choices, others, part * local) <= shuffled_delta(local, n, part * local)


@pytest.mark.parametrize("choices", [2, 3, 4])
@pytest.mark.parametrize("local", [0.5, 2.0])
def test_real_responses_lose_no_more_than_is_said_of_responses(choices, local):
    """Every data set of the others, up to order."""
    for n in range(1, 8 - choices):
        for others in itertools.combinations_with_replacement(range(choices), n - 1):
            for part in (0.0, 0.1, 0.4, 0.8):
                bound = shuffled_delta(local, n, part * local, choices=choices)
                assert response_delta(local, choices, others, part * local) <= bound * (1 + 1e-12)


def uniform_delta(local, choices, n, epsilon):
    """The argument's divergence word for word: n - 1 reports of which a part is uniform and seen, and one's own."""
    z = math.exp(local) + choices - 1
    law = [math.exp(local) / z] + [1 / z] * (choices - 1)
    swapped = [law[1], law[0], *law[2:]]
    lost = 0.0
    for c in range(n):
        first, second = {}, {}
        for own, *rest in itertools.product(range(choices), repeat=c + 1):
            counts = tuple([own, *rest].count(i) for i in range(choices))
            for seen, chances in ((first, law), (second, swapped)):
                seen[counts] = seen.get(counts, 0.0) + chances[own] / choices**c
        part = sum(max(0.0, p - math.exp(epsilon) * second[counts]) for counts, p in first.items())
        lost += math.comb(n - 1, c) * (choices / z) ** c * (1 - choices / z) ** (n - 1 - c) * part
    return lost


@pytest.mark.parametrize(("choices", "n"), [(2, 1), (2, 8), (3, 1), (3, 6), (5, 4)])
@pytest.mark.parametrize("local", [0.3, 3.0])
def test_the_delta_of_responses_is_that_of_the_argument_from_above(choices, n, local):
    for part in (0.0, 0.1, 0.5, 0.9, 0.999):
        exact = uniform_delta(local, choices, n, part * local)
        found = shuffled_delta(local, n, part * local, choices=choices)
        assert exact <= found + 1e-15
        assert found <= exact * (1 + 1e-4) + 1e-12


def hashed_delta(local, choices, functions, own, others, epsilon):
    """Exactly what is lost if a report is a function drawn from `functions`, and the response of its value."""
    keep = math.exp(local) / (math.exp(local) + choices - 1)
    other = (1 - keep) / (choices - 1)

    def one(item):
        seen = itertools.product(range(len(functions)), range(choices))
        return {(f, b): (keep if functions[f][item] == b else other) / len(functions) for f, b in seen}

    def multiset(items):
        law = {(): 1.0}
        for item in items:
            grown = {}
            for before, chance in law.items():
                for report, p in one(item).items():
                    after = tuple(sorted((*before, report)))
                    grown[after] = grown.get(after, 0.0) + chance * p
            law = grown
        return law

    first, second = (multiset((item, *others)) for item in own)
    return sum(max(0.0, chance - math.exp(epsilon) * second[seen]) for seen, chance in first.items())


FAMILIES = {
    "the rows of a Hadamard matrix": (2, [(0, 0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 1), (0, 1, 1, 0)], 3),
    "all functions to two buckets": (2, list(itertools.product(range(2), repeat=3)), 3),
    "functions that hardly tell apart": (3, [(0, 0, 0), (1, 1, 2), (0, 1, 1)], 3),
    "functions that always tell apart": (3, [(0, 1, 2), (2, 0, 1)], 4),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("local", [0.5, 3.0])
def test_responses_of_hashed_answers_lose_no_more(family, local):
    """Any two answers of one, all answers of the others."""
    choices, functions, n = FAMILIES[family]
    items = range(len(functions[0]))
    for own in itertools.combinations(items, 2):
        for others in itertools.combinations_with_replacement(items, n - 1):
            for part in (0.0, 0.3, 0.8):
                exact = hashed_delta(local, choices, functions, own, others, part * local)
                assert exact <= shuffled_delta(local, n, part * local, choices=choices) * (1 + 1e-12)


def test_wide_runs_are_charged_from_above(monkeypatch):
    """Runs of many values, as for many reports, give away a little and nothing else."""
    for local, n, choices, epsilon in ((1.0, 300, 3, 0.2), (3.0, 500, 20, 0.5)):
        found = []
        for runs in (400, 64, 12):
            monkeypatch.setattr(shuffle, "_RUNS_OF_C", runs)
            monkeypatch.setattr(shuffle, "_RUNS_OF_T", runs)
            found.append(shuffled_delta(local, n, epsilon, choices=choices))
        assert found == sorted(found)
        assert 1.001 * found[0] < found[2] < 0.01
        assert found[1] < 1.5 * found[0]


def test_more_choices_and_more_reports_hide_better():
    worth = [
        shuffled(2.0, n, 1e-6, choices=k).epsilon for n, k in ((500, None), (500, 2), (500, 3), (500, 9), (900, 9))
    ]
    assert worth == sorted(worth, reverse=True)
    assert len(set(worth)) == len(worth)


def test_a_twin_that_claims_more_choices_is_caught():
    worst = max(response_delta(1.0, 2, others, 0.3) for others in itertools.product(range(2), repeat=5))
    assert worst > shuffled_delta(1.0, 6, 0.3, choices=4)
    assert worst <= shuffled_delta(1.0, 6, 0.3, choices=2)


def test_a_twin_with_twice_the_clones_is_caught():
    """The bound of epsilon_0/2 for reports of epsilon_0 would be a lie that real responses convict."""
    worst = max(response_delta(2.0, 2, others, 0.8) for others in itertools.product(range(2), repeat=5))
    assert worst > shuffled_delta(1.0, 6, 0.8)


def test_known_figures():
    assert shuffled_closed_form(4.0, 10**6, 1e-8) == pytest.approx(0.2267, abs=1e-3)
    assert shuffled(4.0, 10**6, 1e-8).epsilon == pytest.approx(0.066, abs=0.002)
    assert shuffled(4.0, 10**6, 1e-8, choices=2).epsilon == pytest.approx(0.0451, abs=0.0002)
    assert shuffled(4.0, 10**6, 1e-8, choices=56).epsilon == pytest.approx(0.0316, abs=0.0002)
    assert shuffled_closed_form(4.0, 1000, 1e-8) == math.inf


def test_figures_of_the_documentation():
    """Rounded up, of local hashing, Hadamard response and any report."""
    page = (Path(__file__).parents[3] / "docs" / "privacy" / "shuffling.md").read_text()
    for local in (1.0, 4.0):
        cell = re.search(rf"^\| epsilon {local:g} \| ([^|]*) \|", page, flags=re.MULTILINE)
        choices = (dc.multiparty.LocalHashing("r", dc.Budget(local), 10).buckets, 2, None)
        for said, k in zip(cell[1].split(", "), choices, strict=True):
            assert 0.99 * float(said) < shuffled(local, 1000, 1e-8, choices=k).epsilon <= float(said)


@pytest.mark.parametrize(("n", "local"), [(1, 1.0), (10**3, 0.01), (10**6, 30.0), (10**12, 1.0)])
def test_never_more_than_one_report_alone_and_never_less_with_fewer(n, local):
    budget = shuffled(local, n, 1e-9)
    assert 0 < budget.epsilon <= local
    assert budget.delta == 1e-9
    assert shuffled(local, 10 * n, 1e-9).epsilon <= budget.epsilon * (1 + 1e-5)
    assert budget.epsilon == local or shuffled_delta(local, n, budget.epsilon) <= 1e-9


def test_the_tails_of_the_library_are_as_good_as_assumed():
    mpmath = pytest.importorskip("mpmath")
    from scipy.stats import binom

    for c in (10, 10**4, 10**7, 10**9):
        k = c // 2 + int(1.5 * math.sqrt(c))
        with mpmath.workdps(60):
            log = mpmath.loggamma(c + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(c - k + 1) - c * mpmath.log(2)
            exact = float(mpmath.exp(log))
        further = np.arange(min(c - k, 30 * int(math.sqrt(c)) + 10), dtype=np.float64)
        tail = exact * (1 + np.cumprod((c - k - further) / (k + 1 + further)).sum())
        assert float(binom.pmf(k, c, 0.5)) == pytest.approx(exact, rel=1e-7)
        assert float(binom.sf(k - 1, c, 0.5)) == pytest.approx(tail, rel=1e-7)


@pytest.mark.parametrize(
    "arguments", [(0, 10, 1e-6), (-1, 10, 1e-6), (51, 10, 1e-6), (1, 0, 1e-6), (1, 1.5, 1e-6), (1, 10, 0), (1, 10, 1.5)]
)
def test_bad_arguments(arguments):
    with pytest.raises(dc.ParameterError):
        shuffled(*arguments)


@pytest.mark.parametrize("choices", [1, 0, -2, 2.0, True, "2"])
def test_bad_choices(choices):
    with pytest.raises(dc.ParameterError, match="choices"):
        shuffled(1.0, 10, 1e-6, choices=choices)


def test_arrays_of_runs_cover_all_clones():
    """What the runs of values of C leave out is charged, not forgotten: delta at epsilon 0 is the total variation."""
    assert shuffled_delta(1.0, 2, 0.0) == pytest.approx(exact_clone_delta(1.0, 2, 0.0), rel=1e-5)
    assert np.isfinite(shuffled_delta(0.01, 10**12, 1e-9))
