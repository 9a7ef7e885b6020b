"""Before anything is read, from public numbers only: how many counters a release needs, how frequent an item must be to
be published, and the release itself, checked and calibrated once."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.central._base import Mechanism
from discreet.central.offset import Offset
from discreet.errors import ParameterError, WordError
from discreet.noise import RandomSource
from discreet.noise.source import MAX_SCALE
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.calibration.zcdp import zcdp_sigma
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import Noise
from discreet.releases.release import Release
from discreet.summaries import MisraGries, ShardedMisraGries, SpaceSaving, UserMisraGries
from discreet.summaries.memory import COUNTERS, KEY_BYTES, SKETCH_MEMORY, Memory, counters_in

if TYPE_CHECKING:
    from discreet.summaries.people import ValueRange


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
        model = self.mechanism.error_model
        _ = self.mechanism.threshold
        for noise in (model.noise, model.shared, model.offset_noise, self.total_noise):
            if noise is not None and noise.scale > MAX_SCALE:
                raise ParameterError(
                    f"the budget is too small: the noise would have a scale above 2**50, {self.mechanism.name}"
                )

    def draw(self, summary: Any, source: RandomSource) -> Release:
        """Draw. Nobody may add to the summary meanwhile: what is checked is what is published."""
        self.mechanism.check(summary)
        drawn = self.mechanism._publish(summary, source)
        guarantee = drawn.guarantee
        if self.because:
            guarantee = dataclasses.replace(guarantee, chosen_because=self.because)
        if self.total_noise is None:
            return drawn.with_guarantee(guarantee)
        length = sum(part.total for part in summary) if isinstance(summary, (list, tuple)) else summary.total
        noisy = length + self.total_noise.draw(source)
        return drawn.with_guarantee(self._with_total(guarantee), total=noisy, total_noise=self.total_noise)

    def _with_total(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of both parts together: epsilons (or rhos) add, and the total's noise needs no delta."""
        note = f"a share of {self.total_share:g} of the budget was spent on the stream's length"
        return dataclasses.replace(
            guarantee,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rho=self.budget.rho,
            assumptions=(*guarantee.assumptions, note),
        )


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
    of = mechanism.counted
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
        down += model.offset_noise.bound_in_counts(beta)
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


def counters_cost_no_noise(kind: type[Mechanism]) -> bool:
    """Whether more counters cost memory alone: of Misra-Gries and SpaceSaving, where noise does not grow with them."""
    counted = issubclass(kind.accepts[0], (MisraGries, ShardedMisraGries, SpaceSaving))
    return counted and not kind.noise_growth


def choose_capacity(
    k: int,
    budget: Budget,
    unit: Unit,
    length: int | None,
    kind: type[Mechanism] = Offset,
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
    if not counters_cost_no_noise(kind):
        return first_capacity(k, budget, unit, length), "for what a linear sketch tracks"
    usual = _power_of_two(max(COUNTERS, _COUNTERS_PER_ITEM * k))
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
