"""A short command has most of its time in what it loads: what is not needed stays out."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

RUN = """
import sys
from discreet.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
HEAVY = {"pyarrow.compute", "pyarrow.parquet", "pyarrow.fs", "pyarrow.dataset", "numpy.ma", "scipy", "pandas", "rich"}
SMALL = {
    *("dataclasses", "hashlib", "ipaddress", "multiprocessing", "pathlib", "secrets", "shutil"),
    *("tempfile", "unicodedata"),
}
"""A millisecond each, or a few. Python's own data classes are compiled whenever a module is loaded."""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    random = np.random.default_rng(1)
    rows = 3000
    table = pa.table(
        {
            "time": np.datetime64("2026-10-01T00:00:00") + np.arange(rows).astype("timedelta64[s]"),
            "visitor": [f"visitor {number}" for number in random.integers(0, 500, rows)],
            "item": [f"item {number}" for number in random.integers(0, 3, rows)],
            "country": random.choice(["CH", "AT", "DE"], rows),
            "amount": random.random(rows),
        }
    )
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pq.write_table(table, path, compression="zstd")
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        ["top", "--column", "item", "--unit", "row"],
        ["top", "--column", "country", "--column", "item", "--unit", "row"],
        ["top", "--column", "item", "--unit", "row", "--every", "1d", "--time", "time"],
        ["top", "--column", "item", "--user", "visitor"],
        ["top", "--column", "item", "--user", "visitor", "--every", "1d", "--time", "time"],
        ["distinct", "--column", "item", "--user", "visitor"],
        ["count", "--user", "visitor"],
        ["quantiles", "--column", "amount", "--range", "0", "1", "--unit", "row"],
        ["sum", "--column", "amount", "--range", "0", "1", "--unit", "row"],
    ],
    ids=" ".join,
)
def test_a_command_loads_what_it_needs(log, words, tmp_path):
    command = [sys.executable, "-c", RUN, words[0], log, *words[1:], "--epsilon", "1", "--delta", "1e-6", "--quiet"]
    done = subprocess.run(
        [*command, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout.startswith("{")
    assert (HEAVY | SMALL) & set(done.stderr.split()) == set()
