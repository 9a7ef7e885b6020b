"""docs/reliability.md is kept true by names: the tests it names exist, and every test of tests/faults is named."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reliability.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| attack")]


def names_of(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_row_names_a_test():
    assert ROWS
    for row in ROWS:
        cells = row.strip("| ").split(" | ")
        assert len(cells) == 4, row
        assert re.search(r"`tests/[\w/]+\.py::\w+`", cells[3]), row


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_the_tests_it_names_exist(path, name):
    assert (ROOT / path).is_file(), path
    assert name in names_of(path)


def test_every_fault_has_its_row():
    files = sorted((ROOT / "tests/faults").glob("test_*.py"))
    faults = {(str(file.relative_to(ROOT)), name) for file in files for name in names_of(file.relative_to(ROOT))}
    assert faults <= set(NAMED)


def test_the_threat_model_leads_here():
    assert "docs/reliability.md" in (ROOT / "SECURITY.md").read_text()
