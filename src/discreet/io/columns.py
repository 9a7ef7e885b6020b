"""Which columns are read, and what may be in them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import DataError

__all__ = ["BROKEN_INPUT", "checked", "choose", "kind_of"]

# What pyarrow raises on input that is not what it should be; its messages may quote the input.
BROKEN_INPUT = (pa.ArrowException, OSError, KeyError, UnicodeDecodeError)


def choose(
    names: Sequence[str], column: str | None, user_column: str | None, source: str, show_names: bool = True
) -> list[str]:
    """The names of the item column and, if asked for, the user column.

    Without `column` it is the only one there is (beside the user column). `show_names` is False where the names might
    be data: a CSV file without a header line has its first row in their place.
    """
    there = f"its columns are {', '.join(map(repr, names))}" if show_names else f"it has {len(names)} columns"
    if column is None:
        others = [name for name in names if name != user_column]
        if len(others) != 1:
            raise DataError(f"{source}: name the column that holds the items; {there}")
        column = others[0]
    wanted = [column] if user_column is None else [column, user_column]
    for name in wanted:
        if names.count(name) != 1:
            problem = "more than one column" if name in names else "no column"
            raise DataError(f"{source} has {problem} {name!r}; {there}")
    return wanted


def kind_of(data_type: pa.DataType, lists: bool = True) -> str | None:
    """What items of this type are: "text", "bytes", "integer", a list of these, or None for anything else."""
    if pa.types.is_dictionary(data_type):
        return kind_of(data_type.value_type, lists=False)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return "text"
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return "bytes"
    if pa.types.is_integer(data_type):
        return "integer"
    if lists and (pa.types.is_list(data_type) or pa.types.is_large_list(data_type)):
        inner = kind_of(data_type.value_type, lists=False)
        return None if inner is None else f"list of {inner}"
    return None


def checked(batch: pa.RecordBatch, name: str, source: str) -> pa.Array:
    """A column of a batch that is known to be well formed: offsets and indices in range, text in valid UTF-8.

    Files are not trusted: what goes to the native summaries unchecked could make them read outside their input.
    """
    valid = False
    with suppress(*BROKEN_INPUT):
        array = batch.column(name)
        array.validate(full=True)
        valid = True
    if not valid:
        raise DataError(f"{source} holds damaged columns, or text that is not valid UTF-8")
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def without_null_elements(lists: pa.Array) -> pa.Array:
    """The lists without their null elements. The lists themselves are not null."""
    valid = pc.is_valid(pc.list_flatten(lists))
    parents = np.asarray(pc.list_parent_indices(lists))[np.asarray(valid)]
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.bincount(parents, minlength=len(lists)), out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pc.list_flatten(lists).filter(valid))
