"""`discreet report` from the outside."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.commands import run_here

EXAMPLE = Path(__file__).parents[2] / "examples" / "site" / "october.toml"

REPORT = """
title = "A <b>report</b>"
user = "who"
epsilon = 3.0
delta = 1e-6

[data]
files = "visits.csv"

[[questions]]
title = "Pages"
kind = "top"
column = "page"
k = 3

[[questions]]
title = "By week"
kind = "top"
column = "page"
k = 2
every = "1w"
time = "when"

[[questions]]
title = "Visitors"
kind = "count"

[[questions]]
kind = "quantiles"
column = "size"
range = [0, 100]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (f"p{n % 800},/{n % 4},{n % 100},2026-10-{1 + n % 28:02}\n" for n in range(8000))
    (tmp_path / "visits.csv").write_text("who,page,size,when\n" + "".join(rows))
    (tmp_path / "report.toml").write_text(REPORT)
    return tmp_path


def test_the_page_stands_alone(folder):
    done = run_here("report", "report.toml", "-o", "page.html")
    assert (done.returncode, done.stdout) == (0, "")
    page = (folder / "page.html").read_text()
    assert "<h1>A &lt;b&gt;report&lt;/b&gt;</h1>" in page
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    for text in ("Pages", "By week", "Visitors", "Quantiles of size", "What is promised", "epsilon = 3, delta = 1e-06"):
        assert text in page
    assert page.count('class="chart"') == 1


def test_every_format(folder):
    told = json.loads(run_here("report", "report.toml", "--format", "json").stdout)
    assert [each["title"] for each in told["questions"]] == ["Pages", "By week", "Visitors", "Quantiles of size"]
    assert told["guarantee"]["epsilon"] == 3.0
    assert told["questions"][2]["answer"]["number_of"] == "people"
    assert run_here("report", "report.toml", "-o", "out.csv").returncode == 0
    assert sorted(path.name for path in folder.glob("out*")) == [
        "out-1-pages.csv", "out-2-by-week.csv", "out-3-visitors.csv", "out-4-quantiles-of-size.csv",
    ]  # fmt: skip
    assert "Visitors" in run_here("report", "report.toml").stdout
    done = run_here("report", "report.toml", "--format", "csv")
    assert (done.returncode, "give --output" in done.stderr) == (2, True)


def test_one_charge_and_the_same_again(folder):
    granted = ("--ledger", "b.sqlite", "--account", "a")
    assert run_here("ledger", "grant", *granted, "--epsilon", "4", "--delta", "1e-5").returncode == 0
    paid = (*granted, "--charge-id", "october")
    first = run_here("report", "report.toml", "--format", "json", *paid)
    (folder / "visits.csv").rename("gone.csv")
    again = run_here("report", "report.toml", "--format", "json", *paid)
    assert first.stdout == again.stdout
    assert "replayed" in again.stderr
    kept = run_here("ledger", "release", *granted, "--charge-id", "october", "--format", "json")
    assert kept.stdout == first.stdout
    (folder / "report.toml").write_text(REPORT.replace("k = 3", "k = 4"))
    assert run_here("report", "report.toml", *paid).returncode == 6
    (folder / "report.toml").write_text(REPORT)
    done = run_here("report", "report.toml", "gone.csv", *granted)
    assert (done.returncode, done.stdout) == (3, "")  # the rest of the grant does not suffice


def test_plan_reads_nothing(folder):
    (folder / "visits.csv").write_text("")
    done = run_here("report", "report.toml", "--plan")
    assert done.returncode == 0
    assert "Together: epsilon=3, delta=1e-06" in done.stdout
    assert done.stdout.count("%") == 4


def test_files_behind_the_report(folder):
    (folder / "visits.csv").rename("november.csv")
    done = run_here("report", "report.toml")
    assert (done.returncode, done.stderr) == (2, "discreet: there is no file 'visits.csv'\n")
    assert run_here("report", "report.toml", "november.csv").returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("kind = ", "kid = ", 2, "kind must be one of"),
        ("user = ", "usr = ", 2, "did you mean 'user'"),
        ('column = "size"', 'column = "sise"', 4, "no column 'sise'"),
        ("range = [0, 100]", "", 2, "question 'question 4': --range LOW HIGH is missing"),
        ("epsilon", "rho = 1\nepsilon", 2, "rho cannot be combined with epsilon"),
        ("delta = 1e-6", "", 2, "question 'Pages': finding unknown items needs --delta > 0"),
        ("title", "title title", 2, "is not TOML"),
    ],
)
def test_what_is_wrong_is_told(folder, old, new, code, told):
    (folder / "report.toml").write_text(REPORT.replace(old, new, 1))
    done = run_here("report", "report.toml")
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_the_report_itself_is_not_overwritten(folder):
    assert run_here("report", "report.toml", "-o", "report.toml").returncode == 2
    assert (folder / "report.toml").read_text() == REPORT


def test_the_six_numbers_of_the_example(folder):
    rows = (
        f"2026-10-{1 + n % 28:02}T10:00:00,10.0.{n % 9}.{n % 250},/{n % 5},{404 if n % 7 == 0 else 200},{n % 900},"
        f"{'DE' if n % 3 else 'FR'}\n"
        for n in range(20_000)
    )
    (folder / "access.csv").write_text("time,ip,path,status,bytes,country\n" + "".join(rows))
    done = run_here("report", str(EXAMPLE), "access.csv", "--format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["questions"]
    by_day, visitors, missing, mean, large, countries = (each["answer"] for each in told)
    assert len({row["time"] for row in by_day["items"]}) == 28
    assert len(visitors["rows"] if "rows" in visitors else visitors["groups"]) == 28
    assert {row["item"] for row in missing["items"]} <= {f"/{n}" for n in range(5)}
    assert mean["lower"] <= mean["value"] <= mean["upper"]
    assert large["quantiles"][0]["quantile"] == 0.9
    assert json.dumps(countries).count("DE") >= 1
    assert run_here("report", str(EXAMPLE), "access.csv", "-o", "page.html").returncode == 0
    assert (folder / "page.html").read_text().count('class="chart"') == 2
