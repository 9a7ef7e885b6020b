"""The public universe a stream draws its elements from, and the sample of it that gets entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import _native
from discreet.errors import ParameterError
from discreet.events.items import item_of
from discreet.noise import RandomSource
from discreet.pan.responses import Response

__all__ = ["Universe"]

_MAX_ENTRIES = 2**31


@dataclass(frozen=True)
class Universe:
    """All elements that may occur: an integer range or a list. Items outside it are ignored by the estimators."""

    size: int
    kind: str
    first: int | None = None
    elements: tuple[int, ...] | tuple[str, ...] | tuple[bytes, ...] | None = None

    @classmethod
    def of(cls, given: object) -> Universe:
        """From a size n (the integers 0 to n - 1), a range, or a list of int, str or bytes without repetition."""
        if isinstance(given, int) and not isinstance(given, bool):
            given = range(given)
        if isinstance(given, range):
            if given.step != 1 or not given:
                raise ParameterError("universe must be a range with step 1 and at least one element")
            _signed(given[0], given[-1])
            size = given.stop - given.start  # len() does not know sizes of more than 63 bits
            if size > 2**63:
                raise ParameterError("universe must have at most 2**63 elements")
            return cls(size, "integer", given[0])
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise ParameterError(f"universe must be a size, a range or a list of elements, not {type(given).__name__}")
        elements = _plain(given)
        kinds = {_kind(element) for element in elements}
        if len(kinds) != 1 or "other" in kinds:
            raise ParameterError("universe must have at least one element, all int, all str or all bytes")
        if len(set(elements)) != len(elements):
            raise ParameterError("universe must not list an element twice")
        kind = kinds.pop()
        if kind == "string" and any(item_of(element) is None for element in elements):
            raise ParameterError("the texts of a universe must be Unicode (one has lone surrogates)")
        if kind == "integer":
            _signed(min(elements), max(elements))
        return cls(len(elements), kind, None, elements)

    def describe(self) -> dict[str, Any]:
        """What a state keeps of it."""
        return {"size": self.size, "kind": self.kind, "first": self.first}

    @classmethod
    def restored(cls, size: object, kind: object, first: object) -> Universe:
        """The inverse of `describe`; of a list only the sampled elements are left, in the table."""
        if not isinstance(size, int) or not 1 <= size <= 2**63 or kind not in ("integer", "string", "binary"):
            raise ParameterError("not a universe")
        if first is not None:
            if not isinstance(first, int) or kind != "integer":
                raise ParameterError("not a universe")
            return cls.of(range(first, first + size))
        return cls(size, str(kind))

    def __str__(self) -> str:
        if self.first is not None:
            return f"{self.size} integers from {self.first}"
        return f"a list of {self.size} elements ({self.kind})"

    def table(
        self, sample_size: int, response: Response, source: RandomSource, shuffled: bool = False
    ) -> _native.PanTable:
        """A table with an entry for each of `sample_size` elements, drawn without replacement before any data.

        With `shuffled` the entries are in random order also when all elements have one.
        """
        if sample_size > _MAX_ENTRIES:
            raise ParameterError(f"sample_size must be at most {_MAX_ENTRIES}, not {sample_size}")
        unseen, seen = response.unseen, response.seen
        every = sample_size == self.size and not shuffled
        if self.first is not None and every:
            is_signed = _signed(self.first, self.first + self.size - 1)
            return _native.PanTable.of_range(self.first % 2**64, is_signed, self.size, unseen, seen)
        places = range(self.size) if every else source.sample_without_replacement(self.size, sample_size).tolist()
        if self.first is not None:
            keys = np.array(places, np.uint64) + np.uint64(self.first % 2**64)
            is_signed = _signed(self.first, self.first + self.size - 1)
            return _native.PanTable.of_integers(keys, is_signed, unseen, seen)
        assert self.elements is not None
        if self.kind == "integer":
            numbers: Any = self.elements
            keys = np.array([numbers[place] % 2**64 for place in places], np.uint64)
            return _native.PanTable.of_integers(keys, _signed(min(numbers), max(numbers)), unseen, seen)
        texts: Any = self.elements
        chosen = [texts[place] for place in places]
        if self.kind == "string":
            chosen = [text.encode() for text in chosen]
        return _native.PanTable.of_strings(chosen, self.kind == "string", unseen, seen)


def _plain(given: Iterable[Any]) -> tuple[Any, ...]:
    if hasattr(given, "to_pylist"):
        return tuple(given.to_pylist())
    if hasattr(given, "tolist"):
        return tuple(given.tolist())
    return tuple(given)


def _kind(element: object) -> str:
    if isinstance(element, str):
        return "string"
    if isinstance(element, bytes):
        return "binary"
    return "integer" if isinstance(element, int) and not isinstance(element, bool) else "other"


def _signed(low: int, high: int) -> bool:
    """Whether the integers fit int64; if not, they must fit uint64."""
    if low >= -(2**63) and high < 2**63:
        return True
    if low >= 0 and high < 2**64:
        return False
    raise ParameterError("universe must lie within int64 or within uint64")
