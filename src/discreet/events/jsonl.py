"""JSON lines: one object a line. A missing key is a null.

What a line means is decided by Python's parser, line by line. pyarrow's is much faster and takes whole blocks, where
the two cannot differ: `_at_once` says when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from discreet.events.bad_rows import BadRows
from discreet.events.columns import choose
from discreet.events.lines import blocks
from discreet.events.source import ByteSource

__all__ = ["read_json_lines"]

_TYPES = {"text": pa.string(), "integer": pa.int64(), "large": pa.uint64()}
_FEW_BYTES = 1 << 16
_FEW_BRACKETS = 64


def _object(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None if it holds none."""
    value = None
    with suppress(ValueError, RecursionError):
        value = json.loads(line.decode())
    return value if isinstance(value, dict) else None


def _lines(block: bytes) -> Iterator[bytes]:
    return (line for line in block.split(b"\n") if line.strip())


def _kind(value: Any) -> str | None:
    """What a value that is not null is as an item: text, a whole number of 64 bits, or (None) nothing that can be."""
    if isinstance(value, str):
        return "text" if value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value) else None
    if type(value) is int and -(1 << 63) <= value < 1 << 64:
        return "integer" if value < 1 << 63 else "large"
    return None


def _kind_of_list(value: Any) -> str | None:
    """The one kind of a list's elements; "" for a list of nulls, None if it is not such a list."""
    if not isinstance(value, list):
        return None
    kinds = {_kind(element) for element in value if element is not None}
    if kinds == {"integer", "large"} and min(element for element in value if element is not None) >= 0:
        return "large"
    return "" if not kinds else kinds.pop() if len(kinds) == 1 else None


class _Reader:
    def __init__(self, name: str, wanted: Sequence[str], lists: bool, bad: BadRows) -> None:
        self._name = name
        self._wanted = wanted
        self._bad = bad
        self._kinds = [_kind_of_list if lists and position == 0 else _kind for position in range(len(self._wanted))]
        self._lists = lists
        self._guess: list[str] = [""] * len(self._wanted)

    def rows(self, block: bytes) -> Iterator[tuple[pa.Array, ...]]:
        """The wanted columns of a block. Rows stay in their order, and items in a run are of one kind."""
        batch = self._at_once(block)
        if batch is not None:
            yield batch
        elif len(block) <= _FEW_BYTES:
            yield from self._one_by_one(block)
        else:  # one odd line must not make all of a large block slow
            middle = block.find(b"\n", len(block) // 2) + 1 or len(block)
            if middle == len(block):
                yield from self._one_by_one(block)
            else:
                yield from self.rows(block[:middle])
                yield from self.rows(block[middle:])

    # ---- as Python reads it ----------------------------------------------------------------------------------------

    def _row(self, line: bytes) -> tuple[list[Any], list[str]] | None:
        """The values of a line and their kinds, "" where there is none; None if it is a bad row."""
        found = _object(line)
        if found is None:
            return None
        values = [found.get(name) for name in self._wanted]
        kinds = ["" if value is None else kind(value) for kind, value in zip(self._kinds, values, strict=True)]
        good = [kind for kind in kinds if kind is not None]
        return (values, good) if len(good) == len(kinds) else None

    def _one_by_one(self, block: bytes) -> Iterator[tuple[pa.Array, ...]]:
        run: list[list[Any]] = []
        kinds = [""] * len(self._wanted)
        for line in _lines(block):
            row = self._row(line)
            if row is None:
                self._bad.found(1, f"{self._name} has a line that is not a JSON object with text or whole numbers")
                continue
            values, there = row
            if any(old and new and old != new for old, new in zip(kinds, there, strict=True)):
                yield self._arrays(run, kinds)
                run, kinds = [], [""] * len(kinds)
            run.append(values)
            kinds = [old or new for old, new in zip(kinds, there, strict=True)]
        if run:
            yield self._arrays(run, kinds)
            self._guess = kinds

    def _type(self, position: int, kind: str) -> pa.DataType:
        if self._lists and position == 0:
            return pa.list_(_TYPES.get(kind or "text"))
        return _TYPES.get(kind, pa.null())

    def _arrays(self, run: list[list[Any]], kinds: list[str]) -> tuple[pa.Array, ...]:
        columns = zip(*run, strict=True)
        return tuple(pa.array(column, self._type(at, kinds[at])) for at, column in enumerate(columns))

    # ---- as pyarrow reads it ---------------------------------------------------------------------------------------

    def _at_once(self, block: bytes) -> tuple[pa.Array, ...] | None:
        """The same, if every line is an object of its own that both parsers read alike, and all are of one kind.

        Lines that begin and end in braces hold whole objects, if the block can be read at all: inside an object no
        line could begin in a brace after one that ended in one. As many rows as lines, then, are one on each. The two
        parsers differ in bytes that are not UTF-8, in "Inf", and in how deep they go; where they might, pyarrow's is
        not asked. What it refuses (another kind, a key twice, a lone surrogate) is looked at line by line.
        """
        ends = self._ends(block)
        if ends is None or b"Inf" in block or b"NaN" in block:
            return None
        if not any(self._guess):
            self._guess = self._first_kinds(block)
        schema = pa.schema([(name, self._type(at, self._guess[at])) for at, name in enumerate(self._wanted)])
        with suppress(pa.ArrowException, UnicodeDecodeError):
            block.decode()
            table = pa.json.read_json(
                pa.BufferReader(block),
                read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            if table.num_rows == len(ends):
                return tuple(table.column(name).combine_chunks() for name in self._wanted)
        return None

    def _ends(self, block: bytes) -> Any:
        """Where lines end, if all of them begin and end in braces and have few brackets; else None."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        if not len(ends) or ends[-1] != len(data) - 1:
            ends = np.append(ends, len(data))
        starts = np.append(0, ends[:-1] + 1)
        last = np.maximum(ends - 1, 0)
        last -= data[last] == ord("\r")
        if (ends - starts < 2).any() or (data[starts] != ord("{")).any() or (data[last] != ord("}")).any():
            return None
        if np.count_nonzero(data == ord("{")) + block.count(b"[") < len(ends) + _FEW_BRACKETS:
            return ends  # one a line, and few more in all
        brackets = np.flatnonzero((data == ord("[")) | (data == ord("{")))
        most = np.diff(np.searchsorted(brackets, starts), append=len(brackets)).max()
        return ends if most <= _FEW_BRACKETS else None

    def _first_kinds(self, block: bytes) -> list[str]:
        """The kinds of the first values: a guess at those of all."""
        guess = [""] * len(self._wanted)
        for line in _lines(block):
            row = self._row(line)
            if row is not None:
                guess = [old or new for old, new in zip(guess, row[1], strict=True)]
            if all(guess):
                break
        return guess


def read_json_lines(
    source: ByteSource, column: str | None, user_column: str | None, lists: bool | None, bad: BadRows
) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, block by block. Items are text and whole numbers or, with `lists`, lists of one of these.

    With None the first value decides which. It is one row that decides then: who publishes says what is there.
    """
    reader: _Reader | None = None
    wanted: list[str] = []
    for block in blocks(source, bad):
        if not wanted:
            first = next((found for line in _lines(block) if (found := _object(line)) is not None), None)
            if first is None:
                bad.found(sum(1 for _ in _lines(block)), f"{source.name} has a line that is not a JSON object")
                continue
            # The keys of one line are not a schema: what is asked for by name may well come later.
            named = [name for name in (column, user_column) if name is not None]
            wanted = choose(list(dict.fromkeys([*first, *named])), column, user_column, source.name, show_names=False)
        undecided = lists is None
        if undecided:
            objects = (found for line in _lines(block) if (found := _object(line)) is not None)
            value = next((found[wanted[0]] for found in objects if found.get(wanted[0]) is not None), None)
            lists = None if value is None else isinstance(value, list)
        if reader is None or undecided:
            reader = _Reader(source.name, wanted, bool(lists), bad)
        yield from reader.rows(block)
