"""What shuffled reports cost: against exact values for few reports, real protocols, and published figures."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.privacy.shuffling import shuffled, shuffled_closed_form, shuffled_delta


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


def test_a_twin_with_twice_the_clones_is_caught():
    """The bound of epsilon_0/2 for reports of epsilon_0 would be a lie that real responses convict."""
    worst = max(response_delta(2.0, 2, others, 0.8) for others in itertools.product(range(2), repeat=5))
    assert worst > shuffled_delta(1.0, 6, 0.8)


def test_known_figures():
    assert shuffled_closed_form(4.0, 10**6, 1e-8) == pytest.approx(0.2267, abs=1e-3)
    assert shuffled(4.0, 10**6, 1e-8).epsilon == pytest.approx(0.066, abs=0.002)
    assert shuffled_closed_form(4.0, 1000, 1e-8) == math.inf


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


def test_arrays_of_runs_cover_all_clones():
    """What the runs of values of C leave out is charged, not forgotten: delta at epsilon 0 is the total variation."""
    assert shuffled_delta(1.0, 2, 0.0) == pytest.approx(exact_clone_delta(1.0, 2, 0.0), rel=1e-5)
    assert np.isfinite(shuffled_delta(0.01, 10**12, 1e-9))
