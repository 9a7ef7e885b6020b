"""The count of every item of a public list, also of those that did not occur."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet._data_class import dataclass, field, replace
from discreet.central._additive import A_PERSON, additive_cost, additive_noise
from discreet.central._base import Drawn, Mechanism
from discreet.errors import ParameterError
from discreet.events.universe import Universe
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Release
from discreet.summaries import ExactCounts, RawCounts, Summary

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge
    from discreet.summaries.people import Counts

MOST_LISTED = 1 << 24
"""This many items are published at most: every one of them gets noise and a row."""


@dataclass(frozen=True)
class UniverseHistogram(Mechanism):
    """Noise on the exact count of every item of a public list; all of them are published.

    Unit: one event, or a person with all of their rows (`User()`): in at most m counts (1 for events), by 1 each.
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: discrete Laplace of scale m/epsilon, or discrete Gaussian with sigma^2 = m/(2 rho) (`additive_noise`).
    Threshold: none: which items are listed is public, and each of them has noise, also at 0.
    Error: the noise alone, at most b on all d items with probability 1 - beta: b about m ln(d/beta)/epsilon. Counts may
        be negative: that keeps sums of them unbiased.
    Argument: docs/privacy/counting.md. Items outside the list are left out, which is decided for each row by itself.

    Args:
        universe: The public list (or range, or `Universe`).
        max_items: For `User()`: m. The counts must have been made of at most m different listed items a person, as
        `discreet.histogram` makes them.
    """

    name: ClassVar[str] = "histogram over a public list"
    reference: ClassVar[str] = "docs/privacy/counting.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (ExactCounts,)
    takes_merged: ClassVar[bool] = True
    _assumed_of_users = ()  # a person may have any number of rows

    budget: Budget
    universe: Any
    unit: Unit = field(default_factory=Event)
    max_items: int | None = None

    def __post_init__(self) -> None:
        as_budget(self.budget)
        object.__setattr__(self, "universe", Universe.of(self.universe))
        if self.universe.size is None or self.universe.size > MOST_LISTED:
            raise ParameterError(f"every item is listed, so the universe can have at most {MOST_LISTED:,} items")
        if not isinstance(self.unit, Event) and self.unit != User():
            raise ParameterError(f"a histogram over a list protects dc.Event() or dc.User(); got {self.unit!r}")
        if isinstance(self.unit, User) != (self.max_items is not None):
            raise ParameterError("max_items must be given for people, and only for people: it limits the items of each")
        if self.max_items is not None:
            whole_number("max_items", self.max_items)
        _ = self.noise

    @property
    def changes(self) -> int:
        """How many counts one unit moves, by 1 each."""
        return min(self.max_items or 1, int(self.universe.size))

    @cached_property
    def noise(self) -> Noise:
        """The noise on every count."""
        return additive_noise(self.budget, changes=self.changes, draws=self.universe.size)

    @property
    def cost(self) -> Charge | None:
        return additive_cost(self.noise.law, self.scale, changes=self.changes)

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        return self.noise.scale

    @property
    def threshold(self) -> int:
        """No count is held back."""
        return 0

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(replace(self.noise, scale=self.scale), lowest=0)

    @property
    def assumptions(self) -> tuple[str, ...]:
        listed = "the list of items is public; every item is published, whether it occurred or not"
        if self.max_items is None:
            return (listed,)
        return listed, f"of a person at most {self.max_items} different items of the list count, the first", A_PERSON

    def check(self, summary: Any) -> None:
        if not isinstance(summary, np.ndarray):  # the counts of all listed items
            super().check(summary)

    def counts(self, summary: ExactCounts | Counts) -> Counts:
        """The count of every listed item. NOT private: what gets the noise."""
        if isinstance(summary, np.ndarray):
            return summary
        raw = summary.not_private_counts()
        places = self.universe.positions(raw.items)
        counts = np.zeros(self.universe.size, np.int64)
        counts[places[places >= 0]] = raw.counts[places >= 0]
        return counts

    def draw(self, summary: ExactCounts | Counts, source: RandomSource) -> Drawn:
        counts = self.counts(summary)
        drawn = source.discrete_gaussian if self.noise.law == "gaussian" else source.discrete_laplace
        noisy = counts + drawn(self.scale, len(counts))
        listed = RawCounts(self.universe.take(np.arange(len(counts))), counts)
        return Drawn(listed, noisy, np.ones(len(counts), bool))

    def _publish(self, summary: ExactCounts | Counts, source: RandomSource) -> Release:
        drawn = self.draw(summary, source)
        return Release(
            drawn.raw.items,
            drawn.noisy,
            replace(self.guarantee, seeded=source.seeded),
            self.error_model,
            counted="events" if self.max_items is None else "people",
        )
