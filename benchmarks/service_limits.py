"""What one sender or reader can do to the others: peak memory and waiting times of a service under attack.

    python benchmarks/service_limits.py [bodies headers reads stalled streams] [--memory 6]

Every attack meets a service of its own on the loopback, which may have so many gigabytes of address space. `peak` is
the largest resident size of the process (VmHWM), `others` the worst and the median time that `/healthz`, or a sender
with a token on another stream, waited meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import json
import os
import resource
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

STREAM = 'kind = "{kind}"\ntick = "{tick}"\nhorizon = "{horizon}"\nepsilon = 1.0\ndelta = 1e-6\npublic = true\n'
TOP = 'column = "a"\nk = 10000\n'
MEBIBYTE = 2**20
PLAIN = "from discreet.cli import main; main()"
# A stream that has published for a hundred days, without having done so.
PUBLISHED = (
    """
from discreet.service.streams import LiveStream
begin = LiveStream.open
def open_at(self):
    begin(self)
    if self.name == "open":
        self.tick, self.open_tick, self.work = 2501, 2502, lambda: False
LiveStream.open = open_at
"""
    + PLAIN
)


class Server:
    """A service in a process of its own."""

    def __init__(
        self, streams: dict[str, str], gigabytes: float, prepare: Callable[[Path], None] | None = None
    ) -> None:
        from discreet.service.access import make_token
        from discreet.service.store import Store

        self._folder = tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR"))
        place = Path(self._folder.name)
        self.data = place / "data"
        tables = [f"[streams.{name}]\n{text}" for name, text in streams.items()]
        (place / "streams.toml").write_text("\n".join([*tables, "[service.limits]\nrequests_per_second = 1e9\n"]))
        store = Store(self.data)
        self.token = make_token(store, "ingest", None)[1]
        store.close()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._command = [
            sys.executable,
            "-c",
            PUBLISHED if prepare else PLAIN,
            "service",
            "run",
            str(place / "streams.toml"),
        ]
        self._command += ["--data", str(self.data), "--port", str(self.port)]
        self._bytes = int(gigabytes * 2**30)
        self._start()
        if prepare is not None:
            self.stop(keep=True)
            prepare(self.data)
            self._start()

    def _start(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (self._bytes, self._bytes))

        self.process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL, preexec_fn=limit)
        for _ in range(2400):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the service did not start")

    def peak(self) -> str:
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
            return f"{int(text.split('VmHWM:')[1].split()[0]) / 1000:,.0f} MB"
        except (OSError, IndexError):
            return "died"

    def stop(self, keep: bool = False) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if not keep:
            self._folder.cleanup()

    def connect(self) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, int]:
        """Status and size of the answer; 0 if there was none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            response = connection.getresponse()
            size = 0
            while piece := response.read(2**16):
                size += len(piece)
            return response.status, size
        except (OSError, http.client.HTTPException):
            return 0, 0
        finally:
            connection.close()

    def send(self, stream: str) -> int:
        """One event, with a token."""
        headers = {"Content_Type": "application/x-ndjson", "Authorization": f"Bearer {self.token}"}
        return self.ask("POST", f"/v1/streams/{stream}/events", b'{"a":"x","u":"y"}\n', **headers)[0]


class Watch(threading.Thread):
    """Does the same again and again, and notes how long it took and what came of it."""

    def __init__(self, what: Callable[[], int], good: int) -> None:
        super().__init__(daemon=True)
        self._what, self._good, self._done = what, good, threading.Event()
        self.times: list[float] = []
        self.wrong = 0
        self.start()

    def run(self) -> None:
        while not self._done.wait(0.01):
            begun = time.perf_counter()
            self.wrong += self._what() != self._good
            self.times.append(time.perf_counter() - begun)

    def told(self) -> str:
        self._done.set()
        self.join()
        worst, half = (1000 * of(self.times or [float("nan")]) for of in (max, statistics.median))
        return f"others {worst:,.0f} ms worst, {half:,.1f} ms median, {self.wrong} refused"


def together(*what: Callable[[], object]) -> float:
    """Seconds until all of them are done."""
    begun = time.perf_counter()
    threads = [threading.Thread(target=run) for run in what]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


def arrow_dictionary(rows: int) -> bytes:
    places = pa.array(memoryview(bytes(rows)).cast("b"), pa.int8())
    table = pa.table({"a": pa.DictionaryArray.from_arrays(places, pa.array(["x" * 16]))})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue()


def bodies(gigabytes: float) -> None:
    size = 16 * MEBIBYTE
    made = {
        "CSV, lines `a`": (b"a\n" * (size // 2), "text/csv"),
        "NDJSON, lines `0`": (b"0\n" * (size // 2), "application/x-ndjson"),
        "JSON array": (b"[" + b"0," * (size // 2 - 2) + b"0]", "application/json"),
        "JSON array of objects": (b"[" + b'{"a":1},' * (size // 8 - 2) + b'{"a":1}]', "application/json"),
        "Arrow dictionary": (arrow_dictionary(size - 4096), "application/vnd.apache.arrow.stream"),
    }
    for number in (1, 4):
        for title, (body, kind) in made.items():
            server = Server(
                {"open": STREAM.format(kind="top", tick="1h", horizon="1d") + TOP + "open = true\n"}, gigabytes
            )
            watch = Watch(lambda: server.ask("GET", "/healthz")[0], 200)  # noqa: B023
            statuses: list[int] = []

            def send() -> None:
                path = "/v1/streams/open/events?bad_rows=skip"
                statuses.append(server.ask("POST", path, body, Content_Type=kind)[0])  # noqa: B023

            took = together(*[send] * number)
            print(
                f"{number} x {title:24}{took:7.1f} s  peak {server.peak():>9}  {watch.told()}  {statuses}", flush=True
            )
            server.stop()


def headers(gigabytes: float) -> None:
    def flood(server: Server, head: bytes, piece: bytes, most: int) -> int:
        sent = 0
        with server.connect() as client:
            client.settimeout(30)
            try:
                client.sendall(head)
                while sent < most:
                    client.sendall(piece)
                    sent += len(piece)
            except OSError:
                pass
        return sent

    get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    made = {
        "endless header lines": (get, b"a: b\r\n" * 20_000, 64 * MEBIBYTE),
        "one header of 140 MB": (get + b"a: ", b"x" * MEBIBYTE, 140 * MEBIBYTE),
        "pipelined GETs, 51 MB": (b"", (get + b"\r\n") * 30_000, 51 * MEBIBYTE),
        "endless trailers": (
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
            b"a: b\r\n" * 20_000, 64 * MEBIBYTE,
        ),
    }  # fmt: skip
    for title, (head, piece, most) in made.items():
        server = Server({"open": STREAM.format(kind="top", tick="1h", horizon="1d") + TOP}, gigabytes)
        watch = Watch(lambda: server.ask("GET", "/healthz")[0], 200)  # noqa: B023
        sent = flood(server, head, piece, most)
        time.sleep(1)
        print(f"{title:28}{sent / 1e6:6.0f} MB taken  peak {server.peak():>9}  {watch.told()}", flush=True)
        server.stop()


def reads(gigabytes: float) -> None:
    items = [
        {"item": f"item number {n}", "count": 10_000 - n, "lower": 9_000 - n, "upper": 11_000 - n} for n in range(2000)
    ]
    head = {"stream": "open", "begins": "2026-01-01T00:00:00Z", "ends": "2026-01-01T00:00:01Z", "missed": False}

    def prepare(data: Path) -> None:
        db = sqlite3.connect(data / "service.sqlite")
        rows = (
            ("open", tick, json.dumps({**head, "tick": tick, "confidence": 0.95, "run": 1, "items": items}))
            for tick in range(1, 2502)
        )
        db.executemany("insert into releases values (?, ?, ?)", rows)
        db.commit()
        db.close()

    text = STREAM.format(kind="count", tick="1h", horizon="365d")
    top = STREAM.format(kind="top", tick="1h", horizon="365d") + TOP
    asked = "/v1/streams/open/releases?from=1"
    for title, paths, live in (
        ("nothing", [], 0),
        ("releases as JSON", [asked], 0),
        ("releases as Arrow", [asked + "&format=arrow"], 0),
        ("four as CSV", [asked + "&format=csv"] * 4, 0),
        ("ten /live from 1", [], 10),
    ):
        server = Server({"open": top, "other": text}, gigabytes, prepare)
        watch = Watch(lambda: server.send("other"), 202)  # noqa: B023
        answers: list[tuple[int, int]] = []

        def follow() -> None:
            with server.connect() as client:  # noqa: B023
                client.sendall(b"GET /v1/streams/open/live HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\n\r\n")
                size = 0
                while size < 300e6 and (piece := client.recv(2**20)):
                    size += len(piece)
                answers.append((200, size))  # noqa: B023

        def ask(path: str) -> Callable[[], None]:
            return lambda: answers.append(server.ask("GET", path))  # noqa: B023

        took = together(*[ask(path) for path in paths], *[follow] * live) if paths or live else time.sleep(3) or 3.0
        megabytes = sum(size for _, size in answers) / 1e6
        print(f"{title:20}{took:6.1f} s  peak {server.peak():>9}  {watch.told()}  {megabytes:,.0f} MB", flush=True)
        server.stop()


def stalled(gigabytes: float) -> None:
    text = STREAM.format(kind="count", tick="1h", horizon="1d")
    server = Server({"open": text + "open = true\n", "other": text}, gigabytes)
    size = 16 * MEBIBYTE
    clients = []
    head = b"POST /v1/streams/open/events HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n"
    for _ in range(17):
        client = server.connect()
        client.settimeout(2)
        with contextlib.suppress(OSError):
            client.sendall(head % size + b"a\n" * (size // 2 - 1) + b"a")
        clients.append(client)
    time.sleep(1)
    begun, last, wrong, times = time.monotonic(), 0.0, 0, []
    while time.monotonic() < begun + 35:
        asked = time.perf_counter()
        if server.send("other") != 202:
            wrong, last = wrong + 1, time.monotonic() - begun
        times.append(time.perf_counter() - asked)
        time.sleep(0.05)
    print(
        f"17 stalled bodies: {wrong} of {len(times)} refused, the last after {last:.1f} s; "
        f"worst wait {1000 * max(times):,.0f} ms; peak {server.peak()}"
    )
    for client in clients:
        client.close()
    server.stop()


def streams(gigabytes: float) -> None:
    text = STREAM.format(kind="count", tick="1s", horizon="1h")
    server = Server({"healthy": text, **{f"trouble{n}": text for n in range(5)}}, gigabytes)
    for n in range(5):
        folder = server.data / "streams" / f"trouble{n}"
        folder.rename(folder.with_name(f"gone{n}"))
    time.sleep(5)

    def published() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/v1/streams/healthy")
        return int(json.loads(connection.getresponse().read())["ticks_published"])

    before = published()
    time.sleep(20)
    print(f"beside five streams in trouble: {published() - before} ticks of one second in 20 s", flush=True)
    server.stop()
    pan = text.replace("delta = 1e-6\n", "").replace("1.0", "100.0") + 'trust = "pan"\n'
    server = Server({"healthy": text.replace('"1s"', '"1m"'), "hidden": pan}, gigabytes)
    server.send("healthy")
    ledger = sqlite3.connect(server.data / "ledger.sqlite", isolation_level=None, timeout=30)
    ledger.execute("begin exclusive")
    time.sleep(2)
    begun = time.monotonic()
    both = [threading.Thread(target=server.send, args=("hidden",))]
    both[0].start()
    time.sleep(0.5)
    watch = Watch(lambda: server.send("healthy"), 202)
    time.sleep(max(0.0, begun + 20 - time.monotonic()))
    ledger.execute("rollback")
    print(f"beside a ledger that is locked for 20 s: {watch.told()}", flush=True)
    both[0].join()
    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = {what.__name__: what for what in (bodies, headers, reads, stalled, streams)}
    parser.add_argument("what", nargs="*", choices=[*kinds, []], default=list(kinds))
    parser.add_argument("--memory", type=float, default=6.0, help="gigabytes of address space")
    given = parser.parse_args()
    for name in given.what:
        kinds[name](given.memory)


if __name__ == "__main__":
    main()
