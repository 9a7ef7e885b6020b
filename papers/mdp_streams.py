"""What Figures 10 to 13 of [MDP] share: 100 parties with an item a step, counts in a window, ours beside PDCH.

PDCH keeps noisy Misra-Gries sketches of dyadic blocks; what is newer than the last whole epoch is missing. Only the
blocks that a window needs are made here, and bytes are those of all blocks at the same rate.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from shared import Counts, heard, quality

import discreet as dc
from discreet.multiparty.epochs import block_cover, levels_for
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.interval_questions import IntervalQuestions
from discreet.noise import seeded_source

MP = dc.multiparty
PARTIES, SHARE, EPSILON = 100, 0.005, 4.0


def columns_of(items: Counts) -> Counts:
    """Every party's stream, a row each."""
    steps = len(items) // PARTIES
    return np.random.default_rng(1).permutation(items)[: PARTIES * steps].reshape(PARTIES, steps)


def ours(columns: Counts, universe: int, epoch: int, window: int, width: int, seed: int = 0):
    """An aggregator that heard the whole stream."""
    stream = MP.Stream(f"clicks {seed}", dc.Budget(EPSILON), universe, epoch_steps=epoch, window=window, columns=width)
    aggregator, source = stream.aggregator(), seeded_source(seed)
    for number in range(PARTIES):
        aggregator.receive(stream.party(number, source=source).feed(columns[number]))
    return aggregator


def pdch(columns: Counts, universe: int, epoch: int, window: int, time: int, counters: int) -> tuple[float, Counts]:
    """Bytes and estimates of the window that ends at a step."""
    levels = levels_for(-(-window // epoch))
    values, sent, covered = np.zeros(universe), 0.0, 0
    first, last = max(0, time - window), time // epoch
    for block in block_cover(-(-first // epoch), last, levels, lambda block: True, range(last)):
        protocol = MP.MergedMisraGries(
            f"{block}", dc.Budget(EPSILON / levels), universe, capacity=counters << block.level
        )
        aggregator = heard(protocol, columns[:, block.first * epoch : block.end * epoch])
        values += aggregator.estimate(np.arange(universe)).values
        sent += aggregator.bytes_received
        covered += block.end - block.first
    return sent * levels * last / max(1, covered), values


def measured(values: Counts, columns: Counts, window: int, time: int) -> dict[str, float]:
    """Accuracy of the heavy hitters of a window."""
    items = columns[:, max(0, time - window) : time].ravel()
    found = {int(item): float(values[item]) for item in np.flatnonzero(values >= SHARE * len(items))}
    return quality(found, Counter(items.tolist()), SHARE, len(items))


# ---- names out of 49^6, by levels ------------------------------------------------------------------------------------


def named(columns: Counts, epochs: int, width: int, seed: int = 0, samples: float = 0.5):
    """An aggregator that heard the whole stream; six levels of 49 letters."""
    steps, budget = columns.shape[1], dc.Budget(EPSILON)
    own = {"epoch_steps": steps // epochs, "columns": width, "branching": 49, "sample_share": samples}
    stream = MP.HierarchicalStream(f"names {seed}", budget, 49**6, horizon=steps, **own)
    aggregator, source = stream.aggregator(), seeded_source(seed)
    for number in range(PARTIES):
        aggregator.receive(stream.party(number, source=source).feed(columns[number]))
    return aggregator


class NamedPdch(IntervalQuestions):
    """PDCH with a Misra-Gries sketch for each level of letters: the blocks of all complete epochs up to a step."""

    def __init__(self, columns: Counts, epochs: int, time: int, counters: int) -> None:
        epoch = columns.shape[1] // epochs
        levels, self._total, self._blocks = levels_for(-(-columns.shape[1] // epoch)), PARTIES * time, []
        covered = 0
        for block in block_cover(0, time // epoch, levels, lambda block: True, range(time // epoch)):
            options = {"capacity": counters << block.level}
            protocol = MP.Hierarchy(f"{block}", dc.Budget(EPSILON / levels), 49**6, "MergedMisraGries", 49, options)
            self._blocks.append(heard(protocol, columns[:, block.first * epoch : block.end * epoch]))
            covered += block.end - block.first
        sent = sum(aggregator.bytes_received for aggregator in self._blocks)
        self.bytes = sent * levels * epochs / max(1, covered)

    @property
    def total(self) -> float:
        return self._total

    @property
    def guarantee(self) -> Any:
        return self._blocks[0].guarantee

    @property
    def _ordered(self) -> Any:
        return self._blocks[0]._ordered

    def interval_counts(self, level: int, intervals: Any) -> Estimates:
        parts = [aggregator.interval_counts(level, intervals) for aggregator in self._blocks]
        return Estimates(sum(p.values for p in parts), sum(p.variances for p in parts), self.guarantee)


def names_measured(answers: IntervalQuestions, columns: Counts, time: int) -> dict[str, float]:
    """Accuracy of the heavy names since the beginning."""
    items = columns[:, :time].ravel()
    found = answers.heavy_hitters(SHARE)
    listed = dict(zip(map(int, found.items), found.estimates.values.tolist(), strict=True))
    return quality(listed, Counter(items.tolist()), SHARE, len(items))
