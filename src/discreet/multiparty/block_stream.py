"""What streams share: epochs and blocks of time, the split of the budget over them, samples of steps, the aggregator.

A step of a party is in one block of each level and is sampled at most once, so all that the party ever sends spends

    epsilon = epsilon_sample + levels * tracks * epsilon_level        (exact fractions)

Which summary a block has, and with how much noise it is told, is a protocol's own matter. The aggregator takes packets
in any order, estimates for any step, and knows who was silent.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass, field, replace
from discreet.errors import IncompatibleSummaryError, MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import Protocol
from discreet.multiparty.aggregator import Receiver, liars_among
from discreet.multiparty.estimates import Estimates, Liars, Numbers, most_of
from discreet.multiparty.packets import MAX_TIME, Block, Packet, Shape, Spans, block_cover, levels_for, read_packet
from discreet.multiparty.stream_party import StreamParty
from discreet.multiparty.wire import MAX_CELLS, MAX_NUMBER, Message, pack_parts, unpack_parts
from discreet.noise import RandomSource
from discreet.noise.response import keep_probability
from discreet.privacy import Guarantee
from discreet.privacy.checks import probability, whole_number, whole_or_none

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account


@dataclass(frozen=True, repr=False, eq=False)
class StreamEstimates(Estimates):
    """Counts of items in the steps (since, time], of what the parties told about.

    Attributes:
        since, time: The steps that were asked for.
        coverage: For every party that was heard or expected, the share of these steps that it told about.
    """

    since: int = 0
    time: int = 0
    coverage: Mapping[int, float] = field(default_factory=dict)

    @property
    def absent(self) -> tuple[int, ...]:
        """The parties that told about none of these steps."""
        return tuple(number for number, share in self.coverage.items() if share == 0)


@dataclass
class _Voice:
    """What one party has told."""

    spans: Spans = field(default_factory=Spans)
    packets: dict[tuple[int, int], tuple[bytes, Packet]] = field(default_factory=dict)
    blocks: dict[Block, Packet] = field(default_factory=dict)


class StreamAggregator(Receiver):
    """Receives packets late, repeated or out of order, and estimates counts up to any step.

    Nobody's packet changes what others told. It has no clock of its own: with a window, `advance(time)` drops what no
    window from then on can need, and keeps memory bounded.
    """

    protocol: BlockStream
    _state_family = 202

    def __init__(self, protocol: BlockStream, expected: Iterable[int] = ()) -> None:
        super().__init__(protocol)
        self._voices: dict[int, _Voice] = {}
        self._begin = 0
        self._expect(expected)

    def _expect(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._voices[whole_number("an expected number", number, 0, MAX_NUMBER)] = _Voice()

    # ---- packets -------------------------------------------------------------------------------------------------

    def _take(self, message: Message, said: Packet, data: bytes) -> bool:
        """A second, different packet about a step is refused; what is repeated, or too late, is left out."""
        voice, span = self._voices.get(message.number, _Voice()), (said.after, said.to)
        known = voice.packets.get(span)
        if known is not None and known[0] == bytes(data):
            return False
        if voice.spans.overlaps(*span):
            raise MessageError("the party has already reported these steps", "duplicate")
        if said.to <= self._begin:
            return False
        voice.spans.add(*span)
        voice.packets[span] = bytes(data), said
        voice.blocks.update(dict.fromkeys(said.blocks, said))
        self._voices[message.number] = voice
        self._seeded |= message.seeded
        return True

    def advance(self, time: int) -> None:
        """It is this step now: with a window, forget what lies wholly before it. Time does not go back."""
        time = whole_number("time", time, 0, MAX_TIME)
        if self.protocol.window is None or time - self.protocol.window <= self._begin:
            return
        self._begin = time - self.protocol.window
        for voice in self._voices.values():
            for span in [span for span in voice.packets if span[1] <= self._begin]:
                _, packet = voice.packets.pop(span)
                for block in packet.blocks:
                    del voice.blocks[block]
            voice.spans.forget(min((span[0] for span in voice.packets), default=MAX_TIME))

    # ---- estimates -----------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """The last step that half of the parties heard told about, and no less than `advance` said.

        A party may say what it likes about the time, so it takes as many to move it.
        """
        ends = sorted(max(to for _, to in spans) for spans in (list(v.spans) for v in self._voices.values()) if spans)
        told = ends[(len(ends) - 1) // 2] if ends else 0
        return max(told, self._begin + (self.protocol.window or 0) if self._begin else 0)

    @property
    def parties(self) -> int:
        """How many parties were heard."""
        return sum(any(True for _ in voice.spans) for voice in self._voices.values())

    def estimate(self, items: Any, time: int | None = None) -> StreamEstimates:
        """Counts of the items in the window that ends with step `time`, or since the beginning.

        By default up to `time`, the last step that half of the parties told about. Packets about later steps do not
        matter. Estimates are unbiased for the steps that parties told about, and `coverage` says which share that is:
        nothing is made up for a party that joined late, fell silent or lost a packet. Where nothing is sampled
        (`sample_share=0`), the steps outside whole epochs are missing in them; `shortfall` is how many, of all parties.
        """
        since, time = self._span(time)
        return self._counts(self.protocol.tracks - 1, self.protocol.universe.words(items), since, time)

    def _counts(self, track: int, words: Words, since: int, time: int) -> StreamEstimates:
        """What a track counts of these words in the steps (since, time]."""
        values, variances, missing, excess = np.zeros(len(words)), np.zeros(len(words)), 0.0, 0.0
        for number, voice in self._voices.items():
            low, high = self._add(number, voice, since, time, track, words, values, variances)
            missing, excess = missing + low, excess + high
        coverage = {
            number: voice.spans.count(since, time) / max(1, time - since)
            for number, voice in sorted(self._voices.items())
        }
        return StreamEstimates(
            values, variances, self.guarantee, missing, excess, since=since, time=time, coverage=coverage
        )

    def liars(self, items: Any, share: float = 0.01, time: int | None = None) -> Liars:
        """How far each estimate would move if this many of the parties had not been heard: the most that any this
        many add and take away, given what was heard."""
        since, time = self._span(time)
        words, count = self.protocol.universe.words(items), liars_among(share, self.parties)
        parts, track = np.zeros((len(self._voices), len(words))), self.protocol.tracks - 1
        for part, (number, voice) in zip(parts, self._voices.items(), strict=True):
            self._add(number, voice, since, time, track, words, part, np.zeros(len(words)))
        return Liars(share, count, *most_of(parts, count))

    def _span(self, time: int | None) -> tuple[int, int]:
        """The steps (since, time] that are asked for."""
        time = self.time if time is None else whole_number("time", time, 0, MAX_TIME)
        since = 0 if self.protocol.window is None else max(0, time - self.protocol.window)
        if since < self._begin:
            raise ParameterError(
                f"what came before step {self._begin + 1} is no longer kept; the window would begin at {since + 1}"
            )
        return since, time

    def _add(
        self,
        number: int,
        voice: _Voice,
        since: int,
        time: int,
        track: int,
        words: Words,
        values: Numbers,
        variances: Numbers,
    ) -> tuple[float, float]:
        """Add one party's blocks of complete epochs, and its samples of all other steps.

        Returns how much of a count is missing at most, and how much too high it is on average.
        """
        (blocks, spans), missing, excess = self._parts(voice, since, time), 0.0, 0.0
        for block in blocks:
            value, variance = self.protocol.block_counts(number, block, voice.blocks[block].blocks[block], track, words)
            values += value
            variances += variance
            low, high = self.protocol.bias(block)
            missing, excess = missing + low, excess + high
        unsure = self._unsure(voice, spans)
        if not self.protocol.samples:
            return missing + unsure, excess
        # Every sampled step of the spans, which are in order, stands for b steps: +-b c.
        packets = [packet for _, packet in voice.packets.values()]
        rows = np.concatenate([np.zeros(0, np.uint64), *(packet.steps for packet in packets)])
        bits = np.concatenate([np.zeros(0, np.uint8), *(packet.answers for packet in packets)])
        after, to = np.array(spans, np.uint64).reshape(-1, 2).T
        place = np.searchsorted(after, rows)  # of the span after the one that a step may be in
        inside = (place > 0) & (rows <= np.append(np.uint64(0), to)[place])
        inside[inside] = self.protocol.track_of(number, rows[inside]) == track
        order, key = self.protocol.order(track), self.protocol.row_key(number, track)
        values += self._worth * _native.hadamard_sums(rows[inside], bits[inside], words, order, key)
        # A step is sampled with probability 1/b, so its variance is b c^2 (less 1 for the item's own) whether it was
        # sampled or not: with few steps there may be no sample at all, which is no reason to be sure.
        variances += self._worth**2 * unsure / self.protocol._steps_a_sample
        return missing, excess

    def _parts(self, voice: _Voice, since: int, time: int) -> tuple[list[Block], list[tuple[int, int]]]:
        """The blocks that tell about (since, time], and the stretches without one, in order."""
        blocks, b = list(self._cover(voice, since, time)), self.protocol.epoch_steps
        starts = [since, *(block.end * b for block in blocks)]
        ends = [*(block.first * b for block in blocks), time]
        return blocks, [span for span in zip(starts, ends, strict=True) if span[0] < span[1]]

    def _unsure(self, voice: _Voice, spans: list[tuple[int, int]]) -> int:
        """How many steps of stretches without a block a party told about, or passed over in silence."""
        return sum(voice.spans.count(*span) for span in spans) + self._silent(voice, *spans[-1]) if spans else 0

    def _cover(self, voice: _Voice, since: int, time: int) -> Iterator[Block]:
        """The blocks of a party that together have its complete epochs in (since, time], as far as they were heard."""
        b = self.protocol.epoch_steps

        def known(block: Block) -> bool:
            packet = voice.blocks.get(block)
            # A block that began before the party did holds less than it says: its smaller blocks tell the rest.
            return packet is not None and (packet.joined <= block.first * b or block.level == 0)

        # Epochs of which no block was heard are not looked through: before a party joined there may be millions.
        first = max(-(-since // b), min((block.first for block in voice.blocks), default=0))
        end = min(time // b, max((block.end for block in voice.blocks), default=0))
        told = sorted(block.j for block in voice.blocks if block.level == 0)  # a packet with a block has its last epoch
        return block_cover(first, end, self.protocol.levels, known, told)

    @property
    def _worth(self) -> float:
        """b c, c = 1/(2 keep - 1): what a sample stands for."""
        return self.protocol._steps_a_sample / float(2 * self.protocol.keep - 1)

    def _silent(self, voice: _Voice, after: int, to: int) -> int:
        """The steps at the end that a party may have passed over in silence, as none was sampled.

        At the end of an epoch it speaks: who has not told about the one before is taken for absent.
        """
        last = max((end for _, end in voice.spans), default=0)
        began = to - to % self.protocol.epoch_steps
        return max(0, to - max(last, after)) if last >= began else 0

    # ---- states --------------------------------------------------------------------------------------------------

    def _content(self) -> bytes:
        header = {
            "digest": self.protocol.state_digest,
            "begin": self._begin,
            "bytes": self._bytes,
            "expected": sorted(self._voices),
        }
        packets = [message for voice in self._voices.values() for message, _ in voice.packets.values()]
        return pack_parts([json.dumps(header).encode(), *packets])

    def _refill(self, payload: bytes, version: int) -> None:
        self._check_version(version)
        head, *packets = unpack_parts(payload, len(payload))
        header = json.loads(head)
        self.protocol.check_state(header)
        self._expect(header["expected"])
        self._begin = whole_number("begin", header["begin"], 0, MAX_TIME)
        for packet in packets:
            self.receive(packet)
        self._bytes = whole_number("bytes", header["bytes"], 0)


class BlockStream(Protocol, ABC):
    """The public parameters of a stream whose parties tell of blocks of epochs, and of sampled steps."""

    epoch_steps: int
    horizon: int | None
    window: int | None
    sample_share: float

    _listener: ClassVar[type[Any]] = StreamAggregator

    def _check(self) -> None:
        b = whole_number("epoch_steps", self.epoch_steps, 1, 2**32)
        if self.horizon is not None and self.window is not None:
            raise ParameterError(
                "give horizon (counts since the beginning) or window (counts of the last steps), not both"
            )
        for name in ("horizon", "window"):
            whole_or_none(name, getattr(self, name), b, MAX_TIME)
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
        return int(self.universe.word_bits)

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
            raise MessageError("the packet covers steps after the end of the stream", "range")
        return opened, packet

    @property
    def state_digest(self) -> str:
        """Of the stream and its parameters: what the states of its parties and aggregators begin with."""
        return (self.round_digest + self.digest).hex()

    def check_state(self, header: dict[str, Any]) -> None:
        """Refuse the state of another stream."""
        if header["digest"] != self.state_digest:
            raise IncompatibleSummaryError("the state belongs to another stream, or one with other parameters")

    # ---- the two sides -------------------------------------------------------------------------------------------

    def party(
        self, number: int, *, start: int = 0, ledger: Account | None = None, source: RandomSource | None = None
    ) -> StreamParty:
        """A party that begins after step `start`; its number is public and no other party has it.

        With a ledger the budget is charged once, and every message is registered there before it is returned.
        """
        return StreamParty(self, number, start, source, ledger)

    def restore_party(self, data: bytes, *, ledger: Account | None = None) -> StreamParty:
        """A party that goes on from its state. With a ledger, a state older than its last message is refused."""
        return StreamParty._restored(self, data, ledger)

    def aggregator(self, expected: Iterable[int] = ()) -> StreamAggregator:
        """An aggregator; `expected` parties are listed as absent until they are heard."""
        made: StreamAggregator = self._listener(self, expected)
        return made

    def restore(self, data: bytes) -> StreamAggregator:
        """An aggregator that goes on from its state."""
        restored: StreamAggregator = self._listener._restored(self, data)
        return restored
