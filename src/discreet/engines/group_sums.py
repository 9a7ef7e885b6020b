"""Sums over rows, by group: what counts, sums, means and variances of rows are drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.engines.numbers import Numbers, with_numbers
from discreet.events.assembly import Rows
from discreet.summaries.moments import GroupSums, ValueMoment

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 1 << 13  # rows: what is computed of this many stays in a core's cache, and its sums are exact as floats


def group_sums(found: Rows, moment: ValueMoment) -> GroupSums:
    """The sums over all rows, of every group that occurs where rows have one. NOT private.

    Rows without a number (NaN) are left out, each by itself: a group that has no other rows does not occur. No row and
    no order decides anything but its own entry.
    """
    groups: Numbers | None = None
    sums = np.zeros((0, moment.parts), np.int64)
    for _, items, amounts in found.parts():
        rows = len(items) if items is not None else len(amounts) if amounts is not None else 0
        values, items = (np.zeros(rows), items) if amounts is None else with_numbers(amounts, items)
        if items is not None:
            groups = groups or Numbers("groups", tagged="item" in found.tagged, max_bytes=found.max_key_bytes)
            places = np.asarray(groups.numbers(items)).astype(np.int64)
            good = places >= 0
            if not good.all():
                places, values = places[good], values[good]
        for start in range(0, len(values), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            if items is None:
                sums = _padded(sums, 1) + moment.total(values[part])
            else:
                sums = _added(sums, places[part], moment.entries(values[part]))
    if groups is None and found.keys is None:
        return GroupSums(_padded(sums, 1))
    groups = groups or Numbers("groups")  # where no row came, there is no group
    return GroupSums(sums, _keys(groups, len(sums)))


def _keys(groups: Numbers, many: int) -> pa.Array:
    return groups.values(np.arange(many))


def _padded(sums: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([sums, np.zeros((max(rows - len(sums), 0), sums.shape[1]), np.int64)])


def _added(sums: np.ndarray, places: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """With entries added at their places."""
    sums = _padded(sums, int(places.max(initial=-1)) + 1)
    for part in range(sums.shape[1]):
        np.add.at(sums[:, part], places, entries[:, part])
    return sums
