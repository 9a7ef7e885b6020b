"""Sizes that are chosen from public numbers alone, titles of a report, and its budget."""

import inspect

import pytest

import discreet as dc
from discreet.errors import ParameterError

BUDGET = dc.Budget(1.0, 1e-6)


def counters(mechanism, **asked):
    return dc.plan(budget=BUDGET, **asked).row(mechanism).capacity


@pytest.mark.parametrize("mechanism", ["merged", "offset", "reduced"])
@pytest.mark.parametrize("k", [1, 20, 500])
def test_there_are_counters_for_twice_the_items_asked_for(mechanism, k):
    for length in (10**3, 10**6, 10**9):
        found = counters(mechanism, length=length, k=k)
        assert found >= min(max(k, 16), length)
        if mechanism == "merged":
            assert found >= 2 * k
            assert found & (found - 1) == 0
    assert counters(mechanism, length=10**9, k=k) >= counters(mechanism, length=10**6, k=k)


def test_more_counters_where_there_are_more_rows_and_more_budget():
    merged = [counters("merged", length=10**power, k=1) for power in (3, 5, 7, 9)]
    assert merged == sorted(merged)
    assert counters("merged", length=100, k=1) == 16
    assert merged[-1] > 1000
    strong = dc.plan(10**7, dc.Budget(0.1, 1e-6), k=1).row("merged").capacity
    assert strong < counters("merged", length=10**7, k=1)


def test_a_users_items_have_counters():
    found = dc.plan(10**4, BUDGET, k=1, unit=dc.User(200)).row("user")
    assert found.capacity >= 200


def test_questions_take_their_words_by_name():
    for kind in (dc.Top, dc.Count, dc.Distinct, dc.Histogram, dc.Quantiles, dc.Sum, dc.Mean, dc.Variance):
        given = inspect.signature(kind).parameters.values()
        assert {each.kind for each in given} == {inspect.Parameter.KEYWORD_ONLY}, kind
        with pytest.raises(TypeError):
            kind("url")


def test_titles_of_a_report_are_different():
    titles = [*dc.Report([dc.Count(), dc.Count(), dc.Count()], BUDGET).questions]
    assert titles[1:] == [f"{titles[0]} (2)", f"{titles[0]} (3)"]
    assert [*dc.Report({"Mine": dc.Count(), "Yours": dc.Count()}, BUDGET).questions] == ["Mine", "Yours"]
    with pytest.raises(ParameterError, match="a title must be text, not int"):
        dc.Report({7: dc.Count()}, BUDGET)
    with pytest.raises(ParameterError, match="a report takes questions"):
        dc.Report(["count"], BUDGET)


@pytest.mark.parametrize("mechanism", ["space_saving", "count_sketch"])
def test_a_stream_that_is_longer_than_was_said_costs_nothing(tmp_path, mechanism):
    """Whose cut rests on the length is refused when all was counted, and before anything is charged."""
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("rows", dc.Budget(2.0, 1e-5))
    account = ledger.account("rows")
    words = {"mechanism": mechanism, "ledger": account}
    with pytest.raises(dc.IncompatibleSummaryError, match="longer than stream_length"):
        dc.top_k(["a"] * 301, 5, dc.Budget(1.0, 1e-6), length=300, **words)
    assert [event.kind for event in account.history()] == ["grant"]
    assert dc.top_k(["a"] * 300, 5, dc.Budget(1.0, 1e-6), length=300, **words).items == ["a"]
    assert account.spent().epsilon == 1.0
