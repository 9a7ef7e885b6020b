"""Levels of intervals of an ordered universe, and what is asked of their counts: ranges, heavy hitters, quantiles.

Strings are an ordered universe, too. Levels are public: a function of the parameters, never of what a party holds. All
answers are post-processing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import DataError, ParameterError
from discreet.events.items import item_of, prepare_column, values_of
from discreet.events.universe import Universe, Words
from discreet.multiparty._base import Protocol
from discreet.multiparty.estimates import Estimates, Numbers
from discreet.privacy import Estimate, Guarantee
from discreet.privacy.checks import probability, whole_number
from discreet.releases.simplex import on_simplex

Nodes = npt.NDArray[np.int64]

_MAX_SIZE = 2**62
_MAX_BRANCHING = 2**16


@dataclass(frozen=True)
class Strings:
    """The strings of at most `max_length` characters of an alphabet, in the order the alphabet is given in.

    A string is a number in base len(alphabet) + 1 with `max_length` digits, where digit 0 ends it; that number must
    stay below 2^62. In the decomposition an interval holds the strings with one prefix, and a level adds
    `branching` characters to it.
    """

    alphabet: str
    max_length: int

    def __post_init__(self) -> None:
        if not isinstance(self.alphabet, str) or not self.alphabet or "\0" in self.alphabet:
            raise ParameterError("alphabet must be a string of at least one character, without the null character")
        if item_of(self.alphabet) is None:
            raise ParameterError("the characters of an alphabet must be Unicode (one is a lone surrogate)")
        if len(set(self.alphabet)) != len(self.alphabet):
            raise ParameterError("alphabet has a character twice; remove one")
        whole_number("max_length", self.max_length, 1, 62)
        whole_number("the size of the universe, (len(alphabet) + 1) ** max_length,", self.size, 1, _MAX_SIZE)

    @property
    def size(self) -> int:
        """The numbers that strings may have; not all of them are one."""
        return int((len(self.alphabet) + 1) ** self.max_length)

    def words(self, items: Any, nulls: str = "error") -> Words:
        """The number of every string, in order; `DataError` for anything outside the universe."""
        values = _texts(items, nulls)
        length = values.dtype.itemsize // 4
        points = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), length)
        if points[:, self.max_length :].any():
            raise DataError(f"an item is longer than {self.max_length} characters")
        points = points[:, : self.max_length]
        known = np.array([0, *(ord(character) for character in self.alphabet)], np.uint32)
        order = np.argsort(known)
        places = np.minimum(np.searchsorted(known[order], points), len(known) - 1)
        digits = order[places]
        # A null inside a string is not in the alphabet; nulls after its end are NumPy's padding.
        ended = np.logical_or.accumulate(digits == 0, axis=1)
        if not (known[digits] == points).all() or (digits[ended] != 0).any():
            raise DataError("an item has a character that is not in the alphabet")
        base, result = np.uint64(len(known)), np.zeros(len(values), np.uint64)
        for position in range(self.max_length):
            result *= base
            if position < digits.shape[1]:
                result += digits[:, position].astype(np.uint64)
        return result

    def items(self, words: npt.ArrayLike) -> list[str]:
        """The inverse of `words`. A number that no string has stands between two; the one before is given."""
        base, texts = len(self.alphabet) + 1, []
        for number in np.asarray(words).tolist():
            digits = []
            for _ in range(self.max_length):
                number, digit = divmod(number, base)
                digits.append(digit)
            digits.reverse()
            end = digits.index(0) if 0 in digits else len(digits)
            texts.append("".join(self.alphabet[digit - 1] for digit in digits[:end]))
        return texts

    @property
    def bounded(self) -> bool:
        """As of other universes: every word is below `size`."""
        return True

    def levels(self, branching: int | None) -> Levels:
        """The decomposition by prefixes, a level for each `branching` characters (1)."""
        step = whole_number("branching (characters a level)", 1 if branching is None else branching, 1, self.max_length)
        base = len(self.alphabet) + 1
        whole_number("the parts of an interval, (len(alphabet) + 1) ** branching,", base**step, 2, _MAX_BRANCHING)
        lengths = [*range(step, self.max_length, step), self.max_length]
        return Levels(self.size, tuple(base ** (self.max_length - length) for length in lengths))

    def occupied(self, nodes: Nodes, width: int) -> npt.NDArray[np.bool_]:
        """Which intervals of this width hold a string: a prefix does unless a character follows its end."""
        base, digits_left = len(self.alphabet) + 1, self.size // width
        valid, rest = nodes < digits_left, nodes
        followed = np.zeros(len(nodes), np.bool_)  # whether a character was met, from the prefix's end backwards
        while digits_left > 1:
            rest, digit = np.divmod(rest, base)
            valid &= (digit != 0) | ~followed
            followed |= digit != 0
            digits_left //= base
        return valid

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {"kind": "strings up to", "alphabet": self.alphabet, "max_length": self.max_length}


def ordered_universe(given: object) -> Universe | Strings:
    """A universe with an order: strings, a size, a range, or a list in its order; also from its description."""
    if isinstance(given, Strings):
        return given
    if isinstance(given, dict) and given.get("kind") == "strings up to":
        return Strings(given["alphabet"], given["max_length"])
    universe: Universe = Protocol.read_universe(given)
    if universe.size is None:
        raise ParameterError(
            "levels need a bounded universe: a size, a range, a list, or Strings(alphabet, max_length)"
        )
    return universe


def levels_of(universe: Universe | Strings, branching: int | None) -> Levels:
    """Levels in which an interval has `branching` parts (16); of strings, one for each `branching` characters (1)."""
    if isinstance(universe, Strings):
        return universe.levels(branching)
    size = universe.size
    assert size is not None
    d = whole_number("branching", 16 if branching is None else branching, 2, _MAX_BRANCHING)
    widths, width = [1], d
    while width < size:
        widths.append(width)
        width *= d
    return Levels(size, tuple(reversed(widths)))


def occupied(universe: Universe | Strings, nodes: Nodes, width: int) -> npt.NDArray[np.bool_]:
    """Which of the intervals [node * width, (node+1) * width) hold an item of the universe."""
    if isinstance(universe, Strings):
        return universe.occupied(nodes, width)
    assert universe.size is not None
    return nodes < -(-universe.size // width)


def _texts(items: Any, nulls: str) -> npt.NDArray[np.str_]:
    """A column of strings as an array of characters."""
    column = prepare_column(items)
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        return column
    values = values_of(column, nulls)
    if not all(isinstance(value, str) for value in values):
        raise DataError("the universe holds strings, but the column has items of another kind")
    if any(value.endswith("\0") for value in values):  # which NumPy would drop
        raise DataError("an item has a character that is not in the alphabet")
    return np.array(values, np.str_) if values else np.zeros(0, "U1")


@dataclass(frozen=True)
class Levels:
    """The levels of a decomposition from the coarsest down; `widths` has the length of a level's intervals.

    Interval `node` of a level is [node * width, (node+1) * width). The whole universe is no level: how many items there
    are in all is public. Each width divides the one before it, and the last is 1.
    """

    size: int
    widths: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.widths)

    def count(self, level: int) -> int:
        """How many intervals a level has."""
        return -(-self.size // self.widths[level])

    def nodes(self, words: Words, level: int) -> Words:
        """The intervals of a level that words lie in."""
        nodes: Words = words // np.uint64(self.widths[level])
        return nodes

    def children(self, nodes: Nodes, level: int) -> Nodes:
        """The intervals of a level inside the given ones of the level above; for level 0, all of them."""
        if level == 0:
            return np.arange(self.count(0), dtype=np.int64)
        parts = self.widths[level - 1] // self.widths[level]
        found = (nodes[:, None] * parts + np.arange(parts)).reshape(-1)
        return found[found < self.count(level)]

    def cover(self, low: int, high: int) -> list[Nodes]:
        """For each level the intervals that together make up [low, high): at most 2 (d - 1) of a level, and disjoint.

        Beyond the last element there is nothing, so a range up to there may be covered by intervals that reach further.
        """
        whole = self.widths[0] * self.count(0)
        pieces = [(low, whole if high >= self.size else high)] if low < high else []
        cover = []
        for level, width in enumerate(self.widths):
            nodes, rest = [np.zeros(0, np.int64)], []
            for start, end in pieces:
                first, last = -(-start // width), end // width
                if first < last:
                    nodes.append(np.arange(first, last, dtype=np.int64))
                    rest += [(start, first * width), (last * width, end)]
                else:
                    rest.append((start, end))
            pieces = [(start, end) for start, end in rest if start < end]
            found = np.concatenate(nodes)
            cover.append(found[found < self.count(level)])
        return cover


@dataclass(frozen=True, repr=False)
class HeavyItems:
    """The items whose estimated counts reach the threshold, largest first.

    `complete` is False when items may be missing, as the threshold is within the noise: more intervals looked heavy
    than were followed, or parties may have left out as much.
    """

    items: list[Any]
    estimates: Estimates
    threshold: float
    complete: bool

    @property
    def guarantee(self) -> Guarantee:
        """What every party was promised."""
        return self.estimates.guarantee

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"HeavyItems({len(self)} items, {self.guarantee.sentence()})"


@dataclass(frozen=True, repr=False)
class Quantile:
    """The item below or at which a share of all items lies; `lower` and `upper` are items too."""

    value: Any
    lower: Any
    upper: Any
    guarantee: Guarantee

    def __repr__(self) -> str:
        return f"Quantile(value={self.value!r}, lower={self.lower!r}, upper={self.upper!r})"


class HasParts(ABC):
    """Anyone who has unbiased counts of the parts of every level."""

    @property
    @abstractmethod
    def total(self) -> float:
        """How many items there are."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What every party was promised."""

    @abstractmethod
    def interval_counts(self, level: int, intervals: npt.ArrayLike) -> Estimates:
        """Unbiased counts of intervals of a level, by their numbers."""

    def sum_variance(self, level: int, intervals: npt.ArrayLike, counts: Estimates) -> float:
        """The variance of the sum of these counts of a level, at most: as if they all erred together."""
        return float(np.sqrt(counts.variances).sum()) ** 2

    def sum_of_parts(self, parts: Sequence[npt.ArrayLike], rest: bool, confidence: float) -> Estimate:
        """How many items lie in these parts of each level; or, with `rest`, in none of them.

        Variances are added up across levels; within one `sum_variance` says how far estimates err together.
        """
        total, variance, shortfall, excess = 0.0, 0.0, 0.0, 0.0
        for level, nodes in enumerate(parts):
            if np.size(nodes):
                counts = self.interval_counts(level, nodes)
                total += float(counts.values.sum())
                variance += self.sum_variance(level, nodes, counts)
                shortfall += counts.shortfall * np.size(nodes)
                excess += counts.excess * np.size(nodes)
        value = self.total - total if rest else total
        lower, upper = _bounds(np.array([value]), np.array([variance]), confidence, self.guarantee)
        below, above = (shortfall, excess) if rest else (excess, shortfall)
        return Estimate(value, float(lower[0]) - below, float(upper[0]) + above, self.guarantee)


class IntervalQuestions(HasParts):
    """Answers from unbiased counts of the intervals of every level, no matter who has them."""

    total_deviation: float = 0.0
    """The standard deviation of the total; 0 where it is public."""

    @property
    @abstractmethod
    def _ordered(self) -> tuple[Universe | Strings, Levels]:
        """The universe, and its intervals."""

    def range_count(self, low: Any, high: Any, confidence: float = 0.95) -> Estimate:
        """How many items lie from `low` to `high`, both included.

        The sum of the estimates of at most 2 (d - 1) intervals a level, or all items minus those of the rest if these
        are fewer and it is public how many there are: unbiased. It may be negative.

        Levels have noise of their own, so their variances are added up; how far estimates of one level err together
        says `sum_variance`.
        """
        universe, levels = self._ordered
        first, last = (int(word) for word in universe.words([low, high]))
        if first > last:
            raise ParameterError("low must not come after high")
        inside = levels.cover(first, last + 1)
        outside = [
            np.concatenate(pair)
            for pair in zip(levels.cover(0, first), levels.cover(last + 1, levels.size), strict=True)
        ]
        rest = self.total_deviation == 0 and sum(map(len, outside)) < sum(map(len, inside))
        return self.sum_of_parts(outside if rest else inside, rest, confidence)

    # ---- heavy hitters ---------------------------------------------------------------------------------------------

    def heavy_hitters(self, share: float, *, confidence: float = 0.95, max_candidates: int | None = None) -> HeavyItems:
        """The items that make up at least this share of all items.

        From the top down the intervals are followed whose counts may reach share * total, by the upper ends of their
        intervals of confidence; single items are listed if their estimates reach it.

        Args:
            share: phi, greater than 0 and less than 1.
            confidence: Of the intervals' bounds; higher follows more of them.
            max_candidates: How many intervals of a level are followed at most, the largest. By default 4/share, and at
                least 1000; no more than 1/share are heavy.
        """
        share = probability("share", share)
        most = max(1000, math.ceil(4 / share)) if max_candidates is None else max_candidates
        most = whole_number("max_candidates", most, 1, 2**24)
        threshold, complete = share * self.total, True
        (universe, levels), nodes = self._ordered, np.zeros(0, np.int64)
        for level, width in enumerate(levels.widths):
            nodes = levels.children(nodes, level)
            nodes = nodes[occupied(universe, nodes, width)]
            counts = self.interval_counts(level, nodes)
            if width > 1:
                _, upper = counts.bounds(confidence)
                kept = np.flatnonzero(upper >= threshold)
                if len(kept) > most:
                    complete = False
                    kept = kept[np.argsort(-counts.values[kept], kind="stable")[:most]]
                nodes = np.sort(nodes[kept])
        order = np.argsort(-counts.values, kind="stable")
        order = order[counts.values[order] >= threshold]
        chosen = Estimates(
            counts.values[order], counts.variances[order], self.guarantee, counts.shortfall, counts.excess
        )
        return HeavyItems(universe.items(nodes[order]), chosen, threshold, complete)

    # ---- quantiles -------------------------------------------------------------------------------------------------

    def quantile(self, share: float, confidence: float = 0.95) -> Quantile:
        """The first item such that it and all before it make up at least this share of all items.

        Quantiles come from one non-negative measure: the counts of an interval's parts are replaced by the nearest
        non-negative numbers that add up to the interval's own. So they never decrease when `share` grows.
        """
        if not (isinstance(share, (int, float)) and not isinstance(share, bool) and 0 <= share <= 1):
            raise ParameterError(f"share must be from 0 to 1, not {share!r}")
        probability("confidence", confidence)
        if self.total == 0:
            raise DataError("no items have arrived, so there is no quantile")
        target = share * self.total
        value = self._quantile(target)
        # The hull of what can hold the quantile, except with probability 1 - confidence over all comparisons.
        each = 1 - (1 - confidence) / len(self._ordered[1])
        low, high = (self._edge(target, share * self.total_deviation, each, last) for last in (False, True))
        value_item, lower, upper = self._ordered[0].items([value, min(low, value), max(high, value)])
        return Quantile(value_item, lower, upper, self.guarantee)

    def _parts(self, node: int, level: int) -> tuple[Nodes, Estimates]:
        """The parts of an interval of the level above, and their counts."""
        universe, levels = self._ordered
        nodes = levels.children(np.array([node]), level)
        nodes = nodes[occupied(universe, nodes, levels.widths[level])]
        return nodes, self.interval_counts(level, nodes)

    def _quantile(self, target: float) -> int:
        node, mass = 0, float(self.total)
        for level in range(len(self._ordered[1])):
            nodes, counts = self._parts(node, level)
            masses = on_simplex(counts.values, mass)
            # The first part that brings the sum to the target; rounding may leave the last one short of it.
            sums = np.cumsum(masses)
            reached = np.flatnonzero((sums >= target) & (masses > 0))
            place = int(reached[0]) if len(reached) else int(np.flatnonzero(masses > 0)[-1])
            target -= float(sums[place] - masses[place])
            node, mass = int(nodes[place]), float(masses[place])
        return node

    def _edge(self, target: float, slack: float, confidence: float, last: bool) -> int:
        """Go down from the outermost interval, the first or the last, that can hold the quantile to its outermost part
        that can.

        An interval can if the items up to its end may reach the target, and those before it may not. Where
        no part can, the quantile is beyond the interval, on the inner side. `slack` is the standard deviation of the
        target itself, which may err together with any count.
        """
        levels = self._ordered[1]
        node, before, variance = 0, 0.0, 0.0
        for level in range(len(levels)):
            nodes, counts = self._parts(node, level)
            ends = before + np.cumsum(counts.values)
            spreads = variance + np.cumsum(np.sqrt(counts.variances)) ** 2  # as for ranges
            starts = np.concatenate([[before], ends[:-1]])
            start_spreads = np.concatenate([[variance], spreads[:-1]])
            if level == 0:
                ends[-1], spreads[-1] = self.total, 0.0  # the target is a share of it
            _, upper = _bounds(ends, (np.sqrt(spreads) + slack) ** 2, confidence, self.guarantee)
            lower, _ = _bounds(starts, (np.sqrt(start_spreads) + slack) ** 2, confidence, self.guarantee)
            places = np.arange(len(nodes))
            possible = np.flatnonzero(
                (upper + counts.shortfall * (1 + places) >= target) & (lower - counts.excess * places <= target)
            )
            if not len(possible):
                width = levels.widths[level - 1]
                return min(max(node * width - 1 if last else (node + 1) * width, 0), levels.size - 1)
            place = int(possible[-1 if last else 0])
            node, before, variance = int(nodes[place]), float(starts[place]), float(start_spreads[place])
        return node


def _bounds(values: Numbers, variances: Numbers, confidence: float, guarantee: Guarantee) -> tuple[Numbers, Numbers]:
    return Estimates(values, variances, guarantee).bounds(confidence)
