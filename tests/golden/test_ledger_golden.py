"""Ledgers of earlier versions stay readable and usable. `make_ledger.py` made them."""

import shutil
import sqlite3
from pathlib import Path

import pytest

import discreet as dc
from discreet.privacy.ledger import Step

GOLDEN = Path(__file__).with_name("ledger-v1.db")


@pytest.fixture
def path(tmp_path):
    return Path(shutil.copy(GOLDEN, tmp_path / "budgets.sqlite"))


def user_version(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def check_what_it_holds(ledger):
    events = [(event.account, event.kind, event.charge_id) for event in ledger.history()]
    assert (
        events[:12]
        == [
            ("searches", "grant", None),
            ("searches", "charge", "monday"),
            ("searches", "release", "monday"),
            ("searches", "charge", "tuesday"),
            ("searches", "charge", "bare"),
            ("clicks", "grant", None),
            ("clicks", "charge", "a"),
            ("clicks", "charge", "b"),
            ("clicks", "release", "b"),
            ("chosen", "grant", None),
            ("chosen", "charge", "first"),
            ("searches", "grant", None),
        ][:13]
    )
    assert ledger.release_payload(ledger.history()[2]) == b'{"release": "monday"}'
    searches, clicks, chosen = (ledger.account(name) for name in ("searches", "clicks", "chosen"))
    assert (searches.granted, clicks.granted) == (dc.Budget(5.0, 1e-7), dc.Budget.zcdp(0.5))
    assert (searches.adaptive, chosen.adaptive) == (False, True)
    assert searches.spent().epsilon == pytest.approx(1.75, rel=1e-4)
    assert clicks.spent().rho == pytest.approx(0.25)
    assert chosen.spent().epsilon == 0.25


def test_an_old_ledger_is_read_as_it_is(path):
    check_what_it_holds(dc.Ledger(path))
    assert user_version(path) == 1  # reading changes nothing


def test_an_old_ledger_is_taken_over_by_the_first_write(path):
    ledger = dc.Ledger(path)
    searches = ledger.account("searches")
    assert searches.begin("monday", dc.Budget(1.0, 1e-9), mechanism="offset") == b'{"release": "monday"}'
    assert user_version(path) == 2  # programs that know only version 1 refuse any other
    check_what_it_holds(ledger)
    assert searches.begin("tuesday", dc.Budget(0.5), mechanism="offset") is None
    assert searches.store("tuesday", b"drawn again") == b"drawn again"
    assert searches.store_step("monday", 1, "token", b"step", previous=None) == Step(1, "token", b"step")
    with pytest.raises(dc.LedgerError, match="already has a charge"):
        searches.charge(dc.Budget(0.25, 1e-9), charge_id="bare")
    with pytest.raises(dc.LedgerError, match="another account"):
        ledger.account("clicks").charge(dc.Budget.zcdp(0.01))
    with pytest.raises(dc.BudgetExceededError):
        searches.charge(dc.Budget(3.5))
    searches.charge(dc.Budget(3.0))
    check_file(path)


def check_file(path):
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def test_a_damaged_old_ledger_is_not_taken_over(path):
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("UPDATE events SET body = replace(body, '1.0', '0.1') WHERE charge_id = 'monday'")
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()
    with pytest.raises(dc.LedgerError, match="damaged"):
        dc.Ledger(path).grant("new", dc.Budget(1.0))
    assert user_version(path) == 1
