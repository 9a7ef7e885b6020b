"""Numbers for values: in the order of their first appearance, one for equal values, and back."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines.numbers import Numbers, numbered


def first_appearances(values):
    known = {}
    return [known.setdefault(value, len(known)) for value in values], list(known)


def texts(random):
    lengths = np.concatenate([random.integers(0, 60, 30_000), [4096, 4095, 4096, 0]])
    return [chr(97 + i % 26) * int(length) + str(i % 9000)[: 4096 - int(length)] for i, length in enumerate(lengths)]


def integers(random):
    return [int(value) for value in random.integers(-(2**63), 2**63 - 1, 9000)[random.integers(0, 9000, 40_000)]]


@pytest.mark.parametrize("make", [texts, integers])
@pytest.mark.parametrize("step", [97, 40_000])
def test_numbers_and_back(make, step):
    values = make(np.random.default_rng(6))
    expected, distinct = first_appearances(values)
    assert 8000 < len(distinct) < len(values)  # tables grow, and values come again
    numbers = Numbers("items")
    found = [numbers.numbers(pa.array(values[at : at + step])) for at in range(0, len(values), step)]
    assert np.concatenate(found).tolist() == expected
    assert numbers.values(np.arange(len(distinct))).to_pylist() == distinct
    assert len({*numbers.hashes().tolist()}) == len(distinct)
    again = numbers.numbers(pa.array(values))
    assert again.tolist() == expected


def test_rows_that_nobody_wants_wait_for_no_thread():
    """The garbage collector may end them inside of a thread that is just beginning: to wait there hung for ever."""
    goes_on = threading.Event()

    class Slow:
        calls = 0

        def numbers(self, column):
            self.calls += 1
            if self.calls > 1:
                goes_on.wait(60)
            return np.zeros(len(column), np.int32)

    column = pa.array(["a", "b"])
    rows = numbered(itertools.repeat((column, column, None), 9), Slow(), Slow(), None)
    next(rows)  # the next ones are being numbered
    rows.close()
    assert not goes_on.is_set()
    assert any(thread.is_alive() for thread in threading.enumerate() if "ThreadPoolExecutor" in thread.name)
    goes_on.set()


def test_integers_of_any_width_are_what_they_were_whichever_come_last():
    """A column of uint64 says that none is negative; narrower ones after it, or before it, take nothing back."""
    large = pa.array([2**64 - 1, 2**63, 7], pa.uint64())
    others = [pa.array([5, 7], kind) for kind in (pa.int8(), pa.uint32(), pa.int64())]
    for batches in ([large, *others], [*others, large], [others[0], large, *others[1:]]):
        for kept in (False, True):
            numbers = Numbers("items")
            if kept:
                numbers.keep_integers()
            for batch in batches:
                numbers.numbers(batch)
            values = numbers.values(large.view(pa.int64()).to_numpy() if kept else np.arange(4))
            assert values.type == pa.uint64()
            assert {*values.to_pylist()} == ({2**64 - 1, 2**63, 7} if kept else {2**64 - 1, 2**63, 7, 5})
