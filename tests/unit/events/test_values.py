"""Values with their kinds: equal ones are one item, others are not, and the type of a column follows from them."""

import datetime
import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet.events.values import (
    column_of_plain,
    item_order,
    items_array,
    joined_keys,
    own_kinds,
    plain_column,
    published_type,
    tagged,
    untagged,
    with_kinds,
    without_kinds,
)

UTC = datetime.timezone.utc
BERLIN = datetime.timezone(datetime.timedelta(hours=1))
NOON = datetime.datetime(2026, 11, 15, 12, 0, 0, 1)
SAME = {
    "numbers": [1, np.int8(1), np.uint64(1)],
    "texts": ["a", np.str_("a")],
    "bytes": [b"a", np.bytes_(b"a")],
    "truths": [True, np.True_],
    "decimals": [Decimal("1.5"), Decimal("1.50"), Decimal("0.15E1"), Decimal("15E-1")],
    "hundreds": [Decimal("100"), Decimal("1E2"), Decimal("1.00E+2")],
    "nothing": [Decimal("0"), Decimal("0.00"), Decimal("-0"), Decimal("0E9"), Decimal("0E-99")],
    "moments": [NOON, pd.Timestamp(NOON), np.datetime64("2026-11-15T12:00:00.000001")],
    "moments with a zone": [
        NOON.replace(tzinfo=UTC), NOON.replace(hour=13, tzinfo=BERLIN), pd.Timestamp(NOON, tz="UTC"),
        pd.Timestamp(NOON.replace(hour=13), tz="Europe/Berlin"),
    ],
    "days": [datetime.date(2026, 11, 15), np.datetime64("2026-11-15")],
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_one_value_has_one_key_whatever_made_it(what):
    first, *others = map(tagged, SAME[what])
    assert first is not None
    assert others == [first] * len(others)
    assert tagged(untagged(first)) == first


DIFFERENT = [
    1, "1", b"1", Decimal("1"), True, "a", b"a", "", b"", 0, False, Decimal("0"), Decimal("0.1"), Decimal("-0.1"), -1,
    NOON, NOON.replace(tzinfo=UTC), NOON.replace(microsecond=0), NOON.replace(microsecond=1000), NOON.date(), 2**63,
    "t", "i1", "None",
]  # fmt: skip


def test_different_values_have_different_keys():
    keys = [tagged(value) for value in DIFFERENT]
    assert None not in keys
    assert len({*keys}) == len(keys)
    found = [untagged(key) for key in keys]
    assert found == DIFFERENT
    assert [*map(type, found)] == [*map(type, DIFFERENT)]


@pytest.mark.parametrize(
    "value",
    [
        None, 1.5, float("nan"), object(), [1], {}, 2**64, -(2**63) - 1, "\ud800", "x" * 4097, b"x" * 4097, pd.NaT,
        Decimal("nan"), Decimal("inf"), Decimal("1E38"), Decimal("1E-39"), 1j, np.timedelta64(1, "s"),
        np.datetime64("NaT", "s"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_can_be_no_item_has_no_key(value):
    assert tagged(value) is None


@pytest.mark.parametrize("value", ["x" * 4096, b"x" * 4096, -(2**63), 2**64 - 1, Decimal("9" * 38), Decimal("1E-38")])
def test_the_largest_items_have_keys(value):
    assert untagged(tagged(value)) == value


def test_a_time_that_fails_when_it_is_asked_is_no_item():
    class Broken(datetime.tzinfo):
        def utcoffset(self, when):
            raise ValueError("secret")

    assert tagged(NOON.replace(tzinfo=Broken())) is None


def test_kinds_of_columns_are_those_of_their_values():
    for values in (["a", None, ""], [b"a", None], [1, None, -5], [2**63, 0]):
        column = pa.array(values, pa.uint64() if max([v for v in values if v is not None] or [0]) == 2**63 else None)
        for each in (column, column.dictionary_encode()):
            written = with_kinds(each)
            assert written.to_pylist() == [None if value is None else tagged(value) for value in values]
    assert without_kinds(pa.array([tagged(1), tagged("a")], pa.large_binary())).to_pylist() == [1, "a"]


def test_a_missing_category_is_no_bad_row():
    """Whether it may be missing is not decided here."""
    column = pd.Series(["a", None, object, "a"], dtype=object).astype(pd.CategoricalDtype(["a", object], ordered=False))
    written, good = own_kinds(column)
    assert written.to_pylist() == [tagged("a"), None, None, tagged("a")]
    assert good.tolist() == [True, True, False, True]


# ---- columns of items ------------------------------------------------------------------------------------------------

TYPES = {
    "nothing": ([], pa.large_string()),
    "texts": (["a", ""], pa.large_string()),
    "bytes": ([b"a"], pa.large_binary()),
    "small": ([1, -(2**63), 2**63 - 1], pa.int64()),
    "large": ([0, 2**63], pa.uint64()),
    "truths": ([True, False], pa.bool_()),
    "days": ([NOON.date()], pa.date32()),
    "moments": ([NOON], pa.timestamp("us")),
    "moments in UTC": ([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "decimals": ([Decimal("1.50"), Decimal("-12")], pa.decimal128(4, 2)),
    "wide decimals": ([Decimal("1" * 38), Decimal("0.5")], pa.decimal256(39, 1)),
}


@pytest.mark.parametrize("what", TYPES)
def test_the_type_of_items_follows_from_them(what):
    values, kind = TYPES[what]
    column = items_array(values)
    assert (column.type, column.to_pylist()) == (kind, values)
    listed, told = plain_column(column)
    json.dumps(listed)
    assert column_of_plain(listed, json.loads(json.dumps(told))).equals(column)


@pytest.mark.parametrize(
    "values", [["a", 1], [b"a", "a"], [-1, 2**63], [NOON, "a", 1], [True, 1], [Decimal("1"), 1, b"x", NOON.date()]]
)
def test_items_of_several_kinds_stay_what_they_are(values):
    column = items_array(values)
    assert pa.types.is_union(column.type)
    assert column.to_pylist() == values
    listed, told = plain_column(column)
    assert column_of_plain(json.loads(json.dumps(listed)), told).to_pylist() == values


@pytest.mark.parametrize(("largest", "kind"), [(2**62, pa.int64()), (2**63 - 1, pa.int64()), (2**63, pa.uint64())])
def test_a_type_of_numbers_is_as_wide_as_they_need(largest, kind):
    """And not as the column was that somebody's row was in."""
    assert published_type(pa.array([0, largest], pa.uint64())).type == kind
    assert published_type(pa.array([], pa.uint64())).type == pa.large_string()


def test_items_have_one_order():
    """Whole numbers, text, bytes, and then what else there may be."""
    values = [b"a", "b", 2, NOON.date(), "a", True, -1, NOON, Decimal("1")]
    assert sorted(values, key=item_order) == [-1, 2, "a", "b", b"a", True, NOON.date(), NOON, Decimal("1")]


def test_what_json_has_no_number_for_is_text():
    values, told = plain_column(pa.array([1.5, math.inf, -math.inf, math.nan]))
    assert values[:3] == [1.5, "inf", "-inf"]
    json.loads(json.dumps(values, allow_nan=False))
    assert column_of_plain(values[:3], told).to_pylist() == [1.5, math.inf, -math.inf]


@pytest.mark.parametrize("name", ["list<item: string>", "struct<a: int64>", "int8", "month_interval", "", "timestamp"])
def test_types_that_are_not_published_are_refused(name):
    with pytest.raises((ValueError, pa.ArrowException)):
        column_of_plain([], {"type": name})


def test_keys_of_two_parts_have_one_place_each():
    one, other = pa.array(["b", "a"]), pa.array(["c", "b"])
    keys, places = joined_keys(one, other)
    assert keys.to_pylist() == ["a", "b", "c"]
    assert places.tolist() == [1, 0, 2, 1]
    none, nowhere = joined_keys(one[:0], other[:0])
    assert (len(none), len(nowhere)) == (0, 0)
    assert joined_keys(one[:0], other)[1].tolist() == [1, 0]
