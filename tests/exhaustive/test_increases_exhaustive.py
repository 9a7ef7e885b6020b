"""The law of the difference of two published totals, written out, against the interval that is stated for it.

All noises of a short horizon are enumerated and go through the recurrence of the package, with its roundings. An
interval must hold as often as stated, and must not be wider than it has to be. Twins that take the covariance of two
ticks with the wrong sign, for nothing, or for twice what it is fail the same check.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.continual._factors import Buffered, SquareRoot, Tree
from discreet.privacy.calibration.tick_noise import TickNoise, difference_reach

BETAS = (0.5, 0.1, 0.05, 0.01, 1e-3)


def gaussian(sigma, deviations):
    z = np.arange(-math.ceil(deviations * sigma), math.ceil(deviations * sigma) + 1)
    p = np.exp(-(z**2) / (2.0 * sigma**2))
    return z, p / p.sum()


class Enumerated:
    """A source whose noises are all there are, side by side."""

    def __init__(self, columns):
        self.columns = iter(columns)

    def discrete_gaussian(self, sigma, size):
        column = next(self.columns)
        assert len(column) == size
        return column


def law_of_ticks(factor, sigma, ticks, deviations):
    """The published noises of all ticks for every outcome, from 0 before the first, and how likely each outcome is."""
    z, p = gaussian(sigma, deviations)
    grids = [grid.ravel() for grid in np.meshgrid(*[z] * ticks, indexing="ij")]
    chances = np.ones(len(grids[0]))
    for weights in np.meshgrid(*[p] * ticks, indexing="ij"):
        chances *= weights.ravel()
    state, source = factor.start(len(chances)), Enumerated(grids)
    noises = [np.zeros(len(chances), np.int64)]
    for tick in range(1, ticks + 1):
        noises.append(factor.to_counts(factor.advance(state, tick, Fraction(sigma), source)))
    return noises, chances


def is_right(noises, chances, s, t, reach, slack=1):
    """Whether intervals hold as often as stated, and would not if they were narrower by more than `slack`."""
    off = np.abs(noises[t] - noises[s])
    for beta in BETAS:
        around = reach(s, t, beta / 2.0)
        if chances[off > around].sum() > beta:
            return False
        if around > slack and chances[off > around - 1 - slack].sum() <= beta:
            return False
    return True


def on_lattice(factor, lattice):
    factor.lattice = lattice  # fewer steps than a count has, for few outcomes
    return factor


WIDE = {
    "square-root": (on_lattice(SquareRoot(2), 4), 32.0, 2, 4.5, 1),
    "blt": (on_lattice(Buffered(4), 4), 33.0, 2, 4.5, 1),
    "tree of base 2": (Tree(3, 2), 4.0, 3, 5.0, 0),
    "tree of base 3": (Tree(4, 3), 2.0, 4, 5.0, 0),
    "a small tree": (Tree(3, 2), 1.0, 3, 7.0, 0),
}


@pytest.mark.parametrize("name", WIDE)
def test_the_interval_of_an_increase_holds_and_is_no_wider_than_it_has_to_be(name):
    factor, sigma, ticks, deviations, slack = WIDE[name]
    noise = factor.tick_noise(Fraction(sigma))
    noises, chances = law_of_ticks(factor, sigma, ticks, deviations)
    for s, t in itertools.combinations(range(ticks + 1), 2):
        assert is_right(noises, chances, s, t, lambda s, t, p: difference_reach([(noise, s, t)], p), slack), (s, t)


@pytest.mark.parametrize("name", ["square-root", "blt", "tree of base 2"])
def test_a_wrong_covariance_is_caught(name):
    factor, sigma, ticks, deviations, slack = WIDE[name]
    noise = factor.tick_noise(Fraction(sigma))
    noises, chances = law_of_ticks(factor, sigma, ticks, deviations)
    s, t = (1, 2) if ticks == 2 else (2, 3)

    def twin(times):
        """Intervals of a Gaussian of this variance: the rows of both ticks, and `times` their product."""

        def reach(s, t, p):
            rows = [noise.difference(0, tick) * sigma**2 for tick in (s, t)]
            variance = (sum(rows) + times * noise.covariance(s, t)) / factor.lattice**2
            law = TickNoise("square-root", 1, math.sqrt(variance) * 1000.0, 1000)
            return difference_reach([(law, 0, 1)], p)

        return reach

    assert is_right(noises, chances, s, t, twin(-2.0), slack + 1)
    assert not is_right(noises, chances, s, t, twin(2.0), slack + 1)  # the wrong sign
    assert not is_right(noises, chances, s, t, twin(0.0), slack + 1)  # added, as if the two were independent
    assert not is_right(noises, chances, s, t, twin(-2.5), slack + 1)  # more in common than they have


def test_little_noise_on_a_lattice_has_a_bound_that_holds():
    factor, sigma = on_lattice(SquareRoot(3), 4), 3.0
    noise = factor.tick_noise(Fraction(sigma))
    noises, chances = law_of_ticks(factor, sigma, 3, 5.0)
    for (s, t), beta in itertools.product(itertools.combinations(range(4), 2), BETAS):
        around = difference_reach([(noise, s, t)], beta / 2.0)
        assert chances[np.abs(noises[t] - noises[s]) > around].sum() <= beta
        assert around <= 3.0 * (math.sqrt(-2.0 * noise.difference(s, t) * math.log(beta / 2.0)) * sigma / 4.0 + 1.0)


def test_two_runs_have_the_noise_of_both():
    """Independent: the law of the difference is a convolution."""
    factor, sigma = Tree(3, 2), 4.0
    noise = factor.tick_noise(Fraction(sigma))
    noises, chances = law_of_ticks(factor, sigma, 3, 5.0)

    def law(tick):
        reach = int(np.abs(noises[tick]).max())
        return np.bincount(noises[tick] + reach, chances, 2 * reach + 1)

    both = np.convolve(law(2), law(3)[::-1])
    off = np.abs(np.arange(len(both)) - len(both) // 2)
    for beta in BETAS:
        around = difference_reach([(noise, 0, 2), (noise, 0, 3)], beta / 2.0)
        assert both[off > around].sum() <= beta < both[off >= around].sum()
        assert around > difference_reach([(noise, 2, 3)], beta / 2.0)


@pytest.mark.parametrize(
    "factor", [Buffered(4), Buffered(60), Buffered(1000), SquareRoot(60), Tree(60), Tree(60, 2)], ids=lambda f: f.name
)
def test_the_variance_of_a_difference_is_that_of_the_rows(factor):
    """Against the matrix A C^-1 itself, from the recurrence without roundings."""
    ticks = min(factor.horizon, 60)
    rows = np.zeros((ticks + 1, 4 * ticks))
    if factor.name == "tree":
        for tick in range(1, ticks + 1):
            for level in range(factor.levels):
                power = factor.base**level
                digit, begins = tick // power % factor.base, tick // (power * factor.base) * (power * factor.base)
                for node in range(digit):  # named by where it ends
                    rows[tick, begins + (node + 1) * power] += 1.0
    else:
        if factor.name == "blt":
            c = np.array([1.0, *(float(factor._omega @ (1.0 - factor._gaps) ** j) for j in range(ticks - 1))])
        else:
            c = np.concatenate([[1.0], factor.coefficients / 2.0**40])
        matrix = np.array([[c[i - j] if j <= i else 0.0 for j in range(ticks)] for i in range(ticks)])
        rows[1:, :ticks] = np.cumsum(np.linalg.inv(matrix), axis=0)
    noise = factor.tick_noise(Fraction(100))
    for s, t in itertools.combinations(range(ticks + 1), 2):
        exact = float(((rows[t] - rows[s]) ** 2).sum())
        assert exact <= noise.difference(s, t) <= exact * (1.0 + 1e-6)
        assert noise.covariance(s, t) >= -1e-6 * 100**2


@pytest.mark.parametrize("horizon", [4, 60, 1000, 2**16])
def test_a_counter_that_began_later_has_less_noise_in_every_difference(horizon):
    """Of heavy hitters: the noise of the oldest counter stands for all."""
    noise = Buffered(horizon).tick_noise(Fraction(100))
    for apart in {1, 2, horizon // 7, horizon // 2} - {0}:
        ages = sorted({0, 1, 2, 5, horizon // 3, horizon - apart})
        widths = [noise.difference(age, age + apart) for age in ages if age + apart <= horizon]
        assert widths == sorted(widths)


def test_the_figures_that_were_derived():
    """In units of a single release: at 720 ticks 2.0 over one tick and 3.2 over 24, where both added are 6.3."""
    for horizon, over_one, over_24 in ((720, 2.0, 3.2), (2**16, 2.4, 3.9)):
        factor = Buffered(horizon)
        noise = factor.tick_noise(factor.sigma(0.5))
        unit = noise.sigma / factor.lattice
        assert math.sqrt(noise.difference(horizon - 1, horizon)) * unit == pytest.approx(over_one, rel=0.03)
        assert math.sqrt(noise.difference(horizon - 24, horizon)) * unit == pytest.approx(over_24, rel=0.03)
