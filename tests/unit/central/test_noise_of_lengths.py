"""A length that is published with noise: a user of m events moves it by m."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dc
from discreet import _native
from discreet.central import CountSketchHeavyHitters
from discreet.noise import RandomSource
from discreet.published import PrivateSpaceSaving

BUDGET = dc.Budget(1.0, 1e-6)


class Recording(RandomSource):
    """Draws nothing but zeros and keeps the scales it was asked for."""

    def __init__(self):
        super().__init__(_native.RandomSource(1))
        self.scales = []

    def discrete_laplace(self, scale, size=None):
        self.scales.append(Fraction(scale))
        return super().discrete_laplace(scale, size) * 0


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("m", [1, 2, 7])
def test_space_saving(m, share):
    """m/scale is what each part spends on one user: epsilon in all, exactly."""
    sketch = dc.SpaceSaving(4)
    sketch.update(list(range(4)) * 25)
    unit = dc.Event() if m == 1 else dc.User(m)
    mechanism = PrivateSpaceSaving(BUDGET, 4, unit, stream_length="noisy", length_share=share)
    source = Recording()
    release = mechanism(sketch, source)
    length, counters = source.scales
    assert length == m / (Fraction(1) * Fraction(share))
    assert m / length + m / counters == 1
    assert mechanism.error_model.offset_noise.scale == length
    assert release.offset == 100 // 4


@pytest.mark.parametrize("m", [1, 2, 7])
def test_count_sketch(m):
    sketch = dc.CountSketch(64, 9, tracked=4)
    sketch.update([1] * 100)
    unit = dc.Event() if m == 1 else dc.User(m)
    mechanism = CountSketchHeavyHitters.for_summary(sketch, BUDGET, unit=unit, noise="laplace", length_share=0.25)
    source = Recording()
    mechanism(sketch, source)
    cells, length = source.scales
    assert length == 4 * m
    assert 9 * m / cells + m / length == 1


@pytest.mark.parametrize("m", [1, 2, 7])
def test_the_total(m):
    sketch = dc.MisraGries(4)
    sketch.update([1] * 100)
    unit = dc.Event() if m == 1 else dc.User(m)
    source = Recording()
    release = dc.release(sketch, BUDGET, unit=unit, total_share=0.25, source=source)
    assert source.scales[-1] == release.total_noise.scale == 4 * m
    assert release.total == 100
