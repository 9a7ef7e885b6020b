"""Tables of every library: joint items, items of every type, and what is no table.

Counts are far above the threshold: noise hides one of them with a probability below 1e-9.
"""

import datetime
from collections import Counter
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc

BUDGET = dc.Budget(1.0, 1e-6)
ROWS = 400
DAYS = [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
TABLE = pa.table(
    {
        "country": ["de", "fr"] * ROWS,
        "url": ["/a", "/b"] * ROWS,
        "day": DAYS * ROWS,
        "status": pa.array([200, 404] * ROWS, pa.int16()),
        "price": pa.array([Decimal("1.50"), Decimal("2.00")] * ROWS, pa.decimal128(9, 2)),
        "ok": [True, False] * ROWS,
        "who": [f"person {i}" for i in range(2 * ROWS)],
    }
)


class Capsule:
    """Nothing but a stream of Arrow."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


FORMS = {
    "Arrow": lambda: TABLE,
    "reader": TABLE.to_reader,
    "batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "capsule": Capsule,
    "pandas": TABLE.to_pandas,
    "pandas of Arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with objects": lambda: TABLE.to_pandas().astype({"country": object, "url": object}),
    "pandas with categories": lambda: TABLE.to_pandas().astype({"country": "category"}),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars, lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "polars with enums": lambda: pl.from_arrow(TABLE).with_columns(pl.col("country").cast(pl.Enum(["de", "fr"]))),
    "DuckDB": lambda: duckdb.connect().from_arrow(TABLE),
    "dict of lists": TABLE.to_pydict,
    "dict of arrays": lambda: {name: np.array(TABLE[name].to_pylist()) for name in TABLE.column_names},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("user", [None, "who"])
def test_columns_of_every_library_are_joint_items_in_their_own_types(form, user):
    top = dc.top_k(FORMS[form](), 5, BUDGET, column=["country", "day", "status"], user=user)
    assert sorted(top.items) == [("de", DAYS[0], 200), ("fr", DAYS[1], 404)]
    table = top.to_arrow()
    assert table.column_names == ["country", "day", "status", "count", "lower", "upper"]
    assert table.schema.types[:3] == [pa.large_string(), pa.date32(), pa.int64()]
    assert top.asked.columns["item"] == ["country", "day", "status"]
    assert top.asked.columns.get("user") == user


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("user", [None, "who"])
def test_a_date_is_an_item_of_its_own_type(form, user):
    top = dc.top_k(FORMS[form](), 5, BUDGET, column="day", user=user)
    assert sorted(top.items) == DAYS
    assert top.to_arrow().schema.field("day").type == pa.date32()
    assert DAYS[0] in top
    assert top[DAYS[0]].count > 0


@pytest.mark.parametrize(
    ("column", "kind"), [("price", pa.decimal128(9, 2)), ("ok", pa.bool_()), ("status", pa.int64())]
)
def test_every_type_is_published_as_it_is_and_comes_back_from_json(column, kind):
    top = dc.top_k(TABLE, 5, BUDGET, column=column)
    assert set(top.items) == set(TABLE[column].to_pylist())
    assert top.to_arrow().schema.field(column).type == kind
    again = dc.Release.from_json(top.to_json())
    assert again.to_arrow().equals(top.to_arrow())
    assert dc.Release.from_payload(top.to_payload()).to_payload() == top.to_payload()


@pytest.mark.parametrize(
    "column",
    [
        TABLE["day"],
        TABLE["day"].to_pandas(),
        pl.from_arrow(TABLE)["day"],
        TABLE["day"].to_pylist(),
        np.array(TABLE["day"].to_pylist(), "datetime64[D]"),
        TABLE.select(["day"]).to_pandas()["day"].to_frame()["day"],
    ],
    ids=["Arrow", "pandas", "polars", "list", "numpy", "frame"],
)
def test_a_column_by_itself_may_hold_dates(column):
    assert sorted(dc.top_k(column, 5, BUDGET).items) == DAYS


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_table_of_one_column_needs_no_name(make):
    assert dc.top_k(make({"url": ["/a"] * 500}), 5, BUDGET).items == ["/a"]


def test_items_of_several_columns_are_shown_in_every_format(tmp_path):
    top = dc.top_k(TABLE, 5, BUDGET, column=["country", "url"])
    row = top[("de", "/a")]
    assert ("de", "/b") not in top
    assert top.to_csv().splitlines()[0] == "country,url,count,lower,upper"
    assert f"de,/a,{row.count}," in top.to_csv()
    assert (
        list(top.to_pandas().columns) == list(top.to_polars().columns) == ["country", "url", "count", "lower", "upper"]
    )
    assert {"country": "de", "url": "/a", "count": row.count}.items() <= top.to_dict()["items"][
        top.items.index(("de", "/a"))
    ].items()
    assert "country   url   estimate" in repr(top)
    assert ">country</th>" in top._repr_html_()
    assert ">/a</bdi>" in top._repr_html_()
    figure = top.plot(tmp_path / "top.svg")
    labels = {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert labels == {"de · /a", "fr · /b"}


def test_names_that_a_release_has_a_use_for_get_an_underscore():
    top = dc.top_k({"count": ["a"] * 500, "count_": ["b"] * 500}, 5, BUDGET, column=["count", "count_"])
    assert top.names == ("count__", "count_")
    assert dc.Release.from_json(top.to_json()).to_json() == top.to_json()


def test_an_empty_release_has_the_types_of_its_columns():
    none = TABLE.slice(0, 0)
    assert dc.top_k(none, 5, BUDGET, column=["country", "day"]).to_arrow().schema.types[:2] == [
        pa.large_string(),
        pa.date32(),
    ]
    assert dc.top_k(none, 5, BUDGET, column="day").to_arrow().schema.types[0] == pa.date32()
    assert len(dc.top_k(none, 5, BUDGET, column=["country", "day"], user="who").rows()) == 0


def test_one_object_of_another_kind_changes_nothing_but_its_own_row():
    plain = {"a": ["x"] * 500, "b": [1] * 500}
    odd = {"a": [*plain["a"], b"y"], "b": [*plain["b"], "2"]}
    found = [dc.top_k(table, 5, BUDGET, column=["a", "b"]) for table in (plain, odd)]
    assert found[0].items == found[1].items == [("x", 1)]
    assert found[0].to_arrow().schema == found[1].to_arrow().schema


@pytest.mark.parametrize("user", [None, "who"])
def test_a_date_among_texts_takes_no_place_from_the_longest_of_them(user):
    long = "x" * 4096
    for more in ([], [DAYS[0]]):
        table = {"a": [long] * 500 + more, "who": list(range(500 + len(more)))}
        assert dc.top_k(table, 5, BUDGET, column="a", user=user).items == [long]


def test_objects_that_cannot_be_items_are_left_out_or_refused():
    table = {"a": ["x"] * 500 + [object(), 1.5, "\ud800"], "b": [1] * 503}
    assert dc.top_k(table, 5, BUDGET, column=["a", "b"]).items == [("x", 1)]
    with pytest.raises(dc.DataError, match="'a' has values that are not items"):
        dc.top_k(table, 5, BUDGET, column=["a", "b"], bad_rows="error")


@pytest.mark.parametrize("user", [None, "who"])
def test_nulls_in_any_part_are_an_error_or_left_out(user):
    table = pa.concat_tables([TABLE, TABLE.slice(0, 1).set_column(0, "country", pa.array([None], pa.string()))])
    with pytest.raises(dc.DataError, match="nulls"):
        dc.top_k(table, 5, BUDGET, column=["country", "url"], user=user)
    assert len(dc.top_k(table, 5, BUDGET, column=["country", "url"], user=user, nulls="skip")) == 2


def test_text_that_is_not_unicode_and_items_that_are_too_long_are_left_out():
    bad = pa.array([b"\xff", b"ok", b"long"]).view(pa.string())
    table = pa.table({"a": pa.concat_arrays([bad, pa.array(["x"] * 500)]), "b": ["", "", "y" * 5000] + ["z"] * 500})
    assert dc.top_k(table, 5, BUDGET, column=["a", "b"]).items == [("x", "z")]
    with pytest.raises(dc.DataError):
        dc.top_k(table, 5, BUDGET, column=["a", "b"], bad_rows="error")


def test_a_ledger_keeps_the_columns_and_a_charge_id_stands_for_them(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("pages", dc.Budget(10.0, 1e-4))
    paid = {"ledger": ledger.account("pages"), "charge_id": "monday"}
    top = dc.top_k(TABLE, 5, BUDGET, column=["country", "day"], **paid)
    again = dc.top_k(TABLE, 5, BUDGET, column=["country", "day"], **paid)
    assert again.payment == "replayed"
    assert again.to_json() == top.to_json()
    with pytest.raises(dc.LedgerError):
        dc.top_k(TABLE, 5, BUDGET, column=["day", "country"], **paid)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (Counter("aab"), {}, "elements"),
        ({"a": ["x"]}, {}, "column="),
        ({"a": 1}, {"column": "a"}, "got int"),
        (5, {}, "got int"),
        (5, {"column": "a"}, "an int"),
        (np.zeros((3, 2), int), {}, r"array\[:, 0\]"),
        (pd.DataFrame({"a": [1], "b": [2]}), {}, "column="),
        (pl.DataFrame({"a": [1], "b": [2]}), {}, "column="),
        (
            pd.DataFrame({"a": [1], "b": [2]}),
            {"column": "nothing"},
            "no column 'nothing'; its columns are 'a', 'b'",
        ),
        (
            pl.DataFrame({"a": [1], "b": [2]}),
            {"column": "nothing"},
            "no column 'nothing'; its columns are 'a', 'b'",
        ),
        (pd.DataFrame({"a": [1], "b": [2]}).groupby("a"), {}, "GroupBy"),
        (pd.DataFrame({"a": [1], "b": [2]}).groupby("a"), {"column": "b"}, "GroupBy"),
        (TABLE, {}, "column="),
        (TABLE, {"column": ["country", "nothing"]}, "no column 'nothing'"),
        ({"a": ["x"], "b": ["y", "z"]}, {"column": ["a", "b"]}, "the same length"),
        (pd.DataFrame({"a": [1.0, None], "b": [1, 2]}), {"column": ["a", "b"]}, "Int64"),
        (pa.table({"a": [[1]], "b": [1]}), {"column": ["a", "b"]}, "'a' is of type list"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_words_on_what_to_pass(data, options, words):
    with pytest.raises(dc.DataError, match=words):
        dc.top_k(data, 5, BUDGET, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"column": []}, "list of names"),
        ({"column": 5}, "list of names"),
        ({"column": ["country", "country"]}, "different columns"),
        ({"column": ["country", "who"], "user": "who"}, "different columns"),
        ({"column": ["country", "url"], "unit": dc.User()}, "lists of items come in one column"),
        ({"column": ["country", "url"], "user": "who", "capacity": 4}, "capacity cannot be combined with user"),
        ({"column": ["country", "url"], "count": "rows"}, "count rows needs user"),
        ({"column": ["country", "url"], "value": "status"}, "value needs value_range"),
        ({"column": ["country", "url"], "grouped": True}, "lists of items come in one column"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(dc.ParameterError, match=words):
        dc.top_k(TABLE, 5, BUDGET, **options)


def test_joint_items_take_what_other_items_take():
    joint = {"column": ["country", "url"]}
    people = {**joint, "user": "who"}
    for options in ({"workers": 2}, {"total_share": 0.2}, {"mechanism": "space_saving"}, {"unit": dc.User(2)}):
        assert len(dc.top_k(TABLE, 5, BUDGET, **joint, **options)) == 2
    sums = dc.top_k(TABLE, 5, BUDGET, **people, value="price", value_range=(0, 4))
    assert sums.items[0] == ("fr", "/b")
    assert len(dc.top_k(TABLE, 5, BUDGET, **people, count="rows", memory="1GB", max_items=2)) == 2


# ---- several kinds in one of several columns -----------------------------------------------------------------------


MIXED = {"x": ["a", 5, b"\xff", DAYS[0]] * ROWS, "y": ["p"] * 4 * ROWS, "u": list(range(4 * ROWS))}


@pytest.mark.parametrize(
    "how",
    [
        {"column": ["x", "y"]},
        {"column": ["x", "y"], "user": "u"},
        {"column": "y", "by": "x"},
        {"column": "y", "by": "x", "groups": ["a", 5, b"\xff", DAYS[0], Decimal("1.5")]},
    ],
    ids=str,
)
def test_several_kinds_that_pass_in_one_of_several_columns(how):
    """Arrow's own way to take such a column out of a struct ends the process."""
    release = dc.top_k(MIXED, 4, dc.Budget(5.0, 1e-9), **how)
    assert {*release.items} == {(value, "p") for value in MIXED["x"][:4]}
    assert len(release.to_pandas()) == 4
    for again in (dc.Release.from_json(release.to_json()), dc.Release.from_payload(release.to_payload())):
        assert {*again.items} == {*release.items}
        assert [*again.groups] == [*release.groups]
    assert len(release.head(1).items) == (1 if "by" not in how else 4)
    if "by" in how:
        assert {*release.groups} >= {*MIXED["x"][:4]}


@pytest.mark.parametrize("groups", [DAYS, ["a", 5], [1, 2], [Decimal("1.5"), b"\xff"]], ids=str)
def test_groups_without_a_schema_keep_their_kinds_where_nothing_passes(groups):
    table = {"x": [*groups, "other"], "y": ["p"] * (len(groups) + 1)}
    release = dc.top_k(table, 4, dc.Budget(1.0, 1e-9), column="y", by="x", groups=groups)
    assert release.items == []
    for again in (release, dc.Release.from_json(release.to_json()), dc.Release.from_payload(release.to_payload())):
        assert {*again.groups} == {*groups}
