"""Exact laws of continual releases at small horizons: what an event moves, and what shows an item that must be hidden.

`event_shift` runs the proof of docs/privacy/correlated-noise.md on the shipped recurrences: given noises of a stream
it finds those that make a neighbour publish the same at every tick. The other functions are closed forms and sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet.continual.anatomy import EPOCHS, CorrelatedNoise, Doubling, Factor, Tree, epoch_of
from discreet.noise import RandomSource
from discreet.privacy.calibration.gaussian import gaussian_delta
from discreet_audit.laws import NoiseLaw, gaussian_split_delta

__all__ = [
    "above_threshold_losses",
    "choice_rho",
    "difference_tail",
    "discrete_gaussian_law",
    "doubled",
    "event_delta",
    "event_shift",
    "event_shifts",
    "item_shown",
    "noise_passes",
    "published_noise",
    "shown_by_one_event",
    "shown_in_any_epoch",
    "sparse_rho",
    "stop_is_beaten",
    "worst_norm",
]

Integers = npt.NDArray[np.int64]


class _Given:
    """A source whose next discrete Gaussians are given."""

    def __init__(self) -> None:
        self.next: Integers = np.zeros(0, np.int64)

    def discrete_gaussian(self, sigma: Any, size: int) -> Integers:
        return np.array(self.next)


def published_noise(factor: Factor, z: Sequence[int]) -> list[int]:
    """The noises N_1, N_2, ... (in lattice steps) that the shipped recurrence makes of independent z_1, z_2, ..."""
    state, given, noises = factor.start(1), _Given(), []
    for tick, value in enumerate(z, 1):
        given.next = np.array([value], np.int64)
        noises.append(int(factor.advance(state, tick, Fraction(1), cast(RandomSource, given))[0]))
    return noises


def event_shifts(factor: Factor, events: Sequence[int], z: Sequence[int]) -> Integers:
    """z - z', a column for every event: z' lets the stream with one event more, at that tick, publish what z did.

    The l2-norm of a column is what privacy rests on: it must be at most `factor.sensitivity`.
    """
    given, when = _Given(), np.asarray(events)
    source = cast(RandomSource, given)
    plain, moved = factor.start(1), factor.start(len(when))
    shifts = np.zeros((len(z), len(when)), np.int64)
    for tick, value in enumerate(z, 1):
        given.next = np.array([value], np.int64)
        wanted = factor.advance(plain, tick, Fraction(1), source) - np.where(tick >= when, factor.lattice, 0)
        # The noise of a tick is its own z and what the ticks before left: learn that with z = 0, then ask for the rest.
        given.next = np.zeros(len(when), np.int64)
        left = factor.advance({name: array.copy() for name, array in moved.items()}, tick, Fraction(1), source)
        given.next = wanted - left
        factor.advance(moved, tick, Fraction(1), source)
        shifts[tick - 1] = value - given.next
    return shifts


def event_shift(factor: Factor, event: int, z: Sequence[int]) -> Integers:
    """`event_shifts` of one event."""
    return event_shifts(factor, [event], z)[:, 0]


def worst_norm(factor: Factor, tries: int, events: Sequence[int] = ()) -> tuple[float, int]:
    """The largest l2-norm of `event_shifts` over random noises, and how many pairs of streams were compared.

    All events of a short horizon; 32 of a long one, of which the first 4096 ticks are run.
    """
    ticks = min(factor.horizon, 4096)
    when = events or sorted({*np.geomspace(1, ticks, min(ticks, 32)).round().astype(int).tolist(), ticks})
    if not events and ticks <= 64:
        when = range(1, ticks + 1)
    worst = 0.0
    for seed in range(tries):
        z = np.random.default_rng(seed).integers(-(2**30), 2**30, ticks).tolist()
        worst = max(worst, float(np.linalg.norm(event_shifts(factor, list(when), z), axis=0).max()))
    return worst, tries * len(when)


def event_delta(noise: CorrelatedNoise, norm: float, items: int, epsilon: float) -> float:
    """delta at epsilon when an event moves the noises of `items` counters by `norm` (in lattice steps) each.

    A tree moves some nodes by 1: the exact law of discrete Gaussians. A lattice has thousands of steps a count, where
    the law of the loss is that of a continuous Gaussian but for a part in a thousand, which is added.
    """
    sigma = noise.sigma
    if noise.factor.lattice == 1 and float(norm * norm).is_integer():
        law = NoiseLaw("gaussian", sigma, 1e-30)
        return gaussian_split_delta(law, 0, round(norm * norm) * items, 10**9, epsilon)
    return gaussian_delta(epsilon, float(sigma), math.sqrt(items) * norm) * (1.0 + 1e-3)


def shown_by_one_event(correlated: CorrelatedNoise, cuts: Sequence[int]) -> float:
    """sum_t P[1 + N_t >= cuts[t-1]]: bounds the chance that an item of one event is ever shown.

    The noise of a tree's tick is that of the nodes of its digits; on a lattice it is a Gaussian, see `event_delta`.
    """
    return math.fsum(noise_passes([(correlated, tick)], cut - 1) for tick, cut in enumerate(cuts, 1))


def noise_passes(parts: Sequence[tuple[CorrelatedNoise, int]], least: int) -> float:
    """P[the noises together are at least `least`], each at its tick: independent, and each rounded to whole counts."""
    squares = [(noise.factor.row_squares(t), float(noise.sigma) / noise.factor.lattice) for noise, t in parts]
    spread = math.sqrt(sum(rows * step**2 for rows, step in squares))
    rounded = sum(noise.factor.lattice > 1 for noise, _ in parts)
    if not rounded:
        return _table(spread).shown(least)
    return 0.5 * math.erfc((least - 0.5 * rounded) / (math.sqrt(2.0) * spread))  # halves are rounded up


@lru_cache(maxsize=256)
def _table(spread: float) -> NoiseLaw:
    return NoiseLaw("gaussian", spread, 1e-30)


def doubled(factor: Doubling, sigma: Fraction, tick: int) -> list[tuple[CorrelatedNoise, int]]:
    """The noises of a tick without a horizon: that of its epoch, and that of the totals of the epochs before."""
    epoch, first = epoch_of(tick)
    inside, over = factor.noises(epoch, sigma)
    return [(inside, tick - first + 1), *([(over, epoch)] if epoch else [])]


def shown_in_any_epoch(factor: Doubling, sigma: Fraction, cut: Callable[[int], int], whole: int) -> list[float]:
    """For every epoch there may be, `shown_by_one_event` of its ticks; `whole` epochs tick by tick.

    Of a later one some of its ticks are looked at: as many times the largest chance of them as it has ticks.
    """
    out = []
    for epoch in range(EPOCHS):
        first = 2**epoch
        ticks = range(first, 2 * first) if epoch < whole else {first, first + 1, first + first // 3, 2 * first - 1}
        chances = [noise_passes(doubled(factor, sigma, tick), cut(tick) - 1) for tick in ticks]
        out.append(math.fsum(chances) if epoch < whole else first * max(chances))
    return out


def difference_tail(noise: NoiseLaw, shift: int) -> float:
    """P[Z - Z' >= shift] for two independent noises, and what their tables leave out."""
    inside = math.fsum(noise.at(z) * noise.shown(z + shift) for z in range(-noise.reach, noise.reach + 1))
    return inside + 2.0 * noise.left_out


def choice_rho(tau: float) -> float:
    """The exact zCDP of one choice with odds exp(2 h/tau), when an event raises the counts of any set of items.

    Only whether the chosen item is of the set tells two neighbours apart, so the laws are p and p e/(1 - p + p e) with
    e = exp(2/tau); the largest D_alpha/alpha over p, alpha and both directions.
    """
    logit = np.linspace(-12.0, 12.0, 481)[:, None]
    order = np.array([1.0 + 2.0**e for e in range(-8, 9)])[None, :]
    ways = []
    for one, two in ((logit, logit + 2.0 / tau), (logit + 2.0 / tau, logit)):
        inside = -np.logaddexp(0.0, -one) * order + np.logaddexp(0.0, -two) * (order - 1.0)
        outside = -np.logaddexp(0.0, one) * order + np.logaddexp(0.0, two) * (order - 1.0)
        ways.append(float((np.logaddexp(inside, outside) / ((order - 1.0) * order)).max()))
    return max(ways)


def above_threshold_losses(level: NoiseLaw, query: NoiseLaw) -> tuple[float, float]:
    """The exact losses of a run of AboveThreshold over queries that one event raises by 0 or 1 each.

    By how much (in logarithms) the event makes an outcome more likely, and less likely, at most. The run stops at the
    first query with q + Z > Z_0. Of the queries before the stop many are alike, which is what forces Z_0 up; the worst
    of a range of distances, of numbers of queries, and of which of them the event raises.
    """
    reach = level.reach

    def stops(before: int, many: int, last: int) -> float:
        """P[none of `many` queries of value `before` passes, and then one of value `last` does]."""
        return math.fsum(
            level.at(z) * query.hidden(z + 1 - before) ** many * query.shown(z + 1 - last)
            for z in range(-reach, reach + 1)
        )

    more = less = 0.0
    for many in (0, 1, 30, 1000):
        for last in (-2 * query.reach // 5, -query.reach // 5, 0, query.reach // 10):
            base = stops(0, many, last)
            for up, up_last in ((1, 0), (0, 1), (1, 1)):
                moved = stops(up, many, last + up_last)
                if base > 1e-12 and moved > 1e-12:
                    more, less = max(more, math.log(moved / base)), max(less, math.log(base / moved))
    return more, less


def discrete_gaussian_law(sigma: float, reach: int) -> dict[int, float]:
    """P[z] of the discrete Gaussian on -reach, ..., reach, normalised there."""
    weights = {z: math.exp(-z * z / (2.0 * sigma * sigma)) for z in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def item_shown(tree: Tree, sigma: float, cuts: Sequence[int], count: int, reach: int) -> float:
    """The chance that an item of a constant count passes cuts[t-1] at some tick t, summed over all node noises.

    For horizons of a few ticks: every tick draws one noise, and all their values are gone through.
    """
    law = discrete_gaussian_law(sigma, reach)
    z = np.array(list(itertools.product(law, repeat=len(cuts))), np.int64)
    chance = np.prod([[law[int(value)] for value in row] for row in z], axis=1)
    state, given, shown = tree.start(len(z)), _Given(), np.zeros(len(z), bool)
    for tick, cut in enumerate(cuts, 1):
        given.next = z[:, tick - 1]
        shown |= count + tree.advance(state, tick, Fraction(1), cast(RandomSource, given)) >= cut
    return float(chance[shown].sum())


def stop_is_beaten(limit: int, shift: float, tau: float) -> float:
    """The chance that one of `limit` items, each `shift` below the stop of UnkGumb, is drawn ahead of it.

    The stop is first with odds 1 against limit exp(-2 shift/tau).
    """
    odds = limit * math.exp(-2.0 * shift / tau)
    return odds / (1.0 + odds)


def sparse_rho(k: int, tau: float, *, literal: bool = False) -> float:
    """What sparseGumb costs: (2k + 1/4)/(2 tau^2); Theorem 4 of [CO] takes a run of AboveThreshold to be 2/tau_1-DP."""
    return (2 * k + (4 if literal else 0.25)) / (2.0 * tau * tau)
