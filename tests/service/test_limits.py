"""Nobody starves the others: what one request, connection, sender, reader or stream in trouble can take.

Memory is that of a service in a process of its own: its largest resident size since a test began. Before there were
limits, every attack here took from half a gigabyte to several; now none takes more than `ROOM`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import io
import json
import random
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pyarrow as pa
import pytest
from tests.ports import free_port
from tests.service.conftest import STREAMS, Running
from tests.service.test_faults import PATIENCE

from discreet.service import bodies
from discreet.service.access import Shares, make_token
from discreet.service.bodies import Reader, RowsRead
from discreet.service.connections import BoundedProtocol
from discreet.service.definitions import ServiceLimits, StreamDefinition, configuration
from discreet.service.problems import ProblemError
from discreet.service.runtime import Service
from discreet.service.store import Store
from discreet.service.streams import Arrival, LiveStream
from discreet.service.uploads import Uploads

ROOM = 300 * 2**20  # bytes more than before, of a service that has 16 MiB bodies at most
BODY = 16 * 2**20
OPEN = """
[streams.open]
kind = "top"
column = "a"
tick = "1h"
horizon = "365d"
epsilon = 1.0
delta = 1e-6
k = 2000
public = true
open = true

[streams.other]
kind = "count"
tick = "1h"
horizon = "365d"
epsilon = 1.0
delta = 1e-6
public = true

[service.limits]
requests_per_second = 1e9
"""
LATER = """
from discreet.service.streams import LiveStream
begin = LiveStream.open
def open_at(self):
    begin(self)
    if self.name == "open":  # as if it had published for a while
        self.tick, self.open_tick, self.work = {ticks}, {ticks} + 1, lambda: False
LiveStream.open = open_at
from discreet.cli import main
main()
"""
TICKS = 800


class Victim:
    """A service in a process of its own, with bounded memory."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        (folder / "streams.toml").write_text(OPEN)
        store = Store(folder / "data")
        self.token = make_token(store, "ingest", None)[1]
        items = [{"item": f"item number {n}", "count": n, "lower": n, "upper": n} for n in range(2000)]
        head = {"stream": "open", "begins": "x", "ends": "y", "missed": False, "confidence": 0.95, "run": 1}
        with store.writing() as db:
            rows = (("open", t, json.dumps({**head, "tick": t, "items": items})) for t in range(1, TICKS + 1))
            db.executemany("insert into releases values (?, ?, ?)", rows)
        store.close()
        command = [sys.executable, "-c", LATER.format(ticks=TICKS), "service", "run", folder / "streams.toml"]
        command += ["--data", folder / "data", "--port", self.port]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))

        self.process = subprocess.Popen(
            [str(part) for part in command], stderr=subprocess.PIPE, text=True, preexec_fn=limit
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:  # until it serves
            if "serving at" in line:
                break
        else:
            pytest.fail("the service did not start")
        self.said: list[str] = []
        self._said = threading.Thread(target=self.said.extend, args=(self.process.stderr,), daemon=True)
        self._said.start()
        assert self.send("other") == self.send("open") == 202

    def close(self) -> None:
        self._said.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def send(self, stream: str) -> int:
        """One event, with a token."""
        given = {"Content_Type": "application/x-ndjson", "Authorization": f"Bearer {self.token}"}
        return self.ask("POST", f"/v1/streams/{stream}/events", b'{"a":"x"}\n', **given)[0]

    def largest(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0]) * 1024

    def forget(self) -> int:
        """Begin to look for the largest size anew."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.largest()


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    made = Victim(tmp_path_factory.mktemp("victim"))
    yield made
    made.process.terminate()
    assert made.process.wait(PATIENCE) == 0
    made.close()


def at_once(*what: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda run=run: found.append(run()), daemon=True) for run in what]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5 * PATIENCE)
        assert not thread.is_alive()
    return found


# ---- bodies ---------------------------------------------------------------------------------------------------------


def arrow(column: Any, batches: int = 1) -> bytes:
    table = pa.table({"a": column})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        for _ in range(batches):
            out.write_table(table)
    return sink.getvalue()


def one_long_value(rows: int) -> bytes:
    places = pa.array(memoryview(bytes(rows)).cast("b"), pa.int8())
    return arrow(pa.DictionaryArray.from_arrays(places, pa.array(["x" * 16])))


BODIES: dict[str, tuple[Callable[[], bytes], str]] = {
    "csv": (lambda: b"a\n" * (BODY // 2), "text/csv"),
    "ndjson": (lambda: b"0\n" * (BODY // 2), "application/x-ndjson"),
    "blank lines": (lambda: b"\n" * BODY, "application/x-ndjson"),
    "json": (lambda: b"[" + b"0," * (BODY // 2 - 2) + b"0]", "application/json"),
    "objects": (lambda: b"[" + b'{"a":1},' * (BODY // 8 - 2) + b'{"a":1}]', "application/json"),
    "arrow": (lambda: one_long_value(BODY - 4096), "application/vnd.apache.arrow.stream"),
}


@pytest.mark.parametrize("what", BODIES)
def test_small_bodies_take_no_gigabytes(victim: Victim, what: str) -> None:
    made, kind = BODIES[what]
    body = made()
    assert len(body) <= BODY
    before = victim.forget()

    def send() -> int:
        return victim.ask("POST", "/v1/streams/open/events?bad_rows=skip", body, Content_Type=kind)[0]

    assert at_once(send, send) == [413, 413]
    assert victim.largest() - before < ROOM


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        # Nothing of this is wanted, and nothing of it is made.
        ("application/x-ndjson", b'{"b":[' + b"{}," * (BODY // 3 - 10) + b"{}]}\n", 422),
        ("application/json", b'[{"b":[' + b"{}," * (BODY // 3 - 10) + b"{}]}]", 422),
        ("application/json", b"[[" + b"[]," * (BODY // 3 - 10) + b"[]]]", 422),
        ("application/x-ndjson", b'{"a":[' + b"{}," * (BODY // 3 - 10) + b"{}]}\n", 422),
        ("text/csv", b",".join(b"%07d" % n for n in range(BODY // 8)), 413),
        ("text/csv", b"a,b\n" + b",".join([b'"\n"'] * (BODY // 4 - 2)), 413),
    ],
    ids=["ndjson", "json", "list", "field", "header", "quoted"],
)
def test_one_row_takes_no_gigabytes(victim: Victim, kind: str, body: bytes, status: int) -> None:
    before = victim.forget()
    assert victim.ask("POST", "/v1/streams/open/events", body, Content_Type=kind)[0] == status
    assert victim.largest() - before < ROOM


def reader(**limits: Any) -> Reader:
    definition = StreamDefinition.model_validate({**STREAMS["searches"], "where": {"site": "x"}})
    return Reader(definition, ServiceLimits(**limits))


def test_bodies_that_were_refused_are_let_go_of(victim: Victim) -> None:
    # Each stayed in memory until Python looked for cycles, which a command seldom does: 40 bodies took 830 MB.
    path, before = "/v1/streams/open/events", victim.forget()
    for _ in range(12):
        assert victim.ask("POST", path, b"[" * BODY, Content_Type="application/json")[0] == 400
        assert victim.ask("POST", path, b"\n" * BODY, Content_Type="application/x-ndjson")[0] == 413
    assert victim.largest() - before < ROOM


def test_what_the_disk_refuses_is_let_go_of() -> None:
    class Full:
        def submit(self, stream: Any, arrival: Arrival, done: Callable[[Arrival, Exception | None], None]) -> None:
            arrival.error = ProblemError(507, "The disk is full")
            done(arrival, arrival.error)

    async def refused() -> weakref.ref[Arrival]:
        uploads = object.__new__(Uploads)
        uploads.service = Full()  # type: ignore[assignment]
        arrival = Arrival(1, b"a" * BODY, 1)
        with contextlib.suppress(ProblemError):
            await uploads.take(cast(LiveStream, None), arrival)
        return weakref.ref(arrival)

    gc.disable()
    try:
        assert asyncio.run(refused())() is None
    finally:
        gc.enable()


def test_rows_of_a_request_are_limited_in_every_format(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, limits={"body_rows": 10}).start()
    token = running.token("ingest")

    def sent(kind: str, body: bytes) -> Any:
        return running.client.post("/v1/streams/visits/events", content=body, headers={**token, "Content-Type": kind})

    for rows, status in ((10, 202), (11, 413)):
        for kind, body in (
            ("application/x-ndjson", b"{}\n" * rows),
            ("application/x-ndjson", b'{"pad":"%s"}\n' % (b"x" * 30_000) * rows),
            ("application/json", b"[" + b",".join([b"{}"] * rows) + b"]"),
            ("application/json", b"[" + b",".join([b'{"pad":"%s"}' % (b"x" * 30_000)] * rows) + b"]"),
            ("text/csv", b"a\n" + b"x\n" * rows),
            ("application/vnd.apache.arrow.stream", arrow(pa.array(["x"] * rows))),
            ("application/vnd.apache.arrow.stream", arrow(pa.array(["x"]), rows)),
        ):
            answer = sent(kind, body)
            assert answer.status_code == status, (kind, rows)
            if status == 413:
                assert answer.json()["detail"] == "At most 10 rows are taken at once; send them in smaller batches."
    running.stop()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that are read in blocks of a few bytes give what Python's own reader of JSON says of them."""
    monkeypatch.setattr(bodies, "_BLOCK_BYTES", 7)
    monkeypatch.setattr(bodies, "_BLOCK_ROWS", 3)
    chance = random.Random(28)
    of = reader()

    def value(depth: int) -> Any:
        kind = chance.randrange(8 if depth < 3 else 5)
        if kind == 0:
            return [value(depth + 1) for _ in range(chance.randrange(4))]
        if kind == 1:
            return {f"k{n}": value(depth + 1) for n in range(chance.randrange(3))}
        text = "".join(chance.choice('ab"\\,[]{}\n\u00e9') for _ in range(chance.randrange(6)))
        return chance.choice([text, chance.randrange(100), None, True, 1.5])

    def event() -> Any:
        if chance.random() < 0.2:
            return value(0)
        fields = {"query": value(1), "visitor": value(1), "site": chance.choice(["x", "y", 3, [1]]), "more": value(0)}
        return {name: field for name, field in fields.items() if chance.random() < 0.9}

    def right(row: Any) -> bool:
        return isinstance(row, dict) and all(type(row.get(name)) in (str, int) for name in ("query", "visitor"))

    def told(read: RowsRead) -> Any:
        assert read.columns is not None
        return read.taken, read.counted, read.skipped, [tuple(row.values()) for row in read.columns.to_pylist()]

    damaged = 0
    for _ in range(1500):
        rows = [event() for _ in range(chance.randrange(7))]
        good = [row for row in rows if right(row)]
        wanted = [(str(row["query"]), str(row["visitor"])) for row in good if row.get("site") == "x"]
        expected = (len(good), len(wanted), len(rows) - len(good), wanted)
        array = json.dumps(rows, indent=chance.choice([None, 1])).encode()
        assert told(of.read("json", array, True)) == expected
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        assert told(of.read("ndjson", lines, True)) == expected
        place = chance.randrange(len(array))
        other = array[:place] + bytes([chance.choice(b'",[]{}\\ x0')]) + array[place + 1 :]
        try:
            json.loads(other)
            valid = True
        except ValueError:
            valid = False
            damaged += 1
        if valid:
            of.read("json", other, True)
        else:
            with pytest.raises(ProblemError, match="The body is not JSON"):
                of.read("json", other, True)
    assert damaged > 500


def test_arrow_that_looks_at_its_dictionaries_too_often_is_refused() -> None:
    of = Reader(
        StreamDefinition.model_validate({**STREAMS["searches"], "column": "a", "user": None, "max_items": None})
    )
    words = pa.array([f"word {n:09d}" for n in range(200_000)])
    table = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), words)})
    few = [words.slice(0, n + 1) for n in range(3)]

    def stream(tables: list[Any], deltas: bool) -> bytes:
        sink = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pa.ipc.new_stream(sink, table.schema, options=options) as out:
            for part in tables:
                out.write_table(part)
        return sink.getvalue()

    def grown(by: list[Any]) -> list[Any]:
        return [pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), one)}) for one in by]

    assert of.read("arrow", stream([table] * 3, False), False).taken == 3
    assert of.read("arrow", stream(grown(few), True), False).taken == 3  # dictionaries may be added to
    adds = grown([words.slice(0, 200_000 - 20 + n) for n in range(20)])
    for body in (stream([table] * 100, False), stream(adds, True)):
        assert len(body) < BODY
        with pytest.raises(ProblemError) as refused:
            of.read("arrow", body, False)
        assert refused.value.status == 413


def test_few_bodies_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read waits in memory, is counted until then, and strangers do not take all places."""
    open_visits = {**STREAMS["visits"], "open": True}
    running = Running(tmp_path, {"visits": open_visits}).start()
    begun, go = threading.Semaphore(0), threading.Event()
    reading: list[int] = []
    most: list[int] = []

    def read(self: Reader, form: str, body: bytes, skip: bool) -> RowsRead:
        reading.append(1)
        most.append(len(reading))
        begun.release()
        assert go.wait(PATIENCE)
        reading.pop()
        return RowsRead(1, 1, None)

    monkeypatch.setattr(Reader, "read", read)
    monkeypatch.setattr(Reader, "read_small", lambda *_: None)
    body = b"{}\n" * 10_000
    known = running.token("ingest")

    def send(headers: dict[str, str]) -> int:
        given = {**headers, "Content-Type": "application/x-ndjson"}
        return running.client.post("/v1/streams/visits/events", content=body, headers=given).status_code

    found: list[Any] = []
    strangers = threading.Thread(target=lambda: found.extend(at_once(*[lambda: send({})] * 4)))
    strangers.start()
    assert begun.acquire(timeout=PATIENCE)
    senders = threading.Thread(target=lambda: found.extend(at_once(*[lambda: send(known)] * 4)))
    senders.start()
    for _ in range(2):
        assert begun.acquire(timeout=PATIENCE)
    while running.service.shares.used < 8 * len(body):  # all of them have come, and wait
        assert strangers.is_alive()
    assert len(reading) == 3
    go.set()
    strangers.join(PATIENCE)
    senders.join(PATIENCE)
    assert found == [202] * 8
    assert max(most) == 3
    assert running.service.shares.used == 0
    running.stop()


# ---- before anybody is known ----------------------------------------------------------------------------------------

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"


def send_all(client: socket.socket, piece: bytes, most: int) -> None:
    for _ in range(most // len(piece)):
        client.sendall(piece)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (GET, b"a: b\r\n" * 10_000),
        (GET + b"a: ", b"x" * 2**18),
        (b"GET /", b"x" * 2**18),
        (CHUNKED, b"a: b\r\n" * 10_000),
    ],
    ids=["lines", "one", "path", "trailers"],
)
def test_headers_that_go_on_for_ever_are_refused(victim: Victim, head: bytes, piece: bytes) -> None:
    before = victim.forget()
    with victim.connect() as client:
        client.sendall(head)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_all(client, piece, 256 * 2**20)
    assert victim.send("other") == 202
    assert victim.largest() - before < ROOM // 8


def test_headers_that_are_too_large_are_told_so(victim: Victim) -> None:
    with victim.connect() as client:
        client.sendall(GET + b"a: b\r\n" * 6000)
        answer = client.recv(1000)
    assert answer.startswith(b"HTTP/1.1 431 ")
    with victim.connect() as client:
        client.sendall(GET + b"a: " + b"x" * 30_000 + b"\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_requests_in_a_row_wait_outside(victim: Victim) -> None:
    """A client that sends and never reads; before, all that it sent became requests in memory."""
    before = victim.forget()
    with victim.connect() as client:
        client.settimeout(5)
        with pytest.raises(TimeoutError):
            send_all(client, (GET + b"\r\n") * 15_000, 51 * 2**20)
        assert victim.send("other") == 202
        assert victim.largest() - before < ROOM // 4


def test_requests_in_a_row_are_all_answered_in_order(victim: Victim) -> None:
    head = b"POST /v1/streams/open/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
    requests = []
    for number in range(1, 201):
        body = b'{"a":"x"}\n' * number
        requests += [head + b"Content-Length: %d\r\n\r\n" % len(body) + body, GET + b"\r\n"]
        if number % 10 == 0:
            requests.append(head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    with victim.connect() as client:
        threading.Thread(target=client.sendall, args=(b"".join(requests),), daemon=True).start()
        file = client.makefile("rb")
        for number in range(1, 201):
            for expected in (
                {"accepted": number},
                {"status": "ok"},
                *([{"accepted": number}] if number % 10 == 0 else []),
            ):
                response = http.client.HTTPResponse(_Answered(file))  # type: ignore[arg-type]
                response.begin()
                assert json.loads(response.read()) == expected
        file.close()


class _Answered:
    """What `http.client` takes for a socket: one answer after the other on the same connection."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def makefile(self, mode: str) -> Any:
        return io.BufferedReader(_Kept(self._file), 1)


class _Kept(io.RawIOBase):
    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        found = self._file.read(len(into))
        into[: len(found)] = found
        return len(found)


def test_connections_end_that_never_finish_a_header_or_read_nothing() -> None:
    """By their timers, which a test need not wait for."""
    ended: list[str] = []

    class Transport(asyncio.Transport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return default

        def is_closing(self) -> bool:
            return bool(ended)

        def close(self) -> None:
            ended.append("closed")

        def abort(self) -> None:
            ended.append("aborted")

        def pause_reading(self) -> None: ...
        def resume_reading(self) -> None: ...
        def write(self, data: Any) -> None: ...

    async def timers(what: Callable[[BoundedProtocol], Any]) -> list[str]:
        import uvicorn
        from uvicorn.server import ServerState

        async def app(scope: Any, receive: Any, send: Any) -> None: ...

        config = uvicorn.Config(app, http=BoundedProtocol, ws="none", interface="asgi3")
        config.load()
        loop = asyncio.get_running_loop()
        set_later: list[tuple[Any, Any]] = []
        made = BoundedProtocol(config, ServerState(), {}, loop)

        class Later:
            def call_later(self, _: float, run: Any) -> Any:
                handle = loop.call_later(3600, run)
                set_later.append((handle, run))
                return handle

            def __getattr__(self, name: str) -> Any:
                return getattr(loop, name)

        made.loop = Later()  # type: ignore[assignment]
        made.connection_made(Transport())
        what(made)
        for handle, run in set_later:
            if not handle.cancelled():
                run()
        found = ended[:]
        made.connection_lost(None)
        ended.clear()
        return found

    assert asyncio.run(timers(lambda _: None))[:1] == ["closed"]  # never says anything
    assert asyncio.run(timers(lambda made: made.data_received(GET)))[:1] == ["closed"]  # never finishes a header
    assert asyncio.run(timers(lambda made: [made.data_received(GET + b"\r\n"), made.pause_writing()])) == ["aborted"]
    assert asyncio.run(timers(lambda made: made.data_received(GET + b"\r\n"))) == []
    again = [GET + b"\r\n", b"GET /hea"]  # the second request is begun on the same connection
    assert asyncio.run(timers(lambda made: [made.data_received(piece) for piece in again]))[:1] == ["closed"]
    reads_on = asyncio.run(
        timers(lambda made: [made.data_received(GET + b"\r\n"), made.pause_writing(), made.resume_writing()])
    )
    assert reads_on == []


def test_strangers_do_not_fill_the_log(victim: Victim) -> None:
    releases = b"GET /v1/streams/open/releases?from=1 HTTP/1.1\r\nHost: x\r\n\r\n"
    for sent in (releases, 8 * releases, b"nonsense\r\n\r\n", GET + b"Upgrade: websocket\r\n\r\n"):
        for _ in range(4):  # who leave in the middle of an answer, as some do who send events
            with victim.connect() as connection:
                connection.sendall(sent)
    assert victim.send("other") == 202
    time.sleep(1.0)
    assert not [line for line in victim.said if not line.startswith("discreet: stream")]


# ---- reading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["json", "csv", "arrow"])
def test_answers_have_pages_and_are_never_whole_in_memory(victim: Victim, kind: str) -> None:
    before = victim.forget()
    found: list[int] = []
    address = f"/v1/streams/open/releases?from=1&format={kind}"
    pages = 0
    while address:
        connection = http.client.HTTPConnection("127.0.0.1", victim.port, timeout=PATIENCE)
        connection.request("GET", address)
        response = connection.getresponse()
        assert response.status == 200
        body = response.read()
        connection.close()
        link = response.headers.get("Link", "")
        if kind == "json":
            said = json.loads(body)
            found += [release["tick"] for release in said["releases"]]
            assert ("next" in said) == bool(link)
        elif kind == "csv":
            assert body.startswith(b"stream,tick,")
            found += dict.fromkeys(int(line.split(b",")[1]) for line in body.splitlines()[1:])
        else:
            found += dict.fromkeys(pa.ipc.open_stream(body).read_all().column("tick").to_pylist())
        pages += 1
        address = link and "/v1/streams/open/releases" + link.removeprefix("<").partition(">")[0]
    assert found == list(range(1, TICKS + 1))
    assert pages > 1
    assert victim.largest() - before < ROOM // 4


def test_whoever_follows_from_the_beginning_holds_little_and_keeps_nobody_waiting(victim: Victim) -> None:
    before = victim.forget()
    ask = b"GET /v1/streams/open/live HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\n\r\n"
    last = b"id: %d\n" % TICKS

    def follow() -> bool:
        with victim.connect() as client:
            client.sendall(ask)
            end = b""
            while last not in end:
                piece = client.recv(2**20)
                assert piece
                end = end[-100:] + piece
        return True

    idle = [victim.connect() for _ in range(50)]  # and some who never read what they asked for
    for client in idle:
        client.sendall(ask)
    assert at_once(*[follow] * 3, lambda: victim.send("other") == 202) == [True] * 4
    for client in idle:
        client.close()
    assert victim.largest() - before < ROOM // 2


def test_nobody_reads_on_the_loop(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """While what was published is being read, events are taken."""
    running.send("searches", [{"query": "cats", "visitor": f"v{n}"} for n in range(50)])
    running.pass_ticks(3)
    inside, go = threading.Semaphore(0), threading.Event()
    some = Store.some_releases

    def slow(self: Store, *values: Any) -> Any:
        inside.release()
        assert go.wait(PATIENCE)
        return some(self, *values)

    monkeypatch.setattr(Store, "some_releases", slow)
    answers: list[Any] = []
    paths = ["/v1/streams/searches/releases", "/v1/streams/searches/releases/latest"]
    asks = [partial(running.client.get, path) for path in paths]
    asking = threading.Thread(target=lambda: answers.extend(at_once(*asks)))
    asking.start()
    for _ in paths:
        assert inside.acquire(timeout=PATIENCE)
    sent: list[Any] = []
    sending = threading.Thread(target=lambda: sent.append(running.send("visits", [{}])), daemon=True)
    sending.start()
    sending.join(PATIENCE)
    assert sent, "events wait for those who read"
    assert sent[0].status_code == 202
    go.set()
    asking.join(PATIENCE)
    assert [answer.status_code for answer in answers] == [200, 200]


def test_a_new_tick_is_read_once_for_all_who_wait(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    some = Store.some_releases
    monkeypatch.setattr(Store, "some_releases", lambda self, *values: read.append(values) or some(self, *values))
    live = running.client.app.state.live  # type: ignore[attr-defined]
    stream = running.service.streams["visits"]

    async def first(ready: Any) -> bytes:
        events = live.events(stream, 0)
        await anext(events)
        await ready.wait()
        found: bytes = await anext(events)
        await events.aclose()
        return found

    async def crowd() -> list[bytes]:
        ready = asyncio.Event()
        tasks = [asyncio.ensure_future(first(ready)) for _ in range(20)]
        await asyncio.sleep(0)
        await anyio.to_thread.run_sync(running.pass_ticks)
        ready.set()
        return list(await asyncio.gather(*tasks))

    assert running.client.portal is not None
    found = running.client.portal.call(crowd)
    assert len(set(found)) == 1
    assert found[0].startswith(b"event: release\nid: 1\n")
    assert len(read) == 1


# ---- shares ---------------------------------------------------------------------------------------------------------


def taken(shares: Shares, caller: str, stream: str, known: bool) -> int:
    """How much somebody gets who asks until they are refused."""
    held = shares.hold(caller, stream, known)
    with contextlib.suppress(ProblemError):
        while True:
            held.add(1)
    return held.size


def test_nobody_holds_more_than_is_free() -> None:
    shares = Shares(1200)
    assert taken(shares, "a", "open", False) == 400  # a third for one address
    assert sum(taken(shares, f"address {n}", "open", False) for n in range(50)) == 200  # half for all of them
    assert taken(shares, "b", "open", True) == 300  # of the same stream, with a token
    assert taken(shares, "c", "other", True) == 150
    assert taken(shares, "d", "other", True) == 0  # that stream has its share
    assert taken(shares, "d", "third", True) == 75
    held = shares.hold("e", "fourth", True)
    with held:
        held.add(10)
        held.become(1000)  # what was let in is not refused when it turns out larger
    assert shares.used == 1125
    assert held.size == 0


def test_strangers_leave_room_for_others(tmp_path: Path) -> None:
    """Bodies that stop before their end, from a stranger; token holders, also of the same stream, are served."""
    streams = {"open": {**STREAMS["visits"], "open": True}, "visits": STREAMS["visits"]}
    limits = {"body_bytes": 2**20, "waiting_bytes": 3 * 2**20}
    running = Running(tmp_path, streams, limits=limits).start()
    app = running.client.app
    pieces = 2**20 // 2**16 - 1
    statuses: list[int] = []

    async def stall(go: asyncio.Event) -> None:
        sent = 0

        async def receive() -> Any:
            nonlocal sent
            if sent < pieces:
                sent += 1
                return {"type": "http.request", "body": b" " * 2**16, "more_body": True}
            await go.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        scope = {
            "type": "http", "method": "POST", "path": "/v1/streams/open/events", "query_string": b"", "root_path": "",
            "headers": [(b"content-type", b"text/csv")], "http_version": "1.1", "scheme": "http",
            "client": ("10.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        await app(scope, receive, send)  # type: ignore[arg-type]

    async def attack() -> list[Any]:
        go = asyncio.Event()
        stalled = [asyncio.ensure_future(stall(go)) for _ in range(17)]
        while 429 not in statuses:
            await asyncio.sleep(0)
        rows = [{"pad": "x" * 1000} for _ in range(100)]
        answers = [await anyio.to_thread.run_sync(running.send, name, rows) for name in ("open", "visits")]
        go.set()
        await asyncio.gather(*stalled, return_exceptions=True)
        return answers

    assert running.client.portal is not None
    assert [answer.status_code for answer in running.client.portal.call(attack)] == [202, 202]
    assert running.service.shares.used == 0
    running.stop()


def test_bodies_that_stand_still_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the time that a body has: it makes no progress."""
    monkeypatch.setattr("discreet.service.uploads._LOOK_SECONDS", 0.05)
    limits = {"body_seconds": 1e6, "body_bytes_per_second": 1000}
    running = Running(tmp_path, {"visits": {**STREAMS["visits"], "open": True}}, limits=limits).start()

    found: list[int] = []

    async def stand_still() -> None:
        sent = False

        async def receive() -> Any:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": b"{}\n", "more_body": True}
            await anyio.sleep_forever()

        async def send(message: Any) -> None:
            found.append(message.get("status", 0))

        scope = {
            "type": "http", "method": "POST", "path": "/v1/streams/visits/events", "query_string": b"",
            "root_path": "", "headers": [(b"content-type", b"text/csv")], "http_version": "1.1", "scheme": "http",
            "client": ("10.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        with anyio.fail_after(PATIENCE):
            await running.client.app(scope, receive, send)  # type: ignore[arg-type]

    assert running.client.portal is not None
    running.client.portal.call(stand_still)
    assert found[0] == 408
    running.stop()


def test_a_body_must_fit_into_a_share() -> None:
    with pytest.raises(Exception, match="waiting_bytes must be at least three times body_bytes"):
        configuration({"streams": STREAMS, "service": {"limits": {"body_bytes": 2**27}}})


# ---- streams --------------------------------------------------------------------------------------------------------


def test_a_stream_in_trouble_does_not_slow_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams whose ticks fail, and one whose tick never ends: a healthy one publishes tick after tick."""
    quick = {**STREAMS["visits"], "tick": "1s", "horizon": "1h"}
    streams = {"healthy": quick, **{f"trouble{n}": quick for n in range(5)}, "stuck": quick}
    service = Service(configuration({"streams": streams}), tmp_path)
    go, ticks = threading.Event(), threading.Semaphore(0)
    plain = type(service.streams["healthy"]).work

    def work(self: Any) -> bool:
        if self.name.startswith("trouble"):
            raise OSError("no such disk")
        if self.name == "stuck":
            go.wait(PATIENCE)
            return False
        return plain(self)

    monkeypatch.setattr(type(service.streams["healthy"]), "work", work)
    monkeypatch.setattr("discreet.service.runtime._AGAIN_SECONDS", PATIENCE)  # whoever waits for that, waits in vain
    service.published.append(lambda name: ticks.release())
    service.start()
    try:
        for _ in range(3):
            assert ticks.acquire(timeout=PATIENCE / 2)
        assert service.streams["healthy"].tick >= 3
        assert all(service.streams[f"trouble{n}"].trouble for n in range(5))
    finally:
        go.set()
        service.stop()


def test_a_ledger_that_others_hold_delays_only_those_who_need_it(tmp_path: Path) -> None:
    """A pan stream asks the ledger before it takes events of a new tick; the others do not wait with it."""
    running = Running(tmp_path, {name: STREAMS[name] for name in ("visits", "hidden-visitors")}).start()
    known = running.token("ingest")
    rows = [{"visitor": "a"}]
    assert running.send("hidden-visitors", rows, **known).status_code == 202
    running.clock.now += 60
    ledger = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None, timeout=PATIENCE)
    ledger.execute("begin exclusive")
    waiting: list[Any] = []
    hidden = threading.Thread(target=lambda: waiting.append(running.send("hidden-visitors", rows, **known)))
    hidden.start()
    stream = running.service.streams["hidden-visitors"]
    while not held_by_another(stream.lock):
        assert hidden.is_alive()
    sent: list[Any] = []
    other = threading.Thread(target=lambda: sent.append(running.send("visits", rows, **known)), daemon=True)
    other.start()
    other.join(PATIENCE / 4)
    first = [answer.status_code for answer in sent], list(waiting)
    ledger.execute("rollback")
    ledger.close()
    hidden.join(PATIENCE)
    other.join(PATIENCE)
    running.stop()
    assert first == ([202], [])
    assert [answer.status_code for answer in waiting] == [202]


def held_by_another(lock: Any) -> bool:
    if lock.acquire(blocking=False):
        lock.release()
        return False
    return True


def test_the_clock_does_not_wait_for_a_stream(tmp_path: Path) -> None:
    quick = {**STREAMS["visits"], "tick": "1s", "horizon": "1h"}
    service = Service(configuration({"streams": {"a": quick, "b": quick}}), tmp_path)
    out = threading.Semaphore(0)
    service.published.append(lambda name: name == "b" and out.release())
    with service.streams["a"].lock:  # as one that waits for its disk has it
        service.start()
        for _ in range(2):
            assert out.acquire(timeout=PATIENCE)
    service.stop()
