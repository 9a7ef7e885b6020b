"""Tuples of typed parts as keys: different tuples have different keys, and keys read back are the tuples."""

import datetime
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DataError
from discreet.events.keys import OWN_KINDS, USUAL_GROUPS, Keys, Layout, part_type
from discreet.events.tables import events_of
from discreet.events.times import Every
from discreet.events.values import column_of_plain, items_array, plain_column, tagged, untagged
from discreet.noise import seeded_source

DAY = datetime.date(2026, 3, 1)
NOON = datetime.datetime(2026, 3, 1, 12, 0, 0, 5)
COLUMNS = {
    "text": pa.array(["", "a", "aa\x00", "é"]),
    "bytes": pa.array([b"", b"\x00", b"\xff", b"a"]),
    "small": pa.array([1, 2, -3, 4], pa.int8()),
    "large": pa.array([0, 2**64 - 1, 1, 2], pa.uint64()),
    "flag": pa.array([True, False, True, False]),
    "day": pa.array([DAY, DAY, None, DAY]).fill_null(DAY),
    "moment": pa.array([NOON] * 4, pa.timestamp("us", "Europe/Berlin")),
    "nanos": pa.array([1, 2, 3, 4], pa.int64()).cast(pa.timestamp("ns")),
    "price": pa.array([Decimal("1.50"), Decimal("-2.25"), Decimal(0), Decimal("9999.99")], pa.decimal128(6, 2)),
    "wide": pa.array([Decimal("1.5")] * 4, pa.decimal256(50, 3)),
    "ratio": pa.array([0.5, -0.0, 0.0, float("inf")]),
    "short": pa.array([0.5, 1.5, 2.5, 3.5], pa.float32()),
    "clock": pa.array([datetime.time(1, 2, 3)] * 4, pa.time64("us")),
    "took": pa.array([datetime.timedelta(seconds=3)] * 4, pa.duration("ms")),
    "kind": pa.array(["x", "y", "x", "y"]).dictionary_encode(),
}


def layout_of(columns, by=0):
    return Layout.of([f"c{i}" for i in range(len(columns))], [column.type for column in columns], by)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_comes_back_as_it_was(name):
    column = COLUMNS[name]
    for columns in ([column], [column, COLUMNS["text"]], [COLUMNS["text"], column, COLUMNS["bytes"]]):
        layout = layout_of(columns)
        back = layout.columns(layout.keys(columns))
        for given_column, found in zip(columns, back, strict=True):
            assert found.type == part_type(given_column.type)
            assert found.to_pylist() == given_column.to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_is_written_and_read_as_json(name):
    column = COLUMNS[name]
    typed = layout_of([column]).columns(layout_of([column]).keys([column]))[0]
    values, told = plain_column(typed)
    assert column_of_plain(values, told).equals(typed)


texts = st.text(st.characters(codec="utf-8"), max_size=5)
rows = st.lists(st.tuples(texts, st.binary(max_size=4), st.integers(-5, 5), texts), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(rows, st.booleans())
def test_keys_are_different_where_tuples_are(given_rows, encode):
    types = [pa.string(), pa.binary(), pa.int64(), pa.string()]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*given_rows, strict=True), types, strict=True)]
    if encode:
        columns = [column.dictionary_encode() for column in columns]
    layout = layout_of(columns)
    keys = layout.keys(columns)
    keys = keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys
    assert len(set(keys.to_pylist())) == len(set(given_rows))
    back = layout.items(keys)
    assert [tuple(row.values()) for row in back.to_pylist()] == given_rows


def test_dictionaries_of_few_values_make_a_dictionary_of_keys_with_the_same_meaning():
    columns = [
        pa.array(["a", "b", None, "a"] * 5).dictionary_encode(),
        pa.array([1, None, 2, 1] * 5),
    ]
    layout = layout_of(columns)
    quick, plain = layout.keys(columns), layout.keys([columns[0].dictionary_decode(), columns[1]])
    assert pa.types.is_dictionary(quick.type)
    assert not pa.types.is_dictionary(plain.type)
    assert quick.dictionary_decode().to_pylist() == plain.to_pylist()
    assert plain.null_count == 10


def test_slices_and_nulls_of_columns_are_read_where_they_are():
    columns = [pa.array([9, 1, 2, None, 4])[1:], pa.array(["z", "a", "b", "c", "d"])[1:]]
    layout = layout_of(columns)
    keys = layout.keys(columns)
    assert keys.is_null().to_pylist() == [False, False, True, False]
    assert [tuple(row.values()) for row in layout.items(keys.drop_null()).to_pylist()] == [(1, "a"), (2, "b"), (4, "d")]


def test_one_zero_and_no_not_a_number():
    keys = layout_of([COLUMNS["ratio"]]).keys([pa.array([0.0, -0.0, float("nan")])]).to_pylist()
    assert keys[0] == keys[1]
    assert keys[2] is None


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.month_day_nano_interval()])
def test_nested_columns_cannot_be_parts(kind):
    with pytest.raises(dc.DataError, match="'c0' is of type"):
        Layout.of(["c0"], [kind])


def test_a_later_batch_is_cast_to_the_types_of_the_first_or_refused():
    keys = Keys(["a", "b"])
    first = keys.of([pa.array([1], pa.int32()), pa.array(["x"])], "one")[0]
    again = keys.of([pa.array([1], pa.int64()), pa.array(["x"]).dictionary_encode()], "two")[0]
    decoded = again.dictionary_decode() if pa.types.is_dictionary(again.type) else again
    assert decoded.to_pylist() == first.to_pylist()
    with pytest.raises(dc.DataError, match="'a' is of type string, but was int64 before"):
        keys.of([pa.array(["secret"]), pa.array(["x"])], "three")


@pytest.mark.parametrize(
    "value",
    [1, 2**63, "a", "", b"\xff", True, False, DAY, NOON, NOON.replace(tzinfo=datetime.timezone.utc), Decimal("1.5")],
)
def test_values_with_kinds_of_their_own_come_back(value):
    back = untagged(tagged(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "value", [None, 1.5, object(), [1], "\ud800", 2**64, Decimal("NaN"), Decimal("1e99"), "x" * 5000]
)
def test_what_cannot_be_an_item_has_no_kind(value):
    assert tagged(value) is None


def test_values_of_several_kinds_are_a_union_that_is_written_and_read():
    values = [1, "1", b"1", True, DAY, NOON, Decimal("1.5")]
    column = items_array(values)
    assert column.to_pylist() == values
    plain, told = plain_column(column)
    assert told["type"] == "mixed"
    assert column_of_plain(plain, told).to_pylist() == values
    layout = Layout.of(["a", "b"], [OWN_KINDS, pa.int64()])
    keys = layout.keys([pa.array([tagged(value) for value in values], pa.large_binary()), pa.array(range(7))])
    assert [row["a"] for row in layout.items(keys).to_pylist()] == values


@pytest.mark.parametrize(
    ("first", "later", "odd"),
    [
        (pa.int64(), pa.string(), "x"),
        (pa.int64(), pa.float64(), 5.5),
        (pa.int64(), pa.uint64(), 2**63),
        (pa.large_string(), pa.binary(), b"\xff"),
        (pa.decimal128(5, 1), pa.decimal128(6, 2), Decimal("1.55")),
        (pa.timestamp("ms"), pa.timestamp("us"), datetime.datetime(2020, 1, 1, 0, 0, 0, 7)),
        (pa.date32(), pa.timestamp("us"), datetime.datetime(2020, 1, 1, 5)),
    ],
)
def test_whether_a_later_type_is_taken_does_not_depend_on_a_row(first, later, odd):
    def taken(values):
        keys = Keys(["a", "b"])
        keys.of([pa.array([], first), pa.array([], pa.string())], "first")
        try:
            keys.of([pa.array(values, later), pa.array(["q"] * len(values))], "later")
        except DataError as error:
            return str(error)
        return True

    assert taken([]) == taken([odd])


def test_dates_that_are_no_whole_days_are_days():
    raw = pa.py_buffer(np.array([86400000, 86400001], np.int64))
    dates = pa.Array.from_buffers(pa.date64(), 2, [None, raw])
    keys = Keys(["a", "b"])
    made, _, _ = keys.of([dates, pa.array(["q", "q"])], "table")
    assert keys.items(made).to_pylist() == [{"a": datetime.date(1970, 1, 2), "b": "q"}] * 2


def test_a_key_is_the_fixed_parts_the_lengths_and_the_texts():
    """Byte for byte, of texts as they are, in dictionaries, in slices and with nulls."""
    texts = pa.array(["", "ab", None, "é", "x" * 300, "ab", "c"])
    other = pa.array([b"1", b"", b"22", None, b"4", b"5", b"6"], pa.binary())
    numbers = pa.array([1, -1, 3, 4, None, 2**40, 0], pa.int64())
    layout = Layout.of(["n", "t", "o"], [numbers.type, texts.type, other.type])
    rows = zip(numbers.to_pylist(), texts.to_pylist(), other.to_pylist(), strict=True)
    expected = [
        None if None in row else struct.pack("<qI", row[0], len(row[1].encode())) + row[1].encode() + row[2]
        for row in rows
    ]
    nulls = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 1, 5]), pa.array(["", "ab", None, "é", "x" * 300, "c"])
    )
    for column in (texts, texts.dictionary_encode(), texts.cast(pa.large_string()), nulls):
        for start in (0, 2):
            columns = [numbers[start:], column[start:], other[start:]]
            assert layout.keys(columns).to_pylist() == expected[start:]
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    assert layout.keys([numbers[:2], empty, other[:2]]).to_pylist() == [None, None]
    assert layout.keys([numbers[:0], texts[:0], other[:0]]).to_pylist() == []


@pytest.mark.parametrize("groups", [None, [0.5, 1.5]])
@pytest.mark.parametrize("nulls", [pa.array([0.5, None, 1.5, 7.0]), pa.array([0.5, float("nan"), 1.5, 7.0])])
def test_a_row_without_a_group_is_one_without_a_value_whatever_is_listed(groups, nulls):
    """A list leaves out rows of other groups; it does not hide that a row has none."""
    table = pa.table({"shop": nulls, "item": ["a", "b", "a", "a"]})

    def rows(rule):
        found = events_of(table).rows("item", by=("shop",), groups=groups, nulls=rule)
        return sum(batch.num_rows for batch in found)

    assert rows("skip") == (3 if groups is None else 2)
    with pytest.raises(DataError, match="rows with no value in the column"):
        rows("error")


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64(), pa.uint16()])
@pytest.mark.parametrize("listed", [[True], [1, False], [1.0], [0, 1.5]])
def test_a_list_of_groups_has_whole_numbers_where_the_column_has(kind, listed):
    """Neither True nor 1.0 is the group 1: a list that was meant for another column is refused, not made to fit."""
    table = pa.table({"shop": pa.array([0, 1, 1], kind), "item": ["a", "b", "a"]})
    with pytest.raises(dc.ParameterError, match="values of the type"):
        list(events_of(table).rows("item", by=("shop",), groups=listed))
    assert sum(batch.num_rows for batch in events_of(table).rows("item", by=("shop",), groups=[1])) == 2


def test_dictionaries_of_many_values_are_keyed_row_by_row():
    """The tuples that are possible may be far more than there are rows, and than fit in memory."""
    columns = [pa.array([f"{n}-{place}" for n in range(3000)]).dictionary_encode() for place in range(6)]
    layout = layout_of(columns)
    keys = layout.keys(columns)
    assert [column.to_pylist() for column in layout.columns(keys)] == [column.to_pylist() for column in columns]
    few = [column.slice(0, 5) for column in columns]
    assert layout.keys(few).to_pylist() == keys.slice(0, 5).to_pylist()


def test_what_was_said_of_groups_is_what_a_charge_stands_for():
    assert Keys(["a"]).asked == Keys(["a"], ["g"]).asked == {}
    daily = Keys(["a"], ["at"], every=Every("1d", "Europe/Berlin"))
    assert daily.asked == {"every": "1d", "zone": "Europe/Berlin"}
    assert Keys(["a"], ["at"], every=Every("6h")).asked == {"every": "6h", "zone": "UTC"}
    listed = Keys(["a"], ["g"], groups=["x", 7, DAY])
    assert listed.asked == {"groups": [["x"], ["7"], ["2026-03-01"]]}
    both = Keys(["a"], ["at", "g"], every=Every("1d"), groups=[("2026-03-01", "x"), ("2026-03-02", "y")])
    assert both.asked == {"every": "1d", "zone": "UTC", "groups": [["2026-03-01", "x"], ["2026-03-02", "y"]]}


def test_how_many_may_be_listed_follows_from_what_is_public():
    assert Keys(["a"]).items_in_all(10) == 10
    assert Keys(["a"], ["g"]).items_in_all(10) == 10 * USUAL_GROUPS
    assert Keys(["a"], ["g"], groups=["x", "y", "z"]).items_in_all(10) == 30


TIMES = ["2026-03-29T00:30:00Z", "2026-03-29T06:00:00Z", "2026-03-29T12:00:00Z"]


@pytest.mark.parametrize(
    ("zone", "groups", "rows"),
    [
        ("Europe/Berlin", ["2026-03-29T00:00:00", "2026-03-29T06:00:00", "2026-03-29T12:00:00"], [1, 1, 1]),
        ("Europe/Berlin", ["2026-03-29 06:00:00"], [1]),  # as the clock there shows it
        ("Europe/Berlin", ["2026-03-29T04:00:00Z"], [1]),  # or with an offset
        ("Europe/Berlin", ["2026-03-29T06:00:00+02:00"], [1]),
        ("UTC", ["2026-03-29T06:00:00"], [1]),
        ("UTC", ["2026-03-29T06:00:00", "2026-03-29T00:00:00"], [1, 1]),
    ],
)
def test_times_of_a_list_are_those_of_the_clock_of_the_zone(zone, groups, rows):
    table = pa.table({"at": TIMES})
    found = dc.count(table, dc.Budget(100.0), every="6h", time="at", zone=zone, groups=groups, source=seeded_source(1))
    assert [round(row["count"]) for row in found.to_arrow().to_pylist()] == rows


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (["a", "a"], "names one of them twice"), (["a", None], "empty value|nulls"), ([], "must be a list of values"),
        ("ab", "must be a list of the groups, not str"), ({"a": 1}, "must be a list of the groups, not dict"),
        (7, "must be a list of the groups, not int"),
    ],
)  # fmt: skip
def test_a_list_that_is_none_of_groups_is_refused(groups, words):
    table = pa.table({"g": ["a", "b"]})
    with pytest.raises(dc.DiscreetError, match=words):
        dc.count(table, dc.Budget(1.0), by="g", groups=groups)


@pytest.mark.parametrize("group", [1.5, True, 1.0])
def test_a_group_of_another_type_is_not_cut_to_one(group):
    with pytest.raises(dc.ParameterError, match="must be values of the type int64"):
        dc.count(pa.table({"g": [1, 2]}), dc.Budget(1.0), by="g", groups=[group])


FITS = [
    (pa.int64(), pa.int8(), True), (pa.int64(), pa.uint32(), True), (pa.int64(), pa.uint64(), False),
    (pa.uint64(), pa.uint8(), True), (pa.uint64(), pa.int8(), False), (pa.int64(), pa.float64(), False),
    (pa.float64(), pa.float32(), True), (pa.float32(), pa.float64(), False), (pa.float64(), pa.int64(), False),
    (pa.decimal128(6, 2), pa.decimal128(5, 1), True), (pa.decimal128(6, 2), pa.decimal128(6, 1), False),
    (pa.decimal128(6, 2), pa.decimal128(6, 3), False), (pa.decimal128(6, 2), pa.int64(), False),
    (pa.string(), pa.large_string(), True), (pa.string(), pa.binary(), False), (pa.binary(), pa.string(), True),
    (pa.string(), pa.int64(), True), (pa.date32(), pa.date64(), True), (pa.date32(), pa.string(), False),
    (pa.timestamp("s"), pa.timestamp("ns"), True), (pa.timestamp("s"), pa.date32(), False),
    (pa.time64("us"), pa.timestamp("s"), False), (pa.bool_(), pa.int8(), False), (pa.int64(), pa.bool_(), False),
    (pa.int64(), pa.null(), True), (pa.string(), pa.null(), True),
]  # fmt: skip


@pytest.mark.parametrize(("first", "later", "fits"), FITS, ids=str)
def test_a_later_file_fits_by_its_type_and_never_by_its_values(first, later, fits):
    """One row would decide otherwise whether anything is counted."""
    keys = Keys(["a", "b"])
    text = pa.array(["x"])
    keys.of([pa.nulls(1, first), text], "first")
    if fits:
        keys.of([pa.nulls(1, later), text], "later")
    else:
        with pytest.raises(DataError, match=r"later: the column 'a' is of type .*, but was .* before; use one type"):
            keys.of([pa.nulls(1, later), text], "later")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_one_zero_and_no_value_that_is_no_number(kind):
    numbers = pa.array(np.array([0.0, -0.0, np.nan, 1.5], kind.to_pandas_dtype()), kind)
    layout = layout_of([numbers, COLUMNS["text"]])
    keys = layout.keys([numbers, pa.array(["x"] * 4)]).to_pylist()
    assert keys[0] == keys[1] != keys[3]
    assert keys[2] is None


def test_nulls_of_any_part_make_no_key():
    """Also where parts are dictionaries, whose values may be null, or whose rows may."""
    kinds = {
        "plain": lambda values: pa.array(values),
        "rows": lambda values: pa.array(values).dictionary_encode(),
        "values": lambda values: pa.DictionaryArray.from_arrays(pa.array(range(len(values))), pa.array(values)),
    }
    first, second = ["a", None, "a", "b", None] * 4, ["x", "y", None, "x", None] * 4
    for one in kinds.values():
        for other in kinds.values():
            columns = [one(first), other(second)]
            keys = layout_of(columns).keys(columns)
            missing = [a is None or b is None for a, b in zip(first, second, strict=True)]
            assert [key is None for key in keys.to_pylist()] == missing
            kept = keys.to_pylist()[0::5] + keys.to_pylist()[3::5]
            assert len({*kept}) == 2


def test_a_row_without_a_group_is_not_one_of_another_group():
    """With a list of groups it has no value, and is not left out as one that nobody listed."""
    table = pa.table({"g": ["a", None, "z"], "x": ["p", "q", "r"]})
    with pytest.raises(DataError, match="no value in the column"):
        dc.top_k(table, 1, dc.Budget(1.0, 1e-6), column="x", by="g", groups=["a"])
    found = events_of(table).rows("x", by=("g",), groups=["a"], nulls="skip")
    assert [batch.num_rows for batch in found] == [1]
    assert found.bad_rows == 0
