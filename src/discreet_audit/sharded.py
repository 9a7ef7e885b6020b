"""Auditing releases in shards: one event changes one shard, and what that shard publishes is an offset release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from typing import Any

import numpy as np

from discreet.central import ShardedOffsetRelease
from discreet.privacy import Budget, User
from discreet.summaries import MisraGries, RawCounts, ShardedMisraGries
from discreet_audit import structure as st
from discreet_audit.counters import CounterAudit, claim, items_of
from discreet_audit.exact import neighbouring_streams, worst_divergence
from discreet_audit.findings import Finding
from discreet_audit.histograms import AnyShown, HeavyKey
from discreet_audit.registry import AuditCase, Effort, Twin, register
from discreet_audit.sabotage import half_the_noise, leaked_order, lower_cut, twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.states import Counters
from discreet_audit.statistical import ScoredPair

__all__ = ["RowShards", "ShardedAudit", "by_rows"]

_SEED = 7
_FEW_COUNTERS = 2  # in all shards together: then the law of the whole release is written out
_CUTOFF = 1e-6


class RowShards:
    """Shards by row, round robin, where an item may be in several. NOT PRIVATE if each spends the whole budget."""

    was_merged = False

    def __init__(self, capacity: int, shards: int) -> None:
        self.capacity, self.shards, self.total = capacity, shards, 0
        self._parts = [MisraGries(capacity, seed=_SEED) for _ in range(shards)]

    def update(self, items: Sequence[int]) -> None:
        """Row i to shard i modulo their number."""
        rows = np.asarray(items, np.int64)
        for shard, part in enumerate(self._parts):
            part.update(rows[(shard - self.total) % self.shards :: self.shards])
        self.total += len(rows)

    @property
    def not_private_offsets(self) -> list[int]:
        """As in `ShardedMisraGries`."""
        return [part.not_private_offset for part in self._parts]

    def not_private_shards(self) -> list[RawCounts]:
        """As in `ShardedMisraGries`."""
        return [part.not_private_counts() for part in self._parts]

    def not_private_counts(self) -> RawCounts:
        """As in `ShardedMisraGries`."""
        import pyarrow as pa

        parts = [part for part in self.not_private_shards() if len(part)]
        if not parts:
            return self._parts[0].not_private_counts()
        items = pa.concat_arrays([part.items for part in parts])
        return RawCounts(items, np.concatenate([part.counts for part in parts]))

    def to_bytes(self) -> bytes:
        """All states."""
        return b"".join(part.to_bytes() for part in self._parts)


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
    return len(changed) == 1 and st.lemma_8_state(*changed[0], first.capacity) is not None


class ShardedAudit(CounterAudit):
    """The checks of one offset release, on the shard that changes; and that no other shard does."""

    def __init__(self) -> None:
        super().__init__("misra-gries", zeros=True, shared="published")

    def empty(self, mechanism: Any) -> Any:
        if getattr(mechanism, "not_private_rows", False):
            return RowShards(mechanism.capacity, mechanism.shards)
        return ShardedMisraGries(mechanism.capacity, mechanism.shards, seed=_SEED)

    def _of_shard(self, mechanism: Any, shard: int, number: int) -> list[int]:
        """The smallest items of a shard."""
        where = ShardedMisraGries(mechanism.capacity, mechanism.shards, seed=_SEED)
        return list(islice((item for item in count() if where.shard_of(item) == shard), number))

    def _universe(self, mechanism: Any) -> list[int]:
        """Two items of each of two shards (or of the only one)."""
        return [item for shard in range(min(2, mechanism.shards)) for item in self._of_shard(mechanism, shard, 2)]

    # ---- structure -----------------------------------------------------------------------------------------------

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Lemma 8 for a sketch, and that one event concerns one shard."""
        yield from super().structure(mechanism, effort)
        yield self._short_streams(mechanism, effort, "structure")

    def _short_streams(self, mechanism: Any, effort: Effort, kind: str) -> Finding:
        tried = broken = 0
        summaries: dict[Any, Any] = {}
        for pair in neighbouring_streams(self._universe(mechanism), 5 + effort.length):
            for stream in pair:
                if stream not in summaries:
                    summaries[stream] = self.filled(mechanism, stream)
            tried += 1
            broken += not _one_shard_in_a_state(summaries[pair[0]], summaries[pair[1]])
        return Finding(kind, "one event changes one shard, by one event", "violations", 0, broken, tried)

    # ---- exact ---------------------------------------------------------------------------------------------------

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The delta of the shard that changes, that of the whole release where it can be written out, and the code."""
        yield self._short_streams(mechanism, replace(effort, length=effort.length - 1), "exact")
        yield from super().exact(mechanism, effort)
        if mechanism.capacity * mechanism.shards <= _FEW_COUNTERS:
            epsilon, delta = claim(mechanism)
            pairs = list(neighbouring_streams(self._universe(mechanism), 3 + effort.length, items_of(mechanism)))
            worst = worst_divergence(
                mechanism, lambda stream: self.filled(mechanism, stream), pairs, epsilon, _CUTOFF, _signature
            )
            yield Finding(
                "exact", "the law of all shards together, from the code", "delta", delta, worst.upper, 2 * len(pairs)
            )

    def _conforms(self, mechanism: Any) -> Finding:
        """Runs the release itself with chosen noise around the cut of every shard."""
        k = min(mechanism.capacity, 8)
        items = [item for shard in range(mechanism.shards) for item in self._of_shard(mechanism, shard, k)]
        stream = [item for place, item in enumerate(items) for _ in range(place % 4 + 1)]
        if mechanism.capacity == k:  # one more item in shard 0: it is decremented, so that its offset is another one
            stream.append(self._of_shard(mechanism, 0, k + 1)[-1])
        summary = self.filled(mechanism, stream)
        wrong = tried = 0
        alphas, shards = summary.not_private_offsets, summary.not_private_shards()
        for single in (-2, 0, 3):
            each = mechanism.threshold + single - 4 + np.arange(7)
            source = ScriptedSource(single, each)
            release = mechanism(summary, source)
            expected = {}
            for shard, (raw, alpha) in enumerate(zip(shards, alphas, strict=True)):
                noisy = raw.counts + alpha + np.resize(each, len(raw))
                for item, value in zip(raw.items.to_pylist(), noisy.tolist(), strict=True):
                    if value - (alpha + single) >= mechanism.threshold:
                        expected[item] = (value, shard)
                tried += len(raw)
            rows = zip(release.counts.tolist(), release.shards.tolist(), strict=True)
            wrong += dict(zip(release.items, rows, strict=True)) != expected
            wrong += release.shard_offsets != tuple(alpha + single for alpha in alphas)
            wrong += [draw.size for draw in source.draws] != [size for raw in shards for size in (None, len(raw))]
            wrong += any((draw.law, draw.scale) != ("laplace", mechanism.scale) for draw in source.draws)
        return Finding(
            "exact", "the code draws and shows what the law says", "violations", 0, wrong, 0, f"{tried} keys"
        )

    # ---- statistical ---------------------------------------------------------------------------------------------

    def releasing(self, mechanism: Any) -> Callable[[Any], Any]:
        """The release itself: its shards are part of it."""
        released: Callable[[Any], Any] = mechanism
        return released

    def scored_pairs(self, mechanism: Any, effort: Effort) -> Iterator[ScoredPair]:
        """A counter, the offset and a new key of one shard, while the others are full."""
        heavy, more = self._heavy(mechanism), items_of(mechanism)
        yield ScoredPair(
            "one counter higher",
            self.filled(mechanism, heavy + [0] * more),
            self.filled(mechanism, heavy),
            HeavyKey(0),
        )
        *items, last = self._of_shard(mechanism, 0, mechanism.capacity + 1)
        full, gone = [item for item in items for _ in range(len(heavy))], [last] * more
        yield ScoredPair(
            "every counter of a shard lower",
            self.filled(mechanism, full + gone),
            self.filled(mechanism, full),
            _first_offset,
        )
        yield ScoredPair(
            "one key appears",
            self.filled(mechanism, heavy + [1] * more),
            self.filled(mechanism, heavy),
            AnyShown(frozenset([1])),
        )

    # ---- coupled -------------------------------------------------------------------------------------------------

    def coupled(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Large random neighbours: one shard changes, and with the same noise the releases are one apart in l1."""
        k, number = mechanism.capacity, max(20, effort.large_pairs // 5)
        items = 4 * k * mechanism.shards + 10
        pairs = st.random_pairs(lambda: self.empty(mechanism), number, min(20_000, max(1000, 20 * k)), items, removed=1)
        broken = sum(not _one_shard_in_a_state(*pair) for pair in pairs)
        yield Finding("coupled", "large random streams change one shard", "violations", 0, broken, len(pairs))
        level = 30_000 + int(mechanism.threshold)
        worst = 0.0
        some = pairs[:: max(1, len(pairs) // effort.released_pairs)]
        for pair in some:
            first, second = (mechanism(summary, ScriptedSource(0, level)) for summary in pair)
            a, b = (dict(zip(release.items, release.counts.tolist(), strict=True)) for release in (first, second))
            moved = sum(abs(x - y) for x, y in zip(first.shard_offsets, second.shard_offsets, strict=True))
            worst = max(worst, float(moved + sum(abs(a[key] - b[key]) for key in a.keys() & b.keys())))
        declared = float(mechanism.scale / items_of(mechanism) * Fraction(claim(mechanism)[0]))
        yield Finding("coupled", "sensitivity of what is released", "sensitivity", declared, worst, len(some))


def _first_offset(release: Any) -> float:
    return float(release.shard_offsets[0])


def _signature(first: Any, second: Any) -> Any:
    """All that the release of two summaries can depend on, up to the names of the items."""
    out = []
    for a, b in zip(_states(first), _states(second), strict=True):
        c, d = dict(a.counts), dict(b.counts)
        out.append((tuple(sorted((c.get(x, -1), d.get(x, -1)) for x in {*c, *d})), a.offset, b.offset))
    return tuple(sorted(out))


def by_rows(mechanism: Any) -> Twin:
    """Shards by row instead of by item, each with the whole budget."""

    def check(self: Any, summary: Any) -> None:
        """Takes shards of any kind."""

    return twin(mechanism, "shards by row, each with the whole budget", check=check, not_private_rows=True)


def _twins(mechanism: Any) -> Sequence[Twin]:
    order = () if mechanism.capacity == 1 else (leaked_order(mechanism),)
    return (half_the_noise(mechanism), lower_cut(mechanism), by_rows(mechanism), *order)


_AUDIT = ShardedAudit()
register(
    AuditCase(
        ShardedOffsetRelease,
        lambda: (
            ShardedOffsetRelease(Budget(2.0, 0.02), capacity=1, shards=2),
            ShardedOffsetRelease(Budget(1.0, 0.02), capacity=3, shards=2, unit=User(2)),
            ShardedOffsetRelease(Budget(1.0, 1e-9), capacity=64, shards=4),
        ),
        _AUDIT.structure,
        _AUDIT.exact,
        _AUDIT.statistical,
        _AUDIT.coupled,
        _twins,
    )
)
