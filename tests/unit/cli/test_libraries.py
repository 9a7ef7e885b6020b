"""Libraries that a command opens beside its imports: that they are there, and that nothing is imported by it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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


_LATER = """
import sys
from discreet._early import NUMPY_LATER
sys.meta_path.insert(0, NUMPY_LATER)
import pyarrow as pa
from pyarrow._compute import call_function
assert "numpy" not in sys.modules
column = pa.array([1, 2, 3])
import numpy as np
import pyarrow.compute as pc
numbers = np.array([1, 2, 3])
assert np.asarray(column).tolist() == column.to_numpy().tolist() == [1, 2, 3]
assert np.asarray(pa.chunked_array([column, column])).tolist() == [1, 2, 3] * 2
assert pa.array(numbers) == pa.array([np.int64(1), np.int32(2), np.int8(3)], pa.int64()) == column
assert pa.array(numbers, mask=numbers == 2).to_pylist() == [1, None, 3]
assert pa.array(np.array([True, False])).type == pa.bool_() and pa.scalar(np.float64(0.5)).as_py() == 0.5
assert pa.array(np.array(["2026-11-19"], "datetime64[s]")).type == pa.timestamp("s")
assert call_function("add", [column, numbers]).to_pylist() == [2, 4, 6]
assert column.filter(numbers > 1).to_pylist() == column.take(numbers[:2]).to_pylist() == [2, 3]
assert pa.table({"a": numbers}).column("a").combine_chunks() == column
assert pc.is_in(column, value_set=pa.array(numbers[:1])).to_pylist() == [True, False, False]
assert pa.from_numpy_dtype(np.int32) == pa.int32() and pa.int32().to_pandas_dtype() == np.int32
"""


def test_pyarrow_that_was_loaded_without_numpy_knows_it_once_it_is_there():
    done = subprocess.run([sys.executable, "-c", _LATER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


_COMMAND = """
import atexit, sys
from discreet.cli import command
atexit.register(lambda: print("numpy" in sys.modules, file=sys.stderr))
command()
"""
_HOUR = 3_600_000_000
_ROWS = 3000


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log in order of its times, and the same with a row that has no item, no number and no time."""
    folder = tmp_path_factory.mktemp("log")
    columns = {
        "time": pa.array([row * _HOUR // 100 for row in range(_ROWS)], pa.timestamp("us")),
        "item": pa.array(["cats", "dogs", "ännä"] * (_ROWS // 3)),
        "country": pa.array(["DE", "FR"] * (_ROWS // 2)),
        "number": pa.array([7, 8, 9] * (_ROWS // 3)),
    }
    table = pa.table(columns)
    odd = pa.table({name: [None] for name in columns}, schema=table.schema)
    for ending, rows in (("", table), ("-odd", pa.concat_tables([odd, table]))):
        for compression in ("snappy", "zstd"):
            pq.write_table(rows, folder / f"{compression}{ending}.parquet", compression=compression)
    return folder


_QUESTIONS = {
    "where": (["--column", "item", "--where", "number = 7 and country = 'DE'"], [("cats", 500)]),
    "numbers": (["--column", "number"], [(7, 1000), (8, 1000), (9, 1000)]),
    "texts": (["--column", "item"], [("cats", 1000), ("dogs", 1000), ("ännä", 1000)]),
    "two columns": (
        ["--column", "country", "--column", "item"],
        [(country, item, 500) for country in ("DE", "FR") for item in ("cats", "dogs", "ännä")],
    ),
    "days": (
        ["--column", "item", "--every", "1d", "--time", "time"],
        [(f"1970-01-0{day}", item, n) for day, n in ((1, 800), (2, 200)) for item in ("cats", "dogs", "ännä")],
    ),
}


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("question", _QUESTIONS)
def test_what_counts_rows_of_parquet_loads_numpy_for_odd_rows_alone(log, question, odd):
    words, expected = _QUESTIONS[question]
    file = log / f"{'zstd' if question == 'texts' else 'snappy'}{'-odd' if odd else ''}.parquet"
    budget = ["--unit", "row", "--epsilon", "50", "--delta", "1e-9", "--nulls", "skip", "--format", "json", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "top", str(file), *words, *budget], capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)["items"]
    found = [tuple(value for name, value in row.items() if name not in ("lower", "upper")) for row in rows]
    assert sorted(found) == sorted(expected)  # with this epsilon noise is 0, except with a chance below 1e-9
    assert odd or done.stderr.split()[-1] == "False"
