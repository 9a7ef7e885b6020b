"""A web server that does not count: how many requests there were would be in its memory for as long as it runs.

A pan-private service must not know that (docs/privacy/service.md). uvicorn counts requests, and asyncio numbers its
tasks, of which every request is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

from uvicorn.server import ServerState

__all__ = ["UncountedState", "unnumbered"]


class UncountedState(ServerState):
    """What the connections of a server share, without the number of requests."""

    @property
    def total_requests(self) -> int:  # type: ignore[override]
        """None that it knows of."""
        return 0

    @total_requests.setter
    def total_requests(self, value: int) -> None:
        pass


def unnumbered(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **more: Any
) -> asyncio.Task[Any]:
    """A task whose name is no number: for `set_task_factory`."""
    return asyncio.Task(work, loop=loop, **{**more, "name": more.get("name") or "task"})
