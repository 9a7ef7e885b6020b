"""Events of a stream from a queue: each message counts once, wherever a process ends, and trouble loses none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running

from discreet.errors import DataError
from discreet.events.queues import QueuedMessage
from discreet.service import queue_feed
from discreet.service.definitions import configuration
from discreet.service.problems import too_busy
from discreet.service.queue_feed import QueueFeed
from discreet.service.runtime import Service

URL = "kafka://broker:9092/topic"
VISITS = {"visits": {**STREAMS["visits"], "source": URL}}


class Soon(threading.Event):
    """Is set when it was waited for this often."""

    def __init__(self, waits: int = 0) -> None:
        super().__init__()
        self.left = waits

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        if self.left < 0:
            self.set()
        return self.is_set()

    def wait_for_it(self) -> bool:
        return super().wait(120)


class Log:
    """A topic: what it holds, what each look at it brings, and how it was asked."""

    def __init__(self, ends: dict[int, tuple[int, int]], *looks: list[QueuedMessage]) -> None:
        self.ends, self.looks = ends, list(looks)
        self.asked: list[dict[int, int]] = []
        self.opened = self.closed = 0
        self.stopping = Soon()

    def open(self, url: str) -> Log:
        assert url == URL
        self.opened += 1
        return self

    def bounds(self) -> dict[int, tuple[int, int]]:
        return self.ends

    def go_to(self, offsets: dict[int, int]) -> None:
        self.asked.append(offsets)

    def take(self, seconds: float) -> list[QueuedMessage]:
        if not self.looks:
            self.stopping.set()
            return []
        return self.looks.pop(0)

    def close(self) -> None:
        self.closed += 1


def message(partition: int, offset: int, data: bytes = b"{}") -> QueuedMessage:
    return QueuedMessage(partition, offset, data)


def fed(running: Running, monkeypatch: pytest.MonkeyPatch, log: Log, waits: int = 0) -> Any:
    """The stream after all that the log brings."""
    monkeypatch.setattr(queue_feed, "opened_log", log.open)
    stream: Any = running.service.streams["visits"]
    log.stopping = Soon(waits)
    QueueFeed(running.service, stream, URL).run(log.stopping)
    assert log.opened == log.closed
    return stream


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "data", VISITS, limits={"body_rows": 2}).start()
    yield made
    made.stop()


def test_each_message_counts_once_across_restarts_and_ticks(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions come in any order, more at once than a request may have, and some of them again."""
    ends = {0: (0, 9), 1: (0, 9), 2: (0, 0)}
    mixed = [message(1, 0), message(0, 1), message(1, 1), message(0, 0), message(0, 2)]
    log = Log(ends, mixed)
    assert fed(running, monkeypatch, log).spool_events == 5
    assert log.asked == [{0: -1, 1: -1, 2: -1}]
    running.again()
    log = Log(ends, [message(0, 2), message(0, 3), message(1, 1)])
    assert fed(running, monkeypatch, log).spool_events == 6
    assert log.asked == [{0: 3, 1: 2, 2: -1}]
    running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 6) <= 2
    running.again()
    log = Log(ends, [message(0, 3), message(1, 2)])  # what was read is in the store now, and in no spool
    assert fed(running, monkeypatch, log).spool_events == 1
    assert log.asked == [{0: 4, 1: 2, 2: -1}]


def test_a_service_that_runs_takes_what_its_queue_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log({0: (0, 3)}, [message(0, offset) for offset in range(3)])
    monkeypatch.setattr(queue_feed, "opened_log", log.open)
    service = Service(configuration({"streams": {**VISITS, "other": STREAMS["visits"]}}), tmp_path)
    service.start()
    try:
        assert log.stopping.wait_for_it()  # it was asked for more than there is
        assert [service.streams[name].spool_events for name in ("visits", "other")] == [3, 0]
    finally:
        service.stop()
    assert (log.opened, log.closed) == (1, 1)


def test_the_furthest_offset_counts_of_this_topic_alone(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    fed(running, monkeypatch, Log({0: (0, 9)}, [message(0, offset) for offset in range(5)]))
    stream: Any = running.service.streams["visits"]
    stream.keys = dict(reversed([*stream.keys.items()]))
    assert QueueFeed(running.service, stream, URL).next_offsets() == {0: 5}
    for other in ("kafka://broker:9092/other", "nats://broker:9092/topic"):
        assert QueueFeed(running.service, stream, other).next_offsets() == {}
    moved = "kafka://another:1,broker:9092/topic"  # the same topic, wherever its brokers are
    assert QueueFeed(running.service, stream, moved).next_offsets() == {0: 5}


def test_a_message_is_one_event_and_those_that_are_none_are_told(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = json.dumps({"a": 1, "b": [2]}, indent=1).encode()
    bodies = [several, b"{}\n{}", b"SECRET", b"", several]
    log = Log({0: (0, 5)}, [message(0, offset, body) for offset, body in enumerate(bodies)])
    stream = fed(running, monkeypatch, log)
    assert (stream.spool_events, stream.refused["a message that is no event"]) == (2, 2)
    assert QueueFeed(running.service, stream, URL).next_offsets() == {0: 5}


def test_how_much_of_the_queue_waits(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """From where it was read to, or from the first message that is still there."""
    fed(running, monkeypatch, Log({0: (0, 9)}, [message(0, offset) for offset in range(4)]))
    stream = fed(running, monkeypatch, Log({0: (2, 9), 1: (10, 17), 2: (3, 3)}))
    assert stream.queue_lag == (9 - 4) + (17 - 10)


def test_a_queue_that_was_emptied_is_told_once_and_read_no_further(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fed(running, monkeypatch, Log({0: (0, 9)}, [message(0, offset) for offset in range(4)]))
    caplog.clear()
    log = Log({0: (0, 3)}, [message(0, 5, b'{"page": "SECRET"}')])
    stream = fed(running, monkeypatch, log, waits=3)
    assert (log.opened, stream.spool_events, log.asked) == (4, 4, [])
    said = [record.getMessage() for record in caplog.records]
    assert said == ["stream visits cannot read its queue: DataError; trying again"]


def test_trouble_of_a_queue_loses_no_message(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log({0: (0, 9)}, [message(0, 0)], [message(0, 1), message(0, 2)])
    take = log.take

    def fails(seconds: float) -> list[QueuedMessage]:
        if len(log.looks) == 1 and log.opened == 1:
            raise DataError("SECRET")
        return take(seconds)

    monkeypatch.setattr(log, "take", fails)
    stream = fed(running, monkeypatch, log, waits=1)
    assert (log.opened, stream.spool_events) == (2, 3)
    assert log.asked == [{0: -1}, {0: 1}]


def test_a_spool_that_is_full_makes_the_queue_wait(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    stream: Any = running.service.streams["visits"]
    full = iter([too_busy(), too_busy()])

    def admit() -> None:
        for problem in full:
            raise problem

    monkeypatch.setattr(stream, "admit", admit)
    log = Log({0: (0, 9)}, [message(0, 0), message(0, 1)])
    assert fed(running, monkeypatch, log, waits=2).spool_events == 2


def test_a_stop_while_the_spool_is_full_skips_no_message(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    stream: Any = running.service.streams["visits"]

    def admit() -> None:
        raise too_busy()

    with monkeypatch.context() as full:
        full.setattr(stream, "admit", admit)
        fed(running, full, Log({0: (0, 9)}, [message(0, 0)], [message(0, 1)]))
    log = Log({0: (0, 9)}, [message(0, 0), message(0, 1)])
    assert fed(running, monkeypatch, log).spool_events == 2
    assert log.asked == [{0: -1}]
