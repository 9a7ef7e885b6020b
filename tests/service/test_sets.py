"""Streams of sets: every event holds a list of items, of which a bounded number counts."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.service.conftest import STREAMS, Running

from discreet.service import bodies
from discreet.service.bodies import Reader
from discreet.service.definitions import StreamDefinition
from discreet.service.problems import ProblemError

TAGS = {key: value for key, value in STREAMS["searches"].items() if key != "user"} | {
    "column": "tags", "max_items": 3, "sets": True
}  # fmt: skip


def definition(**changes: Any) -> StreamDefinition:
    return StreamDefinition.model_validate({**TAGS, **changes})


def arrow(lists: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"tags": lists})
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table, max_chunksize=2)
    return sink.getvalue()


def test_sets_are_counted_and_bounded(tmp_path: Path) -> None:
    running = Running(tmp_path, {"tags": TAGS, "people-tags": {**TAGS, "user": "visitor", "max_items": 10}}).start()
    sets = [["a", "b"]] * 200 + [["b", "b", 7, "c", "late"]] * 150 + [[]] * 20
    for stream in ("tags", "people-tags"):
        sent = running.send(stream, [{"tags": each, "visitor": f"v{n}"} for n, each in enumerate(sets)])
        assert (sent.status_code, sent.json()) == (202, {"accepted": 370})
    running.pass_ticks()
    found = {item["item"]: item["count"] for item in running.latest("tags")["items"]}
    assert found.keys() == {"a", "b", "7", "c"}  # the first three different items of an event count
    assert found["b"] == pytest.approx(350, abs=40)
    found = {item["item"]: item["count"] for item in running.latest("people-tags")["items"]}
    assert found["late"] == pytest.approx(150, abs=60)
    running.stop()


def test_what_is_no_list_is_refused_by_its_row() -> None:
    reader = Reader(definition())
    rows = [{"tags": ["a", 1]}, {"tags": "a"}, {}, {"tags": None}, {"tags": [None]}, {"tags": [["a"]]}, {"tags": [1.5]}]
    rows.append({"tags": ["x" * 1001]})
    with pytest.raises(ProblemError) as refused:
        reader.read("json", json.dumps(rows).encode(), False)
    told = json.loads(refused.value.body())["rows"]
    assert [row["row"] for row in told] == [2, 3, 4, 5, 6, 7, 8]
    assert told[0]["reason"] == "the field 'tags' is no list of texts and whole numbers"
    for form in ("json", "ndjson"):
        body = json.dumps(rows) if form == "json" else "\n".join(map(json.dumps, rows))
        read = reader.read(form, body.encode(), True)
        assert (read.taken, read.skipped, read.columns.to_pylist()) == (1, 7, [{"item": ["a", "1"]}])
    with pytest.raises(ProblemError, match="sets of items"):
        reader.read("csv", b"tags\na\n", True)


def test_sets_in_arrow() -> None:
    reader = Reader(definition())
    lists = [["a", "b"], [], None, ["x" * 1001, "a"], [None], ["c"]]
    for kind in (pa.list_(pa.string()), pa.large_list(pa.large_string())):
        read = reader.read("arrow", arrow(pa.array(lists, kind)), True)
        assert (read.taken, read.skipped) == (3, 3)
        assert read.columns.column("item").to_pylist() == [["a", "b"], [], ["c"]]
    numbers = reader.read("arrow", arrow(pa.array([[1, 2], [3]])), False)
    assert numbers.columns.column("item").to_pylist() == [["1", "2"], ["3"]]
    for wrong in (pa.array(["a"]), pa.array([[1.5]])):
        with pytest.raises(ProblemError) as refused:
            reader.read("arrow", arrow(wrong), True)
        assert refused.value.status == 422


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_BLOCK_BYTES", 7)
    monkeypatch.setattr(bodies, "_BLOCK_ROWS", 3)
    chance, reader = random.Random(8), Reader(definition())
    for _ in range(300):
        values = [chance.choice([["a"], ["é\n", 5], [], "a", [2.5], [[]], None]) for _ in range(chance.randrange(8))]
        good = [list(map(str, v)) for v in values if isinstance(v, list) and all(type(i) in (str, int) for i in v)]
        read = reader.read("json", json.dumps([{"tags": value} for value in values]).encode(), True)
        assert (read.taken, read.skipped) == (len(good), len(values) - len(good))
        assert read.columns.column("item").to_pylist() == good


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"max_items": None}, "max_items needs user or sets"),
        ({"sets": None}, "max_items needs user or sets"),
        ({"capacity": 64}, "capacity cannot be combined with sets"),
        ({"where": {"tags": "a"}}, "or used in where"),
        ({"kind": "count", "column": None, "k": None, "max_items": None}, "sets cannot be used with count"),
    ],
)
def test_what_does_not_go_with_sets(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        definition(**changes)


def test_streams_without_sets_are_what_they_were() -> None:
    plain = {**STREAMS["searches"]}
    assert "sets" not in StreamDefinition.model_validate(plain).public_form()
    digests = {StreamDefinition.model_validate({**plain, **more}).digest for more in ({}, {"sets": False})}
    assert len(digests) == 1
    assert definition().public_form()["sets"] is True
