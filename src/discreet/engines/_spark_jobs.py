"""Jobs of Spark whose results the driver needs."""

from __future__ import annotations

import re
import secrets
import sys
from typing import Any

import pyarrow as pa

from discreet import errors
from discreet.errors import DiscreetError

FAN_IN = 16  # parts that one task adds up, or the driver
_PARTITION_BYTES = 2**25

_PYTHONS = re.compile(r"PYTHON_VERSION_MISMATCH\].*?version: (?P<worker>[0-9.]+)")
_NO_PROGRAM = re.compile(r'Cannot run program "[^"]*"')
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<module>discreet|numpy|pyarrow)")


def collected(dataframe: Any) -> pa.Table:
    """The rows of a data frame, as Arrow. Where Spark's workers have the wrong Python, an error says so in one line.

    Raises:
        DiscreetError: The workers have another Python than the driver, none, or one without this package.
    """
    try:
        return dataframe.toArrow()
    except Exception as error:
        trouble = _trouble(str(error))
        if trouble is None:
            raise
    # Not in the handler: there the hundreds of lines would stay attached to this one.
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise DiscreetError(
        f"Spark's workers {trouble}: before the session starts, set PYSPARK_PYTHON (or spark.pyspark.python) to a "
        f"Python {here} that has this package"
    )


def _trouble(said: str) -> str | None:
    """What is wrong with the Python of the workers, if that is why the job failed."""
    if found := _PYTHONS.search(said):
        return f"run Python {found['worker'].rstrip('.')}"
    if found := _NO_MODULE.search(said):
        return f"run a Python without {found['module']}"
    return "find no Python" if _NO_PROGRAM.search(said) else None


def raise_problem(problem: str | None) -> None:
    """Raise what a task said is wrong with the data, if it did, in the class of the error that it had."""
    if problem is not None:
        kind, _, message = problem.partition(": ")
        raise getattr(errors, kind, DiscreetError)(message)


def secret_key() -> Any:
    """A fresh key for the hashes of a query, as text.

    Spark writes numbers into the code that it generates, and would compile and warm up anew for every key.
    """
    from pyspark.sql import functions as F  # noqa: N812

    return F.lit(secrets.token_hex(8))


def tree(parts: Any, many: int, most: int = FAN_IN) -> Any:
    """What was found in this many parts, added up until there is at most this much of it."""
    from discreet.engines import _spark_tasks as tasks

    while many > most:
        many = -(-many // FAN_IN)
        parts = parts.repartition(many, "part")
        parts = parts if many == 1 and most == 1 else parts.mapInArrow(tasks.AddParts(), tasks.PARTS)
    return parts


def parallelism(session: Any) -> int:
    """How many tasks the cluster runs at once, at least 2; where it does not say, how many Spark shuffles with."""
    try:
        return max(2, int(session.sparkContext.defaultParallelism))
    except (AttributeError, NotImplementedError):  # Spark Connect has no context
        return int(session.conf.get("spark.sql.shuffle.partitions"))


def partitions_for(dataframe: Any) -> int:
    """As many as the estimated size asks for: from one for each task that runs at once to those Spark shuffles with.

    Adaptive execution would leave a kept frame in 200 of any size: as many tiny tasks whenever it is looked at.
    """
    most = int(dataframe.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    try:
        size = int(str(dataframe._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except AttributeError:  # Spark Connect does not tell
        return most
    return min(most, max(parallelism(dataframe.sparkSession), size // _PARTITION_BYTES))
