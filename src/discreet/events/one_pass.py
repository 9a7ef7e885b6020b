"""One pass over files for several counts: each block is read once and handed to all of them, in the order of the file.

    one_pass(files, [count_pages, count_people, count_bytes])

Every count runs in a thread of its own, and asks for rows as it does alone. When all of them wait for their first rows,
the columns of all are known: anyone who called reads them, block by block, and no more than a few blocks are in
memory. A count that asks for rows a second time, or for lists, reads by itself.

A row that cannot be read in one of these columns (other cells than the header, text that is not UTF-8) is bad for all
counts: which ones there are is public, and what becomes of a row still depends on this row alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import DataError
from discreet.events.ahead import in_order
from discreet.events.inputs import DATABASE, STDIN, open_input, scheme_of

if TYPE_CHECKING:
    from discreet.events.files import FileRows, Files

T = TypeVar("T")

_SHARED = ("csv", "tsv", "jsonl", "common", "combined", "parquet", "arrow")
_ROOM = 2  # blocks that wait for a count


class _Ended(Exception):  # noqa: N818 (no error: nobody wants the rows any more)
    """Ends a count whose result nobody wants."""


class _Taker:
    """A count that takes rows, and the blocks that wait for it."""

    def __init__(self, rows: FileRows) -> None:
        self.rows = rows
        self.waiting: deque[Any] = deque()
        self.over = False  # it takes no more


class OnePass:
    """A pass over files that several counts share; see `one_pass`."""

    def __init__(self, files: Files, many: int) -> None:
        self._files, self._many = files, many
        self._changed = threading.Condition()
        self._takers: list[_Taker] = []
        self._ended = 0  # counts that are done, or failed
        self._begun = self._alone = self._stopped = False

    # ---- in the threads of the counts --------------------------------------------------------------------------------

    def of(self, rows: FileRows) -> Iterator[tuple[str, Any]] | None:
        """The columns of these rows; None if they are to be read without the others."""
        with self._changed:
            if self._begun or rows.takes_lists:
                return None
            taker = _Taker(rows)
            self._takers.append(taker)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._begun or self._stopped)
            self._check()
            if self._alone:
                return None
        return self._handed(taker)

    def _handed(self, taker: _Taker) -> Iterator[tuple[str, Any]]:
        try:
            while (file := self._next(taker)) is not None:  # then its blocks, and None
                source, format = file
                for arrays in taker.rows.of_shared(source, format, self._of_file(taker)):
                    yield source.name, arrays
        finally:
            with self._changed:
                taker.over = True
                taker.waiting.clear()
                self._changed.notify_all()

    def _of_file(self, taker: _Taker) -> Iterator[Any]:
        while (block := self._next(taker)) is not None:
            yield block

    def _next(self, taker: _Taker) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: taker.waiting or self._stopped)
            self._check()
            self._changed.notify_all()
            return taker.waiting.popleft()

    def _check(self) -> None:
        if self._stopped:
            raise _Ended

    # ---- in the thread that reads ------------------------------------------------------------------------------------

    def run(self, counts: Sequence[Callable[[], T]]) -> list[T]:
        """What the counts return, in their order; the first error of them is raised."""
        results: list[list[T]] = [[] for _ in counts]
        errors: list[BaseException | None] = [None] * len(counts)

        def count(place: int) -> None:
            try:
                results[place].append(counts[place]())
            except BaseException as error:
                errors[place] = error
            with self._changed:
                self._ended += 1
                self._changed.notify_all()

        threads = [
            threading.Thread(target=count, args=(place,), name="count", daemon=True) for place in range(len(counts))
        ]
        try:
            for thread in threads:
                thread.start()
            self._read()
            with self._changed:
                self._changed.wait_for(lambda: self._ended == self._many)
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
            for thread in threads:
                thread.join()
        failed = next((error for error in errors if error is not None), None)
        if failed is not None:
            raise failed
        return [result for [result] in results]

    def _read(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._takers) + self._ended >= self._many)
            self._alone = len(self._takers) < 2 or not self._can_share()
            self._begun = True
            self._changed.notify_all()
        if self._alone:
            if STDIN in self._files.files and self._many > 1:
                raise DataError(
                    f"standard input is read once, so its format cannot be guessed; give format as "
                    f"one of {', '.join(_SHARED)}"
                )
            return
        columns = list(dict.fromkeys(name for taker in self._takers for name in taker.rows.reads))
        for taker in self._takers:
            taker.rows.places = [columns.index(name) for name in taker.rows.reads]
        for file in self._files.files:
            source = open_input(file, self._files.encoding)
            try:
                format, reading = self._takers[0].rows.shared_reading(source, columns)
                self._hand((source, format))
                with closing(in_order(reading)) as blocks:
                    for block in blocks:
                        self._hand(block)
                        del block
                if source.remote is not None:
                    source.check_not_replaced()
                self._hand(None)
            finally:
                source.close()
        self._hand(None)

    def _can_share(self) -> bool:
        from discreet.events.inputs import format_named

        files = [file for file in self._files.files if scheme_of(file) != DATABASE]
        named = [self._files.format or format_named(file)[0] for file in files]
        names = [name for taker in self._takers for name in taker.rows.reads]
        return all(name in _SHARED for name in named) and None not in names

    def _hand(self, block: Any) -> None:
        """To every count that takes more, when it has room."""
        with self._changed:
            for taker in self._takers:
                self._changed.wait_for(lambda: taker.over or len(taker.waiting) < _ROOM)  # noqa: B023
                if not taker.over:
                    taker.waiting.append(block)
            self._changed.notify_all()


def one_pass(files: Any, counts: Sequence[Callable[[], T]]) -> list[T]:
    """What the counts return; those of files share one pass over them, where their format can be shared."""
    from discreet.events.files import Files

    if not isinstance(files, Files) or len(counts) < 2 or files.passes or files.query is not None:
        return [count() for count in counts]
    files.passes.append(OnePass(files, len(counts)))
    try:
        return files.passes[0].run(counts)
    finally:
        files.passes.clear()
