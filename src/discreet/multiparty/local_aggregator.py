"""The aggregator of local protocols: a few bytes a report, and of shuffled rounds nothing of who sent it, or when.

A report of a shuffled round has a random number, of which nobody else knows the sender. The aggregator keeps the open
batch in random order, at any time (a new report changes places with one drawn at random), and all others in the order
of their numbers; what was heard is known by sorted numbers, too. So neither its memory nor its state has the order in
which reports came, beyond which of them wait for their batch. A batch is shown when it is complete, and only whole:
whoever sees what is shown at any two times sees no smaller set of reports than a batch.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError
from discreet.multiparty._base import Heard, Protocol
from discreet.multiparty._local import LocalProtocol, Reports, runs_of
from discreet.multiparty.aggregator import Aggregator, Limits
from discreet.multiparty.messages import Message

__all__ = ["LocalAggregator"]


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


class LocalAggregator(Aggregator):
    """Hears reports, and estimates; of a shuffled round it shows whole batches only."""

    protocol: LocalProtocol

    def __init__(self, protocol: Protocol, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        super().__init__(protocol, limits)
        self._box = _Box(self._mixed)

    @property
    def _mixed(self) -> bool:
        return self.protocol.shuffled is not None

    @property
    def shown(self) -> int:
        """How many reports the estimates are from: of a shuffled round, those of complete batches."""
        return self.parties - self._box.count if self._mixed else self.parties

    def _keep(self, message: Message, content: Any) -> None:
        self._box.add(content)
        self._total += message.items
        self._seeded |= message.seeded
        if self.protocol.shuffled is not None and self._box.count >= self.protocol.shuffled:
            self._show_box()

    def _show_box(self) -> None:
        if self._box.count:
            waited, self._box = self._box.reports(), _Box(self._mixed)
            self._show(waited)

    def _show(self, reports: Reports) -> None:
        """These are among the reports that are shown, which are in the order of their numbers."""
        everything = self.protocol.in_order([*(shown for _, shown in self._heard), reports])
        self._heard = [(Message(0, len(everything.numbers), b"", self._seeded), everything)]

    def _to_show(self) -> Heard:
        if self._mixed and self.shown == 0:
            raise DataError(f"nothing is shown before {self.protocol.shuffled} reports came: they are shown in batches")
        return super()._to_show()

    def _consolidated(self) -> Heard:
        if not self._mixed:
            self._show_box()
        return list(self._heard)

    # ---- states: what is shown, and of a shuffled round what waits ---------------------------------------------------

    def _groups(self) -> list[Heard]:
        shown = self._consolidated()
        if not self._mixed:
            return [shown]
        waiting = self.protocol.in_order([self._box.reports()]) if self._box.count else None
        return [shown, [] if waiting is None else [(Message(0, self._box.count, b"", self._seeded), waiting)]]

    def _messages(self, heard: Heard) -> list[Message]:
        return [message for _, reports in heard for message in self.protocol.written(reports, self._seeded)]

    def _merge(self, group: int, message: Message, content: Any) -> int:
        runs, known = runs_of(content.numbers), 0
        if any(self._known.overlaps(first, count) for first, count in runs):
            new = np.array([not self._known.overlaps(number, 1) for number in content.numbers.tolist()], bool)
            content, known = Reports(content.numbers[new], content.values[new]), len(new) - int(new.sum())
            runs = runs_of(content.numbers) if new.any() else []
        for first, count in runs:
            self._known.add(first, count)
        if runs:
            self._place(group, Message(0, len(content.numbers), b"", message.seeded), content)
        return known

    def _place(self, group: int, message: Message, content: Any) -> None:
        if self._mixed and group == 0:  # shown before, whatever waits here
            self._total += message.items
            self._seeded |= message.seeded
            self._show(content)
        else:
            self._keep(message, content)
