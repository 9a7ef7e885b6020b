"""A service in this process, with a clock that a test moves."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from discreet.service.access import make_token
from discreet.service.definitions import Configuration, configuration
from discreet.service.routes import make_app
from discreet.service.runtime import Service
from discreet.service.store import Store, Which

START = 1_800_000_000.0  # a whole number of minutes

STREAMS: dict[str, dict[str, Any]] = {
    "searches": {
        "kind": "top", "column": "query", "user": "visitor", "max_items": 3, "tick": "1m", "horizon": "1d",
        "epsilon": 1000.0, "delta": 1e-6, "k": 5, "public": True,
    },
    "visits": {"kind": "count", "tick": "1m", "horizon": "1d", "epsilon": 1e5, "delta": 1e-6, "public": True},
    "people": {"kind": "distinct", "user": "visitor", "tick": "1m", "horizon": "1d", "epsilon": 1e5, "delta": 1e-6},
    "lunch": {
        "kind": "survey", "question": "Lunch?", "options": ["yes", "no", "perhaps"], "tick": "1m", "horizon": "1d",
        "epsilon": 3.0, "public": True, "open": True,
    },
    "hidden-visitors": {
        "kind": "distinct", "user": "visitor", "tick": "1m", "horizon": "5m", "epsilon": 8.0, "trust": "pan",
        "public": True,
    },
}  # fmt: skip


def seal(service: Service) -> None:
    """End the ticks that are over by the clock."""
    for stream in service.streams.values():
        stream.seal(service.clock())


def catch_up(service: Service) -> None:
    """Do now what the threads would do."""
    seal(service)
    for stream in service.streams.values():
        while stream.work():
            pass
    service.journal.look(service.streams.values())


class Clock:
    """What time it is, as a test says."""

    def __init__(self) -> None:
        self.now = START + 0.5

    def __call__(self) -> float:
        return self.now


class Running:
    """A service without threads of its own but the writer's: ticks are published when a test says so."""

    def __init__(self, folder: Path, streams: dict[str, Any], **service: Any) -> None:
        self.folder = folder
        self.clock = Clock()
        self.configuration: Configuration = configuration({"streams": streams, "service": service})
        self._stack = contextlib.ExitStack()
        self.service: Service
        self.client: TestClient

    def start(self) -> Running:
        self.service = Service(self.configuration, self.folder, self.clock)
        self.service.start_writer()
        self.client = self._stack.enter_context(TestClient(make_app(self.service, start=False)))
        return self

    def stop(self) -> None:
        self._stack.close()
        self.service.stop()

    def again(self, streams: dict[str, Any] | None = None, **service: Any) -> Running:
        """Another process on the same folder."""
        self.stop()
        if streams is not None:
            self.configuration = configuration({"streams": streams, "service": service})
        return self.start()

    def pass_ticks(self, number: int = 1, seconds: float = 60.0) -> None:
        """The clock goes on, and what is due is published."""
        self.clock.now += number * seconds
        catch_up(self.service)

    def token(self, scope: str, stream: str | None = None) -> dict[str, str]:
        """The header of a new token."""
        _, text = make_token(self.service.store, scope, stream)
        self.service.tokens.look_again()
        return {"Authorization": f"Bearer {text}"}

    def send(self, stream: str, rows: list[Any], **headers: str) -> Any:
        """NDJSON with a token for it."""
        body = "".join(json.dumps(row) + "\n" for row in rows)
        given = {**self.token("ingest"), "Content-Type": "application/x-ndjson", **headers}
        return self.client.post(f"/v1/streams/{stream}/events", content=body, headers=given)

    def latest(self, stream: str) -> Any:
        """The latest release, for whoever may read all."""
        return self.client.get(f"/v1/streams/{stream}/releases/latest", headers=self.token("read")).json()


def all_releases(store: Store, name: str) -> list[Any]:
    """Everything that was published of a stream."""
    return [json.loads(release) for _, release in store.some_releases(name, Which(0, 2**40), 2**40)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "data", STREAMS).start()
    yield made
    made.stop()
