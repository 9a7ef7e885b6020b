"""`discreet audit` as a user runs it: the table, the reports, what is refused.

The runs use the system's source; a false alarm has probability below 1e-6.
"""

import json
import re


def test_the_table_and_a_markdown_report(discreet, tmp_path):
    done = discreet("audit", "stability", "--jobs", 1, "--report", tmp_path / "out.md")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("StabilityHistogram")]
    assert len(rows) == 3
    assert all(re.search(r"(\d) of \1\s+ok$", row) for row in rows)
    text = (tmp_path / "out.md").read_text()
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert "![claimed and measured](out.png)" in text
    for kind in ("structure", "exact", "statistical", "coupled", "sabotage"):
        assert f"| {kind} |" in text
    assert "half the noise: caught by exact" in text
    assert "passed" in done.stderr


def test_json_and_an_html_report(discreet, tmp_path):
    done = discreet("audit", "countmin", "--jobs", 2, "-q", "--format", "json", "--report", tmp_path / "out.html")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["passed"] is True
    assert {report["mechanism"] for report in found["reports"]} == {"CountMinHeavyHitters"}
    assert all(twin["caught"] for report in found["reports"] for twin in report["twins"])
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "data:image/png;base64," in page


def test_what_is_refused(discreet, tmp_path):
    assert discreet("audit", "nonsense").returncode == 2
    done = discreet("audit", "stability", "--report", tmp_path / "out.pdf")
    assert done.returncode == 2
    assert ".md or .html" in done.stderr


def test_corrections_in_numbers(discreet):
    done = discreet("audit", "--corrections", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["caught"] for row in rows)
    assert {"[PAN] section 3", "[SS] Algorithm 3", "[CO] Theorem 4", "[LT] Theorem 23"} <= {
        row["where"] for row in rows
    }
    assert discreet("audit", "--corrections", "offset").returncode == 2
