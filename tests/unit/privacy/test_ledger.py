"""The ledger: what it grants, charges, refuses and remembers, in every store."""

import contextlib
import os
import pickle
import threading
import uuid
from fractions import Fraction
from unittest import mock

import pyarrow as pa
import pytest

import discreet as dc
from discreet.central.universe_histogram import UniverseHistogram
from discreet.privacy.accounting import Charge
from discreet.privacy.ledger import Amount, Payment, Step, accounts
from discreet.privacy.zcdp_filter import response_rho


@pytest.fixture
def path(ledger_path):
    return ledger_path


@pytest.fixture
def ledger(path):
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    return ledger


@pytest.fixture
def account(ledger):
    return ledger.account("searches")


def kinds(account):
    return [event.kind for event in account.history()]


def test_a_new_account_has_spent_nothing(account):
    assert account.granted == dc.Budget(4.0, 1e-7)
    assert account.spent().epsilon == 0.0
    assert (account.remaining().epsilon, account.remaining().delta) == (4.0, 1e-7)


def test_charges_add_up_and_survive_reopening(account, path):
    account.charge(dc.Budget(1.0, 1e-9), mechanism="offset")
    account.charge(dc.Budget(1.0, 1e-9), mechanism="offset")
    again = dc.Ledger(path).account("searches")
    assert again.spent().epsilon == pytest.approx(2.0, rel=1e-4)
    assert again.remaining().epsilon == pytest.approx(2.0, rel=2e-3)
    assert again.remaining(delta=0.0).epsilon == pytest.approx(2.0, rel=2e-3)


def test_what_remains_can_be_charged_and_then_nothing_remains(account):
    account.charge(dc.Budget(1.3, 3e-8))
    left = account.remaining()
    account.charge(dc.Budget(left.epsilon, left.delta))
    with pytest.raises(dc.BudgetExceededError):
        account.charge(dc.Budget(0.01, 1e-9))


def test_an_overdraft_is_refused_and_says_why(account):
    first = account.charge(dc.Budget(3.0, 1e-9))
    with pytest.raises(dc.BudgetExceededError, match=r"requested|cannot pay epsilon=2") as caught:
        account.charge(dc.Budget(2.0, 1e-9), charge_id="too much")
    error = caught.value
    assert error.requested == dc.Budget(2.0, 1e-9)
    assert error.spent.epsilon == pytest.approx(3.0, rel=1e-4)
    assert error.remaining.epsilon == pytest.approx(1.0, rel=1e-2)
    assert error.charges == (first,)
    assert kinds(account) == ["grant", "charge"]


def test_a_check_refuses_like_a_charge_and_spends_nothing(account):
    account.check(dc.Budget(4.0, 1e-7))
    account.charge(dc.Budget(3.0))
    with pytest.raises(dc.BudgetExceededError, match="cannot pay epsilon=2"):
        account.check(dc.Budget(2.0))
    account.check(dc.Budget(1.0))
    assert kinds(account) == ["grant", "charge"]


def test_what_was_spent_is_said_in_sums_unless_composition_says_less(ledger, account):
    account.charge(dc.Budget(1.0, 1e-9))
    assert (account.spent().epsilon, account.spent().delta) == (1.0, 1e-9)
    assert str(account.spent()) == "epsilon=1, delta=1e-09"
    assert str(account.remaining()) == "epsilon=3, delta=9.9e-08"
    ledger.grant("many", dc.Budget(4.0, 1e-6))
    many = ledger.account("many")
    for _ in range(60):
        many.charge(dc.Budget(0.1, 1e-9))
    spent = many.spent()
    assert spent.delta == 1e-6
    assert spent.epsilon < 0.9 * 6.0


def test_figures_are_rounded_to_the_safe_side():
    assert str(Amount(1.0000001, 1.0000001e-9)) == "epsilon=1.00001, delta=1.00001e-09"
    assert str(Amount(1.9999999, 1.9999999e-9, None, "down")) == "epsilon=1.99999, delta=1.99999e-09"
    assert str(Amount(None, 0.0, 0.1234561)) == "rho=0.123457 (zCDP)"
    assert str(Amount(None, 0.0, 0.1234569, "down")) == "rho=0.123456 (zCDP)"
    assert str(Amount(0.1 + 0.2)) == "epsilon=0.3"  # what sums of floats add is forgiven when it is charged, too
    assert str(Amount(1e-7 - 3e-9, 0.0, None, "down")) == "epsilon=9.7e-08"
    assert str(Amount(0.0)) == "epsilon=0"
    assert str(Amount(None, 1.0000001e-9, 0.1)) == "rho=0.1 (zCDP), delta=1.00001e-09"
    assert str(Amount(0.5, 2e-9, 0.1, "down")) == "epsilon=0.5 or rho=0.1 (zCDP), delta=2e-09"


def test_delta_is_a_budget_too(account):
    account.charge(dc.Budget(0.1, 6e-8))
    with pytest.raises(dc.BudgetExceededError):
        account.charge(dc.Budget(0.1, 6e-8))


def test_a_pure_grant_pays_pure_charges_to_the_last_bit(ledger):
    ledger.grant("pure", dc.Budget(1.0))
    account = ledger.account("pure")
    for _ in range(4):
        account.charge(dc.Budget(0.25))
    assert account.spent().epsilon == 1.0
    assert account.remaining().epsilon == 0.0
    with pytest.raises(dc.BudgetExceededError):
        account.charge(dc.Budget(1e-9))


def test_a_pure_grant_refuses_delta(ledger):
    ledger.grant("pure", dc.Budget(1.0))
    with pytest.raises(dc.BudgetExceededError):
        ledger.account("pure").charge(dc.Budget(0.1, 1e-12))


def test_a_zcdp_grant_adds_rho(ledger):
    ledger.grant("zcdp", dc.Budget.zcdp(0.5))
    account = ledger.account("zcdp")
    account.charge(dc.Budget.zcdp(0.25))
    account.charge(dc.Budget(0.5))  # at most 0.5 ** 2 / 2 = 0.125
    assert account.spent().rho == pytest.approx(0.375, rel=1e-12)
    assert account.remaining().rho == pytest.approx(0.125)
    with pytest.raises(dc.BudgetExceededError, match="rho"):
        account.charge(dc.Budget.zcdp(0.2))
    with pytest.raises(dc.BudgetExceededError):
        account.charge(dc.Budget(0.1, 1e-9))


def test_granting_the_same_again_changes_nothing(ledger, account):
    account.charge(dc.Budget(1.0))
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    assert kinds(account) == ["grant", "charge"]


def test_a_larger_grant_extends_the_account_and_keeps_what_was_spent(ledger, account):
    account.charge(dc.Budget(4.0))
    ledger.grant("searches", dc.Budget(5.0, 1e-7))
    account.charge(dc.Budget(1.0))
    with pytest.raises(dc.BudgetExceededError):
        account.charge(dc.Budget(0.5))
    assert kinds(account) == ["grant", "charge", "grant", "charge"]


def test_a_grant_below_what_was_spent_is_refused(ledger, account):
    account.charge(dc.Budget(2.0))
    with pytest.raises(dc.LedgerError, match="spent more"):
        ledger.grant("searches", dc.Budget(1.0, 1e-7))
    ledger.grant("searches", dc.Budget(2.5, 1e-7))
    assert account.granted == dc.Budget(2.5, 1e-7)


def test_an_adaptive_account_adds_up(ledger):
    """Five charges of a quarter fit a grant of 1 by tight composition, four by their sum."""
    grant, each = dc.Budget(1.0, 0.1), dc.Budget(0.25)
    ledger.grant("fixed", grant)
    ledger.grant("chosen", grant, adaptive=True)
    fixed, chosen = ledger.account("fixed"), ledger.account("chosen")
    assert (fixed.adaptive, chosen.adaptive) == (False, True)
    for _ in range(4):
        fixed.charge(each)
        chosen.charge(each)
    fixed.charge(each)
    with pytest.raises(dc.BudgetExceededError, match="adaptive"):
        chosen.charge(each)
    assert chosen.spent().epsilon == 1.0
    assert chosen.remaining().epsilon == 0.0
    assert chosen.granted == grant
    with pytest.raises(dc.ParameterError, match="zCDP"):
        chosen.charge(dc.Budget.zcdp(1e-9))


def test_an_adaptive_account_stays_adaptive(ledger, path):
    ledger.grant("a", dc.Budget(1.0), adaptive=True)
    ledger.grant("a", dc.Budget(2.0))  # a job that states its grant every time
    assert ledger.account("a").adaptive
    with pytest.raises(dc.LedgerError, match="adaptive"):
        ledger.grant("a", dc.Budget(2.0), adaptive=False)
    ledger.grant("a", dc.Budget(2.0), adaptive=True)
    assert [event.details["adaptive"] for event in ledger.history("a")] == [True, True]
    assert dc.Ledger(path).account("a").adaptive


def test_an_account_becomes_adaptive_if_its_sums_fit(ledger):
    grant = dc.Budget(1.0, 0.1)
    ledger.grant("a", grant)
    for _ in range(5):
        ledger.account("a").charge(dc.Budget(0.25))
    with pytest.raises(dc.LedgerError, match="spent more"):
        ledger.grant("a", grant, adaptive=True)
    assert not ledger.account("a").adaptive
    ledger.grant("a", dc.Budget(1.5, 0.1), adaptive=True)
    assert ledger.account("a").remaining().epsilon == pytest.approx(0.25)
    with pytest.raises(dc.ParameterError, match="adaptive"):
        ledger.grant("a", grant, adaptive="yes")


# --- budgets chosen as one goes, by rho


def charged(account, budget, most=1000):
    """How many such charges an account takes."""
    for times in range(most):
        try:
            account.charge(budget)
        except dc.BudgetExceededError:
            return times
    return most


def test_an_account_of_rhos_pays_for_many_small_releases(ledger, monkeypatch):
    """Epsilon 0.25 under (4, 1e-3): 16 by sums, 21 here; and no library for tight composition is asked."""
    grant = dc.Budget(4.0, 1e-3)
    ledger.grant("sums", grant, accounting="basic")
    ledger.grant("rhos", grant, accounting="zcdp")
    monkeypatch.setattr("discreet.privacy.ledger.accounts.load", lambda: pytest.fail("sums decide"))
    sums, rhos = ledger.account("sums"), ledger.account("rhos")
    assert [one.accounting for one in (sums, rhos, ledger.account("searches"))] == ["basic", "zcdp", "tight"]
    assert rhos.adaptive
    assert (charged(sums, dc.Budget(0.25)), charged(rhos, dc.Budget(0.25))) == (16, 21)
    totals = rhos.statement().limit.filter
    assert 21 * response_rho(0.25, totals.order) <= totals.rho < 22 * response_rho(0.25, totals.order)
    with pytest.raises(dc.BudgetExceededError, match=r"adaptive, at most rho=.*, delta=0\.00025"):
        rhos.charge(dc.Budget(0.25))
    assert ledger.verify()


def test_what_charges_cost_is_written_down_and_added_up(ledger, path):
    ledger.grant("a", dc.Budget(4.0, 1e-5), accounting="zcdp")
    account = ledger.account("a")
    for budget in (dc.Budget(0.1), dc.Budget(0.1, 1e-7), dc.Budget.zcdp(0.01)):
        account.charge(budget)
    order = account.statement().limit.filter.order
    costs = [event.details["cost"] for event in account.history() if event.kind == "charge"]
    once = response_rho(0.1, order)
    assert costs == [{"rho": once, "delta": 0.0}, {"rho": once, "delta": 1e-7}, {"rho": 0.01, "delta": 0.0}]
    spent = dc.Ledger(path).account("a").spent()
    assert (spent.epsilon, spent.delta) == (None, 1e-7)
    assert spent.rho >= sum(map(Fraction, [once, once, 0.01]))
    assert spent.rho == pytest.approx(2 * once + 0.01, rel=1e-15)


def test_what_is_left_is_said_in_both_scales_and_can_be_charged(ledger):
    for scale in ("epsilon", "rho"):
        ledger.grant(scale, dc.Budget(4.0, 1e-5), accounting="zcdp")
        account = ledger.account(scale)
        account.charge(dc.Budget(0.5, 1e-6))
        left = account.remaining()
        assert left.epsilon > 0.5
        assert left.delta == pytest.approx(1.5e-6)
        assert account.remaining(delta=1e-7).epsilon == left.epsilon
        assert account.remaining(delta=2e-6).epsilon == 0.0  # so much delta is not left
        account.check(dc.Budget(left.epsilon, left.delta))
        account.charge(dc.Budget(left.epsilon, left.delta) if scale == "epsilon" else dc.Budget.zcdp(left.rho))
        assert account.remaining().rho < 1e-12
        assert account.remaining().epsilon < 1e-5
        with pytest.raises(dc.BudgetExceededError, match=r"remaining epsilon=.* or rho=.* \(zCDP\)"):
            account.charge(dc.Budget(0.01))


def test_deltas_have_a_total_of_their_own(ledger):
    """A quarter of the grant's, unless another share is given; none of it is for sale for rho."""
    ledger.grant("quarter", dc.Budget(4.0, 1e-5), accounting="zcdp")
    ledger.grant("nothing", dc.Budget(4.0, 1e-5), accounting="zcdp", delta_share=0.0)
    ledger.grant("half", dc.Budget(4.0, 1e-5), accounting="zcdp", delta_share=0.5)
    small = dc.Budget(1e-4, 1e-6)
    assert [charged(ledger.account(name), small) for name in ("quarter", "nothing", "half")] == [2, 0, 5]
    rhos = [ledger.account(name).statement().limit.filter.rho for name in ("nothing", "quarter", "half")]
    assert rhos == sorted(rhos, reverse=True)


def test_charges_tie_an_account_to_its_filter(ledger):
    grant = dc.Budget(4.0, 1e-5)
    ledger.grant("a", grant, accounting="basic")
    ledger.grant("a", grant, accounting="zcdp")  # nothing was charged yet
    account = ledger.account("a")
    account.charge(dc.Budget(0.5))
    ledger.grant("a", grant)  # a job that states its grant every time
    ledger.grant("a", grant, accounting="zcdp", delta_share=0.25)
    ledger.grant("a", grant, adaptive=True)
    assert kinds(account) == ["grant", "grant", "charge"]
    with pytest.raises(dc.LedgerError, match="cannot change to or from 'zcdp'"):
        ledger.grant("a", grant, accounting="basic")
    for how in ({"accounting": "tight"}, {"adaptive": False}):
        with pytest.raises(dc.LedgerError, match="is adaptive"):
            ledger.grant("a", grant, **how)
    with pytest.raises(dc.LedgerError, match=r"delta_share stays 0\.25"):
        ledger.grant("a", grant, delta_share=0.5)
    with pytest.raises(dc.LedgerError, match="must grow or shrink together"):
        ledger.grant("a", dc.Budget(5.0, 1e-6))
    for accounting in ("tight", "basic"):
        ledger.grant(accounting, grant, accounting=accounting)
        ledger.account(accounting).charge(dc.Budget(0.01))
        with pytest.raises(dc.LedgerError, match="cannot change to or from 'zcdp'"):
            ledger.grant(accounting, grant, accounting="zcdp")


def test_a_filter_grows_and_shrinks_at_the_order_it_has(ledger):
    ledger.grant("a", dc.Budget(2.0, 1e-5), accounting="zcdp")
    account = ledger.account("a")
    first = account.statement().limit.filter
    account.charge(dc.Budget(0.5))
    with pytest.raises(dc.BudgetExceededError):
        account.charge(dc.Budget(1.0))
    ledger.grant("a", dc.Budget(4.0, 2e-5))
    grown = account.statement().limit.filter
    assert grown.order == first.order
    assert (grown.rho > 2 * first.rho, grown.delta) == (True, 2 * first.delta)
    account.charge(dc.Budget(1.0))
    with pytest.raises(dc.LedgerError, match="spent more"):
        ledger.grant("a", dc.Budget(2.0, 1e-5))
    assert ledger.verify()


def test_what_no_filter_can_be_made_of_is_refused(ledger):
    with pytest.raises(dc.ParameterError, match="Give the grant a delta"):
        ledger.grant("a", dc.Budget(1.0), accounting="zcdp")
    with pytest.raises(dc.ParameterError, match="tight, basic, zcdp"):
        ledger.grant("a", dc.Budget(1.0, 1e-6), accounting="rdp")
    with pytest.raises(dc.ParameterError, match="adaptive and accounting cannot be combined"):
        ledger.grant("a", dc.Budget(1.0, 1e-6), accounting="zcdp", adaptive=True)
    with pytest.raises(dc.ParameterError, match="delta_share needs"):
        ledger.grant("a", dc.Budget(1.0, 1e-6), delta_share=0.5)
    with pytest.raises(dc.ParameterError, match="its accounting is 'zcdp'"):
        ledger.grant("a", dc.Budget.zcdp(0.1), accounting="basic")
    for share in (1.0, -0.1, True, "half"):
        with pytest.raises(dc.ParameterError, match="delta_share must be"):
            ledger.grant("a", dc.Budget(1.0, 1e-6), accounting="zcdp", delta_share=share)
    ledger.grant("rho", dc.Budget.zcdp(0.1), accounting="zcdp")  # which adds up rhos anyway
    assert ledger.account("rho").accounting == "zcdp"
    ledger.account("rho").charge(dc.Budget.zcdp(0.1))


def test_a_mechanism_may_say_its_rho_and_delta(ledger):
    """Gaussian noise of a small (epsilon, delta) has far less rho than a mechanism of that epsilon may have."""
    grant, budget = dc.Budget(4.0, 1e-5), dc.Budget(0.1, 1e-7)
    for name in ("tight", "basic", "zcdp"):
        ledger.grant(name, grant, accounting=name)
        ledger.account(name).pay("a", budget, unit=dc.User(), cost=Charge(None, 1e-9, 0.001))
    spent = [ledger.account(name).spent() for name in ("tight", "basic", "zcdp")]
    assert spent == [Amount(0.1, 1e-7), Amount(0.1, 1e-7), Amount(None, 1e-9, 0.001)]
    account = ledger.account("zcdp")
    with pytest.raises(dc.BudgetExceededError):
        account.check(dc.Budget(3.0, 1e-7))
    account.check(dc.Budget(3.0, 1e-7), Charge(None, rho=0.1))
    rows, universe = {"who": list("abc"), "what": list("xyz")}, [f"{c}{n}" for c in "xyz" for n in range(30)]
    listed = {"column": "what", "user": "who", "max_items": 50, "universe": universe}
    dc.histogram(pa.table(rows), budget, **listed, ledger=account, charge_id="noise")
    cost = account.history()[-2].details["cost"]
    sigma = UniverseHistogram(budget, universe, dc.User(), 50).scale
    assert (cost["delta"], cost["rho"]) == (0.0, pytest.approx(50 / (2 * float(sigma) ** 2)))
    assert cost["rho"] < response_rho(0.1, account.statement().limit.filter.order) / 10
    dc.count(pa.table(rows), budget, user="who", ledger=account, charge_id="Laplace")
    assert account.history()[-2].details["cost"]["delta"] == 1e-7


def test_units_and_retries_are_those_of_every_account(ledger):
    ledger.grant("a", dc.Budget(4.0, 1e-5), accounting="zcdp")
    account = ledger.account("a")
    assert account.begin("monday", dc.Budget(0.5, 1e-7), mechanism="offset", unit=dc.User()) is None
    account.store("monday", b"release")
    assert account.begin("monday", dc.Budget(0.5, 1e-7), mechanism="offset", unit=dc.User()) == b"release"
    with pytest.raises(dc.ChargeConflictError):
        account.begin("monday", dc.Budget(0.4, 1e-7), mechanism="offset", unit=dc.User())
    with pytest.raises(dc.ChargeConflictError, match="one unit"):
        account.charge(dc.Budget(0.1), unit=dc.Event())
    assert account.statement().charges == 1


def test_accounts_do_not_share(ledger, account):
    ledger.grant("clicks", dc.Budget(1.0))
    account.charge(dc.Budget(4.0), charge_id="same id")
    ledger.account("clicks").charge(dc.Budget(1.0), charge_id="same id")
    assert [account.name for account in ledger.accounts()] == ["clicks", "searches"]
    assert len(ledger.history()) == 4
    assert len(ledger.history("clicks")) == 2


def test_an_unknown_account_or_ledger_is_an_error(ledger, tmp_path):
    with pytest.raises(dc.LedgerError, match="no account 'typo'"):
        ledger.account("typo")
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(dc.LedgerError, match="no ledger"):
        dc.Ledger(missing).account("searches")
    assert not missing.exists()


def test_units_do_not_mix(account):
    account.charge(dc.Budget(0.5), unit=dc.User(3))
    account.charge(dc.Budget(0.5), unit=dc.User(3))
    for unit in (None, dc.Event(), dc.User(4), dc.Replace()):
        with pytest.raises(dc.LedgerError, match="another account"):
            account.charge(dc.Budget(0.5), unit=unit)


def test_what_hides_all_of_a_person_adds_up_for_anybody(account):
    """A guarantee for people with any number of items is one for those with at most 3; not the other way round."""
    account.charge(dc.Budget(0.5), unit=dc.User(3))
    account.charge(dc.Budget(0.5), unit=dc.User())
    assert account.statement().charges == 2


def test_an_account_of_people_takes_nothing_less_and_says_what_another_account_means(account):
    account.charge(dc.Budget(0.5), unit=dc.User())
    for unit in (dc.Event(), dc.User(3), dc.Element(), dc.Replace()):
        with pytest.raises(dc.ChargeConflictError, match="hide one person, with all of their rows") as caught:
            account.charge(dc.Budget(0.5), unit=unit)
        assert "for the same people, two accounts together reveal more than either counts" in str(caught.value)
        assert unit.describe() in str(caught.value)
    assert account.statement().charges == 1


def test_what_is_asked_for_and_what_is_added_up_may_differ(account):
    """At most 3 items of a person count, however many they have: all of a person is hidden, and 3 is the request."""
    account.charge(dc.Budget(0.5), unit=dc.User())
    account.pay("c", dc.Budget(0.5), unit=dc.User(3), hides=dc.User())
    with pytest.raises(dc.ChargeConflictError, match="unit was User, max_items=3 and is now User, max_items=4"):
        account.pay("c", dc.Budget(0.5), unit=dc.User(4), hides=dc.User())


def test_a_charge_of_before_is_had_again_by_what_now_hides_more(account):
    account.begin("c", dc.Budget(0.5), unit=dc.User(3))
    account.store("c", b"release")
    assert account.pay("c", dc.Budget(0.5), unit=dc.User(3), hides=dc.User()).payload == b"release"
    with pytest.raises(dc.ChargeConflictError):
        account.pay("c", dc.Budget(0.5), unit=dc.User(4), hides=dc.User())


def test_a_stored_release_is_found_by_its_question(account):
    asked = {"question": "top", "k": 10, "files": "sha256:1"}
    assert account.stored("c", dc.Budget(0.5), asked) is None  # nobody asked yet
    account.pay("c", dc.Budget(0.5), question=asked)
    assert account.stored("c", dc.Budget(0.5), asked) is None  # charged, not stored
    account.store("c", b"release")
    assert account.stored("c", dc.Budget(0.5), asked) == b"release"
    with pytest.raises(dc.ChargeConflictError, match="k was 10 and is now 20") as caught:
        account.stored("c", dc.Budget(0.5), {**asked, "k": 20})
    assert caught.value.differences == {"k": (10, 20)}
    with pytest.raises(dc.ChargeConflictError, match=r"files differs \(the ledger keeps a digest of it\)"):
        account.stored("c", dc.Budget(0.5), {**asked, "files": "sha256:2"})
    with pytest.raises(dc.ChargeConflictError, match=r"budget was epsilon=0\.5 and is now epsilon=1\.0"):
        account.stored("c", dc.Budget(1.0), asked)
    with pytest.raises(dc.ChargeConflictError, match='by was not given and is now "day"'):
        account.pay("c", dc.Budget(0.5), question={**asked, "by": "day"})
    account.begin("old", dc.Budget(0.5))
    account.store("old", b"release")
    assert account.stored("old", dc.Budget(0.5), asked) is None  # nothing to compare with: `pay` decides


def test_a_published_release_is_found_in_whichever_account(ledger, account):
    account.begin("c", dc.Budget(0.5))
    with pytest.raises(dc.LedgerError, match="has no release"):
        ledger.published("c")
    account.store("c", b"release")
    charge, payload = ledger.published("c")
    assert (charge.account, charge.kind, payload) == ("searches", "charge", b"release")
    with pytest.raises(dc.LedgerError, match="no charge 'd'"):
        ledger.published("d")
    ledger.grant("clicks", dc.Budget(1.0))
    ledger.account("clicks").begin("c", dc.Budget(0.5))
    with pytest.raises(dc.LedgerError, match="several accounts"):
        ledger.published("c")
    assert ledger.published("c", "searches")[1] == b"release"


def test_a_ledger_that_is_in_use_may_be_asked_again(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger", timeout=0.05)
    ledger.grant("a", dc.Budget(1.0))
    account = ledger.account("a")
    with account._log.writing(), pytest.raises(dc.LedgerBusyError, match="locked by another process") as caught:
        account.charge(dc.Budget(0.5))
    assert isinstance(caught.value, dc.TryAgainError)


def test_errors_survive_being_sent_to_another_process():
    error = pickle.loads(pickle.dumps(dc.ChargeConflictError("k differs", {"k": (1, 2)})))
    assert (str(error), error.differences) == ("k differs", {"k": (1, 2)})


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, None, 7, "\x00"])
def test_names_must_be_printable(ledger, account, name):
    with pytest.raises(dc.ParameterError):
        ledger.grant(name, dc.Budget(1.0))
    with pytest.raises(dc.ParameterError):
        ledger.account(name)
    if name is not None:
        with pytest.raises(dc.ParameterError):
            account.charge(dc.Budget(1.0), charge_id=name)


def test_arguments_are_checked(ledger, account):
    with pytest.raises(dc.ParameterError, match="Budget"):
        ledger.grant("searches", 1.0)
    with pytest.raises(dc.ParameterError, match="Budget"):
        account.charge(1.0)
    with pytest.raises(dc.ParameterError, match="unit"):
        account.charge(dc.Budget(1.0), unit="event")
    with pytest.raises(dc.ParameterError, match="mechanism"):
        account.charge(dc.Budget(1.0), mechanism=None)
    with pytest.raises(dc.ParameterError, match="delta"):
        account.remaining(delta=1.5)


# --- releases and retries


def test_a_completed_release_is_returned_again_and_charged_once(account):
    assert account.begin("day 1", dc.Budget(1.0), mechanism="offset") is None
    assert account.store("day 1", b"release one") == b"release one"
    assert account.begin("day 1", dc.Budget(1.0), mechanism="offset") == b"release one"
    assert kinds(account) == ["grant", "charge", "release"]


def test_a_retry_after_a_crash_draws_under_the_same_charge(account):
    assert account.begin("day 1", dc.Budget(1.0)) is None
    assert account.begin("day 1", dc.Budget(1.0)) is None  # nothing was stored, so nothing was published
    assert account.store("day 1", b"second try") == b"second try"
    assert kinds(account) == ["grant", "charge", "release"]


def test_the_first_stored_release_wins(account):
    account.begin("day 1", dc.Budget(1.0))
    account.begin("day 1", dc.Budget(1.0))
    assert account.store("day 1", b"winner") == b"winner"
    assert account.store("day 1", b"loser") == b"winner"


@pytest.mark.parametrize(
    "other",
    [
        {"budget": dc.Budget(1.0, 1e-9)},
        {"budget": dc.Budget(0.5)},
        {"mechanism": "other"},
        {"unit": dc.User(1)},
    ],
)
def test_an_id_stands_for_one_budget_mechanism_and_unit(account, other):
    same = {"budget": dc.Budget(1.0), "mechanism": "offset", "unit": dc.Event()}
    account.begin("day 1", **same)
    account.store("day 1", b"release")
    with pytest.raises(dc.LedgerError, match="another budget, mechanism or unit"):
        account.begin("day 1", **{**same, **other})


def test_an_id_stands_for_one_request(account):
    account.begin("day 1", dc.Budget(1.0), request="digest of this")
    account.store("day 1", b"release")
    assert account.begin("day 1", dc.Budget(1.0), request="digest of this") == b"release"
    for other in ("digest of that", None):
        with pytest.raises(dc.LedgerError, match="another request"):
            account.begin("day 1", dc.Budget(1.0), request=other)
    account.begin("day 2", dc.Budget(1.0))
    account.store("day 2", b"release")
    assert account.begin("day 2", dc.Budget(1.0)) == b"release"
    with pytest.raises(dc.LedgerError, match="another request"):
        account.begin("day 2", dc.Budget(1.0), request="digest of this")


def test_a_payment_says_whether_it_charged(account):
    assert account.pay("day 1", dc.Budget(1.0)) == Payment(None, charged=True)
    assert account.pay("day 1", dc.Budget(1.0)) == Payment(None, charged=False)
    assert not account.is_stored("day 1")
    account.store("day 1", b"release")
    assert account.is_stored("day 1")
    assert account.pay("day 1", dc.Budget(1.0)) == Payment(b"release", charged=False)


def test_a_bare_charge_cannot_be_repeated_or_turned_into_a_release(account):
    account.charge(dc.Budget(1.0), charge_id="bare")
    with pytest.raises(dc.LedgerError, match="already has a charge"):
        account.charge(dc.Budget(1.0), charge_id="bare")
    with pytest.raises(dc.LedgerError):
        account.begin("bare", dc.Budget(1.0))
    with pytest.raises(dc.LedgerError, match="no charge"):
        account.store("bare", b"release")


def test_nothing_is_stored_without_a_charge(account):
    with pytest.raises(dc.LedgerError, match="no charge"):
        account.store(str(uuid.uuid4()), b"release")
    with pytest.raises(dc.ParameterError, match="bytes"):
        account.store(str(uuid.uuid4()), "release")


def test_a_refused_begin_leaves_no_charge(account):
    with pytest.raises(dc.BudgetExceededError):
        account.begin("day 1", dc.Budget(9.0))
    with pytest.raises(dc.LedgerError):
        account.store("day 1", b"release")
    assert kinds(account) == ["grant"]


def test_stored_releases_can_be_exported(ledger, account):
    account.begin("day 1", dc.Budget(1.0))
    account.store("day 1", b"\x00release\xff")
    grant, _, release = ledger.history()
    assert ledger.release_payload(release) == b"\x00release\xff"
    exported = list(ledger.export("searches"))
    assert [line["kind"] for line in exported] == kinds(account)
    assert exported[-1]["release"] == {"base64": "AHJlbGVhc2X/"}
    with pytest.raises(dc.LedgerError):
        ledger.release_payload(grant)


# --- steps of a continual release


@pytest.fixture
def stream(account):
    account.begin("stream", dc.Budget(1.0))
    account.store("stream", b"begun")
    return account


def test_steps_are_kept_in_order(stream, path):
    assert stream.last_step("stream") is None
    assert stream.step("stream", 1) is None
    assert stream.store_step("stream", 1, "a", b"one", previous=None) == Step(1, "a", b"one")
    assert stream.store_step("stream", 2, "b", b"two", previous="a") == Step(2, "b", b"two")
    again = dc.Ledger(path).account("searches")
    assert again.last_step("stream") == Step(2, "b", b"two")
    assert again.step("stream", 1) == Step(1, "a", b"one")
    assert again.step("stream", 3) is None
    assert again.spent().epsilon == 1.0  # one charge pays for all


def test_a_stored_step_is_returned_and_never_replaced(stream):
    stream.store_step("stream", 1, "a", b"one", previous=None)
    stream.store_step("stream", 2, "b", b"two", previous="a")
    assert stream.store_step("stream", 1, "a", b"one", previous=None).token == "a"  # a retry
    for previous in (None, "a", "b", "z"):
        assert stream.store_step("stream", 1, "z", b"other", previous=previous) == Step(1, "a", b"one")
        assert stream.store_step("stream", 2, "z", b"other", previous=previous) == Step(2, "b", b"two")
    assert kinds(stream) == ["grant", "charge", "release", "step", "step"]


def test_a_step_from_another_past_is_refused(stream):
    with pytest.raises(dc.LedgerError, match="does not follow"):
        stream.store_step("stream", 2, "b", b"two", previous=None)
    with pytest.raises(dc.LedgerError, match="does not follow"):
        stream.store_step("stream", 1, "a", b"one", previous="a")
    stream.store_step("stream", 1, "a", b"one", previous=None)
    for number, previous in ((2, None), (2, "z"), (3, "a"), (3, "b")):
        with pytest.raises(dc.LedgerError, match="does not follow"):
            stream.store_step("stream", number, "b", b"two", previous=previous)
    assert stream.last_step("stream") == Step(1, "a", b"one")


def test_steps_belong_to_one_charge_of_one_account(stream, ledger):
    stream.begin("other", dc.Budget(1.0))
    stream.store_step("stream", 1, "a", b"one", previous=None)
    assert stream.last_step("other") is None
    ledger.grant("clicks", dc.Budget(1.0))
    clicks = ledger.account("clicks")
    clicks.begin("stream", dc.Budget(1.0))
    assert clicks.last_step("stream") is None
    assert clicks.store_step("stream", 1, "c", b"uno", previous=None) == Step(1, "c", b"uno")
    assert stream.last_step("stream") == Step(1, "a", b"one")


def test_steps_need_a_charge_that_was_begun(account):
    account.charge(dc.Budget(1.0), charge_id="bare")
    for charge_id in ("bare", "unknown"):
        assert account.last_step(charge_id) is None
        with pytest.raises(dc.LedgerError, match="no charge"):
            account.store_step(charge_id, 1, "a", b"one", previous=None)


def test_arguments_of_steps_are_checked(stream):
    for number in (0, -1, True, 1.0, "1", 2**63):
        with pytest.raises(dc.ParameterError, match="steps are numbered from 1"):
            stream.step("stream", number)
        with pytest.raises(dc.ParameterError, match="steps are numbered from 1"):
            stream.store_step("stream", number, "a", b"one", previous=None)
    with pytest.raises(dc.ParameterError, match="token"):
        stream.store_step("stream", 1, "", b"one", previous=None)
    with pytest.raises(dc.ParameterError, match="bytes"):
        stream.store_step("stream", 1, "a", "one", previous=None)


def test_steps_are_in_the_history_with_what_was_published(stream, ledger):
    stream.store_step("stream", 1, "a", b"one", previous=None)
    event = ledger.history()[-1]
    assert (event.kind, event.charge_id, event.details["number"], event.details["token"]) == ("step", "stream", 1, "a")
    assert ledger.release_payload(event) == b"one"


def test_threads_share_an_account(ledger):
    ledger.grant("threads", dc.Budget(1.0))
    account = ledger.account("threads")
    accepted = []

    def work():
        for _ in range(3):
            with contextlib.suppress(dc.BudgetExceededError):
                accepted.append(account.charge(dc.Budget(0.125)))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted) == 8
    assert account.remaining().epsilon == 0.0


def test_a_refusal_names_the_latest_charges_oldest_first(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("searches", dc.Budget(3.0, 1e-6))
    account = ledger.account("searches")
    for name in ("first", "second", "third"):
        dc.count({"q": ["a"] * 50}, dc.Budget(1.0), ledger=account, charge_id=name)
    with pytest.raises(dc.BudgetExceededError) as caught:
        dc.count({"q": ["a"] * 50}, dc.Budget(1.0), ledger=account, charge_id="fourth")
    assert caught.value.charges == ("first", "second", "third")


def test_others_need_not_wait_while_the_library_of_tight_composition_is_loaded(path, account, monkeypatch):
    """It takes a second. A charge that plain sums do not pay waits for it without the ledger's lock."""
    loaded = []

    def load():
        dc.Ledger(path, timeout=0.1).account("searches").charge(dc.Budget(0.5), "another")
        loaded.append("now")

    monkeypatch.setattr(accounts, "is_loaded", lambda: bool(loaded))
    monkeypatch.setattr(accounts, "load", load)
    account.charge(dc.Budget(1.0), "by sums")
    assert not loaded
    with pytest.raises(dc.BudgetExceededError, match=r"spent epsilon=1\.5 in 2 charges"):
        account.charge(dc.Budget(9.0), "too much")
    assert [event.charge_id for event in account.history()] == [None, "by sums", "another"]
    assert loaded == ["now"]


@pytest.mark.parametrize(
    ("granted", "accounting"),
    [(dc.Budget(1.0, 1e-7), "basic"), (dc.Budget(1.0, 1e-7), "zcdp"), (dc.Budget.zcdp(0.1), None)],
)
def test_where_sums_decide_nothing_is_loaded(ledger, monkeypatch, granted, accounting):
    monkeypatch.setattr(accounts, "is_loaded", lambda: False)
    monkeypatch.setattr(accounts, "load", mock.Mock(side_effect=AssertionError))
    ledger.grant("sums", granted, accounting=accounting)
    with pytest.raises(dc.BudgetExceededError):
        ledger.account("sums").charge(dc.Budget(9.0))


@pytest.mark.parametrize("failure", [ImportError, KeyError, OSError])
def test_a_user_without_a_name_is_known_by_a_number(ledger, account, monkeypatch, failure):
    """As in many containers: that is no reason not to publish."""
    monkeypatch.setattr("getpass.getuser", mock.Mock(side_effect=failure))
    account.charge(dc.Budget(0.5))
    assert account.history()[-1].details["who"]["user"] == str(os.getuid())


def test_who_was_taken_over_charges_stores_and_publishes_nothing_more(account, stream):
    first = account.take_over("page", "first")
    first.begin("mine", dc.Budget(0.5))
    first.store_step("stream", 1, "a", b"one", previous=None)
    second, before = account.take_over("page", "second"), account.history()
    for operation in (
        lambda: first.charge(dc.Budget(0.5)),
        lambda: first.begin("another", dc.Budget(0.5)),
        lambda: first.begin("mine", dc.Budget(0.5)),
        lambda: first.store("mine", b"release"),
        lambda: first.store_step("stream", 2, "b", b"two", previous="a"),
        first.check_held,
        account.held_by("page", None).check_held,
    ):
        with pytest.raises(dc.errors.TakenOverError, match=r"^'page' was taken over by .*@.* at 20\d\d-"):
            operation()
    assert account.history() == before
    second.store("mine", b"release")
    second.store_step("stream", 2, "b", b"two", previous="a")
    account.take_over("another page", "third")
    second.check_held()
    account.charge(dc.Budget(0.5))  # what holds nothing is not asked


def test_what_an_operation_reads_is_of_one_moment(path, account):
    """Somebody charges meanwhile: they wait, or what they charged is not seen. Nobody takes it for damage."""
    with account._log.reading() as log:
        assert log.accounts() == ["searches"]
        with contextlib.suppress(dc.LedgerBusyError):
            dc.Ledger(path, timeout=0.05).account("searches").charge(dc.Budget(0.5))
        assert len(log.events()) == log.verify() == 1
        assert log.balance("searches").charges == 0
    account.charge(dc.Budget(0.5))
    assert account.statement().charges in (1, 2)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_what_fails_in_the_middle_of_an_operation_leaves_nothing(account, failure):
    def half_done():
        with account._log.writing() as log:
            charge = {"budget": dc.Budget(0.5).to_dict(), "unit": dc.Event().details(), "stores_release": True}
            log.append("searches", "charge", "half", charge)
            assert log.charge("searches", "half").charge is not None
            raise failure

    with pytest.raises(failure):
        half_done()
    assert (account.statement().charges, account.is_begun("half")) == (0, False)
    account.charge(dc.Budget(4.0), "half")
