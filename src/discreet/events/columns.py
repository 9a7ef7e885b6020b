"""Which columns are read, and what may be in them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet._later import np, pa
from discreet.errors import DataError, did_you_mean
from discreet.events.items import item_of_bytes
from discreet.privacy.checks import numbered

if TYPE_CHECKING:
    import numpy.typing as npt

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


def choose(names: Sequence[str], wanted: Sequence[str | None], source: str, show_names: bool = True) -> list[str]:
    """The names of the columns that are wanted: that of the items, and others.

    Where the first is None it is the only one there is (beside the others). `show_names` is False where the names might
    be data: a CSV file without a header line has its first row in their place.
    """
    if not wanted:
        return []
    column, others = wanted[0], [name for name in wanted[1:] if name is not None]
    if column is None:
        rest = [name for name in names if name not in others]
        if len(rest) != 1:
            raise DataError(f"{source}: name the column to count; {_columns(names, show_names)}")
        column = rest[0]
    check_names(names, [column, *others], source, show_names)
    return [column, *others]


def check_names(
    names: Sequence[Any], wanted: Sequence[str], source: str = "the table", show_names: bool = True
) -> None:
    """Refuse names that no column has, or several.

    Without `show_names`, what is taken for names may be the first row of the data: the message then hints at a name
    only if it differs from the wanted one in case or blanks, which tells no more than finding it would.
    """
    for name in wanted:
        if name not in names:
            alike = [each for each in names if str(each).strip().lower() == name.strip().lower()]
            hint = did_you_mean(name, names if show_names else alike)
            raise DataError(f"{source} has no column {name!r}; {_columns(names, show_names)}{hint}")
        if names.count(name) != 1:
            raise DataError(f"{source} has more than one column {name!r}; {_columns(names, show_names)}")


def _columns(names: Sequence[Any], show_names: bool) -> str:
    if show_names:
        return f"its columns are {', '.join(map(repr, names))}"
    return f"it has {numbered(len(names), 'column')}"


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
    """Views, which newer writers use for text and bytes, as plain columns."""
    if pa.types.is_string_view(array.type):
        return _as_bytes(array).cast(pa.large_binary()).view(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
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


def filtered(array: Any, keep: npt.NDArray[np.bool_]) -> Any:
    """Some rows of a column. (`array.filter(pa.array(keep))` loads pyarrow.compute and numpy.ma, which takes 25 ms.)"""
    from pyarrow._compute import call_function

    bits = pa.py_buffer(np.packbits(keep, bitorder="little"))
    return call_function("filter", [array, pa.Array.from_buffers(pa.bool_(), len(keep), [None, bits])])


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
