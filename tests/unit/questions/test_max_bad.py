"""max_bad: what cannot be read is not published, and a private test says so."""

import math
from fractions import Fraction

import pytest
from tests.commands import run_here

import discreet as dc
from discreet.central import BadShare
from discreet.noise import seeded_source
from discreet.questions.bad_rows import SHARE

BUDGET = dc.Budget(1.0)


@pytest.fixture
def orders(tmp_path):
    path = tmp_path / "orders.csv"
    rows = (f"c{i},2026-03-{1 + i % 28:02},{i % 90}\n" for i in range(3000))
    path.write_text("who,day,amount\n" + "".join(rows))
    return path


@pytest.mark.parametrize("who", [{}, {"user": "who"}], ids=["rows", "people"])
def test_a_column_of_dates_is_not_published_as_numbers(orders, who):
    """Without a test the answer is noise; with it there is none. Wrong with probability 1e-6 at most."""
    words = {"range": (0, 100), "max_bad": "10%", **who}
    with pytest.raises(dc.TooManyBadRowsError, match=r"more than 10% of the .* according to a private test") as refused:
        dc.quantiles(dc.read(orders), BUDGET, [0.5], column="day", **words)
    assert "3000" not in str(refused.value)
    assert "3,000" not in str(refused.value)
    found = dc.quantiles(dc.read(orders), BUDGET, [0.5], column="amount", **words)
    assert found[0.5].value == pytest.approx(45, abs=10)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (1.0, 0.0)
    assert any("test of bad rows" in told for told in found.guarantee.assumptions)


def test_every_question_of_files_takes_it(orders, tmp_path):
    (tmp_path / "damaged.csv").write_text("who,day,amount\n" + "a,b\n" * 3000)
    damaged, words = dc.read(tmp_path / "damaged.csv"), {"max_bad": 0.25}
    asked = {
        "top": lambda data: dc.top_k(data, 3, dc.Budget(1.0, 1e-6), column="day", **words),
        "count": lambda data: dc.count(data, BUDGET, **words),
        "distinct": lambda data: dc.distinct(data, BUDGET, column="day", **words),
        "histogram": lambda data: dc.histogram(data, BUDGET, column="amount", universe=["1", "2"], **words),
        "quantiles": lambda data: dc.quantiles(data, BUDGET, [0.5], column="amount", range=(0, 90), **words),
    }
    for question in asked.values():
        assert question(dc.read(orders)).guarantee.epsilon == 1.0
        with pytest.raises(dc.TooManyBadRowsError):
            question(damaged)


def test_a_refusal_is_the_answer_to_its_charge_id_and_costs_the_test_alone(orders, tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("shop", dc.Budget(2.0), accounting="basic")
    paid = {"ledger": ledger.account("shop"), "charge_id": "monday"}
    words = {"range": (0, 100), "max_bad": 0.1}
    for _ in range(2):
        with pytest.raises(dc.TooManyBadRowsError):
            dc.quantiles(dc.read(orders), BUDGET, [0.5], column="day", **words, **paid)
        assert ledger.account("shop").spent().epsilon == pytest.approx(SHARE)
        orders.unlink(missing_ok=True)  # the second time nothing is read, or drawn


def test_an_answer_costs_the_budget_and_is_had_again(orders, tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("shop", dc.Budget(1.0), accounting="basic")
    paid = {"ledger": ledger.account("shop"), "charge_id": "monday", "column": "amount", "max_bad": 0.1}
    first = dc.count(dc.read(orders), BUDGET, **paid)
    assert ledger.account("shop").spent().epsilon == pytest.approx(1.0)
    orders.unlink()
    again = dc.count(dc.read(orders), BUDGET, **paid)
    assert (again.value, again.payment, first.payment) == (first.value, "replayed", "charged")
    with pytest.raises(dc.BudgetExceededError):
        dc.count(dc.read(orders), BUDGET, ledger=ledger.account("shop"), max_bad=0.1)
    with pytest.raises(dc.LedgerError, match="max_bad"):
        dc.count(dc.read(orders), BUDGET, **{**paid, "max_bad": 0.2})


def test_a_person_with_one_readable_row_is_good_and_many_bad_rows_of_one_are_one(tmp_path):
    path = tmp_path / "orders.csv"
    good = "".join(f"c{i},{i % 90}\nc{i},oops\n" for i in range(2000))
    path.write_text("who,amount\n" + good + "mallory,oops\n" * 9000)
    words = {"column": "amount", "range": (0, 100), "max_bad": 0.1}
    with pytest.raises(dc.TooManyBadRowsError):
        dc.quantiles(dc.read(path), BUDGET, [0.5], **words)
    assert dc.quantiles(dc.read(path), BUDGET, [0.5], user="who", **words)[0.5].value == pytest.approx(45, abs=15)


def test_the_words(tmp_path, orders):
    for wrong in (0, 1, "0%", "100%", "a tenth", 0.00001, True, "nan"):
        with pytest.raises(dc.ParameterError, match="max_bad must be a share"):
            dc.Count(max_bad=wrong)
    assert dc.Count(max_bad="2.5%") == dc.Count(max_bad=0.025)
    assert dc.Count(max_bad="2.5%").to_dict()["max_bad"] == 0.025
    with pytest.raises(dc.ParameterError, match="max_bad cannot be combined with bad_rows error"):
        dc.Count(max_bad=0.1, bad_rows="error")
    for data in ({"a": [1]}, dc.read(orders, sql="select who from files", rows_of_the_result_are_the_events=True)):
        with pytest.raises(dc.ParameterError, match="max_bad is for files"):
            dc.count(data, BUDGET, max_bad=0.1)


def test_the_command(tmp_path, orders):
    words = ["quantiles", orders, "--range", 0, 100, "--epsilon", 1, "--max-bad", "10%"]
    done = run_here(*words, "--column", "day")
    assert (done.returncode, done.stdout) == (4, "")
    assert "more than 10% of the rows could not be read, according to a private test" in done.stderr
    assert run_here(*words, "--column", "amount").returncode == 0
    shown = run_here("plan", "--questions", "--epsilon", 1).stdout
    assert "max_bad=10%, for 5% of the budget" in shown


@pytest.mark.parametrize("unit", [dc.Event(), dc.User()])
@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(2, 3), Fraction(1, 10_000)])
def test_the_law_of_the_outcome_is_within_epsilon_and_good_data_pass(unit, share):
    """P[refused] for every statistic around the cut, against one that a unit away: both outcomes, both directions."""
    test = BadShare(dc.Budget(0.5), share, unit)
    decay = math.exp(-1 / float(test.scale))

    def refused(statistic):
        least = test.cut - statistic + 1  # P[Z >= least]
        above = decay ** max(least, 1 - least) / (1 + decay)
        return above if least > 0 else 1 - above

    step = max(1, test.cut // 200)
    for statistic in range(-2 * test.cut, 3 * test.cut, step):
        here = refused(statistic)
        for away in (1, test.sensitivity):
            there = refused(statistic + away)
            assert here <= there <= math.exp(0.5 * (1 + 1e-9)) * here + 1e-15
            assert 1 - there <= 1 - here + 1e-15 <= math.exp(0.5 * (1 + 1e-9)) * (1 - there) + 2e-15
    assert refused(0) <= 1e-6 < refused(test.sensitivity + test.cut // 10)
    assert not any(test.draw(0, seeded_source(seed)) for seed in range(200))
    assert all(test.draw(2 * test.cut + 1, seeded_source(seed)) for seed in range(200))


@pytest.mark.parametrize("budget", [dc.Budget(0.5), dc.Budget.zcdp(0.125)], ids=str)
@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2), Fraction(2, 3), Fraction(9_999, 10_000)])
def test_noise_is_for_the_row_or_person_that_moves_the_statistic_most(budget, share):
    """Above one half that is a good row; a person may be good in place of bad."""
    for unit in (dc.Event(), dc.User()):
        test = BadShare(budget, share, unit)
        at = {(bad, good): test.statistic(bad, good) for bad in range(5) for good in range(5)}
        near = {(1, 0), (0, 1)} | ({(1, -1)} if unit == dc.User() else set())
        most = max(
            abs(value - at[bad + b, good + g])
            for (bad, good), value in at.items()
            for b, g in near
            if (bad + b, good + g) in at
        )
        scale = most / 0.5 if budget.rho is None else most / math.sqrt(2 * budget.rho)
        assert scale <= float(test.scale) * (1 + 1e-12) <= scale * (1 + 1e-6)


def test_an_account_that_can_pay_the_test_and_not_the_question_pays_neither(orders, tmp_path):
    """Known before anything is read: the test would be paid for, and its answer could not be given."""
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("shop", dc.Budget(1.0), accounting="basic")
    account = ledger.account("shop")
    orders.unlink()
    with pytest.raises(dc.BudgetExceededError):
        dc.count(dc.read(orders), dc.Budget(1.03), max_bad=0.1, ledger=account)
    assert [event.kind for event in account.history()] == ["grant"]


def test_the_test_and_the_question_are_charged_about_the_same_days(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,day\n" + "".join(f"w{n},2026-11-15\n" for n in range(3000)))
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("site", dc.Budget(1.0), accounting="basic", unit=dc.User(per="1d"))
    words = {"user": "who", "unit": "person-day", "time": "day", "period": "2026-11-15", "max_bad": 0.1}
    found = dc.count(dc.read(path), BUDGET, **words, ledger=ledger.account("site"))
    charges = [event for event in ledger.history("site") if event.kind == "charge"]
    assert [event.details["period"] for event in charges] == [charges[0].details["period"]] * 2
    assert found.guarantee.unit == dc.User(per="1d")
    spent = [ledger.account("site").statement(day).spent.epsilon for day in ("2026-11-15", "2026-11-16")]
    assert spent == [pytest.approx(1.0), 0.0]
