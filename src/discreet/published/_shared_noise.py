"""What the two releases of Algorithm 2 of [LT] share: one noise a counter, one more that all counters share, a cut."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet.central._base import (
    Drawn,
    Mechanism,
    check_length,
    items_of,
    length_assumptions,
    lost_by_misra_gries,
)
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import MisraGries, RawCounts, Summary


@dataclass(frozen=True)
class SharedNoise(Mechanism):
    """Publish c_x + Z_0 + Z_x where it is at least the threshold."""

    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)
    calibrations: ClassVar[tuple[str, ...]]

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    calibration: str = "exact"
    stream_length: int | None = None

    def __post_init__(self) -> None:
        self._check_spending("capacity")
        check_length(self.stream_length)
        if self.calibration not in self.calibrations:
            *others, last = (repr(name) for name in self.calibrations)
            raise ParameterError(f"calibration must be {', '.join(others)} or {last}, not {self.calibration!r}")
        if self.threshold < self._exact_threshold():
            raise ParameterError(
                f"the paper's threshold is too small for integer noise at {self.budget}: use calibration='exact'"
            )

    @abc.abstractmethod
    def _exact_threshold(self) -> int:
        """The smallest threshold that is private; the papers' are used only where they are not below it."""

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noises: m/epsilon, exactly."""
        return items_of(self.unit) / Fraction(self.spends[0])

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(
            Noise("laplace", self.scale, self.capacity),
            shared=Noise("laplace", self.scale),
            summary_below=lost_by_misra_gries(self.stream_length, self.capacity),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return length_assumptions(self.stream_length)

    def _counts(self, summary: MisraGries) -> RawCounts:
        """The counters that get noise."""
        return summary.not_private_counts()

    def draw(self, summary: MisraGries, source: RandomSource) -> Drawn:
        raw = self._counts(summary)
        noisy = raw.counts + source.discrete_laplace(self.scale) + source.discrete_laplace(self.scale, len(raw))
        return Drawn(raw, noisy, noisy >= self.threshold)
