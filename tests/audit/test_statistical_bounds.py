"""Clopper-Pearson bounds, and lower bounds on epsilon that are seldom above the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.noise import seeded_source
from discreet_audit.statistical import ScoredPair, clopper_pearson, epsilon_lower_bound, measure


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (3, 10), (999, 1000), (1, 100_000)])
@pytest.mark.parametrize("error", [0.05, 1e-9])
def test_bounds_invert_the_binomial_tail(k, n, error):
    lower, upper = clopper_pearson(k, n, error)
    assert lower == 0.0 if k == 0 else stats.binom.sf(k - 1, n, lower) == pytest.approx(error, rel=1e-6)
    assert upper == 1.0 if k == n else stats.binom.cdf(k, n, upper) == pytest.approx(error, rel=1e-6)


def test_nothing_is_proved_below_delta():
    assert epsilon_lower_bound((10, 1000), (0, 1000), 0.05, 1e-3) == -math.inf
    assert epsilon_lower_bound((1000, 1000), (0, 1000), 0.0, 1e-9) > 3.0


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_laplace_noise_is_told_from_half_of_it(scale):
    """A count that differs by one: the bound is below 1/scale and above half of it (seeded)."""
    source = seeded_source(5)

    def release(count):
        return count + source.discrete_laplace(scale)

    bound = measure(release, ScoredPair("", 1, 0, float), 0.0, 4000)
    assert 0.5 / scale < bound <= 1 / scale
    rejected = bound > 1.0
    assert rejected == (scale < 1.0)


def test_the_event_is_not_chosen_on_the_runs_that_count():
    """Equal inputs: nothing may be proved, whatever the scores look like (seeded)."""
    draw = np.random.default_rng(3)
    assert measure(lambda _: draw.normal(), ScoredPair("", 0, 0, float), 0.0, 400) <= 0.0
