"""A host remembers the last event that it saw of a ledger elsewhere, and refuses one that has forgotten it."""

import json
from types import SimpleNamespace

import pytest

from discreet.errors import LedgerError
from discreet.privacy.ledger.witness import Witness


def log(*digests):
    """A log of these events."""
    has = lambda seq, digest: 0 < seq <= len(digests) and digests[seq - 1] == digest  # noqa: E731
    return SimpleNamespace(end=(len(digests), digests[-1] if digests else ""), has=has)


@pytest.fixture
def witness(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    return lambda place="here": Witness(place)


def test_what_was_seen_is_kept_in_a_file_of_its_user(witness, tmp_path):
    one = witness()
    one.check(log())
    one.saw(log("a", "b"))
    assert one.file.is_relative_to(tmp_path / "home" / "state" / "discreet" / "ledgers")
    assert one.file.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(one.file.read_text()) == {"place": "here", "seq": 2, "digest": "b"}
    assert [path.name for path in one.file.parent.iterdir()] == [one.file.name]
    assert witness("there").file != one.file


def test_a_log_that_goes_on_is_taken_and_one_that_lost_its_end_is_not(witness):
    witness().saw(log("a", "b"))
    for goes_on in (log("a", "b"), log("a", "b", "c")):
        witness().check(goes_on)
    for lost in (log(), log("a"), log("a", "x"), log("a", "x", "c")):
        with pytest.raises(LedgerError, match="has lost events: this host saw its event 2"):
            witness().check(lost)
    witness("there").check(log())


def test_memory_and_file_both_count_and_the_file_never_goes_back(witness):
    one, other = witness(), witness()
    one.saw(log("a"))
    other.saw(log("a", "b"))
    one.saw(log("a"))
    assert json.loads(one.file.read_text())["seq"] == 2
    with pytest.raises(LedgerError, match="saw its event 2"):
        one.check(log("a"))
    one.file.unlink()
    one.check(log("a"))
    with pytest.raises(LedgerError, match="saw its event 2"):
        other.check(log("a"))


def test_a_file_that_cannot_be_read_or_written_is_done_without(witness):
    one = witness()
    one.file.parent.mkdir(parents=True)
    for broken in ("", "[]", '{"seq": "x", "digest": "y"}', '{"seq": 1}'):
        one.file.write_text(broken)
        one.check(log())
    one.file.unlink()
    one.file.mkdir()
    one.saw(log("a"))
    with pytest.raises(LedgerError):
        one.check(log())


def test_who_saw_less_does_not_put_back_what_another_process_saw(witness):
    """Both wrote an event, and the first is late in saying so: only the file knows of the last one."""
    late, other = witness(), witness()
    other.saw(log("a", "b", "c", "d"))
    for less in (log("a"), log("a", "b"), log("a", "b", "c")):
        late.saw(less)
        assert json.loads(late.file.read_text()) == {"place": "here", "seq": 4, "digest": "d"}
    with pytest.raises(LedgerError, match="saw its event 4"):
        witness().check(log("a", "b", "c"))
    late.saw(log("a", "b", "c", "d", "e"))
    assert json.loads(late.file.read_text())["seq"] == 5
