"""Messages of a stream's party in a ledger: a copy of its state sends no second version of a message."""

import pytest

import discreet as dc
from discreet import _native
from discreet.errors import OldStateError

STREAM = dc.multiparty.Stream("s", dc.Budget(1.0), universe=10, epoch_steps=1, horizon=64, columns=4)


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(2.0))
    return ledger.account("rows")


def test_a_copy_is_refused_before_anything_is_drawn(account):
    party = STREAM.party(3, ledger=account)
    fresh = party.to_bytes()
    party.feed([1, 2])
    old = party.to_bytes()
    sent = party.feed([3])
    with pytest.raises(OldStateError, match="sent 1 messages, but 2 were sent"):
        STREAM.restore_party(old, ledger=account)
    with pytest.raises(OldStateError, match="another party"):
        STREAM.restore_party(fresh, ledger=account).feed([3])
    with pytest.raises(OldStateError):
        STREAM.party(3, ledger=account).feed([3])
    again = STREAM.restore_party(party.to_bytes(), ledger=account)
    assert again.last_message == sent
    assert again.feed([4]) is not None
    assert [event.kind for event in account.history()].count("charge") == 1
    with pytest.raises(dc.ParameterError, match="a ledger knows the steps of this state"):
        STREAM.restore_party(again.to_bytes())


def test_of_two_copies_that_race_one_sends(account):
    party = STREAM.party(3, ledger=account)
    party.feed([1])
    twin = STREAM.restore_party(party.to_bytes(), ledger=account)
    with pytest.raises(OldStateError):
        twin.feed_until([2], None, save=lambda: party.feed([2]))
    with pytest.raises(OldStateError):
        _ = twin.last_message
    with pytest.raises(OldStateError):
        STREAM.restore_party(twin.to_bytes(), ledger=account)
    assert STREAM.restore_party(party.to_bytes(), ledger=account).time == 2


def test_a_message_that_was_saved_and_not_registered_is_registered_later(account):
    party, kept = STREAM.party(3, ledger=account), []

    def crash():
        kept.append(party.to_bytes())
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError):
        party.feed_until([1], None, save=crash)
    assert account.last_step(party.charge_id) is None
    again = STREAM.restore_party(kept[0], ledger=account)
    assert account.last_step(party.charge_id).payload == again.last_message
    assert again.feed([2]) is not None


def test_another_ledger_is_refused(account, tmp_path):
    """A copy of the state could send the next message a second time under it."""
    party = STREAM.party(3, ledger=account)
    party.feed([1])
    other = dc.Ledger(tmp_path / "other.sqlite")
    other.grant("rows", dc.Budget(1.0))
    with pytest.raises(dc.LedgerError, match="another ledger"):
        STREAM.restore_party(party.to_bytes(), ledger=other.account("rows"))
    with pytest.raises(dc.ParameterError, match="a ledger knows the steps of this state"):
        STREAM.restore_party(party.to_bytes())
    assert other.account("rows").spent().epsilon == 0
    STREAM.restore_party(party.to_bytes(), ledger=account).feed([2])


def test_a_state_says_what_it_is_a_state_of():
    """By a number that stays: states that were stored are read by it."""
    assert _native.open_state(STREAM.party(3).to_bytes())[:2] == (201, 1)
