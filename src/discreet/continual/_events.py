"""The events of a tick: how many of them contain each item."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import DataError
from discreet.summaries import ExactCounts

__all__ = ["event_counts", "flattened"]

Integers = npt.NDArray[np.int64]


def event_counts(events: Any, most: int | None, domain: Container[Any] | None = None) -> tuple[pa.Array, Integers]:
    """(items, counts) of the sets of items in `events`: an Arrow list column or an iterable of iterables.

    A plain column, or an iterable of int, str or bytes, holds events of one item each. Of an event the items outside
    the domain are left out, then repeated ones, then all but the first `most`: what is left depends on it alone.
    """
    items, parents = flattened(events)
    if parents is not None:
        if domain is not None and len(items):
            encoded = items.dictionary_encode()
            known = np.array([item in domain for item in encoded.dictionary.to_pylist()], bool)
            inside = known[np.asarray(encoded.indices)]
            items, parents = items.filter(pa.array(inside)), parents[inside]
        items = items.take(pa.array(_kept(items, parents, most)))
    counted = ExactCounts(seed=0)
    counted.update(items)
    raw = counted.not_private_counts()
    if domain is None or parents is not None:
        return raw.items, raw.counts
    there = np.array([item in domain for item in raw.items.to_pylist()], bool)
    return raw.items.filter(pa.array(there)), raw.counts[there]


def flattened(events: Any) -> tuple[pa.Array, Integers | None]:
    """All items in order, and which event each is of (None: an event each)."""
    if hasattr(events, "__arrow_c_stream__") and not isinstance(events, (pa.Array, pa.ChunkedArray)):
        events = pa.chunked_array(events)
    if isinstance(events, pa.ChunkedArray):
        events = events.combine_chunks()
    if isinstance(events, pa.Array):
        if events.null_count:
            raise DataError("the events have nulls")
        if pa.types.is_list(events.type) or pa.types.is_large_list(events.type):
            return _plain(pc.list_flatten(events)), np.asarray(pc.list_parent_indices(events)).astype(np.int64)
        return _plain(events), None
    if isinstance(events, np.ndarray) and events.ndim == 1 and events.dtype.kind in "iuSU":
        return _plain(pa.array(events)), None
    if isinstance(events, (str, bytes)) or not hasattr(events, "__iter__"):
        raise DataError(f"a tick takes a column or an iterable of events, not {type(events).__name__}")
    listed = list(events)
    if all(isinstance(event, (str, bytes, int, np.integer)) for event in listed):
        return _array(listed), None
    try:
        sets = [list(event) for event in listed]
    except TypeError:
        raise DataError("an event is an iterable of items; events of one item each are the items themselves") from None
    parents = np.repeat(np.arange(len(sets)), [len(event) for event in sets])
    return _array([item for event in sets for item in event]), parents


def _array(values: list[Any]) -> pa.Array:
    kinds = {str if isinstance(v, str) else bytes if isinstance(v, bytes) else int for v in values}
    if len(kinds) > 1 or any(isinstance(v, bool) or not isinstance(v, (str, bytes, int, np.integer)) for v in values):
        raise DataError("items must be all text, all bytes or all whole numbers")
    try:
        return pa.array(values) if values else pa.array([], pa.large_string())
    except (pa.ArrowException, OverflowError):
        pass
    raise DataError("items must be text, bytes or whole numbers of 64 bits")


def _plain(items: pa.Array) -> pa.Array:
    if items.null_count:
        raise DataError("the events have nulls")
    return items.dictionary_decode() if pa.types.is_dictionary(items.type) else items


def _kept(items: pa.Array, parents: Integers, most: int | None) -> Integers:
    """The positions of the first `most` different items of each event."""
    encoded = items.dictionary_encode()
    codes = np.asarray(encoded.indices).astype(np.int64)
    _, first = np.unique(parents * max(1, len(encoded.dictionary)) + codes, return_index=True)
    first.sort()
    if most is None or not len(first):
        return np.array(first, np.int64)
    owners = parents[first]
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    place = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
    return np.array(first[place < most], np.int64)
