"""One type over files, tables and lists: the same rows make the same summaries and people, wherever they are."""

import json
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.engines.amounts import Amounts
from discreet.engines.different import different_items
from discreet.engines.exact_people import people_of
from discreet.engines.pairs import Pairs
from discreet.engines.sql import where
from discreet.events.files import Files
from discreet.events.tables import events_of
from discreet.summaries import ExactCounts, UserMisraGries

ROWS = [(f"u{i % 7}", f"i{i % 5}", i % 3, i / 4) for i in range(60)]
NAMES = ["who", "what", "group", "amount"]
TABLE = pa.table({name: [row[at] for row in ROWS] for at, name in enumerate(NAMES)})


def written(folder, kind):
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(TABLE, path, row_group_size=9)
    elif kind == "csv":
        TABLE.to_pandas().to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    return Files(path)


FORMS = {
    **{kind: lambda folder, kind=kind: written(folder, kind) for kind in ("csv", "jsonl", "parquet")},
    "Arrow": lambda folder: events_of(TABLE),
    "reader": lambda folder: events_of(TABLE.to_reader(11)),
    "pandas": lambda folder: events_of(TABLE.to_pandas()),
    "objects": lambda folder: events_of(TABLE.to_pydict()),
    "dataset": lambda folder: events_of(ds.dataset(written(folder, "parquet").files)),
    "scanner": lambda folder: events_of(ds.dataset(TABLE).scanner(batch_size=11)),
    "to_arrow": lambda folder: events_of(Elsewhere()),
    "Delta": lambda folder: events_of(delta(folder)),
    "Iceberg": lambda folder: events_of(iceberg(folder)),
    "scan of Iceberg": lambda folder: events_of(iceberg(folder).scan()),
    "like Delta": lambda folder: events_of(LikeDelta()),
    "like Iceberg": lambda folder: events_of(LikeIceberg()),
    "like a scan of Iceberg": lambda folder: events_of(LikeIceberg().scan()),
}


class LikeDelta:
    """A table with the methods that those of Delta have."""

    def to_pyarrow_dataset(self):
        return ds.dataset(TABLE)


class LikeIceberg:
    """A table with the methods that those of Iceberg have, and their scans."""

    def __init__(self, names=("*",)):
        self.names = list(TABLE.schema.names) if names == ("*",) else list(names)

    def scan(self):
        return LikeScan(self.names)


class LikeScan:
    def __init__(self, names):
        self.names = names

    def projection(self):
        return SimpleNamespace(fields=[SimpleNamespace(name=name) for name in self.names])

    def select(self, *names):
        return LikeScan(TABLE.schema.names if names == ("*",) else list(names))

    def to_arrow_batch_reader(self):
        return TABLE.select(self.names).to_reader(11)


class Elsewhere:
    def to_arrow(self):
        return TABLE


def delta(folder):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(folder / "delta", TABLE)
    return deltalake.DeltaTable(folder / "delta")


def iceberg(folder):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("local", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("logs")
    table = catalog.create_table("logs.rows", schema=TABLE.schema)
    table.append(TABLE)
    return table


@pytest.fixture(params=FORMS)
def events(request, tmp_path):
    return FORMS[request.param](tmp_path)


def counts_of(rows, **how):
    """What a summary counts, by item as it is published."""
    summary = ExactCounts(seed=1)
    rows.feed(summary, **how)
    raw = summary.not_private_counts()
    items = raw.items if rows.keys is None else rows.keys.items(raw.items)
    shown = [item if not isinstance(item, dict) else tuple(item.values()) for item in items.to_pylist()]
    return dict(zip(shown, list(raw.counts), strict=True))


def test_a_summary_counts_the_same_rows_of_every_source(events):
    assert counts_of(events.rows("what")) == {f"i{i}": 12 for i in range(5)}


def test_groups_and_items_of_several_columns(events):
    found = counts_of(events.rows("what", by=["who"]))
    assert len(found) == 35
    assert found["u0", "i0"] == sum(row[:2] == ("u0", "i0") for row in ROWS)


def test_who_has_what(events):
    pairs = Pairs(events.rows("what", user="who"))
    assert len({*pairs.people.tolist()}) == 7
    assert len(pairs.people) == len({row[:2] for row in ROWS})
    assert sorted(pairs.values().to_pylist()) == [f"i{i}" for i in range(5)]


def test_numbers_and_whose_they_are(events):
    found = Amounts(events.rows("amount", user="who", numbers=True), lambda numbers: (4 * numbers).astype(np.int32))
    assert sorted(found.places.tolist()) == list(range(60))
    assert found.people is not None
    assert np.bincount(found.people).tolist() == [9, 9, 9, 9, 8, 8, 8]


def test_different_items(events):
    assert different_items(events.rows("who")) == 7


def test_all_rows_are_counted_with_or_without_values(events):
    assert events.all_rows().number() == 60


def test_only_rows_of_which_a_condition_is_true(events):
    expected = Counter(row[1] for row in ROWS if row[0] == "u0")
    assert counts_of(events.rows("what", where=where("who = 'u0'"))) == expected


def test_a_sample_of_every_person(events):
    assert sum(counts_of(events.rows("what", user="who"), max_items=2).values()) == 14


@pytest.mark.parametrize("lists", [[["a", "b", "a"], ["b"], []], pa.array([["a", "b", "a"], ["b"], []])])
def test_lists_of_people(lists):
    def rows():
        return events_of(lists).rows(lists=True)

    assert len(Pairs(rows()).people) == 3
    with people_of(rows()) as people:
        assert people.items(np.arange(len(people.discovery_weights(8)))).to_pylist() == ["a", "b"]
    summary = UserMisraGries(10, 2)
    rows().feed(summary)
    assert summary.total == 3
    assert counts_of(rows(), max_items=1)["b"] >= 1
    assert events_of(pa.array([["a"]])).says_lists() is True
    with pytest.raises(dc.DataError, match="holds lists"):
        list(events_of(pa.array([["a"]])).rows().items())


def test_events_are_themselves_and_files_are_not_data(tmp_path):
    events = events_of(TABLE)
    assert events_of(events) is events
    with pytest.raises(dc.DataError, match=r"open a file with dc\.read"):
        events_of(str(tmp_path))


def test_what_was_left_out_is_told_to_the_operator_alone(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"what,n\na,1\n\xff,2\nb,3\nc\n")
    rows = Files(path).rows("what")
    seen = []
    rows.watch = seen.append
    assert counts_of(rows) == {"a": 1, "b": 1}
    assert rows.bad_rows == 2
    assert rows.remarks[0].startswith("skipped 2 rows that could not be read (not private")
    assert "line 3" in rows.remarks[1]
    assert sum(seen) == 2
    assert rows.files == [str(path)]
    with pytest.raises(dc.DataError, match="line 3"):
        counts_of(Files(path).rows("what", bad_rows="error"))


@pytest.mark.parametrize("odd", [5, "5", 2**64 - 1])
@pytest.mark.parametrize("how", [{"by": ["c"]}, {"columns": ["q", "c"]}])
def test_a_person_of_another_kind_stops_nobody_in_groups(tmp_path, odd, how):
    """In JSON lines every row has a kind of its own, whatever items are made of."""
    path, how = tmp_path / "rows.jsonl", {"columns": ["q"], **how}
    rows = [{"u": f"u{i}", "q": "a", "c": "x"} for i in range(20)]
    for place in (0, 20):
        mixed = [*rows[:place], {"u": odd, "q": "a", "c": "x"}, *rows[place:]]
        path.write_text("".join(json.dumps(row) + "\n" for row in mixed))
        assert len({*Pairs(Files(path).rows(how["columns"], user="u", by=how.get("by", ()))).people.tolist()}) == 21


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"nulls": "never"}, "nulls must be"),
        ({"bad_rows": "never"}, "bad_rows must be"),
        ({"user": "what"}, "different columns"),
        ({"by": ["\ud800"]}, "must be text"),
        ({"numbers": True, "by": ["who"]}, "no groups"),
    ],
)
def test_words_are_refused_before_anything_is_read(words, told):
    with pytest.raises(dc.ParameterError, match=told):
        events_of(TABLE).rows("what", **words)


def test_values_of_a_table_are_numbers():
    frame = pd.DataFrame({"who": ["u"], "what": ["a"], "amount": pd.Series(["1"], dtype="string")})
    with pytest.raises(dc.DataError, match="must hold numbers"):
        events_of(frame).rows("what", user="who", value="amount")


def test_of_a_dataset_only_the_columns_that_are_asked_for_are_read():
    asked = []

    class Recorded:
        schema = TABLE.schema

        def scanner(self, columns):
            asked.append(columns)
            return ds.dataset(TABLE).scanner(columns=columns)

    budget = dc.Budget(50.0, 1e-6)
    assert len(dc.top_k(Recorded(), 9, budget, column="what", user="who", where="amount >= 0")) == 5
    assert dc.count(Recorded(), budget).value == pytest.approx(60, abs=5)
    assert {name for names in asked for name in names} == {"what", "who", "amount"}
    assert asked[-1] == ["who"]
    with pytest.raises(dc.DataError, match="no column 'nobody'; its columns are 'who', 'what', 'group', 'amount'"):
        dc.top_k(Recorded(), 9, budget, column="what", user="nobody")


def test_what_a_table_elsewhere_raises_does_not_quote_it():
    class Broken:
        def to_pyarrow_dataset(self):
            raise OSError("marked-item")

    with pytest.raises(dc.DataError, match="OSError") as raised:
        dc.count(Broken(), dc.Budget(1.0))
    assert "marked-item" not in str(raised.value)
    assert raised.value.__context__ is None


AMOUNTS = {"a": ["x"], "u": [1], "n": ["one"]}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: events_of([1.0, 2.0]).rows(user="who", numbers=True), "user needs column: the column with the values"),
        (lambda: events_of(["a"]).rows(by=("g",)), "user and by need a table; name the column to count"),
        (
            lambda: events_of(pa.table({"a": [["x"]], "b": [1]})).rows("a", by=("b",), lists=True),
            "a column of lists cannot be combined with other columns",
        ),
        (lambda: events_of({"a": [1]}).rows(numbers=True), "without column the table is the column itself"),
        (lambda: events_of("rows.csv").rows("a"), r"not a str: open a file with dc.read"),
        (lambda: events_of(Path("rows.csv")).rows("a"), r"not a PosixPath: open a file with dc.read"),
        (lambda: events_of({"a": [1, 2], "b": [1]}).all_rows().number(), "a dict of columns of the same length"),
        (lambda: list(events_of({"a": [1, 2], "b": [1]}).rows(("a", "b"))), "must have the same length"),
        (
            lambda: events_of({"a": ["x", "y"], "b": ["z"]}).rows("a", where=where("a = b")),
            "all columns of a dict must have the same length",
        ),
        (lambda: list(events_of({"a": [object()]}).rows(("a",), user=None, by=("a2",))), "no column 'a2'"),
        (
            lambda: list(
                events_of({"a": ["x"], "u": [1], "n": ["one"]}).rows("a", user="u", value="n", bad_rows="error")
            ),
            "has values that are not numbers",
        ),
        (
            lambda: list(events_of({"a": ["x"], "u": [1], "n": [object()]}).rows("a", user="u", value="n")),
            "no value of the column 'n' can be a number",
        ),
        (
            lambda: list(events_of({"a": [object(), "x"], "u": [1, 2]}).rows("a", user="u", bad_rows="error")),
            "has values that are not items",
        ),
        (
            lambda: list(events_of({"a": [{}, object()], "u": [1, 2]}).rows("a", user="u")),
            "no value of the column 'a' can be an item",
        ),
    ],
)
def test_what_cannot_be_meant_by_a_table_is_refused_in_words(ask, words):
    with pytest.raises(dc.DiscreetError, match=words):
        ask()


def test_numbers_of_objects_are_those_that_are_numbers():
    """True is none, a text is none, and one beyond all floats is infinite: each by itself."""
    values = [1, 2.5, True, "7", Decimal("3.5"), 10**400, -(10**400), np.float32(4.0), None, Decimal("sNaN"), 1j]
    table = {"a": ["x"] * len(values), "u": list(range(len(values))), "n": values}
    rows = events_of(table).rows("a", user="u", value="n", nulls="skip")
    numbers = sorted(number for batch in rows for number in batch.column("value").to_pylist())
    assert numbers == [-math.inf, 1.0, 2.5, 3.5, 4.0, math.inf]


def test_fields_inside_of_columns_are_asked_by_their_path():
    table = pa.table({"a": ["x", "y", "z"], "s": [{"n": 1, "t": {"u": "p"}}, {"n": 2, "t": {"u": "q"}}, None]})
    for condition, kept in (("s.n > 1", ["y"]), ("\"s.t.u\" = 'p'", ["x"]), ("s.t.u is not null", ["x", "y"])):
        found = events_of(table).rows("a", where=where(condition))
        assert [item for part in found.items() for item in part.to_pylist()] == kept
    with pytest.raises(dc.DataError, match=r"no column 's\.none'"):
        list(events_of(table).rows("a", where=where("s.none = 1")).items())


def test_what_is_no_number_is_no_text_for_a_condition_either():
    table = {"a": [float("nan"), "x", None, Decimal("nan"), True, 1.5], "b": list("pqrstu")}
    for condition, kept in (("a is null", "prs"), ("a = 'true'", "t"), ("a = '1.5'", "u"), ("a = 'nan'", "")):
        found = events_of(table).rows("b", where=where(condition))
        assert "".join(item for part in found.items() for item in part) == kept
