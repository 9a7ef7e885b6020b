"""Queries of rows, in SQL: `where` and `select`, read by DuckDB's own parser and computed by DuckDB, a block at a time.

A release hides one row of the input, or one person's. So a row of the result must come from one row of the input. What
is accepted is a list of kinds of nodes of the parsed query (`_EXPRESSIONS`) and of functions (`_FUNCTIONS`); whatever
is not on it is refused, what nobody has thought of, too. Subqueries in FROM and WITH are put into the query that reads
them, so what is computed is a list of conditions and a list of expressions over the columns of one input.

DuckDB never sees a file. It gets blocks of columns from the readers of `discreet.events`, under names of our own, and
nothing else: no file system, no extensions, no other tables (`closed_duckdb`). A row for which an expression cannot be
computed is bad, like one that cannot be read. Most errors of a row are held back by `TRY`, around every expression; a
block that fails in spite of it is halved until the row is found (`Blocks`). No error of DuckDB, which would quote the
row, is ever raised for one. Whether the query itself is wrong is decided without rows: on none, and on public probes.

One row must not take all time or memory, either. What grows with the square of a text takes short ones only
(`_short_columns`), patterns of LIKE become regular expressions, which are matched in linear time (`_rewritten`), and
what cannot be bounded is not on the list.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import _duckdb as duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet._data_class import dataclass, field
from discreet.engines.closed_duckdb import Blocks, ask, connect, new_database
from discreet.engines.conditions import LONGEST, Plan, literal, longer, plan_of, true_rows
from discreet.errors import DataError, DiscreetError, ParameterError, WordError, did_you_mean
from discreet.events.files import FileRows, Files
from discreet.events.inputs import expand
from discreet.events.items import choose, kind_of, without_views

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from discreet._native import CellCondition

__all__ = ["ASSUMED", "FILES", "Query", "RowQuery", "WholeQuery", "connect", "select", "where"]

FILES = "files"
"""The name of the files that are given beside a query."""

_ROWS_AT_ONCE = 1 << 17
Node = dict[str, Any]
Mask = npt.NDArray[np.bool_]


# ---- what is accepted ------------------------------------------------------------------------------------------------

_COMMON = {"class", "type", "alias", "query_location", "query_location_length"}
# The parts of an expression, by its class. What else one has must be empty: it may be the FILTER of an aggregate.
_EXPRESSIONS = {
    "COLUMN_REF": {"column_names"},
    "CONSTANT": {"literal", "value"},
    "COMPARISON": {"left", "right"},
    "CONJUNCTION": {"children"},
    "OPERATOR": {"children"},
    "BETWEEN": {"input", "lower", "upper"},
    "CASE": {"case_checks", "else_expr"},
    "CAST": {"child", "cast_type", "type_expr", "try_cast"},
    "FUNCTION": {"function_name", "qualified_name", "is_operator", "children", "arguments", "order_bys"},
    "TYPE": {"type_name", "qualified_name", "children"},
}
_OPERATORS = {
    *("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE"),
    *("OPERATOR_TRY", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT", "ARRAY_CONSTRUCTOR", "OPERATOR_NULLIF"),
}
# Each is a function of its arguments alone. Not here: what makes a value as large as an argument says (repeat, printf).
_NAMES = """
    + - * / // % ^ ** & | << >> ~ ! @ || ~~ !~~ ~~* !~~* ^@ xor -> ->>
    abs acos acosh add asin asinh atan atan2 atanh cbrt ceil ceiling cos cosh cot degrees divide even exp factorial fdiv
    floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least least_common_multiple lgamma ln
    log log10 log2 mod multiply nextafter pi pow power radians round round_even roundbankers sign signbit sin sinh sqrt
    subtract tan tanh trunc bit_count
    ascii bin bit_length base64 char_length character_length chr concat concat_ws contains editdist3
    encode decode ends_with format_bytes from_base64 from_binary from_hex hamming hash hex ilike_escape
    instr jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme len length length_grapheme
    levenshtein like_escape lower ltrim md5 md5_number mismatches nfc_normalize not_ilike_escape not_like_escape
    octet_length ord parse_dirname parse_dirpath parse_filename parse_path position prefix regexp_escape
    regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array replace
    reverse right right_grapheme rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split
    string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base64
    to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode
    century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth
    dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day
    make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns microsecond millennium millisecond minute
    month monthname nanosecond quarter second strftime strptime time_bucket timezone timezone_hour timezone_minute
    to_days to_decades to_hours to_microseconds to_milliseconds to_minutes to_months to_seconds to_timestamp to_weeks
    to_years try_strptime week weekday weekofyear year yearweek
    array_contains array_extract array_has array_length array_position array_slice array_value cardinality element_at
    list_contains list_distinct list_element list_extract list_has list_has_all list_has_any list_indexof list_pack
    list_position list_slice list_sort list_unique list_value map_contains map_extract map_extract_value map_keys
    map_values row struct_extract struct_pack if ifnull nullif constant_or_null
    json_array_length json_exists json_extract json_extract_path json_extract_path_text
    json_extract_string json_keys json_type json_valid json_value
"""
_FUNCTIONS = frozenset(_NAMES.split())
_TAKEN_OFF = {
    "damerau_levenshtein": "two long texts of one row take all memory (levenshtein is accepted)",
    "json_contains": "deeply nested JSON of one row ends the process",
    "~~~": "it can run forever on one row (LIKE and regexp_matches are accepted)",
}
_JSON_PATHS = {
    *("->>", "json_array_length", "json_exists", "json_extract", "json_extract_path", "json_extract_path_text"),
    *("json_extract_string", "json_keys", "json_type", "json_value"),
}
# Arguments by their places that no row may choose: an invalid span or zone is an error, what replaces something
# makes a text as long as the product of two, and a path of JSON can lead everywhere.
_WRITTEN = {"time_bucket": 0, "timezone": 0, "replace": 2, "regexp_replace": 2} | dict.fromkeys(_JSON_PATHS, 1)
# The types of casts. Not here: BIGNUM, which takes the square of its digits, and VARIANT, which ends the process.
_TYPES = {
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "CHAR", "BLOB", "BIT", "UUID", "ENUM", "LIST", "ARRAY"),
    *("STRUCT", "MAP", "DATE", "TIME", "TIME_NS", "TIME WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
    *("TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "INTERVAL"),
}
_WHY = {
    "aggregate": "it makes one row of many",
    "window": "what it says of a row depends on others",
    "table": "it makes rows that are not in the input",
    "table_macro": "it makes rows that are not in the input",
    "random": "it says another thing each time it is asked",
}
_ALONE = "a row of the result must come from one row of the input, and from it alone"


_OR = " ({rows_of_the_result_are_the_events} takes rows of any result, and the guarantee says so)"
_IN_NO_QUERY = ("not known here", "not on the list", "files are ", "name them in", "write WITH")
"""Reasons that hold where rows of any result are the events, too."""


def _refused(what: str, why: str) -> ParameterError:
    others = any(words in why for words in _IN_NO_QUERY)
    return WordError(f"{what} is not accepted: {why}; {_ALONE}{'' if others else _OR}")


_NODES = {
    "SET_OPERATION_NODE": ("UNION, EXCEPT or INTERSECT", "rows of it come from several inputs, or depend on others"),
    "RECURSIVE_CTE_NODE": ("WITH RECURSIVE", "one row of the input can become many"),
    "CTE_NODE": ("WITH of this kind", "it is not known here"),
    "STATEMENT_NODE": ("a statement inside of a query", "it is not known here"),
}
_TABLES = {
    "JOIN": ("a join", "one row of the input can become many; lookup adds the columns of a public table"),
    "TABLE_FUNCTION": (
        "a function in FROM",
        f"files are read by discreet: FROM 'log.csv', or FROM {FILES} for those that are given (other words say "
        "how they are written)",
    ),
    "EXPRESSION_LIST": ("VALUES", "its rows are not in the input"),
    "EMPTY": ("a query without FROM", "its row is not in the input"),
    "PIVOT": ("PIVOT", "it makes one row of many"),
    "SHOW_REF": ("DESCRIBE, SHOW or SUMMARIZE", "what it says depends on all rows"),
    "DELIM_GET": ("this FROM", "it is not known here"),
}
_MODIFIERS = {
    "LIMIT_MODIFIER": ("LIMIT or OFFSET", "which rows are among the first depends on others"),
    "LIMIT_PERCENT_MODIFIER": ("LIMIT", "how many rows that are depends on others"),
    "DISTINCT_MODIFIER": ("DISTINCT", "whether a row is in the result depends on others"),
}
_CLASSES = {
    "SUBQUERY": ("a subquery in an expression", "what it says of a row depends on others"),
    "WINDOW": ("a window function (OVER)", "what it says of a row depends on others"),
    "STAR": ("* or COLUMNS in an expression", "name the columns"),
    "PARAMETER": ("a parameter (?, $1)", "nothing is given for it"),
    "POSITIONAL_REFERENCE": ("a column by its number (#1)", "name the column"),
    "LAMBDA": ("a lambda", "it is not known here"),
    "LAMBDA_REF": ("a lambda", "it is not known here"),
    "COLLATE": ("COLLATE", "it is not known here"),
    "DEFAULT": ("DEFAULT", "it is not known here"),
}
_HARMLESS = {"STANDARD_HANDLING", "CTE_MATERIALIZE_DEFAULT"}


class _Checker:
    """Refuses what is not on the lists. Tables of a database may have a schema before them."""

    def __init__(self, database: bool = False) -> None:
        self._database = database

    def expression(self, node: Any) -> None:
        """An expression and all of its parts."""
        kind = node.get("class")
        parts = _EXPRESSIONS.get(kind)
        if parts is None:
            raise _refused(*_CLASSES.get(kind, (f"{str(kind).lower()} in an expression", "it is not known here")))
        if kind == "FUNCTION":
            self._function(node)
        elif kind == "OPERATOR" and node["type"] not in _OPERATORS:
            raise _refused(f"the operator {node['type']}", "it is not known here")
        elif kind == "CAST":
            for name in _cast_to(node):
                _check_type(name)
        known = parts | _COMMON | ({"schema"} if _by_the_parser(node) else set())
        self._nothing_else(node, known, f"a part of {str(kind).lower()}")
        for key in parts:
            self._inside(node.get(key))

    def _inside(self, value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                self._inside(each)
        elif isinstance(value, dict):
            if "class" in value:
                self.expression(value)
            else:  # a WHEN, the argument of a function, a type: all of their parts
                for each in value.values():
                    self._inside(each)

    def _function(self, node: Node) -> None:
        name = str(node.get("function_name", "")).lower()
        if node.get("filter") or node.get("distinct") or (node.get("order_bys") or {}).get("orders"):
            raise _refused(f"FILTER, DISTINCT or ORDER BY in {name}()", _WHY["aggregate"])
        given, place = _arguments(node), _WRITTEN.get(name)
        if place is not None and len(given) > max(place, 1):
            which = ("first", "second", "third")[place]
            if _columns_in(given[place]):
                raise ParameterError(f"the {which} argument of {name}() must be a constant, not a column")
            if name in _JSON_PATHS and (
                given[place]["class"] != "CONSTANT" or re.search(r"\.\.|\*\*", literal(given[place])[1])
            ):
                raise ParameterError(f"the {which} argument of {name}() must be a path without .. and **")
        if name in _FUNCTIONS:
            return
        if (why := _TAKEN_OFF.get(name)) is not None:
            raise _refused("GLOB" if name == "~~~" else f"{name}()", f"it is not on the list of functions: {why}")
        found = ask("SELECT function_type, stability FROM duckdb_functions() WHERE function_name = ?", [name])
        what, stability = min(found, key=lambda each: each[0] != "scalar") if found else ("unknown", None)
        if name in ("unnest", "unpivot_list", "generate_subscripts"):
            why = "it makes many rows of one"
        elif stability in ("VOLATILE", "CONSISTENT_WITHIN_QUERY") or name in ("current_setting", "getvariable"):
            why = _WHY["random"]  # DuckDB 1.5 calls the two CONSISTENT
        else:
            why = _WHY.get(str(what), "it is not on the list of functions that look at one row alone (docs/sql.md)")
        raise _refused("count(*)" if name == "count_star" else f"{name}()", why)

    def select(self, node: Node) -> None:
        """A SELECT except for its expressions and what it reads."""
        kind = node.get("type")
        if kind != "SELECT_NODE":
            raise _refused(*_NODES.get(str(kind), (f"a query of kind {kind}", "it is not known here")))
        for modifier in node.get("modifiers") or []:
            if modifier.get("type") != "ORDER_MODIFIER":  # the order of rows changes nothing that is counted
                kind = modifier.get("type")
                raise _refused(*_MODIFIERS.get(kind, (f"the modifier {kind}", "it is not known here")))
        if node.get("group_expressions") or node.get("group_sets") or node.get("having"):
            raise _refused("GROUP BY", _WHY["aggregate"])
        if node.get("aggregate_handling", "STANDARD_HANDLING") != "STANDARD_HANDLING":
            raise _refused("GROUP BY", _WHY["aggregate"])
        if node.get("qualify"):
            raise _refused("QUALIFY", _WHY["window"])
        if node.get("sample"):
            raise _refused("a sample", "which rows are in it is chosen without noise that is accounted for")
        known = {"type", "modifiers", "cte_map", "select_list", "from_table", "where_clause"}
        self._nothing_else(node, known, "a part of SELECT")

    def table(self, node: Node) -> None:
        """What a SELECT reads, except for a query inside."""
        kind = node.get("type")
        if kind not in ("BASE_TABLE", "SUBQUERY"):
            raise _refused(*_TABLES.get(str(kind), (f"{kind} in FROM", "it is not known here")))
        if node.get("sample"):
            raise _refused("a sample", "which rows are in it is chosen without noise that is accounted for")
        if node.get("column_name_alias"):
            raise _refused("names of columns after a table", "name them in the query: SELECT a AS b")
        if (node.get("schema_name") and not self._database) or node.get("catalog_name"):
            raise _refused("a schema or a catalog before a table", f"files are named as 'log.csv', or as {FILES}")
        known = {"type", "alias", "query_location", "query_location_length", "table_name", "qualified_name", "subquery"}
        known |= {"schema_name"}
        self._nothing_else(node, known, "a part of FROM")

    @staticmethod
    def _nothing_else(node: Node, known: set[str], what: str) -> None:
        for key, value in node.items():
            if key not in known and value and not (isinstance(value, str) and value in _HARMLESS):
                raise _refused(f"{what} ({key})", "it is not known here")


def _by_the_parser(node: Node) -> bool:
    """Whether this is EXTRACT, AT TIME ZONE, [a, b] or LIKE ESCAPE: some versions write a schema before these."""
    name = str(node.get("function_name"))
    known = name in ("date_part", "list_value", "row", "timezone") or name.endswith("like_escape")
    return known and node.get("schema") == "main"


def _cast_to(node: Node) -> list[str]:
    """The types that are in the type of a cast."""
    return list(_type_names([node.get("cast_type"), node.get("type_expr")]))


def _type_names(node: Any) -> Iterator[str]:
    """Types, as versions of DuckDB write them."""
    if isinstance(node, list):
        for each in node:
            yield from _type_names(each)
    elif isinstance(node, dict):
        inside = node.get("type_info") or {}
        if node.get("class") == "TYPE" or "id" in node:
            yield str(node.get("type_name") or inside.get("name") or inside.get("alias") or node["id"])
        yield from _type_names(list(node.values()))


@functools.cache
def _check_type(name: str) -> None:
    if name.upper() not in _TYPES:
        found = ask("SELECT upper(logical_type) FROM duckdb_types() WHERE lower(type_name) = ?", [name.lower()])
        if not found or any(logical not in _TYPES for (logical,) in found):
            raise _refused(f"a cast to {name}", "it is not on the list of types")


# ---- a query becomes conditions and expressions ----------------------------------------------------------------------


@dataclass
class _Flat:
    """A query over one input, with what is inside of it put in its place.

    `outputs` are its columns by their names; with `star` those of the input, too.
    """

    source: str
    star: bool
    outputs: dict[str, Node] = field(default_factory=dict)
    conditions: list[Node] = field(default_factory=list)


def _column(name: str) -> Node:
    """A column of the input."""
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": 0, "column_names": [name]}


def _substituted(node: Any, inside: Callable[[list[str]], Node]) -> Any:
    """The same expression with other expressions in place of its columns."""
    if isinstance(node, list):
        return [_substituted(each, inside) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "COLUMN_REF":
        return copy.deepcopy(inside(node["column_names"]))
    return {key: _substituted(value, inside) for key, value in node.items()}


class _Flattener:
    def __init__(self, database: bool = False) -> None:
        self._check = _Checker(database)

    def query(self, node: Node, known: Mapping[str, _Flat]) -> _Flat:
        """A SELECT; `known` are the queries of WITH that it may read, by their names."""
        self._check.select(node)
        known = dict(known)
        for entry in (node.get("cte_map") or {}).get("map") or []:
            value = entry["value"]
            if value.get("aliases") or value.get("key_targets") or value.get("payload_aggregates"):
                raise _refused("WITH of this kind", "write WITH name AS (SELECT a AS b ...)")
            inner = value.get("query_node") or (value.get("query") or {}).get("node") or {}
            known[str(entry["key"]).lower()] = self.query(inner, known)
        table = node["from_table"]
        self._check.table(table)
        name = str(table.get("table_name") or "")
        if table["type"] == "SUBQUERY":
            below = self.query(table["subquery"]["node"], known)
        else:
            schema = table.get("schema_name")
            below = (not schema and known.get(name.lower())) or _Flat(f"{schema}.{name}" if schema else name, star=True)
        here = str(table.get("alias") or name).lower()

        def inside(names: list[str]) -> Node:
            names = names[1:] if len(names) > 1 and names[0].lower() == here else names
            if (found := below.outputs.get(".".join(names))) is not None:
                return found
            if below.star:
                return _column(".".join(names))
            there = ", ".join(map(repr, below.outputs))
            raise ParameterError(f"the query inside has no column {'.'.join(names)!r}; its columns are {there}")

        flat = _Flat(below.source, star=False, conditions=list(below.conditions))
        for item in node["select_list"]:
            if item.get("class") == "STAR" and not any(
                item.get(key) for key in item if key not in (*_COMMON, "relation_name")
            ):
                flat.star = flat.star or below.star
                flat.outputs.update(below.outputs)
                continue
            self._check.expression(item)
            named = item.get("alias") or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else "")
            named = named or self.text({**item, "alias": ""})
            if named in flat.outputs:
                raise ParameterError(f"the query has two columns {named!r}; give one another name with AS")
            flat.outputs[named] = {**_substituted(item, inside), "alias": ""}
        if (condition := node.get("where_clause")) is not None:
            self._check.expression(condition)
            flat.conditions += _conjuncts(_substituted(condition, inside))
        return flat

    def text(self, expression: Node) -> str:
        """An expression as SQL."""
        around = self.parsed("SELECT 1")
        around["statements"][0]["node"]["select_list"] = [expression]
        ((sql,),) = ask("SELECT json_deserialize_sql(?::JSON)", [json.dumps(around)])
        return str(sql).removeprefix("SELECT ")

    @functools.cached_property
    def casts(self) -> dict[str, Node]:
        """Casts of a column to numbers: to whole ones of any size, exactly, and to others."""
        made = self.expressions("CAST(x AS DECIMAL(38, 9)), CAST(x AS DOUBLE)")
        return dict(zip(("whole", "fraction"), made, strict=True))

    def filled(self, text: str, **parts: Node) -> Node:
        """An expression from SQL, with others in place of the columns that it names."""
        (found,) = self.expressions(text)
        return _substituted(found, lambda names: parts.get(names[0]) or _column(names[0]))  # type: ignore[no-any-return]

    def expressions(self, text: str) -> list[Node]:
        """Expressions from SQL."""
        found: list[Node] = self.parsed(f"SELECT {text}")["statements"][0]["node"]["select_list"]
        return found

    def parsed(self, sql: str) -> Node:
        """What DuckDB's parser makes of a text: one SELECT."""
        if any("\ud800" <= letter <= "\udfff" for letter in sql):  # which versions of DuckDB refuse in their own ways
            raise ParameterError("the query cannot be read: it is not UTF-8")
        try:
            ((found,),) = ask("SELECT json_serialize_sql(?)", [sql])
        except duckdb.Error as error:
            raise ParameterError(f"the query cannot be read ({type(error).__name__})") from None
        tree: Node = json.loads(found)
        if tree.get("error"):
            if tree.get("error_type") == "not implemented":
                raise ParameterError("the query must be a SELECT, and nothing else")
            raise ParameterError(f"the query cannot be read: {tree.get('error_message')}")
        if len(tree["statements"]) != 1:
            raise ParameterError("the query must be one SELECT")
        return tree


def _conjuncts(condition: Node) -> list[Node]:
    """The conditions that are joined by AND, in their order: a condition is asked only where those before hold."""
    if condition.get("type") != "CONJUNCTION_AND":
        return [condition]
    return [part for child in condition["children"] for part in _conjuncts(child)]


def _compared(node: Any, texts: set[str], casts: Mapping[str, Node]) -> Any:
    """An expression in which columns of text that are compared with a number are cast to numbers.

    DuckDB does that for = and refuses it for <. What a column is compared with is public, what is in it is not: a row
    whose text is not a number is one for which the query cannot be computed.
    """
    if isinstance(node, list):
        return [_compared(each, texts, casts) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: _compared(value, texts, casts) for key, value in node.items()}
    kind, parts = made.get("class"), list[str]()
    if kind == "COMPARISON":
        parts = ["left", "right"]
    elif kind == "BETWEEN":
        parts = ["input", "lower", "upper"]
    in_list = made.get("type") in ("COMPARE_IN", "COMPARE_NOT_IN")
    sides = made["children"] if in_list else [made[part] for part in parts]
    numbers = {_number(side) for side in sides} - {None}
    if numbers:
        cast = casts["fraction" if "fraction" in numbers else "whole"]
        sides = [
            _substituted(cast, lambda _, side=side: side)  # type: ignore[misc]
            if side.get("class") == "COLUMN_REF" and side["column_names"][0] in texts
            else side
            for side in sides
        ]
        made |= {"children": sides} if in_list else dict(zip(parts, sides, strict=True))
    return made


def _number(node: Node) -> str | None:
    """What kind of number is written here."""
    if node.get("class") == "FUNCTION" and node.get("function_name") == "-":
        (inside, *more) = _arguments(node)
        return None if more else _number(inside)
    kind, _ = literal(node)
    return kind if kind in ("whole", "fraction") else None


def _arguments(node: Node) -> list[Node]:
    """Those of a function."""
    return node.get("children") or [each["expression"] for each in node.get("arguments") or []]


def _columns_in(node: Any) -> list[str]:
    """The columns of the input in an expression."""
    if isinstance(node, list):
        return [name for each in node for name in _columns_in(each)]
    if not isinstance(node, dict):
        return []
    if node.get("class") == "COLUMN_REF":
        return list(node["column_names"])
    return [name for each in node.values() for name in _columns_in(each)]


# ---- what one row may take ------------------------------------------------------------------------------------------

_SHORT = 1 << 14
"""As `LONGEST`, where the time or the memory of a function grows with the square of a text."""

_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"}  # a cast compares its text with every zone
_SQUARE = {
    *("editdist3", "levenshtein", "nfc_normalize", "parse_dirname", "parse_dirpath", "parse_filename", "parse_path"),
    *("strptime", "try_strptime"),
}
_LIKES = {  # by their names: with upper and lower case as it is, or not; and whether the answer is turned around
    **{"~~": (False, False), "!~~": (False, True), "~~*": (True, False), "!~~*": (True, True)},
    **{"like_escape": (False, False), "not_like_escape": (False, True)},
    **{"ilike_escape": (True, False), "not_ilike_escape": (True, True)},
}
_PATTERNS = {  # whose second argument is a pattern
    *_LIKES,
    *("regexp_extract", "regexp_extract_all", "regexp_full_match", "regexp_matches", "regexp_replace"),
    *("regexp_split_to_array", "str_split_regex", "string_split_regex"),
}
# A pattern p of LIKE with the escape character e ("" for none) as a regular expression. A pattern that ends with e, or
# an e of several bytes, is wrong: it becomes a wrong regular expression, and that error is one that TRY holds back.
_REGEX = """
    left(p, 0) || coalesce(array_to_string(list_transform(
        regexp_extract_all(p, '(?s)' || CASE WHEN strlen(e) = 1 THEN regexp_escape(e) || '.|.' ELSE '.' END),
        lambda t: CASE
            WHEN strlen(e) > 1 OR t = e THEN '['
            WHEN strlen(e) = 1 AND starts_with(t, e) THEN regexp_escape(substr(t, 2))
            WHEN t = '%' THEN '.*'
            WHEN t = '_' THEN '.'
            ELSE regexp_escape(t)
        END), ''), '')
"""
# TRY does not hold back the error of a zone that is not known; here it is that of a cast.
_STRPTIME = "CASE WHEN x IS NOT NULL THEN coalesce(try_strptime(x, f), CAST(left(x, 0) || 'none' AS TIMESTAMP)) END"


def _short_columns(node: Any) -> set[str]:
    """The columns that must be short: those in functions that take the square of their length."""
    if isinstance(node, list):
        return {name for each in node for name in _short_columns(each)}
    if not isinstance(node, dict):
        return set()
    if node.get("class") == "FUNCTION":
        name, given = str(node["function_name"]).lower(), _arguments(node)
        if name in _SQUARE or (name in _PATTERNS and _columns_in(given[1:2])):
            return set(_columns_in(given))
    if node.get("class") == "CAST" and not _ZONED.isdisjoint(map(str.upper, _cast_to(node))):
        return set(_columns_in(node["child"]))
    return {name for each in node.values() for name in _short_columns(each)}


def _rewritten(node: Any, maker: _Flattener) -> Any:
    """An expression in which LIKE and strptime, which many rows could make fail or take long, are written otherwise."""
    if isinstance(node, list):
        return [_rewritten(each, maker) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: _rewritten(value, maker) for key, value in node.items()}
    name = str(made.get("function_name", "")).lower()
    if made.get("class") == "FUNCTION" and name in _LIKES:
        return _as_regex(made, name, maker)
    if made.get("class") == "FUNCTION" and name == "strptime" and len(given := _arguments(made)) == 2:
        return maker.filled(_STRPTIME, x=given[0], f=given[1])
    return made


def _as_regex(made: Node, name: str, maker: _Flattener) -> Node:
    """LIKE as a regular expression: some versions of DuckDB try all ways in which % can match.

    One text with a thousand letters is then enough to take hours. A pattern that is written in the query and has no _
    is matched in linear time by all versions, and stays.
    """
    text, pattern, *more = _arguments(made)
    if name in ("~~", "!~~") and pattern["class"] == "CONSTANT" and "_" not in literal(pattern)[1]:
        return made
    (escape,) = more or maker.expressions("''")
    (folds, negates) = _LIKES[name]
    if folds:
        text, pattern = (maker.filled("lower(x)", x=each) for each in (text, pattern))
    regex = maker.filled(_REGEX, p=pattern, e=escape)
    if not _columns_in([pattern, escape]):
        with suppress(duckdb.Error):  # which is said again where it is computed of no rows
            ((written,),) = ask(f"SELECT {maker.text(regex)}")
            (regex,) = maker.expressions("NULL" if written is None else "'" + written.replace("'", "''") + "'")
    return maker.filled(f"{'NOT ' if negates else ''}regexp_full_match(x, p, 's')", x=text, p=regex)


_PROBED = [
    *("", "a", "A b", "1", "-1.5", "true", "year", "hour", "UTC", "%a_", "[1, 2]", '{"a": 1}', "1 day"),
    *("2020-01-01", "2020-01-01 00:00:00", "12:00:00", b"", b"a", 0, 1, 7, 0.0, 1.5, -2.0, Decimal(1), True, False),
    *(date(2020, 1, 1), datetime(2020, 1, 1), time(12), timedelta(1), [], {}),
]
_PROBES = 64


def _probes(schema: pa.Schema) -> pa.Table:
    """Public rows of these columns, with plain values: a query that fails for each of them is wrong."""
    chance, columns = random.Random(1), []
    for kind in schema.types:
        fitting = []
        for value in _PROBED:
            with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
                fitting.append(pa.array([value], kind)[0].as_py())
        columns.append(pa.array(chance.choices(fitting, k=_PROBES), kind) if fitting else pa.nulls(_PROBES, kind))
    return pa.table(columns, schema=schema)


# ---- computing -------------------------------------------------------------------------------------------------------


class Query:
    """A query of rows: which of them stay, and what columns they have. It is checked when it is made.

    Attributes:
        text: As it was given.
        source: The file or pattern that it reads; None where that is given beside it.
    """

    def __init__(self, text: str, flat: _Flat, maker: _Flattener) -> None:
        self.text, self._flat, self._maker = text, flat, maker
        self.source = None if flat.source.lower() == FILES else flat.source

    def bound(self, wanted: Sequence[str | None]) -> RowQuery:
        """The query for these columns of its result; None is the only one beside the others."""
        flat, others = self._flat, [name for name in wanted if name is not None]
        if None in wanted and not flat.star:
            rest = [name for name in flat.outputs if name not in others]
            if len(rest) != 1:
                there = ", ".join(map(repr, flat.outputs))
                raise DataError(f"name the column to count; the columns of the query are {there}")
            wanted = [rest[0] if name is None else name for name in wanted]
        expressions: list[Node | None] = []
        for name in wanted:
            if name is not None and name not in flat.outputs and not flat.star:
                there = ", ".join(map(repr, flat.outputs))
                hint = did_you_mean(name, flat.outputs)
                raise DataError(f"the query has no column {name!r}; its columns are {there}{hint}")
            expressions.append(None if name is None else flat.outputs.get(name, _column(name)))
        return RowQuery(expressions, flat.conditions, self._maker)

    @property
    def names(self) -> list[str] | None:
        """The columns of the result; None if they are those of the input, or these among them."""
        return None if self._flat.star else list(self._flat.outputs)


def select(sql: str, database: bool = False) -> Query:
    """A query that a user wrote in full, of files or of a table of a database.

    Raises:
        ParameterError: If a row of its result may come from anything but one row of its input; it says why.
    """
    maker = _Flattener(database)
    tree = maker.parsed(_text(sql, "a query"))["statements"][0]["node"]
    return Query(sql, maker.query(tree, {}), maker)


def where(condition: str) -> Query:
    """A condition alone, as after WHERE: all columns stay.

    Raises:
        ParameterError: As `select`.
    """
    maker = _Flattener()
    _text(condition, "where")
    tree = maker.parsed(f"SELECT * FROM {FILES} WHERE {condition}\n")["statements"][0]["node"]
    try:
        flat = maker.query(tree, {})
    except WordError as error:  # rows of any result are those of a whole query
        raise ParameterError(error.text.removesuffix(_OR)) from None
    if flat.source.lower() != FILES or not flat.star or flat.outputs or not flat.conditions:
        raise ParameterError("where must be an SQL condition, such as status = 404")
    return Query(condition, flat, maker)


def _text(given: str, what: str) -> str:
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        raise ParameterError(f"{what} must be text in SQL, not {type(given).__name__ if given else 'empty'}")
    return given


@dataclass(frozen=True)
class _Statement:
    """What DuckDB is given, and the type of what it makes of a row."""

    sql: str
    kind: pa.DataType


class _Step(NamedTuple):
    """One condition, or several in a row: a plan, or what DuckDB is given of the columns that it reads."""

    plan: Plan | None
    statement: _Statement | None
    read: list[str]


_SAMPLE = 1024
_KNOWN = 1 << 14  # texts of which it is kept what a condition says: that depends on the text and the query alone


def _bad_and_true(found: pa.StructArray) -> tuple[Mask, Mask]:
    """Of which rows a condition could not be computed, and for which of the others it holds."""
    bad = np.asarray(found.is_null(), np.bool_)
    return bad, np.asarray(found.field(0).fill_null(False), np.bool_) & ~bad


def _few_texts(table: pa.Table) -> pa.DictionaryArray | None:
    """The only column of a table, by its different texts; None where these are many, or no texts."""
    if table.num_columns != 1 or table.num_rows < 2 * _SAMPLE or not pa.types.is_string(table.schema.field(0).type):
        return None
    column = table.column(0)
    if len(column.slice(0, _SAMPLE).unique()) > _SAMPLE // 4:
        return None
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded if 2 * len(encoded.dictionary) < table.num_rows else None


class RowQuery:
    """A query for certain columns, as `discreet.events.row_query.Bound` has it."""

    of_text: CellCondition | None = None

    def __init__(self, expressions: Sequence[Node | None], conditions: Sequence[Node], maker: _Flattener) -> None:
        computed = [each for each in expressions if each is not None and each["class"] != "COLUMN_REF"]
        as_they_are = [each for each in expressions if each is None or each["class"] == "COLUMN_REF"]
        # These come first, so that the first of them may be the only one there is.
        taken = [None if each is None else str(each["column_names"][0]) for each in as_they_are]
        reads = list(dict.fromkeys([*taken, *_columns_in(list(conditions)), *_columns_in(computed)]))
        if not reads:
            raise ParameterError("the query reads no column of its input")
        self.reads: Sequence[str | None] = reads
        places = iter(map(reads.index, taken))
        self.taken: Sequence[int | None] = [
            None if each is not None and each["class"] != "COLUMN_REF" else next(places) for each in expressions
        ]
        self.selects = bool(conditions)
        self.looks_at: Sequence[int] = sorted({reads.index(name) for name in _columns_in(list(conditions))}) or range(
            len(reads)
        )
        self._names = {name: f"c{place}" for place, name in enumerate(reads) if name is not None}
        self._maker, self._conditions, self._computed = maker, list(conditions), computed
        self._short = _short_columns([*conditions, *computed])
        self._plans: dict[tuple[str, ...], list[_Step]] = {}  # by types of columns, as the next
        self._computations: dict[tuple[str, ...], _Statement] = {}
        self._known: dict[str, dict[str | None, tuple[bool, bool]]] = {}  # by statement and text: bad, true

    @functools.cached_property
    def _blocks(self) -> Blocks:
        return Blocks()

    def _named(self, expression: Node, texts: set[str]) -> str:
        """An expression as SQL; `texts` are the columns that are text."""
        compared = _compared(expression, texts, self._maker.casts)
        named = _substituted(compared, lambda names: _column(self._names[names[0]]))
        return self._maker.text(_rewritten(named, self._maker))

    def _all_of(self, conditions: Sequence[str]) -> str:
        """A later condition may fail where an earlier one does not hold: then it is not asked."""
        *first, last = [f"CAST(({each}) AS BOOLEAN)" for each in conditions]
        for each in reversed(first):
            last = f"CASE WHEN {each} THEN {last} ELSE false END"
        return last

    @staticmethod
    def _computation(expressions: Sequence[str]) -> str:
        fields = ", ".join(f"k{place} := ({text})" for place, text in enumerate(expressions))
        return f"SELECT TRY(struct_pack({fields})) AS r FROM rows"

    def _columns_of(self, schema: pa.Schema, column: Callable[[str], Any]) -> dict[str, Any]:
        """Those that are there, by their own names."""
        return {name: column(ours) for name, ours in self._names.items() if ours in schema.names}

    def _kinds(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        return self._columns_of(schema, lambda ours: schema.field(ours).type)

    def _texts_in(self, schema: pa.Schema) -> set[str]:
        kinds = self._kinds(schema)
        return {name for name, kind in kinds.items() if kind_of(kind, lists=False) == "text"}

    def _steps(self, schema: pa.Schema) -> list[_Step]:
        """How to compute the conditions of columns of such types, in their order; tried without any of the rows."""
        types = tuple(map(str, schema))
        if types not in self._plans:
            kinds = self._kinds(schema)
            plans = [(plan_of(each, kinds), each) for each in self._conditions]
            steps: list[_Step] = []
            for slow, group in itertools.groupby(plans, key=lambda each: each[0] is None):
                if not slow:
                    steps += [_Step(plan, None, []) for plan, _ in group]
                    continue
                nodes = [node for _, node in group]
                made = self._all_of([self._named(node, self._texts_in(schema)) for node in nodes])
                read = [self._names[name] for name in dict.fromkeys(_columns_in(nodes))] or schema.names[:1]
                some = pa.schema([schema.field(name) for name in read])
                steps.append(_Step(None, self._tried(self._computation([made]), some), read))
            self._plans[types] = steps
        return self._plans[types]

    def keeps(self, columns: Sequence[pa.Array | None]) -> tuple[Mask, Mask]:
        """Which rows stay, and for which this cannot be computed."""
        table = self._table(columns)
        failed = self._too_long(table)
        held = np.ones(table.num_rows, np.bool_) if failed is None else ~failed
        failed = np.zeros(table.num_rows, np.bool_) if failed is None else failed
        given = self._columns_of(table.schema, table.column)
        for plan, statement, read in self._steps(table.schema):
            if plan is not None:
                held &= true_rows(plan(given))
                continue
            assert statement is not None
            # Where a condition before does not hold, this one is not asked.
            some = table.select(read) if held.all() else table.select(read).filter(pa.array(held))
            (bad, true), asked = self._of_each(statement, some), np.flatnonzero(held)
            failed[asked[bad]] = True
            held[asked[~true]] = False
        return held, failed

    def computes(self, columns: Sequence[pa.Array]) -> tuple[list[pa.Array], Mask]:
        """The computed columns, and which of the rows cannot be computed."""
        table = self._table(columns)
        types = tuple(map(str, table.schema.types))
        if types not in self._computations:
            texts = self._texts_in(table.schema)
            sql = self._computation([self._named(each, texts) for each in self._computed])
            self._computations[types] = self._tried(sql, table.schema)
        statement, long = self._computations[types], self._too_long(table)
        if long is None:
            result = self._blocks.computed(statement.sql, table, statement.kind)
        else:
            some = self._blocks.computed(statement.sql, table.filter(pa.array(~long)), statement.kind)
            result = some.take(pa.array(np.cumsum(~long) - 1, mask=long))
        return [result.field(at) for at in range(result.type.num_fields)], np.asarray(result.is_null(), np.bool_)

    def _table(self, columns: Sequence[pa.Array | None]) -> pa.Table:
        given = ((name, column) for name, column in zip(self.reads, columns, strict=True) if name is not None)
        return pa.table({self._names[name]: without_views(column) for name, column in given if column is not None})

    def _too_long(self, table: pa.Table) -> Mask | None:
        """The rows that nothing is computed of; None if there are none."""
        columns = self._columns_of(table.schema, table.column)
        limits = {name: _SHORT if name in self._short else LONGEST for name in columns}
        found = [long for name, limit in limits.items() if (long := longer(columns[name], limit)) is not None]
        return np.logical_or.reduce(found) if found else None

    def _of_each(self, statement: _Statement, table: pa.Table) -> tuple[Mask, Mask]:
        """Of which rows a condition cannot be computed, and for which it holds.

        Of one column of texts that are often the same, each of them is asked about once.
        """
        encoded = _few_texts(table)
        if encoded is None:
            return _bad_and_true(self._blocks.computed(statement.sql, table, statement.kind))
        texts = [*encoded.dictionary.to_pylist(), None]
        known = self._known.setdefault(statement.sql, {})
        if len(known) > _KNOWN:
            known.clear()
        new = [text for text in texts if text not in known]
        if new:
            values = pa.table([pa.array(new, table.schema.field(0).type)], schema=table.schema)
            said = _bad_and_true(self._blocks.computed(statement.sql, values, statement.kind))
            known.update(zip(new, zip(*(each.tolist() for each in said), strict=True), strict=True))
        codes = encoded.indices.fill_null(len(texts) - 1) if encoded.null_count else encoded.indices
        of_texts = np.array([known[text] for text in texts], np.bool_)
        bad, true = of_texts[np.asarray(codes)].T
        return bad, true

    def _tried(self, sql: str, schema: pa.Schema) -> _Statement:
        """Whether it can be computed of such columns at all: of no rows, and of one of the probes.

        Neither has anything of the data, so what DuckDB says of them can be said, and no row decides whether it is.
        """
        found = self._blocks.tried(sql, schema.empty_table())
        if isinstance(found, Exception):
            raise self._wrong(found)
        probes = _probes(schema)
        if isinstance(self._blocks.tried(sql, probes), Exception):
            each = (self._blocks.tried(sql, probes.slice(at, 1)) for at in range(probes.num_rows))
            failed = list(itertools.takewhile(lambda one: isinstance(one, Exception), each))
            if len(failed) == probes.num_rows:
                raise self._wrong(failed[0])
        return _Statement(sql, found.type)

    def _wrong(self, error: Exception) -> ParameterError:
        said = str(error).partition("\n")[0]
        for name, ours in self._names.items():
            said = re.sub(rf'"?\b{ours}\b"?', lambda _, name=name: repr(name), said)  # type: ignore[misc]
        hint = "; columns of CSV, JSON lines and logs are text: cast(x as integer)" if "VARCHAR" in said else ""
        return ParameterError(f"the query cannot be computed: {said.rstrip('.')}{hint}")


# ---- queries whose rows are the events -------------------------------------------------------------------------------

_OF_ALL_ROWS = {"random", "uuid", "gen_random_uuid", "now", "today", "current_timestamp", "unnest", "count_star"}
_WHOLE_CLASSES = {*_EXPRESSIONS, "SUBQUERY", "WINDOW", "STAR"}
_WHOLE_NODES = {"SELECT_NODE", "SET_OPERATION_NODE"}
_WHOLE_TABLES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EXPRESSION_LIST"}


class WholeQuery:
    """A query whose rows are taken as the events, wherever they come from: joins and aggregates, too.

    What one row of the input changes in its result is not bounded, so the guarantee is about rows of the result, and
    says so (`ASSUMED`). Its inputs are read whole, by the readers of `discreet.events`, into the memory of DuckDB.

    Attributes:
        text: As it was given.
        source: None: it names its files itself, or reads those that are given.
    """

    source = None

    def __init__(self, sql: str) -> None:
        self.text = _text(sql, "a query")
        import duckdb  # noqa: F401 (which scans Arrow)

        self._connection = new_database().cursor()
        maker = _Flattener()
        self._tree = maker.parsed(sql)
        self._defined = {str(entry["key"]).lower() for entry in _entries(self._tree)}
        self.inputs: dict[str, str] = {}  # the names of tables by the files that they are
        self.names: set[str] = set()
        self._given: list[str] = []
        self._how: dict[str, Any] = {}
        self.all_columns = False
        self._visit(self._tree["statements"][0]["node"], maker)
        if not self.inputs:
            raise ParameterError("the query reads no file")

    def _visit(self, node: Any, maker: _Flattener) -> None:
        if isinstance(node, list):
            for each in node:
                self._visit(each, maker)
        if not isinstance(node, dict):
            return
        kind, parsed = node.get("class"), node.get("type")
        if kind is not None:
            if kind not in _WHOLE_CLASSES:
                raise _not_known(f"{str(kind).lower()} in an expression")
            if kind == "FUNCTION":
                self._function(str(node["function_name"]).lower())
            for name in _cast_to(node):
                _check_type(name)
            if kind == "COLUMN_REF":
                self.names |= {*node["column_names"], ".".join(node["column_names"])}
            self.all_columns |= kind == "STAR"
        elif "select_list" in node or "setop_type" in node or str(parsed).endswith("_NODE"):
            if parsed not in _WHOLE_NODES:
                raise _not_known(f"a query of kind {parsed}")
        elif "query_location" in node and "sample" in node:  # in FROM
            if parsed not in _WHOLE_TABLES:
                raise _not_known(f"{str(parsed).lower().replace('_', ' ')} in FROM")
            self.names |= {*(node.get("using_columns") or [])}
            if parsed == "BASE_TABLE":
                self._table(node)
        for value in node.values():
            self._visit(value, maker)

    def _table(self, node: Node) -> None:
        if node.get("schema_name") or node.get("catalog_name"):
            raise _not_known("a schema or a catalog before a table")
        name = str(node["table_name"])
        if name.lower() not in self._defined:
            ours = self.inputs.setdefault(FILES if name.lower() == FILES else name, f"input_{len(self.inputs)}")
            node["alias"] = node.get("alias") or name
            node["table_name"] = ours
            if "qualified_name" in node:
                node["qualified_name"] = {"path": [ours]}

    def _function(self, name: str) -> None:
        if name in _FUNCTIONS or name in _OF_ALL_ROWS:
            return
        found = ask("SELECT DISTINCT function_type FROM duckdb_functions() WHERE function_name = ?", [name])
        if ("aggregate",) not in found or ("scalar",) in found:
            raise _not_known(f"{name}()")

    def reading(self, files: Sequence[str] | None = None, **how: Any) -> WholeQuery:
        """The same query, which will read these files where it says FROM files, in this format and dialect."""
        if files is not None:
            if (FILES in self.inputs) != bool(files):
                raise ParameterError(f"files can only be given for a query that reads FROM {FILES}")
            self._given = list(files)
        self._how |= how
        return self

    @property
    def files(self) -> list[str]:
        """All that it reads."""
        return [path for file in self.inputs for path in self._paths(file)]

    def _paths(self, file: str) -> list[str]:
        return expand(self._given if file == FILES else file)

    def _read(self) -> None:
        """Take all inputs, whole."""
        for file, name in self.inputs.items():
            paths = self._paths(file)
            how = {name: self._how.get(name) for name in ("format", "dialect", "encoding")}
            files = Files(paths, **how)
            there = files.column_names()
            if there is None and self.all_columns:
                raise ParameterError(f"name the columns of {paths[0]}: the file itself does not name them")
            wanted = (
                sorted(self.names)
                if there is None
                else [each for each in there if self.all_columns or each in self.names]
            )
            wanted = wanted or (there or ["item"])[:1]
            rows = files.rows(wanted, nulls="skip", bad_rows=self._how.get("bad_rows", "error"))
            assert isinstance(rows, FileRows)
            self._load(name, wanted, rows.columns_read())

    def _load(self, name: str, columns: Sequence[str], blocks: Iterator[tuple[pa.Array, ...]]) -> None:
        """Take an input whole."""
        made = False
        for arrays in blocks:
            table = pa.table(dict(zip(columns, arrays, strict=True)))
            self._connection.register("incoming", table)
            try:
                how = (
                    f"INSERT INTO {name} SELECT * FROM incoming"
                    if made
                    else f"CREATE OR REPLACE TABLE {name} AS FROM incoming"
                )
                self._run(lambda: self._connection.execute(how))  # noqa: B023 (called at once)
            finally:
                self._connection.unregister("incoming")
            made = True
        if not made:
            self._connection.register("incoming", pa.table({column: pa.array([], pa.string()) for column in columns}))
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM incoming")
            self._connection.unregister("incoming")

    def result(self, wanted: Sequence[str | None]) -> Iterator[tuple[pa.Array, ...]]:
        """The columns that are asked for, batch by batch; where none is, the first one."""
        self._read()
        ((sql,),) = ask("SELECT json_deserialize_sql(?::JSON)", [json.dumps(self._tree)])
        found = self._run(self._bound(str(sql)).to_arrow_table)
        names = list(found.schema.names)
        chosen = choose(names, wanted, "the result of the query") if wanted else names[:1]
        for batch in found.to_batches(_ROWS_AT_ONCE):
            yield tuple(without_views(batch.column(name)) for name in chosen)

    def _bound(self, sql: str) -> DuckDBPyRelation:
        """A query whose names and types are found, and of which nothing is computed yet: an error quotes no row."""
        problem = ""
        try:
            return self._connection.sql(sql)
        except duckdb.Error as error:
            problem = str(error).partition("\n")[0]
        raise ParameterError(f"the query cannot be computed: {problem}")

    @staticmethod
    def _run(compute: Callable[[], pa.Table]) -> pa.Table:
        problem: DiscreetError
        try:
            return compute()
        except (duckdb.OutOfMemoryException, MemoryError):
            problem = DiscreetError("not enough memory for the query")
        except (duckdb.Error, pa.ArrowException) as error:  # whose words may quote a row
            problem = DataError(
                f"the query cannot be computed ({type(error).__name__}); try_cast turns what is not a number into null"
            )
        raise problem


ASSUMED = (
    "the events are rows of the result of a query that may join, count or choose rows: what one row of its input "
    "changes in them is not bounded"
)


def _entries(node: Any) -> Iterator[Node]:
    """What WITH defines, anywhere."""
    if isinstance(node, list):
        for each in node:
            yield from _entries(each)
    elif isinstance(node, dict):
        yield from (node.get("cte_map") or {}).get("map") or []
        for value in node.values():
            yield from _entries(value)


def _not_known(what: str) -> ParameterError:
    return ParameterError(f"{what} is not supported (docs/sql.md lists what is)")
