"""Numbers of rows, or of people's rows, in the bins of a public grid: what quantiles are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.engines.numbers import Numbers, plain_numbers
from discreet.engines.people import batches_of_arrow
from discreet.engines.tables import as_arrow, objects_as_arrow
from discreet.errors import DataError, ParameterError

__all__ = ["Amounts", "amounts_of_table"]

Owned = tuple["pa.Array | None", pa.Array]
"""Whose rows they are, and their numbers."""


class Amounts:
    """The bin of every row, and whose row it is. NOT PRIVATE.

    Rows without a number (NaN) are left out, each by itself.

    Attributes:
        places: The bins.
        people: A number from 0 for each row's person; None where rows have none.
    """

    def __init__(
        self, columns: Iterator[Owned], place: Callable[[npt.NDArray[np.float64]], Any], nulls: str, people: bool
    ) -> None:
        who = Numbers("people")
        places, owners = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for users, amounts in columns:
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


def amounts_of_table(table: Any, column: str | None, user: str | None) -> Iterator[Owned]:
    """The numbers of a column of a table, and whose they are, batch by batch; without `column` a column itself."""
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
    try:
        data = objects_as_arrow(table, [] if user is None else [user], column)
    except DataError:
        of = "a number" if user is None else "a number, and a person that is int, str or bytes"
        raise DataError(f"no row of the table has {of}") from None
    data = as_arrow(table) if data is None else data
    names = list(data.schema.names)
    for name in (column, user):
        if name is not None and names.count(name) != 1:
            there = "more than one column" if name in names else "no column"
            raise DataError(f"the table has {there} {name!r}; its columns are {', '.join(map(repr, names))}")
    for batch in batches_of_arrow(data):
        yield None if user is None else batch.column(user), batch.column(column)
