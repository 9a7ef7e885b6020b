"""Streams for the property tests: universes that collide in every way a table can, and every way to hand them over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

INTEGERS = [0, 1, 2, 3, -1, -2, 7, 2**31, -(2**31), 2**63 - 1, -(2**63), 10**12]
UNSIGNED = [2**64 - 1, 2**63, 2**63 + 1, 0, 1, 2, 3, 255]
# Around the sizes at which hashing, comparing and storing change: 0, 3, 4, 7, 8, 16, 17, 20, 21, 32, 33 bytes.
STRINGS = ["", "a", "b", "\0", "a\0", "abc", "abcd", "abcdefg", "abcdefgh", "x" * 16, "x" * 17, "x" * 20, "x" * 21]
STRINGS += [
    "x" * 20 + "y",
    "é",
    "é" * 10,
    "é" * 10 + "z",
    "漢字",
    "🦊" * 5,
    "x" * 32,
    "x" * 33,
    "x" * 31 + "y",
    "long " * 70,
]
BYTES = [b"", b"\0", b"\0\0", b"\xff", b"\xff\xfe", b"k" * 20, b"k" * 21, b"k" * 20 + b"\0", b"\x80" * 40]


@st.composite
def streams(draw: Any, largest: int = 150) -> list[Any]:
    """A stream over a few items of one kind: random order, or runs of equal items, or one heavy item among others."""
    kind = draw(st.sampled_from([INTEGERS, UNSIGNED, STRINGS, BYTES]))
    universe = draw(st.lists(st.sampled_from(kind), min_size=1, max_size=len(kind), unique=True))
    if kind is UNSIGNED:  # the first batch decides the kind of the summary
        universe = [2**64 - 1, *(x for x in universe if x != 2**64 - 1)]
    item = st.sampled_from(universe)
    shape = draw(st.sampled_from(["any", "runs", "heavy", "cycle"]))
    if shape == "any":
        stream = draw(st.lists(item, max_size=largest))
    elif shape == "runs":
        runs = draw(st.lists(st.tuples(item, st.integers(1, 12)), max_size=largest // 6))
        stream = [x for x, n in runs for _ in range(n)]
    elif shape == "heavy":
        stream = [y for x in draw(st.lists(item, max_size=largest // 2)) for y in (universe[0], x)]
    else:
        stream = universe * draw(st.integers(0, max(1, largest // len(universe))))
    return [universe[0], *stream] if kind is UNSIGNED else stream


@st.composite
def pieces(draw: Any, stream: list[Any]) -> list[Any]:
    """The stream cut anywhere, each piece in one of the forms `update` takes."""
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    return [draw(forms(stream[a:b])) for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def arrow_type(items: list[Any]) -> pa.DataType:
    if isinstance(items[0], str):
        return pa.large_string()
    if isinstance(items[0], bytes):
        return pa.binary()
    return pa.uint64() if max(items) >= 2**63 else pa.int64()


@st.composite
def forms(draw: Any, items: list[Any]) -> Any:
    """One batch as a list, a generator, a NumPy array, or an Arrow column of several layouts."""
    form = draw(st.sampled_from(["list", "generator", "numpy", "arrow", "sliced", "chunked", "dictionary", "padded"]))
    if not items or form == "list":
        return items
    if form == "generator":
        return (x for x in items)
    if form == "numpy" and isinstance(items[0], int):
        return np.array(items, dtype=np.uint64 if max(items) >= 2**63 else np.int64)
    array = pa.array(items, arrow_type(items))
    if form == "sliced":
        return pa.concat_arrays([array, array, array])[len(items) : 2 * len(items)]
    if form == "chunked":
        middle = len(items) // 2
        return pa.chunked_array([array[:middle], array[:0], array[middle:]])
    if form == "dictionary":
        return array.dictionary_encode()
    if form == "padded":  # a dictionary with values that no row uses, some of them twice
        codes = array.dictionary_encode()
        twice = pa.concat_arrays([codes.dictionary, codes.dictionary])
        shift = np.arange(len(items)) % 2 * len(codes.dictionary)
        return pa.DictionaryArray.from_arrays(pa.array(codes.indices.to_numpy() + shift, pa.int16()), twice)
    return array
