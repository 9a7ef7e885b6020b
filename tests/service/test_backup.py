"""Backups of a running service: of one moment, and what was published is never drawn again from one."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running, all_releases, catch_up

import discreet as dc
from discreet.errors import OldStateError
from discreet.service.backup import backup, restore
from discreet.service.runtime import Service
from discreet.service.store import Store

VISITS = {"visits": STREAMS["visits"], "hidden-visitors": STREAMS["hidden-visitors"]}
ALONE = {"visits": STREAMS["visits"]}


@pytest.fixture
def running(tmp_path: Path, ledger_path: Path | str) -> Any:
    made = Running(tmp_path / "data", ALONE, ledger=str(ledger_path)).start()
    made.send("visits", [{}] * 5)
    made.pass_ticks()
    yield made
    made.stop()


def test_a_restored_folder_goes_on_with_what_waited(running: Any, tmp_path: Path, ledger_path: Any) -> None:
    """A batch that was acknowledged before the backup counts in the next tick."""
    running.send("visits", [{}] * 7)
    assert backup(running.folder, tmp_path / "copy", ledger_path) == []
    with pytest.raises(dc.ParameterError, match="never replaces"):
        backup(running.folder, tmp_path / "copy", ledger_path)
    restore(tmp_path / "copy", tmp_path / "new")
    assert not (tmp_path / "new" / "ledger.sqlite").exists()
    second = Service(running.configuration, tmp_path / "new", running.clock, ledger_path, take_over=True)
    running.clock.now += 60
    catch_up(second)
    latest = second.streams["visits"].latest
    assert latest is not None
    assert abs(latest["value"] - 12) <= 1  # epsilon is 1e5
    second.stop()


def test_a_backup_that_is_behind_the_ledger_is_refused(running: Any, tmp_path: Path, ledger_path: Any) -> None:
    backup(running.folder, tmp_path / "copy", ledger_path)
    running.pass_ticks()
    restore(tmp_path / "copy", tmp_path / "new")
    with pytest.raises(OldStateError, match="is at step 1, and step 2 was published"):
        Service(running.configuration, tmp_path / "new", running.clock, ledger_path, take_over=True)
    with pytest.raises(dc.ParameterError, match="a new folder"):
        restore(tmp_path / "copy", tmp_path / "new")


def test_a_lost_ledger_is_put_back_when_that_is_said(running: Any, tmp_path: Path, ledger_path: Any) -> None:
    backup(running.folder, tmp_path / "copy", ledger_path)
    restore(tmp_path / "copy", tmp_path / "new", ledger_too=True)
    assert dc.Ledger(tmp_path / "new" / "ledger.sqlite").history() == dc.Ledger(ledger_path).history()
    (tmp_path / "copy" / "ledger.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(dc.ParameterError, match="is damaged"):
        restore(tmp_path / "copy", tmp_path / "another")


def test_pan_streams_are_left_out(tmp_path: Path) -> None:
    made = Running(tmp_path / "data", VISITS).start()
    made.pass_ticks()
    assert backup(made.folder, tmp_path / "copy") == ["hidden-visitors"]
    assert not (tmp_path / "copy" / "streams" / "hidden-visitors").exists()
    made.stop()


def test_backups_of_a_busy_service_are_of_one_moment(running: Any, tmp_path: Path, ledger_path: Any) -> None:
    """Ten while ticks are published: each has the state that its store names, and goes on."""
    over = threading.Event()

    def publish() -> None:
        while not over.is_set():
            running.pass_ticks()

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        for number in range(10):
            backup(running.folder, tmp_path / f"copy{number}", ledger_path)
    finally:
        over.set()
        thread.join()
    running.pass_ticks()
    for number in range(10):
        restore(tmp_path / f"copy{number}", tmp_path / f"new{number}", ledger_too=True)
        store = Store(tmp_path / f"new{number}")
        ticks = [release["tick"] for release in all_releases(store, "visits")]
        kept = store.streams()["visits"]
        store.close()
        assert (kept.tick, ticks) == (len(ticks), list(range(1, kept.tick + 1)))
        ledger = tmp_path / f"new{number}" / "ledger.sqlite"
        service = Service(running.configuration, ledger.parent, running.clock, ledger, take_over=True)
        catch_up(service)
        assert service.streams["visits"].tick > kept.tick
        service.stop()


def test_by_command(running: Any, tmp_path: Path, ledger_path: Any, discreet: Any) -> None:
    place = ["--data", running.folder, "--ledger", ledger_path]
    done = discreet("service", "backup", *place, "--output", tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    assert discreet("service", "backup", *place, "--output", tmp_path / "copy").returncode == 2
    done = discreet("service", "restore", tmp_path / "copy", "--data", tmp_path / "new")
    assert (done.returncode, "--take-over" in done.stderr) == (0, True)
    assert discreet("service", "backup", "--data", tmp_path / "no", "--output", tmp_path / "x").returncode == 2


def test_others_cannot_look_into_a_backup(running: Any, tmp_path: Path, ledger_path: Any) -> None:
    """It holds events that wait, in folders and files of their owner alone, whatever new files may be read by."""
    running.send("visits", [{}] * 7)
    mask = os.umask(0)
    try:
        backup(running.folder, tmp_path / "copy", ledger_path)
    finally:
        os.umask(mask)
    places = [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]
    assert any(place.suffix == ".spool" for place in places)
    assert [place for place in places if place.stat().st_mode & 0o077] == []
