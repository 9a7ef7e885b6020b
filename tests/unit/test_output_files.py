"""Files that appear whole or not at all."""

import os

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


def test_a_device_that_is_full_is_named_and_stays(tmp_path):
    """Through a link: a program that replaces devices by files would destroy one of the machine's."""
    path = tmp_path / "out.txt"
    path.symlink_to("/dev/full")
    with pytest.raises(dc.DiscreetError, match=r"out\.txt' cannot be written: No space"), AtomicFile(path) as file:
        file.write(b"x")
    assert path.is_symlink()
    assert path.is_char_device()
