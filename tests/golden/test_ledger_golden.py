"""A ledger that was written once stays readable and usable. `make_ledger.py` made it."""

import shutil
from pathlib import Path

import pytest

import discreet as dc
from discreet.privacy.ledger import Step

GOLDEN = {  # tables of version 2, events of version 1, 2 and 3, and how many
    "ledger-v2.db": 12,
    "ledger-v2-events-2.db": 14,
    "ledger-v2-events-3.db": 20,
}


@pytest.fixture(params=GOLDEN)
def path(request, tmp_path):
    return Path(shutil.copy(Path(__file__).with_name(request.param), tmp_path / "budgets.sqlite"))


@pytest.fixture
def events(request, path):
    """How many events it has."""
    return GOLDEN[request.node.callspec.params["path"]]


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


def test_a_ledger_is_read_as_it_is(path, events):
    before = path.read_bytes()
    check_what_it_holds(dc.Ledger(path))
    assert dc.Ledger(path).verify() == events
    assert path.read_bytes() == before


def test_a_ledger_goes_on(path, events):
    ledger = dc.Ledger(path)
    searches = ledger.account("searches")
    assert searches.begin("monday", dc.Budget(1.0, 1e-9), mechanism="offset") == b'{"release": "monday"}'
    assert searches.begin("tuesday", dc.Budget(0.5), mechanism="offset") is None
    assert searches.store("tuesday", b"drawn again") == b"drawn again"
    assert searches.store_step("monday", 1, "token", b"step", previous=None) == Step(1, "token", b"step")
    with pytest.raises(dc.LedgerError, match="already has a charge"):
        searches.charge(dc.Budget(0.25, 1e-9), charge_id="bare")
    with pytest.raises(dc.LedgerError, match="Charge another account only if it stands for other people"):
        ledger.account("clicks").charge(dc.Budget.zcdp(0.01))
    with pytest.raises(dc.BudgetExceededError):
        searches.charge(dc.Budget(3.5))
    searches.charge(dc.Budget(3.0))
    assert ledger.verify() == events + 3


def test_an_account_of_rhos_has_its_filter_and_its_costs(tmp_path):
    path = Path(shutil.copy(Path(__file__).with_name("ledger-v2-events-2.db"), tmp_path / "budgets.sqlite"))
    account = dc.Ledger(path).account("rhos")
    totals = account.statement().limit.filter
    assert (account.accounting, totals.delta, totals.delta_share) == ("zcdp", 2.5e-6, 0.25)
    assert (totals.order, totals.rho) == (pytest.approx(6.23226, rel=1e-5), pytest.approx(0.364112, rel=1e-5))
    assert (account.spent().delta, account.spent().rho) == (1e-7, pytest.approx(0.0241494, rel=1e-5))
    account.charge(dc.Budget(0.25, 1e-7))
    assert account.spent().delta == 2e-7


def test_an_account_of_days_has_its_periods(tmp_path):
    path = Path(shutil.copy(Path(__file__).with_name("ledger-v2-events-3.db"), tmp_path / "budgets.sqlite"))
    ledger = dc.Ledger(path)
    readers, day = ledger.account("readers"), dc.User(per="1d", zone="Europe/Berlin")
    assert readers.unit == day
    spent = [readers.statement(f"2026-11-{number:02}").spent.epsilon for number in (8, 9, 14, 15, 16)]
    assert spent == [0.0, 0.5, 0.5, 1.5, 0.0]
    assert readers.begin("night", dc.Budget(1.0, 1e-9), unit=day, period="2026-11-15") == b'{"release": "night"}'
    readers.charge(dc.Budget(4.0), unit=day, period="2026-11-16")
    limit = readers.statement().limit
    assert (limit.until, limit.approver, limit.reason) == ("2999-12-31", "Ada", "figures")
    renewed = ledger.account("visitors").statement("2999-01-01")
    assert (renewed.limit.renews, renewed.spent.epsilon) == ("90d", 0.0)
