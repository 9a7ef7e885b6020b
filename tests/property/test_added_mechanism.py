"""The page "How to add a mechanism" does what it says: its example passes the contract, the audit and the plan.

No file but the page knows the example. (tests/unit/test_docs.py runs the page on questions.)
"""

import re
from pathlib import Path

import pytest
from tests.property import test_mechanism_contract as contract

import discreet as dc
from discreet_audit import core

PAGE = Path(__file__).parents[2] / "docs" / "add-a-mechanism.md"


@pytest.fixture(scope="module")
def added():
    """What the page defines; its row of the audit is taken away again."""
    core.cases()
    before = dict(core._CASES)
    names = {}
    try:
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            exec(compile(block, str(PAGE), "exec"), names)
        yield names
    finally:
        core._CASES.clear()
        core._CASES.update(before)


CHECKS = [name for name in vars(contract) if name.startswith("test_it_") or "release" in name or "summar" in name]
CHECKS = [name for name in CHECKS if name.startswith("test_") and "monkeypatch" not in name]


@pytest.mark.parametrize("check", CHECKS)
def test_the_example_keeps_the_contract(added, check):
    kind = added["RowsAboveACut"]
    each = contract.Case(lambda capacity: kind(contract.APPROXIMATE), contract.exact_counts)
    getattr(contract, check)(each)


def test_the_example_is_audited_and_its_twins_are_noticed(added):
    assert added["report"].passed
    assert len(added["report"].twins) >= 3
    assert added["report"].exact_delta > 0.5 * 1e-3  # the check sees most of what there is


def test_the_example_is_planned_beside_the_others(added):
    row = added["plan"].row("RowsAboveACut")
    assert row.threshold == dc.central.Stability(added["budget"]).threshold
    assert (row.noise, row.summary) == ("laplace", "ExactCounts")
