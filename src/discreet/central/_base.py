"""What every central mechanism shares: its contract; its preparation, before anything is read and from public numbers
only, checked and calibrated once; how many counters it needs, and how frequent an item must be to be published."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from discreet import _native
from discreet._data_class import dataclass, replace
from discreet._later import np
from discreet.errors import IncompatibleSummaryError, ParameterError, WordError
from discreet.noise import RandomSource, system_source
from discreet.noise.source import MAX_SCALE
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.calibration.zcdp import zcdp_sigma
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.release import Counts, Release
from discreet.summaries import (
    ExactCounts,
    MisraGries,
    RawCounts,
    ShardedMisraGries,
    SpaceSaving,
    Summary,
    UserMisraGries,
)
from discreet.summaries.memory import COUNTERS, KEY_BYTES, SKETCH_MEMORY, Memory, counters_in

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge
    from discreet.summaries.people import ValueRange


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
    hides: ClassVar[Unit | None] = None  # what an account adds up where it is another than `unit`

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

    @cached_property
    def most_events(self) -> int:
        """m: how many events one unit of privacy may have; ParameterError for a unit other than events or users."""
        if not isinstance(self.unit, (Event, User)):
            raise ParameterError(f"{self.name} protects dc.Event() or dc.User(m); got {type(self.unit).__name__}")
        return self.unit.limit if isinstance(self.unit, User) else 1

    def _check_length(self) -> None:
        """A public length is a whole number, or None; "noisy" only where the cut rests on it."""
        length = getattr(self, "stream_length", None)
        if length == "public":
            raise ParameterError(
                "stream_length must be a public number, not 'public'; how many events were counted is private"
            )
        if length is not None:
            object.__setattr__(self, "stream_length", whole_number("stream_length", length, 0))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, in plain words."""
        length = getattr(self, "stream_length", None)
        if length == "noisy" and hasattr(self, "length_share"):
            return (f"{self.length_share:g} of epsilon is spent on the length of the stream",)
        return ("the length of the stream is public",) if isinstance(length, int) else ()

    @property
    def _assumed_of_users(self) -> tuple[str, ...]:
        """What nothing in a summary of rows can check: whose they are."""
        return (f"no user has more than {self.most_events} of the rows that are counted",)

    @property
    def cost(self) -> Charge | None:
        """The rho and delta that it has, for accounts that add up rhos; None: what any mechanism of its budget has."""
        return None

    @property
    def guarantee(self) -> Guarantee:
        """What a release by this mechanism promises."""
        told = self.assumptions
        if isinstance(self.unit, User):
            told = (*told, *self._assumed_of_users)
        return Guarantee.of(self.budget, self.unit, self.name, self.reference, assumptions=told)

    def error_bound(self, beta: float) -> float:
        """With probability 1 - beta the noise moves no count by more than this (the summary's error comes on top)."""
        return self.error_model.noise_bound(probability("beta", beta))

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
        """The published part of what is drawn."""
        drawn = self.draw(summary, source)
        places, shards = _native.places_of(drawn.keep), drawn.shards
        return Release(
            drawn.raw.published_at(places),
            _native.numbers_at(drawn.noisy, places),
            replace(self.guarantee, seeded=source.seeded),
            drawn.error_model or self.error_model,
            threshold=self.threshold,
            offset=drawn.offset,
            shards=None if shards is None else _native.numbers_at(shards, places),
            shard_offsets=drawn.shard_offsets,
        )


class Approximate(Mechanism):
    """A mechanism that spends epsilon and delta, for events or the events of users: checked when it is made."""

    def __post_init__(self) -> None:
        _ = self.spends
        if hasattr(self, "capacity"):
            whole_number("capacity", self.capacity)
        _ = self.most_events
        if hasattr(self, "stream_length"):
            self._check_length()


class RestsOnLength(Approximate):
    """A mechanism whose cut rests on the length of the stream: a public number that it does not exceed, or "noisy",
    for `length_share` of epsilon unless what is published tells it anyway."""

    stream_length: int | str

    def _check_length(self) -> None:
        if self.stream_length is None:
            raise ParameterError(f"{self.name} needs stream_length: a public whole number, or 'noisy'")
        if self.stream_length != "noisy":
            super()._check_length()
        share = getattr(self, "length_share", 0.5)
        if not 0.0 < share < 1.0:
            raise ParameterError(f"length_share must be greater than 0 and less than 1, not {share!r}")

    @property
    def _epsilons(self) -> tuple[Fraction, Fraction]:
        """What the counters and the length of the stream spend; they sum to epsilon exactly."""
        whole = Fraction(self.spends[0])
        length = whole * Fraction(getattr(self, "length_share", 0) if self.stream_length == "noisy" else 0)
        return whole - length, length

    def check(self, summary: Any) -> None:
        super().check(summary)
        if isinstance(self.stream_length, int) and summary.total > self.stream_length:
            raise IncompatibleSummaryError("the stream is longer than stream_length; use a larger public number")


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
    return RawCounts(raw.items_at(places), _native.numbers_at(raw.held_counts, places))


# ---- before anything is read --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prepared:
    """A mechanism and its budget. Made before anything is read: nothing was charged, nothing random has happened.

    Making one refuses whatever can be refused for its parameters, and calibrates, so that nothing can fail for them
    once the ledger is charged.

    Attributes:
        mechanism: What is drawn. With a total it has what is left of the budget.
        budget: What the whole release spends.
        because: Why it is this mechanism.
        total_share: The share of the budget for the stream's length, or None.
        total_noise: The noise on it.
        stream_length: The public length that the mechanism was made with, if it takes one.
        described: What the ledger writes down, where the mechanism's name does not say it all.
        bounded: Whether at most m items of a person reach the mechanism for `User(m)`, however many they have: then
            all of a person is hidden, and the account adds it up as such.
    """

    mechanism: Mechanism
    budget: Budget
    because: str = ""
    total_share: float | None = None
    total_noise: Noise | None = None
    stream_length: int | None = None
    described: str = ""
    bounded: bool = False

    def __post_init__(self) -> None:
        _ = self.mechanism.threshold
        model = self.mechanism.error_model
        for noise in (model.noise, model.shared, model.offset_noise, self.total_noise):
            if noise is not None and noise.scale > MAX_SCALE:
                raise ParameterError(
                    f"the budget is too small: the noise would have a scale above 2**50, {self.mechanism.name}"
                )

    def draw(self, summary: Any, source: RandomSource) -> Release:
        """Draw, of a summary that the mechanism has checked, before the charge. Nobody may add to it meanwhile: what is
        checked is what is published."""
        drawn = self.mechanism._publish(summary, source)
        if self.because:
            drawn.guarantee = replace(drawn.guarantee, chosen_because=self.because)
        if self.total_noise is None:
            return drawn
        # The guarantee of both parts together: epsilons (or rhos) add, and the total's noise needs no delta.
        note = f"a share of {self.total_share:g} of the budget was spent on the stream's length"
        drawn.guarantee = drawn.guarantee.assuming(note, spent=self.budget)
        length = sum(part.total for part in summary) if isinstance(summary, (list, tuple)) else summary.total
        drawn.total, drawn.total_noise = length + self.total_noise.draw(source), self.total_noise
        return drawn


def split_off_total(budget: Budget, share: float, unit: Unit, lists: int = 1) -> tuple[Budget, Noise]:
    """What is left for the histogram, and the noise of the stream's length for the given share.

    The length moves by at most m when a unit of m events (of all its `lists` together) comes or goes. Discrete Laplace
    noise of scale m/epsilon_n makes it epsilon_n-DP, and by composition the release costs (epsilon_n + rest, delta).
    Of a zCDP budget: discrete Gaussian noise with sigma^2 = m^2/(2 rho_n), and rhos add. The two parts never sum to
    more than the budget.
    """
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.0 < share < 1.0:
        raise ParameterError(f"total_share must be greater than 0 and less than 1, not {share!r}")
    if not isinstance(unit, (Event, User)):
        raise ParameterError(f"total_share needs the unit dc.Event() or dc.User(m), not {type(unit).__name__}")
    m = unit.limit * whole_number("parts_per_user", lists) if isinstance(unit, User) else 1
    part, rest = budget.split(share)
    if part.rho is not None:
        return rest, Noise("gaussian", zcdp_sigma(m * m, part.rho))
    assert part.epsilon is not None
    return rest, Noise("laplace", m / Fraction(part.epsilon))


def prepare_people(
    k: int,
    budget: Budget,
    *,
    max_items: int | None = None,
    count: str = "users",
    values: ValueRange | None = None,
    lists: bool = False,
    groups: int | None = 1,
    pairs: int | None = None,
) -> Prepared:
    """A release that hides people: counts of "users" who have an item, or of their "rows", or sums of values.

    `groups` is as for `PersonVectors`; with `pairs` what is counted are this many items together, see `PersonPairs`.
    """
    from discreet.central.person_vectors import PersonVectors

    if count not in ("users", "rows"):
        raise ParameterError(f"count must be 'users' or 'rows', not {count!r}")
    if count == "rows" and values is not None:
        raise ParameterError("a question sums values or counts rows, not both")
    if budget.delta == 0.0:
        raise WordError(
            "finding unknown items needs {delta} > 0; give one, such as 1e-6, or count a public list of items: "
            "dc.histogram, `discreet histogram`"
        )
    if pairs is not None:
        from discreet.central.person_pairs import PersonPairs

        together = PersonPairs(budget, k, lists=lists, size=pairs)
        return Prepared(together, budget, described=f"{together.name}, {pairs} items, k={k}")
    mechanism = PersonVectors(
        budget, k, User(max_items), rows=count == "rows", lists=lists, values=values, groups=groups
    )
    of = mechanism.entries.counted
    if values is not None:  # in full: a charge id stands for one range
        of = f"sums of values from {float(values.low)!r} to {float(values.high)!r}"
    of_groups = "" if groups == 1 else f" in each of {groups} groups" if groups else " in each group"
    described = f"{mechanism.name}, {of}, k={k}{of_groups}"
    return Prepared(mechanism, budget, described=described)


# ---- how many counters --------------------------------------------------------------------------------------------

_LEAST_TRACKED = 4096
_COUNTERS_PER_ITEM = 32


def frequency_published(mechanism: Mechanism, length: int, capacity: int, confidence: float) -> int:
    """The frequency from which on an item is published, with probability `confidence`.

    f >= threshold + (what the summary may have lost) + (what the noises may take away) is published.
    """
    model = mechanism.error_model
    beta = (1.0 - confidence) / model.random_parts
    down = model.noise_bound(beta if model.shared is None else 2.0 * beta)
    if model.offset_noise is not None:
        down += model.offset_noise.bound(beta)
    lost, _ = summary_errors(mechanism, length, capacity, beta)
    return math.ceil(mechanism.threshold + down + lost)


def summary_errors(mechanism: Mechanism, length: int, capacity: int, beta: float) -> tuple[float, float]:
    """(lost, error): the most by which a count falls short of its cut, and by which it lies from the truth.

    For a linear sketch they hold except with probability beta over its seed, for the others always.
    """
    kind, collisions = mechanism.accepts[0], mechanism.error_model.collisions
    if issubclass(kind, (MisraGries, ShardedMisraGries, UserMisraGries)):
        # c <= f <= c + alpha and alpha <= n/(k+1); in shards n is the length of one
        return float(length // (capacity + 1)), float(length // (capacity + 1))
    if issubclass(kind, SpaceSaving):
        # Its counters lose nothing, but the cut stands on n/k, rounded.
        return float(length // capacity + 1), float(length // capacity)
    if collisions is not None:
        mass = collisions.bound(beta)
        return (mass if collisions.rule == "median" else 0.0), mass
    return 0.0, 0.0


_COUNTERS_ALONE = (MisraGries, ShardedMisraGries, SpaceSaving)


def counters_cost_no_noise(kind: type[Mechanism]) -> bool:
    """Whether more counters cost memory alone: of Misra-Gries and SpaceSaving, where noise does not grow with them."""
    return issubclass(kind.accepts[0], _COUNTERS_ALONE) and not kind.noise_growth


def choose_capacity(
    k: int,
    budget: Budget,
    unit: Unit,
    length: int | None,
    kind: type[Mechanism],
    memory: str | None = None,
    sketches: int = 1,
) -> tuple[int, str]:
    """The number of counters for `k` items, and why: from public numbers only.

    The offset release's noise does not grow with the capacity, so more counters only cost memory, and no more than
    there are items: 65,536, and at least 32 for each item asked for; or as many as `memory` has room for, with this
    many sketches. With a declared length no more than there are events.

    What is tracked beside a linear sketch: `first_capacity`. Gaussian noise on all counters grows with the root of
    their number, Chan's with their number: 8 for each item asked for and at least 256. With a declared length: about
    where noise and sketch error balance.
    """
    limit = None if memory is None else Memory(memory, SKETCH_MEMORY)
    if kind.noise_growth:
        return _balanced_capacity(k, budget, unit.limit if isinstance(unit, User) else 1, length, kind)
    if not issubclass(kind.accepts[0], _COUNTERS_ALONE):
        return first_capacity(k, budget, unit, length), "for what a linear sketch tracks"
    usual = max(COUNTERS, 1 << (_COUNTERS_PER_ITEM * k - 1).bit_length())  # a power of two
    because = "the default: more counters cost memory, and no noise"
    if limit is not None:
        summary = "SpaceSaving" if issubclass(kind.accepts[0], SpaceSaving) else "MisraGries"
        usual = counters_in(limit.room // sketches, summary)
        because = f"what a memory of {limit.given} has room for, with items of {KEY_BYTES} bytes"
    if length is not None and length < usual:
        return max(length, k, 1), f"{length:,} events need no more counters"
    return usual, because


def first_capacity(k: int, budget: Budget, unit: Unit, length: int | None) -> int:
    """32 for each item asked for and at least 4096. With a declared length: as many as make the error n/(k+1) of a
    sketch no larger than the noise, at most 65,536, and no more than there are events.

    It was the default of every sketch once, and requests of a default are written with it: what was paid for then is
    had again.
    """
    items = unit.limit if isinstance(unit, User) else 1
    usual = _power_of_two(max(_LEAST_TRACKED, _COUNTERS_PER_ITEM * k))
    if length is None or budget.epsilon is None:
        return usual
    if length < usual:
        return max(length, k, 1)
    wanted = _power_of_two(math.ceil(length / max(items / budget.epsilon, 1.0)))
    return max(usual, min(wanted, COUNTERS))


def _balanced_capacity(
    k: int, budget: Budget, items: int, length: int | None, kind: type[Mechanism]
) -> tuple[int, str]:
    if length is None or budget.epsilon is None or budget.delta == 0.0:
        least = _power_of_two(max(256, 8 * k, items))
        return least, f"8 counters for each of {k} items, at least 256 and {items} for the items of a user"
    m = 1 if issubclass(kind.accepts[0], UserMisraGries) else items
    # Threshold and noise together are about a K^p and the sketch loses n/K: the sum is smallest at
    # K = (n/(p a))^(1/(1+p)). Gaussian, in part shared: p = 1/2 and about 5 sigma of a counter on its own; Laplace:
    # p = 1 and about 2 ln(1/delta) scales.
    p = kind.noise_growth
    if p == 1.0:
        a = 2.0 * m * math.log(1.0 / budget.delta) / budget.epsilon
    else:
        a = 5.0 * m * math.sqrt(2.0 * math.log(1.25 / budget.delta)) / budget.epsilon
    balanced = _power_of_two(math.ceil((length / (p * a)) ** (1.0 / (1.0 + p))))
    least = _power_of_two(max(2 * k, items, 16))
    return max(least, min(balanced, COUNTERS)), f"about where noise and sketch error balance for {length:,} items"


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
