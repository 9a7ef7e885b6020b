"""People over time: what counts of a person, what a step refuses, and what a state keeps."""

import json
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import _native
from discreet.continual import DistinctCount, Histogram
from discreet.continual._people import PeopleSeen
from discreet.noise import seeded_source
from discreet.storage import open_state, seal_state

BUDGET = dc.Budget(1.0, 1e-6)
PLENTY = dc.Budget(5000.0, 0.5)
ITEMS = [f"item {i}" for i in range(9)]


class Silence:
    """No noise at all, to see what is counted."""

    seeded = True

    def discrete_gaussian(self, sigma, size=None):
        return 0 if size is None else np.zeros(size, np.int64)


def silent(cls, *args, **named):
    """A mechanism whose releases are the counts."""
    return cls(*args, **named, source=Silence())


def counts(release):
    return dict(zip(release.items, release.counts.tolist(), strict=True))


def rows(ticks, seed=1, users=40, items=ITEMS, length=60):
    rng = np.random.default_rng(seed)
    return [
        ([f"user {u}" for u in rng.integers(0, users, length)], [items[i] for i in rng.integers(0, len(items), length)])
        for _ in range(ticks)
    ]


def expected(ticks, most, domain=None):
    """Totals after every tick, one row after the other."""
    held, totals, out = defaultdict(list), defaultdict(int), []
    for users, items in ticks:
        for user, item in zip(users, items, strict=True):
            if (domain is None or item in domain) and item not in held[user] and len(held[user]) < most:
                held[user].append(item)
                totals[item] += 1
        out.append(dict(totals))
    return out


@pytest.mark.parametrize("most", [1, 2, 4, 9, 300])
def test_a_person_counts_once_an_item_and_for_the_first_m(most):
    stream = rows(6)
    histogram = silent(Histogram, 6, BUDGET, ITEMS, unit=dc.User(most))
    for (users, items), right in zip(stream, expected(stream, most), strict=True):
        release = histogram.step(items, users=users)
        assert {item: count for item, count in counts(release).items() if count} == right
        assert release.counted == "people"
        assert release.guarantee.unit == dc.User(most)


def test_items_outside_the_domain_are_nobodys_items():
    stream = rows(4)
    histogram = silent(Histogram, 4, BUDGET, ITEMS[:3], unit=dc.User(2))
    for (users, items), right in zip(stream, expected(stream, 2, ITEMS[:3]), strict=True):
        assert {i: c for i, c in counts(histogram.step(items, users=users)).items() if c} == right


def test_an_item_that_counts_for_nobody_is_not_there():
    histogram = silent(Histogram, 4, dc.Budget(1.0, 1e-6), unit=dc.User(1))
    histogram.step(["a", "b", "c"], users=["u", "u", "v"])
    assert histogram._items == ["a", "c"]
    histogram.step(["d", "e"], users=["u", "w"])
    assert histogram._items == ["a", "c", "e"]
    assert histogram._total.tolist() == [1, 1, 1]


@pytest.mark.parametrize("mechanism", ["factorised", "tree"])
@pytest.mark.parametrize("domain", [None, ITEMS])
def test_the_noise_and_the_cut_are_those_of_an_event_of_m_items(mechanism, domain):
    people = Histogram(20, BUDGET, domain, mechanism=mechanism, unit=dc.User(7))
    events = Histogram(20, BUDGET, domain, 7, mechanism=mechanism)
    assert people._scheme.sigma == events._scheme.sigma
    assert [people.error(t) for t in range(1, 21)] == [events.error(t) for t in range(1, 21)]
    if domain is None:
        assert [people._scheme.cut(t) for t in range(1, 21)] == [events._scheme.cut(t) for t in range(1, 21)]


@pytest.mark.parametrize("kind", ["list", "numpy", "arrow", "dictionary", "chunked", "pandas", "polars"])
@pytest.mark.parametrize("of", [str, int])
def test_every_kind_of_column(kind, of):
    users, items = [3, 1, 3, 3, 2, 1], [10, 20, 10, 20, 10, 20]
    if of is str:
        users, items = [str(u) for u in users], [str(i) for i in items]
    convert = {
        "list": list,
        "numpy": np.array,
        "arrow": pa.array,
        "dictionary": lambda values: pa.array(values).dictionary_encode(),
        "chunked": lambda values: pa.chunked_array([values[:2], values[2:]]),
        "pandas": pd.Series,
        "polars": pl.Series,
    }[kind]
    histogram = silent(Histogram, 2, BUDGET, [of(10), of(20)], unit=dc.User(2))
    assert counts(histogram.step(convert(items), users=convert(users))) == {of(10): 2, of(20): 2}
    assert counts(histogram.step(items[:2], users=users[:2])) == {of(10): 2, of(20): 2}
    distinct = silent(DistinctCount, 2, BUDGET)
    assert (distinct.step(convert(users)), distinct.step(users)) == (3, 3)


def test_ids_of_different_kinds_are_different_people():
    distinct = silent(DistinctCount, 3, BUDGET)
    assert distinct.step([1, "1", b"1", 1, -1]) == 4
    distinct = DistinctCount.from_bytes(distinct.to_bytes(), source=Silence())
    assert distinct.step(np.array([2**64 - 1, 1], np.uint64)) == 5
    assert distinct.step(["1", b"1", -1, 2**64 - 1]) == 5


def test_lists_hold_the_items_of_one_row():
    histogram = silent(Histogram, 2, BUDGET, ["a", "b", "c"], unit=dc.User(2))
    assert counts(histogram.step([["a", "b"], [], ["a", "a", "c"]], users=["u", "v", "w"])) == {"a": 2, "b": 1, "c": 1}
    assert counts(histogram.step(pa.array([["c"], ["b"], []]), users=["u", "v", "u"])) == {"a": 2, "b": 2, "c": 1}
    with pytest.raises(dc.errors.ParameterError):
        histogram.step([["a"]], users=["u"])  # the horizon
    with pytest.raises(dc.errors.DataError, match="the same length"):
        silent(Histogram, 2, BUDGET, ["a"], unit=dc.User(2)).step([["a"], ["a"], []], users=["u", "v"])


def test_rows_that_cannot_be_are_left_out_with_their_person():
    histogram = silent(Histogram, 3, BUDGET, ["a", "b"], unit=dc.User(1))
    assert counts(histogram.step(["a", 1.5, "b", "x" * 5000], users=["u", "v", 2.5, "w"])) == {"a": 1, "b": 0}
    assert counts(histogram.step(["a", None, "b"], users=[None, "v", "w"], nulls="skip")) == {"a": 1, "b": 1}
    assert counts(histogram.step(pa.array(["a", None, "b"]), users=pa.array([7, 8, None]), nulls="skip")) == {
        "a": 2,
        "b": 1,
    }


BAD = [
    ({"users": ["u"]}, "the same length"),
    ({"users": ["u", None]}, "users have nulls"),
    ({"users": pa.array(["u", None])}, "users: .*nulls"),
    ({"users": None}, "whose the rows are"),
    ({"users": "uv"}, "got str"),
    ({"users": 5}, "got int"),
    ({"users": np.array([1.0, 2.0])}, "dimension"),
    ({"users": ["u", "v"], "nulls": "drop"}, "nulls must be"),
]


@pytest.mark.parametrize(("given", "said"), BAD)
def test_bad_input_spends_and_loses_nothing(tmp_path, given, said):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", BUDGET)
    histogram = Histogram(3, BUDGET, unit=dc.User(2), ledger=ledger.account("a"))
    with pytest.raises((dc.errors.DataError, dc.errors.ParameterError), match=said):
        histogram.step(["a", "b"], **given)
    with pytest.raises((dc.errors.DataError, dc.errors.ParameterError)):
        histogram.step([None, "b"], users=["u", "v"])
    assert histogram.tick == 0
    assert ledger.account("a").spent().epsilon == 0.0
    assert (histogram._items, histogram._total.tolist(), histogram._people._pairs.tolist()) == ([], [], [])
    histogram.step(["a", "b"], users=["u", "v"])
    assert histogram._total.tolist() == [1, 1]


def test_users_need_a_unit_of_people_and_the_other_way_round():
    with pytest.raises(dc.errors.ParameterError, match="need people"):
        Histogram(3, BUDGET, max_items_per_event=1).step(["a"], users=["u"])
    with pytest.raises(dc.errors.ParameterError, match="need people"):
        Histogram(3, BUDGET, max_items_per_event=1).add(["a"], users=["u"])


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"unit": dc.User()}, "a limit on the items per user"),
        ({"unit": dc.User(3), "max_items_per_event": 3}, "max_items_per_event works with events only"),
        ({"unit": dc.User(3), "limit": 3}, "limit works with events only"),
        ({"unit": dc.User(3), "mechanism": "meta", "k": 3}, "factorised, tree"),
        ({"unit": dc.User(3), "mechanism": "limit"}, "factorised, tree"),
        ({"unit": dc.User(3), "mechanism": "sparse", "k": 3, "domain": ["a"]}, "factorised, tree"),
        ({"unit": dc.Element(), "k": 3}, "unit must be"),
    ],
)
def test_settings_that_do_not_hide_people_are_refused(named, said):
    with pytest.raises(dc.errors.ParameterError, match=said):
        Histogram(3, BUDGET, **named)


def test_a_budget_without_delta_needs_a_domain():
    with pytest.raises(dc.errors.ParameterError, match="delta"):
        Histogram(3, dc.Budget.zcdp(0.5), unit=dc.User(3))
    assert Histogram(3, dc.Budget.zcdp(0.5), ["a"], unit=dc.User(3)).guarantee.rho == 0.5


def test_k_publishes_the_largest():
    histogram = Histogram(1, dc.Budget.zcdp(5000.0), ITEMS, k=2, unit=dc.User(2))
    release = histogram.step(["item 1"] * 60 + ["item 2"] * 30, users=range(90))
    assert list(release.items) == ["item 1", "item 2"]


@pytest.mark.parametrize("domain", [None, ITEMS])
@pytest.mark.parametrize("mechanism", ["factorised", "tree"])
def test_a_restart_changes_nothing(domain, mechanism):
    def run(restarts):
        source = seeded_source(4)
        histogram = Histogram(8, PLENTY, domain, mechanism=mechanism, unit=dc.User(3), source=source)
        distinct = DistinctCount(8, PLENTY, source=source)
        out = []
        for t, (users, items) in enumerate(rows(8), 1):
            if t in restarts:
                histogram = Histogram.from_bytes(histogram.to_bytes(), source=source)
                distinct = DistinctCount.from_bytes(distinct.to_bytes(), source=source)
            out += [histogram.step(items, users=users).to_payload(), distinct.step(users)]
        return out

    assert run([]) == run([1, 2, 5, 8])


def test_rows_as_they_come_are_those_of_one_tick():
    users, items = rows(1, length=200)[0]
    whole, parts = (silent(Histogram, 2, BUDGET, unit=dc.User(2)) for _ in range(2))
    whole.step(items, users=users)
    parts.add(items[:70], users=users[:70])
    parts = Histogram.from_bytes(parts.to_bytes(), source=Silence())
    parts.add(items[70:150], users=users[70:150])
    parts.step(items[150:], users=users[150:])
    assert dict(zip(parts._items, parts._total.tolist(), strict=True)) == dict(
        zip(whole._items, whole._total.tolist(), strict=True)
    )
    assert parts.step().to_payload() == whole.step().to_payload()
    distinct = silent(DistinctCount, 2, BUDGET)
    distinct.add(users[:70])
    distinct = DistinctCount.from_bytes(distinct.to_bytes(), source=Silence())
    distinct.add(users[50:])
    assert (distinct.step(), distinct.step()) == (len(set(users)), len(set(users)))


def test_rows_of_events_as_they_come_too():
    whole, parts = (silent(Histogram, 2, BUDGET, max_items_per_event=2) for _ in range(2))
    whole.step([["a", "b"], ["a"], ["c"]])
    parts.add([["a", "b"]])
    parts = Histogram.from_bytes(parts.to_bytes(), source=Silence())
    parts.step([["a"], ["c"]])
    assert parts._total.tolist() == whole._total.tolist() == [2, 1, 1]


def test_distinct_count_is_the_running_number_of_people():
    distinct = silent(DistinctCount, None, dc.Budget.zcdp(0.5))
    seen = set()
    for users, _ in rows(9):
        seen |= set(users)
        assert distinct.step(users) == len(seen)
    assert distinct.guarantee.unit == dc.User()
    assert distinct.error(9) == dc.continual.Counter(None, dc.Budget.zcdp(0.5)).error(9)
    assert distinct.step("ignored", tick=9) == len(seen)


@pytest.mark.parametrize("kind", ["histogram", "people"])
def test_an_account_adds_up_whole_people_however_many_items_count(tmp_path, kind):
    """Of a person the first items count, and all of the person is hidden: so it adds up with other such releases."""
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", dc.Budget(9.0, 9e-6))
    account = ledger.account("a")

    def made(most, charge_id):
        if kind == "people":
            return DistinctCount(4, BUDGET, ledger=account, charge_id=charge_id)
        return Histogram(4, BUDGET, unit=dc.User(most), ledger=account, charge_id=charge_id)

    made(2, "first").begin()
    assert account.unit == dc.User()
    made(5, "second").begin()
    account.charge(dc.Budget(1.0), "third", unit=dc.User())
    with pytest.raises(dc.LedgerError, match="unit"):
        account.charge(dc.Budget(1.0), "fourth", unit=dc.User(2))
    asked = [event.details.get("asked_unit") for event in account.history() if event.kind == "charge"]
    assert asked == ([None] * 3 if kind == "people" else [dc.User(2).details(), dc.User(5).details(), None])


def test_a_ledger_is_charged_once_for_people(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", dc.Budget(2.0, 2e-6))
    account = ledger.account("a")
    histogram = Histogram(4, BUDGET, unit=dc.User(2), ledger=account)
    old = histogram.to_bytes()
    states = []
    first = histogram.step(["a"] * 9, users=range(9), save=lambda release: states.append(histogram.to_bytes()))
    histogram.step(["a"] * 9, users=range(5, 14))
    with pytest.raises(dc.errors.OldStateError):
        Histogram.from_bytes(states[0], ledger=account)
    assert account.spent().epsilon == pytest.approx(1.0)
    second = Histogram.from_bytes(states[0], ledger=account, restored=True)
    assert second.last.to_payload() == first.to_payload()
    second.step(["a"] * 9, users=range(5, 14))
    assert second._total.tolist() == [14]
    assert account.spent().epsilon == pytest.approx(2.0)
    assert old != states[0]


def test_a_repr_says_not_private_and_holds_no_count():
    histogram = silent(Histogram, 4, BUDGET, unit=dc.User(2))
    histogram.step(["a"] * 777, users=range(777))
    assert "NOT PRIVATE: 3 bytes and the id a person, 8 bytes a person and item" in repr(histogram)
    assert "777" not in repr(histogram)
    distinct = silent(DistinctCount, 4, BUDGET)
    distinct.step(range(777))
    assert "NOT PRIVATE: 3 bytes and the id a person]" in repr(distinct)
    assert "777" not in repr(distinct)


def test_the_state_has_the_size_that_it_says():
    def size(n, items):
        histogram = silent(Histogram, 4, BUDGET, ["a", "b"], unit=dc.User(2))
        histogram.step(items * n, users=np.repeat(np.arange(n) + 10**6, len(items)))
        return len(histogram.to_bytes())

    assert size(2000, ["a"]) - size(1000, ["a"]) == pytest.approx(1000 * (8 + 1 + 8), abs=20)  # numbers need no length
    assert size(2000, ["a", "b"]) - size(1000, ["a", "b"]) == pytest.approx(1000 * (8 + 1), abs=20)  # full


def test_of_people_with_all_their_items_only_the_id_is_kept():
    people = PeopleSeen(2)
    numbers = people.number(["u", "v"], "error")
    people.take(*people.fresh(numbers[[0, 0, 0, 1]], np.array([5, 6, 7, 5])))
    assert people._held.tolist() == [2, 1]
    assert people._pairs.tolist() == [1 << 32 | 5]


# ---- damaged states --------------------------------------------------------------------------------------------------


def edited(state, family, change):
    """The state with another header, arrays or blobs."""
    version, payload = open_state(state, family, 1)
    length = int.from_bytes(payload[:8], "little")
    described, body = json.loads(payload[8 : 8 + length]), bytearray(payload[8 + length :])
    places, at = {}, 0
    for name, shape in described["arrays"].items():
        places[name] = (at, at + 8 * int(np.prod(shape)))
        at = places[name][1]
    for name, size in described["blobs"].items():
        places[name] = (at, at + size)
        at += size
    change(described, body, places)
    text = json.dumps(described, separators=(",", ":")).encode()
    return seal_state(family, version, len(text).to_bytes(8, "little") + text + bytes(body))


def at(name, index, value, dtype="<i8"):
    def change(described, body, places):
        first, last = places[name]
        part = np.frombuffer(bytes(body[first:last]), dtype).copy()
        part[index] = value
        body[first:last] = part.tobytes()

    return change


def header(key, value):
    def change(described, body, places):
        described["header"]["people"][key] = value

    return change


DAMAGE = [
    at("people.pairs", 0, -1),
    at("people.pairs", -1, 99 << 32),
    at("people.pairs", 0, 77),
    at("people.pairs", [0, 1], [5 << 32, 1]),
    at("people.held", 0, 9, "<u1"),
    at("people.held", 0, 0, "<u1"),
    at("people.ids", 0, ord("v"), "u1"),  # two people of one id
    at("people.ids", 0, 0xFF, "u1"),
    at("people.lengths", 0, 2, "<u2"),
    header("kind", "int64"),
    header("kind", "none"),
    header("kind", 7),
    header("number", 99),
    header("number", 1.5),
    header("most", None),
]


@pytest.mark.parametrize("number", range(len(DAMAGE)))
def test_damaged_people_are_refused(number):
    histogram = silent(Histogram, 4, BUDGET, unit=dc.User(3))
    histogram.step(["a", "b", "a"], users=["u", "u", "v"])
    state = histogram.to_bytes()
    assert Histogram.from_bytes(edited(state, 142, lambda *parts: None)).to_bytes() == state
    with pytest.raises(dc.errors.CorruptStateError):
        Histogram.from_bytes(edited(state, 142, DAMAGE[number]))


@pytest.mark.parametrize(
    "change",
    [
        at("people.tags", 0, 9, "u1"),  # no kind
        at("people.tags", 0, 2, "u1"),  # a text of one byte as an integer
        at("people.tags", 1, 0, "u1"),  # an integer as text, which its bytes are not
        lambda described, body, places: described["blobs"].__setitem__("people.tags", 0),
    ],
)
def test_damaged_kinds_of_people_are_refused(change):
    """A kind that there is not once ended the process: Arrow believes what it is given."""
    histogram = silent(Histogram, 4, BUDGET, unit=dc.User(3))
    histogram.step(["a", "b", "a"], users=["u", -7, "v"])
    with pytest.raises(dc.errors.CorruptStateError):
        Histogram.from_bytes(edited(histogram.to_bytes(), 142, change))


def test_cut_and_foreign_states_are_refused():
    distinct = silent(DistinctCount, 4, BUDGET)
    distinct.step(["u", "v"])
    state = distinct.to_bytes()
    for end in range(0, len(state), 7):
        with pytest.raises(dc.errors.CorruptStateError):
            DistinctCount.from_bytes(state[:end])
    with pytest.raises(dc.errors.CorruptStateError):
        dc.continual.Counter.from_bytes(state)
    with pytest.raises(dc.errors.CorruptStateError):
        DistinctCount.from_bytes(dc.continual.Counter(4, BUDGET).to_bytes())


def test_numbers_of_any_kind_follow_the_first_appearance():
    interner = _native.Interner(4096, 5, True)
    number = lambda column: np.frombuffer(interner.number(column), np.int32).tolist()  # noqa: E731
    assert number(pa.array([5, -1, None, 5])) == [0, 1, -1, 0]
    assert number(np.array([2**64 - 1, 5], np.uint64)) == [2, 0]
    assert number(["a", b"a", None, -1]) == [3, 4, -1, 1]
    assert number(pa.array(["a", "b"]).dictionary_encode()) == [3, 5]
    assert number(pa.array([5, 6]).dictionary_encode()) == [0, 6]
    with pytest.raises(dc.errors.DataError):
        interner.number(pa.array([1, None]), False)
    with pytest.raises(dc.errors.DataError):
        _native.Interner(4096, 5).number([1])


def test_many_integers_among_values_of_any_kind_are_read_back():
    """They are kept as keys of 8 bytes; what is written of them must fit what it is written to."""
    interner, values = _native.Interner(4096, 5, True), list(range(-5000, 5000))
    numbers = np.frombuffer(interner.number(np.array(values)), np.int32).tolist()
    kind, found, offsets, counts, tags = interner.keys(numbers)
    assert (kind, tags) == ("int64", b"")
    assert np.frombuffer(found, np.int64).tolist() == values
    assert np.frombuffer(offsets, np.int64).tolist() == list(range(0, 80_001, 8))
    assert not np.frombuffer(counts, np.int64).any()
    interner.number(["a"])
    kind, found, offsets, counts, tags = interner.keys([*numbers, 10_000])
    assert (kind, found[-1:], len(offsets), len(tags)) == ("mixed", b"a", 8 * 10_002, 10_001)


def test_the_people_of_a_state_that_counts_another_number_of_items_are_refused():
    people = PeopleSeen(2)
    people.number(["a", "b"], "error")
    state = people.saved()
    loaded = PeopleSeen(2)
    loaded.load(state, 5, 0)
    assert loaded.number(["b", "a"], "error").tolist() == [1, 0]
    with pytest.raises(dc.CorruptStateError, match="another mechanism"):
        PeopleSeen(3).load(state, 5, 0)


def test_a_state_in_which_somebody_has_too_many_items_is_refused():
    people = PeopleSeen(2)
    people.number(["a", "b"], "error")
    header, arrays, blobs = people.saved()
    held = np.array([3, 0], people._held_type).tobytes()
    with pytest.raises(dc.CorruptStateError, match="damaged people"):
        PeopleSeen(2).load((header, arrays, {**blobs, "held": held}), 5, 0)
