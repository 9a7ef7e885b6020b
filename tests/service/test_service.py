"""Events in, ticks by the clock, releases out: every promise of docs/service.md that one process can show."""

from __future__ import annotations

import hashlib
import io
import json
import queue
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.service.conftest import START, STREAMS, Running, catch_up, seal

import discreet as dc
from discreet.errors import DiscreetError, LedgerError, ParameterError
from discreet.service.access import make_token
from discreet.service.definitions import configuration
from discreet.service.runtime import Service
from discreet.service.streams import Arrival, SpooledStream


def rows(number: int, query: str = "cats", first: int = 0) -> list[dict[str, Any]]:
    return [{"query": query, "visitor": f"v{first + i}"} for i in range(number)]


# ---- ticks ----------------------------------------------------------------------------------------------------------


def test_events_are_published_at_the_end_of_their_tick(running: Running) -> None:
    for stream in ("searches", "visits", "people"):
        response = running.send(stream, rows(300))
        assert (response.status_code, response.json()) == (202, {"accepted": 300})
    assert running.client.get("/v1/streams/searches/releases/latest").status_code == 404
    running.pass_ticks()
    top = running.latest("searches")
    assert (top["tick"], top["missed"], top["confidence"]) == (1, False, 0.95)
    assert (top["begins"], top["ends"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z")
    assert [item["item"] for item in top["items"]] == ["cats"]
    assert abs(top["items"][0]["count"] - 300) < 20
    assert top["items"][0]["lower"] <= 300 <= top["items"][0]["upper"]
    assert abs(running.latest("visits")["value"] - 300) <= 2
    assert abs(running.latest("people")["value"] - 300) <= 2


def test_ticks_close_when_nothing_happened_and_missed_ones_are_published_as_such(running: Running) -> None:
    running.send("visits", rows(10))
    running.pass_ticks()
    running.pass_ticks()
    running.send("visits", rows(7))
    running.stop()
    running.clock.now += 4.2 * 60
    running.start()
    catch_up(running.service)
    found = running.client.get("/v1/streams/visits/releases?from=1").json()["releases"]
    assert [release["tick"] for release in found] == [1, 2, 3, 4, 5, 6]
    assert [release["missed"] for release in found] == [False, False, True, True, True, False]
    assert abs(found[-1]["value"] - 17) <= 2


def test_a_clock_that_jumps_publishes_every_tick_once(running: Running) -> None:
    running.send("visits", rows(5))
    running.pass_ticks(60)  # forward by an hour
    assert running.service.streams["visits"].tick == 60
    running.clock.now -= 3600
    running.send("visits", rows(5))
    catch_up(running.service)
    running.pass_ticks(30)
    assert running.service.streams["visits"].tick == 60  # not again
    running.pass_ticks(31)
    found = running.client.get("/v1/streams/visits/releases?from=1").json()["releases"]
    assert [release["tick"] for release in found] == list(range(1, 62))
    assert abs(found[59]["value"] - 5) <= 2
    assert abs(found[60]["value"] - 10) <= 2


def test_it_is_not_ready_while_the_clock_is_behind(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "discreet.service")
    running.pass_ticks(60)
    assert running.client.get("/readyz").status_code == 200
    running.clock.now -= 30  # a small correction
    catch_up(running.service)
    assert running.client.get("/readyz").status_code == 200
    running.clock.now -= 3600
    catch_up(running.service)
    assert running.client.get("/readyz").status_code == 503
    assert "stream visits is late: the clock went back, and tick 61 begins in 36" in caplog.text
    running.again()
    assert running.client.get("/readyz").status_code == 503
    running.pass_ticks(62)
    assert running.client.get("/readyz").status_code == 200
    assert running.service.streams["visits"].tick == 61


def test_whoever_asks_again_sees_the_same_numbers(running: Running) -> None:
    for stream in STREAMS:
        if stream != "lunch":
            assert running.send(stream, rows(50)).status_code == 202
    running.pass_ticks(2)
    read = running.token("read")
    before = {name: running.client.get(f"/v1/streams/{name}/releases", headers=read).json() for name in STREAMS}
    running.again()
    after = {name: running.client.get(f"/v1/streams/{name}/releases", headers=read).json() for name in STREAMS}
    assert before == after


def test_the_end_of_the_horizon(running: Running) -> None:
    running.send("hidden-visitors", rows(3))
    running.pass_ticks(5)
    response = running.send("hidden-visitors", rows(3))
    assert response.status_code == 410
    shown = running.client.get("/v1/streams/hidden-visitors").json()
    assert (shown["state"], shown["ticks_published"], shown["next_tick"]) == ("ended", 5, None)


# ---- definitions and budgets ----------------------------------------------------------------------------------------


def die(*_: object) -> None:
    raise OSError("dead")


def test_who_was_counted_is_forgotten_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(tmp_path, {"searches": {**STREAMS["searches"], "horizon": "2m", "epsilon": 1e5}}).start()
    running.send("searches", [{"query": "cats", "visitor": f"somebody-4711-{number}"} for number in range(100)])
    running.pass_ticks(1)
    assert b"somebody-4711" in all_bytes(running.folder)
    with monkeypatch.context() as broken:
        broken.setattr(SpooledStream, "_is_out", die)
        with pytest.raises(OSError, match="dead"):
            running.pass_ticks(1)  # between the ledger and the rest
    assert b"somebody-4711" in all_bytes(running.folder)
    running.again()
    before = running.client.get("/v1/streams/searches").json()
    for _ in range(2):
        assert b"somebody-4711" not in all_bytes(running.folder)
        stream: Any = running.service.streams["searches"]
        assert stream.present.mechanism.not_private_counts() == {}
        assert running.client.get("/v1/streams/searches").json() == before
        assert before["latest"]["items"][0]["item"] == "cats"
        assert running.send("searches", rows(1)).status_code == 410
        running.pass_ticks(1)
        running.again()
    running.stop()


def test_the_state_is_forgotten_when_the_last_tick_is_out(tmp_path: Path) -> None:
    running = Running(tmp_path, {"searches": {**STREAMS["searches"], "horizon": "1m"}}).start()
    running.send("searches", [{"query": "cats", "visitor": "somebody-4711"}])
    assert b"somebody-4711" in all_bytes(running.folder)
    running.pass_ticks(1)
    assert b"somebody-4711" not in all_bytes(running.folder)
    running.stop()


def test_a_stream_that_is_left_out_is_named(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    running.stop()
    running.configuration = configuration({"streams": {"visits": {**STREAMS["visits"]}}})
    service = Service(running.configuration, running.folder, running.clock)
    service.start()
    service.stop()
    assert "stream searches began here and is not in the file" in caplog.text
    running.start()


def test_the_whole_budget_is_in_the_ledger_before_the_first_event(running: Running) -> None:
    ledger = dc.Ledger(running.folder / "ledger.sqlite")
    for name, definition in running.configuration.streams.items():
        account = ledger.account(name)
        assert account.spent().epsilon == definition.epsilon
        (charge,) = [event for event in account.history() if event.kind == "charge"]
        assert definition.digest in str(charge.charge_id)
    running.again()
    assert all(ledger.account(name).spent().epsilon == d.epsilon for name, d in running.configuration.streams.items())


def test_a_changed_definition_is_refused_and_says_what_differs(running: Running) -> None:
    changed = {**STREAMS, "visits": {**STREAMS["visits"], "epsilon": 2.0, "public": False}}
    running.stop()
    with pytest.raises(ParameterError, match=r"epsilon was 100000.0 and is 2.0; public was true and is false"):
        Service(configuration({"streams": changed}), running.folder, running.clock)
    retitled = {**STREAMS, "visits": {**STREAMS["visits"], "title": "Visits"}}
    running.configuration = configuration({"streams": retitled})
    running.start()
    assert running.client.get("/v1/streams/visits").json()["title"] == "Visits"


def test_nothing_is_charged_where_a_stream_cannot_be(tmp_path: Path) -> None:
    wrong = {**STREAMS["visits"], "delta": 0.0}  # Gaussian noise needs a delta
    later = {**STREAMS["visits"], "following": [{"epsilon": 1.0}]}
    for name, table, where in (("wrong", wrong, "streams.wrong: "), ("later", later, "streams.later.following.0: ")):
        with pytest.raises(ParameterError, match=where):
            Service(configuration({"streams": {"visits": STREAMS["visits"], name: table}}), tmp_path / "data")
        assert not (tmp_path / "data").exists()


def test_it_goes_on_under_a_grant_that_was_announced(tmp_path: Path) -> None:
    short = {**STREAMS["visits"], "horizon": "2m"}
    pan = {**STREAMS["hidden-visitors"], "horizon": "2m"}
    running = Running(tmp_path, {"visits": short, "pan": pan}).start()
    running.send("visits", rows(10))
    grant = [{"epsilon": 7.0, "delta": 1e-6}]
    longer = {"visits": {**short, "following": grant}, "pan": {**pan, "following": [{"epsilon": 2.0}]}}
    running.again(longer)
    shown = running.client.get("/v1/streams/visits").json()
    assert shown["following"] == {"begins": "2027-01-15T08:02:00Z", "epsilon": 7.0, "delta": 1e-6}
    assert shown["state"] == "running"
    running.pass_ticks(2)
    running.send("visits", rows(20))
    running.send("pan", rows(20))
    running.again()
    running.pass_ticks(1)
    shown = running.client.get("/v1/streams/visits").json()
    assert (shown["state"], shown["ticks_published"], shown["budget"]["spent"]["epsilon"]) == ("following", 3, 1e5 + 7)
    assert abs(shown["latest"]["value"] - 20) < 20  # a new count
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    assert ledger.account("visits").granted.epsilon == 1e5 + 7
    assert ledger.account("pan").spent().epsilon == 10.0
    running.stop()
    with pytest.raises(ParameterError, match="cannot be changed"):
        Service(configuration({"streams": {"visits": short}}), tmp_path, running.clock)
    late = {"visits": {**short, "following": grant * 2}}
    running.clock.now += 3600
    with pytest.raises(ParameterError, match="announced before the end"):
        Service(configuration({"streams": late}), tmp_path, running.clock)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "median"}, "kind"),
        (
            {"kind": "occurrences", "trust": "pan"},
            r"streams\.searches: occurrences is no kind of stream: a retried request",
        ),
        ({"horizon": "90s"}, "whole number of ticks"),
        ({"tick": "soon"}, "a whole number with s, m, h, d or w"),
        ({"epsilon": 0}, "greater than 0"),
        ({"colour": 1}, "colour: no such key; use one of kind, title, column, user"),
        ({"column": None}, "top needs column"),
        ({"user": None}, "max_items needs user or sets"),
        ({"trust": "pan"}, "count and distinct"),
        ({"question": "?"}, "question cannot be used with top"),
        ({"trust": "parties"}, "surveys only"),
        ({"unit": "row"}, 'hides a person: for unit = "row" leave out user'),
        ({"horizon": 0}, "1 to 16,777,216 ticks"),
        ({"horizon": 2**24 + 1}, "1 to 16,777,216 ticks"),
        ({"horizon": 1.5}, "horizon must be a whole number with s, m, h, d or w"),
        ({"item": "query"}, "item is now called column; give column alone"),
        ({"tick": "1s", "horizon": "365d"}, "1 to 16,777,216 ticks"),
    ],
)
def test_definitions_that_cannot_be(change: dict[str, Any], why: str) -> None:
    table = {key: value for key, value in {**STREAMS["searches"], **change}.items() if value is not None}
    with pytest.raises(ParameterError, match=why):
        configuration({"streams": {"searches": table}})


FORMER: dict[str, dict[str, Any]] = {
    "errors": {
        "kind": "top", "item": "error", "items": ["a", "b"], "tick": "1m", "horizon": "1h", "epsilon": 1e3,
        "delta": 1e-6, "k": 2, "trust": "central",
    },
    "lunch": {**STREAMS["lunch"], "trust": "local"},
}  # fmt: skip
NOW: dict[str, dict[str, Any]] = {
    "errors": {
        "kind": "top", "column": "error", "universe": ["a", "b"], "tick": "1m", "horizon": 60, "epsilon": 1e3,
        "delta": 1e-6, "k": 2, "unit": "row",
    },
    "lunch": STREAMS["lunch"],
}  # fmt: skip


def test_former_words_define_the_same_stream_and_are_named(caplog: pytest.LogCaptureFixture) -> None:
    now = configuration({"streams": NOW})
    assert not caplog.messages
    former = configuration({"streams": FORMER})
    for name, definition in now.streams.items():
        assert former.streams[name].fixed() == definition.fixed()
        assert former.streams[name].digest == definition.digest
    assert [line.partition(";")[0] for line in caplog.messages] == [
        "streams.errors: item is called column now",
        "streams.errors: items is called universe now",
        'streams.errors: trust = "central" is called "curator" now',
        'streams.lunch: trust = "local" is called "parties" now',
    ]


def test_answers_have_former_keys_beside_the_new_ones(running: Running) -> None:
    stream = running.client.get("/v1/streams/searches").json()
    assert (stream["unit"], stream["protects"], stream["trust"]) == ("person", "person", "curator")
    assert stream["definition"]["column"] == stream["definition"]["item"] == "query"
    visits = running.client.get("/v1/streams/visits").json()
    assert (visits["unit"], visits["protects"]) == ("row", "event")


def test_one_process_at_a_time(running: Running) -> None:
    with pytest.raises(DiscreetError, match="another service"):
        Service(running.configuration, running.folder)


# ---- in -------------------------------------------------------------------------------------------------------------


def test_formats(running: Running) -> None:
    table = pa.table({"query": ["a", "b", "a"], "visitor": pa.array([1, 2, 3]), "other": [1.0, 2.0, 3.0]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    bodies = {
        "application/x-ndjson": b'{"query":"a","visitor":1}\n\n{"query":"b","visitor":2}\n{"visitor":3,"query":"a"}',
        "application/json": b'[{"query":"a","visitor":"1"},{"query":"b","visitor":"2"},{"query":"a","visitor":"3"}]',
        "text/csv; charset=utf-8": b'visitor,query\r\n1,a\r\n2,"b"\r\n3,a\r\n',
        "application/vnd.apache.arrow.stream": sink.getvalue(),
    }
    token = running.token("ingest")
    for number, (kind, body) in enumerate(bodies.items()):
        response = running.client.post(
            "/v1/streams/searches/events", content=body, headers={**token, "Content-Type": kind}
        )
        assert (response.status_code, response.json()) == (202, {"accepted": 3}), kind
        running.client.post("/v1/streams/visits/events", content=body, headers={**token, "Content-Type": kind})
        running.pass_ticks()
        assert abs(running.latest("visits")["value"] - 3 * (number + 1)) <= 2
    stream: Any = running.service.streams["searches"]
    # 1, 2 and 3 are the same people in every format.
    assert stream.present.mechanism.not_private_counts() == {"a": 2, "b": 1}


def test_wrong_rows_are_refused_with_row_and_reason_and_never_content(running: Running) -> None:
    body = b'{"query":"fine","visitor":"a"}\n{"query":"SECRET"}\nSECRET\n{"query":null,"visitor":"SECRET"}\n[1]\n'
    body += b'{"query":1.5,"visitor":"b"}\n{"query":"' + b"S" * 1001 + b'","visitor":"b"}\n'
    headers = {**running.token("ingest"), "Content-Type": "application/x-ndjson"}
    response = running.client.post("/v1/streams/searches/events", content=body, headers=headers)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert [row["row"] for row in problem["rows"]] == [2, 3, 4, 5, 6, 7]
    assert [row["reason"] for row in problem["rows"]] == [
        "the field 'visitor' is missing",
        "the row is not JSON",
        "the field 'query' is null",
        "the row is not an object",
        "the field 'query' is neither a text nor a whole number",
        "the field 'query' has more than 1000 bytes",
    ]
    assert problem["bad_rows"] == 6
    assert "SECRET" not in response.text
    assert "SSS" not in response.text
    response = running.client.post("/v1/streams/searches/events?bad_rows=skip", content=body, headers=headers)
    assert (response.status_code, response.json()) == (202, {"accepted": 1, "skipped": 6})
    running.pass_ticks()
    stream: Any = running.service.streams["searches"]
    assert stream.present.mechanism.not_private_counts() == {"fine": 1}


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b'"x"', 422),
        ("application/json", b"[" * 100_000, 400),
        ("text/csv", b"", 422),
        ("text/csv", b"a,b\n1,2\n", 422),
        ("text/csv", b"\xff\xfe", 400),
        ("application/vnd.apache.arrow.stream", b"\xff\xff\xff\xff\x10\0\0\0junk", 400),
        ("application/x-ndjson", b"\xff\n", 422),
        ("application/x-ndjson", b'{"query":"\\ud800","visitor":"a"}\n', 422),
        ("application/x-ndjson", b'{"query":' + b"9" * 5000 + b',"visitor":"a"}\n', 422),
        ("image/png", b"", 415),
        ("", b"", 415),
    ],
)
def test_bodies_that_are_not_what_they_say(running: Running, kind: str, body: bytes, status: int) -> None:
    headers = {**running.token("ingest"), "Content-Type": kind}
    response = running.client.post("/v1/streams/searches/events", content=body, headers=headers)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert running.service.streams["searches"].spool_events == 0


def test_a_table_with_wrong_rows_says_which_field(running: Running) -> None:
    queries = ["a", None, "b", "S" * 1001]
    table = pa.table({"query": queries, "visitor": ["a", "b", None, "d"]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    kind = {"Content-Type": "application/vnd.apache.arrow.stream", **running.token("ingest")}
    answer = running.client.post("/v1/streams/searches/events", content=sink.getvalue(), headers=kind)
    assert answer.json()["rows"] == [
        {"row": 2, "reason": "the field 'query' is null"},
        {"row": 3, "reason": "the field 'visitor' is null"},
        {"row": 4, "reason": "the field 'query' has more than 1000 bytes"},
    ]


def test_arrow_that_would_grow_is_refused(running: Running) -> None:
    def stream(column: Any, compression: str | None = None) -> bytes:
        sink = io.BytesIO()
        table = pa.table({"query": column, "visitor": column})
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as out:
            out.write_table(table)
        return sink.getvalue()

    views = pa.array(["x" * 1000], pa.string_view()).buffers()
    often = pa.py_buffer(views[1].to_pybytes()[:16] * 300_000)
    places = pa.array([0] * 300_000, pa.int8())
    grows = [
        (stream(pa.array(["a"] * 1000), "zstd"), 415),
        (stream(pa.array(["a"] * 1000).dictionary_encode(), "lz4"), 415),
        (stream(pa.DictionaryArray.from_arrays(places, pa.array(["x" * 1000]))), 413),
        (stream(pa.Array.from_buffers(pa.string_view(), 300_000, [None, often, *views[2:]])), 413),
        (stream(pa.DictionaryArray.from_arrays(places, pa.array([["a", "b"]]))), 422),
        (stream(pa.array(["a"] * 10).dictionary_encode()), 202),
    ]
    kind = {"Content-Type": "application/vnd.apache.arrow.stream", **running.token("ingest")}
    for body, status in grows:
        assert running.client.post("/v1/streams/searches/events", content=body, headers=kind).status_code == status
    assert running.service.streams["searches"].spool_events == 10


def test_a_retry_counts_once_also_across_a_restart_and_after_its_tick(running: Running) -> None:
    for stream in ("visits", "hidden-visitors"):
        key = {"Idempotency-Key": "batch 1"}
        token = running.token("ingest")
        first = running.send(stream, rows(40), **key, **token)
        assert first.json() == {"accepted": 40}
        assert running.send(stream, rows(40), **key, **token).json() == {"accepted": 40}
        running.again()
        assert running.send(stream, rows(40), **key, **token).json() == {"accepted": 40}
        running.pass_ticks()
        assert running.send(stream, rows(40), **key, **token).json() == {"accepted": 40}
        running.again()
        assert running.send(stream, rows(40), **key, **token).json() == {"accepted": 40}
        # A pan stream remembers no body, and cannot know that this one is another.
        another = running.send(stream, rows(41), **key, **token)
        assert another.status_code == (422 if stream == "visits" else 202)
        # Another sender's key is another key.
        assert running.send(stream, rows(1), **key).json() == {"accepted": 1}
    running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 41) <= 2


def test_large_bodies(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, limits={"body_bytes": 2000}).start()
    assert running.send("visits", rows(20)).status_code == 202
    response = running.send("visits", rows(100))
    assert response.status_code == 413
    running.stop()


def test_rates(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, limits={"events_per_second": 1e-3}).start()
    token = running.token("ingest")
    assert running.send("visits", rows(20), **token).status_code == 202
    response = running.send("visits", rows(1), **token)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) >= 1
    assert running.send("visits", rows(1)).status_code == 202  # another token
    running.stop()


def test_whoever_tries_tokens_is_slowed_down(tmp_path: Path) -> None:
    running = Running(tmp_path, {"people": STREAMS["people"]}, limits={"requests_per_second": 1e-3}).start()
    wrong = {"Authorization": "Bearer discreet_wrong"}
    found = [running.client.get("/v1/streams/people", headers=wrong).status_code for _ in range(3)]
    assert (found[0], found[-1]) == (401, 429)
    assert running.client.get("/v1/streams/people", headers=running.token("read")).status_code == 200
    running.stop()


def test_it_refuses_what_it_cannot_keep_up_with(tmp_path: Path) -> None:
    running = Running(tmp_path, {"searches": STREAMS["searches"]}, limits={"spool_bytes": 4096}).start()
    assert running.send("searches", rows(500)).status_code == 202
    response = running.send("searches", rows(1))
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) == 60
    running.pass_ticks()
    assert running.send("searches", rows(1)).status_code == 202
    running.stop()


def test_trackers_of_plausible(tmp_path: Path) -> None:
    site = {"sites": ["shop.example"], "open": True, "where": {"event": "pageview"}}
    pages = {**STREAMS["searches"], "column": "page", **site}
    people = {**STREAMS["people"], **site}
    running = Running(tmp_path, {"pages": pages, "people": people}).start()
    event = {"n": "pageview", "u": "https://shop.example/cats?q=1#x", "d": "shop.example", "r": None}
    for number in range(40):
        response = running.client.post(
            "/api/event", content=json.dumps(event), headers={"User-Agent": f"b{number}", "Content-Type": "text/plain"}
        )
        assert response.status_code == 202
    running.client.post("/api/event", content=json.dumps({**event, "n": "click"}))
    assert running.client.post("/api/event", content=json.dumps({**event, "d": "other.example"})).status_code == 202
    assert running.client.post("/api/event", content=b"{}").status_code == 422
    running.pass_ticks()
    stream: Any = running.service.streams["pages"]
    assert stream.present.mechanism.not_private_counts() == {"/cats": 40}
    assert abs(running.latest("people")["value"] - 40) <= 2
    running.stop()


def test_trackers_learn_nothing_of_what_they_may_not_send_to(tmp_path: Path) -> None:
    inside = {**STREAMS["visits"], "sites": ["inside.example"]}
    running = Running(tmp_path, {"inside": inside}).start()
    events = [{"n": "pageview", "u": "https://x.example/", "d": site} for site in ("inside.example", "nobody.example")]
    answers = [running.client.post("/api/event", content=json.dumps(event)) for event in events]
    assert [(answer.status_code, answer.content) for answer in answers] == [(202, b'{"accepted":1}')] * 2
    assert running.service.streams["inside"].spool_events == 0
    token = running.token("ingest", "inside")
    assert running.client.post("/api/event", content=json.dumps(events[0]), headers=token).status_code == 202
    assert running.service.streams["inside"].spool_events == 1
    running.stop()


def test_a_key_of_visitors_that_is_cut_short_is_refused(running: Running) -> None:
    running.stop()
    (running.folder / "visitors.key").write_bytes(b"")
    try:
        with pytest.raises(DiscreetError, match="32 bytes"):
            running.start()
    finally:
        running.service.stop()
        (running.folder / "visitors.key").unlink()
        running.start()


def test_a_survey_at_the_end_of_a_horizon(tmp_path: Path) -> None:
    lunch = {**STREAMS["lunch"], "horizon": "1m", "following": [{"epsilon": 3.0}]}
    running = Running(tmp_path, {"lunch": lunch}).start()
    before = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())
    running.clock.now += 60
    seal(running.service)  # the second horizon is open, and the first tick not yet published
    after = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())
    assert before.round_id != after.round_id
    late = running.client.post("/v1/streams/lunch/messages", content=before.party(1).encode(["yes"]))
    assert late.status_code == 422
    message = after.party(2).encode(["yes"])
    for accepted in (1, 0):
        assert running.client.post("/v1/streams/lunch/messages", content=message).json()["accepted"] == accepted
    running.again()
    running.pass_ticks()
    assert running.latest("lunch")["reports"] == 1
    running.stop()


def test_numbers_of_reports_are_sorted_out_while_none_can_come(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream: Any = running.service.streams["lunch"]
    protocol = stream.present.mechanism.protocol
    running.client.post("/v1/streams/lunch/messages", content=protocol.party(1).encode(["yes"]))
    held = []

    def has(number: int) -> bool:
        held.append(stream.lock._is_owned())
        return True

    monkeypatch.setattr(stream.present.mechanism, "has", has)
    running.pass_ticks()
    assert held == [True]


def test_reports_of_a_survey(running: Running) -> None:
    description = running.client.get("/v1/streams/lunch/round").json()
    protocol = dc.multiparty.protocol_from_dict(description)
    for number in range(300):
        answer = "yes" if number % 3 else "no"
        message = protocol.party(number).encode([answer])
        response = running.client.post("/v1/streams/lunch/messages", content=message)
        assert (response.status_code, response.json()) == (202, {"accepted": 1, "repeated": 0})
    assert running.client.post("/v1/streams/lunch/messages", content=message).json()["accepted"] == 0
    running.again()
    assert running.client.post("/v1/streams/lunch/messages", content=message).json()["accepted"] == 0
    running.pass_ticks()
    assert running.client.post("/v1/streams/lunch/messages", content=message).json()["accepted"] == 0
    release = running.latest("lunch")
    assert running.client.get("/v1/streams/lunch").json()["trust"] == "parties"
    assert release["reports"] == 300
    assert {item["item"] for item in release["items"]} == {"yes", "no", "perhaps"}
    # Six standard deviations of HRR at epsilon 3.
    assert all(
        abs(item["count"] - {"yes": 200, "no": 100, "perhaps": 0}[item["item"]]) <= 6 * 1.11 * 300**0.5
        for item in release["items"]
    )
    many = protocol.party(1000).encode(["yes", "no"])
    assert running.client.post("/v1/streams/lunch/messages", content=many).status_code == 422
    many_sent = running.client.post("/v1/streams/lunch/messages", content=many, headers=running.token("ingest"))
    assert many_sent.json() == {"accepted": 2, "repeated": 0}
    assert running.client.post("/v1/streams/lunch/messages", content=b"dm?").status_code == 422
    assert running.send("lunch", rows(1)).status_code == 409


def test_a_survey_takes_so_many_reports(tmp_path: Path) -> None:
    running = Running(tmp_path, {"lunch": STREAMS["lunch"]}, limits={"survey_reports": 5}).start()
    protocol = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())

    def sent(items: int = 1) -> int:
        message = protocol.party().encode(["yes"] * items)
        headers = running.token("ingest") if items > 1 else {}
        return running.client.post("/v1/streams/lunch/messages", content=message, headers=headers).status_code

    assert [sent(), sent(), sent(6)] == [202, 202, 507]
    running.again()  # two wait on disk
    assert [sent(4), sent(2)] == [507, 202]
    running.pass_ticks()
    assert [sent(), sent()] == [202, 507]
    running.again()
    assert sent() == 507
    running.pass_ticks()
    assert running.latest("lunch")["reports"] == 5
    assert sent() == 507
    running.stop()


def test_of_a_batch_that_was_heard_in_part_the_rest_counts(running: Running) -> None:
    protocol = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())
    token = running.token("ingest")

    def sent(first: int, number: int) -> dict[str, int]:
        message = protocol.party(first).encode(["yes"] * number)
        answer = running.client.post("/v1/streams/lunch/messages", content=message, headers=token)
        assert answer.status_code == 202
        return dict(answer.json())

    assert sent(100, 1) == {"accepted": 1, "repeated": 0}
    assert sent(96, 10) == {"accepted": 9, "repeated": 1}  # 96 to 105, of which 100 waits
    running.again()
    assert sent(96, 10) == {"accepted": 0, "repeated": 10}
    running.pass_ticks()
    assert running.latest("lunch")["reports"] == 10
    assert sent(90, 20) == {"accepted": 10, "repeated": 10}  # those in the middle were published
    running.pass_ticks()
    assert running.latest("lunch")["reports"] == 20
    stream: Any = running.service.streams["lunch"]
    assert stream.present.mechanism.numbers == [(90, 20)]


def test_batches_that_come_at_once_keep_to_the_limit_of_a_survey(tmp_path: Path) -> None:
    running = Running(tmp_path, {"lunch": STREAMS["lunch"]}, limits={"survey_reports": 20}).start()
    stream: Any = running.service.streams["lunch"]
    protocol = stream.present.mechanism.protocol
    group = [Arrival(10, protocol.party(100 * n).encode(["yes"] * 10), 10) for n in range(8)]
    for _ in group:
        stream.admit_reports(10)  # all of them are admitted before the first is on disk
    stream.commit(group)
    assert [arrival.accepted for arrival in group] == [10, 10, 0, 0, 0, 0, 0, 0]
    assert [getattr(arrival.error, "status", None) for arrival in group] == [None, None, *[507] * 6]
    assert stream.reports == 20
    told: queue.Queue[Any] = queue.Queue()
    late = Arrival(10, protocol.party(10_000).encode(["yes"] * 10), 10)
    running.service.submit(stream, late, lambda arrival, error: told.put(error))
    assert told.get(timeout=60).status == 507
    running.again()
    running.pass_ticks()
    assert running.latest("lunch")["reports"] == 20
    running.stop()


# ---- what is on the disk --------------------------------------------------------------------------------------------


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_raw_events_wait_in_files_of_the_owner_and_are_removed(running: Running) -> None:
    running.send("visits", rows(2))
    running.send("searches", [{"query": "uncommon-item", "visitor": "somebody-9", "note": "not-counted"}])
    spool = running.folder / "streams" / "searches" / "spool"
    (file,) = spool.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"uncommon-item" in file.read_bytes()
    assert b"not-counted" not in all_bytes(running.folder)
    running.pass_ticks()
    assert not list(spool.iterdir())
    assert running.service.status().streams[0].spool_bytes == 0
    modes = {stat.S_IMODE(path.stat().st_mode) for path in running.folder.rglob("*")}
    assert modes <= {0o600, 0o700}


def test_a_pan_stream_writes_no_event(running: Running) -> None:
    running.send("hidden-visitors", [{"visitor": "somebody-else-4711"}], **{"Idempotency-Key": "k"})
    assert b"somebody-else-4711" not in all_bytes(running.folder)
    running.pass_ticks()
    assert b"somebody-else-4711" not in all_bytes(running.folder)


def test_a_pan_stream_keeps_nothing_of_requests(tmp_path: Path) -> None:
    count = {"kind": "count", "tick": "1m", "horizon": "2m", "epsilon": 50.0, "trust": "pan", "public": True}
    running = Running(tmp_path, {"pan": count}).start()
    token = running.token("ingest")
    state = running.folder / "streams" / "pan" / "pan.state"
    size = state.stat().st_size
    body = "".join(json.dumps(row) + "\n" for row in rows(30_000)).encode()
    digest = hashlib.sha256(b"application/x-ndjson\0\0" + body).digest()[:16]
    for _ in range(3):  # one batch and two retries, of which one is after a restart
        assert running.send("pan", rows(30_000), **{"Idempotency-Key": "k"}, **token).json() == {"accepted": 30_000}
        assert state.stat().st_size == size
        assert digest not in all_bytes(running.folder)
        assert digest.hex().encode() not in all_bytes(running.folder)
        assert (
            running.client.get("/v1/admin/status", headers=running.token("admin")).json()["streams"][0]["accepted"]
            is None
        )
        running.again()
    running.pass_ticks()
    assert abs(running.latest("pan")["value"] - 30_000) < 3_000  # ten standard deviations
    running.stop()


def test_pan_counts(tmp_path: Path) -> None:
    count = {"kind": "count", "tick": "1m", "horizon": "2m", "epsilon": 50.0, "trust": "pan", "public": True}
    running = Running(tmp_path, {"pan": count}).start()
    running.send("pan", rows(30_000))
    running.again()
    running.pass_ticks()
    release = running.latest("pan")
    assert abs(release["value"] - 30_000) < 3_000  # ten standard deviations
    running.stop()


def test_a_release_that_the_file_has_and_the_store_lacks(running: Running) -> None:
    running.send("hidden-visitors", rows(200))
    running.pass_ticks()
    published = running.latest("hidden-visitors")
    running.stop()
    path = running.folder / "service.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:  # as if it had died in between
        db.execute("delete from releases where name = 'hidden-visitors'")
        db.execute("update states set tick = 0 where name = 'hidden-visitors'")
    running.start()
    assert running.latest("hidden-visitors") == published


def test_a_draw_that_could_not_be_stored_is_stored_later(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in STREAMS:
        if stream != "lunch":
            running.send(stream, rows(100))
    tried: dict[str, list[str]] = {name: [] for name in STREAMS}
    publish = running.service.store.publish

    def fail_twice(name: str, tick: int, release: str, *more: Any) -> None:
        tried[name].append(release)
        if len(tried[name]) < 3:
            raise sqlite3.OperationalError("database or disk is full")
        publish(name, tick, release, *more)

    monkeypatch.setattr(running.service.store, "publish", fail_twice)
    running.clock.now += 60
    seal(running.service)
    for stream in running.service.streams.values():
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError):
                stream.work()
            assert stream.tick == 0
        assert stream.work()
        assert tried[stream.name][0] == tried[stream.name][1] == tried[stream.name][2]
        assert stream.tick == 1


def test_a_tick_that_the_ledger_could_not_take_is_shown_only_later(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.send("visits", rows(100))
    running.clock.now += 60
    seal(running.service)
    stream = running.service.streams["visits"]
    with monkeypatch.context() as broken:

        def fail(*_: Any, **__: Any) -> Any:
            raise LedgerError("the ledger cannot be written")

        broken.setattr("discreet.privacy.ledger.Account.store_step", fail)
        with pytest.raises(LedgerError):
            stream.work()
        assert running.client.get("/v1/streams/visits/releases").json()["releases"] == []
    text = running.service.store.release("visits", 1)
    assert text is not None
    assert stream.work()
    assert running.latest("visits") == json.loads(text)


def test_the_disk_keeps_room_for_ticks(tmp_path: Path) -> None:
    streams = {name: STREAMS[name] for name in ("visits", "hidden-visitors")}
    running = Running(tmp_path, streams, limits={"free_bytes": 2**62}).start()
    for name in streams:
        response = running.send(name, rows(1))
        assert (response.status_code, int(response.headers["retry-after"])) == (507, 30)
    running.pass_ticks()
    assert running.latest("visits")["value"] <= 2
    running.stop()


# ---- out ------------------------------------------------------------------------------------------------------------


def test_an_item_of_any_text_is_shown_in_csv(running: Running) -> None:
    running.send("searches", [{"visitor": n, "query": "a\0b"} for n in range(100)])
    running.pass_ticks()
    text = running.client.get("/v1/streams/searches/releases", headers={"Accept": "text/csv"})
    assert text.status_code == 200
    assert ",a\0b," in text.text.splitlines()[1]


def test_formats_and_tags_of_releases(running: Running) -> None:
    running.send("searches", rows(100))
    running.pass_ticks(3)
    address = "/v1/streams/searches/releases"
    whole = running.client.get(address)
    assert [release["tick"] for release in whole.json()["releases"]] == [1, 2, 3]
    assert running.client.get(address, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
    text = running.client.get(address, headers={"Accept": "text/csv"})
    assert text.headers["content-type"].startswith("text/csv")
    assert text.text.splitlines()[0] == "stream,tick,begins,ends,missed,item,count,lower,upper"
    assert len(text.text.splitlines()) == 4
    arrow = running.client.get(address, params={"format": "arrow"})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("item").to_pylist() == ["cats"] * 3
    assert table.column("tick").to_pylist() == [1, 2, 3]
    part = running.client.get(address, params={"from": "2", "to": "2"}).json()["releases"]
    assert [release["tick"] for release in part] == [2]
    times = {"from": "2027-01-15T08:01:00Z", "to": "2027-01-15T08:02:00Z"}
    part = running.client.get(address, params=times).json()["releases"]
    assert [release["tick"] for release in part] == [2]
    assert running.client.get(address, params={"from": "yesterday"}).status_code == 422
    latest = running.client.get(f"{address}/latest")
    assert latest.json()["tick"] == 3
    assert running.client.get(f"{address}/latest", headers={"If-None-Match": latest.headers["etag"]}).status_code == 304


def test_a_tag_does_not_hide_that_there_is_more(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.routes._AT_ONCE", 2)
    running.pass_ticks(2)
    first = running.client.get("/v1/streams/visits/releases?from=1")
    assert (len(first.json()["releases"]), "next" in first.json()) == (2, False)
    known = {"If-None-Match": first.headers["etag"]}
    assert running.client.get("/v1/streams/visits/releases?from=1", headers=known).status_code == 304
    running.pass_ticks(1)
    again = running.client.get("/v1/streams/visits/releases?from=1", headers=known)
    assert (again.status_code, again.json()["next"]) == (200, 3)


def test_metrics_have_only_what_is_released(running: Running) -> None:
    running.send("visits", rows(123))
    before = running.client.get("/metrics").text
    assert 'discreet_ticks_published_total{stream="visits"} 0' in before
    numbers = [line for line in before.splitlines() if not line.startswith("discreet_uptime_seconds ")]
    assert len(numbers) == len(before.splitlines()) - 1
    assert "123" not in "\n".join(numbers)
    running.pass_ticks()
    value = running.latest("visits")["value"]
    after = running.client.get("/metrics").text
    assert f'discreet_released{{stream="visits"}} {value}' in after
    assert "people" not in after
    assert 'stream="people"' in running.client.get("/metrics", headers=running.token("read")).text


def test_the_description_and_its_page(running: Running) -> None:
    paths = running.client.get("/openapi.json").json()["paths"]
    assert {"/v1/streams", "/v1/streams/{name}/events", "/api/event", "/metrics"} <= set(paths)
    page = running.client.get("/docs")
    assert page.status_code == 200
    assert "/v1/streams/{name}/events" in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text


# ---- who may do what ------------------------------------------------------------------------------------------------


def test_scopes(running: Running) -> None:
    ask = running.client.get
    ingest, read, admin = (running.token(scope) for scope in ("ingest", "read", "admin"))
    one = running.token("read", "people")
    running.pass_ticks()
    # Without a token what exists and what does not look the same.
    hidden, absent = ask("/v1/streams/people"), ask("/v1/streams/nothing")
    assert (hidden.status_code, hidden.content) == (absent.status_code, absent.content) == (401, absent.content)
    for name in ("people", "nothing"):
        assert ask(f"/v1/streams/{name}", headers=ingest).status_code == 403
    assert ask("/v1/streams/people", headers=read).status_code == 200
    assert ask("/v1/streams/people", headers=one).status_code == 200
    assert ask("/v1/streams/people/live", headers=ingest).status_code == 403
    assert ask("/v1/streams/visits").status_code == 200
    assert ask("/v1/streams/visits", headers={"Authorization": "Bearer nonsense"}).status_code == 401
    assert [s["name"] for s in ask("/v1/streams").json()["streams"]] == [
        "searches",
        "visits",
        "lunch",
        "hidden-visitors",
    ]
    assert len(ask("/v1/streams", headers=read).json()["streams"]) == 5
    assert ask("/v1/admin/status").status_code == 401
    assert ask("/v1/admin/status", headers=read).status_code == 403
    assert ask("/v1/admin/status", headers=admin).status_code == 200
    body = b'{"visitor":"a","query":"b"}'
    kind = {"Content-Type": "application/x-ndjson"}
    for headers, status in (
        (read, 403),
        (admin, 403),
        ({}, 401),
        (running.token("ingest", "people"), 403),
        (ingest, 202),
    ):
        sent = running.client.post("/v1/streams/visits/events", content=body, headers={**headers, **kind})
        assert sent.status_code == status


def test_tokens_are_kept_as_digests_and_can_be_removed(running: Running) -> None:
    header = running.token("admin")
    secret = header["Authorization"].removeprefix("Bearer ")
    assert len(secret) >= 43
    assert secret.encode() not in all_bytes(running.folder)
    assert running.client.get("/v1/admin/status", headers=header).status_code == 200
    number = running.service.store.tokens()[-1][0]
    running.service.store.remove_token(number)
    running.service.tokens.look_again()
    assert running.client.get("/v1/admin/status", headers=header).status_code == 401


def test_the_status_of_admins(running: Running) -> None:
    running.send("visits", rows(9))
    running.send("visits", [1])
    status = running.client.get("/v1/admin/status", headers=running.token("admin")).json()
    (visits,) = [stream for stream in status["streams"] if stream["name"] == "visits"]
    assert (visits["accepted"], visits["spool_events"], visits["refused"]) == (9, 9, {"bad rows": 1})
    assert visits["spool_bytes"] > 0


def test_headers(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}, cors=["https://www.example.org"]).start()
    for path in ("/v1/streams", "/healthz", "/readyz", "/nothing", "/docs", "/v1/admin/status"):
        response = running.client.get(path)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
    known = running.client.get("/v1/streams", headers={"Origin": "https://www.example.org"})
    assert known.headers["access-control-allow-origin"] == "https://www.example.org"
    other = running.client.get("/v1/streams", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers
    running.stop()


def test_an_error_inside_tells_nothing(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise KeyError("SECRET item")

    monkeypatch.setattr("discreet.service.bodies.Reader.read_small", fail)
    response = running.send("visits", rows(1))
    assert response.status_code == 500
    assert "SECRET" not in response.text
    assert "SECRET" not in caplog.text
    assert "KeyError at test_service.py" in caplog.text


def test_live_from_where_a_client_left_off(running: Running) -> None:
    import anyio

    running.pass_ticks(3)
    stream = running.service.streams["visits"]
    app: Any = running.client.app
    live = app.state.live

    async def collect(after: int | None, number: int) -> list[str]:
        found = []
        events = live.events(stream, after)
        async for event in events:
            if event.startswith(b"event: release"):
                found.append(event.decode().split("\n")[1])
                if len(found) == number:
                    break
        await events.aclose()
        return found

    assert running.client.portal is not None
    assert running.client.portal.call(collect, 1, 2) == ["id: 2", "id: 3"]
    assert running.client.portal.call(collect, None, 1) == ["id: 3"]

    async def wait() -> list[str]:
        found: list[str] = []

        async def reader() -> None:
            found.extend(await collect(3, 1))

        async with anyio.create_task_group() as group:
            group.start_soon(reader)
            await anyio.sleep(0.05)
            await anyio.to_thread.run_sync(running.pass_ticks)
        return found

    assert running.client.portal.call(wait) == ["id: 4"]


def test_whoever_lost_their_token_watches_no_longer(running: Running) -> None:
    import anyio

    seen: list[bytes] = []

    async def watch() -> None:
        number, text = make_token(running.service.store, "read", None)
        running.service.tokens.look_again()

        async def send(message: Any) -> None:
            seen.append(message.get("body", b""))
            if b"id: 1" in seen[-1]:
                running.service.store.remove_token(number)
                running.service.tokens.look_again()
                await anyio.to_thread.run_sync(running.pass_ticks)

        async def receive() -> Any:
            await anyio.sleep_forever()

        scope = {
            "type": "http", "method": "GET", "path": "/v1/streams/people/live", "query_string": b"", "root_path": "",
            "headers": [(b"authorization", f"Bearer {text}".encode())], "http_version": "1.1", "scheme": "http",
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        with anyio.fail_after(60):
            await running.client.app(scope, receive, send)  # type: ignore[arg-type]

    running.pass_ticks(1)
    assert running.client.portal is not None
    running.client.portal.call(watch)
    assert b"id: 1" in b"".join(seen)
    assert b"id: 3" not in b"".join(seen)


def test_the_page_is_the_same_for_every_name(running: Running) -> None:
    pages = [running.client.get(f"/streams/{name}") for name in ("visits", "people", "nothing")]
    assert len({(page.status_code, page.content) for page in pages}) == 1


def test_the_start_is_a_whole_tick(running: Running) -> None:
    assert isinstance(running.client, TestClient)
    assert running.service.streams["visits"].timetable.run(1).begins == START
