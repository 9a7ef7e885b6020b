"""Misra-Gries, the summary behind the default release."""

from __future__ import annotations

from typing import Any

from discreet import _native
from discreet.errors import DataError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, prepare_column, read
from discreet.summaries._base import DecrementedCounters


class MisraGries(DecrementedCounters):
    """At most `capacity` counters; each loses at most n/(capacity+1). NOT PRIVATE.

    Follows Algorithm 1 of [LT]: counters that reach zero keep their key until it is replaced, and the one replaced
    is the smallest in an order of the keys that does not depend on the stream (their hash under `seed`).

    Error bound: for every item, f - n/(k+1) <= c <= f.
    """

    _native_class = _native.MisraGries

    def __init__(self, capacity: int, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None) -> None:
        self._native = _native.MisraGries(*self._check_common(max_key_bytes, seed, capacity))

    def update_counts(self, items: Any, counts: Any) -> None:
        """Add `counts[i]` events in a row of the i-th item: the same state as that many single events, but quickly.

        For batches whose order means nothing. `items` is a column without nulls that is not a dictionary.
        """
        import numpy as np

        numbers = read(counts, lambda: np.asarray(counts))
        if (
            numbers.ndim != 1
            or not (np.can_cast(numbers.dtype, np.int64) or len(numbers) == 0)
            or numbers.dtype == bool
        ):
            raise DataError("the numbers of occurrences must be one column of whole numbers that fit into int64")
        column = prepare_column(items)
        if hasattr(column, "__len__") and len(column) != len(numbers):
            raise DataError(f"every item needs a number of occurrences, but there are {len(numbers)} numbers")
        self._native.update_counts(column, np.ascontiguousarray(numbers, np.int64))
