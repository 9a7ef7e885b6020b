"""CSV and TSV with a header line. Cells are text as written; an empty unquoted cell is a null."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from discreet import _native
from discreet.errors import DataError
from discreet.events.bad_rows import BadRows
from discreet.events.columns import as_text, choose
from discreet.events.lines import Lines, blocks
from discreet.events.source import ByteSource

__all__ = ["read_delimited"]

_QUOTE = ord('"')


def _quote_marks(data: bytes, delimiter: str) -> npt.NDArray[np.intp]:
    """The positions of the quotes that open or close a quoted cell, in turn.

    A quote opens a cell only at its start; elsewhere in an unquoted cell it is an ordinary character. Inside a quoted
    cell two quotes in a row stand for one, which may as well be read as closing and opening again.

    Without a loop over the quotes: a quote after another character than a delimiter, a newline or a quote (stray)
    closes a cell or is ordinary; either way no cell is open after it. Quotes in a row after it are as it is: all of
    them open and close, or all of them are ordinary. From the first quote at the start of a cell on, all open and close
    until the next stray one. So whether a cell is open before a stray quote depends on the run before it: on its parity
    alone if an even number of quotes follow the stray one at once, else on what was before, too.
    """
    characters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    before = np.where(quotes > 0, characters[quotes - 1], ord("\n"))
    starts = (before == ord(delimiter)) | (before == ord("\n")) | (before == ord("\r"))
    stray = ~starts
    stray[1:] &= quotes[1:] != quotes[:-1] + 1
    first_stray = np.flatnonzero(stray)
    if not len(first_stray):
        return quotes  # they open and close in turn
    # Runs: the quotes before the first stray one, then one run for every stray quote: itself, those that follow it at
    # once, and those from the first at the start of a cell on.
    ends = np.append(first_stray[1:], len(quotes))
    sure = np.append(np.flatnonzero(starts), len(quotes))
    first_sure = np.minimum(sure[np.searchsorted(sure, first_stray)], ends)
    odd = (ends - first_sure) % 2  # whether the sure quotes alone leave a cell open
    depends = (first_sure - first_stray - 1) % 2 == 1
    # open_after[run] = odd[run], and if it depends, the other way round where a cell was open before.
    open_at_first = first_stray[0] % 2
    parity = np.cumsum(odd)
    last_sure = np.maximum.accumulate(np.where(~depends, np.arange(len(odd)), -1))
    base = np.where(last_sure >= 0, odd[last_sure] - parity[last_sure], open_at_first)
    open_after = (base + parity) % 2
    closes = np.append(open_at_first, open_after[:-1]) == 1  # whether the stray quote closes a cell
    marked = np.ones(len(quotes), np.bool_)
    runs = np.repeat(np.arange(len(odd)), ends - first_stray)
    at = np.arange(first_stray[0], len(quotes))
    marked[first_stray[0] :] = (at >= first_sure[runs]) | closes[runs]
    return quotes[marked]


class _Rows(Lines):
    """Rows end at newlines outside quotes."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter

    def last_end(self, data: bytes) -> int:
        if b'"' not in data:
            return super().last_end(data)
        ends = self._ends(data)
        return int(ends[-1]) if len(ends) else 0

    def first_end(self, data: bytes) -> int:
        end = super().first_end(data)
        if end and data.find(b'"', 0, end) >= 0:
            ends = self._ends(data)
            end = int(ends[0]) if len(ends) else 0
        return end

    def _ends(self, data: bytes) -> npt.NDArray[np.int64]:
        return np.frombuffer(_native.record_ends(data, ord(self.delimiter), 0)[0], np.int64)

    def open_at(self, data: bytes) -> int | None:
        if b'"' not in data:
            return None
        marks = _quote_marks(data, self.delimiter)
        return int(marks[-1]) if len(marks) % 2 else None


def _names(header: bytes, delimiter: str, name: str) -> list[str]:
    rows = csv.reader(io.StringIO(header.decode(errors="replace"), newline=""), delimiter=delimiter)
    try:
        return next(rows, [])
    except csv.Error:
        reason = f"{name} does not begin with a header line"
    raise DataError(reason)


def _parse(
    block: bytes, names: Sequence[str], wanted: Sequence[str], delimiter: str, name: str, bad: BadRows
) -> pa.Table:
    """The wanted columns of a block as bytes."""
    ragged = 0

    def skip(row: Any) -> str:
        nonlocal ragged
        ragged += 1
        return "skip"

    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip if bad.skip else None
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        # pyarrow's message quotes the row; say only what is wrong with it.
        message = str(error)
    else:
        bad.found(ragged, "")
        return table
    if "columns" in message:
        raise DataError(f"{name} has a row with more or fewer cells than its header line, which has {len(names)}")
    raise DataError(f"{name} cannot be read as delimited text")


def read_delimited(
    source: ByteSource, delimiter: str, column: str | None, user_column: str | None, bad: BadRows
) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, block by block."""
    names: list[str] | None = None
    rows = _Rows(delimiter)
    for block in blocks(source, bad, rows):
        if names is None:
            block = block.lstrip(b"\r\n")
            if not block:
                continue
            end = rows.first_end(block) or len(block)
            names = _names(block[:end], delimiter, source.name)
            wanted = choose(names, column, user_column, source.name, show_names=False)
            block = block[end:]
        if not block.strip(b"\r\n"):
            continue
        for batch in _parse(block, names, wanted, delimiter, source.name, bad).to_batches():
            yield _as_text(batch, wanted, source.name, bad)
    if names is None:
        raise DataError(f"{source.name} is empty: it has no header line")


def _as_text(batch: pa.RecordBatch, wanted: Sequence[str], name: str, bad: BadRows) -> tuple[pa.Array, ...]:
    """The wanted columns as text, without the rows in which one of them is not valid UTF-8."""
    texts = [as_text(batch.column(column)) for column in wanted]
    valid = [mask for _, mask in texts if mask is not None]
    if not valid:
        return tuple(text for text, _ in texts)
    rows = np.logical_and.reduce(valid)
    bad.found(len(rows) - int(rows.sum()), f"{name} is not valid UTF-8 text")
    return tuple(as_text(batch.column(column).filter(pa.array(rows)))[0] for column in wanted)
