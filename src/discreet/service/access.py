"""Who asks, whether they may, how often, and how much of the memory they may hold that requests wait in.

Tokens have 256 random bits and are kept as digests.

What a request holds counts for its caller, for its stream, and for all callers without a token together. Each of these
may hold at most as much as is free then; a caller without a token half of that. So one of them has at most half of the
room, two have a third each, and however many there are, something is left for anyone who comes next. Those who send
without a token are one party, however many addresses they have, and take nothing of a stream's share from those with
one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import Counter, OrderedDict
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.service.problems import ProblemError, too_busy
from discreet.service.store import Store

if TYPE_CHECKING:
    from starlette.requests import Request

    from discreet.service.runtime import Service
    from discreet.service.streams import LiveStream

SCOPES = ("ingest", "read", "admin")
_PREFIX = "discreet_"
_LOOK_SECONDS = 1.0

Deed = Literal["ingest", "read", "admin"]
Party = tuple[str, ...]

_MOST_CALLERS = 100_000


@dataclass(frozen=True)
class Token:
    """What its bearer may do; of one stream, or of all."""

    number: int
    scope: str
    stream: str | None

    def may(self, deed: Deed, stream: str | None) -> bool:
        """Whether it is for this. An admin may also read."""
        if deed == "admin":
            return self.scope == "admin"
        return (self.scope == deed or (self.scope == "admin" and deed == "read")) and self.stream in (None, stream)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def make_token(store: Store, scope: str, stream: str | None, note: str | None = None) -> tuple[int, str]:
    """A new token and its number. The token is nowhere but in the answer."""
    if scope not in SCOPES:
        raise ParameterError(f"scope must be one of {', '.join(SCOPES)}, not {scope!r}")
    if scope == "admin" and stream is not None:
        raise ParameterError("an admin token covers the whole service; leave the stream out")
    text = _PREFIX + secrets.token_urlsafe(32)
    return store.add_token(_digest(text), scope, stream, time.time(), note), text


class Tokens:
    """The tokens of a running service; new and removed ones are known within a second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked = -1.0
        self._version: int | None = None
        self._known: list[tuple[bytes, Token]] = []
        self._looking = threading.Lock()

    def find(self, text: str) -> Token | None:
        """The token, if it exists. Every digest is compared, each in constant time."""
        self.look()
        digest, found = _digest(text), None
        for known, token in self._known:
            if hmac.compare_digest(known, digest):
                found = token
        return found

    def has(self, token: Token) -> bool:
        """Whether it was not removed."""
        self.look()
        return any(known == token for _, known in self._known)

    def look_again(self) -> None:
        """Do not wait for the second."""
        with self._looking:  # not while somebody looks, who may have seen the tokens of before
            self._version = None

    def look(self) -> None:
        """Also from time to time, whether anybody asks or not: when it was done last tells nothing of requests then."""
        with self._looking:
            now = time.monotonic()
            if self._version is not None and now - self._looked < _LOOK_SECONDS:
                return
            self._looked = now
            version = self._store.data_version
            if version != self._version:
                rows = self._store.tokens()
                self._known = [(digest, Token(number, scope, stream)) for number, digest, scope, stream, _, _ in rows]
                self._version = version


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
        if stream is None or not self.free(stream, deed):
            _check(caller, deed, name)
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
        _check(caller, "admin", None)


def _check(caller: Caller, deed: Deed, stream: str | None) -> None:
    """401 or 403 for a caller whose token does not allow it."""
    if caller.token is None:
        raise _unknown()
    if not caller.token.may(deed, stream):
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


class Shares:
    """A number of bytes that requests share."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._held: Counter[Party] = Counter()
        self._lock = threading.Lock()
        self.used = 0

    def hold(self, caller: str, stream: str, known: bool) -> Holding:
        """Nothing yet, for a request of this caller to this stream; `known` callers have a token."""
        if known:
            return Holding(self, {("caller", caller): 1, ("stream", stream): 1})
        return Holding(self, {("caller", caller): 2, ("stream", stream, "strangers"): 1, ("strangers",): 1})

    def _change(self, parties: dict[Party, int], size: int, ask: bool) -> bool:
        with self._lock:
            free = self._total - self.used - size
            if ask and any(weight * (self._held[party] + size) > free for party, weight in parties.items()):
                return False
            self.used += size
            for party in parties:
                self._held[party] += size
                if not self._held[party]:
                    del self._held[party]
            return True


class Holding:
    """What one request holds; given back when it is left."""

    def __init__(self, shares: Shares, parties: dict[Party, int]) -> None:
        self._shares, self._parties = shares, parties
        self.size = 0

    def add(self, size: int) -> None:
        """Hold more; 429 if that is more than the share."""
        if not self._shares._change(self._parties, size, True):
            raise too_busy()
        self.size += size

    def become(self, size: int) -> None:
        """The same request takes another size now, and is not refused for that."""
        self._shares._change(self._parties, size - self.size, False)
        self.size = size

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.become(0)
