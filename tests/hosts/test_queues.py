"""Messages of Kafka (librdkafka's mock cluster) and NATS (its server) in `discreet watch`: each counts once."""

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from tests.ports import free_port
from tests.stores import wait_for

from discreet.errors import DataError, ParameterError
from discreet.events.live_input import LiveInput
from discreet.events.queues import Queued, topic_of

pytestmark = pytest.mark.hosts
PATIENCE = 120  # seconds, for what takes a few even on a busy machine


class Kafka:
    """Mock brokers of librdkafka, in this process: they speak Kafka's protocol on sockets, and keep nothing on disk."""

    def __init__(self):
        import confluent_kafka

        self._producer = confluent_kafka.Producer({"test.mock.num.brokers": 3, "log_level": 0})
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self._servers = ",".join(f"{each.host}:{each.port}" for each in brokers)

    def topic(self, name):
        self._producer.list_topics(name, timeout=10)  # which makes it
        return f"kafka://{self._servers}/{name}"

    def send(self, name, values, partitions=4):
        for value in values:
            self._producer.produce(name, value, partition=random.Random(value).randrange(partitions))
        self._producer.flush(30)

    def close(self):
        pass


class Nats:
    """The server of NATS, with JetStream."""

    def __init__(self, folder):
        program = shutil.which("nats-server") or "/usr/sbin/nats-server"
        if not os.path.exists(program):
            if os.environ.get("CI"):
                pytest.fail("nats-server is not installed: `make hosts` installs it")
            pytest.skip("nats-server is not installed")
        self._port, self._folder = free_port(), folder
        self._command = [program, "-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(folder)]
        self.start()

    def start(self):
        self._server = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self._port)

    def stop(self):
        self._server.kill()
        self._server.wait()

    def topic(self, name):
        self._do(lambda js: js.add_stream(name=name, subjects=[f"{name}.*"]))
        return f"nats://127.0.0.1:{self._port}/{name}"

    def send(self, name, values, partitions=1):
        async def all_of(js):
            for value in values:
                await js.publish(f"{name}.x", value)

        self._do(all_of)

    def _do(self, work):
        async def run():
            import nats

            client = await nats.connect(f"nats://127.0.0.1:{self._port}")
            await work(client.jetstream())
            await client.close()

        asyncio.run(run())

    close = stop


@pytest.fixture(scope="module", params=["kafka", "nats"])
def queue(request, tmp_path_factory):
    server = Kafka() if request.param == "kafka" else Nats(tmp_path_factory.mktemp("nats"))
    yield server
    server.close()


_names = iter(range(1000))


@pytest.fixture
def name():
    return f"visits{next(_names)}"


def _rows(numbers, day=1):
    return [
        json.dumps({"page": f"/p{n % 3}", "n": n, "at": f"2026-11-{day:02}T{n % 24:02}:00:00Z"}).encode()
        for n in numbers
    ]


def _read(reader, seconds=PATIENCE, until=None):
    """The items that come, as they come."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end and (until is None or len(found) < until):
        for batch in reader.available():
            found += batch.values.column("item").to_pylist()
        if until is None and not reader.source.more():
            break
        reader.source.wait(0.1)
    return found


def test_every_message_is_a_row(queue, name):
    url = queue.topic(name)
    queue.send(name, [*_rows(range(50)), b"no json", b'{"page": "/a\\nb",\n "n": 1}', b"", b"\xff\xfe"])
    reader = LiveInput(url, None, "page", None, needs_items=True)
    reader.open(0)
    found = _read(reader)
    assert sorted(found) == sorted([*(f"/p{n % 3}" for n in range(50)), "/a\nb"])
    assert sum(reader.bad.values()) == 2  # a blank message is no row
    assert reader.source.lag == 0
    queue.send(name, _rows(range(7)))
    assert reader.source.lag == 7
    assert len(_read(reader, until=7)) == 7
    reader.close()


def test_what_was_taken_is_taken_again_in_the_same_order(queue, name):
    """From any position: the same bytes, and then what is new, each once."""
    url = queue.topic(name)
    queue.send(name, _rows(range(300)))
    first = Queued(url, print)
    first.open(0, None)
    pieces, end = [], time.monotonic() + PATIENCE
    while sum(len(piece) for piece in pieces) < sum(len(row) + 1 for row in _rows(range(300))):
        first.look()
        pieces.append(first.read(997))
        if not pieces[-1]:
            first.wait(0.1)
        assert time.monotonic() < end
    data = b"".join(pieces)
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    for position in [ends[0], ends[17], ends[150], ends[-1]]:
        state = json.loads(json.dumps(first.saved(position)))
        again = Queued(url, pytest.fail)
        again.open(position, state)
        rest, end = b"", time.monotonic() + PATIENCE
        while len(rest) < len(data) - position and time.monotonic() < end:
            again.look()
            rest += again.read(1 << 20)
        assert rest == data[position:]
        assert json.loads(json.dumps(again.saved(position))) == state
        again.close()
    queue.send(name, _rows([7]))
    last = Queued(url, pytest.fail)
    last.open(len(data), first.saved(len(data)))
    end = time.monotonic() + PATIENCE
    new = b""
    while not new and time.monotonic() < end:
        last.look()
        new = last.read(1 << 20)
        last.wait(0.1)
    assert new == _rows([7])[0] + b"\n"
    for one in (first, last):
        one.close()


def test_a_queue_that_was_made_anew_is_refused(queue, name):
    url = queue.topic(name)
    queue.send(name, _rows(range(4)))
    later = Queued(url, print)
    with pytest.raises(DataError, match="fewer messages than were already read"):
        later.open(10_000, {"offsets": [[0, 9_999]], "runs": []})
    later.close()


@pytest.mark.parametrize("url", ["kafka://x", "nats://u:secret@h/S", "kafka://h/a/b", "redis://h/x"])
def test_what_is_no_topic_is_refused(url):
    with pytest.raises(ParameterError, match="not a topic") as refused:
        topic_of(url)
    assert "secret" not in str(refused.value)
    with pytest.raises(ParameterError, match="messages of a queue must be"):
        LiveInput("kafka://h/x", "csv", "page", None, needs_items=True)


def _watch(url, state, *more, kill_after=None):
    """Run a watch; its lines. Killed after some seconds, or to its end."""
    words = ["watch", url, "--state", state, "--column", "page", "--epsilon", "1000", "--delta", "1e-3", *more]
    command = [sys.executable, "-c", "from discreet.cli import main; main()", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=kill_after)
        assert process.returncode == 0, err
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
    return [json.loads(line) for line in out.splitlines() if line.endswith("}")]


def test_kills_lose_nothing_and_count_nothing_twice(queue, name, tmp_path):
    """Ticks of 100 rows, killed again and again while messages come: the last tick has counted each message once."""
    url, state, ticks = queue.topic(name), tmp_path / "state", 12
    chance, published = random.Random(1), {}
    words = ("--rows", 100, "--horizon", ticks)
    sent = 0
    for _ in range(6):
        queue.send(name, _rows(range(sent, sent + 200)))
        sent += 200
        for line in _watch(url, state, *words, kill_after=chance.uniform(0.8, 2.5)):
            assert published.setdefault(line["tick"], line) == line
    for line in _watch(url, state, *words, kill_after=PATIENCE):
        assert published.setdefault(line["tick"], line) == line
    last = published[ticks]
    counts = {each["item"]: each["count"] for each in last["items"]}
    assert {item: round(count / 10) for item, count in counts.items()} == {"/p0": 40, "/p1": 40, "/p2": 40}
    assert sorted(published)[-1] == ticks


def test_late_rows_are_counted_once_through_kills(queue, name, tmp_path):
    """Ticks by a column of times, with rows that wait for their tick when the watch is killed."""
    url, state = queue.topic(name), tmp_path / "state"
    words = ("--tick", "1h", "--time", "at", "--late", "2h", "--start", "2026-11-01T00:00:00Z", "--horizon", 30)
    published = {}
    for part in range(3):
        queue.send(name, [row for n in range(part * 8, part * 8 + 8) for row in _rows([n] * 40)], partitions=1)
        for line in _watch(url, state, *words, kill_after=2.5):
            assert published.setdefault(line["tick"], line) == line
    queue.send(name, [row for n in range(6) for row in _rows([n] * 2, day=2)], partitions=1)
    for line in _watch(url, state, *words, "--once", kill_after=PATIENCE):
        assert published.setdefault(line["tick"], line) == line
    counts = {each["item"]: each["count"] for each in published[24]["items"]}
    assert {item: round(count / 10) for item, count in counts.items()} == {"/p0": 32, "/p1": 32, "/p2": 32}


def test_a_rebalance_and_a_commit_of_others_change_nothing(name):
    """Kafka: others join and leave the group that librdkafka asks for, and commit its offsets to the end."""
    import confluent_kafka

    kafka = Kafka()
    url = kafka.topic(name)
    group = {"bootstrap.servers": kafka._servers, "group.id": "discreet", "auto.offset.reset": "earliest"}
    group |= {"session.timeout.ms": 6000, "log_level": 0}
    reader = LiveInput(url, None, "page", None, needs_items=True)
    reader.open(0)
    found, sent = [], 0
    for _ in range(3):
        kafka.send(name, _rows(range(sent, sent + 100)))
        sent += 100
        other = confluent_kafka.Consumer(group)
        assigned = []
        other.subscribe([name], on_assign=lambda consumer, parts, assigned=assigned: assigned.extend(parts))
        end = time.monotonic() + 60
        while not assigned:
            assert time.monotonic() < end
            other.consume(1, 0.2)
        found += _read(reader, until=sent - len(found))  # while the other has all partitions of the group
        ends = [confluent_kafka.TopicPartition(name, each.partition, 10_000) for each in assigned]
        other.commit(offsets=ends, asynchronous=False)
        other.close()
    assert len(_read(reader, seconds=2, until=1)) == 0
    reader.close()
    assert sorted(found) == sorted(f"/p{n % 3}" for n in range(sent))
    again = LiveInput(url, None, "page", None, needs_items=True)  # from the beginning, whatever was committed
    again.open(0)
    assert len(_read(again, until=sent)) == sent
    again.close()


_SERVED = """
import json, sys, time
from pathlib import Path
from discreet.service.definitions import load
from discreet.service.runtime import Service
folder = Path(sys.argv[1])
service = Service(load(folder / "streams.toml"), folder / "data")
service.start()
print("started", flush=True)
while True:
    time.sleep(0.05)
    state = service.status().streams[0]
    print(json.dumps([state.ticks_published, state.queue_lag, state.refused, service.ready]), flush=True)
"""


def test_a_stream_of_a_service_counts_each_message_once_through_kills(queue, name, tmp_path):
    """Ticks of a second, killed again and again: published counts never exceed what was sent, and reach it."""
    url, chance, sent = queue.topic(name), random.Random(3), 0
    (tmp_path / "streams.toml").write_text(
        f"""
[streams.pages]
kind = "top"
k = 3
column = "page"
universe = ["/p0", "/p1", "/p2"]
tick = "1s"
horizon = 3600
epsilon = 1000000
delta = 1e-3
source = "{url}"
"""
    )
    command = [sys.executable, "-W", "ignore", "-c", _SERVED, str(tmp_path)]
    for part in range(6):
        queue.send(name, [*_rows(range(sent, sent + 300)), b"no event"])
        sent += 300
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "started\n", process.stderr.read()
        end = time.monotonic() + (chance.uniform(0.2, 2.0) if part < 5 else PATIENCE)
        for line in process.stdout:
            _, lag, refused, _ = json.loads(line)
            is_out = part == 5 and lag == 0 and sum(_counts(tmp_path).values()) >= sent - 9
            if is_out or time.monotonic() > end:
                break
        process.kill()
        process.communicate()
        assert sum(_counts(tmp_path).values()) <= sent + 9
    assert {item: round(count / 10) for item, count in _counts(tmp_path).items()} == dict.fromkeys(
        ("/p0", "/p1", "/p2"), 60
    )
    assert set(refused) <= {"a message that is no event"}


def _counts(folder):
    """What the last tick has published."""
    with closing(sqlite3.connect(folder / "data" / "service.sqlite")) as store:
        found = store.execute("select release from releases order by tick desc limit 1").fetchone()
    return {} if found is None else {each["item"]: each["count"] for each in json.loads(found[0])["items"]}


def test_a_server_that_is_killed_and_comes_back(name, tmp_path):
    """NATS: the messages are on its disk, and the watch goes on where it was."""
    server = Nats(tmp_path / "nats")
    try:
        url = server.topic(name)
        server.send(name, _rows(range(100)))
        reader = LiveInput(url, None, "page", None, needs_items=True)
        reader.open(0)
        assert len(_read(reader, until=100)) == 100
        server.stop()
        server.start()
        server.send(name, _rows(range(100, 150)))
        found = []
        for _ in range(50):
            try:
                found += _read(reader, seconds=1, until=50)
            except Exception:
                time.sleep(0.2)
            if len(found) >= 50:
                break
        assert len(found) == 50
        reader.close()
    finally:
        server.close()
