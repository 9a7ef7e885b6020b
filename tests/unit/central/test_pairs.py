"""Pairs of items that people have together: from lists, tables and files, and what is refused."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from tests.commands import run_here

import discreet as dc
from discreet.central.person_pairs import PersonPairs
from discreet.engines import duck_people, exact_people
from discreet.errors import IncompatibleSummaryError
from discreet.events.tables import events_of
from discreet.noise import seeded_source
from discreet.summaries.memory import Memory
from discreet.summaries.people import ListedPeople, People

BUDGET = dc.Budget(2.0, 1e-6)


def baskets(people=2500, seed=3):
    """Twelve items with heavy tails; the first two go together."""
    random = np.random.default_rng(seed)
    drawn = [np.unique(np.minimum(random.exponential(2.5, 4).astype(int), 11)).tolist() for _ in range(people)]
    return [sorted({*items, *([1] if 0 in items else [])}) for items in drawn]


BASKETS = baskets()
TRUTH = Counter(pair for items in BASKETS for pair in combinations(items, 2))


def table(lists, name=str):
    rows = [(f"person {person}", name(item)) for person, items in enumerate(lists) for item in items]
    order = np.random.default_rng(1).permutation(len(rows))
    return pa.table({"who": [rows[place][0] for place in order], "what": [rows[place][1] for place in order]})


def test_pairs_of_lists():
    release = dc.top_k(BASKETS, 10, BUDGET, pairs=True, source=seeded_source(1))
    assert release.items[0] == (0, 1)
    assert release.items == sorted(release.items, key=lambda pair: -release[pair].count)
    assert all(first < second for first, second in release.items)
    assert {*release.items} <= {*TRUTH}
    top = {pair for pair, _ in TRUTH.most_common(10)}
    assert len(top & {*release.items}) >= 8
    for row in release:
        assert row.lower <= TRUTH[row.item] <= row.upper
    assert release.counted == "people"
    assert release.names == ("item_1", "item_2")
    assert release.asked.parameters["pairs"] == 2
    assert any("nobody has together" in note for note in release.notes())


def test_triples():
    release = dc.top_k(BASKETS, 5, BUDGET, pairs=3, source=seeded_source(1))
    truth = Counter(triple for items in BASKETS for triple in combinations(items, 3))
    assert release.names == ("item_1", "item_2", "item_3")
    assert release.items[0] == truth.most_common(1)[0][0]
    assert all(row.lower <= truth[row.item] <= row.upper for row in release)


def test_lists_and_tables_in_memory_and_on_disk_have_the_same_release(monkeypatch):
    """Bit for bit from a seeded source; what is fetched from disk is cut within people."""
    lists = [[f"x{item:02d}" for item in items] for items in BASKETS]
    first = dc.top_k(lists, 10, BUDGET, pairs=True, source=seeded_source(5))
    columns = table(BASKETS, lambda item: f"x{item:02d}")
    second = dc.top_k(columns, 10, BUDGET, column="what", user="who", pairs=True, source=seeded_source(5))

    class NoRoom(Memory):
        room = 0

    monkeypatch.setattr(exact_people, "Memory", NoRoom)
    monkeypatch.setattr(duck_people, "_BATCH", 500)
    people = exact_people.people_of(events_of(columns).rows("what", user="who"), together=True)
    with people:
        assert isinstance(people, duck_people.DuckPeople)
        third = PersonPairs(BUDGET, 10)(people, seeded_source(5))
    assert {*first.items} == {*second.items} == {*third.items}
    everything = []
    for kind in ("listed", "memory", "disk"):
        if kind == "listed":
            people = ListedPeople(lists)
        elif kind == "memory":
            monkeypatch.setattr(exact_people, "Memory", Memory)
            people = exact_people.people_of(events_of(columns).rows("what", user="who"), together=True)
        else:
            monkeypatch.setattr(exact_people, "Memory", NoRoom)
            people = exact_people.people_of(events_of(columns).rows("what", user="who"), together=True)
        names = people.items(np.arange(len(people.discovery_weights(256)))).to_pylist()
        places = np.argsort(names)[:7]
        pairs = people.combinations(places, 2)
        some = np.arange(0, pairs.total, 2)
        lengths = [part.tolist() for part in pairs.lengths(some, some + 3)]
        everything.append((pairs.scaled_sums(some, some + 3, 9.0).tolist(), lengths, pairs.items(some).to_pylist()))
        if kind != "listed":
            people.close()
    assert everything[0] == everything[1] == everything[2]


def test_formats_and_the_way_back(tmp_path):
    release = dc.top_k(BASKETS, 3, BUDGET, pairs=True)
    told = json.loads(release.to_json())
    assert [{*row} for row in told["items"]] == [{"item_1", "item_2", "count", "lower", "upper"}] * 3
    again = dc.Release.from_json(release.to_json())
    assert again.items == release.items
    assert dc.Release.from_payload(release.to_payload()).items == release.items
    assert release.to_csv().splitlines()[0] == "item_1,item_2,count,lower,upper"
    assert release.to_arrow().column_names == ["item_1", "item_2", "count", "lower", "upper"]
    assert "may, rarely, not have occurred" in release.explain()


def test_nothing_found_has_the_same_columns():
    release = dc.top_k([["a", "b"], ["b"]], 3, BUDGET, pairs=True)
    assert len(release) == 0
    assert release.names == ("item_1", "item_2")


def test_items_of_other_types_are_in_their_own_order():
    """Dates are counted by their bytes, which have another order."""
    day = datetime.date(1969, 12, 25)
    columns = table(BASKETS, lambda item: item)
    days = [day + datetime.timedelta(days=item) for item in columns["what"].to_pylist()]
    dated = pa.table({"who": columns["who"], "day": days})
    release = dc.top_k(dated, 20, BUDGET, column="day", user="who", pairs=True, source=seeded_source(2))
    assert len(release) == 20
    assert all(first < second for first, second in release.items)
    truth = {tuple(day + datetime.timedelta(days=item) for item in pair): many for pair, many in TRUTH.items()}
    assert all(row.lower <= truth[row.item] <= row.upper for row in release)


def test_a_charge_id_stands_for_pairs(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("baskets", dc.Budget(4.0, 1e-5))
    account = ledger.account("baskets")
    first = dc.top_k(BASKETS, 3, BUDGET, pairs=True, ledger=account, charge_id="monday")
    again = dc.top_k(BASKETS, 3, BUDGET, pairs=True, ledger=account, charge_id="monday")
    assert (again.items, again.payment) == (first.items, "replayed")
    with pytest.raises(dc.LedgerError):
        dc.top_k(BASKETS, 3, BUDGET, pairs=3, ledger=account, charge_id="monday")
    assert account.spent().epsilon == 2.0


@pytest.mark.parametrize("given", ["csv", "lists", "baskets"])
def test_files_on_the_command_line(tmp_path, given):
    if given == "csv":
        path, words = tmp_path / "visits.csv", ["--column", "what", "--user", "who"]
        columns = table(BASKETS, lambda item: f"x{item:02d}").to_pydict()
        rows = zip(columns["who"], columns["what"], strict=True)
        path.write_text("who,what\n" + "".join(f"{who},{what}\n" for who, what in rows))
    elif given == "lists":
        path, words = tmp_path / "baskets.jsonl", ["--column", "items"]
        path.write_text("".join(json.dumps({"items": items}) + "\n" for items in BASKETS))
    else:
        path, words = tmp_path / "baskets.dat", ["--input-format", "baskets"]
        path.write_text("".join(" ".join(map(str, items)) + "\n" for items in BASKETS))
    done = run_here("top", "--pairs", path, *words, "-k", 3, "--epsilon", 2, "--delta", 1e-6, "--format", "json")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["items"][0]
    assert [str(first[name])[-1] for name in ("item_1", "item_2")] == ["0", "1"]
    assert first["lower"] <= TRUTH[0, 1] <= first["upper"]


@pytest.mark.parametrize("given", [1, 4, "two", 2.5])
def test_other_numbers_of_items_are_refused(given):
    with pytest.raises(dc.ParameterError, match="pairs must be True for pairs, or 3 for triples"):
        dc.top_k(BASKETS, 3, BUDGET, pairs=given)


def test_false_is_as_if_nothing_was_said():
    assert dc.Top(column="a", pairs=False) == dc.Top(column="a")


def test_rows_are_refused():
    with pytest.raises(dc.ParameterError, match="single items do not say whose they are"):
        dc.top_k(pa.array(["a", "b"]), 3, BUDGET, pairs=True)
    with pytest.raises(dc.DataError, match="each row must be the list of one user's items"):
        dc.top_k(["a", "b"], 3, BUDGET, pairs=True)


def test_people_who_do_not_say_what_they_have_together_are_refused_before_anything_is_drawn():
    class OnSpark(People):
        discovery_weights = aimed_weights = items = lengths = scaled_sums = None

    with pytest.raises(IncompatibleSummaryError, match="does not say which items people have together"):
        PersonPairs(BUDGET, 3)(OnSpark())
    with pytest.raises(dc.ParameterError, match="counts people"):
        PersonPairs(BUDGET, 3, rows=True)
    with pytest.raises(dc.ParameterError, match="size"):
        PersonPairs(BUDGET, 3, size=4)


def test_how_many_items_are_looked_for():
    """Enough for ten times as many pairs as are asked for, and never more than can be counted."""
    looked_for = {k: PersonPairs(BUDGET, k).items_looked_for for k in (1, 10, 100, 1000, 10**6)}
    assert looked_for == {1: 5, 10: 15, 100: 46, 1000: 142, 10**6: 482}
    assert PersonPairs(BUDGET, 100, size=3).items_looked_for == 20
