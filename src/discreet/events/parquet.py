"""Parquet: only the wanted columns, one row group after the other, dictionary pages as dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet

from discreet import _native
from discreet.errors import DataError
from discreet.events.columns import BROKEN_INPUT, checked, choose, kind_of, without_views
from discreet.events.source import ByteSource

__all__ = ["read_parquet"]

PLAIN_ROWS = 1 << 15
PLAIN_BYTES = 1 << 24
DICTIONARY_ROWS = 1 << 22
_T = TypeVar("_T")


def _guarded(name: str, call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    try:
        return call(*arguments, **options)
    except BROKEN_INPUT:
        reason = f"{name} is not a Parquet file, or it is damaged"
    raise DataError(reason)


def read_parquet(source: ByteSource, column: str | None, others: Sequence[str]) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, in bounded batches.

    Pages are read through a buffer as they are needed: `pre_buffer` would hold whole row groups and keep them.
    """
    file = source.seekable()
    # Writers that add checksums to their pages (those of Java do by default) have them checked.
    options = {"pre_buffer": False, "buffer_size": 1 << 20, "page_checksum_verification": True}
    plain = _guarded(source.name, pa.parquet.ParquetFile, file, **options)
    schema = _guarded(source.name, lambda: {field.name: field.type for field in plain.schema_arrow})
    wanted = choose(list(schema), column, others, source.name)
    yield tuple(pa.nulls(0, schema[name]) for name in wanted)  # types are known, whether or not there are rows
    encoded = [name for name in wanted if kind_of(schema[name]) in ("text", "bytes")]
    as_dictionaries = _guarded(
        source.name, pa.parquet.ParquetFile, file, metadata=plain.metadata, read_dictionary=encoded, **options
    )
    # Where the file asks for a dictionary and plain pages are read, pyarrow makes one, and refuses all rows for one
    # that is not UTF-8.
    stored_as_dictionaries = any(pa.types.is_dictionary(schema[name]) for name in encoded)
    groups = _chunks(source, wanted)
    if len(groups) != plain.num_row_groups:
        raise DataError(f"{source.name} is not a Parquet file, or it is damaged")
    for group, chunks in enumerate(groups):
        if chunks and all(wanted[chunk.column] in encoded and chunk.is_dictionary for chunk in chunks):
            parquet, rows = as_dictionaries, DICTIONARY_ROWS
        else:
            num_rows = _guarded(source.name, lambda at=group: plain.metadata.row_group(at).num_rows)
            parquet, rows = plain, _plain_rows(num_rows, chunks)
            if stored_as_dictionaries:
                parquet = as_dictionaries
        batches = parquet.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)
        while (batch := _guarded(source.name, next, batches, None)) is not None:
            # The reader makes well-formed columns, whatever the file holds, but for the indices of dictionaries.
            yield tuple(
                checked(batch, name, source.name)
                if pa.types.is_dictionary(batch.column(name).type)
                else without_views(batch.column(name))
                for name in wanted
            )
        source.advance_to((group + 1) / plain.num_row_groups)


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


def _chunks(source: ByteSource, wanted: list[str]) -> list[list[_Chunk]]:
    """The chunks of the wanted columns in every row group.

    Read from the footer itself: pyarrow's accessors end the process where numbers of a damaged one do not fit together.
    """
    end = source.tail(8)
    footer = source.tail(8 + int.from_bytes(end[:4], "little"))[:-8]
    try:
        groups = _native.parquet_chunks(footer, wanted)
    except DataError:
        reason = f"{source.name} is not a Parquet file, or it is damaged"
    else:
        return [[_Chunk(*chunk) for chunk in group] for group in groups]
    raise DataError(reason)


def _plain_rows(num_rows: int, chunks: list[_Chunk]) -> int:
    largest = max([1, *(chunk.uncompressed_bytes for chunk in chunks)])
    return max(64, min(PLAIN_ROWS, num_rows * PLAIN_BYTES // largest))
