"""Private SpaceSaving, with a cut that does not depend on the private length."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from discreet.central._base import (
    Drawn,
    Mechanism,
    check_length,
    items_of,
    length_assumptions,
    per_event,
    require_event_or_user,
)
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration import (
    space_saving_noisy_threshold,
    space_saving_paper_margin,
    space_saving_threshold,
)
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import SpaceSaving, Summary

__all__ = ["PrivateSpaceSaving"]


@dataclass(frozen=True)
class PrivateSpaceSaving(Mechanism):
    """One noise on every counter and a cut above what the smallest counter can be.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy).
    Guarantee: (epsilon, delta). Algorithm 3 takes its cut from |X|. If that counts events it is private: two neighbours
        then have different cuts and k counters near them. Here `stream_length` says where the length comes from:
        a number: it is public, at least the number of events of both neighbours;
        "noisy": `length_share` of epsilon is spent on n + Z_n, which is published through the offset.
    Noise: C_x + Z_x, discrete Laplace of scale m/epsilon (of what is left of epsilon, with a noisy length).
    Threshold: public n: published iff C_x + Z_x >= floor((n-1)/k) + 1 + t; noisy: with offset = floor((n + Z_n)/k),
        iff C_x + Z_x - offset >= 1 + t. t is the smallest whose exact delta (states S1 to S4 of [SS], both
        directions, the noise of the length included) is at most delta. calibration="paper": more than
        n/k + 1 + ln(2/delta)/epsilon, public n only; for integer noise its delta is at most delta/2. (Of the two terms
        of the printed cut the one that privacy needs, k its k~; the other, |X|/k - gamma, only lists less.)
    Error: f <= C <= f + n/k, plus one noise.
    Argument: privacy/calibration/space_saving.py and docs/privacy/central.md.
    """

    name: ClassVar[str] = "private SpaceSaving"
    reference: ClassVar[str] = "[SS] Algorithm 3, Lemma 4, corrected; docs/privacy/central.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (SpaceSaving,)

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    stream_length: int | str = field(kw_only=True)
    length_share: float = field(default=0.1, kw_only=True)
    calibration: str = field(default="exact", kw_only=True)

    def __post_init__(self) -> None:
        self.budget.approximate(self.name)
        whole_number("capacity", self.capacity)
        require_event_or_user(self.unit, self.name)
        if self.stream_length is None:
            raise ParameterError(f"{self.name} needs stream_length: a public whole number, or 'noisy'")
        if self.stream_length != "noisy":
            object.__setattr__(self, "stream_length", check_length(self.stream_length))
        if not 0.0 < self.length_share < 1.0:
            raise ParameterError(f"length_share must be greater than 0 and less than 1, not {self.length_share!r}")
        if self.calibration not in ("exact", "paper"):
            raise ParameterError(f"calibration must be 'exact' or 'paper', not {self.calibration!r}")
        if self.calibration == "paper" and self.stream_length == "noisy":
            raise ParameterError("the paper's threshold is for a public length: use calibration='exact'")

    @property
    def _epsilons(self) -> tuple[Fraction, Fraction]:
        """What the counters and the length spend; they sum to epsilon exactly."""
        epsilon = Fraction(self.budget.approximate(self.name)[0])
        length = epsilon * Fraction(self.length_share) if self.stream_length == "noisy" else Fraction(0)
        return epsilon - length, length

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise on the counters, exactly."""
        return items_of(self.unit) / self._epsilons[0]

    @cached_property
    def threshold(self) -> int:
        """The cut; relative to the published offset when the length is noisy."""
        epsilon, delta = self.budget.approximate(self.name)
        m, k = items_of(self.unit), self.capacity
        if self.stream_length == "noisy":
            counters, length = (float(part) for part in self._epsilons)
            return 1 + space_saving_noisy_threshold(counters, delta, length, k, max_items=m)
        assert isinstance(self.stream_length, int)
        smallest = max(self.stream_length - 1, 0) // k
        if self.calibration == "paper":
            margin = space_saving_paper_margin(*per_event(epsilon, delta, m))
            # The smallest integer greater than n/k + 1 + gamma.
            return math.floor(Fraction(self.stream_length, k) + 1 + Fraction(margin)) + 1
        return smallest + 1 + space_saving_threshold(epsilon, delta, max_items=m)

    @cached_property
    def error_model(self) -> ErrorModel:
        noise = Noise("laplace", self.scale, self.capacity)
        if self.stream_length == "noisy":
            # n/k <= offset + 1 + |Z_n|/k
            length = Noise("laplace", self._length_scale, step=Fraction(1, self.capacity))
            return ErrorModel(noise, offset_noise=length, summary_above=1.0)
        assert self._public_length is not None
        return ErrorModel(noise, summary_above=float(self._public_length // self.capacity))

    @property
    def _length_scale(self) -> Fraction:
        return items_of(self.unit) / self._epsilons[1]

    @property
    def assumptions(self) -> tuple[str, ...]:
        if self.stream_length == "noisy":
            return (f"{self.length_share:g} of epsilon is spent on the length of the stream",)
        return length_assumptions(self._public_length)

    @property
    def _public_length(self) -> int | None:
        return self.stream_length if isinstance(self.stream_length, int) else None

    def check(self, summary: Any) -> None:
        super().check(summary)
        if isinstance(self.stream_length, int) and summary.total > self.stream_length:
            raise IncompatibleSummaryError("the stream is longer than the public stream_length")

    def draw(self, summary: SpaceSaving, source: RandomSource) -> Drawn:
        raw, offset = summary.not_private_counts(), None
        if self.stream_length == "noisy":
            offset = (summary.total + source.discrete_laplace(self._length_scale)) // self.capacity
        noisy = raw.counts + source.discrete_laplace(self.scale, len(raw))
        return Drawn(raw, noisy, noisy - (offset or 0) >= self.threshold, offset)
