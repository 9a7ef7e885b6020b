"""Jobs of Spark whose results the driver needs."""

from __future__ import annotations

import re
import sys
from typing import Any

import pyarrow as pa

from discreet.errors import DiscreetError

__all__ = ["collected"]

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
        f"Spark's workers {trouble}: set PYSPARK_PYTHON (or spark.pyspark.python) to a Python {here} that has this "
        "package, before the session starts"
    )


def _trouble(said: str) -> str | None:
    """What is wrong with the Python of the workers, if that is why the job failed."""
    if found := _PYTHONS.search(said):
        return f"run Python {found['worker'].rstrip('.')}"
    if found := _NO_MODULE.search(said):
        return f"run a Python without {found['module']}"
    return "find no Python" if _NO_PROGRAM.search(said) else None
