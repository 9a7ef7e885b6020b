"""What the releases of merged and of user-level sketches share: Gaussian noise with a part common to all counters."""

from __future__ import annotations

import abc
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet.central._base import Drawn, Mechanism, length_assumptions, lost_by_misra_gries, positive
from discreet.noise import RandomSource
from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Counts
from discreet.summaries import MisraGries, UserMisraGries

_HALF = Fraction(1, 2)


def plus_halves(counts: Counts, halves: Counts) -> tuple[Counts, Counts]:
    """counts + halves/2, rounded down, and rounded to the nearest with halves to the even number.

    Rounding is done on what is published already: it costs no privacy, and to the even number it adds no bias.
    """
    floor = counts + (halves >> 1)
    return floor, floor + (halves & floor & 1)


class CommonNoise(Mechanism):
    """Publish c_x + (Z_x + eta)/2 where it is at least the threshold: one eta for all counters.

    Neighbouring sketches are `_steps` steps apart, and a step moves all counters that it moves in one direction. A
    shift of eta takes half of that from every counter, so that Z needs to hide half as much:
    `privacy.calibration.correlated_noise`.
    """

    noise_growth: ClassVar[float] = 0.5
    capacity: int
    stream_length: int | None

    @property
    @abc.abstractmethod
    def _steps(self) -> int:
        """How many events, or lists, of one unit of privacy may be in the sketch."""

    @cached_property
    def _calibrated(self) -> tuple[float, float, int]:
        return correlated_calibration(*self.spends, self.capacity, self._steps)

    @cached_property
    def scale(self) -> Fraction:
        """Sigma of the discrete Gaussian noise of each counter, in half counts."""
        return Fraction(self._calibrated[0])

    @cached_property
    def shared_scale(self) -> Fraction:
        """Sigma of the discrete Gaussian noise that all counters share, in half counts."""
        return Fraction(self._calibrated[1])

    @cached_property
    def threshold(self) -> int:
        return self._calibrated[2]

    @cached_property
    def error_model(self) -> ErrorModel:
        rounding = 0.5
        return ErrorModel(
            Noise("gaussian", self.scale, self.capacity, _HALF),
            shared=Noise("gaussian", self.shared_scale, step=_HALF),
            summary_below=lost_by_misra_gries(self.stream_length, self.capacity) + rounding,
            summary_above=rounding,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return length_assumptions(self.stream_length)

    def draw(self, summary: MisraGries | UserMisraGries, source: RandomSource) -> Drawn:
        raw = positive(summary.not_private_counts())
        shared = source.discrete_gaussian(self.shared_scale)
        floor, noisy = plus_halves(raw.counts, source.discrete_gaussian(self.scale, len(raw)) + np.int64(shared))
        return Drawn(raw, noisy, floor >= self.threshold)
