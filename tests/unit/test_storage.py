"""States and files: which versions are read, and what is synced, so that it outlasts a power cut.

The bytes come first, then the name, then the folder. A kill does not show it, for the system still has what was
written. So the calls are recorded.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import discreet as dc
from discreet.storage import AtomicFile, locked, open_state, seal_state


@pytest.fixture
def calls(monkeypatch):
    """(call, name of what it was about) of every call that syncs or names a file."""
    made = []

    def noted(name, of):
        true = getattr(os, name)

        def call(*arguments, **more):
            made.append((name, of(*arguments)))
            return true(*arguments, **more)

        monkeypatch.setattr(os, name, call)

    def opened(file):
        path = os.readlink(f"/proc/self/fd/{file}")
        return "folder" if os.path.isdir(path) else "file"

    for name in ("fsync", "fdatasync"):
        noted(name, opened)
    for name in ("rename", "replace", "link"):
        noted(name, lambda old, new, **_: Path(new).name)
    return made


def test_a_state(calls, tmp_path):
    with locked(tmp_path / "state") as state:
        state.replace(b"first")
    named = calls.index(("rename", "state"))
    assert ("fsync", "file") in calls[:named]
    assert ("fsync", "folder") in calls[named:]


def test_an_output(calls, tmp_path):
    with AtomicFile(tmp_path / "out.json") as file:
        file.write(b"{}")
    assert ("fsync", "file") in calls[: calls.index(("replace", "out.json"))]


def test_a_new_ledger(calls, tmp_path):
    dc.Ledger(tmp_path / "ledger.sqlite").grant("a", dc.Budget(1.0))
    assert ("fsync", "folder") in calls


def test_events_that_wait_in_the_service(calls, tmp_path, monkeypatch):
    spool = pytest.importorskip("discreet.service.event_spool")
    monkeypatch.setattr(spool, "_to_disk", os.fdatasync)
    made = spool.EventSpool(tmp_path / "spool")
    calls.clear()
    made.append(1, [spool.packed(spool.Record(1, b"x"))])
    assert calls == [("fsync", "folder"), ("fdatasync", "file")]
    made.append(1, [spool.packed(spool.Record(1, b"y"))])
    assert calls[2:] == [("fdatasync", "file")]
    made.close()


def test_a_file_of_the_service(calls, tmp_path):
    folder = pytest.importorskip("discreet.service.folder")
    folder.write_file(tmp_path / "visitors.key", b"key")
    assert calls == [("fsync", "file"), ("rename", "visitors.key"), ("fsync", "folder")]


def test_versions_between_the_oldest_and_the_newest_are_read():
    for version in (1, 2, 3, 4):
        sealed = seal_state(150, version, b"x")
        if version in (2, 3):
            assert open_state(sealed, 150, 3, oldest=2) == (version, b"x")
        else:
            with pytest.raises(dc.CorruptStateError, match="reads versions 2 to 3"):
                open_state(sealed, 150, 3, oldest=2)


def test_a_state_that_another_file_took_the_place_of_is_not_written(tmp_path):
    """A copy that was put back meanwhile: what is drawn from here on must not lie beside what is drawn from that."""
    state, other = tmp_path / "state", tmp_path / "other"
    with locked(state) as kept:
        kept.replace(b"first")
    with locked(state) as kept:
        other.write_bytes(b"a copy")
        os.replace(other, state)
        with pytest.raises(dc.DiscreetError, match="moved or replaced by another process; nothing was written"):
            kept.replace(b"second")
    assert state.read_bytes() == b"a copy"
