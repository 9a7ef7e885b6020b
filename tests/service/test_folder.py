"""A service that has lost its folder, or the lock in it, notices and stops: what it acknowledges is counted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running, catch_up

from discreet.errors import DiscreetError
from discreet.service.folder import FolderLock
from discreet.service.runtime import Service
from discreet.service.streams import SpooledStream

VISITS = {"visits": STREAMS["visits"]}


def delete_lock(folder: Path) -> None:
    (folder / "lock").unlink()


def move(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def move_and_copy(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    shutil.copytree(folder.with_name("moved"), folder)


def rows(number: int) -> list[dict[str, str]]:
    return [{"visitor": str(i)} for i in range(number)]


@pytest.mark.parametrize("lose", [delete_lock, move, move_and_copy])
def test_nothing_is_acknowledged_once_the_folder_is_lost(
    tmp_path: Path, lose: Any, caplog: pytest.LogCaptureFixture
) -> None:
    running = Running(tmp_path / "data", VISITS).start()
    token = running.token("ingest")
    assert running.send("visits", rows(10), **token).status_code == 202
    told = threading.Event()
    running.service.when_lost = told.set
    lose(running.folder)
    for _ in range(2):
        assert running.send("visits", rows(7), **token).status_code == 503
    assert told.is_set()
    assert running.client.get("/readyz").status_code == 503
    assert "was moved or replaced, or its file 'lock' was deleted" in caplog.text
    folder = tmp_path / ("moved" if lose is move else "data")
    if lose is not move:  # the first is still there, and does nothing
        other = Service(running.configuration, folder, running.clock)
        running.clock.now += 60
        catch_up(other)
        assert abs(json.loads(other.store.release("visits", 1) or b"")["value"] - 10) <= 2
        other.stop()
    else:
        with pytest.raises(DiscreetError, match="another service"):
            Service(running.configuration, folder, running.clock)
    running.stop()


def test_what_is_lost_while_it_goes_to_the_disk_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(tmp_path / "data", VISITS).start()
    commit = SpooledStream.commit

    def lost_meanwhile(stream: SpooledStream, arrivals: Any) -> None:
        commit(stream, arrivals)
        delete_lock(running.folder)

    monkeypatch.setattr(SpooledStream, "commit", lost_meanwhile)
    assert running.send("visits", rows(7)).status_code == 503
    running.stop()


def test_the_threads_end_by_themselves(tmp_path: Path) -> None:
    running = Running(tmp_path / "data", VISITS)
    service = Service(running.configuration, running.folder, running.clock)
    told = threading.Event()
    service.when_lost = told.set
    service.start()
    delete_lock(running.folder)
    assert told.wait(60)
    service.stop()


def test_a_lock_that_was_deleted_and_made_anew_is_another(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    assert first.is_held
    with pytest.raises(DiscreetError, match="another service"):
        FolderLock(tmp_path)
    delete_lock(tmp_path)
    assert not first.is_held
    second = FolderLock(tmp_path)
    assert second.is_held
    assert not first.is_held
    first.close()
    assert second.is_held
    second.close()


def test_the_command_ends_with_an_error(tmp_path: Path, spawn: Any) -> None:
    file, data = tmp_path / "streams.toml", tmp_path / "data"
    file.write_text('[streams.n]\nkind = "count"\ntick = "1h"\nhorizon = "1d"\nepsilon = 1.0\ndelta = 1e-9\n')
    command = [sys.executable, "-m", "discreet", "service", "run", file, "--data", data, "--port", "0"]
    with spawn(command, stderr=subprocess.PIPE, text=True) as process:
        said = [process.stderr.readline() for _ in range(2)]
        assert "stream n (count) begins; its 24 ticks end at" in said[0]
        assert "serving at http://127.0.0.1:" in said[1]
        delete_lock(data)
        assert process.wait() == 1  # its time is limited
        assert "its file 'lock' was deleted" in process.stderr.read()
