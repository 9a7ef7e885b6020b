"""What states of continual releases keep and what they promise after reading: days, runs, seeds, releases of before."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.continual import Counter, DistinctCount, HeavyHitters, Histogram
from discreet.continual._base import load_state, save_state
from discreet.noise import seeded_source
from discreet.privacy.spans import Calendar
from discreet.storage import open_state, seal_state

BUDGET = dc.Budget(1.0, 1e-6)
EVENTS = ["a"] * 400 + ["b"] * 300
MAKERS = {
    "counter": lambda **o: Counter(12, BUDGET, **o),
    "counters": lambda **o: Counter(12, BUDGET, size=3, **o),
    "distinct": lambda **o: DistinctCount(12, BUDGET, **o),
    "histogram": lambda **o: Histogram(12, BUDGET, max_items_per_event=1, **o),
    "people": lambda **o: Histogram(12, BUDGET, unit=dc.User(3), **o),
    "hitters": lambda **o: HeavyHitters(12, BUDGET, 16, **o),
}
OF_PEOPLE = ("distinct", "people")


def step(made, **more):
    if isinstance(made, DistinctCount):
        return made.step(range(700), **more)
    if isinstance(made, Counter):
        return made.step(700 if made.size is None else [400, 300, 0], **more)
    users = {"users": range(len(EVENTS))} if made.unit != dc.Event() else {}
    return made.step(EVENTS, **users, **more)


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(4.0, 1e-4))
    return ledger.account("rows")


def charges(account):
    return [event for event in account.history() if event.kind == "charge"]


# ---- one day ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_PEOPLE)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_run_of_one_day_is_one_after_it_was_read(name, zone, tmp_path):
    """The promise, and the day that the ledger hears of: without it the charge would be about all days."""
    made = MAKERS[name]()
    made.limit_to(Calendar("1d", zone), "2026-03-29")
    told = made.guarantee
    assert (told.unit.per, told.unit.zone) == ("1d", zone)
    again = type(made).from_bytes(made.to_bytes())
    assert again.guarantee == told
    assert type(made).from_bytes(again.to_bytes()).to_bytes() == again.to_bytes()

    ledger = dc.Ledger(tmp_path / "days.sqlite")
    ledger.grant("days", BUDGET, unit=dc.User(per="1d", zone=zone))
    account = ledger.account("days")
    for day in ("2026-03-29", "2026-03-30"):
        run = MAKERS[name](ledger=account)
        run.limit_to(Calendar("1d", zone), day)
        run = type(run).from_bytes(run.to_bytes(), ledger=account)
        step(run)  # each day has the whole budget
    repeated = MAKERS[name](ledger=account)
    repeated.limit_to(Calendar("1d", zone), "2026-03-30")
    with pytest.raises(dc.BudgetExceededError):
        step(repeated)
    assert len(charges(account)) == 2


# ---- seeds -----------------------------------------------------------------------------------------------------------


def test_what_a_seeded_source_draws_is_not_private_from_the_first_tick_on(make):
    """Whenever it is given: to a state of private noise, too, and before anything was drawn."""
    made = make()
    step(made)
    assert not made.guarantee.seeded
    again = type(made).from_bytes(made.to_bytes(), source=seeded_source(1))
    assert again.guarantee.seeded
    step(again)
    assert type(made).from_bytes(again.to_bytes()).guarantee.seeded
    seeded = make(source=seeded_source(1))
    assert type(made).from_bytes(seeded.to_bytes()).guarantee.seeded  # its first noise may be in the state


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_every_run_has_a_name_of_its_own_also_after_it_was_read(make, account):
    """What is published of two runs shares no noise, and intervals of increases rest on their names."""
    made = make(ledger=account, remember=2)
    names, first = [made.run_name], made.to_bytes()
    old = first
    for _ in range(2):
        step(made)
        made = type(made).from_bytes(old, ledger=account, restored=True)
        names.append(made.run_name)
        made = type(made).from_bytes(made.to_bytes(), ledger=account)
        assert made.run_name == names[-1]
        step(made)  # as it was published
        old = made.to_bytes()
        step(made)
    # Nor have two runs that go on from one state the same.
    names += [type(made).from_bytes(first, ledger=account, restored=True).run_name for _ in range(2)]
    assert len(set(names)) == 5


@pytest.mark.parametrize("name", ["counter", "counters", "histogram", "hitters"])
def test_a_second_run_remembers_what_the_first_published(name, account):
    """Also the tick that a copy drew and the ledger had in another version."""
    made = MAKERS[name](ledger=account, remember=3)
    for _ in range(2):
        step(made)
    twin = type(made).from_bytes(made.to_bytes(), ledger=account)
    with pytest.raises(dc.OldStateError):
        step(twin, save=lambda _: step(made))
    again = type(made).from_bytes(twin.to_bytes(), ledger=account, restored=True)
    published = made.last
    assert shown(again.last) == shown(published)
    step(again)
    # From the third tick, which the first run published, to the fourth: no noise is shared.
    risen = again.increase(since=3)
    assert width(risen) > 1.2 * made_width(name)
    if isinstance(published, dc.Release):
        assert risen.to_dict() == again.increase(since=published).to_dict()
    else:
        assert np.array_equal(risen.value if name == "counter" else risen.values, again.last - published)


def shown(release):
    if isinstance(release, np.ndarray):
        return release.tolist()
    return release.to_payload() if isinstance(release, dc.Release) else release


def width(increase):
    if isinstance(increase, dc.Estimate):
        return float(increase.upper - increase.lower)
    return float(np.max(np.asarray(increase.upper) - np.asarray(increase.lower)))


def made_width(name):
    """Of an increase from the third tick to the fourth in one run."""
    made = MAKERS[name](remember=1)
    for _ in range(4):
        step(made)
    return width(made.increase(since=3))


# ---- releases of before ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remember", [1, 2])
def test_as_many_ticks_are_remembered_as_were_asked_for(make, remember):
    made = make(remember=remember)
    for _ in range(4):
        step(made)
    for each in (made, type(made).from_bytes(made.to_bytes())):
        for since in range(4 - remember, 4):
            each.increase(since=since)
        with pytest.raises(dc.ParameterError, match="not remembered"):
            each.increase(since=3 - remember)


def test_what_was_published_is_not_changed_by_anyone_who_has_it():
    made = Counter(12, BUDGET, size=3, remember=2)
    first = step(made)
    kept, state = first.copy(), made.to_bytes()
    for array in (first, made.last):
        if array.flags.writeable:
            array += 1000
    assert made.last.tolist() == kept.tolist()
    assert made.to_bytes() == state
    step(made)
    risen = made.increase(since=1)
    assert risen.values.tolist() == (made.last - kept).tolist()


# ---- states ----------------------------------------------------------------------------------------------------------


def test_a_state_with_more_behind_its_end_is_refused(make):
    made = make()
    step(made)
    version, payload = open_state(made.to_bytes(), made.family, 1)
    for wrong in (payload + b"\0", payload + bytes(8), payload[:-1]):
        with pytest.raises(dc.CorruptStateError):
            type(made).from_bytes(seal_state(made.family, version, wrong))


@pytest.mark.parametrize("tick", [True, 1.0, "1", 0, -1])
def test_a_tick_is_a_whole_number_from_1(make, tick):
    made = make()
    step(made)
    with pytest.raises(dc.ParameterError, match="tick"):
        step(made, tick=tick)
    assert made.tick == 1


ROWS = ["a"] * 400 + ["b"] * 300
DAMAGED = {
    "a visit of tomorrow": (lambda: DistinctCount(8, BUDGET, window=2), "last_ticks", lambda a: a + 5),
    "a visit of no tick": (lambda: DistinctCount(8, BUDGET, window=2), "last_ticks", lambda a: a * 0),
    "more visits than ticks": (lambda: DistinctCount(8, BUDGET, window=2), "visits", lambda a: a + 5),
    "no visit": (lambda: DistinctCount(8, BUDGET, window=2, max_visits=2), "visits", lambda a: a * 0),
    "more visits than count": (lambda: DistinctCount(8, BUDGET, window=2, max_visits=2), "visits", lambda a: a + 3),
    "visits of fewer": (lambda: DistinctCount(8, BUDGET, window=2), "visits", lambda a: a[1:]),
    "carried of three rows": (
        lambda: Histogram(None, BUDGET, max_items_per_event=1, mechanism="meta"), "scheme.carried",
        lambda a: np.zeros((3, 2), np.int64),
    ),
    "carried of more items": (
        lambda: Histogram(None, BUDGET, max_items_per_event=1, mechanism="meta"), "scheme.carried",
        lambda a: np.zeros((2, 99), np.int64),
    ),
    "nodes of other levels": (
        lambda: Histogram(8, BUDGET, max_items_per_event=1, mechanism="meta", base=2), "scheme.open",
        lambda a: a[1:],
    ),
    "a choice of no item": (lambda: Histogram(8, BUDGET, ["a", "b"], k=1, mechanism="sparse"), "scheme.top",
                            lambda a: a + 2),
    "a choice before the first": (lambda: Histogram(8, BUDGET, ["a", "b"], k=1, mechanism="sparse"), "scheme.top",
                                  lambda a: a - 2),
    "totals of other items": (lambda: Histogram(8, BUDGET, max_items_per_event=1), "total", lambda a: a[:-1]),
    "who was shown": (lambda: Histogram(8, BUDGET, max_items_per_event=1), "scheme.shown", lambda a: a[:-1]),
    "a past of more counters": (lambda: Counter(8, BUDGET, size=2, remember=2), "past",
                                lambda a: np.ones((1, 4), np.int64)),
    "a past of later": (lambda: Counter(8, BUDGET, size=2, remember=2), "past", lambda a: np.add(a, [[5, 0, 0]])),
    "totals of one counter": (lambda: Counter(8, BUDGET, size=2), "total", lambda a: a[:1]),
    "a release of three": (lambda: Counter(8, BUDGET, size=2), "last", lambda a: np.zeros(3, np.int64)),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_arrays_that_no_state_has_are_refused(what):
    """Each by itself: the rest of the state is in order, and so is its envelope."""
    make, name, change = DAMAGED[what]
    made = make()
    for _ in range(2):
        if isinstance(made, DistinctCount):
            made.step(range(7))
        else:
            made.step([3, 1] if isinstance(made, Counter) else ROWS)
    state = load_state(made.to_bytes(), made.family)
    again = type(made).from_bytes(save_state(made.family, state))
    assert again.to_bytes() == made.to_bytes()
    broken = state._replace(arrays={**state.arrays, name: np.asarray(change(state.arrays[name]), np.int64)})
    with pytest.raises(dc.CorruptStateError):
        type(made).from_bytes(save_state(made.family, broken))


@pytest.mark.parametrize("first", [1, 4, 3, 0])
@pytest.mark.parametrize("mechanism", ["discover", "offset"])
def test_a_state_is_of_the_epoch_of_its_tick(first, mechanism):
    """Without a horizon; in another epoch nodes would have another noise."""
    made = HeavyHitters(None, BUDGET, 8, mechanism=mechanism)
    for _ in range(2):
        made.step(ROWS)
    state = load_state(made.to_bytes(), made.family)
    assert state.header["first"] == 2
    with pytest.raises(dc.CorruptStateError):
        HeavyHitters.from_bytes(save_state(made.family, state._replace(header={**state.header, "first": first})))


NODES = {
    "none": lambda nodes: [],
    "none of one tick": lambda nodes: [node for node in nodes if node[0] != nodes[0][0]],
    "the last is missing": lambda nodes: nodes[:-1],
    "one twice": lambda nodes: [*nodes, nodes[-1]],
    "one of tomorrow": lambda nodes: [*nodes[:-1], [nodes[-1][0], nodes[-1][1] + 1, *nodes[-1][2:]]],
    "one that ends before it begins": lambda nodes: [*nodes[:-1], [nodes[-1][1] + 1, *nodes[-1][1:]]],
    "one that begins later": lambda nodes: [[nodes[0][0] + 1, *nodes[0][1:]], *nodes[1:]],
    "other names than counts": lambda nodes: [*nodes[:-1], [*nodes[-1][:5], [*nodes[-1][5], 7]]],
}


@pytest.mark.parametrize("what", NODES)
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("horizon", [12, None])
def test_nodes_are_those_of_which_later_ticks_are_made_up(what, window, horizon):
    """A state without one of them would publish less than there was, and one with another something twice."""
    made = HeavyHitters(horizon, BUDGET, 8, window, mechanism="offset", base=2)
    for _ in range(5):
        made.step(ROWS)
    state = load_state(made.to_bytes(), made.family)
    nodes = state.header["nodes"]
    assert len(nodes) > 1
    if what == "one twice" and window is not None:
        return  # of those that begin at one tick the longest counts
    broken = state._replace(header={**state.header, "nodes": NODES[what](nodes)})
    with pytest.raises(dc.CorruptStateError):
        HeavyHitters.from_bytes(save_state(made.family, broken))
