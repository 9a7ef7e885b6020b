"""What every aggregator does: it checks what it hears, keeps what is new, and estimates. It is trusted with nothing.

`Receiver` is the contract of rounds and of streams; `Aggregator` hears parties that speak once.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet._data_class import dataclass
from discreet.errors import CorruptStateError, DataError, IncompatibleSummaryError, MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty.estimates import ConsistentEstimates, Estimates, Liars
from discreet.multiparty.wire import MAX_NUMBER, Heard, Message, pack_parts, read_varint, unpack_parts, varint
from discreet.privacy import Guarantee
from discreet.privacy.checks import numbered, probability, whole_number, whole_or_none
from discreet.releases.simplex import on_simplex, within_simplex
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

    from discreet.multiparty._base import Protocol, Round

_NEWEST_STATE = 3
MOST_LISTED = 2**20
"""Items of a universe that is gone through as a whole."""


_LOAD = 1024


class HeardNumbers:
    """Sets of numbers below 2^63 as sorted runs, in pieces of a few thousand: 16 bytes a run, and nothing of the order
    in which they came."""

    def __init__(self) -> None:
        self.count = 0
        self._firsts: list[int] = []
        self._starts: list[array[int]] = []
        self._ends: list[array[int]] = []

    def overlaps(self, first: int, count: int) -> bool:
        """Whether any of these numbers was heard."""
        last = first + count - 1
        piece = bisect_right(self._firsts, last) - 1
        if piece < 0:
            return False
        return self._ends[piece][bisect_right(self._starts[piece], last) - 1] > first

    def add(self, first: int, count: int) -> None:
        """Numbers that were not heard yet."""
        self.count += count
        piece = max(bisect_right(self._firsts, first) - 1, 0)
        if not self._firsts:
            self._insert_piece(0, array("Q", [first]), array("Q", [first + count]))
            return
        starts, ends = self._starts[piece], self._ends[piece]
        at = bisect_right(starts, first)
        before = at > 0 and ends[at - 1] == first
        after = at < len(starts) and starts[at] == first + count
        if before and after:
            ends[at - 1] = ends.pop(at)
            del starts[at]
        elif before:
            ends[at - 1] = first + count
        elif after:
            starts[at] = first
        else:
            starts.insert(at, first)
            ends.insert(at, first + count)
        self._firsts[piece] = starts[0]
        if len(starts) > 2 * _LOAD:
            self._insert_piece(piece + 1, starts[_LOAD:], ends[_LOAD:])
            del starts[_LOAD:], ends[_LOAD:]

    def _insert_piece(self, place: int, starts: array[int], ends: array[int]) -> None:
        self._firsts.insert(place, starts[0])
        self._starts.insert(place, starts)
        self._ends.insert(place, ends)

    def runs(self) -> list[tuple[int, int]]:
        """(first, count), in order; no two touch."""
        found: list[tuple[int, int]] = []
        for starts, ends in zip(self._starts, self._ends, strict=True):
            for start, end in zip(starts, ends, strict=True):
                if found and sum(found[-1]) == start:
                    found[-1] = found[-1][0], end - found[-1][0]
                else:
                    found.append((start, end - start))
        return found


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


def liars_among(share: float, heard: int) -> int:
    """How many parties a share of them is, rounded up."""
    return min(heard, math.ceil(round(probability("share", share) * heard, 6)))


@dataclass(frozen=True)
class Limits:
    """What an aggregator takes and shows.

    Attributes:
        max_items: The most items that one message may speak of; None for what the protocol allows.
        max_reports: Of local protocols: the most reports of one message; None for what the protocol allows.
        minimum_reports: Nothing is shown before this many parties were heard, of local protocols reports.
    """

    max_items: int | None = None
    max_reports: int | None = 1
    minimum_reports: int = 0

    def check(self, protocol: Round) -> None:
        """Refuse what is no limit, or not one for this protocol."""
        for name in ("max_items", "max_reports"):
            whole_or_none(name, getattr(self, name), 1, MAX_NUMBER)
        whole_number("minimum_reports", self.minimum_reports, 0, MAX_NUMBER)
        if protocol.local and self.max_items is not None:
            raise ParameterError(
                "max_items works with messages about many items; for a local protocol give max_reports"
            )
        if not protocol.local and self.max_reports not in (None, 1):
            raise ParameterError("max_reports works with local protocols; for messages about many items give max_items")


class Receiver(ABC):
    """Hears messages, refuses those it cannot verify, and estimates. Trusted with nothing.

    Rounds and streams answer `receive` in one way. True: the message was taken. False: it repeats a packet that is
    kept, or comes too late to matter. `MessageError`: it is refused, and `reason` says why. Only True changes anything.
    Of two messages that speak for one number, or for one step of a party, the first counts. A round keeps what messages
    say and not their bytes, so the second is refused there as a "duplicate", also if it is the same.
    """

    _state_family: ClassVar[int]
    _state_version: ClassVar[int] = 1

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._bytes = 0
        self._seeded = False
        self._lock = threading.Lock()

    # ---- hearing ---------------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> bool:
        """Take a message; False for a packet that is repeated or late. `MessageError` says why it is refused."""
        opened, said = self._open(message)
        with self._lock:
            taken = self._take(opened, said, message)
            self._bytes += len(message) if taken else 0
        return taken

    def receive_many(self, messages: Iterable[bytes]) -> Receipt:
        """Take what can be taken of many messages; those that are refused are listed with their reasons."""
        accepted, rejected = 0, []
        for index, message in enumerate(messages):
            try:
                accepted += self.receive(message)
            except MessageError as error:
                rejected.append(Rejection(index, error.reason, str(error)))
        return Receipt(accepted, tuple(rejected))

    def _open(self, message: bytes) -> tuple[Message, Any]:
        """A message and what it says, checked by itself; `MessageError` if no honest party sends it."""
        opened: tuple[Message, Any] = self.protocol.open(message)
        return opened

    @abstractmethod
    def _take(self, message: Message, said: Any, data: bytes) -> bool:
        """Keep it if it is new: False if it repeats what is kept, `MessageError` if it contradicts it."""

    @property
    @abstractmethod
    def parties(self) -> int:
        """How many parties were heard; for local protocols, how many reports."""

    @property
    def bytes_received(self) -> int:
        """The bytes of all messages that were taken."""
        return self._bytes

    @property
    def guarantee(self) -> Guarantee:
        """What every party was promised."""
        return self.protocol._guarantee(self._seeded)

    # ---- answering -------------------------------------------------------------------------------------------------

    @abstractmethod
    def estimate(self, items: Any) -> Estimates:
        """How often each item occurs, in the order given. Costs no privacy, however often."""

    @abstractmethod
    def liars(self, items: Any, share: float = 0.01) -> Liars:
        """How far each estimate would move if this many of the parties had not been heard."""

    # ---- states ----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The state: all that was heard and still matters. It is as private as the messages are."""
        with self._lock:
            return seal_state(self._state_family, self._state_version, self._content())

    @classmethod
    def _restored(cls, protocol: Protocol, data: bytes, *limits: Any) -> Self:
        version, payload = open_state(data, cls._state_family, _NEWEST_STATE, oldest=1)
        aggregator = cls(protocol, *limits)
        try:
            aggregator._refill(payload, version)
        except (KeyError, TypeError, ValueError) as error:
            why = str(error) if isinstance(error, MessageError) else type(error).__name__
            raise CorruptStateError(f"state does not belong to this protocol and round: {why}") from None
        return aggregator

    def _check_version(self, version: int) -> None:
        if version != self._state_version:
            raise CorruptStateError(f"state has version {version}; version {self._state_version} can be read")

    @abstractmethod
    def _content(self) -> bytes:
        """What a state holds."""

    @abstractmethod
    def _refill(self, payload: bytes, version: int) -> None:
        """The inverse of `_content`, of an aggregator that heard nothing."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.protocol).__name__}, {self.parties} parties, {self._bytes} bytes)"


class Aggregator(Receiver):
    """Hears parties that speak once, and reports that are numbered.

    Attributes:
        limits: What one message may do, and when something is shown.
    """

    protocol: Round
    _state_family = 200

    def __init__(self, protocol: Round, limits: Limits) -> None:
        limits.check(protocol)
        super().__init__(protocol)
        self.limits = limits
        self._heard: list[tuple[Any, Any]] = []
        self._known = HeardNumbers()
        self._total = 0

    # ---- hearing ---------------------------------------------------------------------------------------------------

    def _open(self, message: bytes) -> tuple[Message, Any]:
        opened = self.protocol._unpack(message)
        what = "reports" if self.protocol.local else "items"
        most = getattr(self.limits, f"max_{what}")
        if most is not None and opened.items > most:
            raise MessageError(f"message has more {what} than this aggregator accepts; max_{what} is {most}", "range")
        return opened, self.protocol._checked(opened)

    def _take(self, message: Message, said: Any, data: bytes) -> bool:
        if not self._note(self.protocol._covered(message)):
            raise MessageError("this party has already sent a message in this round", "duplicate")
        self._keep(message, said)
        return True

    def _note(self, runs: Sequence[tuple[int, int]]) -> bool:
        """Whether none of these numbers was heard; if so they are from now on."""
        if any(self._known.overlaps(first, count) for first, count in runs):
            return False
        for first, count in runs:
            self._known.add(first, count)
        return True

    def _keep(self, message: Message, said: Any) -> None:
        """What was heard, and is new."""
        self._heard.append((message, said))
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
            return sum(self._merge(message, said) for message, said in heard)

    def _check_mergeable(self, other: Aggregator) -> None:
        if other is self or other.protocol._identity != self.protocol._identity:
            raise IncompatibleSummaryError("only another aggregator of the same round can be merged")

    def _merge(self, message: Message, said: Any) -> int:
        """Take a message unless its numbers were heard; how many were."""
        covered = self.protocol._covered(message)
        if not self._note(covered):
            return sum(count for _, count in covered)
        self._keep(message, said)
        return 0

    @property
    def parties(self) -> int:
        """How many parties were heard; for local protocols, how many reports."""
        return self._known.count

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """The numbers that were heard, as runs (first, count) in order: anyone who is missing kept silent."""
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

    # ---- answering -------------------------------------------------------------------------------------------------

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
        words = self.protocol.universe.words(items)
        if not consistent:
            return self._counts(words)
        oracle = self.protocol._oracle
        if not oracle.unbiased:
            raise ParameterError(
                f"{type(oracle).__name__} leaves out a part of every count, so its estimates cannot be made "
                "consistent; leave consistent out"
            )
        return self._consistent(words)

    def _counts(self, words: Words) -> Estimates:
        heard = self._to_show()
        values, variances = self.protocol._estimates(heard, words)
        return Estimates(values, variances, self.guarantee, *self.protocol._bias(heard))

    def _consistent(self, words: Words) -> ConsistentEstimates:
        """Norm-Sub of Wang et al. (NDSS 2020): what is nearest on the simplex."""
        total, size = float(sum(message.items for message, _ in self._to_show())), self.protocol.universe.size
        listed = size is not None and size <= MOST_LISTED
        asked = self._every_word() if listed else np.unique(words)
        counts, at = self._counts(asked), np.searchsorted(asked, words)
        values = (on_simplex if listed else within_simplex)(counts.values, total)
        unbiased, variances = counts.values[at], counts.variances[at]
        return ConsistentEstimates(values[at], variances, counts.guarantee, unbiased=unbiased, total=total)

    def _every_word(self) -> Words:
        """All words of the universe, in order."""
        return np.arange(self.protocol.universe.size, dtype=np.uint64)

    def liars(self, items: Any, share: float = 0.01) -> Liars:
        """How far each estimate would move if this many of the parties (of local protocols: reports) had not been
        heard.

        The most that any of this many add and take away, given what was heard: anyone who lies can do no more.
        """
        words = self.protocol.universe.words(items)
        heard = self._to_show()
        count = liars_among(share, self.shown)
        too_high, too_low = self.protocol._estimates(heard, words, count)
        return Liars(share, count, too_high, too_low)

    def _to_show(self) -> Heard:
        """What estimates are made from, if that may be shown."""
        with self._lock:
            if self.shown < self.limits.minimum_reports:
                reports = numbered(self.limits.minimum_reports, "report")
                raise DataError(f"nothing is shown before {reports} have arrived (minimum_reports)")
            return self._consolidated()

    def _consolidated(self) -> Heard:
        return list(self._heard)

    def _messages(self, heard: Heard) -> list[Message]:
        """Messages that say the same."""
        return [message for message, _ in heard]

    # ---- states ----------------------------------------------------------------------------------------------------

    def _content(self) -> bytes:
        return self.protocol._identity + varint(self._bytes) + self._kept()

    def _refill(self, payload: bytes, version: int) -> None:
        whose = self.protocol._identity
        if payload[: len(whose)] != whose:
            raise CorruptStateError("state belongs to another round, or to a protocol with other parameters")
        self._check_version(version)
        self._bytes, at = read_varint(payload, len(whose))
        self._keep_again(payload[at:])

    def _kept(self) -> bytes:
        """All that was heard, and nothing of the order."""
        return self._packed(self._consolidated())

    def _keep_again(self, kept: bytes) -> None:
        for message, said in self._opened(kept):
            if self._merge(message, said):
                raise MessageError("a number is in it twice", "duplicate")

    def _packed(self, heard: Heard) -> bytes:
        return pack_parts(self.protocol._pack(message) for message in self._messages(heard))

    def _opened(self, data: bytes) -> Heard:
        return [self.protocol.open(part) for part in unpack_parts(data, len(data))]
