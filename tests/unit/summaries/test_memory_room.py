"""How much memory there is: what the machine has, or what its control group may use, whichever is less."""

import io

import pytest

from discreet.summaries import memory


@pytest.mark.parametrize(("limit", "usable"), [("1000000", 1_000_000), ("max", 2**32), (str(2**60), 2**32)])
def test_a_control_group_may_have_less_than_the_machine(monkeypatch, limit, usable):
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 2**20)
    monkeypatch.setattr(memory, "open", lambda *given, **words: io.StringIO(limit), raising=False)
    assert memory._memory_of_machine() == usable
