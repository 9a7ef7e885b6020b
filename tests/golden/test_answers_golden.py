"""Functions of every room answer as they did: values, types, words of refusals, limits.

`tests/golden/answers` has a file of cases for each room, and a file of what they answered. Where something is meant to
change, `python tests/golden/answers/pin.py --write` writes the answers again, and the difference is part of the commit.
"""

import re

import pytest
from tests.golden.answers.pin import ROOMS as EVERY
from tests.golden.answers.pin import answer, cases, differences, pinned
from tests.same_versions import need_same_versions

ROOMS = [room for room in EVERY if room != "service"]  # tests/service has that one


@pytest.mark.parametrize(("room", "name"), [(room, name) for room in ROOMS for name in cases(room)])
def test_it_answers_as_it_did(room, name):
    need_same_versions()
    assert list(differences(answer(room, name), pinned(room)[name])) == []


def test_no_case_breaks_off():
    """A case that ends in an error of its own, such as a wrong argument, notices nothing from there on."""
    errors = (
        "TypeError|AttributeError|LookupError|KeyError|IndexError|NameError|ArithmeticError|ValueError|AssertionError"
    )
    broken = [
        (room, name)
        for room in EVERY
        for name, answered in pinned(room).items()
        if isinstance(answered, str) and re.match(f"({errors}):", answered)
    ]
    assert broken == []


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_else_is_pinned(room):
    assert list(pinned(room)) == list(cases(room))
