"""Releases that are histograms (counters, entries, cells, shards): `discreet.central`, and what the papers print of it.

First the lemmas about neighbouring states that the releases rest on, checked on the real kernels: small universes are
exhausted (every stream, every event that may be missing), and beyond them large random streams are compared pair by
pair. The proofs are in the papers. Then what is checked of every release that is a histogram, and of each kind.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import combinations, count, cycle, islice, product
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.central import (
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    Mechanism,
    Merged,
    Offset,
    ReducedMisraGries,
    ShardedOffset,
    Stability,
    Summed,
    UserSketch,
)
from discreet.errors import ParameterError
from discreet.noise import system_source
from discreet.privacy import Budget, User
from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.published import (
    ChanMisraGries,
    GaussianSparseHistogram,
    OracleHeavyHitters,
    PrivateMisraGries,
    PrivateSpaceSaving,
    TextbookMisraGries,
    TrackedOracle,
)
from discreet.published.private_misra_gries import pmg_threshold
from discreet.releases.release import Release
from discreet.summaries import (
    CountMin,
    CountSketch,
    ExactCounts,
    MisraGries,
    RawCounts,
    ShardedMisraGries,
    SpaceSaving,
    Summary,
    UserMisraGries,
)
from discreet_audit import closed_forms as forms
from discreet_audit.closed_forms import Key, NoiseLaw, StatePair
from discreet_audit.core import (
    Audit,
    Effort,
    Finding,
    Twin,
    altered,
    checked,
    claim,
    faults,
    largest,
    never,
    register,
    twin,
)
from discreet_audit.exact import Published, ScriptedSource, apart, neighbouring_streams, published, worst_divergence
from discreet_audit.statistical import ScoredPair, proved

# ---- summaries and their lemmas --------------------------------------------------------------------------------------

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
    """The states of all streams of at most so many symbols: `numbers` has the number of a stream's state.

    A stream is the positions of its symbols. Short ones come first.
    """

    states: list[S]
    numbers: dict[tuple[int, ...], int]

    def neighbours(self) -> tuple[list[tuple[S, S]], int]:
        """The different pairs (state of S, state of S without one of its events), and how many pairs of streams."""
        found = {
            (number, self.numbers[stream[:at] + stream[at + 1 :]])
            for stream, number in self.numbers.items()
            for at in range(len(stream))
        }
        return [(self.states[a], self.states[b]) for a, b in sorted(found)], sum(map(len, self.numbers))

    def streams_of(self, first: S, second: S) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two neighbouring streams that reach these states."""
        a, b = self.states.index(first), self.states.index(second)
        for stream in (stream for stream, number in self.numbers.items() if number == a):
            for shorter in (stream[:at] + stream[at + 1 :] for at in range(len(stream))):
                if self.numbers[shorter] == b:
                    return stream, shorter
        raise ParameterError("no neighbouring streams reach these two states")


def states_of_short_streams(
    make: Callable[[], Summary], symbols: Sequence[Any], length: int, read: Callable[[Any], S]
) -> StateTable[S]:
    """Run every stream of at most `length` symbols through a summary of its own."""
    index: dict[S, int] = {}
    numbers = {}
    for stream in (stream for n in range(length + 1) for stream in product(range(len(symbols)), repeat=n)):
        summary = make()
        summary.update([symbols[place] for place in stream])
        numbers[stream] = index.setdefault(read(summary), len(index))
    return StateTable(list(index), numbers)


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
def short_streams(kind: type[MisraGries] | type[SpaceSaving], k: int, longer: int = 0) -> StateTable[Counters]:
    """Every short stream through a sketch of k <= 3 counters."""
    items, length = _BOXES[k]
    return states_of_short_streams(partial(kind, k, seed=SEED), range(items), length + longer, counters_of)


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
    examples = {table.states[number]: stream for stream, number in reversed(table.numbers.items())}

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
    return apart(*({key: c for key, c in s.counts if c > 0} for s in (first, second)))


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
        holds: Whether the lemma holds for two states of k counters, where this many events may be missing.
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
            findings.append(never(self.lemma.format(k=k), broken, tried))
        return tuple(findings)


def _merged(k: int, m: int) -> MisraGries:
    """Merged with a sketch of its own, so that counters are full and decrements come from merging, too."""
    sketch, part = MisraGries(k, seed=SEED), MisraGries(k, seed=SEED + 1)
    part.update([item % (3 * k) for item in range(5 * k)])
    sketch.merge(part)
    return sketch


SUMMARIES = {
    "exact": Kind(
        "one count differs by one",
        lambda k, m: ExactCounts(seed=SEED),
        lambda k, m, longer: states_of_short_streams(
            partial(ExactCounts, seed=SEED), range(3), 6 + longer, counters_of
        ).neighbours(),
        _as_many_fewer,
        lambda m: (1,),
    ),
    "misra-gries": Kind(
        "LT Lemma 8, k={k}",
        lambda k, m: MisraGries(k, seed=SEED),
        lambda k, m, longer: short_streams(MisraGries, k, longer).neighbours(),
        lambda first, second, k, most: lemma_8_state(first, second, k),
    ),
    "space-saving": Kind(
        "SS Lemma 4, Corollary 1, k={k}",
        lambda k, m: SpaceSaving(k, seed=SEED),
        lambda k, m, longer: short_streams(SpaceSaving, k, longer).neighbours(),
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
        users: If positive, the stream is of users with at most this many items.
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


# ---- releases that are histograms ------------------------------------------------------------------------------------

_NOTHING = -(10**6)  # noise that hides every counter


def items_of(mechanism: Mechanism) -> int:
    """How many events one unit of privacy may have."""
    return mechanism.unit.limit if isinstance(mechanism.unit, User) else 1


def shown_by(release: Release) -> dict[Any, int]:
    """The counts by item."""
    return dict(zip(release.items, release.counts.tolist(), strict=True))


def in_order(release: Release) -> bool:
    """Whether the order says nothing that the items and counts do not: by count, then by item."""
    rows = list(zip(release.counts.tolist(), release.items, strict=True))
    return rows == sorted(rows, key=lambda row: (-row[0], row[1]))


def count_of(item: Any, shown: Published) -> float:
    """The count of one item; very low if it is not listed."""
    return float(dict(shown.counts).get(repr(item), -(10**18)))


@dataclass(frozen=True)
class Listed:
    """Whether one of these items is listed."""

    keys: frozenset[Any]

    def __call__(self, shown: Published) -> float:
        return float(any(item in map(repr, self.keys) for item, _ in shown.counts))


def raised(keys: list[Any], part: float, shown: Published) -> float:
    """The counts of some items, less a part of all counts: Gaussian noise with a part in common, taken out again.

    With a of k counters one higher and sigma^2/sigma'^2 = r it is the likelihood ratio if the part is a/(k+r).
    """
    names = {repr(key) for key in keys}
    return sum(count for item, count in shown.counts if item in names) - part * sum(count for _, count in shown.counts)


def lowered(level: int, shown: Published) -> float:
    """How many listed items are below a level: with Laplace noise, the likelihood ratio of all being one lower."""
    return float(sum(count < level for _, count in shown.counts))


def sum_of(shown: Published) -> float:
    """The published offset, or minus all that is listed: both grow when every counter falls."""
    return float(shown.offset) if shown.offset is not None else -float(sum(count for _, count in shown.counts))


class HistogramAudit(Audit):
    """What is checked of every release that is a histogram. Streams are lists of whole numbers.

    A derived class has `filled`, the summary of a stream; `scored_pairs`, which the runs are made on, with what tells
    them apart; and `runs`, how often each of the two is released.
    """

    hiding = _NOTHING
    """Noise with which one event is not shown."""

    filled: Callable[[Any, Sequence[int]], Any]
    scored_pairs: Callable[[Any, Effort], Iterator[ScoredPair]]
    runs: Callable[[Any, ScoredPair, Effort], int]

    def heavy(self, mechanism: Any) -> list[int]:
        """One item, far above the cut."""
        return [0] * (3 * math.ceil(mechanism.threshold) + 20)

    def streams(self, mechanism: Any) -> Sequence[Sequence[int]]:
        """An item far above the cut, some items, nothing, and one event."""
        heavy = self.heavy(mechanism)
        return heavy, several(getattr(mechanism, "capacity", None)), [], heavy[:1]

    def pair(self, mechanism: Any, name: str, first: Sequence[int], second: Sequence[int], score: Any) -> ScoredPair:
        """Two neighbouring streams."""
        return ScoredPair(name, self.filled(mechanism, first), self.filled(mechanism, second), score)

    def statistical(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Order, repetition, the empty stream; lower bounds on epsilon on the worst kinds of pairs.

        What is drawn is scored, without the last step, which sorts and describes it: more runs in the same time.
        """
        heavy, more, empty, one = (self.filled(mechanism, stream) for stream in self.streams(mechanism))
        yield _plumbing(mechanism, heavy, more, empty, one, self.hiding)
        source = system_source()
        for pair in self.scored_pairs(mechanism, effort):
            runs, both = self.runs(mechanism, pair, effort), (pair.first, pair.second)
            draw = lambda summary: published(mechanism, summary, source)  # noqa: E731
            yield proved(pair.name, claim(mechanism), both, draw, pair.score, runs)


def several(capacity: int | None) -> list[int]:
    """A stream with as many items as fit, up to three, twice each."""
    return [item for item in (2, 1, 0)[: capacity or 3] for _ in range(2)]


def _plumbing(mechanism: Mechanism, summary: Any, more: Any, empty: Any, one: Any, hiding: int) -> Finding:
    """What leaks beside the noise: order, repeated noise, a changed summary, metadata of the empty stream."""
    before = _state(summary)
    # Enough of them that all having the same noise has a chance of 1e-10.
    noise = mechanism.error_model.noise
    equal = NoiseLaw(noise.law, noise.scale).at(0)
    repeats = math.ceil(math.log(1e-10) / math.log(equal)) + 1 if equal < 0.995 else 0
    releases = [mechanism(summary) for _ in range(max(repeats, 20))]
    # Noise that grows and noise that falls along the summary's own order: one of them shows any other order.
    steps = [10**6 * place for place in range(1, 5)]
    scripted = [mechanism(more, ScriptedSource(0, each)) for each in (steps, steps[::-1])]
    # A release that has nothing to show may repeat itself.
    visible = any(len(release) or release.offset is not None for release in releases)
    alike = len({(release.offset, *release.counts.tolist()) for release in releases}) == 1
    # With noise that hides every counter, the empty stream and one event must look alike, metadata included. A noisy
    # length or offset is published too: the event may move it by one, for which the noise on it makes up.
    hidden = mechanism(empty, ScriptedSource(0, hiding)).to_payload()
    shifts = (0,) if mechanism.error_model.offset_noise is None else (0, -1, 1)
    found: dict[str, object] = {
        "the order of the items is not that of the counts": not all(map(in_order, (*releases, *scripted))),
        "repeated releases have the same noise": repeats and visible and alike,
        "releasing changes the summary": _state(summary) != before,
        "the empty stream can be told from one event without looking at counts": all(
            mechanism(one, ScriptedSource(shift, hiding)).to_payload() != hidden for shift in shifts
        ),
        "a release does not say where its noise came from": any(release.guarantee.seeded for release in releases)
        or not scripted[0].guarantee.seeded,
    }
    return faults("order, repetition, empty stream, metadata", found)


def _state(summary: Any) -> Any:
    if isinstance(summary, TrackedOracle):
        return summary.not_private_cells().tobytes(), summary.not_private_counts().to_dict()
    return [part.to_bytes() for part in summary] if isinstance(summary, list) else summary.to_bytes()


# ---- counters --------------------------------------------------------------------------------------------------------

States = dict[StatePair, tuple[Counters, Counters, int] | None]
"""Pairs with the states and the capacity that they come from, where they were found by search."""


@dataclass(frozen=True)
class CounterAudit(HistogramAudit):
    """The four checks of a release of counters.

    Args:
        summary: One of `SUMMARIES`.
        zeros: Whether counters at zero are released too.
        shared: "no", "hidden" (one more noise on all counters), "halves" (the same, both in half counts) or "published"
            (the offset, with its noise).
        literal: The papers' errors and tempting shortcuts, as twins.
    """

    summary: str
    zeros: bool = False
    shared: str = "no"
    literal: Callable[[Any], Iterable[Twin]] = lambda mechanism: ()

    def twins(self, mechanism: Any) -> Iterator[Twin]:
        order = () if getattr(mechanism, "capacity", None) == 1 else (leaked_order(mechanism),)
        yield from (half_the_noise(mechanism), lower_cut(mechanism), *order, *self.literal(mechanism))

    def empty(self, mechanism: Any) -> Any:
        """An empty summary that the mechanism takes."""
        kind = SUMMARIES["misra-gries" if self.summary == "merged" else self.summary]
        return kind.make(_capacity(mechanism), items_of(mechanism))

    def filled(self, mechanism: Any, stream: Sequence[int]) -> Any:
        """The summary of a stream of items (each a user of its own, where users are protected)."""
        summary = self.empty(mechanism)
        summary.update([[item] for item in stream] if self.summary == "users" else np.asarray(stream, np.int64))
        if self.summary == "merged":
            # With an empty sketch: it makes the summary a merged one and changes no counter.
            summary.merge(MisraGries(mechanism.capacity, seed=SEED + 1))
        return summary

    def room(self, mechanism: Any) -> int | None:
        """The public length, where the summary is refused if the stream is longer."""
        return public_length(mechanism) if self.summary == "space-saving" else None

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The lemma about neighbouring states, on every pair of short streams."""
        yield from SUMMARIES[self.summary].structure(items_of(mechanism), effort.length)

    def pairs(self, mechanism: Any, effort: Effort) -> States:
        """Neighbouring pairs of states."""
        k = _capacity(mechanism, 1)
        if self.summary == "exact":
            return dict.fromkeys(_added_by_a_user(mechanism))
        if self.summary == "space-saving":
            return _space_saving_pairs(mechanism, self.room(mechanism) or 60, effort.length)
        found = dict(_misra_gries_pairs(min(k, 3), self.zeros, effort.length))
        # Short streams do not reach a high cut: one counter higher, far above it.
        found[StatePair((Key(_far_above(mechanism) + 1, _far_above(mechanism)),))] = None
        if not self.zeros:
            # One decrement hides k keys of count 1 at once.
            found[StatePair((Key(None, 1, k),), 1)] = None
        return found

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The worst exact delta at the claimed epsilon, and the code against the law."""
        epsilon, delta = claim(mechanism)
        law = mechanism.error_model.noise.law
        noise = NoiseLaw(law, mechanism.scale, min(1e-16, delta * (1e-8 if law == "laplace" else 1e-18)))
        if law == "gaussian":
            yield self._exact_gaussian(mechanism, noise)
        else:
            worst, tried, _ = self.worst(mechanism, noise, effort)
            steps = self._steps(mechanism)
            detail, total = f"one event: {worst:.6g}" if steps > 1 else "", forms.group_delta(worst, epsilon, steps)
            yield checked("worst neighbouring pair", "delta", delta, total, tried, detail)
        wrong, tried = self.conforms(mechanism)
        yield never("the code draws and shows what the law says", wrong, 0, f"{tried} keys")

    def _steps(self, mechanism: Any) -> int:
        """A user of m events is m steps, unless the pairs are those of users already."""
        return 1 if self.summary in ("exact", "users") else items_of(mechanism)

    def worst(
        self, mechanism: Any, noise: NoiseLaw, effort: Effort
    ) -> tuple[float, int, tuple[Counters, Counters, int] | None]:
        """The largest delta over all pairs and both directions, how many, and the states that have it."""
        epsilon = claim(mechanism)[0] / self._steps(mechanism)
        pairs = self.pairs(mechanism, effort)
        largest, found = -1.0, None
        for pair, states in pairs.items():
            delta = max(self._delta(mechanism, one, noise, epsilon) for one in (pair, pair.swapped))
            if delta > largest:
                largest, found = delta, states
        return largest, 2 * len(pairs), found

    def _delta(self, mechanism: Any, pair: StatePair, noise: NoiseLaw, epsilon: float) -> float:
        if self.summary != "space-saving":
            return forms.threshold_delta(pair, noise, mechanism.threshold, epsilon, shared=self.shared != "no")
        cuts = getattr(mechanism, "not_private_cut", None)
        if cuts is not None:  # a literal version, whose cut depends on the private length
            return forms.threshold_delta(pair, noise, (cuts(pair.total), cuts(pair.total - pair.length)), epsilon)
        changed = StatePair(tuple(key for key in pair.keys if key.first != key.second), 0, pair.length, pair.total)
        if mechanism.error_model.offset_noise is None:
            return forms.threshold_delta(changed, noise, mechanism.threshold, epsilon)
        return _noisy_length_delta(mechanism, changed, noise, epsilon)

    def _exact_gaussian(self, mechanism: Any, noise: NoiseLaw) -> Finding:
        epsilon, delta = claim(mechanism)
        most = items_of(mechanism) if self.summary == "exact" else mechanism.capacity
        splits = [(i, j) for i in range(most + 1) for j in range(most + 1 - i) if i + j]
        if most > 6:
            # Far from the ends the divergence changes slowly with the split: look at the ends and at powers of two.
            some = sorted({0, 1, 2, most, *(2**e for e in range(most.bit_length())), *(most - 2**e for e in range(4))})
            splits = [(most - j, j) for j in some if 0 <= j <= most]
        cut = mechanism.threshold
        if self.shared == "halves":
            common = NoiseLaw("gaussian", mechanism.shared_scale, noise.left_out)
            # How many events, or lists, of a unit may be in the sketch.
            steps = int(getattr(mechanism, "parts_per_user", items_of(mechanism)))
            worst = max(forms.shared_split_delta(noise, common, i, j, cut, epsilon, steps) for i, j in splits)
        else:
            worst = max(forms.gaussian_split_delta(noise, i, j, cut, epsilon) for i, j in splits)
        return checked(f"up to {most} counters, isolated or common", "delta", delta, worst, 2 * len(splits))

    def of_shard(self, mechanism: Any, shard: int, number: int) -> list[int]:
        """The smallest items of a shard: of the only one all."""
        return list(range(number))

    def parts(self, summary: Any) -> list[tuple[RawCounts, int]]:
        """The counters and the decrements of every shard."""
        return [(summary.not_private_counts(), counters_of(summary).offset)]

    def conforms(self, mechanism: Any) -> tuple[int, int]:
        """Runs the release itself with chosen noise around the cut: what it shows must be what the law says."""
        shards, capacity = getattr(mechanism, "shards", 1), _capacity(mechanism, 40)
        k = min(capacity, 40 // shards)
        items = [item for shard in range(shards) for item in self.of_shard(mechanism, shard, k)]
        stream = [item for place, item in enumerate(items) for _ in range(place % 4 + 1)][: self.room(mechanism)]
        if self.zeros and capacity == k:
            # One decrement, so that some counters are at zero, and one shard has an offset of its own.
            stream.append(self.of_shard(mechanism, 0, k + 1)[-1])
        summary = self.filled(mechanism, stream)
        model, wrong, tried = mechanism.error_model, 0, 0
        single_law = model.shared or model.offset_noise
        cut_for = getattr(mechanism, "not_private_cut", None)
        threshold = mechanism.threshold if cut_for is None else cut_for(summary.total)
        for single in (-2, 0, 3):
            turns, offsets, expected = [], [], {}
            for shard, (raw, alpha) in enumerate(self.parts(summary)):
                stored = self.zeros | (raw.counts > 0)
                base, offset = raw.counts[stored], None
                if self.shared == "published":
                    base, offset = base + alpha, alpha + single
                elif self.shared == "hidden":
                    base = base + single
                elif self.summary == "space-saving" and model.offset_noise is not None:
                    offset = (summary.total + single) // capacity
                # Around the cut in steps of one, so that > in place of >= shows.
                around = np.arange(len(base)) % 5 - 2
                each = threshold + (offset or 0) - base + around
                noisy = base + each
                if self.shared == "halves":
                    each = 2 * (threshold - base) - single + around
                    # Halves go to the even number.
                    noisy = np.array([round(Fraction(int(v), 2)) for v in 2 * base + each + single], np.int64)
                places = zip(np.flatnonzero(stored).tolist(), noisy.tolist(), around, strict=True)
                expected.update({raw.items[at].as_py(): (value, shard) for at, value, step in places if step >= 0})
                turns.append(each)
                offsets.append(offset)
                tried += len(base)
            source = ScriptedSource(single, turns=turns)
            release = mechanism(summary, source)
            of = [0] * len(release) if release.shards is None else release.shards.tolist()
            rows = zip(release.counts.tolist(), of, strict=True)
            wrong += dict(zip(release.items, rows, strict=True)) != expected
            wrong += [*(release.shard_offsets or [release.offset])] != offsets
            for draw in source.draws:
                declared = single_law if draw.size is None else model.noise
                wrong += declared is None or (draw.law, draw.scale) != (declared.law, declared.scale)
            drawn = [draw.size for draw in source.draws if draw.size is not None]
            wrong += drawn != [len(each) for each in turns]
            wrong += sum(draw.size is None for draw in source.draws) != shards * (single_law is not None)
        return wrong, tried

    def heavy(self, mechanism: Any) -> list[int]:
        """One item, far above the cut, as often as there is room for."""
        room = self.room(mechanism)
        return super().heavy(mechanism) if room is None else [0] * (room - 1)

    def runs(self, mechanism: Any, pair: ScoredPair, effort: Effort) -> int:
        """What hides new keys shows in few runs if it is broken; exact counts take least time."""
        many = min((4 if self.summary == "exact" else 2) * effort.runs, 40_000)
        some = effort.runs // 2 if isinstance(pair.score, Listed) else many
        return max(300, some // max(1, _capacity(mechanism, 1) // 32))

    def scored_pairs(self, mechanism: Any, effort: Effort) -> Iterator[ScoredPair]:
        """One counter, all counters, and a new key."""
        heavy, m, k = self.heavy(mechanism), items_of(mechanism), getattr(mechanism, "capacity", None)
        more = m if self.summary != "users" else 1
        if self.room(mechanism) is not None:
            heavy = heavy[: len(heavy) + 1 - more]
        same = 1 if getattr(mechanism, "distinct", False) else more
        yield self.pair(mechanism, "one counter higher", heavy + [0] * same, heavy, partial(count_of, 0))
        if self.summary in ("misra-gries", "merged", "users") and k is not None:
            full = [item for item in range(k) for _ in range(len(heavy))]
            gone = [k + extra for extra in range(more)]
            apart = self.shared == "no" and _is_laplace(mechanism)
            score = partial(lowered, len(heavy)) if apart else sum_of
            yield self.pair(mechanism, "every counter lower", full + gone, full, score)
            if self.shared == "halves":
                yield self._some_higher(mechanism, full)
        states = None
        if self.summary == "misra-gries" and k is not None and k <= 3 and _is_laplace(mechanism):
            states = self.worst(mechanism, NoiseLaw("laplace", mechanism.scale, 1e-16), effort)[2]
        if states is not None and states[2] == k:
            alone = {key for key, _ in states[0].counts} - {key for key, _ in states[1].counts}
            streams = short_streams(MisraGries, k, effort.length).streams_of(*states[:2])
            yield self.pair(mechanism, "worst pair of the search", *streams, Listed(frozenset(alone)))
        elif self.summary != "space-saving":
            yield self.pair(mechanism, "one key appears", heavy + [1] * same, heavy, Listed(frozenset([1])))

    def _some_higher(self, mechanism: Any, full: list[int]) -> ScoredPair:
        """Some counters higher and the others not: what the shared noise hides least."""
        k, m = mechanism.capacity, items_of(mechanism)
        first, second = (self.filled(mechanism, full) for _ in range(2))
        higher = list(range(min(m, k))) if self.summary == "users" else [0]
        first.update([higher] if self.summary == "users" else np.asarray(higher * m, np.int64))
        part = len(higher) / (k + float(mechanism.scale / mechanism.shared_scale) ** 2)
        return ScoredPair("some counters higher", first, second, partial(raised, higher, part))

    def coupled(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Large random neighbours with the same noise: how far apart are the releases?"""
        pairs = self.large_pairs(mechanism, effort)
        yield self.large_structure(mechanism, pairs)
        declared = 1.0
        if _is_laplace(mechanism):
            declared = float(mechanism.scale * _epsilon_of_noise(mechanism) / self._steps(mechanism))
        level = 30_000 + int(mechanism.threshold)
        script = ScriptedSource(0, level * (2 if self.shared == "halves" else 1))
        some = pairs[:: max(1, len(pairs) // effort.released_pairs)]
        worst = max(self._distance(*(mechanism(summary, script) for summary in pair)) for pair in some)
        yield checked("sensitivity of what is released", "sensitivity", declared, worst, len(some))

    def large_pairs(self, mechanism: Any, effort: Effort) -> list[tuple[Any, Any]]:
        """Summaries of large random neighbouring streams."""
        k, m = _capacity(mechanism, 16), items_of(mechanism)
        length = min(20_000, max(1000, 20 * k), self.room(mechanism) or 20_000)
        count = effort.large_pairs if k <= 64 else effort.large_pairs // 5
        return _large_pairs(self.summary, k, m, bool(getattr(mechanism, "distinct", False)), length, count)

    def large_structure(self, mechanism: Any, pairs: list[tuple[Any, Any]]) -> Finding:
        """How many of the pairs break the lemma."""
        holds, k, most = SUMMARIES[self.summary].holds, _capacity(mechanism, 16), items_of(mechanism)
        broken = (not holds(counters_of(one), counters_of(two), k, most) for one, two in pairs)
        return never("large random streams keep the structure", broken)

    def _distance(self, first: Release, second: Release) -> float:
        """How far apart two releases with the same noise are, in the norm that the noise is for."""
        a, b = shown_by(first), shown_by(second)
        changes = [a[key] - b[key] for key in a.keys() & b.keys()]
        if first.error_model.noise.law == "gaussian":
            opposed = bool(changes) and min(changes) < 0 < max(changes)
            return math.inf if opposed else float(max(map(abs, changes), default=0))
        moved = abs((first.offset or 0) - (second.offset or 0)) if self.shared == "published" else 0
        # With a hidden shared noise, all counters may move by one at the price of one.
        shifts = (-2, -1, 0, 1, 2) if self.shared == "hidden" else (0,)
        return float(min(abs(s) + sum(abs(change - s) for change in changes) for s in shifts) + moved)


def _capacity(mechanism: Mechanism, otherwise: int = 0) -> int:
    return getattr(mechanism, "capacity", None) or otherwise


def _is_laplace(mechanism: Mechanism) -> bool:
    return mechanism.error_model.noise.law == "laplace"


def _epsilon_of_noise(mechanism: Any) -> Fraction:
    """The part of epsilon that the counters' noise is for."""
    epsilon, length = Fraction(claim(mechanism)[0]), mechanism.error_model.offset_noise
    if length is None or getattr(mechanism, "stream_length", None) != "noisy":
        return epsilon
    return epsilon - Fraction(items_of(mechanism)) / Fraction(length.scale)


@lru_cache(maxsize=16)
def _misra_gries_pairs(most: int, zeros: bool, longer: int) -> States:
    """The different pairs of Misra-Gries states with up to `most` counters, examples from the largest."""
    found: States = {}
    for k in range(most, 0, -1):
        for first, second in short_streams(MisraGries, k, longer).neighbours()[0]:
            pair = state_pair(first, second, zeros=zeros)
            # Given the offset, keys of equal counter plus offset have one law.
            keys = tuple(
                key
                for key in pair.keys
                if key.first is None or key.second is None or key.first + pair.offset != key.second
            )
            found.setdefault(StatePair(keys, pair.offset), (first, second, k))
    return found


def _far_above(mechanism: Mechanism) -> int:
    return 3 * int(mechanism.threshold) + 20


def _added_by_a_user(mechanism: Stability) -> Iterator[StatePair]:
    """How the counts of new and of common items can move when a user of m events is added to exact counts."""
    m, distinct = items_of(mechanism), getattr(mechanism, "distinct", False)

    def parts(left: int, largest: int) -> Iterator[tuple[int, ...]]:
        yield ()
        for part in range(min(left, largest), 0, -1):
            for rest in parts(left - part, part):
                yield (part, *rest)

    for new in parts(m, 1 if distinct else m):
        left = m - sum(new)
        moves = [1] * left if distinct else [left] * bool(left)
        for base in (1, int(mechanism.threshold), _far_above(mechanism)):
            yield StatePair((*(Key(c, None) for c in new), *(Key(base + move, base) for move in moves)))


def _space_saving_pairs(mechanism: PrivateSpaceSaving, room: int, longer: int) -> States:
    """Pairs of SpaceSaving states, all counters raised alike to where the mechanism's length puts them."""
    k = min(mechanism.capacity, 3)
    found: States = {}
    for first, second in short_streams(SpaceSaving, k, longer).neighbours()[0]:
        if first.total > room or len(first.counts) < k or len(second.counts) < k:
            continue
        # The counters that the small sketch does not have are at its minimum.
        others = (mechanism.capacity - k) * min(c for _, c in second.counts)
        raised = (room - first.total - others) // mechanism.capacity
        if raised >= 0:
            keys = tuple(key.moved(raised) for key in state_pair(first, second).keys)
            found[StatePair(keys, 0, 1, first.total + others + raised * mechanism.capacity)] = None
    found.update(dict.fromkeys(_near_the_cut(mechanism, room)))
    found[StatePair((Key(3 * room + 1, 3 * room),), 0, 1, room)] = None
    return found


def _near_the_cut(mechanism: PrivateSpaceSaving, room: int) -> Iterator[StatePair]:
    """States with some counters around the cut: only their own cut tells two lengths apart."""
    k = mechanism.capacity
    cut = int(mechanism.threshold) + (room // k if mechanism.error_model.offset_noise is not None else 0)
    for total in range(max(room - k, 1), room + 1) if k > 1 else ():
        for high in range(cut - 3, cut + 3):
            # More than three at the cut make no difference to whether two lengths can be told apart.
            for many in range(1, min(k - 1, 3) + 1):
                last = (total - high * many) // (k - many)
                if 1 < last <= high:
                    yield StatePair((Key(high, high, many), Key(last, last - 1)), 0, 1, total)


def _noisy_length_delta(mechanism: PrivateSpaceSaving, pair: StatePair, noise: NoiseLaw, epsilon: float) -> float:
    """With the length's noise: the published offset is floor((n + Z_n)/k), and the cut is relative to it."""
    length = mechanism.error_model.offset_noise
    assert length is not None
    law = NoiseLaw(length.law, length.scale, noise.left_out)
    k = mechanism.capacity
    totals = (pair.total, pair.total - pair.length)
    total = 0.0
    for offset in range((min(totals) - law.reach) // k, (max(totals) + law.reach) // k + 1):
        # P[offset k <= n + Z < (offset + 1) k]
        start = [max(0.0, law.shown(offset * k - n) - law.shown((offset + 1) * k - n)) for n in totals]
        cut = offset + mechanism.threshold
        total += forms.divergence(pair.keys, noise, (cut, cut), math.exp(epsilon), (start[0], start[1]))
    return total + 2.0 * (len(pair.keys) + 1) * noise.left_out


@lru_cache(maxsize=16)
def _large_pairs(summary: str, k: int, m: int, distinct: bool, length: int, count: int) -> list[tuple[Any, Any]]:
    make, removed = partial(SUMMARIES[summary].make, k, m), m if summary == "exact" else 1
    users = m if summary == "users" else 0
    length = length // 4 if users else length
    return random_pairs(make, count, length, 4 * k + 10, removed=removed, distinct=distinct, users=users)


# ---- entries ---------------------------------------------------------------------------------------------------------

Entries = ReducedMisraGries | ChanMisraGries | Summed


def reduced(state: Counters, k: int) -> dict[Any, int]:
    """[LT] Algorithm 3 in units of 1/(k+1), from the definition: max(0, (k+1) c - sum c)."""
    total = sum(c for _, c in state.counts)
    return {key: y for key, c in state.counts if (y := (k + 1) * c - total) > 0}


@dataclass(frozen=True)
class EntriesAudit(HistogramAudit):
    """The four checks of a release of entries.

    Args:
        reduces: Whether the sketch's sensitivity is reduced first (and small entries are rounded, without a universe).
        parts: Whether a list of sketches is released.
    """

    reduces: bool
    parts: bool = False

    def prepare(self, mechanism: Entries) -> Entries:
        """The same with a universe of numbers from 0: names make no difference to privacy."""
        return mechanism if mechanism.universe is None else replace(mechanism, universe=range(mechanism.universe.size))

    def twins(self, mechanism: Entries) -> Iterator[Twin]:
        yield half_the_noise(mechanism)
        if mechanism.universe is None:
            # Over a universe the cut protects nobody: every item has noise.
            yield lower_cut(mechanism)
            if self.reduces and mechanism.capacity > 1:
                # [LT] section 6 without its probabilistic rounding: k entries may turn positive at once.
                yield twin(mechanism, "small entries not rounded", before_noise=lambda self, entries, source: entries)
        if mechanism.sensitivity > 1:
            yield twin(mechanism, "noise for a sensitivity of 1", scale=mechanism.scale / mechanism.sensitivity)
        if mechanism.capacity > 1:
            yield leaked_order(mechanism)

    @property
    def _counters(self) -> CounterAudit:
        return CounterAudit("misra-gries" if self.reduces else "merged")

    def filled(self, mechanism: Entries, stream: Sequence[int]) -> Any:
        """The summary of a stream, or the list of sketches of which it is the first part."""
        sketch = MisraGries(mechanism.capacity, seed=SEED)
        sketch.update(np.asarray(stream, np.int64))
        if not isinstance(mechanism, Summed):
            return sketch
        others = [MisraGries(mechanism.capacity, seed=SEED + 1 + i) for i in range(mechanism.sketches - 1)]
        for other in others:
            other.update(np.asarray([0, 0, 1], np.int64))
        return [sketch, *others]

    def structure(self, mechanism: Entries, effort: Effort) -> Iterator[Finding]:
        """The lemma about the sketch's states, and the sensitivity that follows."""
        yield from self._counters.structure(mechanism, effort)
        yield from _entry_sensitivities(self.reduces, effort.length)

    def pairs(self, mechanism: Entries, effort: Effort) -> list[StatePair]:
        """Neighbouring pairs of entries; for more than 3 counters the extreme ones."""
        k = mechanism.capacity
        if not self.reduces:
            # Up to k counters higher by one: isolated, at the cut, or far above it.
            cut = 1 if mechanism.universe is not None else int(mechanism.threshold)
            extreme = [StatePair((Key(1, None, k),)), StatePair((Key(1, None, k - 1), Key(cut + 1, cut)))]
            few = [StatePair((Key(2 * cut + 1, 2 * cut, min(k, 3)),))]
            return [*extreme, *(few if k <= 3 else []), StatePair((Key(cut + 1, cut),))]
        far = 3 * round(Fraction(mechanism.threshold) / mechanism.step)
        if k > 3:
            pairs = [StatePair((Key(k, 0),)), StatePair((Key(1, 0, k),)), StatePair((Key(k, 0), Key(0, 1, k - 1)))]
        else:
            pairs = list(_reduced_pairs(k, self.parts, effort.length))
        # Short streams do not reach a high cut: the same move with one counter far above it.
        raised = ([key.moved(far) if key.first and key.second else key for key in pair.keys] for pair in pairs if k < 3)
        return [*pairs, StatePair((Key(far + k, far),)), *(StatePair(tuple(keys)) for keys in raised)]

    def exact(self, mechanism: Entries, effort: Effort) -> Iterator[Finding]:
        """The worst exact epsilon or rho (over a universe) or delta, and the code against the law."""
        pairs, (epsilon, delta), m = self.pairs(mechanism, effort), claim(mechanism), items_of(mechanism)
        rho = mechanism.budget.rho
        if rho is not None:
            farthest = max(forms.squared_distance(pair) for pair in pairs) if self.reduces else mechanism.capacity
            lost = float(m * m * farthest / (2 * Fraction(mechanism.scale) ** 2))
            yield checked("l2-distance over sigma", "rho", rho * (1.0 + 1e-12), lost, len(pairs))
        else:
            # What common entries lose; with a threshold, what they lose far above it.
            loss = max(forms.pure_loss(pair, mechanism.scale) for pair in pairs)
            if not self.reduces:
                loss = float(mechanism.capacity / Fraction(mechanism.scale))
            yield checked("l1-distance over the scale", "epsilon", epsilon, m * loss, len(pairs))
        if mechanism.universe is None:
            noise = NoiseLaw("laplace", mechanism.scale, min(1e-16, delta * 1e-8))
            step = epsilon if self.reduces else epsilon / m
            worst = max(self._delta(mechanism, noise, one, step, m) for pair in pairs for one in (pair, pair.swapped))
            total = worst if self.reduces else forms.group_delta(worst, epsilon, m)
            yield checked("worst neighbouring pair", "delta", delta, total, 2 * len(pairs))
        elif mechanism.universe.size <= 4 and mechanism.capacity <= 2 and epsilon >= 1.5 and not self.parts and m == 1:
            # Every branch of the real code on every short stream over the universe.
            streams = neighbouring_streams(range(mechanism.universe.size), 2)
            found = worst_divergence(mechanism, partial(self.filled, mechanism), streams, epsilon, cutoff=1e-4)
            yield checked("every branch of the code, least delta", "delta", delta, found.lower, 0, "length <= 2")
        yield self._conforms(mechanism)

    def _delta(self, mechanism: Entries, noise: NoiseLaw, pair: StatePair, epsilon: float, m: int) -> float:
        cut = round(Fraction(mechanism.threshold) / mechanism.step)
        if not self.reduces:
            return forms.threshold_delta(pair, noise, cut, epsilon)
        if m > 1:
            # m steps that add up in one entry: the farthest that a user can move it.
            pair = StatePair(tuple(Key((key.first or 0) * m, (key.second or 0) * m, key.times) for key in pair.keys))
        return forms.threshold_delta(pair, noise, cut, epsilon, least=mechanism.sensitivity)

    def _conforms(self, mechanism: Entries) -> Finding:
        """Runs the release itself with chosen noise around the cut: what it shows must be what the law says."""
        k, D = min(mechanism.capacity, 12), mechanism.sensitivity
        u = mechanism.step.denominator
        cut = round(Fraction(mechanism.threshold) * u)
        wrong = 0
        for uniform, shift in product((0, D // 2, D - 1), range(5)):
            # All but one of the entries are small, so that rounding shows.
            least = 3 if mechanism.capacity == k else 1
            summary = self.filled(mechanism, [item for item in range(k) for _ in range(least + (item == 0))])
            entries = self._entries(mechanism, summary)
            if mechanism.universe is None and self.reduces:
                kept = entries[1] > min(uniform, D - 1)
                shown_items = [item for item, keep in zip(entries[0], kept, strict=True) if keep]
                entries = shown_items, np.maximum(entries[1][kept], D)
            items, values = entries
            each = cut - values + (np.arange(len(values)) + shift) % 5 - 2
            source = ScriptedSource(0, each if len(each) else 0, uniform)
            release = mechanism(summary, source)
            noisy = values + each
            shown = sorted((-int(v), item) for item, v in zip(items, noisy, strict=True) if v >= cut)
            if mechanism.universe is not None:
                if not (mechanism.universe.positions(pa.array(items, pa.int64())) >= 0).all():
                    continue
                shown = shown[: mechanism.most_entries]
            expected = {item: (-2 * v + u) // (2 * u) if u > 1 else -v for v, item in shown}
            wrong += shown_by(release) != expected
            wrong += any((draw.law, draw.scale) != (mechanism.law, mechanism.scale) for draw in source.draws)
        return never("the code draws and shows what the law says", wrong)

    def _entries(self, mechanism: Entries, summary: Any) -> tuple[list[Any], Any]:
        """The entries in the order in which the code draws noise for them, values from the definition."""
        order = mechanism.entries(summary).items.to_pylist()
        total: dict[Any, int] = {}
        for sketch in summary if self.parts else [summary]:
            counts = {key: c for key, c in sketch.not_private_counts().to_dict().items() if c > 0}
            state = Counters(tuple(counts.items()), 0, 0)
            for key, y in (reduced(state, mechanism.capacity) if self.reduces else counts).items():
                total[key] = total.get(key, 0) + y
        return order, np.array([total.get(key, -1) for key in order], np.int64)

    def runs(self, mechanism: Entries, pair: ScoredPair, effort: Effort) -> int:
        """Noise for a whole universe takes longer to draw; what hides new keys shows in few runs if it is broken."""
        fewer = (4 if mechanism.universe is not None else 1) * max(1, mechanism.capacity // 32)
        some = effort.runs // 2 if isinstance(pair.score, Listed) else min(2 * effort.runs, 40_000)
        return max(300, some // int(fewer))

    def scored_pairs(self, mechanism: Entries, effort: Effort) -> Iterator[ScoredPair]:
        """One counter, a new key, and all counters: but a reduced sketch loses more by one counter."""
        heavy, m, k = self.heavy(mechanism), items_of(mechanism), mechanism.capacity
        yield self.pair(mechanism, "one counter higher", heavy + [0] * m, heavy, partial(count_of, 0))
        yield self.pair(mechanism, "one key appears", heavy + [1] * m, heavy, Listed(frozenset([1])))
        if not self.reduces:
            full = [item for item in range(k) for _ in range(len(heavy))]
            gone, score = [k + extra for extra in range(m)], partial(lowered, len(heavy))
            yield self.pair(mechanism, "every counter lower", full + gone, full, score)

    def coupled(self, mechanism: Entries, effort: Effort) -> Iterator[Finding]:
        """The distance of what gets the noise, on large random streams."""
        m, rho = items_of(mechanism), mechanism.budget.rho
        spends = claim(mechanism)[0] if rho is None else math.sqrt(2.0 * rho)
        declared = float(mechanism.scale * Fraction(spends) / m) * (1.0 + 1e-12)
        distance = _l1 if rho is None else _l2
        pairs = self._counters.large_pairs(mechanism, effort)
        some = pairs[: max(200, effort.large_pairs // 4)]

        def released(summary: Any) -> dict[Any, int]:
            given: Any = [summary, *self.filled(mechanism, [])[1:]] if self.parts else summary
            entries: dict[Any, int] = mechanism.entries(given).to_dict()
            return entries

        worst = max(distance(released(one), released(two)) for one, two in some)
        yield checked("sensitivity of the entries", "sensitivity", declared, worst, len(some))
        yield self._counters.large_structure(mechanism, pairs)


@lru_cache(maxsize=8)
def _reduced_pairs(k: int, parts: bool, longer: int) -> tuple[StatePair, ...]:
    """The different pairs of reduced entries of neighbouring states; with another sketch's entries added, if summed."""
    others: list[dict[Any, int]] = [{}]
    table = short_streams(MisraGries, k, longer)
    if parts:
        others += [reduced(state, k) for state in table.states[:12]]
    found = set()
    for first, second in table.neighbours()[0]:
        a, b = reduced(first, k), reduced(second, k)
        for other in others:
            keys = {*a, *b}
            values = [(a.get(x, 0) + other.get(x, 0), b.get(x, 0) + other.get(x, 0)) for x in keys]
            found.add(StatePair(tuple(Key(*value) for value in sorted(values) if value[0] != value[1])))
    return tuple(pair for pair in found if pair.keys)


@lru_cache(maxsize=8)
def _entry_sensitivities(reduces: bool, longer: int) -> tuple[Finding, ...]:
    findings = []
    for k in (1, 2, 3):
        if reduces:
            pairs, tried = short_streams(MisraGries, k, longer).neighbours()
            values = [(reduced(first, k), reduced(second, k)) for first, second in pairs]
            worst = max(_l1(*pair) for pair in values)
            lemma, most = f"LT Lemma 16, k={k}, in 1/(k+1)", 2 * k - 1
            length = math.sqrt(k * k + k - 1)
            longest = max(_l2(*pair) for pair in values)
            findings.append(checked(f"{lemma}, l2", "sensitivity", length, longest, tried))
        else:
            pairs, tried = merged_states(k)
            worst = max(_l1(dict(first.counts), dict(second.counts)) for first, second in pairs)
            lemma, most = f"LT Corollary 18, k={k}", k
        findings.append(checked(lemma, "sensitivity", most, worst, tried))
    return tuple(findings)


def _l1(a: dict[Any, int], b: dict[Any, int]) -> int:
    return sum(map(abs, apart(a, b)))


def _l2(a: dict[Any, int], b: dict[Any, int]) -> float:
    return math.hypot(*apart(a, b))


# ---- cells -----------------------------------------------------------------------------------------------------------


def public_length(mechanism: Any) -> int | None:
    """The length, where it is a public number."""
    return mechanism.stream_length if isinstance(mechanism.stream_length, int) else None


class CellsAudit(HistogramAudit):
    """What is checked of heavy hitters from noisy cells, with a cut above all that may be untracked.

    For a public length or a noisy one. A derived class has `changes`: how many cells one event changes, and by how
    much; `failing`: what may go wrong beside the cells for a length, and how it comes about; `length`: the noisy length
    that the code makes; `around`: noise that brings some items around their cut; and `estimates` of items from cells.
    """

    hiding = 0  # signs turn noise that hides into noise that shows: none at all hides one event
    beside = "cells, hashing and noise beyond the cut"
    draws_length = True
    """Whether a noisy length has noise of its own."""
    changes: Callable[[Any], tuple[int, int]]
    failing: Callable[[Any, NoiseLaw, int], tuple[float, str]]
    length: Callable[[Any, Any, Ints, ScriptedSource], int]
    around: Callable[[Any, Any, list[Any], int], Ints]
    estimates: Callable[[Any, Any, list[Any], Ints], Ints]

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """What the cells lose and what may go wrong beside them, summed from the mechanism's own cut and scale."""
        epsilon, delta = claim(mechanism)
        m, (changes, height) = items_of(mechanism), self.changes(mechanism)
        noise = NoiseLaw(mechanism.noise, mechanism.scale, delta * 1e-18)
        length = self.length_noise(mechanism)  # of its own; CountMin reads the length from its cells
        cells, spent = 0.0, 0.0 if length is None else float(m / length.scale)
        if mechanism.noise == "laplace":
            loss = float(m * changes * height / Fraction(mechanism.scale)) + spent
            yield checked("l1-distance of what gets noise, over its scale", "epsilon", epsilon, loss)
        elif m == height == 1:
            cells = forms.gaussian_split_delta(noise, 0, changes, 10**9, epsilon - spent)
        else:  # what the mechanism reserves: the shift is not a lattice sum
            cells = mechanism.deltas.gaussian
        public = public_length(mechanism)
        short = 0.0 if public is not None else self.too_short(mechanism, noise, length)
        lengths = (10, 400, 10_000) if public is None else (public,)  # some that a noisy one may turn out to be
        worst, how = max(self.failing(mechanism, noise, n) for n in lengths)
        total = cells + worst + (1.0 + math.exp(epsilon)) * short
        yield checked(self.beside, "delta", delta, total, 1, f"cells {cells:.3g}, length {short:.3g}, {how}")
        yield never("the code draws and shows what the law says", self.conforms(mechanism))

    def too_short(self, mechanism: Any, noise: NoiseLaw, length: NoiseLaw | None) -> float:
        """The chance that a noisy length is below the true one, from how much the code adds to it."""
        summary = self.filled(mechanism, [0] * 100)
        added = self.length(mechanism, summary, summary.not_private_cells(), ScriptedSource()) - summary.total
        if length is not None:
            return length.hidden(-added)
        # The cells sum to d n and d w noises; ceil((sum + bound)/d) - n = added, so noises below -d added fall short.
        return forms.noise_sum_below(noise, mechanism.depth * mechanism.width, -mechanism.depth * added)

    def conforms(self, mechanism: Any) -> int:
        """How often the release with chosen noise is not what the law says."""
        wrong, noisy_length = 0, public_length(mechanism) is None
        summary = self.filled(mechanism, several(mechanism.capacity))
        items, true = summary.not_private_counts().items.to_pylist(), summary.not_private_cells()
        for shift in range(3):
            # Cells around the cut, in steps of one.
            noise = self.around(mechanism, summary, items, shift).reshape(true.shape)
            source, same = (ScriptedSource(0, noise.ravel().tolist()) for _ in range(2))
            release, cells = mechanism(summary, source), true + noise
            if noisy_length:
                offset = mechanism.untracked(self.length(mechanism, summary, cells, same))
                # Beside what may be untracked, a cut may be above all that nobody wants to see.
                wrong += release.offset < offset if hasattr(mechanism, "margin") else release.offset != offset
            cut = mechanism.threshold + (release.offset or 0)
            estimates = zip(items, self.estimates(mechanism, summary, items, cells).tolist(), strict=True)
            wrong += shown_by(release) != {item: value for item, value in estimates if value >= cut}
            of_cells, *others = [(draw.law, draw.scale, draw.size) for draw in source.draws]
            wrong += of_cells != (mechanism.noise, mechanism.scale, true.size)
            wrong += len(others) != (self.draws_length and noisy_length)
        return wrong

    def length_noise(self, mechanism: Any) -> NoiseLaw | None:
        """The law of the noise on the length, as it is drawn."""
        source = ScriptedSource()
        mechanism(self.filled(mechanism, [0]), source)
        if len(source.draws) == 1:
            return None
        return NoiseLaw(source.draws[1].law, source.draws[1].scale, claim(mechanism)[1] * 1e-18)

    def heavy(self, mechanism: Any) -> list[int]:
        """One item, as often as there is room for."""
        return [0] * ((public_length(mechanism) or 4000) - items_of(mechanism))

    def streams(self, mechanism: Any) -> Sequence[Sequence[int]]:
        """Two items far above the cut, some items, and two streams that differ in one event.

        A noisy length tells one event from none as well as its noise allows: there, two events of different items.
        """
        heavy = self.heavy(mechanism)
        two = len(heavy) * 49 // 100
        neighbours = ([], [0]) if public_length(mechanism) is not None else ([0], [1])
        return [0] * two + [1] * (len(heavy) - two), several(mechanism.capacity), *neighbours

    def runs(self, mechanism: Any, pair: ScoredPair, effort: Effort) -> int:
        """Noise for all cells takes long to draw."""
        return min(effort.runs // 2, 5000)

    def scored_pairs(self, mechanism: Any, effort: Effort) -> Iterator[ScoredPair]:
        heavy = self.heavy(mechanism)
        yield self.pair(mechanism, "one item higher", heavy + [0] * items_of(mechanism), heavy, partial(count_of, 0))


Linear = CountMinHeavyHitters | CountSketchHeavyHitters


def largest_untracked(n: int, k: int, g: int, median: bool) -> int:
    """The largest estimate of an item that is not tracked, if no estimate errs by more than g.

    docs/privacy/sketch-heavy-hitters.md: (n + k g)/(k+1) + g, with 2 k g for CountSketch, which errs to both sides.
    """
    return (n + (2 if median else 1) * k * g) // (k + 1) + g


@dataclass(frozen=True)
class LinearAudit(CellsAudit):
    median: bool
    draws_length = property(lambda self: self.median)

    def twins(self, mechanism: Linear) -> Iterator[Twin]:
        yield half_the_noise(mechanism)
        length, k = mechanism.stream_length, mechanism.capacity
        if length == "noisy":
            # The cut is above what may be untracked, by what the noise of a cell reaches.
            yield twin(mechanism, "half the margin for noise", threshold=mechanism.threshold // 2)
            yield length_without_margin(mechanism)
            return
        # [SS] Algorithm 5 with a cut of n/k: neither the sketch's error nor the noise keeps untracked items below it.
        yield twin(mechanism, "cut at n/k, without the errors", threshold=int(length) // k)
        # There is no order to leak unless two items can be above the cut at once.
        if k > 1 and mechanism.threshold < 0.48 * int(length):
            yield leaked_order(mechanism)

    def filled(self, mechanism: Linear, stream: Sequence[int]) -> Any:
        kind: Any = CountSketch if self.median else CountMin
        shape = {"tracked": mechanism.capacity, "max_key_bytes": mechanism.max_key_bytes, "seed": SEED}
        sketch = kind(mechanism.width, mechanism.depth, **shape)
        sketch.update(np.asarray(stream, np.int64))
        return sketch

    def structure(self, mechanism: Linear, effort: Effort) -> Iterator[Finding]:
        """One event moves one cell of every row by one, on every pair of short streams."""
        l1, l2, tried = _cell_sensitivities(self.median, effort.length)
        yield checked("cells of 3 rows, l1", "sensitivity", 3.0, l1, tried)
        yield checked("cells of 3 rows, l2", "sensitivity", math.sqrt(3.0), l2, tried)

    def changes(self, mechanism: Linear) -> tuple[int, int]:
        """One cell of every row, by one."""
        return mechanism.depth, 1

    def length(self, mechanism: Linear, summary: Any, cells: Ints, source: ScriptedSource) -> int:
        return mechanism.noisy_length(summary, cells, source)

    def failing(self, mechanism: Linear, noise: NoiseLaw, n: int) -> tuple[float, str]:
        """What hashing and noise do, for the most favourable error g at this length."""
        cut = mechanism.threshold
        if public_length(mechanism) is None:
            cut += mechanism.untracked(n)
        k, most = mechanism.capacity, 0
        while most < n and largest_untracked(n, k, most + 1, self.median) < cut:
            most += 1
        failing, g = min(self._failing(mechanism, noise, g, n, cut) for g in range(most + 1))
        return failing, f"errors up to {g}, n={n}, {mechanism.depth} x {mechanism.width} cells"

    def _failing(self, mechanism: Linear, noise: NoiseLaw, g: int, n: int, cut: int) -> tuple[float, int]:
        """P[hashing errs by more than g] + (1 + e^epsilon) P[noise passes the cut], bounded as in the argument.

        With a noisy length the hashing may fail either stream on its own.
        """
        d, w = mechanism.depth, mechanism.width
        public = public_length(mechanism) is not None
        items = n + (0 if public else items_of(mechanism))
        q = 0.0 if g >= n else min(1.0, n * math.ceil(2**32 / w) / 2**32 / (g + 1))
        needed = (d + 1) // 2 if self.median else d
        rows = math.fsum(math.comb(d, j) * q**j * (1.0 - q) ** (d - j) for j in range(needed, d + 1))
        hashing = min(1.0, items * rows + items**2 / 2 * ((mechanism.max_key_bytes / 7 + 2) / 2**61) ** 2)
        margin = cut - largest_untracked(n, mechanism.capacity, g, self.median)
        passes = min(1.0, (2 if self.median else 1) * d * w * noise.shown(margin))
        return (1.0 if public else 2.0) * hashing + (1.0 + math.exp(claim(mechanism)[0])) * passes, g

    def around(self, mechanism: Linear, summary: Any, items: list[Any], shift: int) -> Ints:
        """With the sign that lifts the first item."""
        columns, signs = summary.places(items)
        noise = np.full((mechanism.depth, mechanism.width), mechanism.threshold - 3 + shift)
        noise[np.arange(mechanism.depth), columns[0]] *= signs[0]
        return noise

    def estimates(self, mechanism: Linear, summary: Any, items: list[Any], cells: Ints) -> Ints:
        """The smallest row, or the middle one."""
        columns, signs = summary.places(items)
        values = signs * cells[np.arange(mechanism.depth), columns]
        return np.asarray(np.median(values, axis=1) if self.median else values.min(axis=1)).astype(np.int64)

    def coupled(self, mechanism: Linear, effort: Effort) -> Iterator[Finding]:
        """The distance of the cells, in the norm of the noise, on large random streams."""
        epsilon, m = claim(mechanism)[0], items_of(mechanism)
        pairs = random_pairs(lambda: self.filled(mechanism, []), effort.large_pairs // 4, 2000, 300)
        laplace, length = mechanism.noise == "laplace", self.length_noise(mechanism)
        epsilon -= 0.0 if length is None else float(m / length.scale)
        declared = math.sqrt(mechanism.depth)
        if laplace:
            declared = float(mechanism.scale * Fraction(epsilon)) / m * (1 + 1e-12)
        apart = ((first.not_private_cells() - second.not_private_cells()).ravel() for first, second in pairs)
        moved = (float(np.abs(each).sum() if laplace else np.sqrt((each * each).sum())) for each in apart)
        yield largest(f"{'l1' if laplace else 'l2'}-sensitivity of the cells", declared, moved)


@lru_cache(maxsize=4)
def _cell_sensitivities(median: bool, longer: int) -> tuple[float, float, int]:
    """(l1, l2, pairs): the largest distances of the cells of neighbours, 3 rows of 3 cells, 4 items."""
    kind: Any = CountSketch if median else CountMin

    def cells(sketch: Any) -> tuple[int, ...]:
        return tuple(sketch.not_private_cells().ravel().tolist())

    table = states_of_short_streams(lambda: kind(3, 3, seed=SEED), range(4), 6 + longer, cells)
    pairs, tried = table.neighbours()
    moved = np.array([np.subtract(first, second) for first, second in pairs])
    return float(np.abs(moved).sum(axis=1).max()), float(np.sqrt((moved**2).sum(axis=1)).max()), tried


# ---- shards ----------------------------------------------------------------------------------------------------------

_FEW_COUNTERS = 2  # in all shards together: then the law of the whole release is written out
_CUTOFF = 1e-6


class ShardedAudit(CounterAudit):
    """The checks of one offset release, on the shard that changes; and that no other shard does."""

    def __init__(self) -> None:
        super().__init__("misra-gries", True, "published")

    def empty(self, mechanism: Any) -> Any:
        return ShardedMisraGries(mechanism.capacity, mechanism.shards, seed=SEED)

    def filled(self, mechanism: Any, stream: Sequence[int]) -> Any:
        if getattr(mechanism, "not_private_rows", False):
            # Each row is counted in the shard of its turn, under a name of its item that belongs there.
            shard_of, turns = self.empty(mechanism).shard_of, zip(stream, cycle(range(mechanism.shards)), strict=False)
            stream = [next(name for name in count(item << 20) if shard_of(name) == turn) for item, turn in turns]
        return super().filled(mechanism, stream)

    def twins(self, mechanism: Any) -> Iterator[Twin]:
        yield from super().twins(mechanism)
        yield twin(mechanism, "shards by row, each with the whole budget", not_private_rows=True)

    def of_shard(self, mechanism: Any, shard: int, number: int) -> list[int]:
        where = self.empty(mechanism)
        return list(islice((item for item in count() if where.shard_of(item) == shard), number))

    def _universe(self, mechanism: Any) -> list[int]:
        """Two items of each of two shards (or of the only one)."""
        return [item for shard in range(min(2, mechanism.shards)) for item in self.of_shard(mechanism, shard, 2)]

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Lemma 8 for a sketch, and that one event concerns one shard."""
        yield from super().structure(mechanism, effort)
        yield self._short_streams(mechanism, effort)

    def _short_streams(self, mechanism: Any, effort: Effort) -> Finding:
        pairs = list(neighbouring_streams(self._universe(mechanism), 5 + effort.length))
        summaries = {stream: self.filled(mechanism, stream) for pair in pairs for stream in pair}
        broken = (not _one_shard_in_a_state(*(summaries[stream] for stream in pair)) for pair in pairs)
        return never("one event changes one shard, by one event", broken)

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The delta of the shard that changes, that of the whole release where it can be written out, and the code."""
        yield self._short_streams(mechanism, replace(effort, length=effort.length - 1))
        yield from super().exact(mechanism, effort)
        if mechanism.capacity * mechanism.shards <= _FEW_COUNTERS:
            epsilon, delta = claim(mechanism)
            pairs = list(neighbouring_streams(self._universe(mechanism), 3 + effort.length, items_of(mechanism)))
            worst = worst_divergence(mechanism, partial(self.filled, mechanism), pairs, epsilon, _CUTOFF).upper
            yield checked("the law of all shards together, from the code", "delta", delta, worst, 2 * len(pairs))

    def parts(self, summary: Any) -> list[tuple[RawCounts, int]]:
        return list(zip(summary.not_private_shards(), summary.not_private_offsets, strict=True))

    def scored_pairs(self, mechanism: Any, effort: Effort) -> Iterator[ScoredPair]:
        """A counter, the offset and a new key of one shard, while the others are full."""
        heavy, more = self.heavy(mechanism), items_of(mechanism)
        *items, last = self.of_shard(mechanism, 0, mechanism.capacity + 1)
        full = [item for item in items for _ in range(len(heavy))]
        offset = lambda shown: float(shown.offset[0][0])  # noqa: E731
        yield self.pair(mechanism, "one counter higher", heavy + [0] * more, heavy, partial(count_of, 0))
        yield self.pair(mechanism, "every counter of a shard lower", full + [last] * more, full, offset)
        yield self.pair(mechanism, "one key appears", heavy + [1] * more, heavy, Listed(frozenset([1])))

    def large_pairs(self, mechanism: Any, effort: Effort) -> list[tuple[Any, Any]]:
        k, number = mechanism.capacity, max(20, effort.large_pairs // 5)
        length, items = min(20_000, max(1000, 20 * k)), 4 * k * mechanism.shards + 10
        return random_pairs(lambda: self.empty(mechanism), number, length, items)

    def large_structure(self, mechanism: Any, pairs: list[tuple[Any, Any]]) -> Finding:
        """One shard changes, and by one event."""
        return never("large random streams change one shard", (not _one_shard_in_a_state(*pair) for pair in pairs))

    def _distance(self, first: Release, second: Release) -> float:
        a, b = shown_by(first), shown_by(second)
        moved = sum(abs(x - y) for x, y in zip(first.shard_offsets or (), second.shard_offsets or (), strict=True))
        return float(moved + sum(abs(a[key] - b[key]) for key in a.keys() & b.keys()))


def _states(summary: Any) -> list[Counters]:
    """The state of every shard; its length is the sum that its counters and decrements account for."""
    out = []
    for raw, alpha in zip(summary.not_private_shards(), summary.not_private_offsets, strict=True):
        total = int(raw.counts.sum()) + alpha * (summary.capacity + 1)
        out.append(Counters(tuple(sorted(raw.to_dict().items())), alpha, total))
    return out


def _one_shard_in_a_state(first: Any, second: Any) -> bool:
    """Whether one shard differs, and by one event: in one of the states of [LT] Lemma 8."""
    changed = [(a, b) for a, b in zip(_states(first), _states(second), strict=True) if a != b]
    return len(changed) == 1 and lemma_8_state(*changed[0], first.capacity) is not None


# ---- sabotage: versions that are broken on purpose -------------------------------------------------------------------


def half_the_noise(mechanism: Any) -> Twin:
    """The scale halved, and that of a noise which all counters share; the cut as it was."""
    scales = [name for name in ("scale", "shared_scale") if hasattr(mechanism, name)]
    return twin(mechanism, "half the noise", **{name: getattr(mechanism, name) / 2 for name in scales})


def lower_cut(mechanism: Any) -> Twin:
    """The cut one lower, which is what > in place of >= amounts to on integers.

    Where the exact law has some room, lower by what makes delta so much larger: three times for entries, whose cut is
    for one entry that moves by all of the sensitivity; twice for a single counter, which reaches only some of the
    states; three times for a cut from a noisy length, which is calibrated for the chance that a key is shown, and what
    the other stream may show of it is not taken off. Delta falls with the wider of the two noises, that of the length
    or that of the counters. The papers' formulas have more room than that: half of their cut.
    """
    member = "cut" if hasattr(mechanism, "cut") else "threshold"
    cut = getattr(mechanism, member)
    if getattr(mechanism, "calibration", "exact") != "exact":
        return twin(mechanism, "half the cut", **{member: cut // 2})
    offset, spread = mechanism.error_model.offset_noise, float(mechanism.scale)
    noisy_length = getattr(mechanism, "stream_length", None) == "noisy"
    if noisy_length:
        spread = max(spread, float(offset.scale * offset.step))
    single = getattr(mechanism, "capacity", None) == 1
    room = 3.0 if hasattr(mechanism, "sensitivity") or noisy_length else 2.0 if single else 1.0
    less = 1 + math.ceil(spread * math.log(room))
    return twin(mechanism, "cut one lower" if less == 1 else f"cut {less} lower", **{member: cut - less})


def leaked_order(mechanism: Any) -> Twin:
    """The items in an order of their own instead of that of the noisy counts."""

    def call(right: Any, _: Any, *given: Any) -> Release:
        release = right(*given)
        order = np.argsort(np.array(release.items, dtype=object), kind="stable")
        leaking = twin(release, "", items=[release.items[i] for i in order], counts=release.counts[order])
        return cast(Release, leaking.mechanism)

    return altered(mechanism, "order of the items leaked", "statistical", __call__=call)


# ---- the papers' errors and tempting shortcuts, word for word. NOT PRIVATE -------------------------------------------


def too_little_shared_noise(mechanism: Any) -> Iterator[Twin]:
    """Noises and cut as if a unit moved fewer counters than it may, or by less; and the noise of each counter alone,
    which is about half of what that needs.

    An event may move all counters of merged sketches, and each event of a user does. One decrement moves all counters
    of a user-level sketch, not only those of the user's m items, and every part of a user does.
    """
    fewer, once = "merged sketch with noise for one counter", "noise for one event of a user"
    changes, steps = 1, items_of(mechanism)
    if isinstance(mechanism, UserSketch):
        fewer, once = "noise for m counters instead of k", "noise for users of one part"
        changes, steps = steps, mechanism.parts_per_user

    def calibrated_as(name: str, changes: int, steps: int) -> Twin:
        sigma, shared, cut = correlated_calibration(*claim(mechanism), changes, steps)
        return twin(mechanism, name, scale=Fraction(sigma), shared_scale=Fraction(shared), threshold=cut)

    if changes < mechanism.capacity:
        yield calibrated_as(fewer, changes, steps)
    if steps > 1:
        yield calibrated_as(once, mechanism.capacity, 1)
    if mechanism.capacity > 1:
        yield twin(mechanism, "no shared noise", shared_scale=mechanism.shared_scale / 2**10)


def length_without_margin(mechanism: Any) -> Twin:
    """A noisy length as it comes: it is below the true one half of the time, and so is the cut."""

    def length(right: Any, _: Any, summary: Any, *given: Any) -> int:
        # Of an oracle the length is given, of a sketch its cells with noise, too.
        total, cells = (summary, ()) if isinstance(summary, int) else (summary.total, (summary.not_private_cells(),))
        added = int(right(summary, *cells, ScriptedSource())) - int(total)
        return max(0, int(right(summary, *given)) - added)

    return altered(mechanism, "noisy length without its margin", noisy_length=length)


def threshold_of_algorithm_2(mechanism: Any) -> Iterator[Twin]:
    """[LT] Algorithm 2's threshold on a sketch that drops zero counters: k keys, not two, may be hidden at once.

    With few counters the two thresholds may agree; then there is nothing to catch.
    """
    cut = pmg_threshold(*claim(mechanism))
    if cut < mechanism.threshold:
        yield twin(mechanism, "Algorithm 2's threshold on a textbook sketch", threshold=cut)


def length_of_the_data(mechanism: Any) -> Iterator[Twin]:
    """[SS] Algorithm 3 where |X| counts events: the cut is computed from their number, which is private."""

    def literal(total: int) -> Any:
        return replace(mechanism, stream_length=total)

    if isinstance(mechanism.stream_length, int):
        yield twin(
            mechanism,
            "cut from the private length (SS Alg 3)",
            not_private_cut=lambda self, total: int(literal(total).threshold),
            draw=lambda self, summary, source: literal(summary.total).draw(summary, source),
            of_snapshot=lambda self, summary, source=None: literal(summary.total).of_snapshot(summary, source),
        )


def noise_for_fewer_counters(mechanism: Any) -> Iterator[Twin]:
    """[LT] Lemmas 17 and 27 misread: an event as if it moved one counter, a user as if it moved m; all k may move."""
    sigma, cut = gshm_calibration(*claim(mechanism), items_of(mechanism))
    yield twin(mechanism, "noise for fewer than k counters", scale=Fraction(sigma), threshold=cut)


# ---- heavy hitters from a frequency oracle that the user brings: whether it keeps to what it states, too -------------
class _ListedOracle:
    """The audit's own oracle: exact counts of 0 to size - 1, every one of them in two cells."""

    changes, height = 2, 1

    def __init__(self, size: int = 8) -> None:
        self.rows = np.zeros((2, size), np.int64)

    def update(self, items: Sequence[Any], counts: Ints) -> None:
        self.rows[:, np.asarray(items, np.int64)] += counts

    def cells(self) -> Ints:
        return self.rows

    def estimate(self, items: Sequence[Any], cells: Ints) -> Ints:
        smallest: Ints = cells[:, np.asarray(items, np.int64)].min(axis=0)
        return smallest

    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        return 0, 0


class OracleAudit(CellsAudit):
    """The four checks. Items are small numbers, which the oracle must be able to count."""

    beside = "cells, errors and noise beyond the cut"

    def filled(self, mechanism: OracleHeavyHitters, stream: Sequence[int]) -> TrackedOracle:
        """The oracle of a stream, with its candidates. All have one seed, that of the first."""
        tracked = TrackedOracle(copy.deepcopy(_first(mechanism)), mechanism.capacity)
        tracked.update(np.asarray(stream, np.int64))
        return tracked

    def structure(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """What the oracle states, on every pair of short streams, in one batch and in several."""
        told, tried = mechanism.statement, 0
        changed = height = broken = 0
        wrong = 0
        rng = np.random.default_rng(1)
        some = rng.integers(-50, 50, told.shape)
        for stream, shorter in neighbouring_streams(range(3), 3 + max(effort.length, 0)):
            longer, less = (self.filled(mechanism, one) for one in (stream, shorter))
            pieces = self.filled(mechanism, stream[:1])
            pieces.update(np.asarray(stream[1:], np.int64))
            for one in (longer, pieces):
                moved = np.abs(one.not_private_cells() - less.not_private_cells())
                changed, height = max(changed, int((moved > 0).sum())), max(height, int(moved.max()))
            # Estimates from given cells tell nothing of what was counted.
            first, second = (one.estimates_from([0, 1, 2], some) for one in (longer, less))
            broken += not np.array_equal(first, second)
            nudged = some + rng.integers(-3, 4, told.shape)
            broken += bool(np.abs(longer.estimates_from([0, 1, 2], nudged) - first).max() > 3 * told.gain)
            below, above = mechanism.errors(len(stream))
            estimates = longer.estimates_from([0, 1, 2], longer.not_private_cells())
            truth = np.array([stream.count(item) for item in range(3)])
            wrong += bool(((estimates < truth - below) | (estimates > truth + above)).any())
            tried += 1
        yield checked("cells that one event changes", "sensitivity", told.changes, changed, tried)
        yield checked("by how much", "sensitivity", told.height, height, tried)
        yield never("estimates are made from cells alone", broken, tried)
        yield never("estimates err by no more than stated", wrong, tried)

    def changes(self, mechanism: OracleHeavyHitters) -> tuple[int, int]:
        return mechanism.statement.changes, mechanism.statement.height

    def length(self, mechanism: OracleHeavyHitters, summary: Any, cells: Ints, source: ScriptedSource) -> int:
        return mechanism.noisy_length(summary.total, source)

    def _cut(self, mechanism: OracleHeavyHitters, n: int) -> int:
        """The least that a noisy estimate must reach; a noisy length is no less than the true one, except with
        probability `short`."""
        return int(mechanism.threshold) + (0 if public_length(mechanism) is not None else int(mechanism.untracked(n)))

    def failing(self, mechanism: OracleHeavyHitters, noise: NoiseLaw, n: int) -> tuple[float, str]:
        """What the oracle fails by itself, and P[some noise lifts an item that may be untracked to the cut]."""
        below, above = mechanism.errors(n)
        k, told = mechanism.capacity, mechanism.statement
        largest = (n + k * (above + below)) // (k + 1) + above
        least = -(-(self._cut(mechanism, n) - largest) // told.gain)  # noise of a cell that an estimate needs
        passes = min(1.0, 2 * told.cells * noise.shown(max(least, 0)))
        failing = 2.0 * mechanism.deltas.hashing + (1.0 + math.exp(claim(mechanism)[0])) * passes
        return failing, f"noise beyond the cut {passes:.3g}"

    def around(self, mechanism: OracleHeavyHitters, summary: Any, items: list[Any], shift: int) -> Ints:
        cut = self._cut(mechanism, summary.total)
        return np.resize([cut - 3 + shift, cut + shift, cut - 2], mechanism.statement.cells)

    def estimates(self, mechanism: OracleHeavyHitters, summary: Any, items: list[Any], cells: Ints) -> Ints:
        return np.asarray(summary.estimates_from(items, cells))

    def coupled(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """The distance of the cells on longer random streams, in batches."""
        told, rng = mechanism.statement, np.random.default_rng(2)

        def moved(_: int) -> int:
            stream, left_out = rng.integers(0, 8, 60), int(rng.integers(60))
            sides = []
            for events in (stream, np.delete(stream, left_out)):
                sides.append(self.filled(mechanism, events[:20].tolist()))
                sides[-1].update(events[20:])
            return int(np.abs(sides[0].not_private_cells() - sides[1].not_private_cells()).sum())

        pairs = range(max(20, effort.large_pairs // 50))
        yield largest("l1-distance of the cells", told.changes * told.height, map(moved, pairs))

    def twins(self, mechanism: Any) -> Iterator[Twin]:
        yield half_the_noise(mechanism)
        yield twin(mechanism, "no margin for noise", margin=1)
        yield twin(mechanism, "cut without the share of the untracked", untracked=lambda self, length: 0)
        yield length_without_margin(mechanism) if mechanism.stream_length == "noisy" else leaked_order(mechanism)


def _first(mechanism: Any) -> Any:
    """One empty oracle for all streams of an audit."""
    made = vars(mechanism).get("audited")
    if made is None:
        made = mechanism.oracle()
        object.__setattr__(mechanism, "audited", made)
    return made


# ---- rows ------------------------------------------------------------------------------------------------------------

# A large delta, so that a cut that is one too low is a large step, and the realistic one.
_LARGE, _SMALL = Budget(1.0, 0.02), Budget(1.0, 1e-9)
# Of a linear sketch only the smallest or the middle row shows, which is a small part of the loss: more of it to see.
_MORE = Budget(8.0, 0.02)


register(Offset, lambda: (
    Offset(_LARGE, capacity=3), Offset(_LARGE, capacity=2, unit=User(2)), Offset(_SMALL, capacity=256),
), CounterAudit("misra-gries", zeros=True, shared="published"))  # fmt: skip
register(ShardedOffset, lambda: (
    ShardedOffset(Budget(2.0, 0.02), capacity=1, shards=2),
    ShardedOffset(Budget(1.0, 0.02), capacity=3, shards=2, unit=User(2)),
    ShardedOffset(Budget(1.0, 1e-9), capacity=64, shards=4),
), ShardedAudit())  # fmt: skip
register(Stability, lambda: (
    Stability(_LARGE),
    Stability(_LARGE, unit=User(3)),
    Stability(_LARGE, unit=User(2), noise="gaussian", distinct=True),
), CounterAudit("exact"))  # fmt: skip
register(Merged, lambda: (
    Merged(_LARGE, capacity=3), Merged(_SMALL, capacity=64), Merged(_LARGE, capacity=3, unit=User(2)),
), CounterAudit("merged", shared="halves", literal=too_little_shared_noise))  # fmt: skip
register(UserSketch, lambda: (
    UserSketch(_LARGE, capacity=3, unit=User(2)),
    UserSketch(_SMALL, capacity=64, unit=User(8)),
    UserSketch(_LARGE, capacity=3, unit=User(2), parts_per_user=2),
), CounterAudit("users", shared="halves", literal=too_little_shared_noise))  # fmt: skip
register(ReducedMisraGries, lambda: (
    ReducedMisraGries(Budget(2.0), capacity=2, universe=range(3)),
    ReducedMisraGries(_LARGE, capacity=3),
    ReducedMisraGries(Budget.zcdp(0.5), capacity=3, universe=range(10**6)),
), EntriesAudit(reduces=True))  # fmt: skip
register(Summed, lambda: (
    Summed(_LARGE, capacity=2, sketches=2), Summed(Budget(1.0), capacity=2, sketches=2, universe=range(1000)),
), EntriesAudit(reduces=True, parts=True))  # fmt: skip
register(CountMinHeavyHitters, lambda: (
    CountMinHeavyHitters(_MORE, 3, width=64, depth=6, noise="laplace", stream_length=400),
    CountMinHeavyHitters(_MORE, 3, width=64, depth=6, stream_length=400),
    CountMinHeavyHitters(_MORE, 3, width=64, depth=6),
), LinearAudit(median=False))  # fmt: skip
register(CountSketchHeavyHitters, lambda: (
    CountSketchHeavyHitters(_MORE, 3, width=512, depth=9, noise="laplace", stream_length=2000),
    CountSketchHeavyHitters(_MORE, 3, width=512, depth=9, stream_length=2000),
    CountSketchHeavyHitters(_MORE, 3, width=512, depth=9),
), LinearAudit(median=True))  # fmt: skip
register(PrivateMisraGries, lambda: (
    PrivateMisraGries(_LARGE, capacity=3), PrivateMisraGries(_SMALL, capacity=3, calibration="paper-geometric"),
), CounterAudit("misra-gries", zeros=True, shared="hidden"))  # fmt: skip
register(TextbookMisraGries, lambda: (
    TextbookMisraGries(_LARGE, capacity=8), TextbookMisraGries(_SMALL, capacity=3, unit=User(2)),
), CounterAudit("misra-gries", zeros=False, shared="hidden", literal=threshold_of_algorithm_2))  # fmt: skip
register(PrivateSpaceSaving, lambda: (
    PrivateSpaceSaving(_LARGE, capacity=3, stream_length=200),
    PrivateSpaceSaving(_LARGE, capacity=3, stream_length="noisy", length_share=0.3),
    PrivateSpaceSaving(_LARGE, capacity=2, stream_length="noisy", length_share=0.3, unit=User(2)),
    PrivateSpaceSaving(_LARGE, capacity=3, stream_length=200, calibration="paper"),
), CounterAudit("space-saving", zeros=True, literal=length_of_the_data))  # fmt: skip
_of_events, _of_users = (CounterAudit(kind, literal=noise_for_fewer_counters) for kind in ("merged", "users"))
register(GaussianSparseHistogram, lambda: (
    GaussianSparseHistogram(_LARGE, capacity=3),
    GaussianSparseHistogram(_SMALL, capacity=64),
    GaussianSparseHistogram(_LARGE, capacity=3, unit=User(2)),
), lambda mechanism: _of_users if isinstance(mechanism.unit, User) else _of_events)  # fmt: skip
register(ChanMisraGries, lambda: (
    ChanMisraGries(Budget(2.0), capacity=2, universe=range(3)), ChanMisraGries(_LARGE, capacity=3),
), EntriesAudit(reduces=False))  # fmt: skip
_EXAMPLE = OracleHeavyHitters(_MORE, 50, _ListedOracle, 51, stream_length=400)  # k so large that n/k is not the cut

register(
    OracleHeavyHitters, lambda: (_EXAMPLE, replace(_EXAMPLE, noise="gaussian", stream_length="noisy")), OracleAudit()
)
