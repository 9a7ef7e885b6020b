"""Every short stream through the real kernels, and every neighbouring pair of the states they reach."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.summaries import Summary
from discreet_audit.laws import Key, StatePair

__all__ = ["Counters", "StateTable", "counters_of", "state_pair", "states_of_short_streams"]

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True)
class Counters:
    """What a counter summary holds: counters by key, decrements (0 for those that have none), and the length."""

    counts: tuple[tuple[Any, int], ...]
    offset: int
    total: int


def counters_of(summary: Summary) -> Counters:
    """The state of a counter summary."""
    raw = summary.not_private_counts().to_dict()
    return Counters(tuple(sorted(raw.items())), int(getattr(summary, "not_private_offset", 0)), summary.total)


@dataclass(frozen=True)
class StateTable(Generic[S]):
    """The states of all streams of at most `length` symbols: `numbers[n][s]` is the state of stream s of length n.

    Stream s is the number whose digits, in base `symbols`, are its symbols, the last one first. `examples` has a
    stream (the positions of its symbols) for every state.
    """

    symbols: int
    states: list[S]
    numbers: list[npt.NDArray[np.int64]]
    examples: list[tuple[int, ...]]

    @property
    def streams(self) -> int:
        """How many streams were run."""
        return sum(len(numbers) for numbers in self.numbers)

    def neighbours(self, removed: int = 1) -> tuple[list[tuple[S, S]], int]:
        """The different pairs (state of S, state of S without `removed` of its events), and how many pairs of streams.

        Every stream and every choice of the events is looked at; equal pairs of states are listed once.
        """
        found: set[tuple[int, int]] = set()
        tried = 0
        for n in range(removed, len(self.numbers)):
            streams = np.arange(len(self.numbers[n]))
            for shorter in self._without(streams, n, removed):
                both = np.unique(self.numbers[n] * len(self.states) + self.numbers[n - removed][shorter])
                found.update((int(code) // len(self.states), int(code) % len(self.states)) for code in both)
                tried += len(streams)
        return [(self.states[a], self.states[b]) for a, b in sorted(found)], tried

    def streams_of(self, first: S, second: S) -> tuple[list[int], list[int]]:
        """Two neighbouring streams, as positions of their symbols, that reach these states."""
        a, b = self.states.index(first), self.states.index(second)
        for n in range(1, len(self.numbers)):
            streams = np.arange(len(self.numbers[n]))
            for shorter in self._without(streams, n, 1):
                hits = np.flatnonzero((self.numbers[n] == a) & (self.numbers[n - 1][shorter] == b))
                if hits.size:
                    return self._digits(int(hits[0]), n), self._digits(int(shorter[hits[0]]), n - 1)
        raise ParameterError("no neighbouring streams reach these two states")

    def _digits(self, number: int, n: int) -> list[int]:
        return [number // self.symbols**place % self.symbols for place in reversed(range(n))]

    def _without(self, streams: npt.NDArray[np.int64], n: int, removed: int) -> list[npt.NDArray[np.int64]]:
        if removed == 0:
            return [streams]
        out: list[npt.NDArray[np.int64]] = []
        for place in range(n):
            low = self.symbols**place
            shorter = streams // (low * self.symbols) * low + streams % low
            out.extend(self._without(shorter, n - 1, removed - 1) if removed > 1 else [shorter])
        return out


def states_of_short_streams(
    make: Callable[[], Summary], symbols: Sequence[Any], length: int, read: Callable[[Any], S]
) -> StateTable[S]:
    """Run every stream of at most `length` symbols through a summary of its own."""
    as_array = all(isinstance(symbol, int) for symbol in symbols)
    values = np.array(symbols, np.int64) if as_array else None
    index: dict[S, int] = {}
    examples: list[tuple[int, ...]] = []
    numbers = []
    for n in range(length + 1):
        row = np.empty(len(symbols) ** n, np.int64)
        for s, digits in enumerate(product(range(len(symbols)), repeat=n)):
            summary = make()
            if n:
                summary.update(values[list(digits)] if values is not None else [symbols[d] for d in digits])
            row[s] = index.setdefault(read(summary), len(index))
            if len(index) > len(examples):
                examples.append(digits)
        numbers.append(row)
    return StateTable(len(symbols), list(index), numbers, examples)


def state_pair(first: Counters, second: Counters, *, zeros: bool = True) -> StatePair:
    """What separates two states, without the names of the keys. `zeros`: whether counters at 0 are part of the state.

    Keys whose counter plus offset agrees are left out if the offsets differ, keys whose counters agree if they do not.
    """
    a, b = ({key: c for key, c in state.counts if zeros or c > 0} for state in (first, second))
    keys = sorted(
        ((a.get(key), b.get(key)) for key in {*a, *b}), key=lambda pair: tuple(-1 if c is None else c for c in pair)
    )
    return StatePair(
        tuple(Key(c, d) for c, d in keys if c != d or first.offset != second.offset),
        first.offset - second.offset,
        first.total - second.total,
        first.total,
    )
