"""Heavy hitters from linear sketches: noise on every cell, and a cut above all that may have gone untracked."""

from __future__ import annotations

import abc
import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field, replace
from discreet.central._base import Drawn, RestsOnLength
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.calibration.collisions import Collisions
from discreet.privacy.calibration.tails import smallest
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import CountMin, CountSketch, LinearSketch, Summary

if TYPE_CHECKING:
    from typing_extensions import Self

Cells = npt.NDArray[np.int64]


def largest_untracked(n: int, k: int, g: int, rule: str) -> int:
    """The largest estimate of an item that is not among the k tracked ones when no estimate errs by more than g.

    When x was last left out, with the estimate C it had when it last arrived, k other items had estimates of at least
    C, so frequencies of at least C - g, and k (C - g) + f <= n. CountMin has C >= f, CountSketch C >= f - g: solved for
    f, f <= (n + k g)/(k+1) or (n + 2 k g)/(k+1). At the end x is estimated at no more than f + g.
    """
    errors = 2 if rule == "median" else 1
    return (n + errors * k * g) // (k + 1) + g


@dataclass(frozen=True)
class DeltaParts:
    """Where delta goes: Gaussian noise, the hashing (of each of `_streams`), the cells' noise, the length's."""

    gaussian: float
    hashing: float
    cells: float
    length: float

    @classmethod
    def of(cls, epsilon: float, delta: float, noise: str, noisy_length: bool, streams: int) -> DeltaParts:
        """delta >= gaussian + streams hashing + (1 + e^epsilon)(cells + length)."""
        gaussian = delta / 2.0 if noise == "gaussian" else 0.0
        rest = (delta - gaussian) * (1.0 - 1e-12)
        failing = rest / 2.0 * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
        if failing == 0.0:
            raise ParameterError(f"delta={delta:g} is too small for heavy hitters at epsilon={epsilon:g}")
        length = failing / 2.0 if noisy_length else 0.0
        return cls(gaussian, rest / 2.0 / streams, failing - length, length)


@dataclass(frozen=True)
class _SketchHeavyHitters(RestsOnLength):
    """What both sketches share; see the two classes below."""

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    noise: str = "gaussian"
    width: int = field(kw_only=True)
    depth: int = field(kw_only=True)
    stream_length: int | str = field(default="noisy", kw_only=True)
    max_key_bytes: int = field(default=4096, kw_only=True)

    rule: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("width", "depth", "max_key_bytes"):
            whole_number(name, getattr(self, name))
        if self.noise not in ("laplace", "gaussian"):
            raise ParameterError(f"noise must be 'laplace' or 'gaussian', not {self.noise!r}")

    @classmethod
    def for_summary(cls, summary: Any, budget: Budget, **options: Any) -> Self:
        """The mechanism for a sketch of this shape; only public parameters of it are read."""
        if not isinstance(summary, LinearSketch) or not isinstance(summary, cls.accepts):
            raise IncompatibleSummaryError(f"{cls.name} takes {cls.accepts[0].__name__}, not {type(summary).__name__}")
        if summary.tracked == 0:
            raise IncompatibleSummaryError(f"{cls.name} needs a sketch that tracks candidates: make it with tracked=k")
        shape = {name: getattr(summary, name) for name in ("width", "depth", "max_key_bytes")}
        return cls(budget, summary.tracked, **{**shape, **options})

    def empty_summary(self, max_key_bytes: int) -> Any:
        kind: Any = self.accepts[0]
        return kind(self.width, self.depth, tracked=self.capacity, max_key_bytes=self.max_key_bytes)

    @property
    def _streams(self) -> int:
        """For how many of two neighbours the hashing must be good on its own account.

        What collides with an item in the shorter stream is part of what does in the longer. Where a public length fixes
        one g for both, a seed that is good for the longer is good for both; a noisy length gives the shorter its own g.
        """
        return 2 if self.stream_length == "noisy" else 1

    @cached_property
    def deltas(self) -> DeltaParts:
        return DeltaParts.of(*self.spends, self.noise, self.stream_length == "noisy", self._streams)

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, m d/epsilon exactly, or the sigma of the Gaussian one."""
        m, epsilon = self.most_events, self._epsilons[0]
        if self.noise == "laplace":
            return m * self.depth / epsilon
        return Fraction(cells_sigma(float(epsilon), self.deltas.gaussian, self.depth, m))

    @cached_property
    def _margin(self) -> int:
        """The smallest t that no noise of a cell reaches, in the direction that counts, except with its part of
        delta."""
        sides = 2 if self.rule == "median" else 1
        return unreached(Noise(self.noise, self.scale), sides * self.depth * self.width, self.deltas.cells)

    def _collisions(self, length: int, slack: float = 0.0) -> Collisions:
        """The hashing of one stream of at most `length` events, for its own items and its neighbour's.

        A public length bounds the longer of the two, which has the items of both.
        """
        items = length + (self.most_events if self.stream_length == "noisy" else 0)
        return Collisions(self.rule, self.width, self.depth, length, items, self.max_key_bytes, slack)

    def untracked(self, length: int) -> int:
        """The largest estimate of an item that is not tracked, when the hashing is as it should be."""
        return largest_untracked(
            length, self.capacity, int(self._collisions(length).bound(self.deltas.hashing)), self.rule
        )

    @cached_property
    def threshold(self) -> int:
        """The cut; relative to the published offset when the length is noisy."""
        if self.stream_length == "noisy":
            return self._margin
        assert isinstance(self.stream_length, int)
        return self.untracked(self.stream_length) + self._margin

    @cached_property
    def error_model(self) -> ErrorModel:
        if isinstance(self.stream_length, int):
            return self._error_model(self._collisions(self.stream_length))
        unknown = math.inf if self.rule == "median" else 0.0
        return replace(self._error_model(None), summary_above=math.inf, summary_below=unknown)

    def _error_model(self, collisions: Collisions | None) -> ErrorModel:
        draws = self.depth * min(self.capacity, self.width)
        return ErrorModel(Noise(self.noise, self.scale, draws), collisions=collisions)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("the seed of the sketch was drawn independently of the stream", *super().assumptions)

    def check(self, summary: Any) -> None:
        super().check(summary)
        if summary.tracked != self.capacity:
            raise ParameterError(
                f"the mechanism was made for capacity {self.capacity}, but the sketch tracks {summary.tracked} items"
            )
        for name in ("width", "depth", "max_key_bytes"):
            mine, given = getattr(self, name), getattr(summary, name)
            if mine != given:
                raise ParameterError(f"the mechanism was made for {name} {mine}, but the sketch has {given}")

    def draw(self, summary: Any, source: RandomSource) -> Drawn:
        drawn = source.discrete_laplace if self.noise == "laplace" else source.discrete_gaussian
        noise = drawn(self.scale, self.depth * self.width)
        cells = summary.not_private_cells() + noise.reshape(self.depth, self.width)
        offset, model = None, self.error_model
        if self.stream_length == "noisy":
            length = self.noisy_length(summary, cells, source)
            offset = self.untracked(length)
            model = self._error_model(self._collisions(length, self.deltas.length))
        raw = summary.not_private_counts()
        noisy = np.zeros(0, np.int64)
        if len(raw):
            columns, signs = summary.places(raw.items)
            noisy = self._combine(signs * cells[np.arange(self.depth), columns])
        return Drawn(raw, noisy, noisy - (offset or 0) >= self.threshold, offset, error_model=model)

    @staticmethod
    @abc.abstractmethod
    def _combine(rows: Cells) -> Cells:
        """Estimates from the rows, along the last axis."""

    @abc.abstractmethod
    def noisy_length(self, summary: Any, cells: Cells, source: RandomSource) -> int:
        """A private number that is at least the length, except with its part of delta."""


@dataclass(frozen=True)
class CountMinHeavyHitters(_SketchHeavyHitters):
    """The tracked items of a CountMin whose estimates stay above a cut when every cell has noise.

    Unit: one event, or up to m events of a user (`User(m)`).
    Guarantee: (epsilon, delta), over the noise and the seed of the sketch, which is drawn before the stream and may be
        known.
    Noise: once, on every cell: discrete Laplace of scale m d/epsilon, or discrete Gaussian for an l2-sensitivity of m
        sqrt(d), which is less from a depth of about 5 on.
    Threshold: published iff the noisy estimate is at least (n + k g)/(k+1) + g + t: g is the most that an estimate
        exceeds its frequency, and t what no noise of a cell reaches, each except with a part of delta.
    Length: n is a public number, or "noisy": the cells of a row sum to n, so the private cells tell it at no cost. Then
        the cut is the published offset plus `threshold`.
    Error: f <= estimate <= f + g before the noise; the smallest of d noisy cells is below the exact one on average.
    Argument: docs/privacy/sketch-heavy-hitters.md.

    Args:
        capacity: How many items the sketch tracks.
        noise: "gaussian" or "laplace".
        width, depth, max_key_bytes: As of the sketch. For a threshold of use take depth of about ln(n/delta)/2 or more:
            g is about (4 n/delta)^(1/depth) n/width.
        stream_length: "noisy", or a number that the stream is publicly known not to exceed.
    """

    name: ClassVar[str] = "heavy hitters from CountMin"
    reference: ClassVar[str] = "[SS] Algorithms 4 and 5, corrected; docs/privacy/sketch-heavy-hitters.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (CountMin,)
    rule: ClassVar[str] = "smallest"

    @staticmethod
    def _combine(rows: Cells) -> Cells:
        return np.asarray(rows.min(axis=-1))

    def noisy_length(self, summary: Any, cells: Cells, source: RandomSource) -> int:
        # sum = d n + (sum of d w noises), and the latter is more than -bound except with its part of delta.
        bound = noise_sum_bound(self.noise, self.scale, self.depth * self.width, self.deltas.length)
        return max(0, -(-(int(cells.sum()) + bound) // self.depth))


@dataclass(frozen=True)
class CountSketchHeavyHitters(_SketchHeavyHitters):
    """The tracked items of a CountSketch whose estimates stay above a cut when every cell has noise.

    Unit: one event, or up to m events of a user (`User(m)`).
    Guarantee: (epsilon, delta), over the noise and the seed of the sketch, as for `CountMinHeavyHitters`.
    Noise: as for `CountMinHeavyHitters`: an event changes d cells by 1 or -1.
    Threshold: estimates err to both sides by at most g, so the cut is (n + 2 k g)/(k+1) + g + t. g fails when (d+1)/2
        rows do, not all d: take twice the depth of a CountMin.
    Length: n is public, or "noisy": the cells do not tell it, so `length_share` of epsilon is spent on n + Z.
    Error: |estimate - f| <= g before the noise.
    Argument: docs/privacy/sketch-heavy-hitters.md.

    Args:
        capacity: How many items the sketch tracks.
        noise: "gaussian" or "laplace".
        width, depth, max_key_bytes: As of the sketch; depth is odd.
        stream_length: "noisy", or a number that the stream is publicly known not to exceed.
        length_share: The share of epsilon for a noisy length.
    """

    name: ClassVar[str] = "heavy hitters from CountSketch"
    reference: ClassVar[str] = "[SS] Algorithms 4 and 5, corrected; docs/privacy/sketch-heavy-hitters.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (CountSketch,)
    rule: ClassVar[str] = "median"

    length_share: float = field(default=0.05, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth % 2 == 0:
            raise ParameterError(f"depth must be odd, so that the rows have a median, not {self.depth}")

    @staticmethod
    def _combine(rows: Cells) -> Cells:
        middle = rows.shape[-1] // 2
        return np.asarray(np.partition(rows, middle, axis=-1)[..., middle])

    def noisy_length(self, summary: Any, cells: Cells, source: RandomSource) -> int:
        noise = Noise("laplace", self.most_events / self._epsilons[1])
        above = unreached(noise, 1, self.deltas.length) - 1
        return max(0, int(summary.total) + int(source.discrete_laplace(noise.scale, 1)[0]) + above)


@lru_cache(maxsize=256)
def cells_sigma(epsilon: float, delta: float, depth: int, items: int) -> float:
    """Sigma for d cells that move by 1 each, or for m events, which move the cells by at most m sqrt(d) in l2."""
    from discreet.privacy.calibration.gaussian import discrete_gaussian_sigma, discrete_gaussian_sigma_any

    if items == 1:
        return discrete_gaussian_sigma(epsilon, delta, changes=depth)
    return discrete_gaussian_sigma_any(epsilon, delta, math.nextafter(items * math.sqrt(depth), math.inf))


@lru_cache(maxsize=256)
def unreached(noise: Noise, draws: int, failure: float) -> int:
    """The smallest t >= 1 with draws * P[Z >= t] <= failure."""
    return smallest(lambda t: draws * noise.upper_tail(t) <= failure, 1)


_LARGEST_RATE = 700.0


def noise_sum_bound(law: str, scale: Fraction, draws: int, failure: float) -> int:
    """B with P[sum of `draws` noises <= -B] <= failure, for discrete "laplace" or "gaussian" noise.

    P[S >= B] <= E[exp(tZ)]^N exp(-tB) for every t > 0, so B = (N log E[exp(tZ)] + log(1/failure)) / t will do for any:
    a search over t that stops early costs size, not validity.
    Laplace of rate r: E[exp(tZ)] = (1-q)^2 / ((1 - q e^t)(1 - q e^-t)) = 1/(1 - (sinh(t/2) / sinh(r/2))^2), t < r.
    Gaussian: E[exp(tZ)] <= exp(t^2 sigma^2 / 2) ([CKS20], Lemma 22), and t = sqrt(2 log(1/failure) / (N sigma^2)).
    """
    draws = whole_number("draws", draws)
    needed = -math.log(probability("failure", failure))
    if law == "gaussian":
        bound = float(scale) * math.sqrt(2.0 * draws * needed)
    elif law == "laplace":
        # A smaller rate is more noise: the bound for it holds, too.
        bound = _laplace_sum_bound(min(float(1 / scale), _LARGEST_RATE), draws, needed)
    else:
        raise ParameterError(f"law must be 'laplace' or 'gaussian', not {law!r}")
    return math.ceil(bound * (1.0 + 1e-9))


def _laplace_sum_bound(rate: float, draws: int, needed: float) -> float:
    def at(log_share: float) -> float:
        t = rate * math.exp(log_share)
        ratio = math.sinh(t / 2.0) / math.sinh(rate / 2.0)
        return (needed - draws * math.log1p(-ratio * ratio)) / t

    low, high = -40.0, -1e-6
    for _ in range(200):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return at((low + high) / 2.0)
