"""Who asks, whether they may, and how often."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.requests import Request

from discreet.service.problems import ProblemError, too_busy
from discreet.service.runtime import Service
from discreet.service.streams import LiveStream
from discreet.service.tokens import Deed, Token

_MOST_CALLERS = 100_000


@dataclass(frozen=True)
class Caller:
    """A token, or the address of a caller without one."""

    name: str
    token: Token | None


class Access:
    """Tokens, scopes and rates of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        limits = service.configuration.limits
        self._requests = _Rates(limits.requests_per_second, 2.0)
        self._events = _Rates(limits.events_per_second, 10.0)

    def caller(self, request: Request) -> Caller:
        """Who asks; 401 for an invalid token."""
        if self._service.requests is not None:
            self._service.requests += 1
        given = request.headers.get("authorization")
        token = None
        if given is not None:
            scheme, _, text = given.partition(" ")
            token = self._service.tokens.find(text.strip()) if scheme.lower() == "bearer" else None
        address = request.client.host if request.client is not None else ""
        caller = Caller(f"a {address}" if token is None else f"t {token.number}", token)
        self._requests.take(caller.name, 1)  # also of anyone who tries tokens
        if given is not None and token is None:
            raise _unknown()
        return caller

    def events(self, caller: Caller, number: int) -> None:
        """This many events more; 429 if that is too fast."""
        self._events.take(caller.name, number)

    def forget(self) -> None:
        """Those who may do again what they may at first: nothing needs to be known of them."""
        self._requests.forget()
        self._events.forget()

    def stream(self, caller: Caller, deed: Deed, name: str) -> LiveStream:
        """The stream, if the caller may. Anyone who may not learns nothing about what exists."""
        stream = self._service.streams.get(name)
        if stream is not None and self.free(stream, deed):
            return stream
        if caller.token is None:
            raise _unknown()
        if not caller.token.may(deed, name):
            raise ProblemError(403, "Not allowed", "This token does not allow it.")
        if stream is None:
            raise ProblemError(404, "No such stream")
        return stream

    @staticmethod
    def free(stream: LiveStream, deed: Deed) -> bool:
        """Whether that needs no token."""
        return stream.definition.public if deed == "read" else deed == "ingest" and stream.definition.open

    def still_reads(self, caller: Caller, stream: LiveStream) -> bool:
        """Whether somebody who was let in would be let in again: tokens can be removed."""
        return self.free(stream, "read") or (caller.token is not None and self._service.tokens.has(caller.token))

    def may(self, caller: Caller, deed: Deed, stream: LiveStream) -> bool:
        """Whether the caller may."""
        return self.free(stream, deed) or (caller.token is not None and caller.token.may(deed, stream.name))

    def readable(self, caller: Caller) -> list[LiveStream]:
        """The streams that the caller may read."""
        return [stream for stream in self._service.streams.values() if self.may(caller, "read", stream)]

    def admin(self, caller: Caller) -> None:
        """401 or 403 for everybody else."""
        if caller.token is None:
            raise _unknown()
        if not caller.token.may("admin", None):
            raise ProblemError(403, "Not allowed", "This token does not allow it.")


def _unknown() -> ProblemError:
    return ProblemError(401, "A token is needed", "Send Authorization: Bearer and a token that is valid here.")


class _Rates:
    """This many a second for each caller, and a few seconds' worth at once. A single large request is let through."""

    def __init__(self, rate: float, burst_seconds: float) -> None:
        self._rate = rate
        self._most = max(rate * burst_seconds, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, number: int) -> None:
        now = time.monotonic()
        left, then = self._left.pop(name, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        enough = left > 0
        self._left[name] = (left - number if enough else left, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        if not enough:
            raise too_busy(max(1, int(-left / self._rate) + 1))

    def forget(self) -> None:
        """Callers who have all of their rate again: seconds after their last request, or once what they sent at once
        is made up for. To forget them changes no answer."""
        now = time.monotonic()
        whole = [name for name, (left, then) in self._left.items() if left + (now - then) * self._rate >= self._most]
        for name in whole:
            del self._left[name]
