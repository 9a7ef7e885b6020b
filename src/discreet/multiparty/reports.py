"""Reports of local protocols and their aggregators: a few bytes each; if shuffled, nothing of who sent one, or when.

A report of a shuffled round has a random number, of which nobody else knows the sender. The aggregator keeps the open
batch in random order, at any time (a new report changes places with one drawn at random), and all others in the order
of their numbers; what was heard is known by sorted numbers, too. So neither its memory nor its state has the order in
which reports came, beyond which of them are in one batch.

**What is shown** grows by whole batches only: at least N reports that no aggregator showed before. Whoever compares any
two answers of one aggregator, or of several that were merged, sees a batch or nothing (docs/privacy/shuffling.md has
the argument). So what another aggregator shows is taken batch by batch: a batch none of which is shown here is shown
here, too. Of a batch that is shown here in part the rest would be seen by itself; it is left over, and waits until N
new reports are shown, with them and beyond their number. What waits there is moved, so that it is shown once.
"""

from __future__ import annotations

import secrets
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, MessageError
from discreet.events.universe import Words
from discreet.multiparty.aggregator import Aggregator, Limits
from discreet.multiparty.wire import Heard, Message, pack_parts, unpack_parts

if TYPE_CHECKING:
    from discreet.multiparty._base import Protocol
    from discreet.multiparty.local_protocol import LocalProtocol

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
        kept = ~_among(self._numbers[: self.count], numbers)
        self._numbers, self._values = self._numbers[: self.count][kept], self._values[: self.count][kept]
        self.count = len(self._numbers)


def _among(numbers: Words, others: Words) -> npt.NDArray[np.bool_]:
    """Which of the numbers are among others, which are in order."""
    if not len(others):
        return np.zeros(len(numbers), bool)
    places = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
    return np.asarray(others[places] == numbers)


class LocalAggregator(Aggregator):
    """Hears reports, and estimates."""

    protocol: LocalProtocol

    def __init__(self, protocol: Protocol, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
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
            self._heard = self._whole([*(reports for _, reports in self._heard), heard])
        return list(self._heard)

    def _whole(self, reports: Sequence[Reports]) -> list[tuple[Message, Reports]]:
        """All of them as one message; none if there are none."""
        reports = [each for each in reports if len(each.numbers)]
        if not reports:
            return []
        everything = in_order(reports)
        return [(Message(0, len(everything.numbers), b"", self._seeded), everything)]

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

    def __init__(self, protocol: Protocol, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
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
            self._heard = self._whole(self._batches)
        return list(self._heard)

    def _to_show(self) -> Heard:
        if not self._shown:
            raise DataError(f"nothing is shown before {self._size} reports came: they are shown in batches")
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
            rest = ~_among(batch.numbers, shown)
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
        new = numbers[~_among(numbers, self._numbers(self._parts().all()))]
        self._note(runs_of(new))
        self._total += len(new)
        return len(numbers) - len(new)

    @staticmethod
    def _numbers(reports: Sequence[Reports]) -> Words:
        """All numbers, in order."""
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *(each.numbers for each in reports)]))

    def _unless(self, reports: Reports, here: Sequence[Reports]) -> Reports:
        return reports.only(~_among(reports.numbers, self._numbers(here)))

    # ---- states ------------------------------------------------------------------------------------------------------

    _state_version = 3

    def _parts(self) -> _Parts:
        return _Parts(self._batches, *(self._in_order(box.reports()) for box in (self._left, self._box)))

    def _in_order(self, *reports: Reports) -> Reports | None:
        whole = self._whole(reports)
        return whole[0][1] if whole else None

    def _kept(self) -> bytes:
        """What was left over, what waits, and the batches."""
        parts = self._parts()
        groups = ([] if each is None else [each] for each in (parts.left, parts.waiting, *parts.batches))
        return pack_parts(self._packed(self._whole(group)) for group in groups)

    def _keep_again(self, kept: bytes) -> None:
        groups = [self._opened(group) for group in unpack_parts(kept, len(kept))]
        self._seeded = any(message.seeded for group in groups for message, _ in group)
        found = [self._in_order(*(reports for _, reports in group)) for group in groups]
        if len(found) < 2 or None in found[2:]:
            raise MessageError("it is cut short", "size")
        parts = _Parts([batch for batch in found[2:] if batch is not None], *found[:2])
        if any(len(batch.numbers) < self._size for batch in parts.batches):
            raise MessageError("a batch in it is too small", "size")
        if parts.waiting is not None and len(parts.waiting.numbers) >= self._size:
            raise MessageError("a batch in it is not shown", "size")
        numbers = self._numbers(parts.all())
        if len(np.unique(numbers)) < len(numbers):
            raise MessageError("a number is in it twice", "duplicate")
        self._take_parts(parts)
