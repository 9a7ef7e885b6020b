"""Auditing heavy hitters from a frequency oracle that the user brings: whether it keeps to what it states, too."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.privacy import Budget
from discreet.published import OracleHeavyHitters, TrackedOracle
from discreet_audit.exact import neighbouring_streams
from discreet_audit.findings import Finding
from discreet_audit.histograms import CountOf, HistogramAudit, claim, items_of, several, shown_by
from discreet_audit.laws import NoiseLaw, gaussian_split_delta
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import half_the_noise, leaked_order, twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair

__all__ = ["OracleAudit"]

Cells = npt.NDArray[np.int64]


class _Listed:
    """The audit's own oracle: exact counts of 0 to size - 1, every one of them in two cells."""

    changes, height = 2, 1

    def __init__(self, size: int = 8) -> None:
        self.rows = np.zeros((2, size), np.int64)

    def update(self, items: Sequence[Any], counts: Cells) -> None:
        self.rows[:, np.asarray(items, np.int64)] += counts

    def cells(self) -> Cells:
        return self.rows

    def estimate(self, items: Sequence[Any], cells: Cells) -> Cells:
        smallest: Cells = cells[:, np.asarray(items, np.int64)].min(axis=0)
        return smallest

    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        return 0, 0


class OracleAudit(HistogramAudit[OracleHeavyHitters]):
    """The four checks. Items are small numbers, which the oracle must be able to count."""

    hiding = 0  # of the estimates, some may rise with noise: none at all hides one event

    def filled(self, mechanism: OracleHeavyHitters, stream: Sequence[int]) -> TrackedOracle:
        """The oracle of a stream, with its candidates. All have one seed, that of the first."""
        tracked = TrackedOracle(copy.deepcopy(_first(mechanism)), mechanism.capacity)
        tracked.update(np.asarray(stream, np.int64))
        return tracked

    def structure(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """What the oracle states, on every pair of short streams, in one batch and in several."""
        told, tried = mechanism.statement, 0
        changed = height = broken = 0
        wrong = 0
        rng = np.random.default_rng(1)
        some = rng.integers(-50, 50, told.shape)
        for stream, shorter in neighbouring_streams(range(3), 3 + max(effort.length, 0)):
            longer, less = (self.filled(mechanism, one) for one in (stream, shorter))
            pieces = self.filled(mechanism, stream[:1])
            pieces.update(np.asarray(stream[1:], np.int64))
            for one in (longer, pieces):
                moved = np.abs(one.not_private_cells() - less.not_private_cells())
                changed, height = max(changed, int((moved > 0).sum())), max(height, int(moved.max()))
            # Estimates from given cells tell nothing of what was counted.
            first, second = (one.estimates_from([0, 1, 2], some) for one in (longer, less))
            broken += not np.array_equal(first, second)
            nudged = some + rng.integers(-3, 4, told.shape)
            broken += bool(np.abs(longer.estimates_from([0, 1, 2], nudged) - first).max() > 3 * told.gain)
            below, above = mechanism.errors(len(stream))
            estimates = longer.estimates_from([0, 1, 2], longer.not_private_cells())
            truth = np.array([stream.count(item) for item in range(3)])
            wrong += bool(((estimates < truth - below) | (estimates > truth + above)).any())
            tried += 1
        yield Finding("structure", "cells that one event changes", "sensitivity", told.changes, changed, tried)
        yield Finding("structure", "by how much", "sensitivity", told.height, height, tried)
        yield Finding("structure", "estimates are made from cells alone", "violations", 0, broken, tried)
        yield Finding("structure", "estimates err by no more than stated", "violations", 0, wrong, tried)

    def exact(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """What the cells lose, what may go wrong beside them, and the code against the law."""
        epsilon, delta = claim(mechanism)
        told, m = mechanism.statement, items_of(mechanism)
        noise = NoiseLaw(mechanism.noise, mechanism.scale, delta * 1e-18)
        length = self._length_noise(mechanism)
        spent = 0.0 if length is None else float(m / Fraction(length.scale))
        cells = 0.0
        if mechanism.noise == "laplace":
            loss = float(m * told.changes * told.height / Fraction(mechanism.scale)) + spent
            yield Finding("exact", "l1-distance of what gets noise, over its scale", "epsilon", epsilon, loss)
        elif m == told.height == 1:
            cells = gaussian_split_delta(noise, 0, told.changes, 10**9, epsilon - spent)
        else:  # what the mechanism reserves: the shift is not a lattice sum
            cells = mechanism.deltas.gaussian
        short = 0.0
        if length is not None:
            short = length.hidden(100 - mechanism.noisy_length(100, ScriptedSource()))
        worst = max(self._passing(mechanism, noise, n) for n in self._lengths(mechanism))
        total = cells + 2.0 * mechanism.deltas.hashing + (1.0 + math.exp(epsilon)) * (worst + short)
        detail = f"cells {cells:.3g}, length {short:.3g}, noise beyond the cut {worst:.3g}"
        yield Finding("exact", "cells, errors and noise beyond the cut", "delta", delta, total, 1, detail)
        yield self._conforms(mechanism)

    def _lengths(self, mechanism: OracleHeavyHitters) -> tuple[int, ...]:
        return (mechanism.stream_length,) if isinstance(mechanism.stream_length, int) else (10, 400, 10_000)

    def _length_noise(self, mechanism: OracleHeavyHitters) -> NoiseLaw | None:
        source = ScriptedSource()
        mechanism(self.filled(mechanism, [0]), source)
        if len(source.draws) == 1:
            return None
        return NoiseLaw(source.draws[1].law, source.draws[1].scale, claim(mechanism)[1] * 1e-18)

    def _cut(self, mechanism: OracleHeavyHitters, n: int) -> int:
        """The least that a noisy estimate must reach; a noisy length is no less than the true one, but for `short`."""
        if isinstance(mechanism.stream_length, int):
            return int(mechanism.threshold)
        return int(mechanism.threshold) + int(mechanism.untracked(n))

    def _passing(self, mechanism: OracleHeavyHitters, noise: NoiseLaw, n: int) -> float:
        """P[some noise lifts an item that may be untracked to the cut], from the definition."""
        below, above = mechanism.errors(n)
        k, told = mechanism.capacity, mechanism.statement
        largest = (n + k * (above + below)) // (k + 1) + above
        least = -(-(self._cut(mechanism, n) - largest) // told.gain)  # noise of a cell that an estimate needs
        return min(1.0, 2 * told.cells * noise.shown(max(least, 0)))

    def _conforms(self, mechanism: OracleHeavyHitters) -> Finding:
        """The release with chosen noise: every cell gets its noise, and what is shown is what the cells say."""
        wrong, told = 0, mechanism.statement
        summary = self.filled(mechanism, several(mechanism.capacity))
        items = summary.not_private_counts().items.to_pylist()
        for shift in range(3):
            cut = self._cut(mechanism, summary.total)
            noise = np.resize([cut - 3 + shift, cut + shift, cut - 2], told.cells)
            source = ScriptedSource(0, noise.tolist())
            release = mechanism(summary, source)
            estimates = summary.estimates_from(items, summary.not_private_cells() + noise.reshape(told.shape))
            at = mechanism.threshold + (release.offset or 0)
            wrong += shown_by(release) != {x: int(v) for x, v in zip(items, estimates, strict=True) if v >= at}
            first, *others = [(draw.law, draw.scale, draw.size) for draw in source.draws]
            wrong += first != (mechanism.noise, mechanism.scale, told.cells)
            wrong += len(others) != (mechanism.stream_length == "noisy") or at < cut
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    def _heavy(self, mechanism: OracleHeavyHitters) -> list[int]:
        public = mechanism.stream_length
        return [0] * ((public if isinstance(public, int) else 4000) - items_of(mechanism))

    def streams(self, mechanism: OracleHeavyHitters) -> Sequence[Sequence[int]]:
        """Two items far above the cut, some items, and two streams that differ in one event.

        A noisy length tells one event from none as well as its noise allows: there, two events of different items.
        """
        heavy = self._heavy(mechanism)
        two = len(heavy) * 49 // 100
        neighbours = ([], [0]) if isinstance(mechanism.stream_length, int) else ([0], [1])
        return [0] * two + [1] * (len(heavy) - two), several(mechanism.capacity), *neighbours

    def runs(self, mechanism: OracleHeavyHitters, pair: ScoredPair, effort: Effort) -> int:
        """An oracle in Python is slow."""
        return min(effort.runs // 2, 5000)

    def scored_pairs(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[ScoredPair]:
        """One item."""
        heavy = self._heavy(mechanism)
        yield self.pair(mechanism, "one item higher", heavy + [0] * items_of(mechanism), heavy, CountOf(0))

    def coupled(self, mechanism: OracleHeavyHitters, effort: Effort) -> Iterator[Finding]:
        """The distance of the cells on longer random streams, in batches."""
        told, worst, pairs = mechanism.statement, 0, max(20, effort.large_pairs // 50)
        rng = np.random.default_rng(2)
        for _ in range(pairs):
            stream = rng.integers(0, 8, 60)
            left_out = int(rng.integers(60))
            sides = []
            for events in (stream, np.delete(stream, left_out)):
                sides.append(self.filled(mechanism, events[:20].tolist()))
                sides[-1].update(events[20:])
            moved = np.abs(sides[0].not_private_cells() - sides[1].not_private_cells())
            worst = max(worst, int(moved.sum()))
        yield Finding("coupled", "l1-distance of the cells", "sensitivity", told.changes * told.height, worst, pairs)


def _first(mechanism: Any) -> Any:
    """One empty oracle for all streams of an audit."""
    made = vars(mechanism).get("audited")
    if made is None:
        made = mechanism.oracle()
        object.__setattr__(mechanism, "audited", made)
    return made


def _twins(mechanism: Any) -> Sequence[Twin]:
    broken = [
        half_the_noise(mechanism),
        twin(mechanism, "no margin for noise", margin=1),
        twin(mechanism, "cut without the share of the untracked", untracked=lambda self, length: 0),
    ]
    if mechanism.stream_length == "noisy":

        def length(self: Any, total: int, source: Any) -> int:
            added = int(type(mechanism).noisy_length(self, total, ScriptedSource())) - total
            return max(0, int(type(mechanism).noisy_length(self, total, source)) - added)

        broken.append(twin(mechanism, "noisy length without its margin", noisy_length=length))
    else:
        broken.append(leaked_order(mechanism))
    return broken


_BUDGET = Budget(8.0, 0.02)
_EXAMPLE = OracleHeavyHitters(_BUDGET, 50, _Listed, 51, stream_length=400)  # k so large that n/k is not the cut

row(
    OracleHeavyHitters,
    lambda: (_EXAMPLE, replace(_EXAMPLE, noise="gaussian", stream_length="noisy")),
    OracleAudit(),
    _twins,
)
