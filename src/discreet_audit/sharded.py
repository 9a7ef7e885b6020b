"""Auditing releases in shards: one event changes one shard, and what that shard publishes is an offset release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np

from discreet.central import ShardedOffset
from discreet.privacy import Budget, User
from discreet.releases.release import Release
from discreet.summaries import MisraGries, RawCounts, ShardedMisraGries
from discreet_audit import structure as st
from discreet_audit.counters import CounterAudit
from discreet_audit.exact import Published, neighbouring_streams, worst_divergence
from discreet_audit.findings import Finding
from discreet_audit.histograms import CountOf, Listed, claim, items_of, shown_by
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import half_the_noise, leaked_order, lower_cut, twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair
from discreet_audit.structure import SEED, Counters

__all__ = ["RowShards", "ShardedAudit", "by_rows", "signature"]

_FEW_COUNTERS = 2  # in all shards together: then the law of the whole release is written out
_CUTOFF = 1e-6


class RowShards:
    """Shards by row, round robin, where an item may be in several. NOT PRIVATE if each spends the whole budget."""

    was_merged = False

    def __init__(self, capacity: int, shards: int) -> None:
        self.capacity, self.shards, self.total = capacity, shards, 0
        self._parts = [MisraGries(capacity, seed=SEED) for _ in range(shards)]

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

    @property
    def not_private_sizes(self) -> list[int]:
        """As in `ShardedMisraGries`."""
        return [len(part) for part in self._parts]

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


class ShardedAudit(CounterAudit):
    """The checks of one offset release, on the shard that changes; and that no other shard does."""

    def __init__(self) -> None:
        super().__init__("misra-gries", zeros=True, shared="published")

    def empty(self, mechanism: Any) -> Any:
        if getattr(mechanism, "not_private_rows", False):
            return RowShards(mechanism.capacity, mechanism.shards)
        return ShardedMisraGries(mechanism.capacity, mechanism.shards, seed=SEED)

    def _of_shard(self, mechanism: Any, shard: int, number: int) -> list[int]:
        """The smallest items of a shard."""
        where = ShardedMisraGries(mechanism.capacity, mechanism.shards, seed=SEED)
        return list(islice((item for item in count() if where.shard_of(item) == shard), number))

    def _universe(self, mechanism: Any) -> list[int]:
        """Two items of each of two shards (or of the only one)."""
        return [item for shard in range(min(2, mechanism.shards)) for item in self._of_shard(mechanism, shard, 2)]

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Lemma 8 for a sketch, and that one event concerns one shard."""
        yield from super().structure(mechanism, effort)
        yield self._short_streams(mechanism, effort, "structure")

    def _short_streams(self, mechanism: Any, effort: Effort, kind: str) -> Finding:
        pairs = list(neighbouring_streams(self._universe(mechanism), 5 + effort.length))
        summaries = {stream: self.filled(mechanism, stream) for pair in pairs for stream in pair}
        broken = sum(not _one_shard_in_a_state(*(summaries[stream] for stream in pair)) for pair in pairs)
        return Finding(kind, "one event changes one shard, by one event", "violations", 0, broken, len(pairs))

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The delta of the shard that changes, that of the whole release where it can be written out, and the code."""
        yield self._short_streams(mechanism, replace(effort, length=effort.length - 1), "exact")
        yield from super().exact(mechanism, effort)
        if mechanism.capacity * mechanism.shards <= _FEW_COUNTERS:
            epsilon, delta = claim(mechanism)
            pairs = list(neighbouring_streams(self._universe(mechanism), 3 + effort.length, items_of(mechanism)))
            fill = lambda stream: self.filled(mechanism, stream)  # noqa: E731
            worst = worst_divergence(mechanism, fill, pairs, epsilon, _CUTOFF, signature).upper
            check = "the law of all shards together, from the code"
            yield Finding("exact", check, "delta", delta, worst, 2 * len(pairs))

    def conforms(self, mechanism: Any) -> tuple[int, int]:
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
        return wrong, tried

    def scored_pairs(self, mechanism: Any, effort: Effort) -> Iterator[ScoredPair]:
        """A counter, the offset and a new key of one shard, while the others are full."""
        heavy, more = self.heavy(mechanism), items_of(mechanism)
        *items, last = self._of_shard(mechanism, 0, mechanism.capacity + 1)
        full = [item for item in items for _ in range(len(heavy))]
        yield self.pair(mechanism, "one counter higher", heavy + [0] * more, heavy, CountOf(0))
        yield self.pair(mechanism, "every counter of a shard lower", full + [last] * more, full, _first_offset)
        yield self.pair(mechanism, "one key appears", heavy + [1] * more, heavy, Listed(frozenset([1])))

    def large_pairs(self, mechanism: Any, effort: Effort) -> list[tuple[Any, Any]]:
        """Summaries of large random neighbouring streams."""
        k, number = mechanism.capacity, max(20, effort.large_pairs // 5)
        length, items = min(20_000, max(1000, 20 * k)), 4 * k * mechanism.shards + 10
        return st.random_pairs(lambda: self.empty(mechanism), number, length, items)

    def large_structure(self, mechanism: Any, pairs: list[tuple[Any, Any]]) -> Finding:
        """One shard changes, and by one event."""
        broken = sum(not _one_shard_in_a_state(*pair) for pair in pairs)
        return Finding("coupled", "large random streams change one shard", "violations", 0, broken, len(pairs))

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
    return len(changed) == 1 and st.lemma_8_state(*changed[0], first.capacity) is not None


def _first_offset(shown: Published) -> float:
    return float(shown.offset[0][0])


def signature(first: Any, second: Any) -> Any:
    """All that the release of two summaries can depend on, up to the names of the items."""
    out = []
    for a, b in zip(_states(first), _states(second), strict=True):
        c, d = dict(a.counts), dict(b.counts)
        out.append((tuple(sorted((c.get(x, -1), d.get(x, -1)) for x in {*c, *d})), a.offset, b.offset))
    return tuple(sorted(out))


def by_rows(mechanism: ShardedOffset) -> Twin:
    """Shards by row instead of by item, each with the whole budget."""
    takes_all = lambda self, summary: None  # noqa: E731
    return twin(mechanism, "shards by row, each with the whole budget", check=takes_all, not_private_rows=True)


def _twins(mechanism: ShardedOffset) -> Sequence[Twin]:
    order = () if mechanism.capacity == 1 else (leaked_order(mechanism),)
    return (half_the_noise(mechanism), lower_cut(mechanism), by_rows(mechanism), *order)


row(
    ShardedOffset,
    lambda: (
        ShardedOffset(Budget(2.0, 0.02), capacity=1, shards=2),
        ShardedOffset(Budget(1.0, 0.02), capacity=3, shards=2, unit=User(2)),
        ShardedOffset(Budget(1.0, 1e-9), capacity=64, shards=4),
    ),
    ShardedAudit(),
    _twins,
)
