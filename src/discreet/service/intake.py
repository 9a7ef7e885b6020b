"""From a request to the disk: bodies, keys of retries, and the short way for events."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from pathlib import Path
from typing import Any

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.errors import DiscreetError
from discreet.service.access import Access, Caller
from discreet.service.guard import problem_response
from discreet.service.ingest import FORMATS, Reader, RowsRead
from discreet.service.problems import ProblemError, too_busy
from discreet.service.running import Service
from discreet.service.store import write_file
from discreet.service.streams import Arrival, LiveStream

__all__ = ["EventsLane", "Intake", "encode_json", "json_response"]

_IN_A_THREAD = 2**20  # bytes of a body from which on reading it would keep others waiting
_MOST_KEY = 200
_KEY_BYTES = 32

encode_json = msgspec.json.Encoder().encode


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """What is JSON already, or becomes it."""
    return Response(value if isinstance(value, bytes) else encode_json(value), status, headers, "application/json")


class Intake:
    """From a request to the disk."""

    def __init__(self, service: Service, access: Access) -> None:
        self.service = service
        self.access = access
        self._readers = {
            name: Reader(stream.definition)
            for name, stream in service.streams.items()
            if stream.definition.kind != "survey"
        }
        self._reading = 0
        self.secret = _secret(service.folder)

    async def events(self, name: str, request: Request, skip: bool) -> Response:
        """`POST /v1/streams/NAME/events`."""
        caller = self.access.caller(request)
        stream = self.access.stream(caller, "ingest", name)
        if stream.definition.kind == "survey":
            raise ProblemError(409, "A survey takes reports, not events", "Send them to /messages.")
        form = FORMATS.get(_media_type(request))
        if form is None:
            raise ProblemError(415, "The format is not known", f"Content-Type is one of {', '.join(FORMATS)}.")
        stream.admit()
        body = await self.body(request)
        key, digest = self.key(request, caller, body)
        rows = await self.read(stream, form, body, skip)
        self.access.events(caller, rows.taken)
        taken, _ = await self.take(stream, rows.counted, rows.columns, rows.taken, key, digest)
        return json_response({"accepted": taken, **({"skipped": rows.skipped} if skip else {})}, 202)

    async def body(self, request: Request, most: int | None = None) -> bytes:
        """All of it, unless it is too large or does not come in time."""
        limits = self.service.configuration.limits
        most = limits.body_bytes if most is None else min(most, limits.body_bytes)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise ProblemError(415, "Content-Encoding is not taken here")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        pieces, size = [], 0
        try:
            with _TimeLimit(limits.body_seconds):
                async for piece in request.stream():
                    size += len(piece)
                    self._reading += len(piece)
                    if size > most:
                        raise _too_large(most)
                    if self._reading > limits.waiting_bytes:
                        raise too_busy()
                    pieces.append(piece)
        finally:
            self._reading -= size
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def key(self, request: Request, caller: Caller, body: bytes) -> tuple[bytes | None, bytes | None]:
        """(key, digest of what came) of a request that may be repeated; keys are the caller's own.

        With a token they are the token's. Without one nobody can be told from others: an address is shared, and changes
        on the way. So the key of a stranger is the key with all that came under it, and no answer depends on
        what others sent: another body under the same key is another request, never a refusal. Whoever knows key and
        body of somebody else can only send the same once more, which counts once, whoever comes first.
        """
        given = request.headers.get("idempotency-key")
        if given is None:
            return None, None
        if not 1 <= len(given) <= _MOST_KEY:
            raise ProblemError(422, f"An Idempotency-Key has 1 to {_MOST_KEY} characters")
        # What a type is followed by (charset, a space) changes nothing here, so it does not make another body.
        digest = hashlib.sha256(f"{_media_type(request)}\0{request.url.query}\0".encode() + body).digest()[:16]
        sender = caller.name.encode() if caller.token else b"\0" + digest
        return hashlib.sha256(sender + b"\0" + given.encode()).digest()[:16], digest

    async def take(
        self, stream: LiveStream, rows: int, columns: Any, taken: int, key: bytes | None, digest: bytes | None
    ) -> tuple[int, bool]:
        """Have it on disk; (how many rows were taken, whether an earlier request had brought them)."""
        if key is not None and digest is not None:
            before = stream.before(key, digest)
            if before is not None:
                return before, True
            pending = stream.pending.get(key)
            if pending is not None:
                if pending[0] != digest:
                    raise ProblemError(422, "The Idempotency-Key was used for another body")
                return await asyncio.shield(pending[1]), True
        data, size = stream.prepared(rows, columns)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def done(arrival: Arrival, error: Exception | None) -> None:
            if key is not None:
                stream.pending.pop(key, None)
            if future.cancelled():
                return
            if error is None:
                future.set_result(arrival.accepted)
            else:
                future.set_exception(error)

        if key is not None:
            stream.pending[key] = (digest, future)
        try:
            self.service.submit(stream, Arrival(rows, data, taken, key, digest, size), done)
        except BaseException:
            if key is not None:
                stream.pending.pop(key, None)
            raise
        return await asyncio.shield(future), False

    async def read(self, stream: LiveStream, form: str, body: bytes, skip: bool) -> RowsRead:
        reader = self._readers[stream.name]
        if len(body) < _IN_A_THREAD:
            return reader.read(form, body, skip)
        return await anyio.to_thread.run_sync(reader.read, form, body, skip)

    def reader(self, name: str) -> Reader:
        return self._readers[name]


class EventsLane:
    """The way of events past everything that they do not need: most requests are these, many of them with one event.

    What it does not know (a browser of another site, parameters it has not heard of) goes the long way.
    """

    def __init__(self, app: ASGIApp, intake: Intake) -> None:
        self._app = app
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._name(scope)
        if name is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._intake.events(name, request, scope["query_string"] == b"bad_rows=skip")
        except ProblemError as problem:
            self._intake.service.refused(name, problem.reason)
            response = problem_response(problem)
        await response(scope, receive, send)

    @staticmethod
    def _name(scope: Scope) -> str | None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        parts = scope["path"].split("/")
        if len(parts) != 5 or parts[1] != "v1" or parts[2] != "streams" or parts[4] != "events":
            return None
        if scope["query_string"] not in (b"", b"bad_rows=skip") or any(key == b"origin" for key, _ in scope["headers"]):
            return None
        return parts[3]


class _TimeLimit:
    """So many seconds for a body, then 408. Lighter than what libraries have, for it is made for every event."""

    def __init__(self, seconds: float) -> None:
        self._task = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._end)
        self._ended = False

    def _end(self) -> None:
        self._ended = True
        assert self._task is not None
        self._task.cancel()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, where: Any) -> None:
        self._timer.cancel()
        if self._ended and isinstance(value, asyncio.CancelledError):
            assert self._task is not None
            getattr(self._task, "uncancel", int)()  # new in Python 3.11
            raise ProblemError(408, "The body did not come in time") from None


def _media_type(request: Request) -> str:
    """The Content-Type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _too_large(most: int) -> ProblemError:
    return ProblemError(413, "The body is too large", f"At most {most} bytes are taken at once.")


def _secret(folder: Path) -> bytes:
    """The key that tells visitors apart whose tracker sends no id; made once."""
    path = folder / "visitors.key"
    if not path.exists():
        write_file(path, secrets.token_bytes(_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise DiscreetError(f"{str(path)!r} is not a key of {_KEY_BYTES} bytes: put back what was there")
    return key
