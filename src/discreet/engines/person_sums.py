"""Sums over the rows of people, by group: what counts, sums, means and variances of people are drawn from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet._data_class import dataclass
from discreet.engines.exact_people import MemoryPeople, PairSums
from discreet.engines.numbers import Numbered, NumberedRows, Numbers, with_numbers
from discreet.events.ahead import available_cores
from discreet.events.values import joined_keys
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import LENGTH, MOST_STEPS, Counts

if TYPE_CHECKING:
    from discreet.events.assembly import Rows


class Coordinates(PairSums):
    """What people's rows add up to: of place * parts + part, the part of the sums of the group at that place.

    NOT private. Places are known: those of a public list, or of groups that were discovered.
    """

    def __init__(self, pairs: _native.Pairs, parts: int, many: int) -> None:
        self._pairs, self._parts, self._many = pairs, parts, many
        self.numbers = np.arange(many)  # of the groups, by place

    def __repr__(self) -> str:
        return "Coordinates() [NOT PRIVATE]"

    def discovery_weights(self, most_items: int) -> Counts:
        raise NotImplementedError("groups are discovered, and not their sums")

    aimed_weights = discovery_weights  # type: ignore[assignment]

    def items(self, places: Counts) -> pa.Array:
        return pa.array(places, pa.int64())

    def _index(self, places: Counts) -> npt.NDArray[np.int32]:
        index = np.full(max(self._many * self._parts, 1), -1, np.int32)
        group, part = np.divmod(places, self._parts)
        index[self.numbers[group] * self._parts + part] = np.arange(len(places), dtype=np.int32)
        return index


@dataclass(frozen=True, repr=False)
class PersonSums:
    """People, the groups they are in, and what their rows add up to there. NOT private.

    Attributes:
        coordinates: The sums.
        groups: Who is in which group; None where all groups are known.
    """

    coordinates: Coordinates
    groups: MemoryPeople | None = None

    def __repr__(self) -> str:
        return "PersonSums() [NOT PRIVATE]"

    def discovered(self, places: Counts) -> Coordinates:
        """The sums of groups at these places of `groups`, which has numbers of its own for them."""
        if self.groups is not None:
            self.coordinates.numbers = self.groups.numbers_at(places)
        return self.coordinates


def people_in_groups(owners: npt.NDArray[Any], groups: npt.NDArray[Any], many: int) -> MemoryPeople:
    """Who is in which of groups that are numbered from 0: what they are discovered from."""
    numbers = Numbers("groups")
    numbers.numbers(pa.array(np.arange(many)))
    rows = deque([NumberedRows(owners.astype(np.int32), groups.astype(np.int32), None)])
    return MemoryPeople(rows, numbers, _native.Pairs.Entry.present, 1, available_cores())


def person_sums(found: Rows, moment: ValueMoment) -> PersonSums:
    """The sums of rows that say whose they are; of a "count", who is in which group.

    Rows without a number (NaN) are left out, each by itself. All of it is in memory; of rows elsewhere what every
    person has in every group.
    """
    listed = _listed(found)
    groups = Numbers("groups", tagged="item" in found.tagged, max_bytes=found.max_key_bytes)
    if found.elsewhere is None:
        rows = _numbered(found, moment, groups)
    else:
        gathered = found.gathered(partial(PersonRows.of, moment=moment), apart="user")
        groups.numbers(gathered.keys)
        rows = iter([(gathered.owners, gathered.places, gathered.entries)])
    kept = deque[NumberedRows]()
    present, threads = moment.kind == "count", available_cores()
    entry = _native.Pairs.Entry.present if present else _native.Pairs.Entry.sums
    pairs = _native.Pairs(entry, LENGTH, 1 if present else MOST_STEPS, threads)
    most = -1
    for owners, places, entries in rows:
        most = max(most, int(places.max(initial=-1)))
        for part in range(moment.parts):
            pairs.add(
                owners, places * np.int32(moment.parts) + np.int32(part), None if present else entries[:, part].copy()
            )
        if listed is None:
            kept.append(NumberedRows(owners, places, None))
    pairs.group()
    coordinates = Coordinates(pairs, moment.parts, listed or most + 1)
    if listed is not None:
        return PersonSums(coordinates)
    return PersonSums(coordinates, MemoryPeople(kept, groups, _native.Pairs.Entry.present, 1, threads))


def _listed(found: Rows) -> int | None:
    """How many groups there are, where that is known."""
    keys = found.keys
    return 1 if keys is None or not keys.by else keys.many_groups


def _numbered(found: Rows, moment: ValueMoment, groups: Numbers) -> Iterator[tuple[Numbered, Numbered, Counts]]:
    """(whose, in which group, what it adds) of every row that has a number."""
    users = Numbers("people", tagged="user" in found.tagged)
    keys, listed = found.keys, _listed(found)
    for who, items, amounts in found.parts():
        assert who is not None
        values, who, items = (np.zeros(len(who)), who, items) if amounts is None else with_numbers(amounts, who, items)
        owners = np.asarray(users.numbers(who))
        if items is None:
            places = np.zeros(len(owners), np.int32)
        elif listed is None:
            places = np.asarray(groups.numbers(items))
        else:
            assert keys is not None
            places = keys.listed_at(items).astype(np.int32)
        good = (owners >= 0) & (places >= 0)
        yield owners[good], places[good], moment.entries(values[good])


@dataclass(frozen=True, repr=False)
class PersonRows:
    """What people have in groups, once for each, as numbers: of some people, to which others can be added. NOT private.

    Attributes:
        owners: A number for each person.
        places: The group: its place in a public list, or in `keys`.
        entries: What the person's rows add up to there.
        keys: The groups, where no list says them.
    """

    owners: Numbered
    places: Numbered
    entries: Counts
    keys: pa.Array

    @classmethod
    def of(cls, found: Rows, moment: ValueMoment) -> PersonRows:
        groups = Numbers("groups", tagged="item" in found.tagged, max_bytes=found.max_key_bytes)
        parts = [*_numbered(found, moment, groups)]
        owners, places = (np.concatenate([np.zeros(0, np.int32), *(part[at] for part in parts)]) for at in (0, 1))
        pairs, back = np.unique(owners.astype(np.int64) << 32 | places, return_inverse=True)
        entries = np.zeros((len(pairs), moment.parts), np.int64)
        np.add.at(entries, back, np.concatenate([entries[:0], *(part[2] for part in parts)]))
        keys = groups.values(np.arange(int(places.max(initial=-1)) + 1 if _listed(found) is None else 0))
        return cls((pairs >> 32).astype(np.int32), pairs.astype(np.int32), entries, keys)

    def in_order(self) -> PersonRows:
        """The same, with groups in the order of their keys."""
        return self + PersonRows(self.owners[:0], self.places[:0], self.entries[:0], self.keys[:0])

    def __add__(self, other: PersonRows) -> PersonRows:
        keys, places = joined_keys(self.keys, other.keys)
        mine, more = (self.places, other.places) if not len(keys) else (
            places[: len(self.keys)][self.places], places[len(self.keys) :][other.places]
        )  # fmt: skip
        after = other.owners + np.int32(int(self.owners.max(initial=-1)) + 1)
        return PersonRows(
            np.concatenate([self.owners, after]),
            np.concatenate([mine, more]).astype(np.int32),
            np.concatenate([self.entries, other.entries]),
            keys,
        )
