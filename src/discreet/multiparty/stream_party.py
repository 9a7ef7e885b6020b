"""One party of a stream: what it samples, counts and sends, and what it must not lose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet.errors import (
    CorruptStateError,
    DataError,
    DiscreetError,
    IncompatibleSummaryError,
    OldStateError,
    ParameterError,
)
from discreet.events.items import arrow_chunks, is_arrow, listed, prepare_column
from discreet.events.universe import Universe, Words
from discreet.multiparty.packets import MAX_TIME, Block, Packet, check_size, closed_blocks, write_packet
from discreet.multiparty.wire import MAX_CELLS, MAX_NUMBER, Message, pack_parts, unpack_parts
from discreet.noise import RandomSource, system_source
from discreet.privacy.checks import whole_number
from discreet.privacy.steps import Steps
from discreet.releases.payment import begin, check_payer
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from discreet.multiparty.block_stream import BlockStream
    from discreet.privacy.ledger import Account

PARTY_STATE = 201
_CHUNK = 2**20  # steps that are worked on at once


class StreamParty:
    """One party of a stream. Trusted with its own items: its memory and its state hold raw summaries, NOT PRIVATE.

    Store the state (`to_bytes`) before handing a message on. It contains the message; a party that went on from an
    older state would draw new noise for a block that was sent, and two noisy copies lose twice as much. A ledger
    refuses such a state (`OldStateError`); anyone who lost the newer one goes on as another party, which starts after
    the last step told.
    """

    def __init__(
        self,
        stream: BlockStream,
        number: int,
        start: int = 0,
        source: RandomSource | None = None,
        ledger: Account | None = None,
    ) -> None:
        check_payer(ledger, None, source)
        self.stream = stream
        self.number = whole_number("number", number, 0, MAX_NUMBER)
        self._joined = self._time = self._told = whole_number("start", start, 0, MAX_TIME)
        self._source = source or system_source()
        self._seeded = self._source.seeded
        self._open = self._empty_now()
        self._last: bytes | None = None
        self._ledger, self._charged, self._unregistered = ledger, False, False
        self._steps = Steps.under(ledger, self.charge_id)

    @property
    def charge_id(self) -> str:
        """The id under which all that the party ever sends is charged."""
        return self.stream.charge_id(self.number)

    @property
    def last_message(self) -> bytes | None:
        """The latest message, to send again; None before the first."""
        self._register()
        return self._last

    def begin(self, save: Callable[[], None]) -> None:
        """Charge for all that the party will ever send; for callers that keep a state from the beginning.

        Args:
            save: Writes the state, after the charge and before the charge counts as used: after a crash in between the
                same call begins once more, at no cost. A party that has begun, and whose state is not here, is refused.
        """
        if not self._pay(save) and self._ledger is not None:
            raise ParameterError("this party has already started the stream; continue from its state")

    def _pay(self, save: Callable[[], None] | None = None) -> bool:
        """Charge, once, for all that the party will ever send; whether it begins now."""
        if self._ledger is None or self._charged:
            return False

        def first() -> None:
            self._steps = Steps.under(self._ledger, self.charge_id)  # the messages so far were sent without a ledger
            if save is not None:
                save()

        begins = begin(self._ledger, self.charge_id, self.stream.bill, b"begun", save=first)
        self._charged = True
        return begins

    def _look(self) -> None:
        """Refuse a state that is older than what was sent, before anything is drawn."""
        if self._ledger is not None:
            with self._refused():
                self._steps.look(self._ledger, self._steps.number, self._last)
            self._unregistered = False

    def _register(self) -> None:
        """Have the latest message in the ledger before anyone sees it."""
        if self._unregistered and self._ledger is not None and self._last is not None:
            with self._refused():
                self._steps.store(self._ledger, self._steps.number, self._last)
            self._unregistered = False

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except OldStateError as error:
            raise OldStateError(
                f"the state of party {self.number} has sent {error.tick} messages, but {error.known} were sent: it is "
                "an old copy. Use the newer state. If it is lost, continue as another party (another number, "
                "start=the last step sent), which is charged separately",
                tick=error.tick,
                known=error.known,
            ) from None

    @property
    def time(self) -> int:
        """The last step that was worked on."""
        return self._time

    def feed(self, items: Any) -> bytes | None:
        """The items of the next steps, one a step, None where nothing arrived.

        Returns a message if a step was sampled or a block ended, which does not depend on items, and the first time: an
        aggregator that knows of a party knows how unsure its silence is. Else None.
        """
        return self.feed_until(items, None)

    def advance(self, time: int) -> bytes | None:
        """Nothing arrived up to and including this step."""
        return self.feed_until([], time)

    def feed_until(self, items: Any, time: int | None, *, save: Callable[[], None] | None = None) -> bytes | None:
        """The items of the next steps, and nothing after them up to and including step `time`; one message at most.

        `save` is called after the draw and before a message is registered in the ledger: a state written there is
        never older than what was sent.
        """
        words, present = _words(self.stream.universe, items)
        told = self._time + len(words)
        end = told if time is None else whole_number("time", time, told, MAX_TIME)
        if end > self.stream.last_step:
            raise ParameterError(f"the stream ends with step {self.stream.last_step}")
        check_size(self._told, end, self.stream.shape)
        if end - self._time > MAX_CELLS:
            raise ParameterError(f"too many steps for one message (at most {MAX_CELLS}); send them in smaller batches")
        self._pay()
        self._look()
        message = self._work(np.pad(words, (0, end - told)), np.pad(present, (0, end - told)))
        if message is not None and self._ledger is not None:
            self._steps.drawn()
            self._unregistered = True
        if save is not None:
            save()
        self._register()
        return message

    def _work(self, words: Words, present: npt.NDArray[np.bool_]) -> bytes | None:
        steps: list[Words] = [np.zeros(0, np.uint64)]
        answers: list[npt.NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
        blocks: dict[Block, Any] = {}
        position = 0
        while position < len(words):
            take = min(self.stream.epoch_steps - self._time % self.stream.epoch_steps, len(words) - position, _CHUNK)
            here = slice(position, position + take)
            sampled, answered = self.sample(words[here], present[here])
            steps.append(sampled)
            answers.append(answered)
            items = words[here][present[here]]
            for track in range(self.stream.tracks if len(items) else 0):
                nodes = self.stream.nodes(items, track)
                for sketches in self._open:
                    sketches[track].update(nodes)
            self._time += take
            position += take
            if self._time % self.stream.epoch_steps == 0:
                self._close(blocks)
        packet = Packet(self._told, self._time, self._joined, np.concatenate(steps), np.concatenate(answers), blocks)
        if not len(packet.steps) and not blocks and (self._last is not None or self._time == self._told):
            # What is told with the next message. Nothing is lost: `_told` stays where it is.
            return None
        self._told = self._time
        payload = write_packet(packet, self.stream.shape)
        self._last = self.stream._pack(Message(self.number, 0, payload, self._seeded))
        return self._last

    def sample(self, words: Words, present: npt.NDArray[np.bool_]) -> tuple[Words, npt.NDArray[np.uint8]]:
        """The sampled ones of the next steps, and the answers for them.

        The true bit is an entry of the Hadamard matrix, and is kept with probability e^eps/(1 + e^eps); for nothing the
        answer is a fair coin, which loses less against either.
        """
        stream = self.stream
        if not stream.samples:
            return np.zeros(0, np.uint64), np.zeros(0, np.uint8)
        # Drawn before the items are looked at, for all steps alike.
        chosen = np.flatnonzero(self._source.bernoulli(stream.sample_rate, len(words)))
        steps = (self._time + 1 + chosen).astype(np.uint64)
        kept = self._source.bernoulli(stream.keep, len(chosen))
        coins = self._source.uniform_integers(2, len(chosen))
        tracks, truth = stream.track_of(self.number, steps), np.zeros(len(chosen), np.uint8)
        for track in range(stream.tracks):
            mine = tracks == track
            nodes, key = stream.nodes(words[chosen[mine]], track), stream.row_key(self.number, track)
            truth[mine] = _native.hadamard_bits(steps[mine], nodes, stream.order(track), key)
        return steps, np.where(present[chosen], truth ^ (1 - kept), coins).astype(np.uint8)

    def _close(self, blocks: dict[Block, Any]) -> None:
        """Tell, with noise, of the blocks that end with the current step, and open the next ones."""
        shape, ended = self.stream.shape, self._time // self.stream.epoch_steps
        for block in closed_blocks(self._time - 1, self._time, shape):
            blocks[block] = self.stream.release(self._open[block.level], block, self._source)
            self._open[block.level] = self._empty(Block(block.level, ended >> block.level))
        for level in range(len(self._open), self._levels_now()):  # a longer phase begins, and all blocks end with one
            self._open.append(self._empty(Block(level, ended >> level)))

    def _levels_now(self) -> int:
        return self.stream.shape.levels(self._time // self.stream.epoch_steps)

    def _empty(self, block: Block) -> list[Any]:
        """The summaries of a block, one a track."""
        return [self.stream.summary(self.number, block, track) for track in range(self.stream.tracks)]

    def _empty_now(self) -> list[list[Any]]:
        first = self._time // self.stream.epoch_steps
        return [self._empty(Block(level, first >> level)) for level in range(self._levels_now())]

    def _forms(self, open_blocks: list[list[Any]]) -> list[list[tuple[int, ...]]]:
        return [[self.stream.form(summary) for summary in summaries] for summaries in open_blocks]

    def to_bytes(self) -> bytes:
        """The whole state. Not private: it holds summaries without noise."""
        header = {
            "digest": self.stream.state_digest,
            "number": self.number,
            "joined": self._joined,
            "time": self._time,
            "told": self._told,
            "seeded": self._seeded,
            "sent": self._last is not None,
            # Only where a ledger has any: without one, states are as they always were.
            **({"steps": self._steps.to_dict()} if self._steps.number else {}),
        }
        sketches = [sketch.to_bytes() for sketches in self._open for sketch in sketches]
        parts = [json.dumps(header, sort_keys=True).encode(), self._last or b"", *sketches]
        return seal_state(PARTY_STATE, 1, pack_parts(parts))

    @classmethod
    def _restored(cls, stream: BlockStream, data: bytes, ledger: Account | None) -> StreamParty:
        _, payload = open_state(data, PARTY_STATE, 1)
        try:
            head, message, *sketches = unpack_parts(payload, 2 + stream.levels * stream.tracks)
            header = json.loads(head)
            stream.check_state(header)
            party = cls(stream, header["number"], header["joined"])
            party._time = whole_number("time", header["time"], party._joined, MAX_TIME)
            party._told = whole_number("told", header["told"], party._joined, party._time)
            party._seeded = bool(header["seeded"])
            party._last = bytes(message) if header["sent"] else None
            party._ledger = ledger
            party._steps = Steps.from_dict(header["steps"]) if "steps" in header else Steps(party.charge_id)
            read = [stream.read_summary(sketch) for sketch in sketches]
            party._open = [read[i : i + stream.tracks] for i in range(0, len(read), stream.tracks)]
            if party._forms(party._open) != party._forms(party._empty_now()):
                raise CorruptStateError("the state has sketches of other blocks")
        except (CorruptStateError, IncompatibleSummaryError):
            raise
        except (DiscreetError, KeyError, TypeError, ValueError):
            raise CorruptStateError("the state of a party cannot be read") from None
        party._steps.check_ledger(ledger)
        party._look()
        return party

    def __repr__(self) -> str:
        return f"StreamParty(number={self.number}, time={self._time}) [NOT PRIVATE]"


def _words(universe: Universe, items: Any) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The word of every step, 0 where nothing arrived, and where something did."""
    import pyarrow as pa

    column = prepare_column(items)
    if isinstance(column, np.ndarray):
        words = universe.words(column)
        return words, np.ones(len(words), np.bool_)
    if is_arrow(column):
        chunks = list(arrow_chunks(column))
        if any(pa.types.is_struct(chunk.type) for chunk in chunks):
            raise DataError(f"the {type(column).__name__} is a table; a party has one column of items")
        present = np.concatenate([np.zeros(0, np.bool_), *(np.asarray(chunk.is_valid()) for chunk in chunks)])
        column = pa.chunked_array(chunks) if chunks else []
    else:
        column = listed(column)
        present = np.array([item is not None for item in column], np.bool_)
    found = universe.words(column, nulls="skip")
    # One word for many steps would be broadcast to all of them.
    if len(found) != int(present.sum()):
        raise DataError(
            "cannot tell at which steps nothing arrived; mark them with None, or with nulls in an Arrow column"
        )
    words = np.zeros(len(present), np.uint64)
    words[present] = found
    return words, present
