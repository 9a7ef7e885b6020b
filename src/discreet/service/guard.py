"""What stands before every route: headers that keep browsers careful, and errors that tell nothing."""

from __future__ import annotations

import contextlib
from logging import ERROR
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.service.journal import tell
from discreet.service.problems import ProblemError
from discreet.service.runtime import place_of

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_SECURE = (b"strict-transport-security", b"max-age=31536000")


def problem_response(problem: ProblemError) -> Response:
    """A refusal as it is sent."""
    return Response(problem.body(), problem.status, problem.headers, media_type="application/problem+json")


class Guard:
    """Outermost except for Starlette itself: nothing gets past it that was not meant to be seen."""

    def __init__(self, app: ASGIApp, tls: bool = False) -> None:
        self._app = app
        self._headers = [*_HEADERS, _SECURE] if tls else _HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def careful(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", []), *self._headers]
            try:
                await send(message)
            except RuntimeError:  # uvloop: the client left, and uvicorn has not heard of it yet
                raise ClientDisconnect from None

        try:
            await self._app(scope, receive, careful)
        except ProblemError as problem:
            response: Any = problem_response(problem)
        except ClientDisconnect:
            return
        except Exception as error:
            # The message of an error might hold what somebody sent.
            tell(ERROR, "error", "internal error: {trouble}", trouble=place_of(error))
            response = problem_response(ProblemError(500, "Internal error"))
        else:
            return
        if not begun:
            with contextlib.suppress(ClientDisconnect):
                await response(scope, receive, careful)
