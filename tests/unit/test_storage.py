"""States and files: which versions are read, and what is synced, so that it outlasts a power cut.

The bytes come first, then the name, then the folder. A kill does not show it, for the system still has what was
written. So the calls are recorded.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from pathlib import Path

import pytest

import discreet as dc
from discreet.storage import AtomicFile, lock_file, locked, open_state, seal_state, write_error


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


def test_a_file_of_the_service_is_whole_however_little_is_written_at_once(tmp_path, monkeypatch):
    """As on a disk that is nearly full, or of more than 2 GiB: a write says how much it wrote."""
    folder = pytest.importorskip("discreet.service.folder")
    plain = os.write
    monkeypatch.setattr(os, "write", lambda file, data: plain(file, bytes(data)[:7]))
    folder.write_file(tmp_path / "1-0.state", bytes(range(200)))
    monkeypatch.undo()
    assert (tmp_path / "1-0.state").read_bytes() == bytes(range(200))


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


def test_a_state_with_two_names_is_not_used(tmp_path):
    with locked(tmp_path / "state") as state:
        state.replace(b"first")
    os.link(tmp_path / "state", tmp_path / "copy")
    with pytest.raises(dc.DiscreetError, match="has 2 names"), locked(tmp_path / "state"):
        pass
    os.unlink(tmp_path / "copy")
    with locked(tmp_path / "state") as state:
        assert state.read() == b"first"
        os.link(tmp_path / "state", tmp_path / "copy")
        with pytest.raises(dc.DiscreetError, match="has 2 names"):
            state.replace(b"second")
    assert (tmp_path / "state").read_bytes() == b"first"


def test_a_state_is_a_file_in_a_folder_that_is_there(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(dc.ParameterError, match="is not a file"), locked(tmp_path / "pipe"):
        pass
    for wrong in (tmp_path, tmp_path / "nothing" / "state"):
        with pytest.raises(dc.ParameterError, match="cannot be written"), locked(wrong):
            pass


def test_a_state_that_another_made_meanwhile_is_not_overwritten(tmp_path):
    with locked(tmp_path / "state") as state:
        assert not state.exists
        assert state.read() == b""
        (tmp_path / "state").write_bytes(b"another's")
        with pytest.raises(dc.DiscreetError, match="another process made the state"):
            state.replace(b"mine")
    assert (tmp_path / "state").read_bytes() == b"another's"


def test_one_at_a_time_has_a_state(tmp_path):
    with locked(tmp_path / "state") as state:
        state.replace(b"first")
        with pytest.raises(dc.errors.TryAgainError, match=r"another process is using the state .*state'$"):
            locked(tmp_path / "state").__enter__()
        with pytest.raises(dc.errors.TryAgainError, match=r"for 0.05 s and longer"):
            locked(tmp_path / "state", wait_seconds=0.05).__enter__()
        assert state.exists
    with locked(tmp_path / "state") as state:
        assert state.read() == b"first"


def test_a_state_is_in_use_as_long_as_it_is_also_when_its_lock_file_is_deleted(tmp_path):
    """Somebody cleans up: the state itself is locked, too, the one that was read as the one that was written last."""
    with locked(tmp_path / "state") as state:
        state.replace(b"first")
    with locked(tmp_path / "state") as state:
        for written in (b"", b"second", b"third"):
            if written:
                state.replace(written)
            (tmp_path / "state.lock").unlink()
            with pytest.raises(dc.errors.TryAgainError, match="another process is using the state"):
                locked(tmp_path / "state").__enter__()


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_lock_on_a_file_that_was_deleted_is_none(tmp_path, monkeypatch, made_anew):
    """Between the opening of a lock file and the lock somebody may delete it: the next one would lock another file."""
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    lock, real = tmp_path / "lock", fcntl.flock

    def late(file, how):
        lock.unlink()
        if made_anew:
            lock.touch()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert lock_file("lock", folder) is None
    monkeypatch.undo()
    held = lock_file("lock", folder)
    assert held is not None
    assert lock_file("lock", folder) is None
    os.close(held)
    os.close(folder)


def test_an_old_state_is_zeroed_if_asked_and_a_new_one_is_for_its_owner(tmp_path):
    with locked(tmp_path / "state") as state:
        state.replace(b"secret")
        for erase, expected in ((False, b"secret"), (True, bytes(5))):
            with (tmp_path / "state").open("rb") as before:
                state.replace(b"other", erase=erase)
                assert before.read() == expected
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_what_a_kill_left_under_the_temporary_name_is_removed(tmp_path):
    (tmp_path / ".state.discreet-new").write_bytes(b"half")
    with locked(tmp_path / "state") as state:
        assert not (tmp_path / ".state.discreet-new").exists()
        state.replace(b"first")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "state.lock"]


def test_only_files_that_were_left_are_removed_beside_an_output(tmp_path):
    left, others = tmp_path / f".discreet-{'a' * 16}.tmp", [".discreet-notes.tmp", f".discreet-{'a' * 17}.tmp", "a.tmp"]
    for name in (left.name, *others):
        (tmp_path / name).write_bytes(b"x")
    with AtomicFile(tmp_path / "other.json") as living, AtomicFile(tmp_path / "out.json") as file:
        assert not left.exists()
        file.write(b"{}")
        assert living.temporary.exists()
        living.write(b"[]")
    kept = {"out.json", "other.json", *others}
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert (tmp_path / "out.json").read_bytes() == b"{}"


def test_a_folder_that_is_not_there_leaves_no_name_behind(tmp_path):
    with pytest.raises(dc.DiscreetError, match="cannot be written"):
        AtomicFile(tmp_path / "missing" / "out.json")
    assert not AtomicFile.left


def test_a_file_that_an_interrupt_leaves_is_known(tmp_path, monkeypatch):
    """The command removes it at its end. An interrupt is no Exception, and comes between making and locking, too."""

    def interrupted(file, how):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.storage.fcntl.flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        AtomicFile(tmp_path / "out.json")
    assert set(tmp_path.iterdir()) == AtomicFile.left != set()
    AtomicFile.left.clear()


def test_an_output_that_is_not_written_leaves_the_older_one(tmp_path):
    (tmp_path / "out.json").write_bytes(b"older")
    with AtomicFile(tmp_path / "out.json"):
        pass
    assert (tmp_path / "out.json").read_bytes() == b"older"
    assert not AtomicFile.left
    with pytest.raises(dc.DiscreetError, match="is a directory"):
        AtomicFile(tmp_path)
    with pytest.raises(dc.DiscreetError, match=r"the output .* cannot be written"):
        AtomicFile(tmp_path / "nothing" / "out.json")


def test_an_output_may_be_read_as_the_mask_says(tmp_path):
    before = os.umask(0o027)
    try:
        with AtomicFile(tmp_path / "out.json") as file:
            assert file.temporary.stat().st_mode & 0o777 == 0o600
            file.write(b"{}")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o640


def test_an_envelope_is_of_one_family_and_is_bytes():
    sealed = seal_state(150, 1, b"a", b"bc")
    assert open_state(bytearray(sealed), 150, 1) == (1, b"abc")
    with pytest.raises(dc.CorruptStateError, match="belongs to another class"):
        open_state(sealed, 151, 1)
    with pytest.raises(dc.CorruptStateError, match="has version 1; this program reads version 2"):
        open_state(sealed, 150, 2)
    with pytest.raises(dc.ParameterError, match="a state is bytes, not str"):
        open_state(sealed.decode("latin-1"), 150, 1)


def test_no_two_kinds_of_states_or_messages_have_one_number():
    """It tells the bytes of one class from those of another. Two streams share 35: their bytes name the round, too."""
    given = re.compile(r"^ *(?:[A-Z_]*FAMILY|family)(?:: ClassVar\[int\])? = (\d+)$", re.MULTILINE)
    found = [number for path in Path(dc.__file__).parent.rglob("*.py") for number in given.findall(path.read_text())]
    assert len(found) > 20
    assert sorted(found) == sorted([*set(found), "35"])


def test_a_full_disk_may_have_room_later():
    for number, kind in ((errno.ENOSPC, dc.errors.TryAgainError), (errno.EDQUOT, dc.errors.TryAgainError)):
        assert type(write_error("the state", OSError(number, "full"))) is kind
    refused = write_error("the state", OSError(errno.EACCES, "denied"))
    assert (type(refused), str(refused)) == (dc.DiscreetError, "the state cannot be written: denied")
