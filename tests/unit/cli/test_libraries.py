"""Libraries that a command opens beside its imports: that they are there, and that nothing is imported by it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from discreet._early import WITHOUT_PANDAS, library_paths

_OPENED = """
import sys
from pathlib import Path
from discreet import _native
_native.open_libraries(["/nowhere/at/all.so", *sys.argv[1:]])
_native.libraries_opened()
print("libarrow.so" in Path("/proc/self/maps").read_text(), "pyarrow" in sys.modules, "numpy" in sys.modules)
"""


def test_all_libraries_are_where_they_are_looked_for():
    paths = library_paths()
    assert len(paths) == 3
    assert all(Path(path).is_file() for path in paths)


def test_they_are_opened_and_one_that_is_not_there_is_passed_over():
    done = subprocess.run([sys.executable, "-c", _OPENED, *library_paths()], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


def test_a_process_may_end_while_they_are_being_opened():
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "top", "a.parquet", "--no-such-option"]
    for _ in range(5):
        done = subprocess.run(command, capture_output=True, timeout=60)
        assert done.returncode == 2


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_linear_algebra_has_one_thread_unless_somebody_says_more(given, used):
    program = "import os, discreet._early as e; e.open_libraries(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", program], env={**others, **given}, capture_output=True, check=True)
    assert done.stdout.decode().strip() == used


def test_pandas_alone_is_kept_out():
    with pytest.raises(ImportError, match="does without pandas"):
        WITHOUT_PANDAS.find_spec("pandas", None)
    for name in ("pandas.core", "pandas_gbq", "numpy", "polars"):
        assert WITHOUT_PANDAS.find_spec(name, None) is None
