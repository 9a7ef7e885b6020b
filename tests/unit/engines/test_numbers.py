"""Numbers for values: in the order of their first appearance, one for equal values, and back."""

from __future__ import annotations

import itertools
import threading
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines.numbers import Numbers, numbered, plain_numbers, with_numbers
from discreet.errors import DataError
from discreet.summaries.people import ValueRange


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


REFUSED = {
    "numbers after texts": ([["a"], [1]], "are numbers, but were texts or bytes before; write all of them as texts"),
    "texts after numbers": ([[1], ["a"]], "are texts or bytes, but were numbers before; write all of them as texts"),
    "bytes after numbers": ([[1], [b"a"]], "are texts or bytes, but were numbers before"),
    "floats": ([[1.5]], "are floats, which whole numbers become"),
    "lists": ([[["a"]]], "must hold single values, not nested ones"),
    "tuples": ([[{"a": 1}]], "must hold single values, not nested ones"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_number_is_refused_by_its_type(what):
    columns, words = REFUSED[what]
    numbers = Numbers("people")
    for column in columns[:-1]:
        numbers.numbers(pa.array(column))
    with pytest.raises(DataError, match=words) as refused:
        numbers.numbers(pa.array(columns[-1]))
    assert "people" in str(refused.value)


def test_rows_without_a_value_have_no_number_and_change_no_other():
    numbers = Numbers("people")
    assert (numbers.numbers(pa.array([None, "a", None, "b"])) < 0).tolist() == [True, False, True, False]
    assert numbers.numbers(pa.nulls(2)).tolist() == [-1, -1]
    assert numbers.numbers(pa.array(["a" * 5000, "a"])).tolist()[0] < 0
    whole = Numbers("items")
    assert (whole.numbers(pa.array([None, 7])) < 0).tolist() == [True, False]
    assert (whole.numbers(pa.nulls(1)) < 0).tolist() == [True]
    assert whole.numbers(pa.array([7], pa.uint64())).tolist() == whole.numbers(pa.array([7], pa.int8())).tolist()
    assert whole.values(np.array([0])).type == pa.uint64()  # as one of the columns was


def test_other_scalars_are_numbered_as_text():
    days = pa.array([1, 2, 1], pa.int32()).cast(pa.date32())
    numbers = Numbers("people")
    assert numbers.numbers(days).tolist() == [0, 1, 0]
    assert numbers.values(np.array([0])).to_pylist() == ["1970-01-02"]
    truths = Numbers("people")
    assert truths.numbers(pa.array([True, False, True]).dictionary_encode()).tolist() == [0, 1, 0]


def test_values_are_floats_and_what_is_none_is_no_number():
    kinds = [
        pa.array([1, None]),
        pa.array([1.0, float("nan")]),
        pa.array([Decimal("1.0"), None]),
        pa.array([1.0, None]),
    ]
    for amounts in kinds:
        plain = plain_numbers(amounts)
        assert plain[0] == 1.0
        assert np.isnan(plain[1])
        values, other = with_numbers(amounts, pa.array(["a", "b"]))
        assert (values.tolist(), other.to_pylist()) == ([1.0], ["a"])
    assert np.isnan(plain_numbers(pa.nulls(3))).all()
    assert with_numbers(pa.array([1.0]), None)[1] is None
    for wrong in (pa.array(["1"]), pa.array([True]), pa.array([[1]])):
        with pytest.raises(DataError, match="the column of values must hold numbers"):
            plain_numbers(wrong)


def test_steps_of_values_leave_out_the_rows_of_those_that_are_none():
    """All columns of a row, or none."""
    columns = [(pa.array(["a", "b", "c"]), pa.array(["x", "y", "z"]), pa.array([1.0, float("nan"), 3.0]))]
    (rows,) = numbered(iter(columns), Numbers("people"), Numbers("items"), ValueRange(0.0, 4.0))
    assert len(rows) == len(rows.users) == len(rows.items) == len(rows.values) == 2
    assert rows.values.tolist() == ValueRange(0.0, 4.0).steps(np.array([1.0, 3.0])).tolist()


def test_hashes_are_under_keys_of_their_own():
    """Nobody can choose values that are in one place of every table."""
    found = set()
    for _ in range(3):
        for column in (pa.array(["a", "b"]), pa.array([1, 2])):
            numbers = Numbers("items")
            numbers.numbers(column)
            found.add(tuple(numbers.hashes().tolist()))
    assert len(found) == 6
    one, other = Numbers("items", seed=5), Numbers("items", seed=5)
    for numbers in (one, other):
        numbers.numbers(pa.array(["a"]))
    assert one.hashes().tolist() == other.hashes().tolist()
