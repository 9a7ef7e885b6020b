"""Accounts that are moved to another ledger, in every store: open in one place at most, and nothing is lost."""

import pytest

import discreet as dc
from discreet.privacy.ledger import transfer
from discreet.privacy.ledger.event_log import MOVED_VERSION, LogWriter
from discreet.privacy.steps import Steps


@pytest.fixture
def old(tmp_path):
    """A release, a stream of two steps, a bare charge; and another account."""
    ledger = dc.Ledger(tmp_path / "old.sqlite")
    ledger.grant("clicks", dc.Budget(1.0))
    ledger.grant("searches", dc.Budget(4.0, 1e-7), accounting="zcdp", approver="A. Lovelace")
    account = ledger.account("searches")
    account.begin("monday", dc.Budget(0.5, 1e-9))
    account.store("monday", b"release")
    account.begin("stream", dc.Budget(0.5, 1e-9))
    account.store_step("stream", 1, "one", b"first", previous=None)
    account.store_step("stream", 2, "two", b"second", previous="one")
    account.charge(dc.Budget(0.1), "bare")
    return ledger


@pytest.fixture
def new(ledger_path):
    ledger = dc.Ledger(ledger_path)
    ledger.grant("visits", dc.Budget(1.0))
    return ledger


def said(ledger):
    return [(event.at, event.kind, event.charge_id, event.details) for event in ledger.history("searches")]


def test_an_account_arrives_as_it_was(old, new):
    before, statement = said(old), old.account("searches").statement()
    state = Steps("stream", 2, "two", "one", old.account("searches").ledger_identity)
    assert transfer.move("searches", old, new) == len(before)
    assert said(new)[:-1] == before
    # A program that knows nothing of moved accounts refuses both ledgers: to it the old one would be open still.
    assert [ledger.history("searches")[-1].version for ledger in (old, new)] == [MOVED_VERSION] * 2
    account = new.account("searches")
    after = account.statement()
    assert (after.spent, after.remaining, after.charges) == (statement.spent, statement.remaining, statement.charges)
    assert account.begin("monday", dc.Budget(0.5, 1e-9)) == b"release"
    state.check_ledger(account)  # a state goes on with the new ledger
    state.look(account, 2, b"second")
    account.store_step("stream", 3, "three", b"third", previous="two")
    new.grant("searches", dc.Budget(5.0, 2e-7))
    state.check_ledger(account)
    account.charge(dc.Budget(0.1))
    assert (old.verify(), new.verify()) == (9, 12)


def test_what_is_left_is_closed_for_ever(old, new):
    transfer.move("searches", old, new)
    account = old.account("searches")
    for operation in (
        lambda: account.charge(dc.Budget(0.01)),
        lambda: account.check(dc.Budget(0.01)),
        lambda: account.begin("tuesday", dc.Budget(0.01)),
        lambda: account.store_step("stream", 3, "three", b"third", previous="two"),
        lambda: account.store("stream", b"late"),
        lambda: old.grant("searches", dc.Budget(9.0, 1e-6)),
        lambda: old.grant("searches", dc.Budget(4.0, 1e-7)),
    ):
        with pytest.raises(dc.LedgerError, match="was moved to"):
            operation()
    assert account.begin("monday", dc.Budget(0.5, 1e-9)) == b"release"  # what was published can be had again
    old.account("clicks").charge(dc.Budget(0.5))


def test_a_charge_without_a_release_is_finished_first(old, new):
    account = old.account("searches")
    account.begin("open", dc.Budget(0.1))
    with pytest.raises(dc.LedgerError, match="charges without a release: open"):
        transfer.move("searches", old, new)
    account.store("open", b"done")
    transfer.move("searches", old, new)
    assert new.account("searches").begin("open", dc.Budget(0.1)) == b"done"


@pytest.fixture
def interrupted(old, new, monkeypatch):
    """The account is closed in the old ledger, and the process died before the new one had it."""
    writing = type(new._log).writing

    def killed(log, create=False):
        manager = writing(log, create)
        if log is not new._log:
            return manager

        class Killed:
            def __enter__(self):
                return manager.__enter__()

            def __exit__(self, *_):
                error = KeyboardInterrupt()
                manager.__exit__(KeyboardInterrupt, error, None)
                raise error

        return Killed()

    with monkeypatch.context() as patch:
        patch.setattr(type(new._log), "writing", killed)
        with pytest.raises(KeyboardInterrupt):
            transfer.move("searches", old, new)


@pytest.mark.usefixtures("interrupted")
def test_a_move_that_was_interrupted_is_given_again(old, new):
    """Between the two commits the account is closed here and not there: never open in both."""
    with pytest.raises(dc.LedgerError, match="no account"):
        new.account("searches")
    with pytest.raises(dc.LedgerError, match="was moved to"):
        old.account("searches").charge(dc.Budget(0.01))
    for _ in range(2):  # and once more changes nothing
        assert transfer.move("searches", old, new) == 7
    assert len(said(new)) == 8


@pytest.mark.usefixtures("interrupted")
def test_an_account_that_was_granted_meanwhile_is_not_the_one_that_moves(old, new):
    """It is one of other people, which has the name now: the two would be taken for one."""
    new.grant("searches", dc.Budget(1.0))
    with pytest.raises(dc.LedgerError, match="already has an account 'searches'"):
        transfer.move("searches", old, new)
    assert [event.kind for event in new.history("searches")] == ["grant"]


def test_what_cannot_be_moved_is_refused_and_stays(old, new, tmp_path):
    new.grant("clicks", dc.Budget(1.0))
    with pytest.raises(dc.LedgerError, match="already has an account 'clicks'"):
        transfer.move("clicks", old, new)
    with pytest.raises(dc.LedgerError, match="no account named 'nobody'"):
        transfer.move("nobody", old, new)
    old.backup(tmp_path / "copy.sqlite")
    with pytest.raises(dc.ParameterError, match="or a copy of it"):
        transfer.move("searches", old, dc.Ledger(tmp_path / "copy.sqlite"))
    transfer.move("searches", old, new)
    with pytest.raises(dc.LedgerError, match="was moved to"):
        transfer.move("searches", old, dc.Ledger(tmp_path / "third.sqlite"))
    old.account("clicks").charge(dc.Budget(1.0))


def test_a_ledger_is_not_moved_to_itself(new, ledger_path, tmp_path):
    """Under whichever name. It was taken for one that another process had locked, after a minute."""
    other = ledger_path
    if "://" not in str(ledger_path):
        other = tmp_path / "link.sqlite"
        other.symlink_to(ledger_path)
    with pytest.raises(dc.ParameterError, match="must move to a different ledger; this is the same one"):
        transfer.move("visits", new, dc.Ledger(other, timeout=0.1))
    new.account("visits").charge(dc.Budget(1.0))


def test_a_move_that_loses_an_event_is_noticed(old, new, monkeypatch):
    append = LogWriter.append

    def forgetful(log, account, kind, charge_id, *more, **how):
        if charge_id != "bare":
            append(log, account, kind, charge_id, *more, **how)

    monkeypatch.setattr(LogWriter, "append", forgetful)
    with pytest.raises(dc.LedgerError, match="differs from the one in"):
        transfer.move("searches", old, new)


def test_a_moved_account_is_moved_on(old, new, tmp_path):
    identity = old.account("searches").ledger_identity
    transfer.move("searches", old, new)
    third = dc.Ledger(tmp_path / "third.sqlite")
    transfer.move("searches", new, third)
    assert third.account("searches").ledger_identity == identity
    assert said(third)[:7] == said(old)[:7]


def test_an_account_does_not_move_back(old, new):
    """Where it was it is closed for ever: what was charged since would be forgotten there."""
    transfer.move("searches", old, new)
    before = said(old)
    with pytest.raises(dc.LedgerError, match="already has an account 'searches'"):
        transfer.move("searches", new, old)
    assert said(old) == before
    new.account("searches").charge(dc.Budget(0.1))
