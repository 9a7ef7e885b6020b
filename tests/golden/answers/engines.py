"""Cases of `discreet.engines`: conditions and queries, and what is refused of them; people and sums of hostile rows."""

import numpy as np
import pyarrow as pa
from tests.golden.answers.pin import told, tried
from tests.golden.answers.questions import TABLE
from tests.rows import people_of_table
from tests.unit.engines.test_conditions import COLUMNS, MIXED, NOT_PLANNED, PLANNED
from tests.unit.engines.test_plain_where import LEFT, READ
from tests.unit.engines.test_sql import ACCEPTED, REFUSED

from discreet.central.quantile_grid import Grid
from discreet.engines import plain_where, sql
from discreet.engines.amounts import counts_of_rows
from discreet.engines.closed_duckdb import ask
from discreet.engines.conditions import literal
from discreet.engines.different import different_items
from discreet.engines.group_sums import group_sums
from discreet.engines.numbers import plain_numbers
from discreet.engines.person_sums import people_in_groups
from discreet.events.row_query import of_arrays
from discreet.events.tables import events_of
from discreet.summaries.memory import Memory
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import ValueRange

HARD = (
    "lower(t) = 'abc'",
    "length(t) > 1",
    "i + 1 > 5",
    "i / 0 > 1",
    "cast(t as integer) = 404",
    "try_cast(t as integer) = 404",
    "t similar to 'a.*'",
    "regexp_matches(t, '^a')",
    "t ~ 'a'",
    "t like 'a\\_c' escape '\\'",
    "t like l",
    "t ilike 'A%'",
    "starts_with(t, 'a')",
    "contains(t, 'b')",
    "t || 'x' = 'ax'",
    "case when i > 3 then true else false end",
    "coalesce(i, 0) = 0",
    "nullif(i, 0) is null",
    "i is distinct from 404",
    "t in ('a', null)",
    "not t in ('a')",
    "i between 5 and 1",
    "i = '404'",
    "t = 404",
    "f = 'nan'",
    "isnan(f)",
    "abs(i) > 5",
    "round(f) = 2",
    "date_part('year', date '2025-01-01') = i",
    "current_date > date '2020-01-01'",
    "random() < 2",
    "i = 1 or error('x')",
    "list_contains([1, 2], i)",
    "i in (select 1)",
    "sum(i) > 1",
    "row_number() over () = 1",
    "i",
    "t",
    "null",
    "true",
    "1 = 1",
    "count(*) > 1",
    "t = 'it''s'",
    "\"t\" = 'a'",
    "T = 'a'",
    "x.t = 'a'",
    "t = ?",
    "t = $1",
    "t collate nocase = 'a'",
    "columns('i') > 1",
    "* > 1",
    "i > 1;",
    "i > 1 -- no",
    "greatest(i, 5) = 5",
    "i::bigint = 404",
    "i % 2 = 0",
    "i & 1 = 1",
    "-i = 1",
    "json_extract(t, '$.a') = '1'",
    "replace(t, 'a', 'b') = 'b'",
    "replace(t, l, 'b') = 'b'",
    "time_bucket(interval 1 day, timestamp '2025-01-01') is null",
    "strptime(t, '%Y') is null",
    "substring(t, 1, 1) = 'a'",
    "t[1] = 'a'",
    "struct_pack(a := 1).a = i",
    "printf('%d', i) = '404'",
    "repeat(t, 9) = ''",
    "md5(t) = ''",
    "hash(t) = 1",
    "getenv('HOME') = t",
    "levenshtein(t, 'a') < 2",
    "damerau_levenshtein(t, 'a') < 2",
    "t glob 'a*'",
    "exists (select 1)",
    "i = any([1, 404])",
    "unnest([i]) = 1",
    "try(i / 0) is null",
)
QUERIES = (
    *ACCEPTED,
    *REFUSED,
    "select a as b, b as a from files",
    "select a, a from files",
    "select A, B from files",
    "select 5 as a, b from files",
    "select a from files where b > 1",
    "with x as (select a, b from files) select * from x",
    "select f.a, f.b from files f",
    "select a from other",
    "select a, b from files order by c",
    "select * from (select * from (select * from files))",
    "select a b from 'x.parquet'",
    "select a from 's3://b/*.csv'",
)


def columns_of_rows(kept):
    return [mask.tolist() for mask in kept]


def condition(text):
    """The rows that a condition keeps and those that are bad of it, planned, by DuckDB, and read without it."""
    query = sql.where(text).bound(list(COLUMNS))
    found = [query.reads, columns_of_rows(query.keeps([COLUMNS.get(name, COLUMNS["w"]) for name in query.reads]))]
    plain = plain_where.where(text)
    found += [type(plain).__name__, plain.text]
    made = plain.bound(list(COLUMNS))
    return [*found, columns_of_rows(made.keeps([COLUMNS.get(name, COLUMNS["w"]) for name in made.reads])) == found[1]]


def conditions(texts):
    return lambda: [[text, without_words(told(tried(condition, text)))] for text in texts]


def without_words(found):
    """Without what DuckDB says in words of its own."""
    if isinstance(found, str) and "DuckDB" not in found:
        for mark in ("cannot be read: ", "Binder Error", "Conversion Error"):
            found = found.partition(mark)[0] + (mark if mark in found else "")
    return found


SMALL = {"a": pa.array(["x", "xy", "1", None, "é x", "7"]), "b": pa.array([1, None, 3, 14, 30, 7])}


def query(text, database=False):
    def answered():
        made = sql.select(text, database)
        bound = made.bound(["a", "b"])
        columns, bad = of_arrays(bound, tuple(SMALL.get(name, SMALL["b"]) for name in bound.reads))
        return [made.text, made.source, bound.reads, [told(column.to_pylist()) for column in columns], bad]

    return without_words(told(tried(answered)))


def whole_queries(folder):
    (folder / "a.csv").write_text("k,v\na,1\nb,2\na,3\n")
    found = []
    for text in (
        "select k, sum(v) as s from 'a.csv' group by k order by k",
        "select * from 'a.csv'",
        "select 1; select 2",
        "copy (select 1) to 'x'",
        "select * from 'none.csv'",
        "select * from read_text('a.csv')",
        "",
        "select k from 'a.csv' limit 1",
        "select 'a' as k",
        "attach 'x'",
    ):
        made = tried(sql.WholeQuery, text.replace("a.csv", str(folder / "a.csv")))
        found.append(
            [
                text,
                made
                if isinstance(made, Exception)
                else [
                    made.text.replace(str(folder), ""),
                    sorted(name for name in dir(made) if not name.startswith("_")),
                ],
            ]
        )
    return [[text, without_words(told(made))] for text, made in found]


def people(**words):
    """People of a table by all that is asked of them, as DuckDB and as memory have them."""

    def ask_people():
        values, within = words.get("values"), words.get("value_range")
        room = Memory.room
        Memory.room = property(lambda memory: words.get("room", 2**40))
        try:
            return of_people(values, within)
        finally:
            Memory.room = room

    def of_people(values, within):
        made = people_of_table(
            TABLE,
            words.get("column", "page"),
            words.get("user", "who"),
            values=values,
            nulls="skip",
            **{k: v for k, v in words.items() if k in ("rows", "value_range")},
        )
        weights = made.discovery_weights(3)
        places = np.arange(len(weights))
        names = [str(item) for item in made.items(places).to_pylist()]
        order = np.argsort(np.array(names, dtype=object), kind="stable")
        sums = made.scaled_sums(places[order], np.ones(len(places), np.int64), 2.0)
        return [
            type(made).__name__,
            [names[place] for place in order],
            weights[order],
            made.discovery_weights(99)[order],
            sums,
            made.lengths(places[order], 1 + np.arange(len(places)) % 3),
            made.lengths(places[order][:2], np.array([2, 1])),
            repr(made),
            str(within),
        ]

    return ask_people


def sums():
    """Counts of rows by what groups them, with and without a condition."""
    found = []
    for words in ({}, {"where": plain_where.where("ms > 5")}, {"where": plain_where.where("page = '/p1'")}):
        for columns in ("country", "status", ("country", "status"), "page"):
            rows = events_of(TABLE).rows(columns, nulls="skip", **words)
            made = group_sums(rows, ValueMoment("count"))
            found.append([made.sums, made.keys, rows.bad_rows])
    return found


def numbers():
    given = (
        pa.array([1, 2, None]),
        pa.array([1.5, float("nan")]),
        pa.array([True]),
        pa.array(["a"]),
        pa.array([2**63], pa.uint64()),
        pa.array([], pa.int8()),
    )
    rows = [
        tried(lambda n=name: counts_of_rows(events_of(TABLE).rows(n, numbers=True, nulls="skip"), Grid(0.0, 50.0, 8)))
        for name in ("size", "ms", "price", "status", "yes", "page", "day")
    ]
    return [[told(tried(plain_numbers, each)) for each in given], told(rows)]


def different():
    """Different values of columns of every kind."""
    found = {
        name: tried(lambda n=name: different_items(events_of(TABLE).rows(n, nulls="skip")))
        for name in TABLE.column_names
    }
    found["two"] = tried(lambda: different_items(events_of(TABLE).rows(("page", "country"), nulls="skip")))
    found["where"] = tried(
        lambda: different_items(events_of(TABLE).rows("page", nulls="skip", where=plain_where.where("ms > 5")))
    )
    return found


def in_groups():
    made = people_in_groups(np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 1, 0, 0, 2]), 3)
    return [
        made.discovery_weights(2),
        made.scaled_sums(np.arange(3), np.ones(3, np.int64), 1.0),
        made.lengths(np.arange(3), np.ones(3, np.int64)),
    ]


CASES = {
    "planned conditions": conditions(PLANNED),
    "other conditions": conditions(NOT_PLANNED),
    "mixed conditions": conditions(MIXED),
    "hard conditions": conditions(HARD),
    "conditions that are read": conditions(READ),
    "conditions that are left": conditions(LEFT),
    "trees": lambda: [
        [text, told(plain_where.tree_of(text))]
        for text in (
            *READ,
            *LEFT,
            "a = 1 and",
            "",
            "((a = 1)",
            "a = 1 b",
            "a in ()",
            "a in (1,)",
            "a between 1",
            "a is",
            "not",
            "a = 'x",
            "1 = 1",
        )
    ],
    "literals": lambda: [[told(tried(literal, node))] for node in ({}, {"class": "CONSTANT"}, {"class": "COLUMN_REF"})],
    "queries": lambda: [[text, query(text)] for text in QUERIES],
    "queries of databases": lambda: [[text, query(text, True)] for text in QUERIES[-12:]],
    "whole queries": whole_queries,
    "asked": lambda: [told(ask("select 1, 'a'")), told(ask("select ? + 1", [4]))],
    "people": people(),
    "people in little memory": people(room=1),
    "people by rows in little memory": people(room=1, rows=True),
    "people by rows": people(rows=True),
    "people by values": people(values="ms", value_range=ValueRange(0, 50)),
    "people of numbers": people(column="status"),
    "people of two columns": people(column=("page", "status")),
    "people of lists": people(column="bag", user=None),
    "people by numbers": people(user="ms"),
    "people by values in little memory": people(values="ms", value_range=ValueRange(0, 50), room=1),
    "sums": sums,
    "numbers": numbers,
    "different": different,
    "in groups": in_groups,
}
