"""The stability histogram of exact counts: what every sketch is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet.central._base import Drawn, Mechanism, items_of, laplace_scale, require_event_or_user
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration import gshm_calibration, stability_threshold
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import MOST_ITEMS, ErrorModel, Noise
from discreet.summaries import ExactCounts, Summary

__all__ = ["StabilityHistogram"]


@dataclass(frozen=True)
class StabilityHistogram(Mechanism):
    """Noise on the count of every item that occurs, and a cut that hides items only one unit has.

    Unit: one event, or up to m events of a user (`User(m)`).
    Guarantee: (epsilon, delta).
    Noise: discrete Laplace of scale m/epsilon, or discrete Gaussian ("gaussian") of the sigma that goes with the
        smallest threshold by the exact form of Theorem 23 of [LT]; a user's items must then be `distinct`.
    Threshold: x is published iff f_x + Z_x >= 1 + t, t the smallest with the exact delta at most delta. With Laplace
        noise delta is the chance that an item only the larger stream has is published: m items once each, or (unless
        `distinct`) one item m times, whichever is larger.
    Error: the noise alone; exact counts lose nothing.
    Argument: the counts of common items move by m in l1 (each by 1 if distinct); docs/privacy/central.md.

    Args:
        noise: "laplace" or "gaussian".
        distinct: Whether the items of a user are all different. A claim about the data that the guarantee repeats.
        max_distinct: A public bound of how many different items occur. Only the width of `bounds` rests on it. Without
            it they are for the items that passed, and a lower end that is not above the cut is 1: an item that
            occurred less often may have passed for its noise.
    """

    name: ClassVar[str] = "stability histogram of exact counts"
    reference: ClassVar[str] = "Korolova et al. (2009), [LT] Theorem 23; docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (ExactCounts,)
    takes_merged: ClassVar[bool] = True

    budget: Budget
    unit: Unit = field(default_factory=Event)
    noise: str = "laplace"
    distinct: bool = False
    max_distinct: int | None = None

    def __post_init__(self) -> None:
        self.budget.approximate(self.name)
        require_event_or_user(self.unit, self.name)
        if self.max_distinct is not None:
            whole_number("max_distinct", self.max_distinct)
        if self.noise not in ("laplace", "gaussian"):
            raise ParameterError(f"noise must be 'laplace' or 'gaussian', not {self.noise!r}")
        if self.noise == "gaussian" and not self.distinct and items_of(self.unit) > 1:
            raise ParameterError("Gaussian noise needs distinct=True for users: repeated items move one count by m")

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        epsilon, delta = self.budget.approximate(self.name)
        if self.noise == "gaussian":
            return Fraction(gshm_calibration(epsilon, delta, items_of(self.unit))[0])
        return laplace_scale(epsilon, items_of(self.unit))

    @cached_property
    def threshold(self) -> int:
        epsilon, delta = self.budget.approximate(self.name)
        items = items_of(self.unit)
        if self.noise == "gaussian":
            return gshm_calibration(epsilon, delta, items)[1]
        return 1 + stability_threshold(epsilon, delta, max_items=items, distinct=self.distinct)

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(Noise(self.noise, self.scale, self.max_distinct or MOST_ITEMS))

    def _error_model_of(self, published: int) -> ErrorModel:
        if self.max_distinct is not None:
            return self.error_model
        return ErrorModel(Noise(self.noise, self.scale, max(published, 1)), of_published=True)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("the items of a user are all different",) if self.distinct and items_of(self.unit) > 1 else ()

    def draw(self, summary: ExactCounts, source: RandomSource) -> Drawn:
        raw = summary.not_private_counts()
        draw = source.discrete_gaussian if self.noise == "gaussian" else source.discrete_laplace
        noisy = raw.counts + draw(self.scale, len(raw))
        return Drawn(raw, noisy, noisy >= self.threshold)
