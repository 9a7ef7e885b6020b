"""Conditions that can neither fail nor take long, whatever a row holds: computed of whole columns, without DuckDB.

    plan = plan_of(condition, {"status": pa.int32()})     # of the parsed query and of types alone; None for any other
    plan({"status": column})                              # true, false or null for every row, as DuckDB has it

On the list are comparisons of a column with what is written in the query, IN, BETWEEN, IS NULL, LIKE with % at its
ends, and AND, OR and NOT of these; of columns of whole numbers, floats (of 64 bits) and texts. A number that is written
must be one of the column's type, so that nothing is cast. In SQL NaN is equal to itself and above all other numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow._compute import MatchSubstringOptions, call_function  # pyarrow.compute takes 20 ms more to load

from discreet.events.items import kind_of

LONGEST = 1 << 20
"""A cell of more bytes that a query looks at makes its row bad: what is made of it can be many times as large."""

Node = dict[str, Any]
Columns = Mapping[str, pa.ChunkedArray]
Plan = Callable[[Columns], pa.ChunkedArray]


def _function(name: str) -> Callable[..., Any]:
    """A function of Arrow, by its name."""
    return lambda *arguments: call_function(name, list(arguments))


_AND, _OR, _NOT = _function("and_kleene"), _function("or_kleene"), _function("invert")
_COMPARED = {
    "COMPARE_EQUAL": _function("equal"),
    "COMPARE_NOTEQUAL": _function("not_equal"),
    "COMPARE_LESSTHAN": _function("less"),
    "COMPARE_GREATERTHAN": _function("greater"),
    "COMPARE_LESSTHANOREQUALTO": _function("less_equal"),
    "COMPARE_GREATERTHANOREQUALTO": _function("greater_equal"),
}
_TURNED = {
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHAN",
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHAN",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHANOREQUALTO",
}
_ABOVE = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO")
_EXACT = 2**53  # whole numbers up to here are floats
_DIGITS = 15  # a number with this many is the float nearest to it, however it is divided by its power of ten
_JOINED = {"CONJUNCTION_AND": _AND, "CONJUNCTION_OR": _OR}
_KINDS = {  # of constants, as versions of DuckDB call them
    **dict.fromkeys(("STRING", "VARCHAR"), "text"),
    **dict.fromkeys(("INTEGER", "BIGINT", "HUGEINT"), "whole"),
    **dict.fromkeys(("NUMERIC", "DECIMAL", "DOUBLE", "FLOAT", "REAL"), "fraction"),
}
_LIKE = {"~~": False, "!~~": True}


def plan_of(node: Node, kinds: Mapping[str, pa.DataType]) -> Plan | None:
    """How to compute a condition, as DuckDB's parser has it, of columns of these types; None if it is not listed."""
    kind, of = node.get("class"), str(node.get("type"))
    if kind == "CONJUNCTION" and of in _JOINED:
        return _of_all([plan_of(child, kinds) for child in node["children"]], partial(reduce, _JOINED[of]))
    if kind == "OPERATOR":
        return _operator(of, node["children"], kinds)
    if kind == "COMPARISON" and of in _COMPARED:
        left, right = node["left"], node["right"]
        return _compared(of, left, right, kinds) or _compared(_TURNED.get(of, of), right, left, kinds)
    if kind == "BETWEEN":
        ends = ((_ABOVE[1], node["lower"]), ("COMPARE_LESSTHANOREQUALTO", node["upper"]))
        plans = [_compared(each, node["input"], end, kinds) for each, end in ends]
        return _of_all(plans, partial(reduce, _AND))
    if kind == "FUNCTION" and node.get("function_name") in _LIKE:
        return _like(node, kinds)
    return None


def true_rows(made: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For which rows what a plan has made is true: neither false nor null."""
    return np.asarray(call_function("coalesce", [made, pa.scalar(False)]) if made.null_count else made, np.bool_)


def longer(column: pa.ChunkedArray, limit: int) -> npt.NDArray[np.bool_] | None:
    """Which texts (or bytes) of a column are longer; None if none is."""
    if column.nbytes <= limit or kind_of(column.type, lists=False) not in ("text", "bytes"):
        return None
    long = _of_values("", lambda values: _function("greater")(_function("binary_length")(values), limit))({"": column})
    found = true_rows(long)
    return found if found.any() else None


def _of_all(plans: Sequence[Plan | None], made: Callable[[list[pa.ChunkedArray]], pa.ChunkedArray]) -> Plan | None:
    known = [plan for plan in plans if plan is not None]
    return None if len(known) < len(plans) else lambda columns: made([plan(columns) for plan in known])


def _operator(of: str, children: list[Node], kinds: Mapping[str, pa.DataType]) -> Plan | None:
    if of == "OPERATOR_NOT":
        return _of_all([plan_of(children[0], kinds)], lambda made: _NOT(made[0]))
    name = _column(children[0], kinds)
    if name is None:
        return None
    if of in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        there = _function("is_null" if of == "OPERATOR_IS_NULL" else "is_valid")
        return lambda columns: there(columns[name])
    if of in ("COMPARE_IN", "COMPARE_NOT_IN"):
        plans = [_compared("COMPARE_EQUAL", children[0], each, kinds) for each in children[1:]]
        found = _of_all(plans, partial(reduce, _OR))
        return found if found is None or of == "COMPARE_IN" else lambda columns: _NOT(found(columns))
    return None


def _column(node: Node, kinds: Mapping[str, pa.DataType]) -> str | None:
    """The name of a column of a type on the list."""
    if node.get("class") != "COLUMN_REF" or node["column_names"][0] not in kinds:
        return None
    name = str(node["column_names"][0])
    return name if _of_texts(kinds[name]) or _of_numbers(kinds[name]) else None


def _of_texts(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _of_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_float64(kind) or (pa.types.is_integer(kind) and not pa.types.is_uint64(kind)))


def _compared(of: str, left: Node, right: Node, kinds: Mapping[str, pa.DataType]) -> Plan | None:
    name = _column(left, kinds)
    value = None if name is None else _written(right, kinds[name])
    if name is None or value is None:
        return None
    compare = _COMPARED[of]
    if pa.types.is_float64(kinds[name]) and of in _ABOVE:
        return lambda columns: _OR(compare(columns[name], value), _function("is_nan")(columns[name]))
    return _of_values(name, lambda column: compare(column, value))


def _of_values(name: str, made: Callable[[Any], Any]) -> Plan:
    """Of a dictionary each value is looked at once."""

    def plan(columns: Columns) -> pa.ChunkedArray:
        column = columns[name]
        if not pa.types.is_dictionary(column.type):
            return made(column)
        parts = [made(part.dictionary).take(part.indices) for part in column.chunks]
        return pa.chunked_array(parts, pa.bool_())

    return plan


def literal(node: Node) -> tuple[str, str]:
    """What is written as a constant: its kind (text, whole, fraction; empty for any other) and its text.

    DuckDB before 2.0 parses it into a value of a type; of a decimal that is a whole number, and how many of its digits
    are behind the point. How a float or a number of more than 64 bits was written is lost there: no text.
    """
    if node.get("class") != "CONSTANT":
        return "", ""
    if written := node.get("literal"):
        return _KINDS.get(str(written.get("kind")), ""), str(written.get("text") or "")
    of, value = node["value"]["type"], node["value"].get("value")
    kind = _KINDS.get(str(of["id"]), "")
    if of["id"] == "DECIMAL" and isinstance(value, int) and (scale := of["type_info"]["scale"]):
        digits = str(abs(value)).rjust(scale + 1, "0")
        return kind, f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
    return kind, str(value) if isinstance(value, (str, int)) else ""


def _written(node: Node, kind: pa.DataType) -> pa.Scalar | None:
    """What is written in a query as a value of this type; None if it is of another, or not one that this type has."""
    of, text = literal(node)
    if _of_texts(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.scalar(text, kind) if of == "text" else None
    if of == "whole" and re.fullmatch(r"-?[0-9]{1,18}", text):
        number = int(text)
        if pa.types.is_float64(kind):
            return pa.scalar(float(number), kind) if abs(number) <= _EXACT else None
        bits = kind.bit_width
        least, most = (
            (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)
        )
        return pa.scalar(number, kind) if least <= number <= most else None
    if of == "fraction" and pa.types.is_float64(kind) and re.fullmatch(r"-?[0-9]+\.[0-9]+", text):
        return pa.scalar(float(text), kind) if sum(map(str.isdigit, text)) <= _DIGITS else None
    return None


def _like(node: Node, kinds: Mapping[str, pa.DataType]) -> Plan | None:
    """LIKE with a written pattern that has no _, and % at its ends alone: the text is there, begins or ends so."""
    text, pattern = node.get("children") or [each["expression"] for each in node["arguments"]]
    name = _column(text, kinds)
    written = None if name is None or not _of_texts(kinds[name]) else _written(pattern, kinds[name])
    if name is None or written is None:
        return None
    shape = re.fullmatch(r"(%?)([^%_]*)(%?)", written.as_py(), re.DOTALL)
    if shape is None:
        return None
    before, inside, after = shape.groups()
    if before and (after or not inside):
        found = _matched("match_substring", inside)
    elif before:
        found = _matched("ends_with", inside)
    elif after:
        found = _matched("starts_with", inside)
    else:
        found = partial(_COMPARED["COMPARE_EQUAL"], written)
    negated = _LIKE[str(node["function_name"])]
    return _of_values(name, lambda column: _NOT(found(column)) if negated else found(column))


def _matched(name: str, pattern: str) -> Callable[[Any], Any]:
    return lambda column: call_function(name, [column], MatchSubstringOptions(pattern))
