"""The names of the package: what is listed is there, what is there is listed, and importing them costs little."""

from __future__ import annotations

import subprocess
import sys

import pytest

import discreet

STABLE = {
    "Budget", "BudgetExceededError", "CorruptStateError", "DataError", "DiscreetError", "Element", "Estimate", "Event",
    "ExactCounts", "Guarantee", "IncompatibleSummaryError", "Ledger", "LedgerError", "MisraGries", "ParameterError",
    "Replace", "SpaceSaving", "Unit", "User", "UserMisraGries", "__version__", "audit", "central", "continual",
    "engines", "multiparty", "pan", "plan", "release", "top_k", "Release", "count", "distinct",
    "histogram",
}  # fmt: skip


def test_names():
    assert set(discreet.__all__) >= STABLE
    assert discreet.__all__ == sorted(set(discreet.__all__))
    assert dir(discreet) == discreet.__all__
    for name in discreet.__all__:
        value = getattr(discreet, name)
        assert value is getattr(discreet, name)
        if isinstance(value, type):
            assert value.__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        discreet.nothing  # noqa: B018


def test_modules_list_what_they_have():
    for package in ("summaries", "releases", "privacy", "noise", "storage", "errors", "audit"):
        module = __import__(f"discreet.{package}", fromlist=["*"])
        assert all(hasattr(module, name) for name in module.__all__)
        assert len(module.__all__) == len(set(module.__all__))


def test_importing_loads_nothing_heavy():
    program = "import sys, discreet; discreet.Budget, discreet.MisraGries, discreet.Ledger; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    loaded = done.stdout.split()
    assert "discreet" in loaded
    assert not {"scipy", "pyarrow", "pandas", "matplotlib", "dp_accounting", "numpy"} & set(loaded)
