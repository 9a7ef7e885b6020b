"""All commands do what they did: what they write, say, charge and store, and how they end.

`tests/golden/commands/cases.py` has the commands, the files beside it what they do. Where something is meant to change,
`python tests/golden/commands/pin.py --write` writes the files again, and the difference is part of the commit.
"""

import json
import math
import zlib

import pyarrow.csv
import pytest
from tests.golden.commands.cases import CASES
from tests.golden.commands.pin import answers, first_of, pinned, plain, repeated
from tests.golden.commands.tables import PAGES, write_tables

import discreet as dc
from discreet.noise import seeded_source

BUDGET = dc.Budget(1.0, 1e-6)
PAGE = [f"/p{n}" for n in range(PAGES)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    return folder


@pytest.mark.parametrize(("group", "case"), [(group, case) for group in CASES for case in CASES[group]])
def test_commands_do_what_they_did(group, case, tables):
    for now, before in zip(answers(group, case, tables), pinned(group)[case], strict=True):
        assert now == before


def test_nothing_else_is_pinned():
    assert {group: list(cases) for group, cases in CASES.items()} == {group: list(pinned(group)) for group in CASES}


def test_a_replay_says_what_the_charge_said():
    """The second command has other random words, so it has read and not drawn."""
    ledger = pinned("ledger")
    for case, first in (("replay of top", 1), ("replay of people", 1), ("replay of groups", 1), *_NUMBERS):
        assert ledger[case][first]["out"] == ledger[case][first + 1]["out"]
        assert any("replayed, not charged" in line for line in ledger[case][first + 1]["err"])


_NUMBERS = [("replay of numbers", first) for first in (1, 3, 5, 7)]


def questions():
    """The group and the case of a command, and the same question in Python."""
    column = {"column": "page"}
    people = {"column": "page", "user": "visitor"}
    half, one = dc.Budget(0.5), dc.Budget(1.0)
    top = {
        "rows": column,
        "total share": {**column, "total_share": 0.2, "k": 5},
        "capacity": {**column, "capacity": 64},
        "length": {**column, "length": 10000},
        "where": {**column, "where": "status = 404 and page <> '/p1'"},
        "offset": {**column, "mechanism": "offset"},
        "stability": {**column, "mechanism": "stability"},
        "count sketch": {**column, "mechanism": "count_sketch", "k": 5},
        "workers 2": {**column, "workers": 2},
        "rows of several columns": {"column": ["page", "country"], "k": 6},
        "by": {**column, "by": "country", "k": 3},
        "every": {**column, "every": "1d", "time": "ts", "k": 3},
        "every zone": {**column, "every": "2d", "time": "ts", "zone": "Europe/Berlin", "k": 2},
        "by groups": {**column, "by": "country", "groups": ["de", "fr", "jp"], "k": 3},
    }
    for case, asked in top.items():
        yield "top-rows", case, lambda t, asked=asked, **how: dc.top_k(t, **{"k": 100, **asked}, budget=BUDGET, **how)
    top = {
        "people": people,
        "max items": {**people, "max_items": 4},
        "rows": {**people, "count": "rows"},
        "sums": {**people, "value": "ms", "value_range": (0, 500)},
        "where": {**people, "where": "status = 200", "k": 5},
        "workers 2": {**people, "workers": 2},
        "by": {**people, "by": "country", "k": 3},
        "every": {**people, "every": "1d", "time": "ts", "k": 2},
        "two columns": {"column": ["page", "country"], "user": "visitor", "k": 5},
    }
    for case, asked in top.items():
        yield "top-people", case, lambda t, asked=asked, **how: dc.top_k(t, **{"k": 100, **asked}, budget=BUDGET, **how)
    yield "count", "rows", lambda t, **how: dc.count(t, half, **how)
    yield "count", "people", lambda t, **how: dc.count(t, half, user="visitor", **how)
    yield "count", "where", lambda t, **how: dc.count(t, half, where="status = 404", **how)
    yield "distinct", "rows", lambda t, **how: dc.distinct(t, BUDGET, column="visitor", **how)
    yield "distinct", "people", lambda t, **how: dc.distinct(t, BUDGET, column="visitor", user="visitor", **how)
    yield "distinct", "values credited", lambda t, **how: dc.distinct(t, BUDGET, column="page", user="visitor", **how)
    yield (
        "distinct",
        "values credited max items",
        lambda t, **how: dc.distinct(t, BUDGET, column="page", user="visitor", max_items=2, **how),
    )
    listed = {"column": "page", "universe": PAGE}
    yield "histogram", "rows", lambda t, **how: dc.histogram(t, one, **listed, **how)
    yield "histogram", "people", lambda t, **how: dc.histogram(t, one, **listed, user="visitor", max_items=3, **how)
    within = {"range": (0, 2000), "bins": 500}
    yield "quantiles", "rows", lambda t, **how: dc.quantiles(t, one, column="ms", **within, **how)
    yield "quantiles", "people", lambda t, **how: dc.quantiles(t, one, column="ms", user="visitor", **within, **how)


def in_words(answer):
    """What Python returns, as the command writes it."""
    if isinstance(answer, dc.Estimate):
        upper = None if math.isinf(answer.upper) else answer.upper
        return {
            "value": answer.value,
            "lower": answer.lower,
            "upper": upper,
            "guarantee": answer.guarantee.to_dict(),
        }
    return json.loads(answer.to_json())


@pytest.mark.parametrize(("group", "case", "ask"), [pytest.param(*q, id=f"{q[0]}-{q[1]}") for q in questions()])
def test_python_answers_as_the_command_does(group, case, ask, tables):
    """From the same rows and the same random words, except that it says that they were seeded."""
    table = pyarrow.csv.read_csv(tables / "visits.csv", convert_options=_AS_TEXT)
    with repeated(first_of(group, case)):
        answer = ask(table, source=seeded_source(zlib.crc32(first_of(group, case).encode())))
    command = pinned(group)[case][0]["out"]
    assert answer.guarantee.seeded
    found = plain(in_words(answer), group)
    same = [key for key in found if key not in ("guarantee", "parameters")]
    assert {key: found[key] for key in same} == {key: command[key] for key in same}
    assert {**found["guarantee"], "seeded": False} == command["guarantee"]


_AS_TEXT = pyarrow.csv.ConvertOptions(column_types={"ts": pyarrow.string()})
