"""Several cores of one machine: threads that share the items of a stream.

Items are assigned to shards by a keyed hash, in C++. The threads split rows and count the shards; the calling thread
reads meanwhile. One event touches one shard, so each shard is released with the whole budget and no noise is added for
putting them together: parallel composition over disjoint items (docs/privacy/shards.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from discreet.events.ahead import available_cores
from discreet.privacy.checks import whole_number
from discreet.summaries import ShardedMisraGries
from discreet.summaries.sharded_misra_gries import MAX_SHARDS


def available_workers() -> int:
    """How many cores this process may use."""
    return min(available_cores(), MAX_SHARDS)


def summarise(
    columns: Iterable[Any],
    capacity: int,
    workers: int | None = None,
    *,
    nulls: str = "error",
    seed: int | None = None,
) -> ShardedMisraGries:
    """Count the items of a stream of columns on several threads. The result is NOT PRIVATE: pass it to `dc.release`.

    The columns are read one at a time, once, and in the calling thread, while the threads count the ones before.

    Args:
        columns: Columns of one kind of items, as `MisraGries.update` takes them: Arrow arrays, for example. Or one
            column, or a record batch reader of one column.
        capacity: The number of counters of every worker's shard: the error bound of one sketch of this capacity holds
            for every item, and the memory grows with the number of workers.
        workers: How many threads, and as many shards; by default one for each core that the process may use.
        nulls: "error" refuses nulls, "skip" leaves them out.
        seed: For tests: the seed of the hash that assigns items to shards.
    """
    workers = available_workers() if workers is None else whole_number("workers", workers, 1, MAX_SHARDS)
    summary = ShardedMisraGries(capacity, workers, seed=seed)
    one = any(hasattr(columns, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "dtype"))
    summary.update_batches([columns] if one else columns, nulls=nulls)
    return summary
