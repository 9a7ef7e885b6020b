"""How many counters a release needs, and how frequent an item must be to be published: from public numbers only."""

from __future__ import annotations

import math

from discreet.central._base import Mechanism
from discreet.central.offset import Offset
from discreet.privacy import Budget, Unit, User
from discreet.summaries import MisraGries, ShardedMisraGries, SpaceSaving, UserMisraGries
from discreet.summaries.memory import COUNTERS, KEY_BYTES, SKETCH_MEMORY, Memory, counters_in

__all__ = ["choose_capacity", "counters_cost_no_noise", "first_capacity", "frequency_published", "summary_errors"]

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

    For a linear sketch they hold but for a probability of beta over its seed, for the others always.
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
    there are items: 65,536, and at least 32 for each item asked for; or as many as `memory` has room for, with so many
    sketches. With a declared length no more than there are events.

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
