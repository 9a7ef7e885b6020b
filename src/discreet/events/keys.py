"""The one home of items that are tuples of typed parts: countries with pages, a day with a page, or a single date.

Summaries, engines and ledgers know items that are text, bytes or whole numbers. Anything else becomes bytes here, a
batch at a time, and the bytes of what is published become columns again:

    layout = Layout.of(names, types)    the types come from a schema, never from a row
    layout.keys(columns)                one column of bytes; different tuples have different bytes
    layout.items(keys)                  the columns, in their own types

A key is the fixed parts (numbers, dates, times, decimals, booleans) one after the other, then the length in four bytes
of each text but the last, then the texts. All widths are known from the types, so the key can be read back in one way
only. Where nothing says the type of a value but itself (Python objects, JSON lines), it is written with its kind
(`events.values`) and is a text here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from discreet import _native
from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import DataError, ParameterError
from discreet.events.arrow_calls import cast, encoded, filled, of_numbers, rows_at
from discreet.events.items import is_several, kind_of, values_of, without_views
from discreet.events.times import Every
from discreet.events.values import items_array, tagged, untagged, with_kinds

if TYPE_CHECKING:
    import numpy.typing as npt

    _Bytes = npt.NDArray[np.uint8]

OWN_KINDS = None
"""In place of a type: every value has a kind of its own, and comes as bytes of `events.values`."""

USUAL_GROUPS = 32
"""How many groups counters are provided for where no list says how many there are. (More can be listed.)"""

_LENGTH = 4  # bytes that say how long a text is


def part_type(given: pa.DataType) -> pa.DataType | None:
    """The type in which values of a column are published, or None if they cannot be items.

    Whole numbers of any width are int64, or uint64 if the column is; dictionaries are what they stand for.
    """
    types = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return part_type(given.storage_type)
    if types.is_dictionary(given):
        return part_type(given.value_type)
    if types.is_null(given):
        return pa.large_string()
    kind = kind_of(given, lists=False)
    if kind == "integer":
        return pa.uint64() if types.is_uint64(given) else pa.int64()
    if kind is not None or types.is_fixed_size_binary(given):
        return pa.large_string() if kind == "text" else pa.large_binary()
    if types.is_date(given):
        return pa.date32()
    if types.is_decimal(given):
        wide = types.is_decimal256(given)
        return given if wide else pa.decimal128(given.precision, given.scale)
    if types.is_boolean(given) or types.is_floating(given) or types.is_temporal(given):
        return None if types.is_interval(given) else given
    return None


@dataclass(frozen=True)
class TypedPart:
    """One column of an item: its name, and its type or OWN_KINDS."""

    name: str
    type: pa.DataType | None

    @property
    def width(self) -> int | None:
        """How many bytes every value takes; None for texts and bytes."""
        if self.type is OWN_KINDS or pa.types.is_large_string(self.type) or pa.types.is_large_binary(self.type):
            return None
        return 1 if pa.types.is_boolean(self.type) else int(self.type.bit_width) // 8


@dataclass(frozen=True)
class Layout:
    """What items are made of. The first `by` parts say the group that an item is in."""

    parts: tuple[TypedPart, ...]
    by: int = 0

    @classmethod
    def of(cls, names: Sequence[str], given: Iterable[pa.DataType | None], by: int = 0, source: str = "") -> Layout:
        """The layout of columns with these names and types; `DataError` where values cannot be items."""
        where = f"{source}: " if source else ""
        parts = []
        for name, kind in zip(names, given, strict=True):
            made = OWN_KINDS if kind is OWN_KINDS else part_type(kind)
            if made is None and kind is not OWN_KINDS:
                raise DataError(
                    f"{where}the column {name!r} is of type {kind}; items must be texts, bytes, numbers, booleans, "
                    "dates, times or decimals"
                )
            parts.append(TypedPart(name, made))
        return cls(tuple(parts), by)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parts."""
        return tuple(part.name for part in self.parts)

    # ---- columns to keys ---------------------------------------------------------------------------------------------

    def keys(self, columns: Sequence[pa.Array], source: str = "the table") -> pa.Array:
        """One key a row, null where a part is. Of dictionaries that have few values, a dictionary of keys."""
        arrays = [plain(column) for column in columns]
        found = _encoded(arrays, self.parts)
        if found is None:
            return self._keys(arrays, source)
        codes, values = found
        return pa.DictionaryArray.from_arrays(codes, self._keys(values, source))

    def _keys(self, columns: Sequence[pa.Array], source: str) -> pa.Array:
        both = list(zip(columns, self.parts, strict=True))
        rows, fixed, there = len(columns[0]), [], []
        texts: list[tuple[Any, Any, Any]] = []
        for array, part in both:
            if part.width is None and pa.types.is_dictionary(array.type):
                values, indices = _cast(array.dictionary, part, source), array.indices
                indices = indices.fill_null(0) if indices.null_count else indices
                values = values if len(values) else pa.array([""]).cast(values.type)  # that nulls may stand for
                texts.append((*_text(values), np.asarray(indices).astype(np.int32, copy=False)))
                array = array if not values.null_count else array.dictionary_decode()
            else:
                array = _cast(_decoded(array), part, source)
                if part.width is None:
                    texts.append((*_text(array), None))
                else:
                    fixed.append(_raw(array, part.width))
            if array.null_count:
                there.append(np.asarray(array.is_valid()))
        offsets = np.empty(rows + 1, np.int64)
        _native.joined_offsets(fixed, texts, offsets)
        data = np.empty(int(offsets[-1]), np.uint8)
        _native.join_rows(fixed, texts, offsets, data)
        bits = pa.py_buffer(np.packbits(np.logical_and.reduce(there), bitorder="little")) if there else None
        return pa.Array.from_buffers(pa.large_binary(), rows, [bits, pa.py_buffer(offsets), pa.py_buffer(data)])

    # ---- keys to columns ---------------------------------------------------------------------------------------------

    def items(self, keys: pa.Array) -> pa.Array:
        """The items of keys: a column of tuples (a struct), or of one part that."""
        columns = self.columns(keys)
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays(columns, list(self.names))

    def columns(self, keys: pa.Array) -> list[pa.Array]:
        """The parts of keys, each in its type."""
        rows: list[bytes] = keys.to_pylist()
        widths = [part.width for part in self.parts]
        texts = widths.count(None)
        place = sum(width for width in widths if width is not None)
        starts = np.full(len(rows), place + _LENGTH * max(texts - 1, 0), np.int64)
        found: dict[int, pa.Array] = {}
        seen = 0
        for index, width in enumerate(widths):
            if width is not None:
                continue
            seen += 1
            if seen < texts:
                raw = b"".join(row[place : place + _LENGTH] for row in rows)
                ends = starts + np.frombuffer(raw, "<u4").astype(np.int64)
                place += _LENGTH
            else:
                ends = np.array([len(row) for row in rows], np.int64)
            values = [row[start:end] for row, start, end in zip(rows, starts.tolist(), ends.tolist(), strict=True)]
            kind = self.parts[index].type
            if kind is OWN_KINDS:
                found[index] = items_array(map(untagged, values))
            else:
                found[index] = cast(pa.array(values, pa.large_binary()), kind)
            starts = ends
        at = 0
        for index, width in enumerate(widths):
            if width is not None:
                raw = b"".join(row[at : at + width] for row in rows)
                kind, at = self.parts[index].type, at + width
                if pa.types.is_boolean(kind):
                    found[index] = pa.array(np.frombuffer(raw, np.uint8).astype(np.bool_))
                else:
                    found[index] = pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(raw)])
        return [found[index] for index in range(len(widths))]


class Keys:
    """Makes the keys of batches, and columns again of those that are published.

    The layout is that of the schema of the first batch, which may be empty; later ones are cast to it. Where a public
    list of groups is given, the group of a row is its place in the list, and rows of other groups are left out: a rule
    that was known before anything was read.

    Args:
        items: The columns of the items; none where the groups are the items.
        by: The columns that say the group.
        own_kinds: Whether no schema says what values are: columns then are texts, bytes or whole numbers of any batch.
        groups: All groups there may be: values, or tuples where several columns say the group.
        every: The first column of `by` holds times, and spans of time are the groups.

    Attributes:
        layout: Once a batch was seen. Of one item of a kind that summaries know there are no keys, and it stays None.
        joint: Whether keys are made whatever the type: of several columns, of spans of time, of places in a list.
        room: How many bytes a key of one part has more than its value: that of its kind, where it has one.
        many_groups: How many groups there are, if that is public.
        time: The column of times, if spans of time are the groups.
    """

    def __init__(
        self,
        items: Sequence[str],
        by: Sequence[str] = (),
        *,
        own_kinds: bool = False,
        groups: Sequence[Any] | None = None,
        every: Every | None = None,
    ) -> None:
        self.by = tuple(by)
        named = tuple(items) if len(items) != 1 else ("item_" if "item" in self.by else "item",)
        self.names = (*self.by, *named)
        self.layout: Layout | None = None
        self.room = 0
        self._of_groups: Layout | None = None
        self.joint = len(self.names) > 1 or every is not None or groups is not None
        self._own_kinds = own_kinds and self.joint
        self._every = every
        self._given = None if groups is None else _rows_of(groups, len(self.by))
        self.many_groups = None if self._given is None else len(self._given)
        self.time = None if every is None else self.by[0]
        self._listed: list[pa.Array] = []
        self._listed_keys: pa.Array | None = None

    def items_in_all(self, k: int) -> int:
        """How many items may be listed if every group has k; without a list of groups, as if there were this many."""
        return k * (self.many_groups or (USUAL_GROUPS if self.by else 1))

    @property
    def asked(self) -> dict[str, Any]:
        """What was said of the groups, JSON-ready: nothing without any."""
        told: dict[str, Any] = {}
        if self._every is not None:
            told |= {"every": self._every.text, "zone": self._every.zone or "UTC"}
        if self._given is not None:
            told["groups"] = [[str(value) for value in row] for row in self._given]
        return told

    def needed(self, kind: pa.DataType) -> bool:
        """Whether items whose first column has this type are made into keys: several columns, or no text or number."""
        if self.joint or self.layout is not None:
            return True
        nested = pa.types.is_nested(kind) or pa.types.is_null(kind)
        return not nested and kind_of(kind) is None and part_type(kind) is not None

    def start(self, given: Sequence[pa.DataType | None], source: str = "") -> None:
        """The types of the columns, groups first; OWN_KINDS for bytes of `events.values`."""
        if self.layout is not None:
            return
        many, listed = len(self.by), self._given is not None
        types = list(given)
        if self._own_kinds:  # a list is written in a file: there all are texts
            types = [pa.large_string() if place < many and listed else OWN_KINDS for place in range(len(types))]
        if self._every is not None:
            types[0] = self._every.type
        self.layout = Layout.of(self.names, types, many, source)
        if listed:
            self._of_groups = Layout(self.layout.parts[:many])
            self._listed, self._listed_keys = self._read_list(self._of_groups)
            self.layout = Layout((TypedPart("", pa.int32()), *self.layout.parts[many:]), 1)
        self.room = int(len(self.layout.parts) == 1 and self.layout.parts[0].type is OWN_KINDS)

    def of(
        self, columns: Sequence[pa.Array], source: str
    ) -> tuple[pa.Array, npt.NDArray[np.bool_] | None, npt.NDArray[np.bool_] | None]:
        """(keys, which rows have a readable time, which are in a listed group); None where all are."""
        columns, good = list(columns), None
        if self._every is not None:
            columns[0], good = self._every.spans(columns[0], source)
        self.start([column.type for column in columns], source)
        assert self.layout is not None
        if self.are_items:
            return columns[0], None, None
        many = len(self.by)
        if self._own_kinds:
            own = self.layout.parts
            parts = own if self._of_groups is None else (*self._of_groups.parts, *own[1:])
            columns = [
                with_kinds(without_views(column)) if part.type is OWN_KINDS else column
                for column, part in zip(columns, parts, strict=True)
            ]
        if self._of_groups is None:
            return self.layout.keys(columns, source), good, None
        import pyarrow.compute as pc

        keys = self._of_groups.keys(columns[:many], source)
        places = pc.index_in(_decoded(keys), value_set=self._listed_keys)
        listed = np.asarray(places.is_valid()) | np.asarray(keys.is_null())  # a null is not for the list to judge
        places = pc.if_else(keys.is_valid(), places.fill_null(0), pa.scalar(None, pa.int32()))
        return self.layout.keys([places, *columns[many:]], source), good, None if listed.all() else listed

    @property
    def are_items(self) -> bool:
        """Whether keys are the items as they were, in one column: text, bytes or whole numbers."""
        kind = OWN_KINDS if self.layout is None else self.layout.parts[0].type
        return not self.joint and (self.layout is None or (kind is not OWN_KINDS and kind_of(kind) is not None))

    def items(self, keys: pa.Array) -> pa.Array:
        """The items of keys that are published."""
        layout = self.layout
        if self.are_items:
            return keys
        if layout is None:  # nothing was read, and nothing says what it might have been
            self.start([pa.large_string()] * len(self.names))
            assert self.layout is not None
            layout = self.layout
        keys = keys if len(keys) else pa.array([], pa.large_binary())
        if self._of_groups is None:
            return layout.items(keys)
        places, *rest = layout.columns(keys)
        return pa.StructArray.from_arrays([*(column.take(places) for column in self._listed), *rest], list(self.names))

    def groups(self) -> pa.Array | None:
        """All groups of the public list, in a struct."""
        if self._given is not None:
            self.items(pa.array([], pa.large_binary()))  # which says what they are where nothing was read
        return pa.StructArray.from_arrays(self._listed, list(self.by)) if self._listed else None

    def struct(self, keys: pa.Array) -> pa.StructArray:
        """The items of keys in a struct, also where they are of one column."""
        items = self.items(keys)
        return items if pa.types.is_struct(items.type) else pa.StructArray.from_arrays([items], list(self.names))

    def listed_at(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """The places of the groups of keys in the public list."""
        assert self.layout is not None
        return np.asarray(self.layout.columns(keys)[0], np.int64) if len(keys) else np.zeros(0, np.int64)

    def group_of(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """A number for the group of every key; which number it is means nothing."""
        if not self.by or self.layout is None or not len(keys):
            return np.zeros(len(keys), np.int64)
        columns = [column.to_pylist() for column in self.layout.columns(keys)[: self.layout.by]]
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(row, len(numbers)) for row in zip(*columns, strict=True)], np.int64)

    def _read_list(self, of: Layout) -> tuple[list[pa.Array], pa.Array]:
        """The columns of the list in the types of the groups, and its keys."""
        rows = self._given or []
        columns, raw = [], []
        for place, part in enumerate(of.parts):
            values = [row[place] for row in rows]
            column = _listed_column(values, part)
            columns.append(column if part.type is not OWN_KINDS else items_array(values))
            raw.append(column)
        keys = _decoded(of.keys(raw, "the list of groups"))
        if keys.null_count:
            raise ParameterError("the list of groups has an empty value")
        import pyarrow.compute as pc

        if len(pc.unique(keys)) < len(keys):
            raise ParameterError("the list of groups names one of them twice")
        return columns, keys


def _rows_of(groups: Sequence[Any], many: int) -> list[tuple[Any, ...]]:
    """The groups of a list as tuples."""
    if not many:
        raise ParameterError("groups needs by: the column whose values the groups are")
    if isinstance(groups, (str, bytes, Mapping)) or not is_several(groups):
        raise ParameterError(f"groups must be a list of the groups, not {type(groups).__name__}")
    rows = [group if isinstance(group, tuple) else (group,) for group in values_of(groups)] if many == 1 else [
        tuple(group) if isinstance(group, (list, tuple)) else (group,) for group in groups
    ]  # fmt: skip
    if not rows or any(len(row) != many for row in rows):
        raise ParameterError(f"groups must be a list of {'values' if many == 1 else f'tuples of {many} values'}")
    return rows


def _listed_column(values: list[Any], part: TypedPart) -> pa.Array:
    """Values of a list in the type of a part; where they are written as text they are read as such values."""
    if part.type is OWN_KINDS:
        tags = [tagged(value) for value in values]
        if None not in tags:
            return pa.array(tags, pa.large_binary())
    elif not any(value is None for value in values) and not (
        pa.types.is_integer(part.type) and any(isinstance(value, (float, bool)) for value in values)  # would be cut
    ):
        with suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
            texts = all(isinstance(value, str) for value in values)
            if texts and pa.types.is_timestamp(part.type) and part.type.tz is not None:
                # Without an offset a time is meant as the clock of the zone shows it.
                plain = [value if re.search(r"(Z|[+-]\d\d:?\d\d)$", value) else None for value in values]
                if None in plain:
                    import pyarrow.compute as pc

                    local = pa.array(values, pa.string()).cast(pa.timestamp(part.type.unit))
                    return pc.assume_timezone(local, part.type.tz, ambiguous="earliest", nonexistent="earliest")
            return pa.array(values, pa.string()).cast(part.type) if texts else pa.array(values, part.type)
    raise ParameterError(f"the groups of the column {part.name!r} must be values of the type {part.type or 'of items'}")


def plain(column: pa.Array) -> pa.Array:
    """A column, or a dictionary, without views, and what an extension stores."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type) and without_views(column.dictionary) is not column.dictionary:
        return pa.DictionaryArray.from_arrays(column.indices, without_views(column.dictionary))
    return without_views(column)


def _decoded(array: pa.Array) -> pa.Array:
    return plain(array.dictionary_decode()) if pa.types.is_dictionary(array.type) else array


def _encoded(arrays: Sequence[pa.Array], parts: Sequence[TypedPart]) -> tuple[pa.Array, list[pa.Array]] | None:
    """(which tuple every row has, the different tuples), where that is quick to find; otherwise None.

    It is where texts come as dictionaries, as from Parquet, and the tuples that are possible are fewer than the rows:
    their keys are made once each.
    """
    rows, sizes = len(arrays[0]), []
    codes: npt.NDArray[np.int32] = np.zeros(rows, np.int32)  # there are no more tuples than rows
    missing: npt.NDArray[np.bool_] | None = None
    dictionaries: list[pa.Array] = []
    if not any(pa.types.is_dictionary(array.type) for array in arrays):
        return None
    for array, part in zip(arrays, parts, strict=True):
        if not pa.types.is_dictionary(array.type):
            if part.width is None:
                return None
            array = encoded(array)
        if array.dictionary.null_count:
            return None
        sizes.append(max(len(array.dictionary), 1))
        if math.prod(sizes) > max(rows, 1):
            return None
        indices = array.indices
        if indices.null_count:
            gone = np.asarray(indices.is_null())
            missing = gone if missing is None else missing | gone
            indices = filled(indices, 0)
        codes = codes * np.int32(sizes[-1]) + np.asarray(indices).astype(np.int32, copy=False)
        dictionaries.append(array.dictionary)
    there = np.zeros(math.prod(sizes), np.bool_)
    there[codes if missing is None else codes[~missing]] = True
    places = np.flatnonzero(there)
    which = (np.cumsum(there, dtype=np.int32) - 1)[codes]
    found = of_numbers(which) if missing is None else pa.array(which, mask=missing)
    columns: list[pa.Array] = []
    for size, dictionary in zip(reversed(sizes), reversed(dictionaries), strict=True):
        places, rest = np.divmod(places, size)
        columns.append(plain(rows_at(dictionary, rest)) if len(dictionary) else plain(dictionary))
    return found, columns[::-1]


def _cast(array: pa.Array, part: TypedPart, source: str) -> pa.Array:
    """A column in the type of its part, with one form for each value."""
    kind = pa.large_binary() if part.type is OWN_KINDS else part.type
    if array.type != kind:
        if not _always_fits(array.type, kind):
            raise DataError(
                f"{source}: the column {part.name!r} is of type {array.type}, but was {kind} before; use one type"
            )
        array = cast(array, kind, safe=False)  # as times do that are finer than before
    if pa.types.is_floating(array.type):
        # Not a number is no value, and there is one zero.
        numbers = array.to_numpy(zero_copy_only=False)
        array = pa.array(numbers + numbers.dtype.type(0), mask=np.isnan(numbers))
    return array


def _always_fits(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether all values of one type are values of the other: else one row would decide whether anything is counted."""
    types = pa.types
    if types.is_null(given):
        fits = True
    elif types.is_decimal(kind):
        fits = types.is_decimal(given) and given.scale <= kind.scale
        fits = fits and given.precision - given.scale <= kind.precision - kind.scale
    elif types.is_uint64(kind):
        fits = types.is_unsigned_integer(given)
    elif types.is_integer(kind):
        fits = types.is_integer(given) and not types.is_uint64(given)
    elif types.is_floating(kind):
        fits = types.is_floating(given) and given.bit_width <= kind.bit_width
    elif types.is_temporal(kind):
        fits = types.is_timestamp(given) and not types.is_time(kind) and not types.is_duration(kind)
        fits = fits or (types.is_date(kind) and types.is_date(given))
    else:
        of = kind_of(given, lists=False)
        fits = of == "text" or (types.is_large_binary(kind) and (of == "bytes" or types.is_fixed_size_binary(given)))
        fits = fits and (types.is_large_string(kind) or types.is_large_binary(kind))
        fits = fits or (types.is_large_string(kind) and types.is_integer(given))  # as groups of JSON are listed in text
    return bool(fits)


def _raw(array: pa.Array, width: int | None) -> _Bytes:
    """The bytes of a column of fixed width, a row each; of a null, any."""
    assert width is not None
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    data = array.buffers()[1]
    if data is None:
        return np.zeros((len(array), width), np.uint8)
    start = array.offset * width
    return np.frombuffer(data, np.uint8)[start : start + len(array) * width].reshape(len(array), width)


def _text(array: pa.Array) -> tuple[npt.NDArray[np.int64], _Bytes]:
    """Where the values of a column of texts or bytes begin and end, and all of their bytes."""
    array = cast(array, pa.large_binary())
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    found = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return found, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
