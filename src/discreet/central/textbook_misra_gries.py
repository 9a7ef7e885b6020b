"""Private Misra-Gries for sketches that drop the counters that reach zero."""

from __future__ import annotations

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
    per_event,
    positive,
    require_event_or_user,
)
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration import textbook_paper_threshold, textbook_threshold
from discreet.privacy.checks import whole_number
from discreet.privacy.error_model import ErrorModel, Noise
from discreet.privacy.histogram import Histogram
from discreet.summaries import MisraGries, Summary

__all__ = ["TextbookMisraGries"]


@dataclass(frozen=True)
class TextbookMisraGries(Mechanism):
    """One noise on every counter that is not zero, one more that all share, and a cut that hides k keys at once.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy).
    Guarantee: (epsilon, delta). It does not need the keys whose counters are zero, which textbook sketches drop: any
        Misra-Gries sketch of one stream has the same positive counters.
    Noise: c_x + Z_0 + Z_x for c_x > 0, all discrete Laplace of scale m/epsilon.
    Threshold: published iff the noisy count is at least the threshold. "exact": 1 + t with the smallest t for which
        P[some Z_i + Z_0 >= t, i = 1..k] is at most delta. "paper": 1 + 2 ln((k+1)/(2 delta))/epsilon, used only
        where it is at least the exact one.
    Error: f - n/(k+1) <= c <= f, plus two noises.
    Argument: up to k keys of count 1 may be in one sketch only; otherwise [LT] Lemma 9. docs/privacy/central.md.
    """

    name: ClassVar[str] = "private Misra-Gries, textbook sketch"
    reference: ClassVar[str] = "[LT] section 5.1"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    calibration: str = "exact"
    stream_length: int | str | None = None

    def __post_init__(self) -> None:
        whole_number("capacity", self.capacity)
        require_event_or_user(self.unit, self.name)
        check_length(self.stream_length)
        if self.calibration not in ("exact", "paper"):
            raise ParameterError(f"calibration must be 'exact' or 'paper', not {self.calibration!r}")
        if self.threshold < textbook_threshold(*self._per_event(), self.capacity):
            raise ParameterError(
                f"the paper's threshold is too small for integer noise at {self.budget}: use calibration='exact'"
            )

    def _per_event(self) -> tuple[float, float]:
        return per_event(*approximate(self.budget, self.name), items_of(self.unit))

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noises: m/epsilon, exactly."""
        return laplace_scale(approximate(self.budget, self.name)[0], items_of(self.unit))

    @property
    def threshold(self) -> int:
        rule = textbook_threshold if self.calibration == "exact" else textbook_paper_threshold
        return rule(*self._per_event(), self.capacity)

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
        raw = positive(summary.not_private_counts())
        noisy = raw.counts + source.discrete_laplace(self.scale) + source.discrete_laplace(self.scale, len(raw))
        return self._histogram(raw, noisy, noisy >= self.threshold, source)
