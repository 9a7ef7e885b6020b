"""Auditing heavy hitters from linear sketches: noise on every cell, and a cut above all that may be untracked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.audit.counters import claim, items_of
from discreet.audit.findings import Finding
from discreet.audit.histograms import HeavyKey, plumbing, several
from discreet.audit.laws import NoiseLaw, gaussian_split_delta
from discreet.audit.registry import Effort
from discreet.audit.sources import ScriptedSource
from discreet.audit.states import states_of_short_streams
from discreet.audit.statistical import ScoredPair, measure
from discreet.audit.structure import random_pairs
from discreet.summaries import CountMin, CountSketch

__all__ = ["LinearAudit", "largest_untracked"]

_SEED = 7


def largest_untracked(n: int, k: int, g: int, median: bool) -> int:
    """The largest estimate of an item that is not tracked, if no estimate errs by more than g.

    docs/privacy/sketch-heavy-hitters.md: (n + k g)/(k+1) + g, with 2 k g for CountSketch, which errs to both sides.
    """
    return (n + (2 if median else 1) * k * g) // (k + 1) + g


@dataclass(frozen=True)
class LinearAudit:
    """The four checks; for a public length, which `prepare` puts in place of any other."""

    median: bool

    @property
    def _kind(self) -> Any:
        return CountSketch if self.median else CountMin

    def filled(self, mechanism: Any, stream: Sequence[int]) -> Any:
        """The sketch of a stream."""
        sketch = self._empty(mechanism)
        sketch.update(np.asarray(stream, np.int64))
        return sketch

    def _empty(self, mechanism: Any) -> Any:
        shape = {"tracked": mechanism.capacity, "max_key_bytes": mechanism.max_key_bytes, "seed": _SEED}
        return self._kind(mechanism.width, mechanism.depth, **shape)

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """One event moves one cell of every row by one, on every pair of short streams."""
        l1, l2, tried = _sensitivities(self.median, effort.length)
        yield Finding("structure", "cells of 3 rows, l1", "sensitivity", 3.0, l1, tried)
        yield Finding("structure", "cells of 3 rows, l2", "sensitivity", math.sqrt(3.0), l2, tried)

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """What the cells lose and what may go wrong beside them, summed from the mechanism's own cut and scale."""
        epsilon, delta = claim(mechanism)
        m, d, w, n = items_of(mechanism), mechanism.depth, mechanism.width, mechanism.stream_length
        noise = NoiseLaw(mechanism.noise, mechanism.scale, delta * 1e-18)
        cells = 0.0
        if mechanism.noise == "laplace":
            loss = float(m * d / Fraction(mechanism.scale))
            yield Finding("exact", "l1-distance of the cells over the scale", "epsilon", epsilon, loss)
        elif m == 1:
            cells = gaussian_split_delta(noise, 0, d, 10**9, epsilon)
        else:  # what the mechanism reserves: the shift of m events is not a lattice sum
            cells = mechanism._deltas.gaussian
        total, g = min(self._failing(mechanism, noise, g) for g in self._errors(mechanism))
        total = cells + total
        detail = f"cells {cells:.3g}, errors up to {g}, n={n}, {d} x {w} cells"
        yield Finding("exact", "cells, hashing and noise beyond the cut", "delta", delta, total, 1, detail)
        yield self._conforms(mechanism)

    def _errors(self, mechanism: Any) -> range:
        """Errors g that leave room for noise below the cut."""
        n, k, cut = mechanism.stream_length, mechanism.capacity, mechanism.threshold
        most = 0
        while most < n and largest_untracked(n, k, most + 1, self.median) < cut:
            most += 1
        return range(most + 1)

    def _failing(self, mechanism: Any, noise: NoiseLaw, g: int) -> tuple[float, int]:
        """2 P[hashing errs by more than g] + (1 + e^epsilon) P[noise passes the cut], bounded as in the argument."""
        n, d, w = mechanism.stream_length, mechanism.depth, mechanism.width
        items = n + items_of(mechanism)
        q = 0.0 if g >= n else min(1.0, n * math.ceil(2**32 / w) / 2**32 / (g + 1))
        needed = (d + 1) // 2 if self.median else d
        rows = math.fsum(math.comb(d, j) * q**j * (1.0 - q) ** (d - j) for j in range(needed, d + 1))
        hashing = min(1.0, items * rows + items**2 / 2 * ((mechanism.max_key_bytes / 7 + 2) / 2**61) ** 2)
        margin = mechanism.threshold - largest_untracked(n, mechanism.capacity, g, self.median)
        passes = min(1.0, (2 if self.median else 1) * d * w * noise.shown(margin))
        return 2.0 * hashing + (1.0 + math.exp(claim(mechanism)[0])) * passes, g

    def _conforms(self, mechanism: Any) -> Finding:
        """The release with chosen noise: every cell gets its noise, and what is shown is what the cells say."""
        wrong = 0
        summary = self.filled(mechanism, [item for item in range(mechanism.capacity) for _ in range(3)])
        items = summary.not_private_counts().items.to_pylist()
        columns, signs = summary.places(items)
        rows = np.arange(mechanism.depth)
        for shift in range(3):
            # Cells around the cut, with the sign that lifts the first item.
            noise = np.full((mechanism.depth, mechanism.width), mechanism.threshold - 3 + shift)
            noise[rows, columns[0]] *= signs[0]
            source = ScriptedSource(0, noise.ravel().tolist())
            release = mechanism(summary, source)
            values = signs * (summary.not_private_cells() + noise)[rows, columns]
            estimates = np.median(values, axis=1).astype(np.int64) if self.median else values.min(axis=1)
            expected = {item: int(v) for item, v in zip(items, estimates, strict=True) if v >= mechanism.threshold}
            wrong += dict(zip(release.items, release.counts.tolist(), strict=True)) != expected
            wrong += [(draw.law, draw.scale, draw.size) for draw in source.draws] != [
                (mechanism.noise, mechanism.scale, mechanism.depth * mechanism.width)
            ]
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    def statistical(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """A lower bound on epsilon for one item; order, repetition, the empty stream."""
        epsilon, delta = claim(mechanism)
        m = items_of(mechanism)
        heavy = [0] * (mechanism.stream_length - m)
        few = self.filled(mechanism, several(mechanism.capacity))
        empty, one = self.filled(mechanism, []), self.filled(mechanism, heavy[:1])
        # Signs turn noise that hides into noise that shows: none at all hides one event.
        two = [0] * (len(heavy) * 49 // 100)
        both = self.filled(mechanism, [*two, *[1] * (len(heavy) - len(two))])
        yield plumbing(mechanism, both, few, empty, one, hiding=0)
        first, second = self.filled(mechanism, heavy + [0] * m), self.filled(mechanism, heavy)
        bound = measure(mechanism, ScoredPair("", first, second, HeavyKey(0)), delta, effort.runs)
        yield Finding("statistical", "one item higher", "epsilon", epsilon, bound, 1, f"{effort.runs} runs of each")

    def coupled(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """The distance of the cells, in the norm of the noise, on large random streams."""
        epsilon, m = claim(mechanism)[0], items_of(mechanism)
        pairs = random_pairs(lambda: self._empty(mechanism), effort.large_pairs, 2000, 300)
        laplace = mechanism.noise == "laplace"
        declared = float(mechanism.scale * Fraction(epsilon)) / m if laplace else math.sqrt(mechanism.depth)
        worst = 0.0
        for first, second in pairs:
            moved = np.abs(first.not_private_cells() - second.not_private_cells()).ravel()
            worst = max(worst, float(moved.sum() if laplace else np.sqrt((moved * moved).sum())))
        norm = "l1" if laplace else "l2"
        yield Finding("coupled", f"{norm}-sensitivity of the cells", "sensitivity", declared, worst, len(pairs))


@lru_cache(maxsize=4)
def _sensitivities(median: bool, longer: int) -> tuple[float, float, int]:
    """(l1, l2, pairs): the largest distances of the cells of neighbours, 3 rows of 3 cells, 4 items."""
    kind: Any = CountSketch if median else CountMin

    def cells(sketch: Any) -> tuple[int, ...]:
        return tuple(sketch.not_private_cells().ravel().tolist())

    table = states_of_short_streams(lambda: kind(3, 3, seed=_SEED), range(4), 6 + longer, cells)
    pairs, tried = table.neighbours()
    moved = np.array([np.subtract(first, second) for first, second in pairs])
    return float(np.abs(moved).sum(axis=1).max()), float(np.sqrt((moved**2).sum(axis=1)).max()), tried
