"""Times in columns: seconds since 1970, or ISO 8601, in the years that a date can say."""

from __future__ import annotations

import datetime
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet._later import np, pa
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["NOT_A_TIME", "YEAR_1", "Every", "seconds_of", "seconds_of_column"]

NOT_A_TIME = "a time that is neither seconds since 1970 nor ISO 8601, in the years 1 to 9999"
YEAR_1, _YEAR_10000 = -62135596800, 253402300800  # seconds from 1970


def seconds_of_column(column: Any) -> npt.NDArray[np.float64]:
    """The times of a column of text as seconds; not a number where there is none."""
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
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            return float(pa.scalar(value).cast(kind).cast(pa.int64()).as_py() / 1e6)
    return math.nan


# ---- spans of time as groups -----------------------------------------------------------------------------------------

_UNITS: dict[str, int | str] = {"s": 1, "m": 60, "h": 3600, "d": "day", "w": "week", "mo": "month"}


@dataclass(frozen=True)
class Every:
    """Equal spans of the calendar: 1h, 1d, 1w (from Monday), 1mo, or several of them, in UTC or a zone.

    A time belongs to the span that it is in by the clock of the zone, whatever else is in the data. Days and longer are
    named by their first date, hours and shorter by the time at which they begin.
    """

    text: str
    zone: str | None = None

    def __post_init__(self) -> None:
        found = re.fullmatch(r"([0-9]{1,6})(s|mo|m|h|d|w)", str(self.text))
        if found is None or int(found[1]) == 0:
            raise ParameterError(f"every must be a whole number and s, m, h, d, w or mo, as in 1d, not {self.text!r}")
        if self.zone is not None:
            import zoneinfo

            try:
                zoneinfo.ZoneInfo(self.zone)
            except (ValueError, OSError, TypeError, KeyError):
                raise ParameterError(f"there is no time zone {self.zone!r}; one is named as in Europe/Berlin") from None

    @property
    def _step(self) -> tuple[int, int | str]:
        number = self.text.rstrip("smohdw")
        return int(number), _UNITS[self.text[len(number) :]]

    @property
    def type(self) -> pa.DataType:
        """The type of the groups."""
        return pa.date32() if isinstance(self._step[1], str) else pa.timestamp("s", self.zone or "UTC")

    def spans(self, column: pa.Array, source: str) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
        """The span of every time of a column, and which of them are good; None if all are. A null stays null."""
        import pyarrow.compute as pc

        seconds, good = self._seconds(column, source)
        missing = np.asarray(column.is_null()) if column.null_count else None
        moments = pa.array(np.where(good, seconds, 0.0).astype(np.int64)).cast(pa.timestamp("s", "UTC"))
        local = pc.local_timestamp(moments.cast(pa.timestamp("s", self.zone or "UTC")))
        number, unit = self._step
        if isinstance(unit, str):
            found = pc.floor_temporal(local, number, unit).cast(pa.date32())
        else:  # by the clock of the zone, but an hour that comes twice is two
            over = np.asarray(local.cast(pa.int64())) % (number * unit)
            found = pa.array(np.asarray(moments.cast(pa.int64())) - over).cast(self.type)
        if missing is not None:
            found = pc.if_else(pa.array(missing), pa.scalar(None, self.type), found)
            good = good | missing
        return found, None if good.all() else good

    @staticmethod
    def _seconds(column: pa.Array, source: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Whole seconds, rounded down, and which rows have a time of the years 1 to 9999."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            per = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit] if pa.types.is_timestamp(kind) else 1e3
            numbers = column.cast(pa.date64()) if pa.types.is_date(kind) else column
            seconds = np.asarray(numbers.cast(pa.int64()).fill_null(0), np.float64) / per
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            seconds = column.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy(zero_copy_only=False)
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            seconds = seconds_of_column(column.cast(pa.string()).fill_null(""))
        else:
            raise DataError(f"{source}: times must be timestamps, dates, seconds or text, not {kind}")
        with np.errstate(invalid="ignore"):
            good = (seconds >= YEAR_1) & (seconds < _YEAR_10000)
        return np.floor(seconds), good
