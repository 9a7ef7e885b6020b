"""What a pan-private service holds: in memory and on disk nothing that tells who came, when, or how often."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.service.conftest import Running

from discreet.errors import OldStateError
from discreet.service import access, pan_stream, routes
from discreet.service.server import UncountedState, _Server, unnumbered

COUNT = {"kind": "count", "tick": "1m", "horizon": "5m", "epsilon": 8.0, "trust": "pan", "public": True, "open": True}
PEOPLE = {**COUNT, "kind": "distinct", "user": "visitor"}
REQUESTS = 317  # in no other place


def held_by(*roots: object) -> tuple[set[str | bytes], set[int]]:
    """All texts and numbers that can be reached from these objects, without code."""
    texts: set[str | bytes] = set()
    numbers: set[int] = set()
    seen: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, (types.ModuleType, types.CodeType, types.FrameType, type)):
            continue
        seen[id(found)] = found
        if isinstance(found, (str, bytes)):
            texts.add(found)
        elif isinstance(found, int):
            numbers.add(found)
        elif isinstance(found, types.FunctionType):
            waiting += [found.__closure__, found.__defaults__]
        else:
            waiting += gc.get_referents(found)
    return texts, numbers


def send(running: Running, name: str, number: int, address: str) -> None:
    """Requests with a key each, some of them wrong; from an address."""

    async def one(body: bytes, key: str) -> int:
        answer: list[int] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def answered(message: Any) -> None:
            answer.append(message.get("status", 0))

        scope = {
            "type": "http", "method": "POST", "path": f"/v1/streams/{name}/events", "query_string": b"",
            "headers": [(b"content-type", b"application/x-ndjson"), (b"idempotency-key", key.encode())],
            "http_version": "1.1", "scheme": "http", "client": (address, 1), "server": ("127.0.0.1", 80),
            "root_path": "",
        }  # fmt: skip
        await running.client.app(scope, receive, answered)  # type: ignore[arg-type]
        return answer[0]

    async def all_of_them() -> None:
        for n in range(number):
            body = b'{"visitor":"somebody-in-particular"}\n' if n % 5 else b'{"other":1}\nnonsense\n'
            assert await one(body, f"key-in-particular-{n}") in (202, 422)

    assert running.client.portal is not None
    running.client.portal.call(all_of_them)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(routes, "_FORGET_SECONDS", 0.05)
    limits = {"requests_per_second": 10_000, "events_per_second": 10_000}
    made = Running(tmp_path / "data", {"people": PEOPLE, "events": COUNT}, limits=limits).start()
    yield made
    made.stop()


def test_memory_has_nobody_and_no_number(running: Running) -> None:
    application: Any = running.client.app
    for name in ("people", "events"):
        send(running, name, REQUESTS, "192.0.2.47")
    assert running.client.portal is not None
    rates = [application.state.access._requests, application.state.access._events]
    until = time.monotonic() + 60
    while any(rate._left for rate in rates):  # by itself: nobody asks any more
        assert time.monotonic() < until
        time.sleep(0.05)
    texts, numbers = held_by(running.service, application.state.access, application.state.live, application.routes)
    known = b"".join(text if isinstance(text, bytes) else text.encode("utf-8", "replace") for text in texts)
    assert b"192.0.2.47" not in known
    assert b"in-particular" not in known
    assert b"people" in known  # it did look
    assert not numbers & {REQUESTS, 2 * REQUESTS}
    status = running.client.get("/v1/admin/status", headers=running.token("admin")).json()
    assert status["requests"] is None
    assert [(stream["accepted"], stream["refused"]) for stream in status["streams"]] == [(None, None)] * 2


def test_the_log_has_nobody_either(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "discreet.service")
    send(running, "people", 10, "192.0.2.47")
    running.pass_ticks()
    running.service.journal.say(running.service.streams.values())
    assert "192.0.2.47" not in caplog.text
    assert "refused" not in caplog.text
    assert "stream people: tick 1 is out" in caplog.text


def test_rates_are_forgotten_when_they_are_whole_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(access.time, "monotonic", lambda: now[0])
    rates = access._Rates(10.0, 2.0)  # 20 at once
    rates.take("a", 5)
    rates.take("b", 60)  # let through, and made up for in 6 seconds
    rates.forget()
    assert set(rates._left) == {"a", "b"}
    now[0] += 0.5
    rates.forget()
    assert set(rates._left) == {"b"}
    now[0] += 5.4
    rates.forget()
    assert set(rates._left) == {"b"}
    now[0] += 0.2
    rates.forget()
    assert not rates._left


def times(folder: Path) -> list[tuple[int, int]]:
    places = [folder, folder / "pan.state"]
    return [(os.stat(place).st_mtime_ns, os.stat(place).st_ctime_ns) for place in places]


def test_times_of_files_tell_nothing_of_requests(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = running.folder / "streams" / "people"
    stream: Any = running.service.streams["people"]
    running.service.rest()
    begun, rested = times(folder), stream._rested
    send(running, "people", 2, "192.0.2.47")
    came = times(folder)
    assert came != begun
    assert stream._rested == rested  # the next one comes when it would have come
    monkeypatch.setattr(pan_stream, "_REST_SECONDS", 0.0)
    data = (folder / "pan.state").read_bytes()
    for end in (running.service.rest, running.again):
        time.sleep(0.02)  # longer than a clock of a file system takes to tick
        end()
        now = times(folder)
        assert all(
            one != other for old, new in zip(came, now, strict=True) for one, other in zip(old, new, strict=True)
        )
        assert (folder / "pan.state").read_bytes() == data
        came = now


def test_a_file_that_cannot_be_written_anew_stays(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    send(running, "people", 2, "192.0.2.47")
    state = running.folder / "streams" / "people" / "pan.state"
    data = state.read_bytes()

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("discreet.storage.StateFile._write", full)
        broken.setattr(pan_stream, "_REST_SECONDS", 0.0)
        running.service.rest()
    assert state.read_bytes() == data
    send(running, "people", 2, "192.0.2.47")


def test_a_folder_that_is_older_than_its_ledger_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    """Nothing is drawn from it again: a second look at the same table would cost as much as the first."""
    made = Running(tmp_path / "data", {"people": PEOPLE}, ledger=str(tmp_path / "ledger.sqlite")).start()
    send(made, "people", 3, "192.0.2.47")
    made.pass_ticks()
    made.stop()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    again = Running(tmp_path / "data", {"people": PEOPLE}, ledger=str(tmp_path / "ledger.sqlite"))
    again.clock.now = made.clock.now
    again.start().pass_ticks()
    again.stop()
    older = Running(tmp_path / "copy", {"people": PEOPLE}, ledger=str(tmp_path / "ledger.sqlite"))
    older.clock.now = again.clock.now
    with pytest.raises(OldStateError, match="is at step 1, and step 2 was published"):
        older.start()
    again.start().pass_ticks()  # the newer one goes on
    assert again.latest("people")["tick"] == 3
    again.stop()


def test_what_could_not_be_written_is_not_in_memory_either(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were refused: who is told to send them again, and does not, was never there."""
    stream: Any = running.service.streams["people"]
    before = stream._table.seen_by_intruder()
    body = "".join(f'{{"visitor": "v{number}"}}\n' for number in range(2000))

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    def sent() -> int:
        answer = running.client.post(
            "/v1/streams/people/events", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        return int(answer.status_code)

    with monkeypatch.context() as broken:
        broken.setattr("discreet.storage.StateFile._write", full)
        assert sent() == 507
    assert stream._table.seen_by_intruder() == before
    assert sent() == 202
    assert stream._table.seen_by_intruder() != before


def test_folders_differ_in_the_state_alone(tmp_path: Path) -> None:
    """Names and sizes are the same whether anybody came or not."""

    def files(came: int) -> dict[str, int]:
        made = Running(tmp_path / str(came), {"people": PEOPLE, "events": COUNT}).start()
        send(made, "people", came, "192.0.2.47")
        send(made, "events", came, "192.0.2.47")
        made.stop()
        found = [path for path in made.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(made.folder)): path.stat().st_size for path in found}

    assert files(0) == files(20)


def test_the_web_server_does_not_count() -> None:
    server = _Server(uvicorn.Config("none", log_level="critical"), lambda port: None)
    assert isinstance(server.server_state, UncountedState)
    for _ in range(3):
        server.server_state.total_requests += 1
    assert server.server_state.total_requests == 0
    assert "total_requests" not in vars(server.server_state)


# In a process of its own: which number a task would get is known to the interpreter alone.
TASKS = """
import asyncio
from discreet.service.server import unnumbered

async def nothing():
    pass

def number():
    return int(asyncio.Task(nothing(), loop=loop).get_name().removeprefix("Task-"))

async def tasks():
    for _ in range(50):
        await asyncio.create_task(nothing())
    named = asyncio.create_task(nothing(), name="mine")
    await named
    return named.get_name()

loop = asyncio.new_event_loop()
loop.set_task_factory(unnumbered)
first = number()
assert loop.run_until_complete(tasks()) == "mine"
assert number() == first + 1
loop.run_until_complete(asyncio.sleep(0))
loop.close()
"""


def test_tasks_are_not_numbered() -> None:
    subprocess.run([sys.executable, "-c", TASKS], check=True, timeout=240)

    async def nothing() -> None:
        pass

    loop = asyncio.new_event_loop()
    task = unnumbered(loop, nothing())
    loop.run_until_complete(task)
    assert task.get_name() == "task"
    loop.close()
