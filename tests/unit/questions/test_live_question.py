"""A question that is asked at every tick: the same words and refusals for `watch` and for streams of a service."""

import pytest

import discreet as dc
from discreet.errors import WordError
from discreet.questions.live_question import MAX_ITEMS, LiveQuestion
from discreet.questions.words import words_of
from discreet.service.definitions import configuration
from discreet.watch.tasks import Counts, DistinctPeople, TopItems, Total, task_of

STREAM = {"kind": "top", "column": "q", "k": 5, "tick": "1h", "horizon": 9, "epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ({"column": "q"}, TopItems(9)),
        ({"column": "q", "window": 3, "capacity": 64}, TopItems(9, 64, 3)),
        ({"column": "q", "user": "who"}, Counts(9, None, MAX_ITEMS)),
        ({"column": "q", "user": "who", "max_items": 2}, Counts(9, None, 2)),
        ({"column": "q", "universe": ("a", "b")}, Counts(9, ("a", "b"), None)),
        ({"column": "q", "universe": ("a",), "mechanism": "tree"}, Counts(9, ("a",), how="tree")),
        ({"column": "q", "sets": True, "mechanism": "meta", "k": 3}, Counts(9, how="meta", chosen=3)),
        ({"column": "q", "sets": True, "mechanism": "meta", "max_items": 2}, Counts(9, None, None, 2, how="meta")),
        (
            {"column": "q", "universe": ("a",), "mechanism": "sparse", "horizon": 9, "switches": 2},
            Counts(9, ("a",), how="sparse", chosen=20, switches=2),
        ),
        ({"total": True}, Total(9)),
        ({"distinct": True, "user": "who"}, DistinctPeople(9)),
    ],
)
def test_a_question_is_one_task(words, task):
    assert task_of(LiveQuestion(tick="1h", **words), 9) == task


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"total": True, "column": "q"}, "{total} cannot be combined with {column} (it counts rows)"),
        ({"distinct": True}, "{distinct} needs {user} (it counts people)"),
        ({"column": "q", "user": "who", "capacity": 5}, "{capacity} cannot be combined with {user}"),
        ({"column": "q", "window": 2, "universe": ("a",)}, "{window} cannot be combined with {universe}"),
        ({"column": "q", "late": "5m"}, "{late} needs {time}"),
        ({"column": "q", "mechanism": "tree"}, "{mechanism} needs {universe} or {sets} or {user}"),
        ({"total": True, "mechanism": "tree"}, "{mechanism} needs {universe}"),
        ({"column": "q", "user": "w", "mechanism": "meta"}, "{mechanism} must be factorised or tree where people"),
        (
            {"column": "q", "universe": ("a",), "mechanism": "sparse"},
            "{mechanism} sparse needs {universe} and {horizon}",
        ),
        ({"column": "q", "sets": True, "mechanism": "tree", "switches": 2}, "{switches} is for {mechanism} sparse"),
    ],
)
def test_what_does_not_go_together_is_one_table(words, said):
    with pytest.raises(WordError) as refused:
        LiveQuestion(tick="1h", **words)
    assert refused.value.spelled(lambda word: f"{{{word}}}").startswith(said)


@pytest.mark.parametrize(
    "how",
    [
        {"universe": ("a", "b"), "mechanism": "tree"},
        {"universe": ("a", "b"), "sets": True, "mechanism": "meta", "k": 1},
        {"universe": ("a", "b"), "mechanism": "sparse", "horizon": 2, "switches": 1, "k": 1},
        {"sets": True, "mechanism": "meta", "max_items": 2},
    ],
)
def test_the_mechanism_that_is_named_counts(how):
    task = task_of(LiveQuestion(column="q", tick="1h", **how), 2)
    histogram = task.new(dc.Budget(1.0, 1e-6), None)
    assert histogram.mechanism == how["mechanism"]
    assert histogram.k == how.get("k")
    histogram.step([["a"], ["a", "b"]])
    assert Counts(2, ("a",)).settings.keys() == {"class", "horizon", "universe", "max_items"}  # as older states have it


def test_a_stream_and_a_watch_are_the_same_question():
    (stream,) = configuration({"streams": {"s": {**STREAM, "user": "who", "max_items": 3}}}).streams.values()
    assert stream.live == LiveQuestion(column="q", user="who", max_items=3, k=5, tick="3600s", horizon=9)
    with pytest.raises(dc.ParameterError, match=r"streams\.s: capacity cannot be combined with user"):
        configuration({"streams": {"s": {**STREAM, "user": "who", "max_items": 3, "capacity": 64}}})


def test_every_word_is_an_option_of_watch():
    from discreet.cli.watch import watch

    shown = {option.name: option.help for option in watch.params if hasattr(option, "help")}
    assert {each.name: each.help for each in words_of(LiveQuestion)}.items() <= shown.items()
