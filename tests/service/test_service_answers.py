"""The service answers as it did: bodies, definitions, every route after scripted events, what is kept.

The cases are in `tests/golden/answers/service.py`; what they answered is written anew as for the other rooms.
"""

from __future__ import annotations

import pytest
from tests.golden.answers.pin import answer, cases, differences, pinned
from tests.same_versions import need_same_versions


@pytest.mark.parametrize("name", cases("service"))
def test_it_answers_as_it_did(name: str) -> None:
    need_same_versions()
    assert list(differences(answer("service", name), pinned("service")[name])) == []


def test_nothing_else_is_pinned() -> None:
    assert list(pinned("service")) == list(cases("service"))
