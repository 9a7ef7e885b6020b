"""The one universe: the items that can occur, known without the data."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet._later import pa
from discreet.errors import DataError, IncompatibleSummaryError, ParameterError
from discreet.events.items import (
    DEFAULT_MAX_KEY_BYTES,
    Item,
    arrow_chunks,
    is_arrow,
    item_of,
    item_of_bytes,
    kind_of,
    prepare_column,
    rules,
    values_of,
    without_views,
)

Words = npt.NDArray[np.uint64]

_KINDS = {"int64": int, "uint64": int, "string": str, "binary": bytes}
_UNBOUNDED = {"integers": "int64", "strings": "string", "bytes": "binary"}
_MOST = 2**63
_FEW = 1024  # items that are looked up one by one: pyarrow.compute takes 20 ms to load


@dataclass(frozen=True, init=False, repr=False)
class Universe:
    """The items that can occur, known without the data and the same for everyone.

    Bounded: a range of whole numbers or a list of different items, and the word of an item is its place. Unbounded, of
    one kind: the word of an integer is its 64-bit pattern; that of a text is a polynomial of its bytes over the field
    of 2^61 - 1 at a fixed public point. Two given texts of at most 7 m bytes share a word with probability at most
    (m + 1)/2^61 if they were written without regard to that point; a pair like that is counted as one item.

    Attributes:
        kind: "int64", "uint64", "string" or "binary".
        size: How many items there are; None without a bound.
        first: The first number of a range.
        elements: The items of a list.

    Args:
        items: A range of step 1 within 64 bits; or a column or list of different int, str or bytes, all of one kind.
    """

    kind: str
    size: int | None
    first: int | None
    elements: tuple[Item, ...] | None

    def __init__(self, items: range | Iterable[Item]) -> None:
        if isinstance(items, range):
            if items.step != 1 or not items:
                raise ParameterError(f"a universe of numbers is a non-empty range of step 1, not {items!r}")
            # Not len(), which knows no sizes of more than 63 bits.
            self._set(_integers(items[0], items[-1]), items.stop - items.start, first=items.start)
        elif isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise ParameterError(f"a universe is a range or a list of items, not {type(items).__name__}")
        else:
            elements = _listed(items)
            kind = next(kind for kind, known in _KINDS.items() if isinstance(elements[0], known))
            if kind == "int64":
                kind = _integers(min(elements), max(elements))  # type: ignore[arg-type]
            self._set(kind, len(elements), elements=elements)

    def _set(
        self, kind: str, size: int | None, first: int | None = None, elements: tuple[Item, ...] | None = None
    ) -> Universe:
        if size is not None and size > _MOST:
            raise ParameterError("a universe can have at most 2**63 items")
        for name, value in (("kind", kind), ("size", size), ("first", first), ("elements", elements)):
            object.__setattr__(self, name, value)
        return self

    @classmethod
    def of(cls, given: object) -> Universe:
        """Also from a size n (the integers 0 to n - 1), and from "integers", "strings" or "bytes" for all of a kind."""
        if isinstance(given, Universe):
            return given
        if isinstance(given, str):
            if given not in _UNBOUNDED:
                raise ParameterError(f"an unbounded universe is one of {', '.join(_UNBOUNDED)}, not {given!r}")
            return cls.__new__(cls)._set(_UNBOUNDED[given], None)
        if isinstance(given, int) and not isinstance(given, bool):
            given = range(given)
        return cls(given)  # type: ignore[arg-type]

    @property
    def bounded(self) -> bool:
        """Whether every item has a place below `size`."""
        return self.size is not None

    @property
    def has_numbers(self) -> bool:
        """Whether the items are whole numbers."""
        return self.kind in ("int64", "uint64")

    # ---- from places to items --------------------------------------------------------------------------------------

    def items(self, places: npt.ArrayLike) -> list[Any]:
        """The items at these places."""
        if self.first is None and self.elements is None:
            raise ParameterError("an unbounded universe has no list of items")
        listed = np.asarray(places).tolist()
        if self.elements is not None:
            return [self.elements[place] for place in listed]
        return [self.first + place for place in listed]

    def take(self, places: npt.ArrayLike) -> pa.Array:
        """The items at these places, as a column."""
        return pa.array(self.items(places), self._arrow_type)

    # ---- from items to places --------------------------------------------------------------------------------------

    def place(self, item: Item) -> int:
        """Where an item stands; -1 if it is outside."""
        if self.elements is not None:
            return self._places.get(item, -1)
        if self.first is None or self.size is None:
            raise ParameterError("an unbounded universe has no positions")
        return item - self.first if isinstance(item, int) and 0 <= item - self.first < self.size else -1

    def positions(self, items: pa.Array) -> npt.NDArray[np.int64]:
        """Where the items of a summary stand; -1 for those outside, and so are all of another kind.

        What kinds a summary holds depends on its rows, so it is no error that it holds none of the universe's.
        """
        if pa.types.is_union(items.type):
            return np.array([self.place(item) for item in items.to_pylist()], np.int64)
        return self._column_places(items) if self._holds(items.type) else np.full(len(items), -1, np.int64)

    def refuse_type(self, kind: pa.DataType) -> None:
        """Refuse a column whose type says that it holds items of another kind. No row is looked at."""
        if not self._holds(kind):
            raise IncompatibleSummaryError(
                f"the universe holds {self.kind} items, the column {kind}; use one kind for both, such as text"
            )

    @property
    def word_bits(self) -> int:
        """How many bits a word may have."""
        if self.size is not None:
            return (self.size - 1).bit_length()
        return 64 if self.has_numbers else 61

    def words(self, items: Any, nulls: str = "error") -> Words:
        """The word of every item, in order; `DataError` for items of another kind or outside the universe."""
        if self.elements is not None:
            places = self._listed_places(items, nulls)
            if (places < 0).any():
                raise DataError("an item is outside the universe")
            return places.astype(np.uint64)
        words = _native.item_words(prepare_column(items), self.kind, rules(nulls)[0], DEFAULT_MAX_KEY_BYTES, _point())
        if self.first is not None and self.size is not None:
            words = words - np.uint64(self.first % 2**64)
            if (words >= np.uint64(self.size)).any():
                raise DataError("an item is outside the universe")
        return words

    def _listed_places(self, items: Any, nulls: str) -> npt.NDArray[np.int64]:
        column, kind = prepare_column(items), _KINDS[self.kind]
        another = DataError(
            f"the universe has {self.kind} items, but the column has items of another kind; use one kind"
        )
        if is_arrow(column):
            chunks = [_without_nulls(chunk, rules(nulls)[0]) for chunk in arrow_chunks(column)]
            if not all(self._holds(chunk.type) for chunk in chunks if len(chunk)):
                raise another
            return np.concatenate([np.zeros(0, np.int64), *(self._column_places(chunk) for chunk in chunks)])
        # A number beyond 64 bits is no item, but it is a number outside the universe.
        values = [value if type(value) is int else item_of(value) for value in values_of(column, nulls)]
        if not all(isinstance(value, kind) for value in values):
            raise another
        return np.array([self._places.get(value, -1) for value in values], np.int64)  # type: ignore[arg-type]

    def _column_places(self, array: pa.Array) -> npt.NDArray[np.int64]:
        """Where the items of a column of the universe's kind stand; -1 for those outside."""
        if self.elements is not None and len(array) > _FEW:
            import pyarrow.compute as pc

            try:
                found = pc.index_in(array.cast(self._arrow_type), value_set=self._column)
                return np.asarray(pc.fill_null(found, -1)).astype(np.int64)
            except pa.ArrowInvalid:
                pass  # int64 and uint64, and a number that only one of them has
        return np.array([self.place(item) for item in _plain_items(array)], np.int64)

    @cached_property
    def _places(self) -> dict[Item, int]:
        return {item: place for place, item in enumerate(self.elements or ())}

    @cached_property
    def _column(self) -> pa.Array:
        return pa.array(self.elements, self._arrow_type)

    @property
    def _arrow_type(self) -> pa.DataType:
        types = {"int64": pa.int64, "uint64": pa.uint64, "string": pa.large_string, "binary": pa.large_binary}
        return types[self.kind]()

    def _holds(self, given: pa.DataType) -> bool:
        given = given.value_type if pa.types.is_dictionary(given) else given
        kind = "bytes" if pa.types.is_fixed_size_binary(given) else kind_of(given, lists=False)
        return kind == {"string": "text", "binary": "bytes"}.get(self.kind, "integer") or pa.types.is_null(given)

    # ---- descriptions ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        if self.elements is not None:
            elements = [e.hex() if isinstance(e, bytes) else e for e in self.elements]
            return {"kind": self.kind, "items": elements}
        if self.size is not None:
            return {"kind": self.kind, "first": self.first, "size": self.size}
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Universe:
        """The inverse of `to_dict`."""
        if "items" in values:
            items = values["items"]
            return cls.of([bytes.fromhex(e) for e in items] if values["kind"] == "binary" else items)
        if "size" in values:
            return cls.of(range(values["first"], values["first"] + values["size"]))
        names = {kind: name for name, kind in _UNBOUNDED.items()}
        if values.get("kind") not in names:
            raise ParameterError(f"an unbounded universe is one of {', '.join(names)}, not {values.get('kind')!r}")
        return cls.of(names[values["kind"]])

    def outline(self) -> dict[str, Any]:
        """What a state keeps that has no use for a list: its size and kind; a range has its first number, too."""
        return {"size": self.size, "kind": "integer" if self.has_numbers else self.kind, "first": self.first}

    @classmethod
    def from_outline(cls, size: object, kind: object, first: object) -> Universe:
        """The inverse of `outline`; of a list, the items are not known."""
        kinds = {"integer": "int64", "string": "string", "binary": "binary"}
        if not isinstance(size, int) or not 1 <= size <= _MOST or not isinstance(kind, str) or kind not in kinds:
            raise ParameterError("not a universe")
        if first is None:
            return cls.__new__(cls)._set(kinds[kind], size)
        if not isinstance(first, int) or kind != "integer":
            raise ParameterError("not a universe")
        return cls(range(first, first + size))

    def __str__(self) -> str:
        if self.size is None:
            return f"all {self.kind} items"
        if self.first is not None:
            return f"{self.size} integers from {self.first}"
        return f"a list of {self.size} elements ({'integer' if self.has_numbers else self.kind})"

    def __repr__(self) -> str:
        if self.size is None:
            return f"Universe(all {self.kind})"
        if self.first is None:
            return f"Universe({self.size} items)"
        return f"Universe({range(self.first, self.first + self.size)!r})"


@cache
def _point() -> int:
    """Where fingerprints are taken."""
    from hashlib import blake2b  # loads OpenSSL, too

    return int.from_bytes(blake2b(b"discreet multiparty fingerprint", digest_size=8).digest(), "little") >> 3


def _integers(low: int, high: int) -> str:
    """The kind that has these integers."""
    if low >= -(2**63) and high < 2**63:
        return "int64"
    if low >= 0 and high < 2**64:
        return "uint64"
    raise ParameterError("the integers of a universe must all fit into int64, or all into uint64")


def _listed(given: Iterable[Any]) -> tuple[Item, ...]:
    """The items of a list, which are different and of one kind."""
    try:
        elements = values_of(given)
    except DataError as error:
        raise ParameterError(f"a universe is a range or a list of items: {error}") from None
    kinds = set(map(type, elements))
    if kinds not in ({int}, {bytes}) and not (kinds == {str} and item_of("".join(elements)) is not None):
        elements = list(map(item_of, elements))  # one by one: subclasses, numbers of NumPy, and what is no item
    items: tuple[Item, ...] = tuple(item for item in elements if item is not None)
    if not items or len(items) < len(elements) or len(set(map(type, items))) != 1:
        raise ParameterError(
            "a listed universe needs at least one item, all of them 64-bit int, all str or all bytes; turn dates and "
            "other types into text, here and in the column"
        )
    if len(set(items)) != len(items):
        raise ParameterError("a universe lists an item twice; remove the duplicate")
    return items


def _plain_items(array: pa.Array) -> list[Any]:
    """The items of a column; None for a text that is not UTF-8, which no universe has."""
    try:
        items: list[Any] = array.to_pylist()
    except UnicodeDecodeError:
        texts = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        items = [item_of_bytes(text) for text in without_views(texts).cast(pa.large_binary()).to_pylist()]
    return items


def _without_nulls(array: pa.Array, skip: bool) -> pa.Array:
    if array.null_count and not skip:
        raise DataError('the column has nulls; pass nulls="skip" to leave them out')
    array = array.drop_null()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


# ---- what people write: a universe in one word, and items in files whose lines are all text --------------------------


def universe_written(text: str, *, empty_lines: bool = True) -> Universe:
    """N for 0 to N-1, A:B for A to B-1, a file with one element a line; or 'integers', 'strings', 'bytes' for any."""
    if text in ("integers", "strings", "bytes"):
        return Universe.of(text)
    first, colon, last = text.partition(":")
    with suppress(ValueError):
        return Universe.of(range(int(first), int(last)) if colon else range(int(first)))
    return Universe.of([line for line in lines_of(Path(text)) if line or empty_lines])


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file that lists items."""
    if not path.is_file():
        raise ParameterError(f"{str(path)!r} must be N, A:B, 'integers', 'strings' or a file with one item per line")
    from discreet.events.files import Files

    for batch in Files([str(path)], format="text").rows(bad_rows="error", plain=True):
        yield from batch.column("item").to_pylist()


def groups_written(path: Path, columns: int) -> list[tuple[str, ...]]:
    """The groups that a file lists, one a line; of several columns, cells of CSV. Empty lines say nothing."""
    if not path.is_file():
        raise ParameterError(f"{str(path)!r} is not a file; list the groups in a file, one per line")
    lines = [line for line in lines_of(path) if line]
    return list(map(tuple, csv.reader(lines))) if columns > 1 else [(line,) for line in lines]


def columns_written(arrays: Sequence[pa.Array], universes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of columns, each as the elements of its own universe; nulls stay."""
    plain = (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays)
    parts = [pa.chunked_array(list(as_written(a, u))) for a, u in zip(plain, universes, strict=True)]
    return zip(*(part.to_pylist() for part in parts), strict=True)


def item_written(text: str, universe: Any) -> Any:
    """An item of the universe, as it is written in text; of several dimensions, cells of CSV."""
    dimensions = getattr(universe, "universes", None)
    if dimensions is not None:
        cells = next(csv.reader([text]), [])
        if len(cells) != len(dimensions):
            raise ParameterError(f"each item needs {len(dimensions)} values, separated by commas")
        return tuple(map(item_written, cells, dimensions))
    if not getattr(universe, "has_numbers", False):
        return text
    try:
        return int(text)
    except ValueError:
        raise ParameterError("the universe holds integers; write items as integers") from None


def as_written(items: pa.Array, universe: Any, bad_rows: str = "error") -> Iterator[pa.Array]:
    """Items as the elements of a universe: numbers in a text file are text, in a table they are not.

    Which line is not a number depends on that line alone: halves are tried until it is by itself, and left out with
    `bad_rows="skip"`.
    """
    is_text = pa.types.is_string(items.type) or pa.types.is_large_string(items.type)
    if universe is None or getattr(universe, "has_numbers", False) != is_text:
        yield items
    elif not is_text:
        yield items.cast(pa.string()) if pa.types.is_integer(items.type) else items
    else:
        try:
            yield items.cast(pa.int64())
        except pa.ArrowInvalid:
            if bad_rows == "error":
                raise DataError("the universe holds integers, but an item is not an integer") from None
            half = len(items) // 2
            if half:
                yield from as_written(items[:half], universe, bad_rows)
                yield from as_written(items[half:], universe, bad_rows)


def vectors_written(texts: Sequence[str], length: int, bad_rows: str) -> npt.NDArray[np.uint8]:
    """A row of bits for each text such as 0110; zeros for one that is no vector."""
    rows = np.zeros((len(texts), length), np.uint8)
    for row, text in zip(rows, texts, strict=True):
        if len(text) == length and text.strip("01") == "":
            row[:] = np.frombuffer(text.encode(), np.uint8) - ord("0")
        elif bad_rows == "error":
            raise DataError(f"a vector is not written as {length} characters 0 and 1")
    return rows


def votes_written(texts: Sequence[str], length: int, bad_rows: str) -> tuple[list[int], list[int]]:
    """(places, bits) of texts such as 3:1. Places are public, so a row without one is no vote; another bit is a 0."""
    places, bits = [], []
    for text in texts:
        place, colon, bit = text.partition(":")
        digits = place.lstrip("0") or place[:1]  # of any number of digits Python makes no number
        has_place = colon == ":" and digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) < length
        if bad_rows == "error" and (not has_place or bit not in ("0", "1")):
            raise DataError(f"a vote is not written as PLACE:BIT, with a place below {length} and a bit 0 or 1")
        if has_place:
            places.append(int(digits))
            bits.append(int(bit == "1"))
    return places, bits
