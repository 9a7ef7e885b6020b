"""The aggregator of a round: it checks what it hears, and estimates. It is trusted with nothing."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.errors import CorruptStateError, DataError, IncompatibleSummaryError, MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import MAX_NUMBER, Heard, Protocol
from discreet.multiparty.estimates import ConsistentEstimates, Estimates, Liars
from discreet.multiparty.heard_numbers import HeardNumbers
from discreet.multiparty.messages import Message, pack_parts, read_varint, unpack_parts, varint
from discreet.privacy import Guarantee
from discreet.privacy.checks import probability, whole_number
from discreet.releases.simplex import on_simplex, within_simplex
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Aggregator", "Limits", "Receipt", "Rejection", "liars_among", "receive_all"]

_STATE_FAMILY = 200
_NEWEST_STATE = 3
MOST_LISTED = 2**20
"""Items of a universe that is gone through as a whole."""


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


def liars_among(share: float, heard: int) -> int:
    """How many parties a share of them is, rounded up."""
    return min(heard, math.ceil(round(probability("share", share) * heard, 6)))


@dataclass(frozen=True)
class Limits:
    """What an aggregator takes and shows.

    Attributes:
        max_items: The most items that one message may speak of; None for what the protocol allows.
        max_reports: Of local protocols: the most reports of one message; None for what the protocol allows.
        minimum_reports: Nothing is shown before so many parties were heard, of local protocols reports.
    """

    max_items: int | None = None
    max_reports: int | None = 1
    minimum_reports: int = 0

    def check(self, protocol: Protocol) -> None:
        """Refuse what is no limit, or not one for this protocol."""
        for name in ("max_items", "max_reports"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1, MAX_NUMBER)
        whole_number("minimum_reports", self.minimum_reports, 0, MAX_NUMBER)
        if protocol.local and self.max_items is not None:
            raise ParameterError("max_items is for messages about many items; a local protocol has max_reports")
        if not protocol.local and self.max_reports not in (None, 1):
            raise ParameterError("max_reports is for local protocols; a message about many items has max_items")

    def check_message(self, protocol: Protocol, items: int) -> None:
        """Refuse a message that speaks of more than it may."""
        most, what = (self.max_reports, "reports") if protocol.local else (self.max_items, "items")
        if most is not None and items > most:
            raise MessageError(
                f"message has more {what} than this aggregator takes in one: max_{what} is {most}", "range"
            )


class Aggregator:
    """Hears messages, refuses those it cannot verify, and estimates. Trusted with nothing.

    Attributes:
        limits: What one message may do, and when something is shown.
    """

    def __init__(self, protocol: Protocol, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        limits.check(protocol)
        self.protocol = protocol
        self.limits = limits
        self._heard: list[tuple[Any, Any]] = []
        self._known = HeardNumbers()
        self._bytes = 0
        self._total = 0
        self._seeded = False
        self._lock = threading.Lock()

    # ---- hearing ---------------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> None:
        """Take a message; `MessageError` says why not, and then nothing has changed."""
        opened = self.protocol._unpack(message)
        self.limits.check_message(self.protocol, opened.items)
        content, covered = self.protocol._checked(opened)
        with self._lock:
            if any(self._known.overlaps(first, count) for first, count in covered):
                raise MessageError("this party has been heard in this round already", "duplicate")
            for first, count in covered:
                self._known.add(first, count)
            self._keep(opened, content)
            self._bytes += len(message)

    def _keep(self, message: Message, content: Any) -> None:
        """What was heard, and is new."""
        self._heard.append((message, content))
        self._total += message.items
        self._seeded |= message.seeded

    def merge(self, other: Aggregator) -> int:
        """Take what another aggregator of the same round heard; returns how many of its parties were heard here, too.

        Those count once. (Of local protocols: reports.)
        """
        self._check_mergeable(other)
        with other._lock:
            heard, size = other._consolidated(), other._bytes
        with self._lock:
            self._bytes += size
            return sum(self._merge(message, content) for message, content in heard)

    def _check_mergeable(self, other: Aggregator) -> None:
        if other is self or other.protocol._identity != self.protocol._identity:
            raise IncompatibleSummaryError("only another aggregator of the same round can be merged")

    def _merge(self, message: Message, content: Any) -> int:
        """Take a message unless its numbers were heard; how many were."""
        covered = self.protocol._covered(message)
        if any(self._known.overlaps(first, count) for first, count in covered):
            return sum(count for _, count in covered)
        for first, count in covered:
            self._known.add(first, count)
        self._keep(message, content)
        return 0

    def receive_many(self, messages: Iterable[bytes]) -> Receipt:
        """Take what can be taken of many messages; the others are listed with their reasons."""
        return receive_all(self.receive, messages)

    @property
    def parties(self) -> int:
        """How many parties were heard; for local protocols, how many reports."""
        return self._known.count

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """The numbers that were heard, as runs (first, count) in order: whoever is missing kept silent."""
        with self._lock:
            return self._known.runs()

    def has(self, number: int) -> bool:
        """Whether this party was heard."""
        with self._lock:
            return self._known.overlaps(whole_number("number", number, 0, MAX_NUMBER), 1)

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

    @property
    def shown(self) -> int:
        """How many parties (of local protocols: reports) the estimates are from."""
        return self.parties

    def estimate(self, items: Any, *, consistent: bool = False) -> Estimates:
        """How often each item occurs with all parties heard, in the order given. Costs no privacy, however often.

        Args:
            items: A column, or an iterable of items.
            consistent: Counts that could be: none is negative, and all of the universe together have the total. Where
                the universe has more than 2^20 items, those asked for have the total at most.
        """
        words = self.protocol.domain.words(items)
        heard = self._to_show()
        if consistent:
            return self._consistent(heard, words)
        values, variances = self.protocol._estimates(heard, words)
        return Estimates(values, variances, self.guarantee, *self.protocol._bias(heard))

    def _consistent(self, heard: Heard, words: Words) -> ConsistentEstimates:
        """Norm-Sub of Wang et al. (NDSS 2020): what is nearest on the simplex."""
        self._check_unbiased()
        total, size = float(sum(message.items for message, _ in heard)), self.protocol.domain.size
        if size is not None and size <= MOST_LISTED:
            asked, at = np.arange(size, dtype=np.uint64), words.astype(np.int64)
            found, variances = self.protocol._estimates(heard, asked)
            values = on_simplex(found, total)
        else:
            asked, at = np.unique(words, return_inverse=True)
            found, variances = self.protocol._estimates(heard, asked)
            values = within_simplex(found, total)
        return ConsistentEstimates(values[at], variances[at], self.guarantee, unbiased=found[at], total=total)

    def _check_unbiased(self) -> None:
        if not self.protocol.unbiased:
            raise ParameterError(
                f"{type(self.protocol).__name__} leaves out a part of every count: make no whole of it"
            )

    def liars(self, items: Any, share: float = 0.01) -> Liars:
        """How far each estimate would move if so many of the parties (of local protocols: reports) had not been heard.

        The most that any of so many add and take away, given what was heard: whoever lies can do no more.
        """
        words = self.protocol.domain.words(items)
        heard = self._to_show()
        count = liars_among(share, self.shown)
        too_high, too_low = self.protocol._influences(heard, words, count)
        return Liars(share, count, too_high, too_low)

    def _to_show(self) -> Heard:
        """What estimates are made from, if that may be shown."""
        with self._lock:
            if self.shown < self.limits.minimum_reports:
                raise DataError(f"nothing is shown before {self.limits.minimum_reports} were heard (minimum_reports)")
            return self._consolidated()

    def _consolidated(self) -> Heard:
        self._heard = list(self.protocol._consolidated(self._heard))
        return list(self._heard)

    def _messages(self, heard: Heard) -> list[Message]:
        """Messages that say the same."""
        return [message for message, _ in heard]

    # ---- states ----------------------------------------------------------------------------------------------------

    _state_version: ClassVar[int] = 1

    def to_bytes(self) -> bytes:
        """The state: all that was heard, and nothing of the order. It is as private as the messages are."""
        with self._lock:
            content = self.protocol._identity + varint(self._bytes) + self._content()
            return seal_state(_STATE_FAMILY, self._state_version, content)

    @classmethod
    def _restored(cls, protocol: Protocol, data: bytes, limits: Limits) -> Self:
        version, payload = open_state(data, _STATE_FAMILY, _NEWEST_STATE, oldest=1)
        aggregator, whose = cls(protocol, limits), protocol._identity
        if payload[: len(whose)] != whose:
            raise CorruptStateError("state belongs to another round, or to a protocol with other parameters")
        if version != cls._state_version:
            raise CorruptStateError(f"state has version {version}; version {cls._state_version} can be read")
        try:
            aggregator._bytes, at = read_varint(payload, len(whose))
            aggregator._refill(payload[at:])
        except MessageError as error:
            raise CorruptStateError(f"state does not belong to this protocol and round: {error}") from None
        return aggregator

    def _content(self) -> bytes:
        """What a state holds."""
        return self._packed(self._consolidated())

    def _refill(self, content: bytes) -> None:
        """The inverse of `_content`, of an aggregator that heard nothing."""
        for message, said in self._opened(content):
            if self._merge(message, said):
                raise MessageError("a number is in it twice", "duplicate")

    def _packed(self, heard: Heard) -> bytes:
        return pack_parts(self.protocol._pack(message) for message in self._messages(heard))

    def _opened(self, data: bytes) -> Heard:
        messages = (self.protocol._unpack(part) for part in unpack_parts(data, len(data)))
        return [(message, self.protocol._checked(message)[0]) for message in messages]

    def __repr__(self) -> str:
        return f"Aggregator({type(self.protocol).__name__}, {self.parties} parties, {self.bytes_received} bytes)"
