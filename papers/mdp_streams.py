"""What Figures 10 to 13 of [MDP] share: 100 parties with an item a step, counts in a window, ours beside PDCH.

PDCH is `MergedMisraGriesStream`: noisy Misra-Gries sketches of dyadic blocks, with as many counters as ours has
columns, and noise for all of them, as Chan et al. have it (the package's has less where counters are exact); what is
newer than the last whole epoch is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from shared import Counts, quality

import discreet as dc
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.levels import IntervalQuestions, levels_of
from discreet.noise import seeded_source

MP = dc.multiparty
PARTIES, SHARE, EPSILON = 100, 0.005, 4.0


def columns_of(items: Counts) -> Counts:
    """Every party's stream, a row each."""
    steps = len(items) // PARTIES
    return np.random.default_rng(1).permutation(items)[: PARTIES * steps].reshape(PARTIES, steps)


def heard(stream: Any, columns: Counts, seed: int = 0):
    """An aggregator that heard the whole stream."""
    aggregator, source = stream.aggregator(), seeded_source(seed)
    for number in range(PARTIES):
        aggregator.receive(stream.party(number, source=source).feed(columns[number]))
    return aggregator


class Pdch(dc.published.MergedMisraGriesStream):
    """With noise for all counters and one more, also where none is ever taken by another item."""

    def sensitivity(self, level: int) -> int:
        return self.counters(level) + 1


def of_window(columns: Counts, universe: int, window: int, size: float, runs: int) -> dict[str, list[Any]]:
    """What heard the streams of all runs, by method: settings of `plan` for `size` bytes a party in a window.

    "ours" samples steps as section 4.1 does, "ours, no samples" leaves the open epoch out (Corollary 1).
    """
    rows = MP.plan(PARTIES, None, EPSILON, size, steps=window, window=True, universe_size=universe, zipf=1.25).rows
    own = {name: min((row for row in rows if bool(row.parameters["sample_share"]) is sampled),
                     key=lambda row: row.error).parameters
           for name, sampled in (("ours", True), ("ours, no samples", False))}  # fmt: skip
    named = f"clicks {size:g} "
    made = {name: lambda run, own=own: MP.Stream(f"{named}{run}", dc.Budget(EPSILON), universe, **own)
            for name, own in own.items()}  # fmt: skip
    same = own["ours"]
    given = {"window": window, "epoch_steps": same["epoch_steps"], "capacity": same["columns"]}
    made["PDCH"] = lambda run: Pdch(f"{named}{run}", dc.Budget(EPSILON), universe, **given)
    return {name: [heard(make(run), columns, run) for run in range(runs)] for name, make in made.items()}


def measured(values: Counts, columns: Counts, window: int, time: int) -> dict[str, float]:
    """Accuracy of the heavy hitters of a window."""
    items = columns[:, max(0, time - window) : time].ravel()
    found = {int(item): float(values[item]) for item in np.flatnonzero(values >= SHARE * len(items))}
    return quality(found, Counter(items.tolist()), SHARE, len(items))


def accuracy(panels: dict[str, Any], streams: dict[str, list[Any]], columns: Counts, window: int, time: int,
             x: Callable[[Any], float]) -> None:  # fmt: skip
    """Put all methods at one moment into the panels, x as an aggregator says."""
    items = np.arange(int(columns.max()) + 1)
    for method, runs in streams.items():
        rows = [measured(one.estimate(items, time).values, columns, window, time) for one in runs]
        place = float(np.mean([x(one) for one in runs]))
        for name, panel in panels.items():
            panel.add(method, place, [row[name] for row in rows])


# ---- names out of 49^6, by levels ------------------------------------------------------------------------------------


def named(columns: Counts, epochs: int, width: int, seed: int = 0, samples: float = 0.5):
    """Ours with six levels of 49 letters."""
    steps = columns.shape[1]
    own = {"epoch_steps": steps // epochs, "columns": width, "branching": 49, "sample_share": samples}
    stream = MP.HierarchicalStream(f"names {seed}", dc.Budget(EPSILON), 49**6, horizon=steps, **own)
    return heard(stream, columns, seed)


class NamedPdch:
    """PDCH with a stream of its own for each level of letters, which share the budget."""

    def __init__(self, columns: Counts, epochs: int, counters: int, seed: int = 0) -> None:
        self.universe, steps = dc.central.Universe.of(49**6), columns.shape[1]
        self.levels, self.streams = levels_of(self.universe, 49), []
        own = {"epoch_steps": steps // epochs, "horizon": steps, "capacity": counters}
        budget = dc.Budget(EPSILON / len(self.levels))
        for level in range(len(self.levels)):
            stream = Pdch(f"names {seed} {level}", budget, self.levels.count(level), **own)
            nodes = self.levels.nodes(columns.astype(np.uint64), level).astype(np.int64)
            self.streams.append(heard(stream, nodes, seed))

    @property
    def bytes_received(self) -> int:
        return sum(aggregator.bytes_received for aggregator in self.streams)

    def at(self, time: int) -> IntervalQuestions:
        return _NamedMoment(self, time)


class _NamedMoment(IntervalQuestions):
    """Names since the beginning. What may be left out is not counted: else every interval would have to be followed."""

    def __init__(self, streams: NamedPdch, time: int) -> None:
        self._streams, self._time = streams, time

    @property
    def total(self) -> float:
        return PARTIES * self._time

    @property
    def guarantee(self) -> Any:
        return self._streams.streams[0].guarantee

    @property
    def _ordered(self) -> Any:
        return self._streams.universe, self._streams.levels

    def interval_counts(self, level: int, intervals: Any) -> Estimates:
        found = self._streams.streams[level].estimate(np.asarray(intervals, np.int64), self._time)
        return Estimates(found.values, found.variances, self.guarantee)


def names_measured(answers: IntervalQuestions, columns: Counts, time: int) -> dict[str, float]:
    """Accuracy of the heavy names since the beginning."""
    items = columns[:, :time].ravel()
    found = answers.heavy_hitters(SHARE)
    listed = dict(zip(map(int, found.items), found.estimates.values.tolist(), strict=True))
    return quality(listed, Counter(items.tolist()), SHARE, len(items))
