"""The recorded numbers of the rooms that take longest; the others are in `test_recorded_numbers.py` of each room."""

import importlib

import pytest
from tests import recorded

ROOMS = {
    room: importlib.import_module(f"tests.unit.{room}.test_recorded_numbers")
    for room in ("central", "multiparty", "pan", "privacy")
}


@pytest.mark.parametrize(("room", "name"), [(room, name) for room, made in ROOMS.items() for name in sorted(made.SLOW)])
def test_what_is_recorded(room, name):
    recorded.check(room, name, ROOMS[room].CASES[name])
