"""Gaussian noise with a part that all counters share, against its output laws written out: nothing of it is revealed.

All ways in which the counts of a few keys may differ between sketches that are some steps apart. Common counts are far
above the cut and not rounded, which only shows more than a release does.
"""

import itertools
import math

import numpy as np
import pytest

from discreet.privacy.calibration.correlated_noise import correlated_calibration, discrete_correlated_delta


def _gaussian(sigma, reach):
    z = np.arange(-reach, reach + 1)
    p = np.exp(-(z**2) / (2 * sigma**2))
    return p / p.sum()


class Release:
    """2 c + Z + eta for a few counters, shown from 2 T on."""

    def __init__(self, sigma, shared, threshold):
        self.reach, self.width = math.ceil(8 * sigma), math.ceil(8 * shared)
        self.each, self.shared, self.cut = _gaussian(sigma, self.reach), _gaussian(shared, self.width), 2 * threshold
        self.n = np.arange(-self.width, self.width + 1)

    def common(self, moved):
        """P[2 c + Z + n = v] for every n and v, for a counter that is so much higher than 0."""
        span = self.reach + self.width + 2 * 3
        law = np.zeros((len(self.n), 2 * span + 1))
        for row, n in enumerate(self.n):
            start = span + 2 * moved + n - self.reach
            law[row, start : start + len(self.each)] = self.each
        return law

    def isolated(self, count):
        """P[hidden], P[shown] for every n; a count of 0 is not stored."""
        z = np.arange(-self.reach, self.reach + 1)
        shown = np.array([self.each[z >= self.cut - 2 * count - n].sum() if count else 0.0 for n in self.n])
        return np.stack([1 - shown, shown], axis=1)

    def law(self, common, isolated):
        """The joint law of all keys."""
        parts = [*map(self.common, common), *map(self.isolated, isolated)]
        axes = "abcdef"[: len(parts)]
        return np.einsum(",".join(["n", *("n" + axis for axis in axes)]) + "->" + axes, self.shared, *parts)


def _divergence(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def _worst(epsilon, sigma, shared, threshold, changes, height=1, enough=math.inf):
    """Largest divergence over everything that `height` steps can do to up to `changes` keys of either sketch.

    For u steps up and d down: common counts differ by -d to u, keys of the first alone have a count of u, of the second
    d (lower ones are hidden more often). One that is above `enough` ends the search.
    """
    release = Release(sigma, shared, threshold)
    largest = 0.0
    for up in range(height + 1):
        down = height - up
        for mine, yours in itertools.product(range(changes + 1), repeat=2):
            if (mine and not up) or (yours and not down):
                continue
            j = changes - max(mine, yours)
            second = release.law([0] * j, [0] * mine + [down] * yours)
            for moves in itertools.combinations_with_replacement(range(-down, up + 1), j):
                first = release.law(moves, [up] * mine + [0] * yours)
                largest = max(largest, _divergence(first, second, epsilon), _divergence(second, first, epsilon))
                if largest > enough:
                    return largest
    return largest


@pytest.mark.parametrize(
    ("epsilon", "delta", "changes"), [(1.0, 0.01, 1), (1.0, 0.01, 2), (2.0, 0.03, 1), (2.0, 0.03, 2), (2.0, 0.03, 3)]
)
def test_calibrated_noise_passes_and_sabotaged_noise_is_caught(epsilon, delta, changes):
    sigma, shared, cut = correlated_calibration(epsilon, delta, changes)
    found = _worst(epsilon, sigma, shared, cut, changes)
    # The bound reveals the shared noise, and yet it is attained: by (k + r)/2 counters that move.
    assert delta * (1 - 1e-6) <= found <= delta * (1 + 1e-9)
    assert _worst(epsilon, sigma, shared, cut - 1, changes, enough=delta) > delta
    assert _worst(epsilon, sigma / 2, shared, cut, changes, enough=2 * delta) > 2 * delta
    assert _worst(epsilon, sigma * 0.97, shared * 0.97, cut, changes, enough=delta) > delta
    if changes > 1:
        assert _worst(epsilon, sigma, 0.01, cut, changes, enough=2 * delta) > 2 * delta
        fewer = correlated_calibration(epsilon, delta, changes - 1)
        assert _worst(epsilon, *fewer, changes, enough=delta) > delta


@pytest.mark.parametrize(("changes", "height"), [(1, 2), (1, 3), (2, 2)])
def test_sketches_that_are_several_steps_apart(changes, height):
    epsilon, delta = 2.0, 0.03
    sigma, shared, cut = correlated_calibration(epsilon, delta, changes, height)
    found = _worst(epsilon, sigma, shared, cut, changes, height)
    assert delta * 0.99 <= found <= delta * (1 + 1e-9)
    assert _worst(epsilon, sigma, shared, cut - 1, changes, height, enough=delta) > delta
    assert _worst(epsilon, sigma / 2, shared, cut, changes, height, enough=2 * delta) > 2 * delta
    assert (
        _worst(epsilon, *correlated_calibration(epsilon, delta, changes, height - 1), changes, height, enough=delta)
        > delta
    )


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("height", [1, 2])
@pytest.mark.parametrize(("sigma", "shared", "cut"), [(2.0, 2.0, 4), (3.0, 1.2, 5), (1.5, 3.0, 6), (2.5, 2.5, 3)])
def test_delta_is_never_below_that_of_the_law(sigma, shared, cut, height, changes):
    """For noises of any proportion, calibrated or not."""
    for epsilon in (0.5, 2.0):
        bound = discrete_correlated_delta(epsilon, sigma, shared, cut + height, changes, height=height)
        assert bound >= _worst(epsilon, sigma, shared, cut + height, changes, height) * (1 - 1e-9)
