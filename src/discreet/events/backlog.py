"""Rows that wait for their turn: in memory as long as they are small, then in a file without a name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

_IN_MEMORY = 1 << 24


class Spool:
    """Batches under numbers, each number's in the order in which they came. NOT PRIVATE: it holds the rows themselves.

    The file is made without a name in `folder`, for its owner alone: nothing is left of it when the process ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._places: dict[int, list[tuple[int, int]]] = {}

    def add(self, number: int, batch: pa.RecordBatch) -> None:
        """Put a batch last among those of this number."""
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(self._folder))  # noqa: SIM115
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        place = self._file.seek(0, 2)
        self._file.write(data)
        self._places.setdefault(number, []).append((place, len(data)))

    def take(self, number: int) -> Iterator[pa.RecordBatch]:
        """The batches of this number, which are gone then."""
        for place, length in self._places.pop(number, []):
            assert self._file is not None
            self._file.seek(place)
            with pa.ipc.open_stream(self._file.read(length)) as reader:
                yield from reader
        if not self._places:
            self.close()

    def close(self) -> None:
        """Forget everything."""
        if self._file is not None:
            self._file.close()
        self._file, self._places = None, {}
