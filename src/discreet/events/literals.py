"""What people write: a universe in one word, and items in files whose lines are all text."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import DataError, ParameterError
from discreet.events.files import Files
from discreet.events.universe import Universe


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
        has_place = colon == ":" and place.isascii() and place.isdigit() and int(place[:9]) < length
        if bad_rows == "error" and (not has_place or bit not in ("0", "1")):
            raise DataError(f"a vote is not written as PLACE:BIT, with a place below {length} and a bit 0 or 1")
        if has_place:
            places.append(int(place))
            bits.append(int(bit == "1"))
    return places, bits
