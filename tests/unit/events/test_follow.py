"""Following a file through rotations and restarts: every byte once, in order."""

import os
import random
import shutil
import threading

import pytest

import discreet as dc
from discreet.events.live_input import Followed, follow


class Reader:
    """Reads what is there, remembers it, and can be started again from any earlier position."""

    def __init__(self, path):
        self.path, self.remarks, self.text = path, [], b""
        self.kept = 0  # the last position that was saved
        self.start(0, None)

    def start(self, position, saved):
        self.source = follow(str(self.path), self.remarks.append)
        self.source.open(position, saved)
        self.text = self.text[:position]

    def look(self):
        while True:
            turned = self.source.look()
            while piece := self.source.read(7):
                self.text += piece
            if turned is None and not self.source.more():
                return self.text

    def restart(self, position=None):
        position = len(self.text) if position is None else position
        saved, self.kept = self.source.saved(position), position
        self.source.close()
        self.start(position, saved)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.log"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_that_is_moved_aside(path, restarted):
    append(path, b"one\ntwo\n")
    reader = Reader(path)
    assert reader.look() == b"one\ntwo\n"
    append(path, b"three\n")
    os.rename(path, path.with_name("rows.log.1"))
    append(path, b"four\n")
    if restarted:
        reader.restart()
    assert reader.look() == b"one\ntwo\nthree\nfour\n"
    append(path, b"five\n")
    assert reader.look() == b"one\ntwo\nthree\nfour\nfive\n"
    assert not reader.remarks


def test_between_two_files_it_waits_for_the_writer(path):
    append(path, b"one\n")
    reader = Reader(path)
    reader.look()
    with path.open("ab") as writer:
        os.rename(path, path.with_name("other"))
        assert reader.look() == b"one\n"
        path.touch()
        writer.write(b"two\n")  # the writer has not taken the new file yet
        writer.flush()
        assert reader.look() == b"one\ntwo\n"
    append(path, b"three\n")
    assert reader.look() == b"one\ntwo\nthree\n"


def test_a_file_that_is_moved_aside_as_soon_as_it_is_seen(path, monkeypatch):
    """There when it was looked for, and gone when it is opened: the next one is waited for."""
    append(path, b"one\n")
    reader = Reader(path)
    reader.look()
    os.rename(path, path.with_name("first"))
    append(path, b"two\n")
    opened = os.open

    def too_late(name, *how):
        os.rename(path, path.with_name("second"))
        monkeypatch.undo()
        return opened(name, *how)

    monkeypatch.setattr(os, "open", too_late)
    assert reader.source.look() is None
    os.rename(path.with_name("second"), path)
    assert reader.look() == b"one\ntwo\n"


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("copied", [False, True])
def test_a_file_that_is_emptied(path, restarted, copied):
    append(path, b"one\ntwo\nthree\n")
    reader = Reader(path)
    reader.look()
    append(path, b"unseen\n")
    if copied:
        shutil.copy(path, path.with_name("rows.log.1"))
    os.truncate(path, 0)
    append(path, b"four\n" * 10)  # longer than what was there
    if restarted:
        reader.restart()
    unseen = b"unseen\n" if copied else b""
    assert reader.look() == b"one\ntwo\nthree\n" + unseen + b"four\n" * 10
    assert bool(reader.remarks) is not copied
    assert all("three" not in remark for remark in reader.remarks)


def test_a_state_that_does_not_know_the_file(path):
    append(path, b"one\ntwo\n")
    reader = Reader(path)
    reader.look()
    reader.start(4, None)
    reader.text = b"one\n"
    assert reader.look() == b"one\ntwo\n"
    reader.start(100, None)  # emptied since
    assert reader.look().endswith(b"one\ntwo\n")
    assert reader.remarks
    for wrong in ([{}], [{"start": 0}], "x", [1], [{"start": "0", "device": 0, "inode": 0, "head": "", "length": 0}]):
        with pytest.raises(dc.CorruptStateError):
            Followed(str(path), print).open(4, wrong)


def test_random_rotations_and_restarts(tmp_path):
    for seed in range(150):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = folder / "rows.log"
        written, count = b"", 0
        append(path, b"")
        reader = Reader(path)
        for _ in range(30):
            action = chance.random()
            if action < 0.5:
                count += 1
                data = f"{seed} row {count}\n".encode() * chance.choice([1, 3, 600])
                append(path, data)
                written += data
            elif action < 0.7:
                assert reader.look() == written
            elif action < 0.85 and path.stat().st_size:
                assert reader.look() == written  # one rotation between two looks is what is promised
                count += 1
                os.rename(path, folder / f"rows.log.{count}")
                append(path, b"")
            else:
                # What is read again begins where a tick ended, perhaps in an older file that is still there.
                position = len(reader.text) if chance.random() < 0.5 else chance.randint(reader.kept, len(reader.text))
                reader.restart(position)
        assert reader.look() == written, seed
        assert not reader.remarks


KNOWN = {"start": 0, "device": 1, "inode": 2, "head": "x", "length": 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": -1}, {"start": True}, {"start": 1.0}, {"inode": "2"}, {"length": None}, {"more": 1}, {"start": 9},
        {"device": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_a_state_that_says_nothing_of_the_files_is_refused(path, wrong):
    append(path, b"one\ntwo\n")
    with pytest.raises(dc.CorruptStateError, match="does not say which files were read"):
        Followed(str(path), pytest.fail).open(4, [KNOWN | wrong])


def test_of_a_few_bytes_nobody_knows_a_copy(path):
    """What is shorter than its beginning may begin like any other file."""
    append(path, b"one\n")
    reader = Reader(path)
    reader.look()
    append(path, b"unseen\n")
    path.with_name("rows.log.backup").write_bytes(b"other\n")  # as long as what was read, and not that
    os.truncate(path, 0)
    append(path, b"two\n" * 9)
    assert reader.look() == b"one\n" + b"two\n" * 9
    assert len(reader.remarks) == 1


def test_a_pipe_beside_a_file_is_not_waited_for(path):
    """The directory is looked through for what was moved aside; nobody may ever write to a pipe that is there."""
    append(path, b"one\n")
    reader = Reader(path)
    reader.look()
    pipe = path.with_name("rows.log.pipe")
    os.mkfifo(pipe)
    os.truncate(path, 0)
    append(path, b"two\n" * 9)
    looking = threading.Thread(target=reader.look, daemon=True)
    looking.start()
    looking.join(60)
    waits = looking.is_alive()
    if waits:  # and would for ever
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    assert not waits
    assert reader.text == b"one\n" + b"two\n" * 9


def test_a_shorter_file_of_the_same_inode_is_not_the_one_that_was_read(path):
    """Emptied while nothing was open, with the same bytes at its start: what is there is read from its start."""
    append(path, b"head\n" * 2000)
    reader = Reader(path)
    reader.look()
    position, saved = len(reader.text), reader.source.saved(len(reader.text))
    reader.source.close()
    os.truncate(path, 5000)
    remarks = []
    source = follow(str(path), remarks.append)
    source.open(position, saved)
    source.look()
    assert source.read(1 << 20) == b"head\n" * 1000
    assert len(remarks) == 1
    source.close()


def test_a_file_that_rotates_for_months_keeps_one_file_open(path):
    append(path, b"0\n")
    reader = Reader(path)
    reader.look()
    held = len(os.listdir("/proc/self/fd"))
    for number in range(1, 20):
        os.rename(path, path.with_name(f"rows.log.{number}"))
        append(path, b"%d\n" % number)
        reader.look()
        if number % 5 == 0:
            os.truncate(path, 0)
            append(path, b"emptied\n")
            reader.look()
    assert len(os.listdir("/proc/self/fd")) == held
    reader.source.close()
    assert len(os.listdir("/proc/self/fd")) == held - 1
    reader.source.close()


# ---- pipes -----------------------------------------------------------------------------------------------------------


def test_a_pipe_is_read_as_it_comes_and_ends_with_its_writer(path):
    """Nothing waits for it: a tick may end meanwhile."""
    os.mkfifo(path)
    opening = os.open(path, os.O_RDWR)  # so that neither end waits for the other
    source = follow(str(path), pytest.fail)
    source.open(7, None)
    try:
        assert source.look() is None
        assert source.read(100) == b""
        os.write(opening, b"one\ntwo\n")
        assert source.read(100) == b"one\ntwo\n"
        assert (source.before(), source.beginning(9), source.saved(3), source.more()) == (b"", b"", None, False)
        assert not source.ended
        os.write(opening, b"x" * 10)
        source.wait(60)  # no longer than until something is there
        assert source.read(4) == b"xxxx"
        os.close(opening)
        opening = -1
        assert source.read(100) == b"xxxxxx"
        assert source.read(100) == b""
        assert source.ended
    finally:
        if opening >= 0:
            os.close(opening)
        source.close()


def test_what_is_not_there_cannot_be_followed(path):
    with pytest.raises(dc.ParameterError, match=r"rows\.log' cannot be opened: No such file or directory"):
        follow(str(path), pytest.fail)


def test_a_file_that_was_read_before_a_restart_and_is_gone_since(path):
    """Of several files that a state knows, the rest of what is gone is said to be, and the others are read."""
    append(path, b"one\n" * 2000)
    reader = Reader(path)
    reader.look()
    for number in (1, 2):
        os.rename(path, path.with_name(f"rows.log.{number}"))
        append(path, b"%d\n" % number * 3000)
        reader.look()
    whole, position = reader.text, 4
    saved = reader.source.saved(position)
    assert len(saved) == 3
    reader.source.close()
    path.with_name("rows.log.2").unlink()  # the second of the three
    remarks = []
    again = follow(str(path), remarks.append)
    again.open(position, saved)
    found = b""
    for _ in range(9):
        again.look()
        while piece := again.read(1 << 16):
            found += piece
    again.close()
    assert found == whole[4:8000] + b"2\n" * 3000
    assert len(remarks) == 1
