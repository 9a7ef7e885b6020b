"""Who may do what: tokens of 256 random bits, kept as digests."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Literal

from discreet.errors import ParameterError
from discreet.service.store import Store

SCOPES = ("ingest", "read", "admin")
_PREFIX = "discreet_"
_LOOK_SECONDS = 1.0

Deed = Literal["ingest", "read", "admin"]


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
        self._refresh()
        digest, found = _digest(text), None
        for known, token in self._known:
            if hmac.compare_digest(known, digest):
                found = token
        return found

    def has(self, token: Token) -> bool:
        """Whether it was not removed."""
        self._refresh()
        return any(known == token for _, known in self._known)

    def look(self) -> None:
        """From time to time, whether anybody asks or not: when this was done last tells nothing of requests then."""
        self._refresh()

    def look_again(self) -> None:
        """Do not wait for the second."""
        with self._looking:  # not while somebody looks, who may have seen the tokens of before
            self._version = None

    def _refresh(self) -> None:
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
