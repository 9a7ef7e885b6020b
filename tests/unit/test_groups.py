"""The top of every group in one release: for rows and people, with and without a public list, by columns and by time.

Counts are far above the threshold, or far below it: noise moves one across with a probability below 1e-9.
"""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.events.times import Every
from discreet.noise import seeded_source

BUDGET = dc.Budget(1.0, 1e-9)
DAYS = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
COUNTS = {  # (country, url): rows, of as many people
    ("de", "/a"): 900,
    ("de", "/b"): 600,
    ("de", "/c"): 300,
    ("fr", "/b"): 800,
    ("fr", "/a"): 500,
    ("it", "/rare"): 3,
}


def table_of(counts):
    rows = [key for key, count in counts.items() for _ in range(count)]
    country, url = zip(*rows, strict=True)
    moments = [datetime.datetime(2026, 1, {"de": 1, "fr": 2, "it": 3}[name], 23, 30) for name in country]
    return pa.table({"country": country, "url": url, "ts": moments, "who": range(len(rows))})


TABLE = table_of(COUNTS)
WHOSE = pytest.mark.parametrize("user", [None, "who"], ids=["rows", "people"])


@WHOSE
def test_every_group_has_its_top_and_rare_groups_are_not_there(user):
    top = dc.top_k(TABLE, 2, BUDGET, column="url", by="country", user=user)
    assert top.items == [("de", "/a"), ("de", "/b"), ("fr", "/b"), ("fr", "/a")]
    assert top.by == ("country",)
    assert list(top.groups) == ["de", "fr"]
    assert [found.items for found in top.groups.values()] == [top.items[:2], top.items[2:]]
    assert top.to_arrow().column_names == ["country", "url", "count", "lower", "upper"]
    assert top.asked.columns["by"] == ["country"]
    assert top.guarantee.epsilon == BUDGET.epsilon
    for (country, url), count, lower, upper in top:
        assert lower <= count <= upper
        assert abs(count - COUNTS[country, url]) < 150


@WHOSE
def test_groups_of_a_public_list_are_all_there_and_others_are_not(user):
    top = dc.top_k(TABLE, 1, BUDGET, column="url", by="country", user=user, groups=["it", "de", "es"])
    assert list(top.groups) == ["de", "es", "it"]
    assert top.items == [("de", "/a")]
    assert [len(found) for found in top.groups.values()] == [1, 0, 0]
    assert "the list of groups is public: it was not made from the data" in top.guarantee.assumptions
    again = dc.Release.from_json(top.to_json())
    assert again.to_json() == top.to_json()
    assert list(again.groups) == list(top.groups)
    assert dc.Release.from_payload(top.to_payload()).to_payload() == top.to_payload()
    assert "(no item passed)" in repr(top)
    assert "(no item passed)" in top._repr_html_()


@WHOSE
def test_several_columns_may_say_the_group_and_the_item(user):
    top = dc.top_k(TABLE, 1, BUDGET, column=["url", "country"], every="1mo", time="ts", user=user)
    assert top.items == [(datetime.date(2026, 1, 1), "/a", "de")]
    top = dc.top_k(TABLE, 1, BUDGET, column="url", by="country", every="1d", time="ts", user=user)
    assert top.items == [(DAYS[0], "de", "/a"), (DAYS[1], "fr", "/b")]
    assert top.names == ("ts", "country", "url")
    listed = [("2026-01-02", "fr"), (DAYS[2], "fr")]
    top = dc.top_k(TABLE, 1, BUDGET, column="url", by="country", every="1d", time="ts", user=user, groups=listed[:1])
    assert list(top.groups) == [(DAYS[1], "fr")]


def test_sums_of_values_have_groups_too():
    top = dc.top_k(
        TABLE.append_column("price", pa.array([2.0] * len(TABLE))), 1, BUDGET, column="url", by="country", user="who",
        value="price", value_range=(0, 4),
    )  # fmt: skip
    assert top.items == [("de", "/a"), ("fr", "/b")]
    assert top.counted == "sums"


def test_head_is_of_every_group_and_costs_nothing():
    top = dc.top_k(TABLE, 3, BUDGET, column="url", by="country")
    assert [item for item, *_ in top.head(1)] == [("de", "/a"), ("fr", "/b")]
    assert len(top.head(0)) == 0


def test_a_person_in_two_groups_is_one_person():
    table = pa.table({"day": [1, 2] * 500, "url": ["/a"] * 1000, "who": np.repeat(np.arange(500), 2)})
    top = dc.top_k(table, 5, BUDGET, column="url", by="day", user="who", source=seeded_source(1))
    assert top.items == [(1, "/a"), (2, "/a")]
    # Its vector has both, and is scaled as one: the noise is that of two items, not of one.
    alone = dc.top_k(table.filter(pa.compute.equal(table["day"], 1)), 5, BUDGET, column="url", by="day", user="who")
    assert top.steps.min() > 1.2 * alone.steps.min()


@pytest.mark.parametrize("groups", [1, 2, 3, None])
def test_people_have_candidates_of_every_group(groups):
    """A large group must not take the places of a small one."""
    rows = [("big", f"/{i}") for i in range(40) for _ in range(400)] + [("small", "/x")] * 150
    table = pa.table({"g": [g for g, _ in rows], "url": [u for _, u in rows], "who": range(len(rows))})
    listed = None if groups is None else ["big", "small", "none"][:groups]
    top = dc.top_k(table, 2, BUDGET, column="url", by="g", user="who", groups=listed)
    assert [len(found) for found in top.groups.values()] == {1: [2], 2: [2, 1], 3: [2, 0, 1], None: [2, 1]}[groups]


# ---- spans of time ---------------------------------------------------------------------------------------------------


def spans(text, values, zone=None):
    found, good = Every(text, zone).spans(values, "here")
    assert good is None
    return found.to_pylist()


def test_spans_follow_the_calendar_of_the_zone():
    late = pa.array([datetime.datetime(2026, 1, 31, 23, 30)])
    assert spans("1d", late) == [datetime.date(2026, 1, 31)]
    assert spans("1d", late, "Europe/Berlin") == [datetime.date(2026, 2, 1)]
    assert spans("1mo", late, "Europe/Berlin") == [datetime.date(2026, 2, 1)]
    assert spans("1w", late) == [datetime.date(2026, 1, 26)]
    utc = datetime.timezone.utc
    assert spans("1h", late) == [datetime.datetime(2026, 1, 31, 23, tzinfo=utc)]
    assert spans("6h", late, "Asia/Kolkata")[0].astimezone(utc) == datetime.datetime(2026, 1, 31, 18, 30, tzinfo=utc)


def test_an_hour_that_comes_twice_is_two():
    twice = pa.array([datetime.datetime(2026, 10, 25, hour, 30) for hour in (0, 1)])
    assert len({moment.astimezone(datetime.timezone.utc) for moment in spans("1h", twice, "Europe/Berlin")}) == 2
    assert len(set(spans("1d", twice, "Europe/Berlin"))) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 6)], pa.timestamp("ns")),
        pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 6)], pa.timestamp("us", "America/New_York")),
        pa.array([datetime.date(2026, 1, 2)]),
        pa.array([datetime.date(2026, 1, 2)], pa.date64()),
        pa.array([1767323045]),
        pa.array([1767323045.5]),
        pa.array(["1767323045.5"]),
        pa.array(["2026-01-02T03:04:05Z"]).dictionary_encode(),
        pa.array(["2026-01-02"]),
    ],
    ids=lambda column: str(column.type),
)
def test_times_of_every_type_have_spans(column):
    assert spans("1d", column) == [datetime.date(2026, 1, 2)]


def test_nulls_stay_and_what_is_no_time_is_told():
    found, good = Every("1d").spans(pa.array(["2026-01-02", None, "yesterday", "99999-01-01"]), "here")
    assert good.tolist() == [True, True, False, False]
    assert found.to_pylist()[:2] == [datetime.date(2026, 1, 2), None]


@pytest.mark.parametrize("text", ["", "1", "d", "0d", "1q", "-1d", "1.5h", "1 d", None])
def test_spans_that_are_none_are_refused(text):
    with pytest.raises(dc.ParameterError, match="every must be"):
        Every(text)


@WHOSE
@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.to_pandas(),
        lambda table: table.to_pandas().astype({"ts": object, "country": object}),
        lambda table: pl.from_arrow(table),
        lambda table: table.to_pydict(),
        lambda table: {**table.to_pydict(), "ts": [str(moment) for moment in table["ts"].to_pylist()]},
    ],
    ids=["Arrow", "pandas", "objects", "polars", "dict", "text"],
)
def test_tables_of_every_library_have_groups(make, user):
    top = dc.top_k(make(TABLE), 1, BUDGET, column="url", by="country", user=user, groups=["de", "es"])
    assert top.items == [("de", "/a")]
    assert list(top.groups) == ["de", "es"]
    top = dc.top_k(make(TABLE), 1, BUDGET, column="url", every="1d", time="ts", user=user)
    assert top.items == [(DAYS[0], "/a"), (DAYS[1], "/b")]
    assert top.to_arrow().schema.field("ts").type == pa.date32()


def test_rows_without_a_time_are_left_out_or_refused():
    table = {"url": ["/a"] * 501, "ts": ["2026-01-01"] * 500 + ["never"]}
    assert dc.top_k(table, 1, BUDGET, column="url", every="1d", time="ts").items == [(DAYS[0], "/a")]
    with pytest.raises(dc.DataError, match="a time that is neither"):
        dc.top_k(table, 1, BUDGET, column="url", every="1d", time="ts", bad_rows="error")


def test_one_row_changes_no_type_and_no_other_group():
    odd = pa.concat_tables([TABLE, TABLE.slice(0, 1)]).to_pydict()
    odd["country"][-1] = b"\x00"
    tops = [dc.top_k(table, 1, BUDGET, column="url", by="country") for table in (TABLE.to_pydict(), odd)]
    assert tops[0].items == tops[1].items
    assert tops[0].to_arrow().schema == tops[1].to_arrow().schema


def test_nulls_in_a_group_are_an_error_or_left_out():
    table = pa.table({"g": ["a"] * 500 + [None], "url": ["/a"] * 501})
    for groups in (None, ["a"]):
        with pytest.raises(dc.DataError, match="nulls"):
            dc.top_k(table, 1, BUDGET, column="url", by="g", groups=groups)
        assert len(dc.top_k(table, 1, BUDGET, column="url", by="g", groups=groups, nulls="skip")) == 1


# ---- shown and refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_a_picture_has_a_panel_for_every_group(kind, tmp_path):
    top = dc.top_k(TABLE, 2, BUDGET, column="url", by="country", groups=["de", "fr", "es", "_$x"])
    figure = top.plot(tmp_path / "top.png", kind=kind)
    assert [panel.get_title() for panel in figure.axes[:4]] == ["_$x", "de", "es", "fr"]
    drawn = figure.axes[1].get_yticklabels() if kind == "bars" else figure.axes[1].get_xticklabels()
    assert {label.get_text() for label in drawn} == {"/a", "/b"}
    with pytest.raises(dc.ParameterError, match="ax cannot be used"):
        top.plot(ax=figure.axes[0])
    assert top.groups["de"].plot().axes
    assert dc.top_k(TABLE.slice(0, 2), 2, BUDGET, column="url", by="country").plot().axes


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_an_item_has_one_label_in_all_panels(kind):
    long = "/a/path/that/is/longer/than/any/label/can/be/"
    table = {"g": ["a"] * 900 + ["b"] * 900, "url": [long + "1"] * 900 + [long + "1"] * 400 + [long + "2"] * 500}
    figure = dc.top_k(table, 2, BUDGET, column="url", by="g").plot(kind=kind)
    drawn = [panel.get_yticklabels() if kind == "bars" else panel.get_xticklabels() for panel in figure.axes]
    (first,), (larger, smaller) = ([label.get_text() for label in labels] for labels in drawn)
    assert first == smaller != larger


def test_many_groups_without_an_item_are_counted_and_not_shown():
    table, names = {"g": ["g7"] * 500, "url": ["/a"] * 500}, [f"g{number}" for number in range(300)]
    top = dc.top_k(table, 1, BUDGET, column="url", by="g", groups=names)
    for text in (repr(top), top._repr_html_()):
        assert "g7" in text
        assert "In 299 groups no item passed." in text
        assert "(no item passed)" not in text
    assert len(repr(top).splitlines()) == 5
    none = dc.top_k({"g": [], "url": []}, 1, BUDGET, column="url", by="g", groups=names)
    assert "In 300 groups no item passed." in repr(none)
    assert "In 300 groups no item passed." in none._repr_html_()
    few = dc.top_k(table, 1, BUDGET, column="url", by="g", groups=["g7", "g8"])
    assert repr(few).startswith("Release(1 item in 2 groups;")
    assert "(no item passed)" in repr(few)
    assert "(no item passed)" in few._repr_html_()


def test_a_table_names_a_group_once():
    text = repr(dc.top_k(TABLE, 2, BUDGET, column="url", by="country"))
    assert "4 items in 2 groups" in text
    assert text.count("de ") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": ["de"]}, "groups needs by or every"),
        ({"by": "country", "groups": []}, "list of values"),
        ({"by": "country", "groups": "de"}, "not str"),
        ({"by": "country", "groups": ["de", "de"]}, "twice"),
        ({"by": "country", "groups": [("de", "fr")]}, "list of values"),
        ({"by": "who", "groups": ["me"]}, "type int64"),
        ({"by": "who", "groups": [1.5]}, "type int64"),
        ({"by": "who", "groups": {1: 2}}, "not dict"),
        ({"by": ["country", "who"], "groups": ["de"]}, "tuples of 2 values"),
        ({"by": "url"}, "different columns"),
        ({"by": 5}, "by must be the name"),
        ({"every": "1d"}, "every needs time"),
        ({"time": "ts"}, "time needs every"),
        ({"by": "country", "zone": "UTC"}, "zone needs every"),
        ({"every": "1d", "time": "ts", "zone": "Mars"}, "no time zone"),
        ({"by": "country", "user": "who", "capacity": 5}, "capacity cannot be combined with user"),
    ],
)
def test_what_does_not_go_together_is_refused(options, words):
    with pytest.raises(dc.ParameterError, match=words):
        dc.top_k(TABLE, 1, BUDGET, column="url", **options)
    with pytest.raises(dc.ParameterError):
        dc.top_k(["a"], 1, BUDGET, by="country")


def test_a_charge_id_stands_for_its_groups(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("pages", dc.Budget(10.0, 1e-4))
    paid = {"ledger": ledger.account("pages"), "charge_id": "monday", "column": "url", "by": "country"}
    top = dc.top_k(TABLE, 1, BUDGET, **paid, groups=["de", "fr"])
    assert dc.top_k(TABLE, 1, BUDGET, **paid, groups=["de", "fr"]).to_json() == top.to_json()
    assert ledger.account("pages").statement().spent.epsilon == 1.0
    for other in ({"groups": ["de"]}, {}):
        with pytest.raises(dc.LedgerError):
            dc.top_k(TABLE, 1, BUDGET, **paid, **other)


def test_categories_that_nobody_has_are_no_groups():
    frame = TABLE.to_pandas()
    frame["country"] = pd.Categorical(frame["country"], ["de", "es", "fr", "it"])
    assert list(dc.top_k(frame, 1, BUDGET, column="url", by="country").groups) == ["de", "fr"]


def test_one_bad_time_shifts_nothing_beside_it():
    """A row without a time is left out, one of a group that is not listed too; all others stay where they are."""
    rows = {"ts": ["2026-01-01"] * 400 + ["no time"] + ["2026-01-01"] * 700, "where": ["a"] * 400 + ["b"] + ["c"] * 700}
    table = pa.table(rows)
    listed = [("2026-01-01", "a"), ("2026-01-01", "b")]
    found = dc.count(table, dc.Budget(19.0), by="where", every="1d", time="ts", groups=listed)
    assert [round(value) for *_, value, _, _ in found] == [400, 0]
