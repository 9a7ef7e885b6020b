"""What the local protocols share: one report for each item, numbered, many of them in one message.

A report tells about one item and is epsilon-DP for any change of it. A party with n items sends n reports with numbers
of their own, each drawn independently, so its message is epsilon-DP for replacing one item. The payload is a list of
further runs of numbers (a relay may join messages), then the reports in the order of their numbers: nothing else, and
nothing that depends on an item in any other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import Party, Protocol
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.reports import LocalAggregator, Reports, Runs, ShuffledAggregator, in_order, joined, runs_of
from discreet.multiparty.wire import MAX_CELLS, Heard, Message, read_varint, varint
from discreet.noise import RandomSource
from discreet.privacy import Budget, shuffled
from discreet.privacy.checks import whole_number
from discreet.privacy.rounding import figure_up

USUAL_DELTA = 1e-8
"""At which the second promise of shuffled rounds is stated, unless another is asked for."""


def all_of(heard: Heard) -> Reports:
    """The reports of several messages."""
    return joined([reports for _, reports in heard])


class _NoNoise:
    """Draws nothing."""

    def bernoulli(self, _: object, size: int) -> npt.NDArray[np.int64]:
        return np.ones(size, np.int64)

    def uniform_integers(self, _: object, size: int) -> npt.NDArray[np.int64]:
        return np.zeros(size, np.int64)

    def discrete_laplace(self, _: object, size: int) -> npt.NDArray[np.int64]:
        return np.zeros(size, np.int64)


@dataclass(frozen=True)
class LocalProtocol(Protocol):
    """Every item is a report of its own; a party with one item is a user of local differential privacy.

    Args:
        shuffled: Reports are shown without their senders, in batches of at least so many, and have random numbers; None
            for rounds in which anyone may know who sent what. What that is worth says `shuffled_budget`.
    """

    shuffled: int | None = field(default=None, kw_only=True)

    items_at_once: ClassVar[int] = 2**10

    def __post_init__(self) -> None:
        if self.shuffled is not None:
            whole_number("shuffled", self.shuffled, 2, 2**53)
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
                "a report of a shuffled round has a random number, so that it tells nothing of its sender"
            )
        return super().party(number, source=source)

    def shuffled_budget(self, delta: float = USUAL_DELTA) -> Budget:
        """What a report of a shuffled round loses to whoever sees complete batches only, besides epsilon to anyone.

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
    def _listener(self) -> type[LocalAggregator]:
        return LocalAggregator if self.shuffled is None else ShuffledAggregator

    # ---- messages --------------------------------------------------------------------------------------------------

    def bundle(self, messages: Iterable[bytes]) -> bytes:
        """One message that says what many say, with one header: for relays. Needs no trust, and no secret."""
        opened = [self._unpack(message) for message in messages]
        if not opened:
            raise ParameterError("there is nothing to bundle")
        heard = [(message, self._checked(message)) for message in opened]
        covered = sorted(run for message in opened for run in self._covered(message))
        if any(first + count > after for (first, count), (after, _) in pairwise(covered)):
            raise MessageError("two of the messages speak for the same number", "duplicate")
        whole = self._rewrite(heard)
        if len(whole) > 1:
            raise ParameterError(f"a message of {type(self).__name__} has at most {self._most} reports")
        return self._pack(whole[0])

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

    def _check_own(self, items: int) -> None:
        if self.shuffled is not None and items != 1:
            raise ParameterError(
                f"a message of a shuffled round is one report, not {items}: several would be seen together"
            )
        self._check_items(items)

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

    def written(self, reports: Reports, seeded: bool) -> list[Message]:
        """Messages that say what these say, which are in the order of their numbers."""
        parts = (slice(first, first + self._most) for first in range(0, len(reports.numbers), self._most))
        return [self._written(reports.only(part), seeded) for part in parts]

    def _rewrite(self, heard: Heard) -> list[Message]:
        if len(heard) <= 1:
            return [message for message, _ in heard]
        seeded = any(message.seeded for message, _ in heard)
        return self.written(in_order([reports for _, reports in heard]), seeded)

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

    # ---- what an audit looks at: `discreet.multiparty.party_seam` ----------------------------------------------------

    def without_noise(self, item: Any, numbers: Words) -> npt.NDArray[Any]:
        """What reports with these numbers would say about an item if nothing were drawn. NOT PRIVATE."""
        words = np.repeat(self.universe.words([item]), len(numbers))
        return self._randomise(words, numbers, cast(RandomSource, _NoNoise()))

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
