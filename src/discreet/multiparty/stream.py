"""Frequencies over a whole stream, or over its last w steps, from parties that report as they go ([MDP] section 4).

Time has steps; at each a party has one item, or nothing. `epoch_steps` = b steps are an epoch and 2^l epochs a block of
level l. A party answers for a sampled step at once, by Hadamard randomised response, and sends a noisy count sketch of
every block when it is complete. The count up to a step is a sum over few blocks, and samples of what they leave open.

Privacy unit: the item of one party at one step is replaced by another, or by nothing; all that the party ever sends
together is epsilon-DP. A step is in one block of each level and is sampled at most once, so

    epsilon = epsilon_sample + levels * epsilon_level        (exact fractions)

with randomised response at epsilon_sample and discrete Laplace noise of scale 2 rows/epsilon_level on every cell.
docs/privacy/multiparty.md has the argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from discreet.errors import MessageError, ParameterError
from discreet.multiparty._base import MAX_CELLS, Protocol, known
from discreet.multiparty._sketches import noise_reach
from discreet.multiparty.epochs import Block, levels_for
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

__all__ = ["Stream"]


@known
@dataclass(frozen=True)
class Stream(Protocol):
    """The public parameters of one stream; everybody has the same.

    Args:
        round_id: Names the stream; the hash functions follow from it.
        budget: A pure epsilon for all that a party ever sends.
        universe: As for the one-shot protocols.
        epoch_steps: b, the steps of an epoch: what is newer than the last complete epoch is estimated from one sample
            in b. With 1 nothing is sampled, and the blocks have the whole budget.
        horizon: The last step of the stream; for counts since the beginning.
        window: w, for counts of the last w steps, at least one epoch; the stream may then go on for ever.
        rows: Rows of a sketch, odd. One is best for a sum over many parties, unless few items dominate.
        columns: Columns of the sketch of one epoch; 2^l times as many for a block of level l. By default
            sqrt(levels), rounded up, as in the paper.
        sample_share: The share of epsilon for the samples.
    """

    epoch_steps: int = 1
    horizon: int | None = None
    window: int | None = None
    rows: int = 1
    columns: int | None = None
    sample_share: float = 0.5

    family: ClassVar[int] = 33
    name: ClassVar[str] = "samples of steps and sketches of dyadic blocks"

    def _check(self) -> None:
        b = whole_number("epoch_steps", self.epoch_steps, 1, 2**32)
        if (self.horizon is None) == (self.window is None):
            raise ParameterError(
                "give either horizon (counts since the beginning) or window (counts of the last steps)"
            )
        for name in ("horizon", "window"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), b, MAX_TIME)
        if whole_number("rows", self.rows, 1, 255) % 2 == 0:
            raise ParameterError(f"rows must be odd, so that they have a median, not {self.rows}")
        object.__setattr__(self, "sample_share", probability("sample_share", self.sample_share))
        if self.columns is None:
            object.__setattr__(self, "columns", math.isqrt(self.levels - 1) + 1)
        whole_number("columns", self.columns, 1, MAX_CELLS)
        if self.epoch_steps > 1:
            keep_probability(2, self.epsilon_sample)
        whole_number("the cells of the largest block", self.shape.cells[-1], 1, MAX_CELLS)

    # ---- the split of the budget ---------------------------------------------------------------------------------

    @property
    def levels(self) -> int:
        """Levels of blocks: max(1, ceil(log2 m)) for m epochs that may be asked for together."""
        steps = self.horizon if self.window is None else self.window
        return levels_for(-(-int(steps) // self.epoch_steps))  # type: ignore[arg-type]

    @property
    def epsilon_sample(self) -> Fraction:
        """What the answer for a sampled step may lose; 0 if nothing is sampled."""
        return Fraction(self.epsilon) * Fraction(self.sample_share) if self.epoch_steps > 1 else Fraction(0)

    @property
    def epsilon_level(self) -> Fraction:
        """What the block of one level may lose."""
        return (Fraction(self.epsilon) - self.epsilon_sample) / self.levels

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every cell of a sketch."""
        return 2 * self.rows / self.epsilon_level

    @property
    def keep(self) -> Fraction:
        """The probability that the answer for a sampled step is sent as it is."""
        return keep_probability(2, self.epsilon_sample)

    def _guarantee(self, seeded: bool) -> Guarantee:
        span = f"the last {self.window} steps" if self.horizon is None else f"{self.horizon} steps"
        return replace(
            super()._guarantee(seeded),
            assumptions=(
                "everything that a party ever sends is private together, whatever the aggregator and the others do",
                f"at each step a party has one item or nothing; counts of {span}",
                f"{self.levels} level(s) of blocks spend epsilon {float(self.epsilon_level):.6g} each, the samples "
                f"{float(self.epsilon_sample):.6g}",
                "a party goes on from a state that is not older than its last message",
            ),
        )

    # ---- public numbers that both sides use ----------------------------------------------------------------------

    def width(self, level: int) -> int:
        """The columns of the sketch of a block."""
        assert self.columns is not None
        return self.columns << level

    @cached_property
    def shape(self) -> Shape:
        """The sizes of blocks. A cell has at most its block's items, and noise that is larger once in 2^64 draws."""
        reach = noise_reach(self.scale)
        return Shape(
            self.epoch_steps,
            tuple(self.rows * self.width(level) for level in range(self.levels)),
            tuple((self.epoch_steps << level) + reach for level in range(self.levels)),
            self.scale,
        )

    def block_seed(self, number: int, block: Block) -> int:
        """The seed of the hash functions of a party's block."""
        return self._public_seed(8, number, 1 + block.level, block.j)

    def row_key(self, number: int) -> tuple[int, int]:
        """The key from which the rows of the Hadamard matrix for a party's steps follow."""
        return self._public_key(number)

    def open(self, message: bytes) -> tuple[Message, Packet]:
        """A message and the packet in it; `MessageError` if no honest party sends it."""
        opened = self._unpack(message)
        if opened.items:
            raise MessageError("a packet of a stream does not count items", "format")
        packet = read_packet(opened.payload, self.shape)
        if self.horizon is not None and packet.to > self.horizon:
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
