"""Gaussian noise with a part common to all counters: what releases of user-level sketches share with that of a merged
sketch, which is here."""

from __future__ import annotations

import abc
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet._data_class import dataclass, field
from discreet.central._base import Approximate, Drawn, lost_by_misra_gries, positive
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Counts
from discreet.summaries import MisraGries, Summary, UserMisraGries

_HALF = Fraction(1, 2)


def plus_halves(counts: Counts, halves: Counts) -> tuple[Counts, Counts]:
    """counts + halves/2, rounded down, and rounded to the nearest with halves to the even number.

    Rounding is done on what is published already: it costs no privacy, and to the even number it adds no bias.
    """
    floor = counts + (halves >> 1)
    return floor, floor + (halves & floor & 1)


class CommonNoise(Approximate):
    """Publish c_x + (Z_x + eta)/2 where it is at least the threshold: one eta for all counters.

    Neighbouring sketches are `_steps` steps apart, each in one direction; a shift of eta takes half of that from every
    counter, so that Z needs to hide half as much (docs/privacy/central.md, "Noise that counters share").
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

    def draw(self, summary: MisraGries | UserMisraGries, source: RandomSource) -> Drawn:
        raw = positive(summary.not_private_counts())
        shared = source.discrete_gaussian(self.shared_scale)
        floor, noisy = plus_halves(raw.counts, source.discrete_gaussian(self.scale, len(raw)) + np.int64(shared))
        return Drawn(raw, noisy, floor >= self.threshold)


@dataclass(frozen=True)
class Merged(CommonNoise):
    """Gaussian noise, in part shared, on the counters of merged sketches, and a cut, however many they are.

    Unit: one event of one of the streams, or up to m events of a user in any of them (`User(m)`).
    Guarantee: (epsilon, delta), for every number and order of merges, and for a sketch that was not merged.
    Noise: c_x + (Z_x + eta)/2 for c_x > 0, Z and eta discrete Gaussian, one eta for all counters: the least that hides
        k counters m steps apart, each of which moves up to k counters by 1 in one direction (Lemma 17).
    Threshold: published iff the noisy count is at least it, before rounding.
    Error: f - n/(k+1) <= c <= f with n the length of all streams together, plus the noise, of a standard deviation of
        about (sqrt(k)+1)/2 times that of one counter's.
    Argument: [LT] Lemma 17, Corollary 18, and docs/privacy/central.md.
    """

    name: ClassVar[str] = "Gaussian release of merged Misra-Gries sketches"
    reference: ClassVar[str] = "[LT] section 7, Corollary 18; correlated noise: docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)
    takes_merged: ClassVar[bool] = True

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    stream_length: int | None = None

    @property
    def _steps(self) -> int:
        return self.most_events
