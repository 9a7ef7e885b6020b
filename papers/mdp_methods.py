"""The methods of [MDP] section 5: "Ours" is frequency separation, "Ours-CS" a sketch a party with its own hashes,
"Noisy-CS" one sketch for all, "OLH" a local report for every item. Bytes are those of all messages with their headers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from shared import Counts, Figure, Panel, heard, over_runs, parts, quality

import discreet as dc

MP = dc.multiparty
UNIVERSE = 2**20
ACCURACY = ("recall", "precision", "F-score", "error", "false error")


def methods(budget: dc.Budget, universe: Any, per_column: float, columns: int, rows: int = 3) -> dict[str, Callable]:
    """Makers of a round: `per_column` items a column for ours, `columns` columns for Noisy-CS."""
    return {
        "Ours": lambda r: MP.Separation(r, budget, universe, items_per_column=per_column, rows=1, max_items=10**7),
        "Ours-CS": lambda r: MP.IndependentSketches(
            r, budget, universe, items_per_column=per_column, rows=rows, max_items=10**7
        ),
        "Noisy-CS": lambda r: dc.published.MergedSketch(
            r, budget, universe, columns=columns, rows=rows, max_items=10**7
        ),
    }


def by_levels(budget: dc.Budget, per_column: float, columns: int, rows: int = 3) -> dict[str, Callable]:
    """The same at each of six levels of 49 letters ([MDP] section 3.4): a universe of 49^6 names."""
    own = {
        "Ours": ("Separation", {"items_per_column": per_column, "rows": 1, "max_items": 10**7}),
        "Ours-CS": ("IndependentSketches", {"items_per_column": per_column, "rows": rows, "max_items": 10**7}),
        "Noisy-CS": ("MergedSketch", {"columns": columns, "rows": rows, "max_items": 10**7}),
    }
    return {
        name: lambda r, kind=kind, options=options: MP.Hierarchy(r, budget, 49**6, kind, 49, options)
        for name, (kind, options) in own.items()
    }


def against_bytes(figure: Figure, makers: Callable, items: Counts, sizes: list[int], runs: int, unequal: float) -> None:
    """Figures 5 and 6: 100 parties, epsilon 2, share 0.001; sketches of s columns a party for several s."""
    panels = {
        measure: figure.panel(measure, "bytes of all messages", measure, log_x=True, log_y=measure == "false error")
        for measure in ACCURACY
    }
    points: dict[str, list[tuple[float, float]]] = {}
    for s in sizes:
        for method, make in makers(dc.Budget(2.0), max(1.0, len(items) / 100 / s), s).items():
            row = listed(make, items, 100, 0.001, runs, unequal)
            size = float(np.mean(row["bytes"]))
            fill(panels, method, size, row)
            points.setdefault(method, []).append((size, 1 - float(np.mean(row["F-score"]))))
    for other in ("Ours-CS", "Noisy-CS"):
        # The same accuracy: an F-score within 0.03 of the best that both reach.
        miss = 0.03 + max(min(miss for _, miss in points[name]) for name in ("Ours", other))
        better = bytes_for(points["Ours"], miss) < bytes_for(points[other], miss)
        figure.says(f"Ours uses less communication than {other} at the same accuracy", better)


def frequent(counts: Counts) -> Counts:
    """The most frequent items that jointly take over 85 % of the total."""
    order = np.argsort(-counts, kind="stable")
    return order[: np.searchsorted(np.cumsum(counts[order]), 0.85 * counts.sum()) + 1]


def relative_error(make: Callable, columns: list[Counts], runs: int) -> dict[str, list[float]]:
    """Bytes and mean relative error of the frequent items, for every run."""
    counts = np.bincount(np.concatenate(columns), minlength=UNIVERSE)
    top = frequent(counts)

    def one(run: int) -> dict[str, float]:
        aggregator = heard(make(f"run {run}"), columns)
        off = np.abs(aggregator.estimate(top).values - counts[top]) / counts[top]
        return {"bytes": float(aggregator.bytes_received), "error": float(off.mean())}

    return over_runs(runs, one)


def sending(maker: Callable, columns: list[Counts], size: float) -> Callable:
    """Makers take a width. The maker of the finest round in which a party sends `size` bytes at most, or 5 % more.

    By what a few of the parties send. Wider is less to send for sketches of so many items a column, and more for those
    of so many columns; several widths may send as much.
    """
    few = columns[:: max(1, len(columns) // 20)]
    widths = np.unique(np.round(np.geomspace(0.5, 512, 64) * 4)) / 4
    sent = np.array([heard(maker(width)("a few"), few).bytes_received / len(few) for width in widths])
    fits = widths[sent <= 1.05 * size]
    return maker(fits[0] if sent[0] > sent[-1] else fits[-1])


def olh(items: Counts, epsilon: float, runs: int = 3) -> dict[str, list[float]]:
    """A report of local hashing for every item."""
    return relative_error(lambda r: MP.LocalHashing(r, dc.Budget(epsilon), UNIVERSE), [items], runs)


def listed(make: Callable, items: Counts, parties: int, share: float, runs: int, unequal: float = 1.0) -> dict:
    """Accuracy of the heavy hitters above `share`, of every run: from all items, or by levels where there are any."""
    counts = Counter(items.tolist())

    def one(run: int) -> dict[str, float]:
        protocol = make(f"run {run}")
        aggregator = heard(protocol, parts(items, parties, run, unequal))
        if isinstance(protocol, MP.Hierarchy):
            found = dict(zip(*_heavy(aggregator, share), strict=True))
        else:
            values = aggregator.estimate(np.arange(protocol.universe.size)).values
            found = {int(i): float(values[i]) for i in np.flatnonzero(values >= share * len(items))}
        row = quality(found, counts, share, len(items))
        return {**row, "F-score": row["F"], "bytes": float(aggregator.bytes_received)}

    return over_runs(runs, one)


def _heavy(aggregator: Any, share: float) -> tuple[list[int], list[float]]:
    found = aggregator.heavy_hitters(share)
    return [int(item) for item in found.items], found.estimates.values.tolist()


def fill(panels: dict[str, Panel], method: str, x: float, row: dict[str, list[float]]) -> None:
    """Put every measure that has a panel there."""
    for name, panel in panels.items():
        panel.add(method, x, row[name])


def bytes_for(points: list[tuple[float, float]], error: float) -> float:
    """The fewest bytes at which this error is reached."""
    return min((size for size, reached in points if reached <= error), default=float("inf"))
