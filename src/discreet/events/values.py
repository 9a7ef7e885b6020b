"""Items as Arrow columns whose type is a function of the items alone.

What a summary has seen decides how it holds its keys, and one row decides what it has seen. So nothing of that may show
in what is published: an empty release is a column of text, whole numbers are int64 unless one of them needs uint64, and
items of several kinds (text, bytes, whole numbers) are a union of them. Columns that a schema has given a type keep it,
also when nothing is published (`events.keys`).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from discreet import _native
from discreet._later import np, pa
from discreet.events.arrow_calls import cast, rows_at
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item, categories_of, item_of, objects_of, of_numpy, plain_array

if TYPE_CHECKING:
    import numpy.typing as npt

Value = int | str | bytes | bool | float | Decimal | datetime.date | datetime.datetime
"""What a column may publish beside the items that a summary counts as they are."""

# The tags of the native keys, and the places of their types in a union.
TEXT, BYTES, INTEGER, LARGE = range(4)


def _tag(item: Item) -> int:
    if isinstance(item, str):
        return TEXT
    if isinstance(item, bytes):
        return BYTES
    return INTEGER if item < 2**63 else LARGE


def item_order(item: Any) -> tuple[int, Any]:
    """Sorts items of any kinds: whole numbers, then text, then bytes, then what else there may be."""
    if type(item) in (int, str, bytes):
        return (0 if isinstance(item, int) else 1 if isinstance(item, str) else 2, item)
    kind = _other_kind(item)
    return 3 + (_OTHERS.index(kind) if kind else len(_OTHERS)), item


def items_array(items: Iterable[Value]) -> pa.Array:
    """The items in one column; see the module."""
    values: list[Any] = list(items)
    if {*map(type, values)} <= {str}:
        return pa.array(values, pa.large_string())
    others = {_other_kind(value) for value in values}
    if others - {""}:
        return _with_others(values, sorted(others))
    tags, types = [_tag(value) for value in values], plain_types()
    kinds = {*tags}
    if kinds == {INTEGER, LARGE} and min(values) >= 0:
        kinds = {LARGE}
    if len(kinds) == 1:
        return pa.array(values, types[kinds.pop()])
    parts: list[list[Item]] = [[], [], [], []]
    for tag, value in zip(tags, values, strict=True):
        parts[tag].append(value)
    return mixed_array(tags, [pa.array(part, kind) for part, kind in zip(parts, types, strict=True)])


def mixed_array(tags: Any, parts: list[pa.Array]) -> pa.Array:
    """Items of several kinds: row i is the next one of parts[tags[i]]."""
    codes = np.asarray(tags, np.int8)
    places = np.zeros(len(codes), np.int32)
    for tag in range(len(parts)):
        here = codes == tag
        places[here] = np.arange(np.count_nonzero(here))
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(places), parts)


def parts_of(items: pa.Array) -> list[pa.Array]:
    """The columns of a struct without nulls.

    Not by `flatten`, which ends the process where one of them holds several kinds: it gives a union a validity.
    """
    return [items.field(place) for place in range(items.type.num_fields)]


def plain_types() -> tuple[pa.DataType, ...]:
    """What a release of a summary's items is made of."""
    return pa.large_string(), pa.large_binary(), pa.int64(), pa.uint64()


def taken(items: pa.Array, places: npt.NDArray[np.int64] | memoryview) -> pa.Array:
    """The items at these places. Plain ones without `pyarrow.compute`, which takes longer to load than to be used."""
    if items.null_count or str(items.type) not in ARROW_NAMES.values():
        return rows_at(items, np.asarray(places, np.int64))  # also of none there is a type
    if pa.types.is_integer(items.type):
        parts = [pa.py_buffer(np.ascontiguousarray(np.asarray(items)[np.asarray(places)]))]
    else:
        values, offsets = _native.texts_at(items, np.ascontiguousarray(places, np.int64))
        parts = [pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(items.type, len(places), [None, *parts])


def published_type(items: pa.Array) -> pa.Array:
    """The same items in a type that depends on them alone."""
    if len(items) == 0:
        return pa.array([], pa.large_string())
    if pa.types.is_union(items.type):
        return items_array(items.to_pylist())
    if pa.types.is_uint64(items.type) and int(np.asarray(items).max()) < 2**63:
        return items.view(pa.int64())
    return items


ARROW_NAMES = {"string": "large_string", "binary": "large_binary", "int64": "int64", "uint64": "uint64"}
"""What the types of plain items are called as Arrow writes them."""


def as_arrow(items: pa.Array | _native.PlainItems) -> pa.Array:
    """The items as an Arrow array; nothing is copied."""
    if not isinstance(items, _native.PlainItems):
        return items
    parts = [items.offsets, items.values] if items.offsets else [items.values]
    kind = pa.type_for_alias(ARROW_NAMES[items.kind])
    return pa.Array.from_buffers(kind, len(items), [None, *map(pa.py_buffer, parts)])


# ---- kinds of values that come as Python objects ---------------------------------------------------------------------

_OTHERS = ("bool", "date", "datetime", "datetime in UTC", "Decimal")


def _other_kind(value: Any) -> str:
    """The name of a kind that no summary counts as it is; "" for text, bytes and whole numbers."""
    if isinstance(value, datetime.datetime):
        return "datetime" if value.tzinfo is None else "datetime in UTC"
    name = type(value).__name__
    return name if name in _OTHERS else ""


def _with_others(values: list[Any], kinds: list[str]) -> pa.Array:
    """One column of one kind, or a union of several, text and bytes and whole numbers as they are by themselves."""
    if kinds == ["Decimal"]:
        exponents = [value.as_tuple().exponent for value in values]
        scale = max(0, *(-exponent for exponent in exponents))
        whole = max(1, *(value.adjusted() + 1 for value in values))
        precision = whole + scale
        return pa.array(values, pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale))
    if len(kinds) == 1:
        types = {
            "bool": pa.bool_(),
            "date": pa.date32(),
            "datetime": pa.timestamp("us"),
            "datetime in UTC": pa.timestamp("us", "UTC"),
        }
        return pa.array(values, types[kinds[0]])
    of = [_other_kind(value) or _tag(value) for value in values]
    different = sorted(set(of), key=str)
    parts = [items_array(value for value, kind in zip(values, of, strict=True) if kind == one) for one in different]
    return mixed_array([different.index(kind) for kind in of], parts)


# ---- values that each have a kind of their own, as bytes that tell the kinds apart -----------------------------------
#
# Python objects and JSON lines have no schema, and what a library makes of the column depends on each of its values:
# one of bytes makes all text bytes, one float all numbers floats. So each value is written with its kind in front, and
# no row decides how another is read.


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


def without_kinds(column: pa.Array) -> pa.Array:
    """A column of values with their kinds in front as these values, which may be of several kinds."""
    return items_array(untagged(value) for value in column.to_pylist())


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


# ---- columns as JSON has them ----------------------------------------------------------------------------------------

_OF_TYPES = (
    r"(?P<name>[a-z0-9_]+)(\[(?P<unit>[a-z]+)(, tz=(?P<zone>[^\]]+))?\]|\((?P<precision>\d+), (?P<scale>-?\d+)\))?"
)
_SIMPLE = ("int64", "uint64", "large_string", "large_binary", "bool", "date32[day]", "halffloat", "float", "double")


def plain_items(items: Iterable[Any]) -> list[Any]:
    """Values as JSON has them: bytes in hexadecimal, what JSON has no word for as text."""
    return [item if type(item) in (str, int) else _plain(item) for item in items]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return plain_items(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, (str, int)) or value is None else str(value)


def plain_column(column: pa.Array | _native.PlainItems) -> tuple[list[Any], dict[str, Any]]:
    """(the values, JSON-ready; what else `column_of_plain` needs to make the column again)."""
    values = column.to_pylist()
    name = ARROW_NAMES[column.kind] if isinstance(column, _native.PlainItems) else str(column.type)
    if name in ARROW_NAMES.values() or isinstance(column, _native.PlainItems):
        return plain_items(values), {"type": name}
    if pa.types.is_union(column.type):
        kinds = [_other_kind(value) or type(value).__name__ for value in values]
        return plain_items(values), {"type": "mixed", "kinds": kinds}
    if _type_named(name) is None:
        raise ValueError(f"columns of type {column.type} cannot be published")
    if pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        wide = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
        return column.cast(wide).to_pylist(), {"type": name}
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        return cast(column, pa.string()).to_pylist(), {"type": name}
    return plain_items(values), {"type": name}


def column_of_plain(values: Sequence[Any], told: dict[str, Any]) -> pa.Array:
    """The inverse of `plain_column`; a ValueError or ArrowException for what is none."""
    if told["type"] == "mixed":
        return items_array(
            _OF_KINDS[kind](value) if kind in _OF_KINDS else value
            for value, kind in zip(values, told["kinds"], strict=True)
        )
    kind = _type_named(told["type"])
    if kind is None:
        raise ValueError("items of this type cannot be published")
    if pa.types.is_large_binary(kind):
        return pa.array([bytes.fromhex(value) for value in values], kind)
    if pa.types.is_floating(kind):
        return pa.array([float(value) for value in values], pa.float64()).cast(kind)
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.array(values, pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(kind)
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def _type_named(name: str) -> pa.DataType | None:
    """The type that has this name, as Arrow writes it; None for those that are not published."""
    if name in _SIMPLE:
        return pa.type_for_alias(name)
    found = re.fullmatch(_OF_TYPES, name)
    if found is None:
        return None
    make: dict[str, Callable[..., pa.DataType]] = {"time32": pa.time32, "time64": pa.time64, "duration": pa.duration}
    if found["precision"] is not None and found["name"] in ("decimal128", "decimal256"):
        made: pa.DataType = getattr(pa, found["name"])(int(found["precision"]), int(found["scale"]))
        return made
    if found["name"] == "timestamp":
        return pa.timestamp(found["unit"], found["zone"])
    return make[found["name"]](found["unit"]) if found["name"] in make and found["unit"] else None


_OF_KINDS: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "datetime in UTC": datetime.datetime.fromisoformat,
    "Decimal": Decimal,
}


def joined_keys(one: pa.Array, other: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """(the different keys of both, in their order, the place there of each of one and then of the other)."""
    import pyarrow.compute as pc

    every = pa.concat_arrays([each for each in (one, other) if len(each)] or [one])  # nothing has no type of its own
    keys = pc.unique(every)
    keys = keys.take(pc.sort_indices(keys))
    return keys, np.asarray(pc.index_in(every, value_set=keys), np.int64)
