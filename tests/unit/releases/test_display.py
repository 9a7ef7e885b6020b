"""A release to look at, to ask for rows, and to read back: HTML, labels, pictures, JSON."""

import json
import math
import re
import warnings
from datetime import datetime
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.events.values import items_array
from discreet.privacy.guarantee import Asked
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.labels import cut, readable
from discreet.releases.plot import plot_over_time

NOISE = Noise("laplace", Fraction(2), 4)
GUARANTEE = dc.Guarantee(dc.Event(), 0.5, 1e-6, "some <mechanism>")
ODD = [
    "cats",
    "日本語",
    "🐱 cat",
    "مرحبا",
    "नमस्ते",
    "$5 $6",
    "<script>alert(1)</script>",
    "tab\there",
    "_x",
    "👨\u200d👩\u200d👧",
]


def made(items=("b", "a", "c"), counts=(5, 5, 9), model=None, guarantee=GUARANTEE, **more):
    return dc.Release(items_array(items), np.array(counts, np.int64), guarantee, model or ErrorModel(NOISE), **more)


UNKNOWN = ErrorModel(NOISE, summary_below=math.inf)


# ---- rows ------------------------------------------------------------------------------------------------------------


def test_a_release_is_a_collection_of_rows():
    release = made()
    assert len(release) == len(list(release)) == 3
    lower, upper = release.bounds()
    assert [tuple(row) for row in release] == list(
        zip(["c", "a", "b"], [9, 5, 5], lower.tolist(), upper.tolist(), strict=True)
    )
    row = release["c"]
    assert (row.item, row.count) == ("c", 9)
    assert row.lower <= 9 <= row.upper
    assert "c" in release
    assert release.head(1)["c"] == row
    assert "a" not in release.head(1)


@pytest.mark.parametrize("item", ["secret word", b"c", 1, True, None, 1.0, [], ("c",)])
def test_what_is_not_published_is_not_there(item):
    release = made()
    assert item not in release
    with pytest.raises(dc.NotPublishedError) as caught:
        release[item]
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, dc.DiscreetError)
    assert str(caught.value) == "this release does not list that item; it may or may not have occurred"


def test_items_are_asked_for_by_their_own_type():
    release = made([1, "1", b"1"], [30, 20, 10])
    assert [release[item].count for item in (1, "1", b"1")] == [30, 20, 10]
    assert True not in release
    assert 1.0 not in release
    with pytest.raises(dc.ParameterError, match="head"):
        release[:2]


def test_tables_of_other_kinds(tmp_path):
    polars = pytest.importorskip("polars")
    release = made(model=UNKNOWN)
    frame = release.to_polars()
    assert frame.columns == ["item", "count", "lower", "upper"]
    assert isinstance(frame, polars.DataFrame)
    assert frame["item"].to_list() == release.items
    text = release.to_csv(tmp_path / "top.csv")
    assert text == (tmp_path / "top.csv").read_text()
    assert text.splitlines()[0] == "item,count,lower,upper"
    assert text.splitlines()[1].endswith(",")


def test_the_explanation_is_the_one_of_the_command_line():
    from discreet.releases.explain import explained

    assert made().explain() == explained(GUARANTEE.to_dict())
    assert "What is protected" in made().explain()


# ---- JSON ------------------------------------------------------------------------------------------------------------

ITEMS = st.one_of(
    st.lists(st.text(max_size=5), unique=True, max_size=6),
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=6),
    st.lists(st.binary(max_size=5), unique=True, max_size=6),
    st.lists(st.one_of(st.text(max_size=3), st.binary(max_size=3), st.integers(0, 2**64 - 1)), unique=True, max_size=6),
)


@settings(max_examples=60, deadline=None)
@given(items=ITEMS, data=st.data())
def test_json_and_payload_are_read_back_as_they_were(items, data):
    counts = data.draw(st.lists(st.integers(-5, 10**6), min_size=len(items), max_size=len(items)))
    more = {}
    if data.draw(st.booleans()):
        more["asked"] = Asked.of("2026-11-15T21:00:00Z", k=3, columns={"item": "url"}, value_range=(0, 1.5))
    if data.draw(st.booleans()):
        more |= {"total": 10**6, "total_noise": NOISE}
    if data.draw(st.booleans()):
        more |= {"counted": "people", "left_out": dc.Estimate(0.5, 0.25, 1.0, GUARANTEE)}
        more |= {"steps": np.array([1.5] * len(items))} if data.draw(st.booleans()) else {}
    elif data.draw(st.booleans()):
        more |= {"shards": np.arange(len(items)) % 2, "shard_offsets": (3, -2)}
    release = made(items, counts, data.draw(st.sampled_from([ErrorModel(NOISE), UNKNOWN])), **more)
    confidence = data.draw(st.sampled_from([0.5, 0.95]))
    for again in (dc.Release.from_json(release.to_json(confidence)), dc.Release.from_payload(release.to_payload())):
        assert again.to_payload() == release.to_payload()
        assert again.to_dict(confidence) == release.to_dict(confidence)
        assert again.items == release.items
        assert again.asked == release.asked


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", '{"items": [{"item": "secret"}]}', b"\xff"])
def test_other_text_is_refused_without_quoting_it(text):
    with pytest.raises(dc.DataError, match="not a release in JSON") as caught:
        dc.Release.from_json(text)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("damage", [{"time": 3}, {"k": "many"}, {"columns": []}, {"error_model": 1}, {"items": 5}])
def test_damaged_json_is_refused(damage):
    release = made(asked=Asked.of("2026-11-15T21:00:00Z", k=3))
    with pytest.raises(dc.DataError):
        dc.Release.from_json(json.dumps({**release.to_dict(), **damage}))


def test_a_release_says_what_was_asked_for():
    table = pa.table({"url": ["a"] * 500 + ["b"] * 300})
    release = dc.top_k(table, 7, dc.Budget(1.0, 1e-6), column="url", nulls="skip")
    told = json.loads(release.to_json())
    assert (told["columns"], told["k"], told["version"]) == ({"item": "url"}, 7, dc.__version__)
    assert told["parameters"]["nulls"] == "skip"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["time"])
    assert "url" in release._repr_html_()


def test_nothing_of_the_data_is_in_what_a_release_says_was_asked_for():
    told = []
    for rows in (["a"], ["a"] * 5000 + [str(i) for i in range(3000)]):
        described = dc.top_k(rows, 7, dc.Budget(1.0, 1e-6)).asked.to_dict()
        del described["time"]
        told.append(described)
    assert told[0] == told[1]


def test_the_time_is_that_of_the_question_and_not_of_the_end_of_reading(monkeypatch):
    from discreet.releases import payment

    class Later:
        @staticmethod
        def now(zone):
            return datetime(2999, 1, 1, tzinfo=zone)

    def column(lists=False):
        monkeypatch.setattr(payment, "datetime", Later)
        yield pa.array([["a"]] * 100 if lists else ["a"] * 100)

    class Table:
        def __arrow_c_stream__(self, schema=None):
            monkeypatch.setattr(payment, "datetime", Later)
            return pa.table({"url": ["a"] * 100, "user": list(range(100))}).__arrow_c_stream__(schema)

    for data, options in (
        (column(), {}),
        (column(lists=True), {"unit": dc.User()}),
        (Table(), {"column": "url"}),
        (Table(), {"column": "url", "user": "user"}),
    ):
        assert dc.top_k(data, 3, dc.Budget(1.0, 1e-6), **options).asked.time < "2999"
        assert payment.now() > "2999"
        monkeypatch.undo()


def test_a_replayed_release_has_the_time_it_was_first_asked_for(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("searches", dc.Budget(2.0, 1e-5))
    paid = {"ledger": ledger.account("searches"), "charge_id": "monday"}
    first = dc.top_k(["a"] * 500, 3, dc.Budget(1.0, 1e-6), **paid)
    again = dc.top_k(["a"] * 500, 3, dc.Budget(1.0, 1e-6), **paid)
    assert again.payment == "replayed"
    assert again.asked == first.asked
    assert again.to_json() == first.to_json()


# ---- HTML ------------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(text):
    page = Tags(text)
    assert not page.open
    assert {tag for tag, _ in page.tags} <= {
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
        "bdi",
        "i",
        "b",
    }
    for _, attributes in page.tags:
        assert attributes.keys() <= {"style", "title", "role", "aria-label"}
        assert "url(" not in attributes.get("style", "")
    return page


def test_html_has_rows_bars_and_the_promise():
    release = made(ODD, range(100, 100 + len(ODD)))
    page = read(release._repr_html_())
    for item in ODD:
        assert readable(item) in page.text
    assert sum(attributes.get("role") == "img" for _, attributes in page.tags) == len(ODD)
    assert GUARANTEE.sentence() in page.text
    assert "\t" not in page.text


def test_html_has_a_line_above_each_group_and_nowhere_else():
    def lines(release):
        return ["border-top:1px solid #8886" in row for row in release._repr_html_().split("<tr")[2:]]

    table = pa.table({"day": ["mon"] * 900 + ["tue"] * 900, "item": (["a"] * 600 + ["b"] * 300) * 2})
    grouped = dc.top_k(table, 2, dc.Budget(8.0, 1e-6), column="item", by="day")
    assert lines(grouped)[:4] == [True, False, True, False]
    assert not any(lines(made()))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=80), unique=True, max_size=5))
def test_html_of_any_text_is_text(items):
    items = [item.encode("utf-8", "ignore").decode() for item in items]
    items = list(dict.fromkeys(items))
    read(made(items, [10] * len(items))._repr_html_())
    read(made([item.encode() for item in items], [10] * len(items), UNKNOWN)._repr_html_())


def test_html_says_people_and_what_is_missing_and_what_is_not_known():
    people = made(counted="people", guarantee=dc.Guarantee(dc.User(), 1.0, 1e-6, "m"))
    assert "people" in read(people._repr_html_()).text
    assert "at least" in read(made(model=UNKNOWN)._repr_html_()).text
    assert "No item passed the threshold." in read(made((), ())._repr_html_()).text
    assert "everything else" in read(made(total=99, total_noise=NOISE)._repr_html_()).text
    assert "5 more" in read(made([f"i{i}" for i in range(30)], range(30))._repr_html_()).text
    seeded = dc.Guarantee(dc.Event(), 1.0, 1e-6, "m", seeded=True)
    assert "NOT PRIVATE" in read(made(guarantee=seeded)._repr_html_()).text


def test_estimates_have_html_and_a_raw_one_shows_no_number():
    assert "1,234" in read(dc.Estimate(1234, 1100, 1400.0, GUARANTEE)._repr_html_()).text
    assert "at least 1,100" in read(dc.Estimate(1234, 1100, math.inf, GUARANTEE)._repr_html_()).text
    read(dc.Estimate(0.0, -1.0, 0.0, GUARANTEE)._repr_html_())
    raw = read(dc.Estimate(1234, 1100, 1400)._repr_html_()).text
    assert "NOT PRIVATE" in raw
    assert not re.search(r"\d", raw)


# ---- labels ----------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("ab(1) …", max_size=30), max_size=12), st.integers(8, 20))
def test_labels_are_short_and_different(texts, most):
    labels = cut(texts, most)
    assert len(labels) == len(texts) == len(set(labels))
    assert all(len(label) <= most for label in labels)
    for text, label in zip(texts, labels, strict=True):
        if len(text) <= most and texts.count(text) == 1 and labels.count(text) == 0:
            assert label != text  # only where another text was shortened to the same


def test_labels_keep_what_tells_them_apart():
    long = "https://example.org/a/long/way/to/page/"
    assert cut([long + "1", long + "2", "x" * 50], 20) == [
        "https://ex…to/page/1",
        "https://ex…to/page/2",
        "x" * 19 + "…",
    ]
    assert cut(["1", "1"], 20) == ["1 (1)", "1 (2)"]


def test_a_number_makes_no_label_that_another_item_has():
    assert cut(["1", "1 (1)", "1"], 20) == ["1 (2)", "1 (1)", "1 (3)"]
    assert cut(["1 (2)", "1", "1"], 20) == ["1 (2)", "1 (1)", "1 (3)"]


# ---- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bars", "lines"])
@pytest.mark.parametrize("model", [None, UNKNOWN], ids=["known", "unknown"])
def test_pictures_are_drawn_without_warnings(tmp_path, kind, model):
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = made(ODD, range(100, 100 + len(ODD)), model).plot(path, kind=kind)
        made((), ()).plot(path, kind=kind)
        made(["x"], [-3], model).plot(path, kind=kind)
    axes = figure.axes[0]
    labels = axes.get_yticklabels() if kind == "bars" else axes.get_xticklabels()
    assert len({label.get_text() for label in labels}) == len(ODD)


def test_an_unknown_end_is_an_arrow():
    pytest.importorskip("matplotlib")
    for model, arrows in ((None, 0), (UNKNOWN, 3)):
        lines = made(model=model).plot().axes[0].lines
        assert sum(len(line.get_xdata()) for line in lines if line.get_marker() == ">") == arrows
        drawn = made(model=model).plot(kind="lines").axes[0].texts
        assert len(drawn) == arrows


def test_pictures_in_given_axes_and_of_an_empty_release():
    figures = pytest.importorskip("matplotlib.figure")
    axes = figures.Figure().add_subplot()
    assert made().plot(ax=axes) is axes.figure
    assert "number of people" in made(counted="people").plot().get_supxlabel()
    assert "number of people" in made(counted="people").plot(ax=axes).axes[0].get_xlabel()
    empty = made((), ()).plot().axes[0]
    assert [text.get_text() for text in empty.texts] == ["No item passed the threshold."]
    with pytest.raises(dc.ParameterError, match="bars"):
        made().plot(kind="pie")


def test_a_picture_over_time_has_gaps_where_nothing_is_published(tmp_path):
    pytest.importorskip("matplotlib")
    ticks = [made(["a", "_b"], [9, 5]), made(["a"], [10]), made(["a", "_b"], [11, 8], UNKNOWN)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = plot_over_time(ticks, tmp_path / "time.svg").axes[0]
        plot_over_time([made((), ())], tmp_path / "time.png")
    drawn = [line.get_ydata().tolist() for line in axes.lines if len(line.get_ydata())]
    assert drawn[0] == [9, 10, 11]
    assert math.isnan(drawn[1][1])
    assert [text.get_text().lstrip("\u200b") for text in axes.get_legend().get_texts()] == ["a", "_b"]
    for bad in ([], [made(), made(counted="people")]):
        with pytest.raises(dc.ParameterError):
            plot_over_time(bad)
    with pytest.raises(dc.ParameterError, match="times"):
        plot_over_time(ticks, times=[1])


def test_labels_are_inside_of_the_picture():
    pytest.importorskip("matplotlib")
    from matplotlib.text import Text

    wide = ["W" * 39 + str(n) for n in range(10)]
    table = {"page": wide * 30, "land": (["Deutschland und die Schweiz", "fr", "it"] * 100)[:300]}
    sure = dc.Budget(50.0, 1e-3)
    pictures = [
        dc.top_k(table, 10, sure, column="page").plot(),
        dc.top_k(table, 10, sure, column="page").plot(kind="lines"),
        dc.top_k(table, 3, sure, column="page", by="land").plot(),
        dc.top_k(table, 3, sure, column=["page", "land"]).plot(),
        dc.count(table, sure, by="page").plot(),
        dc.count(table, dc.Budget(0.001, 1e-9), by="page").plot(),
        dc.top_k(table, 3, dc.Budget(0.001, 1e-9), column="page").plot(),
    ]
    for figure in pictures:
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        texts = [text for text in figure.findobj(Text) if re.search("[A-Za-z]", text.get_text())]
        assert texts
        for text in texts:
            ends = text.get_window_extent(renderer)
            assert min(ends.x0, ends.y0) >= -1
            assert ends.x1 <= figure.bbox.width + 1
            assert ends.y1 <= figure.bbox.height + 1


def test_numbers_for_people():
    """Four digits below a thousand, whole numbers from there on; ends that are not known are told."""
    guarantee = dc.count(pa.table({"a": [1]}), dc.Budget(1.0)).guarantee
    inf = math.inf
    for value, lower, upper, number, interval in (
        (999.44, 0.0, 1000.0, "999.4", "0 to 1,000"),
        (1000.4, 999.0, 1234567.8, "1,000", "999 to 1,234,568"),
        (0.123456, -0.5, 0.25, "0.1235", "-0.5 to 0.25"),
        (7.0, 5.0, inf, "7", "at least 5"),
        (7.0, -inf, 9.0, "7", "at most 9"),
        (7.0, -inf, inf, "7", "not known"),
    ):
        shown = dc.Estimate(value, lower, upper, guarantee)._repr_html_()
        assert f">{number}<" in shown, (value, shown)
        assert interval in shown, (interval, shown)
