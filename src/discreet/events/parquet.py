"""Parquet: only the wanted columns, one row group after the other, dictionary pages as dictionaries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow._parquet import ParquetReader  # pyarrow.parquet loads file systems, too, and takes 12 ms more

from discreet import _native
from discreet.errors import DataError
from discreet.events.ahead import in_order
from discreet.events.arrow_calls import filtered
from discreet.events.inputs import ByteSource
from discreet.events.items import broken_input, checked, choose, kind_of, unreadable, without_views
from discreet.events.pages import DAMAGED, damaged, decoded, footer_of

PLAIN_ROWS = 1 << 16
PLAIN_BYTES = 1 << 22
DICTIONARY_ROWS = 1 << 22
_ROWS_OF_INDICES = 1 << 18
Mask = npt.NDArray[np.bool_]
_T = TypeVar("_T")


def _guarded(name: str, call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    try:
        return call(*arguments, **options)
    except broken_input() as error:
        reason = unreadable(error, name, DAMAGED)
    raise reason


def _opened(file: Any, **options: Any) -> Any:
    reader = ParquetReader()
    reader.open(file, **options)
    return reader


def read_parquet(source: ByteSource, column: str | None, others: Sequence[str]) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, in bounded batches."""
    return (batch.arrays() for batch in parquet_batches(source, column, others))


def parquet_batches(source: ByteSource, column: str | None, others: Sequence[str]) -> Iterator[Batch]:
    """The same, before texts are copied."""
    columns = ArrowColumns(source, column, others)
    yield Batch(list(columns.empty))
    for group in range(columns.groups):
        yield from columns.of_group(group)
        source.advance_to((group + 1) / columns.groups)


_Piece = tuple[_native.MadeColumn, int, int]  # a column, and which of its rows: from one up to another
_FEW = 4  # rows for each value of a dictionary that is handed on


class Texts(NamedTuple):
    """Rows of a column that native code has decoded and checked: none is null, and all of them can be items."""

    pieces: list[_Piece]
    kind: pa.DataType

    def array(self, keep: Mask | None = None) -> pa.Array:
        """A copy of these rows, or of those to keep; of few values, by a dictionary."""
        values = self.pieces[0][0].dictionary if self.pieces else None
        rows = sum(stop - start for _, start, stop in self.pieces) if keep is None else int(np.count_nonzero(keep))
        if values is not None and _FEW * len(values) <= rows:
            with suppress(DataError):  # of rows of several dictionaries
                codes = np.frombuffer(_native.codes_of(self.pieces), np.int32)
                codes = codes if keep is None else codes[keep]
                return pa.DictionaryArray.from_arrays(
                    pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(codes)]),
                    _array([(values, 0, len(values))], self.kind),
                    safe=False,
                )
        return _array(self.pieces, self.kind, keep)


def _array(pieces: list[_Piece], kind: pa.DataType, keep: Mask | None = None) -> pa.Array:
    buffers = list(map(pa.py_buffer, _native.gathered(pieces, keep)))
    return pa.Array.from_buffers(kind, buffers[0].size // 4 - 1, [None, *buffers])


class Batch(NamedTuple):
    """Columns of the same rows, in which texts may not be copied yet."""

    columns: list[pa.Array | Texts]

    def arrays(self) -> tuple[pa.Array, ...]:
        """All columns."""
        return tuple(map(self.array, range(len(self.columns))))

    def array(self, place: int, keep: Mask | None = None) -> pa.Array:
        """One of them, or its rows to keep."""
        column = self.columns[place]
        if isinstance(column, Texts):
            return column.array(keep)
        return column if keep is None else filtered(column, keep)

    def may_hold_bad_text(self, place: int) -> bool:
        """Whether nobody has looked yet if the texts of a column, or those in it, are UTF-8."""
        column = self.columns[place]
        return not isinstance(column, Texts) and kind_of(column.type) not in (None, "integer")


class ArrowColumns:
    """The wanted columns of a file: texts as native code decodes them, where it can, and the others as pyarrow does.

    Pages are read through a buffer as they are needed: `pre_buffer` would hold whole row groups and keep them.
    """

    def __init__(self, source: ByteSource, column: str | None, others: Sequence[str]) -> None:
        file = source.seekable()
        # Writers that add checksums to their pages (those of Java do by default) have them checked.
        options = {"pre_buffer": False, "buffer_size": 1 << 20, "page_checksum_verification": True}
        self._open = partial(_guarded, source.name, _opened, file, **options)
        self._plain = self._open()
        fields = _guarded(source.name, lambda: [(field.name, field.type) for field in self._plain.schema_arrow])
        self._source, self._wanted = source, choose([field for field, _ in fields], [column, *others], source.name)
        self._schema = dict(fields)
        self._encoded = [name for name in self._wanted if kind_of(self._schema[name]) in ("text", "bytes")]
        self._files: dict[tuple[str, ...], Any] = {(): self._plain}  # by the columns that are read as dictionaries
        source.check_not_replaced()
        footer = footer_of(source)
        self._chunks = _chunks(source, footer, self._wanted)
        self._pages = {} if footer is None or source.remote is not None else self._pages_of(footer)
        self.groups: int = self._plain.num_row_groups
        if len(self._chunks) != self.groups:
            raise damaged(source.name)

    def _pages_of(self, footer: bytes) -> dict[str, _native.ParquetPages]:
        """The pages of the columns that native code may decode."""
        descriptor = self._source.descriptor()
        plain = [name for name in dict.fromkeys(self._wanted) if self._schema[name] in (pa.string(), pa.binary())]
        found = {name: _native.parquet_pages(descriptor, footer, name) for name in plain}
        return {name: pages for name, pages in found.items() if pages is not None}

    def _as_dictionaries(self, names: list[str]) -> Any:
        if tuple(names) not in self._files:
            self._files[tuple(names)] = self._open(metadata=self._plain.metadata, read_dictionary=names)
            self._source.check_not_replaced()
        return self._files[tuple(names)]

    @property
    def empty(self) -> tuple[pa.Array, ...]:
        """No rows: types are known, whether or not there are any."""
        return tuple(pa.nulls(0, self._schema[name]) for name in self._wanted)

    def of_group(self, group: int) -> Iterator[Batch]:
        """The rows of one row group."""
        rows: int = _guarded(self._source.name, lambda: self._plain.metadata.row_group(group).num_rows)
        runs = {name: pages.runs(group) for name, pages in self._pages.items()}
        texts = {name: self._texts(group, name, found, rows) for name, found in runs.items() if found is not None}
        others = [name for name in self._wanted if name not in texts]
        with ExitStack() as stack:
            for each in texts.values():
                stack.callback(each.close)
            if others:
                for read in self._of_pyarrow(group, others, rows):
                    many = len(read[others[0]])
                    yield Batch([texts[name].take(many) if name in texts else read[name] for name in self._wanted])
                return
            few = all(chunk.is_dictionary for chunk in self._chunks[group])
            most = _ROWS_OF_INDICES if few else _plain_rows(rows, self._chunks[group])
            for first in range(0, rows, most):
                yield Batch([texts[name].take(min(most, rows - first)) for name in self._wanted])

    def _texts(self, group: int, name: str, runs: list[_native.ParquetRun], rows: int) -> _TextRows:
        def instead(before: int) -> Iterator[pa.Array]:
            self._pages.pop(name, None)  # where one row has no text, there may be more
            for read in self._of_pyarrow(group, [name], rows, encode=False):
                array, passed = read[name], min(before, len(read[name]))
                before -= passed
                if len(array) > passed:
                    yield array.slice(passed)

        return _TextRows(self._source.name, runs, self._schema[name], instead)

    def _of_pyarrow(
        self, group: int, names: list[str], rows: int, encode: bool = True
    ) -> Iterator[dict[str, pa.Array]]:
        """Some of the wanted columns of a row group, as pyarrow reads them; `encode`: by dictionaries of few values."""
        source, wanted = self._source.name, self._wanted
        encoded = [name for name in self._encoded if encode and name in names]
        chunks = [chunk for chunk in self._chunks[group] if wanted[chunk.column] in names]
        texts = [chunk for chunk in chunks if wanted[chunk.column] in encoded]
        if len(names) == len(wanted) and texts and len(texts) == len(chunks) and all(c.is_dictionary for c in texts):
            parquet, most = self._as_dictionaries(encoded), DICTIONARY_ROWS
        else:
            few = [wanted[chunk.column] for chunk in texts if chunk.has_few_values]
            parquet, most = self._as_dictionaries(few), _plain_rows(rows, self._chunks[group])
            # Where the file asks for a dictionary and plain pages are read, pyarrow makes one, and refuses all rows for
            # one that is not UTF-8.
            if any(pa.types.is_dictionary(self._schema[each]) for each in encoded):
                parquet = self._as_dictionaries(encoded)
        paths = _guarded(source, getattr, parquet, "column_paths")  # damaged names may be no text
        leaves = [place for place, path in enumerate(paths) if path[0] in names]
        batches = parquet.iter_batches(most, row_groups=[group], column_indices=leaves, use_threads=False)
        while (batch := _guarded(source, next, batches, None)) is not None:
            # The reader makes well-formed columns, whatever the file holds, except for the indices of dictionaries.
            yield {
                each: checked(batch, each, source)
                if pa.types.is_dictionary(batch.column(each).type)
                else without_views(batch.column(each))
                for each in names
            }
            rows -= batch.num_rows
        if rows:  # pyarrow ends where the pages do
            raise damaged(source)


class _TextRows:
    """The rows of a column of a row group, in their order, from pages that native code decodes.

    It leaves rows out that are null or cannot be items, and the other columns have these rows. From there on pyarrow
    reads the column: `instead(before)` are its rows after this many.
    """

    def __init__(
        self,
        source: str,
        runs: Sequence[_native.ParquetRun],
        kind: pa.DataType,
        instead: Callable[[int], Iterator[pa.Array]],
    ) -> None:
        self._source, self._kind, self._instead = source, kind, instead
        self._made = in_order(partial(decoded, run, source) for run in runs)
        self._held: deque[_Piece] = deque()
        self._taken = 0
        self._arrays: Iterator[pa.Array] | None = None
        self._array = pa.nulls(0, kind)

    def close(self) -> None:
        """Nobody takes any more of them."""
        self._made.close()

    def take(self, rows: int) -> pa.Array | Texts:
        """The next rows."""
        pieces, left = list[_Piece](), rows
        while left and self._arrays is None:
            if not self._held and not self._decode():
                continue
            made, start, stop = self._held.popleft()
            here = min(left, stop - start)
            pieces.append((made, start, start + here))
            left -= here
            if start + here < stop:
                self._held.appendleft((made, start + here, stop))
        found = Texts(pieces, self._kind) if self._arrays is None else self._as_pyarrow(rows)
        self._taken += rows
        return found

    def _decode(self) -> bool:
        """Whether the next rows were decoded; otherwise pyarrow has to read on."""
        made = next(self._made, None)
        if made is None:
            raise damaged(self._source)
        if made.nulls or made.bad:
            self.close()
            self._arrays = self._instead(self._taken)
            return False
        self._held.append((made, 0, len(made)))
        return True

    def _as_pyarrow(self, rows: int) -> pa.Array:
        assert self._arrays is not None
        while len(self._array) < rows:
            more = next(self._arrays, None)
            if more is None:
                raise damaged(self._source)
            self._array = pa.concat_arrays([self._array, more]) if len(self._array) else more
        found, self._array = self._array.slice(0, rows), self._array.slice(rows)
        return found


class _Chunk(NamedTuple):
    """What a column chunk is said to hold."""

    column: int
    depth: int
    values: int
    uncompressed_bytes: int
    has_dictionary: bool

    @property
    def is_dictionary(self) -> bool:
        """Whether to read it as a dictionary with indices.

        Writers fall back to plain pages when a dictionary grows large. Reading those this way is slower, and keeps all
        of their items, because every batch comes with the dictionary of the whole chunk so far. Metadata does not tell
        such chunks apart, but their size does: a plain value takes at least 4 bytes, an index less.
        """
        return self.depth == 1 and self.has_dictionary and self.uncompressed_bytes <= 4 * self.values

    @property
    def has_few_values(self) -> bool:
        """Whether its indices take 12 bits at most: beside plain columns every batch has its dictionary, too."""
        return self.is_dictionary and 2 * self.uncompressed_bytes <= 3 * self.values


def _chunks(source: ByteSource, footer: bytes | None, wanted: list[str]) -> list[list[_Chunk]]:
    """The chunks of the wanted columns in every row group.

    Read from the footer itself: pyarrow's accessors end the process where numbers of a damaged one do not fit together.
    """
    if footer is not None:
        with suppress(DataError):
            groups = _native.parquet_chunks(footer, wanted)
            return [[_Chunk(*chunk) for chunk in group] for group in groups]
    raise damaged(source.name)


def _plain_rows(num_rows: int, chunks: list[_Chunk]) -> int:
    largest = max([1, *(chunk.uncompressed_bytes for chunk in chunks)])
    return max(64, min(PLAIN_ROWS, num_rows * PLAIN_BYTES // largest))
