"""Cases of `discreet.questions`: every question with every word, of a table with all that real ones have."""

import datetime
import decimal
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.golden.answers.pin import each, told, tried
from tests.golden.commands.tables import Numbers

import discreet as dc
from discreet.noise import seeded_source
from discreet.questions import KINDS, kind_of
from discreet.questions.answer import charge_id_of, data_of
from discreet.questions.live_question import LiveQuestion
from discreet.questions.plans import preview
from discreet.questions.report import Report, read_report
from discreet.questions.words import from_text, words_of
from discreet.storage import read_toml

BUDGET, PURE, RHO = dc.Budget(1.5, 1e-4), dc.Budget(1.5), dc.Budget.zcdp(0.3)
PAGES = [f"/p{n}" for n in range(6)]
GROUPS = ["de", "fr", "jp"]


def table(number=700, people=90):
    """Rows of people: blanks and nulls, NaN and infinities, times in a week, lists, odd types."""
    chance, columns = Numbers(7), {}
    rows = []
    for row in range(number):
        size = chance.skewed(120) - 8.25
        rows.append(
            {
                "page": None if row % 41 == 7 else "" if row % 53 == 8 else f"/p{chance.skewed(9)}",
                "who": None if row % 83 == 9 else f"v{chance.skewed(people):03}",
                "country": (*GROUPS[:2], "in", "br")[chance.skewed(4)],
                "ts": datetime.datetime(2025, 6, 2) + datetime.timedelta(minutes=14 * row),
                "ms": None if row % 61 == 5 else chance.skewed(900),
                "size": (float("nan"), float("inf"), -float("inf"))[row % 3] if row % 47 == 6 else size,
                "status": (200, 404, 500)[chance.below(3)],
                "bag": [f"i{chance.skewed(7)}" for _ in range(chance.below(5))],
                "price": decimal.Decimal(chance.below(400)) / 100,
                "day": datetime.date(2025, 6, 2 + chance.below(5)),
                "yes": bool(chance.below(2)),
            }
        )
    for name in rows[0]:
        columns[name] = [row[name] for row in rows]
    columns["status"] = pa.array(columns["status"], pa.uint16())
    columns["country"] = pa.array(columns["country"]).dictionary_encode()
    return pa.table(columns)


TABLE = table()
NAMES = pa.table({"page": [f"/p{n}" for n in range(9)], "topic": [("news", "sport", "art")[n % 3] for n in range(9)]})
SKIP = {"nulls": "skip"}


def ask(function, *given, data=None, budget=BUDGET, seed=1, **words):
    """A question with a source of its own: the answer, and what it warns of."""
    words |= {"quantiles": given[0]} if function == "quantiles" else {}
    given = () if function == "quantiles" else given

    def answered():
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            answer = tried(
                lambda: getattr(dc, function)(
                    TABLE if data is None else data(), *given, budget=budget, source=seeded_source(seed), **words
                )
            )
        said = {"answer": told(answer)}
        if warned:
            said["warned"] = sorted({f"{each.category.__name__}: {each.message}" for each in warned})
        return said

    return answered


TOP = {
    "rows": {"column": "page", **SKIP},
    "rows with nulls": {"column": "page"},
    "rows of no name": {},
    "length of rows": {"column": "page", "length": 1000, **SKIP},
    "total share": {"column": "page", "total_share": 0.25, **SKIP},
    "capacity": {"column": "page", "capacity": 3, **SKIP},
    "offset": {"column": "page", "mechanism": "offset", "capacity": 4, **SKIP},
    "stability": {"column": "page", "mechanism": "stability", **SKIP},
    "count-min": {"column": "page", "mechanism": "count_min", "capacity": 16, **SKIP},
    "count sketch": {"column": "page", "mechanism": "count_sketch", "capacity": 16, **SKIP},
    "shards": {"column": "page", "workers": 2, "capacity": 4, **SKIP},
    "numbers": {"column": "ms", **SKIP},
    "small numbers": {"column": "status"},
    "days": {"column": "day"},
    "truths": {"column": "yes"},
    "prices": {"column": "price"},
    "floats": {"column": "size", **SKIP},
    "two columns": {"column": ["status", "country"]},
    "by": {"column": "page", "by": "country", **SKIP},
    "by two": {"column": "page", "by": ["country", "status"], **SKIP},
    "by listed groups": {"column": "page", "by": "country", "groups": GROUPS, **SKIP},
    "by day": {"column": "page", "every": "2d", "time": "ts", "zone": "Europe/Berlin", **SKIP},
    "by day and country": {"column": "page", "every": "1w", "time": "ts", "by": "country", **SKIP},
    "where": {"column": "page", "where": "status <> 404 and ms > 3", **SKIP},
    "lookup": {"column": "topic", "lookup": NAMES, "on": "page", **SKIP},
    "max bad": {"column": "page", "max_bad": 0.5, **SKIP},
    "few bad": {"column": "page", "max_bad": 0.0001, **SKIP},
    "universe": {"column": "page", "universe": PAGES, **SKIP},
    "universe of numbers": {"column": "status", "universe": range(200, 600)},
    "values": {"column": "page", "value": "ms", "value_range": (0, 50), **SKIP},
    "people": {"column": "page", "user": "who", **SKIP},
    "people who have nulls": {"column": "page", "user": "who"},
    "people of few items": {"column": "page", "user": "who", "max_items": 2, **SKIP},
    "rows of people": {"column": "page", "user": "who", "count": "rows", **SKIP},
    "sums of people": {"column": "page", "user": "who", "value": "ms", "value_range": (0, 50), **SKIP},
    "pairs": {"column": "page", "user": "who", "pairs": 2, **SKIP},
    "triples": {"column": "page", "user": "who", "pairs": 3, **SKIP},
    "people by": {"column": "page", "user": "who", "by": "country", **SKIP},
    "people by listed groups": {"column": "page", "user": "who", "by": "country", "groups": GROUPS, **SKIP},
    "people by day": {"column": "page", "user": "who", "every": "1w", "time": "ts", **SKIP},
    "people of two columns": {"column": ["page", "status"], "user": "who", **SKIP},
    "people where": {"column": "page", "user": "who", "where": "yes", **SKIP},
    "people of a lookup": {"column": "topic", "lookup": NAMES, "on": "page", "user": "who", **SKIP},
    "people of a universe": {"column": "page", "user": "who", "universe": PAGES, "max_items": 3, **SKIP},
    "lists": {"column": "bag", "unit": dc.User(), **SKIP},
    "lists of few items": {"column": "bag", "unit": dc.User(2), **SKIP},
    "pairs of lists": {"column": "bag", "unit": dc.User(), "pairs": 2, **SKIP},
    "people's days": {
        "column": "page",
        "user": "who",
        "unit": dc.User(per="1d"),
        "time": "ts",
        "period": ("2025-06-02", "2025-06-09"),
        **SKIP,
    },
    "rows as replaced": {"column": "page", "unit": dc.Replace(), **SKIP},
}
NUMBERS = {
    "rows": {},
    "people": {"user": "who", **SKIP},
    "where": {"where": "status = 200"},
    "by": {"by": "country"},
    "by listed groups": {"by": "country", "groups": GROUPS},
    "by two": {"by": ["country", "status"]},
    "by day": {"every": "1d", "time": "ts", "zone": "Asia/Kolkata"},
    "by hours and country": {"every": "12h", "time": "ts", "by": "country"},
    "by months": {"every": "1mo", "time": "ts"},
    "people by": {"user": "who", "by": "country", **SKIP},
    "people by listed groups": {"user": "who", "by": "country", "groups": GROUPS, **SKIP},
    "people by day": {"user": "who", "every": "2d", "time": "ts", **SKIP},
    "sure": {"confidence": 0.7},
    "sure of people": {"user": "who", "confidence": 0.99, **SKIP},
    "sure of groups": {"by": "country", "confidence": 0.5},
    "lookup": {"by": "topic", "lookup": NAMES, "on": "page", **SKIP},
    "people's days": {
        "user": "who",
        "unit": dc.User(per="1d", zone="Europe/Berlin"),
        "time": "ts",
        "period": "2025-06-03",
        **SKIP,
    },
    "zcdp": {"budget": RHO},
    "zcdp of groups": {"budget": RHO, "by": "country", "groups": GROUPS},
    "zcdp of people": {"budget": RHO, "user": "who", **SKIP},
    "pure": {"budget": PURE},
}
VALUES = {"column": "size", "range": (-5.0, 60.0)}
QUANTILES = {
    "log": {"range": (0.5, 100.0), "scale": "log"},
    "bins": {"bins": 7},
    "many bins": {"bins": 300, "mechanism": "tree"},
    "chosen": {"mechanism": "choice"},
    "dates": {"column": "day", "range": ("2025-06-01", "2025-06-30")},
    "whole numbers": {"column": "ms", "range": (0, 100), **SKIP},
    "decimals": {"column": "price", "range": (0, 4)},
    "max rows": {"user": "who", "max_rows": 3, **SKIP},
    "listed": {"by": "country", "groups": GROUPS},
}
HISTOGRAM = {
    "rows": {},
    "people": {"user": "who", "max_items": 2},
    "delta": {"budget": BUDGET},
    "by": {"by": "country", "groups": GROUPS},
    "people by": {"by": "country", "groups": GROUPS, "user": "who", "max_items": 2},
    "where": {"where": "ms > 10"},
    "days": {"column": "day", "universe": [datetime.date(2025, 6, n) for n in range(1, 5)]},
    "ranges": {"column": "status", "universe": range(199, 405)},
    "zcdp": {"budget": RHO},
    "max bad": {"max_bad": 0.3},
}


def refused(function, base, *changes):
    """What is refused, in which words."""

    def answered():
        return [
            [sorted(map(str, change)), told(tried(lambda change=change: type(_with(function, base, change)).__name__))]
            for change in changes
        ]

    return answered


def _with(function, base, change):
    words = {**base, **change}
    given = [words.pop("k")] if "k" in words else []
    return getattr(dc, function)(words.pop("data", TABLE), *given, budget=words.pop("budget", BUDGET), **words)


WRONG = (
    {"column": "none"},
    {"user": "none"},
    {"by": "none"},
    {"by": "page"},
    {"every": "1d"},
    {"time": "ts"},
    {"zone": "UTC"},
    {"every": "1d", "time": "page"},
    {"every": "1x", "time": "ts"},
    {"every": "1d", "time": "ts", "zone": "Nowhere"},
    {"groups": ["a"]},
    {"by": "country", "groups": []},
    {"by": "country", "groups": ["a", "a"]},
    {"by": "country", "groups": [("a", "b")]},
    {"by": ["country", "country"]},
    {"where": "none = 1"},
    {"where": "sum(ms) > 1"},
    {"where": ""},
    {"where": "page ="},
    {"where": 5},
    {"lookup": NAMES},
    {"on": "page"},
    {"lookup": NAMES, "on": "who"},
    {"lookup": NAMES, "on": "none"},
    {"lookup": pa.table({"page": ["a", "a"], "t": ["b", "c"]}), "on": "page"},
    {"nulls": "keep"},
    {"bad_rows": "keep"},
    {"max_bad": 0.0},
    {"max_bad": 1.0},
    {"max_bad": "x"},
    {"max_bad": 0.00001},
    {"unit": "person"},
    {"unit": dc.Element()},
    {"unit": dc.User(per="1d")},
    {"period": "2025-06-02"},
    {"charge_id": "a"},
    {"ledger": "a"},
    {"source": 5},
    {"budget": 1.0},
    {"confidence": 0},
    {"confidence": 1},
    {"confidence": 0.5},
    {"colour": 1},
    {"unit": dc.User(per="1d"), "user": "who", "time": "ts"},
    {"request": "other"},
    {"data": 5},
    {"data": "text"},
    {"data": pa.table({"a": [1.5]})},
    {"data": {"page": ["a"]}},
    {"user": ["a", "b"]},
    {"user": "page"},
    {"user": 5},
    {"by": ("a",) * 20},
    {"column": 5},
    {"column": ["a", 5]},
    {"column": []},
    {"k": 0},
    {"k": True},
    {"k": 2.5},
    {"max_items": 0},
    {"max_items": 2},
    {"value": "ms"},
    {"value_range": (0, 1)},
    {"value": "ms", "value_range": (1, 0)},
    {"value": "page", "value_range": (0, 1), "user": "who"},
    {"universe": []},
    {"universe": ["a", "a"]},
    {"universe": 5.5},
    {"universe": PAGES, "capacity": 5},
    {"pairs": 2},
    {"pairs": 4, "user": "who"},
    {"count": "rows"},
    {"count": "items"},
    {"mechanism": "magic"},
    {"mechanism": 5},
    {"mechanism": "offset", "user": "who"},
    {"capacity": 0},
    {"capacity": 2**31},
    {"capacity": 5, "memory": "1GB"},
    {"memory": "lots"},
    {"memory": "1MB"},
    {"length": 0},
    {"length": -1},
    {"total_share": 0},
    {"total_share": 1},
    {"workers": 0},
    {"workers": 129},
    {"workers": 2, "user": "who"},
    {"grouped": True},
    {"range": (1, 0)},
    {"range": (0,)},
    {"range": None},
    {"range": ("a", "b")},
    {"range": (0, 1e200)},
    {"scale": "cubic"},
    {"scale": "log"},
    {"bins": 1},
    {"bins": 2**21},
    {"max_rows": 0},
    {"max_rows": 2},
    {"quantiles": []},
    {"quantiles": [0.0]},
    {"quantiles": [0.5, 0.5]},
    {"quantiles": "half"},
    {"mechanism": "tree"},
    {"mechanism": "choice", "bins": 300},
    {"column": "bag"},
    {"column": "page", "unit": dc.Replace(), "user": "who"},
)


def reports():
    questions = {
        "Pages": dc.Top(column="page", k=3),
        "By day": dc.Top(column="page", k=2, every="1w"),
        "People": dc.Count(),
        "Sizes": dc.Quantiles(column="size", range=(0, 60), quantiles=[0.5]),
        "Mean": dc.Mean(column="ms", range=(0, 90)),
        "Pages there are": dc.Distinct(column="page"),
        "Listed": dc.Histogram(column="page", universe=PAGES, max_items=2),
    }
    yield "people", Report(questions, BUDGET, user="who", time="ts", nulls="skip", title="A week")
    few = {title: questions[title] for title in ("Pages", "Sizes", "Mean", "Pages there are")}
    yield "rows", Report(few, BUDGET, nulls="skip", shares={"Pages": 0.5}, where="status = 200", confidence=0.9)
    yield "zcdp", Report(few, RHO, nulls="skip", shares=[0.1, None, None, 0.4])
    yield "one", Report([dc.Count(user="who")], PURE, nulls="skip")
    yield "untitled", Report([dc.Count(), dc.Count(where="yes"), dc.Sum(column="ms", range=(0, 9))], PURE, nulls="skip")


def report_told(name):
    def answered():
        made = dict(reports())[name]
        found = made.answer(TABLE, source=seeded_source(3))
        return {
            "asked": made.to_dict(),
            "shares": made.shares,
            "confidence": made.each_confidence,
            "preview": tried(lambda: made.preview()) if hasattr(made, "preview") else None,
            "budgets": [str(each) for each in getattr(made, "budgets", {}).values()],
            "answer": told(found),
        }

    return answered


TOML = """title = "Week"
epsilon = 2.0
delta = 1e-5
user = "who"
nulls = "skip"
[[questions]]
kind = "top"
column = "page"
k = 3
share = 0.25
[[questions]]
kind = "count"
title = "People"
"""
TOMLS = {
    "plain": TOML,
    "rho": TOML.replace("epsilon = 2.0\ndelta = 1e-5", "rho = 0.1"),
    "no budget": TOML.replace("epsilon = 2.0\n", ""),
    "both budgets": TOML + "rho = 1\n",
    "no kind": TOML.replace('kind = "count"\n', ""),
    "unknown kind": TOML.replace('"count"', '"counts"'),
    "unknown word": TOML.replace("k = 3", "kk = 3"),
    "unknown key": "colour = 1\n" + TOML,
    "no questions": TOML.partition("[[")[0],
    "too large a share": TOML.replace("0.25", "1.25"),
    "all of it": TOML.replace("0.25", "1.0"),
    "a title twice": TOML.replace('column = "page"', 'column = "page"\ntitle = "People"'),
    "text for a number": TOML.replace("k = 3", 'k = "3"'),
    "not toml": "title =",
    "a table": TOML.replace("[[questions]]", "[questions]", 1),
    "dashes": TOML.replace("k = 3", "k = 3\nmax-items = 2"),
}


def toml(text):
    def answered(folder):
        (folder / "report.toml").write_text(text)
        made, reading = read_report(read_toml(folder / "report.toml"))
        return [made.to_dict(), str(made.budget), made.shares, reading]

    return answered


def words():
    """Every word of every question: how it is given, what it says of itself, what is refused of values of all kinds."""
    found = {}
    for kind in (*KINDS, "live"):
        question = LiveQuestion if kind == "live" else kind_of(kind)
        for each_word in words_of(question):
            found[f"{kind} {each_word.name}"] = [
                told(each_word.default) if each_word.name != "mechanism" else "auto",
                each_word.help,
                each_word.kind.shown,
                each_word.kind.several,
                each_word.letter,
                each_word.in_python_only,
            ]
    return found


def spoken(kind, texts):
    """Words as texts, as a command and TOML give them."""

    def answered():
        return [
            [name, text, told(tried(lambda name=name, text=text: from_text(kind_of(kind), {name: text})[name]))]
            for name, given in texts.items()
            for text in given
        ]

    return answered


TEXTS = {
    "column": ["a", "", ("a", "b")],
    "k": ["5", "0", "x", 5],
    "by": ["a,b", ("a", "b")],
    "value_range": [("0", "5"), ("5", "0"), ("a", "b")],
    "universe": ["5", "2:9", "9:2", "none.txt", "strings", "0"],
    "max_bad": ["5%", "0.5", "101%", "x"],
    "pairs": ["2", "4"],
    "capacity": ["10", "0"],
    "total_share": ["0.5", "1"],
    "workers": ["2", "-1"],
    "every": ["1d", "1y"],
    "unit": ["row", "person", "person-day", "house"],
    "period": ["2025-06-02", "x"],
    "groups": ["none.txt"],
    "nulls": ["skip", "x"],
    "memory": ["1GB"],
    "count": ["rows", "people", "x"],
}


def files(folder):
    """The same question of files of every kind, one and several, has the same answer."""
    rows = (
        TABLE.select(["page", "who", "status"])
        .drop_null()
        .cast(pa.schema([("page", pa.string()), ("who", pa.string()), ("status", pa.int64())]))
    )
    pq.write_table(rows, folder / "rows.parquet", row_group_size=100)
    import pyarrow.csv

    pyarrow.csv.write_csv(rows, folder / "rows.csv")
    (folder / "rows.jsonl").write_text("".join(f"{row}\n" for row in map(_json, rows.to_pylist())))
    for place, (first, last) in enumerate(((0, 300), (300, 301), (301, 9999))):
        pyarrow.csv.write_csv(rows.slice(first, last - first), folder / f"part{place}.csv")
    found = []
    for data in (
        rows,
        dc.read(folder / "rows.parquet"),
        dc.read(folder / "rows.csv"),
        dc.read(folder / "rows.jsonl"),
        dc.read(*sorted(folder.glob("part*.csv"))),
        dc.read(folder / "rows.csv", sql="select * from files"),
    ):
        top = dc.top_k(data, 5, BUDGET, column="page", source=seeded_source(1))
        people = dc.top_k(data, 5, BUDGET, column="page", user="who", source=seeded_source(1))
        counted = dc.count(data, BUDGET, by="status", source=seeded_source(1))
        found.append([list(top), list(people), list(counted)])
    return [found[0], [each == found[0] for each in found]]


def _json(row):
    import json

    return json.dumps(row)


def charges(folder):
    """What a charge about a day is known by: question, budget and files decide it. Here ids have numbers."""
    days = {"user": "who", "unit": dc.User(per="1d"), "time": "ts"}
    asked = [
        dc.Count(**days, period="2025-06-02"),
        dc.Count(**days, period=("2025-06-02", "2025-06-04")),
        dc.Count(**days, period="2025-06-02", nulls="skip"),
        dc.Top(**days, period="2025-06-02", column="page", k=3),
        dc.Top(**days, period="2025-06-02", column="page", k=4),
        dc.Count(),
    ]
    known, found = {None: None}, []
    for name in ("one.csv", "other.csv", "one.csv"):
        (folder / name).write_text("ts,who,page\n2025-06-02,a,b\n")
        data = data_of(dc.read(folder / name))
        for budget in (BUDGET, PURE):
            ids = [charge_id_of(question, data, budget) for question in asked]
            found.append([known.setdefault(each, f"{len(known)}: {(each or '')[:-16]}") for each in ids])
    return [found, charge_id_of(asked[0], data_of(TABLE), BUDGET)]


def kept(folder):
    """Charges, their details, and the same answer again, of every kind of question."""
    ledger, out = dc.Ledger(folder / "ledger.sqlite"), []
    ledger.grant("a", dc.Budget(15.0, 1e-3), unit=dc.User())
    account = ledger.account("a")
    people = {"user": "who", **SKIP, "ledger": account}
    for name, function, given in (
        ("top", dc.top_k, {"k": 3, "column": "page"}),
        ("count", dc.count, {}),
        ("by", dc.count, {"by": "country"}),
        ("distinct", dc.distinct, {"column": "page"}),
        ("sum", dc.sum, {"column": "ms", "range": (0, 9)}),
        ("quantiles", dc.quantiles, {"column": "ms", "range": (0, 9)}),
        ("histogram", dc.histogram, {"column": "page", "universe": PAGES, "max_items": 1}),
    ):
        answers = [function(TABLE, budget=BUDGET, **given, **people, charge_id=name) for _ in range(2)]
        texts = [told(answer) for answer in answers]
        changed = tried(
            lambda function=function, given=given, name=name: function(
                TABLE, budget=dc.Budget(1.0, 1e-4), **given, **people, charge_id=name
            )
        )
        out.append([name, texts[0] == texts[1], [getattr(answer, "payment", None) for answer in answers], changed])
    spent = account.statement()
    return [out, str(spent.spent), spent.charges, [told(getattr(each, "details", None)) for each in account.history()]]


PLANS = {
    "rows": lambda: dc.plan(10_000, BUDGET),
    "k": lambda: dc.plan(10_000, BUDGET, k=3),
    "capacity": lambda: dc.plan(10_000, BUDGET, 50),
    "memory": lambda: dc.plan(10_000, BUDGET, memory="200MB"),
    "published": lambda: dc.plan(10_000, BUDGET, published=True),
    "sure": lambda: dc.plan(10_000, BUDGET, confidence=0.5),
    "users": lambda: dc.plan(10_000, BUDGET, unit=dc.User(5)),
    "pure": lambda: dc.plan(10_000, PURE),
    "zcdp": lambda: dc.plan(10_000, RHO),
    "none": lambda: dc.plan(0, BUDGET),
    "capacity and memory": lambda: dc.plan(10, BUDGET, 5, memory="1GB"),
    "people": lambda: dc.plan_people(5000, BUDGET),
    "people of many items": lambda: dc.plan_people(5000, BUDGET, 7, 40.5, 0.8),
    "no people": lambda: dc.plan_people(-1, BUDGET),
    "people without delta": lambda: dc.plan_people(5000, PURE),
    "questions": lambda: dc.plan_questions(BUDGET),
    "questions of many": lambda: dc.plan_questions(BUDGET, listed=7, max_items=3, max_rows=5, confidence=0.7),
    "pure questions": lambda: dc.plan_questions(PURE),
    "zcdp questions": lambda: dc.plan_questions(RHO),
    "a row": lambda: dc.plan(10_000, BUDGET).row("Offset"),
    "no row": lambda: dc.plan(10_000, BUDGET).row("Offse"),
}


def planned(make):
    def answered():
        made = make()
        if not hasattr(made, "to_dict"):
            return made
        return [
            str(made),
            made.to_dict(),
            len(made._repr_html_()),
            told(made.to_arrow()) if hasattr(made, "to_arrow") else None,
        ]

    return answered


def previews():
    questions = {
        "top": dc.Top(column="page", k=3),
        "people": dc.Top(column="page", user="who"),
        "pairs": dc.Top(column="page", user="who", pairs=2),
        "by": dc.Top(column="page", by="country"),
        "count": dc.Count(),
        "count of people": dc.Count(user="who"),
        "by country": dc.Count(by="country"),
        "listed": dc.Count(by="country", groups=GROUPS),
        "distinct": dc.Distinct(column="page"),
        "distinct of people": dc.Distinct(column="page", user="who"),
        "sum": dc.Sum(column="ms", range=(0, 9)),
        "mean": dc.Mean(column="ms", range=(-4, 9), user="who"),
        "variance": dc.Variance(column="ms", range=(0, 9)),
        "quantiles": dc.Quantiles(column="ms", range=(0, 9)),
        "histogram": dc.Histogram(column="page", universe=PAGES),
        "universe": dc.Top(column="page", universe=PAGES),
        "lists": dc.Top(column="bag", unit=dc.User(3)),
        "values": dc.Top(column="page", user="who", value="ms", value_range=(0, 9)),
    }
    return {
        name: [
            tried(lambda b=budget, q=question, c=sure: preview(q, b, c))
            for budget, sure in ((BUDGET, 0.95), (PURE, 0.5), (RHO, 0.9))
        ]
        for name, question in questions.items()
    }


CASES = {
    **{
        f"top: {name}": ask("top_k", given.get("k", 4), **{k: v for k, v in given.items() if k != "k"})
        for name, given in TOP.items()
    },
    "top: zcdp": ask("top_k", 4, budget=RHO, column="page", universe=PAGES, **SKIP),
    "top: sketches of people": ask("top_k", 4, data=lambda: [["a", "b"], ["a"], ["c", "a", "b"]] * 60, unit=dc.User(2)),
    "top: a list": ask("top_k", 4, data=lambda: ["a", "b", "a"] * 90),
    "top: an array": ask("top_k", 4, data=lambda: np.arange(400) % 5),
    "top: plain dictionaries": ask("top_k", 4, data=lambda: {"page": ["a", "b"] * 90}, column="page"),
    **{f"count: {name}": ask("count", **given) for name, given in NUMBERS.items()},
    "count: a column": ask("count", column="page", **SKIP),
    **{f"distinct: {name}": ask("distinct", **{"column": "page", **SKIP, **given}) for name, given in NUMBERS.items()},
    "distinct: people": ask("distinct", column="who", user="who", **SKIP),
    "distinct: few items": ask("distinct", column="page", user="who", max_items=2, **SKIP),
    **{f"sum: {name}": ask("sum", **{**VALUES, **given}) for name, given in NUMBERS.items()},
    **{f"mean: {name}": ask("mean", **{**VALUES, **given}) for name, given in NUMBERS.items()},
    **{f"variance: {name}": ask("variance", **{**VALUES, **NUMBERS[name]}) for name in ("by", "people", "zcdp")},
    "sum: above 0": ask("sum", column="ms", range=(0, 900), user="who", **SKIP),
    "sum: decimals": ask("sum", column="price", range=(0, 4)),
    "sum: whole numbers, with nulls": ask("sum", column="ms", range=(0, 900)),
    **{
        f"quantiles: {name}": ask("quantiles", given.get("quantiles", [0.1, 0.5]), **{**VALUES, **given})
        for name, given in {**NUMBERS, **QUANTILES}.items()
    },
    **{
        f"histogram: {name}": ask("histogram", **{"column": "page", "universe": PAGES, "budget": PURE, **SKIP, **given})
        for name, given in HISTOGRAM.items()
    },
    **{f"report: {name}": report_told(name) for name, _ in reports()},
    **{f"toml: {name}": toml(text) for name, text in TOMLS.items()},
    "refused of top": refused("top_k", {"k": 3, "column": "page", **SKIP}, *WRONG),
    "refused of people": refused("top_k", {"k": 3, "column": "page", "user": "who", **SKIP}, *WRONG),
    "refused of count": refused("count", SKIP, *WRONG),
    "refused of distinct": refused("distinct", {"column": "page", **SKIP}, *WRONG),
    "refused of sum": refused("sum", {**VALUES, **SKIP}, *WRONG),
    "refused of quantiles": refused("quantiles", {**VALUES, **SKIP}, *WRONG),
    "refused of histogram": refused("histogram", {"column": "page", "universe": PAGES, **SKIP}, *WRONG),
    "words": words,
    "texts of top": spoken("top", TEXTS),
    "texts of quantiles": spoken(
        "quantiles",
        {"quantiles": [("0.5",), ("x",)], "range": [("0", "1"), ("1", "0")], "bins": ["2", "1"], "scale": ["log", "x"]},
    ),
    "files": files,
    "charges": charges,
    "kept": kept,
    **{f"plan: {name}": planned(make) for name, make in PLANS.items()},
    "previews": previews,
    "limits of k": lambda: each(lambda k: dc.Top(column="a", k=k).k, 1, 2**30, 2**30 + 1, 0),
    "limits of shares": lambda: each(
        lambda s: dc.Top(column="a", max_bad=s).max_bad, 0.0001, 0.00011, 0.00009, 0.9999, "5%", "x%"
    ),
}
