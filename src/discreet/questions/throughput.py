"""How fast the summaries are on this machine, beside exact counting: on made-up items, of which nothing is private."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_DOMAIN = 1_000_000
_PEER = "pyarrow value_counts (exact, not private)"


def measured(items: int, capacity: int, workers: int, rounds: int) -> list[dict[str, Any]]:
    """Million items a second of every summary, and how that compares with exact counting: the best of some rounds."""
    import pyarrow.compute as pc

    from discreet import top_k
    from discreet.privacy import Budget
    from discreet.summaries import CountMin, CountSketch, ExactCounts, MisraGries, ShardedMisraGries, SpaceSaving

    budget = Budget(epsilon=1.0, delta=1e-9)

    def counted(summary: Callable[[], Any]) -> Callable[[Any], Any]:
        return lambda column: summary().update(column)

    ways: dict[str, Callable[[Any], Any]] = {
        _PEER: pc.value_counts,
        "MisraGries": counted(lambda: MisraGries(capacity)),
        f"MisraGries, {workers} workers": counted(lambda: ShardedMisraGries(capacity, workers)),
        "SpaceSaving": counted(lambda: SpaceSaving(capacity)),
        "CountMin, 5 rows": counted(lambda: CountMin(capacity, 5)),
        "CountSketch, 5 rows": counted(lambda: CountSketch(capacity, 5)),
        "ExactCounts": counted(ExactCounts),
        "top 100, counted and released": lambda column: top_k(column, k=100, budget=budget, capacity=capacity),
    }
    rows = []
    for name, column in _columns(items).items():
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(rounds):  # in turn, so that a slow moment of the machine is not one way's alone
            for what, run in ways.items():
                started = time.perf_counter()
                run(column)
                best[what] = min(best[what], time.perf_counter() - started)
        rows += [
            {
                "input": name,
                "what": what,
                "million_items_per_second": items / seconds / 1e6,
                "ratio": best[_PEER] / seconds,
            }
            for what, seconds in best.items()
        ]
    return rows


def _columns(items: int) -> dict[str, pa.Array]:
    """The same made-up items as integers and as strings."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(1)  # of made-up items; nothing here is private
    cumulative = np.cumsum(np.arange(1, _DOMAIN + 1) ** -1.1)
    ranks = np.minimum(np.searchsorted(cumulative, rng.random(items) * cumulative[-1]), _DOMAIN - 1)
    numbers = rng.permutation(_DOMAIN)[ranks]
    names = pa.array([f"item number {number}" for number in range(_DOMAIN)])
    return {"int64": pa.array(numbers), "strings": names.take(pa.array(numbers))}
