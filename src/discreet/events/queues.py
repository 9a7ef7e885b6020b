"""Topics of Kafka and streams of NATS as growing inputs: `kafka://broker:9092/topic`, `nats://server:4222/STREAM`.

A message is a row: its bytes, with newlines as blanks, and a newline after them. A position counts these bytes in the
order in which they were taken, as that of a file does, so all that reads growing inputs reads queues, too.

The order of messages of several partitions is nobody's but ours. So a state keeps, beside the offsets at its position,
which messages were taken after it, in runs of offsets, and a watch that goes on takes the same messages in the same
order before it takes new ones. Nothing is committed to the broker, and no group is joined: whatever a broker forgets,
moves or sends twice, a message counts once, because its offset says whether it was taken.
"""

from __future__ import annotations

import os
import re
import time
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from discreet.errors import CorruptStateError, DataError, ParameterError, TryAgainError
from discreet.events.inputs import shown

FORMATS_OF_MESSAGES = ("jsonl", "text", "combined", "common", "baskets")
"""In which a row is a line, whatever is in it: a quote of CSV would go on in the next message."""
_LOOK = 1 << 24  # bytes of a look: a tick may end meanwhile
_PATIENCE = 30.0  # seconds for a broker that does not answer
_BEGINNING = -1


def topic_of(url: str) -> tuple[str, str, str]:
    """The kind, the servers and the topic of a URL."""
    found = re.fullmatch(r"(kafka|nats)://([^/@\s]+)/([\w.\-]+)", url)
    if found is None:
        raise ParameterError(
            f"{shown(url)!r} is not a topic; write kafka://BROKER:9092/TOPIC or nats://SERVER:4222/STREAM, "
            "without a password (docs/queues.md explains credentials)"
        )
    return found[1], found[2], found[3]


def opened_log(url: str) -> _Log:
    """A topic or a stream, opened."""
    kind, servers, topic = topic_of(url)
    return _Kafka(servers, topic) if kind == "kafka" else _Nats(servers, topic)


class QueuedMessage(NamedTuple):
    """One message: where it is, and what it holds."""

    partition: int
    offset: int
    data: bytes


class _Log(Protocol):
    """What a queue is read through."""

    def bounds(self) -> dict[int, tuple[int, int]]:
        """The first offset and the one after the last, of every partition."""
        ...

    def go_to(self, offsets: dict[int, int]) -> None:
        """Take these partitions next, from these offsets on."""
        ...

    def take(self, seconds: float) -> list[QueuedMessage]:
        """What has come; waits at most so long for the first of it."""
        ...

    def close(self) -> None: ...


class Queued:
    """A queue, followed: what `Followed` is of a file."""

    ended = False

    def __init__(self, url: str, remark: Callable[[str], None]) -> None:
        self._url, self._remark, self._room = url, remark, 0
        self._log: Any = None  # a _Log, once it is open
        self._position = 0  # after the last message that was taken
        self._start = 0  # that a state was saved for
        self._at: dict[int, int] = {}  # next offsets there
        self._next: dict[int, int] = {}  # next offsets after the last message that was taken
        # The messages since then: partition, offset, and the position after each.
        self._partitions, self._offsets, self._ends = array("q"), array("q"), array("q")
        self._again: deque[list[int]] = deque()  # runs that were taken before a restart
        self._waiting: deque[QueuedMessage] = deque()
        self._looked = 0.0

    def open(self, position: int, saved: Any) -> None:
        """Go to a position, and take again what was taken after it, in the same order."""
        kept, self._again = _checked(saved, position)
        self._log = opened_log(self._url)
        self._position = self._start = position
        self._at, self._next = dict(kept), dict(kept)
        after = dict(kept)
        for partition, _, last, _ in self._again:
            after[partition] = last + 1
        for partition, (first, end) in self._log.bounds().items():
            if after.get(partition, 0) > end:
                raise DataError(f"{self._url} has fewer messages than were already read; it was emptied or recreated")
            if first > kept.get(partition, first):
                self._remark(f"{self._url}: messages that were not read yet are gone: the queue kept them too short")
        if not self._again:
            self._follow()

    def _follow(self) -> None:
        """Take new messages of all partitions."""
        self._looked = time.monotonic()
        self._log.go_to({each: self._next.get(each, _BEGINNING) for each in self._log.bounds()})

    def look(self) -> str | None:
        """See what is there now, for `read`; now and then whether there are more partitions."""
        self._room = _LOOK
        if not self._again and time.monotonic() - self._looked > _PATIENCE:
            self._looked = time.monotonic()
            if set(self._log.bounds()) - set(self._next):
                self._follow()
        return None

    def read(self, size: int) -> bytes:
        """Some of the messages that have come. Never waits for new ones."""
        if self._again:
            return self._taken_again(*self._again.popleft())
        if self._room <= 0:
            return b""
        if not self._waiting:
            self._waiting.extend(self._log.take(0.0))
        lines: list[bytes] = []
        while self._waiting and size > 0:
            message = self._waiting.popleft()
            if message.offset < self._next.get(message.partition, _BEGINNING):
                continue  # it was taken
            line = self._noted(message)
            lines.append(line)
            size -= len(line)
            self._room -= len(line)
        return b"".join(lines)

    def _noted(self, message: QueuedMessage) -> bytes:
        line = message.data.replace(b"\n", b" ") + b"\n"
        self._position += len(line)
        self._next[message.partition] = message.offset + 1
        self._note_end(message.partition, message.offset)
        return line

    def _note_end(self, partition: int, offset: int) -> None:
        self._partitions.append(partition)
        self._offsets.append(offset)
        self._ends.append(self._position)

    def _taken_again(self, partition: int, first: int, last: int, length: int) -> bytes:
        """The messages of a run, as they were: what is gone is a blank row as long as they were."""
        self._log.go_to({partition: first})
        lines: list[bytes] = []
        kept, _ = self._log.bounds().get(partition, (first, 0))  # where all are gone, none may come after them
        reached, until = max(first, kept), time.monotonic() + _PATIENCE
        while reached <= last:
            for message in self._log.take(0.5):
                if message.partition == partition and reached <= message.offset <= last:
                    lines.append(self._noted(message))
                    until = time.monotonic() + _PATIENCE
                reached = max(reached, message.offset + 1) if message.partition == partition else reached
            if time.monotonic() > until:
                raise TryAgainError(f"{self._url} did not return messages that were read before; try again later")
        found = b"".join(lines)
        if len(found) != length:
            self._remark(f"{self._url}: messages that were read before are gone, and their rows with them")
            found = found[:length]
            found += b" " * (length - len(found) - 1) + b"\n" if len(found) < length else b""
            self._position += length - sum(map(len, lines))
            if lines:
                self._ends[-1] = self._position
            else:  # a row of its own: what came before it ends where it did
                self._note_end(partition, last)
        self._next[partition] = last + 1
        if not self._again:
            self._follow()
        return found

    def more(self) -> bool:
        """Whether messages wait to be taken."""
        return bool(self._again or self._waiting) or self.lag > 0

    @property
    def lag(self) -> int:
        """How many messages have not been taken yet. NOT PRIVATE: for the operator's eyes."""
        bounds = self._log.bounds()
        return sum(max(0, end - max(first, self._next.get(each, first))) for each, (first, end) in bounds.items())

    def wait(self, seconds: float) -> None:
        """Until messages come, at most so long."""
        if not self._waiting and not self._again:
            self._waiting.extend(self._log.take(seconds))

    def before(self) -> bytes:
        """The last byte that was read: messages are whole."""
        return b"\n" if self._position else b""

    def beginning(self, size: int) -> bytes:
        """There is no header."""
        return b""

    def saved(self, position: int) -> Any:
        """The offsets at this position, and the messages that were taken after it, in runs; earlier ones are over."""
        done = 0
        while done < len(self._ends) and self._ends[done] <= position:
            self._at[self._partitions[done]] = self._offsets[done] + 1
            self._start = self._ends[done]
            done += 1
        del self._partitions[:done], self._offsets[:done], self._ends[:done]
        runs: list[list[int]] = []
        before = self._start
        for partition, offset, end in zip(self._partitions, self._offsets, self._ends, strict=True):
            if runs and runs[-1][0] == partition and runs[-1][2] < offset:
                runs[-1][2] = offset
                runs[-1][3] += end - before
            else:
                runs.append([partition, offset, offset, end - before])
            before = end
        return {"offsets": sorted([each, offset] for each, offset in self._at.items()), "runs": [*runs, *self._again]}

    def close(self) -> None:
        """Let go of the queue."""
        if self._log is not None:
            self._log.close()
            self._log = None


def _checked(saved: Any, position: int) -> tuple[dict[int, int], deque[list[int]]]:
    """What a state says, which is only as good as its bytes."""
    with suppress(TypeError, ValueError, KeyError):
        if saved is None and position == 0:
            return {}, deque()
        offsets = {int(partition): int(offset) for partition, offset in saved["offsets"]}
        runs = [
            [int(partition), int(first), int(last), int(length)] for partition, first, last, length in saved["runs"]
        ]
        if all(first <= last and length > 0 for _, first, last, length in runs):
            return offsets, deque(runs)
    raise CorruptStateError("the state does not say which messages were read")


# ---- Kafka -----------------------------------------------------------------------------------------------------------


class _Kafka:
    """All partitions of a topic, assigned by hand. DISCREET_KAFKA_CONFIG names a file with settings of librdkafka."""

    def __init__(self, servers: str, topic: str) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise ParameterError("Kafka needs its client; install it with pip install 'discreet[kafka]'") from None
        self._kafka, self._topic = confluent_kafka, topic
        self._name = f"kafka://{servers}/{topic}"
        settings = _properties(os.environ.get("DISCREET_KAFKA_CONFIG")) | {
            "bootstrap.servers": servers,
            "group.id": "discreet",  # which librdkafka asks for; nothing is committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        try:
            self._consumer = confluent_kafka.Consumer(settings)
        except (confluent_kafka.KafkaException, ValueError, TypeError):
            raise ParameterError(f"{self._name}: the settings in DISCREET_KAFKA_CONFIG are not valid") from None

    def bounds(self) -> dict[int, tuple[int, int]]:
        found = {}
        with self._answered():
            told = self._consumer.list_topics(self._topic, timeout=_PATIENCE).topics[self._topic]
            if told.error is not None or not told.partitions:
                raise ParameterError(f"{self._name}: there is no such topic")
            for each in sorted(told.partitions):
                part = self._kafka.TopicPartition(self._topic, each)
                found[each] = self._consumer.get_watermark_offsets(part, timeout=_PATIENCE)
        return found

    def go_to(self, offsets: dict[int, int]) -> None:
        begin = self._kafka.OFFSET_BEGINNING
        with self._answered():
            self._consumer.assign(
                [
                    self._kafka.TopicPartition(self._topic, each, begin if offset == _BEGINNING else offset)
                    for each, offset in offsets.items()
                ]
            )

    def take(self, seconds: float) -> list[QueuedMessage]:
        with self._answered():
            come: list[Any] = self._consumer.consume(10_000, seconds or 0.01)
        for error in (each.error() for each in come):
            if error is not None and error.fatal():
                raise TryAgainError(f"{self._name} can no longer be read; try again later")
        good = (each for each in come if each.error() is None)
        return [QueuedMessage(each.partition(), each.offset(), each.value() or b"") for each in good]

    def _answered(self) -> Any:
        return _answering(self._name, self._kafka.KafkaException)

    def close(self) -> None:
        self._consumer.close()


def _properties(path: str | None) -> dict[str, str]:
    """Lines of name=value, as in the files of Kafka's own tools."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"DISCREET_KAFKA_CONFIG names {path!r}, which cannot be read") from None
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


class _answering:  # noqa: N801 (a context)
    """Errors of a client, in our words."""

    def __init__(self, name: str, *errors: type[BaseException]) -> None:
        self._name, self._errors = name, errors

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, self._errors):
            raise TryAgainError(f"{self._name} does not answer; try again later") from None


# ---- NATS ------------------------------------------------------------------------------------------------------------


class _Nats:
    """A stream of JetStream, by its sequence. Its client is asynchronous, and has a thread of its own.

    Messages are not acknowledged. The server numbers what it sends, so what got lost between it and us is noticed, and
    asked for again from the last sequence on.
    """

    def __init__(self, servers: str, stream: str) -> None:
        try:
            import nats
        except ImportError:
            raise ParameterError("NATS needs its client; install it with pip install 'discreet[nats]'") from None
        import asyncio
        import threading

        self._name, self._stream, self._timeout = f"nats://{servers}/{stream}", stream, nats.errors.TimeoutError
        self._errors = (nats.errors.Error, OSError, asyncio.TimeoutError)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()
        self._pulled: Any = None
        self._sequence, self._number = 1, 0  # what is next, and how many messages this consumer was sent

        async def connected() -> Any:
            said = os.environ
            login = {
                "user": said.get("NATS_USER"),
                "password": said.get("NATS_PASSWORD"),
                "token": said.get("NATS_TOKEN"),
            }
            login |= {"user_credentials": said.get("NATS_CREDS"), "nkeys_seed": said.get("NATS_NKEY")}
            known: dict[str, Any] = {name: value for name, value in login.items() if value}
            quiet: dict[str, Any] = {"error_cb": _silent, "connect_timeout": 5, "max_reconnect_attempts": 5}
            return await nats.connect([f"nats://{each}" for each in servers.split(",")], **known, **quiet)

        try:
            self._client = self._run(connected())
            self._js = self._client.jetstream(timeout=_PATIENCE)
        except BaseException:
            self._end()
            raise

    def _run(self, work: Any) -> Any:
        import asyncio

        with _answering(self._name, *self._errors):
            found = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        return found

    def bounds(self) -> dict[int, tuple[int, int]]:
        async def asked() -> Any:
            from nats.js.errors import NotFoundError

            try:
                return (await self._js.stream_info(self._stream)).state
            except NotFoundError:
                raise ParameterError(f"{self._name}: there is no such stream") from None

        state = self._run(asked())
        return {0: (max(1, state.first_seq), state.last_seq + 1)}

    def go_to(self, offsets: dict[int, int]) -> None:
        self._sequence, self._number = max(1, offsets[0]), 0
        self._run(self._subscribed())

    async def _subscribed(self) -> None:
        from nats.js import api

        if self._pulled is not None:
            with suppress(*self._errors):
                await self._pulled.unsubscribe()
        config = api.ConsumerConfig(
            ack_policy=api.AckPolicy.NONE,
            inactive_threshold=300.0,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._sequence,
        )
        self._pulled = await self._js.pull_subscribe("", stream=self._stream, config=config)
        self._number = 0

    def take(self, seconds: float) -> list[QueuedMessage]:
        return list(self._run(self._fetched(seconds or 0.05)))

    async def _fetched(self, seconds: float) -> list[QueuedMessage]:
        try:
            come = await self._pulled.fetch(1000, timeout=seconds)
        except self._timeout:
            return []
        except self._errors:  # the consumer is gone, or the connection was
            await self._subscribed()
            return []
        found = []
        for each in come:
            numbers = each.metadata.sequence
            if numbers.consumer != self._number + 1:  # something was lost on the way
                await self._subscribed()
                break
            self._number, self._sequence = numbers.consumer, numbers.stream + 1
            found.append(QueuedMessage(0, numbers.stream, each.data))
        return found

    def close(self) -> None:
        async def closed() -> None:
            with suppress(*self._errors):
                if self._pulled is not None:
                    await self._pulled.unsubscribe()
                await self._client.close()

        with suppress(TryAgainError):
            self._run(closed())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._loop.is_running():
            self._loop.close()


async def _silent(error: Exception) -> None:
    """What the client would print."""
