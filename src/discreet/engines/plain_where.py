"""Conditions that are read without DuckDB, which takes 60 ms to load and to start.

    where("status = 404 and path like '/a%'")   # comparisons of a column with what is written, AND, OR, NOT
    where("lower(path) = 'a'")                  # everything else is DuckDB's (`engines.sql`)

Which of the two reads a condition is decided by its text, and by the types of its columns: never by rows. What is
read here becomes the tree that DuckDB's parser makes of the same text, and anything that is not of this grammar is left
to DuckDB. Names are written plainly or in double quotes, numbers of up to 18 digits without exponents, texts in
single quotes:

    condition   = all (OR all)*
    all         = each (AND each)*
    each        = NOT each | ( condition ) | compared
    compared    = column = written | written = column | column [NOT] IN (written, ...) | column IS [NOT] NULL
                | column [NOT] BETWEEN written AND written | column [NOT] LIKE text       (= <> != == < > <= >=)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet._later import np, pa
from discreet.engines.cell_conditions import cell_condition
from discreet.events.arrow_calls import cast, filtered

if TYPE_CHECKING:
    import numpy.typing as npt

    from discreet.engines.conditions import Plan
    from discreet.engines.sql import Query, RowQuery

    Mask = npt.NDArray[np.bool_]

Node = dict[str, Any]

_TOKENS = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<number>(?<![^ \t\r\n(,=<>!])-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?![\w.$]))
        | (?P<text>'(?:[^'\0\ud800-\udfff]|'')*'(?!'))
        | (?P<quoted>"(?:[^"\0\ud800-\udfff]|"")+"(?!"))
        | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?![\w.$'"(]))
        | (?P<sign>(?:<>|!=|==|<=|>=|=|<|>)(?![-+*/<>=~!@\#%^&|`?])|[(),])
    )""",
    re.VERBOSE | re.ASCII,
)
_COMPARED = {
    **dict.fromkeys(("=", "=="), "COMPARE_EQUAL"),
    **dict.fromkeys(("<>", "!="), "COMPARE_NOTEQUAL"),
    **{"<": "COMPARE_LESSTHAN", ">": "COMPARE_GREATERTHAN"},
    **{"<=": "COMPARE_LESSTHANOREQUALTO", ">=": "COMPARE_GREATERTHANOREQUALTO"},
}
# Words that are no names, or not everywhere (DuckDB's keywords except those that it does not reserve). In quotes they
# are names.
_WORDS = """
    all analyse analyze and anti any array as asc asof asymmetric at authorization between bigint binary bit boolean
    both by case cast char character check coalesce collate collation column columns concurrently constraint create
    cross dec decimal default deferrable desc describe distinct do else end except exists extract false fetch float for
    foreign freeze from full generated glob group grouping grouping_id having ilike in initially inner inout int integer
    intersect interval into is isnull join lambda lateral leading left like limit map national natural nchar none not
    notnull null nullif numeric offset on only or order out outer overlaps overlay pivot pivot_longer pivot_wider
    placing position positional precision primary qualify real references returning right row select semi setof show
    similar smallint some struct substring summarize symmetric table tablesample then time timestamp to trailing treat
    trim true try_cast tuple union unique unpack unpivot using values varchar variadic verbose when where window with
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
_TAKEN = frozenset(_WORDS.split())
_FUNCTIONS = ("current_", "local", "session_", "user", "system_user")  # without brackets, in some versions
_DEEPEST = 50
_KNOWN, _SHORT = 1 << 14, 64  # texts of this length of which it is kept what DuckDB said: that depends on them alone
_YES, _BAD, _UNSURE = 1, 3, 4  # what a condition says of a row, as `_native.CellCondition` has it


class _NotRead(Exception):  # noqa: N818 (no error: DuckDB reads it)
    """Not of this grammar."""


class _Parser:
    """The tree of a condition, as DuckDB's parser makes it."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place, text = 0, text.rstrip(" \t\r\n")
        while place < len(text):
            found = _TOKENS.match(text, place)
            if found is None or found.lastgroup is None:
                raise _NotRead
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()
        self._tokens.append(("end", ""))
        self._at = self._depth = 0

    def tree(self) -> Node:
        """All of it."""
        found = self._joined("or", "CONJUNCTION_OR")
        self._require(self._tokens[self._at][0] == "end")
        return found

    def _joined(self, word: str, kind: str) -> Node:
        parts = [self._joined("and", "CONJUNCTION_AND") if word == "or" else self._each()]
        while self._passed(word):
            parts.append(self._joined("and", "CONJUNCTION_AND") if word == "or" else self._each())
        return parts[0] if len(parts) == 1 else {"class": "CONJUNCTION", "type": kind, "children": parts}

    def _each(self) -> Node:
        self._depth += 1
        self._require(self._depth <= _DEEPEST)
        if self._passed("not"):
            found = _operator("OPERATOR_NOT", self._each())
        elif self._passed("("):
            found = self._joined("or", "CONJUNCTION_OR")
            self._require(self._passed(")"))
        else:
            found = self._compared()
        self._depth -= 1
        return found

    def _compared(self) -> Node:
        if self._tokens[self._at][0] in ("number", "text"):
            written, sign = self._written(), self._sign()
            return {"class": "COMPARISON", "type": sign, "left": written, "right": self._column()}
        column = self._column()
        if self._passed("is"):
            negated = self._passed("not")
            self._require(self._passed("null"))
            return _operator("OPERATOR_IS_NOT_NULL" if negated else "OPERATOR_IS_NULL", column)
        negated = self._passed("not")
        if self._passed("in"):
            self._require(self._passed("("))
            listed = [self._written()]
            while self._passed(","):
                listed.append(self._written())
            self._require(self._passed(")"))
            found = _operator("COMPARE_IN", column, *listed)
        elif self._passed("between"):
            lower = self._written()
            self._require(self._passed("and"))
            found = {"class": "BETWEEN", "type": "COMPARE_BETWEEN", "input": column, "lower": lower}
            found["upper"] = self._written()
        elif self._passed("like"):
            self._require(self._tokens[self._at][0] == "text")
            given = [{"expression": column}, {"expression": self._written()}]
            name = "!~~" if negated else "~~"
            return {"class": "FUNCTION", "type": "FUNCTION", "function_name": name, "arguments": given}
        else:
            self._require(not negated)
            return {"class": "COMPARISON", "type": self._sign(), "left": column, "right": self._written()}
        return _operator("OPERATOR_NOT", found) if negated else found

    def _column(self) -> Node:
        kind, text = self._next()
        if kind == "quoted":
            name = text[1:-1].replace('""', '"')
        else:
            name = text
            taken = name.lower() in _TAKEN or name.lower().startswith(_FUNCTIONS)
            self._require(kind == "word" and not taken)
        return {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": [name]}

    def _written(self) -> Node:
        kind, text = self._next()
        self._require(kind in ("number", "text"))
        if kind == "text":
            literal = {"kind": "STRING", "text": text[1:-1].replace("''", "'")}
        else:
            literal = {"kind": "NUMERIC" if "." in text else "INTEGER", "text": text}
        return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "literal": literal}

    def _sign(self) -> str:
        kind, text = self._next()
        self._require(kind == "sign" and text in _COMPARED)
        return _COMPARED[text]

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _passed(self, wanted: str) -> bool:
        """Whether this word or sign is next; then it is behind."""
        kind, text = self._tokens[self._at]
        found = kind in ("word", "sign") and text.lower() == wanted
        self._at += found
        return found

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _NotRead


def _operator(kind: str, *children: Node) -> Node:
    return {"class": "OPERATOR", "type": kind, "children": list(children)}


def tree_of(condition: str) -> Node | None:
    """The tree of a condition of this grammar; None of any other."""
    try:
        return _Parser(condition).tree()
    except _NotRead:
        return None


def _columns_in(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for each in node for name in _columns_in(each)]
    if not isinstance(node, dict):
        return []
    return node.get("column_names") or [name for each in node.values() for name in _columns_in(each)]


def _is_text(column: pa.Array | None) -> bool:
    return column is not None and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


class PlainQuery:
    """The rows for which a condition is true, as `engines.sql.Query`: all columns stay."""

    source = names = None

    def __init__(self, text: str, tree: Node) -> None:
        self.text = text
        is_all = tree["type"] == "CONJUNCTION_AND"
        self.conditions: list[Node] = tree["children"] if is_all else [tree]

    def bound(self, wanted: Sequence[str | None]) -> PlainRowQuery:
        """For these columns; None is the only one beside the others."""
        return PlainRowQuery(self, wanted)


class PlainRowQuery:
    """A condition for certain columns, as `discreet.events.row_query.Bound` has it."""

    selects = True

    def __init__(self, query: PlainQuery, wanted: Sequence[str | None]) -> None:
        looked = _columns_in(query.conditions)
        self._query, self._wanted = query, list(wanted)
        self.reads: Sequence[str | None] = list(dict.fromkeys([*wanted, *looked]))
        self.taken: Sequence[int | None] = [self.reads.index(name) for name in wanted]
        self.looks_at: Sequence[int] = sorted({self.reads.index(name) for name in looked})
        self.of_text = cell_condition(query.conditions, {name: self.reads.index(name) for name in looked})
        self._plans: dict[tuple[str, ...], list[Plan] | None] = {}  # by types of columns
        self._known: dict[bytes, tuple[bool, bool]] = {}  # by an odd text: whether its row stays, and is bad

    @cached_property
    def _of_duckdb(self) -> RowQuery:
        from discreet.engines import sql

        return sql.where(self._query.text).bound(self._wanted)

    def keeps(self, columns: Sequence[pa.Array | None]) -> tuple[Mask, Mask]:
        """Which rows stay, and for which this cannot be computed."""
        from discreet.engines.conditions import LONGEST, longer, plan_of, true_rows
        from discreet.events.items import without_views

        there = zip(self.reads, columns, strict=True)
        given = {name: pa.chunked_array([without_views(column)]) for name, column in there if column is not None}
        kinds = {name: column.type for name, column in given.items() if name is not None}
        types = tuple(map(str, kinds.values()))
        if types not in self._plans:
            plans = [plan_of(each, kinds) for each in self._query.conditions]
            known = [plan for plan in plans if plan is not None]
            self._plans[types] = known if len(known) == len(plans) else None
        chosen = self._plans[types]
        of_cells = chosen is None and self.of_text is not None and all(map(_is_text, self._looked(columns)))
        if chosen is None and not of_cells:
            return self._of_duckdb.keeps(columns)
        rows = len(next(iter(given.values())))
        failed, named = np.zeros(rows, np.bool_), {name: each for name, each in given.items() if name is not None}
        for column in named.values():
            if (long := longer(column, LONGEST)) is not None:
                failed |= long
        held = ~failed
        if chosen is None:
            return self._of_cells(columns, held, failed)
        for plan in chosen:
            held &= true_rows(plan(named))
        return held, failed

    def _looked(self, columns: Sequence[pa.Array | None]) -> list[pa.Array]:
        """The columns that the condition looks at."""
        return [columns[place] for place in self.looks_at]

    def _of_cells(self, columns: Sequence[pa.Array | None], held: Mask, failed: Mask) -> tuple[Mask, Mask]:
        """The same of texts, cell by cell; DuckDB is asked of the rows with cells that are not written plainly."""
        assert self.of_text is not None
        looked = [column if place in self.looks_at else None for place, column in enumerate(columns)]
        said = np.frombuffer(self.of_text.said(looked), np.uint8)
        unsure = held & (said == _UNSURE)
        held, failed = held & (said == _YES), failed | (held & (said == _BAD))
        if unsure.any():
            some = [None if column is None else filtered(column, unsure) for column in columns]
            held[unsure], failed[unsure] = self._odd(some)
        return held, failed

    def _odd(self, columns: Sequence[pa.Array | None]) -> tuple[Mask, Mask]:
        """What DuckDB says of rows; where they differ in one short text alone, of each of these once."""
        looked = self._looked(columns)
        texts: list[bytes] = cast(looked[0], pa.large_binary()).to_pylist()  # which may be no UTF-8
        if len(looked) > 1 or any(len(text) > _SHORT for text in texts):
            return self._of_duckdb.keeps(columns)
        if any(text not in self._known for text in texts):
            if len(self._known) > _KNOWN:
                self._known.clear()
            said = self._of_duckdb.keeps(columns)
            self._known.update(zip(texts, zip(*(each.tolist() for each in said), strict=True), strict=True))
        held, failed = np.array([self._known[text] for text in texts], np.bool_).T
        return held, failed

    def computes(self, columns: Sequence[pa.Array]) -> tuple[list[pa.Array], Mask]:
        """No column is computed."""
        return [], np.zeros(len(columns[0]) if columns else 0, np.bool_)


def where(condition: str) -> PlainQuery | Query:
    """A condition alone, as after WHERE: all columns stay.

    Raises:
        ParameterError: If it can be none; it says why.
    """
    tree = tree_of(condition) if isinstance(condition, str) else None
    if tree is not None:
        return PlainQuery(condition, tree)
    from discreet.engines import sql

    return sql.where(condition)
