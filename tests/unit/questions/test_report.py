"""Reports: one budget, one charge, one answer to each question."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import WordError
from discreet.noise import seeded_source
from discreet.privacy.accounting import Charge, Tally
from discreet.questions.answer import data_of
from discreet.questions.report import Report, part_of, read_report
from discreet.releases.payment import Payer, answer_of

PEOPLE = 400
TABLE = pa.table(
    {
        "who": [f"p{number % PEOPLE}" for number in range(4000)],
        "path": [f"/{number % 7}" for number in range(4000)],
        "size": [float(number % 100) for number in range(4000)],
        "time": [1_790_812_800 + 700 * number for number in range(4000)],
    }
)
QUESTIONS = {
    "Pages": dc.Top(column="path", k=5),
    "By day": dc.Top(column="path", k=3, every="1w", time="time"),
    "People": dc.Count(),
    "Sizes": dc.Quantiles(column="size", range=(0, 100), quantiles=[0.5, 0.9]),
}
BUDGET = dc.Budget(2.0, 1e-6)


def report(questions=QUESTIONS, budget=BUDGET, **words) -> Report:
    return Report(questions, budget, **{"user": "who", **words})


def payloads(found) -> list[bytes]:
    return [part.answer.to_payload() for part in found.parts]


# ---- The budget


@pytest.mark.parametrize("budget", [dc.Budget(0.7), dc.Budget(1.1, 1e-7), dc.Budget.zcdp(0.3)])
@pytest.mark.parametrize("shares", [None, [0.1, 0.2, 0.3, 0.4], [0.7, None, None, 0.1], [1 / 3, 1 / 3, None, None]])
def test_shares_never_add_up_to_more_than_the_budget(budget, shares):
    asked = report(shares=shares)
    parts = [part_of(budget, share) for share in asked.shares]
    for name in ("epsilon", "delta", "rho"):
        whole = getattr(budget, name)
        if whole is not None:
            total = sum(Fraction(getattr(part, name)) for part in parts)
            assert Fraction(whole) * (1 - Fraction(1, 10**12)) <= total <= Fraction(whole)


def test_more_numbers_get_a_larger_share():
    pages, by_day, people, sizes = report().shares
    assert by_day > sizes > pages > people
    assert sum(report().shares) == 1
    assert [float(share) for share in report(shares={"People": 0.25}).shares][2] == 0.25


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ([0.5, 0.5, 0.5, 0.5], "add up to 2"),
        ([0.1, 0.1, 0.1, 0.1], "make them add up to 1"),
        ([0.5, 0.5, None, None], "leave some"),
        ([0.5, -0.1, None, None], "share"),
        ([0.5], "shares has 1 number for 4 questions; give one for each"),
        ({"Poeple": 0.5}, "did you mean 'People'"),
    ],
)
def test_shares_that_are_none(shares, told):
    with pytest.raises(dc.ParameterError, match=told):
        report(shares=shares)


def spent_together(asked: Report, budget: dc.Budget) -> tuple[float, Fraction, bool]:
    """What all mechanisms cost at most: basic composition of the pool and of the others; whether there is a pool."""
    found = list(asked.ways(data_of(TABLE), budget).values())
    alone = [part for _, part in found]
    if sum(Fraction(part.epsilon) for part in alone) <= Fraction(budget.epsilon):
        return float(sum(Fraction(part.epsilon) for part in alone)), sum(Fraction(part.delta) for part in alone), False
    pool = [way.costs() for way, _ in found if way.costs() is not None]
    others = [part for way, part in found if way.costs() is None]
    share = sum(s for s, (way, _) in zip(asked.shares, found, strict=True) if way.costs() is not None)
    delta = share * Fraction(budget.delta)
    epsilon = Tally.of(pool).cost(float(delta) * (1 - 1e-15))
    return (
        epsilon + sum(part.epsilon for part in others),
        delta + sum(Fraction(part.delta) for part in others),
        True,
    )


@pytest.mark.parametrize("budget", [dc.Budget(2.0, 1e-6), dc.Budget(0.3, 1e-9), dc.Budget(5.0, 1e-5)])
def test_a_pool_gets_more_and_still_fits_the_budget(budget):
    epsilon, delta, pooled = spent_together(report(budget=budget, shares=[0.3, 0.3, 0.2, 0.2]), budget)
    assert pooled
    assert epsilon <= budget.epsilon * (1 + 1e-12)
    assert delta <= Fraction(budget.delta) * (1 + Fraction(1, 10**12))
    assert epsilon > 0.97 * budget.epsilon  # and little is wasted
    # Two equal Gaussians together: a factor of nearly sqrt(2) for each.
    parts = [part for _, part in report(shares=[0.3, 0.3, 0.2, 0.2]).ways(data_of(TABLE), budget).values()]
    assert parts[0].epsilon > 1.3 * 0.3 * budget.epsilon
    assert parts[2].epsilon == pytest.approx(0.2 * budget.epsilon)


def test_a_twin_without_composition_is_caught(monkeypatch):
    """Every question with the whole budget: the same sums show it."""
    monkeypatch.setattr("discreet.questions.report.part_of", lambda budget, share: budget)
    epsilon, delta, _ = spent_together(report(), BUDGET)
    assert epsilon > BUDGET.epsilon or delta > BUDGET.delta


def test_a_report_is_one_charge(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger")
    ledger.grant("people", dc.Budget(10.0, 1e-5))
    account = ledger.account("people")
    found = report().answer(TABLE, ledger=account, charge_id="october")
    assert found.payment == "charged"
    charges = [event for event in ledger.history("people") if event.kind == "charge"]
    assert [event.charge_id for event in charges] == ["october"]
    assert dc.Budget.from_dict(charges[0].details["budget"]) == BUDGET
    assert charges[0].details["question"]["question"] == "report"


def test_an_account_of_rhos_is_charged_the_sum_of_what_the_mechanisms_say():
    way = report().way(data_of(TABLE), BUDGET)
    rho = delta = Fraction(0)
    for each, part in report().ways(data_of(TABLE), BUDGET).values():
        rho += Fraction(each.costs().rho) if each.costs() else Fraction(part.epsilon) ** 2 / 2
        delta += Fraction(each.costs().delta if each.costs() else part.delta)
    assert way.costs() == Charge(None, way.costs().delta, rho=way.costs().rho)
    assert (way.costs().delta, way.costs().rho) == (pytest.approx(float(delta)), pytest.approx(float(rho)))
    assert Fraction(way.costs().rho) >= rho * (1 - Fraction(1, 10**12))
    assert Fraction(way.costs().delta) >= delta


# ---- Answers


def test_a_replay_is_the_same_bit_for_bit_and_reads_nothing(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger")
    ledger.grant("people", dc.Budget(10.0, 1e-5))
    file = tmp_path / "log.csv"
    file.write_text("who,path\n" + "".join(f"p{n % 300},/{n % 5}\n" for n in range(3000)))
    asked = report({"Pages": dc.Top(column="path", k=5), "People": dc.Count()})
    how = {"ledger": ledger.account("people"), "charge_id": "one"}
    first = asked.answer(dc.read(file), **how)
    file.unlink()
    again = asked.answer(dc.read(file), **how)
    assert (first.payment, again.payment) == ("charged", "replayed")
    assert first.to_payload() == again.to_payload()
    assert first.to_json() == again.to_json()
    assert first.to_html() == again.to_html()
    assert answer_of(first.to_payload()).to_payload() == first.to_payload()
    with pytest.raises(dc.LedgerError, match="questions"):
        report({"Pages": dc.Top(column="path", k=6), "People": dc.Count()}).answer(dc.read(file), **how)


@pytest.mark.parametrize("title", QUESTIONS)
def test_a_report_of_one_question_is_that_question(title):
    question = QUESTIONS[title]
    found = report({title: question}).answer(TABLE, source=seeded_source(5))
    alone = dc.answer(replace(question, user="who"), TABLE, BUDGET, Payer(source=seeded_source(5)))
    assert found.confidence == found.each_confidence == 0.95
    told = [json.loads(each.to_payload()) for each in (found[title], alone)]
    for each in told:
        each.pop("asked", None)
        each.get("told", {}).pop("time", None)
    assert told[0] == told[1]


def test_intervals_hold_together():
    found = report().answer(TABLE, source=seeded_source(1))
    assert found.each_confidence == pytest.approx(1 - 0.05 / 4)
    assert found["Sizes"].confidence == found.each_confidence
    wide = found["People"].upper - found["People"].lower
    part = found.parts[2].budget
    # Laplace noise of scale 1/epsilon at 98.75 %
    assert wide / 2 == pytest.approx(math.log(1 / 0.0125) / part.epsilon, rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (dc.Top(column="path", k=5, memory="1MB"), "question 'Wrong': .*memory"),
        (dc.Histogram(column="path", universe=["a"]), "question 'Wrong': max_items is missing"),
    ],
)
def test_a_refused_question_reads_and_spends_nothing(tmp_path, wrong, told):
    ledger = dc.Ledger(tmp_path / "ledger")
    ledger.grant("people", dc.Budget(10.0, 1e-5))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"no rows")  # which is another error where anything is read
    asked = report({"Pages": dc.Top(column="path", k=5), "Wrong": wrong})
    with pytest.raises(dc.DiscreetError, match=told):
        asked.answer(dc.read(damaged), ledger=ledger.account("people"), charge_id="x")
    assert [event.kind for event in ledger.history("people")] == ["grant"]


def test_units_are_not_mixed():
    asked = Report([dc.Count(user="who"), dc.Top(column="path")], BUDGET)
    with pytest.raises(dc.ParameterError, match=r"'Top 100 of path' hides one event.*must hide the same"):
        asked.answer(TABLE)
    with pytest.raises(dc.ParameterError, match="user must be the same as the report's"):
        report([dc.Count(user="path")])
    with pytest.raises(dc.ParameterError, match="confidence belongs to the report"):
        report([dc.Count(confidence=0.9)])


def test_words_of_the_report_are_those_of_its_questions():
    asked = report([dc.Count(where="size < 50"), dc.Count()], where="size > 10", nulls="skip")
    first, second = asked.questions.values()
    assert (first.where, second.where) == ("(size > 10) AND (size < 50)", "size > 10")
    assert first.nulls == second.nulls == "skip"
    assert list(asked.questions) == ["People where size < 50", "People"]


@pytest.mark.parametrize(
    ("question", "title"),
    [
        (dc.Top(column="URL", k=5, where="status = 'OK'"), "Top 5 of URL where status = 'OK'"),
        (dc.Top(column=["Land", "URL"], by="Shop"), "Top 100 of Land and URL by Shop"),
        (dc.Distinct(column="IP"), "Different values of IP"),
        (dc.Count(user="IP", every="1d", time="T"), "People every 1d"),
        (dc.Mean(column="Bytes", range=(0, 1)), "Mean of Bytes"),
    ],
)
def test_titles_spell_columns_and_conditions_as_they_are(question, title):
    assert list(Report([question], BUDGET).questions) == [title]


def test_what_is_no_report():
    for wrong in ([], {}, ["top"], [report()]):
        with pytest.raises(dc.ParameterError, match="question"):
            Report(wrong, BUDGET)
    with pytest.raises(TypeError, match="did you mean 'title'"):
        report(titel="x")
    with pytest.raises(dc.ParameterError, match="budget must be"):
        Report([dc.Count()], 1.0)


def test_answers_are_found_by_title_and_place():
    found = report().answer(TABLE, source=seeded_source(2))
    assert found[2] is found["People"]
    assert len(found) == 4
    assert found.titles == list(QUESTIONS)
    with pytest.raises(KeyError, match="no question 'Poeple'"):
        found["Poeple"]
    assert not found.is_private
    assert "NOT PRIVATE" in found.to_html()
    assert set(found.to_csv()) == {"1-pages", "2-by-day", "3-people", "4-sizes"}
    assert found.to_csv()["3-people"].startswith("count,lower,upper\n")
    for title in QUESTIONS:
        assert title in found.to_table()
        assert title in found._repr_html_()


# ---- TOML


TOLD = {
    "title": "October",
    "user": "who",
    "time": "time",
    "epsilon": 2.0,
    "delta": 1e-6,
    "data": {"files": "log.csv", "format": "csv"},
    "questions": [
        {"kind": "top", "column": "path", "k": 5, "every": "1d"},
        {"kind": "histogram", "title": "Few", "column": "path", "universe": ["/1", "/2"], "max_items": 2, "share": 0.2},
    ],
}


def test_toml_has_the_words_of_the_questions():
    asked, how = read_report(TOLD)
    assert how == {"files": "log.csv", "format": "csv"}
    assert asked.budget == BUDGET
    top, few = asked.questions.values()
    assert (top.time, top.user, few.user) == ("time", "who", "who")
    assert float(asked.shares[1]) == 0.2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"titel": "x"}, "the report has no word 'titel'; did you mean 'title'"),
        ({"data": {"fromat": "csv"}}, r"\[data\] has no word 'fromat'; did you mean 'format'"),
        ({"data": "log.csv"}, "data must be a table"),
        ({"questions": []}, "has no questions; add one"),
        ({"questions": [{"kind": "tpo"}]}, "did you mean 'top'"),
        ({"questions": [{"column": "path"}]}, "kind must be one of top, count"),
        ({"questions": [{"kind": "top", "colum": "path"}]}, "question 1 has no word 'colum'; did you mean 'column'"),
        ({"questions": [{"kind": "top", "k": 0}]}, "k must be"),
        ({"questions": [{"kind": "count"}, {"kind": "count"}]}, "same title"),
        ({"rho": 0.1}, "rho cannot be combined with epsilon"),
        ({"epsilon": -1}, "epsilon must be"),
    ],
)
def test_wrong_words_of_toml_get_the_nearest_right_one(change, told):
    with pytest.raises(dc.ParameterError, match=told):
        read_report({**TOLD, **change})
    with pytest.raises(dc.ParameterError, match="no budget given"):
        read_report({name: value for name, value in TOLD.items() if name != "epsilon"})


@pytest.mark.parametrize("words", [{}, {"time": "when"}])
def test_a_report_says_where_the_times_are(words):
    column = words.get("time", "time")
    times = [f"2026-10-0{1 + n % 2}T10:00:00" for n in range(4000)]
    table = pa.table({"path": ["/a"] * 4000, "visitor": [str(n) for n in range(4000)], column: times})
    asked = [dc.Top(column="path", k=1, every="1d"), dc.Distinct(column="visitor", every="1d")]
    found = dc.Report(asked, dc.Budget(8.0, 1e-6), user="visitor", **words).answer(table)
    assert [len(part.answer) for part in found.parts] == [2, 2]
    with pytest.raises(WordError, match="every needs time"):
        dc.top_k(table, 1, dc.Budget(8.0, 1e-6), column="path", user="visitor", every="1d")


# ---- What fails on the way


def test_what_was_counted_is_let_go_when_a_later_question_fails(monkeypatch):
    """People that do not fit the memory lie in files of a private folder, which nobody else removes."""
    opened, closed = [], []
    counted = dc.Top.way

    def way(self, data, budget):
        made = counted(self, data, budget)
        return replace_way(made, lambda: opened.append(self.k) or made.count(), lambda found: closed.append(self.k))

    def replace_way(made, count, close):
        return replace(made, count=count, close=close)

    def failing(self, data, budget):
        def fails():
            raise dc.DataError("no rows")

        return replace(people(self, data, budget), count=fails)

    people = dc.Count.way
    monkeypatch.setattr(dc.Top, "way", way)
    questions = {"One": dc.Top(column="path", k=1), "Two": dc.Top(column="path", k=2), "Three": dc.Count()}
    report(questions).answer(TABLE)
    assert sorted(opened) == sorted(closed) == [1, 2]
    opened.clear(), closed.clear()
    monkeypatch.setattr(dc.Count, "way", failing)
    with pytest.raises(dc.DataError, match="question 'Three': no rows"):
        report(questions).answer(TABLE)
    assert sorted(opened) == sorted(closed)
    assert opened


def test_an_error_in_a_question_names_it_and_keeps_its_kind():
    asked = report({"{Odd}": dc.Sum(column="path", range=(0, 1))})
    with pytest.raises(dc.DataError, match=r"question '\(Odd\)': .*numbers"):
        asked.answer(TABLE)
    with pytest.raises(WordError, match="question 'Mine': value needs value_range"):
        read_report({**TOLD, "questions": [{"kind": "top", "title": "Mine", "column": "path", "value": "size"}]})


@pytest.mark.parametrize("share", [0.1, 0.75])
def test_a_share_of_a_question_in_toml_is_its_share(share):
    questions = [{"kind": "count", "share": share}, {"kind": "distinct", "column": "path"}]
    asked, _ = read_report({**TOLD, "questions": questions})
    assert [float(each) for each in asked.shares] == [pytest.approx(share), pytest.approx(1 - share)]


@pytest.mark.parametrize("change", [{"rho": 0.1}, {"rho": 0.1, "epsilon": None}, {"rho": 0.1, "delta": None}])
def test_a_report_has_one_kind_of_budget(change):
    told = {name: value for name, value in {**TOLD, **change}.items() if value is not None}
    with pytest.raises(dc.ParameterError, match="rho cannot be combined with epsilon or delta"):
        read_report(told)
