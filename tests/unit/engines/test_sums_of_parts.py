"""Sums, bins and people of parts of the rows add up to those of all: whoever is in two parts has one number in each."""

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines.amounts import Amounts, places_of_rows
from discreet.engines.group_sums import group_sums
from discreet.engines.person_sums import PersonRows
from discreet.events.tables import events_of
from discreet.summaries.moments import ValueMoment

MOMENTS = {
    "count": ValueMoment("count"),
    "mean": ValueMoment("mean", 0.0, 16.0),
    "variance": ValueMoment("variance", 0.0, 16.0),
    "split": ValueMoment("split", -4.0, 16.0),
}
ROWS = [
    ("ann", "de", 1.0), ("ann", "fr", 2.0), ("bob", "de", 4.0), ("ann", "de", 8.0), ("cid", "it", float("nan")),
    ("bob", "fr", 16.0), ("dan", "fr", 0.0), ("bob", "de", -3.0),
]  # fmt: skip


def table(rows=ROWS):
    who, group, number = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "who": pa.array(who, pa.string()),
            "group": pa.array(group, pa.string()),
            "n": pa.array(number, pa.float64()),
        }
    )


def rows_of(rows=ROWS, user="who", by=("group",), value="n", **more):
    return events_of(table(rows)).rows((), user=user, by=by, value=value, only_groups=True, **more)


def told(found, keys):
    """(whose, which group, what it adds), whatever the numbers are."""
    names = [str(name) for name in keys.items(found.keys).to_pylist()]
    return sorted(
        (int(owner), names[place], tuple(entry))
        for owner, place, entry in zip(found.owners, found.places, found.entries.tolist(), strict=True)
    )


@pytest.mark.parametrize("kind", MOMENTS)
@pytest.mark.parametrize("cut", [0, 2, 5, 8])
def test_people_of_two_parts_stay_two(kind, cut):
    """Each part has all rows of its people, so nobody of one is anybody of the other."""
    moment = MOMENTS[kind]
    people = [sorted({who for who, *_ in ROWS})[: cut // 2], sorted({who for who, *_ in ROWS})[cut // 2 :]]
    parts, whole = [], rows_of()
    for those in people:
        rows = rows_of([row for row in ROWS if row[0] in those])
        parts.append(PersonRows.of(rows, moment))
    both = parts[0] + parts[1]
    all_rows = PersonRows.of(whole, moment)
    assert len({*both.owners.tolist()}) == len({*all_rows.owners.tolist()}) == 3  # cid has no number
    one, other = told(both, whole.keys), told(all_rows.in_order(), whole.keys)
    assert sorted(each[1:] for each in one) == sorted(each[1:] for each in other)
    for found in (both, all_rows):  # what each person has is theirs alone
        by_owner = {}
        for owner, group, entry in told(found, whole.keys):
            by_owner.setdefault(owner, []).append((group, entry))
        expected = {}
        for who, group, number in ROWS:
            if not np.isnan(number):
                sums = expected.setdefault(who, {}).setdefault(group, np.zeros(moment.parts, np.int64))
                sums += moment.entries(np.array([number]))[0]
        have = sorted(sorted(each) for each in by_owner.values())
        assert have == sorted(sorted((g, tuple(s.tolist())) for g, s in each.items()) for each in expected.values())


def test_sums_of_groups_add_up_over_parts_and_leave_out_what_is_no_number():
    moment = MOMENTS["mean"]
    rows = rows_of(user=None)
    found = group_sums(rows, moment)
    names = [str(name) for name in rows.keys.items(found.keys).to_pylist()]
    assert sorted(names) == ["de", "fr"]
    for name, sums in zip(names, found.sums.tolist(), strict=True):
        own = np.array([n for _, group, n in ROWS if group == name])
        assert sums == moment.total(own).tolist()
    alone = group_sums(events_of(table()).rows("n", numbers=True), moment)
    assert alone.keys is None
    assert alone.sums.tolist() == [moment.total(np.array([n for *_, n in ROWS if n == n])).tolist()]


def test_groups_that_nobody_is_in_are_none():
    """Where no row came there is no group, and without groups a sum of nothing."""
    none = group_sums(rows_of([], user=None), MOMENTS["mean"])
    assert len(none.sums) == 0
    assert len(none.keys) == 0
    alone = group_sums(events_of(table([])).rows("n", numbers=True), MOMENTS["mean"])
    assert alone.sums.tolist() == [[0, 0]]


# ---- bins ------------------------------------------------------------------------------------------------------------


def amounts(rows, by=("group",), user="who"):
    found = events_of(table(rows)).rows((), user=user, by=by, value="n", only_groups=bool(by))
    return Amounts(found, lambda numbers: np.floor(numbers).astype(np.int32)), found


@pytest.mark.parametrize("cut", [0, 3, 8])
def test_bins_of_parts_are_those_of_all(cut):
    """People of two parts are different people; a group is the same one in both."""
    (one, found), (other, _) = amounts(ROWS[:cut]), amounts(ROWS[cut:])
    both = one + other
    assert sorted(both.places.tolist()) == sorted(int(np.floor(n)) for *_, n in ROWS if n == n)
    first, second = ({who for who, _, n in part if n == n} for part in (ROWS[:cut], ROWS[cut:]))
    assert len({*both.people.tolist()}) == len(first) + len(second)
    names = found.keys.items(both.keys).to_pylist() if found.keys.layout else []
    have = sorted((str(names[group]), place) for group, place in zip(both.groups, both.places.tolist(), strict=True))
    assert have == sorted((group, int(np.floor(n))) for _, group, n in ROWS if n == n)


def test_bins_of_rows_leave_out_what_is_no_number():
    rows = [(who, group, n) for who, group, n in ROWS]

    def plain():
        return events_of(table(rows)).rows("n", numbers=True)

    found = np.concatenate(list(places_of_rows(plain(), lambda numbers: np.floor(numbers).astype(np.int32))))
    assert sorted(found.tolist()) == sorted(int(np.floor(n)) for *_, n in ROWS if n == n)
