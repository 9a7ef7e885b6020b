"""The one reader of items: what may be an item, what becomes of rows that may not, and whose words leave in an error.

An item is a text, bytes, or a whole number of 64 bits, and items of different kinds are different items. Three rules
keep one row from deciding more than its own count (docs/privacy/errors.md):

- A row that cannot be an item (too long, not Unicode, a number beyond 64 bits, another type) is left out.
- No row decides how another is read. A column's type may, where it is a schema; the types that libraries find by
  looking at values (object columns) are not used unless the values are of one kind.
- Exceptions of other libraries quote what they could not read, so none of them passes.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from discreet._later import np, pa
from discreet._native import BadItems, CheckedBatch, MadeColumn
from discreet.errors import DataError, DiscreetError, ParameterError, did_you_mean
from discreet.privacy.checks import numbered

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T")
Item = int | str | bytes


DEFAULT_MAX_KEY_BYTES = 4096
"""How long an item may be, in bytes, unless something else is said."""


def rules(nulls: str, bad_items: str = "skip") -> tuple[bool, BadItems]:
    """Check what becomes of nulls (whether to leave them out) and of what cannot be an item, as native code has it."""
    for name, rule in (("nulls", nulls), ("bad_items", bad_items)):
        if rule not in ("error", "skip"):
            raise ParameterError(f"{name} must be 'error' or 'skip', not {rule!r}")
    return nulls == "skip", BadItems.skip if bad_items == "skip" else BadItems.error


def read(what: object, convert: Callable[[], T]) -> T:
    """What `convert` makes of the input; instead of a foreign exception, which may quote data, one that does not."""
    try:
        return convert()
    except (DiscreetError, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
    # Not in the handler: there the exception would stay attached to this one.
    raise DataError(f"the {type(what).__name__} cannot be read as one column ({kind}); make its items one kind")


def is_arrow(data: Any) -> bool:
    """Whether this exports Arrow data."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def library(data: Any) -> str:
    """ "pandas", "polars", "numpy" or "pyspark" for their columns and tables, or subclasses; "" for anything else."""
    for base in type(data).__mro__:
        if (name := base.__module__.partition(".")[0]) in ("pandas", "polars", "numpy", "pyspark"):
            return name
    return ""


# ---- columns -------------------------------------------------------------------------------------------------------


def prepare_column(data: Any) -> Any:
    """Turn what the native reader does not know into what it does: Arrow, a contiguous array, or an iterable."""
    if isinstance(data, (MadeColumn, CheckedBatch)):
        return data
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, arrow.Array):
        # Items of several kinds, as a summary gives them; the type of a union is a schema otherwise.
        return data.to_pylist() if isinstance(data, arrow.UnionArray) else data
    refuse_no_column(data)
    made_by = library(data)
    if made_by == "pandas":
        return read(data, lambda: _from_pandas(data))
    if made_by == "polars":
        data = _from_polars(data)
    if is_arrow(data):
        return data
    if made_by == "numpy" and hasattr(data, "dtype") and hasattr(data, "ndim"):
        return _from_numpy(data)
    return data


def values_of(data: Any, nulls: str = "error") -> list[Any]:
    """A column of any library as Python values, which may be no items; nulls are an error or left out."""
    column = prepare_column(data)
    if is_arrow(column):
        values = read(column, lambda: [value for chunk in arrow_chunks(column) for value in chunk.to_pylist()])
    else:
        values = column.tolist() if hasattr(column, "tolist") else listed(column)
    there = [value for value in values if value is not None]
    if len(there) < len(values) and not rules(nulls)[0]:
        raise DataError('the column has nulls; pass nulls="skip" to leave them out')
    return there


def is_several(value: Any) -> TypeGuard[Iterable[Any]]:
    """Whether this holds items, one after the other, and is not one itself."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return False
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def listed(column: Any, role: str = "items") -> list[Any]:
    """The objects of a prepared column that no library made; one alone is no column."""
    refuse_single(column, role)
    return read(column, lambda: list(column)) if is_arrow(column) else list(column)


def refuse_single(data: Any, role: str = "items") -> None:
    """Refuse what holds no items, or is one."""
    if not is_several(data):
        kind = type(data).__name__
        raise DataError(f"expected a column or an iterable of {role}, got {kind}; put a single one in a list")


def refuse_no_column(data: Any) -> None:
    """Refuse None, and mappings: their keys alone would count, and the counts they may hold would not."""
    if data is None:
        raise DataError("expected a column or an iterable of items, got None")
    if isinstance(data, Mapping):
        raise DataError(
            f"expected a column or an iterable of items, got a mapping ({type(data).__name__}), whose keys alone would "
            "count. For a dict of columns name one (column=); for a Counter pass its elements()"
        )


def refuse_elsewhere(data: Any) -> None:
    """Refuse data that is not here, with a word on what to call: the name of a file, and data frames of Spark."""
    if isinstance(data, (str, bytes, PathLike)):
        raise DataError(
            f"expected a table or a column, not a {type(data).__name__}: open a file with dc.read(...); put "
            "a single item in a list"
        )
    if library(data) == "pyspark":
        raise DataError(
            "expected a table or a column, not Spark data; ask the data frame, as in "
            "dc.count(dataframe, budget), or fetch it with dataframe.toArrow()"
        )


def _from_numpy(data: Any) -> Any:
    masked = type(data) is not np.ndarray and isinstance(data, np.ma.MaskedArray)  # np.ma takes its time to load
    if masked and data.ndim == 1 and data.dtype.kind in "iuSUO":
        return data.tolist()  # masked elements become None
    if data.ndim == 1 and data.dtype.kind in "iuSU":
        return np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("="))
    if data.ndim == 1 and data.dtype.kind in "OT":
        return data.tolist()
    raise DataError(
        f"the array has {data.ndim} dimensions of {data.dtype.name}; allowed is one dimension of integers, "
        "strings, bytes or Python objects" + (", such as array[:, 0]" if data.ndim == 2 else "")
    )


def is_polars_objects(column: Any) -> bool:
    """Whether this is a polars column of Python objects, which polars exports as their addresses in memory."""
    return library(column) == "polars" and str(getattr(column, "dtype", "")) == "Object"


def _from_polars(data: Any) -> Any:
    if not is_arrow(data):
        raise DataError(
            f"expected a column, got a {type(data).__name__} of polars: collect it and pass one of its columns"
        )
    column = data.to_series() if getattr(data, "shape", ())[1:] == (1,) else data
    return read(data, column.to_list) if is_polars_objects(column) else data


def _from_pandas(data: Any) -> Any:
    import pandas as pd

    if getattr(data, "ndim", 1) != 1:
        if data.shape[1] != 1:
            raise DataError(f"expected one column, got a data frame of {data.shape[1]} columns: pass one of them")
        data = data.iloc[:, 0]
    category = categories_of(data)
    if category is not None:
        values, codes = category
        # Of one kind that summaries know, Arrow makes what the native reader would.
        made = plain_array(values)
        if made is not None:
            return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), made)
    elif not pd.api.types.is_object_dtype(data.dtype):
        return pa.Array.from_pandas(data)
    objects = objects_of(data) or []
    made = plain_array(objects)
    return objects if made is None else made


# ---- columns that have no type but that of their values ------------------------------------------------------------


def objects_of(column: Any) -> list[Any] | None:
    """The values of a column that has no type but theirs, None where one is missing; None for a column with a type.

    These are lists, columns of objects, and categories of pandas.
    """
    if isinstance(column, (list, tuple)):
        return list(column)
    if is_polars_objects(column):
        return list(column.to_list())
    category = categories_of(column)
    if category is not None:
        values, codes = category
        return [None if code < 0 else values[code] for code in codes.tolist()]
    if str(getattr(column, "dtype", "")) != "object":
        return None
    found: list[Any] = column.tolist()
    if library(column) != "pandas" or {*map(type, found)} <= _PLAIN:
        return found
    return [None if _is_missing(value) else value for value in found]


def categories_of(column: Any) -> tuple[list[Any], Any] | None:
    """(the values of a category of pandas, which of them each row has, -1 where it is missing); None for others.

    pandas finds the type of the values by looking at all of them, and makes floats of whole numbers where one is no
    whole number. So the type is not used, and a whole float is the whole number.
    """
    if library(column) != "pandas" or not hasattr(getattr(column, "dtype", None), "categories"):
        return None
    values = [
        int(value) if isinstance(value, float) and value.is_integer() else value
        for value in column.dtype.categories.tolist()
    ]
    return values, np.asarray(getattr(column, "cat", column).codes, np.int64)


_PLAIN = {str, bytes, int, type(None)}


def _is_missing(value: Any) -> bool:
    """Whether a column of pandas has nothing here: None, NaN, NaT or NA. It depends on this value alone."""
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    of_numpy = type(value).__module__ == "numpy" and type(value).__name__ != "ndarray"
    return (isinstance(value, float) or of_numpy) and bool(value != value)


def plain_array(values: list[Any]) -> pa.Array | None:
    """Values of one kind that summaries know, as Arrow; None for any others."""

    kinds = {*map(type, values)} - {type(None)}
    if len(kinds) != 1 or not kinds <= _PLAIN:
        return None
    types = {str: pa.large_string(), bytes: pa.large_binary(), int: pa.int64()}
    try:
        return pa.array(values, types[kinds.pop()])
    except (pa.ArrowException, ValueError, OverflowError):
        return None  # a text that is not Unicode, or a number beyond 63 bits


# ---- rows of users -------------------------------------------------------------------------------------------------


def prepare_lists(data: Any) -> Any:
    """Turn lists of users into what the native reader knows: an Arrow list column, or an iterable of lists."""
    refuse_no_column(data)
    if library(data) == "pandas":
        return read(data, lambda: _lists_from_pandas(data))
    if is_arrow(data) and not is_polars_objects(data):
        if not isinstance(data, pa.UnionArray):
            return read(data, lambda: without_list_views(data))
        data = data.to_pylist()
    if not is_several(data):
        raise DataError(f"expected one list of items per user, got {type(data).__name__}")
    return (row_items(row) for row in data)


def without_list_views(column: Any) -> Any:
    """A column of lists as kernels read them: views of lists, which newer writers use, are written out.

    Not by a cast of pyarrow: what it makes of views ends the process in its own functions.
    """

    kind = getattr(column, "type", None)
    if not isinstance(kind, pa.DataType) or not (pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)):
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [without_list_views(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks, pa.large_list(kind.value_type))
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    return pa.LargeListArray.from_arrays(offsets, column.flatten(), mask=column.is_null())


def _lists_from_pandas(data: Any) -> Any:
    import pandas as pd

    if getattr(data, "ndim", 1) != 1:
        raise DataError("expected one column, got a data frame: pass one of its columns")
    if not pd.api.types.is_object_dtype(data.dtype):
        return pa.Array.from_pandas(data)
    return [row_items(row) for row in data.tolist()]


def row_items(row: Any) -> Iterable[Any] | None:
    """One user's (or event's) items from a list, tuple, set, array, column or iterable; None for a missing one."""
    if row is None or (isinstance(row, float) and row != row) or type(row).__name__ == "NAType":
        return None
    if isinstance(row, (list, tuple, set, frozenset)):
        return row
    if isinstance(row, Mapping) or not is_several(row):
        raise DataError(f"each row must be the list of one user's items, not a {type(row).__name__}")
    for method in ("to_pylist", "tolist", "to_list"):  # Arrow; NumPy and pandas; polars
        if hasattr(row, method):
            return read(row, lambda: list(getattr(row, method)()))  # noqa: B023 (called at once)
    return read(row, lambda: list(row)) if is_arrow(row) else row  # not by the words of a reader that fails


def item_of(value: Any) -> Item | None:
    """The value as an item, or None if it cannot be one. No method that a subclass may have changed is asked."""
    if isinstance(value, str):
        text = str.__str__(value)
        try:
            text.isascii() or text.encode()
        except UnicodeEncodeError:
            return None
        return text
    if isinstance(value, bytes):
        return b"".join((value,))
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") or not hasattr(type(value), "__index__"):
        return None
    try:
        number = operator.index(value)
    except Exception:
        return None
    return number if -(2**63) <= number < 2**64 else None


def of_numpy(value: Any) -> Any:
    """A single value of NumPy as one of Python, anything else as it is.

    A datetime64 of days or longer is a date, one of anything shorter a time that is cut to microseconds.
    """
    if type(value).__module__ != "numpy" or getattr(value, "ndim", None) != 0:
        return value
    if value.dtype.kind == "M":
        days = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
        value = value.astype("datetime64[D]" if days else "datetime64[us]")
        found = value.item()
        return None if isinstance(found, int) else found  # a year that Python's dates do not have
    return value.item()


def item_of_bytes(text: bytes) -> str | None:
    """The text that is written as these bytes of UTF-8, or None if there is none."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def without_bad(column: Any) -> Any:
    """A prepared column without the Python objects that cannot be items; nulls stay."""
    if is_arrow(column) or hasattr(column, "dtype") or not is_several(column):
        return column
    return [value for value in column if value is None or item_of(value) is not None]


# ---- Arrow ---------------------------------------------------------------------------------------------------------


def arrow_chunks(data: Any) -> Iterator[pa.Array]:
    """The chunks of Arrow data, one at a time."""
    if isinstance(data, pa.Array):
        yield data
    elif isinstance(data, pa.ChunkedArray):
        yield from data.chunks
    elif hasattr(data, "__arrow_c_stream__"):
        yield from read(data, lambda: pa.chunked_array(data).chunks)
    else:
        yield read(data, lambda: pa.array(data))


# ---- columns of files: which are wanted, and what may be in them ----------------------------------------------------

UNCOMPUTED = "a row for which the query cannot be computed (try_cast turns what is not a number into null)"


def broken_input() -> tuple[type[Exception], ...]:
    """What pyarrow raises on input that is not what it should be; its messages may quote the input."""
    return pa.ArrowException, OSError, KeyError, UnicodeDecodeError


def unreadable(error: Exception, name: str, otherwise: str) -> DataError:
    """For input that pyarrow did not read: what it does not support is not called damaged.

    To raise where nothing is handled: a cause may tell what the input holds.
    """
    words = "not implemented", "not yet implemented", "not supported", "not built", "encrypted"
    text = str(error).lower()
    if not isinstance(error, pa.ArrowNotImplementedError) and not any(word in text for word in words):
        return DataError(f"{name} {otherwise}")
    return DataError(f"{name} uses an unsupported codec, encoding, type or encryption; write the file again without it")


def choose(
    names: Sequence[Any], wanted: Sequence[str | None], source: str = "the table", show_names: bool = True
) -> list[str]:
    """The names of the columns that are wanted, each of which exactly one column must have.

    Where the first is None it is the only one there is (beside the others). `show_names` is False where the names might
    be data: a CSV file without a header line has its first row in their place. The message then hints at a name only if
    it differs from the wanted one in case or blanks, which tells no more than finding it would.
    """
    chosen = [name for name in wanted if name is not None]
    rest = [name for name in names if name not in chosen] if wanted and wanted[0] is None else []
    unclear = bool(wanted) and wanted[0] is None and len(rest) != 1
    chosen = rest + chosen
    wrong = next((name for name in chosen if names.count(name) != 1), None)
    if wrong is None and not unclear:
        return chosen
    there = (
        f"its columns are {', '.join(map(repr, names))}" if show_names else f"it has {numbered(len(names), 'column')}"
    )
    if unclear:
        raise DataError(f"{source}: name the column to count; {there}")
    if wrong in names:
        raise DataError(f"{source} has more than one column {wrong!r}; {there}")
    alike = [each for each in names if str(each).strip().lower() == str(wrong).strip().lower()]
    hint = did_you_mean(str(wrong), names if show_names else alike)
    raise DataError(f"{source} has no column {wrong!r}; {there}{hint}")


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


def is_amount(data_type: pa.DataType) -> bool:
    """Whether values of this type are numbers that can be summed."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(data_type) for is_kind in kinds)


def check_amounts(array: pa.Array, source: str) -> None:
    if kind_of(array.type) != "text" and not is_amount(array.type):
        raise DataError(f"{source}: values must be numbers, not {array.type}")


def amounts_of(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """Numbers that are written as text, and which of the rows are none. None if all are."""
    text = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    with suppress(*broken_input()):
        return text.cast(pa.float64()), None
    found = np.full(len(text), np.nan)
    good = np.zeros(len(text), np.bool_)
    for place, value in enumerate(text.to_pylist()):
        with suppress(ValueError):
            found[place], good[place] = float(value), True
    return pa.array(found), good


def checked(batch: pa.RecordBatch, name: str, source: str) -> pa.Array:
    """A column of a batch that is known to be well formed: offsets and indices in range.

    Files are not trusted: what goes to the native summaries unchecked could make them read outside their input.
    Whether text is valid UTF-8 is a matter of single rows (`readable`).
    """
    array = batch.column(name)
    valid = _indices_fit(array)
    if not valid:
        with suppress(*broken_input()):
            _as_bytes(array).validate(full=True)
            valid = True
    if not valid:
        raise DataError(f"{source} holds damaged columns; write or copy it again")
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    return without_views(array)


def _indices_fit(array: pa.Array) -> bool:
    """Whether this is a dictionary without nulls, of text or bytes that are well formed, with indices inside it.

    The same as full validation in a fraction of its time; where it is False, that decides.
    """
    if not pa.types.is_dictionary(array.type) or array.null_count or not len(array):
        return False
    indices = np.asarray(array.indices)
    if indices.view(f"u{indices.itemsize}").max() >= len(array.dictionary):  # negative ones are large
        return False
    with suppress(*broken_input()):
        _as_bytes(array.dictionary).validate(full=True)
        return True
    return False


def without_views(array: pa.Array) -> pa.Array:
    """Views, which newer writers use for text and bytes, as plain columns; also in lists."""
    types = pa.types
    if types.is_string_view(array.type):
        return _as_bytes(array).cast(pa.large_binary()).view(pa.large_string())
    if types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    if types.is_list(array.type) or types.is_large_list(array.type):
        values = without_views(array.values)
        if values.type != array.type.value_type:
            make = pa.list_ if types.is_list(array.type) else pa.large_list
            buffers = array.buffers()[:2]  # there, and where each list begins
            return pa.Array.from_buffers(make(values.type), len(array), buffers, offset=array.offset, children=[values])
    return array


@cache
def _bytes_types() -> dict[pa.DataType, pa.DataType]:
    """The types of bytes for those of text."""
    return {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def _as_bytes(array: pa.Array) -> pa.Array:
    """The same column with its text as bytes, which may be any; of a dictionary or of lists, the values."""
    if pa.types.is_dictionary(array.type):
        values = _as_bytes(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, values, safe=False) if values is not array else array
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        inner = _bytes_types().get(array.type.value_type)
        if inner is None:
            return array
        make = pa.list_ if pa.types.is_list(array.type) else pa.large_list
        return array.view(make(inner))
    wanted = _bytes_types().get(array.type)
    return array if wanted is None else array.view(wanted)


def is_utf8(value: pa.Scalar) -> bool:
    """Whether these bytes are text; a null is."""
    data = value.as_py()
    return data is None or item_of_bytes(data) is not None


def readable(array: pa.Array, longest: int | None, check_text: bool) -> npt.NDArray[np.bool_] | None:
    """Which rows of a well-formed column are items: of at most this many bytes, text in valid UTF-8. None if all are.

    A row of a list is an item if all of its elements are. Where a reader has made sure of the text, it need not be
    checked again.
    """
    if pa.types.is_dictionary(array.type):
        values = readable(array.dictionary, longest, check_text)
        if values is None:
            return None
        codes = array.indices.fill_null(0) if array.null_count else array.indices
        there: npt.NDArray[np.bool_] = values[np.asarray(codes)] | np.asarray(array.is_null())
        return there
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        elements = readable(array.flatten(), longest, check_text)
        if elements is None:
            return None
        import pyarrow.compute as pc

        rows = np.ones(len(array), np.bool_)
        rows[np.asarray(pc.list_parent_indices(array))[~elements]] = False
        return rows
    if kind_of(array.type) not in ("text", "bytes"):
        return None
    good: npt.NDArray[np.bool_] | None = None
    if check_text and not all_utf8(array):
        good = np.fromiter((is_utf8(value) for value in _as_bytes(array)), np.bool_, len(array))
    if longest is not None:
        lengths = np.diff(_offsets(array))  # in bytes; of a null, any number
        if len(lengths) and lengths.max() > longest:
            short = lengths <= longest
            good = short if good is None else good & short
    return None if good is None or good.all() else good


def all_utf8(array: pa.Array) -> bool:
    """Whether all text of a column is UTF-8."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return True
    if _is_ascii(array):
        return True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_ascii(array: pa.Array) -> bool:
    """Whether no byte of the text has its high bit set: most text is so, and one fast pass tells."""
    offsets, data = _offsets(array), array.buffers()[2]
    if data is None or not len(offsets):
        return True
    first, last = int(offsets[0]), int(offsets[-1])
    words = (last - first) // 8
    high = int(np.bitwise_or.reduce(np.frombuffer(data, np.uint64, words, first))) if words else 0
    rest = int(np.bitwise_or.reduce(np.frombuffer(data, np.uint8, last - first - 8 * words, first + 8 * words)))
    return not (high & 0x8080808080808080 or rest & 0x80)


def _offsets(array: pa.Array) -> npt.NDArray[np.signedinteger[Any]]:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets = np.frombuffer(array.buffers()[1] or b"\0" * 8, np.int64 if wide else np.int32)
    return offsets[array.offset : array.offset + len(array) + 1]


def without_null_elements(lists: pa.Array) -> pa.Array:
    """The lists without their null elements. The lists themselves are not null."""
    import pyarrow.compute as pc

    valid = pc.is_valid(pc.list_flatten(lists))
    parents = np.asarray(pc.list_parent_indices(lists))[np.asarray(valid)]
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.bincount(parents, minlength=len(lists)), out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pc.list_flatten(lists).filter(valid))
