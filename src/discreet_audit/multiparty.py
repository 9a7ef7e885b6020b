"""Rows for the multiparty protocols: what one party's message tells about one of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import _native
from discreet.multiparty import (
    HadamardResponse,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    MergedMisraGries,
    MergedSketch,
    Separation,
)
from discreet.multiparty._entries import write_entries
from discreet.multiparty.messages import Message
from discreet.noise import RandomSource, seeded_source
from discreet.noise.places import noisy_places
from discreet.noise.response import keep_probability
from discreet.privacy import Budget
from discreet_audit.findings import Finding
from discreet_audit.multiparty_laws import (
    UNIVERSE,
    additive_loss,
    counter_sensitivity,
    entries_loss,
    inputs,
    larger,
    message_loss,
    neighbours,
    noise_is_added,
    separation_loss,
    separation_messages,
    tiny,
)
from discreet_audit.registry import AuditCase, Effort, Twin, register
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["MessageAudit"]

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly


@dataclass(frozen=True)
class MessageAudit:
    """The checks of one protocol.

    Args:
        exact: Findings from exact laws.
        changes: What the protocol gets besides a tiny universe, so that its messages are small.
        ordered: Whether a message may depend on the order of the items: that of reports does, which have numbers.
    """

    laws: Callable[[Any, Effort], Iterator[Finding]]
    changes: dict[str, Any]
    ordered: bool = False

    def _tiny(self, protocol: Any) -> Any:
        return tiny(protocol, UNIVERSE, **self.changes)

    def structure(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """Everything around the noisy numbers is the same for all inputs of the same length."""
        small, envelopes = self._tiny(protocol), set()
        for given in inputs(UNIVERSE, 3):
            envelopes.add(small.party(5, source=seeded_source(1)).encode(list(given))[:22])
        wrong = len(envelopes) - 1
        yield Finding("structure", "envelopes that tell inputs apart", "violations", 0, wrong, UNIVERSE**3)

    def exact(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """The law of a message."""
        return self.laws(protocol, effort)

    def statistical(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """Messages of the compiled code with fresh noise, of two inputs that differ in one item."""
        small = self._tiny(protocol)
        message_of = _fresh_encoder(small)

        def score(message: bytes) -> float:
            aggregator = small.aggregator()
            aggregator.receive(message)
            values = aggregator.estimate([0, 1]).values
            return float(values[0] - values[1])

        pair = ScoredPair("an item replaced", [0], [1], score)
        bound = max(measure(message_of, pair, 0.0, effort.runs), 0.0)
        yield Finding("statistical", pair.name, "epsilon", small.epsilon, bound, 1)

    def coupled(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """With equal randomness: items in another order give the same bytes; or one report changes, its own."""
        small, wrong, pairs = self._tiny(protocol), 0, effort.released_pairs
        generator = np.random.default_rng(1)
        for seed in range(pairs):
            items = generator.integers(0, UNIVERSE, 9).tolist()
            if self.ordered:
                other = [*items[:4], (items[4] + 1) % UNIVERSE, *items[5:]]
                first, second = (_reports(small, given, seed) for given in (items, other))
                wrong += not np.array_equal(np.delete(first, 4, 0), np.delete(second, 4, 0))
            else:
                other = generator.permutation(items).tolist()
                messages = {small.party(1, source=seeded_source(seed)).encode(given) for given in (items, other)}
                wrong += len(messages) > 1
        what = "other reports that an item changes" if self.ordered else "messages that show the order of the items"
        yield Finding("coupled", what, "violations", 0, wrong, pairs)


def _fresh_encoder(protocol: Any) -> Callable[[list[int]], bytes]:
    """Encodes for a party whose public hash functions tell items 0 and 1 apart: with the same noise they differ."""

    def encode(items: list[int], number: int, source: RandomSource | None = None) -> bytes:
        message: bytes = protocol.party(number, source=source).encode(items)
        return message

    apart = (n for n in range(64) if encode([0], n, seeded_source(1)) != encode([1], n, seeded_source(1)))
    number = next(apart, 0)
    return lambda items: encode(items, number)


def _reports(protocol: Any, items: list[int], seed: int) -> Any:
    message = protocol.party(1, source=seeded_source(seed)).encode(items)
    aggregator = protocol.aggregator()
    aggregator.receive(message)
    return np.asarray(aggregator._heard[0][1].values)


# ---- exact -----------------------------------------------------------------------------------------------------------


def _response_laws(protocol: Any, effort: Effort) -> Iterator[Finding]:
    small = tiny(protocol)
    for length, numbers in ((1, range(8)), (2, range(1 + max(0, effort.length)))):
        found = [message_loss(small, 3, length, number) for number in numbers]
        loss, pairs = max(loss for loss, _ in found), sum(pairs for _, pairs in found)
        yield Finding("exact", f"messages of {length} item(s)", "epsilon", small.epsilon * _SLACK, loss, pairs)


def _additive_laws(protocol: Any, effort: Effort, changes: dict[str, Any], length: int) -> Iterator[Finding]:
    small = tiny(protocol, **changes)
    wrong = noise_is_added(small, length)
    yield Finding("exact", "cells without the noise that was drawn", "violations", 0, wrong, UNIVERSE**length)
    loss, pairs = additive_loss(small, length + max(0, effort.length))
    yield Finding("exact", "messages of a few items", "epsilon", small.epsilon * _SLACK, loss, pairs)


def _entries_laws(protocol: Any, effort: Effort) -> Iterator[Finding]:
    for capacity in range(1, 3 + max(0, effort.length)):
        loss, pairs = entries_loss(protocol, capacity)
        claimed = protocol.epsilon * _SLACK
        yield Finding("exact", f"counters of {capacity}, all inputs", "epsilon", claimed, loss, pairs)
    # Every message with its probability: that the code is the law above, and not noise on fewer items.
    small = tiny(larger(protocol, 3.0), 2, capacity=1)
    loss, pairs = message_loss(small, 2, 2)
    claimed = small.epsilon * _SLACK
    yield Finding(
        "exact", "messages of 2 items of a universe of 2", f"epsilon at {small.epsilon:g}", claimed, loss, pairs
    )


_SMALL_SEPARATION: dict[str, Any] = {"items_per_column": 1.0, "items_per_entry": 2, "threshold": 1, "max_items": 64}


def _separation_laws(protocol: Any, effort: Effort) -> Iterator[Finding]:
    for threshold, length in ((0, 1), (0, 2), (1, 2), (1, 3))[: 4 if effort.length > 0 else 3]:
        small = tiny(protocol, 4, **{**_SMALL_SEPARATION, "threshold": threshold})
        pairs = list(neighbours(4, length))
        claimed, loss = small.epsilon * _SLACK, separation_loss(small, pairs)
        yield Finding("exact", f"{length} item(s), heavy above {threshold}", "epsilon", claimed, loss, len(pairs))
        if length > 1:
            wrong = separation_messages(small, pairs)
            what = "messages that follow more than the noisy numbers"
            yield Finding("exact", f"{length} items: {what}", "violations", 0, wrong, len(pairs))
    yield Finding("exact", "scales other than those of the law", "violations", 0, _other_scales(protocol), 1)


def _other_scales(protocol: Any) -> int:
    """Draws of the code that are not of the three scales that the law is written with."""
    small, source = tiny(protocol, 4, **_SMALL_SEPARATION), ScriptedSource()
    small.party(0, source=source).encode([0, 0, 0, 1, 2])
    allowed = [small.separation_scale] * 2 + [small.heavy_scale, small.light_scale]
    return sum(draw.scale != scale for draw, scale in zip(source.draws, allowed, strict=True))


# ---- twins -----------------------------------------------------------------------------------------------------------


def _twin(protocol: Any, name: str, **members: Any) -> Twin:
    """The protocol with other numbers or methods and the same claim; `replace` makes one of the same broken class."""
    broken: Any = object.__new__(type(f"NotPrivate{type(protocol).__name__}", (type(protocol),), members))
    broken.__dict__.update(protocol.__dict__)
    return Twin(name, broken)


def _scaled(name: str, factor: Callable[[Any], Fraction]) -> property:
    """A scale that is this many times the right one."""

    def scale(self: Any) -> Fraction:
        right = next(kind for kind in type(self).__mro__ if not kind.__name__.startswith("NotPrivate"))
        value: Fraction = vars(right)[name].fget(self) * factor(self)
        return value

    return property(scale)


def _sorted_reports(protocol: Any) -> Twin:
    right = type(protocol)._randomise

    def randomise(self: Any, words: Any, numbers: Any, source: RandomSource) -> Any:
        return right(self, np.sort(words), numbers, source)

    return _twin(protocol, "reports in the order of their items", _randomise=randomise)


def _response_twins(protocol: Any) -> Sequence[Twin]:
    def keep(self: Any) -> Fraction:
        return keep_probability(getattr(self, "buckets", 2), 2 * Fraction(self.epsilon))

    return (_twin(protocol, "a response for twice epsilon", keep=property(keep)), _sorted_reports(protocol))


def _half(protocol: Any, name: str = "scale") -> Twin:
    return _twin(protocol, "half the noise", **{name: _scaled(name, lambda made: Fraction(1, 2))})


def _sparse_first(self: Any, words: Any, numbers: Any, source: RandomSource) -> Any:
    plain = LocalSketch._randomise(self, words, numbers, ScriptedSource())
    return plain + source.discrete_laplace(self.scale, plain.size).reshape(plain.shape) * (plain != 0)


def _local_sketch_twins(protocol: Any) -> Sequence[Twin]:
    return (
        _half(protocol),
        _sorted_reports(protocol),
        _twin(protocol, "noise on the cells that are not zero", _randomise=_sparse_first),
    )


def _sketch_twins(protocol: Any) -> Sequence[Twin]:
    right = type(protocol)._encode

    def encode(self: Any, words: Any, number: int, source: RandomSource) -> bytes:
        plain = self._decode(Message(number, len(words), right(self, words, number, ScriptedSource())))
        return _native.write_integers(plain + source.discrete_laplace(self.scale, len(plain)) * (plain != 0))

    twins = [_half(protocol), _twin(protocol, "noise on the cells that are not zero", _encode=encode)]
    if protocol.rows > 1:
        twins.append(_twin(protocol, "noise for one row", scale=_scaled("scale", lambda made: Fraction(1, made.rows))))
    return twins


def _literal_cells(self: Any, words: Any, heavy: Any, width: int, number: int) -> Any:
    """The sketch and the number of light items, which [MDP] releases with e/4 where a cell of R rows has e/(8 R)."""
    light = words[~np.isin(words, heavy.astype(np.uint64))]
    cells = Separation._light_cells(self, words, heavy, width, number)
    return np.concatenate([cells, np.full(2 * self.rows, len(light), np.int64)])


def _literal_choice(self: Any, found: Any, counts: Any, source: RandomSource) -> Any:
    """[MDP] section 3.3, step 2: u - n_i zero entries, each with P[Z >= T]."""
    size, cut = self.domain.size, self.threshold + 1
    shown = found[counts + source.discrete_laplace(self.separation_scale, len(found)) >= cut]
    zeros = np.setdiff1d(np.arange(size), found)
    trials = max(0, size - int(counts.sum()))
    count = source.discrete_laplace_exceedances(trials, self.separation_scale, self.threshold)
    return np.sort(np.concatenate([shown, zeros[source.sample_without_replacement(len(zeros), count)]]))


def _separation_twins(protocol: Any) -> Sequence[Twin]:
    literal: dict[str, Any] = {
        "separation_epsilon": property(lambda self: Fraction(self.epsilon) / 2),
        "light_scale": property(lambda self: 2 * self.rows * self.heavy_scale),
        "_light_cells": _literal_cells,
    }
    return (
        _twin(protocol, "heavy and light in parallel, as printed", **literal),
        _twin(protocol, "u - n zero entries, as printed", _choose=_literal_choice),
        _half(protocol, "heavy_scale"),
        _half(protocol, "separation_scale"),
    )


def _no_zeros(self: Any, words: Any, number: int, source: RandomSource) -> bytes:
    """Noise on the counters of the sketch alone: an item that is shown was there."""
    found, counts = np.unique(words.astype(np.int64), return_counts=True)
    places, noisy = noisy_places(source, len(found), np.arange(len(found)), counts, self.scale, self.cut)
    return write_entries(found[places], noisy - self.cut)


def _entries_twins(protocol: Any) -> Sequence[Twin]:
    return (
        _half(protocol),
        _twin(
            protocol,
            "noise for an item removed",
            scale=_scaled("scale", lambda made: Fraction(made.capacity, made.capacity + 1)),
        ),
        _twin(protocol, "no noise on the other items of the universe", _encode=_no_zeros),
    )


# ---- rows ------------------------------------------------------------------------------------------------------------


def _register(
    kind: type[Any], examples: Callable[[], Sequence[Any]], audit: Any, twins: Callable[[Any], Sequence[Twin]]
) -> None:
    register(AuditCase(kind, examples, audit.structure, audit.exact, audit.statistical, audit.coupled, twins))


def _additive(length: int, **changes: Any) -> MessageAudit:
    return MessageAudit(lambda made, effort: _additive_laws(made, effort, changes, length), changes)


class _EntriesAudit(MessageAudit):
    """A Misra-Gries sketch depends on the order of its items; what must not is how far neighbours lie apart."""

    def coupled(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """Counters of large neighbouring streams, with as many counters as the protocol has."""
        generator, pairs = np.random.default_rng(1), []
        for _ in range(effort.released_pairs):
            items = generator.zipf(1.3, 400) % (2 * protocol.capacity + 2)
            other = items.copy()
            other[generator.integers(400)] = generator.integers(2 * protocol.capacity + 2)
            pairs.append((items.tolist(), other.tolist()))
        claimed = float(protocol.scale) * protocol.epsilon * _SLACK
        measured = counter_sensitivity(protocol, pairs)
        yield Finding("coupled", "large neighbouring streams", "sensitivity", claimed, measured, len(pairs))


_ONE, _THREE = Budget(1.0), Budget(3.0)

_register(
    HadamardResponse,
    lambda: (HadamardResponse("audit", _ONE, 1000), HadamardResponse("audit", _THREE, "strings")),
    MessageAudit(_response_laws, {}, ordered=True),
    _response_twins,
)
_register(
    LocalHashing,
    lambda: (LocalHashing("audit", _ONE, 1000), LocalHashing("audit", _THREE, "strings")),
    MessageAudit(_response_laws, {}, ordered=True),
    _response_twins,
)
_register(
    LocalSketch,
    lambda: (LocalSketch("audit", _ONE, 1000, columns=2), LocalSketch("audit", _THREE, "strings")),
    replace(_additive(2), ordered=True),
    _local_sketch_twins,
)
_register(
    IndependentSketches,
    lambda: (IndependentSketches("audit", _ONE, 1000), IndependentSketches("audit", _THREE, "strings", rows=3)),
    _additive(3, items_per_column=1.0, max_items=64),
    _sketch_twins,
)
_register(
    MergedSketch,
    lambda: (MergedSketch("audit", _ONE, 1000), MergedSketch("audit", _THREE, "strings", rows=1)),
    _additive(3, columns=3),
    _sketch_twins,
)
_register(
    Separation,
    lambda: (Separation("audit", _ONE, 1000), Separation("audit", _THREE, 1000, separation_share=0.25, rows=3)),
    MessageAudit(_separation_laws, _SMALL_SEPARATION),
    _separation_twins,
)
_register(
    MergedMisraGries,
    lambda: (MergedMisraGries("audit", _ONE, 1000, capacity=8),),
    _EntriesAudit(_entries_laws, {"capacity": 1}),
    _entries_twins,
)
