"""What a connection may take before anybody knows who it is: bytes of headers, requests in a row, time.

uvicorn parses whatever comes. Here its parser gets what came piece by piece: a request whose headers (or trailers) go
on for too long is refused, and while several requests wait on a connection the rest of it is not read.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD_PIECE = 4096  # bytes that the parser gets at once; what it makes of them is larger
_BODY_PIECE = 16384
_IN_A_ROW = 8  # requests that wait on one connection
_HEAD_SECONDS = 30.0  # until a request's headers are complete, from its first byte
_READ_SECONDS = 60.0  # until a client has read what was sent to it, some 64 kB
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 28\r\nconnection: close\r\n\r\nThe headers are too large.\r\n"
)

_SILENT = logging.Logger("connections", logging.CRITICAL + 1)
"""Takes uvicorn's remarks about what a client did wrong: strangers do not fill the log, and no line has their times."""


class _Flow(FlowControl):
    """Reading goes on only if nothing is held back, no matter who says that it should."""

    held = False

    def hold(self, held: bool) -> None:
        if held == self.held:
            return
        self.held = held
        if not self.read_paused:
            if held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def pause_reading(self) -> None:
        if self.held:
            self.read_paused = True
        else:
            super().pause_reading()

    def resume_reading(self) -> None:
        if self.held:
            self.read_paused = False
        else:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's connection, with limits."""

    header_bytes = 2**15

    def __init__(self, *values: Any, **more: Any) -> None:
        super().__init__(*values, **more)
        self.logger = _SILENT
        self._rest = b""  # came, and the parser has not had it yet
        self._quiet = 0  # bytes that the parser had since it said something: headers that go on
        self._in_head = True
        self._feeding = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport)
        # Also for those who never say anything; the first bytes end it.
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest = b""
        self._end_head_timer()
        self._end_read_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._rest = self._rest + data if self._rest else data
        self._feed()

    def _feed(self) -> None:
        """Give the parser what came, as long as there is room for what it makes of it."""
        if self._feeding:
            return
        self._feeding = True
        try:
            view, at = memoryview(self._rest), 0
            while at < len(view) and len(self.pipeline) < _IN_A_ROW and not self.transport.is_closing():
                piece = view[at : at + (_HEAD_PIECE if self._in_head else _BODY_PIECE)]
                at += len(piece)
                self._quiet += len(piece)
                super().data_received(bytes(piece) if len(piece) < len(view) else self._rest)
                if self._quiet > self.header_bytes and not self.transport.is_closing():
                    self.transport.write(_REFUSAL)
                    self.transport.close()
            self._rest = b"" if self.transport.is_closing() else self._rest[at:]
        finally:
            self._feeding = False
        assert isinstance(self.flow, _Flow)
        if not self.transport.is_closing():
            self.flow.hold(bool(self._rest))
            if self._in_head and self._quiet and self._head_timer is None:
                self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    # ---- what the parser says ----------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        self._in_head, self._quiet = False, 0
        self._end_head_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._quiet = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._quiet = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._rest and not self.transport.is_closing():
            self._feed()

    # ---- clients that do not read ------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(_READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_read_timer()

    def _end_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None


def bounded(header_bytes: int) -> type[BoundedProtocol]:
    """Connections whose requests have this many bytes of headers at most."""
    return type("BoundedProtocol", (BoundedProtocol,), {"header_bytes": header_bytes})
