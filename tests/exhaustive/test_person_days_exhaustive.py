"""Pairs of people and days on all small data: one row is in one pair, and one pair is one vector of length at most 1.

Neighbours differ in all rows of one person on one day. What the mechanisms for people add up is a vector a key, of
length at most 1: here that of the first look, equal weights on the different items of a key. The twins count a row in
two days, and let the days of a person share one vector. Both are found: sums move farther than the noise is for.
"""

import itertools
import math
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from tests.reference import question_laws as laws

from discreet.events.assembly import Assembler
from discreet.events.tables import events_of
from discreet.events.times import Pairing
from discreet.privacy.spans import Calendar

PEOPLE, ITEMS, MORE = "uv", "abc", "abcdefghi"
MOMENTS = {"2026-11-14T23:59:59Z": 0, "2026-11-15T00:00:00Z": 1, "2026-11-15T23:59:59Z": 1}
KINDS = list(itertools.product(PEOPLE, MOMENTS, ITEMS))


def keys_of(rows, calendar, period=None):
    """(key, item) of every row, as the reader of all questions makes them."""
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(3)]
    table = pa.table(dict(zip(("who", "ts", "item"), columns, strict=True)))
    pairing = Pairing("ts", calendar, period)
    read = events_of(table).rows("item", user="who", pairing=pairing)
    return [pair for users, items, _ in read.owned() for pair in zip(users.to_pylist(), items.to_pylist(), strict=True)]


def sums_of(pairs):
    """The sum of the vectors of all keys, and how many keys there are."""
    held = defaultdict(set)
    for key, item in pairs:
        held[key].add(item)
    total = np.zeros(len(MORE))
    for items in held.values():
        for item in items:
            total[MORE.index(item)] += 1.0 / math.sqrt(len(items))
    return total, len(held)


def test_pairs_are_those_of_the_law():
    """The sum of all vectors and the number of pairs, of all days and of one, for all sets of up to three rows."""
    calendar = Calendar("1d")
    for size in range(1, 4):
        for chosen in itertools.combinations(KINDS, size):
            rows = [(who, MOMENTS[moment], item) for who, moment, item in chosen]
            for day, period in ((None, None), (1, calendar.period("2026-11-15"))):
                exact, many = laws.days_of(rows, day)
                total, told = sums_of(keys_of(chosen, calendar, period))
                assert told == many
                assert total == pytest.approx([exact.get(item, 0.0) / laws.L for item in MORE])
                if (("u", 0) in {row[:2] for row in rows}) and (("u", 1) in {row[:2] for row in rows}) and day is None:
                    assert laws.days_of([(who, 0, item) for who, _, item in rows])[1] < many  # days that share a vector


def farthest(calendar, days=MOMENTS):
    """How far sums and numbers of keys move at most: over all sets of up to four rows, and all neighbours of each."""
    sums = numbers = 0.0
    for size in range(1, 5):
        for chosen in itertools.combinations(KINDS[::2] if size == 4 else KINDS, size):
            if len({who for who, _, _ in chosen}) > 1 and size > 2:
                continue  # another person's rows are in other keys
            before, many = sums_of(keys_of(chosen, calendar))
            for who, day in {(who, days[moment]) for who, moment, _ in chosen}:
                left = [row for row in chosen if (row[0], days[row[1]]) != (who, day)]
                after, fewer = sums_of(keys_of(left, calendar)) if left else (np.zeros(len(MORE)), 0)
                sums = max(sums, float(np.linalg.norm(before - after)))
                numbers = max(numbers, abs(many - fewer))
    return sums, numbers


def nine_to_one():
    """How far the sums move if the day on which somebody had 8 of their 9 items is taken away."""
    first, second = "2026-11-14T23:59:59Z", "2026-11-15T00:00:00Z"
    rows = [("u", first, MORE[0]), *(("u", second, item) for item in MORE[1:])]
    (before, _), (after, _) = (sums_of(keys_of(some, Calendar("1d"))) for some in (rows, rows[:1]))
    return float(np.linalg.norm(before - after))


@pytest.fixture
def twin(monkeypatch):
    def replace(change):
        paired = Assembler._paired
        monkeypatch.setattr(Assembler, "_paired", lambda self, arrays, *how: change(paired, self, arrays, *how))

    return replace


def test_one_day_of_one_person_moves_one_vector():
    sums, numbers = farthest(Calendar("1d"))
    assert sums <= 1.0 + 1e-12
    assert numbers == 1


def test_the_twin_whose_days_share_a_vector_is_found(twin):
    """Taking away a day with 8 of 9 items makes the weight of the other one larger: sqrt(2 - 2/sqrt(9)) in all."""

    def shared(paired, self, arrays, *how):
        whose = self._whose
        made = list(paired(self, arrays, *how))
        made[whose] = arrays[whose]  # the person, without the day
        return tuple(made)

    assert nine_to_one() <= 1.0 + 1e-12
    twin(shared)
    assert nine_to_one() == pytest.approx(math.sqrt(2.0 - 2.0 / math.sqrt(9.0)))
    assert nine_to_one() > 1.15


def test_the_twin_that_counts_a_row_in_two_days_is_found(twin):
    def twice(paired, self, arrays, *how):
        place = self.time_place
        later = [pa.concat_arrays([array, array]) for array in arrays]
        moved = pa.array([text.replace("11-14", "11-15") for text in arrays[place].to_pylist()], pa.string())
        later[place] = pa.concat_arrays([arrays[place], moved])
        return paired(self, tuple(later), *how)

    twin(twice)
    sums, numbers = farthest(Calendar("1d"))
    assert sums > 1.0 + 1e-6
    assert numbers > 1


def test_a_release_about_a_period_sees_no_row_of_another_day():
    """The rows that it reads are the same for neighbours that differ in a day outside: so is what it publishes."""
    calendar = Calendar("1d")
    period = calendar.period("2026-11-15")
    for size in range(1, 4):
        for chosen in itertools.combinations(KINDS, size):
            inside = [row for row in chosen if MOMENTS[row[1]] == 1]
            assert keys_of(chosen, calendar, period) == (keys_of(inside, calendar, period) if inside else [])
