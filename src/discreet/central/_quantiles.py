"""What both mechanisms for quantiles share: whose values count, noisy counts in a tree over the bins of a line, made
consistent, and intervals from what lies left of any boundary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass, field, replace
from discreet.central._additive import A_PERSON, additive_noise
from discreet.central.quantile_grid import Bound, Grid, StepGrid
from discreet.errors import ParameterError
from discreet.events.ahead import available_cores
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.calibration.tails import weighted_sum_reach
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import Noise
from discreet.releases.quantile_list import QuantileRelease, QuantileRow
from discreet.summaries.people import each_once

Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

VOTE = 1 << 24
"""What a person's rows share, in whole numbers."""


_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64, 128, 256)
_TRIED = 513  # boundaries at which trees are compared


@dataclass(frozen=True)
class RangeTree:
    """`levels` levels of nodes below a root that is not counted; every node has `branching` children.

    The nodes are in one array, level by level from the top, each from left to right.

    With equal noise on every node the best linear unbiased estimates follow in two passes (Hay, Rastogi, Miklau, Suciu:
    Boosting the Accuracy of Differentially Private Histograms Through Consistency, 2010). Upwards, with a_h the
    variance of z at height h in units of one noise, a_0 = 1 and 1/a_h = 1 + 1/(branching a_(h-1)):

        z(leaf) = y(leaf),    z(node) = a_h y(node) + (1 - a_h) sum of z(children)

    Downwards, from x = z below the root: x(child) = z(child) + (x(node) - sum of z(children))/branching.
    """

    branching: int
    levels: int

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self.branching**self.levels)

    @property
    def nodes(self) -> int:
        """How many nodes have counts."""
        return sum(self.branching ** (level + 1) for level in range(self.levels))

    def counts(self, leaves: Counts) -> Counts:
        """The counts of all nodes, from those of the first leaves; the others are 0. One leaf is in `levels` nodes."""
        level = np.zeros(self.leaves, np.int64)
        level[: len(leaves)] = leaves
        found = [level]
        while len(level) > self.branching:
            level = level.reshape(-1, self.branching).sum(axis=1)
            found.append(level)
        return np.concatenate(found[::-1])

    def left_of(self, counts: npt.NDArray[Any]) -> Numbers:
        """From noisy counts of all nodes: how many lie left of each boundary, 0 to `leaves`, and in all at the end."""
        b, levels = self.branching, [*self._split(counts.astype(np.float64))]
        for height in range(1, self.levels):
            level, below = levels[-1 - height], levels[-height]
            level *= self._variances[height]
            level += (1.0 - self._variances[height]) * below.reshape(-1, b).sum(axis=1)
        for level, below in pairwise(levels):
            children = below.reshape(-1, b)
            children += ((level - children.sum(axis=1)) / b)[:, None]
        return np.concatenate([[0.0], np.cumsum(levels[-1])])

    def _split(self, counts: Numbers) -> Iterator[Numbers]:
        first = 0
        for level in range(self.levels):
            size = self.branching ** (level + 1)
            yield counts[first : first + size]
            first += size

    @cached_property
    def _variances(self) -> list[float]:
        """a_h, from the leaves up."""
        found = [1.0]
        while len(found) < self.levels:
            found.append(1.0 / (1.0 + 1.0 / (self.branching * found[-1])))
        return found

    def noises(self, boundaries: Counts, share: float) -> tuple[Numbers, Numbers]:
        """Of (what lies left of a boundary) - share (all): with which factors the nodes' noises are in it.

        Returns, for each boundary, the sum of the squared factors and the largest. A node's z with factor r gives its
        own noise the factor a_h r, and the z of its children (1 - a_h) r. Beside the path to the boundary that is all;
        on it children get more: the one at place i of j whole ones and a part c gets k_i - (j + c)/branching, with k_i
        = 1, c or 0.
        """
        b, a = self.branching, self._variances
        most = [1.0]
        for height in range(1, self.levels):
            most.append(max(a[height], (1.0 - a[height]) * most[-1]))
        place, size = boundaries.astype(np.float64), float(self.leaves)
        above = place / size - share
        squares, largest = np.zeros(len(place)), np.zeros(len(place))
        for height in range(self.levels - 1, -1, -1):
            size /= b
            whole = np.minimum(np.floor(place / size), b - 1.0)
            part = (place - whole * size) / size
            mean = (whole + part) / b
            left, on, right = (above + k - mean for k in (1.0, part, 0.0))
            squares += a[height] * (whole * left**2 + (b - 1.0 - whole) * right**2) + (a[height] * on) ** 2
            beside = np.maximum(np.where(whole > 0, abs(left), 0.0), np.where(whole < b - 1, abs(right), 0.0))
            largest = np.maximum(largest, np.maximum(beside * most[height], a[height] * abs(on)))
            above = (1.0 - a[height]) * on
            place = place - whole * size
        return squares, largest


@lru_cache(maxsize=64)
def best_tree(bins: int, budget: Budget, height: int) -> tuple[RangeTree, Noise]:
    """The tree with the least mean squared error over all boundaries, and its noise: from public numbers alone.

    One unit is in one node of every level, and moves it by at most `height`.
    """
    found = []
    for branching in sorted({b for b in _BRANCHINGS if b <= max(bins, 2)} | ({bins} if 2 <= bins <= 256 else set())):
        levels = 1
        while branching**levels < bins:
            levels += 1
        tree = RangeTree(branching, levels)
        noise = replace(additive_noise(budget, levels, height), draws=tree.nodes)
        boundaries = each_once(np.linspace(0, bins, min(bins + 1, _TRIED)).astype(np.int64))
        squares, _ = tree.noises(boundaries, 0.5)
        error = float(squares.mean()) * noise.variance
        found.append((error, levels, tree, noise))
    return min(found, key=lambda one: one[:2])[2:]


@dataclass(frozen=True)
class QuantileMechanism:
    """Quantiles of values in a public range, with intervals that hold together.

    Args:
        grid: The public range and its bins.
        quantiles: The shares asked for, above 0 and below 1.
        max_rows: For `User()`: m. A person with n rows gives each of them min(1, m/n) of a vote.
        confidence: With this probability all intervals hold together.
    """

    reference: ClassVar[str] = "docs/privacy/quantiles.md"
    way: ClassVar[str] = ""

    budget: Budget
    grid: Grid | StepGrid
    quantiles: Sequence[float] = (0.5,)
    unit: Unit = field(default_factory=Event)
    max_rows: int | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        as_budget(self.budget)
        if not isinstance(self.unit, Event) and self.unit != User():
            raise ParameterError(f"quantiles protect dc.Event() or dc.User(); got {self.unit!r}")
        if isinstance(self.unit, Event) and self.max_rows is not None:
            raise ParameterError("max_rows needs user: the column that says whose row it is")
        if isinstance(self.unit, User):
            most = 1 if self.max_rows is None else whole_number("max_rows", self.max_rows, 1, 2**20)
            object.__setattr__(self, "max_rows", most)
        object.__setattr__(self, "quantiles", _shares(self.quantiles))
        probability("confidence", self.confidence)
        _ = self.noise

    @property
    def _calibrated(self) -> tuple[RangeTree, Noise]:
        raise NotImplementedError

    @property
    def tree(self) -> RangeTree:
        """The tree whose nodes get noise."""
        return self._calibrated[0]

    @property
    def noise(self) -> Noise:
        """The noise on every node of the tree."""
        return self._calibrated[1]

    @property
    def leaves(self) -> int:
        """How many of its leaves are in use, at most."""
        raise NotImplementedError

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        return self.noise.scale

    @property
    def of(self) -> str:
        """Whose values are counted: "rows" or "people"."""
        return "rows" if self.max_rows is None else "people"

    @property
    def name(self) -> str:
        """The mechanism in words."""
        of = self.of if self.max_rows in (None, 1) else f"people, at most {self.max_rows} rows of each"
        return f"quantiles by {self.way}, {of}"

    @property
    def height(self) -> int:
        """What one unit has at most, in whole numbers."""
        return 1 if self.max_rows is None else self.max_rows * VOTE

    @property
    def vote(self) -> int:
        """What a row, or a vote of a person, is in whole numbers."""
        return 1 if self.max_rows is None else VOTE

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee and the answer rest on."""
        told = (f"the range {self.grid.in_words} is public; values outside count as its ends",)
        if self.max_rows is None:
            return told
        m = self.max_rows
        votes = "the rows of a person share one vote" if m == 1 else f"the rows of a person share at most {m} votes"
        return (*told, A_PERSON, votes)

    @property
    def guarantee(self) -> Guarantee:
        """What the quantiles promise."""
        return Guarantee.of(self.budget, self.unit, self.name, self.reference, assumptions=self.assumptions)

    def reach(self, share: float, beta: float, boundaries: int | None = None) -> Numbers:
        """For every boundary: what the noise of left - share n exceeds, on each side, with a chance of at most beta/2.

        It is a sum of independent noises times known factors k: of discrete Gaussians, for which E[exp(x Z)] is at most
        exp(x^2 sigma^2/2), so that Chernoff's bound is sigma sqrt(2 sum(k^2) ln(2/beta)); or of discrete Laplace noises
        (`weighted_sum_reach`).
        """
        many = self.leaves + 1 if boundaries is None else boundaries
        squares, largest = self.tree.noises(np.arange(many), share)
        log, scale = math.log(2.0 / beta), float(self.scale)
        if self.noise.law == "gaussian":
            return np.asarray(scale * (1.0 + 1e-9) * np.sqrt(2.0 * squares * log))
        return scale * weighted_sum_reach(squares, largest, log)

    def __call__(self, counts: Any, source: RandomSource | None = None) -> QuantileRelease:
        """Draw and publish. `source` is for tests and audits: a seeded one makes it not private."""
        source = system_source() if source is None else source
        return self._answer(self.draw(counts, source), replace(self.guarantee, seeded=source.seeded))

    def draw(self, counts: Any, source: RandomSource) -> Any:
        """All that is random of what was counted, and the seam of the audit."""
        raise NotImplementedError

    def _answer(self, drawn: Any, guarantee: Guarantee) -> QuantileRelease:
        """The quantiles, which are a function of what was drawn alone."""
        raise NotImplementedError

    def with_noise(self, leaves: Counts, source: Any) -> Counts:
        """The counts of all nodes over these leaves, each with its noise."""
        exact = self.tree.counts(leaves)
        drawn = source.discrete_gaussian if self.noise.law == "gaussian" else source.discrete_laplace
        noisy: Counts = exact + drawn(self.scale, len(exact))
        return noisy

    def intervals(self, left: Numbers, total: float) -> tuple[Counts, Counts]:
        """For every share the first and the last leaf that may hold the quantile; neither falls from share to share.

        Args:
            left: The estimate of what lies left of each boundary of the leaves in use.
            total: That of all.

        The true quantile lies in the leaf j with left(j) <= share n <= left(j+1). A leaf is out where the estimate of
        left(j+1) - share n is below -t, or that of left(j) - share n above t, t being what its noise exceeds with a
        chance of at most beta/2. That fails only if it fails at one of the two boundaries of the true leaf.
        """
        leaves = len(left) - 1
        found = []
        for share in self.quantiles:
            off = left - share * total
            reach = self.reach(share, (1.0 - self.confidence) / len(self.quantiles), leaves + 1)
            after, before = off[1:] >= -reach[1:], off[:-1] <= reach[:-1]
            first = int(np.argmax(after)) if after.any() else leaves - 1
            last = leaves - 1 - int(np.argmax(before[::-1])) if before.any() else 0
            found.append((min(first, last), max(first, last)))
        ends = np.array(found, np.int64)
        # Bounds that never fall: a lower one may only be lowered for that, an upper one raised.
        return np.minimum.accumulate(ends[::-1, 0])[::-1], np.maximum.accumulate(ends[:, 1])

    def release(
        self, values: Sequence[Bound], bins: Sequence[tuple[int, int]], guarantee: Guarantee
    ) -> QuantileRelease:
        """What is published: values, cut to the intervals from the first of these bins to the last."""
        rows = []
        for share, value, (first, last) in zip(self.quantiles, values, bins, strict=True):
            lower, upper = self.grid.lower(first), self.grid.upper(last)
            rows.append(QuantileRow(share, min(max(value, lower), upper), lower, upper))
        grid = self.grid
        told = (self.confidence, grid.ends, grid.scale, grid.bins, self.of, grid.kind)
        return QuantileRelease(tuple(rows), guarantee, *told)


def votes_in(
    places: npt.NDArray[Any], people: npt.NDArray[Any], rows: Counts | None, m: int, places_in_all: int
) -> Counts:
    """What people's rows have in every place: VOTE min(1, m/rows) each, rounded down for a person's rows in one place.

    So a person's votes never add up to more than m.

    Args:
        places: That of each row, below 2^31.
        people: Whose row it is, a number from 0 on.
        rows: How many rows each person has in all; None where all of them are here.
        m: How many votes the rows of a person share.
        places_in_all: How many there may be.
    """
    pairs = _native.Pairs(_native.Pairs.Entry.times, 2, 1, available_cores())
    pairs.add(people.astype(np.int32, copy=False), places.astype(np.int32, copy=False))
    pairs.group()
    found = np.frombuffer(pairs.votes(VOTE, m, None if rows is None else rows.astype(np.int64, copy=False)), np.int64)
    return np.concatenate([found, np.zeros(places_in_all - len(found), np.int64)])


def _shares(given: Any) -> tuple[float, ...]:
    """The shares asked for, in their order, each once."""
    listed = [given] if isinstance(given, Real) else given
    if isinstance(listed, (str, bytes)) or not hasattr(listed, "__iter__"):
        raise ParameterError(f"quantiles must be numbers greater than 0 and less than 1, not {given!r}")
    found = sorted({probability("a quantile", share) for share in listed})
    if not 1 <= len(found) <= 1000:
        raise ParameterError("quantiles must be at least one number, and at most 1,000")
    return tuple(found)
