"""The public universe that all parties draw their items from, and the 64-bit words that items become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet.errors import DataError, ParameterError
from discreet.events.items import arrow_chunks, is_arrow, item_of, prepare_column, skip_nulls
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Domain", "Words"]

Words = npt.NDArray[np.uint64]

_UNBOUNDED = {"integers": "int64", "strings": "string", "bytes": "binary"}
_POINT = int.from_bytes(blake2b(b"discreet multiparty fingerprint", digest_size=8).digest(), "little") >> 3


@dataclass(frozen=True)
class Domain:
    """Which items may occur, the same for every party.

    Bounded: a range of integers or a list, and the word of an item is its position. Unbounded: the word of an integer
    is its 64-bit pattern; that of a text is a polynomial of its bytes over the field of 2^61 - 1 at a fixed public
    point. Two given texts of at most 7 m bytes share a word with probability at most (m + 1)/2^61 if they were written
    without regard to that point; such a pair is counted as one item.
    """

    kind: str
    size: int | None = None
    first: int = 0
    elements: tuple[Any, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, given: object) -> Domain:
        """From a size n (0 to n - 1), a range, a list of different items, or "integers", "strings" or "bytes"."""
        if isinstance(given, Domain):
            return given
        if isinstance(given, str):
            if given not in _UNBOUNDED:
                raise ParameterError(f"an unbounded universe is one of {', '.join(_UNBOUNDED)}, not {given!r}")
            return cls(_UNBOUNDED[given])
        if isinstance(given, int) and not isinstance(given, bool):
            given = range(given)
        if isinstance(given, range):
            if given.step != 1 or not given or given.start < -(2**63) or given.stop > 2**63:
                raise ParameterError("a universe of integers is a non-empty range of step 1 within 64 bits")
            if given.stop - given.start > 2**62:
                raise ParameterError("a bounded universe has at most 2**62 items; 'integers' is unbounded")
            return cls("int64", given.stop - given.start, given.start)
        if isinstance(given, bytes) or not isinstance(given, Iterable):
            raise ParameterError(f"universe must be a size, a range, a list or a name, not {type(given).__name__}")
        return cls._listed(given)

    @classmethod
    def _listed(cls, given: Iterable[Any]) -> Domain:
        plain = given.to_pylist() if hasattr(given, "to_pylist") else given
        elements = tuple(plain.tolist() if hasattr(plain, "tolist") else plain)
        kinds = {
            next((kind for known, kind in ((str, "string"), (bytes, "binary"), (int, "int64")) if type(e) is known), "")
            for e in elements
        }
        if len(kinds) != 1 or "" in kinds:
            raise ParameterError("a listed universe has at least one item, all of them int, all str or all bytes")
        if len(set(elements)) != len(elements):
            raise ParameterError("a universe must not list an item twice")
        kind = kinds.pop()
        if kind == "string" and any(item_of(element) is None for element in elements):
            raise ParameterError("the texts of a universe must be Unicode (one has lone surrogates)")
        if kind == "int64" and not (min(elements) >= -(2**63) and max(elements) < 2**63):
            raise ParameterError("the integers of a universe must fit int64")
        return cls(kind, len(elements), 0, elements)

    @property
    def bounded(self) -> bool:
        """Whether every item has a position below `size`."""
        return self.size is not None

    @property
    def word_bits(self) -> int:
        """How many bits a word may have."""
        if self.size is not None:
            return (self.size - 1).bit_length()
        return 64 if self.kind == "int64" else 61

    def words(self, items: Any, nulls: str = "error") -> Words:
        """The word of every item, in order; `DataError` for items of another kind or outside the universe."""
        if self.elements is not None:
            return self._positions(items, nulls)
        words = _native.item_words(prepare_column(items), self.kind, skip_nulls(nulls), DEFAULT_MAX_KEY_BYTES, _POINT)
        if self.size is not None:
            words = words - np.uint64(self.first % 2**64)
            if (words >= np.uint64(self.size)).any():
                raise DataError("an item is outside the universe")
        return words

    def _positions(self, items: Any, nulls: str) -> Words:
        column = prepare_column(items)
        if isinstance(column, np.ndarray):
            column = column.tolist()
        if not is_arrow(column):
            return self._listed_positions(column, skip_nulls(nulls))
        parts = [self._arrow_positions(chunk, skip_nulls(nulls)) for chunk in arrow_chunks(column)]
        return np.concatenate([np.zeros(0, np.uint64), *parts])

    def _listed_positions(self, items: Iterable[Any], skip: bool) -> Words:
        if isinstance(items, (str, bytes)):
            raise DataError("expected a column or an iterable of items, got a single one; put it in a list")
        if not isinstance(items, Iterable):
            raise DataError(f"expected a column or an iterable of items, got {type(items).__name__}")
        known, kind = self._places, {"int64": int, "string": str, "binary": bytes}[self.kind]
        found = []
        for item in items:
            if item is None:
                if not skip:
                    raise DataError('the column has nulls; pass nulls="skip" to leave them out')
                continue
            value = item.item() if isinstance(item, np.generic) else item
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DataError(f"the universe has {self.kind} items, the column has items of another kind")
            if value not in known:
                raise DataError("an item is outside the universe")
            found.append(known[value])
        return np.array(found, np.uint64)

    def _arrow_positions(self, array: pa.Array, skip: bool) -> Words:
        import pyarrow as pa
        import pyarrow.compute as pc

        if skip:
            array = array.drop_null()
        elif array.null_count:
            raise DataError('the column has nulls; pass nulls="skip" to leave them out')
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if len(array) == 0:
            return np.zeros(0, np.uint64)
        if not _fits(array.type, self.kind):
            raise DataError(f"the universe has {self.kind} items, the column has items of another kind")
        try:
            found = pc.index_in(array.cast(self._arrow.type), value_set=self._arrow)
        except pa.ArrowInvalid:
            raise DataError("an item is outside the universe") from None
        if found.null_count:
            raise DataError("an item is outside the universe")
        return np.asarray(found).astype(np.uint64)

    @property
    def _places(self) -> dict[Any, int]:
        known: dict[Any, int] | None = self.__dict__.get("_by_item")
        if known is None:
            assert self.elements is not None
            known = {item: place for place, item in enumerate(self.elements)}
            object.__setattr__(self, "_by_item", known)
        return known

    @property
    def _arrow(self) -> pa.Array:
        import pyarrow as pa

        known = self.__dict__.get("_array")
        if known is None:
            types = {"int64": pa.int64(), "string": pa.large_string(), "binary": pa.large_binary()}
            known = pa.array(self.elements, types[self.kind])
            object.__setattr__(self, "_array", known)
        return known

    def items(self, words: npt.ArrayLike) -> list[Any]:
        """The items at these positions of a bounded universe."""
        if self.size is None:
            raise ParameterError("an unbounded universe does not know its items")
        positions = np.asarray(words).tolist()
        if self.elements is not None:
            return [self.elements[position] for position in positions]
        return [self.first + position for position in positions]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        if self.elements is not None:
            elements = [e.hex() for e in self.elements] if self.kind == "binary" else list(self.elements)
            return {"kind": self.kind, "items": elements}
        if self.size is not None:
            return {"kind": self.kind, "first": self.first, "size": self.size}
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Domain:
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

    def __str__(self) -> str:
        if self.size is None:
            return f"all {self.kind} items"
        return f"{self.size} {self.kind} items"


def _fits(given: pa.DataType, kind: str) -> bool:
    import pyarrow as pa

    if kind == "int64":
        return bool(pa.types.is_integer(given))
    if kind == "string":
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))
    return bool(pa.types.is_binary(given) or pa.types.is_large_binary(given) or pa.types.is_fixed_size_binary(given))
