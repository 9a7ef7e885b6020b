"""The methods of [SS] section 6, and ours, on one stream: what they list, how well, how fast and how large.

The goal is every item with a frequency above T/k. Counters have k~ = 2k, sketches k~ = 4k, width 2 k~ and a depth of
ln(2 (T + k~)/delta), as in the paper; delta is 0.001. The cuts are the corrected ones (docs/privacy/corrections.md),
with the length T public as in the paper. "ours" is the offset release of Misra-Gries, which needs no length.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from shared import Counts, Figure, Panel

import discreet as dc
from discreet.central import CountMinHeavyHitters, CountSketchHeavyHitters, Offset
from discreet.noise import seeded_source
from discreet.published import PrivateMisraGries, PrivateSpaceSaving

DELTA = 0.001
METHODS = ("SpaceSaving", "MisraGries", "CountMin", "CountSketch", "ours")


def summaries(events: Counts, k: int, factor: int | None = None, seed: int = 1) -> Iterator[tuple[str, object, float]]:
    """(method, filled summary, microseconds an update)."""
    n, counters, sketch = len(events), (factor or 2) * k, (factor or 4) * k
    depth = math.ceil(math.log(2 * (n + sketch) / DELTA))
    made = {
        "SpaceSaving": dc.SpaceSaving(counters, seed=seed),
        "MisraGries": dc.MisraGries(counters, seed=seed),
        "CountMin": dc.CountMin(2 * sketch, depth, tracked=sketch, seed=seed),
        "CountSketch": dc.CountSketch(2 * sketch, depth | 1, tracked=sketch, seed=seed),
        "ours": dc.MisraGries(counters, seed=seed),
    }
    for name, summary in made.items():
        started = time.perf_counter()
        summary.update(events)
        yield name, summary, (time.perf_counter() - started) / n * 1e6


def mechanism(name: str, summary, epsilon: float, n: int, k: int):
    budget = dc.Budget(epsilon, DELTA)
    if name == "SpaceSaving":
        return PrivateSpaceSaving(budget, summary.capacity, stream_length=n, calibration="paper", heavier_than=k)
    if name == "MisraGries":
        return PrivateMisraGries(budget, summary.capacity, calibration="paper")
    if name == "ours":
        return Offset(budget, summary.capacity)
    of = CountMinHeavyHitters if name == "CountMin" else CountSketchHeavyHitters
    return of.for_summary(summary, budget, stream_length=n, noise="laplace")


def measure(release, truth: Counts, n: int, k: int, relaxed: bool) -> dict[str, float]:
    """Recall, precision and average relative error of what is listed above T/k; relaxed: of all that is released."""
    least = 0.0 if relaxed else n / k
    listed = {item: count for item, count in zip(release.items, release.counts.tolist(), strict=True) if count > least}
    heavy = set(np.flatnonzero(truth > n / k).tolist())
    errors = [abs(count - truth[item]) / truth[item] for item, count in listed.items()]
    return {
        "recall": len(heavy & set(listed)) / max(1, len(heavy)),
        "precision": len(heavy & set(listed)) / len(listed) if listed else math.nan,
        "ARE": float(np.mean(errors)) if errors else math.nan,
    }


def panels(figure: Figure, names: tuple[str, ...], x: str, log_x: bool) -> dict[str, Panel]:
    """A panel for each measure against x."""
    labels = {"ARE": "average relative error", "update": "µs an update", "memory": "bytes"}
    return {
        name: figure.panel(f"{name} against {x}", x, labels.get(name, name), log_x=log_x,
                           log_y=name in ("ARE", "update", "memory"))
        for name in names
    }  # fmt: skip


def fill(found: dict[str, Panel], x: float, events: Counts, k: int, epsilon: float, runs: int,
         factor: int | None = None, relaxed: bool = False) -> None:  # fmt: skip
    """All methods at one x: the summary once, its release `runs` times.

    `relaxed` lists what SpaceSaving releases above T/k - gamma, the other term of its cut; else all list above T/k.
    """
    truth, n = np.bincount(events), len(events)
    for name, summary, micros in summaries(events, k, factor):
        made = mechanism(name, summary, epsilon, n, k)
        loose = relaxed and name == "SpaceSaving"
        rows = [measure(made(summary, seeded_source(run)), truth, n, k, loose) for run in range(runs)]
        for panel in set(found) & set(rows[0]):
            found[panel].add(name, x, [row[panel] for row in rows])
        if "update" in found:
            found["update"].add(name, x, micros)
        if "memory" in found:
            found["memory"].add(name, x, len(summary.to_bytes()))
