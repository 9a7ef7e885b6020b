"""The events of a tick: how many of them contain each item."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import DataError
from discreet.events.items import (
    Item,
    all_utf8,
    arrow_chunks,
    is_arrow,
    is_several,
    item_of,
    item_of_bytes,
    listed,
    prepare_column,
    read,
    row_items,
    without_views,
)
from discreet.events.samples import encoded
from discreet.noise.source import Integers
from discreet.summaries import ExactCounts
from discreet.summaries.counters import ValuesSeen


def event_counts(
    events: Any, most: int | None, domain: Container[Any] | None = None, first: Container[Any] = ()
) -> tuple[pa.Array, Integers]:
    """(items, counts) of the sets of items in `events`: an Arrow list column or an iterable of iterables.

    A plain column, or an iterable of int, str or bytes, holds events of one item each. Of an event the items outside
    the domain are left out, then repeated ones, then all but the first `most`, those in `first` before the others: what
    is left depends on it alone, and on the arguments.
    """
    items, parents, _ = flattened(events)
    if parents is not None:
        codes, values = _encoded(items)
        if domain is not None and len(codes):
            inside = np.array([value in domain for value in values], bool)[codes]
            items, codes, parents = _taken(items, np.flatnonzero(inside)), codes[inside], parents[inside]
        if first and len(codes):
            later = np.array([value not in first for value in values], bool)[codes]
            order = np.lexsort((later, parents))  # stable
            items, codes = _taken(items, order), codes[order]
        items = _taken(items, _kept(codes, len(values), parents, most))
    if isinstance(items, list):
        items = [item for item in items if item is not None]
    counted = ExactCounts(seed=0)
    counted.update(items)
    raw = counted.not_private_counts()
    if domain is None or parents is not None:
        return raw.items, raw.counts
    there = np.array([item in domain for item in raw.items.to_pylist()], bool)
    return raw.items.filter(pa.array(there)), raw.counts[there]


def flattened(events: Any) -> tuple[pa.Array | list[Item | None], Integers | None, Integers | None]:
    """All items in order, and which event each is of (None: an event each, None for one that cannot be an item).

    Of sets also which of all values, one set after the other, each item was.
    """
    column = prepare_column(events)
    if isinstance(column, np.ndarray):
        column = column.tolist()  # of whole numbers, text or bytes: an event each
    if is_arrow(column):
        return _from_arrow(column)
    each = listed(column, "events")
    grouped = [is_several(event) for event in each]
    if not any(grouped):
        _refuse_nulls(any(value is None for value in each))
        return list(map(item_of, each)), None, None
    if not all(grouped):
        raise DataError("some events are sets and some are single items; put single items in lists, too")
    items: list[Item | None] = []
    parents: list[int] = []
    places: list[int] = []
    before = 0
    for number, event in enumerate(each):
        values = list(row_items(event) or [])
        _refuse_nulls(any(value is None for value in values))
        for place, item in enumerate(map(item_of, values), before):
            if item is not None:
                items.append(item)
                parents.append(number)
                places.append(place)
        before += len(values)
    return items, np.array(parents, np.int64), np.array(places, np.int64)


def person_rows(items: Any) -> tuple[Any, Integers | None, int | None]:
    """(items, rows, length): a column for `ValuesSeen`, and of lists which of their `length` rows each item is of."""
    column = prepare_column(items)
    nested = False
    if is_arrow(column):
        chunks = list(arrow_chunks(column))
        column = pa.chunked_array(chunks) if chunks else column
        nested = any(pa.types.is_nested(chunk.type) for chunk in chunks)
    elif is_several(column) and not isinstance(column, np.ndarray):
        column = list(column)
        nested = any(map(is_several, column))
    if not nested:
        return column, None, None
    flat, parents, _ = flattened(column)
    return flat, parents, len(column)


def weighted_counts(
    events: Any, weights: Any, most: int | None, heaviest: int, domain: Container[Any] | None = None
) -> tuple[list[Item], Integers]:
    """(items, sums of weights): as `event_counts`, where each item of an event has a weight of its own.

    `weights` has one whole number from 0 to `heaviest` for each event of one item, or a list of them for each set.
    What is not is an error before anything is counted.
    """
    events, weights = _held(events, "events"), _held(weights, "weights")
    items, parents, places = flattened(events)
    amounts = _amounts(weights, heaviest, parents is not None)
    if places is None and len(amounts) != len(items):
        raise DataError("weights and events must have the same length")
    if places is not None:
        if _sizes(weights) != _sizes(events):
            raise DataError("weights must have one number for each item of an event")
        amounts = amounts[places]
    # Numbers for items, and -1 for what cannot be one, by the rules of every count: `flattened` refused nulls.
    seen = ValuesSeen("events")
    codes = seen.of(items, "skip" if isinstance(items, list) else "error")
    values: list[Item] = seen.column().to_pylist()
    inside = np.array([domain is None or value in domain for value in values], bool)
    rows = np.flatnonzero(codes >= 0)
    rows = rows[inside[codes[rows]]]
    if parents is not None:
        rows = rows[_kept(codes[rows], len(values), parents[rows], most)]
    sums = np.zeros(len(values), np.int64)
    np.add.at(sums, codes[rows], amounts[rows])
    there = np.flatnonzero(np.bincount(codes[rows], minlength=len(values)))
    return [values[number] for number in there.tolist()], sums[there]


def _held(given: Any, role: str) -> Any:
    """What may be looked at twice."""
    column = prepare_column(given)
    if is_arrow(column) or isinstance(column, np.ndarray):
        return column
    each = listed(column, role)
    if any(isinstance(value, set | frozenset) for value in each):
        raise DataError("items and weights are matched by order, which a Python set lacks; pass lists")
    return [list(row_items(value) or []) if is_several(value) else value for value in each]


def _values(column: Any) -> list[Any]:
    if is_arrow(column):
        return read(column, lambda: [value for chunk in arrow_chunks(column) for value in chunk.to_pylist()])
    return list(column.tolist() if isinstance(column, np.ndarray) else column)


def _sizes(column: Any) -> list[int]:
    if is_arrow(column):  # without a look at what is in the lists, which may be no text
        return [size for chunk in arrow_chunks(column) for size in pc.list_value_length(chunk).to_pylist()]
    return [len(row) for row in _values(column)]


def _amounts(weights: Any, heaviest: int, nested: bool) -> Integers:
    values = _values(weights)
    if nested:
        if not all(isinstance(row, list) for row in values):
            raise DataError("events are sets of items, so weights must be a list per event")
        values = [weight for row in values for weight in row]
    if any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise DataError("weights must be whole numbers")
    if any(not 0 <= value <= heaviest for value in values):
        raise DataError(f"weights must be from 0 to max_weight={heaviest}")
    return np.array(values, np.int64)


def _refuse_nulls(has_nulls: bool | int) -> None:
    if has_nulls:
        raise DataError("the events have nulls; leave them out before you pass them")


def _from_arrow(events: Any) -> tuple[pa.Array | list[Item | None], Integers | None, Integers | None]:
    chunks = list(arrow_chunks(events))
    column = pa.concat_arrays(chunks) if len(chunks) != 1 else chunks[0]
    _refuse_nulls(column.null_count)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        parents = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
        items = _plain(pc.list_flatten(column))
        if not all_utf8(items):
            texts = [item_of_bytes(item) for item in items.cast(pa.large_binary()).to_pylist()]
            there = np.array([text is not None for text in texts], bool)
            return [text for text in texts if text is not None], parents[there], np.flatnonzero(there)
        return items, parents, np.arange(len(items))
    return _plain(column), None, None


def _plain(items: pa.Array) -> pa.Array:
    """In a layout that Arrow's functions know."""
    _refuse_nulls(items.null_count)
    return without_views(items.dictionary_decode() if pa.types.is_dictionary(items.type) else items)


def _taken(items: pa.Array | list[Item | None], places: Integers) -> pa.Array | list[Item | None]:
    if isinstance(items, list):
        return [items[place] for place in places.tolist()]
    return items.take(pa.array(places))


def _encoded(items: pa.Array | list[Item | None]) -> tuple[Integers, list[Item | None]]:
    """A number for each item, and the items by their numbers."""
    if not isinstance(items, list):
        values, codes = encoded(items)
        return codes, values
    numbers: dict[Item | None, int] = {}
    return np.array([numbers.setdefault(item, len(numbers)) for item in items], np.int64), list(numbers)


def _kept(codes: Integers, values: int, parents: Integers, most: int | None) -> Integers:
    """The positions of the first `most` different items of each event."""
    _, first = np.unique(parents * max(1, values) + codes, return_index=True)
    first.sort()
    if most is None or not len(first):
        return np.array(first, np.int64)
    owners = parents[first]
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    place = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
    return np.array(first[place < most], np.int64)
