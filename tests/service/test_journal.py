"""What the log says of a service that runs: enough to operate it, and nothing about anybody."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running, catch_up

from discreet.service import journal
from discreet.service.journal import LogLines
from discreet.service.runtime import Service


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "discreet.service")
    return lambda: [record.getMessage() for record in caplog.records]


def rows(number: int, item: str = "SECRET") -> list[dict[str, str]]:
    return [{"query": item, "visitor": f"SECRET{n}"} for n in range(number)]


def test_starts_ticks_and_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
    monkeypatch.setattr(journal, "_SAY_SECONDS", 0.0)
    searches = {**STREAMS["searches"], "epsilon": 1.0}
    running = Running(tmp_path, {"searches": searches, "hidden-visitors": STREAMS["hidden-visitors"]})
    service = Service(running.configuration, running.folder, running.clock)
    service.start()
    service.stop()
    assert said() == [
        "stream searches (top) begins; its 1440 ticks end at 2027-01-16T08:00:00Z",
        "stream hidden-visitors (distinct, pan) begins; its 5 ticks end at 2027-01-15T08:05:00Z",
    ]
    running.start()
    for name in ("searches", "hidden-visitors"):
        for _ in range(2):
            running.send(name, [*rows(731), {"SECRET": 1}])
        running.send(name, rows(731), **{"Content-Type": "image/png"})
        running.send(name, rows(731))
    running.pass_ticks()
    running.pass_ticks(3)
    assert said()[2:] == [
        "stream searches: tick 1 is out",
        "stream searches refused requests: bad rows, format",
        "stream hidden-visitors: tick 1 is out",
        "stream searches: ticks 2 to 4 are out",
        "stream hidden-visitors: ticks 2 to 4 are out",
    ]
    running.stop()
    service = Service(running.configuration, running.folder, running.clock)
    service.start()
    service.stop()
    assert said()[7].startswith("stream searches (top) goes on after tick 4; its 1440 ticks end at")
    text = "\n".join(said())
    assert not [hidden for hidden in ("SECRET", "testclient", "731", "2193") if hidden in text]


def test_delays_are_said_once_and_their_end(running: Running, monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
    stream: Any = running.service.streams["visits"]
    with monkeypatch.context() as slow:
        slow.setattr(stream, "work", lambda: False)
        for _ in range(4):
            running.pass_ticks()
    catch_up(running.service)
    late = [line for line in said() if "visits is" in line]
    assert late == [
        "stream visits is late: tick 1 has been over for 120 s and is not out",
        "stream visits is on time again",
    ]


def test_what_repeats_is_said_once_a_minute(running: Running, monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr(journal.time, "monotonic", lambda: now[0])
    for _ in range(4):
        running.send("visits", [1])
        running.pass_ticks()
        now[0] += 25.0
    lines = [line for line in said() if "visits" in line]
    assert lines == [
        "stream visits: tick 1 is out",
        "stream visits refused requests: bad rows",
        "stream visits: ticks 2 to 4 are out",
        "stream visits refused requests: bad rows",
    ]


def test_the_same_as_json(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_SAY_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "discreet.service")
    running = Running(tmp_path, {"searches": STREAMS["searches"]})
    running.start()
    running.send("searches", [*rows(731), {"SECRET": 1}])
    running.pass_ticks(2)
    running.stop()
    logging.getLogger("discreet.service").warning("a sentence of {braces} alone")
    lines = [json.loads(LogLines().format(record)) for record in caplog.records]
    told = [{key: value for key, value in line.items() if key not in ("time", "message", "ends")} for line in lines]
    assert {"level": "info", "event": "ticks", "stream": "searches", "first": 1, "last": 2} in told
    assert {"level": "info", "event": "refused", "stream": "searches", "reasons": ["bad rows"]} in told
    assert told[-1] == {"level": "warning", "event": "message"}
    assert [line["message"] for line in lines] == [record.getMessage() for record in caplog.records]
    timeless = [{key: value for key, value in line.items() if key not in ("time", "ends")} for line in lines]
    assert "731" not in json.dumps(timeless)
