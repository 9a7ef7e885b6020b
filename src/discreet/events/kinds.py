"""Values that each have a kind of their own, as bytes that tell the kinds apart.

Python objects and JSON lines have no schema, and what a library makes of such a column depends on each of its values:
one of bytes makes all text bytes, one float all numbers floats. So each value is written with its kind in front, and no
row decides how another is read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from discreet._later import pa
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, item_of
from discreet.events.published import Value

__all__ = ["tagged", "untagged", "with_kinds"]


def tagged(value: Any) -> bytes | None:
    """A value with its kind in front, or None if it cannot be an item."""
    item = item_of(value)
    if isinstance(item, int):
        return b"i" + str(item).encode()
    if item is None:
        return _other(value)
    text = item.encode() if isinstance(item, str) else item
    if len(text) > DEFAULT_MAX_KEY_BYTES:
        return None
    return (b"t" if isinstance(item, str) else b"b") + text


def _other(value: Any) -> bytes | None:
    """A boolean, date, time or decimal; those of libraries are subclasses, or have `item`."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool):
        return b"o1" if value else b"o0"
    if isinstance(value, datetime.datetime):
        try:
            if value.tzinfo is None:
                return b"n" + value.replace(tzinfo=None).isoformat(timespec="microseconds").encode()
            moment = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        except (ValueError, OverflowError):  # before the year 1, or not a time
            return None
        return b"z" + moment.isoformat(timespec="microseconds").encode()
    if isinstance(value, datetime.date):
        return b"d" + value.isoformat().encode()
    if isinstance(value, Decimal) and value.is_finite():
        digits = value.normalize()
        exponent = digits.as_tuple().exponent
        if isinstance(exponent, int) and -38 <= exponent <= 38 and digits.adjusted() < 38:
            return b"c" + format(digits, "f").encode()
    return None


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
