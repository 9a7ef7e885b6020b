"""The aggregator of a round: it checks what it hears, and estimates. It is trusted with nothing."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import CorruptStateError, MessageError
from discreet.multiparty._base import MAX_NUMBER, Heard, Protocol
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.messages import pack_parts, read_varint, unpack_parts, varint
from discreet.privacy import Guarantee
from discreet.privacy.checks import whole_number
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Aggregator", "Receipt", "Rejection", "receive_all"]

_STATE_FAMILY = 200


@dataclass(frozen=True)
class Rejection:
    """A message that was not taken: which of those given, and why."""

    index: int
    reason: str
    text: str


@dataclass(frozen=True)
class Receipt:
    """How many messages were taken, and which were not."""

    accepted: int
    rejected: tuple[Rejection, ...]


def receive_all(receive: Callable[[bytes], bool | None], messages: Iterable[bytes]) -> Receipt:
    """What became of many messages; one that is False was repeated and is neither accepted nor rejected."""
    accepted, rejected = 0, []
    for index, message in enumerate(messages):
        try:
            accepted += receive(message) is not False
        except MessageError as error:
            rejected.append(Rejection(index, error.reason, str(error)))
    return Receipt(accepted, tuple(rejected))


class _Runs:
    """Numbers heard, as sorted runs that do not touch."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.count = 0

    def overlaps(self, first: int, count: int) -> bool:
        at = bisect_right(self.starts, first + count - 1)
        return at > 0 and self.ends[at - 1] > first

    def add(self, first: int, count: int) -> None:
        at = bisect_right(self.starts, first)
        self.count += count
        before = at > 0 and self.ends[at - 1] == first
        after = at < len(self.starts) and self.starts[at] == first + count
        if before and after:
            self.ends[at - 1] = self.ends.pop(at)
            del self.starts[at]
        elif before:
            self.ends[at - 1] = first + count
        elif after:
            self.starts[at] = first
        else:
            self.starts.insert(at, first)
            self.ends.insert(at, first + count)


class Aggregator:
    """Hears messages, refuses those it cannot verify, and estimates. Trusted with nothing.

    Attributes:
        max_items: The most items (of a local protocol: reports) that one message may speak of, whatever the protocol
            allows; None for no further limit. It bounds what a liar can do with one message.
    """

    def __init__(self, protocol: Protocol, max_items: int | None = None) -> None:
        self.protocol = protocol
        self.max_items = None if max_items is None else whole_number("max_items", max_items, 1, MAX_NUMBER)
        self._heard: list[tuple[Any, Any]] = []
        self._runs = _Runs()
        self._bytes = 0
        self._total = 0
        self._seeded = False
        self._lock = threading.Lock()

    # ---- hearing ---------------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> None:
        """Take a message; `MessageError` says why not, and then nothing has changed."""
        opened = self.protocol._unpack(message)
        if self.max_items is not None and opened.items > self.max_items:
            raise MessageError(f"message speaks of more items than this aggregator takes, {self.max_items}", "range")
        content, covered = self.protocol._checked(opened)
        with self._lock:
            if any(self._runs.overlaps(first, count) for first, count in covered):
                raise MessageError("this party has been heard in this round already", "duplicate")
            for first, count in covered:
                self._runs.add(first, count)
            self._heard.append((opened, content))
            self._bytes += len(message)
            self._total += opened.items
            self._seeded |= opened.seeded

    def receive_many(self, messages: Iterable[bytes]) -> Receipt:
        """Take what can be taken of many messages; the others are listed with their reasons."""
        return receive_all(self.receive, messages)

    @property
    def parties(self) -> int:
        """How many parties were heard; for local protocols, how many reports."""
        return self._runs.count

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """The numbers that were heard, as runs (first, count) in order: whoever is missing kept silent."""
        with self._lock:
            return [(start, end - start) for start, end in zip(self._runs.starts, self._runs.ends, strict=True)]

    def has(self, number: int) -> bool:
        """Whether this party was heard."""
        with self._lock:
            return self._runs.overlaps(whole_number("number", number, 0, MAX_NUMBER), 1)

    @property
    def total(self) -> int:
        """How many items the parties heard have together, as they say."""
        return self._total

    @property
    def bytes_received(self) -> int:
        """The bytes of all messages that were taken."""
        return self._bytes

    @property
    def guarantee(self) -> Guarantee:
        """What every party was promised."""
        return self.protocol._guarantee(self._seeded)

    def estimate(self, items: Any) -> Estimates:
        """How often each item occurs with all parties heard, in the order given. Costs no privacy, however often."""
        words = self.protocol.domain.words(items)
        with self._lock:
            heard = self._consolidated()
        values, variances = self.protocol._estimates(heard, words)
        return Estimates(values, variances, self.guarantee, self.protocol._shortfall(heard))

    def _consolidated(self) -> Heard:
        self._heard = list(self.protocol._consolidated(self._heard))
        return list(self._heard)

    # ---- states ----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The state: all that was heard. It is as private as the messages, which anyone may see."""
        p = self.protocol
        with self._lock:
            messages = [p._pack(message) for message, _ in self._consolidated()]
            return seal_state(_STATE_FAMILY, 1, p._identity + varint(self._bytes) + pack_parts(messages))

    @classmethod
    def _restored(cls, protocol: Protocol, data: bytes, max_items: int | None) -> Self:
        _, payload = open_state(data, _STATE_FAMILY, 1)
        aggregator, whose = cls(protocol), protocol._identity
        if payload[: len(whose)] != whose:
            raise CorruptStateError("state belongs to another round, or to a protocol with other parameters")
        try:
            size, at = read_varint(payload, len(whose))
            for message in unpack_parts(payload[at:], len(payload)):
                aggregator.receive(message)
        except MessageError as error:
            raise CorruptStateError(f"state does not belong to this protocol and round: {error}") from None
        aggregator._bytes = size
        aggregator.max_items = cls(protocol, max_items).max_items  # only now: reports that were heard are kept together
        return aggregator

    def __repr__(self) -> str:
        return f"Aggregator({type(self.protocol).__name__}, {self.parties} parties, {self.bytes_received} bytes)"
