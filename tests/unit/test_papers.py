"""The pages on the papers: names and tests in their tables exist, and every script has its place and keeps its word."""

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
