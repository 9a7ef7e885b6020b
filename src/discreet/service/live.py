"""Server-sent events: a release as soon as it is out, from wherever a client left off.

A client holds no queue here. It remembers the tick it has, and asks the store for later ones when it has room: a
thousand slow clients cost a thousand sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from discreet.service.archive import Archive
from discreet.service.problems import ProblemError
from discreet.service.runtime import Service
from discreet.service.streams import LiveStream

_KEEP_ALIVE_SECONDS = 15.0


class Live:
    """Wakes those who wait for a tick."""

    def __init__(self, service: Service, archive: Archive) -> None:
        self._service = service
        self._archive = archive
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: dict[str, asyncio.Event] = {}
        self._clients = 0
        self._closed = False

    def open(self) -> None:
        """In the server's loop, before anybody asks."""
        self._loop = asyncio.get_running_loop()
        self._news = {name: asyncio.Event() for name in self._service.streams}
        self._service.published.append(self._out)

    def close(self) -> None:
        """Let everybody go."""
        self._closed = True
        for event in self._news.values():
            event.set()

    def _out(self, name: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                self._loop.call_soon_threadsafe(self._wake, name)

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
