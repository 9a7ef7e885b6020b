"""Private Misra-Gries as Lebeda and Tetek publish it; `SharedNoise` is what both releases of Algorithm 2 share."""

from __future__ import annotations

import abc
import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet._data_class import dataclass, field
from discreet.central._base import Approximate, Drawn, lost_by_misra_gries
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.offset_cut import offset_threshold
from discreet.privacy.checks import positive_number, probability
from discreet.privacy.rounding import safe_ceil
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import MisraGries, RawCounts, Summary


@dataclass(frozen=True)
class SharedNoise(Approximate):
    """Publish c_x + Z_0 + Z_x where it is at least the threshold."""

    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)
    calibrations: ClassVar[tuple[str, ...]]

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    calibration: str = "exact"
    stream_length: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        return self.most_events / Fraction(self.spends[0])

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(
            Noise("laplace", self.scale, self.capacity),
            shared=Noise("laplace", self.scale),
            summary_below=lost_by_misra_gries(self.stream_length, self.capacity),
        )

    def _counts(self, summary: MisraGries) -> RawCounts:
        """The counters that get noise."""
        return summary.not_private_counts()

    def draw(self, summary: MisraGries, source: RandomSource) -> Drawn:
        raw = self._counts(summary)
        noisy = raw.counts + source.discrete_laplace(self.scale) + source.discrete_laplace(self.scale, len(raw))
        return Drawn(raw, noisy, noisy >= self.threshold)


@dataclass(frozen=True)
class PrivateMisraGries(SharedNoise):
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
    calibrations: ClassVar[tuple[str, ...]] = ("exact", "paper", "paper-geometric")

    def _exact_threshold(self) -> int:
        return pmg_threshold(*self.spends, max_items=self.most_events)

    @cached_property
    def threshold(self) -> int:
        if self.calibration == "exact":
            return self._exact_threshold()
        epsilon, delta = self.spends
        m = self.most_events
        printed = pmg_paper_threshold if self.calibration == "paper" else pmg_geometric_threshold
        return printed(epsilon, delta) if m == 1 else printed(epsilon / m, delta / (m * math.exp(epsilon)))


def pmg_threshold(epsilon: float, delta: float, *, max_items: int = 1) -> int:
    """Algorithm 2 with discrete Laplace noise, exact: the smallest threshold whose delta is at most `delta`.

    Given the shared noise the six kinds of neighbouring states behave as in the offset release, so the threshold is
    that release's cut. (The offset release publishes more at the same price.)
    """
    return 1 + offset_threshold(epsilon, delta, max_items=max_items)


def pmg_paper_threshold(epsilon: float, delta: float) -> int:
    """Algorithm 2 of [LT23] as printed: 1 + 2 ln(3/delta)/epsilon, rounded up."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    return safe_ceil(1.0 + 2.0 * (math.log(3.0) - math.log(delta)) / epsilon)


def pmg_geometric_threshold(epsilon: float, delta: float) -> int:
    """Section 5.2 of [LT23], for geometric noise: 1 + 2 ceil( ln(6 e^eps / ((e^eps + 1) delta)) / eps )."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    # e^eps / (e^eps + 1) = 1 / (1 + q)
    return 1 + 2 * safe_ceil((math.log(6.0) - math.log1p(math.exp(-epsilon)) - math.log(delta)) / epsilon)
