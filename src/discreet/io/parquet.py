"""Parquet: only the wanted columns, one row group after the other, dictionary pages as dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet

from discreet.errors import DataError
from discreet.io.columns import BROKEN_INPUT, choose, kind_of, without_views
from discreet.io.source import ByteSource

__all__ = ["read_parquet"]

PLAIN_ROWS = 1 << 16
PLAIN_BYTES = 1 << 24
DICTIONARY_ROWS = 1 << 22
_T = TypeVar("_T")


def _guarded(name: str, call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    try:
        return call(*arguments, **options)
    except BROKEN_INPUT:
        reason = f"{name} is not a Parquet file, or it is damaged"
    raise DataError(reason)


def read_parquet(source: ByteSource, column: str | None, user_column: str | None) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, in bounded batches.

    Pages are read through a buffer as they are needed: `pre_buffer` would hold whole row groups and keep them.
    """
    file = source.seekable()
    options = {"pre_buffer": False, "buffer_size": 1 << 20}
    plain = _guarded(source.name, pa.parquet.ParquetFile, file, **options)
    schema = _guarded(source.name, lambda: {field.name: field.type for field in plain.schema_arrow})
    wanted = choose(list(schema), column, user_column, source.name)
    encoded = [name for name in wanted if kind_of(schema[name]) in ("text", "bytes")]
    as_dictionaries = _guarded(
        source.name, pa.parquet.ParquetFile, file, metadata=plain.metadata, read_dictionary=encoded, **options
    )
    # Where the file asks for a dictionary and plain pages are read, pyarrow makes one, and refuses all rows for one
    # that is not UTF-8.
    stored_as_dictionaries = any(pa.types.is_dictionary(schema[name]) for name in encoded)
    for group in range(plain.num_row_groups):
        chunks = _guarded(source.name, _chunks, plain.metadata.row_group(group), wanted)
        if all(chunk.path_in_schema in encoded and _is_dictionary(chunk) for chunk in chunks):
            parquet, rows = as_dictionaries, DICTIONARY_ROWS
        else:
            parquet, rows = plain, _plain_rows(plain.metadata.row_group(group).num_rows, chunks)
            if stored_as_dictionaries:
                parquet = as_dictionaries
        batches = parquet.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)
        while (batch := _guarded(source.name, next, batches, None)) is not None:
            # The reader makes well-formed columns, whatever the file holds. Whether text is UTF-8 it does not check.
            yield tuple(without_views(batch.column(name)) for name in wanted)
        source.advance_to((group + 1) / plain.num_row_groups)


def _chunks(group: Any, wanted: list[str]) -> list[Any]:
    chunks = [group.column(index) for index in range(group.num_columns)]
    return [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in wanted] or chunks


def _is_dictionary(chunk: Any) -> bool:
    """Whether to read a column chunk as a dictionary with indices.

    Writers fall back to plain pages when a dictionary grows large. Reading those this way is slower, and keeps all of
    their items, because every batch comes with the dictionary of the whole chunk so far. Metadata does not tell such
    chunks apart, but their size does: a plain value takes at least 4 bytes, an index less.
    """
    return bool(chunk.has_dictionary_page and chunk.total_uncompressed_size <= 4 * chunk.num_values)


def _plain_rows(num_rows: int, chunks: list[Any]) -> int:
    largest: int = max(1, *(chunk.total_uncompressed_size for chunk in chunks))
    return max(64, min(PLAIN_ROWS, num_rows * PLAIN_BYTES // largest))
