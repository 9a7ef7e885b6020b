"""The web server, uvicorn: no access log, drained by SIGTERM, exit code 0, and it does not count.

How many requests there were would be in its memory for as long as it runs, and a pan-private service must not know that
(docs/privacy/service.md). uvicorn counts requests, and asyncio numbers its tasks, and every request is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from discreet.errors import DiscreetError
from discreet.service.connections import bounded
from discreet.service.definitions import Configuration
from discreet.service.journal import log
from discreet.service.routes import make_app
from discreet.service.runtime import Service

_DRAIN_SECONDS = 10
_SWITCH_SECONDS = 0.0005  # the writer, back from the disk, does not wait long for the loop; 5 ms are usual


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


class _Server(uvicorn.Server):
    """Says when it listens. Ends when it is told to; the signal has done its work then, and is not raised once more."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self.server_state = UncountedState()
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready(self.servers[0].sockets[0].getsockname()[1])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Finish what was taken, and end."""
        self.should_exit = True
        self.config.app.state.live.close()  # type: ignore[union-attr]


def serve(
    configuration: Configuration,
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    ledger: Path | str | None = None,
    take_over: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Run until SIGTERM or Ctrl-C; then finish what was taken, and return."""
    log.setLevel(logging.INFO)
    sys.setswitchinterval(_SWITCH_SECONDS)
    service = Service(configuration, folder, ledger=ledger, take_over=take_over)
    app = make_app(service, tls=tls_cert is not None)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded(configuration.limits.header_bytes),
        ws="none",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        timeout_keep_alive=30,
        ssl_certfile=None if tls_cert is None else str(tls_cert),
        ssl_keyfile=None if tls_key is None else str(tls_key),
    )

    def listening(bound: int) -> None:
        name = f"[{host}]" if ":" in host else host
        ready(f"{'https' if tls_cert is not None else 'http'}://{name}:{bound}/")

    server = _Server(config, listening)
    factory = config.get_loop_factory() or asyncio.new_event_loop
    loop = factory()
    loop.set_task_factory(unnumbered)
    service.when_lost = lambda: loop.call_soon_threadsafe(server.stop)
    try:
        loop.run_until_complete(server.serve())
    finally:
        loop.close()
    if service.lost:
        raise DiscreetError(service.why_lost)
