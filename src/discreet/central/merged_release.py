"""The Gaussian release of merged Misra-Gries sketches, for a trusted aggregator."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from discreet.central._base import (
    Mechanism,
    approximate,
    check_length,
    items_of,
    length_assumptions,
    lost_by_misra_gries,
    per_event,
    positive,
    require_event_or_user,
)
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration import gshm_calibration
from discreet.privacy.checks import whole_number
from discreet.privacy.error_model import ErrorModel, Noise
from discreet.privacy.histogram import Histogram
from discreet.summaries import MisraGries, Summary

__all__ = ["MergedRelease"]


@dataclass(frozen=True)
class MergedRelease(Mechanism):
    """Gaussian noise on the counters of merged sketches, and a cut; the noise does not grow with their number.

    Unit: one event of one of the streams, or up to m events of a user in any of them (`User(m)`, by group privacy).
    Guarantee: (epsilon, delta), for every number and order of merges, and for a sketch that was not merged.
    Noise: c_x + Z_x for c_x > 0, Z discrete Gaussian of sigma. Merging (add, subtract the (k+1)-th largest, drop what
        is not positive) keeps the structure of Lemma 17: up to k counters differ, each by 1, all in one direction.
    Threshold: published iff the noisy count is at least it. (sigma, threshold) is the pair with the smallest threshold
        that the exact form of Theorem 23 allows for l = k.
    Error: f - n/(k+1) <= c <= f with n the length of all streams together, plus one noise of about sqrt(k)/epsilon.
    Argument: [LT] Lemma 17, Corollary 18; an update after a merge is a merge with a sketch of one event.
        docs/privacy/central.md.
    """

    name: ClassVar[str] = "Gaussian release of merged Misra-Gries sketches"
    reference: ClassVar[str] = "[LT] section 7, Corollary 18, Theorem 23"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)
    takes_merged: ClassVar[bool] = True

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    stream_length: int | None = None

    def __post_init__(self) -> None:
        self._per_event()
        whole_number("capacity", self.capacity)
        check_length(self.stream_length)

    def _per_event(self) -> tuple[float, float]:
        require_event_or_user(self.unit, self.name)
        return per_event(*approximate(self.budget, self.name), items_of(self.unit))

    @property
    def scale(self) -> Fraction:
        """Sigma of the discrete Gaussian noise."""
        return Fraction(gshm_calibration(*self._per_event(), self.capacity)[0])

    @property
    def threshold(self) -> int:
        return gshm_calibration(*self._per_event(), self.capacity)[1]

    @property
    def error_model(self) -> ErrorModel:
        return ErrorModel(
            Noise("gaussian", self.scale, self.capacity),
            summary_below=lost_by_misra_gries(self.stream_length, self.capacity),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return length_assumptions(self.stream_length)

    def _publish(self, summary: MisraGries, source: RandomSource) -> Histogram:
        raw = positive(summary.not_private_counts())
        noisy = raw.counts + source.discrete_gaussian(self.scale, len(raw))
        return self._histogram(raw, noisy, noisy >= self.threshold, source)
