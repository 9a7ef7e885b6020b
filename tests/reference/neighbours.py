"""Every pair of neighbouring Misra-Gries states within a box, and exact divergences between small output laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from tests.reference.misra_gries import Sketch, empty_sketch, paper_order, update

# For every key that one of the two sketches stores: its counter in the first and in the second (None: not stored),
# and how many more decrements the first has seen. All a release can depend on, up to the names of the keys.
Signature = tuple[tuple[tuple[int | None, int | None], ...], int]


def neighbouring_states(
    k: int, universe: int, largest: int, order: Callable[[Any], Any] = paper_order, removed: int = 1
) -> set[tuple[Sketch, Sketch]]:
    """All pairs (sketch of S, sketch of S without `removed` events) reachable with counters up to `largest`.

    A search of the graph of pairs, which covers streams of every length that stay in the box. Only the difference of
    the decrements is kept (second sketch at 0), so the graph is finite.
    """

    def in_box(sketch: Sketch) -> bool:
        return all(count <= largest for _, count in sketch.counters)

    singles = {empty_sketch(k)}
    frontier = list(singles)
    while frontier:
        sketch = frontier.pop()
        for x in range(universe):
            successor = replace(update(sketch, x, order), decrements=0)
            if in_box(successor) and successor not in singles:
                singles.add(successor)
                frontier.append(successor)

    def relative(first: Sketch, second: Sketch) -> tuple[Sketch, Sketch]:
        return replace(first, decrements=first.decrements - second.decrements), replace(second, decrements=0)

    pairs = {(sketch, sketch) for sketch in singles}
    for _ in range(removed):
        pairs = {relative(update(first, x, order), second) for first, second in pairs for x in range(universe)}
        pairs = {pair for pair in pairs if in_box(pair[0])}
        pending = list(pairs)
        while pending:
            first, second = pending.pop()
            for x in range(universe):
                pair = relative(update(first, x, order), update(second, x, order))
                if in_box(pair[0]) and in_box(pair[1]) and pair not in pairs:
                    pairs.add(pair)
                    pending.append(pair)
    return pairs


def signature(first: Sketch, second: Sketch) -> Signature:
    c, d = dict(first.counters), dict(second.counters)
    keys = sorted(((c.get(key), d.get(key)) for key in {*c, *d}), key=repr)
    return tuple(keys), first.decrements - second.decrements


def kind(pair: Signature) -> str:
    """Which of the six states of LT Lemma 8 the pair is in; an error if none or several."""
    keys, decrements = pair
    common = [(a, b) for a, b in keys if a is not None and b is not None]
    mine = sorted((a for a, b in keys if b is None), reverse=True)
    theirs = sorted((b for a, b in keys if a is None), reverse=True)
    all_lower = all(a == b - 1 for a, b in common)
    equal = all(a == b for a, b in common)
    one_higher = sum(a == b + 1 for a, b in common) == 1 and sum(a != b for a, b in common) == 1
    found = [
        name
        for name, holds in {
            "S1": decrements == 1 and all_lower and (mine, theirs) == ([], []),
            "S2": decrements == 1 and all_lower and (mine, theirs) == ([0], [1]),
            "S3": decrements == 0 and one_higher and (mine, theirs) == ([], []),
            "S4": decrements == 0 and equal and (mine, theirs) == ([1], [0]),
            "S5": decrements == 0 and one_higher and (mine, theirs) == ([0], [0]),
            "S6": decrements == 0 and equal and (mine, theirs) == ([1, 0], [0, 0]),
        }.items()
        if holds
    ]
    if len(found) != 1:
        raise AssertionError(f"the pair {pair} is in the states {found}")
    return found[0]


def differing(pair: Signature) -> Signature:
    """The pair without the keys whose c + alpha agrees: given the offset they have one law in both sketches."""
    keys, decrements = pair
    return tuple((a, b) for a, b in keys if a is None or b is None or a + decrements != b), decrements


def swapped(pair: Signature) -> Signature:
    keys, decrements = pair
    return tuple((b, a) for a, b in keys), -decrements


def laplace(q: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    z = np.arange(-reach, reach + 1)
    return z, (1 - q) / (1 + q) * q ** np.abs(z)


class Pair:
    """Two laws on the same outcomes; `times` is independent composition, `divergence` the hockey-stick divergence."""

    def __init__(self, first: np.ndarray, second: np.ndarray) -> None:
        self.first, self.second = first, second

    @classmethod
    def of(cls, first: dict[Any, float], second: dict[Any, float]) -> Pair:
        outcomes = list({**first, **second})
        return cls(*(np.array([law.get(o, 0.0) for o in outcomes]) for law in (first, second))).merged()

    def merged(self) -> Pair:
        """Outcomes of equal likelihood ratio are one outcome: no divergence changes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.round(np.log(self.first) - np.log(self.second), 9)
        _, groups = np.unique(ratio, return_inverse=True)
        return Pair(np.bincount(groups, self.first), np.bincount(groups, self.second))

    def times(self, other: Pair) -> Pair:
        return Pair(np.outer(self.first, other.first).ravel(), np.outer(self.second, other.second).ravel()).merged()

    def divergence(self, factor: float) -> float:
        return float(np.maximum(self.first - factor * self.second, 0.0).sum())


def directions(pairs: set[Signature]) -> Iterator[Signature]:
    """Every pair and its reverse."""
    return itertools.chain(sorted(pairs, key=repr), (swapped(pair) for pair in sorted(pairs, key=repr)))


def neighbouring_streams(universe: Any, longest: int, removed: int = 1) -> Iterator[tuple[Any, Any]]:
    """Every stream of at most `longest` events with each different stream that lacks `removed` of them."""
    for length in range(removed, longest + 1):
        for stream in itertools.product(universe, repeat=length):
            places = itertools.combinations(range(length), length - removed)
            yield from {(stream, tuple(stream[place] for place in kept)) for kept in places}
