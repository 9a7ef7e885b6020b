"""The live service on the loopback: events a second, each on disk when acknowledged, beside a route that just appends.

    python benchmarks/service.py [--seconds 4] [--rounds 3] [--connections 8]
    python benchmarks/service.py memory [--events 10000000]
    python benchmarks/service.py streams [--streams 1 8 40]    # events a second, latencies, memory; beside the disk
    python benchmarks/service.py tick [--items 1000000]        # what the tick of a large stream does to another

The sender is in this process and shares the cores. Every row is acknowledged when it is on disk; the plain route parses
the same body with the same reader of JSON and appends it to a file without waiting for the disk. The two take turns, so
many seconds each, and medians are shown. MB/s is what the server wrote to disk, CPU is its own, in microseconds an
event: on a busy machine that says more than the clock. One core that writes the bodies to a file, and waits for the
disk after each batch or after eight, is the limit of what can be durable.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
from turns import machine, medians_in_turns

STREAM = """
[streams.{name}]
kind = "top"
column = "query"
{whose}
tick = "{tick}"
horizon = "30d"
epsilon = 1.0
delta = 1e-9
k = 50
public = true
"""
PEOPLE = 'user = "visitor"\nmax_items = 20'
LIMITS = """
[service.limits]
events_per_second = 1e9
requests_per_second = 1e9
"""
STREAMS = STREAM.format(name="searches", whose=PEOPLE, tick="10s") + LIMITS

PLAIN = """
import sys, msgspec, uvicorn
from fastapi import FastAPI, Request
app, file, reader = FastAPI(), open(sys.argv[2], "ab", buffering=0), msgspec.json.Decoder()
@app.post("/v1/streams/searches/events", status_code=202)
async def events(request: Request):
    body = await request.body()
    rows = reader.decode_lines(body)
    file.write(body)
    return {"accepted": len(rows)}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
"""


def rows_of(chance: np.random.Generator, number: int, people: int) -> list[dict[str, str]]:
    queries = np.minimum(chance.zipf(1.3, number), 50_000)
    visitors = chance.integers(0, people, number)
    return [
        {"query": f"query {q}", "visitor": f"{v:016x}", "page": "/search", "agent": "Mozilla/5.0 (X11; Linux)"}
        for q, v in zip(queries.tolist(), visitors.tolist(), strict=True)
    ]


def ndjson(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def arrow(rows: list[dict[str, str]]) -> bytes:
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def request(body: bytes, kind: str, token: str, stream: str = "searches") -> bytes:
    head = f"POST /v1/streams/{stream}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    return (head + f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


class Sender(threading.Thread):
    """One connection that sends requests, one after the other, and times the answers."""

    def __init__(self, port: int, requests: list[bytes], until: float, most: int) -> None:
        super().__init__(daemon=True)
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests, self.until, self.most = requests, until, most
        self.times: list[float] = []
        self.wrong = 0

    def run(self) -> None:
        while len(self.times) < self.most and time.monotonic() < self.until:
            begun = time.perf_counter()
            self.socket.sendall(self.requests[len(self.times) % len(self.requests)])
            answer = self.socket.recv(65536)
            while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
                answer += self.socket.recv(65536)
            self.times.append(time.perf_counter() - begun)
            self.wrong += not answer.startswith(b"HTTP/1.1 202")
        self.socket.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """The service, or the plain route, in a process of its own."""

    def __init__(self, plain: bool, streams: str = STREAMS) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("DISCREET_BENCH_DIR"))
        place = Path(self.folder.name)
        self.port = free_port()
        self.token = ""
        if plain:
            (place / "plain.py").write_text(PLAIN)
            command = [sys.executable, place / "plain.py", self.port, place / "events"]
        else:
            from discreet.service.access import make_token
            from discreet.service.store import Store

            (place / "streams.toml").write_text(streams)
            store = Store(place / "data")
            self.token = make_token(store, "ingest", None)[1]
            store.close()
            command = [sys.executable, "-m", "discreet", "service", "run", place / "streams.toml"]
            command += ["--data", place / "data", "--port", self.port]
        self.process = subprocess.Popen([str(part) for part in command], stderr=subprocess.DEVNULL)
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the server did not start")

    def memory(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def used(self) -> tuple[float, int]:
        """Seconds of CPU, and bytes written to disk, so far."""
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        written = Path(f"/proc/{self.process.pid}/io").read_text().split("\nwrite_bytes:")[1].split()[0]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(written)

    def stop(self) -> int:
        self.process.terminate()
        code = self.process.wait()
        self.folder.cleanup()
        return code


Figures = tuple[float, float, float, float, float]
"""Events a second, megabytes a second to disk, milliseconds until the answer (median and 99th percentile), and
microseconds of CPU an event."""


def show(title: str, figures: Iterable[float]) -> None:
    per_second, to_disk, half, nearly_all, cpu = figures
    waits = f"{half:>10.1f}{nearly_all:>10.1f}" if half else " " * 20
    print(f"{title:34}{per_second:>12,.0f}{to_disk:>8.0f}{waits}{cpu:>10.2f}", flush=True)


HEADINGS = f"{'':34}{'events/s':>12}{'MB/s':>8}{'p50 ms':>10}{'p99 ms':>10}{'CPU us':>10}"


def measure(server: Server, requests: list[bytes], events: int, connections: int, seconds: float) -> Figures:
    (cpu, written), until = server.used(), time.monotonic() + seconds
    senders = [Sender(server.port, requests[n::connections] or requests, until, 10**9) for n in range(connections)]
    begun = time.perf_counter()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    took = time.perf_counter() - begun
    times = np.concatenate([np.array(sender.times) for sender in senders])
    if any(sender.wrong for sender in senders):
        raise SystemExit("some requests were refused")
    half, nearly_all = 1000 * np.quantile(times, [0.5, 0.99])
    cpu_now, written_now = server.used()
    many = len(times) * events
    cpu, written = 1e6 * (cpu_now - cpu) / many, 1e-6 * (written_now - written) / took
    return many / took, written, float(half), float(nearly_all), cpu


def speed(seconds: float, connections: int, rounds: int) -> None:
    chance = np.random.default_rng(18)
    batches = [rows_of(chance, 1000, 200_000) for _ in range(200)]
    singles = rows_of(chance, 2000, 200_000)
    cases = {
        "NDJSON, batches of 1,000": ([ndjson(rows) for rows in batches], "application/x-ndjson", 1000),
        "single events": ([ndjson([row]) for row in singles], "application/x-ndjson", 1),
        "Arrow, batches of 1,000": ([arrow(rows) for rows in batches], "application/vnd.apache.arrow.stream", 1000),
    }
    print(f"{machine()}; medians of {rounds} in turns")
    print(HEADINGS)
    for name, (bodies, kind, events) in cases.items():
        servers = {name: Server(plain=False)}
        if kind == "application/x-ndjson":
            servers[f"  plain route, {name.split(',')[0]}"] = Server(plain=True)
        many = connections if events > 1 else 16 * connections
        measures = {}
        for title, server in servers.items():
            requests = [request(body, kind, server.token) for body in bodies]
            measures[title] = partial(measure, server, requests, events, many, seconds)
        for title, figures in medians_in_turns(measures, rounds).items():
            show(title, figures)
        for server in servers.values():
            server.stop()


def on_disk(bodies: list[bytes], events: int, at_once: int, seconds: float) -> Figures:
    """What one core writes to a file, these bodies of so many events, and waits for the disk after some at once."""
    written = size = 0
    with tempfile.TemporaryFile(dir=os.environ.get("DISCREET_BENCH_DIR")) as file:
        begun, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - begun < seconds:
            size += os.writev(file.fileno(), [bodies[(written + n) % len(bodies)] for n in range(at_once)])
            os.fdatasync(file.fileno())
            written += at_once
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return written * events / took, 1e-6 * size / took, 0.0, 0.0, 1e6 * cpu / (written * events)


def streams(numbers: list[int], seconds: float, connections: int, rounds: int) -> None:
    chance = np.random.default_rng(18)
    bodies = [ndjson(rows_of(chance, 1000, 200_000)) for _ in range(200)]
    servers, measures = {}, {}
    for many in numbers:
        names = [f"searches{number}" for number in range(many)]
        told = "".join(STREAM.format(name=name, whose=PEOPLE, tick="10s") for name in names) + LIMITS
        server = servers[many] = Server(False, told)
        requests = [
            request(body, "application/x-ndjson", server.token, names[at % many]) for at, body in enumerate(bodies)
        ]
        measures[f"{many} streams"] = partial(measure, server, requests, 1000, connections, seconds)
    for at_once in (1, 8):
        measures[f"one core to disk, {at_once} at once"] = partial(on_disk, bodies, 1000, at_once, seconds)
    print(f"{machine()}; NDJSON, batches of 1,000, {connections} connections, medians of {rounds} in turns")
    print(HEADINGS)
    for title, figures in medians_in_turns(measures, rounds).items():
        show(title, figures)
    for many, server in servers.items():
        print(f"{many} streams: {server.memory():.0f} MB after it")
        server.stop()


class Viewer(threading.Thread):
    """Somebody who watches a stream, and notes how late each of its ticks comes, in seconds."""

    def __init__(self, server: Server, stream: str) -> None:
        super().__init__(daemon=True)
        self.address = f"http://127.0.0.1:{server.port}/v1/streams/{stream}/live"
        self.late: list[float] = []

    def run(self) -> None:
        with urlopen(self.address) as lines:
            for line in lines:
                if line.startswith(b'data: {"stream'):
                    ends = datetime.fromisoformat(json.loads(line[6:])["ends"].replace("Z", "+00:00"))
                    self.late.append(time.time() - ends.timestamp())


def tick(items: int, seconds: float, connections: int) -> None:
    """Latencies and ticks of one stream without, and with, another whose tick has so many items."""
    chance = np.random.default_rng(18)
    small = STREAM.format(name="searches", whose=PEOPLE, tick="1s")
    large = STREAM.format(name="large", whose="", tick="5s")
    server = Server(False, small + large + LIMITS)
    kind = "application/x-ndjson"
    requests = [request(ndjson(rows_of(chance, 100, 10_000)), kind, server.token) for _ in range(200)]
    many = [
        request(
            "".join(f'{{"query": "item {at + one}"}}\n' for one in range(1000)).encode(), kind, server.token, "large"
        )
        for at in range(0, items, 1000)
    ]
    viewer = Viewer(server, "searches")
    viewer.start()
    print(f"{machine()}; NDJSON, batches of 100, {connections} connections; how late ticks are, seen by a viewer")
    print(f"{'':34}{'events/s':>12}{'p50 ms':>10}{'p99 ms':>10}{'worst':>10}{'ticks late':>12}{'worst':>10}")
    for title in ("alone", f"beside ticks of {items:,} items"):
        if title != "alone":
            measure(server, many, 1000, 1, items / 1e5)
        until, seen = time.monotonic() + seconds, len(viewer.late)
        senders = [Sender(server.port, requests[n::connections], until, 10**9) for n in range(connections)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        times = 1000 * np.concatenate([np.array(sender.times) for sender in senders])
        half, nearly_all = np.quantile(times, [0.5, 0.99])
        waits = f"{half:>10.1f}{nearly_all:>10.1f}{times.max():>10.1f}"
        late = 1000 * np.array(viewer.late[seen + 1 :])
        print(f"{title:34}{len(times) * 100 / seconds:>12,.0f}{waits}{np.median(late):>12.1f}{late.max():>10.1f}")
    server.stop()


def memory(events: int, connections: int) -> None:
    chance = np.random.default_rng(18)
    server = Server(False)
    empty = server.memory()
    sent, begun = 0, time.perf_counter()
    while sent < events:
        requests = [
            request(ndjson(rows_of(chance, 1000, 1_000_000)), "application/x-ndjson", server.token) for _ in range(200)
        ]
        senders = [
            Sender(server.port, requests[n::connections], 1e18, len(requests[n::connections]))
            for n in range(connections)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        sent += 1000 * sum(len(sender.times) for sender in senders)
    took = time.perf_counter() - begun
    time.sleep(15)  # over the end of a tick
    print(
        f"{sent:,} events of a million people in {took:,.0f} s: {empty:.0f} MB before, {server.memory():.0f} MB after"
    )
    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="?", choices=("speed", "memory", "streams", "tick"), default="speed")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 40])
    parser.add_argument("--items", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.seconds, given.connections, given.rounds)
    elif given.what == "streams":
        streams(given.streams, given.seconds, given.connections, given.rounds)
    elif given.what == "tick":
        tick(given.items, max(given.seconds, 12.0), given.connections)
    else:
        memory(given.events, given.connections)


if __name__ == "__main__":
    main()
