"""The normal distribution as scipy has it, also far out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from discreet import _native
from discreet.privacy.calibration import gaussian

# Beyond 37 what is left is denormal, and scipy says 0.
POINTS = np.concatenate([np.linspace(-37, 37, 4001), np.geomspace(1e-12, 1e6, 500), -np.geomspace(1e-12, 25, 500)])


@pytest.mark.parametrize("name", ["ndtr", "log_ndtr"])
def test_as_scipy(name):
    ours, theirs = getattr(gaussian, name)(POINTS), getattr(special, name)(POINTS)
    np.testing.assert_allclose(ours, theirs, rtol=3e-13, atol=0)
    assert getattr(gaussian, name)(np.full((2, 3), 0.5)).shape == (2, 3)


def test_scaled_tails_as_scipy():
    points = POINTS[POINTS > -26]
    np.testing.assert_allclose(_native.erfcx(points), special.erfcx(points), rtol=3e-13, atol=0)


def test_the_logarithm_far_out():
    points = -np.geomspace(30, 1e8, 200)
    np.testing.assert_allclose(gaussian.log_ndtr(points), special.log_ndtr(points), rtol=1e-14)


@pytest.mark.parametrize("probability", [1e-300, 1e-20, 0.001, 0.5, 0.975, 1 - 1e-12])
def test_the_inverse(probability):
    assert gaussian.ndtri(probability) == pytest.approx(special.ndtri(probability), rel=1e-12, abs=1e-15)
