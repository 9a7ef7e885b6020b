"""Functions of Arrow without `pyarrow.compute`, which takes 22 ms to load.

Methods of arrays (`cast`, `filter`, `take`, `fill_null`) load it, too, and `pa.array` of a NumPy array loads
`numpy.ma`. A short command has most of its time in what it loads: what most commands need is called from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet._later import np, pa

if TYPE_CHECKING:
    import numpy.typing as npt


def cast(array: pa.Array, kind: pa.DataType, safe: bool = True) -> pa.Array:
    """A column in another type, as `array.cast`."""
    from pyarrow._compute import CastOptions, call_function

    options = CastOptions.safe(kind) if safe else CastOptions.unsafe(kind)
    return array if array.type == kind else call_function("cast", [array], options)


def encoded(array: pa.Array) -> pa.DictionaryArray:
    """A column as a dictionary, as `array.dictionary_encode`."""
    from pyarrow._compute import call_function

    return call_function("dictionary_encode", [array])


def filled(array: pa.Array, value: Any) -> pa.Array:
    """A column with a value where it is null, as `array.fill_null`."""
    from pyarrow._compute import call_function

    return call_function("coalesce", [array, pa.scalar(value, array.type)]) if array.null_count else array


def filtered(array: pa.Array, keep: npt.NDArray[np.bool_]) -> pa.Array:
    """Some rows of a column, as `array.filter`."""
    from pyarrow._compute import call_function

    return call_function("filter", [array, bits(keep)])


def rows_at(array: pa.Array, places: npt.NDArray[np.int64]) -> pa.Array:
    """The rows at these places, as `array.take`."""
    from pyarrow._compute import call_function

    return call_function("take", [array, of_numbers(places)])


def bits(rows: npt.NDArray[np.bool_]) -> pa.Array:
    """A column of true and false."""
    return pa.Array.from_buffers(pa.bool_(), len(rows), [None, pa.py_buffer(np.packbits(rows, bitorder="little"))])


def of_numbers(numbers: npt.NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Numbers as a column, of this type of the same width, without copying them."""
    numbers = np.ascontiguousarray(numbers)
    kind = pa.from_numpy_dtype(numbers.dtype) if kind is None else kind
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def sorted_places(table: pa.Table, keys: list[tuple[str, str]]) -> npt.NDArray[np.int64]:
    """Where the rows of a table stand in an order, as `pyarrow.compute.sort_indices`."""
    from pyarrow._compute import SortOptions, call_function

    return np.asarray(call_function("sort_indices", [table], SortOptions(sort_keys=keys))).astype(np.int64)
