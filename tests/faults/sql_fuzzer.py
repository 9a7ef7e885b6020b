"""Looks for functions where one odd row changes what a query says of the others, or whether it says anything.

    python tests/faults/sql_fuzzer.py SEED             one query for each function, operator and cast on the lists
    python tests/faults/sql_fuzzer.py SEED SECONDS     as many as there is time for

A query is computed of some plain rows, and then of the same with one odd row among them: missing, empty, huge,
negative, not a number, the ends of each type, long texts, patterns and paths that are none. It ends with 1 at the first
query that raises, or that says another thing of a plain row. The last line tells which query crashed or hangs.
"""

import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from discreet.engines import sql
from discreet.engines.closed_duckdb import ask
from discreet.errors import ParameterError

PLAIN_ROWS, ODD_ROWS = 5, 3
MEMORY = 96 << 30  # of addresses: some allocators set aside much more of them than they use

LONG = [1 << 14, (1 << 14) + 1, 70_000, (1 << 20) + 1]
TEXTS = [
    "a",
    "B c",
    "1",
    "-2.5",
    "year",
    "hour",
    "2020-01-02",
    "2021-03-04 05:06:07",
    '{"a": [1, {"b": 2}]}',
    "%a_",
    "$.a",
]
ODD_TEXTS = [
    *("", " ", "$", "%$", "\\", "[", "(", "a{1000}{1000}", "*a*a*b", "%a%a%a%b", "$.a[", "$..*", "nan", "inf", "-0"),
    *("1e999", "9" * 40, "-" + "9" * 40, "0x", "é\u0301", "\U0001f600", "\0", "x\0y", "infinity", "epoch", "century"),
    *("timezone", "isodow", "millennium", "Nowhere/Land", "2020-01-02 00:00:00 Nowhere/Land", "290000-01-01", "BC"),
    *("178956970 years", "-1 month", "[1, [2", "{", "null", "%Z", "%-", "%", "true", "00:00:00+16", "\ufeff", "'", '"'),
    *("[" * 9000 + "]" * 9000, "%a" * 300 + "%b", "a?" * 300),
]


@dataclass(frozen=True)
class Column:
    """A type: how it is written in a query, and arrays of one value each."""

    cast: str
    plain: list[pa.Array]
    odd: list[pa.Array]


def ones(values, kind):
    return [pa.array([value], kind) for value in values]


def viewed(values, stored, kind):
    return [pa.array([value], stored).view(kind) for value in values]


def long_texts(kind):
    made = [
        (letter * (size // len(letter) + 1))[:size] for size in LONG for letter in ("a", "%a", "/", "1", "\u0323\u0301")
    ]
    texts = [text if text.isascii() else text[: len(text) // 4] for text in made]
    return ones([text.encode() if kind == pa.binary() else text for text in texts], kind)


def ends(kind):
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return sorted({low, low + 1, high - 1, high, 0, 2, 64, *([-1] if signed else [])})


def columns() -> dict[str, Column]:
    made = {}
    texts, odd = ones(TEXTS, pa.string()), [*ones(ODD_TEXTS, pa.string()), *long_texts(pa.string())]
    made["VARCHAR"] = Column("", texts, odd)
    for kind, plain in {
        "JSON": ['{"a": [1, {"b": 2}]}', "[1, 2]", '"x"', "3"],
        "BIT": ["101", "0", "11111111"],
        "UUID": ["00000000-0000-0000-0000-000000000001"],
        "TIME WITH TIME ZONE": ["12:00:00+01", "00:00:00-15:59:59"],
        "TIME_NS": ["12:00:00.123456789"],
        "INTERVAL": ["1 day", "2 hours", "1 month"],
    }.items():
        made[kind] = Column(f"::{kind}", ones(plain, pa.string()), odd)
    for kind, arrow in {
        **{"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64()},
        **{"UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(), "UBIGINT": pa.uint64()},
    }.items():
        made[kind] = Column("", ones([1, 2, 3, 100], arrow), ones(ends(arrow), arrow))
    wide = pa.decimal128(38, 0)
    beyond = [
        pa.Array.from_buffers(wide, 1, [None, pa.py_buffer(value.to_bytes(16, "little"))])
        for value in (1 << 127, (1 << 127) - 1, (1 << 127) + 1, 10**38)
    ]
    most, least = Decimal("9" * 38), Decimal("-" + "9" * 38)
    numbers = ones([Decimal(n) for n in (1, 2, 300)], wide)
    made["DECIMAL"] = Column("", numbers, [*ones([most, least, Decimal(0)], wide), *beyond])
    made["HUGEINT"] = Column("::HUGEINT", numbers, [*ones([most, least], wide), *beyond])
    made["UHUGEINT"] = Column("::UHUGEINT", numbers, [*ones([most, least], wide), *beyond])
    floats = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 1e19, 170.0, -1.0]
    made["DOUBLE"] = Column("", ones([1.0, 2.5, -3.0], pa.float64()), ones(floats, pa.float64()))
    made["FLOAT"] = Column("", ones([1.0, 2.5], pa.float32()), ones([*floats[:5], 3e38, 1e-45], pa.float32()))
    made["BOOLEAN"] = Column("", ones([True, False], pa.bool_()), [])
    made["BLOB"] = Column(
        "", ones([b"a", b"bc"], pa.binary()), [*ones([b"", b"\xff\0"], pa.binary()), *long_texts(pa.binary())]
    )
    days, moments = [18263, 0], [1_577_836_800_000_000, 1]
    made["DATE"] = Column("", viewed(days, pa.int32(), pa.date32()), viewed(ends(pa.int32()), pa.int32(), pa.date32()))
    odd_times = [0, -1, 86_400_000_000, 86_400_000_001, -(1 << 63), (1 << 63) - 1]
    made["TIME"] = Column(
        "", viewed([1, 43_200_000_000], pa.int64(), pa.time64("us")), viewed(odd_times, pa.int64(), pa.time64("us"))
    )
    for kind, unit in {"TIMESTAMP": "us", "TIMESTAMP_S": "s", "TIMESTAMP_MS": "ms", "TIMESTAMP_NS": "ns"}.items():
        arrow, scale = pa.timestamp(unit), {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}[unit]
        made[kind] = Column(
            "", viewed([m // scale for m in moments], pa.int64(), arrow), viewed(ends(pa.int64()), pa.int64(), arrow)
        )
    zoned = pa.timestamp("us", "UTC")
    made["TIMESTAMP WITH TIME ZONE"] = Column(
        "", viewed(moments, pa.int64(), zoned), viewed(ends(pa.int64()), pa.int64(), zoned)
    )
    spans = pa.month_day_nano_interval()
    most = (1 << 31) - 1
    made["span"] = Column(
        "",
        ones([(0, 1, 0), (1, 0, 5000)], spans),
        ones([(most, most, (1 << 63) - 1), (-most - 1, 0, 0), (0, 0, 0)], spans),
    )
    numbers, words = pa.list_(pa.int64()), pa.list_(pa.string())
    made["BIGINT[]"] = Column(
        "", ones([[1, 2], [3]], numbers), ones([[], [None], [ends(pa.int64())[0]], [1] * 5000], numbers)
    )
    made["VARCHAR[]"] = Column("", ones([["a", "b"], ["c"]], words), ones([[], [None], [""], ["a" * 70_000]], words))
    named = pa.map_(pa.string(), pa.int64())
    made["MAP(K, V)"] = Column("", ones([[("a", 1)], [("b", 2)]], named), ones([[], [("", None)]], named))
    record = pa.struct([("a", pa.int64()), ("b", pa.string())])
    made["STRUCT"] = Column("", ones([{"a": 1, "b": "x"}], record), ones([{"a": None, "b": None}], record))
    return made


COLUMNS = columns()
KINDS = list(COLUMNS)
INFIX = {"+", "-", "*", "/", "//", "%", "^", "**", "&", "|", "<<", ">>", "||", "~~", "!~~", "~~*", "!~~*", "^@", "->>"}
PREFIX = {"-", "+", "~", "@", "!"}
COMPARED = ["=", "<>", "<", "is not distinct from", "in", "between", "coalesce", "[]", "case"]
CASTS = [
    "integer",
    "utinyint",
    "hugeint",
    "uhugeint",
    "double",
    "float",
    "decimal(38, 9)",
    "decimal(4, 1)",
    "varchar",
    "blob",
]
CASTS += [
    "bit",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamp_s",
    "interval",
    "uuid",
]
CASTS += [
    "json",
    "boolean",
    "integer[]",
    "varchar[]",
    "struct(a integer)",
    "map(varchar, integer)",
    "integer[2]",
    "enum('a')",
]
AROUND = ["hash({})", "cast({} as varchar)", "case when {} is null then 1 else 2 end", "try(hash({}))"]


def overloads() -> dict[str, list[tuple[list[str], str | None]]]:
    """The parameters of every function on the list that this DuckDB has."""
    found = ask(
        "SELECT lower(function_name), parameter_types, varargs FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'macro')"
    )
    made: dict[str, list[tuple[list[str], str | None]]] = {}
    for name, parameters, more in found:
        if name in sql._FUNCTIONS:
            made.setdefault(name, []).append((list(parameters), more))
    return dict(sorted(made.items()))


def kind_for(parameter: str | None, chance: random.Random) -> str:
    """A type of column for a parameter. Sometimes another: DuckDB casts, or refuses it."""
    if parameter in COLUMNS and chance.random() < 0.95:
        return "span" if parameter == "INTERVAL" and chance.random() < 0.5 else parameter
    if parameter is not None and parameter.endswith("[]"):
        return chance.choice(["BIGINT[]", "VARCHAR[]"])
    return chance.choice(KINDS if chance.random() < 0.5 else ["VARCHAR", "BIGINT", "DOUBLE", "TIMESTAMP"])


def written(name: str, arguments: list[str], chance: random.Random) -> str:
    if name in INFIX and len(arguments) == 2:
        return f"({arguments[0]} {name} {arguments[1]})"
    if name in PREFIX and len(arguments) == 1:
        return f"({name} {arguments[0]})"
    place = sql._WRITTEN.get(name)
    if place is not None and len(arguments) > max(place, 1):  # what no row may choose
        said = {"time_bucket": ["interval 1 day", "interval 1 month"], "timezone": ["'UTC'", "'Europe/Berlin'"]}
        arguments[place] = chance.choice(said.get(name, ["'$.a'", "'x'", "'$[*]'", "''"]))
    if name in ("strftime", "strptime", "try_strptime"):
        arguments[1:2] = [chance.choice(["'%Y-%m-%d'", "'%Y-%m-%d %H:%M:%S %Z'", "'%j %U %f'"])]
    return f"{name}({', '.join(arguments)})"


def expressions(chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """One expression for each function, operator and cast, with the types of its columns."""
    for name, choices in overloads().items():
        parameters, more = chance.choice(choices)
        kinds = [kind_for(each, chance) for each in [*parameters, *[more] * (chance.randrange(3) if more else 0)]]
        yield written(name, [f"c{at}{COLUMNS[kind].cast}" for at, kind in enumerate(kinds)], chance), kinds
    for word in COMPARED:
        kind = chance.choice(KINDS)
        a, b = (f"c{at}{COLUMNS[kind].cast}" for at in (0, 1))
        yield (
            {
                "in": f"{a} in ({b}, {a})",
                "between": f"{a} between {b} and {a}",
                "coalesce": f"coalesce({a}, {b})",
                "[]": f"{a}[c1]",
                "case": f"case when {a} = {b} then {a} else {b} end",
            }.get(word, f"{a} {word} {b}"),
            [kind, "BIGINT" if word == "[]" else kind],
        )
    for kind in CASTS:
        of = chance.choice([*KINDS, *["VARCHAR"] * len(KINDS)])
        yield f"{chance.choice(['cast', 'try_cast'])}(c0{COLUMNS[of].cast} as {kind})", [of]


def row(kinds: list[str], chance: random.Random, odd: bool) -> list[pa.Array]:
    made = []
    for kind in kinds:
        column = COLUMNS[kind]
        values = [*column.odd, pa.nulls(1, column.plain[0].type)] if odd and chance.random() < 0.7 else column.plain
        made.append(chance.choice(values))
    return made


def outcome(query: sql.RowQuery, rows: list[list[pa.Array]]) -> list[object] | str:
    """What is said of each row; or that the query is wrong."""
    arrays = [pa.concat_arrays(list(column)) for column in zip(*rows, strict=True)]
    try:
        (found,), failed = query.computes([arrays[int(str(name)[1:])] for name in query.reads])
    except ParameterError:
        return "wrong"
    return ["bad" if bad else value for value, bad in zip(found.to_pylist(), failed, strict=True)]


def check(expression: str, kinds: list[str], chance: random.Random) -> str:
    """What became of a query: "computed", or "wrong"."""
    text = f"select {chance.choice(AROUND).format(expression)} as v from files"
    say(text, kinds)
    try:
        query = sql.select(text).bound(["v"])
    except ParameterError:
        return "wrong"
    plain = [row(kinds, chance, odd=False) for _ in range(PLAIN_ROWS)]
    alone = outcome(query, plain)
    for _ in range(ODD_ROWS):
        at = chance.randrange(PLAIN_ROWS + 1)
        found = outcome(query, [*plain[:at], row(kinds, chance, odd=True), *plain[at:]])
        if isinstance(found, list):
            del found[at]
        assert found == alone, (text, kinds, at)
    return "wrong" if isinstance(alone, str) else "computed"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()  # the last line is what a crash was about


def main(seed: int, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    chance, end = random.Random(seed), time.monotonic() + seconds
    ends = {"computed": 0, "wrong": 0}
    while True:
        for expression, kinds in expressions(chance):
            if kinds:
                ends[check(expression, kinds, chance)] += 1
            if seconds and time.monotonic() > end:
                break
        if time.monotonic() >= end:
            break
    say(*(f"{what}: {count}" for what, count in ends.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
