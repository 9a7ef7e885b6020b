"""Person-days: a pair of person and span takes the place of the person, in every question and from every source.

What a question answers with `unit=dc.User(per=...)` is what it answers where a column has the pairs, drawn from the
same seeded source: numbers and lists are equal, not close.
"""

import dataclasses
import datetime
import json
import random
import zoneinfo

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.engines import duck_people, exact_people
from discreet.noise import seeded_source
from discreet.questions.answer import charge_id_of, data_of, stands_for

BUDGET = dc.Budget(2.0, 1e-6)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
UTC = datetime.timezone.utc


def rows_of(seed=5, people=400):
    """(visitor, path, ms, moment): around two changes of the clock in Berlin, and around midnight."""
    rng = random.Random(seed)
    rows = []
    for person in range(people):
        for first in (datetime.datetime(2026, 3, 28, tzinfo=UTC), datetime.datetime(2026, 10, 24, tzinfo=UTC)):
            for _ in range(rng.randrange(6)):
                moment = first + datetime.timedelta(minutes=rng.randrange(3 * 1440))
                rows.append((f"v{person}", f"/{min(int(rng.paretovariate(0.8)), 20)}", rng.randrange(100), moment))
    rng.shuffle(rows)
    return rows


ROWS = rows_of()
COLUMNS = ("visitor", "path", "ms", "ts")
QUESTIONS = {
    "top": lambda data, **words: dc.top_k(data, 10, BUDGET, column="path", **words),
    "rows": lambda data, **words: dc.top_k(data, 10, BUDGET, column="path", count="rows", **words),
    "sums": lambda data, **words: dc.top_k(data, 5, BUDGET, column="path", value="ms", value_range=(0, 50), **words),
    "pairs": lambda data, **words: dc.top_k(data, 5, BUDGET, column="path", pairs=True, **words),
    "joint": lambda data, **words: dc.top_k(data, 5, BUDGET, column=["path", "ms"], **words),
    "count": lambda data, **words: dc.count(data, BUDGET, **words),
    "distinct": lambda data, **words: dc.distinct(data, BUDGET, column="path", **words),
    "credited": lambda data, **words: dc.distinct(data, BUDGET, column="path", max_items=3, **words),
    "histogram": lambda data, **words: dc.histogram(
        data, BUDGET, column="path", universe=["/1", "/2", "/3"], max_items=2, **words
    ),
    "sum": lambda data, **words: dc.sum(data, BUDGET, column="ms", range=(0, 100), **words),
    "mean": lambda data, **words: dc.mean(data, BUDGET, column="ms", range=(0, 100), **words),
    "counts": lambda data, **words: dc.count(data, BUDGET, by="path", **words),
    "means": lambda data, **words: dc.mean(data, BUDGET, column="ms", range=(0, 100), by="path", **words),
    "quantiles": lambda data, **words: dc.quantiles(data, BUDGET, [0.5, 0.9], column="ms", range=(0, 100), **words),
}


def told(answer):
    """What an answer says, without what it promises and when."""
    if not hasattr(answer, "to_json"):
        return answer.value, answer.lower, answer.upper
    told = json.loads(answer.to_json())
    of_the_question = ("guarantee", "time", "parameters", "columns", "payment", "version")
    assert len(told) > len(of_the_question)
    return {name: value for name, value in told.items() if name not in of_the_question}


def table_of(rows):
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)})


def pairs_of(rows, span):
    """The same rows, whose visitors are pairs."""
    return table_of([(f"{visitor} {span(moment)}", path, ms, moment) for visitor, path, ms, moment in rows])


SPANS = {
    ("1d", None): lambda moment: moment.date(),
    ("1d", "Europe/Berlin"): lambda moment: moment.astimezone(BERLIN).date(),
    ("1w", None): lambda moment: moment.isocalendar()[:2],
    ("1mo", "Europe/Berlin"): lambda moment: moment.astimezone(BERLIN).date().replace(day=1),
    ("6h", None): lambda moment: (moment.date(), moment.hour // 6),
}


@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_pair_takes_the_place_of_the_person(asked):
    question = QUESTIONS[asked]
    spans = SPANS if asked in ("top", "count") else [("1d", "Europe/Berlin")]
    for per, zone in spans:
        unit = dc.User(per=per, zone=zone)
        ours = question(table_of(ROWS), user="visitor", unit=unit, time="ts", source=seeded_source(3))
        theirs = question(pairs_of(ROWS, SPANS[per, zone]), user="visitor", source=seeded_source(3))
        assert told(ours) == told(theirs)
        assert ours.guarantee.unit == unit
        assert theirs.guarantee.unit == dc.User()


@pytest.mark.parametrize("asked", ["top", "count", "distinct", "quantiles"])
def test_every_source_gives_the_same(asked, tmp_path):
    """Tables, frames, Python objects, CSV, JSON lines, Parquet: with texts as times and as they are."""
    question, table = QUESTIONS[asked], table_of(ROWS)
    texts = table.set_column(3, "ts", pa.array([moment.isoformat() for *_, moment in ROWS]))
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pa.csv.write_csv(texts, tmp_path / "a.csv")
    lines = "".join(json.dumps(row) + "\n" for row in texts.to_pylist())
    (tmp_path / "a.jsonl").write_text(lines)
    sources = {
        "table": table,
        "texts": texts,
        "objects": {name: table.column(name).to_pylist() for name in COLUMNS},
        "pandas": table.to_pandas(),
        "parquet": dc.read(tmp_path / "a.parquet"),
        "csv": dc.read(tmp_path / "a.csv"),
        "jsonl": dc.read(tmp_path / "a.jsonl"),
    }
    words = {"user": "visitor", "unit": "person-day", "zone": "Europe/Berlin", "time": "ts", "period": "2026-03-29"}
    answers = {name: told(question(data, source=seeded_source(4), **words)) for name, data in sources.items()}
    assert all(answer == answers["table"] for answer in answers.values()), answers


def test_people_of_other_kinds_are_others(tmp_path):
    """A number and a text that look alike are two people; so are those whose bytes begin like a day."""
    rows = [{"u": 1, "ts": "2026-11-15"}, {"u": "1", "ts": "2026-11-15"}, {"u": "1", "ts": "2026-11-16"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = {"user": "u", "unit": dc.User(per="1d"), "time": "ts"}
    large = dc.Budget(60.0)
    assert dc.count(dc.read(tmp_path / "a.jsonl"), large, **words).value == 3
    table = {"u": [1, "1", b"1", "1"], "ts": ["2026-11-15"] * 3 + [0]}
    assert dc.count(table, large, **words).value == 4


def test_out_of_core_gives_the_same(monkeypatch):
    words = {"user": "visitor", "unit": dc.User(per="1d"), "time": "ts", "period": ("2026-03-28", "2026-03-29")}
    memory = told(QUESTIONS["top"](table_of(ROWS), source=seeded_source(3), **words))
    made, close = [], duck_people.DuckPeople.close
    monkeypatch.setattr(exact_people.Memory, "room", 0)
    monkeypatch.setattr(duck_people.DuckPeople, "close", lambda self: (made.append(self), close(self)))
    assert told(QUESTIONS["top"](table_of(ROWS), source=seeded_source(3), **words)) == memory
    assert made


def test_groups_over_time_may_be_the_same_days():
    words = {"user": "visitor", "time": "ts", "every": "1d", "zone": "Europe/Berlin"}
    ours = dc.top_k(table_of(ROWS), 2, BUDGET, column="path", unit="person-day", source=seeded_source(1), **words)
    pairs = pairs_of(ROWS, SPANS["1d", "Europe/Berlin"])
    theirs = dc.top_k(pairs, 2, BUDGET, column="path", source=seeded_source(1), **words)
    assert told(ours) == told(theirs)


# ---- the period ------------------------------------------------------------------------------------------------------


def test_rows_outside_the_period_do_not_matter(capsys, tmp_path):
    """What is released about a day is the same whatever else is in the file; the operator alone hears how much."""
    day = datetime.date(2026, 3, 29)  # of 23 hours in Berlin
    inside = [row for row in ROWS if row[3].astimezone(BERLIN).date() == day]
    words = {"user": "visitor", "unit": dc.User(per="1d", zone="Europe/Berlin"), "time": "ts", "period": day}
    for asked in ("top", "count", "quantiles"):
        ours = QUESTIONS[asked](table_of(ROWS), source=seeded_source(2), **words)
        theirs = QUESTIONS[asked](table_of(inside), source=seeded_source(2), **words)
        assert told(ours) == told(theirs)
    assert inside
    assert len(inside) < len(ROWS)
    hours = {row[3].hour for row in inside}
    assert len(hours) >= 20
    pa.csv.write_csv(table_of(ROWS), tmp_path / "a.csv")
    seen = []
    data = dc.read(tmp_path / "a.csv", watch=lambda rows: lambda: seen.extend(rows.remarks))
    release = QUESTIONS["top"](data, **words)
    left = f"skipped {len(ROWS) - len(inside):,} rows outside the period (not private: for your eyes alone)"
    assert seen == [left]
    assert str(len(ROWS) - len(inside)) not in release.to_json()


def test_a_time_that_is_none_is_a_bad_row_and_a_missing_one_a_null(tmp_path):
    table = {"u": ["a", "b", "c", "d"], "ts": ["2026-11-15", "yesterday", "2026-11-15", "2026-11-14"]}
    words = {"user": "u", "unit": "person-day", "time": "ts", "period": "2026-11-15"}
    large = dc.Budget(60.0)
    assert dc.count(table, large, **words).value == 2
    pa.csv.write_csv(pa.table(table), tmp_path / "a.csv")
    assert dc.count(dc.read(tmp_path / "a.csv"), large, **words).value == 2
    with pytest.raises(dc.DataError, match="a time that is neither"):
        dc.count(dc.read(tmp_path / "a.csv"), large, bad_rows="error", **words)
    table["ts"][0] = None
    with pytest.raises(dc.DataError, match="with no value"):
        dc.count(table, large, **words)
    assert dc.count(table, large, nulls="skip", **words).value == 1


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ({"unit": "person-day", "time": "ts"}, "unit person-day needs user"),
        ({"unit": "person-day", "user": "visitor"}, "unit person-day needs time"),
        ({"time": "ts", "user": "visitor"}, "time needs"),
        ({"zone": "Europe/Berlin", "user": "visitor"}, "zone needs"),
        ({"period": "2026-11-15", "user": "visitor"}, "period needs unit person-day"),
        ({"period": "15.11.", "unit": "person-day", "time": "ts", "user": "visitor"}, "a date as in"),
        ({"unit": "person-dya", "time": "ts", "user": "visitor"}, "unit must be one of row, person"),
        ({"unit": dc.User(3), "user": "visitor"}, "unit must be"),
        ({"unit": dc.Element(), "user": "visitor"}, "unit must be"),
        ({"unit": "person"}, "unit person needs user"),
        ({"unit": "person-day", "user": "visitor", "time": "visitor"}, "must name different columns"),
    ],
)
def test_what_does_not_go_together_is_refused(words, wrong):
    with pytest.raises(dc.ParameterError, match=wrong):
        dc.count(table_of(ROWS[:10]), BUDGET, **words)


def test_mechanisms_that_do_not_tell_days_apart_refuse_them():
    with pytest.raises(dc.ParameterError, match="needs user"):
        dc.top_k(["a", "b"], 1, BUDGET, unit=dc.User(3, per="1d"), grouped=False)
    with pytest.raises(dc.ParameterError, match="cannot be combined with unit person-day"):
        QUESTIONS["top"](table_of(ROWS), user="visitor", unit="person-day", time="ts", mechanism="offset", max_items=2)
    with pytest.raises(dc.ParameterError, match="does not tell spans of time apart"):
        dc.continual.Histogram(horizon=4, budget=BUDGET, unit=dc.User(3, per="1d"))


# ---- paying ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("readers", dc.Budget(4.0, 1e-5), unit=dc.User(per="1d"))
    return ledger.account("readers")


WORDS = {"user": "visitor", "unit": "person-day", "time": "ts"}


def test_a_release_is_charged_about_its_period(account):
    for _ in range(2):
        QUESTIONS["top"](table_of(ROWS), ledger=account, period="2026-03-29", **WORDS)
    with pytest.raises(dc.BudgetExceededError, match="about 2026-03-29"):
        QUESTIONS["count"](table_of(ROWS), ledger=account, period=("2026-03-28", "2026-03-30"), **WORDS)
    QUESTIONS["top"](table_of(ROWS), ledger=account, period="2026-03-30", **WORDS)
    assert account.statement("2026-03-30").spent.epsilon == 2.0
    with pytest.raises(dc.ParameterError, match="name the one that the release is about with period"):
        QUESTIONS["top"](table_of(ROWS), ledger=account, **WORDS)
    with pytest.raises(dc.ChargeConflictError, match="has one unit"):
        QUESTIONS["top"](table_of(ROWS), ledger=account, user="visitor")


def test_a_job_that_is_started_twice_publishes_once_and_needs_no_file_for_it(account, tmp_path):
    pa.csv.write_csv(table_of(ROWS), tmp_path / "a.csv")

    def job(**words):
        return QUESTIONS["top"](
            dc.read(tmp_path / "a.csv"), ledger=account, **{"period": "2026-03-29", **WORDS, **words}
        )

    first = job()
    (tmp_path / "a.csv").unlink()  # rotated away
    again = job()
    assert (again.payment, told(again)) == ("replayed", told(first))
    assert account.statement("2026-03-29").spent.epsilon == 2.0
    pa.csv.write_csv(
        table_of(ROWS[:-20]), tmp_path / "a.csv"
    )  # late rows: another charge about the day, if it is meant
    late = job(charge_id="late")
    assert late.payment == "charged"
    assert account.statement("2026-03-29").spent.epsilon == 4.0


def test_tables_have_no_name_so_every_call_is_charged(account):
    first = QUESTIONS["count"](table_of(ROWS), ledger=account, period="2026-03-29", **WORDS)
    second = QUESTIONS["count"](table_of(ROWS[:5]), ledger=account, period="2026-03-29", **WORDS)
    assert (first.payment, second.payment) == ("charged", "charged")


def test_only_files_that_have_names_name_a_charge(tmp_path):
    """What comes on standard input is another thing every time, alone or beside files: every run is charged."""
    question = dc.Count(**WORDS, period="2026-03-29")
    named = charge_id_of(question, dc.read("a.csv", "b.csv"), BUDGET)
    assert named is not None
    assert named != charge_id_of(question, dc.read("a.csv"), BUDGET)
    for paths in (["-"], ["a.csv", "-"], ["-", "a.csv"]):
        assert charge_id_of(question, dc.read(*paths, format="csv"), BUDGET) is None
    assert charge_id_of(question, data_of(table_of(ROWS)), BUDGET) is None
    assert charge_id_of(dc.Count(), dc.read("a.csv"), BUDGET) is None


@pytest.mark.parametrize(
    "how",
    [
        {"format": "csv"},
        {"header": False},
        {"delimiter": "tab"},
        {"quote": "'"},
        {"encoding": "latin-1"},
        {"encoding": "cp1252"},
        {"sql": "select visitor, path, ts from 'a.csv'"},
        {"sql": "select visitor, path, ts from t", "rows_of_the_result_are_the_events": True},
    ],
    ids=str,
)
def test_a_charge_stands_for_how_files_are_read(how):
    """The same bytes are other rows where they are read otherwise: what is stored for one is no answer to the other."""
    question = dc.Count(**WORDS, period="2026-03-29")
    ways = [{}, {"format": "csv", "delimiter": ";"}, {"encoding": "utf-16"}, how]
    data = [dc.read(*([] if "sql" in each and len(each) == 1 else ["a.csv"]), **each) for each in ways]
    asked = [stands_for(question, each) for each in data]
    assert len({json.dumps(each) for each in asked}) == len(ways)
    ids = {charge_id_of(question, each, BUDGET) for each in data}
    assert len(ids) == len(ways)


def test_an_account_that_renews_is_told_by_the_guarantee(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("guests", dc.Budget(8.0, 1e-5), renews="90d", different_people=True)
    for asked in ("top", "count", "quantiles"):
        answer = QUESTIONS[asked](table_of(ROWS), user="visitor", ledger=ledger.account("guests"), charge_id=asked)
        (said,) = [each for each in answer.guarantee.assumptions if "90d or more apart" in each]
        again = QUESTIONS[asked](table_of(ROWS), user="visitor", ledger=ledger.account("guests"), charge_id=asked)
        assert again.payment == "replayed"
        assert said in again.guarantee.assumptions


def test_a_report_about_a_day_is_one_charge(account):
    questions = {
        "pages": dc.Top(column="path", k=3),
        "visitors": dc.Count(),
        "half": dc.Quantiles(column="ms", range=(0, 100), quantiles=0.5),
    }
    report = dc.Report(questions, dc.Budget(3.0, 1e-6), period="2026-03-29", **WORDS)
    found = report.answer(table_of(ROWS), ledger=account)
    assert found.guarantee.unit == dc.User(per="1d")
    assert account.statement("2026-03-29").spent.epsilon == 3.0
    assert "n times epsilon" in str(found)
    with pytest.raises(dc.ParameterError, match="period"):
        dc.Report([dc.Count(period="2026-03-30", **WORDS)], BUDGET, period="2026-03-29", **WORDS)


# ---- what is said ----------------------------------------------------------------------------------------------------


def test_what_is_said_of_one_day_and_of_several():
    from discreet.releases.explain import explanation, several_spans

    release = QUESTIONS["top"](table_of(ROWS), period="2026-03-29", **WORDS)
    assert release.guarantee.sentence().endswith(
        "it hides what one person did within one day (UTC), added to or removed from the data. What one person did on "
        "n days: n times epsilon."
    )
    guarantee = dataclasses.replace(release.guarantee, epsilon=1.0, delta=1e-7).to_dict()
    # 7 epsilon; 7 delta; delta (1 + e + ... + e^6) = 637.5 delta
    assert several_spans(guarantee) == (
        "What one person did in n spans together is hidden with n times epsilon: in 7 of them with epsilon = 7, a "
        "weaker promise. Delta is 7e-07 then if each release is about one of them, and up to 6.38e-05 if one is about "
        "all."
    )
    told = " ".join(explanation(guarantee))
    assert "What is protected: what one person did within one day (UTC)." in told
    assert "with all of their rows" not in told
    assert json.loads(release.to_json())["parameters"]["period"] == "2026-03-29"
    assert dc.Release.from_json(release.to_json()).guarantee == release.guarantee
