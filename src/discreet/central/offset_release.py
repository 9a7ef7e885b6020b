"""The offset release of Misra-Gries: the default."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from discreet.central._base import Mechanism, approximate
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.calibration import offset_threshold
from discreet.privacy.checks import whole_number
from discreet.privacy.error_model import ErrorModel, Noise
from discreet.privacy.histogram import Histogram
from discreet.summaries import MisraGries, Summary

__all__ = ["OffsetRelease"]


@dataclass(frozen=True)
class OffsetRelease(Mechanism):
    """One discrete Laplace noise on every counter and one on the number of decrements.

    Unit: one event added or removed, or up to m events of a user (`User(m)`, by group privacy).
    Guarantee: (epsilon, delta), for every stream and every capacity.
    Noise: with alpha the decrements of Algorithm 1 of [LT], publish a0 = alpha + Z_0 and v_x = c_x + alpha + Z_x, all
        Z discrete Laplace of scale m/epsilon. Neighbouring states move (c + alpha, alpha) by 1 in l1 on common keys.
    Threshold: x is published iff v_x - a0 >= 1 + t; t is the smallest integer whose exact delta, the chance that a key
        only one of the two states holds is published, is at most delta.
    Error: v_x is within the noise of the SpaceSaving estimate, f <= c + alpha <= f + n/(k+1).
    Argument: docs/privacy/offset-release.md.
    """

    name: ClassVar[str] = "offset release of Misra-Gries"
    reference: ClassVar[str] = "this package, docs/privacy/offset-release.md; states of [LT] Lemma 8"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)

    def __post_init__(self) -> None:
        approximate(self.budget, self.name)
        whole_number("capacity", self.capacity)
        if not isinstance(self.unit, (Event, User)):
            raise ParameterError(f"{self.name} protects dc.Event() or dc.User(m); got {type(self.unit).__name__}")

    @property
    def _items(self) -> int:
        return self.unit.max_items if isinstance(self.unit, User) else 1

    @property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noises: m/epsilon, exactly."""
        epsilon, _ = approximate(self.budget, self.name)
        return Fraction(self._items) / Fraction(epsilon)

    @property
    def threshold(self) -> int:
        epsilon, delta = approximate(self.budget, self.name)
        return 1 + offset_threshold(epsilon, delta, max_items=self._items)

    @property
    def error_model(self) -> ErrorModel:
        return ErrorModel(Noise("laplace", self.scale, self.capacity), offset_noise=Noise("laplace", self.scale))

    def check(self, summary: Summary) -> None:
        super().check(summary)
        assert isinstance(summary, MisraGries)
        if summary.capacity != self.capacity:
            raise ParameterError(f"made for capacity {self.capacity}, the summary has {summary.capacity}")

    def _publish(self, summary: MisraGries, source: RandomSource) -> Histogram:
        raw = summary.not_private_counts()
        alpha = summary.not_private_offset
        a0 = alpha + source.discrete_laplace(self.scale)
        v = raw.counts + alpha + source.discrete_laplace(self.scale, len(raw))
        return self._histogram(raw, v, v - a0 >= self.threshold, source, offset=a0)
