"""Strings as an ordered universe, and d-adic decompositions of ordered universes (levels of equal intervals).

Everything here is public: a function of the parameters and of what is asked, never of what a party holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, ParameterError
from discreet.events.items import item_of, prepare_column, values_of
from discreet.events.universe import Universe, Words
from discreet.multiparty._base import Protocol
from discreet.privacy.checks import whole_number

__all__ = ["Decomposition", "Levels", "Strings", "levels_of", "occupied", "ordered_universe"]

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
            raise ParameterError("alphabet must not have a character twice")
        whole_number("max_length", self.max_length, 1, 62)
        whole_number("the size of the domain, (len(alphabet) + 1) ** max_length,", self.size, 1, _MAX_SIZE)

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
        raise DataError("the universe has strings, the column has items of another kind")
    if any(value.endswith("\0") for value in values):  # which NumPy would drop
        raise DataError("an item has a character that is not in the alphabet")
    return np.array(values, np.str_) if values else np.zeros(0, "U1")


class Decomposition(ABC):
    """Levels of parts: every word is in one part of each level, and the parts of the last level are single words."""

    @abstractmethod
    def __len__(self) -> int:
        """How many levels there are."""

    @abstractmethod
    def count(self, level: int) -> int:
        """How many parts a level has."""

    @abstractmethod
    def nodes(self, words: Words, level: int) -> Words:
        """The parts of a level that words lie in."""


@dataclass(frozen=True)
class Levels(Decomposition):
    """The levels of a decomposition from the coarsest down; `widths` has the length of a level's intervals.

    Interval `node` of a level is [node * width, (node+1) * width). The whole domain is no level: how many items there
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
