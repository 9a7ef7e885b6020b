"""Rows for hierarchies and streams: all that a party sends about one item together, over levels, samples and blocks.

The law of a transcript is read from the code. It runs with noise that is zero, and what it drew is written down: the
cells are then those without noise, and the scale of each is known. Discrete Laplace noise of scale s on a cell that two
inputs move by d loses exactly d/s, answers lose what their probabilities say, and independent parts add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.multiparty import HadamardResponse, Hierarchy, IndependentSketches, MergedSketch, Stream, Strings
from discreet.multiparty.messages import Message, unpack
from discreet.multiparty.packets import Packet, read_packet
from discreet.multiparty.stream import StreamParty
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.privacy import Budget
from discreet_audit.findings import Finding
from discreet_audit.registry import QUICK, AuditCase, Effort, Twin, register
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["HierarchyAudit", "StreamAudit", "Transcript", "loss_between", "stream_loss"]

_WRITTEN_OUT = (IndependentSketches, MergedSketch, HadamardResponse)  # whose law is read from what the code draws
_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly
_LONGEST = 2**16  # steps of a stream that is run as it is


class _Chosen(ScriptedSource):
    """No noise; every step is sampled; answers are kept, or not, as told. Writes down what was asked for.

    Args:
        kept: Whether the answers of the first draw, the second, ... are kept; the last holds for all that follow.
        uniform: As of `ScriptedSource`.
    """

    def __init__(self, kept: Sequence[int] = (1,), uniform: int = 0) -> None:
        super().__init__(uniform=uniform)
        self.kept = kept
        self.answers = 0
        self.chances: list[tuple[Fraction, int]] = []

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        """Yes, for a probability of at most 1/2 (a sample); as told for a larger one (an answer that is kept)."""
        self.chances.append((Fraction(probability), 1 if size is None else size))
        value = 1
        if Fraction(probability) > Fraction(1, 2):
            value = self.kept[min(self.answers, len(self.kept) - 1)]
            self.answers += 1
        return value if size is None else np.full(size, value, np.int64)


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


def _twin(protocol: Any, name: str, **members: Any) -> Twin:
    """The protocol with other numbers or methods and the same claim."""
    broken: Any = object.__new__(type(f"NotPrivate{type(protocol).__name__}", (type(protocol),), members))
    for each in fields(protocol):
        object.__setattr__(broken, each.name, getattr(protocol, each.name))
    return Twin(name, broken)


# ---- streams ---------------------------------------------------------------------------------------------------------


def _steps(stream: Any) -> int:
    """As many steps as the largest block has, so that a block of every level ends."""
    steps: int = stream.epoch_steps << (stream.levels - 1)
    return steps


def _items(stream: Any, places: Iterable[int]) -> list[Any]:
    """Items of the universe by numbers, which go round if it is small."""
    domain = stream.domain
    if domain.size is not None:
        found: list[Any] = domain.items([int(place) % domain.size for place in places])
        return found
    kinds: dict[str, Callable[[int], Any]] = {"int64": int, "string": str, "binary": lambda place: str(place).encode()}
    return [kinds[domain.kind](int(place)) for place in places]


def _packet(stream: Any, message: bytes) -> Packet:
    return read_packet(unpack(stream.family, stream.round_digest, stream.digest, message).payload, stream.shape)


def _run(stream: Any, items: Sequence[Any], source: RandomSource) -> Packet:
    message = stream.party(0, source=source).feed(list(items))
    assert message is not None
    return _packet(stream, message)


def stream_transcript(stream: Any, items: Sequence[Any]) -> Transcript:
    """The law of everything that is sent about these steps, one item or None each."""
    chances = np.zeros(0)
    for kept, coin in itertools.product((0, 1), (0, 1)):
        source = _Chosen([kept], coin)
        packet = _run(stream, items, source)
        asked = [chance for chance, _ in source.chances if chance > Fraction(1, 2)]
        keep = float(asked[0]) if asked else 1.0
        weight = (keep if kept else 1 - keep) / 2
        chances = (chances if len(chances) else np.zeros(len(packet.answers))) + weight * packet.answers
    laplace = [draw for draw in source.draws if draw.law == "laplace"]
    scales = np.concatenate([np.full(draw.size or 1, float(draw.scale)) for draw in laplace])
    cells = np.concatenate([*packet.blocks.values()])
    # Which steps are sampled has the same law if the same coins are tossed for all of them.
    tossed = [(chance, size) for chance, size in source.chances if chance <= Fraction(1, 2)]
    public = (packet.after, packet.to, packet.steps.tolist(), [*packet.blocks], tossed)
    return Transcript(public, cells, scales, chances)


def _neighbouring(stream: Any, effort: Effort) -> Iterator[tuple[list[Any], list[Any]]]:
    """Streams that differ in one step: all of them if they are short, else changes of a few steps of two of them."""
    steps, values = _steps(stream), [None, *dict.fromkeys(_items(stream, range(3)))]
    if steps <= 2 + effort.length:
        for given in itertools.product(values, repeat=steps):
            for at, value in itertools.product(range(steps), values):
                if value != given[at]:
                    yield [*given], [*given[:at], value, *given[at + 1 :]]
        return
    for rest, at in itertools.product(values[:2], sorted({0, steps // 2, steps - 1})):
        for one, two in itertools.permutations(values, 2):
            streams = [[rest] * steps, [rest] * steps]
            streams[0][at], streams[1][at] = one, two
            yield streams[0], streams[1]


def stream_loss(stream: Any, effort: Effort = QUICK) -> tuple[float, int]:
    """The largest loss of all messages about one step, and how many pairs of streams were tried."""
    known: dict[tuple[Any, ...], Transcript] = {}
    worst, pairs = 0.0, 0
    for first, second in _neighbouring(stream, effort):
        for given in (first, second):
            if tuple(given) not in known:
                known[tuple(given)] = stream_transcript(stream, given)
        worst = max(worst, loss_between(known[tuple(first)], known[tuple(second)]))
        pairs += 1
    return worst, pairs


class StreamAudit:
    """The four checks of a `Stream`."""

    def structure(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """As many levels are sent as the budget is split over."""
        levels = {level for level, _ in self._copies(stream)}
        yield Finding("structure", "levels that are sent", "levels", stream.levels, len(levels), 1)

    def _copies(self, stream: Any) -> dict[tuple[int, int], int]:
        """In how many blocks of a level the steps of an epoch were sent, by a party that restarts each time."""
        often: dict[tuple[int, int], int] = {}
        party = stream.party(0, source=seeded_source(1))
        for _ in range(min(2 * _steps(stream), stream.horizon or 2**48) // stream.epoch_steps):
            packet = _packet(stream, party.feed([None] * stream.epoch_steps))
            for block in packet.blocks:
                for epoch in range(block.first, block.end):
                    often[block.level, epoch] = often.get((block.level, epoch), 0) + 1
            party = stream.restore_party(party.to_bytes())
        return often

    def exact(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """All that is sent until a block of every level has ended, which each step is in once."""
        copies = max(self._copies(stream).values())
        yield Finding("exact", "blocks of a level that hold the same step", "blocks", 1, copies, 1)
        if _steps(stream) > _LONGEST:
            raise ParameterError(f"the audit runs streams whose largest block has at most {_LONGEST} steps")
        worst, pairs = stream_loss(stream, effort)
        yield Finding("exact", "all messages about one step", "epsilon", stream.epsilon * _SLACK, worst, pairs)

    def statistical(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code, told apart by the cells and the answer of the first step."""
        rest = [None] * (min(_steps(stream), 64) - 1)
        one, two = ([item, *rest] for item in _items(stream, [0, 1]))
        laws = [stream_transcript(stream, given) for given in (one, two)]
        size = len(laws[0].cells)

        def score(packet: Packet) -> float:
            cells = np.concatenate([np.zeros(0, np.int64), *packet.blocks.values()])[:size]
            far = [np.sum(np.abs(cells - law.cells[: len(cells)]) / law.scales[: len(cells)]) for law in laws]
            answer = 0.0
            if len(packet.steps) and packet.steps[0] == 1:
                chances = [law.chances[0] if packet.answers[0] else 1 - law.chances[0] for law in laws]
                answer = math.log(chances[0] / chances[1])
            return float(far[1] - far[0]) + answer

        def run(given: list[Any]) -> Packet:
            message = stream.party(0, source=system_source()).feed(given)
            empty = Packet(0, 1, 0, np.zeros(0, np.uint64), np.zeros(0, np.uint8), {})
            return empty if message is None else _packet(stream, message)

        pair = ScoredPair("an item replaced", one, two, score)
        bound = max(measure(run, pair, 0.0, effort.runs), 0.0)
        yield Finding("statistical", pair.name, "epsilon", stream.epsilon, bound, 1)

    def coupled(self, stream: Any, effort: Effort) -> Iterator[Finding]:
        """Equal randomness: how far one item moves the cells of all levels together."""
        generator, most, pairs = np.random.default_rng(1), 0, effort.released_pairs
        steps = min(_steps(stream), 256)
        for seed in range(pairs):
            places = generator.integers(0, 2**31, steps)
            other = places.copy()
            other[generator.integers(steps)] = generator.integers(0, 2**31)
            cells = []
            for given in (places, other):
                message = stream.party(seed, source=seeded_source(seed)).feed(_items(stream, given))
                blocks = [] if message is None else _packet(stream, message).blocks.values()
                cells.append(np.concatenate([np.zeros(1, np.int64), *blocks]))
            most = max(most, int(np.abs(cells[0] - cells[1]).sum()))
        claimed = 2 * stream.rows * stream.levels
        yield Finding("coupled", "cells that one item moves", "sensitivity", claimed, most, pairs)


class _EagerParty(StreamParty):
    """NOT PRIVATE: samples only the steps at which something arrived."""

    def sample(self, words: Any, present: Any) -> Any:
        steps, answers = super().sample(words, present)
        there = present[(steps - np.uint64(self.time + 1)).astype(np.int64)]
        return steps[there], answers[there]


def _older(self: Any, data: bytes) -> StreamParty:
    """NOT PRIVATE: the party goes on from the state before the one that was stored."""
    states = self.__dict__.setdefault("_states", [])
    states.append(data)
    return Stream.restore_party(self, states[max(0, len(states) - 2)])


def _stream_twins(stream: Any) -> Sequence[Twin]:
    whole = property(lambda self: Fraction(self.epsilon))
    twins = [
        _twin(stream, "half the noise on cells", scale=property(lambda self: self.rows / self.epsilon_level)),
        _twin(
            stream,
            "items sampled, not steps",
            party=lambda self, number, *, start=0, source=None: _EagerParty(self, number, start, source),
        ),
        _twin(stream, "a restart from a state older than the last message", restore_party=_older),
    ]
    if stream.levels > 1:
        twins.append(_twin(stream, "budget not split over the levels", epsilon_level=whole))
        epochs = -(-(stream.horizon or stream.window) // stream.epoch_steps)
        if math.log2(epochs) < stream.levels:
            literal = property(
                lambda self: (Fraction(self.epsilon) - self.epsilon_sample) / Fraction(math.log2(epochs))
            )
            twins.append(_twin(stream, "log2 m levels, as printed", epsilon_level=literal))
    if stream.epoch_steps > 1:
        split = property(lambda self: Fraction(self.epsilon) / self.levels)
        twins.append(_twin(stream, "samples not counted", epsilon_level=split))
    return [twin for twin in twins if stream.epoch_steps > 1 or "sampled" not in twin.name]


# ---- hierarchies -----------------------------------------------------------------------------------------------------


def hierarchy_transcript(hierarchy: Any, items: Sequence[Any]) -> Transcript:
    """The law of a message of a hierarchy of sketches."""
    source, number = _Chosen(), 3
    words = hierarchy.universe.words(list(items))
    payload = hierarchy._encode(words, number, source)
    opened = hierarchy._decode(Message(number, len(words), payload))
    scales = np.concatenate([np.full(draw.size or 1, float(draw.scale)) for draw in source.draws])
    cells = np.concatenate([content for _, content in opened])
    return Transcript(len(cells), cells, scales, np.zeros(0))


def report_law(hierarchy: Any, item: Any, number: int) -> dict[Any, float]:
    """The law of the report of one item: its level and its bit."""
    law: dict[Any, float] = {}
    word, levels = hierarchy.universe.words([item]), len(hierarchy.levels)
    for level in range(levels):
        first = _Chosen(uniform=level)
        hierarchy._encode(word, number, first)
        for kept in itertools.product((0, 1), repeat=first.answers):
            payload = hierarchy._encode(word, number, _Chosen(kept, level))
            opened = hierarchy._decode(Message(number, 1, payload))
            seen = tuple(None if part is None else tuple(part[1].values.tolist()) for part in opened)
            chance = math.prod(
                float(keep) if yes else 1 - float(keep) for yes, (keep, _) in zip(kept, first.chances, strict=True)
            )
            law[seen] = law.get(seen, 0.0) + chance / levels
    return law


def _report_loss(one: dict[Any, float], two: dict[Any, float]) -> float:
    return max(abs(math.log(one[seen] / two[seen])) if seen in one and seen in two else math.inf for seen in one | two)


class HierarchyAudit:
    """The four checks of a `Hierarchy`. What a level's protocol promises by itself is its own row's business."""

    def structure(self, hierarchy: Any, effort: Effort) -> Iterator[Finding]:
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

    def exact(self, hierarchy: Any, effort: Effort) -> Iterator[Finding]:
        """The law of a message of one or two items, for all or a few of the universe."""
        claimed = hierarchy.epsilon * _SLACK
        size = hierarchy.universe.size
        ends = {0, 1, size // 2, size - 1} | set(range(min(size, 5)))
        items = sorted(set(hierarchy.universe.items(sorted(ends & set(range(size))))))
        if not isinstance(hierarchy.by_level[0], _WRITTEN_OUT):
            spent = [protocol.epsilon for protocol in hierarchy.by_level]
            together = max(spent) if hierarchy.local else math.fsum(spent)
            yield Finding("exact", "levels together, each as its own row shows", "epsilon", claimed, together, 1)
            return
        if hierarchy.local:
            losses = []
            for number in range(8):  # whose public rows of the matrix tell different items apart
                laws = [report_law(hierarchy, item, number) for item in items]
                losses += [_report_loss(one, two) for one, two in itertools.permutations(laws, 2)]
            yield Finding("exact", "the report of one item", "epsilon", claimed, max(losses), len(losses))
            return
        losses = []
        for rest in ([], [items[0]]):
            laws_of = [hierarchy_transcript(hierarchy, [item, *rest]) for item in items]
            losses += [loss_between(one, two) for one, two in itertools.permutations(laws_of, 2)]
        yield Finding("exact", "messages of one and two items", "epsilon", claimed, max(losses), len(losses))

    def statistical(self, hierarchy: Any, effort: Effort) -> Iterator[Finding]:
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

        def run(item: Any) -> Any:
            return hierarchy.party(1).encode([item])

        pair = ScoredPair("an item replaced", items[0], items[1], score)
        bound = max(measure(run, pair, 0.0, effort.runs), 0.0)
        yield Finding("statistical", pair.name, "epsilon", hierarchy.epsilon, bound, 1)

    def coupled(self, hierarchy: Any, effort: Effort) -> Iterator[Finding]:
        """Equal randomness: whatever the items are, a report goes to the same level and a message has as many cells."""
        generator, wrong, pairs = np.random.default_rng(1), 0, effort.released_pairs
        for seed in range(pairs):
            shapes = set()
            for _ in range(2):
                words = generator.integers(0, hierarchy.universe.size, 4).astype(np.uint64)
                payload = hierarchy._encode(words, 1, seeded_source(seed))
                opened = hierarchy._decode(Message(1, 4, payload))
                shapes.add(
                    tuple(
                        None
                        if part is None
                        else (part[0].items, len(part[1]) if isinstance(part[1], np.ndarray) else 0)
                        for part in opened
                    )
                )
            wrong += len(shapes) > 1
        yield Finding("coupled", "levels or sizes that depend on items", "violations", 0, wrong, pairs)


def _unsplit(parts: float) -> property:
    """NOT PRIVATE: the levels share the budget as if there were only so many of them."""

    def by_level(self: Any) -> tuple[Any, ...]:
        right = Hierarchy(self.round_id, self.budget, self.universe, self.protocol, self.branching, self.options)
        levels = right.by_level
        share = Budget(self.epsilon / parts)
        return tuple(type(level)(level.round_id, share, level.universe, **self.options) for level in levels)

    return property(by_level)


def _every_level(self: Any, words: Any, number: int, source: RandomSource) -> bytes:
    """NOT PRIVATE: a report to every level, each with the whole budget."""
    from discreet.multiparty.messages import pack_parts, varint

    return pack_parts(
        varint(len(words)) + protocol._encode(self.levels.nodes(words, level), number, source)
        for level, protocol in enumerate(self.by_level)
    )


def _without_total(self: Any, message: Any) -> Any:
    return [
        (
            Message(message.number, message.items, part[1:]),
            protocol._decode(Message(message.number, message.items, part[1:])),
        )
        for protocol, part in zip(self.by_level, _parts(message, len(self.levels)), strict=True)
    ]


def _parts(message: Any, count: int) -> Any:
    from discreet.multiparty.messages import unpack_parts

    return unpack_parts(message.payload, count)


def _hierarchy_twins(hierarchy: Any) -> Sequence[Twin]:
    levels = len(hierarchy.levels)
    if hierarchy.local:
        twins = [_twin(hierarchy, "a response for twice epsilon", by_level=_unsplit(0.5))]
        if levels > 1 and isinstance(hierarchy.by_level[0], HadamardResponse):
            twins.append(_twin(hierarchy, "a report to every level", _encode=_every_level, _decode=_without_total))
        return twins
    twins = [_twin(hierarchy, "noise for twice epsilon", by_level=_unsplit(levels / 2))]
    if levels > 1:
        twins.append(_twin(hierarchy, "budget not split over the levels", by_level=_unsplit(1)))
        twins.append(_twin(hierarchy, "one level not counted", by_level=_unsplit(levels - 1)))
    return twins


# ---- rows ------------------------------------------------------------------------------------------------------------


def _register(
    kind: type[Any], examples: Callable[[], Sequence[Any]], audit: Any, twins: Callable[[Any], Sequence[Twin]]
) -> None:
    register(AuditCase(kind, examples, audit.structure, audit.exact, audit.statistical, audit.coupled, twins))


_ONE, _THREE = Budget(1.0), Budget(3.0)

_register(
    Hierarchy,
    lambda: (
        Hierarchy("audit", _ONE, 9, branching=3, options={"items_per_column": 1.0}),
        Hierarchy("audit", _THREE, Strings("abc", 3), options={"items_per_column": 0.5, "rows": 3, "max_items": 1000}),
        Hierarchy("audit", _ONE, 27, "HadamardResponse", 3),
    ),
    HierarchyAudit(),
    _hierarchy_twins,
)
_register(
    Stream,
    lambda: (
        Stream("audit", _ONE, 5, epoch_steps=2, horizon=9, columns=4),
        Stream("audit", _THREE, 5, epoch_steps=1, window=3, columns=8, rows=3),
    ),
    StreamAudit(),
    _stream_twins,
)
