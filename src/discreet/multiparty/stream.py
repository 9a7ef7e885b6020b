"""Frequencies over a whole stream, or over its last w steps, from parties that report as they go ([MDP] section 4).

Time has steps; at each a party has one item, or nothing. `epoch_steps` = b steps are an epoch and 2^l epochs a block of
level l. A party answers for a sampled step at once, by Hadamard randomised response, and sends a noisy count sketch of
every block when it is complete. The count up to a step is a sum over few blocks, and samples of what they leave open.

Privacy unit: the item of one party at one step is replaced by another, or by nothing; all that the party ever sends
together is epsilon-DP. A step is in one block of each level and is sampled at most once, so

    epsilon = epsilon_sample + levels * epsilon_level        (exact fractions)

with randomised response at epsilon_sample and discrete Laplace noise of scale 2 rows/epsilon_level on every cell. If
nobody knows how long the stream will be, it is cut into phases, each as long as all before it together; a step is in
one of them, and `levels` are those of its phase. docs/privacy/multiparty.md has the argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import MAX_CELLS, Protocol, known
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
        window: w, for counts of the last w steps, at least one epoch; the stream may then go on for ever. With neither
            a window nor a horizon counts are since the beginning, and the stream is as long as it will be.
        rows: Rows of a sketch, odd. One is best for a sum over many parties, unless few items dominate.
        columns: Columns of the sketch of one epoch; 2^l times as many for a block of level l. By default
            sqrt(levels), rounded up, as in the paper; 4 where the length is not known.
        sample_share: The share of epsilon for the samples. With 0 nothing is sampled, the blocks have the whole budget,
            and steps outside whole epochs are left out of the counts ([MDP] Corollary 1; best for a single party).
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
        if self.horizon is not None and self.window is not None:
            raise ParameterError(
                "give horizon (counts since the beginning) or window (counts of the last steps), not both"
            )
        for name in ("horizon", "window"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), b, MAX_TIME)
        if whole_number("rows", self.rows, 1, 255) % 2 == 0:
            raise ParameterError(f"rows must be odd, so that they have a median, not {self.rows}")
        none = self.sample_share == 0 and not isinstance(self.sample_share, bool)  # 0 and 0.0 are one stream
        object.__setattr__(self, "sample_share", 0.0 if none else probability("sample_share", self.sample_share))
        if self.columns is None:
            object.__setattr__(self, "columns", 4 if self.doubling else math.isqrt(self.levels - 1) + 1)
        whole_number("columns", self.columns, 1, MAX_CELLS)
        if self.samples:
            keep_probability(2, self.epsilon_sample)
        whole_number("the cells of the largest block", self.shape.cells[-1], 1, MAX_CELLS)

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
            cells = self.tracks * self.rows * (self.columns or 1)
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
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every cell of a sketch; if the length is not known, in the last phase.

        A phase of fewer levels has as much less noise: a step is in fewer blocks.
        """
        return 2 * self.rows / self.epsilon_level

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

    def width(self, level: int) -> int:
        """The columns of the sketch of a block."""
        assert self.columns is not None
        return self.columns << level

    @cached_property
    def shape(self) -> Shape:
        """The sizes of blocks, and their noise."""
        levels = self.levels
        return Shape(
            self.epoch_steps,
            tuple(self.tracks * self.rows * self.width(level) for level in range(levels)),
            tuple(self.scale * Fraction(1 + level, levels) for level in range(levels)),
            self.samples,
            self.doubling,
        )

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
