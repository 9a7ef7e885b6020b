"""People and their items, counted exactly: what the releases that protect people are drawn from. NOT private."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.events.samples import mixed

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.summaries.combinations import Combinations

Counts = npt.NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)
Holdings = tuple[Counts, Counts]
"""How many of some items each of some people has, and the indices of these, one person after the other."""

LENGTH = 2**24
"""The length, in steps of the lattice, that no person's vector exceeds. Vectors are whole numbers of steps."""
MOST_ROWS = 2**20
"""Of the rows that one person has with one item at most this many count."""
MOST_STEPS = 2**40
"""Of the values of one person's rows with one item at most this many steps count: a million times the largest value."""
_WHOLE = float(LENGTH - 1)  # what is divided: the difference covers every rounding of the division


@dataclass(frozen=True)
class ValueRange:
    """The public range of the values of rows, and the steps in which they are summed.

    A value counts as at least `low` and at most `high`, in steps of high/2^20: whole numbers of them are added up.

    Args:
        low: At least 0: a negative value would raise the sum of a person who is scaled down, so that no bound held.
        high: Above `low`, and from 1 to 2^32: sums are published in whole numbers.
    """

    low: float
    high: float

    STEPS: ClassVar[int] = 2**20

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if not all(isinstance(end, (int, float, np.number)) and not isinstance(end, bool) for end in ends):
            raise ParameterError("the range of values is two numbers, LOW and HIGH")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and 0 <= self.low < self.high):
            raise ParameterError(
                f"the range of values must have 0 <= LOW < HIGH, got {self.low:g} to {self.high:g}; negative values "
                "are not supported here; shift them, or sum gains and losses separately"
            )
        if not 1 <= self.high <= 2**32:
            raise ParameterError(
                f"HIGH must be from 1 to 2**32, got {self.high:g}: sums are whole numbers, so use a smaller or "
                "larger unit for the values"
            )

    def steps(self, values: npt.NDArray[np.float64]) -> Counts:
        """Values, cut to the range, in whole steps."""
        cut = np.clip(values, self.low, self.high)
        return np.asarray(np.rint(cut * (self.STEPS / self.high)), dtype=np.int64)


class People(abc.ABC):
    """Which person has which items, and how often. NOT private.

    One person is one vector over the items, and every method gives a sum over people of vectors of whole numbers whose
    euclidean length is at most `LENGTH`, or a count of people: adding or removing a person moves what is returned by
    one such vector, or one count by one. Items are known by their places, 0, 1, ... in an order of the engine's own.

    All of it is exact in whole numbers: it does not depend on how an engine splits the work.
    """

    @abc.abstractmethod
    def discovery_weights(self, most_items: int) -> Counts:
        """For every item that somebody has: the sum of its people's weights.

        A person with d items gives each trunc(LENGTH/sqrt(d)); of more than `most_items` different ones it has that
        many take part, chosen without regard to other people.
        """

    @abc.abstractmethod
    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        """The same for people who give more to some items: after `discovery_weights`, for the places that it gave.

        A person with the items x that took part gives each trunc(LENGTH aim_x/|aim|), aim_x at least 1. These are the
        items of their own choice and no others: what other people chose must not change what this person gives.
        """

    @abc.abstractmethod
    def items(self, places: Counts) -> pa.Array:
        """The items at these places."""

    group_of: Callable[[pa.Array], Counts] | None = None
    """Numbers the groups of items, where these are in groups."""

    def groups(self, places: Counts) -> Counts:
        """A number for the group of each of these items."""
        return np.zeros(len(places), np.int64) if self.group_of is None else self.group_of(self.items(places))

    def holdings(self, places: Counts) -> Iterator[Holdings]:
        """Who has which of these items, people by people: for each how many of them, and their indices in `places`.

        Batches of whole people: (how many each of them has, the indices of one person after the other, ascending).
        People who have none may be left out. What one person has is in one batch, once.
        """
        raise IncompatibleSummaryError(f"{type(self).__name__} does not say which items people have together")

    def combinations(self, places: Counts, size: int) -> Combinations:
        """The same people with the pairs, or triples, that they have of these items."""
        from discreet.summaries.combinations import Combinations

        return Combinations(self, places, size)

    @abc.abstractmethod
    def lengths(self, places: Counts, weights: Counts) -> tuple[npt.NDArray[Any], Counts]:
        """(squared lengths, how many people have each): of the vectors v = weight * (1, rows or steps) over the items.

        They are exact whole numbers, rounded to floats where they are large. Vectors of length 0 are left out.
        """

    @abc.abstractmethod
    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        """For each of these items the sum over people of trunc(LENGTH v / max(longest, |v|))."""


def discovery_weight(items: npt.NDArray[Any]) -> Counts:
    """What a person with this many items gives each of them: trunc(LENGTH/sqrt(d)), rounded down."""
    return np.asarray(np.floor(_WHOLE / np.sqrt(items)), dtype=np.int64)


def scaled(values: npt.NDArray[Any], squared_lengths: npt.NDArray[Any], longest: float) -> Counts:
    """Entries of vectors scaled to length at most `LENGTH`; a vector of length `longest` or less keeps its shape."""
    return np.asarray(np.trunc(_WHOLE * values / np.maximum(np.sqrt(squared_lengths), longest)), dtype=np.int64)


def by_person(owners: npt.NDArray[Any], indices: npt.NDArray[Any]) -> Holdings:
    """Rows of people and indices, both below 2^31, as `People.holdings` has them; negative indices are left out."""
    there = indices >= 0
    rows = each_once((owners[there].astype(np.int64) << 32) | indices[there].astype(np.int64))
    _, sizes = np.unique(rows >> 32, return_counts=True)
    return sizes.astype(np.int64), rows & (2**32 - 1)


def each_once(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Numbers in ascending order, each once. (np.unique hashes them first, or loads numpy.ma.)"""
    if not (numbers[1:] > numbers[:-1]).all():
        numbers = np.sort(numbers)
        numbers = numbers[np.append(True, numbers[1:] != numbers[:-1])]
    return numbers


def among(numbers: npt.NDArray[Any], known: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which of the numbers are among those known, which are in order."""
    if not len(known):
        return np.zeros(len(numbers), bool)
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.asarray(known[places] == numbers)


class ListedPeople(People):
    """People given as lists of items, in memory: for small data, tests and audits. NOT private.

    Args:
        people: For every person the items of their rows, in any order.
        rows: Whether vectors say how often a person has an item, instead of whether.
        values: For every person the values of their rows: vectors say what those with an item add up to.
        value_range: What one of them counts at least and at most.
        choice: Seeds the choice of items of a person who has too many.
    """

    def __init__(
        self,
        people: Iterable[Sequence[Any]],
        *,
        rows: bool = False,
        values: Iterable[Sequence[float]] | None = None,
        value_range: ValueRange | None = None,
        choice: int = 0,
    ) -> None:
        import pyarrow as pa

        lists = [list(items) for items in people]
        flat = [item for items in lists for item in items]
        encoded = pa.array(flat).dictionary_encode() if flat else None
        self._names = pa.array([], pa.large_string()) if encoded is None else encoded.dictionary
        places = np.zeros(0, np.int64) if encoded is None else np.asarray(encoded.indices).astype(np.int64)
        owner = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
        pairs, back, times = np.unique(
            owner * max(len(self._names), 1) + places, return_inverse=True, return_counts=True
        )
        self._owner, self._place = np.divmod(pairs, max(len(self._names), 1))
        self._times = np.minimum(times, MOST_ROWS) if rows else np.ones_like(times)
        if values is not None and value_range is not None:
            sums = np.zeros(len(pairs), np.int64)
            np.add.at(sums, back, value_range.steps(np.array([value for row in values for value in row], np.float64)))
            self._times = np.minimum(sums, MOST_STEPS)
        self._choice = choice

    def __repr__(self) -> str:
        return "ListedPeople() [NOT PRIVATE]"

    def discovery_weights(self, most_items: int) -> Counts:
        part = self._taking_part(most_items)
        owner = self._owner[part]
        weight = discovery_weight(np.bincount(owner)[owner] if len(owner) else owner)
        return np.asarray(np.bincount(self._place[part], weight, len(self._names)), dtype=np.int64)

    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        part = self._taking_part(most_items)
        owner, place = self._owner[part], self._place[part]
        values, sums = aims[place], np.zeros(len(self._names), np.int64)
        squared = np.bincount(owner, values.astype(np.float64) ** 2)  # whole numbers below 2^53
        np.add.at(sums, place, scaled(values, squared[owner], 1.0))
        return sums

    def _taking_part(self, most_items: int) -> npt.NDArray[np.bool_]:
        """Which pairs of a person and an item take part in discovery."""
        from hashlib import blake2b  # loads OpenSSL, too

        d = np.bincount(self._owner) if len(self._owner) else np.zeros(0, np.int64)
        # Which of too many take part is decided by this person's items together: nobody else's may matter, and people
        # with other items choose anew.
        keys = [
            blake2b(repr((self._choice, name)).encode(), digest_size=8).digest() for name in self._names.to_pylist()
        ]
        key = np.frombuffer(b"".join(keys), np.uint64)[self._place]
        own = np.zeros(len(d), np.uint64)
        np.bitwise_xor.at(own, self._owner, key)
        key = mixed(own[self._owner], key)
        order = np.lexsort((key, self._owner))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(d) - d, d)
        return np.asarray(rank < most_items)

    def items(self, places: Counts) -> pa.Array:
        return self._names.take(places)

    def holdings(self, places: Counts) -> Iterator[Holdings]:
        where = np.full(len(self._names), -1, np.int64)
        where[places] = np.arange(len(places))
        yield by_person(self._owner, where[self._place])

    def lengths(self, places: Counts, weights: Counts) -> tuple[npt.NDArray[np.float64], Counts]:
        _, squared = self._vectors(places, weights)[2:]
        values, counts = np.unique(squared[squared > 0], return_counts=True)
        return values, counts.astype(np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        owner, index, values, squared = self._vectors(places, weights)
        there = squared[owner] > 0
        owner, index, values = owner[there], index[there], values[there]
        entries = scaled(values, squared[owner], longest)
        sums = np.zeros(len(places), np.int64)
        np.add.at(sums, index, entries)
        return sums

    def _vectors(self, places: Counts, weights: Counts) -> tuple[Counts, Counts, Counts, npt.NDArray[np.float64]]:
        """(person, index into places, entry) of the vectors over these places, and every person's squared length."""
        where = np.full(len(self._names), -1, np.int64)
        where[places] = np.arange(len(places))
        index = where[self._place]
        there = index >= 0
        owner, index = self._owner[there], index[there]
        values = self._times[there] * weights[index]
        fits = float(values.max(initial=0)) ** 2 * len(values) < 2**62  # else whole numbers of any size
        squared = np.zeros(int(self._owner.max(initial=-1)) + 1, np.int64 if fits else object)
        np.add.at(squared, owner, (values if fits else values.astype(object)) ** 2)
        return owner, index, values, squared.astype(np.float64)
