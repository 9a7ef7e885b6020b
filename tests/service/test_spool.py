"""Events that wait on disk: what was acknowledged counts once, whatever fails while it is read; damage is said."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running, catch_up, seal

from discreet.service import event_spool as spools
from discreet.service.event_spool import EventSpool, Record, packed
from discreet.service.runs import Curated

BATCHES = 7


def rows(number: int, query: str = "cats", first: int = 0) -> list[dict[str, Any]]:
    return [{"query": query, "visitor": f"v{first + i}"} for i in range(number)]


@pytest.fixture
def running(tmp_path: Path) -> Any:
    made = Running(tmp_path / "data", {name: STREAMS[name] for name in ("searches", "visits")}).start()
    yield made
    made.stop()


def files(running: Running, name: str = "visits") -> list[Path]:
    return sorted((running.folder / "streams" / name / "spool").iterdir())


def counted(running: Running) -> int:
    """People of the item that all have, exactly."""
    stream: Any = running.service.streams["searches"]
    return int(stream.present.mechanism.not_private_counts().get("cats", 0))


# ---- reading fails --------------------------------------------------------------------------------------------------


def failing_reads(monkeypatch: pytest.MonkeyPatch, spool: Any, at: int, error: Exception) -> None:
    """The read of a spool fails once, when it has yielded so many records."""
    read = EventSpool.read
    left = [1]

    def fails(self: EventSpool, tick: int, start: int) -> Any:
        for number, found in enumerate(read(self, tick, start)):
            if self is spool and left[0] and number == at:
                left[0] = 0
                raise error
            yield found
        if self is spool and left[0] and at == BATCHES:
            left[0] = 0
            raise error

    monkeypatch.setattr(EventSpool, "read", fails)


@pytest.mark.parametrize("feed_bytes", [1, 8 * 2**20])  # every record by itself, and all at once
@pytest.mark.parametrize("error", [MemoryError(), OSError(5, "Input/output error")])
def test_a_read_that_fails_at_any_record_loses_nothing(
    running: Running, monkeypatch: pytest.MonkeyPatch, error: Exception, feed_bytes: int
) -> None:
    monkeypatch.setattr("discreet.service.streams._FEED_BYTES", feed_bytes)
    people, token = 0, running.token("ingest")
    for at in range(BATCHES + 1):
        for batch in range(BATCHES):
            key = {"Idempotency-Key": f"{at} {batch}"}
            sent = running.send("searches", rows(10, first=people), **key, **token)
            assert sent.status_code == 202
            people += 10
        running.clock.now += 60
        seal(running.service)
        stream: Any = running.service.streams["searches"]
        with monkeypatch.context() as broken:
            failing_reads(broken, stream._spool, at, error)
            with pytest.raises(type(error)):
                stream.work()
            assert stream.tick == at
            assert stream.work()
        catch_up(running.service)
        assert stream.tick == at + 1
        assert counted(running) == people
        assert not files(running, "searches")


@pytest.mark.parametrize("when", ["before", "after"])
def test_events_that_the_mechanism_took_in_part_are_given_anew(
    running: Running, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr("discreet.service.streams._FEED_BYTES", 1)
    running.send("searches", rows(10))
    running.pass_ticks()
    for batch in range(3):
        running.send("searches", rows(10, first=10 + 10 * batch), **{"Idempotency-Key": str(batch)})
        running.send("visits", rows(10), **{"Idempotency-Key": str(batch)})
    add, calls = Curated.add, []

    def fails_once(self: Curated, records: Any) -> None:
        calls.append(self)
        same = [call for call in calls if call.definition.kind == self.definition.kind]
        fails = len(same) == (2 if self.definition.kind == "top" else 1)
        if fails and when == "before":
            raise MemoryError
        add(self, records)
        if fails:
            raise MemoryError

    monkeypatch.setattr(Curated, "add", fails_once)
    running.clock.now += 60
    seal(running.service)
    for name in ("searches", "visits"):
        with pytest.raises(MemoryError):
            running.service.streams[name].work()
        assert running.service.streams[name].work()
    assert counted(running) == 40
    assert abs(running.latest("visits")["value"] - 30) <= 2
    assert running.service.streams["visits"].tick == 2


def test_a_draw_that_fails_in_between_is_made_anew_from_the_state_on_disk(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.send("visits", rows(30))
    running.clock.now += 60
    seal(running.service)
    stream: Any = running.service.streams["visits"]
    with monkeypatch.context() as broken:

        def no_memory(*_: Any) -> Any:
            raise MemoryError

        broken.setattr(Curated, "_numbers", no_memory)  # when the mechanism is after the tick already
        with pytest.raises(MemoryError):
            stream.work()
    assert stream.work()
    assert (stream.tick, stream.present.mechanism.tick) == (1, 1)
    assert abs(running.latest("visits")["value"] - 30) <= 2


# ---- damage ---------------------------------------------------------------------------------------------------------


def record(number: int) -> Record:
    return Record(100 + number, b"some rows" * (number + 1), bytes([number]) * 16, b"d" * 16, number)


def spool_of(folder: Path, records: int) -> tuple[Path, list[int]]:
    """A file with records, and where each ends."""
    made = EventSpool(folder)
    ends = [0]
    for number in range(records):
        made.append(1, [packed(record(number))])
        ends.append(made.size(1))
    made.close()
    (path,) = folder.iterdir()
    return path, ends


def found_in(made: EventSpool) -> list[Record]:
    return [found for found, _ in made.read(1, 0) if found is not None]


@pytest.mark.parametrize("while_running", [True, False])
def test_any_flipped_bit_costs_its_record_and_is_said(tmp_path: Path, while_running: bool) -> None:
    path, ends = spool_of(tmp_path / "spool", 3)
    whole = path.read_bytes()
    for place in range(len(whole)):
        hit = next(number for number, end in enumerate(ends[1:]) if place < end)
        path.write_bytes(whole)
        made = EventSpool(path.parent) if while_running else None
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        made = EventSpool(path.parent) if made is None else made
        for _ in range(2):  # once and again: it is one place
            assert found_in(made) == [record(number) for number in range(3) if number != hit], place
            assert made.damaged == 1
        made.append(1, [packed(record(3))])  # and goes on behind it
        assert found_in(made)[-1] == record(3)
        made.remove_until(1)
        assert made.damaged == 1
        made.close()


def test_a_torn_tail_is_cut_off_and_no_damage(tmp_path: Path) -> None:
    path, ends = spool_of(tmp_path / "spool", 3)
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        made = EventSpool(path.parent)
        left = max(number for number, end in enumerate(ends) if end <= cut)
        assert found_in(made) == [record(number) for number in range(left)]
        assert (made.damaged, path.stat().st_size) == (0, ends[left])
        made.close()


def test_a_file_that_is_cut_while_it_is_used_is_damage(tmp_path: Path) -> None:
    path, ends = spool_of(tmp_path / "spool", 3)
    made = EventSpool(path.parent)
    os.truncate(path, ends[1] + 5)
    assert found_in(made) == [record(0)]
    assert [after for _, after in made.read(1, 0)] == [ends[1], ends[3]]
    assert made.damaged == 1
    made.close()


def test_zeros_in_between_and_the_rest_is_found(tmp_path: Path) -> None:
    path, ends = spool_of(tmp_path / "spool", 6)
    data = bytearray(path.read_bytes())
    data[ends[1] + 3 : ends[4] - 3] = bytes(ends[4] - ends[1] - 6)
    path.write_bytes(data)
    made = EventSpool(path.parent)
    assert found_in(made) == [record(0), record(4), record(5)]
    assert made.damaged == 1
    made.close()


@pytest.mark.parametrize("piece", [5, 16, 64])
def test_the_next_head_is_found_wherever_pieces_end(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(spools, "_PIECE", piece)
    head = packed(record(1))
    for before in range(70):
        data = b"\xff\xfe" * (before // 2) + b"\xff" * (before % 2) + head
        assert spools._next_head(io.BytesIO(data), 0, len(data)) == before


@pytest.mark.parametrize("while_running", [True, False])
def test_damage_is_in_the_log_the_status_and_the_metrics_and_the_rest_counts(
    running: Running, caplog: pytest.LogCaptureFixture, while_running: bool
) -> None:
    caplog.set_level(logging.INFO, "discreet.service")
    token = running.token("ingest")
    for batch in range(3):
        running.send("visits", rows(100), **{"Idempotency-Key": str(batch)}, **token)
    (path,) = files(running)
    data = path.read_bytes()
    size = len(data) // 3
    if not while_running:
        running.stop()
    path.write_bytes(data[: size + 17] + bytes([data[size + 17] ^ 4]) + data[size + 18 :])  # the number of rows
    if not while_running:
        running.start()
    running.pass_ticks()
    assert abs(running.latest("visits")["value"] - 200) <= 2
    status = running.client.get("/v1/admin/status", headers=running.token("admin")).json()["streams"]
    assert {stream["name"]: stream["spool_damaged"] for stream in status} == {"searches": 0, "visits": 1}
    metrics = running.client.get("/metrics").text
    assert 'discreet_spool_damaged_total{stream="visits"} 1' in metrics
    assert 'discreet_spool_damaged_total{stream="searches"} 0' in metrics
    assert "stream visits: the spool is damaged" in caplog.text
    # Whoever sends it again puts it right: a key that cannot be read stands in nobody's way.
    if not while_running:
        assert running.send("visits", rows(100), **{"Idempotency-Key": "1"}, **token).status_code == 202
        running.pass_ticks()
        assert abs(running.latest("visits")["value"] - 300) <= 2
