"""A standby takes a service's streams over: from then on the process before publishes nothing."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running, all_releases, catch_up, seal

import discreet as dc
from discreet.errors import TakenOverError
from discreet.service.runtime import Service
from discreet.service.store import Store

VISITS = {name: STREAMS[name] for name in ("visits", "people", "searches")}


def steps_of(ledger: Path | str, name: str) -> list[dict[str, Any]]:
    """What the ledger has of a stream: the releases that may have been published."""
    opened = dc.Ledger(ledger)
    return [
        event.details
        for event in opened.history(name)
        if event.kind == "step" and event.charge_id != f"holder of {name}"
    ]


@pytest.fixture
def copied(tmp_path: Path, ledger_path: Path | str) -> Any:
    """A service after one tick, and its folder as a standby has it: the ledger is elsewhere."""
    ledger = str(ledger_path)
    first = Running(tmp_path / "data", VISITS, ledger=ledger).start()
    first.send("visits", [{}] * 5)
    first.pass_ticks()
    shutil.copytree(first.folder, tmp_path / "standby")
    return first, tmp_path / "standby", ledger


def test_the_ledger_refuses_who_was_taken_over(copied: Any) -> None:
    """Every stream of it, and a start from the old folder."""
    first, folder, ledger = copied
    second = Service(first.configuration, folder, first.clock, ledger, take_over=True)
    first.send("visits", [{}] * 7)
    first.clock.now += 60
    seal(first.service)
    for stream in first.service.streams.values():
        with pytest.raises(TakenOverError, match="was taken over by"):
            stream.work()
    assert len(steps_of(ledger, "visits")) == 1
    catch_up(second)
    assert [stream.tick for stream in second.streams.values()] == [2, 2, 2]
    second.stop()
    first.stop()
    with pytest.raises(TakenOverError):
        Service(first.configuration, folder.with_name("data"), first.clock, ledger, take_over=False)
    again = Service(first.configuration, folder, first.clock, ledger)  # the new holder needs no flag
    again.stop()
    assert dc.Ledger(ledger).verify()


def test_a_folder_that_two_have_is_written_by_one(tmp_path: Path) -> None:
    """The same folder: the store refuses the one before, whose state files have names of their own."""
    first = Running(tmp_path / "data", VISITS).start()
    first.pass_ticks()
    second = Service(first.configuration, first.folder, first.clock, take_over=True)
    with pytest.raises(TakenOverError), first.service.store.writing():
        pass
    assert not first.service._has_folder()
    first.clock.now += 60
    catch_up(second)
    first.service.streams["visits"]._save(1, 2)  # type: ignore[attr-defined]
    second.stop()
    third = Service(first.configuration, first.folder, first.clock)
    assert third.streams["visits"].tick == 2
    third.stop()
    first.stop()


TOML = """
[streams.visits]
kind = "count"
tick = "1s"
horizon = "12h"
epsilon = 1.0
delta = 1e-6
public = true

[service]
ledger = "%s"
"""


@pytest.mark.parametrize("shared", [True, False], ids=["one folder", "a copy"])
def test_two_processes(tmp_path: Path, spawn: Any, ledger_path: Any, shared: bool) -> None:
    """The first is stopped, the second takes over, the first wakes up: it ends, and every tick has one version."""
    (tmp_path / "streams.toml").write_text(TOML % ledger_path)

    def start(folder: str, *more: str) -> Any:
        run = [sys.executable, "-c", "import discreet.cli; discreet.cli.main()", "service", "run"]
        return spawn(
            [*run, tmp_path / "streams.toml", "--data", tmp_path / folder, "--port", 0, *more],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_for(ticks: int) -> None:
        until = time.monotonic() + 60
        while len(steps_of(ledger_path, "visits")) < ticks:
            assert time.monotonic() < until
            time.sleep(0.1)

    first = start("data")
    while "serving at" not in first.stderr.readline():
        assert first.poll() is None
    wait_for(2)
    first.send_signal(signal.SIGSTOP)
    folder = "data" if shared else "standby"
    if not shared:
        shutil.copytree(tmp_path / "data", tmp_path / "standby")
    second = start(folder, "--take-over")
    while "serving at" not in second.stderr.readline():
        assert second.poll() is None
    first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=60) == 1
    known = len(steps_of(ledger_path, "visits"))
    wait_for(known + 2)
    second.send_signal(signal.SIGTERM)
    assert second.wait(timeout=60) == 0
    store = Store(tmp_path / folder)
    published = [release["tick"] for release in all_releases(store, "visits")]
    store.close()
    assert published == list(range(1, len(published) + 1))
    assert len(steps_of(ledger_path, "visits")) == len(published)
    if not shared:  # the service manager starts the old one again
        again = start("data")
        assert again.wait(timeout=60) == 1
        assert "was taken over by" in again.stderr.read()
