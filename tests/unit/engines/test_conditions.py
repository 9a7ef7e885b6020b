"""Conditions that are computed of whole columns say of every row what DuckDB says of it."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines import sql
from discreet.engines.conditions import literal, plan_of

TEXTS = ["", "a", "A", "abc", "b%", "a_c", "é", "404", "x" * 300, "\x00", None]
COLUMNS = {
    "i": pa.array([0, 1, 404, -1, 2**31 - 1, -(2**31), 7, None, 12, 403, 405], pa.int32()),
    "w": pa.array([0, 1, 404, -1, 2**63 - 1, -(2**63), 2**53 + 1, None, 12, 403, 405], pa.int64()),
    "u": pa.array([0, 1, 255, 200, 3, 4, 5, None, 12, 25, 99], pa.uint8()),
    "f": pa.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, 404.0, None, 1e-320, 0.1, 1e300], pa.float64()),
    "t": pa.array(TEXTS, pa.string()),
    "l": pa.array(TEXTS, pa.large_string()),
    "d": pa.array(TEXTS, pa.string()).dictionary_encode(),
}
OPERATORS = ("=", "<>", "<", ">", "<=", ">=")
WRITTEN = {"i": ("404", "-1", "2147483647"), "w": ("404", "9007199254740993", "-5"), "u": ("0", "200")}
WRITTEN |= {"f": ("0", "1.5", "-1", "0.1", "404", "9007199254740992"), "t": ("'a'", "''", "'é'"), "l": ("'abc'",)}
WRITTEN |= {"d": ("'a'", "'404'")}
PLANNED = [
    *(f"{c} {o} {v}" for c, values in WRITTEN.items() for o in OPERATORS for v in values),
    *(
        "404 < i",
        "1.5 >= f",
        "i in (404, 7)",
        "i not in (404, 7)",
        "t in ('a', 'abc')",
        "d not in ('a')",
        "f in (0, 1.5)",
    ),
    *("i between 1 and 404", "f between 0 and 2", "t between 'a' and 'b'", "i not between 0 and 5"),
    *(f"{c} is {n}null" for c in COLUMNS for n in ("", "not ")),
    *(f"{c} {n}like '{p}'" for c in "tld" for n in ("", "not ") for p in ("a%", "%c", "%b%", "abc", "", "%", "%%")),
    *(
        "not i = 404",
        "i = 404 or f > 1",
        "i = 404 and f > 1",
        "not (i = 404 or t like 'a%')",
        "i = 1 and not f is null",
    ),
    "(i > 0 or f < 0) and (t = 'a' or l is null) and not d = '404'",
]
NOT_PLANNED = [
    *("u = 404", "u = -1", "i = 404.5", "w = 9223372036854775808", "f = 1e3", "f = 0.1234567890123456", "i = '404'"),
    *("t = 404", "t < 404.5", "t like 'a_c'", "t like 'a%c'", "t ilike 'A%'", "i + 1 = 405", "w * 2 > 0", "i = u"),
    *("f = 'x' or i = 1", "i is distinct from 404", "i in (404, null)", "w + 1 > 0", "cast(t as integer) = 404"),
]


def kept(condition, columns, planned):
    query = sql.where(condition).bound(list(columns))
    with pytest.MonkeyPatch.context() as patch:
        if not planned:
            patch.setattr(sql, "plan_of", lambda *_: None)
            patch.setattr(sql, "_few_texts", lambda _: None)
        return query.keeps([columns[name] for name in query.reads])


@pytest.mark.parametrize("condition", PLANNED)
def test_a_plan_says_what_duckdb_says(condition):
    slow = [mask.tolist() for mask in kept(condition, COLUMNS, False)]
    assert slow[1] == [False] * 11
    query = sql.where(condition).bound(list(COLUMNS))
    # All rows, none, and each by itself: no row has a say in another's.
    for rows in (slice(None), slice(0, 0), *(slice(at, at + 1) for at in range(11))):
        found = query.keeps([COLUMNS[name][rows] for name in query.reads])
        assert [mask.tolist() for mask in found] == [mask[rows] for mask in slow]


@pytest.mark.parametrize("condition", PLANNED)
def test_a_plan_asks_duckdb_nothing(condition, monkeypatch):
    monkeypatch.setattr(sql, "Blocks", None)
    assert len(sql.where(condition).bound(list(COLUMNS)).keeps(list(COLUMNS.values()))[0]) == 11


@pytest.mark.parametrize("condition", NOT_PLANNED)
def test_what_may_fail_or_is_cast_goes_the_slow_way(condition):
    query = sql.where(condition).bound(list(COLUMNS))
    kinds = {name: column.type for name, column in COLUMNS.items()}
    assert all(sql.plan_of(each, kinds) is None for each in query._conditions)
    try:
        slow = kept(condition, COLUMNS, False)
    except Exception as error:
        with pytest.raises(type(error)):
            kept(condition, COLUMNS, True)
    else:
        assert [mask.tolist() for mask in kept(condition, COLUMNS, True)] == [mask.tolist() for mask in slow]


def test_what_is_planned_depends_on_the_query_and_the_types_alone():
    kinds = {name: column.type for name, column in COLUMNS.items()}
    for condition in PLANNED:
        query = sql.where(condition).bound(list(COLUMNS))
        assert all(sql.plan_of(each, kinds) is not None for each in query._conditions)


MIXED = [
    "i > 0 and t = 404 and f > 1",
    "t = 404 and i > 0",
    "i > 0 and w + 1 > 0 and t <> 'a'",
    "w + 1 > 0 and w * 2 > 0",
]


@pytest.mark.parametrize("condition", MIXED)
def test_a_condition_is_asked_where_those_before_it_hold(condition):
    """So the same rows stay, and the same rows are bad, whichever of them are planned."""
    for rows in itertools.combinations(range(11), 10):
        columns = {name: column.take(pa.array(rows)) for name, column in COLUMNS.items()}
        quick, slow = (kept(condition, columns, planned) for planned in (True, False))
        assert [mask.tolist() for mask in quick] == [mask.tolist() for mask in slow]


def test_a_text_that_comes_often_is_asked_about_once(monkeypatch):
    random = np.random.default_rng(5)
    texts = pa.array(["404", "200", " 404 ", "4.04e2", "x", "", None, "404.0000000001"])
    column = texts.take(pa.array(random.integers(0, len(texts), 20_000)))
    found = kept("status = 404", {"status": column}, True)
    assert [mask.tolist() for mask in found] == [
        mask.tolist() for mask in kept("status = 404", {"status": column}, False)
    ]
    assert found[0].any()
    assert found[1].any()
    asked = []
    real = sql.Blocks.computed
    monkeypatch.setattr(sql.Blocks, "computed", lambda self, *of: asked.append(of[1].num_rows) or real(self, *of))
    kept("status = 404", {"status": column}, True)
    assert asked == [len(texts)]


def test_a_text_of_more_than_a_mebibyte_makes_its_row_bad():
    columns = {"t": pa.array(["a", "b" * (2**20 + 1), "a"])}
    assert [mask.tolist() for mask in kept("t = 'a'", columns, True)] == [[True, False, True], [False, True, False]]


@pytest.mark.parametrize("function", ["json_extract", "replace", "regexp_replace", "time_bucket", "timezone"])
def test_a_function_with_too_few_arguments_is_refused_like_any_other(function):
    for given in ("", "item", "item, 'a'") if function in ("replace", "regexp_replace") else ("", "item"):
        with pytest.raises(dc.errors.DiscreetError):
            dc.count(pa.table({"item": ["a"]}), dc.Budget(1.0), where=f"{function}({given}) = 'a'")


def test_what_is_known_of_a_text_is_known_of_one_condition():
    """Of several that ask DuckDB about one column each has its own answers."""
    random = np.random.default_rng(6)
    texts = pa.array(["404", "200", " 404 ", "x", "7", None])
    columns = {"t": texts.take(pa.array(random.integers(0, len(texts), 9000))), "i": pa.array(range(9000))}
    for condition in ("t <> 200 and i >= 0 and t = 404", "t = 404 and i >= 0 and t <> 404"):
        quick, slow = (kept(condition, columns, planned) for planned in (True, False))
        assert [mask.tolist() for mask in quick] == [mask.tolist() for mask in slow]


def decimal(value, scale):
    return {"type": {"id": "DECIMAL", "type_info": {"scale": scale}}, "value": value}


LITERALS = {
    "of DuckDB 2": ({"literal": {"kind": "NUMERIC", "text": "1.50"}}, ("fraction", "1.50")),
    "a text of DuckDB 2": ({"literal": {"kind": "STRING", "text": ""}}, ("text", "")),
    "true of DuckDB 2": ({"literal": {"kind": "BOOLEAN", "text": "true"}}, ("", "true")),
    "a decimal": ({"value": decimal(150, 2)}, ("fraction", "1.50")),
    "a decimal below one": ({"value": decimal(5, 2)}, ("fraction", "0.05")),
    "a negative decimal": ({"value": decimal(-5, 3)}, ("fraction", "-0.005")),
    "a decimal of nothing": ({"value": decimal(0, 1)}, ("fraction", "0.0")),
    "a whole decimal": ({"value": decimal(7, 0)}, ("fraction", "7")),
    "a whole number": ({"value": {"type": {"id": "INTEGER"}, "value": -404}}, ("whole", "-404")),
    "a text": ({"value": {"type": {"id": "VARCHAR"}, "value": "4"}}, ("text", "4")),
    "a float": ({"value": {"type": {"id": "DOUBLE"}, "value": 1.5}}, ("fraction", "")),
    "a huge number": ({"value": {"type": {"id": "HUGEINT"}, "value": {"upper": 1, "lower": 0}}}, ("whole", "")),
    "null": ({"value": {"type": {"id": "NULL"}, "is_null": True}}, ("", "")),
}


@pytest.mark.parametrize("what", LITERALS)
def test_what_is_written_is_read_from_the_tree_of_any_duckdb(what):
    """Versions write a constant as text, or as a value of a type."""
    node, said = LITERALS[what]
    assert literal({"class": "CONSTANT", "type": "VALUE_CONSTANT", **node}) == said
    assert literal({**node, "class": "COLUMN_REF"}) == ("", "")


def test_not_in_is_what_any_duckdb_calls_it():
    """One kind of node, or NOT around IN."""
    column = {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": ["i"]}
    one = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": {"kind": "INTEGER", "text": "404"}}
    found = {}
    for kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
        node = {"class": "OPERATOR", "type": kind, "children": [column, one]}
        plan = plan_of(node, {"i": pa.int32()})
        found[kind] = plan({"i": pa.chunked_array([COLUMNS["i"]])}).to_pylist()
    assert found["COMPARE_IN"] == [None if i is None else i == 404 for i in COLUMNS["i"].to_pylist()]
    assert found["COMPARE_NOT_IN"] == [None if i is None else i != 404 for i in COLUMNS["i"].to_pylist()]
