"""What every central mechanism shares."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit
from discreet.privacy.error_model import ErrorModel
from discreet.privacy.histogram import Counts, Histogram
from discreet.summaries import RawCounts, Summary

__all__ = ["Mechanism", "approximate"]


def approximate(budget: Budget, mechanism: str) -> tuple[float, float]:
    """(epsilon, delta) of a budget, for a mechanism that needs both to be positive."""
    if budget.epsilon is None:
        raise ParameterError(f"{mechanism} takes a budget of epsilon and delta, not {budget}")
    if budget.delta == 0.0:
        raise ParameterError(f"{mechanism} needs delta > 0: it hides rare items behind a threshold; got {budget}")
    return budget.epsilon, budget.delta


class Mechanism(abc.ABC):
    """A release: frozen, checked when made, and pure apart from its random source.

    Subclasses are frozen dataclasses with at least `budget` and `unit`. `guarantee`, `threshold` and
    `error_bound` need no data. Calling one with a summary draws the noise and returns a `Histogram`; it charges no
    ledger, which is what `discreet.release` is for.
    """

    name: ClassVar[str]
    reference: ClassVar[str]
    accepts: ClassVar[tuple[type[Summary], ...]]
    takes_merged: ClassVar[bool] = False

    budget: Budget
    unit: Unit

    @property
    @abc.abstractmethod
    def threshold(self) -> int | float:
        """The cut that a noisy count must reach to be published."""

    @property
    @abc.abstractmethod
    def error_model(self) -> ErrorModel:
        """How far a published count may lie from the truth."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, in plain words."""
        return ()

    @property
    def guarantee(self) -> Guarantee:
        """What a release by this mechanism promises."""
        return Guarantee(
            unit=self.unit,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rho=self.budget.rho,
            mechanism=self.name,
            reference=self.reference,
            assumptions=self.assumptions,
        )

    def error_bound(self, beta: float) -> float:
        """With probability 1 - beta the noise moves no count by more than this (the summary's error comes on top)."""
        return self.error_model.noise.bound_in_counts(beta)

    def check(self, summary: Summary) -> None:
        """Raise `IncompatibleSummaryError` for a summary that the proof does not cover."""
        if not isinstance(summary, self.accepts):
            allowed = " or ".join(kind.__name__ for kind in self.accepts)
            raise IncompatibleSummaryError(f"{self.name} takes {allowed}, not {type(summary).__name__}")
        if summary.was_merged and not self.takes_merged:
            raise IncompatibleSummaryError(
                f"{self.name} is proved for a summary of one stream; this one was merged with another"
            )

    def __call__(self, summary: Any, source: RandomSource | None = None) -> Histogram:
        """Draw the noise and publish. `source` is for tests and audits: a seeded one makes the release not private."""
        self.check(summary)
        return self._publish(summary, system_source() if source is None else source)

    @abc.abstractmethod
    def _publish(self, summary: Any, source: RandomSource) -> Histogram: ...

    def _histogram(
        self,
        raw: RawCounts,
        noisy: Counts,
        keep: np.ndarray[Any, np.dtype[np.bool_]],
        source: RandomSource,
        **more: Any,
    ) -> Histogram:
        """The published part of the noisy counts."""

        guarantee = dataclasses.replace(self.guarantee, seeded=source.seeded)
        return Histogram(
            raw.items.filter(np.asarray(keep)),
            noisy[keep],
            guarantee,
            self.error_model,
            threshold=self.threshold,
            **more,
        )


def require_event(unit: Unit, mechanism: str) -> None:
    """Refuse any unit but a single event."""
    if not isinstance(unit, Event):
        raise ParameterError(f"{mechanism} protects dc.Event(); got {type(unit).__name__}")
