"""Functions of Arrow without `pyarrow.compute`, which takes 22 ms to load.

Methods of arrays (`cast`, `filter`, `take`, `fill_null`) load it, too, and `pa.array` of a NumPy array loads
`numpy.ma`. A short command has most of its time in what it loads: what most commands need is called from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from discreet._later import np, pa

if TYPE_CHECKING:
    import numpy.typing as npt

Flags: TypeAlias = "npt.NDArray[np.bool_] | memoryview[Any] | bytes"
"""True or false for every row, as a NumPy array or in plain memory."""


def called(name: str, *arguments: Any) -> Any:
    """A function of Arrow that has no options."""
    from pyarrow._compute import call_function

    return call_function(name, list(arguments))


def cast(array: pa.Array, kind: pa.DataType, safe: bool = True) -> pa.Array:
    """A column in another type, as `array.cast`."""
    from pyarrow._compute import CastOptions, call_function

    options = CastOptions.safe(kind) if safe else CastOptions.unsafe(kind)
    return array if array.type == kind else call_function("cast", [array], options)


def encoded(array: pa.Array) -> pa.DictionaryArray:
    """A column as a dictionary, as `array.dictionary_encode`."""
    return called("dictionary_encode", array)


def filled(array: pa.Array, value: Any) -> pa.Array:
    """A column with a value where it is null, as `array.fill_null`."""
    return called("coalesce", array, pa.scalar(value, array.type)) if array.null_count else array


def filtered(array: pa.Array, keep: Flags) -> pa.Array:
    """Some rows of a column, as `array.filter`."""
    return called("filter", array, bits(keep))


def least_and_most(array: pa.Array) -> tuple[Any, Any]:
    """The least and the largest number of a column; None where it has none."""
    found = called("min_max", array)
    return found["min"].as_py(), found["max"].as_py()


def rows_at(array: pa.Array, places: npt.NDArray[np.int64] | memoryview) -> pa.Array:
    """The rows at these places, as `array.take`."""
    places = places if isinstance(places, memoryview) else np.ascontiguousarray(places, np.int64)
    return called("take", array, pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)]))


def bits(flags: Flags) -> pa.Array:
    """A column of true and false."""
    return cast(pa.Array.from_buffers(pa.uint8(), len(flags), [None, pa.py_buffer(flags)]), pa.bool_())


def flags_of(bits: pa.Array) -> memoryview[Any]:
    """A column of true and false, without nulls, in plain memory."""
    return in_memory(cast(bits, pa.uint8()), "?")


def in_memory(array: pa.Array, code: Any) -> memoryview[Any]:
    """The numbers of a column as they lie in memory, by their code in `struct`; of a null, any."""
    found: memoryview[Any] = memoryview(array.buffers()[1] or b"").cast(code)
    return found[array.offset : array.offset + len(array)]


def number_of(flags: Flags) -> int:
    """How many rows are true."""
    return bytes(flags).count(1)


def of_numbers(numbers: npt.NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Numbers as a column, of this type of the same width, without copying them."""
    numbers = np.ascontiguousarray(numbers)
    kind = pa.from_numpy_dtype(numbers.dtype) if kind is None else kind
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def sorted_places(table: pa.Table, keys: list[tuple[str, str]]) -> memoryview[Any]:
    """Where the rows of a table stand in an order, as `pyarrow.compute.sort_indices`."""
    from pyarrow._compute import SortOptions, call_function

    return in_memory(cast(call_function("sort_indices", [table], SortOptions(sort_keys=keys)), pa.int64()), "q")
