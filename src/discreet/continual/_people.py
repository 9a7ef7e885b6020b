"""Whose rows count: a person once an item in the whole horizon, and for at most this many items. NOT private.

What counts of a person depends on that person's rows alone: the first `most` different items that they bring, each
at the tick at which it came first. So all rows of one person more or less change at most `most` counts, each by 1, at
one tick each: the neighbours that docs/privacy/people-over-time.md argues about.

People are told apart by their ids as they are, not by hashes of them: with hashes two people could be taken for one,
and then the presence of one would decide what counts of the other.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.continual._state import State
from discreet.errors import CorruptStateError, DataError
from discreet.events.items import (
    DEFAULT_MAX_KEY_BYTES,
    arrow_chunks,
    is_arrow,
    is_several,
    item_of,
    listed,
    prepare_column,
    skip_nulls,
)
from discreet.summaries._base import wrap_counters

Integers = npt.NDArray[np.int64]

_ITEM_BITS = 32
_MOST_ITEMS = 2**_ITEM_BITS
_INTEGER_TAG, _LAST_TAG = 2, 3  # of values of several kinds: text, bytes, an integer, a large one
_KINDS = ("none", "int64", "uint64", "string", "binary", "mixed")


class ValuesSeen:
    """Values of any kind that may be an item, by numbers in the order of their first appearance. NOT private."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._native = _native.Interner(DEFAULT_MAX_KEY_BYTES, secrets.randbits(64), True)

    def __len__(self) -> int:
        return self._native.size

    def of(self, column: Any, nulls: str) -> Integers:
        """The number of every row; -1 for a null that is skipped, and for what cannot be an item."""
        skip, prepared = skip_nulls(nulls), prepare_column(column)
        if not is_arrow(prepared) and not isinstance(prepared, np.ndarray):
            prepared = listed(prepared, self._role)
            if not skip and any(value is None for value in prepared):
                raise DataError(f'the {self._role} have nulls; pass nulls="skip" to leave those rows out')
            # The native reader drops objects that cannot be items; here each row must keep its place.
            skip, prepared = True, [None if value is None else item_of(value) for value in prepared]
        try:
            return np.frombuffer(self._native.number(prepared, skip), np.int32).astype(np.int64)
        except DataError as error:
            raise DataError(f"{self._role}: {error}") from None

    def raw(self) -> tuple[str, bytes, bytes, bytes, bytes]:
        """All values as raw counters, by number."""
        return self._native.keys(range(len(self)))

    def column(self) -> pa.Array:
        """All values, by number."""
        return wrap_counters(self.raw()).items


class PeopleSeen:
    """Which items count of whom. NOT private: it holds the ids of all people.

    Args:
        most: How many items of a person count.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._ids = ValuesSeen("users")
        self._held = np.zeros(0, np.int64)  # by person: how many of their items have counted
        # Of people who may still bring items: person and item in one number, in order. Of others nothing more counts.
        self._pairs = np.zeros(0, np.int64)

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
        new = ~_within(self._pairs, pairs)
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
        self._pairs = pairs[held[pairs >> _ITEM_BITS] < self.most]

    # ---- states ---------------------------------------------------------------------------------------------------

    @property
    def _held_type(self) -> str:
        return "<u1" if self.most < 2**8 else "<u2" if self.most < 2**16 else "<u8"

    @property
    def size(self) -> str:
        """What a state needs for people, in words that say nothing about how many there are."""
        each = 2 + np.dtype(self._held_type).itemsize
        return f"{each} bytes and the id a person" + ("" if self.most == 1 else ", 8 bytes a person and item")

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
        return State(header, {"pairs": self._pairs}, blobs)

    @classmethod
    def loaded(cls, state: State, most: int, items: int) -> PeopleSeen:
        """The inverse of `saved`, for the `most` and the number of items of the mechanism."""
        header, arrays, blobs = state
        people, number = cls(most), header["number"]
        if header["most"] != most or not isinstance(number, int) or header["kind"] not in _KINDS:
            raise CorruptStateError("the state has people of another mechanism")
        held = np.frombuffer(blobs["held"], people._held_type).astype(np.int64)
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
        if len(ids) != number or (number and (people.number(ids, "skip") != np.arange(number)).any()):
            raise CorruptStateError("the state has damaged ids")
        pairs = arrays["pairs"]
        owners, places = pairs >> _ITEM_BITS, pairs & (_MOST_ITEMS - 1)
        whole = held.shape == (number,) and ((held >= 0) & (held <= most)).all()
        if not whole or pairs.ndim != 1 or (np.diff(pairs) <= 0).any():
            raise CorruptStateError("the state has damaged people")
        if len(pairs) and not (owners[0] >= 0 and owners[-1] < number and places.max() < items):
            raise CorruptStateError("the state has people or items that it does not know")
        if (np.bincount(owners, minlength=number) != np.where(held < most, held, 0)).any():
            raise CorruptStateError("the state has people with other items than they have")
        people._held, people._pairs = held, pairs
        return people


def _within(known: Integers, asked: Integers) -> npt.NDArray[np.bool_]:
    """Which of `asked` are in `known`; both are in order."""
    if not len(known):
        return np.zeros(len(asked), bool)
    places = np.searchsorted(known, asked)
    return np.asarray(known[np.minimum(places, len(known) - 1)] == asked)


def person_rows(items: Any) -> tuple[Any, Integers | None, int | None]:
    """(items, rows, length): a column for `ValuesSeen`, and of lists which of their `length` rows each item is of."""
    from discreet.continual._events import flattened

    column = prepare_column(items)
    nested = False
    if is_arrow(column):
        chunks = list(arrow_chunks(column))
        column = pa.chunked_array(chunks) if chunks else column
        nested = any(pa.types.is_nested(chunk.type) for chunk in chunks)
    elif is_several(column) and not isinstance(column, np.ndarray):
        column = list(column)
        nested = any(map(is_several, column))
    return (*flattened(column), len(column)) if nested else (column, None, None)
