"""Output laws of releases of counters in closed form, for thresholds and noise of any size.

`exact` writes out the law of a few counters by running the code; here the same laws are sums over tables of noise,
which reaches realistic deltas and capacities.

A release of counters adds integer noise to every stored counter and shows those at or above a cut. Up to the names of
the keys a pair of neighbouring states is then a few pairs of counters (None: not stored, or never shown), and the
divergence at e^epsilon of their output laws is a finite sum once the noise is cut where almost nothing is left. What
is left out is added to the result, and so is a bound of the rounding, so that a delta given here is not understated.

Nothing here knows a mechanism: thresholds and scales are handed in, read from the mechanism that is audited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_ROUNDING = 1e-12  # relative; what a sum of a million products of doubles can be off by, with room
_MOST_OUTCOMES = 1 << 18


class NoiseLaw:
    """Integer noise as a table: P[Z = z] for |z| <= reach, and tails summed from the far end.

    Args:
        law: "laplace" (P[z] proportional to exp(-|z|/scale)) or "gaussian" (exp(-z^2/(2 scale^2))).
        scale: The scale or sigma, as the mechanism states it.
        left_out: The mass beyond the table is at most this.
    """

    def __init__(self, law: str, scale: Fraction | float, left_out: float = 1e-18) -> None:
        s, depth = float(scale), -math.log(left_out)
        self.law, self.scale = law, s
        if law == "laplace":
            self.reach = math.ceil(s * (depth + 1.0)) + 1
            rate = float(1 / Fraction(scale))
            norm = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
            log_mass = norm - rate * np.abs(np.arange(-self.reach, self.reach + 1, dtype=np.float64))
        else:
            self.reach = math.ceil(s * math.sqrt(2.0 * depth + 2.0)) + 2
            z = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
            weight = np.exp(-(z * z) / (2.0 * s * s))
            log_mass = -(z * z) / (2.0 * s * s) - math.log(math.fsum(weight))
        self.mass: Array = np.exp(log_mass)
        self.left_out = left_out
        self._tail: Array = np.cumsum(self.mass[::-1])[::-1]

    def at(self, z: int) -> float:
        """P[Z = z]; 0 beyond the table."""
        return float(self.mass[z + self.reach]) if abs(z) <= self.reach else 0.0

    def shown(self, cut: int) -> float:
        """P[Z >= cut], accurate where it is small."""
        if cut > self.reach:
            return 0.0
        return min(1.0, float(self._tail[max(cut, -self.reach) + self.reach]))

    def hidden(self, cut: int) -> float:
        """P[Z < cut], accurate where it is small (the law is symmetric)."""
        return self.shown(1 - cut)

    def log_hidden(self, cuts: npt.NDArray[np.int64]) -> Array:
        """log P[Z < cut] for an array of cuts."""
        place = np.clip(cuts, -self.reach, self.reach + 1) + self.reach
        shown = np.where(cuts > self.reach, 0.0, self._tail[np.minimum(place, 2 * self.reach)])
        low = np.log(np.maximum(self._tail[np.clip(1 - cuts, -self.reach, self.reach) + self.reach], 1e-300))
        # Below the middle what is hidden is the tail of the other side.
        return np.asarray(np.where(cuts > 0, np.log1p(-np.minimum(shown, 0.75)), low))

    def from_cut(self, base: int, cut: int, count: int) -> Array:
        """P[base + Z = v] for v = cut, ..., cut + count - 1."""
        out = np.zeros(count)
        first, last = base - self.reach, base + self.reach
        low, high = max(cut, first), min(cut + count - 1, last)
        if low <= high:
            out[low - cut : high - cut + 1] = self.mass[low - first : high - first + 1]
        return out


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One key of a pair of states: its value in the first and in the second; None where it can never be shown."""

    first: int | None
    second: int | None
    times: int = 1

    @property
    def swapped(self) -> Key:
        """The same key with the states exchanged."""
        return Key(self.second, self.first, self.times)

    def moved(self, by: int) -> Key:
        """The same key with both values raised, where there are any."""
        first, second = (None if value is None else value + by for value in (self.first, self.second))
        return Key(first, second, self.times)


@dataclass(frozen=True)
class StatePair:
    """All that a release of counters can tell two neighbouring states apart by.

    Args:
        keys: Keys whose values differ, or that one of the states does not hold. `times` counts equal ones.
        offset: How many more decrements the first state has seen.
        length: By how much the first stream is longer.
        total: The length of the first stream, where it matters.
    """

    keys: tuple[Key, ...]
    offset: int = 0
    length: int = 1
    total: int = field(default=0)

    @property
    def swapped(self) -> StatePair:
        """The pair in the other direction."""
        return StatePair(tuple(key.swapped for key in self.keys), -self.offset, -self.length, self.total - self.length)


def _of_key(key: Key, noise: NoiseLaw, cuts: tuple[int, int], least: int) -> list[tuple[Array, Array]]:
    """Masses of the outcomes of a key in the two states, outcome by outcome, for each of its times."""
    values = [value if value or not least else None for value in (key.first, key.second)]
    alone, lowest = None in values, min(cuts)
    count = max(*(value or 0 for value in values), least) + noise.reach - lowest + 1
    laws = []
    for value, cut in zip(values, cuts, strict=True):
        if value is None:
            laws.append(np.array([1.0, 0.0]))
            continue
        chance, raised = (value / least, least) if least and value < least else (1.0, value)
        hidden = (1.0 - chance) + chance * noise.hidden(cut - raised)
        if not alone:
            masses = chance * noise.from_cut(raised, lowest, max(count, 0))
            masses[: cut - lowest] = 0.0
            laws.append(np.concatenate([[hidden], masses]))
            continue
        # Shown keys of one state have probability 0 in the other: all shown values are one outcome.
        shown = chance * noise.shown(cut - raised)
        if key.times == 1:
            laws.append(np.array([hidden, shown]))
        else:
            log_hidden = key.times * math.log1p(-shown) if shown < 1.0 else -math.inf
            laws.append(np.array([math.exp(log_hidden), -math.expm1(log_hidden)]))
    return [(laws[0], laws[1])] * (1 if alone else key.times)


def merge_ratios(first: Array, second: Array) -> tuple[Array, Array]:
    """Outcomes of one likelihood ratio are one outcome: no divergence changes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.round(np.log(first) - np.log(second), 10)
    _, group = np.unique(ratio, return_inverse=True)
    return np.bincount(group, first).astype(np.float64), np.bincount(group, second).astype(np.float64)


def divergence(
    keys: Sequence[Key],
    noise: NoiseLaw,
    cuts: tuple[int, int],
    factor: float,
    start: tuple[float, float] = (1.0, 1.0),
    least: int = 0,
) -> float:
    """sum over outcomes of (P - factor Q)^+ when the keys are independent; `start` multiplies P and Q."""
    return independent([law for key in keys for law in _of_key(key, noise, cuts, least)], factor, start)


def independent(laws: Sequence[tuple[Array, Array]], factor: float, start: tuple[float, float] = (1.0, 1.0)) -> float:
    """The divergence of products of pairs of laws, each outcome by outcome."""
    first, second = np.array([start[0]]), np.array([start[1]])
    for one, two in laws:
        if one.size > 2 and first.size * one.size > _MOST_OUTCOMES:
            (first, second), (one, two) = merge_ratios(first, second), merge_ratios(one, two)
        first, second = np.outer(first, one).ravel(), np.outer(second, two).ravel()
    return float(np.maximum(first - factor * second, 0.0).sum())


def threshold_delta(
    pair: StatePair,
    noise: NoiseLaw,
    threshold: int | tuple[int, int],
    epsilon: float,
    *,
    shared: bool = False,
    least: int = 0,
) -> float:
    """The hockey-stick divergence at e^epsilon of counters with noise behind a cut; in this direction only.

    Args:
        pair: The two states; keys with equal laws may be left out.
        noise: The law of every key's noise, and of the shared one.
        threshold: Shown iff the noisy value is at least this; two numbers if the states have different cuts.
        epsilon: Where the divergence is taken.
        shared: The offset release: a0 = alpha + Z_0 is published too, values are c + alpha + Z, and the cut is a0 plus
            the threshold. The law of private Misra-Gries, which adds one hidden noise to all counters, is a function
            of it (c + Z - Z_0 = v - a0 for the keys shown), so this is also a bound for that one.
        least: If positive, values are entries that are rounded first: 0 < y < least becomes `least` with probability
            y/least, else 0. An entry of 0 is never shown.
    """
    factor = math.exp(epsilon)
    cuts = threshold if isinstance(threshold, tuple) else (threshold, threshold)
    noises = sum(key.times for key in pair.keys) + shared
    if not shared:
        total = divergence(pair.keys, noise, cuts, factor, least=least)
    else:
        keys = tuple(
            Key(None if key.first is None else key.first + pair.offset, key.second, key.times) for key in pair.keys
        )
        keys = tuple(key for key in keys if key.first != key.second)
        total = 0.0
        for a0 in range(min(0, pair.offset) - noise.reach, max(0, pair.offset) + noise.reach + 1):
            start = (noise.at(a0 - pair.offset), noise.at(a0))
            total += divergence(keys, noise, (a0 + cuts[0], a0 + cuts[1]), factor, start)
    return min(1.0, total * (1.0 + _ROUNDING) + 2.0 * noises * noise.left_out)


def normal_tail(x: float) -> float:
    """P[N(0, 1) >= x]."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """delta at epsilon of N(0, 1) against N(mu, 1), for any epsilon."""
    if mu == 0.0:
        return max(0.0, -math.expm1(epsilon))
    outside = math.exp(min(epsilon, 700.0)) * normal_tail(epsilon / mu + mu / 2.0)
    return normal_tail(epsilon / mu - mu / 2.0) - outside


@lru_cache(maxsize=64)
def _sum_law(sigma: float, draws: int) -> Array:
    """P[S >= s] for s = -reach, ..., reach + 1, where S is the sum of this many discrete Gaussians.

    The laws are convolved as they are: all terms are positive, so that tails are as accurate as the middle. 16 standard
    deviations are kept on either side; exp(-128) of the mass lies beyond.
    """
    width = math.ceil(16.0 * sigma) + 2
    weight = np.exp(-(np.arange(-width, width + 1.0) ** 2) / (2.0 * sigma * sigma))
    power, law, doubled, left = weight / math.fsum(weight), np.ones(1), 1, draws
    while left:
        if left % 2:
            law = np.convolve(law, power)
        left, doubled = left // 2, 2 * doubled
        if left:
            power = np.convolve(power, power)
            beyond = max(0, len(power) // 2 - math.ceil(16.0 * sigma * math.sqrt(doubled)) - 2)
            power = power[beyond : len(power) - beyond]
    return np.append(np.cumsum(law[::-1])[::-1], 0.0)


def _changed(noise: NoiseLaw, common: int, x: Array, height: int = 1) -> Array:
    """D_j(x), the divergence at e^x of j counters that all differ by h.

    The loss of outcomes z is sum (2 z_i h + h^2)/(2 sigma^2), a function of their sum S, so P[S = s] e^-loss =
    P[S = s + j h] and D_j(x) = P[S >= m] - e^x P[S >= m + j h] with m the first s of loss above x.
    """
    if common == 0:
        return np.maximum(0.0, -np.expm1(np.minimum(x, 0.0)))
    tail, moved = _sum_law(noise.scale, common), common * height
    reach = len(tail) // 2 - 1

    def shown(m: Array) -> Array:
        return np.asarray(tail[np.clip(m, -reach, reach + 1).astype(np.int64) + reach])

    m = np.floor(x * noise.scale * noise.scale / height - moved / 2.0) + 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        found = shown(m) - np.exp(x) * shown(m + moved)
    return np.where(np.isfinite(found), np.maximum(found, 0.0), 0.0)


def gaussian_split_delta(noise: NoiseLaw, isolated: int, common: int, threshold: int, epsilon: float) -> float:
    """delta of Gaussian noise when `common` counters are 1 higher in one state and `isolated` keys of count 1 are only
    there: the larger of the two directions.

    With F the chance that an isolated key is hidden, they are 1 - F^i + F^i D_j(epsilon - i log F) and
    D_j(epsilon + i log F).
    """
    shown = noise.shown(threshold - 1)
    log_hidden = isolated * math.log1p(-shown) if isolated else 0.0
    both = _changed(noise, common, np.array([epsilon - log_hidden, epsilon + log_hidden]))
    forward = -math.expm1(log_hidden) + math.exp(log_hidden) * float(both[0])
    total = max(forward, float(both[1]))
    return min(1.0, total * (1.0 + _ROUNDING) + isolated * noise.left_out)


def shared_split_delta(
    noise: NoiseLaw, shared: NoiseLaw, isolated: int, common: int, threshold: int, epsilon: float, steps: int = 1
) -> float:
    """The same when all counters share one more noise, both noises are in half counts, and the states are some steps
    apart: the largest over all numbers of steps up and down.

    The states are compared at values n and n + b of the shared noise, as if it were seen: 2 (c - c') - b is left on
    every common counter, at most u + d for b = u - d and 2 max(u, d) for b = 0. Both are bounds, and the smaller one
    counts. Keys that one state alone holds have a count of u in the first, d in the second. Without common keys it is
    the chance that one is shown.
    """
    n = np.arange(-shared.reach, shared.reach + 1)
    worst = 0.0
    for up in range(steps + 1):
        down = steps - up
        mine = isolated * noise.log_hidden(2 * (threshold - up) - n) if up else np.zeros(len(n))
        bounds = [float((shared.mass * -np.expm1(mine)).sum())] if common == 0 else []
        for b, left in ((up - down, steps), (0, 2 * max(up, down))) if common else ():
            yours = isolated * noise.log_hidden(2 * (threshold - down) - (n + b)) if down else np.zeros(len(n))
            x = epsilon - (2.0 * n * b + b * b) / (2.0 * shared.scale**2) - mine + yours
            with np.errstate(under="ignore"):
                terms = -np.expm1(mine) + np.exp(mine) * _changed(noise, common, x, left)
            bounds.append(float((shared.mass * terms).sum()))
        worst = max(worst, min(bounds))
    return min(1.0, worst * (1.0 + _ROUNDING) + isolated * noise.left_out + 2.0 * shared.left_out)


def noise_sum_below(noise: NoiseLaw, draws: int, level: int) -> float:
    """P[Z_1 + ... + Z_draws < level], to about 1e-15 absolutely: the power of the law by FFT."""
    deviation = math.sqrt(draws * float((noise.mass * np.arange(-noise.reach, noise.reach + 1.0) ** 2).sum()))
    reach = min(draws * noise.reach, math.ceil(12.0 * deviation) + abs(level)) + 1
    size = 1 << (2 * (reach + noise.reach) + 1).bit_length()
    padded = np.zeros(size)
    padded[np.arange(-noise.reach, noise.reach + 1) % size] = noise.mass
    power = np.fft.irfft(np.fft.rfft(padded) ** draws, size)
    return float(power[np.arange(-reach, level) % size].sum())


def pure_loss(pair: StatePair, scale: Fraction) -> float:
    """epsilon of Laplace noise on every item of a universe: the l1-distance of the values over the scale, exactly."""
    distance = sum(abs((key.first or 0) - (key.second or 0)) * key.times for key in pair.keys)
    return float(distance / Fraction(scale))


def squared_distance(pair: StatePair) -> int:
    """The square of the l2-distance of the values."""
    return sum(((key.first or 0) - (key.second or 0)) ** 2 * key.times for key in pair.keys)


def group_delta(delta: float, epsilon: float, items: int) -> float:
    """What `items` steps of (epsilon/items, delta) make at epsilon: delta times sum of exp(i epsilon/items)."""
    return delta * math.fsum(math.exp(i * epsilon / items) for i in range(items))
