"""Heavy hitters from a frequency oracle that the user brings."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from discreet._data_class import dataclass, field
from discreet.central._base import Drawn, RestsOnLength
from discreet.central.sketch_heavy_hitters import DeltaParts, cells_sigma, unreached
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.checks import whole_number
from discreet.published.tracked_oracle import FrequencyOracle, OracleStatement, TrackedOracle, guarded
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import Summary

_LENGTHS = (0, 1, 10, 1000, 10**6, 10**9, 10**12)
_MOST = 2**60


@dataclass(frozen=True)
class OracleHeavyHitters(RestsOnLength):
    """The tracked items of any frequency oracle whose estimates stay above a cut when every cell has noise.

    Unit: one event, or up to m events of a user (`User(m)`).
    Guarantee: (epsilon, delta), over the noise and the oracle's seed, if the oracle keeps to what it states: what its
        cells change by, that estimates are made from cells, and its errors (`guarantee.assumptions`).
    Noise: once, on every cell; an event changes c cells by h: discrete Laplace of scale m c h/epsilon, or discrete
        Gaussian for an l2-sensitivity of m h sqrt(c).
    Threshold: published iff the noisy estimate is above what noise can make of u, the largest of an item that is not
        tracked, except with parts of delta, and greater than n/k.
    Length: n is a public number, or "noisy": `length_share` of epsilon is spent on n + Z. Then the cut is the published
        offset plus `threshold`.
    Error: f - b <= estimate <= f + a before the noise, except with the part of delta above.
    Argument: docs/privacy/sketch-heavy-hitters.md, "An oracle of your own".

    Args:
        k: Items are wanted that make up more than 1/k of the stream.
        oracle: Makes an empty oracle: a class, or a function without arguments. See `FrequencyOracle`.
        tracked: k~, how many items are tracked; more than k, 4 k by default. More of them lower the cut.
        noise: "laplace" or "gaussian", which is less where an event changes more than about 5 cells.
        stream_length: "noisy", or a number that the stream is publicly known not to exceed.
        length_share: The share of epsilon for a noisy length.
    """

    name: ClassVar[str] = "heavy hitters from a frequency oracle"
    reference: ClassVar[str] = "[SS] Algorithms 4 and 5, corrected; docs/privacy/sketch-heavy-hitters.md"
    accepts: ClassVar[tuple[type[Summary], ...]] = (TrackedOracle,)

    budget: Budget
    k: int
    oracle: Callable[[], FrequencyOracle]
    tracked: int | None = None
    unit: Unit = field(default_factory=Event)
    noise: str = "laplace"
    stream_length: int | str = field(default="noisy", kw_only=True)
    length_share: float = field(default=0.05, kw_only=True)

    def __post_init__(self) -> None:
        whole_number("k", self.k)
        object.__setattr__(self, "tracked", 4 * self.k if self.tracked is None else self.tracked)
        if whole_number("tracked", self.tracked) <= self.k:
            raise ParameterError(f"tracked must be greater than k = {self.k}, not {self.tracked}")
        super().__post_init__()
        if self.noise not in ("laplace", "gaussian"):
            raise ParameterError(f"noise must be 'laplace' or 'gaussian', not {self.noise!r}")
        if not callable(self.oracle):
            raise ParameterError("oracle must be a class, or a function without arguments, that makes an empty oracle")
        _ = self.statement
        errors = [self.errors(length) for length in _LENGTHS]
        if any(one > two for pair in pairwise(errors) for one, two in zip(*pair, strict=True)):
            raise ParameterError("error of an oracle must not fall when the length grows")

    @cached_property
    def _empty(self) -> Any:
        """An oracle that never sees an event: what it says is public."""
        return self.oracle()

    @cached_property
    def statement(self) -> OracleStatement:
        """What the oracle says of its cells."""
        return OracleStatement.of(self._empty)

    @property
    def capacity(self) -> int:
        """k~: how many items are tracked."""
        assert self.tracked is not None
        return self.tracked

    def track(self) -> TrackedOracle:
        """An empty oracle with its candidates: update it, then release it."""
        return TrackedOracle(self.oracle(), self.capacity)

    @cached_property
    def deltas(self) -> DeltaParts:
        """Where delta goes; the oracle may err more than it says in each of two neighbours."""
        return DeltaParts.of(*self.spends, self.noise, self.stream_length == "noisy", streams=2)

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, m c h/epsilon exactly, or the sigma of the Gaussian one."""
        told, epsilon = self.statement, self._epsilons[0]
        height = self.most_events * told.height
        if self.noise == "laplace":
            return told.changes * height / epsilon
        return Fraction(cells_sigma(float(epsilon), self.deltas.gaussian, told.changes, height))

    @cached_property
    def margin(self) -> int:
        """gain (t - 1) + 1: no noise lifts an estimate by so much, except with its part of delta."""
        t = unreached(Noise(self.noise, self.scale), 2 * self.statement.cells, self.deltas.cells)
        return self.statement.gain * (t - 1) + 1

    def errors(self, length: int) -> tuple[int, int]:
        """(b, a) that the oracle states for a stream of this many events and the items of two neighbours."""
        items = length + (self.most_events if self.stream_length == "noisy" else 0)
        given = guarded(self._empty, "error", length, items, self.deltas.hashing)
        if not isinstance(given, tuple) or len(given) != 2:
            raise ParameterError("error of an oracle returns two whole numbers: below, above")
        below, above = (whole_number("error of the oracle", error, 0, _MOST) for error in given)
        return below, above

    def untracked(self, length: int) -> int:
        """The largest estimate of an item that is not tracked, when the oracle errs as it says."""
        (below, above), k = self.errors(length), self.capacity
        return (length + k * (above + below)) // (k + 1) + above

    def _offset(self, length: int) -> int:
        """What the cut is above by `margin`: all that may be untracked; and no item of n/k or less is wanted."""
        return max(self.untracked(length), length // self.k + 1 - self.margin)

    @cached_property
    def threshold(self) -> int:
        """The cut; relative to the published offset when the length is noisy."""
        return self.margin + (self._offset(self.stream_length) if isinstance(self.stream_length, int) else 0)

    @cached_property
    def error_model(self) -> ErrorModel:
        if isinstance(self.stream_length, int):
            return self._error_model(self.errors(self.stream_length))
        return self._error_model((math.inf, math.inf))

    def _error_model(self, errors: tuple[float, float]) -> ErrorModel:
        told = self.statement
        noise = Noise(self.noise, self.scale, told.cells, Fraction(told.gain))
        return ErrorModel(noise, summary_below=errors[0], summary_above=errors[1])

    @property
    def assumptions(self) -> tuple[str, ...]:
        told = self.statement
        return (
            f"one event changes at most {told.changes} cells of the oracle by at most {told.height} each",
            "the oracle's estimates are computed from its cells alone, and move by at most "
            f"{told.gain} times the largest change of a cell",
            "the oracle errs by no more than it states, over a seed that was drawn independently of the stream",
            *super().assumptions,
        )

    def check(self, summary: Any) -> None:
        super().check(summary)
        if summary.statement != self.statement:
            raise ParameterError("the mechanism was made for an oracle with other sensitivities or another shape")

    def noisy_length(self, total: int, source: RandomSource) -> int:
        """A private number that is at least the length, except with its part of delta."""
        noise = Noise("laplace", self.most_events / self._epsilons[1])
        above = unreached(noise, 1, self.deltas.length) - 1
        return max(0, total + noise.draw(source) + above)

    def draw(self, summary: TrackedOracle, source: RandomSource) -> Drawn:
        cells = summary.not_private_cells()
        draw = source.discrete_laplace if self.noise == "laplace" else source.discrete_gaussian
        cells += draw(self.scale, cells.size).reshape(cells.shape)
        offset, model = None, self.error_model
        if self.stream_length == "noisy":
            length = self.noisy_length(summary.total, source)
            offset = self._offset(length)
            model = self._error_model(self.errors(length))
        raw = summary.not_private_counts()
        noisy = np.zeros(0, np.int64)
        if len(raw):
            noisy = summary.estimates_from(raw.items.to_pylist(), cells)
        # As Python's integers: an oracle may return any of 64 bits, and a difference of them may wrap around.
        cut = self.threshold + (offset or 0)
        keep = np.array([estimate >= cut for estimate in noisy.tolist()], np.bool_)
        return Drawn(raw, noisy, keep, offset, error_model=model)
