"""The names of the package: what is listed is there, what is there is listed, and importing them costs little."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

STABLE = {
    "Budget", "BudgetExceededError", "CorruptStateError", "DataError", "DiscreetError", "Element", "Estimate", "Event",
    "ExactCounts", "Guarantee", "IncompatibleSummaryError", "Ledger", "LedgerError", "MisraGries", "ParameterError",
    "Replace", "SpaceSaving", "Unit", "User", "UserMisraGries", "__version__", "audit", "central", "continual",
    "engines", "multiparty", "pan", "plan", "release", "top_k", "Release", "count", "distinct",
    "histogram",
}  # fmt: skip

PACKAGES = {"audit", "central", "continual", "engines", "multiparty", "pan", "privacy", "published"}


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


def test_there_are_no_more_public_names_than_there_were():
    """Those of the package, and of its packages without the papers'. Who adds one makes another one needless."""
    packages = ("central", "continual", "pan", "multiparty", "privacy", "engines", "audit")
    others = {f"{name}.{each}" for name in packages for each in getattr(discreet, name).__all__ if each not in STABLE}
    assert len({*discreet.__all__, *others}) <= 103


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


@pytest.mark.parametrize("package", ["", ".central", ".privacy", ".published", ".releases"])
def test_what_a_type_checker_sees_is_what_there_is(package):
    """Names are loaded on first use, and listed a second time for those who read and do not run."""
    module = importlib.import_module(f"discreet{package}")
    (listed,) = (
        node.body
        for node in ast.parse(Path(module.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {each.asname or each.name: (node.module, each.name) for node in listed for each in node.names}
    assert len(seen) > 3
    for name, (home, its_name) in seen.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), its_name)
    assert dir(module) == sorted(module.__all__)
    assert set(module.__all__) - seen.keys() <= {"__version__", *PACKAGES}
    with pytest.raises(AttributeError, match=rf"^module 'discreet{package}' has no attribute 'nothing'$"):
        module.nothing  # noqa: B018


def test_a_name_of_the_version_before_is_the_new_one_and_warns():
    from discreet import central

    for old, new in (("OffsetRelease", "Offset"), ("CountRelease", "NoisyCount"), ("StabilityHistogram", "Stability")):
        for _ in range(2):  # whenever it is used
            with pytest.warns(DeprecationWarning, match=rf"^discreet\.central\.{old} is now called {new}$") as noted:
                assert getattr(central, old) is getattr(central, new)
            assert noted[0].filename == __file__  # the line to change
        assert old not in dir(central)
