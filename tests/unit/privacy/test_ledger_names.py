"""Names and numbers in a ledger: 1 to 200 printable characters, steps from 1; and none is taken for another."""

import pytest

import discreet as dc
from discreet.errors import LedgerError, ParameterError, TakenOverError

BUDGET = dc.Budget(1.0)
NAMES = ("", "n" * 201, "two\nlines", "\x00", 7, None)


@pytest.fixture
def ledger(tmp_path):
    made = dc.Ledger(tmp_path / "ledger.sqlite")
    made.grant("a", dc.Budget(4.0))
    return made


def test_names_are_200_printable_characters_at_most(ledger):
    account = ledger.account("a")
    for wrong in NAMES:
        for call in (
            lambda wrong=wrong: ledger.grant(wrong, BUDGET),
            lambda wrong=wrong: ledger.account(wrong),
            lambda wrong=wrong: ledger.published(wrong),
            lambda wrong=wrong: account.take_over("stream", wrong),
            lambda wrong=wrong: account.take_over(wrong, "me"),
            lambda wrong=wrong: account.store_step("c", 1, wrong, b"x", previous=None),
        ):
            with pytest.raises(ParameterError, match="must be 1 to 200 printable characters"):
                call()
    longest = "n" * 200
    ledger.grant(longest, BUDGET)
    paid = ledger.account(longest)
    paid.charge(dc.Budget(0.5), charge_id=longest)
    assert paid.statement().charges == 1
    assert account.statement().charges == 0


def test_steps_are_numbered_from_1(ledger):
    account = ledger.account("a")
    account.begin("c", dc.Budget(0.5))
    for wrong in (0, -1, True, 1.0, "1", 2**63):
        with pytest.raises(ParameterError, match="steps are numbered from 1"):
            account.store_step("c", wrong, "t", b"x", previous=None)
        with pytest.raises(ParameterError, match="steps are numbered from 1"):
            account.step("c", wrong)
    assert account.last_step("c") is None
    account.store_step("c", 1, "t", b"x", previous=None)
    assert (account.step("c", 1).payload, account.last_step("c").number) == (b"x", 1)
    assert account.step("c", 2) is None


def test_two_things_of_almost_one_name_have_two_holders(ledger):
    """A name of 190 characters is as long as is told apart: that of the holder's charge is 200."""
    account = ledger.account("a")
    one, other = "s" * 189 + "a", "s" * 189 + "b"
    first = account.take_over(one, "me")
    account.take_over(other, "you")
    first.check_held()
    account.take_over(one, "you")
    with pytest.raises(TakenOverError):
        first.check_held()
    with pytest.raises(LedgerError):
        first.charge(dc.Budget(0.5))
    assert account.statement().charges == 0


def test_an_account_that_nobody_granted_cannot_be_charged(ledger):
    with pytest.raises(LedgerError, match=r"nobody|no account|unknown|grant"):
        ledger.account("b").charge(dc.Budget(0.5))
    assert [account.name for account in ledger.accounts()] == ["a"]
