"""What is acknowledged is counted once, and a tick is published once: whatever is killed, full, slow or told to stop.

`make service` kills a few times; `DISCREET_FAULTS=full make service` 200 times.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port
from tests.service.conftest import all_releases, catch_up

import discreet as dc
from discreet.service.access import make_token
from discreet.service.definitions import load
from discreet.service.runtime import Service
from discreet.service.store import Store

FULL = os.environ.get("DISCREET_FAULTS") == "full"
KILLS = 200 if FULL else 12
PATIENCE = 120.0

STREAMS = """
[streams.batches]
kind = "top"
column = "batch"
tick = "1s"
horizon = "12h"
epsilon = 2.0
delta = 1e-6
k = 10
public = true

[streams.people]
kind = "distinct"
user = "who"
tick = "1s"
horizon = "12h"
epsilon = 1.0
delta = 1e-6
public = true

[streams.hidden]
kind = "distinct"
user = "who"
trust = "pan"
tick = "1s"
horizon = "12h"
epsilon = 8.0
public = true

[streams.spans]
kind = "count"
tick = "1s"
per = "4s"
epsilon = 1e5
delta = 1e-6
public = true

[service.limits]
free_bytes = 0
body_seconds = 2.0
"""
NAMES = ("batches", "people", "hidden", "spans")


class Place:
    """A service that can be started and killed, and a token for it."""

    def __init__(self, folder: Path, launcher: Any, ledger: Path | str) -> None:
        self.folder, self.ledger = folder / "data", ledger
        self.file = folder / "streams.toml"
        self.file.write_text(f'{STREAMS}\n[service]\nledger = "{ledger}"\n')
        self.port = free_port()
        self._launcher = launcher
        self.pid = 0
        store = Store(self.folder)
        self.token = make_token(store, "ingest", None)[1]
        store.close()

    def start(self) -> int:
        self._launcher.stdin.write(f"{self.file} {self.folder} {self.port}\n")
        self._launcher.stdin.flush()
        self.pid = int(self._launcher.stdout.readline())
        return self.pid

    def is_up(self) -> bool:
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def wait_until(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < until, "it did not happen in time"
            time.sleep(0.02)

    def ask(self, method: str, path: str, body: bytes | None = None, key: str | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            headers = {"Content-Type": "application/x-ndjson", "Authorization": f"Bearer {self.token}"}
            if key is not None:
                headers["Idempotency-Key"] = key
            if method == "GET":
                headers = {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text)
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError from error
        finally:
            connection.close()

    def gone(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait_until(self.gone)

    def counted(self) -> tuple[dict[str, int], int, int]:
        """What the mechanisms have counted, without noise; after the process has ended."""
        service = Service(load(self.file), self.folder, lambda: time.time() + 1)
        catch_up(service)
        streams: dict[str, Any] = service.streams
        batches = streams["batches"].present.mechanism.not_private_counts()
        people = int(streams["people"].present.mechanism._total[0])
        releases = all_releases(service.store, "spans")
        in_spans = sum({release["period"]: release["value"] for release in releases}.values())
        service.stop()
        return batches, people, in_spans

    def check_ticks(self) -> None:
        """Every tick is there once, and the ledger has drawn as many."""
        store, ledger = Store(self.folder), dc.Ledger(self.ledger)
        for name in NAMES:
            ticks = [release["tick"] for release in all_releases(store, name)]
            assert ticks == list(range(1, len(ticks) + 1)), name
            if name == "spans":  # a run every four seconds, each charged once
                history = ledger.account(name).history()
                runs = store.streams()[name].run
                assert sum(event.kind == "charge" for event in history) == runs
                assert sum(event.kind == "step" for event in history) == len(ticks)
                continue
            last = ledger.account(name).last_step(f"{name}-{load(self.file).streams[name].digest}")
            assert last is not None
            # The ledger has a pan tick before the store, which gets it at the next start.
            assert last.number - len(ticks) in ((0, 1) if name == "hidden" else (0,))
        store.close()


@pytest.fixture(scope="module")
def launcher() -> Iterator[Any]:
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("launcher.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()


@pytest.fixture
def place(tmp_path: Path, launcher: Any, ledger_path: Path | str) -> Iterator[Place]:
    made = Place(tmp_path, launcher, ledger_path)
    yield made
    if made.pid:
        made.kill()


class Senders:
    """Threads that send batches until they are told to stop. Half of the batches have a key and are sent until they
    are acknowledged; the others are sent once."""

    def __init__(self, place: Place, number: int) -> None:
        self.place = place
        self.stopping = threading.Event()
        self.acknowledged: Counter[str] = Counter()  # rows
        self.uncertain: Counter[str] = Counter()
        self.refused = 0
        self._threads = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(number)]
        for thread in self._threads:
            thread.start()

    def _send(self, number: int) -> None:
        chance = random.Random(number)
        batch = 0
        while not self.stopping.is_set():
            batch += 1
            name, rows = f"s{number} b{batch}", chance.randrange(1, 200)
            body = "".join(json.dumps({"batch": name, "who": f"{name} {row}"}) + "\n" for row in range(rows)).encode()
            keyed = chance.random() < 0.7
            while True:
                done = [self._try(stream, body, name if keyed else None) for stream in NAMES]
                if all(done):
                    self.acknowledged[name] = rows
                    break
                if not keyed:
                    self.uncertain[name] = rows
                    break
                time.sleep(0.01)

    def _try(self, stream: str, body: bytes, key: str | None) -> bool:
        try:
            status, _ = self.place.ask("POST", f"/v1/streams/{stream}/events", body, key)
        except OSError:
            return False
        self.refused += status != 202
        return status == 202

    def finish(self) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def check_counts(place: Place, senders: Senders) -> None:
    batches, people, in_spans = place.counted()
    for name, rows in senders.acknowledged.items():
        assert batches.get(name) == rows
    for name, rows in senders.uncertain.items():
        assert batches.get(name, 0) in (0, rows)
    known = set(senders.acknowledged) | set(senders.uncertain)
    assert set(batches) <= known
    acknowledged = senders.acknowledged.total()
    assert acknowledged <= people <= acknowledged + senders.uncertain.total()
    assert acknowledged <= in_spans <= acknowledged + senders.uncertain.total()  # of all runs together, without noise


def test_killed_under_load(place: Place) -> None:
    chance = random.Random(18)
    seen: dict[tuple[str, int], Any] = {}
    place.start()
    place.wait_until(place.is_up)
    senders = Senders(place, 3)

    def look() -> None:
        """What was published is what it was, after every death."""
        for name in NAMES:
            with contextlib.suppress(OSError):
                for release in place.ask("GET", f"/v1/streams/{name}/releases")[1].get("releases", ()):
                    before = seen.setdefault((name, release["tick"]), release)
                    assert before == release

    for kill in range(KILLS):
        # At any time: also while it starts, and while it goes on with what it finds.
        time.sleep(chance.uniform(0.0, 1.5))
        place.kill()
        place.start()
        if kill % 4 == 0:
            place.wait_until(place.is_up)
            look()
    place.wait_until(place.is_up)
    before = senders.acknowledged.total()
    place.wait_until(lambda: senders.acknowledged.total() > before and len(senders.acknowledged) > KILLS / 2)
    senders.finish()
    place.wait_until(lambda: look() or bool(seen))
    os.kill(place.pid, signal.SIGTERM)
    place.wait_until(place.gone)
    check_counts(place, senders)
    place.check_ticks()


def test_a_full_disk_and_space_again(place: Place) -> None:
    pid = place.start()
    place.wait_until(place.is_up)
    senders = Senders(place, 2)
    place.wait_until(lambda: len(senders.acknowledged) > 5)
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    for _ in range(3):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))  # no file can grow by a byte
        place.wait_until(lambda: senders.refused > 3)
        statuses = {place.ask("POST", f"/v1/streams/{name}/events", b'{"batch":"x","who":"x"}')[0] for name in NAMES}
        assert statuses == {507}
        time.sleep(1.5)  # over the end of a tick
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        senders.refused = 0
        before = len(senders.acknowledged)
        place.wait_until(lambda: len(senders.acknowledged) > before + 3)  # noqa: B023
    senders.finish()
    place.wait_until(lambda: place.ask("GET", "/readyz")[0] == 200)
    place.kill()
    check_counts(place, senders)
    place.check_ticks()


def test_told_to_stop_under_load(tmp_path: Path, place: Place, spawn: Any) -> None:
    command = [sys.executable, "-m", "discreet", "service", "run", place.file, "--data", place.folder]
    with spawn([*command, "--port", place.port], stderr=subprocess.PIPE, text=True) as process:
        place.wait_until(place.is_up)
        watching = socket.create_connection(("127.0.0.1", place.port))
        watching.sendall(b"GET /v1/streams/people/live HTTP/1.1\r\nHost: x\r\n\r\n")
        senders = Senders(place, 3)
        place.wait_until(lambda: len(senders.acknowledged) > 10)
        process.terminate()
        assert process.wait() == 0  # its time is limited
        said = process.stderr.read()
        watching.close()
    place.start()
    senders.finish()
    place.kill()
    lines = said.splitlines()
    assert f"discreet: serving at http://127.0.0.1:{place.port}/" in lines
    assert any(line.startswith("discreet: stream hidden: The noise is larger") for line in lines)
    # No access log, no trace: starts, ticks and why something was refused.
    known = (
        r"discreet: (serving at http://\S+|stream hidden: The noise is larger .*"
        r"|stream spans: .* an epsilon near 1 is usual\."
        r"|stream \S+ \([a-z, ]+\) begins; (its \d+ ticks end|it begins anew) at \S+"
        r"|stream \S+: (tick \d+ is|ticks \d+ to \d+ are) out|stream \S+ refused requests: stopping)"
    )
    assert [line for line in lines if not re.fullmatch(known, line)] == []
    check_counts(place, senders)


def test_half_a_body_counts_nothing(place: Place) -> None:
    place.start()
    place.wait_until(place.is_up)
    head = f"POST /v1/streams/batches/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.token}\r\n"
    head += "Content-Type: application/x-ndjson\r\nContent-Length: 4000\r\n\r\n"
    row = b'{"batch":"half"}\n'
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", place.port)) as client:
            client.sendall(head.encode() + row * 20)
    with socket.create_connection(("127.0.0.1", place.port)) as client:
        client.settimeout(PATIENCE)
        client.sendall(head.encode() + row * 20)
        assert client.recv(100).startswith(b"HTTP/1.1 408")
    assert place.ask("POST", "/v1/streams/batches/events", b'{"batch":"whole"}')[0] == 202
    place.kill()
    assert place.counted()[0] == {"whole": 1}


def test_a_thousand_slow_clients(place: Place) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.fail("this needs 3,000 open files") if os.environ.get("CI") else pytest.skip("needs 3,000 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    pid = place.start()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    place.wait_until(place.is_up)
    head = f"POST /v1/streams/batches/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.token}\r\n"
    slow = (head + "Content-Type: application/x-ndjson\r\nContent-Length: 4000\r\n\r\n").encode()
    live = b"GET /v1/streams/people/live HTTP/1.1\r\nHost: x\r\n\r\n"

    async def crowd() -> None:
        writers = []
        for number in range(1000):
            _, writer = await asyncio.open_connection("127.0.0.1", place.port)
            writer.write(slow + b"{" if number % 2 else live)  # half a request, or an answer that nobody reads
            writers.append(writer)
        for batch in range(20):
            body = b'{"batch":"quick %d"}\n' % batch
            status, _ = await asyncio.to_thread(place.ask, "POST", "/v1/streams/batches/events", body)
            assert status == 202
        published = (await asyncio.to_thread(place.ask, "GET", "/v1/streams/batches"))[1]["ticks_published"]

        def later() -> bool:
            return bool(place.ask("GET", "/v1/streams/batches")[1]["ticks_published"] > published)

        await asyncio.to_thread(place.wait_until, later)
        for writer in writers:
            writer.close()

    asyncio.run(crowd())
    place.kill()
    assert place.counted()[0] == {f"quick {batch}": 1 for batch in range(20)}
