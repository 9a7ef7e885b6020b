"""Queries of rows: what is refused and why, and that a row of the result comes from one row of the input."""

import functools
import json
import random

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import open_stream

import discreet as dc
from discreet.engines import sql
from discreet.events import row_query
from discreet.events.live_input import LiveInput
from discreet.events.row_query import of_arrays
from discreet.events.text import Dialect

# A query and a word of the reason for which it is refused.
REFUSED = {
    "select count(*) from 'a.csv'": r"count\(\*\).*one row of many",
    "select sum(a) as s from 'a.csv'": "one row of many",
    "select sum(a) filter (where b) from 'a.csv'": "one row of many",
    "select string_agg(a, ',' order by b) from 'a.csv'": "one row of many",
    "select any_value(a) from 'a.csv'": "one row of many",
    "select a from 'a.csv' group by a": "GROUP BY",
    "select a from 'a.csv' group by all": "GROUP BY",
    "select a from 'a.csv' having a > 1": "GROUP BY",
    "select a from 'a.csv' limit 3": "LIMIT",
    "select a from 'a.csv' offset 3": "LIMIT",
    "select a from 'a.csv' limit 10%": "LIMIT",
    "select distinct a from 'a.csv'": "DISTINCT",
    "select distinct on (a) a, b from 'a.csv'": "DISTINCT",
    "select a from 'a.csv' using sample 3": "sample",
    "select a from 'a.csv' tablesample 10%": "sample",
    "select row_number() over () as n from 'a.csv'": "OVER",
    "select lag(a) over (order by b) as n from 'a.csv'": "OVER",
    "select a from 'a.csv' qualify true": "QUALIFY",
    "select a from 'a.csv' union all select a from 'b.csv'": "UNION",
    "select a from 'a.csv' except select a from 'b.csv'": "UNION",
    "select a from 'a.csv', 'b.csv'": "join",
    "select a from 'a.csv' join 'b.csv' using (a)": "join",
    "select a from 'a.csv' positional join 'b.csv'": "join",
    "select a from 'a.csv' semi join 'b.csv' using (a)": "join",
    "select unnest(a) as b from 'a.csv'": "many rows of one",
    "select b from 'a.csv', unnest(a) as t(b)": "join",
    "select a from 'a.csv' where a in (select b from 'b.csv')": "subquery",
    "select a from 'a.csv' where a > (select avg(a) from 'a.csv')": "subquery",
    "select a from 'a.csv' where exists (select 1)": "subquery",
    "select (select max(b) from 'b.csv') as m from 'a.csv'": "subquery",
    "select a from 'a.csv' where random() < 0.1": "another thing each time",
    "select uuid() as u from 'a.csv'": "another thing each time",
    "select now() as n from 'a.csv'": "another thing each time",
    "select nextval('s') as n from 'a.csv'": "another thing each time",
    "select current_localtime() as t from 'a.csv'": "not on the list",
    "select a from (select distinct a from 'a.csv')": "DISTINCT",
    "select a from (select a from 'a.csv' limit 1)": "LIMIT",
    "with c as (select a, count(*) as n from 'a.csv' group by a) select a from c": "GROUP BY",
    "with recursive c as (select a from 'a.csv' union all select a from c) select a from c": "UNION|RECURSIVE",
    "with c(x) as (select a from 'a.csv') select x from c": "WITH",
    "select a from read_csv('a.csv')": "function in FROM",
    "select content from read_text('/etc/passwd')": "function in FROM",
    "select * from duckdb_settings()": "function in FROM",
    "select * from range(10)": "function in FROM",
    "select * from generate_series(1, 10) with ordinality": "function in FROM",
    "select * from query('select 1')": "function in FROM",
    "values (1)": "VALUES",
    "select 1 as a": "without FROM",
    "select * from (values (1)) t(a)": "VALUES|names of columns",
    "describe select 1": "SELECT|DESCRIBE",
    "summarize 'a.csv'": "SELECT|DESCRIBE",
    "select getenv('HOME') as h from 'a.csv'": "not on the list",
    "select current_setting('threads') as t from 'a.csv'": "another thing each time",
    "select getvariable('x') as x from 'a.csv'": "another thing each time",
    "select error(a) as e from 'a.csv'": "another thing each time",
    "select sleep_ms(1000) as e from 'a.csv'": "another thing each time",
    "select repeat(a, 1000000) as r from 'a.csv'": "not on the list",
    "select printf(a, b) as r from 'a.csv'": "not on the list",
    "select lpad(a, 1000000, 'x') as r from 'a.csv'": "not on the list",
    "select list_transform(a, x -> x + 1) as r from 'a.csv'": "not on the list",
    "select json_serialize_sql('select 1') as r from 'a.csv'": "not on the list",
    "select damerau_levenshtein(a, b) as d from 'a.csv'": "not on the list.*all memory",
    "select json_contains(a, '1') as c from 'a.csv'": "not on the list.*ends the process",
    "select a glob '*x*' as g from 'a.csv'": "GLOB.*not on the list.*forever",
    "select replace(a, 'x', b) as r from 'a.csv'": "third argument of replace.*must be a constant",
    "select regexp_replace(a, 'x', b) as r from 'a.csv'": "third argument of regexp_replace.*must be a constant",
    "select json_extract(a, b) as r from 'a.csv'": "second argument of json_extract.*must be a constant",
    "select json_extract(a, '$..b') as r from 'a.csv'": "path without",
    "select a ->> '$.**' as r from 'a.csv'": "path without",
    "select cast(a as bignum) as r from 'a.csv'": "cast to bignum.*not on the list|cast to BIGNUM.*not on the list",
    "select cast(a as bignum[]) as r from 'a.csv'": "not on the list of types",
    "select try_cast(a as struct(x variant)) as r from 'a.csv'": "not on the list of types",
    "select cast(a as nothing_known) as r from 'a.csv'": "not on the list of types",
    "select a collate nocase as r from 'a.csv'": "COLLATE",
    "select columns(*) from 'a.csv'": "COLUMNS",
    "select * exclude (a) from 'a.csv'": "COLUMNS",
    "select * replace (1 as a) from 'a.csv'": "COLUMNS",
    "select #1 from 'a.csv'": "#1",
    "select ? from 'a.csv'": "parameter",
    "select $1 from 'a.csv'": "parameter",
    "select a from main.files": "schema",
    "select a from files at (version => 1)": "FROM|not known|at",
    "select main.lower(a) as l from 'a.csv'": "not accepted",
    "copy (select 1) to 'x.csv'": "must be a SELECT",
    "select 1; select 2": "one SELECT",
    "select a from 'a.csv'; copy x to 'y'": "SELECT",
    "pragma version": "must be a SELECT",
    "attach 'x.db'": "must be a SELECT",
    "install httpfs": "must be a SELECT",
    "load httpfs": "must be a SELECT",
    "set threads = 4": "must be a SELECT",
    "create table t as select 1": "must be a SELECT",
    "insert into t values (1)": "must be a SELECT",
    "explain select a from 'a.csv'": "SELECT",
    "call pragma_version()": "SELECT",
    "export database 'x'": "must be a SELECT",
    "select a from": "cannot be read",
    "": "must be text",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused_says_why(query):
    with pytest.raises(dc.ParameterError, match=REFUSED[query]):
        sql.select(query)


def test_a_condition_has_no_whole_query():
    with pytest.raises(dc.ParameterError, match=r"and from it alone$"):
        sql.where("a > avg(a)")
    with pytest.raises(dc.ParameterError, match="rows_of_the_result_are_the_events"):
        sql.select("select avg(a) from files")
    for never in ("select getenv('a') as a from files", "select a from read_csv('a.csv')"):
        with pytest.raises(dc.ParameterError, match=r"and from it alone$"):
            sql.select(never)


@pytest.mark.parametrize(
    "condition",
    [
        *("a = 1 limit 3", "a = 1 group by a", "a = 1 union select 1", "a = 1; select 2", "a = 1) or (b = 2"),
        *("a in (select 1)", "(select true)", "a = 1 using sample 3", "a = 1 qualify true", "count(*) > 1", "", "  "),
        *("random() < 0.5", "-- x"),
        *("a = 1 window w as (order by a)  qualify row_number() over w = 1", "x -> true", "1; drop table rows"),
    ],
)  # fmt: skip
def test_a_condition_is_a_condition(condition):
    with pytest.raises(dc.ParameterError):
        sql.where(condition)


def test_functions_on_the_list_look_at_their_arguments_alone():
    """As DuckDB says of each: scalar, and the same for the same arguments. Macros are of such functions."""
    kinds = {}
    for name, kind, stability in duckdb.execute(
        "select lower(function_name), function_type, stability from duckdb_functions()"
    ).fetchall():
        kinds.setdefault(name, set()).add((kind, stability))
    unknown = {"ifnull", "->"}  # which the parser makes something else of
    for name in sql._FUNCTIONS - unknown:
        assert kinds.get(name, set()) <= {("scalar", "CONSISTENT"), ("macro", None)}, name
    assert len(sql._FUNCTIONS & kinds.keys()) > 200
    macros = {name for name in sql._FUNCTIONS if ("macro", None) in kinds.get(name, ())}
    of_15 = {"round_even", "roundbankers"}  # of abs, power, % and round; functions since DuckDB 2
    assert macros <= {"date_add", "days_in_month", "fdiv", "fmod", "if", "nullif", "split_part"} | of_15


def test_duckdb_can_do_nothing_but_compute(tmp_path):
    connection = sql.connect()
    (tmp_path / "a.csv").write_text("a\n1\n")
    table = pa.table({"a": [1]})  # a variable of Python's, which DuckDB would read by its name
    for attempt in (
        f"select * from '{tmp_path}/a.csv'",
        f"select * from read_csv('{tmp_path}/a.csv')",
        f"select * from read_text('{tmp_path}/a.csv')",
        f"copy (select 1) to '{tmp_path}/b.csv'",
        f"attach '{tmp_path}/x.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set threads = 2",
        "reset lock_configuration",
        "select * from table",
        'select * from "table"',
        "select * from glob('*')",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(attempt).fetchall()
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert table.num_rows == 1


# ---- what is computed ------------------------------------------------------------------------------------------------

ACCEPTED = [
    "select a, b from files",
    "select * from files",
    "select a, b from files order by b desc",
    "select lower(a) as a, b from files where b between 1 and 20",
    "select a || '-' || b as a, b from files where a like '%x%' or b is null",
    "select case when b > 10 then a else 'small' end as a, b from files",
    "select coalesce(a, 'none') as a, coalesce(b, 0) % 7 as b from files",
    "select regexp_extract(a, '[a-z]+') as a, b from files where try_cast(b as integer) in (1, 2, 3, 14)",
    "select a, cast(a as integer) as b from files",
    "select a, b from files where cast(a as integer) > 3",
    "with c as (select a as q, b * 2 as w from files where b > 2), d as (select q, w + 1 as w from c) "
    "select q as a, t.w as b from d t where w < 40",
    "select s.a, b from (select upper(a) as a, b from files where a is not null) s where s.a <> 'X'",
    "select a, b from files where b = 1 and cast(a as integer) = 1",
    "select a, date_part('year', make_date(2000 + b, 1, 1)) as b from files",
    "select a, extract(year from make_date(2000 + b, 1, 1)) as b from files where a not like 'x$%' escape '$'",
    "select a, len([b, 1]) as b from files where strptime(a, '%d') is null or a = '7'",
]


@functools.cache
def bound_query(query):
    return sql.select(query).bound(["a", "b"])


def result(table, query):
    bound = bound_query(query)
    arrays = [table.column(name).combine_chunks() for name in bound.reads]
    columns, bad = of_arrays(bound, tuple(arrays))
    return list(zip(*(column.to_pylist() for column in columns), strict=True)), bad


def rows_of(chance, count):
    return [
        (chance.choice(["x", "xy", "1", "3", "7", "", None, "ü", "é x"]), chance.choice([None, *range(25)]))
        for _ in range(count)
    ]


def table_of(rows):
    return pa.table({"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.int64())})


@pytest.mark.parametrize("query", ACCEPTED)
def test_a_row_of_the_result_comes_from_one_row_of_the_input(query):
    """Without a row of the input the result loses at most one row, and no other changes."""
    rows = rows_of(random.Random(3), 24)
    whole, _ = result(table_of(rows), query)
    single = [result(table_of([row]), query)[0] for row in rows]
    assert all(len(own) <= 1 for own in single)
    assert whole == [row for own in single for row in own]
    for place in range(0, len(rows), 5):
        left, _ = result(table_of(rows[:place] + rows[place + 1 :]), query)
        assert left == [row for at, own in enumerate(single) if at != place for row in own]


@pytest.mark.parametrize("query", ACCEPTED)
def test_the_result_is_that_of_duckdb(query):
    """Where DuckDB can compute all rows, as it does it by itself."""
    rows = rows_of(random.Random(5), 30)
    files = table_of([row for row in rows if result(table_of([row]), query)[1] == 0])
    connection = duckdb.connect()
    connection.register("files", files)
    try:
        expected = connection.sql(query.replace(" order by b desc", "")).fetchall()
    except duckdb.ConversionException:  # a condition that would stop DuckDB is not asked where an earlier one fails
        assert " and " in query
        return
    assert result(files, query)[0] == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.integers(-100, 100)), max_size=12), st.text(max_size=6))
def test_any_text_is_a_value_and_never_sql(rows, word):
    rows = [(text.encode("utf-8", "ignore").decode(), number) for text, number in rows]
    word = word.encode("utf-8", "ignore").decode().replace("\0", "")
    quoted = word.replace("'", "''")
    found, bad = result(table_of(rows), f"select a, b from files where a = '{quoted}'")
    assert found == [row for row in rows if row[0] == word]
    assert bad == 0


def test_rows_that_cannot_be_computed_are_bad_one_by_one(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("ip,n\na,1\nb,secret\nc,3\nd,\n")
    query = sql.select("select ip, cast(n as integer) + 1 as m from files")
    stream = open_stream(path, column="m", user_column="ip", nulls="skip", bad_rows="skip", query=query)
    assert [row for batch in stream for row in batch.to_pylist()] == [
        {"item": 2, "user": "a"},
        {"item": 4, "user": "c"},
    ]
    assert stream.bad_rows == 1
    assert stream.first_bad_row.startswith("line 3: ")
    with pytest.raises(dc.DataError, match=r"try_cast.*\(line 3\)") as caught:
        list(open_stream(path, column="m", user_column="ip", nulls="skip", query=query))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    query = sql.where("n > 2 and ip <> 'zz'")
    stream = open_stream(path, column="ip", nulls="skip", bad_rows="skip", query=query)
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == ["c"]
    assert stream.bad_rows == 1
    query = sql.where("n <> 'secret' and cast(n as integer) > 2")  # not asked where the first does not hold
    stream = open_stream(path, column="ip", bad_rows="error", query=query)
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == ["c"]


@pytest.mark.parametrize(
    "condition",
    [
        "a > 5 and a < 10",
        "a::int > 5 and a::int < 10",
        "a::int > 5 or a::int < 3",
        "a::int * 2 > a::int",
        "case when a::int > 3 then a::int < 9 else false end",
        "a::blob = a::blob",
    ],
)
def test_what_an_expression_has_twice_does_not_fail_for_all_rows(condition):
    """An optimizer would compute it once, outside of TRY."""
    bad = "\\" if "blob" in condition else "x"
    asked = sql.where(condition)
    (kept, failed), (alone, _) = (asked.bound([]).keeps([pa.array(rows)]) for rows in (["7", bad, "1"], ["7", "1"]))
    assert failed.tolist() == [False, True, False]
    assert kept[[0, 2]].tolist() == alone.tolist()


def test_spans_and_zones_are_not_those_of_a_row():
    for condition in (
        "time_bucket(a::interval, date '2020-01-01') is null",
        "timezone(a, timestamp '2020-01-01') is null",
    ):
        with pytest.raises(dc.errors.ParameterError, match="must be a constant"):
            sql.where(condition)
    for condition in (
        "time_bucket(interval 1 day, a::date) is null",
        "timezone('Europe/Berlin', a::timestamptz) is null",
    ):
        assert sql.where(condition).bound([]).keeps([pa.array(["2020-01-01", "x"])])[1].tolist() == [False, True]


LEAST = pa.Array.from_buffers(pa.decimal128(38), 1, [None, pa.py_buffer((1 << 127).to_bytes(16, "little"))])
MOMENT = pa.timestamp("us")
# A condition, columns of plain rows, and an odd row that TRY may not hold back.
ESCAPING = {
    "pattern": ("a like b escape '$'", {"a": ["x%", "y"], "b": ["x$%", "$%"]}, {"a": ["x"], "b": ["x$"]}),
    "not ilike": ("not (a ilike b escape '$')", {"a": ["y", "X"], "b": ["z", "x"]}, {"a": ["x"], "b": ["$"]}),
    "escape": ("like_escape(a, 'x%', b)", {"a": ["x", "y"], "b": ["$", ""]}, {"a": ["x"], "b": ["$$"]}),
    "around": (
        "case when a like b escape '$' then true else a = 'z' end",
        {"a": ["x", "y"], "b": ["x", "z"]},
        {"a": ["x"], "b": ["z$"]},
    ),
    "part": ("date_part(a, date '2020-05-06') = 5", {"a": ["month", "day"]}, {"a": ["nonsense"]}),
    "diff": ("date_diff(a, time '01:00', time '02:00') = 1", {"a": ["hour", "minute"]}, {"a": ["year"]}),
    "sub": ("date_sub(a, time '01:00', time '02:00') = 1", {"a": ["hour", "minute"]}, {"a": ["century"]}),
    "trunc": ("date_trunc(a, date '2020-05-06') = date '2020-05-01'", {"a": ["month", "day"]}, {"a": ["timezone"]}),
    "zone": (
        "strptime(a, '%Y-%m-%d %H:%M:%S %Z') = timestamptz '2020-01-02 03:04:05+00'",
        {"a": ["2020-01-02 03:04:05 UTC", "2020-01-02 03:04:05 Europe/Berlin"]},
        {"a": ["2020-01-02 03:04:05 Nowhere/Land"]},
    ),
    "decimal": ("cast(a as varchar) = '5'", {"a": pa.array([5, 7], pa.decimal128(38))}, {"a": LEAST}),
    "moment": (
        "cast(a as varchar) < '2000'",
        {"a": pa.array([0, 10**15], MOMENT)},
        {"a": pa.array([-(2**63)], pa.int64()).view(MOMENT)},
    ),
}


@pytest.mark.parametrize("kind", ESCAPING)
def test_an_error_that_try_does_not_hold_back_is_of_its_row_alone(kind):
    condition, plain, odd = ESCAPING[kind]
    query, other = sql.where(condition).bound([]), sql.where("c = 1").bound([])
    plain, odd = ([pa.array(of[str(name)]) for name in query.reads] for of in (plain, odd))
    alone, failed = query.keeps(plain)
    assert alone.tolist() == [True, False]
    assert not failed.any()
    many = [pa.concat_arrays([*[column] * 40, row, *[column] * 40]) for column, row in zip(plain, odd, strict=True)]
    kept, failed = query.keeps(many)
    assert np.flatnonzero(failed).tolist() in ([80], [])  # a later DuckDB may know it
    assert np.delete(kept, 80).tolist() == [*alone] * 80
    assert other.keeps([pa.array([1, 2])])[0].tolist() == [True, False]  # one that was made before
    assert sql.where("c = 1").bound([]).keeps([pa.array([1])])[0].tolist() == [True]


def test_wrong_queries_are_refused_without_rows():
    """What no row decides: it is the same for none and for any."""
    spans = pa.array([(0, 1, 0)], pa.month_day_nano_interval())
    for condition, column in (
        ("isodow(a) = 1", spans),  # not implemented, which DuckDB says when there is a row
        ("a like 'x$' escape '$'", pa.array(["x"])),
        ("a like 'x' escape '$$'", pa.array(["x"])),
        ("date_part('nonsense', a) = 1", pa.array([0], MOMENT)),
        ("regexp_matches(a, '(')", pa.array(["x"])),
    ):
        for rows in (column[:0], column, pa.concat_arrays([column] * 9)):
            with pytest.raises(dc.ParameterError, match="cannot be computed"):
                sql.where(condition).bound([]).keeps([rows])


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pa.uuid(),
            pa.null(),
            pa.bool_(),
            pa.float16(),
            pa.decimal256(40, 2),
            pa.month_day_nano_interval(),
            pa.list_(pa.int8()),
        ),
        *(
            pa.struct([("a", pa.string())]),
            pa.map_(pa.string(), pa.int8()),
            pa.dictionary(pa.int8(), pa.int64()),
            pa.time32("s"),
        ),
        *(
            pa.timestamp("ns", "UTC"),
            pa.duration("s"),
            pa.date64(),
            pa.binary(3),
            pa.string_view(),
            pa.large_list(pa.string()),
        ),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_columns_of_any_type(kind):
    """What a query is tried with fits; a type that DuckDB does not know is a wrong query."""
    query = sql.where("a is null").bound([])
    try:
        assert query.keeps([pa.nulls(3, kind)])[0].tolist() == [True] * 3
    except dc.ParameterError:
        assert kind in (pa.uuid(), pa.decimal256(40, 2), pa.float16())


@pytest.mark.parametrize(
    ("condition", "longest"),
    [
        ("a <> b", 1 << 20),
        ("a like '%a%a%a_b'", 1 << 20),
        ("regexp_matches(a, 'a*b')", 1 << 20),
        ("a like b", 1 << 14),
        ("regexp_matches(a, b)", 1 << 14),
        ("levenshtein(a, b) > 3", 1 << 14),
        ("nfc_normalize(a) <> b", 1 << 14),
        ("parse_path(a) is not null", 1 << 14),
        ("cast(a as timestamptz) is null", 1 << 14),
        ("try_cast(a as timestamp with time zone) is null", 1 << 14),
        ("(a::TimestampTZ) is null", 1 << 14),
        ("lower(b) = 'x' or strptime(a, '%Z') is null", 1 << 14),
    ],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_cell_that_is_too_long_makes_its_row_bad(condition, longest, kind):
    query = sql.where(condition).bound([])
    texts = {"a": ["x", "a" * longest, "a" * (longest + 1), "y", None], "b": ["x", "b", "c", "y", "z"]}
    arrays = [pa.array(texts[str(name)], kind) for name in query.reads]
    kept, failed = query.keeps(arrays)
    assert failed[2]
    assert not kept[2]
    few = [array.take(pa.array([0, 1, 3, 4])) for array in arrays]
    assert [each.tolist() for each in query.keeps(few)] == [np.delete(each, 2).tolist() for each in (kept, failed)]


def test_of_a_row_with_a_cell_that_is_too_long_nothing_is_computed():
    """And those around it are what they are."""
    bound = sql.select("select upper(a) as r, b from files").bound(["r", "b"])
    long = "x" * ((1 << 20) + 1)
    for texts in (["a", long, "b"], [long, "a"], ["a", long], [long], [long, long, None, "a"]):
        columns = {"a": pa.array(texts), "b": pa.array(range(len(texts)))}
        (made,), failed = bound.computes([columns[name] for name in bound.reads])
        assert failed.tolist() == [text == long for text in texts]
        expected = [None if text in (None, long) else text.upper() for text in texts]
        assert [value for value, bad in zip(made.to_pylist(), failed, strict=True) if not bad] == [
            value for value, text in zip(expected, texts, strict=True) if text != long
        ]


@pytest.mark.parametrize("operator", ["like", "not like", "ilike", "not ilike"])
def test_like_is_that_of_duckdb(operator):
    chance = random.Random(7)
    texts = ["".join(chance.choices("aAb%_.é(\\\n'[", k=chance.randrange(6))) for _ in range(400)]
    patterns = ["".join(chance.choices("aAb%%_.é(\\\n'[", k=chance.randrange(5))) for _ in range(400)]
    rows = pa.table({"a": [*texts, None, "a"], "b": [*patterns, "a", None]})
    connection = duckdb.connect()
    connection.register("rows", rows)
    expected = connection.sql(f"select a {operator} b as r from rows").to_arrow_table().column("r").to_pylist()
    query = sql.where(f"a {operator} b").bound([])
    kept, failed = query.keeps([rows.column(str(name)).combine_chunks() for name in query.reads])
    assert kept.tolist() == [bool(each) for each in expected]
    assert not failed.any()
    for pattern in patterns[:20]:  # written in the query
        quoted = pattern.replace("'", "''")
        expected = connection.sql(f"select a {operator} '{quoted}' as r from rows").to_arrow_table().column("r")
        kept, _ = sql.where(f"a {operator} '{quoted}'").bound([]).keeps([rows.column("a").combine_chunks()])
        assert kept.tolist() == [bool(each) for each in expected.to_pylist()]


def test_escaped_patterns_are_those_of_duckdb():
    rows = ["a%b", "axb", "a_b", "a$b", "A%B", "x"]
    for pattern in ("a$%b", "a$_b", "a$$b", "%$%%", "$a%", "x$x"):
        for operator in ("like", "ilike"):
            condition = f"a {operator} '{pattern}' escape '$'"
            connection = duckdb.connect()
            connection.register("rows", pa.table({"a": rows}))
            expected = [row for (row,) in connection.sql(f"select {condition} from rows").fetchall()]
            query = sql.where(condition).bound([])
            assert query.keeps([pa.array(rows)])[0].tolist() == expected


def test_errors_for_the_types_of_columns_quote_no_row(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("ip,n\nsecret,secret\n")
    for condition, words in (
        ("lower(ip, n)", "No function matches.*'ip'|No function matches"),
        ("nope = 1", "no column 'nope'"),
        ("regexp_matches(ip, '(')", "cannot be computed"),
        ("rowid = 1", "no column 'rowid'"),
        ("current_date > '2020-01-01'", "no column 'current_date'"),
        ("n + 1 = 2", "are text: cast"),
        ("IP = 'x'", "no column 'IP'"),
    ):
        with pytest.raises((dc.ParameterError, dc.DataError), match=words) as caught:
            list(open_stream(path, column="ip", query=sql.where(condition), bad_rows="skip"))
        assert "secret" not in str(caught.value)


FORMATS = ["csv", "jsonl", "parquet", "log"]


def write(path, format, rows):
    if format == "csv":
        path.write_text("url,status,ip\n" + "".join(f"{url},{status},{ip}\n" for url, status, ip in rows))
    elif format == "jsonl":
        made = [{"url": url, "status": status, "ip": {"v4": ip}} for url, status, ip in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in made))
    elif format == "parquet":
        url, status, ip = map(list, zip(*rows, strict=True))
        pq.write_table(pa.table({"url": url, "status": status, "ip": ip}), path)
    else:
        path.write_text(
            "".join(
                f'{ip} - - [10/Oct/2000:13:55:36 -0700] "GET {url} HTTP/1.1" {status} -\n' for url, status, ip in rows
            )
        )


@pytest.mark.parametrize("format", FORMATS)
def test_all_formats(tmp_path, format):
    rows = [(f"/p{n % 7}", 404 if n % 3 else 200, f"10.0.0.{n}") for n in range(300)]
    path = tmp_path / f"rows.{format}"
    write(path, format, rows)
    url, ip, how = (
        ("path", "ip", "common") if format == "log" else ("url", "ip.v4" if format == "jsonl" else "ip", None)
    )
    expected = [{"item": row[0], "user": row[2]} for row in rows if row[1] == 404]
    stream = open_stream(path, column=url, user_column=ip, format=how, query=sql.where("status = 404"))
    assert [row for batch in stream for row in batch.to_pylist()] == expected
    query = sql.select(f"select upper({url}) as page, {ip} as who, {url} from files where status <> 200")
    stream = open_stream(path, column="page", user_column="who", format=how, query=query)
    found = [row for batch in stream for row in batch.to_pylist()]
    assert found == [{"item": row["item"].upper(), "user": row["user"]} for row in expected]
    with pytest.raises(dc.DataError, match="no column 'other'"):
        list(open_stream(path, column="other", user_column="who", format=how, query=query))


def test_text_of_parquet_that_is_not_utf_8_is_bad(tmp_path):
    path = tmp_path / "rows.parquet"
    raw = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    pq.write_table(pa.table({"a": raw, "b": [1, 2, 3]}), path)
    for query in (sql.where("b > 0"), sql.select("select a, b from files where a <> 'x'")):
        stream = open_stream(path, column="b", bad_rows="skip", query=query)
        found = [row["item"] for batch in stream for row in batch.to_pylist()]
        assert found == ([1, 2, 3] if stream.bad_rows == 0 else [1, 3])
    assert stream.bad_rows == 1


def test_rows_of_kinds_of_their_own_keep_them(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"a": 7, "b": true}\n{"a": "7", "b": true}\n{"a": 8, "b": false}\n{"a": 1.5, "b": true}\n'
        '{"a": "x", "b": [1]}\n'
    )
    stream = open_stream(path, column="a", bad_rows="skip", query=sql.where("b"))
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == [7, "7"]
    assert stream.bad_rows == 1
    stream = open_stream(path, column="a", bad_rows="skip", query=sql.where("a = 7"))
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == [7, "7"]
    stream = open_stream(path, column="a", lists=False, bad_rows="skip", query=sql.where("b is null"))
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == ["x"]


def test_values_and_numbered_columns(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("a;5\nb;7\nc;x\n")
    query = sql.where('"2" > 5')
    stream = open_stream(path, column="1", dialect=Dialect(";", header=False), query=query, bad_rows="skip")
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == ["b"]
    query = sql.select('select "1" as who, try_cast("2" as integer) * 2 as twice from files')
    stream = open_stream(
        path, column="who", value_column="twice", dialect=Dialect(";", header=False), query=query, nulls="skip"
    )
    assert [row for batch in stream for row in batch.to_pylist()] == [
        {"item": "a", "value": 10}, {"item": "b", "value": 14}
    ]  # fmt: skip


def test_the_only_column_beside_the_others(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\nx,1\ny,2\n")
    stream = open_stream(path, query=sql.where("b = 1"))
    assert [row["item"] for batch in stream for row in batch.to_pylist()] == ["x"]
    stream = open_stream(path, user_column="a", query=sql.select("select a, cast(b as int) + 1 as c from files"))
    assert [row for batch in stream for row in batch.to_pylist()] == [
        {"item": 2, "user": "x"},
        {"item": 3, "user": "y"},
    ]
    with pytest.raises(dc.DataError, match="'a', 'b'"):
        list(open_stream(path, query=sql.select("select a, b from files")))


def test_inputs_that_grow(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("url,status,when\n/a,404,1000\n/b,200,1001\n/c,x,1002\n/d,404,1003\n")
    rows = LiveInput(str(path), None, "url", "when", needs_items=True, query=sql.where("status = 404"))
    rows.open(0)
    batches = [*rows.available(), *rows.rest()]
    rows.close()
    assert [item for batch in batches for item in batch.values.column("item").to_pylist()] == ["/a", "/d"]
    assert [time for batch in batches for time in batch.times.tolist()] == [1000.0, 1003.0]
    assert sum(rows.bad.values()) == 1


# ---- tables of Python ------------------------------------------------------------------------------------------------

DATA = {"url": [f"/p{n % 3}" for n in range(60)], "status": [404 if n % 2 else 200 for n in range(60)]}
TABLES = {
    "dict": DATA,
    "numpy": {"url": np.array(DATA["url"]), "status": np.array(DATA["status"])},
    "arrow": pa.table(DATA),
    "reader": None,
    "pandas": pd.DataFrame(DATA),
    "objects": pd.DataFrame(
        {"url": DATA["url"], "status": [str(s) if n % 3 else s for n, s in enumerate(DATA["status"])]}
    ),
    "polars": pl.DataFrame(DATA),
    "lazy": pl.DataFrame(DATA).lazy(),
    "duckdb": None,
}


CATEGORIES = {
    "texts": (["x", "y", "x"], 7, "a = 'x'", 2),
    "numbers": ([3, 4, 3], 1.5, "a = 3", 2),
    "numbers as text": ([3, 4, 3], 1.5, "cast(a as varchar) = '3'", 2),
    "numbers and a text": ([3, 4, 3], "x", "a < 4", 2),
    "numbers and a list": ([3, 4, 3], (1, 2), "a < 4", 2),
    "days": ([pd.Timestamp("2020-01-02"), pd.Timestamp("2021-01-01")], 7, "cast(a as date) = date '2020-01-02'", 1),
    "truths": ([True, False, True], "x", "a = 'true'", 2),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_one_value_of_a_category_decides_nothing_for_the_others(name):
    values, odd, condition, expected = CATEGORIES[name]
    budget = dc.Budget(1000.0)
    column = pd.Series(values).astype("category")
    assert dc.count(pd.DataFrame({"a": column}), budget, where=condition).value == expected
    for more in (odd, None):
        mixed = pd.Series([*values, more], dtype=object).astype("category")
        assert dc.count(pd.DataFrame({"a": mixed}), budget, where=condition).value == expected
    typed = row_query.column_of_objects(pd.DataFrame({"a": column}), "a")
    assert row_query.column_of_objects(pd.DataFrame({"a": mixed}), "a").type == typed.type == pa.string()


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind):
    def made():
        if kind == "reader":
            return pa.table(DATA).to_reader(7)
        return duckdb.from_arrow(pa.table(DATA)) if kind == "duckdb" else TABLES[kind]

    budget = dc.Budget(1000.0, 0.5)
    assert dc.count(made(), budget, where="status = 404").value == 30
    found = dc.top_k(made(), 10, budget, column="url", where="status = 404 and url <> '/p1'")
    assert dict(zip(found.items, found.counts, strict=True)) == {"/p0": 10, "/p2": 10}
    assert dc.distinct(made(), budget, column="url", where="url <> '/p1'").value == 2
    listed = dc.histogram(made(), budget, column="url", universe=["/p0", "/p1"], where="status = 200")
    assert dict(zip(listed.items, listed.counts, strict=True)) == {"/p0": 10, "/p1": 10}
    with pytest.raises(dc.ParameterError, match="OVER"):
        dc.count(made(), budget, where="row_number() over () = 1")
    with pytest.raises(dc.DataError, match="no column 'nope'"):
        dc.count(made(), budget, where="nope = 1")


WRONG = {
    "a column that is not inside": ("select c from (select a, b from files) t", "no column 'c'; its columns are 'a'"),
    "a column of WITH that is not there": (
        "with t as (select a as x from files) select a from t", "inside has no column 'a'; its columns are 'x'",
    ),
    "a name twice": ("select a as x, b as x from files", "two columns 'x'; give one another name with AS"),
    "no column at all": ("select 1 as x from files", "reads no column of its input"),
    "two statements": ("select a from files; select b from files", "must be one SELECT|one SELECT"),
    "no SELECT": ("insert into files values (1)", "must be a SELECT, and nothing else|cannot be read"),
    "nothing": ("   ", "must be text in SQL, not str|must be text in SQL"),
    "a surrogate": ("select '\ud800' as a from files", "it is not UTF-8"),
    "names after a table": ("select x from files as t(x)", "name them in the query: SELECT a AS b"),
    "a schema": ("select a from main.files", "a schema or a catalog before a table is not accepted"),
    "a number of a column": ("select #1 from files", "a column by its number .#1. is not accepted"),
    "a parameter": ("select a from files where a = ?", "a parameter .* is not accepted"),
    "a star in an expression": ("select count(*) from files", "not accepted: it makes one row of many"),
    "an aggregate with FILTER": ("select max(a) filter (where b > 0) as m from files", "one row of many"),
    "a constant that a row chooses": ("select replace(a, 'x', b) as r from files", "third argument of replace"),
    "a zone that a row chooses": ("select timezone(b, a) as r from files", "first argument of timezone"),
    "a path that leads everywhere": ("select json_extract(a, '$..x') as r from files", "path without .. and"),
    "any path": ("select json_extract(a, '$.**') as r from files", "path without .. and"),
    "a path that is put together": ("select json_extract(a, '$.' || 'x') as r from files", "path without .. and"),
    "a lambda": ("select list_filter([a], x -> true) as r from files", "not accepted"),
    "a type that takes a square": ("select cast(a as bignum) as r from files", "a cast to .* is not accepted"),
    "a type inside of another": ("select cast(a as bignum[]) as r from files", "a cast to .* is not accepted"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_query_that_cannot_be_meant_is_refused_before_any_row(what):
    query, words = WRONG[what]
    with pytest.raises(dc.ParameterError, match=words):
        sql.select(query).bound([None, "a"][:1] if "column" not in what else ["x"])


def test_a_query_says_which_columns_it_has():
    assert sql.select("select a as x, lower(b) as y from files").names == ["x", "y"]
    assert sql.select("select * from files").names is None
    assert sql.select("select *, a as x from files").bound(["x", "b"]).reads == ["a", "b"]
    assert sql.select("select a from 'log.csv'").source == "log.csv"
    assert sql.select("select a from FILES").source is None
    query = sql.select("select a as x, b as y from files")
    with pytest.raises(dc.DataError, match="the query has no column 'z'; its columns are 'x', 'y'"):
        query.bound(["z"])
    with pytest.raises(dc.DataError, match="name the column to count; the columns of the query are 'x', 'y'"):
        query.bound([None])
    assert query.bound([None, "y"]).reads == ["a", "b"]


def test_conditions_inside_of_a_query_hold_outside():
    """Of each query on the way to the file; and what a column is called there."""
    table = pa.table({"a": ["x", "y", "z", "x"], "b": [1, 2, 3, 4]})
    for query, kept in (
        ("select a from (select a, b from files where b > 1) where a <> 'z'", ["y", "x"]),
        ("select a from (select a from (select a, b from files where b < 4) where b > 1)", ["y", "z"]),
        ("with t as (select b as a, a as b from files where b > 2) select b as a from t where a < 4", ["z"]),
        ("with t as (select * from files where b > 1), u as (select * from t where b < 4) select a from u", ["y", "z"]),
    ):
        bound = sql.select(query).bound(["a"])
        columns, bad = of_arrays(bound, tuple(table.column(str(name)).combine_chunks() for name in bound.reads))
        assert (columns[0].to_pylist(), bad) == (kept, 0)
