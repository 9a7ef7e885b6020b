"""What Spark adds up in its own code is what Python makes of the same rows, and what one machine counts: exactly."""

from __future__ import annotations

import datetime
import decimal
import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.central.quantile_grid import Grid
from discreet.engines import _spark_rows
from discreet.engines import _spark_tasks as tasks
from discreet.engines.amounts import Amounts
from discreet.engines.group_sums import group_sums
from discreet.engines.person_sums import PersonRows
from discreet.engines.plain_where import where
from discreet.engines.spark import Frame
from discreet.events.tables import Tables
from discreet.events.times import Every
from discreet.events.universe import Universe
from discreet.summaries.moments import GroupSums, ValueMoment

N = 1200
LARGEST = 4096  # bytes of an item


def _floats(random):
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 0.1, 1 / 3, 2.0**53 + 2]
    ends = [
        end
        for low in (-3.5, 0.0, 1.0, 7.0, 1000.0)
        for end in (low, math.nextafter(low, -9e9), math.nextafter(low, 9e9))
    ]
    ties = [(2 * i + 1) / 2 / 2**30 * 1024 for i in range(60)] + [i + 0.5 for i in range(-20, 40)]
    known = [*odd, *ends, *ties]
    return np.concatenate([known, random.normal(3.0, 50.0, N - len(known) - 500), random.random(500) * 10])


def _whole(random, bits):
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    known = [least, most, least + 1, most - 1, 0, -1, 1]
    if bits == 64:
        known += [2**53 + 1, -(2**53) - 1, 2**62 + 1]
    return np.concatenate([known, random.integers(max(least, -1000), min(most, 1000), N - len(known))])


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(7)
    texts = [b"", b" ", b"a", b"A", b"a ", b"a\x00", "é".encode(), "é".encode(), b"x" * LARGEST, b"x" * (LARGEST + 1)]
    texts += [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", "𝕏".encode(), b"1", b"01", "\ufffd".encode()]
    day = datetime.date(1969, 12, 25)
    stamp = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    picked = random.integers(0, 17, N)
    columns = {
        "double": pa.array(_floats(random)),
        "float": pa.array(_floats(random).clip(-3e38, 3e38).astype(np.float32)),
        "long": pa.array(_whole(random, 64), pa.int64()),
        "int": pa.array(_whole(random, 32), pa.int32()),
        "short": pa.array(_whole(random, 16), pa.int16()),
        "byte": pa.array(_whole(random, 8), pa.int8()),
        "price": pa.array([decimal.Decimal(int(i)) / 8 for i in random.integers(-50, 50, N)], pa.decimal128(20, 3)),
        "wide": pa.array([decimal.Decimal(10) ** 30 * int(i) for i in random.integers(-3, 3, N)], pa.decimal128(38, 2)),
        "bytes": pa.array([texts[i] for i in picked], pa.binary()),
        "truth": pa.array((picked % 2).astype(bool)),
        "day": pa.array([day + datetime.timedelta(int(i)) for i in random.integers(0, 12, N)]),
        "time": pa.array(
            [stamp + datetime.timedelta(microseconds=int(i)) for i in random.integers(0, 5, N)],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array(
            [stamp + datetime.timedelta(microseconds=int(i)) for i in random.integers(0, 5, N)], pa.timestamp("us")
        ),
        "few": pa.array(random.integers(-3, 4, N), pa.int32()),
        "who": pa.array([f"u{i}" for i in random.integers(0, 200, N)]),
    }
    for name in list(columns):
        holes = random.random(N) < 0.03
        columns[f"{name} or none"] = pa.array(columns[name].to_pylist(), columns[name].type, mask=holes)
        if name == "double":  # what is not a number must not become a null
            columns["double or none"] = pa.array(columns[name].to_numpy(), mask=holes, from_pandas=False)
    return pa.table(columns)


@pytest.fixture(scope="module")
def frame(spark, table):
    made = spark.createDataFrame(table).repartition(3)
    for name in ("", " or none"):
        made = made.withColumn(f"text{name}", made[f"bytes{name}"].cast("string"))
    return made.cache()


@pytest.fixture(scope="module")
def here(table):
    for name in ("", " or none"):
        table = table.append_column(f"text{name}", table[f"bytes{name}"].combine_chunks().view(pa.string()))
    return table


@pytest.fixture
def agree(frame, here, monkeypatch):
    """Spark finds what one machine does, or refuses as it does; where it is asked for, so does Python on executors."""
    known = _spark_rows.added_up

    def agreed(words, count, *, native=True, python=False, data=None, apart=None):
        added = []
        spark, machine = data or (frame, here)

        def watched(rows, of):
            added.append(known(rows, of))
            return added[-1]

        wanted = found(Tables(machine).rows, words, count, apart)
        for way in (watched, lambda rows, of: None) if python and native else (watched,):
            monkeypatch.setattr(_spark_rows, "added_up", way)
            assert found(Frame(spark).rows, words, count, apart) == wanted
        assert not added or (added[-1] is not None) == native

    return agreed


def found(rows, words, count, apart):
    """What is found; of a refusal that it is one of the data."""
    try:
        return plain(rows(**words).gathered(count, apart))
    except dc.DataError:
        return dc.DataError


def plain(answer):
    """What was found, in an order of its own."""
    if isinstance(answer, GroupSums):
        keys = [None] * len(answer.sums) if answer.keys is None else answer.keys.to_pylist()
        return dict(zip(keys, answer.sums.tolist(), strict=True))
    if isinstance(answer, PersonRows):
        keys = answer.keys.to_pylist() or [None]
        people = {}
        for owner, place, entries in zip(
            answer.owners.tolist(), answer.places.tolist(), answer.entries.tolist(), strict=True
        ):
            assert people.setdefault(owner, {}).setdefault(keys[place], entries) is entries
        return sorted(sorted(groups.items(), key=str) for groups in people.values()), sorted(keys, key=str)
    if hasattr(answer, "not_private_counts"):
        raw = answer.not_private_counts()
        return dict(zip(raw.items.to_pylist(), raw.counts.tolist(), strict=True))
    if isinstance(answer, Amounts):
        keys = answer.keys.to_pylist()
        return sorted(zip(answer.places.tolist(), (keys[group] for group in answer.groups), strict=True)), sorted(keys)
    return answer.tolist() if hasattr(answer, "tolist") else answer


MOMENTS = [
    *(
        ValueMoment(kind, *ends)
        for kind in ("signed", "split", "sum", "mean", "variance")
        for ends in ((-3.5, 7.0), (0, 1000))
    ),
    ValueMoment("sum", -1e-3, 1e9),
    ValueMoment("mean", 0.0, 1.0, 2**20),
    ValueMoment("signed", 0.1, 0.7, 2**20),
    ValueMoment("variance", -1e9, 1e9, 2**26),
    ValueMoment("split", -(2**53), 2**53 + 1),
]
NUMBERS = ["double", "float", "long", "int", "short", "byte"]


@pytest.mark.parametrize("column", [*NUMBERS, "price", "wide"])
def test_sums_of_values(agree, column):
    for at, moment in enumerate(MOMENTS if column == "double" else MOMENTS[8:9]):
        name, nulls = (column, "error") if at % 2 else (f"{column} or none", "skip")
        words = {"columns": name, "numbers": True, "nulls": nulls}
        agree(words, partial(group_sums, moment=moment), native=column in NUMBERS, python=at == 0)


KEYS = ["text", "bytes", "long", "int", "truth", "day", "time", "local", "price", "wide"]


@pytest.mark.parametrize("by", [*KEYS, "double"])
def test_sums_of_groups(agree, by):
    for kind, value, more, nulls in (
        ("count", None, "", "error"),
        ("sum", "float", " or none", "skip"),
        ("variance", "short", " or none", "error"),
    ):
        moment = ValueMoment(kind) if value is None else ValueMoment(kind, -3.5, 7.0)
        words = {"by": (f"{by}{more}", "few"), "value": value and f"{value}{more}", "nulls": nulls, "only_groups": True}
        agree(words, partial(group_sums, moment=moment), native=by != "double", python=kind == "sum")


def test_sums_of_listed_groups_and_of_days(agree):
    count = partial(group_sums, moment=ValueMoment("mean", -3.5, 7.0))
    for words in (
        {"by": ("text",), "groups": ["a", "A", "none"]},
        {"by": ("day or none",), "every": Every("1d"), "nulls": "skip"},
        {"by": ("day", "truth"), "every": Every("1mo")},
    ):
        agree({"only_groups": True, "value": "double", **words}, count, python=True)


@pytest.mark.parametrize("user", ["text", "bytes", "long", "day", "price"])
def test_sums_of_people(agree, user):
    for at, (by, kind, value) in enumerate(
        (((), "split", "double"), (("few", "truth"), "variance", "int"), (("text or none",), "count", None))
    ):
        moment = ValueMoment(kind) if value is None else ValueMoment(kind, -2.0, 7.0, 2**20)
        words = {"by": by, "only_groups": True, "value": value and f"{value} or none"}
        words = words if by else {"columns": "double or none", "numbers": True}
        words |= {"user": user, "nulls": "skip"}
        agree(words, partial(PersonRows.of, moment=moment), python=at == 1, apart="user")


@pytest.mark.parametrize(
    ("column", "universe"),
    [
        ("text", ["a", "A", "a ", "", "none", "é", "\ufffd"]),
        ("bytes", [b"a", b"\xff", b""]),
        ("long", range(-5, 9)),
        ("byte", range(9)),
    ],
    ids=["text", "bytes", "long", "byte"],
)
def test_counts_of_listed_items(agree, column, universe):
    listed = Universe(universe)
    for more, nulls in (("", "error"), (" or none", "skip"), (" or none", "error")):
        words = {"columns": f"{column}{more}", "nulls": nulls, "plain": True, "universe": listed}
        agree(words, partial(tasks.listed, universe=listed), python=True)


@pytest.mark.parametrize("column", ["text", "bytes", "long", "byte", "price", "truth", "double"])
def test_numbers_of_rows(agree, column):
    native = column not in ("price", "truth", "double")
    for more, nulls in (("", "error"), (" or none", "skip")):
        agree(
            {"columns": f"{column}{more}", "nulls": nulls, "plain": True}, tasks.number_of, native=native, python=True
        )


def test_items_are_measured_in_bytes(agree, spark):
    """Of two bytes a character: too long although they have fewer characters than an item may have bytes."""
    texts = [
        "é" * (LARGEST // 2),
        "é" * (LARGEST // 2 + 1),
        "x" * LARGEST,
        "x" * (LARGEST + 1),
        "𝕏" * (LARGEST // 4 + 1),
    ]
    odd = pa.table({"text": texts * 2, "other": [*"abcde", *"abcde"]})
    data = spark.createDataFrame(odd), odd
    agree({"columns": "text", "plain": True}, tasks.number_of, python=True, data=data)


def test_a_row_without_a_number_discovers_no_group(agree, spark):
    odd = pa.table({"g": ["0", "a", "b", "b"], "v": [math.nan, math.nan, 1.0, math.nan], "u": ["u", "v", "v", "w"]})
    rows = {"by": ("g",), "only_groups": True, "value": "v"}
    data, moment = (spark.createDataFrame(odd), odd), ValueMoment("sum", 0, 1)
    agree(rows, partial(group_sums, moment=moment), python=True, data=data)
    agree({**rows, "user": "u"}, partial(PersonRows.of, moment=moment), python=True, data=data, apart="user")
    places = partial(Amounts, place=Grid(0.0, 1.0).places)
    agree(rows, places, native=False, data=data)
    assert plain(Tables(odd).rows(**rows).gathered(partial(group_sums, moment=moment))).keys() == {"b"}


def test_what_is_left_to_python(agree):
    """The question and the schema say it: conditions, spans of time within a day, floats as groups."""
    count = partial(group_sums, moment=ValueMoment("count"))
    for words in (
        {"by": ("text",), "where": where("few > 0")},
        {"by": ("time",), "every": Every("1h")},
        {"by": ("double",)},
    ):
        agree({"only_groups": True, **words}, count, native=False)


def test_nothing(agree, spark):
    """No rows, and rows that hold nothing."""
    none = pa.table({"x": pa.array([], pa.float64()), "g": pa.array([], pa.string())})
    nulls = pa.table({"x": pa.array([None, None], pa.float64()), "g": pa.array([None, "a"], pa.string())})
    by_item = {"by": ("g",), "only_groups": True}
    for table in (none, nulls):
        data = (spark.createDataFrame(table), table)
        for words, count in (
            ({"columns": "x", "numbers": True}, partial(group_sums, moment=ValueMoment("sum", 0, 1))),
            (by_item, partial(group_sums, moment=ValueMoment("count"))),
            ({**by_item, "value": "x"}, partial(group_sums, moment=ValueMoment("mean", 0, 1))),
            ({"columns": "g", "plain": True}, tasks.number_of),
        ):
            for rule in ("skip", "error"):
                agree({**words, "nulls": rule}, count, data=data)


def test_a_sum_does_not_overflow(spark):
    """Spark's strict mode ends a query whose sum is too large; halves are added up, and wrap as NumPy's sums do."""
    halves = [np.array([2**40 << 14]), np.array([2**40 * 65_535])]
    every = tasks.SumsOfRows.of(ValueMoment("signed", 0.0, 1.0), np.array([2**40]), halves)
    wanted = (2**40 * ((2**14 << 16) + 65_535)) % 2**64
    assert every.sums.tolist() == [[wanted - 2**64 if wanted >= 2**63 else wanted]]
