"""Answers by group: rows in the order of the groups, public lists and discovered ones, rows and people."""

from __future__ import annotations

import datetime

import pytest
from tests.commands import run_here

import discreet as dc
from discreet.errors import WordError
from discreet.noise import seeded_source

SURE = dc.Budget(60.0, 1e-6)
"""So little noise that counts of rows are exact, but for a chance below 1e-20."""
ROWS = {
    "day": ["2026-01-02"] * 40 + ["2026-01-01"] * 30 + ["2026-01-03"] * 1,
    "who": [f"u{n % 20}" for n in range(40)] + [f"u{n}" for n in range(30)] + ["odd"],
    "land": (["de"] * 20 + ["fr"] * 20) + (["de"] * 30) + ["it"],
}


def test_rows_by_group_are_in_the_order_of_the_groups():
    found = dc.count(ROWS, SURE, by="day")
    assert [row[:2] for row in found] == [("2026-01-01", 30), ("2026-01-02", 40)]  # one row is hidden
    assert found["2026-01-02"].value == 40
    listed = dc.count(ROWS, dc.Budget(60.0), by="day", groups=["2026-01-03", "2026-01-09", "2026-01-01"])
    assert [row[:2] for row in listed] == [("2026-01-01", 30), ("2026-01-03", 1), ("2026-01-09", 0)]


def test_spans_of_time_and_several_columns():
    found = dc.count(ROWS, SURE, every="1d", time="day", by="land")
    assert found.names == ("day", "land")
    assert [row[:3] for row in found] == [
        (datetime.date(2026, 1, 1), "de", 30),
        (datetime.date(2026, 1, 2), "de", 20),
        (datetime.date(2026, 1, 2), "fr", 20),
    ]
    assert found.to_pandas().columns.tolist() == ["day", "land", "count", "lower", "upper"]


def test_people_by_group():
    budget = dc.Budget(20.0, 1e-3)
    for groups in (None, ["2026-01-01", "2026-01-02"]):
        found = dc.count(ROWS, budget, by="day", groups=groups, user="who", source=seeded_source(3))
        assert [row[0] for row in found] == ["2026-01-01", "2026-01-02"]
        for (_, value, lower, upper), true in zip(found, (30, 20), strict=True):
            assert lower <= true <= upper
            assert abs(value - true) < 6
    private = dc.count(ROWS, dc.Budget.zcdp(2.0), by="day", groups=["2026-01-01"], user="who")
    assert private.guarantee.rho == 2.0


def test_an_answer_goes_through_json_and_a_ledger(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", dc.Budget(100.0, 1e-3))
    found = dc.count(ROWS, SURE, every="1d", time="day", ledger=ledger.account("a"), charge_id="x")
    again = dc.count({}, SURE, every="1d", time="day", ledger=ledger.account("a"), charge_id="x")
    assert again == found
    assert again.payment == "replayed"
    assert dc.GroupRelease.from_json(found.to_json()) == found
    assert found.to_csv().splitlines()[0] == "day,count,lower,upper"
    assert "2026-01-01" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.plot() is not None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"by": "day", "user": "who"}, "needs delta > 0"),
        ({"by": "day"}, "finding unknown groups needs"),
        ({"every": "1d"}, "every needs time"),
        ({"groups": ["a"]}, "groups needs by"),
        ({"by": "day", "column": "land"}, "cannot be combined"),
    ],
)
def test_refusals(words, says):
    with pytest.raises(WordError, match=says):
        dc.count(ROWS, dc.Budget(1.0), **words)


@pytest.mark.parametrize(
    ("listed", "by", "lines"),
    [
        ('2026-01-02,fr\n\n2026-01-01,"de"\n', ["--every", "1d", "--time", "day", "--by", "land"],
         ["2026-01-01,de,30", "2026-01-02,fr,20"]),
        ('2026-01-01,"de"\n2026-01-02,fr\n', ["--by", "day", "--by", "land"],
         ["2026-01-01,de,30", "2026-01-02,fr,20"]),
        ("2026-01-02\n", ["--every", "1d", "--time", "day"], ["2026-01-02,40"]),
        ("fr\n", ["--by", "land"], ["fr,20"]),
    ],
)  # fmt: skip
def test_a_line_of_a_file_of_groups_has_a_cell_for_every_column_and_one_for_the_span(tmp_path, listed, by, lines):
    (tmp_path / "groups").write_text(listed)
    rows = zip(*ROWS.values(), strict=True)
    (tmp_path / "rows.csv").write_text("day,who,land\n" + "".join(",".join(row) + "\n" for row in rows))
    done = run_here(
        "count", tmp_path / "rows.csv", *by, "--groups", tmp_path / "groups", "--epsilon", 60, "--format", "csv"
    )
    assert done.returncode == 0, done.stderr
    assert [line.rsplit(",", 2)[0] for line in done.stdout.splitlines()[1:]] == lines


def test_visitors_per_day_is_one_command(tmp_path):
    table, output = tmp_path / "access.csv", tmp_path / "days.csv"
    rows = [f"h{n},2026-01-0{1 + n % 2}T10:00:00,{n}" for n in range(600)]
    table.write_text("ip,ts,n\n" + "\n".join(rows) + "\n")
    asked = ("count", table, "--user", "ip", "--every", "1d", "--time", "ts", "--epsilon", 4, "--delta", 1e-6)
    assert run_here(*asked, "--output", output, "--plot", tmp_path / "days.png").returncode == 0
    lines = output.read_text().splitlines()
    assert lines[0] == "ts,count,lower,upper"
    assert [line.split(",")[0] for line in lines[1:]] == ["2026-01-01", "2026-01-02"]
    assert (tmp_path / "days.png").stat().st_size > 1000
    assert run_here(*asked, "--output", tmp_path / "days.parquet").returncode == 0
    assert run_here("count", table, "--epsilon", 1, "--plot", tmp_path / "n.png").returncode == 2
