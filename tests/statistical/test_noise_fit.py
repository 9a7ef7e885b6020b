"""Goodness of fit of every sampler, and that the same test rejects a law a little off.

All draws come from seeded sources, so a run repeats exactly; a right sampler and a fresh seed would fail one of the
chi-square tests with probability below 1e-6.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from discreet.noise import laws, seeded_source
from discreet.noise.enclosure import exp_minus

REJECT = 1e-6
DRAWS = 1_000_000


def p_value(draws, cumulative):
    """Chi-square p-value against a law given by P[X <= z], in cells of about equal probability."""
    low, high = np.quantile(draws, [0.0005, 0.9995])
    edges = np.unique(np.linspace(low, high, 120).astype(np.int64))
    expected = np.diff(cumulative(edges), prepend=0.0, append=1.0)
    observed = np.diff(np.searchsorted(np.sort(draws), edges, side="right"), prepend=0, append=len(draws))
    keep = expected * len(draws) >= 10
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] * len(draws) < 1:
        observed, expected = observed[:-1], expected[:-1] / expected[:-1].sum()
    return stats.chisquare(observed, expected * observed.sum()).pvalue


def laplace(scale):
    q = math.exp(-1 / scale)

    def cumulative(z):
        tail = np.exp(-(np.abs(z + (z >= 0))) / scale) / (1 + q)
        return np.where(z >= 0, 1 - tail, tail)

    return cumulative


def geometric(scale):
    return lambda z: np.where(z >= 0, -np.expm1(-(z + 1) / scale), 0.0)


def gaussian(sigma):
    if sigma > 50:  # the discrete law's mass up to z is the continuous one's up to z + 1/2, to about 1e-5
        return lambda z: stats.norm.cdf((z + 0.5) / sigma)
    support = np.arange(-int(40 * sigma) - 2, int(40 * sigma) + 3)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    sums = np.cumsum(weights) / weights.sum()
    return lambda z: sums[np.asarray(z) - support[0]]


CASES = [
    *[("discrete_laplace", laplace, scale) for scale in (0.5, 1.0, 10.0, 15.9, 16.0, 77.7, 1e4, 1e9, 2.0**50)],
    *[("geometric", geometric, scale) for scale in (0.5, 3.0, 40.0, 1e6)],
    *[("discrete_gaussian", gaussian, sigma) for sigma in (0.5, 1.0, 5.0, 63.0, 64.0, 1000.0, 1e6, 1e9, 2.0**50)],
]


@pytest.mark.parametrize(("name", "law", "scale"), CASES)
def test_a_million_draws_fit_and_a_scale_three_percent_off_does_not(name, law, scale):
    draws = getattr(seeded_source(11), name)(scale, DRAWS)
    assert p_value(draws, law(scale)) > REJECT
    assert p_value(draws, law(scale * 1.03)) < REJECT
    assert p_value(draws, law(scale / 1.03)) < REJECT


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_one_draw_in_fifty_off_by_one_is_seen(name):
    """The shift adds about 0.02^2 DRAWS sum_z (p(z-1) - p(z))^2 / p(z) > 90 to a statistic of fewer than 60 cells."""
    draws = getattr(seeded_source(12), name)(2.0, DRAWS)
    draws[: DRAWS // 50] += 1
    assert p_value(draws, {"discrete_laplace": laplace, "discrete_gaussian": gaussian}[name](2.0)) < REJECT


@pytest.mark.parametrize(
    ("make", "law", "scale"),
    [
        (laws.laplace_law, laplace, 2.5),
        (laws.laplace_law, laplace, 40.0),
        (laws.geometric_law, geometric, 40.0),
        (laws.gaussian_law, gaussian, 3.0),
        (laws.gaussian_law, gaussian, 130.0),
    ],
)
def test_the_exact_continuation_has_the_same_law(make, law, scale):
    """With words of 4 bits most draws are not decided by the native sampler and are finished in exact arithmetic."""
    short = make(Fraction(scale), 4)
    source = seeded_source(13)
    _, pending = short.native.draw(source._source.native, 1000)
    assert len(pending) > 100
    draws = source._draw(short, 20_000)
    assert p_value(draws, law(scale)) > REJECT
    assert p_value(draws, law(scale * 1.2)) < REJECT


def counts_p_value(observed, probabilities):
    """Chi-square p-value of a Counter against a dict of probabilities; nothing outside it may occur."""
    assert set(observed) <= set(probabilities)
    total = sum(observed.values())
    cells = [(observed[key], p * total) for key, p in probabilities.items()]
    return stats.chisquare(*zip(*cells, strict=True)).pvalue


@pytest.mark.parametrize(
    ("trials", "probability"), [(10, Fraction(1, 3)), (10, 0.9), (5000, 0.5), (2**62, Fraction(30, 2**62))]
)
def test_binomial_fits(trials, probability):
    draws = seeded_source(14).binomial(trials, probability, 50_000)
    p = float(probability)
    law = stats.poisson(30) if trials == 2**62 else stats.binom(trials, p)
    other = stats.poisson(31) if trials == 2**62 else stats.binom(trials, p * 1.03)
    assert p_value(draws, law.cdf) > REJECT
    assert p_value(draws, other.cdf) < REJECT


def test_binomial_of_certain_and_impossible_events():
    source = seeded_source(15)
    assert source.binomial(2**62, 0) == 0
    assert source.binomial(2**62, 1) == 2**62
    assert source.binomial(0, 0.5) == 0
    assert source.binomial(10**18, partial(exp_minus, Fraction(10**6)), 3).tolist() == [0, 0, 0]


def test_exceedances_count_the_noises_above_a_cut():
    source = seeded_source(16)
    direct = (source.discrete_laplace(2, 50_000 * 40).reshape(50_000, 40) >= 3).sum(axis=1)
    q = math.exp(-0.5)
    law = stats.binom(40, q**3 / (1 + q)).cdf
    assert p_value(direct, law) > REJECT
    assert p_value(source.discrete_laplace_exceedances(40, 2, 3, 50_000), law) > REJECT


@pytest.mark.parametrize("minimum", [-9, -2, -1, 0, 1, 7])
def test_noise_above_a_minimum_is_noise_given_that_it_is_above(minimum):
    draws = seeded_source(17).discrete_laplace_at_least(3.0, minimum, 200_000)
    assert draws.min() == minimum
    below = laplace(3.0)(np.array([minimum - 1]))
    assert p_value(draws, lambda z: np.maximum(laplace(3.0)(z) - below, 0) / (1 - below)) > REJECT


@pytest.mark.parametrize("x", [0.01, 0.5, 3.0])
def test_bernoulli_frequencies(x):
    """Within 5.5 standard deviations: 4e-8."""
    source, p = seeded_source(18), math.exp(-x)
    bound = 5.5 * math.sqrt(DRAWS * p * (1 - p))
    assert abs(source.bernoulli(p, DRAWS).sum() - DRAWS * p) < bound
    assert source.bernoulli(0, 100).sum() == 0
    assert source.bernoulli(1, 100).sum() == 100


def test_uniform_integers_are_uniform():
    source = seeded_source(19)
    assert stats.chisquare(np.bincount(source.uniform_integers(7, DRAWS))).pvalue > REJECT
    # A remainder of 64 bits modulo 3 * 2^62 would fall below 2^62 in half of the draws, not in a third.
    share = (source.uniform_integers(3 * 2**61, 100_000) < 2**61).mean()
    assert abs(share - 1 / 3) < 5.5 * math.sqrt(2 / 9 / 100_000)
    assert source.uniform_integers(1, 10).tolist() == [0] * 10
    assert source.uniform_integers(2**63, 1000).min() >= 0


def selection_law(scores, rate, k):
    """P of each ordered choice of k."""
    weights = [math.exp(rate * s) for s in scores]
    law = {}
    for choice in itertools.permutations(range(len(scores)), k):
        left, p = sum(weights), 1.0
        for i in choice:
            p, left = p * weights[i] / left, left - weights[i]
        law[choice] = p
    return law


@pytest.mark.parametrize(
    ("scores", "epsilon", "k"),
    [
        ([0, 0, 0, 0], 1.0, 1),
        ([10, 9, 7, 7, 0], 0.7, 1),
        ([3, -1, 2, 3], 1.5, 2),
        ([8, 2, 1, 0], 2.0, 3),  # the first holds nearly all the weight: it is taken out for the next
        ([5, 1, -200], 1.0, 2),
    ],
)
def test_selection_fits(scores, epsilon, k):
    source = seeded_source(20)
    draws = Counter(tuple(source.exponential_mechanism(scores, epsilon, k=k).tolist()) for _ in range(6000))
    law = {choice: p for choice, p in selection_law(scores, epsilon / 2, k).items() if p > 1e-9}
    assert counts_p_value(draws, law) > REJECT
    if len(set(scores)) > 1:
        wrong = {choice: p for choice, p in selection_law(scores, epsilon, k).items() if choice in law}
        total = sum(wrong.values())
        assert counts_p_value(draws, {choice: p / total for choice, p in wrong.items()}) < REJECT


def test_selection_of_sensitivity_two_halves_the_rate():
    ours = seeded_source(21).exponential_mechanism(range(100), 1.0, sensitivity=2, k=10)
    assert ours.tolist() == seeded_source(21).exponential_mechanism(range(100), 0.5, k=10).tolist()


def test_permutations_and_samples_are_uniform():
    source = seeded_source(22)
    orders = Counter(tuple(source.permutation(4).tolist()) for _ in range(24_000))
    assert counts_p_value(orders, dict.fromkeys(itertools.permutations(range(4)), 1 / 24)) > REJECT
    pairs = Counter(tuple(source.sample_without_replacement(5, 2).tolist()) for _ in range(20_000))
    assert counts_p_value(pairs, dict.fromkeys(itertools.permutations(range(5), 2), 1 / 20)) > REJECT


def test_uniform_integers_have_no_bias_of_a_remainder():
    """2**64 words are no multiple of 3 * 2**61 values: without rejection every third value is rarer by a third.

    Seeded; a right source would fail with probability 2e-9 (six standard deviations, three counts).
    """
    draws = seeded_source(5).uniform_integers(3 * 2**61, 9000)
    counts = np.bincount(draws % 3, minlength=3)
    assert np.abs(counts - 3000).max() < 6 * math.sqrt(9000 * 2 / 9)
