"""Rows of nobody (a person's name that is too long to be one) are left out of every question about people.

Every question is asked of good rows alone, and of the same rows with such rows among them, from equal seeded sources:
what is published is the same, whether people fit in memory or not.
"""

import re

import pytest

import discreet as dc
from discreet.noise import seeded_source

BUDGET = dc.Budget(2.0, 1e-6)
GOOD = [(f"visitor {n % 400}", f"page {n % 7}", "ab"[n % 2], float(n % 50)) for n in range(4000)]
NOBODY = [("v" * (5000 + n % 3), "page of nobody", "b", 49.0) for n in range(600)]
MIXED = [row for n, row in enumerate(GOOD) for row in (row, *NOBODY[3 * n : 3 * n + 3])]
GROUPS = {"by": "kind", "groups": ["a", "b"]}
RANGE = {"column": "size", "range": (0, 50)}

QUESTIONS = {
    "top": lambda t, s: dc.top_k(t, 5, BUDGET, column="page", user="who", source=s),
    "sums of items": lambda t, s: dc.top_k(
        t, 5, BUDGET, column="page", user="who", value="size", value_range=(0, 50), source=s
    ),
    "pairs": lambda t, s: dc.top_k(t, 5, BUDGET, column="page", user="who", pairs=True, source=s),
    "top by": lambda t, s: dc.top_k(t, 5, BUDGET, column="page", user="who", by="kind", source=s),
    "count": lambda t, s: dc.count(t, BUDGET, user="who", source=s),
    "count by": lambda t, s: dc.count(t, BUDGET, user="who", **GROUPS, source=s),
    "distinct": lambda t, s: dc.distinct(t, BUDGET, column="page", user="who", source=s),
    "distinct by": lambda t, s: dc.distinct(t, BUDGET, column="page", user="who", max_items=3, **GROUPS, source=s),
    "histogram": lambda t, s: dc.histogram(
        t, BUDGET, column="page", user="who", universe=["page 1", "page of nobody"], max_items=2, source=s
    ),
    "histogram by": lambda t, s: dc.histogram(
        t, BUDGET, column="page", user="who", universe=["page 1", "page of nobody"], max_items=2, **GROUPS, source=s
    ),
    "sum": lambda t, s: dc.sum(t, BUDGET, **RANGE, user="who", source=s),
    "mean by": lambda t, s: dc.mean(t, BUDGET, **RANGE, user="who", **GROUPS, source=s),
    "variance": lambda t, s: dc.variance(t, BUDGET, **RANGE, user="who", source=s),
    "quantiles": lambda t, s: dc.quantiles(t, BUDGET, [0.5, 0.9], **RANGE, user="who", max_rows=4, source=s),
    "quantiles by": lambda t, s: dc.quantiles(
        t, BUDGET, [0.5], **RANGE, user="who", max_rows=4, **GROUPS, source=s
    ),
}  # fmt: skip


def table(rows):
    return dict(zip(("who", "page", "kind", "size"), map(list, zip(*rows, strict=True)), strict=True))


def said(answer):
    """All but when it was said."""
    text = answer.to_json() if hasattr(answer, "to_json") else str(answer.numbers())
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "", text)


@pytest.mark.parametrize("in_memory", [True, False], ids=["in memory", "on disk"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_rows_of_nobody_change_nothing(question, in_memory, monkeypatch):
    if not in_memory:
        monkeypatch.setattr("discreet.engines.exact_people.Memory.room", 0)
    monkeypatch.setattr("discreet.engines.numbers._fresh_seed", lambda: 7)  # of hashes, which samples follow
    asked = QUESTIONS[question]
    alone, among = (said(asked(table(rows), seeded_source(5))) for rows in (GOOD, MIXED))
    assert alone == among


def test_rows_of_nobody_are_many():
    assert len(MIXED) == len(GOOD) + len(NOBODY)
    assert {len(who) > 4096 for who, *_ in NOBODY} == {True}
