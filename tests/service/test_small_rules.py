"""Rules of the service that no answer shows at once: each is looked at where it is made."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from starlette.requests import Request
from tests.service.conftest import START, STREAMS, Running, catch_up

import discreet as dc
from discreet.noise import seeded_source
from discreet.service import access, bodies, event_spool, increases, streams
from discreet.service.bodies import Reader, plausible_event
from discreet.service.definitions import ServiceLimits, StreamDefinition
from discreet.service.event_spool import Record, packed
from discreet.service.problems import ProblemError
from discreet.service.routes import PAGE
from discreet.service.runs import Curated, items_shown, number_shown
from discreet.service.streams import Arrival
from discreet.service.uploads import Uploads


def test_a_live_interval_is_one_of_95_percent() -> None:
    """1.96 deviations, and half a step."""
    assert number_shown(1000.0, 100.0) == {"value": 1000, "lower": 803, "upper": 1197}


def test_an_event_that_comes_when_its_tick_is_over_counts_in_the_next(running: Running) -> None:
    """The clock decides, also before anybody has published the tick."""
    running.send("visits", [{}] * 3)
    running.clock.now += 60.0  # nothing has looked at the clock since
    running.send("visits", [{}] * 5)
    catch_up(running.service)
    stream: Any = running.service.streams["visits"]
    assert (stream.tick, stream.spool_events) == (1, 5)


def test_seeded_reports_are_refused(running: Running) -> None:
    protocol = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())
    message = protocol.party(1, source=seeded_source(1)).encode(["yes"])
    answer = running.client.post("/v1/streams/lunch/messages", content=message)
    assert (answer.status_code, "not private" in answer.text) == (422, True)


LINES: dict[bytes, tuple[int, int]] = {  # taken and wrong
    b'{"query":"a","visitor":"b"} {"query":"a","visitor":"b"}': (0, 1),
    b'{"query":"a","visitor":"b"}{"query":"a","visitor":"b"}': (0, 1),
    b'{"query":"a",\n"visitor":"b"}': (0, 2),
    b'{"query":"a",\n"visitor":"b"}\n{"query":"a","visitor":"b"}{"query":"a","visitor":"b"}': (0, 3),
    b'{"query":"}","visitor":"\\n{"}\r\n\n \t\n  {"visitor":"b","query":"{"}  ': (2, 0),
}


@pytest.mark.parametrize("body", LINES)
@pytest.mark.parametrize("block", [20, 2**20])
def test_a_line_is_one_event_whatever_the_others_hold(body: bytes, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, beside right lines and beside wrong ones, in one look at all lines or line by line."""
    monkeypatch.setattr(bodies, "_BLOCK_BYTES", block)
    reader = Reader(StreamDefinition.model_validate(STREAMS["searches"]))
    right, (taken, wrong) = b'{"query":"a","visitor":"b"}\n', LINES[body]
    for before, after, more, bad in ((b"", b"", 0, 0), (right, b"\n" + right, 2, 0), (b"x\n", b"\n" + right, 1, 1)):
        found = reader.read("ndjson", before + body + after, True)
        assert (found.taken, found.skipped) == (taken + more, wrong + bad)
        if block > len(before + body + after):
            small = reader.read_small("ndjson", before + body + after)
            assert (small is None) if wrong + bad else (small is not None and small.taken == taken + more)


def test_a_long_line_holds_no_more_events_than_a_request_may_have() -> None:
    reader = Reader(StreamDefinition.model_validate(STREAMS["visits"]), ServiceLimits(body_rows=10))
    for body in (b"{}" * 2**20, b"{}\n" * 5 + b"{}" * 2**20 + b"\n"):
        found = reader.read("ndjson", body, True)
        assert (found.taken, found.skipped) == (body.count(b"\n") and 5, 1)


def test_visitors_are_told_by_a_key_of_the_service() -> None:
    event = json.dumps({"n": "pageview", "u": "https://shop.example/", "d": "shop.example"}).encode()
    visitors = [plausible_event(event, key, "10.0.0.1", "browser")[1]["visitor"] for key in (b"a" * 32, b"b" * 32)]
    assert visitors[0] != visitors[1]


def test_another_body_under_a_key_that_is_on_its_way_is_refused() -> None:
    stream: Any = SimpleNamespace(before=lambda key, digest: None, pending={b"key": (b"digest", None)})
    arrival = Arrival(1, b"", 1, b"key", b"another")
    with pytest.raises(ProblemError, match="another body"):
        asyncio.run(Uploads._answered(object.__new__(Uploads), stream, arrival))


def test_what_is_refused_for_its_rate_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    rates = access._Rates(1.0, 2.0)
    rates.take("a", 3)
    for _ in range(100):
        with pytest.raises(ProblemError):
            rates.take("a", 3)
    now = 2.0
    rates.take("a", 1)


def test_the_old_file_of_a_pan_private_stream_is_overwritten(running: Running) -> None:
    path = running.folder / "streams" / "hidden-visitors" / "pan.state"
    old = os.open(path, os.O_RDONLY)
    try:
        assert any(os.pread(old, 10**6, 0))
        running.send("hidden-visitors", [{"visitor": "me"}])
        assert not any(os.pread(old, 10**6, 0))
        assert any(path.read_bytes())
    finally:
        os.close(old)


def test_events_of_a_pan_private_count_are_elements_of_their_own(tmp_path: Path) -> None:
    count = {"kind": "count", "tick": "1m", "horizon": "5m", "epsilon": 8.0, "trust": "pan", "public": True}
    running = Running(tmp_path, {"count": count}).start()
    try:
        stream: Any = running.service.streams["count"]
        for key in (None, b"key"):
            numbers = stream._elements(Arrival(500, None, 500, key))
            assert len(set(numbers.tolist())) == 500  # but for a probability of 1e-14
    finally:
        running.stop()


def test_a_key_that_was_counted_does_not_count_again(running: Running) -> None:
    """Two records with one key, of which the first was given to the mechanism before the second was read."""
    stream: Any = running.service.streams["visits"]
    record = packed(Record(7, None, b"k" * 16, b"d" * 16, 7))
    given: list[int] = []
    stream.present.add = lambda records: given.append(sum(record.rows for record in records))
    for _ in range(2):
        stream._spool.append(1, [record])
        stream._feed(1)
    assert sum(given) == 7


def test_midnight_is_in_the_day_that_it_begins() -> None:
    run: Any = object.__new__(Curated)
    run._span = (START, START + 86400)
    times = [START - 1, START, START + 86399, START + 86400]
    batch = pa.record_batch({"time": pa.array([str(time) for time in times], pa.large_string()), "item": [*"abcd"]})
    assert run._of_span(batch).column("item").to_pylist() == ["b", "c"]


def test_no_increase_is_told_over_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(increases, "_increase", lambda stream, then, now: (then["tick"], now["tick"]))
    told = {tick: json.dumps({"tick": tick, "run": 1 + (tick > 2)}) for tick in range(1, 5)}
    store: Any = SimpleNamespace(release=lambda name, tick: told.get(tick))
    stream: Any = SimpleNamespace(name="s")
    assert [*increases.increases(store, stream, range(1, 6), 1)] == [(1, 2), (3, 4)]


def test_how_much_may_wait_is_drawn_anew_at_every_tick(running: Running) -> None:
    """Two of fifty uniform draws of 53 bits are equal with a chance below 1e-12."""
    stream: Any = running.service.streams["visits"]
    limit, seen = running.configuration.limits.spool_bytes, []
    for tick in range(1, 51):
        stream.open_tick = tick
        seen += [stream._most_waiting(), stream._most_waiting()]
    assert len(set(seen)) == 50
    assert all(0.75 * limit <= most <= limit for most in seen)


def test_a_ledger_with_an_account_of_the_same_name_is_still_another_one(tmp_path: Path) -> None:
    ledgers = [tmp_path / "first.sqlite", tmp_path / "second.sqlite"]
    people = {**STREAMS["people"], "account": "readers"}
    for ledger in ledgers:
        dc.Ledger(ledger).grant("readers", dc.Budget(1e6, 1e-3))
    running = Running(tmp_path / "data", {"people": people}, ledger=str(ledgers[0])).start()
    running.pass_ticks()
    with pytest.raises(dc.LedgerError, match="started with another ledger"):
        running.again({"people": people}, ledger=str(ledgers[1]))


def test_a_body_that_does_not_say_its_length_is_cut_off_too(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, limits={"body_bytes": 2000}).start()
    try:
        given = {**running.token("ingest"), "Content-Type": "application/x-ndjson"}
        pieces = (b'{"a": 1}\n' for _ in range(1000))
        assert running.client.post("/v1/streams/visits/events", content=pieces, headers=given).status_code == 413
    finally:
        running.stop()


def test_events_that_could_not_be_synced_are_not_found_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were refused, so they may not count, also not after a restart."""
    spool = event_spool.EventSpool(tmp_path / "spool")
    record = packed(Record(1, b"x"))
    spool.append(1, [record])
    sync = event_spool._to_disk
    failing = iter([OSError("the disk is full")])

    def fails_once(file: int) -> None:
        for error in failing:
            raise error
        sync(file)

    monkeypatch.setattr(event_spool, "_to_disk", fails_once)
    with pytest.raises(OSError, match="full"):
        spool.append(1, [record, record])
    spool.close()
    again = event_spool.EventSpool(tmp_path / "spool")
    assert len([*again.read(1, 0)]) == 1
    again.close()


def test_the_interval_of_an_increase_is_from_the_worst_of_both_ends() -> None:
    then, now = {"value": 100, "lower": 90, "upper": 120}, {"value": 300, "lower": 280, "upper": 330}
    found = increases._difference("value", "value", then, now)
    assert found == {"value": 200, "lower": 160, "upper": 240}


def test_so_many_items_are_shown_as_were_asked_for() -> None:
    release = dc.top_k(["a"] * 500 + ["b"] * 400 + ["c"] * 300, 3, dc.Budget(5.0, 1e-6))
    assert len(release) == 3
    assert [row["item"] for row in items_shown(release, 2)["items"]] == ["a", "b"]


def key_of(
    body: bytes = b"{}\n", query: str = "", kind: str = "application/x-ndjson", token: int | None = 1, **words: Any
) -> Any:
    """What `Uploads` makes of a request: the key that is kept, and the digest of what came under it."""
    headers = [(b"content-type", kind.encode()), *((name.encode(), value.encode()) for name, value in words.items())]
    headers = [(name.replace(b"_", b"-"), value) for name, value in headers]
    request = Request(
        {"type": "http", "method": "POST", "path": "/", "query_string": query.encode(), "headers": headers}
    )
    caller = access.Caller("t 1", access.Token(token, "ingest", None)) if token else access.Caller("a 10.0.0.1", None)
    return Uploads.key(object.__new__(Uploads), request, caller, body)


def test_a_key_stands_for_all_that_came_under_it() -> None:
    """The body, how it is read, and what becomes of its bad rows; nothing that changes none of these."""
    key, digest = key_of(idempotency_key="k")
    for others in ({"body": b"{} \n"}, {"query": "bad_rows=skip"}, {"kind": "text/csv"}):
        again = key_of(**others, idempotency_key="k")
        assert again[0] == key, others
        assert again[1] != digest, others
    for same in ({"kind": "Application/X-NDJSON; charset=utf-8"}, {"user_agent": "another"}):
        assert key_of(**same, idempotency_key="k") == (key, digest)
    assert key_of(idempotency_key="another")[0] != key
    assert key_of() == (None, None)
    # A stranger's key is that of all that came with it, whoever sends it.
    strange = key_of(token=None, idempotency_key="k")
    assert strange[0] != key
    assert strange == key_of(token=None, idempotency_key="k")
    others = [{"body": b"{} \n"}, {"query": "bad_rows=skip"}, {"kind": "text/csv"}]
    assert len({strange[0], *(key_of(token=None, **each, idempotency_key="k")[0] for each in others)}) == 4


@pytest.mark.parametrize("name", ["visits", "people", "searches"])
def test_what_a_mechanism_had_before_it_failed_is_given_to_it_again(
    running: Running, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With its keys: after a failure all of the tick is read again, and each request counts once."""
    monkeypatch.setattr(streams, "_FEED_BYTES", 1)
    stream: Any = running.service.streams[name]

    def send(first: int, number: int, key: str) -> None:
        rows = [{"visitor": f"v{first + n}", "query": "cats"} for n in range(number)]
        assert running.send(name, rows, **{"Idempotency-Key": key}).status_code == 202

    send(0, 200, "first")
    catch_up(running.service)  # the mechanism has them
    assert stream._fed_keys
    send(200, 300, "second")
    take = stream.present.add

    def fails(records: Any) -> None:
        take(records)
        raise MemoryError

    monkeypatch.setattr(stream.present, "add", fails)
    with pytest.raises(MemoryError):
        stream.work()
    assert stream._is_torn
    send(500, 50, "third")
    running.pass_ticks()
    release = running.latest(name)
    found = release["items"][0]["count"] if name == "searches" else release["value"]
    assert abs(found - 550) <= 2
    assert not stream._is_torn


def test_how_far_a_queue_was_read_is_kept_for_ever_and_keys_of_requests_are_not(tmp_path: Path) -> None:
    """A message of a queue may come again after years, as long as somebody keeps it; a request is repeated soon."""
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, limits={"key_hours": 0.02}).start()
    stream: Any = running.service.streams["visits"]
    given = {"key of a request": b"k" * 16, "an offset": streams.OFFSET_KEY + b"topic 0 17"}
    for key in given.values():
        stream.keys[key] = (b"d" * 16, 1, stream.open_tick)
    running.pass_ticks()
    store = running.service.store
    assert {name: store.key("visits", key) for name, key in given.items()} == dict.fromkeys(given, (b"d" * 16, 1))
    running.pass_ticks(3)
    assert store.key("visits", given["key of a request"]) is None
    assert store.key("visits", given["an offset"]) == (b"d" * 16, 1)
    running.again()
    assert running.service.store.keys_like("visits", streams.OFFSET_KEY) == [given["an offset"]]
    running.stop()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_an_end_of_an_interval_that_is_zero_is_known_on_the_page() -> None:
    """Only an end that is missing is open: counts begin at 0."""
    told = {
        "0, 7": ["0 to 7", "between 0 and 7"],
        "-3, 0": ["-3 to 0", "between -3 and 0"],
        "0, null": ["at least 0", "at least 0"],
        "undefined, 0": ["at most 0", "at most 0"],
        "null, undefined": ["not known", "not known"],
    }
    asked = ", ".join(f"[interval({ends}), between({ends})]" for ends in told)
    program = (PAGE / "js" / "format.js").read_text() + f"\nconsole.log(JSON.stringify([{asked}]));"
    done = subprocess.run(
        ["node", "--input-type=module", "-"], input=program, capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == list(told.values())
