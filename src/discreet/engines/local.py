"""Several cores of one machine: threads that share the items of a stream.

Items are assigned to shards by a keyed hash, in C++. The threads split rows and count the shards; the calling thread
reads meanwhile. One event touches one shard, so each shard is released with the whole budget and no noise is added for
putting them together: parallel composition over disjoint items (docs/privacy/shards.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

from discreet.central import ShardedOffsetRelease
from discreet.central.paying import check_noise, release_request, top_k_request
from discreet.central.sizing import choose_capacity
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number
from discreet.privacy.ledger import Account
from discreet.releases.paying import Bill, check_payer, pay_for_release
from discreet.releases.release import Release
from discreet.summaries import ShardedMisraGries
from discreet.summaries.sharded_misra_gries import MAX_SHARDS

__all__ = ["available_workers", "check_workers", "summarise", "top_k"]


def available_workers() -> int:
    """How many cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_SHARDS)


def check_workers(workers: object) -> int:
    """A number of workers, validated; None stands for one."""
    return 1 if workers is None else whole_number("workers", workers, 1, MAX_SHARDS)


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
    workers = available_workers() if workers is None else check_workers(workers)
    summary = ShardedMisraGries(capacity, workers, seed=seed)
    one = any(hasattr(columns, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "dtype"))
    summary.update_batches([columns] if one else columns, nulls=nulls)
    return summary


def top_k(
    columns: Iterable[Any],
    k: int,
    budget: Budget,
    workers: int | None = None,
    *,
    unit: Unit | None = None,
    capacity: int | None = None,
    nulls: str = "error",
    ledger: Account | None = None,
    charge_id: str | None = None,
    stream_length: int | None = None,
    source: RandomSource | None = None,
) -> Release:
    """The most frequent items of columns, privately, on all cores: `discreet.top_k` with workers from the machine.

    `discreet.top_k` has more: lists of users, the total, other mechanisms.

    Args:
        columns: As for `summarise`.
        k: How many items to list at most.
        budget: What the release may spend.
        workers: How many threads; by default one for each core that the process may use. It is public.
        unit: `Event()`, the default, or `User(m)` if no user has more than m rows.
        capacity: The counters of every worker's shard; by default chosen from public numbers.
        nulls: "error" refuses nulls, "skip" leaves them out.
        ledger: The account that pays, after the columns were read and before noise is drawn.
        charge_id: Names the charge. Repeating an id with the same parameters returns the release stored under it.
        stream_length: A public number, at least as many as there are events; the capacity is chosen from it.
        source: For tests and audits only. A release made with a seeded source is NOT private and says so.
    """
    k, unit = whole_number("k", k), Event() if unit is None else unit
    as_budget(budget)
    workers = available_workers() if workers is None else check_workers(workers)
    if capacity is None:
        length = None if stream_length is None else whole_number("stream_length", stream_length)
        capacity, _ = choose_capacity(k, budget, unit, length)
    mechanism = ShardedOffsetRelease(budget, capacity, workers, unit)
    check_payer(ledger, charge_id, source)
    check_noise(mechanism)
    summary = summarise(columns, capacity, workers, nulls=nulls)
    draw = partial(mechanism, summary, source)
    # As `discreet.top_k` says it, which may repeat this.
    request = release_request(summary, None, top_k_request(k, nulls, None, grouped=False, stream_length=stream_length))
    return pay_for_release(ledger, charge_id, Bill(budget, mechanism.name, unit, request), draw).head(k)
