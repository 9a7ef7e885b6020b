"""What every central mechanism shares."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from discreet import _native
from discreet._later import np
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.events.values import published_type, taken
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import ErrorModel
from discreet.releases.release import Counts, Release
from discreet.summaries import ExactCounts, RawCounts, Summary

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge


def require_event_or_user(unit: Unit, mechanism: str) -> None:
    """Refuse any unit but an event or the events of a user."""
    if not isinstance(unit, (Event, User)):
        raise ParameterError(f"{mechanism} protects dc.Event() or dc.User(m); got {type(unit).__name__}")


def items_of(unit: Unit) -> int:
    """m: how many events one unit of privacy may have."""
    return unit.limit if isinstance(unit, User) else 1


def per_event(epsilon: float, delta: float, items: int) -> tuple[float, float]:
    """(epsilon, delta) for one event from which `items` events have the given one by group privacy. Rounded down.

    m steps of (e, d) are (m e, d (1 + exp(e) + ... + exp((m-1) e))): Lemma 19 of [LT] before its rounding of the sum
    up to m exp(m e).
    """
    if items == 1:
        return epsilon, delta
    step = math.nextafter(epsilon / items, 0.0)
    # The sum is (exp(m e) - 1)/(exp(e) - 1).
    log_factor = epsilon - step + math.log(-math.expm1(-epsilon)) - math.log(-math.expm1(-step))
    smaller = delta * math.exp(-log_factor) * (1.0 - 1e-12)
    if smaller == 0.0:
        raise ParameterError(f"delta={delta:g} is too small for users of {items} items at epsilon={epsilon:g}")
    return step, smaller


def length_assumptions(stream_length: int | None) -> tuple[str, ...]:
    """What a guarantee rests on when a length was given."""
    return () if stream_length is None else ("the length of the stream is public",)


def lost_by_misra_gries(stream_length: int | None, capacity: int) -> float:
    """The most a Misra-Gries counter can have lost, n/(k+1); infinite without a public length."""
    return math.inf if stream_length is None else float(stream_length // (capacity + 1))


class Drawn(NamedTuple):
    """What a mechanism publishes of a summary, before it is put in order and described: the noise is in it.

    Of `raw` only the items that are kept leave; the counts published are those of `noisy`. Numbers are in arrays of
    NumPy or in plain memory.
    """

    raw: RawCounts
    noisy: Counts | memoryview
    keep: np.ndarray[Any, np.dtype[np.bool_]] | memoryview[Any]
    offset: int | None = None
    shards: memoryview | None = None
    shard_offsets: Sequence[int] | None = None
    error_model: ErrorModel | None = None


class Mechanism(abc.ABC):
    """A release: frozen, checked when made, and pure apart from its random source.

    Subclasses are frozen dataclasses with at least `budget` and `unit`. `guarantee`, `threshold` and
    `error_bound` need no data. Calling one with a summary draws the noise and returns a `Release`; it charges no
    ledger, which is what `discreet.release` is for.

    Where a mechanism has `stream_length`, it is a public number: at least as many events as the stream has. It is never
    read from the data: neighbours differ in how many events were counted.
    """

    name: ClassVar[str]
    reference: ClassVar[str]
    accepts: ClassVar[tuple[type[Summary], ...]]
    noise_growth: ClassVar[float] = 0.0  # the noise of a counter grows with this power of their number
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

    @cached_property
    def spends(self) -> tuple[float, float]:
        """(epsilon, delta), both positive; ParameterError for a budget that has not both."""
        return self.budget.approximate(self.name)

    def _check_spending(self, *whole: str) -> None:
        """What most mechanisms ask of their parameters: epsilon and delta, whole numbers, events or users."""
        _ = self.spends
        for name in whole:
            whole_number(name, getattr(self, name))
        require_event_or_user(self.unit, self.name)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, in plain words."""
        return ()

    @property
    def hides(self) -> Unit:
        """The unit that an account adds up: the mechanism's, or `User()` where it bounds a person's part by itself."""
        return self.unit

    @property
    def cost(self) -> Charge | None:
        """The rho and delta that it has, for accounts that add up rhos; None: what any mechanism of its budget has."""
        return None

    @property
    def _assumed_of_users(self) -> tuple[str, ...]:
        """What nothing in a summary of rows can check: whose they are."""
        m = items_of(self.unit)
        return (f"no user has more than {m} of the rows that are counted",) if isinstance(self.unit, User) else ()

    @property
    def guarantee(self) -> Guarantee:
        """What a release by this mechanism promises."""
        return Guarantee.of(
            self.budget, self.unit, self.name, self.reference, assumptions=(*self.assumptions, *self._assumed_of_users)
        )

    def error_bound(self, beta: float) -> float:
        """With probability 1 - beta the noise moves no count by more than this (the summary's error comes on top)."""
        return self.error_model.noise_bound(beta)

    def empty_summary(self, max_key_bytes: int) -> Any:
        """The empty summary that it publishes once rows have filled it, for keys of at most this many bytes."""
        kind: Any = self.accepts[0]
        counters = (self.capacity,) if hasattr(self, "capacity") else ()  # of exact counts there are any number
        return kind(*counters, max_key_bytes=max_key_bytes)

    def check(self, summary: Any) -> None:
        """Raise `IncompatibleSummaryError` for a summary that the proof does not cover."""
        if not isinstance(summary, self.accepts):
            allowed = " or ".join(kind.__name__ for kind in self.accepts)
            raise IncompatibleSummaryError(f"{self.name} takes {allowed}, not {type(summary).__name__}")
        if summary.was_merged and not self.takes_merged:
            raise IncompatibleSummaryError(
                f"{self.name} is only proved for the summary of one stream; this one was merged"
            )
        made_for = getattr(self, "capacity", None)
        given = getattr(summary, "capacity", made_for)
        if made_for is not None and given != made_for:
            raise ParameterError(f"the mechanism was made for capacity {made_for}, but the summary has {given}")

    def __call__(self, summary: Any, source: RandomSource | None = None) -> Release:
        """Draw the noise and publish. `source` is for tests and audits: a seeded one makes the release not private."""
        return self.of_snapshot(snapshot(summary), source)

    def of_snapshot(self, summary: Any, source: RandomSource | None = None) -> Release:
        """The release of a state that nobody adds to: what was checked is what is published."""
        self.check(summary)
        return self._publish(summary, system_source() if source is None else source)

    def draw(self, summary: Any, source: RandomSource) -> Drawn:
        """Add the noise to a state and decide what is shown: all of a release that is random.

        The seam of the audit, which writes out the law of what is drawn. A mechanism may publish in another way.
        """
        raise NotImplementedError

    def _publish(self, summary: Any, source: RandomSource) -> Release:
        return self._histogram(self.draw(summary, source), source)

    def _histogram(self, drawn: Drawn, source: RandomSource) -> Release:
        """The published part of what was drawn."""
        places, items, shards = _native.places_of(drawn.keep), drawn.raw.held_items, drawn.shards
        return Release(
            published_type(items if len(places) == len(drawn.keep) else taken(items, places)),
            _native.numbers_at(drawn.noisy, places),
            dataclasses.replace(self.guarantee, seeded=source.seeded),
            drawn.error_model or self.error_model,
            threshold=self.threshold,
            offset=drawn.offset,
            shards=None if shards is None else _native.numbers_at(shards, places),
            shard_offsets=drawn.shard_offsets,
        )


def check_length(stream_length: object) -> int | None:
    """A public length: a whole number, or None."""
    if stream_length == "public":
        raise ParameterError(
            "stream_length must be a public number, not 'public'; how many events were counted is private"
        )
    return None if stream_length is None else whole_number("stream_length", stream_length, 0)


def check_length_share(share: float) -> None:
    """The share of epsilon for a noisy length must leave something for the rest."""
    if not 0.0 < share < 1.0:
        raise ParameterError(f"length_share must be greater than 0 and less than 1, not {share!r}")


def split_with_length(epsilon: float, stream_length: object, share: float) -> tuple[Fraction, Fraction]:
    """What the counters and the length of the stream spend; they sum to epsilon exactly."""
    whole = Fraction(epsilon)
    length = whole * Fraction(share) if stream_length == "noisy" else Fraction(0)
    return whole - length, length


def snapshot(summary: Any) -> Any:
    """One state of a summary, or of each of several, which other threads may be adding to.

    A release that checked one state, or read the offset of one, and published the counters of another would be nothing
    that the proofs cover. Exact counts, which may be large, are read once and need no copy.
    """
    if isinstance(summary, (list, tuple)):
        return tuple(snapshot(part) for part in summary)
    return summary.copy() if isinstance(summary, Summary) and not isinstance(summary, ExactCounts) else summary


def positive(raw: RawCounts) -> RawCounts:
    """The counters that are not zero."""
    places = _native.places_of(_native.at_least(raw.held_counts, 1))
    return RawCounts(taken(raw.held_items, places), _native.numbers_at(raw.held_counts, places))
