"""Quantiles of a few shares: the middle one is chosen first, then those on each side of it among what lies there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.central._quantiles import Counts, QuantileMechanism, RangeTree, best_tree, votes_in
from discreet.central.quantile_grid import MOST_BINS
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Guarantee
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import Noise
from discreet.releases.quantile_list import QuantileRelease
from discreet.summaries.people import each_once

PARTS = 1 << 16
"""Into this many parts a bin is divided, over which its values are spread."""
CELLS = 16
"""Cells on each side of a chosen value; intervals are made of them."""
FOR_INTERVALS = 0.25
"""What intervals have of the budget."""
_NEAR = 64  # in units of an exponent: what is farther has next to no weight


class Found(NamedTuple):
    """The bins that hold something, in their order, and what each holds: rows, or votes of people. NOT private."""

    bins: Counts
    masses: Counts

    def __add__(self, other: Found) -> Found:  # type: ignore[override]
        """What both hold, of rows or people that are in one of them."""
        size = max(int(each.bins.max(initial=-1)) + 1 for each in (self, other))
        if size <= MOST_BINS:  # which can be listed, and need not be sorted
            every = np.zeros(size, np.int64)
            for each in (self, other):
                every[each.bins] += each.masses
            return Found(np.flatnonzero(every), every[every > 0])
        bins, places = np.unique(np.concatenate([self.bins, other.bins]), return_inverse=True)
        masses = np.zeros(len(bins), np.int64)
        np.add.at(masses, places, np.concatenate([self.masses, other.masses]))
        return Found(bins, masses)


class ShareChoice(NamedTuple):
    """One choice: of the share in the middle of those from `first` on and before `last`, from parts of a range.

    Attributes:
        first: The first share that is chosen in this range.
        last: The one after the last of them.
        start: The first part of the range.
        end: The part after its last.
        level: How many choices were made above it.
    """

    first: int
    last: int
    start: int
    end: int
    level: int

    @property
    def middle(self) -> int:
        """The share that is chosen."""
        return (self.first + self.last) // 2

    @property
    def is_leaf(self) -> bool:
        """Whether no share is left for either side of it."""
        return self.last - self.first == 1


class ChosenParts(NamedTuple):
    """What is random: the parts that were chosen, one a share, and the noisy nodes of the tree of cells."""

    parts: tuple[int, ...]
    noisy: Counts


class _Line:
    """What was found, spread evenly over the parts of each bin: how much lies left of a part, exactly and nearly."""

    def __init__(self, found: Found, parts: int) -> None:
        self.parts, self._bins, self._masses = parts, found.bins, found.masses
        self._sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.masses)])
        self.total = int(self._sums[-1])
        self._known: dict[int, int] = {}

    def left(self, part: int) -> int:
        """How much lies left of a part: in units of a part of 1, so that it is a whole number."""
        if part not in self._known:
            place, inside = divmod(part, self.parts)
            at = int(np.searchsorted(self._bins, place))
            partly = int(self._masses[at]) * inside if at < len(self._bins) and self._bins[at] == place else 0
            self._known[part] = int(self._sums[at]) * self.parts + partly
        return self._known[part]

    def nearly_left(self, edges: Counts) -> npt.NDArray[np.float64]:
        """The same for many, in units of 1, with an error below `slack`."""
        place, inside = np.divmod(edges, self.parts)
        at = np.searchsorted(self._bins, place)
        known = np.minimum(at, max(len(self._bins) - 1, 0))
        partly = np.zeros(len(edges))
        if len(self._bins):
            partly = np.where(self._bins[known] == place, self._masses[known] * (inside / self.parts), 0.0)
        return self._sums[at] + partly

    @property
    def slack(self) -> float:
        """More than what rounding makes of a difference of two of these."""
        return (self.total + 1.0) * 2.0**-48

    def edges(self, start: int, end: int) -> Counts:
        """The ends of the bins that hold something, between two parts, and these two."""
        first = np.searchsorted(self._bins, start // self.parts)
        last = np.searchsorted(self._bins, -(-end // self.parts))
        held = self._bins[first:last] * self.parts
        return each_once(np.clip(np.concatenate([[start, end], held, held + self.parts]), start, end))

    def parts_at(self, amounts: npt.NDArray[np.float64]) -> Counts:
        """About where these amounts lie to the left."""
        if not len(self._bins):
            return np.zeros(0, np.int64)
        at = np.clip(np.searchsorted(self._sums, amounts, side="right") - 1, 0, len(self._bins) - 1)
        inside = np.clip((amounts - self._sums[at]) / np.maximum(self._masses[at], 1), 0.0, 1.0)
        found: Counts = self._bins[at] * self.parts + (inside * self.parts).astype(np.int64)
        return found


@dataclass(frozen=True)
class QuantileChoice(QuantileMechanism):
    """Quantiles by recursive choice; intervals by a small tree over cells around them.

    Unit: one row, or a person with all of their rows (`User()`).
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: three quarters of the budget are for L = ceil(log2(shares + 1)) levels of choices. A choice takes a part p of
        a range with odds exp(-e |left(p) - q n|/(2 max(q, 1-q) h)), n what lies in the range, q the share relative to
        it, e = epsilon/L (or sqrt(8 rho/L)), h = 1 for rows or m votes for people. A quarter is for noise on a tree
        over cells around the chosen values, as for `QuantileTree`.
    Error: where values are spread over many bins, a rank is off by about 1.3/epsilon rows for one share, 3/epsilon for
        three, 8/epsilon for nine, whatever the range (`typical_error` has standard deviations).
    Argument: docs/privacy/quantiles.md. Follows Kaplan, Schnapp and Stemmer, "Differentially private approximate
        quantiles", 2022.

    Args:
        parts: Parts of a bin, over which equal values are spread.
        cells: Cells on each side of a chosen value.
    """

    way: ClassVar[str] = "recursive choice"

    parts: int = PARTS
    cells: int = CELLS

    def __post_init__(self) -> None:
        whole_number("parts", self.parts, 1, PARTS)
        whole_number("cells", self.cells, 2, 256)
        super().__post_init__()
        if self.epsilons[0] < Fraction(1, 2**40):
            raise ParameterError("the budget is too small: choices would be made with an epsilon below 2**-40")

    # ---- what is public ----------------------------------------------------------------------------------------------

    @property
    def levels(self) -> int:
        """How many choices are made one below another."""
        return len(self.quantiles).bit_length()

    @cached_property
    def split(self) -> tuple[Fraction, Budget]:
        """What choices have of epsilon, or of rho, and the budget of the tree: together no more than there is."""
        if self.budget.rho is not None:
            rest = Budget.zcdp(FOR_INTERVALS * self.budget.rho)
            assert rest.rho is not None
            return Fraction(self.budget.rho) - Fraction(rest.rho), rest
        assert self.budget.epsilon is not None
        rest = Budget(FOR_INTERVALS * self.budget.epsilon, self.budget.delta)
        assert rest.epsilon is not None
        return Fraction(self.budget.epsilon) - Fraction(rest.epsilon), rest

    @cached_property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Epsilon of the choices of each level: a choice is e^2/8-zCDP, since it is e-bounded in range."""
        given, levels = self.split[0], self.levels
        if self.budget.rho is None:
            return (given / levels,) * levels
        return (Fraction(math.isqrt(math.floor(8 * given / levels * 2**100)), 2**50),) * levels

    @cached_property
    def _ratios(self) -> tuple[Fraction, ...]:
        """0, the shares as the fractions that they are written as, and 1."""
        near = [Fraction(repr(share)).limit_denominator(10**6) for share in self.quantiles]
        exact = [Fraction(share) for share in self.quantiles]
        rising = all(a < b for a, b in zip([Fraction(0), *near], [*near, Fraction(1)], strict=True))
        return (Fraction(0), *(near if rising else exact), Fraction(1))

    def share_of(self, node: ShareChoice) -> Fraction:
        """The share of a choice, relative to what lies in its range."""
        low, middle, high = (self._ratios[at] for at in (node.first, node.middle + 1, node.last + 1))
        return (middle - low) / (high - low)

    def rate(self, node: ShareChoice) -> Fraction:
        """By how much the exponent grows when a rank is off by 1: e/(2 max(q, 1-q) h)."""
        share = self.share_of(node)
        return self.epsilons[node.level] / (2 * max(share, 1 - share) * self.height)

    @cached_property
    def _calibrated(self) -> tuple[RangeTree, Noise]:
        return best_tree(self.leaves, self.split[1], self.height)

    @property
    def leaves(self) -> int:
        """As many cells as there may be."""
        return min((2 * self.cells + 1) * len(self.quantiles), self.grid.bins)

    # ---- what is counted. NOT private --------------------------------------------------------------------------------

    def counts(
        self, places: npt.NDArray[Any], people: npt.NDArray[Any] | None = None, rows: Counts | None = None
    ) -> Found:
        """What lies in the bins that hold something: rows, or votes of people. NOT private.

        Args:
            places: The bin of each row, as `Grid.places` gives it.
            people: For people: whose row it is, a number from 0 on.
            rows: How many rows each person has in all, where these are those of one group: all of them share the votes.
        """
        if self.max_rows is not None and (people is None or not len(places)):
            return Found(np.zeros(0, np.int64), np.zeros(0, np.int64))
        if people is None or self.max_rows is None:
            if self.grid.bins > MOST_BINS:
                bins, masses = np.unique(places.astype(np.int64), return_counts=True)
                return Found(bins, masses.astype(np.int64))
            return self.of_bins(np.bincount(places, minlength=self.grid.bins).astype(np.int64))
        if self.grid.bins > MOST_BINS:
            bins, place = np.unique(places.astype(np.int64), return_inverse=True)
        else:  # which can be listed, and need not be sorted
            bins, place = np.arange(self.grid.bins), places
        masses = votes_in(place, people, rows, self.max_rows, len(bins))
        return Found(bins[masses > 0], masses[masses > 0])

    def of_bins(self, every: Counts) -> Found:
        """The same, of rows that are counted already: how many are in each bin. NOT private."""
        bins = np.flatnonzero(every)
        return Found(bins, every[bins])

    # ---- what is random ----------------------------------------------------------------------------------------------

    def root(self) -> ShareChoice:
        """The first choice."""
        return ShareChoice(0, len(self.quantiles), 0, self.grid.bins * self.parts, 0)

    def below(self, node: ShareChoice, part: int) -> Iterator[ShareChoice]:
        """The choices on the two sides of what was chosen."""
        for side in (
            ShareChoice(node.first, node.middle, node.start, part, node.level + 1),
            ShareChoice(node.middle + 1, node.last, part, node.end, node.level + 1),
        ):
            if side.first < side.last:
                yield side

    def exponents(self, found: Found, node: ShareChoice) -> list[Fraction]:
        """The exact exponent of every part of a node's range, in their order: what the odds of a choice are. Slow."""
        line = _Line(found, self.parts)
        return [self._exponent(line, node, part, *self._bin(node, part)) for part in range(node.start, node.end)]

    def _bin(self, node: ShareChoice, part: int) -> tuple[int, int]:
        """The parts of a node's range that are of one bin with this one: from, and before."""
        begin = part - part % self.parts
        return max(begin, node.start), min(begin + self.parts, node.end)

    def _exponent(self, line: _Line, node: ShareChoice, part: int, begin: int, end: int) -> Fraction:
        """rate |left(part) - share n|; where no other choice depends on the part, the distance of its bin is enough."""
        before = line.left(node.start)
        wanted = self.share_of(node) * (line.left(node.end) - before) + before
        if node.is_leaf:
            off = max(line.left(begin) - wanted, wanted - line.left(end), Fraction(0))
        else:
            off = abs(line.left(part) - wanted)
        return self.rate(node) * off / self.parts

    def choose(self, line: _Line, node: ShareChoice, source: RandomSource) -> int:
        """A part of the node's range, with odds exp(-exponent)."""
        if node.start == node.end:
            return node.start  # nothing to choose from, as what was chosen before says
        before, after = line.left(node.start), line.left(node.end)
        wanted = float((self.share_of(node) * (after - before) + before) / self.parts)
        rate = float(self.rate(node))
        edges = line.edges(node.start, node.end)
        if not node.is_leaf:  # scores that fall or rise within a bin: cut it where they have changed by about 1
            steps = line.parts_at(wanted + np.arange(-_NEAR, _NEAR + 1) / rate)
            edges = each_once(np.clip(np.concatenate([edges, steps, steps + 1]), node.start, node.end))
        left = line.nearly_left(edges)
        last = left[1:] if node.is_leaf else line.nearly_left(edges[1:] - 1)
        off = np.maximum(np.maximum(left[:-1] - wanted, wanted - last), 0.0)
        lower = np.maximum(off - line.slack, 0.0) * (rate * (1.0 - 2.0**-48))
        least = Fraction(float(lower.min()))

        def exponent(block: int, inside: int) -> Fraction:
            part = int(edges[block]) + inside
            return self._exponent(line, node, part, *self._bin(node, part)) - least

        block, inside = source.choose_in_blocks((lower - lower.min()) * (1.0 - 2.0**-48), np.diff(edges), exponent)
        return int(edges[block]) + inside

    def chosen(self, found: Found, source: RandomSource) -> tuple[int, ...]:
        """The parts that are chosen, one a share. They never fall."""
        line, parts, waiting = _Line(found, self.parts), {}, [self.root()]
        while waiting:
            node = waiting.pop()
            part = parts[node.middle] = self.choose(line, node, source)
            waiting += self.below(node, part)
        return tuple(parts[at] for at in range(len(parts)))

    def boundaries(self, parts: tuple[int, ...]) -> Counts:
        """The ends of the cells: around every chosen bin, this many on each side, each by one factor farther from it.

        A side ends where the range does, or half way to the next chosen bin.
        """
        places = [*dict.fromkeys(min(part // self.parts, self.grid.bins - 1) for part in parts)]
        ends = {0, self.grid.bins}
        for at, place in enumerate(places):
            low = 0 if at == 0 else (places[at - 1] + place + 1) // 2
            high = self.grid.bins if at + 1 == len(places) else (place + places[at + 1] + 1) // 2
            ends |= {place - far for far in _distances(place - low, self.cells)} | {place}
            ends |= {place + 1 + far for far in _distances(high - place - 1, self.cells)} | {place + 1}
        return np.array(sorted(ends), np.int64)

    def in_cells(self, found: Found, boundaries: Counts) -> Counts:
        """What lies in each cell. NOT private."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.masses)])
        return np.diff(sums[np.searchsorted(found.bins, boundaries)])

    def draw(self, found: Found, source: RandomSource) -> ChosenParts:
        """What is chosen, and the noisy nodes over cells around it: all that is random, and the seam of the audit."""
        parts = self.chosen(found, source)
        return ChosenParts(parts, self.with_noise(self.in_cells(found, self.boundaries(parts)), source))

    # ---- what is published -------------------------------------------------------------------------------------------

    def _answer(self, drawn: ChosenParts, guarantee: Guarantee) -> QuantileRelease:
        left, ends = self.tree.left_of(drawn.noisy), self.boundaries(drawn.parts)
        first, last = self.intervals(left[: len(ends)], float(left[-1]))
        bins = [*zip(ends[first].tolist(), (ends[last + 1] - 1).tolist(), strict=True)]
        values = [self.grid.value(min(part // self.parts, self.grid.bins - 1), 0.5) for part in drawn.parts]
        return self.release(values, bins, guarantee)

    # ---- errors ------------------------------------------------------------------------------------------------------

    @cached_property
    def _spread(self) -> tuple[float, ...]:
        """The standard deviation of the rank of every share, in rows or votes, where values are spread over many bins.

        A choice with odds exp(-r |x|) of being off by x has the variance 2/r^2; what is chosen above moves the share
        in between in proportion.
        """
        spread: dict[int, float] = {-1: 0.0, len(self.quantiles): 0.0}
        waiting = [self.root()]
        while waiting:
            node = waiting.pop()
            share = float(self.share_of(node))
            own = math.sqrt(2.0) / (float(self.rate(node)) * self.vote)
            above = (1.0 - share) * spread[node.first - 1], share * spread[node.last]
            spread[node.middle] = math.hypot(own, *above)
            waiting += self.below(node, 0)
        return tuple(spread[at] for at in range(len(self.quantiles)))

    @property
    def randomness(self) -> tuple[str, float]:
        """What makes the values private, and how many rows, or votes, make the odds of a value e times smaller."""
        return "choice", 1.0 / (float(self.rate(self.root())) * self.vote)

    @property
    def typical_error(self) -> float:
        """By how many rows, or votes of people, a rank is off: the standard deviation, in the mean over shares.

        It is of values that are spread over many bins. With many equal values ranks are off by less, or by none.
        """
        return sum(self._spread) / len(self._spread)

    def error_bound(self, beta: float) -> float:
        """With probability 1 - beta: by how many rows, or votes, the rank of one share is off at most, for any data.

        Some bin holds the quantile and is off by 0; each of the others is chosen with odds exp(-rate off) at most.
        """
        if len(self.quantiles) > 1:
            raise ParameterError("the bound for any data covers one share only")
        log = math.log(self.grid.bins / probability("beta", beta))
        return log / (float(self.rate(self.root())) * self.vote)


def _distances(most: int, cells: int) -> set[int]:
    """At most this many distances up to the largest one, with about one ratio."""
    if most <= cells:
        return {*range(1, most + 1)}
    return {max(at, round(most ** (at / cells))) for at in range(1, cells + 1)}
