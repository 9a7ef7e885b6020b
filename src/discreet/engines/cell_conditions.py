"""Conditions on columns of text, decided cell by cell while text is read, without Arrow and without DuckDB.

    condition = cell_condition(conditions, {"status": 1})     # of the parsed query alone; None for any other

On the list are comparisons of a column with a text or a number that is written in the query, IN, BETWEEN, IS NULL,
LIKE with % at its ends, and AND, OR and NOT of these. What it says of a row is what DuckDB says of it, in all versions.
Where a cell is not written plainly (` 404`, `4_04`, `4.04e2`, `0x194`) it says that it does not know: DuckDB is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from discreet._native import CellCondition

Node = dict[str, Any]
Step = tuple[str, int, str, str]  # kind, place of a column, sign, what is written

_SIGNS = {
    **{"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">"},
    **{"COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">="},
}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_EXACT_DIGITS = 15  # a fraction with this many is the float nearest to it


def cell_condition(conditions: Sequence[Node], places: Mapping[str, int]) -> CellCondition | None:
    """The conditions, joined by AND, of columns of text in these places; None where one is not on the list."""
    made = [_steps(each, places) for each in conditions]
    known = [steps for steps in made if steps is not None]
    return CellCondition(known) if len(known) == len(made) else None


def _steps(node: Node, places: Mapping[str, int]) -> list[Step] | None:
    """The steps of a condition, those that are joined before what joins them."""
    kind, of = node["class"], node["type"]
    if kind == "CONJUNCTION":
        return _joined("and" if of == "CONJUNCTION_AND" else "or", [_steps(each, places) for each in node["children"]])
    if of == "OPERATOR_NOT":
        return _negated(_steps(node["children"][0], places))
    if of in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
        missing: list[Step] = [("null", _place(node["children"][0], places), "", "")]
        return missing if of == "OPERATOR_IS_NULL" else _negated(missing)
    if kind == "COMPARISON":
        left, right, sign = node["left"], node["right"], _SIGNS[of]
        if left["class"] == "CONSTANT":
            left, right, sign = right, left, _TURNED.get(sign, sign)
        return _joined("and", _compared(_place(left, places), [(sign, right)]))
    if kind == "BETWEEN":
        ends = [(">=", node["lower"]), ("<=", node["upper"])]
        return _joined("and", _compared(_place(node["input"], places), ends))
    if of == "COMPARE_IN":
        column, *listed = node["children"]
        return _joined("or", _compared(_place(column, places), [("=", each) for each in listed]))
    text, pattern = (each["expression"] for each in node["arguments"])
    found = _like(_place(text, places), pattern["literal"]["text"])
    return found if node["function_name"] == "~~" else _negated(found)


def _place(column: Node, places: Mapping[str, int]) -> int:
    return places[column["column_names"][0]]


def _joined(word: str, parts: Sequence[list[Step] | None]) -> list[Step] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return [step for at, part in enumerate(known) for step in (*part, *([(word, 0, "", "")] if at else []))]


def _negated(steps: list[Step] | None) -> list[Step] | None:
    return None if steps is None else [*steps, ("not", 0, "", "")]


def _compared(place: int, with_what: Sequence[tuple[str, Node]]) -> list[list[Step] | None]:
    """A column compared with all of these: as text, as whole numbers, or as floats where one of them is a fraction."""
    kinds = {node["literal"]["kind"] for _, node in with_what}
    if "STRING" in kinds and len(kinds) > 1:
        return [None]
    kind = "text" if "STRING" in kinds else "fraction" if "NUMERIC" in kinds else "whole"
    written = [(sign, node["literal"]["text"]) for sign, node in with_what]
    if kind == "fraction" and any(len(re.sub("[^0-9]", "", text)) > _EXACT_DIGITS for _, text in written):
        return [None]
    return [[(kind, place, sign, text)] for sign, text in written]


def _like(place: int, pattern: str) -> list[Step] | None:
    """LIKE with % at the ends of a pattern alone, and no _: the text has this inside, begins or ends so, or is it."""
    shape = re.fullmatch(r"(%?)([^%_]*)(%?)", pattern, re.DOTALL)
    if shape is None:
        return None
    before, inside, after = shape.groups()
    if before and (after or not inside):
        return [("has", place, "", inside)]
    if before or after:
        return [("ends" if before else "begins", place, "", inside)]
    return [("text", place, "=", inside)]
