"""Streams with a public table: an event has the columns of the row with its key, and what it lacks does not count."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.service.conftest import STREAMS, Running

from discreet.errors import ParameterError
from discreet.service import bodies
from discreet.service.bodies import Reader
from discreet.service.definitions import Configuration, ServiceLimits, configuration
from discreet.service.problems import ProblemError

SECTIONS = {"/": "home", "/news": "news", "/sport": "news", "7": "numbers"}
TICKS = {"tick": "1m", "horizon": "1d", "epsilon": 1000.0, "delta": 1e-6, "public": True}
TOP = {"kind": "top", "column": "section", "k": 5, "lookup": "sections.csv", "on": "page", **TICKS}
COUNT = {"kind": "count", "lookup": "sections.csv", "on": "page", "where": {"section": "news"}, **TICKS}


def write(folder: Path, sections: dict[str, str] = SECTIONS, name: str = "sections.csv") -> Path:
    rows = [f"{page},{section},{len(section)}" for page, section in sections.items()]
    (folder / name).write_text("\n".join(["page,section,size", *rows]) + "\n")
    return folder


def defined(folder: Path, **streams: Any) -> Configuration:
    return configuration({"streams": streams}, folder)


def bodies_of(rows: list[dict[str, Any]]) -> dict[str, bytes]:
    """The same rows in every format."""
    names = list(rows[0])
    table = pa.table({name: pa.array([str(row[name]) for row in rows]) for name in names})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table, max_chunksize=3)
    lines = [",".join(str(row[name]) for name in names) for row in rows]
    return {
        "ndjson": "\n".join(map(json.dumps, rows)).encode(),
        "json": json.dumps(rows).encode(),
        "csv": "\n".join([",".join(names), *lines]).encode(),
        "arrow": sink.getvalue(),
    }


@pytest.mark.parametrize("small", [False, True])
def test_events_count_as_if_the_table_was_joined_to_them(
    tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every format, in blocks of any size: what is kept is what a stream without a table keeps of joined rows."""
    write(tmp_path)
    monkeypatch.setattr(bodies, "_BLOCK_BYTES", 50)
    monkeypatch.setattr(bodies, "_BLOCK_ROWS", 3)
    chance = random.Random(5)
    mine = {"user": "who", "max_items": 3, "where": {"size": "4", "seen": "yes"}}
    plain = {key: value for key, value in TOP.items() if key not in ("lookup", "on")}
    streams = defined(tmp_path, looked={**TOP, **mine}, joined={**plain, **mine}).streams
    looked, joined = Reader(streams["looked"]), Reader(streams["joined"])
    kept = 0
    for _ in range(40):
        rows = [
            {"page": chance.choice([*SECTIONS, "/x"]), "who": f"v{n}", "seen": chance.choice(["yes", "no"])}
            for n in range(chance.randrange(1, 9))
        ]
        more = [{**row, "section": SECTIONS[row["page"]], "size": len(SECTIONS[row["page"]])} for row in rows
                if row["page"] in SECTIONS]  # fmt: skip
        expected = joined.read("json", json.dumps(more).encode(), False)
        for form, body in bodies_of(rows).items():
            read = looked.read_small(form, body) if small else looked.read(form, body, False)
            if read is None:  # the long way is the other case
                continue
            assert (read.taken, read.counted) == (len(rows), expected.counted)
            assert read.columns is not None
            assert read.columns.equals(expected.columns)
            kept += read.counted
    assert kept > 50


def test_a_stream_publishes_what_the_table_says(tmp_path: Path) -> None:
    lookup = str(write(tmp_path) / "sections.csv")
    streams = {
        "sections": {**TOP, "lookup": lookup},
        "news": {**COUNT, "lookup": lookup},
        "readers": {**STREAMS["people"], "public": True, "lookup": lookup, "on": "page", "where": {"section": "news"}},
        "baskets": {**TOP, "lookup": lookup, "column": "tags", "sets": True, "max_items": 2, "where": {"size": "4"}},
    }
    running = Running(tmp_path / "data", streams).start()
    pages = ["/"] * 200 + ["/news"] * 300 + ["/sport"] * 100 + ["/x"] * 400 + [7] * 150
    rows = [{"page": page, "visitor": f"v{n % 50}", "tags": ["a", page]} for n, page in enumerate(pages)]
    for stream in streams:
        assert running.send(stream, rows).json() == {"accepted": len(rows)}
    running.pass_ticks()
    found = {item["item"]: item["count"] for item in running.latest("sections")["items"]}
    assert found.keys() == {"news", "home", "numbers"}
    assert found == pytest.approx({"news": 400, "home": 200, "numbers": 150}, abs=10)
    assert running.latest("news")["value"] == pytest.approx(400, abs=10)
    assert running.latest("readers")["value"] == pytest.approx(50, abs=10)
    found = {item["item"]: item["count"] for item in running.latest("baskets")["items"]}
    assert found == pytest.approx({"a": 600, "/": 200, "/news": 300, "/sport": 100}, abs=40)
    shown = running.client.get("/v1/streams/sections").json()["definition"]
    assert shown["on"] == "page"
    assert shown["lookup"].keys() == {"table", "digest"}
    assert shown["lookup"]["table"] == "sections.csv"
    assert str(tmp_path) not in json.dumps(shown)
    running.stop()


def test_a_missing_key_is_a_wrong_row_and_an_unknown_one_is_not(tmp_path: Path) -> None:
    reader = Reader(defined(write(tmp_path), news=COUNT).streams["news"])
    rows = [{"page": "/news"}, {"page": "/x"}, {}, {"page": None}, {"page": 7}]
    with pytest.raises(ProblemError) as refused:
        reader.read("json", json.dumps(rows).encode(), False)
    told = json.loads(refused.value.body())["rows"]
    assert [row["reason"] for row in told] == ["the field 'page' is missing", "the field 'page' is null"]
    read = reader.read("json", json.dumps(rows).encode(), True)
    assert (read.taken, read.counted, read.columns, read.skipped) == (3, 1, None, 2)


def test_what_a_table_adds_is_bounded(tmp_path: Path) -> None:
    """A small body must not become much memory: a key of a byte may stand for a text of a thousand."""
    definition = defined(write(tmp_path, {"a": "x" * 1000}), top=TOP).streams["top"]
    reader = Reader(definition, ServiceLimits(body_bytes=10_000, waiting_bytes=2**20))
    rows = [{"page": "a"}] * 10
    assert reader.read("json", json.dumps(rows).encode(), False).counted == 10
    with pytest.raises(ProblemError) as refused:
        reader.read("json", json.dumps([*rows, *rows[:1]]).encode(), False)
    assert refused.value.status == 413


def test_events_of_a_site(tmp_path: Path) -> None:
    reader = Reader(defined(write(tmp_path), top={**TOP, "sites": ["example.org"]}).streams["top"])
    fields = {"page": "/news", "host": "h", "referrer": "r", "event": "pageview", "visitor": "v"}
    assert reader.of_values(fields).columns.to_pylist() == [{"item": "news"}]  # type: ignore[union-attr]
    assert reader.of_values({**fields, "page": "/x"}).counted == 0


def test_the_table_is_fixed_wherever_it_lies(tmp_path: Path) -> None:
    digests = []
    for place, sections in (
        ("a", SECTIONS),
        ("b", dict(reversed(SECTIONS.items()))),
        ("c", {**SECTIONS, "/": "start"}),
    ):
        (tmp_path / place).mkdir()
        digests.append(defined(write(tmp_path / place, sections), top=TOP).streams["top"].digest)
    assert digests[0] == digests[1] != digests[2]
    lookup = str(write(tmp_path) / "sections.csv")
    running = Running(tmp_path / "data", {"top": {**TOP, "lookup": lookup}}).start()
    running.pass_ticks()
    running.again()  # the same table
    running.stop()
    write(tmp_path, {**SECTIONS, "/new": "news"})
    with pytest.raises(ParameterError, match="lookup was"):
        Running(tmp_path / "data", {"top": {**TOP, "lookup": lookup}}).start()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"on": None}, "lookup and on must be given together: a public table, and the field to join it on"),
        ({"lookup": None}, "lookup and on must be given together: a public table, and the field to join it on"),
        ({"column": "page"}, "lookup is not used: column, user or where must name one of "),
        ({"lookup": "nowhere.csv"}, "lookup: "),
        ({"lookup": "twice.csv"}, "must be unique"),
        ({"lookup": "long.csv"}, "at most 1000 bytes"),
        ({"lookup": "lists.parquet"}, "its columns must be texts"),
        ({"on": "address"}, "address"),
        ({"sets": True, "max_items": 2}, "cannot come from lookup"),
        (
            {"horizon": None, "per": "1d", "time": "size"},
            "time and sets come from the event itself; they cannot come from lookup or be its key",
        ),
        ({"sites": ["example.org"], "lookup": "others.csv", "on": "address"}, "events of a site"),
        ({"kind": "survey", "column": None, "k": None}, "cannot be used with survey"),
    ],
)
def test_what_does_not_go_with_a_table(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    write(tmp_path)
    write(tmp_path, {"a": "x" * 1001}, "long.csv")
    (tmp_path / "twice.csv").write_text("page,section\n/,a\n/,b\n")
    (tmp_path / "others.csv").write_text("address,section\n1,a\n")
    pa.parquet.write_table(pa.table({"page": ["/"], "section": [["a"]]}), tmp_path / "lists.parquet")
    words = {name: value for name, value in {**TOP, **changes}.items() if value is not None}
    if words["kind"] == "survey":
        words |= {"question": "?", "options": ["a", "b"]}
    with pytest.raises(ParameterError, match=why):
        defined(tmp_path, top=words)
