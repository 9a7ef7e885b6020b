"""One odd row decides nothing: not whether there is an answer, and not how the values of the others are published.

Every question is asked of good rows alone, and of the same rows with one more that is odd in one column. Budgets are so
large that what is published of the good rows follows from their counts, and one row never passes a threshold.
"""

import datetime
import fractions
import functools
import json
import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc

pytestmark = pytest.mark.filterwarnings("ignore::discreet.WeakBudgetWarning")

ROWS = 300
STRIDE = 60
BUDGET = dc.Budget(50.0, 1e-9)
PURE = dc.Budget(50.0)
UTC = datetime.timezone.utc
DAY = datetime.date(2024, 2, 28)
NOON = datetime.datetime(2024, 2, 28, 12, 0, 0, 250)

KINDS = {
    "text": ("a", "bb"),
    "bytes": (b"a", b"\xff"),
    "whole": (7, 8),
    "date": (DAY, datetime.date(1999, 1, 1)),
    "datetime": (NOON, datetime.datetime(1999, 1, 1)),
    "datetime in UTC": (NOON.replace(tzinfo=UTC), datetime.datetime(1999, 1, 1, tzinfo=UTC)),
    "Decimal": (Decimal("1.5"), Decimal(-2)),
    "bool": (True, False),
}


class Raising:
    """Whatever is asked of it, it fails."""

    def __str__(self):
        raise ValueError("no words")

    __repr__ = __str__
    __len__ = __index__ = __float__ = __str__

    def __eq__(self, other):
        raise ValueError("no equality")

    def __hash__(self):
        return 1


class RaisingText(str):
    __slots__ = ()

    def __str__(self):
        raise ValueError("no words")


class RaisingBytes(bytes):
    def __bytes__(self):
        raise ValueError("no bytes")


class RaisingZone(datetime.tzinfo):
    def utcoffset(self, moment):
        raise ValueError("no offset")


ODD = {
    "None": None,
    "NaN": float("nan"),
    "NaT": pd.NaT,
    "NA": pd.NA,
    "float": 1.5,
    "float of NumPy": np.float64(2.5),
    "whole float": 3.0,
    "Decimal of another scale": Decimal("1.2345"),
    "Decimal of 50 digits": Decimal("1." + "2" * 49),
    "large Decimal": Decimal("1e37"),
    "huge Decimal": Decimal("1e100"),
    "Decimal that is no number": Decimal("NaN"),
    "Decimal that signals": Decimal("sNaN"),
    "datetime64": np.datetime64("2024-01-01"),
    "datetime64 of ns": np.datetime64("2024-01-02T00:00:00.123456789"),
    "datetime64 in the year 30000": np.datetime64("30000-01-01"),
    "NaT of NumPy": np.datetime64("NaT", "s"),
    "timedelta64": np.timedelta64(5, "s"),
    "timedelta": datetime.timedelta(1),
    "Timestamp": pd.Timestamp("2024-01-01T00:00:00.123456789"),
    "Timestamp with a zone": pd.Timestamp("2024-01-01", tz="Europe/Berlin"),
    "date": datetime.date(1, 1, 1),
    "datetime": datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=14))),
    "datetime beyond": datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=14))),
    "datetime without an offset": datetime.datetime(2024, 1, 1, tzinfo=RaisingZone()),
    "time": datetime.time(12),
    "Period": pd.Period("2024-01"),
    "bool": True,
    "bool of NumPy": np.bool_(False),
    "bytes": b"odd",
    "bytearray": bytearray(b"odd"),
    "text": "odd",
    "text of NumPy": np.str_("numpy"),
    "surrogate": "\ud800",
    "long text": "x" * 5000,
    "longest text": "x" * 4096,
    "whole": 5,
    "whole of NumPy": np.int8(6),
    "unsigned": 2**64 - 1,
    "negative": -(2**63),
    "huge": 2**70,
    "list": [1],
    "tuple": (1, "a"),
    "dict": {"a": 1},
    "array": np.array([1, 2]),
    "array of no dimensions": np.array(4),
    "complex": 1j,
    "fraction": fractions.Fraction(1, 3),
    "uuid": uuid.UUID(int=5),
    "type": int,
    "raising": Raising(),
    "raising text": RaisingText("raising"),
    "raising bytes": RaisingBytes(b"raising"),
}


def array_of(values):
    made = np.empty(len(values), object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def category_of(values):
    with warnings.catch_warnings():  # pandas sorts what can be sorted, and NumPy 2.5 warns of spans beside numbers
        warnings.simplefilter("ignore", DeprecationWarning)
        return pd.Series(pd.Categorical(pd.Series(array_of(values)).infer_objects()))


def _in_a_category(value):
    try:
        category_of(["a", value])
    except Exception:
        return False
    return True


HASHABLE = {name for name, value in ODD.items() if _in_a_category(value)}
FORMS = {
    "list": list,
    "tuple": tuple,
    "NumPy objects": array_of,
    "pandas objects": lambda values: pd.Series(array_of(values), dtype=object),
    "pandas index": lambda values: pd.Index(array_of(values), dtype=object),
    "category": category_of,
    "polars objects": lambda values: pl.Series(values, dtype=pl.Object),
}


def published(release):
    """All of a release that noise has no part in: its rows without counts, their types, and what it says of itself."""
    table = release.to_arrow()
    parts = [name for name in table.schema.names if name not in ("lower", "upper", release.count_name)]
    rows = sorted(zip(*(table.column(name).to_pylist() for name in parts), strict=True), key=repr)
    told = json.loads(release.to_json())
    said = [told.get(name) for name in ("guarantee", "columns", "k", "parameters", "item_type", "item_types")]
    return (
        [(name, str(table.schema.field(name).type)) for name in parts],
        [[(type(value), value) for value in row] for row in rows],
        [type(item) for item in release.items],
        said,
    )


def about(estimate):
    """A count without what one row and noise may change of it."""
    return round(estimate.value / 50)


def top(table, **question):
    return published(dc.top_k(table, 5, BUDGET, nulls="skip", **question))


# The odd value is in the column "x", which holds items (or groups), people, numbers or times.
OF_ITEMS = {
    "top of a column": lambda table: published(dc.top_k(table["x"], 5, BUDGET, nulls="skip")),
    "top": lambda table: top(table, column="x"),
    "top of people": lambda table: top(table, column="x", user="id"),
    "top of rows of people": lambda table: top(table, column="x", user="id", count="rows", max_items=1),
    "top of sums": lambda table: top(table, column="x", user="id", value="number", value_range=(0, 3)),
    "top by": lambda table: top(table, column="other", by="x"),
    "top by, of people": lambda table: top(table, column="other", by="x", user="id"),
    "top of two": lambda table: top(table, column=["x", "other"]),
    "top of two, of people": lambda table: top(table, column=["other", "x"], user="id"),
    "top of every day": lambda table: top(table, column="x", every="1d", time="time"),
    "distinct": lambda table: about(dc.distinct(table, PURE, column="x", nulls="skip")),
    "distinct of people": lambda table: about(
        dc.distinct(table, PURE, column="x", user="id", max_items=1, nulls="skip")
    ),
    "histogram": lambda table: published(
        dc.histogram(table, PURE, column="x", universe=["a", "bb", "c"], nulls="skip")
    ),
    "histogram of people": lambda table: published(
        dc.histogram(table, PURE, column="x", universe=["a", "bb"], user="id", max_items=2, nulls="skip")
    ),
}
OF_PEOPLE = {
    "top": lambda table: top(table, column="other", user="x"),
    "top of two": lambda table: top(table, column=["other", "time"], user="x"),
    "count": lambda table: about(dc.count(table, PURE, user="x", nulls="skip")),
    "distinct": lambda table: about(dc.distinct(table, PURE, column="other", user="x", max_items=1, nulls="skip")),
    "histogram": lambda table: published(
        dc.histogram(table, PURE, column="other", universe=["x", "y"], user="x", max_items=2, nulls="skip")
    ),
    "quantiles": lambda table: quartile(table, "number", user="x"),
}
OF_NUMBERS = {
    "quantiles": lambda table: quartile(table, "x"),
    "quantiles of a column": lambda table: quartile(table["x"], None),
    "quantiles of people": lambda table: quartile(table, "x", user="id"),
    "top of sums": lambda table: top(table, column="other", user="id", value="x", value_range=(0, 3)),
    "top of sums of two": lambda table: top(table, column=["other", "time"], user="id", value="x", value_range=(0, 3)),
}
OF_TIMES = {
    "top": lambda table: top(table, column="other", every="1d", time="x"),
    "top of people": lambda table: top(table, column="other", every="1w", time="x", user="id", zone="Asia/Tokyo"),
}


def quartile(table, column, user=None):
    found = dc.quantiles(table, PURE, [0.5], column=column, range=(0, 8), bins=8, user=user, nulls="skip")
    return found[0.5].value, [found.guarantee]


def table_of(form, values):
    """A table with this column `x`, and others whose values do not depend on it."""
    rows = range(len(values))
    return {
        "x": (FORMS[form] if isinstance(form, str) else form)(values),
        "other": pa.array(["x" if row % 3 else "y" for row in rows]),
        "id": pa.array(rows),
        "number": pa.array([1.5] * len(values)),
        "time": pa.array([datetime.datetime(2024, 1, 1)] * len(values)),
    }


def good(role, kind):
    """Good values: two of them for items, different ones for people."""
    if role == "people":
        return PEOPLE[kind]
    if role == "numbers":
        return [{"whole": 2, "float": 2.5, "Decimal": Decimal("2.5"), "large": 2**60}[kind]] * ROWS
    if role == "times":
        moment = datetime.datetime(2500, 12, 31, 23, 59, 59, 999999)
        return [{"datetime": moment, "text": moment.isoformat(), "date": moment.date(), "whole": 10**9}[kind]] * ROWS
    first, second = KINDS[kind]
    return [first if row % 3 else second for row in range(ROWS)]


PEOPLE = {
    "text": [f"p{row}" for row in range(ROWS)],
    "bytes": [b"%d" % row for row in range(ROWS)],
    "whole": list(range(10, ROWS + 10)),
    "date": [DAY + datetime.timedelta(row) for row in range(ROWS)],
    "datetime": [NOON + datetime.timedelta(row) for row in range(ROWS)],
    "datetime in UTC": [NOON.replace(tzinfo=UTC) + datetime.timedelta(row) for row in range(ROWS)],
    "Decimal": [Decimal(row) / 4 for row in range(ROWS)],
}
ROLES = {
    "items": (OF_ITEMS, tuple(KINDS)),
    "people": (OF_PEOPLE, tuple(PEOPLE)),
    "numbers": (OF_NUMBERS, ("whole", "float", "Decimal", "large")),
    "times": (OF_TIMES, ("datetime", "text", "date", "whole")),
}
ASKED = [
    (role, kind, question, form)
    for role, (questions, kinds) in ROLES.items()
    for kind in kinds
    for question in questions
    for form in FORMS
]


@pytest.fixture(scope="module")
def alone():
    """What is published of good rows alone."""
    return functools.cache(lambda *asked: _answer(*asked))


def _answer(role, kind, question, form, odd=()):
    return ROLES[role][0][question](table_of(form, [*good(role, kind), *odd]))


def same(alone, asked, odd):
    assert _answer(*asked, odd) == alone(*asked), (asked, [name for name, value in ODD.items() if value is odd[0]])


@pytest.mark.parametrize("name", ODD)
def test_one_odd_row_changes_nothing_but_itself(name, alone):
    """Every odd value with every 60th question, in turn; all of them in the end meet all questions, kinds and forms."""
    for asked in ASKED[list(ODD).index(name) % STRIDE :: STRIDE]:
        if asked[3] != "category" or name in HASHABLE:
            same(alone, asked, [ODD[name]])


@pytest.mark.parametrize("name", ["Decimal of another scale", "datetime64", "NaT", "text"])
@pytest.mark.parametrize("question", OF_ITEMS)
def test_values_that_decided_for_others(question, name, alone):
    for kind in ("text", "date", "datetime", "Decimal"):
        for form in ("list", "category"):
            same(alone, ("items", kind, question, form), [ODD[name]])


@pytest.mark.parametrize("form", [form for form in FORMS if form != "category"])
def test_all_odd_rows_together(form, alone):
    for asked in ASKED:
        if asked[3] == form and asked[0] != "times":  # several of them are times of one day
            same(alone, asked, [*ODD.values()])


@pytest.mark.parametrize("odd", [1.5, "x", Decimal("1.2345"), None, DAY, NOON, True, 2**70])
def test_a_category_has_the_kinds_of_its_values(odd):
    """pandas makes floats of whole numbers, and objects of times, where one value of a category is something else."""
    for kind in KINDS:
        if kind == "bool" and odd is True:
            continue
        values = good("items", kind)
        with_odd, without = (
            published(dc.top_k(pd.DataFrame({"x": category_of(rows)}), 5, BUDGET, column="x", nulls="skip"))
            for rows in ([*values, odd], values)
        )
        assert with_odd == without


# ---- columns that have a type ----------------------------------------------------------------------------------------

INVALID = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
TYPED = {
    "Arrow": (pa.array, ("text", "bytes", "whole", "date", "datetime", "datetime in UTC", "Decimal", "bool")),
    "Arrow, a dictionary": (lambda values: pa.array(values).dictionary_encode(), ("text", "whole", "date")),
    "polars": (pl.Series, ("text", "bytes", "whole", "date", "datetime", "bool")),
    "pandas Int64": (lambda values: pd.array(values, "Int64"), ("whole",)),
    "pandas string": (lambda values: pd.Series(values, dtype="string"), ("text",)),
    "pandas str": (lambda values: pd.Series(values, dtype="str"), ("text",)),
    "pandas boolean": (lambda values: pd.Series(values, dtype="boolean"), ("bool",)),
    "pandas datetime64": (lambda values: pd.Series(values, dtype="datetime64[us]"), ("datetime",)),
    "pandas Arrow": (lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.date32())), ("date",)),
    "masked": (lambda values: np.ma.array([v or 0 for v in values], mask=[v is None for v in values]), ("whole",)),
    "invalid text": (
        lambda values: pa.chunked_array([pa.array([v for v in values if v]), *([INVALID] if None in values else [])]),
        ("text",),
    ),
}


@pytest.mark.parametrize("form", TYPED)
def test_one_missing_value_in_a_typed_column(form):
    make, kinds = TYPED[form]
    for kind in kinds:
        for question, ask in OF_ITEMS.items():
            if "histogram" in question and kind != "text":
                continue  # which the type decides
            without, with_odd = (ask(table_of(make, [*good("items", kind), *odd])) for odd in ((), (None,)))
            assert with_odd == without, (kind, question)


# ---- lists of people -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [dc.User(), dc.User(2)], ids=str)
def test_one_odd_list_changes_nothing_but_itself(kind, unit):
    if unit != dc.User() and kind not in ("text", "bytes", "whole"):
        pytest.skip("a summary knows text, bytes and whole numbers")
    lists = [[value] for value in good("items", kind)]
    forms = [list, lambda rows: pd.Series(array_of(rows)), lambda rows: (row for row in rows)]
    if kind == "text":
        forms.append(lambda rows: [pa.array(rows[:9]), pd.Series(array_of(rows[9:]))])
    for make in forms:
        expected = published(dc.top_k(make(lists), 5, BUDGET, unit=unit, nulls="skip"))
        assert len(expected[1]) == 2
        for name, odd in ODD.items():
            if make is list or name in ("Decimal of another scale", "text", "list"):
                assert published(dc.top_k(make([*lists, [odd]]), 5, BUDGET, unit=unit, nulls="skip")) == expected, name
        every = [[odd] for odd in ODD.values()]
        assert published(dc.top_k(make([*lists, *every, None]), 5, BUDGET, unit=unit, nulls="skip")) == expected
