"""What a file of streams may not say, and what a request may not send: each with its words, and its status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import Running

from discreet.errors import CorruptStateError, ParameterError
from discreet.service.access import make_token
from discreet.service.backup import restore
from discreet.service.bodies import plausible_event
from discreet.service.definitions import configuration
from discreet.service.problems import ProblemError

COUNT = {"kind": "count", "tick": "1m", "horizon": "1d", "epsilon": 1.0, "delta": 1e-6}
TOP = {**COUNT, "kind": "top", "column": "page", "k": 5}
PEOPLE = {**TOP, "user": "visitor", "max_items": 2}
SURVEY = {
    "kind": "survey",
    "question": "Lunch?",
    "options": ["yes", "no"],
    "tick": "1m",
    "horizon": "1d",
    "epsilon": 1.0,
}
DAYS = {**{key: COUNT[key] for key in COUNT if key != "horizon"}, "per": "1d"}

DEFINITIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a source without a curator": (
        {**SURVEY, "source": "kafka://broker:9092/answers"}, "source works with streams that trust the curator",
    ),
    "no horizon": ({**COUNT, "horizon": "0d"}, "horizon"),
    "too long a horizon": ({**COUNT, "tick": "1s", "horizon": "36500d"}, "a horizon must be 1 to"),
    "no column": ({**COUNT, "kind": "top", "k": 5}, "top needs column"),
    "an option of another kind": ({**COUNT, "k": 5}, "k cannot be used with count"),
    "pan of a top": ({**TOP, "trust": "pan"}, 'trust = "pan" works with count and distinct only'),
    "parties of a count": ({**COUNT, "trust": "parties"}, 'trust = "parties" works with surveys only'),
    "another unit": ({**COUNT, "unit": "person"}, "this stream hides a row"),
    "a survey with delta": ({**SURVEY, "delta": 1e-6}, "has no delta"),
    "a zone without days": ({**COUNT, "zone": "Europe/Berlin"}, 'zone, time and late need per = "1d"'),
    "a time without days": ({**COUNT, "time": "at"}, 'zone, time and late need per = "1d"'),
    "late without days": ({**COUNT, "late": "1h"}, 'zone, time and late need per = "1d"'),
    "neither horizon nor days": ({key: COUNT[key] for key in COUNT if key != "horizon"}, "give a horizon"),
    "horizon and days": ({**COUNT, "per": "1d"}, "give a horizon"),
    "late without a time": ({**DAYS, "late": "1h"}, "late needs time"),
    "an account without a time": ({**DAYS, "account": "shop"}, "account with per needs time"),
    "late for days": ({**DAYS, "time": "at", "late": "25h"}, "late must be shorter than 1d"),
    "a lookup without its key": ({**TOP, "lookup": "pages.csv"}, "lookup and on must be given together"),
    "a key without a lookup": ({**TOP, "on": "page"}, "lookup and on must be given together"),
    "people without a bound": ({**TOP, "user": "visitor"}, "max_items"),
    "a bound without people": ({**TOP, "max_items": 2}, "max_items needs user or sets"),
    "an item twice": ({**TOP, "universe": ["a", "a"]}, "1 to 100,000 different texts"),
    "no items": ({**TOP, "universe": []}, "1 to 100,000 different texts"),
    "an empty item": ({**TOP, "universe": ["a", ""]}, "texts of 1 to 1000 bytes each"),
    "a long item": ({**TOP, "universe": ["a", "b" * 1001]}, "texts of 1 to 1000 bytes each"),
    "one option": ({**SURVEY, "options": ["yes"]}, "at least two options"),
    "too many options": ({**SURVEY, "options": [str(n) for n in range(1001)]}, "1 to 1,000 different texts"),
    "another user of a site": ({**PEOPLE, "sites": ["shop.example"], "user": "account"}, 'user must be "visitor"'),
    "another field of a site": ({**TOP, "sites": ["shop.example"], "column": "price"}, "can only have the fields"),
    "no such key": ({**COUNT, "colour": "red"}, "no such key; use one of"),
}  # fmt: skip


@pytest.mark.parametrize("what", DEFINITIONS)
def test_a_stream_that_cannot_be_is_refused(what: str) -> None:
    table, words = DEFINITIONS[what]
    with pytest.raises(ParameterError, match=words) as refused:
        configuration({"streams": {"here": table}})
    assert "streams.here" in str(refused.value)


def test_the_ends_of_what_a_stream_may_have_are_in_it() -> None:
    texts = ["a", "b" * 1000]
    made = configuration({"streams": {"top": {**TOP, "universe": texts}, "s": {**SURVEY, "options": texts}}})
    assert made.streams["top"].universe == made.streams["s"].options == tuple(texts)


FILES: dict[str, tuple[dict[str, Any], str]] = {
    "no stream": ({"streams": {}}, "defines no stream"),
    "another table": ({"streams": {"a": COUNT}, "users": {}}, "not 'users'"),
    "a name with a space": ({"streams": {"two words": COUNT}}, "up to 64 of a-z"),
    "a long name": ({"streams": {"a" * 65: COUNT}}, "up to 64 of a-z"),
    "no origin": ({"streams": {"a": COUNT}, "service": {"cors": ["www.example.org"]}}, "cors must list origins"),
    "the account of another": (
        {"streams": {"a": COUNT, "b": {**COUNT, "account": "a"}}}, "another stream names the account 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_cannot_be_is_refused(what: str) -> None:
    with pytest.raises(ParameterError, match=FILES[what][1]):
        configuration(FILES[what][0])


def test_a_name_may_have_64_characters() -> None:
    assert [*configuration({"streams": {"a" * 64: COUNT}}).streams] == ["a" * 64]


EVENTS: dict[str, tuple[bytes, int, str]] = {
    "no JSON": (b"{", 400, "not JSON"),
    "no object": (b"[]", 400, "not an object"),
    "no text": (b'{"n": 1, "u": "https://a.example/", "d": "a.example"}', 422, "not a text"),
    "no name": (b'{"u": "https://a.example/", "d": "a.example"}', 422, "lacks n, u or d"),
    "no address": (b'{"n": "pageview", "d": "a.example"}', 422, "lacks n, u or d"),
    "no site": (b'{"n": "pageview", "u": "https://a.example/"}', 422, "lacks n, u or d"),
    "no such address": (b'{"n": "pageview", "u": "https://[a/", "d": "a.example"}', 422, "no address that can be read"),
}


@pytest.mark.parametrize("what", EVENTS)
def test_an_event_of_a_site_that_cannot_be_read(what: str) -> None:
    body, status, words = EVENTS[what]
    with pytest.raises(ProblemError, match=words) as refused:
        plausible_event(body, b"k" * 32, "10.0.0.1", "browser")
    assert refused.value.status == status


def test_an_event_of_a_site_has_its_page_host_and_referrer() -> None:
    body = b'{"n": "pageview", "u": "https://a.example/x?y=1", "d": "a.example", "r": "https://b.example/z"}'
    site, fields = plausible_event(body, b"k" * 32, "10.0.0.1", "browser")
    assert (site, fields["page"], fields["host"], fields["referrer"]) == ("a.example", "/x", "a.example", "b.example")
    _, direct = plausible_event(body.replace(b', "r": "https://b.example/z"', b""), b"k" * 32, "10.0.0.1", "browser")
    assert direct["referrer"] == "(direct)"
    assert direct["visitor"] == fields["visitor"]
    for other in ((b"k" * 32, "10.0.0.2", "browser"), (b"k" * 32, "10.0.0.1", "robot")):
        assert plausible_event(body, *other)[1]["visitor"] != fields["visitor"]


def test_what_a_request_may_not_send(running: Running) -> None:
    def status(body: str, kind: str, **headers: str) -> tuple[int, str]:
        given = {**running.token("ingest"), "Content-Type": kind, **headers}
        answer = running.client.post("/v1/streams/searches/events", content=body, headers=given)
        return answer.status_code, answer.text

    row = '{"query": "a", "visitor": "b"}\n'
    json, csv = "application/x-ndjson", "text/csv"
    assert status(row, json)[0] == 202
    for code, words, sent in (
        (415, "Content-Encoding is not supported", status(row, json, **{"Content-Encoding": "gzip"})),
        (422, "Idempotency-Key must have 1 to", status(row, json, **{"Idempotency-Key": ""})),
        (422, "Idempotency-Key must have 1 to", status(row, json, **{"Idempotency-Key": "k" * 5000})),
        (422, "header with different names", status("query,visitor,query\na,b,c\n", csv)),
        (422, "lacks a column", status("query\na\n", csv)),
        (415, "", status(row, "text/unknown")),
    ):
        assert sent[0] == code, (words, sent)
        assert words in sent[1]
    live = running.client.get("/v1/streams/searches/live", headers={"Last-Event-ID": "one"})
    assert (live.status_code, "number of a tick" in live.text) == (422, True)


def test_tokens_have_a_scope_that_is_known(running: Running) -> None:
    with pytest.raises(ParameterError, match="scope must be one of"):
        make_token(running.service.store, "owner", None)
    with pytest.raises(ParameterError, match="leave the stream out"):
        make_token(running.service.store, "admin", "searches")


def test_a_backup_of_nothing_is_not_restored(tmp_path: Path) -> None:
    with pytest.raises((ParameterError, CorruptStateError), match="no backup of a service"):
        restore(tmp_path / "nothing", tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_how_long_it_runs_is_told_from_its_beginning(running: Running) -> None:
    said = running.client.get("/metrics").text
    (line,) = [line for line in said.splitlines() if line.startswith("discreet_uptime_seconds ")]
    assert 0.0 <= float(line.split()[1]) < 600.0
