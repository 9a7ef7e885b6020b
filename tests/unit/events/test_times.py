"""Times are whole numbers: which second a time is in depends on that time alone, in every year and on every path."""

import datetime
import itertools
import zoneinfo
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DataError
from discreet.events.times import (
    Every,
    Pairing,
    pair_keys,
    seconds_of,
    seconds_of_column,
    times_of_objects,
    whole_seconds,
)
from discreet.privacy.spans import Calendar, Period

LAST = [datetime.datetime(year, 12, 31, 23, 59, 59, 999999) for year in (1, 1969, 2024, 2255, 2500, 8000, 9998, 9999)]
ODD = {"a form that only Python reads": "2024-W01-1", "a number": "12", "no time": "odd", "nothing": ""}


def days(column, every="1d", zone=None):
    found, good = Every(every, zone).spans(column, "the table")
    return ["bad" if good is not None and not good[place] else found[place].as_py() for place in range(len(found))]


TYPED = {
    "microseconds": lambda values: pa.array(values, pa.timestamp("us")),
    "in UTC": lambda values: pa.array(values, pa.timestamp("us", "UTC")),
    "dictionary": lambda values: pa.array(values, pa.timestamp("us")).dictionary_encode(),
    "text": lambda values: pa.array([value.isoformat() for value in values]),
    "large text in UTC": lambda values: pa.array([f"{value.isoformat()}Z" for value in values], pa.large_string()),
    "objects": times_of_objects,
    "objects of pandas": lambda values: times_of_objects([pd.Timestamp(value) for value in values]),
    "objects of NumPy": lambda values: times_of_objects([np.datetime64(value) for value in values]),
}


@pytest.mark.parametrize("form", TYPED)
def test_the_last_microsecond_of_a_year_is_in_it(form):
    assert days(TYPED[form](LAST)) == [moment.date() for moment in LAST]


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_text_moves_no_other_time(odd):
    texts = [moment.isoformat() for moment in LAST]
    alone = days(pa.array(texts))
    assert days(pa.array([*texts, ODD[odd]]))[:-1] == alone == [moment.date() for moment in LAST]
    seconds = seconds_of_column(pa.array(texts))
    assert seconds_of_column(pa.array([*texts, ODD[odd]]))[:-1].tolist() == seconds.tolist()
    assert [seconds_of(text) for text in texts] == seconds.tolist()


def test_nanoseconds_and_coarser():
    moment = datetime.datetime(2200, 12, 31, 23, 59, 59, 999999)
    nanoseconds = np.datetime64(moment).astype("datetime64[ns]") + np.timedelta64(999, "ns")
    assert days(pa.array([nanoseconds])) == [moment.date()]
    assert days(pa.array([datetime.date(2500, 12, 31)])) == [datetime.date(2500, 12, 31)]
    before = [pa.array([-1], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]
    assert [days(column) for column in before] == [[datetime.date(1969, 12, 31)]] * 4


def test_numbers_are_seconds():
    there = [0, -1, 253402300799, 2**64 - 5, 2**63, -(2**63)]
    expected = [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31), *["bad"] * 3]
    assert days(pa.array(there[:3] + there[5:])) == [*expected[:3], "bad"]
    assert days(pa.array(there[3:5], pa.uint64())) == ["bad"] * 2  # not -5 seconds
    assert days(times_of_objects(there)) == expected
    assert days(pa.array([0.5, -0.5, float("nan"), float("inf"), 1e300])) == [*expected[:2], *["bad"] * 3]
    assert days(times_of_objects([0.5, Decimal("-0.5"), Decimal("NaN"), float("inf"), 10**400])) == days(
        pa.array([0.5, -0.5, float("nan"), float("inf"), 1e300])
    )
    assert days(times_of_objects([None, True, b"0", [0], pd.NaT, np.datetime64("NaT", "s"), object()])) == [
        None, *["bad"] * 6,
    ]  # fmt: skip


@pytest.mark.parametrize("every", ["1d", "1w", "1mo", "90d", "1h", "7h"])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "America/New_York"])
def test_spans_that_have_no_name_are_bad_and_nothing_fails(every, zone):
    """The last hours of 9999 are in 10000 by the clock of Tokyo, and the first of 1 in 0 by that of New York."""
    moments = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23), LAST[-1], datetime.datetime(2024, 1, 1)]
    assert "bad" not in days(pa.array(moments, pa.timestamp("us")), every, zone)[3:]
    table = {"x": ["a"] * 400, "time": [moments[0], moments[2], moments[3], moments[3]] * 100}
    release = dc.top_k(table, 9, dc.Budget(5.0, 1e-9), column="x", every=every, time="time", zone=zone)
    assert len(release.items) >= 1  # which Python's dates can say


def test_floats_of_pandas_are_times_and_amounts():
    """Only as items floats are refused: there one missing value would decide how all are published."""
    frame = pd.DataFrame({"x": ["a", "b"] * 200, "t": [1e9, np.nan] * 200, "n": [1.5, 2.5] * 200, "u": range(400)})
    daily = dc.top_k(frame, 9, dc.Budget(5.0, 1e-9), column="x", every="1d", time="t", nulls="skip")
    assert daily.items == [(datetime.date(2001, 9, 9), "a")]
    summed = dc.top_k(
        frame.assign(t="t"), 9, dc.Budget(5.0, 1e-9), column=["x", "t"], user="u", value="n", value_range=(0, 3)
    )
    assert {*summed.items} == {("a", "t"), ("b", "t")}


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.int64(), pa.float64()], ids=str)
def test_the_first_second_of_the_year_10000_is_no_time(kind):
    """Nor the last before the year 1; the seconds beside them are."""
    end, start = 253_402_300_800, -62_135_596_800
    column = pa.array([start - 1, start, end - 1, end], pa.int64()).cast(kind)
    assert whole_seconds(column, "the table")[1].tolist() == [False, True, True, False]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("days", [0, 1, 8, 9, 400])
@pytest.mark.parametrize("start", [-5, 0, 20_000])
def test_days_of_few_days_are_those_of_any(unit, days, start):
    per = 86400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ticks = np.random.default_rng(days).integers(start * per, (start + days + 1) * per, 500)
    ticks = np.append(ticks, [start * per, (start + days + 1) * per - 1, (start + days) * per])
    column = pa.array(ticks).view(pa.timestamp(unit))
    found, good = Every("1d").spans(column, "it")
    assert good is None
    assert found.cast(pa.int32()).to_pylist() == [tick // per for tick in ticks.tolist()]
    with_null, _ = Every("1d").spans(pa.concat_arrays([column, pa.nulls(1, column.type)]), "it")  # one by one
    assert with_null[:-1].equals(found)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", None])
@pytest.mark.parametrize("minutes", [10, 30, 60, 120, 360])
def test_hours_begin_by_the_clock_of_the_zone_and_one_that_comes_twice_is_two(zone, minutes):
    """Around all changes of the clock in a year: an hour later by UTC is another hour, whatever clocks show."""
    clock = zoneinfo.ZoneInfo(zone or "UTC")
    days = [datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(n) for n in range(365)]
    around = [
        day
        for day, after in itertools.pairwise(days)
        if len({each.astimezone(clock).utcoffset() for each in (day, after)}) > 1
    ]
    around = around or days[:2]
    moments = [day + datetime.timedelta(minutes=7 * step) for day in around for step in range(24 * 60 // 7)]
    expected = []
    for moment in moments:
        shown = moment.astimezone(clock).replace(tzinfo=None)
        over = (shown - datetime.datetime(1970, 1, 1)) % datetime.timedelta(minutes=minutes)
        expected.append(moment - over.seconds * datetime.timedelta(seconds=1))
    expected = [moment.replace(second=0, microsecond=0) for moment in expected]
    column = pa.array(moments, pa.timestamp("s", "UTC"))
    found, good = Every(f"{minutes}m", zone).spans(column, "the table")
    assert good is None
    assert found.cast(pa.timestamp("s", "UTC")).to_pylist() == expected
    if (zone, minutes) == ("Europe/Berlin", 60):
        twice = [moment for moment in {*expected} if moment.month == 10 and moment.day == 25]
        assert len(twice) == len({*twice}) == 24
        assert len({moment.astimezone(clock).hour for moment in twice if moment.hour < 2}) == 1  # 02:00, and again


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("s"), pa.timestamp("s", "Europe/Berlin")], ids=str)
def test_pairs_of_other_spans_or_people_have_other_keys(kind):
    """Also of spans that are 2^32 seconds apart, and of people whose names go on as others begin."""
    width = pa.int32() if pa.types.is_date(kind) else pa.int64()
    numbers = [0, 1, -1, 2**31 - 1] + ([] if pa.types.is_date(kind) else [2**31, 2**32, 2**32 + 1, -(2**32)])
    people = ["", "a", "aa", "\x00"]
    both = [(number, person) for number in numbers for person in people]
    spans = pa.array([number for number, _ in both], width).cast(kind)
    keys = pair_keys(spans, pa.array([person for _, person in both])).to_pylist()
    assert len({*keys}) == len(both)
    again = pair_keys(spans, pa.array([person for _, person in both]).dictionary_encode()).to_pylist()
    assert again == keys
    assert pair_keys(spans[:1], pa.array([None], pa.string())).to_pylist() == [None]


def test_people_of_different_kinds_are_different_people_in_a_span():
    day = pa.array([0], pa.int32()).cast(pa.date32())
    people = [pa.array(["1"]), pa.array([b"1"]), pa.array([1])]
    assert len({pair_keys(day, each)[0].as_py() for each in people}) == 3
    assert pair_keys(day, pa.array([1], pa.int8())) == pair_keys(day, pa.array([1], pa.uint64()))
    for floats in (pa.array([1.0]), pa.array([1.0], pa.float32())):
        with pytest.raises(DataError, match="user holds floats; convert it to whole numbers or text"):
            pair_keys(day, floats)


def test_a_period_ends_before_the_span_that_begins_at_its_end():
    days = pa.array([datetime.date(2026, 11, day) for day in (14, 15, 16, 17)])
    inside = Pairing("at", Calendar("1d"), Period("2026-11-15", "2026-11-17")).inside(days)
    assert inside.tolist() == [False, True, True, False]
    hours = pa.array([datetime.datetime(2026, 11, 15, hour) for hour in (0, 6, 12)]).cast(pa.timestamp("s"))
    period = Period("2026-11-15T06:00:00Z", "2026-11-15T12:00:00Z")
    assert Pairing("at", Calendar("6h"), period).inside(hours).tolist() == [False, True, False]
    assert Pairing("at", Calendar("1d")).inside(days).tolist() == [True] * 4
