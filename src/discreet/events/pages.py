"""One column of a Parquet file, decoded from its pages by native code: in tasks that any thread may do.

What is not known here (other types and codecs, nested columns, odd pages) is left to pyarrow, row group by row group,
with the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from discreet import _native
from discreet.errors import DataError
from discreet.events.inputs import ByteSource

DAMAGED = "is not a Parquet file, or it is damaged"


def damaged(name: str) -> DataError:
    """For a file that does not hold what it says. To raise where nothing is handled: a cause may tell what it holds."""
    return DataError(f"{name} {DAMAGED}")


def footer_of(source: ByteSource) -> bytes | None:
    """The footer of a Parquet file that is not encrypted; None if there is none."""
    end = source.tail(8)
    length = int.from_bytes(end[:4], "little")
    footer = source.tail(8 + length)[:-8]
    return footer if end[4:] == b"PAR1" and len(footer) == length else None


class ColumnPages:
    """The pages of a column of texts or bytes.

    Attributes:
        kind: "text" or "bytes".
    """

    def __init__(self, source: ByteSource, column: str, pages: _native.ParquetPages) -> None:
        self._source, self._column, self._pages = source, column, pages
        self.kind = "text" if pages.is_text else "bytes"

    @classmethod
    def of(cls, source: ByteSource, column: str | None) -> ColumnPages | None:
        """The column of this name, or the only one there is; None where another reader has to look."""
        from discreet.events.items import choose

        descriptor, footer = source.descriptor(), footer_of(source)
        if footer is None:
            return None
        try:
            names = _native.parquet_columns(footer)
        except (DataError, UnicodeDecodeError):
            return None
        name = choose(names, [column], source.name)[0]
        pages = _native.parquet_pages(descriptor, footer, name)
        return None if pages is None else cls(source, name, pages)

    def tasks(self, hash: Callable[[_native.MadeColumn], object]) -> Iterator[Callable[[], Any]]:
        """What to decode, in the order of the rows: `MadeColumn`s, or columns of pyarrow as `read_parquet` has them.

        What is made is hashed, too.
        """
        others = None
        for group in range(self._pages.groups):
            runs = self._pages.runs(group)
            if runs is None:
                from discreet.events.parquet import ArrowColumns

                others = others or ArrowColumns(self._source, self._column, [])
                yield from (partial(_as_it_is, batch.arrays()) for batch in others.of_group(group))
            else:
                yield from (partial(self._decoded, run, hash) for run in runs)
            self._source.advance_to((group + 1) / self._pages.groups)

    def _decoded(self, run: _native.ParquetRun, hash: Callable[[_native.MadeColumn], object]) -> _native.MadeColumn:
        made = decoded(run, self._source.name)
        hash(made)
        return made


def decoded(run: _native.ParquetRun, name: str) -> _native.MadeColumn:
    """The rows of some pages of a file of this name."""
    with suppress(DataError):
        return run.decode()
    raise damaged(name)


def _as_it_is(arrays: Any) -> Any:
    return arrays
