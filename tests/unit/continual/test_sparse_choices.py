"""The top k that are chosen again now and then: their counters go on with the noise of the tick at which they are."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.continual._factors import Tree
from discreet.continual._schemes import Sparse
from discreet.noise import seeded_source
from discreet.privacy.calibration.tick_noise import geometric_squares
from discreet_audit.exact import ScriptedSource


def test_who_is_chosen_later_has_the_noise_of_all_ticks_before():
    """Less of it would show what was counted before the choice."""
    joined = []

    class Watched(Tree):
        def join(self, size, tick, sigma, source):
            joined.append((size, tick, sigma))
            return super().join(size, tick, sigma, source)

    scheme = Sparse(lambda rho: (Watched(16, 2), rho), rho=1e6, k=1, switches=2, margin=5, places=48)
    source, counts = seeded_source(1), np.array([100, 0, 0])
    tops = []
    for tick in range(1, 8):
        if tick == 5:
            counts = np.array([100, 100_000, 0])
        tops.append(scheme.step(counts, counts, tick, None, source)[0].tolist())
    assert tops == [[0]] * 4 + [[1]] * 3
    assert joined == [(1, 1, scheme.sigma), (1, 5, scheme.sigma)]
    assert isinstance(scheme.sigma, Fraction)


def test_what_was_published_is_not_changed_by_who_reads_it():
    counter = dc.continual.Counter(4, dc.Budget.zcdp(1e6), size=3)
    assert counter.step([1, 2, 3]).tolist() == [1, 2, 3]
    counter.last[:] = 0
    assert counter.last.tolist() == [1, 2, 3]
    assert counter.step([9, 9, 9], tick=1).tolist() == [1, 2, 3]


@pytest.mark.parametrize("terms", [1, 2, 7, 40])
@pytest.mark.parametrize("gaps", [[0.25], [0.01, 0.5], [0.3, 1.5, 1.9], [1.0, 0.2]])
def test_sums_of_powers_are_those_that_are_added_up(gaps, terms):
    """Also of ratios below 0, which change their sign from tick to tick."""
    weights, gaps = np.arange(1.0, len(gaps) + 1), np.array(gaps)
    direct = sum(float(weights @ (1.0 - gaps) ** j) ** 2 for j in range(terms))
    assert geometric_squares(weights, gaps, terms) == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("switches", [1, 2])
def test_every_choice_has_a_level_with_noise_of_its_own(switches):
    """AboveThreshold with Lap(2 tau_1) on the level, once a choice, and Lap(4 tau_1) on every other count and tick:
    tau_1^2 = s tau^2 with tau^2 = (2 k + 1/4)/(2 rho)."""
    rho, ticks = 0.5, 6

    class Above(ScriptedSource):
        """Every other count is above the level, as long as there are choices."""

        def discrete_laplace(self, scale, size=None):
            return super().discrete_laplace(scale, size) + (10**9 if size == 2 else 0)

    source = Above()
    made = dc.continual.Histogram(
        ticks, dc.Budget.zcdp(rho), ["a", "b", "c"], k=1, mechanism="sparse", switches=switches, margin=0, source=source
    )
    for _ in range(ticks):
        made.step(["a", "b", "c"])
    tau1 = math.sqrt(switches * (2 + 0.25) / (2 * rho))
    drawn = [(round(float(draw.scale) / tau1, 6), draw.size) for draw in source.draws if draw.law == "laplace"]
    assert drawn == [(2.0, 1), *[(4.0, 2), (2.0, 1)] * switches]
    choices = [draw for draw in source.draws if draw.law == "choice"]
    assert len(choices) == switches + 1
