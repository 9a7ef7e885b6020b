"""Quantiles of numbers, dates and times in a public range: by a tree, and by recursive choice."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.commands import run_here

import discreet as dc
from discreet import _native
from discreet.central import Grid, QuantileChoice, QuantileTree, StepGrid
from discreet.central._quantiles import VOTE, RangeTree, best_tree
from discreet.central.quantile_choice import Found
from discreet.engines.amounts import Amounts
from discreet.errors import CorruptStateError, DataError, LedgerError, NotPublishedError, ParameterError
from discreet.events.tables import events_of
from discreet.noise import seeded_source
from discreet.questions.quantiles import mechanism_for

SURE = dc.Budget(19.0)
ROWS = {"who": ["a"] * 60 + ["b"] * 20 + ["c"] * 20, "n": list(range(100))}
BUDGETS = [dc.Budget(1.0), dc.Budget(0.3, 1e-6), dc.Budget.zcdp(0.2)]


def left_of(places):
    """What lies left of each boundary, as a matrix."""
    return np.vstack([np.zeros(places), np.tril(np.ones((places, places)))])


# ---- the tree --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("branching", "levels"), [(2, 1), (2, 4), (3, 3), (5, 2), (16, 1)])
def test_consistent_counts_are_the_least_squares_estimate(branching, levels):
    tree = RangeTree(branching, levels)
    leaves = tree.leaves
    counts = np.array([tree.counts(leaf) for leaf in np.eye(leaves, dtype=np.int64)]).T
    assert counts.shape == (tree.nodes, leaves)
    assert (counts.sum(axis=0) == levels).all()  # a row is in one node of every level
    solve = np.linalg.pinv(counts.astype(float))
    noisy = np.random.default_rng(1).integers(-9, 90, tree.nodes)
    assert tree.left_of(noisy) == pytest.approx(left_of(leaves) @ solve @ noisy)
    for share in (0.0, 0.3, 0.9):
        factors = (left_of(leaves) - share) @ solve
        squares, largest = tree.noises(np.arange(leaves + 1), share)
        assert squares == pytest.approx((factors**2).sum(axis=1))
        assert largest == pytest.approx(abs(factors).max(axis=1))


def test_the_best_tree_depends_on_the_noise():
    assert best_tree(65_536, dc.Budget(1.0), 1)[0] == RangeTree(16, 4)
    assert best_tree(65_536, dc.Budget.zcdp(0.1), 1)[0] == RangeTree(2, 16)
    assert best_tree(5, dc.Budget(1.0), 1)[0] == RangeTree(5, 1)
    for bins in (2, 3, 100, 1000):
        tree, noise = best_tree(bins, dc.Budget(0.5), 3)
        assert tree.leaves >= bins
        assert noise.scale == 3 * tree.levels * 2


def test_votes_of_one_with_very_many_rows_are_exact():
    """2^20 votes shared by 2^21 rows: what is divided has 65 bits."""
    grid = Grid(0, 4, 4)
    most = QuantileTree(SURE, grid, unit=dc.User(), max_rows=2**20)
    places = np.repeat(np.array([0, 1, 3], np.int32), [2**20, 2**20 - 5, 5])
    assert most.counts(places, np.zeros(2**21, np.int32)).tolist() == [2**43, 2**43 - 5 * 2**23, 0, 5 * 2**23]


@pytest.mark.parametrize("m", [1, 7, 2**20])
@pytest.mark.parametrize("rows", [1, 6, 2**20 + 1, 2**31 - 1, 2**31, 2**45 + 3])
def test_votes_are_rounded_down_and_never_wrap(rows, m):
    times = sorted({1, rows // 3 + 1, rows})
    expected = [VOTE * m * part // max(rows, m) for part in times]
    pairs = _native.Pairs(_native.Pairs.Entry.sums, 2, 1, 1)
    places = np.arange(len(times), dtype=np.int32)
    pairs.add(np.zeros(len(times), np.int32), places, np.array(times, np.int64))
    pairs.group()
    assert np.frombuffer(pairs.votes(VOTE, m, np.array([rows])), np.int64).tolist() == expected


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_reach_of_the_noise_is_exceeded_no_more_often_than_it_says(budget):
    mechanism, source, runs = QuantileTree(budget, Grid(0, 100, 100)), seeded_source(5), 600
    zero = np.zeros(100, np.int64)
    for share, beta in ((0.5, 0.1), (0.9, 0.3)):
        reach = mechanism.reach(share, beta)
        off = np.zeros((2, 101))
        for _ in range(runs):
            left = mechanism.tree.left_of(mechanism.draw(zero, source))
            noise = left[:101] - share * left[-1]
            off += noise > reach, noise < -reach
        # Seven standard deviations above what is allowed, at any of 404 boundaries and sides: below 1e-6.
        assert off.max() <= runs * beta / 2 + 7 * math.sqrt(runs * beta / 2)


# ---- answers ---------------------------------------------------------------------------------------------------------


def tables():
    import duckdb

    arrow = pa.table(ROWS)
    yield "dict", ROWS
    yield "arrow", arrow
    yield "reader", arrow.to_reader(7)
    yield "pandas", pd.DataFrame(ROWS)
    yield "polars", pl.DataFrame(ROWS)
    yield "lazy", pl.LazyFrame(ROWS)
    yield "duckdb", duckdb.from_arrow(arrow)


@pytest.mark.parametrize("name", [name for name, _ in tables()])
def test_every_table(name):
    rows = dc.quantiles(
        dict(tables())[name], SURE, [0.9, 0.5], column="n", range=(0, 100), bins=100, source=seeded_source(1)
    )
    assert rows.quantiles == (0.5, 0.9)
    assert rows[0.5].value == pytest.approx(50, abs=4)
    assert rows[0.9].value == pytest.approx(90, abs=4)
    people = dc.quantiles(
        dict(tables())[name], dc.Budget(15.0 * 50), 0.5, column="n", range=(0, 100), bins=100, user="who",
        source=seeded_source(1),
    )  # fmt: skip
    # a's 60 rows from 0 to 59 share one of three votes: half of all lies in b's rows, from 60 to 79.
    assert people[0.5].value == pytest.approx(70, abs=2)
    assert people.guarantee.unit == dc.User()


def test_votes_of_people():
    grid = Grid(0, 4, 4)
    people = np.array([0, 0, 0, 1, 2, 2])
    places = np.array([0, 0, 3, 1, 1, 2])
    one = QuantileTree(SURE, grid, unit=dc.User())
    assert one.counts(places, people).tolist() == [2 * VOTE // 3, VOTE + VOTE // 2, VOTE // 2, VOTE // 3]
    two = QuantileTree(SURE, grid, unit=dc.User(), max_rows=2)
    assert two.counts(places, people).tolist() == [4 * VOTE // 3, 2 * VOTE, VOTE, 2 * VOTE // 3]
    three = QuantileTree(SURE, grid, unit=dc.User(), max_rows=3)
    assert three.counts(places, people).tolist() == [2 * VOTE, 2 * VOTE, VOTE, VOTE]
    assert (one.height, two.height, three.height) == (VOTE, 2 * VOTE, 3 * VOTE)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_intervals_hold_and_nothing_falls(budget, scale):
    shares = (0.01, 0.25, 0.5, 0.75, 0.99)
    data = np.random.default_rng(2).lognormal(3, 1, 3000)
    mechanism = QuantileTree(budget, Grid(1, 2000, 500, scale), shares, confidence=0.8)
    counts, truth = mechanism.counts(mechanism.grid.places(data)), np.quantile(data, shares, method="inverted_cdf")
    truth, missed, runs = np.clip(truth, 1, 2000), 0, 60
    for seed in range(runs):
        answer = mechanism(counts, seeded_source(seed))
        lower, upper = (np.array([getattr(row, end) for row in answer]) for end in ("lower", "upper"))
        missed += not ((lower <= truth) & (truth <= upper)).all()
        for never_falls in (answer.values, lower, upper):
            assert (np.diff(never_falls) >= 0).all()
        assert all(row.lower <= row.value <= row.upper for row in answer)
    assert missed <= runs * 0.2 + 6 * math.sqrt(runs * 0.16)
    # And they are of use: those of the median are not the whole range.
    assert upper[2] - lower[2] < 20


def test_only_some_rows():
    asked = {"budget": dc.Budget(10.0), "range": (0, 100), "bins": 100}
    answer = dc.quantiles(ROWS, quantiles=0.5, column="n", where="who = 'a'", **asked)
    assert answer[0.5].value == pytest.approx(30, abs=12)
    with pytest.raises(ParameterError, match="where needs column"):
        dc.quantiles([1, 2], quantiles=0.5, where="n > 1", **asked)


def test_whole_numbers_stay_whole():
    ages = {"n": [31] * 400 + [47] * 600}
    answer = dc.quantiles(ages, dc.Budget(1.0), [0.2, 0.8], column="n", range=(0, 121), bins=121)
    assert answer.values == (31.0, 47.0)
    assert answer[0.2].lower <= 31 <= answer[0.2].upper


def test_values_outside_count_as_the_ends():
    values = [-5, 0, 0.5, math.inf, -math.inf, 1e300, 1.0, 10]
    assert Grid(0, 1, 2).places(np.array(values)).tolist() == [0, 0, 1, 1, 0, 1, 1, 1]
    beyond = dc.quantiles({"n": [10**9] * 1000}, dc.Budget(1.0), 0.5, column="n", range=(0, 10))
    assert 9.9 <= beyond[0.5].value <= beyond[0.5].upper == 10.0
    below = dc.quantiles({"n": [-3.5] * 1000}, dc.Budget(1.0), 0.5, column="n", range=(0, 10))
    assert below[0.5].lower == 0.0


def test_objects_of_many_kinds_are_read_row_by_row():
    mixed = {"n": [1, 2.5, Decimal("3"), "four", True, float("nan"), 10**400, None] * 50}
    answer = dc.quantiles(mixed, dc.Budget(10.0), 0.5, column="n", range=(0, 10), nulls="skip")
    assert 2 <= answer[0.5].value <= 3.1  # of 1, 2.5, 3 and 10
    assert dc.quantiles([1, 2, 3] * 100, SURE, 0.5, range=(0, 4), bins=4)[0.5].value == pytest.approx(2.5, abs=1)
    assert dc.quantiles(np.arange(100.0), SURE, 0.5, range=(0, 100))[0.5].value == pytest.approx(50, abs=8)


def test_nothing_is_there():
    for unit in ({}, {"user": "who"}):
        empty = {"who": pa.array([], pa.string()), "n": pa.array([], pa.float64())}
        answer = dc.quantiles(empty, dc.Budget(1.0), column="n", range=(0, 10), **unit)
        assert len(answer) == 3
        assert all(0 <= row.lower <= row.value <= row.upper <= 10 for row in answer)
    mechanism = QuantileTree(dc.Budget(1.0), Grid(0, 10, 64), (0.25, 0.5, 0.75))
    for seed in range(40):  # also where the noisy number of rows is negative
        values = mechanism(np.zeros(64, np.int64), seeded_source(seed)).values
        assert list(values) == sorted(values)


def test_the_answer_is_a_collection_and_goes_through_json():
    answer = dc.quantiles(ROWS, SURE, [0.25, 0.5], column="n", range=(0, 100))
    assert [row.quantile for row in answer] == [0.25, 0.5]
    assert answer.is_private
    assert dc.QuantileRelease.from_json(answer.to_json()) == answer
    assert dc.QuantileRelease.from_payload(answer.to_payload()) == answer
    assert dc.QuantileRelease.from_payload(answer.to_payload()).asked == answer.asked
    assert dc.QuantileRelease.from_json(answer.to_json()).asked == answer.asked
    assert answer.to_pandas()["value"].tolist() == list(answer.values)
    assert answer.to_csv().splitlines()[0] == "quantile,value,lower,upper"
    assert "0.25" in repr(answer)
    assert "<table>" in answer._repr_html_()
    assert "ends" in answer.explain()
    with pytest.raises(NotPublishedError, match=r"the release has 0.25, 0.5"):
        answer[0.75]
    for wrong in ("{}", "[]", "no", answer.to_json().replace('"linear"', "{").replace("range", "ran")):
        with pytest.raises(DataError):
            dc.QuantileRelease.from_json(wrong)
    with pytest.raises(CorruptStateError):
        dc.QuantileRelease.from_payload(answer.to_json().encode())


# ---- what is refused, and what it costs ------------------------------------------------------------------------------


def ask(column="n", budget=SURE, shares=(0.5,), table=ROWS, **how):
    return dc.quantiles(table, budget, shares, column=column, **{"range": (0, 10), **how})


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"shares": [0.0]}, ParameterError, "quantile must be greater than 0"),
        ({"shares": [1]}, ParameterError, "less than 1"),
        ({"shares": []}, ParameterError, "at least one"),
        ({"shares": "0.5"}, ParameterError, "numbers"),
        ({"shares": None}, ParameterError, "numbers"),
        ({"shares": [math.nan]}, ParameterError, "quantile"),
        ({"range": (5, 5)}, ParameterError, "LOW < HIGH"),
        ({"range": (0, math.inf)}, ParameterError, "finite"),
        ({"range": (-1e308, 1e308)}, ParameterError, "LOW < HIGH"),
        ({"range": (1, 1 + 1e-15)}, ParameterError, "narrow"),
        ({"range": "01"}, ParameterError, "two public numbers"),
        ({"range": ("0", "1")}, ParameterError, "finite numbers"),
        ({"range": 10}, ParameterError, "two public numbers"),
        ({"scale": "log"}, ParameterError, "above 0"),
        ({"scale": "cubic"}, ParameterError, "'linear' or 'log'"),
        ({"bins": 1}, ParameterError, "bins"),
        ({"bins": 2**21}, ParameterError, "bins"),
        ({"max_rows": 2}, ParameterError, "user"),
        ({"max_rows": 0, "user": "who"}, ParameterError, "max_rows"),
        ({"user": "n"}, ParameterError, "different"),
        ({"user": "nobody"}, DataError, "no column"),
        ({"column": "nothing"}, DataError, "no column"),
        ({"column": 3}, ParameterError, "name of a column"),
        ({"column": None, "user": "who"}, ParameterError, "column"),
        ({"column": "who", "table": pa.table(ROWS)}, DataError, "numbers"),
        ({"nulls": "maybe"}, ParameterError, "nulls"),
        ({"budget": 1.0}, ParameterError, "Budget"),
        ({"budget": dc.Budget(1e-20)}, ParameterError, "too small"),
        ({"confidence": 1.0}, ParameterError, "confidence"),
        ({"table": {"n": [1.0, None]}}, DataError, "null"),
        ({"table": 7}, DataError, "table"),
        ({"table": {"n": ["x", "y"]}}, DataError, "can be a number"),
        ({"table": {"n": [True]}}, DataError, "can be a number"),
        ({"table": {"n": [1]}, "column": None}, DataError, "not a dict; for a table, name the column"),
        ({"table": np.zeros((2, 2)), "column": None}, DataError, "not a ndarray"),
        ({"table": 7, "column": None}, DataError, "not a int"),
    ],
)
def test_bad_input(how, error, words):
    with pytest.raises(error, match=words):
        ask(**how)


def test_paid_once_for_all_shares(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("rows", dc.Budget(2.0))
    account = ledger.account("rows")
    paid = {"ledger": account, "charge_id": "one"}
    first = ask(budget=dc.Budget(1.5), shares=[0.1, 0.5, 0.9], **paid)
    assert first.payment == "charged"
    again = ask(budget=dc.Budget(1.5), shares=[0.1, 0.5, 0.9], **paid)
    assert (again, again.payment) == (first, "replayed")
    for other in ({"shares": [0.5]}, {"range": (0, 11)}, {"scale": "log", "range": (1, 10)}, {"bins": 9}):
        with pytest.raises(LedgerError):
            ask(budget=dc.Budget(1.5), **{"shares": [0.1, 0.5, 0.9], **other}, **paid)
    with pytest.raises(dc.BudgetExceededError):
        ask(budget=dc.Budget(1.0), ledger=account)
    assert json.loads(first.to_json())["guarantee"]["epsilon"] == 1.5


# ---- whole numbers, dates, times; which mechanism -------------------------------------------------------------------


DAYS = [datetime.date(1998, 1, 1) + datetime.timedelta(day % 365) for day in range(4000)]
RANGE = ("1990-01-01", "2030-12-31")


def day_tables():
    yield "dates", {"d": DAYS}
    yield "text", {"d": [day.isoformat() for day in DAYS]}
    yield "arrow", pa.table({"d": pa.array(DAYS, pa.date32())})
    yield "timestamps", pa.table({"d": pa.array(DAYS, pa.date32()).cast(pa.timestamp("ms"))})
    yield "pandas", pd.DataFrame({"d": pd.to_datetime([day.isoformat() for day in DAYS])})
    yield "polars", pl.DataFrame({"d": DAYS})


@pytest.mark.parametrize("name", [name for name, _ in day_tables()])
def test_dates_are_dates(name):
    answer = dc.quantiles(dict(day_tables())[name], dc.Budget(5.0), [0.3, 0.5], column="d", range=RANGE)
    assert answer.kind == "date"
    assert abs((answer[0.3].value - datetime.date(1998, 4, 20)).days) <= 2
    assert answer[0.3].lower <= datetime.date(1998, 4, 20) <= answer[0.3].upper
    told = json.loads(answer.to_json())
    assert told["range"] == list(RANGE)
    assert told["quantiles"][0]["value"] == answer[0.3].value.isoformat()
    assert dc.QuantileRelease.from_json(answer.to_json()) == answer
    assert dc.QuantileRelease.from_payload(answer.to_payload()) == answer
    assert answer.values[0].isoformat() in answer.to_csv()
    assert answer.values[0].isoformat() in repr(answer)
    assert answer.to_arrow().schema.field("value").type == pa.date32()


@pytest.mark.parametrize("mechanism", ["auto", "tree", "choice"])
def test_times_are_times(mechanism):
    """More seconds than a tree has bins: there an answer is as near as one of its bins."""
    noon = [datetime.datetime(2001, 5, 6, 12) + datetime.timedelta(hours=hour) for hour in range(-500, 501)]
    ends = datetime.datetime(1990, 1, 1), datetime.datetime(2030, 12, 31)
    asked = {"column": "t", "range": ends, "mechanism": mechanism}
    answer = dc.quantiles({"t": noon}, dc.Budget(20.0), 0.5, **asked)
    assert abs(answer[0.5].value - datetime.datetime(2001, 5, 6, 12)) < datetime.timedelta(hours=12)
    assert answer[0.5].lower <= datetime.datetime(2001, 5, 6, 12) <= answer[0.5].upper
    assert dc.QuantileRelease.from_json(answer.to_json()) == answer
    zoned = dc.quantiles(
        {"t": noon}, dc.Budget(20.0), 0.5, column="t", range=("1990-01-01T00:00:00Z", "2030-01-01T00:00Z")
    )
    assert zoned[0.5].value.tzinfo is not None
    assert json.loads(zoned.to_json())["quantiles"][0]["value"].endswith("+00:00")


def test_whole_numbers_have_bins_of_one():
    ages = {"n": [31] * 400 + [47] * 600}
    for mechanism in ("auto", "tree", "choice"):
        how = {"column": "n", "range": (0, 120), "scale": "whole", "mechanism": mechanism}
        answer = dc.quantiles(ages, dc.Budget(2.0), [0.2, 0.8], **how)
        assert answer.values == (31, 47)
        assert all(isinstance(each, int) for row in answer for each in row[1:])
        assert (answer.bins, answer.kind) == (121, "whole")
        assert dc.QuantileRelease.from_json(answer.to_json()) == answer
    assert StepGrid(0, 120).places(np.array([-3, 0.9, 1, 120, 900, math.inf])).tolist() == [0, 0, 1, 120, 120, 120]
    many = dc.quantiles(ages, dc.Budget(4.0), 0.8, column="n", range=(0, 10**13), scale="whole")
    assert many[0.8].value == 47


def test_people_choose_with_one_vote_each():
    rows = {"who": ["a"] * 500 + [f"p{n}" for n in range(200)], "n": [900] * 500 + [100] * 200}
    answer = dc.quantiles(rows, dc.Budget(5.0), 0.5, column="n", range=(0, 1000), user="who", mechanism="choice")
    assert answer[0.5].value == pytest.approx(100, abs=1)
    mechanism = QuantileChoice(SURE, Grid(0, 4, 4), unit=dc.User())
    found = mechanism.counts(np.array([0, 0, 3, 1, 1, 2]), np.array([0, 0, 0, 1, 2, 2]))
    assert found.masses.tolist() == [2 * VOTE // 3, VOTE + VOTE // 2, VOTE // 2, VOTE // 3]


def test_the_better_mechanism_is_taken_from_public_numbers():
    grid, event = Grid(0, 200), dc.Event()
    tenths = tuple(np.arange(1, 10) / 10)
    for shares in ((0.5,), (0.25, 0.5, 0.75), tenths):
        assert isinstance(mechanism_for(dc.Budget(1.0), grid, shares, event), QuantileChoice)
    assert isinstance(mechanism_for(dc.Budget(1.0), Grid(0, 5, 5), tenths, event), QuantileTree)
    assert isinstance(mechanism_for(dc.Budget(1.0), grid, np.arange(1, 100) / 100, event), QuantileTree)
    assert isinstance(mechanism_for(dc.Budget(1.0), grid, (0.5,), event, named="tree"), QuantileTree)
    one, other = (mechanism_for(dc.Budget(e), grid, (0.5,), event) for e in (0.1, 1.0))
    assert one.typical_error == pytest.approx(10 * other.typical_error)
    with pytest.raises(ParameterError, match="one share"):
        mechanism_for(dc.Budget(1.0), grid, (0.25, 0.5), event).error_bound(0.05)


def test_blocks_are_as_many_as_what_was_found_and_not_as_the_bins():
    """2^44 bins and 10^15 votes: nothing is listed, nothing wraps."""
    grid = StepGrid(0, 2**44)
    mechanism = QuantileChoice(dc.Budget(200.0), grid, (0.25, 0.5, 0.75), dc.User(), 2**20)
    found = Found(np.array([5, 2**43, 2**44]), np.array([10**15, 3 * 10**15, 10**15]))
    answer = mechanism(found, seeded_source(1))
    assert answer.values == (2**43, 2**43, 2**43)
    assert all(row.lower <= 2**43 <= row.upper for row in answer)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"range": ("1990-01-01", 5)}, "two dates"),
        ({"range": ("1990-13-01", "1991-01-01")}, "two dates"),
        ({"range": ("2030-01-01", "1990-01-01")}, "LOW < HIGH"),
        ({"range": ("1990-01-01", "1991-01-01"), "scale": "log"}, "linear"),
        ({"range": (0.5, 10), "scale": "whole"}, "whole numbers"),
        ({"range": (0, 2**46), "scale": "whole"}, "more than"),
        ({"mechanism": "guess"}, "mechanism"),
    ],
)
def test_bad_ranges(how, words):
    with pytest.raises(ParameterError, match=words):
        ask(**how)


def test_dates_on_the_command_line(tmp_path):
    lines = "\n".join(["day,who", *(f"{day.isoformat()},u{at}" for at, day in enumerate(DAYS)), "no date,u1"])
    (tmp_path / "days.csv").write_text(lines + "\n")
    given = [
        "quantiles",
        tmp_path / "days.csv",
        "--column",
        "day",
        "--range",
        *RANGE,
        "--quantile",
        0.3,
        "--epsilon",
        5,
    ]
    for more in ([], ["--user", "who"]):
        told = run_here(*given, *more, "--format", "json")
        assert told.returncode == 0, told.stderr
        row = json.loads(told.stdout)["quantiles"][0]
        assert row["lower"] <= "1998-04-20" <= row["upper"]
        assert "1998-04-1" <= row["value"] < "1998-04-3"
    table = run_here(*given)
    assert "1998-04-" in table.stdout
    wrong = run_here(*given[:5], "1990-01-01", "7", "--epsilon", 1)
    assert wrong.returncode == 2
    assert "two dates" in wrong.stderr


@pytest.mark.parametrize(
    ("low", "high", "bins"), [(0.0, 1.0, 7), (-3.7, 1e9, 1 << 20), (0.0, 1e-300, 1000), (1e15, 1e15 + 4096, 4096)]
)
def test_the_bin_of_a_value_is_the_one_that_a_search_finds(low, high, bins):
    grid = Grid(low, high, bins)
    rng = np.random.default_rng(1)
    some = grid.edges[rng.integers(0, bins + 1, 5000)]
    values = np.concatenate(
        [some, np.nextafter(some, np.inf), np.nextafter(some, -np.inf), rng.uniform(low, high, 5000),
         [low, high, -np.inf, np.inf, low - 1, high + 1]]
    )  # fmt: skip
    found = np.searchsorted(grid.edges[1:-1], np.clip(values, low, high), side="right")
    assert (grid.places(values) == found).all()


@pytest.mark.parametrize("budget", BUDGETS)
def test_intervals_of_several_quantiles_hold_together(budget):
    """Each of n may fail with a chance of beta/n: its ends are those of one quantile at that confidence."""
    shares, grid = (0.1, 0.3, 0.5, 0.7, 0.9), Grid(0, 1000, bins=256)
    together = QuantileTree(budget, grid, shares)
    left = 100.0 * np.arange(together.leaves + 1)  # so many that intervals end inside
    lower, upper = together.intervals(left, float(left[-1]))
    for place, share in enumerate(shares):
        alone = QuantileTree(budget, grid, (share,), confidence=1 - 0.05 / len(shares))
        (low,), (high,) = alone.intervals(left, float(left[-1]))
        assert (lower[place], upper[place]) == (low, high)
        ((low,), (high,)) = QuantileTree(budget, grid, (share,)).intervals(left, float(left[-1]))
        assert lower[place] <= low
        assert high <= upper[place]
        assert together.reach(share, 0.01).max() > together.reach(share, 0.05).max()


@pytest.mark.parametrize("user", [None, "who"])
def test_values_that_are_no_numbers_and_rows_of_nobody_are_left_out(user):
    nobody = "x" * 5000  # longer than an id may be
    table = pa.table(
        {
            "n": pa.array([float("nan")] * 500 + [90.0] * 400 + [5.0] * 600, pa.float64()),
            "who": [f"a{i}" for i in range(900)] + [nobody if user else f"b{i}" for i in range(600)],
        }
    )
    if user is None:
        table = table.slice(0, 900)
    found = dc.quantiles(table, SURE, [0.02, 0.5], column="n", range=(0, 100), **({"user": user} if user else {}))
    assert all(85 < row.value < 95 for row in found)


def test_people_of_two_parts_of_the_data_are_different_people():
    """As Spark adds them up: each part numbers its people from 0."""
    first, second = (
        Amounts(events_of(pa.table({"n": [1.0, 2.0], "who": names})).rows("n", user="who", numbers=True), np.int32)
        for names in (["a", "b"], ["c", "c"])
    )
    both = first + second
    assert both.people.tolist() == [0, 1, 2, 2]
    assert both.places.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("grid", [Grid(0.0, 1000.0, 4096), Grid(0.1, 1e6, 999, "log"), StepGrid(-50, 2000)])
def test_rows_are_counted_in_the_bins_that_they_have(grid):
    random = np.random.default_rng(1)
    values = np.concatenate(
        [random.lognormal(3, 2, 5000), -random.random(50), [0.0, -0.0, 1000.0, 1e300, -np.inf, np.inf]]
    )
    counts = np.zeros(grid.bins, np.int64)
    for part in np.array_split(np.insert(values, [7, 3000], np.nan), 3):
        grid.add_to(counts, part)
    assert counts.tolist() == np.bincount(grid.places(values), minlength=grid.bins).tolist()


def test_every_bin_has_one_count():
    with pytest.raises(ParameterError, match="every bin"):
        _native.count_in_grid(np.zeros(3), np.linspace(0.0, 1.0, 5), np.zeros(5, np.int64))
