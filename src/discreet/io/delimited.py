"""CSV and TSV with a header line. Cells are text as written; an empty unquoted cell is a null."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from discreet.errors import DataError
from discreet.io.columns import choose
from discreet.io.lines import blocks, last_line_end
from discreet.io.source import ByteSource

__all__ = ["read_delimited"]

_QUOTE = ord('"')


def _quote_marks(data: bytes, delimiter: str) -> npt.NDArray[np.intp]:
    """The positions of the quotes that open or close a quoted cell, in turn.

    A quote opens a cell only at its start; elsewhere in an unquoted cell it is an ordinary character. Inside a quoted
    cell two quotes in a row stand for one, which may as well be read as closing and opening again.
    """
    characters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    before = np.where(quotes > 0, characters[quotes - 1], ord("\n"))
    may_open = (before == ord(delimiter)) | (before == ord("\n")) | (before == ord("\r"))
    may_open[1:] |= quotes[1:] == quotes[:-1] + 1
    if may_open[::2].all():
        return quotes  # no stray quotes: they open and close in turn
    marks: list[np.intp] = []
    inside = False
    for position, opens, start in zip(quotes, may_open, before != _QUOTE, strict=True):
        adjacent = bool(marks) and position == marks[-1] + 1
        if inside or (opens and (start or adjacent)):
            marks.append(position)
            inside = not inside
    return np.array(marks, np.intp)


def last_row_end(data: bytes, delimiter: str) -> int:
    """Where the last whole row of data ends, which is not at a newline inside quotes; 0 if there is none."""
    end = last_line_end(data)
    if b'"' not in data:
        return end
    marks = _quote_marks(data, delimiter)
    while end:
        inside = int(np.searchsorted(marks, end - 1))
        if inside % 2 == 0:
            return end
        end = data.rfind(b"\n", 0, marks[inside - 1]) + 1
    return 0


def _header(block: bytes, delimiter: str, name: str) -> tuple[list[str], bool]:
    """The names in the first row, and whether there are rows below it."""
    rows = csv.reader(io.StringIO(block.decode(errors="replace"), newline=""), delimiter=delimiter)
    try:
        return next(rows, []), next(rows, None) is not None
    except csv.Error:
        reason = f"{name} does not begin with a header line"
    raise DataError(reason)


def _parse(
    block: bytes, names: Sequence[str], first: bool, wanted: Sequence[str], delimiter: str, name: str
) -> pa.Table:
    try:
        return pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=None if first else names
            ),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        # pyarrow's message quotes the row; say only what is wrong with it.
        message = str(error)
    if "UTF8" in message:
        raise DataError(f"{name} is not valid UTF-8 text")
    if "columns" in message:
        raise DataError(f"{name} has a row with more or fewer cells than its header line, which has {len(names)}")
    raise DataError(f"{name} cannot be read as delimited text")


def read_delimited(
    source: ByteSource, delimiter: str, column: str | None, user_column: str | None
) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, block by block."""

    def check_rest(rest: bytes) -> None:
        if b'"' in rest and len(_quote_marks(rest, delimiter)) % 2:
            raise DataError(f"{source.name} has a quoted cell that does not end")

    names: list[str] | None = None
    for block in blocks(source, partial(last_row_end, delimiter=delimiter), check_rest):
        first, has_rows = names is None, bool(block.strip(b"\r\n"))
        if names is None:
            names, has_rows = _header(block, delimiter, source.name)
            wanted = choose(names, column, user_column, source.name, show_names=False)
        if not has_rows:
            continue
        table = _parse(block, names, first, wanted, delimiter, source.name)
        for batch in table.to_batches():
            yield tuple(batch.column(name) for name in wanted)
    if names is None:
        raise DataError(f"{source.name} is empty: it has no header line")
