"""Exact laws of continual releases at small horizons: what an event moves, and what shows an item that must be hidden.

`event_shift` runs the proof of docs/privacy/correlated-noise.md on the shipped recurrences: given noises of a stream
it finds those that make a neighbour publish the same at every tick. The other functions are closed forms and sums.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet.continual._factors import Factor, Tree
from discreet.noise import RandomSource

__all__ = ["discrete_gaussian_law", "event_shift", "item_shown", "published_noise", "sparse_rho", "stop_is_beaten"]

Integers = npt.NDArray[np.int64]


class _Written:
    """A source whose discrete Gaussians were written beforehand."""

    def __init__(self, values: list[int]) -> None:
        self._values = list(values)

    def discrete_gaussian(self, sigma: Any, size: int) -> Integers:
        taken, self._values = self._values[:size], self._values[size:]
        return np.array(taken, np.int64)


def published_noise(factor: Factor, z: list[int]) -> list[int]:
    """The noises N_1, N_2, ... (in lattice steps) that the shipped recurrence makes of independent z_1, z_2, ..."""
    state, source = factor.start(1), cast(RandomSource, _Written(z))
    return [int(factor.advance(state, tick, Fraction(1), source)[0]) for tick in range(1, len(z) + 1)]


def event_shift(factor: Factor, event: int, z: list[int]) -> Integers:
    """z - z', where z' lets the stream with one event more, at tick `event`, publish what z did without it.

    Its l2-norm is what privacy rests on: it must be at most `factor.sensitivity`.
    """
    wanted = published_noise(factor, z)
    other: list[int] = []
    for tick, noise in enumerate(wanted, 1):
        needed = noise - (factor.lattice if tick >= event else 0)
        other.append(needed - published_noise(factor, [*other, 0])[-1])
    return np.array(z, np.int64) - np.array(other, np.int64)


def discrete_gaussian_law(sigma: float, reach: int) -> dict[int, float]:
    """P[z] of the discrete Gaussian on -reach, ..., reach, normalised there."""
    weights = {z: math.exp(-z * z / (2.0 * sigma * sigma)) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def item_shown(tree: Tree, sigma: float, cuts: list[int], count: int, reach: int) -> float:
    """The chance that an item of a constant count passes cuts[t-1] at some tick t, summed over all node noises.

    For horizons of a few ticks: every tick draws one noise, and all their values are gone through.
    """
    law = discrete_gaussian_law(sigma, reach)
    shown = 0.0
    for z in itertools.product(law, repeat=len(cuts)):
        if any(count + noise >= cut for noise, cut in zip(published_noise(tree, list(z)), cuts, strict=True)):
            shown += math.prod(law[value] for value in z)
    return shown


def stop_is_beaten(limit: int, shift: int, tau: float) -> float:
    """The chance that one of `limit` items, each `shift` below the stop of UnkGumb, is drawn ahead of it.

    The stop is first with odds 1 against limit exp(-2 shift/tau).
    """
    odds = limit * math.exp(-2.0 * shift / tau)
    return odds / (1.0 + odds)


def sparse_rho(k: int, tau: float, *, literal: bool = False) -> float:
    """What sparseGumb costs: (2k + 1)/(2 tau^2); Theorem 4 of [CO] counts each run of AboveThreshold as 2/tau_1-DP."""
    return (2 * k + (4 if literal else 1)) / (2.0 * tau * tau)
