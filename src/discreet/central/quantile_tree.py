"""Quantiles of numbers in a public range: noisy counts in a tree over it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.central._additive import A_PERSON
from discreet.central._tree import RangeTree, best_tree
from discreet.errors import ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.calibration.tails import weighted_sum_reach
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import Noise
from discreet.releases.quantile_list import QuantileRelease, QuantileRow

__all__ = ["BINS", "Grid", "QuantileTree"]

Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

BINS = 1 << 16
"""Into so many parts a range is divided, unless told otherwise."""
MOST_BINS = 1 << 20
VOTE = 1 << 24
"""What a person's rows share, in whole numbers."""


@dataclass(frozen=True)
class Grid:
    """A public range, divided into bins [e_i, e_(i+1)), the last with its upper end. Values outside are cut to it.

    Args:
        low: The lower end; for the scale "log" above 0.
        high: The upper end, above `low`.
        bins: How many there are.
        scale: "linear" for bins of one width, "log" for bins whose ends have one ratio.
    """

    low: float
    high: float
    bins: int = BINS
    scale: str = "linear"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            end = getattr(self, name)
            if isinstance(end, bool) or not isinstance(end, Real) or not math.isfinite(end):
                raise ParameterError(f"the range is two finite numbers, LOW and HIGH; got {end!r}")
            object.__setattr__(self, name, float(end))
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ParameterError(f"the range must have LOW < HIGH, got {self.low:g} to {self.high:g}")
        if self.scale not in ("linear", "log"):
            raise ParameterError(f"scale must be 'linear' or 'log', not {self.scale!r}")
        if self.scale == "log" and self.low <= 0.0:
            raise ParameterError(f"a range on the scale 'log' must begin above 0, not at {self.low:g}")
        object.__setattr__(self, "bins", whole_number("bins", self.bins, 2, MOST_BINS))
        if not (np.diff(self.edges) > 0).all():
            raise ParameterError(f"the range {self.low!r} to {self.high!r} is too narrow for {self.bins:,} bins")

    @cached_property
    def edges(self) -> Numbers:
        """The ends of the bins, `bins` + 1 numbers."""
        if self.scale == "log":
            edges = np.exp(np.linspace(math.log(self.low), math.log(self.high), self.bins + 1))
        else:
            edges = np.linspace(self.low, self.high, self.bins + 1)
        edges[0], edges[-1] = self.low, self.high
        return edges

    @property
    def of_whole_numbers(self) -> bool:
        """Whether every bin holds one whole number, its lower end: then that is the value, and nothing in between."""
        return self.scale == "linear" and self.low.is_integer() and self.high - self.low == self.bins

    def places(self, values: Numbers) -> npt.NDArray[np.int32]:
        """The bin of each value, cut to the range first. Which one depends on the value alone."""
        cut = np.clip(values, self.low, self.high)
        return np.searchsorted(self.edges[1:-1], cut, side="right").astype(np.int32)


@dataclass(frozen=True)
class QuantileTree:
    """Quantiles from noisy counts of the nodes of a tree over a public grid.

    Unit: one row, or a person with all of their rows (`User()`).
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: on each of the nodes of L levels, with h = 1 for rows and h = m votes for people: discrete Laplace of scale
        L h/epsilon; discrete Gaussian with sigma^2 = L h^2/(2 rho); of (epsilon, delta) the one with the smaller
        variance. The branching, and so L, is the one of the smallest error (16 for Laplace, 2 for Gaussian noise).
    Error: how many lie left of a boundary is known up to about 19/epsilon rows (standard deviation; 65,536 bins), or
        3.7/sqrt(rho); and a quantile up to its bin. The intervals follow from the tails of the noises' sum.
    Argument: a row is in one node of every level; a person gives their rows at most m votes in all, so the counts of
        a level move by at most m in sum; docs/privacy/quantiles.md.

    Args:
        grid: The public range and its bins.
        quantiles: The shares asked for, above 0 and below 1.
        max_rows: For `User()`: m. A person with n rows gives each of them min(1, m/n) of a vote.
        confidence: With this probability all intervals hold together.
    """

    reference: ClassVar[str] = "docs/privacy/quantiles.md"

    budget: Budget
    grid: Grid
    quantiles: Sequence[float] = (0.5,)
    unit: Unit = field(default_factory=Event)
    max_rows: int | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        as_budget(self.budget)
        if not isinstance(self.unit, Event) and self.unit != User():
            raise ParameterError(f"quantiles protect dc.Event() or dc.User(); got {self.unit!r}")
        if isinstance(self.unit, Event) and self.max_rows is not None:
            raise ParameterError("max_rows is for people: give user, the column of the people")
        if isinstance(self.unit, User):
            most = 1 if self.max_rows is None else whole_number("max_rows", self.max_rows, 1, 2**20)
            object.__setattr__(self, "max_rows", most)
        object.__setattr__(self, "quantiles", _shares(self.quantiles))
        probability("confidence", self.confidence)
        _ = self.noise

    @property
    def of(self) -> str:
        """Whose values are counted: "rows" or "people"."""
        return "rows" if self.max_rows is None else "people"

    @property
    def name(self) -> str:
        """The mechanism in words."""
        of = self.of if self.max_rows in (None, 1) else f"people, at most {self.max_rows} rows of each"
        return f"quantiles by a tree over a range, {of}"

    @property
    def height(self) -> int:
        """By how much one unit moves one node of every level at most, in whole numbers."""
        return 1 if self.max_rows is None else self.max_rows * VOTE

    @cached_property
    def _calibrated(self) -> tuple[RangeTree, Noise]:
        return best_tree(self.grid.bins, self.budget, self.height)

    @property
    def tree(self) -> RangeTree:
        """The tree."""
        return self._calibrated[0]

    @property
    def noise(self) -> Noise:
        """The noise on every node."""
        return self._calibrated[1]

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        return self.noise.scale

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee and the answer rest on."""
        grid = self.grid
        low, high = f"{grid.low:g}", f"{grid.high:g}"
        told = (f"the range {low} to {high} is public; values outside count as its ends",)
        if self.max_rows is None:
            return told
        m = self.max_rows
        votes = "the rows of a person share one vote" if m == 1 else f"the rows of a person share at most {m} votes"
        return (*told, A_PERSON, votes)

    @property
    def guarantee(self) -> Guarantee:
        """What the quantiles promise."""
        return Guarantee.of(self.budget, self.unit, self.name, self.reference, assumptions=self.assumptions)

    # ---- what is counted. NOT private --------------------------------------------------------------------------------

    def counts(self, places: npt.NDArray[Any], people: npt.NDArray[Any] | None = None) -> Counts:
        """What lies in every bin: rows, or votes of people. NOT private.

        Args:
            places: The bin of each row, as `Grid.places` gives it.
            people: For people: whose row it is, a number from 0 on.
        """
        bins = self.grid.bins
        if self.max_rows is None:
            return np.bincount(places, minlength=bins).astype(np.int64)
        counts = np.zeros(bins, np.int64)
        if people is None or not len(places):
            return counts
        pairs, times = np.unique(people.astype(np.int64) * bins + places, return_counts=True)
        owner, place = np.divmod(pairs, bins)
        np.add.at(counts, place, _votes(times, np.bincount(people)[owner], self.max_rows))
        return counts

    def nodes(self, counts: Counts) -> Counts:
        """The counts of all nodes of the tree. NOT private: what gets the noise."""
        return self.tree.counts(counts)

    # ---- what is published -------------------------------------------------------------------------------------------

    def draw(self, counts: Counts, source: RandomSource) -> Counts:
        """All nodes with their noise: all that is random, and the seam of the audit."""
        exact = self.nodes(counts)
        drawn = source.discrete_gaussian if self.noise.law == "gaussian" else source.discrete_laplace
        return exact + drawn(self.scale, len(exact))

    def __call__(self, counts: Counts, source: RandomSource | None = None) -> QuantileRelease:
        """Draw the noise and publish. `source` is for tests and audits: a seeded one makes it not private."""
        source = system_source() if source is None else source
        guarantee = dataclasses.replace(self.guarantee, seeded=source.seeded)
        return self._answer(self.draw(counts, source), guarantee)

    def _answer(self, noisy: Counts, guarantee: Guarantee) -> QuantileRelease:
        """The quantiles, which are a function of the noisy nodes alone."""
        from scipy.optimize import isotonic_regression

        left = self.tree.left_of(noisy)
        total, bins, edges = float(left[-1]), self.grid.bins, self.grid.edges
        left = left[: bins + 1]
        rising = isotonic_regression(left).x
        shares = np.asarray(self.quantiles)
        ends = np.array([self._between(left, total, share) for share in self.quantiles])
        # Bounds that never fall: a lower one may only be lowered for that, an upper one raised.
        first = np.minimum.accumulate(ends[::-1, 0])[::-1]
        last = np.maximum.accumulate(ends[:, 1])
        lower, upper = edges[first], edges[last + 1]
        wanted = shares * max(total, 0.0)  # noise may make all of a few rows fewer than none
        places = np.clip(np.searchsorted(rising[1:], wanted, side="left"), 0, bins - 1)
        gap = rising[places + 1] - rising[places]
        part = np.divide(wanted - rising[places], gap, out=np.full(len(shares), 0.5), where=gap > 0)
        part = np.zeros(len(shares)) if self.grid.of_whole_numbers else np.clip(part, 0.0, 1.0)
        values = edges[places] + part * (edges[places + 1] - edges[places])
        values = np.clip([_rounded(v, w) for v, w in zip(values, np.diff(edges)[places], strict=True)], lower, upper)
        rows = zip(shares.tolist(), values.tolist(), lower.tolist(), upper.tolist(), strict=True)
        return QuantileRelease(
            tuple(QuantileRow(*row) for row in rows),
            guarantee,
            self.confidence,
            (self.grid.low, self.grid.high),
            self.grid.scale,
            bins,
            self.of,
        )

    def _between(self, left: Numbers, total: float, share: float) -> tuple[int, int]:
        """The first and the last bin that may hold the quantile.

        The true one lies in the bin j with left(j) <= share n <= left(j+1). A bin is out where the estimate of
        left(j+1) - share n is below -t, or that of left(j) - share n above t, t being what its noise exceeds with a
        chance of at most beta/2. That fails only if it fails at one of the two boundaries of the true bin.
        """
        off = left - share * total
        reach = self.reach(share, (1.0 - self.confidence) / len(self.quantiles))
        after, before = off[1:] >= -reach[1:], off[:-1] <= reach[:-1]
        first = int(np.argmax(after)) if after.any() else self.grid.bins - 1
        last = self.grid.bins - 1 - int(np.argmax(before[::-1])) if before.any() else 0
        return min(first, last), max(first, last)

    def reach(self, share: float, beta: float) -> Numbers:
        """For every boundary: what the noise of left - share n exceeds, on each side, with a chance of at most beta/2.

        It is a sum of independent noises times known factors k: of discrete Gaussians, for which E[exp(x Z)] is at most
        exp(x^2 sigma^2/2), so that Chernoff's bound is sigma sqrt(2 sum(k^2) ln(2/beta)); or of discrete Laplace noises
        (`weighted_sum_reach`).
        """
        squares, largest = self.tree.noises(np.arange(self.grid.bins + 1), share)
        log, scale = math.log(2.0 / beta), float(self.noise.scale)
        if self.noise.law == "gaussian":
            return np.asarray(scale * (1.0 + 1e-9) * np.sqrt(2.0 * squares * log))
        return scale * weighted_sum_reach(squares, largest, log)

    def error_bound(self, beta: float, share: float = 0.5) -> float:
        """With probability 1 - beta: by how many rows, or votes of people, the rank of a quantile is off at most."""
        vote = 1 if self.max_rows is None else VOTE
        return float(self.reach(share, probability("beta", beta)).max()) / vote


def _votes(times: Counts, rows: Counts, m: int) -> Counts:
    """What `times` of a person's `rows` have: VOTE min(1, m/rows) each, rounded down in all.

    So a person's votes never add up to more than m. VOTE m times may have more than 63 bits; with VOTE m = q rows + r
    it is q times + r times/rows, whose parts do not where a person has fewer than 2^31 rows.
    """
    shared = np.maximum(rows, m)
    if len(rows) and int(rows.max()) >= 2**31:
        each = zip(times.tolist(), shared.tolist(), strict=True)
        return np.array([VOTE * m * part // whole for part, whole in each], np.int64)
    q, r = np.divmod(VOTE * m, shared)
    return q * times + r * times // shared


def _shares(given: Any) -> tuple[float, ...]:
    """The shares asked for, in their order, each once."""
    listed = [given] if isinstance(given, Real) else given
    if isinstance(listed, (str, bytes)) or not hasattr(listed, "__iter__"):
        raise ParameterError(f"quantiles must be numbers greater than 0 and less than 1, not {given!r}")
    found = sorted({probability("a quantile", share) for share in listed})
    if not 1 <= len(found) <= 1000:
        raise ParameterError("quantiles must be at least one number, and at most 1,000")
    return tuple(found)


def _rounded(value: float, width: float) -> float:
    """With the digits that a bin of this width tells."""
    return round(value, max(0, 1 - math.floor(math.log10(width)))) if width < 10.0 else float(round(value))
