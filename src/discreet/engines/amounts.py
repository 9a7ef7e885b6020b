"""Numbers of rows, or of people's rows, in the bins of a public grid: what quantiles are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.engines.numbers import Numbers, plain_numbers
from discreet.engines.people import batches_of_arrow
from discreet.errors import DataError, ParameterError
from discreet.events.files import OF_KINDS
from discreet.events.tables import chosen
from discreet.events.tags import with_kinds

__all__ = ["Amounts", "Owned", "amounts_of_batches", "amounts_of_table"]


class Owned(NamedTuple):
    """Numbers and whose they are, batch by batch.

    Attributes:
        columns: (people, or None where there are none; numbers).
        own_people: Whether people are written with their kinds (`events.tags`).
    """

    columns: Iterator[tuple[pa.Array | None, pa.Array]]
    own_people: bool = False


class Amounts:
    """The bin of every row, and whose row it is. NOT PRIVATE.

    Rows without a number (NaN) are left out, each by itself.

    Attributes:
        places: The bins.
        people: A number from 0 for each row's person; None where rows have none.
    """

    def __init__(self, found: Owned, place: Callable[[npt.NDArray[np.float64]], Any], nulls: str, people: bool) -> None:
        who = Numbers("people", tagged=found.own_people)
        places, owners = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for users, amounts in found.columns:
            if nulls != "skip" and (amounts.null_count or (users is not None and users.null_count)):
                raise DataError('the columns of values and people have nulls; nulls="skip" leaves those rows out')
            numbers = plain_numbers(amounts)
            good = ~np.isnan(numbers)
            if users is not None:
                owner = np.asarray(who.numbers(users))
                good &= owner >= 0
                owners.append(owner[good])
            places.append(place(numbers[good]))
        self.places = np.concatenate(places)
        self.people = np.concatenate(owners) if people else None

    def __repr__(self) -> str:
        return "Amounts(NOT PRIVATE)"


def amounts_of_table(table: Any, column: str | None, user: str | None) -> Owned:
    """The numbers of a column of a table, and whose they are; without `column` a column itself."""
    if column is None:
        if user is not None:
            raise ParameterError("user protects people, and needs the column of the values")
        if isinstance(table, (Mapping, str, bytes)) or not hasattr(table, "__iter__") or getattr(table, "ndim", 1) != 1:
            raise DataError(
                f"without column the table is the column itself: a list, an array or a series of numbers, not a "
                f"{type(table).__name__}; of a table, name the column"
            )
        table, column = {"value": table}, "value"
    if user == column:
        raise ParameterError("the columns of the values and the people must be different columns")
    data, own = chosen(table, [column] if user is None else [column, user], values=column)
    columns = ((None if user is None else batch.column(user), batch.column(column)) for batch in batches_of_arrow(data))
    return Owned(columns, user in own)


def amounts_of_batches(batches: Iterator[pa.RecordBatch]) -> Owned:
    """The same of batches of `events.open_stream`, whose items are the people."""
    first = next(batches, None)
    if first is None:
        return Owned(iter(()))
    people, of_kinds = "item" in first.schema.names, first.schema.metadata == OF_KINDS

    def owner(batch: pa.RecordBatch) -> pa.Array | None:
        users = batch.column("item") if people else None
        return with_kinds(users) if of_kinds and people else users

    columns = ((owner(batch), batch.column("value")) for batch in chain([first], batches))
    return Owned(columns, of_kinds and people)
