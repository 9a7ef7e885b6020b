"""Parquet: only the wanted columns, one row group after the other, dictionary pages as dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet

from discreet import _native
from discreet.errors import DataError
from discreet.events.columns import broken_input, checked, choose, kind_of, unreadable, without_views
from discreet.events.inputs import ByteSource
from discreet.events.pages import DAMAGED, damaged, footer_of

PLAIN_ROWS = 1 << 15
PLAIN_BYTES = 1 << 24
DICTIONARY_ROWS = 1 << 22
_T = TypeVar("_T")


def _guarded(name: str, call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    try:
        return call(*arguments, **options)
    except broken_input() as error:
        reason = unreadable(error, name, DAMAGED)
    raise reason


def read_parquet(source: ByteSource, column: str | None, others: Sequence[str]) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, in bounded batches."""
    columns = ArrowColumns(source, column, others)
    yield columns.empty
    for group in range(columns.groups):
        yield from columns.of_group(group)
        source.advance_to((group + 1) / columns.groups)


class ArrowColumns:
    """The wanted columns of a file, as pyarrow reads them.

    Pages are read through a buffer as they are needed: `pre_buffer` would hold whole row groups and keep them.
    """

    def __init__(self, source: ByteSource, column: str | None, others: Sequence[str]) -> None:
        file = source.seekable()
        # Writers that add checksums to their pages (those of Java do by default) have them checked.
        options = {"pre_buffer": False, "buffer_size": 1 << 20, "page_checksum_verification": True}
        self._open = partial(_guarded, source.name, pa.parquet.ParquetFile, file, **options)
        self._plain = self._open()
        fields = _guarded(source.name, lambda: [(field.name, field.type) for field in self._plain.schema_arrow])
        self._source, self._wanted = source, choose([field for field, _ in fields], [column, *others], source.name)
        self._schema = dict(fields)
        self._encoded = [name for name in self._wanted if kind_of(self._schema[name]) in ("text", "bytes")]
        self._files: dict[tuple[str, ...], Any] = {(): self._plain}  # by the columns that are read as dictionaries
        source.check_not_replaced()
        self._chunks = _chunks(source, self._wanted)
        self.groups: int = self._plain.num_row_groups
        if len(self._chunks) != self.groups:
            raise damaged(source.name)

    def _as_dictionaries(self, names: list[str]) -> Any:
        if tuple(names) not in self._files:
            self._files[tuple(names)] = self._open(metadata=self._plain.metadata, read_dictionary=names)
            self._source.check_not_replaced()
        return self._files[tuple(names)]

    @property
    def empty(self) -> tuple[pa.Array, ...]:
        """No rows: types are known, whether or not there are any."""
        return tuple(pa.nulls(0, self._schema[name]) for name in self._wanted)

    def of_group(self, group: int) -> Iterator[tuple[pa.Array, ...]]:
        """The rows of one row group."""
        name, wanted, chunks = self._source.name, self._wanted, self._chunks[group]
        num_rows = left = _guarded(name, lambda: self._plain.metadata.row_group(group).num_rows)
        texts = [chunk for chunk in chunks if wanted[chunk.column] in self._encoded]
        if texts and len(texts) == len(chunks) and all(chunk.is_dictionary for chunk in texts):
            parquet, rows = self._as_dictionaries(self._encoded), DICTIONARY_ROWS
        else:
            few = [wanted[chunk.column] for chunk in texts if chunk.has_few_values]
            parquet, rows = self._as_dictionaries(few), _plain_rows(num_rows, chunks)
            # Where the file asks for a dictionary and plain pages are read, pyarrow makes one, and refuses all rows for
            # one that is not UTF-8.
            if any(pa.types.is_dictionary(self._schema[each]) for each in self._encoded):
                parquet = self._as_dictionaries(self._encoded)
        batches = parquet.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)
        while (batch := _guarded(name, next, batches, None)) is not None:
            # The reader makes well-formed columns, whatever the file holds, except for the indices of dictionaries.
            yield tuple(
                checked(batch, each, name)
                if pa.types.is_dictionary(batch.column(each).type)
                else without_views(batch.column(each))
                for each in wanted
            )
            left -= batch.num_rows
        if left:  # pyarrow ends where the pages do
            raise damaged(name)


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


def _chunks(source: ByteSource, wanted: list[str]) -> list[list[_Chunk]]:
    """The chunks of the wanted columns in every row group.

    Read from the footer itself: pyarrow's accessors end the process where numbers of a damaged one do not fit together.
    """
    footer = footer_of(source)
    if footer is not None:
        with suppress(DataError):
            groups = _native.parquet_chunks(footer, wanted)
            return [[_Chunk(*chunk) for chunk in group] for group in groups]
    raise damaged(source.name)


def _plain_rows(num_rows: int, chunks: list[_Chunk]) -> int:
    largest = max([1, *(chunk.uncompressed_bytes for chunk in chunks)])
    return max(64, min(PLAIN_ROWS, num_rows * PLAIN_BYTES // largest))
