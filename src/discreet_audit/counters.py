"""Auditing releases of counters: noise on every counter, and a cut.

One class for all of them. What differs is which summary holds the counters, whether counters at zero are released, and
whether all share one more noise; thresholds, scales and the law of the noise are read from the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from discreet.central import Mechanism, Stability
from discreet.published import PrivateSpaceSaving
from discreet.releases.release import Release
from discreet.summaries import MisraGries
from discreet_audit import structure as st
from discreet_audit.findings import Finding
from discreet_audit.histograms import (
    CountOf,
    HistogramAudit,
    Listed,
    Raised,
    claim,
    items_of,
    lowered,
    several,
    shown_by,
    sum_of,
)
from discreet_audit.laws import (
    Key,
    NoiseLaw,
    StatePair,
    divergence,
    gaussian_split_delta,
    group_delta,
    shared_split_delta,
    threshold_delta,
)
from discreet_audit.registry import Effort
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair
from discreet_audit.structure import SEED, Counters, counters_of, state_pair

__all__ = ["CounterAudit"]

States = dict[StatePair, tuple[Counters, Counters, int] | None]
"""Pairs with the states and the capacity that they come from, where they were found by search."""


@dataclass(frozen=True)
class CounterAudit(HistogramAudit[Any]):
    """The four checks of a release of counters.

    Args:
        summary: One of `structure.KINDS`.
        zeros: Whether counters at zero are released too.
        shared: "no", "hidden" (one more noise on all counters), "halves" (the same, both in half counts) or "published"
            (the offset, with its noise).
    """

    summary: str
    zeros: bool = False
    shared: str = "no"

    def empty(self, mechanism: Any) -> Any:
        """An empty summary that the mechanism takes."""
        kind = st.KINDS["misra-gries" if self.summary == "merged" else self.summary]
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
        length = mechanism.stream_length if self.summary == "space-saving" else None
        return length if isinstance(length, int) else None

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The lemma about neighbouring states, on every pair of short streams."""
        yield from st.KINDS[self.summary].structure(items_of(mechanism), effort.length)

    # ---- exact ---------------------------------------------------------------------------------------------------

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
            detail, total = f"one event: {worst:.6g}" if steps > 1 else "", group_delta(worst, epsilon, steps)
            yield Finding("exact", "worst neighbouring pair", "delta", delta, total, tried, detail)
        wrong, tried = self.conforms(mechanism)
        yield Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong, 0, f"{tried} keys")

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
            return threshold_delta(pair, noise, mechanism.threshold, epsilon, shared=self.shared != "no")
        cuts = getattr(mechanism, "not_private_cut", None)
        if cuts is not None:  # a literal version, whose cut depends on the private length
            both = (cuts(pair.total), cuts(pair.total - pair.length))
            return threshold_delta(pair, noise, both, epsilon)
        changed = StatePair(tuple(key for key in pair.keys if key.first != key.second), 0, pair.length, pair.total)
        if mechanism.error_model.offset_noise is None:
            return threshold_delta(changed, noise, mechanism.threshold, epsilon)
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
            worst = max(shared_split_delta(noise, common, i, j, cut, epsilon, steps) for i, j in splits)
        else:
            worst = max(gaussian_split_delta(noise, i, j, cut, epsilon) for i, j in splits)
        return Finding("exact", f"up to {most} counters, isolated or common", "delta", delta, worst, 2 * len(splits))

    def conforms(self, mechanism: Any) -> tuple[int, int]:
        """Runs the release itself with chosen noise around the cut: what it shows must be what the law says."""
        k = min(_capacity(mechanism, 40), 40)
        stream = [item for item in range(k) for _ in range(item % 4 + 1)][: self.room(mechanism)]
        if self.zeros and mechanism.capacity == k:
            stream = [*stream, 999_999]  # one decrement, so that some counters are at zero
        summary = self.filled(mechanism, stream)
        raw = {item: c for item, c in summary.not_private_counts().to_dict().items() if self.zeros or c > 0}
        items, values = list(raw), np.array(list(raw.values()), np.int64)
        alpha = counters_of(summary).offset
        model, wrong, tried = mechanism.error_model, 0, 0
        single_law = model.shared or model.offset_noise
        cut_for = getattr(mechanism, "not_private_cut", None)
        threshold = mechanism.threshold if cut_for is None else cut_for(summary.total)
        for single in (-2, 0, 3):
            offset = None
            if self.shared == "published":
                offset = alpha + single
            elif self.summary == "space-saving" and model.offset_noise is not None:
                offset = (summary.total + single) // mechanism.capacity
            base = values + (alpha if self.shared == "published" else 0) + (single if self.shared == "hidden" else 0)
            # Around the cut in steps of one, so that > in place of >= shows.
            around = np.arange(len(base)) % 5 - 2
            each = threshold + (offset or 0) - base + around
            noisy = base + each
            if self.shared == "halves":
                each = 2 * (threshold - base) - single + around
                # Halves go to the even number.
                noisy = np.array([round(Fraction(int(v), 2)) for v in 2 * base + each + single], np.int64)
            source = ScriptedSource(single, each if len(each) else 0)
            release = mechanism(summary, source)
            wrong += shown_by(release) != {
                item: int(v) for item, v, a in zip(items, noisy, around, strict=True) if a >= 0
            }
            wrong += release.offset != offset
            for draw in source.draws:
                declared = single_law if draw.size is None else model.noise
                wrong += declared is None or (draw.law, draw.scale) != (declared.law, declared.scale)
            wrong += sum(draw.size is None for draw in source.draws) != (single_law is not None)
            tried += len(base)
        return wrong, tried

    # ---- statistical ---------------------------------------------------------------------------------------------

    def heavy(self, mechanism: Any) -> list[int]:
        """One item, far above the cut."""
        room = self.room(mechanism)
        return [0] * (_far_above(mechanism) if room is None else room - 1)

    def streams(self, mechanism: Any) -> Sequence[Sequence[int]]:
        """An item far above the cut, some items, nothing, and one event."""
        heavy = self.heavy(mechanism)
        return heavy, several(getattr(mechanism, "capacity", None)), [], heavy[:1]

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
        yield self.pair(mechanism, "one counter higher", heavy + [0] * same, heavy, CountOf(0))
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
            streams = st.misra_gries_table(k, effort.length).streams_of(*states[:2])
            yield self.pair(mechanism, "worst pair of the search", *streams, Listed(frozenset(alone)))
        elif self.summary != "space-saving":
            yield self.pair(mechanism, "one key appears", heavy + [1] * same, heavy, Listed(frozenset([1])))

    def _some_higher(self, mechanism: Any, full: list[int]) -> ScoredPair:
        """Some counters higher and the others not: what the shared noise hides least."""
        k, m = mechanism.capacity, items_of(mechanism)
        first, second = (self.filled(mechanism, full) for _ in range(2))
        raised = list(range(min(m, k))) if self.summary == "users" else [0]
        first.update([raised] if self.summary == "users" else np.asarray(raised * m, np.int64))
        ratio = float(mechanism.scale / mechanism.shared_scale) ** 2
        return ScoredPair("some counters higher", first, second, Raised(frozenset(raised), len(raised) / (k + ratio)))

    # ---- coupled -------------------------------------------------------------------------------------------------

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
        yield Finding("coupled", "sensitivity of what is released", "sensitivity", declared, worst, len(some))

    def large_pairs(self, mechanism: Any, effort: Effort) -> list[tuple[Any, Any]]:
        """Summaries of large random neighbouring streams."""
        k, m = _capacity(mechanism, 16), items_of(mechanism)
        length = min(20_000, max(1000, 20 * k), self.room(mechanism) or 20_000)
        count = effort.large_pairs if k <= 64 else effort.large_pairs // 5
        return _large_pairs(self.summary, k, m, bool(getattr(mechanism, "distinct", False)), length, count)

    def large_structure(self, mechanism: Any, pairs: list[tuple[Any, Any]]) -> Finding:
        """How many of the pairs break the lemma."""
        return st.KINDS[self.summary].large_structure(pairs, _capacity(mechanism, 16), items_of(mechanism))

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
        for first, second in st.misra_gries_table(k, longer).neighbours()[0]:
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
    m, distinct = items_of(mechanism), mechanism.distinct

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
    for first, second in st.space_saving_table(k, longer).neighbours()[0]:
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
        total += divergence(pair.keys, noise, (cut, cut), math.exp(epsilon), (start[0], start[1]))
    return total + 2.0 * (len(pair.keys) + 1) * noise.left_out


@lru_cache(maxsize=16)
def _large_pairs(summary: str, k: int, m: int, distinct: bool, length: int, count: int) -> list[tuple[Any, Any]]:
    make, removed = partial(st.KINDS[summary].make, k, m), m if summary == "exact" else 1
    users = m if summary == "users" else 0
    length = length // 4 if users else length
    return st.random_pairs(make, count, length, 4 * k + 10, removed=removed, distinct=distinct, users=users)
