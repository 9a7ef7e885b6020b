"""Whose rows count: a person once an item in the whole horizon, and for at most this many items. NOT private.

What counts of a person depends on that person's rows alone: the first `most` different items that they bring, each
at the tick at which it came first. So all rows of one person more or less change at most `most` counts, each by 1, at
one tick each: the neighbours that docs/privacy/people-over-time.md argues about. In a window each of these counts
goes up when the person comes with the item and down again when their last such row leaves the window.

People are told apart by their ids as they are, not by hashes of them: with hashes two people could be taken for one,
and then the presence of one would decide what counts of the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discreet.continual._base import State
from discreet.continual._factors import MAX_HORIZON
from discreet.errors import CorruptStateError, DataError, ParameterError
from discreet.noise.source import Integers
from discreet.privacy.checks import whole_number
from discreet.summaries.counters import ValuesSeen, wrap_counters
from discreet.summaries.people import among

_ITEM_BITS = 32
_MOST_ITEMS = 2**_ITEM_BITS
_INTEGER_TAG, _LAST_TAG = 2, 3  # of values of several kinds: text, bytes, an integer, a large one
_KINDS = ("none", "int64", "uint64", "string", "binary", "mixed")


class Again(NamedTuple):
    """Rows of pairs that have counted before."""

    pairs: Integers  # person and item in one number, in order
    items: Integers  # of those for which a visit begins that counts


class PeopleSeen:
    """Which items count of whom, the first `most` of a person. NOT private: it holds the ids of all people.

    A pair of a person and an item counts for ever. With a `window` it counts from a tick with such a row on, as long as
    one of the last `window` ticks had one: a visit. Of a pair the first `visits` visits count (None: all).
    """

    def __init__(self, most: int, window: int | None = None, visits: int | None = None) -> None:
        self.most, self.window, self.visits = most, window, visits
        self._ids = ValuesSeen("users")
        self._held = np.zeros(0, np.int64)  # by person: how many of their items have counted
        # Of people who may still bring items: person and item in one number, in order. Of others nothing more counts.
        self._pairs = np.zeros(0, np.int64)
        # With a window, by pair: the tick of its last row, and its visits, no more than one beyond those that count.
        self._last, self._visits = np.zeros((2, 0), np.int64)

    def number(self, users: Any, nulls: str) -> Integers:
        """A number for every row's person; -1 for rows of nobody. Numbers alone change nothing that counts."""
        return self._ids.of(users, nulls)

    def fresh(self, people: Integers, items: Integers) -> tuple[Integers, Integers]:
        """(people, items) of the rows that count: new pairs, the first ones of a person until they have `most`.

        Rows with a negative number on either side are left out. Nothing changes until `take`.
        """
        room = np.full(len(self._ids), self.most, np.int64)
        room[: len(self._held)] -= self._held
        rows = np.flatnonzero((people >= 0) & (items >= 0))
        rows = rows[room[people[rows]] > 0]
        if items.max(initial=0) >= _MOST_ITEMS:
            raise DataError(f"people over time can have at most 2**{_ITEM_BITS} different items")
        pairs, first = np.unique(people[rows] << _ITEM_BITS | items[rows], return_index=True)
        new = ~among(pairs, self._pairs)
        pairs, first = pairs[new], first[new]
        order = np.lexsort((first, pairs >> _ITEM_BITS))
        pairs = pairs[order]
        owners = pairs >> _ITEM_BITS
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        place = np.arange(len(owners)) - np.repeat(starts, np.diff(np.append(starts, len(owners))))
        pairs = pairs[place < room[owners]]
        return pairs >> _ITEM_BITS, pairs & (_MOST_ITEMS - 1)

    def take(self, people: Integers, items: Integers) -> None:
        """Remember that these pairs, which `fresh` gave, have counted."""
        held = np.bincount(people, minlength=len(self._ids)).astype(np.int64)
        held[: len(self._held)] += self._held
        self._held = held
        # Two runs in order: a stable sort merges them.
        pairs = np.sort(np.concatenate([self._pairs, np.sort(people << _ITEM_BITS | items)]), kind="stable")
        known, self._pairs = self._pairs, pairs[self._is_kept(held[pairs >> _ITEM_BITS])]
        if self.window is not None:
            old, last, visits = np.searchsorted(self._pairs, known), self._last, self._visits
            self._last, self._visits = np.zeros(len(self._pairs), np.int64), np.ones(len(self._pairs), np.int64)
            self._last[old], self._visits[old] = last, visits

    def again(self, people: Integers, items: Integers, tick: int) -> Again:
        """What rows of the open tick mean for pairs that have counted before: nothing, without a window."""
        if self.window is None:
            return Again(np.zeros(0, np.int64), np.zeros(0, np.int64))
        rows = np.flatnonzero((people >= 0) & (items >= 0))
        pairs = np.unique(people[rows] << _ITEM_BITS | items[rows])
        pairs = pairs[among(pairs, self._pairs)]
        places = np.searchsorted(self._pairs, pairs)
        begins = self._last[places] < tick - self.window
        counts = begins if self.visits is None else begins & (self._visits[places] < self.visits)
        return Again(pairs, pairs[counts] & (_MOST_ITEMS - 1))

    def came(self, again: Again, tick: int) -> None:
        """Remember what `again` said; after `take`."""
        if self.window is None:
            return
        places = np.searchsorted(self._pairs, again.pairs)
        self._visits[places] += self._last[places] < tick - self.window
        if self.visits is not None:
            np.minimum(self._visits, self.visits + 1, out=self._visits)
        self._last[places] = tick
        self._last[self._last == 0] = tick  # taken in this tick

    def left(self, tick: int) -> Integers:
        """The items of all pairs that count up to the tick before, and from this one on no longer."""
        if self.window is None or tick <= self.window:
            return np.zeros(0, np.int64)
        leaves = self._last == tick - self.window
        if self.visits is not None:
            leaves &= self._visits <= self.visits
        return np.asarray(self._pairs[leaves] & (_MOST_ITEMS - 1))

    def _is_kept(self, held: Integers) -> Any:
        if self.window is not None:
            return np.ones(len(held), bool)  # everybody may come back
        return held < self.most

    # ---- states ---------------------------------------------------------------------------------------------------

    @property
    def _held_type(self) -> str:
        return "<u1" if self.most < 2**8 else "<u2" if self.most < 2**16 else "<u8"

    @property
    def size(self) -> str:
        """What a state needs for people, in words that say nothing about how many there are."""
        each = 2 + np.dtype(self._held_type).itemsize
        pair = "" if self.most == 1 else ", 8 bytes a person and item"
        return f"{each} bytes and the id a person" + (pair if self.window is None else ", 24 bytes a person and item")

    def saved(self) -> State:
        """A part of a state. Not private."""
        kind, values, offsets, _, tags = self._ids.raw()
        if kind in ("int64", "uint64"):
            offsets = b""
        lengths = np.diff(np.frombuffer(offsets, np.int64)).astype("<u2") if offsets else np.zeros(0, "<u2")
        held = np.zeros(len(self._ids), self._held_type)
        held[: len(self._held)] = self._held
        header = {"kind": kind if len(self._ids) else "none", "number": len(self._ids), "most": self.most}
        blobs = {"ids": values, "lengths": lengths.tobytes(), "tags": tags, "held": held.tobytes()}
        visits = {} if self.window is None else {"last_ticks": self._last, "visits": self._visits}
        return State(header, {"pairs": self._pairs, **visits}, blobs)

    def load(self, state: State, items: int, tick: int) -> None:
        """The inverse of `saved`, before anybody came: for this many items, after this many ticks."""
        header, arrays, blobs = state
        most, number = self.most, header["number"]
        if header["most"] != most or not isinstance(number, int) or header["kind"] not in _KINDS:
            raise CorruptStateError("the state has people of another mechanism")
        held = np.frombuffer(blobs["held"], self._held_type).astype(np.int64)
        lengths = np.frombuffer(blobs["lengths"], "<u2")
        if header["kind"] in ("int64", "uint64"):
            ids: Any = np.frombuffer(blobs["ids"], header["kind"])
        else:
            offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            if len(lengths) != number or offsets[-1] != len(blobs["ids"]):
                raise CorruptStateError("the state has ids of another size")
            tags = np.frombuffer(blobs["tags"], np.uint8)
            if header["kind"] == "mixed" and (
                len(tags) != number or (tags > _LAST_TAG).any() or (lengths[tags >= _INTEGER_TAG] != 8).any()
            ):
                raise CorruptStateError("the state has ids of no kind")
            counts = np.zeros(number, np.int64).tobytes()
            ids = wrap_counters((header["kind"], blobs["ids"], offsets.tobytes(), counts, blobs["tags"])).items
        if len(ids) != number or (number and (self.number(ids, "skip") != np.arange(number)).any()):
            raise CorruptStateError("the state has damaged ids")
        pairs = arrays["pairs"]
        owners, places = pairs >> _ITEM_BITS, pairs & (_MOST_ITEMS - 1)
        whole = held.shape == (number,) and ((held >= 0) & (held <= most)).all()
        if not whole or pairs.ndim != 1 or (np.diff(pairs) <= 0).any():
            raise CorruptStateError("the state has damaged people")
        if len(pairs) and not (owners[0] >= 0 and owners[-1] < number and places.max() < items):
            raise CorruptStateError("the state has people or items that it does not know")
        if (np.bincount(owners, minlength=number) != np.where(self._is_kept(held), held, 0)).any():
            raise CorruptStateError("the state has people with other items than they have")
        self._held, self._pairs = held, pairs
        if self.window is not None:
            self._last, self._visits = arrays["last_ticks"], arrays["visits"]
            most_visits = tick + 1 if self.visits is None else self.visits + 1
            for numbers, largest in ((self._last, tick + 1), (self._visits, most_visits)):
                if numbers.shape != pairs.shape or (numbers < 1).any() or (numbers > largest).any():
                    raise CorruptStateError("the state has damaged visits")


def checked_window(window: int | None, max_visits: int | None, horizon: int | None) -> tuple[int | None, int | None]:
    """The window of people and how many visits of each count, if they go together."""
    if window is None:
        if max_visits is not None:
            raise ParameterError("max_visits needs a window: without one a person counts once, and for ever")
        return None, None
    whole_number("window", window, 1, MAX_HORIZON)
    if max_visits is not None:
        return window, whole_number("max_visits", max_visits, 1, MAX_HORIZON)
    if horizon is None:
        raise ParameterError(
            "a window of people needs a horizon or max_visits: noise must cover how often a person may come back"
        )
    return window, None


def assumed_of_visits(max_visits: int | None) -> tuple[str, ...]:
    """What a guarantee says of people who come more often."""
    if max_visits is None:
        return ()
    visits = "visit counts" if max_visits == 1 else f"{max_visits} visits count"
    return (f"people who come back more often are hidden, too: the first {visits}",)
