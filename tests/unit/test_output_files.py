"""Files that appear whole or not at all."""

import fcntl
import fnmatch
import glob
import os
import stat
import subprocess
import sys

import pytest

import discreet as dc
from discreet.storage import AtomicFile


def test_nothing_appears_unless_it_is_published(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("old")
    with AtomicFile(path) as file:
        file.temporary.write_text("half")
        assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]
    with pytest.raises(dc.DiscreetError, match="No such file"), AtomicFile(path) as file:
        file.fill(lambda temporary: temporary.rename(tmp_path / "missing" / "directory"))
    assert path.read_text() == "old"
    with AtomicFile(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_place_that_cannot_be_written_is_noticed_at_once(tmp_path):
    for path in (tmp_path / "missing" / "out.json", tmp_path, tmp_path / "file" / "out.json"):
        (tmp_path / "file").touch()
        with pytest.raises(dc.DiscreetError, match="the output") as caught:
            AtomicFile(path)
        assert not isinstance(caught.value, dc.ParameterError)  # exit code 1: an output could not be written


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    target = tmp_path / "elsewhere" / "out.json"
    target.parent.mkdir()
    link = tmp_path / "out.json"
    link.symlink_to(target)
    for text in (b"new", b"newer"):
        with AtomicFile(link) as file:
            file.write(text)
        assert link.is_symlink()
        assert target.read_bytes() == text
    assert os.listdir(target.parent) == ["out.json"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with AtomicFile(pipe) as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


def test_no_pattern_for_data_finds_a_file_that_is_not_complete(tmp_path):
    """One that a kill left had the ending of its final name, and was taken for an empty file of data."""
    for name in ("top.parquet", "top.csv", "top.json", "top"):
        with AtomicFile(tmp_path / name) as file:
            (left,) = os.listdir(tmp_path)
            assert not any(fnmatch.fnmatch(left, f"*{ending}") for ending in (".parquet", ".csv", ".json", ".jsonl"))
            assert not glob.glob(str(tmp_path / "*"))  # hidden
            assert stat.S_IMODE(file.temporary.stat().st_mode) == 0o600
            file.temporary.write_bytes(b"half")
            assert stat.S_IMODE(file.temporary.stat().st_mode) == 0o600
            file.write(b"whole")
        assert os.listdir(tmp_path) == [name]
        os.unlink(tmp_path / name)


def test_a_complete_file_has_the_mode_of_any_other(tmp_path):
    before = os.umask(0o027)
    try:
        with AtomicFile(tmp_path / "out") as file:
            file.write(b"whole")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path):
    script = f"""
import os, pathlib
from discreet.storage import AtomicFile
AtomicFile(pathlib.Path({str(tmp_path)!r}) / "top-1.parquet")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".discreet-")
    assert left.endswith(".tmp")
    with AtomicFile(tmp_path / "top-2.parquet") as file:
        assert os.listdir(tmp_path) == [file.temporary.name]
        file.write(b"whole")
    assert os.listdir(tmp_path) == ["top-2.parquet"]


def test_what_others_are_writing_and_what_is_not_ours_stays(tmp_path):
    foreign = [".discreet-notes.tmp", ".discreet-0123456789abcdef.tmp.bak", "discreet-0123456789abcdef.tmp"]
    for name in foreign:
        (tmp_path / name).touch()
    (tmp_path / ".discreet-00000000000000aa.tmp").mkdir()
    os.mkfifo(tmp_path / ".discreet-00000000000000bb.tmp")
    (tmp_path / ".discreet-00000000000000cc.tmp").symlink_to(tmp_path / foreign[0])
    with AtomicFile(tmp_path / "one") as one:
        with AtomicFile(tmp_path / "two") as two:
            assert one.temporary.exists()
            two.write(b"2")
        one.write(b"1")
    kept = {".discreet-00000000000000aa.tmp", ".discreet-00000000000000bb.tmp", ".discreet-00000000000000cc.tmp"}
    assert set(os.listdir(tmp_path)) == {*foreign, *kept, "one", "two"}


def test_one_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Another process may take a file for left between its making and its lock."""
    flock, taken = fcntl.flock, []

    def too_late(file, how):
        if not taken:
            (name,) = os.listdir(tmp_path)
            os.unlink(tmp_path / name)
            taken.append(name)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with AtomicFile(tmp_path / "out") as file:
        assert file.temporary.name not in taken
        file.write(b"whole")
    assert os.listdir(tmp_path) == ["out"]


def test_only_a_full_disk_may_be_tried_again(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(dc.TryAgainError), AtomicFile(tmp_path / "full") as file:
        file.write(b"x")
    with pytest.raises(dc.DiscreetError) as caught:
        AtomicFile(tmp_path / "missing" / "out")
    assert not isinstance(caught.value, dc.TryAgainError)


def test_a_device_that_is_full_is_named_and_stays(tmp_path):
    """Through a link: a program that replaces devices by files would destroy one of the machine's."""
    path = tmp_path / "out.txt"
    path.symlink_to("/dev/full")
    with pytest.raises(dc.DiscreetError, match=r"out\.txt' cannot be written: No space"), AtomicFile(path) as file:
        file.write(b"x")
    assert path.is_symlink()
    assert path.is_char_device()
