"""Auditing releases of counters: noise on every counter, and a cut.

One class for all of them. What differs is which summary holds the counters, whether counters at zero are released, and
whether all share one more noise; thresholds, scales and the law of the noise are read from the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.privacy import User
from discreet.summaries import ExactCounts, MisraGries, SpaceSaving, UserMisraGries
from discreet_audit import structure as st
from discreet_audit.findings import Finding
from discreet_audit.histograms import AnyShown, CountOf, Listed, Lowered, Raised, plumbing, recorded, several, sum_of
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
from discreet_audit.states import Counters, counters_of, state_pair
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["CounterAudit", "claim", "items_of"]

_SEED = 7


def claim(mechanism: Any) -> tuple[float, float]:
    """(epsilon, delta) that the mechanism promises."""
    guarantee = mechanism.guarantee
    return guarantee.epsilon, guarantee.delta


def items_of(mechanism: Any) -> int:
    """How many events one unit of privacy may have."""
    return mechanism.unit.limit if isinstance(mechanism.unit, User) else 1


@dataclass(frozen=True)
class CounterAudit:
    """The four checks of a release of counters.

    Args:
        summary: "misra-gries", "merged", "users", "exact" or "space-saving".
        zeros: Whether counters at zero are released too.
        shared: "no", "hidden" (one more noise on all counters), "halves" (the same, both in half counts) or "published"
            (the offset, with its noise).
    """

    summary: str
    zeros: bool = False
    shared: str = "no"

    # ---- summaries -----------------------------------------------------------------------------------------------

    def empty(self, mechanism: Any) -> Any:
        """An empty summary that the mechanism takes."""
        if self.summary == "exact":
            return ExactCounts(seed=_SEED)
        if self.summary == "space-saving":
            return SpaceSaving(mechanism.capacity, seed=_SEED)
        if self.summary == "users":
            return UserMisraGries(mechanism.capacity, mechanism.unit.limit, seed=_SEED)
        return MisraGries(mechanism.capacity, seed=_SEED)

    def filled(self, mechanism: Any, stream: Sequence[int]) -> Any:
        """The summary of a stream of items (each a user of its own, where users are protected)."""
        summary = self.empty(mechanism)
        summary.update([[item] for item in stream] if self.summary == "users" else np.asarray(stream, np.int64))
        if self.summary == "merged":
            summary.merge(self.empty_part(mechanism))
        return summary

    def empty_part(self, mechanism: Any) -> Any:
        """Another sketch to merge with: it makes the summary a merged one and changes no counter."""
        return MisraGries(mechanism.capacity, seed=_SEED + 1)

    # ---- structure -----------------------------------------------------------------------------------------------

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The lemma about neighbouring states, on every pair of short streams."""
        return iter(_structure(self.summary, items_of(mechanism), effort.length))

    # ---- exact ---------------------------------------------------------------------------------------------------

    def pairs(self, mechanism: Any, effort: Effort) -> dict[StatePair, tuple[Counters, Counters, int] | None]:
        """Neighbouring pairs of states, with the states and capacity they come from where they were found by search."""
        k = getattr(mechanism, "capacity", None) or 1
        if self.summary == "exact":
            return dict.fromkeys(_added_by_a_user(mechanism))
        if self.summary == "space-saving":
            return _space_saving_pairs(mechanism, effort.length)
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
            # A user of m events is m steps, unless the pairs are those of users already.
            steps = 1 if self.summary == "exact" else items_of(mechanism)
            detail = f"one event: {worst:.6g}" if steps > 1 else ""
            yield Finding(
                "exact", "worst neighbouring pair", "delta", delta, group_delta(worst, epsilon, steps), tried, detail
            )
        yield self._conforms(mechanism)

    def worst(
        self, mechanism: Any, noise: NoiseLaw, effort: Effort
    ) -> tuple[float, int, tuple[Counters, Counters, int] | None]:
        """The largest delta over all pairs and both directions, how many, and the states that have it."""
        epsilon = claim(mechanism)[0] / (1 if self.summary == "exact" else items_of(mechanism))
        best: tuple[float, int, Any] = (-1.0, 0, None)
        pairs = self.pairs(mechanism, effort)
        for pair, states in pairs.items():
            for one in (pair, pair.swapped):
                delta = self._delta(mechanism, one, noise, epsilon)
                if delta > best[0]:
                    best = (delta, 0, states)
        return best[0], 2 * len(pairs), best[2]

    def _delta(self, mechanism: Any, pair: StatePair, noise: NoiseLaw, epsilon: float) -> float:
        if self.summary != "space-saving":
            return threshold_delta(pair, noise, mechanism.threshold, epsilon, shared=self.shared != "no")
        cuts = getattr(mechanism, "not_private_cut", None)
        if cuts is not None:  # a literal version, whose cut depends on the private length
            both = (cuts(pair.total), cuts(pair.total - pair.length))
            return threshold_delta(pair, noise, both, epsilon)
        if mechanism.error_model.offset_noise is None:
            changed = StatePair(tuple(key for key in pair.keys if key.first != key.second), 0, pair.length)
            return threshold_delta(changed, noise, mechanism.threshold, epsilon)
        return _noisy_length_delta(mechanism, pair, noise, epsilon)

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
            steps = _steps(mechanism)
            worst = max(shared_split_delta(noise, common, i, j, cut, epsilon, steps) for i, j in splits)
        else:
            worst = max(gaussian_split_delta(noise, i, j, cut, epsilon) for i, j in splits)
        return Finding("exact", f"up to {most} counters, isolated or common", "delta", delta, worst, 2 * len(splits))

    def _conforms(self, mechanism: Any) -> Finding:
        """Runs the release itself with chosen noise around the cut: what it shows must be what the law says."""
        k = min(getattr(mechanism, "capacity", None) or 40, 40)
        room = mechanism.stream_length if isinstance(getattr(mechanism, "stream_length", None), int) else 10_000
        stream = [item for item in range(k) for _ in range(item % 4 + 1)][:room]
        if self.zeros and getattr(mechanism, "capacity", 0) == k:
            stream = [*stream, 999_999]  # one decrement, so that some counters are at zero
        summary = self.filled(mechanism, stream)
        raw = summary.not_private_counts()
        items, values = raw.items.to_pylist(), raw.counts
        if not self.zeros:
            items, values = [item for item, c in zip(items, values, strict=True) if c > 0], values[values > 0]
        alpha = counters_of(summary).offset
        model, wrong, tried = mechanism.error_model, 0, 0
        single_law = model.shared or model.offset_noise
        cut_for = getattr(mechanism, "not_private_cut", None)
        for single in (-2, 0, 3):
            offset = None
            if self.shared == "published":
                offset = alpha + single
            elif self.summary == "space-saving" and model.offset_noise is not None:
                offset = (summary.total + single) // mechanism.capacity
            threshold = mechanism.threshold if cut_for is None else cut_for(summary.total)
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
            shown = around >= 0
            expected = {item: int(v) for item, v, s in zip(items, noisy, shown, strict=True) if s}
            wrong += dict(zip(release.items, release.counts.tolist(), strict=True)) != expected
            wrong += release.offset != offset
            for draw in source.draws:
                declared = single_law if draw.size is None else model.noise
                wrong += declared is None or (draw.law, draw.scale) != (declared.law, declared.scale)
            wrong += sum(draw.size is None for draw in source.draws) != (single_law is not None)
            tried += len(base)
        return Finding(
            "exact", "the code draws and shows what the law says", "violations", 0, wrong, 0, f"{tried} keys"
        )

    # ---- statistical ---------------------------------------------------------------------------------------------

    def statistical(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Lower bounds on epsilon on the worst kinds of pairs; order, repetition, the empty stream."""
        heavy = self._heavy(mechanism)
        streams: tuple[list[int], ...] = (heavy, several(getattr(mechanism, "capacity", None)), [], heavy[:1])
        yield plumbing(mechanism, *(self.filled(mechanism, stream) for stream in streams))
        epsilon, delta = claim(mechanism)
        release = self.releasing(mechanism)
        for pair in self.scored_pairs(mechanism, effort):
            # What hides new keys shows in few runs if it is broken; the others are worth more.
            many = 4 if self.summary == "exact" else 2  # exact counts take least time
            more = min(many * effort.runs, 40_000) if release is not mechanism else effort.runs
            some = effort.runs // 2 if isinstance(pair.score, (Listed, AnyShown)) else more
            runs = max(300, some // max(1, (getattr(mechanism, "capacity", None) or 1) // 32))
            bound = measure(release, pair, delta, runs)
            yield Finding("statistical", pair.name, "epsilon", epsilon, bound, 1, f"{runs} runs of each")

    def releasing(self, mechanism: Any) -> Callable[[Any], Any]:
        """What makes the outputs that `scored_pairs` score."""
        return recorded(mechanism)

    def _heavy(self, mechanism: Any) -> list[int]:
        """One item, far above the cut."""
        room = getattr(mechanism, "stream_length", None)
        if self.summary == "space-saving" and isinstance(room, int):
            return [0] * (room - 1)
        return [0] * (3 * int(mechanism.threshold) + 20)

    def scored_pairs(self, mechanism: Any, effort: Effort) -> Iterator[ScoredPair]:
        """The pairs that the runs are made on, with what tells them apart."""
        heavy, m = self._heavy(mechanism), items_of(mechanism)
        more = m if self.summary != "users" else 1
        if self.summary == "space-saving" and isinstance(getattr(mechanism, "stream_length", None), int):
            heavy = heavy[: len(heavy) + 1 - more]
        yield ScoredPair(
            "one counter higher",
            self.filled(mechanism, heavy + [0] * (1 if getattr(mechanism, "distinct", False) else more)),
            self.filled(mechanism, heavy),
            CountOf(0),
        )
        k = getattr(mechanism, "capacity", None)
        if self.summary in ("misra-gries", "merged", "users") and k is not None:
            full = [item for item in range(k) for _ in range(len(heavy))]
            gone = [k + extra for extra in range(more)]
            apart = self.shared == "no" and _is_laplace(mechanism)
            score: Any = Lowered(len(heavy)) if apart else sum_of
            yield ScoredPair(
                "every counter lower", self.filled(mechanism, full + gone), self.filled(mechanism, full), score
            )
            if self.shared == "halves":
                yield self._some_higher(mechanism, full)
        states = None
        if self.summary == "misra-gries" and k is not None and k <= 3 and mechanism.error_model.noise.law == "laplace":
            noise = NoiseLaw("laplace", mechanism.scale, 1e-16)
            states = self.worst(mechanism, noise, effort)[2]
        if states is not None and states[2] == k:
            table = st.misra_gries_table(k, effort.length)
            first, second = (self.filled(mechanism, stream) for stream in table.streams_of(*states[:2]))
            alone = {key for key, _ in states[0].counts} - {key for key, _ in states[1].counts}
            yield ScoredPair("worst pair of the search", first, second, Listed(frozenset(alone)))
        elif self.summary != "space-saving":
            yield ScoredPair(
                "one key appears",
                self.filled(mechanism, heavy + [1] * (1 if getattr(mechanism, "distinct", False) else more)),
                self.filled(mechanism, heavy),
                Listed(frozenset([1])),
            )

    def _some_higher(self, mechanism: Any, full: list[int]) -> ScoredPair:
        """Some counters higher and the others not: what the shared noise hides least."""
        k, m = mechanism.capacity, items_of(mechanism)
        first, second = (self.filled(mechanism, full) for _ in range(2))
        raised = list(range(min(m, k))) if self.summary == "users" else [0]
        first.update([raised] if self.summary == "users" else np.asarray(raised * m, np.int64))
        ratio = float(mechanism.scale / mechanism.shared_scale) ** 2
        score = Raised(frozenset(raised), len(raised) / (k + ratio))
        return ScoredPair("some counters higher", first, second, score)

    # ---- coupled -------------------------------------------------------------------------------------------------

    def coupled(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Large random neighbours with the same noise: how far apart are the releases?"""
        pairs = self.large_pairs(mechanism, effort)
        yield self.large_structure(mechanism, pairs)
        # Users of m events are m steps of one event, and so is the declared sensitivity; exact counts add up directly.
        steps = items_of(mechanism) if self.summary not in ("exact", "users") else 1
        declared = float(mechanism.scale * _epsilon_of_noise(mechanism) / steps) if _is_laplace(mechanism) else 1.0
        level = 30_000 + int(mechanism.threshold)
        unit = 2 if self.shared == "halves" else 1  # of noise in a count
        worst, laplace = 0.0, _is_laplace(mechanism)
        some = pairs[:: max(1, len(pairs) // effort.released_pairs)]
        for first, second in some:
            released: list[tuple[dict[Any, int], int]] = []
            for summary in (first, second):
                script = ScriptedSource(0, unit * level)
                release = mechanism(summary, script)
                shown = dict(zip(release.items, (release.counts - level).tolist(), strict=True))
                released.append((shown, release.offset or 0))
            worst = max(worst, self._distance(released[0], released[1], laplace))
        yield Finding("coupled", "sensitivity of what is released", "sensitivity", declared, worst, len(some))

    def large_pairs(self, mechanism: Any, effort: Effort) -> list[tuple[Any, Any]]:
        """Summaries of large random neighbouring streams."""
        k = getattr(mechanism, "capacity", None) or 16
        removed = items_of(mechanism) if self.summary == "exact" else 1
        length = min(20_000, max(1000, 20 * k))
        if self.summary == "space-saving" and isinstance(mechanism.stream_length, int):
            length = min(length, mechanism.stream_length)
        count = effort.large_pairs if k <= 64 else effort.large_pairs // 5
        distinct = bool(getattr(mechanism, "distinct", False))
        return _large_pairs(self.summary, k, items_of(mechanism), removed, distinct, length, count)

    def large_structure(self, mechanism: Any, pairs: list[tuple[Any, Any]]) -> Finding:
        """How many of the pairs break the lemma."""
        k, removed = getattr(mechanism, "capacity", None) or 16, items_of(mechanism)
        broken = 0
        for first, second in pairs:
            a, b = counters_of(first), counters_of(second)
            if self.summary == "exact":
                c, d = dict(a.counts), dict(b.counts)
                broken += sum(abs(c.get(x, 0) - d.get(x, 0)) for x in {*c, *d}) > removed
            elif self.summary == "misra-gries":
                broken += st.lemma_8_state(a, b, k) is None
            elif self.summary == "space-saving":
                broken += st.space_saving_state(a, b, k) is None
            else:
                broken += not st.all_in_one_direction(a, b)
        return Finding("coupled", "large random streams keep the structure", "violations", 0, broken, len(pairs))

    def _distance(self, first: tuple[dict[Any, int], int], second: tuple[dict[Any, int], int], laplace: bool) -> float:
        """How far apart two releases with the same noise are, in the norm that the noise is for."""
        (a, offset_a), (b, offset_b) = first, second
        changes = [a[key] - b[key] for key in a.keys() & b.keys()]
        if not laplace:
            if changes and min(changes) < 0 < max(changes):
                return math.inf
            return float(max((abs(change) for change in changes), default=0))
        moved = abs(offset_a - offset_b) if self.shared == "published" else 0
        shifts = (-2, -1, 0, 1, 2) if self.shared == "hidden" else (0,)
        # With a hidden shared noise, all counters may move by one at the price of one.
        return float(min(abs(s) + sum(abs(change - s) for change in changes) for s in shifts) + moved)


def _steps(mechanism: Any) -> int:
    """How many events, or lists, of a unit may be in the sketch."""
    return int(getattr(mechanism, "parts_per_user", items_of(mechanism)))


def _is_laplace(mechanism: Any) -> bool:
    return bool(mechanism.error_model.noise.law == "laplace")


def _epsilon_of_noise(mechanism: Any) -> Fraction:
    """The part of epsilon that the counters' noise is for."""
    length = mechanism.error_model.offset_noise
    if length is None or getattr(mechanism, "stream_length", None) != "noisy":
        return Fraction(claim(mechanism)[0])
    return Fraction(claim(mechanism)[0]) - Fraction(items_of(mechanism)) / Fraction(length.scale)


@lru_cache(maxsize=16)
def _structure(summary: str, m: int, longer: int) -> tuple[Finding, ...]:
    findings = []
    if summary == "exact":
        pairs, tried = st.exact_counts_table(longer).neighbours()
        findings.append(st.structure_finding("one count differs by one", pairs, _one_count, tried))
    elif summary == "users":
        for k in {1: (1, 2, 3), 2: (2, 3)}.get(m, (3,)):
            pairs, tried = st.user_table(k, min(m, k), longer).neighbours()
            findings.append(st.structure_finding(f"LT Lemma 27, k={k}", pairs, st.all_in_one_direction, tried))
    elif summary == "merged":
        for k in (1, 2, 3):
            pairs, tried = st.merged_states(k)
            findings.append(st.structure_finding(f"LT Lemma 17, k={k}", pairs, st.all_in_one_direction, tried))
    else:
        table_of, state, lemma = {
            "misra-gries": (st.misra_gries_table, st.lemma_8_state, "LT Lemma 8"),
            "space-saving": (st.space_saving_table, st.space_saving_state, "SS Lemma 4, Corollary 1"),
        }[summary]
        for k in (1, 2, 3):
            pairs, tried = table_of(k, longer).neighbours()
            holds = _InAState(state, k)
            findings.append(st.structure_finding(f"{lemma}, k={k}", pairs, holds, tried))
    return tuple(findings)


@dataclass(frozen=True)
class _InAState:
    state: Any
    k: int

    def __call__(self, first: Counters, second: Counters) -> bool:
        return self.state(first, second, self.k) is not None


def _one_count(first: Counters, second: Counters) -> bool:
    a, b = dict(first.counts), dict(second.counts)
    return sorted(a.get(key, 0) - b.get(key, 0) for key in {*a, *b} if a.get(key) != b.get(key)) == [1]


@lru_cache(maxsize=16)
def _misra_gries_pairs(most: int, zeros: bool, longer: int) -> dict[StatePair, tuple[Counters, Counters, int] | None]:
    """The different pairs of Misra-Gries states with up to `most` counters, examples from the largest."""
    found: dict[StatePair, tuple[Counters, Counters, int] | None] = {}
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


def _far_above(mechanism: Any) -> int:
    return 3 * int(mechanism.threshold) + 20


def _added_by_a_user(mechanism: Any) -> Iterator[StatePair]:
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


def _space_saving_pairs(mechanism: Any, longer: int) -> dict[StatePair, tuple[Counters, Counters, int] | None]:
    """Pairs of SpaceSaving states, all counters raised alike to where the mechanism's length puts them."""
    k = min(mechanism.capacity, 3)
    room = mechanism.stream_length if isinstance(mechanism.stream_length, int) else 60
    found: dict[StatePair, tuple[Counters, Counters, int] | None] = {}
    for first, second in st.space_saving_table(k, longer).neighbours()[0]:
        if first.total > room or len(first.counts) < k or len(second.counts) < k:
            continue
        # The counters that the small sketch does not have are at its minimum.
        others = (mechanism.capacity - k) * min(c for _, c in second.counts)
        raised = (room - first.total - others) // mechanism.capacity
        if raised < 0:
            continue
        pair = state_pair(first, second)
        keys = tuple(Key(_plus(key.first, raised), _plus(key.second, raised)) for key in pair.keys)
        found[StatePair(keys, 0, 1, first.total + others + raised * mechanism.capacity)] = None
    found.update(dict.fromkeys(_near_the_cut(mechanism, room)))
    far = 3 * room
    found[StatePair((Key(far + 1, far),), 0, 1, room)] = None
    return found


def _plus(count: int | None, more: int) -> int | None:
    return None if count is None else count + more


def _near_the_cut(mechanism: Any, room: int) -> Iterator[StatePair]:
    """States with some counters around the cut: only their own cut tells two lengths apart."""
    k = mechanism.capacity
    if k < 2:
        return
    cut = int(mechanism.threshold) + (room // k if mechanism.error_model.offset_noise is not None else 0)
    for total in range(max(room - k, 1), room + 1):
        for high in range(cut - 3, cut + 3):
            # More than three at the cut make no difference to whether two lengths can be told apart.
            for many in range(1, min(k - 1, 3) + 1):
                last = (total - high * many) // (k - many)
                if 1 < last <= high:
                    yield StatePair((Key(high, high, many), Key(last, last - 1)), 0, 1, total)


def _noisy_length_delta(mechanism: Any, pair: StatePair, noise: NoiseLaw, epsilon: float) -> float:
    """With the length's noise: the published offset is floor((n + Z_n)/k), and the cut is relative to it."""
    length = mechanism.error_model.offset_noise
    law = NoiseLaw(length.law, length.scale, noise.left_out)
    k = mechanism.capacity
    totals = (pair.total, pair.total - pair.length)
    changed = [key for key in pair.keys if key.first != key.second]
    total = 0.0
    for offset in range((min(totals) - law.reach) // k, (max(totals) + law.reach) // k + 1):
        # P[offset k <= n + Z < (offset + 1) k]
        start = [max(0.0, law.shown(offset * k - n) - law.shown((offset + 1) * k - n)) for n in totals]
        cut = offset + mechanism.threshold
        total += divergence(changed, noise, (cut, cut), math.exp(epsilon), (start[0], start[1]))
    return total + 2.0 * (len(changed) + 1) * noise.left_out


@lru_cache(maxsize=16)
def _large_pairs(
    summary: str, k: int, m: int, removed: int, distinct: bool, length: int, count: int
) -> list[tuple[Any, Any]]:
    def make() -> Any:
        if summary == "exact":
            return ExactCounts(seed=_SEED)
        if summary == "space-saving":
            return SpaceSaving(k, seed=_SEED)
        if summary == "users":
            return UserMisraGries(k, m, seed=_SEED)
        sketch = MisraGries(k, seed=_SEED)
        if summary == "merged":
            part = MisraGries(k, seed=_SEED + 1)
            part.update([item % (3 * k) for item in range(5 * k)])
            sketch.merge(part)
        return sketch

    users = m if summary == "users" else 0
    length = length // 4 if users else length
    return st.random_pairs(make, count, length, 4 * k + 10, removed=removed, distinct=distinct, users=users)
