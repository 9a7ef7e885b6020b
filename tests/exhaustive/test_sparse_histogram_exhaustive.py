"""The integer Gaussian sparse histogram against its output laws, for every split into common and isolated keys."""

import itertools
import math

import numpy as np
import pytest
from tests.reference.neighbours import Pair

from discreet.privacy.calibration import discrete_gshm_delta, gshm_calibration


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
    for i in range(changes + 1):
        for j in range(changes + 1 - i):
            pair = Pair.of({"": 1.0}, {"": 1.0})
            for part in [isolated] * i + [common] * j:
                pair = pair.times(part)
            reverse = Pair(pair.second, pair.first)
            largest = max(largest, pair.divergence(factor), reverse.divergence(factor))
    return largest


@pytest.mark.parametrize(("sigma", "t"), [(1.6, 3), (1.6, 6), (3.0, 8), (3.0, 14)])
@pytest.mark.parametrize("changes", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_delta_is_the_worst_split(epsilon, sigma, t, changes):
    ours = discrete_gshm_delta(epsilon, sigma, t, changes)
    assert ours == pytest.approx(_worst(epsilon, sigma, t, changes), rel=1e-7)
    assert ours >= _worst(epsilon, sigma, t, changes) * (1 - 1e-9)


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


def _steps(epsilon, sigma, cut, changes, height):
    """Largest divergence over all counts of up to `changes` keys in each of two sketches that are `height` steps apart.

    For u steps up and d down: common counts, far above the cut, move by -d to u; keys of one sketch alone have 1 to d
    there, or 1 to u in the other.
    """
    reach = math.ceil(25 * sigma) + 2 * height
    z = np.arange(-reach, reach + 1)
    p = np.exp(-(z**2) / (2 * sigma**2))
    p /= p.sum()

    def alone(count, first):
        shown = float(p[z + count >= cut].sum())
        laws = {"shown": shown, "hidden": 1 - shown}, {"hidden": 1.0}
        return Pair.of(*laws) if first else Pair.of(*laws[::-1])

    def moved(shift):
        return Pair(np.append(np.zeros(abs(shift)), p), np.append(p, np.zeros(abs(shift)))).merged()

    largest = 0.0
    for up in range(height + 1):
        down = height - up
        for mine in range(changes + 1):
            for yours in range(changes + 1):
                common = changes - max(mine, yours)
                if (mine and not down) or (yours and not up):
                    continue
                heights = [range(1, down + 1)] * mine + [range(1, up + 1)] * yours + [range(max(up, down) + 1)] * common
                for chosen in itertools.product(*heights):
                    pair = Pair.of({"": 1.0}, {"": 1.0})
                    for place, value in enumerate(chosen):
                        isolated = place < mine + yours
                        pair = pair.times(alone(value, place < mine) if isolated else moved(value))
                    reverse = Pair(pair.second, pair.first)
                    largest = max(largest, *(each.divergence(math.exp(epsilon)) for each in (pair, reverse)))
    return largest


@pytest.mark.parametrize(("changes", "height"), [(1, 2), (1, 3), (2, 2), (2, 3)])
def test_sketches_that_are_several_steps_apart(changes, height):
    """The calibrated pair passes over all counts that the steps allow; with a lower cut or less noise it does not."""
    epsilon, delta = 1.0, 1e-3
    sigma, cut = gshm_calibration(epsilon, delta, changes, height)
    found = _steps(epsilon, sigma, cut, changes, height)
    assert found <= delta * (1 + 1e-9)
    assert discrete_gshm_delta(epsilon, sigma, cut - height, changes, height=height) >= found * (1 - 1e-9)
    assert _steps(epsilon, sigma, cut - 1, changes, height) > delta
    assert _steps(epsilon, sigma * 0.97, cut, changes, height) > delta
    smaller = gshm_calibration(epsilon, delta, changes, height - 1)
    assert _steps(epsilon, *smaller, changes, height) > 2 * delta


def test_a_height_of_one_is_what_it_was():
    assert gshm_calibration(1.0, 1e-6, 1024, 1) == gshm_calibration(1.0, 1e-6, 1024)
    assert gshm_calibration(1.0, 1e-6, 1024)[1] == 813


@pytest.mark.parametrize(("sigma", "t"), [(2.0, 3), (3.0, 6), (3.0, 12), (8.0, 12)])
@pytest.mark.parametrize(("changes", "height"), [(1, 2), (2, 2), (1, 3)])
def test_delta_of_several_steps_is_never_understated(sigma, t, changes, height):
    """Where isolated keys decide and where common ones do; what mixed directions cost is a bound, the rest is exact."""
    ours = discrete_gshm_delta(1.0, sigma, t, changes, height=height)
    found = _steps(1.0, sigma, height + t, changes, height)
    assert found * (1 - 1e-9) <= ours <= 1.3 * found
