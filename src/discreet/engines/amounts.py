"""Numbers of rows, or of people's rows, in the bins of a public grid: what quantiles are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.central.quantile_grid import Grid, StepGrid
from discreet.engines.numbers import Numbers, plain_numbers, with_numbers
from discreet.events.assembly import Rows
from discreet.events.values import joined_keys

_AT_ONCE = 1 << 22


def counts_of_rows(found: Rows, grid: Grid | StepGrid) -> npt.NDArray[np.int64]:
    """How many of the rows, which have neither people nor groups, lie in every bin. NOT PRIVATE."""
    counts = np.zeros(grid.bins, np.int64)
    for _, _, amounts in found.parts():
        assert amounts is not None
        grid.add_to(counts, plain_numbers(amounts))
    return counts


def places_of_rows(found: Rows, place: Callable[[npt.NDArray[np.float64]], Any]) -> Iterator[Any]:
    """The bins of rows that have neither people nor groups, a few million at a time."""
    waiting, many = [np.zeros(0, np.int32)], 0
    for _, _, amounts in found.parts():
        assert amounts is not None
        numbers = plain_numbers(amounts)
        waiting.append(place(numbers[~np.isnan(numbers)]))
        many += len(amounts)
        if many >= _AT_ONCE:
            yield np.concatenate(waiting)
            waiting, many = [np.zeros(0, np.int32)], 0
    yield np.concatenate(waiting)


class Amounts:
    """The bin of every row, and whose row it is. NOT PRIVATE.

    Rows without a number (NaN) are left out, each by itself: a group that has no other rows does not occur.

    Attributes:
        places: The bins.
        people: A number from 0 for each row's person; None where rows have none.
        groups: The number of each row's group, and `keys` the groups by number, as `events.keys` has them; or None.
    """

    def __init__(self, found: Rows, place: Callable[[npt.NDArray[np.float64]], Any]) -> None:
        who = Numbers("people", tagged="user" in found.tagged)
        which, groups = Numbers("groups", tagged="item" in found.tagged, max_bytes=found.max_key_bytes), []
        places, owners, people = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], found.of_people
        for users, items, amounts in found.parts():
            assert amounts is not None
            numbers, users, items = with_numbers(amounts, users, items)
            good = np.ones(len(numbers), bool)
            if users is not None:
                owner = np.asarray(who.numbers(users))
                good &= owner >= 0
            if items is not None:
                group = np.asarray(which.numbers(items))
                good &= group >= 0
                groups.append(group[good])
            if users is not None:
                owners.append(owner[good])
            places.append(place(numbers[good]))
        self.places = np.concatenate(places)
        self.people = np.concatenate(owners) if people else None
        self.groups = np.concatenate(groups) if groups else None
        many = 0 if self.groups is None else int(self.groups.max(initial=-1)) + 1
        self.keys = which.values(np.arange(many)) if many else None

    def __repr__(self) -> str:
        return "Amounts(NOT PRIVATE)"

    def __add__(self, other: Amounts) -> Amounts:
        """With the rows of other people, or with other rows."""
        if not len(self.places) or not len(other.places):
            return self if len(self.places) else other
        both = copy(self)
        both.places = np.concatenate([self.places, other.places])
        if self.people is not None and other.people is not None:
            after = other.people + np.int32(int(self.people.max(initial=-1)) + 1)
            both.people = np.concatenate([self.people, after])
        if self.keys is not None and other.keys is not None:
            both.keys, at = joined_keys(self.keys, other.keys)
            both.groups = np.concatenate([at[: len(self.keys)][self.groups], at[len(self.keys) :][other.groups]])
        return both
