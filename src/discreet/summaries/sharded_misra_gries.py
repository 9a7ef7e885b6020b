"""Misra-Gries in shards, for more than one core."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from discreet import _native
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item, arrow_chunks, is_arrow, prepare_column, rules
from discreet.privacy.checks import whole_number
from discreet.privacy.estimate import Estimate
from discreet.summaries.counters import MAX_CAPACITY, CounterSummary, RawCounts

MAX_SHARDS = 128


class ShardedMisraGries(CounterSummary):
    """One Misra-Gries sketch of `capacity` counters for each of several disjoint sets of items. NOT PRIVATE.

    An item belongs to the shard that its hash under `seed` names, whatever the stream; a shard holds exactly what a
    `MisraGries` of this capacity and seed would hold of the events of its items. A batch of more than a few rows is
    split and counted by as many threads as there are shards, while the next chunk is read.

    Error bound: with n_s events in the shard of an item, f - n_s/(capacity+1) <= c <= f. No item is worse off than in
    one sketch of this capacity, and with items spread evenly each loses 1/shards as much; it takes `shards` times
    the memory.
    """

    _native_class = _native.ShardedMisraGries

    def __init__(
        self, capacity: int, shards: int, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None
    ) -> None:
        capacity = whole_number("capacity", capacity, 1, MAX_CAPACITY)
        shards = whole_number("shards", shards, 1, MAX_SHARDS)
        self._native = _native.ShardedMisraGries(capacity, shards, *self._check_common(max_key_bytes, seed))

    def update_batches(self, batches: Iterable[Any], *, nulls: str = "error", bad_items: str = "skip") -> None:
        """Add the columns of an iterable as one batch: all of them, or none if one fails.

        The next column is asked for, in the calling thread, while the ones before it are counted. So columns are
        copied: their owner may fill the same memory anew for the next one. `nulls` and `bad_items` as for `update`.
        """
        columns = (_kept(prepare_column(batch)) for batch in batches)
        self._native.update_batches(columns, *rules(nulls, bad_items))

    @property
    def shards(self) -> int:
        """The number of shards."""
        return int(self._native.shards)

    def shard_of(self, item: Item) -> int:
        """The shard that an item belongs to: a function of the item and the seed."""
        return int(self._native.shard_of(item))

    @property
    def not_private_offsets(self) -> list[int]:
        """Of every shard: how often all its counters were decremented. Not private."""
        return [int(alpha) for alpha in self._native.decrements]

    @property
    def not_private_sizes(self) -> list[int]:
        """Of every shard: how many of the counters, which come shard after shard, are its own. Not private."""
        return list(self._native.sizes)

    def not_private_shards(self) -> list[RawCounts]:
        """The stored items and counters of every shard. Not private."""
        raw, out, first = self.not_private_counts(), [], 0
        for size in self.not_private_sizes:
            out.append(RawCounts(raw.items.slice(first, size), raw.counts[first : first + size]))
            first += size
        return out

    def estimate(self, item: Item) -> Estimate:
        """The counter of an item: f lies between it and it plus its shard's alpha. Not private."""
        count, _ = self._native.count(item)
        return Estimate(count, count, count + self.not_private_offsets[self.shard_of(item)])

    def _describe(self) -> str:
        return f"capacity={self.capacity}, shards={self.shards}"


def _kept(column: Any) -> Any:
    """The column in memory of its own. That of an Arrow array may belong to anyone, a NumPy array for example."""
    if isinstance(column, (_native.MadeColumn, _native.CheckedBatch)):
        return column  # nobody else has it
    import numpy as np

    if isinstance(column, (np.ndarray, memoryview, array)):
        return np.array(column)
    if not is_arrow(column):
        return column  # an iterable, whose objects are taken one by one
    import pyarrow as pa

    if isinstance(column, pa.RecordBatchReader):
        return column  # it hands its batches over one by one
    chunks = list(arrow_chunks(column))
    # What joins arrays copies them.
    return pa.chunked_array([pa.concat_arrays([chunk, chunk.slice(0, 0)]) for chunk in chunks]) if chunks else column
