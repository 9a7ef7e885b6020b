"""The lemmas about neighbouring states that the releases rest on, checked on the real kernels.

Small universes are exhausted: every stream, every event that may be missing. Beyond them, large random streams are
compared pair by pair. A function here says how many pairs break the lemma; the proofs are in the papers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from discreet.summaries import ExactCounts, MisraGries, SpaceSaving, UserMisraGries
from discreet_audit.findings import Finding
from discreet_audit.states import Counters, StateTable, counters_of, states_of_short_streams

__all__ = [
    "all_in_one_direction",
    "exact_counts_table",
    "lemma_8_state",
    "merged_states",
    "misra_gries_table",
    "random_pairs",
    "space_saving_state",
    "space_saving_table",
    "structure_finding",
    "user_table",
]

_SEED = 7  # of the kernels' hashing; it fixes the order of the keys, which any stream-independent order may be

# (items, length) of the streams that are exhausted for 1, 2 and 3 counters.
_BOXES = {1: (3, 7), 2: (4, 7), 3: (5, 6)}


def _box(k: int, longer: int) -> tuple[int, int]:
    items, length = _BOXES[k]
    return items, length + longer


@lru_cache(maxsize=8)
def misra_gries_table(k: int, longer: int = 0) -> StateTable[Counters]:
    """Every short stream through `MisraGries(k)`, k <= 3."""
    items, length = _box(k, longer)
    return states_of_short_streams(lambda: MisraGries(k, seed=_SEED), range(items), length, counters_of)


@lru_cache(maxsize=8)
def space_saving_table(k: int, longer: int = 0) -> StateTable[Counters]:
    """Every short stream through `SpaceSaving(k)`, k <= 3."""
    items, length = _box(k, longer)
    return states_of_short_streams(lambda: SpaceSaving(k, seed=_SEED), range(items), length, counters_of)


@lru_cache(maxsize=4)
def exact_counts_table(longer: int = 0) -> StateTable[Counters]:
    """Every short stream through `ExactCounts`."""
    return states_of_short_streams(lambda: ExactCounts(seed=_SEED), range(3), 6 + longer, counters_of)


@lru_cache(maxsize=8)
def user_table(k: int, m: int, longer: int = 0) -> StateTable[Counters]:
    """Every short stream of sets of at most m of k + 2 items through `UserMisraGries(k, m)`."""
    items = range(k + 2)
    sets = [list(chosen) for size in range(1, m + 1) for chosen in combinations(items, size)]
    length = 2
    while len(sets) ** (length + 1) < 15_000 * 4**longer:
        length += 1
    return states_of_short_streams(lambda: UserMisraGries(k, m, seed=_SEED), sets, length, counters_of)


@lru_cache(maxsize=4)
def merged_states(k: int) -> tuple[list[tuple[Counters, Counters]], int]:
    """Pairs of merged sketches, one of whose parts saw one event less; both orders.

    All streams of at most 4 events over k + 2 items, merged with all states that such streams reach.
    """
    table = states_of_short_streams(lambda: MisraGries(k, seed=_SEED), range(k + 2), 4 if k < 3 else 3, counters_of)
    examples = dict(zip(table.states, table.examples, strict=True))

    def counted(state: Counters) -> MisraGries:
        sketch = MisraGries(k, seed=_SEED)
        sketch.update(list(examples[state]))
        return sketch

    merged: dict[tuple[Counters, Counters], Counters] = {}

    def merge(a: Counters, b: Counters) -> Counters:
        if (a, b) not in merged:
            sketch = counted(a)
            sketch.merge(counted(b))
            merged[a, b] = counters_of(sketch)
        return merged[a, b]

    pairs, _ = table.neighbours()
    # Only the counters matter to a merge: one state for each set of them.
    parts = list({tuple(c for c in state.counts if c[1]): state for state in table.states}.values())
    found = set()
    for first, second in pairs:
        for part in parts:
            found.add((merge(first, part), merge(second, part)))
            found.add((merge(part, first), merge(part, second)))
    return sorted(found, key=repr), 2 * len(pairs) * len(parts)


def lemma_8_state(first: Counters, second: Counters, k: int) -> str | None:
    """Which of the six states of [LT] Lemma 8 a pair of Misra-Gries sketches is in; None if in none.

    `second` saw one event less. Unused counters are the paper's dummies, which the kernel uses up in order.
    """
    a, b = ({**dict(s.counts), **{("free", i): 0 for i in range(len(s.counts), k)}} for s in (first, second))
    common = [(a[key], b[key]) for key in a.keys() & b.keys()]
    mine = sorted((a[key] for key in a.keys() - b.keys()), reverse=True)
    theirs = sorted((b[key] for key in b.keys() - a.keys()), reverse=True)
    decrements = first.offset - second.offset
    if decrements == 1 and all(c == d - 1 for c, d in common):
        return {((), ()): "S1", ((0,), (1,)): "S2"}.get((tuple(mine), tuple(theirs)))
    if decrements != 0:
        return None
    higher = [(c, d) for c, d in common if c != d]
    if len(higher) == 1 and higher[0][0] == higher[0][1] + 1:
        return {((), ()): "S3", ((0,), (0,)): "S5"}.get((tuple(mine), tuple(theirs)))
    if not higher:
        return {((1,), (0,)): "S4", ((1, 0), (0, 0)): "S6"}.get((tuple(mine), tuple(theirs)))
    return None


def space_saving_state(first: Counters, second: Counters, k: int) -> str | None:
    """Which of the four states of [SS] Lemma 4 a pair is in (Corollary 1 follows); None if in none.

    Free counters stand for keys of count 0 that nobody sees, used up in order.
    """
    a, b = ({**dict(s.counts), **{("free", i): 0 for i in range(len(s.counts), k)}} for s in (first, second))
    common = [(a[key], b[key]) for key in a.keys() & b.keys()]
    mine = sorted((a[key] for key in a.keys() - b.keys()), reverse=True)
    theirs = sorted((b[key] for key in b.keys() - a.keys()), reverse=True)
    least, least_second = min(a.values()), min(b.values())
    higher = [(c, d) for c, d in common if c != d]
    one_higher = len(higher) == 1 and higher[0][0] == higher[0][1] + 1
    if not mine and not theirs:
        return "S1" if one_higher else None
    if len(mine) == len(theirs) == 1:
        if not higher and mine[0] == theirs[0] + 1 and theirs[0] == least_second and mine[0] <= least + 1:
            return "S2"
        return "S3" if one_higher and mine[0] == theirs[0] == least == least_second else None
    if len(mine) == len(theirs) == 2 and not higher:
        return "S4" if mine == [least + 1, least] and theirs == [least, least] == [least_second] * 2 else None
    return None


def all_in_one_direction(first: Counters, second: Counters) -> bool:
    """Lemmas 17 and 27 of [LT]: positive counters differ by 0 or 1, all in one direction, with keys nested."""
    a, b = ({key: c for key, c in s.counts if c > 0} for s in (first, second))
    changes = {a.get(key, 0) - b.get(key, 0) for key in {*a, *b}}
    return changes <= {0, 1} or changes <= {0, -1}


def structure_finding(
    check: str, pairs: Iterable[tuple[Counters, Counters]], holds: Callable[[Counters, Counters], object], tried: int
) -> Finding:
    """How many pairs break a lemma."""
    broken = sum(not holds(first, second) for first, second in pairs)
    return Finding("structure", check, "violations", 0, broken, tried)


def random_pairs(
    make: Callable[[], Any],
    count: int,
    length: int,
    items: int,
    *,
    removed: int = 1,
    distinct: bool = False,
    users: int = 0,
    seed: int = 1,
) -> list[tuple[Any, Any]]:
    """Summaries of large random streams with and without an event, or up to `removed`; every 20 share the longer one.

    Args:
        make: Makes the empty summary.
        count: How many pairs.
        length: Events (or users) of a stream.
        items: Different items; their frequencies fall like 1/rank.
        removed: The most events that are missing.
        distinct: Whether the missing events are of different items.
        users: If positive, the stream is of users with at most so many items.
        seed: Equal seeds give equal pairs.
    """
    draw = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, items + 1)
    weights /= weights.sum()
    choose = random.Random(seed)
    pairs: list[tuple[Any, Any]] = []
    while len(pairs) < count:
        stream: Any = draw.choice(items, length, p=weights)
        if users:
            sizes = draw.integers(1, users + 1, length)
            stream = [draw.choice(items, size, p=weights).tolist() for size in sizes]
        longer = make()
        longer.update(stream)
        for _ in range(min(20, count - len(pairs))):
            gone = sorted(choose.sample(range(length), choose.randint(1, removed)))
            if distinct:
                gone = sorted({int(stream[place]): place for place in gone}.values())
            shorter = make()
            shorter.update(_without(stream, gone))
            pairs.append((longer, shorter))
    return pairs


def _without(stream: Any, gone: Sequence[int]) -> Any:
    if isinstance(stream, np.ndarray):
        return np.delete(stream, gone)
    return [user for place, user in enumerate(stream) if place not in gone]
