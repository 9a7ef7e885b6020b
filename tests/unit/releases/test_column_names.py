"""Tables of a release have the names of the data; JSON keeps its own."""

import csv
import io

import pytest

import discreet as dc

SURE = dc.Budget(50.0, 1e-3)
ROWS = [(f"u{n}", "/a" if n % 3 else "/b", "de" if n % 2 else "fr", n % 7) for n in range(600)]
TABLE = dict(zip(("visitor", "page", "land", "price"), map(list, zip(*ROWS, strict=True)), strict=True))


def renamed(**names):
    return {names.get(name, name): values for name, values in TABLE.items()}


def header(answer):
    """The names in all tables, which are the same."""
    named = next(csv.reader(io.StringIO(answer.to_csv())))
    assert answer.to_pandas().columns.tolist() == answer.to_arrow().column_names == named
    return named


def test_tables_have_the_names_of_the_data():
    top = dc.top_k(TABLE, 2, SURE, column="page", user="visitor")
    assert header(top) == ["page", "count", "lower", "upper"]
    assert top.to_polars().columns == header(top)
    assert repr(top).splitlines()[1].split() == ["page", "people", "95%", "interval"]
    assert ">page</th>" in top._repr_html_()
    assert header(dc.top_k(TABLE, 2, SURE, column=["land", "page"])) == ["land", "page", "count", "lower", "upper"]
    assert header(dc.top_k(TABLE, 2, SURE, column="page", by="land")) == ["land", "page", "count", "lower", "upper"]
    assert header(dc.top_k(TABLE["page"], 2, SURE)) == ["item", "count", "lower", "upper"]  # it has none
    pairs = dc.top_k(TABLE, 2, SURE, column="page", user="land", pairs=True)
    assert header(pairs) == ["page_1", "page_2", "count", "lower", "upper"]


def test_json_has_its_own_names_and_goes_back():
    for by, keys in ((None, ["item"]), ("land", ["land", "item"])):
        top = dc.top_k(TABLE, 2, SURE, column="page", by=by)
        assert list(top.to_dict()["items"][0]) == [*keys, "count", "lower", "upper"]
        assert header(dc.Release.from_json(top.to_json())) == header(top)
        assert header(dc.Release.from_payload(top.to_payload())) == header(top)
    sums = dc.sum(TABLE, SURE, column="price", range=(0, 7), by="land")
    assert list(sums.to_dict()["groups"][0]) == ["land", "value", "lower", "upper"]


def test_numbers_have_the_name_of_what_they_are():
    added = dc.top_k(TABLE, 2, SURE, column="page", user="visitor", value="price", value_range=(0, 7))
    assert header(added) == ["page", "sum", "lower", "upper"]
    assert list(added.to_dict()["items"][0]) == ["item", "count", "lower", "upper"]
    for ask in (dc.sum, dc.mean, dc.variance):
        answer = ask(TABLE, SURE, column="price", range=(0, 7), by="land")
        assert header(answer) == ["land", ask.__name__, "lower", "upper"]
        assert f"<th>{ask.__name__}</th>" in answer._repr_html_()
    assert header(dc.count(TABLE, SURE, by="land")) == ["land", "count", "lower", "upper"]
    assert header(dc.distinct(TABLE, SURE, column="page", by="land")) == ["land", "count", "lower", "upper"]
    asked = dc.quantiles(TABLE, SURE, [0.5], column="price", range=(0, 7), by="land")
    assert header(asked) == ["land", "quantile", "value", "lower", "upper"]


@pytest.mark.parametrize("name", ["count", "lower", "upper"])
def test_a_name_that_the_table_needs_gets_an_underscore(name):
    for top in (
        dc.top_k(renamed(page=name), 2, SURE, column=name),
        dc.top_k(renamed(page=name), 2, SURE, column=[name, "land"]),
        dc.top_k(renamed(page=name), 2, SURE, column="land", by=name),
    ):
        assert header(top).count(f"{name}_") == 1
        assert header(top)[-3:] == ["count", "lower", "upper"]
        assert header(dc.Release.from_json(top.to_json())) == header(top)
    counted = dc.count(renamed(land=name), SURE, by=name)
    assert header(counted) == [f"{name}_", "count", "lower", "upper"]
    assert header(dc.GroupRelease.from_json(counted.to_json())) == header(counted)


def test_only_a_name_that_is_needed_gets_an_underscore():
    assert header(dc.top_k(renamed(page="sum"), 2, SURE, column="sum"))[0] == "sum"
    assert header(dc.top_k(renamed(page="shard"), 2, SURE, column="shard"))[0] == "shard"
    added = dc.top_k(renamed(page="sum"), 2, SURE, column="sum", user="visitor", value="price", value_range=(0, 7))
    assert header(added) == ["sum_", "sum", "lower", "upper"]
    both = dc.top_k(renamed(page="count", land="count_"), 2, SURE, column=["count", "count_"])
    assert header(both) == ["count__", "count_", "count", "lower", "upper"]
    grouped = dc.top_k(renamed(land="item"), 2, SURE, column="page", by="item")
    assert header(grouped) == ["item", "page", "count", "lower", "upper"]


@pytest.mark.parametrize("by", [None, "land"])
def test_a_histogram_is_in_the_order_of_its_list(by):
    listed = ["/z", "/b", "/a"]
    answer = dc.histogram(TABLE, SURE, column="page", universe=listed, by=by)
    for same in (answer, dc.Release.from_json(answer.to_json()), dc.Release.from_payload(answer.to_payload())):
        assert same.to_pandas()["page"].tolist() == listed * (2 if by else 1)
        assert same.head(2).to_pandas()["page"].tolist() == listed[:2] * (2 if by else 1)
        assert {item: count for item, count, *_ in same} == {item: count for item, count, *_ in answer}
    assert dc.top_k(TABLE["page"], 3, SURE).items == ["/a", "/b"]  # by count


def test_what_is_empty_says_what_an_item_would_have_needed():
    none = dc.top_k(TABLE, 2, dc.Budget(0.01, 1e-9), column="page", user="visitor", by="land", groups=["de", "fr"])
    for shown in (repr(none), none._repr_html_()):
        assert "(no item passed)" in shown
        assert "No item passed the threshold: an item needs about " in shown
    counted = dc.count(TABLE, dc.Budget(0.001, 1e-9), by="land")
    for shown in (repr(counted), counted._repr_html_()):
        assert "No group passed the threshold: give a larger epsilon, or list the groups that are public." in shown


def test_a_plan_has_headings_in_words():
    plan = dc.plan(length=1, budget=dc.Budget(1.0, 1e-6))
    heading = "mechanism summary counters threshold noise noise error sketch error listed from"
    assert " ".join(str(plan).splitlines()[3].split()) == heading
    assert str(plan).startswith("1 row with epsilon=1, delta=1e-06; hides one event")
    shown = plan._repr_html_()
    assert ">listed from</th>" in shown
    assert "text-align:right" in shown
