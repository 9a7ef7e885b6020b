"""A question is a value: checked once, without data, and everything else follows from it."""

import dataclasses
import inspect
import json

import pyarrow as pa
import pytest

import discreet as dc
from discreet.cli.publish import command_of
from discreet.errors import WordError
from discreet.noise import seeded_source
from discreet.questions.answer import stands_for
from discreet.questions.words import words_of
from discreet.releases.payment import Payer

BUDGET = dc.Budget(1.0, 1e-6)
TABLE = pa.table(
    {"who": [str(i % 400) for i in range(2000)], "what": ["a", "b", "c", "c"] * 500, "n": [1.0, 2.0] * 1000}
)
FUNCTIONS = {
    "top": dc.top_k,
    "count": dc.count,
    "distinct": dc.distinct,
    "histogram": dc.histogram,
    "quantiles": dc.quantiles,
    "sum": dc.sum,
    "mean": dc.mean,
    "variance": dc.variance,
}
KINDS = {
    "top": dc.Top,
    "count": dc.Count,
    "distinct": dc.Distinct,
    "histogram": dc.Histogram,
    "quantiles": dc.Quantiles,
    "sum": dc.Sum,
    "mean": dc.Mean,
    "variance": dc.Variance,
}
ASKED = [
    dc.Top(column="what", k=2),
    dc.Top(column="what", user="who", k=2),
    dc.Top(column=["what", "who"], k=2),
    dc.Top(column="what", user="who", k=2, pairs=True),
    dc.Count(),
    dc.Count(user="who"),
    dc.Distinct(column="what"),
    dc.Distinct(column="what", user="who", max_items=2),
    dc.Histogram(column="what", universe=["a", "z"]),
    dc.Quantiles(column="n", range=(0, 10), quantiles=0.5),
]


@pytest.mark.parametrize("name", KINDS)
def test_one_word_is_spelled_the_same_everywhere(name):
    """The class, the function and the command have the same words, with the same help."""
    words = {each.name: each for each in words_of(KINDS[name])}
    assert {each.name for each in dataclasses.fields(KINDS[name])} == set(words)
    told = inspect.signature(FUNCTIONS[name]).parameters
    assert set(words) <= set(told)
    options = {option.name: option for option in reversed(command_of(name).params)}  # of several, the first
    for each in words.values():
        assert each.help.endswith("."), each
        assert f"{each.name}: {each.help}" in FUNCTIONS[name].__doc__
        if not each.in_python_only:
            assert options[each.name].help == each.help
            assert f"--{each.option or each.name.replace('_', '-')}" in options[each.name].opts


@pytest.mark.parametrize("question", ASKED, ids=str)
def test_a_question_is_answered_as_by_its_function(question):
    """`dc.top_k(table, ...)` is `answer(Top(...), table, ...)`: the same noise on the same counts."""
    words = {
        each.name: getattr(question, each.name) for each in words_of(type(question)) if each.name in question.given
    }
    first = dc.answer(question, TABLE, BUDGET, Payer(source=seeded_source(7)))
    again = FUNCTIONS[question.name](TABLE, budget=BUDGET, source=seeded_source(7), **words)
    assert type(first) is type(again)
    assert first.guarantee == again.guarantee
    assert first.guarantee.seeded


@pytest.mark.parametrize("question", ASKED, ids=str)
def test_a_question_is_frozen_equal_to_its_like_and_json(question):
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.user = "another"
    assert dataclasses.replace(question) == question
    assert json.loads(json.dumps(question.to_dict())) == question.to_dict()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dc.Top(column="a", every="1d").grouped_by, "every needs time"),
        (lambda: dc.Top(column="a", user="u", capacity=5), "capacity cannot be combined with user"),
        (lambda: dc.Top(column="a", universe=["x"], by="g"), "universe cannot be combined with by"),
        (lambda: dc.Top(column="a", value="n", value_range=(0, 1)), "value needs user"),
        (lambda: dc.Top(column="a", user="u", pairs=True, by="g"), "pairs cannot be combined with by"),
        (lambda: dc.Top(column="a", user="u", pairs=True, every="1d", time="t"), "pairs cannot be combined with every"),
        (lambda: dc.Top(column="a", user="u", pairs=True, count="rows"), "pairs cannot be combined with count rows"),
        (
            lambda: dc.Top(column="a", user="u", pairs=3, value="n", value_range=(0, 1)),
            "pairs cannot be combined with value",
        ),
        (lambda: dc.Top(column="a", user="u", pairs=True, max_items=3), "pairs cannot be combined with max_items"),
        (lambda: dc.Top(column="a", pairs=True, universe=["x", "y"]), "pairs cannot be combined with universe"),
        (lambda: dc.Top(column=["a", "b"], user="u", pairs=True), "pairs needs a single column"),
        (lambda: dc.Top(column="a", unit="row", pairs=True), "pairs needs whole people"),
        (lambda: dc.Top(column="a", unit=dc.User(3), pairs=True), "pairs needs whole people"),
        (lambda: dc.Top(column="a", grouped=False, pairs=True), "pairs needs user, or one list per person"),
        (lambda: dc.Top(column="a", unit="row", user="u"), "unit row cannot be combined with user"),
        (lambda: dc.Count(column="a", user="u"), "people are counted by user alone"),
        (lambda: dc.Histogram(column="a"), "universe is missing"),
        (lambda: dc.Quantiles(column="a"), "range LOW HIGH is missing"),
        (lambda: dc.Quantiles(column="a", range=(0, 1), max_rows=2), "max_rows needs user"),
    ],
)
def test_what_does_not_go_together_is_refused_without_data(make, words):
    with pytest.raises(WordError, match=words) as refused:
        make()
    spelled = refused.value.spelled(lambda word: f"--{word.replace('_', '-')}")
    assert "--" in spelled
    assert "{" not in str(refused.value) + spelled


def test_old_words_are_understood_and_told():
    with pytest.warns(DeprecationWarning, match="values is now called value"):
        old = dc.top_k(
            TABLE, 2, BUDGET, column="what", user="who", values="n", value_range=(0, 5), source=seeded_source(1)
        )
    new = dc.top_k(TABLE, 2, BUDGET, column="what", user="who", value="n", value_range=(0, 5), source=seeded_source(1))
    assert old.asked.columns == new.asked.columns == {"item": "what", "user": "who", "value": "n"}
    with pytest.warns(DeprecationWarning, match="distinct"):
        assert dc.distinct(TABLE, "what", BUDGET, "who", max_items=1).value > 0
    with pytest.warns(DeprecationWarning, match="quantiles"):
        assert dc.quantiles(TABLE, "n", budget=BUDGET, range=(0, 5))[0.5].value <= 5
    with pytest.warns(DeprecationWarning, match="now called"), pytest.raises(dc.ParameterError, match="old spelling"):
        dc.top_k(TABLE, 2, BUDGET, column="what", user="who", values="n", value="n", value_range=(0, 5))
    with pytest.raises(TypeError, match="no_such_word"):
        dc.count(TABLE, BUDGET, no_such_word=1)


def test_what_a_charge_id_stands_for_is_known_before_anything_is_read():
    """Files are not opened for it, and only digests of their names are kept."""
    terms = stands_for(dc.Top(column="q", k=3), dc.read("no such file.csv", format="csv"))
    assert terms["question"] == "top"
    assert (terms["k"], terms["column"], terms["input_format"]) == (3, "q", "csv")
    assert "no such file" not in json.dumps(terms)
    other = stands_for(dc.Top(column="q", k=3), dc.read("another file.csv", format="csv"))
    assert terms["files"] != other["files"]
    # How much memory people take makes no other answer; that of rows decides the number of counters.
    people = [stands_for(dc.Top(column="q", user="u", memory=m), dc.read("f")) for m in ("1GB", "2GB")]
    rows = [stands_for(dc.Top(column="q", memory=m), dc.read("f")) for m in ("1GB", "2GB")]
    assert people[0] == people[1]
    assert rows[0] != rows[1]


@pytest.mark.parametrize(
    ("name", "how"), [("log.csv", {}), ("log.txt", {"format": "csv", "delimiter": ";", "quote": "none"})]
)
def test_python_reads_what_the_command_reads(tmp_path, name, how):
    mark = how.get("delimiter", ",")
    rows = "".join(f"u{i}{mark}page {i % 3}\n" for i in range(600))
    (tmp_path / name).write_text(f"who{mark}what\n{rows}")
    files = dc.read(tmp_path / name, **how)
    for words in ({}, {"user": "who"}, {"where": "what <> 'page 9'"}):  # the same files, asked again
        found = dc.top_k(files, 3, dc.Budget(50.0, 1e-6), column="what", **words)
        assert {*found.items} == {"page 0", "page 1", "page 2"}
        assert found.counts.tolist() == pytest.approx([200] * 3, abs=10)
    assert dc.count(dc.read(tmp_path / "log*", **how), dc.Budget(50.0)).value == pytest.approx(600, abs=3)
    with pytest.raises(dc.ParameterError, match="there is no file"):
        dc.count(dc.read(tmp_path / "nothing.csv"), dc.Budget(1.0))
    with pytest.raises(dc.ParameterError, match="rows_of_the_result_are_the_events needs sql"):
        dc.read("f", rows_of_the_result_are_the_events=True)


def test_python_reads_by_the_words_and_defaults_of_the_command():
    """What the command knows of how files are read, `dc.read` knows by the same name, and both begin with the same."""
    from discreet.cli import options

    given = command_of("count").make_context("count", ["log.csv"]).params
    told = {name: given[option.name] or None for name, option in options.READING.items()}
    known = {name: each.default for name, each in inspect.signature(dc.read).parameters.items()}
    assert {name: known[name] or None for name in known.keys() - {"paths", "watch"}} == told


def test_an_answer_from_files_is_had_again_without_them(tmp_path):
    (tmp_path / "log.csv").write_text("what\n" + "a\n" * 500)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("readers", dc.Budget(1.0, 1e-6))
    paid = {"ledger": ledger.account("readers"), "charge_id": "monday"}
    first = dc.top_k(dc.read(tmp_path / "log.csv"), 3, dc.Budget(1.0, 1e-6), column="what", **paid)
    (tmp_path / "log.csv").unlink()
    again = dc.top_k(dc.read(tmp_path / "log.csv"), 3, dc.Budget(1.0, 1e-6), column="what", **paid)
    assert again.to_payload() == first.to_payload()
    with pytest.raises(dc.LedgerError, match="files differs"):
        dc.top_k(dc.read(tmp_path / "other.csv"), 3, dc.Budget(1.0, 1e-6), column="what", **paid)


def test_a_charge_stands_for_how_cells_are_written(tmp_path):
    """No quote at all is another reading than the usual one, though both are said by a word left out or by "none"."""
    file, ledger = tmp_path / "in.csv", dc.Ledger(tmp_path / "l.sqlite")
    file.write_text('q\n"a"\nb\n')
    ledger.grant("a", dc.Budget(4.0, 1e-3))
    asked = {"budget": dc.Budget(1.0), "ledger": ledger.account("a"), "charge_id": "once", "unit": dc.Event()}
    first = dc.count(dc.read(str(file), quote="none"), **asked)
    assert dc.count(dc.read(str(file), quote="none"), **asked).to_payload() == first.to_payload()
    with pytest.raises(dc.LedgerError):
        dc.count(dc.read(str(file)), **asked)
    with pytest.raises(dc.LedgerError):
        dc.count(dc.read(str(file), quote="'"), **asked)
