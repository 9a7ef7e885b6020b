"""Times in columns: seconds since 1970, or ISO 8601, in the years that a date can say."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import DataError
from discreet.events.arrow_calls import filled, of_numbers
from discreet.events.items import kind_of, of_numpy, read

if TYPE_CHECKING:
    import numpy.typing as npt

    from discreet.privacy.spans import Calendar, Period

NOT_A_TIME = "a time that is neither seconds since 1970 nor ISO 8601, in the years 1 to 9999"
YEAR_1, _YEAR_10000 = -62135596800, 253402300800  # seconds from 1970
_DAY = 86_400
_NO_TIME = YEAR_1 - 1  # in place of whole seconds
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECONDS = 10**6


class Times(NamedTuple):
    """Times as whole seconds from 1970, rounded down, and what they have beside these.

    Microseconds are divided as whole numbers: as floats those after the year 2255 would be rounded, to the next second
    or not by what else is in the column.

    Attributes:
        whole: Whole seconds; any number where there is no time.
        fraction: From 0 to less than 1.
        good: Whether there is a time of the years 1 to 9999.
    """

    whole: npt.NDArray[np.int64]
    fraction: npt.NDArray[np.float64]
    good: npt.NDArray[np.bool_]


def _of_ticks(ticks: npt.NDArray[Any], per: int) -> Times:
    """Of whole numbers, this many a second."""
    whole, rest = np.divmod(ticks, ticks.dtype.type(per))
    good = (whole >= YEAR_1) & (whole < _YEAR_10000)
    return Times(np.where(good, whole.astype(np.int64), _NO_TIME), rest / per, good)


def _of_floats(seconds: npt.NDArray[np.float64]) -> Times:
    with np.errstate(invalid="ignore"):
        good = (seconds >= YEAR_1) & (seconds < _YEAR_10000)
    found = np.where(good, seconds, float(_NO_TIME))
    whole = np.floor(found)
    return Times(whole.astype(np.int64), found - whole, good)


def _of_texts(column: pa.Array) -> Times:
    """Of a column of text without nulls: at once where all are written in one way, else one by one, with one result."""
    for kind in (pa.float64(), pa.timestamp("us", "UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            column[:1].cast(kind)  # to fail takes far longer than to read, and all fail where the first does
            values = column.cast(kind)
            if kind != pa.float64():
                return _of_ticks(np.asarray(values.cast(pa.int64())), _MICROSECONDS)
            numbers = np.asarray(values, np.float64)
            if not np.isnan(numbers).any():
                return _of_floats(numbers)
    return _of_each(column.to_pylist())


def _of_each(values: Iterable[Any]) -> Times:
    each = [_time_of(value) or (_NO_TIME, 0.0) for value in values]
    whole = np.array([whole for whole, _ in each], np.int64)
    return Times(whole, np.array([fraction for _, fraction in each], np.float64), whole != _NO_TIME)


def _time_of(value: Any) -> tuple[int, float] | None:
    """(whole seconds, the rest) of a time, a date, a number of seconds or a text; None for anything else.

    It depends on this value alone, whatever kind of object it is.
    """
    try:
        found = _exact(value)
    except MemoryError:
        raise
    except Exception:  # of an object that fails when it is asked, such as a time zone
        return None
    if isinstance(found, float):
        if not YEAR_1 <= found < _YEAR_10000:
            return None
        whole = math.floor(found)
        return whole, found - whole
    if found is None or not YEAR_1 * _MICROSECONDS <= found < _YEAR_10000 * _MICROSECONDS:
        return None
    return found // _MICROSECONDS, found % _MICROSECONDS / _MICROSECONDS


def _exact(value: Any) -> int | float | None:
    """Microseconds as a whole number, or seconds as a float."""
    value = of_numpy(value)
    if isinstance(value, datetime.datetime):
        return None if value != value else _microseconds(value)  # NaT of pandas is a datetime
    if isinstance(value, datetime.date):
        return _microseconds(datetime.datetime(value.year, value.month, value.day))
    if isinstance(value, str):
        return _written(value)
    if isinstance(value, (Real, Decimal)) and not isinstance(value, bool):
        return float(value)
    return None


def _written(text: str) -> int | float | None:
    with suppress(ValueError):
        number = float(text)
        if not math.isnan(number):
            return number
    with suppress(ValueError):
        return _microseconds(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")))
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):  # which know forms that Python does not
        with suppress(pa.ArrowException):
            found: int = pa.scalar(text).cast(kind).cast(pa.int64()).as_py()
            return found
    return None


def _microseconds(moment: datetime.datetime) -> int:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone.utc)
    return (known - _EPOCH) // datetime.timedelta(microseconds=1)


def seconds_of_column(column: pa.Array) -> npt.NDArray[np.float64]:
    """The times of a column of text as seconds; not a number where there is none."""
    times = _of_texts(column)
    return np.where(times.good, times.whole + times.fraction, math.nan)


def whole_seconds(column: pa.Array, source: str) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """The times of a column as whole seconds from 1970, rounded down, and which of them are times."""
    times = _times(column, source)
    return pa.array(times.whole), times.good


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970 or ISO 8601, in the years 1 to 9999, as seconds; None if it is neither."""
    found = _time_of(value)
    return None if found is None else sum(found)


def times_of_objects(values: Sequence[Any]) -> pa.Array:
    """Python objects as whole seconds, for `Every`: null where one is None, and no time where one is none."""
    return pa.array(_of_each(values).whole, mask=np.array([value is None for value in values], np.bool_))


# ---- spans of time as groups -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Every:
    """Equal spans of the calendar: 1h, 1d, 1w (from Monday), 1mo, or several of them, in UTC or a zone.

    A time belongs to the span that it is in by the clock of the zone, whatever else is in the data. Days and longer are
    named by their first date, hours and shorter by the time at which they begin.
    """

    text: str
    zone: str | None = None

    def __post_init__(self) -> None:
        from discreet.privacy.spans import check_zone, span_parts

        span_parts(self.text)
        if self.zone is not None:
            check_zone(self.zone)

    @property
    def _step(self) -> tuple[int, int | str]:
        from discreet.privacy.spans import span_parts

        return span_parts(self.text)

    @property
    def type(self) -> pa.DataType:
        """The type of the groups."""
        return pa.date32() if isinstance(self._step[1], str) else pa.timestamp("s", self.zone or "UTC")

    def spans(self, column: pa.Array, source: str) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
        """The span of every time of a column, and which of them are good; None if all are. A null stays null."""
        daily = self._step == (1, "day") and self.zone in (None, "UTC")
        if daily and (found := _few_days(column)) is not None:
            return of_numbers(found, pa.date32()), None
        whole, _, good = _times(column, source)
        missing = np.asarray(column.is_null()) if column.null_count else None
        if daily:  # what follows takes several times as long
            days = (np.where(good, whole, 0) // _DAY).astype(np.int32)
            good = good if missing is None else good | missing
            if missing is None:
                return of_numbers(days, pa.date32()), None if good.all() else good
            return pa.array(days, mask=missing).view(pa.date32()), None if good.all() else good
        import pyarrow.compute as pc

        moments = pa.array(np.where(good, whole, 0)).cast(pa.timestamp("s", "UTC"))
        local = pc.local_timestamp(moments.cast(pa.timestamp("s", self.zone or "UTC")))
        number, unit = self._step
        if isinstance(unit, str):
            floor = pc.floor_temporal(local, number, unit)
            found, begins = floor.cast(pa.date32()), [np.asarray(floor.cast(pa.int64()))]
        else:  # by the clock of the zone, but an hour that comes twice is two
            clock = np.asarray(local.cast(pa.int64()))
            over = clock % (number * unit)
            begins = [clock - over, np.asarray(moments.cast(pa.int64())) - over]
            found = pa.array(begins[1]).cast(self.type)
        for first in begins:  # a span that begins in no year of these has no name
            good &= (first >= YEAR_1) & (first < _YEAR_10000)
        if missing is not None:
            found = pc.if_else(pa.array(missing), pa.scalar(None, self.type), found)
            good = good | missing
        return found, None if good.all() else good


@dataclass(frozen=True)
class Pairing:
    """A pair of a person and a span of time takes the place of the person, in the rows of a period.

    Attributes:
        time: The column with the time of a row.
        calendar: The spans.
        period: Rows of other spans are left out; None: there are none.
    """

    time: str
    calendar: Calendar
    period: Period | None = None

    def spans(self, column: pa.Array, source: str) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
        """As `Every.spans`."""
        return Every(self.calendar.text, self.calendar.zone).spans(column, source)

    def inside(self, spans: pa.Array) -> npt.NDArray[np.bool_]:
        """Which of them the period has."""
        if self.period is None:
            return np.ones(len(spans), np.bool_)
        import pyarrow.compute as pc

        edges = [
            datetime.datetime.fromisoformat(edge.replace("Z", "")) for edge in (self.period.first, self.period.after)
        ]
        first, after = (pa.scalar(edge, pa.timestamp("s")).cast(spans.type) for edge in edges)
        inside = pc.and_(pc.greater_equal(spans, first), pc.less(spans, after))
        return np.asarray(pc.fill_null(inside, False))


def pair_keys(spans: pa.Array, people: pa.Array) -> pa.Array:
    """Keys of pairs of a span and a person, null where the person is; different pairs have different keys."""
    import pyarrow.compute as pc

    from discreet.events.values import with_kinds

    kind = people.type.value_type if pa.types.is_dictionary(people.type) else people.type
    if pa.types.is_floating(kind):
        # One missing value makes floats of whole numbers in pandas: it would decide how all are told apart.
        raise DataError("user holds floats; convert it to whole numbers or text")
    if kind_of(kind, lists=False) is None and not pa.types.is_null(kind):
        people = read(people, lambda: people.cast(pa.string()))
    wide = pa.int64() if pa.types.is_timestamp(spans.type) else pa.int32()
    begins = np.asarray(spans.cast(wide)).astype("<i8").tobytes()
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(spans), [None, pa.py_buffer(begins)])
    binary = pa.large_binary()
    return pc.binary_join_element_wise(fixed.cast(binary), with_kinds(people), pa.scalar(b"", binary))


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FEW_DAYS = 8


def _few_days(column: pa.Array) -> npt.NDArray[np.int32] | None:
    """The days of timestamps that are all within a few of them, as in a log that is in order: without dividing each.

    None where that is not so, or one is null or in no year that has a name.
    """
    if not pa.types.is_timestamp(column.type) or column.null_count or not len(column):
        return None
    ticks, per = np.asarray(column.view(pa.int64())), _DAY * _PER_SECOND[column.type.unit]
    first, last = int(ticks.min()) // per, int(ticks.max()) // per
    if first * _DAY < YEAR_1 or (last + 1) * _DAY > _YEAR_10000 or last - first > _FEW_DAYS:
        return None
    days = np.full(len(ticks), first, np.int32)
    for day in range(first + 1, last + 1):
        days += ticks >= day * per
    return days


def _times(column: pa.Array, source: str) -> Times:
    """The times of a column of any type that has them."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _of_ticks(np.asarray(filled(column.view(pa.int64()), 0)), _PER_SECOND[kind.unit])
    if pa.types.is_date(kind):
        return _of_ticks(np.asarray(column.cast(pa.date64()).cast(pa.int64()).fill_null(0)), 1000)
    if pa.types.is_integer(kind):
        return _of_ticks(np.asarray(column.fill_null(0)), 1)
    if pa.types.is_floating(kind):
        return _of_floats(column.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return _of_texts(column.cast(pa.string()).fill_null(""))
    raise DataError(f"{source}: times must be timestamps, dates, seconds or text, not {kind}")
