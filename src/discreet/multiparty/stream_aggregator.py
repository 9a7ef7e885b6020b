"""The aggregator of a stream: packets in any order, estimates for any step, and who was silent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _native
from discreet.errors import CorruptStateError, DiscreetError, IncompatibleSummaryError, MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import MAX_NUMBER
from discreet.multiparty._stream import BlockStream
from discreet.multiparty.aggregator import Receipt, liars_among, receive_all
from discreet.multiparty.epochs import Block, Spans, block_cover
from discreet.multiparty.estimates import Estimates, Liars, Numbers, most_of
from discreet.multiparty.messages import pack_parts, unpack_parts
from discreet.multiparty.packets import MAX_TIME, Packet
from discreet.privacy import Guarantee
from discreet.privacy.checks import whole_number
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["StreamAggregator", "StreamEstimates"]

AGGREGATOR_STATE = 202


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


class StreamAggregator:
    """Receives packets late, repeated or out of order, and estimates counts up to any step.

    Nobody's packet changes what others told. It has no clock of its own: with a window, `advance(time)` drops what no
    window from then on can need, and keeps memory bounded.
    """

    def __init__(self, stream: BlockStream, expected: Iterable[int] = ()) -> None:
        self.stream = stream
        self._voices: dict[int, _Voice] = {
            whole_number("an expected number", number, 0, MAX_NUMBER): _Voice() for number in expected
        }
        self._begin = 0
        self.bytes_received = 0
        self._seeded = False

    # ---- packets -------------------------------------------------------------------------------------------------

    def receive(self, message: bytes) -> bool:
        """Take a packet; False if it was repeated or came too late to matter, and nothing changed.

        Raises `MessageError`, and stays as it was, for what is not a packet of this stream, and for a second, different
        packet about a step (reason "duplicate").
        """
        envelope, packet = self.stream.open(message)
        voice = self._voices.get(envelope.number, _Voice())
        known = voice.packets.get((packet.after, packet.to))
        if known is not None and known[0] == bytes(message):
            return False
        if voice.spans.overlaps(packet.after, packet.to):
            raise MessageError("the party has told about these steps already", "duplicate")
        self.bytes_received += len(message)
        if packet.to <= self._begin:
            return False
        voice.spans.add(packet.after, packet.to)
        voice.packets[packet.after, packet.to] = bytes(message), packet
        voice.blocks.update(dict.fromkeys(packet.blocks, packet))
        self._voices[envelope.number] = voice
        self._seeded |= envelope.seeded
        return True

    def receive_many(self, messages: Iterable[bytes]) -> Receipt:
        """Take what can be taken, and say what was not and why."""
        return receive_all(self.receive, messages)

    def advance(self, time: int) -> None:
        """It is this step now: with a window, forget what lies wholly before it. Time does not go back."""
        time = whole_number("time", time, 0, MAX_TIME)
        if self.stream.window is None or time - self.stream.window <= self._begin:
            return
        self._begin = time - self.stream.window
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
        return max(told, self._begin + (self.stream.window or 0) if self._begin else 0)

    @property
    def parties(self) -> int:
        """How many parties were heard."""
        return sum(any(True for _ in voice.spans) for voice in self._voices.values())

    @property
    def guarantee(self) -> Guarantee:
        """What the messages of a party promise."""
        return self.stream._guarantee(self._seeded)

    def estimate(self, items: Any, time: int | None = None) -> StreamEstimates:
        """Counts of the items in the window that ends with step `time`, or since the beginning.

        By default up to `time`, the last step that half of the parties told about. Packets about later steps do not
        matter. Estimates are unbiased for the steps that parties told about, and `coverage` says which share that is:
        nothing is made up for a party that joined late, fell silent or lost a packet. Where nothing is sampled
        (`sample_share=0`), the steps outside whole epochs are missing in them; `shortfall` is how many, of all parties.
        """
        since, time = self._span(time)
        return self._counts(self.stream.tracks - 1, self.stream.domain.words(items), since, time)

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
        """How far each estimate would move if so many of the parties had not been heard: the most that any so many add
        and take away, given what was heard."""
        since, time = self._span(time)
        words, count = self.stream.domain.words(items), liars_among(share, self.parties)
        parts, track = np.zeros((len(self._voices), len(words))), self.stream.tracks - 1
        for part, (number, voice) in zip(parts, self._voices.items(), strict=True):
            self._add(number, voice, since, time, track, words, part, np.zeros(len(words)))
        return Liars(share, count, *most_of(parts, count))

    def _span(self, time: int | None) -> tuple[int, int]:
        """The steps (since, time] that are asked for."""
        time = self.time if time is None else whole_number("time", time, 0, MAX_TIME)
        since = 0 if self.stream.window is None else max(0, time - self.stream.window)
        if since < self._begin:
            raise ParameterError(
                f"what came before step {self._begin + 1} is forgotten; the window would begin at {since + 1}"
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
            value, variance = self.stream.block_counts(number, block, voice.blocks[block].blocks[block], track, words)
            values += value
            variances += variance
            low, high = self.stream.bias(block)
            missing, excess = missing + low, excess + high
        unsure = self._unsure(voice, spans)
        if not self.stream.samples:
            return missing + unsure, excess
        self._add_samples(number, voice, spans, track, words, values)
        # A step is sampled with probability 1/b, so its variance is b c^2 (less 1 for the item's own) whether it was
        # sampled or not: with few steps there may be no sample at all, which is no reason to be sure.
        variances += self._worth**2 * unsure / self.stream._steps_a_sample
        return missing, excess

    def _parts(self, voice: _Voice, since: int, time: int) -> tuple[list[Block], list[tuple[int, int]]]:
        """The blocks that tell about (since, time], and the stretches without one, in order."""
        blocks, b = list(self._cover(voice, since, time)), self.stream.epoch_steps
        starts = [since, *(block.end * b for block in blocks)]
        ends = [*(block.first * b for block in blocks), time]
        return blocks, [span for span in zip(starts, ends, strict=True) if span[0] < span[1]]

    def _unsure(self, voice: _Voice, spans: list[tuple[int, int]]) -> int:
        """How many steps of stretches without a block a party told about, or passed over in silence."""
        return sum(voice.spans.count(*span) for span in spans) + self._silent(voice, *spans[-1]) if spans else 0

    def _cover(self, voice: _Voice, since: int, time: int) -> Iterator[Block]:
        """The blocks of a party that together have its complete epochs in (since, time], as far as they were heard."""
        b = self.stream.epoch_steps

        def known(block: Block) -> bool:
            packet = voice.blocks.get(block)
            # A block that began before the party did holds less than it says: its smaller blocks tell the rest.
            return packet is not None and (packet.joined <= block.first * b or block.level == 0)

        # Epochs of which no block was heard are not looked through: before a party joined there may be millions.
        first = max(-(-since // b), min((block.first for block in voice.blocks), default=0))
        end = min(time // b, max((block.end for block in voice.blocks), default=0))
        told = sorted(block.j for block in voice.blocks if block.level == 0)  # a packet with a block has its last epoch
        return block_cover(first, end, self.stream.levels, known, told)

    @property
    def _worth(self) -> float:
        """b c, c = 1/(2 keep - 1): what a sample stands for."""
        return self.stream._steps_a_sample / float(2 * self.stream.keep - 1)

    def _add_samples(
        self,
        number: int,
        voice: _Voice,
        spans: list[tuple[int, int]],
        track: int,
        words: Words,
        values: Numbers,
    ) -> None:
        """Every sampled step of the spans, which are in order, stands for b steps: +-b c."""
        packets = [packet for _, packet in voice.packets.values()]
        rows = np.concatenate([np.zeros(0, np.uint64), *(packet.steps for packet in packets)])
        bits = np.concatenate([np.zeros(0, np.uint8), *(packet.answers for packet in packets)])
        after, to = np.array(spans, np.uint64).reshape(-1, 2).T
        place = np.searchsorted(after, rows)  # of the span after the one that a step may be in
        inside = (place > 0) & (rows <= np.append(np.uint64(0), to)[place])
        rows, bits = rows[inside], bits[inside]
        mine = self.stream.track_of(number, rows) == track
        order, key = self.stream.order(track), self.stream.row_key(number, track)
        values += self._worth * _native.hadamard_sums(rows[mine], bits[mine], words, order, key)

    def _silent(self, voice: _Voice, after: int, to: int) -> int:
        """The steps at the end that a party may have passed over in silence, as none was sampled.

        At the end of an epoch it speaks: who has not told about the one before is taken for absent.
        """
        last = max((end for _, end in voice.spans), default=0)
        began = to - to % self.stream.epoch_steps
        return max(0, to - max(last, after)) if last >= began else 0

    # ---- states --------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole state: the packets that still matter. It holds nothing but what was sent."""
        header = {
            "digest": (self.stream.round_digest + self.stream.digest).hex(),
            "begin": self._begin,
            "bytes": self.bytes_received,
            "expected": sorted(self._voices),
        }
        packets = [message for voice in self._voices.values() for message, _ in voice.packets.values()]
        return seal_state(AGGREGATOR_STATE, 1, pack_parts([json.dumps(header).encode(), *packets]))

    @classmethod
    def _restored(cls, stream: BlockStream, data: bytes) -> Self:
        _, payload = open_state(data, AGGREGATOR_STATE, 1)
        try:
            head, *packets = unpack_parts(payload, len(payload))
            header = json.loads(head)
            if header["digest"] != (stream.round_digest + stream.digest).hex():
                raise IncompatibleSummaryError("the state belongs to another stream, or one with other parameters")
            aggregator = cls(stream, header["expected"])
            aggregator._begin = whole_number("begin", header["begin"], 0, MAX_TIME)
            for packet in packets:
                aggregator.receive(packet)
            aggregator.bytes_received = whole_number("bytes", header["bytes"], 0)
        except IncompatibleSummaryError:
            raise
        except (DiscreetError, KeyError, TypeError, ValueError):
            raise CorruptStateError("the state of an aggregator cannot be read") from None
        return aggregator

    def __repr__(self) -> str:
        return f"StreamAggregator({self.parties} parties, {self.bytes_received} bytes)"
