"""Releases of integer entries of known sensitivities: behind a threshold, or over a known universe."""

from __future__ import annotations

import abc
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from discreet._data_class import dataclass, field
from discreet.central._base import Drawn, Mechanism, lost_by_misra_gries
from discreet.errors import ParameterError
from discreet.events.universe import Universe
from discreet.noise import RandomSource
from discreet.noise.places import noisy_places
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.tails import log_any_shown, smallest_shift
from discreet.privacy.calibration.zcdp import zcdp_sigma
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.privacy.rounding import SAFETY
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import MisraGries, RawCounts


def reduced_entries(summary: MisraGries) -> RawCounts:
    """Algorithm 3 of [LT] in units of 1/(k+1): max(0, (k+1) c_x - sum c), where it is positive.

    Cut at 2^61, which shortens distances and keeps the arithmetic in 64 bits.
    """
    raw = summary.not_private_counts()
    k, total = summary.capacity, sum(raw.counts.tolist())
    if (k + 1) * total < 2**61:
        y = np.maximum((k + 1) * raw.counts - total, 0)
    else:
        y = np.array([min(max((k + 1) * c - total, 0), 2**61) for c in raw.counts.tolist()], np.int64)
    kept = y > 0
    return RawCounts(raw.items.filter(kept), y[kept])


@dataclass(frozen=True)
class NoisyEntries(Mechanism):
    """What the releases of entries share.

    Args:
        universe: The items that can occur, known without the data: a range or a list. With it the release is pure
            epsilon-DP, or rho-zCDP: every item of the universe gets noise, Laplace for epsilon and Gaussian for rho,
            and the `capacity` largest of those at or above a public cut are published. Without it the release is
            (epsilon, delta)-DP behind a threshold.
        spurious: With a universe, the probability that some item that does not occur is published.
        stream_length: The length of the stream where it is public; it makes the upper bounds finite.
    """

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    universe: Any = None
    spurious: float = 0.01
    stream_length: int | None = None

    def __post_init__(self) -> None:
        whole_number("capacity", self.capacity)
        _ = self.most_events
        self._check_length()
        probability("spurious", self.spurious)
        if self.universe is not None and not isinstance(self.universe, Universe):
            object.__setattr__(self, "universe", Universe(self.universe))
        if self.universe is None and (self.budget.is_pure or self.budget.is_zcdp):
            raise ParameterError(f"{self.name} needs delta > 0 or a universe; {self.budget}")
        _ = self.scale

    def _epsilon(self) -> float:
        if self.universe is not None:
            return self.budget.pure(self.name)
        return self.spends[0]

    @property
    @abc.abstractmethod
    def sensitivity(self) -> int:
        """The l1-sensitivity of the entries, in units of `step`."""

    @property
    @abc.abstractmethod
    def squared_sensitivity(self) -> int:
        """The square of their l2-sensitivity, in units of `step` squared."""

    @property
    def law(self) -> str:
        """The noise: "laplace", or "gaussian" for a budget of rho."""
        return "gaussian" if self.budget.rho is not None else "laplace"

    @property
    def step(self) -> Fraction:
        """What one unit of an entry is in counts."""
        return Fraction(1)

    @property
    def most_entries(self) -> int:
        """How many entries can be positive."""
        return self.capacity

    @abc.abstractmethod
    def entries(self, summary: Any) -> RawCounts:
        """The entries of a summary, in units of `step`. NOT private: what gets the noise."""

    @abc.abstractmethod
    def _hidden_cut(self) -> int:
        """The threshold of the (epsilon, delta) release, in units of `step`."""

    def before_noise(self, entries: RawCounts, source: RandomSource) -> RawCounts:
        """What is done to entries behind a threshold before they get noise; it may be random."""
        return entries

    @cached_property
    def scale(self) -> Fraction:
        """In units of `step`, the scale of discrete Laplace noise, sensitivity/epsilon exactly.

        Or the sigma of discrete Gaussian noise, sigma^2 = squared_sensitivity/(2 rho): at rho = epsilon^2/2 about eight
        times less variance than the Laplace noise that meets it.
        """
        if self.budget.rho is not None:
            return zcdp_sigma(self.squared_sensitivity, self.budget.rho)
        return self.sensitivity / Fraction(self._epsilon())

    @property
    def cut(self) -> int:
        """The threshold in units of `step`."""
        if self.universe is None:
            return self._hidden_cut()
        if self.law == "gaussian":
            # The smallest that, with probability 1 - spurious, no zero entry reaches.
            return int(Noise("gaussian", self.scale, self.universe.size).bound(self.spurious, tails=1)) + 1
        return universe_cut(self._epsilon(), self.sensitivity, self.universe.size, self.spurious)

    @cached_property
    def threshold(self) -> int | float:
        cut = self.cut * self.step
        return int(cut) if cut.denominator == 1 else float(cut)

    @property
    def _raised(self) -> Fraction:
        """By how much an entry may be raised before noise, in counts."""
        return Fraction(0)

    @cached_property
    def error_model(self) -> ErrorModel:
        rounding = 0.0 if self.step == 1 else 0.5
        known = self.universe is not None
        return ErrorModel(
            Noise(self.law, self.scale, self.universe.size if known else self.most_entries, self.step),
            summary_below=lost_by_misra_gries(self.stream_length, self.capacity) + rounding,
            summary_above=rounding + float(self._raised),
            lowest=0 if known else 1,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        over = () if self.universe is None else ("the universe is public; items that did not occur may be published",)
        return (*super().assumptions, *over)

    def _noisy_universe(self, entries: RawCounts, cut: int, source: RandomSource) -> RawCounts:
        """Every item of the universe whose value plus noise is at least the cut, the largest first.

        Items without an entry have value 0; entries outside the universe are left out. Distributed as if noise were
        drawn for every item.
        """
        positions = self.universe.positions(entries.items)
        inside = positions >= 0
        found, noisy = noisy_places(
            source, self.universe.size, positions[inside], entries.counts[inside], self.scale, cut, self.law
        )
        order = np.lexsort((found, -noisy))
        return RawCounts(self.universe.take(found[order]), noisy[order])

    def draw(self, summary: Any, source: RandomSource) -> Drawn:
        """The release of a summary, or of entries that were made of it elsewhere."""
        entries, cut = summary if isinstance(summary, RawCounts) else self.entries(summary), self.cut
        if self.universe is not None:
            entries = self._noisy_universe(entries, cut, source)
            noisy, keep = entries.counts, np.arange(len(entries)) < self.most_entries
        else:
            entries = self.before_noise(entries, source)
            noisy = entries.counts + source.discrete_laplace(self.scale, len(entries))
            keep = noisy >= cut
        # To whole counts: floor(v/u + 1/2), a function of what is already private.
        u = self.step.denominator
        return Drawn(entries, noisy if u == 1 else (2 * noisy + u) // (2 * u), keep)


@lru_cache(maxsize=1024, typed=True)
def universe_cut(epsilon: float, sensitivity: int, universe: int, beta: float) -> int:
    """The smallest cut that, with probability 1 - beta, none of `universe` zero entries passes.

    For releases under pure epsilon-DP over a known universe. The cut is post-processing: privacy does not rest on it.
    1 - (1 - P[Z >= cut])^d <= beta with noise of scale sensitivity/epsilon.
    """
    rate = positive_number("epsilon", epsilon) / whole_number("sensitivity", sensitivity)
    d, beta = whole_number("universe", universe), probability("beta", beta)
    return smallest_shift(lambda t: log_any_shown(rate, [t], d) + SAFETY, beta)
