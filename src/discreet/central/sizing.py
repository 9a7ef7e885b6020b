"""How many counters a release needs, and how frequent an item must be to be published: from public numbers only."""

from __future__ import annotations

import math

from discreet.central._base import Mechanism
from discreet.central.offset_release import OffsetRelease
from discreet.privacy import Budget, Unit, User
from discreet.summaries import MisraGries, ShardedMisraGries, SpaceSaving, UserMisraGries

__all__ = ["choose_capacity", "frequency_published", "summary_errors"]

SMALLEST_CAPACITY = 4096
LARGEST_CAPACITY = 2**16
COUNTERS_PER_ITEM = 32


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


def choose_capacity(
    k: int, budget: Budget, unit: Unit, length: int | None, kind: type[Mechanism] = OffsetRelease
) -> tuple[int, str]:
    """The number of counters for `k` items, and why: from public numbers only.

    The offset release's noise does not grow with the capacity, so more counters only cost memory: 32 for each item
    asked for and at least 4096. With a declared length: as many as make the sketch's error n/(k+1) no larger than
    the noise, at most 65536, and no more than there are events.

    Gaussian noise on all counters grows with the root of their number, Chan's with their number: 8 for each item asked
    for and at least 256. With a declared length: about where noise and sketch error balance.
    """
    items = unit.limit if isinstance(unit, User) else 1
    if kind.noise_growth:
        return _balanced_capacity(k, budget, items, length, kind)
    usual = _power_of_two(max(SMALLEST_CAPACITY, COUNTERS_PER_ITEM * k))
    because = f"{COUNTERS_PER_ITEM} counters for each of {k} items, at least {SMALLEST_CAPACITY}, as a power of two"
    if length is None or budget.epsilon is None:
        return usual, because
    if length < usual:
        return max(length, k, 1), f"{length:,} events need no more counters"
    wanted = _power_of_two(math.ceil(length / max(items / budget.epsilon, 1.0)))
    if wanted <= usual:
        return usual, because
    if wanted <= max(usual, LARGEST_CAPACITY):
        return wanted, f"enough to bring the sketch's error for {length:,} events down to the noise"
    return max(usual, LARGEST_CAPACITY), "the most that is chosen unasked; more would lower the sketch's error further"


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
    return max(
        least, min(balanced, LARGEST_CAPACITY)
    ), f"about where noise and sketch error balance for {length:,} items"


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
