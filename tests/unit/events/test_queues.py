"""Topics of Kafka and streams of NATS, by stand-ins for their clients: each counts once, in one order.

`make hosts` asks real brokers the same (tests/hosts/test_queues.py).
"""

import asyncio
import json
import random
import sys
from types import ModuleType, SimpleNamespace

import pytest

from discreet.errors import CorruptStateError, DataError, ParameterError, TryAgainError
from discreet.events import queues
from discreet.events.live_input import LiveInput, follow
from discreet.events.queues import topic_of


class Clock:
    """Time passes when somebody waits."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(queues.time, "monotonic", made.monotonic)
    for name in ("DISCREET_KAFKA_CONFIG", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "NATS_CREDS", "NATS_NKEY"):
        monkeypatch.delenv(name, raising=False)
    return made


# ---- stand-ins -------------------------------------------------------------------------------------------------------


class Kafka(ModuleType):
    """The client of Kafka, and the broker behind it: messages of a partition by their offsets, some of them gone."""

    OFFSET_BEGINNING = -2

    class KafkaException(Exception):  # noqa: N818 (so it is called)
        pass

    def __init__(self, clock, seed=0):
        super().__init__("confluent_kafka")
        self.partitions, self.ends, self.settings, self.closed = {}, {}, [], 0
        self.chance, self.clock, self.at_once = random.Random(seed), clock, 3
        self.fails, self.errors, self.twice, self.wrong = False, [], False, False
        self.Consumer, self.TopicPartition = self.consumer, SimpleNamespace
        self.TopicPartition = lambda topic, partition, offset=None: SimpleNamespace(partition=partition, offset=offset)

    def send(self, *values, partition=0):
        held = self.partitions.setdefault(partition, {})
        for value in values:
            end = self.ends.get(partition, 0)
            held[end], self.ends[partition] = value, end + 1

    def consumer(self, settings):
        if self.wrong:
            raise self.KafkaException("no such setting: secret")
        self.settings.append(settings)
        return Consumer(self)


class Consumer:
    def __init__(self, kafka):
        self.kafka, self.places = kafka, {}

    def list_topics(self, topic, timeout):
        if self.kafka.fails:
            raise Kafka.KafkaException("secret")
        found = dict.fromkeys(self.kafka.partitions)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=found)})

    def get_watermark_offsets(self, part, timeout):
        end = self.kafka.ends[part.partition]
        return min(self.kafka.partitions[part.partition], default=end), end

    def assign(self, parts):
        self.places = {each.partition: max(each.offset, 0) for each in parts}

    def consume(self, number, seconds):
        """Some of what is there, of partitions in any order; where nothing is, time passes."""
        assert seconds > 0
        if self.kafka.fails:
            raise Kafka.KafkaException("secret")
        come = [message(0, 0, None, error) for error in self.kafka.errors]
        for partition in self.kafka.chance.sample(sorted(self.places), len(self.places)):
            left = [each for each in sorted(self.kafka.partitions[partition]) if each >= self.places[partition]]
            for offset in left[: self.kafka.chance.randint(0, self.kafka.at_once)]:
                self.places[partition] = offset + 1
                come += [message(partition, offset, self.kafka.partitions[partition][offset])] * (1 + self.kafka.twice)
        self.kafka.clock.now += 0 if come else max(seconds, 0.5)
        return come

    def close(self):
        self.kafka.closed += 1


def message(partition, offset, value, error=None):
    return SimpleNamespace(partition=lambda: partition, offset=lambda: offset, value=lambda: value, error=lambda: error)


@pytest.fixture
def kafka(monkeypatch, clock):
    made = Kafka(clock)
    monkeypatch.setitem(sys.modules, "confluent_kafka", made)
    return made


class Nats:
    """The client of NATS, and a stream: messages by their sequence."""

    def __init__(self):
        self.messages, self.last, self.known, self.logins, self.subscribed = {}, 0, True, [], []
        self.lose, self.fails, self.closed = set(), [], 0
        errors, js = ModuleType("nats.errors"), ModuleType("nats.js")
        errors.Error = type("Error", (Exception,), {})
        errors.TimeoutError = type("TimeoutError", (errors.Error,), {})
        js.errors, js.api = ModuleType("nats.js.errors"), ModuleType("nats.js.api")
        js.errors.NotFoundError = type("NotFoundError", (errors.Error,), {})
        js.api.AckPolicy = SimpleNamespace(NONE="none")
        js.api.DeliverPolicy = SimpleNamespace(BY_START_SEQUENCE="by sequence")
        js.api.ConsumerConfig = SimpleNamespace
        self.module = ModuleType("nats")
        self.module.errors, self.module.js, self.module.connect = errors, js, self.connect
        self.modules = {"nats": self.module, "nats.errors": errors, "nats.js": js, "nats.js.errors": js.errors}
        self.modules["nats.js.api"] = js.api

    def send(self, *values):
        for value in values:
            self.last += 1
            self.messages[self.last] = value

    async def connect(self, servers, **settings):
        self.logins.append((servers, settings))
        self.failed("connect")
        return self

    def failed(self, what):
        if what in self.fails:
            self.fails.remove(what)
            raise self.module.errors.Error("secret")

    def jetstream(self, timeout):
        return self

    async def stream_info(self, stream):
        if not self.known:
            raise self.module.js.errors.NotFoundError
        state = SimpleNamespace(first_seq=min(self.messages, default=self.last + 1), last_seq=self.last)
        return SimpleNamespace(state=state)

    async def pull_subscribe(self, subject, stream, config):
        self.subscribed.append(config)
        return Pulled(self, config.opt_start_seq)

    async def close(self):
        self.closed += 1


class Pulled:
    def __init__(self, nats, sequence):
        self.nats, self.sequence, self.number = nats, sequence, 0

    async def fetch(self, number, timeout):
        self.nats.failed("fetch")
        found = []
        for sequence in sorted(each for each in self.nats.messages if each >= self.sequence)[:5]:
            self.sequence, self.number = sequence + 1, self.number + 1
            if sequence in self.nats.lose:  # between the server and us
                self.nats.lose.remove(sequence)
                continue
            numbers = SimpleNamespace(consumer=self.number, stream=sequence)
            found.append(SimpleNamespace(metadata=SimpleNamespace(sequence=numbers), data=self.nats.messages[sequence]))
        if not found:
            await asyncio.sleep(0)
            raise self.nats.module.errors.TimeoutError
        return found

    async def unsubscribe(self):
        pass


@pytest.fixture
def nats(monkeypatch):
    made = Nats()
    for name, module in made.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def opened(url, position=0, saved=None, remark=pytest.fail):
    source = follow(url, remark)
    source.open(position, None if saved is None else json.loads(json.dumps(saved)))
    return source


def taken(source, size=1 << 20, patience=200):
    """All that comes, piece by piece."""
    found = b""
    for _ in range(patience):
        source.look()
        found += source.read(size)
        if not source.more():
            break
        source.wait(0.5)
    return found


KAFKA, NATS = "kafka://b.example:9092/visits", "nats://s.example:4222/VISITS"


# ---- rows and positions ----------------------------------------------------------------------------------------------


def test_a_message_is_a_row(kafka):
    kafka.send(b'{"page": "/a"}', b'{"page":\n"/b"}', b"", None, b"no json", b"\xff\xfe", b'{"page": "/c"}\n')
    reader = LiveInput(KAFKA, None, "page", None, needs_items=True)
    reader.open(0)
    found = [item for _ in range(9) for batch in reader.available() for item in batch.values.column(0).to_pylist()]
    assert found == ["/a", "/b", "/c"]
    assert sum(reader.bad.values()) == 2  # one without a byte is a blank line
    reader.close()
    assert kafka.closed == 1
    reader.close()


@pytest.mark.parametrize("seed", range(12))
def test_from_any_message_on_the_same_ones_come_in_the_same_order(kafka, seed):
    """Whatever the broker sends first, or twice, and however often the reader was stopped."""
    kafka.chance = chance = random.Random(seed)
    kafka.twice, kafka.at_once = bool(seed % 2), 1 + seed % 5
    rows = [b"row %d" % number * chance.randint(1, 3) for number in range(60)]
    for row in rows:
        kafka.send(row, partition=chance.randrange(4))
    first = opened(KAFKA)
    data = taken(first, size=chance.randint(1, 60))
    assert sorted(data.split(b"\n")) == sorted([*rows, b""])  # each once
    ends = [place + 1 for place, byte in enumerate(data) if byte == 10]
    for position in sorted(chance.sample(ends, 4)):
        saved = first.saved(position)
        again = opened(KAFKA, position, saved)
        assert again.saved(position) == json.loads(json.dumps(saved))  # before anything was taken again
        part = again.read(1)
        assert json.loads(json.dumps(again.saved(position))) == json.loads(json.dumps(saved))
        assert part + taken(again) == data[position:]
        assert again.before() == b"\n"
    kafka.send(b"new", partition=9)
    last = opened(KAFKA, len(data), first.saved(len(data)))
    assert last.lag == 1
    assert taken(last) == b"new\n"
    assert last.lag == 0


def test_a_stop_between_two_runs_takes_the_others_again(kafka):
    """A state that is saved while messages are taken again has all that are left."""
    for number in range(9):
        kafka.send(b"row %d" % number, partition=number % 3)
    kafka.at_once = 1
    first = opened(KAFKA)
    data = taken(first)
    again = opened(KAFKA, 0, first.saved(0))
    begun = again.read(1)
    assert 0 < len(begun) < len(data)
    third = opened(KAFKA, len(begun), again.saved(len(begun)))
    assert begun + taken(third) == data


def test_some_bytes_at_a_time(kafka):
    kafka.send(*[b"x" * 99] * 50)
    source = opened(KAFKA)
    source.look()
    assert len(source.read(250)) <= 400  # whole messages, and no more than were asked for
    assert source.more()
    assert source.before() == b"\n"
    assert source.beginning(100) == b""


def test_a_partition_that_is_added_is_taken_from_its_start(kafka, clock):
    kafka.send(b"one")
    source = opened(KAFKA)
    assert taken(source) == b"one\n"
    kafka.send(b"two", b"three", partition=1)
    clock.now += 31
    assert taken(source) == b"two\nthree\n"


def test_how_many_wait(kafka):
    kafka.send(*[b"x"] * 7)
    kafka.send(*[b"y"] * 5, partition=1)
    del kafka.partitions[1][0], kafka.partitions[1][1]
    source = opened(KAFKA)
    assert source.lag == 10  # what is gone waits for nobody
    assert source.more()
    taken(source)
    assert source.lag == 0
    assert not source.more()


# ---- what is gone ----------------------------------------------------------------------------------------------------


def test_a_topic_that_was_emptied_is_refused(kafka):
    """Also where only messages after the position were read."""
    kafka.send(*[b"row"] * 8)
    source = opened(KAFKA)
    data = taken(source)
    for position in (0, len(data)):
        saved = source.saved(position)
        kafka.ends[0], held = 7, kafka.partitions[0]
        kafka.partitions[0] = {offset: held[offset] for offset in range(7)}
        with pytest.raises(DataError, match="has fewer messages than were already read; it was emptied or recreated"):
            opened(KAFKA, position, saved)
        kafka.ends[0], kafka.partitions[0] = 8, held
        source = opened(KAFKA, 0, None)
        data = taken(source)


def test_messages_that_were_not_kept_long_enough_are_remarked_on(kafka):
    kafka.send(*[b"row %d" % number for number in range(8)])
    source = opened(KAFKA)
    source.look()
    start = source.read(1)
    saved = source.saved(len(start))
    kafka.partitions[0] = {offset: b"row %d" % offset for offset in (2, 3, 4, 5, 6, 7)}
    remarks = []
    again = opened(KAFKA, len(start), saved, remarks.append)
    assert taken(again) == b"".join(b"row %d\n" % number for number in range(2, 8))
    assert len(remarks) == 1
    assert "messages that were not read yet are gone" in remarks[0]
    assert "row" not in remarks[0]
    remarks.clear()
    opened(KAFKA, 12, {"offsets": [[0, 2]], "runs": []}, remarks.append)
    assert not remarks  # the next one is the first that is there


def test_messages_that_were_read_and_are_gone_leave_a_blank_row_as_long(kafka):
    """Positions of what comes after them stay what they were."""
    kafka.send(*[b"row %d" % number for number in range(6)])
    kafka.at_once = 9
    source = opened(KAFKA)
    data = taken(source)
    saved = source.saved(0)
    for gone in (0, 1), (2, 3), (0, 1, 2, 3, 4), range(6):
        kafka.partitions[0] = {offset: b"row %d" % offset for offset in range(6) if offset not in gone}
        remarks = []
        again = opened(KAFKA, 0, saved, remarks.append)
        found = taken(again)
        assert len(found) == len(data)
        kept = [b"row %d" % number for number in range(6) if number not in gone]
        assert found.split() == b" ".join(kept).split()
        assert any("messages that were read before are gone" in remark for remark in remarks)
        assert again.saved(len(data)) == {"offsets": [[0, 6]], "runs": []}


def test_a_row_before_messages_that_are_gone_counts_once(kafka):
    """A state between the two has the first as read."""
    kafka.send(b"first")
    kafka.send(b"second", b"third", partition=1)
    kafka.chance = SimpleNamespace(sample=lambda places, many: places, randint=lambda least, most: 9)
    source = opened(KAFKA)
    assert taken(source) == b"first\nsecond\nthird\n"
    saved = source.saved(0)
    kafka.partitions[1] = {}
    kafka.send(b"last")
    again = opened(KAFKA, 0, saved, [].append)
    assert taken(again).split() == [b"first", b"last"]
    position = len(b"first\n")
    third = opened(KAFKA, position, again.saved(position), [].append)
    assert taken(third).split() == [b"last"]
    position = len(b"first\nsecond\nthird\n")
    assert again.saved(position) == {"offsets": [[0, 1], [1, 2]], "runs": [[0, 1, 1, 5]]}


def test_messages_that_do_not_come_again_are_waited_for_and_not_for_ever(kafka, clock):
    kafka.send(b"one", b"two")
    source = opened(KAFKA)
    taken(source)
    saved = source.saved(0)
    again = opened(KAFKA, 0, saved)
    kafka.at_once, began = 0, clock.now
    with pytest.raises(TryAgainError, match="did not return messages that were read before; try again later"):
        taken(again)
    assert clock.now - began >= 30


@pytest.mark.parametrize(
    "state",
    [
        None, {}, [], "x", {"offsets": []}, {"offsets": [[0]], "runs": []}, {"offsets": [["a", 1]], "runs": []},
        {"offsets": [], "runs": [[0, 2, 1, 5]]}, {"offsets": [], "runs": [[0, 1, 2, 0]]},
        {"offsets": [], "runs": [[0, 1, 2]]},
    ],
)  # fmt: skip
def test_a_state_that_says_nothing_of_the_messages_is_refused(kafka, state):
    kafka.send(b"one")
    with pytest.raises(CorruptStateError, match="does not say which messages were read"):
        opened(KAFKA, 4, state)


# ---- Kafka -----------------------------------------------------------------------------------------------------------


def test_nothing_is_committed_whatever_the_settings_say(kafka, tmp_path, monkeypatch):
    settings = tmp_path / "kafka.properties"
    settings.write_text(
        "# how to log in\n\nsasl.username = me \nsasl.password=a=b\nenable.auto.commit=true\n"
        "bootstrap.servers=other:1\ngroup.id=mine\nauto.offset.reset=latest\n"
    )
    monkeypatch.setenv("DISCREET_KAFKA_CONFIG", str(settings))
    kafka.send(b"one")
    opened(KAFKA).close()
    (told,) = kafka.settings
    assert told["sasl.username"] == "me"
    assert told["sasl.password"] == "a=b"
    assert told["enable.auto.commit"] is told["enable.auto.offset.store"] is False
    assert (told["bootstrap.servers"], told["auto.offset.reset"]) == ("b.example:9092", "earliest")


def test_settings_that_cannot_be_used_are_named(kafka, tmp_path, monkeypatch):
    kafka.send(b"one")
    monkeypatch.setenv("DISCREET_KAFKA_CONFIG", str(tmp_path / "none"))
    with pytest.raises(ParameterError, match=r"DISCREET_KAFKA_CONFIG names .*none', which cannot be read"):
        opened(KAFKA)
    (tmp_path / "none").write_bytes(b"\xff\xfe=1")
    with pytest.raises(ParameterError, match=r"DISCREET_KAFKA_CONFIG names .*none', which cannot be read"):
        opened(KAFKA)
    monkeypatch.delenv("DISCREET_KAFKA_CONFIG")
    kafka.wrong = True
    with pytest.raises(ParameterError, match="the settings in DISCREET_KAFKA_CONFIG are not valid") as refused:
        opened(KAFKA)
    assert refused.value.__suppress_context__


def test_a_broker_that_fails(kafka):
    with pytest.raises(ParameterError, match=r"kafka://b\.example:9092/visits: there is no such topic"):
        opened(KAFKA)
    kafka.send(b"one", b"two")
    source = opened(KAFKA)
    kafka.fails = True
    for ask in (source.more, lambda: [source.look(), source.read(9)], lambda: source.wait(1), lambda: source.lag):
        with pytest.raises(TryAgainError, match="does not answer; try again later") as failed:
            ask()
        assert "secret" not in str(failed.value)
        assert failed.value.__suppress_context__
    kafka.fails = False
    kafka.errors = [SimpleNamespace(fatal=lambda: False)]  # such as a broker that went and will come back
    assert taken(source) == b"one\ntwo\n"
    kafka.errors = [SimpleNamespace(fatal=lambda: True)]
    kafka.send(b"three")
    with pytest.raises(TryAgainError, match="can no longer be read; try again later"):
        taken(source)


@pytest.mark.parametrize(("url", "module"), [(KAFKA, "confluent_kafka"), (NATS, "nats")])
def test_a_client_that_is_not_installed_is_named(monkeypatch, url, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ParameterError, match=r"needs its client; install it with pip install 'discreet\[(kafka|nats)"):
        opened(url)


@pytest.mark.parametrize("url", ["kafka://me:secret@b/t", "nats://me@b/t", "kafka://b/t?password=secret", "kafka://b"])
def test_a_topic_has_no_password(url):
    with pytest.raises(ParameterError, match=r"is not a topic; write .* without a password") as refused:
        topic_of(url)
    assert "secret" not in str(refused.value).replace("?password=secret", "")


# ---- NATS ------------------------------------------------------------------------------------------------------------


def test_a_stream_is_read_by_its_sequence(nats):
    nats.send(*[b"row %d" % number for number in range(12)])
    first = opened(NATS)
    data = taken(first)
    assert data == b"".join(b"row %d\n" % number for number in range(12))
    assert first.lag == 0
    saved = first.saved(len(b"row 0\n"))
    again = opened(NATS, len(b"row 0\n"), saved)
    assert taken(again) == data[len(b"row 0\n") :]
    for config in nats.subscribed:
        assert config.ack_policy == "none"
    nats.send(b"new")
    last = opened(NATS, len(data), first.saved(len(data)))
    assert nats.subscribed[-1].opt_start_seq == 13
    assert taken(last) == b"new\n"
    for source in (first, again, last):
        source.close()
    assert nats.closed == 3


def test_what_got_lost_on_the_way_is_asked_for_again(nats):
    nats.send(*[b"row %d" % number for number in range(12)])
    nats.lose, nats.fails = {3, 7, 12}, ["fetch"]
    source = opened(NATS)
    assert taken(source) == b"".join(b"row %d\n" % number for number in range(12))
    source.close()


def test_a_stream_begins_where_the_server_still_has_it(nats):
    nats.send(*[b"row %d" % number for number in range(4)])
    for sequence in (1, 2):
        del nats.messages[sequence]
    source = opened(NATS)
    assert source.lag == 2
    assert taken(source) == b"row 2\nrow 3\n"
    source.close()
    with pytest.raises(DataError, match="has fewer messages than were already read"):
        opened(NATS, 100, {"offsets": [[0, 6]], "runs": []})


def test_who_logs_in_is_said_by_the_environment(nats, monkeypatch):
    opened(NATS.replace("s.example:4222", "s.example:4222,t.example:4223")).close()
    for name in ("USER", "PASSWORD", "TOKEN", "CREDS", "NKEY"):
        monkeypatch.setenv(f"NATS_{name}", name.lower())
    opened(NATS).close()
    (servers, quiet), (_, told) = nats.logins
    assert servers == ["nats://s.example:4222", "nats://t.example:4223"]
    names = ("user", "password", "token", "user_credentials", "nkeys_seed")
    assert not {*names} & {*quiet}
    assert [told[name] for name in names] == ["user", "password", "token", "creds", "nkey"]


def test_a_server_that_fails(nats):
    nats.fails = ["connect"]
    with pytest.raises(
        TryAgainError, match=r"nats://s\.example:4222/VISITS does not answer; try again later"
    ) as failed:
        opened(NATS)
    assert "secret" not in str(failed.value)
    nats.known = False
    with pytest.raises(ParameterError, match=r"nats://s\.example:4222/VISITS: there is no such stream"):
        opened(NATS)
