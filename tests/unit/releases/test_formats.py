"""Releases as tables, JSON, CSV and Parquet; text that is safe for a terminal."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.releases.formats import (
    FORMATS,
    describe_estimate,
    estimate_table,
    intervals,
    printable,
    table_text,
)

BUDGET = dc.Budget(1.0, 1e-9)


@pytest.fixture(scope="module")
def release():
    column = pa.array([b"\x00\xff"] * 900 + [b"ab"] * 500, pa.binary())
    return dc.top_k(column, 5, BUDGET, total_share=0.1)


def test_csv_of_any_text():
    """A NUL, which Python 3.10 does not write by itself; what needs quotes has them, and nothing is escaped."""
    items = ["a\0b", 'say "x", y', "\\", "two\nlines"]
    found = dc.top_k([item for item in items for _ in range(900)], 5, BUDGET)
    text = FORMATS["csv"](found, 0.9, None)
    for cell in ("a\0b,", '"say ""x"", y",', "\n\\,", '"two\nlines",'):
        assert text.count(cell) == 1


def test_every_format_says_the_same(release):
    described = json.loads(FORMATS["json"](release, 0.9, None))
    assert described == release.to_dict(0.9)
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](release, 0.9, None))))
    assert [{**row, "item": row["item"]} for row in rows] == [
        {name: "" if value is None else str(value) for name, value in item.items()} for item in described["items"]
    ]
    table = pq.read_table(io.BytesIO(FORMATS["parquet"](release, 0.9, None)))
    assert table["count"].to_pylist() == [item["count"] for item in described["items"]]
    del described["items"]
    assert json.loads(table.schema.metadata[b"discreet"]) == described
    text = FORMATS["table"](release, 0.9, None)
    lines = text.splitlines()
    assert lines[0].split() == ["item", "estimate", "90%", "interval"]
    assert [line.split()[0] for line in lines[2:4]] == ["00ff", "6162"]
    assert lines[4].startswith("(everything else)")
    assert lines[5].startswith("Differentially private")


def test_bounds_that_are_not_known():
    assert intervals([1200.0, 0.4, None], [float("inf"), None, 2.6]) == ["1,200 to ?", "0 to ?", "? to 3"]
    estimate = dc.Estimate(3.0, 1.0, float("inf"))
    assert describe_estimate(estimate, 0.9) == {
        "value": 3.0,
        "lower": 1.0,
        "upper": None,
        "confidence": 0.9,
        "guarantee": None,
    }
    assert estimate_table("Density", estimate, 0.9).splitlines()[2].split() == ["Density", "3", "1", "to", "inf"]


def test_several_values_have_a_line_each():
    estimate = dc.pan.ModularIncidence(10, 3, budget=dc.Budget(50.0)).release()
    lines = estimate_table("ModularIncidence", estimate, 0.95).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["0", "1", "2"]
    described = describe_estimate(estimate, 0.95)
    assert [len(described[name]) for name in ("values", "lower", "upper")] == [3, 3, 3]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("cats", "cats"), (7, "7"), (b"\x00\xff", "00ff"), ("a\nb", "a\\nb"), ("\x1b[2J", "\\x1b[2J"), ("ü 猫", "ü 猫")],
)
def test_what_is_printed_is_printable(value, shown):
    assert printable(value) == shown
    assert printable(value).isprintable()


def test_tables_keep_their_cells_whole():
    text = table_text(["item", "count"], [["[bold]x[/bold]", "1"], ["y" * 300, "22"]], right=[1])
    lines = text.splitlines()
    assert lines[2].startswith("[bold]x[/bold]")
    assert lines[3].startswith("y" * 300)
    assert {line.rstrip()[-1] for line in lines[2:]} == {"1", "2"}
    assert len({len(line) for line in lines[1:]}) == 1


def test_tables_without_rows_and_with_wide_characters():
    assert table_text(["no.", "time"], [], right=[0]) == "no.   time\n──────────\n"
    shown = table_text(["no.", "time"], [[1, "猫猫"], [22, "ü"], [3, "e\u0301a"]], right=[0])
    assert shown == "no.   time\n──────────\n  1   猫猫\n 22   ü\n  3   e\u0301a\n"


def test_a_terminal_folds_what_is_too_wide_and_keeps_numbers_whole():
    rows = [["x" * 50, "1,000"], ["猫" * 20, "7"], ["short", "22"]]
    lines = table_text(["item", "count"], rows, right=[1], width=30).splitlines()
    assert lines[1] == "─" * 30
    assert lines[2:5] == ["x" * 22 + "   1,000", "x" * 22, "x" * 6]
    assert lines[5:7] == ["猫" * 11 + "       7", "猫" * 9]
    assert lines[7] == "short" + " " * 17 + "      22"
    narrow = table_text(["a heading", "count"], [["x" * 9, "1,000"]], right=[1], width=1).splitlines()
    assert narrow == ["a headin   count", "g", "─" * 16, "xxxxxxxx   1,000", "x"]
