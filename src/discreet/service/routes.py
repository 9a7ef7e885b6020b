"""The routes."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import anyio
from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles

from discreet._data_class import replace
from discreet._version import __version__
from discreet.errors import MessageError
from discreet.service import shapes
from discreet.service.access import Access
from discreet.service.archive import Archive, Live, arrow_form, csv_form, json_form
from discreet.service.bodies import ARROW, CSV, JSON, NDJSON, plausible_event, too_many_rows
from discreet.service.catalogue import described, metrics
from discreet.service.guard import Guard, problem_response
from discreet.service.increases import increases
from discreet.service.problems import ProblemError
from discreet.service.reference import reference_page
from discreet.service.runtime import Service
from discreet.service.store import Which
from discreet.service.streams import Arrival, LiveStream
from discreet.service.survey_stream import SurveyStream
from discreet.service.uploads import ON_THE_LOOP, EventsLane, Uploads, accepted

PAGE = Path(__file__).parent / "page"
_AT_ONCE = 10_000  # releases of one answer
_BY_DEFAULT = 1_000
_FORGET_SECONDS = 1.0

_Answers = dict[int | str, dict[str, Any]]  # by status


def _refusals(texts: dict[int, str]) -> _Answers:
    return {status: {"model": shapes.ProblemModel, "description": text} for status, text in texts.items()}


_REFUSALS = _refusals({
    401: "No token, or none that is valid",
    403: "Not allowed",
    404: "No such stream",
    429: "Too fast, or the service cannot keep up: Retry-After",
})  # fmt: skip
_TAKING = _REFUSALS | _refusals({
    400: "The body is not of its format",
    408: "The body did not arrive in time",
    409: "Not for this kind of stream",
    410: "The stream has ended",
    413: "The body is too large",
    415: "The format is not known",
    422: "Some rows are wrong: which and why",
    503: "The service is stopping",
    507: "The disk is full, or a survey has all reports that it takes",
})  # fmt: skip
_ASKING = _REFUSALS | {304: {"description": "You have it already"}} | _refusals({422: "A parameter is wrong"})


def _body(schemas: dict[str, Any]) -> dict[str, Any]:
    """What a request must bring: a schema for each type of it."""
    content = {kind: {"schema": schema} for kind, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}


_TEXT, _BYTES = {"type": "string"}, {"type": "string", "format": "binary"}
_ROWS = {"oneOf": [{"type": "array", "items": {"type": "object"}}, {"type": "object"}]}
_TRACKED = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("n", "u", "d", "r")},
    "required": ["n", "u", "d"],
}
_EVENTS_BODY = _body({NDJSON: _TEXT, JSON: _ROWS, CSV: _TEXT, ARROW: _BYTES})
_MESSAGE_BODY = _body({"application/octet-stream": _BYTES})
_PLAUSIBLE_BODY = _body({JSON: _TRACKED, "text/plain": _TRACKED})
_Format = Annotated[Literal["json", "csv", "arrow"] | None, Query(alias="format", description="Instead of Accept")]


def make_app(service: Service, *, tls: bool = False, start: bool = True) -> FastAPI:
    """The application of a service; it starts and stops with it, unless a test does that."""
    archive = Archive(service.store)
    live = Live(service, archive)
    access = Access(service)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        live.open()
        service.call = asyncio.get_running_loop().call_soon_threadsafe
        if start:
            service.start()
        forgetting = asyncio.create_task(_forget(service, access))
        yield
        forgetting.cancel()
        live.close()
        if start:
            await anyio.to_thread.run_sync(service.stop)

    app = FastAPI(
        title="discreet service",
        version=__version__,
        description="Events in, private numbers out.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.live = live
    app.state.access = access
    uploads = Uploads(service, access)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(service.configuration.cors),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "If-None-Match"],
        expose_headers=["ETag", "Link", "Retry-After"],
    )
    app.add_middleware(EventsLane, uploads=uploads)
    app.add_middleware(Guard, tls=tls)

    @app.exception_handler(ProblemError)
    async def refuse(request: Request, problem: ProblemError) -> Response:
        if request.method == "POST":
            service.refused(request.path_params.get("name", ""), problem.reason)
        return problem_response(problem)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        where = sorted({str(found["loc"][-1]) for found in error.errors() if found["loc"][0] in ("query", "header")})
        return problem_response(
            ProblemError(422, "A parameter is wrong", f"Look at: {', '.join(where)}" if where else None)
        )

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        titles = {404: "There is nothing here", 405: "Not that method"}
        response = problem_response(ProblemError(error.status_code, titles.get(error.status_code, "Not possible")))
        response.headers.update(error.headers or {})
        return response

    _add_in(app, service, access, uploads)
    _add_out(app, service, access, live, archive)
    _add_operators(app, service, access)
    _add_page(app)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return app


async def _forget(service: Service, access: Access) -> None:
    """Once a second: who asked is forgotten when it is not needed any more, also when nobody asks again."""
    while True:
        await asyncio.sleep(_FORGET_SECONDS)
        access.forget()
        await anyio.to_thread.run_sync(service.tokens.look)


def _description(app: FastAPI) -> dict[str, Any]:
    """The description of the interface, in which refusals have their own type and tokens are known."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for methods in made["paths"].values():
            for route in methods.values():
                for status, answer in route["responses"].items():
                    if status >= "400" and "application/json" in answer.get("content", {}):
                        answer["content"] = {"application/problem+json": answer["content"]["application/json"]}
                route["security"] = [{}, {"token": []}]
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        app.openapi_schema = made
    return app.openapi_schema


# ---- in --------------------------------------------------------------------------------------------------------------


def _add_in(app: FastAPI, service: Service, access: Access, uploads: Uploads) -> None:
    post = partial(
        app.post, status_code=202, response_model=shapes.AcceptedModel, responses=_TAKING, tags=["in"]
    )  # what all that takes something answers

    @post("/v1/streams/{name}/events", openapi_extra=_EVENTS_BODY)
    async def events(
        name: str,
        request: Request,
        bad_rows: Annotated[
            Literal["error", "refuse", "skip"],
            Query(description="Refuse all rows for a wrong one (`error`; formerly `refuse`), or `skip` it"),
        ] = "error",
        idempotency_key: Annotated[str | None, Header(description="A retry with the same key counts once")] = None,
    ) -> Response:
        """Events: NDJSON, a JSON array, CSV with a header, or an Arrow stream. On disk when this answers."""
        return await uploads.events(name, request, bad_rows == "skip")

    @post("/v1/streams/{name}/messages", openapi_extra=_MESSAGE_BODY)
    async def messages(name: str, request: Request) -> Response:
        """A report of a survey, as `discreet.js` makes it. Without a token a message has one report."""
        caller = access.caller(request)
        stream = access.stream(caller, "ingest", name)
        if not isinstance(stream, SurveyStream):
            raise ProblemError(409, "This stream takes events, not reports", "Send them to /events.")
        stream.admit()
        with uploads.hold(caller, name) as held:
            body = await uploads.body(request, held, None if caller.token else 4096)
            try:
                opened, _ = await uploads.aside(caller, len(body) > ON_THE_LOOP, stream.protocol.open, body)
            except MessageError as error:
                raise ProblemError(422, "The report cannot be taken", reason_code=error.reason) from None
            if opened.seeded:
                raise ProblemError(
                    422, "The report cannot be taken", "It declares itself not private, because its randomness is not."
                )
            if opened.items > 1 and caller.token is None:
                raise ProblemError(
                    422, "The report cannot be taken", "A message without a token can hold only one report."
                )
            if opened.items > service.configuration.limits.body_rows:
                raise too_many_rows(service.configuration.limits.body_rows)
            stream.admit_reports(opened.items)
            access.events(caller, opened.items)
            taken = await uploads.take(stream, Arrival(opened.items, body, opened.items))
        return accepted(shapes.AcceptedModel(accepted=taken, repeated=opened.items - taken))

    @post("/api/event", openapi_extra=_PLAUSIBLE_BODY)
    async def tracker(request: Request) -> Response:
        """An event as Plausible's script sends it, for the streams that list its site."""
        caller = access.caller(request)
        with uploads.hold(caller, "") as held:
            body = await uploads.body(request, held, 64 * 2**10)
        address = request.client.host if request.client is not None else ""
        agent = request.headers.get("user-agent", "")
        site, fields = plausible_event(body, uploads.secret, address, agent)
        streams = [
            s
            for s in service.streams.values()
            if site in s.definition.sites and not s.ended and access.may(caller, "ingest", s)
        ]
        access.events(caller, 1)

        async def count(stream: LiveStream) -> None:
            try:
                stream.admit()
                rows = uploads.readers[stream.name].of_values(fields)
                data, _ = stream.prepared(rows.columns)
                await uploads.take(stream, Arrival(rows.counted, data, rows.taken))
            except ProblemError as problem:
                service.refused(stream.name, problem.reason)

        await asyncio.gather(*map(count, streams))
        # The same answer for a site that nobody counts, or not from this caller, or where a stream is full or the disk
        # is: it tells nothing of what exists, and nothing of what others sent.
        return accepted(shapes.AcceptedModel(accepted=1))

    @app.get("/v1/streams/{name}/round", response_model=shapes.RoundModel, responses=_ASKING, tags=["in"])
    async def round_of(name: str, request: Request) -> Response:
        """What a client of a survey has to know."""
        caller = access.caller(request)
        stream = service.streams.get(name)
        if stream is None or not access.free(stream, "ingest"):
            stream = access.stream(caller, "read", name)
        if not isinstance(stream, SurveyStream):
            raise ProblemError(404, "This stream has no round")
        return Response(json.dumps(stream.protocol.to_dict()).encode(), media_type="application/json")


# ---- out ------------------------------------------------------------------------------------------------------------


def _tag_headers(tag: str) -> dict[str, str]:
    return {"ETag": f'"{tag}"', "Cache-Control": "no-cache", "Vary": "Accept, Authorization"}


def _known(request: Request, tag: str) -> Response | None:
    """304 for anyone who has it."""
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    return Response(None, 304, _tag_headers(tag)) if f'"{tag}"' in known or "*" in known else None


def _tagged(request: Request, body: bytes, tag: str) -> Response:
    return _known(request, tag) or Response(body, 200, _tag_headers(tag), "application/json")


def _with_digest(value: shapes.StreamModel | shapes.StreamsModel) -> tuple[bytes, str]:
    body = value.to_json()
    return body, hashlib.sha256(body).hexdigest()[:32]


def _tick_at(stream: LiveStream, text: str, last: bool) -> int:
    """A tick by its number, or by a time: the first that begins then or later, the last that ends then or before."""
    if text.isascii() and text.isdigit() and len(text) < 12:
        return int(text)
    try:
        when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
    except ValueError:
        raise ProblemError(422, "from and to must be tick numbers, or times such as 2026-01-31T12:00:00Z") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.timezone.utc)
    time = min(when.timestamp(), stream.starts(stream.tick + 2))  # what is later is not out
    tick = stream.timetable.number(time)
    return tick - 1 if last else tick + (stream.starts(tick) < time)


def _format(request: Request, asked: str | None) -> str:
    if asked is not None:
        return asked
    accepts = request.headers.get("accept", "")
    return "csv" if "text/csv" in accepts else "arrow" if ARROW in accepts else "json"


def _add_out(app: FastAPI, service: Service, access: Access, live: Live, archive: Archive) -> None:
    get = partial(app.get, responses=_ASKING, tags=["out"])
    other: _Answers = {**_ASKING, 200: {"content": {"text/csv": {}, ARROW: {}}}}

    def readable(request: Request, name: str) -> LiveStream:
        return access.stream(access.caller(request), "read", name)

    @get("/v1/streams", response_model=shapes.StreamsModel)
    async def streams(request: Request) -> Response:
        """The streams that you may read."""
        found = access.readable(access.caller(request))

        def made() -> tuple[bytes, str]:
            streams = [described(stream) for stream in found]
            return _with_digest(shapes.StreamsModel(title=service.configuration.title, streams=streams))

        return _tagged(request, *await archive.aside(made))

    @get("/v1/streams/{name}", response_model=shapes.StreamModel)
    async def stream(name: str, request: Request) -> Response:
        """A stream: definition, promise, budget, latest release."""
        of = readable(request, name)
        made = await archive.aside(lambda: _with_digest(described(of, whole=True)))
        return _tagged(request, *made)

    async def answered(
        request: Request, of: LiveStream, which: Which, kind: str, tag: str, following: int | None = None
    ) -> Response:
        """Releases from one tick to another, as they are read."""
        media = {"json": "application/json", "csv": "text/csv; charset=utf-8", "arrow": ARROW}[kind]
        headers = _tag_headers(tag)
        if kind != "json":
            headers["Content-Disposition"] = f'attachment; filename="{of.name}.{kind}"'
        if following is not None:
            headers["Link"] = f'<?{urlencode({**request.query_params, "from": following})}>; rel="next"'
        form = json_form(of.name, following) if kind == "json" else csv_form(of) if kind == "csv" else arrow_form(of)
        return StreamingResponse(archive.written(of.name, which, form), 200, headers, media)

    @get("/v1/streams/{name}/releases", response_model=shapes.ReleasesModel, responses=other)
    async def releases(
        name: str,
        request: Request,
        first: Annotated[str | None, Query(alias="from", description="A tick or a time; the last 1000 without")] = None,
        to: Annotated[str | None, Query(description="A tick or a time; the latest without")] = None,
        every: Annotated[int, Query(ge=1, le=2**24, description="Only ticks whose number is a multiple of this")] = 1,
        final: Annotated[bool, Query(description="Only the last of every day, of streams that begin anew")] = False,
        kind: _Format = None,
    ) -> Response:
        """What was published, tick by tick; at most 10,000 at once, or 32 MiB. `next` and Link say where to go on."""
        of = readable(request, name)
        end = min(of.tick, of.tick if to is None else _tick_at(of, to, True))
        ticks = of.span.ticks if final else 1  # of one of those that are asked for
        begin = max(1, end - _BY_DEFAULT * ticks + 1 if first is None else _tick_at(of, first, False))
        form = _format(request, kind)
        most = _AT_ONCE * every * ticks
        following = begin + most if end - begin + 1 > most else None
        end = min(end, begin + most - 1)
        room = service.configuration.limits.answer_bytes
        tag = f"{of.definition.digest[:16]}-{begin}-{end}-{every}-{room}-{form}{'-final' if final else ''}"
        tag += "" if following is None else "-more"
        if (known := _known(request, tag)) is not None:
            return known
        which = Which(begin, end, every, final)
        last = await archive.aside(service.store.last_within, name, which, room)
        if last < end:
            following = last + 1
        return await answered(request, of, replace(which, last=last), form, tag, following)

    @get("/v1/streams/{name}/releases/latest", response_model=shapes.ReleaseModel, responses=other)
    async def latest(name: str, request: Request, kind: _Format = None) -> Response:
        """What was published last."""
        of = readable(request, name)
        tick, form = of.tick, _format(request, kind)
        if not tick:
            raise ProblemError(404, "Nothing has been published yet")
        tag = f"{of.definition.digest[:16]}-{tick}-{form}"
        if (known := _known(request, tag)) is not None:
            return known
        if form != "json":
            return await answered(request, of, Which(tick, tick), form, tag)
        body = await archive.aside(service.store.release, name, tick)
        return _tagged(request, body or b"", tag)

    @get("/v1/streams/{name}/increases", response_model=shapes.IncreasesModel)
    async def risen(
        name: str,
        request: Request,
        over: Annotated[int, Query(ge=1, le=2**24, description="Over how many ticks")] = 1,
        first: Annotated[str | None, Query(alias="from", description="A tick or a time; the latest without")] = None,
        to: Annotated[str | None, Query(description="A tick or a time; the latest without")] = None,
        every: Annotated[int, Query(ge=1, le=2**24, description="Only ticks whose number is a multiple of this")] = 1,
    ) -> Response:
        """How much each tick rose over this many before it; at most 1,000 at once. Computed from releases: it is
        free."""
        of = readable(request, name)
        end = min(of.tick, of.tick if to is None else _tick_at(of, to, True))
        begin = max(1, end if first is None else _tick_at(of, first, False))
        begin += -begin % every
        following = begin + _BY_DEFAULT * every if begin + _BY_DEFAULT * every <= end else None
        ticks = range(begin, min(end, begin + (_BY_DEFAULT - 1) * every) + 1, every)
        tag = f"{of.definition.digest[:16]}-{over}-{begin}-{end}-{every}"
        if (known := _known(request, tag)) is not None:
            return known

        def made() -> bytes:
            found = list(increases(service.store, of, ticks, over))
            more = {} if following is None else {"next": following}
            return shapes.IncreasesModel(stream=name, over=over, increases=found, **more).to_json()

        return _tagged(request, await archive.aside(made), tag)

    @get(
        "/v1/streams/{name}/live",
        response_class=StreamingResponse,
        responses={**_ASKING, 200: {"content": {"text/event-stream": {}}, "description": "Events `release`"}},
    )
    async def watch(
        name: str,
        request: Request,
        last_event_id: Annotated[str | None, Header(description="The tick that was seen last")] = None,
    ) -> Response:
        """Releases as server-sent events: the latest, then each as it is published."""
        caller = access.caller(request)
        of = access.stream(caller, "read", name)
        after = None
        if last_event_id:
            if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 12):
                raise ProblemError(422, "Last-Event-ID must be the number of a tick")
            after = int(last_event_id)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        events = live.events(of, after, lambda: access.still_reads(caller, of))
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    @get("/metrics", response_class=PlainTextResponse, responses=_REFUSALS)
    async def prometheus(request: Request) -> Response:
        """Released values and public facts, for Prometheus; for admins also lag, spool and refusals, NOT private."""
        caller = access.caller(request)
        is_admin = caller.token is not None and caller.token.may("admin", None)
        status = service.status() if is_admin else None
        text = await archive.aside(metrics, service, access.readable(caller), status)
        return Response(text.encode(), media_type="text/plain; version=0.0.4; charset=utf-8")


# ---- operators and people -------------------------------------------------------------------------------------------


def _add_operators(app: FastAPI, service: Service, access: Access) -> None:
    @app.get("/v1/admin/status", response_model=shapes.StatusModel, responses=_REFUSALS, tags=["admin"])
    async def status(request: Request) -> Response:
        """True counts: lag, spool, what was taken and refused. For admins."""
        access.admin(access.caller(request))
        return Response(service.status().to_json(), 200, {"Cache-Control": "no-store"}, "application/json")

    @app.get("/healthz", response_model=shapes.HealthModel, tags=["admin"])
    async def healthz() -> Response:
        """It runs."""
        return Response(shapes.HealthModel(status="ok").to_json(), media_type="application/json")

    @app.get(
        "/readyz", response_model=shapes.HealthModel, tags=["admin"],
        responses={503: {"model": shapes.ProblemModel, "description": "Ticks that are due have not been "
        "published yet"}},
    )  # fmt: skip
    async def readyz() -> Response:
        """It runs, and what is due is out."""
        if not service.ready:
            raise ProblemError(503, "Ticks that are due have not been published yet", retry_after=5)
        return Response(shapes.HealthModel(status="ready").to_json(), media_type="application/json")


def _add_page(app: FastAPI) -> None:
    if PAGE.is_dir():
        app.mount("/static", StaticFiles(directory=PAGE), name="static")

    def page(name: str) -> Response:
        if not (PAGE / name).is_file():
            raise ProblemError(404, "This installation has no page")
        return FileResponse(PAGE / name, media_type="text/html", headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return page("index.html")

    @app.get("/streams/{name}", include_in_schema=False)
    async def stream_page(name: str) -> Response:
        return page("stream.html")  # the same for every name: it tells nothing of what exists

    @app.get("/docs", include_in_schema=False)
    async def reference() -> Response:
        return HTMLResponse(reference_page(app.openapi()))
