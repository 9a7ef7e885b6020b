"""The pages on the papers: names and tests in their tables exist, and every script has its place and keeps its word."""

import gzip
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "papers").glob("*.md"))
TEXT = "\n".join(page.read_text() for page in PAGES)
SAVES = re.compile(r"^ *figure\.save\(\)$", re.MULTILINE)
SCRIPTS = [path for path in (ROOT / "papers").glob("*.py") if SAVES.search(path.read_text())]


def found(name: str) -> bool:
    """Whether a dotted name leads to something."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            here = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(here, part):
                return False
            here = getattr(here, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_tests_and_pictures_exist(page):
    text = page.read_text()
    names = set(re.findall(r"`(discreet(?:\.\w+)+)", text))
    assert not [name for name in names if not found(name)]
    files = set(re.findall(r"`((?:tests|papers)/[\w./]+)`", text))
    assert not [file for file in files if not (ROOT / file).exists()]
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (page.parent / link).exists(), link
    assert page.stem == "index" or (names and files)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_every_page_ends_with_statements_measurements_and_verdicts(page):
    rows = [line for line in page.read_text().splitlines() if line.strip()][-3:]
    assert all(line.startswith("| ") for line in rows), "the last thing on a page is its table"
    *_, table = page.read_text().split("| statement of the paper | measured | verdict | command |")
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(cells) >= 5
    assert all(len(row) == 4 and all(cell.strip("| ") for cell in row) for row in cells)
    scripts = set(re.findall(r"`python (papers/\w+\.py)", table))
    assert scripts
    assert not [script for script in scripts if not (ROOT / script).exists()]


def test_every_script_is_on_a_page():
    assert not [path.name for path in SCRIPTS if f"papers/{path.name}" not in TEXT]
    assert len(SCRIPTS) >= 17


def test_every_script_is_below_a_screen_and_says_what_the_paper_says():
    for path in SCRIPTS:
        text = path.read_text()
        assert len(text.splitlines()) <= 70, path.name
        assert re.match(r'"""\[(LT|PAN|SS|MDP|CO)\] ', text), path.name
        assert "figure.says(" in text or "against_bytes(" in text


def test_a_false_positive_that_never_came_has_an_infinite_error():
    """[MDP] section 5.2: else a method that lists only such items would look best."""
    code = (
        "import sys; sys.path.insert(0, 'papers'); from shared import Panel, quality\n"
        "counts = {1: 50, 2: 5}\n"
        "for found in ({1: 50.0}, {1: 50.0, 2: 10.0}, {1: 50.0, 3: 9.0}):\n"
        "    print(quality(found, counts, 0.5, 55)['false error'])\n"
        "panel = Panel('a', 'x', 'y')\n"
        "panel.add('b', 1, [1.0, float('inf')]); panel.add('b', 2, [float('nan'), 3.0]); print(panel.mean('b', 1))\n"
        "print(panel.mean('b', 2))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.0", "1.0", "inf", "inf", "3.0"]


def test_files_of_the_papers_are_told_apart_and_read(tmp_path):
    """Clicks by basket, the AOL collection, and addresses with or without more on a line."""
    (tmp_path / "clicks.dat").write_text("1 2 3\n1\n")
    header = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    rows = ["7\tx\t2006-03-01\t1\thttp://www.abc.com\n", '7\t"y\t2006-03-01\t\t\n', "8\tz\t2006-03-02\t1\tHTTPS://ab\n"]
    (tmp_path / "user-ct.txt.gz").write_bytes(gzip.compress("".join([header, *rows]).encode()))
    (tmp_path / "packets.csv").write_text("source,bytes\n10.0.0.1,40\n2001:db8::1,60\n10.0.0.1,40\n")
    code = (
        "import sys; sys.path.insert(0, 'papers'); from shared import *\n"
        "from shared import _names\n"
        "s = settings('')\n"
        "print(sorted(s.data)); print(sorted(kosarak(s, 4).tolist()).__len__()); print(list(_names(s.data['names'])))\n"
        "print(aol(s).tolist() == [number_of('abc.com'), number_of('ab')])\n"
        "print(number_of('aaaaab'), number_of('b') // 49**5)\n"
        "print(caida(s).tolist())"
    )
    given = [part for name in ("clicks.dat", "user-ct.txt.gz", "packets.csv") for part in ("--data", tmp_path / name)]
    done = subprocess.run([sys.executable, "-c", code, *given], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['addresses', 'clicks', 'names']", "4", "['abc.com', 'ab']", "True", "1 1", "[0, 1, 0]",
    ]  # fmt: skip


def test_a_script_draws_counts_and_keeps_its_word(tmp_path):
    """One without randomness; and where a sentence does not hold the script fails."""
    done = subprocess.run(
        [sys.executable, "papers/run.py", "lt_cuts", "--out", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "lt_cuts.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "lt_cuts.csv").read_text().startswith("panel,method,x,mean,p5,p95\n")
    script = (
        f"import sys; sys.argv = ['x', '--out', {str(tmp_path)!r}]; sys.path.insert(0, 'papers')\n"
        "from shared import Figure, settings\n"
        "figure = Figure('wrong', 'a wrong sentence', settings(''))\n"
        "figure.panel('a', 'x', 'y').add('b', 1, [1.0, 2.0])\n"
        "figure.says('one is two', holds=False)\n"
        "figure.save()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert "DOES NOT HOLD" in done.stdout
