"""Heavy hitters from linear sketches: the lemma on untracked items, and the exact output law, on all small streams."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.reference.linear_sketch import ReferenceCountSketch

import discreet as dc
from discreet.central import CountMinHeavyHitters, CountSketchHeavyHitters
from discreet.central.sketch_heavy_hitters import largest_untracked
from discreet.releases.error_model import Noise

UNIVERSE = [0, 1, 2, 3]
KINDS: list[tuple[Any, Any]] = [(dc.CountMin, CountMinHeavyHitters), (dc.CountSketch, CountSketchHeavyHitters)]
both_kinds = pytest.mark.parametrize(("kind", "mechanism"), KINDS, ids=["CountMin", "CountSketch"])


# ---- the lemma -----------------------------------------------------------------------------------------------------


def colliding_mass(sketch: Any, truth: Counter[int], rule: str) -> int:
    """g: the most that collides with any item of the universe, in its best row or in the best half of its rows."""
    columns, _ = sketch.places(UNIVERSE)
    needed = (sketch.depth + 1) // 2 if rule == "median" else 1
    worst = 0
    for x in UNIVERSE:
        rows = [
            sum(truth[z] for z in UNIVERSE if z != x and columns[z, row] == columns[x, row])
            for row in range(sketch.depth)
        ]
        worst = max(worst, sorted(rows)[needed - 1])
    return worst


@pytest.mark.parametrize("rule", ["smallest", "median"])
def test_what_collides_in_the_shorter_stream_collides_in_the_longer(rule: str) -> None:
    """So one failure of the hashing pays for both neighbours where a public length gives them the same bound."""
    for seed in range(5):
        sketch = dc.CountMin(2, 3, seed=seed)
        sketch.update(UNIVERSE)  # which tells the kind of the keys
        for stream in itertools.product(UNIVERSE, repeat=4):
            longer = colliding_mass(sketch, Counter(stream), rule)
            assert all(
                colliding_mass(sketch, Counter(stream[:i] + stream[i + 1 :]), rule) <= longer
                for i in range(len(stream))
            )


def untracked_cases(kind: Any, rule: str) -> Iterator[tuple[int, int, int, int]]:
    """(n, k, g, the largest final estimate of an item that is not tracked), over streams, shapes and seeds."""
    for seed, (width, depth), k in itertools.product(range(3), [(2, 1), (2, 3)], [1, 2]):
        for stream in itertools.product(UNIVERSE, repeat=5):
            sketch = kind(width, depth, tracked=k, seed=seed)
            sketch.update(np.array(stream))
            tracked = set(sketch.not_private_counts().items.to_pylist())
            estimates = sketch.estimate_many(UNIVERSE).tolist()
            largest = max(estimate for x, estimate in enumerate(estimates) if x not in tracked)
            yield len(stream), k, colliding_mass(sketch, Counter(stream), rule), largest


def without_one_error(n: int, k: int, g: int, rule: str) -> int:
    """A cut that is lower by g."""
    return largest_untracked(n, k, g, rule) - g


def without_errors(n: int, k: int, g: int, rule: str) -> int:
    """The share of the k-th item alone."""
    return n // k


def literal(n: int, k: int, g: int) -> int:
    """The paper's T/k + 2 gamma_1 + gamma_2 with the lower error gamma_2 = -g of CountSketch."""
    return n // k + 2 * g - g


@both_kinds
def test_no_untracked_item_exceeds_the_bound(kind: Any, mechanism: Any) -> None:
    rule = mechanism.rule
    cases = Counter(untracked_cases(kind, rule))
    # Small streams do not need the second and third error of CountSketch; the next test's does.
    twin = without_errors if rule == "median" else without_one_error
    caught: dict[Callable[..., int], int] = dict.fromkeys([largest_untracked, twin], 0)
    for (n, k, g, largest), count in cases.items():
        for bound in caught:
            caught[bound] += count * (largest > bound(n, k, g, rule))
    assert caught[largest_untracked] == 0
    assert caught[twin] > 0


class ChosenCells(ReferenceCountSketch):
    """A CountSketch whose hash functions are tables: items not named have cells of their own and the sign +."""

    def __init__(self, tracked: int, cells: dict[tuple[int, str], tuple[str, int]]) -> None:
        super().__init__(1, 3, tracked, seed=0, rank=lambda x: 0)
        self.chosen = cells
        self.sums: Counter[tuple[int, str]] = Counter()

    def place(self, row: int, item: str) -> tuple[str, int]:
        return self.chosen.get((row, item), (item, 1))

    def rows(self, item: Any) -> list[int]:
        places = [self.place(row, item) for row in range(3)]
        return [sign * self.sums[row, cell] for row, (cell, sign) in enumerate(places)]

    def update(self, stream: Any) -> None:
        for x in stream:
            for row in range(3):
                cell, sign = self.place(row, x)
                self.sums[row, cell] += sign
            self.arrive(x, self.estimate(x))

    def colliding_mass(self, truth: Counter[str]) -> int:
        worst = 0
        for x in truth:
            rows = [
                sum(truth[z] for z in truth if z != x and self.place(row, z)[0] == self.place(row, x)[0])
                for row in range(3)
            ]
            worst = max(worst, sorted(rows)[1])
        return worst


def test_count_sketch_needs_its_third_error() -> None:
    """An item that collisions push down while it arrives, and up afterwards: the cut lower by g would publish it."""
    small = [f"z{i}" for i in range(10)]
    cells = {
        (0, "x"): ("a", -1),
        (1, "x"): ("b", 1),
        (2, "x"): ("B", 1),
        (2, "early"): ("B", -1),
        (2, "late"): ("B", 1),
    }
    cells |= {(row, z): ("a", 1) for row in (1, 2) for z in small}
    sketch = ChosenCells(12, cells)
    stream = ["a"] * 200 + ["early"] * 210 + small + ["x"] * 400 + ["b"] * 200 + ["late"] * 410
    sketch.update(stream)
    assert "x" not in sketch.candidates
    n, k, g = len(stream), 12, sketch.colliding_mass(Counter(stream))
    assert without_one_error(n, k, g, "median") < sketch.estimate("x") <= largest_untracked(n, k, g, "median")
    assert literal(n, k, g) < sketch.estimate("x")


# ---- the output law ------------------------------------------------------------------------------------------------


@cache
def estimate_tail(noise: Noise, depth: int, rule: str, t: int) -> float:
    """P[noise of an estimate >= t] for an item that shares no cell."""
    p = noise.upper_tail(t)
    if rule == "smallest":
        return p**depth
    return sum(math.comb(depth, j) * p**j * (1 - p) ** (depth - j) for j in range((depth + 1) // 2, depth + 1))


def item_law(f: int | None, cut: int, noise: Noise, depth: int, rule: str, reach: int) -> np.ndarray[Any, Any]:
    """P[not published], then P[published with cut, cut + 1, ...]; None is an item that is not tracked."""
    if f is None:
        return np.eye(1, reach + 1)[0]
    tails = [estimate_tail(noise, depth, rule, cut + i - f) for i in range(reach + 1)]
    return np.array([1 - tails[0], *(-np.diff(tails))])


def divergence(first: list[Any], second: list[Any], epsilon: float) -> float:
    """The hockey-stick divergence of two product laws, with the mass that the tables leave out added."""
    # An item that neither state tracks has one outcome.
    tracked = [law[1:].any() or other[1:].any() for law, other in zip(first, second, strict=True)]
    left, right = (
        np.einsum("i,j,k->ijk", *(law if used else law[:1] for law, used in zip(laws, tracked, strict=True)))
        for laws in (first, second)
    )
    return float(np.maximum(left - math.exp(epsilon) * right, 0).sum() + 1 - left.sum())


def states(kind: Any, shape: dict[str, int], streams: list[tuple[int, ...]]) -> dict[tuple[int, ...], Any]:
    """The frequencies of the tracked items after each stream; the seed is one for which the items share no cell."""
    for seed in range(100):
        sketch = kind(**shape, seed=seed)
        sketch.update([0])
        if all(len(set(row)) == 3 for row in sketch.places([0, 1, 2])[0].T):
            break
    out = {}
    for stream in streams:
        sketch = kind(**shape, seed=seed)
        sketch.update(np.array(stream, dtype=np.int64))
        counts = sketch.not_private_counts().to_dict()
        out[stream] = tuple(counts.get(x) for x in range(3))
    return out


def worst_divergence(made: Any, pairs: set[Any], cut: int, scale: Fraction, reach: int = 50) -> float:
    """The largest divergence over pairs of states in both directions."""
    law = Noise(made.noise, scale)
    everything = {state for pair in pairs for state in pair}
    laws = {s: [item_law(f, cut, law, made.depth, made.rule, reach) for f in s] for s in everything}
    return max(divergence(laws[a], laws[b], made.budget.epsilon) for x, y in pairs for a, b in ((x, y), (y, x)))


def allowed_for_noise(made: Any) -> float:
    """What is left of delta when the hashing is given, because no items collide."""
    parts = made.deltas
    return float(parts.gaussian + (1 + math.exp(made.budget.epsilon)) * parts.cells)


BUDGET = dc.Budget(1.0, 0.05)
both_noises = pytest.mark.parametrize("noise", ["laplace", "gaussian"])


@both_kinds
@both_noises
def test_items_that_only_one_run_tracks_stay_hidden(kind: Any, mechanism: Any, noise: str) -> None:
    """All streams of at most 3 events on 3 items against all with one event less. The twin's cut has no margin."""
    n, k = 3, 1
    made = mechanism(BUDGET, k, width=4096, depth=3, noise=noise, stream_length=n)
    assert made._collisions(n).bound(made.deltas.hashing) == 0
    assert made.threshold == n // (k + 1) + made._margin
    streams = [stream for length in range(n + 1) for stream in itertools.product(range(3), repeat=length)]
    state = states(kind, {"width": 4096, "depth": 3, "tracked": k}, streams)
    pairs = {(state[s], state[s[:i] + s[i + 1 :]]) for s in streams for i in range(len(s))}
    assert any((f is None) != (g is None) for a, b in pairs for f, g in zip(a, b, strict=True))
    assert worst_divergence(made, pairs, made.threshold, made.scale) <= allowed_for_noise(made)
    assert worst_divergence(made, pairs, made.threshold - made._margin, made.scale) > BUDGET.delta


@both_kinds
@both_noises
def test_counts_above_the_cut_are_as_private_as_their_noise(kind: Any, mechanism: Any, noise: str) -> None:
    """A heavy item with one event more or less, in one row: nothing but the noise hides it. The twin's is half."""
    n = 200
    made = mechanism(BUDGET, 1, width=2**19, depth=1, noise=noise, stream_length=n)
    state = states(kind, {"width": 2**19, "depth": 1, "tracked": 1}, [(0,) * n, (0,) * (n - 1)])
    pairs = {tuple(state.values())}
    assert pairs == {((n, None, None), (n - 1, None, None))}
    assert made.threshold < n - 20
    assert worst_divergence(made, pairs, made.threshold, made.scale, reach=250) <= allowed_for_noise(made)
    assert worst_divergence(made, pairs, made.threshold, made.scale / 2, reach=250) > BUDGET.delta
