"""One Spark session for all tests: a real cluster of one machine, with Python worker processes of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found.group(1)) if found else None


def missing_java() -> str | None:
    version = java_version()
    if version is not None and version >= 17:
        return None
    return (
        "the Spark tests need Java 17 or later: install it, or set JAVA_HOME; found "
        f"{'none' if version is None else f'version {version}'}"
    )


@pytest.fixture(scope="session")
def spark():
    missing = missing_java()
    if missing and os.environ.get("CI"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    session = (
        # A task may fail three times, as on a cluster. local-cluster[2,1,1024] starts executors of their own, slowly.
        SparkSession.builder.master(os.environ.get("DISCREET_SPARK_MASTER", "local[2,4]"))
        .appName("discreet tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.log.level", "OFF")
        .config("spark.python.worker.faulthandler.enabled", "false")
        .getOrCreate()
    )
    yield session
    session.stop()
