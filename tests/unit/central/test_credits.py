"""How many values can be credited, beside a flow over all pairs, and beside trying all ways."""

import itertools

import numpy as np
import pytest

from discreet import _native
from discreet.central.credited_distinct import _by_flow, credited_in_turn
from discreet.errors import ParameterError


def by_flow(people, values, most):
    pairs = np.unique(np.array(people, np.int64) << 32 | np.array(values, np.int64))
    if not len(pairs):
        return 0
    owners = pairs >> 32
    return _by_flow(owners, pairs & 0xFFFFFFFF, np.full(int(owners.max()) + 1, most, np.int64))


def by_trying(people, values, most):
    has = {value: {p for p, v in zip(people, values, strict=True) if v == value} for value in set(values)}
    ways = itertools.product(*([None, *owners] for owners in has.values()))
    allowed = (way for way in ways if all(way.count(person) <= most for person in set(people)))
    return max(sum(person is not None for person in way) for way in allowed)


@pytest.mark.parametrize("seed", range(60))
def test_as_many_as_a_flow_credits(seed):
    random = np.random.default_rng(seed)
    rows, people, values = random.integers(0, 400), random.integers(1, 60), random.integers(1, 90)
    who = np.minimum(random.zipf(1.3, rows) - 1, people - 1) if seed % 2 else random.integers(0, people, rows)
    what = random.integers(0, values, rows)
    several = (1, 2, 3, 4, 8, 64)
    assert credited_in_turn(who, what, several) == {most: by_flow(who, what, most) for most in several}


@pytest.mark.parametrize("seed", range(30))
def test_as_many_as_any_way_credits(seed):
    random = np.random.default_rng(seed)
    rows = random.integers(1, 14)
    who, what = random.integers(0, 4, rows), random.integers(0, 5, rows)
    found = credited_in_turn(who, what, (1, 2))
    assert found == {most: by_trying(who.tolist(), what.tolist(), most) for most in (1, 2)}


def test_a_core_that_no_rule_decides():
    """Three people share two values, and two others five: none is alone, and nobody has room for all."""
    who = [*itertools.chain.from_iterable([p, p] for p in (0, 1, 2)), *[3] * 5, *[4] * 5]
    what = [0, 1] * 3 + [2, 3, 4, 5, 6] * 2
    assert credited_in_turn(np.array(who), np.array(what), (1, 2, 3)) == {1: 4, 2: 6, 3: 7}


def test_numbers_may_have_gaps():
    who, what = np.array([5, 9, 9, 5]), np.array([7, 7, 100, 100])
    assert credited_in_turn(who, what, (1, 2)) == {1: 2, 2: 2}
    assert credited_in_turn(who[:0], what[:0], (1, 2)) == {1: 0, 2: 0}


@pytest.mark.parametrize("pairs", [[1, 1], [2, 1], [-1], [(1 << 32) | 1 << 31]])
def test_wrong_pairs_are_refused(pairs):
    with pytest.raises(ParameterError):
        _native.Credits(np.array(pairs, np.int64))


def test_in_ascending_order():
    credits = _native.Credits(np.array([0, 1], np.int64))
    assert credits.credited(2)[0] == 2
    with pytest.raises(ParameterError):
        credits.credited(1)
