"""What is on disk before anybody hears of it, who may read it, and what is left behind by an attempt that failed."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running

import discreet as dc
from discreet.errors import DiscreetError, ParameterError
from discreet.service import event_spool
from discreet.service.backup import backup, restore
from discreet.service.event_spool import EventSpool, Record, packed
from discreet.service.folder import make_folder, write_file
from discreet.service.runtime import Service
from discreet.service.store import Store, Which


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files and folders that were made durable, in order."""
    found: list[str] = []

    def noted(plain: Any) -> Any:
        def sync(file: int) -> None:
            found.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
            plain(file)

        return sync

    monkeypatch.setattr(event_spool, "_to_disk", noted(event_spool._to_disk))
    monkeypatch.setattr(os, "fsync", noted(os.fsync))
    return found


def test_events_are_durable_with_the_name_of_their_file(tmp_path: Path, synced: list[str]) -> None:
    spool = EventSpool(tmp_path / "spool")
    synced.clear()
    for tick, expected in ((1, ["spool", "0000000001.spool"]), (1, ["0000000001.spool"])):
        spool.append(tick, [packed(Record(1, b"x"))])
        assert [name for name in synced if name.startswith(("spool", "0"))] == expected
        synced.clear()
    spool.close()
    with (tmp_path / "spool" / "0000000001.spool").open("ab") as file:
        file.write(packed(Record(1, b"x"))[:-1])
    EventSpool(tmp_path / "spool").close()
    assert "0000000001.spool" in synced  # what was cut off does not come back


def test_a_state_is_durable_before_and_after_it_has_its_name(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda *names: (synced.append("(renamed)"), rename(*names)))
    write_file(tmp_path / "1-0.state", b"new")
    names = [name for name in synced if name == "(renamed)" or tmp_path.name in name or ".state" in name]
    assert names == [".1-0.state.new", "(renamed)", tmp_path.name]


def test_a_state_that_cannot_be_written_leaves_the_one_before_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError("the disk is full")

    write_file(tmp_path / "1-0.state", b"old")
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="full"):
        write_file(tmp_path / "1-0.state", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("1-0.state", b"old")]


def test_nobody_else_looks_into_what_a_service_keeps(running: Running) -> None:
    """Whatever the umask of the operator is."""
    before = os.umask(0)
    try:
        running.again()
        running.send("visits", [{}])
        running.pass_ticks()
        running.send("visits", [{}])
        made = running.folder / "made" / "within"
        make_folder(made)
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    files = [
        path for path in running.folder.rglob("*") if path.is_file() and path.suffix in (".spool", ".state", ".key")
    ]
    files += running.folder.glob("service.sqlite*")
    assert {path.suffix for path in files} >= {".spool", ".state", ".key", ".sqlite"}
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in files} == {0}


def test_the_leftovers_of_an_attempt_are_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that an append left without its name being durable is begun anew."""

    def fails(_: Path) -> None:
        raise OSError("no such disk")

    spool, record = EventSpool(tmp_path / "spool"), packed(Record(1, b"x"))
    (tmp_path / "spool" / "0000000001.spool").write_bytes(record * 3)
    with monkeypatch.context() as broken:
        broken.setattr(event_spool, "sync_folder", fails)
        with pytest.raises(OSError, match="no such disk"):
            spool.append(1, [record])
    spool.append(1, [record])
    spool.close()
    assert len([*EventSpool(tmp_path / "spool").read(1, 0)]) == 1


def test_what_could_not_be_cut_off_is_cut_off_before_the_next_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("the disk is full")

    spool, record = EventSpool(tmp_path / "spool"), packed(Record(1, b"x"))
    spool.append(1, [record])
    with monkeypatch.context() as broken:
        broken.setattr(event_spool, "_to_disk", fails)
        broken.setattr(os, "ftruncate", fails)
        with pytest.raises(OSError, match="full"):
            spool.append(1, [record] * 5)
    spool.append(1, [record])
    spool.close()
    again = EventSpool(tmp_path / "spool")
    assert (len([*again.read(1, 0)]), again.damaged) == (2, 0)
    again.close()


def test_ticks_that_are_out_leave_no_events_and_later_ones_stay(tmp_path: Path) -> None:
    spool = EventSpool(tmp_path / "spool")
    for tick in (1, 2, 3, 12):
        spool.append(tick, [packed(Record(1, b"x"))])
    spool.remove_until(3)
    assert spool.ticks() == [12]
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["0000000012.spool"]
    assert spool.total_bytes == spool.size(12) > 0
    spool.close()


# ---- a disk that is full ---------------------------------------------------------------------------------------------


def test_what_the_disk_refuses_counts_nothing_and_may_come_again(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise OSError("SECRET: the disk is full")

    key = {"Idempotency-Key": "k", **running.token("ingest")}
    protocol = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())
    report = protocol.party(1).encode(["yes"])
    with monkeypatch.context() as broken:
        broken.setattr(EventSpool, "append", fails)
        answers = [
            running.send("visits", [{}] * 3, **key),
            running.client.post("/v1/streams/lunch/messages", content=report),
        ]
    for answer in answers:
        assert (answer.status_code, answer.json()["title"]) == (507, "The disk is full")
        assert int(answer.headers["retry-after"]) == 30
        assert "SECRET" not in answer.text
    assert running.send("visits", [{}] * 3, **key).json() == {"accepted": 3}
    assert running.client.post("/v1/streams/lunch/messages", content=report).json() == {"accepted": 1, "repeated": 0}
    status = running.client.get("/v1/admin/status", headers=running.token("admin")).json()
    told = {stream["name"]: stream for stream in status["streams"]}
    assert (told["visits"]["accepted"], told["lunch"]["accepted"]) == (3, 1)
    assert told["visits"]["refused"] == told["lunch"]["refused"] == {"no room": 1}


def test_an_error_while_writing_tells_its_place_alone(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("SECRET")

    monkeypatch.setattr(EventSpool, "append", fails)
    answer = running.send("visits", [{}])
    assert (answer.status_code, answer.json()["title"]) == (500, "Internal error")
    assert "stream visits cannot write: KeyError at test_disk_rules.py" in caplog.text
    assert "SECRET" not in answer.text + caplog.text


# ---- the store -------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "store")) as made:
        yield made


def test_what_is_stored_is_on_disk_when_it_is_told(store: Store) -> None:
    with store.writing() as db:
        assert db.execute("pragma synchronous").fetchone()[0] == 2  # full
        assert db.execute("pragma journal_mode").fetchone()[0] == "wal"


def test_a_tick_is_published_once(store: Store) -> None:
    store.publish("s", 1, '{"value":1}', "1-1.state", [], 0.0)
    with pytest.raises(sqlite3.IntegrityError):
        store.publish("s", 1, '{"value":2}', "1-1.state", [(b"k", b"d", 1, 9.0)], 0.0)
    assert store.release("s", 1) == b'{"value":1}'
    assert store.key("s", b"k") is None  # all of it, or nothing


def test_a_key_stays_what_it_was_first(store: Store) -> None:
    store.publish("s", 1, "{}", "f", [(b"k", b"first", 7, 9.0)], 0.0)
    store.publish("s", 2, "{}", "f", [(b"k", b"again", 8, 9.0), (b"l", b"other", 1, 9.0)], 0.0)
    store.publish("t", 1, "{}", "f", [(b"k", b"of another stream", 1, 9.0)], 0.0)
    assert (store.key("s", b"k"), store.key("s", b"l")) == ((b"first", 7), (b"other", 1))
    assert store.keys_like("s", b"k") == [b"k"]
    store.publish("s", 3, "{}", "f", [], 9.0)
    assert store.key("s", b"k") is not None  # until then, and no longer
    store.publish("s", 4, "{}", "f", [], 9.5)
    assert store.key("s", b"k") is store.key("t", b"k") is None


def test_a_key_is_remembered_for_its_hours(tmp_path: Path) -> None:
    """From when its tick was published, also across a restart."""
    streams = {"visits": {**STREAMS["visits"], "tick": "30m"}}
    running = Running(tmp_path, streams, limits={"key_hours": 1.0}).start()
    key = {"Idempotency-Key": "k", **running.token("ingest")}
    assert running.send("visits", [{}] * 3, **key).json() == {"accepted": 3}
    running.pass_ticks(1, 1800.0)
    for _ in range(2):
        assert running.send("visits", [{}] * 3, **key).json() == {"accepted": 3}
        assert running.send("visits", [{}] * 4, **key).status_code == 422
        assert running.service.streams["visits"].spool_events == 0
        running.again()
        running.pass_ticks(1, 1800.0)
    running.pass_ticks(1, 1800.0)
    assert running.send("visits", [{}] * 4, **key).json() == {"accepted": 4}
    running.stop()


def test_a_service_with_a_pan_stream_counts_no_request(tmp_path: Path) -> None:
    for streams, counted in ((["visits"], True), (["visits", "hidden-visitors"], False)):
        running = Running(tmp_path / streams[-1], {name: STREAMS[name] for name in streams}).start()
        running.send("visits", [{}])
        status = running.client.get("/v1/admin/status", headers=running.token("admin")).json()
        assert status["requests"] == (2 if counted else None)
        assert status["waiting_bytes"] == 0
        accepted = {stream["name"]: (stream["accepted"], stream["refused"]) for stream in status["streams"]}
        assert accepted["visits"] == (1, {})
        assert accepted.get("hidden-visitors", (None, None)) == (None, None)
        running.stop()


@pytest.mark.parametrize(("room", "last"), [(1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (30, 3), (99, 3)])
def test_an_answer_has_what_fits_and_one_release_at_least(store: Store, room: int, last: int) -> None:
    for tick in (1, 2, 3):
        store.publish("s", tick, '{"value":0}'[:9] + "}", "f", [], 0.0)
    assert store.last_within("s", Which(1, 3), room) == last
    assert [tick for tick, _ in store.some_releases("s", Which(2, 3, every=2), 99)] == [2]


@pytest.mark.parametrize("version", [1, 3])
def test_a_store_of_another_version_is_left_alone(tmp_path: Path, version: int) -> None:
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "service.sqlite")) as db:
        db.execute(f"pragma user_version = {version}")
    before = (tmp_path / "service.sqlite").read_bytes()
    with pytest.raises(DiscreetError, match=rf"another version of discreet \(format {version}\)"):
        Store(tmp_path)
    assert (tmp_path / "service.sqlite").read_bytes() == before


# ---- backups ---------------------------------------------------------------------------------------------------------


def test_a_backup_knows_its_visitors_again(running: Running, tmp_path: Path) -> None:
    """Else everybody would be somebody new after a disaster."""
    backup(running.folder, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "new")
    assert (tmp_path / "new" / "visitors.key").read_bytes() == (running.folder / "visitors.key").read_bytes()


@pytest.mark.parametrize("ledger_too", [False, True])
def test_a_backup_whose_ledger_is_damaged_is_not_put_back(running: Running, tmp_path: Path, ledger_too: bool) -> None:
    backup(running.folder, tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "copy" / "ledger.sqlite", isolation_level=None)) as db:
        db.execute("drop trigger no_delete")
        db.execute("delete from events where rowid = (select min(rowid) from events)")
    with pytest.raises(ParameterError, match="is damaged"):
        restore(tmp_path / "copy", tmp_path / "new", ledger_too)
    assert not (tmp_path / "new").exists()


# ---- the beginning ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [b"", b"short", b"k" * 31, b"k" * 33])
def test_a_key_of_visitors_has_32_bytes(running: Running, key: bytes) -> None:
    running.stop()
    kept = (running.folder / "visitors.key").read_bytes()
    (running.folder / "visitors.key").write_bytes(key)
    with pytest.raises(DiscreetError, match="32 bytes"):
        running.start()
    running.service.stop()
    (running.folder / "visitors.key").write_bytes(kept)
    running.start()


def test_a_start_that_fails_lets_go_of_the_folder(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": STREAMS["visits"]}).start()
    running.stop()
    changed = Running(tmp_path, {"visits": {**STREAMS["visits"], "epsilon": 2.0}})
    for _ in range(2):
        with pytest.raises(ParameterError, match="definition is fixed"):
            Service(changed.configuration, tmp_path, running.clock)
    running.start()
    running.stop()
