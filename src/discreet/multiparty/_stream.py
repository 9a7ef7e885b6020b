"""What streams share: time in steps, epochs and blocks, how the budget is split over them, and samples of steps.

A step of a party is in one block of each level and is sampled at most once, so all that the party ever sends spends

    epsilon = epsilon_sample + levels * tracks * epsilon_level        (exact fractions)

Which summary a block has, and with how much noise it is told, is a protocol's own matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import MAX_CELLS, Protocol
from discreet.multiparty.epochs import Block, levels_for
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.messages import Message
from discreet.multiparty.packets import MAX_TIME, Packet, Shape, read_packet
from discreet.noise import RandomSource
from discreet.noise.response import keep_probability
from discreet.privacy import Guarantee
from discreet.privacy.checks import probability, whole_number

if TYPE_CHECKING:
    from discreet.multiparty.stream_aggregator import StreamAggregator
    from discreet.multiparty.stream_party import StreamParty
    from discreet.privacy.ledger import Account

__all__ = ["BlockStream"]


class BlockStream(Protocol, ABC):
    """The public parameters of a stream whose parties tell of blocks of epochs, and of sampled steps."""

    epoch_steps: int
    horizon: int | None
    window: int | None
    sample_share: float

    def _check(self) -> None:
        b = whole_number("epoch_steps", self.epoch_steps, 1, 2**32)
        if self.horizon is not None and self.window is not None:
            raise ParameterError(
                "give horizon (counts since the beginning) or window (counts of the last steps), not both"
            )
        for name in ("horizon", "window"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), b, MAX_TIME)
        none = self.sample_share == 0 and not isinstance(self.sample_share, bool)  # 0 and 0.0 are one stream
        object.__setattr__(self, "sample_share", 0.0 if none else probability("sample_share", self.sample_share))
        self._check_blocks()
        if self.samples:
            keep_probability(2, self.epsilon_sample)
        whole_number("the cells of the largest block", self.shape.cells[-1], 1, MAX_CELLS)

    # ---- what a block is told by, protocol by protocol -------------------------------------------------------------

    @abstractmethod
    def _check_blocks(self) -> None:
        """Checks the parameters of the summaries."""

    @property
    @abstractmethod
    def _epoch_cells(self) -> int:
        """The numbers of one summary of an epoch; a block of level l has at most 2^l times as many."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The sizes of blocks, their noise, and their bytes."""

    @abstractmethod
    def summary(self, number: int, block: Block, track: int) -> Any:
        """An empty summary of a party's block. NOT PRIVATE."""

    @abstractmethod
    def read_summary(self, data: bytes) -> Any:
        """A summary from its state."""

    @abstractmethod
    def form(self, summary: Any) -> tuple[int, ...]:
        """What a summary has from the parameters, the party and the block."""

    @abstractmethod
    def release(self, summaries: list[Any], block: Block, source: RandomSource) -> Any:
        """What is told of a block with these summaries, one a track: private, with epsilon_level for each."""

    @abstractmethod
    def block_counts(self, number: int, block: Block, told: Any, track: int, words: Words) -> tuple[Numbers, float]:
        """What is told of a block about these words, and the variance of it."""

    def bias(self, block: Block) -> tuple[float, float]:
        """How much a count of a block may be too low, at most, and too high, on average."""
        return 0.0, 0.0

    # ---- the split of the budget ---------------------------------------------------------------------------------

    @property
    def doubling(self) -> bool:
        """Whether nobody knows how long the stream will be."""
        return self.horizon is None and self.window is None

    @property
    def levels(self) -> int:
        """Levels of blocks: max(1, ceil(log2 m)) for m epochs that may be asked for together; else as many as the
        last phase has whose steps can be numbered and whose largest block has few enough cells."""
        if self.doubling:
            cells = self.tracks * self._epoch_cells
            return max(1, min((MAX_CELLS // cells).bit_length(), (MAX_TIME // self.epoch_steps).bit_length() - 2))
        steps = self.horizon if self.window is None else self.window
        return levels_for(-(-int(steps) // self.epoch_steps))  # type: ignore[arg-type]

    @property
    def tracks(self) -> int:
        """How many sketches a block has: one of the items, or one for each level of their intervals."""
        return 1

    @property
    def samples(self) -> bool:
        """Whether steps are sampled."""
        return self.epoch_steps > 1 and self.sample_share > 0

    @property
    def epsilon_sample(self) -> Fraction:
        """What the answer for a sampled step may lose; 0 if nothing is sampled."""
        return Fraction(self.epsilon) * Fraction(self.sample_share) if self.samples else Fraction(0)

    @property
    def epsilon_level(self) -> Fraction:
        """What one sketch of a block may lose; if the length is not known, in the last phase."""
        return (Fraction(self.epsilon) - self.epsilon_sample) / (self.levels * self.tracks)

    @property
    def sample_rate(self) -> Fraction:
        """The probability that a step is sampled: 1/b for every track, as long as no step is sampled twice."""
        return Fraction(self.tracks, self._steps_a_sample)

    @property
    def _steps_a_sample(self) -> int:
        """Of one track."""
        return max(self.epoch_steps, self.tracks)

    @property
    def keep(self) -> Fraction:
        """The probability that the answer for a sampled step is sent as it is."""
        return keep_probability(2, self.epsilon_sample)

    def _guarantee(self, seeded: bool) -> Guarantee:
        span = f"the last {self.window} steps" if self.horizon is None else f"{self.horizon} steps"
        span = "all steps, however many" if self.doubling else span
        spent = f"the samples {float(self.epsilon_sample):.6g}"
        if self.doubling:
            spent = f"the levels of a phase spend epsilon {self.epsilon - float(self.epsilon_sample):.6g}, {spent}"
        else:
            each = float(self.epsilon_level * self.tracks)
            spent = f"{self.levels} level(s) of blocks spend epsilon {each:.6g} each, {spent}"
        return replace(
            super()._guarantee(seeded),
            assumptions=(
                "everything that a party ever sends is private together, whatever the aggregator and the others do",
                f"at each step a party has one item or nothing; counts of {span}",
                spent,
                *self._assumptions(),
                "a party goes on from a state that is not older than its last message",
            ),
        )

    # ---- public numbers that both sides use ----------------------------------------------------------------------

    @property
    def last_step(self) -> int:
        """No step comes after it."""
        if self.doubling:
            return self.epoch_steps << (self.levels + 1)
        return MAX_TIME if self.horizon is None else self.horizon

    def nodes(self, words: Words, track: int) -> Words:
        """What a track counts of these items."""
        return words

    def order(self, track: int) -> int:
        """The bits of what a track counts."""
        return self.domain.word_bits

    def track_of(self, number: int, steps: Words) -> npt.NDArray[np.int64]:
        """The track that a party's steps are answered for if they are sampled. Public."""
        return np.zeros(len(steps), np.int64)

    def block_seed(self, number: int, block: Block, track: int = 0) -> int:
        """The seed of the hash functions of a party's block."""
        return self._public_seed(8, number, 1 + block.level, block.j, *([track] if track else []))

    def row_key(self, number: int, track: int = 0) -> tuple[int, int]:
        """The key from which the rows of the Hadamard matrix for a party's steps follow."""
        return self._public_key(number, *([track] if track else []))

    def open(self, message: bytes) -> tuple[Message, Packet]:
        """A message and the packet in it; `MessageError` if no honest party sends it."""
        opened = self._unpack(message)
        if opened.items:
            raise MessageError("a packet of a stream does not count items", "format")
        packet = read_packet(opened.payload, self.shape)
        if packet.to > self.last_step:
            raise MessageError("the packet tells about steps after the end of the stream", "range")
        return opened, packet

    # ---- the two sides -------------------------------------------------------------------------------------------

    def party(  # type: ignore[override]
        self, number: int, *, start: int = 0, ledger: Account | None = None, source: RandomSource | None = None
    ) -> StreamParty:
        """A party that begins after step `start`; its number is public and no other party has it.

        With a ledger the budget is charged once, and every message is registered there before it is returned.
        """
        from discreet.multiparty.stream_party import StreamParty

        return StreamParty(self, number, start, source, ledger)

    def restore_party(self, data: bytes, *, ledger: Account | None = None) -> StreamParty:
        """A party that goes on from its state. With a ledger, a state older than its last message is refused."""
        from discreet.multiparty.stream_party import StreamParty

        return StreamParty._restored(self, data, ledger)

    def aggregator(  # type: ignore[override]
        self, expected: Iterable[int] = ()
    ) -> StreamAggregator:
        """An aggregator; `expected` parties are listed as absent until they are heard."""
        from discreet.multiparty.stream_aggregator import StreamAggregator

        return StreamAggregator(self, expected)

    def restore(self, data: bytes) -> StreamAggregator:  # type: ignore[override]
        """An aggregator that goes on from its state."""
        from discreet.multiparty.stream_aggregator import StreamAggregator

        return StreamAggregator._restored(self, data)
