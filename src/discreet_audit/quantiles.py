"""The row of quantiles: a tree of noisy counts over a public range.

What is claimed is that one unit moves the nodes of the tree by at most so much, behind noise of one law. Both are found
as for counting: the first by trying all small data, the second from what a release asks its source for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from discreet.central import Grid, QuantileTree
from discreet.central.quantile_tree import VOTE
from discreet.noise import fresh_source, seeded_source
from discreet.privacy import Budget, User
from discreet_audit.counting import promised, shift_finding
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import half_the_noise, twin
from discreet_audit.sources import Draw, ScriptedSource
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["QuantileAudit"]

Rows = Sequence[tuple[int, float]]
"""Whose row it is, and its value."""


def _counts(mechanism: QuantileTree, rows: Rows) -> Any:
    values = np.array([value for _, value in rows], np.float64)
    people = None if mechanism.max_rows is None else np.array([person for person, _ in rows], np.int64)
    return mechanism.counts(mechanism.grid.places(values), people)


def _change(mechanism: QuantileTree, before: Rows, unit: Rows) -> Any:
    """By how much one more unit moves each node."""
    nodes = [mechanism.nodes(_counts(mechanism, rows)) for rows in (before, [*before, *unit])]
    return np.abs(nodes[1] - nodes[0])


class QuantileAudit:
    """The four checks of quantiles by a tree."""

    def structure(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """All small data: one more row, or person with several, moves each level by at most the height, in sum."""
        grid, levels = mechanism.grid, mechanism.tree.levels
        step = (grid.high - grid.low) / 3
        values = [grid.low - 100.0, grid.low, grid.low + step, grid.low + 2.2 * step, grid.high, grid.high * 7]
        units: list[list[tuple[int, float]]] = [[(9, value)] for value in values]
        if mechanism.max_rows is not None:
            units += [[(9, one), (9, two), (9, one), (9, 2.0)] for one, two in product(values, repeat=2)]
        moved, squared, pairs = 0, 0, 0
        for length in range(2 + effort.length):
            for listed in product(values, repeat=length):
                before: Rows = [(place % 2, value) for place, value in enumerate(listed)]
                for unit in units:
                    change = _change(mechanism, before, unit)
                    moved, pairs = max(moved, int(change.sum())), pairs + 1
                    squared = max(squared, sum(int(one) ** 2 for one in change))
        yield Finding("structure", "nodes, in sum", "sensitivity", levels * mechanism.height, moved, pairs)
        yield Finding("structure", "squared length", "sensitivity", levels * mechanism.height**2, squared, pairs)

    def exact(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise; what is published is a function of the noisy nodes alone."""
        tree, wrong, asked = mechanism.tree, 0, []
        bins = mechanism.grid.bins
        for seed in range(12):
            random = np.random.default_rng(seed)
            one, two = (random.integers(0, 30, bins) * mechanism.height for _ in range(2))
            noise = random.integers(-20, 20, tree.nodes) * mechanism.height
            first, second = (
                ScriptedSource(0, each.tolist()) for each in (noise, noise + tree.counts(one) - tree.counts(two))
            )
            answers = mechanism(one, first), mechanism(two, second)
            wrong += answers[0] != answers[1]
            wrong += not all(row.lower <= row.value <= row.upper for row in answers[0])
            asked += first.draws
        wrong += len(asked) != 12 or any(draw != asked[0] for draw in asked) or asked[0].size != tree.nodes
        yield Finding("exact", "a function of noisy nodes, each with noise of its own", "violations", 0, wrong)
        yield _shift(mechanism, asked[0])

    def statistical(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release: the nodes that one unit moves."""
        epsilon, delta = promised(mechanism)
        unit = [(5, mechanism.grid.low)] * (mechanism.max_rows or 1)
        with_unit, without = _counts(mechanism, unit), _counts(mechanism, [])
        moved = mechanism.nodes(with_unit) > 0
        pair = ScoredPair("one unit more", with_unit, without, lambda noisy: float(noisy[moved].sum()))
        bound = measure(partial(mechanism.draw, source=fresh_source()), pair, delta, effort.runs)
        yield Finding("statistical", pair.name, "epsilon", epsilon, bound, 1, f"{effort.runs} runs of each")

    def coupled(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """With equal noise: the order of rows changes nothing, and a value outside is worth the end of the range."""
        grid, broken = mechanism.grid, 0
        rows = [(0, grid.low), (1, grid.high), (1, grid.low + 0.4 * (grid.high - grid.low)), (2, grid.high)]
        outside = [(0, grid.low - 50.0), (1, grid.high * 9), *rows[2:3], (2, math.inf)]
        for seed in range(10):
            answers = [mechanism(_counts(mechanism, data), seeded_source(seed)) for data in (rows, rows[::-1], outside)]
            broken += len(set(answers)) != 1 or not answers[0].guarantee.seeded
        yield Finding("coupled", "order of rows, values outside", "violations", 0, broken, 10)
        moved, pairs, most = 0, effort.large_pairs // 10, 1 if mechanism.max_rows is None else 9
        random = np.random.default_rng(8)
        for _ in range(pairs):
            values = random.normal(grid.low, 2 * grid.high, size=20)
            before: Rows = [
                (int(person), float(value)) for person, value in zip(random.integers(0, 5, 20), values, strict=True)
            ]
            unit: Rows = [(9, float(value)) for value in values[: random.integers(1, most + 1)] * 1.5]
            moved = max(moved, int(_change(mechanism, before, unit).sum()))
        claimed = mechanism.tree.levels * mechanism.height
        yield Finding("coupled", "one unit more", "sensitivity", claimed, moved, pairs)


def _shift(mechanism: QuantileTree, draw: Draw) -> Finding:
    """The loss of a unit that moves one node of every level by the height."""
    budget, levels, height = mechanism.budget, mechanism.tree.levels, mechanism.height
    if height == 1 or draw.law == "laplace" or budget.rho is not None:
        return shift_finding(budget, draw, levels, height)
    from scipy.special import log_ndtr

    assert budget.epsilon is not None
    # On so fine a lattice the law is that of Gaussian noise (docs/privacy/people.md, 3): mu-GDP.
    mu = math.sqrt(levels) * height / float(draw.scale)
    ratio = budget.epsilon / mu
    lost = math.exp(log_ndtr(mu / 2 - ratio)) - math.exp(budget.epsilon + log_ndtr(-mu / 2 - ratio))
    return Finding("exact", f"{levels} numbers moved by {height}", "delta", budget.delta, lost)


class _GrowingGrid(Grid):
    """NOT PRIVATE: the range is that of the data, which nobody cut."""

    def places(self, values: Any) -> Any:
        if not len(values):
            return super().places(values)
        edges = np.linspace(min(self.low, values.min()), max(self.high, min(values.max(), 1e9)), self.bins + 1)
        return np.searchsorted(edges[1:-1], values, side="right").astype(np.int32)


def _every_row(self: QuantileTree, places: Any, people: Any = None) -> Any:
    return np.bincount(places, minlength=self.grid.bins).astype(np.int64) * VOTE


def _twins(mechanism: QuantileTree) -> Sequence[Twin]:
    levels, grid = mechanism.tree.levels, mechanism.grid
    factor = levels if mechanism.noise.law == "laplace" else math.sqrt(levels)
    twins = [
        half_the_noise(mechanism),
        twin(mechanism, "noise for one level", scale=type(mechanism.scale)(float(mechanism.scale) / factor)),
        twin(mechanism, "values are not cut", "coupled", grid=_GrowingGrid(grid.low, grid.high, grid.bins)),
    ]
    if mechanism.max_rows is not None:
        twins.append(twin(mechanism, "every row of a person has a vote", "coupled", counts=_every_row))
    return twins


row(
    QuantileTree,
    lambda: (
        QuantileTree(Budget(1.0), Grid(0, 256, 256), (0.25, 0.5)),
        QuantileTree(Budget.zcdp(0.5), Grid(0, 8, 8), (0.5,)),
        QuantileTree(Budget(0.5, 0.02), Grid(1, 64, 16, "log"), (0.5, 0.9)),
        QuantileTree(Budget(1.0), Grid(0, 256, 256), (0.5,), User(), 2),
        QuantileTree(Budget(0.5, 0.02), Grid(0, 40, 200), (0.5,), User()),
    ),
    QuantileAudit(),
    _twins,
)
