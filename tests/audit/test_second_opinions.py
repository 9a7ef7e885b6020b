"""Every mechanism that the audit has a row for has a law in tests/exhaustive, too, apart from the audit."""

import re
from pathlib import Path

import pytest

from discreet_audit.core import cases

TEXTS = {path.name: path.read_text() for path in (Path(__file__).parents[1] / "exhaustive").glob("*.py")}
MISSING = {
    "ShuffledReports": "a class of the audit: the law of a batch is in tests/audit/test_shuffled_row.py",
}


@pytest.mark.parametrize("name", sorted({case.mechanism.__name__ for case in cases()}))
def test_every_mechanism_has_a_second_opinion(name):
    found = [file for file, text in TEXTS.items() if re.search(rf"\b{name}\b", text)]
    assert bool(found) != (name in MISSING)
