"""What the local protocols share: one report for each item, numbered, many of them in one message; the aggregators.

A report tells about one item and is epsilon-DP for any change of it. A party with n items sends n reports with numbers
of their own, each drawn independently, so its message is epsilon-DP for replacing one item. The payload is a list of
further runs of numbers (a relay may join messages), then the reports in the order of their numbers: nothing else, and
nothing that depends on an item in any other way.

A report of a shuffled round has a random number, and what is shown grows by whole batches: at least N reports that no
aggregator showed before. Neither the aggregator's memory nor its state has the order in which reports came, beyond
which of them are in one batch. docs/privacy/shuffling.md has the rules, also of merging, and the argument.
"""

from __future__ import annotations

import secrets
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field
from discreet.errors import DataError, MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import Party, Round
from discreet.multiparty.aggregator import Aggregator, Limits
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.wire import MAX_CELLS, Heard, Message, pack_parts, read_varint, unpack_parts, varint
from discreet.noise import RandomSource
from discreet.privacy import Budget, shuffled
from discreet.privacy.checks import whole_or_none
from discreet.privacy.rounding import figure_up
from discreet.summaries.people import among

USUAL_DELTA = 1e-8
"""At which the second promise of shuffled rounds is stated, unless another is asked for."""

Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class Reports:
    """The reports of a message, one row each."""

    numbers: Words
    values: npt.NDArray[Any]

    def only(self, which: npt.NDArray[Any] | slice) -> Reports:
        """Those at these places."""
        return Reports(self.numbers[which], self.values[which])


def runs_of(numbers: Words) -> Runs:
    """Numbers in order as runs (first, count) that do not touch."""
    if not len(numbers):
        return []
    starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers) != 1) + 1])
    counts = np.diff(np.concatenate([starts, [len(numbers)]]))
    return list(zip(numbers[starts].tolist(), counts.tolist(), strict=True))


def joined(parts: Sequence[Reports]) -> Reports:
    """All of them, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Reports(np.concatenate([each.numbers for each in parts]), np.concatenate([each.values for each in parts]))


def in_order(parts: Sequence[Reports]) -> Reports:
    """All of them in the order of their numbers."""
    everything = joined(parts)
    return everything.only(np.argsort(everything.numbers, kind="stable"))


def whole(parts: Sequence[Reports], seeded: bool) -> list[tuple[Message, Reports]]:
    """All of them as what one message says, in the order of their numbers; nothing if there are none."""
    parts = [each for each in parts if len(each.numbers)]
    if not parts:
        return []
    everything = in_order(parts)
    return [(Message(0, len(everything.numbers), b"", seeded), everything)]


def all_of(heard: Heard) -> Reports:
    """The reports of several messages."""
    return joined([reports for _, reports in heard])


@dataclass(frozen=True)
class LocalProtocol(Round):
    """Every item is a report of its own; a party with one item is a user of local differential privacy.

    Args:
        shuffled: Reports are shown without their senders, in batches of at least this many, and have random numbers:
            `shuffled_budget` says what that is worth. None where anyone may know who sent what.
    """

    shuffled: int | None = field(default=None, kw_only=True)

    items_at_once: ClassVar[int] = 2**10

    def __post_init__(self) -> None:
        whole_or_none("shuffled", self.shuffled, 2, 2**53)
        super().__post_init__()

    def _described(self) -> dict[str, Any]:
        described = super()._described()
        if self.shuffled is None:  # so that rounds from before there were shuffled ones stay what they are
            del described["parameters"]["shuffled"]
        return described

    @property
    def local(self) -> bool:
        """True."""
        return True

    def party(self, number: int | None = None, *, source: RandomSource | None = None) -> Party:
        """One party; numbers are public and different, and a random one of 62 bits if none is given.

        A report of a shuffled round has a random one. A seeded source is for tests: its messages are not private.
        """
        if self.shuffled is not None and number is not None:
            raise ParameterError(
                "a report of a shuffled round must have a random number, so that it says nothing about its sender"
            )
        return super().party(number, source=source)

    def shuffled_budget(self, delta: float = USUAL_DELTA) -> Budget:
        """What a report of a shuffled round loses to anyone who sees complete batches only, besides epsilon to anyone.

        Rests on the collector, who is trusted to forget who sent which report, and when, and to give it to one
        aggregator; and on as many honest reports in a batch as it says, as those that liars make up hide nobody.
        """
        if self.shuffled is None:
            raise ParameterError("this round is not shuffled")
        return shuffled(self.epsilon, self.shuffled, delta, choices=self._choices)

    @property
    def _choices(self) -> int | None:
        """Over how many a report is a randomised response, given its number; None if it is something else."""
        return None

    @cached_property
    def _second_promise(self) -> tuple[str, ...]:
        if self.shuffled is None:
            return ()
        worth = self.shuffled_budget()
        assert worth.epsilon is not None
        return (
            f"shuffled in batches of {self.shuffled}: who sees whole batches only learns at most epsilon "
            f"{figure_up(worth.epsilon)} (delta {worth.delta:g}) of a report, if the collector forgets who sent it, "
            "when, and in which order, no other aggregator shows it in another batch, and the others of the batch are "
            "honest; without that the epsilon of each report by itself still holds",
        )

    def _assumptions(self) -> tuple[str, ...]:
        return self._second_promise

    @property
    def _listener(self) -> type[LocalAggregator]:  # type: ignore[override]
        return LocalAggregator if self.shuffled is None else ShuffledAggregator

    # ---- messages --------------------------------------------------------------------------------------------------

    def bundle(self, messages: Iterable[bytes]) -> bytes:
        """One message that says what many say, with one header: for relays. Needs no trust, and no secret."""
        opened = [self._unpack(message) for message in messages]
        if not opened:
            raise ParameterError("there is nothing to bundle; give at least one message")
        heard = [(message, self._checked(message)) for message in opened]
        covered = sorted(run for message in opened for run in self._covered(message))
        if any(first + count > after for (first, count), (after, _) in pairwise(covered)):
            raise MessageError("two of the messages have the same number", "duplicate")
        reports, seeded = in_order([said for _, said in heard]), any(message.seeded for message in opened)
        bundled = opened if len(opened) == 1 else self.written(reports, seeded)
        if len(bundled) > 1:
            raise ParameterError(f"a message of {type(self).__name__} has at most {self._most} reports")
        return self._pack(bundled[0])

    def unheard(self, message: bytes, heard: Callable[[int], bool]) -> tuple[bytes | None, list[int]]:
        """What a message says under numbers that were not heard, and those numbers; None if all were heard."""
        opened, reports = self.open(message)
        numbers: list[int] = reports.numbers.tolist()
        new = np.array([not heard(number) for number in numbers], bool)
        if new.all():
            return message, numbers
        if not new.any():
            return None, []
        left = reports.only(new)
        return self._pack(self._written(left, opened.seeded)), left.numbers.tolist()

    @property
    def _most(self) -> int:
        """Reports of one message."""
        return MAX_CELLS // self._cells

    def _check_items(self, items: int, own: bool = False) -> None:
        if own and self.shuffled is not None and items != 1:
            raise ParameterError(
                f"a message of a shuffled round must hold one report, not {items}; several would be seen together"
            )
        if not 1 <= items <= self._most:
            raise ParameterError(f"a message of {type(self).__name__} has 1 to {self._most} reports, not {items}")

    def _covered(self, message: Message) -> Runs:
        return self._split(message)[0]

    def _split(self, message: Message) -> tuple[Runs, bytes]:
        """The runs of numbers and where the reports begin."""
        extra, at = read_varint(message.payload, 0)
        if extra >= message.items:
            raise MessageError("message has more runs of numbers than reports", "range")
        gaps = []
        for _ in range(extra):
            gap, at = read_varint(message.payload, at)
            count, at = read_varint(message.payload, at)
            if gap < 1 or count < 1:
                raise MessageError("message has runs of numbers that are empty or touch", "range")
            gaps.append((gap, count))
        left = message.items - sum(count for _, count in gaps)
        if left < 1:
            raise MessageError("message has longer runs of numbers than reports", "range")
        runs = [(message.number, left)]
        for gap, count in gaps:
            runs.append((sum(runs[-1]) + gap, count))
        return runs, message.payload[at:]

    def written(self, reports: Reports, seeded: bool) -> list[Message]:
        """Messages that say what these say, which are in the order of their numbers."""
        parts = (slice(first, first + self._most) for first in range(0, len(reports.numbers), self._most))
        return [self._written(reports.only(part), seeded) for part in parts]

    def _consolidated(self, heard: Heard) -> Heard:
        return whole([reports for _, reports in heard], any(message.seeded for message, _ in heard))

    def _written(self, reports: Reports, seeded: bool) -> Message:
        """A message of reports that are in the order of their numbers."""
        first, *others = runs_of(reports.numbers)
        text, end = [], sum(first)
        for start, count in others:
            text.append(varint(start - end) + varint(count))
            end = start + count
        payload = varint(len(others)) + b"".join(text) + self._write(reports.values)
        return Message(first[0], len(reports.numbers), payload, seeded)

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        numbers = np.arange(number, number + len(words), dtype=np.uint64)
        return varint(0) + self._write(self._randomise(words, numbers, source))

    def _decode(self, message: Message) -> Reports:
        runs, data = self._split(message)
        values = self._read(data, message.items)  # first: it takes no memory for reports that are not there
        numbers = np.concatenate([np.arange(first, first + count, dtype=np.uint64) for first, count in runs])
        return Reports(numbers, values)

    def _estimate(self, heard: Heard, words: Words) -> tuple[Numbers, Numbers]:
        return self._from_reports(all_of(heard), words)

    def _addends(self, heard: Heard, words: Words) -> Numbers:
        """Of some groups of reports."""
        reports, sums = all_of(heard), []
        for some in np.array_split(np.arange(len(reports.numbers)), min(64, max(1, len(reports.numbers) // 16))):
            part = [(heard[0][0], reports.only(some))]
            sums.append(self._estimates(part, words)[0].sum())
        return np.array(sums)

    @property
    def _key(self) -> tuple[int, int]:
        """The key of the reports' public hash functions."""
        return self._public_key()

    # ---- for the oracles -------------------------------------------------------------------------------------------

    @property
    def _cells(self) -> int:
        """How many numbers a report has."""
        return 1

    def _randomise(self, words: Words, numbers: Words, source: RandomSource) -> npt.NDArray[Any]:
        raise ParameterError("use one of the local protocols, not the bare LocalProtocol")

    def _write(self, values: npt.NDArray[Any]) -> bytes:
        raise ParameterError("use one of the local protocols, not the bare LocalProtocol")

    def _read(self, data: bytes, count: int) -> npt.NDArray[Any]:
        raise ParameterError("use one of the local protocols, not the bare LocalProtocol")

    def _from_reports(self, reports: Reports, words: Words) -> tuple[Numbers, Numbers]:
        raise ParameterError("use one of the local protocols, not the bare LocalProtocol")


# ---- aggregators -----------------------------------------------------------------------------------------------------


class _Box:
    """Reports that wait, as two arrays that grow; in random order if `mixed`."""

    def __init__(self, mixed: bool) -> None:
        self.count = 0
        self._mixed = mixed
        self._numbers: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._values: npt.NDArray[Any] = np.zeros(0)

    def add(self, reports: Reports) -> None:
        first, self.count = self.count, self.count + len(reports.numbers)
        if self.count > len(self._numbers):
            room = max(self.count, 2 * len(self._numbers), 64)
            numbers, values = (
                np.zeros(room, np.uint64),
                np.zeros((room, *reports.values.shape[1:]), reports.values.dtype),
            )
            if first:
                numbers[:first], values[:first] = self._numbers[:first], self._values[:first]
            self._numbers, self._values = numbers, values
        self._numbers[first : self.count], self._values[first : self.count] = reports.numbers, reports.values
        if self._mixed:
            self._mix(first)

    def _mix(self, first: int) -> None:
        """A uniformly random order, if that of those before `first` is one."""
        if 16 * (self.count - first) < self.count:
            for last in range(first, self.count):
                place = secrets.randbelow(last + 1)
                for rows in (self._numbers, self._values):
                    rows[[last, place]] = rows[[place, last]]
        else:
            order = np.argsort(np.frombuffer(secrets.token_bytes(8 * self.count), np.uint64))
            for rows in (self._numbers, self._values):
                rows[: self.count] = rows[order]

    def reports(self) -> Reports:
        return Reports(self._numbers[: self.count].copy(), self._values[: self.count].copy())

    def remove(self, numbers: Words) -> None:
        """Those with these numbers, which are in order, are no longer here."""
        kept = ~among(self._numbers[: self.count], numbers)
        self._numbers, self._values = self._numbers[: self.count][kept], self._values[: self.count][kept]
        self.count = len(self._numbers)


class LocalAggregator(Aggregator):
    """Hears reports, and estimates."""

    protocol: LocalProtocol

    def __init__(self, protocol: Round, limits: Limits) -> None:
        super().__init__(protocol, limits)
        self._box = _Box(mixed=False)

    def _keep(self, message: Message, said: Reports) -> None:
        self._box.add(said)
        self._total += message.items
        self._seeded |= message.seeded

    def _consolidated(self) -> Heard:
        """All reports, in the order of their numbers."""
        if self._box.count:
            heard, self._box = self._box.reports(), _Box(mixed=False)
            self._heard = whole([*(reports for _, reports in self._heard), heard], self._seeded)
        return list(self._heard)

    def _messages(self, heard: Heard) -> list[Message]:
        return [message for _, reports in heard for message in self.protocol.written(reports, self._seeded)]

    def _merge(self, message: Message, said: Reports) -> int:
        known = 0
        if not self._note(runs_of(said.numbers)):
            new = np.array([not self._known.overlaps(number, 1) for number in said.numbers.tolist()], bool)
            said, known = said.only(new), len(new) - int(new.sum())
            self._note(runs_of(said.numbers))
        if len(said.numbers):
            self._keep(Message(0, len(said.numbers), b"", message.seeded), said)
        return known


@dataclass(frozen=True)
class _Parts:
    """What an aggregator of a shuffled round heard."""

    batches: list[Reports]  # that are shown, in the order of their smallest numbers
    left: Reports | None  # that another aggregator showed
    waiting: Reports | None  # that nobody showed

    def all(self) -> list[Reports]:
        return [*self.batches, *(reports for reports in (self.left, self.waiting) if reports is not None)]


class ShuffledAggregator(LocalAggregator):
    """Hears reports of a shuffled round, and shows whole batches only."""

    def __init__(self, protocol: Round, limits: Limits) -> None:
        super().__init__(protocol, limits)
        assert self.protocol.shuffled is not None
        self._size = self.protocol.shuffled
        self._batches: list[Reports] = []
        self._box, self._left = _Box(mixed=True), _Box(mixed=True)
        self._shown = 0

    @property
    def shown(self) -> int:
        """How many reports the estimates are from: those of complete batches."""
        return self._shown

    def _keep(self, message: Message, said: Reports) -> None:
        super()._keep(message, said)
        self._show_whole_box()

    def _show_whole_box(self) -> None:
        """Show what waits, if that is a batch, and with it what was left over."""
        if self._box.count >= self._size:
            boxes = [box.reports() for box in (self._box, self._left) if box.count]
            self._box, self._left = _Box(mixed=True), _Box(mixed=True)
            self._show(in_order(boxes))

    def _show(self, batch: Reports) -> None:
        insort(self._batches, batch, key=lambda each: int(each.numbers[0]))
        self._shown += len(batch.numbers)
        self._heard = []  # which is made when it is asked for

    def _consolidated(self) -> Heard:
        """The reports that are shown."""
        if not self._heard:
            self._heard = whole(self._batches, self._seeded)
        return list(self._heard)

    def _to_show(self) -> Heard:
        if not self._shown:
            raise DataError(f"nothing is shown before {self._size} reports have arrived; they are shown in batches")
        return super()._to_show()

    # ---- merging -----------------------------------------------------------------------------------------------------

    def merge(self, other: Aggregator) -> int:
        """Take what another aggregator of the same round heard; returns how many of its reports were heard here, too.

        Those count once. What waits there, for its batch, is moved and waits here. Of a batch that is shown here in
        part the rest waits for the next whole batch.
        """
        self._check_mergeable(other)
        assert isinstance(other, ShuffledAggregator)
        with other._lock:
            parts, size, seeded = other._parts(), other._bytes, other._seeded
            other._box, other._left = _Box(mixed=True), _Box(mixed=True)
        with self._lock:
            self._bytes += size
            self._seeded |= seeded
            return self._take_parts(parts)

    def _take_parts(self, parts: _Parts) -> int:
        repeated = self._count(parts.all())
        shown = self._numbers(self._batches)
        for batch in parts.batches:
            self._box.remove(batch.numbers)  # it is not new any more
            self._left.remove(batch.numbers)
            rest = ~among(batch.numbers, shown)
            if rest.all():
                self._show(batch)
            elif rest.any():
                self._left.add(batch.only(rest))
        if parts.left is not None:
            self._box.remove(parts.left.numbers)
            self._left.add(self._unless(parts.left, [*self._batches, self._left.reports()]))
        if parts.waiting is not None:
            here = [*self._batches, self._left.reports(), self._box.reports()]
            self._box.add(self._unless(parts.waiting, here))
            self._show_whole_box()
        return repeated

    def _count(self, reports: Sequence[Reports]) -> int:
        """These were heard; how many were before."""
        numbers = self._numbers(reports)
        new = numbers[~among(numbers, self._numbers(self._parts().all()))]
        self._note(runs_of(new))
        self._total += len(new)
        return len(numbers) - len(new)

    @staticmethod
    def _numbers(reports: Sequence[Reports]) -> Words:
        """All numbers, in order."""
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *(each.numbers for each in reports)]))

    def _unless(self, reports: Reports, here: Sequence[Reports]) -> Reports:
        return reports.only(~among(reports.numbers, self._numbers(here)))

    # ---- states ------------------------------------------------------------------------------------------------------

    _state_version = 3

    def _parts(self) -> _Parts:
        return _Parts(self._batches, *(self._in_order(box.reports()) for box in (self._left, self._box)))

    def _in_order(self, *reports: Reports) -> Reports | None:
        found = whole(reports, self._seeded)
        return found[0][1] if found else None

    def _kept(self) -> bytes:
        """What was left over, what waits, and the batches."""
        parts = self._parts()
        groups = ([] if each is None else [each] for each in (parts.left, parts.waiting, *parts.batches))
        return pack_parts(self._packed(whole(group, self._seeded)) for group in groups)

    def _keep_again(self, kept: bytes) -> None:
        groups = [self._opened(group) for group in unpack_parts(kept, len(kept))]
        self._seeded = any(message.seeded for group in groups for message, _ in group)
        found = [self._in_order(*(reports for _, reports in group)) for group in groups]
        if len(found) < 2 or None in found[2:]:
            raise MessageError("it is truncated", "size")
        parts = _Parts([batch for batch in found[2:] if batch is not None], *found[:2])
        if any(len(batch.numbers) < self._size for batch in parts.batches):
            raise MessageError("a batch in it is too small", "size")
        if parts.waiting is not None and len(parts.waiting.numbers) >= self._size:
            raise MessageError("a batch in it is not shown", "size")
        numbers = self._numbers(parts.all())
        if len(np.unique(numbers)) < len(numbers):
            raise MessageError("a number is in it twice", "duplicate")
        self._take_parts(parts)
