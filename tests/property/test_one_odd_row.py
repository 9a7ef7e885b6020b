"""One odd row decides nothing: not whether there is an answer, and not how the values of the others are published.

Every question is asked of good rows alone, and of the same rows with one more that is odd in one column. Budgets are so
large that what is published of the good rows follows from their counts, and one row never passes a threshold.
"""

import datetime
import fractions
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc

ROWS = 300
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
    "datetime64 of ns": np.datetime64("2024-01-01T00:00:00.123456789"),
    "datetime64 in the year 30000": np.datetime64("30000-01-01"),
    "NaT of NumPy": np.datetime64("NaT"),
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
    "text of NumPy": np.str_("odd"),
    "surrogate": "\ud800",
    "long text": "x" * 5000,
    "longest text": "x" * 4096,
    "whole": 5,
    "whole of NumPy": np.int8(5),
    "unsigned": 2**64 - 1,
    "negative": -(2**63),
    "huge": 2**70,
    "list": [1],
    "tuple": (1, "a"),
    "dict": {"a": 1},
    "array": np.array([1, 2]),
    "array of no dimensions": np.array(5),
    "complex": 1j,
    "fraction": fractions.Fraction(1, 3),
    "uuid": uuid.UUID(int=5),
    "type": int,
    "raising": Raising(),
    "raising text": RaisingText("odd"),
    "raising bytes": RaisingBytes(b"odd"),
}


def array_of(values):
    made = np.empty(len(values), object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def category_of(values):
    try:
        return pd.Series(pd.Categorical(pd.Series(array_of(values), dtype=object)))
    except Exception:
        pytest.skip("pandas makes no category of these")


FORMS = {
    "list": list,
    "tuple": tuple,
    "NumPy objects": array_of,
    "pandas objects": lambda values: pd.Series(array_of(values), dtype=object),
    "pandas index": lambda values: pd.Index(array_of(values), dtype=object),
    "category": category_of,
    "polars objects": lambda values: pl.Series(values, dtype=pl.Object),
}


def frame_of(columns):
    """The columns as they are, under their names."""
    return columns


def published(release):
    """The types of the columns of a release and its rows, in an order that noise has no part in."""
    table = release.to_arrow()
    parts = [name for name in table.schema.names if name not in ("lower", "upper", "count")]
    rows = sorted(zip(*(table.column(name).to_pylist() for name in parts), strict=True), key=repr)
    return [(name, str(table.schema.field(name).type)) for name in parts], rows, [type(item) for item in release.items]


# Each question: (the column that holds good values, the column of others) -> what is published.
OTHERS = {"texts": ["x" if n % 3 else "y" for n in range(ROWS)], "numbers": list(range(ROWS))}


def seeded():
    return dc.noise.seeded_source(7)


QUESTIONS = {
    "top of a column": lambda odd: published(dc.top_k(odd["x"], 5, BUDGET, nulls="skip")),
    "top": lambda odd: published(dc.top_k(odd, 5, BUDGET, column="x", nulls="skip")),
    "top of people": lambda odd: published(dc.top_k(odd, 5, BUDGET, column="x", user="id", nulls="skip")),
    "top of rows of people": lambda odd: published(
        dc.top_k(odd, 5, BUDGET, column="x", user="id", count="rows", max_items=1, nulls="skip")
    ),
    "top by": lambda odd: published(dc.top_k(odd, 5, BUDGET, column="other", by="x", nulls="skip")),
    "top by people": lambda odd: published(dc.top_k(odd, 5, BUDGET, column="other", by="x", user="id", nulls="skip")),
    "top of two": lambda odd: published(dc.top_k(odd, 5, BUDGET, column=["x", "other"], nulls="skip")),
    "top of two of people": lambda odd: published(
        dc.top_k(odd, 5, BUDGET, column=["other", "x"], user="id", nulls="skip")
    ),
    "top every": lambda odd: published(dc.top_k(odd, 5, BUDGET, column="x", every="1d", time="time", nulls="skip")),
    "distinct": lambda odd: round(dc.distinct(odd, "x", PURE, nulls="skip").value, -1),
    "distinct of people": lambda odd: round(dc.distinct(odd, "x", PURE, user="id", nulls="skip").value, -1),
}
PEOPLE = {
    "top of people": lambda odd: published(dc.top_k(odd, 5, BUDGET, column="other", user="x", nulls="skip")),
    "top of two of people": lambda odd: published(
        dc.top_k(odd, 5, BUDGET, column=["other", "time"], user="x", nulls="skip")
    ),
    "people": lambda odd: round(dc.count(odd, PURE, user="x", nulls="skip").value, -1),
    "distinct of people": lambda odd: round(dc.distinct(odd, "other", PURE, user="x", nulls="skip").value, -1),
    "histogram of people": lambda odd: published(
        dc.histogram(odd, PURE, column="other", universe=["x", "y"], user="x", max_items=2, nulls="skip")
    ),
}


def table_of(form, values, add=0):
    many = ROWS + add
    return {
        "x": FORMS[form](values),
        "other": pa.array(["x" if n % 3 else "y" for n in range(many)]),
        "id": pa.array(range(many)),
        "time": pa.array([datetime.datetime(2024, 1, 1)] * many),
    }


def good(kind):
    first, second = KINDS[kind]
    return [first if n % 3 else second for n in range(ROWS)]
