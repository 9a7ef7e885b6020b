"""Spans of the calendar, and periods that are made of them: what a charge about person-days is about.

    spans = Calendar("1d", "Europe/Berlin")
    spans.period("2026-11-15")                     one day
    spans.period(("2026-11-01", "2026-11-30"))     thirty; the first and the last are both in it

All spans of one length and zone are disjoint and cover all of time, so a moment is in one of them. Days and longer are
named by their first date, in the zone; hours and shorter by the moment at which they begin, in UTC. Names of one kind
sort as text as they do in time.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Any

from discreet._data_class import dataclass
from discreet.errors import ParameterError

UNITS: dict[str, int | str] = {"s": 1, "m": 60, "h": 3600, "d": "day", "w": "week", "mo": "month"}
"""The letters of a span: seconds, or a unit of the calendar."""

_EPOCH = date(1970, 1, 1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, order=True)
class Period:
    """Consecutive spans: from the beginning of the first to the beginning of the one after the last."""

    first: str
    after: str

    def to_dict(self) -> dict[str, str]:
        """As ledgers write it down."""
        return {"from": self.first, "before": self.after}

    @classmethod
    def from_dict(cls, values: dict[str, str]) -> Period:
        """The inverse of `to_dict`."""
        return cls(values["from"], values["before"])


ALWAYS = Period("", "~")
"""All of time: before and after every name of a span."""


def span_parts(text: object, what: str = "every") -> tuple[int, int | str]:
    """A span as text, in a number and a unit: (1, "day") of 1d, (6, 3600) of 6h."""
    found = re.fullmatch(r"([0-9]{1,6})(s|mo|m|h|d|w)", str(text))
    if found is None or int(found[1]) == 0:
        raise ParameterError(f"{what} must be a whole number with s, m, h, d, w or mo, such as 1d, not {text!r}")
    return int(found[1]), UNITS[found[2]]


def check_zone(zone: object) -> None:
    """Refuse what is no time zone."""
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(zone)  # type: ignore[arg-type]
    except (ValueError, OSError, TypeError, KeyError, AttributeError):
        raise ParameterError(f"no time zone named {zone!r}; write it like Europe/Berlin") from None


@dataclass(frozen=True)
class Calendar:
    """Equal spans of the calendar: 1d, 1w (from Monday), 1mo or several of them in a zone, or 1h and shorter in UTC.

    The same spans as those of `discreet.events.times.Every`, which finds them for columns of times.
    """

    text: str
    zone: str | None = None

    def __post_init__(self) -> None:
        number, unit = span_parts(self.text, "per")
        object.__setattr__(self, "text", f"{number}{str(self.text).lstrip('0123456789')}")
        if self.zone is not None:
            check_zone(self.zone)
            if self.zone == "UTC":
                object.__setattr__(self, "zone", None)
            elif not isinstance(unit, str):
                raise ParameterError(
                    f"zone needs spans of days, weeks or months, not {self.text}: shorter spans are the same in "
                    f"every zone"
                )

    @property
    def of_days(self) -> bool:
        """Whether spans are days or longer, and named by dates."""
        return isinstance(span_parts(self.text)[1], str)

    def describe(self) -> str:
        """One of them in words: "one day (Europe/Berlin)", "6 hours (UTC)"."""
        number, noun = span_parts(self.text)[0], self._noun
        return f"{'one' if number == 1 else number} {noun}{'' if number == 1 else 's'} ({self.zone or 'UTC'})"

    @property
    def several(self) -> str:
        """Several of them in words: "on n days"."""
        if span_parts(self.text)[0] > 1:
            return "within n such spans"
        return f"{'on' if self._noun == 'day' else 'within'} n {self._noun}s"

    @property
    def _noun(self) -> str:
        names = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month"}
        return names[self.text.lstrip("0123456789")]

    def period(self, value: Any) -> Period:
        """The period that a caller names: a span, or the first and the last of several. Both are in it."""
        try:
            if isinstance(value, Period):
                first, after = self.named(value.first), self.named(value.after)
            else:
                several = isinstance(value, (tuple, list)) and len(value) == 2
                names = [self.named(each) for each in (value if several else (value,))]
                first, after = names[0], self.after(names[-1])
        except OverflowError:
            raise ParameterError(f"period must be within the years 1 to 9999, not {value!r}") from None
        if after <= first:
            raise ParameterError(f"the period ends before it begins: {first} comes after {self._before(after)}")
        return Period(first, after)

    def told(self, period: Period) -> str:
        """A period for people: "2026-11-15", "2026-11-01 to 2026-11-30"; nothing of all of time."""
        if period == ALWAYS:
            return ""
        last = self._before(period.after)
        return period.first if last == period.first else f"{period.first} to {last}"

    def named(self, value: Any) -> str:
        """The name of the span that begins with a date or moment; refused if none does."""
        moment = self._parsed(value)
        name = self.name(moment)
        if name != _written(moment):
            raise ParameterError(f"{value} does not begin a span of {self.text}: it is in the one of {name}")
        return name

    def name(self, moment: date | datetime) -> str:
        """The name of the span that a moment is in; a moment without an offset, or a date, is one of the zone."""
        number, unit = span_parts(self.text)
        if not isinstance(unit, str):
            seconds = number * unit
            return _written(datetime.fromtimestamp(_utc(moment).timestamp() // seconds * seconds, timezone.utc))
        day = self._day(moment)
        if unit == "month":
            months = (12 * day.year + day.month - 1 - 12 * 1970) // number * number + 12 * 1970
            return _month(months)
        # 1970 began on a Thursday, three days after the Monday from which weeks are counted.
        length, shift = (7 * number, 3) if unit == "week" else (number, 0)
        days = ((day - _EPOCH).days + shift) // length * length - shift
        return (_EPOCH + days * _DAY).isoformat()

    def after(self, name: str) -> str:
        """The name of the span after one."""
        number, unit = span_parts(self.text)
        if not isinstance(unit, str):
            return _written(_utc(self._parsed(name)) + timedelta(seconds=number * unit))
        day = date.fromisoformat(name)
        if unit == "month":
            return _month(12 * day.year + day.month - 1 + number)
        return (day + number * (7 if unit == "week" else 1) * _DAY).isoformat()

    def _before(self, name: str) -> str:
        moment = self._parsed(name)
        return self.name(_utc(moment) - timedelta(microseconds=1) if isinstance(moment, datetime) else moment - _DAY)

    def _day(self, moment: date | datetime) -> date:
        if not isinstance(moment, datetime):
            return moment
        if moment.tzinfo is not None:
            import zoneinfo

            moment = moment.astimezone(zoneinfo.ZoneInfo(self.zone or "UTC"))
        return moment.date()

    def _parsed(self, value: Any) -> date | datetime:
        """A date for days and longer, a moment in UTC for shorter spans."""
        try:
            if isinstance(value, str):
                is_date = re.fullmatch(r"\d{4}-\d{2}-\d{2}", value) is not None
                value = date.fromisoformat(value) if is_date else datetime.fromisoformat(value.replace("Z", "+00:00"))
            if self.of_days and type(value) is date:
                return value
            if not self.of_days and isinstance(value, datetime):
                return _utc(value)
        except (ValueError, OverflowError):
            pass
        form = "a date as in 2026-11-15" if self.of_days else "a time as in 2026-11-15T13:00:00Z"
        raise ParameterError(f"period must be {form}, or the first and the last of several, not {value!r}")


def _month(months: int) -> str:
    """The first day of a month, counted from that of the year 0."""
    if not 12 <= months < 12 * 10_000:
        raise OverflowError("date value out of range")  # as of days
    return date(months // 12, months % 12 + 1, 1).isoformat()


def _utc(moment: date | datetime) -> datetime:
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def _written(moment: date | datetime) -> str:
    if isinstance(moment, datetime):
        return moment.astimezone(timezone.utc).isoformat(timespec="auto").replace("+00:00", "Z")
    return moment.isoformat()
