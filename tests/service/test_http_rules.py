"""What an answer says beside its numbers: statuses, headers, when to come again, and what is the same for everybody."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pyarrow as pa
import pytest
from tests.service.conftest import STREAMS, Running, catch_up

import discreet as dc
from discreet.service import access, archive, bodies, catalogue, routes
from discreet.service.access import Shares, make_token
from discreet.service.archive import Archive, csv_form
from discreet.service.bodies import Reader, plausible_event
from discreet.service.definitions import ServiceLimits, StreamDefinition
from discreet.service.problems import ProblemError, stopping
from discreet.service.reference import reference_page
from discreet.service.routes import make_app
from discreet.service.runtime import Lane
from discreet.service.store import Store
from discreet.service.streams import Arrival

VISITS: dict[str, Any] = STREAMS["visits"]


def ask(running: Running, path: str, **headers: str) -> Any:
    return running.client.get(path, headers=headers)


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_refusal_is_never_kept_and_says_how_to_come_in(running: Running) -> None:
    for path, status in (("/v1/streams/people", 401), ("/v1/streams/visits/releases/latest", 404), ("/none", 404)):
        answer = ask(running, path)
        assert (answer.status_code, answer.headers["cache-control"]) == (status, "no-store")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
        assert answer.json()["status"] == status
    wrong = running.client.delete("/v1/streams/visits")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_a_token_is_sent_as_bearer_and_as_nothing_else(running: Running, scheme: str) -> None:
    text = running.token("read")["Authorization"].removeprefix("Bearer ")
    assert ask(running, "/v1/streams/people", Authorization=f"{scheme} {text}").status_code == 200
    for other in (f"Basic {text}", text, f"Bearer {text}x", f"Bearer {text[:-1]}", "Bearer", ""):
        assert ask(running, "/v1/streams/people", Authorization=other).status_code == 401
        assert ask(running, "/v1/streams/visits", Authorization=other).status_code == 401  # also where none is needed


def test_a_token_of_another_process_is_known_within_a_second(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made and removed by a command beside the service."""
    assert ask(running, "/v1/streams/people", **running.token("read")).status_code == 200
    now = [time.monotonic()]
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    running.service.tokens.look_again()
    running.service.tokens.look()
    with closing(Store(running.folder)) as other:
        number, text = make_token(other, "read", "people")
        for step, status in ((0.1, 401), (1.0, 200)):
            now[0] += step
            assert ask(running, "/v1/streams/people", Authorization=f"Bearer {text}").status_code == status
        assert other.remove_token(number)
        assert not other.remove_token(number)
    now[0] += 1.0
    assert ask(running, "/v1/streams/people", Authorization=f"Bearer {text}").status_code == 401


def test_who_is_too_fast_is_told_when_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """This many a second, and some seconds' worth at once; what was not used for longer is not saved up."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limits = SimpleNamespace(requests_per_second=2.0, events_per_second=3.0)
    service: Any = SimpleNamespace(configuration=SimpleNamespace(limits=limits))
    of = access.Access(service)
    caller, other = access.Caller("t 1", None), access.Caller("t 2", None)

    def refused(number: int) -> int | None:
        with pytest.raises(ProblemError) as problem:
            of.events(caller, number)
        assert problem.value.status == 429
        return problem.value.retry_after

    of.events(caller, 29)
    of.events(caller, 1)  # ten seconds' worth
    assert refused(1) == 1
    now[0] = 2.0
    of.events(caller, 96)  # a single large request is let through
    assert refused(1) == 31
    of.events(other, 1)
    of.forget()
    assert refused(1) == 31  # who is in debt is not forgotten
    now[0] = 1000.0
    of.events(caller, 29)
    of.events(caller, 2)
    assert refused(1) == 1
    now[0] = 2000.0
    of.forget()
    of.events(caller, 60)
    assert refused(1) == 11


def test_of_more_callers_than_are_remembered_the_first_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_MOST_CALLERS", 3)
    rates = access._Rates(1e-9, 1.0)
    for name in ("a", "b", "c"):
        rates.take(name, 2)
    with pytest.raises(ProblemError):
        rates.take("b", 1)
    rates.take("d", 2)
    rates.take("a", 2)  # of whom nothing is known any more
    with pytest.raises(ProblemError):
        rates.take("b", 1)


def test_strangers_at_a_stream_take_nothing_of_those_with_a_token() -> None:
    shares = Shares(1000)
    shares.hold("stranger", "open", False).add(300)
    known = shares.hold("known", "open", True)
    known.add(350)
    with pytest.raises(ProblemError):
        known.add(10)
    assert shares.used == 650


def test_a_lane_that_has_stopped_takes_nothing_and_writes_what_it_had() -> None:
    lane, arrival = Lane(), Arrival(1, None, 1)
    lane.submit(arrival, lambda *_: None)
    lane.stop()
    with pytest.raises(ProblemError) as refused:
        lane.submit(arrival, lambda *_: None)
    assert (refused.value.status, refused.value.retry_after) == (503, 5)
    assert [len(group) for group in lane.groups()] == [1]


def test_a_request_that_came_too_late_may_be_sent_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key is not one that is on its way: nobody would ever answer the retry."""

    def submit(*_: Any) -> None:
        raise stopping()

    key = {"Idempotency-Key": "k", **running.token("ingest")}
    with monkeypatch.context() as late:
        late.setattr(running.service, "submit", submit)
        for _ in range(2):
            answer = running.send("visits", [{}], **key)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert running.service.streams["visits"].pending == {}
    assert running.send("visits", [{}], **key).json() == {"accepted": 1}
    assert running.service.streams["visits"].pending == {}


def test_a_pan_stream_forgets_a_key_as_soon_as_it_has_answered(running: Running) -> None:
    key = {"Idempotency-Key": "k", **running.token("ingest")}
    for number in (3, 4):  # another body under the key is no conflict where no body is remembered
        answer = running.send("hidden-visitors", [{"visitor": str(n)} for n in range(number)], **key)
        assert (answer.status_code, answer.json()) == (202, {"accepted": number})
    assert running.service.streams["hidden-visitors"].pending == {}


# ---- surveys --------------------------------------------------------------------------------------------------------


def reports(running: Running, number: int, stream: str = "lunch") -> bytes:
    of_round = ask(running, f"/v1/streams/{stream}/round", **running.token("read")).json()
    return bytes(dc.multiparty.protocol_from_dict(of_round).party(1).encode(["yes"] * number))


def test_reports_without_a_token_are_small_and_one_at_a_time(running: Running) -> None:
    address, token = "/v1/streams/lunch/messages", running.token("ingest")
    assert running.client.post(address, content=reports(running, 2)).status_code == 422
    for size, status in ((4096, 422), (4097, 413)):
        assert running.client.post(address, content=b"x" * size).status_code == status
        assert running.client.post(address, content=b"x" * size, headers=token).status_code == 422
    assert running.client.post(address, content=reports(running, 2), headers=token).json()["accepted"] == 2


def test_reports_are_events_of_their_senders_rate_and_of_a_requests_size(tmp_path: Path) -> None:
    limits = {"events_per_second": 1e-3, "body_rows": 3}
    running = Running(tmp_path, {"lunch": STREAMS["lunch"]}, limits=limits).start()
    token, address = running.token("ingest"), "/v1/streams/lunch/messages"
    assert running.client.post(address, content=reports(running, 4), headers=token).status_code == 413
    assert running.client.post(address, content=reports(running, 3), headers=token).status_code == 202
    assert running.client.post(address, content=reports(running, 1), headers=token).status_code == 429
    running.stop()


def test_whoever_may_answer_may_know_the_round(tmp_path: Path) -> None:
    lunch = {**STREAMS["lunch"], "public": False}
    running = Running(tmp_path, {"asked": lunch, "closed": {**lunch, "open": False}}).start()
    assert ask(running, "/v1/streams/asked/round").status_code == 200
    assert ask(running, "/v1/streams/asked").status_code == 401
    assert ask(running, "/v1/streams/closed/round").status_code == 401
    assert ask(running, "/v1/streams/closed/round", **running.token("ingest")).status_code == 403
    assert ask(running, "/v1/streams/closed/round", **running.token("read")).status_code == 200
    running.stop()


def test_what_is_not_for_a_survey_or_only_for_one(running: Running) -> None:
    sent = running.send("lunch", [{"page": "a"}])
    assert (sent.status_code, "/messages" in sent.text) == (409, True)
    told = running.client.post("/v1/streams/visits/messages", content=b"x", headers=running.token("ingest"))
    assert (told.status_code, "/events" in told.text) == (409, True)
    assert ask(running, "/v1/streams/visits/round").status_code == 404


# ---- bodies ---------------------------------------------------------------------------------------------------------

TOP = StreamDefinition.model_validate({**STREAMS["searches"], "user": None, "max_items": None})


def arrow(*tables: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["ndjson", "json", "csv", "arrow"])
def test_wrong_rows_have_their_numbers_in_large_bodies_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a body count on, at most 100 are listed, and all are counted."""
    monkeypatch.setattr(bodies, "_BLOCK_BYTES", 2000)
    monkeypatch.setattr(bodies, "_BLOCK_BATCHES", 3)
    long, wrong = "x" * 1001, [*range(5, 300, 3), *range(301, 321)]
    queries = [long if n in wrong else "a" for n in range(1, 401)]
    rows = [json.dumps({"query": query}) for query in queries]
    body = {
        "ndjson": "\n".join(rows).encode(),
        "json": f"[{','.join(rows)}]".encode(),
        "csv": "\n".join(["query", *queries]).encode(),
        "arrow": arrow(*(pa.table({"query": queries[at : at + 40]}) for at in range(0, 400, 40))),
    }[kind]
    reader = Reader(TOP)
    with pytest.raises(ProblemError) as refused:
        reader.read(kind, body, False)
    told = json.loads(refused.value.body())
    assert [row["row"] for row in told["rows"]] == wrong[:100]
    assert (told["bad_rows"], told["status"]) == (len(wrong), 422)
    skipped = reader.read(kind, body, True)
    assert (skipped.taken, skipped.skipped) == (400 - len(wrong), len(wrong))


@pytest.mark.parametrize("kind", ["ndjson", "json", "csv", "arrow"])
@pytest.mark.parametrize(("size", "right"), [(1000, True), (1001, False)])
def test_a_field_has_1000_bytes_at_most_also_of_a_single_row(kind: str, size: int, right: bool) -> None:
    text = "é" * (size // 2) + "x" * (size % 2)
    row = json.dumps({"query": text}, ensure_ascii=False)
    forms = {"ndjson": row, "json": row, "csv": f"query\n{text}\n"}
    body = arrow(pa.table({"query": [text]})) if kind == "arrow" else forms[kind].encode()
    reader = Reader(TOP)
    found = reader.read(kind, body, True)
    assert (found.taken, found.skipped) == ((1, 0) if right else (0, 1))
    small = reader.read_small(kind, body)
    assert (small is not None) == (right and kind != "csv")


@pytest.mark.parametrize(
    ("number", "text"), [("0", "0"), ("-0", "0"), ("-7", "-7"), (str(2**80), str(2**80)), ("1.0", None), ("1e2", None)]
)
@pytest.mark.parametrize("beside", [b"", b'{"query":null}\n'])
def test_numbers_count_as_their_digits(number: str, text: str | None, beside: bytes) -> None:
    """Whether the other rows are right or not."""
    found = Reader(TOP).read("ndjson", beside + f'{{"query":{number}}}'.encode(), True)
    assert found.columns is not None
    assert found.columns.column("item").to_pylist() == ([] if text is None else [text])


def test_a_table_has_no_column_twice() -> None:
    table = pa.table([["a"], ["b"]], names=["query", "query"])
    with pytest.raises(ProblemError, match="two columns with the same name") as refused:
        Reader(TOP).read("arrow", arrow(table), True)
    assert refused.value.status == 422


def test_dictionaries_that_take_the_place_of_others_are_looked_at_once_each() -> None:
    """A writer may send another one with every batch."""
    reader = Reader(TOP, ServiceLimits(body_bytes=2**16))

    def table(number: int) -> pa.Table:
        words = pa.array([f"{number:04d}{n:04d}" for n in range(200)])
        return pa.table({"query": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), words)})

    assert reader.read("arrow", arrow(*map(table, range(30))), False).taken == 60


def test_a_set_with_a_long_item_is_found_in_any_batch() -> None:
    sets = StreamDefinition.model_validate({**STREAMS["searches"], "user": None, "sets": True})
    long = "x" * 1001
    tables = [pa.table({"query": pa.array(lists, pa.list_(pa.string()))}) for lists in (
        [["a"], ["b", "c"], []], [["d"], ["e", long], ["f"]], [None, ["g"]],
    )]  # fmt: skip
    with pytest.raises(ProblemError) as refused:
        Reader(sets).read("arrow", arrow(*tables), False)
    assert [row["row"] for row in json.loads(refused.value.body())["rows"]] == [5, 7]
    found = Reader(sets).read("arrow", arrow(*tables), True)
    assert found.columns is not None
    assert found.columns.column("item").to_pylist() == [["a"], ["b", "c"], [], ["d"], ["f"], ["g"]]


@pytest.mark.parametrize("kind", ["ndjson", "json", "csv", "arrow"])
def test_a_condition_on_a_public_table_leaves_out_what_the_table_does_not_say(tmp_path: Path, kind: str) -> None:
    (tmp_path / "kinds.csv").write_text("query,kind,group\na,news,x\nb,sport,x\nc,,x\nd,news,\n")
    words = {"lookup": str(tmp_path / "kinds.csv"), "on": "query", "where": {"kind": "news", "lang": "de"}}
    table = {**STREAMS["searches"], "user": None, "max_items": None, "column": "group", **words}
    rows = [{"query": query, "lang": lang} for query in [*"abcde", ""] for lang in ("de", "fr")]
    columns = {name: [row[name] for row in rows] for name in ("query", "lang")}
    body = {
        "ndjson": "".join(json.dumps(row) + "\n" for row in rows).encode(),
        "json": json.dumps(rows).encode(),
        "csv": "\n".join(["query,lang", *(f"{row['query']},{row['lang']}" for row in rows)]).encode(),
        "arrow": arrow(pa.table(columns)),
    }[kind]
    reader = Reader(StreamDefinition.model_validate(table))
    for read in (reader.read(kind, body, False), reader.read_small(kind, body)):
        if read is not None:
            assert read.columns is not None
            assert (read.taken, read.counted, read.columns.to_pylist()) == (12, 1, [{"item": "x"}])


def test_visitors_of_two_sites_are_not_the_same() -> None:
    event = b'{"n": "pageview", "u": "https://a.example/", "d": "%s"}'
    found = {plausible_event(event % site, b"k" * 32, "10.0.0.1", "b")[1]["visitor"] for site in (b"a", b"b")}
    assert len(found) == 2


@pytest.mark.parametrize(
    ("query", "answer"), [("", {"accepted": 2}), ("?bad_rows=skip", {"accepted": 2, "skipped": 0})]
)
@pytest.mark.parametrize("way", [{}, {"Origin": "https://www.example.org"}])
def test_how_many_were_skipped_is_said_where_that_was_asked(
    running: Running, query: str, answer: Any, way: dict[str, str]
) -> None:
    """By the short way and by the long one."""
    given = {**running.token("ingest"), "Content-Type": "application/x-ndjson", **way}
    sent = running.client.post(f"/v1/streams/visits/events{query}", content=b"{}\n{}\n", headers=given)
    assert (sent.status_code, sent.json()) == (202, answer)


def test_a_body_has_its_time_however_steadily_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.uploads._LOOK_SECONDS", 0.02)
    limits = {"body_seconds": 0.1, "body_bytes_per_second": 1}
    running = Running(tmp_path, {"visits": {**STREAMS["visits"], "open": True}}, limits=limits).start()
    found: list[int] = []

    async def drip() -> None:
        async def receive() -> Any:
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"\n", "more_body": True}

        async def send(message: Any) -> None:
            found.append(message.get("status", 0))

        scope = {
            "type": "http", "method": "POST", "path": "/v1/streams/visits/events", "query_string": b"",
            "root_path": "", "headers": [(b"content-type", b"application/x-ndjson")], "http_version": "1.1",
            "scheme": "http", "client": ("10.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        with anyio.fail_after(60):
            await running.client.app(scope, receive, send)  # type: ignore[arg-type]

    assert running.client.portal is not None
    running.client.portal.call(drip)
    assert found[0] == 408
    assert running.service.shares.used == 0
    running.stop()


# ---- out ------------------------------------------------------------------------------------------------------------


def test_a_program_of_another_site_may_see_how_to_go_on(tmp_path: Path) -> None:
    origin = {"Origin": "https://www.example.org"}
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, cors=["https://www.example.org"]).start()
    shown = ask(running, "/v1/streams", **origin).headers["access-control-expose-headers"]
    assert {name.strip() for name in shown.split(",")} == {"ETag", "Link", "Retry-After"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Idempotency-Key"}
    assert running.client.options("/v1/streams/visits/events", headers={**origin, **asked}).status_code == 200
    asked["Access-Control-Request-Method"] = "DELETE"
    assert running.client.options("/v1/streams/visits/events", headers={**origin, **asked}).status_code == 400
    running.stop()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_time_without_a_zone_is_in_utc(running: Running, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the machine is."""
    running.pass_ticks(3)
    try:
        with monkeypatch.context() as here:
            here.setenv("TZ", zone)
            time.tzset()
            found = ask(running, "/v1/streams/visits/releases?from=2027-01-15T08:01:00&to=2027-01-15 08:02:00").json()
        assert [release["tick"] for release in found["releases"]] == [2]
    finally:
        time.tzset()


@pytest.mark.parametrize(
    ("first", "to", "ticks"),
    [
        ("2027-01-15T08:00:00Z", "2027-01-15T08:03:00Z", [1, 2, 3]),
        ("2027-01-15T08:00:01Z", "2027-01-15T08:02:59Z", [2]),
        ("2027-01-15T09:01:00+01:00", "2027-01-15T09:02:00 01:00", [2]),  # a plus that a browser sent as a blank
        ("2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z", [1, 2, 3]),
        ("2099-01-01T00:00:00Z", "4", []),
        ("2", "99", [2, 3]),
        ("0", "1", [1]),
    ],
)
def test_ticks_by_time_are_those_within(running: Running, first: str, to: str, ticks: list[int]) -> None:
    running.pass_ticks(3)
    answer = running.client.get("/v1/streams/visits/releases", params={"from": first, "to": to})
    assert [release["tick"] for release in answer.json()["releases"]] == ticks


def test_an_answer_by_bytes_and_by_number_goes_on_where_it_ended(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the two limits is met first, and with all that was asked."""
    running.pass_ticks(9)
    for at_once, bytes_ in ((2, 2**20), (4, 1), (4, 2**20), (2, 1)):
        monkeypatch.setattr("discreet.service.routes._AT_ONCE", at_once)
        limits = running.configuration.limits.model_copy(update={"answer_bytes": bytes_})
        monkeypatch.setattr(
            running.service, "configuration", running.configuration.model_copy(update={"limits": limits})
        )
        found, address = [], "/v1/streams/visits/releases?from=2&every=2&format=json"
        while address:
            answer = ask(running, address)
            found += [release["tick"] for release in answer.json()["releases"]]
            link = answer.headers.get("link", "")
            assert bool(link) == ("next" in answer.json())
            address = link and "/v1/streams/visits/releases" + link.removeprefix("<").partition(">")[0]
            assert not link or ("every=2" in link and "format=json" in link)
        assert found == [2, 4, 6, 8]


def test_formulas_are_texts_in_a_spreadsheet(running: Running) -> None:
    items = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "x=1", "", "'"]
    rows = [{"item": item, "count": 1, "lower": 0, "upper": None} for item in items]
    release = {"stream": "searches", "tick": 1, "begins": "b", "ends": "e", "missed": True, "items": rows}
    text = csv_form(running.service.streams["searches"])([json.dumps(release).encode()], True).decode()
    cells = [row[5] for row in csv.reader(io.StringIO(text, newline=""))][1:]
    assert cells == ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "x=1", "", "'"]
    assert {row[4] for row in csv.reader(io.StringIO(text, newline=""))} == {"missed", "true"}


def test_metrics_are_of_their_readers_alone(running: Running) -> None:
    admin, read = (ask(running, "/metrics", **running.token(scope)) for scope in ("admin", "read"))
    private = ("discreet_spool_bytes", "discreet_accepted_total", "discreet_trouble", "discreet_lag_seconds")
    assert [name in admin.text for name in private] == [True] * 4
    for other in (read, ask(running, "/metrics"), ask(running, "/metrics", **running.token("ingest"))):
        assert [name in other.text for name in private] == [False] * 4
    assert 'discreet_trouble{stream="visits"} 0' in admin.text
    running.service.streams["visits"].trouble = "OSError at here.py:1"
    told = ask(running, "/metrics", **running.token("admin")).text
    assert 'discreet_trouble{stream="visits"} 1' in told
    assert 'discreet_trouble{stream="searches"} 0' in told
    assert "OSError" not in told
    running.service.streams["visits"].trouble = None


def test_metrics_can_be_read_whatever_an_item_is(running: Running) -> None:
    stream: Any = running.service.streams["searches"]
    rows = [{"item": 'a"b\\c\nd', "count": 5, "lower": 1, "upper": None}]
    stream.latest = {"stream": "searches", "tick": 1, "begins": "b", "ends": "e", "missed": False, "items": rows}
    lines = catalogue.metrics(running.service, [stream]).split("\n")
    assert 'discreet_released{stream="searches",item="a\\"b\\\\c\\nd"} 5' in lines
    assert 'discreet_released_upper{stream="searches",item="a\\"b\\\\c\\nd"} +Inf' in lines
    assert 'discreet_released_lower{stream="searches",item="a\\"b\\\\c\\nd"} 1' in lines


def test_what_is_spent_by_others_is_looked_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("readers", dc.Budget(1e6, 1e-3))
    people = {**STREAMS["people"], "account": "readers", "public": True}
    running = Running(tmp_path / "data", {"people": people}, ledger=str(tmp_path / "budgets.sqlite")).start()
    now = [1000.0]
    monkeypatch.setattr(catalogue, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def spent() -> float:
        return float(ask(running, "/v1/streams/people").json()["budget"]["account"]["spent"]["epsilon"])

    assert spent() == pytest.approx(1e5)
    ledger.account("readers").charge(dc.Budget(7.0, 1e-9), "another", unit=dc.User())
    assert spent() == pytest.approx(1e5)
    now[0] += 5.1
    assert spent() == pytest.approx(1e5 + 7)
    running.stop()


# ---- live -----------------------------------------------------------------------------------------------------------


def test_viewers_are_counted_and_let_go(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, limits={"live_clients": 1}).start()
    live = running.client.app.state.live  # type: ignore[attr-defined]
    stream = running.service.streams["visits"]
    running.pass_ticks(1)

    async def look() -> None:
        for _ in range(3):
            first = live.events(stream, None)
            assert await anext(first) == b"retry: 2000\n\n"
            with pytest.raises(ProblemError) as refused:
                live.events(stream, None)
            assert (refused.value.status, refused.value.retry_after) == (503, 60)
            assert (await anext(first)).startswith(b"event: release\nid: 1\n")
            await first.aclose()

    assert running.client.portal is not None
    running.client.portal.call(look)
    running.stop()


def test_a_silent_stream_says_that_it_is_there(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is between does not end the connection."""
    monkeypatch.setattr(archive, "_KEEP_ALIVE_SECONDS", 0.01)
    live = running.client.app.state.live  # type: ignore[attr-defined]

    async def wait() -> list[bytes]:
        events = live.events(running.service.streams["visits"], None)
        with anyio.fail_after(60):
            found = [await anext(events) for _ in range(3)]
        await events.aclose()
        return found

    assert running.client.portal is not None
    assert running.client.portal.call(wait) == [b"retry: 2000\n\n", b": here\n\n", b": here\n\n"]


def test_the_end_of_a_stream_is_said(running: Running) -> None:
    running.pass_ticks(5)
    answer = ask(running, "/v1/streams/hidden-visitors/live", **{"Last-Event-ID": "4"})
    assert (answer.headers["x-accel-buffering"], answer.headers["cache-control"]) == ("no", "no-store")
    parts = answer.text.split("\n\n")
    assert parts[1].startswith("event: release\nid: 5\ndata: {")
    assert parts[2:] == ["event: end\ndata: {}", ""]


def test_one_reader_of_a_new_tick_that_fails_or_leaves_takes_nothing_from_the_others(running: Running) -> None:
    running.pass_ticks(1)
    found: list[Any] = []
    failing = iter([sqlite3.OperationalError("disk I/O error")])

    class Once:
        def some_releases(self, *given: Any) -> Any:
            for error in failing:
                raise error
            return running.service.store.some_releases(*given)

    async def read() -> None:
        of = Archive(Once())  # type: ignore[arg-type]
        with pytest.raises(sqlite3.OperationalError):
            await of.events("visits", 1, 1)
        first, second = (asyncio.ensure_future(of.events("visits", 1, 1)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        found.extend(await second)

    assert running.client.portal is not None
    running.client.portal.call(read)
    assert [tick for tick, _ in found] == [1]


def test_an_answer_that_breaks_off_is_not_begun_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    running.pass_ticks(3)
    monkeypatch.setattr(archive, "_BLOCK_BYTES", 1)
    some, seen = Store.some_releases, []

    def fails(self: Store, name: str, which: Any, most: int) -> Any:
        if which.first == 2:
            raise sqlite3.OperationalError("SECRET")
        return some(self, name, which, most)

    monkeypatch.setattr(Store, "some_releases", fails)

    async def read() -> None:
        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(message: Any) -> None:
            seen.append(message)

        scope = {
            "type": "http", "method": "GET", "path": "/v1/streams/visits/releases", "query_string": b"from=1",
            "root_path": "", "headers": [], "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }  # fmt: skip
        app: Any = make_app(running.service, start=False)
        with anyio.fail_after(120):
            await app(scope, receive, send)

    assert running.client.portal is not None
    running.client.portal.call(read)
    assert [message["type"] for message in seen].count("http.response.start") == 1
    assert seen[0]["status"] == 200
    assert b"SECRET" not in b"".join(message.get("body", b"") for message in seen)
    assert seen[-1].get("more_body", False)  # the client sees that it is not whole


def test_late_and_on_time_are_said_each_time(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "discreet.service")
    stream: Any = running.service.streams["visits"]
    for _ in range(2):
        with monkeypatch.context() as slow:
            slow.setattr(stream, "work", lambda: False)
            running.pass_ticks(3)
        catch_up(running.service)
    said = [record.getMessage() for record in caplog.records if "visits is" in record.getMessage()]
    assert ["on time" in line for line in said] == [False, True, False, True]


def test_the_page_of_the_interface_runs_nothing_that_is_in_its_description() -> None:
    text = "<script>alert('x')</script>"
    described = {
        "info": {"title": text, "version": text, "description": text},
        "paths": {
            f"/{text}": {
                text: {
                    "description": text,
                    "parameters": [{"name": text, "in": text, "description": text}],
                    "requestBody": {"content": {text: {}}},
                    "responses": {
                        text: {"description": text, "content": {"x": {"schema": {"$ref": f"#/components/{text}"}}}}
                    },
                }
            }
        },
        "components": {"schemas": {text: {"description": text, "properties": {text: {}}, "required": []}}},
    }
    page = reference_page(described)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") + page.count("&lt;SCRIPT&gt;") >= 15


def test_who_asked_is_forgotten_also_when_nobody_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_FORGET_SECONDS", 0.01)
    forgotten = threading.Event()
    forget = access.Access.forget
    monkeypatch.setattr(access.Access, "forget", lambda self: (forget(self), forgotten.set()))
    looked = threading.Event()
    look = access.Tokens.look
    monkeypatch.setattr(access.Tokens, "look", lambda self: (look(self), looked.set()))
    running = Running(tmp_path, {"visits": STREAMS["visits"]}).start()
    assert forgotten.wait(120)
    assert looked.wait(120)
    running.stop()


def test_refusals_are_counted_by_their_reason_and_their_stream(tmp_path: Path) -> None:
    """Of what was to be taken: who reads is not counted, and a name that does not exist is nowhere."""
    streams = {"visits": VISITS, "other": VISITS, "lunch": STREAMS["lunch"], "short": {**VISITS, "horizon": "1m"}}
    running = Running(tmp_path, streams, limits={"body_bytes": 2000, "body_rows": 2}).start()
    token = running.token("ingest")
    running.pass_ticks(1)
    text, nd = "text/csv", "application/x-ndjson"
    for name, way, kind, body, headers in (
        ("visits", "events", nd, b"[", token), ("visits", "events", nd, b"[1]", token),
        ("visits", "events", "application/json", b"{", token), ("visits", "events", "image/png", b"", token),
        ("visits", "events", text, b"a\n" * 9, token), ("visits", "events", text, b"a" * 3000, token),
        ("visits", "events", nd, b"{}", {}), ("visits", "events", nd, b"{}", running.token("read")),
        ("visits", "messages", nd, b"{}", token), ("lunch", "events", nd, b"{}", token),
        ("lunch", "messages", nd, b"{}", token), ("short", "events", nd, b"{}", token),
        ("none", "events", nd, b"{}", token), ("other", "events", nd, b"{}", token),
    ):  # fmt: skip
        running.client.post(f"/v1/streams/{name}/{way}", content=body, headers={**headers, "Content-Type": kind})
    assert ask(running, "/v1/streams/visits/releases?from=x").status_code == 422
    status = ask(running, "/v1/admin/status", **running.token("admin")).json()
    assert {stream["name"]: stream["refused"] for stream in status["streams"]} == {
        "visits": {
            "bad rows": 2, "conflict": 1, "format": 1, "malformed": 1, "no token": 1, "not allowed": 1, "too large": 2,
        },
        "other": {}, "lunch": {"bad rows": 1, "conflict": 1}, "short": {"ended": 1},
    }  # fmt: skip
    said = ask(running, "/metrics", **running.token("admin")).text
    assert 'discreet_refused_total{stream="visits",reason="too large"} 2' in said
    assert 'discreet_accepted_total{stream="other"} 1' in said
    running.stop()


def test_an_answer_with_nothing_is_one_in_every_format(tmp_path: Path) -> None:
    days = {**{key: VISITS[key] for key in VISITS if key != "horizon"}, "per": "1d", "tick": "12h"}
    streams = {"visits": VISITS, "searches": STREAMS["searches"], "days": days}
    running = Running(tmp_path, streams).start()
    head = ["stream", "tick", "begins", "ends", "missed"]
    for name, more in (
        ("visits", ["value", "lower", "upper"]),
        ("searches", ["item", "count", "lower", "upper"]),
        ("days", ["period", "final", "value", "lower", "upper"]),
    ):
        address = f"/v1/streams/{name}/releases?from=9&to=8"
        assert ask(running, address).json() == {"stream": name, "releases": []}
        text = ask(running, f"{address}&format=csv")
        assert text.text.splitlines() == [",".join([*head, *more])]
        assert text.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
        table = pa.ipc.open_stream(ask(running, f"{address}&format=arrow").content).read_all()
        assert (table.num_rows, table.schema.names) == (0, [*head, *more])
    running.stop()
    running = Running(tmp_path / "days", {"days": days}).start()
    for _ in range(3):
        running.pass_ticks(1, 43_200.0)
    both = [ask(running, f"/v1/streams/days/releases?from=1&format={kind}") for kind in ("csv", "arrow")]
    cells = [row.split(",")[1:2] + row.split(",")[4:7] for row in both[0].text.splitlines()[1:]]
    days_of = [("2027-01-15", False), ("2027-01-15", True), ("2027-01-16", False)]
    assert cells == [[str(tick), "false", day, str(last).lower()] for tick, (day, last) in enumerate(days_of, 1)]
    rows = pa.ipc.open_stream(both[1].content).read_all().to_pylist()
    assert [(row["tick"], row["missed"], row["period"], row["final"]) for row in rows] == [
        (tick, False, *each) for tick, each in enumerate(days_of, 1)
    ]
    final = ask(running, "/v1/streams/days/releases?from=1&final=true").json()["releases"]
    assert [release["tick"] for release in final] == [2]
    running.stop()
