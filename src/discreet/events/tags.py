"""Values that each have a kind of their own, as bytes that tell the kinds apart.

Python objects and JSON lines have no schema, and what a library makes of the column depends on each of its values:
one of bytes makes all text bytes, one float all numbers floats. So each value is written with its kind in front, and no
row decides how another is read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from discreet._later import np, pa
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, categories_of, item_of, objects_of, of_numpy, plain_array
from discreet.events.values import Value

if TYPE_CHECKING:
    import numpy.typing as npt


def tagged(value: Any) -> bytes | None:
    """A value with its kind in front, or None if it cannot be an item. It depends on this value alone."""
    item = item_of(value)
    if isinstance(item, int):
        return b"i" + str(item).encode()
    if item is None:
        try:
            return _other(value)
        except MemoryError:
            raise
        except Exception:  # of an object that fails when it is asked, such as a time zone
            return None
    text = item.encode() if isinstance(item, str) else item
    if len(text) > DEFAULT_MAX_KEY_BYTES:
        return None
    return (b"t" if isinstance(item, str) else b"b") + text


def _other(value: Any) -> bytes | None:
    """A boolean, date, time or decimal; those of libraries are subclasses, or have `item`."""
    value = of_numpy(value)
    if isinstance(value, bool):
        return b"o1" if value else b"o0"
    if isinstance(value, datetime.datetime):
        if value != value:  # NaT of pandas is a datetime
            return None
        kind = b"n" if value.tzinfo is None else b"z"
        moment = value if value.tzinfo is None else value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return kind + datetime.datetime.isoformat(moment, timespec="microseconds").encode()
    if isinstance(value, datetime.date):
        return b"d" + datetime.date.isoformat(value).encode()
    return _decimal(value) if isinstance(value, Decimal) else None


def _decimal(value: Decimal) -> bytes | None:
    """A decimal without zeros at its end, whatever the precision of the caller's arithmetic."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # infinite, or not a number
        return None
    if not any(digits):
        return b"c0"
    while digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    if exponent < -38 or len(digits) + exponent > 38:
        return None
    return b"c" + format(Decimal((sign, digits, exponent)), "f").encode()


def own_kinds(column: Any) -> tuple[pa.Array, npt.NDArray[np.bool_] | None] | None:
    """(the values of a column with their kinds, which rows can be items); None for a column that has a type.

    A missing value is null, and counts as one that can be an item: whether it may be missing is not decided here. In
    place of the second there is None where all rows can be items.
    """
    category = categories_of(column)
    if category is not None:
        values, codes = category
        made, good = _tags(values)
        missing = codes < 0
        good = None if good is None else np.where(missing, True, good[codes])
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), made), good
    objects = objects_of(column)
    return None if objects is None else _tags(objects)


def _tags(values: list[Any]) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    plain = plain_array(values)
    if plain is not None:
        return with_kinds(plain), None
    tags = [None if value is None else tagged(value) for value in values]
    good = np.array([value is None or tag is not None for value, tag in zip(values, tags, strict=True)], np.bool_)
    return pa.array(tags, pa.large_binary()), None if good.all() else good


_READ: dict[bytes, Callable[[bytes], Value]] = {
    b"i": int,
    b"t": bytes.decode,
    b"b": bytes,
    b"o": lambda rest: rest == b"1",
    b"n": lambda rest: datetime.datetime.fromisoformat(rest.decode()),
    b"z": lambda rest: datetime.datetime.fromisoformat(rest.decode()).replace(tzinfo=datetime.timezone.utc),
    b"d": lambda rest: datetime.date.fromisoformat(rest.decode()),
    b"c": lambda rest: Decimal(rest.decode()),
}


def untagged(value: bytes) -> Value:
    """The inverse of `tagged`."""
    return _READ[value[:1]](value[1:])


def with_kinds(column: pa.Array) -> pa.Array:
    """A column of texts, bytes or whole numbers with the kind in front of each, as `tagged` writes them."""
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        kind, column = b"i", column.cast(pa.string())
    else:
        kind = b"t" if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else b"b"
    binary = pa.large_binary()
    return pc.binary_join_element_wise(pa.scalar(kind, binary), column.cast(binary), pa.scalar(b"", binary))
