"""Pairs and triples of chosen items as the items of people. NOT private."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.events.values import item_order, published_type, taken
from discreet.summaries.people import Counts, People, scaled

if TYPE_CHECKING:
    import pyarrow as pa

MOST_COMBINATIONS = 2**20
"""How many combinations are counted at most: pairs of 1,448 items, triples of 185."""
_AT_ONCE = 2**20  # combinations of a batch of people
_KEPT = 2**13  # combinations of one person; of more they are listed anew, as they take memory
_Matrix = npt.NDArray[np.int64]


@lru_cache
def most_of(size: int) -> int:
    """Of how many items all combinations of this size are counted at most."""
    many = size
    while math.comb(many + 1, size) <= MOST_COMBINATIONS:
        many += 1
    return many


class Combinations(People):
    """People whose items are combinations: the pairs, or triples, that a person has of a few chosen items.

    A combination is a set: its items are different, and stand in the order of items. Anyone who has m of the chosen
    items has C(m, size) combinations, once each. Their places count all combinations of the chosen items, also those
    that nobody has: c_1 < c_2 < ... is at C(c_1, 1) + C(c_2, 2) + ..., so that places follow from the chosen items
    alone.

    Nothing is kept of what people have of them: every method passes over the people, a batch at a time.

    Args:
        people: Who has what.
        places: The chosen items, a function of what is public.
        size: How many items a combination has.
    """

    def __init__(self, people: People, places: Counts, size: int) -> None:
        names = published_type(people.items(places))
        values = names.to_pylist()
        self._order = np.array(sorted(range(len(values)), key=lambda index: item_order(values[index])), np.int64)
        self._people, self._size = people, size
        self._chosen, self._names = places[self._order], taken(names, self._order)
        self.total = math.comb(len(places), size)
        """How many combinations there are."""

    def __repr__(self) -> str:
        return "Combinations() [NOT PRIVATE]"

    def discovery_weights(self, most_items: int) -> Counts:
        """The same for every combination, whether or not somebody has it, and for all that a person has.

        Which combinations there are follows from the chosen items, so that none tells of its owner by being there: no
        more of a person's than `most_items` are left out.
        """
        return self.scaled_sums(np.arange(self.total), np.ones(self.total, np.int64), 1.0)

    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        return self.scaled_sums(np.arange(self.total), aims, 1.0)

    def products(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """For every combination the product of its items' numbers, which are in the order of the places given."""
        indices = self._indices(np.arange(self.total))
        product = np.ones(self.total)
        for index in indices:
            product *= numbers[self._order[index]]
        return product

    def items(self, places: Counts) -> pa.Array:
        import pyarrow as pa

        columns = [taken(self._names, index) for index in self._indices(places)]
        return pa.StructArray.from_arrays(columns, [f"item_{place + 1}" for place in range(self._size)])

    def _indices(self, places: Counts) -> list[Counts]:
        """The items of combinations, by their indices: the first of each, the second, ..."""
        rest, indices = np.array(places, np.int64), []
        for many in range(self._size, 0, -1):  # the last item is the largest c with C(c, many) <= rest
            below = _binomials(len(self._chosen), many)
            index = np.maximum(np.searchsorted(below, rest, side="right") - 1, 0)
            rest = rest - below[index] if len(rest) else rest
            indices.append(index)
        return indices[::-1]

    def lengths(self, places: Counts, weights: Counts) -> tuple[npt.NDArray[np.float64], Counts]:
        found: dict[float, int] = {}
        for _, _, squared in self._vectors(places, weights):
            values, people = np.unique(squared[squared > 0], return_counts=True)
            for value, many in zip(values.tolist(), people.tolist(), strict=True):
                found[value] = found.get(value, 0) + many
        lengths = sorted(found)
        return np.array(lengths, np.float64), np.array([found[length] for length in lengths], np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        sums = np.zeros(len(places) + 1, np.int64)
        for index, values, squared in self._vectors(places, weights):
            there = np.flatnonzero(squared > 0)
            if len(there):
                entries = scaled(values[there], squared[there, None], longest)
                # Whole numbers below 2^53, so that adding up floats is exact.
                added = np.bincount(index[there].ravel(), entries.ravel(), len(sums))
                sums += added.astype(np.int64)
        return sums[:-1]

    def _vectors(self, places: Counts, weights: Counts) -> Iterator[tuple[_Matrix, _Matrix, npt.NDArray[np.float64]]]:
        """(index into places, entry) of every combination that people of a batch have, and their squared lengths.

        Whatever is not among the places has the last index, and no entry.
        """
        where = np.full(self.total, len(places), np.int64)
        where[places] = np.arange(len(places))
        entry = np.append(weights, 0)
        for held in self._batches():
            index = where[held]
            values = entry[index]
            yield index, values, np.sum(values**2, axis=1).astype(np.float64)  # below 2^53: they are exact

    def _batches(self) -> Iterator[_Matrix]:
        """The places of the combinations that people have, a row a person; everybody in a batch has equally many."""
        binomials = [_binomials(len(self._chosen), many) for many in range(1, self._size + 1)]
        for sizes, indices in self._people.holdings(self._chosen):
            starts = np.cumsum(sizes) - sizes
            for m in np.unique(sizes[sizes >= self._size]).tolist():
                chosen = (_few_subsets if math.comb(m, self._size) <= _KEPT else _subsets)(m, self._size)
                first = starts[sizes == m]
                step = max(1, _AT_ONCE // chosen.shape[1])
                for start in range(0, len(first), step):
                    rows = indices[first[start : start + step, None] + np.arange(m)]
                    places = np.zeros((len(rows), chosen.shape[1]), np.int64)
                    for below, which in zip(binomials, chosen, strict=True):
                        places += below[rows[:, which]]
                    yield places


def _binomials(many: int, size: int) -> Counts:
    """C(c, size) for c = 0, ..., many - 1."""
    return np.array([math.comb(c, size) for c in range(many)], np.int64)


def _subsets(many: int, size: int) -> _Matrix:
    """The subsets of this many places, one a column, each in order."""
    if size == 2:
        return np.array(np.triu_indices(many, 1), np.int64)
    listed = itertools.chain.from_iterable(itertools.combinations(range(many), size))
    columns: _Matrix = np.fromiter(listed, np.int64, size * math.comb(many, size)).reshape(-1, size).T
    return np.ascontiguousarray(columns)


_few_subsets = lru_cache(maxsize=128)(_subsets)
