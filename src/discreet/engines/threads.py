"""Several cores of one machine: threads that share the items of a stream.

Items are assigned to shards by a keyed hash, in C++. The threads split rows and count the shards; the calling thread
reads meanwhile. One event touches one shard, so each shard is released with the whole budget and no noise is added for
putting them together: parallel composition over disjoint items (docs/privacy/shards.md).
"""

from __future__ import annotations

from discreet.events.ahead import available_cores
from discreet.summaries.sharded_misra_gries import MAX_SHARDS


def available_workers() -> int:
    """How many cores this process may use."""
    return min(available_cores(), MAX_SHARDS)
