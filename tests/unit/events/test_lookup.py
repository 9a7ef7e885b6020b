"""Public tables: every row gets the columns of at most one row, by its own key, wherever the rows are."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.commands import run_here

import discreet as dc
from discreet.engines.sql import where
from discreet.events.lookup import Lookup

NETS = ["a", "b", "c", "d", None]
ROWS = [{"who": f"u{i}", "net": NETS[i % 5], "ms": i % 7} for i in range(500)]
TABLE = pa.Table.from_pylist(ROWS)
COUNTRIES = {"net": ["b", "a", "c"], "country": ["fr", "de", None], "size": [3, 2, 1]}
SURE = dc.Budget(80.0, 1e-6)


def written(folder, kind):
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(TABLE, path, row_group_size=70)
    elif kind == "csv":
        TABLE.to_pandas().to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + '{"net": ["a"]}\n{"net": 1.5}\n')
    return dc.read(path)


DATA = {
    **{kind: lambda folder, kind=kind: written(folder, kind) for kind in ("csv", "jsonl", "parquet")},
    "Arrow": lambda folder: TABLE,
    "reader": lambda folder: TABLE.to_reader(33),
    "pandas": lambda folder: TABLE.to_pandas(),
    "objects": lambda folder: TABLE.to_pydict(),
    "polars": lambda folder: pl.DataFrame(ROWS),
    "lazy": lambda folder: pl.LazyFrame(ROWS),
    "dataset": lambda folder: ds.dataset(TABLE),
    "dictionary": lambda folder: TABLE.set_column(1, "net", TABLE["net"].dictionary_encode()),
}


@pytest.fixture(params=DATA)
def data(request, tmp_path):
    return lambda: DATA[request.param](tmp_path)


def test_every_question_sees_the_columns_of_both(data):
    words = {"lookup": COUNTRIES, "on": "net"}
    top = dc.top_k(data(), 5, SURE, column="country", **words)
    assert dict(zip(top.items, top.counts.tolist(), strict=True)) == pytest.approx({"de": 100, "fr": 100}, abs=3)
    assert top.asked.parameters["lookup"] == Lookup.of(COUNTRIES, "net").to_dict()
    people = dc.top_k(data(), 5, SURE, column="country", user="who", where="size > 2", **words)
    assert people.items == ["fr"]
    by = dc.top_k(data(), 9, SURE, column="ms", by="country", user="who", **words)
    assert {*by.groups} == {"de", "fr"}
    assert dc.count(data(), SURE, where="country is null and net is not null", **words).value == pytest.approx(
        200, abs=3
    )
    assert dc.count(data(), SURE, user="who", where="country = 'de'", **words).value == pytest.approx(100, abs=3)
    assert dc.distinct(data(), SURE, column="country", **words).value == 2
    listed = dc.histogram(data(), SURE, column="country", universe=["de", "es"], **words)
    assert listed.counts.tolist() == pytest.approx([100, 0], abs=3)
    middle = dc.quantiles(data(), SURE, [0.5], column="size", range=(0, 4), **words)
    assert 1 < middle[0.5].value < 3


def test_a_row_without_a_match_is_left_out_where_it_is_asked_about(data):
    """Also with nulls="error", the default: what is not in a public table is nobody's mistake."""
    with pytest.raises(dc.DataError, match=r"null|with no value"):
        dc.top_k(data(), 5, SURE, column="net", user="who")
    assert len(dc.top_k(data(), 5, SURE, column="country", user="who", lookup=COUNTRIES, on="net")) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet", "Arrow", "pandas"])
def test_the_table_comes_from_anywhere_and_its_digest_says_what_is_in_it(tmp_path, kind):
    frame = pd.DataFrame({"net": ["b", "a"], "country": ["fr", "de"]})
    if kind == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
    given = {"csv": tmp_path / "t.csv", "parquet": str(tmp_path / "t.parquet")}.get(kind)
    given = {"Arrow": pa.Table.from_pandas(frame), "pandas": frame}.get(kind, given)
    found = Lookup.of(given, "net")
    assert found.digest == Lookup.of(frame.iloc[::-1], "net").digest
    assert found.digest != Lookup.of(frame.assign(country=["fr", "it"]), "net").digest
    assert found.table == {"csv": "t.csv", "parquet": "t.parquet"}.get(kind, "table")
    assert found.found(pa.array(["a", "x", None, "b"]), ["country"])[0].to_pylist() == ["de", None, None, "fr"]


def test_whole_numbers_are_keys_by_their_digits():
    found = Lookup.of({"code": ["7", "08"], "name": ["seven", "eight"]}, "code")
    assert found.found(pa.array([7, 8, None]), ["name"])[0].to_pylist() == ["seven", None, None]
    assert Lookup.of({"code": [7], "name": ["x"]}, "code").found(pa.array(["7"]), ["name"])[0].to_pylist() == ["x"]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"net": ["a", "a"], "x": [1, 2]}, "must be unique"),
        ({"net": ["a", None], "x": [1, 2]}, "rows without 'net'"),
        ({"net": ["a"]}, "and other columns"),
        ({"other": ["a"], "x": [1]}, "no column 'net'"),
        ({"net": [1.5], "x": [1]}, "keys must be text or whole numbers"),
        ("no such file.csv", "cannot be opened"),
    ],
)
def test_what_is_no_public_table_is_refused_before_any_data(table, why):
    with pytest.raises((dc.DataError, dc.ParameterError), match=why):
        dc.Top(column="x", lookup=table, on="net")


def test_the_words_go_together_and_the_charge_stands_for_the_table(tmp_path):
    for words in ({"lookup": COUNTRIES}, {"on": "net"}):
        with pytest.raises(dc.ParameterError, match="lookup and on must be given together"):
            dc.Count(**words)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("readers", dc.Budget(2.0, 1e-6))
    paid = {"ledger": ledger.account("readers"), "charge_id": "monday", "column": "country", "on": "net"}
    dc.distinct(TABLE, dc.Budget(1.0), lookup=COUNTRIES, **paid)
    again = dc.distinct(TABLE, dc.Budget(1.0), lookup=dict(reversed(COUNTRIES.items())), **paid)
    assert again.payment == "replayed"
    with pytest.raises(dc.LedgerError, match="lookup was digest="):
        dc.distinct(TABLE, dc.Budget(1.0), lookup=COUNTRIES | {"country": ["fr", "it", None]}, **paid)


def test_keys_of_a_type_that_no_table_has_are_refused_by_the_type():
    data = pa.table({"net": [1.5, 2.5], "x": ["a", "b"]})
    with pytest.raises(dc.DataError, match="keys must be text or whole numbers; 'net' is double"):
        dc.top_k(data, 3, SURE, column="country", lookup=COUNTRIES, on="net")
    with pytest.raises(dc.DataError, match="no column 'net'"):
        dc.top_k({"x": ["a"]}, 3, SURE, column="country", lookup=COUNTRIES, on="net")


def test_what_a_row_gets_depends_on_it_alone():
    """Rows in any order and in any blocks get the same columns as each of them alone."""
    lookup = Lookup.of(COUNTRIES, "net")
    for query in (None, where("size > 1 or size is null")):
        bound = lookup.over(query).bound(["country", "who", "net"])
        chance = np.random.default_rng(5)
        nets = [NETS[place] for place in chance.integers(0, 5, 60)]
        columns = {"net": pa.array(nets), "who": pa.array([str(place) for place in range(60)])}

        def asked(rows, bound=bound, columns=columns):
            arrays = [columns[name].take(pa.array(rows)) for name in bound.reads]
            keep, failed = bound.keeps(arrays)
            computed, wrong = bound.computes(arrays)
            return list(zip(keep, failed, computed[0].to_pylist(), wrong, strict=True))

        alone = [asked([row])[0] for row in range(60)]
        order = chance.permutation(60)
        assert asked(order) == [alone[row] for row in order]
        assert {country for keep, _, country, _ in alone if keep} == {"de", "fr"}


def test_a_query_that_may_join_has_no_lookup(tmp_path):
    (tmp_path / "log.csv").write_text("net\na\n")
    data = dc.read(tmp_path / "log.csv", sql="select net from files", rows_of_the_result_are_the_events=True)
    with pytest.raises(dc.ParameterError, match="join the public table in the query"):
        dc.top_k(data, 3, SURE, column="country", lookup=COUNTRIES, on="net")
    data = dc.read(tmp_path / "log.csv", sql="select net, upper(country) as c from files")
    assert len(dc.top_k(data, 3, SURE, column="c", lookup=COUNTRIES, on="net")) == 0
    with pytest.raises(dc.ParameterError, match="lookup adds the columns"):
        dc.read(sql="select * from 'a.csv' join 'b.csv' using (net)")


def test_the_questions_of_a_report_may_look_things_up(tmp_path):
    written(tmp_path, "csv")
    report = dc.Report(
        {"Countries": dc.Top(column="country", lookup=COUNTRIES, on="net"), "People": dc.Count()}, SURE, user="who"
    )
    found = report.answer(dc.read(tmp_path / "rows.csv"))
    assert {*found["Countries"].items} == {"de", "fr"}
    assert found["People"].value == pytest.approx(500, abs=5)
    (tmp_path / "nets.csv").write_text("net,country\na,de\nb,fr\n")
    (tmp_path / "report.toml").write_text(
        f'user = "who"\nepsilon = 90\ndelta = 1e-6\n[data]\nfiles = "{tmp_path}/rows.csv"\n'
        f'[[questions]]\nkind = "top"\ncolumn = "country"\nlookup = "{tmp_path}/nets.csv"\non = "net"\n'
    )
    done = run_here("report", tmp_path / "report.toml", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert '"table": "nets.csv"' in done.stdout
    with pytest.raises(dc.ParameterError, match="max_bad cannot be used in a report"):
        dc.Report({"People": dc.Count(max_bad=0.1)}, SURE)


def test_data_that_is_somewhere_else_is_refused_with_what_to_do():
    from discreet.events.assembly import Events

    with pytest.raises(dc.ParameterError, match="join the public table before you pass the data"):
        dc.count(Events(), SURE, lookup=COUNTRIES, on="net")


@pytest.mark.parametrize("kind", ["Arrow", "pandas", "polars", "objects"])
def test_data_without_the_key_are_refused_by_its_name(kind, tmp_path):
    with pytest.raises(dc.DataError, match=r"no column (named )?'network'"):
        dc.top_k(
            DATA[kind](tmp_path), 3, SURE, column="country", lookup={"network": ["a"], "country": ["de"]}, on="network"
        )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", '{"net": "a", "x": 1}\n', "has no column names; a lookup must be CSV, TSV, Parquet or Arrow"),
        ("a.txt", "net\na\n", "has no column names; a lookup must be"),
        ("a.csv", "net,x\na,1\nb\n", "a row with another number of cells"),
        ("a.csv", "net,x\na,1\n,2\n", "rows without 'net': every row of a lookup needs a key"),
        ("a.csv", "net,x\n,1\n", "rows without 'net'"),
        ("a.csv", "net,x\na,1\na,1\n", "several rows with the same 'net'"),
        ("a.csv", "net,x,x\na,1,2\n", r"a\.csv: the columns of a lookup need names that are all different"),
        ("*.csv", "net,x\na,1\n", "cannot be opened"),
    ],
)
def test_a_public_table_in_a_file_is_whole_and_one(tmp_path, name, text, words):
    """No row of it is left out in silence: it would be one for which others have nothing."""
    (tmp_path / name.replace("*", "a")).write_text(text)
    with pytest.raises((dc.DataError, dc.ParameterError), match=words):
        Lookup.of(str(tmp_path / name), "net")


def test_what_a_release_says_of_a_table_is_its_name_and_all_that_is_in_it(tmp_path):
    """The order of its rows and columns does not matter; one cell does."""
    first = {"net": ["a", "b"], "x": ["1", "2"], "y": ["p", None]}
    made = Lookup.of(first, "net")
    assert made.to_dict() == {"table": "table", "digest": made.digest}
    assert len(made.digest) == 64
    turned = {"y": [None, "p"], "net": ["b", "a"], "x": ["2", "1"]}
    assert Lookup.of(turned, "net").digest == made.digest
    for other in (
        {**first, "x": ["1", "3"]}, {**first, "y": ["p", ""]}, {**first, "net": ["a", "c"]}, {**first, "z": ["", ""]},
        {"net": ["a", "b"], "x": ["2", "1"], "y": ["p", None]}, {"net": ["a", "b"], "y": ["1", "2"], "x": ["p", None]},
    ):  # fmt: skip
        assert Lookup.of(other, "net").digest != made.digest
    assert (
        Lookup.of({"x": ["a", "b"], "net": ["1", "2"]}, "x").digest
        != Lookup.of({"net": ["a", "b"], "x": ["1", "2"]}, "net").digest
    )
    (tmp_path / "nets.csv").write_text("net,x\na,1\n")
    assert Lookup.of(str(tmp_path / "nets.csv"), "net").table == "nets.csv"  # and not where it is


def test_a_table_without_rows_matches_nothing():
    none = Lookup.of(
        pa.table({"net": pa.chunked_array([], pa.string()), "x": pa.chunked_array([], pa.string())}), "net"
    )
    (found,) = none.found(pa.array(["a", None]), ["x"])
    assert found.to_pylist() == [None, None]
