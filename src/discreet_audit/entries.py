"""Auditing releases of entries: integer vectors of known sensitivities, behind a threshold or over a universe.

These are the sensitivity-reduced sketch, sums of such sketches, and the baseline that adds noise for all counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.central import ReducedMisraGries, Summed
from discreet.published import ChanMisraGries
from discreet.summaries import MisraGries
from discreet_audit import structure as st
from discreet_audit.counters import CounterAudit
from discreet_audit.exact import neighbouring_streams, worst_divergence
from discreet_audit.findings import Finding
from discreet_audit.histograms import CountOf, HistogramAudit, Listed, claim, items_of, lowered, several, shown_by
from discreet_audit.laws import (
    Key,
    NoiseLaw,
    StatePair,
    group_delta,
    pure_loss,
    rounded_delta,
    squared_distance,
    threshold_delta,
)
from discreet_audit.registry import Effort
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair
from discreet_audit.structure import SEED, Counters

__all__ = ["EntriesAudit", "reduced"]

Entries = ReducedMisraGries | ChanMisraGries | Summed


def reduced(state: Counters, k: int) -> dict[Any, int]:
    """[LT] Algorithm 3 in units of 1/(k+1), from the definition: max(0, (k+1) c - sum c)."""
    total = sum(c for _, c in state.counts)
    return {key: y for key, c in state.counts if (y := (k + 1) * c - total) > 0}


@dataclass(frozen=True)
class EntriesAudit(HistogramAudit[Entries]):
    """The four checks of a release of entries.

    Args:
        reduces: Whether the sketch's sensitivity is reduced first (and small entries are rounded, without a universe).
        parts: Whether a list of sketches is released.
    """

    reduces: bool
    parts: bool = False

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

    # ---- structure -----------------------------------------------------------------------------------------------

    def structure(self, mechanism: Entries, effort: Effort) -> Iterator[Finding]:
        """The lemma about the sketch's states, and the sensitivity that follows."""
        yield from self._counters.structure(mechanism, effort)
        yield from _sensitivities(self.reduces, effort.length)

    # ---- exact ---------------------------------------------------------------------------------------------------

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
        return [*pairs, StatePair((Key(far + k, far),)), *(_raised(pair, far) for pair in pairs if k <= 2)]

    def exact(self, mechanism: Entries, effort: Effort) -> Iterator[Finding]:
        """The worst exact epsilon or rho (over a universe) or delta, and the code against the law."""
        pairs, (epsilon, delta), m = self.pairs(mechanism, effort), claim(mechanism), items_of(mechanism)
        rho = mechanism.budget.rho
        if rho is not None:
            farthest = max(squared_distance(pair) for pair in pairs) if self.reduces else mechanism.capacity
            lost = float(m * m * farthest / (2 * Fraction(mechanism.scale) ** 2))
            yield Finding("exact", "l2-distance over sigma", "rho", rho * (1.0 + 1e-12), lost, len(pairs))
        else:
            # What common entries lose; with a threshold, what they lose far above it.
            loss = max(pure_loss(pair, mechanism.scale) for pair in pairs)
            if not self.reduces:
                loss = float(mechanism.capacity / Fraction(mechanism.scale))
            yield Finding("exact", "l1-distance over the scale", "epsilon", epsilon, m * loss, len(pairs))
        if mechanism.universe is not None:
            small = mechanism.universe.size <= 4 and mechanism.capacity <= 2 and epsilon >= 1.5
            if small and not self.parts and m == 1:
                yield self._enumerated(mechanism, epsilon, delta)
        else:
            noise = NoiseLaw("laplace", mechanism.scale, min(1e-16, delta * 1e-8))
            step = epsilon if self.reduces else epsilon / m
            worst = max(self._delta(mechanism, noise, one, step, m) for pair in pairs for one in (pair, pair.swapped))
            total = worst if self.reduces else group_delta(worst, epsilon, m)
            yield Finding("exact", "worst neighbouring pair", "delta", delta, total, 2 * len(pairs))
        yield self._conforms(mechanism)

    def _delta(self, mechanism: Entries, noise: NoiseLaw, pair: StatePair, epsilon: float, m: int) -> float:
        cut = round(Fraction(mechanism.threshold) / mechanism.step)
        if not self.reduces:
            return threshold_delta(pair, noise, cut, epsilon)
        if m > 1:
            # m steps that add up in one entry: the farthest that a user can move it.
            pair = StatePair(tuple(Key((key.first or 0) * m, (key.second or 0) * m, key.times) for key in pair.keys))
        return rounded_delta(pair, noise, mechanism.sensitivity, cut, epsilon)

    def _enumerated(self, mechanism: Entries, epsilon: float, delta: float) -> Finding:
        """Every branch of the real code on every short stream over the universe."""
        items = mechanism.universe.take(np.arange(mechanism.universe.size)).to_pylist()
        found = worst_divergence(
            mechanism,
            lambda stream: self.filled(mechanism, list(stream)),
            neighbouring_streams(items, 2),
            epsilon,
            cutoff=1e-4,
        )
        return Finding("exact", "every branch of the code, least delta", "delta", delta, found.lower, 0, "length <= 2")

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
                entries = [item for item, keep in zip(entries[0], kept, strict=True) if keep], entries[1][kept]
                entries = entries[0], np.maximum(entries[1], D)
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
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

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

    # ---- statistical ---------------------------------------------------------------------------------------------

    def _heavy(self, mechanism: Entries) -> list[int]:
        return [0] * (3 * math.ceil(mechanism.threshold) + 20)

    def streams(self, mechanism: Entries) -> Sequence[Sequence[int]]:
        """An item far above the cut, some items, nothing, and one event."""
        return self._heavy(mechanism), several(mechanism.capacity), [], [0]

    def runs(self, mechanism: Entries, pair: ScoredPair, effort: Effort) -> int:
        """Noise for a whole universe takes longer to draw; what hides new keys shows in few runs if it is broken."""
        fewer = (4 if mechanism.universe is not None else 1) * max(1, mechanism.capacity // 32)
        some = effort.runs // 2 if isinstance(pair.score, Listed) else min(2 * effort.runs, 40_000)
        return max(300, some // int(fewer))

    def scored_pairs(self, mechanism: Entries, effort: Effort) -> Iterator[ScoredPair]:
        """One counter, a new key, and all counters: but a reduced sketch loses more by one counter."""
        heavy, m, k = self._heavy(mechanism), items_of(mechanism), mechanism.capacity
        yield self.pair(mechanism, "one counter higher", heavy + [0] * m, heavy, CountOf(0))
        yield self.pair(mechanism, "one key appears", heavy + [1] * m, heavy, Listed(frozenset([1])))
        if not self.reduces:
            full = [item for item in range(k) for _ in range(len(heavy))]
            gone, score = [k + extra for extra in range(m)], partial(lowered, len(heavy))
            yield self.pair(mechanism, "every counter lower", full + gone, full, score)

    # ---- coupled -------------------------------------------------------------------------------------------------

    def coupled(self, mechanism: Entries, effort: Effort) -> Iterator[Finding]:
        """The distance of what gets the noise, on large random streams."""
        m, rho = items_of(mechanism), mechanism.budget.rho
        spends = claim(mechanism)[0] if rho is None else math.sqrt(2.0 * rho)
        declared = float(mechanism.scale * Fraction(spends) / m) * (1.0 + 1e-12)
        distance = _l1 if rho is None else _l2
        pairs = self._counters.large_pairs(mechanism, effort)
        some = pairs[: max(200, effort.large_pairs // 4)]
        worst = max(distance(*(self._released(mechanism, summary) for summary in pair)) for pair in some)
        yield Finding("coupled", "sensitivity of the entries", "sensitivity", declared, worst, len(some))
        yield self._counters.large_structure(mechanism, pairs)

    def _released(self, mechanism: Entries, summary: Any) -> dict[Any, int]:
        given: Any = [summary, *self.filled(mechanism, [])[1:]] if self.parts else summary
        entries: dict[Any, int] = mechanism.entries(given).to_dict()
        return entries


def _raised(pair: StatePair, more: int) -> StatePair:
    """The pair with every common entry raised."""
    return StatePair(tuple(key.moved(more) if key.first and key.second else key for key in pair.keys))


@lru_cache(maxsize=8)
def _reduced_pairs(k: int, parts: bool, longer: int) -> tuple[StatePair, ...]:
    """The different pairs of reduced entries of neighbouring states; with another sketch's entries added, if summed."""
    others: list[dict[Any, int]] = [{}]
    table = st.misra_gries_table(k, longer)
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
def _sensitivities(reduces: bool, longer: int) -> tuple[Finding, ...]:
    findings = []
    for k in (1, 2, 3):
        if reduces:
            pairs, tried = st.misra_gries_table(k, longer).neighbours()
            values = [(reduced(first, k), reduced(second, k)) for first, second in pairs]
            worst = max(_l1(*pair) for pair in values)
            lemma, most = f"LT Lemma 16, k={k}, in 1/(k+1)", 2 * k - 1
            length = math.sqrt(k * k + k - 1)
            longest = max(_l2(*pair) for pair in values)
            findings.append(Finding("structure", f"{lemma}, l2", "sensitivity", length, longest, tried))
        else:
            pairs, tried = st.merged_states(k)
            worst = max(_l1(dict(first.counts), dict(second.counts)) for first, second in pairs)
            lemma, most = f"LT Corollary 18, k={k}", k
        findings.append(Finding("structure", lemma, "sensitivity", most, worst, tried))
    return tuple(findings)


def _l1(a: dict[Any, int], b: dict[Any, int]) -> int:
    return sum(abs(a.get(key, 0) - b.get(key, 0)) for key in {*a, *b})


def _l2(a: dict[Any, int], b: dict[Any, int]) -> float:
    return math.sqrt(sum((a.get(key, 0) - b.get(key, 0)) ** 2 for key in {*a, *b}))
