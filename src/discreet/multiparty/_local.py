"""What the local protocols share: one report for each item, numbered, many of them in one message.

A report tells about one item and is epsilon-DP for any change of it. A party with n items sends n reports with numbers
of their own, each drawn independently, so its message is epsilon-DP for replacing one item. The payload is a list of
further runs of numbers (a relay may join messages), then the reports in the order of their numbers: nothing else, and
nothing that depends on an item in any other way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import MAX_CELLS, Heard, Protocol
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.messages import Message, read_varint, varint
from discreet.noise import RandomSource

__all__ = ["LocalProtocol", "Reports"]

Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class Reports:
    """The reports of a message, one row each."""

    numbers: Words
    values: npt.NDArray[Any]


def _joined(heard: Heard) -> Reports:
    if len(heard) == 1:
        only: Reports = heard[0][1]
        return only
    numbers = np.concatenate([reports.numbers for _, reports in heard])
    return Reports(numbers, np.concatenate([reports.values for _, reports in heard]))


@dataclass(frozen=True)
class LocalProtocol(Protocol):
    """Every item is a report of its own; a party with one item is a user of local differential privacy."""

    items_at_once: ClassVar[int] = 2**10

    # ---- messages --------------------------------------------------------------------------------------------------

    def bundle(self, messages: Iterable[bytes]) -> bytes:
        """One message that says what many say, with one header: for relays. Needs no trust, and no secret."""
        opened = [self._unpack(message) for message in messages]
        if not opened:
            raise ParameterError("there is nothing to bundle")
        checked = [(message, *self._checked(message)) for message in opened]
        covered = sorted(run for _, _, runs in checked for run in runs)
        if any(first + count > after for (first, count), (after, _) in pairwise(covered)):
            raise MessageError("two of the messages speak for the same number", "duplicate")
        joined = self._rewrite([(message, reports) for message, reports, _ in checked])
        if len(joined) > 1:
            raise ParameterError(f"a message of {type(self).__name__} has at most {self._most} reports")
        return self._pack(joined[0])

    @property
    def _most(self) -> int:
        """Reports of one message."""
        return MAX_CELLS // self._cells

    def _check_items(self, items: int) -> None:
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

    def _rewrite(self, heard: Heard) -> list[Message]:
        if len(heard) <= 1:
            return [message for message, _ in heard]
        reports = _joined(heard)
        order = np.argsort(reports.numbers, kind="stable")
        seeded = any(message.seeded for message, _ in heard)
        return [
            self._written(reports.numbers[part], reports.values[part], seeded)
            for part in (order[first : first + self._most] for first in range(0, len(order), self._most))
        ]

    def _written(self, numbers: Words, values: npt.NDArray[Any], seeded: bool) -> Message:
        """A message of reports that are in the order of their numbers."""
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        starts = np.concatenate([[0], breaks])
        counts = np.diff(np.concatenate([starts, [len(numbers)]]))
        firsts = numbers[starts]
        ends = firsts + counts.astype(np.uint64)
        gaps = (firsts[1:] - ends[:-1]).tolist()
        runs = b"".join(varint(gap) + varint(count) for gap, count in zip(gaps, counts[1:].tolist(), strict=True))
        return Message(int(numbers[0]), len(numbers), varint(len(gaps)) + runs + self._write(values), seeded)

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        if number + len(words) > 2**63:
            raise ParameterError("the numbers of the reports must be below 2**63")
        numbers = np.arange(number, number + len(words), dtype=np.uint64)
        return varint(0) + self._write(self._randomise(words, numbers, source))

    def _decode(self, message: Message) -> Reports:
        runs, data = self._split(message)
        values = self._read(data, message.items)  # first: it takes no memory for reports that are not there
        numbers = np.concatenate([np.arange(first, first + count, dtype=np.uint64) for first, count in runs])
        return Reports(numbers, values)

    def _estimate(self, heard: Heard, words: Words) -> tuple[Numbers, Numbers]:
        return self._from_reports(_joined(heard), words)

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
