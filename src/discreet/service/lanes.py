"""A stream's own way to the disk: what came waits here, and one thread writes it in groups."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from discreet.service.problems import stopping
from discreet.service.streams import Arrival, LiveStream

Done = Callable[[Arrival, Exception | None], None]


class Lane:
    """The queue and the writer of one stream. Another stream's disk, ledger or crowd is not in its way."""

    def __init__(
        self,
        stream: LiveStream,
        commit: Callable[[LiveStream, list[Arrival]], Exception | None],
        tell: Callable[[list[tuple[Arrival, Done]], Exception | None], None],
    ) -> None:
        self._stream, self._commit, self._tell = stream, commit, tell
        self._queue: deque[tuple[Arrival, Done]] = deque()
        self._there = threading.Condition()
        self._stops = False

    def submit(self, arrival: Arrival, done: Done) -> None:
        """Put it on disk with others; `done` is told then."""
        with self._there:
            if self._stops:
                raise stopping()
            self._queue.append((arrival, done))
            self._there.notify()

    def stop(self) -> None:
        """Take nothing more; what was taken is written."""
        with self._there:
            self._stops = True
            self._there.notify_all()

    def run(self) -> None:
        """The writer: until it is stopped and nothing is left."""
        while True:
            with self._there:
                while not self._queue and not self._stops:
                    self._there.wait()
                if not self._queue:
                    return
                group = list(self._queue)
                self._queue.clear()
            error = self._commit(self._stream, [arrival for arrival, _ in group])
            if error is None and self._stream.accepted is not None:
                self._stream.accepted += sum(arrival.accepted for arrival, _ in group)
            self._tell(group, error)
