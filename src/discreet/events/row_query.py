"""Which rows stay and what is computed of them, each by itself: the seam between readers and whoever computes.

Readers know nothing of SQL. What they are given reads some columns of a block of rows and says of every row whether it
stays, and what it has in the columns that are asked for. A row of which that cannot be computed is bad, like one that
cannot be read, so nobody can stop a release with one of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.events.text import BLANK, NOT_COMPUTED, OTHER, TEXT, Rows

__all__ = ["Bound", "Rowwise", "of_arrays", "of_rows", "texts_of"]

Mask = npt.NDArray[np.bool_]


class Bound(Protocol):
    """A query for certain columns.

    Attributes:
        reads: The columns of the input that it takes, in the order in which they are to be given.
        taken: For every column asked for its place in `reads`, or None if it is computed.
        selects: Whether some rows may not stay.
    """

    reads: Sequence[str | None]
    taken: Sequence[int | None]
    selects: bool

    def keeps(self, columns: Sequence[pa.Array]) -> tuple[Mask, Mask]:
        """Which rows stay, and of which that cannot be computed. Of rows that stay it can."""
        ...

    def computes(self, columns: Sequence[pa.Array]) -> tuple[list[pa.Array], Mask]:
        """The computed columns, and which of the rows cannot be computed."""
        ...


class Rowwise(Protocol):
    """A query of rows, as its `text` says."""

    text: str

    def bound(self, wanted: Sequence[str | None]) -> Bound:
        """For these columns; None (the first) is the only one beside the others."""
        ...


def of_rows(query: Bound, rows: Rows) -> None:
    """The rows that stay, with the columns asked for; the others are blank, or bad."""
    if query.selects:
        keep, failed = query.keeps(texts_of(rows))
        kinds = np.where(failed, NOT_COMPUTED, BLANK).astype(np.uint8)
        rows.leave_out_as(~keep, kinds)
    computed: list[pa.Array] = []
    if None in query.taken:
        computed, failed = query.computes(texts_of(rows))
        if failed.any():
            rows.leave_out(failed, NOT_COMPUTED)
            computed = [column.filter(pa.array(~failed)) for column in computed]
    made = iter(computed)
    count = len(computed[0]) if computed else 0
    columns, values = rows.columns, rows.values
    rows.columns = [next(made) if place is None else columns[place] for place in query.taken]
    if values is not None:
        own = np.full(count, TEXT, np.uint8)  # of one type each, which stays as it is
        rows.values = [own if place is None else values[place] for place in query.taken]


def texts_of(rows: Rows) -> list[pa.Array]:
    """The columns as a query sees them: text, null where there is neither text, nor a number, nor true or false."""
    if rows.values is None:
        return rows.columns
    shown = []
    for column, kinds in zip(rows.columns, rows.values, strict=True):
        if not pa.types.is_list(column.type) and (kinds == OTHER).any():
            empty = (kinds == OTHER) & np.asarray(pc.equal(column, "").fill_null(False), np.bool_)
            column = pc.if_else(pa.array(empty), None, column)
        shown.append(column)
    return shown


def of_arrays(query: Bound, arrays: tuple[pa.Array, ...]) -> tuple[tuple[pa.Array, ...], int]:
    """The same of columns, and how many rows are bad."""
    bad = 0
    if query.selects:
        keep, failed = query.keeps(arrays)
        bad += int(np.count_nonzero(failed))
        if not keep.all():
            kept = pa.array(keep)
            arrays = tuple(array.filter(kept) for array in arrays)
    computed: list[pa.Array] = []
    if None in query.taken:
        computed, failed = query.computes(arrays)
        if failed.any():
            bad += int(np.count_nonzero(failed))
            kept = pa.array(~failed)
            arrays, computed = tuple(a.filter(kept) for a in arrays), [a.filter(kept) for a in computed]
    made = iter(computed)
    return tuple(next(made) if place is None else arrays[place] for place in query.taken), bad
