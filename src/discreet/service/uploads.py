"""Uploads, from a request to the disk: bodies, keys of retries, and the short way for events."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet._data_class import dataclass
from discreet.errors import DiscreetError
from discreet.service.access import Access, Caller, Holding
from discreet.service.bodies import FORMATS, Reader, RowsRead
from discreet.service.definitions import ServiceLimits
from discreet.service.folder import write_file
from discreet.service.guard import problem_response
from discreet.service.problems import ProblemError
from discreet.service.runtime import Service
from discreet.service.shapes import AcceptedModel
from discreet.service.streams import Arrival, LiveStream

ON_THE_LOOP = 2**14  # bytes of a body that takes no time, whatever is in it
_IF_IT_IS_PLAIN = 2**18  # bytes of a body that takes little time if nothing is wrong with it
_AT_ONCE = 2  # bodies that are read in threads: others wait, and hold up nobody else
_AT_ONCE_OF_STRANGERS = 1
_LOOK_SECONDS = 5.0  # how often a body must have made progress
_MOST_KEY = 200
_KEY_BYTES = 32

_T = TypeVar("_T")


def accepted(shape: AcceptedModel) -> Response:
    """It is on disk."""
    return Response(shape.to_json(), 202, media_type="application/json")


class Uploads:
    """From a request to the disk."""

    def __init__(self, service: Service, access: Access) -> None:
        self.service = service
        self.access = access
        self.readers = {
            name: Reader(stream.definition, service.configuration.limits)
            for name, stream in service.streams.items()
            if stream.definition.kind != "survey"
        }
        self._reading = {
            True: anyio.CapacityLimiter(_AT_ONCE),
            False: anyio.CapacityLimiter(_AT_ONCE_OF_STRANGERS),
        }
        self.secret = _secret(service.folder)

    async def events(self, name: str, request: Request, skip: bool) -> Response:
        """`POST /v1/streams/NAME/events`."""
        caller = self.access.caller(request)
        stream = self.access.stream(caller, "ingest", name)
        if stream.definition.kind == "survey":
            raise ProblemError(409, "A survey takes reports, not events", "Send them to /messages.")
        form = FORMATS.get(_media_type(request))
        if form is None:
            raise ProblemError(415, "The format is not known", f"Content-Type must be one of {', '.join(FORMATS)}.")
        stream.admit()
        with self.hold(caller, stream.name) as held:
            body = await self.body(request, held)
            large = len(body) > _IF_IT_IS_PLAIN
            key, digest = await self.aside(caller, large, self.key, request, caller, body)
            rows = await self.read(caller, stream, form, body, skip)
            del body
            self.access.events(caller, rows.taken)
            data, size = await self.aside(caller, large, stream.prepared, rows.columns)
            rows.columns = None
            held.become(size)
            taken = await self.take(stream, Arrival(rows.counted, data, rows.taken, key, digest))
        return accepted(AcceptedModel(accepted=taken, **({"skipped": rows.skipped} if skip else {})))

    def hold(self, caller: Caller, stream: str) -> Holding:
        """What a request of this caller holds of the memory that requests share."""
        return self.service.shares.hold(caller.name, stream, caller.token is not None)

    async def aside(self, caller: Caller, slow: bool, run: Callable[..., _T], *values: Any) -> _T:
        """Do it in a thread if it may be slow."""
        if not slow:
            return run(*values)
        limiter = self._reading[caller.token is not None]
        return _given(await anyio.to_thread.run_sync(_tried, run, *values, limiter=limiter))

    async def body(self, request: Request, held: Holding, most: int | None = None) -> bytes:
        """All of it, unless it is too large, more than the caller's share, or does not come in time."""
        limits = self.service.configuration.limits
        most = limits.body_bytes if most is None else min(most, limits.body_bytes)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise ProblemError(415, "Content-Encoding is not supported")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        body: bytes | bytearray = b""
        with _TimeLimit(limits, held):
            async for piece in request.stream():
                if not piece:
                    continue
                if held.size + len(piece) > most:
                    raise _too_large(most)
                held.add(len(piece))
                if not body:
                    body = piece
                elif isinstance(body, bytearray):
                    body += piece
                else:
                    body = bytearray(body) + piece
        return bytes(body)

    def key(self, request: Request, caller: Caller, body: bytes) -> tuple[bytes | None, bytes | None]:
        """(key, digest of what came) of a request that may be repeated; keys are the caller's own.

        With a token they are the token's. Without one nobody can be told from others: an address is shared, and changes
        on the way. So the key of a stranger is the key with all that came under it, and no answer depends on
        what others sent: another body under the same key is another request, never a refusal. Anyone who knows key and
        body of somebody else can only send the same once more, which counts once, no matter who comes first.
        """
        given = request.headers.get("idempotency-key")
        if given is None:
            return None, None
        if not 1 <= len(given) <= _MOST_KEY:
            raise ProblemError(422, f"An Idempotency-Key must have 1 to {_MOST_KEY} characters")
        # What a type is followed by (charset, a space) changes nothing here, so it does not make another body.
        digest = hashlib.sha256(f"{_media_type(request)}\0{request.url.query}\0".encode() + body).digest()[:16]
        sender = caller.name.encode() if caller.token else b"\0" + digest
        return hashlib.sha256(sender + b"\0" + given.encode()).digest()[:16], digest

    async def take(self, stream: LiveStream, arrival: Arrival) -> int:
        """Have it on disk, unless an earlier request had brought it; how many rows were taken."""
        return _given(await self._answered(stream, arrival))

    async def _answered(self, stream: LiveStream, arrival: Arrival) -> int | _Failed:
        key, digest = arrival.key, arrival.digest
        if key is not None and digest is not None:
            before = stream.before(key, digest)
            if before is not None:
                return before
            same, pending = stream.pending.get(key, (digest, None))
            if same != digest:
                raise ProblemError(422, "This Idempotency-Key was used for another body")
            if pending is not None:
                outcome: int | _Failed = await asyncio.shield(pending)
                return outcome
        future: asyncio.Future[int | _Failed] = asyncio.get_running_loop().create_future()

        def done(arrival: Arrival, error: Exception | None) -> None:
            if key is not None:
                stream.pending.pop(key, None)
            if future.cancelled():
                return
            arrival.error = None
            future.set_result(arrival.accepted if error is None else _Failed(error))

        if key is not None:
            stream.pending[key] = (digest, future)
        try:
            self.service.submit(stream, arrival, done)
        except BaseException:
            if key is not None:
                stream.pending.pop(key, None)
            raise
        return await asyncio.shield(future)

    async def read(self, caller: Caller, stream: LiveStream, form: str, body: bytes, skip: bool) -> RowsRead:
        """The rows of a body; in a thread if that could keep others waiting."""
        reader = self.readers[stream.name]
        rows = reader.read_small(form, body) if len(body) <= _IF_IT_IS_PLAIN else None
        if rows is not None:
            return rows
        return await self.aside(caller, len(body) > ON_THE_LOOP, reader.read, form, body, skip)


class EventsLane:
    """The way of events past everything that they do not need: most requests are these, many of them with one event.

    What it does not know (a browser of another site, parameters it has not heard of) goes the long way.
    """

    def __init__(self, app: ASGIApp, uploads: Uploads) -> None:
        self._app = app
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._name(scope)
        if name is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._uploads.events(name, request, scope["query_string"] == b"bad_rows=skip")
        except ProblemError as problem:
            self._uploads.service.refused(name, problem.reason)
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
    """How long a body may take, and how slow it may be; then 408.

    Lighter than what libraries have, for it is made for every event.
    """

    def __init__(self, limits: ServiceLimits, held: Holding) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._held, self._before = held, held.size
        self._rate = limits.body_bytes_per_second
        self._left = limits.body_seconds
        self._ended = False
        self._wait()

    def _wait(self) -> None:
        self._step = min(_LOOK_SECONDS, self._left)
        self._timer = self._loop.call_later(self._step, self._look)

    def _look(self) -> None:
        self._left -= self._step
        if self._left > 0 and self._held.size - self._before >= self._rate * self._step:
            self._before = self._held.size
            self._wait()
            return
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
            raise ProblemError(408, "The body did not arrive in time") from None


@dataclass(frozen=True)
class _Failed:
    """An error on its way from a thread, as a value.

    A future that raises it is held by the frame that waits for it, the frame by the error's traceback, and the error by
    the future. What else is in such frames, a body of 16 MiB, would stay until Python looks for cycles: seldom.
    """

    error: Exception


def _tried(run: Callable[..., _T], *values: Any) -> _T | _Failed:
    try:
        return run(*values)
    except Exception as error:
        return _Failed(error)


def _given(outcome: _T | _Failed) -> _T:
    """What came, or the error that came, raised so that no frame holds it. The caller must not keep the outcome."""
    if not isinstance(outcome, _Failed):
        return outcome
    try:
        raise outcome.error
    finally:
        del outcome


def _media_type(request: Request) -> str:
    """The Content-Type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _too_large(most: int) -> ProblemError:
    return ProblemError(413, "The body is too large", f"The limit is {most} bytes.")


def _secret(folder: Path) -> bytes:
    """The key that tells visitors apart whose tracker sends no id; made once."""
    path = folder / "visitors.key"
    if not path.exists():
        write_file(path, secrets.token_bytes(_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise DiscreetError(f"{str(path)!r} is not a key of {_KEY_BYTES} bytes; restore the file that was there")
    return key
