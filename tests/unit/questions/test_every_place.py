"""docs/questions.md says which question runs where: every cell but those of Spark (tests/spark) is asked here."""

import pytest
from tests.places import QUESTIONS, check, places, stated

from discreet.questions.question import Question
from discreet.questions.sums import NumberQuestion


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    return places(tmp_path_factory.mktemp("places"))


def test_the_page_has_every_question_and_place(everywhere):
    assert {*stated()} == {*QUESTIONS}
    kinds = {*Question.__subclasses__(), *NumberQuestion.__subclasses__()} - {NumberQuestion}
    ours = {kind for kind in kinds if kind.__module__.startswith("discreet.")}  # those of pages that ran before are not
    assert {type(question) for question in QUESTIONS.values()} == ours
    assert all(list(cells) == [*everywhere, "Spark"] for cells in stated().values())


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_answered_or_refused_as_the_page_says(everywhere, name):
    for place, makers in everywhere.items():
        check(name, place, makers)
