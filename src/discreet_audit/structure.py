"""The lemmas about neighbouring states that the releases rest on, checked on the real kernels.

Small universes are exhausted: every stream, every event that may be missing. Beyond them, large random streams are
compared pair by pair. The proofs are in the papers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import combinations, product
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.summaries import ExactCounts, MisraGries, SpaceSaving, Summary, UserMisraGries
from discreet_audit.findings import Finding
from discreet_audit.laws import Key, StatePair

__all__ = [
    "KINDS",
    "SEED",
    "Counters",
    "Kind",
    "StateTable",
    "counters_of",
    "lemma_8_state",
    "merged_states",
    "misra_gries_table",
    "random_pairs",
    "space_saving_table",
    "state_pair",
    "states_of_short_streams",
]

SEED = 7  # of the kernels' hashing; it fixes the order of the keys, which any stream-independent order may be
S = TypeVar("S", bound=Hashable)
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counters:
    """What a counter summary holds: counters by key, decrements (0 for those that have none), and the length."""

    counts: tuple[tuple[Any, int], ...]
    offset: int
    total: int


Pairs = list[tuple[Counters, Counters]]


def counters_of(summary: Summary) -> Counters:
    """The state of a counter summary."""
    raw = summary.not_private_counts().to_dict()
    return Counters(tuple(sorted(raw.items())), int(getattr(summary, "not_private_offset", 0)), summary.total)


@dataclass(frozen=True)
class StateTable(Generic[S]):
    """The states of all streams of at most `length` symbols: `numbers[n][s]` is the state of stream s of length n.

    Stream s is the number whose digits, in base `symbols`, are its symbols, the last one first. `examples` has a
    stream (the positions of its symbols) for every state.
    """

    symbols: int
    states: list[S]
    numbers: list[Ints]
    examples: list[tuple[int, ...]]

    def neighbours(self) -> tuple[list[tuple[S, S]], int]:
        """The different pairs (state of S, state of S without one of its events), and how many pairs of streams."""
        found: set[tuple[int, int]] = set()
        tried = 0
        for n in range(1, len(self.numbers)):
            for shorter in self._without(n):
                both = np.unique(self.numbers[n] * len(self.states) + self.numbers[n - 1][shorter])
                found.update(divmod(int(code), len(self.states)) for code in both)
                tried += len(shorter)
        return [(self.states[a], self.states[b]) for a, b in sorted(found)], tried

    def streams_of(self, first: S, second: S) -> tuple[list[int], list[int]]:
        """Two neighbouring streams, as positions of their symbols, that reach these states."""
        a, b = self.states.index(first), self.states.index(second)
        for n in range(1, len(self.numbers)):
            for shorter in self._without(n):
                hits = np.flatnonzero((self.numbers[n] == a) & (self.numbers[n - 1][shorter] == b))
                if hits.size:
                    return self._digits(int(hits[0]), n), self._digits(int(shorter[hits[0]]), n - 1)
        raise ParameterError("no neighbouring streams reach these two states")

    def _digits(self, number: int, n: int) -> list[int]:
        return [number // self.symbols**place % self.symbols for place in reversed(range(n))]

    def _without(self, n: int) -> list[Ints]:
        """For every place, what the streams of length n are without the symbol there."""
        streams, low = np.arange(len(self.numbers[n])), [self.symbols**place for place in range(n)]
        return [streams // (each * self.symbols) * each + streams % each for each in low]


def states_of_short_streams(
    make: Callable[[], Summary], symbols: Sequence[Any], length: int, read: Callable[[Any], S]
) -> StateTable[S]:
    """Run every stream of at most `length` symbols through a summary of its own."""
    as_array = all(isinstance(symbol, int) for symbol in symbols)
    values = np.array(symbols, np.int64) if as_array else None
    index: dict[S, int] = {}
    examples: list[tuple[int, ...]] = []
    numbers = []
    for n in range(length + 1):
        row = np.empty(len(symbols) ** n, np.int64)
        for s, digits in enumerate(product(range(len(symbols)), repeat=n)):
            summary = make()
            if n:
                summary.update(values[list(digits)] if values is not None else [symbols[d] for d in digits])
            row[s] = index.setdefault(read(summary), len(index))
            if len(index) > len(examples):
                examples.append(digits)
        numbers.append(row)
    return StateTable(len(symbols), list(index), numbers, examples)


def state_pair(first: Counters, second: Counters, *, zeros: bool = True) -> StatePair:
    """What separates two states, without the names of the keys. `zeros`: whether counters at 0 are part of the state.

    Keys whose counter plus offset agrees are left out if the offsets differ, keys whose counters agree if they do not.
    """
    a, b = ({key: c for key, c in state.counts if zeros or c > 0} for state in (first, second))
    keys = sorted(
        ((a.get(key), b.get(key)) for key in {*a, *b}), key=lambda pair: tuple(-1 if c is None else c for c in pair)
    )
    return StatePair(
        tuple(Key(c, d) for c, d in keys if c != d or first.offset != second.offset),
        first.offset - second.offset,
        first.total - second.total,
        first.total,
    )


# ---- every short stream ------------------------------------------------------------------------------------------

_BOXES = {1: (3, 7), 2: (4, 7), 3: (5, 6)}  # (items, length) of the streams that are exhausted for 1, 2 and 3 counters


@lru_cache(maxsize=16)
def _table(kind: type[MisraGries] | type[SpaceSaving], k: int, longer: int) -> StateTable[Counters]:
    items, length = _BOXES[k]
    return states_of_short_streams(partial(kind, k, seed=SEED), range(items), length + longer, counters_of)


def misra_gries_table(k: int, longer: int = 0) -> StateTable[Counters]:
    """Every short stream through `MisraGries(k)`, k <= 3."""
    return _table(MisraGries, k, longer)


def space_saving_table(k: int, longer: int = 0) -> StateTable[Counters]:
    """Every short stream through `SpaceSaving(k)`, k <= 3."""
    return _table(SpaceSaving, k, longer)


def _exact_counts(k: int, m: int, longer: int) -> tuple[Pairs, int]:
    return states_of_short_streams(partial(ExactCounts, seed=SEED), range(3), 6 + longer, counters_of).neighbours()


def _users(k: int, m: int, longer: int) -> tuple[Pairs, int]:
    """Every short stream of sets of at most m of k + 2 items through `UserMisraGries(k, m)`."""
    m = min(m, k)
    sets = [list(chosen) for size in range(1, m + 1) for chosen in combinations(range(k + 2), size)]
    length = 2
    while len(sets) ** (length + 1) < 15_000 * 4**longer:
        length += 1
    return states_of_short_streams(partial(UserMisraGries, k, m, seed=SEED), sets, length, counters_of).neighbours()


@lru_cache(maxsize=4)
def merged_states(k: int) -> tuple[Pairs, int]:
    """Pairs of merged sketches, one of whose parts saw one event less; both orders.

    All streams of at most 4 events over k + 2 items, merged with all states that such streams reach.
    """
    make = partial(MisraGries, k, seed=SEED)
    table = states_of_short_streams(make, range(k + 2), 4 if k < 3 else 3, counters_of)
    examples = dict(zip(table.states, table.examples, strict=True))

    @cache
    def merge(a: Counters, b: Counters) -> Counters:
        sketches = make(), make()
        for sketch, state in zip(sketches, (a, b), strict=True):
            sketch.update(list(examples[state]))
        sketches[0].merge(sketches[1])
        return counters_of(sketches[0])

    pairs, _ = table.neighbours()
    # Only the counters matter to a merge: one state for each set of them.
    parts = list({tuple(c for c in state.counts if c[1]): state for state in table.states}.values())
    found = set()
    for (first, second), part in product(pairs, parts):
        found.add((merge(first, part), merge(second, part)))
        found.add((merge(part, first), merge(part, second)))
    return sorted(found, key=repr), 2 * len(pairs) * len(parts)


# ---- the lemmas --------------------------------------------------------------------------------------------------


def _apart(
    first: Counters, second: Counters, k: int
) -> tuple[list[tuple[int, int]], list[int], list[int], dict[Any, int], dict[Any, int]]:
    """Counters of common keys that differ, those that one state alone has (largest first), and all of both.

    Free counters stand for keys of count 0 that nobody sees, used up in order.
    """
    a, b = ({**dict(s.counts), **{("free", i): 0 for i in range(len(s.counts), k)}} for s in (first, second))
    common = [(a[key], b[key]) for key in a.keys() & b.keys()]
    mine = sorted((a[key] for key in a.keys() - b.keys()), reverse=True)
    theirs = sorted((b[key] for key in b.keys() - a.keys()), reverse=True)
    return common, mine, theirs, a, b


def lemma_8_state(first: Counters, second: Counters, k: int) -> str | None:
    """Which of the six states of [LT] Lemma 8 a pair of Misra-Gries sketches is in; None if in none.

    `second` saw one event less. Unused counters are the paper's dummies, which the kernel uses up in order.
    """
    common, mine, theirs, _, _ = _apart(first, second, k)
    alone = tuple(mine), tuple(theirs)
    decrements = first.offset - second.offset
    if decrements == 1 and all(c == d - 1 for c, d in common):
        return {((), ()): "S1", ((0,), (1,)): "S2"}.get(alone)
    if decrements != 0:
        return None
    higher = [(c, d) for c, d in common if c != d]
    if len(higher) == 1 and higher[0][0] == higher[0][1] + 1:
        return {((), ()): "S3", ((0,), (0,)): "S5"}.get(alone)
    return None if higher else {((1,), (0,)): "S4", ((1, 0), (0, 0)): "S6"}.get(alone)


def space_saving_state(first: Counters, second: Counters, k: int) -> str | None:
    """Which of the four states of [SS] Lemma 4 a pair is in (Corollary 1 follows); None if in none."""
    common, mine, theirs, a, b = _apart(first, second, k)
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


def _changes(first: Counters, second: Counters) -> list[int]:
    a, b = ({key: c for key, c in s.counts if c > 0} for s in (first, second))
    return [a.get(key, 0) - b.get(key, 0) for key in {*a, *b}]


def _one_direction(first: Counters, second: Counters, k: int, most: int) -> bool:
    """Lemmas 17 and 27 of [LT]: positive counters differ by 0 or 1, all in one direction, with keys nested."""
    changes = set(_changes(first, second))
    return changes <= {0, 1} or changes <= {0, -1}


def _as_many_fewer(first: Counters, second: Counters, k: int, most: int) -> bool:
    changes = _changes(first, second)
    return min(changes) >= 0 and 1 <= sum(changes) <= most


@dataclass(frozen=True)
class Kind:
    """A summary of counters, and the lemma about its neighbouring states.

    Args:
        lemma: Its name, with {k} for the number of counters.
        make: An empty summary, from the capacity and the most items of a user.
        states: Pairs of states of short streams and how many were tried, from k, m and how much longer they are.
        holds: Whether the lemma holds for two states of k counters, where so many events may be missing.
        sizes: The k that are tried, for users of m items.
    """

    lemma: str
    make: Callable[[int, int], Any]
    states: Callable[[int, int, int], tuple[Pairs, int]]
    holds: Callable[[Counters, Counters, int, int], object]
    sizes: Callable[[int], Sequence[int]] = lambda m: (1, 2, 3)

    @lru_cache(maxsize=32)  # noqa: B019 - there are five
    def structure(self, m: int, longer: int) -> tuple[Finding, ...]:
        """The lemma, on every pair of short streams."""
        findings = []
        for k in self.sizes(m):
            pairs, tried = self.states(k, m, longer)
            broken = sum(not self.holds(first, second, k, 1) for first, second in pairs)
            findings.append(Finding("structure", self.lemma.format(k=k), "violations", 0, broken, tried))
        return tuple(findings)

    def large_structure(self, pairs: Sequence[tuple[Any, Any]], k: int, most: int) -> Finding:
        """The lemma, on pairs of large summaries."""
        broken = sum(not self.holds(counters_of(one), counters_of(two), k, most) for one, two in pairs)
        return Finding("coupled", "large random streams keep the structure", "violations", 0, broken, len(pairs))


def _merged(k: int, m: int) -> MisraGries:
    """Merged with a sketch of its own, so that counters are full and decrements come from merging, too."""
    sketch, part = MisraGries(k, seed=SEED), MisraGries(k, seed=SEED + 1)
    part.update([item % (3 * k) for item in range(5 * k)])
    sketch.merge(part)
    return sketch


KINDS = {
    "exact": Kind(
        "one count differs by one", lambda k, m: ExactCounts(seed=SEED), _exact_counts, _as_many_fewer, lambda m: (1,)
    ),
    "misra-gries": Kind(
        "LT Lemma 8, k={k}",
        lambda k, m: MisraGries(k, seed=SEED),
        lambda k, m, longer: misra_gries_table(k, longer).neighbours(),
        lambda first, second, k, most: lemma_8_state(first, second, k),
    ),
    "space-saving": Kind(
        "SS Lemma 4, Corollary 1, k={k}",
        lambda k, m: SpaceSaving(k, seed=SEED),
        lambda k, m, longer: space_saving_table(k, longer).neighbours(),
        lambda first, second, k, most: space_saving_state(first, second, k),
    ),
    "merged": Kind("LT Lemma 17, k={k}", _merged, lambda k, m, longer: merged_states(k), _one_direction),
    "users": Kind(
        "LT Lemma 27, k={k}",
        lambda k, m: UserMisraGries(k, m, seed=SEED),
        _users,
        _one_direction,
        lambda m: {1: (1, 2, 3), 2: (2, 3)}.get(m, (3,)),
    ),
}


# ---- large random streams ----------------------------------------------------------------------------------------


def random_pairs(
    make: Callable[[], Any],
    count: int,
    length: int,
    items: int,
    *,
    removed: int = 1,
    distinct: bool = False,
    users: int = 0,
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
    """
    draw, choose = np.random.default_rng(1), random.Random(1)
    weights = 1.0 / np.arange(1, items + 1)
    weights /= weights.sum()
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
            shorter.update(
                [user for place, user in enumerate(stream) if place not in gone] if users else np.delete(stream, gone)
            )
            pairs.append((longer, shorter))
    return pairs
