"""The Gaussian release of merged Misra-Gries sketches, for a trusted aggregator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from discreet.central._base import check_length, items_of
from discreet.central._common_noise import CommonNoise
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.checks import whole_number
from discreet.summaries import MisraGries, Summary


@dataclass(frozen=True)
class Merged(CommonNoise):
    """Gaussian noise, in part shared, on the counters of merged sketches, and a cut, however many they are.

    Unit: one event of one of the streams, or up to m events of a user in any of them (`User(m)`).
    Guarantee: (epsilon, delta), for every number and order of merges, and for a sketch that was not merged.
    Noise: c_x + (Z_x + eta)/2 for c_x > 0, Z and eta discrete Gaussian, one eta for all counters. Merging (add,
        subtract the (k+1)-th largest, drop what is not positive) keeps the structure of Lemma 17: up to k counters
        differ, each by 1, all in one direction. m events are m such steps.
    Threshold: published iff the noisy count is at least it, before rounding. The noise is the least that hides k
        counters m steps apart, the threshold the smallest for it.
    Error: f - n/(k+1) <= c <= f with n the length of all streams together, plus the noise, of a standard deviation of
        about (sqrt(k)+1)/2 times that of one counter's.
    Argument: [LT] Lemma 17, Corollary 18, and `privacy.calibration.correlated_noise`; an update after a merge is a
        merge with a sketch of one event. docs/privacy/central.md.
    """

    name: ClassVar[str] = "Gaussian release of merged Misra-Gries sketches"
    reference: ClassVar[str] = "[LT] section 7, Corollary 18; correlated noise: docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)
    takes_merged: ClassVar[bool] = True

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    stream_length: int | None = None

    def __post_init__(self) -> None:
        self._check_spending()
        whole_number("capacity", self.capacity)
        check_length(self.stream_length)

    @property
    def _steps(self) -> int:
        return items_of(self.unit)
