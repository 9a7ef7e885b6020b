"""Groups that nobody listed: finding them and answering cost the budget, together. And what all answers rest on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import discreet as dc
from discreet.engines.sql import ASSUMED
from discreet.noise import seeded_source, system_source
from discreet.questions import quantiles
from discreet.releases.payment import Payer

BUDGET = dc.Budget(2.0, 1e-3)
WHO = {"user": "who"}
TABLE = {
    "g": ["x", "y"] * 600,
    "v": [float(n % 9) for n in range(1200)],
    "i": [f"i{n % 5}" for n in range(1200)],
    "j": [f"j{n}" for n in range(1200)],
    "who": [f"w{n % 500}" for n in range(1200)],
}
ASKED = {
    "distinct": (dc.Distinct(column="j", by="g", max_items=2, **WHO), 0.5),
    "histogram": (dc.Histogram(column="i", universe=["i0", "i1"], by="g"), 0.75),
    "histogram of people": (dc.Histogram(column="i", universe=["i0", "i1"], by="g", max_items=2, **WHO), 0.5),
    "quantiles": (dc.Quantiles(column="v", range=(0, 9), by="g"), 0.75),
    "quantiles of people": (dc.Quantiles(column="v", range=(0, 9), by="g", **WHO), 0.5),
}


def with_groups(question):
    return replace(question, groups=["x", "y"])


def asked(question, budget, table=TABLE, source=None):
    return dc.answer(question, table, budget, Payer(source=source or seeded_source(5)))


@pytest.mark.parametrize("name", ["distinct", "histogram", "histogram of people"])
def test_answers_have_what_finding_the_groups_has_left(name):
    """Intervals reach as far down as those of listed groups with this part of the budget; with all of it, less far."""
    question, left = ASKED[name]

    def reaches(question, budget):
        return sorted(value - max(lower, 0.0) for *_, value, lower, _ in asked(question, budget))

    part, _ = BUDGET.split(left)
    found = reaches(question, BUDGET)
    assert found == reaches(with_groups(question), part)
    assert found[0] > reaches(with_groups(question), BUDGET)[0]


@pytest.mark.parametrize("name", ["quantiles", "quantiles of people"])
def test_quantiles_have_what_finding_the_groups_has_left(name, monkeypatch):
    """Their intervals depend on the numbers, so the budget is seen where the mechanism is chosen."""
    question, left = ASKED[name]
    budgets, choose = [], quantiles.mechanism_for
    monkeypatch.setattr(quantiles, "mechanism_for", lambda budget, *more, **how: budgets.append(budget)
                        or choose(budget, *more, **how))  # fmt: skip
    for one, spent in ((question, BUDGET.split(left)[0]), (with_groups(question), BUDGET)):
        budgets.clear()
        asked(one, BUDGET)
        assert set(budgets) == {spent}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("listed", [False, True])
def test_the_guarantee_states_all_that_was_spent_and_a_seed(name, listed):
    question = with_groups(ASKED[name][0]) if listed else ASKED[name][0]
    promised = asked(question, BUDGET).guarantee
    assert promised.epsilon == BUDGET.epsilon
    assert promised.seeded
    assert promised.delta in ((0.0, BUDGET.delta) if listed else (BUDGET.delta,))
    public = "the list of groups is public: it was not made from the data"
    assert (public in promised.assumptions) == listed
    assert not asked(question, BUDGET, source=system_source()).guarantee.seeded


EVERY = {
    **{name: question for name, (question, _) in ASKED.items()},
    "top": dc.Top(column="i"),
    "top by group": dc.Top(column="i", by="g"),
    "top of people": dc.Top(column="i", **WHO),
    "count": dc.Count(),
    "count of people": dc.Count(**WHO),
    "count by group": dc.Count(by="g"),
    "sum": dc.Sum(column="v", range=(0, 9)),
    "mean of people": dc.Mean(column="v", range=(0, 9), **WHO),
    "variance by group": dc.Variance(column="v", range=(0, 9), by="g"),
    "distinct of groups": dc.Distinct(column="i", by="g"),
    "distinct of all": dc.Distinct(column="i"),
    "distinct of people": dc.Distinct(column="i", **WHO),
    "histogram of all": dc.Histogram(column="i", universe=["i0", "i1"]),
    "quantiles of all": dc.Quantiles(column="v", range=(0, 9)),
    "report": dc.Report([dc.Count(), dc.Quantiles(column="v", range=(0, 9))], BUDGET),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_answer_about_rows_of_a_result_says_that_it_is(name, tmp_path):
    """What one row of the files changes in the result is not bounded, whatever is asked of it."""
    path = tmp_path / "rows.csv"
    path.write_text(
        ",".join(TABLE) + "\n" + "".join(f"{','.join(map(str, row))}\n" for row in zip(*TABLE.values(), strict=True))
    )
    how = {"sql": f"select * from '{path}'", "rows_of_the_result_are_the_events": True}
    told = asked(EVERY[name], BUDGET, dc.read(**how)).guarantee.assumptions
    assert told.count(ASSUMED) == 1
    assert ASSUMED not in asked(EVERY[name], BUDGET, dc.read(path)).guarantee.assumptions


@pytest.mark.parametrize(
    "query", ["select * from {}", "select v as w from {} where i <> 'i0'", "select 1 as one from {}"]
)
def test_all_rows_of_a_result_are_counted_whatever_its_columns_are(query, tmp_path):
    """Also where no column of the files is one of the result, and where there are several."""
    path = tmp_path / "rows.csv"
    path.write_text("v,i\n" + "1,i0\n2,i1\n" * 40 + ",i1\n" * 20)
    words = {"sql": query.format(f"'{path}'"), "rows_of_the_result_are_the_events": True}
    rows = 60 if "where" in query else 100
    assert dc.count(dc.read(**words), dc.Budget(60.0)).value == rows
    assert dc.Report([dc.Count()], dc.Budget(60.0)).answer(dc.read(**words))[0].value == rows


def test_a_result_may_be_asked_several_questions(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("v,i\n" + "1,i0\n2,i1\n" * 40)
    data = dc.read(sql=f"select v, i from '{path}'", rows_of_the_result_are_the_events=True)
    for _ in range(2):
        assert dc.count(data, dc.Budget(60.0)).value == 80
    found = dc.Report([dc.Count(), dc.Distinct(column="i")], dc.Budget(120.0)).answer(data)
    assert [each.value for each in found] == [80, 2]
