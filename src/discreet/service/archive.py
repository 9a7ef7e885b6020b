"""What was published, for those who read: some at a time, beside the server's loop, and never all of it in memory.

Those who watch get a release as soon as it is out, from wherever they left off (server-sent events). A client holds no
queue here. It remembers the tick it has, and asks the store for later ones when it has room: a thousand slow clients
cost a thousand sockets.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import anyio
import msgspec
import pyarrow as pa

from discreet._data_class import replace
from discreet.releases.formats import csv_writer
from discreet.service.problems import ProblemError
from discreet.service.runtime import Service
from discreet.service.store import Store, Which
from discreet.service.streams import LiveStream

_AT_ONCE = 2  # threads that read: anyone who comes later waits, and events do not
_BLOCK_BYTES = 2**18
_KEEP_ALIVE_SECONDS = 15.0
_T = TypeVar("_T")
_HEAD = ("stream", "tick", "begins", "ends", "missed")
_LISTED = ("item", "count", "lower", "upper")
_NUMBER = ("value", "lower", "upper")

Form = Callable[[list[bytes], bool], bytes]


class Archive:
    """Reads the store for the server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        self._newest: dict[str, tuple[int, asyncio.Future[list[tuple[int, bytes]]]]] = {}

    async def aside(self, run: Callable[..., _T], *values: Any) -> _T:
        """Do it in a thread."""
        return await anyio.to_thread.run_sync(run, *values, limiter=self._limiter)

    async def written(self, name: str, which: Which, form: Form) -> AsyncIterator[bytes]:
        """These releases in a format, piece by piece: the next is read when the one before was sent."""
        last = which.last

        def piece(at: int) -> tuple[int, bytes]:
            rest = replace(which, first=at)
            found = self._store.some_releases(name, rest, _BLOCK_BYTES) if at <= last else []
            at = found[-1][0] + 1 if found else last + 1
            return at, form([release for _, release in found], at > last)

        at = which.first
        while True:
            at, text = await self.aside(piece, at)
            yield text
            if at > last:
                return

    async def events(self, name: str, first: int, last: int) -> list[tuple[int, bytes]]:
        """Some releases from the first on, as server-sent events."""
        if first == last:
            return [(last, await self._newest_event(name, last))]
        return await self.aside(self._events, name, first, last)

    def _events(self, name: str, first: int, last: int) -> list[tuple[int, bytes]]:
        found = self._store.some_releases(name, Which(first, last), _BLOCK_BYTES // 4)
        return [(tick, b"event: release\nid: %d\ndata: %b\n\n" % (tick, text)) for tick, text in found]

    async def _newest_event(self, name: str, tick: int) -> bytes:
        """Made once for all who wait for it."""
        known = self._newest.get(name)
        if known is None or known[0] != tick or (known[1].done() and known[1].exception() is not None):
            known = self._newest[name] = tick, asyncio.ensure_future(self.aside(self._events, name, tick, tick))
        ((_, event),) = await asyncio.shield(known[1])
        return event


class Live:
    """Wakes those who wait for a tick."""

    def __init__(self, service: Service, archive: Archive) -> None:
        self._service = service
        self._archive = archive
        self._news: dict[str, asyncio.Event] = {}
        self._clients = 0
        self._closed = False

    def open(self) -> None:
        """In the server's loop, before anybody asks."""
        self._news = {name: asyncio.Event() for name in self._service.streams}
        self._service.published.append(self._wake)

    def close(self) -> None:
        """Let everybody go."""
        self._closed = True
        for event in self._news.values():
            event.set()

    def _wake(self, name: str) -> None:
        self._news[name].set()
        if not self._closed:
            self._news[name] = asyncio.Event()

    def events(
        self, stream: LiveStream, after: int | None, allowed: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[bytes]:
        """The releases after this tick, then those that come while it is allowed; None begins with the latest."""
        if self._clients >= self._service.configuration.limits.live_clients:
            raise ProblemError(503, "Too many viewers already", retry_after=60)
        return self._events(stream, max(0, stream.tick - 1) if after is None else after, allowed)

    async def _events(self, stream: LiveStream, tick: int, allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
        self._clients += 1
        try:
            yield b"retry: 2000\n\n"
            while not self._closed and allowed():
                news = self._news[stream.name]
                while tick < stream.tick and not self._closed:
                    for number, event in await self._archive.events(stream.name, tick + 1, stream.tick):
                        yield event
                        tick = number
                if tick >= stream.last_tick:
                    yield b"event: end\ndata: {}\n\n"
                    return
                try:
                    await asyncio.wait_for(news.wait(), _KEEP_ALIVE_SECONDS)
                except (TimeoutError, asyncio.TimeoutError):
                    yield b": here\n\n"
        finally:
            self._clients -= 1


# ---- forms: what is written of the next releases; the last ones come with what follows them -------------------------


def json_form(name: str, following: int | None) -> Form:
    """Releases are JSON already."""
    before = f'{{"stream":{json.dumps(name)},"releases":['.encode()
    end = b"]}" if following is None else f'],"next":{following}}}'.encode()
    is_first = True

    def written(releases: list[bytes], last: bool) -> bytes:
        nonlocal is_first
        text = (before if is_first else b"," if releases else b"") + b",".join(releases)
        is_first = False
        return text + end if last else text

    return written


def csv_form(stream: LiveStream) -> Form:
    """One row an item and tick, or a tick."""
    names = _names_of(stream)
    header = [names]

    def written(releases: list[bytes], last: bool) -> bytes:
        out = io.StringIO(newline="")
        csv_writer(out).writerows([*header, *([_plain(cell) for cell in row] for row in _rows(names, releases))])
        header.clear()
        return out.getvalue().encode()

    return written


def arrow_form(stream: LiveStream) -> Form:
    """The same rows as an Arrow stream, with a batch for every piece."""
    names = _names_of(stream)
    texts = dict.fromkeys(("stream", "begins", "ends", "period", "item"), pa.string())
    kinds = {**texts, "missed": pa.bool_(), "final": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
    sink = _Pieces()
    writer = pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema)

    def written(releases: list[bytes], last: bool) -> bytes:
        rows = list(_rows(names, releases))
        if rows:
            columns = zip(zip(*rows, strict=True), schema, strict=True)
            arrays = [pa.array(column, field.type) for column, field in columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        if last:
            writer.close()
        return sink.taken()

    return written


class _Pieces(io.RawIOBase):
    """A file that is only written to, and handed on as it grows."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._size += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _rows(names: list[str], releases: list[bytes]) -> Iterator[list[Any]]:
    for text in releases:
        release = msgspec.json.decode(text)
        for row in release["items"] if "item" in names else [release]:
            yield [row[name] if name in row else release[name] for name in names]


def _names_of(stream: LiveStream) -> list[str]:
    days = () if stream.definition.per is None else ("period", "final")
    return [*_HEAD, *days, *(_LISTED if stream.definition.kind in ("top", "survey") else _NUMBER)]


def _plain(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    # What spreadsheets would run as a formula is shown as text.
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
