"""Private Misra-Gries as Lebeda and Tetek publish it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from discreet.central._base import (
    Mechanism,
    approximate,
    check_length,
    items_of,
    laplace_scale,
    length_assumptions,
    lost_by_misra_gries,
    require_event_or_user,
)
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration import pmg_geometric_threshold, pmg_paper_threshold, pmg_threshold
from discreet.privacy.checks import whole_number
from discreet.privacy.error_model import ErrorModel, Noise
from discreet.privacy.histogram import Histogram
from discreet.summaries import MisraGries, Summary

__all__ = ["PrivateMisraGries"]


@dataclass(frozen=True)
class PrivateMisraGries(Mechanism):
    """One noise on every counter, one more that all counters share.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy: Lemma 20).
    Guarantee: (epsilon, delta), for every stream and every capacity.
    Noise: c_x + Z_0 + Z_x, all discrete Laplace of scale m/epsilon (the "geometric mechanism" of section 5.2).
    Threshold: x is published iff its noisy count is at least the threshold.
        "exact": 1 + t with the smallest t whose exact delta is at most delta; given Z_0 the states of Lemma 8 behave
        as in the offset release, so it is that release's cut.
        "paper": 1 + 2 ln(3/delta)/epsilon, printed for continuous noise. For integer noise it is used only where it is
        at least the exact one, which makes it safe.
        "paper-geometric": 1 + 2 ceil(ln(6 e^eps/((e^eps + 1) delta))/epsilon), printed for this noise.
        For m events the printed ones are taken at (epsilon/m, delta/(m e^epsilon)).
    Error: f - n/(k+1) <= c <= f, plus two noises.
    Argument: [LT] Lemmas 8 to 12; docs/privacy/central.md. The offset release publishes more at the same price.
    """

    name: ClassVar[str] = "private Misra-Gries"
    reference: ClassVar[str] = "[LT] Algorithm 2, Theorem 14, section 5.2"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    calibration: str = "exact"
    stream_length: int | str | None = None

    def __post_init__(self) -> None:
        epsilon, delta = approximate(self.budget, self.name)
        whole_number("capacity", self.capacity)
        require_event_or_user(self.unit, self.name)
        check_length(self.stream_length)
        if self.calibration not in ("exact", "paper", "paper-geometric"):
            raise ParameterError(f"calibration must be 'exact', 'paper' or 'paper-geometric', not {self.calibration!r}")
        if self.threshold < pmg_threshold(epsilon, delta, max_items=items_of(self.unit)):
            raise ParameterError(
                f"the paper's threshold is too small for integer noise at {self.budget}: use calibration='exact'"
            )

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noises: m/epsilon, exactly."""
        return laplace_scale(approximate(self.budget, self.name)[0], items_of(self.unit))

    @property
    def threshold(self) -> int:
        epsilon, delta = approximate(self.budget, self.name)
        m = items_of(self.unit)
        if self.calibration == "exact":
            return pmg_threshold(epsilon, delta, max_items=m)
        printed = pmg_paper_threshold if self.calibration == "paper" else pmg_geometric_threshold
        return printed(epsilon, delta) if m == 1 else printed(epsilon / m, delta / (m * math.exp(epsilon)))

    @property
    def error_model(self) -> ErrorModel:
        return ErrorModel(
            Noise("laplace", self.scale, self.capacity),
            shared=Noise("laplace", self.scale),
            summary_below=lost_by_misra_gries(self.stream_length, self.capacity),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return length_assumptions(self.stream_length)

    def _publish(self, summary: MisraGries, source: RandomSource) -> Histogram:
        raw = summary.not_private_counts()
        noisy = raw.counts + source.discrete_laplace(self.scale) + source.discrete_laplace(self.scale, len(raw))
        return self._histogram(raw, noisy, noisy >= self.threshold, source)
