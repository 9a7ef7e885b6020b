"""What a charge id stands for, what is charged once, and what is said of it, where one detail decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import Offset
from discreet.questions.first_question import likely
from discreet.questions.plans import preview
from discreet.releases.payment import Payer

BUDGET = dc.Budget(1.0, 1e-6)
TABLE = pa.table({"g": ["x"] * 400 + ["y"] * 300, "v": [1.0] * 700, "who": [f"w{n}" for n in range(700)]})


@pytest.fixture
def ledger(tmp_path):
    made = dc.Ledger(tmp_path / "budgets.sqlite")
    made.grant("a", dc.Budget(1.0, 1e-6))
    return made


def sketch(capacity=64):
    made = dc.MisraGries(capacity)
    made.update(TABLE["g"])
    return made


def test_what_was_charged_before_is_answered_where_nothing_is_left(ledger, monkeypatch):
    """A process that died between the charge and the release: asking again is no new charge, and not refused as one."""
    account = ledger.account("a")
    words = {"column": "g", "ledger": account, "charge_id": "monday"}
    with monkeypatch.context() as broken:
        broken.setattr(dc.Release, "to_payload", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dc.top_k(TABLE, 2, BUDGET, **words)
    assert account.statement().charges == 1
    found = dc.top_k(TABLE, 2, BUDGET, **words)
    assert (found.payment, found.items) == ("charged before", ["x", "y"])
    with pytest.raises(dc.BudgetExceededError):
        dc.top_k(TABLE, 2, BUDGET, column="g", ledger=account)


def test_a_test_of_bad_rows_that_passed_is_not_paid_again(ledger, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("g\n" + "x\n" * 3000)
    ledger.grant("exact", dc.Budget(1.0), accounting="basic")  # no more than both cost
    account = ledger.account("exact")
    words = {"max_bad": 0.1, "ledger": account, "charge_id": "monday"}
    with monkeypatch.context() as broken:
        broken.setattr(Payer, "pay", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dc.count(dc.read(path), dc.Budget(1.0), **words)
    assert [event.charge_id for event in account.history() if event.kind == "charge"] == ["monday/bad-rows"]
    assert dc.count(dc.read(path), dc.Budget(1.0), **words).payment == "charged"
    assert account.statement().charges == 2


@pytest.mark.parametrize("parts", [None, 1])
def test_a_charge_id_stands_for_the_size_of_a_sketch(ledger, parts):
    words = {"ledger": ledger.account("a"), "charge_id": "c"}
    first = dc.release(sketch(64), BUDGET, **words)
    assert dc.release(sketch(64), BUDGET, **words).to_payload() == first.to_payload()
    with pytest.raises(dc.ChargeConflictError, match="summary was"):
        dc.release(sketch(32), BUDGET, **words)


def test_a_release_says_in_how_many_parts_a_user_may_be():
    made = dc.UserMisraGries(64, 2)
    made.update([["a", "b"]] * 900)
    for parts in (None, 2):
        asked = dc.release(made, BUDGET, unit=dc.User(2), parts_per_user=parts).asked
        assert asked.parameters.get("parts_per_user") == parts


def test_a_ready_mechanism_leaves_the_total_its_share():
    """Its noise is that of what is left: both cost the budget together."""
    mechanism = Offset(BUDGET, 64)
    alone = dc.release(sketch(), BUDGET, mechanism)
    shared = dc.release(sketch(), BUDGET, mechanism, total_share=0.5)
    rows = dc.top_k(TABLE["g"], 2, BUDGET, mechanism=mechanism, total_share=0.5)
    assert alone.error_model.noise.scale == mechanism.scale
    assert shared.error_model.noise.scale == rows.error_model.noise.scale == pytest.approx(2 * mechanism.scale)
    assert shared.guarantee.epsilon == rows.guarantee.epsilon == 1.0


@pytest.mark.parametrize("question", [
    dc.Count(), dc.Count(user="who"), dc.Count(by="g"), dc.Distinct(column="g"), dc.Sum(column="v", range=(0, 1)),
    dc.Mean(column="v", range=(0, 1), by="g"), dc.Histogram(column="g", universe=["x"]),
    dc.Quantiles(column="v", range=(0, 1)), dc.Quantiles(column="v", range=(0, 1), by="g"),
    dc.Top(column="g", user="who"),
])  # fmt: skip
def test_bad_rows_of_tables_cannot_be_errors_where_they_are_left_out(question):
    with pytest.raises(dc.ParameterError, match="bad_rows error works with files"):
        dc.answer(replace(question, bad_rows="error"), TABLE, BUDGET)


def test_the_parts_of_a_report_keep_their_own_promise(ledger):
    questions = {"Rows": dc.Count(), "Values": dc.Distinct(column="g")}
    found = dc.Report(questions, dc.Budget(1.0)).answer(TABLE, ledger=ledger.account("a"))
    again = dc.Report(questions, dc.Budget(1.0)).answer(TABLE)
    assert found.guarantee.epsilon == 1.0
    assert [each.guarantee for each in found] == [each.guarantee for each in again]
    assert sum(each.guarantee.epsilon for each in found) <= 1.0


@pytest.mark.parametrize(("word", "names", "found"), [
    ("user", ["Path", "IP"], "IP"), ("user", ["path", "User_ID", "ip"], "User_ID"), ("user", ["path"], None),
    ("time", ["Timestamp"], "Timestamp"), ("time", ["user"], None),
])  # fmt: skip
def test_columns_are_guessed_by_their_names_however_they_are_spelled(word, names, found):
    assert likely(word, names) == found


@pytest.mark.parametrize(("question", "hides"), [
    (dc.Top(unit=dc.User()), "one person, with all of their rows"),
    (dc.Top(column="g", user="who"), "one person, with all of their rows"),
    (dc.Top(column="g", unit=dc.Event()), "one row"),
    (dc.Count(user="who", unit="person-day", time="t"), "what one person did within a span"),
])  # fmt: skip
def test_a_preview_says_whom_it_hides(question, hides):
    assert preview(question, BUDGET)[0] == f"It hides {hides}."


@pytest.mark.parametrize("people", [10, 999, 10**6])
def test_a_plan_of_people_states_shares_of_all_of_them(people):
    for row in dc.plan_people(people, BUDGET).rows:
        assert row.share == pytest.approx(row.found_from / people)


def test_twice_by_place_and_by_name_is_refused():
    for ask in (
        lambda: dc.quantiles(TABLE, BUDGET, [0.5], quantiles=[0.9], column="v", range=(0, 1)),
        lambda: dc.distinct(TABLE, BUDGET, budget=BUDGET, column="g"),
    ):
        with pytest.raises(TypeError, match="pass the rest by name"):
            ask()


def test_a_release_is_of_what_was_there_when_it_was_asked(monkeypatch):
    """Other threads may go on counting: rows that come while noise is drawn are no part of it."""
    made = sketch(2)
    draw = Offset.draw

    def meanwhile(self, summary, source):
        made.update(np.array(["z"] * 10**5))
        return draw(self, summary, source)

    monkeypatch.setattr(Offset, "draw", meanwhile)
    assert "z" not in dc.release(made, BUDGET)
