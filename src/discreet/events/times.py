"""Times in columns: seconds since 1970, or ISO 8601, in the years that a date can say."""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["YEAR_1", "seconds_of", "seconds_of_column"]

YEAR_1, _YEAR_10000 = -62135596800, 253402300800  # seconds from 1970


def seconds_of_column(column: Any) -> npt.NDArray[np.float64]:
    """The times of a column of text as seconds; not a number where there is none."""
    import pyarrow as pa

    for kind in (pa.float64(), pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            values = column.cast(kind)
            if kind == pa.float64():
                seconds = np.asarray(values, np.float64)
            else:
                seconds = np.asarray(values.cast(pa.int64()), np.float64) / 1e6
            if ((seconds >= YEAR_1) & (seconds < _YEAR_10000)).all():
                return seconds
    each = [seconds_of(value) for value in column.to_pylist()]
    return np.array([math.nan if seconds is None else seconds for seconds in each], np.float64)


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970 or ISO 8601, in the years 1 to 9999, as seconds; None if it is neither."""
    seconds = math.nan
    with suppress(ValueError, TypeError, OverflowError):
        seconds = float(value)
    if math.isnan(seconds):
        with suppress(ValueError, TypeError, OverflowError):
            moment = datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp()
    if math.isnan(seconds) and isinstance(value, str):
        seconds = _arrow_seconds(value)  # which knows forms that Python does not
    return seconds if YEAR_1 <= seconds < _YEAR_10000 else None


def _arrow_seconds(value: str) -> float:
    import pyarrow as pa

    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            return float(pa.scalar(value).cast(kind).cast(pa.int64()).as_py() / 1e6)
    return math.nan
