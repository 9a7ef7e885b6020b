"""What questions would be off by, before anything is spent."""

import json

import pytest
from tests.commands import run_here

import discreet as dc
from discreet.central import NoisyCount, UniverseHistogram
from discreet.errors import ParameterError
from discreet.noise import seeded_source


@pytest.mark.parametrize("budget", [dc.Budget(0.5), dc.Budget(1.0, 1e-6), dc.Budget.zcdp(0.1)], ids=str)
def test_errors_are_those_of_the_mechanisms(budget):
    plan = dc.plan_questions(budget, listed=30, max_items=2, confidence=0.9)
    rows = {(row.question, row.hides): row for row in plan.rows}
    assert rows["how many rows", "a row"].error == NoisyCount(budget).error_bound(0.1)
    people = UniverseHistogram(budget, range(30), dc.User(), 2)
    assert rows["each of 30 items, people, 2 items of each", "a person"].error == people.error_bound(0.1)
    ranks = [row.error for row in plan.rows if row.command == "quantiles"]
    assert ranks[0] <= ranks[1] <= 1.5 * ranks[0]  # in rows, and in votes of people
    commands = {"count", "distinct", "sum", "mean", "variance", "histogram", "quantiles", "max_bad=10%"}
    assert {row.command for row in plan.rows} == commands


@pytest.mark.parametrize("budget", [dc.Budget(0.5), dc.Budget(0.1, 1e-6), dc.Budget.zcdp(0.1)], ids=str)
def test_sums_and_means_are_off_by_no_more_than_planned(budget):
    """In a unit of each: twice the planned share of misses, of 200 seeded answers, is 4.7 deviations away."""
    n, table = 2000, {"v": [5.0] * 2000}
    for row in dc.plan_questions(budget, confidence=0.9).rows:
        if row.command not in ("sum", "mean"):
            continue
        ask, unit = getattr(dc, row.command), 10.0 if row.command == "sum" else 10.0 / n
        true = 5.0 * n if row.command == "sum" else 5.0
        found = [ask(table, budget, column="v", range=(0, 10), source=seeded_source(seed)) for seed in range(200)]
        misses = sum(abs(answer.value - true) > row.error * unit for answer in found)
        assert misses <= 40, row.question


def test_the_command():
    told = run_here("plan", "--questions", "--epsilon", 1)
    assert told.returncode == 0, told.stderr
    assert "rank of a quantile" in told.stdout
    rows = json.loads(run_here("plan", "--questions", "--rho", 0.1, "--listed", 7, "--format", "json").stdout)["rows"]
    assert any(row["question"].startswith("each of 7 items") for row in rows)
    assert all(row["noise"] == ("choice" if row["command"] == "quantiles" else "gaussian") for row in rows)
    for wrong in (("--questions", "--length", 5), ("--listed", 5, "--length", 5)):
        assert run_here("plan", *wrong, "--epsilon", 1).returncode == 2
    with pytest.raises(ParameterError):
        dc.plan_questions(dc.Budget(1.0), listed=0)
