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
    ],
)
def test_what_does_not_go_together_is_one_table(words, said):
    with pytest.raises(WordError) as refused:
        LiveQuestion(tick="1h", **words)
    assert refused.value.spelled(lambda word: f"{{{word}}}").startswith(said)


def test_a_stream_and_a_watch_are_the_same_question():
    (stream,) = configuration({"streams": {"s": {**STREAM, "user": "who", "max_items": 3}}}).streams.values()
    assert stream.live == LiveQuestion(column="q", user="who", max_items=3, tick="3600s", horizon=9)
    with pytest.raises(dc.ParameterError, match=r"streams\.s: capacity cannot be combined with user"):
        configuration({"streams": {"s": {**STREAM, "user": "who", "max_items": 3, "capacity": 64}}})


def test_every_word_is_an_option_of_watch():
    from discreet.cli.watch import watch

    shown = {option.name: option.help for option in watch.params if hasattr(option, "help")}
    assert {each.name: each.help for each in words_of(LiveQuestion)}.items() <= shown.items()
