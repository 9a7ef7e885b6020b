"""The integer Gaussian sparse histogram against its output laws, for every split into common and isolated keys."""

import functools
import math

import numpy as np
import pytest
from tests.reference.neighbours import Pair

from discreet.privacy.calibration.sparse_histogram import discrete_gshm_delta, gshm_calibration


def _worst(epsilon, sigma, t, changes, *, strict=False):
    """Largest divergence over both directions and all (isolated, common) with at most `changes` in all."""
    z = np.arange(-math.ceil(30 * sigma) - 2, math.ceil(30 * sigma) + 3)
    p = np.exp(-(z**2) / (2 * sigma**2))
    p /= p.sum()
    shown = float(p[z > t].sum() if strict else p[z >= t].sum())
    isolated = Pair.of({"shown": shown, "hidden": 1 - shown}, {"hidden": 1.0})
    # a count that both hold, far above the cut, 1 higher in the first
    common = Pair(np.append(0.0, p), np.append(p, 0.0)).merged()
    factor = math.exp(epsilon)
    largest = 0.0
    for j in range(changes + 1):
        pairs = [functools.reduce(Pair.times, [common] * j, Pair.of({"": 1.0}, {"": 1.0}))]
        while len(pairs) < changes + 1 - j:
            pairs.append(pairs[-1].times(isolated))
        for pair in pairs:
            reverse = Pair(pair.second, pair.first)
            largest = max(largest, pair.divergence(factor), reverse.divergence(factor))
    return largest


@pytest.mark.parametrize(("sigma", "t"), [(1.6, 3), (1.6, 6), (3.0, 8), (3.0, 14)])
@pytest.mark.parametrize("changes", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_delta_is_the_worst_split(epsilon, sigma, t, changes):
    ours, worst = discrete_gshm_delta(epsilon, sigma, t, changes), _worst(epsilon, sigma, t, changes)
    assert ours == pytest.approx(worst, rel=1e-7)
    assert ours >= worst * (1 - 1e-9)


@pytest.mark.parametrize("changes", [1, 2, 3])
def test_calibrated_pairs_pass_and_sabotaged_ones_are_caught(changes):
    epsilon, delta = 1.0, 1e-4
    sigma, threshold = gshm_calibration(epsilon, delta, changes)
    t = threshold - 1
    assert _worst(epsilon, sigma, t, changes) <= delta * (1 + 1e-9)
    assert _worst(epsilon, sigma, t - 1, changes) > delta
    assert _worst(epsilon, sigma / 2, t, changes) > delta
    # a cut calibrated for ">" on a release that compares with ">=" lies one lower
    for_strict = next(s for s in range(1, 100) if _worst(epsilon, sigma, s, changes, strict=True) <= delta)
    assert for_strict == t - 1
    assert _worst(epsilon, sigma, for_strict, changes) > delta
