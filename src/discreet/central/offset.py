"""The offset release of Misra-Gries: the default."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet._data_class import dataclass, field
from discreet.central._base import Approximate, Drawn
from discreet.noise import RandomSource
from discreet.noise.source import offset_draw
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.offset_cut import offset_threshold
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import MisraGries, Summary


@dataclass(frozen=True)
class Offset(Approximate):
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

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noises: m/epsilon, exactly."""
        return self.most_events / Fraction(self.spends[0])

    @cached_property
    def threshold(self) -> int:
        epsilon, delta = self.spends
        return 1 + offset_threshold(epsilon, delta, max_items=self.most_events)

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(Noise("laplace", self.scale, self.capacity), offset_noise=Noise("laplace", self.scale))

    def draw(self, summary: MisraGries, source: RandomSource) -> Drawn:
        raw = summary.not_private_counts()
        a0, v, kept = offset_draw(raw.held_counts, summary.not_private_offset, self.scale, self.threshold, source)
        return Drawn(raw, v, kept, a0)
