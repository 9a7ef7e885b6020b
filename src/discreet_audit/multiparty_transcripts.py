"""Rows for hierarchies and streams: all that a party sends about one item together, over levels, samples and blocks.

The law of a transcript is read from the code. It runs with noise that is zero, and what it drew is written down: the
cells are then those without noise, and the scale of each is known. Discrete Laplace noise of scale s on a cell that two
inputs move by d loses exactly d/s, answers lose what their probabilities say, and independent parts add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.multiparty import (
    GridHierarchy,
    HadamardResponse,
    HierarchicalStream,
    Hierarchy,
    IndependentSketches,
    Stream,
    Strings,
)
from discreet.multiparty.party_seam import BlockStream, LevelProtocol, Packet, StreamParty, pack_parts, unpack_parts
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.privacy import Budget
from discreet.published import MergedMisraGriesStream, MergedSketch
from discreet_audit.core import QUICK, SLACK, Audit, Effort, Finding, Twin, row, twin
from discreet_audit.exact import OutputLaw, ScriptedSource, ratio_loss, worst_pair
from discreet_audit.multiparty import Speak, an_item_replaced, speaking

_WRITTEN_OUT = (IndependentSketches, MergedSketch, HadamardResponse)  # whose law is read from what the code draws
_LONGEST = 2**16  # steps of a stream that is run as it is


class _Chosen(ScriptedSource):
    """No noise; every step is sampled; answers are kept, or not, as told. Writes down what was asked for.

    Args:
        kept: Whether the answers of the first draw, the second, ... are kept; the last holds for all that follow.
        uniform: As of `ScriptedSource`.
        rate: The probability of a sample, where that may be more than 1/2.
    """

    def __init__(self, kept: Sequence[int] = (1,), uniform: int = 0, rate: Fraction = Fraction(0)) -> None:
        super().__init__(uniform=uniform)
        self.kept, self.keeps, self.rate = kept, list[float](), rate
        self.samples: list[tuple[Fraction, int]] = []

    def cells(self, stream: Any, packet: Packet) -> npt.NDArray[np.int64]:
        """Everything that noise was added to, without it."""
        return _cells(packet)

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        """Yes, for a probability of at most 1/2 (a sample); as told for a larger one (an answer that is kept)."""
        value = 1
        if Fraction(probability) > Fraction(1, 2) and Fraction(probability) != self.rate:
            value = self.kept[min(len(self.keeps), len(self.kept) - 1)]
            self.keeps.append(float(probability))
        else:
            self.samples.append((Fraction(probability), 1 if size is None else size))
        return value if size is None else np.full(size, value, np.int64)

    @property
    def scales(self) -> npt.NDArray[np.float64]:
        """Of every noise that was drawn."""
        return np.concatenate(
            [np.full(1 if d.size is None else d.size, float(d.scale)) for d in self.draws if d.law == "laplace"]
        )


class _Lifted(_Chosen):
    """The same for counters above a cut: noise that lifts what is stored over it, and none of the other items."""

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """40 scales: above the cut of any universe, and below what is cut off."""
        self._given("laplace", scale, size)
        return np.full(size, math.ceil(40 * Fraction(scale)), np.int64)

    def discrete_laplace_exceedances(self, trials: Any, scale: Any, minimum: Any, size: Any = None) -> Any:
        """None; that so many had noise of this scale is written down."""
        self._given("laplace", scale, trials)
        return 0

    def cells(self, stream: Any, packet: Packet) -> npt.NDArray[np.int64]:
        """The counter of every item of the universe, block by block."""
        found = [np.zeros(0, np.int64)]
        for block, (places, counters) in packet.blocks.items():
            dense = np.zeros(stream.universe.size, np.int64)
            dense[places] = counters - math.ceil(40 * stream.shape.scale(block))
            found.append(dense)
        return np.concatenate(found)


@dataclass(frozen=True)
class Transcript:
    """What a party sends: cells with Laplace noise of one scale each, and answers with their probabilities of 1.

    `public` is all the rest, which must be the same for neighbours.
    """

    public: Any
    cells: npt.NDArray[np.int64]
    scales: npt.NDArray[np.float64]
    chances: npt.NDArray[np.float64]


def loss_between(first: Transcript, second: Transcript) -> float:
    """The largest log-ratio of the probabilities of any transcript; infinite if something else tells them apart."""
    same = first.public == second.public and np.array_equal(first.scales, second.scales)
    if not same or len(first.cells) != len(first.scales):  # a cell without noise of its own
        return math.inf
    with np.errstate(divide="ignore"):
        ones = np.abs(np.log(first.chances) - np.log(second.chances))
        zeros = np.abs(np.log1p(-first.chances) - np.log1p(-second.chances))
    return float(np.sum(np.abs(first.cells - second.cells) / first.scales) + np.sum(np.maximum(ones, zeros)))


# ---- streams ---------------------------------------------------------------------------------------------------------


def _steps(stream: BlockStream) -> int:
    """As many steps as the largest block has, so that a block of every level ends; or a phase of two levels has."""
    return stream.epoch_steps << (3 if stream.doubling else stream.levels - 1)


def _levels(stream: BlockStream, steps: int) -> int:
    """How many levels there are after so many."""
    return stream.shape.levels(steps // stream.epoch_steps - 1)


def _places(stream: BlockStream) -> tuple[int, int, int]:
    """Of three items that lie in different intervals of every level, if there are intervals."""
    size = stream.universe.size if stream.tracks > 1 else None
    return (0, 1, 2) if size is None else (0, size // 2, size - 1)


def _items(stream: BlockStream, places: Iterable[int]) -> list[Any]:
    """Items of the universe by numbers, which go round if it is small."""
    domain: Any = stream.domain
    if domain.size is not None:
        return list(domain.items([int(place) % domain.size for place in places]))
    made: Any = {"int64": int, "string": str, "binary": lambda place: str(place).encode()}[domain.kind]
    return [made(int(place)) for place in places]


def _sent(stream: BlockStream, items: Sequence[Any], source: RandomSource, number: int = 0) -> Packet:
    """What is told about these steps; nothing, if no message is sent."""
    message = stream.party(number, source=source).feed(list(items))
    if message is None:
        return Packet(0, 1, 0, np.zeros(0, np.uint64), np.zeros(0, np.uint8), {})
    return stream.open(message)[1]


def _cells(packet: Packet) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *packet.blocks.values()])


def stream_transcript(stream: BlockStream, items: Sequence[Any]) -> Transcript:
    """The law of everything that is sent about these steps, one item or None each."""
    chances, kind = np.zeros(0), _Lifted if isinstance(stream, MergedMisraGriesStream) else _Chosen
    for kept, coin in itertools.product((0, 1), (0, 1)) if stream.samples else ((1, 0),):
        source = kind([kept], coin, stream.sample_rate)
        packet = _sent(stream, items, source)
        keep = source.keeps[0] if source.keeps else 1.0
        weight = (keep if kept else 1 - keep) / 2
        chances = (chances if len(chances) else np.zeros(len(packet.answers))) + weight * packet.answers
    # Which steps are sampled has the same law if the same coins are tossed for all of them.
    public = (packet.after, packet.to, packet.steps.tolist(), [*packet.blocks], source.samples)
    return Transcript(public, source.cells(stream, packet), source.scales, chances)


def _neighbouring(stream: BlockStream, effort: Effort) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Streams that differ in one step: all of them if they are short, else changes of a few steps of two of them.

    What a step moves in the counters of Misra-Gries depends on all others: there all of up to 256, or random ones.
    """
    steps, values = _steps(stream), [None, *dict.fromkeys(_items(stream, _places(stream)))]
    counters = isinstance(stream, MergedMisraGriesStream)
    if len(values) ** steps <= 256 * 4**effort.length if counters else steps <= 2 + effort.length:
        for given in itertools.product(values, repeat=steps):
            for at, value in itertools.product(range(steps), values):
                if value != given[at]:
                    yield given, (*given[:at], value, *given[at + 1 :])
        return
    if counters:
        generator = np.random.default_rng(1)
        for _ in range(effort.released_pairs // 2):
            one = [values[place] for place in generator.integers(len(values), size=steps)]
            for value in values:
                two, at = list(one), int(generator.integers(steps))
                two[at] = value
                yield tuple(one), tuple(two)
    for rest, at in itertools.product(values[:2], sorted({0, steps // 2, steps - 1})):
        for one, two in itertools.permutations(values, 2):
            before, after = (rest,) * at, (rest,) * (steps - at - 1)
            yield (*before, one, *after), (*before, two, *after)


def stream_loss(stream: BlockStream, effort: Effort = QUICK) -> tuple[float, int]:
    """The largest loss of all messages about one step, and how many pairs of streams were tried."""
    return worst_pair(_neighbouring(stream, effort), partial(stream_transcript, stream), loss_between)


class StreamAudit(Audit):
    """The four checks of a `Stream`."""

    def structure(self, stream: BlockStream, effort: Effort) -> Iterator[Finding]:
        """As many levels are sent as the budget is split over."""
        levels = {level for level, _ in self._copies(stream)}
        claimed = _levels(stream, self._run(stream))
        yield Finding("structure", "levels that are sent", "levels", claimed, len(levels), 1)

    @staticmethod
    def _run(stream: BlockStream) -> int:
        """How many steps are run through."""
        return min(2 * _steps(stream), stream.last_step)

    def _copies(self, stream: BlockStream) -> dict[tuple[int, int], int]:
        """In how many blocks of a level the steps of an epoch were sent, by a party that restarts each time."""
        if _steps(stream) > _LONGEST:
            raise ParameterError(f"the audit runs streams whose largest block has at most {_LONGEST} steps")
        often: dict[tuple[int, int], int] = {}
        party = stream.party(0, source=seeded_source(1))
        for _ in range(self._run(stream) // stream.epoch_steps):
            message = party.feed([None] * stream.epoch_steps)
            assert message is not None
            for block in stream.open(message)[1].blocks:
                for epoch in range(block.first, block.end):
                    often[block.level, epoch] = often.get((block.level, epoch), 0) + 1
            party = stream.restore_party(party.to_bytes())
        return often

    def exact(self, stream: BlockStream, effort: Effort) -> Iterator[Finding]:
        """All that is sent until a block of every level has ended, which each step is in once."""
        copies = max(self._copies(stream).values())
        yield Finding("exact", "blocks of a level that hold the same step", "blocks", 1, copies, 1)
        worst, pairs = stream_loss(stream, effort)
        yield Finding("exact", "all messages about one step", "epsilon", stream.epsilon * SLACK, worst, pairs)

    def statistical(self, stream: BlockStream, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code, told apart by the cells and the answer of the first step."""
        rest = [None] * (min(_steps(stream), 64) - 1)
        one, two = ([item, *rest] for item in _items(stream, _places(stream)[:2]))
        laws = [stream_transcript(stream, given) for given in (one, two)]

        def score(packet: Packet) -> float:
            answer = 0.0
            if len(packet.steps) and packet.steps[0] == 1:
                chances = [law.chances[0] if packet.answers[0] else 1 - law.chances[0] for law in laws]
                answer = math.log(chances[0] / chances[1])
            return float(self.likelihood(stream, packet, laws[0]) - self.likelihood(stream, packet, laws[1])) + answer

        yield an_item_replaced(
            lambda given: _sent(stream, given, system_source()), one, two, score, stream.epsilon, effort
        )

    def likelihood(self, stream: Any, packet: Packet, law: Transcript) -> float:
        """The logarithm of the probability of what is told of blocks, up to what all laws share."""
        cells = _cells(packet)[: len(law.cells)]
        return -float(np.sum(np.abs(cells - law.cells[: len(cells)]) / law.scales[: len(cells)]))

    def coupled(self, stream: Stream, effort: Effort) -> Iterator[Finding]:
        """Equal randomness: how far one item moves the cells of all levels together."""
        generator, most, pairs = np.random.default_rng(1), 0, effort.released_pairs
        steps = min(_steps(stream), 256)
        for seed in range(pairs):
            places = generator.integers(0, 2**31, steps)
            other = places.copy()
            other[generator.integers(steps)] = generator.integers(0, 2**31)
            sent = [_cells(_sent(stream, _items(stream, x), seeded_source(seed), seed)) for x in (places, other)]
            most = max(most, int(np.abs(sent[0] - sent[1]).sum()))
        claimed = 2 * stream.rows * stream.tracks * _levels(stream, max(steps, stream.epoch_steps))
        yield Finding("coupled", "cells that one item moves", "sensitivity", claimed, most, pairs)

    def twins(self, stream: BlockStream) -> Sequence[Twin]:
        """Less noise, a budget that is not split, samples of items, and a party that goes back."""
        states: list[bytes] = []

        def older(self: Any, data: bytes) -> StreamParty:
            states.append(data)
            return BlockStream.restore_party(self, states[max(0, len(states) - 2)])

        def less(name: str, epsilon_level: Any) -> Twin:
            return twin(stream, name, epsilon_level=property(epsilon_level))

        eager = {"party": lambda self, number, start=0, source=None: _EagerParty(self, number, start, source)}
        right: Any = type(stream)
        half = property(lambda self: right.scale.fget(self) / 2)
        twins = [twin(stream, "half the noise on cells", scale=half)]
        if stream.samples:
            twins.append(twin(stream, "items sampled, not steps", **eager))
        twins.append(twin(stream, "a restart from a state older than the last message", restore_party=older))
        left = Fraction(stream.epsilon) - stream.epsilon_sample
        if stream.doubling:
            first = property(lambda self: replace(shape, scales=shape.scales[:1] * len(shape.scales)))
            shape = stream.shape
            twins.append(twin(stream, "the noise of the first phase in all of them", shape=first))
        elif stream.levels > 1:
            twins.append(less("budget not split over the levels", lambda self: Fraction(self.epsilon)))
            printed = math.log2(-(-(stream.horizon or stream.window or 1) // stream.epoch_steps))
            if printed < stream.levels:
                each = left / Fraction(printed) / stream.tracks
                twins.append(less("log2 m levels, as printed", lambda self: each))
        if stream.tracks > 1:
            twins.append(less("budget not split over the intervals", lambda self: left / self.levels))
        if stream.samples:
            whole = Fraction(stream.epsilon) / stream.tracks
            twins.append(less("samples not counted", lambda self: whole / self.levels))
        return twins


class _EagerParty(StreamParty):
    """NOT PRIVATE: samples only the steps at which something arrived."""

    def sample(self, words: Any, present: Any) -> Any:
        steps, answers = super().sample(words, present)
        there = present[(steps - np.uint64(self.time + 1)).astype(np.int64)]
        return steps[there], answers[there]


# ---- hierarchies -----------------------------------------------------------------------------------------------------


def _opened(hierarchy: LevelProtocol, items: Sequence[Any], number: int, source: RandomSource) -> list[Any]:
    """What a party says at each level: (message, content), or None where no report went."""
    opened: list[Any] = hierarchy.open(hierarchy.party(number, source=source).encode(list(items)))[1]
    return opened


def hierarchy_transcript(hierarchy: LevelProtocol, items: Sequence[Any]) -> Transcript:
    """The law of a message of a hierarchy of sketches."""
    source = _Chosen()
    cells = np.concatenate([content for _, content in _opened(hierarchy, items, 3, source)])
    return Transcript(len(cells), cells, source.scales, np.zeros(0))


def report_law(hierarchy: LevelProtocol, item: Any, number: int) -> OutputLaw:
    """The law of the report of one item: its level and its bit."""
    law: dict[Any, float] = {}
    for level in range(len(hierarchy.levels)):
        first = _Chosen(uniform=level)
        _opened(hierarchy, [item], number, first)
        for kept in itertools.product((0, 1), repeat=len(first.keeps)):
            opened = _opened(hierarchy, [item], number, _Chosen(kept, level))
            seen = tuple(None if part is None else tuple(part[1].values.tolist()) for part in opened)
            chance = math.prod(keep if yes else 1 - keep for yes, keep in zip(kept, first.keeps, strict=True))
            law[seen] = law.get(seen, 0.0) + chance / len(hierarchy.levels)
    return OutputLaw(law, 0.0)


class HierarchyAudit(Audit):
    """The four checks of a `Hierarchy` or `GridHierarchy`.

    What a level's protocol promises by itself is its own row's business.
    """

    def structure(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """Replacing an item replaces one interval a level at most, and levels have hash functions of their own."""
        generator, most, pairs = np.random.default_rng(1), 0, 200
        for _ in range(pairs):
            words = generator.integers(0, hierarchy.universe.size, 6).astype(np.uint64)
            other = words.copy()
            other[3] = generator.integers(0, hierarchy.universe.size)
            for level in range(len(hierarchy.levels)):
                moved = hierarchy.levels.nodes(words, level) != hierarchy.levels.nodes(other, level)
                most = max(most, int(moved.sum()))
        yield Finding("structure", "intervals of a level that an item changes", "sensitivity", 1, most, pairs)
        same = len(hierarchy.levels) - len({protocol.round_id for protocol in hierarchy.by_level})
        yield Finding("structure", "levels with the randomness of another", "violations", 0, same, 1)

    def exact(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """The law of a message of one or two items, for all or a few of the universe."""
        size, losses, what = hierarchy.universe.size, [], "messages of one and two items"
        ends = {0, 1, size // 2, size - 1} | set(range(min(size, 5)))
        items = sorted(set(hierarchy.universe.items(sorted(ends & set(range(size))))))
        if not isinstance(hierarchy.by_level[0], _WRITTEN_OUT):
            spent = [protocol.epsilon for protocol in hierarchy.by_level]
            losses = [max(spent) if hierarchy.local else math.fsum(spent)]
            what = "levels together, each as its own row shows"
        elif hierarchy.local:
            for number in range(8):  # whose public rows of the matrix tell different items apart
                reports = [report_law(hierarchy, item, number) for item in items]
                losses += [ratio_loss(one, two) for one, two in itertools.permutations(reports, 2)]
            what = "the report of one item"
        else:
            for rest in ([], [items[0]]):
                laws = [hierarchy_transcript(hierarchy, [item, *rest]) for item in items]
                losses += [loss_between(one, two) for one, two in itertools.permutations(laws, 2)]
        yield Finding("exact", what, "epsilon", hierarchy.epsilon * SLACK, max(losses), len(losses))

    def statistical(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code, told apart by the counts of all intervals of the two items."""
        items = hierarchy.universe.items([0, hierarchy.universe.size - 1])
        words = hierarchy.universe.words(items)

        def score(message: bytes) -> float:
            aggregator = hierarchy.aggregator()
            aggregator.receive(message)
            found = 0.0
            for level in range(len(hierarchy.levels)):
                first, second = aggregator.interval_counts(level, hierarchy.levels.nodes(words, level)).values
                found += float(first - second)
            return found

        run = lambda item: hierarchy.party(1).encode([item])  # noqa: E731
        yield an_item_replaced(run, items[0], items[1], score, hierarchy.epsilon, effort)

    def coupled(self, hierarchy: LevelProtocol, effort: Effort) -> Iterator[Finding]:
        """Equal randomness: whatever the items are, a report goes to the same level and a message has as many cells."""
        generator, wrong, pairs = np.random.default_rng(1), 0, effort.released_pairs
        for seed in range(pairs):
            shapes = set()
            for _ in range(2):
                items = hierarchy.universe.items(generator.integers(0, hierarchy.universe.size, 4).tolist())
                opened = _opened(hierarchy, items, 1, seeded_source(seed))
                shapes.add(tuple(None if part is None else (part[0].items, np.shape(part[1])) for part in opened))
            wrong += len(shapes) > 1
        yield Finding("coupled", "levels or sizes that depend on items", "violations", 0, wrong, pairs)

    def twins(self, hierarchy: LevelProtocol) -> Sequence[Twin]:
        """Levels with more of the budget than they may have; a report to every level."""
        levels = len(hierarchy.levels)
        if hierarchy.local:
            twins = [twin(hierarchy, "a response for twice epsilon", by_level=_unsplit(hierarchy, 0.5))]
            if levels > 1 and isinstance(hierarchy.by_level[0], HadamardResponse):
                twins.append(speaking(hierarchy, "a report to every level", _to_every_level, open=_open_every_level))
            return twins
        twins = [twin(hierarchy, "noise for twice epsilon", by_level=_unsplit(hierarchy, levels / 2))]
        if levels > 1:
            twins.append(twin(hierarchy, "budget not split over the levels", by_level=_unsplit(hierarchy, 1)))
            twins.append(twin(hierarchy, "one level not counted", by_level=_unsplit(hierarchy, levels - 1)))
        return twins


def _unsplit(right: LevelProtocol, parts: float) -> property:
    """NOT PRIVATE: the levels share the budget as if there were only so many of them."""
    share = Budget(right.epsilon / parts)
    levels = tuple(type(level)(level.round_id, share, level.universe, **right.options) for level in right.by_level)
    return property(lambda self: levels)


class _ToLevel(_Chosen):
    """Reports go to this level; the answers are those of another source."""

    def __init__(self, level: int, source: RandomSource) -> None:
        super().__init__(uniform=level)
        self.source = source

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        return self.source.bernoulli(probability, size)


def _to_every_level(self: Any, items: Any, source: RandomSource, speak: Speak) -> bytes:
    """NOT PRIVATE: a report to every level, each with the whole budget."""
    return pack_parts(speak(items, _ToLevel(level, source)) for level in range(len(self.levels)))


def _open_every_level(self: Any, message: bytes) -> tuple[None, list[Any]]:
    parts = unpack_parts(message, len(self.levels))
    return None, [LevelProtocol.open(self, part)[1][level] for level, part in enumerate(parts)]


# ---- rows ------------------------------------------------------------------------------------------------------------

_ONE, _THREE = Budget(1.0), Budget(3.0)

row(
    Hierarchy,
    lambda: (
        Hierarchy("audit", _ONE, 9, branching=3, options={"items_per_column": 1.0}),
        Hierarchy("audit", _THREE, Strings("abc", 3), options={"items_per_column": 0.5, "rows": 3, "max_items": 1000}),
        Hierarchy("audit", _ONE, 27, "HadamardResponse", 3),
    ),
    HierarchyAudit(),
)
row(
    GridHierarchy,
    lambda: (
        GridHierarchy("audit", _ONE, (4, 4), branching=2, options={"items_per_column": 0.5, "max_items": 1000}),
        GridHierarchy("audit", _ONE, (9, Strings("ab", 2)), "HadamardResponse"),
    ),
    HierarchyAudit(),
)
row(
    Stream,
    lambda: (
        Stream("audit", _ONE, 5, epoch_steps=2, horizon=9, columns=4),
        Stream("audit", _THREE, 5, epoch_steps=1, window=3, columns=8, rows=3),
        Stream("audit", _ONE, 5, epoch_steps=2, columns=4, sample_share=0),
    ),
    StreamAudit(),
)
row(
    HierarchicalStream,
    lambda: (
        HierarchicalStream("audit", _ONE, 9, epoch_steps=2, horizon=9, columns=8, branching=3),
        HierarchicalStream("audit", _THREE, Strings("ab", 2), epoch_steps=3, columns=8),
    ),
    StreamAudit(),
)
