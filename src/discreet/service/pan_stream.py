"""Streams whose memory and disk are private themselves: no raw event is ever written.

One file has everything: the pan-private state and the last tick with its release. It is replaced as a whole, and the
old one overwritten, before a request is acknowledged. The ledger and the store get a release after the file has it;
after a crash in between they get it from there.

No key of a request is kept: how many there were, how many rows they had and what digest their bodies have would tell
what the state hides. A retry counts once because it sets the same elements again. Nothing else is kept of requests,
and the times of the file tell only whether one came in the last seconds (docs/privacy/service.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import pan
from discreet.errors import CorruptStateError, DiscreetError
from discreet.privacy import Element, Guarantee
from discreet.privacy.steps import Steps
from discreet.releases.payment import Bill, begin
from discreet.service.definitions import StreamDefinition
from discreet.service.problems import gone
from discreet.service.runs import CONFIDENCE
from discreet.service.store import Kept
from discreet.service.streams import Arrival, LiveStream, Surroundings, disk_full, text_of
from discreet.storage import locked, open_state, seal_state

_FAMILY = 152
_REST_SECONDS = 10.0  # between two writes of the file when nobody comes
_EVENTS = (
    "every event is an element of its own, by a random number that is drawn when it comes and forgotten, or by the "
    "Idempotency-Key and the place in its request"
)


def estimator(definition: StreamDefinition, run: int) -> pan.DistinctCount:
    """The pan-private state of a run, before any event. Events are counted as elements of their own."""
    return pan.DistinctCount(budget=definition.budget_of(run), releases=definition.ticks, confidence=CONFIDENCE)


class PanStream(LiveStream):
    """A stream that keeps no event."""

    def __init__(self, name: str, definition: StreamDefinition, around: Surroundings) -> None:
        super().__init__(name, definition, around)
        self.accepted = self.refused = None  # true counts: they would be in memory
        self._stack = ExitStack()
        self._file = self._stack.enter_context(locked(self.folder / "pan.state"))
        self._token = uuid.uuid4().hex
        self._digest = ""  # of the definition that the file was begun under
        self._release: dict[str, Any] | None = None  # of the tick that the file has
        self._steps = Steps(self.charge_id(1))
        self._table: pan.DistinctCount
        self._rested = time.monotonic()

    @property
    def guarantee(self) -> Guarantee:
        plain = self._table.guarantee
        if self.definition.kind == "count":
            return plain.assuming(_EVENTS)
        return plain

    @property
    def publisher(self) -> pan.DistinctCount:
        return self._table

    # ---- the file ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._file.exists and self._is_mine():  # an attempt that died when it had charged, and nothing came yet
            begin(self.account(1), self.charge_id(1), self._bill(1), self._token.encode(), what="stream")
        else:
            self._charge(1)
        self.around.store.begin(self.name, self.definition, "pan.state", self.span)

    def _is_mine(self) -> bool:
        """Whether the file was begun under this definition."""
        try:
            self._read()
        except CorruptStateError:
            return False
        return self._digest == self.definition.digest and self.run == 1 and self._release is None

    def _bill(self, run: int) -> Bill:
        return Bill(self.definition.budget_of(run), pan.DistinctCount.name, Element())

    def _charge(self, run: int) -> None:
        """A run: charged, its state drawn and on disk, and only then does the charge count as used."""

        def draw() -> None:
            self._table, self.run = estimator(self.definition, run), run
            self._steps = Steps.under(self.payer, self.charge_id(run))
            self._write()

        begin(self.account(run), self.charge_id(run), self._bill(run), self._token.encode(), what="stream", save=draw)

    def _go_on(self, kept: Kept) -> None:
        self._read()
        account = self.known_account()
        self._steps.check_ledger(account)
        begin(account, self.charge_id(self.run), self._bill(self.run), self._token.encode(), what="stream")
        # A folder that is older than the ledger would draw ticks a second time.
        self._steps.look(self.payer, self.tick, None if self._release is None else text_of(self._release).encode())
        if self._release is not None and self._release["tick"] == kept.tick + 1:
            self._hand_out(self._release)
        elif self.tick != kept.tick:
            raise DiscreetError(f"the state of stream {self.name!r} is an old copy; the store is at another tick")

    def _write(self) -> None:
        header = {
            "token": self._token,
            "digest": self.definition.digest,
            "run": self.run,
            "release": self._release,
            "steps": self._steps.to_dict(),
        }
        text = json.dumps(header).encode()
        self._file.replace(
            seal_state(_FAMILY, 1, struct.pack("<I", len(text)) + text + self._table.to_bytes()), erase=True
        )

    def _read(self) -> None:
        _, payload = open_state(self._file.read(), _FAMILY, 1)
        try:
            (length,) = struct.unpack_from("<I", payload)
            header = json.loads(payload[4 : 4 + length])
            self._token, self.run, self._release = header["token"], header["run"], header["release"]
            self._digest, self._steps = header["digest"], Steps.from_dict(header["steps"])
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise CorruptStateError(
                f"the state of a pan-private stream cannot be read ({type(error).__name__})"
            ) from None
        self._table = pan.DistinctCount.from_bytes(payload[4 + length :])

    def rest(self, last: bool) -> None:
        """Write the file anew from time to time, as a request does: its times tell whether one came since, and no more.

        A file that cannot be written is as it was, which is right.
        """
        now = time.monotonic()
        if last or now - self._rested >= _REST_SECONDS:
            self._rested = now
            with self.lock, suppress(DiscreetError):
                self._write()

    def before(self, key: bytes, digest: bytes) -> int | None:
        return None  # no key is kept, and to look for one would leave traces in the store

    def _last_kept_tick(self) -> int:
        return 0  # what is over is published before anything is taken

    # ---- what comes -------------------------------------------------------------------------------------------------

    def prepared(self, columns: pa.RecordBatch | None) -> tuple[pa.RecordBatch | None, int]:
        return columns, 64 + (0 if columns is None else columns.nbytes)

    def commit(self, arrivals: Sequence[Arrival]) -> None:
        self.check_space()
        with self.lock:
            self.seal(self.around.clock())
            try:
                while self.work():  # what is over is published without what comes now
                    pass
            except DiscreetError as error:
                raise disk_full() from error
            if self.ended:
                raise gone()
            try:
                for arrival in arrivals:
                    self._table.update(self._elements(arrival))
                self._write()
            except DiscreetError as error:
                self._read()  # the events of this group are in memory and not on disk: back to what is
                raise disk_full() from error
            for arrival in arrivals:
                arrival.accepted, arrival.data = arrival.taken, None

    def _elements(self, arrival: Arrival) -> Any:
        if self.definition.kind == "distinct":
            return arrival.data.column("user")
        size = 8 * arrival.rows
        numbers = os.urandom(size) if arrival.key is None else hashlib.shake_128(arrival.key).digest(size)
        return np.frombuffer(numbers, np.int64)

    # ---- ticks ------------------------------------------------------------------------------------------------------

    def work(self) -> bool:
        with self.lock:
            if self.tick >= self.last_tick or self.tick + 1 >= self.open_tick:
                return False
            if self.tick == self.span.last:
                self._release, self._token = None, uuid.uuid4().hex
                self._charge(self.run + 1)
            if self._release is None or self._release["tick"] == self.tick:
                self._draw(self.tick + 1)
            assert self._release is not None
            self._hand_out(self._release)
            return True

    def _draw(self, tick: int) -> None:
        """Draw, and have it on disk. A draw that could not be written is kept, and written next time."""
        estimate = self._table.release()
        upper = None if np.isinf(estimate.upper) else round(estimate.upper)
        numbers = {"value": round(estimate.value), "lower": round(estimate.lower), "upper": upper}
        self._release = self.release_of(tick, numbers)
        self._steps.drawn()

    def _hand_out(self, release: dict[str, Any]) -> None:
        self._write()
        tick, text = release["tick"], text_of(release)
        self._steps.store(self.payer, tick, text.encode())
        self.around.store.publish(self.name, tick, text, "pan.state", (), self.around.clock())
        self._is_out(release)

    def close(self) -> None:
        self._stack.close()
