"""Folders for what does not fit in memory: for their owner alone, and removed if nobody holds them any more."""

import os
import tempfile

import pytest

from discreet.engines import private_folder
from discreet.engines.private_folder import PrivateFolder, remove_left_over


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(folders):
    return sorted(path.name for path in folders.iterdir())


def test_only_its_owner_may_look(folders):
    made = PrivateFolder()
    assert made.path.parent == folders
    assert made.path.stat().st_mode & 0o077 == 0
    (made.path / "0").write_bytes(b"x")
    made.remove()
    assert left(folders) == []
    made.remove()


def test_a_folder_that_somebody_holds_stays(folders):
    first, second = PrivateFolder(), PrivateFolder()
    remove_left_over()
    assert left(folders) == sorted([first.path.name, second.path.name])
    first.remove()
    remove_left_over()
    assert left(folders) == [second.path.name]
    second.remove()


def test_a_folder_that_nobody_holds_goes_with_what_is_in_it(folders):
    (folders / "discreet-people-old" / "inside").mkdir(parents=True)
    (folders / "discreet-people-old" / "0").write_bytes(b"x")
    (folders / "other").mkdir()
    remove_left_over()
    assert left(folders) == ["other"]
    remove_left_over()


def test_a_folder_of_somebody_else_stays(folders, monkeypatch):
    (folders / "discreet-people-old").mkdir()
    uid = os.getuid()
    monkeypatch.setattr(private_folder.os, "getuid", lambda: uid + 1)
    remove_left_over()
    assert left(folders) == ["discreet-people-old"]


def test_a_folder_that_another_process_took_for_left_over_is_made_anew(folders, monkeypatch):
    """Between its making and its lock."""
    lock, taken = private_folder._locked, []

    def slow(path):
        found = lock(path)
        if not taken:
            taken.append(path)
            path.rmdir()
        return found

    monkeypatch.setattr(private_folder, "_locked", slow)
    made = PrivateFolder()
    assert made.path.exists()
    assert made.path != taken[0]
    made.remove()
    assert left(folders) == []
