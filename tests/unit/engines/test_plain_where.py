"""Conditions that are read without DuckDB are read as DuckDB reads them, or left to it."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.engines import plain_where, sql
from discreet.engines.closed_duckdb import ask
from discreet.engines.conditions import LONGEST, literal

READ = [
    "status = 404",
    "status=404",
    "  404 = status ",
    '"Status" <> -4.50',
    "a = 1 and \"b\" != 'x''y' or not (c < 3 or d >= 0.5)",
    "not not a == 1",
    "not (a not in (1))",
    "a in (1, 2, 3) AND b NOT IN ('x')",
    "a between -1 and 2 and c not between 'a' and 'b'",
    "a like '%x' or b not like 'y%'",
    "a is null or b IS NOT NULL",
    "((a = 1))",
    '"a.b" = 1 and "say ""so""" = \'\'',
    "a\n=\t1",
    "name = 'é\\n; -- /* '",
    "a = 0 and b = 999999999999999999",
    "year = 2026 and day = 'x' and date = '2026-01-01' and status = 1",
]
LEFT = [
    "a = 007",
    "b = 12345678901234567890123",
    "",
    "status",
    "a = b",
    "a = 1e3",
    "a = .5",
    "a = 5.",
    "a = 1_000",
    "a = +5",
    "a = - 5",
    "a = 0x10",
    "a = 404abc",
    "a = 'x' 'y'",
    "a = 'x'\n'y'",
    "a = e'x'",
    "a = X'00'",
    "a = $$x$$",
    "a = 'x",
    "t.a = 1",
    "lower(a) = 'x'",
    "a = 1 is null",
    "a = 1 = 1",
    "(a) = 1",
    "a = (1)",
    "a = 1 -- why",
    "a /* b */ = 1",
    "a = true",
    "a is true",
    "a = null",
    "a in ()",
    "a in (1,)",
    "a in (b)",
    "a not 1",
    "a like 'x' escape '!'",
    "a like b",
    "a ilike 'x'",
    "a similar to 'x'",
    "a = 1; drop table x",
    "a = 1 order by a",
    "a = 1 and",
    "and a = 1",
    "a =-1 --",
    "a\u00a0= 1",
    "é = 1",
    "current_date = 1",
    "user = 'x'",
    "select = 1",
    "a::int = 1",
    "a = 1::int",
    "a <=> 1",
    "a < > 1",
    "a !== 1",
    "a @> 1",
    "[1] = a",
    "a = ?",
    "a = $1",
    "#1 = 2",
    "a = date '2026-01-01'",
    "(" * 60 + "a = 1" + ")" * 60,
]


def parsed(condition: str) -> dict | None:
    """What DuckDB's parser makes of it; None where that is no condition."""
    ((found,),) = ask("SELECT json_serialize_sql(?)", [f"SELECT * FROM files WHERE {condition}\n"])
    tree = json.loads(found)
    if tree.get("error") or len(tree["statements"]) != 1:
        return None
    return tree["statements"][0]["node"]["where_clause"]


def plain(node):
    """A tree without what it does not say: places in the text, and brackets around conditions that are joined."""
    if isinstance(node, list):
        return [plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "CONSTANT":
        return literal(node)
    if node.get("class") == "FUNCTION":
        given = node.get("children") or [each["expression"] for each in node["arguments"]]
        return node["function_name"], plain(given)
    made = {
        key: plain(value)
        for key, value in node.items()
        if key not in ("query_location", "query_location_length", "alias")
    }
    if made.get("class") == "CONJUNCTION":
        parts = []
        for each in made["children"]:
            joined = isinstance(each, dict) and each.get("type") == made["type"]
            parts += each["children"] if joined else [each]
        made["children"] = parts
    if made.get("type") == "COMPARE_NOT_IN":  # of older versions
        made = {"class": "OPERATOR", "type": "OPERATOR_NOT", "children": [{**made, "type": "COMPARE_IN"}]}
    if made.get("type") == "OPERATOR_NOT":  # twice it says nothing, of null neither, and older versions leave it out
        (negated,) = made["children"]
        if isinstance(negated, dict) and negated.get("type") == "OPERATOR_NOT":
            return negated["children"][0]
    return made


@pytest.mark.parametrize("condition", READ)
def test_it_is_read_as_duckdb_reads_it(condition):
    found = plain_where.tree_of(condition)
    assert found is not None
    assert plain(found) == plain(parsed(condition))


@pytest.mark.parametrize("condition", LEFT)
def test_everything_else_is_left_to_duckdb(condition):
    assert plain_where.tree_of(condition) is None


def test_keywords_are_names_where_duckdb_takes_them_for_names():
    keywords = [name for (name,) in ask("SELECT DISTINCT keyword_name FROM duckdb_keywords()")]
    read = 0
    for name in keywords:
        found = plain_where.tree_of(f"{name} = 404")
        read += found is not None
        assert found is None or plain(found) == plain(parsed(f"{name} = 404")), name
    assert read > 200


PIECES = ["a", '"b c"', "1", "-2", "0.5", "'x'", "''''", "=", "<>", "<", ">=", "and", "or", "not", "in", "(", ")", ",",
          "is", "null", "between", "like", "- 1", "--", "/*", ";", "date", "user", "1e3", "E'x'", "\n"]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9), st.sampled_from(["", " "]))
def test_no_text_is_read_otherwise_than_by_duckdb(pieces, between):
    condition = between.join(pieces)
    found = plain_where.tree_of(condition)
    if found is not None:
        assert plain(found) == plain(parsed(condition))


COLUMNS = {
    "i": pa.array([404, 0, None, -1, 2**31 - 1], pa.int32()),
    "u": pa.array([404, 0, None, 2**64 - 1, 2**63], pa.uint64()),
    "f": pa.array([404.0, np.nan, None, -0.0, np.inf]),
    "g": pa.array([404.0, np.nan, None, -0.0, 0.1], pa.float32()),
    "t": pa.array(["404", "it's", None, "", "a%b"]),
    "d": pa.array(["404", "it's", None, "", "a%b"]).dictionary_encode(),
    "n": pa.array([Decimal("404.00"), Decimal("0.10"), None, Decimal("-1.50"), Decimal("404.01")]),
    "y": pa.array([0, 1, None, -1, 20000], pa.int32()).cast(pa.date32()),
    "b": pa.array([True, False, None, True, False]),
    "long": pa.array(["x" * (LONGEST + 1), "x", None, "y", ""]),
}
CONDITIONS = ["= 404", "<> 404", "< 0.5", ">= -1", "in (404, 0)", "not in (404)", "is null", "is not null",
              "between 0 and 404", "= 'it''s'", "like 'it%'", "not like '%'", "> ''", "<> '404'",
              "= '2026-01-01'"]  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("written", CONDITIONS)
@pytest.mark.parametrize("around", ["{}", "not ({})", "{} and i is not null", "{} or t = '404'"])
def test_the_same_rows_stay(column, written, around):
    condition = around.format(f"{column} {written}")
    said = []
    for query in (plain_where.where(condition), sql.where(condition)):
        bound = query.bound(["t"])
        assert list(bound.reads) == list(dict.fromkeys(["t", column, *(["i"] if "i is" in around else [])]))
        try:
            said.append([each.tolist() for each in bound.keeps([COLUMNS[name] for name in bound.reads])])
        except dc.ParameterError as error:
            said.append(str(error))
    assert type(plain_where.where(condition)).__name__ == "PlainQuery"
    assert said[0] == said[1]


def test_a_condition_is_read_anew_where_the_types_are_others():
    """As from one file to the next: what was made for whole numbers says nothing of texts, nor the other way round."""
    kinds = [
        pa.array([1, 404, None, 5]),
        pa.array(["1", "404", None, "x"]),
        pa.array([1.0, 404.0, None, float("nan")]),
        pa.array([1, 200, None, 5], pa.uint8()),
        pa.array(["1", "404", None, "x"]).dictionary_encode(),
    ]
    for condition in ("i = 404 or i = 1", "i > 1", "not (i in (1, 404))", "i is null"):
        bound = plain_where.where(condition).bound(["i"])

        def told(query, column):
            try:
                return [each.tolist() for each in query.keeps([column])]
            except dc.ParameterError as error:
                return str(error)

        for column in (*kinds, *kinds[::-1]):
            assert told(bound, column) == told(sql.where(condition).bound(["i"]), column), (condition, column.type)


def test_what_is_asked_for_is_found_where_it_is():
    for wanted in ([], [None], ["t", "i"], [None, "t"]):
        ours, theirs = (where("i = 404 and u is null").bound(wanted) for where in (plain_where.where, sql.where))
        for name in ("reads", "taken", "selects", "looks_at"):
            assert list(np.atleast_1d(getattr(ours, name))) == list(np.atleast_1d(getattr(theirs, name)))


def test_a_plain_condition_does_not_load_duckdb(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"i": pa.array([404] * 900, pa.int32()), "t": ["a"] * 900}), tmp_path / "log.parquet")
    script = "import sys, discreet.cli as c\ntry:\n    c.main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    words = ["top", str(tmp_path / "log.parquet"), "--column", "t", "--where", "i = 404", "--unit", "row"]
    words += ["--epsilon", "1", "--delta", "1e-6", "--format", "json"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert '"item": "a"' in done.stdout
    assert not {"_duckdb", "pyarrow.compute"} & set(done.stderr.split())


@pytest.mark.parametrize("condition", ["", " ", None, 3, "\0", "a = 1 and count(*) > 1"])
def test_a_wrong_condition_is_refused(condition):
    with pytest.raises(dc.ParameterError):
        plain_where.where(condition)


@pytest.mark.parametrize("condition", ["a = '\udcff'", "a like '\udcff%'", '"\udcff" = 1'])
def test_a_condition_that_is_no_text_is_refused_in_words(condition, tmp_path):
    """Bytes of a command line that are no UTF-8 come as lone surrogates."""
    (tmp_path / "in.csv").write_text("a,b\nx,1\n")
    for data in (dc.read(str(tmp_path / "in.csv")), {"a": ["x"], "b": [1]}):
        with pytest.raises(dc.ParameterError, match=r"cannot be read|no column"):
            dc.count(data, dc.Budget(1.0), unit=dc.Event(), where=condition)
