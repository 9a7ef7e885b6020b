"""`spark-submit`: the package shipped to executors in an archive, and one line where workers have the wrong Python."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.conftest import missing_java

import discreet as dc
from discreet import _native
from discreet.noise import seeded_source

ROWS = [(n % 7, n % 50) for n in range(3000)]
BUDGET = dc.Budget(50.0, 1e-6)
JOB = """
import json, sys
import pyarrow as pa
from pyspark.sql import SparkSession
import discreet as dc
from discreet.noise import seeded_source

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frame = spark.createDataFrame([tuple(row) for row in json.load(open(sys.argv[1]))], "page long, who long")

def whose(batches):
    import discreet._native
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"native": [discreet._native.__file__]})

said = {}
try:
    top = dc.top_k(frame, 5, dc.Budget(50.0, 1e-6), column="page", user="who", source=seeded_source(3))
    said["top"] = [top.items, top.counts.tolist()]
    said["count"] = dc.count(frame, dc.Budget(1.0), where="page = 1", source=seeded_source(4)).value
    said["whose"] = [row[0] for row in frame.limit(1).mapInArrow(whose, "native string").collect()]
except dc.DiscreetError as error:
    said["error"] = str(error)
print("SAID", json.dumps(said))
"""


@pytest.fixture(scope="module")
def submit(tmp_path_factory):
    """submit(python, *options): what the job said, with workers of this Python."""
    missing = missing_java()
    if missing:
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    import pyspark

    folder = tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(JOB)
    (folder / "rows.json").write_text(json.dumps(ROWS))
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"

    def run(python, *options):
        here = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": str(python)}
        quiet = ["spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.sql.shuffle.partitions=2"]
        settings = [word for setting in quiet for word in ("--conf", setting)]
        done = subprocess.run(
            [program, *settings, *options, folder / "job.py", folder / "rows.json"],
            env={**os.environ, **here}, cwd=folder, capture_output=True, text=True, check=False, timeout=400,
        )  # fmt: skip
        said = re.search(r"^SAID (.*)$", done.stdout, re.M)
        assert said, "\n".join(line for line in done.stderr.splitlines() if "\tat " not in line)[-5000:]
        return json.loads(said[1])

    return run


def needed(name, found):
    """The distributions that a wheel needs, and those that they need."""
    plain = re.split(r"[ <>=!~;\[(]", name, maxsplit=1)[0]
    key = plain.lower().replace("_", "-")
    try:
        made = metadata.distribution(plain)
    except metadata.PackageNotFoundError:
        return  # for another system
    if key not in found:
        found[key] = made
        for other in made.requires or ():
            if "extra ==" not in other:
                needed(other, found)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """What docs/engines.md packs: the files of the wheel and of what it needs, without an entry for the root itself,
    which Spark 4.3 refuses."""
    made = tmp_path_factory.mktemp("archive") / "discreet.tar"
    found = {}
    for name in ("discreet", "pandas"):
        needed(name, found)
    found.pop("discreet")  # which tests have by links to its source
    with tarfile.open(made, "w") as tar:
        tar.add(Path(dc.__file__).parent, "discreet", filter=lambda each: None if "__pycache__" in each.name else each)
        tar.add(_native.__file__, f"discreet/{Path(_native.__file__).name}")
        for each in found.values():
            for file in each.files or ():
                parts = file.parts
                if parts[0] != ".." and not {"__pycache__", "tests", "include"} & {*parts}:
                    tar.add(file.locate(), str(file), recursive=False)
    yield made
    made.unlink()


def test_the_wheel_in_an_archive(submit, archive):
    """On an executor of its own, whose Python has no packages; the release is that of one machine."""
    words = ["--archives", f"{archive}#packages", "--conf", "spark.executorEnv.PYTHONPATH=packages"]
    said = submit(sys._base_executable, "--master", "local-cluster[1,1,1024]", *words)
    assert "error" not in said
    (native,) = said["whose"]
    assert "/packages/discreet/" in native
    assert Path(native) != Path(_native.__file__)
    table = pa.table({"page": [row[0] for row in ROWS], "who": [row[1] for row in ROWS]})
    top = dc.top_k(table, 5, BUDGET, column="page", user="who", source=seeded_source(3))
    assert said["top"] == [top.items, top.counts.tolist()]
    counted = dc.count(table, dc.Budget(1.0), where="page = 1", source=seeded_source(4))
    assert said["count"] == counted.value


def other_pythons():
    """A Python of another version, where there is one."""
    places = [*Path.home().glob(".pyenv/versions/3.*/bin/python"), *map(Path, filter(None, map(shutil.which, (
        f"python3.{minor}" for minor in range(10, 15)
    ))))]  # fmt: skip
    for place in sorted(places):
        version = subprocess.run(
            [place, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True, text=True
        ).stdout.strip()
        if re.fullmatch(r"3\.1\d", version) and version != f"{sys.version_info.major}.{sys.version_info.minor}":
            return place, version
    return None


def test_a_wrong_python_is_said_in_one_line(submit):
    """Of another version; and of this version, without the package."""
    advice = "before the session starts, set PYSPARK_PYTHON (or spark.pyspark.python) to a Python"
    other = other_pythons()
    if other is not None:
        said = submit(other[0], "--master", "local[1]")["error"]
        assert said.startswith(f"Spark's workers run Python {other[1]}: {advice}"), said
        assert "\n" not in said
    said = submit(sys._base_executable, "--master", "local[1]")["error"]
    assert re.match(rf"Spark's workers run a Python without \w+: {re.escape(advice)}", said), said
    assert "\n" not in said
