"""Reading ahead: the same batches in the same order, errors where they were, and nothing read that nobody wants."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import discreet as dc
from discreet.events.ahead import in_order, read_ahead


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


@pytest.mark.parametrize("helpers", [0, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_tasks_are_done_in_any_order_and_handed_over_in_theirs(helpers, count):
    asked, free = [], threading.Semaphore(helpers + 1)

    def task(number):
        def do():
            assert free.acquire(blocking=False)  # no more threads than that
            if helpers and number % 7 == 0:
                threading.Event().wait(0.002)  # those after it are done first
            free.release()
            return number

        return do

    def tasks():
        for number in range(count):
            asked.append(number)
            yield task(number)

    taken = []
    for number in in_order(tasks(), helpers):
        taken.append(number)
        assert len(asked) - len(taken) <= helpers + 3  # few are in memory
    assert taken == asked == list(range(count))
    assert not readers()


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_what_is_in_memory_does_not_grow_with_the_machine(monkeypatch, cores):
    monkeypatch.setattr("discreet.events.ahead.available_cores", lambda: cores)
    asked, most = [], 0

    def tasks():
        for number in range(300):
            asked.append(number)
            yield lambda: threading.active_count()

    before, taken = threading.active_count(), 0
    for running in in_order(tasks()):
        taken, most = taken + 1, max(most, running)
        assert len(asked) - taken <= min(cores, 8) + 2
    assert taken == 300
    assert most - before <= min(cores, 8) - 1
    assert not readers()


def test_threads_that_cannot_be_started_leave_none_behind(monkeypatch):
    start, many = threading.Thread.start, []

    def third_fails(thread):
        many.append(thread)
        if len(many) == 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", third_fails)
    with pytest.raises(RuntimeError, match="start new thread"):
        list(in_order([int] * 50, helpers=4))
    assert len(many) == 3
    assert not readers()


def test_tasks_are_done_side_by_side():
    meeting = threading.Barrier(3, timeout=60)
    assert sorted(in_order([meeting.wait] * 3, helpers=2)) == [0, 1, 2]


def test_who_waits_for_a_result_does_what_is_there_to_do():
    """Without helpers the caller does everything; with one that is held up, all but that."""
    assert list(in_order([lambda: 1, lambda: 2], helpers=0)) == [1, 2]
    caller, late = threading.current_thread(), threading.Event()
    done_by = []

    def held_up():
        if threading.current_thread() is not caller:
            late.wait(60)

    def noted():
        done_by.append(threading.current_thread())
        late.set()

    assert len(list(in_order([held_up, noted, noted, noted], helpers=1))) == 4
    assert len(done_by) == 3


@pytest.mark.parametrize("helpers", [0, 2])
def test_an_error_of_a_task_comes_in_its_place(helpers):
    def tasks():
        for number in range(100):
            yield lambda number=number: 1 // (number != 5) and number

    results = in_order(tasks(), helpers)
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert next(results, None) is None
    assert not readers()


def test_threads_in_native_code_are_over_before_python_is():
    """A generator that nobody closes, as after an interrupt: its frames are held until the very end."""
    script = """
import sys, time
import numpy as np
import discreet as dc
from discreet.events.ahead import in_order

summary, column = dc.MisraGries(16), np.arange(50_000)


def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        summary.checked(column)


results = in_order(((lambda n=n: busy(n / 10)) for n in range(8)), helpers=4)
next(results)
sys.exit(3)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, "")
