"""Reading ahead: the same batches in the same order, errors where they were, and nothing read that nobody wants."""

from __future__ import annotations

import threading

import pytest

import discreet as dc
from discreet.engines.ahead import read_ahead


def readers():
    """The threads that read on; one that is told to end may still be about to."""
    for thread in threading.enumerate():
        if thread.name == "read ahead":
            thread.join(60)
    return [thread for thread in threading.enumerate() if thread.name == "read ahead"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
def test_all_of_them_in_order(count):
    assert list(read_ahead(iter(range(count)))) == list(range(count))
    assert not readers()


def test_an_error_comes_after_what_was_read_before_it():
    def failing():
        yield from range(5)
        raise dc.DataError("the sixth is damaged")

    batches = read_ahead(failing())
    assert [next(batches) for _ in range(5)] == list(range(5))
    with pytest.raises(dc.DataError, match="sixth"):
        next(batches)
    assert not readers()


def test_few_are_read_ahead_and_none_after_the_last_one_wanted():
    read = []

    def noted():
        for number in range(1000):
            read.append(number)
            yield number

    batches = read_ahead(noted())
    assert [next(batches) for _ in range(10)] == list(range(10))
    batches.close()
    assert not readers()
    assert len(read) <= 10 + 4


def test_whoever_waits_for_a_batch_is_reading_at_the_same_time():
    taken, both = threading.Event(), threading.Event()

    def waits_for_the_taker():
        yield 1
        if taken.wait(60):  # only if 1 is worked on while this is being read
            both.set()
        yield 2

    for batch in read_ahead(waits_for_the_taker()):
        if batch == 1:
            taken.set()
            assert both.wait(60)
