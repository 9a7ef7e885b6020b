"""How much streams rose, over HTTP: from what was published alone, for every kind of stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.service.conftest import STREAMS, Running

REAL: dict[str, dict[str, Any]] = {
    "words": {
        "kind": "top", "column": "query", "tick": "1m", "horizon": "1h", "epsilon": 1.0, "delta": 1e-6, "k": 3,
        "capacity": 64, "public": True, "unit": "row",
    },
    "people": {
        "kind": "top", "column": "query", "user": "visitor", "max_items": 2, "tick": "1m", "horizon": "1h",
        "epsilon": 1.0, "delta": 1e-6, "k": 3, "public": True,
    },
    "listed": {
        "kind": "top", "column": "query", "universe": ["cats", "dogs", "never"], "tick": "1m", "horizon": "1h",
        "epsilon": 1.0, "delta": 1e-6, "k": 3, "public": True, "unit": "row",
    },
    "visits": {"kind": "count", "tick": "1m", "horizon": "1h", "epsilon": 1.0, "delta": 1e-6, "public": True},
}  # fmt: skip


def rows(number: int, query: str, first: int) -> list[dict[str, Any]]:
    return [{"query": query, "visitor": f"v{first + i}"} for i in range(number)]


def risen(running: Running, stream: str, **asked: Any) -> list[dict[str, Any]]:
    response = running.client.get(f"/v1/streams/{stream}/increases", params=asked)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert (answer["stream"], answer["over"]) == (stream, asked.get("over", 1))
    found: list[dict[str, Any]] = answer["increases"]
    return found


def test_increases_are_narrower_than_both_intervals_and_hold(tmp_path: Path) -> None:
    running = Running(tmp_path, REAL).start()
    try:
        for tick in range(12):
            for stream in REAL:
                running.send(stream, rows(500, "cats", 1000 * tick) + rows(300, "dogs", 1000 * tick + 500))
            running.pass_ticks()
        for stream in REAL:
            (found,) = risen(running, stream, over=5)
            assert (found["tick"], found["since"], found["run"], found["confidence"]) == (12, 7, 1, 0.95)
            ends = {one["tick"]: one for one in running.client.get(f"/v1/streams/{stream}/releases").json()["releases"]}
            assert (found["begins"], found["ends"]) == (ends[7]["ends"], ends[12]["ends"])
            if stream == "visits":
                now, then, row, true = ends[12], ends[7], found, 4000
            else:
                now, then, row = (
                    next(one for one in told["items"] if one["item"] == "cats") for told in (ends[12], ends[7], found)
                )
                true = 2500
            both = now["upper"] - now["lower"] + then["upper"] - then["lower"]
            assert row["upper"] - row["lower"] < 0.85 * both
            assert row["lower"] - 60 <= true <= row["upper"] + 60
        everything = risen(running, "visits", over=5, **{"from": 1})
        assert [one["tick"] for one in everything] == list(range(6, 13))
        some = risen(running, "visits", over=5, every=4, **{"from": 1})
        assert [one["tick"] for one in some] == [8, 12]
        assert risen(running, "visits", over=12) == []
        before = risen(running, "words", over=5, **{"from": 1})
        running.again()
        assert risen(running, "words", over=5, **{"from": 1}) == before
        tag = running.client.get("/v1/streams/words/increases").headers["etag"]
        again = running.client.get("/v1/streams/words/increases", headers={"If-None-Match": tag})
        assert again.status_code == 304
    finally:
        running.stop()


def test_streams_without_a_law_add_both_intervals_and_private_ones_stay_so(tmp_path: Path) -> None:
    running = Running(tmp_path, STREAMS).start()
    try:
        for _ in range(3):
            running.send("hidden-visitors", rows(300, "cats", 0))
            running.pass_ticks()
        (found,) = risen(running, "hidden-visitors", over=2)
        assert (found["confidence"], found["since"]) == (0.9, 1)
        assert found["lower"] <= found["value"] <= found["upper"]
        assert risen(running, "lunch")[0]["confidence"] == 0.9
        assert running.client.get("/v1/streams/people/increases").status_code == 401
        assert running.client.get("/v1/streams/visits/increases?over=0").status_code == 422
    finally:
        running.stop()


def test_a_count_that_noise_brought_below_zero_is_compared_as_it_was(tmp_path: Path) -> None:
    """What is shown is cut at 0; an increase since then must not be."""
    from discreet.service.runs import number_shown

    assert number_shown(-5.0, 2.0) == {"value": 0, "lower": 0, "upper": 0, "basis": -5}
    assert "basis" not in number_shown(5.0, 2.0)
