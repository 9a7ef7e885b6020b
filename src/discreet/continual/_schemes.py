"""How the counts of all items become what a tick publishes: one scheme for each family of mechanisms of [CO].

A scheme sees the running counts and the tick's counts of the items known to it, by position. It returns the positions
it publishes and their noisy counts. `rho` and `delta` are what it may spend over the whole horizon.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet.continual import one_shot
from discreet.continual._doubling import Doubling, epoch_of
from discreet.continual._factors import Factor, highest_ended, levels
from discreet.continual.one_shot import Published
from discreet.errors import CorruptStateError
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.releases.error_model import Noise

Rank = Callable[[], Integers]


class Scheme(abc.ABC):
    """State and noise of one mechanism."""

    threshold: int | None = None
    complete: bool = True  # whether a published count lacks nothing but noise
    cut_alone: bool = False  # whether an item is listed exactly if its noisy count of this tick passes the threshold

    @abc.abstractmethod
    def step(self, total: Integers, added: Integers, tick: int, rank: Rank, source: RandomSource) -> Published: ...

    @abc.abstractmethod
    def renew(self, tick: int, source: RandomSource) -> None:
        """Go on after `tick` as a second run, whose noise has the law of the first run's and shares none with it."""

    @abc.abstractmethod
    def error(self, tick: int) -> float:
        """The standard deviation of a published count."""

    def noise(self, tick: int, draws: int) -> Noise:
        """The law of the noise on a published count, for its bounds."""
        return Noise("gaussian", Fraction(max(self.error(tick), 1e-3)), draws)

    def tick_noises(self, tick: int) -> tuple[tuple[str, TickNoise, int], ...] | None:
        """What the noise on a published count is the sum of (`Factor.tick_noises`); None where that is not known."""
        return None

    @abc.abstractmethod
    def arrays(self) -> dict[str, Integers]: ...

    @abc.abstractmethod
    def load(self, arrays: dict[str, Integers], items: int, tick: int) -> None: ...


def _widened(array: Integers, size: int) -> Integers:
    """The array with zeros up to `size` in its last axis."""
    return np.concatenate([array, np.zeros((*array.shape[:-1], size - array.shape[-1]), np.int64)], axis=-1)


class Factored(Scheme):
    """Known items: a counter each (Algorithm 2 of [CO], with any factor)."""

    def __init__(self, factor: Factor, rho: float, most: int, size: int, heaviest: int = 1, changes: int = 1) -> None:
        # An event moves `most` counters by up to `heaviest` each: as much as most heaviest^2 counters by 1.
        self.factor, self.sigma = factor, factor.sigma(rho, most * heaviest**2, changes)
        self.state = factor.start(size)

    def step(self, total: Integers, added: Integers, tick: int, rank: Rank, source: RandomSource) -> Published:
        noise = self.factor.advance(self.state, tick, self.sigma, source)
        return np.arange(len(total)), total + self.factor.to_counts(noise)

    def error(self, tick: int) -> float:
        return self.factor.error(tick, self.sigma)

    def tick_noises(self, tick: int) -> tuple[tuple[str, TickNoise, int], ...]:
        return self.factor.tick_noises(tick, self.sigma)

    def renew(self, tick: int, source: RandomSource) -> None:
        self.state = self.factor.join(len(self.factor.latest(self.state)), tick, self.sigma, source)

    def arrays(self) -> dict[str, Integers]:
        return dict(self.state)

    def load(self, arrays: dict[str, Integers], items: int, tick: int) -> None:
        self.state = self.factor.loaded(arrays, items, tick)


class Hidden(Factored):
    """Items as they appear: a counter each, and a cut that hides those that one event brought (Algorithm 7 of [CO]).

    An item gets, when it first appears, noise with the law of noise that ran from the start. So for two neighbours the
    noises may be thought to run for all items; what only one of them may show are items of a count of 1 (of the
    heaviest weight), at most
    `most` of them, at every tick. With the tree this is UnkBase; other factors cut by the tick's own, smaller variance.
    """

    def __init__(
        self, factor: Factor, rho: float, delta: float, most: int, keep: bool, heaviest: int = 1, changes: int = 1
    ) -> None:
        super().__init__(factor, rho, most, 0, heaviest, changes)
        self._heaviest = heaviest
        if not isinstance(factor, Doubling):  # which sees to it for its parts
            self.sigma = max(self.sigma, Fraction(1))
        self._delta = delta / most
        self._keep = keep
        self.cut_alone = not keep
        self.shown = np.zeros(0, np.int64)

    def cut(self, tick: int) -> int:
        """Published iff count + noise >= this."""
        return self._heaviest + self.factor.hiding_shift(tick, self.sigma, self._delta * self.factor.tick_share(tick))

    def step(self, total: Integers, added: Integers, tick: int, rank: Rank, source: RandomSource) -> Published:
        fresh = len(total) - len(self.shown)
        if fresh:
            joined = self.factor.join(fresh, tick - 1, self.sigma, source)
            self.state = {
                name: np.concatenate([old, joined[name]], axis=0 if name == "past" else -1)
                for name, old in self.state.items()
            }
            self.shown = _widened(self.shown, len(total))
        noisy = total + self.factor.to_counts(self.factor.advance(self.state, tick, self.sigma, source))
        self.threshold = self.cut(tick)
        visible = noisy >= self.threshold
        if self._keep:
            visible |= self.shown > 0
            self.shown = visible.astype(np.int64)
        there = np.flatnonzero(visible)
        return there, noisy[there]

    def arrays(self) -> dict[str, Integers]:
        return {**self.state, "shown": self.shown}

    def load(self, arrays: dict[str, Integers], items: int, tick: int) -> None:
        super().load(arrays, items, tick)
        if arrays["shown"].shape != (items,):
            raise CorruptStateError("the state has arrays of another size")
        self.shown = arrays["shown"]


class Meta(Scheme):
    """Algorithm 3 of [CO]: a tree over ticks. Each node is released once, by a one-shot mechanism; they add up."""

    def __init__(self, horizon: int, base: int, release: Callable[[Integers, Rank, RandomSource], Published],
                 sigma: float, complete: bool, laplace: Fraction | None = None) -> None:  # fmt: skip
        self.base, self.levels = base, levels(horizon, base)
        self.laplace = laplace  # the scale of a node's noise, where it is that
        self.release, self._sigma, self.complete = release, sigma, complete
        self.open = np.zeros((self.levels, 0), np.int64)  # the counts of the nodes that are not complete
        self.sums = np.zeros((self.levels, 0), np.int64)  # what was published of the nodes in use, level by level
        self.seen = np.zeros((self.levels, 0), np.int64)

    def step(self, total: Integers, added: Integers, tick: int, rank: Rank, source: RandomSource) -> Published:
        if self.open.shape[1] < len(total):
            self.open, self.sums, self.seen = (_widened(a, len(total)) for a in (self.open, self.sums, self.seen))
        self.open += added
        level = highest_ended(tick, self.base, self.levels)
        positions, noisy = self.release(self.open[level], rank, source)
        self.open[: level + 1] = 0
        self.sums[:level] = 0
        self.seen[:level] = 0
        self.sums[level, positions] += noisy
        self.seen[level, positions] = 1
        there = np.flatnonzero(self.seen.any(axis=0))
        return there, self.sums[:, there].sum(axis=0)

    def nodes(self, tick: int) -> int:
        """How many nodes a tick adds up: the sum of its digits."""
        nodes = 0
        while tick:
            tick, digit = divmod(tick, self.base)
            nodes += digit
        return nodes

    def error(self, tick: int) -> float:
        return math.sqrt(self.nodes(tick)) * self._sigma

    def noise(self, tick: int, draws: int) -> Noise:
        if self.laplace is None:
            return super().noise(tick, draws)
        return Noise("laplace", self.laplace, draws, terms=self.nodes(tick))

    def renew(self, tick: int, source: RandomSource) -> None:
        """Nothing: the noise of a node is drawn when it is released, and what was released is public."""

    def arrays(self) -> dict[str, Integers]:
        return {"open": self.open, "sums": self.sums, "seen": self.seen}

    def load(self, arrays: dict[str, Integers], items: int, tick: int) -> None:
        for name in ("open", "sums", "seen"):
            if arrays[name].ndim != 2 or len(arrays[name]) != self.levels or arrays[name].shape[1] > items:
                raise CorruptStateError("the state has arrays of another size")
            setattr(self, name, arrays[name])


class Restarted(Scheme):
    """Without a horizon: epochs of 1, 2, 4, ... ticks with a tree of one-shot releases each; their last ticks add up.

    An event is in the nodes of one epoch, so that each epoch may spend all there is. What an epoch published at its
    last tick is public: adding it to what later ones publish costs nothing but its noise.
    """

    def __init__(self, make: Callable[[int], Meta]) -> None:
        self.make = make
        self.inner = make(1)
        self.carried = np.zeros((2, 0), np.int64)  # the counts that earlier epochs published, and of which items
        self.complete = self.inner.complete

    def step(self, total: Integers, added: Integers, tick: int, rank: Rank, source: RandomSource) -> Published:
        epoch, first = epoch_of(tick)
        if tick == first and epoch:
            self.carried = _widened(self.carried, self.inner.sums.shape[1])
            self.carried[0] += self.inner.sums.sum(axis=0)
            self.carried[1] |= self.inner.seen.any(axis=0)
            self.inner = self.make(first)
        where, noisy = self.inner.step(total, added, tick - first + 1, rank, source)
        counts, seen = _widened(self.carried, len(total))
        counts[where] += noisy
        seen[where] = 1
        there = np.flatnonzero(seen)
        return there, counts[there]

    def _parts(self, tick: int) -> list[tuple[Meta, int]]:
        """The trees in use, each with its tick: all earlier epochs at their last."""
        epoch, first = epoch_of(tick)
        return [*((self.make(2**e), 2**e) for e in range(epoch)), (self.make(first), tick - first + 1)]

    def error(self, tick: int) -> float:
        return math.sqrt(sum(part.error(inside) ** 2 for part, inside in self._parts(tick)))

    def noise(self, tick: int, draws: int) -> Noise:
        if self.inner.laplace is None:
            return super().noise(tick, draws)
        # As many of the widest: no less than there are.
        parts = self._parts(tick)
        widest = max(part.laplace or Fraction(0) for part, _ in parts)
        return Noise("laplace", widest, draws, terms=sum(part.nodes(inside) for part, inside in parts))

    def renew(self, tick: int, source: RandomSource) -> None:
        """Nothing: as for `Meta`."""

    def arrays(self) -> dict[str, Integers]:
        return {**self.inner.arrays(), "carried": self.carried}

    def load(self, arrays: dict[str, Integers], items: int, tick: int) -> None:
        self.inner = self.make(epoch_of(max(tick, 1))[1])
        self.inner.load(arrays, items, tick)
        self.carried = arrays["carried"]
        if self.carried.ndim != 2 or len(self.carried) != 2 or self.carried.shape[1] > items:
            raise CorruptStateError("the state has arrays of another size")


class Sparse(Scheme):
    """Algorithm 4 of [CO], sparseGumb: the top k, chosen again at most `switches` times, with a counter each.

    s + 1 choices of k items, k/(2 tau^2); (s+1) k counters, k/(2 tau^2); s runs of AboveThreshold with noises Lap(2
    tau_1), Lap(4 tau_1), tau_1^2 = s tau^2, 1/(8 tau_1^2)-zCDP each. Together (2k + 1/4)/(2 tau^2), where the paper
    counts 4 in place of the 1/4. Argument: docs/privacy/continual.md, "AboveThreshold over counts that only rise".

    The margin of None is 4 tau_1 ln(d T), for the `places` d T that a count is compared at: what the paper's analysis
    of its error asks for. It is public, and nothing of the privacy rests on it.
    """

    def __init__(self, make: Callable[[float], tuple[Factor, float]], rho: float, k: int, switches: int,
                 margin: int | None, places: int) -> None:  # fmt: skip
        self._k = k
        tau_squared = (2 * k + (0.25 if switches else 0)) / (2.0 * rho) * (1.0 + 1e-12)
        self._tau1 = Fraction(math.sqrt(max(switches, 1) * tau_squared) * (1.0 + 1e-12))
        self._tau2 = Fraction(math.sqrt((switches + 1) * tau_squared) * (1.0 + 1e-12))
        # Noise alone then starts a new choice with a probability of at most about one half over all ticks and items:
        # P[Lap(4 tau_1) > 4 tau_1 ln(d T)] = 1/(2 d T) each.
        wanted = math.ceil(4.0 * float(self._tau1) * math.log(max(places, 2)))
        self.margin = wanted if margin is None else margin
        self.factor, each = make(float(1 / (2 * self._tau2 * self._tau2)))
        self.sigma = self.factor.sigma(each)
        self.top = np.zeros(0, np.int64)
        self.left = np.array([switches + 1], np.int64)  # choices
        self.level_noise = np.zeros(1, np.int64)
        self.state = self.factor.start(k)

    def _choose(self, total: Integers, tick: int, source: RandomSource) -> None:
        self.top = one_shot.select_gumbel(total, self._k, self._tau2, source)
        self.state = self.factor.join(len(self.top), tick, self.sigma, source)
        self.level_noise = source.discrete_laplace(2 * self._tau1, 1)
        self.left = self.left - 1

    def step(self, total: Integers, added: Integers, tick: int, rank: Rank, source: RandomSource) -> Published:
        if tick == 1:
            self._choose(total, 1, source)
            return self.top, self._noisy(total)
        self.factor.advance(self.state, tick, self.sigma, source)
        if self.left[0] > 0:
            others = np.delete(total, self.top)
            level = int(self._noisy(total).min()) + self.margin + int(self.level_noise[0])
            if len(others) and (others + source.discrete_laplace(4 * self._tau1, len(others)) > level).any():
                self._choose(total, tick, source)
        return self.top, self._noisy(total)

    def renew(self, tick: int, source: RandomSource) -> None:
        if tick:
            self.state = self.factor.join(len(self.top), tick, self.sigma, source)
            self.level_noise = source.discrete_laplace(2 * self._tau1, 1)

    def _noisy(self, total: Integers) -> Integers:
        return np.asarray(total[self.top] + self.factor.to_counts(self.factor.latest(self.state)))

    def error(self, tick: int) -> float:
        return self.factor.error(tick, self.sigma)

    def arrays(self) -> dict[str, Integers]:
        return {**self.state, "top": self.top, "left": self.left, "level_noise": self.level_noise}

    def load(self, arrays: dict[str, Integers], items: int, tick: int) -> None:
        self.state = self.factor.loaded(arrays, len(arrays["top"]) or self._k, tick)
        self.top, self.left, self.level_noise = arrays["top"], arrays["left"], arrays["level_noise"]
        if self.top.size and not (self.top.min() >= 0 and self.top.max() < items):
            raise CorruptStateError("the state has positions outside its items")
