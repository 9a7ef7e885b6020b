"""What tests draw follows from their names (tests/conftest.py), and releases cannot tell."""

import secrets

import pytest

import discreet as dc
from discreet.noise import RandomSource, system_source


@pytest.fixture(scope="module")
def shared():
    return system_source().bytes(4).hex(), secrets.randbits(32)


def test_the_words_are_those_of_the_name(shared):
    own = system_source().bytes(4).hex(), secrets.randbits(32)
    assert shared == ("a4ef4509", 1748721738)
    assert own == ("ce50cc87", 2884165364)


def test_a_release_takes_them_for_those_of_the_system():
    assert type(system_source()) is not RandomSource
    assert repr(system_source()) == "system random source"
    assert not dc.top_k(["a"] * 900, 1, dc.Budget(0.1, 1e-9)).guarantee.seeded


@pytest.mark.system_noise
def test_a_mark_asks_for_the_words_of_the_system():
    assert type(system_source()) is RandomSource
    assert not system_source()._source.native.seeded
