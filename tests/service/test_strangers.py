"""What strangers can learn of each other, and do to each other, on streams that are open: nothing by their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running

OPEN = {**STREAMS["visits"], "open": True}
KIND = {"Content-Type": "application/x-ndjson"}


def body(number: int) -> bytes:
    return b'{"visitor":"a"}\n' * number


def sent(running: Running, number: int, key: str, **headers: str) -> tuple[int, bytes]:
    """Without a token."""
    answer = running.client.post(
        "/v1/streams/visits/events", content=body(number), headers={**KIND, "Idempotency-Key": key, **headers}
    )
    return answer.status_code, answer.content


def test_a_key_that_somebody_else_used_tells_nothing_and_takes_nothing(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": OPEN}).start()
    first = sent(running, 40, "batch-1")
    assert first == (202, b'{"accepted":40}')
    for _ in range(2):
        # Guessed, with another body: as if the key were new, and it counts.
        assert sent(running, 7, "batch-1") == sent(running, 7, "batch-1 that nobody used") == (202, b'{"accepted":7}')
        # The same once more, from whatever address: the same answer, and it counts once.
        assert sent(running, 40, "batch-1") == first
        running.again()
        running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 54) <= 2
    # Whoever has a token has keys of their own.
    token = running.token("ingest")
    assert sent(running, 40, "batch-1", **token) == first
    assert sent(running, 41, "batch-1", **token)[0] == 422
    running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 94) <= 2
    running.stop()


def test_nobody_keeps_anothers_event_out_of_a_pan_stream(tmp_path: Path) -> None:
    count = {"kind": "count", "tick": "1m", "horizon": "2m", "epsilon": 50.0, "trust": "pan", "public": True}
    running = Running(tmp_path, {"visits": {**count, "open": True}}).start()
    sent(running, 1, "guessed")  # before the one whose key it is
    for _ in range(2):
        assert sent(running, 30_000, "guessed")[0] == 202
    sent(running, 29_999, "guessed")
    running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 60_000) < 6_000  # ten standard deviations
    running.stop()


@pytest.mark.parametrize("more", ["; charset=utf-8", ";charset=UTF-8", " ; x=1"])
def test_a_retry_with_parameters_of_its_type_is_the_same_body(running: Running, more: str) -> None:
    token = running.token("ingest")
    rows = [{"visitor": "a"}] * 40
    for kind in ("application/x-ndjson", f"application/x-ndjson{more}", f"Application/X-NDJSON{more}"):
        answer = running.send("visits", rows, **{"Content-Type": kind, "Idempotency-Key": "k"}, **token)
        assert (answer.status_code, answer.json()) == (202, {"accepted": 40})
    running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 40) <= 2


def answer_to(running: Running, site: str) -> tuple[int, bytes, dict[str, str]]:
    event = {"n": "pageview", "u": "https://shop.example/cats", "d": site}
    answer = running.client.post("/api/event", content=json.dumps(event))
    return answer.status_code, answer.content, dict(answer.headers)


@pytest.mark.parametrize(
    "limits",
    [{"spool_bytes": 1024}, {"free_bytes": 2**62}],  # the spool is full, or the disk
)
def test_trackers_get_one_answer_whatever_becomes_of_it(tmp_path: Path, limits: dict[str, int]) -> None:
    definition = {**STREAMS["searches"], "column": "page", "sites": ["shop.example"], "open": True}
    running = Running(tmp_path, {"pages": definition}, limits=limits).start()
    for _ in range(8):
        assert answer_to(running, "shop.example") == answer_to(running, "nobody.example")
    refused = running.client.get("/v1/admin/status", headers=running.token("admin")).json()["streams"][0]["refused"]
    assert sum(refused.values()) > 0
    running.stop()


def test_how_much_others_sent_does_not_decide_when_a_spool_is_full(tmp_path: Path) -> None:
    """The limit of each tick is drawn anew, and nobody can count up to it."""
    running = Running(tmp_path, {"visits": OPEN}, limits={"spool_bytes": 2**20}).start()
    stream: Any = running.service.streams["visits"]
    found = []
    for _ in range(40):
        most = stream._most_waiting()
        assert most == stream._most_waiting()  # one draw a tick: more of them would average out
        found.append(most)
        running.pass_ticks()
    assert len(set(found)) == 40
    assert min(found) >= 0.75 * 2**20
    assert max(found) <= 2**20
    # Uniform: all of 40 in one half with a probability of 2e-12.
    assert min(found) < 0.875 * 2**20 < max(found)
    running.stop()
