"""Rows for the multiparty protocols: what one party's message tells about one of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from discreet.multiparty import HadamardResponse, IndependentSketches, LocalHashing, LocalSketch, Protocol, Separation
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.noise.response import keep_probability
from discreet.privacy import Budget
from discreet.published import MergedMisraGries, MergedSketch
from discreet_audit import multiparty_laws as laws
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import twin
from discreet_audit.sources import ScriptedSource, WeakenedSource
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["MessageAudit", "OnlyThere", "an_item_replaced", "speaking"]

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly
Laws = Callable[[Any, Effort], Iterator[Finding]]


def an_item_replaced(
    run: Callable[[Any], Any], first: Any, second: Any, score: Callable[[Any], float], epsilon: float, effort: Effort
) -> Finding:
    """Messages of the compiled code with fresh noise, of two inputs that differ in one item."""
    bound = measure(run, ScoredPair("an item replaced", first, second, score), 0.0, effort.runs)
    return Finding("statistical", "an item replaced", "epsilon", epsilon, max(bound, 0.0), 1)


# ---- coupled: what neighbours send with equal randomness -------------------------------------------------------------


def _order_is_not_shown(small: Protocol, items: list[int], seed: int, generator: np.random.Generator) -> bool:
    given = (items, generator.permutation(items).tolist())
    return len({small.party(1, source=seeded_source(seed)).encode(each) for each in given}) == 1


def _one_report_changes(small: Protocol, items: list[int], seed: int, generator: np.random.Generator) -> bool:
    changed = [*items[:4], (items[4] + 1) % laws.UNIVERSE, *items[5:]]
    messages = (small.party(1, source=seeded_source(seed)).encode(each) for each in (items, changed))
    first, second = (np.delete(small.open(message)[1].values, 4, 0) for message in messages)
    return np.array_equal(first, second)


_SAME_FOR = {
    "messages that show the order of the items": _order_is_not_shown,
    "other reports that an item changes": _one_report_changes,
}


@dataclass(frozen=True)
class MessageAudit:
    """The checks of one protocol.

    Args:
        exact: Findings from exact laws.
        changes: What the protocol gets besides a tiny universe, so that its messages are small.
        same: What must be the same with equal randomness: messages of items in another order, or the other reports.
    """

    exact: Laws
    changes: dict[str, Any] = field(default_factory=dict)
    same: str = "messages that show the order of the items"

    def structure(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """Everything around the noisy numbers is the same for all inputs of the same length."""
        small = laws.tiny(protocol, laws.UNIVERSE, **self.changes)
        envelopes = {
            small.party(5, source=seeded_source(1)).encode(list(x))[:22] for x in laws.inputs(laws.UNIVERSE, 3)
        }
        wrong = len(envelopes) - 1
        yield Finding("structure", "envelopes that tell inputs apart", "violations", 0, wrong, laws.UNIVERSE**3)

    def statistical(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """A party whose public hash functions tell items 0 and 1 apart: with the same noise they differ."""
        small = laws.tiny(protocol, laws.UNIVERSE, **self.changes)

        def encode(items: list[int], number: int, source: RandomSource | None = None) -> bytes:
            message: bytes = small.party(number, source=source).encode(items)
            return message

        def score(message: bytes) -> float:
            aggregator = small.aggregator()
            aggregator.receive(message)
            values = aggregator.estimate([0, 1]).values
            return float(values[0] - values[1])

        apart = (n for n in range(64) if encode([0], n, seeded_source(1)) != encode([1], n, seeded_source(1)))
        number = next(apart, 0)
        yield an_item_replaced(lambda items: encode(items, number), [0], [1], score, small.epsilon, effort)

    def coupled(self, protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        """With equal randomness: items in another order give the same bytes; or one report changes, its own."""
        small, pairs, generator = (
            laws.tiny(protocol, laws.UNIVERSE, **self.changes),
            effort.released_pairs,
            np.random.default_rng(1),
        )
        holds = _SAME_FOR[self.same]
        streams = (generator.integers(0, laws.UNIVERSE, 9).tolist() for _ in range(pairs))
        wrong = sum(not holds(small, items, seed, generator) for seed, items in enumerate(streams))
        yield Finding("coupled", self.same, "violations", 0, wrong, pairs)


class _EntriesAudit(MessageAudit):
    """A Misra-Gries sketch depends on the order of its items; what must not is how far neighbours lie apart."""

    def coupled(self, protocol: Any, effort: Effort) -> Iterator[Finding]:
        """Counters of large neighbouring streams, with as many counters as the protocol has."""
        generator, pairs, size = np.random.default_rng(1), [], 2 * protocol.capacity + 2
        for _ in range(effort.released_pairs):
            items = generator.zipf(1.3, 400) % size
            other = items.copy()
            other[generator.integers(400)] = generator.integers(size)
            pairs.append((tuple(items.tolist()), tuple(other.tolist())))
        claimed = float(protocol.scale) * protocol.epsilon * _SLACK
        measured = laws.counter_sensitivity(protocol, pairs)
        yield Finding("coupled", "large neighbouring streams", "sensitivity", claimed, measured, len(pairs))


# ---- exact -----------------------------------------------------------------------------------------------------------


def _loss(what: str, small: Protocol, loss: float, pairs: int, quantity: str = "epsilon") -> Finding:
    return Finding("exact", what, quantity, small.epsilon * _SLACK, loss, pairs)


def _response_laws(protocol: Protocol, effort: Effort) -> Iterator[Finding]:
    small = laws.tiny(protocol)
    for length, numbers in ((1, range(8)), (2, range(1 + max(0, effort.length)))):
        found = [laws.message_loss(small, 3, length, number) for number in numbers]
        loss, pairs = max(loss for loss, _ in found), sum(pairs for _, pairs in found)
        yield _loss(f"messages of {length} item(s)", small, loss, pairs)


def _additive(length: int, same: str = "messages that show the order of the items", **changes: Any) -> MessageAudit:
    def findings(protocol: Protocol, effort: Effort) -> Iterator[Finding]:
        small = laws.tiny(protocol, **changes)
        wrong = laws.noise_is_added(small, length)
        yield Finding("exact", "cells without the noise that was drawn", "violations", 0, wrong, laws.UNIVERSE**length)
        yield _loss("messages of a few items", small, *laws.additive_loss(small, length + max(0, effort.length)))

    return MessageAudit(findings, changes, same)


def _entries_laws(protocol: Any, effort: Effort) -> Iterator[Finding]:
    for capacity in range(1, 3 + max(0, effort.length)):
        yield _loss(f"counters of {capacity}, all inputs", protocol, *laws.entries_loss(protocol, capacity))
    # Every message with its probability: that the code is the law above, and not noise on fewer items.
    small = laws.tiny(replace(protocol, budget=Budget(max(protocol.epsilon, 3.0))), 2, capacity=1)
    quantity = f"epsilon at {small.epsilon:g}"
    yield _loss("messages of 2 items of a universe of 2", small, *laws.message_loss(small, 2, 2), quantity)


def _separation_laws(protocol: Any, effort: Effort) -> Iterator[Finding]:
    for threshold, length in ((0, 1), (0, 2), (1, 2), (1, 3))[: 4 if effort.length > 0 else 3]:
        small = laws.tiny(protocol, 4, **{**laws.SMALL_SEPARATION, "threshold": threshold})
        pairs = list(laws.neighbours(4, length))
        yield _loss(f"{length} item(s), heavy above {threshold}", small, laws.separation_loss(small, pairs), len(pairs))
        if length > 1:
            wrong, what = laws.separation_messages(small, pairs), "messages that follow more than the noisy numbers"
            yield Finding("exact", f"{length} items: {what}", "violations", 0, wrong, len(pairs))
    yield Finding("exact", "scales other than those of the law", "violations", 0, laws.other_scales(protocol), 1)


# ---- twins -----------------------------------------------------------------------------------------------------------

Speak = Callable[[Any, RandomSource], bytes]


def speaking(
    protocol: Any, name: str, encode: Callable[[Any, Any, RandomSource, Speak], bytes], **members: Any
) -> Twin:
    """A twin whose parties make their messages otherwise: `speak(items, source)` is how the right party would."""

    def party(self: Any, number: int, *, source: RandomSource | None = None) -> Any:
        def speak(items: Any, drawn: RandomSource) -> bytes:
            message: bytes = super(type(self), self).party(number, source=drawn).encode(items)
            return message

        return SimpleNamespace(encode=lambda items: encode(self, items, source or system_source(), speak))

    return twin(protocol, name, party=party, **members)


def _nonzero(self: Any, items: Any, source: RandomSource, speak: Speak) -> bytes:
    plain = laws.cells_of(self.open(speak(items, ScriptedSource())))
    noise = source.discrete_laplace(self.scale, len(plain)) * (plain != 0)
    return speak(items, ScriptedSource(each=noise))


class OnlyThere(WeakenedSource):
    """No item passes a cut but those that are there."""

    def discrete_laplace_exceedances(self, trials: Any, scale: Any, minimum: Any, size: Any = None) -> Any:
        return 0


def _scaled(protocol: Any, what: str, by: Callable[[Any], Fraction | float], name: str = "scale") -> Twin:
    """The right scale times this."""
    scale = property(lambda self: getattr(super(type(self), self), name) * Fraction(by(self)))
    return twin(protocol, what, **{name: scale})


def _half(protocol: Any, name: str = "scale") -> Twin:
    return _scaled(protocol, "half the noise", lambda made: 0.5, name)


def _sorted_reports(protocol: Any) -> Twin:
    what = "reports in the order of their items"
    return speaking(protocol, what, lambda self, items, source, speak: speak(sorted(items), source))


def _response_twins(protocol: Any) -> Sequence[Twin]:
    twice = property(lambda self: keep_probability(getattr(self, "buckets", 2), 2 * Fraction(self.epsilon)))
    return twin(protocol, "a response for twice epsilon", keep=twice), _sorted_reports(protocol)


def _sketch_twins(protocol: Any) -> Sequence[Twin]:
    few = speaking(protocol, "noise on the cells that are not zero", _nonzero)
    if isinstance(protocol, LocalSketch):
        return _half(protocol), _sorted_reports(protocol), few
    twins = [_half(protocol), few]
    if protocol.rows > 1:
        twins.append(_scaled(protocol, "noise for one row", lambda made: Fraction(1, made.rows)))
    return twins


def _literal_cells(self: Any, words: Any, heavy: Any, width: int, number: int) -> Any:
    """The sketch and the number of light items, which [MDP] releases with e/4 where a cell of R rows has e/(8 R)."""
    light = words[~np.isin(words, heavy.astype(np.uint64))]
    cells = Separation.light_cells(self, words, heavy, width, number)
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
        "light_cells": _literal_cells,
    }
    return (
        twin(protocol, "heavy and light in parallel, as printed", **literal),
        twin(protocol, "u - n zero entries, as printed", choose=_literal_choice),
        _half(protocol, "heavy_scale"),
        _half(protocol, "separation_scale"),
    )


def _entries_twins(protocol: Any) -> Sequence[Twin]:
    removed = _scaled(protocol, "noise for an item removed", lambda made: Fraction(made.capacity, made.capacity + 1))
    what = "no noise on the other items of the universe"
    there = speaking(protocol, what, lambda self, items, source, speak: speak(items, OnlyThere(source)))
    return _half(protocol), removed, there


# ---- rows ------------------------------------------------------------------------------------------------------------

_ONE, _THREE = Budget(1.0), Budget(3.0)
_reports = "other reports that an item changes"

row(
    HadamardResponse,
    lambda: (HadamardResponse("audit", _ONE, 1000), HadamardResponse("audit", _THREE, "strings")),
    MessageAudit(_response_laws, same=_reports),
    _response_twins,
)
row(
    LocalHashing,
    lambda: (LocalHashing("audit", _ONE, 1000), LocalHashing("audit", _THREE, "strings")),
    MessageAudit(_response_laws, same=_reports),
    _response_twins,
)
row(
    LocalSketch,
    lambda: (LocalSketch("audit", _ONE, 1000, columns=2), LocalSketch("audit", _THREE, "strings")),
    _additive(2, _reports),
    _sketch_twins,
)
row(
    IndependentSketches,
    lambda: (IndependentSketches("audit", _ONE, 1000), IndependentSketches("audit", _THREE, "strings", rows=3)),
    _additive(3, items_per_column=1.0, max_items=64),
    _sketch_twins,
)
row(
    MergedSketch,
    lambda: (MergedSketch("audit", _ONE, 1000), MergedSketch("audit", _THREE, "strings", rows=1)),
    _additive(3, columns=3),
    _sketch_twins,
)
row(
    Separation,
    lambda: (Separation("audit", _ONE, 1000), Separation("audit", _THREE, 1000, separation_share=0.25, rows=3)),
    MessageAudit(_separation_laws, laws.SMALL_SEPARATION),
    _separation_twins,
)
row(
    MergedMisraGries,
    lambda: (MergedMisraGries("audit", _ONE, 1000, capacity=8),),
    _EntriesAudit(_entries_laws, {"capacity": 1}),
    _entries_twins,
)
