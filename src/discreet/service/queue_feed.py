"""Events of a stream from a queue: `source = "kafka://broker:9092/topic"`.

Messages of one partition go into the spool in one record, whose key says which offset comes after them. The keys of a
tick are stored with its state, at once, so the offsets are, too: anyone who starts again finds the last one in the
spool or in the store, and takes what comes after it. A message is in one record, or in none yet.
"""

from __future__ import annotations

import hashlib
import struct
import threading
import time
from itertools import groupby
from logging import INFO, WARNING
from typing import TYPE_CHECKING

from discreet.errors import DataError
from discreet.events.queues import QueuedMessage, opened_log, topic_of
from discreet.service.bodies import Reader
from discreet.service.journal import tell
from discreet.service.problems import ProblemError
from discreet.service.streams import OFFSET_KEY, Arrival, LiveStream

if TYPE_CHECKING:
    from discreet.service.runtime import Service

_LOOK_SECONDS = 5.0  # between two looks at how far the queue is
_PLACE = struct.Struct(">8sIQ")  # topic, partition, the offset that comes next


class QueueFeed:
    """Takes the messages of a queue for one stream, in a thread of its own."""

    def __init__(self, service: Service, stream: LiveStream, source: str) -> None:
        self._service, self._stream, self._source = service, stream, source
        kind, _, topic = topic_of(source)
        self._topic = hashlib.sha256(f"{kind}:{topic}".encode()).digest()[:8]
        # What is taken at once is bounded by its number: no message is refused for the size of what a table adds.
        limits = service.configuration.limits.model_copy(update={"body_bytes": 2**30})
        self._reader = Reader(stream.definition, limits)

    def run(self, stopping: threading.Event) -> None:
        """Until the service stops; trouble is told, and tried again."""
        said = None
        while not stopping.is_set() and not self._stream.ended:
            try:
                self._take(stopping)
            except Exception as error:
                if said != (said := type(error).__name__):
                    sentence = "stream {stream} cannot read its queue: {trouble}; trying again"
                    tell(WARNING, "queue", sentence, stream=self._stream.name, trouble=said)
                stopping.wait(1.0)

    def next_offsets(self) -> dict[int, int]:
        """Where to go on, by partition: after the last message that is in the spool, or in a tick."""
        stored = self._service.store.keys_like(self._stream.name, OFFSET_KEY)
        found: dict[int, int] = {}
        for key in [*stored, *list(self._stream.keys)]:
            if key.startswith(OFFSET_KEY):
                topic, partition, offset = _PLACE.unpack(key[len(OFFSET_KEY) :])
                if topic == self._topic:
                    found[partition] = max(offset, found.get(partition, 0))
        return found

    def _take(self, stopping: threading.Event) -> None:
        stream, offsets, looked = self._stream, self.next_offsets(), 0.0
        log = opened_log(self._source)
        try:
            known: set[int] = set()
            while not stopping.is_set() and not stream.ended:
                if time.monotonic() - looked > _LOOK_SECONDS:
                    bounds, looked = log.bounds(), time.monotonic()
                    if any(offsets.get(each, 0) > end for each, (_, end) in bounds.items()):
                        raise DataError(
                            f"{self._source} has fewer messages than were already read; it was emptied or recreated"
                        )
                    if set(bounds) - known:
                        known = set(bounds)
                        log.go_to({each: offsets.get(each, -1) for each in bounds})
                        tell(INFO, "queue", "stream {stream} reads {topic}", stream=stream.name, topic=self._source)
                    lags = (end - max(first, offsets.get(each, first)) for each, (first, end) in bounds.items())
                    stream.queue_lag = sum(max(0, lag) for lag in lags)
                come = [each for each in log.take(0.2) if each.offset >= offsets.get(each.partition, 0)]
                most = self._service.configuration.limits.body_rows
                for partition, group in groupby(sorted(come), key=lambda each: each.partition):
                    messages = list(group)
                    for at in range(0, len(messages), most):
                        part = messages[at : at + most]
                        if not self._put(partition, part, stopping):
                            return
                        offsets[partition] = part[-1].offset + 1
        finally:
            log.close()

    def _put(self, partition: int, messages: list[QueuedMessage], stopping: threading.Event) -> bool:
        """Messages into the spool; waits while it is full. Whether they are there."""
        stream = self._stream
        body = b"".join(each.data.replace(b"\n", b" ") + b"\n" for each in messages)
        rows = self._reader.read("ndjson", body, True)
        data, _ = stream.prepared(rows.columns)
        key = OFFSET_KEY + _PLACE.pack(self._topic, partition, messages[-1].offset + 1)
        arrival = Arrival(rows.counted, data, rows.taken, key, hashlib.sha256(key).digest())
        while not stopping.is_set() and not stream.ended:
            try:
                stream.admit()
                self._service.take(stream, arrival)
            except ProblemError:
                stopping.wait(0.5)
                continue
            if rows.skipped and stream.refused is not None:
                stream.refused["a message that is no event"] += rows.skipped
            return True
        return False
