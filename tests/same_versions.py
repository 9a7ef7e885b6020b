"""The versions that recorded answers were made with: `tests/golden/versions.json`.

Recorded answers are a fence against changes of our code. Last digits, lengths of states and words of errors follow from
Python, NumPy, SciPy, Arrow, DuckDB and pydantic, too, so under other versions the answers are not compared.
"""

import json
import platform
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("golden") / "versions.json"
LIBRARIES = ["numpy", "scipy", "pyarrow", "duckdb", "pydantic", "click", "matplotlib"]


@cache
def versions():
    """Major and minor version of Python and of the libraries."""
    found = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {name: re.match(r"\d+\.\d+", number)[0] for name, number in found.items()}


def need_same_versions():
    """Skip a test that compares with what was recorded, where it was recorded with other versions."""
    known = json.loads(FILE.read_text())
    other = [f"{name} {known.get(name)}" for name, number in versions().items() if known.get(name) != number]
    if other:
        pytest.skip(f"answers were recorded with {', '.join(other)}")


def write_versions():
    """Answers are recorded anew: all rooms at once, where versions differ."""
    FILE.write_text(json.dumps(versions(), indent=1) + "\n")
