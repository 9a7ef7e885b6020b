"""What was published, for those who read: some at a time, beside the server's loop, and never all of it in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, TypeVar

import anyio

from discreet.service.store import Store

__all__ = ["Archive", "Form"]

_AT_ONCE = 2  # threads that read: whoever comes later waits, and events do not
_BLOCK_BYTES = 2**18
_T = TypeVar("_T")


class Form(Protocol):
    """A format that is written piece by piece."""

    def some(self, releases: list[bytes]) -> bytes:
        """The next releases; the first piece begins the whole."""

    def end(self) -> bytes:
        """What comes after the last."""


class Archive:
    """Reads the store for the server."""

    def __init__(self, store: Store, answer_bytes: int) -> None:
        self._store = store
        self._answer_bytes = answer_bytes
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)
        self._newest: dict[str, tuple[int, asyncio.Future[bytes]]] = {}

    async def aside(self, run: Callable[..., _T], *values: Any) -> _T:
        """Do it in a thread."""
        return await anyio.to_thread.run_sync(run, *values, limiter=self._limiter)

    async def last_of_answer(self, name: str, first: int, last: int, every: int) -> int:
        """How far the releases of one answer go, by their bytes."""
        return await self.aside(self._store.last_within, name, first, last, every, self._answer_bytes)

    async def written(self, name: str, first: int, last: int, every: int, form: Form) -> AsyncIterator[bytes]:
        """These releases in a format, piece by piece: the next is read when the one before was sent."""

        def piece(at: int) -> tuple[int, bytes, bool]:
            found = self._store.some_releases(name, at, last, every, _BLOCK_BYTES) if at <= last else []
            text = form.some([release for _, release in found])
            at = found[-1][0] + 1 if found else last + 1
            return (at, text, False) if at <= last else (at, text + form.end(), True)

        at, done = first, False
        while not done:
            at, text, done = await self.aside(piece, at)
            yield text

    async def events(self, name: str, first: int, last: int) -> list[tuple[int, bytes]]:
        """Some releases from the first on, as server-sent events."""
        if first == last:
            return [(last, await self._newest_event(name, last))]
        return await self.aside(self._events, name, first, last)

    def _events(self, name: str, first: int, last: int) -> list[tuple[int, bytes]]:
        found = self._store.some_releases(name, first, last, 1, _BLOCK_BYTES // 4)
        return [(tick, b"event: release\nid: %d\ndata: %b\n\n" % (tick, text)) for tick, text in found]

    async def _newest_event(self, name: str, tick: int) -> bytes:
        """Made once for all who wait for it."""
        known = self._newest.get(name)
        if known is None or known[0] != tick or (known[1].done() and known[1].exception() is not None):
            reading = asyncio.ensure_future(self.aside(self._events, name, tick, tick))
            known = self._newest[name] = (tick, asyncio.ensure_future(_only(reading)))
        return await asyncio.shield(known[1])


async def _only(reading: asyncio.Future[list[tuple[int, bytes]]]) -> bytes:
    ((_, event),) = await reading
    return event
