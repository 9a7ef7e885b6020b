"""Streams that share an account: what is spent about the same people adds up, in a ledger that somebody granted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import STREAMS, Running, catch_up

import discreet as dc
from discreet.errors import BudgetExceededError, ChargeConflictError, LedgerError, ParameterError
from discreet.service.definitions import configuration, load
from discreet.service.runtime import status_of

PEOPLE = {"kind": "distinct", "user": "visitor", "tick": "1m", "horizon": "2m", "public": True, "account": "readers"}
READERS: dict[str, Any] = {
    "people": {**PEOPLE, "epsilon": 1.0, "delta": 1e-8},
    "pages": {**PEOPLE, "kind": "top", "column": "page", "max_items": 3, "k": 5, "epsilon": 2.0, "delta": 1e-8},
}


def granted(path: Path, epsilon: float = 4.0) -> dc.Ledger:
    ledger = dc.Ledger(path)
    ledger.grant("readers", dc.Budget(epsilon, 1e-6))
    return ledger


def charges(ledger: dc.Ledger, account: str = "readers") -> list[str | None]:
    return [event.charge_id for event in ledger.account(account).history() if event.kind == "charge"]


def test_what_is_spent_about_the_same_people_adds_up(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "budgets.sqlite")
    ledger.account("readers").charge(dc.Budget(0.5, 1e-9), "nightly", unit=dc.User())
    running = Running(tmp_path / "data", READERS, ledger=str(tmp_path / "budgets.sqlite")).start()
    for name in READERS:
        shown = running.client.get(f"/v1/streams/{name}").json()["budget"]
        assert shown["spent"]["epsilon"] == READERS[name]["epsilon"]
        assert shown["account"]["name"] == "readers"
        assert shown["account"]["granted"] == {"epsilon": 4.0, "delta": 1e-6, "rho": None}
        assert shown["account"]["spent"]["epsilon"] == pytest.approx(3.5)
    running.pass_ticks(1)
    running.again()
    running.pass_ticks(1)
    running.stop()
    assert len(charges(ledger)) == 3  # each once, also after a restart
    assert [account.name for account in ledger.accounts()] == ["readers"]
    assert not (tmp_path / "data" / "ledger.sqlite").exists()
    assert {row["account"] for row in status_of(tmp_path / "data", tmp_path / "budgets.sqlite")} == {"readers"}


def test_an_account_pays_what_was_granted_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "budgets.sqlite"
    running = Running(tmp_path / "data", READERS, ledger=str(path))
    with pytest.raises(LedgerError):  # the service grants no account that it was told to use
        running.start()
    ledger = granted(path, 1.5)
    with pytest.raises(BudgetExceededError, match="'readers' cannot pay"):
        running.start()
    assert charges(ledger) == []  # not that of the stream before it either
    granted(path, 3.0)
    running.start()
    running.stop()
    assert len(charges(ledger)) == 2


def test_one_account_hides_one_thing(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "budgets.sqlite")
    events = {**STREAMS["visits"], "epsilon": 1.0, "account": "readers"}  # hides a row, not a person
    running = Running(tmp_path / "data", {**READERS, "visits": events}, ledger=str(tmp_path / "budgets.sqlite"))
    with pytest.raises(ChargeConflictError, match="one unit"):
        running.start()
    assert len(charges(ledger)) == 2


def test_a_following_grant_waits_for_the_operator(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "budgets.sqlite", 1.5)
    longer = {"people": {**READERS["people"], "following": [{"epsilon": 1.0, "delta": 1e-8}]}}
    running = Running(tmp_path / "data", longer, ledger=str(tmp_path / "budgets.sqlite")).start()
    with pytest.raises(BudgetExceededError):
        running.pass_ticks(3)
    assert running.service.streams["people"].tick == 2
    granted(tmp_path / "budgets.sqlite", 2.5)
    catch_up(running.service)
    assert running.service.streams["people"].tick == 3
    running.stop()
    assert len(charges(ledger)) == 2


def test_a_stream_of_its_own_takes_no_account_that_others_have(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "budgets.sqlite")
    own = {"readers": {**READERS["people"], "account": None}}
    own["readers"].pop("account")
    running = Running(tmp_path / "data", own, ledger=str(tmp_path / "budgets.sqlite"))
    with pytest.raises(LedgerError, match='set account = "readers"; otherwise rename the stream'):
        running.start()
    assert ledger.account("readers").granted.epsilon == 4.0
    with pytest.raises(ParameterError, match="another stream names the account 'readers'"):
        configuration({"streams": {**READERS, **own}})


def test_a_path_in_the_file_begins_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "streams.toml").write_text(
        '[service]\nledger = "budgets.sqlite"\n[streams.visits]\nkind = "count"\ntick = "1m"\nhorizon = 10\n'
        'epsilon = 1.0\ndelta = 1e-6\naccount = "rows"\n'
    )
    assert load(tmp_path / "streams.toml").ledger == str(tmp_path / "budgets.sqlite")
