"""Auditing heavy hitters from linear sketches: noise on every cell, and a cut above all that may be untracked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.central import CountMinHeavyHitters, CountSketchHeavyHitters
from discreet.summaries import CountMin, CountSketch
from discreet_audit.findings import Finding
from discreet_audit.histograms import CountOf, HistogramAudit, claim, items_of, several, shown_by
from discreet_audit.laws import NoiseLaw, gaussian_split_delta, noise_sum_below
from discreet_audit.registry import Effort
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair
from discreet_audit.structure import SEED, random_pairs, states_of_short_streams

__all__ = ["LinearAudit", "largest_untracked"]

Linear = CountMinHeavyHitters | CountSketchHeavyHitters


def _public(mechanism: Linear) -> int | None:
    """The length, where it is a public number."""
    return mechanism.stream_length if isinstance(mechanism.stream_length, int) else None


def largest_untracked(n: int, k: int, g: int, median: bool) -> int:
    """The largest estimate of an item that is not tracked, if no estimate errs by more than g.

    docs/privacy/sketch-heavy-hitters.md: (n + k g)/(k+1) + g, with 2 k g for CountSketch, which errs to both sides.
    """
    return (n + (2 if median else 1) * k * g) // (k + 1) + g


@dataclass(frozen=True)
class LinearAudit(HistogramAudit[Linear]):
    """The four checks, for a public length or a noisy one."""

    median: bool

    @property
    def _kind(self) -> Any:
        return CountSketch if self.median else CountMin

    def filled(self, mechanism: Linear, stream: Sequence[int]) -> Any:
        """The sketch of a stream."""
        sketch = self._empty(mechanism)
        sketch.update(np.asarray(stream, np.int64))
        return sketch

    def _empty(self, mechanism: Linear) -> Any:
        shape = {"tracked": mechanism.capacity, "max_key_bytes": mechanism.max_key_bytes, "seed": SEED}
        return self._kind(mechanism.width, mechanism.depth, **shape)

    def structure(self, mechanism: Linear, effort: Effort) -> Iterator[Finding]:
        """One event moves one cell of every row by one, on every pair of short streams."""
        l1, l2, tried = _sensitivities(self.median, effort.length)
        yield Finding("structure", "cells of 3 rows, l1", "sensitivity", 3.0, l1, tried)
        yield Finding("structure", "cells of 3 rows, l2", "sensitivity", math.sqrt(3.0), l2, tried)

    def exact(self, mechanism: Linear, effort: Effort) -> Iterator[Finding]:
        """What the cells lose and what may go wrong beside them, summed from the mechanism's own cut and scale."""
        epsilon, delta = claim(mechanism)
        m, d, w = items_of(mechanism), mechanism.depth, mechanism.width
        noise = NoiseLaw(mechanism.noise, mechanism.scale, delta * 1e-18)
        cells, spent = 0.0, 0.0
        length = self._length_noise(mechanism)  # of its own; CountMin reads the length from its cells
        if length is not None:
            spent = float(m / length.scale)
        if mechanism.noise == "laplace":
            loss = float(m * d / Fraction(mechanism.scale)) + spent
            yield Finding("exact", "l1-distance of what gets noise, over its scale", "epsilon", epsilon, loss)
        elif m == 1:
            cells = gaussian_split_delta(noise, 0, d, 10**9, epsilon - spent)
        else:  # what the mechanism reserves: the shift of m events is not a lattice sum
            cells = mechanism.deltas.gaussian
        short = 0.0 if _public(mechanism) is not None else self._too_short(mechanism, noise, length)
        worst, g, n = max(self._least(mechanism, noise, n) for n in self._lengths(mechanism))
        total = cells + worst + (1.0 + math.exp(epsilon)) * short
        detail = f"cells {cells:.3g}, length {short:.3g}, errors up to {g}, n={n}, {d} x {w} cells"
        yield Finding("exact", "cells, hashing and noise beyond the cut", "delta", delta, total, 1, detail)
        yield self._conforms(mechanism)

    def _lengths(self, mechanism: Linear) -> tuple[int, ...]:
        """The public length, or some that a noisy one may turn out to be."""
        length = _public(mechanism)
        return (10, 400, 10_000) if length is None else (length,)

    def _length_noise(self, mechanism: Linear) -> NoiseLaw | None:
        """The law of the noise on the length, as it is drawn."""
        source = ScriptedSource()
        mechanism(self.filled(mechanism, [0]), source)
        if len(source.draws) == 1:
            return None
        return NoiseLaw(source.draws[1].law, source.draws[1].scale, claim(mechanism)[1] * 1e-18)

    def _too_short(self, mechanism: Linear, noise: NoiseLaw, length: NoiseLaw | None) -> float:
        """The chance that the noisy length is below the true one, from how much the code adds to it."""
        summary = self.filled(mechanism, range(100))
        added = mechanism.noisy_length(summary, summary.not_private_cells(), ScriptedSource()) - summary.total
        if length is not None:
            return length.hidden(-added)
        # The cells sum to d n and d w noises; ceil((sum + bound)/d) - n = added, so noises below -d added fall short.
        return noise_sum_below(noise, mechanism.depth * mechanism.width, -mechanism.depth * added)

    def _least(self, mechanism: Linear, noise: NoiseLaw, n: int) -> tuple[float, int, int]:
        """(what fails, g, n) for the most favourable error g at this length."""
        cut = mechanism.threshold
        if _public(mechanism) is None:
            cut += mechanism.untracked(n)
        k, most = mechanism.capacity, 0
        while most < n and largest_untracked(n, k, most + 1, self.median) < cut:
            most += 1
        failing, g = min(self._failing(mechanism, noise, g, n, cut) for g in range(most + 1))
        return failing, g, n

    def _failing(self, mechanism: Linear, noise: NoiseLaw, g: int, n: int, cut: int) -> tuple[float, int]:
        """P[hashing errs by more than g] + (1 + e^epsilon) P[noise passes the cut], bounded as in the argument.

        With a noisy length the hashing may fail either stream on its own.
        """
        d, w = mechanism.depth, mechanism.width
        public = _public(mechanism) is not None
        items = n + (0 if public else items_of(mechanism))
        q = 0.0 if g >= n else min(1.0, n * math.ceil(2**32 / w) / 2**32 / (g + 1))
        needed = (d + 1) // 2 if self.median else d
        rows = math.fsum(math.comb(d, j) * q**j * (1.0 - q) ** (d - j) for j in range(needed, d + 1))
        hashing = min(1.0, items * rows + items**2 / 2 * ((mechanism.max_key_bytes / 7 + 2) / 2**61) ** 2)
        margin = cut - largest_untracked(n, mechanism.capacity, g, self.median)
        passes = min(1.0, (2 if self.median else 1) * d * w * noise.shown(margin))
        return (1.0 if public else 2.0) * hashing + (1.0 + math.exp(claim(mechanism)[0])) * passes, g

    def _conforms(self, mechanism: Linear) -> Finding:
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
            noisy_length = _public(mechanism) is None
            if noisy_length:
                noisy_cells = summary.not_private_cells() + noise
                same = ScriptedSource(0, noise.ravel().tolist())
                expected_offset = mechanism.untracked(mechanism.noisy_length(summary, noisy_cells, same))
                wrong += release.offset != expected_offset
            values = signs * (summary.not_private_cells() + noise)[rows, columns]
            estimates = np.median(values, axis=1).astype(np.int64) if self.median else values.min(axis=1)
            cut = mechanism.threshold + (release.offset or 0)
            expected = {item: int(v) for item, v in zip(items, estimates, strict=True) if v >= cut}
            wrong += shown_by(release) != expected
            cells_drawn, *others = [(draw.law, draw.scale, draw.size) for draw in source.draws]
            wrong += cells_drawn != (mechanism.noise, mechanism.scale, mechanism.depth * mechanism.width)
            wrong += len(others) > (self.median and noisy_length)
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    hiding = 0  # signs turn noise that hides into noise that shows: none at all hides one event

    def _heavy(self, mechanism: Linear) -> list[int]:
        return [0] * ((_public(mechanism) or 4000) - items_of(mechanism))

    def streams(self, mechanism: Linear) -> Sequence[Sequence[int]]:
        """Two items far above the cut, some items, and two streams that differ in one event.

        A noisy length tells one event from none as well as its noise allows: there, two events of different items.
        """
        heavy = self._heavy(mechanism)
        two = len(heavy) * 49 // 100
        neighbours = ([], [0]) if _public(mechanism) is not None else ([0], [1])
        return [0] * two + [1] * (len(heavy) - two), several(mechanism.capacity), *neighbours

    def runs(self, mechanism: Linear, pair: ScoredPair, effort: Effort) -> int:
        """Noise for all cells takes long to draw."""
        return min(effort.runs // 2, 5000)

    def scored_pairs(self, mechanism: Linear, effort: Effort) -> Iterator[ScoredPair]:
        """One item."""
        heavy = self._heavy(mechanism)
        yield self.pair(mechanism, "one item higher", heavy + [0] * items_of(mechanism), heavy, CountOf(0))

    def coupled(self, mechanism: Linear, effort: Effort) -> Iterator[Finding]:
        """The distance of the cells, in the norm of the noise, on large random streams."""
        epsilon, m = claim(mechanism)[0], items_of(mechanism)
        pairs = random_pairs(lambda: self._empty(mechanism), effort.large_pairs // 4, 2000, 300)
        laplace = mechanism.noise == "laplace"
        length = self._length_noise(mechanism)
        epsilon -= 0.0 if length is None else float(m / length.scale)
        declared = math.sqrt(mechanism.depth)
        if laplace:
            declared = float(mechanism.scale * Fraction(epsilon)) / m * (1 + 1e-12)
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

    table = states_of_short_streams(lambda: kind(3, 3, seed=SEED), range(4), 6 + longer, cells)
    pairs, tried = table.neighbours()
    moved = np.array([np.subtract(first, second) for first, second in pairs])
    return float(np.abs(moved).sum(axis=1).max()), float(np.sqrt((moved**2).sum(axis=1)).max()), tried
